"""A tree checked by its certificate: every file that it names, by its digest."""

from __future__ import annotations

import os
import stat

from raconvert.arrays.memory import machine_memory
from raconvert.catalogue import ROWS
from raconvert.errors import Corrupt, RaconvertError, UsageError
from raconvert.files.paths import walk
from raconvert.files.source import read_failed
from raconvert.metadata.json import parsed
from raconvert.metadata.sidecar import added
from raconvert.migration.certificate import KIND, VERSION
from raconvert.migration.compare import DIFFERENT, ERROR, ONLY_HERE, ONLY_THERE, SAME, Finding
from raconvert.migration.journal import is_below, repr_of
from raconvert.migration.work import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


_MARKS = {mark for row in ROWS for mark in row.marks}  # files that mark a folder as one source


def check_tree(root: str, certificate: str) -> Iterator[Finding]:
    """Compare each file that a certificate says was written with what is there now.

    A missing file is only in the certificate (``+``). A file that is read along with one of them
    and is not in the certificate is only here (``-``): a sidecar, and any file in a folder that is
    one source. Nothing outside the tree is read. Raises `UsageError` if `root` is not a folder,
    `ReadFailed`, and `Corrupt` for a file that is not a certificate.
    """
    if not os.path.isdir(root):
        raise UsageError("is not a folder", path=root, expected="the tree that was written")
    names = set()
    for file in _written_files(certificate):
        name, size, digest = _checked(file, certificate)
        names.add(name)
        yield _compared(root, name, size, digest)
    for name in sorted(set(_read_along(root, names))):
        yield Finding(ONLY_HERE, name, "is not in the certificate, and is read along with it")


def _read_along(root: str, names: set[str]) -> Iterator[str]:
    """Yield the files below a tree that change what the files of a certificate hold."""
    paths = {os.path.join(root, *name.split("/")) for name in names}
    marked = {os.path.dirname(path) for path in paths if os.path.basename(path) in _MARKS}
    folders = _topmost(marked - {root.rstrip(os.sep)})  # those that are one source
    for folder in folders:
        for above, _, files in walk(folder):
            inside = {os.path.join(above, name) for name in files}
            yield from (_below(root, path) for path in inside - paths)
    for path in {*paths, *folders}:
        if sidecar := added(path, paths):
            yield _below(root, sidecar)


def _topmost(folders: Iterable[str]) -> list[str]:
    """Return folders without those that lie in another one of them."""
    topmost: list[str] = []
    for folder in sorted({os.path.join(folder, "") for folder in folders}):
        if not topmost or not folder.startswith(topmost[-1]):
            topmost.append(folder)
    return [folder.rstrip(os.sep) for folder in topmost]


def _below(root: str, path: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _written_files(path: str) -> Iterator[Any]:
    """Yield the written files of a certificate; raises `Corrupt` for any other file."""
    try:
        with open(path, "rb") as file:
            facts = parsed(file.read(), machine_memory(), f"'{path}': certificate")
    except OSError as error:
        raise read_failed(path, error) from error
    except ValueError as error:
        raise Corrupt(f"is not a certificate of a migration: {error}", path=path) from error
    if not isinstance(facts, dict) or facts.get("certificate") != KIND:
        raise Corrupt(
            "is not a certificate of a migration",
            path=path,
            remedy="name the .json file of a certificate",
        )
    if facts.get("version") != VERSION:
        raise Corrupt(
            "is of another version",
            path=path,
            expected=VERSION,
            got=facts.get("version"),
            remedy="a newer raconvert may read it; sha256sum -c SHA256SUMS works without raconvert",
        )
    files = facts.get("files")
    if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
        raise Corrupt("has no list of files", path=path)
    for entry in files:
        written = entry.get("written", [])
        if not isinstance(written, list):
            raise Corrupt("has an entry without a list of written files", path=path,
                          got=repr_of(written))  # fmt: skip
        yield from written


def _checked(file: Any, path: str) -> tuple[str, int, str]:
    """Path, size and digest of a written file; raises `Corrupt` if one of them is not valid."""
    if isinstance(file, dict):
        name, size, digest = (file.get(field) for field in ("path", "size", "sha256"))
        if name and is_below(name) and type(size) is int and isinstance(digest, str):
            return name, size, digest
    raise Corrupt(
        "has an entry of a file that is not valid",
        path=path,
        expected="path below the tree, size and sha256",
        got=repr_of(file),
    )


def _compared(root: str, name: str, size: int, digest: str) -> Finding:
    """Compare a file of the tree with its entry in the certificate."""
    path = os.path.join(root, *name.split("/"))
    inside = os.path.join(os.path.realpath(root), "")
    try:
        if not os.path.lexists(path):
            return Finding(ONLY_THERE, name, "is missing")
        if not os.path.realpath(path).startswith(inside):
            return Finding(ERROR, name, "leads out of the tree")
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return Finding(DIFFERENT, name, "is not a regular file")
        if status.st_size != size:
            return Finding(DIFFERENT, name, f"size {size}, now {status.st_size}")
        now = digest_of(path)[1]
    except RaconvertError as error:
        return Finding(ERROR, name, error.what)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Finding(ERROR, name, f"cannot be read: {reason}")
    if now != digest:
        return Finding(DIFFERENT, name, f"SHA-256 {digest}, now {now}")
    return Finding(SAME, name)
