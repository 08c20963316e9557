"""Conversion to another element type, lazily: every value is checked while the data streams.

The first value that does not fit aborts with its index and leaves no output.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import LARGEST_BLOCK, blocks, index_of, region_of
from raconvert.arrays.dtypes import (
    FLOAT8,
    ML_DTYPES,
    REALS,
    dtype_of,
    element_of,
    is_float8,
    little,
    ml_dtype,
    type_name,
)
from raconvert.errors import Unsupported, UsageError, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Mask = Any  # an array of bool: numpy types what its operators give so
    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]


# Element type ----------------------------------------------------------------------------------


class Converted:
    """Array source: another one with a function applied to every block.

    `convert` takes a block and the number of elements before it. `rounded` becomes True when a
    value was rounded.
    """

    rounded = False

    def __init__(
        self,
        array: Array,
        dtype: np.dtype[Any],
        convert: Callable[[np.ndarray[Any, Any], int], np.ndarray[Any, Any]],
    ) -> None:
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype = dtype
        self._array = array
        self._convert = convert

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield converted blocks in stored order."""
        done = 0
        width = self._array.element.nbytes
        wider = max(1, -(-self.dtype.itemsize // max(1, width)))
        for block in blocks(self._array, max(1, max_bytes // wider)):
            yield self._convert(block, done)
            done += block.size

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        return self._convert(region_of(self._array, key), 0)


def cast(array: Array, name: str, *, round_values: bool = False) -> Array:
    """Return the array as another element type, every value checked while it streams.

    The first value that the type cannot hold exactly raises `WouldLose` with its index;
    `round_values` (``--allow precision``) rounds instead, but never wraps or saturates.
    """
    dtype = parse_dtype(name)
    small = is_float8(array.element)
    if array.element.kind == "user" and not small:
        raise Unsupported(
            f"array '{array.name}' of type {type_name(array.element)} cannot be cast to {name}",
            remedy="only numbers and bools can be cast",
        )
    if little(array.element) == element_of(dtype):
        return array

    def convert(block: np.ndarray[Any, Any], done: int) -> np.ndarray[Any, Any]:
        if block.dtype.kind == "b":  # as bytes: a file can hold others than 0 and 1
            block = block.view(np.uint8)
        if small:
            block = block.astype(np.float32)  # exact: it holds every float of one byte
        values = _cast_block(
            block, dtype, round_values, lambda i: index_of(array, done + i), array.name
        )
        if round_values and not source.rounded:
            source.rounded = not _same(block, values).all()
        return values

    source = Converted(array, dtype, convert)
    return array.replace(element=element_of(dtype), extent=None, data=source)


def as_bool(array: Array, numbers: tuple[int, ...] = (0, 1, 255)) -> Array:
    """Return numbers that stand for false and true as bools: 0 and 1, or 0 and 255 (images)."""

    def convert(block: np.ndarray[Any, Any], done: int) -> Mask:
        if block.dtype == np.uint8 and block.max(initial=0) <= 1:
            return block.view(bool)
        wrong = np.flatnonzero(~np.isin(block.reshape(-1), numbers))
        if wrong.size:
            raise WouldLose(
                f"value {block.reshape(-1)[wrong[0]]} of array '{array.name}' is not a bool",
                where=f"index {list(index_of(array, done + int(wrong[0])))}",
            )
        return block != 0

    if array.element.kind == "bool":
        return array
    source = Converted(array, np.dtype(bool), convert)
    return array.replace(element=element_of(np.dtype(bool)), extent=None, data=source)


def parse_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of a name such as ``uint8``; `UsageError` if it is not numeric."""
    if name in ML_DTYPES and name not in FLOAT8:
        return ml_dtype(name)
    if name in FLOAT8:
        raise UsageError(
            f"`--dtype {name}` is not offered: values are not rounded to floats of one byte",
            expected="such as float16 or bfloat16",
        )
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise UsageError(
            f"unknown element type '{name}'", expected="such as uint8 or float32"
        ) from error
    if dtype.kind not in "biufc":
        raise UsageError(f"`--dtype {name}` is not a numeric type")
    return dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype


def _cast_block(
    block: np.ndarray[Any, Any],
    dtype: np.dtype[Any],
    round_values: bool,
    index: Callable[[int], tuple[int, ...]],
    name: str,
) -> np.ndarray[Any, Any]:
    """Cast a block; `WouldLose` for the first value that does not fit.

    `index` returns the logical index of an element by its number in the block; `name` is the
    array's.
    """
    source = _rounded(block) if round_values and dtype.kind in "iu" else block
    with np.errstate(all="ignore"):
        cast_values = _astype(source, dtype)
        wrong = ~_same(source, cast_values)
        if round_values and dtype.kind not in "biu":
            wrong &= ~_only_rounded(source, cast_values)
    if wrong.any():
        first = int(np.flatnonzero(wrong.reshape(-1))[0])
        value = block.reshape(-1)[first : first + 1]
        raise WouldLose(
            f"value {value[0]} of array '{name}' does not fit {dtype.name}",
            where=f"index {list(index(first))}",
            remedy=f"nothing was written; {_remedy_of(value, dtype, round_values)}",
        )
    return cast_values


def _remedy_of(value: np.ndarray[Any, Any], dtype: np.dtype[Any], round_values: bool) -> str:
    """Return the remedy for a value (an array of one element) that does not fit a type."""
    if not round_values:
        try:
            _cast_block(value, dtype, True, lambda _: (), "")
        except WouldLose:
            pass
        else:
            return "`--allow precision` rounds it"
    if value.dtype.kind == "c" and value[0].imag != 0:
        return "choose a complex type"
    if value.dtype.kind in "fc" and not np.isfinite(value[0]):
        return "choose a floating-point type"
    return "choose a type with a larger range"


def _rounded(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return floats rounded to whole numbers; imaginary parts stay, to be refused later."""
    if block.dtype.kind == "c":
        source = block.copy()
        source.real = np.rint(block.real) + 0.0
        return source
    # -0.0 becomes 0.0, which integers have.
    return np.rint(block) + 0.0 if block.dtype.kind in "fV" else block  # V: bfloat16


def _astype(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Cast values; for a real type without the imaginary parts, which `_same` then misses."""
    if values.dtype.kind == "c" and dtype.kind != "c":
        return values.real.astype(dtype)
    return values.astype(dtype)


def _only_rounded(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> Any:
    """True for each element that a cast between floats changed by rounding at most.

    A finite value that became infinity, or lost an imaginary part, was not only rounded.
    """
    if before.dtype.kind == "c":
        if after.dtype.kind == "c":
            return _only_rounded(before.real, after.real) & _only_rounded(before.imag, after.imag)
        return _only_rounded(before.real, after) & (before.imag == 0)
    return np.isfinite(after) | ~np.isfinite(before)


def _same(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> Mask:
    """True for each element whose value the cast kept exactly (NaN stays NaN).

    numpy compares integers with floats in float64, which rounds above 2^53; so floats are
    compared as floats and integers as integers, after a range check.
    """
    if before.dtype.kind == "c" and after.dtype.kind != "c":  # imaginary zeros of either sign go
        return _same(before.real, after) & (before.imag == 0)
    if after.dtype.kind == "c":
        same_imaginary = _same(_imaginary(before), _imaginary(after))
        return _same(before.real, after.real) & same_imaginary
    if before.dtype.kind in "biu" and after.dtype.kind in "biu":
        return _integers_equal(before, after)
    if before.dtype.kind in "biu":
        return _float_to_integer(after.astype(np.float64), before.dtype) == before
    wide = before.astype(np.float64)
    if after.dtype.kind in "biu":
        inside = (wide >= _low(after.dtype)) & (wide < _beyond(after.dtype))
        signed_zero = (wide == 0) & np.signbit(wide)  # no integer is -0.0
        return inside & (after.astype(np.float64) == wide) & ~signed_zero
    back = after.astype(np.float64)
    return (wide == back) | (np.isnan(wide) & np.isnan(back))


def _imaginary(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the imaginary parts; for real numbers zeros of their own type."""
    return values.imag if values.dtype.kind == "c" else np.zeros_like(values)


def _integers_equal(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Mask:
    """Compare integers of any signedness by value: equal bits and equal sign."""
    negative_a = a < 0 if a.dtype.kind == "i" else np.zeros(a.shape, bool)
    negative_b = b < 0 if b.dtype.kind == "i" else np.zeros(b.shape, bool)
    return (a.astype(np.uint64) == b.astype(np.uint64)) & (negative_a == negative_b)


def _low(dtype: np.dtype[Any]) -> float:
    """Return the least number of a type of integers or bools."""
    return 0.0 if dtype.kind == "b" else float(np.iinfo(dtype).min)


def _beyond(dtype: np.dtype[Any]) -> float:
    """Return the first number above those of a type of integers or bools."""
    return 2.0 if dtype.kind == "b" else float(int(np.iinfo(dtype).max) + 1)


def _float_to_integer(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Cast floats to integers; values outside the type become one that cannot be equal."""
    inside = (values >= _low(dtype)) & (values < _beyond(dtype))
    if inside.all():
        return values.astype(dtype)
    integers = np.where(inside, values, 0).astype(dtype).astype(object)
    integers[~inside] = None
    return integers


# Bools as bytes: a file can hold others than 0 and 1, on their own or inside structures ----------


def has_bools(dtype: Dtype) -> bool:
    """True if elements of this type are bools, or have bools in them at any depth."""
    base = dtype.base
    if base.names is not None:
        return any(has_bools(base[name]) for name in base.names)
    return base.kind == "b"


def bool_bytes(values: Values, field: str = "") -> Iterator[tuple[str, Values]]:
    """Yield the bytes of all bools, those of structures field by field: its name and the bytes."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from bool_bytes(values[name], f"{field}.{name}" if field else name)
    elif values.dtype.kind == "b":
        yield field, values.view(np.uint8)


def checked_bools(array: Array) -> Array:
    """Return an array of which every bool must be 0 or 1, for a format that has no others.

    NPY and RA files can hold any byte; other formats would silently change it to 1.
    """
    dtype = dtype_of(little(array.element))
    if not has_bools(dtype):
        return array

    def check(block: Values, done: int) -> Values:
        for field, raw in bool_bytes(block):
            if raw.max(initial=0) > 1:
                first = int(np.flatnonzero(raw > 1)[0])
                per_element = prod(raw.shape[block.ndim :])  # above 1 if the field is an array
                raise _is_odd(array, field, done + first // per_element, raw.reshape(-1)[first])
        return block

    return array.replace(extent=None, data=Converted(array, dtype, check))


def _is_odd(array: Array, field: str, number: int, got: Any) -> WouldLose:
    """Return the error for a bool that is another byte than 0 and 1, in element `number`."""
    inside = f"in field '{field}' " if field else ""
    remedy = "`--dtype uint8` keeps the numbers"
    if field:
        remedy = "no option allows this; .npy, .npz and .ra keep it"
    return WouldLose(
        f"bool {inside}of array '{array.name}' is neither 0 nor 1",
        where=f"index {list(index_of(array, number))}",
        got=int(got),
        remedy=f"nothing was written; {remedy}",
    )


# Values scaled to 8 or 16 bits, as a lazy array: every value is checked while the data streams ---
# The first value outside the scale aborts with its index and leaves no output.


def scaled(array: Array, scale: str, bits: int) -> Array:
    """Return the array mapped linearly to 0 … 2^bits - 1 as uint8 or uint16.

    `scale` is ``unit`` (0:1), ``minmax`` (over the whole array, in a first pass) or ``LO:HI``.
    Rounding is half to even; values outside the range, NaN and infinities raise `WouldLose`.
    The mapping is recorded as attribute ``scale`` in the metadata.
    """
    if bits not in (8, 16):
        raise UsageError("`--bits` takes 8 or 16", got=bits)
    if array.element.kind not in REALS:
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

    float64 decides if its error cannot cross a tie; the few values near a tie are computed as
    fractions, each distinct value once.
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
        values_rounded = np.rint(rough)
    numbers, inverse = np.unique(values[unsure], return_inverse=True)
    exact = [round((Fraction(number) - Fraction(low)) * factor) for number in numbers.tolist()]
    values_rounded[unsure] = np.array(exact, np.float64)[inverse]
    return values_rounded


def _range(array: Array, scale: str) -> tuple[float, float]:
    """Return the ends of a scale, as given or of the data; ints for integers, as float64 rounds."""
    return check_scale(scale) or _extremes(array)


def check_scale(scale: str) -> tuple[float, float] | None:
    """Return the ends that a scale names; None for ``minmax``; `UsageError` for another text."""
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
    if low == high:  # a range is needed, in which every value becomes 0
        high = low + 1 if low + 1 > low else float(np.nextafter(low, np.inf))
    return low, high
