"""The labels of a stack's files, by their folders or names, as an array in a file of its own."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.conversion.outputs import refuse_sources
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.errors import RaconvertError, UsageError
from raconvert.files.places import check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.conversion.options import Settings
    from raconvert.conversion.transaction import Staging


def labels_array(paths: list[str]) -> Array:
    """Return the labels of the files, one each: uint8 if they fit, else int64.

    The names behind the labels, if they are not numbers, are the attribute ``labels``.
    """
    import numpy as np

    numbers, words = labels_of(paths)
    small = max(numbers) <= np.iinfo(np.uint8).max
    values = np.array(numbers, np.uint8 if small else np.int64)
    kind = element("uint", 1) if small else element("int", 8)
    labels = Array(kind, (len(numbers),), name="labels", index_order="C", data=values)
    if words is not None:
        labels.meta.attributes["labels"] = words
    return labels


def check_labels(path: str, data: str, sources: list[str], settings: Settings) -> None:
    """Refuse a file of labels that exists, is a source, or is the destination of the data."""
    refuse_sources([path], sources)
    if os.path.realpath(path) == os.path.realpath(data):
        raise UsageError("the labels and the data have the same destination", path=path)
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise UsageError("the folder of the labels does not exist", path=path)
    check_target(path, overwrite=settings.overwrite or settings.update)


def stage_labels(
    labels: Array, path: str, staging: Staging | None, settings: Settings, report: Report
) -> None:
    """Write the labels, to appear with the stack, with the settings that concern any destination.

    Without `staging` nothing is written, but judged.
    """
    own = settings.replace(
        axes=None, scale=None, dtype=None, out_opts=None, progress=None, verify=False,
        dry_run=staging is None,
    )  # fmt: skip
    part = Report(report.sources)
    staged = path if staging is None else staging.place(path, same_name=True)
    try:
        run = Conversion(staged, registry.target_row(path), own, part)
        write_bundle(run, Bundle([labels]))
    except RaconvertError as error:
        error.path = path if error.path == staged else error.path
        raise
    if staging is not None:
        staging.add(staged, path, part.written, overwrite=settings.overwrite or settings.update)
    report.equivalent += [fit for fit in part.equivalent if fit not in report.equivalent]
    report.allowed += [fit for fit in part.allowed if fit not in report.allowed]


def labels_of(paths: Sequence[str]) -> tuple[list[int], list[str] | None]:
    """Return a label per file from the name of its folder, and the names behind the labels.

    Integer folder names are the labels themselves (names: None); otherwise labels index the
    sorted distinct names. Folders at different depths are an error.
    """
    if len({os.path.dirname(path).count(os.sep) for path in paths}) > 1:
        raise UsageError(
            "labels need all files at one depth of folders",
            remedy="give one pattern such as 'train/*/*.png'",
        )
    folders = [os.path.basename(os.path.dirname(os.path.abspath(path))) for path in paths]
    distinct = set(folders)
    if (
        all(name.isdecimal() and name.isascii() for name in distinct)
        and len(set(map(int, distinct))) == len(distinct)  # 1 and 01 are two
        and max(map(int, distinct)) < 1 << 63
    ):
        return [int(name) for name in folders], None
    names = sorted(set(folders))
    index = {name: number for number, name in enumerate(names)}
    return [index[name] for name in folders], names
