"""The result of a migration."""

from __future__ import annotations

from raconvert.errors import worded
from raconvert.files.processes import decoded, shown
from raconvert.migration.failures import advice
from raconvert.migration.records import DONE, FAILED, PLANNED, SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.errors import RaconvertError
    from raconvert.migration.records import Outcome, Unit


class Migration:
    """The result of `migrate`: what became of the files of a tree.

    `source` and `target` are the roots; `outcomes` (unit, outcome) of what was done in this run;
    `before` those of earlier runs that are proven to be there; `left_out` (path, reason) of files
    that hold no array; `notes` remarks on the run as a whole; `seconds` how long it took.
    """

    def __init__(self, source: str, target: str, to: str) -> None:
        self.source: str = source
        self.target: str = target
        self.to: str = to
        self.outcomes: list[tuple[Unit, Outcome]] = []
        self.before: list[tuple[Unit, Outcome]] = []
        self.left_out: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.options: dict[str, Any] = {}
        self.planned: bool = False
        self.seconds: float = 0.0

    def of_state(self, state: str) -> list[tuple[Unit, Outcome]]:
        """What was done in this run and ended so: DONE, FAILED, SKIPPED or PLANNED."""
        return [(unit, outcome) for unit, outcome in self.outcomes if outcome.state == state]

    @property
    def failed(self) -> list[tuple[str, RaconvertError]]:
        """The sources that were not converted, and why."""
        return [(u.source, decoded(o.error or {})) for u, o in self.of_state(FAILED)]

    @property
    def done(self) -> int:
        """How many units are there as they should be, those of earlier runs included."""
        return len(self.of_state(DONE)) + len(self.before)

    def __str__(self) -> str:
        counts = [
            (len(self.of_state(DONE)), "converted"),
            (len(self.of_state(PLANNED)), "would be converted"),
            (len(self.before), "done before"),
            (len(self.of_state(SKIPPED)), "kept"),
            (len(self.of_state(FAILED)), "failed"),
            (len(self.left_out), "left out"),
        ]
        parts = [f"{count} {word}" for count, word in counts if count]
        return f"{self.target}: {', '.join(parts) or 'nothing to do'}"

    def to_plain(self) -> dict[str, Any]:
        """The result as values of JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "to": self.to,
            "done": self.done,
            "planned": len(self.of_state(PLANNED)),
            "failures": [
                {"path": unit.source, "error": shown(outcome.error)}
                for unit, outcome in self.of_state(FAILED)
            ],
            "advice": {worded(flags): count for flags, count in advice(self.failed).items()},
            "left_out": [{"path": path, "reason": reason} for path, reason in self.left_out],
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }
