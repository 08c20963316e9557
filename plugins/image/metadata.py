"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are [numerator, denominator], the unit is
                    ``inch``, ``cm`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``comment``         text
==================  ============================================================================

Fields of a single format are described in its module. Only TIFF is written with metadata; the
others list what they lose in `plan`.
"""

from __future__ import annotations

from raconvert.plugin import Array, Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMESPACE = "image"
EXIF = b"Exif\0\0"  # before the EXIF data in JPEG, and often in WebP


def metadata_of(fields: dict[str, Any], description: str | None = None) -> Metadata:
    """Metadata with these fields in the namespace; empty fields are left out."""
    fields = {name: value for name, value in fields.items() if value not in (None, "", b"", [])}
    return Metadata(description=description, formats={NAMESPACE: fields} if fields else None)


def field(array: Array, name: str, kind: type) -> Any:
    """A field of the namespace; None if it has another type, since people write sidecars, too."""
    fields = array.meta.formats.get(NAMESPACE)
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, kind) and not isinstance(value, bool) else None
