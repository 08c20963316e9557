"""What a destination stands for: one file, a folder of them, or a template of many names.

A template with ``{stem}`` or ``{name}`` takes one file for each source, one with ``{}``, ``{i}`` or
``{label}`` one file for each plane.
"""

from __future__ import annotations

import os
import string

from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.settings import Settings

EACH_FIELDS = {"stem", "name"}
PLANE_FIELDS = {"", "0", "i", "label"}


def is_folder(dst: str | None, settings: Settings) -> bool:
    """Tell whether every source becomes a file of its own in a folder."""
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
