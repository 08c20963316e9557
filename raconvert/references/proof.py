"""The proof of a view: size, time and digest of each file that it names, and their comparison."""

from __future__ import annotations

import hashlib
import json
import os
import re
from stat import S_ISREG

from raconvert.arrays.dtypes import little, type_name
from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported, changed
from raconvert.files.named import resolve
from raconvert.files.paths import is_remote
from raconvert.files.source import Source, identity_of, open_regular, read_failed
from raconvert.metadata.json import parsed

from . import KEY, KINDS, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from raconvert.files.source import Identity

    from .pieces import Placed

SLAB = 1 << 20


class File(Record):
    """A file that a view names: absolute path, bytes, time of change in ns, SHA-256 or empty."""

    path: str
    size: int
    mtime_ns: int
    sha256: str = ""


class Proof(Record):
    """The files that a view names. `view` is its name beside the proof; empty if it is one file."""

    kind: str
    files: list[File]
    arrays: list[dict[str, Any]]
    view: str = ""
    sha256: str = ""  # of the view, or of its ``refs``
    refs: Any = None  # the references, for a view in the same file


# Making -----------------------------------------------------------------------------------------


def files_as_seen(seen: dict[str, Identity], paths: Iterable[str], *, digest: bool) -> list[File]:
    """List the files as they were when opened: size, time; with `digest` also their SHA-256."""
    files = []
    for path in paths:
        if path not in seen:  # a sidecar or partner that was read by another way
            if is_remote(path) or not os.path.isfile(path):
                continue
            seen[path] = identity_of(os.stat(path))
        _, _, size, mtime = seen[path]
        code = sha256_of(path, seen[path]) if digest else ""
        files.append(File(os.path.abspath(path), size, mtime, code))
    return files


def sha256_of(path: str, known: Identity | None = None) -> str:
    """Return the SHA-256 of a regular file, as `sha256sum` prints it.

    Raises `Changed` if its identity is not `known`, or changes, and `ReadFailed`.
    """
    descriptor = open_regular(path, known)
    state = hashlib.sha256()
    try:
        while piece := os.read(descriptor, SLAB):
            state.update(piece)
        if known is not None and identity_of(os.fstat(descriptor)) != known:
            raise changed(path)
    except OSError as error:
        raise read_failed(path, error) from error
    finally:
        os.close(descriptor)
    return state.hexdigest()


def text_of_refs(refs: Any) -> bytes:
    """Return references as JSON in the one layout whose SHA-256 is in the proof."""
    return json.dumps(refs, sort_keys=True, separators=(",", ":")).encode()


def facts_of(proof: Proof, arrays: Sequence[Placed]) -> dict[str, Any]:
    """Return a proof of arrays as plain values, for JSON."""
    numbers = {file.path: number for number, file in enumerate(proof.files)}
    return {
        "references": VERSION,
        "kind": proof.kind,
        "view": proof.view,
        "sha256": proof.sha256,
        "files": [
            {name: value for name, value in file._asdict().items() if value != ""}
            for file in proof.files
        ],
        "arrays": [_array_facts(array, numbers) for array in arrays],
    }


def _array_facts(array: Placed, numbers: dict[str, int]) -> dict[str, Any]:
    """Return the facts of an array in a proof; `numbers` are those of its files."""
    paths = dict.fromkeys(piece.path for _, piece in array.pieces)
    return {
        "name": array.name,
        "type": type_name(little(array.element)),
        "byte_order": {"<": "little", ">": "big", "|": None}[array.element.order],
        "shape": list(array.shape),
        "index_order": array.index_order,
        "pieces": len(array.pieces),
        "nbytes": sum(piece.nbytes for _, piece in array.pieces),
        "files": [numbers[os.path.abspath(path)] for path in paths],
    }


# Reading ----------------------------------------------------------------------------------------


def load(path: str, max_memory: int) -> Proof:
    """Return the proof in a file, after checking each of its values.

    Raises `Corrupt` for a damaged proof, `Unsupported` for references without one, and `TooLarge`.
    """
    source = Source(path)
    check_memory(source.size, max_memory, f"'{path}': references")
    try:
        data = source.read_exact(0, source.size, "the references")
        whole = parsed(data, max_memory, f"'{path}': references")
    except ValueError as error:
        raise Corrupt("is not JSON", path=path, got=str(error)[:200]) from error
    finally:
        source.close()
    facts = whole.get(KEY) if isinstance(whole, dict) else None
    if facts is None:
        raise Unsupported(
            "has references without a proof: nothing says what the files were", path=path,
            remedy="make them with raconvert refs: verify finds changed files of such a view",
        )  # fmt: skip
    try:
        return _proof(facts, whole)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt("proof of the references is damaged", path=path,
                      got=f"{type(error).__name__}: {error}"[:200]) from error  # fmt: skip


def _proof(facts: dict[str, Any], whole: dict[str, Any]) -> Proof:
    """Return the proof of these facts in a document; raises `ValueError` and `TypeError`."""
    if facts["references"] != VERSION:
        raise ValueError(f"version {facts['references']!r:.20}, not {VERSION}")
    files = [
        File(_text(f["path"]), _count(f["size"]), _count(f["mtime_ns"], -(1 << 63)),
             _digest(f.get("sha256", "")))
        for f in facts["files"]
    ]  # fmt: skip
    if any(not os.path.isabs(file.path) for file in files):
        raise ValueError("a path is not whole")
    if len({os.path.normpath(file.path) for file in files}) != len(files):
        raise ValueError("a file is listed twice")  # each is read for its digest
    view = _text(facts["view"])
    if view != os.path.basename(view) or view in (".", ".."):
        raise ValueError("the view is not beside its proof")
    arrays = [_array(array, len(files)) for array in facts["arrays"]]
    refs = None if view else whole["refs"]
    if refs is not None and (whole.keys() != {"version", KEY, "refs"} or whole["version"] != 1):
        raise ValueError("there is more than references")  # templates and rules make others of them
    if refs is not None and not isinstance(refs, dict):
        raise TypeError("refs are not a mapping")
    if facts["kind"] not in KINDS:
        raise ValueError("unknown kind of view")
    return Proof(facts["kind"], files, arrays, view, _digest(facts["sha256"]), refs)


def _array(array: dict[str, Any], files: int) -> dict[str, Any]:
    """Return the checked facts of an array in a proof of so many files."""
    shape = [_count(n) for n in array["shape"]]
    if array["index_order"] not in ("C", "F", None):
        raise ValueError("unknown index order")
    if array["byte_order"] not in ("little", "big", None):
        raise ValueError("unknown byte order")
    if any(_count(n) >= files for n in array["files"]):
        raise ValueError("an array lies in a file that is not listed")
    return {
        "name": _text(array["name"]),
        "type": _text(array["type"]),
        "byte_order": array["byte_order"],
        "shape": shape,
        "index_order": array["index_order"],
        "pieces": _count(array["pieces"]),
        "nbytes": _count(array["nbytes"]),
        "files": list(array["files"]),
    }


def _text(value: Any) -> str:
    """Return a text without NUL; raises `TypeError` for any other value."""
    if not isinstance(value, str) or "\0" in value:
        raise TypeError(f"{value!r:.40} is not a text")
    return value


def _count(value: Any, least: int = 0) -> int:
    """Return an integer of 64 bits; raises `ValueError` for any other value."""
    if type(value) is not int or not least <= value < 1 << 63:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def _digest(value: Any) -> str:
    """Return a SHA-256 as hex, or an empty text; raises an error for any other value."""
    if value != "" and not re.fullmatch("[0-9a-f]{64}", _text(value)):
        raise ValueError("a digest is not 64 hexadecimal digits")
    return str(value)


# Comparing --------------------------------------------------------------------------------------


def state_of(file: File) -> tuple[str, str]:
    """Compare size and time of a file with its record; return a word for its state, and the reason.

    Words are ``ok``, ``touched`` (another time of change), ``changed``, ``cut`` and ``missing``.
    """
    try:
        status = os.stat(file.path)
    except (OSError, ValueError) as error:
        return "missing", getattr(error, "strerror", None) or str(error)
    if not S_ISREG(status.st_mode):
        return "changed", "it is not a regular file"
    if status.st_size != file.size:
        word = "cut" if status.st_size < file.size else "changed"
        return word, f"{status.st_size} bytes, not {file.size}"
    if status.st_mtime_ns != file.mtime_ns:
        return "touched", "it was written to since"
    return "ok", ""


def compared(file: File, source: Source) -> tuple[str, str]:
    """Compare a file with its record as `state_of` does, and by the SHA-256 if there is one.

    `source` is the file that names it: raises `Unsafe` for a file with a SHA-256 outside its
    folder, unless it has `trust_external`.
    """
    word, state = state_of(file)
    if word not in ("ok", "touched"):
        return word, state
    if not file.sha256:
        return ("ok" if word == "ok" else "changed"), state
    path = resolve(source, file.path, "a file that has a digest")
    if sha256_of(path) == file.sha256:
        return "ok", ""
    return "changed", "it has another SHA-256"


def problem_of_refs(proof: Proof) -> str:
    """Return the damage of the references themselves, in words; empty if they are sound."""
    sizes = {f"file://{file.path}": file.size for file in proof.files}
    for key, value in proof.refs.items():
        if isinstance(value, str):
            continue
        named = isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)
        if not named or value[0] not in sizes:
            return f"{key[:80]} names a file that has no proof"
        if any(type(n) is not int or n < 0 for n in value[1:]):
            return f"{key[:80]} has no valid offset and length"
        if value[1] + value[2] > sizes[value[0]]:
            return f"{key[:80]} lies outside its file"
    digest = hashlib.sha256(text_of_refs(proof.refs)).hexdigest()
    return "" if digest == proof.sha256 else "it was edited"
