"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are [numerator, denominator], the unit is
                    ``inch``, ``cm`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``comment``         text
==================  ============================================================================

What only one format has is described in its module. TIFF alone is written with metadata; what the
others lose is listed in `plan`.
"""

from __future__ import annotations

from raconvert.plugin import Array, Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
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
