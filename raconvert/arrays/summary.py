"""Text for people about arrays, axes and bundles: one line each, and trees of them."""

from __future__ import annotations

from raconvert.arrays.dtypes import type_name
from raconvert.errors import listed, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any


MOST_AXES = 3  # whose names are shown in a report
MOST_NUMBERS = 8  # of axes in a report
MOST_LABELS = 4  # of an axis, shown one by one
MOST_TEXT = 24  # characters of a label
MOST_LINES = 60  # of a tree


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 2]}…{text[-1]}"


def labels_text(labels: list[Any]) -> str:
    """Return the first labels of an axis as text, and how many there are."""
    shown = ", ".join(_short(label) for label in labels[:MOST_LABELS])
    if len(labels) <= MOST_LABELS:
        return f"[{shown}]"
    return f"[{shown}, … {_short(labels[-1])}: {len(labels)}]"


def axis_text(axis: Any) -> str:
    """Return the fields of an axis that are set, as its constructor takes them; labels cut."""
    parts = [
        f"{name}={labels_text(value) if name == 'labels' else repr(value)}"
        for name, value in axis.to_dict().items()
        if name != "name"
    ]
    return ", ".join([repr(axis.name), *parts] if axis.name is not None else parts)


def facts_of_axes(array: Any, lost: Sequence[Iterable[str]]) -> list[str]:
    """Return the fields of axes that are lost, as reports list them, axes with equal ones together.

    `lost` has the fields of each axis, the fastest first, as `ra_axes`; the axes are numbered as
    the array is indexed: ``every axis (name)``, ``axes 1 'row' and 2 (spacing, units)``.

    >>> axes = [Axis("time", units="s"), Axis("row")]
    >>> array = Array(np.zeros((2, 3)), name="x", meta=Metadata(axes=axes))
    >>> facts_of_axes(array, [["name"], ["name", "units"]])
    ['every axis (name)', "axis 0 'time' (units)"]

    Raises nothing.
    """
    column_major = array.index_order == "F"
    numbers_by_field: dict[str, list[int]] = {}
    for number, fields in enumerate(lost if column_major else reversed(lost)):
        for field in dict.fromkeys(fields):
            numbers_by_field.setdefault(field, []).append(number)
    groups: dict[tuple[int, ...], list[str]] = {}
    for field, numbers in numbers_by_field.items():
        groups.setdefault(tuple(numbers), []).append(field)
    axes = array.ra_axes if column_major else array.ra_axes[::-1]
    return [f"{_axes_text(axes, key)} ({', '.join(fields)})" for key, fields in groups.items()]


def _axes_text(axes: Sequence[Any], numbers: Sequence[int]) -> str:
    """Return the axes of these numbers (ascending) as text; of few with their names."""
    if len(numbers) == len(axes) > 1:
        return "every axis"
    first, last = numbers[0], numbers[-1]
    if len(numbers) > MOST_AXES:
        if last - first == len(numbers) - 1:
            return f"axes {first} to {last}"
        return f"axes {listed([*map(str, numbers)], MOST_NUMBERS)}"
    texts = [f"{n} {_short(axes[n].name)}" if axes[n].name else str(n) for n in numbers]
    words = " and ".join(", ".join(texts).rsplit(", ", 1))
    return f"{'axis' if len(numbers) == 1 else 'axes'} {words}"


def array_line(array: Any) -> str:
    """Return an array in one line: its type, and its shape with the names of its axes."""
    if array.problem is not None:
        return f"cannot be read: {str(array.problem).splitlines()[0]}"
    axes = array.axes
    if any(axis.name for axis in axes):
        named = [
            f"{axis.name or '?'}: {length}" for axis, length in zip(axes, array.shape, strict=True)
        ]
        shape = f"({', '.join(named)})"
    else:
        shape = str(array.shape)
    units = f" {array.meta.units}" if array.meta.units else ""
    return f"{type_name(array.element)} {shape}{units}"


def array_lines(array: Any) -> list[str]:
    """Return lines about an array: its own, and one for each axis with more than a name."""
    lines = [f"<Array {array.name!r} {array_line(array)}"]
    for number, axis in enumerate(array.axes):
        if axis.to_dict().keys() - {"name"}:
            lines.append(f"  axis {number}: {axis_text(axis)}")
    lines[-1] += ">"
    return lines


def tree(
    head: str, arrays: Mapping[str, Any], groups: Iterable[str], most: int = MOST_LINES
) -> str:
    """Return the tree of arrays, by their paths, and groups: at most `most` lines below `head`."""
    root: dict[str, Any] = {}
    for path in groups:
        _group_in(root, path)
    for path, array in arrays.items():
        above, _, name = path.rpartition("/")
        _group_in(root, above)[name, True] = array
    lines, count = [], 0
    for before, name, array in _branches(root):
        count += 1
        if count <= most:
            about = "" if array is None else f"  {array_line(array)}"
            lines.append(before + quoted(name + about))
    if count > most:
        lines[-1] = f"… {count - most + 1} more lines"
    return "\n".join([head, *lines])


def _group_in(root: dict[Any, Any], path: str) -> dict[Any, Any]:
    """Return the mapping of a group in a tree, made if it is missing; keys are (name, is array)."""
    for part in path.split("/") if path else ():
        root = root.setdefault((part, False), {})
    return root


def _branches(root: dict[Any, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield for each line of a tree its beginning, a name, and the array, or None for a group."""
    waiting = [("", iter(root.items()), len(root))]  # groups that are not finished
    while waiting:
        before, inside, count = waiting.pop()
        for (name, is_array), inner in inside:
            count -= 1
            yield before + ("├── " if count else "└── "), name, inner if is_array else None
            if not is_array and inner:
                waiting += [
                    (before, inside, count),
                    (before + ("│   " if count else "    "), iter(inner.items()), len(inner)),
                ]
                break
