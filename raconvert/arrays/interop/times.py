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
    """Return the attributes by which the integers of an array are dates or durations in CF.

    None if CF cannot express them: it has no calendar months and no units below nanoseconds. None,
    too, if the array has other attributes of these names.
    """
    taken = array.meta.units or any(name in array.meta.attributes for name in _NAMES)
    return None if taken else _times(array.element.descr)


def _times(descr: Any) -> dict[str, Any] | None:
    """Return the attributes for a type in the notation of NPY, or None."""
    letter, unit = (descr[1], descr[3:].strip("[]")) if isinstance(descr, str) else ("", "")
    if letter not in ("m", "M") or unit not in _UNITS:
        return None
    if letter == "M":
        fields = {"units": f"{_UNITS[unit]} since 1970-01-01", "calendar": "proleptic_gregorian"}
    else:
        fields = {"units": _UNITS[unit], "dtype": f"timedelta64[{unit if unit in _KNOWN else 's'}]"}
    return {**fields, "_FillValue": NOT_A_TIME}


def take_times(attributes: dict[str, Any], types: dict[str, Any], record: dict[str, Any]) -> None:
    """Remove the attributes of times which the type in a record implies.

    If attributes differ from these, another program has changed the values: the type is removed.
    """
    was = record.get("was", {})
    implied = _times(was.get("type"))
    if implied is None:
        return
    if all(attributes.get(name) == value for name, value in implied.items()):
        for name in implied:
            del attributes[name]
            types.pop(name, None)
    elif "units" in attributes:
        record["was"] = {name: value for name, value in was.items() if name != "type"}
