"""Columns of Arrow as those of a table, and arrays as columns of Arrow.

Elements are taken out of the buffers of Arrow as they are. A value is missing if it is null; NaN is
a value. NaT is a value in memory and null in a file; a record tells if nulls are NaT.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, WouldLose
from raconvert.plugin import Axis

from . import record as records
from .model import Column, Table, check_columns, missing_value, unique_names
from .plan import fields_of
from .reader import bundle_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.plugin import Array, Bundle, Source

    from .model import Piece
    from .reader import Asked

    Values = np.ndarray[Any, Any]

UNITS = ("s", "ms", "us", "ns")
DECIMAL_WIDTH = 84  # characters of the longest decimal number of Arrow as text
PIECE_ROWS = 1 << 16  # most rows that are read together
_MIN = np.iinfo(np.int64).min


def failures() -> tuple[type[BaseException], ...]:
    """The types of errors that pyarrow raises for a file."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, KeyError, IndexError, MemoryError,
            OverflowError, TypeError, NotImplementedError)  # fmt: skip


def corrupt(source: Source, error: BaseException) -> RaconvertError:
    """Our error for one of pyarrow."""
    if isinstance(error, RaconvertError):
        return error
    words = str(error).partition("\n")[0][:200] or type(error).__name__
    return Corrupt(f"pyarrow cannot read it: {words}", path=source.path)


def read_by_arrow(source: Source, table_in: Callable[[Any], ArrowTable], asked: Asked) -> Bundle:
    """Read the arrays of the table that `table_in` makes of the open file; the bundle closes it.

    Raises `Corrupt` for the errors of pyarrow.
    """
    file = source.open()
    try:
        table = table_in(file)
        bundle = bundle_of([table], asked)
    except failures() as error:
        file.close()
        raise corrupt(source, error) from error
    except BaseException:
        file.close()
        raise
    bundle.close_with(file.close)
    bundle.attributes = dict(table.of_file.get("attributes", {}))
    bundle.formats = dict(table.of_file.get("formats", {}))
    return bundle


# Types -------------------------------------------------------------------------------------------


class Kind(Record):
    """The NumPy form of the values of an Arrow type; `shape` is that of one value.

    `problem` is the reason why it has none, `note` a note for a column of the type.
    """

    dtype: np.dtype[Any] | None = None  # None for texts, whose width depends on the values
    shape: tuple[int, ...] = ()
    order: tuple[int, ...] = ()  # the logical order of the stored axes of a tensor
    axes: tuple[Axis, ...] = ()
    problem: str = ""
    note: str = ""
    zone: str = ""
    scale: int = 1  # what whole numbers are multiplied with


def kind_of(of: Any, decimals: str) -> Kind:
    """The kind of a type of Arrow. Raises nothing."""
    import pyarrow as pa

    if isinstance(of, pa.FixedShapeTensorType):
        return _tensor(of, decimals)
    if isinstance(of, pa.BaseExtensionType):
        return kind_of(of.storage_type, decimals)
    if pa.types.is_dictionary(of):
        return kind_of(of.value_type, decimals)
    if pa.types.is_fixed_size_list(of):
        inner = kind_of(of.value_type, decimals)
        if inner.problem or inner.dtype is None:
            return Kind(problem=f"lists of {of.value_type}")
        return inner._replace(shape=(of.list_size, *inner.shape))
    if pa.types.is_decimal(of):
        if decimals == "text":
            return Kind()
        return Kind(problem=f"decimal numbers ({of}): no type here holds them; as text with "
                    "`--in-opt decimals=text`")  # fmt: skip
    return _of_type(of)


def _of_type(of: Any) -> Kind:
    """The kind of a type without inner types."""
    import pyarrow as pa

    types = pa.types
    time = _of_time(of)
    if time is not None:
        return time
    if types.is_boolean(of):
        return Kind(np.dtype("?"))
    if types.is_integer(of) or types.is_floating(of):
        return Kind(np.dtype(of.to_pandas_dtype()))
    if types.is_null(of):
        return Kind(np.dtype("f8"))
    if types.is_fixed_size_binary(of):
        return Kind(np.dtype(f"V{of.byte_width}")) if of.byte_width else Kind(problem="no bytes")
    is_text = types.is_string(of) or types.is_large_string(of) or types.is_string_view(of)
    if is_text or _is_binary(of):
        return Kind()
    return Kind(problem=f"values of the type {str(of)[:60]}")


def _of_time(of: Any) -> Kind | None:
    """The kind of a type of times; None for other types."""
    import pyarrow as pa

    if pa.types.is_timestamp(of):
        return Kind(np.dtype(f"M8[{of.unit}]"), zone=of.tz or "")
    if pa.types.is_duration(of):
        return Kind(np.dtype(f"m8[{of.unit}]"))
    if pa.types.is_date(of):
        return Kind(np.dtype("M8[D]" if pa.types.is_date32(of) else "M8[ms]"))
    if pa.types.is_time(of):
        return Kind(np.dtype(f"m8[{of.unit}]"), note="times of day are durations from midnight")
    return None


def _tensor(of: Any, decimals: str) -> Kind:
    """The kind of fixed-shape tensors."""
    inner = kind_of(of.value_type, decimals)
    shape = tuple(of.shape)
    if inner.problem or inner.dtype is None or inner.shape:
        return Kind(problem=f"tensors of {of.value_type}")
    if any(length < 0 for length in shape) or len(shape) > 60:
        return Kind(problem=f"tensors of the shape {shape[:8]}")
    order = tuple(of.permutation or range(len(shape)))
    names = list(of.dim_names or [])
    if sorted(order) != list(range(len(shape))) or len(names) not in (0, len(shape)):
        return Kind(problem="tensors whose axes contradict their shape")
    axes = tuple(Axis(names[n] or None) for n in order) if names else ()
    return Kind(inner.dtype, shape, order, axes)


def _is_binary(of: Any) -> bool:
    """True for bytes of any length, also in a dictionary."""
    import pyarrow as pa

    of = of.value_type if pa.types.is_dictionary(of) else of
    types = pa.types
    return bool(types.is_binary(of) or types.is_large_binary(of) or types.is_binary_view(of))


def values_of(cells: Any, kind: Kind, dtype: np.dtype[Any], source: Source) -> Piece:
    """The values of an array of Arrow, and a mask of the nulls; None without nulls."""
    import pyarrow as pa

    if isinstance(cells, pa.ExtensionArray):
        cells = cells.storage
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    mask = _nulls(cells)
    if kind.shape:
        flat = _inner_values(cells, kind, mask, source)
        shape = (len(cells), *kind.shape)
        if flat.size != prod(shape):
            raise Corrupt("a tensor has a wrong number of elements", path=source.path,
                          expected=prod(shape), got=flat.size)  # fmt: skip
        values = flat.reshape(shape)
        if kind.order and kind.order != tuple(range(len(kind.order))):
            values = values.transpose(0, *(n + 1 for n in kind.order))
        values = np.ascontiguousarray(values)
        if mask is not None:
            values = values.copy()
            values[mask] = missing_value(dtype)
        return values, mask
    if kind.dtype is None:
        return _texts(cells, dtype, source), mask
    values = _flat(cells, kind.dtype)
    if mask is not None:
        values = values.copy()
        values[mask] = missing_value(kind.dtype)
    return values, mask


def _nulls(cells: Any) -> Values | None:
    """The mask of the nulls; None without any."""
    if not cells.null_count:
        return None
    mask: Values = cells.is_null().to_numpy(zero_copy_only=False)
    return mask


def _inner_values(cells: Any, kind: Kind, mask: Values | None, source: Source) -> Values:
    """The values in lists of one length, also those in missing lists."""
    import pyarrow as pa

    rows = len(cells)
    while pa.types.is_fixed_size_list(cells.type):
        size, start = cells.type.list_size, cells.offset
        cells = cells.values.slice(start * size, len(cells) * size)
        if isinstance(cells, pa.ExtensionArray):
            cells = cells.storage
    absent = _nulls(cells)
    if absent is not None and kind.dtype is not None and kind.dtype.kind in "mM":
        values = _flat(cells, kind.dtype).copy()
        values[absent] = missing_value(kind.dtype)  # NaT
        return values
    if absent is not None:
        in_rows = absent.reshape(rows, -1).any(axis=1)
        if mask is None or (in_rows & ~mask).any():
            raise Unsupported("has lists in which some values are missing", path=source.path)
    return _flat(cells, kind.dtype)  # type: ignore[arg-type] # texts have no shape here


def _flat(cells: Any, dtype: np.dtype[Any]) -> Values:
    """The elements of an array of a fixed width, taken from its buffer."""
    import pyarrow as pa

    count, start = len(cells), cells.offset
    if pa.types.is_null(cells.type):
        return np.full(count, np.nan)
    if pa.types.is_boolean(cells.type):
        bools: Values = cells.fill_null(False).to_numpy(zero_copy_only=False)
        return bools
    if pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type):
        raw = np.frombuffer(cells.buffers()[1], np.int32)[start : start + count]
        return raw.astype(np.int64).view(dtype)
    buffer = cells.buffers()[1]
    if buffer is None or not count:
        return np.zeros(count, dtype)
    return np.frombuffer(buffer, dtype, count, start * dtype.itemsize)


def _texts(cells: Any, dtype: np.dtype[Any], source: Source) -> Values:
    """The texts, bytes or decimal numbers of an array; empty ones for nulls."""
    import pyarrow as pa

    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.string())
    listed = cells.to_pylist()
    empty: Any = b"" if dtype.kind == "S" else ""
    values = np.array([empty if text is None else text for text in listed], dtype.kind)
    if values.dtype.itemsize > dtype.itemsize:
        raise Corrupt("a text is longer than when the file was opened", path=source.path)
    return values.astype(dtype) if listed else np.empty(0, dtype)


# Tables ------------------------------------------------------------------------------------------


class ArrowTable(Table):
    """A table of record batches; `batches(numbers, rows)` yields some columns piece by piece."""

    cheap = True

    def __init__(
        self, source: Source, schema: Any, rows: int,
        batches: Callable[[Sequence[int], int], Iterator[Any]], *, decimals: str = "refuse",
    ) -> None:  # fmt: skip
        check_columns(len(schema), source)
        if rows > max(source.max_memory, source.limits.expansion_ratio * source.size):
            raise TooLarge("declares more rows than its bytes can hold", path=source.path,
                           got=rows)  # fmt: skip
        self._batches = batches
        self._kinds = [kind_of(field.type, decimals) for field in schema]
        names = unique_names([field.name for field in schema])
        super().__init__(source, source.stem, [], rows)
        self.of_file: dict[str, Any] = {}  # attributes and namespaces of the file in the record
        self.record = self._record_in((schema.metadata or {}).get(records.KEY.encode()))
        self._casts: dict[int, np.dtype[Any]] = {}
        self._binary = {n for n, field in enumerate(schema) if _is_binary(field.type)}
        widths = self._measured()
        for number, name in enumerate(names):
            self.columns.append(self._column(number, name, widths))
        self._apply_record()
        pairs = zip(names, self._kinds, strict=True)
        self.notes += [f"column '{name[:60]}': {kind.note}" for name, kind in pairs if kind.note]

    def _record_in(self, text: bytes | None) -> dict[str, Any] | None:
        """The record in the text of a schema; None without one, or with a note if it is wrong."""
        if text is None:
            return None
        record = records.parse(text.decode("utf-8", "replace"), self.source.limits)
        if record is None or len(record["tables"]) != 1:
            self.notes.append("what the file says of its arrays has another form: ignored")
            return None
        self.of_file = record.get("file", {})
        of_table: dict[str, Any] = next(iter(record["tables"].values()))
        return of_table

    def _measured(self) -> dict[int, tuple[int, bool]]:
        """Read all columns once: length of the longest text, and True if values are missing."""
        import pyarrow as pa

        widths = {n: (0, False) for n, kind in enumerate(self._kinds) if not kind.problem}
        rows = 0
        for batch in self._batches(list(widths), PIECE_ROWS) if widths else ():
            rows += batch.num_rows
            for (number, (width, nullable)), cells in zip(
                [*widths.items()], batch.columns, strict=True
            ):
                kind = self._kinds[number]
                if kind.dtype is None and len(cells):
                    if pa.types.is_dictionary(cells.type):
                        cells = cells.dictionary_decode()  # noqa: PLW2901
                    widths[number] = max(width, self._width(cells, number)), nullable
                widths[number] = widths[number][0], nullable or cells.null_count > 0
        if widths and rows != self.rows:
            raise Corrupt("has another number of rows than it says", path=self.source.path,
                          expected=self.rows, got=rows)  # fmt: skip
        return widths

    def _width(self, cells: Any, number: int) -> int:
        """The length of the longest text; a text that ends with NUL is a problem of the column."""
        import pyarrow as pa

        if pa.types.is_decimal(cells.type):
            return DECIMAL_WIDTH
        texts = [text for text in cells.to_pylist() if text]
        end: Any = b"\0" if number in self._binary else "\0"
        if any(text.endswith(end) for text in texts):
            self._kinds[number] = Kind(problem="texts that end with NUL, which no type here keeps")
        return max(map(len, texts), default=0)

    def _column(self, number: int, name: str, widths: dict[int, tuple[int, bool]]) -> Column:
        """A column, unreadable if its kind has a problem or its texts are above the memory."""
        kind = self._kinds[number]
        if kind.problem:
            problem = Unsupported(f"column '{name[:60]}' has {kind.problem}", path=self.source.path)
            return Column(name, np.dtype("V1"), problem=problem)
        width, nullable = widths[number]
        dtype = kind.dtype
        if dtype is None:
            letter = "S" if number in self._binary else "U"
            dtype = np.dtype(f"{letter}{max(1, width)}")
            if self.rows * dtype.itemsize > max(self.source.max_memory, 64 * self.source.size):
                large = TooLarge(
                    f"column '{name[:60]}': texts as wide as the longest would need more than "
                    "memory", path=self.source.path, got=self.rows * dtype.itemsize,
                    expected=f"at most {self.source.max_memory} bytes (`--max-memory`)",
                )  # fmt: skip
                return Column(name, np.dtype("V1"), problem=large)
        shape = tuple(kind.shape[n] for n in kind.order) if kind.order else kind.shape
        attributes = {"timezone": kind.zone} if kind.zone else {}
        return Column(name, dtype, nullable, shape, axes=kind.axes, attributes=attributes)

    def _apply_record(self) -> None:
        """Give columns the types of the record; drop the record if they cannot have had them."""
        if self.record is None:
            return
        numbers = {column.name: number for number, column in enumerate(self.columns)}
        changed = [*self.columns]
        wide = self.record.get("wide") is not None
        fields: dict[str, Any] = {}
        masked = {array["column"] for array in self.record["arrays"] if array.get("mask")}
        for array in self.record["arrays"]:
            dtype = records.dtype_in(array)
            if dtype is None:
                self.record = None
                return
            if self.record["form"] == "records":
                fields |= {name: dtype[name] for name, _ in fields_of(dtype)}
                masked = {name for name, mask in fields_of(dtype) if mask}
            elif wide:
                fields |= {c.name: dtype for c in changed if c.name not in self.record["axes"]}
            else:
                fields[array["column"]] = dtype
        for name, dtype in fields.items():
            number = numbers.get(name)
            column = None if number is None else _typed(changed[number], dtype)
            if number is None or column is None:
                self.record = None
                return
            if column.dtype.kind in "mM" and name not in masked and not wide:
                column = column._replace(nullable=False)  # its nulls are NaT
            self._casts[number] = dtype
            changed[number] = column
        self.columns = changed

    def pieces(self, numbers: Sequence[int], max_bytes: int) -> Iterator[list[Piece]]:
        """Yield the values of columns piece by piece. Raises `Corrupt` for errors of pyarrow."""
        for number in numbers:
            if (problem := self.columns[number].problem) is not None:
                raise problem
        width = sum(self.columns[n].nbytes for n in numbers)
        rows = max(1, min(PIECE_ROWS, max_bytes // max(1, width)))
        done = 0
        try:
            for batch in self._batches(numbers, rows):
                if batch.num_rows:
                    yield [
                        self._piece(cells, number)
                        for number, cells in zip(numbers, batch.columns, strict=True)
                    ]
                done += batch.num_rows
        except failures() as error:
            raise corrupt(self.source, error) from error
        if done != self.rows:
            raise Corrupt("has another number of rows than it says", path=self.source.path,
                          expected=self.rows, got=done)  # fmt: skip

    def _piece(self, cells: Any, number: int) -> Piece:
        """The values and the mask of some rows of a column, in the type of the record."""
        column = self.columns[number]
        kind = self._kinds[number]
        stored = kind.dtype if kind.dtype is not None else column.dtype
        values, mask = values_of(cells, kind, stored, self.source)
        if number in self._casts:
            values = _cast(values, self._casts[number], self.source)
        if mask is not None and not column.nullable and column.dtype.kind not in "mM":
            raise Corrupt(f"column '{column.name[:60]}' has missing values that it did not have",
                          path=self.source.path)  # fmt: skip
        return values, mask


def _typed(column: Column, dtype: np.dtype[Any]) -> Column | None:
    """The column with the type of a record; None if it cannot have had it."""
    stored, shape = column.dtype, column.shape
    if column.problem is not None:
        return None
    if stored == dtype.newbyteorder("="):
        return column._replace(dtype=dtype)
    if dtype.kind == "c" and stored == np.dtype(f"f{dtype.itemsize // 2}") and shape[-1:] == (2,):
        return column._replace(dtype=dtype, shape=shape[:-1], axes=column.axes[:-1])
    fits = (
        (dtype.kind in "mM" and stored == np.dtype("i8"))
        or (dtype.kind == "M" and stored == np.dtype("M8[ms]"))
        or (dtype.name == "bfloat16" and stored == np.dtype("f4"))
        or (dtype.kind in "SV" and stored == np.dtype(f"V{dtype.itemsize}") and not dtype.names)
        or (dtype.kind == stored.kind == "U" and dtype.itemsize >= stored.itemsize)
    )
    return column._replace(dtype=dtype) if fits else None


def _cast(values: Values, dtype: np.dtype[Any], source: Source) -> Values:
    """The values in the type of the record, each exactly. Raises `Corrupt` if one does not fit."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "c":
        return np.ascontiguousarray(values).view(dtype)[..., 0]
    if dtype.kind in "mM" and values.dtype.kind == "i":
        return values.view(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind in "SV" and dtype.name != "bfloat16":
        return values.view(dtype)
    if dtype.kind == values.dtype.kind == "M" and dtype.newbyteorder("=") == values.dtype:
        return values.astype(dtype)
    with np.errstate(all="ignore"):
        if dtype.name == "bfloat16":
            bits = np.ascontiguousarray(values).view(np.uint32)
            if (bits & np.uint32(0xFFFF)).any():
                raise Corrupt("a number is not a bfloat16, as the file says", path=source.path)
            return (bits >> np.uint32(16)).astype(np.uint16).view(dtype)
        cast = values.astype(dtype)
        back = cast.astype(values.dtype)
    if values.dtype.kind in "mM":
        same = bool((back.astype("i8") == values.astype("i8")).all())
        if not same:
            raise Corrupt(f"a time is not {dtype}, as the file says", path=source.path)
    return cast


# Writing -----------------------------------------------------------------------------------------


class Stored(Record):
    """The type of Arrow in which elements are stored, and the shape of the value of a row."""

    type: Any
    shape: tuple[int, ...]
    scaled: int = 1  # factor of times: 1000 for seconds that are stored as milliseconds
    codes: bool = False  # True for times that are stored as whole numbers


def stored_as(
    array: Array, dtype: np.dtype[Any], shape: tuple[int, ...], *, parquet: bool
) -> Stored:
    """The type in which elements are stored; times are read, since Arrow does not hold all."""
    import pyarrow as pa

    if dtype.kind == "c":
        part = pa.float32() if dtype.itemsize == 8 else pa.float64()
        return Stored(part, (*shape, 2))
    if dtype.name == "bfloat16":
        return Stored(pa.float32(), shape)
    if dtype.kind == "U":
        return Stored(pa.string(), shape)
    if dtype.kind in "SV":
        return Stored(pa.binary(dtype.itemsize), shape)
    if dtype.kind in "mM":
        return _stored_time(array, dtype, shape, parquet)
    return Stored(pa.from_numpy_dtype(dtype.newbyteorder("=")), shape)


def _stored_time(
    array: Array, dtype: np.dtype[Any], shape: tuple[int, ...], parquet: bool
) -> Stored:
    """The type in which times are stored: as such, or as whole numbers if one does not fit."""
    import pyarrow as pa

    unit, count = np.datetime_data(dtype)
    codes = Stored(pa.int64(), shape, codes=True)
    if count != 1:
        return codes
    if unit == "D" and dtype.kind == "M":
        return Stored(pa.date32(), shape) if _within(array, 1 << 31) else codes
    if unit not in UNITS:
        return codes
    if unit == "s" and parquet and dtype.kind == "M":
        fits = _within(array, (1 << 63) // 1000)
        return Stored(pa.timestamp("ms"), shape, scaled=1000) if fits else codes
    return Stored(pa.timestamp(unit) if dtype.kind == "M" else pa.duration(unit), shape)


def _within(array: Array, most: int) -> bool:
    """True if all times but NaT are less than `most` units from 1970."""
    from raconvert.arrays.blocks import blocks

    for block in blocks(array, 4 << 20):
        numbers = block.reshape(-1).astype(block.dtype.newbyteorder("=")).view(np.int64)
        times = numbers[numbers != _MIN]
        if len(times) and not -most < int(times.min()) <= int(times.max()) < most:
            return False
    return True


def type_of(stored: Stored, names: list[str]) -> Any:
    """The type of a column: a plain one, a list, or the extension for tensors with axis names."""
    import pyarrow as pa

    if not stored.shape:
        return stored.type
    if len(stored.shape) == 1:
        return pa.list_(stored.type, stored.shape[0])
    dims = names if len(names) == len(stored.shape) and any(names) else None
    return pa.fixed_shape_tensor(stored.type, stored.shape, dim_names=dims)


def column_of(
    values: Values, mask: Values | None, stored: Stored, arrow_type: Any, name: str
) -> Any:
    """The Arrow array of some rows of a column."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    flat = values.reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(f"f{flat.dtype.itemsize // 2}")
    if not stored.shape:
        return _cells(flat, mask, stored, name)
    cells = _cells(flat, None, stored, name)
    listed = pa.FixedSizeListArray.from_arrays(
        cells, prod(stored.shape), mask=None if mask is None else pa.array(mask.reshape(-1))
    )
    if len(stored.shape) == 1:
        return listed
    return pa.ExtensionArray.from_storage(arrow_type, listed)


def _cells(values: Values, mask: Values | None, stored: Stored, name: str) -> Any:
    """The Arrow array of flat values; nulls where the mask is true, and for NaT."""
    import pyarrow as pa

    kind = values.dtype.kind
    if kind == "U":
        return _strings(values, mask, name)
    if kind in "SV" and values.dtype.name != "bfloat16":
        return _bytes(values, mask, stored)
    if values.dtype.name == "bfloat16":
        wide = values.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return pa.array(wide.view(np.float32), mask=mask)
    if kind in "mM":
        numbers = values.astype(values.dtype.newbyteorder("=")).view(np.int64)
        if stored.codes:
            return pa.array(numbers, mask=mask)
        absent = numbers == _MIN
        if mask is not None and (absent & ~mask).any():
            raise WouldLose(f"array '{name}' has NaT and missing values, which would be one",
                            remedy="no option allows this; nothing was written")  # fmt: skip
        absent = absent if mask is None else mask
        numbers = np.where(absent, 0, numbers) * stored.scaled
        if pa.types.is_date32(stored.type):
            return pa.array(numbers.astype(np.int32), mask=absent).view(stored.type)
        return pa.array(numbers, mask=absent).view(stored.type)
    return pa.array(values, type=stored.type, mask=mask)


def _strings(values: Values, mask: Values | None, name: str) -> Any:
    """The Arrow array of texts. Raises `WouldLose` for half of a surrogate pair."""
    import pyarrow as pa

    try:
        return pa.array(values.tolist(), pa.string(), mask=mask)
    except UnicodeEncodeError as error:
        raise WouldLose(f"array '{name}' has half of a surrogate pair, which is not text in UTF-8",
                        remedy="no option allows this; nothing was written") from error  # fmt: skip


def _bytes(values: Values, mask: Values | None, stored: Stored) -> Any:
    """The Arrow array of bytes of one width."""
    import pyarrow as pa

    valid = None
    if mask is not None:
        bits = np.packbits(~mask, bitorder="little")
        valid = pa.py_buffer(bits.tobytes())
    data = pa.py_buffer(values.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(stored.type, len(values), [valid, data])
