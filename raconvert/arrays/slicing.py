"""A part of an array with its metadata: names, labels, spacing, coordinates, space.

`array[...]` gives values, for any key that NumPy takes; `array.slicer[...]` gives an `Array` of the
part, lazily, for integers, slices and an Ellipsis. ``--slice`` and ``FILE#NAME[...]`` are the same.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from raconvert.arrays.dtypes import dtype_of, needs_swap
from raconvert.arrays.regions import full_key, only_basic, picked, range_of_key, slabs, slice_of
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.source import Extent

    Values = np.ndarray[Any, Any]
    Part = int | range  # an index, whose axis goes, or the indices of an axis


def sliced(array: Any, key: Any) -> Any:
    """Return a part of an array with its metadata; nothing is read.

    `key`: integers, slices and an Ellipsis, in the order of `shape`. Raises `IndexError` as NumPy
    does, and for other keys.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if not only_basic(key) or any(part is None for part in keys):
        raise IndexError(
            "a slicer takes integers, slices and an Ellipsis; array[...] takes lists and masks too"
        )
    full = full_key(key, array.ndim)
    parts = [range_of_key(part, length) for part, length in zip(full, array.shape, strict=True)]
    shape = [len(part) for part in parts if not isinstance(part, int)]
    column_major = array.index_order == "F"
    stored = parts[::-1] if column_major else parts
    made = array.replace(
        dims=tuple(shape if column_major else shape[::-1]),
        meta=array.meta.sliced(parts) if array.described else None,
        extent=_extent(array, stored),
        data=partial(Sliced, array, stored),
        storage={},
    )
    if array.origin is not None:
        made.comes_from(_PartOfOrigin(array.origin, key))
    return made


class _PartOfOrigin:
    """The origin of a part: opens its array anew and takes the same part of it."""

    def __init__(self, origin: Any, key: Any) -> None:
        self._origin = origin
        self._key = key

    def __call__(self) -> Any:
        return sliced(self._origin(), self._key)


def _extent(array: Any, stored: list[Part]) -> Extent | None:
    """Return the extent of a part if it lies in one piece of a file, in order; else None.

    It does if all axes behind the first one that is cut are whole. `stored` are its parts along the
    axes, slowest first.
    """
    shape: tuple[int, ...] = array.dims[::-1]
    extent: Extent | None = array.extent
    lengths = [1 if isinstance(part, int) else len(part) for part in stored]
    if extent is None or 0 in lengths:
        return None
    longer = [axis for axis, length in enumerate(lengths) if length != 1]
    first = longer[0] if longer else len(stored) - 1
    for part, length in zip(stored[first + 1 :], shape[first + 1 :], strict=True):
        if part != range(length):
            return None
    outermost = stored[first] if stored else 0
    if isinstance(outermost, range) and len(outermost) > 1 and outermost.step != 1:
        return None
    width = array.element.nbytes
    begins = [part if isinstance(part, int) else part.start for part in stored]
    begin = sum(index * prod(shape[axis + 1 :]) for axis, index in enumerate(begins))
    return extent.part(begin * width, prod(lengths) * width)


class Sliced:
    """Array source: the elements of another array at an index or a range of each stored axis."""

    def __init__(self, array: Any, stored: list[Part]) -> None:
        self._array = array
        self._stored = stored
        self.shape: tuple[int, ...] = tuple(
            len(part) for part in stored if not isinstance(part, int)
        )
        self.dtype: np.dtype[Any] = dtype_of(array.element)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces of at most `max_bytes` in stored order."""
        data: Any = None if self._in_file() else self._array.data
        # While somebody holds the whole of a decoded source, it is not decoded again.
        whole = None if getattr(data, "by_regions", True) else data.whole()
        for key in slabs(self.shape, self.dtype.itemsize, max_bytes):
            yield self._region(key)
        del whole

    def __getitem__(self, key: Any) -> Any:
        return self._region(full_key(key, len(self.shape)))

    def _in_file(self) -> Extent | None:
        """Return the extent of the whole array if regions of it are read from its file."""
        extent = self._array.extent
        fits = extent is not None and extent.swap == needs_swap(self._array.element)
        return extent if fits and not self._array.mapped else None

    def _region(self, key: tuple[Any, ...]) -> Any:
        """Return the elements at a basic key of the part."""
        from raconvert.arrays.regions import read_region

        keys = iter((*key, *(slice(None),) * (len(self.shape) - len(key))))
        whole = tuple(
            part if isinstance(part, int) else _within(part, next(keys)) for part in self._stored
        )
        extent = self._in_file()
        if extent is not None and self._array.nbytes:
            return read_region(self._array.element, self._array.dims, extent, whole)
        return np.asarray(picked(self._array.data, whole), self.dtype)


def _within(part: range, key: Any) -> int | slice:
    """Return the key of an axis that picks what `key` picks of a range of its indices."""
    picked = part[key]
    return slice_of(picked) if isinstance(picked, range) else picked


# --- as text --------------------------------------------------------------------------------------


def key_of(text: str) -> tuple[Any, ...]:
    """Parse a key, as Python writes it between brackets.

    >>> key_of("1:, ::-2, ..., 0")
    (slice(1, None, None), slice(None, None, -2), Ellipsis, 0)

    Raises `UsageError` for anything but integers, slices and an Ellipsis.
    """
    return tuple(_part_of(word.strip(), text) for word in text.split(","))


def _part_of(word: str, text: str) -> Any:
    """Parse the key of one axis; `text` is the whole key, for the message."""
    if word in ("...", "…"):
        return ...
    try:
        numbers = [int(number) if number.strip() else None for number in word.split(":")]
        if len(numbers) == 1 and numbers[0] is not None:
            return numbers[0]
        if 2 <= len(numbers) <= 3 and numbers[2:] != [0]:
            return slice(*numbers)
    except ValueError:
        pass
    raise UsageError(
        f"`--slice '{text}'` is not understood at '{word}'",
        expected="integers, slices and ... for each axis, such as '1:, ..., ::2, 0'",
    )


def split_part(name: str) -> tuple[str, str] | None:
    """Split ``NAME[1:, 0]`` into the name and the text between its brackets; None without them."""
    head, bracket, rest = name.partition("[")
    return (head, rest[:-1]) if bracket and rest.endswith("]") else None


def part_of(array: Any, text: str) -> Any:
    """Return the part of an array at a key as text; `UsageError` if it has no such part."""
    key = key_of(text)
    try:
        return sliced(array, key)
    except IndexError as error:
        raise UsageError(
            f"`--slice '{text}'` is not a part of array '{array.name}': {error}",
            expected=f"indices of shape {array.shape}",
        ) from error
