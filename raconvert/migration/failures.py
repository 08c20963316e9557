"""Failures of a migration: alike ones together, and the flags that would let files pass."""

from __future__ import annotations

import re

from raconvert.declared import Record
from raconvert.errors import WouldLose
from raconvert.migration.options import FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from raconvert.errors import RaconvertError

_OWN = re.compile(r"'[^']*'|\d+")  # what is different where the reason is the same
_ALLOWED = re.compile(r"\(allow with ([^)]+)\)$", re.MULTILINE)
_NEVER = re.compile(r"\(no option allows this\)$|\(refused by `--strict`\)$", re.MULTILINE)
_NAMED = re.compile(
    r"`--(?:overwrite|update|trust external|allow arrays|containers file|max-memory \w+)`"
)
_FLAG = re.compile(r"--[a-z-]+")
_KNOWN = frozenset(FLAGS.values())


class Alike(Record):
    """Files that failed for the same reason: the error of the first one, and all of them."""

    error: RaconvertError
    sources: list[str]


def alike(failed: Iterable[tuple[str, RaconvertError]]) -> list[Alike]:
    """Failures by reason; names and numbers in it do not count. The first come first."""
    found: dict[tuple[str, ...], Alike] = {}
    for source, error in failed:
        found.setdefault(_reason(error), Alike(error, [])).sources.append(source)
    return list(found.values())


def _reason(error: RaconvertError) -> tuple[str, ...]:
    texts = (error.what, error.expected, error.got, error.remedy)
    return (error.kind, *(masked(str(text)) for text in texts))


def masked(text: str) -> str:
    """A remark without the names and numbers in it, to see whether two say the same."""
    return _OWN.sub("*", text)


def flags_of(error: RaconvertError) -> str:
    """The options without which a file was refused, as `worded` takes them; empty if none helps."""
    text = error.as_written("remedy") or ""
    if _NEVER.search(text):
        return ""
    found = _ALLOWED.findall(text) if isinstance(error, WouldLose) else []
    found = found or _NAMED.findall(text)[:1]
    flags = " and ".join(dict.fromkeys(found))
    return flags if _FLAG.findall(flags) and _KNOWN.issuperset(_FLAG.findall(flags)) else ""


def advice(failed: Iterable[tuple[str, RaconvertError]]) -> dict[str, int]:
    """How many files each set of flags would let pass, as far as their headers tell."""
    counts: dict[str, int] = {}
    for _, error in failed:
        if flags := flags_of(error):
            counts[flags] = counts.get(flags, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
