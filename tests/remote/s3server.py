"""A real S3 server on loopback (moto) behind a proxy that counts bytes and injects faults.

    with s3server.running() as server:
        bucket = server.bucket()
        bucket.put("a.npy", data)
        server.fail(status(503), "UploadPart", times=2)

The server is a process of its own. What it does not know itself is added by the proxy:
`CopySourceIfMatch` of `UploadPartCopy`.
"""

from __future__ import annotations

import http.client
import os
import re
import select
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.remote.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE = 1 << 16
EVERY = bool(os.environ.get("RACONVERT_EVERY_FAULT"))  # the rest of the cases, too: minutes
_SERVER = """
import logging, sys, threading
logging.disable(logging.CRITICAL)
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()  # until whoever has started it is gone
"""
# moto wants a name, and checks no signature.
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/x, x"}
CODES = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 500: "InternalError",
         501: "NotImplemented", 503: "SlowDown"}  # fmt: skip


@dataclass
class Request:
    """One request, as the proxy has seen it; `up` and `down` are bytes of bodies."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    up: int = 0
    down: int = 0
    status: int = 0

    @property
    def operation(self) -> str:
        """The name that S3 has for it."""
        key = self.path.strip("/").count("/") > 0
        copied = "Copy" if "x-amz-copy-source" in self.headers else ""
        if not key:
            return {"GET": "ListUploads" if "uploads" in self.query else "ListObjects",
                    "HEAD": "HeadBucket"}.get(self.method, f"{self.method}Bucket")  # fmt: skip
        if "uploads" in self.query and self.method == "POST":
            return "CreateMultipartUpload"
        if "uploadId" in self.query:
            return {"PUT": f"UploadPart{copied}", "POST": "CompleteMultipartUpload",
                    "DELETE": "AbortMultipartUpload"}.get(self.method, "ListParts")  # fmt: skip
        if self.method == "PUT":
            return "CopyObject" if copied else "PutObject"
        return {"GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}[self.method]


@dataclass
class Fault:
    """What goes wrong: `action` at the requests named, `times` times after the first `skip`."""

    action: Callable[[Handler, Request], bool]
    operation: str
    times: int
    skip: int
    key: str
    met: list[Request] = field(default_factory=list)

    def applies(self, request: Request) -> bool:
        return re.fullmatch(self.operation, request.operation) is not None and (
            self.key in unquote(request.path)
        )


def status(code: int) -> Callable[[Handler, Request], bool]:
    """Answer with an error in place of the server."""

    def act(handler: Handler, request: Request) -> bool:
        handler.body(request, keep=False)
        handler.answer(request, code, CODES[code])
        return True

    return act


def cut(request_bytes: int = 0) -> Callable[[Handler, Request], bool]:
    """Close the connection after so many bytes of the request's body: the server sees nothing."""

    def act(handler: Handler, request: Request) -> bool:
        if request_bytes:
            handler.go_on(request)
            handler.rfile.read(min(request_bytes, int(request.headers.get("content-length", 0))))
        handler.close()
        return True

    return act


def lose_answer() -> Callable[[Handler, Request], bool]:
    """Let the server do it, and close the connection in place of its answer."""

    def act(handler: Handler, request: Request) -> bool:
        handler.forward(request, answer=-1)
        handler.close()
        return True

    return act


def cut_answer(nbytes: int) -> Callable[[Handler, Request], bool]:
    """Close the connection after so many bytes of the answer's body."""

    def act(handler: Handler, request: Request) -> bool:
        handler.forward(request, answer=nbytes)
        handler.close()
        return True

    return act


def at_one_time() -> Callable[[Handler, Request], bool]:
    """Answer that all objects were changed in the same second, as far as times tell."""

    def change(data: bytes) -> bytes:
        data = re.sub(rb"\d\d:\d\d:\d\d GMT", b"12:00:00 GMT", data)
        return re.sub(rb"T\d\d:\d\d:\d\d\.\d\d\dZ", b"T12:00:00.000Z", data)

    def act(handler: Handler, request: Request) -> bool:
        handler.forward(request, change=change)
        return True

    return act


def call(function: Callable[[], object]) -> Callable[[Handler, Request], bool]:
    """Call a function before the request reaches the server, and go on."""

    def act(handler: Handler, request: Request) -> bool:
        function()
        return False

    return act


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: _Proxy
    timeout = 60

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # the client has gone
            self.close_connection = True

    def handle_expect_100(self) -> bool:
        return True  # the answer comes when no fault says otherwise

    def serve(self) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = parse_qs(url.query, keep_blank_values=True)
        request = Request(self.command, url.path, query, headers)
        proxy = self.server
        with proxy.lock:
            proxy.requests.append(request)
            chosen = []
            for fault in proxy.faults:
                if fault.applies(request):
                    fault.met.append(request)
                    if fault.skip < len(fault.met) <= fault.skip + fault.times:
                        chosen.append(fault)
        if not any(fault.action(self, request) for fault in chosen):
            self.forward(request)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve  # noqa: N815 - names of the base class

    def go_on(self, request: Request) -> None:
        """Have the client send what it waits with."""
        if request.headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def body(self, request: Request, *, keep: bool = True) -> bytes:
        self.go_on(request)
        pieces = []
        left = int(request.headers.get("content-length", 0))
        while left:
            piece = self.rfile.read(min(left, PIECE))
            if not piece:
                raise ConnectionError
            left -= len(piece)
            request.up += len(piece)
            if keep:
                pieces.append(piece)
        return b"".join(pieces)

    def answer(self, request: Request, code: int, name: str) -> None:
        text = f"<Error><Code>{name}</Code><Message>injected</Message></Error>".encode()
        request.status = code
        self.send_response(code)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if request.method != "HEAD":
            self.wfile.write(text)
            request.down += len(text)

    def forward(
        self,
        request: Request,
        answer: int | None = None,
        change: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """Have the server do it; of the answer's body send `answer` bytes (None: all).

        `change` is done to the time of change and to the body, and keeps their length.
        """
        data = self.body(request)
        if not self.server.copy_allowed(request):
            self.answer(request, 412, CODES[412])
            return
        upstream = http.client.HTTPConnection(*self.server.upstream)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        upstream.request(request.method, self.path, data, headers)
        response = upstream.getresponse()
        request.status = response.status
        if answer != -1:
            self.send_response_only(response.status, response.reason)
            for name, value in response.getheaders():
                if name.lower() == "last-modified":
                    value = change(value.encode()).decode()  # noqa: PLW2901
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            if response.getheader("content-length") is None:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
        while piece := response.read(PIECE):
            piece = change(piece)
            if answer is not None:
                piece = piece[: max(0, answer - request.down)]
            self.wfile.write(piece)
            request.down += len(piece)
        upstream.close()

    def close(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = upstream
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.faults: list[Fault] = []

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that has gone

    def copy_allowed(self, request: Request) -> bool:
        """What moto does not look at: the copied object must have this ETag."""
        wanted = request.headers.get("x-amz-copy-source-if-match")
        if wanted is None:
            return True
        upstream = http.client.HTTPConnection(*self.upstream)
        source = request.headers["x-amz-copy-source"].lstrip("/")
        upstream.request("HEAD", f"/{source}", headers=SIGNED)
        found = upstream.getresponse().getheader("ETag", "")
        upstream.close()
        return found.strip('"') == wanted.strip('"')


class Bucket:
    """A bucket seen past the proxy: nothing is counted, nothing fails."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.name = name
        self._server = server
        self._ask("PUT", "")

    def url(self, key: str = "") -> str:
        return f"s3://{self.name}/{key}"

    def _ask(self, method: str, key: str, query: str = "", data: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection(*self._server.upstream)
        connection.request(method, f"/{self.name}/{quote(key)}{query}", data, SIGNED)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status < 300, (method, key, answer.status, body[:300])
        return body

    def put(self, key: str, data: bytes) -> str:
        """Store an object; return its URL."""
        self._ask("PUT", key, data=data)
        return self.url(key)

    def get(self, key: str) -> bytes:
        return self._ask("GET", key)

    def delete(self, key: str) -> None:
        self._ask("DELETE", key)

    def names(self) -> list[str]:
        """Every object, sorted."""
        text = self._ask("GET", "", "?list-type=2").decode()
        assert "<IsTruncated>true" not in text
        return sorted(re.findall("<Key>(.*?)</Key>", text))

    def uploads(self) -> list[str]:
        """The keys of uploads that were begun and neither completed nor aborted."""
        return re.findall("<Key>(.*?)</Key>", self._ask("GET", "", "?uploads").decode())


class S3Server:
    """The server and its proxy; `endpoint` is where clients go."""

    def __init__(self, proxy: _Proxy) -> None:
        self._proxy = proxy
        self.upstream = proxy.upstream
        self.endpoint = f"http://127.0.0.1:{proxy.server_address[1]}"
        self.env = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    def bucket(self) -> Bucket:
        """A new bucket."""
        return Bucket(self, f"b{uuid.uuid4().hex[:12]}")

    def reset(self) -> None:
        """Forget faults and requests."""
        with self._proxy.lock:
            self._proxy.faults.clear()
            self._proxy.requests.clear()

    def fail(
        self,
        action: Callable[[Handler, Request], bool],
        operation: str = ".*",
        *,
        times: int = 1 << 30,
        skip: int = 0,
        key: str = "",
    ) -> Fault:
        """Inject a fault at requests whose operation is matched and whose path has `key`."""
        fault = Fault(action, operation, times, skip, key)
        with self._proxy.lock:
            self._proxy.faults.append(fault)
        return fault

    @property
    def requests(self) -> list[Request]:
        """What has passed since `reset`."""
        with self._proxy.lock:
            return list(self._proxy.requests)

    @property
    def operations(self) -> list[str]:
        return [request.operation for request in self.requests]

    @property
    def up(self) -> int:
        """Bytes of bodies that clients have sent."""
        return sum(request.up for request in self.requests)

    @property
    def down(self) -> int:
        """Bytes of bodies that clients have got."""
        return sum(request.down for request in self.requests)


@contextmanager
def running() -> Iterator[S3Server]:
    """Start server and proxy; end them."""
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        ready, _, _ = select.select([server.stdout], [], [], 120)
        port = server.stdout.readline().strip() if ready else ""
        assert port, "the S3 server did not start: pip install 'moto[server]'"
        with in_thread(_Proxy(("127.0.0.1", int(port)))) as proxy:
            yield S3Server(proxy)
    finally:
        for stream in (server.stdin, server.stdout):
            if stream is not None:
                stream.close()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
