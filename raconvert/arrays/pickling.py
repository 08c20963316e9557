"""Pickles of arrays and bundles: the location of the elements in a file, else the elements.

A file that was changed since the array was opened is refused (`Changed`) when the elements are
asked for, in any process.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from raconvert.arrays.metadata import NOTHING
from raconvert.files.paths import is_remote
from raconvert.files.source import Extent, identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def state_of(array: Any) -> dict[str, Any]:
    """Return the fields of an array for `Array.__setstate__`; elements only if no file has them."""
    extent = _placed(array.extent, array.origin)
    by_path = extent is not None or array.origin is not None or array.problem is not None
    data = None if by_path else np.array(_whole(array))
    meta = array.meta.completed() if array.described else NOTHING
    if meta.items is not None:
        if array.origin is None:
            items = partial(iter, list(meta.items()))
        else:
            items = partial(_items, array.origin)
        meta = meta.replace(items=items)
    return {
        "element": array.element,
        "dims": array.dims,
        "index_order": array.index_order,
        "_name": array.name,
        "meta": meta,
        "extent": extent,
        "storage": array.storage,
        "owner": None,
        "origin": array.origin,
        "_opened_by": 0,
        "mapped": array.mapped,
        "problem": array.problem,
        "row_major": array.row_major,
        "_data": data,
    }


def _whole(array: Any) -> Any:
    """Return all elements, slowest axis first."""
    values = np.asarray(array.data[()] if array.dims == () else array.data[:], array.dtype)
    return values.reshape(array.dims[::-1])


def _items(origin: Any) -> Iterator[dict[str, Any]]:
    """Yield the items of an array that is opened anew for this."""
    with origin() as array:
        yield from array.meta.items()


class Placed(Extent):
    """An extent of a file by its absolute path; unpickling looks at that file (`_unpickled`)."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.offset, self.nbytes, self.swap, self.identity, self.checksum
        return _unpickled, (self.path, *rest)


def _unpickled(path: str, *rest: Any) -> Placed:
    """Return the extent with the identity that the file has on this machine.

    Device and inode may differ; a file of another size or time is another one, and the extent keeps
    the old identity, so that reading is refused.
    """
    placed = Placed(path, *rest)
    before = placed.identity
    try:
        now = identity_of(os.stat(path))
    except OSError:
        return placed
    if before is not None and now[2:] == before[2:]:
        placed.identity = now
    return placed


def _placed(extent: Extent | None, origin: Any) -> Extent | None:
    """Return an extent with an absolute path; at a URL as it is, or None if `origin` opens it."""
    if extent is None or is_remote(extent.path):
        return None if origin is not None else extent
    path = os.path.join(getattr(origin, "folder", None) or os.getcwd(), extent.path)
    rest = extent.offset, extent.nbytes, extent.swap, extent.identity, extent.checksum
    return Placed(path, *rest)
