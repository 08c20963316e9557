"""safetensors: named tensors in one file, without code in it, read and write.

Specification: the README of github.com/huggingface/safetensors ("Format"). Compared with: the
`safetensors` library, which reads what is written here and writes what is read. Nothing here uses
it: it writes an array in Fortran order as if it were in C order, which exchanges its elements.

Layout::

    offset  size  type       meaning
    0       8     uint64 LE  N, the length of the header
    8       N     JSON       {"NAME": {"dtype": ..., "shape": [...], "data_offsets": [a, b]}, ...,
                             "__metadata__": {"KEY": "TEXT", ...}}, spaces behind it
    8 + N         bytes      the elements of all tensors, little-endian, in C order

Types: BOOL U8 I8 U16 I16 U32 I32 U64 I64 F16 BF16 F32 F64 C64 are those of RA. Floats of one byte
(F8_E4M3, F8_E5M2, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ) are those of the ml_dtypes package; F8_E4M3 is
``float8_e4m3fn``.

Reads: every tensor as an extent, in the order in which the header names them. ``__metadata__``
becomes the attributes of the file.

Writes: the header in the order of the arrays, padded to a multiple of 8; data in descending size of
the elements, as the library does it, so that each tensor lies aligned; attributes of the file whose
values are text.

A tensor is added (``-o FILE#NAME``) behind those whose elements are as wide; the header is written
anew, with ``__metadata__`` and the order that it had, and the data of the others is copied.

Refused: headers above 100 MB, as by the library; a name twice; data that does not begin at 0, ends
before the file does, overlaps or has holes; shapes that do not fit their bytes; types of less than
eight bits (an array that cannot be read). Writing refuses complex128, texts, dates and structures,
and the name ``__metadata__``. Metadata of the arrays has no place (named as equivalent).
"""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Unsupported
from raconvert.plugin import MAYBE, NO, SURE, Array, Bundle, Format, Source

from .header import ELEMENTS, FLOATS, MAX_HEADER_BYTES, SAMPLE, Tensor, read_header
from .plan import add, plan

__all__ = ["FORMAT", "add", "plan", "read", "sniff"]

FORMAT = Format(
    name="safetensors",
    title="safetensors",
    suffixes=(".safetensors",),
    magic=((8, b"{"),),
    many=True,
    float8=tuple(FLOATS.values()),
    samples={"two.safetensors": SAMPLE},
    spec="https://github.com/huggingface/safetensors",
    losses="no metadata of arrays; no complex128, text, dates or structures",
)


def sniff(source: Source) -> int:
    """Sure by the words of the first entry behind a length that a header can have.

    Maybe for any other text in braces behind such a length.
    """
    length, text = int.from_bytes(source.head[:8], "little"), source.head[8:]
    if not 2 <= length <= MAX_HEADER_BYTES or not text.startswith(b"{"):
        return NO
    words = (b'"dtype"', b'"__metadata__"')
    return SURE if any(word in text for word in words) or not text[:length].strip(b"{} ") else MAYBE


def read(source: Source) -> Bundle:
    """The tensors of a file, each an extent; shapes in C order.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    tensors, attributes = read_header(source)
    if not tensors:
        raise Unsupported("holds no tensors", path=source.path)
    arrays = [_array(source, tensor) for tensor in tensors]
    return Bundle(some_sound(arrays), attributes=dict(attributes))


def _array(source: Source, tensor: Tensor) -> Array:
    kind = ELEMENTS.get(tensor.dtype)
    if kind is None:
        what = f"elements of type {tensor.dtype}, which are less than a byte or unknown"
        return Array.unreadable(tensor.name, Unsupported(what, path=source.path))
    return Array(
        kind,
        tensor.shape[::-1],
        name=tensor.name,
        index_order="C",
        extent=source.extent(tensor.offset, tensor.nbytes),
    )
