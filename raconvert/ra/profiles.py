"""The form of .ra that BART reads: complex64 of 16 axes, the fastest first.

BART (the toolbox for magnetic resonance) takes no other element type and no other number of axes;
of an array with fewer it has axes of length 1 behind the others. Tried with the program itself.
"""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element, little
from raconvert.plugin import Fit, equivalent, refused, refused_type

__all__ = ["fits", "padded"]

ELEMENT = element("complex", 8)
AXES = 16


def fits(array: Array) -> list[Fit]:
    """What BART does not read, and what is added for it. Raises nothing."""
    name, found = array.name, []
    if little(array.element) != ELEMENT:
        found.append(refused_type(array, "BART's .ra", "complex64"))
    if array.ndim > AXES or 0 in array.dims:
        found.append(refused(name, "shape", f"BART has {AXES} axes, none of length 0"))
    elif array.ndim < AXES:
        reason = f"axes of length 1 are added, behind the others, for BART's {AXES}"
        found.append(equivalent(name, "shape", reason))
        if _says_of_axes(array):
            reason = "what is said of the axes is not of all 16"
            found.append(refused(name, "metadata", reason, "--meta drop"))
    return found


def _says_of_axes(array: Array) -> bool:
    if not array.described:
        return False
    spaces = array.meta.formats.values()
    return bool(array.meta.axes or any(space.get("axes") for space in spaces))


def padded(bundle: Bundle) -> Bundle:
    """The same arrays with 16 axes; for their headers, since the data stays as it is."""
    arrays = []
    for array in bundle.arrays:
        data, extent = array.source, array.extent
        dims = (*array.dims, *(1,) * (AXES - array.ndim))
        arrays.append(array.replace(dims=dims, extent=extent))
        arrays[-1].data = data
    return bundle.like(arrays)
