"""Arrays as variables of xarray: dimensions, coordinates and attributes; no element is read.

Axes become dimensions of their names; without a name they are ``dim_0``, or ``NAME_dim_0`` among
several arrays. Labels, or origin and spacing, become a coordinate. If two axes of one name differ
(in length, in labels, or as axes of one array), one gets the name; the other becomes ``NAME_axis``,
or ``axis_2``. Metadata that xarray lacks is stored in ``encoding["raconvert"]`` of the variable or
the coordinate, where `raconvert.arrays.interop.from_libraries` finds it when it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raconvert.arrays.scales import type_of_attribute
from raconvert.arrays.space import shown_along
from raconvert.errors import MissingDependency, UsageError, listed
from raconvert.files.quoting import python

try:
    from xarray import DataArray, Dataset, Variable, decode_cf, open_dataset
    from xarray.backends.locks import SerializableLock
    from xarray.core import indexing
except ImportError as _error:
    raise MissingDependency(
        "objects of xarray need a package that is not installed, or too old: xarray",
        remedy="pip install 'raconvert[xarray]'",
    ) from _error

_TEXT = np.dtype("O", metadata={"vlen": str})  # texts, as xarray has them from files of netCDF
KEY = "raconvert"  # in the encoding of variables and coordinates
# The options of xarray's own decoding, and our defaults.
DECODERS: dict[str, Any] = {
    "mask_and_scale": True, "decode_times": True, "concat_characters": False,
    "decode_coords": True, "use_cftime": None, "decode_timedelta": False,
}  # fmt: skip
_VALUES = {"_FillValue", "missing_value"}  # attributes of packed data, in the type of its elements
_OF_NETCDF = {"_NCProperties"}  # which program wrote a file: other engines hide it, too
_PACKING = {*_VALUES, "scale_factor", "add_offset"}

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    class _BackendArray:  # of xarray's classes, which need not be there for type checkers
        """Elements in a file."""

    class _Engine:
        """Base class of engines, for type checkers."""

else:
    from xarray.backends import BackendArray as _BackendArray
    from xarray.backends import BackendEntrypoint as _Engine


class LazyArray(_BackendArray):
    """The elements of an array, read region by region when xarray asks for them."""

    def __init__(self, array: Any, lock: SerializableLock) -> None:
        self.array = array
        self.shape: tuple[int, ...] = array.shape
        self.texts: bool = array.dtype.kind == "S" and array.meta.encoding == "utf-8"
        self.dtype: np.dtype[Any] = _TEXT if self.texts else array.dtype
        self.lock = lock

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._region
        )

    def _region(self, key: tuple[Any, ...]) -> Any:
        """Return a region; slices with negative steps are read forward and reversed in memory."""
        if any(map(_is_backward, key)):
            reverse = tuple(
                slice(None, None, -1) if _is_backward(part) else slice(None)
                for part in key
                if isinstance(part, slice)
            )
            key = tuple(_forward(part, n) for part, n in zip(key, self.shape, strict=True))
            return self._region(key)[reverse]
        if self.array.extent is not None:  # each region is read by itself
            values = self.array[key]
        else:
            with self.lock:
                values = self.array[key]
        return _as_texts(values).astype(object) if self.texts else values


def _is_backward(part: Any) -> bool:
    return isinstance(part, slice) and part.step is not None and part.step < 0


def _forward(part: Any, length: int) -> Any:
    """Return a key of the same indices of an axis in ascending order."""
    if not _is_backward(part):
        return part
    indices = range(length)[part][::-1]
    return slice(indices.start, indices.stop, indices.step) if indices else slice(0, 0)


class Opened(_Engine):
    """Engine of xarray for open arrays, which it then loads and caches as those of a file."""

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
    ) -> Dataset:
        """Return a Dataset of arrays, attributes and namespaces."""
        arrays, attributes, formats = filename_or_obj
        return decoded(dataset_of(arrays, attributes, drop_variables, formats=formats))


def opened(
    arrays: Sequence[Any],
    attributes: dict[str, Any] | None = None,
    formats: dict[str, dict[str, Any]] | None = None,
) -> Dataset:
    """Return open arrays as a Dataset that reads them when it is asked for their values."""
    given: Any = (arrays, attributes or {}, formats or {})
    engine: Any = Opened
    return open_dataset(given, engine=engine)


def data_array(array: Any) -> DataArray:
    """Return one open array as a DataArray that reads it when it is asked for its values."""
    name = array.name or "values"
    made = opened([array.replace(name=name)])
    if name in made.data_vars:
        made_array = made[name]
    else:  # the values of its own axis
        made_array = DataArray(made[name].variable, coords=made.coords, name=name)
    return made_array if array.name else made_array.rename(None)


def dataset_of(
    arrays: Sequence[Any],
    attributes: dict[str, Any],
    drop_variables: str | Iterable[str] | None = None,
    *,
    inside: str = "",
    formats: dict[str, dict[str, Any]] | None = None,
    around: dict[str, int] | None = None,
) -> Dataset:
    """Return arrays as a Dataset; the prefix `inside` is removed from their names.

    `around`: the dimensions of groups around the arrays, and their lengths.
    Raises the `problem` of an array that cannot be read and is not dropped.
    """
    dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    chosen = {array.name.removeprefix(inside): array for array in arrays}
    chosen = {name: array for name, array in chosen.items() if name not in dropped}
    for name, array in chosen.items():
        if array.problem is not None:
            problem = array.problem
            problem.remedy = f"drop_variables=[{python(name)}] leaves it out"
            raise problem
    dims = _Dimensions(chosen, around or {})
    lock = SerializableLock()
    variables = {
        name: _variable(array, name, dims.of(name), lock) for name, array in chosen.items()
    }
    coordinates = {name: own for name, own in dims.coordinates().items() if name not in variables}
    as_coordinates = [name for name, own in variables.items() if own.dims == (name,)]
    coordinates.update({name: variables.pop(name) for name in as_coordinates})
    own = {key: value for key, value in attributes.items() if key not in _OF_NETCDF}
    made = Dataset(variables, coordinates, own)
    if formats:
        made.encoding[KEY] = {"formats": formats}
    return made


def decoded(made: Dataset, **decoders: Any) -> Dataset:
    """Return a Dataset as the CF conventions mean it; nothing is read yet.

    `decoders` are options of `xarray.decode_cf`. Raises `UsageError` for others.
    """
    wrong = next((name for name in decoders if name not in DECODERS), None)
    if wrong is not None:
        raise UsageError(
            f"the engine 'raconvert' has no option '{wrong}'", expected=listed([*DECODERS])
        )
    asked = {**DECODERS, **decoders}
    # The rest, such as `use_cftime`, only where it is asked for: versions of xarray drop them.
    asked = {name: own for name, own in asked.items() if own is not None}
    dataset = decode_cf(made, **asked)
    dataset.encoding.update(made.encoding)
    return dataset


def _variable(array: Any, own: str, dims: tuple[str, ...], lock: SerializableLock) -> Variable:
    meta = array.meta
    attributes = {key: _typed(key, value, array) for key, value in meta.attributes.items()}
    for name, value in (("units", meta.units), ("long_name", meta.description)):
        if value:
            attributes[_free(name, attributes)] = value
    kept = {
        **_whole(array, dims),
        "formats": {name: dict(own) for name, own in meta.formats.items() if own},
        "encoding": meta.encoding,
    }
    data: Any = indexing.LazilyIndexedArray(LazyArray(array, lock))
    if dims == (own,) and array.dtype.kind == "S" and meta.encoding == "utf-8":
        data = _as_texts(array[...])
    return Variable(dims, data, attributes, encoding={KEY: kept})


def _whole(array: Any, dims: tuple[str, ...]) -> dict[str, Any]:
    """Return the facts about the axes of an array by which a part of it can be located later."""
    return {
        "dims": dims,
        "shape": array.shape,
        "axes": [axis.to_dict() for axis in array.axes],
        "space": array.meta.space,
    }


def _typed(key: str, value: Any, array: Any) -> Any:
    """Return an attribute; those of packing in the type that other engines of xarray give them.

    That decides the type of decoded values.
    """
    if key not in _PACKING or not isinstance(value, list | int | float):
        return value
    if key in _VALUES and array.dtype.kind in "iufc":
        descr: Any = array.dtype.newbyteorder("=")
    else:  # the type that the format has recorded
        descr = type_of_attribute(array.meta, key)
    try:
        typed = np.array(value, descr and np.dtype(descr).newbyteorder("="))
    except (TypeError, ValueError, OverflowError):
        return value
    if typed.tolist() != value and not np.isnan(typed.astype("f8", copy=False)).any():
        return value  # another type than that of the elements
    return typed[()] if typed.size != 1 else typed.reshape(-1)[0]


def _as_texts(values: Any) -> Any:
    """Decode the labels of a dimension as UTF-8; return them unchanged if that fails."""
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError:
        return values


def _free(name: str, taken: Any) -> str:
    """Return a name with underscores appended until it is not taken."""
    while name in taken:
        name += "_"
    return name


class _Dimensions:
    """The dimensions of arrays that share them: a name, a length and the values along it."""

    def __init__(self, arrays: dict[str, Any], around: dict[str, int]) -> None:
        self._arrays = arrays
        self._lengths = dict(around)
        self._axes: dict[str, Any] = {}  # the axis of a dimension, if it has values or units
        self._shown: dict[str, Any] = {}  # the same axis with the numbers along it
        self._first: dict[str, Any] = {}  # the name of the array whose axis it is
        self._numbered: dict[str, Any] = {}  # axes whose position a format's namespace has
        self._dims: dict[str, tuple[str, ...]] = {}
        used = {axis.name for one in arrays.values() if one.ndim for axis in one.axes if axis.name}
        own = [name for name, one in arrays.items() if one.ndim == 1 and name in used]
        for name in own:  # the coordinate of this dimension, unless its axis has other values
            (axis,) = arrays[name].axes
            if axis.name in (None, name) and _says_the_same(arrays[name], axis):
                self._lengths[name], self._dims[name] = arrays[name].count, (name,)
        for name in arrays:
            if name not in self._dims:
                self._dims[name] = self._dims_of(name)

    def of(self, name: str) -> tuple[str, ...]:
        """Return the dimensions of an array."""
        return self._dims[name]

    def coordinates(self) -> dict[str, Variable]:
        """Return the coordinates that are made of axes, by dimension."""
        by_dimension = {}
        for dim, axis in self._axes.items():
            values = self._shown[dim].values(self._lengths[dim])
            if values is not None:
                attributes = {"units": axis.units} if axis.units else {}
                first = self._first[dim]
                of = _whole(self._arrays[first], self._dims[first])
                kept = {KEY: {"axis": axis.to_dict(), "dim": dim, "of": of}}
                by_dimension[dim] = Variable((dim,), values, attributes, encoding=kept)
        for dim, axis in self._numbered.items():  # by numbers, a part can be located later
            if dim not in by_dimension and self._dims.get(dim) != (dim,):
                numbers = np.arange(self._lengths[dim])
                kept = {KEY: {"axis": axis.to_dict(), "dim": dim}}
                by_dimension[dim] = Variable((dim,), numbers, {}, encoding=kept)
        return by_dimension

    def _dims_of(self, name: str) -> tuple[str, ...]:
        """Choose the dimensions of an array, and record their axes."""
        array = self._arrays[name]
        placed = any("axes" in space for space in array.meta.formats.values())
        dims: list[str] = []
        shown = shown_along(array.axes, array.meta.space)
        for number, axis in enumerate(array.axes):
            many = len(self._arrays) > 1
            unnamed = f"{name}_dim_{number}" if many else f"dim_{number}"
            for dim in _proposals(name, axis.name, unnamed, axis.name in dims):
                if dim not in dims and self._takes(dim, array.shape[number], axis, shown[number]):
                    self._first.setdefault(dim, name)
                    dims.append(dim)
                    if placed:
                        self._numbered.setdefault(dim, axis)
                    break
        return tuple(dims)

    def _takes(self, dim: str, length: int, axis: Any, shown: Any) -> bool:
        """Record an axis as the dimension of this name and return True, if it can be that."""
        if dim in self._arrays and self._dims.get(dim) != (dim,):
            return False  # a variable of another shape has the name
        if self._lengths.get(dim, length) != length:
            return False
        if self._dims.get(dim) != (dim,) and _says(axis):  # else an array has the values along it
            if dim in self._axes and (
                _says(self._axes[dim]) != _says(axis) or _says(self._shown[dim]) != _says(shown)
            ):
                return False
            self._axes[dim], self._shown[dim] = axis, shown
        self._lengths[dim] = length
        return True


def _says_the_same(array: Any, axis: Any) -> bool:
    """True if an axis has no more metadata than its coordinate, an array, has values and units."""
    fields = _says(axis)
    if not fields:
        return True
    values = axis.values(array.count)
    if fields.keys() - {"units", "spacing", "origin", "labels"} or values is None:
        return False
    if axis.units not in (None, array.meta.units) or array.problem is not None:
        return False
    own = np.asarray(array[...])
    own = _as_texts(own) if own.dtype.kind == "S" else own
    return bool(np.array_equal(own, values))


def _says(axis: Any) -> dict[str, Any]:
    """Return the fields of an axis besides its name."""
    return {key: value for key, value in axis.to_dict().items() if key != "name"}


def _proposals(name: str, axis: str | None, unnamed: str, repeated: bool) -> Iterable[str]:
    """Yield names for the dimension of an axis, the best first, without end."""
    if not repeated:
        yield from [axis, f"{name}_{axis}"] if axis else [unnamed]
    number = 2
    while True:
        yield f"{axis or unnamed}_{number}"
        number += 1
