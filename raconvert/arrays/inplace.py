"""Base of array sources whose elements lie in the file as they are, though not as one extent.

They are decoded front to back with all checks that the file allows, as `Decoded` is, wherever the
whole is wanted; a region that somebody picks is read by itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING

from raconvert.arrays.indexing import full_key, is_basic
from raconvert.arrays.lazy import Decoded
from raconvert.arrays.memory import check_memory
from raconvert.arrays.strided import range_of, region
from raconvert.files.source import read_failed

if TYPE_CHECKING:
    from typing import Any

LEAST_RUN = 1 << 12  # bytes in one place that are worth asking for


class Placed:
    """An open file that is read at any place."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def read_into(self, memory: memoryview, place: int) -> int:
        """Fill memory from byte `place`, as far as one read does, and return how far."""
        try:
            self._file.seek(place)
            return int(self._file.readinto(memory))
        except OSError as error:
            raise read_failed(self._path, error) from error


class InPlace(Decoded):
    """Base of array sources of which a region can be read without the rest.

    A subclass has `stream`, and `located`.
    """

    path: str

    @property
    def by_regions(self) -> bool:
        """True if `part` reads a region without the rest."""
        return True

    def located(self) -> AbstractContextManager[tuple[Any, int]]:
        """Open the file: a handle from which all elements are read in stored order, and where."""
        raise NotImplementedError

    def part(self, key: Any) -> Any:
        """The region that a key picks, read by itself where that is less than reading everything.

        A checksum over the whole is not looked at then.
        """
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full) or not self._is_less(full):
            return self[key]
        width = self.dtype.itemsize
        strides = tuple(width * prod(self.shape[n + 1 :]) for n in range(len(self.shape)))
        with self.located() as (file, offset):
            return region(file, self.path, offset, self.dtype, self.shape, strides, full)

    def _is_less(self, full: tuple[Any, ...]) -> bool:
        """True if a region is worth reading by itself: half of the elements at most, not crumbs.

        Above `max_memory` any is, and `TooLarge` is raised for what is too large by itself.
        """
        ranges = [range_of(part, length) for part, length in zip(full, self.shape, strict=True)]
        picked = prod(
            len(range(length)[part]) if isinstance(part, slice) else 1
            for part, length in zip(full, self.shape, strict=True)
        )
        if self.nbytes > self.max_memory:
            what = f"this part of {self.what}"
            check_memory(picked * self.dtype.itemsize, self.max_memory, what)
            return True
        run = self.dtype.itemsize
        for (begin, end, _), length in zip(ranges[::-1], self.shape[::-1], strict=True):
            run *= end - begin
            if end - begin < length:
                break
        spread = bool(ranges) and 2 * (ranges[0][1] - ranges[0][0]) > self.shape[0]
        return 2 * picked <= self.count and (run >= LEAST_RUN or not spread)
