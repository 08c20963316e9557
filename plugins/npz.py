"""NPZ: named NumPy arrays in one ZIP archive, read and write.

Specification: the docstrings of `numpy.savez` and `numpy.savez_compressed`; PKWARE APPNOTE 6.3
for ZIP; `raconvert.plugins.npy` for the members. Compared with: NumPy itself, and Python's zipfile.

Layout: one member ``NAME.npy`` for each array, stored or deflated; a central directory at the end.

Reads: stored and deflated members, ZIP64, members without the suffix ``.npy`` (as NumPy does).
Names are kept verbatim, minus ``.npy``; they are never used as paths. The headers of all members
are checked when the file is opened, the data is decoded when it is asked for, front to back in
bounded memory; a region of it needs the whole array in memory (`TooLarge` above ``--max-memory``).

Every member is decoded through its CRC-32, also the stored ones: an extent into the archive would
make the copy a little faster and hand out damaged data without a word.

Writes: members in the order of the bundle, stored (``compress=none``) or deflated, ZIP64, fixed
dates and modes, so that equal arrays give equal bytes. The data of stored members begins on a
multiple of 64 bytes in the file (by padding in the local extra field, as zipalign does it), so
that it can be mapped in place.

Noted and left out: members that are no NPY files, or hold what `raconvert.plugins.npy` refuses as
unsafe or unsupported (pickled objects, long doubles), as long as one array is left; otherwise the
file is refused for that reason. Bytes after the data of a member, up to 1 MiB, are noted too.

Refused: two members of one name (``a`` and ``a.npy`` are one name to NumPy); encrypted members and
other compressions, since nobody can tell what they hold; members that overlap, differ between
local header and central directory, or declare sizes that their compressed bytes cannot have; data
that is longer or shorter than declared, or fails its CRC-32; more bytes after an array than 1 MiB
(a ZIP bomb behind a small array); a central directory above 8 MiB; archives without any array.

Writing loses what `raconvert.plugins.npy` loses; names that are empty, repeated, no text or longer
than ZIP allows, and ``x`` beside ``x.npy``, which `numpy.load` mixes up, are refused.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import closing
from functools import partial
from math import prod
from struct import Struct
from struct import error as struct_error
from zlib import MAX_WBITS, crc32, decompressobj
from zlib import error as zlib_error

from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Option,
    Source,
    dtype_of,
    equivalent,
    refused,
)
from raconvert.transfer import write_all, write_failed

from .npy import MAGIC, SAMPLE, Header, array_fits, header_of, read_header, trailing_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from io import FileIO
    from typing import Any
    from zipfile import ZipFile, ZipInfo

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "write"]

LOCAL_MAGIC = b"PK\x03\x04"
EMPTY_MAGIC = b"PK\x05\x06"  # the end record of an archive without members
SUFFIX = ".npy"
CHUNK_BYTES = 1 << 18  # how much is decoded at once
# zipfile turns the central directory into objects of about ten times its size.
MAX_DIRECTORY_BYTES = 8 << 20
MAX_TRAILING_BYTES = 1 << 20
MAX_NAME_BYTES = 0xFFFF - len(SUFFIX)
DEFLATE_RATIO = 1032  # deflate's limit: 258 bytes for two bits

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
_Local = namedtuple(
    "_Local",
    "signature version flags method time date crc compressed size name_bytes extra_bytes",
)
_LOCAL = Struct("<4s5H3I2H")
_LATER, _UTF8 = 0x0008, 0x0800  # flags
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000  # traditional, strong, masked headers
_ZIP64 = 0xFFFFFFFF

STORED, DEFLATED = 0, 8
_OTHER_METHODS = {9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "XZ"}
_METHODS = {"none": STORED, "deflate": DEFLATED}  # option -> ZIP method

_ALIGN = 64  # NumPy's own alignment of the data behind an NPY header
_PADDING = Struct("<3H")  # zipalign's extra field: ID 0xD935, length, alignment; then zeros
_PADDING_ID = 0xD935
_ZIP64_EXTRA_BYTES = 20  # what zipfile adds to the local header of every large-file member

# One member, from the central directory: `compressed` bytes at `offset` become `size` bytes;
# `begin` is where its local header is.
_Member = namedtuple("_Member", "filename method crc compressed size begin offset")

# numpy.savez of x = numpy.array([1, 2, 3], "u1")
_SAMPLE = (
    b"PK\x03\x04-\x00\x00\x00\x00\x00\x00\x00!\x00*\xe3\x8e\xb1\xff\xff"
    b"\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00x.npy\x01\x00\x10\x00\x83"
    b"\x00\x00\x00\x00\x00\x00\x00\x83\x00\x00\x00\x00\x00\x00\x00"
    + SAMPLE
    + b"PK\x01\x02-\x03-\x00\x00\x00\x00\x00\x00\x00!\x00*\xe3\x8e\xb1"
    b"\x83\x00\x00\x00\x83\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x80\x01\x00\x00\x00\x00x.npyPK\x05\x06\x00\x00\x00\x00\x01"
    b"\x00\x01\x003\x00\x00\x00\xba\x00\x00\x00\x00\x00"
)

FORMAT = Format(
    name="npz",
    title="NumPy NPZ",
    suffixes=(".npz",),
    magic=((0, LOCAL_MAGIC), (0, EMPTY_MAGIC)),
    many=True,
    meta="none",
    index_orders="CF",
    write_options=(
        Option("compress", "none", tuple(_METHODS), "deflate as numpy.savez_compressed does"),
    ),
    samples={"one_array.npz": _SAMPLE},
    spec="https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
    losses="no metadata; bfloat16 would become V2; objects (pickle) and long doubles are refused",
)


def sniff(source: Source) -> int:
    """Sure if the first member is named ``.npy`` or is a stored NPY file; any other ZIP: maybe."""
    head = source.head
    if head.startswith(EMPTY_MAGIC):
        return MAYBE
    if not head.startswith(LOCAL_MAGIC):
        return NO
    if len(head) < _LOCAL.size:
        return MAYBE
    local = _Local(*_LOCAL.unpack_from(head))
    name_end = _LOCAL.size + local.name_bytes
    name = source.read_at(_LOCAL.size, local.name_bytes)
    is_npy = source.read_at(name_end + local.extra_bytes, len(MAGIC)) == MAGIC
    return SURE if is_npy or name.endswith(SUFFIX.encode()) else MAYBE


# --- reading --------------------------------------------------------------------------------------


def read(source: Source) -> Bundle:
    """Return the arrays of an NPZ file in the order of its directory, lazily decoded.

    Raises `Corrupt` for any damaged member, `Unsafe` and `Unsupported` if no array is left.
    """
    arrays: list[Array] = []
    notes: list[str] = []
    left_out: list[RaconvertError] = []
    members = _members(source)
    for member in members:
        try:
            array = _array(source, member, notes)
        except (Unsafe, Unsupported) as error:
            notes.append(f"member {member.filename!r} was left out: {error.what}")
            left_out.append(_in_member(error, member))
        except Corrupt as error:
            _in_member(error, member)
            raise
        else:
            if array is not None:
                arrays.append(array)
    if not arrays:
        raise left_out[0] if left_out else _no_array(source, members)
    return Bundle(arrays, notes=notes)


def _no_array(source: Source, members: list[_Member]) -> Unsupported:
    names = ", ".join(repr(member.filename) for member in members[:5])
    return Unsupported(
        "archive holds no array",
        path=source.path,
        expected="members in NPY format",
        got=f"{len(members)} others: {names}{', ...' if len(members) > 5 else ''}"
        if members
        else "no members",
    )


def _array(source: Source, member: _Member, notes: list[str]) -> Array | None:
    """Return the array of a member; None (and a note) if the member is no NPY file."""
    with closing(_Decoded(source, member)) as decoded:
        if member.size < len(MAGIC) or decoded.read_exact(0, len(MAGIC), "the magic") != MAGIC:
            notes.append(f"member {member.filename!r} is no NPY file and was left out")
            return None
        header = read_header(decoded)
        nbytes = prod(header.dims) * header.element.nbytes
        trailing = member.size - header.offset - nbytes
        if trailing > MAX_TRAILING_BYTES:
            raise Corrupt(
                "member is far longer than the array in it",
                path=source.path,
                expected=f"{header.offset + nbytes} bytes",
                got=member.size,
            )
        if trailing:
            note = trailing_note(trailing, more=False)
            notes.append(f"member {member.filename!r}: {note}")
        if nbytes == 0:  # no data will ever be asked for, so the CRC-32 is checked now
            decoded.finish()
    return Array(
        header.element,
        header.dims,
        name=_name(member),
        index_order=header.index_order,
        data=partial(_Values, source, member, header),
    )


def _name(member: _Member) -> str:
    name: str = member.filename.removesuffix(SUFFIX)
    return name


def _in_member(error: RaconvertError, member: _Member) -> RaconvertError:
    """Say in which member an error was found."""
    place = f"member {member.filename!r}"
    error.where = f"{place}, {error.where}" if error.where else place
    return error


class _Values:
    """Array source over one member: decoded front to back, or whole where a region is asked for."""

    def __init__(self, source: Source, member: _Member, header: Header) -> None:
        self.shape = header.dims[::-1]
        self.dtype = dtype_of(header.element)
        self._source = source
        self._member = member
        self._header = header
        self._whole: np.ndarray[Any, Any] | None = None

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield one-dimensional pieces in stored order; the last one after the CRC-32 is checked.

        A piece is only valid until the next one is asked for.
        """
        import numpy as np

        nbytes = prod(self.shape) * self.dtype.itemsize
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        buffer = memoryview(bytearray(min(step, nbytes)))
        try:
            with closing(_Decoded(self._source, self._member)) as decoded:
                decoded.read_into(memoryview(bytearray(self._header.offset)))
                for start in range(0, nbytes, step):
                    piece = buffer[: min(step, nbytes - start)]
                    decoded.read_into(piece)
                    if start + step >= nbytes:
                        decoded.finish()
                    yield np.frombuffer(piece, self.dtype)
        except Corrupt as error:
            _in_member(error, self._member)
            raise

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        if self._whole is None:
            self._whole = self._load()
        return self._whole[key]

    def _load(self) -> np.ndarray[Any, Any]:
        import numpy as np

        from raconvert.blocks import LARGEST_BLOCK, check_memory

        nbytes = prod(self.shape) * self.dtype.itemsize
        what = f"'{self._source.path}': member {self._member.filename!r} whole in memory"
        check_memory(nbytes, self._source.max_memory, what)
        raw = np.empty(nbytes, np.uint8)  # bytes, since copying structures leaves out their padding
        done = 0
        for piece in self.stream(LARGEST_BLOCK):
            raw[done : done + piece.nbytes] = piece.view(np.uint8)
            done += piece.nbytes
        return raw.view(self.dtype).reshape(self.shape)


# --- the archive ----------------------------------------------------------------------------------


def _members(source: Source) -> list[_Member]:
    """Return the members of an archive, in the order of its directory, after all checks.

    Nothing is inflated; only the directory and the local headers are read.
    """
    with source.open() as file:
        infos, directory = _directory(source, file)
        members = [_member(source, file, info) for info in infos]
    names: dict[str, str] = {}
    for member in members:
        name = _name(member)
        if name in names:
            raise Corrupt(
                f"two members have the name {name!r}: {names[name]!r} and {member.filename!r}",
                path=source.path,
                remedy="readers differ in which one they take; rename one of them",
            )
        names[name] = member.filename
    end, before = 0, "the start of the file"
    for member in sorted(members, key=lambda m: m.begin):
        if member.begin < end:
            _refuse_overlap(source, f"{before} and member {member.filename!r}", member.begin)
        end, before = member.offset + member.compressed, f"member {member.filename!r}"
    if end > directory:
        _refuse_overlap(source, f"{before} and the central directory", directory)
    return members


def _refuse_overlap(source: Source, what: str, offset: int) -> None:
    raise Corrupt(f"{what} overlap", path=source.path, where=f"byte {offset}")


def _directory(source: Source, file: FileIO) -> tuple[list[ZipInfo], int]:
    """Return the entries of the central directory, and where it begins."""
    import zipfile

    try:
        with zipfile.ZipFile(_Bounded(file, source)) as archive:
            return archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct_error) as error:
        raise Corrupt(f"has no readable ZIP directory ({error})", path=source.path) from error
    except (OSError, ArithmeticError, LookupError, EOFError) as error:
        raise Corrupt(f"has a damaged ZIP directory ({error})", path=source.path) from error


class _Bounded:
    """What zipfile reads the directory from: a file that refuses to read too much at once."""

    def __init__(self, file: FileIO, source: Source) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self._file = file
        self._source = source

    def read(self, nbytes: int = -1) -> bytes:
        """Read up to `nbytes` bytes; `Unsupported` where more than a directory may have."""
        left = max(0, self._source.size - self.tell())
        nbytes = left if nbytes < 0 else min(nbytes, left)
        if nbytes > MAX_DIRECTORY_BYTES:
            raise Unsupported(
                "central directory of the archive is too long to be read safely",
                path=self._source.path,
                expected=f"at most {MAX_DIRECTORY_BYTES} bytes",
                got=nbytes,
            )
        return self._file.read(nbytes) or b""


def _member(source: Source, file: FileIO, info: ZipInfo) -> _Member:
    """Return one member, after checking that it can be decoded as the directory declares it."""
    try:
        _check_method(source, info)
        _check_sizes(source, info)
        offset = _data_offset(source, file, info)
    except RaconvertError as error:
        error.where = f"member {info.filename!r}, byte {info.header_offset}"
        raise
    return _Member(
        info.filename,
        info.compress_type,
        info.CRC,
        info.compress_size,
        info.file_size,
        info.header_offset,
        offset,
    )


def _check_method(source: Source, info: ZipInfo) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise Unsupported(
            "member is encrypted",
            path=source.path,
            remedy="no flag allows this; extract it with its password and save it anew",
        )
    if info.compress_type not in (STORED, DEFLATED):
        method = _OTHER_METHODS.get(info.compress_type, "an unknown method")
        raise Unsupported(
            f"member is compressed by {method} (ZIP method {info.compress_type})",
            path=source.path,
            expected="stored or deflated, as NumPy writes it",
            remedy="save it anew with numpy.savez_compressed",
        )


def _check_sizes(source: Source, info: ZipInfo) -> None:
    """Refuse a decoded size that no decoder could give, before anything is decoded."""
    stored = info.compress_type == STORED
    limit = info.compress_size * (1 if stored else DEFLATE_RATIO)
    if info.file_size > limit or (stored and info.file_size != limit):
        raise Corrupt(
            "member declares a size that its bytes in the archive cannot have",
            path=source.path,
            expected=f"{'' if stored else 'at most '}{limit} bytes from {info.compress_size}",
            got=info.file_size,
        )


def _data_offset(source: Source, file: FileIO, info: ZipInfo) -> int:
    """Return where a member's data begins, from its local header, which must agree.

    CRC and sizes may follow the data (flag bit 3) or, in ZIP64, stand in the extra field.
    """
    file.seek(max(0, info.header_offset))
    raw = file.read(_LOCAL.size) or b""
    if info.header_offset < 0 or len(raw) < _LOCAL.size or not raw.startswith(LOCAL_MAGIC):
        raise Corrupt("there is no local header", path=source.path, expected=LOCAL_MAGIC)
    local = _Local(*_LOCAL.unpack(raw))
    name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
    pairs: dict[str, tuple[object, object]] = {"name": (name, file.read(local.name_bytes))}
    pairs["compression"] = (info.compress_type, local.method)
    if not local.flags & _LATER:
        pairs["CRC-32"] = (info.CRC, local.crc)
        if _ZIP64 not in (local.compressed, local.size):
            pairs["compressed size"] = (info.compress_size, local.compressed)
            pairs["size"] = (info.file_size, local.size)
    for what, (expected, got) in pairs.items():
        if got != expected:
            raise Corrupt(
                f"local header and central directory differ in the {what}",
                path=source.path,
                expected=expected,
                got=got,
            )
    offset: int = info.header_offset + _LOCAL.size + local.name_bytes + local.extra_bytes
    return offset


class _Decoded:
    """The decoded bytes of one member, front to back in bounded memory.

    The end is only reached if size and CRC-32 are what the directory says; `Corrupt` otherwise.
    """

    def __init__(self, source: Source, member: _Member) -> None:
        self.path = source.path
        self.size = member.size
        self._start = b""  # what `read_exact` has read
        self._pieces = _pieces(source, member)
        self._rest = memoryview(b"")

    def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
        """Return `nbytes` bytes of the beginning, which is kept; `Corrupt` names `what`."""
        end = offset + nbytes
        if end > self.size:
            raise Corrupt(
                f"member ends inside {what}",
                path=self.path,
                where=f"byte {offset}",
                expected=f"{nbytes} bytes",
                got=max(0, self.size - offset),
            )
        more = bytearray(max(0, end - len(self._start)))
        self.read_into(memoryview(more))
        self._start += more
        return self._start[offset:end]

    def read_into(self, view: memoryview) -> None:
        """Fill the view with the bytes that come next; the caller knows that there are as many."""
        while view:
            if not self._rest:
                self._rest = memoryview(next(self._pieces))
            length = min(len(view), len(self._rest))
            view[:length] = self._rest[:length]
            view, self._rest = view[length:], self._rest[length:]

    def finish(self) -> None:
        """Decode to the end without keeping anything, so that size and CRC-32 are checked."""
        for _ in self._pieces:
            pass

    def close(self) -> None:
        """Close the archive."""
        self._pieces.close()


def _pieces(source: Source, member: _Member) -> Generator[bytes, None, None]:
    """Yield the decoded bytes of a member, none of the pieces empty; check size and CRC-32."""
    total = crc = 0
    with source.open() as file:
        file.seek(member.offset)
        decode = _inflated if member.method == DEFLATED else _plain
        for piece in decode(source, file, member.compressed):
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


def _plain(_: Source, file: FileIO, nbytes: int) -> Iterator[bytes]:
    while nbytes:
        piece = file.read(min(CHUNK_BYTES, nbytes))
        if not piece:
            return
        nbytes -= len(piece)
        yield piece


def _inflated(source: Source, file: FileIO, nbytes: int) -> Iterator[bytes]:
    """Yield what `nbytes` deflated bytes hold, in pieces of at most `CHUNK_BYTES`."""
    decoder = decompressobj(-MAX_WBITS)
    raw = _plain(source, file, nbytes)
    piece = b""
    try:
        while not decoder.eof:
            more = decoder.unconsumed_tail or next(raw, b"")
            if not more and not piece:  # nothing left to decode, nothing left inside the decoder
                break
            piece = decoder.decompress(more, CHUNK_BYTES)
            if piece:
                yield piece
    except zlib_error as error:
        raise Corrupt(f"data cannot be inflated ({error})", path=source.path) from error
    if not decoder.eof or decoder.unused_data or next(raw, b""):
        raise Corrupt("deflated data does not end where its member ends", path=source.path)


# --- writing --------------------------------------------------------------------------------------


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what NPZ cannot hold: what NPY cannot hold, and names that NumPy cannot tell apart."""
    found = []
    names: set[str] = set()
    all_names = set(bundle.names)
    for array in bundle.arrays:
        reason = _name_problem(array.name, names, all_names)
        if reason:
            found.append(refused(array.name, "names", reason))
        found += array_fits(array)
        names.add(array.name)
    if bundle.attributes:
        found.append(equivalent("", "metadata", "NPZ has no place for attributes of the file"))
    return found


def _name_problem(name: str, before: set[str], all_names: set[str]) -> str | None:
    """Return why a name cannot be used: `before` are those of earlier arrays."""
    if not name:
        return "an empty name"
    if name in before:
        return "the name is used twice"
    if name + SUFFIX in all_names:
        return f"numpy.load cannot tell it from '{name}{SUFFIX}' in one archive"
    if "\0" in name:
        return "ZIP ends a name at a NUL"
    try:
        nbytes = len(name.encode())
    except UnicodeEncodeError:
        return "the name is no valid text"
    return f"the name is above {MAX_NAME_BYTES} bytes" if nbytes > MAX_NAME_BYTES else None


def write(bundle: Bundle, target: Target, *, compress: str = "none") -> None:
    """Write the arrays of the bundle in order, block by block, little-endian."""
    import zipfile

    try:
        with zipfile.ZipFile(_Whole(target.open()), "w") as archive:
            for array in bundle.arrays:
                _write_member(archive, array, _METHODS[compress], target)
    except OSError as error:
        raise write_failed(target.path, error) from error


class _Whole:
    """A raw file that writes all it is given, which zipfile takes for granted."""

    mode = "w+b"

    def __init__(self, file: FileIO) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self.flush = file.flush
        self.close = file.close
        self._file = file

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        return write_all(self._file, [data])


def _write_member(archive: ZipFile, array: Array, method: int, target: Target) -> None:
    import zipfile

    import numpy as np

    from raconvert.blocks import block_bytes, blocks

    info = zipfile.ZipInfo(array.name + SUFFIX, (1980, 1, 1, 0, 0, 0))
    info.compress_type = method
    info.create_system = 3  # Unix, everywhere
    info.external_attr = 0o644 << 16
    if method == STORED:
        info.extra = _padding(archive.start_dir, info.filename)
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(header_of(array))
        for block in blocks(array, block_bytes(target.max_memory)):
            member.write(block.reshape(-1).view(np.uint8).data)
            if target.progress is not None:
                target.progress(block.nbytes)
    info.extra = b""  # the padding is of no use in the central directory


def _padding(begin: int, filename: str) -> bytes:
    """Return the extra field that puts the data of a member at `begin` on a multiple of 64."""
    fixed = _LOCAL.size + len(filename.encode()) + _PADDING.size + _ZIP64_EXTRA_BYTES
    zeros = -(begin + fixed) % _ALIGN
    return _PADDING.pack(_PADDING_ID, _PADDING.size - 4 + zeros, _ALIGN) + bytes(zeros)
