"""Bytes on their way to a file: file-to-file copies into a `raconvert.files.target.Target`.

Copies between files use slabs whose writes start on page borders, after `posix_fallocate`: on ext4
and xfs about 0.7 of the time of `cp`, while `copy_file_range` is slower than `cp` when the two
files differ in page phase (they nearly always do). Holes of sparse sources stay holes. Byte order
is changed inside the slab. What plugins need of `raconvert.files.target` is at hand here too.
"""

from __future__ import annotations

import errno
import os
from zlib import crc32

from raconvert.errors import Corrupt, ReadFailed
from raconvert.files.regular import check_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.extent import Extent
SLAB_BYTES = 1 << 20  # 512 KiB to 1 MiB is fastest; larger slabs meet huge-page stalls
_FICLONE = 0x40049409  # linux/fs.h: share the blocks of a whole file (btrfs, xfs)


def write_all(file: FileIO, pieces: Iterable[Any]) -> int:
    """Write every piece (anything with the buffer protocol) whole; return the bytes written."""
    total = 0
    for piece in pieces:
        view = memoryview(piece).cast("B") if memoryview(piece).nbytes else memoryview(b"")
        while view:
            written = file.write(view) or 0
            total += written
            view = view[written:]
    return total


def reserve(file: FileIO, nbytes: int) -> None:
    """Allocate the disk blocks of a large file at once; a full disk shows here, before any work."""
    if nbytes < SLAB_BYTES or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), 0, nbytes)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise


def check_room(file: FileIO, nbytes: int) -> None:
    """Let a full disk show before any work, but reserve nothing while there is room.

    For data that is made while it is written: reserving in memory file systems takes a quarter of
    the time of writing, in which nothing else would be done.
    """
    if hasattr(os, "fstatvfs"):
        disk = os.fstatvfs(file.fileno())
        if disk.f_bavail * disk.f_frsize < nbytes:
            reserve(file, nbytes)


def copy_extent(
    header: bytes,
    extent: Extent,
    file: FileIO,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write `header` and then the bytes of `extent` at the end of `file`, in bounded memory.

    Bytes are swapped on the way if the extent says so; holes stay holes. A source that became
    shorter meanwhile raises `Corrupt`.
    """
    source = extent.open()
    try:
        begin = file.seek(0, os.SEEK_END) + len(header)
        end = begin + extent.nbytes
        alike = begin == len(header) == extent.offset and extent.swap == 1
        alike &= extent.checksum is None
        if alike and _clone(source, file, end):
            os.pwrite(file.fileno(), header, 0)
        else:
            running = Running(source, extent)
            ranges = list(_data_ranges(source, extent))
            if ranges == [(0, extent.nbytes)]:
                reserve(file, end)
            file.seek(begin - len(header))
            write_all(file, [header])
            for start, stop in ranges:
                _copy_range(source, extent, start, stop, file, begin, progress, running)
            running.finish()
            file.truncate(end)
        check_unchanged(source, extent.path, extent.identity)
        file.seek(end)
    finally:
        os.close(source)


def copy_extent_to(
    extent: Extent,
    file: FileIO,
    begin: int,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write the bytes of an extent into a file from byte `begin`; holes of the source are left."""
    source = extent.open()
    try:
        running = Running(source, extent)
        for start, stop in _data_ranges(source, extent):
            _copy_range(source, extent, start, stop, file, begin, progress, running)
        running.finish()
        check_unchanged(source, extent.path, extent.identity)
    finally:
        os.close(source)


def _copy_range(
    source: int,
    extent: Extent,
    start: int,
    stop: int,
    file: FileIO,
    begin: int,
    progress: Callable[[int], object] | None,
    running: Running,
) -> None:
    """Copy the bytes `start` to `stop` of the extent to a file whose data begins at `begin`.

    All writes but the first start on page borders.
    """
    buffer = memoryview(bytearray(min(SLAB_BYTES, stop - start)))
    file.seek(begin + start)
    while start < stop:
        length = min(stop - start, SLAB_BYTES - (begin + start) % SLAB_BYTES)
        length = length - length % extent.swap or length
        slab = buffer[:length]
        read_extent_into(source, slab, extent, start)
        running.add(slab)
        if extent.swap > 1:
            swap_in_place(slab, extent.swap)
        write_all(file, [slab])
        start += length
        if progress is not None:
            progress(length)


def extent_slabs(extent: Extent, step: int) -> Iterator[memoryview]:
    """Yield the bytes of an extent, little-endian, `step` at a time, each in the same buffer.

    `step` is a multiple of the width of a number.
    """
    source = extent.open()
    try:
        running = Running(source, extent)
        buffer = memoryview(bytearray(min(step, extent.nbytes)))
        for start in range(0, extent.nbytes, step):
            slab = buffer[: min(step, extent.nbytes - start)]
            read_extent_into(source, slab, extent, start)
            running.add(slab)
            if extent.swap > 1:
                swap_in_place(slab, extent.swap)
            if start + step >= extent.nbytes:
                running.finish()
                check_unchanged(source, extent.path, extent.identity)
            yield slab
    finally:
        os.close(source)


class Running:
    """The checksum of an extent while its bytes pass, all of them and in order."""

    def __init__(self, source: int, extent: Extent) -> None:
        self._source = source
        self._extent = extent
        self._value = 0
        if extent.checksum is not None:
            self._pass(extent.checksum.begin, extent.offset)

    def add(self, piece: memoryview) -> None:
        """Add the next bytes."""
        if self._extent.checksum is not None:
            self._value = crc32(piece, self._value)

    def finish(self) -> None:
        """Add what lies behind the extent; `Corrupt` if the checksum is another."""
        extent, checksum = self._extent, self._extent.checksum
        if checksum is None:
            return
        self._pass(extent.offset + extent.nbytes, checksum.end)
        if self._value != checksum.expected:
            raise Corrupt(
                "data is damaged",
                path=extent.path,
                where=checksum.where,
                expected=f"CRC-32 {checksum.expected:08x}",
                got=f"{self._value:08x}",
            )

    def _pass(self, begin: int, end: int) -> None:
        slab = memoryview(bytearray(max(0, min(SLAB_BYTES, end - begin))))
        while begin < end:
            piece = slab[: end - begin]
            read_extent_into(self._source, piece, self._extent, begin - self._extent.offset)
            self.add(piece)
            begin += len(piece)


def check_extent(extent: Extent) -> None:
    """Compare the checksum of an extent that will be read out of order, if it has one, once."""
    if extent.checksum is not None:
        for _ in extent_slabs(extent, SLAB_BYTES // extent.swap * extent.swap):
            pass
        extent.checksum = None


def read_extent_into(source: int, slab: memoryview, extent: Extent, start: int) -> None:
    """Fill the slab with the bytes of the extent from `start`, as they are in the file."""
    done = 0
    while done < len(slab):
        try:
            got = read_at(source, slab[done:], extent.offset + start + done)
        except OSError as error:
            raise ReadFailed(f"cannot be read: {error.strerror}", path=extent.path) from error
        if got == 0:
            raise Corrupt(
                "file became shorter while it was read",
                path=extent.path,
                where=f"byte {extent.offset + start + done}",
                expected=f"{extent.nbytes} bytes of data",
                got=f"{start + done}",
            )
        done += got


def read_at(source: int, slab: memoryview, place: int) -> int:
    """Fill the slab from byte `place` of an open file as far as one call does; return how far."""
    if hasattr(os, "preadv"):
        return os.preadv(source, [slab], place)
    os.lseek(source, place, os.SEEK_SET)
    piece = os.read(source, len(slab))  # Windows has neither preadv nor readv
    slab[: len(piece)] = piece
    return len(piece)


def _data_ranges(source: int, extent: Extent) -> Iterator[tuple[int, int]]:
    """Yield the (start, stop) of what is not a hole, relative to the extent, on element borders."""
    status = os.fstat(source)
    sparse = getattr(status, "st_blocks", 0) * 512 < status.st_size and hasattr(os, "SEEK_DATA")
    if not sparse or extent.checksum is not None:
        if extent.nbytes:
            yield 0, extent.nbytes
        return
    end = extent.offset + extent.nbytes
    place = extent.offset
    if status.st_size < end:  # it became shorter: the plain copy says so
        yield 0, extent.nbytes
        return
    while place < end:
        try:
            start = os.lseek(source, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a file system that cannot tell: copy all that is left
                first = place - extent.offset
                yield first - first % extent.swap, extent.nbytes
            return  # nothing but a hole from here to the end of the file
        if start >= end:
            return
        place = min(end, os.lseek(source, start, os.SEEK_HOLE))
        first, last = start - extent.offset, place - extent.offset
        yield first - first % extent.swap, min(extent.nbytes, last + -last % extent.swap)


def swap_in_place(slab: memoryview, width: int) -> None:
    """Reverse every number of `width` bytes in the slab."""
    import numpy as np

    numbers = np.frombuffer(slab, np.uint8)
    if width in (2, 4, 8):
        numbers.view(f"u{width}").byteswap(inplace=True)
    else:
        rows = numbers.reshape(-1, width)
        rows[...] = rows[:, ::-1].copy()


def _clone(source: int, file: FileIO, total: int) -> bool:
    """Share the source's blocks with the target (btrfs, xfs) and cut it to `total` bytes."""
    try:
        from fcntl import ioctl

        ioctl(file.fileno(), _FICLONE, source)
    except (ImportError, OSError):  # another file system or system: the ordinary copy follows
        return False
    file.truncate(total)
    return True
