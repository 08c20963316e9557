"""The certificate of a migration: what became of every file, and how to check it without us.

It is made from the journal (of all shards), at the end of a run or any time later: a page for
people (`page`) and JSON for programs, which docs/certificate.md describes. Paths are those below
the roots of the two trees, so that it holds wherever they are kept.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from time import time

from raconvert import __version__
from raconvert.errors import RaconvertError, TargetExists, UsageError, WriteFailed
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed
from raconvert.files.source import read_failed
from raconvert.files.target import Target
from raconvert.migration.checksums import NAME, content, files_of, parsed
from raconvert.migration.records import DONE, SKIPPED
from raconvert.migration.shards import read_all
from raconvert.workers.worker import decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from raconvert.migration.journal import Known

KIND, VERSION = "raconvert migration", 1
_JSON_HEAD = b'{\n"certificate": "%s",' % KIND.encode()
_FIT = ("array", "property", "reason", "flag")
_PARTS = ("what", "where", "expected", "got", "remedy")


def write_certificate(
    base: str, target: str, journal: str | None = None, *, overwrite: bool = False
) -> list[str]:
    """Write BASE.html and BASE.json about the migration into a tree; return their paths.

    Raises `TargetExists` for files of these names that are not certificates, `UsageError` if there
    is no migration, and `WriteFailed`.
    """
    from raconvert.migration.page import page_of  # imported only if a page is written

    base = stem_of(base)
    check_place(base, overwrite=overwrite)
    facts = certificate_of(target, journal)
    name = os.path.basename(base)
    return [
        _written(base + ".json", _json_of(facts)),
        _written(base + ".html", page_of(facts, f"{name}.json")),
    ]


def stem_of(base: str) -> str:
    """The name of a certificate without the suffixes of its two files."""
    stem, suffix = os.path.splitext(base)
    return stem if suffix.lower() in (".html", ".json") else base


def check_place(base: str, *, overwrite: bool = False) -> None:
    """Raise `TargetExists` if a certificate would replace another file.

    Raises `WriteFailed` if its folder does not exist, `ReadFailed` for a file that cannot be read.
    """
    from raconvert.migration.page import PAGE
    from raconvert.views.pages.markup import head_of

    base = stem_of(base)
    page_head = head_of(PAGE).encode()
    for path, head in ((base + ".json", _JSON_HEAD), (base + ".html", page_head)):
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise WriteFailed("cannot be written: its folder does not exist", path=path)
        if not os.path.lexists(path):
            continue
        if not os.path.isfile(path) or not (overwrite or _begins_with(head, path)):
            raise TargetExists(
                "exists already and is not a certificate of a migration",
                path=path,
                remedy="name another file with `--report`",
            )


def _begins_with(head: bytes, path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(head)) == head
    except OSError as error:
        raise read_failed(path, error) from error


def versions() -> dict[str, Any]:
    """The versions of raconvert, of Python, and of the libraries that formats are read with."""
    from importlib import metadata
    from platform import python_implementation, python_version

    requirements: list[str] = []
    try:
        listed = metadata.requires("raconvert") or ()
        requirements = [text for text in listed if "extra ==" not in text]
    except metadata.PackageNotFoundError:
        pass
    libraries = {}
    for name in (re.split("[ ;<=>~!]", text)[0] for text in requirements):
        try:
            libraries[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "raconvert": __version__,
        "python": f"{python_implementation()} {python_version()}",
        "libraries": libraries,
    }


# Facts ------------------------------------------------------------------------------------------


def certificate_of(target: str, journal: str | None = None) -> dict[str, Any]:
    """Return the contents of the certificate, as values of JSON."""
    settings, entries = read_all(target, journal)
    if not settings:
        raise UsageError("a migration has just begun here, and has nothing to tell", path=target)
    options = dict(settings["options"])
    source, to = options.pop("source"), options.pop("to")
    files = [_file(entry, (source, target)) for entry in entries]
    files.sort(key=lambda file: str(file["source"]))
    runs = settings.get("runs", [])
    return {
        "certificate": KIND,
        "version": VERSION,
        "made": iso(time()),
        "made_by": versions(),
        "source": {"name": _name(source)},
        "target": {"name": _name(target)},
        "to": to,
        "options": {name: value for name, value in options.items() if value not in (None, [], {})},
        "began": iso(settings["began"]),
        "ended": iso(settings.get("ended")),
        "complete": bool(settings.get("ended")),
        "shards": settings.get("shards"),
        "runs": [{**run, "began": iso(run["began"])} for run in runs],
        "summary": _summary(files, settings),
        "checksums": _checksums(target, files),
        "left_out": [
            {"path": path, "reason": reason} for path, reason in settings.get("left_out", ())
        ],
        "files": files,
    }


def iso(seconds: float | None) -> str | None:
    """A time as ISO 8601 has it, in UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _name(root: str) -> str:
    return os.path.basename(os.path.abspath(root)) if "://" not in root else root


def _file(known: Known, roots: tuple[str, str]) -> dict[str, Any]:
    """The entry of a source: its result, the files written for it, changes and remarks."""
    unit, outcome = known.unit, known.outcome
    entry: dict[str, Any] = {
        "source": unit.source,
        "result": "unfinished",
        "size": unit.size,
        "modified": iso(unit.mtime / 1e9),
        "sha256": None,
    }
    if unit.members:
        entry["members"] = list(unit.members)
    if outcome is None:
        return entry
    remarks = outcome.said or {}
    entry["sha256"] = outcome.source or None
    entry["result"] = _result(outcome.state, remarks)
    if outcome.state == DONE:
        entry["written"] = [
            {"path": path, "size": size, "sha256": digest}
            for path, size, digest in files_of(unit, outcome)
        ]
        entry["when"] = iso(known.time)
    for kind in ("equivalent", "allowed"):
        if remarks.get(kind):
            entry[kind] = [dict(zip(_FIT, fit[1:], strict=False)) for fit in remarks[kind]]
    if remarks.get("notes"):
        entry["notes"] = [_below(note, roots) for note in remarks["notes"]]
    if outcome.error:
        error = decoded(outcome.error)
        entry["result"] = "refused" if error.exit_code in (4, 5) else "failed"
        entry["error"] = _error(error, roots)
    return entry


def _result(state: str, remarks: dict[str, list[Any]]) -> str:
    if state != DONE:
        return "kept" if state == SKIPPED else "failed"
    for change in ("allowed", "equivalent"):
        if remarks.get(change):
            return change
    return "exact"


def _error(error: RaconvertError, roots: tuple[str, str]) -> dict[str, str]:
    parts = {"kind": error.kind}
    for part in _PARTS:
        value = getattr(error, part)
        if value is not None:
            parts[part] = _below(str(value), roots)
    notes = [_below(note, roots) for note in getattr(error, "__notes__", ())]
    return {**parts, "notes": "\n".join(notes)} if notes else parts


def _below(text: str, roots: tuple[str, str]) -> str:
    """A text in which paths begin at the roots of the trees."""
    for root in roots:
        text = text.replace(os.path.join(root, ""), "")
    return text


def _summary(files: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, int]:
    counts = Counter(file["result"] for file in files)
    written = [result for file in files for result in file.get("written", ())]
    return {
        "sources": max(len(files), settings.get("units", 0)),
        "converted": counts["exact"] + counts["equivalent"] + counts["allowed"],
        **{
            result: counts[result]
            for result in ("exact", "equivalent", "allowed", "kept", "refused", "failed")
        },
        "unfinished": max(len(files), settings.get("units", 0))
        - sum(count for result, count in counts.items() if result != "unfinished"),
        "left_out": len(settings.get("left_out", ())),
        "files_written": len(written),
        "bytes_read": sum(file["size"] for file in files if "written" in file),
        "bytes_written": sum(result["size"] for result in written),
    }


def _checksums(target: str, files: Iterable[dict[str, Any]]) -> dict[str, str] | None:
    """Name and digest of the list of checksums; None if it does not list all written files."""
    path = os.path.join(target, NAME)
    try:
        text = content(path)
        if text is None:
            return None
        listed = dict(parsed(text, path))
    except RaconvertError:
        return None
    written = (result for file in files for result in file.get("written", ()))
    if any(listed.get(result["path"]) != result["sha256"] for result in written):
        return None
    return {"file": NAME, "sha256": sha256(text).hexdigest()}


# Files ------------------------------------------------------------------------------------------


def _json_of(facts: dict[str, Any]) -> Iterator[str]:
    """The certificate as JSON, with a line for each field, source and file that was left out."""
    yield "{\n"
    for number, (name, value) in enumerate(facts.items()):
        yield ",\n" if number else ""
        if isinstance(value, list) and value:
            yield f"{json.dumps(name)}: [\n"
            for index, item in enumerate(value):
                yield (",\n" if index else "") + json.dumps(item, allow_nan=False)
            yield "\n]"
        else:
            yield f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
    yield "\n}\n"


def _written(path: str, parts: Iterable[str]) -> str:
    try:
        with Target(path, overwrite=True) as target:
            write_all(target.open(), _pieces(parts))
            target.commit()
    except OSError as error:
        raise write_failed(path, error) from error
    return path


def _pieces(parts: Iterable[str], nbytes: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of texts, in pieces of about `nbytes`, which are worth a call of the system."""
    piece = bytearray()
    for part in parts:
        piece += part.encode()
        if len(piece) >= nbytes:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
