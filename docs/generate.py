"""Write what the documentation takes from the code: the format table and one page per format.

python -m docs.generate           rewrite README.md (between its markers) and docs/formats/
python -m docs.generate --check   write nothing; exit code 1 if anything is out of date
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the checkout, whatever is installed

from raconvert.catalogue import FOREIGN, ROWS, WRAPPERS, Row  # noqa: E402
from raconvert.plugin import Format, Option  # noqa: E402

BEGIN, END = "<!-- formats: begin -->", "<!-- formats: end -->"
NOTE = "<!-- Written by `python -m docs.generate` from the plugin. Edit that instead. -->"
META = {"all": "all", "some": "some", "none": "-"}
ORDERS = {
    "": "not defined by the format",
    "C": "row-major",
    "F": "column-major",
    "CF": "both row- and column-major",
}


def main(arguments: list[str]) -> int:
    """Rewrite, or with --check compare, every generated text; return the exit code."""
    wanted = {ROOT / "README.md": readme()}
    wanted |= {ROOT / "docs" / "formats" / f"{row.name}.md": page(row) for row in ROWS}
    stale = [path for path, text in wanted.items() if not _has(path, text)]
    left_over = sorted(set((ROOT / "docs" / "formats").glob("*.md")) - set(wanted))
    for path in [*stale, *left_over]:
        print(path.relative_to(ROOT))
    if "--check" in arguments:
        return 1 if stale or left_over else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in left_over:
        path.unlink()
    return 0


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


# The table of the README ------------------------------------------------------------------------


def readme() -> str:
    """Return the README with a fresh table between its markers."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{format_table()}\n\n{foreign_formats()}\n{END}{after}"


def format_table() -> str:
    """Return one line per built-in format."""
    lines = [
        "| Name | Format | Files | Reads | Writes | Arrays in a file | Metadata kept inside |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        files = ", ".join(f"`{suffix}`" for suffix in row.suffixes)
        cells = [f"[`{row.name}`](docs/formats/{row.name}.md)", row.title, files]
        cells += ["yes" if can else "no" for can in (row.reads, row.writes)]
        cells += ["many, named" if row.many else "one", META[row.meta]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def foreign_formats() -> str:
    """Return the sentence about formats that are only named."""
    names = ", ".join(sorted((foreign.title for foreign in FOREIGN), key=str.casefold))
    wrappers = ", ".join(name for name, _, _ in WRAPPERS)
    return f"Recognised and refused by name: {names}; files wrapped by {wrappers}."


# The page of a format ---------------------------------------------------------------------------


def page(row: Row) -> str:
    """Return the page of a format: facts, the plugin's docstring, options."""
    module = import_module(row.module)
    format_: Format = module.FORMAT
    parts = [NOTE, f"# {format_.title}", facts(format_), prose(module)]
    if format_.read_options or format_.write_options:
        parts.append("## Options")
    if format_.read_options:
        parts.append(options("Reading, `--in-opt NAME=VALUE`", format_.read_options))
    if format_.write_options:
        parts.append(options("Writing, `--out-opt NAME=VALUE`", format_.write_options))
    return "\n\n".join(parts) + "\n"


def facts(format_: Format) -> str:
    """Return the short table at the head of a page."""
    does = [verb for verb, can in (("read", format_.reads), ("write", format_.writes)) if can]
    rows = [
        ("Name for `--from` and `--to`", f"`{format_.name}`"),
        ("Files", ", ".join(f"`{suffix}`" for suffix in format_.suffixes)),
        ("raconvert can", " and ".join(does)),
        ("Arrays in a file", "many, named" if format_.many else "one"),
        ("Index order", ORDERS[format_.index_orders]),
        ("Common metadata kept inside", META[format_.meta]),
        ("Needs", ", ".join(f"`{need}`" for _, need in format_.needs) or "nothing else"),
        ("Limits", format_.losses or "-"),
        ("Defined by", format_.spec),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def prose(module: ModuleType) -> str:
    """Return a plugin's docstring as Markdown: literal blocks, code spans, paragraph headings."""
    text = (module.__doc__ or "").strip()
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)  # what follows is indented: a code block
    text = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)
    return re.sub(r"(\n\n)([A-Z]\w+:)(?=\s)", r"\1**\2**", text)


def options(title: str, found: tuple[Option, ...]) -> str:
    """Return a table of options."""
    lines = [title + ":", "", "| Name | Values | Default | Meaning |", "|---|---|---|---|"]
    for option in found:
        if isinstance(option.choices, type):
            values = {bool: "yes, no", str: "text", int: "a number", float: "a number"}[
                option.choices
            ]
        else:
            values = ", ".join(f"`{choice}`" for choice in option.choices)
        default = {True: "yes", False: "no"}.get(option.default, str(option.default))
        lines.append(f"| `{option.name}` | {values} | `{default}` | {option.help} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
