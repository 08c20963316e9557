"""The fast lane of a worker: small files, folder by folder (`raconvert.conversion.lane`)."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256

from raconvert import registry
from raconvert.conversion.lane import Folders, Lane, Made
from raconvert.conversion.options import Settings
from raconvert.files.places import make_folders
from raconvert.migration.records import DONE, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.conversion.lane import Expected, Listed
    from raconvert.migration.records import Job, Unit


class Fast:
    """The fast lane of one job; its folders stay open until `leave`."""

    def __init__(self, job: Job) -> None:
        self._roots = os.path.join(job.source, ""), os.path.join(job.target, "")
        settings = Settings(**job.options, to=job.to, sync=False)
        self._lane = Lane(registry.target_row("", job.to), settings)
        self._above: tuple[str, str] = ("", "")
        self._folders: Folders | None = None
        self._listed: Listed | None = None

    def tried(self, unit: Unit) -> Outcome | Expected | None:
        """Convert a unit, if it is one for the lane."""
        path, place, _, _, members, replaces, folder = unit[:7]
        if members or replaces or folder:
            return None
        source, _, name = path.rpartition("/")
        target, _, new = place.rpartition("/")
        folders = self._folders
        if folders is None or self._above != (source, target):
            folders = self._go_to(source, target)
        found = self._lane.tried(folders, name, new)
        if not isinstance(found, Made):
            return found
        content, mtime, _ = found
        return Outcome(DONE, len(content), mtime, sha256(content).hexdigest())

    def learn(self, expected: Expected, outcome: Outcome) -> None:
        """Look at what the usual way made of a file, if it had nothing to say about it."""
        if outcome.state == DONE and outcome.said is None:
            self._lane.learn(expected)

    def leave(self) -> None:
        """Close the folders."""
        if self._folders is not None:
            self._folders.close()
            self._folders = None

    def _go_to(self, source: str, target: str) -> Folders:
        """Open other folders; that of the target is made."""
        self.leave()
        self._above = source, target
        folder = self._roots[1] + target
        with suppress(OSError):  # the usual way will tell
            make_folders(folder)
        self._folders = folders = Folders(self._roots[0] + source, folder)
        with suppress(OSError):  # each file is asked for
            self._listed = folders.list_sidecars(self._listed)
        return folders
