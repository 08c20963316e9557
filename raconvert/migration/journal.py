"""The journal: what became of every file, in a SQLite database that the driver alone writes.

Table ``run``: what the run was (key, value). Table ``batches``: one row for each batch, written
before it begins (state ``begun``) and again when it is carried out (``ended``), with its files as
JSON: ``{"units": […], "outcomes": […]}``, each without the fields at its end that have their usual
values. A row costs as much as a few files; a commit is a wait for the disk, one for each batch.

The write-ahead log of SQLite needs shared memory and locks between all its processes
(https://sqlite.org/wal.html), which network file systems do not give; there the rollback journal
(``DELETE``) is used instead.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import sys
from contextlib import suppress
from math import isfinite
from time import monotonic, sleep, time

from raconvert import errors
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TargetExists, UsageError, WriteFailed
from raconvert.files.paths import open_own, refuse_other
from raconvert.files.quoting import operand
from raconvert.migration import killpoints
from raconvert.migration.records import (
    DONE,
    FAILED,
    LOST,
    PLANNED,
    SKIPPED,
    Outcome,
    Unit,
    text_of,
    unit_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.migration.records import Batch


# Checks of what a journal holds: anybody who may write into the destination can have made it ------
# The facts of its run are believed. Refused are paths that lead out of the trees, values of other
# types than `records` declare, and values that a certificate cannot hold.


_LARGEST = 1 << 63  # above all sizes in bytes and times in nanoseconds
_LAST_SECOND = 1e11  # above all times in seconds: year 5138
_STATES = (DONE, FAILED, SKIPPED, PLANNED)
_PARTS = ("path", "where", "expected", "got", "remedy")
_digest = re.compile(r"(?:[0-9a-f]{64})?").fullmatch
_mark = re.compile(r"[0-9a-f]{0,64}").fullmatch


def values_of(text: Any) -> Any:
    """The values of a text of JSON. Raises `ValueError`."""
    try:
        return json.loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_below(path: Any) -> bool:
    """True for a relative path that does not lead out of a tree."""
    if type(path) is not str or "\0" in path or path[:1] == "/" or _is_elsewhere(path):
        return False
    return ".." not in path or ".." not in path.replace(os.sep, "/").split("/")


def _is_elsewhere(path: str) -> bool:
    """True for a path on a drive of Windows, or from its root."""
    return os.name == "nt" and (os.path.isabs(path) or bool(os.path.splitdrive(path)[0]))


def known_of(text: Any) -> list[tuple[Unit, Outcome | None]]:
    """The units of a batch, each with its outcome, or None. Raises `ValueError`."""
    values = values_of(text)
    if type(values) is dict and values.keys() <= {"units", "outcomes"}:
        units = values.get("units")
        if type(units) is list and all(map(_is_unit, units)):
            outcomes = values.get("outcomes", [None] * len(units))
            if type(outcomes) is list and all(row is None or _is_outcome(row) for row in outcomes):
                return [
                    (unit_of(unit), outcome and Outcome(*outcome))
                    for unit, outcome in zip(units, outcomes, strict=True)
                ]
    raise ValueError(f"not sources with their outcomes: {repr_of(values)}")


def refused_of(row: list[Any]) -> tuple[Unit, Outcome]:
    """A unit that was refused before the run began, with its outcome, by a row of settings."""
    width = len(Unit._fields)
    return unit_of(row[:width]), Outcome(*row[width:])


def settings_of(values: dict[str, Any]) -> dict[str, Any]:
    """Check the settings with which a run began, and return them. Raises `ValueError`."""
    for name, value in values.items():
        if name in _SETTINGS and not _SETTINGS[name](value):
            raise ValueError(f"{name} cannot be {repr_of(value)}")
    if values and not values.keys() >= {"options", "began"}:
        raise ValueError("not the beginning of a run")
    return values


def time_of(value: Any) -> float:
    """A time in seconds since 1970. Raises `ValueError`."""
    if not _is_time(value):
        raise ValueError(f"not a time: {repr_of(value)}")
    return float(value)


def repr_of(value: Any) -> str:
    """Return the start of a value's repr, for a message."""
    try:
        return repr(value)[:80]
    except RecursionError:
        return "values nested too deeply"


# Types ------------------------------------------------------------------------------------------


def _fit(checks: tuple[Callable[[Any], object], ...], values: list[Any]) -> bool:
    """True if all values pass, each its own check."""
    return all(check(value) for check, value in zip(checks, values, strict=False))


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) is int and -_LARGEST <= value < _LARGEST


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LAST_SECOND


def _is_digest(value: Any) -> bool:
    return type(value) is str and _digest(value) is not None


def _is_mark(value: Any) -> bool:
    return type(value) is str and _mark(value) is not None


def _is_maybe_text(value: Any) -> bool:
    return value is None or type(value) is str


def _are(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that a value is a list, and that each item of it passes `check`."""
    return lambda value: type(value) is list and all(map(check, value))


_are_texts, _are_below = _are(_is_text), _are(is_below)


def _is_file(value: Any) -> bool:
    return type(value) is list and len(value) == 3 and _fit(_FILE, value)


def _is_pair(value: Any) -> bool:
    return _are_texts(value) and len(value) == 2


def _is_fit(value: Any) -> bool:
    return type(value) is list and len(value) == 5 and _fit(_FIT, value)


def _is_said(value: Any) -> bool:
    if value is None:
        return True
    return type(value) is dict and all(
        name in _SAID and _SAID[name](items) for name, items in value.items()
    )


def _is_error(value: Any) -> bool:
    if value is None:
        return True
    if type(value) is not dict or not _is_text(value.get("class")):
        return False
    kind = getattr(errors, value["class"], None)
    return (
        isinstance(kind, type)
        and issubclass(kind, errors.RaconvertError)
        and _is_text(value.get("what"))
        and all(name in value and _is_maybe_text(value[name]) for name in _PARTS)
        and _are_texts(value.get("notes"))
    )


def _is_shallow(value: Any, depth: int = 3) -> bool:
    """True for values that an option may have: plain ones, nested at most `depth` deep."""
    if type(value) is list:
        return depth > 0 and all(_is_shallow(item, depth - 1) for item in value)
    if type(value) is dict:
        return depth > 0 and all(_is_shallow(item, depth - 1) for item in value.values())
    return type(value) is not float or isfinite(value)


def _are_options(value: Any) -> bool:
    return (
        type(value) is dict
        and _is_shallow(value)
        and _is_text(value.get("source"))
        and _is_text(value.get("to"))
    )


def _is_run(value: Any) -> bool:
    return (
        type(value) is dict
        and value.keys() <= {"began", "raconvert", "python", "libraries"}
        and _is_time(value.get("began"))
        and _is_text(value.get("raconvert"))
        and _is_text(value.get("python", ""))
        and type(libraries := value.get("libraries", {})) is dict
        and all(map(_is_text, libraries.values()))
    )


def _is_unit(row: Any) -> bool:
    """True for a unit; fields at its end may be missing."""
    return type(row) is list and _LEAST <= len(row) <= len(Unit._fields) and _fit(_UNIT, row)


def _is_outcome(row: Any) -> bool:
    return type(row) is list and 1 <= len(row) <= len(Outcome._fields) and _fit(_OUTCOME, row)


def _is_refused(row: Any) -> bool:
    width = len(Unit._fields)
    return type(row) is list and _is_unit(row[:width]) and _is_outcome(row[width:])


_LEAST = 4  # fewest fields of a unit
_UNIT = (is_below, is_below, _is_count, _is_number, _are_below, _is_count, is_below)
_FILE = (is_below, _is_count, _is_digest)
_FIT = (_is_text, _is_text, _is_text, _is_text, _is_maybe_text)
_SAID = {"notes": _are_texts, "equivalent": _are(_is_fit), "allowed": _are(_is_fit)}
_OUTCOME = (_STATES.__contains__, _is_count, _is_number, _is_digest, _is_error, _is_said, is_below,
            _are(_is_file), _is_digest)  # fmt: skip
_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "version": _is_count,
    "options": _are_options,
    "began": _is_time,
    "ended": lambda value: value is None or _is_time(value),
    "raconvert": _is_text,
    "mark": _is_mark,
    "units": _is_count,
    "left_out": _are(_is_pair),
    "refused": _are(_is_refused),
    "runs": _are(_is_run),
}


_LAST_BATCH = 1 << 62  # largest number of a batch
# Magic at the end of a journal of SQLite that names a file.
_NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")
_PATIENCE = 10.0  # seconds that the workers of a killed run get to exit
NAME = ".raconvert-migration.sqlite"
VERSION = 1  # version of the tables
_TABLES = """
CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY, state TEXT NOT NULL, time REAL NOT NULL, files TEXT NOT NULL);
"""
BEGUN, ENDED = "begun", "ended"
# File systems on which all locks that SQLite's log needs work (/proc/self/mountinfo, field 9).
_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "zfs", "bcachefs", "overlay"}


class Known(Record):
    """The last entry of the journal about one source."""

    unit: Unit
    outcome: Outcome | None  # None: begun, and not ended
    time: float  # when it began or ended, in seconds since 1970


class Journal:
    """The journal of one run, open for writing; a context manager.

    Raises `TargetExists` if another run has it open, `Corrupt` if the file is not a journal,
    `Unsafe` if it is a link or not a regular file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        refuse_other(path)
        self.note: str = ""  # a remark on how the journal is stored
        self._lock = Lock(path + ".lock")
        try:
            self._base = _opened(path)
            self._first = self._number_of_last() + 1
        except BaseException:
            self._lock.release()
            raise
        if not is_local(os.path.dirname(path)):
            self.note = (
                f"journal '{path}' is on a network file system: kept without a write-ahead log"
            )

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        # A journal without a log can be read in a folder that cannot be written, as of an archive.
        with suppress(sqlite3.Error):  # raised while another process reads it
            self._base.execute("PRAGMA busy_timeout=0")
            self._base.execute("PRAGMA journal_mode=DELETE")
        self._base.close()
        self._lock.release()

    def settings(self) -> dict[str, Any]:
        """The settings with which the run began; empty for a new journal."""
        return _settings(self._base, self.path)

    def set(self, values: dict[str, Any]) -> None:
        """Record the settings of the run."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        self._write("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def begin(self, batch: Batch) -> None:
        """Record that a batch is about to be carried out."""
        self._put(batch.number, BEGUN, f'{{"units":{text_of(batch.units)}}}')
        killpoints.reached("begun", batch.number)

    def end(self, batch: Batch, outcomes: list[Outcome]) -> None:
        """Record what became of the units of a batch."""
        killpoints.reached("synced", batch.number)
        text = text_of(outcomes)
        if any(outcome.error and LOST in outcome.error for outcome in outcomes):
            # A lost unit has no outcome, as if it had only begun.
            rows = [None if LOST in (outcome.error or ()) else outcome for outcome in outcomes]
            text = json.dumps(rows)
        self._put(batch.number, ENDED, f'{{"units":{text_of(batch.units)},"outcomes":{text}}}')
        killpoints.reached("recorded", batch.number)

    def _put(self, number: int, state: str, text: str) -> None:
        row = (self._first + number, state, time(), text)
        self._write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)", [row])

    def _write(self, statement: str, rows: list[Any]) -> None:
        try:
            self._base.executemany(statement, rows)
            self._base.commit()
        except sqlite3.Error as error:
            raise WriteFailed(f"journal cannot be written: {error}", path=self.path) from error

    def known(self) -> dict[str, Known]:
        """Map each source to its last outcome.

        A source that a run began and did not end stays begun until it is done: a later failure does
        not mean that the first run left no target.
        """
        latest: dict[str, Known] = {}
        for known in _rows(self._base, self.path):
            before = latest.get(known.unit.source)
            failed = known.outcome is not None and known.outcome.state == FAILED
            if not (failed and before is not None and before.outcome is None):
                latest[known.unit.source] = known
        return latest

    def _number_of_last(self) -> int:
        try:
            (last,) = self._base.execute("SELECT max(number) FROM batches").fetchone()
        except sqlite3.Error as error:
            raise _damaged(self.path, error) from error
        if type(last) is not int and last is not None:
            raise Corrupt("journal is damaged", path=self.path, where=f"batch {last!r:.40}")
        if (last or 0) > _LAST_BATCH:
            raise Corrupt("journal is damaged", path=self.path, where=f"batch {last}")
        return last or 0


def read(path: str) -> tuple[dict[str, Any], list[Known]]:
    """Read the settings and the last outcome of each source of a journal that may be in use.

    Both are empty while another process creates it. Raises `UsageError` if there is no journal,
    `Corrupt` if it is not one, `TargetExists` while another process has it locked.
    """
    if not os.path.isfile(path):
        raise UsageError("has no journal of a migration", path=os.path.dirname(path) or path)
    refuse_other(path)
    _refuse_logs_of_others(path)
    base = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=10)
    try:
        if ("table", "batches") not in _tables(base, path):
            return {}, []  # another process is creating it
        settings = _settings(base, path)
        latest = {known.unit.source: known for known in _rows(base, path)}
        for row in settings.get("refused", ()):  # refused by the last run before it began
            unit, outcome = refused_of(row)
            latest[unit.source] = Known(unit, outcome, settings["began"])
    except sqlite3.Error as error:
        raise _not_a_journal(path, error) from error
    finally:
        base.close()
    return settings, list(latest.values())


def _rows(base: sqlite3.Connection, path: str) -> Iterator[Known]:
    """Yield an entry for each unit of each batch, the oldest first."""
    offset = None
    try:
        for number, when, text in base.execute(
            "SELECT number, time, files FROM batches ORDER BY number"
        ):
            offset = f"batch {number}"
            seconds = time_of(when)
            for unit, outcome in known_of(text):
                yield Known(unit, outcome, seconds)
    except (ValueError, sqlite3.Error) as error:  # damaged values, or damaged pages of the database
        raise _damaged(path, error, offset) from error


def _settings(base: sqlite3.Connection, path: str) -> dict[str, Any]:
    try:
        rows = base.execute("SELECT key, value FROM run")
        return settings_of({key: values_of(value) for key, value in rows})
    except (ValueError, sqlite3.Error) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception, where: str | None = None) -> RaconvertError:
    """Return the error for a journal that cannot be read, or that no run can have written."""
    return _in_use(path, error) or Corrupt("journal is damaged", path=path, where=where, got=error)


def _not_a_journal(path: str, error: sqlite3.Error) -> RaconvertError:
    """Return the error for a file that SQLite cannot open as a journal."""
    what = f"is not a journal of a migration: {error}"
    return _in_use(path, error) or Corrupt(what, path=path)


def _in_use(path: str, error: Exception) -> TargetExists | None:
    """Return the error for a journal that another process has locked; None for other errors."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return None
    remedy = "try again when nothing else has it open"
    return TargetExists("journal is in use", path=path, got=error, remedy=remedy)


def _tables(base: sqlite3.Connection, path: str) -> set[tuple[str, str]]:
    """Kind and name of each object of a database; raises `Corrupt` unless all are tables of ours.

    Others, such as triggers and views, may be SQL that runs while the journal is read.
    """
    base.execute("PRAGMA trusted_schema=OFF")
    base.execute("PRAGMA cell_size_check=ON")
    tables = {tuple(row) for row in base.execute("SELECT type, name, sql FROM sqlite_master")}
    model = sqlite3.connect(":memory:")
    model.executescript(_TABLES)
    strange = tables.difference(model.execute("SELECT type, name, sql FROM sqlite_master"))
    model.close()
    if strange:
        kind, name, _ = min(strange, key=str)
        raise Corrupt("is not a journal of a migration", path=path, got=f"{kind} '{name}'")
    return {(kind, name) for kind, name, _ in tables}


def _refuse_logs_of_others(path: str) -> None:
    """Refuse logs of SQLite that are not files, and one that names a file to be removed.

    A transaction over several databases has such a file, which SQLite removes when it rolls back;
    ours never have one. Opening a pipe in place of a log would block.
    """
    for ending in ("-wal", "-shm"):
        refuse_other(path + ending)
    try:
        log = open_own(path + "-journal")
    except OSError:
        return
    try:
        size = os.fstat(log).st_size
        end = _bytes_at(log, max(0, size - len(_NAMES_A_FILE)), len(_NAMES_A_FILE))
    finally:
        os.close(log)
    if end == _NAMES_A_FILE:
        raise Corrupt(
            "is the log of a transaction over several databases, which no migration makes",
            path=path + "-journal",
            remedy="remove it, if nothing else needs it",
        )


def _opened(path: str) -> sqlite3.Connection:
    _refuse_logs_of_others(path)
    base = None
    try:
        base = sqlite3.connect(path, timeout=10)
        _tables(base, path)
        mode = "WAL" if is_local(os.path.dirname(path)) else "DELETE"
        base.execute(f"PRAGMA journal_mode={mode}")
        base.execute("PRAGMA synchronous=FULL")
        base.executescript(_TABLES)
    except (sqlite3.DatabaseError, RaconvertError) as error:
        if base is not None:
            base.close()
        if isinstance(error, sqlite3.Error):
            raise _not_a_journal(path, error) from error
        raise
    return base


def is_local(folder: str) -> bool:
    """True if a folder is on a file system of this machine; False if that cannot be found out."""
    if sys.platform != "linux":
        return False
    path = os.fsencode(os.path.realpath(folder or "."))
    longest, kind = b"", b""
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            for line in lines:
                fields, _, rest = line.partition(b" - ")
                # Spaces, tabs, line breaks and backslashes are written as "\040" and so on.
                mount = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]),
                               fields.split()[4])  # fmt: skip
                inside = path == mount or path.startswith(mount.rstrip(b"/") + b"/")
                if inside and len(mount) >= len(longest):
                    longest, kind = mount, rest.split()[0]
    except (OSError, IndexError, ValueError):
        return False
    return kind.decode("ascii", "replace") in _LOCAL


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # errors for a lock that another process has


class Lock:
    """A lock that ends with this process and its copies, however they end.

    With `wait`, the call blocks until nobody else has it, without it raises `TargetExists`. If only
    copies of a killed process have it, which are about to exit, it waits for them in both cases.
    """

    def __init__(self, path: str, *, wait: bool = False) -> None:
        self._path = path
        self._file = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            self._acquire(wait=wait)
        except TargetExists:
            os.close(self._file)
            raise
        except OSError as error:
            os.close(self._file)
            if error.errno not in _TAKEN:
                raise WriteFailed(
                    f"files cannot be locked here: {error.strerror}",
                    path=path,
                    remedy="keep the journal on another file system: `--journal FILE`",
                ) from error
            raise TargetExists(
                "another run writes here",
                path=os.path.dirname(path),
                remedy="wait for it, or look at it with: raconvert migrate --status "
                f"{operand(os.path.dirname(path))}",
            ) from error

    def _acquire(self, *, wait: bool) -> None:
        until = monotonic() + _PATIENCE
        while True:
            try:
                _lock(self._file, wait=wait)
                break
            except OSError:
                if monotonic() > until or os.name == "nt" or not _is_dead(self._written_owner()):
                    raise
            sleep(0.02)
        if os.name != "nt":  # on Windows a locked file cannot be read
            if not _OWNER.fullmatch(self._written_owner()):
                raise TargetExists(
                    "is not the lock of a migration, and is left as it was",
                    path=self._path,
                    remedy="rename it: the lock of a run has this name",
                )
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, _owner())

    def _written_owner(self) -> bytes:
        """The owner that the lock file names: `_owner` of the process that wrote it, or empty."""
        return _bytes_at(self._file, 0, 1 << 10)

    def release(self) -> None:
        """Release the lock by closing its file."""
        os.close(self._file)


_OWNER = re.compile(rb"([^\n]{0,256}\n[0-9]+\n)?")


def _bytes_at(file: int, offset: int, nbytes: int) -> bytes:
    """Read at most `nbytes` bytes of an open file; without `pread`, which Windows lacks."""
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, nbytes)


def _owner() -> bytes:
    """Name this process as the owner of a lock: its machine and its number, a line each."""
    from platform import node

    return f"{node()}\n{os.getpid()}\n".encode()


def _is_dead(owner: bytes) -> bool:
    """True if the process that wrote `_owner` ran on this machine, and does not any more."""
    host, _, _ = _owner().partition(b"\n")
    machine, _, number = owner.partition(b"\n")
    if machine != host or not number.strip().isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _lock(descriptor: int, *, wait: bool) -> None:
    if os.name == "nt":
        import msvcrt

        how = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined,unused-ignore]
        msvcrt.locking(descriptor, how, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
