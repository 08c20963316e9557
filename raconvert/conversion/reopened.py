"""Files that are opened for a program, whose arrays can be opened again in other processes.

A process that is forked, or unpickles an array, does not share open files: it opens its own.
"""

from __future__ import annotations

import os

import numpy as np

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, little, needs_swap
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import Unsupported, changed
from raconvert.files.paths import is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.conversion.read import Opened
    from raconvert.files.source import Identity


SMALL_BYTES = 2048  # of elements in memory that are pickled themselves


class Origin:
    """The origin of an array: its file and identity, the reading options, and the array's index.

    `folder` is the working directory to which paths are relative.
    """

    def __init__(
        self, spec: str, folder: str, reading: dict[str, Any], seen: dict[str, Identity]
    ) -> None:
        self.spec: str = spec
        self.folder: str = folder
        self.reading: dict[str, Any] = reading
        self.seen: dict[str, Identity] = seen
        self.index: int = 0

    def at(self, index: int) -> Origin:
        """Return the origin of another array of the file."""
        origin = Origin(self.spec, self.folder, self.reading, self.seen)
        origin.index = index
        return origin

    def __call__(self) -> Array:
        """Return the array, opened anew; `Changed` if the file is not what it was."""
        spec = self.spec
        if self.folder:
            spec = os.path.join(self.folder, spec)
        bundle = open_spec(spec, Settings(**self.reading)).bundle
        try:
            self._check(bundle)
        except BaseException:
            bundle.close()
            raise
        array = bundle.arrays[self.index]
        array.owner = bundle
        return array

    def _check(self, bundle: Bundle) -> None:
        """Refuse (`Changed`) files of other sizes or times; inodes differ by machine."""
        for path, identity in self.seen.items():
            if not is_remote(path):
                status = os.stat(os.path.join(self.folder, path))
                size, mtime = identity[2:]
                if (status.st_size, status.st_mtime_ns) != (size, mtime):
                    raise changed(path, shorter=status.st_size < size)
        if self.index >= len(bundle.arrays):
            raise changed(bundle.path)


def open_here(spec: str | os.PathLike[str], *, mmap: bool, reading: dict[str, Any]) -> Bundle:
    """Open one source as a bundle of arrays that are opened again in other processes.

    With `mmap`, regions are views of a map; `Unsupported` is raised if the elements in the file are
    not stored as in memory.
    """
    spec = os.fspath(spec)
    opened = open_spec(spec, Settings(**reading))
    folder = "" if "://" in spec or os.path.isabs(spec) else os.getcwd()
    origin = Origin(spec, folder, reading, opened.seen)
    try:
        for index, array in enumerate(opened.bundle.arrays):
            if mmap and array.problem is None and array.nbytes:
                _map(array, unscale=bool(reading.get("unscale")))
            if not _is_small(array):
                array.comes_from(origin.at(index))
    except BaseException:
        opened.bundle.close()
        raise
    return opened.bundle


def _is_small(array: Array) -> bool:
    """True for few elements that are in memory already."""
    return isinstance(array.source, np.ndarray) and array.nbytes <= SMALL_BYTES


def _map(array: Array, *, unscale: bool) -> None:
    """Let the regions of an array be views of a map; `Unsupported` if it cannot be mapped."""
    extent = array.extent
    reason = "are encoded in the file, or not in one piece"
    if unscale and _is_converted(array):
        raise Unsupported(
            f"array '{array.name}' cannot be mapped: physical values are computed of those in the "
            "file",
            remedy="leave out mmap=True, or unscale=True for the values as they are stored",
        )
    if extent is not None:
        if is_remote(extent.path):
            reason = "are not on this machine"
        elif extent.swap == needs_swap(array.element):
            array.data, array.mapped = None, True
            return
        else:
            reason = "are in an order of bytes that numpy does not have"
    raise Unsupported(
        f"array '{array.name}' cannot be mapped: its elements {reason}",
        remedy="leave out mmap=True: raconvert.open reads what is asked for, and no more",
    )


def _is_converted(array: Array) -> bool:
    """True if the elements of an array are computed of the stored ones."""
    from raconvert.arrays.cast import Converted

    return isinstance(array.data, Converted)


# Arrays of a file that is closed again, and opened anew when they are read -----------------------
# Thousands of sources that become one file are not all open at once: they would exhaust the
# descriptors and the caches of libraries.


def closed(opened: Opened, spec: str, settings: Settings) -> list[Array]:
    """Close a source that was opened from `spec`; return its arrays, which open it when read."""
    arrays = [
        array
        if array.extent is not None
        else array.replace(data=Reopened(opened, spec, settings, number))
        for number, array in enumerate(opened.bundle.arrays)
    ]
    opened.bundle.close()
    return arrays


class Reopened:
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
        """Open the bundle again; `Changed` if its files, or the type of the array, differ."""
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
