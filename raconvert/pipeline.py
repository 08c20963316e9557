"""`convert`: from source paths to a report, through one bundle of lazy arrays.

detect → read → select or stack → adapt (type, order) → fits → write → sidecar → rename → report.
Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os

from raconvert import registry, sidecar
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    ReadFailed,
    TargetExists,
    UsageError,
    WriteFailed,
)
from raconvert.model import Bundle
from raconvert.plugin import EQUIVALENT, equivalent, refused
from raconvert.report import Report
from raconvert.settings import Settings
from raconvert.source import DEFAULT_MAX_MEMORY, Source
from raconvert.transfer import Target, check_target, sync_folder, write_all, write_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.model import Array
    from raconvert.plugin import Fit


def convert(
    src: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    dst: str | os.PathLike[str] | None = None,
    *,
    from_: str | None = None,
    to: str | None = None,
    arrays: Sequence[str] | None = None,
    out_dir: str | None = None,
    stack: bool | str | tuple[str, int] | None = None,
    sort: str | None = None,
    strict_sequence: bool = False,
    planes: bool = False,
    overwrite: bool = False,
    skip_existing: bool = False,
    update: bool = False,
    allow: Sequence[str] = (),
    strict: bool = False,
    trust: Sequence[str] = (),
    dtype: str | None = None,
    axes: str | None = None,
    meta: str = "auto",
    index_order: str | None = None,
    labels: str | None = None,
    scale: str | None = None,
    bits: int = 8,
    recursive: bool = False,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    files_from: str | Sequence[str] | None = None,
    null_separated: bool = False,
    in_opts: dict[str, Any] | None = None,
    out_opts: dict[str, Any] | None = None,
    max_memory: int = DEFAULT_MAX_MEMORY,
    verify: bool = False,
    dry_run: bool = False,
    fail_fast: bool = False,
    sync: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Convert files and return what was done.

    `src` is a path, ``FILE#name``, a glob, a folder, or a list of them; `dst` a path,
    ``FILE#name``, or a template such as ``'out/{:05d}.png'`` or ``'{stem}.npy'``. The format of
    the source is found by content, that of the destination by `to` or its suffix.

    One literal path gives the array as it is; a glob, a folder or a list is stacked on a new first
    axis for formats of one array, and becomes one named array each in containers. Elements keep
    their index [i,j,k]; RA and other formats without an index order list the axes reversed.

    Raises the errors of `raconvert.errors`; the destination is untouched whenever one is raised.
    """
    named = {name: value for name, value in locals().items() if name not in ("src", "dst")}
    settings = Settings(**named)
    words = [os.fspath(word) for word in ([src] if isinstance(src, (str, os.PathLike)) else src)]
    target = None if dst is None else os.fspath(dst)
    if target is not None and _is_plain(words, target, settings):
        return _convert_one(words[0], target, settings)
    from raconvert import batch

    return batch.convert_many(words, target, settings)


def _is_plain(words: list[str], dst: str, settings: Settings) -> bool:
    """Tell the common case, one file to one file, without looking at what is rarely asked for."""
    return (
        len(words) == 1
        and not settings.stack
        and settings.out_dir is None
        and settings.files_from is None
        and settings.labels is None
        and not settings.planes
        and "{" not in dst
        and not dst.endswith(("/", os.sep))
        and not os.path.isdir(dst)
        and os.path.isfile(words[0])
    )


def _convert_one(word: str, dst: str, settings: Settings) -> Report:
    path, name = target_spec(dst, settings.to)
    report = Report([word])
    if not prepare_target(path, [word], settings, report):
        return report
    row = registry.target_row(path, settings.to)
    with open_spec(word, settings) as bundle:
        return write_bundle(bundle, path, row, settings, report, name=name)


def target_spec(dst: str, to: str | None) -> tuple[str, str | None]:
    """Split ``FILE#name`` of a destination: only where FILE would be a container."""
    if "#" in dst and not os.path.lexists(dst):
        path, _, name = dst.rpartition("#")
        row = registry.by_name(to) if to else registry.by_suffix(path)
        if row is not None and row.many and name:
            return path, name
    return dst, None


def prepare_target(path: str, sources: list[str], settings: Settings, report: Report) -> bool:
    """Check the destination before anything is read; False means: skip it."""
    if path == "-":
        return True
    refuse_sources([path], sources)
    return bool(replaceable([path], sources, settings, report))


def replaceable(
    paths: list[str], sources: list[str], settings: Settings, report: Report
) -> list[str]:
    """Return the destinations to write; an existing one is skipped, replaced or refused."""
    newest = max(map(_changed, sources)) if settings.update else 0.0
    chosen = []
    for path in paths:
        if os.path.exists(path):
            if settings.skip_existing:
                report.skipped.append((path, "exists already"))
                continue
            if settings.update and os.path.getmtime(path) >= newest:
                report.skipped.append((path, "is not older than its source"))
                continue
        check_target(path, overwrite=settings.overwrite or settings.update)
        chosen.append(path)
    return chosen


def refuse_sources(paths: list[str], sources: list[str]) -> None:
    """Refuse destinations that are one of the sources, under whatever name."""
    places = {_identity(path): path for path in paths if os.path.exists(path)}
    if not places:
        return
    for source in sources:
        try:
            path = places.get(_identity(source))
        except OSError:  # FILE#name, or a file that will be missed when it is read
            file = _file_of(source)
            path = places.get(_identity(file)) if os.path.exists(file) else None
        if path is not None:
            raise TargetExists("source and destination are the same file", path=path)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _changed(source: str) -> float:
    try:
        return os.path.getmtime(_file_of(source))
    except OSError as error:
        raise ReadFailed(f"cannot be read: {error.strerror}", path=source) from error


def _file_of(spec: str) -> str:
    """Return the file of ``FILE#name``, or of a plain path."""
    if os.path.lexists(spec):
        return spec
    from raconvert.gather import split_spec

    return split_spec(spec)[0]


# Reading ---------------------------------------------------------------------------------------


def open_spec(spec: str, settings: Settings) -> Bundle:
    """Open one source, ``FILE`` or ``FILE#name``, with its sidecar honoured."""
    path, name = spec, None
    if not os.path.lexists(spec):
        from raconvert.gather import split_spec

        path, name = split_spec(spec)
    source = Source(
        path, max_memory=settings.max_memory, trust_external="external" in settings.trust
    )
    detection = registry.detect(source, settings.from_)
    row = detection.row
    module = registry.load(row)
    options = registry.check_options(row, "read", settings.in_opts or {})
    bundle = module.read(source, **options)
    bundle.path, bundle.format, bundle.reason = path, row.name, detection.reason
    try:
        if settings.meta != "ignore":
            _apply_sidecar(bundle, source, row)
        if settings.index_order:
            for array in bundle.arrays:
                if array.index_order is None:
                    array.index_order = settings.index_order
        patterns = [name] if name is not None else settings.arrays
        if patterns:
            bundle.arrays = select(bundle, patterns, literal=name is not None)
    except BaseException:
        bundle.close()
        raise
    return bundle


def _apply_sidecar(bundle: Bundle, source: Source, row: Row) -> None:
    for array in bundle.arrays:
        sidecar.read_trailer(array, source)
    fields = sidecar.load(source, is_ra=row.name == "ra")
    if fields is None:
        return
    many = fields.pop("arrays", None)
    if many is None and len(bundle.arrays) == 1:
        many = {bundle.arrays[0].name: fields}
    if not isinstance(many, dict | None):
        raise Corrupt(
            "metadata field 'arrays' has the wrong form", path=sidecar.path_of(source.path)
        )
    for array in bundle.arrays:
        own = (many or {}).get(array.name)
        if isinstance(own, dict):
            sidecar.apply(own, array, sidecar.path_of(source.path))
            if own.get("items"):
                array.meta.items = sidecar.items_reader(source.path, array)


def select(bundle: Bundle, patterns: Sequence[str], *, literal: bool = False) -> list[Array]:
    """Return the arrays of these names or globs, in the bundle's order."""
    from fnmatch import fnmatchcase

    chosen = []
    for pattern in patterns:
        found = [array for array in bundle.arrays if array.name == pattern]
        if not found and not literal:
            found = [array for array in bundle.arrays if fnmatchcase(array.name, pattern)]
        if not found:
            from raconvert.errors import did_you_mean

            raise UsageError(
                f"has no array '{pattern}'{did_you_mean(pattern, bundle.names)}",
                path=bundle.path,
                remedy=f"its arrays: {', '.join(bundle.names)}",
            )
        chosen += [array for array in found if array not in chosen]
    return [array for array in bundle.arrays if array in chosen]


def open_bundle(spec: str | os.PathLike[str], **reading: Any) -> Bundle:
    """Open one source, ``FILE`` or ``FILE#name``, as a bundle of lazy arrays.

    `reading` are arguments of `convert` that concern sources: `from_`, `arrays`, `in_opts`,
    `meta`, `index_order`, `trust`, `max_memory`.
    """
    return open_spec(os.fspath(spec), Settings(**reading))


GATHERING = (
    "sort", "recursive", "include", "exclude", "files_from", "null_separated"
)  # fmt: skip


def open_sources(specs: Sequence[str], **reading: Any) -> Bundle:
    """Open sources as `convert` would: one file as it is, several files stacked.

    `reading` as for `open_bundle`, and those of `raconvert.gather.gather`.
    """
    gathering = {name: reading.pop(name) for name in GATHERING if name in reading}
    settings = Settings(**reading)
    if len(specs) == 1 and os.path.isfile(specs[0]) and not gathering:
        return open_spec(specs[0], settings)
    from raconvert import batch
    from raconvert.gather import gather

    gathered = gather(specs, **gathering)
    if not gathered.many:
        return open_spec(gathered.paths[0], settings)
    return batch.open_stack(gathered, settings)


# Writing ---------------------------------------------------------------------------------------


def write_bundle(
    bundle: Bundle,
    path: str,
    row: Row,
    settings: Settings,
    report: Report,
    *,
    name: str | None = None,
) -> Report:
    """Adapt, judge and write one bundle to one file, with its sidecar; fill in the report."""
    module = registry.load(row)
    options = registry.check_options(row, "write", settings.out_opts or {})
    _check_count(bundle, path, row, name)
    if path == "-":
        settings = _without_sidecar(settings)
    report.source_format = bundle.format
    origins = list(bundle.arrays)
    notes = bundle.notes
    bundle = bundle.like([adapted(array, row, settings) for array in origins])
    if name is not None:
        bundle.arrays = [bundle.arrays[0].replace(name=name)]
    report.begin(bundle, row, path)
    if settings.axes != "keep-memory":
        report.add_transposed(origins, bundle.arrays)
    fits = _all_fits(bundle, module, row, options, settings)
    report.judge(lost_items(origins, bundle.arrays) + fits, settings)
    if settings.dry_run:
        report.planned = True
        return report
    total = sum(array.nbytes for array in bundle.arrays)
    with Target(
        path if path != "-" else _scratch(),
        max_memory=settings.max_memory,
        progress=progress_of(settings.progress, total),
        overwrite=settings.overwrite or settings.update,
    ) as target:
        try:
            module.write(_with_trailer(bundle, row, settings), target, **options)
        except OSError as error:
            raise write_failed(path, error) from error
        except RaconvertError as error:
            error.path = error.path or path
            raise
        report.add_rounded(bundle.arrays)
        if _late_metadata(origins, bundle):
            report.judge(_all_fits(bundle, module, row, options, settings), settings)
        report.add_notes(notes)
        target.finish(sync=settings.sync)
        alike = report.source_format == row.name and settings.in_opts
        reading = registry.check_options(row, "read", settings.in_opts or {}) if alike else {}
        _read_back(module, target, bundle, reading, whole=settings.verify)
        if path == "-":
            _to_stdout(target)
        else:
            _commit(bundle, target, row, settings, report)
    report.written.append(path)
    return report


def _without_sidecar(settings: Settings) -> Settings:
    """Return the settings for the standard output, beside which nothing can lie."""
    if settings.meta == "sidecar":
        raise UsageError(
            "there is no place for a sidecar beside the standard output",
            remedy="name a file, or put the metadata into an .ra with --meta trailer",
        )
    return settings.replace(meta="ignore") if settings.meta == "auto" else settings


def _check_count(bundle: Bundle, path: str, row: Row, name: str | None) -> None:
    if len(bundle.arrays) == 1 or (row.many and name is None and bundle.arrays):
        return
    if not bundle.arrays:
        raise UsageError("the source holds no array", path=bundle.path)
    raise UsageError(
        f"source has {len(bundle.arrays)} arrays, '{path}' holds one",
        path=bundle.path,
        remedy=f"choose with --array NAME or FILE#NAME: {', '.join(bundle.names)}",
    )


def adapted(array: Array, row: Row, settings: Settings) -> Array:
    """Apply what the user asked for (--axes, --scale, --dtype) and what the target needs."""
    if settings.axes:
        array = _with_axes(array, settings.axes)
    order, wanted = array.index_order, row.index_orders
    if wanted and array.ndim > 1 and order is not None and order not in wanted:
        from raconvert import adapt

        array = adapt.in_order(array, wanted[0])
    # Values last: what moves is read in strips from the file, and a misfit has its index.
    if settings.scale not in (None, "none") or settings.dtype:
        from raconvert import adapt

        if settings.scale not in (None, "none"):
            array = adapt.scaled(array, settings.scale, settings.bits)
        if settings.dtype:
            array = adapt.cast(array, settings.dtype, round_values=settings.allows("precision"))
    return array


def _with_axes(array: Array, axes: str) -> Array:
    from raconvert import adapt

    if axes == "keep-memory":
        return adapt.relisted(array)
    if axes in ("c", "fortran"):
        return adapt.in_order(array, "C" if axes == "c" else "F")
    try:
        order = tuple(int(part) for part in axes.split(","))
    except ValueError as error:
        raise UsageError(
            f"--axes {axes} is not understood", expected="c | fortran | keep-memory | 2,0,1"
        ) from error
    return adapt.permuted(array, order)


def _all_fits(
    bundle: Bundle, module: ModuleType, row: Row, options: dict[str, Any], settings: Settings
) -> list[Fit]:
    """Return what the plugin and the metadata mode would change or lose."""
    fits = list(module.fits(bundle, options))
    mode = settings.meta
    if mode == "sidecar":
        kept = not (row.many and any(array.meta.items is not None for array in bundle.arrays))
        return [
            fit
            for fit in fits
            if not (kept and fit.property == "metadata" and fit.outcome == EQUIVALENT)
        ]
    if mode == "trailer" and row.name != "ra":
        raise UsageError("--meta trailer is for .ra destinations; --meta sidecar for all others")
    if mode == "trailer":
        for array in bundle.arrays:
            fits += _replaced_trailer(array)
    if mode in ("drop", "ignore") and row.name == "ra":
        for array in bundle.arrays:
            fits += _dropped(array, mode)
    return fits


def lost_items(origins: list[Array], arrays: list[Array]) -> list[Fit]:
    """Return where the metadata of single items has no axis to belong to any more."""
    reason = "what the items have of their own is left out, since their axis is gone or moved"
    return [
        equivalent(array.name, "metadata", reason)
        for origin, array in zip(origins, arrays, strict=True)
        if origin.meta.items is not None and array.meta.items is None
    ]


def _replaced_trailer(array: Array) -> list[Fit]:
    """Return what has no place beside, or in, the trailer that --meta trailer writes."""
    found = []
    if array.meta.items is not None:
        reason = "what the items have of their own has no place in a trailer"
        found.append(equivalent(array.name, "metadata", reason))
    if "trailer" in array.meta.formats.get("ra", {}) and sidecar.fields_of(array, "ra"):
        found.append(equivalent(array.name, "metadata", "the trailer that was there is replaced"))
    return found


def _dropped(array: Array, mode: str) -> list[Fit]:
    """Return what an .ra loses without its sidecar."""
    fields = sidecar.fields_of(array, "ra")
    found = []
    if "dtype" in fields:
        reason = f"without a sidecar the elements are read as V{array.element.nbytes}"
        found.append(refused(array.name, "type", reason, "--allow dtype"))
    if "index_order" in fields:
        reason = "without a sidecar row-major readers list the axes reversed"
        found.append(equivalent(array.name, "index order", reason))
    rest = [name for name in fields if name not in ("dtype", "index_order")]
    if mode == "drop" and "trailer" in array.meta.formats.get("ra", {}):
        rest.append("trailer")
    if rest:
        found.append(equivalent(array.name, "metadata", f"dropped: {', '.join(rest)}"))
    return found


def _with_trailer(bundle: Bundle, row: Row, settings: Settings) -> Bundle:
    """Put the metadata behind the data of an .ra, or take a trailer away, as --meta says."""
    if row.name != "ra" or settings.meta not in ("trailer", "drop"):
        return bundle
    array = bundle.arrays[0].replace(meta=bundle.arrays[0].meta.copy())
    own = array.meta.formats.setdefault("ra", {})
    if settings.meta == "drop":
        own.pop("trailer", None)
    else:
        array.meta.items = None
        fields = sidecar.fields_of(array, "ra")
        if fields:
            own["trailer"] = sidecar.TRAILER_MARK + sidecar.dump(fields)
    return bundle.like([array])


def _late_metadata(origins: list[Array], bundle: Bundle) -> bool:
    """Take over metadata that a stack could only know at its end."""
    if not any(hasattr(origin._data, "common") for origin in origins):
        return False
    from raconvert.stack import late_metadata

    found = [late_metadata(*pair) for pair in zip(origins, bundle.arrays, strict=True)]
    return any(found)


def _read_back(
    module: ModuleType, target: Target, bundle: Bundle, reading: dict[str, Any], *, whole: bool
) -> None:
    """Read what was written before it takes the destination's place: headers, or the `whole`."""
    stand_ins = {os.path.realpath(other.path): other.temp for other in target.companions}
    source = Source(target.temp, max_memory=target.max_memory, stand_ins=stand_ins)
    with module.read(source, **reading) as written:
        if len(written.arrays) != len(bundle.arrays):
            raise WriteFailed(
                "the written file does not read back; this is a bug, nothing was replaced",
                path=target.path,
                expected=f"{len(bundle.arrays)} arrays",
                got=len(written.arrays),
            )
        for array, back in zip(bundle.arrays, written.arrays, strict=True) if whole else ():
            if _elements_hash(array) != _elements_hash(back, as_bool=array.element.kind == "bool"):
                raise WriteFailed(
                    f"array '{array.name}' does not read back as it was; nothing was replaced",
                    path=target.path,
                    remedy="the disk may be failing, or this is a bug",
                )


def _elements_hash(array: Array, *, as_bool: bool = False) -> bytes:
    """Return the SHA-256 of the elements in stored order; `as_bool` undoes 1-bit images."""
    from hashlib import sha256

    from raconvert.blocks import blocks

    state = sha256()
    for block in blocks(array):
        values = (block != 0) if as_bool else block
        state.update(values.reshape(-1).view("u1").data)
    return state.digest()


def _commit(bundle: Bundle, target: Target, row: Row, settings: Settings, report: Report) -> None:
    """Rename: the sidecar first, then the file; a left-over sidecar goes last."""
    had_sidecar = sidecar.is_ours(sidecar.path_of(target.path))
    companions = _companions(bundle, target, row, settings, had_sidecar)
    try:
        for companion in companions:
            companion.rename()
        target.rename()
    finally:
        for companion in companions:
            companion.abort()
    report.written += [other.path for other in (*target.companions, *companions)]
    if had_sidecar:
        kept = {companion.path for companion in companions}
        for path in (sidecar.path_of(target.path), sidecar.items_path_of(target.path)):
            if path not in kept and os.path.exists(path):
                os.unlink(path)
    if settings.sync:
        sync_folder(target.path)


def _companions(
    bundle: Bundle, target: Target, row: Row, settings: Settings, had_sidecar: bool
) -> list[Target]:
    """Write the sidecar and the per-item metadata of a finished file, where there is any."""
    if settings.meta not in ("auto", "sidecar") or (settings.meta == "auto" and row.name != "ra"):
        return []
    pieces = _pieces(bundle, target, row)
    for path in pieces if not had_sidecar else ():
        check_target(path, overwrite=settings.overwrite or settings.update)
    written: list[Target] = []
    for path, lines in pieces.items():
        companion = Target(path)
        written.append(companion)
        try:
            write_all(companion.open(), lines)
            companion.finish(sync=settings.sync)
        except BaseException as error:
            for done in written:
                done.abort()
            if isinstance(error, OSError):
                raise write_failed(path, error) from error
            raise
    return written


def _pieces(bundle: Bundle, target: Target, row: Row) -> dict[str, Iterable[bytes]]:
    """Return what belongs beside a finished file: path and content of each metadata file."""
    described = {array.name: sidecar.fields_of(array, row.name) for array in bundle.arrays}
    if row.many:  # per-item metadata lies beside files of one array only
        for own in described.values():
            own.pop("items", None)
    described = {name: fields for name, fields in described.items() if fields}
    if not described:
        return {}
    fields = {"arrays": described} if row.many else described[bundle.arrays[0].name]
    facts = sidecar.describe(Source(target.temp), is_ra=row.name == "ra")
    pieces: dict[str, Iterable[bytes]] = {
        sidecar.path_of(target.path): [sidecar.dump(fields, facts)]
    }
    items = bundle.arrays[0].meta.items
    if items is not None and not row.many:
        pieces[sidecar.items_path_of(target.path)] = sidecar.items_lines(items())
    return pieces


def progress_of(
    report: Callable[[int, int], object] | None, total: int
) -> Callable[[int], object] | None:
    """Turn bytes just written into a call with bytes done and bytes in all."""
    if report is None:
        return None
    done = 0

    def advance(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        report(done, total)

    return advance


def _scratch() -> str:
    """Return a path in the temporary folder for a result that goes to the standard output."""
    from tempfile import gettempdir

    return os.path.join(gettempdir(), "raconvert-stdout")


def _to_stdout(target: Target) -> None:
    """Send the finished file to the standard output; the temporary file goes with the target."""
    import shutil
    import sys

    with open(target.temp, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    sys.stdout.buffer.flush()
