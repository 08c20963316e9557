"""Arrays as the attributes of one SciDB array: groups, names, axes, metadata, and what is lost.

Arrays that are marked as companions (by the namespace ``scidb`` in their metadata, or by their
names with ``companions=names``) make an attribute nullable, or variable in length.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import zip_longest

from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Array,
    Axis,
    Bundle,
    Element,
    Fit,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    refused,
)

from .columns import NATIVE, PAIR_LABELS, ROLES, UNITS, VARIABLE, Column
from .schema import MAX_COORDINATE, Dimension, Fault, parse_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The column of an array, and the change of form --------------------------------------------------


def column_named(text: str, values: Array, null: Array | None) -> Column:
    """The column of the type `text` (of metadata) if the values fit it, else of their own type."""
    try:
        kind = text.partition("(")[0].strip()
        [column] = parse_format(f"({text})", {kind: values.element.nbytes}, DEFAULT)
    except Fault:
        return _derived(values, null)
    wanted = column.element if column.size is not None else None
    if wanted is None or column.is_skip or column.type not in (*NATIVE, *VARIABLE):
        return _derived(values, null)
    if (wanted.kind, wanted.nbytes) != values.element[:2]:
        return _derived(values, null)
    if column.items > 1 and (not values.dims or values.dims[0] != column.items):
        return _derived(values, null)
    return Column(column.type, column.size, null is not None)


_FLOATS = {2: ("float", 4), 4: ("float", 4), 8: ("double", 8)}


def _derived(values: Array, null: Array | None) -> Column:
    """The column for an element type."""
    kind, nbytes, _, descr = values.element
    nullable = null is not None
    if kind in ("int", "uint"):
        return Column(f"{kind}{8 * nbytes}", nbytes, nullable)
    if kind == "float":
        return Column(*_FLOATS[nbytes], nullable)
    if kind == "complex":
        return Column(*_FLOATS[nbytes // 2], nullable)
    if kind == "bool":
        return Column("bool", 1, nullable)
    if descr == "<M8[s]":
        return Column("datetime", 8, nullable)
    return Column("binary", nbytes, nullable)


def type_change(element: Element, column: Column) -> tuple[str, str] | None:
    """Property and reason if values change their form, ("lost", "") if they lose it, else None."""
    kind, nbytes, _, descr = element
    if kind == "float" and nbytes == 2:
        return "type", "float16 becomes float (32 bits)"
    if kind == "complex":
        return "shape", "complex numbers become pairs (real, imaginary) on a new fastest axis"
    if kind == "bool":
        return "type", "SciDB's bool is read back as its bytes, uint8"
    if kind == "bfloat":
        return "lost", ""
    if kind != "user" or column.type not in ("binary", "datetime"):
        return None
    if column.type == "datetime":
        return "type", "SciDB's datetime is read back as int64, seconds since 1970"
    if descr is None or descr == f"|V{nbytes}":
        return None
    if isinstance(descr, str) and descr.startswith("|S"):
        return "type", f"bytes become {column.type_text}, without a mark that they are text"
    return "lost", ""


class Namer:
    """Distinct names: an attribute may be called ``a.null`` beside a nullable ``a``."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def name(self, attribute: str, role: str) -> str:
        """The name of an array: the attribute's, and its role unless it is the values."""
        name = attribute if role == "values" else f"{attribute}.{role}"
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name


class Group:
    """The arrays of one attribute; `column` is its index in the file it comes from, or -1."""

    def __init__(self, name: str, column: int = -1) -> None:
        self.name = name
        self.values: Array | None = None
        self.null: Array | None = None
        self.offsets: Array | None = None
        self.bytes: Array | None = None
        self.type = ""
        self.column = column

    @property
    def first(self) -> Array:
        """The array that stands for the attribute in messages."""
        return next(array for array in (self.values, self.offsets) if array is not None)

    @property
    def arrays(self) -> list[Array]:
        """All arrays of the attribute."""
        parts = (self.values, self.offsets, self.bytes, self.null)
        return [array for array in parts if array is not None]


def groups_of(bundle: Bundle, *, by_names: bool) -> tuple[list[Group], Array | None]:
    """The attributes that the arrays belong to, in order, and the array of cells."""
    names = set(bundle.names)
    groups: dict[tuple[str, int], Group] = {}
    cells = None
    for array in bundle.arrays:
        role, attribute, own = _mark(array, names if by_names else None)
        if role == "cells":
            cells = array
        elif role is not None:
            column = own.get("column")
            number = column if type(column) is int else -1
            group = groups.setdefault((attribute, number), Group(attribute, number))
            if getattr(group, role) is None:
                setattr(group, role, array)
            if isinstance(own.get("type"), str):
                group.type = own["type"]
    return _complete(bundle, list(groups.values()), cells), cells


def _mark(array: Array, names: set[str] | None) -> tuple[str | None, str, dict[str, Any]]:
    """Role, attribute and namespace of an array; with `names`, its name can tell the role, too."""
    own = array.meta.formats.get("scidb", {})
    role, attribute = own.get("role"), own.get("attribute")
    if role == "coordinate":
        role = "values"
    if names is not None and role is None:
        role, attribute = _role_by_name(array.name, names)
    if role == "cells" or (role in ROLES and isinstance(attribute, str)):
        return role, attribute or "", own
    return None, "", own


def _role_by_name(name: str, names: set[str]) -> tuple[str | None, str]:
    """Role and attribute by the name of an array."""
    base, _, role = name.rpartition(".")
    if role == "null" and (base in names or f"{base}.offsets" in names):
        return role, base
    if role in ("offsets", "bytes") and {f"{base}.offsets", f"{base}.bytes"} <= names:
        return role, base
    return "values", name


def _complete(bundle: Bundle, groups: list[Group], cells: Array | None) -> list[Group]:
    """The groups that fit; each array of the other groups is an attribute of its own."""
    sound = {id(array): group for group in groups if _is_sound(group) for array in group.arrays}
    complete: list[Group] = []
    for array in bundle.arrays:
        group = sound.get(id(array))
        if group is None and array is not cells:
            group = Group(array.name)
            group.values = array
            own = array.meta.formats.get("scidb", {})
            if own.get("role") == "values" and isinstance(own.get("type"), str):
                group.type = own["type"]
        if group is not None and group not in complete:
            if len(bundle.arrays) > 1 or group.column < 0:
                group.name = _base_name(group)
            complete.append(group)
    return complete


def _base_name(group: Group) -> str:
    """The name that the arrays of a group have in common."""
    if group.values is not None:
        return group.values.name
    return group.first.name.removesuffix(".offsets")


def _is_sound(group: Group) -> bool:
    """True if the arrays of a group fit each other."""
    values, null, offsets, data = group.values, group.null, group.offsets, group.bytes
    if values is not None:
        if offsets is not None or data is not None:
            return False
        dims = values.dims[1:] if column_named(group.type, values, null).items > 1 else values.dims
        return null is None or (is_of(null, "uint", 1) and null.dims == dims)
    if offsets is None or data is None:
        return False
    if not is_of(offsets, "int", 8) or not is_of(data, "uint", 1):
        return False
    if offsets.ndim != 1 or data.ndim != 1 or offsets.count < 1:
        return False
    return null is None or (is_of(null, "uint", 1) and null.count == offsets.count - 1)


def is_of(array: Array, kind: str, nbytes: int) -> bool:
    """True if the elements are of this kind and size."""
    return bool(array.element.kind == kind and array.element.nbytes == nbytes)


MAX_NAME_BYTES = 1024


def is_encodable(text: str) -> bool:
    """True if the text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_fits(groups: list[Group]) -> list[Fit]:
    """Fits that refuse the names that AFL cannot hold, even in double quotes."""
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
    """The axes of the first array that has some, slowest first; empty if no array has."""
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
    """Dimensions of one chunk each, so that SciDB's order is row-major."""
    dims = []
    used = set(taken)
    names = [axis.name for axis in axes]
    for n, length in enumerate(shape):
        name, lo = "", 0
        if axes:
            lo = _origin(axes[n])
            own = names[n]
            usable = own and '"' not in own and own.isprintable() and len(own) <= MAX_NAME_BYTES
            if usable and own not in used and names.count(own) == 1:
                name = own
        if not name:
            name = _LETTERS[n] if len(shape) <= len(_LETTERS) else f"d{n}"
            while name in used or name in names:
                name += "_"
        used.add(name)
        dims.append(Dimension(name, lo, lo + length - 1, max(1, length)))
    return dims


def _origin(axis: Any) -> int:
    """The origin of an axis if SciDB can hold it (whole numbers in steps of one), else 0."""
    origin = axis.origin
    whole = isinstance(origin, (int, float)) and origin == origin // 1  # not for inf and nan
    if whole and abs(origin) < MAX_COORDINATE >> 1 and axis.spacing in (None, 1):
        return int(origin)
    return 0


def all_metadata_fits(plan: RecordPlan, dims: list[Dimension]) -> list[Fit]:
    """Fits for the metadata that SciDB cannot hold, of all arrays."""
    axis_names = {
        axis.name for out in plan.outs if out.values is not None for axis in out.values.ra_axes
    }
    return [
        fit
        for out in plan.outs
        for array in (out.values, out.offsets, out.bytes, out.null)
        if array is not None
        for fit in metadata_fits(
            array, out.column.items if array is out.values else 1, out.column.type, dims, axis_names
        )
    ]


def metadata_fits(
    array: Array, items: int, kind: str, dims: list[Dimension], axis_names: set[str | None]
) -> list[Fit]:
    """Fits for the metadata that SciDB cannot hold, of one array of the SciDB type `kind`.

    `axis_names` are the names of axes of all arrays, which share the dimensions.
    """
    held = ["scidb"]
    if array.meta.units == UNITS.get(kind):
        held.append("units")
    lost = facts_of(array, "axes", *held)
    if any(lost_of_axes := _lost_of_axes(array, items, dims, axis_names)):
        lost += facts_of_axes(array, lost_of_axes)
    if not lost:
        return []
    reason = f"SciDB has no place for it: {', '.join(lost)}"
    return [equivalent(array.name, "metadata", reason)]


def _lost_of_axes(
    array: Array, items: int, dims: list[Dimension], axis_names: set[str | None]
) -> list[list[str]]:
    """The fields of each axis, the fastest first, that the dimensions cannot hold.

    For an axis within a cell these are all its fields.
    """
    axes = _own_axes(array, items)
    lost = []
    for axis, dim in zip_longest(axes, dims[: len(axes)]):
        fields = {*fields_of_axes([axis], *Axis.FIELDS)}
        if dim is not None:
            fields -= {"name"} if axis.name == dim.name else set()
            fields |= {"name"} if axis.name is None and dim.name in axis_names else set()
            # An axis without an origin takes that of the dimension, in steps of 1.
            fields |= {"origin", "spacing"} if axis.origin is None and dim.lo else set()
            fields -= {"origin"} if (axis.origin or 0) == (dim.lo or 0) else set()
            # A dimension that begins at 0 is read as an axis without origin and spacing.
            fields -= {"spacing"} if axis.spacing == 1 and dim.lo else set()
        lost.append([field for field in Axis.FIELDS if field in fields])
    for axis in array.ra_axes[: len(array.ra_axes) - len(axes)]:
        of_pair = axis == Axis(labels=PAIR_LABELS)
        lost.append([] if of_pair else fields_of_axes([axis], *Axis.FIELDS))
    return lost[::-1]


# The plan of a file: columns of records, and the schema that names them --------------------------


# One column to write. `values`, `null`, `offsets`, `bytes` are arrays or None; a column with a
# `dim` is computed: the coordinate of that dimension. `cast` converts the values to those of the
# column: "view" or "float32".
Out = namedtuple("Out", "column name values null offsets bytes dim cast")

# `shape` is that of the cells, or one number of records; `cells` the array of the cell indices of
# records with coordinates; `raw` the array of whole records, if the file is nothing else.
RecordPlan = namedtuple(
    "RecordPlan", "outs shape dims chunks cells raw schema_text settings attributes"
)
