"""Bytes on their way to a file: file-to-file copies into a `raconvert.files.target.Target`.

Copies between files use slabs whose writes start on page borders. On a disk `posix_fallocate` comes
first; in memory two threads share the slabs. `copy_file_range` is slower than either when the two
files differ in page phase (they nearly always do). Holes of sparse sources stay holes. Byte order
is changed inside the slab.
"""

from __future__ import annotations

import errno
import os

from raconvert.errors import Corrupt
from raconvert.files.paths import close_file
from raconvert.files.source import check_unchanged, read_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import FileIO
    from typing import Any

    from raconvert.files.paths import Handle
    from raconvert.files.source import Extent, Source


# Numbers in the other byte order, in place: by a compiled loop, else by numpy --------------------
# `copy_stretch` copies from file to file in the same way; None without the compiled module.


def _by_numpy(slab: memoryview | bytearray, width: int) -> None:
    """Reverse every number of `width` bytes in the slab, without the compiled loop."""
    import numpy as np

    numbers = np.frombuffer(slab, np.uint8)
    if width in (2, 4, 8):
        numbers.view(f"u{width}").byteswap(inplace=True)
    else:
        rows = numbers.reshape(-1, width)
        rows[...] = rows[:, ::-1].copy()


BY_NUMPY = _by_numpy
copy_stretch: Callable[[int, int, int, int, int, int, int, Any], int] | None
try:  # the compiled loop does the same without numpy
    from raconvert.files._swap import copy as copy_stretch
    from raconvert.files._swap import swap as _swap
except ImportError:
    copy_stretch, _swap = None, _by_numpy


def swap_in_place(slab: memoryview | bytearray, width: int) -> None:
    """Reverse every number of `width` bytes in the slab."""
    _swap(slab, width)


# For larger writes ext4 asks for memory in pieces so large that finding them may take several times
# as long as all the rest: of Linux 6.18 sometimes for 256 KiB, mostly for 1 MiB.
SLAB_BYTES = 1 << 17
LARGE = 1 << 20  # bytes of a file whose disk blocks are allocated at once
SHARED = 16 << 20  # bytes; from here on two threads copy
STRETCH = 16  # slabs per call of the compiled loop; progress is reported between calls
_FICLONE = 0x40049409  # linux/fs.h: share the blocks of a whole file (btrfs, xfs)


def write_all(file: FileIO, pieces: Iterable[Any]) -> int:
    """Write every piece (anything with the buffer protocol) whole; return the bytes written.

    In slabs, however large a piece is (`SLAB_BYTES`).
    """
    total = 0
    for piece in pieces:
        view = memoryview(piece).cast("B") if memoryview(piece).nbytes else memoryview(b"")
        while view:
            written = file.write(view[:SLAB_BYTES]) or 0
            total += written
            view = view[written:]
    return total


def reserve(file: FileIO, nbytes: int) -> None:
    """Allocate the disk blocks of a large file at once; a full disk shows here, before any work.

    A file system in memory has no blocks: there, that is done only if room may be lacking.
    """
    if nbytes < LARGE:
        return
    if _in_memory(file):
        check_room(file, nbytes)
    else:
        _allocate(file, nbytes)


def _in_memory(file: FileIO) -> bool:
    """True if a file is on a file system in memory; only Linux shows that."""
    device = os.fstat(file.fileno()).st_dev
    if not hasattr(os, "major") or os.major(device):
        return False
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:
            for line in mounts:
                fields = line.split()
                if fields[2] == number:
                    return fields[fields.index(b"-") + 1] in (b"tmpfs", b"ramfs")
    except (OSError, ValueError, IndexError):
        pass
    return False


def _allocate(file: FileIO, nbytes: int) -> None:
    """Allocate the disk blocks of a file, if the system can; raises `OSError` for a full disk."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), 0, nbytes)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise


def check_room(file: FileIO, nbytes: int) -> None:
    """Raise `OSError` for a full disk before any work, but reserve nothing while there is room.

    It is for data that is made while it is written: reserving memory takes a quarter of that time.
    """
    if hasattr(os, "fstatvfs"):
        disk = os.fstatvfs(file.fileno())
        if disk.f_bavail * disk.f_frsize < nbytes:
            _allocate(file, nbytes)


def copy_extent(
    header: bytes,
    extent: Extent,
    file: FileIO,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write `header` and then the bytes of `extent` at the end of `file`, in bounded memory.

    Numbers of `extent.swap` bytes are swapped on the way; holes stay holes. Raises `Corrupt` for a
    source that became shorter meanwhile, `Changed` for any other change.
    """
    source = extent.open()
    try:
        begin = file.seek(0, os.SEEK_END) + len(header)
        end = begin + extent.nbytes
        # The file is empty, and the data has the same offset and the same bytes in both.
        same_layout = begin == len(header) == extent.offset and extent.swap == 1
        if same_layout and extent.checksum is None and _clone(source, file, end):
            os.pwrite(file.fileno(), header, 0)
        else:
            ranges = list(_data_ranges(source, extent))
            if ranges == [(0, extent.nbytes)]:
                reserve(file, end)
            file.seek(begin - len(header))
            write_all(file, [header])
            _Copy(source, extent, file, begin, progress).all(ranges)
            file.truncate(end)
        check_unchanged(source, extent.path, extent.identity)
        file.seek(end)
    finally:
        close_file(source)


def copy_range(source: Source, file: FileIO, begin: int, end: int) -> None:
    """Write the bytes from `begin` to `end` of a source at the end of `file`.

    Raises what `copy_extent` raises.
    """
    if end > begin:
        copy_extent(b"", source.extent(begin, end - begin), file)


def copy_extent_to(
    extent: Extent,
    file: FileIO,
    begin: int,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Write the bytes of an extent into a file from byte `begin`; holes of the source are left."""
    source = extent.open()
    try:
        _Copy(source, extent, file, begin, progress).all(_data_ranges(source, extent))
    finally:
        close_file(source)


class _Copy:
    """An extent on its way into an open file, whose data begins at `begin`."""

    def __init__(
        self,
        source: Handle,
        extent: Extent,
        file: FileIO,
        begin: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._source = source
        self._extent = extent
        self._file = file
        self._begin = begin
        self._progress = progress or bool
        self._running = Running(source, extent)
        self._compiled = copy_stretch if extent.checksum is None else None

    def all(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy these bytes of the extent, (start, stop), and compare its checksum."""
        for start, stop in ranges:
            self._range(start, stop)
        self._running.finish()
        check_unchanged(self._source, self._extent.path, self._extent.identity)

    def _range(self, start: int, stop: int) -> None:
        """Copy one range; all writes but the first start on page borders.

        If a number that is swapped lies across a border, the write starts with that number.
        """
        step = SLAB_BYTES * (STRETCH if self._compiled else 1)
        first = (self._begin + start) // SLAB_BYTES * SLAB_BYTES
        borders = iter(range(first, self._begin + stop, step))

        def new_worker() -> Callable[[int], int]:
            buffer = memoryview(bytearray(min(SLAB_BYTES + self._extent.swap, stop - start)))

            def work(border: int) -> int:
                begin, end = self._cut(border), self._cut(border + step)
                return self._stretch(buffer, max(start, begin), min(stop, end))

            return work

        if stop - start >= SHARED and self._may_share():
            from raconvert.files.threads import shared

            shared(borders, new_worker, self._progress)
            return
        work = new_worker()
        for border in borders:
            self._progress(work(border))

    def _may_share(self) -> bool:
        """True if two threads are faster than one, and the order of writes is free."""
        from raconvert.files.threads import processors

        at_offsets = (
            hasattr(os, "pwrite") and hasattr(os, "preadv") and isinstance(self._source, int)
        )
        ordered = self._extent.checksum is not None
        return at_offsets and not ordered and _in_memory(self._file) and processors() > 1

    def _cut(self, border: int) -> int:
        """Return the offset in the extent of the number that has the byte `border` of the file."""
        offset = border - self._begin
        return offset - offset % self._extent.swap

    def _stretch(self, buffer: memoryview, start: int, stop: int) -> int:
        """Copy some slabs; return the bytes. `_slab` does the rest if the compiled loop fails."""
        extent, offset, source = self._extent, start, self._source
        if self._compiled and isinstance(source, int) and start < stop:
            offsets = extent.offset + start, self._begin + start
            offset += self._compiled(
                source, self._file.fileno(), *offsets, stop - start, extent.swap, SLAB_BYTES, buffer
            )
        most = len(buffer) // extent.swap * extent.swap
        for begin in range(offset, stop, most):
            self._slab(buffer[: min(most, stop - begin)], begin)
        return max(0, stop - start)

    def _slab(self, slab: memoryview, start: int) -> None:
        """Copy the bytes from `start` of the extent that fill the slab."""
        read_extent_into(self._source, slab, self._extent, start)
        self._running.add(slab)
        if self._extent.swap > 1:
            swap_in_place(slab, self._extent.swap)
        offset = self._begin + start
        while slab:
            written = write_at(self._file, slab, offset)
            offset += written
            slab = slab[written:]


def extent_slabs(extent: Extent, step: int, whole: Any = None) -> Iterator[memoryview]:
    """Yield the bytes of an extent, little-endian, `step` at a time, each in the same buffer.

    `step` is a multiple of the width of a number. If `whole` is given, a buffer of `extent.nbytes`
    bytes, the slabs are its parts, one behind the other.
    """
    source = extent.open()
    try:
        running = Running(source, extent)
        buffer = memoryview(bytearray(min(step, extent.nbytes)) if whole is None else whole)
        for start in range(0, extent.nbytes, step):
            begin = 0 if whole is None else start
            slab = buffer[begin : begin + min(step, extent.nbytes - start)]
            read_extent_into(source, slab, extent, start)
            running.add(slab)
            if extent.swap > 1:
                swap_in_place(slab, extent.swap)
            if start + step >= extent.nbytes:
                running.finish()
                check_unchanged(source, extent.path, extent.identity)
            yield slab
    finally:
        close_file(source)


class Running:
    """The running checksum of an extent, whose bytes are added all and in order."""

    def __init__(self, source: Handle, extent: Extent) -> None:
        self._source = source
        self._extent = extent
        self._value = 0
        if extent.checksum is not None:
            self._add_range(extent.checksum.begin, extent.offset)

    def add(self, piece: memoryview) -> None:
        """Add the next bytes."""
        if self._extent.checksum is not None:
            from zlib import crc32

            self._value = crc32(piece, self._value)

    def finish(self) -> None:
        """Add the bytes behind the extent; raises `Corrupt` if the checksum differs."""
        extent, checksum = self._extent, self._extent.checksum
        if checksum is None:
            return
        self._add_range(extent.offset + extent.nbytes, checksum.end)
        if self._value != checksum.expected:
            raise Corrupt(
                "data is damaged",
                path=extent.path,
                where=checksum.where,
                expected=f"CRC-32 {checksum.expected:08x}",
                got=f"{self._value:08x}",
            )

    def _add_range(self, begin: int, end: int) -> None:
        """Read the bytes from `begin` to `end` of the file, and add them."""
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


def read_extent_into(source: Handle, slab: memoryview, extent: Extent, start: int) -> None:
    """Fill the slab with the bytes of the extent from `start`, as they are in the file."""
    done = 0
    while done < len(slab):
        try:
            count = read_at(source, slab[done:], extent.offset + start + done)
        except OSError as error:
            raise read_failed(extent.path, error) from error
        if count == 0:
            raise Corrupt(
                "file became shorter while it was read",
                path=extent.path,
                where=f"byte {extent.offset + start + done}",
                expected=f"{extent.nbytes} bytes of data",
                got=f"{start + done}",
            )
        done += count


def read_at(source: Handle, slab: memoryview, offset: int) -> int:
    """Read from byte `offset` of an open file into the slab, by one call; return the count."""
    if not isinstance(source, int):
        return source.read_into(slab, offset)
    if hasattr(os, "preadv"):
        return os.preadv(source, [slab], offset)
    os.lseek(source, offset, os.SEEK_SET)
    piece = os.read(source, len(slab))  # Windows has neither preadv nor readv
    slab[: len(piece)] = piece
    return len(piece)


def write_at(file: FileIO, slab: memoryview, offset: int) -> int:
    """Write the slab to byte `offset` of a file, by one call; return the bytes written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file.fileno(), slab, offset)
    file.seek(offset)
    return file.write(slab) or 0


def handle_of(file: Any) -> Handle:
    """Return the argument that `read_at` takes for a file that `Source.open` has opened."""
    handle: Handle | None = getattr(file, "handle", None)
    return int(file.fileno()) if handle is None else handle


def _data_ranges(source: Handle, extent: Extent) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of each range without holes in the extent, in whole elements."""
    if not isinstance(source, int):
        if extent.nbytes:
            yield 0, extent.nbytes
        return
    status = os.fstat(source)
    sparse = getattr(status, "st_blocks", 0) * 512 < status.st_size and hasattr(os, "SEEK_DATA")
    if not sparse or extent.checksum is not None:
        if extent.nbytes:
            yield 0, extent.nbytes
        return
    end = extent.offset + extent.nbytes
    offset = extent.offset
    if status.st_size < end:  # it became shorter: the usual copy raises the error
        yield 0, extent.nbytes
        return
    while offset < end:
        try:
            start = os.lseek(source, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a file system that cannot tell: copy all that is left
                first = offset - extent.offset
                yield first - first % extent.swap, extent.nbytes
            return  # nothing but a hole from here to the end of the file
        if start >= end:
            return
        offset = min(end, os.lseek(source, start, os.SEEK_HOLE))
        first, last = start - extent.offset, offset - extent.offset
        yield first - first % extent.swap, min(extent.nbytes, last + -last % extent.swap)


def _clone(source: Handle, file: FileIO, total: int) -> bool:
    """Share the source's blocks with the target (btrfs, xfs) and cut it to `total` bytes."""
    if not isinstance(source, int):
        return False
    try:
        from fcntl import ioctl

        ioctl(file.fileno(), _FICLONE, source)
    except (ImportError, OSError):  # another file system or system: the ordinary copy follows
        return False
    file.truncate(total)
    return True
