"""`convert`: from source paths to a report, through one bundle of lazy arrays.

detect → read → select or stack → adapt (type, order) → fits → write → sidecar → rename → report.
Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.conversion.options import Settings
from raconvert.conversion.outputs import prepare_target, target_spec
from raconvert.conversion.read import open_spec
from raconvert.conversion.report import Report
from raconvert.conversion.run import Conversion
from raconvert.conversion.write import write_bundle
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def convert(
    src: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dst: str | os.PathLike[str] | None = None,
    *,
    from_: str | None = None,
    to: str | None = None,
    arrays: Sequence[str] | None = None,
    out_dir: str | None = None,
    stack: bool | str | tuple[str, int] | None = None,
    sort: str | None = None,
    strict_sequence: bool = False,
    planes: bool = False,
    overwrite: bool = False,
    skip_existing: bool = False,
    update: bool = False,
    allow: Sequence[str] = (),
    strict: bool = False,
    trust: Sequence[str] = (),
    dtype: str | None = None,
    axes: str | None = None,
    meta: str = "auto",
    index_order: str | None = None,
    labels: str | None = None,
    scale: str | None = None,
    bits: int = 8,
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    files_from: str | Sequence[str] | None = None,
    null_separated: bool = False,
    in_opts: dict[str, Any] | None = None,
    out_opts: dict[str, Any] | None = None,
    max_memory: int = DEFAULT_MAX_MEMORY,
    verify: bool = False,
    dry_run: bool = False,
    fail_fast: bool = False,
    sync: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Convert files and return what was done.

    `src` is a path, ``FILE#name``, a glob, a folder, or a list of them; `dst` a path,
    ``FILE#name``, or a template such as ``'out/{:05d}.png'`` or ``'{stem}.npy'``. The format of
    the source is found by content, that of the destination by `to` or its suffix.

    One literal path gives the array as it is; a glob, a folder or a list is stacked on a new first
    axis for formats of one array, and becomes one named array each in containers. Elements keep
    their index [i,j,k]; RA and other formats without an index order list the axes reversed.

    >>> report = raconvert.convert("grid.ra", "grid.npy")
    >>> report.source_format, report.target_format, report.nbytes
    ('ra', 'npy', 48)
    >>> raconvert.convert("grid.ra", "grid.npy")
    Traceback (most recent call last):
    raconvert.errors.TargetExists: 'grid.npy': exists already...

    Raises the errors of `raconvert.errors`; the destination is untouched whenever one is raised.
    """
    named = {name: value for name, value in locals().items() if name not in ("src", "dst")}
    settings = Settings(**named)
    words = [os.fspath(word) for word in ([src] if isinstance(src, (str, os.PathLike)) else src)]
    target = None if dst is None else os.fspath(dst)
    if target is not None and _is_plain(words, target, settings):
        return _convert_one(words[0], target, settings)
    from raconvert.conversion import batch

    return batch.convert_many(words, target, settings)


def _is_plain(words: list[str], dst: str, settings: Settings) -> bool:
    """True for the common case, one file to one file, with nothing that is rarely asked for."""
    return (
        len(words) == 1
        and not settings.stack
        and settings.out_dir is None
        and settings.files_from is None
        and settings.labels is None
        and not settings.planes
        and "{" not in dst
        and not dst.endswith(("/", os.sep))
        and not os.path.isdir(dst)
        and (os.path.isfile(words[0]) or _is_bundle(words[0]))
    )


def _is_bundle(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "bundle.yaml"))


def _convert_one(word: str, dst: str, settings: Settings) -> Report:
    path, name = target_spec(dst, settings.to)
    report = Report([word])
    row = registry.target_row(path, settings.to)
    if not prepare_target(path, row, [word], settings, report):
        return report
    with open_spec(word, settings) as opened:
        run = Conversion(path, row, settings, report, name=name, opened=opened)
        return write_bundle(run, opened.bundle)
