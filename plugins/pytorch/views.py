"""The elements of a tensor that is a view of a part of its storage, by offset and strides."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.regions import full_key, is_basic, region, slabs
from raconvert.arrays.sources import InPlace
from raconvert.files.copy import check_extent
from raconvert.files.paths import close_file
from raconvert.plugin import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Element, Extent, Source

__all__ = ["View"]


class View(InPlace):
    """Array source of the elements at byte `begin` plus indices times `steps` of a storage.

    The CRC-32 of the storage is checked before the first of its views is read as a whole.
    """

    def __init__(
        self,
        source: Source,
        storage: Extent,
        kind: Element,
        begin: int,
        shape: tuple[int, ...],
        steps: tuple[int, ...],
        name: str,
    ) -> None:
        what = f"'{source.path}': tensor '{name}'"
        super().__init__(shape, dtype_of(kind), what=what, max_memory=source.max_memory)
        self.path = source.path
        self._storage = storage
        self._begin = begin
        self._steps = steps

    @contextmanager
    def located(self) -> Iterator[tuple[Any, int]]:
        """Open the file; give it and the offset of the first element."""
        file = self._storage.open()
        try:
            yield file, self._storage.offset + self._begin
        finally:
            close_file(file)

    def part(self, key: Any) -> Any:
        """Read the region that a key picks, without the rest, if that is cheaper."""
        full = full_key(key, len(self.shape))
        if self.held() is not None or not is_basic(full) or not self._is_less(full):
            return self[key]
        return self._region(full)

    def _region(self, key: Any) -> Any:
        """Read a region, and nothing else."""
        with self.located() as (file, offset):
            return region(file, self.path, offset, self.dtype, self.shape, self._steps, key)

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield one-dimensional pieces in C order."""
        check_extent(self._storage)
        for key in slabs(self.shape, self.dtype.itemsize, max_bytes):
            yield np.ascontiguousarray(self._region(key)).reshape(-1)
