"""The command line: ``raconvert SRC... -o DST`` and its verbs.

This module is all that ``--help`` and ``--version`` load: a static table of verbs. A verb's own
module, and argparse with the options of that one verb, are imported when it is used.

Results go to the standard output, everything else to the standard error. Exit codes: 0 done, 1
failed or differences found, 2 usage, 3 format unknown or its package missing, 4 refused (loss or
safety), 5 destination exists, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from itertools import pairwise

from raconvert import __version__
from raconvert.errors import RaconvertError, UsageError, did_you_mean, name_flags, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

# verb -> what it does, in one line; its code is the module of the same name in this package
VERBS = {
    "convert": "convert files; may be left out before -o, --to or --out-dir",
    "info": "show what files hold, from their headers; with --html as a page",
    "peek": "show an array as a picture or a plot, with a few numbers",
    "view": "show a file or a folder in the browser, on this machine alone",
    "formats": "list the formats, all about one, or why a file is taken for one",
    "diff": "compare two files by type, shape, elements and metadata",
    "verify": "read a file to its end, or compare it with its sources",
    "digest": "print the SHA-256 of the .ra that an array would become",
    "refs": "write a view for other readers of arrays where they lie",
    "migrate": "convert a tree of files; goes on where it was interrupted",
    "completion": "print the completion script of a shell",
    "help": "show this overview, or the options of a verb",
    "version": "show the version, with -v those of libraries, too",
}

USAGE = ("raconvert SRC... -o DST", "raconvert VERB ...")
_PURPOSE = "Convert N-dimensional arrays between file formats: exactly, or not at all."
EXAMPLES = (
    ("raconvert scan.npy -o scan.ra", "one file; the suffix decides"),
    ("raconvert 'mnist/*.png' -o mnist.ra", "many images as one stack"),
    ("raconvert in/ -r --to npy --out-dir out", "each file of a tree by itself"),
)
_EXIT_CODES = """\
exit codes: 0 done, 1 failed or different, 2 usage, 3 format unknown,
4 refused, 5 destination exists, 130 interrupted
"""
_TARGET_OPTIONS = ("--output", "--to", "--output-format", "--out-dir")
_FLAG_LETTERS = "qvrn0h"  # short options without a value, which -o may follow in one word
_INTERRUPTED = 130
_DASHES = ("\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212", "\uff0d")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises, whatever happens."""
    before = name_flags(True)
    try:
        if None in (sys.stdin, sys.stdout, sys.stderr):
            from raconvert.cli.console import fill_closed

            fill_closed()
        return _main(argv)
    finally:
        name_flags(before)


def _main(argv: Sequence[str] | None) -> int:
    """Run the command line; print what failed, and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    # numpy starts a pool of threads for linear algebra, of which there is none here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if argv is None:  # the process is ours, and files of many arrays make little garbage
        gc.set_threshold(100_000, 20, 50)
    try:
        code = _run(words, alone=argv is None)
    except RaconvertError as error:
        from raconvert.cli.console import Console

        console = Console()
        console.json = _wants_json(words)
        return console.failure(error)
    except SystemExit as stop:  # argparse after --help
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        _silence(sys.stdout)
        return RaconvertError.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except MemoryError:
        text = "memory is exhausted\n  a smaller --max-memory keeps less of the data at once"
        return _fail("MemoryError", text, words)
    except OSError as error:
        _silence(sys.stdout)
        named = f"'{error.filename}': " if error.filename is not None else ""
        return _fail("OSError", quoted(f"{named}{error.strerror or error}"), words)
    except Exception as bug:  # the last resort: one line instead of a traceback
        if "--debug" in words:
            raise
        kind = type(bug).__name__
        text = f"{kind}: {quoted(str(bug))}\n  this is a bug in raconvert; --debug shows where"
        return _fail(kind, text, words)
    return code


def _wants_json(words: list[str]) -> bool:
    """True if a failure is printed as JSON: not if the standard output takes the data."""
    options = words[: words.index("--")] if "--" in words else words
    in_one_word = {"-o-", "--output=-"} & {*options}
    in_two_words = {("-o", "-"), ("--output", "-")} & {*pairwise(options)}
    return "--json" in options and not (in_one_word or in_two_words)


def _interrupted() -> int:
    """Cancel pending requests and print that the command was interrupted; return the exit code."""
    if remote := sys.modules.get("raconvert.files.remote.filesystem"):
        remote.cancel_requests()
    _say("interrupted")
    return _INTERRUPTED


def _fail(kind: str, text: str, words: list[str]) -> int:
    """Print a failure that is not an error of ours, with --json also as JSON; return 1."""
    code = RaconvertError.exit_code
    if _wants_json(words):
        from raconvert.cli.console import Console

        with suppress(RaconvertError, OSError):
            facts = {"kind": kind, "exit_code": code, "message": text}
            Console().result_json({"error": facts})
    _say(text)
    return code


def _run(words: list[str], *, alone: bool) -> int:
    """Choose the verb and run it; `alone`: the process ends afterwards."""
    if not words:
        _say(f"usage: {' or '.join(USAGE)}\ntry 'raconvert --help'", mark="")
        return UsageError.exit_code
    if words[0] in ("-h", "--help") or words == ["help"]:
        return _print(top_help())
    if words[0] in ("-V", "--version") or words in (["version"], ["-v"]):
        return _print(f"raconvert {__version__}\n")
    _refuse_dashes(words)
    verb, rest = choose_verb(words)
    from raconvert.workers.interrupts import Interruptible

    with Interruptible(last=alone):
        from importlib import import_module

        from raconvert.cli.console import Console, flush
        from raconvert.cli.parser import parse

        args = parse(verb, rest, VERBS[verb])
        console = Console(args)
        module = import_module(f"raconvert.cli.{verb}")
        try:
            if "-" in getattr(args, "files", ()) and not os.path.lexists("-"):
                from raconvert.cli.sources import from_stdin

                code: int = from_stdin(module.run, args, console)
            else:
                code = module.run(args, console)
            flush()
        except RaconvertError as error:
            console.json = _wants_json(words)
            code = console.failure(error)
    return code


def _refuse_dashes(words: list[str]) -> None:
    """Refuse an option that begins with a typographic dash, as pages and chats make it."""
    for word in words:
        if word == "--":
            return
        if word[:1] not in _DASHES or os.path.lexists(word):
            continue
        from raconvert.cli.options import VERBS as TABLES

        flags = {flag for spec in TABLES.values() for opt in spec.options for flag in opt.flags}
        name, equals, value = word.lstrip("".join(_DASHES) + "-").partition("=")
        flag = next((dashes + name for dashes in ("-", "--") if dashes + name in flags), None)
        if flag is not None:
            raise UsageError(
                f"'{word}' begins with a dash that is not the hyphen of the keyboard; "
                f"did you mean '{flag}{equals}{value}'?"
            )


def top_help() -> str:
    """Return the help of the command as a whole: one screen of 24 rows and 80 columns."""
    examples = "".join(f"  {line:<40} {what}\n" for line, what in EXAMPLES)
    verbs = "".join(f"  {verb:<11} {summary}\n" for verb, summary in VERBS.items())
    return (
        f"usage: {' or '.join(USAGE)}\n{_PURPOSE}\n\n{examples}"
        f"\nverbs (raconvert help VERB shows their options):\n{verbs}{_EXIT_CODES}"
    )


def choose_verb(words: list[str]) -> tuple[str, list[str]]:
    """Return the verb and its words; without a verb it is `convert` if a destination is named.

    Raises `UsageError` if the first word is neither, or could be both a verb and a file.
    """
    first = words[0]
    names_target = _names_target(words)
    if first in VERBS:
        if os.path.lexists(first) and (names_target or len(words) == 1):
            usage = f"raconvert {first} FILE, without -o, --to or --out-dir"
            raise UsageError(
                f"'{first}' is a verb, and here it is also a file",
                remedy=f"for the file: raconvert ./{first} -o DST\nfor the verb: "
                + ("leave it out, raconvert SRC... -o DST" if first == "convert" else usage),
            )
        return first, words[1:]
    maybe_file = first.startswith("-") or _is_path(first)
    hint = "" if maybe_file else did_you_mean(first, list(VERBS))
    if names_target and not hint:
        return "convert", words
    if not maybe_file:
        from raconvert.cli.elsewhere import verb_of

        if meant := verb_of(first):
            hint = f"; did you mean '{meant}'?"
    if any(word in ("-h", "--help") for word in words):
        return "convert", ["--help"]
    verb = next((word for word in words if word in VERBS), None)
    if first.startswith("-") and verb is not None:
        from raconvert.files.quoting import shell

        raise UsageError(
            f"'{first}' stands before the verb", remedy=f"raconvert {verb} {shell(first)} ..."
        )
    if maybe_file:
        from raconvert.cli.sources import no_destination

        raise no_destination([word for word in words if not word.startswith("-")])
    raise UsageError(
        f"unknown verb '{first}'{hint}",
        remedy=f"verbs: {', '.join(VERBS)}\nor name files, with a destination: SRC... -o DST",
    )


def _names_target(words: list[str]) -> bool:
    """True if -o, --to or --out-dir is among the words before ``--``."""
    for word in words:
        if word == "--":
            return False
        if word.startswith("--"):
            if word.partition("=")[0] in _TARGET_OPTIONS:
                return True
        elif word.startswith("-") and word[1:].lstrip(_FLAG_LETTERS).startswith("o"):
            return True
    return False


def _is_path(word: str) -> bool:
    """True for the path of a file, and for a word that looks like a path or a pattern."""
    return os.path.lexists(word) or any(mark in word for mark in "./*?#[" + os.sep)


def _print(text: str) -> int:
    """Print a text; return 0. Raises `RaconvertError` if it cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from raconvert.cli.console import stdout_failed

        raise stdout_failed(error) from error
    return 0


def _say(text: str, mark: str = "raconvert: ") -> None:
    """Print a message to the standard error; nothing if that is closed."""
    try:
        sys.stderr.write(f"{mark}{quoted(text, lines=True)}\n")
    except OSError:  # the exit code remains
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Let a stream that cannot be written fail no more."""
    from raconvert.cli.console import silence

    silence(stream)
