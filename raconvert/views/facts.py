"""A look at a file for programs: what `peek` shows, in the types of JSON."""

from __future__ import annotations

from raconvert.arrays.cast import as_listed
from raconvert.arrays.layout import EMPTY
from raconvert.errors import TooLarge
from raconvert.inspect.info import describe_array, plain, type_text
from raconvert.registry import by_name
from raconvert.views.numbers import MOST_CLASSES
from raconvert.views.peek import chosen_array, class_name, counted, has_classes
from raconvert.views.sample import sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.views.numbers import Numbers
    from raconvert.views.sample import Sample

_PICTURES = 10  # of many small ones: as many as on a terminal of 80 columns
MOST_ARRAYS = 1000  # of a container that are named


def look(bundle: Bundle, path: str, reason: str, *, full: bool = False) -> dict[str, Any]:
    """What a file is, the arrays in it, and the numbers of the one that a look is about.

    Raises what reading elements raises.
    """
    row = by_name(bundle.format)
    array = chosen_array(bundle)
    return {
        "path": path,
        "format": row.name,
        "title": row.title,
        "reason": reason,
        "container": row.many,
        "count": len(bundle.arrays),
        "tree": [_leaf(one) for one in bundle.arrays[:MOST_ARRAYS]],
        "array": None if array is None else describe_array(array, bundle),
        "numbers": None if array is None else _numbers(array, full=full),
    }


def _leaf(array: Array) -> dict[str, Any]:
    """An array of a container in short."""
    broken = array.problem is not None
    return {
        "name": array.name,
        "type": type_text(array.element),
        "shape": list(array.shape),
        "index_order": array.index_order,
        "problem": str(array.problem) if broken else None,
    }


def _numbers(array: Array, *, full: bool) -> dict[str, Any] | None:
    """The numbers of an array, with what they are of; None for what has none."""
    found: Sample | None = None
    array = as_listed(array)
    try:
        found = sample(array, sheet=_PICTURES)
    except TooLarge as error:
        if not full:
            return {"of": "nothing", "count": 0, "total": array.count, "problem": error.what}
    if found is not None and found.form == EMPTY:
        return None
    made = counted(array, found, full=full)
    if made is None:
        return None
    numbers = made.numbers
    parts = [] if made.by_blocks or found is None else found.frames
    return {
        "of": "all" if made.whole else "sample",
        "count": numbers.count,
        "total": array.count,
        "parts": [frame.key for frame in parts if frame.key],
        "text": "" if made.whole or found is None else found.text,
        "problem": None,
        "measure": "magnitude" if array.element.kind == "complex" else "value",
        "min": _number(numbers.least),
        "mean": _number(numbers.mean if numbers.least is not None else None),
        "max": _number(numbers.most),
        "nan": numbers.nan,
        "inf": numbers.above,
        "-inf": numbers.below,
        "zeros": numbers.zeros,
        "classes": _classes(array, numbers) if has_classes(array, numbers) else None,
        "histogram": {
            "of": "all" if found is not None and found.whole else "sample",
            "from": _number(made.sampled.least),
            "to": _number(made.sampled.most),
            "counts": made.sampled.histogram,
        }
        if made.sampled.histogram
        else None,
    }


def _number(value: Any) -> Any:
    """A number in the types of JSON; a time as text."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return str(value) if kind in ("m", "M") else plain(value)


def _classes(array: Array, numbers: Numbers) -> list[dict[str, Any]]:
    """The different values, the most frequent first, with their names where there are some."""
    most = (numbers.classes or {}).items()
    return [
        {"value": plain(value), "name": class_name(array, value), "count": count}
        for value, count in sorted(most, key=lambda item: -item[1])[:MOST_CLASSES]
    ]
