"""The API page: signatures that can be read, and a table of options with types and defaults.

An extension of Sphinx. A function of a family of options (``**options: Unpack[Converting]``) shows
its own arguments and `**options`; the table below has the name, type, default and meaning of each
option, from the table of which the command line is made, too.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from raconvert.conversion.options import OPTIONS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MEANINGS = {option.name: option.help for option in OPTIONS}
LISTED = re.compile(r"^\s*\* `(\w+)`: ")
# Names of types that the page explains in words; they lead nowhere.
UNLINKED = (
    "os.PathLike", "np.ndarray", "np.dtype", "Readable", "Sources", "Default", "Source", "Extent",
    "Event", "Element", "Dataset", "DataFrame", "Alike", "Migration",
    "raconvert.arrays.array.Slicer", "raconvert.arrays.bundle.Group",
)  # fmt: skip


def options_of(found: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a function that are options of the table, or that its docstring lists."""
    if not callable(found) or inspect.isclass(found):
        return {}
    listed = {
        match[1] for line in (found.__doc__ or "").splitlines() if (match := LISTED.match(line))
    }
    return {
        name: parameter
        for name, parameter in inspect.signature(found).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
        and parameter.default is not parameter.empty
        and (name in MEANINGS or name in listed)
    }


def shortened(found: Any) -> str | None:
    """The signature of a function with ``**options``, or that of a record with its fields."""
    if inspect.isclass(found) and (fields := getattr(found, "_fields", ())):
        types, usual = found.__annotations__, found._field_defaults
        parts = [f"{f}: {types[f]}" + (f" = {usual[f]!r}" if f in usual else "") for f in fields]
        return f"({', '.join(parts)})"
    options = options_of(found)
    if len(options) < 3:
        return None
    signature = inspect.signature(found)
    kept = [one for name, one in signature.parameters.items() if name not in options]
    many = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
    signature = signature.replace(parameters=[*kept, many], return_annotation=signature.empty)
    return re.sub(r": '([^']*)'", r": \1", str(signature)).replace("*, **", "**")


def process_signature(
    app: Sphinx, what: str, name: str, found: Any, _: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """Show `shortened`, if there is such a form."""
    short = shortened(found)
    return None if short is None else (short, returned)


def process_docstring(
    app: Sphinx, what: str, name: str, found: Any, _: Any, lines: list[str]
) -> None:
    """Put the table of options in the place of their list, or at the end."""
    options = options_of(found)
    if len(options) < 3:
        return
    meanings = {**MEANINGS, **listed_in(lines)}
    kept = without_list(lines)
    if kept[-1:] != ["The options, as on the command line:"]:
        kept += ["", "The options:"]
    lines[:] = [*kept, "", *table(options, meanings)]


def listed_in(lines: list[str]) -> dict[str, str]:
    """The options that a docstring lists, with what it says of them."""
    found: dict[str, str] = {}
    last = ""
    for line in lines:
        if match := LISTED.match(line):
            last = match[1]
            found[last] = line[match.end() :]
        elif last and line.startswith(" "):
            found[last] += f" {line.strip()}"
        else:
            last = ""
    return found


def without_list(lines: list[str]) -> list[str]:
    """The lines of a docstring before and after its list of options."""
    kept: list[str] = []
    inside = False
    for line in lines:
        inside = bool(LISTED.match(line)) or (inside and line.startswith(" "))
        if not inside:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def table(options: dict[str, inspect.Parameter], meanings: dict[str, str]) -> list[str]:
    """The lines of a table: option, type, default, meaning."""
    rows = [("Option", "Type", "Default", "Meaning")]
    for name, parameter in options.items():
        type_ = str(parameter.annotation).strip("'\"")
        meaning = (
            meanings[name].replace(" (repeatable)", "").replace("(repeatable, glob)", "(globs)")
        )
        rows.append((f"``{name}``", f"``{type_}``", f"``{parameter.default!r}``", meaning))
    lines = [".. list-table::", "   :header-rows: 1", "   :class: options", ""]
    for row in rows:
        for n, cell in enumerate(row):
            lines.append(f"   {'* -' if n == 0 else '  -'} {escaped(cell)}")
    return [*lines, ""]


def escaped(cell: str) -> str:
    """The text of a cell: what is not code has no marks of reStructuredText."""
    return cell if cell.startswith("``") else re.sub(r"([*_|\\])", r"\\\1", cell)


def forget_overloads(app: Sphinx) -> None:
    """One signature for each function: type checkers see more of `read` and `open`."""
    from sphinx.pycode import ModuleAnalyzer

    analyzer = ModuleAnalyzer.for_module("raconvert.api")
    analyzer.analyze()
    analyzer.overloads.clear()


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", forget_overloads)
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-process-docstring", process_docstring)
    return {"parallel_read_safe": True}
