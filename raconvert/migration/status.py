"""How far a migration is, while it runs and after: from its journal alone."""

from __future__ import annotations

from collections import Counter
from time import localtime, strftime

from raconvert.errors import UsageError, counted
from raconvert.files.processes import decoded
from raconvert.migration.records import FAILED
from raconvert.migration.shards import lines_of, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def status(target: str, journal: str | None = None) -> dict[str, Any]:
    """Counts and failures of the migration into a tree, with lines that say them.

    Raises `UsageError` if there is no journal, `Corrupt` if it is not one.
    """
    settings, known = read_all(target, journal)
    if not settings:
        raise UsageError("a migration has just begun here, and has nothing to tell", path=target)
    shards = settings.get("shards")
    counts = Counter("at work" if one.outcome is None else one.outcome.state for one in known)
    failed = [
        (one.unit.source, str(decoded(one.outcome.error or {})))
        for one in known
        if one.outcome is not None and one.outcome.state == FAILED
    ]
    nbytes = sum(one.outcome.size for one in known if one.outcome is not None)
    ended = settings.get("ended")
    total = settings.get("units", len(known))
    lines = [
        f"{target}: {settings['options']['source']} to {settings['options']['to']}",
        f"begun {_time(settings['began'])}, " + (f"ended {_time(ended)}" if ended else "not ended"),
        ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        + f", of {counted(total, 'file')}; {counted(nbytes, 'byte')} written",
        *(lines_of(shards) if shards else ()),
        *(f"failed: {error}" for _, error in failed),
    ]
    return {
        "target": target,
        "options": settings["options"],
        "began": settings["began"],
        "ended": ended,
        "counts": dict(counts),
        "units": total,
        **({"shards": shards} if shards else {}),
        "nbytes": nbytes,
        "failed": [{"path": path, "error": error} for path, error in failed],
        "lines": lines,
    }


def _time(seconds: float) -> str:
    return strftime("%Y-%m-%d %H:%M:%S", localtime(seconds))
