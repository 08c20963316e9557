"""The pictures that stand for an array: what is drawn of a sample, in which colors, how large."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.layout import COLOR
from raconvert.declared import Record
from raconvert.views.plots import number_text
from raconvert.views.numbers import comparable, numbers_of
from raconvert.views.picture import (
    CLASSES,
    DEPTH,
    GRAY,
    PHASE,
    Scale,
    colored,
    photo,
    resized,
    scale_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.views.numbers import Numbers
    from raconvert.views.picture import Picture
    from raconvert.views.sample import Sample


class Strip(Record):
    """Pictures in a row, one of each part of a sample, and what their colors mean."""

    title: str
    pictures: list[Picture]

    def legend(self, missing: str) -> str:
        """The title, with what `missing` values look like if there are some."""
        some = any(picture.missing.any() for picture in self.pictures)
        return ", ".join(part for part in (self.title, some * f"NaN {missing}") if part)


def strips_of(array: Array, found: Sample, rows: int, columns: int) -> list[Strip]:
    """The pictures of a sample of planes, each of at most so many pixels."""
    values = found.values
    size = _fitting(found.frames[0].size or values[0].shape, rows, columns)
    if found.form == COLOR:
        parts = [
            np.stack([resized(one[..., color], *size) for color in range(one.shape[-1])], axis=-1)
            for one in values
        ]
        return [Strip("", [photo(part) for part in parts])]
    if values[0].dtype.kind == "c":
        magnitude = [np.abs(part) for part in values]
        phase = [np.angle(part) for part in values]
        scale = scale_of(magnitude, GRAY)
        first = [_one(part, scale, size) for part in magnitude]
        turned = Scale(-np.pi, np.pi, PHASE)
        second = [_one(part, turned, size) for part in phase]
        return [
            Strip(f"magnitude, {_ends(scale)}", first),
            Strip("phase, -π to π", second),
        ]
    numbers = numbers_of(values)
    if _are_classes(array, numbers):
        scale = Scale(0, 0, CLASSES)
        return [Strip("classes", [_one(part, scale, size) for part in values])]
    scale = scale_of(values, DEPTH if array.element.kind in ("float", "bfloat") else GRAY)
    return [Strip(_ends(scale), [_one(part, scale, size) for part in values])]


def _are_classes(array: Array, numbers: Numbers) -> bool:
    """True for bools and for whole numbers of which few are different, as labels are."""
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


def _ends(scale: Scale) -> str:
    if scale.low != scale.low:
        return "no finite values"
    first, last = ("black", "white") if scale.colors == GRAY else ("dark", "bright")
    return f"{first} {number_text(scale.low)}, {last} {number_text(scale.high)}"


def _one(values: Any, scale: Scale, size: tuple[int, int]) -> Picture:
    mean = scale.colors not in (CLASSES, PHASE)
    return colored(resized(comparable(values), *size, mean=mean), scale)


def _fitting(shape: tuple[int, ...], rows: int, columns: int) -> tuple[int, int]:
    """The rows and columns of a picture of this form that fits; long thin ones are widened."""
    height, width = shape[:2]
    factor = min(1.0, rows / height, columns / width)
    return (
        max(1, min(height, 4), round(height * factor)),
        max(1, min(width, 4), round(width * factor)),
    )
