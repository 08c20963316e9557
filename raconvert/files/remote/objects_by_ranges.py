"""Objects at URLs, read by ranges of bytes: the part that all servers have in common.

The first request asks for the first bytes; its answer tells the size and the version (ETag, else
time of change), and every further answer must be of that version. An answer that is not exactly the
range that was asked for is refused, and what comes too slowly is given up.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from hashlib import blake2b
from threading import Lock
from weakref import WeakValueDictionary, finalize

from raconvert.declared import Record
from raconvert.errors import ReadFailed, changed
from raconvert.files.remote import SCHEMES, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    Identity = tuple[int, int, int, int]


BLOCK_BYTES = 16 << 10  # bytes of the first request (every magic, most headers) and of small reads
SECOND = 1_000_000_000  # nanoseconds
KEPT_BLOCKS = 128  # cached blocks of BLOCK_BYTES: 2 MiB per file
PATIENCE = 60.0  # seconds of grace before an answer must reach SLOWEST
SLOWEST = 10_000  # bytes a second
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_NO_DEVICE = -1  # the device in the identity of a file at a URL


class Facts(Record):
    """Facts that a server gives about a file."""

    size: int
    version: str  # an ETag, or whatever differs when the file does; may be empty
    time: int  # time of the last change, in nanoseconds; 0 if unknown

    @property
    def mark(self) -> int:
        """The nanoseconds of the last change, in whole seconds, plus a digest of the version.

        Stores tell whole seconds, in which a file may be replaced by one of the same size. The
        digest is below a second and never 0, so that a mark differs from a time without a version.
        """
        digest = blake2b(self.version.encode(), digest_size=7).digest()
        return self.time // SECOND * SECOND + (int.from_bytes(digest) % SECOND or 1)


class Cut(ConnectionError):
    """An answer ended early."""


class Object:
    """A file at a URL, by way of any fsspec file system: its version is compared afterwards."""

    def __init__(self, url: str) -> None:
        self.url: str = url
        self.first: bytes = b""  # the first bytes of the file
        self.facts: Facts = Facts(0, "", 0)
        self.whole: BinaryIO | None = None  # a copy of all of it
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    @property
    def identity(self) -> Identity:
        """The identity of the file, in the form of that of a local one."""
        digest = blake2b(f"{self.url}\n{self.facts.version}".encode(), digest_size=7).digest()
        return _NO_DEVICE, int.from_bytes(digest), self.facts.size, self.facts.time

    def look(self) -> None:
        """Ask the server for the first bytes and the facts. Raises `ReadFailed`."""
        self.facts = attempted(self._ask, self.url)
        self.first = self.fetch(0, min(BLOCK_BYTES, self.facts.size)) if self.facts.size else b""

    def fetch(self, begin: int, end: int) -> bytes:
        """Return the bytes of a range that lies inside the file.

        Raises `ReadFailed`, or `Changed` if the file has other `facts` now.
        """
        if self.whole is not None:
            return os.pread(self.whole.fileno(), end - begin, begin)
        return attempted(lambda: self._range(begin, end), self.url)

    def near(self, offset: int) -> memoryview:
        """Return the bytes from an offset in the file to the end of its block, which is cached."""
        number = offset // BLOCK_BYTES
        begin = number * BLOCK_BYTES
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                block = self.fetch(begin, min(begin + BLOCK_BYTES, self.facts.size))
                self._blocks[number] = block
                if len(self._blocks) > KEPT_BLOCKS:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(number)
        return memoryview(block)[offset - begin :]

    def _range(self, begin: int, end: int) -> bytes:
        """Request a range once; raises any error of the library."""
        data = bytes(filesystem(self.url).cat_file(key_of(self.url), start=begin, end=end))
        if self._ask() != self.facts:
            raise changed(self.url)
        if len(data) != end - begin:
            raise Cut(f"{len(data)} of {end - begin} bytes")
        return data

    def _ask(self) -> Facts:
        """Request the facts; raises any error of the library."""
        info = filesystem(self.url).info(key_of(self.url))
        if info["type"] != "file":
            folder = IsADirectoryError(self.url)
            raise ReadFailed("is a folder, not a file", path=self.url) from folder
        words = ("etag", "ETag", "generation", "md5Hash", "content_settings", "created")
        version = "|".join(str(info[word]) for word in words if info.get(word))
        time = nanoseconds(info.get("mtime") or info.get("last_modified") or info.get("created"))
        return Facts(int(info["size"]), version, time)

    def _check(self, facts: Facts, span: str | None, begin: int, end: int) -> int:
        """Return the number of bytes that an answer with these facts and this range must have.

        Raises `ReadFailed` for another range than was asked for, `Changed` for another version.
        """
        match = _RANGE.fullmatch(span or "")
        if match is None:
            raise ReadFailed("server answers with another range", path=self.url, got=span)
        if self.facts != Facts(0, "", 0) and facts != self.facts:
            raise changed(self.url)
        low, high, size = map(int, match.groups())
        if (low, high) != (begin, min(end, size) - 1):
            raise ReadFailed(
                "server answers with another range",
                path=self.url,
                expected=f"bytes {begin}-{end - 1}",
                got=span,
            )
        return high + 1 - low


class Asked(Object):
    """A file whose ranges are requested in the event loop of its file system."""

    def _range(self, begin: int, end: int) -> bytes:
        fs = filesystem(self.url)  # raises for a package that is not installed
        from fsspec.asyn import sync

        return bytes(sync(fs.loop, self._in_time, fs, begin, end))

    async def _in_time(self, fs: Any, begin: int, end: int) -> bytes | bytearray:
        """Request a range; raises `ReadFailed` if the server is slower than the limit."""
        try:
            async with asyncio.timeout(PATIENCE + (end - begin) / SLOWEST) as limit:
                return await self._requested(fs, begin, end, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ReadFailed(
                "server sends it too slowly, and was given up",
                path=self.url,
                expected=f"{SLOWEST} bytes a second, after {PATIENCE:.0f} seconds",
                remedy="try again later",
            ) from None

    async def _requested(
        self, fs: Any, begin: int, end: int, limit: asyncio.Timeout
    ) -> bytes | bytearray:
        """Return the bytes of a range; a subclass speaks the protocol."""
        raise NotImplementedError


def listed(info: dict[str, Any]) -> Facts:
    """Return the facts in a listing of fsspec or S3; the version is the ETag, else the time."""
    time = info.get("LastModified") or info.get("mtime") or info.get("last_modified")
    time = time or info.get("created")
    version = info.get("ETag") or info.get("etag") or info.get("generation") or time or ""
    return Facts(int(info["size"]), str(version), nanoseconds(time))


def nanoseconds(time: Any) -> int:
    """Return a time in nanoseconds, from a `datetime` or seconds; 0 for anything else."""
    if hasattr(time, "timestamp"):
        return int(time.timestamp() * 1_000_000) * 1000
    return int(time * 1e9) if isinstance(time, int | float) else 0


# A file of a web server: ranges where it gives them, else a temporary copy of the whole ----------


REDIRECTIONS = 10
_LEADS = frozenset((301, 302, 303, 307, 308))
_SECRET = frozenset(("headers", "auth", "cookies"))  # options that may hold credentials
_COPY_BYTES = 1 << 18


class WebObject(Asked):
    """A file of a web server."""

    first: bytes
    facts: Facts
    whole: BinaryIO | None

    def look(self) -> None:
        """Request the first bytes; the facts come with them. Raises `ReadFailed`."""
        self.first = attempted(lambda: self._range(0, BLOCK_BYTES), self.url)

    async def _requested(
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
                    return await self._read_answer(answer, begin, end, limit)
                url = self._led_to(answer.headers.get("Location", ""), url, fs)
        raise ReadFailed(f"server leads to more than {REDIRECTIONS} other places", path=self.url)

    def _led_to(self, location: str, url: Any, fs: Any) -> Any:
        """Return the address to which a server redirects; credentials do not go to another host.

        Raises `ReadFailed` for an address that is not followed.
        """
        try:
            target = url.join(type(url)(location))
            other_host = target.origin() != url.origin()
        except ValueError:
            target, other_host = None, True
        schemes = ("https",) if url.scheme == "https" else ("http", "https")
        if target is None or target.scheme not in schemes:
            raise ReadFailed(
                "server leads to where this does not follow", path=self.url,
                expected=" or ".join(f"{scheme}://" for scheme in schemes), got=location[:200],
            )  # fmt: skip
        if other_host and _SECRET & {*fs.kwargs, *fs.client_kwargs}:
            raise ReadFailed(
                "server leads to another host, and headers from the environment would go along",
                path=self.url,
                got=f"{target.scheme}://{target.host}",
                remedy="give the address that it leads to, without FSSPEC_HTTP_...",
            )
        if other_host or target.user is not None:
            return target
        return target.with_user(url.user).with_password(url.password)

    async def _read_answer(
        self, answer: Any, begin: int, end: int, limit: asyncio.Timeout
    ) -> bytes | bytearray:
        """Return the bytes of a range out of an answer, whatever form it has."""
        if answer.status == 416 and answer.headers.get("Content-Range", "") == "bytes */0":
            facts = self._facts_in(answer.headers, 0)
            if self.facts != Facts(0, "", 0) and facts != self.facts:
                raise changed(self.url)
            self.facts = facts
            return b""
        answer.raise_for_status()
        self._check_coding(answer.headers)
        if answer.status == 206:
            return await self._read_range(answer, begin, end)
        if answer.status != 200:
            raise ReadFailed(
                "server does not send it", path=self.url, got=f"status {answer.status}"
            )
        return await self._copy_whole(answer, begin, end, limit)

    async def _read_range(self, answer: Any, begin: int, end: int) -> bytearray:
        """Return the bytes of an answer that has just the range."""
        span = answer.headers.get("Content-Range")
        size = span.rpartition("/")[2] if span else ""
        if not size.isdecimal():
            raise ReadFailed("server does not tell how long the file is", path=self.url, got=span)
        facts = self._facts_in(answer.headers, int(size))
        length = self._check(facts, span, begin, end)
        if answer.headers.get("Content-Length") not in (None, str(length)):
            raise Cut(f"an answer of another length than {length} bytes")
        data = bytearray()
        while len(data) <= length and (more := await answer.content.read(length + 1 - len(data))):
            data += more
        if len(data) != length:
            raise Cut(f"{len(data)} of {length} bytes")
        self.facts = facts
        return data

    async def _copy_whole(self, answer: Any, begin: int, end: int, limit: asyncio.Timeout) -> bytes:
        """Copy an answer with the whole file to a temporary file; return the bytes of a range."""
        if self.facts != Facts(0, "", 0):
            raise changed(self.url)
        length = answer.headers.get("Content-Length", "")
        if not length.isdecimal() and answer.headers.get("Transfer-Encoding") != "chunked":
            raise ReadFailed("server does not tell how long the file is", path=self.url)
        whole = int(length) if length.isdecimal() else None
        copy, room = _temporary(whole or 0, self.url)
        try:
            size = await self._fill(copy, room, whole, answer, limit)
        except BaseException:
            copy.close()
            raise
        self.whole = copy
        finalize(self, copy.close)
        self.facts = self._facts_in(answer.headers, size)
        return os.pread(copy.fileno(), end - begin, begin)

    async def _fill(
        self, copy: BinaryIO, room: int, whole: int | None, answer: Any, limit: asyncio.Timeout
    ) -> int:
        """Write an answer into the file `copy`; return its size.

        Raises `ReadFailed` for more than `room` bytes, `Cut` if the size is not `whole`.
        """
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
        """Raise `ReadFailed` for an answer that is compressed."""
        coding = ", ".join(headers.getall("Content-Encoding", ["identity"]))
        if coding not in ("", "identity"):
            raise ReadFailed(
                f"server sends it compressed ({coding}), which was not asked for", path=self.url
            )

    @staticmethod
    def _facts_in(headers: Mapping[str, str], size: int) -> Facts:
        """Return the facts in the headers of an answer."""
        from email.utils import parsedate_to_datetime

        try:
            time = nanoseconds(parsedate_to_datetime(headers.get("Last-Modified", "")))
        except (ValueError, OverflowError):
            time = 0
        return Facts(size, headers.get("ETag", ""), time)


def _temporary(nbytes: int, url: str) -> tuple[BinaryIO, int]:
    """Return a nameless temporary file for `nbytes` bytes, and the number of bytes it may get.

    If `nbytes` is 0, unknown, that is half of the free space. Raises `ReadFailed` without room.
    """
    from shutil import disk_usage
    from tempfile import TemporaryFile, gettempdir

    free = disk_usage(gettempdir()).free
    if nbytes > free:
        raise _no_room(url, f"{nbytes} bytes")
    return TemporaryFile(), nbytes or free // 2


def _no_room(url: str, needed: str) -> ReadFailed:
    """Return the error for a temporary copy that does not fit."""
    from tempfile import gettempdir

    return ReadFailed(
        "server does not give ranges of the file, and not enough space for a temporary copy",
        path=url,
        where=gettempdir(),
        expected="a file that fits",
        got=needed,
        remedy="name a folder with more space in TMPDIR",
    )


# Objects by their URL and identity, and those of stores that speak S3 ---------------------------
# S3 is asked for one version only (``If-Match``); answers of other servers are compared.


class _S3Object(Asked):
    """A file in a store that speaks S3."""

    def look(self) -> None:
        self.first = attempted(self._beginning, self.url)

    def _beginning(self) -> bytes:
        """Request the first bytes once; the facts come with them."""
        try:
            return self._range(0, BLOCK_BYTES)
        except OSError as error:
            if status_of(error) != 416:
                raise
        self.facts = self._ask()  # a range of an empty file cannot be requested
        if self.facts.size:
            raise changed(self.url)
        return b""

    async def _requested(self, fs: Any, begin: int, end: int, _limit: asyncio.Timeout) -> bytes:
        bucket, _, name = key_of(self.url).partition("/")
        only = {"IfMatch": self.facts.version} if self.facts.version else {}
        answer = await fs._call_s3(
            "get_object", Bucket=bucket, Key=name, Range=f"bytes={begin}-{end - 1}", **only
        )
        body = answer["Body"]
        try:
            span = answer.get("ContentRange")
            size = int(span.rpartition("/")[2]) if span else -1
            facts = Facts(size, answer.get("ETag", ""), nanoseconds(answer.get("LastModified")))
            length = self._check(facts, span, begin, end)
            if answer.get("ContentLength") != length:
                raise Cut(f"an answer of {answer.get('ContentLength')} bytes, not {length}")
            data = bytes(await body.read())
        finally:
            body.close()
        if len(data) != length:
            raise Cut(f"{len(data)} of {length} bytes")
        self.facts = facts
        return data

    def _ask(self) -> Facts:
        bucket, _, name = key_of(self.url).partition("/")
        answer = filesystem(self.url).call_s3("head_object", Bucket=bucket, Key=name)
        return Facts(
            answer["ContentLength"], answer.get("ETag", ""), nanoseconds(answer.get("LastModified"))
        )


_CLASSES: dict[str, type[Object]] = {"s3": _S3Object, "http": WebObject}
_seen: WeakValueDictionary[tuple[str, Identity], Object] = WeakValueDictionary()


def notes_of(url: str, known: Identity) -> list[str]:
    """Return the notes about how a file is read; none if it is read by ranges."""
    cached = _seen.get((url, known))
    if cached is None or cached.whole is None:
        return []
    return [
        f"the server gives no ranges: all {cached.facts.size} bytes were copied to a temporary file"
    ]


def object_at(url: str, known: Identity | None = None) -> Object:
    """Open the object at a URL with a new request; with `known`, reuse the one of that identity.

    Raises `Changed` if the object has another identity, `ReadFailed` if it cannot be read.
    """
    if known is not None:
        cached = _seen.get((url, known))
        if cached is not None:
            return cached
    remote_object = _CLASSES.get(SCHEMES[scheme_of(url)][0], Object)(url)
    remote_object.look()
    if known is not None and remote_object.identity != known:
        raise changed(url)
    _seen.setdefault((url, remote_object.identity), remote_object)
    return remote_object
