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


CLASSES = "classes"  # the array of their names, in a container


def labels_array(paths: list[str]) -> Array:
    """Return the labels of the files, one each: uint8 if they fit, else int64.

    The names behind the labels, if they are not numbers, are the attribute ``labels``. Raises
    `UsageError` for classes that are below several folders, such as ``train`` and ``test``.
    """
    refuse_parts(paths)
    return _labels_array(paths)


def refuse_parts(paths: Sequence[str]) -> None:
    """Refuse classes that are below several folders: their labels would be merged."""
    parts = [*parts_of(paths)]
    if len(parts) > 1:
        raise UsageError(
            f"classes of one name are below several folders: {listed(parts)}",
            remedy="name the labels as arrays of a container (`-o DATA.h5 --labels labels`), where "
            "each folder gets its own, or convert the folders one by one",
        )


def _labels_array(paths: list[str]) -> Array:
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
    """Return the stacks of a bundle under their names, with their labels and the classes of all.

    `parts` are those of `parts_of`, a stack each. Also the names of the others. The classes
    are not there where the folders have numbers that do not count from 0: these are the labels
    themselves.
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
        own = values[begin : (begin := begin + len(paths))]
        above = f"{part}/" if part else ""
        arrays += [
            stack.replace(name=above + name),
            Array(whole.element, own.shape, name=above + labels, index_order="C", data=own),
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

    Folders with classes are parts if a class is below several of them; a part is named by its path
    below the folder that has them all. Else there is one part without a name.
    """
    above: dict[str, list[str]] = {}
    places: dict[str, set[str]] = {}
    for path in paths:
        folder, name = os.path.split(os.path.dirname(os.path.abspath(path)))
        above.setdefault(folder, []).append(path)
        places.setdefault(name, set()).add(folder)
    if all(len(folders) == 1 for folders in places.values()):
        return {"": list(paths)}
    common = os.path.commonpath(above)
    return {
        "/".join(os.path.relpath(folder, common).split(os.sep)): names
        for folder, names in above.items()
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

    Settings for the elements of the stack do not apply to them. Without `staging` nothing is
    written, and losses are judged all the same.
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
