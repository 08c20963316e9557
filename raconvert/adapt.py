"""Changes that the user asked for or the target needs, each as a lazy array: order, type, scale.

Nothing here is silent: casts check every value while the data streams, and the first value that
does not fit aborts with its index and leaves no output.
"""

from __future__ import annotations

import numpy as np

from raconvert.blocks import LARGEST_BLOCK, blocks, index_of
from raconvert.elements import element_of, little, type_name
from raconvert.errors import Unsupported, UsageError, WouldLose
from raconvert.model import Array
from raconvert.ra.header import COMPLEX32
from raconvert.source import DEFAULT_MAX_MEMORY
from raconvert.transpose import Transposed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


# Axis order ------------------------------------------------------------------------------------


def in_order(array: Array, order: str, max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its elements stored in this index order (C or F), [i,j,k] kept.

    Nothing moves when it is so already, when the index order is unknown, or below two dimensions.
    """
    if array.index_order in (order, None) or array.ndim < 2:
        if array.index_order is None or array.ndim < 2:
            return array.replace(index_order=order)
        return array
    back = tuple(range(array.ndim))[::-1]
    moved = _moved(array, back, max_memory)
    moved.index_order = order
    return moved


def permuted(array: Array, axes: tuple[int, ...], max_memory: int = DEFAULT_MAX_MEMORY) -> Array:
    """Return the array with its logical axes in the order `axes` (as numpy.transpose)."""
    if sorted(axes) != list(range(array.ndim)):
        raise UsageError(
            f"--axes {','.join(map(str, axes))} does not permute the axes of '{array.name}'",
            expected=f"each of 0 to {array.ndim - 1} once",
        )
    if list(axes) == sorted(axes):
        return array
    if array.index_order == "F":
        # The data is seen with its axes reversed: logical axis i is data axis n-1-i.
        last = array.ndim - 1
        axes = tuple(last - axes[last - i] for i in range(array.ndim))
    return _moved(array, axes, max_memory)


def relisted(array: Array) -> Array:
    """Return the array with its axes listed in reverse; no element moves (keep-memory)."""
    order = {"C": "F", "F": "C", None: "F"}[array.index_order]
    return array.replace(index_order=order)


def _moved(array: Array, axes: tuple[int, ...], max_memory: int) -> Array:
    """Transpose the data, seen slowest axis first, and everything that is known per axis."""
    shape = array.dims[::-1]
    new_shape = tuple(shape[axis] for axis in axes)
    meta = array.meta.copy()
    if axes[0] != 0:  # they belong to the slowest axis
        meta.items = None
    own = meta.formats.get("ra", {})
    if axes[-1] != array.ndim - 1 and own.get("elbyte") == COMPLEX32[1]:
        # Its pairs were the fastest axis, which now is another: these are plain halves.
        del own["eltype"], own["elbyte"]
    if meta.axes:
        meta.axes = _permuted_list(meta.axes, axes)
    for space in meta.formats.values():
        listed = space.get("axes")
        if isinstance(listed, list) and len(listed) == array.ndim:
            space["axes"] = _permuted_list(listed, axes)
    return array.replace(
        element=little(array.element),
        dims=new_shape[::-1],
        meta=meta,
        extent=None,
        data=lambda: Transposed(array, axes, max_memory),
    )


def _permuted_list(listed: list[Any], axes: tuple[int, ...]) -> list[Any]:
    """Return what is known per axis, fastest first, for data whose axes `axes` permutes."""
    seen = listed[::-1]
    return [seen[axis] for axis in axes][::-1]


# Element type ----------------------------------------------------------------------------------


class Converted:
    """Array source: another one with a function applied to every block.

    `convert` takes a block and the count of elements before it. `rounded` becomes True when a value
    was not kept exactly.
    """

    rounded = False

    def __init__(
        self,
        array: Array,
        dtype: np.dtype[Any],
        convert: Callable[[np.ndarray[Any, Any], int], np.ndarray[Any, Any]],
    ) -> None:
        self.shape = array.dims[::-1]
        self.dtype = dtype
        self._array = array
        self._convert = convert

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield converted blocks in stored order."""
        done = 0
        for block in blocks(self._array, max_bytes):
            yield self._convert(block, done)
            done += block.size

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        return self._convert(np.asarray(self._array.data[key]), 0)


def cast(array: Array, name: str, *, round_values: bool = False) -> Array:
    """Return the array as another element type, every value checked while it streams.

    The first value that the type cannot hold exactly raises `WouldLose` with its index;
    `round_values` (``--allow precision``) rounds instead, but never wraps or saturates.
    """
    dtype = parse_dtype(name)
    if array.element.kind == "user":
        raise Unsupported(
            f"array '{array.name}' of type {type_name(array.element)} cannot be cast to {name}",
            remedy="only numbers and bools can be cast",
        )
    if little(array.element) == element_of(dtype):
        return array

    def convert(block: np.ndarray[Any, Any], done: int) -> np.ndarray[Any, Any]:
        values = _cast_block(
            block, dtype, round_values, lambda i: index_of(array, done + i), array.name
        )
        if round_values and not source.rounded:
            source.rounded = not _same(block, values).all()
        return values

    source = Converted(array, dtype, convert)
    return array.replace(element=element_of(dtype), extent=None, data=source)


def as_bool(array: Array) -> Array:
    """Return numbers that stand for false and true as bool: 0 and 1, or 0 and 255 (images)."""

    def convert(block: np.ndarray[Any, Any], done: int) -> np.ndarray[Any, Any]:
        wrong = np.flatnonzero(~np.isin(block.reshape(-1), (0, 1, 255)))
        if wrong.size:
            raise WouldLose(
                f"value {block.reshape(-1)[wrong[0]]} of array '{array.name}' is no bool",
                where=f"index {list(index_of(array, done + int(wrong[0])))}",
            )
        return block != 0

    if array.element.kind == "bool":
        return array
    source = Converted(array, np.dtype(bool), convert)
    return array.replace(element=element_of(np.dtype(bool)), extent=None, data=source)


def parse_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of a name such as ``uint8``; numbers and bools only."""
    if name == "bfloat16":
        from raconvert.elements import bfloat16

        return bfloat16()
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise UsageError(
            f"unknown element type '{name}'", expected="such as uint8 or float32"
        ) from (error)
    if dtype.kind not in "biufc":
        raise UsageError(f"--dtype {name} is no numeric type")
    return dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype


def _cast_block(
    block: np.ndarray[Any, Any],
    dtype: np.dtype[Any],
    round_values: bool,
    index: Callable[[int], tuple[int, ...]],
    name: str,
) -> np.ndarray[Any, Any]:
    source = block
    if round_values and dtype.kind in "iu" and block.dtype.kind in "fV":  # V: bfloat16
        source = np.rint(block)
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
            remedy=f"nothing was written; {_way_out(value, dtype, round_values)}",
        )
    return cast_values


def _way_out(value: np.ndarray[Any, Any], dtype: np.dtype[Any], round_values: bool) -> str:
    """Return what would help a value that does not fit."""
    if not round_values:
        try:
            _cast_block(value, dtype, True, lambda _: (), "")
        except WouldLose:
            pass
        else:
            return "--allow precision rounds it"
    if value.dtype.kind == "c" and value[0].imag != 0:
        return "choose a complex type"
    if value.dtype.kind in "fc" and not np.isfinite(value[0]):
        return "choose a floating-point type"
    return "choose a type with a larger range"


def _astype(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if values.dtype.kind == "c" and dtype.kind != "c":
        return values.real.astype(dtype)
    return values.astype(dtype)


def _only_rounded(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> Any:
    """Tell per element whether nothing but precision is lost.

    Rounding is no leave to turn a finite value into infinity, or to drop an imaginary part.
    """
    if before.dtype.kind == "c":
        if after.dtype.kind == "c":
            return _only_rounded(before.real, after.real) & _only_rounded(before.imag, after.imag)
        return _only_rounded(before.real, after) & (before.imag == 0)
    return np.isfinite(after) | ~np.isfinite(before)


def _same(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Tell per element whether the cast kept the value (NaN stays NaN), exactly.

    numpy compares integers with floats in float64, which rounds above 2^53; so floats are
    compared as floats and integers as integers, after a range check.
    """
    if before.dtype.kind == "c" or after.dtype.kind == "c":
        parts = (_part(before), _part(after)), (_part(before, "imag"), _part(after, "imag"))
        return _same(*parts[0]) & _same(*parts[1])
    if before.dtype.kind in "biu" and after.dtype.kind in "biu":
        return _integers_equal(before, after)
    if before.dtype.kind in "biu":
        return _float_to_integer(after.astype(np.float64), before.dtype) == before
    wide = before.astype(np.float64)
    if after.dtype.kind in "biu":
        inside = (wide >= _low(after.dtype)) & (wide < _beyond(after.dtype))
        return inside & (after.astype(np.float64) == wide)
    back = after.astype(np.float64)
    return (wide == back) | (np.isnan(wide) & np.isnan(back))


def _part(values: np.ndarray[Any, Any], name: str = "real") -> np.ndarray[Any, Any]:
    """Return the real or imaginary part; of real numbers the latter is zero, of their own type."""
    if values.dtype.kind == "c":
        part: np.ndarray[Any, Any] = getattr(values, name)
        return part
    return values if name == "real" else np.zeros_like(values)


def _integers_equal(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Compare integers of any signedness by value: equal bits and equal sign."""
    negative_a = a < 0 if a.dtype.kind == "i" else np.zeros(a.shape, bool)
    negative_b = b < 0 if b.dtype.kind == "i" else np.zeros(b.shape, bool)
    return (a.astype(np.uint64) == b.astype(np.uint64)) & (negative_a == negative_b)


def _low(dtype: np.dtype[Any]) -> float:
    return 0.0 if dtype.kind == "b" else float(np.iinfo(dtype).min)


def _beyond(dtype: np.dtype[Any]) -> float:
    return 2.0 if dtype.kind == "b" else float(int(np.iinfo(dtype).max) + 1)


def _float_to_integer(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Cast floats to integers; values outside the type become one that cannot be equal."""
    inside = (values >= _low(dtype)) & (values < _beyond(dtype))
    return (
        np.where(inside, values, 0).astype(dtype)
        if inside.all()
        else _marked(values, inside, dtype)
    )


def _marked(
    values: np.ndarray[Any, Any], inside: np.ndarray[Any, Any], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    back = np.where(inside, values, 0).astype(dtype).astype(object)
    back[~inside] = None
    return back


# Scale -----------------------------------------------------------------------------------------


def scaled(array: Array, scale: str, bits: int) -> Array:
    """Return the array mapped linearly to 0 … 2^bits - 1 as uint8 or uint16.

    `scale` is ``unit`` (0:1), ``minmax`` (over the whole array, in a first pass) or ``LO:HI``.
    Rounding is half to even; values outside the range, NaN and infinities raise `WouldLose`.
    The mapping is kept as attribute ``scale`` in the metadata.
    """
    if bits not in (8, 16):
        raise UsageError("--bits takes 8 or 16", got=bits)
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
                remedy="nothing was written; choose --scale minmax or a wider LO:HI",
            )
        return _rounded_scale(values, low, high, top).astype(dtype)

    meta = array.meta.copy()
    meta.attributes["scale"] = {"from": [low, high], "to": [0, top]}
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
    if scale == "unit":
        return 0.0, 1.0
    if scale == "minmax":
        return _extremes(array)
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
