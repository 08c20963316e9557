"""Arrays as one table of Arrow: the plan of Parquet and Arrow files, and their rows."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.dtypes import dtype_of, little, type_name
from raconvert.errors import WouldLose
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed
from raconvert.plugin import Fit, Plan, equivalent, file_fits, refused

from . import record as records
from .arrow_table import UNITS, column_of, failures, stored_as, type_of
from .plan import fields_of, one_table, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target

    from .arrow_table import Stored
    from .plan import Planned

    Values = np.ndarray[Any, Any]

LETTERS = "USVMm"  # of the types that are not numbers
MAX_LIST = (1 << 31) - 1  # length of a list or tensor
BATCH_BYTES = 16 << 20  # of the rows that are written together


def arrow_plan(
    bundle: Bundle, title: str, *, layout: str, wide: str,
    open_writer: Callable[[Any, Any], Any], parquet: bool,
) -> Plan:  # fmt: skip
    """Plan one table; `open_writer` makes a writer of a file and a schema. Raises nothing."""

    def in_rows(array: Array) -> bool:
        """True if the array has a row for each index of its first axis, not of all axes."""
        if layout != "auto" or (_is_text(array) and array.ndim > 1):
            return layout == "tensor"
        return not (array.described and any(axis.labels is not None for axis in array.axes))

    made, fits = tables_of(bundle, title, wide=wide, rows=in_rows)
    fits += one_table(made, title, "write one file for each, or an XLSX file")
    rest = bundle.like(bundle.arrays)
    rest.attributes = {}
    fits += file_fits(rest, title)
    for planned in made[:1]:
        fits += _fits(planned, title)
    text = ""
    if made:
        text, more = _record(made[0], bundle, title)
        fits += more

    def write(target: Target) -> None:
        _write(made[0], target, text, open_writer, parquet=parquet)

    return Plan(fits, write, names=bundle.names)


def _fits(planned: Planned, title: str) -> list[Fit]:
    """The fits for types and shapes that the table changes or refuses."""
    fits = [*planned.fits]
    for value in planned.values:
        array, inner = value.array, value.array.shape[1:]
        if planned.form == "records":
            fits += _field_fits(array, title, fits)
        else:
            fits += _type_fits(array, title)
        if planned.form == "rows" and _is_text(array) and array.ndim > 1:
            fits.append(refused(array.name, "type", f"a tensor of {title} holds no text"))
        if planned.form == "rows" and (prod(inner) > MAX_LIST or array.ndim > 32):
            fits.append(refused(array.name, "shape", f"{title} has no rows of {inner}"))
        if not array.ndim:
            fits.append(equivalent(array.name, "shape", "it is one row for other programs: (1,)"))
        inner = array.shape[1:]
        if not array.count and (0 in inner or (planned.form != "rows" and array.ndim > 1)):
            reason = f"{title}: no row tells the lengths of {array.shape}"
            fits.append(refused(array.name, "shape", reason))
        if any(length >= 1 << 62 for length in array.shape) or prod(array.dims) >= 1 << 62:
            fits.append(refused(array.name, "shape", f"{title} has no {array.shape}"))
    return fits


def _is_text(array: Array) -> bool:
    """True for an array of text."""
    descr = array.element.descr
    return isinstance(descr, str) and descr[1:2] == "U"


def _type_fits(array: Array, title: str) -> list[Fit]:
    """The fits for a type that has another form, or none, in Arrow."""
    kind, nbytes, _, descr = array.element
    name = type_name(little(array.element))
    if kind in ("complex", "bfloat"):
        form = "float32" if kind == "bfloat" else "pairs of numbers"
        return [equivalent(array.name, "type", f"{name} is {form} for other programs")]
    if kind != "user":
        return []
    if descr is not None and (not isinstance(descr, str) or descr[1] not in LETTERS):
        return [refused(array.name, "type", f"{title} has no {name}")]
    if nbytes > MAX_LIST:
        return [refused(array.name, "type", f"{title} has no elements of {nbytes} bytes")]
    if descr is not None and descr[1] in "Mm":
        unit, count = np.datetime_data(dtype_of(array.element))
        if count != 1 or unit not in (*UNITS, *("D" * (descr[1] == "M"))):
            reason = f"{name} is whole numbers for other programs"
            return [equivalent(array.name, "type", reason)]
        if title == "Parquet" and (descr[1], unit) == ("M", "s"):
            reason = f"{name} is milliseconds, or beyond those whole numbers, for other programs"
            return [equivalent(array.name, "type", reason)]
    if descr is not None and descr[1] in "US":
        form = "text of any length" if descr[1] == "U" else "bytes of one length, zeros included,"
        return [equivalent(array.name, "type", f"{name} is {form} for other programs")]
    return []


def _field_fits(array: Array, title: str, before: list[Fit]) -> list[Fit]:
    """The fits for the fields of structures, unless the array is refused `before`."""
    from raconvert.arrays.dtypes import element_of

    if any(fit.outcome == "refused" for fit in before):
        return []
    dtype = dtype_of(array.element)
    fits = []
    for name in dtype.names or ():
        field = array.replace(element=element_of(dtype[name]), data=None, extent=None)
        field_fits = _type_fits(field, title)
        fits += [fit._replace(reason=f"field {name}: {fit.reason}") for fit in field_fits]
    return fits


def _record(planned: Planned, bundle: Bundle, title: str) -> tuple[str, list[Fit]]:
    """The line about the arrays, and the fits for metadata that it cannot hold."""
    arrays = [
        records.array_record(
            value.array, value.header, None if value.mask is None else value.mask.name
        )
        for value in planned.values
    ]
    record = table_record(planned, arrays)
    try:
        return records.text_of({planned.name: record}, bundle), []
    except ValueError as error:
        reason = f"{title} has no place for it: {error}"
    fits = [
        equivalent(array["name"], "metadata", reason) for array in arrays if array.pop("meta", None)
    ]
    try:
        return records.text_of({planned.name: record}, bundle), fits
    except ValueError as error:
        reason = f"{title} has no place for attributes of the file: {error}"
        fits.append(equivalent("", "metadata", reason))
    bare = bundle.like([])
    bare.attributes, bare.formats = {}, {}
    return records.text_of({planned.name: record}, bare), fits


def table_record(planned: Planned, arrays: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a table; its shape is that of the arrays before they were pivoted."""
    shape = list(planned.first.shape)
    record: dict[str, Any] = {
        "form": planned.form,
        "axes": [key.header for key in planned.keys],
        "shape": shape,
        "labelled": [key.labelled for key in planned.keys],
        "arrays": arrays,
    }
    for value, array in zip(planned.values, arrays, strict=True):
        if value.array.shape != planned.first.shape:  # arrays in rows only share their first axis
            array["shape"] = list(value.array.shape)
    if planned.wide is not None:
        shape.insert(planned.wide, shape.pop())
        axis = planned.first.axes[-1]
        labels = None if axis.labels is None else list(axis.labels)
        record["wide"] = {"axis": planned.wide, "name": planned.wide_name, "labels": labels}
        for array in arrays:  # the axes in the order of the shape
            listed = array.get("meta", {}).get("axes")
            if isinstance(listed, list) and len(listed) == len(shape):
                listed.insert(planned.wide, listed.pop())
    return record


# Rows --------------------------------------------------------------------------------------------


class _Columns:
    """The columns of a table: their names, types, and cells."""

    def __init__(self, planned: Planned, *, parquet: bool) -> None:
        import pyarrow as pa

        self.planned = planned
        self.stored: list[Stored] = []
        self.types: list[Any] = []
        self.notes: list[str] = []
        for key in planned.keys:
            if key.values.dtype.kind == "U":
                self.types.append(pa.dictionary(pa.int32(), pa.string()))
            else:
                self.types.append(pa.from_numpy_dtype(key.values.dtype))
        for value in planned.values:
            self._add(value.array, parquet)

    def _add(self, array: Array, parquet: bool) -> None:
        """Add the columns of an array."""
        from raconvert.arrays.array import Array as Made
        from raconvert.arrays.dtypes import element_of

        planned, dtype = self.planned, dtype_of(little(array.element))
        names = [axis.name or "" for axis in array.axes[1:]]
        if planned.form == "records":
            for name, _ in fields_of(dtype):
                field = Made(element_of(dtype[name]), array.dims, name=array.name, index_order="C",
                             data=_Field(array, name))  # fmt: skip
                stored = stored_as(field, dtype[name], (), parquet=parquet)
                self.stored.append(stored)
                self.types.append(type_of(stored, []))
                self._note(f"{array.name}.{name}", dtype[name], stored)
            return
        shape = array.shape[1:] if planned.form == "rows" else ()
        stored = stored_as(array, dtype, shape, parquet=parquet)
        self._note(array.name, dtype, stored)
        count = len(planned.labels) if planned.wide is not None else 1
        self.stored += [stored] * count
        self.types += [type_of(stored, names)] * count

    def _note(self, name: str, dtype: np.dtype[Any], stored: Stored) -> None:
        """Note days that are too far away for the dates of Arrow."""
        if stored.codes and dtype.kind == "M" and np.datetime_data(dtype) == ("D", 1):
            reason = "days beyond 5.8 million years are whole numbers for other programs"
            self.notes.append(f"array '{name}': {reason}")

    def cells(self, start: int, values: list[Values], masks: list[Values | None]) -> list[Any]:
        """The cells of some rows, column by column."""
        import pyarrow as pa

        planned = self.planned
        cells = []
        rows = np.arange(start, start + len(values[0]))
        stride = planned.rows
        for key, of in zip(planned.keys, self.types, strict=False):
            stride //= max(1, len(key.values))
            codes = rows // max(1, stride) % len(key.values)
            if pa.types.is_dictionary(of):
                labels = pa.array(np.asarray(key.values).tolist(), pa.string())
                cells.append(pa.DictionaryArray.from_arrays(pa.array(codes.astype("i4")), labels))
            else:
                cells.append(pa.array(key.values[codes]))
        types = iter(self.types[len(planned.keys) :])
        stored = iter(self.stored)
        for value, block, mask in zip(planned.values, values, masks, strict=True):
            for own, absent in _split(planned, block, mask):
                cells.append(column_of(own, absent, next(stored), next(types), value.array.name))
        return cells


class _Field:
    """Array source: one field of structures, front to back."""

    def __init__(self, array: Array, name: str) -> None:
        self._array, self._name = array, name
        self.shape = array.dims[::-1]
        self.dtype = dtype_of(array.element)[name]

    def stream(self, max_bytes: int) -> Iterator[Values]:
        from raconvert.arrays.blocks import blocks

        for block in blocks(self._array, max_bytes):
            yield np.ascontiguousarray(block.reshape(-1)[self._name])


def _split(
    planned: Planned, values: Values, mask: Values | None
) -> Iterator[tuple[Values, Values | None]]:
    """Yield the columns of a piece of an array, with a mask of rows, not of elements."""
    for own, absent in planned.columns_of(values, mask):
        if absent is None or absent.ndim == 1:
            yield own, absent
            continue
        flat: Any = absent.reshape(len(absent), -1)
        rows: Values = flat.any(axis=1)
        if (rows != flat.all(axis=1)).any():
            raise WouldLose(
                f"array '{planned.name}' has rows in which some values are missing, which a "
                "tensor cannot say", remedy="write a long table: `--out-opt layout=long`",
            )  # fmt: skip
        yield own, rows


class _Whole:
    """A file whose every write is complete: pyarrow does not check how much was written."""

    closed = False

    def __init__(self, file: FileIO) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        """Write all of the data, and return its length."""
        return write_all(self._file, [data])

    def tell(self) -> int:
        """The position in the file."""
        return self._file.tell()

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """The target closes its file."""


def _write(
    planned: Planned, target: Target, text: str, open_writer: Callable[[Any, Any], Any],
    *, parquet: bool,
) -> None:  # fmt: skip
    """Write a table, and the text of its record into the schema."""
    import pyarrow as pa

    columns = _Columns(planned, parquet=parquet)
    target.notes.extend(columns.notes)
    fields = [pa.field(name, of) for name, of in zip(planned.headers, columns.types, strict=True)]
    schema = pa.schema(fields, metadata={records.KEY: text})
    file = target.open()
    try:
        with open_writer(_Whole(file), schema) as writer:
            batches: list[Any] = []
            nbytes = 0
            for start, values, masks in planned.pieces(target.max_memory, target.path):
                cells = columns.cells(start, values, masks)
                batches.append(_owned(pa.record_batch(cells, schema=schema)))
                nbytes += sum(block.nbytes for block in values)
                if target.progress is not None:
                    target.progress(sum(block.nbytes for block in values))
                if nbytes >= min(BATCH_BYTES, target.max_memory // 16):
                    writer.write_table(pa.Table.from_batches(batches, schema))
                    batches, nbytes = [], 0
            if batches:
                writer.write_table(pa.Table.from_batches(batches, schema))
    except OSError as error:
        raise write_failed(target.path, error) from error
    except failures() as error:
        if hasattr(error, "exit_code"):
            raise
        raise WouldLose(f"pyarrow refuses to write it: {str(error)[:200]}", path=target.path,
                        remedy="nothing was written") from error  # fmt: skip


def _owned(batch: Any) -> Any:
    """A copy of a batch, since its memory is used again for the next piece."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()
