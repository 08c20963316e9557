"""Images as arrays, and integers of the other signedness."""

from __future__ import annotations

from raconvert.arrays.dtypes import MAX_SPAN, little, spanned
from raconvert.errors import Corrupt
from raconvert.plugin import Array, element

from .metadata import image_metadata
from .tables import ELEMENTS, OTHER_SIGN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Element, Source

    from .header import Unit

__all__ = ["image_of", "other_sign"]


def image_of(
    source: Source, unit: Unit, name: str, notes: list[str], where: str, **data: Any
) -> Array:
    """The array of an image, whose elements are an `extent` or `data`. Raises `Corrupt`."""
    bits, shape = unit.values["BITPIX"], unit.shape
    stored = ELEMENTS[bits] if "extent" in data else little(ELEMENTS[bits])
    if spanned(shape, stored.nbytes) > MAX_SPAN:
        raise Corrupt("array is too large", path=source.path, where=where)
    slope, zero = unit.values.get("BSCALE", 1), unit.values.get("BZERO", 0)
    flipped = bits in OTHER_SIGN and slope == 1 and zero == OTHER_SIGN[bits]
    meta = image_metadata(unit, notes, name, bits, flipped)
    array = Array(stored, shape[::-1], name=name, index_order="C", meta=meta, **data)
    return other_sign(array, stored) if flipped else array


def other_sign(array: Array, stored: Element) -> Array:
    """The array with the highest bit of each element flipped: of the other signedness."""
    kind = element("int" if stored.kind == "uint" else "uint", stored.nbytes)

    def data() -> Any:
        import numpy as np

        from raconvert.arrays.cast import Converted

        unsigned = np.dtype(f"<u{stored.nbytes}")
        top = unsigned.type(1 << (8 * stored.nbytes - 1))
        flipped = np.dtype(f"<{'u' if kind.kind == 'uint' else 'i'}{kind.nbytes}")

        def convert(block: Any, _: int) -> Any:
            return (np.asarray(block).astype(unsigned) ^ top).view(flipped)

        return Converted(array, flipped, convert)

    return Array(kind, array.dims, name=array.name, index_order="C", meta=array.meta, data=data)
