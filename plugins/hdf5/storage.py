"""The storage of a dataset: layout, filters, bytes; and the checks before it is read.

External storage and the sources of virtual datasets are looked at under the rule of
`raconvert.files.named` before the library sees them: it would open whatever they name, and
read a source that is missing as the fill value, without a word.
"""

from __future__ import annotations

import os
from collections import namedtuple
from math import prod

from h5py import h5d, h5s, h5t, h5z

from raconvert.arrays.dtypes import needs_swap
from raconvert.errors import (
    Corrupt,
    MissingDependency,
    TooLarge,
)
from raconvert.files.inflate import MAX_RATIO  # no filter in use exceeds it on real data
from raconvert.files.source import Extent

from .datatypes import in_file, is_text
from .files import name_in_link, refuse_remote
from .tables import FEWEST_VALUES, FILTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5p

    from raconvert.arrays.dtypes import Element
    from raconvert.files.limits import Limits

    from .datatypes import Kind
    from .files import File

LAYOUTS = {
    h5d.COMPACT: "compact",
    h5d.CONTIGUOUS: "contiguous",
    h5d.CHUNKED: "chunked",
    h5d.VIRTUAL: "virtual",
}
UNLIMITED = (1 << 64) - 1  # H5F_UNLIMITED, H5S_UNLIMITED
MAX_BYTES = 1 << 63

# layout  a word of LAYOUTS        stored   bytes in the file
# chunk   shape of a chunk         filters  ((number, client data), ...) in the order of writing
# offset  of contiguous data       pieces   of external storage: ((path, offset, bytes), ...)
Storage = namedtuple("Storage", "layout stored chunk filters offset pieces")


def space_of(dataset: h5d.DatasetID) -> tuple[int, ...] | None:
    """The shape of a dataset, None for a null space.

    For a virtual dataset with unlimited axes this opens the sources: check them before.
    """
    space = dataset.get_space()
    if space.get_simple_extent_type() == h5s.NULL:
        return None
    return tuple(map(int, space.get_simple_extent_dims()))


def stored_bytes(tid: h5t.TypeID, limits: Limits) -> int:
    """The bytes of one element in the file; a string of variable length counts as its reference."""
    return in_file(tid, limits)[0]


def declared_space(plist: h5p.PropDCID) -> tuple[int, ...]:
    """The shape that a virtual dataset has by its first mapping; opens nothing."""
    if not plist.get_virtual_count():
        return ()
    return tuple(int(n) for n in plist.get_virtual_vspace(0).get_simple_extent_dims())


def storage_of(dataset: h5d.DatasetID, plist: h5p.PropDCID, userblock: int) -> Storage:
    """Return the storage of a dataset in a file with such a user block; opens no other file."""
    layout = LAYOUTS.get(plist.get_layout(), "unknown")
    chunk = tuple(plist.get_chunk()) if layout == "chunked" else None
    pipeline = [plist.get_filter(i) for i in range(plist.get_nfilters())]
    filters = tuple([(number, tuple(values)) for number, _, values, _ in pipeline])
    pieces = tuple([plist.get_external(i) for i in range(plist.get_external_count())])
    stored = 0 if layout == "virtual" else int(dataset.get_storage_size())
    offset = None
    if layout == "contiguous" and not pieces:
        offset = dataset.get_offset()
        if offset == userblock - 1:  # the library adds the user block to "nowhere", too
            offset = None
    return Storage(layout, stored, chunk, filters, offset, pieces)


def facts_of(storage: Storage, dataset: h5d.DatasetID, plist: h5p.PropDCID) -> dict[str, Any]:
    """The storage as plain values, for `Array.storage`."""
    facts: dict[str, Any] = {"layout": storage.layout, "stored_bytes": storage.stored}
    if storage.pieces:
        facts["layout"] = "external"
        facts["files"] = [os.fsdecode(name) for name, _, _ in storage.pieces]
    if storage.layout == "virtual":
        names = {plist.get_virtual_filename(i) for i in range(plist.get_virtual_count())}
        facts["files"] = sorted(map(name_in_link, names))
    if storage.chunk is not None:
        facts["chunks"] = list(storage.chunk)
        facts["filters"] = [filter_text(*pair) for pair in storage.filters]
        limits = dataset.get_space().get_simple_extent_dims(maxdims=1)
        shape = dataset.get_space().get_simple_extent_dims()
        if limits != shape:
            facts["maxshape"] = [None if n == UNLIMITED else n for n in limits]
    return facts


def filter_text(number: int, values: tuple[int, ...]) -> str:
    """The name of a filter, with its level if that is deflate's."""
    name = FILTERS.get(number, f"filter {number}")
    return f"{name} {values[0]}" if number == 1 and values else name


def extent_of(
    kind: Kind, element: Element, storage: Storage, pieces: list[Extent], nbytes: int, file: File
) -> Extent | None:
    """The extent of the elements if they are contiguous, in the array's own type; else None."""
    as_is = kind.memory is None and kind.finish is None and not kind.endings
    verbatim = as_is and kind.element is not None
    if not verbatim or not nbytes or storage.filters or is_text(element):
        return None
    if len(pieces) == 1:
        piece = pieces[0]
        if piece.nbytes != nbytes:
            return None
        return Extent(piece.path, piece.offset, nbytes, needs_swap(element), piece.identity)
    if storage.offset is None or storage.stored != nbytes:
        return None
    return file.source.extent(storage.offset, nbytes, needs_swap(element))


# --- checks ---------------------------------------------------------------------------------------


def check_filters(storage: Storage, path: str) -> None:
    """Raise `MissingDependency` for a filter that nothing here decodes.

    Raises `Corrupt` for one with fewer values than the library reads unchecked (CVE-2026-19026).
    """
    for number, values in storage.filters:
        if len(values) < FEWEST_VALUES.get(number, 0):
            raise Corrupt(
                f"the filter {FILTERS[number]} has too few values",
                path=path,
                expected=f"at least {FEWEST_VALUES[number]}",
                got=len(values),
            )
    missing = _missing(storage)
    if missing:
        try:
            import hdf5plugin  # noqa: F401 - it registers its filters with the library
        except ImportError:
            pass
        missing = _missing(storage)
    if missing:
        number = missing[0]
        name = FILTERS.get(number)
        raise MissingDependency(
            f"is compressed by HDF5 filter {number}{f' ({name})' if name else ''}, which is not "
            "installed",
            path=path,
            remedy="pip install 'raconvert[filters]' (the package hdf5plugin), "
            "or the plugin of that filter, found by HDF5_PLUGIN_PATH",
        )


def _missing(storage: Storage) -> list[int]:
    return [number for number, _ in storage.filters if not h5z.filter_avail(number)]


def declared_bytes(shape: tuple[int, ...], item: int) -> int:
    """The bytes of a dataset. Raises `Corrupt` if no file can have so many."""
    nbytes = prod(shape) * item
    if nbytes >= MAX_BYTES:
        raise Corrupt(
            "dataset declares more bytes than any file can have",
            expected=f"less than {MAX_BYTES}",
            got=nbytes,
        )
    return nbytes


def unwritten_bytes(storage: Storage, nbytes: int, file: File) -> int:
    """The bytes of a dataset that is little more than a fill value, else 0."""
    stored = storage.stored
    if storage.layout != "virtual":  # the sources of a virtual dataset lie in other files
        stored = min(stored, file.source.size)  # an index can list the same bytes many times
    return nbytes if nbytes > MAX_RATIO * stored and not storage.pieces else 0


def check_size(storage: Storage, nbytes: int, item: int, file: File) -> None:
    """Raise `Corrupt` or `TooLarge` for a dataset that the file cannot hold, before it is read.

    Elements that were never written read as a fill value; a few bytes can declare terabytes of it.
    """
    source = file.source
    if storage.offset is not None and storage.offset + nbytes > source.size:
        raise Corrupt(
            "dataset lies outside the file",
            path=source.path,
            expected=f"{nbytes} bytes from {storage.offset}",
            got=f"a file of {source.size}",
        )
    if unwritten_bytes(storage, nbytes, file) > source.max_memory:
        raise TooLarge(
            f"dataset declares {nbytes} bytes, of which the file stores {storage.stored}",
            path=source.path,
            expected=f"at most {MAX_RATIO} times as many, or {source.max_memory} (`--max-memory`)",
            remedy=f"if that is meant, allow it with `--max-memory {-(-nbytes // (1 << 20))}M`",
        )
    need = 2 * prod(storage.chunk or ()) * item  # the decoded chunk, and the part copied out of it
    if storage.filters and need > source.max_memory:
        raise TooLarge(
            f"a chunk of the dataset needs {need} bytes to be decoded",
            path=source.path,
            expected=f"at most {source.max_memory} (`--max-memory`)",
            remedy=f"allow it with `--max-memory {-(-need // (1 << 20))}M`",
        )


def external_pieces(storage: Storage, nbytes: int, file: File) -> list[Extent]:
    """The pieces of external storage, in order. Raises `Corrupt` if one is not whole."""
    left = nbytes
    pieces = []
    for raw, offset, length in storage.pieces:
        refuse_remote(file, "the external storage of a dataset")
        piece = file.source.named(os.fsdecode(raw), "the external storage of a dataset")
        nbytes_here = left if length == UNLIMITED else min(left, length)
        size = piece.size
        if offset + nbytes_here > size:
            raise Corrupt(
                f"external storage '{os.fsdecode(raw)}' is shorter than the dataset in it",
                path=file.path,
                expected=f"{nbytes_here} bytes from {offset}",
                got=f"a file of {size}",
            )
        pieces.append(piece.extent(int(offset), int(nbytes_here)))
        left -= nbytes_here
    if left:
        raise Corrupt("external storage is shorter than the dataset in it", path=file.path,
                      expected=f"{nbytes} bytes", got=nbytes - left)  # fmt: skip
    return pieces
