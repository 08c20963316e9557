"""``raconvert peek``: what files hold, and what one array of each looks like."""

from __future__ import annotations

import os
import sys

from raconvert.cli.console import colorful, one_line
from raconvert.cli.info import array_text
from raconvert.cli.sources import below, each, expand, failing, reading
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.errors import RaconvertError
from raconvert.inspect.info import describe
from raconvert.views import terminal
from raconvert.views.peek import Screen, chosen_array, lines_of, tree_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console

_MOST_ARRAYS = 40  # of a tree


def run(args: Any, console: Console) -> int:
    """Show every file; one that fails is reported and does not stop the others."""
    screen = screen_of(args)
    shown = 0

    def look(path: str) -> dict[str, Any]:
        return {"lines": _look(path, args, screen, console)}

    def tell(_: str, facts: dict[str, Any]) -> int:
        nonlocal shown
        if shown:
            console.result("")
        shown += 1
        for line in facts["lines"]:
            console.result(line)
        return 0

    return each(expand(args.files, **below(args)), look, tell, console, failing(console, []))


def screen_of(args: Any) -> Screen:
    """The screen that the standard output is, by what it says of itself and what is asked for."""
    color = colorful(sys.stdout, args.color)
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    way = args.graphics
    if way == "auto":
        terminal_there = sys.stdout.isatty() or args.color == "always"
        way = terminal.way_of(os.environ, terminal=terminal_there, unicode=unicode, color=color)
    columns = terminal.columns_of(sys.stdout)
    true_color = terminal.has_true_color(os.environ) or not sys.stdout.isatty()
    return Screen(columns, way, unicode, true_color)


def _look(path: str, args: Any, screen: Screen, console: Console) -> list[str]:
    """The lines about one file."""
    with open_spec(path, Settings(**reading(args))) as opened:
        bundle = opened.bundle
        facts = describe(bundle, path, opened.reason)
        lines = [console.bold(one_line(path)) + f"   {facts['title']} ({facts['reason']})"]
        if facts["container"] and len(bundle.arrays) != 1:
            tree = tree_lines(bundle)
            lines += [f"  {line}" for line in tree[:_MOST_ARRAYS]]
            if len(tree) > _MOST_ARRAYS:
                lines.append(f"  … {len(tree) - _MOST_ARRAYS} more lines (raconvert info)")
        array = chosen_array(bundle)
        if array is None:
            lines.append("  no array that can be read")
            return lines
        number = next(n for n, one in enumerate(bundle.arrays) if one is array)
        name = f"{console.bold(one_line(array.name))}   " if facts["container"] else ""
        lines.append(f"  {name}{array_text(facts['arrays'][number])}")
        try:
            lines += [f"  {line}" for line in lines_of(array, screen, full=args.full)]
        except RaconvertError as error:
            error.path = error.path or path
            raise
        return lines
