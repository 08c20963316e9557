"""Padding of fixed strings: they end at a NUL, at trailing blanks, or at trailing NULs.

File format specification 3.0, IV.A.2.d "The Datatype Message", class 3 (bits 0 to 3). NumPy's own
strings end where nothing but NULs follows, as null-padded ones do. A null-terminated string ends at
its first NUL, whatever is behind it; a space-padded one has no blanks at its end.
"""

from __future__ import annotations

import numpy as np
from h5py import h5t

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]
    # Names of fields that lead to strings, and their padding.
    Endings = tuple[tuple[tuple[str, ...], int], ...]

_BLANK = 0x20


def endings_of(tid: h5t.TypeID, path: tuple[str, ...] = ()) -> Endings:
    """Return the names that lead to strings that do not end as NumPy's do, with their padding."""
    while tid.get_class() == h5t.ARRAY:
        tid = tid.get_super()
    if tid.get_class() == h5t.COMPOUND:
        endings = []
        for number in range(tid.get_nmembers()):
            name = tid.get_member_name(number).decode()
            endings += endings_of(tid.get_member_type(number), (*path, name))
        return tuple(endings)
    if tid.get_class() != h5t.STRING or tid.is_variable_str():
        return ()
    padding = tid.get_strpad()
    if padding == h5t.STR_SPACEPAD or (padding == h5t.STR_NULLTERM and tid.get_size() > 1):
        return ((path, padding),)
    return ()


def without_padding(values: Values, endings: Endings) -> None:
    """Replace the padding of strings by NULs, as NumPy has it, in place."""
    for path, padding in endings:
        strings, raw = _raw(values, path)
        behind = _behind(raw, padding)
        if raw[behind].any():
            raw[behind] = 0
            strings[...] = raw.reshape(-1).view(strings.dtype).reshape(strings.shape)


def with_padding(values: Values, endings: Endings) -> Values:
    """Return a copy whose strings have the padding of their type.

    Raises ValueError if a string would end elsewhere with that padding.
    """
    from raconvert.arrays.dtypes import opaque

    result: Values = opaque(values).copy().view(values.dtype)
    for path, padding in endings:
        strings, raw = _raw(result, path)
        if padding == h5t.STR_NULLTERM:
            if raw[_behind(raw, padding)].any():
                raise ValueError("a NUL inside of a null-terminated string")
            continue
        nuls = _trailing(raw, 0)
        # A NUL keeps the blank before it from being padding.
        nuls &= ~_ends_blank(raw, nuls)[:, np.newaxis]
        raw[nuls] = _BLANK
        if not np.array_equal(_behind(raw, padding), nuls):
            raise ValueError("a blank at the end of a space-padded string")
        strings[...] = raw.reshape(-1).view(strings.dtype).reshape(strings.shape)
    return result


def _raw(values: Values, path: tuple[str, ...]) -> tuple[Values, Values]:
    """Return the strings of a field, and a copy of them as rows of bytes."""
    for name in path:
        values = values[name]
    return values, np.array(values, order="C").reshape(-1).view(np.uint8).reshape(
        values.size, values.dtype.itemsize
    )


def _behind(raw: Values, padding: int) -> Values:
    """Return True for each byte behind the end of its string."""
    if padding == h5t.STR_NULLTERM:
        return np.logical_or.accumulate(raw == 0, axis=1)
    return _trailing(raw, _BLANK)


def _ends_blank(raw: Values, nuls: Values) -> Values:
    """Return True for each string with a blank before the NULs at its end."""
    return (nuls[:, 1:] & ~nuls[:, :-1] & (raw[:, :-1] == _BLANK)).any(axis=1)


def _trailing(raw: Values, value: int) -> Values:
    """Return True for each byte of a string from which on all bytes have a value."""
    return np.logical_and.accumulate(raw[:, ::-1] == value, axis=1)[:, ::-1]
