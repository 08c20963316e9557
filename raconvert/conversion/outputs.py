"""Destinations: their meaning, the check of what may be replaced, and the final renames.

A destination is one file, a folder of them, or a template of many names: with ``{stem}`` or
``{name}`` it takes one file for each source, with ``{}``, ``{i}`` or ``{label}`` one file for each
plane. A file that was written is read again under its temporary name; then its sidecar is written,
and both are renamed. Nothing is renamed before everything is written.
"""

from __future__ import annotations

import os
from math import isnan

from raconvert import registry
from raconvert.arrays.bundle import Bundle, masks_of
from raconvert.arrays.dtypes import type_name
from raconvert.arrays.nulls import none_missing, without_missing
from raconvert.errors import Corrupt, TargetExists, UsageError, WriteFailed, counted
from raconvert.files.paths import check_target, identity, is_remote, sync_folder, write_failed
from raconvert.files.source import Source, read_failed
from raconvert.files.target import Target
from raconvert.metadata import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.metadata import Metadata
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Conversion, Report
    from raconvert.plugin import Plugin

EACH_FIELDS = {"stem", "name"}
PLANE_FIELDS = {"", "0", "i", "label"}


def is_folder(dst: str | None, settings: Settings) -> bool:
    """True if every source becomes a file of its own in a folder."""
    if settings.stack == "each" or settings.out_dir is not None:
        return True
    if dst is None or registry.names_folder(dst):
        return False
    return dst.endswith(("/", os.sep)) or os.path.isdir(dst)


def template_fields(dst: str | None) -> set[str]:
    """Return the names of the fields of a template; empty for a path without fields."""
    if dst is None or "{" not in dst or os.path.lexists(dst):
        return set()
    import string

    try:
        parts = [part[1:3] for part in string.Formatter().parse(dst) if part[1] is not None]
    except ValueError as error:
        raise UsageError(f"destination template is not understood: {error}", path=dst) from error
    nested = next((spec for _, spec in parts if spec and "{" in spec), None)
    if nested is not None:
        raise UsageError(
            "destination template has a field within a field",
            path=dst,
            expected="a width such as {:05d}",
            got=f"':{nested}'",
        )
    fields = {str(field) for field, _ in parts}
    unknown = fields - EACH_FIELDS - PLANE_FIELDS
    if unknown:
        raise UsageError(
            f"destination template has an unknown field '{min(unknown)}'",
            path=dst,
            expected="{} or {i} or {label} for planes, {stem} or {name} for files",
        )
    if fields & EACH_FIELDS and fields & PLANE_FIELDS:
        raise UsageError("destination template mixes fields of files and of planes", path=dst)
    return fields


def stem_of(path: str) -> str:
    """Return the last part of a path without its suffix; a folder has one only of a format."""
    name = os.path.basename(path.rstrip("/" + os.sep))
    if os.path.isdir(path) and not registry.names_folder(name):
        return name
    row = registry.by_suffix(name)
    suffix = registry.suffix_of(name, row) if row is not None and row.many else ""
    stem = name[: -len(suffix)] if suffix else ""
    return stem or os.path.splitext(name)[0]


def target_spec(dst: str, to: str | None) -> tuple[str, str | None]:
    """Split ``FILE#name`` of a destination, if FILE would be a container; else name is None."""
    path = dst
    while "#" in path and not os.path.lexists(dst):
        path = path.rpartition("#")[0]
        name = dst[len(path) + 1 :]
        row = registry.by_name(to) if to else registry.by_suffix(path)
        row = row or registry.row_of_folder(path)
        if row is not None and row.many and name and (to is None or "#" not in path):
            return path, name.lstrip("/") or name
    return dst, None


def array_name(name: str | None, row: Row, settings: Settings) -> str | None:
    """Return the name of the array in a container: from ``FILE#NAME``, or from ``--name``.

    Raises `UsageError` for a format of one array, and if the two differ.
    """
    if settings.name is None:
        return name
    if not row.many:
        raise UsageError(
            f"`--name` names an array in a container; {row.name} holds one, without name"
        )
    if name not in (None, settings.name):
        raise UsageError(f"the array has two names: '{name}' and '{settings.name}'")
    return settings.name


def check_values(row: Row, settings: Settings) -> None:
    """Refuse (`UsageError`) values of options that no array could have, before one is read."""
    if settings.out_opts:
        registry.check_options(row, "write", settings.out_opts)
    if settings.dtype:
        from raconvert.arrays.cast import parse_dtype

        parse_dtype(settings.dtype)
    if settings.scale not in (None, "none"):
        from raconvert.arrays.cast import check_scale

        check_scale(settings.scale)
    if settings.axes is not None:
        from raconvert.arrays.transpose import check_axes

        check_axes(settings.axes)


def prepare_target(
    path: str,
    row: Row,
    sources: list[str],
    settings: Settings,
    report: Report,
    name: str | None = None,
) -> bool:
    """Check the destination and its options before anything is read; False if it is skipped.

    `name` is that of an array in a container, which is added to it if the container exists.
    """
    check_values(row, settings)
    if path == "-":
        return True
    if not (row.folder or settings.update or os.path.lexists(path)):  # nothing is in the way
        return True
    refuse_sources([path], sources)
    if is_addition(path, name, row):
        _refuse_sources_inside(path, sources)
        _check_container(path, row)
        return True
    check: Callable[..., None] = check_target
    if row.folder:
        check = registry.load(row).check_target or check
        _refuse_sources_inside(path, sources)
    return bool(replaceable([path], sources, settings, report, check))


def is_addition(path: str, name: str | None, row: Row) -> bool:
    """True if an array is to be added to a container that exists, which an empty folder is not."""
    if name is None or path == "-" or is_remote(path) or not os.path.exists(path):
        return False
    return not (row.folder and os.path.isdir(path) and not os.listdir(path))


def _check_container(path: str, row: Row) -> None:
    """Refuse (`TargetExists`) a path that cannot be a container by its kind."""
    if not row.folder:
        check_target(path, overwrite=True)
    elif not os.path.isdir(path):
        raise TargetExists("is a file, where a folder is to be written", path=path)


def _refuse_sources_inside(folder: str, sources: list[str]) -> None:
    """Refuse a folder as destination in which one of the sources lies."""
    inside = os.path.join(os.path.realpath(folder), "")
    for source in sources:
        if os.path.realpath(file_of(source)).startswith(inside):
            raise TargetExists(f"source '{source}' lies in the folder to be written", path=folder)


def replaceable(
    paths: list[str],
    sources: list[str],
    settings: Settings,
    report: Report,
    check: Callable[..., None] = check_target,
) -> list[str]:
    """Return the destinations to write; an existing one is skipped, replaced or refused."""
    newest = max(map(last_change, sources)) if settings.update else 0.0
    chosen = []
    for path in paths:
        if os.path.lexists(path):
            if settings.skip_existing:
                report.skipped.append((path, "exists already"))
                continue
            if settings.update and os.path.exists(path) and os.path.getmtime(path) >= newest:
                report.skipped.append((path, "is not older than its source"))
                continue
        check(path, overwrite=settings.overwrite or settings.update)
        chosen.append(path)
    return chosen


def refuse_sources(paths: list[str], sources: list[str]) -> None:
    """Refuse destinations that are one of the sources, under whatever name."""
    paths_by_file = {identity(path): path for path in paths}
    paths_by_file.pop(None, None)
    for source in sources if paths_by_file else ():
        # A source without identity is FILE#name, or a missing file, which is an error later.
        path = paths_by_file.get(identity(source) or identity(file_of(source)))
        if path is not None:
            raise TargetExists("source and destination are the same file", path=path)


def last_change(source: str) -> float:
    """Return the time of a source's last change, in seconds; `ReadFailed` if unknown."""
    path = file_of(source)
    try:
        if is_remote(path):
            from raconvert.files.remote.listing import modified

            return modified(path)
        return os.path.getmtime(path)
    except OSError as error:
        raise read_failed(source, error) from error


def file_of(spec: str) -> str:
    """Return the file of ``FILE#name``, or of a path without fields."""
    if os.path.lexists(spec):
        return spec
    from raconvert.conversion.inputs import split_spec

    return split_spec(spec)[0]


# Written files, read again ------------------------------------------------------------------------


def read_back(run: Conversion, target: Target) -> None:
    """Read a written file before it is renamed, headers only.

    With ``--verify`` the elements of all arrays without a loss are compared, too. `run.forms` gets,
    by name, how the form of an array differs when it is read back (`raconvert.metadata.roundtrip`).
    """
    names, row, run.forms = run.plan.names, run.row, {}
    lossy = {fit.array for fit in run.report.allowed}
    in_opts = run.settings.in_opts if run.report.source_format == row.name else None
    stand_ins = {os.path.realpath(other.path): other.temp for other in target.partners}
    source = Source(target.temp, max_memory=target.max_memory, stand_ins=stand_ins,
                    place=target.place)  # fmt: skip
    with _read_written(run, source, in_opts) as written:
        if run.container is not None:
            run.container.compare(run, written)
        arrays = run.bundle.arrays
        parts = [*zip(run.origins, arrays, names, strict=True)]
        masks = masks_of(arrays) if len(arrays) > 1 else {}
        if masks:
            parts = [part for part in parts if not _is_left_out(part, masks, written)]
        for number, (origin, array, name) in enumerate(parts):
            back = written.get(name) if row.many else written.arrays[number]
            whole = run.container is None
            if back is None or (whole and len(written.arrays) != len(parts)):
                raise WriteFailed(
                    "the written file does not read back; this is a bug, nothing was replaced",
                    path=target.path,
                    expected=f"{counted(len(names), 'array')}: {', '.join(names[:10])}",
                    got=f"{len(written.arrays)}: {', '.join(written.names[:10])}",
                )
            if isinstance(back.problem, Corrupt):
                raise back.problem
            run.forms[name], restored = {}, None
            if run.settings.verify or run.settings.meta == "sidecar":
                renamed = back if row.many else back.replace(name=array.name)
                run.forms[name], restored = _way_back(origin, array, renamed, target.path)
            if run.settings.verify:
                _check_form(run, array, back, run.forms[name], target.path)
            if run.settings.verify and not lossy & {array.name, ""}:
                if restored is None:
                    restored = _as_the_source(run.plugin, row, source, in_opts)
                _compare(array, restored, target.path, masks.get(id(array)))


def _is_left_out(part: tuple[Array, Array, str], masks: dict[int, Array], written: Bundle) -> bool:
    """True for a mask that says of no value that it is missing, if the format has none of it."""
    _, array, name = part
    is_mask = any(array is mask for mask in masks.values())
    return is_mask and name not in written.names and none_missing(array)


def _way_back(
    origin: Array, array: Array, back: Array, path: str
) -> tuple[dict[str, Any], Array | None]:
    """Return the changes of form in an array that was read back, and the array restored by them.

    The second is None if the array cannot be restored.
    """
    from raconvert.files.limits import DEFAULT
    from raconvert.metadata.roundtrip import difference, restored

    form = difference(origin, array, back)
    try:
        return form, restored(back, form, path, DEFAULT, encoding=array.meta.encoding)
    except Corrupt:  # this form cannot be restored, but it holds all values
        return {key: form[key] for key in ("name",) if key in form}, None


def _check_form(
    run: Conversion, array: Array, back: Array, form: dict[str, Any], path: str
) -> None:
    """Refuse (`WriteFailed`) another shape, type or metadata than was written, unless reported.

    A sidecar that was asked for restores all of them, that of an .ra the type and the metadata.
    """
    if run.settings.meta == "sidecar":
        return
    reported = (*run.report.equivalent, *run.report.allowed)
    about = {fit.property for fit in reported if fit.array in (array.name, back.name, "")}
    beside = run.row.sidecar == "auto"
    fault = ""
    of_file = {"shape"} if beside else {"shape", "type"}
    metadata_is_reported = about & {"metadata", "names", "index order"}
    if form.keys() & of_file:
        if not about & {"shape", "type", "elements", "nulls", "precision"}:
            fault = f"{type_name(back.element)} of shape {back.shape}"
    elif not beside and not metadata_is_reported and run.settings.meta == "auto":
        lost = lost_fields(array.meta, back.meta)
        fault = f"metadata that differs in: {', '.join(lost)}" if lost else ""
    if fault:
        raise WriteFailed(
            f"array '{array.name}' does not read back as it was; nothing was replaced",
            path=path,
            expected=f"{type_name(array.element)} of shape {array.shape}, and its metadata",
            got=fault,
            remedy="this is a bug",
        )


def lost_fields(meta: Metadata, back: Metadata) -> list[str]:
    """Return the fields of metadata that do not read back with all that was written.

    `back` may have more. Positions are compared in one frame of the world; facts about the source
    file alone (`raconvert.metadata.roundtrip.LOCAL`) are left out. Raises nothing.
    """
    from raconvert.metadata.roundtrip import without_local

    axes = dict(enumerate(back.axes))
    is_same = {
        "description": meta.description in (None, "", back.description),
        "units": meta.units in (None, "", back.units),
        "attributes": all(
            name in back.attributes and _same(value, back.attributes[name])
            for name, value in meta.attributes.items()
        ),
        "axes": all(
            number in axes and _same(value, getattr(axes[number], field))
            for number, axis in enumerate(meta.axes)
            for field, value in axis.to_dict().items()
            if field != "direction"
        ),
        "space": _same_place(meta, back),
        "formats": all(
            key in back.formats.get(name, {}) and _same(value, back.formats[name][key])
            for name, own in meta.formats.items()
            for key, value in without_local(own).items()
        ),
    }
    return [field for field, same in is_same.items() if not same]


def _same_place(meta: Metadata, back: Metadata) -> bool:
    """True if every known position in the first equals that in the second."""
    from raconvert.arrays.space import World

    if meta.space is None and not any(axis.direction for axis in meta.axes):
        return True
    written, read = World.of(meta.axes, meta.space), World.of(back.axes, back.space)
    if written is None:
        return True
    if read is not None and written.frame not in (None, read.frame):
        read = read.to(written.frame)
    if read is None or len(read.vectors) != len(written.vectors):
        return False
    rank = max(written.rank, read.rank)
    written, read = written.padded(rank), read.padded(rank)
    pairs = [*zip(written.vectors, read.vectors, strict=True), (written.origin, read.origin)]
    return all(vector is None or _is_near(vector, other) for vector, other in pairs)


def _is_near(vector: Sequence[float], other: Sequence[float] | None) -> bool:
    """True for the same vector, but for rounding to float32."""
    if other is None:
        return False
    most = 1e-6 * max(map(abs, vector), default=0.0)
    return all(abs(a - b) <= most for a, b in zip(vector, other, strict=True))


def _same(a: Any, b: Any) -> bool:
    """True for equal values, where tuples equal lists, and numbers agree to 1e-6."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or abs(a - b) <= 1e-6 * abs(a) or (isnan(a) and isnan(b))
    return bool(a == b)


def _read_written(run: Conversion, source: Source, in_opts: dict[str, Any] | None) -> Bundle:
    """Read a written file without options; if arrays are missing, with those of its source."""
    written = run.plugin.read(source, **run.plan.in_opts)
    fewer = run.container is None and len(written.arrays) != len(run.plan.names)
    if fewer and in_opts and run.row.many:
        written.close()
        options = registry.check_options(run.row, "read", in_opts)
        written = run.plugin.read(source, **{**options, **run.plan.in_opts})
    return written


def _as_the_source(
    plugin: Plugin, row: Row, source: Source, in_opts: dict[str, Any] | None
) -> Array | None:
    """Return the one array of a written file, read with the options of its source; else None."""
    if not in_opts or row.many:
        return None
    array: Array = plugin.read(source, **registry.check_options(row, "read", in_opts)).only()
    return array


def _compare(array: Array, back: Array | None, path: str, mask: Array | None) -> None:
    """Refuse (`WriteFailed`) an array whose elements are not those that were written.

    Of elements that are missing, by its `mask`, nothing is compared.
    """
    if back is None or elements_hash(array, mask) != elements_hash(back, mask):
        raise WriteFailed(
            f"array '{array.name}' does not read back as it was; nothing was replaced",
            path=path,
            remedy="the disk may be failing, or this is a bug",
        )


def elements_hash(array: Array, mask: Array | None = None) -> bytes:
    """Return the SHA-256 of the elements in stored order. Raises what reading them raises.

    Of elements that are missing, by a `mask`, nothing counts.
    """
    from hashlib import sha256

    from raconvert.arrays.blocks import blocks

    state = sha256()
    for block in blocks(array) if mask is None else without_missing(array, mask):
        state.update(block.reshape(-1).view("u1").data)
    return state.digest()


# The end of a run that went well ------------------------------------------------------------------


def commit(run: Conversion, target: Target) -> None:
    """Rename a file and its sidecar, both or neither; then remove a left-over sidecar."""
    if run.container is not None:
        run.container.refuse_changed(run.path)
    left = []
    if os.path.lexists(target.path + SUFFIX):
        from raconvert.metadata.sidecar import left_over

        left = left_over(target.path, overwrite=target.overwrite)
    target.partners += _partners(run, target, left)
    target.rename()
    report = run.report
    report.written += [partner.path for partner in target.partners]
    for path in left:
        if path not in report.written:
            _remove_left_over(path)
    if run.settings.sync:
        sync_folder(target.place)


def _remove_left_over(path: str) -> None:
    """Remove metadata of the file that was replaced."""
    try:
        os.unlink(path)
    except OSError as error:
        raise WriteFailed(
            f"is left over and cannot be removed: {error.strerror}; the new data is in its place",
            path=path,
            remedy="remove it: it describes the file that was there before",
        ) from error


def _partners(run: Conversion, target: Target, left: list[str]) -> list[Target]:
    """Write the sidecar and the per-item metadata of a finished file, if it has any.

    Those in `left` are of the file that is replaced, and may be replaced, too.
    """
    row, settings = run.row, run.settings
    usual = settings.meta == "auto" and row.sidecar == "auto"
    asked = settings.meta == "sidecar" and row.sidecar != "never"
    had_one = run.container is not None and run.container.fields is not None
    if not (usual or asked or had_one):
        return []
    if usual and all(array.bare for array in run.bundle.arrays):
        return []
    from raconvert.files.copy import write_all

    written = Source(target.temp)
    pieces = metadata_pieces(run, target.path, written, asked=settings.meta == "sidecar")
    for path in pieces:
        check_target(path, overwrite=target.overwrite or path in left)
    partners: list[Target] = []
    for path, lines in pieces.items():
        partner = Target(path, overwrite=target.overwrite or path in left, follow=False)
        partners.append(partner)
        try:
            write_all(partner.open(), lines)
            partner.finish(sync=settings.sync)
        except BaseException as error:
            for done in partners:
                done.abort()
            if isinstance(error, OSError):
                raise write_failed(path, error) from error
            raise
    return partners


def metadata_pieces(
    run: Conversion, path: str, written: Source, *, asked: bool
) -> dict[str, Iterable[bytes]]:
    """Return the metadata files that belong beside a finished file at `path`: content by path.

    `written` is the source of that file, maybe at another path. `asked`: the sidecar was asked for
    (``--meta sidecar``), so that it has defaults, too.
    """
    from raconvert.metadata import sidecar
    from raconvert.metadata.roundtrip import record_of

    bundle, row, forms = run.bundle, run.row, run.forms
    is_ra = row.sidecar == "auto"
    described: dict[str, dict[str, Any]] = {
        name: record_of(array, None if is_ra else forms[name], beside_ra=is_ra)
        for name, array in zip(forms, bundle.arrays, strict=True)
    }
    if row.sidecar == "auto":
        fields = next(iter(described.values()))
        if (asked or fields) and bundle.arrays[0].index_order == "C" and bundle.arrays[0].ndim > 1:
            fields = {"index_order": "C", **fields}
    elif run.container is not None:
        fields = run.container.sidecar_fields(run, described, asked=asked)
    else:
        fields = sidecar_fields(bundle, row, described)
    if not fields:
        return {}
    items = bundle.arrays[0].meta.items
    if fields.get("items") and items is not None:
        from raconvert.metadata.sidecar import items_facts

        fields["items_file"] = items_facts(items())
    facts = sidecar.describe(written, registry.load(row).data_range)
    pieces: dict[str, Iterable[bytes]] = {sidecar.path_of(path): [sidecar.text_of(fields, facts)]}
    if items is not None and not row.many:
        from raconvert.metadata.sidecar import items_lines

        pieces[sidecar.items_path_of(path)] = items_lines(items())
    return pieces


def sidecar_fields(
    bundle: Bundle, row: Row, described: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields of the sidecar of a file that is not an .ra; `described` by array."""
    from raconvert.metadata.roundtrip import record_of_file

    if not row.many:
        return {"complete": True, **next(iter(described.values()))}
    for own in described.values():
        own.pop("items", None)  # they lie beside files of one array only
    return {"complete": True, **record_of_file(bundle), "arrays": described}
