"""Looks at one array: a plane as a picture, a line, a table, or its value.

A plane is sent as numbers, so that a browser changes contrast and colours without another question.
All values are physical ones if the file has a scale; missing ones are NaN.
"""

from __future__ import annotations

import json
import struct
from math import ceil, isfinite

import numpy as np

from raconvert.arrays.layout import COLOR, EMPTY, IMAGE, LINE, SCALAR, Layout, layout_of
from raconvert.arrays.reinterpret import for_showing
from raconvert.arrays.transpose import as_listed
from raconvert.arrays.unscale import physical_values, unscaled
from raconvert.declared import Record
from raconvert.errors import UsageError, quoted
from raconvert.viewer.regions import region_of
from raconvert.views.channels import (
    MOST_CHANNELS,
    channel_axis,
    channels_of,
    origin_of,
    scale_of_channel,
)
from raconvert.views.filmstrip import are_classes
from raconvert.views.hanging import Hanging, hanging_of, scale_bar
from raconvert.views.numbers import comparable, numbers_of, thinned
from raconvert.views.peek import class_name
from raconvert.views.picture import (
    CLASSES,
    DEPTH,
    GRAY,
    PHASE,
    Scale,
    photo,
    resized_photo,
    scale_of,
)
from raconvert.views.sample import known_scale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.metadata import Axis
    from raconvert.viewer.regions import Part, Wholes

    Values = np.ndarray[Any, Any]

SIDE = 1024  # rows and columns of a plane that are sent at most
POINTS = 4096  # points of a line
LINE_ELEMENTS = 1 << 22  # elements of which these points are made
ROWS, COLUMNS = 100, 40  # of a page of a table
TEXT = 200  # characters shown of a value
TOGETHER, ALONE = "all channels in their colours", "one channel"  # of a micrograph
PARTS = ("magnitude", "phase", "real part", "imaginary part")  # of complex numbers
TABLE, PICTURE, VALUE = "table", "picture", "value"
_OF_COMPLEX = (np.abs, np.angle, np.real, np.imag)
_FLOATS = ("f4", "f8")
_WHOLE = {f"{kind}{width}" for kind in "iu" for width in (1, 2, 4, 8)}


class Look:
    """An array that is looked at: its form, its layout, and the scales of its values."""

    def __init__(self, array: Array, wholes: Wholes) -> None:
        array.settle()
        self.array: Array = array
        self._wholes = wholes
        listed = as_listed(array)
        self.listed: Array = listed
        self.convert: Callable[[Values], Values] | None = None
        scale = known_scale(array)
        if scale is not None and scale.varies:
            self.array = unscaled(array, scale, round_values=True)
        elif scale is not None:
            self.convert = physical_values(array, scale)
        self.layout: Layout = layout_of(listed)
        self.scales: dict[str, Scale] = {}  # of the planes, by part of complex numbers
        self.form: str = self._form()
        channels = channel_axis(array) if self.form == PICTURE else None
        self.channels: int | None = channels  # the axis of the channels of a micrograph

    def _form(self) -> str:
        """The form in which the array is shown."""
        array = self.array
        if not array.count or not array.element.nbytes:
            return EMPTY
        if self.layout.form == SCALAR:
            return VALUE
        if not self.has_numbers:
            return TABLE
        return LINE if self.layout.form == LINE else PICTURE

    @property
    def has_numbers(self) -> bool:
        """True for elements that can be drawn: not for texts, times, records and bare bytes."""
        dtype = np.dtype(self.array.dtype)
        return dtype.kind not in "SUmMO" and bool(comparable(np.zeros(1, dtype)).size)

    def axis(self, slowest_first: int) -> int:
        """The number of an axis in `shape`, by its number counted slowest first."""
        last = self.array.ndim - 1
        return last - slowest_first if self.listed.index_order == "F" else slowest_first

    @property
    def color(self) -> int:
        """The axis of red, green and blue, or -1; three channels of a micrograph are none."""
        is_photo = self.layout.form == COLOR and self.channels is None
        return self.axis(self.layout.color) if is_photo else -1

    @property
    def parts(self) -> list[str]:
        """The ways in which numbers of several parts, or channels, can be shown."""
        if np.dtype(self.array.dtype).kind == "c":
            return list(PARTS)
        return [TOGETHER, ALONE] if self.channels is not None else []

    def usual_axes(self) -> tuple[int, int]:
        """The axes that run down and to the right until the user chooses others."""
        layout = self.layout
        if layout.rows < 0:
            axis = self.axis(layout.columns) if layout.columns >= 0 else -1
            return axis, axis
        down, right = sorted((self.axis(layout.rows), self.axis(layout.columns)))
        return (right, down) if hanging_of(self.listed, layout).turned else (down, right)

    def read(self, parts: Sequence[Part]) -> tuple[Values, tuple[Part, ...]]:
        """The values at parts of the axes, and the parts that were read."""
        region = region_of(self.array, parts, self._wholes)
        values = np.asarray(region.values)
        if self.convert is not None:
            values = self.convert(np.ascontiguousarray(values))
        return for_showing(values), region.parts

    def check_numbers(self) -> None:
        """Raise `UsageError` if the elements cannot be drawn."""
        if not self.has_numbers:
            raise UsageError(f"array '{self.array.name}' has no numbers; it is shown as a table")

    def check(self, index: Sequence[int]) -> None:
        """Raise `UsageError` for an index that the array does not have."""
        shape = self.array.shape
        if len(index) != len(shape) or not all(
            0 <= at < length for at, length in zip(index, shape, strict=False)
        ):
            raise UsageError(f"{list(index)} is not an index of an array of shape {shape}")


# Planes ------------------------------------------------------------------------------------------


class Chosen(Record):
    """The plane that is asked for: its two axes, the index `at` which it lies, and a window of it.

    The window has the first index and the one behind the last, down and then to the right.
    """

    down: int
    right: int
    at: tuple[int, ...]
    window: tuple[int, int, int, int]
    part: str = PARTS[0]


def plane_of(look: Look, chosen: Chosen) -> tuple[dict[str, Any], bytes]:
    """The facts about a plane, and its numbers, row by row as it is hung, little-endian.

    Raises `UsageError` for a plane that the array does not have, and what reading raises.
    """
    down, right = chosen.down, chosen.right
    look.check_numbers()
    look.check(chosen.at)
    rank = look.array.ndim
    if not (0 <= down < rank and 0 <= right < rank and down != right):
        raise UsageError(f"axes {down} and {right} do not make a plane of {rank} axes")
    color = look.color if look.color not in (down, right) else -1
    parts: list[Part] = list(chosen.at)
    top, bottom = _within(look, down, chosen.window[:2])
    left, end = _within(look, right, chosen.window[2:])
    steps = [ceil((bottom - top) / SIDE), ceil((end - left) / SIDE)]
    if color >= 0:  # photos are averaged
        steps = [ceil(max(bottom - top, end - left) / (4 * SIDE))] * 2
    parts[down] = range(top, bottom, steps[0])
    parts[right] = range(left, end, steps[1])
    mixed = chosen.part == TOGETHER and look.channels not in (None, down, right)
    if mixed:
        color = look.channels if look.channels is not None else -1
    if color >= 0:
        length = look.array.shape[color]
        parts[color] = range(min(length, MOST_CHANNELS) if mixed else length)
    values, used = look.read(parts)
    hanging = _hanging(look, down, right)
    values = _laid_out(values, used, down, right, color)
    rows, columns = _range_of(used[down]), _range_of(used[right])
    if hanging.upward:
        values, rows = values[::-1], rows[::-1]
    if hanging.leftward:
        values, columns = values[:, ::-1], columns[::-1]
    if mixed:
        facts, numbers = _mixed(look, values, color)
    else:
        facts, numbers = _numbers(look, values, color, chosen.part)
    facts["shape"] = list(numbers.shape[:2])
    facts["mean"] = facts["shape"] != [len(rows), len(columns)]
    facts |= {
        "down": _side(look, down, rows), "right": _side(look, right, columns),
        "edges": hanging.edges, "plane": hanging.name, "text": _cut_text(look, chosen, used),
        "extent": _extent(hanging, rows, columns), "bar": _bar(hanging, columns),
        "key": key_text(used),
        "where": {str(axis): place_text(look.array.axes[axis], part)
                  for axis, part in enumerate(used) if isinstance(part, int)},
    }  # fmt: skip
    return facts, numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()


def _range_of(part: Part) -> range:
    """The indices of a part of an axis; a single index is a range of one."""
    return range(part, part + 1) if isinstance(part, int) else part


def _within(look: Look, axis: int, window: tuple[int, int]) -> tuple[int, int]:
    """The part of a window that an axis has. Raises `UsageError` if that is empty."""
    start, stop = max(0, window[0]), min(window[1], look.array.shape[axis])
    if start >= stop:
        raise UsageError(f"window {start}:{stop} of axis {axis} is empty")
    return start, stop


def packed(facts: dict[str, Any], numbers: bytes) -> bytes:
    """Facts and numbers as one answer: the length of the facts, the facts as JSON, the numbers."""
    text = json.dumps(facts, allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + numbers


def _hanging(look: Look, down: int, right: int) -> Hanging:
    """The way in which a plane of these axes is hung, with `down` running down in any case."""
    listed = look.listed
    seen = sorted(
        listed.ndim - 1 - axis if listed.index_order == "F" else axis for axis in (down, right)
    )
    hanging = hanging_of(listed, Layout(IMAGE, seen[0], seen[1], -1, ()))
    if hanging.turned == (down > right):
        return hanging
    left_edge, right_edge, top, bottom = [*(hanging.edges or "    ")]
    steps = None if hanging.steps is None else hanging.steps[::-1]
    return hanging._replace(
        turned=not hanging.turned, upward=hanging.leftward, leftward=hanging.upward, steps=steps,
        edges=f"{top}{bottom}{left_edge}{right_edge}".strip(),
    )  # fmt: skip


def _laid_out(values: Values, used: tuple[Part, ...], down: int, right: int, color: int) -> Values:
    """Values with the axis that runs down first, then the one to the right, colours last."""
    left = [axis for axis, part in enumerate(used) if isinstance(part, range)]
    order = [left.index(axis) for axis in (down, right, color) if axis >= 0]
    return values.transpose(order)


def _numbers(look: Look, values: Values, color: int, part: str) -> tuple[dict[str, Any], Values]:
    """The facts about the numbers of a plane, and the numbers in a type that browsers have."""
    if color >= 0:
        factor = min(1.0, SIDE / max(values.shape[:2]))
        rows, columns = (max(1, round(length * factor)) for length in values.shape[:2])
        pixels = photo(resized_photo(values, rows, columns)).pixels
        return {"type": "rgb", "bits": 8 * values.dtype.itemsize}, np.ascontiguousarray(pixels)
    facts: dict[str, Any] = {"units": look.array.meta.units and quoted(look.array.meta.units)}
    if values.dtype.kind == "c":
        part = part if part in PARTS else PARTS[0]
        values = _OF_COMPLEX[PARTS.index(part)](values.astype(np.complex128))
        facts["units"] = "rad" if part == PARTS[1] else facts["units"]
    else:
        part = ""
        values = comparable(values)
    if values.dtype.kind == "b":
        values, facts["bool"] = values.view(np.uint8), True
    code = f"{values.dtype.kind}{values.dtype.itemsize}"
    if code not in _WHOLE and code not in _FLOATS:
        values, code = values.astype(np.float64), "f8"
    facts["type"] = code
    if part not in look.scales:
        look.scales[part] = _usual_scale(look, values, part)
    usual = look.scales[part]
    now = scale_of([values], usual.colors)
    facts |= {
        "low": _number(usual.low), "high": _number(usual.high), "colors": usual.colors,
        "power": usual.power, "auto": [_number(now.low), _number(now.high)],
    }  # fmt: skip
    if usual.colors == CLASSES:
        classes = np.unique(values).tolist() if values.dtype.kind in "iu" else []
        facts["names"] = {
            str(value): quoted(str(class_name(look.array, value) or "")) for value in classes[:256]
        }
    return facts, np.ascontiguousarray(values)


def _mixed(look: Look, values: Values, axis: int) -> tuple[dict[str, Any], Values]:
    """The facts about the channels of a plane, which lie last, and the sum of their colours."""
    named = channels_of(look.array, axis)
    facts: dict[str, Any] = {"type": "rgb", "bits": 8, "channels": []}
    units = quoted(look.array.meta.units or "")
    pixels = np.zeros((*values.shape[:2], 3))
    for number, channel in enumerate(named):
        one = comparable(values[..., number]).astype(np.float64)
        key = f"channel {number}"  # the contrast of the first plane is kept
        if key not in look.scales:
            look.scales[key] = scale_of_channel([one])
        low, high = look.scales[key].low, look.scales[key].high
        finite = np.nan_to_num(one, nan=low, posinf=low, neginf=low)  # those add nothing
        share = np.clip((finite - low) / ((high - low) or 1.0), 0, 1)
        pixels += share[..., None] * np.array(channel.color)
        facts["channels"].append(
            {"name": quoted(channel.name)[:60], "color": list(channel.color), "low": _number(low),
             "high": _number(high), "units": units}
        )  # fmt: skip
    facts["origin"] = origin_of(named)
    return facts, np.ascontiguousarray(np.minimum(np.rint(pixels), 255).astype(np.uint8))


def _usual_scale(look: Look, values: Values, part: str) -> Scale:
    """The colours of all planes of an array, and the contrast of its first one."""
    if part == PARTS[1]:
        return Scale(-np.pi, np.pi, PHASE)
    kind = look.array.element.kind
    if not part and are_classes(look.array, numbers_of([thinned(values.reshape(-1), 1 << 16)])):
        return Scale(0, 0, CLASSES)
    of_body = hanging_of(look.listed, look.layout).is_of_body
    gray = kind in ("int", "uint") and look.convert is None
    return scale_of([values], GRAY if gray or of_body or kind == "complex" else DEPTH)


def _number(value: float) -> float | None:
    """A number in the types of JSON, which lacks NaN and the infinities."""
    return float(value) if isfinite(value) else None


def _side(look: Look, axis: int, part: range) -> dict[str, Any]:
    """An axis of a plane: its name and unit, the indices that are shown, and their coordinates."""
    meta = look.array.axes[axis]
    side: dict[str, Any] = {
        "axis": axis, "name": axis_name(meta, axis), "units": quoted(meta.units or ""),
        "start": part.start, "step": part.step, "count": len(part),
        "length": look.array.shape[axis],
    }  # fmt: skip
    if meta.labels is not None:
        side["labels"] = [_label_text(meta.labels[at]) for at in part]
    elif meta.spacing is not None and meta.origin is not None and meta.direction is None:
        side |= {"origin": _number(meta.origin), "spacing": _number(meta.spacing)}
    return side


def _label_text(label: Any) -> str:
    """A label of an axis as people read it."""
    return f"{label:.7g}" if isinstance(label, float) else cell_text(label)


def axis_name(axis: Axis, number: int) -> str:
    """The name of an axis; without one its number."""
    return quoted(axis.name)[:60] if axis.name else f"axis {number}"


def place_text(axis: Axis, at: int) -> str:
    """The label or coordinate of an index, with its unit; empty without one."""
    if axis.labels is not None:
        text = _label_text(axis.labels[at])
    elif axis.spacing is not None and axis.origin is not None and axis.direction is None:
        text = f"{axis.origin + at * axis.spacing:.7g}"
    else:
        return ""
    return f"{text} {quoted(axis.units)}" if axis.units else text


def key_text(parts: Sequence[Part]) -> str:
    """The key of the part in the words of Python; an axis that is shown is whole, ``:``."""
    words = [str(part) if isinstance(part, int) else ":" for part in parts]
    return f"[{', '.join(words)}]"


def _cut_text(look: Look, chosen: Chosen, used: tuple[Part, ...]) -> str:
    """Describe which rows and columns are shown; empty if all of the window are."""
    texts = []
    top, bottom, left, end = chosen.window
    sides = (("row", chosen.down, (top, bottom)), ("column", chosen.right, (left, end)))
    for word, axis, window in sides:
        part = _range_of(used[axis])
        start, stop = _within(look, axis, window)
        if part.step > 1:
            texts.append(f"one of {part.step} {word}s")
        if part.start > start or part[-1] + part.step < stop:
            texts.append(f"{word}s {part.start} to {part[-1]} only, around the middle")
    return ", ".join(texts)


def _extent(hanging: Hanging, rows: range, columns: range) -> list[float]:
    """The proportions of a plane: its height and width."""
    size = max(1, len(rows) * abs(rows.step)), max(1, len(columns) * abs(columns.step))
    return list(hanging.extent_of(size))


def _bar(hanging: Hanging, columns: range) -> list[Any] | None:
    """The scale bar of a plane: its share of the width, and its length in words."""
    bar = scale_bar(hanging, max(1, len(columns) * abs(columns.step)))
    return None if bar is None else [bar[0], quoted(bar[1])]


# Lines, tables and values ------------------------------------------------------------------------


def line_of(look: Look, axis: int, index: Sequence[int], start: int, stop: int) -> dict[str, Any]:
    """A line along an axis: each point, or the least and the largest value of each stretch.

    Raises `UsageError` for a line that the array does not have, and what reading raises.
    """
    look.check_numbers()
    look.check(index)
    if not 0 <= axis < look.array.ndim:
        raise UsageError(f"axis {axis} is not an axis of the array")
    start, stop = _within(look, axis, (start, stop))
    parts: list[Part] = list(index)
    parts[axis] = range(start, stop, ceil((stop - start) / LINE_ELEMENTS))
    values, used = look.read(parts)
    part = _range_of(used[axis])
    lines = {"": comparable(values)}
    if values.dtype.kind == "c":
        lines = {PARTS[0]: np.abs(values), PARTS[1]: np.angle(values)}
    facts = _side(look, axis, part if len(part) <= POINTS else part[:0])
    facts |= {
        "start": part.start, "step": part.step, "count": len(part),
        "units": quoted(facts["units"]), "lines": [],
        "values": quoted(look.array.meta.units or ""),
        "text": f"one of {part.step} elements" if part.step > 1 else "",
        "key": key_text(used),
        "where": {str(number): place_text(look.array.axes[number], at)
                  for number, at in enumerate(used) if isinstance(at, int)},
    }  # fmt: skip
    for name, numbers in lines.items():
        low, high = _course(numbers)
        facts["lines"].append({"name": name, "low": low, "high": high})
    return facts


def _course(values: Values) -> tuple[list[float | None], list[float | None]]:
    """The least and the largest value of each stretch; of a short line both are the values."""
    values = values.reshape(-1).astype(np.float64)
    if values.size <= POINTS:
        points = [*map(_number, values.tolist())]
        return points, points
    from raconvert.views.terminal import envelope

    low, high = envelope(values, POINTS // 2)
    return [*map(_number, low.tolist())], [*map(_number, high.tolist())]


def table_of(
    look: Look, axes: tuple[int, int], index: Sequence[int], start: int, first: int
) -> dict[str, Any]:
    """A page of a table: rows along one axis; columns are fields, or run along another axis.

    It begins at the row `start` and the column `first`; an axis of -1 stands for none.
    """
    look.check(index)
    down, right = axes
    shape = look.array.shape
    if not (-1 <= down < len(shape) and -1 <= right < len(shape)):
        raise UsageError(f"axes {down} and {right} are not axes of the array")
    names = np.dtype(look.array.dtype).names
    parts: list[Part] = list(index)
    rows = range(1)
    if down >= 0:
        rows = range(shape[down])[max(0, start) : max(0, start) + ROWS]
        parts[down] = rows
    across = names is None and right not in (-1, down)
    if across:
        columns = range(shape[right])[max(0, first) : max(0, first) + COLUMNS]
        parts[right] = columns
    values, used = look.read(parts)
    if down >= 0:
        rows = _range_of(used[down])  # fewer, if all of them cost too much
    if across:
        axis = look.array.axes[right]
        labels, shown = axis.labels, _range_of(used[right])
        head = [str(at) if labels is None else _label_text(labels[at]) for at in shown]
        total = shape[right]
        values = values.T if down > right else values
    else:
        head = list(names or ("value",))[max(0, first) :][:COLUMNS]
        total = len(names or ("value",))
    cells = [
        _cells(row, None if names is None else head)
        for row in values.reshape(len(rows), *([len(head)] if across else []))
    ]
    rows_axis = look.array.axes[down] if down >= 0 else None
    return {
        "rows": [_row_name(rows_axis, at) for at in rows] if rows_axis is not None else [""],
        "head": [quoted(name) for name in head], "cells": cells, "start": rows.start,
        "total": shape[down] if down >= 0 else 1, "first": max(0, first), "columns": total,
        "numbers": [_is_number(look, name if names else None) for name in head],
        "where": {str(n): place_text(look.array.axes[n], part)
                  for n, part in enumerate(used) if isinstance(part, int)},
    }  # fmt: skip


def _row_name(axis: Axis, at: int) -> str:
    """The head of a row: its index, and its label or coordinate."""
    text = place_text(axis, at)
    return f"{at}: {text}" if text else str(at)


def _is_number(look: Look, name: str | None) -> bool:
    """True if the elements, or their field of this name, are numbers."""
    dtype = np.dtype(look.array.dtype)
    field = dtype.fields[name][0] if name is not None and dtype.fields else dtype
    return field.kind in "biufc"


def _cells(row: Any, names: list[str] | None) -> list[str]:
    """The cells of a row: of some fields of a record, or of single values."""
    if names is not None:
        return [cell_text(row[name]) for name in names]
    return [cell_text(one) for one in np.atleast_1d(row)]


def cell_text(value: Any) -> str:
    """A value as people read it: bytes as text, dates as dates; of a long one its beginning."""
    if hasattr(value, "dtype") and value.dtype.kind not in "mM" and not value.dtype.names:
        value = value.item() if value.ndim == 0 else value.tolist()
    if isinstance(value, bytes):
        value = value.rstrip(b"\0").decode("utf-8", "backslashreplace")
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return quoted(text if len(text) <= TEXT else f"{text[:TEXT]}…")


def value_of(look: Look) -> dict[str, Any]:
    """The value of an array of one element, with the names of its fields if it has some."""
    values, _ = look.read([0] * look.array.ndim)
    names = np.dtype(values.dtype).names
    value = values.reshape(-1)[0]
    units = quoted(look.array.meta.units or "")
    if names is None:
        return {"fields": [["value", cell_text(value)]], "units": units}
    return {"fields": [[quoted(name), cell_text(value[name])] for name in names], "units": units}


def axes_of(look: Look) -> list[dict[str, Any]]:
    """The axes of an array: name, length, unit; ``named`` is False if the name is only a number."""
    return [
        {"name": axis_name(axis, number), "length": length, "units": quoted(axis.units or ""),
         "named": bool(axis.name)}
        for number, (axis, length) in enumerate(
            zip(look.array.axes, look.array.shape, strict=True))
    ]  # fmt: skip


def middle_of(look: Look) -> list[int]:
    """The index that is shown first: the middle of axes in space, the first of others."""
    axes = look.array.axes
    unnamed = not any(axis.name for axis in axes)
    return [
        length // 2 if unnamed or axis.direction is not None else 0
        for axis, length in zip(axes, look.array.shape, strict=True)
    ]
