"""``raconvert peek``: what files hold, and what one array of each looks like."""

from __future__ import annotations

import os
import sys

from raconvert.cli.console import colorful, one_line
from raconvert.cli.info import array_text
from raconvert.cli.sources import (
    below,
    chosen,
    each,
    expand,
    failing,
    is_tree,
    naming,
    opened_to_look,
    reading,
)
from raconvert.errors import RaconvertError
from raconvert.inspect.info import describe_array
from raconvert.registry import by_name
from raconvert.views import terminal
from raconvert.views.filmstrip import labels_beside
from raconvert.views.fitting import columns_of, folded_all, height_of, within
from raconvert.views.hanging import steps_text
from raconvert.views.peek import Screen, facts_of, labels_text, names_text, tree_lines
from raconvert.views.peek import lines_of as lines_of_array
from raconvert.views.roles import main_array
from raconvert.views.sample import values_text
from raconvert.workers.worker import decoded, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


_MOST_ABOUT = 150  # characters shown of the description of an array
_LEAST_ROWS = 8  # rows of a window, however low it is


def run(args: Any, console: Console) -> int:
    """Show every file; one that fails is reported and does not stop the others."""
    entries: list[dict[str, Any]] = []
    screen = screen_of(args)
    drawn = screen.way not in (terminal.CHARACTERS, terminal.NONE)
    show = console.raw if drawn else console.result

    def look(path: str) -> dict[str, Any]:
        if _is_surveyed(path, args):
            return _surveyed(path, args, screen, console)
        if console.json:
            return _facts(path, args)
        lines: list[str] = []
        try:
            _look(path, args, screen, console, lines)
        except RaconvertError as error:
            if not lines:
                raise
            return {"lines": lines, "damage": encoded(error)}  # the lines about the sound part
        return {"lines": lines}

    def tell(_: str, facts: dict[str, Any]) -> int:
        if not console.json:
            lines = within(folded_all(facts["lines"], screen.width), screen.rows, screen.width)
            show("\n".join(["", *lines] if entries else lines))
        entries.append(facts)
        damage = facts.get("damage")
        return 0 if damage is None else console.error(decoded(damage))

    paths = [path for word in args.files for path in _paths_of(word, args)]
    code = each(paths, look, tell, console, failing(console, entries))
    if console.json:
        console.result_json(entries[0] if len(paths) == 1 else entries)
    return code


def _paths_of(word: str, args: Any) -> list[str]:
    """The files that a word means, or the folder that is summed up."""
    return [word] if _is_surveyed(word, args) else expand([word], **below(args))


def _is_surveyed(path: str, args: Any) -> bool:
    """True for a folder that is summed up, rather than shown file by file."""
    return is_tree(path) and not args.verbose


def _surveyed(path: str, args: Any, screen: Screen, console: Console) -> dict[str, Any]:
    """Sum up a folder: its facts as plain values with --json, else its lines."""
    from raconvert.views.survey import survey_of
    from raconvert.views.survey_lines import facts_for_programs, lines_of

    survey = survey_of(path, reading(args), **chosen(args))
    if console.json:
        return facts_for_programs(survey, path)
    return {"lines": lines_of(survey, console.bold(one_line(path)), screen)}


def _facts(path: str, args: Any) -> dict[str, Any]:
    """Collect the facts that `peek` shows of one file, as plain values."""
    with opened_to_look(path, args) as opened, naming(path):
        return facts_of(opened.bundle, path, opened.reason, full=args.full)


def screen_of(args: Any) -> Screen:
    """The screen of the standard output: by the terminal that it is, and by the options."""
    color = colorful(sys.stdout, args.color)
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    way = args.graphics
    if way == "auto":
        terminal_there = sys.stdout.isatty() or args.color == "always"
        way = terminal.way_of(os.environ, terminal=terminal_there, unicode=unicode, color=color)
    columns = columns_of(sys.stdout)
    true_color = terminal.has_true_color(os.environ) or not sys.stdout.isatty()
    rows = height_of(sys.stdout)
    rows = max(_LEAST_ROWS, rows - 1) if rows else 0  # the last one is for the prompt
    return Screen(columns, way, unicode, true_color, rows)


def _look(path: str, args: Any, screen: Screen, console: Console, lines: list[str]) -> None:
    """Append the lines about one file to `lines`; on an error, those before it are there."""
    with opened_to_look(path, args) as opened:
        bundle = opened.bundle
        row = by_name(bundle.format)
        head = [f"{console.bold(one_line(path))}   {row.title} ({opened.reason})"]
        if row.many and len(bundle.arrays) != 1:
            head += [f"  {line}" for line in tree_lines(bundle, screen.rows)]
        array = main_array(bundle)
        if array is None:
            lines += [*head, "  no array that can be read"]
            return
        name = f"{console.bold(one_line(array.name))}   " if row.many else ""
        head.append(f"  {name}{array_text(describe_array(array, bundle))}")
        about = [values_text(array)]
        if array.described:
            named = "" if row.many and len(bundle.arrays) != 1 else names_text(array)
            steps = "; ".join(filter(None, (named, steps_text(array))))
            description = (array.meta.description or "")[:_MOST_ABOUT]
            about = [description, steps, labels_text(array), *about]
        head += [f"  {one_line(text)}" for text in about if text]
        with naming(path):
            labels = labels_beside(bundle, array)
            screen = screen.without(line.removeprefix("  ") for line in head)
            for line in lines_of_array(array, screen, full=args.full, labels=labels):
                lines += [*head, f"  {line}"]
                head = []
        lines += head
