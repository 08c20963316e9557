"""Tools of the checks: the plugin as the core uses it, temporary files, lists of problems."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import dtype_of, little, opaque
from raconvert.catalogue import Row
from raconvert.conversion.options import Settings
from raconvert.conversion.read import apply_sidecar
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.errors import WouldLose
from raconvert.files.source import Source
from raconvert.testing.cases import CASES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType
    from typing import Any

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]


FLIPS = 400  # damaged copies of each sample
MAX_MEMORY = 64 << 20  # a damaged file that asks for more is refused by the core
SHOWN = 12  # problems that a message lists


def require(condition: object, what: str) -> None:
    """Raise `AssertionError` unless the condition holds; asserts would go with ``python -O``."""
    if not condition:
        raise AssertionError(what)


def require_none(problems: Iterable[str], of: str) -> None:
    """Raise one `AssertionError` that lists the problems, if there are any; `of` names them."""
    listed = list(problems)
    rest = [f"... and {len(listed) - SHOWN} more"] if len(listed) > SHOWN else []
    require(not listed, "\n  ".join([f"{len(listed)} {of}:", *listed[:SHOWN], *rest]))


def row_of(plugin: ModuleType) -> Row:
    """Return the catalogue row that the plugin's FORMAT amounts to. Raises nothing."""
    shared = {field: getattr(plugin.FORMAT, field) for field in Row._fields if field != "module"}
    return Row(module=plugin.__name__, **shared)


def write(
    plugin: ModuleType,
    arrays: Iterable[Array],
    path: Path,
    name: str | None = None,
    **settings: Any,
) -> Report:
    """Write arrays to a file through the plugin, with every check of the core.

    With a `name` the one array is added to the container, if that exists.

    Raises what `raconvert.write` does: `WouldLose`, `TargetExists`, `WriteFailed`.
    """
    chosen = Settings(sync=False, max_memory=MAX_MEMORY, **settings)
    run = Conversion(str(path), row_of(plugin), chosen, Report([]), name=name)
    return write_bundle(run, Bundle(list(arrays)))


def read(plugin: ModuleType, path: Path) -> Bundle:
    """Read a file through the plugin, its sidecar included.

    Raises what `raconvert.open` does: `Corrupt`, `Unsupported`, `ReadFailed`.
    """
    source = Source(str(path), max_memory=MAX_MEMORY)
    bundle: Bundle = plugin.read(source)
    bundle.path = str(path)
    apply_sidecar(bundle, source, row_of(plugin))
    return bundle


def decode(bundle: Bundle) -> list[Values]:
    """Return the arrays of a bundle in logical order, decoded to the last element, and close it.

    Raises `Corrupt` or `ReadFailed` for elements that cannot be read.
    """
    with bundle:
        return [np.array(joined(array, 1 << 20)) for array in bundle.arrays]


def joined(array: Array, max_bytes: int) -> Values:
    """Return the blocks of an array as one, in logical order."""
    flat = np.empty(array.count, dtype_of(little(array.element)))
    done = 0
    for block in blocks(array, max_bytes):
        opaque(flat)[done : done + block.size] = opaque(block.reshape(-1))
        done += block.size
    require(done == array.count, f"blocks hold {done} of {array.count} elements")
    values = flat.reshape(array.dims[::-1])
    return values.T if array.index_order == "F" else values


def suffix_of(plugin: ModuleType) -> str:
    """Return the usual suffix of the plugin's files; folders have none. Raises nothing."""
    return next(iter(plugin.FORMAT.suffixes), "")


def contents_of(path: Path) -> dict[str, bytes]:
    """Return the content of a file, or of every file in a folder, by relative path."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def remove(path: Path) -> None:
    """Remove a file or a folder. Raises `OSError` if the system refuses."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="raconvert-") as folder:
        yield Path(folder)


@contextmanager
def sample_files(plugin: ModuleType) -> Iterator[list[Path]]:
    """Write the plugin's samples to files; yield the paths of all but partners of others.

    A partner has the name of an earlier sample, with its suffix replaced or a further one.
    """
    with scratch() as folder:
        paths = []
        for name, contents in plugin.FORMAT.samples.items():
            paths.append(folder / name)
            paths[-1].write_bytes(contents)
        stems: set[str] = set()
        for path in [*paths]:
            if {path.stem, path.name.partition(".")[0]} & stems:
                paths.remove(path)
            stems.add(path.stem)
        yield paths


def held_files(plugin: ModuleType, folder: Path) -> dict[int, tuple[Path, Values]]:
    """Write the first array of each rank that the plugin stores exactly; return them by rank."""
    files: dict[int, tuple[Path, Values]] = {}
    for case in CASES.values() if plugin.FORMAT.writes else ():
        rank = len(case.shape)
        if rank in files or prod(case.shape) < 2:
            continue
        path = folder / f"rank{rank}{suffix_of(plugin)}"
        try:
            report = write(plugin, [case.array()], path, overwrite=True)
        except WouldLose:
            continue
        if not report.equivalent:
            files[rank] = path, case.values
    return files


def in_new_interpreter(plugin: ModuleType, code: str, *arguments: object) -> str:
    """Run code that imports the plugin by its name; return the text of `answer`, which it sets.

    Raises `AssertionError` if the code fails, or prints anything.
    """
    whole = f"import sys\n{code}\nsys.stdout.flush()\nsys.__stderr__.write(f'\\0{{answer}}')"
    paths = [path for path in sys.path if path]
    done = subprocess.run(  # noqa: S603 - this interpreter, and code of this module
        [sys.executable, "-W", "always::ResourceWarning", "-c", whole, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed, _, answer = done.stderr.rpartition("\0")
    require(done.returncode == 0, f"{plugin.__name__} failed in a new interpreter: {done.stderr}")
    require(not done.stdout, f"{plugin.__name__} wrote to the standard output: {done.stdout!r}")
    require(not printed, f"{plugin.__name__} wrote to the standard error: {printed!r}")
    return answer


def tuple_of(kind: type, value: Any, length: int | None = None) -> bool:
    """True if a value is a tuple of this kind of items, and of this length."""
    whole = isinstance(value, tuple) and all(isinstance(item, kind) for item in value)
    return whole and length in (None, len(value))
