"""Dates and durations as the integers that NumPy has for them, with units that say so in CF.

Specification: NetCDF Climate and Forecast (CF) Metadata Conventions, 4.4 "Time Coordinate". Nothing
is converted, and no value need be read to find the units. xarray knows a duration by the attribute
`dtype`, and the resolutions of `_KNOWN`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array

NOT_A_TIME = -(1 << 63)
_UNITS = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds",
    "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip
_KNOWN = ("s", "ms", "us", "ns")
_NAMES = ("units", "calendar", "dtype", "_FillValue")


def times_of(array: Array) -> dict[str, Any] | None:
    """Return the attributes that say of integers which dates or durations they are.

    None if none can: CF has no calendar months, no units below nanoseconds, and an array that has
    other attributes of these names has no place for them.
    """
    taken = array.meta.units or any(name in array.meta.attributes for name in _NAMES)
    return None if taken else _times(array.element.descr)


def _times(descr: Any) -> dict[str, Any] | None:
    letter, unit = (descr[1], descr[3:].strip("[]")) if isinstance(descr, str) else ("", "")
    if letter not in ("m", "M") or unit not in _UNITS:
        return None
    if letter == "M":
        fields = {"units": f"{_UNITS[unit]} since 1970-01-01", "calendar": "proleptic_gregorian"}
    else:
        fields = {"units": _UNITS[unit], "dtype": f"timedelta64[{unit if unit in _KNOWN else 's'}]"}
    return {**fields, "_FillValue": NOT_A_TIME}


def take_times(attributes: dict[str, Any], types: dict[str, Any], record: dict[str, Any]) -> None:
    """Take out the attributes of times, which the type in a record says.

    Where they say others, another program has changed the values: the type is taken out.
    """
    was = record.get("was", {})
    said = _times(was.get("type"))
    if said is None:
        return
    if all(attributes.get(name) == value for name, value in said.items()):
        for name in said:
            del attributes[name]
            types.pop(name, None)
    elif "units" in attributes:
        record["was"] = {name: value for name, value in was.items() if name != "type"}
