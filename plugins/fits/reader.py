"""From a file to a bundle: each HDU an array, a group or attributes."""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.plugin import Array, Bundle, Source

from .header import units
from .images import image_of
from .metadata import attributes_of, kept
from .packed import Packed, refuse_packed, stretch, unpacked
from .tables import ELEMENTS, MAGIC, NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .header import Unit

__all__ = ["name_of", "read"]


def read(source: Source, *, logical: str = "bool") -> Bundle:
    """The images and tables of a file, each lazy; shapes in C order.

    `logical` is what logical values of tables become, bool or text.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    source = unpacked(source)
    if not source.head.startswith(MAGIC):
        raise Corrupt(
            "is not a FITS file", path=source.path, where="byte 0", expected="SIMPLE  =",
            got=source.head[:9].hex(" ") or "nothing",
        )  # fmt: skip
    notes: list[str] = []
    arrays: list[Array] = []
    names: set[str] = set()
    bundle = Bundle([], notes=notes)
    found_units = [*units(source, notes)]  # a compressed file has its size behind the last one
    if isinstance(source, Packed):
        notes += source.note()
        bundle.close_with(source.file.close)
    for unit in found_units:
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
            arrays_of_unit = _arrays(source, unit, name, notes, texts=logical == "text")
        except RaconvertError as error:
            arrays_of_unit = [Array.unreadable(name, error)]
        for number, one in enumerate(arrays_of_unit):
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


def _arrays(source: Source, unit: Unit, name: str, notes: list[str], *, texts: bool) -> list[Array]:
    where = f"byte {unit.start}, HDU {unit.number} '{name[:80]}'"
    if unit.kind not in ("IMAGE", "GROUPS", "BINTABLE", "TABLE", "TILES"):
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

        refuse_packed(source, "holds an image in compressed tiles")
        return [tiled(source, unit, name, notes, where)]
    if unit.kind == "GROUPS":
        from .groups import groups_of

        return [groups_of(source, unit, name, notes, where)]
    if unit.kind == "TABLE":
        from .characters import ascii_table_of

        return [ascii_table_of(source, unit, name, notes, where)]
    if unit.kind == "BINTABLE":
        from .columns import table_of

        return table_of(source, unit, name, notes, where, texts=texts)
    stored = ELEMENTS[unit.values["BITPIX"]]
    data = stretch(source, unit.offset, unit.shape, stored)
    return [image_of(source, unit, name, notes, where, **data)]
