"""Any format as a dask array: ``raconvert.dask.from_file("x.h5", name="a")``.

The chunks follow the file: those of HDF5 and Zarr, else slabs along the axis that is the slowest in
the file, as rows of an image. A task holds the path and not the elements, and opens the file where
it runs. `raconvert.write` takes dask arrays back, block by block::

    import raconvert
    import raconvert.dask

    a = raconvert.dask.from_file("x.h5", name="a")
    raconvert.write("mean.ra", a.mean(axis=0))
"""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Any

from raconvert.arrays.array import Array
from raconvert.arrays.sources import Decoded
from raconvert.conversion.options import Opening, options_of
from raconvert.conversion.outputs import file_of
from raconvert.conversion.reopened import open_here
from raconvert.declared import accepts
from raconvert.errors import MissingDependency, UsageError, counted, listed
from raconvert.files.paths import is_remote

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["from_file"]

CHUNK_BYTES = 16 << 20  # chunks of a file are joined up to here


@accepts(options_of(Opening))
def from_file(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    **options: Unpack[Opening],
) -> Any:
    """Return an array of a file as a `dask.array.Array` of the same shape and type.

    `name` chooses one array of several. A chunk holds as many whole chunks of the file as fit into
    `chunk_bytes`, along the fastest axes first; data that can only be decoded as a whole becomes
    one chunk. The other options are those of `raconvert.open`.

    >>> raconvert.dask.from_file("grid.ra").sum(axis=0).compute()
    array([12, 15, 18, 21])

    Raises what `raconvert.open` does, `UsageError` if there are several arrays and no name, and
    `MissingDependency` without dask.
    """
    try:
        import dask.array
        from dask.base import tokenize
    except ImportError as error:
        raise MissingDependency(
            "raconvert.dask needs a package that is not installed: dask", remedy="pip install dask"
        ) from error
    word = os.fspath(path)
    array = _opened(word, arrays=() if name is None else (name,), **options)
    if array.problem is not None:
        problem = array.problem
        array.close()
        raise problem
    spec_path = word if is_remote(word) else os.path.abspath(word)
    mtime = "" if is_remote(word) else os.stat(file_of(word)).st_mtime_ns
    chunks = _chunks(array, chunk_bytes)
    token = tokenize(
        spec_path, name, mtime, array.shape, str(array.dtype), chunks, sorted(options.items())
    )
    return dask.array.from_array(  # type: ignore[no-untyped-call, unused-ignore]
        array,
        chunks=chunks,
        name=f"{array.name or 'array'}-{token}",
        # Each chunk of HDF5 and Zarr, and each stretch of a file, is read by itself.
        lock=array.extent is None and "chunks" not in array.storage,
        asarray=True,
        fancy=False,
    )


def _opened(word: str, **reading: Any) -> Array:
    """Open the one array of a file; `UsageError` for any other number of arrays."""
    bundle = open_here(word, mmap=False, reading=reading)
    if len(bundle.arrays) != 1:
        names = bundle.names
        bundle.close()
        raise UsageError(
            f"holds {counted(len(names), 'array')}", path=word,
            remedy=f"name one of them with name=: {listed(names)}",
        )  # fmt: skip
    return bundle.only()


def _chunks(array: Array, limit: int) -> tuple[int, ...]:
    """Return the shape of dask's chunks, of at most `limit` bytes: joined chunks of the file."""
    shape = array.dims[::-1]  # in the order of the file, slowest axis first
    if array.extent is None and array.count and isinstance(array.data, Decoded):
        return tuple(max(1, n) for n in array.shape)
    stored = array.storage.get("shards") or array.storage.get("chunks")
    chunk = stored if isinstance(stored, list) and len(stored) == len(shape) else [1] * len(shape)
    lengths = [max(1, min(pair)) for pair in zip(chunk, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        room = limit // max(1, prod(lengths) * array.element.nbytes)
        lengths[axis] = _joined(lengths[axis], shape[axis], room)
    return tuple(lengths[::-1] if array.index_order == "F" else lengths)


def _joined(chunk: int, length: int, room: int) -> int:
    """Return a length along an axis: `room` chunks of the file, or the whole axis if that fits."""
    count = -(-length // chunk)
    return max(1, length) if room >= count else chunk * max(1, room)
