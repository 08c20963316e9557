"""Parquet: tables in columns, read and written.

Specification: Apache Parquet, https://parquet.apache.org/docs/file-format/. Compared with: pandas
and pyarrow. pyarrow reads and writes; the extra is ``raconvert[parquet]``.

Reads: integers, floats, float16, bools, texts, bytes (of one width as void), dates (datetime64[D]),
timestamps (datetime64 of their unit, in UTC; the zone is the attribute ``timezone``), durations,
times of day (as durations), lists of one length and fixed-shape tensors (axes of their own,
permutation and names respected), and dictionaries (categories) as their values. A null is missing,
NaN is a value: an array with nulls has the array ``NAME.null`` beside it, structures a field
``x.null``. A column of another type (lists of any length, structures, maps, decimals) has its
place, and the others are read; ``decimals=text`` reads decimals exactly, as text. Columns are read
batch by batch when they are asked for; the texts of a file are looked at once for their width.

Mapping: a table without axes is one array of structures, a record for each row, or a plain array if
it has one column. Axes are found as in CSV: ``axes=region,year`` names the columns, ``axes=none``
says that there are none. What raconvert writes says what its arrays were.

Writes: arrays over the same axes as columns, a long table if an axis has labels (a dictionary for
texts), else a row for each index of the first axis, with a tensor if there are more (the extension
arrow.fixed_shape_tensor); ``layout=long`` or ``layout=tensor`` asks for one, ``wide=AXIS`` for a
pivot. All types but float8 and structures inside structures. To other programs complex numbers are
pairs, bfloat16 float32, seconds milliseconds or, beyond those, whole numbers, as days beyond 5.8
million years and times of units that Parquet lacks are, texts of any length (named); all of them
come back as they were. Masks of missing values, those of other formats and fields ``x.null`` of
structures too, become nulls, as NaT does. Metadata is kept in the schema, under ``raconvert``.

An array is not added to a file (`-o FILE#NAME`): beside the rows of others it would be a join, with
rows that one side lacks; write all arrays together.

Refused: encrypted files, footers that contradict the file. Writing: arrays of different axes.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source

from .options import LAYOUT, OF_ARROW, WIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["FORMAT", "plan", "read", "sniff"]

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
TAIL = 8  # length of the footer and magic
# Every structure in a footer ends with a zero byte; pyarrow needs about as much for each.
STRUCTURE_BYTES = 300
# One column of two int64; written by pyarrow, without statistics.
_SAMPLE = bytes.fromhex(
    "504152311500152c152c2c15041500150615061c000000020000000401010000000000000002000000000000"
    "001504192c35001806736368656d6115020015042502180178001604191c191c26001c150419250600191801"
    "7815001604165216522608491c150015001502003c2906192600040000001652160426081652002820706172"
    "717565742d6370702d6172726f772076657273696f6e2032362e302e31191c1c0000007a00000050415231"
)  # fmt: skip

FORMAT = Format(
    name="parquet",
    title="Parquet table",
    suffixes=(".parquet", ".pq"),
    magic=((0, MAGIC),),
    write_options=(
        WIDE,
        LAYOUT,
        Option("compression", "snappy", ("snappy", "zstd", "gzip", "none"), "of its pages"),
    ),
    samples={"two.parquet": _SAMPLE},
    spec="https://parquet.apache.org/docs/file-format/",
    **OF_ARROW,
)  # fmt: skip


def sniff(source: Source) -> int:
    """Return SURE if the magic is at both ends."""
    if source.head[:4] != MAGIC or source.size < 12:
        return NO
    return SURE if source.read_at(source.size - 4, 4) in (MAGIC, ENCRYPTED) else NO


def read(
    source: Source,
    *,
    layout: str = "auto",
    axes: str = "auto",
    wide: str = "",
    missing: str = "mask",
    fill: str = "",
    name: str = "",
    decimals: str = "refuse",
) -> Bundle:
    """Read the arrays of the table lazily: values come batch by batch when they are needed.

    Raises `Corrupt` for a file that pyarrow refuses, `Unsupported` for encrypted files, `TooLarge`
    above the limits.
    """
    from .arrow_table import ArrowTable, read_by_arrow
    from .reader import Asked

    rows = _check_footer(source)

    def table_in(file: Any) -> ArrowTable:
        table = _opened(source, file)
        return ArrowTable(source, table.schema_arrow, rows, _batches(table), decimals=decimals)

    return read_by_arrow(source, table_in, Asked(layout, axes, wide, missing, fill, name))


def _check_footer(source: Source) -> int:
    """Check the footer; return the number of rows. Raises `Corrupt`, `Unsupported`, `TooLarge`."""
    from raconvert.arrays.memory import check_memory

    from .footer import check_footer

    size = source.size
    tail = source.read_exact(max(0, size - TAIL), TAIL, "the end of the footer")
    if tail[4:] == ENCRYPTED or source.head[:4] == ENCRYPTED:
        raise Unsupported("is encrypted", path=source.path,
                          remedy="decrypt it first, with its keys")  # fmt: skip
    if tail[4:] != MAGIC or source.head[:4] != MAGIC:
        raise Corrupt("does not begin and end as Parquet files do", path=source.path,
                      expected="PAR1", got=tail[4:].decode("latin-1"))  # fmt: skip
    length = int.from_bytes(tail[:4], "little")
    if length > size - TAIL - 4 or length > source.limits.hierarchy_bytes:
        raise Corrupt("footer has an impossible length", path=source.path,
                      where=f"byte {size - TAIL}",
                      expected=f"at most {min(size - TAIL - 4, source.limits.hierarchy_bytes)}",
                      got=length)  # fmt: skip
    footer = source.read_exact(size - TAIL - length, length, "the footer")
    check_memory(STRUCTURE_BYTES * footer.count(0), source.max_memory // 4,
                 f"'{source.path}': footer", f"{length} bytes")  # fmt: skip
    return check_footer(source, size - TAIL - length, footer)


def _opened(source: Source, file: Any) -> Any:
    """Open a file with pyarrow, within the limits of the source."""
    from pyarrow import parquet

    limits = source.limits
    return parquet.ParquetFile(
        file, pre_buffer=False, buffer_size=1 << 16,
        thrift_string_size_limit=limits.document_bytes, thrift_container_size_limit=limits.nodes,
    )  # fmt: skip


def _batches(table: Any) -> Any:
    """Return the function that yields some columns of a file, so many rows at a time."""
    schema = table.schema_arrow
    names = list(schema.names)
    unique = len(set(names)) == len(names)

    def batches(numbers: Sequence[int], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        chosen = [names[n] for n in numbers] if unique else None
        for batch in table.iter_batches(rows, columns=chosen, use_threads=False):
            if unique:
                indices = [batch.schema.get_field_index(names[n]) for n in numbers]
            else:
                indices = list(numbers)
            columns = [batch.column(index) for index in indices]
            fields = [batch.schema.field(index) for index in indices]
            if not columns:
                yield batch
            else:
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    return batches


def plan(
    bundle: Bundle, *, wide: str = "", layout: str = "auto", compression: str = "snappy"
) -> Plan:
    """Plan one table of arrays over the same axes, or of the fields of one array of structures."""
    from .arrow_plan import arrow_plan

    def open_writer(file: Any, schema: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema, compression=compression, store_schema=True)

    return arrow_plan(bundle, "Parquet", layout=layout, wide=wide, open_writer=open_writer,
                      parquet=True)  # fmt: skip
