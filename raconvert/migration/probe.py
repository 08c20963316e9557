"""A look at the headers of some files before the work: what is refused there is refused for many.

One file of each size and suffix is planned, at most one of `_SHARE` files; alike ones come from the
same instrument. What it finds is said with the plan; the files themselves are refused when it is
their turn.
"""

from __future__ import annotations

import os

from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.errors import RaconvertError, worded
from raconvert.files.places import write_failed
from raconvert.files.processes import decoded
from raconvert.migration.failures import alike, flags_of
from raconvert.migration.records import FAILED, Batch, Outcome
from raconvert.migration.work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.migration.records import Job, Unit

_MOST, _FEW, _SHARE = 256, 16, 64


def probed(job: Job, units: Sequence[Unit]) -> dict[str, Any]:
    """What would be refused of some files: how many were looked at, and the reasons, plain."""
    chosen = _chosen(units)
    worker = Worker(job._replace(options={**job.options, "dry_run": True, "verify": False}))
    jobs = Jobs(lambda number: list(worker.carry_out(Batch(0, [chosen[number]]))[0]))
    paths = [os.path.join(job.source, unit.source) for unit in chosen]
    failed = []
    for unit, found in zip(chosen, outcomes(paths, jobs, fewest=1), strict=True):
        if isinstance(found, OSError):
            found = write_failed(unit.source, found)  # noqa: PLW2901
        if isinstance(found, RaconvertError):  # it has ended the process that read it
            failed.append((unit.source, found))
        elif (outcome := Outcome(*found)).state == FAILED:
            failed.append((unit.source, decoded(outcome.error or {})))
    refusals = [
        {"error": str(one.error), "flags": worded(flags_of(one.error)), "files": len(one.sources),
         "first": one.sources[0]}
        for one in alike(failed)
    ]  # fmt: skip
    return {"looked_at": len(chosen), "refusals": refusals}


def _chosen(units: Sequence[Unit]) -> list[Unit]:
    """One unit of each suffix and size, up to a limit; stacks are not looked at."""
    most = min(_MOST, max(_FEW, len(units) // _SHARE))
    found: dict[tuple[str, int], Unit] = {}
    for unit in units:
        if len(found) == most:
            break
        if not unit.members:
            found.setdefault((os.path.splitext(unit.source)[1], unit.size), unit)
    return list(found.values())
