"""Views in `verify` and `info`: the comparison of their files with the proof, and the report."""

from __future__ import annotations

import os
from contextlib import suppress
from math import prod

from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsafe
from raconvert.files.paths import walk
from raconvert.files.source import Source

from . import PROOF_SUFFIX, proof_beside
from .link import problem_of_link
from .proof import File, Proof, compared, load, problem_of_refs, sha256_of, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

WORDS = ("ok", "changed", "cut", "missing")
_READ = ("nrrd", "mhd", "hdf5")  # kinds of views that are a format of ours
MOST_NAMED = 3  # arrays of a file, in messages


class View(Record):
    """A view that has a proof."""

    path: str  # of the view
    proof_path: str
    proof: Proof


def view_of(path: str, max_memory: int) -> View:
    """Return the view at a path, or the one whose proof is there.

    Raises what `raconvert.references.proof.load` raises.
    """
    proof_path = proof_beside(path) or path
    proof = load(proof_path, max_memory)
    own = os.path.join(os.path.dirname(proof_path), proof.view) if proof.view else proof_path
    if os.path.normpath(path) not in map(os.path.normpath, (own, proof_path)):
        raise Corrupt("proof is that of another view", path=proof_path, expected=f"'{path}'",
                      got=f"'{own}'")  # fmt: skip
    return View(own, proof_path, proof)


def views_below(folder: str, *, recursive: bool) -> Iterator[str]:
    """Yield the paths of the views in a folder that have a proof, and of proofs without a view."""
    for above, _, names in walk(folder):
        for name in names:
            path = os.path.join(above, name)
            if not name.endswith(".json") or proof_beside(path) is None:
                continue
            view = path.removesuffix(PROOF_SUFFIX)
            has_view = view != path and os.path.lexists(view) and proof_beside(view) == path
            yield view if has_view else path
        if not recursive:
            return


def verified(path: str, *, trust: Sequence[str], max_memory: int) -> dict[str, Any]:
    """Compare the files of a view with its proof; return the report of `raconvert.verify`.

    ``references`` counts the files that are ``ok``, ``changed``, ``cut`` and ``missing``;
    ``problems`` has a row for each file that is not ``ok``, and one if the view itself was changed.

    Raises `Corrupt` for a damaged proof, `Unsafe` for a digest of a file outside the folder.
    """
    view = view_of(path, max_memory)
    source = Source(view.proof_path, trust_external="external" in trust)
    states = [compared(file, source) for file in view.proof.files]
    counts = {word: sum(state == word for state, _ in states) for word in WORDS}
    arrays = _arrays_by_file(view.proof)
    problems = []
    for number, (file, (word, reason)) in enumerate(zip(view.proof.files, states, strict=True)):
        if word != "ok":
            names = arrays.get(number, [])
            problem = {"path": file.path, "problem": word, "found": reason, "arrays": names}
            problems.append(problem)
    own = _own_problem(view)
    if own:
        problems.append({"path": view.path, "problem": "changed", "found": own, "arrays": []})
    return {
        "path": path,
        "arrays": [],
        "container": True,
        "notes": [],
        "same": not problems,
        "references": {"kind": view.proof.kind, "proof": view.proof_path, **counts},
        "problems": problems,
    }


def _own_problem(view: View) -> str:
    """Return the change of the view itself since it was made, in words; empty if there is none."""
    if view.proof.refs is not None:
        return problem_of_refs(view.proof)
    try:
        same = sha256_of(view.path) == view.proof.sha256
    except RaconvertError as error:
        return error.what
    if not same:
        return "it was edited"
    for file in _data_files(view) if view.proof.kind == "envi" else ():
        if problem := problem_of_link(view.path, file.path):
            return problem
    return ""


def _data_files(view: View) -> list[File]:
    """Return the files in which the arrays of a view lie."""
    return [view.proof.files[number] for array in view.proof.arrays for number in array["files"]]


def _arrays_by_file(proof: Proof) -> dict[int, list[str]]:
    """Map the number of each file to the names of the arrays in it."""
    names: dict[int, list[str]] = {}
    for array in proof.arrays:
        for number in array["files"]:
            names.setdefault(number, []).append(array["name"])
    return names


def summary(view: View) -> dict[str, Any]:
    """Return a summary of a view, for which its files are not read.

    ``odd`` lists the files whose size or time of change differs from the proof.
    """
    states = [(file.path, *state_of(file)) for file in view.proof.files]
    return {
        "kind": view.proof.kind,
        "proof": view.proof_path,
        "files": len(states),
        "digests": all(file.sha256 for file in view.proof.files),
        "odd": [
            {"path": file_path, "problem": word, "found": reason}
            for file_path, word, reason in states
            if word != "ok"
        ],
    }


def shown(path: str, max_memory: int, by_format: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the facts of a view: by its own format if raconvert reads it, else by its proof."""
    view = view_of(path, max_memory)
    if view.proof.kind in _READ and path != view.proof_path:
        with suppress(Unsafe):  # it names files outside its folder
            return {**by_format(), "references": summary(view)}
    return described(view)


def described(view: View) -> dict[str, Any]:
    """Return the facts of a view by its proof alone, under the keys of `raconvert.info`."""
    arrays = [_described(array) for array in view.proof.arrays]
    return {
        "path": view.path,
        "format": view.proof.kind,
        "title": f"references ({view.proof.kind})",
        "reason": "its proof",
        "plugin": __package__,
        "container": True,
        "stored_bytes": os.stat(view.path).st_size,
        "nbytes": sum(array["nbytes"] for array in arrays),
        "sidecar": None,
        "attributes": {},
        "groups": {},
        "aliases": {},
        "arrays": arrays,
        "notes": [],
        "references": summary(view),
    }


def _described(array: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of an array by its proof, under the keys of `raconvert.info`."""
    shape = array["shape"]
    layout = {"kind": "encoded", "offset": None, "nbytes": None, "swap": None}
    storage = {"layout": "references", "pieces": array["pieces"]}
    return {
        **{key: array[key] for key in ("name", "type", "byte_order", "index_order", "shape")},
        "kind": None,
        "element_bytes": None,
        "descr": None,
        "dims": shape if array["index_order"] == "F" else shape[::-1],
        "count": prod(shape),
        "nbytes": array["nbytes"],
        "layout": layout,
        "storage": storage,
        "metadata": {},
        "to_ra": {"exact": False, "sidecar": []},
        "problem": None,
    }
