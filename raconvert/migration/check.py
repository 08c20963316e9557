"""A tree checked by its certificate: every file that it names, by its digest."""

from __future__ import annotations

import json
import os
import stat

from raconvert.errors import Corrupt, RaconvertError, ReadFailed, UsageError
from raconvert.migration.certificate import KIND, VERSION
from raconvert.migration.compare import DIFFERENT, ERROR, ONLY_THERE, SAME, Finding
from raconvert.migration.recorded import is_below, repr_of
from raconvert.migration.work import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def check_tree(root: str, certificate: str) -> Iterator[Finding]:
    """Compare each file that a certificate says was written with what is there now.

    What is missing is only in the certificate (``+``). Nothing outside the tree is read. Raises
    `ReadFailed`, and `Corrupt` for another file.
    """
    if not os.path.isdir(root):
        raise UsageError("is not a folder", path=root, expected="the tree that was written")
    for file in _files(certificate):
        yield _found(root, *_checked(file, certificate))


def _files(path: str) -> Iterator[Any]:
    try:
        with open(path, "rb") as file:
            facts = json.loads(file.read())
    except OSError as error:
        raise ReadFailed(f"cannot be read: {error.strerror}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"is not a certificate of a migration: {error}", path=path) from error
    if not isinstance(facts, dict) or facts.get("certificate") != KIND:
        raise Corrupt(
            "is not a certificate of a migration", path=path, remedy="name the .json of it"
        )
    if facts.get("version") != VERSION:
        raise Corrupt(
            "is of another version",
            path=path,
            expected=VERSION,
            got=facts.get("version"),
            remedy="a newer raconvert may read it; sha256sum -c SHA256SUMS needs none",
        )
    files = facts.get("files")
    if not isinstance(files, list) or not all(isinstance(one, dict) for one in files):
        raise Corrupt("has no list of files", path=path)
    for one in files:
        written = one.get("written", [])
        if not isinstance(written, list):
            raise Corrupt("has no list of what was written", path=path, got=repr_of(written))
        yield from written


def _checked(file: Any, path: str) -> tuple[str, int, str]:
    """Path, size and digest of a file, when they can be meant."""
    if isinstance(file, dict):
        name, size, digest = (file.get(field) for field in ("path", "size", "sha256"))
        if name and is_below(name) and type(size) is int and isinstance(digest, str):
            return name, size, digest
    raise Corrupt(
        "names a file in a way that cannot be meant",
        path=path,
        expected="path below the tree, size and sha256",
        got=repr_of(file),
    )


def _found(root: str, name: str, size: int, digest: str) -> Finding:
    place = os.path.join(root, *name.split("/"))
    inside = os.path.join(os.path.realpath(root), "")
    try:
        if not os.path.lexists(place):
            return Finding(ONLY_THERE, name, "is missing")
        if not os.path.realpath(place).startswith(inside):
            return Finding(ERROR, name, "leads out of the tree")
        status = os.stat(place)
        if not stat.S_ISREG(status.st_mode):
            return Finding(DIFFERENT, name, "is not a regular file")
        if status.st_size != size:
            return Finding(DIFFERENT, name, f"size {size}, now {status.st_size}")
        now = digest_of(place)[1]
    except RaconvertError as error:
        return Finding(ERROR, name, error.what)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Finding(ERROR, name, f"cannot be read: {reason}")
    if now != digest:
        return Finding(DIFFERENT, name, f"SHA-256 {digest}, now {now}")
    return Finding(SAME, name)
