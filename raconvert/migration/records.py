"""Messages between driver and workers: units of work, the job they belong to, outcomes.

All of it is made of texts, numbers, lists and dicts, so that it travels as JSON.
"""

from __future__ import annotations

import json

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

LOST = "lost"  # key of an error: the target is there, but may not be whole on the disk
DONE, FAILED, SKIPPED, PLANNED = "done", "failed", "skipped", "planned"


class Unit(Record):
    """A unit of work that becomes one target: a file, or the images of a folder."""

    source: str  # path below the source root, with "/"; for a stack, its folder
    target: str  # path below the target root
    size: int  # bytes of the source
    mtime: int  # nanoseconds; time of change of the source; for a stack or folder, the newest
    members: tuple[str, ...] = ()  # names of the images of a stack, in order
    replaces: int = 0  # 1: replace an existing target; 2: only one that an older run left
    # Target of a container if it has several arrays; if this is `target`, whatever it has.
    folder: str = ""


class Job(Record):
    """Settings that all units of a run share."""

    source: str  # the root of the source tree, absolute, or a URL
    target: str
    to: str  # name of the target format
    options: dict[str, Any]  # options of `raconvert.convert`
    since: float = 0.0  # start of the interrupted run, in seconds since 1970
    mark: str = ""  # part of the names of temporary files (`work.clear`)
    certified: bool = False  # True if a certificate is wanted, with the digests of sources
    timed: bool = False  # True if workers report each file, and signs of life within it
    flags: bool = False  # True if messages name options as the command line does


class Outcome(Record):
    """The outcome of one unit."""

    state: str  # DONE, FAILED, SKIPPED or PLANNED
    size: int = 0  # bytes of the target
    mtime: int = 0  # nanoseconds; time of change of the target
    digest: str = ""  # hexadecimal SHA-256 of the target; for folders see `work.digest_of`
    error: dict[str, Any] | None = None  # as `workers.worker.encoded` returns it
    said: dict[str, list[Any]] | None = None  # notes, and the changes of form
    target: str = ""  # the target if it is not the unit's: the folder of a container
    # All files of a target that is a folder or has partner files: path below the root, size in
    # bytes, SHA-256. Empty for a target that is one file.
    files: Sequence[Sequence[Any]] = ()
    source: str = ""  # SHA-256 of the source, if there is a certificate


_USUAL = Outcome(DONE)[4:], Unit("", "", 0, 0)[4:]  # the last fields of most outcomes and units


class Units(list["Unit"]):
    """Units whose JSON is made once: it goes into the journal twice, and to a worker."""

    _text = ""

    @property
    def text(self) -> str:
        """The units as JSON."""
        self._text = self._text or text_of([*self])
        return self._text


class Outcomes(list["Outcome"]):
    """Outcomes with the JSON that a worker has sent of them."""

    def __init__(self, outcomes: Iterable[Outcome], text: str) -> None:
        super().__init__(outcomes)
        self.text: str = text


def text_of(rows: Sequence[Unit] | Sequence[Outcome]) -> str:
    """Units or outcomes as JSON, each without its last fields if these have their usual values."""
    if isinstance(rows, Units | Outcomes):
        return rows.text
    short = [row[:4] if row[4:] in _USUAL else row for row in rows]
    return json.dumps(short, separators=(",", ":"))


def unit_of(row: Sequence[Any]) -> Unit:
    """Return a unit from the list that JSON has made of it."""
    path, target, size, mtime, *rest = row
    if rest:
        rest[0] = tuple(rest[0])
    return Unit(path, target, size, mtime, *rest)


def target_of(unit: Unit, outcome: Outcome) -> str:
    """Return the path of a finished unit's target, below the root of the target tree."""
    return outcome.target or unit.target


class Batch(Record):
    """Units that one worker carries out together."""

    number: int
    units: list[Unit]
    deaths: int = 0  # count of workers that died with it
    since: float = 0.0  # a target newer than this was left by a worker that died
