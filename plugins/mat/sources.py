"""Array sources over the parts of MAT variables: numbers, char matrices as text, sparse as dense.

Their axes are slowest first. `stream` decodes front to back in bounded memory; a region of a
variable that cannot be read in parts needs all of it in memory (`TooLarge` above
``--max-memory``).
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import cycle
from math import prod

import numpy as np

from raconvert.arrays.blocks import LARGEST_BLOCK
from raconvert.arrays.dtypes import dtype_of
from raconvert.arrays.memory import check_memory
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, RaconvertError, TooLarge
from raconvert.files.threads import ahead

from .tables import HIGH, LOW, SURROGATE_MASK, in_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

    from raconvert.arrays.dtypes import Element
    from raconvert.plugin import Extent

    Values = np.ndarray[Any, Any]

PIECE_BYTES = 1 << 20  # decoded bytes of one piece
ALIVE = 4  # pieces: one is written while others are decoded
AHEAD_BYTES = 8 << 20  # variables below this are decoded without a thread


def cast(values: Values, dtype: np.dtype[Any]) -> Values:
    """Numbers in the type of their class; for logical, True if they are not zero.

    Raises ValueError if a stored number does not fit the class.
    """
    if dtype.kind == "b":
        return values != 0
    if values.dtype == dtype:
        return values
    # A signalling NaN warns in every cast.
    with np.errstate(all="ignore"):
        converted = values.astype(dtype)
        # 64-bit integers as doubles are safe to numpy, but rounded.
        if np.can_cast(values.dtype, dtype, "safe") and values.dtype.itemsize < dtype.itemsize:
            return converted
        same = converted.astype(values.dtype) == values
    for whole, real in ((values, converted), (converted, values)):
        if whole.dtype.kind in "iu" and real.dtype.kind == "f":
            # A float of 2**63 is beyond int64, and may wrap to its largest number and back.
            same &= real < float(np.iinfo(whole.dtype).max) + 1
    if dtype.kind == values.dtype.kind == "f":
        same |= np.isnan(values)
    if not same.all():
        wrong = values.reshape(-1)[np.argmin(same)]
        raise ValueError(f"{wrong} stored as {values.dtype.name}")
    return converted


class Elements(Decoded):
    """The elements of one variable; a region is cut out of the whole variable."""

    def __init__(
        self, name: str, path: str, max_memory: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        super().__init__(shape, dtype, what=f"'{path}': variable '{name}'", max_memory=max_memory)
        self.name = name
        self.path = path

    def as_class(self, halves: list[Values], where: str = "") -> Values:
        """Stored numbers in the class; `halves` are the real and the imaginary part, or only one.

        Raises `Corrupt` for numbers that do not fit the class.
        """
        real = self.dtype
        if real.kind == "c":
            real = np.dtype(f"{real.byteorder}f{real.itemsize // 2}")
        try:
            numbers = [cast(half, real) for half in halves]
        except ValueError as error:
            what = f"a value does not fit the class {real.name}: {error}{where}"
            raise self.corrupt(what) from error
        if len(numbers) == 1:
            return numbers[0]
        whole = np.empty((*numbers[0].shape, 2), real)
        whole[..., 0], whole[..., 1] = numbers
        return whole.view(self.dtype)[..., 0]

    def check(self, nbytes: int, what: str) -> None:
        """Raise `TooLarge` for more bytes than the memory allowed."""
        check_memory(nbytes, self.max_memory, f"{self.what} {what}")

    def corrupt(self, what: str) -> Corrupt:
        """The error for contents that contradict themselves."""
        return Corrupt(what, path=self.path, where=f"variable '{self.name}'")

    def named(self, error: RaconvertError) -> None:
        """Add the name of the variable to an error."""
        in_variable(error, self.name, self.path)


class Numbers(Elements):
    """Numbers of one class, from a real and, if they are complex, an imaginary part."""

    def __init__(
        self,
        name: str,
        path: str,
        max_memory: int,
        *,
        element: Element,
        dims: tuple[int, ...],
        parts: tuple[Any, ...],
    ) -> None:
        super().__init__(name, path, max_memory, dims[::-1], dtype_of(element))
        self._parts = parts

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order; the last one once the checksum was compared."""
        pieces = self._pieces(min(max_bytes, PIECE_BYTES))
        small = self.nbytes < AHEAD_BYTES
        yield from pieces if small else ahead(pieces, ALIVE)

    def in_pieces(self) -> Extent | str:
        """The location of the numbers, if stored in the type of the class; else a reason."""
        if len(self._parts) != 1:
            return "its real and imaginary parts lie apart"
        part = self._parts[0]
        offset = getattr(part, "offset", None)
        if offset is None:
            return "its variable is compressed"
        stored = np.dtype(part.dtype)
        if stored.newbyteorder("<") != self.dtype.newbyteorder("<") or stored.kind == "b":
            return f"its numbers are stored as {stored.name}, and are {self.dtype.name}"
        big = stored.str[0] == ">" and stored.itemsize > 1
        return part.source.extent(offset, part.nbytes, stored.itemsize if big else 1)

    def _pieces(self, max_bytes: int) -> Generator[Values, None, None]:
        """Yield pieces in stored order; buffers take turns, since `ALIVE` pieces may be in use."""
        count = self.count
        step = max(1, max_bytes // self.dtype.itemsize)
        try:
            with ExitStack() as stack:
                readers = []
                for part in self._parts:
                    readers.append(part.open())
                    stack.callback(readers[-1].close)
                widths = [min(step, count) * int(reader.dtype[2:]) for reader in readers]
                turns = [[bytearray(width) for width in widths] for _ in range(ALIVE)]
                for start, buffers in zip(range(0, count, step), cycle(turns), strict=False):
                    size = min(step, count - start)
                    pieces = [_next_of(*pair, size) for pair in zip(readers, buffers, strict=True)]
                    if start + step >= count:
                        readers[-1].finish()
                    yield self.as_class(pieces, f", in the elements from {start}")
        except Corrupt as error:
            self.named(error)
            raise

    def __getitem__(self, key: Any) -> Any:
        regions = [part.region(self.shape, key) for part in self._parts]
        if any(values is None for values in regions):
            return super().__getitem__(key)
        return self.as_class([np.asarray(values) for values in regions])[()]


def _next_of(reader: Any, buffer: bytearray, count: int) -> Values:
    """Read the next numbers of a reader into a buffer; return them."""
    dtype = np.dtype(reader.dtype)
    view = memoryview(buffer)[: count * dtype.itemsize]
    reader.read_into(view)
    return np.frombuffer(view, dtype)


def load(part: Any) -> Values:
    """Read all numbers of a part; the caller has checked the memory."""
    reader = part.open()
    try:
        numbers = _next_of(reader, bytearray(part.nbytes), part.count)
        reader.finish()
    finally:
        reader.close()
    return numbers


# --- char ---------------------------------------------------------------------------------------


class _FromUnits(Elements):
    """A char array; `load` returns its units in stored order: UTF-16 code units, or code points."""

    def __init__(
        self,
        name: str,
        path: str,
        max_memory: int,
        *,
        dims: tuple[int, ...],
        load: Callable[[], Values],
    ) -> None:
        super().__init__(name, path, max_memory, *self._form(dims))
        self._dims = dims
        self._load_units = load

    def _form(self, dims: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape, slowest axis first, and the type of the elements."""
        raise NotImplementedError

    def _units(self, nbytes: int) -> Values:
        """Read the units; raises `TooLarge` if `nbytes` bytes are above the memory allowed."""
        self.check(nbytes, "as text")
        try:
            return self._load_units()
        except RaconvertError as error:
            self.named(error)
            raise


class Chars(_FromUnits):
    """A char array as text: what lies along the last of its dims becomes one string."""

    def _form(self, dims: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        *others, columns = dims
        return tuple(others[::-1]), np.dtype(f"<U{max(1, columns)}")

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the strings in stored order."""
        width = self.dtype.itemsize
        columns, count = self._dims[-1], self.count
        units = self._units(max(width, 2 * count * columns if columns else 4 * count))
        step = max(1, min(max_bytes, LARGEST_BLOCK) // width)
        units = units.reshape(columns, count)
        for start in range(0, count, step):
            yield self._strings(units[:, start : start + step].T)

    def _strings(self, units: Values) -> Values:
        """Rows of units as strings; surrogate pairs become one character."""
        rows, columns = units.shape
        points = np.zeros((rows, max(1, columns)), "<u4")
        points[:, :columns] = units
        if units.dtype.itemsize == 2 and columns > 1:
            join_pairs(points)
        return points.view(self.dtype)[:, 0]


class Units(_FromUnits):
    """A char array as its UTF-16 code units."""

    def _form(self, dims: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return dims[::-1], np.dtype("<u2")

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the units in stored order."""
        units = self._units(4 * self.count)
        if units.dtype.itemsize == 4 and units.size and units.max() > 0xFFFF:
            raise self.corrupt("characters beyond 16 bits are not UTF-16 code units")
        step = max(1, max_bytes // 2)
        for start in range(0, units.size, step):
            yield units[start : start + step].astype("<u2", copy=False)


def join_pairs(points: Values) -> None:
    """Replace each surrogate pair in rows of UTF-16 units by its character; pad with NULs."""
    first = (points[:, :-1] & SURROGATE_MASK) == HIGH
    pair = first & ((points[:, 1:] & SURROGATE_MASK) == LOW) & (points[:, 1:] < 0x10000)
    pair &= points[:, :-1] < 0x10000
    with_pairs = np.flatnonzero(pair.any(axis=1))
    if not with_pairs.size:
        return
    rows, pair = points[with_pairs], pair[with_pairs]
    joined = 0x10000 + ((rows[:, :-1] & 0x3FF) << 10) + (rows[:, 1:] & 0x3FF)
    rows[:, :-1] = np.where(pair, joined, rows[:, :-1])
    gone = np.zeros(rows.shape, bool)
    gone[:, 1:] = pair
    rows[gone] = 0
    order = np.argsort(gone, axis=1, kind="stable")
    points[with_pairs] = np.take_along_axis(rows, order, axis=1)


def text_units(part: Any, dims: tuple[int, ...], *, as_rows: bool = False) -> Values:
    """Read the units of a char array that is stored as numbers or as UTF-8, UTF-16 or UTF-32.

    The dims may count the units, the characters or the bytes of UTF-8: writers differ. With
    `as_rows`, as many bytes as the dims say are decoded as UTF-8 if every row of them is valid.
    """
    data, count = load(part), prod(dims)
    if data.dtype.kind != "u" or data.size == count:
        decoded = _decoded_rows(data, dims) if as_rows and data.dtype.itemsize == 1 else None
        return as_units(data) if decoded is None else decoded
    text = data.tobytes().decode("utf-8", "surrogatepass")
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    if points.size == count:
        return points
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    if units.size != count:
        raise Corrupt("text has another length than its dims say", expected=count, got=units.size)
    return units


def _decoded_rows(data: Values, dims: tuple[int, ...]) -> Values | None:
    """Bytes as characters, each row decoded and padded with NULs; None if a row is not UTF-8."""
    lines = np.ascontiguousarray(data.reshape(dims[-1], prod(dims[:-1])).T)
    units = lines.astype("<u4")
    for line in np.flatnonzero((lines >= 0x80).any(axis=1)):
        try:
            text = lines[line].tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        units[line] = 0
        units[line][: points.size] = points
    return units.T.reshape(-1)


def is_packed(units: Values) -> bool:
    """True if every unit above 255 has two bytes of UTF-8 in it, the first in the upper half."""
    wide = units[units > 0xFF]
    return bool(wide.size and ((wide & 0xE0C0) == 0xC080).all() and (wide >= 0xC280).all())


def unpacked(units: Values) -> Values:
    """Units as characters, those above 255 decoded as two bytes of UTF-8."""
    return np.where(units > 0xFF, (units >> 8 & 0x1F) << 6 | units & 0x3F, units)


def as_units(data: Values) -> Values:
    """Stored numbers as units. Raises `Corrupt` for a number that is not a character."""
    wide = data.dtype.itemsize == 4 and data.dtype.kind == "u"
    limit = 0x10FFFF if wide else 0xFFFF
    with np.errstate(all="ignore"):
        units = data.astype("<u4" if wide else "<u2")
        wrong = (units != data) | (units > limit)
    if wrong.any():
        raise Corrupt(f"{data[np.argmax(wrong)]} is not a character")
    return units


# --- sparse -------------------------------------------------------------------------------------


class Sparse(Elements):
    """A sparse matrix as a dense one, column by column.

    `load` returns the index of each stored element in column-major order, and the values.
    """

    def __init__(
        self,
        name: str,
        path: str,
        max_memory: int,
        *,
        dims: tuple[int, ...],
        element: Element,
        load: Callable[[], tuple[Values, Values]],
    ) -> None:
        super().__init__(name, path, max_memory, dims[::-1], dtype_of(element))
        self._load_elements = load

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield the elements in stored order, zeros included."""
        count = self.count
        nbytes = count * self.dtype.itemsize
        if nbytes > self.max_memory:
            raise TooLarge(
                f"'{self.path}': sparse variable '{self.name}' needs {nbytes} bytes as a dense "
                "array",
                expected=f"at most {self.max_memory} (`--max-memory`)",
                remedy="read its parts instead with `--in-opt sparse=parts`, or allow it with "
                f"`--max-memory {-(-nbytes // (1 << 20))}M`",
            )
        try:
            indices, values = self._load_elements()
        except RaconvertError as error:
            self.named(error)
            raise
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        if (indices[1:] == indices[:-1]).any():
            raise self.corrupt("sparse matrix holds one element twice")
        step = max(1, max_bytes // self.dtype.itemsize)
        for start in range(0, count, step):
            size = min(step, count - start)
            first, last = np.searchsorted(indices, (start, start + size))
            block = np.zeros(size, self.dtype)
            block[indices[first:last] - start] = values[first:last]
            yield block


def column_major_indices(
    ir: Values, jc: Values, rows: int, columns: int, count: int
) -> tuple[Values, int]:
    """The column-major indices of the elements of a compressed-column matrix, and their number.

    `ir` are the rows, `jc` the starts of the columns, `count` is the number of stored values.
    Raises `Corrupt` for indices outside the matrix.
    """
    if jc.size != columns + 1:
        raise Corrupt("sparse matrix has the wrong number of columns", expected=columns + 1,
                      got=jc.size)  # fmt: skip
    jc = jc.astype(np.int64)
    total = int(jc[-1])
    if jc[0] != 0 or (np.diff(jc) < 0).any() or not 0 <= total <= min(ir.size, count):
        raise Corrupt("sparse matrix has column starts that do not ascend from 0 to its elements")
    ir = ir[:total].astype(np.int64)
    if total and (ir.min() < 0 or ir.max() >= rows):
        raise Corrupt("sparse matrix has a row outside its dims", expected=f"below {rows}")
    column = np.repeat(np.arange(columns, dtype=np.int64), np.diff(jc))
    return column * rows + ir, total
