"""Selection of the axes of an array that make a picture, and of the one that holds colors."""

from __future__ import annotations

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.array import Array

COLORS = (3, 4)  # lengths of an axis of red, green, blue, and maybe alpha
NARROW = 8  # columns that are lines of their own rather than a picture

SCALAR, LINE, COLUMNS, IMAGE, COLOR, EMPTY = "scalar", "line", "columns", "image", "color", "empty"


class Layout(Record):
    """The axes of an array, slowest first, that make a picture; `outer` are those of the frames."""

    form: str
    rows: int
    columns: int
    color: int
    outer: tuple[int, ...]


def layout_of(array: Array) -> Layout:
    """Return the axes of an array, slowest first, that make a picture of it."""
    lengths = array.dims[::-1]
    axes = [axis for axis, length in enumerate(lengths) if length > 1]
    if len(axes) < 2:
        form = LINE if axes else SCALAR
        return Layout(form, -1, axes[-1] if axes else -1, -1, ())
    *outer, rows, columns = axes
    color = -1
    if array.element.kind == "uint" and len(axes) > 2:
        before = axes[-3]
        if lengths[columns] in COLORS and min(lengths[before], lengths[rows]) > NARROW:
            rows, columns, color = before, rows, columns
            outer = axes[:-3]
        elif lengths[before] == COLORS[0] and min(lengths[rows], lengths[columns]) > NARROW:
            color, outer = before, axes[:-3]
    if color >= 0:
        return Layout(COLOR, rows, columns, color, tuple(outer))
    short, long = sorted((lengths[rows], lengths[columns]))
    if short <= NARROW and long > 4 * short and len(axes) == 2:
        return Layout(COLUMNS, rows, columns, -1, ())
    return Layout(IMAGE, rows, columns, -1, tuple(outer))
