"""Plain bytes without a header: a format that only its user knows, read.

Nothing in such a file says what it is, so it is read only where ``--from raw`` asks for it, by what
its user says::

    raconvert --from raw --in-opt dtype=uint16 --in-opt shape=480,640 x.bin -o x.npy

dtype
    ``float32``, ``complex64``, ``bool`` and so on; ``>`` in front (``>u2``, ``>float32``) is
    big-endian, otherwise little-endian; ``S8`` and ``U4`` are text of NumPy.
shape
    the lengths as they are indexed, with commas or ``x`` between; one of them may be -1: as many as
    there are. Without a shape the bytes are one axis.
offset
    where the data begins, in bytes.
order
    ``C``: the last index is the fastest (NumPy, C), ``F``: the first (MATLAB, Fortran).

Data that is cut off is refused; bytes behind it are accepted with a note. The data is an extent,
copied or mapped as it is. Writing bare bytes is not offered: RA and NPY are such bytes behind a
header that says what they are.
"""

from __future__ import annotations

import re
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, ML_DTYPES, element_from, needs_swap, spanned
from raconvert.errors import Corrupt, RaconvertError, UsageError
from raconvert.plugin import NO, Array, Bundle, Element, Format, Option, Source, trailing_note

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="raw",
    title="Plain bytes without a header",
    suffixes=(),
    writes=False,
    index_orders="CF",
    read_options=(
        Option("dtype", "", str, "type of the elements: float32, >u2, complex64 (needed)"),
        Option("shape", "", str, "lengths of the axes: 480,640; one may be -1 (default: one axis)"),
        Option("offset", 0, int, "bytes before the data"),
        Option("order", "C", ("C", "F"), "C: the last index is the fastest, F: the first"),
    ),
    losses="nothing is known but what --in-opt says; it is read, not written",
)

MAX_RANK = 64
_NAMED = re.compile(
    r"([<>=]?)(bool|bfloat16|complex(?:64|128)|float(?:16|32|64)|u?int(?:8|16|32|64))"
)
_CODE = re.compile(r"([<>|=]?)([?biufcSUVmM])([0-9]{0,9})(\[[0-9]*[a-zA-Z]+\])?")
_SHAPE = re.compile(r"-?[0-9]{1,19}")


def sniff(source: Source) -> int:
    """Return NO: any bytes may be this format."""
    return NO


def read(
    source: Source, *, dtype: str = "", shape: str = "", offset: int = 0, order: str = "C"
) -> Bundle:
    """Read the one array that the options describe, named after the file's stem, as an extent.

    Raises `UsageError` for options that make no sense, `Corrupt` for a file that is too
    short.
    """
    if not dtype:
        raise UsageError(
            "plain bytes need a type", path=source.path,
            remedy="say what they are: `--in-opt dtype=float32 --in-opt shape=480,640`",
        )  # fmt: skip
    element = element_named(dtype)
    if not 0 <= offset <= source.size:
        raise UsageError("`--in-opt offset` is not in the file", path=source.path,
                         expected=f"0 to {source.size}", got=offset)  # fmt: skip
    lengths = lengths_of(shape, (source.size - offset) // element.nbytes, source)
    nbytes = prod(lengths) * element.nbytes
    if spanned(lengths, element.nbytes) > MAX_SPAN or offset + nbytes > source.size:
        raise Corrupt(
            "file is too short for this type and shape", path=source.path,
            expected=f"{nbytes} bytes from byte {offset}", got=source.size - offset,
            remedy="compare dtype, shape and offset with what wrote the file",
        )  # fmt: skip
    behind = source.size - offset - nbytes
    array = Array(
        element,
        lengths if order == "F" else lengths[::-1],
        name=source.stem,
        index_order=order,
        extent=source.extent(offset, nbytes, needs_swap(element)),
    )
    return Bundle([array], notes=[trailing_note(behind)] * bool(behind))


def element_named(text: str) -> Element:
    """Return the element type that a word names; raises `UsageError` for another word."""
    named, coded = _NAMED.fullmatch(text), _CODE.fullmatch(text)
    try:
        if named and named[2] in ML_DTYPES:
            return ML_DTYPES[named[2]]._replace(order=">" if named[1] == ">" else "<")
        if named or coded:
            import numpy as np

            dtype = np.dtype(named[2] if named else text)
            if named:
                dtype = dtype.newbyteorder(named[1] or "<")
            element = element_from(dtype.str)
            if 0 < element.nbytes < 1 << 31:
                return element
    except (RaconvertError, TypeError, ValueError, SyntaxError, OverflowError):
        pass
    raise UsageError(
        f"`--in-opt dtype={text[:40]}` is not a type of plain bytes",
        expected="float32, uint16, >i4, complex64, bool, S8, ...",
    )


def lengths_of(shape: str, count: int, source: Source) -> tuple[int, ...]:
    """Return the lengths in index order; -1, or an absent shape, follows from the file's size."""
    words = re.split("[ ,x×]+", shape.strip("()[], "))
    if words == [""]:
        return (count,)
    if not all(_SHAPE.fullmatch(word) for word in words) or len(words) > MAX_RANK:
        raise UsageError(
            f"`--in-opt shape={shape[:60]}` is not a shape", expected="480,640 or -1,640"
        )
    lengths = [int(word) for word in words]
    if min(lengths) < -1 or lengths.count(-1) > 1:
        raise UsageError(f"`--in-opt shape={shape[:60]}` has a length below 0",
                         expected="at most one -1")  # fmt: skip
    if -1 in lengths:
        rest = prod(length for length in lengths if length != -1)
        if not rest or count % rest:
            raise Corrupt(
                "file is not a whole number of such pieces", path=source.path,
                expected=f"a multiple of {rest} elements", got=count,
                remedy="compare dtype, shape and offset with what wrote the file",
            )  # fmt: skip
        lengths[lengths.index(-1)] = count // rest
    return tuple(lengths)
