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
from raconvert.errors import RaconvertError, UsageError, listed
from raconvert.files.paths import check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.transaction import Staging


CLASSES = "classes"  # the name of the array of class names in a container


def labels_array(paths: list[str]) -> Array:
    """Return the labels of the files, one each: uint8 if they fit, else int64.

    If classes have names that are not numbers, these are the attribute ``labels``. Raises
    `UsageError` for classes that are below several folders, such as ``train`` and ``test``.
    """
    refuse_parts(paths)
    return _labels_array(paths)


def refuse_parts(paths: Sequence[str]) -> None:
    """Refuse (`UsageError`) classes below several folders, whose labels would be merged."""
    parts = [*parts_of(paths)]
    if len(parts) > 1:
        raise UsageError(
            f"classes of one name are below several folders: {listed(parts)}",
            remedy="name the labels as arrays of a container (`-o DATA.h5 --labels labels`), where "
            "each folder gets its own, or convert the folders one by one",
        )


def _labels_array(paths: list[str]) -> Array:
    """Return the labels as `labels_array` does, for one part of a data set or for all."""
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


def add_labels(
    bundle: Bundle, parts: dict[str, list[str]], name: str, labels: str
) -> tuple[list[Array], set[str]]:
    """Return stacks, their labels and the array of classes; and the names of all but the stacks.

    `bundle` has a stack for each of the `parts` (`parts_of`), which is renamed to `name`, with its
    labels as `labels` beside it. The classes are left out if folder names are numbers that do not
    count from 0: the labels are these numbers.
    """
    import numpy as np

    from raconvert.arrays.dtypes import element_of

    whole = _labels_array([path for paths in parts.values() for path in paths])
    words = whole.meta.attributes.get("labels")
    values = whole.data
    numbers = sorted(set(values.tolist()))
    if words is None and numbers == [*range(len(numbers))]:
        words = [str(number) for number in numbers]
    arrays, added, begin = [], [], 0
    for stack, (part, paths) in zip(bundle.arrays, parts.items(), strict=True):
        of_part = values[begin : begin + len(paths)]
        begin += len(paths)
        above = f"{part}/" if part else ""
        arrays += [
            stack.replace(name=above + name),
            Array(whole.element, of_part.shape, name=above + labels, index_order="C", data=of_part),
        ]
        added.append(above + labels)
    if words is not None:
        classes = np.array(words)
        kind = element_of(classes.dtype)
        arrays.append(Array(kind, classes.shape, name=CLASSES, index_order="C", data=classes))
        added.append(CLASSES)
    names = [array.name for array in arrays]
    if len(set(names)) < len(names):
        raise UsageError(f"two arrays would be named '{max(names, key=names.count)}'",
                         remedy="choose others with `--name` and `--labels`")  # fmt: skip
    return arrays, set(added)


def parts_of(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the files by the parts of their data set, such as ``train`` and ``test``, in order.

    The folders above those of the classes are parts if a class is in several of them; a part is
    named by its path below the folder that has them all. Else there is one part without a name.
    """
    files_of: dict[str, list[str]] = {}
    folders_of: dict[str, set[str]] = {}
    for path in paths:
        folder, class_name = os.path.split(os.path.dirname(os.path.abspath(path)))
        files_of.setdefault(folder, []).append(path)
        folders_of.setdefault(class_name, set()).add(folder)
    if all(len(folders) == 1 for folders in folders_of.values()):
        return {"": list(paths)}
    common = os.path.commonpath(files_of)
    return {
        "/".join(os.path.relpath(folder, common).split(os.sep)): files
        for folder, files in files_of.items()
    }


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
    """Stage the labels, so that they appear together with the stack.

    Options for the elements of the stack do not apply to them. Without `staging` nothing is
    written, but losses are judged.
    """
    settings_of_labels = settings.replace(
        axes=None, scale=None, dtype=None, out_opts=None, progress=None, verify=False,
        dry_run=staging is None,
    )  # fmt: skip
    part = Report(report.sources)
    staged = path if staging is None else staging.place(path, same_name=True)
    try:
        run = Conversion(staged, registry.target_row(path), settings_of_labels, part)
        write_bundle(run, Bundle([labels]))
    except RaconvertError as error:
        error.path = path if error.path == staged else error.path
        raise
    if staging is not None:
        staging.add(staged, path, part.written, overwrite=settings.overwrite or settings.update)
    report.equivalent += [fit for fit in part.equivalent if fit not in report.equivalent]
    report.allowed += [fit for fit in part.allowed if fit not in report.allowed]


def labels_of(paths: Sequence[str]) -> tuple[list[int], list[str] | None]:
    """Return a label for each file by the name of its folder, and the sorted names of folders.

    The labels are indices of the names. If all names are integers, they are the labels themselves,
    and None is returned instead of names. Raises `UsageError` for folders at different depths.
    """
    if len({os.path.dirname(path).count(os.sep) for path in paths}) > 1:
        raise UsageError(
            "labels need all files at one depth of folders",
            remedy="give one pattern such as 'train/*/*.png'",
        )
    folders = [os.path.basename(os.path.dirname(os.path.abspath(path))) for path in paths]
    names = sorted(set(folders))
    if all(name.isdecimal() and name.isascii() for name in names):
        numbers = [*map(int, names)]
        if len(set(numbers)) == len(numbers) and max(numbers) < 1 << 63:  # 1 and 01 are two
            return [int(name) for name in folders], None
    index = {name: number for number, name in enumerate(names)}
    return [index[name] for name in folders], names
