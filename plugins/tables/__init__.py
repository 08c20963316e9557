"""Tables: CSV, Parquet, Arrow and XLSX, one module for each format, each a plugin of its own.

All read and write one model (`model`): columns of equal length, each of one type, in which values
may be missing. `reader` finds the axes in a table and makes arrays of it, `plan` makes tables of
arrays, `words` is the text form of values that reads back with the same bits. The facts of arrays
that cells do not show are a record (`record`), which Parquet, Arrow and XLSX store. All share one
namespace for metadata, ``table``.
"""
