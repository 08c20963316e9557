"""RA (RawArray) behind the plugin contract: read and write, like any other format.

Specification: the README of RawArray.jl and davidssmith/ra ("File Structure", "Elemental Type
Specification"); dialects as the C, Julia and Rust implementations write them. Layout and checks:
`raconvert.ra.header`.

Reads: every type code and width, big-endian data (flag bit 0), LZ4 blocks (C), LEB128 varints and
BitArrays (Julia), Julia's raw floats behind flag bit 1, trailers, user types. Unencoded data is
never read here: the array carries an extent, to be mapped or copied file to file.

Writes: flags 0, little-endian, uncompressed, no trailer, which every public reader opens; on
request ``encoding=lz4|leb128|bits``.

Mapping: `dims` are the header's, index order unknown (None) unless a sidecar says F. Widths that
numpy does not have (128-bit integers and floats, complex32) are carried as bytes or float16 pairs
with their type in the ``ra`` namespace of the metadata, and written back as they were. A trailer
is kept in the same namespace and preserved from RA to RA; if it is YAML metadata that raconvert
wrote (``--meta trailer``), it is read as such. Bytes after LEB128 data, whose end only decoding
shows, are counted in a note.

Refused: unknown flag bits (unless ``unknown_flags=yes``), unknown element types, widths of no
known type, sizes that contradict the dimensions, data that is cut off.
"""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle, raw_alike
from raconvert.arrays.dtypes import FLOAT8, MAX_SPAN, element, little, spanned
from raconvert.arrays.metadata import RA
from raconvert.errors import TooLarge
from raconvert.plugin import (
    MODEL,
    NO,
    SURE,
    Extent,
    Fit,
    Format,
    Metadata,
    Option,
    Plan,
    Source,
    equivalent,
    refused,
    refused_type,
)
from raconvert.ra.header import (
    AUTO,
    BITARRAY,
    BITS,
    ENCODED,
    LEB128,
    LZ4,
    MAGIC,
    RAW,
    Header,
    NeedMore,
    canonical,
    canonical_header,
    carrier,
    data_offset,
    encodings_of,
    is_carried,
    pack,
    unpack,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import FileIO
    from typing import Any

    from raconvert.arrays.sources import ArraySource
    from raconvert.plugin import Target


_SAMPLE = pack(Header(0, 2, 1, 3, (3,))) + b"\x01\x02\x03"

FORMAT = Format(
    name=RA,
    title="RA (RawArray)",
    raw_bools=True,
    float8=FLOAT8,
    suffixes=(".ra",),
    magic=((0, MAGIC),),
    proof=True,
    stream=True,
    meta="all",
    holds=MODEL,
    index_orders="",
    sidecar="auto",
    trailer=True,
    read_options=(
        Option("unknown_flags", False, bool, "read on when the header has unknown flag bits"),
        Option(
            "encoding",
            AUTO,
            (AUTO, RAW, LZ4, LEB128),
            "which it is, where data that is flagged as encoded fits several",
        ),
    ),
    write_options=(
        Option(
            "encoding",
            RAW,
            (RAW, LZ4, LEB128, BITARRAY),
            "none opens everywhere; lz4 as the C tool, leb128 (integers) and bits (bool) as Julia",
        ),
        Option("profile", RAW, (RAW, "bart"), "bart: complex64 of 16 axes, as BART reads .ra"),
    ),
    samples={"three_bytes.ra": _SAMPLE},
    spec="https://github.com/davidssmith/RawArray.jl (README)",
    losses="objects and long doubles are refused; everything else is exact, metadata in a sidecar",
)


def sniff(source: Source) -> int:
    """Sure by the magic `rawarray`."""
    return SURE if source.head.startswith(MAGIC) else NO


def read_header(source: Source, *, unknown_flags: bool = False) -> Header:
    """Return the checked header of an RA file."""
    try:
        return unpack(source.head, source.size, source.path, unknown_flags=unknown_flags)
    except NeedMore as more:
        head = source.read_at(0, more.args[0])
        return unpack(head, source.size, source.path, unknown_flags=unknown_flags)


def data_range(source: Source) -> tuple[int, int, dict[str, Any]]:
    """Return begin and end of the data of a file, and the header fields that a sidecar repeats."""
    header = read_header(source, unknown_flags=True)
    start = data_offset(len(header.dims))
    fields = {"eltype": header.eltype, "elbyte": header.elbyte, "dims": list(header.dims)}
    return start, min(start + header.size, source.size), {**fields, "size": header.size}


def read(source: Source, *, unknown_flags: bool = False, encoding: str = AUTO) -> Bundle:
    """Return the one array of an RA file, named after the file's stem.

    Shape: `dims` as listed (fastest axis first), `index_order` None. Raises `Corrupt` and
    `Unsupported` as described in `raconvert.ra.header`, before any data is read.
    """
    header = read_header(source, unknown_flags=unknown_flags)
    notes: list[str] = []
    candidates = encodings_of(header, source.size, source.path)
    if candidates != (RAW,) or encoding != AUTO:
        from raconvert.ra.dialect import decide

        encoding = decide(source, header, candidates, encoding, notes)
    else:
        encoding = RAW
    element, dims, swap = carrier(header)
    own: dict[str, Any] = {}
    if is_carried(header):
        own.update(eltype=header.eltype, elbyte=header.elbyte)
    offset = data_offset(len(header.dims))
    array = Array(element, dims, name=source.stem)
    if encoding == RAW:
        array.extent = source.extent(offset, header.size, swap)
    else:

        def decoded() -> ArraySource:  # called late: a sidecar may change `array.element` before
            from raconvert.ra.encoded import BY_ENCODING

            return BY_ENCODING[encoding](source, header, array.element, dims, swap, notes)

        array.data = decoded
    end = offset + header.size
    if encoding != LEB128 and source.size > end:
        trailer = source.extent(end, source.size - end)
        trailer.checksum = None  # it passes, and is compared, together with the data
        own["trailer"] = trailer
    if own:
        array.meta = Metadata(formats={RA: own})
    alike = raw_alike(source, array) if candidates == (RAW,) else None
    return Bundle([array], notes=notes, alike=alike)


_ENCODABLE = {LEB128: ("int", "uint", "bool"), BITARRAY: ("bool",)}


def plan(bundle: Bundle, *, encoding: str = RAW, profile: str = RAW) -> Plan:
    """Plan an RA file: everything in the core fits; only an encoding may not suit the type.

    Programs that read some .ra only have a `profile` (`raconvert.ra.plugin`).
    """
    problems = []
    if profile != RAW:
        problems = [fit for array in bundle.arrays for fit in fits(array)]
        bundle = padded(bundle)
    for array in bundle.arrays:
        problems += span_fits(array, encoding)
        kinds = _ENCODABLE.get(encoding)
        if kinds and array.element.kind not in kinds:
            reason = f"encoding {encoding} holds {', '.join(kinds)}, not {array.element.kind}"
            problems.append(refused(array.name, "storage", reason, "--out-opt encoding=none"))
        if encoding == LEB128 and _own(array).get("trailer") is not None:
            reason = "a trailer cannot follow LEB128 data, which runs to the end of the file"
            problems.append(refused(array.name, "metadata", reason, "--meta drop"))
    copied = encoding == RAW and not any(_trailer(array) for array in bundle.arrays)
    return Plan(
        problems,
        lambda target: write(bundle, target, encoding=encoding),
        names=bundle.names,
        header=(lambda: canonical_header(bundle.arrays[0])) if copied else None,
    )


def span_fits(array: Array, encoding: str = RAW) -> list[Fit]:
    """List a refusal if the dims of an array, empty axes left out, are too long for RA readers."""
    element_bytes = 8 if encoding == BITARRAY else array.element.nbytes
    too_far = spanned(array.dims, element_bytes) > MAX_SPAN
    reason = "axes span 2**63 bytes or more, empty ones left out; RA readers refuse that"
    return [refused(array.name, "shape", reason)] * too_far


def write(bundle: Bundle, target: Target, *, encoding: str = RAW) -> None:
    """Write the one array of the bundle, in stored order, little-endian."""
    array = bundle.arrays[0]
    if encoding == RAW and array.extent is not None:  # by far the most: nothing is decoded
        file = target.copied(canonical_header(array), array.extent)
    elif encoding == RAW:
        from raconvert.arrays.blocks import write_raw

        file = write_raw(target, canonical_header(array), array)
    else:
        file = _write_encoded(array, canonical(array), encoding, target)
    trailer = _trailer(array)
    if isinstance(trailer, Extent):
        from raconvert.files.copy import copy_extent

        copy_extent(b"", trailer, file)
    elif trailer:
        from raconvert.files.copy import write_all

        write_all(file, [trailer])


def pieces(array: Array, blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the bytes of an .ra of the array: header, its `blocks`, trailer."""
    yield canonical_header(array)
    for block in blocks:
        yield block.reshape(-1).view("u1")
    trailer = _trailer(array)
    if isinstance(trailer, Extent):
        from raconvert.files.copy import SLAB_BYTES, extent_slabs

        yield from extent_slabs(trailer, SLAB_BYTES)
    elif trailer:
        yield trailer


def size_of(array: Array) -> int:
    """Return the size in bytes of the .ra that `pieces` yields."""
    trailer = _trailer(array)
    behind = trailer.nbytes if isinstance(trailer, Extent) else len(trailer)
    return header_size(array) + array.nbytes + behind


def _trailer(array: Array) -> Extent | bytes:
    """Return the bytes after the data; metadata from elsewhere may hold any other value."""
    trailer = _own(array).get("trailer", b"")
    return trailer if isinstance(trailer, Extent | bytes) else b""


def header_size(array: Array) -> int:
    """Return the offset of the data in the .ra that `pieces` yields."""
    return len(canonical_header(array))


def _own(array: Array) -> Mapping[str, Any]:
    """Return the metadata in the namespace of RA."""
    if not array.described or RA not in array.meta.formats:
        return {}
    from raconvert.arrays.metadata import own_of

    return own_of(array.meta)


def _write_encoded(array: Array, header: Header, encoding: str, target: Target) -> FileIO:
    """Write header and encoded data; return the open file. Raises `TooLarge` for LZ4."""
    from raconvert.arrays.blocks import block_bytes, blocks
    from raconvert.files.copy import write_all

    file = target.open()
    pieces = target.counted(blocks(array, block_bytes(target.max_memory)))
    if encoding == LZ4:
        from raconvert.ra import lz4

        need = lz4.memory_to_encode(array.nbytes)
        if need > target.max_memory:
            raise TooLarge(
                f"an LZ4 block must be encoded whole, which needs {need} bytes",
                path=target.path,
                expected=f"at most {target.max_memory} (`--max-memory`)",
                remedy=f"allow it with `--max-memory {-(-need // (1 << 20))}M`",
            )
        decoded = bytearray()
        for piece in pieces:
            decoded += memoryview(piece.reshape(-1).view("u1"))
        block = lz4.encode(decoded)
        write_all(file, [pack(header._replace(flags=ENCODED, size=len(block))), block])
    elif encoding == LEB128:
        from raconvert.ra import leb128

        write_all(file, [pack(header._replace(flags=ENCODED))])
        write_all(file, leb128.encode_blocks(pieces))
    else:
        from raconvert.ra import bits

        size = -(-array.count // 64) * 8
        write_all(file, [pack(header._replace(flags=ENCODED | BITS, elbyte=8, size=size))])
        write_all(file, bits.encode_blocks(pieces))
    return file


# The form of .ra that BART reads: complex64 of 16 axes, the fastest first ------------------------
# BART (the toolbox for magnetic resonance) takes no other element type and no other number of
# axes; of an array with fewer it has axes of length 1 behind the others. Tried with the program
# itself.


ELEMENT = element("complex", 8)
AXES = 16


def fits(array: Array) -> list[Fit]:
    """List the properties that BART cannot read, and the axes that are added. Raises nothing."""
    name, problems = array.name, []
    if little(array.element) != ELEMENT:
        problems.append(refused_type(array, "BART's .ra", "complex64"))
    if array.ndim > AXES or 0 in array.dims:
        problems.append(refused(name, "shape", f"BART has {AXES} axes, none of length 0"))
    elif array.ndim < AXES:
        reason = f"axes of length 1 are added, behind the others, for BART's {AXES}"
        problems.append(equivalent(name, "shape", reason))
        if _describes_axes(array):
            reason = "metadata of the axes is not of all 16"
            problems.append(refused(name, "metadata", reason, "--meta drop"))
    return problems


def _describes_axes(array: Array) -> bool:
    """True if an array has metadata of its axes."""
    if not array.described:
        return False
    spaces = array.meta.formats.values()
    return bool(array.meta.axes or any(space.get("axes") for space in spaces))


def padded(bundle: Bundle) -> Bundle:
    """Return the bundle with 16 axes in each array; the data stays as it is."""
    arrays = []
    for array in bundle.arrays:
        data, extent = array.source, array.extent
        dims = (*array.dims, *(1,) * (AXES - array.ndim))
        arrays.append(array.replace(dims=dims, extent=extent))
        arrays[-1].data = data
    return bundle.like(arrays)
