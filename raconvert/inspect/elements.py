"""Comparison of the elements of two arrays in bounded memory."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks
from raconvert.arrays.dtypes import ML_DTYPES
from raconvert.arrays.reinterpret import as_characters, units_of
from raconvert.arrays.transpose import in_order
from raconvert.errors import Corrupt
from raconvert.files.source import DEFAULT_MAX_MEMORY
from raconvert.inspect.info import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from raconvert.arrays.array import Array
    from raconvert.inspect.where import Where

    Values = np.ndarray[Any, Any]
    Mask = Any


_LARGEST_EXACT = 2.0**63  # floats from here on are not an int64


class Rule:
    """Rule for comparing elements: tolerances, or bytes, and the memory that it may take.

    `singletons`: axes of length 1 count.
    """

    __slots__ = ("atol", "bitwise", "max_memory", "rtol", "singletons")

    def __init__(
        self,
        atol: float = 0.0,
        rtol: float = 0.0,
        bitwise: bool = False,
        max_memory: int = DEFAULT_MAX_MEMORY,
        singletons: bool = True,
    ) -> None:
        self.singletons: bool = singletons
        self.atol: float = atol
        self.rtol: float = rtol
        self.bitwise: bool = bitwise
        self.max_memory: int = max_memory

    def shape_of(self, array: Array) -> tuple[int, ...]:
        """The shape of an array; by the rule, without axes of length 1."""
        shape = array.shape
        return shape if self.singletons else tuple(length for length in shape if length != 1)


def order_of(a: Array, b: Array) -> Literal["C", "F"]:
    """The order in which the elements of two arrays are compared."""
    return "F" if a.index_order == b.index_order == "F" else "C"


def compare_data(a: Array, b: Array, rule: Rule, where: Where | None = None) -> dict[str, Any]:
    """Compare the elements of two arrays of one shape, block by block, in one stored order.

    Returns the counts, and the largest differences with their indices. The elements that differ are
    added to `where`, if it is given. Raises what reading elements raises.
    """
    if letter(a) != letter(b):
        a, b = as_characters(a), as_characters(b)
    order = order_of(a, b)
    sides = in_order(a, order, rule.max_memory), in_order(b, order, rule.max_memory)
    equal = _same_bytes if _by_bytes(a, b, rule) else _same_values
    findings = _Findings(a.shape, order, where)
    for start, x, y in _side_by_side(*sides, block_bytes(rule.max_memory)):
        if x.dtype == y.dtype and _same_bytes_all(x, y):
            continue
        unequal = np.flatnonzero(~equal(x, y))
        if unequal.size:
            findings.add(start, unequal, x[unequal], y[unequal], rule)
    return findings.to_dict()


def _by_bytes(a: Array, b: Array, rule: Rule) -> bool:
    """True if elements are equal only if their bytes are: by the rule, and for most user types."""
    return rule.bitwise or (
        a.element.kind == "user"
        and a.element.nbytes == b.element.nbytes
        and (a.element.descr == b.element.descr or "V" in (letter(a), letter(b)))
    )


def _side_by_side(a: Array, b: Array, max_bytes: int) -> Iterator[tuple[int, Values, Values]]:
    """Yield (first element, values of a, values of b): flat pieces of equal length, in order."""
    if a.count == 0:
        return
    left, right = blocks(a, max_bytes), blocks(b, max_bytes)
    x = y = np.empty(0)  # the rest of the block of each side
    done = 0
    while done < a.count:
        if not x.size:
            x = _next(left, a, done)
        if not y.size:
            y = _next(right, b, done)
        count = min(x.size, y.size)
        yield done, x[:count], y[:count]
        x, y = x[count:], y[count:]
        done += count


def _next(pieces: Iterator[Values], array: Array, done: int) -> Values:
    """The next block with elements. Raises `Corrupt` if the array ends early."""
    for piece in pieces:
        if piece.size:
            return piece.reshape(-1)
    raise Corrupt(f"array '{array.name}' ended early", expected=f"{array.count} elements", got=done)


def _as_bytes(values: Values) -> Values:
    """Return the bytes of each element as one row."""
    values = np.ascontiguousarray(values)
    return values.view(np.uint8).reshape(values.size, values.itemsize)


def _same_bytes_all(x: Values, y: Values) -> bool:
    """True if two pieces are equal byte for byte."""
    return np.array_equal(
        np.ascontiguousarray(x).view(np.uint8), np.ascontiguousarray(y).view(np.uint8)
    )


def _same_bytes(x: Values, y: Values) -> Mask:
    """True for each element whose bytes are equal in both."""
    return (_as_bytes(x) == _as_bytes(y)).all(axis=1)


def _same_values(x: Values, y: Values) -> Mask:
    """True for each element that is equal in both, exactly, NaN with NaN.

    numpy compares integers with floats in float64, which rounds beyond 2**53: there the float is
    turned into an integer instead, if it is one.
    """
    if {x.dtype.kind, y.dtype.kind} == {"S", "U"}:
        return _same_text(x, y)
    x, y = _widened(x), _widened(y)
    if x.dtype.kind in "iu" and y.dtype.kind in "fc":
        return _same_integer(x, y)
    if y.dtype.kind in "iu" and x.dtype.kind in "fc":
        return _same_integer(y, x)
    if "c" in (x.dtype.kind, y.dtype.kind):
        return _same_float(x.real, y.real) & _same_float(x.imag, y.imag)
    if x.dtype.kind == y.dtype.kind == "f":
        return _same_float(x, y)
    same = x == y
    if x.dtype.kind in "mM" and y.dtype.kind in "mM":
        same |= np.isnat(x) & np.isnat(y)
    return same


def _same_text(x: Values, y: Values) -> Mask:
    """True for each byte string that has the characters of the text, one in each byte."""
    units = [units_of(values) for values in (x, y)]
    width = max(unit.shape[-1] for unit in units)
    left, right = (
        np.pad(unit.astype(np.uint32), ((0, 0), (0, width - unit.shape[-1]))) for unit in units
    )
    return (left == right).all(axis=-1)


def _widened(values: Values) -> Values:
    """Return bfloat16 as float32 and bool as uint8; anything else as it is."""
    if values.dtype.name in ML_DTYPES:
        return values.astype(np.float32)
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def _same_float(x: Values, y: Values) -> Mask:
    """True for each element that is equal in both, NaN with NaN."""
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _same_integer(integers: Values, floats: Values) -> Mask:
    """True for each integer that is exactly the value of the float."""
    real = floats.real.astype(np.float64)
    top = _LARGEST_EXACT * (2 if integers.dtype.kind == "u" else 1)
    low = 0.0 if integers.dtype.kind == "u" else -_LARGEST_EXACT
    whole = (real >= low) & (real < top) & (np.floor(real) == real)
    wide = np.uint64 if integers.dtype.kind == "u" else np.int64
    return whole & (np.where(whole, real, 0).astype(wide) == integers) & (floats.imag == 0)


class _Findings:
    """Counts of elements that differ, and the largest differences with their indices."""

    def __init__(
        self, shape: tuple[int, ...], order: Literal["C", "F"], where: Where | None
    ) -> None:
        self._where = where
        self._shape = shape
        self._order = order
        self.differ = 0
        self.nan_only = [0, 0]
        self.first: list[int] | None = None
        self.largest: dict[str, tuple[float, list[int]] | None] = {"abs": None, "rel": None}

    def add(self, start: int, unequal: Values, x: Values, y: Values, rule: Rule) -> None:
        """Count the elements at the flat indices `start` + `unequal`; their values are x and y."""
        beyond = np.ones(unequal.size, bool)  # the tolerance of the rule
        x, y = _widened(x), _widened(y)
        distance = None
        if x.dtype.kind in "iufc" and y.dtype.kind in "iufc":
            with np.errstate(all="ignore"):
                distance, scale = _distance(x, y), np.maximum(np.abs(_real(x)), np.abs(_real(y)))
                if rule.atol or rule.rtol:  # a distance may round to 0 between unequal values
                    close = distance <= rule.atol + rule.rtol * scale
                    beyond = ~close | np.isinf(distance)
                self._update_largest("abs", distance, start, unequal)
                self._update_largest("rel", distance / scale, start, unequal)
            nan_x, nan_y = np.isnan(x), np.isnan(y)
            self.nan_only[0] += int((nan_x & ~nan_y).sum())
            self.nan_only[1] += int((nan_y & ~nan_x).sum())
        if self._where is not None and beyond.any():
            sizes = None if distance is None else distance[beyond]
            self._where.add(start + unequal[beyond], x[beyond], y[beyond], sizes)
        self.differ += int(beyond.sum())
        if self.first is None and beyond.any():
            self.first = self._index(start + int(unequal[beyond][0]))

    def _update_largest(self, name: str, sizes: Values, start: int, unequal: Values) -> None:
        """Replace the largest difference of this name if one of these is larger."""
        numbers = np.where(np.isnan(sizes), -1.0, sizes)
        at = int(numbers.argmax())
        best = self.largest[name]
        if numbers[at] >= 0 and (best is None or numbers[at] > best[0]):
            self.largest[name] = float(numbers[at]), self._index(start + int(unequal[at]))

    def _index(self, flat: int) -> list[int]:
        """Return the logical index of the element at this flat index in the compared order."""
        return [int(i) for i in np.unravel_index(flat, self._shape, order=self._order)]

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        count = 1
        for length in self._shape:
            count *= length
        findings: dict[str, Any] = {"count": count, "differ": self.differ, "first": self.first}
        for name, best in self.largest.items():
            findings[f"max_{name}"] = None if best is None else plain(best[0])
            findings[f"max_{name}_index"] = None if best is None else best[1]
        findings["nan_only_in_a"], findings["nan_only_in_b"] = self.nan_only
        return findings


def _real(values: Values) -> Values:
    """Return values in which a magnitude fits: float64, or complex128."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _distance(x: Values, y: Values) -> Any:
    """Return abs(x - y) as float64; between integers of one signedness it is exact first."""
    if x.dtype.kind == y.dtype.kind and x.dtype.kind in "iu":
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        x, y = x.astype(wide), y.astype(wide)
        high, low = np.maximum(x, y).view(np.uint64), np.minimum(x, y).view(np.uint64)
        return (high - low).astype(np.float64)
    return np.abs(_real(x) - _real(y))


def letter(array: Array) -> str:
    """Return numpy's letter for the type of user elements: S, U, M, m or V."""
    descr = array.element.descr
    return descr[1] if isinstance(descr, str) else "V"
