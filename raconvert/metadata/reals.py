"""Values of metadata that are real numbers, and the bits of NaN, which most notations drop.

A NaN is written as ``nan`` if it has the bits of Python's own (sign 0, the first bit of the
fraction set, IEEE 754 double), else as its sign and its fraction: ``-nan:0x8000000000000``.
"""

from __future__ import annotations

import re
from math import isfinite, nan
from struct import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    Values = np.ndarray[Any, Any]

_NAN = re.compile(r"(-?)nan:0x([0-9a-f]{1,13})")
_NAN_BITS = 0x7FF << 52  # the exponent of a double NaN
_FRACTION = (1 << 52) - 1
_NARROW_NAN_BITS = 0x7F800000  # the exponent of a single NaN
_NARROW_FRACTION = (1 << 23) - 1
_SHIFT = 29  # bits that the fraction of a double has beyond that of a single
LARGEST = 1 << 1000  # integers below it are finite as doubles


def is_real(value: object) -> bool:
    """True if a value is a finite real number, and not a bool. Raises nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isfinite(value) if isinstance(value, float) else abs(value) < LARGEST


def are_reals(value: object, count: int) -> bool:
    """True if a value is a list of `count` finite real numbers. Raises nothing."""
    return isinstance(value, list) and len(value) == count and all(map(is_real, value))


def bits_of(value: float) -> int:
    """Return the bits of a float as an integer. Raises nothing."""
    return int(unpack("<Q", pack("<d", value))[0])


def is_usual_nan(value: float) -> bool:
    """True for the NaN that the word ``nan`` stands for. Raises nothing."""
    return bits_of(value) == bits_of(nan)


def nan_text(value: float) -> str:
    """Return the notation of a NaN, bits included.

    >>> nan_text(float("nan")), nan_text(-float("nan"))
    ('nan', '-nan:0x8000000000000')

    Raises nothing.
    """
    if is_usual_nan(value):
        return "nan"
    bits = bits_of(value)
    return f"{'-' if bits >> 63 else ''}nan:0x{bits & _FRACTION:x}"


def nan_of(text: str) -> float | None:
    """Return the NaN of a notation with bits; None for any other text. Raises nothing."""
    match = _NAN.fullmatch(text)
    fraction = int(match[2], 16) if match else 0
    if not match or not 0 < fraction <= _FRACTION:
        return None
    sign = 1 << 63 if match[1] else 0
    return float(unpack("<d", pack("<Q", sign | _NAN_BITS | fraction))[0])


def same_float(a: float, b: float) -> bool:
    """True if two floats have the same bits. Raises nothing."""
    return bits_of(a) == bits_of(b)


def doubles(values: Values) -> Values:
    """Return floats of any width as doubles, the bits of NaN included.

    The processor makes a quiet NaN of a signaling one when it converts between two widths.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        wide: Values = values.astype(np.float64)
    if values.dtype.itemsize != 4:
        return wide
    bits = values.astype(np.float32).view(np.uint32)
    is_nan = np.isnan(values)
    if is_nan.any():
        nan_bits = bits[is_nan].astype(np.uint64)
        wide = np.atleast_1d(wide)
        wide.view(np.uint64)[np.atleast_1d(is_nan)] = (
            (nan_bits >> np.uint64(31) << np.uint64(63))
            | np.uint64(_NAN_BITS)
            | ((nan_bits & np.uint64(_NARROW_FRACTION)) << np.uint64(_SHIFT))
        )
    return wide.reshape(values.shape)


def narrowed(wide: Values, dtype: np.dtype[Any]) -> Values:
    """Convert doubles to floats of another width; NaN keeps the bits that fit."""
    import numpy as np

    with np.errstate(all="ignore"):
        values: Values = wide.astype(dtype)
    is_nan = np.isnan(wide)
    if dtype.itemsize != 4 or not is_nan.any():
        return values
    bits = np.atleast_1d(wide).view(np.uint64)[np.atleast_1d(is_nan)]
    fraction = (bits & np.uint64(_FRACTION)) >> np.uint64(_SHIFT)
    fraction[fraction == 0] = 1 << 22  # a quiet NaN: without any bit it would be infinity
    sign = bits >> np.uint64(63) << np.uint64(31)
    native = np.atleast_1d(values).astype(np.float32)
    native.view(np.uint32)[np.atleast_1d(is_nan)] = sign | np.uint64(_NARROW_NAN_BITS) | fraction
    return native.astype(dtype).reshape(wide.shape)
