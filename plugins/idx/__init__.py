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

from raconvert.arrays.dtypes import needs_swap
from raconvert.files.compressed import GZIP, Part
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Option,
    Source,
    little,
    trailing_note,
)

from .header import GZIP_MAGIC, MAGICS, SAMPLES, Start, parsed, read_header
from .plan import plan

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
    """Sure if the header is as long as it says and the file as long as that means.

    Maybe for another length.
    """
    start = Start(source)
    header = parsed(start)
    if header is None:
        return NO
    nbytes = header.offset + header.nbytes
    if start.gzip:
        return SURE if start.length == nbytes % (1 << 32) else MAYBE
    named = "-ubyte" in source.name
    return SURE if source.size == nbytes or named else MAYBE


def read(source: Source) -> Bundle:
    """The one array of an IDX file, named after the file's stem.

    Shape in C order. Raises `Corrupt` and `Unsupported` before any data is read.
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
    from raconvert.arrays.inflated import Inflated  # with numpy

    return Inflated(array, part, swap, encoding=GZIP, notes=notes)
