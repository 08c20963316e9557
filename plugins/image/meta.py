"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are numbers or [numerator, denominator],
                    the unit is ``inch``, ``cm``, ``m`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``palette``         bytes, three for each colour (R, G, B)
``comment``         text
==================  ============================================================================

What only one format has is described in its module. A writer puts back the fields that its format
has a place for; `metadata_fits` names the others.
"""

from __future__ import annotations

from raconvert.plugin import Fit, equivalent, file_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Array, Bundle

NAMESPACE = "image"


def fields_of(array: Array) -> dict[str, Any]:
    """Return the own namespace of an array; empty if there is none, or it is no mapping."""
    fields = array.meta.formats.get(NAMESPACE, {})
    return fields if isinstance(fields, dict) else {}


def metadata_fits(
    bundle: Bundle,
    title: str,
    kept: frozenset[str],
    common_kept: Callable[[Array], frozenset[str]] | None = None,
) -> list[Fit]:
    """Return what a format leaves out that holds the fields `kept` of the namespace.

    `common_kept` gives the common fields of an array that it holds, too.
    """
    found = []
    for array in bundle.arrays:
        common = array.meta.to_dict()
        held = common_kept(array) if common_kept else frozenset[str]()
        others = [name for name in common if name != "formats" and name not in held]
        for name, space in common.get("formats", {}).items():
            if name != NAMESPACE:
                others.append(name)
            elif not isinstance(space, dict):
                others.append(NAMESPACE)
            else:
                others += [f"{NAMESPACE}.{field}" for field in space if field not in kept]
        if array.meta.items is not None:
            others.append("items")
        if others:
            reason = f"{title} has no place for {', '.join(others)}"
            found.append(equivalent(array.name, "metadata", reason))
    return [*found, *file_fits(bundle, title)]


def part(fields: dict[str, Any], name: str, kind: type) -> Any:
    """Return a field if it has the right type, else None: sidecars are written by people too."""
    value = fields.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def whole(value: object) -> int:
    """Return a number of a resolution, an integer or a fraction that is one; 0 for all others."""
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value):
        return value[0] // value[1] if value[1] > 0 and value[0] % value[1] == 0 else 0
    return value if type(value) is int else 0
