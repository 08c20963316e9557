"""Files that Julia wrote with JLD2 or its forerunner JLD: their own forms of HDF5.

Source: JLD2.jl 0.6.5, src/file_header.jl, dataspaces.jl, datasets.jl, data/number_types.jl, and its
history. Dims are written reversed, as HDF5.jl does. Before version 0.2 (2020) JLD2 began its files
as JLD does. Bools are bitfields of one byte; before 0.3.3 they were a named opaque type, which only
its attribute `julia_type` distinguishes. An array without axes is one of length 1 with an attribute
`dimensions` of no elements.

Compressed arrays are one chunk. Up to 0.6.5 the lengths of that chunk take 8 bytes each, where HDF5
2.0 accepts no more bytes than they need and does not open the dataset. So they are read here.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct
from struct import error as struct_error

from h5py import h5l, h5o, h5t

from .files import FAILURES
from .ondisk.header import (
    ADDRESS_BYTES,
    DATASPACE,
    FILTERS,
    LAYOUT,
    NOWHERE,
    attribute_data,
    chunked,
    datatype_of,
    lengths_of,
    messages,
    named_type,
    sequences,
)
from .walk import links_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .files import File
    from .tables import Attributes

MARKS = (b"HDF5-based Julia Data Format", b"Julia data file (HDF5)")
MARK_BYTES = 512  # the mark opens a block of so many bytes before the superblock
TYPES = "_types"  # the group of named datatypes beside the data
DIMENSIONS = "dimensions"
JULIA_TYPE = b"julia_type"  # a name and parameters, both of variable length
BOOL = b"Core.Bool"

NUMBER_BYTES = {0: 12, 1: 20, 4: 12}  # messages of integers, floats, bitfields by their class
ENCODED = b"\x03\x00"  # the first bytes of H5Tencode's result: number of the message, version
SINGLE, FILTERED = 1, 2  # chunk index; flag of that index
_SINGLE = Struct("<QIQ")  # stored bytes, filter mask, address
_PAIR = Struct("<HH")
NAMED_FROM = 256  # filters from here on have a name

DAMAGED: tuple[type[Exception], ...] = (*FAILURES, struct_error)

# A dataset of one chunk: HDF5 type, shape, filters as ((number, client values), ...), and offset,
# stored bytes and filter mask of the chunk.
Packed = namedtuple("Packed", "tid shape filters offset stored mask")


def is_julia(file: File) -> bool:
    """True if the block before the superblock is that of JLD2 or JLD."""
    at = file.userblock - MARK_BYTES
    return at >= 0 and file.source.read_at(at, 64).startswith(MARKS)


def take_shape(shape: tuple[int, ...], attributes: Attributes) -> tuple[int, ...]:
    """The shape of an array; () if an attribute, which is removed, says that it has no axes."""
    if shape == (1,) and attributes.values.get(DIMENSIONS) == []:
        del attributes.values[DIMENSIONS]
        attributes.types.pop(DIMENSIONS, None)
        return ()
    return shape


def is_opaque_bool(tid: h5t.TypeID, file: File, address: int) -> bool:
    """True if elements are bools as JLD2 wrote them before it used bitfields."""
    if tid.get_class() != h5t.OPAQUE or tid.get_size() != 1 or file.address_bytes != ADDRESS_BYTES:
        return False
    named = named_type(file, address)
    raw = None if named is None else attribute_data(file, named).get(JULIA_TYPE)
    return raw is not None and sequences(raw, 1, file, 1) == [BOOL]


def packed_of(file: File, address: int) -> Packed | None:
    """The facts of a dataset that is one filtered chunk, from its header; None for others.

    The offset counts from the beginning of the file.
    """
    if file.address_bytes != ADDRESS_BYTES:
        return None
    bodies = dict(messages(file, address))
    try:
        chunk, stored, mask, at = _single_chunk(bodies[LAYOUT])
        shape = lengths_of(bodies[DATASPACE])
        filters = _pipeline(bodies[FILTERS])
        tid = _type(file, address)
    except DAMAGED:
        return None
    if tid is None or shape is None or chunk != (*shape, tid.get_size()) or at == NOWHERE:
        return None
    if shape == (1,) and attribute_data(file, address).get(DIMENSIONS.encode()) == b"":
        shape = ()
    return Packed(tid, shape, filters, file.userblock + at, stored, mask)


def _type(file: File, address: int) -> h5t.TypeID | None:
    """The type of a dataset that cannot be opened: a named one, or a number."""
    named = named_type(file, address)
    if named is not None:
        links = links_of(file, b"/" + TYPES.encode())
        names = [name for name, kind, at in links if (kind, at) == (h5l.TYPE_HARD, named)]
        return h5o.open(file.fid, b"/".join((TYPES.encode(), names[0]))) if names else None
    body = datatype_of(file, address) or b""
    # The library trusts the length of what it decodes: only numbers have a length that is checked.
    if len(body) < NUMBER_BYTES.get(body[0] & 15 if body else -1, len(body) + 1):
        return None
    return h5t.decode(ENCODED + body)


def _single_chunk(body: bytes) -> tuple[tuple[int, ...], int, int, int]:
    """Lengths, stored bytes, filter mask and address."""
    layout = chunked(body)
    if layout is None or layout.index != SINGLE or not layout.flags & FILTERED:
        raise ValueError("another layout")
    return (layout.lengths, *_SINGLE.unpack_from(layout.rest))


def _pipeline(body: bytes) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The filters of a pipeline; IV.A.2.l, version 2."""
    version, count = body[:2]
    if version != 2:
        raise ValueError("another pipeline")
    filters = []
    at = 2
    for _ in range(count):
        number, name = _PAIR.unpack_from(body, at)
        name = name if number >= NAMED_FROM else 0
        at += 4 if number >= NAMED_FROM else 2
        _, values = _PAIR.unpack_from(body, at)  # flags, client values
        at += _PAIR.size + name
        filters.append((number, Struct(f"<{values}I").unpack_from(body, at)))
        at += 4 * values
    return tuple(filters)
