"""Several files that appear one after the other: a note lies beside them until all are there.

Each file is renamed when it is whole, but a process that is killed in between leaves a set that is
partly new. The note names the set; whoever reads several of its files is refused while it is there.
A later run that writes all of them again takes it away.
"""

from __future__ import annotations

import os
from collections import namedtuple
from errno import EACCES, ELOOP, EPERM, EROFS

from raconvert.errors import Corrupt, RaconvertError
from raconvert.files import UNFINISHED as FOLDER
from raconvert.files.limits import DEFAULT
from raconvert.files.paths import CREATE_FLAGS, remove, write_failed
from raconvert.files.source import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from raconvert.files.limits import Limits

# Errors of reading anything else than a note: whoever may write into the folder can have made it.
_NOT_A_NOTE = (
    RaconvertError, OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError,
)  # fmt: skip

# The files of a note: those that were asked for (a set of paths), and if there are others (a bool).
_Listed = namedtuple("_Listed", "common others")


class Unfinished:
    """A ``with`` block around the renaming of files; call `begin` before the first one.

    `single`: while the note is there, not even one of the files may be read alone.
    """

    def __init__(self, files: Iterable[str], *, single: bool = False) -> None:
        self._files = [os.path.abspath(file) for file in files]
        self._single = single
        self._note = ""

    def begin(self) -> None:
        """Write the note, if there are several files and the folder may be written.

        Raises `WriteFailed` if the system refuses for another reason.
        """
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
            _make(folder)
            self._note = note
            with open(os.open(note, CREATE_FLAGS, 0o644), "wb") as file:
                header = {"single": self._single, "count": len(names)}
                file.writelines(json.dumps(line).encode() + b"\n" for line in (header, *names))
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
        """Remove the notes of earlier runs that list none but the files of this one."""
        own = set(self._files)
        for folder in _with_parents(os.path.dirname(os.path.dirname(self._note))):
            for note in _notes(folder):
                files = _read(note, own) if note != self._note else None
                if files is not None and not files.others:
                    remove(note)
                    _remove_folder(note)

    def _end(self) -> None:
        """Remove the note, if it was written."""
        if not self._note:
            return
        remove(self._note)
        _remove_folder(self._note)
        self._note = ""


def _make(folder: str) -> None:
    """Make the folder of notes, which must not be a link."""
    if os.path.islink(folder):
        raise OSError(ELOOP, f"'{folder}' is a link")
    os.makedirs(folder, exist_ok=True)


def _remove_folder(note: str) -> None:
    """Remove the folder of a note, if it is empty."""
    try:
        os.rmdir(os.path.dirname(note))
    except OSError:  # another run has a note in the folder
        pass


def _with_parents(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, the nearest first."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def refuse_unfinished(paths: Collection[str], *, single: bool = False) -> None:
    """Raise `Corrupt` if a file is one of a set that a run has not finished.

    `single`: the files are read one by one, so that only notes count that forbid that, too.
    """
    notes = _notes_above({path.rpartition("/")[0] for path in paths})  # one or few, of many files
    notes = [note for note in notes if not single or _is_single(note)]
    if not notes:
        return
    asked = {os.path.abspath(path) for path in paths}
    for note in notes:
        files = _read(note, asked)
        if files is not None and files.common:
            raise Corrupt(
                "is one of several files that were written together, and not all of them were",
                path=min(files.common),
                where=f"'{note}'",
                remedy="write them again with `--overwrite`; if they are right as they are, or the "
                "run goes on still, wait or remove that note",
            )


def holds_back(folder: str) -> bool:
    """True if a folder may hold files that must not even be read one by one."""
    return any(map(_is_single, _notes_above([folder])))


def _notes_above(folders: Iterable[str]) -> list[str]:
    """Return the paths of the notes in some folders and in all their parents."""
    seen: set[str] = set()
    notes: list[str] = []
    for folder in folders:
        for above in _with_parents(os.path.abspath(folder)):
            if above in seen:
                break
            seen.add(above)
            notes += _notes(above)
    return notes


def _is_single(note: str, limits: Limits = DEFAULT) -> bool:
    """True if the first line of a note forbids to read even one of its files alone."""
    import json

    try:
        with os.fdopen(open_regular(note), "rb") as file:
            return bool(json.loads(file.readline(limits.note_line_bytes))["single"])
    except _NOT_A_NOTE:
        return False


def _notes(above: str) -> list[str]:
    """Return the paths of the notes on files in a folder or below it."""
    folder = os.path.join(above, FOLDER)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _read(note: str, known: Collection[str], limits: Limits = DEFAULT) -> _Listed | None:
    """Read the files of a note; None if it is incomplete, since no file is renamed before it is.

    Anyone who may write into a parent folder can forge a note, so that only the files of it that
    are in `known` are returned.
    """
    import json

    above = os.path.dirname(os.path.dirname(note))
    try:
        with os.fdopen(open_regular(note), "rb") as file:
            count = int(json.loads(file.readline(limits.note_line_bytes))["count"])
            common: set[str] = set()
            most = limits.note_line_bytes
            read = others = 0
            while read < count and file.tell() < limits.note_bytes:
                path = os.path.normpath(os.path.join(above, json.loads(file.readline(most))))
                read += 1
                others += path not in known
                if path in known:
                    common.add(path)
    except _NOT_A_NOTE:
        return None
    return _Listed(common, others > 0) if read == count else None
