"""MRC: maps, images and stacks of electron microscopy (MRC2014, CCP4), read and write.

Specification: "MRC/CCP4 file format for images and volumes" of CCP-EM (MRC2014, version 20141).
Compared with: mrcfile, in both directions, and SimpleITK for places
(MRtrix 3.0 has no MRC: its `mrconvert` says "unknown format").

Layout::

    part       size    holds
    header     1024    56 words, 10 labels of 80 characters
    extended   NSYMBT  what EXTTYP says (FEI1, CCP4, SERI, ...)
    data               rows of NX elements, NY rows, NZ sections

Reads: modes 0 (int8), 1 (int16), 2 (float32), 4 (complex64), 6 (uint16), 12 (float16) and 101 (4
bits, as uint8), in either byte order. A machine stamp that is none, or not that of the numbers, is
noted, and the order found from the sizes. Mode 0 is uint8 where IMOD's stamp says so, with a note.
Elements are an extent; those of 4 bits are unpacked front to back. A file without ``MAP`` is read
with ``--from mrc``.

Mapping: row-major. One section of an image stack (ISPG 0) is (y, x), a stack (n, y, x), a volume
(z, y, x), a volume stack (ISPG 401 to 630) (n, z, y, x), as mrcfile has them. The cell and its
intervals give the spacing of the axes in angstrom, MAPC, MAPR and MAPS with the angles of the cell
their directions in a world X, Y, Z, whose frame MRC does not name. ORIGIN is where the first
element lies; if it is 0, NXSTART, NYSTART and NZSTART are. A cell of 0 says nothing. Numbers
of 4 bytes are taken for the shortest decimal that they stand for. The labels are the description, a
line each. The namespace ``mrc`` keeps the extended header byte for byte, EXTRA, the space group,
and in ``place`` the fields of a place that is said in another way than we do. DMIN, DMAX, DMEAN and
RMS are not kept.

Writes: version 20141, little-endian, or big-endian where the extended header came from such a file;
no date, no label that was not given; statistics marked as not determined, as the specification
has it, or worked out in a pass of its own with ``statistics=yes``. Two axes are an image, three a
volume, or a stack where the slowest one is not spatial and the others are, or was a stack; ``kind``
asks for one. Spacings in nm, um, mm and m are written in angstrom, which is named. LPS and
what can be turned into it loses its name; directions that no cell has (mirrored, turned) are named
as lost, the spacing is kept.

Refused: modes 3 (complex of int16) and 16 (RGB), 4-bit data of IMOD in mode 0, data that is cut
off. Writing: other types than int8, int16, float32, complex64, uint16 and float16; more than 4
axes, axes of length 0; one axis becomes an image of one row; names, labels and origins of axes,
attributes and units of the values have no place (named as equivalent).
"""

from __future__ import annotations

import struct
from math import acos, cos, degrees, isfinite, prod, radians, sin, sqrt

from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.arrays.space import World, directed, not_kept, same
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Axis,
    Bundle,
    Fit,
    Format,
    Metadata,
    Option,
    Plan,
    Source,
    dtype_of,
    element,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    file_fits,
    refused,
    refused_type,
    trailing_note,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from raconvert.plugin import Element, Space, Target

__all__ = ["FORMAT", "plan", "read", "sniff"]


# The header: bytes to fields and back ------------------------------------------------------------


NAMESPACE = "mrc"
HEADER_BYTES = 1024
MAP_AT, STAMP_AT = 208, 212
MAGICS = (b"MAP ", b"MAP\0")
LAYOUT = "3i i 3i 3i 3f 3f 3i 3f i i 100s 3f 4s 4s f i 800s"
FIELDS = (
    ("size", 3), ("mode", 1), ("start", 3), ("intervals", 3), ("cell", 3), ("angles", 3),
    ("map", 3), ("statistics", 3), ("ispg", 1), ("nsymbt", 1), ("extra", 1), ("origin", 3),
    ("id", 1), ("stamp", 1), ("rms", 1), ("nlabl", 1), ("labels", 1),
)  # fmt: skip
STAMPS = {b"\x44\x44": "<", b"\x44\x41": "<", b"\x11\x11": ">"}
STAMP_OF = {"<": b"\x44\x44\0\0", ">": b"\x11\x11\0\0"}
VERSION = 20141
EXTTYP_AT, VERSION_AT = 8, 12  # in EXTRA
IMOD_AT, IMOD_STAMP = 56, 1146047817
IMOD_SIGNED, IMOD_PACKED = 1, 16
UNDETERMINED = (0.0, -1.0, -2.0)  # DMIN, DMAX, DMEAN; and RMS -1
PACKED = 101
MODES = {
    0: element("int", 1), 1: element("int", 2), 2: element("float", 4), 4: element("complex", 8),
    6: element("uint", 2), 12: element("float", 2), PACKED: element("uint", 1),
}  # fmt: skip
MODE_OF = {(e.kind, e.nbytes): mode for mode, e in MODES.items() if mode != PACKED}
NOT_READ = {3: "complex numbers of two int16", 16: "RGB of three bytes (IMOD)"}
WIDER = {"bool": "int8", "uint": "uint16", "complex": "complex64"}  # for --dtype, by kind
STACK, VOLUME, VOLUMES = 0, 1, 401  # ISPG
VOLUME_GROUPS, VOLUMES_GROUPS = range(1, 231), range(401, 631)
LABELS, LABEL_BYTES = 10, 80
MAX_LENGTH = (1 << 31) - 1
MAX_RANK = 4
UNIT = "angstrom"
PER_UNIT = {None: 1.0, UNIT: 1.0, "pm": 0.01, "nm": 10.0, "um": 1e4, "mm": 1e7, "m": 1e10}
RIGHT = (90.0, 90.0, 90.0)
PLACE = {"start": 3, "intervals": 3, "cell": 3, "angles": 3, "map": 3, "origin": 3}
WHOLE = ("start", "intervals", "map")
NOWHERE: dict[str, Any] = {
    "start": (0, 0, 0), "cell": (0.0,) * 3, "angles": RIGHT, "map": (1, 2, 3),
    "origin": (0.0,) * 3,
}  # fmt: skip
TAKEN = "not spatial: MRC takes it for such"


def _packed(fields: Mapping[str, Any], order: str) -> bytes:
    """Return the bytes of a header; `id` and `stamp` follow from the byte order."""
    fields = {**fields, "id": MAGICS[0], "stamp": STAMP_OF[order]}
    values: list[Any] = []
    for name, count in FIELDS:
        values += fields[name] if count > 1 else [fields[name]]
    return struct.pack(order + LAYOUT, *values)


def _unpacked(head: bytes, order: str) -> dict[str, Any]:
    """Return the fields of a header in a byte order; those of several numbers are tuples."""
    values = iter(struct.unpack_from(order + LAYOUT, head))
    fields: dict[str, Any] = {}
    for name, count in FIELDS:
        fields[name] = tuple(next(values) for _ in range(count)) if count > 1 else next(values)
    return fields


def _is_plausible(fields: Mapping[str, Any]) -> bool:
    """True if sizes and mode are those of a file in this byte order."""
    return min(fields["size"]) > 0 and (fields["mode"] in MODES or fields["mode"] in NOT_READ)


class Header(Record):
    """The header, and where the data is; `shape` in C order."""

    fields: dict[str, Any]
    order: str
    element: Element
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def _read_header(source: Source, notes: list[str]) -> Header:
    """Read the header, checked against the length of the file.

    Raises `Corrupt` and `Unsupported`.
    """
    head = source.read_exact(0, HEADER_BYTES, "the header")
    order, fields = _ordered(source, head, notes)
    if head[MAP_AT : MAP_AT + 4] not in MAGICS:
        notes.append("the header lacks 'MAP ': it is older than MRC2000, or of another format")
    mode, path = fields["mode"], source.path
    if mode in NOT_READ:
        raise Unsupported(
            f"has mode {mode}: {NOT_READ[mode]}", path=path, where="byte 12",
            expected=f"one of {', '.join(map(str, MODES))}",
            remedy="save its data in another mode first, such as 4 or 2",
        )  # fmt: skip
    if not _is_plausible(fields):
        raise Corrupt(
            "header is not one of MRC in either byte order", path=path, where="byte 0",
            expected=f"sizes above 0, and mode {', '.join(map(str, MODES))}",
            got=f"sizes {fields['size']}, mode {mode}",
        )  # fmt: skip
    if fields["nsymbt"] < 0:
        raise Corrupt(
            "extended header has a negative length", path=path, where="byte 92", expected="0 to "
            f"{source.size - HEADER_BYTES}", got=fields["nsymbt"],
        )  # fmt: skip
    kind = _element(source, fields, order, notes)
    shape = _shape(fields, notes)
    offset = HEADER_BYTES + fields["nsymbt"]
    nbytes = _end(fields) - offset
    if nbytes > source.size - offset or spanned(shape, kind.nbytes) > MAX_SPAN:
        raise Corrupt(
            "data is cut off", path=path, where=f"byte {source.size}",
            expected=f"{nbytes} bytes of data from byte {offset}",
            got=max(0, source.size - offset),
        )  # fmt: skip
    return Header(fields, order, kind, shape, offset, nbytes)


def _ordered(source: Source, head: bytes, notes: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the byte order and the fields read in it.

    The best order is one in which the header makes sense and the file holds all data; the next,
    one in which the header makes sense. The stamp decides between two, and if there is none.
    """
    stamp = head[STAMP_AT : STAMP_AT + 4]
    stamped = STAMPS.get(stamp[:2])
    orders = "<>" if stamped != ">" else "><"
    of_order = {order: _unpacked(head, order) for order in orders}
    plausible = [order for order, fields in of_order.items() if _is_plausible(fields)]
    # Numbers of few bytes may make sense in both orders, but hardly with data that is there.
    fitting = [order for order in plausible if _end(of_order[order]) <= source.size]
    candidates = [*fitting, *plausible, *orders]
    order = candidates[0]
    if plausible and stamped != order:
        word = "little" if order == "<" else "big"
        notes.append(
            f"the machine stamp {stamp.hex(' ')} is not that of the file: its sizes are "
            f"{word}-endian"
        )
    return order, of_order[order]


def _end(fields: Mapping[str, Any]) -> int:
    """Return the offset at which the data ends."""
    nx, ny, nz = fields["size"]
    mode = fields["mode"]
    width = MODES[mode].nbytes if mode in MODES else 4
    row = (nx + 1) // 2 if mode == PACKED else nx * width
    return HEADER_BYTES + int(fields["nsymbt"]) + row * ny * nz


def _element(source: Source, fields: dict[str, Any], order: str, notes: list[str]) -> Element:
    """Return the element type of a mode. Raises `Unsupported` for packed bytes of IMOD."""
    kind = MODES[fields["mode"]]
    stamp, flags = struct.unpack_from(f"{order}2i", fields["extra"], IMOD_AT)
    if fields["mode"] == 0 and stamp == IMOD_STAMP:
        if flags & IMOD_PACKED:
            raise Unsupported(
                "has two elements of 4 bits in each byte of mode 0", path=source.path,
                where="byte 156", expected="mode 101 for them",
                remedy="convert it first, for instance with IMOD: newstack -mode 1",
            )  # fmt: skip
        if not flags & IMOD_SIGNED:
            notes.append("the bytes are unsigned, as IMOD's flags say: uint8, not int8")
            return element("uint", 1)
    return kind if kind.nbytes == 1 else element(kind.kind, kind.nbytes, order)


def _shape(fields: dict[str, Any], notes: list[str]) -> tuple[int, ...]:
    """Return the shape in C order, with an axis for the volumes of a stack of volumes."""
    nx, ny, nz = fields["size"]
    group, depth = fields["ispg"], fields["intervals"][2]
    if group == STACK and nz == 1:
        return ny, nx
    if group in VOLUMES_GROUPS:
        if depth > 0 and nz % depth == 0:
            return nz // depth, depth, ny, nx
        notes.append(f"{nz} sections are not volumes of {depth}: they are read as one volume")
    return nz, ny, nx


def _kind_of(fields: Mapping[str, Any], rank: int) -> int:
    """Return STACK, VOLUME or VOLUMES for a header; a single image is a stack."""
    if fields["ispg"] == STACK:
        return STACK
    return VOLUMES if rank == MAX_RANK else VOLUME


# The place of the elements -----------------------------------------------------------------------
# `start` and `map` go with columns, rows, sections; `intervals`, `cell`, `angles` with X, Y, Z.


def _single(number: float) -> float:
    """Return the number as 4 bytes hold it; infinite if they cannot."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return float("inf")


def _shortest(number: float, factor: int = 1) -> float:
    """Return the shortest decimal whose product with a factor is this number in 4 bytes.

    >>> _shortest(0.30000001192092896, 3)
    0.1
    """
    quotient = number / factor
    for digits in range(1, 10):
        near = float(f"{quotient:.{digits}g}")
        if _single(near * factor) == number:
            return near
    return quotient


def _placed(place: Mapping[str, Any], rank: int, kind: int) -> tuple[list[Axis], Space | None]:
    """Return the axes, the fastest first, and the space that the fields of a place describe."""
    count = 2 if kind == STACK else 3
    order = place["map"] if sorted(place["map"]) == [1, 2, 3] else (1, 2, 3)
    steps = [
        _shortest(cell, n) if n > 0 and isfinite(cell) and cell > 0 else None
        for n, cell in zip(place["intervals"], place["cell"], strict=True)
    ]
    axes = [Axis()] * rank
    for axis in range(count):
        step = steps[order[axis] - 1]
        if step is not None:
            axes[axis] = Axis(spacing=step, units=UNIT)
    if any(axis.spacing is None for axis in axes[:count]):
        return axes, None
    cell = _cell([1.0 if step is None else step for step in steps], place["angles"])
    if cell is None:
        return axes, None
    vectors = [cell[order[axis] - 1] for axis in range(3)]
    origin = tuple(map(_shortest, map(float, place["origin"])))
    if not all(map(isfinite, origin)):
        return axes, None
    if not any(origin):
        steps_of_axes = [*vectors[:count], *([(0.0,) * 3] * (3 - count))]
        starts = [*zip(place["start"], steps_of_axes, strict=True)]
        origin = tuple(sum(n * vector[at] for n, vector in starts) + 0.0 for at in range(3))
    world = World((*vectors[:count], *[None] * (rank - count)), origin, None)
    spacings = [axis.spacing for axis in axes]
    axes = [directed(*parts) for parts in zip(axes, world.vectors, spacings, strict=True)]
    return axes, world.space


def _cell(
    steps: Sequence[float], angles: Sequence[float]
) -> tuple[tuple[float, float, float], ...] | None:
    """Return the steps along the edges of a cell: a along X, b in the plane of X and Y.

    None for angles that no cell has.
    """
    a, b, c = steps
    if tuple(angles) in (RIGHT, (0.0,) * 3):
        return (a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c)
    if not all(isfinite(angle) and 0 < angle < 180 for angle in angles):
        return None
    alpha, beta, gamma = (0.0 if angle == 90 else cos(radians(angle)) for angle in angles)
    up = 1.0 if angles[2] == 90 else sin(radians(angles[2]))
    y = (alpha - beta * gamma) / up
    z = 1 - beta * beta - y * y
    if z <= 0:
        return None
    return (a, 0.0, 0.0), (b * gamma, b * up, 0.0), (c * beta, c * y, c * sqrt(z))


def _cell_of(vectors: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """Return MAPC, MAPR, MAPS and the angles of the cell with these edges; None without such."""
    nonzero = [[at for at, part in enumerate(vector) if part] for vector in vectors]
    forward = all(part >= 0 for vector in vectors for part in vector)
    if forward and all(len(numbers) == 1 for numbers in nonzero):
        order = [numbers[0] + 1 for numbers in nonzero]
        order += sorted({1, 2, 3} - {*order})
        return {"map": tuple(order), "angles": RIGHT} if len(order) == 3 else None
    if len(vectors) == 2:
        vectors = [*vectors, (0.0, 0.0, 1.0)]
    triangular = not (vectors[0][1] or vectors[0][2] or vectors[1][2])
    if not triangular or min(vector[at] for at, vector in enumerate(vectors)) <= 0:
        return None
    angles = []
    for first, second in ((1, 2), (0, 2), (0, 1)):
        a, b = vectors[first], vectors[second]
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        lengths = sqrt(sum(x * x for x in a)) * sqrt(sum(x * x for x in b))
        angles.append(degrees(acos(max(-1.0, min(1.0, dot / lengths)))))
    return {"map": (1, 2, 3), "angles": tuple(angles)}


def _place_of(
    axes: Sequence[Axis], space: Space | None, dims: Sequence[int], kind: int
) -> tuple[dict[str, Any], list[list[str]], list[str]]:
    """Return the fields of a place, what each axis loses, and what the space loses.

    Axes are the fastest first.
    """
    count = 2 if kind == STACK else 3
    size = [*dims[:count], *[1] * (3 - count)][:3]
    place: dict[str, Any] = {"intervals": tuple(size), **NOWHERE}
    by_axis: list[list[str]] = [
        fields_of_axes([axis], "name", "labels", "kind", "origin") for axis in axes
    ]
    for axis, lost in zip(axes[count:], by_axis[count:], strict=True):
        lost.extend(fields_of_axes([axis], "spacing", "units", "direction"))
    axes = axes[:count]
    steps = [_length(axis, lost) for axis, lost in zip(axes, by_axis, strict=False)]
    lost_space: list[str] = []
    world = World.of(axes, space)
    if world is None or not world.spatial:
        lost_space += not_kept(world, axes, space)
        for axis, lost, step in zip(axes, by_axis, steps, strict=False):
            lost.extend([TAKEN] * (step is not None and axis.direction is None))
    elif None in steps or len({axis.units for axis in axes}) > 1 or world.rank > 3:
        lost_space.append("space (MRC has one of lengths, along all of its axes)")
    else:
        lost_space += _take_world(world, PER_UNIT[axes[0].units], place, kind)
    intervals, lengths = [1, 1, 1], [0.0, 0.0, 0.0]
    for axis, length in enumerate(size):
        at = place["map"][axis] - 1
        step = steps[axis] if axis < len(steps) else None
        intervals[at] = length
        lengths[at] = _single((step or 0.0) * length)
    place |= {"intervals": tuple(intervals), "cell": tuple(lengths)}
    exact = place["origin"]
    for name in ("origin", "angles"):
        place[name] = tuple(map(_single, place[name]))
    if not all(map(isfinite, (*lengths, *place["origin"]))):
        lost_space.append("space and spacings (4 bytes do not hold a length)")
        return {**place, **NOWHERE, "intervals": tuple(size)}, by_axis, lost_space
    by_edge = [_shortest(length, n) for length, n in zip(lengths, intervals, strict=True)]
    steps_read = [by_edge[place["map"][axis] - 1] for axis in range(len(steps))]
    steps_meant = [step or 0.0 for step in steps]
    origin_read = [*map(_shortest, place["origin"])]
    if not (same(steps_meant, steps_read) and same(exact, origin_read)):
        lost_space.append("digits of spacings and origin beyond those of 4 bytes")
    return place, by_axis, lost_space


def _length(axis: Axis, lost: list[str]) -> float | None:
    """Return the spacing of an axis in angstrom; None if it is not a length.

    Adds to `lost` what is not written.
    """
    if axis.spacing is None:
        lost += fields_of_axes([axis], "units")
        return None
    if not is_real(axis.spacing) or axis.spacing <= 0 or axis.units not in PER_UNIT:
        lost += fields_of_axes([axis], "spacing", "units")
        return None
    if axis.units != UNIT:
        lost.append(f"units {axis.units or 'unknown'}: written as {UNIT}")
    return float(axis.spacing) * PER_UNIT[axis.units]


def _take_world(world: World, per_unit: float, place: dict[str, Any], kind: int) -> list[str]:
    """Put directions and origin into the fields of a place, and return what is lost of them.

    MZ counts the sections of each volume of a stack, so that its axes are in the usual order.
    """
    frame = world.frame
    world = (world.to("LPS") or world).padded(3)
    cell = _cell_of([vector for vector in world.vectors if vector is not None])
    if cell is not None and kind == VOLUMES and cell["map"] != (1, 2, 3):
        cell = None
    if len(world.spatial) < len(world.vectors) or cell is None:
        return ["space (no cell of MRC has such directions)"]
    place |= cell
    place["origin"] = tuple(part * per_unit for part in world.origin or (0.0,) * 3)
    lost = []
    if frame is not None:
        lost.append(f"frame of the space ({frame}: MRC names none)")
    if world.origin is None:
        lost.append("origin (unknown: written as 0)")
    return lost


# Reading -----------------------------------------------------------------------------------------


def _sample(order: str, size: tuple[int, int, int], **more: Any) -> bytes:
    """Return a header with these fields, and `data` behind it."""
    fields: dict[str, Any] = {
        "size": size, "mode": 1, "intervals": size, "statistics": UNDETERMINED, "ispg": STACK,
        "nsymbt": 0, "extra": bytes(12) + struct.pack(f"{order}i", VERSION), "rms": -1.0,
        "nlabl": 0, "labels": b"", **NOWHERE,
    }  # fmt: skip
    return _packed({**fields, **more}, order) + bytes(more["data"])


SAMPLES = {
    "two_by_three.mrc": _sample("<", (3, 2, 1), data=struct.pack("<6h", *range(6))),
    "big_volume.mrc": _sample(
        ">", (3, 2, 2), mode=2, ispg=VOLUME, nsymbt=4, cell=(3.0, 3.0, 5.0),
        origin=(1.0, -2.0, 0.5), nlabl=1, labels=b"a volume",
        data=b"SYMM" + struct.pack(">12f", *range(12)),
    ),
    "packed.mrc": _sample("<", (3, 2, 1), mode=PACKED, data=b"\x21\x03\x54\x06"),
}  # fmt: skip


FORMAT = Format(
    name="mrc",
    title="MRC (MRC2014, CCP4 map)",
    suffixes=(".mrc", ".mrcs", ".map", ".ccp4", ".rec", ".st"),
    magic=tuple((MAP_AT, magic) for magic in MAGICS),
    meta="some",
    holds=("spacing", "description"),
    write_options=(
        Option("kind", "auto", ("auto", "stack", "volume"), "of three axes: images or a volume"),
        Option("statistics", "no", ("no", "yes"), "minimum, maximum, mean and RMS in the header"),
    ),
    samples=SAMPLES,
    spec="https://www.ccpem.ac.uk/mrc_format/mrc2014.php",
    losses="int8, int16, uint16, float16, float32, complex64; 1 to 4 axes; no names or attributes",
)


def sniff(source: Source) -> int:
    """Return SURE for ``MAP``, and sizes and a mode that make sense in one byte order."""
    head = source.head
    if len(head) < HEADER_BYTES or head[MAP_AT : MAP_AT + 4] not in MAGICS:
        return NO
    return SURE if any(_is_plausible(_unpacked(head, order)) for order in "<>") else NO


def read(source: Source) -> Bundle:
    """Read the one array of an MRC file, named after the file's stem, in C order.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    notes: list[str] = []
    header = _read_header(source, notes)
    meta = _metadata(source, header, notes)
    end = header.offset + header.nbytes
    if source.size > end:
        notes.append(trailing_note(source.size - end))
    fields: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    if header.fields["mode"] == PACKED:
        fields["data"] = lambda: _halves(source, header)
    else:
        swap = needs_swap(header.element)
        fields["extent"] = source.extent(header.offset, header.nbytes, swap)
    array = Array(header.element, header.shape[::-1], **fields)
    if header.fields["mode"] == PACKED:
        array.storage["encoding"] = "4 bits"
    return Bundle([array], notes=notes)


def _halves(source: Source, header: Header) -> Any:
    """Return the array source of elements of 4 bits, the first in the low half of a byte.

    Rows are padded to whole bytes.
    """
    import numpy as np

    from raconvert.arrays.sources import Decoded

    nx = header.fields["size"][0]
    row = (nx + 1) // 2

    class Halves(Decoded):
        def stream(self, max_bytes: int) -> Iterator[Any]:
            rows_at_once = max(1, min(max_bytes // max(nx, 1), 1 + (1 << 20) // row))
            rows = header.nbytes // row
            for first in range(0, rows, rows_at_once):
                count = min(rows_at_once, rows - first)
                data = source.read_exact(header.offset + first * row, count * row, "the data")
                packed = np.frombuffer(data, np.uint8).reshape(count, row)
                pairs = np.stack([packed & 15, packed >> 4], axis=-1).reshape(count, 2 * row)
                values = np.ascontiguousarray(pairs[:, :nx]).reshape(-1)
                step = max(1, max_bytes)
                for at in range(0, values.size, step):
                    yield values[at : at + step]

    return Halves(
        header.shape, dtype_of(header.element), what=f"'{source.path}': its elements of 4 bits",
        max_memory=source.max_memory,
    )  # fmt: skip


def _metadata(source: Source, header: Header, notes: list[str]) -> Metadata:
    """Return the metadata of a header; the namespace has what the common fields do not say."""
    fields, rank = header.fields, len(header.shape)
    own: dict[str, Any] = {}
    if sorted(fields["map"]) != [1, 2, 3]:
        notes.append(f"MAPC, MAPR, MAPS are {fields['map']}: taken for 1, 2, 3")
    place = {name: fields[name] for name in PLACE}
    kind = _kind_of(fields, rank)
    axes, space = _placed(place, rank, kind)
    # The fields are recorded only if writing the axes and the space would give others.
    rewritten = _place_of(axes, space, header.shape[::-1], kind)[0]
    rounded = {**place, "cell": tuple(map(_single, place["cell"]))}
    sound = sorted(place["map"]) == [1, 2, 3] and min(*place["intervals"], *place["cell"]) >= 0
    sound = sound and all(isfinite(n) for numbers in place.values() for n in numbers)
    if sound and rounded != rewritten:
        own["place"] = {name: list(numbers) for name, numbers in place.items()}
    if kind == STACK and rank == 3:
        own["kind"] = "stack"
    if fields["ispg"] not in (STACK, VOLUME, VOLUMES):
        own["ispg"] = fields["ispg"]
    if nsymbt := fields["nsymbt"]:
        if nsymbt > source.limits.record_bytes:
            notes.append(f"an extended header of {nsymbt} bytes is left out, as it is too large")
        else:
            own["extended"] = source.read_exact(HEADER_BYTES, nsymbt, "the extended header").hex()
            own["exttyp"] = fields["extra"][EXTTYP_AT : EXTTYP_AT + 4].decode("latin-1")
    extra = bytearray(fields["extra"])
    extra[EXTTYP_AT : VERSION_AT + 4] = bytes(8)
    if any(extra):
        own["extra"] = extra.hex()
    if header.order == ">" and ("extended" in own or "extra" in own):
        own["byteorder"] = "big"
    return Metadata(
        _text(fields) or None, axes=axes[::-1] if any(axes) else (), space=space,
        formats={NAMESPACE: own} if own else None,
    )  # fmt: skip


def _text(fields: Mapping[str, Any]) -> str:
    """Return the labels in use, a line each."""
    raw = fields["labels"]
    count = max(0, min(fields["nlabl"], LABELS))
    parts = (raw[at * LABEL_BYTES : (at + 1) * LABEL_BYTES] for at in range(count))
    lines = (part.partition(b"\0")[0].decode("latin-1").rstrip() for part in parts)
    return "\n".join(line for line in lines if line)


# Writing -----------------------------------------------------------------------------------------


class _Made(Record):
    """The fields of a header, its extended header and byte order, and what is lost."""

    fields: dict[str, Any]
    extended: bytes
    order: str
    lost: list[str]


def plan(bundle: Bundle, *, kind: str = "auto", statistics: str = "no") -> Plan:
    """Plan a header with what it can hold of the metadata, and the elements."""
    array = bundle.arrays[0]
    fits = _fits(array, kind)
    return Plan(
        [*fits, *file_fits(bundle, "MRC")],
        lambda target: _write(array, target, kind, statistics == "yes"),
        names=bundle.names,
    )


def _fits(array: Array, kind: str) -> list[Fit]:
    """List what of an array MRC changes, loses or refuses."""
    name, fits = array.name, []
    if (array.element.kind, array.element.nbytes) not in MODE_OF:
        wider = WIDER.get(array.element.kind, "float32")
        fits.append(refused_type(array, "MRC", wider))
    volumes = prod(array.dims[2:]) if array.ndim > 2 else 1
    if 0 in array.dims or array.ndim > MAX_RANK:
        fits.append(refused(name, "shape", f"MRC has 1 to {MAX_RANK} axes, none of length 0"))
        return fits
    if max(array.dims, default=1) > MAX_LENGTH or volumes > MAX_LENGTH:
        fits.append(refused(name, "shape", "an axis, or all sections, of 2**31 or more"))
        return fits
    if spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "axes span 2**63 bytes or more"))
        return fits
    if array.ndim < 2:
        fits.append(equivalent(name, "shape", "becomes an image of one row"))
    if kind == "stack" and array.ndim == 3 and array.dims[2] == 1:
        fits.append(equivalent(name, "shape", "a stack of one image is an image in MRC"))
    if array.described and array.meta:
        lost = _made(array, kind).lost
        if lost:
            reason = f"not kept: {', '.join(dict.fromkeys(lost))}"
            fits.append(equivalent(name, "metadata", reason))
    return fits


def _kind(array: Array, asked: str, own: Mapping[str, Any]) -> int:
    """Return STACK, VOLUME or VOLUMES for an array; `asked` is the option `kind`."""
    if array.ndim != 3:
        return STACK if array.ndim < 3 else VOLUMES
    if asked != "auto":
        return STACK if asked == "stack" else VOLUME
    if array.dims[2] == 1:
        return VOLUME
    axes = array.ra_axes if array.described else ()
    of_space = [axis.direction is not None for axis in axes]
    return STACK if own.get("kind") == "stack" or of_space == [True, True, False] else VOLUME


def _made(array: Array, asked: str) -> _Made:
    """Make the header of an array. Raises nothing for what `plan` lets pass."""
    meta = array.meta if array.described else Metadata()
    own = meta.formats.get(NAMESPACE)
    own = own if isinstance(own, dict) else {}
    kind = _kind(array, asked, own)
    dims = (*array.dims, *(1,) * (2 - array.ndim))
    axes = list(array.ra_axes) if array.described and array.ra_axes else [Axis()] * array.ndim
    axes += [Axis()] * (2 - len(axes))
    place, by_axis, lost_space = _place_of(axes, meta.space, dims, kind)
    lost = facts_of_axes(array, by_axis[: array.ndim]) if array.described else []
    lost += lost_space
    place = _as_it_was(own.get("place"), place, len(dims), kind, lost)
    labels, lost_text = _labels(meta.description or "")
    lost += lost_text
    extended, exttyp, extra, order = _kept(own, lost)
    if array.element.kind == "int" and array.element.nbytes == 1 and any(extra[IMOD_AT:]):
        stamp, flags = struct.unpack_from(f"{order}2i", extra, IMOD_AT)
        if stamp == IMOD_STAMP:
            struct.pack_into(f"{order}i", extra, IMOD_AT + 4, flags | IMOD_SIGNED)
    extra[EXTTYP_AT : EXTTYP_AT + 4] = exttyp
    struct.pack_into(f"{order}i", extra, VERSION_AT, VERSION)
    group = own.get("ispg")
    groups = {VOLUME: VOLUME_GROUPS, VOLUMES: VOLUMES_GROUPS}.get(kind, range(0))
    known = {"place", "kind", "ispg", "extended", "exttyp", "extra", "byteorder"}
    lost += [f"mrc {key}" for key in own if key not in known]
    lost += facts_of(array, "description", "axes", "space", NAMESPACE) if array.described else []
    fields = {
        **place,
        "size": (dims[0], dims[1], prod(dims[2:])),
        "mode": MODE_OF.get((array.element.kind, array.element.nbytes), 0),
        "statistics": UNDETERMINED,
        "rms": -1.0,
        "ispg": group if type(group) is int and group in groups else kind,
        "nsymbt": len(extended),
        "extra": bytes(extra),
        "nlabl": len(labels),
        "labels": b"".join(label.ljust(LABEL_BYTES, b"\0") for label in labels).ljust(800, b"\0"),
    }
    return _Made(fields, extended, order, lost)


def _as_it_was(
    kept: Any, place: dict[str, Any], rank: int, kind: int, lost: list[str]
) -> dict[str, Any]:
    """Return the fields of a place as a file had them, if they still mean the same; else `place`.

    Fields that no header holds are named in `lost`.
    """
    if kept is None:
        return place
    recorded = _recorded(kept)
    if recorded is None:
        lost.append("mrc place")
        return place
    same_depth = recorded["intervals"][2] == place["intervals"][2] or kind != VOLUMES
    return recorded if same_depth and _mean_the_same(recorded, place, rank, kind) else place


def _recorded(kept: Any) -> dict[str, Any] | None:
    """Return the fields of a place in a namespace; None if no header holds them."""
    if not isinstance(kept, dict) or not all(are_reals(kept.get(k), n) for k, n in PLACE.items()):
        return None
    try:
        recorded = {name: tuple(map(int if name in WHOLE else float, kept[name])) for name in PLACE}
        for name, numbers in recorded.items():
            struct.pack("<3i" if name in WHOLE else "<3f", *numbers)
    except (struct.error, OverflowError):
        return None
    return recorded


def _mean_the_same(place: dict[str, Any], other: dict[str, Any], rank: int, kind: int) -> bool:
    """True if the fields of two places describe the same axes and the same space."""
    (axes, space), (other_axes, other_space) = (
        _placed(fields, rank, kind) for fields in (place, other)
    )
    world = World.of(axes, space)
    if world is None or not world.is_same(World.of(other_axes, other_space)):
        return False
    pairs = [*zip(axes, other_axes, strict=True)]
    return all(axis.units == twin.units for axis, twin in pairs) and all(
        (axis.spacing or 0) == (twin.spacing or 0) for axis, twin in pairs if axis.direction is None
    )


def _labels(text: str) -> tuple[list[bytes], list[str]]:
    """Return the lines of a description as labels, and the fields lost.

    If one line cannot be a label, the whole description is lost.
    """
    lines = text.split("\n") if text else []
    fine = len(lines) <= LABELS and all(
        line and len(line) <= LABEL_BYTES and line == line.rstrip() and line.isascii()
        and line.isprintable() for line in lines
    )  # fmt: skip
    return ([line.encode() for line in lines], []) if fine else ([], ["description"])


def _kept(own: Mapping[str, Any], lost: list[str]) -> tuple[bytes, bytes, bytearray, str]:
    """Return the extended header, its type, EXTRA and the byte order that the namespace has.

    What has a wrong form is named in `lost`.
    """
    parts = {}
    for name, most in (("extended", MAX_LENGTH), ("extra", 100)):
        try:
            parts[name] = bytes.fromhex(own.get(name, ""))
        except (TypeError, ValueError):
            parts[name] = b""
        if name in own and (not parts[name] or len(parts[name]) > most):
            parts[name] = b""
            lost.append(f"mrc {name}")
    kept_type = own.get("exttyp", "")
    exttyp = kept_type.encode("latin-1", "replace") if isinstance(kept_type, str) else b""
    order = ">" if own.get("byteorder") == "big" and any(parts.values()) else "<"
    exttyp = exttyp[:4].ljust(4, b"\0") if parts["extended"] else bytes(4)
    return parts["extended"], exttyp, bytearray(parts["extra"].ljust(100, b"\0")), order


def _write(array: Array, target: Target, kind: str, statistics: bool) -> None:
    from raconvert.arrays.blocks import write_raw
    from raconvert.arrays.reinterpret import big_endian

    made = _made(array, kind)
    fields = made.fields
    if statistics:
        fields = {**fields, **_statistics(array, target.max_memory)}
    header = _packed(fields, made.order) + made.extended
    write_raw(target, header, big_endian(array) if made.order == ">" else array)


def _statistics(array: Array, max_memory: int) -> dict[str, Any]:
    """Return the fields of minimum, maximum, mean and RMS deviation of real numbers.

    Empty (undetermined) for complex numbers, and if any number is NaN or infinite.
    """
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks

    if array.element.kind == "complex":
        return {}
    low, high, total, squares = float("inf"), float("-inf"), 0.0, 0.0
    with np.errstate(all="ignore"):
        for block in blocks(array, min(block_bytes(max_memory), 1 << 22)):
            values = block.astype(np.float64)
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            total += float(values.sum())
            squares += float((values * values).sum())
        mean = total / array.count
        rms = sqrt(max(0.0, squares / array.count - mean * mean)) if isfinite(squares) else -1.0
    numbers = (low, high, mean, rms)
    if not all(isfinite(n) and isfinite(_single(n)) for n in numbers) or rms < 0:
        return {}
    return {"statistics": numbers[:3], "rms": rms}
