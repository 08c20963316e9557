"""Further arrays in a file that exists: all its other HDUs are copied as they lie."""

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
from .plan import array_fits, made_of
from .reader import name_of
from .writer import Made, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Fit, Target

    from .header import Unit

__all__ = ["add"]


def add(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, checksum: str = "yes"
) -> Plan:
    """The HDUs of a file, copied, with those of the arrays among them or behind them; see `Add`."""
    refuse_packed(source, "an array is not added")
    there = _there(source)
    _check_free(bundle, source, held, {*there}, overwrite=overwrite)
    fits: list[Fit] = []
    for array in bundle.arrays:
        fits += array_fits(array, set())
    fits += file_fits(bundle, "FITS")
    if any(fit.outcome == "refused" for fit in fits):
        return Plan(fits, lambda _: None, names=bundle.names)
    made = {array.name: made_of(array) for array in bundle.arrays}
    hdus: list[Made | Extent] = []
    for name, unit in there.items():
        one = made.pop(name, None)
        if one is not None and one.columns is not None and unit.number == 0:
            raise Unsupported(
                f"the first HDU '{name}' is an image, and no table can stand in its place",
                path=source.path, remedy="give the table another name",
            )  # fmt: skip
        end = min(unit.end, source.size)
        hdus.append(one or source.extent(unit.start, end - unit.start))
    hdus += made.values()
    end = max(unit.end for unit in there.values())
    if end < source.size:
        hdus.append(source.extent(end, source.size - end))

    def write_all(target: Target) -> None:
        write(target, hdus, checksum=checksum == "yes")

    return Plan(fits, write_all, names=bundle.names)


def _there(source: Source) -> dict[str, Unit]:
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


def _check_free(
    bundle: Bundle, source: Source, held: Bundle, names: set[str], *, overwrite: bool
) -> None:
    """Refuse (`TargetExists`) names that are taken, unless their arrays are to be replaced."""
    for name in bundle.names:
        if name in held.names and not overwrite:
            raise array_exists(source.path, name)
        if name in names and name not in held.names:
            raise not_an_array(source.path, name, "an HDU without data")
        if name in held.names and name not in names:
            raise not_an_array(source.path, name, "a column of variable length")
