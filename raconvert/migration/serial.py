"""The engine without workers: batches are carried out one after the other in this process."""

from __future__ import annotations

import os
from time import perf_counter

from raconvert import registry
from raconvert.migration.work import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.migration.batches import Batches
    from raconvert.migration.records import Batch, Job, Outcome


def carried_out(
    job: Job, batches: Batches, most: float | None, least: float = 0.0
) -> Iterator[tuple[Batch, list[Outcome]]]:
    """Yield each batch with the outcomes of its units, in their order.

    Ends before a batch that could end this process, and when there is work left for more than
    `most` seconds; that is known well after `least` seconds of work, and does not count before.
    """
    worker = Worker(job, batches.within)
    safe = _Safe(job.options["from_"])
    spent = 0.0
    while most is None or spent < least or batches.seconds_left < most:
        batch = batches.take()
        if batch is None:
            return
        if not safe(batch):
            batches.handed_back(batch)
            return
        begin = perf_counter()
        outcomes = worker.carry_out(batch)
        seconds = perf_counter() - begin
        spent += seconds
        batches.done(batch, seconds)
        yield batch, outcomes


class _Safe:
    """Whether no unit of a batch can end the process that reads it; by suffix, asked once each."""

    def __init__(self, from_: str | None) -> None:
        self._known: dict[str, bool] = {}
        self._row = registry.by_name(from_) if from_ else None

    def __call__(self, batch: Batch) -> bool:
        return os.name == "nt" or all(
            self._one(name) for unit in batch.units for name in unit.members or (unit.source,)
        )

    def _one(self, name: str) -> bool:
        ending = os.path.splitext(name)[1].lower()
        known = self._known.get(ending)
        if known is None:
            row = self._row or registry.by_suffix("x" + ending)
            known = row is not None and not row.native and not row.many
            self._known[ending] = known
        return known
