"""Write one bundle to one destination: adapt, judge, write, read back, sidecar, rename.

Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from raconvert import registry
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Metadata
from raconvert.catalogue import BUNDLES
from raconvert.errors import Corrupt, RaconvertError, UsageError, WriteFailed
from raconvert.files.copy import write_all
from raconvert.files.places import check_target, refuse_used, sync_folder, write_failed
from raconvert.files.source import Source, refuse_changed
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.metadata.roundtrip import difference, restored, undescribed
from raconvert.plugin import EQUIVALENT, REFUSED, equivalent, file_fits, first_of, refused
from raconvert.unreadable import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.plugin import Fit
    from raconvert.report import Report
    from raconvert.settings import Settings


def write_bundle(
    bundle: Bundle,
    path: str,
    row: Row,
    settings: Settings,
    report: Report,
    *,
    name: str | None = None,
) -> Report:
    """Adapt, judge and write one bundle to one file, with its sidecar; fill in the report.

    Arrays that cannot be read are refused by name, or left out where that is allowed.
    """
    _check_count(bundle, path, row, name)
    return attempt(
        bundle,
        settings,
        report,
        lambda whole, lost: _write_whole(whole, path, row, settings, report, name, lost),
    )


def _write_whole(
    bundle: Bundle,
    path: str,
    row: Row,
    settings: Settings,
    report: Report,
    name: str | None,
    lost: list[Fit],
) -> Report:
    """Write a bundle of arrays that can be read, as far as is known; `lost` are the others."""
    module = registry.load(row)
    options = registry.check_options(row, "write", settings.out_opts or {})
    if path == "-":
        settings = _for_stdout(row, settings)
    report.source_format = bundle.format
    origins = list(bundle.arrays)
    # Of several arrays only the numbers are cast and scaled; text stays what it is.
    text = settings.replace(dtype=None, scale=None) if len(origins) > 1 else settings
    bundle = bundle.like(
        [adapted(a, row, text if a.element.kind == "user" else settings) for a in origins]
    )
    if name is not None:
        bundle.arrays = [bundle.arrays[0].replace(name=name)]
        bundle.aliases = {}
    bundle.allow = list(settings.allow)
    report.begin(bundle, row, path)
    if settings.axes != "keep-memory":
        report.add_order(origins, bundle.arrays)
    fits = _all_fits(bundle, module, row, options, settings)
    report.judge(lost + lost_items(origins, bundle.arrays) + fits, settings)
    if path != "-":
        beside = [sidecar.path_of(path), sidecar.items_path_of(path)]
        refuse_used([path, *beside], bundle.used)
    if settings.dry_run:
        report.planned, report.files = True, 1
        return report
    make = getattr(module, "target", Target)
    overwrite = settings.overwrite or settings.update
    if path != "-":
        sidecar.left_over(path, overwrite=overwrite)
    with (
        _place_of(path) as place,
        make(
            place,
            max_memory=settings.max_memory,
            progress=progress_of(settings.progress, sum(array.nbytes for array in bundle.arrays)),
            overwrite=overwrite,
            used=bundle.used,
        ) as target,
    ):
        _write(bundle, target, module, row, settings, options)
        report.add_rounded(bundle.arrays)
        report.allowed += bundle.lost
        late = [array.take_late() for array in bundle.arrays]
        if any(late):
            report.judge(_all_fits(bundle, module, row, options, settings), settings)
        report.add_notes(bundle.notes)
        target.finish(sync=settings.sync)
        names = module.names(bundle, options) if hasattr(module, "names") else bundle.names
        lossy = {fit.array for fit in report.allowed}
        exact = {n for n in bundle.names if settings.verify and not lossy & {n, ""}}
        alike = settings.in_opts if report.source_format == row.name else None
        forms = _read_back(module, target, origins, bundle, row, names, exact, alike)
        refuse_changed(bundle.seen)
        if path == "-":
            _to_stdout(target)
        else:
            _commit(bundle, target, row, settings, report, dict(zip(names, forms, strict=True)))
    report.written.append(path)
    report.files = 1
    return report


def _write(
    bundle: Bundle,
    target: Target,
    module: ModuleType,
    row: Row,
    settings: Settings,
    options: dict[str, Any],
) -> None:
    """Let the plugin write, with every failure under the name of the destination."""
    if row.name in BUNDLES and settings.meta in ("drop", "ignore"):
        bundle = _stripped(bundle)
    try:
        module.write(_with_trailer(bundle, row, settings), target, **options)
    except OSError as error:
        raise write_failed(target.path, error) from error
    except RaconvertError as error:
        error.path = error.path or target.path
        raise


def _stripped(bundle: Bundle) -> Bundle:
    """Return a bundle that says nothing but names, types and dimensions."""
    arrays = []
    for array in bundle.arrays:
        own = {"ra": array.meta.formats.get("ra", {})}
        plain = undescribed(array).replace(meta=Metadata(formats=own), index_order=None)
        plain.late = None
        arrays.append(plain)
    return Bundle(arrays, notes=bundle.notes)


def _for_stdout(row: Row, settings: Settings) -> Settings:
    """Return the settings for the standard output, beside which nothing can lie."""
    if not row.suffixes:
        raise UsageError(f"format {row.name} is a folder, which the standard output cannot hold")
    if settings.meta == "sidecar":
        raise UsageError(
            "there is no place for a sidecar beside the standard output",
            remedy="name a file, or put the metadata into an .ra with --meta trailer",
        )
    return settings.replace(meta="ignore") if settings.meta == "auto" else settings


def _check_count(bundle: Bundle, path: str, row: Row, name: str | None) -> None:
    names = [array.name for array in bundle.arrays if array.problem is None] or bundle.names
    if len(names) == 1 or (row.many and name is None and names):
        return
    if not names:
        raise UsageError("the source holds no array", path=bundle.path)
    raise UsageError(
        f"source has {len(names)} arrays, '{path}' holds one",
        path=bundle.path,
        remedy=f"choose with --array NAME or FILE#NAME: {', '.join(names)}",
    )


def adapted(array: Array, row: Row, settings: Settings) -> Array:
    """Apply what the user asked for (--axes, --scale, --dtype) and what the target needs."""
    if settings.axes:
        array = _with_axes(array, settings.axes, settings.max_memory)
    order, wanted = array.index_order, row.index_orders
    if order is None and wanted == "F":  # what says nothing of indices is read as it is listed
        array = array.replace(index_order="F")
    elif wanted and array.ndim > 1 and order is not None and order not in wanted:
        from raconvert.arrays import axes as axis_order
        from raconvert.arrays import cast as casting
        from raconvert.arrays import scale as scaling

        array = axis_order.in_order(array, wanted[0], settings.max_memory)
    # Values last: what moves is read in strips from the file, and a misfit has its index.
    if settings.scale not in (None, "none") or settings.dtype:
        from raconvert.arrays import axes as axis_order
        from raconvert.arrays import cast as casting
        from raconvert.arrays import scale as scaling

        if settings.scale not in (None, "none"):
            array = scaling.scaled(array, settings.scale, settings.bits)
        if settings.dtype:
            array = casting.cast(array, settings.dtype, round_values=settings.allows("precision"))
    return array


def _with_axes(array: Array, axes: str, max_memory: int) -> Array:
    from raconvert.arrays import axes as axis_order

    if axes == "keep-memory":
        return axis_order.relisted(array)
    if axes in ("c", "fortran"):
        return axis_order.in_order(array, "C" if axes == "c" else "F", max_memory)
    try:
        order = tuple(int(part) for part in axes.split(","))
    except ValueError as error:
        raise UsageError(
            f"--axes {axes} is not understood", expected="c | fortran | keep-memory | 2,0,1"
        ) from error
    return axis_order.permuted(array, order, max_memory)


def _all_fits(
    bundle: Bundle, module: ModuleType, row: Row, options: dict[str, Any], settings: Settings
) -> list[Fit]:
    """Return what the plugin and the metadata mode would change or lose."""
    fits = [*module.fits(bundle, options), *_parted(bundle), *_nameless(bundle, row)]
    mode = settings.meta
    if mode == "sidecar":
        return [*_kept(fits), *_items_without_a_place(bundle, row)]
    if mode == "trailer" and row.name != "ra":
        raise UsageError("--meta trailer is for .ra destinations; --meta sidecar for all others")
    if mode == "trailer":
        for array in bundle.arrays:
            fits += _replaced_trailer(array)
    if mode in ("drop", "ignore") and row.name in ("ra", *BUNDLES):
        for array in bundle.arrays:
            fits += _dropped(array, mode)
        if bundle.attributes or bundle.groups or bundle.formats or bundle.aliases:
            fits.append(equivalent("", "metadata", "dropped: what the file says of itself"))
    elif row.name == "ra":
        fits += file_fits(bundle, "an .ra")
    return fits


_TOLD = {
    "nulls": "which of its values are missing",
    "elements": "where an element ends and the next begins",
}


def _parted(bundle: Bundle) -> list[Fit]:
    """Return what the arrays lose because their companions were not chosen with them."""
    return [
        refused(
            array.name,
            loss,
            f"{_TOLD[loss]} is told by '{name}', which is not chosen; choose both by name with "
            "--array",
            f"--allow {loss}",
        )
        for array in bundle.arrays
        for name, loss in array.parted.items()
    ]


def _nameless(bundle: Bundle, row: Row) -> list[Fit]:
    """Return which further names of arrays and groups a container has no place for."""
    if not bundle.aliases or not row.many or row.meta == "all":
        return []
    told = [f"'{alias}' of '{real or '/'}'" for alias, real in bundle.aliases.items()]
    reason = f"{row.name} has no place for further names: {first_of(told)}"
    return [equivalent("", "metadata", reason)]


def _kept(fits: list[Fit]) -> list[Fit]:
    """Return what remains to be said when a sidecar keeps metadata and names."""
    found = []
    for fit in fits:
        if fit.outcome == REFUSED and fit.flag == "--allow names":
            found.append(equivalent(fit.array, fit.property, f"{fit.reason}; the sidecar keeps it"))
        elif not (fit.property == "metadata" and fit.outcome == EQUIVALENT):
            found.append(fit)
    return found


def _items_without_a_place(bundle: Bundle, row: Row) -> list[Fit]:
    """Return which arrays have metadata of single items, which lie beside single arrays only."""
    if not row.many or row.name in BUNDLES:
        return []
    reason = "what the items have of their own has no place in the sidecar of a container"
    return [
        equivalent(array.name, "metadata", reason)
        for array in bundle.arrays
        if array.meta.items is not None
    ]


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
            own["trailer"] = sidecar.TRAILER_MARK + sidecar.text_of(fields)
    return bundle.like([array])


def _read_back(
    module: ModuleType,
    target: Target,
    origins: list[Array],
    bundle: Bundle,
    row: Row,
    names: list[str],
    exact: set[str],
    in_opts: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """Read what was written before it takes the destination's place, headers only.

    Of the arrays named in `exact` every element is compared. Returns for each array how its form
    differs from what is read back (`raconvert.metadata.roundtrip`).
    """
    stand_ins = {os.path.realpath(other.path): other.temp for other in target.companions}
    source = Source(target.temp, max_memory=target.max_memory, stand_ins=stand_ins)
    forms = []
    with _read_written(module, row, source, names, in_opts) as written:
        parts = zip(origins, bundle.arrays, names, strict=True)
        for number, (origin, array, name) in enumerate(parts):
            found = written.get(name) if row.many else written.arrays[number]
            if found is None or len(written.arrays) != len(bundle.arrays):
                raise WriteFailed(
                    "the written file does not read back; this is a bug, nothing was replaced",
                    path=target.path,
                    expected=f"{len(names)} arrays: {', '.join(names[:10])}",
                    got=f"{len(written.arrays)}: {', '.join(written.names[:10])}",
                )
            back = found if row.many else found.replace(name=array.name)
            form = difference(origin, array, back)
            try:
                again = restored(back, form, target.path, array.meta.encoding)
            except Corrupt:  # no way back from this form; the values are there nevertheless
                form, again = {key: form[key] for key in ("name",) if key in form}, None
            forms.append(form)
            if array.name in exact:
                if again is None:
                    again = _as_the_source(module, row, source, in_opts)
                _compare(array, again, target.path)
    return forms


def _read_written(
    module: ModuleType, row: Row, source: Source, names: list[str], in_opts: dict[str, Any] | None
) -> Bundle:
    """Read a written file as anybody will; as its source was read only where arrays are missing."""
    written: Bundle = module.read(source)
    if len(written.arrays) != len(names) and in_opts and row.many:
        written.close()
        written = module.read(source, **registry.check_options(row, "read", in_opts))
    return written


def _as_the_source(
    module: ModuleType, row: Row, source: Source, in_opts: dict[str, Any] | None
) -> Array | None:
    """Return the one array of a written file, read as a source of the same format was; or None."""
    if not in_opts or row.many:
        return None
    array: Array = module.read(source, **registry.check_options(row, "read", in_opts)).only()
    return array


def _compare(array: Array, back: Array | None, path: str) -> None:
    """Compare every element with what was written."""
    if back is None or _elements_hash(array) != _elements_hash(back):
        raise WriteFailed(
            f"array '{array.name}' does not read back as it was; nothing was replaced",
            path=path,
            remedy="the disk may be failing, or this is a bug",
        )


def _elements_hash(array: Array) -> bytes:
    """Return the SHA-256 of the elements in stored order."""
    from hashlib import sha256

    from raconvert.arrays.blocks import blocks

    state = sha256()
    for block in blocks(array):
        state.update(block.reshape(-1).view("u1").data)
    return state.digest()


def _commit(
    bundle: Bundle,
    target: Target,
    row: Row,
    settings: Settings,
    report: Report,
    forms: dict[str, dict[str, Any]],
) -> None:
    """Rename all or none: the sidecar, then the file; a left-over sidecar goes last."""
    left = sidecar.left_over(target.path, overwrite=target.overwrite)
    target.companions += _companions(bundle, target, row, settings, forms, left)
    target.rename()
    report.written += [companion.path for companion in target.companions]
    for path in left:
        if path not in report.written:
            _remove_left_over(path)
    if settings.sync:
        sync_folder(target.path)


def _remove_left_over(path: str) -> None:
    """Remove metadata that is about the file that was replaced."""
    try:
        os.unlink(path)
    except OSError as error:
        raise WriteFailed(
            f"is left over and cannot be removed: {error.strerror}; the new data is in its place",
            path=path,
            remedy="remove it: it describes the file that was there before",
        ) from error


def _companions(
    bundle: Bundle,
    target: Target,
    row: Row,
    settings: Settings,
    forms: dict[str, dict[str, Any]],
    left: list[str],
) -> list[Target]:
    """Write the sidecar and the per-item metadata of a finished file, where there is any.

    Those in `left` are of the file that was there, and may be replaced.
    """
    usual = settings.meta == "auto" and row.name == "ra"
    if not usual and (settings.meta != "sidecar" or row.name in BUNDLES):
        return []
    pieces = _pieces(bundle, target, row, forms, asked=settings.meta == "sidecar")
    for path in pieces:
        check_target(path, overwrite=target.overwrite or path in left)
    written: list[Target] = []
    for path, lines in pieces.items():
        companion = Target(path, overwrite=target.overwrite or path in left, follow=False)
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


def _pieces(
    bundle: Bundle, target: Target, row: Row, forms: dict[str, dict[str, Any]], *, asked: bool
) -> dict[str, Iterable[bytes]]:
    """Return what belongs beside a finished file: path and content of each metadata file.

    `asked`: the sidecar was asked for (``--meta sidecar``), so that it also says what is usual.
    """
    described = {
        name: sidecar.fields_of(array, row.name)
        for name, array in zip(forms, bundle.arrays, strict=True)
    }
    if row.name == "ra":
        fields = next(iter(described.values()))
        if (asked or fields) and bundle.arrays[0].index_order == "C" and bundle.arrays[0].ndim > 1:
            fields = {"index_order": "C", **fields}
    else:
        fields = _whole_story(bundle, row, described, forms)
    if not fields:
        return {}
    facts = sidecar.describe(Source(target.temp), is_ra=row.name == "ra")
    pieces: dict[str, Iterable[bytes]] = {
        sidecar.path_of(target.path): [sidecar.text_of(fields, facts)]
    }
    items = bundle.arrays[0].meta.items
    if items is not None and not row.many:
        pieces[sidecar.items_path_of(target.path)] = sidecar.items_lines(items())
    return pieces


def _whole_story(
    bundle: Bundle,
    row: Row,
    described: dict[str, dict[str, Any]],
    forms: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return the fields beside a file that is no .ra: all metadata, and what the arrays were."""
    for name, own in described.items():
        if forms[name]:
            own["was"] = forms[name]
        if row.many:
            own.pop("items", None)  # they lie beside files of one array only
    if not row.many:
        fields = next(iter(described.values()))
    else:
        from raconvert.bundle.manifest import told_of_file

        fields = {**told_of_file(bundle), "arrays": described}
    return {"complete": True, **fields}


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


@contextmanager
def _place_of(path: str) -> Iterator[str]:
    """Give where a file is written: its path, or for the standard output one in a private folder.

    Nobody else can put a link, or another file, into a folder that is its owner's alone.
    """
    if path != "-":
        yield path
        return
    from shutil import rmtree
    from tempfile import mkdtemp

    try:
        folder = mkdtemp(prefix=".raconvert-", suffix=".tmp")
    except OSError as error:
        raise write_failed(error.filename or "-", error) from error
    try:
        yield os.path.join(folder, "stdout")
    finally:
        rmtree(folder, ignore_errors=True)


def _to_stdout(target: Target) -> None:
    """Send the finished file to the standard output; the temporary file goes with the target."""
    import shutil
    import sys

    file = target.written()
    file.seek(0)
    shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    sys.stdout.buffer.flush()
