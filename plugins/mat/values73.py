"""The elements of v7.3: datasets of HDF5 as numbers of a class, and as parts of sparse matrices."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from math import prod

import h5py
import numpy as np
from h5py import h5t

from raconvert.arrays.dtypes import dtype_of, element
from raconvert.arrays.memory import check_memory
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, RaconvertError, Unsupported

from ..hdf5.datatypes import kind_of
from ..hdf5.files import guarded
from ..hdf5.objects import numbers_of
from ..hdf5.storage import extent_of
from ..hdf5.values import read_box
from .header import element_of_class
from .sources import cast, column_major_indices
from .tables import Facts, in_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.blocks import Pieces
    from raconvert.files.limits import Limits
    from raconvert.plugin import Extent

    from ..hdf5.datatypes import Kind
    from ..hdf5.values import Dataset

    Values = np.ndarray[Any, Any]

UNREADABLE = "HDF5 cannot read it"
REFERENCES = "references"  # instead of a `Kind`
SMALL = 1 << 16  # bytes of a dataset that is read without HDF5 if it lies in one piece
NUMBERS = (h5t.INTEGER, h5t.FLOAT, h5t.COMPOUND)


class Stored(namedtuple("Stored", "path file dataset kind storage shape")):
    """A dataset of a type that MATLAB writes: the path of its variable, and how it is stored."""

    __slots__ = ()

    @property
    def where(self) -> str:
        """The variable, as messages name it."""
        return f"variable '{self.path}'"

    @property
    def is_complex(self) -> bool:
        """True if an element is a pair of numbers."""
        return self.kind is not REFERENCES and is_complex(self.kind)

    @property
    def code(self) -> str:
        """The code in `TYPE_CODES` of a number, or of both numbers of a pair."""
        return "" if self.kind is REFERENCES else code_of(self.kind)


def type_of(tid: h5t.TypeID, limits: Limits) -> Any:
    """The `Kind` of a type that MATLAB writes, `REFERENCES` to objects, or None.

    MATLAB writes whole numbers and floats that fill their bytes, and pairs of them.
    """
    if tid == h5t.STD_REF_OBJ:
        return REFERENCES
    if tid.get_class() not in NUMBERS:
        return None
    try:
        kind = kind_of(tid, limits)
    except Unsupported:
        return None
    if kind.memory is not None or kind.dims or code_of(kind) not in _CODES:
        return None
    most = 4 * _part(kind).itemsize * (1 + is_complex(kind))  # with padding between the pair
    return kind if kind.buffer.itemsize <= most else None


_CODES = frozenset(("f4", "f8", *(f"{letter}{n}" for letter in "iu" for n in (1, 2, 4, 8))))


def is_complex(kind: Kind) -> bool:
    """True if an element of a dataset is a pair of numbers, real and imaginary."""
    return kind.element.kind == "complex" or kind.buffer.names is not None


def code_of(kind: Kind) -> str:
    """The type of a number, or of both of a pair: f8, u1, ...; empty for other structures."""
    return _part(kind).str[1:]


def _part(kind: Kind) -> np.dtype[Any]:
    """The type of a number, or of one of a pair."""
    dtype = kind.buffer
    if dtype.kind == "c":
        return np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
    if dtype.names is None:
        return dtype
    parts = {dtype[name] for name in dtype.names}
    names = sorted(dtype.names)
    is_pair = names in (["imag", "real"], ["i", "r"]) and len(parts) == 1
    return parts.pop() if is_pair else np.dtype("V1")


def matlab_dims(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """MATLAB's dims of a dataset: reversed, two at least."""
    if shape is None:
        raise ValueError("a dataset without a shape")
    dims = tuple(shape[::-1])
    return (*dims, *(1,) * (2 - len(dims)))


def opened(stored: Stored) -> Dataset:
    """The source of a dataset. Raises `Corrupt` if it does not store all that its shape says.

    Missing chunks, as `matfile` writes them, are read as zeros.
    """
    nbytes = prod(stored.shape) * stored.kind.buffer.itemsize
    if stored.storage.chunk is None and stored.storage.stored != nbytes:
        raise Corrupt("dataset does not store what its shape says", path=stored.file.path,
                      where=stored.where, expected=f"{nbytes} bytes",
                      got=stored.storage.stored)  # fmt: skip
    with guarded(stored.file.path, stored.where, UNREADABLE):
        return numbers_of(stored.file, stored.dataset, stored.kind, stored.storage, stored.where)


def whole(stored: Stored) -> Values:
    """Read all elements of a dataset in stored order; `TooLarge` above the memory limit."""
    source, count = stored.file.source, prod(stored.shape)
    item = 8 if stored.kind is REFERENCES else stored.kind.buffer.itemsize
    check_memory(3 * count * item, source.max_memory, f"'{source.path}': {stored.where}")
    if stored.kind is not REFERENCES:
        small = _small(stored) if 0 < count * item <= SMALL else None
        return opened(stored)[...].reshape(-1) if small is None else small
    references = np.empty(stored.shape, h5py.ref_dtype)
    with guarded(source.path, stored.where, UNREADABLE):
        if count:
            read_box(
                stored.dataset,
                (0,) * references.ndim,
                references.shape,
                references,
                h5t.py_create(references.dtype),
            )
    return references.reshape(-1)


def _small(stored: Stored) -> Values | None:
    """Read a few elements without HDF5, if they lie in one piece as they are; else None."""
    kind, nbytes = stored.kind, prod(stored.shape) * stored.kind.buffer.itemsize
    extent = extent_of(kind, kind.element, stored.storage, [], nbytes, stored.file)
    if extent is None:
        return None
    raw = stored.file.source.read_exact(extent.offset, nbytes, stored.where)
    return np.frombuffer(bytearray(raw), dtype_of(kind.element))


class ClassNumbers(Decoded):
    """Numbers of one class in a dataset, slowest axis first as in HDF5."""

    def __init__(self, stored: Stored, dtype: np.dtype[Any]) -> None:
        self._values = opened(stored)
        self._stored = stored
        source = stored.file.source
        shape = matlab_dims(stored.shape)[::-1]
        what = f"'{source.path}': {stored.where}"
        super().__init__(shape, dtype, what=what, max_memory=source.max_memory)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order, read in slabs of whole chunks."""
        for piece in self._values.stream(max_bytes):
            yield self._of_class(piece)

    def in_pieces(self) -> Pieces | Extent | str:
        """The location of the chunks, if they have the type of the class; else a reason."""
        if self._values.dtype != self.dtype or self._values.shape != self.shape:
            return f"its numbers are stored as {self._values.dtype}, and are {self.dtype}"
        return self._values.in_pieces()

    def stretches(self) -> tuple[Values, Values]:
        """The first bytes and the lengths of all chunks."""
        return self._values.stretches()

    def __getitem__(self, key: Any) -> Any:
        if self._values.shape != self.shape:
            return super().__getitem__(key)
        return self._of_class(self._values[key])

    def _of_class(self, values: Values) -> Values:
        """Stored numbers in the type of the class. Raises `Corrupt` if one does not fit it."""
        if values.dtype == self.dtype:
            return values
        real = self.dtype
        try:
            if real.kind != "c":
                return cast(values, real)
            real = np.dtype(f"{real.byteorder}f{real.itemsize // 2}")
            pairs = (
                (values["real"], values["imag"])
                if values.dtype.names
                else (values.real, values.imag)
            )
            numbers = np.empty(values.shape, self.dtype)
            numbers.real, numbers.imag = (cast(half, real) for half in pairs)
        except ValueError as error:
            raise Corrupt(
                f"a value does not fit the class {real.name}: {error}",
                path=self._stored.file.path,
                where=self._stored.where,
            ) from error
        return numbers


class SparseDatasets:
    """A sparse matrix in compressed columns; `data` and `ir` are None if it has no elements."""

    def __init__(self, facts: Facts, data: Stored | None, ir: Stored | None, jc: Stored) -> None:
        self.path = jc.path
        self.source = jc.file.source
        self.facts = facts
        self.data = data
        self.ir = ir
        self.jc = jc

    def elements(self) -> tuple[Values, Values]:
        """Read the column-major index of each stored element, and the values."""
        rows, columns = self.facts.dims
        values = self._values()
        try:
            indices, total = column_major_indices(
                self._indices(self.ir), self._indices(self.jc), rows, columns, values.size
            )
        except RaconvertError as error:
            in_variable(error, self.path, self.source.path)
            raise
        return indices, values[:total]

    def _values(self) -> Values:
        kind = element_of_class(self.facts)
        if self.data is None:
            return np.zeros(0, dtype_of(kind))  # type: ignore[arg-type]
        numbers = ClassNumbers(self.data, dtype_of(kind))  # type: ignore[arg-type]
        return np.asarray(numbers[...]).reshape(-1)

    def _indices(self, part: Any) -> Values:
        if part is None:
            return np.zeros(0, np.int64)
        values = whole(part)
        if values.dtype.kind not in "iu" or (values.size and int(values.max()) >= 1 << 62):
            raise Corrupt("sparse matrix has impossible indices", path=self.source.path,
                          where=f"variable '{self.path}'")  # fmt: skip
        return values.astype(np.int64)

    def arrays(self, kind: Any) -> list[tuple[str, Any, int, Any]]:
        """The parts as arrays: name, element, count, and how to read it."""
        whole = element("int", 8)
        count = 0 if self.data is None else prod(self.data.shape)
        rows = 0 if self.ir is None else prod(self.ir.shape)
        return [
            ("data", kind, count, self._values),
            ("ir", whole, rows, partial(self._indices, self.ir)),
            ("jc", whole, prod(self.jc.shape), partial(self._indices, self.jc)),
        ]
