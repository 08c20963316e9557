"""Open HDF5 files: their handles, the addresses of objects, their end, and the errors of h5py.

The kind of an object is asked for without a look at its data: `h5py.h5o.get_info` asks for the size
of its chunk index, too, and that call ends the process if the index is damaged.

The end of a file is that of its superblock (HDF5 File Format Specification 3.0, II.A). Versions 0
and 1 have 24 and 28 bytes before the addresses: base, free space, end of file, driver. Versions 2
and 3 have 12: base, extension, end of file, root. Addresses have as many bytes as the field "size
of offsets" says.
"""

from __future__ import annotations

import gc
import os
import re
from collections import namedtuple
from contextlib import contextmanager, suppress
from functools import lru_cache
from weakref import WeakValueDictionary

import numpy as np
from h5py import h5f, h5fd, h5g, h5o, h5p
from h5py._objects import phil

from raconvert.errors import (
    Corrupt,
    RaconvertError,
    ReadFailed,
    TooLarge,
    Unsupported,
    changed,
)
from raconvert.files.paths import is_remote
from raconvert.files.source import Source, check_unchanged
from raconvert.plugin import trailing_note

from .tables import SIGNATURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.source import Identity

    Values = np.ndarray[Any, Any]
    Key = tuple[tuple[int, ...], int]

# By version of the superblock: offset of the size of offsets, offset of the addresses.
LAYOUTS = {0: (13, 24), 1: (13, 28), 2: (9, 12), 3: (9, 12)}
END = 2  # index of the end of file among the addresses
FIRST_BLOCK = 512  # user blocks have this length, doubled any number of times
MOST_BYTES = 28 + 4 * 8

GROUP, DATASET, TYPE = h5o.TYPE_GROUP, h5o.TYPE_DATASET, h5o.TYPE_NAMED_DATATYPE

# kind: h5o.TYPE_GROUP, h5o.TYPE_DATASET or h5o.TYPE_NAMED_DATATYPE, or another number.
Info = namedtuple("Info", "kind fileno address")

# All errors of the library about a damaged file reach Python as one of these.
FAILURES: tuple[type[Exception], ...] = (
    OSError, RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
    UnicodeError, NotImplementedError, SystemError,
)  # fmt: skip
# These, and ours: for values that a bundle remembers, which somebody may have edited.
PROBLEMS: tuple[type[Exception], ...] = (*FAILURES, RaconvertError)
_ERRNO = re.compile(r"errno = (\d+)")
# h5py 3.16 at times reads a message of the library after it was freed: it has other bytes then.
_SPOKEN = "ynchronously"  # part of every intact message of libhdf5
UNTOLD = "HDF5 gives a reason that cannot be read"


def info_of(holder: Any, path: bytes = b".") -> Info:
    """Kind, number of the open file, and address of the object at a path from `holder`."""
    info = h5g.get_objinfo(holder, path)
    low, high = info.objno  # two halves if a C long has 32 bits, else all of it is the first
    return Info(int(info.type), tuple(info.fileno), int(low) | int(high) << 32)


def key_of(oid: Any) -> Key:
    """Return the key of an object: file number and address."""
    info = info_of(oid)
    return info.fileno, info.address


def name_in_link(raw: bytes | str) -> str:
    """The name of a file or an object in a link as text, with surrogates for odd bytes."""
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else raw


def sorted_places(places: dict[int, int]) -> tuple[Values, Values]:
    """Sort stretches, {offset: bytes}; return the offsets, and the furthest end up to each."""
    both = np.array(sorted(places.items()), "<u8").reshape(-1, 2)
    return both[:, 0], np.maximum.accumulate(both.sum(axis=1))


_lost: dict[str, RaconvertError] = {}  # by URL: the error of reading it


class Remote:
    """A file at a URL as the library reads it, which takes any failure for damage of the file.

    So the first error is stored for `guarded`, and nothing is read after it. The library reads
    under its lock, for which each h5py object waits when it is freed. So the garbage collector must
    not run in a thread that we wait for here: https://github.com/h5py/h5py/issues/2019.
    """

    def __init__(self, file: Any) -> None:
        self._path: str = file.name
        self._handle = file.handle
        self._handle.ahead = False
        self._offset = 0
        _lost.pop(self._path, None)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position; return it."""
        self._offset = offset + (0 if whence == os.SEEK_SET else self._handle.size)
        return self._offset

    def tell(self) -> int:
        """Return the position, in bytes."""
        return self._offset

    def readinto(self, memory: Any) -> int:
        """Fill all of the memory; bytes behind the end of the file are zero."""
        if self._path in _lost:
            raise _lost[self._path]
        view = memoryview(memory).cast("B")
        collecting = gc.isenabled()
        gc.disable()
        try:
            data = self._handle.read(len(view), self._offset)
        except RaconvertError as error:
            _lost[self._path] = error
            raise
        finally:
            if collecting:
                gc.enable()
        view[:] = data.ljust(len(view), b"\0")
        return len(view)


def _access(cache: int | None) -> h5p.PropFAID:
    """Return the properties with which files are opened; `cache`: bytes of decoded chunks."""
    access = h5p.create(h5p.FILE_ACCESS)
    if cache is not None:
        access.set_cache(*access.get_cache()[:2], cache, 0.75)
    return access


@lru_cache(8)
def _local(cache: int | None) -> h5p.PropFAID:
    """Return the properties for a local file; nothing changes them."""
    access = _access(cache)
    access.set_fapl_log(b"", 0, 0)  # no log: see `Handle`
    return access


class Handle:
    """The one identifier by which this process reads a local file, shared by all its readers.

    When the library opens a file again, both identifiers share all objects, and each object
    refers to the identifier that opened it last. For types of variable length that reference
    outlives the identifier: once that is closed, HDF5 1.12 to 2.0 read freed memory as soon as a
    fill value of such a type is asked for (`H5Dget_create_plist`), which can end the process. So
    a file is opened once here, and closed with the last `File` that reads it. The library shares
    nothing between drivers, and the driver "log", which writes no log and otherwise is the usual
    one, keeps these files apart from those that the program around us opens with h5py.
    """

    __slots__ = ("__weakref__", "fid", "files", "identity")

    def __init__(self, fid: h5f.FileID, identity: Identity) -> None:
        self.fid = fid
        self.identity = identity
        self.files = 0  # open files that use it

    def __del__(self) -> None:
        """Close an identifier whose readers were freed without being closed."""
        if _close is not None:  # None at the end of the interpreter
            _close(self.fid)

    def release(self) -> None:
        """Give up the use by one file; the last one closes the identifier."""
        with phil:
            self.files -= 1
            if not self.files:
                self.close()

    def close(self) -> None:
        """Close the identifier, and all objects that are open by it."""
        with phil:
            if _handles.get(self.identity[:2]) is self:
                del _handles[self.identity[:2]]
            _close(self.fid)


# By device and inode; `phil`, which h5py holds in all its calls, is the lock of these, too.
_handles: WeakValueDictionary[tuple[int, int], Handle] = WeakValueDictionary()


def _handle_of(source: Source, cache: int | None) -> Handle:
    """Return the handle of a local file, counted as used once more; open the file if needed."""
    identity = source.identity
    with phil:
        handle = _handles.get(identity[:2])
        if handle is not None and (handle.identity != identity or not handle.fid.valid):
            handle.close()  # readers of the old file get an error that it changed
            handle = None
        if handle is None:
            fid = _opened(os.fsencode(source.path), _local(cache))
            try:
                check_unchanged(fid.get_vfd_handle(), source.path, identity)
            except BaseException:
                _close(fid)
                raise
            handle = _handles[identity[:2]] = Handle(fid, identity)
        handle.files += 1
        return handle


def _close(fid: h5f.FileID) -> None:
    """Close a file and all objects open in it."""
    with suppress(*FAILURES):  # closing a damaged file may fail; nothing was written
        if fid.valid:
            fid._close_open_objects(h5f.OBJ_LOCAL | ~h5f.OBJ_FILE)
            fid.close()


@contextmanager
def reading(source: Source) -> Iterator[h5f.FileID]:
    """A ``with`` block with a local file, open for reading. Raises `FAILURES`."""
    handle = _handle_of(source, None)
    try:
        yield handle.fid
    finally:
        handle.release()


class File:
    """One open file: its identifier, its source, and its size for checks."""

    __slots__ = (
        "_end", "_fid", "_handle", "address_bytes", "attributes", "dense", "dense_bytes", "heaps",
        "index_bytes", "indexes", "last", "places", "remote", "searched", "sorted", "source",
        "trees", "unwritten", "userblock",
    )  # fmt: skip

    def __init__(self, source: Source, cache: int | None = None) -> None:
        """Open a file; `cache`: bytes of decoded chunks that the library keeps of each dataset."""
        self.source = source
        self.remote: Any = None  # the file object for libhdf5 at a URL
        self.heaps: set[int] = set()  # addresses of global heaps that are sound
        self.trees: set[int] = set()  # addresses of objects whose B-trees are sound
        self.places: dict[int, int] = {}  # metadata read so far: bytes by address
        self.sorted: tuple[int, Any] = -1, ()  # their number when sorted, and the sorted arrays
        self.last: tuple[int, list[tuple[int, bool, bytes]]] | None = None  # the header read last
        self.searched = False  # the whole file was searched for heaps
        # Results of `dense.dense_attribute`, the last ones.
        self.dense: dict[tuple[int, int], Any] = {}
        self.dense_bytes = 0  # bytes read for them
        self.indexes: set[int] = set()  # addresses of datasets whose chunk index was counted
        self.index_bytes = 0  # bytes of these, and of the indexes of links and attributes
        self.attributes = 0  # bytes that its attributes take as plain values
        self.unwritten: dict[str, int] = {}  # bytes of datasets that are only a fill value
        if source.base:
            raise Unsupported("cannot be read inside an archive; extract it", path=source.path)
        source.identity  # noqa: B018 - opens the file, and refuses all but regular files
        self._end: int | None = None
        self._fid: h5f.FileID | None = None
        self._handle: Handle | None = None
        try:
            if is_remote(source.path):
                access = _access(cache)
                self.remote = Remote(source.open())
                access.set_fileobj_driver(h5fd.fileobj_driver, self.remote)
                name = repr(self.remote).encode()  # libhdf5 tells file objects apart by it
                self._fid = _opened(name, access)
            else:
                self._handle = _handle_of(source, cache)
                self._fid = self._handle.fid
            self.userblock = _begin(source)
            head = source.read_at(self.userblock, MOST_BYTES)
            if len(head) == MOST_BYTES and head[8] in LAYOUTS:  # otherwise libhdf5 knows more
                self.address_bytes = head[LAYOUTS[head[8]][0]]
            else:
                plist = self.fid.get_create_plist()
                self.userblock = int(plist.get_userblock())
                self.address_bytes = int(plist.get_sizes()[0])
        except FAILURES as error:
            self.close()
            if source.path in _lost:
                raise _lost[source.path] from error
            raise open_failed(source.path, error) from error
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The path, for messages."""
        return self.source.path

    @property
    def end(self) -> int:
        """The largest address that libhdf5 accepts in the file; 0 if unknown."""
        if self._end is None:
            self._end = _end_of(self) or 0
        return self._end

    def count_index(self, nbytes: int) -> None:
        """Count the bytes of an index of chunks, links or attributes.

        Raises `TooLarge` if those of all objects exceed the limit: damaged ones may share an index.
        """
        self.index_bytes += nbytes
        most = self.source.limits.index_passes
        if self.index_bytes > most * self.source.size:
            raise TooLarge(
                "objects share indexes, which would be read again and again", path=self.path,
                expected=f"at most {most} times the bytes of the file",
            )  # fmt: skip

    def taken(self) -> tuple[Values, Values]:
        """The sorted offsets of the metadata read so far, and the furthest end up to each."""
        if self.sorted[0] != len(self.places):
            self.sorted = len(self.places), sorted_places(self.places)
        return self.sorted[1]

    @property
    def fid(self) -> h5f.FileID:
        """The identifier of the open file.

        Raises `Changed` once the file was opened again as another one than it was, and
        `ReadFailed` once it is closed.
        """
        if self._fid is None:
            raise ReadFailed("is closed", path=self.path, remedy="open it again")
        if not self._fid.valid and self._handle is not None:
            raise changed(self.path)
        return self._fid

    def close(self) -> None:
        """Close the file and its objects; those of other readers of the file stay open."""
        fid, self._fid = self._fid, None
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.release()
        elif fid is not None:
            _close(fid)


def _opened(name: bytes, access: h5p.PropFAID) -> h5f.FileID:
    """Open a file for reading; raises the error of the library, with its reason."""
    try:
        return h5f.open(name, h5f.ACC_RDONLY, access)
    except FAILURES as error:
        if _SPOKEN in str(error):
            raise
    return h5f.open(name, h5f.ACC_RDONLY, access)  # fails again, with the reason: see `UNTOLD`


def refuse_remote(file: File, what: str) -> None:
    """Refuse (`Unsupported`) to follow what a file at a URL names."""
    if is_remote(file.path):
        raise Unsupported(
            f"{what} lies in another file, which is not read from a URL",
            path=file.path,
            remedy="fetch both files, and read them here",
        )


class Files:
    """The file that is read and those that it names, each opened once."""

    def __init__(self, source: Source) -> None:
        self.main = File(source)
        self._path = os.path.abspath(source.path)
        self._named: dict[str, File] = {}  # by name; with the main file, once another one is named

    def named(self, by: File, name: str, what: str) -> File:
        """The file that `by` names; `what` it is, for messages. Raises errors of `Source.named`."""
        refuse_remote(by, what)
        source = by.source.named(name, what)
        real = os.path.realpath(source.path)
        if not self._named:
            self._named[os.path.realpath(self._path)] = self.main
        if real not in self._named:
            most = source.limits.external_files
            if len(self._named) > most:
                raise Unsupported(f"names more than {most} files", path=by.path)
            self._named[real] = File(source)
        return self._named[real]

    def close(self) -> None:
        """Close all files."""
        for file in self._named.values() or [self.main]:
            file.close()


def end_notes(file: File) -> list[str]:
    """The note about bytes behind the end of the file; empty without such bytes."""
    end = _end_of(file)
    # Where a user block was put in front afterwards, the library moves the end, too.
    rest = 0 if end is None else file.source.size - (end + file.userblock)
    return [trailing_note(rest, "the end of the HDF5 data")] if rest > 0 else []


def _end_of(file: File) -> int | None:
    """The address of the end of a file by its superblock; None if that has another form."""
    head = file.source.read_at(file.userblock, MOST_BYTES)
    if len(head) < MOST_BYTES or head[8] not in LAYOUTS:
        return None
    width_at, at = LAYOUTS[head[8]]
    width = head[width_at]
    if width not in (4, 8):
        return None
    base, end = (
        int.from_bytes(head[at + n * width : at + (n + 1) * width], "little") for n in (0, END)
    )
    return end - base if end >= base else None


def _begin(source: Source) -> int:
    """The offset of the superblock: 0, or after a user block of 512, 1024, 2048, … bytes."""
    begin = 0
    while begin < source.size:
        if source.read_at(begin, len(SIGNATURE)) == SIGNATURE:
            return begin
        begin = 2 * begin or FIRST_BLOCK
    return 0


# What the library raises -------------------------------------------------------------------------


def reason_of(error: Exception) -> str:
    """Return the message of an error of libhdf5 on one line, without its usual opening words."""
    if isinstance(error, UnicodeDecodeError):
        return UNTOLD
    spoken = error.strerror if isinstance(error, OSError) and error.strerror else None
    text = " ".join(str(spoken or (error.args[0] if error.args else error)).split())
    opening, _, inner = text.partition(" (")
    return inner.removesuffix(")") if inner and _SPOKEN in opening else text


def system_reason(error: Exception) -> str:
    """The system's reason for an error of the library, else the library's own."""
    number = error.errno if isinstance(error, OSError) else None
    if not number:
        match = _ERRNO.search(str(error))
        number = int(match[1]) if match else 0
    return os.strerror(number) if number else reason_of(error)


class guarded:  # noqa: N801 - used as a function; a generator would take three times as long
    """A ``with`` block in which errors of h5py about a file become `Corrupt`, with `where`."""

    __slots__ = ("_path", "_what", "_where")

    def __init__(self, path: str, where: str | None = None, what: str = "cannot be read") -> None:
        self._path, self._where, self._what = path, where, what

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: Any) -> None:
        path, where = self._path, self._where
        lost = _lost.get(path)
        if error is None:
            if lost is not None:  # the error was swallowed on the way
                raise lost
        elif isinstance(error, RaconvertError):
            if lost is not None and error is not lost:
                raise lost from error
            error.path = error.path or path
            error.where = error.where or where
        elif isinstance(error, MemoryError):
            what = f"{self._what}: it needs more memory than there is"
            raise TooLarge(what, path=path, where=where) from error
        elif isinstance(error, FAILURES):
            if lost is not None:
                raise lost from error
            what = f"{self._what}: {reason_of(error)}"
            raise Corrupt(what, path=path, where=where) from error


def open_failed(path: str, error: Exception) -> RaconvertError:
    """The error for a file that the library does not open."""
    reason = reason_of(error)
    if "unable to lock file" in reason or isinstance(error, BlockingIOError):
        return ReadFailed(
            "is open for writing, here or in another program",
            path=path,
            remedy="wait until it is closed; HDF5_USE_FILE_LOCKING=FALSE reads it as it is",
        )
    if "consistency flags" in reason or "already open for write" in reason:
        return Corrupt(
            "was not closed by the program that wrote it",
            path=path,
            remedy="clear the mark with h5clear -s, if that program has ended",
        )
    if "signature" in reason:
        return Corrupt("has no HDF5 signature", path=path, expected="at byte 0, 512, 1024, ...")
    if "driver" in reason or "family" in reason:
        return Unsupported(f"is one part of a file in several parts: {reason}", path=path)
    return Corrupt(f"cannot be opened as HDF5: {reason}", path=path)
