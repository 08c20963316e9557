"""Open HDF5 files, and where the objects in them lie.

What an object is, is asked without a look at its data: `h5py.h5o.get_info` asks for everything, the
size of the index of its chunks included, and in a damaged index that call ends the process.
"""

from __future__ import annotations

import os
from collections import namedtuple
from contextlib import suppress

from h5py import h5f, h5g, h5o, h5p

from raconvert.errors import Unsupported
from raconvert.files.references import resolve
from raconvert.files.regular import check_unchanged
from raconvert.files.source import Source

from .errors import FAILURES, open_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FILES = 100  # how many further files external links and virtual datasets may open

GROUP, DATASET, TYPE = h5o.TYPE_GROUP, h5o.TYPE_DATASET, h5o.TYPE_NAMED_DATATYPE

# kind: h5o.TYPE_GROUP, h5o.TYPE_DATASET or h5o.TYPE_NAMED_DATATYPE, or another number.
Info = namedtuple("Info", "kind fileno address")


def info_of(place: Any, path: bytes = b".") -> Info:
    """Kind, number of the open file, and address of the object at a path from `place`."""
    found = h5g.get_objinfo(place, path)
    low, high = found.objno  # halves where a C long has 32 bits; else all of it is in the first
    return Info(int(found.type), tuple(found.fileno), int(low) | int(high) << 32)


class File:
    """One open file: its identifier, its source, and its size for checks."""

    __slots__ = (
        "address_bytes", "attributes", "dense", "fid", "heaps", "searched", "source", "trees",
        "unwritten", "userblock",
    )  # fmt: skip

    def __init__(self, source: Source, cache: int | None = None) -> None:
        """Open a file; `cache`: bytes of decoded chunks that the library keeps of each dataset."""
        self.source = source
        self.heaps: set[int] = set()  # addresses of global heaps that are sound
        self.trees: set[int] = set()  # addresses of objects whose B-trees are sound
        self.searched = False  # the whole file was searched for heaps
        self.dense: dict[bytes, tuple[int, list[int]]] | None = None  # of `header.dense_data`
        self.attributes = 0  # bytes that its attributes take as plain values
        self.unwritten: dict[str, int] = {}  # bytes of datasets that are only a fill value
        if source.base:
            raise Unsupported("cannot be read inside an archive; extract it", path=source.path)
        source.identity  # noqa: B018 - opened here first: only regular files are
        try:
            # As h5py does: one process cannot open a file with different access properties.
            access = h5p.create(h5p.FILE_ACCESS)
            if cache is not None:
                access.set_cache(*access.get_cache()[:2], cache, 0.75)
            self.fid = h5f.open(os.fsencode(source.path), h5f.ACC_RDONLY, access)
            check_unchanged(self.fid.get_vfd_handle(), source.path, source.identity)
            plist = self.fid.get_create_plist()
            self.userblock = int(plist.get_userblock())
            self.address_bytes = int(plist.get_sizes()[0])
        except FAILURES as error:
            raise open_failed(source.path, error) from error

    @property
    def path(self) -> str:
        """The path, for messages."""
        return self.source.path

    def close(self) -> None:
        """Close the file and whatever is open in it."""
        with suppress(*FAILURES):  # of a damaged file; nothing was written
            if self.fid.valid:
                self.fid._close_open_objects(h5f.OBJ_LOCAL | ~h5f.OBJ_FILE)
                self.fid.close()


class Files:
    """The file that is read and those that it names, each opened once."""

    def __init__(self, source: Source) -> None:
        self.main = File(source)
        self._open = {os.path.realpath(source.path): self.main}

    def named(self, by: File, name: str, what: str) -> File:
        """The file that `by` names, if it may be read."""
        path = resolve(by.source, name, what)
        real = os.path.realpath(path)
        if real not in self._open:
            if len(self._open) > MAX_FILES:
                raise Unsupported(f"names more than {MAX_FILES} files", path=by.path)
            self._open[real] = File(by.source.named(path))
        return self._open[real]

    def close(self) -> None:
        """Close them all."""
        for file in self._open.values():
            file.close()
