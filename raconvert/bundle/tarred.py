"""A bundle in one .tar: the same members as in a folder, readable in place.

Specification: POSIX.1-2017, pax interchange format; `raconvert.bundle.manifest` for the content.

Written: ``bundle.yaml`` first, then each array followed by its sidecar; fixed owner and date.
Members begin at multiples of 512 bytes, so the data of an .ra in it at a multiple of 8.
Reads: any uncompressed tar with a bundle at its top or in one folder; links and everything that is
not a regular file are passed over, sparse members are refused.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOAT8
from raconvert.bundle import manifest, members
from raconvert.bundle.folder import folder_of
from raconvert.bundle.members import MANIFEST
from raconvert.errors import Corrupt, Unsupported
from raconvert.files import tars
from raconvert.files.copy import copy_range, write_all
from raconvert.files.names import check_inside
from raconvert.files.paths import write_failed
from raconvert.files.tars import BLOCK, END, MAGIC, MAGIC_AT
from raconvert.files.window import Window
from raconvert.plugin import MAYBE, MODEL, NO, SURE, Bundle, Format, Plan, Source, trailing_note
from raconvert.ra import plugin as ra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Target

__all__ = ["FORMAT", "add", "plan", "read", "sniff"]

_NAME = MANIFEST.encode()
_PROBED = 16  # members whose names are compared with that of the manifest
SAMPLES = "\nof samples (KEY.EXTENSION) it is read with `--from webdataset`"

# one array x = [1, 2, 3] of uint8, packed by Python's tarfile
_SAMPLE = (
    b"bundle.yaml"
    + bytes(89)
    + b"0000644\x000000000\x000000000\x0000000000067\x0000000000000\x00010105\x00 0"
    + bytes(100)
    + b"ustar\x0000"
    + bytes(247)
    + b"raconvert_bundle: 1\narrays:\n- name: x\n  file: x.ra\n...\n"
    + bytes(457)
    + b"x.ra"
    + bytes(96)
    + b"0000644\x000000000\x000000000\x0000000000073\x0000000000000\x00006540\x00 0"
    + bytes(100)
    + b"ustar\x0000"
    + bytes(247)
    + b"rawarray\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"
    + b"\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00"
    + b"\x00\x00\x00\x00\x00\x00\x01\x02\x03"
    + bytes(1477)
)  # fmt: skip

FORMAT = Format(
    name="tar",
    title="Bundle of .ra files in a tar archive",
    raw_bools=True,
    float8=FLOAT8,
    suffixes=(".tar",),
    magic=((MAGIC_AT, MAGIC),),
    many=True,
    meta="all",
    holds=MODEL,
    index_orders="",
    sidecar="never",
    read_options=members.READ_OPTIONS,
    samples={"empty.tar": _SAMPLE},
    spec=members.SPEC,
    losses=members.LOSSES,
)


def sniff(source: Source) -> int:
    """Sure if the first member is ``bundle.yaml``; maybe if a later one is, or may be."""
    if source.head[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
        return NO
    if source.head.startswith(_NAME + b"\0"):
        return SURE
    offset = 0
    for _ in range(_PROBED):
        header = source.read_at(offset, BLOCK)
        size = tars.size_in(header)
        if size is None:
            return NO
        if tars.name_in(header).rpartition("/")[2] == MANIFEST:
            return MAYBE
        offset += BLOCK + size + -size % BLOCK
    return MAYBE


def read(source: Source, *, metadata: bool = True) -> Bundle:
    """Return the arrays of a bundle, each a window into the archive."""
    extents, _, end = _members(source)
    above = folder_of(extents, source.path)

    def find(file: str) -> Source | None:
        member = extents.get(above + file)
        return Window(source, file, *member) if member else None

    bundle = members.read(find, source.path, metadata=metadata, remedy=SAMPLES)
    if trailing := tars.trailing_bytes(source, end + 2 * BLOCK):
        bundle.notes.append(trailing_note(trailing, "the archive"))
    return bundle


def _members(source: Source) -> tuple[dict[str, tuple[int, int]], list[tuple[str, int, int]], int]:
    """Return the regular files by name, all members in order, and the offset of the end.

    A file is a pair of offset and size; the last one of a name counts. A member is its name, the
    offset of its headers, and that of the next member.
    """
    extents: dict[str, tuple[int, int]] = {}
    in_order: list[tuple[str, int, int]] = []
    end = 0
    for member in tars.members(source):
        in_order.append((member.name, member.begin, member.end))
        if member.kind == "file":
            extents[member.name] = member.offset, member.size
        end = member.end
    return extents, in_order, end


def plan(bundle: Bundle) -> Plan:
    """Plan a .tar: the manifest, then each array followed by its sidecar; all of RA fits."""
    files = members.paths_of(bundle)
    return Plan(
        members.fits(bundle, files),
        lambda target: _write(bundle, files, target),
        names=bundle.names,
    )


def add(bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool) -> Plan:
    """Plan the archive with its members copied, the arrays and a new manifest; see `Add`."""
    extents, in_order, end = _members(source)
    above = folder_of(extents, source.path)
    if above + MANIFEST not in extents:
        raise Unsupported(f"holds no {MANIFEST} to add an array to", path=source.path)
    listing = Window(source, MANIFEST, *extents[above + MANIFEST])
    paths = [name.removeprefix(above) for name, _, _ in in_order]
    added = members.Added(bundle, manifest.load(listing), source.path, paths, overwrite=overwrite)

    def write(target: Target) -> None:
        to_write = dict(
            zip(bundle.names, zip(bundle.arrays, added.files, strict=True), strict=True)
        )
        firsts = {above + files[0]: name for name, files in added.gone.items()}
        gone = {above + file for files in added.gone.values() for file in files}
        try:
            file = target.open()
            copied = 0
            for name, begin, end_of_member in in_order:
                if name not in gone and name != above + MANIFEST:
                    continue
                copy_range(source, file, copied, begin)
                copied = end_of_member
                if name == above + MANIFEST:
                    _add(file, name, [added.text])
                elif name in firsts and firsts[name] in to_write:
                    _write_array(file, *to_write.pop(firsts[name]), target, above)
            copy_range(source, file, copied, end)
            for array, path in to_write.values():
                _write_array(file, array, path, target, above)
            write_all(file, [END])
        except OSError as error:
            raise write_failed(target.path, error) from error

    return Plan(members.fits(bundle, added.files), write, names=bundle.names)


def _write(bundle: Bundle, files: list[str], target: Target) -> None:
    """Write an archive with the arrays as these files."""
    try:
        file = target.open()
        _add(file, MANIFEST, [manifest.text_of(bundle, files)])
        for array, path in zip(bundle.arrays, files, strict=True):
            _write_array(file, array, path, target)
        write_all(file, [END])
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_array(file: FileIO, array: Array, path: str, target: Target, above: str = "") -> None:
    """Write an array and its sidecars, in the folder `above` of the archive."""
    size = ra.size_of(array)
    pieces, written = members.pieces_of(array, path, target)
    offset = _add(file, above + path, pieces, size)
    if written is None:
        whole = Source(target.temp, max_memory=target.max_memory)
        written = Window(whole, path, offset, size)
    for beside, content in members.sidecars_of(array, path, written):
        _add(file, above + beside, content)


def _add(file: FileIO, name: str, pieces: Iterable[Any], size: int | None = None) -> int:
    """Write one member; return the offset of its data. Without a `size`, `pieces` is a list."""
    check_inside(name, "a member")
    size = sum(map(len, pieces)) if size is None else size
    write_all(file, [tars.header_of(name, size)])
    offset = file.tell()
    written = write_all(file, pieces)
    file.seek(offset + size)
    write_all(file, [bytes(-size % BLOCK)])
    if written != size:
        raise Corrupt(f"'{name}' ended early", expected=f"{size} bytes", got=written)
    return offset
