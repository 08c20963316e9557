"""ZIP archives: members listed with every check, decoded in bounded memory, written in place.

Specification: PKWARE APPNOTE 6.3. The Python library reads the central directory; what it takes
for granted is checked here: local headers agree with the directory, members do not overlap, no
declared size is beyond what its bytes can hold, data has the CRC-32 that the archive promises.
Stored members are written so that their data begins where it can be mapped in place.
"""

from __future__ import annotations

from contextlib import nullcontext
from struct import Struct
from struct import error as struct_error
from zlib import DEFLATED, MAX_WBITS, compressobj, crc32

from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsupported, counted
from raconvert.files.copy import write_all
from raconvert.files.inflate import DECODERS, MAX_RATIO, ZIP_BZIP2, ZIP_LZMA, ZIP_STORED
from raconvert.files.names import check_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from io import FileIO
    from typing import Any
    from zipfile import ZipFile, ZipInfo

    from raconvert.files.limits import Limits
    from raconvert.files.source import Source


LOCAL_MAGIC = b"PK\x03\x04"
EMPTY_MAGIC = b"PK\x05\x06"  # the end record of an archive without members
SHOWN = 200  # characters of a name in a message
# How the name of the first member ends in kinds of archives that are known by it: bundles, NumPy's
# files, PyTorch's, documents of Office. An archive with another first name may be any of them.
FIRST_NAMES = (
    b"bundle.yaml", b".npy", b"/data.pkl", b"/constants.pkl", b"[Content_Types].xml",
    b"_rels/.rels",
)  # fmt: skip
END_BYTES = 22  # bytes of the end record without its comment
END64_BYTES = 56 + 20  # bytes of the ZIP64 end record and its locator, which precede it
END64_MAGIC = b"PK\x06\x06"
MAX_NAME_BYTES = 0xFFFF

# PKWARE APPNOTE 4.3.7, local file header
# (the name and the extra field follow it)
#   0   4s  signature     PK\x03\x04
#   4   H   version       needed to extract
#   6   H   flags         bit 0: encrypted; bit 3: CRC and sizes follow the data; bit 11: UTF-8
#   8   H   method        0 stored, 8 deflated
#   10  H   time
#   12  H   date
#   14  I   crc           of the decoded bytes
#   18  I   compressed    bytes in the archive; 0xFFFFFFFF: in the ZIP64 extra field
#   22  I   size          decoded bytes; likewise
#   26  H   name_bytes
#   28  H   extra_bytes


class Local(Record):
    """A local file header."""

    signature: bytes
    version: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    compressed: int
    size: int
    name_bytes: int
    extra_bytes: int


LOCAL = Struct("<4s5H3I2H")
_LATER, UTF8 = 0x0008, 0x0800  # general purpose flags: sizes follow the data; the name is UTF-8
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000  # traditional, strong, masked headers
ZIP64 = 0xFFFFFFFF

_OTHER_METHODS = {9: "Deflate64", 93: "Zstandard", 95: "XZ"}

ALIGN = 64  # data begins at a multiple of it in the file
PADDING = Struct("<3H")  # zipalign's extra field: ID 0xD935, length, alignment; then zeros
PADDING_ID = 0xD935
ZIP64_EXTRA_BYTES = 20  # what zipfile adds to the local header of every large-file member


class Member(Record):
    """One member, by the central directory: `compressed` bytes at `offset` become `size` bytes."""

    filename: str
    method: int
    crc: int
    compressed: int
    size: int
    begin: int  # offset of its local header
    offset: int
    comment: bytes = b""  # the comment in its directory entry


def name_of_member(member: Member) -> str:
    """Return the name of a member in its archive. Raises nothing."""
    return member.filename


def members(source: Source, name_of: Callable[[Member], str] = name_of_member) -> list[Member]:
    """Return the members of an archive, in the order of its directory, after all checks.

    Nothing is inflated; only the directory and the local headers are read. `name_of` gives the name
    that must not occur twice.
    """
    with source.open() as file:
        infos, directory = _directory(source, file)
        listed = [_member(source, file, info) for info in infos]
    names: dict[str, str] = {}
    for member in listed:
        name = name_of(member)
        if name in names:
            raise Corrupt(
                f"two members have the name {_shown(name)}: {_shown(names[name])} and "
                f"{_shown(member.filename)}",
                path=source.path,
                remedy="readers differ in which one they take; rename one of them",
            )
        names[name] = member.filename
    end, before = 0, "the start of the file"
    for member in sorted(listed, key=lambda m: m.begin):
        if member.begin < end:
            _refuse_overlap(source, f"{before} and member {_shown(member.filename)}", member.begin)
        end, before = member.offset + member.compressed, f"member {_shown(member.filename)}"
    if end > directory:
        _refuse_overlap(source, f"{before} and the central directory", directory)
    return listed


def _shown(value: object) -> str:
    """Return a name or number as messages show it; of a long one, the first characters."""
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def _refuse_overlap(source: Source, what: str, offset: int) -> None:
    """Raise `Corrupt` for two parts of an archive (`what`) that overlap at an offset."""
    raise Corrupt(f"{what} overlap", path=source.path, where=f"byte {offset}")


def _directory(source: Source, file: FileIO) -> tuple[list[ZipInfo], int]:
    """Return the entries of the central directory, and its offset."""
    import zipfile

    try:
        with zipfile.ZipFile(_Bounded(file, source)) as archive:
            _check_count(source, archive)
            return archive.infolist(), archive.start_dir
    except RaconvertError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct_error) as error:
        raise Corrupt(f"has no readable ZIP directory ({error})", path=source.path) from error
    except (OSError, ArithmeticError, LookupError, EOFError) as error:
        raise Corrupt(f"has a damaged ZIP directory ({error})", path=source.path) from error


def directory_start(source: Source, file: FileIO) -> int:
    """Return the offset of the central directory. Raises what `members` raises."""
    return _directory(source, file)[1]


def trailing_bytes(source: Source) -> int:
    """Return the number of bytes behind the end record of an archive and its comment."""
    offset, raw = end_record(source)
    comment_bytes = int.from_bytes(raw[END_BYTES - 2 : END_BYTES], "little")
    return source.size - offset - END_BYTES - comment_bytes


def end_record(source: Source) -> tuple[int, bytes]:
    """Find the end record as Python's library does; return its offset, and the bytes from there.

    A record without a comment is the end of the file, even if a field of it looks like its magic.
    """
    begin = max(0, source.size - END_BYTES - MAX_NAME_BYTES)  # a comment is no longer than a name
    tail = source.read_at(begin, source.size - begin)
    offset = len(tail) - END_BYTES
    if not (tail.startswith(EMPTY_MAGIC, offset) and tail.endswith(b"\0\0")):
        offset = tail.rfind(EMPTY_MAGIC)
    return begin + offset, tail[offset:]


def _check_count(source: Source, archive: ZipFile) -> None:
    """Raise `Corrupt` if the directory does not list as many members as the end record says.

    A damaged length in one entry swallows the entries that follow, which Python's library does not
    notice.
    """
    end, raw = end_record(source)
    count, limit = int.from_bytes(raw[10:12], "little"), 1 << 16
    raw = source.read_at(max(0, end - END64_BYTES), END64_BYTES)
    if count == limit - 1 and raw.startswith(END64_MAGIC):
        count, limit = int.from_bytes(raw[32:40], "little"), 1 << 64
    number = len(archive.infolist())
    if number % limit != count:  # some writers count on from 0 after 65535
        raise Corrupt(
            "ZIP directory is damaged",
            path=source.path,
            where=f"byte {archive.start_dir}",
            expected=f"{counted(count, 'member')}, as the end record says",
            got=number,
        )


class _Bounded:
    """A file for zipfile to read the directory from; it refuses to read too much at once."""

    def __init__(self, file: FileIO, source: Source) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self._file = file
        self._source = source

    def read(self, nbytes: int = -1) -> bytes:
        """Read up to `nbytes` bytes; raises `Unsupported` for more than a directory may have."""
        left = max(0, self._source.size - self.tell())
        nbytes = left if nbytes < 0 else min(nbytes, left)
        if nbytes > (most := self._source.limits.directory_bytes):
            raise Unsupported(
                "central directory of the archive is too long to be read safely",
                path=self._source.path,
                expected=f"at most {most} bytes",
                got=nbytes,
            )
        return self._file.read(nbytes) or b""


def _member(source: Source, file: FileIO, info: ZipInfo) -> Member:
    """Return one member, after checking that it can be decoded as the directory declares it."""
    try:
        _check_method(source, info)
        _check_sizes(source, info)
        offset = _data_offset(source, file, info)
    except RaconvertError as error:
        error.where = f"member {_shown(info.filename)}, byte {info.header_offset}"
        raise
    return Member(
        info.filename,
        info.compress_type,
        info.CRC,
        info.compress_size,
        info.file_size,
        info.header_offset,
        offset,
        info.comment,
    )


def _check_method(source: Source, info: ZipInfo) -> None:
    """Raise `Unsupported` for a member that is encrypted, or of another compression method."""
    if info.flag_bits & _ENCRYPTED:
        raise Unsupported(
            "member is encrypted",
            path=source.path,
            remedy="no option allows this; extract it with its password and save it anew",
        )
    if info.compress_type not in DECODERS:
        method = _OTHER_METHODS.get(info.compress_type, "an unknown method")
        raise Unsupported(
            f"member is compressed by {method} (ZIP method {info.compress_type})",
            path=source.path,
            expected="stored, deflated, bzip2 or LZMA",
            remedy="pack it anew, stored or deflated",
        )


def _check_sizes(source: Source, info: ZipInfo) -> None:
    """Raise `Corrupt` for a decoded size that no decoder can give, before anything is decoded.

    bzip2 and LZMA are not checked here: a few bytes may become a million. They are counted when
    they are decoded.
    """
    if info.compress_type in (ZIP_BZIP2, ZIP_LZMA):
        return
    stored = info.compress_type == ZIP_STORED
    limit = info.compress_size * (1 if stored else MAX_RATIO)
    if info.file_size > limit or (stored and info.file_size != limit):
        raise Corrupt(
            "member declares a size that its bytes in the archive cannot have",
            path=source.path,
            expected=f"{'' if stored else 'at most '}{limit} bytes from {info.compress_size}",
            got=info.file_size,
        )


def _data_offset(source: Source, file: FileIO, info: ZipInfo) -> int:
    """Return the offset of a member's data, after comparing its local header with the directory.

    CRC and sizes are not compared if they follow the data (flag bit 3), nor sizes that stand in the
    extra field (ZIP64).
    """
    file.seek(max(0, info.header_offset))
    raw = file.read(LOCAL.size) or b""
    if info.header_offset < 0 or len(raw) < LOCAL.size or not raw.startswith(LOCAL_MAGIC):
        raise Corrupt("local header is missing", path=source.path, expected=LOCAL_MAGIC)
    local = Local(*LOCAL.unpack(raw))
    name = info.orig_filename.encode("utf-8" if info.flag_bits & UTF8 else "cp437")
    pairs: dict[str, tuple[object, object]] = {"name": (name, file.read(local.name_bytes))}
    pairs["compression"] = (info.compress_type, local.method)
    if not local.flags & _LATER:
        pairs["CRC-32"] = (info.CRC, local.crc)
        if ZIP64 not in (local.compressed, local.size):
            pairs["compressed size"] = (info.compress_size, local.compressed)
            pairs["size"] = (info.file_size, local.size)
    for what, (expected, got) in pairs.items():
        if got != expected:
            raise Corrupt(
                f"local header and central directory differ in the {what}",
                path=source.path,
                expected=_shown(expected),
                got=_shown(got),
            )
    offset: int = info.header_offset + LOCAL.size + local.name_bytes + local.extra_bytes
    return offset


class Decoded:
    """The decoded bytes of one member, front to back in bounded memory.

    Reading to the end raises `Corrupt` if size or CRC-32 are not those of the directory.
    """

    def __init__(self, source: Source, member: Member, file: FileIO | None = None) -> None:
        """Read from `file`, the open archive, whose position must not be moved, or open it."""
        self.path: str = source.path
        self.size: int = member.size
        self.limits: Limits = source.limits
        self._start = b""  # the bytes that `read_exact` has read
        self._pieces = _pieces(source, member, file)
        self._rest = memoryview(b"")

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return `nbytes` bytes from `offset`; all bytes up to them are kept in memory.

        Raises `Corrupt`, which names `what`, if the member ends before.
        """
        end = offset + nbytes
        if end > self.size:
            raise Corrupt(
                f"member ends inside {what}",
                path=self.path,
                where=f"byte {offset}",
                expected=f"{nbytes} bytes",
                got=max(0, self.size - offset),
            )
        missing = end - len(self._start)
        if missing > 0:
            if not self._rest:
                self._rest = memoryview(next(self._pieces))
            if missing <= len(self._rest):
                self._start += self._rest[:missing]
                self._rest = self._rest[missing:]
            else:
                more = bytearray(missing)
                self.read_into(memoryview(more))
                self._start += more
        return self._start[offset:end]

    def read_into(self, view: memoryview) -> None:
        """Fill the view with the bytes that come next; the caller checks that there are as many."""
        while view:
            if not self._rest:
                self._rest = memoryview(next(self._pieces))
            length = min(len(view), len(self._rest))
            view[:length] = self._rest[:length]
            view, self._rest = view[length:], self._rest[length:]

    def finish(self) -> None:
        """Decode the rest and discard it, so that size and CRC-32 are checked."""
        for _ in self._pieces:
            pass

    def close(self) -> None:
        """Close the archive, if it was opened for this."""
        self._pieces.close()


def _pieces(
    source: Source, member: Member, opened: FileIO | None = None
) -> Generator[bytes, None, None]:
    """Yield the decoded bytes of a member in pieces that are not empty; check size and CRC-32."""
    total = crc = 0
    with source.open() if opened is None else nullcontext(opened) as file:
        file.seek(member.offset)
        for piece in DECODERS[member.method](source, file, member):
            total += len(piece)
            crc = crc32(piece, crc)
            if total > member.size:
                break
            yield piece
    if total != member.size:
        raise Corrupt(
            "data does not have the size that the directory declares",
            path=source.path,
            expected=f"{member.size} bytes",
            got="more" if total > member.size else total,
        )
    if crc != member.crc:
        raise Corrupt(
            "data is damaged",
            path=source.path,
            expected=f"CRC-32 {member.crc:08x}",
            got=f"{crc:08x}",
        )


# ZIP archives that are written in place: stored members begin where they can be mapped -----------
# Specification: PKWARE APPNOTE 6.3. ZIP64 throughout, fixed dates; byte for byte what Python's
# zipfile writes for the same members, at a fraction of its time for each.


HELD_BYTES = 64 << 10  # members up to this size are written at once
_ZIP64_EXTRA = Struct("<2H2Q")  # ID 1, length, size, compressed
CENTRAL = Struct("<4s4B4H3I5H2I")  # APPNOTE 4.3.12
_END64 = Struct("<4sQ2H2I4Q")  # 4.3.14
_LOCATOR = Struct("<4sIQI")  # 4.3.15
_END = Struct("<4s4H2IH")  # 4.3.16
_CENTRAL_MAGIC, _LOCATOR_MAGIC = b"PK\x01\x02", b"PK\x06\x07"
_VERSION, _UNIX, _MODE, _DATE = 45, 3, 0o644 << 16, 1 << 5 | 1  # 1 January 1980
_LARGEST, _MOST = (1 << 31) - 1, 0xFFFF  # without ZIP64, as zipfile sees it


class Archive:
    """An archive that is written to a raw file, member by member; `finish` ends it.

    `directory` has the entry of each member so far.
    """

    __slots__ = ("_file", "_offset", "directory")

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._offset = file.tell()
        self.directory: list[bytes] = []

    def add(
        self,
        filename: str,
        pieces: Iterable[Any],
        method: int = ZIP_STORED,
        header_bytes: int = 0,
        comment: bytes = b"",
    ) -> int:
        """Write the pieces (buffers of bytes) as one member; return the offset of its data.

        In a stored member, the byte `header_bytes` behind the begin of the data is at a multiple of
        64 in the file. The directory lists the member with its `comment`. Raises `Unsafe` for a
        name that leads out of the folder where somebody unpacks the archive.
        """
        check_inside(filename, "a member")
        name = filename.encode()
        padding = _padding(self._offset + header_bytes, name) if method == ZIP_STORED else b""
        begin = self._offset
        offset = begin + LOCAL.size + len(name) + len(padding) + ZIP64_EXTRA_BYTES
        waiting = bytearray(offset - begin)  # begins with room for the header
        size = compressed = crc = 0
        written = False
        packer = None if method == ZIP_STORED else compressobj(-1, DEFLATED, -MAX_WBITS)
        for piece in pieces:
            size += len(piece)
            crc = crc32(piece, crc)
            data = piece if packer is None else packer.compress(piece)
            compressed += len(data)
            if not written and offset - begin + compressed <= HELD_BYTES:
                waiting += memoryview(data)
                continue
            if waiting:
                written = True
                write_all(self._file, [waiting])
                waiting.clear()
            write_all(self._file, [data])
        if packer is not None:
            data = packer.flush()
            compressed += len(data)
            waiting += data
        fields = name, method, crc, compressed, size
        header = _local(*fields, padding)
        if not written:
            waiting[: len(header)] = header
        write_all(self._file, [waiting])
        self._offset = offset + compressed
        if written:
            self._file.seek(begin)
            write_all(self._file, [header])
            self._file.seek(self._offset)
        self.directory.append(_central(*fields, begin, comment))
        return offset

    def continue_at(self, offset: int) -> None:
        """Continue at an offset, after other code has written up to it. Raises nothing."""
        self._offset = offset

    def finish(self, comment: bytes = b"") -> None:
        """Write the directory, and the comment of the archive."""
        count, begin = len(self.directory), self._offset
        write_all(self._file, [b"".join(self.directory)])
        size = sum(map(len, self.directory))
        end = begin + size
        if count > _MOST or begin > _LARGEST or size > _LARGEST:
            record = _END64.pack(END64_MAGIC, 44, 45, 45, 0, 0, count, count, size, begin)
            write_all(self._file, [record, _LOCATOR.pack(_LOCATOR_MAGIC, 0, end, 1)])
        shown = min(count, _MOST)
        last = _END.pack(EMPTY_MAGIC, 0, 0, shown, shown, min(size, ZIP64), min(begin, ZIP64),
                         len(comment))  # fmt: skip
        write_all(self._file, [last, comment])


def _local(name: bytes, method: int, crc: int, compressed: int, size: int, padding: bytes) -> bytes:
    """Return the local header of a member, with its name and extra field."""
    flags = 0 if name.isascii() else UTF8
    extra = len(padding) + ZIP64_EXTRA_BYTES
    fixed = LOCAL.pack(
        LOCAL_MAGIC, _VERSION, flags, method, 0, _DATE, crc, ZIP64, ZIP64, len(name), extra
    )
    zip64 = _ZIP64_EXTRA.pack(1, ZIP64_EXTRA_BYTES - 4, size, compressed)
    return fixed + name + padding + zip64


def _central(
    name: bytes, method: int, crc: int, compressed: int, size: int, begin: int, comment: bytes
) -> bytes:
    """Return the entry of a member in the directory, which has no padding."""
    flags = 0 if name.isascii() else UTF8
    large = [size, compressed] if max(size, compressed) > _LARGEST else []
    if large:
        size = compressed = ZIP64
    if begin > _LARGEST:
        large.append(begin)
        begin = ZIP64
    extra = Struct(f"<2H{len(large)}Q").pack(1, 8 * len(large), *large) if large else b""
    fixed = CENTRAL.pack(
        _CENTRAL_MAGIC, _VERSION, _UNIX, _VERSION, 0, flags, method, 0, _DATE, crc, compressed,
        size, len(name), len(extra), len(comment), 0, 0, _MODE, begin,
    )  # fmt: skip
    return fixed + name + extra + comment


def _padding(begin: int, name: bytes) -> bytes:
    """Return the extra field that puts the data of a member at `begin` on a multiple of 64."""
    fixed = LOCAL.size + len(name) + PADDING.size + ZIP64_EXTRA_BYTES
    zeros = -(begin + fixed) % ALIGN
    return PADDING.pack(PADDING_ID, PADDING.size - 4 + zeros, ALIGN) + bytes(zeros)
