"""netCDF-4 among HDF5 files: attributes that are all vectors, and those of the library itself.

Source: "NetCDF-4 File Format Specification", Unidata: an attribute is a vector; programs show one
of a single element as a scalar, and hide what says which program wrote the file.
"""

from __future__ import annotations

from h5py import h5a

from .attributes import usual_type, value_of
from .descriptions import describe
from .tables import Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .files import File

SUFFIXES = (".nc", ".nc4", ".cdf")
PROVENANCE = ("_NCProperties", "_nc3_strict")  # of the root
NUMBER, NUMBERS = b"_Netcdf4Dimid", b"_Netcdf4Coordinates"


def is_netcdf(file: File) -> bool:
    """True for a file that the netCDF library, h5netcdf or a name says to be netCDF-4."""
    if file.path.lower().endswith(SUFFIXES):
        return True
    return any(h5a.exists(file.fid, name.encode()) for name in PROVENANCE)


def without_single_lists(attributes: Attributes) -> None:
    """Make attributes of one element scalars; their types remember that they were vectors."""
    for name, value in attributes.values.items():
        if not isinstance(value, list) or len(value) != 1 or isinstance(value[0], list):
            continue
        known = attributes.types.get(name)
        if known is None:
            usual = usual_type(value)
            known = None if usual is None else {"type": describe(usual), "shape": [1]}
        if known is not None and known["shape"] == [1]:
            attributes.values[name] = value[0]
            attributes.types[name] = known


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
