"""What array libraries ask of an array: length, iteration, NumPy's interface, DLPack, xarray.

All of it goes through the three ways to the elements that an `Array` has itself: `shape`, regions
(``array[key]``) and the whole (``numpy.asarray(array)``).
"""

from __future__ import annotations

from raconvert.arrays.metadata import Axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, ClassVar, Self

    import numpy as np
    from pandas import DataFrame
    from xarray import DataArray

    from raconvert.arrays.metadata import Metadata

BLOCK_BYTES = 4 << 20  # read at once while somebody iterates along the first axis
STRIDED_BLOCK_BYTES = 64 << 20  # of an array whose first axis is the fastest: each reads it all


class Shown:
    """Base of what a notebook shows as HTML: arrays, bundles, reports."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from importlib import import_module  # by its name: the views look at all that is shown

        found: str = import_module("raconvert.views.cell").cell_of(self)
        return found


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
        """The truth of the one element; `ValueError`, as of an ndarray, for any other number."""
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
    def applied(self: Any, *others: Any) -> Any:
        import numpy as np

        values = [np.asarray(one) if isinstance(one, Operators) else one for one in others]
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
        """Name the way to what an ndarray has: that reads all elements."""
        if name in _OF_NDARRAYS:
            raise AttributeError(
                f"an Array has no '{name}': np.asarray(array).{name} has it, of all elements"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def device(self) -> str:
        """Where the elements are, in the words of the array API: always ``cpu``."""
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
        def _take_meta(self, meta: Metadata) -> None: ...
        def comes_from(self, origin: Any) -> None: ...  # noqa: D102
        def __getitem__(self, key: Any) -> Any: ...
        def __array__(
            self, dtype: Any = None, copy: bool | None = None
        ) -> np.ndarray[Any, Any]: ...

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is known of each axis, in the order of `shape`."""
        listed = self.meta.axes if self.described else ()
        return listed if len(listed) == len(self.shape) else tuple(Axis() for _ in self.shape)

    @axes.setter
    def axes(self, axes: Iterable[Axis]) -> None:
        from raconvert.arrays.placed import check_axes

        found = list(axes)
        check_axes(self, found)
        self._take_meta(self.meta.replace(axes=found))

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

        Names, labels and all else that is known stay. ``casting="safe"`` refuses (`TypeError`)
        types that cannot hold every value.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.astype("f8")[1, 2]
        array(6.)

        Raises `Unsupported` for types without a place in RA.
        """
        from raconvert.arrays.astype import Again, as_type

        made = self.replace(**as_type(self, dtype, casting))
        if self.origin is not None:
            made.comes_from(Again(self, dtype, casting))
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
        from raconvert.arrays.datasets import data_array

        return data_array(self)

    def to_dataframe(self, *, index: bool = True) -> DataFrame:
        """Return a long table: a row for each element, a level of the index for each axis.

        `index=False` gives the levels as columns. A table is written back as the array it is of.

        >>> with raconvert.open("grid.ra") as array:
        ...     array.to_dataframe().loc[(1, 2)].item()
        6

        Raises `TooLarge` for a table beyond the usual memory, `UsageError` for elements that pandas
        has no type for, `MissingDependency` without it, and `problem` if there is one.
        """
        from raconvert.arrays.frames import table_of

        return table_of([self], index=index)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """The parts along the first axis, in order, several of which are read at once."""
        if not self.shape:
            raise TypeError("iteration over an array without axes")
        count = self.shape[0]
        most = STRIDED_BLOCK_BYTES if self.index_order == "F" else BLOCK_BYTES
        step = max(1, most * count // max(1, self.count * self.itemsize))
        return (one for start in range(0, count, step) for one in self[start : start + step])

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The elements for libraries that know NumPy's interface, mapped where they can be.

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

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **asked: Any) -> Any:
        """The elements for another library, in the order of bytes of this machine.

        They are shared where they are mapped from a file, and the other library knows of memory
        that is not to be written to (DLPack 1.0); else they are copied.
        """
        values = self.__array__()
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        elif not values.flags.writeable and (max_version or (0, 0)) < (1, 0):
            values = values.copy("K")
        return values.__dlpack__(max_version=max_version, **asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device of the elements: always the memory of the processor."""
        return 1, 0
