"""The fast path for RA files: small ones in three system calls, large ones straight into numpy."""

from __future__ import annotations

import os
from errno import ENOSPC
from itertools import count
from stat import S_IMODE, S_ISREG
from struct import Struct

import numpy as np

from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.declared import PATH, check
from raconvert.errors import ReadFailed, UsageError
from raconvert.files.copy import read_at, reserve, write_all
from raconvert.files.paths import (
    CREATE_FLAGS,
    PERMISSIONS,
    close_file,
    is_remote,
    public_name,
    write_failed,
)
from raconvert.files.source import DEFAULT_MAX_MEMORY, Source, check_unchanged
from raconvert.files.target import Target
from raconvert.ra.header import FIXED, MAGIC, header_of, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.paths import Handle
    from raconvert.files.source import Extent

_GUESS_BYTES = 64 << 10  # files up to this size are read with one call
_THREADS_FROM = 64 << 20  # two threads fill memory faster than one from about this size
_WRITEV = hasattr(os, "writev")  # Windows has none
_COUNTER = count()
_TOKEN = os.urandom(4).hex()  # temporary names of other machines in the same folder differ
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer must not hang the open

# (eltype, elbyte) -> dtype: the usual types, which need no further look
_DTYPES: dict[tuple[int, int], np.dtype[Any]] = {
    (1, 1): np.dtype("i1"), (1, 2): np.dtype("<i2"), (1, 4): np.dtype("<i4"),
    (1, 8): np.dtype("<i8"), (2, 1): np.dtype("u1"), (2, 2): np.dtype("<u2"),
    (2, 4): np.dtype("<u4"), (2, 8): np.dtype("<u8"), (3, 2): np.dtype("<f2"),
    (3, 4): np.dtype("<f4"), (3, 8): np.dtype("<f8"), (4, 8): np.dtype("<c8"),
    (4, 16): np.dtype("<c16"), (5, 1): np.dtype("?"),
}  # fmt: skip
_CODES = {dtype.str: code for code, dtype in _DTYPES.items()}
_DIMS = tuple(Struct(f"<{n}Q") for n in range(9))


def read(
    path: str | os.PathLike[str],
    out: np.ndarray[Any, Any] | None = None,
    *,
    max_memory: int = DEFAULT_MAX_MEMORY,
) -> Any:
    """Return the array in an RA file: C order, the shape being the header's dims reversed.

    The result is writeable and owns its memory. With `out`, a C-contiguous array of the same type
    and size, the elements are read into it and it is returned in the file's shape: no memory is
    allocated. Encoded data that needs more than `max_memory` bytes is refused (`TooLarge`) before
    they are allocated; unencoded data is all in the file, and is read whatever its size.

    >>> grid = raconvert.ra.read("grid.ra")
    >>> grid.shape, grid[2, 3]
    ((3, 4), np.int32(11))
    >>> raconvert.ra.read("grid.ra", out=np.empty((3, 4), "<i4"))[0]
    array([0, 1, 2, 3], dtype=int32)

    Raises `Corrupt`, `ReadFailed` or `Unsupported` for anything that is not a whole RA file, and
    `UsageError` for an `out` that does not suit it.
    """
    if type(path) is not str or max_memory is not DEFAULT_MAX_MEMORY:
        check("path", path, PATH)
        check("max_memory", max_memory, "int")
    if out is None:
        try:
            descriptor = os.open(path, _FLAGS)
        except (OSError, ValueError) as error:
            return _read_url(os.fspath(path), error, max_memory)
        try:
            data = os.read(descriptor, _GUESS_BYTES)
        except OSError as error:
            from raconvert.files.source import read_failed

            raise read_failed(os.fspath(path), error) from error
        finally:
            os.close(descriptor)
        if 48 <= len(data) < _GUESS_BYTES:
            magic, flags, eltype, elbyte, size, ndims = FIXED.unpack_from(data)
            dtype = _DTYPES.get((eltype, elbyte))
            if magic == MAGIC and not flags and dtype is not None and ndims < 9:
                offset = 48 + 8 * ndims
                if len(data) >= offset + size:
                    dims = _DIMS[ndims].unpack_from(data, 48)
                    nbytes = elbyte
                    for length in dims:
                        nbytes *= length
                    if nbytes == size and nbytes:
                        return np.ndarray(dims[::-1], dtype, bytearray(data), offset)
    return _read_any(public_name(os.fspath(path)), out, max_memory)


def _read_url(path: str, error: Exception, max_memory: int) -> np.ndarray[Any, Any]:
    """Read the array at a URL; `error` is that of opening the path as a local file.

    Raises the error of ours for it if the path is not a URL.
    """
    public = public_name(path)
    if public == path and not is_remote(path):
        from raconvert.files.source import read_failed

        raise read_failed(path, error) from error
    return _read_any(public, None, max_memory)


def _read_any(path: str, out: np.ndarray[Any, Any] | None, max_memory: int) -> np.ndarray[Any, Any]:
    """Read with every check; large unencoded data goes straight into its memory."""
    from raconvert.arrays.blocks import as_ndarray
    from raconvert.arrays.memory import MAX_RANK, too_many_axes
    from raconvert.ra.plugin import read as read_bundle

    array = read_bundle(Source(path, max_memory=max_memory)).arrays[0]
    if array.ndim > MAX_RANK:
        raise too_many_axes(array.name, array.ndim, path)
    extent = array.extent
    shape = array.dims[::-1]
    if extent is None or extent.swap > 1:
        values = as_ndarray(array, max_memory if extent is None else 1 << 62)
        if out is None:
            return values
        _check_out(out, values.dtype, values.size, path)
        out.reshape(-1)[...] = values.reshape(-1)
        return out.reshape(shape)
    dtype = dtype_of(array.element)
    if out is None:
        values = np.empty(shape, dtype)
    else:
        _check_out(out, dtype, array.count, path)
        values = out.reshape(shape)
    if extent.nbytes:
        _fill(extent, values.reshape(-1).view(np.uint8).data)
    return values


def _check_out(out: np.ndarray[Any, Any], dtype: np.dtype[Any], count: int, path: str) -> None:
    """Raise `UsageError` if `out` cannot take `count` elements of this type."""
    if not isinstance(out, np.ndarray):
        raise UsageError("`out` is not a numpy array", path=path, got=type(out).__name__)
    wanted, given = f"{dtype.str}, {count} elements", f"{out.dtype.str}, {out.size} elements"
    flags = {"C-contiguous": out.flags.c_contiguous, "writeable": out.flags.writeable}
    if wanted != given or not all(flags.values()):
        set_flags = [name for name, is_set in flags.items() if is_set]
        raise UsageError(
            "the array given as `out` does not suit the file",
            path=path,
            expected=", ".join([*flags, wanted]),
            got=", ".join([*set_flags, given]),
        )


def _fill(extent: Extent, memory: memoryview) -> None:
    """Read an extent into memory, with two threads for large data."""
    path, offset = extent.path, extent.offset
    descriptor = extent.open()
    try:
        cpus = os.cpu_count() or 1
        if memory.nbytes < _THREADS_FROM or cpus < 2 or not hasattr(os, "preadv"):
            _fill_part(descriptor, offset, memory, path)
            check_unchanged(descriptor, path, extent.identity)
            return
        from raconvert.files.threads import Threads

        half = memory.nbytes // 2 // 4096 * 4096
        parts = [(offset, memory[:half]), (offset + half, memory[half:])]
        with Threads(2) as threads:
            threads.run(lambda part: _fill_part(descriptor, part[0], part[1], path), parts, 2)
        check_unchanged(descriptor, path, extent.identity)
    finally:
        close_file(descriptor)


def _fill_part(descriptor: Handle, offset: int, memory: memoryview, path: str) -> None:
    """Fill memory with the bytes from an offset of an open file."""
    done = 0
    while done < memory.nbytes:
        count = read_at(descriptor, memory[done:], offset + done)
        if count == 0:
            raise ReadFailed("file became shorter while it was read", path=path)
        done += count


def write(path: str | os.PathLike[str], array: Any, *, sync: bool = False) -> None:
    """Write an array as an RA file: flags 0, little-endian, C order, dims = shape reversed.

    Atomic: written beside the destination and renamed over it (an existing file is replaced, its
    mode kept, a link followed). `sync` also waits until the bytes are on the disk. Elements without
    a code in RA (strings, dates, structures) are written as user bytes; `raconvert.write` adds a
    sidecar with their type.

    >>> raconvert.ra.write("ones.ra", np.ones((2, 5), ">f4"))
    >>> raconvert.ra.read("ones.ra").dtype, os.path.getsize("ones.ra")
    (dtype('float32'), 104)

    Raises `UsageError` for masked arrays, `Unsupported` for types without a place in RA,
    `WriteFailed` where the system refuses.
    """
    if type(path) is not str or sync is not False:
        check("path", path, PATH)
        check("sync", sync, "bool")
    if type(array) is np.ndarray:
        values = array
    else:
        from raconvert.arrays.array import values_of

        values = values_of(array)
    code = _CODES.get(values.dtype.str)
    small = values.nbytes <= _GUESS_BYTES and values.ndim < len(_DIMS)
    if code is None or sync or not small or not values.flags.c_contiguous or not _WRITEV:
        _write_any(os.fspath(path), values, sync=sync)
        return
    shape = values.shape
    header = FIXED.pack(MAGIC, 0, *code, values.nbytes, len(shape))
    header += _DIMS[len(shape)].pack(*shape[::-1])
    try:
        _write_small(os.fspath(path), header, values)
    except (OSError, ValueError) as error:
        raise write_failed(os.fspath(path), error) from error


def _write_small(path: str, header: bytes, values: np.ndarray[Any, Any]) -> None:
    """Write header and data with one call, and rename the file, as `Target` does at more cost."""
    mode = None
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        pass
    if mode is not None and not S_ISREG(mode):  # a link, or a file that must not be replaced
        _write_any(path, values, sync=False)
        return
    folder = path[: path.rfind("/") + 1]
    temp = f"{folder}.raconvert-{os.getpid()}-{next(_COUNTER)}{_TOKEN}.tmp"
    # A new file has its mode from the start; one that is replaced may be private.
    descriptor = os.open(temp, CREATE_FLAGS, 0o666 if mode is None else 0o600)
    try:
        try:
            done = os.writev(descriptor, [header, values.data] if values.nbytes else [header])
            if done != len(header) + values.nbytes:
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, S_IMODE(mode) & PERMISSIONS)
        finally:
            os.close(descriptor)
        os.rename(temp, path)
    except BaseException:
        os.unlink(temp)
        raise


def _write_any(path: str, values: np.ndarray[Any, Any], *, sync: bool) -> None:
    """Write any array: large ones with their disk blocks allocated first."""
    element = element_of(values.dtype)
    if element.order == ">":
        values = values.astype(dtype_of(little(element)))
    from raconvert.arrays.dtypes import opaque

    values = np.ascontiguousarray(opaque(values)).view(values.dtype).reshape(values.shape)
    header = pack(header_of(element, values.shape[::-1]))
    data = values.reshape(-1).view(np.uint8).data if values.nbytes else b""
    with Target(path) as target:
        file = target.open()
        try:
            reserve(file, len(header) + values.nbytes)
            write_all(file, [header, data])
        except OSError as error:
            raise write_failed(target.path, error) from error
        target.commit(sync=sync)
