"""The labels of a stack's files, by their folders or names, as an array in a file of its own."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element
from raconvert.arrays.metadata import Metadata
from raconvert.conversion.options import is_bare
from raconvert.conversion.outputs import refuse_sources
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle
from raconvert.errors import RaconvertError, UsageError
from raconvert.files.places import check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened
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
        labels.meta = Metadata(attributes={"labels": words})
    return labels


def is_in_container(settings: Settings, row: Row) -> bool:
    """True if the labels are named as an array of the destination, not as a file."""
    name = settings.labels
    return name is not None and row.many and is_bare(name)


def add_labels(opened: Opened, paths: list[str], name: str, labels: str) -> set[str]:
    """Name the stack, and add its labels and their classes; the names of what was added.

    The classes are not there where the folders have numbers that do not count from 0: these are
    the labels themselves.
    """
    import numpy as np

    from raconvert.arrays.dtypes import element_of

    added = labels_array(paths)
    words = added.meta.attributes.get("labels")
    added.name, added.meta = labels, Metadata()
    numbers = sorted(set(added.data.tolist()))
    if words is None and numbers == [*range(len(numbers))]:
        words = [str(number) for number in numbers]
    arrays = [opened.array.replace(name=name), added]
    if words is not None:
        values = np.array(words)
        arrays.append(
            Array(element_of(values.dtype), values.shape, name="classes", index_order="C",
                  data=values)
        )  # fmt: skip
    names = [array.name for array in arrays]
    if len(set(names)) < len(names):
        raise UsageError(f"two arrays would be named '{max(names, key=names.count)}'",
                         remedy="choose others with --name and --labels")  # fmt: skip
    opened.bundle.arrays = arrays
    return set(names[1:])


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
