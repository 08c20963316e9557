"""A FITS file as a bundle: each HDU is an array, a group or attributes."""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.plugin import Array, Bundle, Source

from .header import units
from .images import image_of
from .metadata import attributes_of, namespace_of
from .packed import Packed, elements_at, refuse_packed, unpacked
from .tables import ELEMENTS, MAGIC, NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .header import Unit

__all__ = ["name_of", "read"]


def read(source: Source, *, logical: str = "bool") -> Bundle:
    """The images and tables of a file; data is read later. Index order C.

    `logical` is the type of logical values of tables, bool or text. An HDU that cannot be read is
    an array that cannot be read. Raises `Corrupt` and `Unsupported` if none can be read.
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
    all_units = [*units(source, notes)]  # then the inflated size of a compressed file is certain
    if isinstance(source, Packed):
        notes += source.note()
        bundle.close_with(source.file.close)
    for unit in all_units:
        name = name_of(unit, names)
        names.add(name)
        if unit.values["NAXIS"] == 0:
            if unit.number == 0:
                bundle.attributes = attributes_of(unit)
                own = namespace_of(unit, notes, name)
                bundle.formats = {NAMESPACE: own} if own else {}
            else:
                bundle.groups[name] = attributes_of(unit)
            continue
        try:
            arrays_of_unit = _arrays(source, unit, name, notes, texts=logical == "text")
        except RaconvertError as error:
            arrays_of_unit = [Array.unreadable(name, error)]
        for number, array in enumerate(arrays_of_unit):
            is_repeated = number and array.name in names  # of a column of variable length
            new_name = f"{array.name} (HDU {unit.number})" if is_repeated else array.name
            arrays.append(array.replace(name=new_name) if is_repeated else array)
            names.add(new_name)
    if not arrays:
        raise Unsupported("holds no data, only headers", path=source.path)
    bundle.arrays = some_sound(arrays)
    return bundle


def name_of(unit: Unit, taken: set[str]) -> str:
    """The name of an HDU: EXTNAME with EXTVER, or PRIMARY, or its number."""
    title = unit.values.get("EXTNAME")
    usual = f"HDU{unit.number}" if unit.number else "PRIMARY"
    name = title if isinstance(title, str) and title else usual
    version = unit.values.get("EXTVER")
    if type(version) is int and version != 1:
        name = f"{name},{version}"
    return name if name not in taken else f"{name} (HDU {unit.number})"


def _arrays(source: Source, unit: Unit, name: str, notes: list[str], *, texts: bool) -> list[Array]:
    """The arrays of an HDU with data. Raises `Corrupt`, `Unsupported` and `TooLarge`."""
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
    data = elements_at(source, unit.offset, unit.shape, stored)
    return [image_of(source, unit, name, notes, where, **data)]
