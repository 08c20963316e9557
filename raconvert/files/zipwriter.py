"""ZIP archives that are written in place: stored members begin where they can be mapped."""

from __future__ import annotations

from raconvert.files.copy import write_all
from raconvert.files.unzip import STORED
from raconvert.files.zips import ALIGN, LOCAL, PADDING, PADDING_ID, ZIP64_EXTRA_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from typing import Any
    from zipfile import ZipFile, ZipInfo


def begin_archive(file: FileIO) -> ZipFile:
    """Return an archive to be written to a raw file; closing it writes the directory."""
    import zipfile

    return zipfile.ZipFile(_Whole(file), "w")


def new_member(archive: ZipFile, filename: str, method: int, header_bytes: int = 0) -> ZipInfo:
    """Return the entry of the next member, with fixed date and mode.

    What comes `header_bytes` after the start of a stored member is at a multiple of 64 in the file.
    """
    import zipfile

    info = zipfile.ZipInfo(filename, (1980, 1, 1, 0, 0, 0))
    info.compress_type = method
    info.create_system = 3  # Unix, everywhere
    info.external_attr = 0o644 << 16
    if method == STORED:
        info.extra = _padding(archive.start_dir + header_bytes, filename)
    return info


def write_member(archive: ZipFile, info: ZipInfo, pieces: Iterable[Any]) -> int:
    """Write the pieces (buffers of any kind) as one member; return where it begins."""
    with archive.open(info, "w", force_zip64=True) as member:
        begin: int = archive.fp.tell()  # type: ignore[union-attr]
        for piece in pieces:
            member.write(piece)
    info.extra = b""  # the padding is of no use in the central directory
    return begin


class _Whole:
    """A raw file that writes all it is given, which zipfile takes for granted."""

    mode = "w+b"

    def __init__(self, file: FileIO) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self.flush = file.flush
        self.close = file.close
        self._file = file

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        return write_all(self._file, [data])


def _padding(begin: int, filename: str) -> bytes:
    """Return the extra field that puts the data of a member at `begin` on a multiple of 64."""
    fixed = LOCAL.size + len(filename.encode()) + PADDING.size + ZIP64_EXTRA_BYTES
    zeros = -(begin + fixed) % ALIGN
    return PADDING.pack(PADDING_ID, PADDING.size - 4 + zeros, ALIGN) + bytes(zeros)
