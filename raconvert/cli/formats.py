"""``raconvert formats``: the table of formats, one format in full, or why a file is what it is."""

from __future__ import annotations

import sys

from raconvert.cli.console import one_line
from raconvert.errors import UsageError
from raconvert.inspect.info import format_details, formats, why
from raconvert.plugin import MODEL
from raconvert.views.fitting import columns_of, folded_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from raconvert.cli.console import Console

_HEADS = ("NAME", "RW", "ARRAYS", "KEEPS", "FILES")
_WIDEST = 80  # columns of the table
_LEGEND = (
    "KEEPS: metadata that is kept, besides type, shape and elements",
    "raconvert formats NAME says everything about one, its options included",
)
_MAGIC_SHOWN = 4  # bytes of a signature in the table


def run(args: Any, console: Console) -> int:
    """Print the table of formats, or with a NAME or --why the answer about one format or file."""
    if args.why is not None:
        if args.name is not None:
            raise UsageError("formats takes a NAME or --why FILE, not both")
        return _run_why(args.why, console)
    if args.name is not None:
        details = format_details(args.name)
        if console.json:
            console.result_json(details)
        else:
            width = columns_of(sys.stdout) if sys.stdout.isatty() else 0
            for line in folded_all((*_detail_lines(details), *_fault_lines([details])), width):
                console.result(line)
        return 0
    rows = formats()
    if console.json:
        console.result_json(rows)
        return 0
    cells = [_HEADS, *(_cells(row) for row in rows)]
    for number, line in enumerate(_table(cells)):
        line = line if len(line) <= _WIDEST else _cut(line)  # noqa: PLW2901
        console.result(console.bold(line) if number == 0 else line)
    for line in folded_all((*_LEGEND, *_missing_lines(rows), *_fault_lines(rows)), _WIDEST):
        console.result(line)
    return 0


def _fault_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the known faults of the packages of built-in formats, in the installed versions."""
    from raconvert.inspect.advisories import known_faults

    needs = {name for row in rows if row["built_in"] for name in row["needs"]}
    for number, fault in enumerate(known_faults(sorted(needs))):
        if not number:
            yield "known faults of installed versions (SECURITY.md says what is done about them):"
        versions = f"{fault['library']} {fault['version']} ({fault['versions']})"
        yield f"  {versions}: {fault['what']}: {fault['names']}; {fault['source']}"


def _table(cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their longest cell."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for row in cells:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of a format in the table."""
    return (
        row["name"],
        ("r" if row["reads"] else "-") + ("w" if row["writes"] else "-"),
        "many" if row["many"] else "one",
        _kept(row["holds"]),
        " ".join(row["suffixes"]),
    )


def _kept(holds: Sequence[str]) -> str:
    """The words of `MODEL` that a format holds; if it holds most, those that it does not hold."""
    others = [word for word in MODEL if word not in holds]
    if len(others) >= len(holds):
        return " ".join(holds) or "-"
    return f"all but {' '.join(others)}" if others else "all"


def _cut(line: str) -> str:
    """Cut a line of the table after a word, and mark that there are more."""
    return line[: line.rindex(" ", 0, _WIDEST - 1)] + " …"


def _missing_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield lines on formats that cannot be used, or that come from another package."""
    for row in rows:
        if row["broken"] or row["missing"] or not row["built_in"]:
            yield f"{row['name']}: {_plugin(row)}"


def _detected_by(row: dict[str, Any]) -> str:
    """Describe by what the files of a format are detected."""
    if row["broken"]:
        return "-"
    if not row["magic"]:
        return "content" if not row["proof"] else "suffix"
    first = row["magic"][0]
    text = first["hex"]
    shown = text[: 2 * _MAGIC_SHOWN] + ("…" if len(text) > 2 * _MAGIC_SHOWN else "")
    shown += f" at {first['offset']}" if first["offset"] else ""
    return shown if row["proof"] else f"{shown} and content"


def _plugin(row: dict[str, Any]) -> str:
    """Describe where the plugin of a format is from, and the packages that it uses or lacks."""
    if row["broken"]:
        return f"broken: {one_line(row['broken'])}"
    if row["missing"]:
        return f"missing: pip install {' '.join(row['missing'])}"
    if not row["built_in"]:
        return f"package {row['plugin'].split('.')[0]}"
    versions = ", ".join(f"{name} {_version(name)}" for name in row["needs"])
    return f"built in ({versions})" if versions else "built in"


def _version(requirement: str) -> str:
    """The version of an installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(requirement)
    except PackageNotFoundError:  # importable without being installed as a distribution
        return "of unknown version"


def _detail_lines(row: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about one format."""
    yield f"{row['name']}: {row['title']}"
    yield f"  specification: {row['spec'] or 'none given'}"
    yield f"  suffixes: {' '.join(row['suffixes'])}"
    yield f"  reads and writes: {_cells(row)[1]}"
    yield f"  several arrays in a file: {'yes' if row['many'] else 'no'}"
    yield f"  metadata: {row['meta']}"
    yield f"  keeps of what the numbers are about: {', '.join(row['holds']) or 'nothing'}"
    yield f"  data is read when it is asked for: {'yes' if row['lazy'] else 'no'}"
    yield f"  can be written to the standard output: {'yes' if row['stream'] else 'no'}"
    yield f"  index orders stored without moving data: {', '.join(row['index_orders']) or 'none'}"
    yield f"  detected by: {_detected_by(row)}"
    yield f"  plugin: {row['plugin']} ({_plugin(row)})"
    if row["losses"]:
        yield f"  losses: {' '.join(row['losses'].split())}"
    for kind, flag in (("read", "--in-opt"), ("write", "--out-opt")):
        options = row[f"{kind}_options"]
        yield f"  {kind} options ({flag} NAME=VALUE):{'' if options else ' none'}"
        for option in options:
            choices = option["choices"]
            allowed = " | ".join(map(str, choices)) if isinstance(choices, list) else choices
            default = option["default"]
            if isinstance(default, bool):  # 1 and 0 are equal to them
                default = "yes" if default else "no"
            yield f"    {option['name']}={default}   {allowed}: {option['help']}"


def _run_why(path: str, console: Console) -> int:
    """Print every candidate, its verdict and its reason; the exit code is that of detection."""
    answers = why(path)
    code: int = answers["exit_code"]
    if console.json:
        console.result_json(answers)
        return code
    taken = (
        f"is {answers['format']} ({answers['reason']})" if answers["format"] else answers["reason"]
    )
    console.result(f"{one_line(path)}: {one_line(taken)}")
    cells = [(f"  {c['name']}", c["verdict"], one_line(c["reason"])) for c in answers["candidates"]]
    for line in _table(cells):
        console.result(line)
    return code
