"""``raconvert completion SHELL``: the completion script, made by shtab from all options."""

from __future__ import annotations

import argparse

from raconvert.cli import VERBS as SUMMARIES
from raconvert.cli.options import VERBS, one_of
from raconvert.cli.parser import OPERANDS, add_options
from raconvert.errors import MissingDependency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console

SHELLS = ("bash", "zsh", "tcsh")
_FILE_OPTIONS = (
    "--output",
    "--labels",
    "--report",
    "--files-from",
    "--why",
    "--against",
    "--journal",
    "--status",
)


def run(args: Any, console: Console) -> int:
    """Print the script of the shell."""
    one_of("completion", SHELLS)(args.shell)
    console.result(script(args.shell))
    return 0


def script(shell: str) -> str:
    """Return the completion script for one of `SHELLS`."""
    try:
        import shtab
    except ImportError as error:
        raise MissingDependency(
            "completion scripts need the shtab package", remedy="pip install shtab"
        ) from error
    text = str(shtab.complete(full_parser(shtab.FILE, shtab.DIRECTORY), shell=shell))
    # Without a verb, as in `raconvert SRC -o DST`, bash completes file names by itself.
    return text.replace("complete -o bashdefault -F", "complete -o bashdefault -o default -F")


def full_parser(file: Any = None, directory: Any = None) -> argparse.ArgumentParser:
    """Return the parser of all verbs, operands included, with what completes their values."""
    parser = argparse.ArgumentParser(prog="raconvert", allow_abbrev=False)
    parser.add_argument("-V", "--version", action="version", version="", help="print the version")
    verbs = parser.add_subparsers()
    for verb, spec in VERBS.items():
        sub = verbs.add_parser(verb, help=SUMMARIES[verb], allow_abbrev=False)
        add_options(sub, spec)
        dest, nargs, help_text = spec.operand
        named: dict[str, Any] = {"nargs": nargs, "help": help_text, "metavar": OPERANDS[dest]}
        if dest == "shell":
            named["choices"] = SHELLS
        if dest == "name":
            named["choices"] = _format_names()
        operand: Any = sub.add_argument(dest, **named)
        if dest in ("src", "files", "trees"):
            operand.complete = file
        for action in sub._actions:
            flags: Any = action
            if any(flag in _FILE_OPTIONS for flag in action.option_strings):
                flags.complete = file
            elif "--out-dir" in action.option_strings:
                flags.complete = directory
            elif {"--to", "--from"} & set(action.option_strings):
                action.choices = _format_names()
    return parser


def _format_names() -> list[str]:
    from raconvert.catalogue import ROWS

    return [row.name for row in ROWS]
