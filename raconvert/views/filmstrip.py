"""The pictures that stand for an array: what is drawn of a sample, in which colors, how large."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.dtypes import FLOATS
from raconvert.arrays.layout import COLOR, layout_of
from raconvert.arrays.reinterpret import for_showing
from raconvert.arrays.sources import is_decoded_whole
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.views.hanging import hanging_of
from raconvert.views.numbers import comparable, numbers_of
from raconvert.views.picture import (
    CLASSES,
    DEPTH,
    GRAY,
    PHASE,
    SIGNS,
    Scale,
    colored,
    photo,
    resized,
    resized_photo,
    scale_of,
)
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.views.hanging import Hanging
    from raconvert.views.numbers import Numbers
    from raconvert.views.picture import Picture
    from raconvert.views.sample import Sample


class Strip(Record):
    """Pictures in a row, one of each part of a sample, and what their colors mean.

    `scale` is that of the colors, None for photos; `hanging` says how the planes are hung, and
    `shape` how many rows and columns of elements each stands for.
    """

    title: str
    pictures: list[Picture]
    scale: Scale | None
    hanging: Hanging
    shape: tuple[int, ...]

    def legend(self, looks: Sequence[str]) -> str:
        """Return the title, with the looks of the `SIGNS` that are in the pictures."""
        parts = [self.hanging.text, self.title]
        for number, (sign, look) in enumerate(zip(SIGNS, looks, strict=True)):
            some = any(picture.of_sign(number).any() for picture in self.pictures)
            parts += [f"{sign} {look}"] if some else []
        return ", ".join(part for part in parts if part)


def strips_of(
    array: Array, sampled: Sample, rows: int, columns: int, *, scale: Scale | None = None
) -> list[Strip]:
    """The pictures of a sample of planes, each of at most so many pixels.

    Complex numbers are two strips, magnitude and phase. `scale` is that of the colours; without it,
    it is made from the values.
    """
    hanging = hanging_of(array, layout_of(array))
    shape = hanging.size_of(sampled.frames[0].size or sampled.values[0].shape)
    values = [hanging.of(part) for part in sampled.values]
    size = _fitting(hanging.extent_of(shape), shape, rows, columns)

    def strip(title: str, parts: list[Any], scale: Scale) -> Strip:
        return Strip(title, [_picture(part, scale, size) for part in parts], scale, hanging, shape)

    if scale is not None:
        return [strip(ends_of(scale), values, scale)]
    if sampled.form == COLOR:
        pictures = [photo(resized_photo(part, *size)) for part in values]
        return [Strip("", pictures, None, hanging, shape)]
    if values[0].dtype.kind == "c":
        magnitude = [np.abs(part) for part in values]
        phase = [np.angle(part) for part in values]
        scale = scale_of(magnitude, GRAY)
        turned = Scale(-np.pi, np.pi, PHASE)
        return [
            strip(f"magnitude, {ends_of(scale)}", magnitude, scale),
            strip("phase, -π to π", phase, turned),
        ]
    numbers = numbers_of(values)
    if are_classes(array, numbers):
        return [strip("classes", values, Scale(0, 0, CLASSES))]
    gray = array.element.kind not in FLOATS or hanging.is_of_body
    scale = scale_of(values, GRAY if gray else DEPTH)
    units = array.meta.units
    return [strip(f"{ends_of(scale)}{f' {units}' * bool(units)}", values, scale)]


def small_plane(array: Array, sampled: Sample, side: int) -> Any:
    """The values of the middle plane of a sample, as it is hung, in at most `side` × `side`.

    Photos have their colours behind; of complex values it is the magnitude.
    """
    hanging = hanging_of(array, layout_of(array))
    number = len(sampled.frames) // 2
    values = hanging.of(sampled.values[number])
    shape = hanging.size_of(sampled.frames[number].size or sampled.values[number].shape)
    size = _fitting(hanging.extent_of(shape), shape, side, side)
    if sampled.form == COLOR:
        return resized_photo(values, *size)
    return resized(comparable(values), *size, mean=values.dtype.kind != "b")


def are_classes(array: Array, numbers: Numbers) -> bool:
    """True for bools, and for integers with few different values, as labels have."""
    if array.element.kind == "bool":
        return True
    classes = numbers.classes
    return (
        array.element.kind in ("int", "uint")
        and classes is not None
        and 2 <= len(classes) <= 16
        and max(classes) < 100
        and numbers.count > 16 * len(classes)
    )


def ends_of(scale: Scale) -> str:
    """Describe the values at the ends of the colours."""
    if scale.low != scale.low:
        return "no finite values"
    first, last = ("black", "white") if scale.colors == GRAY else ("dark", "bright")
    below, above = ("to", "from") if scale.clips else ("", "")
    ends = f"{first} {below} {number_text(scale.low)}, {last} {above} {number_text(scale.high)}"
    return " ".join(ends.split()) + " by the logarithm" * scale.power


def _picture(values: Any, scale: Scale, size: tuple[int, int]) -> Picture:
    """The picture of a plane in so many rows and columns; classes and phases are not averaged."""
    mean = scale.colors not in (CLASSES, PHASE)
    return colored(resized(comparable(values), *size, mean=mean), scale)


def _fitting(
    extent: tuple[float, float], shape: tuple[int, ...], rows: int, columns: int
) -> tuple[int, int]:
    """The rows and columns of a picture of these proportions that fits.

    Thin pictures get up to 4 pixels. Elements that are not square are drawn as rectangles of
    whole pixels, if there is room.
    """
    height, width = extent
    factor = min(1.0, rows / height, columns / width)
    return (
        max(1, min(shape[0], 4), round(height * factor)),
        max(1, min(shape[1], 4), round(width * factor)),
    )


# The labels of many small pictures, which are shown as a contact sheet ---------------------------


_NAMES = ("labels", "label", "fine_labels", "targets", "y")  # names of an array with labels
_CLASSES = ("classes", "label_names", "class_names")  # names of the array with the words for labels
_MOST_CLASSES = 10_000
_DECODED = 1 << 20  # bytes; a larger array of labels is not decoded


class Labels(Record):
    """The array of the labels of pictures, and the words for its numbers, if there are some."""

    array: Any
    words: tuple[str, ...]

    def of(self, numbers: Sequence[int]) -> list[str]:
        """Return the labels of pictures by their numbers; empty texts if they cannot be read."""
        try:
            labels = [for_showing(self.array[number : number + 1]) for number in numbers]
        except RaconvertError:
            return [""] * len(numbers)
        return [self._text(label) for label in labels]

    def _text(self, value: Any) -> str:
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, int) and 0 <= value < len(self.words):
            return self.words[value]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def labels_beside(bundle: Bundle, pictures: Array) -> Labels | None:
    """The labels of the pictures of an array, from another array of its group; None without any."""
    if pictures.ndim < 3:
        return None
    group, slash, _ = pictures.name.rpartition("/")
    arrays = {array.name: array for array in bundle.arrays} if len(bundle.arrays) > 1 else {}
    for name in _NAMES:
        labels = arrays.get(f"{group}{slash}{name}")
        if labels is not None and _fits(labels, pictures):
            return Labels(labels, _words(labels, arrays, group + slash))
    return None


def titles_of(sampled: Sample, labels: Labels | None) -> list[str]:
    """The title of each picture of a sheet: its number, and its label or its coordinates."""
    numbers = [frame.number for frame in sampled.frames]
    words = [frame.where for frame in sampled.frames] if labels is None else labels.of(numbers)
    pairs = zip(numbers, words, strict=True)
    return [f"{number}: {label}" if label else str(number) for number, label in pairs]


def _fits(labels: Array, pictures: Array) -> bool:
    """True if an array has one label for each picture, and reading a few of them is cheap."""
    lengths = {pictures.dims[-1], pictures.dims[0]}
    if labels.problem is not None or labels.ndim != 1 or labels.count not in lengths:
        return False
    if labels.element.kind not in ("int", "uint", "user", "bool"):
        return False
    data = labels.data if labels.extent is None else None
    return not is_decoded_whole(data) or labels.nbytes <= _DECODED


def _words(labels: Array, arrays: dict[str, Array], group: str) -> tuple[str, ...]:
    """The words for numbers of classes, from the labels or an array beside them."""
    named = labels.meta.attributes.get("labels")
    if isinstance(named, list):
        return tuple(map(str, named))
    for name in _CLASSES:
        names = arrays.get(group + name)
        if names is None or names.problem is not None or names.ndim != 1:
            continue
        if names.element.kind == "user" and names.count <= _MOST_CLASSES:
            try:
                values = for_showing(names[:]).tolist()
            except RaconvertError:
                continue
            if all(isinstance(value, str | bytes) for value in values):
                return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v
                             for v in values)  # fmt: skip
    return ()
