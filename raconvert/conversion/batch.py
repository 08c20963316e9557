"""Conversions of many sources, or to many destinations: the choice of the way.

Of several sources, a target of one array takes a stack on a new first axis, a container one named
array each (`raconvert.conversion.combine`), a folder or a template with ``{stem}`` one file each
(`raconvert.conversion.each`). A template with ``{}``, ``{i}`` or ``{label}`` takes one plane per
file (`raconvert.conversion.planes`).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from raconvert import registry
from raconvert.arrays.bundle import Bundle
from raconvert.conversion.combine import (
    concatenated,
    open_named,
    open_stack,
    refuse_other_format,
)
from raconvert.conversion.each import convert_each
from raconvert.conversion.inputs import (
    Gathered,
    gather,
    gathered_files,
    missing_numbers,
    repeated,
    sequence_note,
)
from raconvert.conversion.labels import (
    add_labels,
    check_labels,
    is_in_container,
    labels_array,
    parts_of,
    stage_labels,
)
from raconvert.conversion.losses import lost_items
from raconvert.conversion.options import Settings
from raconvert.conversion.outputs import (
    EACH_FIELDS,
    PLANE_FIELDS,
    array_name,
    check_values,
    is_addition,
    is_folder,
    prepare_target,
    target_spec,
    template_fields,
)
from raconvert.conversion.planes import write_planes
from raconvert.conversion.read import Opened, open_spec, open_together
from raconvert.conversion.report import Conversion, Report, few, judge
from raconvert.conversion.transaction import Staging
from raconvert.conversion.write import write_bundle
from raconvert.errors import Corrupt, RaconvertError, TargetExists, UsageError, WouldLose
from raconvert.files.paths import refuse_used
from raconvert.files.unfinished import Unfinished
from raconvert.workers.worker import Aside, can_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row

_OURS = "raconvert.plugins."
MANY = 100  # equal arrays in one container, from which on a note proposes a stack
STACK_NAME = "images"  # the name of a stack in one container with its labels


def convert_many(words: list[str], dst: str | None, settings: Settings) -> Report:
    """Convert anything but one file to one file: choose the way, and go it."""
    if settings.to is not None:
        check_values(registry.by_name(settings.to), settings)
    gathered = _gathered(words, settings)
    _check_sequence(gathered, settings)
    if dst is not None and is_folder(dst, settings):
        asked = settings.to is not None and registry.by_name(settings.to).folder
        if asked and settings.out_dir is None and settings.stack != "each":
            return _convert_to_one(gathered, dst, settings)
        if _may_become_bundle(gathered, settings):
            with open_spec(gathered.paths[0], settings) as opened:
                if _is_container(opened):
                    folder = settings.replace(to=registry.folder_row().name)
                    return _convert_to_one(gathered, dst, folder, opened)
    if is_folder(dst, settings) or template_fields(dst) & EACH_FIELDS:
        if settings.labels or settings.cuts:
            option = "`--labels`" if settings.labels else "`--planes`"
            raise UsageError(
                f"{option} goes with one destination, not with one file for each source"
            )
        if settings.skip_bad:
            raise UsageError(
                "`--skip-bad` goes with one destination for all sources",
                remedy="leave it out: of one file for each source a bad one fails alone",
            )
        return convert_each(words, gathered, dst, settings)
    if dst is None:
        raise UsageError("no destination", remedy="name one with `-o FILE` or `--out-dir DIR`")
    return _convert_to_one(gathered, dst, settings)


def _gathered(words: list[str], settings: Settings) -> Gathered:
    """Return the files that the words mean; with `jobs`, another process looks for them."""

    def look() -> Gathered:
        return gather(
            words,
            files_from=settings.files_from,
            null_separated=settings.null_separated,
            recursive=settings.recursive,
            include=settings.include,
            exclude=settings.exclude,
            sort=settings.sort,
        )

    if not settings.jobs or settings.jobs < 2 or settings.files_from is not None or not can_fork():
        return look()

    def look_aside() -> list[Any]:
        paths, *rest = look().looked_through()
        return ["\0".join(paths), *rest]  # JSON of many short texts costs more

    aside = Aside(look_aside)
    try:  # meanwhile: it takes about as long, and is needed next
        _import_ahead(words[-1])
    except BaseException:
        aside.give_up()
        raise
    text, *rest = aside.result()
    return Gathered(text.split("\0"), *rest)


def _import_ahead(source: str) -> None:
    """Import the modules that a stack of such files needs: the plugin, and its quick stack."""
    row = registry.by_suffix(source)
    if row is None or registry.missing_needs(row):
        return
    has_quick_stack = registry.load(row).read_stack is not None
    if has_quick_stack and row.module.startswith(_OURS) and find_spec(f"{row.module}.stack"):
        import_module(f"{row.module}.stack")


def convert_stack(paths: list[str], path: str, settings: Settings) -> Report:
    """Convert files to a stack, in natural order; no name is a pattern or a template.

    Raises what `raconvert.conversion.pipeline.convert` does.
    """
    settings = settings.replace(stack=True)
    return _convert_to_one(gathered_files(paths), path, settings, literal=True)


def _convert_to_one(
    gathered: Gathered,
    dst: str,
    settings: Settings,
    opened: Opened | None = None,
    *,
    literal: bool = False,
) -> Report:
    """Convert the sources to one file, or to its planes.

    `opened` is the one source if it is open already. `literal`: the destination is a path, with no
    ``#NAME`` and no fields of a template in it.
    """
    path, name = (dst, None) if literal else target_spec(dst, settings.to)
    row = registry.target_row(path, settings.to, container=bool(name or settings.name))
    name = array_name(name, row, settings)
    planes = not literal and (bool(template_fields(dst) & PLANE_FIELDS) or settings.cuts)
    report = Report(few(gathered.paths))
    report.source_count = len(gathered.paths)
    if not planes and not prepare_target(path, row, gathered.paths, settings, report, name):
        return report
    report.target, report.target_format = path, row.name
    if settings.skip_bad:
        from raconvert.conversion.unreadable import without_bad

        gathered = without_bad(gathered, settings, report)
    try:
        return _write_gathered(gathered, path, row, name, settings, report, opened, planes=planes)
    except RaconvertError as error:
        if len(gathered.paths) > 1:
            from raconvert.conversion.unreadable import name_way_out

            if isinstance(error, Corrupt):
                refuse_other_format(error, gathered.paths, settings)
            name_way_out(error, gathered.paths)
        raise


def _write_gathered(
    gathered: Gathered,
    path: str,
    row: Row,
    name: str | None,
    settings: Settings,
    report: Report,
    opened: Opened | None,
    *,
    planes: bool,
) -> Report:
    """Write the sources to one destination, or to its planes, and their labels if asked for."""
    if settings.labels and not planes and is_in_container(settings, row):
        return _write_labelled(gathered, path, row, name, settings, report)
    if settings.labels:
        check_labels(settings.labels, path, gathered.paths, settings)
        labels = labels_array(gathered.paths)
        stage_labels(labels, settings.labels, None, settings, report)
    with opened or _open(gathered, row, name, settings, report) as source:
        if settings.labels:
            refuse_used([settings.labels], source.used)

        def write(before: Callable[[], object] = bool) -> None:
            if planes:
                write_planes(source, path, row, gathered.paths, settings, report)
            else:
                run = Conversion(path, row, settings, report, name=name, opened=source)
                write_bundle(run, source.bundle, before)

        if settings.labels and not settings.dry_run:
            _write_with_labels(write, path, labels, settings, report)
        else:
            write()
    return report


def _write_labelled(
    gathered: Gathered, path: str, row: Row, name: str | None, settings: Settings, report: Report
) -> Report:
    """Write a stack, its labels and their classes into one container.

    Folders such as ``train`` and ``test`` with classes of the same names get a stack each.
    """
    if is_addition(path, name, row):
        raise TargetExists(
            "exists, and a stack goes with its labels into a new container only",
            path=path,
            remedy="write both to a new container, and add each of its arrays: `-o FILE#NAME`",
        )
    stacked = settings if isinstance(settings.stack, tuple) else settings.replace(stack=True)
    parts = parts_of(gathered.paths)
    with _open_parts([*parts.values()], gathered, row, name, stacked, report) as source:
        run = Conversion(path, row, settings, report, opened=source)
        labels = str(settings.labels)
        source.bundle.arrays, run.as_is = add_labels(
            source.bundle, parts, name or STACK_NAME, labels
        )
        try:
            return write_bundle(run, source.bundle)
        except WouldLose:
            unreadable = source.bundle.unreadable
            problem = unreadable[0].problem if unreadable else None
            if problem is None:
                raise
            raise problem from None  # labels without their images are of no use


def _open_parts(
    parts: list[list[str]],
    gathered: Gathered,
    row: Row,
    name: str | None,
    settings: Settings,
    report: Report,
) -> Opened:
    """Open a stack of each part of the sources."""
    if len(parts) == 1:
        return _open(gathered, row, name, settings, report)
    together = Opened(Bundle([]), set(), {})
    try:
        for paths in parts:
            part = _open(gathered._replace(paths=paths, odd=None), row, name, settings, report)
            together.bundle.add_notes_of(part.bundle)
            together.bundle.arrays += part.bundle.arrays
            together.bundle.path, together.bundle.format = part.bundle.path, part.bundle.format
            together.used |= part.used
            together.seen |= part.seen
    except BaseException:
        together.bundle.close()
        raise
    return together


def _write_with_labels(
    write: Callable[[Callable[[], object]], None],
    path: str,
    labels: Array,
    settings: Settings,
    report: Report,
) -> None:
    """Write a stack and its labels, which appear together or not at all."""
    destination = str(settings.labels)
    published: list[str] = []
    with (
        Staging(destination, sync=settings.sync) as staging,
        Unfinished([path, destination], single=True) as unfinished,
    ):
        stage_labels(labels, destination, staging, settings, report)

        def appear() -> None:
            if path != "-":
                unfinished.begin()
            published.extend(staging.publish())

        try:
            write(appear)
            if not published:  # planes, and the standard output
                appear()
        except BaseException as error:
            staging.undo(error)
            raise
    report.written += published


def _may_become_bundle(gathered: Gathered, settings: Settings) -> bool:
    """True if a folder as destination becomes one bundle in case the source is a container."""
    each = settings.out_dir is not None or settings.stack == "each" or settings.to is not None
    return not (each or gathered.many or settings.labels or settings.cuts)


def _is_container(opened: Opened) -> bool:
    return len(opened.bundle.arrays) > 1 or bool(registry.by_name(opened.bundle.format).many)


def _check_sequence(gathered: Gathered, settings: Settings) -> None:
    """Refuse (`UsageError`) gaps and duplicates if ``--strict-sequence`` was given."""
    if settings.strict_sequence:
        gaps = missing_numbers(gathered.paths)
        if gaps:
            raise UsageError(f"the sequence has gaps: {gaps} (refused by `--strict-sequence`)")
        if twice := repeated(gathered.paths):
            raise UsageError(
                f"the sequence has {twice} duplicates (refused by `--strict-sequence`)"
            )


def _open(
    gathered: Gathered, row: Row, name: str | None, settings: Settings, report: Report
) -> Opened:
    """Open the sources in the form that the target takes: one file, an array each, or a stack."""
    if not gathered.many and not settings.stack:
        return open_spec(gathered.paths[0], settings)
    joins = isinstance(settings.stack, tuple)
    if not joins and (together := open_together(gathered.paths, settings)) is not None:
        return together
    if row.many and not settings.stack and name is None:
        together, fits = open_named(gathered, settings)
        judge(fits, settings, report)
        report.add_notes(_hints(together.bundle.arrays, len(gathered.paths)))
        return together
    report.add_notes([sequence_note(gathered, "joining" if joins else "stacking")])
    opened = open_stack(gathered, settings, report.target)
    if isinstance(settings.stack, tuple):
        stack = opened.array
        opened.bundle.arrays = [concatenated(stack, settings.stack[1], settings.max_memory)]
        judge(lost_items([stack], opened.bundle.arrays), settings, report)
    return opened


def _hints(arrays: list[Array], files: int) -> list[str]:
    """Return a note on many arrays of one type and shape, which may be meant as a stack."""
    if len(arrays) != files or files < MANY:
        return []
    if len({(array.element, array.shape) for array in arrays}) > 1:
        return []
    return [
        f"{files} arrays of the same type and shape, one for each file; `--stack` makes one of them"
    ]
