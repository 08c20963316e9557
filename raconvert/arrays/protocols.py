"""What array libraries ask of an array: length, iteration, NumPy's interface, DLPack, xarray.

All of it goes through the three ways to the elements that an `Array` has itself: `shape`, regions
(``array[key]``) and the whole (``numpy.asarray(array)``).
"""

from __future__ import annotations

from raconvert.arrays.metadata import Axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Self

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


class Protocols(Shown):
    """Base of `Array`: what follows from its shape, its regions, and its elements as a whole."""

    __slots__ = ()

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
