"""Manual pages, from the tables that the parser is built from: of the command, of each verb."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from raconvert import __version__
from raconvert.catalogue import ROWS
from raconvert.cli import EXAMPLES, USAGE, VERBS, help_text
from raconvert.cli import options as tables
from raconvert.cli.parser import OPERANDS, build

FOLDER = "docs/man"
EXIT_CODES = (
    ("0", "done"),
    ("1", "failed (unreadable, damaged, input or output), or differences were found"),
    ("2", "usage, or what cannot be compared"),
    ("3", "the format is unknown, or its package is missing"),
    ("4", "refused because of loss or safety; nothing was written"),
    ("5", "refused because the destination exists; it is left as it was"),
    ("130", "interrupted; the destination is as it was"),
)
PLACES = (
    ("TMPDIR", "the folder for files that have no place beside a destination"),
    ("COLUMNS", "the width of help and tables"),
    ("NO_COLOR", "no colours, as with --color never"),
)


def pages() -> dict[str, str]:
    """Every page by its path in the project."""
    made = {f"{FOLDER}/raconvert.1": command()}
    return made | {f"{FOLDER}/raconvert-{verb}.1": page(verb) for verb in VERBS}


def command() -> str:
    """The page of the command as a whole."""
    return joined(
        head("raconvert", "convert N-dimensional arrays between file formats, faithfully"),
        ".SH SYNOPSIS",
        *lines(USAGE),
        ".SH DESCRIPTION",
        text(
            "Every format is read into and written from one core, RA (RawArray), so any two "
            "formats convert into each other. A conversion is exact, or says in one line what "
            "changed in form, or is refused, and then nothing is written. Files are recognised by "
            "content, outputs by their suffix. Each verb has a page of its own, "
        )
        + "\n.BR raconvert-VERB (1).",
        ".SH VERBS",
        *(f".TP\n.BR raconvert-{plain(verb)} (1)\n{text(what)}" for verb, what in VERBS.items()),
        ".SH FORMATS",
        text(", ".join(row.name for row in ROWS) + "; more as plugins (raconvert formats)."),
        ".SH EXAMPLES",
        ".nf",
        *(plain(f"{line:<40} {what}") for line, what in EXAMPLES),
        ".fi",
        *tail(),
    )


def page(verb: str) -> str:
    """The page of a verb."""
    spec = tables.VERBS[verb]
    dest, _, operand = spec.operand
    parser = build(verb, spec, VERBS[verb])
    return joined(
        head(f"raconvert-{verb}", VERBS[verb]),
        ".SH SYNOPSIS",
        *lines([f"raconvert {spec.usage}"]),
        ".SH DESCRIPTION",
        text(f"{VERBS[verb][0].upper()}{VERBS[verb][1:]}."),
        *([f".TP\n.I {plain(OPERANDS[dest])}\n{text(operand)}"] if operand else []),
        *([".PP", text(f"{spec.more[0].upper()}{spec.more[1:]}.")] if spec.more else []),
        ".SH EXAMPLES",
        *(
            f".TP\n.B raconvert {plain(line)}\n{text(what)}"
            for line, what in help_text.EXAMPLES[verb]
        ),
        ".SH OPTIONS",
        *(
            part
            for title, actions in help_text.groups(parser._actions)
            for part in (f".SS {text(title)}", *map(option, actions))
        ),
        *tail(),
    )


def option(action: argparse.Action) -> str:
    """The paragraph of an option: its names, what it takes, what it does."""
    takes = value(action)
    names = ", ".join(rf"\fB{plain(name)}\fR{takes}" for name in action.option_strings)
    return f".TP\n{names}\n{text((action.help or '').replace('%%', '%'))}"


def value(action: argparse.Action) -> str:
    """What stands behind the name of an option."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return " " + "|".join(rf"\fI{plain(str(choice))}\fR" for choice in action.choices)
    more = "..." if action.nargs == "+" else ""
    return rf" \fI{plain(str(action.metavar or action.dest.upper()))}\fR{more}"


def head(name: str, what: str) -> str:
    """The title and the line that `whatis` finds."""
    title = f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "raconvert {__version__}"'
    return f'{title} "User Commands"\n.SH NAME\n{plain(name)} \\- {plain(what)}'


def tail() -> Iterable[str]:
    """What all pages end with."""
    yield ".SH EXIT STATUS"
    yield from (f".TP\n.B {code}\n{text(what)}" for code, what in EXIT_CODES)
    yield ".SH ENVIRONMENT"
    yield from (f".TP\n.B {name}\n{text(what)}" for name, what in PLACES)
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR raconvert{plain(end)} (1)" for end in ("", *(f"-{v}" for v in VERBS)))


def lines(found: Iterable[str]) -> Iterable[str]:
    """Lines that stay as they are."""
    yield ".nf"
    yield from (rf"\fB{plain(line)}\fR" for line in found)
    yield ".fi"


def joined(*parts: str) -> str:
    """The text of a page."""
    note = '.\\" Written by `python -m docs.generate` from the tables of the command line.'
    return "\n".join([note, *parts]) + "\n"


def text(words: str) -> str:
    """A paragraph: no line begins with what roff takes for a request."""
    return plain(words.strip())


def plain(words: str) -> str:
    r"""Words as roff takes them literally: ``\``, ``-``, quotes, ``.`` at the beginning."""
    words = words.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    words = words.replace("`", r"\(ga").replace("^", r"\(ha").replace("~", r"\(ti")
    words = "".join(c if ord(c) < 128 else rf"\[u{ord(c):04X}]" for c in words)
    return rf"\&{words}" if words.startswith((".", "\\(aq")) else words
