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
from raconvert.conversion.commit import commit
from raconvert.conversion.losses import all_fits, lost_items, too_late
from raconvert.conversion.readback import read_back
from raconvert.conversion.unreadable import attempt
from raconvert.errors import RaconvertError, UsageError, WriteFailed, listed
from raconvert.files.places import refuse_used, write_failed
from raconvert.files.regular import refuse_changed
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.metadata.roundtrip import undescribed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Report
    from raconvert.plugin import Fit, Plan


def write_bundle(
    bundle: Bundle,
    path: str,
    row: Row,
    settings: Settings,
    report: Report,
    *,
    name: str | None = None,
    before: Callable[[], object] = bool,
) -> Report:
    """Adapt, judge and write one bundle to one file, with its sidecar; fill in the report.

    `before` is called when all is written and about to appear. Arrays that cannot be read are
    refused by name, or left out where that is allowed.
    """
    _check_count(bundle, path, row, name)
    return attempt(
        bundle,
        settings,
        report,
        lambda whole, lost: _write_whole(whole, path, row, settings, report, name, lost, before),
    )


def _write_whole(
    bundle: Bundle,
    path: str,
    row: Row,
    settings: Settings,
    report: Report,
    name: str | None,
    lost: list[Fit],
    before: Callable[[], object],
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
    report.begin(bundle, row, path)
    if settings.axes != "keep-memory":
        report.add_order(origins, bundle.arrays)
    plan = registry.plan_of(module, _as_written(bundle, row, settings), options, settings.allow)
    fits = all_fits(bundle, plan.fits, row, settings)
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
            allow=settings.allow,
        ) as target,
    ):
        _write(plan, target)
        report.add_rounded(bundle.arrays)
        report.allowed += target.lost
        late = [array for array in bundle.arrays if array.take_late()]
        if late:
            report.judge(all_fits(bundle, too_late(late, row), row, settings), settings)
        report.add_notes([*bundle.notes, *target.notes])
        target.finish(sync=settings.sync)
        lossy = {fit.array for fit in report.allowed}
        exact = {n for n in bundle.names if settings.verify and not lossy & {n, ""}}
        alike = settings.in_opts if report.source_format == row.name else None
        forms = read_back(module, target, origins, bundle, row, plan.names, exact, alike)
        refuse_changed(bundle.seen)
        if path == "-":
            _to_stdout(target)
        else:
            before()
            commit(bundle, target, row, settings, report, dict(zip(plan.names, forms, strict=True)))
    report.written.append(path)
    report.files = 1
    return report


def _write(plan: Plan, target: Target) -> None:
    """Let the plugin write, with every failure under the name of the destination."""
    try:
        plan.write(target)
    except OSError as error:
        raise write_failed(target.path, error) from error
    except RaconvertError as error:
        error.path = error.path or target.path
        raise


def _as_written(bundle: Bundle, row: Row, settings: Settings) -> Bundle:
    """The bundle as ``--meta`` lets the plugin see it."""
    if row.name in BUNDLES and settings.meta in ("drop", "ignore"):
        return _stripped(bundle)
    return _with_trailer(bundle, row, settings)


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
        remedy=f"choose with --array NAME or FILE#NAME: {listed(names)}",
    )


def adapted(array: Array, row: Row, settings: Settings) -> Array:
    """Apply what the user asked for (--axes, --scale, --dtype) and what the target needs."""
    if settings.axes:
        array = _with_axes(array, settings.axes, settings.max_memory)
    order, wanted = array.index_order, row.index_orders
    if order is None and wanted == "F":  # what says nothing of indices is read as it is listed
        array = array.replace(index_order="F")
    elif array.row_major and not wanted:
        from raconvert.arrays import axes as axis_order
        from raconvert.arrays import cast as casting
        from raconvert.arrays import scale as scaling

        array = casting.as_listed(array, settings.max_memory)
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
    try:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # its reader has enough
        raise
    except OSError as error:
        raise WriteFailed(f"the standard output cannot be written: {error.strerror}") from error
