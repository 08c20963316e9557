"""Files for a URL: made in a private local folder, or sent as they are made; then they appear.

A writer that goes back and forth in its file (HDF5, archives) needs a local one. Nothing appears
before all files of a run are there to be sent; each then appears whole, partner files before the
file that they belong to. What has appeared new is removed again if a later one fails.
"""

from __future__ import annotations

import os
from base64 import b64encode
from hashlib import md5, sha256
from re import fullmatch
from shutil import rmtree
from tempfile import mkdtemp

from raconvert.errors import (
    RaconvertError,
    ReadFailed,
    TargetExists,
    UsageError,
    WriteFailed,
    changed,
    counted,
)
from raconvert.files.limits import DEFAULT
from raconvert.files.paths import exists, write_failed
from raconvert.files.remote import SCHEMES, folder_of, scheme_of
from raconvert.files.remote.filesystem import attempted, code_of, filesystem, key_of, status_of
from raconvert.files.remote.listing import is_s3, range_of, remove, stat, uploads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


# One object of a store on its way there: it appears when all of it has arrived, and is compared
# S3 takes a small object by one PUT, a larger one in parts that nobody sees until they are
# completed. With `overwrite` False both carry ``If-None-Match: *``, so that the store itself
# refuses to replace; where it does not know that, it is asked before, and a note says so. What an
# answer that got lost may have done is looked up before it is done again.


PART = 8 << 20  # bytes of a part; a smaller object is one PUT
LEAST_PART = 5 << 20  # bytes; S3's minimum for all parts but the last
MOST_PARTS = 10_000
_STEP = 1 << 20  # bytes; sizes of parts are multiples of it
_PIECE = 8 << 20  # bytes read at a time to compare
NOT_WHAT_WAS_SENT = "the store does not hold what was sent to it, and the object was removed"
_UNKNOWN_HEADER = frozenset((400, 501))  # HTTP codes for a header that a store does not know
# HTTP codes (0: cut off) after which a request may have been carried out all the same.
_UNCLEAR = frozenset((0, 408, 500, 502, 504))
_ABORTS = 3
_KMS = ("aws:kms", "aws:kms:dsse")  # with this encryption the ETag is not a checksum


def part_size(nbytes: int) -> int:
    """Return the size in bytes of the parts of an object, so that there are at most 10,000."""
    return max(PART, -(-nbytes // MOST_PARTS // _STEP) * _STEP)


class S3Upload:
    """An object of `nbytes` bytes for a URL; `abort` leaves nothing of one that is not complete.

    `write` takes the bytes in order, `copy` parts of other objects; `appear` makes it visible.
    `notes` is what the user is to know.
    """

    def __init__(self, url: str, nbytes: int, *, overwrite: bool) -> None:
        self.url: str = url
        self.nbytes: int = nbytes
        self.notes: list[str] = []
        # True if it is unclear whether the object has appeared: no answer.
        self.unclear: bool = False
        self._fs = filesystem(url)
        bucket, _, key = key_of(url).partition("/")
        self._where = {"Bucket": bucket, "Key": key}
        self._exclusive = not overwrite
        self._size = part_size(nbytes)
        self._waiting = bytearray()
        self._parts: list[dict[str, Any]] = []
        self._sent: list[tuple[int, bytes | None]] = []  # size and MD5 of each part
        self._id = ""
        self._digest = sha256()
        self._lost = False  # True if an answer was lost after a request that changes something
        self._appeared = False

    # What it is made of ------------------------------------------------------------------------

    def write(self, piece: bytes | bytearray | memoryview) -> None:
        """Add bytes. Raises `WriteFailed` if the store refuses a part."""
        view = memoryview(piece).cast("B")
        self._digest.update(view)
        while view:
            if len(self._waiting) == self._size:
                self.flush()
            room = self._size - len(self._waiting)
            self._waiting += view[:room]
            view = view[room:]

    def flush(self) -> None:
        """Send the bytes that wait as a part."""
        if self._waiting:
            data = bytes(self._waiting)
            self._waiting.clear()
            self._send(data)

    def _send(self, data: bytes) -> None:
        """Send bytes as a part."""
        digest = _md5(data)
        self._begin()
        answer = self._ask(
            "upload_part",
            PartNumber=len(self._parts) + 1,
            UploadId=self._id,
            **self._where,
            Body=data,
            ContentMD5=b64encode(digest).decode(),
        )
        self._note(answer["ETag"], len(data), None if _has_other_etag(answer) else digest)

    def copy(self, source: dict[str, str], etag: str, start: int, nbytes: int) -> None:
        """Add a range of another object inside the store, if that still has this ETag.

        Raises `Changed` if it has another one by now, and `ReadFailed` if it is gone.
        """
        self.flush()
        self._begin()

        def copy() -> Any:
            try:
                return self._call(
                    "upload_part_copy",
                    PartNumber=len(self._parts) + 1,
                    UploadId=self._id,
                    **self._where,
                    CopySource=source,
                    CopySourceIfMatch=etag,
                    CopySourceRange=f"bytes={start}-{start + nbytes - 1}",
                )
            except Exception as error:
                name = f"s3://{source['Bucket']}/{source['Key']}"
                if status_of(error) == 412:
                    raise changed(name) from error
                if code_of(error) == "NoSuchKey":
                    raise ReadFailed("does not exist any more", path=name) from error
                raise

        answer = attempted(copy, self.url, writing=True)
        result = answer["CopyPartResult"]["ETag"]
        self._note(result, nbytes, None if _has_other_etag(answer) else _as_md5(result))

    def _note(self, etag: str, nbytes: int, digest: bytes | None) -> None:
        """Note a part that the store has; `digest` is its MD5, None if unknown."""
        self._parts.append({"ETag": etag, "PartNumber": len(self._parts) + 1})
        self._sent.append((nbytes, digest))

    def _begin(self) -> None:
        """Begin an upload in parts, if none has begun."""
        if self._id:
            return
        before = uploads_of(self.url)
        try:
            self._id = self._ask("create_multipart_upload", **self._where)["UploadId"]
        finally:
            if self._lost and before is not None:  # the store does not know the upload
                self._abort_others(before)

    def _abort_others(self, before: list[str]) -> None:
        """Abort uploads of this object that are not in `before`, except our own."""
        for upload in uploads_of(self.url) or ():
            if upload not in (self._id, *before):
                self._quietly("abort_multipart_upload", UploadId=upload)

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes so far; empty if they did not all pass here."""
        return self._digest.hexdigest()

    # How it appears ----------------------------------------------------------------------------

    def finish(self) -> None:
        """Send the last part, so that `appear` is one request; nothing is visible yet."""
        if self._id:
            self.flush()

    def appear(self) -> None:
        """Make the object visible, and compare it with the bytes that were sent.

        Raises `TargetExists` for an object that exists already, and `WriteFailed`.
        """
        if self._id:
            self.flush()
            digests = [digest for _, digest in self._sent]
            expected = _etag_of_parts(digests)
            named: dict[str, Any] = {
                "UploadId": self._id,
                "MultipartUpload": {"Parts": self._parts},
            }
            answer = self._appearing("complete_multipart_upload", expected, named)
            self._id = ""
        else:
            data = bytes(self._waiting)
            self._sent = [(len(data), _md5(data))]
            expected = _md5(data).hex()
            named = {"Body": data, "ContentMD5": b64encode(_md5(data)).decode()}
            answer = self._appearing("put_object", expected, named)
        self._waiting.clear()
        self._appeared = True
        self._compare(answer, expected)

    def _appearing(self, method: str, expected: str, named: dict[str, Any]) -> Any:
        """Make the request after which the object is visible; return its answer.

        `expected` is the ETag that the object will have. Raises `TargetExists` and `WriteFailed`.
        """

        def once() -> Any:
            only = {"IfNoneMatch": "*"} if self._exclusive else {}
            try:
                return self._call(method, **self._where, **only, **named)
            except Exception as error:
                if status_of(error) in (404, 409, 412) and self._is(expected):
                    return {"ETag": expected}  # an attempt before did it, and its answer was lost
                if self._exclusive and status_of(error) in (409, 412):
                    raise exists(self.url, "appeared while it was written") from error
                if self._exclusive and _does_not_know(error):
                    self._exclusive = False
                    self._note_race()
                    return once()
                raise

        try:
            return attempted(once, self.url, writing=True)
        except TargetExists:
            raise
        except RaconvertError as error:
            if self._is(expected):  # the last answer was lost, too
                return {"ETag": expected}
            self.unclear = status_of(error.__cause__) in _UNCLEAR
            raise

    def _note_race(self) -> None:
        """Raise `TargetExists` if an object exists; else note that the store may replace one."""
        if stat(self.url) is not None:
            raise exists(self.url)
        self.notes.append(
            f"'{self.url}': the store does not know If-None-Match: it was asked before whether "
            "something is there, and what another program wrote meanwhile is replaced"
        )

    def _is(self, expected: str) -> bool:
        """True if the object exists with the ETag of the bytes that were sent."""
        try:
            facts = stat(self.url)
        except RaconvertError:
            return False
        return bool(expected) and facts is not None and facts.version.strip('"') == expected

    def _compare(self, answer: Any, expected: str) -> None:
        """Compare the object with the sent bytes: by its checksum, else by its own bytes."""
        etag = answer["ETag"].strip('"')
        if expected and etag == expected and not _has_other_etag(answer):
            return
        if all(digest is not None for _, digest in self._sent) and self.read_back():
            return
        if not expected and (there := stat(self.url)) and there.size == self.nbytes:
            return  # the checksums of parts copied inside the store are unknown
        raise self.is_not_what_was_sent(expected, etag)

    def is_not_what_was_sent(self, expected: str = "", got: str = "") -> WriteFailed:
        """Remove the object; return the error for it."""
        self.take_back()
        return WriteFailed(
            NOT_WHAT_WAS_SENT,
            path=self.url,
            expected=f"ETag {expected}" if expected else None,
            got=got or None,
            remedy="try again; if it happens again, the store or the network changes data",
        )

    def read_back(self) -> bool:
        """True if the object has the bytes that were sent; all of them are read.

        False if the checksum of a copied part is unknown.
        """
        offset = 0
        for nbytes, digest in self._sent:
            state = md5(usedforsecurity=False)
            end = offset + nbytes
            while offset < end:
                piece = min(_PIECE, end - offset)
                state.update(range_of(self.url, offset, piece))
                offset += piece
            if digest is None or state.digest() != digest:
                return False
        facts = stat(self.url)
        return facts is not None and facts.size == offset

    def take_back(self) -> None:
        """Remove the object, if this upload has made it appear. Raises nothing."""
        if self._appeared:
            self._appeared = False
            self._quietly("delete_object")

    def abort(self) -> None:
        """Have the store forget the parts. Raises nothing."""
        self._waiting.clear()
        upload, self._id = self._id, ""
        for _ in range(_ABORTS if upload else 0):
            self._quietly("abort_multipart_upload", UploadId=upload)
            # A part that was still on its way when another answer was lost keeps the upload.
            if not self._lost or upload not in (uploads_of(self.url) or ()):
                break

    def _quietly(self, method: str, **named: Any) -> None:
        """Make a request whose failure does not matter. Raises nothing."""
        try:
            self._ask(method, **self._where, **named)
        except RaconvertError:  # the user gets the earlier error
            pass

    def _ask(self, method: str, **named: Any) -> Any:
        """Make a request, several times if it fails; return the answer."""
        return attempted(lambda: self._call(method, **named), self.url, writing=True)

    def _call(self, method: str, **named: Any) -> Any:
        """Make a request once; return the answer. Raises any error of the library."""
        from asyncio import run_coroutine_threadsafe

        request = run_coroutine_threadsafe(self._fs._call_s3(method, **named), self._fs.loop)
        try:
            return request.result()
        except BaseException as error:
            request.cancel()  # after an interruption nobody waits for it
            self._lost = self._lost or status_of(error) in _UNCLEAR
            raise


def _does_not_know(error: BaseException) -> bool:
    """True if a store refuses a header that it does not know."""
    codes = ("NotImplemented", "InvalidArgument", "InvalidRequest")
    return status_of(error) in _UNKNOWN_HEADER and code_of(error) in codes


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()


def _as_md5(etag: str) -> bytes | None:
    """Return the MD5 that an ETag is; None for another ETag."""
    digits = etag.strip('"')
    return bytes.fromhex(digits) if fullmatch("[0-9a-f]{32}", digits) else None


def _etag_of_parts(digests: list[bytes | None]) -> str:
    """Return the ETag of an object whose parts have these MD5; empty if one is None."""
    known_digests = [digest for digest in digests if digest is not None]
    if len(known_digests) < len(digests):
        return ""
    return f"{_md5(b''.join(known_digests)).hex()}-{len(known_digests)}"


def _has_other_etag(answer: Any) -> bool:
    """True if the ETag in an answer is not a checksum, because the object is encrypted."""
    return answer.get("ServerSideEncryption") in _KMS or "SSECustomerAlgorithm" in answer


# Finished local files on their way to any store --------------------------------------------------


class OtherUpload:
    """A finished local file on its way to a store that is not S3."""

    def __init__(self, url: str, path: str, *, overwrite: bool) -> None:
        self.url: str = url
        self.notes: list[str] = []
        self.unclear: bool = False  # True if it is unclear whether the object has appeared
        self._path = path
        self._fs = filesystem(url)
        self._key = key_of(url)
        self._overwrite = overwrite
        self._appeared = False

    def finish(self) -> None:
        """Do nothing: the file is sent at once, by `appear`."""

    def appear(self) -> None:
        """Send the object, and compare it. Raises `TargetExists` and `WriteFailed`."""
        if not self._overwrite and stat(self.url) is not None:
            raise exists(self.url, "appeared while it was written")
        self._appeared = True
        attempted(self._send, self.url, writing=True)
        facts = stat(self.url)
        if facts is None or facts.size != os.path.getsize(self._path):
            raise self.is_not_what_was_sent()

    def _send(self) -> None:
        """Send the file, so that the object appears whole."""
        if SCHEMES[scheme_of(self.url)][0] == "memory":  # elsewhere it would appear empty first
            with open(self._path, "rb") as file:
                self._fs.pipe_file(self._key, file.read())
        else:
            self._fs.put_file(self._path, self._key)

    def is_not_what_was_sent(self) -> WriteFailed:
        """Remove the object; return the error for it."""
        self.take_back()
        return WriteFailed(NOT_WHAT_WAS_SENT, path=self.url, remedy="try again")

    def read_back(self) -> bool:
        """True if the object has the bytes that were sent; all of them are read."""
        offset = 0
        with open(self._path, "rb") as file:
            while piece := file.read(_PIECE):
                if range_of(self.url, offset, len(piece)) != piece:
                    return False
                offset += len(piece)
        facts = stat(self.url)
        return facts is not None and facts.size == offset

    def take_back(self) -> None:
        """Remove the object, if this upload has made it appear. Raises nothing."""
        if self._appeared:
            self._appeared = False
            remove(self.url)

    def abort(self) -> None:
        """Do nothing: nothing is there before it appears."""


def upload_of(url: str, path: str, *, overwrite: bool) -> S3Upload | OtherUpload:
    """Return an upload of a finished local file; nothing is visible yet."""
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


SUFFIX, ITEMS_SUFFIX = ".yaml", ".items.jsonl"  # suffixes of metadata beside a file
MARK = b"describes:"  # the first bytes of such metadata


_FEW = 16  # files; with more, stale metadata beside them is not looked for
MANIFEST = "bundle.yaml"  # names the other files of its folder, and so appears after them


def check_writable(url: str) -> None:
    """Raise `UsageError` for a URL that nobody can write to."""
    if SCHEMES[scheme_of(url)][0] == "http":
        raise UsageError(
            "an address in the web can be read, not written",
            path=url,
            remedy="name a file here, or a URL of a store: s3://BUCKET/NAME",
        )
    if "/" not in url.partition("://")[2].rstrip("/") and scheme_of(url) != "memory":
        raise UsageError("is a bucket, not a name in it", path=url, expected="s3://BUCKET/NAME")


class Remote:
    """A private local folder whose files go to a URL: `place` is the path of the URL's file in it.

    A context manager: files that have not appeared when it is left never do. With `replaces`
    objects that exist may be replaced. `folder` is the path of the folder, `used` are files that
    were read, `notes` lines that the user is to know.
    """

    def __init__(self, url: str, *, replaces: bool = False) -> None:
        check_writable(url)
        fixed = url.partition("{")[0]  # the part before the placeholder of a template
        self.url: str = url
        self._base = folder_of(fixed + "x") if fixed != url or url.endswith("/") else folder_of(url)
        rest = url[len(self._base) :]
        if any(part in ("..", ".") for part in rest.split("/")):
            raise UsageError("'.' and '..' cannot be the name of a file", path=url)
        try:
            self.folder: str = mkdtemp(prefix=".raconvert-", suffix=".tmp")
        except OSError as error:
            raise write_failed(error.filename or url, error) from error
        self.place: str = self.path_of(url)
        self.replaces: bool = replaces
        self.used: set[str] = set()
        self.absent: set[str] = set()  # URLs that a request has shown to be free
        self.notes: list[str] = []
        self.looks: bool = True  # True if existing objects are looked up before sending
        self._sent: dict[str, S3Upload] = {}  # uploads without a local file that wait to appear

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        for upload in self._sent.values():
            upload.abort()
        self._sent.clear()
        rmtree(self.folder, ignore_errors=True)

    def path_of(self, url: str) -> str:
        """Return the path, in the local folder, of the file that will have this URL."""
        return os.path.join(self.folder, url[len(self._base) :])

    def url_of(self, path: str) -> str:
        """Return the URL of a file of the folder; any other text as it is."""
        inside = os.path.join(self.folder, "")
        return self._base + path[len(inside) :] if path.startswith(inside) else path

    def named(self, text: str) -> str:
        """Return a text with the paths of files of the folder replaced by their URLs."""
        return text.replace(os.path.join(self.folder, ""), self._base)

    def renamed(self, error: RaconvertError) -> RaconvertError:
        """Replace paths of the folder in an error by their URLs; return the error."""
        for part in ("path", "what", "where", "expected", "got", "remedy"):
            text = getattr(error, part)
            if isinstance(text, str):
                setattr(error, part, self.named(text))
        return error

    def keep(self, path: str, upload: S3Upload) -> None:
        """Make an empty file of the folder, for which `publish` completes an upload."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        self._sent[path] = upload

    def facts(self) -> dict[str, tuple[int, str]]:
        """Return size and SHA-256 (empty: unknown) of each upload without a local file, by path."""
        return {path: (upload.nbytes, upload.digest) for path, upload in self._sent.items()}

    def publish(self, paths: Iterable[str], *, verify: bool = False) -> list[str]:
        """Make files, and all files in folders, appear in this order; return their URLs.

        Raises `TargetExists` for an object that may not be replaced, and `WriteFailed`; new objects
        are then removed again. With `verify` all bytes are read back.
        """
        files = {self.url_of(file): file for path in paths for file in self._files(path)}
        known, left = self._existing([*files]), self._left_over([*files])
        uploads: dict[str, Upload] = {self.url_of(path): up for path, up in self._sent.items()}
        done: list[str] = []
        try:
            self._send(files, uploads, known)
            for url, path in files.items():
                done.append(url)
                self._appear(url, path, uploads, known, verify=verify)
        except BaseException as error:
            # A file that may be there keeps its partners: without them it would lose silently.
            unclear = any(upload.unclear for upload in uploads.values())
            for url in done if not unclear else ():
                if url in uploads and url not in known:
                    uploads[url].take_back()
            for upload in uploads.values():
                upload.abort()
            if isinstance(error, OSError):
                raise write_failed(self.url, error) from error
            raise
        for url in left:
            if url not in done:
                remove(url)
        return done

    def _send(self, files: dict[str, str], uploads: dict[str, Upload], known: set[str]) -> None:
        """Send the large files among several, so that little is left to do when they appear."""
        for url, path in files.items() if len(files) > 1 else ():
            if url not in uploads and os.path.getsize(path) > PART:
                uploads[url] = self._upload(url, path, known)
                uploads[url].finish()

    def _upload(self, url: str, path: str, known: set[str]) -> Upload:
        """Return the upload of a file; `known` are the URLs that exist and may be replaced."""
        return upload_of(url, path, overwrite=self.replaces or url in known)

    def _appear(
        self, url: str, path: str, uploads: dict[str, Upload], known: set[str], *, verify: bool
    ) -> None:
        """Make one file appear, and remove it from the folder."""
        if url not in uploads:
            uploads[url] = self._upload(url, path, known)
        upload = uploads[url]
        upload.appear()
        if verify and not upload.read_back():
            raise upload.is_not_what_was_sent()
        self.notes += upload.notes
        if path not in self._sent:
            os.unlink(path)

    def _existing(self, urls: list[str]) -> set[str]:
        """Return the URLs that exist already; raises `TargetExists` unless they may be replaced."""
        known = set()
        wanted = self.looks and (not self.replaces or len(urls) > 1)
        for url in urls if wanted else ():
            if url not in self.absent and stat(url) is not None:
                if not self.replaces and not self._is_left_over(url, urls):
                    raise exists(url)
                known.add(url)
        return known

    def _left_over(self, urls: list[str]) -> list[str]:
        """Return the URLs of metadata beside files that are replaced: it is removed with them."""
        if len(urls) > _FEW:  # a request for each would cost too much
            return []
        beside = [url + SUFFIX for url in urls if not url.endswith((SUFFIX, ITEMS_SUFFIX))]
        sidecars = [url for url in beside if _is_sidecar(url)]
        most = DEFAULT.searched_bytes
        items = [url for url in sidecars if b"\nitems_file:" in range_of(url, 0, most)]
        return [*sidecars, *(url.removesuffix(SUFFIX) + ITEMS_SUFFIX for url in items)]

    def _is_left_over(self, url: str, urls: list[str]) -> bool:
        """True if an object is metadata of a file that is written now."""
        described = url.removesuffix(SUFFIX).removesuffix(ITEMS_SUFFIX)
        return described != url and described in urls and _is_sidecar(described + SUFFIX)

    def _files(self, path: str) -> list[str]:
        """Return the paths of a file, or of all files in a folder; the manifest is the last one."""
        if path in self._sent or not os.path.isdir(path):
            return [path]
        refuse_occupied(self.url_of(path))
        files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        return sorted(files, key=lambda file: (os.path.basename(file) == MANIFEST, file))


def _is_sidecar(url: str) -> bool:
    """True if an object exists, and begins as metadata of raconvert."""
    if stat(url) is None:
        return False
    return range_of(url, 0, len(MARK)) == MARK


def refuse_occupied(url: str) -> None:
    """Raise `TargetExists` if there are files in a folder at a URL."""
    fs, key = filesystem(url), key_of(url).rstrip("/") + "/"
    listed: Sequence[Any] = attempted(lambda: fs.find(key), url)
    if listed:
        raise TargetExists(
            f"holds {counted(len(listed), 'file')} already, and is left as it was",
            path=url,
            remedy="name another folder, or remove it first: at a URL no folder is replaced",
        )


def replaceable(
    url: str, *, overwrite: bool, skip: bool, newest: float | None
) -> tuple[str, str] | None:
    """Return (URL, reason) if an existing object is kept; None if it may be written.

    `newest` is the time of the source in seconds for ``--update``, else None. Raises
    `TargetExists`.
    """
    facts = stat(url)
    if facts is None:
        return None
    if skip:
        return url, "exists already"
    if newest is not None and facts.time / 1e9 >= newest:
        return url, "is not older than its source"
    if not overwrite and newest is None:
        raise exists(url)
    return None


if TYPE_CHECKING:
    Upload = S3Upload | OtherUpload
