"""What writing makes of a bundle: columns of records, and the schema that names them."""

from __future__ import annotations

from collections import namedtuple

# One column to write. `values`, `null`, `offsets`, `bytes` are arrays or None; a column with a
# `dim` is computed: the coordinate of that dimension. `cast` is how the values become those of the
# column: "view" or "float32".
Out = namedtuple("Out", "column name values null offsets bytes dim cast")

# `shape` is that of the cells, or one number of records; `cells` the array of places of records
# with coordinates; `raw` the array of whole records, if that is all there is.
RecordPlan = namedtuple(
    "RecordPlan", "outs shape dims chunks cells raw schema_text settings attributes"
)
