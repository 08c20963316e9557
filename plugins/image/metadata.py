"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are [numerator, denominator], the unit is
                    ``inch``, ``cm`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``comment``         text
==================  ============================================================================

What only one format has is described in its module. TIFF alone is written with metadata.
"""

from __future__ import annotations

from raconvert.plugin import Array, Bundle, Fit, Metadata, equivalent, facts_of, file_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NAMESPACE = "image"
EXIF = b"Exif\0\0"  # before the EXIF data in JPEG, and often in WebP


def metadata_of(fields: dict[str, Any], description: str | None = None) -> Metadata:
    """The metadata of an array that has these fields; those that are empty are left out."""
    fields = {name: value for name, value in fields.items() if value not in (None, "", b"", [])}
    return Metadata(description=description, formats={NAMESPACE: fields} if fields else None)


def field(array: Array, name: str, kind: type) -> Any:
    """An own field if it has the right type, else None: sidecars are written by people too."""
    fields = array.meta.formats.get(NAMESPACE)
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def metadata_fits(
    bundle: Bundle, title: str, kept: set[str] | None = None, besides: Sequence[str] = ()
) -> list[Fit]:
    """List the losses of a format: all metadata but `kept`, fields such as ``icc``, or ``axes``.

    `besides` names the parts of those that it leaves out as well.
    """
    array = bundle.arrays[0]
    held = kept or set()
    own = array.meta.formats.get(NAMESPACE, {})
    lost = facts_of(array, NAMESPACE, *held)
    lost += [f"{NAMESPACE}.{field}" for field in own if field not in held]
    lost += besides
    reason = f"{title} has no place for it: {', '.join(lost)}"
    fits = [equivalent(array.name, "metadata", reason)] if lost else []
    return [*fits, *file_fits(bundle, title)]
