"""The labels of a stack's files, by their folders or names, as an array in a file of its own."""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.conversion.inputs import labels_of
from raconvert.conversion.outputs import refuse_sources
from raconvert.conversion.report import Report
from raconvert.conversion.write import write_bundle
from raconvert.errors import UsageError
from raconvert.files.places import check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.conversion.options import Settings


def labels_array(paths: list[str]) -> Array:
    """Return the labels of the files, one each: uint8 if they fit, else int64.

    The names behind the labels, if they are no numbers, are the attribute ``labels``.
    """
    import numpy as np

    from raconvert.api import array_of

    numbers, words = labels_of(paths)
    small = max(numbers) <= np.iinfo(np.uint8).max
    labels = array_of(np.array(numbers, np.uint8 if small else np.int64), "labels")
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


def write_labels(labels: Array, path: str, settings: Settings, report: Report) -> None:
    """Write the labels beside the stack, with the settings that concern any destination."""
    plain = settings.replace(
        axes=None, scale=None, dtype=None, out_opts=None, progress=None, verify=False
    )
    part = Report(report.sources)
    write_bundle(Bundle([labels]), path, registry.target_row(path), plain, part)
    report.written += part.written
    report.equivalent += [fit for fit in part.equivalent if fit not in report.equivalent]
    report.allowed += [fit for fit in part.allowed if fit not in report.allowed]
