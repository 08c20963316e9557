"""Elements that a store copies itself: of an object of any size about 5 MiB pass through here.

Any range of an object can be a part of another one (``UploadPartCopy``), but parts have 5 MiB at
least, except the last. So the first part is sent: the new header, and as many of the first elements
as it takes; all others are copied, under the condition that the source still has its ETag.
"""

from __future__ import annotations

from hashlib import sha256

from raconvert.errors import RaconvertError, changed, worded
from raconvert.files.copy import read_extent_into
from raconvert.files.paths import close_file
from raconvert.files.remote import is_url
from raconvert.files.remote.filesystem import filesystem, key_of, status_of
from raconvert.files.remote.listing import is_s3, range_of, stat
from raconvert.files.remote.objects_by_ranges import object_at
from raconvert.files.remote.target import LEAST_PART, MOST_PARTS, S3Upload
from raconvert.files.source import HEAD_BYTES, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Extent

COPIED_PART = 512 << 20  # bytes; S3 takes 5 GiB, but a part that fails is copied again
_STEP = 1 << 20
_PIECE = 8 << 20  # bytes read at a time to compare
_CANNOT = frozenset((405, 501))  # HTTP codes of stores that cannot copy ranges


class Composed(Source):
    """A file that is a header and the bytes of an extent, as it will be at `path`."""

    __slots__ = ("_extent", "_header")

    def __init__(self, path: str, header: bytes, extent: Extent) -> None:
        super().__init__(path)
        self._header = header
        self._extent = extent

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self._header) + self._extent.nbytes

    @property
    def head(self) -> bytes:
        """The first 4 KiB."""
        return self.read_at(0, HEAD_BYTES)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return up to `nbytes` bytes from `offset`: fewer only where the file ends."""
        end = min(offset + nbytes, self.size)
        before = self._header[offset:end]
        start = max(0, offset - len(self._header))
        slab = bytearray(max(0, end - offset - len(before)))
        if slab:
            file = self._extent.open()
            try:
                read_extent_into(file, memoryview(slab), self._extent, start)
            finally:
                close_file(file)
        return before + slab


class CopiedUpload(S3Upload):
    """An object whose elements the store copies; `read_back` compares it with the source."""

    def __init__(self, url: str, header: bytes, extent: Extent, *, overwrite: bool) -> None:
        super().__init__(url, len(header) + extent.nbytes, overwrite=overwrite)
        self._content = Composed(url, header, extent)
        self._read = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of the object; empty unless `read_back` has read it."""
        return self._read

    def read_back(self) -> bool:
        """True if the object has the bytes of the header and the source; all of them are read."""
        state = sha256()
        for offset in range(0, self.nbytes, _PIECE):
            piece = range_of(self.url, offset, min(_PIECE, self.nbytes - offset))
            if piece != self._content.read_at(offset, _PIECE):
                return False
            state.update(piece)
        facts = stat(self.url)
        if facts is None or facts.size != self.nbytes:
            return False
        self._read = state.hexdigest()
        return True


def can_copy(url: str, extent: Extent | None) -> bool:
    """True if the store of a URL holds an extent, whose bytes need no change."""
    if extent is None or extent.swap > 1 or extent.checksum is not None or not is_s3(url):
        return False
    return is_url(extent.path) and is_s3(extent.path) and filesystem(extent.path) is filesystem(url)


def copied(url: str, header: bytes, extent: Extent, *, overwrite: bool) -> S3Upload | None:
    """Upload `header` and an extent of the same store; return the upload, which can then appear.

    Returns None if the store does not copy ranges. Raises `Changed` if the source was changed.
    """
    source = object_at(extent.path, extent.identity)
    etag = source.facts.version
    if not etag:
        return None
    upload = CopiedUpload(url, header, extent, overwrite=overwrite)
    try:
        first = min(max(0, LEAST_PART - len(header)), extent.nbytes)
        upload.write(header)
        upload.write(source.fetch(extent.offset, extent.offset + first))
        _copy_rest(upload, extent, first, etag)
        _check_unchanged(extent.path, etag)
    except BaseException as error:
        upload.abort()
        if isinstance(error, RaconvertError) and status_of(error.__cause__) in _CANNOT:
            return None
        raise
    upload.notes.append(worded(
        f"'{url}': the store has copied the elements, which were not read: their digest is not "
        "known (`--verify` reads them)"
    ))  # fmt: skip
    return upload


def _copy_rest(upload: CopiedUpload, extent: Extent, start: int, etag: str) -> None:
    """Have the store copy the bytes of an extent from `start` on."""
    bucket, _, key = key_of(extent.path).partition("/")
    left = extent.nbytes - start
    step = max(COPIED_PART, -(-left // (MOST_PARTS - 1) // _STEP) * _STEP)
    while start < extent.nbytes:
        nbytes = min(step, extent.nbytes - start)
        upload.copy({"Bucket": bucket, "Key": key}, etag, extent.offset + start, nbytes)
        start += nbytes


def _check_unchanged(url: str, etag: str) -> None:
    """Raise `Changed` if the object has another ETag now: some stores ignore the condition."""
    now = stat(url)
    if now is None or now.version != etag:
        raise changed(url)
