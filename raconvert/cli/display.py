"""What `migrate` shows while it runs: its plan, how far it is, or events as lines of JSON."""

from __future__ import annotations

from raconvert.arrays.dtypes import size
from raconvert.cli.console import duration, one_line
from raconvert.errors import counted
from raconvert.migration.progress import PLAN, WITHIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console, Progress
    from raconvert.migration.progress import Event


class Display:
    """Shows the events of a migration; `files`: it is to be told of every file."""

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
        """Wipe the line that says how far it is."""
        if self._line is not None:
            self._line.clear()


def as_json(event: Event) -> dict[str, Any]:
    """An event as values of JSON; what belongs to its kind among the rest."""
    fields = event._asdict()
    facts = fields.pop("facts")
    fields["event"] = fields.pop("kind")
    fields["seconds"], fields["rate"] = round(event.seconds, 3), round(event.rate)
    fields["left"] = None if event.left is None else round(event.left)
    return {"event": event.kind, **fields, **facts}


def plan_lines(facts: dict[str, Any]) -> list[str]:
    """A plan in a few lines."""
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
    for one in facts.get("refusals", ()):
        error = "; ".join(line.strip() for line in one["error"].splitlines())
        error = error.removesuffix("; nothing was written")
        looked = f"{one['files']} of {counted(facts['looked_at'], 'file')} looked at"
        lines.append(f"plan: {looked} cannot be converted: {error}")
    return lines


def state_of(event: Event) -> str:
    """How far a migration is, in one line."""
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
