"""Arrays added to a file that exists: all its other HDUs are copied byte for byte."""

from __future__ import annotations

from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import (
    Bundle,
    Extent,
    Plan,
    Source,
    array_exists,
    file_fits,
    not_an_array,
)

from .header import units
from .packed import refuse_packed
from .plan import array_fits, new_unit_of
from .reader import name_of
from .writer import NewUnit, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Fit, Target

    from .header import Unit

__all__ = ["add"]


def add(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, checksum: str = "yes"
) -> Plan:
    """Plan to copy the HDUs of a file, with the arrays among them or behind them; see `Add`."""
    refuse_packed(source, "an array is not added")
    existing = _units_by_name(source)
    _check_names(bundle, source, held, {*existing}, overwrite=overwrite)
    fits: list[Fit] = []
    for array in bundle.arrays:
        fits += array_fits(array, set())
    fits += file_fits(bundle, "FITS")
    if any(fit.outcome == "refused" for fit in fits):
        return Plan(fits, lambda _: None, names=bundle.names)
    added = {array.name: new_unit_of(array) for array in bundle.arrays}
    hdus: list[NewUnit | Extent] = []
    for name, unit in existing.items():
        new = added.pop(name, None)
        if new is not None and new.columns is not None and unit.number == 0:
            raise Unsupported(
                f"the first HDU '{name}' is an image, and no table can replace it",
                path=source.path, remedy="give the table another name",
            )  # fmt: skip
        end = min(unit.end, source.size)
        hdus.append(new or source.extent(unit.start, end - unit.start))
    hdus += added.values()
    end = max(unit.end for unit in existing.values())
    if end < source.size:
        hdus.append(source.extent(end, source.size - end))

    def write_all(target: Target) -> None:
        write(target, hdus, checksum=checksum == "yes")

    return Plan(fits, write_all, names=bundle.names)


def _units_by_name(source: Source) -> dict[str, Unit]:
    """The HDUs of a file by name. Raises `Corrupt` if the last one is cut off."""
    by_name: dict[str, Unit] = {}
    for unit in units(source, []):
        by_name[name_of(unit, {*by_name})] = unit
        if unit.offset + unit.nbytes > source.size:
            raise Corrupt(
                "data of the last HDU is cut off, so that nothing can follow it",
                path=source.path, where=f"byte {unit.offset}",
            )  # fmt: skip
    return by_name


def _check_names(
    bundle: Bundle, source: Source, held: Bundle, names: set[str], *, overwrite: bool
) -> None:
    """Raise `TargetExists` for names of existing HDUs, unless these are arrays to be replaced."""
    for name in bundle.names:
        if name in held.names and not overwrite:
            raise array_exists(source.path, name)
        if name in names and name not in held.names:
            raise not_an_array(source.path, name, "an HDU without data")
        if name in held.names and name not in names:
            raise not_an_array(source.path, name, "a column of variable length")
