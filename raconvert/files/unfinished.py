"""Several files that appear one after the other: a note lies beside them until all are there.

Each file is renamed when it is whole, but a process that is killed in between leaves a set that is
partly new. The note names the set; whoever reads several of its files is refused while it is there.
A later run that writes all of them again takes it away.
"""

from __future__ import annotations

import os
from errno import EACCES, EPERM, EROFS

from raconvert.errors import Corrupt
from raconvert.files.places import CREATE_FLAGS, remove, write_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

FOLDER = ".raconvert-unfinished.tmp"
MAX_BYTES = 64 << 20  # of a note


class Unfinished:
    """A ``with`` block around the appearance of files; `begin` when the first one is about to.

    `single`: not even one of the files is read alone.
    """

    def __init__(self, files: Iterable[str], *, single: bool = False) -> None:
        self._files = [os.path.abspath(file) for file in files]
        self._single = single
        self._note = ""

    def begin(self) -> None:
        """Write the note, where a set of files is about to change and the folder may be written."""
        import json

        if len(self._files) < 2:
            return
        above = os.path.commonpath([os.path.dirname(file) for file in self._files])
        while not os.path.isdir(above):
            above = os.path.dirname(above)
        folder = os.path.join(above, FOLDER)
        note = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}.json")
        names = [os.path.relpath(file, above) for file in self._files]
        try:
            os.makedirs(folder, exist_ok=True)
            self._note = note
            with open(os.open(note, CREATE_FLAGS, 0o644), "wb") as file:
                file.write(json.dumps({"single": self._single, "files": names}).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._end()
            if error.errno not in (EACCES, EPERM, EROFS):
                raise write_failed(self._files[0], error) from error

    def __enter__(self) -> Unfinished:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._note:
            self._take_away_older()
        self._end()

    def _take_away_older(self) -> None:
        own = set(self._files)
        for above in _above(os.path.dirname(os.path.dirname(self._note))):
            for note, _, files in [*_notes(above)]:
                if note != self._note and own.issuperset(files):
                    remove(note)
                    _remove_folder(note)

    def _end(self) -> None:
        if not self._note:
            return
        remove(self._note)
        _remove_folder(self._note)
        self._note = ""


def _remove_folder(note: str) -> None:
    try:
        os.rmdir(os.path.dirname(note))
    except OSError:  # another run has its note there
        pass


def _above(folder: str) -> Iterator[str]:
    """Yield a folder and all that lead to it."""
    while True:
        yield folder
        if folder == (folder := os.path.dirname(folder)):
            return


def refuse_unfinished(paths: Collection[str], *, single: bool = False) -> None:
    """Raise `Corrupt` if files are of a set that a run has not finished.

    `single`: they are read one by one, so that only sets of which no file stands alone count.
    """
    seen: set[str] = set()
    notes: list[tuple[str, bool, list[str]]] = []
    for folder in {path.rpartition("/")[0] for path in paths}:  # one or few, of many files
        for above in _above(os.path.abspath(folder)):
            if above in seen:
                break
            seen.add(above)
            notes += _notes(above)
    if not notes:
        return
    there = {os.path.abspath(path) for path in paths}
    for note, alone, files in notes:
        common = there.intersection(files)
        if common and (alone or not single):
            raise Corrupt(
                "is one of several files that were written together, and not all of them were",
                path=min(common),
                where=f"'{note}'",
                remedy="write them again with --overwrite; if they are right as they are, or the "
                "run goes on still, wait or remove that note",
            )


def _notes(above: str) -> Iterator[tuple[str, bool, list[str]]]:
    """Yield the notes in a folder: path, whether files do not even stand alone, the files."""
    folder = os.path.join(above, FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    import json

    for name in names:
        note = os.path.join(folder, name)
        try:
            with open(note, "rb") as file:
                said = json.loads(file.read(MAX_BYTES))
            files = [os.path.normpath(os.path.join(above, file)) for file in said["files"]]
            yield note, bool(said["single"]), files
        except (OSError, ValueError, TypeError, KeyError, RecursionError):  # nothing began yet
            continue
