"""Remaining work of an interrupted or earlier run.

A source is finished when the journal says so, it has not changed since, and its target is there as
it was written: by size and time, else by its SHA-256. A target that was cut off or is damaged is
written again; one that somebody has changed is left alone, unless it may be overwritten.
"""

from __future__ import annotations

import os
from collections import Counter
from time import localtime, strftime

from raconvert.declared import Record
from raconvert.errors import RaconvertError, TargetExists, UsageError, counted
from raconvert.files.source import read_failed
from raconvert.metadata.sidecar import added
from raconvert.migration.records import DONE, FAILED, SKIPPED, Outcome, Unit, target_of
from raconvert.migration.shards import lines_of, read_all
from raconvert.migration.work import digest_of
from raconvert.workers.worker import decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.migration.journal import Known


class Resumed(Record):
    """The units of a plan, by what an earlier run has done of them."""

    left: list[Unit]
    done: list[tuple[Unit, Outcome]]
    refused: list[tuple[Unit, RaconvertError]]
    notes: list[str]


def resumed(
    target: str,
    units: Sequence[Unit],
    known: dict[str, Known],
    options: dict[str, Any],
) -> Resumed:
    """Sort the units of a plan into left to do, done and refused; `known` is from the journal."""
    result = Resumed([], [], [], [])
    if not known:
        result.left.extend(units)
        return result
    for unit in units:
        before = known.get(unit.source)
        if before is None:
            result.left.append(unit)
        elif before.outcome is None:
            # Its batch was begun: an existing target is newer than that, or not ours.
            result.left.append(unit._replace(replaces=2))
        elif before.outcome.state not in (DONE, SKIPPED):
            result.left.append(unit)
        else:
            path = os.path.join(target, target_of(unit, before.outcome))
            _settle(unit, before.unit, before.outcome, path, options, result)
    return result


def _settle(
    unit: Unit,
    before: Unit,
    outcome: Outcome,
    path: str,
    options: dict[str, Any],
    result: Resumed,
) -> None:
    """Add a unit that was finished before to `result`: done, left to do or refused."""
    changed = (unit.size, unit.mtime, unit.members) != (
        before.size, before.mtime, before.members
    )  # fmt: skip
    if changed and (options["update"] or options["overwrite"]):
        result.left.append(unit._replace(replaces=1))
    elif changed:
        result.refused.append((unit, TargetExists(
            "source has changed since it was converted",
            path=unit.source,
            remedy="use `--update` to convert it again",
        )))  # fmt: skip
    elif outcome.state == SKIPPED:
        result.left.append(unit)
    else:
        _prove(unit, outcome, path, options, result)


def _prove(
    unit: Unit, outcome: Outcome, path: str, options: dict[str, Any], result: Resumed
) -> None:
    """Add a unit to `result` by its target, a path: done, left to do or refused."""
    if "://" in path:
        _prove_remote(unit, outcome, path, options, result)
        return
    name = target_of(unit, outcome)
    try:
        status = os.stat(path)
        whole = os.path.isdir(path) or status.st_size == outcome.size
        same_time = whole and status.st_mtime_ns == outcome.mtime
        if same_time and not options["paranoid"]:
            result.done.append((unit, outcome))
            return
        size, digest = digest_of(path)
        partner = _changed_partner(path.removesuffix(name), outcome, name)
    except RaconvertError as error:
        result.refused.append((unit, error))
        return
    except (FileNotFoundError, NotADirectoryError):
        result.left.append(unit)
        result.notes.append(f"'{name}' is not there any more, and is written again")
        return
    except OSError as error:
        result.refused.append((unit, read_failed(path, error)))
        return
    if digest == outcome.digest and not partner:
        result.done.append((unit, outcome))
        return
    if size < outcome.size:
        state = "cut off"
    elif same_time and not partner:
        state = "damaged"
    elif options["overwrite"]:
        state = "changed"
    else:
        result.refused.append((unit, _was_changed(partner or path)))
        return
    result.left.append(unit._replace(replaces=1))
    result.notes.append(f"'{name}' is {state}, and is written again")


def _prove_remote(
    unit: Unit, outcome: Outcome, path: str, options: dict[str, Any], result: Resumed
) -> None:
    """Add a unit to `result` by its target, a URL: done, left to do or refused."""
    from raconvert.migration.remote import state_of

    name = target_of(unit, outcome)
    state = state_of(path.removesuffix(f"/{name}"), outcome, name, paranoid=options["paranoid"])
    if state == "same":
        result.done.append((unit, outcome))
    elif state == "gone":
        result.left.append(unit)
        result.notes.append(f"'{name}' is not there any more, and is written again")
    elif state in ("cut off", "not proven") or options["overwrite"]:
        result.left.append(unit._replace(replaces=1))
        result.notes.append(f"'{name}' is {state}, and is written again")
    else:
        result.refused.append((unit, _was_changed(path)))


def _was_changed(path: str) -> TargetExists:
    return TargetExists(
        "was changed since it was written, and is left as it was",
        path=path,
        remedy="use `--overwrite` to write it again",
    )


def _changed_partner(root: str, outcome: Outcome, target: str) -> str:
    """The path of the first partner file of a target that is not as it was written; else empty.

    A sidecar that somebody has put beside the target is one of them.
    """
    for path, _, digest in outcome.files:
        partner = os.path.join(root, path)
        if path.startswith(target + "/"):  # the digest of a folder covers all files in it
            return ""
        if not os.path.isfile(partner) or digest_of(partner)[1] != digest:
            return partner
    partner = os.path.join(root, target)
    return added(partner, {os.path.join(root, path) for path, _, _ in outcome.files})


# The state of a migration, while it runs and later, by its journal alone -------------------------


def status(target: str, journal: str | None = None) -> dict[str, Any]:
    """Counts and failures of the migration into a tree, and `lines` of text that show them.

    Raises `UsageError` if there is no journal, `Corrupt` if it is not one.
    """
    settings, entries = read_all(target, journal)
    if not settings:
        raise UsageError("a migration has just begun here, and has nothing to tell", path=target)
    shards = settings.get("shards")
    outcomes = [(entry.unit.source, entry.outcome) for entry in entries]
    counts = Counter("at work" if outcome is None else outcome.state for _, outcome in outcomes)
    failed = [
        (source, str(decoded(outcome.error or {})))
        for source, outcome in outcomes
        if outcome is not None and outcome.state == FAILED
    ]
    nbytes = sum(outcome.size for _, outcome in outcomes if outcome is not None)
    ended = settings.get("ended")
    total = settings.get("units", len(entries))
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
