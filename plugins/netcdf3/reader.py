"""Reading: from a netCDF classic file to a bundle."""

from __future__ import annotations

from contextlib import contextmanager
from math import prod

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.arrays.interop.times import take_times
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY, take_common, take_record
from raconvert.plugin import Array, Bundle, Element, Metadata, Source

from ..hdf5.tables import NAMESPACE as HDF5
from .header import Header, Variable, read_header
from .metadata import remembered, settled, values_of
from .structure import Coordinates
from .tables import BOOL, CHAR, ELEMENTS, ENCODING, NAMESPACE, UTF8_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.limits import Limits


class Part(Record):
    """The extent of a variable: `row` bytes, once or in each record; `shape` is of all its dims."""

    variable: Variable
    shape: tuple[int, ...]
    row: int
    is_record: bool


class ReadVariable(Record):
    """A variable and the array that it is.

    `dims` are the names of the dimensions of the array, slowest first; `has_axes` is True if its
    record says its axes. `axis_of` is the name of the array whose axis a coordinate was made from:
    it is not an array of the file; else empty.
    """

    variable: Variable
    array: Array
    dims: tuple[str, ...]
    axis_of: str = ""
    has_axes: bool = False


def read_file(source: Source) -> Bundle:
    """Read the variables of a file in C order: extents, or stretches in the records.

    Raises `Corrupt`, `Unsupported` and `TooLarge` before any data is read.
    """
    notes: list[str] = []
    header = read_header(source, notes)
    if not header.variables:
        raise Unsupported("holds no array", path=source.path, expected="a variable")
    variables = read_variables(source, header, notes)
    arrays = [read.array for read in variables if not read.axis_of]
    if not arrays:
        raise Unsupported("holds coordinates only, and no array", path=source.path)
    used = {number for variable in header.variables for number in variable.dims}
    unused = [f"'{dim.name}'" for number, dim in enumerate(header.dims) if number not in used]
    if unused:
        more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
        notes.append(f"no variable has the dimensions {', '.join(unused[:5])}{more}: left out")
    bundle = Bundle(some_sound(arrays), notes=notes)
    _describe_file(bundle, header, source, notes)
    return bundle


def read_variables(source: Source, header: Header, notes: list[str]) -> list[ReadVariable]:
    """Return all variables of a file with their arrays, coordinates made from axes included."""
    parts, record = parts_of(source, header, notes), header.record_bytes()
    variables = [_read_variable(source, header, part, record, notes) for part in parts]
    names: set[str] = set()
    for number, read in enumerate(variables):
        if read.array.name in names:
            error = Corrupt(f"two arrays have the name '{read.array.name}'", path=source.path)
            array = Array.unreadable(read.variable.name, error)
            variables[number] = read._replace(array=array)
        names.add(variables[number].array.name)
    _name_axes(variables, source.limits)
    return variables


def _describe_file(bundle: Bundle, header: Header, source: Source, notes: list[str]) -> None:
    """Give a bundle the attributes of the file, and the facts of the record among them."""
    values, types = values_of(header.attributes, "the file", notes)
    record = take_record(values, source.path, source.limits)
    if record:
        types.pop(KEY)
    bundle.attributes = values
    space = remembered(types)
    unlimited = next((dim.name for dim in header.dims if dim.length is None), None)
    if unlimited is not None and any(map(header.is_record, header.variables)):
        bundle.formats[NAMESPACE] = {"unlimited": unlimited}
    if space:
        bundle.formats[HDF5] = space
    if record:
        roundtrip.apply_to_file(record, bundle, source.path)


# The data ----------------------------------------------------------------------------------------


def records_of(source: Source, header: Header, notes: list[str]) -> int:
    """Return the number of records, by the size of the file if the header does not count them."""
    if header.records is not None:
        return header.records
    record = header.record_bytes()
    inside = [variable for variable in header.variables if header.is_record(variable)]
    end = max((variable.begin + header.row_of(variable) for variable in inside), default=0)
    # The padding of the last record need not be there.
    records = max(0, (source.size - end) // record + 1) if record else 0
    notes.append(f"the header does not count the records: {records} are in the file")
    return records


def parts_of(source: Source, header: Header, notes: list[str]) -> list[Part]:
    """Return the extents of all variables; raises `Corrupt` if two overlap."""
    records = records_of(source, header, notes)
    parts = []
    for variable in header.variables:
        in_records = header.is_record(variable)
        lengths = [header.dims[number].length for number in variable.dims]
        shape = tuple(records if length is None else length for length in lengths)
        parts.append(Part(variable, shape, header.row_of(variable), in_records))
    first = min((part.variable.begin for part in parts if part.is_record), default=0)
    _check_apart(source, header, parts, first, header.record_bytes(), records)
    return parts


def _check_apart(
    source: Source, header: Header, parts: list[Part], first: int, record: int, records: int
) -> None:
    """Refuse variables that lie in the header, or in each other."""
    spans = [(p.variable.begin, p.variable.begin + p.row, p.variable.name) for p in parts
             if not p.is_record]  # fmt: skip
    rows = [(p.variable.begin, p.variable.begin + p.row, p.variable.name) for p in parts
            if p.is_record]  # fmt: skip
    if rows and records:
        rows.append((first + record, first + record, "the next record"))
        last = max(stop for _, stop, _ in rows[:-1])
        spans.append((first, last + record * (records - 1), "the records"))
    for listed in (sorted(spans), sorted(rows) if records else []):
        end, before = header.end, "the header"
        for begin, stop, name in listed:
            if begin < end:
                raise Corrupt(
                    f"'{name}' lies in '{before}'", path=source.path, where=f"byte {begin}",
                    expected=f"byte {end} or later", got=begin,
                )  # fmt: skip
            end, before = stop, name


def _read_variable(
    source: Source, header: Header, part: Part, record: int, notes: list[str]
) -> ReadVariable:
    """Return a variable as an array with its metadata; unreadable if an error of ours is raised."""
    variable = part.variable
    names = tuple(header.dims[number].name for number in variable.dims)
    of = f"'{variable.name}'"
    values, types = values_of(variable.attributes, of, notes)
    try:
        record_of_array = take_record(values, source.path, source.limits)
        if record_of_array:
            types.pop(KEY)
        axis_of = record_of_array.pop("axis_of", "")
        letters = _letters(part, values, record_of_array, source.limits)
        array = array_of(source, part, record, letters)
        if letters:
            names = names[:-1]
        array = _described(array, values, types, variable.type, record_of_array, source)
    except RaconvertError as error:
        return ReadVariable(variable, Array.unreadable(variable.name, error), ())
    if letters and header.dims[variable.dims[-1]].name != f"string{letters}":
        array.meta = array.meta.with_format(NAMESPACE, text=header.dims[variable.dims[-1]].name)
    axis_of = axis_of if isinstance(axis_of, str) else ""
    return ReadVariable(variable, array, names, axis_of, "axes" in record_of_array)


def _letters(part: Part, values: dict[str, Any], record: dict[str, Any], limits: Limits) -> int:
    """Return the chars in a text if the fastest dimension is the letters of texts, else 0."""
    if part.variable.type != CHAR or len(part.shape) <= part.is_record:
        return 0
    code = record.get("was", {}).get("type")
    was = isinstance(code, str) and code.lstrip("<>|=")[:1] in ("S", "U")
    is_text = was or isinstance(values.get(ENCODING), str)
    return part.shape[-1] if is_text and part.shape[-1] <= limits.document_bytes else 0


def _described(
    array: Array, values: dict[str, Any], types: Any, number: int, record: dict[str, Any],
    source: Source,
) -> Array:  # fmt: skip
    """Return the array with the facts of its attributes and its record.

    `number` is that of its type in the file.
    """
    was = record.get("was", {})
    fields: dict[str, Any] = {}
    is_text = array.element.kind == "user" and array.element.nbytes > 0
    if is_text and str(values.get(ENCODING)).lower() in UTF8_WORDS:
        fields["encoding"] = "utf-8"
        del values[ENCODING]
    if was.get("type") == "|b1" and all(values.get(key) == word for key, word in BOOL.items()):
        for key in BOOL:
            del values[key]
    descr = array.element.descr
    if descr is not None and was.get("type") == descr:  # it is read as that already
        record["was"] = {key: value for key, value in was.items() if key != "type"}
    types = settled(types, number)
    take_times(values, types, record)
    fields |= take_common(values)
    array.meta = Metadata(attributes=values, **fields)
    space = remembered(types)
    if space:
        array.meta = array.meta.with_format(HDF5, **space)
    problem = array.problem
    if record:
        array = roundtrip.apply(record, array, source.path, source.limits)
        array.problem = array.problem or problem
    if array.element.kind == "user" and str(array.element.descr)[1:2] == "U":
        array.meta = array.meta.replace(encoding=record.get("encoding"))
    return array


def array_of(source: Source, part: Part, record: int, letters: int) -> Array:
    """Return the array of a variable without metadata.

    `letters` is the number of chars of the fastest dimension that are one text, else 0.
    """
    variable, shape = part.variable, part.shape
    kind = ELEMENTS[variable.type]
    if letters:
        kind, shape = Element("user", letters, "|", f"|S{letters}"), shape[:-1]
    if spanned(shape, kind.nbytes) > MAX_SPAN:
        raise Corrupt(
            f"variable '{variable.name}' is too large", path=source.path,
            expected="less than 2**63 bytes", got=str(shape)[:80],
        )  # fmt: skip
    fields: dict[str, Any] = {"name": variable.name, "index_order": "C"}
    nbytes = prod(shape) * kind.nbytes
    steps = shape[0] - 1 if part.is_record else 0
    end = variable.begin + record * steps + part.row if nbytes else 0
    if end <= source.size and (not part.is_record or record == part.row):
        begin = variable.begin if nbytes else 0
        fields["extent"] = source.extent(begin, nbytes, needs_swap(kind))
    elif end <= source.size:
        fields["data"] = lambda: _records(source, part, record, kind, shape)
    array = Array(kind, shape[::-1], **fields)
    array.storage["layout"] = "records" if part.is_record else "contiguous"
    if end > source.size:
        array.problem = Corrupt(
            f"data of '{variable.name}' is cut off", path=source.path,
            where=f"byte {source.size}", expected=f"{end} bytes", got=source.size,
        )  # fmt: skip
    return array


def _records(source: Source, part: Part, record: int, kind: Element, shape: tuple[int, ...]) -> Any:
    """Return the array source of a variable that has a stretch in each record."""
    import numpy as np

    from raconvert.arrays.regions import full_key, is_basic, region, slabs
    from raconvert.arrays.sources import InPlace
    from raconvert.files.paths import close_file
    from raconvert.plugin import dtype_of

    inner = [kind.nbytes * prod(shape[axis + 1 :]) for axis in range(1, len(shape))]
    extent = source.extent(part.variable.begin, record * (shape[0] - 1) + part.row)

    class Records(InPlace):
        path = source.path

        @contextmanager
        def located(self) -> Iterator[tuple[Any, int]]:
            file = extent.open()
            try:
                yield file, extent.offset
            finally:
                close_file(file)

        def part(self, key: Any) -> Any:
            full = full_key(key, len(self.shape))
            if self.held() is not None or not is_basic(full) or not self._is_less(full):
                return self[key]
            return self._region(full)

        def _region(self, key: Any) -> Any:
            with self.located() as (file, offset):
                return region(
                    file, self.path, offset, self.dtype, self.shape, (record, *inner), key
                )

        def stream(self, max_bytes: int) -> Iterator[Any]:
            for key in slabs(self.shape, self.dtype.itemsize, max_bytes):
                yield np.ascontiguousarray(self._region(key)).reshape(-1)

    return Records(
        shape, dtype_of(kind), what=f"'{source.path}': variable '{part.variable.name}'",
        max_memory=source.max_memory,
    )  # fmt: skip


# Axes --------------------------------------------------------------------------------------------


def _name_axes(variables: list[ReadVariable], limits: Limits) -> None:
    """Give arrays the axes that dimensions, and the variables of their names, describe."""
    scales = {read.variable.name: read.array for read in variables if is_coordinate(read)}
    coordinates = Coordinates(scales, limits)
    for read in variables:
        array = read.array
        if array.problem is None and read.dims and not (read.axis_of or read.has_axes):
            axes = coordinates.axes_of(read.variable.name, read.dims, array.dims[::-1])
            axes = axes[: array.ndim]
            array.meta = array.meta.replace(axes=axes) if any(axes) else array.meta
        elif array.meta.axes and not any(array.meta.axes):  # the record says: without names
            array.meta = array.meta.replace(axes=())


def is_coordinate(read: ReadVariable) -> bool:
    """True for a readable variable with the name of its only dimension."""
    return read.dims == (read.variable.name,) and read.array.problem is None
