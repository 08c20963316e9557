"""References of kerchunk, version 1, to arrays as zarr format 2, which fsspec reads.

``refs`` maps keys of a zarr store to ``[url, offset, nbytes]``, or to the text itself. Metadata is
that of zarr format 2: xarray's engine for kerchunk reads no other.
"""

from __future__ import annotations

import json

from raconvert.arrays.dtypes import dtype_of, ml_name, type_name
from raconvert.errors import Unsupported

from .pieces import groups_of, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .pieces import Placed

_GROUP = '{"zarr_format":2}'
_DIMENSIONS = "_ARRAY_DIMENSIONS"  # the attribute with the names of dimensions, of xarray
_RESERVED = {".", "..", ".zarray", ".zattrs", ".zgroup", ".zmetadata"}


def problem_of(array: Placed) -> str | None:
    """Return the reason why this kind of view cannot hold an array, or None."""
    if (name := ml_name(array.element)) is not None:
        return f"zarr format 2 has no {name}"
    if array.element.kind == "user" and _type(array) is None:
        return f"zarr format 2 has no {type_name(array.element)}"
    if any(part in _RESERVED or not part for part in array.name.split("/")):
        return "no array of zarr can have this name"
    if not is_text(array.name):
        return "its name is not text"
    return None


def references(arrays: Sequence[Placed]) -> dict[str, Any]:
    """Return the mapping ``refs`` for arrays with different names.

    Raises `Unsupported` if the name of an array is that of a group of arrays, too.
    """
    metadata: dict[str, Any] = {
        f"{group}/.zgroup".lstrip("/"): json.loads(_GROUP) for group in groups_of(arrays)
    }
    lengths: dict[str, int] = {}
    for array in arrays:
        metadata[f"{array.name}/.zarray"] = _zarray(array)
        metadata[f"{array.name}/.zattrs"] = attributes_of(array, lengths, alone=len(arrays) == 1)
    whole = {"zarr_consolidated_format": 1, "metadata": metadata}
    refs: dict[str, Any] = {".zmetadata": _text(whole)}
    refs |= {key: _text(value) for key, value in metadata.items()}
    urls: dict[str, str] = {}
    for array in arrays:
        step = -1 if array.index_order == "F" else 1
        for index, piece in array.pieces:
            url = urls.get(piece.path)
            if url is None:
                url = urls[piece.path] = url_of(piece.path)
            key = ".".join(map(str, index[::step])) or "0"
            refs[f"{array.name}/{key}"] = [url, piece.offset, piece.nbytes]
    return refs


def url_of(path: str) -> str:
    """Return the URL of a file for fsspec, which takes the path in it as it is.

    Raises `Unsupported` for a path that JSON cannot hold, or that fsspec reads as a template.
    """
    import os

    path = os.path.abspath(path)
    if "{{" in path or not is_text(path):
        raise Unsupported("references cannot name a file with this name", path=path,
                          remedy="rename the file or its folder")  # fmt: skip
    return f"file://{path}"


def _text(value: Any) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def _zarray(array: Placed) -> dict[str, Any]:
    """Return the metadata of an array in zarr format 2, the content of ``.zarray``."""
    is_fortran = array.index_order == "F"
    return {
        "zarr_format": 2,
        "shape": list(array.shape),
        "chunks": list(array.chunk[::-1] if is_fortran else array.chunk),
        "dtype": _type(array),
        "order": "F" if is_fortran else "C",
        "compressor": None,
        "filters": [{"id": name, **values} for name, values in array.filters] or None,
        "fill_value": array.fill,
    }


def _type(array: Placed) -> Any:
    """Return the element type in the notation of zarr; None if zarr has no such type."""
    dtype = dtype_of(array.element)
    if dtype.names is None:
        return dtype.str if dtype.subdtype is None and dtype.kind != "O" else None
    fields: list[tuple[Any, ...]] = dtype.descr
    if any(not name or len(rest) != 1 or not isinstance(rest[0], str) for name, *rest in fields):
        return None
    return [list(field) for field in fields]


def attributes_of(array: Placed, lengths: dict[str, int], *, alone: bool) -> dict[str, Any]:
    """Return the attributes of an array, with the names of its dimensions.

    `lengths` has the length of each dimension in use by its path, and gets those of the array:
    dimensions of one name have one length.
    """
    attributes: dict[str, Any] = {}
    if array.meta is not None:
        pairs = _json_values(array.meta.attributes.items())
        attributes = {str(name): value for name, value in pairs} | _own_attributes(array)
    names = [axis.name for axis in _axes(array)] or [None] * len(array.shape)
    last = array.name.rpartition("/")[2]
    unnamed = "dim" if alone else f"{last}_dim"
    attributes[_DIMENSIONS] = dims = []
    for number, (name, length) in enumerate(zip(names, array.shape, strict=True)):
        wanted = [name, f"{last}_{name}"] if name else []
        for dim in [*wanted, f"{unnamed}_{number}", f"{array.name}_{number}"]:
            if dim not in dims and lengths.setdefault(_inside(array, dim), length) == length:
                dims.append(dim)
                break
    return attributes


def _axes(array: Placed) -> tuple[Any, ...]:
    """Return the axes of an array in the order of its shape; empty if it has other ones."""
    axes = () if array.meta is None else array.meta.axes
    return axes if len(axes) == len(array.shape) else ()


def _own_attributes(array: Placed) -> dict[str, Any]:
    """Return the attributes for unit, description and axes; they replace others of their names."""
    own = {"units": array.meta.units, "long_name": array.meta.description}
    axes = [axis.to_dict() for axis in _axes(array)]
    if any(axis.keys() - {"name"} for axis in axes):
        own["axes"] = axes
    return dict(_json_values((name, value) for name, value in own.items() if value))


def _inside(array: Placed, dim: str) -> str:
    """Return the path of a dimension in the group of an array."""
    return f"{array.name.rpartition('/')[0]}/{dim}"


def notes_of(array: Placed) -> list[str]:
    """List the metadata that is not kept.

    That are attributes that JSON cannot hold, or that have the name of one for other metadata, the
    space, and items.
    """
    if array.meta is None:
        return []
    values, own = dict(_json_values(array.meta.attributes.items())), _own_attributes(array)
    kept = {name for name, value in values.items() if own.get(name, value) == value}
    kept.discard(_DIMENSIONS)
    lost = [f"attribute {str(name)[:80]}" for name in array.meta.attributes if name not in kept]
    lost += ["space"] * (array.meta.space is not None and bool(array.meta.space.to_dict()))
    lost += ["items"] * (array.meta.items is not None)
    return [f"not kept: {', '.join(lost)}"] if lost else []


def _json_values(pairs: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """Yield the (name, value) pairs whose values JSON can hold, as plain values."""
    for name, given in pairs:
        value = given.tolist() if hasattr(given, "tolist") else given
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            continue
        yield name, value
