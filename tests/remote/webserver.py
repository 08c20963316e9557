"""A web server on loopback that gives ranges of files, and does what is asked of it wrong.

with webserver.running(folder) as server:
    server.url("x.ra")
    server.wrong["etag"] = ...
"""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from tests.remote.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

PIECE = 1 << 16


class Server(ThreadingHTTPServer):
    """Serves the files of a folder; `sent` counts the bytes of bodies."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.sent = 0
        self.paths: list[str] = []
        self.ranges = True
        self.length = True
        self.version: Callable[[Path], dict[str, str]] = _version
        self.shift = 0  # by how much the ranges that it gives are off, and that it says so
        self.location = ""  # where it sends clients
        self.cut = 0  # answers that end after half
        self.status = 0
        self.lock = threading.Lock()

    def url(self, name: str, *, user: str = "", query: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.server_address[1]}/{name}{query}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def _version(path: Path) -> dict[str, str]:
    status = path.stat()
    return {"ETag": f'"{status.st_size}-{status.st_mtime_ns}"'}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        path = server.folder / self.path.partition("?")[0].lstrip("/")
        with server.lock:
            server.paths.append(self.path)
        if server.location:
            self._head(302, {"Location": server.location, "Content-Length": "0"})
            return
        if server.status or not path.is_file():
            self._head(server.status or 404, {"Content-Length": "0"})
            return
        size = path.stat().st_size
        begin, end, status = 0, size, 200
        headers = server.version(path)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if server.ranges and asked:
            begin, end = int(asked[1]) + server.shift, min(int(asked[2]) + 1, size)
            if begin >= size:
                self._head(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            status = 206
        if server.length:
            headers["Content-Length"] = str(end - begin)
        else:
            headers["Connection"] = "close"
            self.close_connection = True
        self._head(status, headers)
        half = server.cut > 0
        server.cut -= half
        self._send(path, begin, (begin + end) // 2 if half else end)
        if half:
            self.close_connection = True

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, path: Path, begin: int, end: int) -> None:
        with path.open("rb") as file:
            file.seek(begin)
            while begin < end:
                piece = file.read(min(PIECE, end - begin))
                self.wfile.write(piece)
                begin += len(piece)
                with self.server.lock:
                    self.server.sent += len(piece)


def running(folder: Path) -> AbstractContextManager[Server]:
    """Serve a folder until the end of the block."""
    return in_thread(Server(folder))
