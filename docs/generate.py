"""Write what is taken from the plugins: the catalogue, the format table, one page per format.

And manual pages (`docs.man`) from the tables of the command line.

python -m docs.generate           rewrite raconvert/catalogue.py, pyproject.toml, README.md,
                                  docs/formats.md, docs/limits.md and docs/plugin-authors.md
                                  (between their markers), docs/reference/not-read.md, docs/formats/
python -m docs.generate --check   write nothing; exit code 1 if anything is out of date
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the checkout, whatever is installed

from docs import foreign, man  # noqa: E402
from raconvert.catalogue import Row  # noqa: E402
from raconvert.files.limits import Limits  # noqa: E402
from raconvert.foreign import of_kind  # noqa: E402
from raconvert.plugin import MODEL, Format, Option  # noqa: E402

BEGIN, END = "<!-- formats: begin -->", "<!-- formats: end -->"
FIELDS_BEGIN, FIELDS_END = "<!-- fields: begin -->", "<!-- fields: end -->"
AUTHORS = "docs/plugin-authors.md"
BOUNDS_BEGIN, BOUNDS_END = "<!-- bounds: begin -->", "<!-- bounds: end -->"
LIMITS = "docs/limits.md"
BYTES_BEGIN, BYTES_END = "<!-- same bytes: begin -->", "<!-- same bytes: end -->"
ROWS_BEGIN = "# rows: begin (written by `python -m docs.generate` from the `FORMAT` of each plugin)"
ROWS_END = "# rows: end"
# Folders in which formats are, and the packages that they are.
PLACES = (
    ("raconvert/ra", "raconvert.ra"),
    ("raconvert/bundle", "raconvert.bundle"),
    ("plugins", "raconvert.plugins"),
)
# What the law of meaning has observed: format -> fact -> outcomes.
MEANING: dict[str, dict[str, list[str]]] = json.loads(
    (ROOT / "docs" / "formats" / "meaning.json").read_text(encoding="utf-8")
)
FACTS = {
    "name": "names of axes",
    "labels": "labels",
    "spacing": "spacing of coordinates",
    "origin": "first coordinate",
    "units": "units of axes",
    "positions": "positions in space",
    "description": "description",
    "array units": "units of the values",
    "attributes": "attributes",
    "scale": "slope, offset and fill value",
}
OUTCOMES = {
    "seen": "other libraries see it",
    "kept": "raconvert reads it back, others do not see it",
    "named": "left out, and the report says so",
}
NOTE = "<!-- Written by `python -m docs.generate` from the plugin. Edit that instead. -->"
META = {"all": "all", "some": "some", "none": "-"}
# A table of the docstrings: a rule, rows (with another rule where there is a head), a rule.
RULED_TABLE = r"^=+  =[= ]+\n(?:\S.*\n|\s+\S.*\n)+?=+  =[= ]+$(?!\n\S)"
DEFINED_HERE = {"docs/guide/containers.md, Bundles": "[the guide](../guide/containers.md#bundles)"}
ORDERS = {
    "": "not defined by the format",
    "C": "row-major",
    "F": "column-major",
    "CF": "both row- and column-major",
}


def main(arguments: list[str]) -> int:
    """Rewrite, or with --check compare, every generated text; return the exit code."""
    rows = built_in()
    wanted = {
        ROOT / "raconvert" / "catalogue.py": catalogue(rows),
        ROOT / "pyproject.toml": packages(),
        ROOT / "README.md": with_formats("README.md", rows, "docs/formats/"),
        ROOT / "docs" / "formats.md": same_bytes(
            with_formats("docs/formats.md", rows, "formats/"), rows
        ),
        ROOT / AUTHORS: authors(),
        ROOT / LIMITS: bounds(),
        ROOT / foreign.PAGE: foreign.page(),
    }
    wanted |= {ROOT / "docs" / "formats" / f"{row.name}.md": page(row) for row in rows}
    wanted |= {ROOT / path: text for path, text in man.pages().items()}
    stale = [path for path, text in wanted.items() if not _has(path, text)]
    there = {*(ROOT / "docs" / "formats").glob("*.md"), *(ROOT / man.FOLDER).glob("*")}
    left_over = sorted(there - wanted.keys())
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


# The catalogue, and the packages of the distribution ---------------------------------------------


def built_in() -> list[Row]:
    """A row for each module of the core and of `plugins/` that has a `FORMAT`; the core's first."""
    found = []
    for folder, package in PLACES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if re.search(
                r"^FORMAT = (?:core\.)?Format\(", path.read_text(encoding="utf-8"), re.MULTILINE
            ):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                found.append(row_of(".".join([package, *(p for p in parts if p != "__init__")])))
    core = [row for row in found if not row.module.startswith("raconvert.plugins.")]
    rest = [row for row in found if row not in core]
    return [*core, *sorted(rest, key=lambda row: row.name)]


def row_of(module: str) -> Row:
    """The row of a plugin."""
    format_ = import_module(module).FORMAT
    shared = {name: getattr(format_, name) for name in Row._fields if name != "module"}
    return Row(module=module, **shared)


def catalogue(rows: list[Row]) -> str:
    """The module of the catalogue with fresh rows between its markers."""
    text = (ROOT / "raconvert" / "catalogue.py").read_text(encoding="utf-8")
    before, rest = text.split(ROWS_BEGIN)
    _, after = rest.split(ROWS_END)
    made = "\n".join(map(row_text, rows))
    return (
        f"{before}{ROWS_BEGIN}\n# fmt: off\nROWS: tuple[Row, ...] = (\n{made}\n)\n# fmt: on\n"
        f"{ROWS_END}{after}"
    )


def row_text(row: Row) -> str:
    """A row as source text: what differs from the usual, a field on each line."""
    usual = Row._field_defaults
    fields = {k: v for k, v in row._asdict().items() if k not in usual or v != usual[k]}
    lines = [f"        {name}={literal(value)}," for name, value in fields.items()]
    return "\n".join(["    Row(", *lines, "    ),"])


def literal(value: object) -> str:
    """A value as source text; a tuple that is too long for a line on several."""
    text = quotes(value)
    if len(text) < 80 or not isinstance(value, tuple):
        return text
    lines = [""]
    for item in map(quotes, value):
        if len(lines[-1]) + len(item) > 80:
            lines.append("")
        lines[-1] += f"{item}, "
    body = "\n".join(f"            {line.strip()}" for line in lines)
    return f"(\n{body}\n        )"


def quotes(value: object) -> str:
    """The `repr` of a value with double quotes."""
    if isinstance(value, tuple):
        items = ", ".join(map(quotes, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    text = repr(value)
    if isinstance(value, str | bytes) and '"' not in text:
        text = text.replace("'", '"')
    return text


def packages() -> str:
    """The project file with a fresh list of packages."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    before, rest = text.split("\npackages = [\n")
    after = rest[rest.index("]\n") :]
    names = {
        ".".join([package, *path.relative_to(ROOT / folder).parts[:-1]])
        for folder, package in (("raconvert", "raconvert"), ("plugins", "raconvert.plugins"))
        for path in (ROOT / folder).rglob("__init__.py")
    }
    lines = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"{before}\npackages = [\n{lines}{after}"


# The table of the README ------------------------------------------------------------------------


def with_formats(path: str, rows: list[Row], folder: str) -> str:
    """A page with a fresh table of the formats between its markers."""
    text = (ROOT / path).read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{format_table(rows, folder)}\n\n{foreign_formats()}\n{END}{after}"


def same_bytes(text: str, rows: list[Row]) -> str:
    """The page with a fresh table of the libraries that make bytes of files, as last tried."""
    before, rest = text.split(BYTES_BEGIN)
    _, after = rest.split(BYTES_END)
    record = ROOT / "docs" / "formats" / "same-bytes.json"
    found = json.loads(record.read_text(encoding="utf-8"))
    libraries = {name for _, names in found for name in names}
    alone = [row.name for row in rows if row.writes and row.name not in libraries]
    lines = ["| Bytes by | Formats |", "|---|---|"]
    lines += [f"| {library} | {', '.join(names)} |" for library, names in found]
    lines.append(f"| raconvert alone | {', '.join(alone)} |")
    return "\n".join([before + BYTES_BEGIN, *lines, BYTES_END + after])


def format_table(rows: list[Row], folder: str) -> str:
    """One line per built-in format."""
    lines = [
        "| Name | Format | Files | Reads | Writes | Arrays in a file | Keeps besides elements |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        files = suffixes(row.suffixes, folder=row.folder)
        cells = [f"[`{row.name}`]({folder}{row.name}.md)", row.title, files]
        cells += ["yes" if can else "no" for can in (row.reads, row.writes)]
        cells += ["many, named" if row.many else "one", kept(row.holds)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def kept(holds: tuple[str, ...]) -> str:
    """Return the words for what a format keeps of the core's model of an array."""
    return "all" if set(MODEL) <= set(holds) else ", ".join(holds) or "-"


def foreign_formats() -> str:
    """Return the sentence about formats that are only named."""
    titles = [row.title for row in of_kind("format") if row.read_as is None]
    names = ", ".join(sorted(titles, key=str.casefold))
    wrappers = ", ".join(row.title for row in of_kind("wrapper"))
    return f"Recognised and refused by name: {names}; files wrapped by {wrappers}."


# The fields of FORMAT ---------------------------------------------------------------------------


def authors() -> str:
    """The page for plugin authors with a fresh table of the fields of `Format`."""
    text = (ROOT / AUTHORS).read_text(encoding="utf-8")
    before, rest = text.split(FIELDS_BEGIN)
    _, after = rest.split(FIELDS_END)
    return f"{before}{FIELDS_BEGIN}\n{field_table()}\n{FIELDS_END}{after}"


def meanings_of(kind: type) -> dict[str, str]:
    """The lines ``field: meaning`` of the docstring of a record."""
    return dict(re.findall(r"^    (\w+): (.+)$", kind.__doc__ or "", re.MULTILINE))


def bounds() -> str:
    """The page of limits with a fresh table of the fields of `Limits`."""
    text = (ROOT / LIMITS).read_text(encoding="utf-8")
    before, rest = text.split(BOUNDS_BEGIN)
    _, after = rest.split(BOUNDS_END)
    lines = ["| Field | Default | Counts |", "|---|---|---|"]
    meanings = meanings_of(Limits)
    for name, most in Limits._field_defaults.items():
        lines.append(f"| `{name}` | {amount(most)} | {cell(meanings[name])} |")
    return "\n".join([before + BOUNDS_BEGIN, *lines, BOUNDS_END + after])


def amount(count: int) -> str:
    """A number as people write it: 64 Mi, 200,000."""
    for power, unit in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if count % (1 << power) == 0:
            return f"{count >> power} {unit}"
    return f"{count:,}"


def field_table() -> str:
    """One line per field, as the docstring of `Format` explains it."""
    meanings = meanings_of(Format)
    usual = Format._field_defaults
    lines = ["| Field | Default | Meaning |", "|---|---|---|"]
    for name in Format._fields:
        default = f"`{quotes(usual[name])}`" if name in usual else "-"
        lines.append(f"| `{name}` | {default} | {cell(meanings[name])} |")
    return "\n".join(lines)


# The page of a format ---------------------------------------------------------------------------


def page(row: Row) -> str:
    """Return the page of a format: facts, the plugin's docstring, options."""
    module = import_module(row.module)
    format_: Format = module.FORMAT
    parts = [NOTE, f"# {format_.title}", facts(format_), prose(module)]
    if row.name in MEANING:
        parts += ["## What arrays are about", meaning(MEANING[row.name])]
    if format_.read_options or format_.write_options:
        parts.append("## Options")
    if format_.read_options:
        parts.append(options("Reading, `--in-opt NAME=VALUE`", format_.read_options))
    if format_.write_options:
        parts.append(options("Writing, `--out-opt NAME=VALUE`", format_.write_options))
    return "\n\n".join(parts) + "\n"


def meaning(observed: dict[str, list[str]]) -> str:
    """Return the table of what became of each fact about arrays in the law of meaning."""
    lines = [
        "Observed by `python -m tests.meaning --table`, which writes random arrays and looks at",
        "the files with other libraries:",
        "",
        "| Fact | What becomes of it |",
        "|---|---|",
    ]
    for fact, title in FACTS.items():
        found = [text for key, text in OUTCOMES.items() if key in observed.get(fact, [])]
        lines.append(f"| {title} | {'; or '.join(found) or '-'} |")
    return "\n".join(lines)


def facts(format_: Format) -> str:
    """Return the short table at the head of a page."""
    does = [verb for verb, can in (("read", format_.reads), ("write", format_.writes)) if can]
    rows = [
        ("Name for `--from` and `--to`", f"`{format_.name}`"),
        ("Files", suffixes(format_.suffixes, folder=format_.folder)),
        ("raconvert can", " and ".join(does)),
        ("Arrays in a file", "many, named" if format_.many else "one"),
        ("Index order", ORDERS[format_.index_orders]),
        ("Common metadata kept inside", META[format_.meta]),
        ("Needs", ", ".join(f"`{need}`" for _, need in format_.needs) or "nothing else"),
        ("Limits", cell(format_.losses) or "-"),
        (
            "Defined by",
            re.sub(r"https://[^ ;]+", r"<\g<0>>", DEFINED_HERE.get(format_.spec, format_.spec)),
        ),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def suffixes(found: tuple[str, ...], *, folder: bool) -> str:
    """Return the suffixes of a format; a folder has none, and plain bytes have any."""
    return ", ".join(f"`{suffix}`" for suffix in found) or ("a folder" if folder else "any")


def cell(text: str) -> str:
    """Return plain text for a cell of a table: neither the end of the cell nor HTML."""
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


def prose(module: ModuleType) -> str:
    """Return a plugin's docstring as Markdown: tables, literal blocks, code spans, headings.

    Heading is what stands before the first colon of a paragraph, if it is words and commas only.
    """
    text = (module.__doc__ or "").strip()
    text = re.sub(RULED_TABLE, lambda found: ruled_table(found[0]), text, flags=re.MULTILINE)
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)  # what follows is indented: a code block
    text = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)
    return re.sub(r"(\n\n)((?!The |Writing )[A-Za-z][\w ,-]{0,50}:)(?=\s)", r"\1**\2**", text)


def ruled_table(text: str) -> str:
    """Return a table between rules of ``=`` as one of Markdown.

    An empty first cell continues the row above; a table with two rules only has no head.
    """
    lines = text.splitlines()
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    ends = [*starts[1:], None]
    rows: list[list[str]] = [] if lines[2].startswith("==") else [[""] * len(starts)]
    for line in lines:
        if line.startswith("=="):
            continue
        cells = [line[a:b].strip().replace("|", r"\|") for a, b in zip(starts, ends, strict=True)]
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
    rows.insert(1, ["---"] * len(starts))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


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
        default = {"True": "`yes`", "False": "`no`", "": "-"}.get(
            str(option.default), f"`{option.default}`"
        )
        lines.append(f"| `{option.name}` | {values} | {default} | {cell(option.help)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
