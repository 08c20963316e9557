"""Array sources of objects: strings, times, categories, columns; each over a stored array.

The elements of that array come in MATLAB's order, in bounded memory.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.blocks import LARGEST_BLOCK, blocks
from raconvert.arrays.dtypes import dtype_of
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, RaconvertError, Unsupported

from .sources import join_pairs
from .tables import in_variable
from .tree import MAX_AXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.plugin import Source

    Values = np.ndarray[Any, Any]

STEP = 1 << 20  # bytes of the stored array that are read together
MISSING = (1 << 64) - 1  # length of a text that is missing
WIDEST = (1 << 29) - 1  # most characters in a text of numpy
SCALES = {"ms": 1, "us": 1000, "ns": 1_000_000}  # units in a millisecond
NEAR = 1e-11  # milliseconds: 10 fs; MATLAB takes seconds as double, which are 4 fs off at most


class _OfObject(Decoded):
    """Elements of an object in a variable, shape slowest axis first."""

    def __init__(
        self, dims: tuple[int, ...], dtype: np.dtype[Any], path: str, source: Source
    ) -> None:
        what = f"'{source.path}': variable '{path}'"
        super().__init__(dims[::-1], dtype, what=what, max_memory=source.max_memory)
        self.path = path
        self.source = source

    def corrupt(self, what: str, **facts: Any) -> Corrupt:
        """The error for elements that contradict themselves."""
        return Corrupt(what, path=self.source.path, where=f"variable '{self.path}'", **facts)

    def _stored(self, array: Array, step: int) -> Iterator[Values]:
        """Yield the stored elements in blocks; add the name of the variable to errors."""
        try:
            for block in blocks(array, step):
                yield block.reshape(-1)
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise


# Strings -----------------------------------------------------------------------------------------


class _Numbers:
    """The numbers of an array, taken front to back."""

    def __init__(self, array: Array) -> None:
        self._blocks = (block.reshape(-1) for block in blocks(array, STEP))
        self._rest: Values = np.zeros(0, "<u8")
        self.left = array.count

    def take(self, count: int) -> Values:
        """Read the next numbers; the caller has checked that they exist."""
        self.left -= count
        parts = []
        while count:
            if not self._rest.size:
                self._rest = next(self._blocks).copy()
            part, self._rest = self._rest[:count], self._rest[count:]
            parts.append(part)
            count -= part.size
        return np.concatenate(parts) if parts else np.zeros(0, "<u8")


class Strings:
    """The strings of one object: dims, width of the longest, and whether any is missing."""

    def __init__(self, array: Array, path: str, source: Source) -> None:
        self.array = array
        self.path = path
        self.source = source
        numbers = _Numbers(array)
        self.dims = self._dims(numbers)
        self.first = 2 + len(self.dims) if array.count else 0  # index of the first length
        count = prod(self.dims)
        check_memory(24 * count, source.max_memory, f"'{source.path}': strings of '{path}'")
        if count > numbers.left:
            raise self.corrupt("fewer lengths of strings than strings", count, numbers.left)
        lengths = numbers.take(count)
        gone = lengths == MISSING
        self.is_missing = bool(gone.any())
        lengths[gone] = 0
        room = 4 * numbers.left
        if count and (int(lengths.max()) > room or int(lengths.sum(dtype=object)) > room):
            raise self.corrupt("strings are longer than their data", f"at most {room} units")
        self.width = max(1, int(lengths.max()) if count else 1)
        if self.width > WIDEST:
            raise Unsupported("a string is too long for text of a fixed width", path=source.path,
                              expected=f"at most {WIDEST} units", got=self.width)  # fmt: skip
        what = f"{count} strings of variable length, {4 * self.width} bytes wide,"
        check_memory(4 * self.width * count, source.max_memory, what)

    def corrupt(self, what: str, expected: object, got: object = None) -> Corrupt:
        """The error for strings that contradict themselves."""
        return Corrupt(what, path=self.source.path, where=f"variable '{self.path}'",
                       expected=expected, got=got)  # fmt: skip

    def _dims(self, numbers: _Numbers) -> tuple[int, ...]:
        """Read the dims from the beginning of the numbers."""
        if not numbers.left:
            return (0, 0)
        if numbers.left < 2:
            raise self.corrupt("strings without dims", "at least 2 numbers", numbers.left)
        version, rank = (int(n) for n in numbers.take(2))
        if version != 1:
            raise Unsupported("strings of an unknown version", path=self.source.path,
                              expected=1, got=version)  # fmt: skip
        if not 2 <= rank <= min(MAX_AXES, numbers.left):
            raise self.corrupt("strings with an impossible number of dims",
                               f"2 to {MAX_AXES}", rank)  # fmt: skip
        dims = tuple(int(n) for n in numbers.take(rank))
        if prod(n for n in dims if n) >= 1 << 48:
            raise self.corrupt("strings with impossible dims", "below 2^48 strings", dims)
        return dims

    def lengths(self, numbers: _Numbers) -> Values:
        """Read the length of each text in units, from the beginning of the numbers."""
        numbers.take(self.first)
        return numbers.take(prod(self.dims))

    def texts(self) -> _Strings:
        """The source of the texts."""
        return _Strings(self)

    def missing(self) -> _Missing:
        """The source that tells which texts are missing."""
        return _Missing(self)


class _Strings(_OfObject):
    """The texts of strings; missing ones are empty."""

    def __init__(self, strings: Strings) -> None:
        dtype = np.dtype(f"<U{strings.width}")
        super().__init__(strings.dims, dtype, strings.path, strings.source)
        self._strings = strings

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the texts in stored order."""
        strings, width = self._strings, self._strings.width
        try:
            numbers = _Numbers(strings.array)
            lengths = strings.lengths(numbers)
            lengths[lengths == MISSING] = 0
            units = lengths.astype(np.int64)
            step = max(1, min(max_bytes, LARGEST_BLOCK) // self.dtype.itemsize)
            rest = np.zeros(0, "<u2")
            for start in range(0, units.size, step):
                some = units[start : start + step]
                total = int(some.sum())
                more = -(-max(0, total - rest.size) // 4)  # numbers of 64 bits, four units each
                rest = np.concatenate((rest, numbers.take(more).astype("<u8").view("<u2")))
                yield self._rows(some, rest[:total], width)
                rest = rest[total:]
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise

    def _rows(self, lengths: Values, units: Values, width: int) -> Values:
        """Units of one text after the other as texts of one width."""
        points = np.zeros((lengths.size, width), "<u4")
        points[np.arange(width) < lengths[:, None]] = units
        full = np.flatnonzero(lengths)
        if (points[full, lengths[full] - 1] == 0).any():
            raise Unsupported("a string ends with NUL, which text of a fixed width cannot tell",
                              path=self.source.path)  # fmt: skip
        if width > 1:
            join_pairs(points)
        return points.view(self.dtype)[:, 0]


class _Missing(_OfObject):
    """Booleans: True for each string that is missing."""

    def __init__(self, strings: Strings) -> None:
        super().__init__(strings.dims, np.dtype(bool), strings.path, strings.source)
        self._strings = strings

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield whether strings are missing, in stored order."""
        lengths = self._strings.lengths(_Numbers(self._strings.array))
        for start in range(0, lengths.size, max(1, max_bytes)):
            yield lengths[start : start + max(1, max_bytes)] == MISSING


class Texts(_OfObject):
    """Texts that are in memory already, along one axis."""

    def __init__(self, texts: list[str], width: int, path: str, source: Source) -> None:
        super().__init__((len(texts),), np.dtype(f"<U{width}"), path, source)
        self._texts = texts

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the texts in order."""
        step = max(1, min(max_bytes, LARGEST_BLOCK) // self.dtype.itemsize)
        for start in range(0, len(self._texts), step):
            yield np.array(self._texts[start : start + step], self.dtype)


# Times -------------------------------------------------------------------------------------------


def counts(stored: Values, unit: str, *, nearest: bool = False) -> tuple[Values, Values]:
    """Times as whole units, and for each if that is exact (with `nearest`: if it can be rounded).

    `stored` are milliseconds, complex if they come in two parts; NaN is NaT. A time is exact if it
    is as near to a whole number of units as MATLAB itself can set it (`NEAR`), or if its only part
    is the double nearest to that number.
    """
    real = stored.real.astype("<f8", copy=False)
    rest = stored.imag if stored.dtype.kind == "c" else np.zeros(real.shape)
    scale = SCALES[unit]
    with np.errstate(all="ignore"):
        gone = np.isnan(real) | np.isnan(rest)
        whole = np.floor(real)
        part = ((real - whole) + rest) * scale
        near = np.rint(part)
        single = (rest == 0) & (np.abs(real) * scale < float(1 << 53))
        single &= np.rint(real * scale) / scale == real
        normal = np.abs(rest) <= np.abs(real) * 2.0**-52
        fits = (np.abs(whole) * scale < float(1 << 62)) & (np.abs(near) < float(1 << 61))
        exact = (np.abs(part - near) <= NEAR * scale) | single | nearest
        ok = gone | (normal & fits & exact)
        safe = ok & ~gone
        ticks = np.where(safe, whole, 0).astype(np.int64) * scale
        ticks += np.where(safe, near, 0).astype(np.int64)
        ticks = np.where(safe & single, np.rint(real * scale), 0).astype(np.int64) + np.where(
            safe & ~single, ticks, 0
        )
    ticks[gone] = np.iinfo(np.int64).min
    return ticks, ok


def unit_of(array: Array, *, nearest: bool) -> tuple[str | None, bool]:
    """The coarsest unit from ms to ns that holds all times, or None; and True if it rounds them."""
    units = [*SCALES]
    for block in blocks(array, STEP):
        units = [unit for unit in units if counts(block.reshape(-1), unit)[1].all()]
        if not units:
            break
    if units or not nearest:
        return (units[0] if units else None), False
    units = [*SCALES][::-1]
    for block in blocks(array, STEP):
        flat = block.reshape(-1)
        units = [unit for unit in units if counts(flat, unit, nearest=True)[1].all()]
    return (units[0] if units else None), True


class Times(_OfObject):
    """Times or durations (`kind`: M8 or m8) in a unit that holds all of them."""

    def __init__(self, array: Array, kind: str, unit: str, path: str, source: Source) -> None:
        super().__init__(array.dims, np.dtype(f"<{kind}[{unit}]"), path, source)
        self._array = array
        self._unit = unit

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the times in stored order."""
        for block in self._stored(self._array, max(8, min(max_bytes, STEP))):
            yield counts(block, self._unit, nearest=True)[0].view(self.dtype)


# Categories and columns --------------------------------------------------------------------------


class Codes(_OfObject):
    """Indices into the list of categories, from 0; -1 for undefined elements."""

    def __init__(self, array: Array, count: int, nbytes: int, path: str, source: Source) -> None:
        super().__init__(array.dims, np.dtype(f"<i{nbytes}"), path, source)
        self._array = array
        self._categories = count

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the indices in stored order."""
        for block in self._stored(self._array, max(8, min(max_bytes, STEP))):
            lowest, highest = int(block.min(initial=0)), int(block.max(initial=0))
            if lowest < 0 or highest > self._categories:
                raise self.corrupt("a code has no category", expected=f"0 to {self._categories}",
                                   got=lowest if lowest < 0 else highest)  # fmt: skip
            yield (block.astype(np.int64) - 1).astype(self.dtype)


class Flat(Decoded):
    """A matrix of one column with one axis."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self._inner = array.data
        what = getattr(self._inner, "what", f"variable '{array.name}'")
        memory = getattr(self._inner, "max_memory", array.nbytes)
        super().__init__((array.count,), dtype_of(array.element), what=what, max_memory=memory)

    @property
    def by_regions(self) -> bool:
        """True if a region is read without the rest."""
        return bool(getattr(self._inner, "by_regions", True))

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the elements in stored order."""
        for block in blocks(self._array, max_bytes):
            yield block.reshape(-1).astype(self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        if not self.by_regions:
            return super().__getitem__(key)
        return self._inner[(0, *full_key(key, 1))]
