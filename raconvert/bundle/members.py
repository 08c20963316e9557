"""Parts that folder, .zip and .tar share: paths, arrays read from members, and their sidecars.

A store is a mapping from the path of a member to a `Source` over it: the whole file in a folder, a
window into an archive.
"""

from __future__ import annotations

from functools import partial

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle, some_sound
from raconvert.arrays.metadata import trailer_of
from raconvert.bundle import manifest
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.names import paths_of as free_paths
from raconvert.files.source import Extent
from raconvert.files.window import Held
from raconvert.metadata import ITEMS_SUFFIX, sidecar
from raconvert.metadata import SUFFIX as SIDECAR
from raconvert.metadata.roundtrip import OF_FILE, apply, record_of
from raconvert.metadata.sidecar import items_lines, items_of
from raconvert.plugin import Fit, Option, array_exists, refused
from raconvert.ra import plugin as ra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from raconvert.files.source import Source
    from raconvert.files.target import Target

    Find = Callable[[str], Source | None]  # the member of this path, or None

MANIFEST = "bundle.yaml"
SUFFIX = ".ra"
HELD_BYTES = 64 << 10  # arrays up to this size are in memory still when their sidecar is made
MAX_PATH_BYTES = 2048  # systems take 4096, the folder that the bundle lies in included
READ_OPTIONS = (Option("metadata", True, bool, "read the sidecars of the arrays"),)
LOSSES = "nothing that RA and its sidecars can hold"
SPEC = "docs/guide/containers.md, Bundles"


# Reading ---------------------------------------------------------------------------------------


def _unchecked(_: str) -> None:
    """Do nothing: these members have no checksums."""


def read(
    find: Find, path: str, *, metadata: bool, check: Callable[[str], None] = _unchecked,
    remedy: str = "",
) -> Bundle:  # fmt: skip
    """Return the bundle whose members `find` gives; `path` is for messages.

    `check` compares the checksum of a member that is not read as an extent. Raises `Unsupported`
    without a manifest, with a remedy to which `remedy` is added, and what
    `raconvert.bundle.manifest.load` raises; an array that alone cannot be read is
    `Array.unreadable`.
    """
    listing = find(MANIFEST)
    if listing is None:
        raise Unsupported(
            f"holds no {MANIFEST}",
            path=path,
            remedy="only bundles are read; unpack it, then this converts its files one by one:\n"
            "raconvert FOLDER -r --to ra --out-dir OUT" + remedy,
        )
    content = manifest.load(listing)
    arrays = []
    for entry in content.entries:
        try:
            arrays.append(_array(find, entry, path, check, metadata=metadata))
        except RaconvertError as error:
            arrays.append(Array.unreadable(entry.name, error))
    about = {name: getattr(content, name) for name in OF_FILE}
    return Bundle(some_sound(arrays), **about)


def _array(
    find: Find, entry: manifest.Entry, path: str, check: Callable[[str], None], *, metadata: bool
) -> Array:
    """Return the array of an entry, lazily, with its metadata; arguments as of `read`."""
    source = find(entry.file)
    if source is None:
        file, name = _shortened(entry.file), _shortened(entry.name)
        raise Corrupt(f"file '{file}' of array '{name}' is missing from the bundle", path=path)
    try:
        array = ra.read(source).arrays[0]
        if metadata:
            array = _with_sidecar(array, source, find, entry.file)
    except RaconvertError as error:
        raise _located(error, path, entry.file) from error.__cause__
    if array.extent is None and source.path == path:
        array.data = partial(_Member, array.source, path, entry.file, check)
    elif not array.nbytes:  # nothing will be read later, so check it now
        check(entry.file)
    array.name = entry.name
    order = entry.index_order or array.index_order
    return array if order == array.index_order else array.listed(order)


def _shortened(text: str) -> str:
    """Return a text with 200 characters at most."""
    return text if len(text) <= 200 else text[:197] + "..."


def _located(error: RaconvertError, path: str, file: str) -> RaconvertError:
    """Add the name of a member to an error about its archive at `path`; return the error."""
    if error.path == path:
        error.where = f"'{_shortened(file)}'" + (f", {error.where}" if error.where else "")
    return error


class _Member:
    """Array source over an encoded member of an archive, which its errors name."""

    def __init__(
        self, opened: Callable[[], Any], path: str, file: str, check: Callable[[str], None]
    ) -> None:
        self._source = opened()
        self._check: Callable[[str], None] | None = check
        self._path = path
        self._file = file
        self.shape = self._source.shape
        self.dtype = self._source.dtype

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield the blocks of the member."""
        self._check_once()
        try:
            yield from self._source.stream(max_bytes)
        except RaconvertError as error:
            raise _located(error, self._path, self._file) from error.__cause__

    def _check_once(self) -> None:
        """Compare the checksum before anything is decoded."""
        if self._check is not None:
            self._check(self._file)
            self._check = None

    def __getitem__(self, key: Any) -> Any:
        self._check_once()
        try:
            return self._source[key]
        except RaconvertError as error:
            raise _located(error, self._path, self._file) from error.__cause__


def _with_sidecar(array: Array, source: Source, find: Find, file: str) -> Array:
    """Return an array with the metadata of its trailer and of the sidecar of its file."""
    array = sidecar.read_trailer(array, source)
    beside = find(sidecar.path_of(file))
    fields = None if beside is None else sidecar.load_from(beside, source, ra.data_range)
    if beside is None or not fields:
        return array
    array = apply(fields, array, beside.path, beside.limits)
    if fields.get("items"):
        path = sidecar.items_path_of(file)
        array.meta = array.meta.replace(items=items_of(find(path), path, array))
    return array


# Writing ---------------------------------------------------------------------------------------


def fits(bundle: Bundle, files: list[str]) -> list[Fit]:
    """List the arrays that a bundle cannot hold, with the reason: their names or their dims."""
    refusals = []
    seen: set[str] = set()
    for array, path in zip(bundle.arrays, files, strict=True):
        if len(path) > MAX_PATH_BYTES // 4 and len(path.encode()) > MAX_PATH_BYTES:
            reason = f"the path of its file would be longer than {MAX_PATH_BYTES} bytes"
            refusals.append(refused(array.name[:80], "names", reason))
        if array.name in seen:
            refusals.append(refused(array.name, "names", "the name is used twice"))
        seen.add(array.name)
        refusals += ra.span_fits(array)
        try:
            array.name.encode()
        except UnicodeEncodeError:
            refusals.append(refused(array.name, "names", "the name is not valid text"))
    return refusals


class Added:
    """Further arrays for a bundle: the new manifest, the files to add and the members to drop.

    `files` are the paths of the new arrays; `gone` has, by the name of each array that is replaced,
    the paths of its members.
    """

    __slots__ = ("entries", "files", "gone", "text")

    def __init__(
        self, bundle: Bundle, content: manifest.Manifest, path: str, existing: Iterable[str], *,
        overwrite: bool,
    ) -> None:  # fmt: skip
        """Compare the arrays of `bundle` with the manifest `content` of the other bundle.

        `path` is for messages; `existing` are the paths of all members. Raises `TargetExists`.
        """
        known = {entry.name: entry.file for entry in content.entries}
        for name in bundle.names:
            if (name in known or name in content.aliases) and not overwrite:
                raise array_exists(path, name)
        self.gone: dict[str, list[str]] = {
            name: [file, sidecar.path_of(file), sidecar.items_path_of(file)]
            for name, file in known.items()
            if name in bundle.names
        }
        gone = {file for files in self.gone.values() for file in files}
        self.files: list[str] = files_of(
            bundle.names, SUFFIX, known=known, paths=[file for file in existing if file not in gone]
        )
        new = {
            array.name: manifest.Entry(array.name, file, array.index_order)
            for array, file in zip(bundle.arrays, self.files, strict=True)
        }
        entries = [new.pop(entry.name, entry) for entry in content.entries]
        self.entries: list[manifest.Entry] = [*entries, *new.values()]
        self.text: bytes = manifest.text_with(content, self.entries, bundle.names)


def paths_of(bundle: Bundle) -> list[str]:
    """Return the path of each array's file in the bundle."""
    return files_of(bundle.names, SUFFIX)


def pieces_of(array: Array, file: str, target: Target) -> tuple[Iterator[Any], Source | None]:
    """Return the bytes of an array's .ra in pieces and, if they are few, as a source, else None."""
    from raconvert.arrays.blocks import block_bytes, blocks

    pieces = ra.pieces(array, target.counted(blocks(array, block_bytes(target.max_memory))))
    if array.nbytes > HELD_BYTES or isinstance(trailer_of(array.meta), Extent):
        return pieces, None
    data = b"".join(pieces)
    return iter([data]), Held(file, data)


def sidecars_of(array: Array, file: str, written: Source) -> Iterator[tuple[str, list[bytes]]]:
    """Yield path and content of the metadata files of an array whose .ra has been written."""
    array.meta = array.meta.completed()
    fields = record_of(array, beside_ra=True)
    if not fields:
        return
    facts = sidecar.describe(written, ra.data_range)
    yield sidecar.path_of(file), [sidecar.text_of(fields, facts)]
    if array.meta.items is not None:
        yield sidecar.items_path_of(file), list(items_lines(array.meta.items()))


# Paths of the .ra files, and of arrays that become files of their own in a folder ----------------


def files_of(
    names: Iterable[str],
    suffix: str,
    *,
    known: Mapping[str, str] | None = None,
    paths: Iterable[str] = (),
) -> list[str]:
    """Return one relative path for each name, with ``/`` between folders; no two are alike.

    Each leaves room for the sidecar and the per-item metadata of its file. `known` are names that
    have a path already, whose groups keep their folders; `paths` are those that are not free.
    """
    taken = {MANIFEST, *paths}
    taken |= {path[:end] for path in taken for end, letter in enumerate(path) if letter == "/"}
    return free_paths(names, suffix, beside=(SIDECAR, ITEMS_SUFFIX), reserved=taken, known=known)
