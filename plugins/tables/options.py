"""Options of reading that all tables have; importing them imports nothing else."""

from __future__ import annotations

from raconvert.plugin import Option

__all__ = ["READING", "WIDE"]

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
