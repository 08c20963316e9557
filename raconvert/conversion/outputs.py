"""What a destination stands for: one file, a folder of them, or a template of many names.

A template with ``{stem}`` or ``{name}`` takes one file for each source, one with ``{}``, ``{i}`` or
``{label}`` one file for each plane.
"""

from __future__ import annotations

import os
import string

from raconvert import registry
from raconvert.conversion.options import Settings
from raconvert.conversion.report import Report
from raconvert.errors import ReadFailed, TargetExists, UsageError
from raconvert.files.places import check_target, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings

EACH_FIELDS = {"stem", "name"}
PLANE_FIELDS = {"", "0", "i", "label"}


def is_folder(dst: str | None, settings: Settings) -> bool:
    """True if every source becomes a file of its own in a folder."""
    if settings.stack == "each" or settings.out_dir is not None:
        return True
    return dst is not None and (dst.endswith(("/", os.sep)) or os.path.isdir(dst))


def template_fields(dst: str | None) -> set[str]:
    """Return the names of the fields of a template; empty for a plain path."""
    if dst is None or "{" not in dst or os.path.lexists(dst):
        return set()
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
    """Return the last part of a path without its suffix; of a folder, all of it."""
    name = os.path.basename(path.rstrip("/" + os.sep))
    return name if os.path.isdir(path) else os.path.splitext(name)[0]


def target_spec(dst: str, to: str | None) -> tuple[str, str | None]:
    """Split ``FILE#name`` of a destination: only where FILE would be a container."""
    if "#" in dst and not os.path.lexists(dst):
        path, _, name = dst.rpartition("#")
        row = registry.by_name(to) if to else registry.by_suffix(path)
        if row is not None and row.many and name:
            return path, name
    return dst, None


def prepare_target(
    path: str, row: Row, sources: list[str], settings: Settings, report: Report
) -> bool:
    """Check the destination before anything is read; False means: skip it."""
    if path == "-":
        return True
    refuse_sources([path], sources)
    check = check_target
    if row.folder:
        from raconvert.bundle.folder import check_target as check

        _refuse_sources_inside(path, sources)
    return bool(replaceable([path], sources, settings, report, check))


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
    newest = max(map(_changed, sources)) if settings.update else 0.0
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
    places = {identity(path): path for path in paths}
    places.pop(None, None)
    for source in sources if places else ():
        # FILE#name, or a file that will be missed when it is read
        path = places.get(identity(source) or identity(file_of(source)))
        if path is not None:
            raise TargetExists("source and destination are the same file", path=path)


def _changed(source: str) -> float:
    try:
        return os.path.getmtime(file_of(source))
    except OSError as error:
        raise ReadFailed(f"cannot be read: {error.strerror}", path=source) from error


def file_of(spec: str) -> str:
    """Return the file of ``FILE#name``, or of a plain path."""
    if os.path.lexists(spec):
        return spec
    from raconvert.conversion.inputs import split_spec

    return split_spec(spec)[0]
