"""NPZ: named NumPy arrays in one ZIP archive, read and write.

Specification: the docstrings of `numpy.savez` and `numpy.savez_compressed`; PKWARE APPNOTE 6.3
for ZIP; `raconvert.plugins.npy` for the members. Compared with: NumPy itself, and Python's zipfile.

Layout: one member ``NAME.npy`` for each array, stored or deflated; a central directory at the end.

Reads: stored, deflated, bzip2 and LZMA members, ZIP64, members without the suffix ``.npy`` (as
NumPy does). Names are kept verbatim, minus ``.npy``; they are never used as paths. The headers of
all members are checked when the file is opened, the data is decoded when it is asked for, front to
back in bounded memory; a region of it needs the whole array in memory (`TooLarge` above
``--max-memory``).

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

from contextlib import closing
from functools import partial
from math import prod
from weakref import ref

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files import zips
from raconvert.files.places import write_failed
from raconvert.files.unzip import DEFLATED, STORED
from raconvert.files.zips import (
    EMPTY_MAGIC,
    LOCAL,
    LOCAL_MAGIC,
    MAX_NAME_BYTES,
    Decoded,
    Local,
    Member,
)
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Option,
    Plan,
    Source,
    dtype_of,
    file_fits,
    refused,
)
from raconvert.plugin import trailing_note as bytes_after

from .npy import MAGIC, SAMPLE, Header, array_fits, header_of, read_header, trailing_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any
    from zipfile import ZipFile

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "plan", "read", "sniff"]

SUFFIX = ".npy"
MAX_TRAILING_BYTES = 1 << 20
_METHODS = {"none": STORED, "deflate": DEFLATED}  # option -> ZIP method
_LONGEST_NAME = MAX_NAME_BYTES - len(SUFFIX)

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
    """Sure if the first member is named ``.npy`` or is a stored NPY file; any other ZIP: maybe.

    A ZIP that begins with ``bundle.yaml`` is a bundle of .ra files.
    """
    head = source.head
    if head.startswith(EMPTY_MAGIC):
        return MAYBE
    if not head.startswith(LOCAL_MAGIC):
        return NO
    if len(head) < LOCAL.size:
        return MAYBE
    local = Local(*LOCAL.unpack_from(head))
    name_end = LOCAL.size + local.name_bytes
    name = source.read_at(LOCAL.size, local.name_bytes)
    is_npy = source.read_at(name_end + local.extra_bytes, len(MAGIC)) == MAGIC
    if name == b"bundle.yaml":
        return NO
    return SURE if is_npy or name.endswith(SUFFIX.encode()) else MAYBE


# --- reading --------------------------------------------------------------------------------------


def read(source: Source) -> Bundle:
    """Return the arrays of an NPZ file in the order of its directory, lazily decoded.

    A damaged member is an array that cannot be read. Its `Corrupt` is raised if there is no other,
    and `Unsafe` or `Unsupported` if no array is left.
    """
    arrays: list[Array] = []
    notes: list[str] = []
    left_out: list[RaconvertError] = []
    members = zips.members(source, _array_name)
    for member in members:
        try:
            array = _array(source, member, notes)
        except (Unsafe, Unsupported) as error:
            notes.append(f"member {member.filename!r} was left out: {error.what}")
            left_out.append(_in_member(error, member))
        except Corrupt as error:
            arrays.append(Array.unreadable(_array_name(member.filename), _in_member(error, member)))
        else:
            if array is not None:
                arrays.append(array)
    if not arrays:
        raise left_out[0] if left_out else _no_array(source, members)
    if trailing := zips.trailing_bytes(source):
        notes.append(bytes_after(trailing, "the archive"))
    return Bundle(some_sound(arrays), notes=notes)


def _no_array(source: Source, members: list[Member]) -> Unsupported:
    names = ", ".join(repr(member.filename) for member in members[:5])
    return Unsupported(
        "archive holds no array",
        path=source.path,
        expected="members in NPY format",
        got=f"{len(members)} others: {names}{', ...' if len(members) > 5 else ''}"
        if members
        else "no members",
    )


def _array(source: Source, member: Member, notes: list[str]) -> Array | None:
    """Return the array of a member; None (and a note) if the member is no NPY file."""
    with closing(Decoded(source, member)) as decoded:
        if member.size < len(MAGIC) or decoded.read_exact(0, len(MAGIC), "the magic") != MAGIC:
            if member.filename.endswith(SUFFIX):  # it should be one: is it damaged?
                decoded.finish()
            notes.append(f"member {member.filename!r} is no NPY file and was left out")
            return None
        try:
            header = read_header(decoded)
        except (Unsafe, Unsupported):  # unless it is damage that looks like it
            decoded.finish()
            raise
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
        name=_array_name(member.filename),
        index_order=header.index_order,
        row_major=header.index_order == "F",
        data=partial(_Values, source, member, header),
    )


def _array_name(filename: str) -> str:
    return filename.removesuffix(SUFFIX)


def _in_member(error: RaconvertError, member: Member) -> RaconvertError:
    """Say in which member an error was found."""
    place = f"member {member.filename!r}"
    error.where = f"{place}, {error.where}" if error.where else place
    return error


class _Values:
    """Array source over one member: decoded front to back, or whole where a region is asked for."""

    def __init__(self, source: Source, member: Member, header: Header) -> None:
        self.shape = header.dims[::-1]
        self.dtype = dtype_of(header.element)
        self._source = source
        self._member = member
        self._header = header
        self._whole: ref[np.ndarray[Any, Any]] | None = None  # as long as anybody looks at it

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield one-dimensional pieces in stored order; the last one after the CRC-32 is checked.

        A piece is only valid until the next one is asked for.
        """
        import numpy as np

        nbytes = prod(self.shape) * self.dtype.itemsize
        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        buffer = memoryview(bytearray(min(step, nbytes)))
        try:
            with closing(Decoded(self._source, self._member)) as decoded:
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
        whole = self._whole() if self._whole is not None else None
        if whole is None:
            whole = self._load()
            self._whole = ref(whole)
        return whole[key]

    def _load(self) -> np.ndarray[Any, Any]:
        import numpy as np

        from raconvert.arrays.blocks import LARGEST_BLOCK, check_memory

        nbytes = prod(self.shape) * self.dtype.itemsize
        what = f"'{self._source.path}': member {self._member.filename!r} whole in memory"
        check_memory(nbytes, self._source.max_memory, what)
        raw = np.empty(nbytes, np.uint8)  # bytes, since copying structures leaves out their padding
        done = 0
        for piece in self.stream(LARGEST_BLOCK):
            raw[done : done + piece.nbytes] = piece.view(np.uint8)
            done += piece.nbytes
        return raw.view(self.dtype).reshape(self.shape)


# --- writing --------------------------------------------------------------------------------------


def plan(bundle: Bundle, *, compress: str = "none") -> Plan:
    """One NPY member for each array; names that NumPy cannot tell apart do not fit."""
    found = []
    names: set[str] = set()
    all_names = set(bundle.names)
    for array in bundle.arrays:
        reason = _name_problem(array.name, names, all_names)
        if reason:
            found.append(refused(array.name, "names", reason))
        found += array_fits(array)
        names.add(array.name)
    return Plan(
        [*found, *file_fits(bundle, "NPZ")],
        lambda target: _write(bundle, target, _METHODS[compress]),
        names=bundle.names,
    )


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
    return f"the name is above {_LONGEST_NAME} bytes" if nbytes > _LONGEST_NAME else None


def _write(bundle: Bundle, target: Target, method: int) -> None:
    """Write the arrays of the bundle in order, block by block, little-endian."""
    try:
        with zips.begin_archive(target.open()) as archive:
            for array in bundle.arrays:
                _write_member(archive, array, method, target)
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_member(archive: ZipFile, array: Array, method: int, target: Target) -> None:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks

    def pieces() -> Iterator[Any]:
        yield header_of(array)
        for block in target.counted(blocks(array, block_bytes(target.max_memory))):
            yield block.reshape(-1).view(np.uint8).data

    info = zips.new_member(archive, array.name + SUFFIX, method)
    zips.write_member(archive, info, pieces())
