"""Choice of the plugin that reads or writes a file: by explicit name, by content, by suffix.

Built-in formats come from the static catalogue. Third-party formats come from the entry-point
group ``raconvert.formats`` (each entry point names a plugin module); the scan costs several
interpreter starts, so it happens only when no built-in claims a file by content, for an unknown
format name, and for `raconvert formats`.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib import import_module

from raconvert.catalogue import ALSO_CALLED, ROWS, Row
from raconvert.declared import Record, chosen
from raconvert.errors import (
    MissingDependency,
    RaconvertError,
    UnknownFormat,
    Unsupported,
    UsageError,
    did_you_mean,
)
from raconvert.plugin import API, MAYBE, NO, SURE, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from raconvert.files.source import Source

GROUP = "raconvert.formats"
VERDICTS = {NO: "no", MAYBE: "maybe", SURE: "sure"}


class Candidate(Record):
    """The answer of one format that was asked about a file; a refusal lists all of them."""

    name: str
    verdict: str
    reason: str


class Detection(Record):
    """The format that a file is taken for, the reason, and the answers of all formats.

    A format whose magic the file lacks is not asked.
    """

    row: Row
    reason: str
    candidates: list[Candidate]


_SUFFIXES = {suffix: row for row in reversed(ROWS) for suffix in row.suffixes}
_third_party: tuple[Row, ...] | None = None
_broken: dict[str, RaconvertError] = {}


def refresh() -> None:
    """Forget the scanned entry points, so that they are scanned again. Raises nothing.

    >>> raconvert.refresh()
    >>> "ra" in [row["name"] for row in raconvert.formats()]
    True
    """
    global _third_party
    _third_party = None


def third_party() -> tuple[Row, ...]:
    """Return a row for every installed third-party format; scanned once, until `refresh`.

    Built-in names win. A plugin that cannot be used is left out, and so are two distributions that
    claim one name; `broken` lists them, and no other format is affected.
    """
    global _third_party
    _third_party = _scanned() if _third_party is None else _third_party
    return _third_party


def broken() -> dict[str, RaconvertError]:
    """Return the format names of installed plugins that cannot be used, and the reason of each."""
    third_party()
    return _broken


def _scanned() -> tuple[Row, ...]:
    """Scan the entry points; return a row for each usable plugin, and put others into `_broken`."""
    from importlib.metadata import entry_points

    _broken.clear()
    claims: dict[str, set[str]] = {}
    for point in entry_points(group=GROUP):
        claims.setdefault(point.name, set()).add(point.value)
    rows = []
    for name, modules in sorted(claims.items()):
        if any(name == row.name for row in ROWS):
            continue
        try:
            rows.append(_claimed(name, sorted(modules)))
        except RaconvertError as error:
            _broken[name] = error
    return tuple(rows)


def _claimed(name: str, modules: list[str]) -> Row:
    """Return the row of the one plugin that claims a name.

    Raises `UsageError` for several, and `Unsupported`, which names the plugin, for an unusable one.
    """
    if len(modules) > 1:
        raise UsageError(
            f"two installed plugins claim the format name '{name}': {' and '.join(modules)}",
            remedy="uninstall one of them",
        )
    path = modules[0]
    try:
        row = _row_of(import_module(path).FORMAT, path)
    except RaconvertError:
        raise
    except (Exception, SystemExit) as error:
        raise Unsupported(
            f"the installed plugin {path} of format '{name}' cannot be loaded: {error!r}",
            remedy=f"repair or uninstall {path.partition('.')[0]}",
        ) from error
    if row.name != name:
        raise Unsupported(
            f"the installed plugin {path} is of format '{row.name}', not '{name}'; its entry point "
            f"must be called '{row.name}'",
            remedy=f"repair or uninstall {path.partition('.')[0]}",
        )
    return row


def _row_of(form: Any, path: str) -> Row:
    """Return the catalogue row that a plugin's FORMAT amounts to."""
    if form.api != API:
        raise Unsupported(
            f"plugin {path} speaks version {form.api} of the plugin contract",
            expected=f"version {API}",
            remedy=f"install a version of {path.partition('.')[0]} made for this raconvert",
        )
    shared = {field: getattr(form, field) for field in Row._fields if field != "module"}
    return Row(module=path, **shared)


def rows() -> tuple[Row, ...]:
    """Return all formats: the built-in ones, then third-party ones (scans entry points)."""
    return ROWS + third_party()


def by_name(name: str) -> Row:
    """Return the format of this name, whatever its case, or of the files with this suffix.

    Raises `UnknownFormat`, which suggests the nearest one; for the name of a broken plugin, raises
    its error.
    """
    row = _called(name, ROWS) or _meant_by(name, ROWS) or _called(name, third_party())
    if row is None and name in broken():
        raise _broken[name]
    row = row or _meant_by(name, third_party())
    if row is not None:
        return row
    names = [row.name for row in rows()]
    remedy = f"known formats: {', '.join(names)}"
    for error in _broken.values():
        remedy += f"\n  broken: {error.what}"
    raise UnknownFormat(
        f"no format is called '{name}'{did_you_mean(name.lower(), names)}", remedy=remedy
    )


def _called(name: str, rows: tuple[Row, ...]) -> Row | None:
    """Return the row of exactly this name, or None."""
    return next((row for row in rows if row.name == name), None)


def _meant_by(word: str, rows: tuple[Row, ...]) -> Row | None:
    """Return the format that a word means: its name in any case, a suffix, a program; or None."""
    word = word.lower().lstrip(".")
    return _called(ALSO_CALLED.get(word, word), rows) or by_suffix(f".{word}", rows)


def folder_row() -> Row:
    """Return the format of a folder if neither its name nor its content tells one."""
    return next(row for row in ROWS if row.folder)


def is_one_source(folder: str) -> bool:
    """True if a folder is one source of some format (`row_of_folder`)."""
    has_mark = any(os.path.isfile(os.path.join(folder, mark)) for mark in _MARKS)
    return has_mark or row_together(folder) is not None


def row_of_folder(path: str) -> Row | None:
    """Return the format that a folder is one source of, by the files in it; else None.

    If several formats have a file in it as their mark, the first one that is sure of that file
    counts, else the last.
    """
    marked = _marked(path)
    for row, mark in marked[:-1]:
        if mark not in _SHARED_MARKS or _is_sure(row, path, mark):
            return row
    return marked[-1][0] if marked else row_together(path)


def _marked(folder: str) -> list[tuple[Row, str]]:
    """Return the formats with a mark that is a file in the folder, each with its first one."""
    marks = {mark for mark in _MARKS if os.path.isfile(os.path.join(folder, mark))}
    if not marks:
        return []
    pairs = ((row, next((mark for mark in row.marks if mark in marks), "")) for row in _MARKED)
    return [(row, mark) for row, mark in pairs if mark]


_MARKED = [row for row in ROWS if row.marks]
_MARKS = tuple(dict.fromkeys(mark for row in _MARKED for mark in row.marks))
_SHARED_MARKS = {mark for mark in _MARKS if sum(mark in row.marks for row in _MARKED) > 1}
FIRST_BYTES = 512  # bytes that have the magic of each format whose files are read together
PROBED = 8  # files of a folder, without a known suffix, whose first bytes are read


def row_together(path: str) -> Row | None:
    """Return the format of the files of a folder, if they are read together, else None.

    By the order of names, the first file decides that has the suffix of a format that is read, or
    the magic of one whose files are read together.
    """
    try:
        with os.scandir(path) as entries:
            files = sorted((entry.name, entry.path) for entry in entries if entry.name[0] != ".")
    except OSError:
        return None
    return first_together((file for _, file in files if os.path.isfile(file)), _first_bytes)


def first_together(files: Iterable[str], first_bytes: Callable[[str], bytes]) -> Row | None:
    """Return the format of files in the order of their names, if they are read together, else None.

    `first_bytes` returns the first bytes of a file, and is called if its suffix is unknown.
    """
    for probed, file in enumerate(files, 1):
        row = by_suffix(os.path.basename(file))
        if row is not None and row.reads:
            return row if row.together else None
        head = first_bytes(file)
        row = next((row for row in ROWS if row.together and matches(row.magic, head)), None)
        if row is not None or probed == PROBED:
            return row
    return None


def _is_sure(row: Row, folder: str, mark: str) -> bool:
    """True if a format is sure of a file in a folder. Raises nothing."""
    from raconvert.files.source import Source

    if missing_needs(row):
        return False
    source = Source(os.path.join(folder, mark))
    try:
        return load(row).sniff(source) == SURE
    except (RaconvertError, OSError):
        return False
    finally:
        source.close()


def _first_bytes(path: str) -> bytes:
    """Return the first bytes of a file; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(FIRST_BYTES)
    except OSError:
        return b""


def names_folder(path: str) -> bool:
    """True if the name of a destination, or of a URL, is that of a format that is a folder."""
    row = by_suffix(path.rstrip("/" + os.sep))
    return row is not None and row.folder


def load(row: Row) -> Plugin:
    """Import the plugin of a format; raises `MissingDependency` with the install line."""
    missing = missing_needs(row) if row.needs else ()
    if missing:
        raise MissingDependency(
            f"format {row.name} needs a package that is not installed: {', '.join(missing)}",
            remedy=f"pip install {' '.join(missing)}",
        )
    return Plugin(import_module(row.module))


def missing_needs(row: Row) -> list[str]:
    """Return the requirements of a format that are not installed, without importing any."""
    return [requirement for module, requirement in row.needs if not _importable(module)]


_INSTALLED: set[str] = set()  # modules that were found; looking for one takes 0.1 to 0.5 ms


def _importable(module: str) -> bool:
    """True if a module is installed; one that is not is looked for again at the next call."""
    if sys.modules.get(module) is not None or module in _INSTALLED:
        return True
    from importlib.util import find_spec

    if find_spec(module) is None:
        return False
    _INSTALLED.add(module)
    return True


def readable() -> tuple[Row, ...]:
    """Return the built-in formats that can be read."""
    return tuple(row for row in ROWS if row.reads)


def matches(magic: tuple[tuple[int, bytes], ...], head: bytes) -> bool:
    """True if the head of a file has the bytes of any of the (offset, bytes) pairs."""
    for at, text in magic:  # noqa: SIM110 - measured: `any` takes twice the time
        if head.startswith(text, at):
            return True
    return False


_NATIVE = tuple(row for row in ROWS if row.native)


def begins_native(head: bytes) -> bool:
    """True for the first bytes of a format that native code reads."""
    return any(matches(row.magic, head) for row in _NATIVE)


def by_suffix(path: str, candidates: tuple[Row, ...] = ROWS) -> Row | None:
    """Return the format with the longest suffix that the name ends with, or None."""
    name = path.lower()
    if candidates is ROWS:
        for start in range(name.rfind("/") + 1, len(name)):
            if name[start] in ".-" and name[start:] in _SUFFIXES:
                return _SUFFIXES[name[start:]]
        return None
    best: tuple[int, Row] | None = None
    for row in candidates:
        for suffix in row.suffixes:
            if name.endswith(suffix) and (best is None or len(suffix) > best[0]):
                best = len(suffix), row
    return best[1] if best else None


def target_row(path: str, to: str | None = None, *, container: bool = False) -> Row:
    """Return the format to write: by name, else by the suffix of the destination.

    `container`: an array in it is named, so that the content of an existing container counts, too.
    Raises `UnknownFormat`, and `Unsupported` for a format that is read only.
    """
    name = path.rstrip("/" + os.sep) if names_folder(path) else path
    row = by_name(to) if to else by_suffix(name) or by_suffix(name, third_party())
    if row is None and container:
        row = row_of_folder(path)
    if row is not None and container and not to:
        row = _row_of_file(path, row)
    if row is None:
        from raconvert.foreign import unknown_target

        raise unknown_target(path, [*broken()])
    if not row.writes:
        raise Unsupported(f"format {row.name} is read only", path=path)
    return row


def _row_of_file(path: str, row: Row) -> Row:
    """Return the container format of a file by its magic, if that is not the one of `row`.

    A `.nc` is netCDF-4 or netCDF classic.
    """
    if row.folder or not os.path.isfile(path):
        return row
    from raconvert.files.source import Source

    source = Source(path)
    head = source.head
    source.close()
    rows = [] if matches(row.magic, head) else ROWS
    containers = (other for other in rows if other.proof and other.many and other.writes)
    return next((other for other in containers if matches(other.magic, head)), row)


def detect(source: Source, name: str | None = None) -> Detection:
    """Detect the format of a file.

    An explicit `name` wins; then a sure match by content, then maybe plus suffix, then third-party
    plugins, then the table of foreign formats (which only names them in the refusal), then the
    suffix alone. Raises `UnknownFormat`, which names the formats that could not be asked.
    """
    if name:
        row = by_name(name)
        return Detection(row, "named explicitly", [Candidate(name, "sure", "named explicitly")])
    likely = by_suffix(source.path)
    if likely and likely.reads and likely.proof and matches(likely.magic, source.head):
        verdict, reason = ask(source, likely)  # no other answer would change anything
        return Detection(likely, reason, [Candidate(likely.name, VERDICTS[verdict], reason)])
    candidates: list[Candidate] = []
    match = _by_content(source, ROWS, candidates) or _by_content(source, third_party, candidates)
    if match is not None:
        return Detection(*match, candidates)
    candidates += [Candidate(name, "broken", error.what) for name, error in broken().items()]
    from raconvert.foreign import refuse_foreign

    refuse_foreign(source, named=by_suffix(source.path, third_party()) is not None)
    named = by_suffix(source.path) or by_suffix(source.path, third_party())
    if named is not None and named.reads:
        reason = f"suffix {suffix_of(source.path, named)} only"
        candidates.append(Candidate(named.name, "suffix", reason))
        return Detection(named, reason, candidates)
    from raconvert.foreign import unknown_source

    silent = [c for c in candidates if c.verdict in ("broken", "unknown")]
    raise unknown_source(source, [f"{c.name}: {c.verdict} ({c.reason})" for c in silent])


def _by_content(source: Source, rows: Any, candidates: list[Candidate]) -> tuple[Row, str] | None:
    """Return the format that is sure of a file, else the one that may be it and has its suffix.

    It comes with the reason; None if there is no such format. `rows` is `ROWS`, or a function that
    returns rows; each answer is added to `candidates`. Raises `UnknownFormat` for equal claims.
    """
    head = source.head
    possible = _possible(head) if rows is ROWS else rows()
    rows = [row for row in possible if row.reads]
    likely: list[tuple[Row, str]] = []
    certain: list[tuple[Row, str]] = []
    # Formats without a magic are asked if no other one claims the file: that imports their plugins.
    name = source.path.lower()
    fitting = {row.name for row in rows if name.endswith(row.suffixes)}
    late = {row.name for row in rows if _is_asked_late(row, head)}
    likely_row = by_suffix(name)
    by_likelihood = sorted(
        rows,
        key=lambda row: (row.name in late, row is not likely_row, row.name not in fitting),
    )
    for row in by_likelihood:
        if row.name in late and (certain or likely):
            break
        try:
            verdict, reason = ask(source, row)
        except Exception as error:  # a plugin that cannot answer does not stop the others
            why = "; ".join(line.strip() for line in str(error).splitlines())
            candidates.append(Candidate(row.name, "unknown", f"cannot tell: {why}"))
            continue
        candidates.append(Candidate(row.name, VERDICTS[verdict], reason))
        if verdict == SURE:
            certain.append((row, reason))
            if row.proof or (row is likely_row and len(fitting) > 1):
                return row, reason
        elif verdict == MAYBE and row.name in fitting:
            likely.append((row, f"{reason}; suffix {suffix_of(source.path, row)}"))
    for group in (certain, likely):
        if len(group) > 1:
            names = " and ".join(row.name for row, _ in group)
            raise UnknownFormat(
                f"formats {names} claim this file with equal right",
                path=source.path,
                remedy=f"choose with `--from {group[0][0].name}` (or another of them)",
            )
        if group:
            return group[0]
    return None


def _is_asked_late(row: Row, head: bytes) -> bool:
    """True for a format that has no magic, or whose magic a file lacks that may lack it."""
    return not row.magic or (row.bare and not matches(row.magic, head))


@functools.cache
def _by_first_byte() -> dict[int, dict[bytes, set[int]]]:
    """Return the numbers of the built-in formats by offset and first byte of each magic.

    Formats without a magic are at offset -1.
    """
    numbers: dict[int, dict[bytes, set[int]]] = {}
    for number, row in enumerate(ROWS):
        for at, text in row.magic or ((-1, b""),):
            numbers.setdefault(at, {}).setdefault(text[:1], set()).add(number)
        if row.bare:
            numbers.setdefault(-1, {}).setdefault(b"", set()).add(number)
    return numbers


def _possible(head: bytes) -> list[Row]:
    """Return the built-in formats that a file with these first bytes may be in, in order."""
    numbers: set[int] = set()
    for offset, by_byte in _by_first_byte().items():
        first = head[offset : offset + 1] if offset >= 0 else b""
        numbers |= by_byte.get(first, set())
    return [ROWS[number] for number in sorted(numbers)]


def ask(source: Source, row: Row) -> tuple[int, str]:
    """Return verdict and reason of one format: by its magic, and unless that is proof, its sniffer.

    Raises what loading and calling its plugin raises.
    """
    head = source.head if row.magic else b""
    has_magic = matches(row.magic, head)
    if row.magic and not has_magic and not row.bare:
        return NO, "other first bytes"
    if row.proof and has_magic:
        offset = next((offset for offset, text in row.magic if head.startswith(text, offset)), 0)
        return SURE, f"signature at byte {offset}"
    verdict = load(row).sniff(source)
    return verdict, f"content, {VERDICTS[verdict]}"


def suffix_of(path: str, row: Row) -> str:
    """Return the longest suffix of a format that a name ends with, as the format writes it."""
    return max((suffix for suffix in row.suffixes if path.lower().endswith(suffix)), key=len)


def check_options(row: Row, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for reading or writing a format, in the types that it declares.

    `kind` is ``read`` or ``write``. Words from the command line become ints, floats or bools.
    Raises `UsageError`, with a suggestion, for an unknown name.
    """
    if not options:
        return {}
    declared = {option.name: option for option in getattr(load(row).FORMAT, f"{kind}_options")}
    flag = "--in-opt" if kind == "read" else "--out-opt"
    checked = {}
    for word, value in options.items():
        name = word.replace("-", "_")
        if name not in declared:
            names = ", ".join(declared) or "none"
            raise UsageError(
                f"format {row.name} has no {kind} option '{name}'"
                f"{did_you_mean(name, list(declared))}",
                remedy=f"`{flag}` options of {row.name}: {names}",
            )
        checked[name] = chosen(declared[name], value, flag)
    return checked
