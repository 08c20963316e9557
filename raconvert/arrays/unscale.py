"""Physical values of an array, lazily: its `Scale` is applied, missing values become NaN."""

from __future__ import annotations

from math import isfinite, prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks, index_of, region_of
from raconvert.arrays.cast import Converted
from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.arrays.regions import full_key, range_of_key
from raconvert.arrays.scales import Scale, scale_of, without_scale
from raconvert.errors import WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]
    Number = int | float

NOTHING = "unscale changes nothing: the metadata says no slope, offset or fill value"


def all_unscaled(
    arrays: Iterable[Array],
    *,
    round_values: bool = False,
    decoded: Callable[[Array], Array | None] | None = None,
) -> tuple[list[Array], list[str]]:
    """Return the arrays in physical values, and a note if there is no scale at all.

    `decoded` returns the values of an array that is stored as blocks of bytes, None for any other.
    Raises what `scale_of` and, while values are read, what `unscaled` raises.
    """
    unscaled_arrays, any_scale = [], False
    for array in arrays:
        sound = array.problem is None
        if decoded is not None and sound and (values := decoded(array)) is not None:
            unscaled_arrays.append(values)
            any_scale = True
            continue
        scale = scale_of(array) if sound else None
        any_scale |= scale is not None
        unscaled_arrays.append(
            array if scale is None else unscaled(array, scale, round_values=round_values)
        )
    return unscaled_arrays, [] if any_scale else [NOTHING]


def unscaled(array: Array, scale: Scale, *, round_values: bool = False) -> Array:
    """Return the array in physical values, as a lazy array in bounded memory.

    The type is float32 if that holds all values of the stored type and both factors, else float64;
    floats without factors keep their type, complex numbers become complex128. A 64-bit integer
    without factors that float64 does not hold exactly raises `WouldLose`, unless `round_values`.
    """
    if scale.varies:
        return _unscaled_parts(array, scale)
    values = _Physical(array, scale, round_values=round_values)
    return array.replace(
        element=element_of(values.dtype),
        extent=None,
        storage={},
        meta=without_scale(array.meta),
        data=Converted(array, values.dtype, values.of),
    )


def physical_values(array: Array, scale: Scale) -> Callable[[Values], Values]:
    """Return a function that converts stored elements of an array to physical values.

    `scale` has one slope and one intercept for all. Integers that do not fit are rounded.
    """
    convert = _Physical(array, scale, round_values=True).of
    return lambda values: convert(values, 0)


def _unscaled_parts(array: Array, scale: Scale) -> Array:
    """Return the array in float64, each of its parts scaled by its own factors."""
    return array.replace(
        element=element_of(np.dtype("<f8")), extent=None, storage={},
        meta=without_scale(array.meta), data=_Parts(array, np.array(scale.each)),
    )  # fmt: skip


class _Parts:
    """Array source: another one whose parts have a slope and an intercept each."""

    by_regions = True

    def __init__(self, array: Array, factors: Values) -> None:
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype = np.dtype("<f8")
        self._array = array
        self._factors = factors
        self._each = array.count // len(factors)  # elements of a part

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield physical values in stored order."""
        done = 0
        for block in blocks(self._array, max(1, max_bytes // 8)):
            parts = np.arange(done, done + block.size) // self._each
            yield self._physical(block.reshape(-1), parts)
            done += block.size

    def _physical(self, block: Values, parts: Values) -> Values:
        """Return the physical values of a block; `parts` has the index of the part of each."""
        slopes, intercepts = self._factors[:, 0], self._factors[:, 1]
        values: Values = block.astype(np.float64) * slopes[parts] + intercepts[parts]
        return values

    def __getitem__(self, key: Any) -> Any:
        key = full_key(key, len(self.shape))
        numbers = np.zeros((), np.intp)  # of the elements that the key picks, in stored order
        for axis, part in enumerate(key):
            chosen = range_of_key(part, self.shape[axis])
            indices: Any = chosen
            if isinstance(chosen, range):
                indices = np.arange(chosen.start, chosen.stop, chosen.step)
            numbers = np.add.outer(numbers, indices * prod(self.shape[axis + 1 :]))
        parts = numbers // max(1, self._each)
        return self._physical(np.asarray(region_of(self._array, key)), parts)


class _Physical:
    """Conversion of blocks of an array to physical values, of type `dtype`."""

    def __init__(self, array: Array, scale: Scale, *, round_values: bool) -> None:
        stored = self.kept = dtype_of(little(array.element))
        wraps = scale.unsigned is not None
        if wraps:
            stored = np.dtype(f"<{'u' if scale.unsigned else 'i'}{stored.itemsize}")
        self.stored = stored
        self.dtype = _physical(stored, array.element.kind, scale)
        missing = [_as_stored(number, stored, wraps=wraps) for number in scale.missing]
        self.missing = [number for number in missing if number is not None]
        self.low, self.high = scale.low, scale.high
        if wraps and not scale.of_physical:
            self.low = _as_stored(scale.low, stored, wraps=True)
            self.high = _as_stored(scale.high, stored, wraps=True)
        long = stored.kind in "iu" and stored.itemsize == 8
        self.exact = long and not scale.packs and not round_values
        self.same = self.dtype == stored and not (scale.packs or scale.masks)
        self.array = array
        self.scale = scale

    def of(self, block: Values, done: int) -> Values:
        """Return the physical values of a block with `done` elements before it."""
        shape = block.shape
        block = np.ascontiguousarray(block, self.kept).view(self.stored)
        if self.same:
            return block.reshape(shape)
        missing = np.zeros(block.shape, bool)
        for number in self.missing:
            missing |= block == number
        if not self.scale.of_physical:
            missing |= self._outside(block)
        with np.errstate(all="ignore"):
            values = block.astype(self.dtype)
            if self.exact:
                self._refuse_rounded(block, values, missing, done)
            if self.scale.slope is not None:
                values *= self.dtype.type(self.scale.slope)
            if self.scale.intercept is not None:
                values += self.dtype.type(self.scale.intercept)
        if self.scale.of_physical:
            missing |= self._outside(values)
        if missing.any():
            values[missing] = np.nan
        return values.reshape(shape)

    def _outside(self, values: Values) -> Any:
        """True for each value that lies outside the range."""
        outside = np.zeros(values.shape, bool)
        if self.low is not None:
            outside |= values < self.low
        if self.high is not None:
            outside |= values > self.high
        return outside

    def _refuse_rounded(self, block: Values, values: Values, missing: Values, done: int) -> None:
        """Refuse (`WouldLose`) the first integer that was rounded, missing ones aside."""
        wrong = np.flatnonzero(~(_exactly(block, values) | missing).reshape(-1))
        if wrong.size:
            raise WouldLose(
                f"value {block.reshape(-1)[wrong[0]]} of array '{self.array.name}' does not fit "
                f"{self.dtype.name}, which has NaN for those that are missing",
                where=f"index {list(index_of(self.array, done + int(wrong[0])))}",
                remedy="`--allow precision` rounds it; without `--unscale` it is as stored",
            )


def _physical(stored: Dtype, kind: str, scale: Scale) -> Dtype:
    """Return the type of the physical values of elements of type `stored` and kind `kind`."""
    if kind == "complex":
        return np.dtype("<c16")
    whole = stored.kind in "iu"
    small = stored.itemsize <= (2 if whole else 4)
    if scale.packs:
        return np.dtype("<f4" if scale.single and small else "<f8")
    if not whole or not scale.masks:
        return stored
    return np.dtype("<f4" if small else "<f8")


def _as_stored(number: Number | None, stored: Dtype, *, wraps: bool) -> Any:
    """Return a number as an element of the stored type; None if no element equals it.

    `wraps`: an integer of the other signedness stands for the element with the same bits.
    """
    if number is None:
        return None
    if stored.kind not in "iu":
        with np.errstate(all="ignore"):
            return np.array(number).astype(stored)
    if not isfinite(number) or number != int(number):
        return None
    whole, bits = int(number), 8 * stored.itemsize
    lowest = 0 if stored.kind == "u" else -(1 << (bits - 1))
    if wraps and -(1 << (bits - 1)) <= whole < 1 << bits:
        whole = (whole - lowest) % (1 << bits) + lowest
    return np.array(whole, stored) if lowest <= whole < lowest + (1 << bits) else None


def _exactly(block: Values, values: Values) -> Any:
    """True for each integer that a float64 holds."""
    inside = values < 2.0 ** (64 if block.dtype.kind == "u" else 63)
    back = values.copy()
    back[~inside] = 0
    return inside & (back.astype(block.dtype) == block)
