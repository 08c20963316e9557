"""Headers in text that name one stretch of another file: NRRD, MetaImage, ENVI, VRT of GDAL.

All of them list axes from the fastest to the slowest, as `dims` does.
"""

from __future__ import annotations

import os
from math import isfinite

from raconvert.arrays.dtypes import type_name
from raconvert.arrays.space import (
    IN_SPACE,
    World,
    as_itk,
    is_component,
    not_kept,
    orientation,
    split,
)
from raconvert.arrays.summary import facts_of_axes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.files.source import Extent

    from .pieces import Placed

MOST_BYTES_OF_INT = (1 << 31) - 1  # of what MetaIO and GDAL keep as a C int
MOST_BANDS = 65536  # of GDAL
MOST_AXES = {"nrrd": 16, "mhd": 10, "envi": 3, "vrt": 3}

NRRD = {
    ("int", 1): "int8", ("uint", 1): "uint8", ("int", 2): "int16", ("uint", 2): "uint16",
    ("int", 4): "int32", ("uint", 4): "uint32", ("int", 8): "int64", ("uint", 8): "uint64",
    ("float", 4): "float", ("float", 8): "double", ("complex", 8): "float",
    ("complex", 16): "double", ("bool", 1): "uint8",
}  # fmt: skip
MHD = {
    ("int", 1): "MET_CHAR", ("uint", 1): "MET_UCHAR", ("int", 2): "MET_SHORT",
    ("uint", 2): "MET_USHORT", ("int", 4): "MET_INT", ("uint", 4): "MET_UINT",
    ("int", 8): "MET_LONG_LONG", ("uint", 8): "MET_ULONG_LONG", ("float", 4): "MET_FLOAT",
    ("float", 8): "MET_DOUBLE", ("bool", 1): "MET_UCHAR",
}  # fmt: skip
ENVI = {
    ("uint", 1): "1", ("bool", 1): "1", ("int", 2): "2", ("int", 4): "3", ("float", 4): "4",
    ("float", 8): "5", ("complex", 8): "6", ("complex", 16): "9", ("uint", 2): "12",
    ("uint", 4): "13", ("int", 8): "14", ("uint", 8): "15",
}  # fmt: skip
VRT = {
    ("int", 1): "Int8", ("uint", 1): "Byte", ("bool", 1): "Byte", ("int", 2): "Int16",
    ("uint", 2): "UInt16", ("int", 4): "Int32", ("uint", 4): "UInt32", ("int", 8): "Int64",
    ("uint", 8): "UInt64", ("float", 4): "Float32", ("float", 8): "Float64",
    ("complex", 8): "CFloat32", ("complex", 16): "CFloat64",
}  # fmt: skip
TYPES: dict[str, Mapping[tuple[str, int], str]] = {
    "nrrd": NRRD, "mhd": MHD, "envi": ENVI, "vrt": VRT,
}  # fmt: skip


def problem_of(kind: str, array: Placed) -> str | None:
    """Return the reason why a header of this kind cannot describe an array, or None."""
    most = MOST_AXES[kind] - (kind == "nrrd" and array.element.kind == "complex")
    if (array.element.kind, array.element.nbytes) not in TYPES[kind]:
        return f"a view of kind {kind} has no {type_name(array.element)}"
    if not 1 <= len(array.dims) <= most or 0 in array.dims:
        return f"a view of kind {kind} has 1 to {most} axes, none of length 0"
    extent = array.extent
    if extent is None:
        return "it lies in several pieces, or encoded ones, which only kerchunk can name"
    if problem := _problem_of_path(kind, extent.path):
        return problem
    if kind == "mhd" and extent.offset > MOST_BYTES_OF_INT:
        return "it begins behind 2 GiB of its file, where MetaIO reads none"
    if kind == "vrt" and array.dims[0] * array.element.nbytes > MOST_BYTES_OF_INT:
        return "its rows are longer than 2 GiB, which GDAL does not read"
    if kind in ("envi", "vrt") and (
        max(array.dims[:2]) > MOST_BYTES_OF_INT or max(array.dims[2:], default=1) > MOST_BANDS
    ):
        return f"GDAL has no images with so many rows, columns, or bands over {MOST_BANDS}"
    return None


def _problem_of_path(kind: str, path: str) -> str | None:
    """Return the reason why a header of this kind cannot name a file, or None."""
    odd = any(letter < " " or "\udc80" <= letter <= "\udcff" for letter in path)
    percent = kind in ("nrrd", "mhd") and "%" in path  # the pattern of many files
    if odd or percent or path != path.strip():
        return f"a view of kind {kind} cannot name a file with its name"
    return None


def notes_of(kind: str, array: Placed) -> list[str]:
    """List the metadata and types that the header changes or does not keep."""
    notes = []
    if array.row_major and len([n for n in array.dims if n > 1]) > 1:
        notes.append("axes are listed as they lie in the file, in Fortran order")
    if array.element.kind == "bool":
        notes.append("bool becomes uint8")
    if kind == "nrrd" and array.element.kind == "complex":
        notes.append("complex numbers become pairs on a new fastest axis of kind complex")
    if reworded := _reworded(kind, array):
        notes.append(f"spelled in the characters of the header: {', '.join(reworded)}")
    if lost := _lost(kind, array):
        notes.append(f"not kept: {', '.join(lost)}")
    return notes


def _reworded(kind: str, array: Placed) -> list[str]:
    """Return the names of texts that the header has with other blanks, quotes or braces."""
    description = None if array.meta is None else array.meta.description
    reworded = []
    if kind != "vrt" and description and _description(kind, description) != description:
        reworded.append("description")
    for field in ("name", "units") if kind == "nrrd" else ():
        texts = [value for value in _per_axis(array, field) if value]
        if any(_without_quotes(text) != text for text in texts):
            reworded.append(f"axes ({field})")
    return reworded


def _lost(kind: str, array: Placed) -> list[str]:
    """Return the facts of an array that a header of this kind cannot hold."""
    if array.meta is None:
        return []
    meta, axes = array.meta, array.ra_axes
    kept = {"nrrd": ("name", "spacing", "origin", "units"), "mhd": ("spacing", "origin")}
    fields = ["name", "kind", "units", "spacing", "origin", "labels"]
    fields = [field for field in fields if field not in kept.get(kind, ())]
    by_axis = [[field for field in fields if getattr(axis, field) is not None] for axis in axes]
    if kind == "nrrd":
        of_space = _placed_in_nrrd(array, by_axis)[2]
    elif kind == "mhd":
        _, of_space, taken = as_itk(axes, meta.space)
        for axis in taken:
            by_axis[axis].append(IN_SPACE)
    else:
        of_space = not_kept(World.of(axes, meta.space), axes, meta.space)
    lost = [*facts_of_axes(array, by_axis), *of_space]
    if meta.description and kind == "vrt":
        lost.append("description")
    lost += [name for name in ("units", "attributes") if getattr(meta, name)]
    return lost + ["items"] * (meta.items is not None)


def text_of(kind: str, array: Placed, extent: Extent, path: str) -> bytes:
    """Return the header of a view of one array, which will lie at `path`."""
    word = TYPES[kind][array.element.kind, array.element.nbytes]
    if kind == "vrt":
        lines = _vrt(array, extent, word, os.path.dirname(os.path.abspath(path)))
    else:
        lines = {"nrrd": _nrrd, "mhd": _mhd, "envi": _envi}[kind](array, extent, word)
    return "\n".join([*lines, ""]).encode()


def _is_big(array: Placed) -> bool:
    """True if the elements are big-endian."""
    return array.element.order == ">"


def _line(text: Any) -> str:
    """Return a text on one line, with single blanks between its words."""
    return " ".join(str(text).split())


def _without_quotes(text: str) -> str:
    """Return a text on one line, with single quotes for double ones."""
    return _line(text).replace('"', "'")


def _description(kind: str, text: str) -> str:
    """Return a description on one line; for ENVI, which encloses it in braces, without braces."""
    line = _line(text)
    return line.replace("{", "(").replace("}", ")") if kind == "envi" else line


def _per_axis(array: Placed, field: str) -> list[Any]:
    """Return one field of each axis, the fastest first; empty if no axis has it."""
    axes = array.ra_axes
    values = [getattr(axis, field) for axis in axes]
    if len(axes) != len(array.dims) or all(value is None for value in values):
        return []
    return values


def _numbers(values: list[Any], missing: str) -> str:
    """Return numbers in a line; the word `missing` stands for None, infinities and NaN."""
    return " ".join(
        missing if value is None or not isfinite(value) else repr(float(value)) for value in values
    )


def _placed_in_nrrd(
    array: Placed, by_axis: list[list[str]]
) -> tuple[list[str], World | None, list[str]]:
    """Return the lines that position an array in space, the world they give, and the losses.

    Fields of axes that are lost are added to `by_axis`, the fastest axis first.
    A world with an anatomical frame is written as LPS; three axes of space and another one as a
    space with time, as ITK does; two axes in a plane of LPS as a space of two axes.
    """
    axes, space = array.ra_axes, None if array.meta is None else array.meta.space
    world = World.of(axes, space)
    if world is None or not world.spatial:
        return [], None, not_kept(world, axes, space)
    frame, lost, name = world.frame, [], ""
    if orientation(frame) is not None:
        world, name = world.to("LPS") or world, "left-posterior-superior"
    if frame not in ("LPS", "RAS", "LAS"):
        lost.append(f"frame of the space ({frame or 'unknown'})")
    others = [axis for axis in axes if axis.direction is None]
    units = [axis.units for axis in axes if axis.direction is not None]
    space_units = [units[0] or ""] * world.rank
    if len(world.spatial) == 3 == world.rank and len(others) == 1 and not is_component(others[0]):
        world, name = world.joined(axes), name and f"{name}-time"
        space_units.append(others[0].units or "")
    elif (
        name and len(units) == 2 and all(map(is_component, others)) and world.is_flat(2)
        and not any((world.origin or ())[2:])
    ):  # fmt: skip
        world, name, space_units = world.first(2), "", space_units[:2]
    lines = [f"space: {name}" if name else f"space dimension: {world.rank}"]
    pairs = ["none"] * (array.element.kind == "complex")
    lines.append("space directions: " + " ".join([*pairs, *map(_vector, world.vectors)]))
    if len({*units}) > 1:
        for axis, fields in zip(axes, by_axis, strict=True):
            fields.extend(["units"] * (axis.direction is not None and axis.units is not None))
    elif any(space_units):
        lines.append(f"space units: {_quoted(space_units)}")
    if world.origin is not None:
        lines.append(f"space origin: {_vector(world.origin)}")
    return lines, world, lost


def _vector(vector: Sequence[float] | None) -> str:
    """Return a vector in the notation of NRRD; ``none`` for None."""
    return "none" if vector is None else f"({','.join(repr(float(part)) for part in vector)})"


def _quoted(values: list[Any]) -> str:
    """Return texts in quotes in a line; empty quotes for None."""
    return " ".join(f'"{_without_quotes(value or "")}"' for value in values)


def _nrrd(array: Placed, extent: Extent, word: str) -> list[str]:
    """Return the lines of a header of NRRD; `word` is its name of the element type."""
    pairs = array.element.kind == "complex"
    lines = ["NRRD0005", f"type: {word}", f"dimension: {len(array.dims) + pairs}"]
    lines.append(f"sizes: {'2 ' * pairs}{' '.join(map(str, array.dims))}")
    if pairs:
        lines.append(f"kinds: complex{' ???' * len(array.dims)}")
    if array.meta is not None and array.meta.description:
        lines.append(f"content: {_description('nrrd', array.meta.description)}")
    placing, world, _ = _placed_in_nrrd(array, [[] for _ in array.ra_axes])
    in_space = [False] * len(array.dims)
    if world is not None:
        in_space = [vector is not None for vector in world.vectors]
    lines += placing
    for field, name in (("spacing", "spacings"), ("origin", "axis mins")):
        values = _per_axis(array, field)
        values = [None if placed else v for v, placed in zip(values, in_space, strict=False)]
        if any(value is not None for value in values):
            lines.append(f"{name}: {'NaN ' * pairs}{_numbers(values, 'NaN')}")
    for field, name in (("name", "labels"), ("units", "units")):
        values = _per_axis(array, field)
        if field == "units":  # those of the axes in space are units of the space
            values = [None if placed else v for v, placed in zip(values, in_space, strict=False)]
        if any(value is not None for value in values):
            blank = '"" ' * pairs
            lines.append(f"{name}: {blank}{_quoted(values)}")
    if array.element.nbytes > 1:
        lines.append(f"endian: {'big' if _is_big(array) else 'little'}")
    lines += ["encoding: raw", f"byte skip: {extent.offset}"]
    return [*lines, f"data file: {os.path.abspath(extent.path)}"]


def _mhd(array: Placed, extent: Extent, word: str) -> list[str]:
    """Return the lines of a header of MetaImage; `word` is its name of the element type."""
    lines = ["ObjectType = Image", f"NDims = {len(array.dims)}", "BinaryData = True"]
    lines.append(f"BinaryDataByteOrderMSB = {_is_big(array)}")
    if array.meta is not None and array.meta.description:
        lines.append(f"Comment = {_description('mhd', array.meta.description)}")
    space = None if array.meta is None else array.meta.space
    world, *_ = as_itk(array.ra_axes, space)
    origins, spacings = _per_axis(array, "origin"), _per_axis(array, "spacing")
    if world is not None:
        parts = [split(vector or ()) or (1.0, vector or ()) for vector in world.vectors]
        spacings, rows = [step for step, _ in parts], [list(row) for _, row in parts]
        origins = list(world.origin or ())
        lines.append(f"TransformMatrix = {_numbers([n for row in rows for n in row], '0')}")
    if origins:
        lines.append(f"Offset = {_numbers(origins, '0')}")
    spacings = spacings or [1] * len(array.dims)
    lines.append(f"ElementSpacing = {_numbers(spacings, '1')}")
    lines.append(f"DimSize = {' '.join(map(str, array.dims))}")
    lines += [f"HeaderSize = {extent.offset}", f"ElementType = {word}"]
    return [*lines, f"ElementDataFile = {os.path.abspath(extent.path)}"]


def _image(array: Placed) -> tuple[int, int, int]:
    """Return the numbers of columns, rows and bands."""
    columns, rows, bands = (*array.dims, 1, 1)[:3]
    return columns, rows, bands


def _envi(array: Placed, extent: Extent, word: str) -> list[str]:
    """Return the lines of a header of ENVI; `word` is its code of the element type."""
    columns, rows, bands = _image(array)
    lines = ["ENVI"]
    if array.meta is not None and array.meta.description:
        lines.append(f"description = {{{_description('envi', array.meta.description)}}}")
    lines += [f"samples = {columns}", f"lines = {rows}", f"bands = {bands}"]
    lines += [f"header offset = {extent.offset}", "file type = ENVI Standard"]
    lines += [f"data type = {word}", "interleave = bsq"]
    return [*lines, f"byte order = {int(_is_big(array))}"]


def _vrt(array: Placed, extent: Extent, word: str, folder: str) -> list[str]:
    """Return the lines of a VRT; the path of data below its `folder` is relative to that.

    GDAL 3.12 follows such a path; `word` is its name of the element type.
    """
    from xml.sax.saxutils import escape

    columns, rows, bands = _image(array)
    width = array.element.nbytes
    path = os.path.abspath(extent.path)
    inside = path.startswith(os.path.join(folder, ""))
    name = escape(os.path.relpath(path, folder) if inside else path)
    lines = [f'<VRTDataset rasterXSize="{columns}" rasterYSize="{rows}">']
    for band in range(bands):
        lines += [
            f'  <VRTRasterBand dataType="{word}" band="{band + 1}" subClass="VRTRawRasterBand">',
            f'    <SourceFilename relativeToVRT="{int(inside)}">{name}</SourceFilename>',
            f"    <ImageOffset>{extent.offset + band * columns * rows * width}</ImageOffset>",
            f"    <PixelOffset>{width}</PixelOffset>",
            f"    <LineOffset>{columns * width}</LineOffset>",
            f"    <ByteOrder>{'MSB' if _is_big(array) else 'LSB'}</ByteOrder>",
            "  </VRTRasterBand>",
        ]
    return [*lines, "</VRTDataset>"]
