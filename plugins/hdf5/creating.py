"""New files and objects, with the properties that make equal arrays equal files."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from h5py import h5f, h5p, h5t

from raconvert.errors import RaconvertError, WriteFailed

from .files import FAILURES, system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ALIGN_FROM, ALIGN = 1 << 20, 4096  # bytes; data of datasets from the first begins on a page
TRACKED = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED


@contextmanager
def library(path: str) -> Iterator[None]:
    """A ``with`` block in which errors of h5py become `WriteFailed`."""
    try:
        yield
    except RaconvertError:  # some are `OSError` too
        raise
    except FAILURES as error:
        raise WriteFailed(
            f"cannot be written: {system_reason(error)}",
            path=path,
            remedy="the destination is as it was before",
        ) from error


@contextmanager
def closing(fid: h5f.FileID, path: str) -> Iterator[None]:
    """A ``with`` block that closes a new file at its end; the first error of writing is raised.

    The library cannot close a file that it cannot write: it fails again with each object, and
    crashes the process in the end. So after an error, when the file is discarded anyway, it writes
    the rest to the null device.
    """
    try:
        yield
        with library(path):
            h5f.flush(fid)
    except BaseException:
        _discard(fid)
        with suppress(*FAILURES):
            fid.close()
        raise
    with library(path):
        fid.close()


def _discard(fid: h5f.FileID) -> None:
    """Redirect the descriptor of a file to the null device, for all that is still written."""
    if os.name != "posix":  # elsewhere HDF5 and Python may have different C libraries
        return
    with suppress(*FAILURES):
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(null, fid.get_vfd_handle(), inheritable=False)
        finally:
            os.close(null)


def create(path: str, userblock: int = 0) -> h5f.FileID:
    """Create a file: superblock 0, creation order kept, no times; after `userblock` bytes."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V110)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    if not userblock:  # with alignment, libhdf5 wants a user block at least as long
        access.set_alignment(ALIGN_FROM, ALIGN)
    plist = created(h5p.FILE_CREATE)
    plist.set_link_creation_order(TRACKED)
    plist.set_userblock(userblock)
    return h5f.create(os.fsencode(path), h5f.ACC_TRUNC, plist, access)


def reopen(path: str) -> h5f.FileID:
    """Open an existing file for additions; new objects have the forms that `create` gives."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    return h5f.open(os.fsencode(path), h5f.ACC_RDWR, access)


def created(kind: h5p.PropClassID) -> Any:
    """Properties of a new object: order of attributes kept, no times, which would differ."""
    plist = h5p.create(kind)
    plist.set_obj_track_times(False)
    plist.set_attr_creation_order(TRACKED)
    return plist


def utf8() -> h5p.PropLCID:
    """The properties of a link with a name in UTF-8."""
    plist = h5p.create(h5p.LINK_CREATE)
    plist.set_char_encoding(h5t.CSET_UTF8)
    return plist
