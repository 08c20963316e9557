"""Which engine carries out the batches of a migration, by its options."""

from __future__ import annotations

import os

from raconvert.errors import UsageError
from raconvert.migration import pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.migration.batches import Batches
    from raconvert.migration.records import Batch, Job, Outcome

_OPTIONS = {
    "jobs": "`--jobs`", "scheduler": "`--scheduler`", "scheduler_file": "`--scheduler-file`",
}  # fmt: skip


def check(options: dict[str, Any]) -> None:
    """Raise `UsageError` where options ask for two engines, or for one that cannot be."""
    asked = [name for name in _OPTIONS if options[name] is not None]
    if len(asked) > 1:
        raise UsageError(
            f"{' and '.join(_OPTIONS[name] for name in asked)} exclude each other",
            remedy="a cluster has as many workers as were started for it",
        )
    check_timeout(options["file_timeout"], cluster=bool(asked) and asked != ["jobs"])
    if options["scheduler"] is not None:
        from raconvert.migration.schedulers import check_address

        check_address(options["scheduler"])


def check_timeout(seconds: float | None, *, cluster: bool) -> None:
    """Raise `UsageError` for a time that is none, and where nobody can end a worker."""
    if seconds is None:
        return
    if not 0 < seconds < float("inf"):
        raise UsageError(
            "`--file-timeout` is not a valid time", expected="seconds, more than 0", got=seconds
        )
    if cluster or os.name == "nt":
        raise UsageError(
            "`--file-timeout` needs worker processes that can be ended: those of `--jobs`, on a "
            "POSIX system"
        )


def carried_out(
    job: Job, batches: Batches, options: dict[str, Any]
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units."""
    address, file = options["scheduler"], options["scheduler_file"]
    if options["dry_run"] or (address is None and file is None):
        return pool.carried_out(job, batches, options["jobs"], options["file_timeout"])
    from raconvert.migration import cluster

    return cluster.carried_out(job, batches, address, file)
