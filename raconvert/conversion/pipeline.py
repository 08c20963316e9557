"""`convert`: from source paths to a report, through one bundle of lazy arrays.

detect → read → select or stack → adapt (type, order) → fits → write → sidecar → rename → report.
Nothing is written before the plugin's plan is accepted; nothing is renamed before all is written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

from raconvert import registry
from raconvert.conversion.converter import Converter, resolved
from raconvert.conversion.options import OPTIONS, Converting, Settings, begin, normalized
from raconvert.conversion.outputs import array_name, target_spec
from raconvert.conversion.report import Report
from raconvert.declared import accepts
from raconvert.files.source import path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from raconvert.declared import Readable


@accepts(OPTIONS, listed=True)
def convert(
    src: Readable | Sequence[Readable],
    dst: str | os.PathLike[str] | None = None,
    **options: Unpack[Converting],
) -> Report:
    """Convert files and return what was done.

    `src` is a path, ``FILE#name``, a URL, a glob, a folder, bytes, a file that is open for bytes,
    ``-`` for the standard input, or a list of them; `dst` a path,
    ``FILE#name``, or a template such as ``'out/{:05d}.png'`` or ``'{stem}.npy'``. The format of
    the source is found by content, that of the destination by `to` or its suffix.

    One literal path gives the array as it is; a glob, a folder or a list is stacked on a new first
    axis for formats of one array, and becomes one named array each in containers. Index i of a
    stack is file i of the list; a glob or a folder is sorted naturally (2 before 10). Elements keep
    their index [i,j,k]; RA and other formats without an index order list the axes reversed.

    >>> report = raconvert.convert("grid.ra", "grid.npy")
    >>> report.source_format, report.target_format, report.nbytes
    ('ra', 'npy', 48)
    >>> raconvert.convert("grid.ra", "grid.npy")
    Traceback (most recent call last):
    raconvert.errors.TargetExists: 'grid.npy': exists already...

    Raises the errors of `raconvert.errors`; the destination is untouched whenever one is raised.

    The options, as on the command line:
    """
    settings = Settings(**normalized(options))
    several = isinstance(src, Sequence) and not isinstance(src, (str, bytes, bytearray, memoryview))
    sources: list[Any] = list(src) if several else [src]  # type: ignore[arg-type]
    if all(isinstance(source, (str, os.PathLike)) and source != "-" for source in sources):
        return _converted_to([os.fspath(source) for source in sources], dst, settings)
    return _convert_given(sources, dst, settings)


def _convert_given(
    sources: list[Any], dst: str | os.PathLike[str] | None, settings: Settings
) -> Report:
    """Convert sources that are not all named files, but bytes, open files or standard input."""
    from raconvert.files.streams import shown, standard_input

    with ExitStack() as stack:
        words, names = [], {}
        for source in sources:
            stdin = source == "-" and not os.path.lexists("-")
            words.append(path_of(standard_input() if stdin else source, stack))
            names[words[-1]] = "-" if stdin else shown(source)
        report = _converted_to(words, dst, settings)
        report.rename(names)
    return report


def _converted_to(
    words: list[str], dst: str | os.PathLike[str] | None, settings: Settings
) -> Report:
    """Convert to a destination that may be at a URL."""
    target = None if dst is None else os.fspath(dst)
    if "://" in f"{target} {settings.out_dir} {settings.labels}":
        from raconvert.conversion.remote import convert_to_url

        return convert_to_url(words, target, settings, _converted)
    return _converted(words, target, settings)


def _converted(words: list[str], target: str | None, settings: Settings) -> Report:
    """Convert to a destination on this machine."""
    begin(settings, words[0] if words else "")
    if target is not None and _is_one_to_one(words, target, settings):
        return _convert_one(words[0], target, settings)
    from raconvert.conversion import batch

    return batch.convert_many(words, target, settings)


def _is_one_to_one(words: list[str], dst: str, settings: Settings) -> bool:
    """True for the common case: one file to one file, without rare options."""
    return (
        len(words) == 1
        and not settings.stack
        and settings.out_dir is None
        and settings.files_from is None
        and settings.labels is None
        and not settings.cuts
        and "{" not in dst
        and not dst.endswith(("/", os.sep))
        and (not os.path.isdir(dst) or registry.names_folder(dst))
        and (os.path.isfile(words[0]) or registry.is_one_source(words[0]))
    )


def _convert_one(word: str, dst: str, settings: Settings) -> Report:
    path, name = target_spec(dst, settings.to)
    row = registry.target_row(path, settings.to, container=bool(name or settings.name))
    name = array_name(name, row, settings)
    if name is not None:
        return Converter(settings, learns=False).ordinary(word, path, row, name=name)
    return resolved(settings)(word, path, row)
