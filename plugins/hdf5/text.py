"""Text of NumPy (U) as elements of their own.

UTF-8 in null-padded strings of fixed width, 4 bytes for each character, which every program can
show, and which keeps NULs inside a text.
"""

from __future__ import annotations

import numpy as np

from .descriptions import string_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5t

    from raconvert.arrays.dtypes import Element
    from raconvert.plugin import Array

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]


def utf8_type(element: Element) -> h5t.TypeID:
    """The HDF5 type that text is written in."""
    return string_type(element.nbytes, "nullpad", "utf-8")


def is_utf8(array: Array) -> bool:
    """True for bytes (S) that are UTF-8."""
    return str(array.element.descr).startswith("|S") and array.meta.encoding == "utf-8"


def encoded(values: Values) -> Values:
    """Text (U) as UTF-8 of the same number of bytes (S); it has no numbers beyond code points.

    `raconvert.arrays.reinterpret.from_utf8` is the way back.
    """
    count = values.dtype.itemsize // 4
    codes = np.ascontiguousarray(values).view(_codes_of(values.dtype)).reshape(-1, count)
    result = np.zeros((len(codes), 4 * count), np.uint8)
    result[:, :count] = codes
    for row in np.flatnonzero((codes > 0x7F).any(axis=1)):
        text = values.reshape(-1)[row].encode("utf-8", "surrogatepass")
        result[row] = 0
        result[row, : len(text)] = np.frombuffer(text, np.uint8)
    return result.reshape(-1).view(f"S{4 * count}").reshape(values.shape)


def _codes_of(dtype: Dtype) -> Dtype:
    return np.dtype(f"{'>' if dtype.str[0] == '>' else '<'}u4")
