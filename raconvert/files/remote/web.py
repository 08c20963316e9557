"""A file of a web server: ranges where it gives them, else a temporary copy of the whole."""

from __future__ import annotations

import os
from weakref import finalize

from raconvert.errors import ReadFailed
from raconvert.files.remote.filesystem import attempted, key_of
from raconvert.files.remote.ranges import BLOCK_BYTES, SLOWEST, Asked, Cut, Facts, nanoseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping
    from typing import Any, BinaryIO

REDIRECTIONS = 10
_LEADS = frozenset((301, 302, 303, 307, 308))
_SECRET = frozenset(("headers", "auth", "cookies"))  # options that may prove who asks
_COPY_BYTES = 1 << 18


class WebObject(Asked):
    """A file of a web server."""

    first: bytes
    facts: Facts
    whole: BinaryIO | None

    def look(self) -> None:
        """Ask for the first bytes, which tell the facts."""
        self.first = attempted(lambda: self._range(0, BLOCK_BYTES), self.url)

    async def _got(
        self, fs: Any, begin: int, end: int, limit: asyncio.Timeout
    ) -> bytes | bytearray:
        from aiohttp import ClientTimeout

        session = await fs.set_session()
        more = {"timeout": ClientTimeout(total=None, sock_connect=20, sock_read=60), **fs.kwargs}
        headers = {**more.get("headers", {}), "Accept-Encoding": "identity"}
        more["headers"] = {**headers, "Range": f"bytes={begin}-{end - 1}"}
        more.update(allow_redirects=False, auto_decompress=False)
        url = fs.encode_url(key_of(self.url))
        for _ in range(REDIRECTIONS + 1):
            async with session.get(url, **more) as answer:
                if answer.status not in _LEADS:
                    return await self._taken(answer, begin, end, limit)
                url = self._led_to(answer.headers.get("Location", ""), url, fs)
        raise ReadFailed(f"server leads to more than {REDIRECTIONS} other places", path=self.url)

    def _led_to(self, location: str, url: Any, fs: Any) -> Any:
        """The address to which a server leads; what proves who asks does not go to another one."""
        try:
            there = url.join(type(url)(location))
            other = there.origin() != url.origin()
        except ValueError:
            there, other = None, True
        schemes = ("https",) if url.scheme == "https" else ("http", "https")
        if there is None or there.scheme not in schemes:
            raise ReadFailed(
                "server leads to where this does not follow", path=self.url,
                expected=" or ".join(f"{scheme}://" for scheme in schemes), got=location[:200],
            )  # fmt: skip
        if other and _SECRET & {*fs.kwargs, *fs.client_kwargs}:
            raise ReadFailed(
                "server leads to another host, and headers from the environment would go along",
                path=self.url,
                got=f"{there.scheme}://{there.host}",
                remedy="give the address that it leads to, without FSSPEC_HTTP_...",
            )
        if other or there.user is not None:
            return there
        return there.with_user(url.user).with_password(url.password)

    async def _taken(
        self, answer: Any, begin: int, end: int, limit: asyncio.Timeout
    ) -> bytes | bytearray:
        if answer.status == 416 and answer.headers.get("Content-Range", "") == "bytes */0":
            found = self._of_headers(answer.headers, 0)
            if self.facts != Facts(0, "", 0) and found != self.facts:
                raise self._changed()
            self.facts = found
            return b""
        answer.raise_for_status()
        self._check_coding(answer.headers)
        if answer.status == 206:
            return await self._part(answer, begin, end)
        if answer.status != 200:
            raise ReadFailed(
                "server does not send it", path=self.url, got=f"status {answer.status}"
            )
        return await self._all(answer, begin, end, limit)

    async def _part(self, answer: Any, begin: int, end: int) -> bytearray:
        span = answer.headers.get("Content-Range")
        size = span.rpartition("/")[2] if span else ""
        if not size.isdecimal():
            raise ReadFailed("server does not tell how long the file is", path=self.url, got=span)
        found = self._of_headers(answer.headers, int(size))
        length = self._check(found, span, begin, end)
        if answer.headers.get("Content-Length") not in (None, str(length)):
            raise Cut(f"an answer of another length than {length} bytes")
        data = bytearray()
        while len(data) <= length and (more := await answer.content.read(length + 1 - len(data))):
            data += more
        if len(data) != length:
            raise Cut(f"{len(data)} of {length} bytes")
        self.facts = found
        return data

    async def _all(self, answer: Any, begin: int, end: int, limit: asyncio.Timeout) -> bytes:
        """Keep a copy of the whole file, from a server that gives no ranges."""
        if self.facts != Facts(0, "", 0):
            raise self._changed()
        said = answer.headers.get("Content-Length", "")
        if not said.isdecimal() and answer.headers.get("Transfer-Encoding") != "chunked":
            raise ReadFailed("server does not tell how long the file is", path=self.url)
        whole = int(said) if said.isdecimal() else None
        copy, room = _temporary(whole or 0, self.url)
        try:
            size = await self._fill(copy, room, whole, answer, limit)
        except BaseException:
            copy.close()
            raise
        self.whole = copy
        finalize(self, copy.close)
        self.facts = self._of_headers(answer.headers, size)
        return os.pread(copy.fileno(), end - begin, begin)

    async def _fill(
        self, copy: BinaryIO, room: int, whole: int | None, answer: Any, limit: asyncio.Timeout
    ) -> int:
        """Write an answer into a file; its size, which must be the `whole`, if that is known."""
        async for piece in answer.content.iter_chunked(_COPY_BYTES):
            copy.write(piece)
            if copy.tell() > room:
                raise _no_room(self.url, f"more than {room} bytes")
            limit.reschedule((limit.when() or 0.0) + len(piece) / SLOWEST)
        copy.flush()
        if whole not in (None, copy.tell()):
            raise Cut(f"{copy.tell()} of {whole} bytes")
        return copy.tell()

    def _check_coding(self, headers: Any) -> None:
        coding = ", ".join(headers.getall("Content-Encoding", ["identity"]))
        if coding not in ("", "identity"):
            raise ReadFailed(
                f"server sends it compressed ({coding}), which was not asked for", path=self.url
            )

    @staticmethod
    def _of_headers(headers: Mapping[str, str], size: int) -> Facts:
        from email.utils import parsedate_to_datetime

        try:
            time = nanoseconds(parsedate_to_datetime(headers.get("Last-Modified", "")))
        except (ValueError, OverflowError):
            time = 0
        return Facts(size, headers.get("ETag", ""), time)


def _temporary(nbytes: int, url: str) -> tuple[BinaryIO, int]:
    """A file without a name for so many bytes, and how many it may get; refused without room.

    0: nobody knows how many will come, and half of the room is for them.
    """
    from shutil import disk_usage
    from tempfile import TemporaryFile, gettempdir

    free = disk_usage(gettempdir()).free
    if nbytes > free:
        raise _no_room(url, f"{nbytes} bytes")
    return TemporaryFile(), nbytes or free // 2


def _no_room(url: str, needed: str) -> ReadFailed:
    from tempfile import gettempdir

    return ReadFailed(
        "server does not give ranges of the file, and not enough space for a temporary copy",
        path=url,
        where=gettempdir(),
        expected="a file that fits",
        got=needed,
        remedy="name a folder with more space in TMPDIR",
    )
