"""``SHA256SUMS`` at the root of a target tree: what `sha256sum -c` needs to check all of it.

It has a line for every file that was written, partner files and the files of folders included, in
the order of their names, so that it does not depend on how often the run was interrupted. Lines
about other files, of another shard or of somebody else, stay.
"""

from __future__ import annotations

import os
import re

from raconvert.errors import TargetExists, Unsafe
from raconvert.files.copy import write_all
from raconvert.files.paths import open_own, write_failed
from raconvert.files.source import read_failed
from raconvert.files.target import Target
from raconvert.inspect.digest import manifest_line
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX
from raconvert.migration.journal import Lock
from raconvert.migration.records import target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.migration.records import Outcome, Unit


NAME = "SHA256SUMS"
_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)")
_ESCAPED = re.compile(r"[\\\n\r]")
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}


def files_of(unit: Unit, outcome: Outcome) -> Sequence[Sequence[Any]]:
    """Path below the root, size and SHA-256 of each file that a unit was converted into."""
    return outcome.files or ((target_of(unit, outcome), outcome.size, outcome.digest),)


def sums_of(finished: Iterable[tuple[Unit, Outcome]]) -> dict[str, str]:
    """Map the path, below the root, of each file that units were converted into to its SHA-256."""
    sums: dict[str, str] = {}
    for unit, outcome in finished:
        if outcome.files:
            sums.update((path, digest) for path, _, digest in outcome.files if digest)
        elif outcome.digest:  # empty if a store has copied the file, unread
            sums[outcome.target or unit.target] = outcome.digest
    return sums


def update_checksums(
    root: str, finished: Sequence[tuple[Unit, Outcome]], *, shared: bool = False
) -> str:
    """Write the lines of finished files; they replace earlier lines of the same files.

    `shared`: other runs may write them at the same moment, and take turns. Returns an empty text,
    or, if a file of this name is something else, why nothing was written. Raises `WriteFailed`.
    """
    lock = Lock(os.path.join(root, ".raconvert-migration.sums.lock"), wait=True) if shared else None
    try:
        _update(root, finished)
    except TargetExists as error:
        return "no checksums were written: " + str(error).partition("\n")[0]
    finally:
        if lock is not None:
            lock.release()
    return ""


def _update(root: str, finished: Sequence[tuple[Unit, Outcome]]) -> None:
    path = os.path.join(root, NAME)
    sums = sums_of(finished)
    before = content(path)
    if before:
        targets = {target_of(unit, outcome) for unit, outcome in finished}
        longest = max(map(len, targets), default=0)
        for name, digest in parsed(before, path):
            if not _belongs(name, targets, longest):
                sums.setdefault(name, digest)
    text = text_of(sums)
    if text != before and (text or before is not None):
        _write(path, text)


def text_of(sums: dict[str, str]) -> bytes:
    """The lines that `sha256sum` prints for these files, in the order of their names."""
    names = sorted(sums)
    if _ESCAPED.search("".join(names)):
        text = "".join([f"{manifest_line(name, sums[name])}\n" for name in names])
    else:
        text = "".join([f"{sums[name]}  {name}\n" for name in names])
    return os.fsencode(text)


def parsed(text: bytes, path: str) -> Iterator[tuple[str, str]]:
    """Yield name and digest of each line; raises `TargetExists` if one is not a checksum."""
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n") if text else (), 1):
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise TargetExists(
                "is not a list of checksums, and is left as it was",
                path=path,
                where=f"line {number}",
                remedy=f"rename it: checksums of converted files are written as {NAME}",
            )
        mark, digest, name = parts.groups()
        if mark:
            name = re.sub(rb"\\[\\nr]", lambda match: _ESCAPES[match[0]], name)
        yield os.fsdecode(name), digest.decode()


def _belongs(name: str, targets: set[str], longest: int) -> bool:
    """True if a file belongs to one of the targets, which are all listed anew."""
    for suffix in (SUFFIX, ITEMS_SUFFIX):
        if name.removesuffix(suffix) in targets:
            return True
    if len(name) > longest:  # a longer part of it cannot be a target
        name = name[: longest + 1].rpartition("/")[0]
    while name:
        if name in targets:
            return True
        name = name.rpartition("/")[0]
    return False


def content(path: str) -> bytes | None:
    """Read the list of checksums at a path or URL; None if it does not exist.

    Raises `TargetExists` for what is not a regular file, `ReadFailed`.
    """
    if "://" in path:
        from raconvert.migration.remote import content_of

        return content_of(path)
    if os.path.isdir(path):
        raise TargetExists("is a folder, and not a list of checksums", path=path)
    try:
        with os.fdopen(open_own(path), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except Unsafe as error:
        raise TargetExists(error.what, path=path, remedy=error.remedy) from error
    except OSError as error:
        raise read_failed(path, error) from error


def _write(path: str, text: bytes) -> None:
    if "://" in path:
        from raconvert.migration import remote

        remote.write(path, text)
        return
    try:
        with Target(path, overwrite=True, follow=False) as target:
            write_all(target.open(), [text])
            target.commit()
    except OSError as error:
        raise write_failed(path, error) from error
