"""Plan of a bundle as SciDB records, made from types, shapes, names and metadata.

Arrays of a SciDB file, all of them and unchanged, are written back byte for byte. Other arrays of
one shape become the attributes of one SciDB array.
"""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.arrays.memory import MAX_RANK
from raconvert.errors import RaconvertError
from raconvert.files.limits import DEFAULT
from raconvert.plugin import Array, Bundle, Fit, Plan, equivalent, file_fits, refused, type_name

from .columns import CELLS, MAX_SIZE, RAW, ROLES, SKIP, VARIABLE, Column, layout_of
from .header import SUFFIX, Declaration, Text, combine
from .metadata import (
    Group,
    Namer,
    Out,
    RecordPlan,
    all_metadata_fits,
    axes_of,
    column_named,
    dims_of,
    groups_of,
    is_encodable,
    is_of,
    metadata_fits,
    name_fits,
    type_change,
)
from .schema import MAX_COORDINATE, in_c_order, schema_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

    from .schema import Dimension


def plan(
    bundle: Bundle, *, mode: str = "exact", coords: str = "auto", companions: str = "metadata"
) -> Plan:
    """The records that the arrays become, and ``FILE.schema`` beside them; see the package.

    The unchanged arrays of a SciDB file lose nothing. Writing raises `Corrupt` for offsets and cell
    indices that contradict their arrays.
    """
    records, fits = _records(bundle, coords, by_names=companions == "names")
    canonical = mode == "canonical"
    if canonical:
        reason = "null prefixes become 255, bytes behind nulls and in skipped columns zero, and "
        fits.append(equivalent("", "storage", reason + "strings end with their first NUL"))

    def write(target: Target) -> None:
        from .writer import write_records

        write_records(records, target, canonical=canonical)
        line = f"SciDB loads it with the iquery line in '{target.place}{SUFFIX}'"
        target.notes.append(line)

    fits += file_fits(bundle, "a SciDB schema")
    return Plan(fits, write, names=_names(records, bundle))


def _records(bundle: Bundle, coords: str, *, by_names: bool) -> tuple[RecordPlan, list[Fit]]:
    """The plan of the records of a bundle, and the fits."""
    origin = _origin_of(bundle)
    raw = _raw(bundle, origin)
    if raw is not None:
        return raw, metadata_fits(raw.raw, 1, "", raw.dims, set())
    groups, cells = groups_of(bundle, by_names=by_names)
    if origin is not None and coords in ("auto", origin.coords):
        plan = _unchanged(origin, groups, cells)
        if plan is not None and len(bundle.arrays) > 1 and _names(plan, bundle) != bundle.names:
            plan = None  # some arrays were renamed
        if plan is not None:
            dims = plan.dims if origin.layout == "dense" or not origin.coordinates else []
            return plan, all_metadata_fits(plan, dims)
    if cells is not None:
        group = Group(cells.name)
        group.values = cells
        groups.append(group)
    return _new_array(groups, coords)


def _names(plan: RecordPlan, bundle: Bundle) -> list[str]:
    """The name that each array of the bundle has when the file is read."""
    if plan.raw is not None:
        return [RAW]
    namer = Namer()
    names: dict[int, str] = {}
    for out in plan.outs:
        for role in ROLES:
            array = getattr(out, role)
            if array is not None:
                names[id(array)] = namer.name(out.name, role)
    if plan.cells is not None:
        names[id(plan.cells)] = namer.name(CELLS, "values")
    return [names.get(id(array), array.name) for array in bundle.arrays]


# Arrays of a SciDB file ---------------------------------------------------------------------------


def _origin_of(bundle: Bundle) -> Declaration | None:
    """The declaration of the SciDB file that the arrays come from, by their metadata, or None."""
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
        return combine("", texts, DEFAULT)
    except RaconvertError:  # changed by hand: the arrays themselves decide
        return None


def _raw(bundle: Bundle, origin: Declaration | None) -> RecordPlan | None:
    """The plan for one array of whole records; None if the bundle is anything else."""
    if origin is None or not origin.raw or len(bundle.arrays) != 1:
        return None
    array = bundle.arrays[0]
    widths = [c.size + c.nullable if c.size is not None else None for c in origin.columns]
    width = 1 if None in widths else sum(w or 0 for w in widths)
    own = array.meta.formats.get("scidb", {})
    if own.get("role") != "records" or array.element.kind != "user":
        return None
    if array.element.nbytes != width:
        return None
    settings = {**_settings(origin), "records": "raw"}
    return RecordPlan(
        [], array.dims[::-1], [], None, None, array, origin.schema_text, settings, None
    )


def _settings(origin: Declaration) -> dict[str, str]:
    """The options in the lines of the schema file: all that the schema does not say."""
    settings = {"format": f"({', '.join(map(str, origin.columns))})"}
    if origin.sizes:
        settings["types"] = ",".join(f"{name}={size}" for name, size in origin.sizes.items())
    if origin.coords != "none":
        settings["coords"] = origin.coords
    if origin.schema.bounded:
        if origin.layout == "flat" or origin.coordinates:
            settings["layout"] = origin.layout
        elif not in_c_order(origin.schema.shape, origin.schema.chunks):
            settings["order"] = origin.order
    if origin.unnamed:
        settings["unnamed"] = ", ".join(origin.unnamed)
    return settings


def _unchanged(origin: Declaration, groups: list[Group], cells: Array | None) -> RecordPlan | None:
    """The plan of the same file that the arrays come from; None if they were changed."""
    dense = origin.layout == "dense"
    computed = origin.coordinates if dense else []
    by_column = {group.column: group for group in groups}
    if len(by_column) != len(groups) or len(groups) + len(computed) != len(origin.columns):
        return None
    if (cells is not None and not (dense and computed)) or not _are_cells(cells):
        return None
    shape = origin.schema.shape if dense else None
    outs = []
    for n, (column, name) in enumerate(zip(origin.columns, origin.names, strict=True)):
        if n in computed:
            outs.append(Out(column, name, None, None, None, None, computed.index(n), "view"))
            continue
        group = by_column.get(n)
        if group is None or not _holds(group, column, name):
            return None
        if shape is None:
            shape = (_count(group, column),)
        if not _has_shape(group, column, shape) or (dense and _is_moved(group, origin)):
            return None
        outs.append(
            Out(column, name, group.values, group.null, group.offsets, group.bytes, None, "view")
        )
    if shape is None:
        return None
    chunks = origin.schema.chunks if dense and origin.order == "chunk" else None
    attributes = [
        (out.name, out.column)
        for n, out in enumerate(outs)
        if n not in origin.coordinates and not out.column.is_skip
    ]
    dims = origin.schema.dims
    return RecordPlan(
        outs, shape, dims, chunks, cells, None, origin.schema_text, _settings(origin), attributes
    )


def _are_cells(cells: Array | None) -> bool:
    return cells is None or (is_of(cells, "int", 8) and cells.ndim == 1)


def _holds(group: Group, column: Column, name: str) -> bool:
    """True if a group has the arrays that the column needs, and no others."""
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
    """The number of records of a group."""
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


def _is_moved(group: Group, origin: Declaration) -> bool:
    """True if an axis has the name, or the first number, of another dimension than its own."""
    values = group.values
    if values is None or not values.described:
        return False
    for axis, dim in zip(values.axes, origin.schema.dims, strict=False):
        name = None if dim.name in origin.unnamed else dim.name
        if axis.name not in (None, name) or axis.origin not in (None, dim.lo):
            return True
    return False


# Other arrays -------------------------------------------------------------------------------------


def _new_array(groups: list[Group], coords: str) -> tuple[RecordPlan, list[Fit]]:
    """The plan for arrays that become attributes of a new SciDB array."""
    fits: list[Fit] = []
    outs = []
    for group in groups:
        column, cast = _column(group, fits)
        outs.append(
            Out(
                column, group.name, group.values, group.null, group.offsets, group.bytes, None, cast
            )
        )
    fits += name_fits(groups)
    shapes = [_own_shape(out) for out in outs]
    shape = _common_shape(groups, shapes, fits)
    axes = axes_of(outs, shape)
    names = {group.name for group in groups}
    dims = dims_of(shape, axes, names)
    attributes = [(out.name, out.column) for out in outs]
    settings = {}
    if coords in ("after", "before") and any(out.column.size is None for out in outs):
        reason = "coordinates as columns beside strings and binaries cannot be put back into cells"
        fits.append(refused("", "shape", reason + "; leave out `--out-opt coords`"))
    if coords in ("after", "before"):
        extra = [
            Out(Column("int64", 8, False), dim.name, None, None, None, None, n, "view")
            for n, dim in enumerate(dims)
        ]
        outs = outs + extra if coords == "after" else extra + outs
        settings = {"coords": coords, "layout": "dense"}
    columns = [out.column for out in outs]
    fits += _extent_fits(groups[0].first.name, dims, layout_of(columns).width or 1)
    settings = {"format": f"({', '.join(map(str, columns))})", **settings}
    own = [axis.name for axis in axes] or [None] * len(dims)
    made_up = [dim.name for dim, name in zip(dims, own, strict=True) if dim.name != name]
    if made_up:
        settings["unnamed"] = ", ".join(made_up)
    text = schema_text([(name, column.type, column.nullable) for name, column in attributes], dims)
    if not is_encodable(text) or len(text.encode()) > DEFAULT.header_bytes // 4:
        if not any(fit.outcome == "refused" for fit in fits):
            fits.append(refused("", "names", "the schema of so many attributes is too long"))
    elif len(columns) > DEFAULT.structure_fields:
        fits.append(
            refused("", "names", f"SciDB records of more than {DEFAULT.structure_fields} columns")
        )
    plan = RecordPlan(outs, shape, dims, None, None, None, text, settings, attributes)
    return plan, fits + all_metadata_fits(plan, dims)


def _extent_fits(name: str, dims: list[Dimension], width: int) -> list[Fit]:
    """Fits that refuse dimensions too many, too long or too far out for records of this width."""
    lengths = [dim.hi - dim.lo + 1 for dim in dims]
    reasons = (
        (len(dims) >= MAX_RANK, f"{len(dims)} dimensions; at most {MAX_RANK - 1} are read"),
        (any(dim.hi > MAX_COORDINATE or dim.chunk > MAX_COORDINATE for dim in dims),
         f"a coordinate is above {MAX_COORDINATE}, SciDB's largest"),
        (spanned(lengths, width) > MAX_SPAN, "its dimensions span 2**63 bytes or more"),
    )  # fmt: skip
    return [refused(name, "shape", reason) for is_so, reason in reasons if is_so]


def _column(group: Group, fits: list[Fit]) -> tuple[Column, str]:
    """The column of a group, and the cast of its values; changes are added to `fits`."""
    values = group.values
    if values is None:
        kind = group.type if group.type in VARIABLE else "binary"
        if group.type == SKIP:
            reason = "skipped bytes become an attribute of type binary"
            fits.append(equivalent(group.first.name, "type", reason))
        return Column(kind, None, group.null is not None), "view"
    column = column_named(group.type, values, group.null)
    kind, nbytes = values.element[:2]
    if nbytes > MAX_SIZE:
        reason = f"elements of {nbytes} bytes; SciDB takes at most {MAX_SIZE}"
        fits.append(refused(values.name, "type", reason))
    change = type_change(values.element, column)
    if change is not None and change[0] == "lost":
        reason = f"SciDB has no type for {type_name(values.element)}; it would become {column}, "
        fits.append(refused(values.name, "type", reason + "bytes without meaning", "--allow dtype"))
    elif change is not None:
        fits.append(equivalent(values.name, *change))
    if kind == "complex" and group.null is not None:
        fits.append(refused(values.name, "nulls", "complex numbers with nulls have no form here"))
    return column, "float32" if (kind, nbytes) == ("float", 2) else "view"


def _own_shape(out: Out) -> tuple[int, ...] | None:
    """The shape of the cells of a column; None if only their number is known."""
    if out.values is None:
        null = out.null
        return null.dims[::-1] if null is not None and null.ndim > 1 else None
    dims = out.values.dims[1:] if out.column.items > 1 else out.values.dims
    shape: tuple[int, ...] = dims[::-1]
    return (*shape, 2) if out.values.element.kind == "complex" else shape


def _common_shape(
    groups: list[Group], shapes: list[tuple[int, ...] | None], fits: list[Fit]
) -> tuple[int, ...]:
    """The shape of all attributes; arrays of another shape are refused in `fits`."""
    counts = [g.offsets.count - 1 for g in groups if g.offsets is not None]
    shape = next((s for s in shapes if s is not None), (counts[0] if counts else 0,))
    for group, own in zip(groups, shapes, strict=True):
        fits_shape = own == shape
        if own is None and group.offsets is not None:
            fits_shape = group.offsets.count - 1 == prod(shape)
        if not fits_shape:
            what = f"{own or group.first.shape} beside {shape} of '{groups[0].first.name}'"
            fits.append(
                refused(
                    group.first.name,
                    "shape",
                    f"attributes of one SciDB array have one shape, not {what}; choose arrays of "
                    "one shape with `--array`",
                )
            )
    if not shape:
        for group in groups:
            reason = "a single value becomes an array of one cell"
            fits.append(equivalent(group.first.name, "shape", reason))
        return (1,)
    return shape
