r"""``raconvert completion SHELL``: the completion script, and the words that it asks for.

The scripts of bash, zsh and fish hand the line over (``raconvert completion --words -- LINE``), so
that all three know verbs and options, also without a verb, names of formats, keys of ``--in-opt``
and ``--out-opt``, and the arrays of a file. For an empty list of words, the shell completes names
of files. tcsh gets a script of shtab.
"""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

from raconvert.catalogue import ROWS
from raconvert.cli import VERBS as SUMMARIES
from raconvert.cli.options import VERBS, one_of
from raconvert.cli.parser import OPERANDS, add_options
from raconvert.conversion.options import LOSSES, TRUSTS
from raconvert.errors import MissingDependency, RaconvertError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.cli.console import Console
    from raconvert.cli.options import Opt, Verb

SHELLS = ("bash", "zsh", "fish", "tcsh")
_SCRIPTS = {
    "bash": r"""_raconvert() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$(printf %q "$word")")
    done < <("${COMP_WORDS[0]}" completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o default -F _raconvert raconvert""",
    "zsh": r"""#compdef raconvert
_raconvert() {
    local -a found
    found=("${(@f)$(raconvert completion --words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z "${found[1]}" ]]; then
        _files
        return
    fi
    compadd -S '' -- ${(M)found:#*[=/]}
    compadd -- ${found:#*[=/]}
}
compdef _raconvert raconvert""",
    "fish": r"""function __raconvert_words
    set -l said (commandline -opc)
    set -l word (commandline -ct)
    raconvert completion --words -- $said[2..-1] "$word" 2>/dev/null
end
complete -c raconvert -a '(__raconvert_words)'""",
}
_VALUES = {  # dest of an option -> words that it takes
    "allow": LOSSES,
    "trust": TRUSTS,
    "bits": ("8", "16"),
    "scale": ("none", "unit", "minmax"),
    "axes": ("c", "fortran", "keep-memory"),
}
_FILE_METAVARS = ("FILE", "LIST", "SRC", "JSON", "DST_TREE", "DIR")


def run(args: Any, console: Console) -> int:
    """Print the script of the shell, or the words that may stand where a line ends."""
    if args.words:
        with suppress(RaconvertError, OSError):  # an unfinished line may name anything
            for word in words_for(args.shell):
                console.raw(word)
        return 0
    if len(args.shell) != 1:
        raise UsageError("one shell is named", remedy=f"usage: raconvert completion {SHELLS[0]}")
    one_of("completion", SHELLS)(args.shell[0])
    console.raw(script(args.shell[0]))
    return 0


def script(shell: str) -> str:
    """Return the completion script for one of `SHELLS`."""
    if shell in _SCRIPTS:
        return _SCRIPTS[shell]
    try:
        import shtab
    except ImportError as error:
        raise MissingDependency(
            "completion scripts for tcsh need the shtab package", remedy="pip install shtab"
        ) from error
    return str(shtab.complete(full_parser(shtab.FILE), shell=shell))


# The words ---------------------------------------------------------------------------------------


def words_for(line: Sequence[str]) -> list[str]:
    """The words that may stand in place of the last one of a line; [] if it is a file's name."""
    *before, word = line or [""]
    if word == "=":  # bash splits words at it
        word = ""
    elif before[-1:] == ["="]:
        before.pop()
    start = ""
    if word.startswith("--") and "=" in word:
        flag, _, word = word.partition("=")
        before, start = [*before, flag], f"{flag}="
    head, _, last = word.rpartition(",") if "," in word else ("", "", word)
    verb = before[0] if before and before[0] in VERBS else None
    spec = VERBS[verb or "convert"]
    option = _option(spec, before[-1]) if before else None
    if option is not None and option.how in ("value", "append", "rest"):
        words: Iterable[str] = _values(option, spec, before, word)
        if option.kind is not None and option.dest in ("allow", "trust") and head:
            words = [f"{head},{value}" for value in words if value.startswith(last)]
    elif word.startswith("-"):
        words = sorted(name for one in spec.options for name in one.flags if name[:2] == "--")
    elif not before:
        words = [*VERBS, *_files(word)]
    elif "#" in word:
        path = word.partition("#")[0]
        words = [f"{path}#{name}" for name in _arrays([path])]
    else:
        words = {"formats": _format_names(), "completion": SHELLS, "help": VERBS}.get(
            verb or "", ()
        )
    return [start + one for one in words if one.startswith(word) and one.isprintable()]


def _option(spec: Verb, flag: str) -> Opt | None:
    """The option of a flag; None for any other word."""
    return next((option for option in spec.options if flag in option.flags), None)


def _values(option: Opt, spec: Verb, before: Sequence[str], word: str) -> Iterable[str]:
    """The words that an option takes as its value; empty if they are unknown."""
    if option.choices:
        return option.choices
    if option.metavar == "FORMAT":
        return _format_names()
    if option.dest == "arrays":
        return _arrays(_operands(spec, before))
    if option.dest in ("in_opts", "out_opts"):
        return _keys(option.dest == "in_opts", spec, before, word)
    return _VALUES.get(option.dest, ())


def _operands(spec: Verb, before: Sequence[str]) -> list[str]:
    """The words of a line that are neither options nor their values."""
    operands, is_value = [], False
    for word in before:
        option = _option(spec, word)
        if not is_value and option is None and not word.startswith("-") and word not in VERBS:
            operands.append(word)
        is_value = option is not None and option.how in ("value", "append")
    return operands


def _value_of(flags: Sequence[str], before: Sequence[str]) -> str | None:
    """The value of the last of these flags in a line; None without one."""
    indices = [at for at, word in enumerate(before[:-1]) if word in flags]
    return before[indices[-1] + 1] if indices else None


def _keys(reads: bool, spec: Verb, before: Sequence[str], word: str) -> Iterator[str]:
    """Yield ``KEY=`` of the options of a format, or ``KEY=VALUE`` behind a key."""
    from raconvert.inspect.info import format_details
    from raconvert.registry import by_name, by_suffix

    if reads:
        flags, files = ("--from", "--input-format"), _operands(spec, before)
    else:
        flags, files = ("--to", "--output-format"), [_value_of(("-o", "--output"), before) or ""]
    row = by_suffix(files[0]) if files else None
    if named := _value_of(flags, before):
        row = by_name(named)
    if row is None:
        return
    for option in format_details(row.name)["read_options" if reads else "write_options"]:
        key = f"{option['name']}="
        choices = option["choices"] if isinstance(option["choices"], list) else []
        yield from (f"{key}{choice}" for choice in choices) if word.startswith(key) else [key]


def _arrays(paths: Sequence[str]) -> Iterator[str]:
    """Yield the names of the arrays in local files; only headers are read."""
    from raconvert.conversion.read import open_bundle

    for path in paths:
        if os.path.exists(path):
            with suppress(RaconvertError), open_bundle(path) as bundle:
                yield from bundle.names


def _files(word: str) -> list[str]:
    """The files and folders whose paths begin with a word; hidden ones only if it names them."""
    folder, name = os.path.split(word)
    try:
        with os.scandir(folder or ".") as listed:
            entries = [entry for entry in listed if entry.name.startswith(name or word)]
    except OSError:
        return []
    shown = [entry for entry in entries if name or not entry.name.startswith(".")]
    return sorted(os.path.join(folder, entry.name) + "/" * entry.is_dir() for entry in shown)


# tcsh --------------------------------------------------------------------------------------------


def full_parser(file: Any = None) -> argparse.ArgumentParser:
    """Return the parser of all verbs, operands included; `file` completes the names of files."""
    parser = argparse.ArgumentParser(prog="raconvert", allow_abbrev=False)
    parser.add_argument("-V", "--version", action="version", version="", help="print the version")
    verbs = parser.add_subparsers()
    for verb, spec in VERBS.items():
        sub = verbs.add_parser(verb, help=SUMMARIES[verb], allow_abbrev=False)
        add_options(sub, spec)
        dest, nargs, help_text = spec.operand
        if nargs == 0:
            continue
        named: dict[str, Any] = {"nargs": nargs, "help": help_text, "metavar": OPERANDS[dest]}
        if dest == "shell":
            named["choices"] = SHELLS
        if dest == "name":
            named["choices"] = _format_names() if verb == "formats" else list(VERBS)
        operand: Any = sub.add_argument(dest, **named)
        if dest in ("src", "files", "trees"):
            operand.complete = file
        for action in sub._actions:
            flags: Any = action
            if action.metavar in _FILE_METAVARS:
                flags.complete = file
            elif {"--to", "--from"} & set(action.option_strings):
                action.choices = _format_names()
    return parser


def _format_names() -> list[str]:
    return [row.name for row in ROWS]
