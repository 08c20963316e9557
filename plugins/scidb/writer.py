"""A plan of columns as a SciDB binary file, with the schema beside it."""

from __future__ import annotations

import os
from math import prod

import numpy as np

from raconvert.arrays.blocks import Feed, as_ndarray, block_bytes, blocks, write_raw
from raconvert.arrays.dtypes import opaque
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import slabs
from raconvert.errors import Corrupt
from raconvert.files.copy import reserve, write_all
from raconvert.files.pairing import seal_of
from raconvert.files.source import Source

from .columns import COUNT_BYTES, MAX_COUNT, PRESENT, Layout, layout_of
from .header import SUFFIX
from .metadata import Out, RecordPlan
from .record import Field, Rows, field_of, numpy_type, prefix_of, segments
from .schema import IDENTIFIER, Dimension, schema_text
from .values import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.plugin import Target

    Values = np.ndarray[Any, Any]

LEAST_BLOCK = 1 << 16


def write_records(plan: RecordPlan, target: Target, *, canonical: bool) -> None:
    """Write the records, then the schema file."""
    schema = target.beside(SUFFIX, appended=True)
    if plan.raw is not None:
        write_raw(target, b"", plan.raw)
    elif _is_verbatim(plan):
        write_raw(target, b"", plan.outs[0].values)
    else:
        _write_columns(plan, target, canonical)
    text = schema_file(plan, target.place)
    line = f"-- {seal_of(text, Source(target.temp))}\n"
    write_all(schema.open(), [text, line.encode()])


def _is_verbatim(plan: RecordPlan) -> bool:
    """True if the file is nothing but one array."""
    [first, *others] = plan.outs
    alone = not others and first.values is not None and first.null is None
    return alone and first.cast == "view" and plan.chunks is None and plan.cells is None


def _write_columns(plan: RecordPlan, target: Target, canonical: bool) -> None:
    layout = layout_of([out.column for out in plan.outs])
    file = target.open()
    records = prod(plan.shape) if plan.cells is None else plan.cells.count
    # Every column may hold a block of its source and one of its own.
    room = max(LEAST_BLOCK, block_bytes(target.max_memory) // (2 * len(plan.outs)))
    cells = None
    if plan.cells is not None:
        cells = as_ndarray(plan.cells, target.max_memory)
        _check_cells(plan, cells)
    writers = [_Writer(out, plan, cells, room, target.max_memory, canonical) for out in plan.outs]
    if layout.width is None:
        _write_variable(file, layout, writers, records, target)
    elif plan.chunks is not None:
        _write_chunks(file, layout, writers, plan, target, room)
    else:
        _write_rows(file, layout, writers, records, target)


def _check_cells(plan: RecordPlan, cells: Values) -> None:
    """Raise `Corrupt` for indices of cells that the array does not have."""
    if cells.size and (cells.min() < 0 or cells.max() >= prod(plan.shape)):
        raise Corrupt(
            f"array '{plan.cells.name}' holds places outside the array",
            expected=f"0 to {prod(plan.shape) - 1}",
            got=f"{cells.min()} to {cells.max()}",
        )


# Columns ------------------------------------------------------------------------------------------


def _feed(array: Array, dtype: np.dtype[Any], cast: str, max_bytes: int) -> Feed:
    """The elements of an array as the values of its column."""

    def pieces() -> Iterator[Values]:
        for block in blocks(array, max_bytes):
            if cast == "float32":
                yield block.reshape(-1).astype(dtype)
            else:
                yield opaque(block.reshape(-1)).view(dtype)

    return Feed(pieces(), dtype, f"array '{array.name}'")


class _Gathered:
    """The elements of an array in the cells of the records, in the order of the records."""

    def __init__(
        self, array: Array, dtype: np.dtype[Any], items: int, cells: Values, max_memory: int
    ) -> None:
        self._values = as_ndarray(array, max_memory).reshape(-1).view(dtype).reshape(-1, items)
        self._cells = cells
        self._done = 0

    def take(self, count: int) -> Values:
        """The next `count` elements."""
        rows = count // self._values.shape[1]
        elements = self._values[self._cells[self._done : self._done + rows]]
        self._done += rows
        return elements.reshape(-1)


class _Coordinates:
    """The coordinates of the records along one dimension."""

    def __init__(self, plan: RecordPlan, axis: int, cells: Values | None) -> None:
        self._stride = prod(plan.shape[axis + 1 :])
        self._length = plan.shape[axis]
        self._lo = plan.dims[axis].lo
        self._cells = cells
        self._done = 0

    def take(self, count: int) -> Values:
        """The next `count` coordinates."""
        done, self._done = self._done, self._done + count
        cells = self._cells
        indices = np.arange(done, done + count) if cells is None else cells[done : done + count]
        return indices // self._stride % self._length + self._lo


_UINT8 = np.dtype(np.uint8)
_INT64 = np.dtype("<i8")


class _Writer:
    """One column: its values, prefixes and bytes, record by record."""

    def __init__(
        self,
        out: Out,
        plan: RecordPlan,
        cells: Values | None,
        room: int,
        max_memory: int,
        canonical: bool,
    ) -> None:
        self.column = out.column
        self.name = out.name
        self.canonical = canonical
        self._values: Any = None
        self._null: Any = None
        self._offsets: Any = None
        if out.dim is not None:
            self._values = _Coordinates(plan, out.dim, cells)
        elif out.values is not None:
            dtype = numpy_type(out.column)[0]
            if cells is None:
                self._values = _feed(out.values, dtype, out.cast, room)
            else:
                items = out.column.items
                self._values = _Gathered(out.values, dtype, items, cells, max_memory)
        else:
            self._offsets = _feed(out.offsets, _INT64, "view", room)
            self._bytes = _feed(out.bytes, _UINT8, "view", room)
            self._left = out.bytes.count
            self._last = self._first_offset(out.offsets)
        if out.null is not None:
            self._null = (
                _feed(out.null, _UINT8, "view", room)
                if cells is None
                else _Gathered(out.null, _UINT8, 1, cells, max_memory)
            )

    def _first_offset(self, array: Array) -> int:
        first = int(self._offsets.take(1)[0])
        if first:
            raise Corrupt(f"array '{array.name}' does not begin with 0", got=first)
        return first

    def prefixes(self, count: int) -> Values | None:
        """The prefixes of the next records; None if the column has none."""
        if self._null is None:
            return None
        codes: Values = self._null.take(count)
        if self.canonical and self.column.is_skip:
            return np.zeros_like(codes)
        if self.canonical:
            codes = np.where(codes < 128, codes, PRESENT).astype(np.uint8)
        return codes

    def values(self, count: int, prefixes: Values | None) -> Values:
        """The values of the next records, one row each."""
        items = self.column.items
        rows: Values = self._values.take(count * items)
        zero = self.column.is_skip
        if self.canonical and (zero or prefixes is not None):
            rows = rows.copy()
            raw = rows.view(np.uint8).reshape(count, -1)
            raw[slice(None) if zero else prefixes < 128] = 0  # type: ignore[operator]
        return rows.reshape(-1, items) if items > 1 else rows

    def lengths(self, count: int) -> Values:
        """The number of bytes of each of the next records in this column. Raises `Corrupt`."""
        ends = np.array(self._offsets.take(count), np.int64)
        sizes = np.diff(ends, prepend=self._last)
        if (sizes < 0).any() or int(ends[-1]) - self._last > self._left:
            raise Corrupt(
                f"offsets of '{self.name}' do not fit its bytes",
                expected=f"never smaller than before, at most {self._last + self._left}",
            )
        if (sizes > MAX_COUNT).any():
            raise Corrupt(f"a value of '{self.name}' is longer than {MAX_COUNT} bytes")
        self._left -= int(ends[-1]) - self._last
        self._last = int(ends[-1])
        return sizes

    def payload(self, sizes: Values, prefixes: Values | None) -> tuple[Values, Values]:
        """The lengths and bytes of the next values, whose stored lengths are `sizes`."""
        data: Values = self._bytes.take(int(sizes.sum()))
        if not self.canonical:
            return sizes, data
        if self.column.is_skip:
            return np.zeros_like(sizes), data[:0]
        present = np.ones(len(sizes), bool) if prefixes is None else prefixes > 127
        if self.column.type == "string":
            return _ended(sizes, data, present)
        return np.where(present, sizes, 0), data[np.repeat(present, sizes)]

    def finish(self) -> None:
        """Raise `Corrupt` if bytes are left that no offset reaches."""
        if self._offsets is not None and self._left:
            raise Corrupt(
                f"offsets of '{self.name}' end before its bytes", got=f"{self._left} bytes more"
            )


def _ended(sizes: Values, data: Values, present: Values) -> tuple[Values, Values]:
    """Lengths and bytes of strings up to and with one NUL; missing strings have no bytes."""
    starts = np.cumsum(sizes) - sizes
    nuls = np.append(np.flatnonzero(data == 0), len(data))
    first = nuls[np.searchsorted(nuls[:-1], starts)]
    texts = np.where(present, np.minimum(first - starts, sizes), 0)
    lengths = np.where(present, texts + 1, 0)
    joined = np.zeros(int(lengths.sum()), np.uint8)
    begins = np.cumsum(lengths) - lengths
    joined[segments(begins, texts, len(joined))] = data[segments(starts, texts, len(data))]
    return lengths, joined


# Records ------------------------------------------------------------------------------------------


def _fields(layout: Layout, number: int) -> tuple[Field, Field | None]:
    """The field of the values of a column, and of its null prefixes if it is nullable."""
    nullable = layout.columns[number].nullable
    return field_of(layout, number), prefix_of(layout, number) if nullable else None


def _write_rows(
    file: FileIO, layout: Layout, writers: list[_Writer], records: int, target: Target
) -> None:
    """Write records of one width, in the order of the arrays."""
    width = layout.width or 0
    reserve(file, records * width)
    check_memory(2 * width, target.max_memory, "one record")
    step = max(1, min(1 << 20, block_bytes(target.max_memory)) // width)
    fields = [_fields(layout, number) for number in range(len(writers))]
    buffer = memoryview(bytearray(min(step, records) * width))
    for first in range(0, records, step):
        count = min(step, records - first)
        for writer, (field, prefix) in zip(writers, fields, strict=True):
            prefixes = writer.prefixes(count)
            if prefix is not None:
                prefix.rows(buffer, count)[...] = prefixes
            field.rows(buffer, count)[...] = writer.values(count, prefixes)
        write_all(file, [buffer[: count * width]])
        if target.progress is not None:
            target.progress(count * width)


def _write_chunks(
    file: FileIO,
    layout: Layout,
    writers: list[_Writer],
    plan: RecordPlan,
    target: Target,
    room: int,
) -> None:
    """Write records of one width chunk after chunk, each column over the whole file in turn."""
    width = layout.width or 0
    total = prod(plan.shape) * width
    file.truncate(total)
    reserve(file, total)
    if not total:
        return
    for number, writer in enumerate(writers):
        field, prefix = _fields(layout, number)
        for key in slabs(plan.shape, field.nbytes + 1, room):
            whole = [slice(0, length) for length in plan.shape[len(key) :]]
            ends = [k if isinstance(k, slice) else slice(k, k + 1) for k in (*key, *whole)]
            box = [(k.start, k.stop) for k in ends]
            region = Region(plan.shape, plan.chunks, box)
            count = prod(region.box)
            # Mapped anew for every slab, so that the pages of the last one are released.
            data = np.memmap(file, np.uint8, mode="r+")
            prefixes = writer.prefixes(count)
            if prefix is not None and prefixes is not None:
                region.write(prefixes.reshape(region.box), data, prefix)
            values = writer.values(count, prefixes).reshape(*region.box, *field.items)
            region.write(values, data, field)
            del data
            if target.progress is not None:
                target.progress(count * (field.nbytes + (prefix is not None)))


def _write_variable(
    file: FileIO, layout: Layout, writers: list[_Writer], records: int, target: Target
) -> None:
    """Write records with variable columns: as many at a time as fit a block."""
    room = block_bytes(target.max_memory)
    least = sum(layout.spans) + COUNT_BYTES * (len(layout.spans) - 1)
    step = max(1, min(1 << 16, room // (least + 16 * len(writers))))
    for first in range(0, records, step):
        count = min(step, records - first)
        lengths = [w.lengths(count) for w in writers if w.column.size is None]
        begin = 0
        totals = np.cumsum(sum(lengths))
        while begin < count:
            before = int(totals[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(totals, before + room, "right")))
            parts = [sizes[begin:end] for sizes in lengths]
            check_memory(
                4 * (int(totals[end - 1]) - before), target.max_memory, "a block of records"
            )
            data = _packed(layout, writers, end - begin, parts)
            write_all(file, [data])
            if target.progress is not None:
                target.progress(data.nbytes)
            begin = end
    for writer in writers:
        writer.finish()


def _packed(layout: Layout, writers: list[_Writer], count: int, lengths: list[Values]) -> Values:
    """The bytes of the next `count` records; `lengths` are those of each variable column."""
    prefixes = [writer.prefixes(count) for writer in writers]
    variable = [n for n, writer in enumerate(writers) if writer.column.size is None]
    payloads = [
        writers[n].payload(sizes, prefixes[n]) for n, sizes in zip(variable, lengths, strict=True)
    ]
    rows = Rows.empty(layout, np.stack([sizes for sizes, _ in payloads], axis=1))
    for writer, field, nulls in zip(writers, layout.locations, prefixes, strict=True):
        if nulls is not None:
            rows.set_prefixes(field, nulls)
        if writer.column.size is None:
            rows.set_payload(field.span, payloads[field.span][1])
        else:
            rows.set_values(field, writer.column, writer.values(count, nulls))
    return np.frombuffer(rows.data, np.uint8)


# The schema file ----------------------------------------------------------------------------------


def schema_file(plan: RecordPlan, path: str) -> bytes:
    """The schema, the options that a reader needs, and the lines that load the file."""
    lines = [plan.schema_text] if plan.schema_text else []
    lines += [f"{name}: {value}" for name, value in plan.settings.items()]
    name = os.path.basename(path)
    if plan.attributes and "\n" not in name:  # the lines are comments of one line
        lines += _load_lines(plan, name)
    return "".join(f"{line}\n" for line in lines).encode()


def _load_lines(plan: RecordPlan, name: str) -> list[str]:
    """Comments with a command that loads the file into SciDB."""
    stem = name.partition(".")[0]
    array = stem if IDENTIFIER.match(stem) else "A"
    attributes = [(n, column.type, column.nullable) for n, column in plan.attributes]
    schema = schema_text(attributes, plan.dims)
    form = plan.settings["format"]
    taken = {n for n, _, _ in attributes} | {dim.name for dim in plan.dims}
    free = ("k", "row", *(f"row{n}" for n in range(len(taken))))
    flat = next(name for name in free if name not in taken)
    rows = [Dimension(flat, 0, None, None)]
    file = "'$PWD/" + _in_shell(name.replace("\\", "\\\\").replace("'", "\\'")) + "'"
    coords = plan.settings.get("coords")
    if coords:
        coordinates = [(dim.name, "int64", False) for dim in plan.dims]
        both = attributes + coordinates if coords == "after" else coordinates + attributes
        source = f"input({_in_shell(schema_text(both, rows))}, {file}, -2, '{form}')"
        query = f"redimension({source}, {_in_shell(schema)})"
    else:
        query = f"input({_in_shell(schema)}, {file}, -2, '{form}')"
    return [
        "-- To load it, in the folder of the file, on the machine of instance 0:",
        f'-- iquery -anq "store({query}, {array})"',
    ]


def _in_shell(text: str) -> str:
    """Text escaped for double quotes of a shell."""
    for char in '\\"$`':
        text = text.replace(char, "\\" + char)
    return text
