"""The text of ``--help`` of a verb: examples first, then the options in groups.

Lines fit the terminal.
"""

from __future__ import annotations

import argparse
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# verb -> what stands behind ``raconvert``, and what it does
EXAMPLES = {
    "convert": (
        ("scan.npy -o scan.ra", "one file; the suffix decides"),
        ("'mnist/*.png' -o mnist.ra", "many images as one stack"),
        ("in/ -r --to npy --out-dir out", "each file of a tree by itself"),
    ),
    "info": (
        ("info scan.npy", "type, shape, axes and metadata"),
        ("info -s in/ -r", "a line for each array"),
        ("info scan.npy --html -o scan.html", "a page with pictures"),
    ),
    "peek": (
        ("peek scan.npy", "a picture or a plot, and a few numbers"),
        ("peek 'many.h5#x'", "one array of a container"),
        ("peek scan.npy --full", "numbers of all elements"),
    ),
    "view": (
        ("view scan.npy", "in the browser, on this machine alone"),
        ("view in/", "a folder: each file and each array"),
        ("view many.h5 --no-browser", "print the address, open nothing"),
    ),
    "formats": (
        ("formats", "all formats, and what each keeps"),
        ("formats png", "all about one, its options included"),
        ("formats --why scan.npy", "what each format says about a file"),
    ),
    "diff": (
        ("diff scan.npy scan.ra", "are two files the same array?"),
        ("diff scan.npy near.npy --atol 1e-6", "within a tolerance"),
        ("diff in/ out/ -r --ignore-meta", "two folders; elements only"),
    ),
    "verify": (
        ("verify scan.ra", "can it be read whole?"),
        ("verify mnist.ra --against 'mnist/*.png'", "is each image in it?"),
        ("verify out/ --against in/", "is a tree complete?"),
    ),
    "digest": (
        ("digest scan.npy", "the same in any format"),
        ("digest -s in/ -r", "one line for a folder"),
        ("digest 'mnist/*.png' --as mnist.ra", "of a stack"),
    ),
    "refs": (
        ("refs scan.npy -o scan.json", "for kerchunk, zarr and xarray"),
        ("refs many.h5 -o many.json --digest", "with the SHA-256 of the file"),
        ("verify scan.json", "is the file still what it was?"),
    ),
    "migrate": (
        ("migrate in/ out/ --to ra", "every file; again: goes on"),
        ("migrate in/ out/ --to ra -n", "print the plan, write nothing"),
        ("migrate --status out/", "how far it is"),
    ),
    "completion": (
        ("completion bash", "print the script for bash"),
        ("completion zsh", "for zsh"),
        ("completion fish", "for fish"),
    ),
    "help": (
        ("help", "all verbs on one screen"),
        ("help convert", "the options of one"),
        ("formats png", "the options of a format"),
    ),
    "version": (
        ("version", "the version alone"),
        ("version -v", "of Python and of what formats use, too"),
        ("version --json", "the same for programs"),
    ),
}
# title of a group -> its options, each by the last one of its flags
GROUPS = {
    "what (the sources)": (
        "--input-format --in-opt --array --sort --recursive --include --exclude --files-from "
        "--null --strict-sequence --skip-bad --trust --why --against --status"
    ),
    "where (the destination)": (
        "--output --out-dir --output-format --out-opt --name --labels --meta --overwrite "
        "--skip-existing --update --journal"
    ),
    "losses (what may change)": "--allow --strict --dtype --scale --unscale --bits",
    "differences (what counts as one)": "--atol --rtol --bitwise --ignore-meta --ignore-singletons",
    "shape (joined, cut, turned)": (
        "--stack --concat --each --planes --slice --axes --index-order --containers "
        "--stack-folders --stack-classes"
    ),
    "speed (processes, memory)": (
        "--jobs --max-memory --full --batch-seconds --file-timeout --scheduler --scheduler-file "
        "--shard --port"
    ),
    "says (checks, messages)": (
        "--verify --dry-run --fail-fast --paranoid --digest --certificate --combined --report "
        "--short --as --words --html --no-browser --graphics --progress --json --quiet "
        "--verbose --color --debug --help"
    ),
}
_SOURCES, _OTHERS = next(iter(GROUPS)), "others"
# Options that are about the sources on verbs that write no array
_OF_READING = ("--meta", "--index-order")
_WIDEST = 100
_INDENT = 26  # columns before the help of an option


def groups(actions: list[argparse.Action]) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Yield the titles and options of the groups that have any, in the order of help."""
    of_flag = {flag: title for title, flags in GROUPS.items() for flag in flags.split()}
    if not any("--allow" in one.option_strings for one in actions):
        of_flag |= dict.fromkeys(_OF_READING, _SOURCES)
    for title in (*GROUPS, _OTHERS):
        own = [one for one in actions if of_flag.get(one.option_strings[-1], _OTHERS) == title]
        if own:
            yield title, own


def help_of(verb: str, parser: argparse.ArgumentParser) -> str:
    """Return the help of a verb: usage, purpose, examples, options in groups, an epilog."""
    formatter = _Formatter(parser.prog)
    formatter.add_usage(parser.usage, parser._actions, [])
    formatter.add_text(parser.description)
    text = formatter.format_help() + _examples(verb)
    formatter = _Formatter(parser.prog)
    for title, actions in groups(parser._actions):
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(parser.epilog)
    return text + formatter.format_help()


def _examples(verb: str) -> str:
    """Return the examples as a table; in a narrow terminal with the explanations below them."""
    rows = [(f"  raconvert {line}", what) for line, what in EXAMPLES.get(verb, ())]
    wide = max((len(line) for line, _ in rows), default=0)
    narrow = any(wide + 2 + len(what) > width() for _, what in rows)
    lines = [
        f"{line}\n      {what}" if narrow else f"{line:<{wide}}  {what}" for line, what in rows
    ]
    return "\n".join(["", "examples:", *lines, "", ""]) if rows else "\n"


class _Formatter(argparse.HelpFormatter):
    """A formatter of help as wide as the terminal; unlike argparse it does not import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_INDENT, width=width())

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """The flags of an option, and behind them its value, which argparse repeats for each."""
        flags = ", ".join(action.option_strings)
        if action.nargs == 0:
            return flags
        return f"{flags} {self._format_args(action, action.dest.upper())}"


def width() -> int:
    """Return the columns of the terminal that help takes."""
    try:
        columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        try:
            columns = os.get_terminal_size().columns
        except (ValueError, OSError):
            columns = 80
    return max(40, min(columns - 2, _WIDEST))
