"""RA (RawArray) behind the plugin contract: read and write, like any other format.

Specification: the README of RawArray.jl and davidssmith/ra ("File Structure", "Elemental Type
Specification"); dialects as the C, Julia and Rust implementations write them. Layout and checks:
`raconvert.ra.header`.

Reads: every type code and width, big-endian data (flag bit 0), LZ4 blocks (C), LEB128 varints and
BitArrays (Julia), Julia's raw floats behind flag bit 1, trailers, user types. Plain data is never
read here: the array carries an extent, to be mapped or copied file to file.

Writes: flags 0, little-endian, uncompressed, no trailer, which every public reader opens; on
request ``encoding=lz4|leb128|bits``.

Mapping: `dims` are the header's, index order unknown (None) unless a sidecar says F. Widths that
numpy does not have (128-bit integers and floats, complex32) are carried as bytes or float16 pairs
with their type in the ``ra`` namespace of the metadata, and written back as they were. A trailer
is kept in the same namespace and preserved from RA to RA; if it is YAML metadata that raconvert
wrote (``--meta trailer``), it is read as such.

Refused: unknown flag bits (unless ``unknown_flags=yes``), unknown element types, widths of no
known type, sizes that contradict the dimensions, data that is cut off.
"""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import little
from raconvert.arrays.raw import write_raw
from raconvert.errors import TooLarge
from raconvert.files.copy import SLAB_BYTES, copy_extent, extent_slabs, write_all
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Extent,
    Format,
    Metadata,
    Option,
    Plan,
    Source,
    refused,
)
from raconvert.ra.dialect import AUTO, decide
from raconvert.ra.header import (
    BITARRAY,
    BITS,
    ENCODED,
    LEB128,
    LZ4,
    MAGIC,
    RAW,
    Header,
    NeedMore,
    carrier,
    data_offset,
    encodings_of,
    header_of,
    is_carried,
    pack,
    uncarried,
    unpack,
)
from raconvert.ra.namespace import NAME, own_of, trailer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

_SAMPLE = pack(Header(0, 2, 1, 3, (3,))) + b"\x01\x02\x03"

FORMAT = Format(
    name=NAME,
    title="RA (RawArray)",
    raw_bools=True,
    suffixes=(".ra",),
    magic=((0, MAGIC),),
    proof=True,
    stream=True,
    meta="all",
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


def read(source: Source, *, unknown_flags: bool = False, encoding: str = AUTO) -> Bundle:
    """Return the one array of an RA file, named after the file's stem.

    Shape: `dims` as listed (fastest axis first), `index_order` None. Raises `Corrupt` and
    `Unsupported` as described in `raconvert.ra.header`, before any data is read.
    """
    header = read_header(source, unknown_flags=unknown_flags)
    notes: list[str] = []
    candidates = encodings_of(header, source.size, source.path)
    if candidates != (RAW,) or encoding != AUTO:
        encoding = decide(source, header, candidates, encoding, notes)
    else:
        encoding = RAW
    element, dims, swap = carrier(header)
    own: dict[str, Any] = {}
    if is_carried(header):
        own.update(eltype=header.eltype, elbyte=header.elbyte)
    offset = data_offset(len(header.dims))
    array = Array(element, dims, name=source.stem)
    array.meta = Metadata(formats={NAME: own})
    if encoding == RAW:
        array.extent = source.extent(offset, header.size, swap)
    else:
        # Late, since a sidecar may say by then what is inside user elements.
        array.data = lambda: _Encoded(source, header, encoding, array.element, dims, swap)
    end = offset + header.size
    if encoding != LEB128 and source.size > end:
        trailer = source.extent(end, source.size - end)
        trailer.checksum = None  # it passes, and is compared, together with the data
        array.meta.formats[NAME]["trailer"] = trailer
    return Bundle([array], notes=notes)


class _Encoded:
    """Array source over an encoded data segment, decoded front to back."""

    def __init__(
        self,
        source: Source,
        header: Header,
        encoding: str,
        element: Any,
        dims: tuple[int, ...],
        swap: int,
    ) -> None:
        from raconvert.arrays.dtypes import dtype_of

        self.shape = dims[::-1]
        self.dtype = dtype_of(little(element))
        self._source = source
        self._header = header
        self._encoding = encoding
        self._element = element
        self._swap = swap
        self._values: np.ndarray[Any, Any] | None = None
        self.decoding_bytes = 0  # that decoding holds at once, beside what it yields piece by piece
        if encoding == LZ4:
            from raconvert.ra import lz4

            nbytes = prod(header.dims) * header.elbyte
            self.decoding_bytes = lz4.memory_to_decode(header.size, nbytes)

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield little-endian one-dimensional pieces in stored order."""
        decode = {LZ4: self._lz4, LEB128: self._leb128, BITARRAY: self._bits}[self._encoding]
        yield from decode(max_bytes)

    def __getitem__(self, key: Any) -> Any:
        if self._values is None:
            import numpy as np

            from raconvert.arrays.blocks import LARGEST_BLOCK
            from raconvert.arrays.memory import check_memory

            count = prod(self.shape)
            what = f"'{self._source.path}': decoding it whole"
            need = count * self.dtype.itemsize + self.decoding_bytes
            check_memory(need, self._source.max_memory, what)
            pieces = [piece.copy().view("u1") for piece in self.stream(LARGEST_BLOCK)]
            flat = np.concatenate([np.empty(0, "u1"), *pieces])
            self._values = flat.view(self.dtype).reshape(self.shape)
        return self._values[key]

    def _lz4(self, _: int) -> Iterator[np.ndarray[Any, Any]]:
        import numpy as np

        from raconvert.files.copy import swap_in_place
        from raconvert.ra import lz4

        nbytes = prod(self._header.dims) * self._header.elbyte
        offset = data_offset(len(self._header.dims))
        need = self.decoding_bytes
        if need > self._source.max_memory:
            raise TooLarge(
                f"an LZ4 block must be decoded whole, which needs {need} bytes",
                path=self._source.path,
                expected=f"at most {self._source.max_memory} (--max-memory)",
                remedy=f"allow it with --max-memory {-(-need // (1 << 20))}M",
            )
        block = self._source.read_exact(offset, self._header.size, "the LZ4 block")
        plain = lz4.decode(block, nbytes, path=self._source.path, offset=offset)
        if self._swap > 1:
            swap_in_place(memoryview(plain), self._swap)
        yield np.frombuffer(plain, self.dtype)

    def _leb128(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        from raconvert.ra import leb128

        with _open_at(self._source, self._header) as file:
            yield from leb128.decode_blocks(
                file.read,
                prod(self._header.dims),
                self._element.kind,
                self._element.nbytes,
                path=self._source.path,
                offset=data_offset(len(self._header.dims)),
                max_bytes=max_bytes,
            )

    def _bits(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        from raconvert.ra import bits

        with _open_at(self._source, self._header) as file:
            yield from bits.decode_blocks(
                file.read,
                prod(self._header.dims),
                path=self._source.path,
                offset=data_offset(len(self._header.dims)),
                max_bytes=max_bytes,
            )


def _open_at(source: Source, header: Header) -> FileIO:
    file = source.open()
    file.seek(data_offset(len(header.dims)))
    return file


_ENCODABLE = {LEB128: ("int", "uint", "bool"), BITARRAY: ("bool",)}


def plan(bundle: Bundle, *, encoding: str = RAW) -> Plan:
    """Everything in the core fits RA; only an encoding may not suit the element type."""
    found = []
    for array in bundle.arrays:
        kinds = _ENCODABLE.get(encoding)
        if kinds and array.element.kind not in kinds:
            reason = f"encoding {encoding} holds {', '.join(kinds)}, not {array.element.kind}"
            found.append(refused(array.name, "encoding", reason, "--out-opt encoding=none"))
        if encoding == LEB128 and trailer_of(array.meta) is not None:
            reason = "a trailer cannot follow LEB128 data, which runs to the end of the file"
            found.append(refused(array.name, "trailer", reason, "--meta drop"))
    return Plan(found, lambda target: write(bundle, target, encoding=encoding), names=bundle.names)


def write(bundle: Bundle, target: Target, *, encoding: str = RAW) -> None:
    """Write the one array of the bundle, in stored order, little-endian."""
    array = bundle.arrays[0]
    own = own_of(array.meta)
    header = uncarried(header_of(little(array.element), array.dims), own)
    if encoding == RAW:
        file = write_raw(target, pack(header), array)
    else:
        file = _write_encoded(array, header, encoding, target)
    trailer = _trailer(array)
    if isinstance(trailer, Extent):
        copy_extent(b"", trailer, file)
    else:
        write_all(file, [trailer])


def pieces(array: Array, blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield what an .ra of the array consists of: header, its `blocks` as bytes, trailer."""
    own = own_of(array.meta)
    yield pack(uncarried(header_of(little(array.element), array.dims), own))
    for block in blocks:
        yield block.reshape(-1).view("u1")
    trailer = _trailer(array)
    if isinstance(trailer, Extent):
        yield from extent_slabs(trailer, SLAB_BYTES)
    elif trailer:
        yield trailer


def size_of(array: Array) -> int:
    """Return the size in bytes of the .ra that `pieces` yields."""
    trailer = _trailer(array)
    behind = trailer.nbytes if isinstance(trailer, Extent) else len(trailer)
    return header_size(array) + array.nbytes + behind


def _trailer(array: Array) -> Extent | bytes:
    """The bytes after the data; metadata from elsewhere may hold anything in their place."""
    trailer = own_of(array.meta).get("trailer", b"")
    return trailer if isinstance(trailer, Extent | bytes) else b""


def header_size(array: Array) -> int:
    """The offset of the data in the .ra that `pieces` yields."""
    own = own_of(array.meta)
    return len(pack(uncarried(header_of(little(array.element), array.dims), own)))


def _write_encoded(array: Array, header: Header, encoding: str, target: Target) -> FileIO:
    from raconvert.arrays.blocks import block_bytes, blocks

    file = target.open()
    pieces = target.counted(blocks(array, block_bytes(target.max_memory)))
    if encoding == LZ4:
        from raconvert.ra import lz4

        need = lz4.memory_to_encode(array.nbytes)
        if need > target.max_memory:
            raise TooLarge(
                f"an LZ4 block must be encoded whole, which needs {need} bytes",
                path=target.path,
                expected=f"at most {target.max_memory} (--max-memory)",
                remedy=f"allow it with --max-memory {-(-need // (1 << 20))}M",
            )
        plain = bytearray()
        for piece in pieces:
            plain += memoryview(piece.reshape(-1).view("u1"))
        block = lz4.encode(plain)
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
