"""Values scaled to 8 or 16 bits, as a lazy array: every value is checked while the data streams.

The first value outside the scale aborts with its index and leaves no output.
"""

from __future__ import annotations

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import LARGEST_BLOCK, blocks, index_of
from raconvert.arrays.cast import Converted
from raconvert.arrays.dtypes import element_of, type_name
from raconvert.errors import Unsupported, UsageError, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Scale -----------------------------------------------------------------------------------------


def scaled(array: Array, scale: str, bits: int) -> Array:
    """Return the array mapped linearly to 0 … 2^bits - 1 as uint8 or uint16.

    `scale` is ``unit`` (0:1), ``minmax`` (over the whole array, in a first pass) or ``LO:HI``.
    Rounding is half to even; values outside the range, NaN and infinities raise `WouldLose`.
    The mapping is kept as attribute ``scale`` in the metadata.
    """
    if bits not in (8, 16):
        raise UsageError("`--bits` takes 8 or 16", got=bits)
    if array.element.kind not in ("int", "uint", "float", "bool", "bfloat"):
        raise Unsupported(f"array '{array.name}' of type {type_name(array.element)} has no scale")
    low, high = _range(array, scale)
    top = 2**bits - 1
    dtype = np.dtype(f"<u{bits // 8}") if bits > 8 else np.dtype("u1")

    def convert(block: np.ndarray[Any, Any], done: int) -> np.ndarray[Any, Any]:
        values = block if block.dtype.kind in "iu" else block.astype(np.float64)
        wrong = ~((values >= low) & (values <= high))
        if wrong.any():
            first = int(np.flatnonzero(wrong.reshape(-1))[0])
            raise WouldLose(
                f"value {block.reshape(-1)[first]} of array '{array.name}' lies outside the scale",
                where=f"index {list(index_of(array, done + first))}",
                expected=f"{low} to {high}",
                remedy="nothing was written; choose `--scale minmax` or a wider LO:HI",
            )
        return _rounded_scale(values, low, high, top).astype(dtype)

    mapping = {"from": [low, high], "to": [0, top]}
    meta = array.meta.replace(attributes={**array.meta.attributes, "scale": mapping})
    return array.replace(
        element=element_of(dtype), extent=None, meta=meta, data=Converted(array, dtype, convert)
    )


def _rounded_scale(
    values: np.ndarray[Any, Any], low: float, high: float, top: int
) -> np.ndarray[Any, Any]:
    """Return (values - low) · top / (high - low), rounded half to even, exactly.

    float64 decides wherever its error cannot cross a tie; the few values near one are computed as
    fractions, each distinct one once.
    """
    from fractions import Fraction

    factor = Fraction(top) / (Fraction(high) - Fraction(low))
    try:
        step = float(factor)
    except OverflowError:  # a range of subnormal width
        step = np.inf
    with np.errstate(all="ignore"):
        rough = values.astype(np.float64) * step - float(low) * step
        error = max(abs(float(low)), abs(float(high))) * step * 2.0**-50
        unsure = ~(np.abs(rough - np.floor(rough) - 0.5) > error)
        found = np.rint(rough)
    numbers, where = np.unique(values[unsure], return_inverse=True)
    exact = [round((Fraction(number) - Fraction(low)) * factor) for number in numbers.tolist()]
    found[unsure] = np.array(exact, np.float64)[where]
    return found


def _range(array: Array, scale: str) -> tuple[float, float]:
    """Return the ends of a scale: integers for integers, which float64 may not hold."""
    return check_scale(scale) or _extremes(array)


def check_scale(scale: str) -> tuple[float, float] | None:
    """Return the ends that a scale names, None for those of the data; `UsageError` for others."""
    if scale == "unit":
        return 0.0, 1.0
    if scale == "minmax":
        return None
    try:
        low, high = (float(part) for part in scale.split(":"))
    except ValueError as error:
        raise UsageError(
            f"unknown scale '{scale}'", expected="none | unit | minmax | LO:HI"
        ) from error
    if not (low < high and np.isfinite(low) and np.isfinite(high)):
        raise UsageError(f"scale '{scale}' is empty or endless", expected="LO below HI")
    return low, high


def _extremes(array: Array) -> tuple[float, float]:
    """Return the least and greatest value of an array, never equal."""
    ends = []
    for block in blocks(array, LARGEST_BLOCK):
        values = block if block.dtype.kind in "iu" else block.astype(np.float64)
        ends += [values.min().item(), values.max().item()]
        if not np.isfinite(ends[-2:]).all():
            raise WouldLose(f"array '{array.name}' has NaN or infinities, which no scale can hold")
        ends = [min(ends), max(ends)]
    low, high = ends or (0.0, 1.0)
    if low == high:  # everything becomes 0
        high = low + 1 if low + 1 > low else float(np.nextafter(low, np.inf))
    return low, high
