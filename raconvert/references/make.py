"""`refs`: write a view of arrays inside their files, with a proof of the files' state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from hashlib import sha256

from raconvert.bundle import members
from raconvert.conversion.inputs import gather, split_spec
from raconvert.conversion.options import Inspecting, Settings, options_of
from raconvert.declared import accepts
from raconvert.errors import UsageError, did_you_mean, listed
from raconvert.files.copy import write_all
from raconvert.files.paths import check_target, make_folders, refuse_used, write_failed
from raconvert.files.source import refuse_changed
from raconvert.files.target import Target

from . import KEY, KINDS, PROOF_SUFFIX, external, headers, kerchunk, kind_of_suffix
from .collect import Collection
from .link import add_link
from .pieces import Placed, files_of
from .proof import File, Proof, facts_of, files_as_seen, text_of_refs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Unpack


@accepts(options_of(Inspecting, arrays=None))
def refs(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    kind: str | None = None,
    digest: bool = False,
    overwrite: bool = False,
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    allow: Sequence[str] = (),
    **reading: Unpack[Inspecting],
) -> dict[str, Any]:
    """Write a view of arrays where they lie: a small file that names their bytes.

    No element is read or copied. `sources` are paths, ``FILE#name``, globs and folders as in
    `convert`; `kind` is one of the kinds of `raconvert refs --as`, else it follows from the suffix
    of `target`. With the view goes a proof, in it or beside it (``target.refs.json``): size and
    time of change of every file, with `digest` its SHA-256 too, by which `verify` finds what was
    edited, cut, moved or deleted since. ``allow=["arrays"]`` leaves out arrays that do not lie in
    a file as they are; the other options are those of `open`.

    >>> raconvert.refs("grid.ra", "grid.json")["arrays"]
    1
    >>> raconvert.verify("grid.json")["same"]
    True

    Raises `WouldLose` for arrays that the view cannot show (compressed, of another order or type),
    `TargetExists`, and what `open` raises.
    """
    destination = os.fspath(target)
    is_folder = destination.endswith(os.sep) or os.path.isdir(destination)
    kind = _kind(destination, kind)
    single = kind in SINGLE
    settings = Settings(**reading)
    words = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    paths = gather(
        [os.fspath(word) for word in words], recursive=recursive, include=include, exclude=exclude
    ).paths
    if not is_folder:
        check_target(destination, overwrite=overwrite)
    collection = Collection(paths, settings)
    collection.judge(*_JUDGES[kind], leave_out="arrays" in allow or "all" in allow)
    if single:
        suffix = KINDS[kind][0][0]
        view_paths = _view_paths(collection.arrays, destination, suffix, is_folder)
        views = dict(zip(view_paths, collection.arrays, strict=True))
    elif is_folder:
        raise UsageError(f"a view of kind {kind} is one file, not a folder", path=destination)
    used = dict.fromkeys([*files_of(collection.arrays), *sorted(collection.used)])
    proved = files_as_seen(collection.seen, used, digest=digest)
    refuse_changed(collection.seen)
    made = _Views(kind, proved, overwrite=overwrite)
    if single:
        for path, array in views.items():
            refuse_used([path], used)
            made.write_single(path, array)
    else:
        refuse_used([destination], used)
        made.write_all(destination, collection.arrays)
    return {
        "path": destination,
        "kind": kind,
        "proofs": made.proofs,
        "arrays": len(collection.arrays),
        "files": len(proved),
        "pieces": sum(len(array.pieces) for array in collection.arrays),
        "notes": collection.notes,
    }


SINGLE = ("nrrd", "mhd", "envi", "vrt")  # of one array
# kind -> functions of an array: the reason why a view cannot show it, or None; notes on losses
_JUDGES: dict[str, tuple[Callable[[Placed], str | None], Callable[[Placed], list[str]]]] = {
    kind: (partial(headers.problem_of, kind), partial(headers.notes_of, kind)) for kind in SINGLE
}
_JUDGES["kerchunk"] = (kerchunk.problem_of, kerchunk.notes_of)
_JUDGES["hdf5"] = (external.problem_of, external.notes_of)


def _kind(path: str, kind: str | None) -> str:
    """Return the kind of view, by its name or else the suffix of a path; raises `UsageError`."""
    if kind is None:
        kind = kind_of_suffix(path)
        if kind is None:
            raise UsageError("the name does not say which kind of view it is to be", path=path,
                             remedy=f"choose with `--as`: {', '.join(KINDS)}")  # fmt: skip
    elif kind not in KINDS:
        raise UsageError(f"no kind of view is called '{kind}'{did_you_mean(kind, list(KINDS))}",
                         expected=" | ".join(KINDS))  # fmt: skip
    return kind


def _view_paths(arrays: Sequence[Placed], path: str, suffix: str, is_folder: bool) -> list[str]:
    """Return the paths of the views of single arrays; raises `UsageError` for several in a file."""
    if is_folder:
        names = members.files_of((array.name for array in arrays), suffix)
        return [os.path.join(path, name) for name in names]
    if len(arrays) != 1:
        raise UsageError(f"a view of this kind is one of a single array; these are {len(arrays)}",
                         path=path, got=listed([array.name for array in arrays]),
                         remedy="choose with FILE#NAME, or name a folder: DIR/")  # fmt: skip
    return [path]


class _Views:
    """Writes views, each with its proof."""

    def __init__(self, kind: str, files: list[File], *, overwrite: bool) -> None:
        self.proofs: list[str] = []
        self._kind = kind
        self._files = files
        self._overwrite = overwrite

    def write_all(self, path: str, arrays: Sequence[Placed]) -> None:
        """Write one view of all arrays."""
        if self._kind != "kerchunk":
            self._write(path, external.content_of(arrays), arrays)
            return
        refs = text_of_refs(kerchunk.references(arrays))
        proof = Proof(self._kind, self._files, [], sha256=sha256(refs).hexdigest())
        head = _json({"version": 1, KEY: facts_of(proof, arrays)})
        with Target(path, overwrite=self._overwrite) as target:
            _put(target, head[:-1] + b',"refs":' + refs + b"}")
            target.commit()
        self.proofs.append(path)

    def write_single(self, path: str, array: Placed) -> None:
        """Write the view of one array."""
        extent = array.extent
        if extent is None:
            raise TypeError(f"array {array.name!r} is not one stretch of a file")
        content = headers.text_of(self._kind, array, extent, path)
        self._write(path, content, [array], extent.path if self._kind == "envi" else "")

    def _write(self, path: str, content: bytes, arrays: Sequence[Placed], linked: str = "") -> None:
        """Write a view, its proof beside it, and a link to the file `linked` if one is named."""
        folder = os.path.dirname(path)
        if folder:
            make_folders(folder)
        sources = {piece.path for array in arrays for _, piece in array.pieces}
        sources |= {array.source for array in arrays}
        paths = {os.path.abspath(split_spec(source)[0]) for source in sources}
        files = [file for file in self._files if file.path in paths or len(arrays) != 1]
        proof = Proof(self._kind, files, [], os.path.basename(path), sha256(content).hexdigest())
        with Target(path, overwrite=self._overwrite) as target:
            _put(target, content)
            beside = target.beside(PROOF_SUFFIX, appended=True)
            _put(beside, _json({"version": 1, KEY: facts_of(proof, arrays)}))
            if linked:
                add_link(target, linked, overwrite=self._overwrite)
            target.commit()
        self.proofs.append(path + PROOF_SUFFIX)


def _json(value: Any) -> bytes:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def _put(target: Target, content: bytes) -> None:
    """Write the content of a target; raises `WriteFailed`."""
    try:
        write_all(target.open(), [content])
    except OSError as error:
        raise write_failed(target.path, error) from error
