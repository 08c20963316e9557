"""Physical values of an array, lazily: its `Scale` is applied, NaN stands for what is missing."""

from __future__ import annotations

from math import isfinite

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks, index_of, region_of
from raconvert.arrays.cast import Converted
from raconvert.arrays.dtypes import dtype_of, element_of, little
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

    `decoded` gives the values of an array that is stored as blocks of bytes, None of any other.
    Raises what `scale_of` and, while values are read, what `unscaled` raises.
    """
    made, any_scale = [], False
    for array in arrays:
        sound = array.problem is None
        if decoded is not None and sound and (values := decoded(array)) is not None:
            made.append(values)
            any_scale = True
            continue
        scale = scale_of(array) if sound else None
        any_scale |= scale is not None
        made.append(array if scale is None else unscaled(array, scale, round_values=round_values))
    return made, [] if any_scale else [NOTHING]


def unscaled(array: Array, scale: Scale, *, round_values: bool = False) -> Array:
    """Return the array in physical values, as a lazy array in bounded memory.

    The type is float32 where all values of the stored type and both factors are, else float64;
    floats without factors keep their type, complex numbers become complex128. An integer of 64 bits
    without factors that float64 does not hold raises `WouldLose`, unless `round_values`.
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
    """The array in float64, each of its parts by its own factors."""
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
            yield self._of(block.reshape(-1), parts)
            done += block.size

    def _of(self, block: Values, parts: Values) -> Values:
        slopes, intercepts = self._factors[:, 0], self._factors[:, 1]
        values: Values = block.astype(np.float64) * slopes[parts] + intercepts[parts]
        return values

    def __getitem__(self, key: Any) -> Any:
        lengths = np.cumprod(self.shape)
        rank = int(np.flatnonzero(lengths == len(self._factors))[0]) + 1
        numbers = np.arange(len(self._factors)).reshape(
            (*self.shape[:rank], *(1,) * (len(self.shape) - rank))
        )
        chosen = np.broadcast_to(numbers, self.shape)[key]
        return self._of(np.asarray(region_of(self._array, key)), chosen)


class _Physical:
    """Conversion of blocks of an array to physical values, of type `dtype`."""

    def __init__(self, array: Array, scale: Scale, *, round_values: bool) -> None:
        stored = self.kept = dtype_of(little(array.element))
        wraps = scale.unsigned is not None
        if wraps:
            stored = np.dtype(f"<{'u' if scale.unsigned else 'i'}{stored.itemsize}")
        self.stored = stored
        self.dtype = _physical(stored, array.element.kind, scale)
        missing = [_as_stored(one, stored, wraps=wraps) for one in scale.missing]
        self.missing = [one for one in missing if one is not None]
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
        """The physical values of a block with so many elements before it."""
        shape = block.shape
        block = np.ascontiguousarray(block, self.kept).view(self.stored)
        if self.same:
            return block.reshape(shape)
        gone = np.zeros(block.shape, bool)
        for one in self.missing:
            gone |= block == one
        if not self.scale.of_physical:
            gone |= self._outside(block)
        with np.errstate(all="ignore"):
            values = block.astype(self.dtype)
            if self.exact:
                self._refuse_rounded(block, values, gone, done)
            if self.scale.slope is not None:
                values *= self.dtype.type(self.scale.slope)
            if self.scale.intercept is not None:
                values += self.dtype.type(self.scale.intercept)
        if self.scale.of_physical:
            gone |= self._outside(values)
        if gone.any():
            values[gone] = np.nan
        return values.reshape(shape)

    def _outside(self, values: Values) -> Any:
        """True for each value that lies outside the range."""
        gone = np.zeros(values.shape, bool)
        if self.low is not None:
            gone |= values < self.low
        if self.high is not None:
            gone |= values > self.high
        return gone

    def _refuse_rounded(self, block: Values, values: Values, gone: Values, done: int) -> None:
        wrong = np.flatnonzero(~(_exactly(block, values) | gone).reshape(-1))
        if wrong.size:
            raise WouldLose(
                f"value {block.reshape(-1)[wrong[0]]} of array '{self.array.name}' does not fit "
                f"{self.dtype.name}, which has NaN for those that are missing",
                where=f"index {list(index_of(self.array, done + int(wrong[0])))}",
                remedy="`--allow precision` rounds it; without `--unscale` it is as stored",
            )


def _physical(stored: Dtype, kind: str, scale: Scale) -> Dtype:
    """The type of physical values."""
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
    """A number as an element of the stored type; None if there is none that equals it.

    An integer that `wraps` may be said in the other signedness.
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
