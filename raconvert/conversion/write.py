"""Write one bundle to one destination: adapt, judge, write, read back, sidecar, rename.

Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Metadata
from raconvert.conversion.commit import commit
from raconvert.conversion.losses import all_fits, judge, lost_items, rounded, too_late
from raconvert.conversion.readback import read_back
from raconvert.conversion.unreadable import attempt
from raconvert.errors import RaconvertError, UsageError, WriteFailed, listed
from raconvert.files.places import refuse_used, write_failed
from raconvert.files.regular import refuse_changed
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.metadata.roundtrip import undescribed
from raconvert.ra.namespace import drop_trailer, own_only, set_trailer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Report
    from raconvert.conversion.run import Conversion
    from raconvert.plugin import Fit, Plan


def write_bundle(run: Conversion, bundle: Bundle, before: Callable[[], object] = bool) -> Report:
    """Adapt, judge and write one bundle to one file, with its sidecar; fill in the report.

    `before` is called when all is written and about to appear. Arrays that cannot be read are
    refused by name, or left out where that is allowed.
    """
    _check_count(bundle, run)
    return attempt(
        bundle, run.settings, run.report, lambda whole, lost: _convert(run, whole, lost, before)
    )


def _convert(
    run: Conversion, bundle: Bundle, lost: list[Fit], before: Callable[[], object]
) -> Report:
    """Write a bundle of arrays that can be read, as far as is known; `lost` are the others."""
    report = run.report
    if run.path == "-":
        run.settings = _for_stdout(run.row, run.settings)
    _adapt(run, bundle)
    run.plan = run.plugin.plan(_as_written(run.bundle, run.row, run.settings), **run.options)
    judge(lost + lost_items(run.origins, run.bundle.arrays) + all_fits(run), run.settings, report)
    if run.path != "-":
        beside = [sidecar.path_of(run.path), sidecar.items_path_of(run.path)]
        refuse_used([run.path, *beside], run.used)
    if run.settings.dry_run:
        report.planned, report.files = True, 1
        return report
    if run.path != "-":
        sidecar.left_over(run.path, overwrite=run.replaces)
    with _place_of(run.path) as place, _target_of(run, place) as target:
        _write(run.plan, target)
        _judge_late(run, target)
        target.finish(sync=run.settings.sync)
        read_back(run, target)
        if run.opened is not None:
            refuse_changed(run.opened.seen)
        if run.path == "-":
            _to_stdout(target)
        else:
            before()
            commit(run, target)
    report.written.append(run.path)
    report.files = 1
    return report


def _adapt(run: Conversion, bundle: Bundle) -> None:
    """Give the arrays the type and order that was asked for, or that the target needs."""
    settings, report = run.settings, run.report
    report.source_format = bundle.format
    run.origins = list(bundle.arrays)
    # Of several arrays only the numbers are cast and scaled; text stays what it is.
    text = settings.replace(dtype=None, scale=None) if len(run.origins) > 1 else settings
    run.bundle = bundle.like(
        [adapted(a, run.row, text if a.element.kind == "user" else settings) for a in run.origins]
    )
    if run.name is not None:
        run.bundle.arrays = [run.bundle.arrays[0].replace(name=run.name)]
        run.bundle.aliases = {}
    report.begin(run.bundle, run.row, run.path)
    if settings.axes != "keep-memory":
        report.add_order(run.origins, run.bundle.arrays)


def _target_of(run: Conversion, place: str) -> Target:
    """The target of the plugin, or a file."""
    settings = run.settings
    make = run.plugin.target or Target
    total = sum(array.nbytes for array in run.bundle.arrays)
    return make(
        place,
        max_memory=settings.max_memory,
        progress=progress_of(settings.progress, total),
        overwrite=run.replaces,
        used=run.used,
        allow=settings.allow,
    )


def _judge_late(run: Conversion, target: Target) -> None:
    """Record what was lost, and judge what is known, only since the data has been written."""
    report = run.report
    report.allowed += rounded(run.bundle.arrays) + target.lost
    late = [array for array in run.bundle.arrays if array.meta.complete()]
    if late:
        judge([*too_late(late, run.row), *all_fits(run)], run.settings, report)
    report.add_notes([*run.bundle.notes, *target.notes])


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
    if row.sidecar == "never" and settings.meta in ("drop", "ignore"):
        return _stripped(bundle)
    return _with_trailer(bundle, row, settings)


def _stripped(bundle: Bundle) -> Bundle:
    """Return a bundle that says nothing but names, types and dimensions."""
    arrays = []
    for array in bundle.arrays:
        meta = Metadata(formats=own_only(array.meta))
        plain = undescribed(array).replace(meta=meta, index_order=None)
        arrays.append(plain)
    return Bundle(arrays, notes=bundle.notes)


def _for_stdout(row: Row, settings: Settings) -> Settings:
    """Return the settings for the standard output, beside which nothing can lie."""
    if row.folder:
        raise UsageError(f"format {row.name} is a folder, which the standard output cannot hold")
    if settings.meta == "sidecar":
        raise UsageError(
            "there is no place for a sidecar beside the standard output",
            remedy="name a file, or put the metadata into an .ra with --meta trailer",
        )
    return settings.replace(meta="ignore") if settings.meta == "auto" else settings


def _check_count(bundle: Bundle, run: Conversion) -> None:
    names = [array.name for array in bundle.arrays if array.problem is None] or bundle.names
    if len(names) == 1 or (run.row.many and run.name is None and names):
        return
    if not names:
        raise UsageError("the source holds no array", path=bundle.path)
    raise UsageError(
        f"source has {len(names)} arrays, '{run.path}' holds one",
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
    if array.element.kind == "bool" and not row.raw_bools:
        from raconvert.arrays import cast as casting

        array = casting.checked_bools(array)
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
    if not row.trailer or settings.meta not in ("trailer", "drop"):
        return bundle
    array = bundle.arrays[0].replace(meta=bundle.arrays[0].meta.copy())
    if settings.meta == "drop":
        drop_trailer(array.meta)
    else:
        array.meta.items = None
        fields = sidecar.fields_of(array, beside_ra=True)
        if fields:
            set_trailer(array.meta, sidecar.TRAILER_MARK + sidecar.text_of(fields))
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
