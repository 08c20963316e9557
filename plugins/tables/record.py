"""The record of a table: the facts of arrays that its cells do not show, written and parsed.

A line of JSON (`raconvert.metadata.json`), stored in the schema of Parquet and Arrow and in a
property of XLSX::

    {"raconvert": 1, "tables": {NAME: {
        "axes": [names of the columns that are axes], "shape": [...], "form": "long",
        "wide": {"axis": number, "name": ..., "labels": [...]},
        "arrays": [{"name", "type", "meta", "column", "mask", "shape"}]}},
     "file": {"attributes", "formats"}}

`form` is ``long`` (a column for each axis), ``rows`` (a value for each row, of any inner shape) or
``records`` (an array of structures). ``labelled`` is true for each axis whose column has its
labels. An array of another shape than the first has its own. A record that contradicts its table is
ignored, with a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raconvert.arrays.dtypes import code_of, dtype_of, element_from, frozen, little
from raconvert.arrays.metadata import Metadata
from raconvert.errors import RaconvertError
from raconvert.metadata import json
from raconvert.metadata.roundtrip import without_extents, without_local

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array, Bundle

__all__ = ["KEY", "array_record", "dtype_in", "meta_in", "parse", "text_of"]

KEY = "raconvert"
VERSION = 1
FORMS = ("long", "rows", "records")


def array_record(array: Array, column: str, mask: str | None) -> dict[str, Any]:
    """The record of an array in a column, with the name of its mask. Raises nothing."""
    fields = array.meta.to_dict()
    formats = {
        name: without_extents(without_local(dict(own)))
        for name, own in fields.pop("formats", {}).items()
    }
    formats = {name: own for name, own in formats.items() if own}
    for axis in fields.get("axes", ()):
        if axis.keys() <= {"name", "kind", "units", "labels"}:
            axis.pop("labels", None)  # the cells have them
    meta = {**fields, **({"formats": formats} if formats else {})}
    record = {"name": array.name, "column": column, "type": code_of(little(array.element))}
    return {**record, **({"meta": meta} if meta else {}), **({"mask": mask} if mask else {})}


def text_of(tables: dict[str, Any], bundle: Bundle) -> str:
    """The line for a file. Raises ValueError for metadata that JSON cannot hold."""
    file = {
        name: dict(value)
        for name, value in (("attributes", bundle.attributes), ("formats", bundle.formats))
        if value
    }
    return json.dumps({KEY: VERSION, "tables": tables, **({"file": file} if file else {})})


def parse(text: str, limits: Limits) -> dict[str, Any] | None:
    """The record in a line of `text_of`, its form checked; None for any other line."""
    try:
        record = json.loads(text, limits)
    except (ValueError, RaconvertError):
        return None
    if not isinstance(record, dict) or record.get(KEY) != VERSION:
        return None
    tables = record.get("tables")
    if not isinstance(tables, dict) or not all(map(_is_table, tables.values())):
        return None
    file = record.get("file", {})
    is_file = isinstance(file, dict) and all(isinstance(part, dict) for part in file.values())
    return record if is_file else None


def _is_table(table: Any) -> bool:
    """True for a valid record of a table."""
    if not isinstance(table, dict) or table.get("form") not in FORMS:
        return False
    axes, shape, arrays = (table.get(name) for name in ("axes", "shape", "arrays"))
    wide = table.get("wide")
    return (
        _are(axes, str)
        and _are(table.get("labelled", []), bool)
        and _is_shape(shape)
        and _are(arrays, dict)
        and all(_is_array(array) for array in arrays or ())
        and (wide is None or _is_wide(wide, shape or []))
    )


def _are(values: Any, kind: type) -> bool:
    """True for a list of values of one type."""
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _is_shape(shape: Any) -> bool:
    """True for a list of at most 64 lengths."""
    lengths = shape if _are(shape, int) else [-1]
    return len(lengths) <= 64 and all(type(n) is int and 0 <= n < 1 << 62 for n in lengths)


def _is_wide(wide: Any, shape: list[int]) -> bool:
    """True for a valid record of a wide axis of a shape."""
    return (
        isinstance(wide, dict)
        and type(wide.get("axis")) is int
        and 0 <= wide["axis"] < len(shape)
        and isinstance(wide.get("labels"), list | type(None))
    )


def _is_array(array: dict[str, Any]) -> bool:
    """True for a valid record of an array."""
    has_name = isinstance(array.get("name"), str) and bool(array["name"])
    texts = array.get("column"), array.get("mask", "")
    return (
        has_name
        and all(isinstance(text, str) for text in texts)
        and isinstance(array.get("meta", {}), dict)
        and _is_shape(array.get("shape", []))
    )


def dtype_in(array: Mapping[str, Any]) -> np.dtype[Any] | None:
    """The type in the record of an array; None if it is missing or not valid."""
    import numpy as np

    try:
        dtype = dtype_of(element_from(frozen(array.get("type"))))
    except (RaconvertError, TypeError, ValueError, SyntaxError, LookupError, OverflowError,
            AttributeError, np.exceptions.DTypePromotionError):  # fmt: skip
        return None
    return None if dtype.hasobject or dtype.itemsize > 1 << 24 else dtype


def meta_in(array: Mapping[str, Any]) -> Metadata | None:
    """The metadata in the record of an array; None if its form is wrong."""
    from raconvert.arrays.metadata import Axis
    from raconvert.errors import Corrupt
    from raconvert.metadata.roundtrip import check_form

    fields = array.get("meta", {})
    try:
        check_form(fields, "")
        for axis in fields.get("axes", ()):
            if not all(Axis.takes(*field) for field in axis.items()):
                return None
        return Metadata.from_dict(fields)
    except (Corrupt, TypeError, ValueError, AttributeError, LookupError):
        return None
