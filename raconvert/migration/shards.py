"""Shards: one tree converted by many runs at once, none of which knows the others.

Run I of N takes the sources whose hash modulo N is I - 1, and has a journal of its own beside those
of the others. So every array job is a cluster, without a service that all runs need. Each run plans
the whole tree: two sources with one target collide whichever shards they are in.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256

from raconvert.declared import Record
from raconvert.errors import UsageError
from raconvert.migration.journal import NAME, read
from raconvert.migration.plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.migration.journal import Known

_MOST = 100_000  # the largest number of shards


class Shard(Record):
    """Run `number`, counted from 1, of `total`."""

    number: int
    total: int

    @property
    def text(self) -> str:
        """The shard as it is named on the command line."""
        return f"{self.number}/{self.total}"


def shard_of(text: str) -> Shard:
    """The shard that ``I/N`` names. Raises `UsageError` for another text."""
    parts = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text, re.ASCII)
    if parts is None:
        raise UsageError(
            "is not a shard", where="`--shard`", expected="I/N, for example 3/16", got=repr(text)
        )
    shard = Shard(int(parts[1]), int(parts[2]))
    if not 1 <= shard.number <= shard.total <= _MOST:
        raise UsageError(
            "is not a valid shard",
            where="`--shard`",
            expected="a number from 1 to the number of shards",
            got=text,
            remedy="shards are counted from 1; in an array job: --array=1-N",
        )
    return shard


def part_of(plan: Plan, shard: Shard) -> Plan:
    """Select the part of a plan that belongs to a shard; each source belongs to exactly one."""
    return Plan(
        [unit for unit in plan.units if _number_of(unit.source, shard.total) == shard.number],
        [pair for pair in plan.refused if _number_of(pair[0].source, shard.total) == shard.number],
        [pair for pair in plan.left_out if _number_of(pair[0], shard.total) == shard.number],
    )


def _number_of(source: str, count: int) -> int:
    """The number of the shard of a path below the source root: the same on all machines."""
    return int.from_bytes(sha256(os.fsencode(source)).digest()[:8], "big") % count + 1


def journal_of(path: str, shard: Shard) -> str:
    """Return the path of a shard's journal; `path` is the journal of a run without shards."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.{shard.number}-of-{shard.total}{ending}"


def journals(path: str) -> list[tuple[Shard, str]]:
    """List the existing journals of shards, in order; `path` is the journal without shards."""
    folder, name = os.path.split(path)
    stem, ending = os.path.splitext(name)
    pattern = re.compile(rf"{re.escape(stem)}\.([0-9]+)-of-([0-9]+){re.escape(ending)}", re.ASCII)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return sorted(
        (Shard(int(match[1]), int(match[2])), os.path.join(folder, match[0]))
        for match in map(pattern.fullmatch, names)
        if match
    )


def refuse_other_shards(own: str, shard: Shard | None, target: str) -> None:
    """Raise `UsageError` if a destination was begun with another number of shards."""
    counts = {(other.total, path) for other, path in journals(own)} | {(0, own)}
    here = shard.total if shard else 0
    others = {count for count, path in counts if count != here and _is_begun(path)}
    if others:
        count = min(others)
        how = f"in {count} shards" if count else "without shards"
        remedy = f"`--shard I/{count}`" if count else "no `--shard`"
        raise UsageError(
            f"the run that is to go on was begun {how}",
            path=target,
            expected=remedy,
            got=f"`--shard {shard.text}`" if shard else "no `--shard`",
            remedy=f"go on with {remedy}, or use another destination",
        )


def _is_begun(path: str) -> bool:
    return os.path.exists(path) and bool(read(path)[0])


def options_of_others(own: str, shard: Shard) -> dict[str, Any] | None:
    """The options that another shard was begun with; None if none was begun."""
    for other, path in journals(own):
        if other.number != shard.number and (settings := read(path)[0]):
            options: dict[str, Any] = settings["options"]
            return options
    return None


def read_all(target: str, journal: str | None = None) -> tuple[dict[str, Any], list[Known]]:
    """Read the journal of a migration, or the journals of all its shards together.

    With shards the settings have ``shards``: how many there are (``count``), and the numbers of
    those that never ran (``missing``) and of those that have not ended (``open``).
    """
    if journal is None and "://" in target:
        from raconvert.migration.remote import no_journal

        raise no_journal(target)
    own = journal or os.path.join(target, NAME)
    listed = journals(own)
    if not listed or _is_begun(own):
        return read(own)
    counts = sorted({shard.total for shard, path in listed if _is_begun(path)})
    if len(counts) > 1:
        raise UsageError(
            f"has journals of runs in {' and of runs in '.join(map(str, counts))} shards",
            path=target,
            remedy="remove the journals of those that are not meant",
        )
    if not counts:
        return {}, []
    return _merged(
        [(shard.number, *read(path)) for shard, path in listed if shard.total == counts[0]],
        counts[0],
    )


def _merged(
    parts: list[tuple[int, dict[str, Any], list[Known]]], count: int
) -> tuple[dict[str, Any], list[Known]]:
    """Merge the journals of shards: (number, settings, entries) of each, `count` shards in all."""
    begun = [(number, settings, known) for number, settings, known in parts if settings]
    numbers = {number for number, _, _ in begun}
    missing = [number for number in range(1, count + 1) if number not in numbers]
    not_ended = [number for number, settings, _ in begun if not settings.get("ended")]
    first = begun[0][1]
    merged = {
        **first,
        "began": min(settings["began"] for _, settings, _ in begun),
        "ended": None if missing or not_ended else max(s["ended"] for _, s, _ in begun),
        "units": sum(settings.get("units", 0) for _, settings, _ in begun),
        **{
            name: [item for _, settings, _ in begun for item in settings.get(name, ())]
            for name in ("left_out", "refused", "runs")
        },
        "shards": {"count": count, "missing": missing, "open": not_ended},
    }
    return merged, [entry for _, _, known in begun for entry in known]


def lines_of(shards: dict[str, Any]) -> list[str]:
    """Return the lines that report unfinished shards."""
    count = shards["count"]
    return [
        f"{'shard' if len(numbers) == 1 else 'shards'} {_ranges(numbers)} of {count} {what}"
        for numbers, what in ((shards["missing"], "never ran"), (shards["open"], "not ended"))
        if numbers
    ]


def _ranges(numbers: list[int]) -> str:
    """Write ascending numbers as ranges: 1, 3-5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
