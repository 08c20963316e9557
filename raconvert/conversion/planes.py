"""One file for each plane, for formats of low rank."""

from __future__ import annotations

import os
from math import prod

from raconvert import registry
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import little, type_name
from raconvert.arrays.layout import COLOR, IMAGE, layout_of
from raconvert.arrays.metadata import Metadata, in_dims_order
from raconvert.conversion.labels import labels_of, refuse_parts
from raconvert.conversion.losses import left_behind, lost_items, rounded
from raconvert.conversion.outputs import (
    prepare_target,
    refuse_sources,
    replaceable,
    template_fields,
)
from raconvert.conversion.report import Conversion, Report, judge
from raconvert.conversion.transaction import Staging
from raconvert.conversion.unreadable import without
from raconvert.conversion.write import adapted, progress_of, write_bundle
from raconvert.errors import RaconvertError, UsageError, counted, listed
from raconvert.files.paths import refuse_used

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened
    from raconvert.plugin import Split


def write_planes(
    opened: Opened, path: str, row: Row, sources: list[str], settings: Settings, report: Report
) -> None:
    """Write one file per plane: all beside the destination first, then renamed together."""
    bundle, lost = without(opened.bundle, settings)
    split = _split_of(bundle, path, row)
    array = adapted(_turned(bundle.arrays[0], settings), row, settings)
    report.target, report.target_format = path, row.name
    missing = left_behind(bundle.arrays, [array], opened.left_behind)
    judge(lost + missing + lost_items(bundle.arrays, [array]), settings, report)
    leading = split(array)
    if 0 in array.shape or (leading == 0 and not template_fields(path)):
        if prepare_target(path, row, sources, settings, report):
            write_bundle(Conversion(path, row, settings, report, opened=opened), bundle)
        return
    names = _plane_names(path, prod(array.shape[:leading]), sources)
    refuse_sources(names, sources)
    refuse_used(names, opened.used)
    chosen = set(replaceable(names, sources, settings, report))
    # These options have been applied to the whole; all planes are synced together.
    of_plane = settings.replace(axes=None, scale=None, dtype=None, progress=None, sync=False)
    advance = progress_of(settings.progress, array.nbytes)
    with Staging(path, sync=settings.sync) as staging:
        for name, plane in zip(names, _planes(array, leading, settings.max_memory), strict=True):
            if name not in chosen:
                continue
            part = Report(report.sources)
            staged = name if settings.dry_run else staging.place(name)
            try:
                write_bundle(Conversion(staged, row, of_plane, part), Bundle([plane]))
            except RaconvertError as error:
                error.path = name if error.path == staged else error.path
                raise
            report.absorb(part, paths=False)
            if settings.dry_run:
                break
            staging.add(staged, name, part.written, overwrite=settings.overwrite or settings.update)
            if advance is not None:
                advance(plane.nbytes)
        report.allowed += rounded([array])
        kind = type_name(little(array.element))
        report.arrays = [(array.name, kind, array.shape, counted(len(names), "file"))]
        report.nbytes = array.nbytes
        report.target = path if template_fields(path) else f"{names[0]} … {names[-1]}"
        report.written += staging.publish()


def _turned(array: Array, settings: Settings) -> Array:
    """Return the array with the axes first along which it is cut, then those of its pictures.

    In a picture the first index goes down, the second one to the right, and colors come last. With
    --axes, or below three axes, the order stays as it is.
    """
    from raconvert.arrays.transpose import permuted

    rank, axis = array.ndim, settings.planes
    if settings.axes or rank < 3:
        return array
    if type(axis) is int:
        if not -rank <= axis < rank:
            raise UsageError(
                f"`--planes {axis}` is not an axis of '{array.name}'", expected=f"0 to {rank - 1}"
            )
        order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
    else:
        from raconvert.arrays.transpose import as_listed

        order = _as_shown(as_listed(array))
    return permuted(array, tuple(order), settings.max_memory)


def _as_shown(array: Array) -> list[int]:
    """Return the axes of an array in the order of its pictures: frames, rows, columns, colors."""
    layout = layout_of(array)
    if layout.form not in (IMAGE, COLOR):
        return [*range(array.ndim)]
    picture = [layout.rows, layout.columns]
    if array.index_order == "F":  # the layout counts the slowest axis first
        picture.reverse()
    if layout.color >= 0 and (layout.outer or layout.color == array.ndim - 1):
        picture.append(layout.color)  # colors before the rows of a single picture become planes
    frames = [axis for axis in range(array.ndim) if axis not in picture]
    last = array.ndim - 1
    return [last - axis if array.index_order == "F" else axis for axis in (*frames, *picture)]


def _split_of(bundle: Bundle, path: str, row: Row) -> Split:
    """Return the function that picks the axes of planes; refuse conversions without planes."""
    split = registry.load(row).split
    if path == "-":
        raise UsageError("planes are several files, the standard output is one", path=path)
    if split is None:
        raise UsageError(
            f"format {row.name} holds arrays of any rank in one file",
            path=path,
            remedy="name one destination without a template and without `--planes`",
        )
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"source has {counted(len(bundle.arrays), 'array')}; planes are made of one",
            path=bundle.path,
            remedy=f"choose with `--array NAME`: {listed(bundle.names)}",
        )
    return split


def _plane_names(path: str, count: int, sources: list[str]) -> list[str]:
    """Return the destination of every plane, from the template or by number before the suffix."""
    fields = template_fields(path)
    if not fields:
        stem, suffix = os.path.splitext(path)
        width = max(3, len(str(count - 1)))
        return [f"{stem}_{number:0{width}d}{suffix}" for number in range(count)]
    labels: list[Any] = [""] * count
    if "label" in fields:
        if len(sources) != count:
            raise UsageError("{label} needs one source file per plane", path=path)
        refuse_parts(sources)
        numbers, words = labels_of(sources)
        labels = numbers if words is None else [words[number] for number in numbers]
    try:
        names = [path.format(i, i=i, label=label) for i, label in enumerate(labels)]
    except (ValueError, IndexError, KeyError) as error:
        raise UsageError(f"destination template is not understood: {error}", path=path) from error
    if len(set(names)) != count:
        raise UsageError(
            "destination template gives several planes one name",
            path=path,
            remedy="use a field such as {:05d}",
        )
    return names


def _planes(array: Array, leading: int, max_memory: int) -> Iterator[Array]:
    """Yield the planes of an array, read in blocks of whole planes."""
    from raconvert.arrays.blocks import block_bytes, runs

    dims = array.dims[: array.ndim - leading]
    items = array.meta.items() if array.meta.items is not None else iter(())
    per_item = prod(array.shape[1:leading])  # planes for each position on the slowest axis
    item: dict[str, Any] = {}
    for number, values in enumerate(runs(array, prod(dims), block_bytes(max_memory))):
        if number % per_item == 0:
            item = next(items, {})
        plane = array.replace(
            element=little(array.element),
            dims=dims,
            index_order="C",
            extent=None,
            data=values.reshape(dims[::-1]),
            meta=_plane_meta(array, leading, item),
        )
        yield plane


def _plane_meta(array: Array, leading: int, item: dict[str, Any]) -> Any:
    """Return the metadata of one plane: the common fields, and those of its own source."""
    meta = array.meta.replace(items=None, later=None)
    for removed in range(leading):
        ndim = array.ndim - removed
        meta = meta.without_axis(ndim - 1 if array.index_order == "F" else 0, ndim)
    own = Metadata.from_dict(in_dims_order(item, "C"))
    has_axes = len(own.axes) == array.ndim - leading
    return meta.merged(own if has_axes else own.without_axes())
