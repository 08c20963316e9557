"""What becomes of a bundle as SciDB records: decided from types, shapes, names and metadata.

Arrays that came from SciDB, whole and as they were, are written back byte for byte. Any others of
one shape become the attributes of one SciDB array; arrays that are marked as companions (by the
namespace ``scidb`` in their metadata, or by their names where asked) make theirs nullable, or
variable in length.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod

from raconvert.errors import RaconvertError
from raconvert.plugin import Array, Bundle, Element, Fit, equivalent, refused, type_name

from .declare import MAX_SCHEMA_BYTES, Declaration, Text, combine
from .formatstring import MAX_COLUMNS, parse_format
from .roles import CELLS, RAW, ROLES, Namer
from .schema import MAX_COORDINATE, Dimension, schema_text
from .syntax import Fault
from .types import MAX_SIZE, NATIVE, SKIP, UNITS, VARIABLE, Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_NAME_BYTES = 1024

# One column to write. `values`, `null`, `offsets`, `bytes` are arrays or None; a column with a
# `dim` is computed: the coordinate of that dimension. `cast` is how the values become those of the
# column: "view" or "float32".
Out = namedtuple("Out", "column name values null offsets bytes dim cast")

# `shape` is that of the cells, or one number of records; `cells` the array of places of records
# with coordinates; `raw` the array of whole records, if that is all there is.
Plan = namedtuple("Plan", "outs shape dims chunks cells raw schema_text settings attributes")


class Group:
    """The arrays of one attribute."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: Array | None = None
        self.null: Array | None = None
        self.offsets: Array | None = None
        self.bytes: Array | None = None
        self.type = ""
        self.column = -1

    @property
    def first(self) -> Array:
        """The array that stands for the attribute in messages."""
        return next(array for array in (self.values, self.offsets) if array is not None)

    @property
    def arrays(self) -> list[Array]:
        """All arrays of the attribute."""
        parts = (self.values, self.offsets, self.bytes, self.null)
        return [array for array in parts if array is not None]


def plan_of(bundle: Bundle, options: dict[str, Any]) -> tuple[Plan, list[Fit]]:
    """Return how the bundle is written, and what that changes."""
    told = _told(bundle)
    raw = _raw(bundle, told)
    if raw is not None:
        return raw, _metadata_fits(raw.raw, 1, "", raw.dims)
    groups, cells = _groups(bundle, by_names=options.get("companions") == "names")
    coords = options.get("coords", "auto")
    if told is not None and coords in ("auto", told.coords):
        plan = _as_told(told, groups, cells)
        if plan is not None and len(bundle.arrays) > 1 and _names(plan, bundle) != bundle.names:
            plan = None  # somebody gave them other names
        if plan is not None:
            dims = plan.dims if told.layout == "dense" or not told.coordinates else []
            return plan, _all_metadata_fits(plan, dims)
    if cells is not None:
        group = Group(cells.name)
        group.values = cells
        groups.append(group)
    return _anew(groups, coords)


def names_of(bundle: Bundle, options: dict[str, Any]) -> list[str]:
    """Return the names that the arrays have when the file is read."""
    plan, _ = plan_of(bundle, options)
    return _names(plan, bundle)


def _names(plan: Plan, bundle: Bundle) -> list[str]:
    if plan.raw is not None:
        return [RAW]
    namer = Namer()
    found: dict[int, str] = {}
    for out in plan.outs:
        for role in ROLES:
            array = getattr(out, role)
            if array is not None:
                found[id(array)] = namer.name(out.name, role)
    if plan.cells is not None:
        found[id(plan.cells)] = namer.name(CELLS, "values")
    return [found.get(id(array), array.name) for array in bundle.arrays]


# What came from SciDB -----------------------------------------------------------------------------


def _told(bundle: Bundle) -> Declaration | None:
    """Return what the metadata says of the SciDB file that the arrays come from, if it is sound."""
    space = bundle.formats.get("scidb")
    if not space and len(bundle.arrays) == 1:
        space = bundle.arrays[0].meta.formats.get("scidb", {}).get("file")
    if not isinstance(space, dict):
        return None
    texts = {}
    for name in ("schema", "format", "layout", "order", "coords", "records", "unnamed"):
        value = space.get(name, "")
        if isinstance(value, str) and value:
            texts[name] = Text(value, name, "")
    sizes = space.get("types")
    if isinstance(sizes, dict):
        texts["types"] = Text(",".join(f"{k}={v}" for k, v in sizes.items()), "types", "")
    if "format" not in texts:
        return None
    try:
        return combine("", texts)
    except RaconvertError:  # changed by hand: the arrays themselves decide
        return None


def _raw(bundle: Bundle, told: Declaration | None) -> Plan | None:
    """Return the plan for an array of whole records."""
    if told is None or not told.raw or len(bundle.arrays) != 1:
        return None
    array = bundle.arrays[0]
    widths = [c.size + c.nullable if c.size is not None else None for c in told.columns]
    width = 1 if None in widths else sum(w or 0 for w in widths)
    own = array.meta.formats.get("scidb", {})
    if own.get("role") != "records" or array.element.kind != "user":
        return None
    if array.element.nbytes != width:
        return None
    settings = {**_settings(told), "records": "raw"}
    return Plan([], array.dims[::-1], [], None, None, array, told.schema_text, settings, None)


def _settings(told: Declaration) -> dict[str, str]:
    """Return the lines of the schema file that say what the schema does not."""
    from .schema import in_c_order

    settings = {"format": f"({', '.join(map(str, told.columns))})"}
    if told.sizes:
        settings["types"] = ",".join(f"{name}={size}" for name, size in told.sizes.items())
    if told.coords != "none":
        settings["coords"] = told.coords
    if told.schema.bounded:
        if told.layout == "flat" or told.coordinates:
            settings["layout"] = told.layout
        elif not in_c_order(told.schema.shape, told.schema.chunks):
            settings["order"] = told.order
    if told.unnamed:
        settings["unnamed"] = ", ".join(told.unnamed)
    return settings


def _groups(bundle: Bundle, *, by_names: bool) -> tuple[list[Group], Array | None]:
    """Return the attributes that the arrays belong to, in order, and the array of cells."""
    names = set(bundle.names)
    of: dict[tuple[str, Any], Group] = {}
    cells = None
    for array in bundle.arrays:
        role, attribute, own = _mark(array, names if by_names else None)
        if role == "cells":
            cells = array
        elif role is not None:
            group = of.setdefault((attribute, own.get("column")), Group(attribute))
            if getattr(group, role) is None:
                setattr(group, role, array)
            if isinstance(own.get("type"), str):
                group.type = own["type"]
            if type(own.get("column")) is int:
                group.column = own["column"]
    return _complete(bundle, list(of.values()), cells), cells


def _mark(array: Array, names: set[str] | None) -> tuple[str | None, str, dict[str, Any]]:
    """Return role, attribute and namespace of an array; with `names` also from its name."""
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
    """Return role and attribute that the name of an array tells."""
    base, _, role = name.rpartition(".")
    if role == "null" and (base in names or f"{base}.offsets" in names):
        return role, base
    if role in ("offsets", "bytes") and {f"{base}.offsets", f"{base}.bytes"} <= names:
        return role, base
    return "values", name


def _complete(bundle: Bundle, groups: list[Group], cells: Array | None) -> list[Group]:
    """Keep the groups that are attributes; what is left of others are attributes of their own."""
    sound = {id(array): group for group in groups if _is_sound(group) for array in group.arrays}
    found: list[Group] = []
    for array in bundle.arrays:
        group = sound.get(id(array))
        if group is None and array is not cells:
            group = Group(array.name)
            group.values = array
            own = array.meta.formats.get("scidb", {})
            if own.get("role") == "values" and isinstance(own.get("type"), str):
                group.type = own["type"]
        if group is not None and group not in found:
            if len(bundle.arrays) > 1 or group.column < 0:
                group.name = _base_name(group)
            found.append(group)
    return found


def _base_name(group: Group) -> str:
    """Return what the arrays of a group are called in common."""
    if group.values is not None:
        return group.values.name
    return group.first.name.removesuffix(".offsets")


def _is_sound(group: Group) -> bool:
    """Tell whether the arrays of a group fit each other."""
    values, null, offsets, data = group.values, group.null, group.offsets, group.bytes
    if values is not None:
        if offsets is not None or data is not None:
            return False
        dims = values.dims[1:] if _column_named(group.type, values, null).items > 1 else values.dims
        return null is None or (_is(null, "uint", 1) and null.dims == dims)
    if offsets is None or data is None or not _is(offsets, "int", 8) or not _is(data, "uint", 1):
        return False
    if offsets.ndim != 1 or data.ndim != 1 or offsets.count < 1:
        return False
    return null is None or (_is(null, "uint", 1) and null.count == offsets.count - 1)


def _is(array: Array, kind: str, nbytes: int) -> bool:
    return bool(array.element.kind == kind and array.element.nbytes == nbytes)


def _as_told(told: Declaration, groups: list[Group], cells: Array | None) -> Plan | None:
    """Return the plan that gives the file back that the arrays come from; None if they differ."""
    dense = told.layout == "dense"
    computed = told.coordinates if dense else []
    by_column = {group.column: group for group in groups}
    if len(by_column) != len(groups) or len(groups) + len(computed) != len(told.columns):
        return None
    if (cells is not None and not (dense and computed)) or not _are_cells(cells):
        return None
    shape = told.schema.shape if dense else None
    outs = []
    for n, (column, name) in enumerate(zip(told.columns, told.names, strict=True)):
        if n in computed:
            outs.append(Out(column, name, None, None, None, None, computed.index(n), "view"))
            continue
        group = by_column.get(n)
        if group is None or not _holds(group, column, name):
            return None
        if shape is None:
            shape = (_count(group, column),)
        if not _has_shape(group, column, shape):
            return None
        outs.append(
            Out(column, name, group.values, group.null, group.offsets, group.bytes, None, "view")
        )
    if shape is None:
        return None
    chunks = told.schema.chunks if dense and told.order == "chunk" else None
    attributes = [
        (out.name, out.column)
        for n, out in enumerate(outs)
        if n not in told.coordinates and not out.column.is_skip
    ]
    dims = told.schema.dims
    return Plan(
        outs, shape, dims, chunks, cells, None, told.schema_text, _settings(told), attributes
    )


def _are_cells(cells: Array | None) -> bool:
    return cells is None or (_is(cells, "int", 8) and cells.ndim == 1)


def _holds(group: Group, column: Column, name: str) -> bool:
    """Tell whether a group has what the column needs, and nothing else."""
    if group.name != name or (group.null is not None) != column.nullable:
        return False
    if column.size is None:
        return group.offsets is not None
    values = group.values
    if values is None:
        return False
    wanted = column.element
    return bool(values.element.kind == wanted.kind and values.element.nbytes == wanted.nbytes)


def _count(group: Group, column: Column) -> int:
    if group.offsets is not None:
        return group.offsets.count - 1
    return group.first.count // column.items


def _has_shape(group: Group, column: Column, shape: tuple[int, ...]) -> bool:
    dims = shape[::-1]
    if group.null is not None and group.null.dims != dims:
        return False
    if group.values is not None:
        return group.values.dims == ((column.items, *dims) if column.items > 1 else dims)
    return _count(group, column) == prod(shape)


# Anything else ------------------------------------------------------------------------------------


def _column_named(text: str, values: Array, null: Array | None) -> Column:
    """Return the column of the SciDB type that metadata names, if the values are of that type."""
    try:
        kind = text.partition("(")[0].strip()
        [column] = parse_format(f"({text})", {kind: values.element.nbytes})
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
    """Return the column for an element type."""
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


def _anew(groups: list[Group], coords: str) -> tuple[Plan, list[Fit]]:
    """Return the plan for arrays that become attributes of a new SciDB array."""
    fits: list[Fit] = []
    outs = []
    for group in groups:
        column, cast = _column(group, fits)
        outs.append(
            Out(
                column, group.name, group.values, group.null, group.offsets, group.bytes, None, cast
            )
        )
    fits += _name_fits(groups)
    shapes = [_own_shape(out) for out in outs]
    shape = _common_shape(groups, shapes, fits)
    axes = _axes(groups, outs, shape)
    names = {group.name for group in groups}
    dims = _dims(shape, axes, names)
    attributes = [(out.name, out.column) for out in outs]
    settings = {}
    if coords in ("after", "before") and any(out.column.size is None for out in outs):
        reason = "coordinates as columns beside strings and binaries cannot be put back into place"
        fits.append(refused("", "shape", reason + "; leave out --out-opt coords"))
    if coords in ("after", "before"):
        extra = [
            Out(Column("int64", 8, False), dim.name, None, None, None, None, n, "view")
            for n, dim in enumerate(dims)
        ]
        outs = outs + extra if coords == "after" else extra + outs
        settings = {"coords": coords, "layout": "dense"}
    columns = [out.column for out in outs]
    settings = {"format": f"({', '.join(map(str, columns))})", **settings}
    own = [axis.name for axis in axes] or [None] * len(dims)
    made_up = [dim.name for dim, name in zip(dims, own, strict=True) if dim.name != name]
    if made_up:
        settings["unnamed"] = ", ".join(made_up)
    text = schema_text([(name, column.type, column.nullable) for name, column in attributes], dims)
    if not _is_encodable(text) or len(text.encode()) > MAX_SCHEMA_BYTES // 4:
        if not any(fit.outcome == "refused" for fit in fits):
            fits.append(refused("", "names", "the schema of so many attributes is too long"))
    elif len(columns) > MAX_COLUMNS:
        fits.append(refused("", "names", f"SciDB records of more than {MAX_COLUMNS} columns"))
    plan = Plan(outs, shape, dims, None, None, None, text, settings, attributes)
    return plan, fits + _all_metadata_fits(plan, dims)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _column(group: Group, fits: list[Fit]) -> tuple[Column, str]:
    """Return the column of a group and how its values are cast; add what that changes."""
    values = group.values
    if values is None:
        kind = group.type if group.type in VARIABLE else "binary"
        if group.type == SKIP:
            reason = "skipped bytes become an attribute of type binary"
            fits.append(equivalent(group.first.name, "type", reason))
        return Column(kind, None, group.null is not None), "view"
    column = _column_named(group.type, values, group.null)
    kind, nbytes = values.element[:2]
    if nbytes > MAX_SIZE:
        reason = f"elements of {nbytes} bytes; SciDB takes at most {MAX_SIZE}"
        fits.append(refused(values.name, "type", reason))
    change = _type_change(values.element, column)
    if change is not None and change[0] == "lost":
        reason = f"SciDB has no type for {type_name(values.element)}; it would become {column}, "
        fits.append(refused(values.name, "type", reason + "bytes without meaning", "--allow dtype"))
    elif change is not None:
        fits.append(equivalent(values.name, *change))
    if kind == "complex" and group.null is not None:
        fits.append(refused(values.name, "nulls", "complex numbers with nulls have no form here"))
    return column, "float32" if (kind, nbytes) == ("float", 2) else "view"


def _type_change(element: Element, column: Column) -> tuple[str, str] | None:
    """Return property and reason where values take another form, ("lost", …) if one is lost."""
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


def _name_fits(groups: list[Group]) -> list[Fit]:
    """Return the names that AFL cannot hold, even in double quotes."""
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
        elif not _is_encodable(name):
            reason = "the name is no valid text"
        elif len(name.encode()) > MAX_NAME_BYTES:
            reason = f"the name is above {MAX_NAME_BYTES} bytes"
        if reason:
            fits.append(refused(group.first.name, "names", reason))
        seen.add(name)
    return fits


def _own_shape(out: Out) -> tuple[int, ...] | None:
    """Return the cells of a column; None where only their number is known."""
    if out.values is None:
        null = out.null
        return null.dims[::-1] if null is not None and null.ndim > 1 else None
    dims = out.values.dims[1:] if out.column.items > 1 else out.values.dims
    shape: tuple[int, ...] = dims[::-1]
    return (*shape, 2) if out.values.element.kind == "complex" else shape


def _common_shape(
    groups: list[Group], shapes: list[tuple[int, ...] | None], fits: list[Fit]
) -> tuple[int, ...]:
    """Return the shape of all; refuse the arrays that have another."""
    counts = [g.offsets.count - 1 for g in groups if g.offsets is not None]
    shape = next((s for s in shapes if s is not None), (counts[0] if counts else 0,))
    for group, own in zip(groups, shapes, strict=True):
        alike = own == shape
        if own is None and group.offsets is not None:
            alike = group.offsets.count - 1 == prod(shape)
        if not alike:
            what = f"{own or group.first.shape} beside {shape} of '{groups[0].first.name}'"
            fits.append(
                refused(
                    group.first.name,
                    "shape",
                    f"attributes of one SciDB array have one shape, not {what}; choose arrays of "
                    "one shape with --array",
                )
            )
    if not shape:
        for group in groups:
            reason = "a single value becomes an array of one cell"
            fits.append(equivalent(group.first.name, "shape", reason))
        return (1,)
    return shape


def _axes(groups: list[Group], outs: list[Out], shape: tuple[int, ...]) -> list[Any]:
    """Return the axes of the first array that has any, slowest first; empty without."""
    for out in outs:
        array = out.null if out.values is None else out.values
        axes = _own_axes(array, out.column.items) if array is not None else []
        if len(axes) == len(shape):
            return axes
    return []


def _own_axes(array: Array, items: int) -> list[Any]:
    """Return the axes of the cells, slowest first."""
    axes = array.meta.axes
    if len(axes) == array.ndim and items > 1:
        axes = axes[1:]
    return list(axes[::-1])


_LETTERS = ("i", "j", "k", "l", "m", "n")


def _dims(shape: tuple[int, ...], axes: list[Any], taken: set[str]) -> list[Dimension]:
    """Return dimensions in one chunk, which is when SciDB's order is row-major."""
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
    """Return the origin of an axis as SciDB can hold it: whole numbers, steps of one."""
    origin = axis.origin
    whole = isinstance(origin, (int, float)) and origin == origin // 1  # not for inf and nan
    if whole and abs(origin) < MAX_COORDINATE >> 1 and axis.spacing in (None, 1):
        return int(origin)
    return 0


def _all_metadata_fits(plan: Plan, dims: list[Dimension]) -> list[Fit]:
    """Return what SciDB cannot hold of the metadata of the arrays."""
    return [
        fit
        for out in plan.outs
        for array in (out.values, out.offsets, out.bytes, out.null)
        if array is not None
        for fit in _metadata_fits(
            array, out.column.items if array is out.values else 1, out.column.type, dims
        )
    ]


def _metadata_fits(array: Array, items: int, kind: str, dims: list[Dimension]) -> list[Fit]:
    """Return what SciDB cannot hold of the metadata of one array, of the SciDB type `kind`."""
    meta = array.meta
    lost = []
    if meta.description:
        lost.append("description")
    if meta.units and meta.units != UNITS.get(kind):
        lost.append("units")
    if meta.encoding:
        lost.append("encoding")
    if meta.attributes:
        lost.append("attributes")
    if meta.items is not None:
        lost.append("items")
    lost += _other_namespaces(meta.formats)
    if not _keeps_axes(_own_axes(array, items), dims):
        lost.append("axes")
    if not lost:
        return []
    reason = f"SciDB schemas have no place for {', '.join(lost)}"
    return [equivalent(array.name, "metadata", reason)]


def _other_namespaces(formats: dict[str, dict[str, Any]]) -> list[str]:
    return [f"namespace {name}" for name, space in formats.items() if space and name != "scidb"]


def _keeps_axes(axes: list[Any], dims: list[Dimension]) -> bool:
    """Tell whether the dimensions say all that the axes do."""
    if not any(axis.to_dict() for axis in axes):
        return True
    for axis, dim in zip(axes, dims, strict=False):
        told = set(axis.to_dict()) - {"name", "origin"}
        if axis.spacing == 1:
            told -= {"spacing"}
        if told or (axis.name or dim.name) != dim.name or (axis.origin or 0) != (dim.lo or 0):
            return False
    return len(axes) <= len(dims)
