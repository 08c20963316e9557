"""IDX: the format of the MNIST files, one array, read and write, also inside gzip.

Specification: "The IDX file format" at the end of Y. LeCun's page of the MNIST database
(yann.lecun.com/exdb/mnist). Compared with: a reader of 15 lines after that page, in the tests.

Layout::

    offset  size  type       meaning
    0       2     bytes      0 0
    2       1     uint8      type: 08 uint8, 09 int8, 0B int16, 0C int32, 0D float32, 0E float64
    3       1     uint8      number of axes, 1 to 255
    4       4n    uint32 BE  lengths of the axes, the slowest first
    then          bytes      the elements, big-endian, in C order

Reads: all types, plain or in one or more gzip members (the files of MNIST have names such as
``train-images-idx3-ubyte.gz``); they are known by their content, whatever their name is. Elements
of a plain file are an extent; those inside gzip are decoded front to back in bounded memory,
through its CRC-32.

Writes: big-endian; inside gzip where the name ends with ``.gz`` or ``gzip=yes`` asks for it.

Mapping: the lengths are the shape in C order. Big-endian numbers are the same numbers in RA.

Refused: other types (bool and uint16 among them), lengths above 2**32 - 1, data that is cut off.
Bytes after the data are accepted with a note. An array without axes becomes one of length 1.
Writing loses metadata (named as equivalent).
"""

from __future__ import annotations

import struct
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import GZIP, MAX_RATIO, Part, length_mod_32, start_of
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Element,
    Fit,
    Format,
    Option,
    Plan,
    Source,
    element,
    equivalent,
    facts_of,
    file_fits,
    little,
    refused,
    refused_type,
    trailing_note,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target


# The header of an IDX file: bytes to element type and dims, and back -----------------------------


ELEMENTS = {
    0x08: element("uint", 1),
    0x09: element("int", 1),
    0x0B: element("int", 2, ">"),
    0x0C: element("int", 4, ">"),
    0x0D: element("float", 4, ">"),
    0x0E: element("float", 8, ">"),
}
CODES = {(e.kind, e.nbytes): code for code, e in ELEMENTS.items()}
MAGICS = tuple(bytes((0, 0, code)) for code in ELEMENTS)
GZIP_MAGIC = b"\x1f\x8b\x08"
MAX_LENGTH = (1 << 32) - 1
MAX_RANK = 64  # NumPy's; the header has room for 255
MOST_HEADER_BYTES = 4 + 4 * 255


class Header(Record):
    """The header; `offset` and `nbytes` locate the data, after decompression."""

    element: Element
    dims: tuple[int, ...]
    offset: int
    nbytes: int


class Start:
    """The first bytes of a file, decompressed, and the length of the whole (gzip: modulo 2**32)."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.stored = source.size
        self.gzip = source.head.startswith(GZIP_MAGIC)
        self.head = start_of(source, MOST_HEADER_BYTES) if self.gzip else source.head
        # For gzip the length in its last bytes, modulo 2**32
        self.length = length_mod_32(source) if self.gzip else source.size


def parsed(start: Start) -> Header | None:
    """Parse the header from the first bytes; None if they are not one."""
    head = start.head
    if head[:3] not in MAGICS or len(head) < 4 or not 1 <= head[3] <= MAX_RANK:
        return None
    offset = 4 + 4 * head[3]
    if len(head) < offset:
        return None
    shape = struct.unpack_from(f">{head[3]}I", head, 4)
    kind = ELEMENTS[head[2]]
    return Header(kind, shape[::-1], offset, prod(shape) * kind.nbytes)


def read_header(start: Start) -> Header:
    """Return the header, checked against the length of the file, inside gzip as far as it shows.

    Raises `Corrupt` and `Unsupported`.
    """
    head = start.head
    if head[:3] not in MAGICS:
        raise Corrupt(
            "is not an IDX file", path=start.path, where="byte 0",
            expected="0 0 and a type: 08, 09, 0b, 0c, 0d or 0e", got=head[:4].hex(" ") or "nothing",
        )  # fmt: skip
    header = parsed(start)
    if header is None:
        if len(head) < 4 or len(head) < 4 + 4 * head[3]:
            raise Corrupt("file ends inside the header", path=start.path, where=f"byte {len(head)}")
        raise Unsupported(
            "has no axes, or too many", path=start.path, where="byte 3",
            expected=f"1 to {MAX_RANK}", got=head[3],
        )  # fmt: skip
    if spanned(header.dims, header.element.nbytes) > MAX_SPAN:
        raise Corrupt("array is too large", path=start.path, expected="fewer than 2**63 bytes")
    present = start.length - header.offset
    if not start.gzip and header.nbytes > present:
        raise Corrupt(
            "data is cut off",
            path=start.path,
            where=f"byte {start.length}",
            expected=f"{header.nbytes} bytes of data from byte {header.offset}",
            got=f"{present} ({header.nbytes - present} missing)",
        )
    if start.gzip and header.nbytes > MAX_RATIO * start.stored:
        raise Corrupt(
            "compressed data cannot hold the array", path=start.path,
            expected=f"{header.nbytes} bytes", got=f"at most {MAX_RATIO * start.stored}",
        )  # fmt: skip
    return header


def header_bytes(array: Array) -> bytes:
    """Return everything before the data. Raises nothing for what `plan` lets pass."""
    shape = array.dims[::-1] or (1,)
    code = CODES[array.element.kind, array.element.nbytes]
    return struct.pack(f">2xBB{len(shape)}I", code, len(shape), *shape)


# 2 x 3 of uint8, and of int16 inside gzip (gzip.compress(..., mtime=0), level 9)
SAMPLES = {
    "two_by_three.idx": b"\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06",
    "two_by_two.idx.gz": bytes.fromhex(
        "1f8b08000000000002036360e0666260608060c6ffff187518580055b7a55314000000"
    ),
}


# Whether arrays fit an IDX file, and the file itself ---------------------------------------------


WIDER = {"bool": "uint8", "uint": "int32", "complex": "float64"}  # what --dtype may be, by kind


def plan(bundle: Bundle, *, gzip: str = "auto") -> Plan:
    """Plan a header and the elements, big-endian; few types, and no metadata."""
    fits = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan(
        [*fits, *file_fits(bundle, "IDX")],
        lambda target: _write(bundle.arrays[0], target, gzip),
        names=bundle.names,
    )


def _fits(array: Array) -> list[Fit]:
    """List what of an array IDX changes, loses or refuses."""
    name, fits = array.name, []
    if (array.element.kind, array.element.nbytes) not in CODES:
        wider = WIDER.get(array.element.kind, "float64")
        fits.append(refused_type(array, "IDX", wider))
    if array.ndim > MAX_RANK:
        fits.append(refused(name, "shape", f"{array.ndim} axes; IDX has {MAX_RANK} here"))
    elif max(array.dims, default=0) > MAX_LENGTH:
        fits.append(refused(name, "shape", "an axis of 2**32 or more"))
    elif spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "axes span 2**63 bytes or more"))
    elif not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    if array.described and array.meta:
        reason = f"IDX has no place for it: {', '.join(facts_of(array))}"
        fits.append(equivalent(name, "metadata", reason))
    return fits


def _write(array: Array, target: Target, gzip: str) -> None:
    from raconvert.arrays.reinterpret import big_endian

    header, array = header_bytes(array), big_endian(array)
    if gzip == "yes" or (gzip == "auto" and target.path.lower().endswith(".gz")):
        from raconvert.arrays.sources import write_deflated

        write_deflated(target, header, array)
    else:
        from raconvert.arrays.blocks import write_raw

        write_raw(target, header, array)


__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="idx",
    title="IDX (MNIST)",
    suffixes=(
        ".idx", ".idx1-ubyte", ".idx2-ubyte", ".idx3-ubyte", ".idx4-ubyte",
        ".idx.gz", ".idx1-ubyte.gz", ".idx2-ubyte.gz", ".idx3-ubyte.gz", ".idx4-ubyte.gz",
        "-idx1-ubyte", "-idx3-ubyte", "-idx1-ubyte.gz", "-idx3-ubyte.gz",  # MNIST as it is named
    ),
    magic=(*((0, magic) for magic in MAGICS), (0, GZIP_MAGIC)),
    write_options=(Option("gzip", "auto", ("auto", "yes", "no"), "auto: if the name ends so"),),
    samples=SAMPLES,
    spec="http://yann.lecun.com/exdb/mnist",
    losses="no metadata; only uint8, int8, int16, int32, float32, float64",
)  # fmt: skip


def sniff(source: Source) -> int:
    """Return SURE if the file is as long as its header says, or has a name of MNIST.

    MAYBE for another length.
    """
    start = Start(source)
    header = parsed(start)
    if header is None:
        return NO
    nbytes = header.offset + header.nbytes
    if start.gzip:
        return SURE if start.length == nbytes % (1 << 32) else MAYBE
    return SURE if source.size == nbytes or "-ubyte" in source.name else MAYBE


def read(source: Source) -> Bundle:
    """Read the one array of an IDX file, named after the file's stem.

    Its shape is in C order. Raises `Corrupt` and `Unsupported` before any data is read.
    """
    start = Start(source)
    header = read_header(start)
    name = source.stem.removesuffix(".idx")
    swap = needs_swap(header.element)
    notes: list[str] = []
    fields = {"name": name, "index_order": "C"}
    if start.gzip:
        array = Array(little(header.element), header.dims, **fields)
        part = Part(source, 0, header.nbytes, header.offset)
        array.storage["encoding"] = GZIP
        array.data = lambda: _inflated(array, part, swap, notes)
        return Bundle([array], notes=notes)
    extent = source.extent(header.offset, header.nbytes, swap)
    end = header.offset + header.nbytes
    if source.size > end:
        notes.append(trailing_note(source.size - end))
    return Bundle([Array(header.element, header.dims, extent=extent, **fields)], notes=notes)


def _inflated(array: Array, part: Part, swap: int, notes: list[str]) -> object:
    from raconvert.arrays.sources import Inflated  # which imports numpy

    return Inflated(array, part, swap, encoding=GZIP, notes=notes)
