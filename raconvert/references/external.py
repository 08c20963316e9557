"""HDF5 files of datasets in external storage: each is one stretch of another file."""

from __future__ import annotations

import os

from raconvert.arrays.dtypes import dtype_of, type_name
from raconvert.arrays.space import World, not_kept
from raconvert.arrays.summary import facts_of_axes

from .pieces import groups_of, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .pieces import Placed

KINDS = ("int", "uint", "float", "complex", "bool")


def problem_of(array: Placed) -> str | None:
    """Return the reason why a dataset cannot refer to the bytes of an array, or None."""
    if array.element.kind not in KINDS:
        return f"a view of this kind has no {type_name(array.element)}"
    if array.index_order == "F" and len([n for n in array.dims if n > 1]) > 1:
        return "it lies in Fortran order, which datasets of HDF5 have not; kerchunk names it"
    if array.extent is None and 0 not in array.dims:
        return "it lies in several pieces, or encoded ones, which only kerchunk can name"
    if any(part in ("", ".", "..") for part in array.name.split("/")) or "\0" in array.name:
        return "no dataset can have this name"
    if not is_text(array.name):
        return "its name is not text"
    return None


def content_of(arrays: Sequence[Placed]) -> bytes:
    """Return the bytes of the HDF5 file, with units, description and attributes of the arrays.

    Raises `Unsupported` if the name of an array is that of a group of arrays, too.
    """
    import h5py

    groups_of(arrays)
    with h5py.File("view", "w", driver="core", backing_store=False) as file:
        for array in arrays:
            extent = array.extent
            stretch = None
            if extent is not None:
                stretch = [(os.path.abspath(extent.path), extent.offset, extent.nbytes)]
            made = file.create_dataset(
                array.name, array.shape, dtype_of(array.element), external=stretch
            )
            for name, value in attributes_of(array).items():
                made.attrs[name] = value
        file.flush()
        image: bytes = file.id.get_file_image()
    return image


def attributes_of(array: Placed) -> dict[str, str | int | float]:
    """Return the attributes of an array that are texts or numbers, its unit and description."""
    if array.meta is None:
        return {}
    meta = array.meta
    attributes = {
        str(name): value
        for name, value in meta.attributes.items()
        if type(value) in (str, int, float) and _fits(str(name), value)
    }
    own = {"units": meta.units, "long_name": meta.description}
    return attributes | {name: value for name, value in own.items() if value and _fits(name, value)}


def notes_of(array: Placed) -> list[str]:
    """List the metadata that is not kept."""
    if array.meta is None:
        return []
    written = attributes_of(array)
    lost = [
        f"attribute {str(name)[:80]}"
        for name, value in array.meta.attributes.items()
        if not _is_same(written.get(str(name)), value)
    ]
    meta, axes = array.meta, array.ra_axes
    fields = ("name", "kind", "units", "spacing", "origin", "labels")
    by_axis = [[field for field in fields if getattr(axis, field) is not None] for axis in axes]
    lost += facts_of_axes(array, by_axis)
    lost += not_kept(World.of(axes, meta.space), axes, meta.space)
    for name, field in (("units", "units"), ("long_name", "description")):
        value = getattr(meta, field)
        lost += [field] * (bool(value) and not _is_same(written.get(name), value))
    lost += ["items"] * (meta.items is not None)
    return [f"not kept: {', '.join(lost)}"] if lost else []


def _fits(name: str, value: str | float) -> bool:
    """True if an attribute can hold a value: a text of 64 KiB at most, or a number of 64 bits."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return False
    text = f"{name}{value}"
    return name != "" and "\0" not in text and len(text) < 1 << 14 and is_text(text)


def _is_same(written: str | float | None, value: Any) -> bool:
    """True if the value of an attribute is the one that was written."""
    return type(written) is type(value) and (written is value or written == value)
