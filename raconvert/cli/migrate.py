"""``raconvert migrate SRC_TREE DST_TREE --to FORMAT``: convert a whole tree, resumable."""

from __future__ import annotations

import os
import sys

from raconvert.arrays.dtypes import size
from raconvert.cli.console import duration, one_line, progress_of, write
from raconvert.cli.convert import value_of
from raconvert.errors import RaconvertError, UsageError, counted, worded
from raconvert.migration.options import MIGRATION
from raconvert.migration.report import PLAN, WITHIN, advice, alike, masked
from raconvert.plugin import Fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console, Progress
    from raconvert.migration.records import Outcome, Unit
    from raconvert.migration.report import Event, Migration


# The display while `migrate` runs: its plan, its progress, or events as lines of JSON ------------


class Display:
    """Display of the events of a migration; `files` is True if it takes an event for every file."""

    def __init__(self, console: Console, line: Progress | None) -> None:
        self.files: bool = console.json
        self._console = console
        self._line = line

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if self._console.json:
            if event.kind != WITHIN:
                self._console.result_line(as_json(event))
        elif event.kind == PLAN:
            for line in plan_lines(event.facts):
                self._console.note(line)
        if self._line is not None and self._line.due() is not None:
            self._line.show(one_line(state_of(event)))

    def clear(self) -> None:
        """Wipe the progress line."""
        if self._line is not None:
            self._line.clear()


def as_json(event: Event) -> dict[str, Any]:
    """Return an event as values of JSON; the facts of its kind are fields like the others."""
    fields = event._asdict()
    facts = fields.pop("facts")
    fields["event"] = fields.pop("kind")
    fields["seconds"], fields["rate"] = round(event.seconds, 3), round(event.rate)
    fields["left"] = None if event.left is None else round(event.left)
    return {"event": event.kind, **fields, **facts}


def plan_lines(facts: dict[str, Any]) -> list[str]:
    """Describe a plan in a few lines."""
    names = ", ".join(f"{count} {name}" for name, count in facts["formats"].items())
    formats = f" ({names})" if names else ""
    free = f"; {size(facts['free'])} free" if facts["free"] is not None else ""
    more = f" and {counted(facts['free_files'], 'file')}" if facts["free_files"] is not None else ""
    files = f"{facts['files']} file{'s' * (facts['files'] != 1)}"
    if facts["members"]:
        files += f", stacks of {facts['members']} among them"
    lines = [f"plan: {files}{formats}, {size(facts['nbytes'])}{free}{more}"]
    if facts["before"]:
        lines.append(f"plan: {facts['before']} are done before")
    if facts["refused"]:
        lines.append(f"plan: {facts['refused']} cannot be converted")
    for reason, count in facts["left_out"].items():
        lines.append(f"plan: {count} left out: {reason}")
    for refusal in facts.get("refusals", ()):
        error = "; ".join(line.strip() for line in refusal["error"].splitlines())
        error = error.removesuffix("; nothing was written")
        looked = f"{refusal['files']} of {counted(facts['looked_at'], 'file')} looked at"
        lines.append(f"plan: {looked} cannot be converted: {error}")
    return lines


def state_of(event: Event) -> str:
    """Return the progress of a migration in one line."""
    parts = [f"{event.done} of {counted(event.total, 'file')}"]
    if event.failed:
        parts.append(f"{event.failed} failed")
    parts.append(f"{size(event.nbytes)} of {size(event.nbytes_total)}")
    parts.append(f"{size(int(event.rate))}/s")
    if event.left is not None:
        parts.append(f"{duration(event.left)} left")
    if event.running:
        more = f" and {len(event.running) - 1} more" if len(event.running) > 1 else ""
        parts.append(f"at {event.running[0]}{more}")
        if event.kind == WITHIN and event.facts["nbytes_total"]:
            parts[-1] += f" ({100 * event.facts['nbytes'] // event.facts['nbytes_total']} %)"
    return ", ".join(parts)


def run(args: Any, console: Console) -> int:
    """Migrate a tree, or print how far a migration is; exit code 1 if a file failed."""
    if args.status is not None:
        return _print_status(args, console)
    if len(args.trees) != 2 or args.to is None:
        raise UsageError(
            "a migration has a source tree, a destination and a format",
            remedy="usage: raconvert migrate SRC_TREE DST_TREE --to FORMAT",
        )
    from raconvert.migration.driver import migrate

    named = {option.name: value_of(option, getattr(args, option.name)) for option in MIGRATION}
    display = Display(console, progress_of(args, console, args.trees[1]))
    try:
        result = migrate(*args.trees, to=args.to, progress=display, **named)
    finally:
        display.clear()
    return _print_result(result, console)


def _print_status(args: Any, console: Console) -> int:
    """Print how far the migration into a tree is, and write its certificate with --report."""
    from raconvert.migration.resume import status

    facts = status(args.status, args.journal)
    if args.report:
        from raconvert.migration.certificate import write_certificate

        paths = write_certificate(args.report, args.status, args.journal, overwrite=args.overwrite)
        console.note(f"wrote {' and '.join(paths)}")
    if console.json:
        console.result_json(facts)
    else:
        for line in facts["lines"]:
            console.result(one_line(line))
    return RaconvertError.exit_code if facts["failed"] else 0


def _print_result(result: Migration, console: Console) -> int:
    """Print the remarks, failures and totals of a migration; return the exit code."""
    failed = result.failed
    if not console.json:  # with --json, the last event has all of it
        for note in result.notes:
            console.note(note)
        if console.verbose:  # the plan has their number and the reasons
            for path, reason in result.left_out:
                console.note(f"left out: {path}: {reason}")
        _print_remarks(result.outcomes, console)
        _print_failures(failed, result.source, console)
        if failed or not console.quiet:
            console.result(one_line(str(result)))
    return RaconvertError.exit_code if failed else 0


def _print_remarks(outcomes: list[tuple[Unit, Outcome]], console: Console) -> None:
    """Print each remark once, with the first file that it is about and the number of others."""
    about: dict[str, tuple[str, list[str]]] = {}
    for unit, outcome in outcomes:
        for kind, items in (outcome.said or {}).items():
            for item in items:
                if unit.members and _is_usual(item):
                    continue
                fit = None if kind == "notes" else Fit(*item)
                named = fit is not None and kind == "allowed" and _is_left_out(fit, unit)
                text = item if fit is None else _text_of(kind, fit, named=named)
                key = text if unit.members or named else masked(text)
                about.setdefault(key, (text, []))[1].append(unit.source)
    lines = []
    for text, sources in about.values():
        more = f" (and {len(sources) - 1} more files)" if len(sources) > 1 else ""
        lines.append(f"{sources[0]}{more}: {text}")
    console.notes(lines)


def _is_left_out(fit: Fit, unit: Unit) -> bool:
    """True for lost elements of an array whose name is not that of its file."""
    stem = os.path.splitext(os.path.basename(unit.source))[0]
    return fit.property == "elements" and fit.array not in ("", stem)


def _text_of(kind: str, fit: Fit, *, named: bool) -> str:
    """The words for a change or loss; the array only if it is to be `named`."""
    return f"{kind}: {fit._replace(array=fit.array if named else '', flag=None)}"


def _is_usual(item: object) -> bool:
    """True for a note on a stack without gaps and duplicates."""
    return isinstance(item, str) and item.startswith("stacking ") and item.endswith(" order)")


def _print_failures(failed: list[tuple[str, RaconvertError]], root: str, console: Console) -> None:
    """Print each reason once, with all files that failed for it, and the flags that allow them."""
    for error, (first, *others) in alike(failed):
        error.path = error.path or first
        if not error.path.startswith(root):
            error.add_note(f"source: {first}")
        console.error(error)
        if others:
            names = "".join(f"\n  {one_line(name)}" for name in others)
            write(sys.stderr, f"{len(others)} more for the same reason:{names}\n")
    for flags, count in advice(failed).items():
        files = "file" if count == 1 else "files"
        console.error(RaconvertError(f"{count} {files} would pass with {worded(flags)}"))
