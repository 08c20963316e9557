r"""NPY: one NumPy array in one file, read and write.

Specification: NEP 1 "A Simple File Format for NumPy Arrays" and the docstring of
`numpy.lib.format` (versions 1.0, 2.0, 3.0). Compared with: NumPy itself, byte for byte.

Layout::

    offset  size  type     meaning
    0       6     bytes    magic \x93NUMPY
    6       1     uint8    major version: 1, 2 or 3
    7       1     uint8    minor version: 0
    8       2|4   uint LE  length of the header text; 2 bytes in version 1.0, else 4
    10|12   ...   text     {'descr': ..., 'fortran_order': ..., 'shape': ...}, a Python literal,
                           padded with spaces and ended by a newline (NumPy: to a multiple of 64);
                           Latin-1 in versions 1.0 and 2.0, UTF-8 in 3.0
    then          bytes    the elements, in C order or (fortran_order True) in Fortran order

Reads: the three versions; headers with or without padding, with Python 2's ``2L``; C and Fortran
order; both byte orders; bool, integers, floats, complex; strings, datetimes, void and structured
types (nested, aligned, with titles). Data is never read here: the array carries an extent.

Writes: the smallest version that fits and the very header that `numpy.save` writes, little-endian.

Mapping: C order gives the reversed shape as `dims` and index order C; Fortran order gives the shape
as `dims` and index order F; no data is moved between formats that name their order. Where axes are
only listed (RA, NRRD), an array in Fortran order is moved to row-major: it is the same array as its
twin in C order, and gives the same file. Arrays of rank 0 and 1 are C. Numbers become RA's
numeric types. Strings, datetimes and structured types become user elements whose bytes, byte order
included, are kept verbatim; their `descr` travels in the metadata. The sub-array type
``('<f4', (2,))`` adds its axes as the fastest ones.

Refused: Python objects, which only pickle could restore (there is no flag for it); long doubles,
whose layout depends on the machine; elements of 0 bytes, since any shape would fit no data;
sub-array types in Fortran order; headers above 256 KiB; a repeated header key, which readers
resolve differently (refused also where the values agree, and then the message says so); shapes that
are not a tuple of non-negative integers, of more than 64 axes, or that no array could have; data
that is cut off. Bytes after the data are accepted with a note.

Writing loses what NPY has no place for: metadata (named as equivalent), and the type of bfloat16,
which would become ``V2`` (refused without ``--allow dtype``).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.plugin import NO, SURE, Array, Bundle, Format, Source, raw_alike
from raconvert.plugin import trailing_note as bytes_after

from .header import MAGIC, SAMPLE, nbytes_of, read_header
from .plan import plan

__all__ = ["FORMAT", "plan", "read", "sniff", "trailing_note"]

FORMAT = Format(
    name="npy",
    title="NumPy NPY",
    raw_bools=True,
    suffixes=(".npy",),
    magic=((0, MAGIC),),
    proof=True,
    stream=True,
    meta="none",
    index_orders="CF",
    samples={"three_bytes.npy": SAMPLE},
    spec="https://numpy.org/neps/nep-0001-npy-format.html; numpy.lib.format",
    losses="no metadata; bfloat16 would become V2; objects (pickle) and long doubles are refused",
)


def sniff(source: Source) -> int:
    r"""Return SURE for the magic ``\x93NUMPY``."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source) -> Bundle:
    """Return the one array of an NPY file, named after the file's stem, as an extent.

    Shape: as NumPy shows it; index order C or F as the header says. Raises `Corrupt`,
    `Unsupported` and `Unsafe` (pickled objects) before any data is read or mapped.
    """
    header = read_header(source)
    nbytes = nbytes_of(header)
    array = Array(
        header.element,
        header.dims,
        name=source.stem,
        index_order=header.index_order,
        row_major=header.index_order == "F",
        extent=source.extent(header.offset, nbytes, needs_swap(header.element)),
    )
    end = header.offset + nbytes
    if source.size == end:
        return Bundle([array], alike=raw_alike(source, array))
    more = source.read_at(end, len(MAGIC)) == MAGIC
    return Bundle([array], notes=[trailing_note(source.size - end, more=more)])


def trailing_note(nbytes: int, *, more: bool) -> str:
    """Return the note about bytes after the data; `more`: another array begins there."""
    note = bytes_after(nbytes)
    return f"{note} (another NPY array begins there; only the first is read)" if more else note
