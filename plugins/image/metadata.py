"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are numbers or [numerator, denominator],
                    the unit is ``inch``, ``cm``, ``m`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``comment``         text
==================  ============================================================================

What only one format has is described in its module.
"""

from __future__ import annotations

from raconvert.plugin import Array, Bundle, Fit, Metadata, equivalent, file_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAMESPACE = "image"
EXIF = b"Exif\0\0"  # before the EXIF data in JPEG, and often in WebP


def metadata_of(fields: dict[str, Any], description: str | None = None) -> Metadata:
    """The metadata of an array that has these fields; those that are empty are left out."""
    fields = {name: value for name, value in fields.items() if value not in (None, "", b"", [])}
    return Metadata(description=description, formats={NAMESPACE: fields} if fields else None)


def fields_of(array: Array) -> dict[str, Any]:
    """The own namespace of an array; empty if there is none, or it is not a mapping."""
    fields = array.meta.formats.get(NAMESPACE, {})
    return fields if isinstance(fields, dict) else {}


def part(fields: dict[str, Any], name: str, kind: type) -> Any:
    """A field if it has the right type, else None: sidecars are written by people too."""
    value = fields.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def metadata_fits(bundle: Bundle, title: str, kept: Callable[[Array], set[str]]) -> list[Fit]:
    """What a format leaves out: all but what it has `kept`, fields as ``icc``, or ``axes``."""
    found = []
    for array in bundle.arrays:
        common = array.meta.to_dict()
        others = [name for name in common if name != "formats"]
        for name, space in common.get("formats", {}).items():
            own = name == NAMESPACE and isinstance(space, dict)
            others += [f"{name}.{field}" for field in space] if own else [name]
        others += ["items"] * (array.meta.items is not None)
        held = kept(array)
        if lost := [name for name in others if name.removeprefix(NAMESPACE + ".") not in held]:
            reason = f"{title} has no place for {', '.join(lost)}"
            found.append(equivalent(array.name, "metadata", reason))
    return [*found, *file_fits(bundle, title)]


def resolution_in(fields: dict[str, Any], unit: str) -> tuple[int, int] | None:
    """The resolution, x and y, if it is in this unit, in whole numbers, and fits 16 bits."""
    match part(fields, "resolution", list):
        case [int(x) | [int(x), 1], int(y) | [int(y), 1], word] if word == unit:
            return (x, y) if 0 < min(x, y) <= max(x, y) < 1 << 16 else None
    return None


def embedded(fields: dict[str, Any]) -> dict[str, bytes]:
    """Pillow's options for the colour profile and the XMP and EXIF data of an array."""
    words = {"icc": "icc_profile", "xmp": "xmp", "exif": "exif"}
    found = {word: data for name, word in words.items() if (data := part(fields, name, bytes))}
    if "exif" in found:
        found["exif"] = EXIF + found["exif"].removeprefix(EXIF)
    return found
