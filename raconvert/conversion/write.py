"""One bundle to one destination: adapted to the target, planned, judged, written, committed.

Nothing is written before the fits were judged; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager

from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import is_float8
from raconvert.arrays.metadata import Metadata
from raconvert.conversion.outputs import commit, is_addition, read_back
from raconvert.conversion.report import judge
from raconvert.errors import (
    UNREADABLE,
    Changed,
    RaconvertError,
    UsageError,
    WriteFailed,
    counted,
    listed,
)
from raconvert.files.paths import refuse_used, write_failed
from raconvert.files.source import refuse_changed
from raconvert.files.target import SENDERS, Target, sender_of
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX

LARGE = 64 << 20  # bytes from which on the system begins to write to the disk during the write
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.report import Conversion, Report
    from raconvert.plugin import Fit, Plan

    T = TypeVar("T")


def write_bundle(run: Conversion, bundle: Bundle, before: Callable[[], object] = bool) -> Report:
    """Adapt, judge and write one bundle to one file, with its sidecar; fill in the report.

    `before` is called before the finished file is renamed; `bool` does nothing. Arrays that cannot
    be read are refused by name, or left out if that is allowed.
    """
    return _of_readable(run, bundle, lambda whole, lost: _convert(run, whole, lost, before))


def plan_bundle(run: Conversion, bundle: Bundle) -> None:
    """Adapt, plan and judge one bundle as `write_bundle` does, and write nothing.

    The report has the changes, the allowed losses and the notes, and no arrays.
    """
    with ExitStack() as stack:
        _of_readable(run, bundle, lambda whole, lost: _plan(run, whole, lost, stack))


def _of_readable(run: Conversion, bundle: Bundle, do: Callable[[Bundle, list[Fit]], T]) -> T:
    """Call `do` with the arrays that can be read, as `attempt` does.

    Raises `UsageError` for several arrays if the destination holds one.
    """
    sound = [array for array in bundle.arrays if array.problem is None] or bundle.arrays
    if len(sound) != 1 and (not sound or not run.row.many or run.name is not None):
        raise _wrong_count([array.name for array in sound], bundle.path, run.path)
    if len(bundle.arrays) == 1 and bundle.arrays[0].problem is None:  # all or nothing
        return do(bundle, [])
    return attempt(bundle, run.settings, run.report, do)


def attempt(
    bundle: Bundle,
    settings: Settings,
    report: Report,
    run: Callable[[Bundle, list[Fit]], T],
) -> T:
    """Call `run` with the arrays that can be read, and again if it fails since more cannot be.

    Its second argument are the losses of the others (`raconvert.conversion.unreadable.without`).
    """
    before = report.state()
    try:
        return run(*_readable(bundle, settings))
    except Changed:  # the whole file is another one
        raise
    except UNREADABLE:
        from raconvert.conversion.unreadable import find

        sound = [array for array in bundle.arrays if array.problem is None]
        if len(sound) < 2 or not find(sound, settings.max_memory):
            raise
    report.go_back(before)
    return run(*_readable(bundle, settings))


def _readable(bundle: Bundle, settings: Settings) -> tuple[Bundle, list[Fit]]:
    """Return the arrays that can be read, and the losses of the others, as `without` does."""
    sound = True
    for array in bundle.arrays:
        if array.pending:
            array.settle()
        sound = sound and array.problem is None
    if sound:
        return bundle, []
    from raconvert.conversion.unreadable import without

    return without(bundle, settings)


def _convert(
    run: Conversion, bundle: Bundle, lost: list[Fit], before: Callable[[], object]
) -> Report:
    """Write a bundle of arrays that seem readable; `lost` are the losses of the others."""
    if run.path == "-":
        run.settings = _for_stdout(run.row, run.settings)
    with ExitStack() as stack:
        if not _plan(run, bundle, lost, stack):
            return run.report
        return _planned(run, before)


def _plan(run: Conversion, bundle: Bundle, lost: list[Fit], stack: ExitStack) -> bool:
    """Adapt the arrays, let the plugin plan the file, and judge; False if an existing array stays.

    Writes nothing. `lost` are the losses of arrays that were left out; `stack` closes after the
    write. Raises `WouldLose` for losses that are not allowed.
    """
    _adapt(run, bundle)
    users = [array.element for array in run.bundle.arrays if array.element.kind == "user"]
    if any(map(is_float8, users)):
        from raconvert.conversion.losses import unheld_floats

        judge(unheld_floats(run), run.settings, run.report)
    written = _as_written(run.bundle, run.row, run.settings)
    if run.name is not None and is_addition(run.path, run.name, run.row):
        from raconvert.conversion import addition

        if not addition.plan(run, written, stack):
            return False
    else:
        run.plan = run.plugin.plan(written, **run.options)
        if run.plan.notes:
            run.report.add_notes(run.plan.notes)
    fits = [*lost, *run.plan.fits]
    if _may_lose_more(run):
        from raconvert.conversion.losses import all_fits, lost_items, undecided

        fits = lost + lost_items(run.origins, run.bundle.arrays) + all_fits(run)
        fits += undecided(run) if run.settings.strict else []
    if fits:
        judge(fits, run.settings, run.report)
    return True


def _planned(run: Conversion, before: Callable[[], object]) -> Report:
    """Write what was planned."""
    report = run.report
    report.add_arrays(run.bundle.arrays)
    if run.path != "-":
        _check_places(run)
    if run.settings.dry_run:
        report.planned, report.files = True, 1
        return report
    if run.path == "-":
        with _private_place() as path, _target_of(run, path) as target:
            _fill(run, target)
            _to_stdout(target)
    elif _is_sent(run):
        before()
    else:
        with _target_of(run, run.path) as target:
            _fill(run, target)
            before()
            commit(run, target)
    report.written.append(run.path)
    report.files = 1
    return report


def _is_sent(run: Conversion) -> bool:
    """True if the file was sent to its destination without a local file."""
    send = sender_of(run.path) if SENDERS else None
    return send is not None and send(run)


def _fill(run: Conversion, target: Target) -> None:
    """Write the temporary file and read it back."""
    _write(run.plan, target)
    _judge_late(run, target)
    target.finish(sync=run.settings.sync)
    read_back(run, target)
    if run.opened is not None:
        refuse_changed(run.opened.seen)


def _may_lose_more(run: Conversion) -> bool:
    """True if there may be losses besides the plan's: of items, of a file, or by an option.

    The losses of arrays, and of a file that does not become an .ra, are in the plan.
    """
    bundle = run.bundle
    of_file = bundle.attributes or bundle.groups or bundle.formats
    if of_file and run.row.sidecar == "auto":
        return True
    by_option = run.settings.meta != "auto" or run.settings.strict
    if by_option or bundle.aliases or run.left_behind:
        return True
    with_items = [array for array in run.origins if array.meta.items is not None]
    return bool(with_items)


def _check_places(run: Conversion) -> None:
    """Refuse a destination that is read, or has a sidecar that is read or may not be replaced.

    The source itself was compared with the destination before it was opened.
    """
    beside = run.path + SUFFIX
    has_sidecar = os.path.lexists(beside)
    if has_sidecar or len(run.used) > 1:
        refuse_used([run.path, beside, run.path + ITEMS_SUFFIX], run.used)
    if has_sidecar and not run.settings.dry_run:
        from raconvert.metadata.sidecar import left_over

        left_over(run.path, overwrite=run.replaces or run.container is not None)


def _adapt(run: Conversion, bundle: Bundle) -> None:
    """Give the arrays the type and order that was asked for, or that the target needs."""
    settings, report = run.settings, run.report
    report.source_format = bundle.format
    run.origins = list(bundle.arrays)
    # If there are several arrays, only numbers are cast and scaled; text stays as it is.
    for_text = settings
    if len(run.origins) > 1 and (settings.dtype or settings.scale):
        for_text = settings.replace(dtype=None, scale=None)
    for_as_is = for_text.replace(axes=None) if run.as_is else for_text
    arrays = []
    for array in run.origins:
        chosen = for_text if array.element.kind == "user" else settings
        if run.as_is and array.name in run.as_is:
            chosen = for_as_is
        arrays.append(adapted(array, run.row, chosen))
    run.bundle = bundle.like(arrays)
    if run.name is not None:
        run.bundle.arrays = [run.bundle.arrays[0].replace(name=run.name)]
        run.bundle.aliases = {}
        run.bundle.named = True
    if settings.axes != "keep-memory":
        report.add_order(run.origins, run.bundle.arrays)


def _target_of(run: Conversion, path: str) -> Target:
    """Return the target for a path: that of the plugin, or a file."""
    settings = run.settings
    make = run.plugin.target or Target
    total = sum(array.nbytes for array in run.bundle.arrays)
    return make(
        path,
        max_memory=settings.max_memory,
        progress=progress_of(settings.progress, total),
        overwrite=run.replaces or run.container is not None,
        used=run.used,
        allow=settings.allow,
        sync=settings.sync and total >= LARGE,
    )


def _judge_late(run: Conversion, target: Target) -> None:
    """Record and judge the losses that are known only after the data was written."""
    report = run.report
    if run.settings.allows("precision"):
        from raconvert.conversion.losses import rounded

        report.allowed += rounded(run.bundle.arrays)
    report.allowed += target.lost
    late = []
    for array in run.bundle.arrays:
        if array.described and array.meta.later is not None:
            array.meta = array.meta.completed()
            late += [array] * bool(array.meta)
    if late:
        from raconvert.conversion.losses import all_fits, too_late

        judge([*too_late(late, run.row), *all_fits(run)], run.settings, report)
    if run.bundle.notes or target.notes:
        report.add_notes([*run.bundle.notes, *target.notes])


def _write(plan: Plan, target: Target) -> None:
    """Let the plugin write; errors without a path get that of the destination."""
    try:
        plan.write(target)
    except OSError as error:
        raise write_failed(target.path, error) from error
    except RaconvertError as error:
        error.path = error.path or target.path
        raise


def _as_written(bundle: Bundle, row: Row, settings: Settings) -> Bundle:
    """Return the bundle as it is handed to the plugin, with the metadata that ``--meta`` leaves."""
    if row.sidecar == "never" and settings.meta in ("drop", "ignore"):
        return _stripped(bundle)
    if row.trailer and settings.meta in ("trailer", "drop"):
        return _with_trailer(bundle, settings)
    return bundle


def _stripped(bundle: Bundle) -> Bundle:
    """Return a bundle of arrays without metadata: only names, types and dimensions."""
    from raconvert.arrays.metadata import own_only
    from raconvert.arrays.reinterpret import undescribed

    arrays = []
    for array in bundle.arrays:
        meta = Metadata(formats=own_only(array.meta))
        bare = undescribed(array).listed(None, meta=meta)
        arrays.append(bare)
    return Bundle(arrays, notes=bundle.notes)


def _for_stdout(row: Row, settings: Settings) -> Settings:
    """Return the settings for the standard output, which has no sidecar."""
    if row.folder:
        raise UsageError(f"format {row.name} is a folder, which the standard output cannot hold")
    if settings.meta == "sidecar":
        raise UsageError(
            "a sidecar cannot be written beside the standard output",
            remedy="name a file, or put the metadata into an .ra with `--meta trailer`",
        )
    return settings.replace(meta="ignore") if settings.meta == "auto" else settings


def _wrong_count(names: list[str], source: str, target: str) -> UsageError:
    """Return the error for a source without arrays, or with several for a file that holds one."""
    if not names:
        return UsageError("the source holds no array", path=source)
    return UsageError(
        f"source has {counted(len(names), 'array')}, '{target}' holds one",
        path=source,
        remedy=f"choose with `--array NAME` or FILE#NAME: {listed(names)}",
    )


def adapted(array: Array, row: Row, settings: Settings) -> Array:
    """Apply what was asked for (--slice, --axes, --scale, --dtype), and what the target needs."""
    if settings.slice is not None:
        from raconvert.arrays.slicing import part_of

        array = part_of(array, settings.slice)
    if settings.axes:
        array = _with_axes(array, settings.axes, settings.max_memory)
    order, wanted = array.index_order, row.index_orders
    if order is None and wanted == "F":  # without an index order, axes are taken as listed
        array = array.listed("F")
    elif array.row_major and not wanted:
        from raconvert.arrays.transpose import as_listed

        array = as_listed(array, settings.max_memory)
    elif wanted and order is not None and order not in wanted and array.ndim > 1:
        from raconvert.arrays.transpose import in_order

        array = in_order(array, wanted[0], settings.max_memory)
    # Values last: moved data is read in strips from the file, and an error has the final index.
    if settings.scale not in (None, "none") or settings.dtype:
        from raconvert.arrays import cast as casting
        from raconvert.arrays.cast import scaled

        if settings.scale not in (None, "none"):
            array = scaled(array, settings.scale, settings.bits)
        if settings.dtype:
            array = casting.cast(array, settings.dtype, round_values=settings.allows("precision"))
    if array.element.kind == "bool" and not row.raw_bools:
        from raconvert.arrays.cast import checked_bools

        array = checked_bools(array)
    return array


def _with_axes(array: Array, axes: str, max_memory: int) -> Array:
    """Return an array with its axes in the order that ``--axes`` asks for."""
    from raconvert.arrays.transpose import check_axes, in_order, permuted, relisted

    if axes == "keep-memory":
        return relisted(array)
    if axes in ("c", "fortran"):
        if array.index_order is None:  # [i,j,k] of `info` and of Python stay
            array = array.listed("C")
        return in_order(array, "C" if axes == "c" else "F", max_memory)
    return permuted(array, check_axes(axes), max_memory)


def _with_trailer(bundle: Bundle, settings: Settings) -> Bundle:
    """Put the metadata behind the data of an .ra, or take a trailer away, as --meta says."""
    array = bundle.arrays[0]
    from raconvert.arrays.metadata import with_trailer, without_trailer
    from raconvert.metadata import sidecar
    from raconvert.metadata.roundtrip import record_of

    if settings.meta == "drop":
        return bundle.like([array.replace(meta=without_trailer(array.meta))])
    array = array.replace(meta=array.meta.replace(items=None))
    fields = record_of(array, beside_ra=True)
    if fields:
        array.meta = with_trailer(array.meta, sidecar.TRAILER_MARK + sidecar.text_of(fields))
    return bundle.like([array])


def progress_of(
    report: Callable[[int, int], object] | None, total: int
) -> Callable[[int], object] | None:
    """Return a function that takes bytes just written and reports bytes done and in all."""
    if report is None:
        return None
    done = 0

    def advance(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        report(done, total)

    return advance


@contextmanager
def _private_place() -> Iterator[str]:
    """Yield the path of a file for the standard output, in a private folder.

    Nobody else can put a link, or another file, into a folder that only its owner can open.
    """
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
