"""Members of an uncompressed tar archive: where they lie, and the headers of new ones.

Specification: POSIX.1-2017, pax interchange format; Python's tarfile reads the headers, GNU's and
the old ones included, of which each is bounded. Nothing is ever unpacked.
"""

from __future__ import annotations

import re

from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Source

MAGIC = b"ustar"
MAGIC_AT = 257
BLOCK = 512
CHUNK_BYTES = 1 << 18
FORGET = 1 << 10  # members that tarfile remembers before it is made to forget them
END = bytes(2 * BLOCK)


class Member(Record):
    """One member: `begin` is the offset of its headers, `end` that of those of the next one."""

    name: str
    kind: str  # "file", "folder", or what else it is, in words
    begin: int
    offset: int
    size: int
    end: int


KINDS = {
    b"0": "file", b"\0": "file", b"7": "file", b"5": "folder", b"1": "a hard link",
    b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe",
}  # fmt: skip


def members(source: Source) -> Iterator[Member]:
    """Yield the members of an archive in order, and check that it has an end.

    Raises `Corrupt` and `Unsupported`.
    """
    end = 0
    with source.open() as file:
        for number, member in enumerate(_members(file, source)):
            if number == source.limits.archive_members:
                raise Unsupported("has too many members", path=source.path)
            if member.size < 0 or member.end <= member.begin or member.end < end:
                raise Corrupt(
                    f"member '{member.name[:200]}' has a length below 0", path=source.path,
                    where=f"byte {member.begin}",
                )  # fmt: skip
            if member.kind == "file" and member.offset + member.size > source.size:
                raise Corrupt(
                    f"archive ends inside member '{member.name[:200]}'", path=source.path,
                    where=f"byte {member.offset}", expected=f"{member.size} bytes",
                    got=max(0, source.size - member.offset),
                )  # fmt: skip
            end = member.end
            yield member
    if source.read_at(end, BLOCK) != bytes(BLOCK):  # tarfile stops at a damaged header, too
        raise Corrupt(
            "archive is cut off or damaged",
            path=source.path,
            where=f"byte {end}",
            expected="another member, or the block of zeros that ends an archive",
        )


def _members(file: FileIO, source: Source) -> Iterator[Member]:
    """Yield the members of an open archive: by tarfile, those of usual headers by `_Headers`."""
    import tarfile

    headers = _Headers(source)
    try:
        with _open(file, source) as archive:
            while (info := archive.next()) is not None:
                if len(archive.members) >= FORGET:
                    archive.members.clear()
                if len(archive.pax_headers) > source.limits.header_blocks:
                    raise Unsupported("has too many global header fields", path=source.path)
                name = info.name.removeprefix("./")
                if len(name) > source.limits.name_bytes:
                    raise Unsupported("has a member with too long a name", path=source.path)
                if info.issparse():
                    raise Unsupported(f"member '{name}' is sparse", path=source.path)
                kind = KINDS.get(info.type, "file" if info.isreg() else "of an unknown kind")
                yield Member(name, kind, info.offset, info.offset_data, info.size, archive.offset)
                if archive.pax_headers:  # fields of all members that follow
                    continue
                for member in headers.usual_from(archive.offset):
                    yield member
                    archive.offset = member.end
    except (
        tarfile.TarError,
        OSError,
        ValueError,
        OverflowError,
        EOFError,
        RecursionError,
    ) as error:
        if isinstance(error, RaconvertError):
            raise
        raise Corrupt(f"is not a readable tar archive ({error})", path=source.path) from error


_SIZE_AT, _SUM_AT, _KIND_AT, _LINK_AT, _USER_AT, _PREFIX_AT = 124, 148, 156, 157, 265, 345
_OCTAL = re.compile(rb"[0-7]{11}[\0 ]")
_SUM = re.compile(rb"[0-7]{6}\0 |[0-7]{7}[\0 ]")
_MAGICS = (b"ustar\x0000", b"ustar  \0")
_NEAR = 1 << 14  # members shorter than this are read together with the headers between them


class _Headers:
    """Reader of headers of the usual form, one block each, in a tenth of the time of tarfile."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._begin = 0
        self._data = b""

    def usual_from(self, offset: int) -> Iterator[Member]:
        """Yield members from `offset` on, up to the first without a usual header."""
        size = 0
        while True:
            block = self._block(offset, CHUNK_BYTES >> 2 if size < _NEAR else BLOCK)
            usual = (
                block[_KIND_AT:_LINK_AT] == b"0"
                and block[MAGIC_AT:_USER_AT] in _MAGICS
                and not block[_PREFIX_AT]
                and _OCTAL.fullmatch(block, _SIZE_AT, _SIZE_AT + 12)
                and _SUM.fullmatch(block, _SUM_AT, _KIND_AT)
            )
            if not usual:
                return
            total = sum(block[:_SUM_AT]) + 8 * ord(" ") + sum(block[_KIND_AT:])
            if total != int(block[_SUM_AT:_KIND_AT].rstrip(b"\0 "), 8):
                return
            size = int(block[_SIZE_AT : _SIZE_AT + 11], 8)
            name = block[:100].partition(b"\0")[0].decode("utf-8", "surrogateescape")
            end = offset + BLOCK + size + -size % BLOCK
            yield Member(name.removeprefix("./"), "file", offset, offset + BLOCK, size, end)
            offset = end

    def _block(self, offset: int, nbytes: int) -> bytes:
        """Return the block at an offset; unless it is in memory, `nbytes` bytes are read there."""
        start = offset - self._begin
        if not 0 <= start <= len(self._data) - BLOCK:
            self._begin, self._data, start = offset, self._source.read_at(offset, nbytes), 0
        return self._data[start : start + BLOCK].ljust(BLOCK, b"\0")


def _open(file: FileIO, source: Source) -> Any:
    """Open an archive with tarfile, whose reads are bounded."""
    import tarfile

    bounded: Any = _Bounded(file, source)
    return tarfile.open(fileobj=bounded, mode="r:")


class _Bounded:
    """A file for tarfile that refuses to read too much at once."""

    mode = "rb"

    def __init__(self, file: FileIO, source: Source) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self.name = source.path
        self._file = file
        self._path, self._limits = source.path, source.limits

    def read(self, nbytes: int = -1) -> bytes:
        """Read `nbytes` bytes; raises `Unsupported` for more than a header may have."""
        if not 0 <= nbytes <= self._limits.record_bytes:
            raise Unsupported("has a header that is too long to be read safely", path=self._path)
        data = self._file.read(nbytes) or b""
        digits = max(map(len, re.split(rb"[^0-9]+", data))) if nbytes > BLOCK else 0
        if digits > self._limits.header_digits:
            raise Corrupt("has a header field that is not a number", path=self._path)
        return data


def size_in(header: bytes) -> int | None:
    """Return the length of a member by its header; None for a block that is not one, as the end."""
    try:
        size = int(header[124:136].rstrip(b" \0"), 8) if len(header) == BLOCK else -1
    except ValueError:
        return None
    return size if size >= 0 else None


def name_in(header: bytes) -> str:
    """Return the name of a member by its header alone; longer ones are cut."""
    above = header[345:500] if header[257:263] == MAGIC + b"\0" else b""
    parts = (part.partition(b"\0")[0].decode("utf-8", "replace") for part in (above, header[:100]))
    return "/".join(filter(None, parts)).removeprefix("./")


def trailing_bytes(source: Source, offset: int) -> int:
    """Return the number of bytes after the end of an archive; 0 if all are zeros that fill it up.

    More than `Limits.searched_bytes` are counted whatever they are: no program fills up so much.
    """
    count = max(0, source.size - offset)
    if count > source.limits.searched_bytes:
        return count
    while offset < source.size:
        piece = source.read_at(offset, CHUNK_BYTES)
        if piece.strip(b"\0"):
            return count
        offset += len(piece) or CHUNK_BYTES
    return 0


_BEFORE_SIZE = b"0000644\0" + b"0000000\0" * 2
_BEHIND_SUM = (b"0" + bytes(100) + _MAGICS[0]).ljust(BLOCK - _KIND_AT, b"\0")
_DATE = b"00000000000\0"
_FIXED_SUM = sum(_BEFORE_SIZE) + sum(_DATE) + 8 * ord(" ") + sum(_BEHIND_SUM)


def header_of(name: str, size: int) -> bytes:
    """Return the headers of a regular file of `size` bytes: no owner, no date, readable by all."""
    if len(name) <= 100 and size < 8**11 and name.isascii():  # what tarfile makes, in less time
        name_field, size_field = name.encode().ljust(100, b"\0"), b"%011o\0" % size
        checksum = b"%06o\0 " % (_FIXED_SUM + sum(name_field) + sum(size_field))
        return name_field + _BEFORE_SIZE + size_field + _DATE + checksum + _BEHIND_SUM
    import tarfile

    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)
