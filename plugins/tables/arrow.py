"""Arrow: files of record batches (Arrow IPC, Feather 2), read and written.

Specification: Apache Arrow columnar format, IPC file format,
https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format. Compared with: pandas and
pyarrow. pyarrow reads and writes; the extra is ``raconvert[parquet]``.

Types and axes are those of Parquet, but timestamps in seconds stay such here.
Each batch is validated in full before its values are taken. Streams (without the magic ``ARROW1``)
and Feather 1 are not read.
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source

from .options import LAYOUT, OF_ARROW, WIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = ["FORMAT", "plan", "read", "sniff"]

MAGIC = b"ARROW1"
_SAMPLE = bytes.fromhex(
    "4152524f57310000ffffffff780000001000000000000a000c000600050008000a000000000104000c000000"
    "080008000000040008000000040000000100000014000000100014000800060007000c000000100010000000"
    "00000102100000001c0000000400000000000000010000007800000008000c00080007000800000000000001"
    "40000000ffffffff8800000014000000000000000c0016000600050008000c000c0000000003040018000000"
    "100000000000000000000a0018000c00040008000a0000003c00000010000000020000000000000000000000"
    "0200000000000000000000000000000000000000000000000000000010000000000000000000000001000000"
    "0200000000000000000000000000000001000000000000000200000000000000ffffffff0000000010000000"
    "0c001400060008000c0010000c00000000000400340000002400000004000000010000008800000000000000"
    "9000000000000000100000000000000000000000080008000000040008000000040000000100000014000000"
    "100014000800060007000c00000010001000000000000102100000001c000000040000000000000001000000"
    "7800000008000c0008000700080000000000000140000000a00000004152524f5731"
)  # fmt: skip

FORMAT = Format(
    name="arrow",
    title="Arrow (Feather) table",
    suffixes=(".arrow", ".feather", ".ipc"),
    magic=((0, MAGIC + b"\0\0"),),
    write_options=(
        WIDE,
        LAYOUT,
        Option("compression", "none", ("none", "lz4", "zstd"), "of its buffers"),
    ),
    samples={"two.arrow": _SAMPLE},
    spec="https://arrow.apache.org/docs/format/Columnar.html",
    **OF_ARROW,
)  # fmt: skip


def sniff(source: Source) -> int:
    """Return SURE if the magic is at both ends."""
    begins = source.size > 2 * len(MAGIC) and source.head.startswith(MAGIC + b"\0\0")
    return SURE if begins and source.read_at(source.size - 6, 6) == MAGIC else NO


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

    Raises `Corrupt` for a file that pyarrow refuses, `TooLarge` above the limits.
    """
    from .arrow_table import ArrowTable, read_by_arrow
    from .reader import Asked

    _check_footer(source)

    def table_in(file: Any) -> ArrowTable:
        import pyarrow as pa

        opened = pa.ipc.open_file(pa.PythonFile(file, "r"))
        rows = sum(batch.num_rows for batch in _validated(opened))
        return ArrowTable(source, opened.schema, rows, _batches(opened), decimals=decimals)

    return read_by_arrow(source, table_in, Asked(layout, axes, wide, missing, fill, name))


def _check_footer(source: Source) -> None:
    """Raise `Corrupt` for a file without the magic at both ends, or a footer of a wrong length."""
    size = source.size
    tail = source.read_exact(max(0, size - 10), 10, "the end of the footer")
    length = int.from_bytes(tail[:4], "little", signed=True)
    if tail[4:] != MAGIC or not source.head.startswith(MAGIC):
        raise Corrupt("does not begin and end as Arrow files do", path=source.path,
                      expected="ARROW1", got=tail[4:].decode("latin-1"))  # fmt: skip
    most = min(size - 18, source.limits.hierarchy_bytes)
    if not 0 < length <= most:
        raise Corrupt("footer has an impossible length", path=source.path,
                      where=f"byte {size - 10}", expected=f"1 to {most}", got=length)  # fmt: skip


def _validated(opened: Any) -> Iterator[Any]:
    """Yield all batches of a file, each validated by pyarrow."""
    for number in range(opened.num_record_batches):
        batch = opened.get_batch(number)
        batch.validate(full=True)
        yield batch


def _batches(opened: Any) -> Any:
    """Return the function that yields some columns of a file, so many rows at a time."""

    def batches(numbers: Sequence[int], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        for batch in _validated(opened):
            columns = [batch.column(n) for n in numbers]
            fields = [batch.schema.field(n) for n in numbers]
            chosen = batch  # only its number of rows is used without columns
            if columns:
                chosen = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            for start in range(0, batch.num_rows, rows):
                yield chosen.slice(start, rows)

    return batches


def plan(
    bundle: Bundle, *, wide: str = "", layout: str = "auto", compression: str = "none"
) -> Plan:
    """Plan one table of arrays over the same axes, or of the fields of one array of structures."""
    from .arrow_plan import arrow_plan

    def open_writer(file: Any, schema: Any) -> Any:
        import pyarrow as pa

        codec = None if compression == "none" else compression
        options = pa.ipc.IpcWriteOptions(compression=codec, unify_dictionaries=True)
        return pa.ipc.new_file(file, schema, options=options)

    return arrow_plan(bundle, "Arrow", layout=layout, wide=wide, open_writer=open_writer,
                      parquet=False)  # fmt: skip
