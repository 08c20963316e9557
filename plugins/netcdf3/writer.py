"""Writing: the header, the variables of fixed size, then the records."""

from __future__ import annotations

from raconvert.arrays.blocks import Feed, block_bytes, blocks
from raconvert.errors import Corrupt
from raconvert.files.copy import copy_extent_to, reserve, write_all
from raconvert.files.paths import write_failed

from .header import encoded, padded
from .tables import FILLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Target

    from .header import Header, Variable


def write_file(header: Header, arrays: Sequence[Array], target: Target) -> None:
    """Write a file: `arrays` have the bytes of its variables, in their order and byte order."""
    pairs = [*zip(header.variables, arrays, strict=True)]
    fixed = [pair for pair in pairs if not header.is_record(pair[0])]
    inside = [pair for pair in pairs if header.is_record(pair[0])]
    for array in arrays:
        if array.extent is None and array.count:
            _ = array.data  # opened here, so that an error comes before room is taken
    file = target.open()
    try:
        write_all(file, [encoded(header)])
        end = header.end
        for variable, array in fixed:
            row = header.row_of(variable)
            end = variable.begin + padded(row)
            _write_fixed(file, variable, array, row, target)
            file.seek(variable.begin + row)
            write_all(file, [_filling(variable, padded(row) - row)])
        if inside:
            _write_records(file, header, inside, target)
        else:
            file.truncate(end)
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_fixed(file: FileIO, variable: Variable, array: Array, row: int, target: Target) -> None:
    """Write the `row` bytes of a variable of fixed size."""
    if array.extent is not None:
        copy_extent_to(array.extent, file, variable.begin, target.progress)
        return
    file.seek(variable.begin)
    done = 0
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        data = block.reshape(-1).view("u1")
        done += data.nbytes
        if done > row:
            break
        write_all(file, [data])
    if done != row:
        what = f"array '{array.name}' is not as long as its dims say"
        raise Corrupt(what, expected=f"{row} bytes", got=done)


def _write_records(
    file: FileIO, header: Header, inside: list[tuple[Variable, Array]], target: Target
) -> None:
    """Write the records: several at once, or the parts of each piece by piece if they are large."""
    import numpy as np

    record, count = header.record_bytes(), header.records or 0
    budget = block_bytes(target.max_memory)
    most = max(1 << 16, budget // len(inside))
    rows = [header.row_of(variable) for variable, _ in inside]
    feeds = [_feed(array, most, target) for _, array in inside]
    first = inside[0][0].begin
    reserve(file, first + record * count)
    file.seek(first)
    alone = len(inside) == 1
    pads = [_filling(one, 0 if alone else padded(row) - row)
            for (one, _), row in zip(inside, rows, strict=True)]  # fmt: skip
    if record > budget:
        for _ in range(count):
            for feed, row, pad in zip(feeds, rows, pads, strict=True):
                write_all(file, feed.pieces(row))
                write_all(file, [pad])
    else:
        step = max(1, min(count, budget // max(1, record)))
        room = np.empty((step, record), np.uint8)
        end = 0
        columns = []
        for row, pad in zip(rows, pads, strict=True):
            begin, end = end, end + row
            columns.append(slice(begin, end))
            room[:, end : end + len(pad)] = np.frombuffer(pad, np.uint8)
            end += len(pad)
        for start in range(0, count, step):
            some = min(step, count - start)
            for feed, column, row in zip(feeds, columns, rows, strict=True):
                room[:some, column] = feed.take(some * row).reshape(some, row)
            write_all(file, [room[:some]])
    for feed, (_, array) in zip(feeds, inside, strict=True):
        if feed.more():
            raise Corrupt(f"array '{array.name}' is longer than its dims say")
    file.truncate(first + record * count)


def _feed(array: Array, most: int, target: Target) -> Feed:
    """Return the feed of the bytes of an array, from which any number is taken at a time."""
    import numpy as np

    def pieces() -> Iterator[Any]:
        for block in target.counted(blocks(array, most)):
            yield block.reshape(-1).view(np.uint8)

    return Feed(pieces(), np.dtype(np.uint8), f"array '{array.name}'")


def _filling(variable: Variable, count: int) -> bytes:
    """Return `count` bytes of the fill value that pads the data of a variable of a narrow type."""
    raw = {attribute.name: attribute.raw for attribute in variable.attributes}
    fill = raw.get("_FillValue") or FILLS.get(variable.type, b"\0")
    return (fill * count)[:count]
