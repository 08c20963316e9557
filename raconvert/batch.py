"""Many sources or many destinations: stacks, one file each, one named array each, planes, labels.

What several sources become (design): a target of one array takes a stack on a new first axis, a
container one named array each, a folder or a template with ``{stem}`` one file each. A template
with ``{}``, ``{i}`` or ``{label}`` takes one plane per file.
"""

from __future__ import annotations

import os
import string
from contextlib import suppress
from functools import partial
from math import prod

from raconvert import registry
from raconvert.elements import little, type_name
from raconvert.errors import RaconvertError, UsageError
from raconvert.gather import gather, labels_of, missing_numbers, repeated, sequence_note, split_spec
from raconvert.model import Array, Axis, Bundle
from raconvert.opening import open_spec
from raconvert.pipeline import prepare_target, refuse_sources, replaceable, target_spec
from raconvert.report import Report
from raconvert.restore import Reshaped
from raconvert.settings import Settings
from raconvert.sidecar import SUFFIX
from raconvert.source import Source
from raconvert.staging import Staging, make_folders
from raconvert.transfer import check_target, refuse_used, write_failed
from raconvert.writing import adapted, lost_items, progress_of, write_bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.gather import Gathered

_EACH_FIELDS = {"stem", "name"}
_PLANE_FIELDS = {"", "0", "i", "label"}


def convert_many(words: list[str], dst: str | None, settings: Settings) -> Report:
    """Convert what is more than one file to one file."""
    gathered = gather(
        words,
        files_from=settings.files_from,
        null_separated=settings.null_separated,
        recursive=settings.recursive,
        include=settings.include,
        exclude=settings.exclude,
        sort=settings.sort,
    )
    _check_sequence(gathered, settings)
    fields = _template_fields(dst)
    if dst is not None and _is_folder(dst, settings) and _becomes_bundle(gathered, settings):
        settings = settings.replace(to="bundle")
    elif _is_folder(dst, settings) or fields & _EACH_FIELDS:
        if settings.labels or settings.planes:
            flag = "--labels" if settings.labels else "--planes"
            raise UsageError(f"{flag} goes with one destination, not with one file for each source")
        return _each(words, gathered, dst, settings)
    if dst is None:
        raise UsageError("no destination", remedy="name one with -o FILE or --out-dir DIR")
    path, name = target_spec(dst, settings.to)
    row = registry.target_row(path, settings.to)
    planes = bool(fields & _PLANE_FIELDS) or settings.planes
    report = Report(_few(gathered.paths))
    report.source_count = len(gathered.paths)
    if not planes and not prepare_target(path, row, gathered.paths, settings, report):
        return report
    report.target, report.target_format = path, row.name
    if settings.labels:
        _check_labels(settings.labels, path, gathered.paths, settings)
        labels = _labels(gathered.paths)
        _write_labels(labels, settings.labels, settings.replace(dry_run=True), report)
    with _open(gathered, row, name, settings, report) as bundle:
        if settings.labels:
            refuse_used([settings.labels], bundle.used)
        if planes:
            _write_planes(bundle, path, row, gathered.paths, settings, report)
        else:
            write_bundle(bundle, path, row, settings, report, name=name)
    if settings.labels and not settings.dry_run:
        _write_labels(labels, settings.labels, settings, report)
    return report


def _open(
    gathered: Gathered, row: Row, name: str | None, settings: Settings, report: Report
) -> Bundle:
    """Open the sources as what the target takes: one file, one array each, or a stack."""
    if not gathered.many and not settings.stack:
        return open_spec(gathered.paths[0], settings)
    if row.many and not settings.stack and name is None:
        return _named(gathered, settings)
    joined = isinstance(settings.stack, tuple)
    report.add_notes([sequence_note(gathered, "joining" if joined else "stacking")])
    bundle = open_stack(gathered, settings)
    if isinstance(settings.stack, tuple):
        stack = bundle.arrays[0]
        bundle.arrays = [_concatenated(stack, settings.stack[1], settings.max_memory)]
        report.judge(lost_items([stack], bundle.arrays), settings)
    return bundle


def _few(paths: list[str]) -> list[str]:
    return paths if len(paths) <= 16 else [paths[0], paths[-1]]


def _check_sequence(gathered: Gathered, settings: Settings) -> None:
    if settings.strict_sequence:
        gaps = missing_numbers(gathered.paths)
        if gaps:
            raise UsageError(f"the sequence has gaps: {gaps} (refused by --strict-sequence)")
        if twice := repeated(gathered.paths):
            raise UsageError(f"the sequence has {twice} duplicates (refused by --strict-sequence)")


def _is_folder(dst: str | None, settings: Settings) -> bool:
    """Tell whether every source becomes a file of its own in a folder."""
    if settings.stack == "each" or settings.out_dir is not None:
        return True
    return dst is not None and (dst.endswith(("/", os.sep)) or os.path.isdir(dst))


def _becomes_bundle(gathered: Gathered, settings: Settings) -> bool:
    """Tell whether a folder as destination is to be one bundle: on request, or of a container."""
    if settings.out_dir is not None or settings.stack == "each":
        return False
    if settings.to is not None:
        return settings.to == "bundle"
    if gathered.many or settings.labels or settings.planes:
        return False
    with open_spec(gathered.paths[0], settings) as bundle:
        return len(bundle.arrays) > 1 or bool(registry.by_name(bundle.format).many)


def _template_fields(dst: str | None) -> set[str]:
    """Return the names of the fields of a template; empty for a plain path."""
    if dst is None or "{" not in dst or os.path.lexists(dst):
        return set()
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(dst) if field is not None}
    except ValueError as error:
        raise UsageError(f"destination template is not understood: {error}", path=dst) from error
    unknown = fields - _EACH_FIELDS - _PLANE_FIELDS
    if unknown:
        raise UsageError(
            f"destination template has an unknown field '{min(unknown)}'",
            path=dst,
            expected="{} or {i} or {label} for planes, {stem} or {name} for files",
        )
    if fields & _EACH_FIELDS and fields & _PLANE_FIELDS:
        raise UsageError("destination template mixes fields of files and of planes", path=dst)
    return fields


# Stacks ----------------------------------------------------------------------------------------


def open_stack(gathered: Gathered, settings: Settings) -> Bundle:
    """Return the files as one lazy array on a new first axis.

    Formats that can read many small files at once (`read_stack`) do; the others go through the
    general stack, file by file.
    """
    paths = gathered.paths
    first = Source(split_spec(paths[0])[0], max_memory=settings.max_memory)
    row = registry.detect(first, settings.from_).row
    module = registry.load(row)
    # A quick stack knows the metadata of its items only at its end; these need it first.
    joined = isinstance(settings.stack, tuple)
    used = set(paths)
    first_metadata = settings.axes or settings.meta == "trailer" or joined or settings.arrays
    if hasattr(module, "read_stack") and not first_metadata and not _any_sidecar(paths):
        options = registry.check_options(row, "read", settings.in_opts or {})
        array = module.read_stack(paths, max_memory=settings.max_memory, **options)
    else:
        from raconvert.stack import stack

        notes: dict[str, None] = {}  # in order, each once: every file is opened twice
        open_one = partial(_only_array, settings=settings, row=row, notes=notes, used=used)
        array = stack(paths, open_one, settings.max_memory)
        array.data.notes.extend(_first_notes(notes))
    if hasattr(array._data, "common"):
        array.late = array._data
    array.name = array.name or os.path.splitext(os.path.basename(paths[0]))[0]
    bundle = Bundle([array], notes=getattr(array._data, "notes", []))
    bundle.path, bundle.format, bundle.used = paths[0], row.name, used
    return bundle


def _any_sidecar(paths: list[str]) -> bool:
    """Tell whether a folder of the sources holds sidecars, which only the general stack honours."""
    sidecars: set[str] = set()
    for folder in _folders(paths):
        with suppress(OSError):  # a folder that is not there is missed when its files are read
            names = os.listdir(folder or ".")
            sidecars.update(folder + name for name in names if name.endswith(SUFFIX))
    return bool(sidecars) and any(path + SUFFIX in sidecars for path in paths)


def _folders(paths: list[str]) -> set[str]:
    """Return what stands before the names of files, separator included."""
    if os.sep == "/":  # measured: the names of a data set are many
        return {path[: path.rfind("/") + 1] for path in paths}
    return {path[: len(path) - len(os.path.basename(path))] for path in paths}


def _first_notes(notes: dict[str, None]) -> list[str]:
    """Return the notes, and of many the first ones and their number."""
    found = list(notes)
    return found if len(found) < 5 else [*found[:3], f"{len(found) - 3} more notes on single files"]


def _only_array(
    path: str, *, settings: Settings, row: Row, notes: dict[str, None], used: set[str]
) -> Array:
    """Open one item of a stack: the same format as the first, and one array in it."""
    bundle = open_spec(path, settings)
    used |= bundle.used
    notes.update(dict.fromkeys(f"'{path}': {note}" for note in bundle.notes))
    if bundle.format != row.name:
        raise UsageError(
            "files to stack are in different formats",
            path=path,
            expected=row.title,
            got=bundle.format,
            remedy="convert each on its own with --each",
        )
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"has {len(bundle.arrays)} arrays; a stack needs one of each file",
            path=path,
            remedy=f"choose with --array NAME: {', '.join(bundle.names)}",
        )
    bundle.arrays = [_with_attributes(bundle.arrays[0], bundle)]
    return bundle.only()


def _concatenated(array: Array, axis: int, max_memory: int) -> Array:
    """Join the items of a stack along an existing axis instead of a new one."""
    from raconvert import adapt

    rank = array.ndim - 1
    if not -rank <= axis < rank:
        raise UsageError(f"--concat {axis} is no axis of the items", expected=f"0 to {rank - 1}")
    axis %= rank
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank + 1))
    moved = adapt.permuted(array, order, max_memory) if axis else array
    shape = moved.shape
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    meta = moved.meta.copy()
    meta.items = None  # there are no items any more
    if meta.axes:
        at = moved.ndim - 1 - axis  # of the axis that the stack added; axes are fastest first
        del meta.axes[at]
        kept = meta.axes[at - 1].to_dict()
        kept.pop("labels", None)  # they named the positions of one item
        meta.axes[at - 1] = Axis(**kept)
    return moved.replace(dims=joined[::-1], data=Reshaped(moved, joined), meta=meta)


def _named(gathered: Gathered, settings: Settings) -> Bundle:
    """Return a bundle with one array per file, named after the stems."""
    arrays: list[Array] = []
    seen: dict[str, str] = {}
    bundle = Bundle(arrays)
    for path in gathered.paths:
        one = open_spec(path, settings)
        stem = _stem(path)
        for array in one.arrays:
            name = stem if len(one.arrays) == 1 else f"{stem}/{array.name}"
            if one.path != path:  # FILE#NAME
                name = array.name
            if name in seen:
                raise UsageError(
                    f"two sources would both become array '{name}'",
                    path=path,
                    expected="distinct file stems",
                    got=f"'{seen[name]}' and this one",
                )
            seen[name] = path
            alone = len(one.arrays) == 1
            arrays.append(_with_attributes(array, one).replace(name=name) if alone else
                          array.replace(name=name))  # fmt: skip
        if len(one.arrays) > 1:
            _keep_what_it_says(bundle, one, stem)
        bundle.add_notes_of(one)
    bundle.path = gathered.paths[0]
    return bundle


def _with_attributes(array: Array, bundle: Bundle) -> Array:
    """Return the one array of a file with what the file, and its groups, say."""
    told = {**bundle.attributes}
    for own in bundle.groups.values():
        told.update(own)
    if not told:
        return array
    meta = array.meta.copy()
    meta.attributes = {**told, **meta.attributes}
    return array.replace(meta=meta)


def _keep_what_it_says(bundle: Bundle, part: Bundle, stem: str) -> None:
    """Keep what one of several files says of itself: in the group of its stem."""
    if part.attributes:
        bundle.groups[stem] = {**bundle.groups.get(stem, {}), **part.attributes}
    for group, own in part.groups.items():
        bundle.groups[f"{stem}/{group}"] = own


# One file each ---------------------------------------------------------------------------------


def _each(words: list[str], gathered: Gathered, dst: str | None, settings: Settings) -> Report:
    """Convert every source to a file of its own; one bad file does not stop the others."""
    report = Report(_few(gathered.paths))
    report.source_count = len(gathered.paths)
    targets: dict[str, str] = {}
    places: dict[str, str] = {}
    for source, target in _each_target(words, gathered, dst, settings):
        place = os.path.normcase(os.path.realpath(target))
        if place in places:
            raise UsageError(
                f"two sources would both become '{target}'",
                path=source,
                got=f"'{places[place]}' and this one",
            )
        places[place] = source
        targets[target] = source
    # A destination that is its own source fails alone; one that is another's spoils that one.
    others = [t for t, s in targets.items() if not (os.path.exists(t) and os.path.samefile(t, s))]
    refuse_sources(others, gathered.paths)
    for target, source in targets.items():
        part = Report([source])
        try:
            _one_of_each(source, target, gathered, dst, settings, part)
        except (RaconvertError, OSError) as error:
            known = error if isinstance(error, RaconvertError) else write_failed(target, error)
            if settings.fail_fast:
                raise known from error
            report.failed.append((source, known))
        report.absorb(part)
    if len(report.failed) == len(targets) == 1:
        raise report.failed[0][1]
    return report


def _one_of_each(
    source: str,
    target: str,
    gathered: Gathered,
    dst: str | None,
    settings: Settings,
    report: Report,
) -> None:
    """Convert one of the sources; of a container every array, where the target holds only one."""
    row = registry.target_row(target, settings.to)
    if not prepare_target(target, row, [source], settings, report):
        return
    made: list[str] = []
    try:
        with open_spec(source, settings) as bundle:
            if len(bundle.arrays) > 1 and not row.many and _is_folder(dst, settings):
                folder = target.removesuffix(row.suffixes[0]) if gathered.many else None
                folder = folder or settings.out_dir or dst or "."
                _each_array(bundle, folder, row, settings, report)
                return
            if not settings.dry_run:
                made = make_folders(os.path.dirname(target))
            write_bundle(bundle, target, row, settings, report)
    except BaseException:
        for place in reversed(made):
            with suppress(OSError):  # something else has come into it
                os.rmdir(place)
        raise


def _each_array(bundle: Bundle, folder: str, row: Row, settings: Settings, report: Report) -> None:
    """Write every array of a container to a file of its own; groups become folders."""
    from raconvert.bundle.names import files_of

    names = [os.path.join(folder, file) for file in files_of(bundle.names, row.suffixes[0])]
    refuse_sources(names, [bundle.path])
    refuse_used(names, bundle.used)
    chosen = set(replaceable(names, [bundle.path], settings, report))
    total = progress_of(settings.progress, sum(array.nbytes for array in bundle.arrays))
    one = settings.replace(progress=None, sync=False)
    with Staging(os.path.join(folder, ""), sync=settings.sync) as staging:
        for array, name in zip(bundle.arrays, names, strict=True):
            if name not in chosen:
                continue
            part = Report(report.sources)
            staged = name if settings.dry_run else staging.place(name)
            try:
                write_bundle(bundle.like([array]), staged, row, one, part)
            except RaconvertError as error:
                error.path = name if error.path == staged else error.path
                raise
            report.absorb(part, paths=False)
            report.arrays += part.arrays
            if not settings.dry_run:
                overwrite = settings.overwrite or settings.update
                staging.add(staged, name, part.written, overwrite=overwrite)
            if total is not None:
                total(array.nbytes)
        report.written += staging.publish()


def _each_target(
    words: list[str], gathered: Gathered, dst: str | None, settings: Settings
) -> Iterator[tuple[str, str]]:
    """Yield (source, destination), the source tree mirrored below the output folder."""
    if dst is not None and not dst.endswith(("/", os.sep)) and not os.path.isdir(dst):
        if not _template_fields(dst):
            raise UsageError(
                "--each needs a folder or a template as destination",
                path=dst,
                remedy="use --out-dir DIR --to FORMAT, or -o '{stem}.npy'",
            )
        for path in gathered.paths:
            name = os.path.basename(path.rstrip("/" + os.sep))
            try:
                yield path, dst.format(stem=_stem(path), name=name)
            except ValueError as error:
                raise UsageError(
                    f"destination template is not understood: {error}", path=dst
                ) from error
        return
    folder = settings.out_dir if settings.out_dir is not None else dst
    if settings.to is None:
        raise UsageError(
            "a folder as destination needs the format of its files",
            path=folder,
            remedy="name it with --to: ra or npy for one file each, bundle for one folder of all",
        )
    suffix = next(iter(registry.by_name(settings.to).suffixes), "")
    roots = [word for word in words if os.path.isdir(word)]
    for path in gathered.paths:
        root = next((r for r in roots if path.startswith(os.path.join(r, ""))), None)
        above = os.path.dirname(os.path.relpath(path, root)) if root else ""
        yield path, os.path.join(folder or ".", above, _stem(path) + suffix)


def _stem(path: str) -> str:
    """Return the last part of a path without its suffix; of a folder, all of it."""
    name = os.path.basename(path.rstrip("/" + os.sep))
    return name if os.path.isdir(path) else os.path.splitext(name)[0]


# Planes ----------------------------------------------------------------------------------------


def _write_planes(
    bundle: Bundle, path: str, row: Row, sources: list[str], settings: Settings, report: Report
) -> None:
    """Write one file per plane: all beside the destination first, then renamed together."""
    module = _planes_module(bundle, path, row)
    array = adapted(bundle.arrays[0], row, settings)
    report.target, report.target_format = path, row.name
    report.judge(lost_items(bundle.arrays, [array]), settings)
    leading = module.split(array)
    if 0 in array.shape or (leading == 0 and not _template_fields(path)):
        if prepare_target(path, row, sources, settings, report):
            write_bundle(bundle, path, row, settings, report)
        return
    names = _plane_names(path, prod(array.shape[:leading]), sources)
    refuse_sources(names, sources)
    refuse_used(names, bundle.used)
    chosen = set(replaceable(names, sources, settings, report))
    # What was asked for is applied once, to the whole; single planes are not synced one by one.
    one = settings.replace(axes=None, scale=None, dtype=None, progress=None, sync=False)
    advance = progress_of(settings.progress, array.nbytes)
    with Staging(path, sync=settings.sync) as staging:
        for name, plane in zip(names, _planes(array, leading, settings.max_memory), strict=True):
            if name not in chosen:
                continue
            part = Report(report.sources)
            staged = name if settings.dry_run else staging.place(name)
            try:
                write_bundle(Bundle([plane]), staged, row, one, part)
            except RaconvertError as error:
                error.path = name if error.path == staged else error.path
                raise
            report.absorb(part, paths=False)
            if settings.dry_run:
                break
            staging.add(staged, name, part.written, overwrite=settings.overwrite or settings.update)
            if advance is not None:
                advance(plane.nbytes)
        report.add_rounded([array])
        report.arrays = [(array.name, type_name(array.element), array.shape, f"{len(names)} files")]
        report.nbytes = array.nbytes
        report.target = path if _template_fields(path) else f"{names[0]} … {names[-1]}"
        report.written += staging.publish()


def _planes_module(bundle: Bundle, path: str, row: Row) -> ModuleType:
    """Return the plugin that writes planes; refuse where planes make no sense."""
    module = registry.load(row)
    if path == "-":
        raise UsageError("planes are several files, the standard output is one", path=path)
    if not hasattr(module, "split"):
        raise UsageError(
            f"format {row.name} holds arrays of any rank in one file",
            path=path,
            remedy="name one destination without a template and without --planes",
        )
    if len(bundle.arrays) != 1:
        raise UsageError(
            f"source has {len(bundle.arrays)} arrays; planes are made of one",
            path=bundle.path,
            remedy=f"choose with --array NAME: {', '.join(bundle.names)}",
        )
    return module


def _plane_names(path: str, count: int, sources: list[str]) -> list[str]:
    """Return the destination of every plane, from the template or by number before the suffix."""
    fields = _template_fields(path)
    if not fields:
        stem, suffix = os.path.splitext(path)
        width = max(3, len(str(count - 1)))
        return [f"{stem}_{number:0{width}d}{suffix}" for number in range(count)]
    labels: list[Any] = [""] * count
    if "label" in fields:
        if len(sources) != count:
            raise UsageError("{label} needs one source file per plane", path=path)
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
    from raconvert.blocks import block_bytes, runs

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
    """Return the metadata of one plane: what is common, and what the sources had of their own."""
    from raconvert.model import Metadata

    meta = Metadata.from_dict(array.meta.to_dict())
    meta.axes = meta.axes[: array.ndim - leading]
    own = Metadata.from_dict(item)
    meta.description = own.description or meta.description
    meta.units = own.units or meta.units
    meta.attributes = {**meta.attributes, **own.attributes}
    for name, space in own.formats.items():
        meta.formats[name] = {**meta.formats.get(name, {}), **space}
    return meta


# Labels ----------------------------------------------------------------------------------------


def _labels(paths: list[str]) -> Array:
    """Return the labels of the files, one each: uint8 if they fit, else int64.

    The names behind the labels, if they are no numbers, are the attribute ``labels``.
    """
    import numpy as np

    from raconvert.api import array_of

    numbers, words = labels_of(paths)
    small = max(numbers) <= np.iinfo(np.uint8).max
    labels = array_of(np.array(numbers, np.uint8 if small else np.int64), "labels")
    if words is not None:
        labels.meta.attributes["labels"] = words
    return labels


def _check_labels(path: str, data: str, sources: list[str], settings: Settings) -> None:
    """Refuse a file of labels that exists, is a source, or is the destination of the data."""
    refuse_sources([path], sources)
    if os.path.realpath(path) == os.path.realpath(data):
        raise UsageError("the labels and the data have the same destination", path=path)
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise UsageError("the folder of the labels does not exist", path=path)
    check_target(path, overwrite=settings.overwrite or settings.update)


def _write_labels(labels: Array, path: str, settings: Settings, report: Report) -> None:
    """Write the labels beside the stack, with the settings that concern any destination."""
    plain = settings.replace(
        axes=None, scale=None, dtype=None, out_opts=None, progress=None, verify=False
    )
    part = Report(report.sources)
    write_bundle(Bundle([labels]), path, registry.target_row(path), plain, part)
    report.written += part.written
    report.equivalent += [fit for fit in part.equivalent if fit not in report.equivalent]
    report.allowed += [fit for fit in part.allowed if fit not in report.allowed]
