"""A SciDB binary file as a bundle: an array for every attribute, companions beside it."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.arrays.memory import MAX_RANK, check_memory
from raconvert.errors import Corrupt, Unsupported, worded
from raconvert.plugin import Array, Axis, Bundle, Element, Metadata, Source, element

from .columns import (
    CELLS,
    PAIR_LABELS,
    PRESENT,
    RAW,
    UNITS,
    Column,
    Layout,
    Location,
    format_text,
    layout_of,
)
from .header import Declaration, declare, foreign_kind
from .metadata import Namer
from .record import field_of, numpy_type, prefix_of
from .scan import Scan, refuse_cut
from .schema import in_c_order
from .together import FileField, Together
from .values import Chunked, Dense, Pieces, Scattered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Values = np.ndarray[Any, Any]

BYTE = element("uint", 1)
INDEX = element("int", 8)
COORDINATE_BYTES = 8
SHOWN = 3  # names in a note


def read_bundle(source: Source, options: dict[str, str]) -> Bundle:
    """The arrays of a file; `options` are those of the plugin's `read`, by name."""
    size = source.size
    declaration = declare(source, options)
    try:
        return _Reader(source, size, declaration).bundle()
    except Corrupt as error:
        kind = foreign_kind(source.head)
        if kind is not None and size:
            error.remedy = f"it looks like {kind}; " + (error.remedy or "is the schema of another?")
        raise


class _Reader:
    """State of one file while its bundle is made."""

    def __init__(self, source: Source, size: int, declaration: Declaration) -> None:
        self.source = source
        self.declaration = declaration
        self.layout: Layout = layout_of(declaration.columns)
        self.notes = list(declaration.notes)
        self.scan: Scan | None = None
        width = self.layout.width
        if width is None:
            self.scan = Scan(source, self.layout, declaration.names)
            self.count = self.scan.count
        else:
            self.count, rest = divmod(size, width)
            if rest:
                at = self.count * width
                refuse_cut(source, declaration.names, self.layout, self.count, at)
        self.together = Together(source, width or 1, self.count)
        self.dense = self._is_dense()
        self.shape = declaration.schema.shape if self.dense else (self.count,)
        self._check_shape()
        self.cells = self._cells() if self.dense and declaration.coordinates else None
        self._note_order()
        self._namer = Namer()
        self._warned = False

    # --- shape ---

    def _is_dense(self) -> bool:
        """True if the records are the cells of an array of the schema's dimensions."""
        declared = self.declaration
        if declared.layout == "flat" or not declared.schema.bounded:
            self._note_open_dimensions()
            return False
        reason = None
        if declared.coordinates and declared.layout == "auto":
            return False
        if declared.coordinates and self.scan:
            reason = "strings and binaries are not scattered by their coordinates"
        if declared.order == "chunk" and self.scan:
            reason = "strings and binaries that lie chunk after chunk are not put into order"
        if reason is None:
            return True
        if declared.layout == "dense":
            raise Unsupported(
                f"{reason}, since their records differ in width",
                path=self.source.path,
                remedy="read the records in their order with `--in-opt layout=flat`",
            )
        self.notes.append(f"{reason}: the arrays hold the records in the order of the file")
        return False

    def _note_open_dimensions(self) -> None:
        declared = self.declaration
        if len(declared.schema.dims) > 1 and not declared.coordinates and declared.layout == "auto":
            self.notes.append(
                "dimensions without bounds: the arrays hold the records in the order of the file"
            )

    def _note_order(self) -> None:
        declared = self.declaration
        if not self.dense or declared.order != "chunk" or declared.coordinates or declared.raw:
            return
        if not in_c_order(self.shape, declared.schema.chunks):
            chunks = " x ".join(map(str, declared.schema.chunks))
            self.notes.append(worded(
                f"the cells lie chunk after chunk ({chunks}) in the file, as the schema says, and "
                "are put into row-major order; `--in-opt order=C` takes them as they lie"
            ))  # fmt: skip

    def _check_shape(self) -> None:
        total = prod(self.shape)
        declared = self.declaration
        if self.dense and not declared.coordinates and total != self.count:
            names = " x ".join(
                f"{d.name}={n}" for d, n in zip(declared.schema.dims, self.shape, strict=True)
            )
            raise Corrupt(
                f"file holds {self.count} records, and the dimensions of its schema {total} cells "
                f"({names})",
                path=self.source.path,
                where=f"record {self.count}, byte {self.source.size}",
                expected=f"{total} records",
                got=self.count,
                remedy="SciDB leaves out empty cells, and then the places of the others are "
                "unknown: save with the coordinates as columns and read with "
                "`--in-opt coords=after`, or read the records as a table with "
                "`--in-opt layout=flat`; otherwise the file is cut off, or the schema is of "
                "another",
            )
        chunked = self.dense and declared.order == "chunk"
        rank = 2 * len(self.shape) if chunked else len(self.shape)
        if rank >= MAX_RANK:
            raise Unsupported(
                f"array has {len(self.shape)} dimensions",
                path=self.source.path,
                expected=f"fewer than {MAX_RANK // 2 if chunked else MAX_RANK}",
                remedy="read the records as a table with `--in-opt layout=flat`",
            )
        if spanned(self.shape, self.layout.width or 1) > MAX_SPAN:
            raise Unsupported(
                "dimensions of the schema span 2**63 bytes or more", path=self.source.path
            )

    # --- coordinates ---

    def _cells(self) -> Values | None:
        """The cell index of each record; None if the records are all cells in row-major order."""
        declared = self.declaration
        total = prod(self.shape)
        what = f"'{self.source.path}': the coordinates of {self.count} records"
        in_order = self.count == total
        parts: list[Values] = []
        fields = [field_of(self.layout, n) for n in declared.coordinates]
        for first, rows in self.together.rows(fields):
            rank = np.zeros(len(rows[0]), np.int64)
            for dim, values in zip(declared.schema.dims, rows, strict=True):
                outside = (values < dim.lo) | (values > dim.hi)
                if outside.any():
                    self._refuse_coordinate(dim, first, values, outside)
                rank = rank * (dim.hi - dim.lo + 1) + (values - dim.lo)
            if in_order and not np.array_equal(rank, np.arange(first, first + len(rank))):
                in_order = False
                check_memory(2 * COORDINATE_BYTES * self.count, self.source.max_memory, what)
                if first:
                    parts = [np.arange(first)]
            if not in_order:
                parts.append(rank)
        if in_order:
            return None
        check_memory(2 * COORDINATE_BYTES * self.count, self.source.max_memory, what)
        cells = np.concatenate([np.zeros(0, np.int64), *parts])
        self._refuse_repeated(cells)
        return cells

    def _refuse_coordinate(self, dim: Any, first: int, values: Values, outside: Values) -> None:
        """Raise `Corrupt` for the first coordinate outside the schema."""
        at = int(np.flatnonzero(outside)[0])
        record = first + at
        raise Corrupt(
            f"coordinate {dim.name} of record {record} (counted from 0) is outside the schema",
            path=self.source.path,
            where=f"byte {record * (self.layout.width or 0)}",
            expected=f"{dim.lo} to {dim.hi}",
            got=int(values[at]),
        )

    def _refuse_repeated(self, cells: Values) -> None:
        """Raise `Corrupt` if two records are one cell."""
        order = np.argsort(cells, kind="stable")
        same = np.flatnonzero(cells[order[1:]] == cells[order[:-1]])
        if same.size:
            first, second = (int(order[same[0] + n]) for n in (0, 1))
            raise Corrupt(
                f"records {first} and {second} (counted from 0) have the same coordinates",
                path=self.source.path,
                where=f"byte {second * (self.layout.width or 0)}",
                remedy="read the records as a table with `--in-opt layout=flat`",
            )

    # --- arrays ---

    def bundle(self) -> Bundle:
        declared = self.declaration
        arrays = [self._raw()] if declared.raw else self._arrays()
        nullable = [
            name for name, c in zip(declared.names, declared.columns, strict=True) if c.nullable
        ]
        if nullable and not declared.raw:
            shown = ", ".join(nullable[:SHOWN]) + ", …" * (len(nullable) > SHOWN)
            self.notes.append(
                f"which values of {shown} are missing, and why, is in the arrays NAME.null "
                "(255: there; 0 to 127: missing)"
            )
        space = self.namespace()
        if len(arrays) == 1:
            arrays[0].meta = arrays[0].meta.with_format("scidb", file=space)
        return Bundle(arrays, formats={"scidb": space}, notes=self.notes)

    def namespace(self) -> dict[str, Any]:
        """The metadata from which the file can be written back exactly."""
        declared = self.declaration
        return {
            "schema": declared.schema_text,
            **({"unnamed": ", ".join(declared.unnamed)} if declared.unnamed else {}),
            "format": format_text(declared.columns),
            "layout": "dense" if self.dense else "flat",
            "order": declared.order if self.dense else "C",
            "coords": declared.coords,
            **({"types": declared.sizes} if declared.sizes else {}),
            **({"records": "raw"} if declared.raw else {}),
        }

    def _arrays(self) -> list[Array]:
        declared = self.declaration
        arrays: list[Array] = []
        for number, column in enumerate(declared.columns):
            if number in declared.coordinates and self.dense:
                continue  # the indices in the array are the coordinates
            arrays += self._of_column(number, column)
        if self.cells is not None:
            data = self.cells
            cells = self._array(CELLS, "cells", None, INDEX, (len(data),), data=data)
            if len(data) < prod(self.shape):  # the other cells are zeros that no record holds
                for array in arrays:
                    _accompany(array, cells, "nulls")
            arrays.append(cells)
        return arrays

    def _of_column(self, number: int, column: Column) -> list[Array]:
        """The arrays of a column; the values have those of offsets and nulls as companions."""
        if column.size is None and self.scan is not None:
            offsets, values = self._variable(self.scan, number)
            _accompany(values, offsets, "elements")
            arrays = [offsets, values]
        else:
            values = self._fixed(number, column)
            arrays = [values]
        if column.nullable:
            nulls = self._nulls(number)
            _accompany(values, nulls, "nulls")
            arrays.append(nulls)
        return arrays

    def _array(
        self, attribute: str, role: str, number: int | None, kind: Element, shape: tuple[int, ...],
        **fields: Any,
    ) -> Array:  # fmt: skip
        declared = self.declaration
        own: dict[str, Any] = {"role": role}
        units, axes = None, None
        if number is not None:
            column = declared.columns[number]
            own |= {
                "attribute": declared.names[number], "column": number, "type": column.type_text,
            }  # fmt: skip
            if role == "values" and column.type in UNITS:
                units = UNITS[column.type]
            if number in declared.coordinates:
                own["role"] = "coordinate"
            pair = role == "values" and column.items > 1
            if role in ("values", "null"):
                axes = self._axes(pair=pair)
        storage = {"layout": "records", "record_bytes": self.layout.width or "variable"}
        return Array(
            kind,
            shape[::-1],
            name=self._namer.name(attribute, "values" if number is None else role),
            index_order="C",
            meta=Metadata(units=units, axes=axes, formats={"scidb": own}),
            storage=storage,
            **fields,
        )

    def _axes(self, *, pair: bool) -> list[Axis]:
        """The axes, slowest first, with names and origins of the schema if they belong to it."""
        dims = self.declaration.schema.dims
        axes = [Axis() for _ in self.shape]
        if self.dense or (len(dims) == 1 and not self.declaration.coordinates):
            unnamed = self.declaration.unnamed
            names = [None if dim.name in unnamed else dim.name for dim in dims]
            axes = [
                Axis(name, origin=dim.lo or None, spacing=1 if dim.lo else None)
                for name, dim in zip(names, dims, strict=True)
            ]
        return [*axes, Axis(labels=PAIR_LABELS)] if pair else axes

    def _field(self, number: int) -> FileField:
        """The values of a column of records of one width."""
        return FileField(field_of(self.layout, number), self.together)

    def _shaped(self, field: FileField) -> Any:
        if self.cells is not None:
            return Scattered(field, self.shape, self.cells)
        if self.dense and self.declaration.order == "chunk":
            return Chunked(field, self.shape, self.declaration.schema.chunks)
        return Dense(field, self.shape)

    def _fixed(self, number: int, column: Column) -> Array:
        name, field = self.declaration.names[number], self.layout.locations[number]
        items = (column.items,) if column.items > 1 else ()
        shape = (*self.shape, *items)
        if self.scan:
            pieces = partial(_fixed_pieces, self.scan, field, column)
            dtype = numpy_type(column)[0]
            data: Any = Pieces(self.scan, pieces, dtype, shape, name)
        elif self._is_verbatim(column):
            extent = self.source.extent(0, self.source.size)
            return self._array(name, "values", number, column.element, shape, extent=extent)
        else:
            data = self._shaped(self._field(number))
        return self._array(name, "values", number, column.element, shape, data=data)

    def _is_verbatim(self, column: Column) -> bool:
        """True if the file is nothing but the values of this column in order."""
        in_order = self.cells is None and (not self.dense or self.declaration.order == "C")
        return in_order and column.size == self.layout.width

    def _nulls(self, number: int) -> Array:
        name, field = self.declaration.names[number], self.layout.locations[number]
        if self.scan:
            pieces = partial(_null_pieces, self.scan, field, self._watch)
            data: Any = Pieces(self.scan, pieces, np.dtype(np.uint8), self.shape, name)
        else:
            prefixes = FileField(prefix_of(self.layout, number), self.together, self._watch)
            data = self._shaped(prefixes)
        return self._array(name, "null", number, BYTE, self.shape, data=data)

    def _watch(self, prefixes: Values) -> None:
        """Add a note on prefixes that SciDB and SciDB-Py read differently."""
        codes = prefixes.view(np.uint8)
        if not self._warned and ((codes >= 128) & (codes < PRESENT)).any():
            self._warned = True
            self.notes.append(
                "some null prefixes are 128 to 254: SciDB takes such values as present, as done "
                "here; SciDB-Py takes them as missing"
            )

    def _variable(self, scan: Scan, number: int) -> Iterator[Array]:
        """Yield the offsets and the bytes of a variable column."""
        name = self.declaration.names[number]
        variable = sum(c.size is None for c in self.declaration.columns[:number])
        for role, kind, length, pieces in (
            ("offsets", INDEX, scan.count + 1, partial(_offset_pieces, scan, variable)),
            ("bytes", BYTE, scan.payloads[variable], partial(_byte_pieces, scan, variable)),
        ):
            dtype = np.dtype(np.int64 if role == "offsets" else np.uint8)
            data = Pieces(scan, pieces, dtype, (length,), f"{name}.{role}")
            yield self._array(name, role, number, kind, (length,), data=data)

    def _raw(self) -> Array:
        """The records verbatim."""
        extent = self.source.extent(0, self.source.size)
        if self.layout.width is None:
            kind, shape = Element("user", 1, "|", "|V1"), (self.source.size,)
        else:
            cells = self.dense and self.cells is None and self.declaration.order == "C"
            kind, shape = self._record_element(), self.shape if cells else (self.count,)
        return self._array(RAW, "records", None, kind, shape, extent=extent)

    def _record_element(self) -> Element:
        """A record as one element: a structure, nullable fields as (null, val)."""
        fields: list[tuple[Any, ...]] = []
        for name, column in zip(self.declaration.names, self.declaration.columns, strict=True):
            value = numpy_type(column)[0].str
            items = (column.items,) if column.items > 1 else ()
            if column.nullable:
                pair = (("null", "|u1"), ("val", value, items) if items else ("val", value))
                fields.append((name, pair))
            else:
                fields.append((name, value, items) if items else (name, value))
        return Element("user", self.layout.width or 0, "|", tuple(fields))


def _accompany(array: Array, companion: Array, loss: str) -> None:
    """Record that an array is not whole without another one; see `Metadata.companions`."""
    others = array.meta.formats["scidb"].get("companions", {})
    companions = {**others, companion.name: loss}
    array.meta = array.meta.with_format("scidb", companions=companions)


def _fixed_pieces(scan: Scan, field: Location, column: Column) -> Iterator[Values]:
    for block in scan.decoded():
        yield block.values(field, column)


def _null_pieces(scan: Scan, field: Location, watch: Any) -> Iterator[Values]:
    for block in scan.decoded():
        prefixes = block.prefixes(field)
        watch(prefixes)
        yield prefixes


def _byte_pieces(scan: Scan, variable: int) -> Iterator[Values]:
    for block in scan.decoded():
        yield block.payload(variable)


def _offset_pieces(scan: Scan, variable: int) -> Iterator[Values]:
    total = 0
    yield np.zeros(1, np.int64)
    for block in scan.decoded():
        ends = np.cumsum(block.sizes[:, variable], dtype=np.int64)
        ends += total
        total = int(ends[-1])
        yield ends
