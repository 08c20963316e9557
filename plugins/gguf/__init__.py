"""GGUF: the tensors and metadata of models for ggml and llama.cpp, read.

Specification: docs/gguf.md of github.com/ggml-org/ggml, versions 2 and 3. Compared with: the `gguf`
package, which wrote the fixtures.

Layout::

    0    4s      magic ``GGUF``
    4    uint32  version; its byte order is that of the file
    8    uint64  number of tensors
    16   uint64  number of key-value pairs
    24   pairs   key, type, value; texts and lists begin with a uint64 of their length
         tensors name, number of axes, lengths (fastest first), type, offset of the data
         data    from the next multiple of ``general.alignment`` (32), each tensor at one

Reads: F16, F32, F64, BF16, I8, I16, I32, I64 as they are: each an extent, shapes as NumPy has them
(the lengths in reverse), little- and big-endian. Quantised tensors stay blocks of bytes: uint8 with
the bytes of a row along the last axis, as the `gguf` package shows them; notes name them by type.
``--unscale`` gives the values of blocks of Q8_0 and Q4_0 as float32, exactly. Values of keys become
attributes of the file.

Noted and left out: lists of more values than are attributes (the tokens of a vocabulary), lists in
lists, empty lists, integers beyond 64 bits with a sign.

Refused: version 1; keys and tensors named twice; an alignment that is not a power of two; tensors
that are not aligned, overlap, or end behind the file; rows that are not whole blocks; types that
the specification no longer has, or never had (an array that cannot be read).
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Format, Source

from .reader import read
from .tables import MAGIC, SAMPLE

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="gguf",
    title="GGUF model",
    suffixes=(".gguf",),
    magic=((0, MAGIC),),
    proof=True,
    many=True,
    writes=False,
    samples={"two_by_three.gguf": SAMPLE},
    spec="https://github.com/ggml-org/ggml/blob/master/docs/gguf.md",
    losses="it is read, not written; quantised tensors stay blocks",
)


def sniff(source: Source) -> int:
    """Return SURE if the file begins as GGUF."""
    return SURE if source.head.startswith(MAGIC) else NO
