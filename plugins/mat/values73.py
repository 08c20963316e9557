"""The elements of v7.3: datasets of HDF5 as numbers of a class, and as parts of sparse matrices."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from raconvert.arrays.blocks import check_memory, slabs
from raconvert.arrays.dtypes import dtype_of, element
from raconvert.errors import Corrupt, RaconvertError, TooLarge

from ..hdf5.errors import guarded
from .parts import DEFLATE_RATIO
from .sources import Whole, column_places
from .tables import (
    Facts,
    element_of_class,
)
from .tree import in_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]

UNREADABLE = "HDF5 cannot read it"


def matlab_dims(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return MATLAB's dims of a dataset: reversed, two at least."""
    if shape is None:
        raise ValueError("a dataset without a shape")
    dims = tuple(shape[::-1])
    return (*dims, *(1,) * (2 - len(dims)))


def check_stored(source: Any, dataset: Any, path: str) -> None:
    """Refuse a dataset that declares far more than it stores.

    Chunks may be missing and are then zeros (`matfile` writes such); everything else is there.
    """
    nbytes = prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    where = f"variable '{path}'"
    if not dataset.chunks and stored != nbytes:
        raise Corrupt("dataset does not store what its shape says", path=source.path, where=where,
                      expected=f"{nbytes} bytes", got=stored)  # fmt: skip
    if nbytes > source.max_memory and nbytes > stored * DEFLATE_RATIO:
        raise TooLarge(
            f"declares {nbytes} bytes and stores {stored}",
            path=source.path,
            where=where,
            expected=f"at most {source.max_memory} (--max-memory) of mostly missing data",
            remedy=f"if that is right, allow it with --max-memory {-(-nbytes // (1 << 20))}M",
        )


def whole(source: Any, dataset: Any, path: str) -> Values:
    """Return a dataset, if its size is within the memory allowed."""
    check_stored(source, dataset, path)
    nbytes = prod(dataset.shape) * dataset.dtype.itemsize
    check_memory(3 * nbytes, source.max_memory, f"'{source.path}': variable '{path}'")
    with guarded(source.path, f"variable '{path}'", UNREADABLE):
        return np.asarray(dataset[()])


class DatasetNumbers(Whole):
    """Numbers of one class in a dataset, seen as HDF5 has them: slowest axis first."""

    def __init__(self, path: str, source: Any, dataset: Any, kind: Any) -> None:
        super().__init__(path, source.path, source.max_memory)
        self.shape = dataset.shape if len(dataset.shape) > 1 else matlab_dims(dataset.shape)[::-1]
        self.dtype = dtype_of(kind)
        self._dataset = dataset
        check_stored(source, dataset, path)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield slabs in stored order, along the borders of chunks where they are not too long."""
        shape = self._dataset.shape
        row = prod(shape[1:]) * self.dtype.itemsize
        chunk = self._dataset.chunks[0] if self._dataset.chunks else 1
        if shape and 0 < row * chunk <= max_bytes:
            step = max_bytes // (row * chunk) * chunk
            keys: Any = (slice(i, min(i + step, shape[0])) for i in range(0, shape[0], step))
        else:
            keys = slabs(shape, self.dtype.itemsize, max_bytes)
        for key in keys:
            yield self._region(key).reshape(-1)

    def _region(self, key: Any) -> Values:
        with guarded(self._path, f"variable '{self._name}'", UNREADABLE):
            values = np.asarray(self._dataset[key])
        if values.dtype.names is None:
            return self.as_class([values])
        return self.as_class([values["real"], values["imag"]])

    def __getitem__(self, key: Any) -> Any:
        if self._dataset.shape != self.shape or not _is_plain(key):
            return super().__getitem__(key)
        return self._region(key)


def _is_plain(key: Any) -> bool:
    """Tell a key that HDF5 takes as numpy does."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(
        (isinstance(k, int) and k >= 0) or (isinstance(k, slice) and (k.step is None or k.step > 0))
        for k in keys
    )


class SparseDatasets:
    """A sparse matrix in compressed columns; `data` and `ir` are None if it holds nothing."""

    def __init__(self, path: str, source: Any, facts: Facts, data: Any, ir: Any, jc: Any) -> None:
        self.path = path
        self.source = source
        self.facts = facts
        self.data = data
        self.ir = ir
        self.jc = jc

    def places(self) -> tuple[Values, Values]:
        """Return the place of each stored element in column-major order, and the values."""
        rows, columns = self.facts.dims
        values = self._values()
        try:
            places, total = column_places(
                self._indices(self.ir), self._indices(self.jc), rows, columns, values.size
            )
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise
        return places, values[:total]

    def _values(self) -> Values:
        kind = element_of_class(self.facts)
        if self.data is None:
            return np.zeros(0, dtype_of(kind))  # type: ignore[arg-type]
        numbers = DatasetNumbers(self.path, self.source, self.data, kind)
        return np.asarray(numbers[...]).reshape(-1)

    def _indices(self, part: Any) -> Values:
        if part is None:
            return np.zeros(0, np.int64)
        values = whole(self.source, part, self.path).reshape(-1)
        if values.dtype.kind not in "iu" or (values.size and int(values.max()) >= 1 << 62):
            raise Corrupt("sparse matrix has indices that cannot be", path=self.source.path,
                          where=f"variable '{self.path}'")  # fmt: skip
        return values.astype(np.int64)

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """Return the parts as arrays: name, element, count, and what gives the data."""
        whole = element("int", 8)
        count = 0 if self.data is None else prod(self.data.shape)
        rows = 0 if self.ir is None else prod(self.ir.shape)
        return [
            ("data", kind, count, self._values),
            ("ir", whole, rows, partial(self._indices, self.ir)),
            ("jc", whole, prod(self.jc.shape), partial(self._indices, self.jc)),
        ]
