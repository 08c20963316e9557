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

    source: str  # below the root of the source tree, with "/"; of a stack, its folder
    target: str  # below the root of the target tree
    size: int  # of the source, in bytes
    mtime: int  # of the source, in nanoseconds; of a stack, the newest
    members: tuple[str, ...] = ()  # names of the images of a stack, in order
    replaces: int = 0  # a target that is there may be replaced; 2: if an older run of ours left it
    folder: str = ""  # target instead, of a container of several arrays; `target` itself: of any


class Job(Record):
    """Settings that all units of a run share."""

    source: str  # the root of the source tree, absolute, or a URL
    target: str
    to: str  # name of the format
    options: dict[str, Any]  # of `raconvert.convert`
    since: float = 0.0  # when the run began that was interrupted, in seconds since 1970
    mark: str = ""  # in the names of temporary files (`leftovers`)
    certified: bool = False  # a certificate is asked for, with the digests of sources
    timed: bool = False  # workers say which file they are at, and that it goes on
    flags: bool = False  # messages name options as on the command line (`errors.name_flags`)


class Outcome(Record):
    """The outcome of one unit."""

    state: str  # DONE, FAILED, SKIPPED or PLANNED
    size: int = 0  # of the target, in bytes
    mtime: int = 0  # of the target, in nanoseconds
    digest: str = ""  # SHA-256 of the target file, in hexadecimal; of a folder see `work.digest_of`
    error: dict[str, Any] | None = None  # of `conversion.isolated.encoded`
    said: dict[str, list[Any]] | None = None  # notes, and changes of form that were made
    target: str = ""  # where it is not that of the unit: the folder of a container
    # Of a target that is a folder or has partner files, all files: path below the root, size in
    # bytes, SHA-256.
    files: Sequence[Sequence[Any]] = ()
    source: str = ""  # SHA-256 of the source, where a certificate asks for it


_USUAL = Outcome(DONE)[4:], Unit("", "", 0, 0)[4:]  # the end of most


class Units(list["Unit"]):
    """Units whose JSON is made once: it goes into the journal twice, and to a worker."""

    _text = ""

    @property
    def text(self) -> str:
        """The units as JSON."""
        self._text = self._text or text_of([*self])
        return self._text


class Outcomes(list["Outcome"]):
    """Outcomes as a worker has told them, in JSON."""

    def __init__(self, outcomes: Iterable[Outcome], text: str) -> None:
        super().__init__(outcomes)
        self.text: str = text


def text_of(rows: Sequence[Unit] | Sequence[Outcome]) -> str:
    """Units or outcomes as JSON, each without what is as usual at its end."""
    if isinstance(rows, Units | Outcomes):
        return rows.text
    short = [row[:4] if row[4:] in _USUAL else row for row in rows]
    return json.dumps(short, separators=(",", ":"))


def unit_of(row: Sequence[Any]) -> Unit:
    """The unit that JSON has made lists of."""
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
    deaths: int = 0  # of workers that had it
    since: float = 0.0  # a target that was made since then is ours, of a worker that was lost
