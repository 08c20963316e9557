"""The server of the viewer: on this machine alone, for whoever has its address.

The address has a secret of 256 bits, which a page of another site does not know. Its requests are
not answered (their ``Origin`` and ``Sec-Fetch-Site`` are others), and it could not read an answer
(none has a header of CORS). ``Host`` refuses domains that lead here (DNS rebinding).
"""

from __future__ import annotations

import json
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from secrets import token_urlsafe
from socketserver import TCPServer
from threading import BoundedSemaphore, Lock
from urllib.parse import parse_qsl, urlsplit

from raconvert.errors import RaconvertError, ReadFailed, UsageError, quoted
from raconvert.viewer.answers import Answer, Desk, of_json
from raconvert.viewer.tree import Tree, reason_of
from raconvert.views.pages.markup import STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.conversion.options import Settings

HOST = "127.0.0.1"
THREADS = 32  # connections at once; a browser has six
IDLE = 30  # seconds after which a connection without a request is closed
MOST_BODY = 1 << 16  # bytes of a request
_LONGEST_NUMBER = 20  # digits of a length
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FILES = {  # path below the secret -> type, file of this package
    "": ("text/html; charset=utf-8", "viewer.html"),
    "viewer.css": ("text/css; charset=utf-8", "viewer.css"),
    "viewer.js": ("text/javascript; charset=utf-8", "viewer.js"),
}


class Viewer(ThreadingHTTPServer):
    """A server that shows one source or folder; `url` is its address with the secret.

    `first_url` leads there, and works once: the words of a program that is started with it can be
    read by all users who can list processes.
    """

    daemon_threads = True
    request_queue_size = THREADS
    allow_reuse_address = False

    def __init__(self, path: str, settings: Settings, port: int = 0) -> None:
        if not 0 <= port < 1 << 16:
            raise UsageError(f"{port} is not a port", expected="1 to 65535")
        self.desk: Desk = Desk(Tree(path, settings))
        self.secret: str = token_urlsafe(32)
        self.once: str | None = token_urlsafe(32)
        self._guard = Lock()
        self._room = BoundedSemaphore(THREADS)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ReadFailed(
                f"port {port} cannot be used: {error.strerror}", remedy="leave out `--port`"
            ) from error
        self.hosts: set[str] = {f"{name}:{self.port}" for name in (HOST, "localhost")}

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address, with the secret."""
        return f"http://{HOST}:{self.port}/{self.secret}/"

    @property
    def first_url(self) -> str:
        """An address that works once."""
        return f"http://{HOST}:{self.port}/{self.once}/"

    def is_first(self, path: str) -> bool:
        """True for the path of `first_url`, the first time."""
        with self._guard:
            once = self.once
            if once is None or not compare_digest(path.encode(), f"/{once}/".encode()):
                return False
            self.once = None
            return True

    def server_bind(self) -> None:
        """Bind without asking a name server for the name of this machine."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there are not too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a browser that goes away is not an error."""

    def server_close(self) -> None:
        """Close the socket and the files."""
        super().server_close()
        self.desk.close()


class Refused(Exception):
    """A request that is not answered: status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Viewer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "raconvert", ""
    timeout = IDLE

    def do_GET(self) -> None:
        """Answer a question, or send a file of the page."""
        self._answer(self._asked)

    def do_POST(self) -> None:
        """Convert a file."""
        self._answer(self._converted)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def version_string(self) -> str:
        """The name of the server, without a version."""
        return self.server_version

    def _answer(self, answer_of: Callable[[], Answer]) -> None:
        """Send the answer that a function returns, or the reason why there is none."""
        try:
            self._check()
            answer = answer_of()
        except Refused as refused:
            self.close_connection = True
            self._send(refused.status, Answer("text/plain; charset=utf-8", refused.reason.encode()))
        except RaconvertError as error:
            text = quoted(reason_of(error, self.server.desk.tree.folder), lines=True)
            self._send(422, of_json({"error": text, "kind": error.kind}))
        except MemoryError:
            self._send(422, of_json({"error": "memory is exhausted", "kind": "MemoryError"}))
        except OSError as error:
            text = quoted(error.strerror or type(error).__name__)
            self._send(422, of_json({"error": text, "kind": "OSError"}))
        except Exception as bug:  # noqa: BLE001 - the last resort: a line instead of a traceback
            text = quoted(f"{type(bug).__name__}: {bug}; this is a bug in raconvert")
            self._send(500, of_json({"error": text, "kind": "bug"}))
        else:
            self._send(200, answer)

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        """Refuse a request that is not HTTP, or has another method."""
        self.close_connection = True
        if self.request_version == "HTTP/0.9":
            return
        self._send(code, Answer("text/plain; charset=utf-8", b"refused"))

    def _check(self) -> None:
        """Refuse a request that neither the page of this server nor its user has sent."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise Refused(403, "unknown host")
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            raise Refused(403, "another origin")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Refused(403, "another site")

    def _path(self) -> tuple[str, str]:
        """The path below the secret, and the query; other paths are refused."""
        parts = urlsplit(self.path)
        secret, slash, path = parts.path.removeprefix("/").partition("/")
        if not self.path.startswith("/") or not slash:
            raise Refused(404, "nothing is here; the address has a secret")
        if not compare_digest(secret.encode(), self.server.secret.encode()):
            raise Refused(403, "the secret of the address is another")
        return path, parts.query

    def _asked(self) -> Answer:
        """The answer to a question, a file of the page, or the redirection to its address."""
        if self.server.is_first(self.path):
            return Answer(_MOVED, b"")
        path, query = self._path()
        if path in _FILES:
            kind, name = _FILES[path]
            return Answer(kind, files("raconvert.viewer").joinpath(name).read_bytes())
        if path == "page.css":
            return Answer("text/css; charset=utf-8", STYLE.encode())
        answer = self.server.desk.asked(path, _words(query))
        if answer is None:
            raise Refused(404, "nothing is here")
        return answer

    def _converted(self) -> Answer:
        """Convert a file as the body of the request says; the answer is the report."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused(411, "the length of the request is missing")
        if len(length) > _LONGEST_NUMBER or int(length) > MOST_BODY:
            raise Refused(413, "too much")
        body = self.rfile.read(int(length))
        path, _ = self._path()
        if self.headers.get("Content-Type") != "application/json":
            raise Refused(415, "JSON is expected")
        if path != "convert":
            raise Refused(404, "nothing is here")
        try:
            words = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise UsageError("the request is not JSON") from error
        if not isinstance(words, dict) or not all(isinstance(w, str) for w in words.values()):
            raise UsageError("the request is not a JSON object of texts")
        return self.server.desk.convert(words)

    def _send(self, status: int, answer: Answer) -> None:
        """Send the headers that all answers have, and an answer."""
        moved = answer.kind is _MOVED
        self.send_response(303 if moved else status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if moved:
            self.send_header("Location", f"/{self.server.secret}/")
        else:
            self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


_MOVED = "moved"  # the kind of the answer to the address that works once


def _words(query: str) -> dict[str, str]:
    """The words of a query. Raises `UsageError` if they are too many."""
    try:
        return dict(parse_qsl(query, max_num_fields=20))
    except ValueError as error:
        raise UsageError("the question has too many words") from error
