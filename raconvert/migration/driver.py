"""`migrate`: plan a tree, have workers convert it, and record what became of every file."""

from __future__ import annotations

import os
from time import time

from raconvert import __version__, registry
from raconvert.conversion.options import Settings, check_jobs, normalized
from raconvert.conversion.outputs import check_values
from raconvert.declared import accepts
from raconvert.errors import UsageError, flags_named
from raconvert.files.names import folded
from raconvert.files.paths import make_folders, mark_temporaries, write_failed
from raconvert.migration import journal as journals
from raconvert.migration import killpoints, pool, shards
from raconvert.migration.batches import Batches, left_alone, looked_at_seldom
from raconvert.migration.checksums import update_checksums
from raconvert.migration.journal import Journal
from raconvert.migration.options import (
    FINGERPRINT,
    FLAGS,
    MIGRATION,
    OF_CONVERSION,
    Migrating,
)
from raconvert.migration.plan import (
    Plan,
    case_counts,
    check_space,
    facts_of,
    planned,
    refuse_common_folders,
    refuse_overlap,
    refused_targets,
)
from raconvert.migration.records import DONE, FAILED, Batch, Job, Outcome, Unit
from raconvert.migration.report import Event, Migration, Progress, probed
from raconvert.migration.resume import Resumed, resumed
from raconvert.migration.tree import walk
from raconvert.migration.work import clear, clock_of, new_mark
from raconvert.workers.worker import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Unpack

    from raconvert.catalogue import Row


# Which engine carries out the batches of a migration, by its options -----------------------------


_OPTIONS = {
    "jobs": "`--jobs`", "scheduler": "`--scheduler`", "scheduler_file": "`--scheduler-file`",
}  # fmt: skip


def check_engine(options: dict[str, Any]) -> None:
    """Raise `UsageError` if options ask for two engines, or for one that cannot run."""
    asked = [name for name in _OPTIONS if options[name] is not None]
    if len(asked) > 1:
        raise UsageError(
            f"{' and '.join(_OPTIONS[name] for name in asked)} exclude each other",
            remedy="a cluster has as many workers as were started for it",
        )
    check_timeout(options["file_timeout"], cluster=bool(asked) and asked != ["jobs"])
    if options["scheduler"] is not None:
        from raconvert.migration.cluster import check_address

        check_address(options["scheduler"])


def check_timeout(seconds: float | None, *, cluster: bool) -> None:
    """Raise `UsageError` for a value that is not a time, and if nothing could end a worker."""
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


# The roots of two trees: folders of this machine, or URLs (`raconvert.migration.remote`) ---------


def root_of(word: str) -> str:
    """The root of a tree as the user names it: an absolute path, or a URL."""
    if "://" not in word:
        return os.path.abspath(word)
    from raconvert.migration.remote import root_of

    return root_of(word)


def is_url(*roots: str) -> bool:
    """True if one of the roots is a URL; an absolute path has no two slashes in a row."""
    return any("://" in root for root in roots)


def check(source: str, target: str, options: dict[str, Any]) -> None:
    """Raise `UsageError` for trees and options that do not go with a tree at a URL."""
    if is_url(source, target):
        from raconvert.migration.remote import check

        check(source, target, options)


_USUAL: dict[str, Any] = {option.name: option.default for option in MIGRATION}


@accepts(MIGRATION, listed=True)
def migrate(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    to: str,
    progress: Callable[[Event], object] | None = None,
    **options: Unpack[Migrating],
) -> Migration:
    """Convert every array file of a tree into another format, and mirror the tree.

    One bad file never stops the others. Interrupted in any way, the same call goes on where it
    was; the journal says what is finished. `progress` is called with an `Event` (done, total,
    failed, nbytes, rate, left) for the plan, every batch and every file.

    >>> result = raconvert.migrate("lab", "lab-ra", to="ra", jobs=1)
    >>> result.done, result.failed
    (2, [])

    Raises `UsageError` for trees that overlap, a disk that is too full, and options that differ
    from those of the run that is to go on; `TargetExists` while another run is at work here.

    The options, as on the command line:
    """
    begin = time()
    all_options = {**_USUAL, **normalized(options)}
    run = _Run(root_of(os.fspath(src)), root_of(os.fspath(dst)), to, all_options)
    run.progress = Progress(progress)
    with left_alone() as run.keep:
        run.carry_out()
    run.result.seconds = time() - begin
    run.progress.ended(run.result.to_plain)
    return run.result


class _Run:
    """One run of `migrate`, stage by stage."""

    def __init__(self, source: str, target: str, to: str, options: dict[str, Any]) -> None:
        self.source = source
        self.target = target
        self.options = options
        self.row: Row = registry.target_row("", to)
        of_values = ("out_opts", "dtype", "scale", "axes")
        check_values(self.row, Settings(**{name: options[name] for name in of_values}))
        self.progress = Progress(None)
        self.clock: Callable[[], float] = time
        # Called when the plan is made: `left_alone` leaves it out of garbage collection.
        self.keep: Callable[[], object] = bool
        self.result = Migration(source, target, self.row.name)
        self.result.options = {name: options[name] for name in FINGERPRINT}
        self.shard = shards.shard_of(options["shard"]) if options["shard"] is not None else None
        # Refuse options that contradict each other before the tree is read.
        Settings(**{name: options[name] for name in OF_CONVERSION})
        check_jobs(options["jobs"])
        check_engine(options)
        check(source, target, options)

    def carry_out(self) -> None:
        """Plan, then convert; with ``dry_run`` the plan is all, and nothing is written."""
        refuse_overlap(self.source, self.target)
        self.progress.began({"source": self.source, "target": self.target, "to": self.row.name,
                             "raconvert": __version__})  # fmt: skip
        plan = self._planned()
        if self.options["dry_run"]:
            self.result.planned = True
            if self.options["report"]:
                self.result.notes.append("a dry run has no certificate: none was written")
            self.progress.planned(plan.units, 0, lambda: facts_of(plan, self.target))
            self._convert(plan.units, None, self._job({}))
            return
        journal_path = self._journal()
        if not os.path.exists(journal_path):  # otherwise only what is left to do is counted
            check_space(self.target, plan.units)
        try:
            if not is_url(self.target):
                make_folders(self.target)
        except OSError as error:
            raise write_failed(self.target, error) from error
        if self.options["report"]:
            from raconvert.migration.certificate import check_place

            check_place(self.options["report"], overwrite=self.options["overwrite"])
        self.clock = clock_of(self.target)
        with Journal(journal_path) as journal:
            if journal.note:
                self.result.notes.append(journal.note)
            job = self._settled(journal)
            left = self._what_is_left(plan, journal)
            check_space(self.target, left.left)
            self._clear_after_a_killed_run(journal, job, plan, left)
            self._note_run(plan, journal)
            self.progress.planned(
                left.left,
                len(left.done),
                lambda: {
                    **facts_of(plan, self.target, len(left.done)),
                    **(probed(job, left.left) if self._may_probe(job) else {}),
                },
            )
            self.keep()
            killpoints.reached("planned", 0)
            self._convert(left.left, journal, job)
            self.keep()
            finished = [*self.result.before, *self.result.of_state(DONE)]
            before = mark_temporaries(job.mark)
            try:
                note = update_checksums(self.target, finished, shared=self.shard is not None)
            finally:
                mark_temporaries(before)
            self.result.notes += [note] if note else []
            journal.set({"ended": time()})
        if self.options["report"]:
            from raconvert.migration.certificate import write_certificate

            write_certificate(
                self.options["report"],
                self.target,
                self.options["journal"],
                overwrite=self.options["overwrite"],
            )

    def _clear_after_a_killed_run(
        self, journal: Journal, job: Job, plan: Plan, left: Resumed
    ) -> None:
        """Remove the temporary files that the workers of a run that did not end have left."""
        ended = journal.settings().get("ended") is not None
        everywhere = not (ended or is_url(self.target))
        units = plan.units if everywhere else [unit for unit in left.left if unit.replaces]
        clear(self.target, job.mark, units)

    def _may_probe(self, job: Job) -> bool:
        """True if headers can be read soon: the tree is local, and no file is expected to hang."""
        return "://" not in self.source and not job.timed

    def _note_run(self, plan: Plan, journal: Journal) -> None:
        """Record in the journal what this run is about to do, left out and refused."""
        run: dict[str, Any] = {"began": time(), "raconvert": __version__}
        if self.options["report"]:
            from raconvert.migration.certificate import versions

            run.update(versions())
        journal.set({
            "units": len(plan.units) + len(plan.refused),
            "ended": None,
            "left_out": plan.left_out,
            "refused": [[*unit, *outcome] for unit, outcome in self.result.outcomes],
            "runs": [*journal.settings().get("runs", ()), run],
        })  # fmt: skip

    def _journal(self) -> str:
        """The path of the journal. Raises `UsageError` if the runs before had other shards."""
        journal = self.options["journal"] or os.path.join(self.target, journals.NAME)
        journal = os.path.abspath(journal)
        shards.refuse_other_shards(journal, self.shard, self.target)
        if self.shard is None:
            return journal
        others = shards.options_of_others(journal, self.shard)
        if others:
            _refuse_other_options(others, self._what_must_stay(), self.target)
        return shards.journal_of(journal, self.shard)

    def _what_must_stay(self) -> dict[str, Any]:
        """Return the settings that must be the same when a run is resumed."""
        return {"source": self.source, "to": self.row.name, **self.result.options}

    def _planned(self) -> Plan:
        with looked_at_seldom():
            return self._plan_of_tree()

    def _plan_of_tree(self) -> Plan:
        options = self.options
        tree = walk(
            self.source,
            from_=options["from_"],
            include=options["include"],
            exclude=options["exclude"],
        )
        plan = planned(
            tree,
            self.row,
            stack_folders=options["stack_folders"],
            stack_classes=options["stack_classes"],
            containers=options["containers"],
            key=os.path.normcase if case_counts(self.target) else folded,
        )
        if not is_url(self.source, self.target):
            refuse_common_folders(self.source, tree.folders, self.target, plan.units)
        if options["overwrite"] or options["update"]:
            plan = plan.without(refused_targets(self.source, self.target, plan.units))
        if self.shard is not None:
            plan = shards.part_of(plan, self.shard)
        self.result.left_out = plan.left_out
        for unit, error in plan.refused:
            self._add(unit, Outcome(FAILED, error=encoded(error)))
        return plan

    def _settled(self, journal: Journal) -> Job:
        """Return the job, of this run or of the one that goes on; refuse to go on with others."""
        wanted = self._what_must_stay()
        settings = journal.settings()
        if settings:
            _refuse_other_options(settings["options"], wanted, self.target)
        else:
            settings = {"version": journals.VERSION, "options": wanted, "began": self.clock(),
                     "raconvert": __version__, "mark": new_mark()}  # fmt: skip
            journal.set(settings)
        return self._job(settings)

    def _job(self, settings: dict[str, Any]) -> Job:
        """The job by the settings in the journal, which are empty for a dry run."""
        options = {name: self.options[name] for name in OF_CONVERSION}
        began, mark = settings.get("began", 0.0), settings.get("mark", "")
        certified = bool(self.options["report"])
        timed = self.options["file_timeout"] is not None
        return Job(self.source, self.target, self.row.name, options, began, mark, certified, timed,
                   flags_named())  # fmt: skip

    def _what_is_left(self, plan: Plan, journal: Journal) -> Resumed:
        left = resumed(self.target, plan.units, journal.known(), self.options)
        self.result.before = left.done
        self.result.notes += left.notes
        for unit, error in left.refused:
            self._add(unit, Outcome(FAILED, error=encoded(error)))
        return left

    def _convert(self, units: Sequence[Unit], journal: Journal | None, job: Job) -> None:
        def begin(batch: Batch) -> None:
            if journal is not None:
                journal.begin(batch)
            self.progress.handed_out(batch)

        batches = Batches(units, self.options["batch_seconds"], begin, self.clock)
        batches.within = self.progress.within
        for batch, outcomes in carried_out(job, batches, self.options):
            if journal is not None:
                journal.end(batch, outcomes)
            self.result.outcomes += zip(batch.units, outcomes, strict=True)
            self.progress.carried_out(batch, outcomes)

    def _add(self, unit: Unit, outcome: Outcome) -> None:
        self.result.outcomes.append((unit, outcome))
        self.progress.file(unit, outcome)


def _refuse_other_options(before: dict[str, Any], now: dict[str, Any], target: str) -> None:
    """Raise `UsageError` if a run is to go on with options that change its results."""
    different = [name for name in now if _as_recorded(now[name]) != _as_recorded(before.get(name))]
    if different:
        name = different[0]
        raise UsageError(
            "the run that is to go on has other options: "
            + ", ".join(f"`{FLAGS.get(name, name)}`" for name in different),
            path=target,
            expected=f"`{FLAGS.get(name, name)}` {before.get(name)!r}, as in the run before",
            got=repr(now[name]),
            remedy="use the same options, or another destination",
        )


def _as_recorded(value: Any) -> Any:
    """A value as JSON gives it back; None for an empty dict: both mean that no option is given."""
    if isinstance(value, tuple):
        return list(value)
    return None if value == {} else value
