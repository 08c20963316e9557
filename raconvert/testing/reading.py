"""Checks of reading: lazy, whole, closed, and safe from damaged files."""

from __future__ import annotations

import gc
import os
import warnings

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import Element
from raconvert.errors import RaconvertError
from raconvert.files.source import Source
from raconvert.testing.cases import same
from raconvert.testing.damage import damaged, flipped, prefixes
from raconvert.testing.kit import (
    MAX_MEMORY,
    contents_of,
    decode,
    held_files,
    joined,
    read,
    require,
    require_none,
    sample_files,
    scratch,
    suffix_of,
    tuple_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    Values = np.ndarray[Any, Any]


def check_read_is_lazy(plugin: ModuleType) -> None:
    """Check that `read` returns a bundle of arrays whose data has not been read.

    Raises `AssertionError` that lists what is wrong.
    """
    with sample_files(plugin) as paths:
        for path in paths:
            with plugin.read(Source(str(path))) as bundle:
                require(isinstance(bundle, Bundle), f"read gives a {type(bundle).__name__}")
                # A sample of a format without suffixes may be one file of a folder.
                fitting = bundle.arrays or not plugin.FORMAT.suffixes
                require(fitting, f"sample {path.name} has no array")
                require_none(_not_well_formed(bundle), "things are wrong in the bundle")
                decoded = [
                    array.name
                    for array in bundle.arrays
                    if isinstance(array.source, np.ndarray) and plugin.FORMAT.lazy
                ]
                require(not decoded, f"the data of {decoded} was decoded by read")


def _not_well_formed(bundle: Bundle) -> Iterator[str]:
    """Yield the faults of names, types, dims and index orders in a bundle."""
    if len(set(bundle.names)) != len(bundle.names):
        yield f"repeated names: {bundle.names}"
    for array in bundle.arrays:
        if not isinstance(array, Array) or not isinstance(array.element, Element):
            yield f"{array!r} is not an Array of an Element"
        elif not isinstance(array.name, str) or not array.name:
            yield f"name {array.name!r}"
        elif not tuple_of(int, array.dims) or min(array.dims, default=0) < 0:
            yield f"dims {array.dims!r} of '{array.name}'"
        elif array.index_order not in (None, "C", "F"):
            yield f"index order {array.index_order!r} of '{array.name}'"


def check_regions(plugin: ModuleType) -> None:
    """A region of an array is the slice of the whole.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        wrong = []
        for path, values in held_files(plugin, folder).values():
            for key in _KEYS[: 4 if values.ndim == 1 else None] if values.ndim else [()]:
                with read(plugin, path) as bundle:
                    if not same(values[key], bundle.arrays[0][key]):
                        wrong.append(f"{values.dtype} {values.shape} [{key}]")
        require_none(wrong, "regions differ from the slice of the whole")


_ALL = slice(None)
_KEYS: list[Any] = [
    ..., 0, slice(1, 3), slice(None, None, 2), (0, 0), (-1, slice(1, 2)), (_ALL, 1),
    (slice(1, None), slice(0, -1)), slice(0, 0),
]  # fmt: skip


def check_blocks(plugin: ModuleType) -> None:
    """Check that blocks of any size are contiguous, little-endian, bounded, and make up the whole.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        wrong = []
        for path, values in held_files(plugin, folder).values():
            for max_bytes in (1, 7, 64, 100, 1 << 20):
                with read(plugin, path) as bundle:
                    array = bundle.arrays[0]
                    form = f"{values.dtype} {values.shape} in blocks of {max_bytes} bytes"
                    for block in blocks(array, max_bytes):
                        if block.nbytes > max(max_bytes, block.itemsize):
                            wrong.append(f"{form}: one of {block.nbytes}")
                        if not block.flags.c_contiguous or block.dtype.byteorder == ">":
                            wrong.append(f"{form}: not contiguous, or big-endian")
                    if not same(values, joined(array, max_bytes)):
                        wrong.append(f"{form}: they do not make up the whole")
        require_none(wrong, "things are wrong")


def check_close_frees_the_file(plugin: ModuleType) -> None:
    """Check that closing leaves no open descriptor, also after a failed read.

    Raises `AssertionError` that lists what is wrong.
    """
    with sample_files(plugin) as paths, warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
        before = _open_files()
        for path in paths:
            decode(plugin.read(Source(str(path))))
            bundle = plugin.read(Source(str(path)))
            bundle.close()
            del bundle
            contents = path.read_bytes()
            path.write_bytes(contents[: len(contents) // 2])
            _attempt(plugin, path)
            path.unlink()
        gc.collect()
        after = _open_files()
    leaked = [str(leak.message) for leak in leaks if leak.category is ResourceWarning]
    require(not leaked, f"left for the garbage collector to close: {leaked}")
    require(after <= before, f"files are still open: {sorted(after - before)}")


def _open_files() -> set[str]:
    """Return the open descriptors and their files, if the system lists them."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return set()
    descriptors = set()
    for number in os.listdir(folder):
        try:
            descriptors.add(f"{number}: {os.readlink(os.path.join(folder, number))}")
        except OSError:  # the descriptor of this listing itself
            continue
    return descriptors


def check_unreadable_sources(plugin: ModuleType) -> None:
    """Check that a missing file, and a folder, are refused by an error of ours that names the path.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        for path in (folder / f"missing{suffix_of(plugin)}", folder):
            problem = _attempt(plugin, path)
            require(problem is None, f"{path}: {problem}")
            try:
                plugin.read(Source(str(path)))
            except RaconvertError:
                continue
            raise AssertionError(f"{path} was read")


def _attempt(plugin: ModuleType, path: Path) -> str | None:
    """Read and decode a file; describe the fault of its error, or return None."""
    try:
        decode(plugin.read(Source(str(path), max_memory=MAX_MEMORY)))
    except RaconvertError as error:
        return None if str(path) in str(error) else f"the message does not name the file: {error}"
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        return f"raises {error!r}"
    return None


def _check_damage(plugin: ModuleType, contents: Iterable[tuple[str, bytes]]) -> None:
    """Damaged files decode, or raise an error of ours that names the file."""
    problems = [
        f"{description}: {problem}"
        for path, description in damaged(plugin, contents)
        if (problem := _attempt(plugin, path))
    ]
    require_none(problems, "damaged files are mishandled")


def check_cut_samples(plugin: ModuleType) -> None:
    """A sample cut at any byte decodes, or raises an error of ours that names the file.

    Raises `AssertionError` that lists what is wrong.
    """
    _check_damage(plugin, prefixes(plugin))


def check_flipped_samples(plugin: ModuleType) -> None:
    """A sample with any bit flipped decodes, or raises an error of ours that names the file.

    Raises `AssertionError` that lists what is wrong.
    """
    _check_damage(plugin, flipped(plugin))


def check_cut_files(plugin: ModuleType) -> None:
    """Check that a file that the plugin wrote never gives other elements once it is cut.

    Raises `AssertionError` that lists what is wrong.
    """
    with scratch() as folder:
        problems = []
        for path, values in held_files(plugin, folder).values():
            for name, contents in contents_of(path).items():
                for length in range(0, len(contents), 1 + len(contents) // 100):
                    (path / name).write_bytes(contents[:length])
                    problem = _attempt(plugin, path)
                    if problem is None and not _is_whole_or_refused(plugin, path, values):
                        problem = "is taken for another array"
                    if problem:
                        problems.append(f"{values.shape} cut to {length} bytes: {problem}")
                (path / name).write_bytes(contents)
        require_none(problems, "cut files are mishandled")


def _is_whole_or_refused(plugin: ModuleType, path: Path, values: Values) -> bool:
    """True if a file is refused, or holds exactly one array of these values."""
    try:
        decoded = decode(plugin.read(Source(str(path))))
    except RaconvertError:
        return True
    return len(decoded) == 1 and same(values, decoded[0])
