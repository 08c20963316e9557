"""The whole of an exporter of raw data: header, elements, trailer."""

from __future__ import annotations

from raconvert.files.copy import check_room, copy_extent, write_all
from raconvert.files.places import (
    write_failed,
)
from raconvert.files.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

    from raconvert.arrays.array import Array


def write_raw(target: Target, header: bytes, array: Array, trailer: bytes = b"") -> FileIO:
    """Write `header`, the array's elements little-endian in stored order, and `trailer`.

    The whole of an exporter of raw data: by a file-to-file copy where the array has an extent
    (numpy is imported only if bytes must be swapped), else block by block, in bounded memory.
    Returns the open file.

    >>> with Target("raw.bin") as target:
    ...     file = write_raw(target, b"HEAD", array_of(np.arange(3, dtype=">u2")))
    ...     target.commit()
    >>> Path("raw.bin").read_bytes().hex(" ", 2)
    '4845 4144 0000 0100 0200'

    Raises `WriteFailed`, and what reading the data raises.
    """
    file = target.open()
    try:
        if array.extent is not None:
            copy_extent(header, array.extent, file, target.progress)
        else:
            _write_blocks(target, file, header, array)
        write_all(file, [trailer])
    except OSError as error:
        raise write_failed(target.path, error) from error
    return file


def _write_blocks(target: Target, file: FileIO, header: bytes, array: Array) -> None:
    from raconvert.arrays.blocks import block_bytes, blocks

    waiting = [header]
    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        if waiting:  # only now: data that is refused when it is asked for takes no room
            check_room(file, len(header) + array.nbytes)
            write_all(file, waiting)
            waiting.clear()
        # As bytes: dates and bfloat16 have no buffer of their own.
        write_all(file, [block.reshape(-1).view("u1")])
    write_all(file, waiting)
