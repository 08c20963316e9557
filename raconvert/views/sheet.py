"""Many small pictures as a contact sheet: which of them, in rows, with what their labels say."""

from __future__ import annotations

from raconvert.arrays.lazy import is_decoded_whole
from raconvert.arrays.texts import for_showing
from raconvert.declared import Record
from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.views.sample import Sample

_NAMES = ("labels", "label", "fine_labels", "targets", "y")  # of arrays beside the pictures
_CLASSES = ("classes", "label_names", "class_names")  # and of the words for their numbers
_MOST_CLASSES = 10_000
_DECODED = 1 << 20  # bytes that are decoded for some labels


class Labels(Record):
    """The labels of pictures, one for each, and the words for them where there are some."""

    array: Any
    words: tuple[str, ...]

    def of(self, numbers: Sequence[int]) -> list[str]:
        """What the pictures of these numbers are; empty texts where that cannot be read."""
        try:
            found = [for_showing(self.array[number : number + 1]) for number in numbers]
        except RaconvertError:
            return [""] * len(numbers)
        return [self._text(value) for value in found]

    def _text(self, value: Any) -> str:
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, int) and 0 <= value < len(self.words):
            return self.words[value]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def labels_beside(bundle: Bundle, pictures: Array) -> Labels | None:
    """The labels that lie beside an array of pictures in its bundle; None without any."""
    if pictures.ndim < 3:
        return None
    group, slash, _ = pictures.name.rpartition("/")
    arrays = {array.name: array for array in bundle.arrays} if len(bundle.arrays) > 1 else {}
    for name in _NAMES:
        found = arrays.get(f"{group}{slash}{name}")
        if found is not None and _fits(found, pictures):
            return Labels(found, _words(found, arrays, group + slash))
    return None


def titles_of(found: Sample, labels: Labels | None) -> list[str]:
    """The number of each picture of a sheet, and its label."""
    numbers = [frame.number for frame in found.frames]
    if labels is None:
        return [str(number) for number in numbers]
    pairs = zip(numbers, labels.of(numbers), strict=True)
    return [f"{number}: {label}" if label else str(number) for number, label in pairs]


def _fits(labels: Array, pictures: Array) -> bool:
    """True for one label for each picture, which can be read without much work."""
    lengths = {pictures.dims[-1], pictures.dims[0]}
    if labels.problem is not None or labels.ndim != 1 or labels.count not in lengths:
        return False
    if labels.element.kind not in ("int", "uint", "user", "bool"):
        return False
    data = labels.data if labels.extent is None else None
    return not is_decoded_whole(data) or labels.nbytes <= _DECODED


def _words(labels: Array, arrays: dict[str, Array], group: str) -> tuple[str, ...]:
    """The words for numbers of classes, from the labels or an array beside them."""
    named = labels.meta.attributes.get("labels") if labels.described else None
    if isinstance(named, list):
        return tuple(map(str, named))
    for name in _CLASSES:
        found = arrays.get(group + name)
        if found is None or found.problem is not None or found.ndim != 1:
            continue
        if found.element.kind == "user" and found.count <= _MOST_CLASSES:
            try:
                values = for_showing(found[:]).tolist()
            except RaconvertError:
                continue
            if all(isinstance(value, str | bytes) for value in values):
                return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v
                             for v in values)  # fmt: skip
    return ()
