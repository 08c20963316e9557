"""Finished local files on their way to any store."""

from __future__ import annotations

import os

from raconvert.errors import WriteFailed
from raconvert.files.remote import SCHEMES, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of
from raconvert.files.remote.store import exists, is_s3, range_of, remove, stat
from raconvert.files.remote.uploads import NOT_WHAT_WAS_SENT, S3Upload

_PIECE = 8 << 20  # read at a time


class OtherUpload:
    """A finished local file on its way to a store that is not S3."""

    def __init__(self, url: str, path: str, *, overwrite: bool) -> None:
        self.url: str = url
        self.notes: list[str] = []
        self.unclear: bool = False  # whether it has appeared
        self._path = path
        self._fs = filesystem(url)
        self._key = key_of(url)
        self._overwrite = overwrite
        self._appeared = False

    def finish(self) -> None:
        """Do nothing: all is sent at once."""

    def appear(self) -> None:
        """Send it, and compare what is there. Raises `TargetExists` and `WriteFailed`."""
        if not self._overwrite and stat(self.url) is not None:
            raise exists(self.url, "appeared while it was written")
        self._appeared = True
        attempted(self._send, self.url, writing=True)
        found = stat(self.url)
        if found is None or found.size != os.path.getsize(self._path):
            raise self.is_not_what_was_sent()

    def _send(self) -> None:
        if SCHEMES[scheme_of(self.url)][0] == "memory":  # elsewhere it would appear empty first
            with open(self._path, "rb") as file:
                self._fs.pipe_file(self._key, file.read())
        else:
            self._fs.put_file(self._path, self._key)

    def is_not_what_was_sent(self) -> WriteFailed:
        """Remove the object, and return the error that says why."""
        self.take_back()
        return WriteFailed(NOT_WHAT_WAS_SENT, path=self.url, remedy="try again")

    def read_back(self) -> bool:
        """True if the bytes that are there are those that were sent; they are all read."""
        place = 0
        with open(self._path, "rb") as file:
            while piece := file.read(_PIECE):
                if range_of(self.url, place, len(piece)) != piece:
                    return False
                place += len(piece)
        found = stat(self.url)
        return found is not None and found.size == place

    def take_back(self) -> None:
        """Remove the object, if it has appeared by this upload. Raises nothing."""
        if self._appeared:
            self._appeared = False
            remove(self.url)

    def abort(self) -> None:
        """Do nothing: nothing is there before it appears."""


def upload_of(url: str, path: str, *, overwrite: bool) -> S3Upload | OtherUpload:
    """A finished local file on its way to a URL; nothing is visible yet."""
    if not is_s3(url):
        return OtherUpload(url, path, overwrite=overwrite)
    upload = S3Upload(url, os.path.getsize(path), overwrite=overwrite)
    try:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                upload.write(piece)
    except BaseException:
        upload.abort()
        raise
    return upload
