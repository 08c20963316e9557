"""The records of both data sets, and how their files are known."""

from __future__ import annotations

import re

from raconvert.declared import Record
from raconvert.plugin import Source, element

BYTE = element("uint", 1)
IMAGE = (3, 32, 32)
IMAGE_BYTES = 3072


class Layout(Record):
    """A record: the labels in front of the image, how many of each there are, and its bytes."""

    labels: tuple[str, ...]
    limits: tuple[int, ...]
    nbytes: int


LAYOUTS = {
    "10": Layout(("labels",), (10,), 1 + IMAGE_BYTES),
    "100": Layout(("coarse_labels", "fine_labels"), (20, 100), 2 + IMAGE_BYTES),
}
_NAME = re.compile(r"(data_batch_[0-9]+|test_batch|train|test|.*\.cifar)\.bin")
_PICKLED_NAME = re.compile(r"data_batch_[0-9]+|test_batch|train|test|meta|batches\.meta")
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_LOOKED_AT = 64  # records whose labels are looked at

SAMPLE = bytes([3]) + bytes(range(256)) * 12


def known_name(name: str) -> bool:
    """True for the names that the files of the data sets have."""
    return _NAME.fullmatch(name.lower()) is not None


def is_pickled(source: Source) -> bool:
    """True for a file of the pickled versions, by its first bytes and its name or words."""
    if not _PICKLE.match(source.head):
        return False
    words = (b"batch_label", b"fine_labels")
    return _PICKLED_NAME.fullmatch(source.name) is not None or any(w in source.head for w in words)


def layout_of(source: Source) -> Layout | None:
    """The one layout that the length and the first and last labels of a file allow."""
    fitting = [layout for layout in LAYOUTS.values() if _fits(source, layout)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(source: Source, layout: Layout) -> bool:
    if not source.size or source.size % layout.nbytes:
        return False
    count = source.size // layout.nbytes
    for number in {*range(min(count, _LOOKED_AT)), count - 1}:
        labels = source.read_at(number * layout.nbytes, len(layout.labels))
        if any(label >= limit for label, limit in zip(labels, layout.limits, strict=True)):
            return False
    return True
