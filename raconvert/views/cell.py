"""What a notebook shows: an array with its picture or plot, a bundle as a table, a report."""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import few_lengths, size, type_name
from raconvert.conversion.report import Report
from raconvert.errors import RaconvertError
from raconvert.views.held import holds
from raconvert.views.markup import name_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST = 60  # rows of a table
_STYLE = """<style>
.raconvert { --one: #4a90d9; }
.raconvert .strip { display: flex; flex-wrap: wrap; gap: 10px; }
.raconvert img { image-rendering: pixelated; }
.raconvert figure { margin: 8px 0; }
.raconvert svg { display: block; max-width: 720px; width: 100%; fill: currentColor; }
.raconvert .line { fill: var(--one); stroke: var(--one); }
.raconvert figcaption { opacity: .7; }
.raconvert td, .raconvert th { text-align: left; }
</style>"""


def cell_of(shown: Any) -> str:
    """The HTML of an array, a bundle or a report. Raises nothing for what cannot be read."""
    parts = _array(shown) if isinstance(shown, Array) else _report(shown)
    if isinstance(shown, Bundle):
        parts = _bundle(shown)
    return f'<div class="raconvert">{_STYLE}\n{"".join(parts)}</div>'


def _array(array: Array) -> Iterator[str]:
    yield f"<p>{name_of(array.name)} {_line(array)}</p>\n"
    if array.problem is not None:
        return
    try:
        yield from list(holds(array))
    except RaconvertError as error:
        yield f"<p>The elements cannot be read: {text_of(error.what)}</p>\n"


def _line(array: Array) -> str:
    if array.problem is not None:
        return f"cannot be read: {text_of(array.problem.what)}"
    shape = f"({few_lengths(array.shape, ', ')}{',' if array.ndim == 1 else ''})"
    dims = few_lengths(array.dims, " × ") or "none"
    order = array.index_order or "C"
    text = f"{type_name(array.element)}, shape {shape} {order}, dims {dims}, {size(array.nbytes)}"
    return text_of(text)


def _bundle(bundle: Bundle) -> Iterator[str]:
    count = len(bundle.arrays)
    where = f", {name_of(bundle.path)}" if bundle.path else ""
    yield f"<p>Bundle of {count} array{'s' * (count != 1)}{where}</p>\n<table>\n"
    yield "<tr><th>name</th><th>what</th></tr>\n"
    for array in bundle.arrays[:_MOST]:
        yield f"<tr><td>{name_of(array.name)}</td><td>{_line(array)}</td></tr>\n"
    yield "</table>\n"
    if count > _MOST:
        yield f"<p>and {count - _MOST} more</p>\n"


def _report(report: Report) -> Iterator[str]:
    yield f"<p>{text_of(str(report))}</p>\n"
    rows = [("allowed", str(fit)) for fit in report.allowed]
    rows += [("equivalent", str(fit)) for fit in report.equivalent]
    rows += [("note", note) for note in report.notes]
    rows += [("failed", f"{path}: {error}") for path, error in report.failed]
    if rows:
        yield "<table>\n<tr><th>kind</th><th>what</th></tr>\n"
        yield from (f"<tr><td>{k}</td><td>{text_of(what)}</td></tr>\n" for k, what in rows[:_MOST])
        yield "</table>\n"
    if len(rows) > _MOST:
        yield f"<p>and {len(rows) - _MOST} more</p>\n"
