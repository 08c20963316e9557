"""Options of all tables, and the fields that formats of Arrow share; imports nothing else."""

from __future__ import annotations

from raconvert.plugin import MODEL, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LAYOUT", "OF_ARROW", "READING", "WIDE"]

READING = (
    Option("layout", "auto", ("auto", "records", "columns", "matrix"),
           "records: one array of structures; columns: an array of each; matrix: one of all"),
    Option("axes", "auto", str, "columns that are axes: region,year; none: no column is"),
    Option("wide", "", str, "name of the axis whose labels are the columns"),
    Option("missing", "mask", ("mask", "nan"), "nan: missing floats are NaN, without NAME.null"),
    Option("fill", "", str, "value of combinations without a row; missing: as missing values"),
    Option("name", "", str, "name of an array of all columns, in place of that of the file"),
)  # fmt: skip
WIDE = Option("wide", "", str, "axis whose labels become columns: its name or number")
LAYOUT = Option("layout", "auto", ("auto", "long", "tensor"), "long: a column for each axis")
_DECIMALS = Option("decimals", "refuse", ("refuse", "text"), "text: decimals as text, exactly")
OF_ARROW: dict[str, Any] = {  # fields of `Format` for the formats that pyarrow reads
    "many": True,
    "meta": "some",
    "holds": MODEL,
    "needs": (("pyarrow", "pyarrow>=18"),),
    "native": True,
    "read_options": (*READING, _DECIMALS),
    "losses": "one table: arrays over the same axes; no float8",
}
