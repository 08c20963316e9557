"""What is at a URL, by ranges of its bytes: what every server has in common.

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

from raconvert.declared import Record
from raconvert.errors import Changed, ReadFailed
from raconvert.files.remote.filesystem import attempted, filesystem, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    Identity = tuple[int, int, int, int]

BLOCK_BYTES = 16 << 10  # of the first request: every magic, and most headers; and of small reads
SECOND = 1_000_000_000  # nanoseconds
KEPT_BLOCKS = 128  # 2 MiB
PATIENCE = 60.0  # seconds until the bytes of an answer must come with SLOWEST
SLOWEST = 10_000  # bytes a second
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_NO_DEVICE = -1  # in the identity of what is not on a device of this machine


class Facts(Record):
    """What a server tells of a file."""

    size: int
    version: str  # an ETag, or whatever differs when the file does; may be empty
    time: int  # of the last change, in nanoseconds; 0 if nobody knows

    @property
    def mark(self) -> int:
        """The time of change in whole seconds, as nanoseconds, and below them a digest of version.

        Stores tell whole seconds, in which a file may be replaced by one of the same size. The
        digest is never 0: a number of whole seconds says nothing of a version.
        """
        digest = blake2b(self.version.encode(), digest_size=7).digest()
        return self.time // SECOND * SECOND + (int.from_bytes(digest) % SECOND or 1)


class Cut(ConnectionError):
    """An answer ended early."""


class Object:
    """A file at a URL, by way of any fsspec file system: its version is compared afterwards."""

    def __init__(self, url: str) -> None:
        self.url: str = url
        self.first: bytes = b""  # of the file
        self.facts: Facts = Facts(0, "", 0)
        self.whole: BinaryIO | None = None  # a copy of all of it
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    @property
    def identity(self) -> Identity:
        """What the file is, in the form of that of a local one."""
        digest = blake2b(f"{self.url}\n{self.facts.version}".encode(), digest_size=7).digest()
        return _NO_DEVICE, int.from_bytes(digest), self.facts.size, self.facts.time

    def look(self) -> None:
        """Ask for the first bytes and the facts."""
        self.facts = attempted(self._ask, self.url)
        self.first = self.fetch(0, min(BLOCK_BYTES, self.facts.size)) if self.facts.size else b""

    def fetch(self, begin: int, end: int) -> bytes:
        """The bytes of a range that lies inside the file; errors of ours if they are not to be had.

        `Changed` if the file is not the one any more of which `facts` tell.
        """
        if self.whole is not None:
            return os.pread(self.whole.fileno(), end - begin, begin)
        return attempted(lambda: self._range(begin, end), self.url)

    def near(self, place: int) -> memoryview:
        """The bytes from a place inside the file to the end of their block, which is kept."""
        number = place // BLOCK_BYTES
        begin = number * BLOCK_BYTES
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                block = self.fetch(begin, min(begin + BLOCK_BYTES, self.facts.size))
                self._blocks[number] = block
                if len(self._blocks) > KEPT_BLOCKS:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(number)
        return memoryview(block)[place - begin :]

    def _range(self, begin: int, end: int) -> bytes:
        data = bytes(filesystem(self.url).cat_file(key_of(self.url), start=begin, end=end))
        if self._ask() != self.facts:
            raise self._changed()
        if len(data) != end - begin:
            raise Cut(f"{len(data)} of {end - begin} bytes")
        return data

    def _ask(self) -> Facts:
        found = filesystem(self.url), key_of(self.url)
        info = found[0].info(found[1])
        if info["type"] != "file":
            raise ReadFailed("is a folder, not a file", path=self.url)
        words = ("etag", "ETag", "generation", "md5Hash", "content_settings", "created")
        version = "|".join(str(info[word]) for word in words if info.get(word))
        time = nanoseconds(info.get("mtime") or info.get("last_modified") or info.get("created"))
        return Facts(int(info["size"]), version, time)

    def _changed(self) -> Changed:
        return Changed(
            "file changed while it was read",
            path=self.url,
            remedy="try again when nothing writes to it",
        )

    def _check(self, found: Facts, span: str | None, begin: int, end: int) -> int:
        """The number of bytes that an answer must have; it must be of our range and version."""
        said = _RANGE.fullmatch(span or "")
        if said is None:
            raise ReadFailed("server answers with another range", path=self.url, got=span)
        if self.facts != Facts(0, "", 0) and found != self.facts:
            raise self._changed()
        low, high, size = map(int, said.groups())
        if (low, high) != (begin, min(end, size) - 1):
            raise ReadFailed(
                "server answers with another range",
                path=self.url,
                expected=f"bytes {begin}-{end - 1}",
                got=span,
            )
        return high + 1 - low


class Asked(Object):
    """A file of which ranges are asked for in the event loop of its file system."""

    def _range(self, begin: int, end: int) -> bytes:
        fs = filesystem(self.url)  # which says what is not installed
        from fsspec.asyn import sync

        return bytes(sync(fs.loop, self._in_time, fs, begin, end))

    async def _in_time(self, fs: Any, begin: int, end: int) -> bytes | bytearray:
        """What `_got` does; `ReadFailed` if the server takes longer than so many bytes may."""
        try:
            async with asyncio.timeout(PATIENCE + (end - begin) / SLOWEST) as limit:
                return await self._got(fs, begin, end, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ReadFailed(
                "server sends it too slowly, and was given up",
                path=self.url,
                expected=f"{SLOWEST} bytes a second, after {PATIENCE:.0f} seconds",
                remedy="try again later",
            ) from None

    async def _got(
        self, fs: Any, begin: int, end: int, limit: asyncio.Timeout
    ) -> bytes | bytearray:
        raise NotImplementedError


def listed(info: dict[str, Any]) -> Facts:
    """What fsspec tells of a file, and S3 of an object; its version is an ETag, else the time."""
    time = info.get("LastModified") or info.get("mtime") or info.get("last_modified")
    time = time or info.get("created")
    version = info.get("ETag") or info.get("etag") or info.get("generation") or time or ""
    return Facts(int(info["size"]), str(version), nanoseconds(time))


def nanoseconds(time: Any) -> int:
    """A time that a library tells in any of its ways, in nanoseconds; 0 if it is none."""
    if hasattr(time, "timestamp"):
        return int(time.timestamp() * 1_000_000) * 1000
    return int(time * 1e9) if isinstance(time, int | float) else 0
