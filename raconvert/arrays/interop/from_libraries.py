"""Arrays and tables of other libraries that name their axes, as arrays with metadata.

xarray's DataArray, Dataset, DataTree and Variable, pandas' Series, DataFrame, Index and arrays are
recognised by the name of their class, so that neither library is imported here. Dimensions become
names of axes; a coordinate along its own dimension becomes origin and spacing if its numbers are
exactly regular, else labels; attributes stay attributes. Anything else is refused, or named in
`changes`.
"""

from __future__ import annotations

from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of, flattened
from raconvert.arrays.interop.conventions import as_numbers, naming_all, naming_coordinates
from raconvert.arrays.interop.dask_arrays import Delayed, is_delayed
from raconvert.arrays.metadata import Axis, Metadata, Space
from raconvert.arrays.reinterpret import beyond
from raconvert.arrays.space import part_of, shown_along
from raconvert.declared import Record
from raconvert.errors import UsageError, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    import numpy as np


_KINDS = {
    ("xarray", "DataArray"), ("xarray", "Dataset"), ("xarray", "DataTree"),
    ("xarray", "NamedArray"),
    ("pandas", "Series"), ("pandas", "DataFrame"), ("pandas", "Index"),
    ("pandas", "ExtensionArray"),
}  # fmt: skip
_PLAIN = {bool, int, float, complex, str, bytes}
KEEPS = "raconvert"  # the name of our record, in encodings of xarray and attributes of pandas
_MANY = "Dataset", "DataTree", "DataFrame"  # they hold several arrays, and attributes of their own


def kind_of(values: Any) -> str | None:
    """Return the class of a labelled array or table, such as ``DataArray``; None for all else."""
    for cls in type(values).__mro__:
        origin = cls.__module__.partition(".")[0], cls.__name__
        if origin in _KINDS:
            return origin[1]
    return None


def bundle_of(
    values: Any, name: str, changes: list[tuple[str, str]], *, several: bool = False
) -> Bundle:
    """Return a labelled array or table as a bundle; `name` is for arrays that have none.

    A Dataset becomes one array for each variable, and for each coordinate that is not a dimension's
    own; with `several`, also for a dimension's own coordinate if an axis cannot hold all of it. A
    DataFrame becomes one array for each column, and one for its index unless that only counts the
    rows; the levels of an index of several become axes, labelled in the order in which the labels
    come first. `changes` gets (array, what changed) for everything that takes another form. Raises
    `WouldLose` for several coordinates of a DataArray, rows of a long table that are missing or
    there twice, columns of mixed objects or with missing values.
    """
    kind = kind_of(values)
    if kind == "DataArray":
        placed = _place_of(values, _kept_of(values))
        others = [key for key in values.coords if key not in values.dims]
        others = [key for key in others if placed is None or key not in placed.indices]
        if others:
            raise _lost(values, f"the coordinates {_listed(others)}", "write it as a Dataset, or ")
        coordinates, apart = _apart(values, changes, several=several)
        return Bundle([_data_array(values, _text(values.name, name), changes, apart), *coordinates])
    if kind == "Dataset":
        names = [*values.data_vars, *(key for key in values.coords if key not in values.dims)]
        _refuse_twins(values, names)
        coordinates, apart = _apart(values, changes, several=several)
        arrays = [_data_array(values[key], str(key), changes, apart) for key in names]
        for key, array in zip(values.data_vars, arrays, strict=False):
            array.meta = naming_coordinates(array.meta, values[key])
        empty = [key for key in values.coords if key in values.dims and not _used(values, key)]
        arrays += [_data_array(values[key], str(key), changes) for key in empty if key not in apart]
        arrays += coordinates
        own = values.encoding.get(KEEPS)
        formats = {key: dict(one) for key, one in own["formats"].items()} if own else {}
        attributes = naming_all(_attributes("", values.attrs, changes), values)
        return Bundle(arrays, attributes=attributes, formats=formats)
    if kind == "DataTree":
        return _tree(values, name, changes, several=several)
    if kind == "NamedArray":
        axes = [Axis(name=str(dim)) for dim in values.dims]
        made = _array(_elements(values, name), name, axes)
        _describe(made, name, values.attrs, changes)
        return Bundle([made])
    if kind == "Series":
        return Bundle([_series(values, _text(values.name, name), changes)])
    if kind == "DataFrame":
        return _frame(values, changes)
    name = _text(getattr(values, "name", None), name)
    _refuse_levels(values, values)
    return Bundle([_array(_column(values, name, values), name, [])])


def array_among(values: Any, name: str, changes: list[tuple[str, str]]) -> Array:
    """Return a labelled array that was given a name among others."""
    kind = kind_of(values)
    if kind in _MANY:
        raise UsageError(
            f"a {kind} is not a single array", got=f"one of the name '{name}'",
            remedy="give its columns or variables by their names, or write it alone",
        )  # fmt: skip
    return bundle_of(values, name, changes).arrays[0].replace(name=name)


def refuse_inside(values: Any, depth: int) -> None:
    """Refuse (`WouldLose`) lists of objects that numpy would strip of names, metadata or masks."""
    if not isinstance(values, list | tuple) or set(map(type, values)) <= _PLAIN:
        return
    for item in values:
        kind = kind_of(item) or (type(item).__name__ if _has_more(item) else None)
        if kind:
            raise WouldLose(
                f"a list would lose what each {kind} in it has beside its values",
                remedy="combine them first (xarray.concat, numpy.ma.stack), or give their values; "
                "nothing was written",
            )
        if depth > 1:
            refuse_inside(item, depth - 1)


def _has_more(values: Any) -> bool:
    """True for a masked array, and for an `Array` with metadata."""
    masked = type(values).__module__.partition(".")[0] == "numpy" and hasattr(values, "mask")
    return masked or (isinstance(values, Array) and bool(values.meta))


def _used(dataset: Any, dim: Any) -> bool:
    """True if a variable of a Dataset has this dimension."""
    return any(dim in dataset[key].dims for key in dataset.data_vars)


def _text(name: Any, default: str) -> str:
    return default if name is None else str(name)


def _listed(names: list[Any]) -> str:
    return ", ".join(f"'{name}'" for name in names[:5]) + (" …" if len(names) > 5 else "")


def _lost(values: Any, what: str, alternative: str = "") -> WouldLose:
    """The error for a part of an object that would be lost; another remedy is put before ours."""
    return WouldLose(
        f"{what} of the {kind_of(values)} would be lost",
        remedy=f"{alternative}drop them first; nothing was written",
    )


def _refuse_twins(values: Any, names: list[Any]) -> None:
    """Refuse (`WouldLose`) different names that become the same text, such as 1 and "1"."""
    if len({str(name) for name in names}) < len(names):
        raise _lost(values, "names that are the same text")


# xarray ------------------------------------------------------------------------------------------


def _apart(
    values: Any, changes: list[tuple[str, str]], *, several: bool
) -> tuple[list[Array], set[Any]]:
    """Return the coordinates of dimensions that axes cannot hold, as arrays, and their dimensions.

    Only a file of `several` arrays can hold them beside the others; else both are empty.
    """
    arrays: list[Array] = []
    for dim in values.dims if several else ():
        if dim in values.coords and not _fits_into_axis(values.coords[dim]):
            coord = values.coords[dim]
            numbers, units = as_numbers(coord, dim, str(dim), changes)
            made = _array(_without_objects(numbers, str(dim), values), str(dim), [Axis(str(dim))])
            _describe(made, str(dim), coord.attrs, changes)
            if units is not None:
                made.meta = made.meta.replace(units=units)
            arrays.append(made)
    return arrays, {array.name for array in arrays}


def _fits_into_axis(coord: Any) -> bool:
    """True if an axis can hold a coordinate along its dimension: values, type and units."""
    if KEEPS in coord.encoding:  # it was made of an axis
        return True
    units = coord.attrs.get("units", "")
    plain = coord.dtype.kind in "MmOUT" or coord.dtype.str[1:] in ("i8", "f8")
    return plain and isinstance(units, str) and not set(coord.attrs) - {"units"}


def _tree(tree: Any, name: str, changes: list[tuple[str, str]], *, several: bool) -> Bundle:
    """Return a tree with each node as a group; a coordinate stays with its node, as in xarray.

    The root takes the coordinates that it inherits, if it is a part of a larger tree.
    """
    arrays: list[Array] = []
    groups: dict[str, dict[str, Any]] = {}
    top = Bundle([])
    for node in tree.subtree:
        own: list[tuple[str, str]] = []
        made = bundle_of(node.to_dataset(inherit=node is tree), name, own, several=several)
        inside = "" if node is tree else f"{node.relative_to(tree)}/"
        if inside:
            groups[inside[:-1]] = made.attributes
        else:
            top = made
        arrays += [array.replace(name=inside + array.name) for array in made.arrays]
        changes += [((inside + one).rstrip("/"), what) for one, what in own]
    return Bundle(arrays, attributes=top.attributes, groups=groups, formats=top.formats)


def _data_array(
    values: Any, name: str, changes: list[tuple[str, str]], apart: Collection[Any] = ()
) -> Array:
    """Return a DataArray as an array; `apart` are the dimensions with coordinates of their own.

    If it was made of an array of ours, and still has its axes, their metadata is restored.
    """
    kept = values.encoding.get(KEEPS)
    kept = kept if isinstance(kept, dict) and "dims" in kept else {}  # a coordinate has an axis
    placed = _place_of(values, _kept_of(values))
    fresh = bool(kept) and (kept["dims"], kept["shape"]) == (values.dims, values.shape)
    axes = []
    for number, dim in enumerate(values.dims):
        known = [kept["axes"][number]] if fresh else []
        if str(dim) in apart:  # an array of its own holds the rest
            axes.append(Axis(name=str(dim)))
        elif dim in values.coords:
            axes.append(_axis(values, dim, known, name, changes))
        else:
            axes.append(_without_coordinate(dim, known))
        if placed is not None and dim in placed.axes and str(dim) not in apart:
            own = {"name": axes[-1].name, "units": axes[-1].units}
            axes[-1] = placed.axes[dim].replace(**own)
    made = _array(_elements(values, name), name, axes)
    _describe(made, name, values.attrs, changes)
    if kept:
        moved = [*map(_places, axes)] != [_places(Axis(**one)) for one in kept["axes"]]
        formats = kept["formats"]
        left = [key for key in formats if not fresh or (moved and "axes" in formats[key])]
        changes.extend((name, f"left out: what {key} says of its axes") for key in left)
        made.meta = made.meta.replace(
            formats={key: formats[key] for key in formats if key not in left},
            encoding=kept["encoding"],
            space=kept["space"],
        )
    if placed is not None:
        made.meta = made.meta.replace(space=placed.space)
    elif kept and (not fresh or moved):
        made.meta = _without_place(made.meta, kept, name, changes)
    elif any(axis.direction is not None for axis in axes) and not kept:
        made.meta = _without_place(made.meta, _kept_of(values), name, changes)
    return made


class _Placed(Record):
    """The position of a part of an array in space.

    `axes` and `indices` are those of its spatial axes by dimension: what is left of them, and the
    index of each that is gone.
    """

    axes: dict[Any, Axis]
    space: Space | None
    indices: dict[Any, int]


def _kept_of(values: Any) -> dict[str, Any]:
    """Return the record of the array of ours that an object was made of; empty without one.

    Only of an array with spatial axes; objects that are computed of others have it in coordinates.
    """
    for variable in (values, *values.coords.values()):
        kept = variable.encoding.get(KEEPS)
        if isinstance(kept, dict):
            whole: dict[str, Any] = kept.get("of", kept)
            if "dims" in whole and any("direction" in axis for axis in whole["axes"]):
                return whole
    return {}


def _place_of(values: Any, kept: dict[str, Any]) -> _Placed | None:
    """Return the position of a part of an array in space, by its coordinates along the old axes.

    `kept` is the record of the array. None if it had no position, or coordinates were dropped or
    changed.
    """
    if not kept:
        return None
    whole = Metadata(axes=[Axis(**axis) for axis in kept["axes"]], space=kept["space"])
    dims = _names_now(values, kept["dims"])
    parts = [
        _part_along(values, dim, length, axis)
        for dim, length, axis in zip(
            dims, kept["shape"], shown_along(whole.axes, whole.space), strict=True
        )
    ]
    key = [part for part in parts if part is not None]
    if len(key) < len(parts):
        return None
    sliced = whole.sliced(key)
    key_of = dict(zip(dims, key, strict=True))
    remaining = [dim for dim in dims if isinstance(key_of[dim], range)]
    axes = dict(zip(remaining, sliced.axes or [Axis()] * len(dims), strict=False))
    spatial = [
        dim for dim, axis in zip(dims, whole.axes, strict=True) if axis.direction is not None
    ]
    indices = {dim: part for dim, part in key_of.items() if isinstance(part, int)}
    return _Placed(
        {dim: axes[dim] for dim in spatial if dim in axes},
        sliced.space,
        {dim: indices[dim] for dim in spatial if dim in indices},
    )


def _names_now(values: Any, dims: tuple[Any, ...]) -> list[Any]:
    """Return the current names of dimensions by their old ones, which coordinates record."""
    names = {}
    for key, coord in values.coords.items():
        was = coord.encoding.get(KEEPS)
        if isinstance(was, dict) and "of" in was:
            names[was["dim"]] = key
    return [names.get(dim, dim) for dim in dims]


def _part_along(values: Any, dim: Any, length: int, axis: Axis) -> int | range | None:
    """Return the index, or the indices, that are left of an axis; None if they are unknown."""
    if axis.direction is None:  # it has no influence on the position
        return range(length) if dim in values.dims else 0
    coord = values.coords.get(dim)
    if coord is None or coord.dtype.kind not in "if":
        return None
    part = part_of(coord.values.reshape(-1).tolist(), axis, length)
    return part[0] if part is not None and not coord.ndim else part


def _without_place(
    meta: Metadata, kept: dict[str, Any], name: str, changes: list[tuple[str, str]]
) -> Metadata:
    """Return the metadata without a position in the world, which was that of other elements."""
    if kept["space"] is None and not any("direction" in one for one in kept["axes"]):
        return meta
    changes.append((name, "left out: its place in the world"))
    return meta.replace(space=None, axes=[axis.replace(direction=None) for axis in meta.axes])


def _without_coordinate(dim: Any, known: list[dict[str, Any]]) -> Axis:
    """Return the axis of a dimension whose coordinate was dropped, with its labels and spacing."""
    before = Axis(**known[0]) if known else Axis(name=str(dim))
    return Axis(name=before.name, kind=before.kind, units=before.units)


def _axis(
    values: Any, dim: Any, known: list[dict[str, Any]], name: str, changes: list[tuple[str, str]]
) -> Axis:
    """Return the axis of a coordinate; the recorded one if that has the same values.

    `known` has the recorded axis of the array, if it still has its axes.
    """
    coord = values.coords[dim]
    _refuse_levels(coord.to_index(), values)
    was, timed = coord.encoding.get(KEEPS), None
    made_of = [was["axis"]] if isinstance(was, dict) and "axis" in was else []
    # A dimension may be called otherwise than its axis, where another axis has the name.
    own = [*known, *(made_of if made_of and was.get("dim", dim) == dim else [])]
    axis = Axis(name=own[0].get("name") if own else str(dim))
    for fields in [*known, *made_of]:
        before = Axis(**fields)
        if _same(before.values(coord.size), coord.values, bool(known)):
            axis = before
            if not known and was.get("dim", dim) != dim:  # it was renamed
                axis = axis.replace(name=str(dim))
            break
    else:
        numbers, timed = as_numbers(coord, dim, name, changes)
        axis = _with_places(axis, numbers, name, changes)
    attributes = dict(coord.attrs)
    units = attributes.pop("units", timed)
    axis = axis.replace(units=units if isinstance(units, str) else None)
    if units is not None and axis.units is None:
        attributes["units"] = units
    if attributes:
        changes.append((name, f"left out: {_listed(list(attributes))} of coordinate '{dim}'"))
    return axis


def _places(axis: Axis) -> tuple[Any, ...]:
    """Return the fields of an axis that are about the values along it."""
    return axis.labels, axis.spacing, axis.origin


def _same(before: Any, now: np.ndarray[Any, Any], known: bool) -> bool:
    """True if a coordinate has the values of an axis; of a `known` axis without any, indices."""
    if before is None and known:
        return now.dtype.kind == "i" and bool(now.tolist() == [*range(now.size)])
    if before is None or before.dtype.kind != now.dtype.kind:
        return before is not None and before.astype(object).tolist() == now.tolist()
    return bool(before.shape == now.shape and (before == now).all())


def _describe(array: Array, name: str, attrs: Any, changes: list[tuple[str, str]]) -> None:
    """Give an array the attributes of an object; units and long_name become common metadata."""
    attributes = _attributes(name, attrs, changes)
    common = {}
    for key, field in (("units", "units"), ("long_name", "description")):
        if isinstance(attributes.get(key), str) and attributes[key]:
            common[field] = attributes.pop(key)
    array.meta = array.meta.replace(attributes=attributes, **common)


def _attributes(name: str, attrs: Any, changes: list[tuple[str, str]]) -> dict[str, Any]:
    """Return attributes with plain values; `changes` names those that are left out."""
    attributes = {}
    for key, value in dict(attrs).items():
        plain = value.tolist() if hasattr(value, "tolist") else value
        if _is_plain(plain):
            attributes[str(key)] = plain
        else:
            changes.append((name, f"left out: attribute '{key}' of type {type(value).__name__}"))
    return attributes


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bool | int | float | bytes)


def _refuse_levels(index: Any, values: Any) -> None:
    if getattr(index, "nlevels", 1) > 1:
        raise _lost(values, "an index of several levels")


# pandas ------------------------------------------------------------------------------------------


def _series(values: Any, name: str, changes: list[tuple[str, str]]) -> Array:
    if values.index.nlevels > 1:
        return _long(values, [(name, values)], changes)[0]
    axis = Axis(name=None if values.index.name is None else str(values.index.name))
    if not _is_count(values.index):
        labels = _column(values.index, axis.name or "index", values)
        axis = _with_places(axis, labels, name, changes)
    made = _array(_column(values, name, values), name, [axis] if axis.to_dict() else [])
    _describe(made, name, values.attrs, changes)
    return made


def _frame(values: Any, changes: list[tuple[str, str]]) -> Bundle:
    """Return the columns of a DataFrame as arrays; levels of its index become their axes."""
    _refuse_levels(values.columns, values)
    known = values.attrs.get(KEEPS)
    if values.index.nlevels > 1 or (known and known["dims"] == list(values.index.names)):
        _refuse_twins(values, list(values.columns))
        pairs = [(str(key), values.iloc[:, column]) for column, key in enumerate(values.columns)]
        attrs = {key: own for key, own in values.attrs.items() if key != KEEPS}
        about = {} if len(pairs) == 1 else _attributes("", attrs, changes)
        return Bundle(_long(values, pairs, changes), attributes=about)
    columns = {str(key): values.iloc[:, column] for column, key in enumerate(values.columns)}
    axes: list[Axis] = []
    if not _is_count(values.index) or values.index.name is not None:
        index = _text(values.index.name, "index")
        columns = {**columns, index: values.index} if index not in columns else {}
        axes = [Axis(index)]  # by its name readers find the index of all columns
    if len(columns) < len(values.columns):
        raise _lost(values, "columns of the same name")
    arrays = [_array(_column(one, key, values), key, axes) for key, one in columns.items()]
    if values.columns.name is not None:
        changes.append(("", f"left out: the name of the columns, '{values.columns.name}'"))
    return Bundle(arrays, attributes=_attributes("", values.attrs, changes))


def _long(
    table: Any, columns: list[tuple[str, Any]], changes: list[tuple[str, str]]
) -> list[Array]:
    """Return the columns of a long table as arrays whose axes are the levels of its index."""
    import numpy as np

    from raconvert.arrays.interop.pandas_tables import levels_of

    known = table.attrs.get(KEEPS)
    if not known or known["dims"] != list(table.index.names):
        known = {"axes": [], "shape": []}
    kept, orders = known["axes"], []
    for fields, length in zip(kept, known["shape"], strict=True):
        own = Axis(**fields).values(length)
        orders.append(list(range(length)) if own is None else own.tolist())
    numbers, levels = levels_of(table, orders)
    axes = []
    for number, (title, labels) in enumerate(zip(table.index.names, levels, strict=True)):
        axis = Axis(name=title)
        if kept and labels.tolist() == orders[number]:
            axis = Axis(**kept[number])
        elif kept:
            axis = Axis(**{**kept[number], "origin": None, "spacing": None, "labels": None})
            axis = _with_places(axis, _column(labels, str(title), table), "", changes)
        elif title is not None or not _is_range(labels):
            axis = _with_places(axis, _column(labels, str(title), table), "", changes)
        axes.append(axis)
    arrays = []
    for name, values in columns:
        own = _column(values, name, table)
        placed = np.empty(own.shape, own.dtype)
        placed[numbers] = own
        shape = tuple(map(len, levels))
        made = _array(placed.reshape(shape), name, axes)
        if len(columns) == 1:
            attrs = {key: value for key, value in table.attrs.items() if key != KEEPS}
            _describe(made, name, attrs, changes)
        arrays.append(made)
    return arrays


def _is_range(labels: Any) -> bool:
    """True if labels only count from 0."""
    return labels.dtype.kind in "iu" and labels.tolist() == list(range(len(labels)))


def _is_count(index: Any) -> bool:
    """True if an index only counts the rows from 0."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _column(values: Any, name: str, whole: Any) -> np.ndarray[Any, Any]:
    """Return a column of pandas in the type of numpy that holds it exactly."""
    import numpy as np

    dtype = values.dtype
    if not isinstance(dtype, np.dtype):
        if values.isna().any():
            raise _lost(whole, f"the missing values in '{name}'", "fill them, or ")
        own = getattr(dtype, "numpy_dtype", None)
        texts = str(dtype) in ("str", "string")
        if not texts and (own is None or own.kind == "O"):
            raise _lost(whole, f"the type {dtype} of '{name}'", "convert it, or ")
        return _without_objects(values.to_numpy(dtype=object if texts else own), name, whole)
    return _without_objects(values.to_numpy(), name, whole)


def _elements(values: Any, name: str) -> Any:
    """Return the elements of a DataArray or Variable; a dask array as it is, unless of objects."""
    if is_delayed(values.data) and values.dtype.kind not in "OT":
        return values.data
    return _without_objects(values.values, name, values)


def _without_objects(values: np.ndarray[Any, Any], name: str, whole: Any) -> np.ndarray[Any, Any]:
    """Return values as they are, but texts that are objects as texts of one width."""
    import numpy as np

    if values.dtype.kind in "OT":
        listed = values.astype(object).ravel().tolist()
        texts = np.array(listed, "U") if all(isinstance(one, str) for one in listed) else None
        if texts is None or texts.tolist() != listed:
            raise _lost(whole, f"the objects in '{name}'", "convert them, or ")
        return texts.reshape(values.shape)
    return values


# Both --------------------------------------------------------------------------------------------


def _array(values: Any, name: str, axes: list[Axis]) -> Array:
    values = Delayed(values) if is_delayed(values) else flattened(values)
    return Array(
        element_of(values.dtype),
        values.shape[::-1],
        name=name,
        index_order="C",
        data=values,
        meta=Metadata(axes=axes),
    )


def _with_places(
    axis: Axis, values: np.ndarray[Any, Any], name: str, changes: list[tuple[str, str]]
) -> Axis:
    """Return an axis with a coordinate, as origin and spacing if they are exact, else as labels."""
    if beyond(values) is not None:
        raise WouldLose(
            f"the coordinate along axis '{axis.name}' holds a number that is not a character",
            remedy="drop it first; nothing was written",
        )
    listed = values.tolist()
    if values.dtype.kind in "iuf" and len(listed) > 1:
        first, step = listed[0], listed[1] - listed[0]
        if step and listed == [first + number * step for number in range(len(listed))]:
            return axis.replace(origin=first, spacing=step)
    if values.dtype.kind in "mM" or not all(_is_plain(one) for one in listed):
        listed = values.astype(str).tolist() if values.dtype.kind in "mM" else [*map(str, listed)]
        changes.append((name, f"the {values.dtype} along axis '{axis.name}' become texts"))
    return axis.replace(labels=listed)
