"""`Array`: one array in memory, lazily: element type, dims and metadata known, data promised.

Two words that are never mixed: `dims` is what an RA header lists, fastest axis first; `shape` is
the logical shape in the array's index order (C or unknown: dims reversed; F: dims as they stand).
`Array.data` is always seen slowest axis first, in C order, whatever the index order is.

Plain classes with slots instead of dataclasses: the command line starts with this module, and
`import dataclasses` alone would cost half a bare interpreter start.
"""

from __future__ import annotations

import os
from math import prod
from operator import attrgetter

from raconvert.arrays.dtypes import Element, dtype_of, element_of, flattened, needs_swap, type_name
from raconvert.arrays.metadata import NO_AXIS, NOTHING, Axis, Metadata
from raconvert.declared import Shown
from raconvert.errors import UsageError, changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, ClassVar, Self

    import numpy as np
    from pandas import DataFrame
    from xarray import DataArray

    from raconvert.errors import RaconvertError
    from raconvert.files.source import Extent


# What array libraries ask of an array: length, iteration, NumPy's interface, DLPack, xarray ------
# All of it goes through the three ways to the elements that an `Array` has itself: `shape`,
# regions (``array[key]``) and the whole (``numpy.asarray(array)``).


BLOCK_BYTES = 4 << 20  # read at once while somebody iterates along the first axis
STRIDED_BLOCK_BYTES = 64 << 20  # the same for column-major arrays, read as a whole for each block


# Operators of Python, and the functions of NumPy that they stand for.
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "matmul": "matmul",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
# Methods of an ndarray, which need all elements.
_OF_NDARRAYS = frozenset({
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "base", "byteswap", "choose",
    "clip", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "fill", "flags",
    "flat", "flatten", "imag", "item", "max", "mean", "min", "nonzero", "partition", "prod",
    "ravel", "real", "repeat", "reshape", "resize", "round", "searchsorted", "sort", "squeeze",
    "std", "strides", "sum", "swapaxes", "take", "trace", "transpose", "var", "view",
})  # fmt: skip


class Operators:
    """Arithmetic, comparisons and truth, elementwise by NumPy on all elements: ndarrays.

    >>> with raconvert.open("grid.ra") as array:
    ...     (array + 1)[0, :2], (array == 5).sum(), float(array[1, 1])
    (array([1, 2], dtype=int32), np.int64(1), 5.0)
    """

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]  # as of an ndarray

    if TYPE_CHECKING:

        def __add__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __radd__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __sub__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __rsub__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __mul__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __rmul__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __truediv__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __rtruediv__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __floordiv__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __mod__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __pow__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __matmul__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __and__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __or__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __xor__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __lt__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __le__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __gt__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __ge__(self, other: Any) -> np.ndarray[Any, Any]: ...
        def __eq__(self, other: object) -> np.ndarray[Any, Any]: ...  # type: ignore[override]
        def __ne__(self, other: object) -> np.ndarray[Any, Any]: ...  # type: ignore[override]
        def __neg__(self) -> np.ndarray[Any, Any]: ...
        def __abs__(self) -> np.ndarray[Any, Any]: ...
        def __invert__(self) -> np.ndarray[Any, Any]: ...
        def __array__(
            self, dtype: Any = None, copy: bool | None = None
        ) -> np.ndarray[Any, Any]: ...

    def __bool__(self) -> bool:
        """True if the one element is; raises `ValueError`, as an ndarray does, for several."""
        return bool(self.__array__())

    def __contains__(self, value: object) -> bool:
        return value in self.__array__()

    def __float__(self) -> float:
        return float(self.__array__())

    def __int__(self) -> int:
        return int(self.__array__())

    def __complex__(self) -> complex:
        return complex(self.__array__())

    def __index__(self) -> int:
        return self.__array__().__index__()


def _operator(function: str, *, reflected: bool = False) -> Callable[..., Any]:
    """Make the method of an operator: a function of NumPy on all elements."""

    def applied(self: Any, *others: Any) -> Any:
        import numpy as np

        values = [np.asarray(other) if isinstance(other, Operators) else other for other in others]
        operands = [*values, np.asarray(self)] if reflected else [np.asarray(self), *values]
        return getattr(np, function)(*operands)

    return applied


for _name, _function in _BINARY.items():
    setattr(Operators, f"__{_name}__", _operator(_function))
    setattr(Operators, f"__r{_name}__", _operator(_function, reflected=True))
for _name, _function in (_COMPARISONS | _UNARY).items():
    setattr(Operators, f"__{_name}__", _operator(_function))
Operators.__hash__ = None


class Protocols(Shown, Operators):
    """Base of `Array`: what follows from its shape, its regions, and its elements as a whole."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Refuse an attribute; for one of ndarrays the message says how to read all elements."""
        if name in _OF_NDARRAYS:
            raise AttributeError(
                f"an Array has no '{name}': np.asarray(array).{name} has it, of all elements"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def device(self) -> str:
        """The device of the elements, in the words of the array API: always ``cpu``."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: object = None) -> Self:
        """Return the array itself, on the device where it is; `ValueError` for another one."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"an Array is on the device 'cpu', not on '{device}'")
        return self

    if TYPE_CHECKING:  # what `Array` has itself

        @property
        def shape(self) -> tuple[int, ...]: ...  # noqa: D102
        @property
        def dtype(self) -> np.dtype[Any]: ...  # noqa: D102
        @property
        def count(self) -> int: ...  # noqa: D102

        index_order: str | None
        dims: tuple[int, ...]
        origin: Any
        meta: Metadata

        @property
        def described(self) -> bool: ...  # noqa: D102

        def replace(self, **changes: Any) -> Self: ...  # noqa: D102
        def listed(self, index_order: str | None, **changes: Any) -> Self: ...  # noqa: D102
        def comes_from(self, origin: Any) -> None: ...  # noqa: D102
        def __getitem__(self, key: Any) -> Any: ...
        def __array__(
            self, dtype: Any = None, copy: bool | None = None
        ) -> np.ndarray[Any, Any]: ...

    @property
    def size(self) -> int:
        """The number of elements, as `count`."""
        return self.count

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self.dtype.itemsize

    @property
    def T(self) -> Self:  # noqa: N802 - as numpy calls it
        """The array with its axes in reverse order, each with its name; no element moves.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.T.shape, array.T[3, 1]
        ((4, 3), array(7, dtype=int32))
        """
        return self.listed("C" if self.index_order == "F" else "F")

    def astype(self, dtype: Any, *, casting: str = "unsafe") -> Self:
        """Return the array with its elements converted as numpy does, when they are read.

        Names, labels and all other metadata stay. ``casting="safe"`` refuses (`TypeError`)
        types that cannot hold every value.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.astype("f8")[1, 2]
        array(6.)

        Raises `Unsupported` for types without a place in RA.
        """
        from raconvert.arrays.astype import Reconversion, as_type

        made = self.replace(**as_type(self, dtype, casting))
        if self.origin is not None:
            made.comes_from(Reconversion(self, dtype, casting))
        return made

    def tolist(self) -> Any:
        """Return all elements as Python values in nested lists, first axis outermost.

        >>> with raconvert.open("two.npz") as bundle:
        ...     bundle["b"].tolist()
        [1.0, 1.0]

        Raises what reading the elements raises.
        """
        return self.__array__().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        r"""Return the bytes of all elements, the last axis fastest (order F: the first).

        >>> with raconvert.open("grid.ra") as array:
        ...     array.tobytes()[:8]
        b'\x00\x00\x00\x00\x01\x00\x00\x00'

        Raises what reading the elements raises.
        """
        from raconvert.arrays.dtypes import opaque

        return opaque(self.__array__()).tobytes(order)  # type: ignore[arg-type]

    def to_xarray(self) -> DataArray:
        """Return a DataArray that reads the elements when they are asked for.

        Labels, or origin and spacing, are coordinates; units and description are the attributes
        ``units`` and ``long_name``. It can be used as long as the array is open.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.to_xarray().isel(dim_0=1).values
        array([4, 5, 6, 7], dtype=int32)

        Raises `problem` if there is one, and `MissingDependency` without xarray.
        """
        from raconvert.arrays.interop.xarray_objects import data_array

        return data_array(self)

    def to_dataframe(self, *, index: bool = True) -> DataFrame:
        """Return a long table: a row for each element, a level of the index for each axis.

        `index=False` gives the levels as columns. `raconvert.write` makes the same array of it.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.to_dataframe().loc[(1, 2)].item()
        6

        Raises `TooLarge` for a table beyond the usual memory, `UsageError` for elements that pandas
        has no type for, `MissingDependency` without it, and `problem` if there is one.
        """
        from raconvert.arrays.interop.pandas_tables import table_of

        return table_of([self], index=index)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the parts along the first axis, in order; several are read at once."""
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        count = self.shape[0]
        block_bytes = STRIDED_BLOCK_BYTES if self.index_order == "F" else BLOCK_BYTES
        step = max(1, block_bytes * count // max(1, self.count * self.itemsize))
        return (part for start in range(0, count, step) for part in self[start : start + step])

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The elements for libraries that know NumPy's interface, mapped from the file if possible.

        Its `data` is a buffer, which keeps the elements alive however long they are looked at.
        Elements of types that the interface cannot name (records, bfloat16) have none: numpy then
        asks `__array__`.
        """
        if self.dtype.kind not in "biufcSU" or not self.count or not self.itemsize:
            raise AttributeError("__array_interface__")
        values = self.__array__()
        stored = values if values.flags.c_contiguous else values.T
        if not stored.flags.c_contiguous:
            raise AttributeError("__array_interface__")
        import numpy as np

        return {
            "version": 3,
            "shape": values.shape,
            "typestr": values.dtype.str,
            "strides": values.strides,
            "data": stored.reshape(-1).view(np.uint8).data,
        }

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **options: Any) -> Any:
        """The elements for another library, in the order of bytes of this machine.

        Elements that are mapped from a file are shared with a library that knows read-only memory
        (DLPack 1.0), and copied for any other.
        """
        values = self.__array__()
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        elif not values.flags.writeable and (max_version or (0, 0)) < (1, 0):
            values = values.copy("K")
        return values.__dlpack__(max_version=max_version, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device of the elements: always the memory of the processor."""
        return 1, 0


UNKNOWN = Element("user", 0, "|", None)  # the element of an array whose type cannot be read


class Array(Protocols):
    """One N-dimensional array: type and dimensions known, data lazy, metadata beside it.

    ``Array(values)`` and ``Array(values, like=other)`` are arrays of values in logical order, the
    second with the name, the index order and the metadata of another of the same shape.

    `name` is the path of the array in its file: the groups it lies in, and its own name, with
    ``/`` between them. `data` is an array source (anything with `shape`, `dtype` and basic slicing,
    slowest axis first) or a callable without arguments that opens one when it is first needed.
    Without it the data is mapped from `extent`. `storage` says in plain values how the file stores
    the array (layout, chunks, filters, stored bytes), for people to read. `meta`, its
    metadata, is an immutable value: assign a new one to change it. `problem` is the error why its
    elements cannot be read, raised when they are asked for; None for nearly all.
    `row_major` is True for an array in Fortran order of a format that is usually row-major: for
    formats that only list axes it is moved to row-major order, to be listed as the usual ones are.

    >>> array = Array(element("int", 2), (4, 3), name="x", index_order="C", data=np.zeros((3, 4)))
    >>> array.dims, array.shape, array.count, array.nbytes
    ((4, 3), (3, 4), 12, 24)
    >>> Array(array[...] + 1, like=array).name
    'x'
    """

    __slots__ = (
        "_data", "_name", "_opened_by", "dims", "element", "extent", "index_order", "mapped",
        "meta", "origin", "owner", "problem", "row_major", "storage",
    )  # fmt: skip
    pending: str = ""  # the type in words, if finding it takes a look at all elements (LateArray)
    renamed: int = 0  # how often any array was renamed, by which a bundle knows a stale index

    def __init__(
        self,
        element: Element | Any,
        dims: tuple[int, ...] | None = None,
        *,
        like: Array | None = None,
        name: str = "",
        index_order: str | None = None,
        meta: Metadata | None = None,
        extent: Extent | None = None,
        data: Any = None,
        storage: dict[str, Any] | None = None,
        row_major: bool = False,
    ) -> None:
        new_values = dims is None
        if dims is None:
            index_order = index_order or (like.index_order if like is not None else "C")
            element, dims, data = fields_of(element, index_order, like)
            if like is not None:
                name = name or like.name
                row_major = like.row_major and index_order == like.index_order
                meta = like.meta.without_later() if meta is None else meta
        self.element: Element = element
        self.dims: tuple[int, ...] = tuple(dims)
        self.index_order: str | None = index_order
        self._name = name
        self.meta: Metadata = NOTHING if meta is None else meta
        self.extent: Extent | None = extent
        self.storage: dict[str, Any] = {} if storage is None else storage
        self.owner: Any = None  # closed together with an array handed out alone
        self.origin: Callable[[], Array] | None = None  # opens it anew, in another process
        self._opened_by = 0  # the process that has opened `data`; only looked at with `origin`
        self.mapped: bool = False  # regions are views of a map, not read
        self.problem: RaconvertError | None = None
        self.row_major: bool = row_major
        self._data = data
        if meta is not None and new_values:
            from raconvert.arrays.metadata import meta_for

            self.meta = meta_for(self, meta)

    @classmethod
    def unreadable(cls, name: str, problem: RaconvertError) -> Array:
        """Return an array that cannot be read, and of which only the name is known.

        Its elements have no bytes. If type and dims are known, set `problem` of that array instead.

        Raises nothing.
        """
        array = cls(UNKNOWN, (), name=name)
        array.problem = problem
        return array

    def settle(self) -> None:
        """Look up the `pending` type, which sets `element` and `problem`. Raises nothing."""

    def _rename(self, name: str) -> None:
        self._name = name
        Array.renamed += 1

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...  # noqa: D102

        @name.setter
        def name(self, name: str) -> None: ...
    else:  # names are read more than all else, which a function would slow down by a fifth
        name = property(attrgetter("_name"), _rename, doc="The path of the array in its file.")

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, one `Axis` each, in the order of `shape`; empty ones without metadata."""
        axes = self.meta.axes
        return axes if len(axes) == len(self.dims) else (NO_AXIS,) * len(self.dims)

    @axes.setter
    def axes(self, axes: Iterable[Axis]) -> None:
        from raconvert.arrays.metadata import check_axes

        listed = list(axes)
        check_axes(self, listed)
        self.meta = self.meta.replace(axes=listed)

    @property
    def ra_axes(self) -> tuple[Axis, ...]:
        """The axes in the order of `dims`, the fastest first; empty if the metadata lists none."""
        return self.meta.axes if self.index_order == "F" else self.meta.axes[::-1]

    @property
    def described(self) -> bool:
        """True if there is metadata, or some will be known when all elements have been read."""
        meta = self.meta
        return meta is not NOTHING and (meta.later is not None or bool(meta))

    @property
    def bare(self) -> bool:
        """True if an .ra holds all that there is to say of the array."""
        return self.element.kind != "user" and self.index_order != "F" and not self.described

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape, in the array's index order."""
        return self.dims if self.index_order == "F" else self.dims[::-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements, uncompressed."""
        return self.count * self.element.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the elements, byte order included."""
        return dtype_of(self.element)

    @property
    def data(self) -> Any:
        """The array source: slowest axis first, C order; opened or mapped on first use."""
        if self.problem is not None:
            raise self.problem
        if self.origin is not None and self._opened_by != os.getpid() and self.extent is None:
            self._open_anew(self.origin)
        if self._data is None and self.extent is None and self.count:
            raise UsageError(
                f"array '{self.name}' is closed", remedy="open its file again, or copy it before"
            )
        if self._data is None:
            from raconvert.arrays.regions import map_extent

            self._data = map_extent(self.name, self.element, self.dims, self.extent)
        elif callable(self._data):
            self._data = self._data()
        return self._data

    @data.setter
    def data(self, source: Any) -> None:
        self._data, self.origin = source, None

    def comes_from(self, origin: Callable[[], Array]) -> None:
        """Set a function that opens the array anew in another process, forked or sent a pickle.

        `origin` can be pickled. It is not called in this process. Raises nothing.
        """
        self.origin, self._opened_by = origin, os.getpid()

    def _open_anew(self, origin: Callable[[], Array]) -> None:
        """Open the data in this process: files that another process has open are not shared."""
        opened = origin()
        if (opened.dims, opened.element) != (self.dims, self.element):
            raise changed(getattr(opened.owner, "path", ""))
        self._data, self.owner, self._opened_by = opened.data, opened, os.getpid()

    @property
    def source(self) -> Any:
        """The array source as it was given: maybe a callable, None for an extent not yet mapped."""
        return self._data

    def replace(self, **changes: Any) -> Array:
        """Return a copy with some fields changed; give `extent` and `data` anew with `dims`.

        `data` given as values (an ndarray, or what numpy makes one of) is in logical order, of the
        shape and index order that the copy has: what ``numpy.asarray(array)`` gives, changed. Its
        type becomes that of the copy, and any extent is dropped. Values of another shape are a
        `UsageError`. A lazy source (it has `stream`, or is a callable that opens one) is seen
        slowest axis first, as everywhere.

        >>> with raconvert.open("grid.ra") as array:
        ...     twice = array.replace(data=2.0 * np.asarray(array), name="twice")
        >>> twice.element.kind, twice[0, 3]
        ('float', array(6.))

        Raises `UsageError` for values of another shape or masked ones, `Unsupported` for values of
        a type without a place in RA.
        """
        fields = {
            "element": self.element,
            "dims": self.dims,
            "name": self.name,
            "index_order": self.index_order,
            "meta": self.meta,
            "extent": self.extent,
            "data": self._data,
            "storage": self.storage,
        }
        fields.update(changes)
        if fields["index_order"] == self.index_order:
            fields.setdefault("row_major", self.row_major)
        data = changes.get("data")
        new_values = data is not None and not callable(data) and not hasattr(data, "stream")
        turned = self.ndim > 1 and (fields["index_order"] == "F") != (self.index_order == "F")
        if turned and "dims" not in changes:
            if not new_values:
                raise UsageError(
                    f"array '{self.name}' would be transposed by another index order alone",
                    remedy="transpose it with array.T, or give its values too, in logical order",
                )
            fields["dims"] = self.dims[::-1]
        if new_values:
            take_values(fields, changes)
            if fields["meta"].later is not None:
                fields["meta"] = fields["meta"].without_later()
        other = Array(fields.pop("element"), fields.pop("dims"), **fields)
        other.owner = self.owner
        if not new_values:
            other.problem = self.problem
        moved = changes.get("dims", self.dims) != self.dims
        if not moved and not changes.keys() & {"element", "extent", "data"}:
            other.origin, other._opened_by = self.origin, self._opened_by
            other.mapped = self.mapped
        return other

    def listed(self, index_order: str | None, **changes: Any) -> Array:
        """Return the array with the same dims, listed in an index order: F after C transposes it.

        Metadata is turned with the shape. `changes` as of `replace`, and raises what that does.
        """
        if self.ndim > 1 and (index_order == "F") != (self.index_order == "F") and self.meta:
            changes.setdefault("meta", self.meta.permuted(range(self.ndim)[::-1]))
        return self.replace(index_order=index_order, dims=self.dims, **changes)

    def __getitem__(self, key: Any) -> Any:
        """Pick elements with any key that NumPy takes, as an ndarray; only those are read.

        Integers, slices, an Ellipsis and new axes are one region; lists of indices and masks are
        read as few regions.

        >>> with raconvert.open("grid.ra") as array:
        ...     array[1:, 0], array[[2, 0], 1]
        (array([4, 8], dtype=int32), array([9, 1], dtype=int32))

        Raises `IndexError` as numpy does, `Corrupt` or `ReadFailed` for data that cannot be read.
        """
        try:
            return self._picked(key)
        except MemoryError as error:
            from raconvert.arrays.memory import out_of_memory

            raise out_of_memory(self.name, self.nbytes, self.storage) from error

    @property
    def slicer(self) -> Slicer:
        """Parts with their metadata: ``array.slicer[1:, ..., 0]`` is an `Array`.

        It takes integers, slices and an Ellipsis; names, labels, spacing, coordinates and the
        position in space are those of the part, and nothing is read.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.slicer[1:, ::2].shape
        (2, 2)
        """
        return Slicer(self)

    def _picked(self, key: Any) -> Any:
        """Pick elements as `__getitem__` does, which explains a `MemoryError`."""
        from raconvert.arrays.regions import chosen, only_basic, without_new_axes

        if only_basic(key):
            key, added = without_new_axes(key)
            values = self._region(key)
            return values if added is None else values[added]
        if self.problem is not None:
            raise self.problem
        first = key[0] if isinstance(key, list) and key else key
        if self.dtype.names is not None and isinstance(first, str):  # fields of a structure
            return self.__array__()[key].copy()
        from raconvert.arrays.dtypes import opaque, opaque_dtype

        dtype = self.dtype
        if not getattr(self.data, "by_regions", True):
            return opaque(self.__array__())[key].copy().view(dtype)
        values = chosen(
            self.shape, opaque_dtype(dtype), key, lambda region: opaque(self._region(region))
        )
        return values.view(dtype)

    def _region(self, key: Any) -> Any:
        """Return the region of integers, slices and an Ellipsis, read from the file if possible."""
        import numpy as np

        from raconvert.arrays.regions import full_key, is_basic, picked

        if self.problem is not None:
            raise self.problem
        key = full_key(key, self.ndim)
        extent = self._read_from(key)
        if extent is not None:
            from raconvert.arrays.memory import MAX_RANK, too_many_axes
            from raconvert.arrays.regions import read_region

            if self.ndim > MAX_RANK:
                raise too_many_axes(self.name, self.ndim, extent.path)
            stored = key[::-1] if self.index_order == "F" else key
            values = read_region(self.element, self.dims, extent, stored)
            return values.T if self.index_order == "F" else values
        data = self.data
        if self.index_order != "F":
            values = picked(data, key)
        elif isinstance(data, np.ndarray) or not is_basic(key):
            values = picked(data.T if isinstance(data, np.ndarray) else self.__array__(), key)
        else:
            values = np.asarray(picked(data, key[::-1])).T
        if isinstance(values, np.ndarray):
            return np.asarray(values)  # not as a subclass, such as a memmap
        if isinstance(values, np.void) and values.dtype.names is not None:
            return np.asarray(values)  # the padding of the structure included
        return np.asarray(values, dtype=data.dtype)  # a scalar has forgotten its byte order

    def _read_from(self, key: tuple[Any, ...]) -> Extent | None:
        """Return the extent that a region is read from; None for a map and for other data.

        A map of a file that another program cuts short would end the process.
        """
        extent = self.extent
        from raconvert.arrays.regions import is_basic

        if not is_basic(key) or self.mapped or extent is None or not self.nbytes:
            return None
        return extent if extent.swap == needs_swap(self.element) else None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the whole array in logical order; a view where the file can be mapped.

        As with ``numpy.load(..., mmap_mode="r")``, a file that another program makes shorter ends
        the process (SIGBUS) when a map of it is looked at. ``array[...]`` reads instead, into
        memory of its own: missing bytes are then an error.

        >>> with raconvert.open("grid.ra") as array:
        ...     np.asarray(array).shape
        (3, 4)

        Raises `Corrupt` or `ReadFailed` for data that cannot be read, `TooLarge` without memory.
        """
        try:
            return self._whole(dtype, copy)
        except MemoryError as error:
            from raconvert.arrays.memory import out_of_memory

            raise out_of_memory(self.name, self.nbytes, self.storage) from error

    def _whole(self, dtype: Any, copy: bool | None) -> np.ndarray[Any, Any]:
        """Return all elements as `__array__` does, which explains a `MemoryError`."""
        import numpy as np

        values = self.data
        if not isinstance(values, np.ndarray):
            values = values[()] if self.dims == () else values[:]
        values = values if isinstance(values, np.ndarray) else np.asarray(values, self.dtype)
        if self.index_order == "F":
            values = values.T
        if values.dtype.names is not None and dtype in (None, values.dtype):
            from raconvert.arrays.dtypes import opaque

            return np.array(opaque(values), copy=copy).view(values.dtype)
        return np.array(values, dtype=dtype, copy=copy)

    def close(self) -> None:
        """Drop the data; a mapped file is closed when no view of it is left.

        Raises what closing its file raises.
        """
        self._data = None
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.close()

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle: where the elements are in a file, or else the elements."""
        from raconvert.arrays.pickling import state_of

        return state_of(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        from raconvert.arrays.summary import array_lines

        return "\n".join(array_lines(self))


class Slicer:
    """Takes parts of an array: ``array.slicer[1:, ..., 0]``."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Array:
        from raconvert.arrays.slicing import sliced

        part: Array = sliced(self._array, key)
        return part


# Values that are given for an array: what numpy makes of them, and whether they fit it -----------


def fields_of(
    values: Any, index_order: str | None, like: Any
) -> tuple[Element, tuple[int, ...], Any]:
    """Return element, dims and data of values in logical order.

    Raises `UsageError` for another shape than that of `like`, if given.
    """
    array = values_of(values)
    if like is not None and array.shape != like.shape:
        raise _other_shape(like.name, like.shape, array.shape)
    column_major = index_order == "F"
    dims = array.shape if column_major else array.shape[::-1]
    return element_of(array.dtype), dims, array.T if column_major else array


def _other_shape(name: str, shape: tuple[int, ...], got: tuple[int, ...]) -> UsageError:
    return UsageError(
        f"the values for array '{name}' have another shape",
        expected=shape,
        got=got,
        remedy="give them in the order of `shape`, as numpy.asarray(array) does",
    )


def take_values(fields: dict[str, Any], changes: dict[str, Any]) -> None:
    """Set the fields of an array to values in logical order; see `Array.replace`."""
    values = values_of(fields["data"])
    column_major = fields["index_order"] == "F"
    shape = tuple(fields["dims"] if column_major else fields["dims"][::-1])
    if values.shape != shape:
        raise _other_shape(fields["name"], shape, values.shape)
    element = element_of(values.dtype)
    if "element" not in changes:
        fields["element"] = element
    elif element.kind != fields["element"].kind or element.nbytes != fields["element"].nbytes:
        raise UsageError(
            f"the values for array '{fields['name']}' have another type",
            expected=type_name(fields["element"]),
            got=type_name(element),
        )
    fields["data"] = values.T if column_major else values
    fields["extent"], fields["storage"] = None, {}


def values_of(values: Any) -> np.ndarray[Any, Any]:
    """Return the ndarray that numpy makes of values.

    Raises `UsageError` if it makes none, as of lists of unequal lengths, and for a mask, which no
    format here keeps.
    """
    import numpy as np

    if type(values).__module__.partition(".")[0] == "numpy" and hasattr(values, "mask"):
        raise UsageError("a masked array would lose its mask", remedy="fill it first: a.filled()")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the argument is not an array: {error}", expected="anything that numpy.asarray takes"
        ) from error
    return array if array.dtype.names is None else flattened(array)
