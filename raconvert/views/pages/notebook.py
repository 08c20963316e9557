"""Cells of notebooks: an array with its picture, a bundle as a grid, a report as a table.

No script runs there, and the style holds inside the cell alone.
"""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import few_lengths, size, type_name
from raconvert.conversion.report import Report
from raconvert.errors import RaconvertError
from raconvert.views.pages.array import section_of
from raconvert.views.pages.grid import Grid
from raconvert.views.pages.markup import name_of, text_of
from raconvert.views.roles import roles_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_MOST = 60  # rows shown of a table
_PICTURES = 24  # arrays of a bundle with a picture
_RULES = """
--one: #4a90d9; --line: rgba(128, 128, 128, .35); max-width: 900px; overflow-wrap: anywhere;
& .strip, & .pair, & .tiles { display: flex; flex-wrap: wrap; gap: 10px; }
& img { image-rendering: pixelated; max-width: 100%; height: auto; display: block; margin: 0; }
& .photo img { image-rendering: auto; }
& figure { margin: 8px 0; }
& svg { display: block; max-width: 720px; width: 100%; fill: currentColor; }
& svg.spark { width: 120px; height: 26px; }
& .line { fill: var(--one); stroke: var(--one); }
& figcaption, & .soft, & .title, & .tiles i { opacity: .75; font-style: normal; font-size: 12px; }
& table { margin: 4px 0; } & td, & th { text-align: left; vertical-align: top; }
& .n { text-align: right; }
& .hung { position: relative; display: inline-block; max-width: 100%; }
& .hung b { position: absolute; color: #fff; text-shadow: 0 0 3px #000; font-size: 12px; }
& .left { left: 3px; top: 42%; } & .right { right: 3px; top: 42%; }
& .top { top: 1px; left: 46%; } & .bottom { bottom: 1px; left: 46%; }
& .window { overflow: hidden; } & .window img { max-width: none; }
& .ruler { display: block; border-top: 2px solid; font-size: 11px; margin-top: 3px;
  white-space: nowrap; }
& .title { display: block; } & .steps { display: none; }
& .bar i { display: inline-block; width: 9em; height: .8em; margin: 0 .4em; }
& .key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
& .share { display: block; height: .7em; background: var(--one); min-width: 1px; }
& td.wide { width: 130px; } & .scroll { overflow-x: auto; overflow-wrap: normal; }
& .rows th, & .scroll td { white-space: nowrap; } & .scroll td.long { white-space: normal; }
& .value, & .said { font-size: 18px; } & .said { font-size: 14px; display: block; }
& ul.tiles { list-style: none; padding: 0; margin: 4px 0; }
& ul.tiles li { margin: 0; border: 1px solid var(--line); border-radius: 4px; padding: 4px 8px;
  max-width: 210px; }
& .tiles i { display: block; } & summary { cursor: pointer; }
"""


def _style() -> str:
    """The rules with the class of the cell before each, for browsers without nested rules."""
    own, *rules = _RULES.strip().split("\n&")
    lines = [f".raconvert {{ {own.strip()} }}"]
    lines += [f".raconvert{rule}".replace(" & ", " .raconvert ") for rule in rules]
    return "<style>\n{}\n</style>".format("\n".join(lines).replace(", &", ", .raconvert"))


STYLE = _style()


def cell_of(shown: Any) -> str:
    """The HTML of an array, a bundle or a report. Raises nothing for what cannot be read."""
    if isinstance(shown, Array):
        parts = _array(shown)
    elif isinstance(shown, Bundle):
        parts = _bundle(shown)
    else:
        parts = _report(shown)
    return f'<div class="raconvert">{STYLE}\n{"".join(parts)}</div>'


def _array(array: Array) -> Iterator[str]:
    """Yield an array: a line about it, and its picture."""
    yield f"<p>{name_of(array.name)} {_line(array)}</p>\n"
    if array.problem is not None:
        return
    try:
        yield from section_of(array)
    except RaconvertError as error:
        yield f"<p>The elements cannot be read: {text_of(error.what)}</p>\n"


def _line(array: Array) -> str:
    """The type, the shape and the size of an array in a line, or why it cannot be read."""
    if array.problem is not None:
        return f"cannot be read: {text_of(array.problem.what)}"
    shape = f"({few_lengths(array.shape, ', ')}{',' if array.ndim == 1 else ''})"
    dims = few_lengths(array.dims, " × ") or "none"
    order = array.index_order or "C"
    text = f"{type_name(array.element)}, shape {shape} {order}, dims {dims}, {size(array.nbytes)}"
    return text_of(text)


def _bundle(bundle: Bundle) -> Iterator[str]:
    """Yield a bundle: its only array, or the grid of its arrays."""
    count = len(bundle.arrays)
    where = f", {name_of(bundle.path)}" if bundle.path else ""
    yield f"<p>Bundle of {count} array{'s' * (count != 1)}{where}</p>\n"
    if count == 1:
        yield from _array(bundle.arrays[0])
    elif count:
        yield from Grid(bundle, roles_of(bundle), _PICTURES).html()


def _report(report: Report) -> Iterator[str]:
    """Yield a report: its line, and the table of its remarks."""
    yield f"<p>{text_of(str(report))}</p>\n"
    rows = [("allowed", str(fit)) for fit in report.allowed]
    rows += [("equivalent", str(fit)) for fit in report.equivalent]
    rows += [("note", note) for note in report.notes]
    rows += [("failed", f"{path}: {error}") for path, error in report.failed]
    if rows:
        yield "<table>\n<tr><th>kind</th><th>what</th></tr>\n"
        for kind, remark in rows[:_MOST]:
            yield f"<tr><td>{kind}</td><td>{text_of(remark)}</td></tr>\n"
        yield "</table>\n"
    if len(rows) > _MOST:
        yield f"<p>and {len(rows) - _MOST} more</p>\n"
