"""Translation of metadata to MetaImage fields, and back.

The namespace ``metaimage`` may have been edited, or made by anybody: a field of a wrong form is
left out, and named.
"""

from __future__ import annotations

import re
from math import isfinite

from raconvert.arrays.space import (
    IN_SPACE,
    OF_ONE,
    UNKNOWN,
    World,
    as_itk,
    directed,
    is_component,
    split,
)
from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import Array, Axis, Metadata, facts_of, facts_of_axes, fields_of_axes

from .header import ALIASES, BLANKS, NAMESPACE, ORDER, STRUCTURE, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.arrays.metadata import Space

    from .header import Header

_KEY = re.compile("[^=:\\x00-\\x1f]{1,255}")
_BLANKS = re.compile(f"[{BLANKS}]+")
_REAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
MAX_TEXT = 1 << 14
# List in the namespace -> field
_VECTORS = {"center": "CenterOfRotation"}
SPACING, SIZE, MATRIX, OFFSET = "ElementSpacing", "ElementSize", "TransformMatrix", "Offset"
ANATOMY = "AnatomicalOrientation"
_NUMBERS = (SPACING, SIZE, MATRIX, OFFSET, *_VECTORS.values())
FRAME = "LPS"  # whatever AnatomicalOrientation says: so ITK reads all fields


def metadata_of(header: Header, notes: list[str]) -> Metadata:
    """Return the metadata of a header; fields without meaning are left out, wrong ones noted."""
    fields = {_text(k): _text(v) for k, v in header.fields.items() if k not in STRUCTURE}
    rank = header.rank
    step = 1 if header.fields.get(ORDER) == "F" else -1  # axes in the order of the shape
    own: dict[str, Any] = {}
    numbers = {name: _numbers(fields.pop(name, ""), name, rank, notes) for name in _NUMBERS}
    for name, field in _VECTORS.items():
        if any(numbers[field]):
            own[name] = numbers[field]
    # MetaIO takes a size of elements without a spacing for the spacing.
    steps = numbers[SPACING] or numbers[SIZE]
    channels = len(header.dims) - rank
    of_axes: list[dict[str, Any]] = [{} for _ in header.dims]
    if numbers[SIZE] and numbers[SIZE] != steps:
        for entry, size in zip(of_axes[channels:], numbers[SIZE], strict=True):
            entry["size"] = size
    if channels:
        of_axes[0]["channels"] = True
    if any(of_axes):
        own["axes"] = of_axes[::step]
    if 0 in steps:
        notes.append("a spacing of 0 was ignored")
    units = fields.pop("DistanceUnits", None)
    comment = fields.pop("Comment", "")
    axes = _axes(steps, units if units in UNITS else None, rank)
    axes, space = _placed(axes, steps, numbers[MATRIX], numbers[OFFSET])
    anatomy = fields.pop(ANATOMY, "")
    if anatomy.strip("?") and anatomy != anatomy_of(axes):
        fields[ANATOMY] = anatomy
    if rest := {key: value for key, value in fields.items() if value not in ("", "??")}:
        own["fields"] = rest
    axes = [Axis(kind="vector")] * channels + axes
    return Metadata(
        comment or None,
        axes=axes[::step] if any(axes) else (),
        space=space,
        formats={NAMESPACE: own} if own else None,
    )


def _axes(steps: list[float], unit: str | None, rank: int) -> list[Axis]:
    """Return axes with their spacings, without signs; spacings of 1 without a unit are left out."""
    if not steps or (all(abs(step) == 1 for step in steps) and not unit):
        return [Axis()] * rank
    return [Axis(spacing=abs(step) or None, units=unit) for step in steps]


def _placed(
    axes: list[Axis], steps: list[float], matrix: list[float], offset: list[float]
) -> tuple[list[Axis], Space | None]:
    """Return axes with their directions, and the space, as ITK has both.

    Without matrix and offset there are spacings only; one of the two implies the identity, or
    leaves the origin unknown. Axes behind the third that run along an axis of their own are not
    spatial: they get spacing and origin.
    """
    rank = len(axes)
    if not matrix and not offset and all(step >= 0 for step in steps):
        return axes, None
    # A negative spacing turns the direction.
    steps = [step or 1.0 for step in steps] or [1.0] * rank
    rows = [matrix[n * rank : (n + 1) * rank] for n in range(rank)] if matrix else _identity(rank)
    # The product of a component and a spacing is the step of ITK.
    vectors = [
        tuple(step * part + 0.0 for part in row) for row, step in zip(rows, steps, strict=True)
    ]
    if not all(map(any, vectors)):
        return axes, None
    world = World(tuple(vectors), tuple(offset) if offset else None, None)
    world, others = world.without_time()
    world = World(world.vectors, world.origin, FRAME)
    if world.rank < 3:
        world = world.padded(3)
    if world.rank > 3:  # directions that mix space with what is behind it
        world = World(world.vectors, world.origin, None)
    placed = []
    for number, axis in enumerate(axes):
        if number in others:
            step, start = others[number]
            is_meant = step != 1 or axis.units is not None  # a 1 is written if there is no spacing
            placed.append(axis.replace(spacing=step if is_meant else None, origin=start or None))
        else:
            placed.append(directed(axis, world.vectors[number], abs(steps[number])))
    return placed, world.space


def anatomy_of(axes: Sequence[Axis]) -> str:
    """Return AnatomicalOrientation as ITK writes it: a letter for the side each axis comes from.

    Three axes along the nearest axes of the world (LPS), each once; empty for other axes.
    """
    letters, taken = "", set()
    for axis in axes:
        if axis.direction is None:
            continue
        sizes = [abs(part) for part in axis.direction]
        nearest = sizes.index(max(sizes))
        taken.add(nearest)
        letters += ("RAI" if axis.direction[nearest] > 0 else "LPS")[nearest : nearest + 1]
    return letters if len(letters) == len(taken) == 3 else ""


def _identity(rank: int) -> list[list[float]]:
    """Return the rows of the identity matrix."""
    return [[float(row == column) for column in range(rank)] for row in range(rank)]


def _numbers(text: str, name: str, rank: int, notes: list[str]) -> list[float]:
    """Parse the numbers of a field, one per axis, or a matrix; empty, with a note, if malformed."""
    if not text:
        return []
    count, numbers = rank * rank if name == MATRIX else rank, _reals(text)
    if len(numbers) == count:
        return numbers
    notes.append(f"{name} was ignored, as it is not {count} numbers: {text[:40]}")
    return []


def _text(raw: str) -> str:
    """Decode a text as UTF-8, or as Latin-1 if that fails."""
    try:
        return raw.encode("latin-1").decode()
    except UnicodeDecodeError:
        return raw


def _reals(text: str) -> list[float]:
    """Return the finite numbers of a text; an empty list if any word is not one."""
    words = _BLANKS.split(text)
    if not all(_REAL.fullmatch(word) for word in words):
        return []
    numbers = [*map(float, words)]
    return numbers if all(map(isfinite, numbers)) else []


# --- writing --------------------------------------------------------------------------------------


def has_channels(array: Array) -> bool:
    """True if the fastest axis holds channels, by its kind or by the record of its file."""
    if array.ndim < 2 or array.dims[0] == 1:
        return False
    first = array.ra_axes[0] if array.ra_axes else Axis()
    axes = _entries(array)
    flagged = isinstance(axes, list) and len(axes) == array.ndim and isinstance(axes[0], dict)
    return is_component(first) or bool(flagged and axes[0].get("channels") is True)


def _entries(array: Array) -> Any:
    """Return the entries of the namespace for each axis, the fastest first, as they stand there."""
    listed = _own(array).get("axes")
    return listed[::-1] if isinstance(listed, list) and array.index_order != "F" else listed


def _own(array: Array) -> Mapping[str, Any]:
    """Return the namespace of an array; empty without one."""
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    return own if isinstance(own, dict) else {}


def fields_of(array: Array) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a header other than `STRUCTURE`, and what is lost. Raises nothing."""
    lost: list[str] = []
    fields: dict[str, str] = {}
    if not array.described:
        return fields, lost
    meta, own = array.meta, _own(array)
    first = has_channels(array)
    rank = max(array.ndim - first, 1)
    by_axis: list[list[str]] = [[] for _ in array.ra_axes]
    _take_axes(array, first, fields, by_axis)
    _take_space(array, first, fields, lost, by_axis)
    lost += facts_of_axes(array, by_axis)
    for name, field in _VECTORS.items():
        if name in own:
            _take_numbers(own[name], rank, field, fields, lost, name)
    _take_sizes(_entries(array), array, first, fields, lost)
    for key, value in _texts(own.get("fields"), lost).items():
        if key not in fields:
            fields[_line(key)] = _line(value)
    if meta.description:
        if _is_line(meta.description):
            fields["Comment"] = _line(meta.description)
        else:
            lost.append("description")
    lost += [f"metaimage {key}" for key in own.keys() - {"fields", "axes", *_VECTORS}]
    lost += facts_of(array, "description", "axes", "space", NAMESPACE)
    return fields, lost


def _take_axes(array: Array, first: bool, fields: dict[str, str], by_axis: list[list[str]]) -> None:
    """Set spacings and units, and list what each axis loses.

    `first` is the index of the first axis behind the channels: True (1) if there are any.
    """
    axes = array.ra_axes
    _take_spacings(axes[first:], fields, by_axis[first:])
    _take_units(axes[first:], fields, by_axis[first:])
    for axis, lost in zip(axes[first:], by_axis[first:], strict=True):
        lost.extend(fields_of_axes([axis], "name", "labels", "kind"))
    if first and axes:  # the channels
        kept = ("name", "labels", "kind") if axes[0].kind == "vector" else ()
        fields_lost = [name for name in Axis.FIELDS if name not in (*kept, "direction")]
        by_axis[0].extend(fields_of_axes(axes[:1], *fields_lost))


def _take_spacings(axes: Sequence[Axis], fields: dict[str, str], by_axis: list[list[str]]) -> None:
    """Set the spacings of all axes, unless none has one, and note those that are lost or new."""
    numbers = [_length(axis) for axis in axes]
    if all(axis.spacing is None for axis in axes):
        return
    turned = any(axis.direction is not None for axis in axes)
    for axis, number, lost in zip(axes, numbers, by_axis, strict=True):
        if axis.spacing is not None and number is None:
            lost.append("spacing")
        elif axis.spacing is None and (axis.direction or not turned):
            lost.append(UNKNOWN)
    fields[SPACING] = " ".join(repr(1.0 if number is None else number) for number in numbers)


def _take_units(axes: Sequence[Axis], fields: dict[str, str], by_axis: list[list[str]]) -> None:
    """Set the unit, if all axes have one and the same; else list the units that are lost."""
    units = {axis.units for axis in axes}
    if len(units) == 1 and units <= {*UNITS} and SPACING in fields:
        fields["DistanceUnits"] = str(*units)
        return
    placed = any(axis.direction is not None for axis in axes)
    ones = placed or all(_length(axis) in (None, 1) for axis in axes)
    for axis, lost in zip(axes, by_axis, strict=True):
        lost.extend(fields_of_axes([axis], "units"))
        if ones and axis.spacing == 1 and axis.direction is None:
            lost.append(OF_ONE)


def _length(axis: Axis) -> float | None:
    """Return the spacing of an axis as a header can have it; None if it cannot."""
    value = axis.spacing
    if not is_real(value) or not value:
        return None
    number = float(value or 0)
    return abs(number) if number > 0 or axis.direction is not None else None


def _take_space(
    array: Array, first: bool, fields: dict[str, str], lost: list[str], by_axis: list[list[str]]
) -> None:
    """Put matrix, offset and anatomy into the fields: the world of ITK, which is LPS.

    `first` is that of `_take_axes`.
    """
    axes = array.ra_axes[first:]
    world, lost_of_space, made_spatial = as_itk(axes, array.meta.space)
    lost += lost_of_space
    for number in made_spatial:
        by_axis[number + first].append(IN_SPACE)
    if world is None:
        for axis, lost_of_axis in zip(axes, by_axis[first:], strict=True):
            if axis.direction is None:
                lost_of_axis.extend(fields_of_axes([axis], "origin"))
                if SPACING in fields and axis.spacing is None:
                    lost_of_axis.append(UNKNOWN)
        return
    rows, steps = [], []
    for axis, vector in zip(axes, world.vectors, strict=True):
        length, parts = _row(axis, vector or ())
        steps.append(length)
        rows += parts
    fields[SPACING] = " ".join(map(repr, steps))
    fields[MATRIX] = " ".join(map(repr, rows))
    if world.origin is not None:
        fields[OFFSET] = " ".join(map(repr, map(float, world.origin)))
    steps_in_space = zip(axes, world.vectors, strict=True)
    if letters := anatomy_of([directed(a, v) for a, v in steps_in_space if a.vector]):
        fields[ANATOMY] = letters


def _row(axis: Axis, vector: Sequence[float]) -> tuple[float, list[float]]:
    """Split the step of an axis into spacing and direction, exactly if possible."""
    length = _length(axis) if axis.direction is not None else max(map(abs, vector))
    length, exact = split(vector, length) or (1.0, tuple(vector))
    return length, [part + 0.0 for part in exact]


def _take_sizes(
    axes: Any, array: Array, first: bool, fields: dict[str, str], lost: list[str]
) -> None:
    """Set the sizes of elements that the entries of the namespace have."""
    if not isinstance(axes, list):
        lost += ["metaimage axes"] * (axes is not None)
        return
    sizes = [axis.get("size") if isinstance(axis, dict) else None for axis in axes][first:]
    if any(size is not None for size in sizes):
        _take_numbers(sizes, array.ndim - first, SIZE, fields, lost, "axes (size)")
    if not first and any(isinstance(axis, dict) and axis.get("channels") for axis in axes):
        lost.append("metaimage axes (channels)")


def _take_numbers(
    value: Any, count: int, field: str, fields: dict[str, str], lost: list[str], name: str
) -> None:
    """Set a field of `count` numbers; a value of another form is lost."""
    if are_reals(value, count):
        fields[field] = " ".join(repr(float(number)) for number in value)
    else:
        lost.append(f"metaimage {name}")


def _texts(value: Any, lost: list[str]) -> dict[str, str]:
    """Return the fields that a header can hold, and list the others."""
    if not isinstance(value, dict):
        lost += ["metaimage fields"] * (value is not None)
        return {}
    taken = STRUCTURE | {*ALIASES, *_NUMBERS, "Comment", "DistanceUnits"}
    fine = {  # ?? is what ITK writes without a value
        key: text for key, text in value.items()
        if isinstance(key, str) and _KEY.fullmatch(key) and key.strip() == key
        and key not in taken and _is_line(key) and _is_line(text) and text != "??"
    }  # fmt: skip
    lost += [f"metaimage {key}"[:80] for key in value if key not in fine]
    return fine


def _is_line(text: object) -> bool:
    """True if a text is one line of UTF-8 that is read as it was."""
    if not isinstance(text, str) or not text or len(text) > MAX_TEXT:
        return False
    try:
        line = _line(text)
    except UnicodeEncodeError:
        return False
    return line.strip(BLANKS) == line and not {"\n", "\r", "\0"} & {*line}


def _line(text: str) -> str:
    """Return a text for the header: a letter for each byte. Raises `UnicodeEncodeError`."""
    return text.encode().decode("latin-1")
