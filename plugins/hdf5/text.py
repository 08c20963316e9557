"""Text of NumPy (U) as elements of their own.

UTF-8 in null-padded strings of fixed width, 4 bytes for each character, which every program can
show, and which keeps NULs inside a text (`raconvert.arrays.reinterpret.encoded`).
"""

from __future__ import annotations

from .descriptions import string_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from h5py import h5t

    from raconvert.arrays.dtypes import Element
    from raconvert.plugin import Array


def utf8_type(element: Element) -> h5t.TypeID:
    """The HDF5 type that text is written in."""
    return string_type(element.nbytes, "nullpad", "utf-8")


def is_utf8(array: Array) -> bool:
    """True for bytes (S) that are UTF-8."""
    return str(array.element.descr).startswith("|S") and array.meta.encoding == "utf-8"
