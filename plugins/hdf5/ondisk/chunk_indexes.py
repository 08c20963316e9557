"""Indexes of chunks, checked against the dataset before the library looks into them.

File format specification 3.0, IV.A.2.i "The Data Layout Message" (version 4, class 2) and VII
"Appendix C: Types of Indexes for Dataset Chunks". The library trusts that the kind and the size
of an index belong to the shape, and walks beyond its end if they do not.
"""

from __future__ import annotations

from math import prod
from struct import Struct

from raconvert.errors import Corrupt

from ..files import info_of
from .btrees import check_chunks, check_tree
from .header import ADDRESS_BYTES, CHUNKED, LAYOUT, NOWHERE, chunked, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from h5py import h5d

    from ...files import File
    from .header import Chunked


SINGLE, IMPLICIT, FIXED, EXTENSIBLE, TREE = 1, 2, 3, 4, 5
# Number of axes without a limit; 2: two or more.
_UNLIMITED_AXES = {SINGLE: 0, IMPLICIT: 0, FIXED: 0, EXTENSIBLE: 1, TREE: 2}
# Bytes before the address in the header of these indexes.
_BEFORE_ADDRESS = {FIXED: 1, EXTENSIBLE: 5, TREE: 6}
UNLIMITED = (1 << 64) - 1
UNFILTERED_CHUNKS, FILTERED_CHUNKS = 10, 11  # kinds of trees
# signature, version, client, bytes of an entry, bits of a page, entries, data block
_FIXED = Struct("<4sBBBBQQ")
_EXTENSIBLE = Struct("<4sBBB")  # signature, version, client, bytes of an element


def check_index(dataset: h5d.DatasetID, file: File) -> None:
    """Raise `Corrupt` if the chunk index of a dataset cannot be that of its shape.

    Raises `TooLarge` if all indexes of the file have too many bytes (`File.count_index`).
    """
    plist = dataset.get_create_plist()
    rank = dataset.get_space().get_simple_extent_ndims()
    if plist.get_layout() == CHUNKED and len(plist.get_chunk()) != rank:
        # The library compares the two only when it creates a dataset, and reads such a dataset
        # for ever (CVE-2026-19025).
        raise _damaged(file, "is of another rank than the shape", rank, len(plist.get_chunk()))
    if file.address_bytes != ADDRESS_BYTES:
        return
    address = info_of(dataset).address
    space = dataset.get_space()
    shape = tuple(int(n) for n in space.get_simple_extent_dims())
    limits = [int(n) % (1 << 64) for n in space.get_simple_extent_dims(maxdims=1)]
    is_new = address not in file.indexes
    if is_new:
        file.indexes.add(address)
        file.count_index(0)  # raises at once if there are too many bytes by now
    nbytes = check_chunks(file, address, resizable=list(shape) != limits)
    for kind, body in messages(file, address):
        layout = chunked(body) if kind == LAYOUT else None
        if layout is not None:
            filtered = bool(plist.get_nfilters())
            nbytes += _check_layout(file, layout, shape, limits, filtered=filtered)
    if is_new:
        file.count_index(nbytes)


def _check_layout(
    file: File, layout: Chunked, shape: tuple[int, ...], limits: list[int], *, filtered: bool
) -> int:
    """Check a layout of version 4; return the bytes of the entries of its index, 0 if unknown."""
    chunk = (layout.lengths or ())[:-1]
    count, kind = len(chunk), layout.index
    if count != len(shape) or 0 in chunk or kind not in _UNLIMITED_AXES:
        raise _damaged(file, "is of another rank, or of an unknown kind")
    unlimited = min(2, limits.count(UNLIMITED))
    beyond = any(n > most for n, most in zip(shape, limits, strict=True))
    if unlimited != _UNLIMITED_AXES[kind] or beyond:
        raise _damaged(file, "does not belong to the axes that are unlimited")
    entries = prod(-(-most // n) for most, n in zip(limits, chunk, strict=True))
    if kind == SINGLE and entries != 1:
        raise _damaged(file, "is for one chunk, and there are several")
    if kind not in _BEFORE_ADDRESS:
        return 0
    offset = _BEFORE_ADDRESS[kind]
    address = int.from_bytes(layout.rest[offset : offset + ADDRESS_BYTES], "little")
    if address == NOWHERE:
        return 0
    if kind == FIXED:
        return _check_fixed(file, address, entries, filtered=filtered)
    if kind == EXTENSIBLE:
        _check_extensible(file, address, filtered=filtered)
        return 0
    return check_tree(file, address, FILTERED_CHUNKS if filtered else UNFILTERED_CHUNKS, count)


def _check_fixed(file: File, address: int, entries: int, *, filtered: bool) -> int:
    """Check the header of a fixed array; return the bytes of its entries."""
    raw = file.source.read_at(file.userblock + address, _FIXED.size)
    if len(raw) < _FIXED.size:
        raise _damaged(file, "lies outside the file")
    mark, version, client, size, _, listed, _ = _FIXED.unpack(raw)
    if (mark, version, client) != (b"FAHD", 0, filtered) or listed != entries:
        raise _damaged(file, "does not belong to the shape", entries, listed)
    if not _is_entry(size, filtered=filtered):
        raise _damaged(file, "has entries of an impossible size")
    return entries * size


def _check_extensible(file: File, address: int, *, filtered: bool) -> None:
    raw = file.source.read_at(file.userblock + address, _EXTENSIBLE.size)
    if len(raw) < _EXTENSIBLE.size:
        raise _damaged(file, "lies outside the file")
    mark, version, client, size = _EXTENSIBLE.unpack(raw)
    if (mark, version, client) != (b"EAHD", 0, filtered):
        raise _damaged(file, "is of another kind")
    if not _is_entry(size, filtered=filtered):
        raise _damaged(file, "has entries of an impossible size")


def _is_entry(size: int, *, filtered: bool) -> bool:
    """True if an entry has as many bytes as an address; if filtered, with a size and a mask."""
    return size in range(13, 21) if filtered else size == ADDRESS_BYTES


def _damaged(file: File, what: str, expected: object = None, got: object = None) -> Corrupt:
    return Corrupt(f"the index of the chunks {what}", path=file.path, expected=expected, got=got)
