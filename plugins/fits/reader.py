"""From a file to a bundle: each HDU an array, a group or attributes."""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.plugin import Array, Bundle, Source, element

from .header import units
from .metadata import attributes_of, image_metadata, kept
from .tables import ELEMENTS, MAGIC, NAMESPACE, OTHER_SIGN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Element

    from .header import Unit

__all__ = ["image_of", "name_of", "other_sign", "read"]


def read(source: Source) -> Bundle:
    """The images and tables of a file, each lazy; shapes in C order.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    if not source.head.startswith(MAGIC):
        raise Corrupt(
            "is not a FITS file", path=source.path, where="byte 0", expected="SIMPLE  =",
            got=source.head[:9].hex(" ") or "nothing",
        )  # fmt: skip
    notes: list[str] = []
    arrays: list[Array] = []
    names: set[str] = set()
    bundle = Bundle([], notes=notes)
    for unit in units(source, notes):
        name = name_of(unit, names)
        names.add(name)
        if unit.values["NAXIS"] == 0:
            if unit.number == 0:
                bundle.attributes = attributes_of(unit)
                own = kept(unit, notes, name)
                bundle.formats = {NAMESPACE: own} if own else {}
            else:
                bundle.groups[name] = attributes_of(unit)
            continue
        try:
            found = _arrays(source, unit, name, notes)
        except RaconvertError as error:
            found = [Array.unreadable(name, error)]
        for number, one in enumerate(found):
            if number and one.name in names:
                one = one.replace(name=f"{one.name} (HDU {unit.number})")  # noqa: PLW2901
            arrays.append(one)
            names.add(one.name)
    if not arrays:
        raise Unsupported("holds no data, only headers", path=source.path)
    bundle.arrays = some_sound(arrays)
    return bundle


def name_of(unit: Unit, taken: set[str]) -> str:
    """The name of an HDU: EXTNAME with EXTVER, or PRIMARY, or its number."""
    said = unit.values.get("EXTNAME")
    usual = "HDU" + str(unit.number) if unit.number else "PRIMARY"
    name = said if isinstance(said, str) and said else usual
    version = unit.values.get("EXTVER")
    if type(version) is int and version != 1:
        name = f"{name},{version}"
    return name if name not in taken else f"{name} (HDU {unit.number})"


def _arrays(source: Source, unit: Unit, name: str, notes: list[str]) -> list[Array]:
    where = f"byte {unit.start}, HDU {unit.number} '{name[:80]}'"
    if unit.kind not in ("IMAGE", "BINTABLE", "TABLE", "TILES"):
        raise Unsupported(
            f"holds an extension {unit.kind!r:.40}", path=source.path, where=where,
            expected="IMAGE, BINTABLE or TABLE",
            remedy=f"read it in Python: astropy.io.fits.getdata(FILE, {unit.number})",
        )  # fmt: skip
    if unit.nbytes > source.size - unit.offset:
        raise Corrupt(
            "data is cut off", path=source.path, where=where,
            expected=f"{unit.nbytes} bytes from byte {unit.offset}",
            got=max(0, source.size - unit.offset),
        )  # fmt: skip
    if unit.kind == "TILES":
        from .tiles import tiled

        return [tiled(source, unit, name, notes, where)]
    if unit.kind == "TABLE":
        from .characters import ascii_table_of

        return [ascii_table_of(source, unit, name, notes, where)]
    if unit.kind == "BINTABLE":
        from .columns import table_of

        return table_of(source, unit, name, notes, where)
    stored = ELEMENTS[unit.values["BITPIX"]]
    extent = source.extent(unit.offset, unit.nbytes, needs_swap(stored))
    return [image_of(source, unit, name, notes, where, extent=extent)]


def image_of(
    source: Source, unit: Unit, name: str, notes: list[str], where: str, **data: Any
) -> Array:
    """The array of an image, whose elements are in an `extent` or in `data`."""
    bits, shape = unit.values["BITPIX"], unit.shape
    stored = ELEMENTS[bits]
    if spanned(shape, stored.nbytes) > MAX_SPAN:
        raise Corrupt("array is too large", path=source.path, where=where)
    slope, zero = unit.values.get("BSCALE", 1), unit.values.get("BZERO", 0)
    turned = bits in OTHER_SIGN and slope == 1 and zero == OTHER_SIGN[bits]
    meta = image_metadata(unit, notes, name, bits, turned)
    array = Array(stored, shape[::-1], name=name, index_order="C", meta=meta, **data)
    return other_sign(array, stored) if turned else array


def other_sign(array: Array, stored: Element) -> Array:
    """The array with the highest bit of each element turned: of the other signedness."""
    kind = element("int" if stored.kind == "uint" else "uint", stored.nbytes)

    def data() -> Any:
        import numpy as np

        from raconvert.arrays.cast import Converted

        unsigned = np.dtype(f"<u{stored.nbytes}")
        top = unsigned.type(1 << (8 * stored.nbytes - 1))
        turned = np.dtype(f"<{'u' if kind.kind == 'uint' else 'i'}{kind.nbytes}")

        def convert(block: Any, _: int) -> Any:
            return (np.asarray(block).astype(unsigned) ^ top).view(turned)

        return Converted(array, turned, convert)

    return Array(kind, array.dims, name=array.name, index_order="C", meta=array.meta, data=data)
