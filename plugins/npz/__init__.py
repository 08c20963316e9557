"""NPZ: named NumPy arrays in one ZIP archive, read and write.

Specification: the docstrings of `numpy.savez` and `numpy.savez_compressed`; PKWARE APPNOTE 6.3
for ZIP; `raconvert.plugins.npy` for the members. Compared with: NumPy itself, and Python's zipfile.

Layout: one member ``NAME.npy`` for each array, stored or deflated; a central directory at the end.

Reads: stored, deflated, bzip2 and LZMA members, ZIP64, members without the suffix ``.npy`` (as
NumPy does). Names are kept verbatim, minus ``.npy``; they are never used as paths. The headers of
all members are checked when the file is opened, the data is decoded when it is asked for, front to
back in bounded memory. An array in Fortran order above ``--max-memory`` is decoded several times on
its way to RA.

Every conversion decodes members through their CRC-32, also the stored ones: an extent into the
archive would make the copy a little faster and hand out damaged data without a word. In Python a
region of at most half of a stored member is read where it lies, without the rest, which the CRC-32
cannot vouch for; a region of a compressed member needs the whole array in memory (`TooLarge` above
``--max-memory``).

Writes: members in the order of the bundle, stored (``compress=none``) or deflated, ZIP64, fixed
dates and modes, so that equal arrays give equal bytes. The data of stored members begins on a
multiple of 64 bytes in the file (by padding in the local extra field, as zipalign does it), so
that it can be mapped in place.

An array is added to an archive (``-o FILE#NAME``) by copying all its members as they lie, also
those that are not NPY files.

Noted and left out: members that are not NPY files, or hold what `raconvert.plugins.npy` refuses as
unsafe or unsupported (pickled objects, long doubles), as long as one array is left; otherwise the
file is refused for that reason. Bytes after the data of a member, up to 1 MiB, are noted too.

Refused: two members of one name (``a`` and ``a.npy`` are one name to NumPy); encrypted members and
other compressions, since nobody can tell what they hold; members that overlap, differ between
local header and central directory, or declare sizes that their compressed bytes cannot have; data
that is longer or shorter than declared, or fails its CRC-32; more bytes after an array than 1 MiB
(a ZIP bomb behind a small array); a central directory above 8 MiB; archives without any array.

A name that leads out of the folder where somebody unpacks the file (``..``, absolute, drives,
backslashes) or has control characters is percent-escaped in the name of its member; the comment of
the member keeps it, and it is read again.

Writing loses what `raconvert.plugins.npy` loses; names that are empty, repeated, no text or longer
than ZIP allows, and ``x`` beside ``x.npy``, which `numpy.load` mixes up, are refused.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from math import prod

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files import zips
from raconvert.files.zips import EMPTY_MAGIC, LOCAL, LOCAL_MAGIC, Decoded, Local, Member
from raconvert.plugin import MAYBE, NO, SURE, Array, Bundle, Format, Option, Source
from raconvert.plugin import trailing_note as bytes_after

from .. import npy
from ..npy.header import MAGIC, Header, read_header
from .plan import add, plan
from .tables import METHODS, PROGRAMS, SAMPLE, SUFFIX, array_name, in_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

__all__ = ["FORMAT", "add", "plan", "programs", "read", "sniff"]

FORMAT = Format(
    name="npz",
    title="NumPy NPZ",
    raw_bools=True,
    suffixes=(".npz",),
    magic=((0, LOCAL_MAGIC), (0, EMPTY_MAGIC)),
    many=True,
    meta="none",
    index_orders="CF",
    write_options=(
        Option("compress", "none", tuple(METHODS), "deflate as numpy.savez_compressed does"),
    ),
    samples={"one_array.npz": SAMPLE},
    spec="https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
    losses="no metadata; bfloat16 would become V2; objects (pickle) and long doubles are refused",
)


def sniff(source: Source) -> int:
    """Return SURE if the first member is named ``.npy`` or is a stored NPY file.

    MAYBE for any other ZIP, NO for a first member with the name of another kind of archive.
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
    if is_npy or name.endswith(SUFFIX.encode()):
        return SURE
    return NO if name.endswith(zips.FIRST_NAMES) else MAYBE


# --- reading --------------------------------------------------------------------------------------


def read(source: Source) -> Bundle:
    """Read the arrays of an NPZ file in the order of its directory, lazily decoded.

    A damaged member is an array that cannot be read. Its `Corrupt` is raised if there is no other,
    and `Unsafe` or `Unsupported` if no array is left.
    """
    arrays: list[Array] = []
    notes: list[str] = []
    left_out: list[RaconvertError] = []
    members = zips.members(source, array_name)
    with source.open() as file:
        for member in members:
            try:
                array = _array(source, file, member, notes)
            except (Unsafe, Unsupported) as error:
                notes.append(f"member {member.filename!r} was left out: {error.what}")
                left_out.append(in_member(error, member))
            except Corrupt as error:
                name = array_name(member)
                arrays.append(Array.unreadable(name, in_member(error, member)))
            else:
                if array is not None:
                    arrays.append(array)
    if not arrays:
        raise left_out[0] if left_out else _no_array(source, members)
    if trailing := zips.trailing_bytes(source):
        notes.append(bytes_after(trailing, "the archive"))
    return Bundle(some_sound(arrays), notes=notes)


def _no_array(source: Source, members: list[Member]) -> Unsupported:
    """Return the error for an archive without any NPY file."""
    got = "no members"
    if members:
        names = ", ".join(repr(member.filename) for member in members[:5])
        got = f"{len(members)} others: {names}{', ...' if len(members) > 5 else ''}"
    return Unsupported(
        "archive holds no array", path=source.path, expected="members in NPY format", got=got
    )


def _array(source: Source, file: FileIO, member: Member, notes: list[str]) -> Array | None:
    """Return the array of a member; None (and a note) if the member is not an NPY file."""
    with closing(Decoded(source, member, file)) as decoded:
        if member.size < len(MAGIC) or decoded.read_exact(0, len(MAGIC), "the magic") != MAGIC:
            if member.filename.endswith(SUFFIX):
                decoded.finish()  # named as an NPY file: raises `Corrupt` if it was damaged
            notes.append(f"member {member.filename!r} is not an NPY file and was left out")
            return None
        try:
            header = read_header(decoded)
        except (Unsafe, Unsupported):
            decoded.finish()  # raises `Corrupt` instead if the header is only damaged
            raise
        nbytes = prod(header.dims) * header.element.nbytes
        trailing = member.size - header.offset - nbytes
        if trailing > source.limits.trailing_bytes:
            raise Corrupt(
                "member is far longer than the array in it",
                path=source.path,
                expected=f"{header.offset + nbytes} bytes",
                got=member.size,
            )
        if trailing:
            note = npy.trailing_note(trailing, more=False)
            notes.append(f"member {member.filename!r}: {note}")
        if nbytes == 0:
            decoded.finish()  # checks the CRC-32 now, since no data will be read later
    return Array(
        header.element,
        header.dims,
        name=array_name(member),
        index_order=header.index_order,
        row_major=header.index_order == "F",
        data=partial(_values, source, member, header),
    )


def _values(source: Source, member: Member, header: Header) -> Any:
    from .reader import MemberValues  # which imports numpy

    return MemberValues(source, member, header)


def programs(array: Array) -> dict[str, str]:
    """Return programs for NumPy itself and NPZ.jl. Raises nothing."""
    from .reader import MemberValues

    is_number = array.element.kind in ("int", "uint", "float", "complex", "bool")
    data = array.data
    stored = isinstance(data, MemberValues) and data.key == array.name and array.name.isprintable()
    return dict(PROGRAMS) if is_number and stored else {}
