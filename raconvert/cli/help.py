"""``raconvert help [VERB]``: all verbs on one screen, or the options of one."""

from __future__ import annotations

from raconvert.cli import VERBS as SUMMARIES
from raconvert.cli import top_help
from raconvert.cli.options import VERBS
from raconvert.cli.parser import build
from raconvert.errors import RaconvertError, UsageError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Print the overview, or the help of a verb."""
    word = args.name
    if word is None:
        console.raw(top_help().rstrip("\n"))
        return 0
    if word not in VERBS:
        raise _no_help(word)
    console.raw(build(word, VERBS[word], SUMMARIES[word]).format_help().rstrip("\n"))
    return 0


def _no_help(word: str) -> UsageError:
    """The error for a word that is not a verb; a format has its help elsewhere."""
    from raconvert.registry import by_name

    hint = did_you_mean(word, list(VERBS))
    try:
        remedy = f"the format {word}: raconvert formats {by_name(word).name}"
    except RaconvertError:
        remedy = f"verbs: {', '.join(VERBS)}"
    return UsageError(f"help: '{word}' is not a verb{hint}", remedy=remedy)
