"""Arrays of a file that is closed again, and opened anew when their turn comes.

Of thousands of sources that become one file each would keep a descriptor, and its library a cache.
"""

from __future__ import annotations

import numpy as np

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.conversion.read import open_spec
from raconvert.errors import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened


def closed(opened: Opened, spec: str, settings: Settings) -> list[Array]:
    """Close what was opened from `spec`; return its arrays, to be read when asked for."""
    found = [
        array if array.extent is not None else array.replace(data=Again(opened, spec, settings, n))
        for n, array in enumerate(opened.bundle.arrays)
    ]
    opened.bundle.close()
    return found


class Again:
    """Array source: array number `number` of a file that is opened for every pass over it."""

    def __init__(self, opened: Opened, spec: str, settings: Settings, number: int) -> None:
        array = opened.bundle.arrays[number]
        self.shape: tuple[int, ...] = array.dims[::-1]
        self.dtype: np.dtype[Any] = dtype_of(little(array.element))
        self._type = array.element, array.dims
        self._path = opened.bundle.path
        self._seen = opened.seen
        self._spec = spec
        self._settings = settings
        self._number = number

    def _open(self) -> Bundle:
        """Return the bundle, opened again, which must be what it was."""
        opened = open_spec(self._spec, self._settings)
        bundle = opened.bundle
        same = {path: self._seen.get(path) for path in opened.seen} == opened.seen
        array = bundle.arrays[self._number] if self._number < len(bundle.arrays) else None
        if not same or array is None or (array.element, array.dims) != self._type:
            bundle.close()
            raise changed(self._path)
        return bundle

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the blocks of the array in stored order."""
        with self._open() as bundle:
            yield from blocks(bundle.arrays[self._number], max_bytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        with self._open() as bundle:
            values = bundle.arrays[self._number].data[key]
            return np.array(values) if isinstance(values, np.ndarray) else values
