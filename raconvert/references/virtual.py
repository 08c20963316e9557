"""A parser for VirtualiZarr: arrays where they lie as virtual variables, for Icechunk and kerchunk.

::

    from obstore.store import LocalStore
    from obspec_utils.registry import ObjectStoreRegistry
    from raconvert.references.virtual import Parser
    from virtualizarr import open_virtual_dataset

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    dataset = open_virtual_dataset("file:///data/x.mat", parser=Parser(), registry=registry)
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np

from raconvert.arrays.dtypes import dtype_of
from raconvert.conversion.options import Settings
from raconvert.errors import MissingDependency, UsageError
from raconvert.files.source import refuse_changed

from . import kerchunk
from .collect import Collection
from .pieces import groups_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Placed


class Parser:
    """Calls of it return the `ManifestStore` of a file, as VirtualiZarr's own parsers do.

    `options` say how the file is read, as those of `raconvert.open`; ``allow=["arrays"]`` leaves
    out what does not lie in the file as it is. Names with ``/`` are arrays of groups.

    Raises `UsageError` for a URL that is not that of a local file, `WouldLose` for arrays that no
    view can show, `MissingDependency` without VirtualiZarr, and what `raconvert.open` raises.
    """

    def __init__(self, *, allow: tuple[str, ...] | list[str] = (), **options: Any) -> None:
        self._leave_out = "arrays" in allow or "all" in allow
        self._settings = Settings(**options)

    def __call__(self, url: str, registry: Any) -> Any:
        """Return the manifests of all arrays of a file, which `registry` has readers for."""
        if find_spec("virtualizarr") is None:
            raise MissingDependency("VirtualiZarr is not installed",
                                    remedy="pip install 'raconvert[virtualizarr]'")  # fmt: skip
        from virtualizarr.manifests import ManifestStore

        path = url.removeprefix("file://")
        if "://" in path:
            raise UsageError("views are made of local files", path=url, expected="file:///PATH")
        collection = Collection([os.path.abspath(path)], self._settings)
        collection.judge(kerchunk.problem_of, kerchunk.notes_of, leave_out=self._leave_out)
        groups_of(collection.arrays)  # raises for an array that would be a group, too
        refuse_changed(collection.seen)
        return ManifestStore(group=_group(collection.arrays, ""), registry=registry)


def _group(arrays: list[Placed], above: str) -> Any:
    """Return the group of the arrays whose names begin with `above`."""
    from virtualizarr.manifests import ManifestGroup

    here = [array for array in arrays if array.name.startswith(above)]
    names = [array.name.removeprefix(above) for array in here]
    lengths: dict[str, int] = {}
    return ManifestGroup(
        arrays={
            name: _array(array, lengths, alone=len(arrays) == 1)
            for name, array in zip(names, here, strict=True)
            if "/" not in name
        },
        groups={
            name: _group(here, f"{above}{name}/")
            for name in dict.fromkeys(n.partition("/")[0] for n in names if "/" in n)
        },
    )


def _array(array: Placed, lengths: dict[str, int], *, alone: bool) -> Any:
    """Return the virtual array of an array; `lengths` and `alone` as for its attributes."""
    from virtualizarr.manifests import ChunkManifest, ManifestArray
    from virtualizarr.manifests.utils import create_v3_array_metadata

    attributes = kerchunk.attributes_of(array, lengths, alone=alone)
    chunk = array.chunk[::-1] if array.index_order == "F" else array.chunk
    rank = len(chunk)
    codecs: list[dict[str, Any]] = [
        {"name": f"numcodecs.{name}", "configuration": values} for name, values in array.filters
    ]
    if array.index_order == "F" and rank > 1:
        order = list(range(rank))[::-1]
        codecs.insert(0, {"name": "transpose", "configuration": {"order": order}})
    metadata = create_v3_array_metadata(
        shape=array.shape,
        data_type=dtype_of(array.element),
        chunk_shape=chunk,
        fill_value=array.fill,
        codecs=codecs,
        dimension_names=attributes.pop("_ARRAY_DIMENSIONS"),
        attributes=attributes,
    )
    grid = tuple(-(-n // c) for n, c in zip(array.dims[::-1], array.chunk, strict=True))
    paths = np.full(grid, "", np.dtypes.StringDType())
    offsets, nbytes = np.zeros(grid, np.uint64), np.zeros(grid, np.uint64)
    for index, piece in array.pieces:
        paths[index], offsets[index], nbytes[index] = (
            kerchunk.url_of(piece.path), piece.offset, piece.nbytes,
        )  # fmt: skip
    if array.index_order == "F":
        paths, offsets, nbytes = paths.T, offsets.T, nbytes.T
    manifest = ChunkManifest.from_arrays(paths=paths, offsets=offsets, lengths=nbytes)
    return ManifestArray(metadata=metadata, chunkmanifest=manifest)
