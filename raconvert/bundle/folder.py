"""A bundle as a folder: ``bundle.yaml``, one .ra file for each array, sidecars beside them.

The folder appears whole: everything is written into a hidden folder beside the destination, which
is renamed at the end. An existing bundle is replaced only with ``--overwrite``, and only if there
is nothing else in it.
"""

from __future__ import annotations

import os

from raconvert.arrays.dtypes import FLOAT8
from raconvert.bundle import manifest, members
from raconvert.bundle.members import MANIFEST
from raconvert.errors import RaconvertError, Unsupported
from raconvert.files.copy import write_all
from raconvert.files.folder_target import Folder, check_folder
from raconvert.files.paths import walk, write_failed
from raconvert.metadata import sidecar
from raconvert.plugin import MODEL, NO, SURE, Bundle, Format, Plan, Source, first_of
from raconvert.ra import plugin as ra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["FORMAT", "add", "check_target", "plan", "read", "sniff", "target"]

FORMAT = Format(
    name="bundle",
    title="Bundle: a folder of .ra files with bundle.yaml",
    raw_bools=True,
    float8=FLOAT8,
    names_files=True,
    suffixes=(),
    magic=((0, manifest.MARK),),
    proof=True,
    many=True,
    meta="all",
    holds=MODEL,
    index_orders="",
    sidecar="never",
    folder=True,
    marks=(MANIFEST,),
    read_options=members.READ_OPTIONS,
    samples={MANIFEST: manifest.MARK + b"1\narrays: []\n...\n"},
    spec=members.SPEC,
    losses=members.LOSSES,
)


def sniff(source: Source) -> int:
    """Sure by the first words of ``bundle.yaml``."""
    return SURE if source.head.startswith(manifest.MARK) else NO


def is_bundle(path: str) -> bool:
    """True if a folder is a bundle."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def folder_of(names: Iterable[str], path: str) -> str:
    """Return the path before ``bundle.yaml`` in an archive: empty, or one folder and ``/``.

    Raises `Unsupported` if several folders have one.
    """
    listed = [name for name in names if name.split("/")[-1] == MANIFEST and name.count("/") < 2]
    if len(listed) > 1 and MANIFEST not in listed:
        raise Unsupported(f"holds several bundles: {first_of(listed)}", path=path)
    return "" if MANIFEST in listed or not listed else listed[0].removesuffix(MANIFEST)


# Reading ---------------------------------------------------------------------------------------


def read(source: Source, *, metadata: bool = True) -> Bundle:
    """Return the arrays of a bundle; the path of the source is its folder or ``bundle.yaml``."""
    folder = source.path if os.path.isdir(source.path) else os.path.dirname(source.path)
    listing = source.at(os.path.join(folder, MANIFEST))
    source.used.add(listing.path)

    def find(file: str) -> Source | None:
        if not os.path.lexists(os.path.join(folder, file)):
            return None
        return listing.named(file, f"file '{file}' of the bundle")

    return members.read(find, source.path, metadata=metadata)


# Writing ---------------------------------------------------------------------------------------


def check_target(path: str, *, overwrite: bool) -> None:
    """Raise `TargetExists` if the destination exists, unless it is an empty folder.

    With `overwrite` a bundle may be replaced, if every file in it is part of the bundle.
    """
    check_folder(path, overwrite=overwrite, strangers=_first_stranger, what="a bundle")


def _first_stranger(folder: str) -> str | None:
    """Return the path of a file or folder in a folder that is not part of its bundle, or None."""
    if not is_bundle(folder):
        return next(iter(os.listdir(folder)))
    try:
        entries = manifest.load(Source(os.path.join(folder, MANIFEST))).entries
    except RaconvertError:
        return MANIFEST
    own = {MANIFEST}
    for entry in entries:
        own |= {entry.file, sidecar.path_of(entry.file), sidecar.items_path_of(entry.file)}
    folders = {file[:end] for file in own for end, letter in enumerate(file) if letter == "/"}
    for parent, inner, names in walk(folder):
        above = ""
        if parent != folder:
            above = os.path.relpath(parent, folder).replace(os.sep, "/") + "/"
        links = [name for name in inner if os.path.islink(os.path.join(parent, name))]
        strange = {above + name for name in (*names, *links)} - own
        strange |= {above + name for name in {*inner} - {*links}} - folders
        if strange:
            return min(strange)
    return None


class FolderTarget(Folder):
    """Target of a bundle: written as `temp` beside `path`, then renamed."""

    __slots__ = ()
    WHAT = "a bundle"

    def strangers(self, folder: str) -> str | None:
        """Return the path of an entry of the folder that is not part of the bundle, or None."""
        return _first_stranger(folder)


def target(path: str, **named: Any) -> FolderTarget:
    """Return the target for a destination."""
    return FolderTarget(path.rstrip("/" + os.sep) or path, **named)


def plan(bundle: Bundle) -> Plan:
    """Plan a folder: each array with its sidecar, and the manifest; all of RA fits."""
    files = members.paths_of(bundle)
    return Plan(
        members.fits(bundle, files),
        lambda target: _write(bundle, files, target),
        names=bundle.names,
    )


def add(bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool) -> Plan:
    """Plan the folder with its files, those of further arrays, and a new manifest; see `Add`."""
    folder = os.path.dirname(source.path)
    content = manifest.load(source.at(os.path.join(folder, MANIFEST)))
    existing = [
        os.path.relpath(os.path.join(above, name), folder).replace(os.sep, "/")
        for above, inner, names in walk(folder)
        for name in (*names, *inner)
    ]
    added = members.Added(bundle, content, folder, existing, overwrite=overwrite)

    def write(target: FolderTarget) -> None:
        target.keep()
        for file in (MANIFEST, *(file for files in added.gone.values() for file in files)):
            target.discard(file)
        _write(bundle, added.files, target, added.text)

    return Plan(members.fits(bundle, added.files), write, names=bundle.names)


def _write(
    bundle: Bundle, files: list[str], target: FolderTarget, text: bytes | None = None
) -> None:
    """Write the arrays to these files, their sidecars, and the manifest `text`."""
    for array, file in zip(bundle.arrays, files, strict=True):
        path = target.member(file)
        with path:
            ra.write(bundle.like([array]), path)
            path.commit(sync=False)
        written = Source(path.path, max_memory=target.max_memory)
        for beside, content in members.sidecars_of(array, file, written):
            _write_file(target, beside, content)
    _write_file(target, MANIFEST, [text or manifest.text_of(bundle, files)])


def _write_file(target: FolderTarget, file: str, content: Iterable[bytes]) -> None:
    """Write one file of the folder; raises `WriteFailed`."""
    with target.member(file) as path:
        try:
            write_all(path.open(), content)
        except OSError as error:
            raise write_failed(target.path, error) from error
        path.commit(sync=False)
