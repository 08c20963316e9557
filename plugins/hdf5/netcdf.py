"""netCDF-4 among HDF5 files: attributes that are all vectors, those of the library itself, times.

Source: "NetCDF-4 File Format Specification", Unidata: an attribute is a vector; programs show one
of a single element as a scalar, and hide what says which program wrote the file. "NetCDF Climate
and Forecast (CF) Metadata Conventions", 4.4 "Time Coordinate": times are numbers with units.
"""

from __future__ import annotations

from h5py import h5a

from raconvert.arrays.dtypes import little

from .attributes import usual_type, value_of
from .descriptions import describe, type_of, type_of_element
from .tables import Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from h5py import h5t

    from raconvert.plugin import Array, Element

    from .files import File

MISSING = "_FillValue"
SUFFIXES = (".nc", ".nc4", ".cdf")
WRITER = "_NCProperties"
PROVENANCE = (WRITER, "_nc3_strict")  # of the root
NUMBER, NUMBERS = b"_Netcdf4Dimid", b"_Netcdf4Coordinates"


def is_netcdf(file: File) -> bool:
    """True for a file that the netCDF library, h5netcdf or a name says to be netCDF-4."""
    if file.path.lower().endswith(SUFFIXES):
        return True
    return any(h5a.exists(file.fid, name.encode()) for name in PROVENANCE)


def without_single_lists(attributes: Attributes) -> None:
    """Make attributes of one element scalars, as netCDF has them.

    The types of texts remember that they were vectors; numbers always are (`as_vectors`).
    """
    for name, value in attributes.values.items():
        if not isinstance(value, list) or len(value) != 1 or isinstance(value[0], list):
            continue
        known = attributes.types.get(name)
        if known is None:
            attributes.values[name] = value[0]
            usual = None if type(value[0]) in (int, float) else usual_type(value)
            if usual is not None:
                attributes.types[name] = {"type": describe(usual), "shape": [1]}
        elif known["shape"] == [1]:
            attributes.values[name] = value[0]


def as_vectors(values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """The values as they are written in a .nc: numbers of no remembered type are vectors."""
    return {
        name: [value] if type(value) in (int, float) and name not in types else value
        for name, value in values.items()
    }


def without_type_of_missing(attributes: Attributes, element: Element) -> None:
    """Forget the type of `_FillValue` where it is that of the elements, as netCDF wants it."""
    known = attributes.types.get(MISSING)
    if known is not None and known == type_of_missing(element):
        del attributes.types[MISSING]


def type_of_missing(element: Element) -> dict[str, Any] | None:
    """The remembered type of a `_FillValue` of one number; None for other elements."""
    if element.kind not in ("int", "uint", "float"):
        return None
    return {"type": describe(type_of_element(little(element))), "shape": [1]}


def take_provenance(attributes: Attributes) -> dict[str, Any]:
    """Take out the attributes of the root that netCDF's programs hide, for the namespace."""
    values = {key: attributes.values.pop(key) for key in PROVENANCE if key in attributes.values}
    types = {key: attributes.types.pop(key) for key in values if key in attributes.types}
    return {"provenance": {"attributes": values, "types": types}} if values else {}


def numbers_of(dataset: Any, file: File) -> tuple[int | None, list[int]]:
    """Return the number of a dimension, and those of the axes of a coordinate of several."""
    number, numbers = (value_of(dataset, file, name) for name in (NUMBER, NUMBERS))
    number = number[0] if isinstance(number, list) and len(number) == 1 else number
    several = isinstance(numbers, list) and all(type(one) is int for one in numbers)
    return number if type(number) is int else None, numbers if several else []


# Dates and durations are stored as the integers that NumPy has for them, with units that say so:
# nothing is converted, and no value need be read to find the units. xarray knows a duration by the
# attribute `dtype`, and the resolutions of `_KNOWN`.
NOT_A_TIME = -(1 << 63)
_UNITS = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds",
    "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip
_KNOWN = ("s", "ms", "us", "ns")
_NAMES = ("units", "calendar", "dtype", "_FillValue")


def type_of_times(array: Array) -> h5t.TypeID:
    """The type of the integers that dates or durations are, in their byte order."""
    return type_of(">i8" if str(array.element.descr).startswith(">") else "<i8")


def times_of(array: Array) -> dict[str, Any] | None:
    """The attributes that say of integers which dates or durations they are; None if none can.

    CF has no calendar months, no units below nanoseconds, and an array that has other attributes of
    these names has no place for them.
    """
    taken = array.meta.units or any(name in array.meta.attributes for name in _NAMES)
    return None if taken else _times(array.element.descr)


def _times(descr: Any) -> dict[str, Any] | None:
    letter, unit = (descr[1], descr[3:].strip("[]")) if isinstance(descr, str) else ("", "")
    if letter not in ("m", "M") or unit not in _UNITS:
        return None
    if letter == "M":
        found = {"units": f"{_UNITS[unit]} since 1970-01-01", "calendar": "proleptic_gregorian"}
    else:
        found = {"units": _UNITS[unit], "dtype": f"timedelta64[{unit if unit in _KNOWN else 's'}]"}
    return {**found, "_FillValue": NOT_A_TIME}


def take_times(attributes: Attributes, record: dict[str, Any]) -> None:
    """Take out the attributes of times, which their type says; the type, where they say others."""
    was = record.get("was", {})
    said = _times(was.get("type"))
    if said is None:
        return
    values = attributes.values
    if all(values.get(name) == value for name, value in said.items()):
        for name in said:
            del values[name]
            attributes.types.pop(name, None)
    elif "units" in values:  # another program has changed them
        record["was"] = {name: value for name, value in was.items() if name != "type"}
