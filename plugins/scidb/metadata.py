"""Names, axes and metadata as SciDB schemas can hold them, and what is lost of them."""

from __future__ import annotations

from collections import namedtuple
from itertools import zip_longest

from raconvert.plugin import (
    Array,
    Axis,
    Fit,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    refused,
)

from .schema import MAX_COORDINATE, Dimension
from .tables import PAIR_LABELS, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .groups import Group


MAX_NAME_BYTES = 1024


def is_encodable(text: str) -> bool:
    """True if the text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_fits(groups: list[Group]) -> list[Fit]:
    """The names that AFL cannot hold, even in double quotes."""
    fits = []
    seen: set[str] = set()
    for group in groups:
        name, reason = group.name, None
        if not name:
            reason = "an empty name"
        elif name in seen:
            reason = "the name is used twice"
        elif '"' in name or any(ord(char) < 32 or ord(char) == 127 for char in name):
            reason = "AFL has no way to write a name with double quotes or control characters"
        elif not is_encodable(name):
            reason = "the name is not valid text"
        elif len(name.encode()) > MAX_NAME_BYTES:
            reason = f"the name is above {MAX_NAME_BYTES} bytes"
        if reason:
            fits.append(refused(group.first.name, "names", reason))
        seen.add(name)
    return fits


def axes_of(outs: list[Out], shape: tuple[int, ...]) -> list[Any]:
    """The axes of the first array that has any, slowest first; empty without."""
    for out in outs:
        array = out.null if out.values is None else out.values
        axes = _own_axes(array, out.column.items) if array is not None else []
        if len(axes) == len(shape):
            return axes
    return []


def _own_axes(array: Array, items: int) -> list[Any]:
    """The axes of the cells, slowest first."""
    axes = array.ra_axes
    if len(axes) == array.ndim and items > 1:
        axes = axes[1:]
    return list(axes[::-1])


_LETTERS = ("i", "j", "k", "l", "m", "n")


def dims_of(shape: tuple[int, ...], axes: list[Any], taken: set[str]) -> list[Dimension]:
    """Dimensions in one chunk, which is when SciDB's order is row-major."""
    dims = []
    used = set(taken)
    names = [axis.name for axis in axes]
    for n, length in enumerate(shape):
        name, lo = "", 0
        if axes:
            lo = _origin(axes[n])
            own = names[n]
            good = own and '"' not in own and own.isprintable() and len(own) <= MAX_NAME_BYTES
            if good and own not in used and names.count(own) == 1:
                name = own
        if not name:
            name = _LETTERS[n] if len(shape) <= len(_LETTERS) else f"d{n}"
            while name in used or name in names:
                name += "_"
        used.add(name)
        dims.append(Dimension(name, lo, lo + length - 1, max(1, length)))
    return dims


def _origin(axis: Any) -> int:
    """The origin of an axis as SciDB can hold it: whole numbers, steps of one."""
    origin = axis.origin
    whole = isinstance(origin, (int, float)) and origin == origin // 1  # not for inf and nan
    if whole and abs(origin) < MAX_COORDINATE >> 1 and axis.spacing in (None, 1):
        return int(origin)
    return 0


def all_metadata_fits(plan: RecordPlan, dims: list[Dimension]) -> list[Fit]:
    """List what SciDB cannot hold of the metadata of the arrays."""
    given = {
        axis.name for out in plan.outs if out.values is not None for axis in out.values.ra_axes
    }
    return [
        fit
        for out in plan.outs
        for array in (out.values, out.offsets, out.bytes, out.null)
        if array is not None
        for fit in metadata_fits(
            array, out.column.items if array is out.values else 1, out.column.type, dims, given
        )
    ]


def metadata_fits(
    array: Array, items: int, kind: str, dims: list[Dimension], given: set[str | None]
) -> list[Fit]:
    """List what SciDB cannot hold of the metadata of one array, of the SciDB type `kind`.

    `given` are the names of axes of all arrays, which share the dimensions.
    """
    held = ["scidb"]
    if array.meta.units == UNITS.get(kind):
        held.append("units")
    lost = facts_of(array, "axes", *held)
    lost += facts_of_axes(array, _lost_of_axes(array, items, dims, given))
    if not lost:
        return []
    reason = f"SciDB has no place for it: {', '.join(lost)}"
    return [equivalent(array.name, "metadata", reason)]


def _lost_of_axes(
    array: Array, items: int, dims: list[Dimension], given: set[str | None]
) -> list[list[str]]:
    """List the fields of axes, the fastest first, that the dimensions lack.

    All those of an axis within a cell are among them.
    """
    axes = _own_axes(array, items)
    lost = []
    for axis, dim in zip_longest(axes, dims[: len(axes)]):
        said = {*fields_of_axes([axis], *Axis.FIELDS)}
        if dim is not None:
            said -= {"name"} if axis.name == dim.name else set()
            said |= {"name"} if axis.name is None and dim.name in given else set()
            # An axis that says no origin takes that of the dimension, counted in steps of 1.
            said |= {"origin", "spacing"} if axis.origin is None and dim.lo else set()
            said -= {"origin"} if (axis.origin or 0) == (dim.lo or 0) else set()
            # A dimension that begins at 0 is read as one that nothing was said of.
            said -= {"spacing"} if axis.spacing == 1 and dim.lo else set()
        lost.append([field for field in Axis.FIELDS if field in said])
    for axis in array.ra_axes[: len(array.ra_axes) - len(axes)]:
        of_pair = axis == Axis(labels=PAIR_LABELS)
        lost.append([] if of_pair else fields_of_axes([axis], *Axis.FIELDS))
    return lost[::-1]


# What writing makes of a bundle: columns of records, and the schema that names them --------------


# One column to write. `values`, `null`, `offsets`, `bytes` are arrays or None; a column with a
# `dim` is computed: the coordinate of that dimension. `cast` is how the values become those of the
# column: "view" or "float32".
Out = namedtuple("Out", "column name values null offsets bytes dim cast")

# `shape` is that of the cells, or one number of records; `cells` the array of places of records
# with coordinates; `raw` the array of whole records, if that is all there is.
RecordPlan = namedtuple(
    "RecordPlan", "outs shape dims chunks cells raw schema_text settings attributes"
)
