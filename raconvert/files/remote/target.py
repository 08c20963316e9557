"""Files for a URL: made in a private local folder, or sent as they are made; then they appear.

A writer that goes back and forth in its file (HDF5, archives) needs a local one. Nothing appears
before all files of a run are there to be sent; each then appears whole, partner files before the
file that they belong to. What has appeared new is removed again if a later one fails.
"""

from __future__ import annotations

import os
from shutil import rmtree
from tempfile import mkdtemp

from raconvert.errors import RaconvertError, TargetExists, UsageError, counted
from raconvert.files.places import write_failed
from raconvert.files.remote import SCHEMES, folder_of, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of
from raconvert.files.remote.finished import upload_of
from raconvert.files.remote.store import exists, range_of, remove, stat
from raconvert.files.remote.uploads import PART, S3Upload

SUFFIX, ITEMS_SUFFIX = ".yaml", ".items.jsonl"  # of metadata beside a file
MARK = b"describes:"  # how it begins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from raconvert.files.remote.finished import OtherUpload

    Upload = S3Upload | OtherUpload

_LARGEST = 64 << 20  # bytes of metadata beside a file
_FEW = 16  # files beside each of which is looked for metadata of an older one
MANIFEST = "bundle.yaml"  # names the other files of its folder, and so appears after them


def check_writable(url: str) -> None:
    """Refuse a URL to which nothing can be written, whoever asks."""
    if SCHEMES[scheme_of(url)][0] == "http":
        raise UsageError(
            "an address in the web can be read, not written",
            path=url,
            remedy="name a file here, or a URL of a store: s3://BUCKET/NAME",
        )
    if "/" not in url.partition("://")[2].rstrip("/") and scheme_of(url) != "memory":
        raise UsageError("is a bucket, not a name in it", path=url, expected="s3://BUCKET/NAME")


class Remote:
    """A private folder whose files go to a URL: `place` is what the URL is called in it.

    A context manager: what has not appeared when it is left never does. With `replaces` it may take
    the place of what is there. `folder` is where all of it is made, `used` are files that were
    read, `notes` what the user is to know.
    """

    def __init__(self, url: str, *, replaces: bool = False) -> None:
        check_writable(url)
        fixed = url.partition("{")[0]  # of a template
        self.url: str = url
        self._base = folder_of(fixed + "x") if fixed != url or url.endswith("/") else folder_of(url)
        rest = url[len(self._base) :]
        if any(part in ("..", ".") for part in rest.split("/")):
            raise UsageError("a name of '.' or '..' is none for a file", path=url)
        try:
            self.folder: str = mkdtemp(prefix=".raconvert-", suffix=".tmp")
        except OSError as error:
            raise write_failed(error.filename or url, error) from error
        self.place: str = self.path_of(url)
        self.replaces: bool = replaces
        self.used: set[str] = set()
        self.absent: set[str] = set()  # URLs where nothing is, as was asked already
        self.notes: list[str] = []
        self.looks: bool = True  # before anything is sent, for what is there
        self._sent: dict[str, S3Upload] = {}  # without a local file: uploads that wait to appear

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        for upload in self._sent.values():
            upload.abort()
        self._sent.clear()
        rmtree(self.folder, ignore_errors=True)

    def path_of(self, url: str) -> str:
        """The path in the folder of what has this URL at last."""
        return os.path.join(self.folder, url[len(self._base) :])

    def url_of(self, path: str) -> str:
        """The URL of a file of the folder; any other text as it is."""
        inside = os.path.join(self.folder, "")
        return self._base + path[len(inside) :] if path.startswith(inside) else path

    def named(self, text: str) -> str:
        """Return a text with URLs in the place of the files of the folder."""
        return text.replace(os.path.join(self.folder, ""), self._base)

    def renamed(self, error: RaconvertError) -> RaconvertError:
        """Let an error speak of URLs, not of the folder."""
        for part in ("path", "what", "where", "expected", "got", "remedy"):
            said = getattr(error, part)
            if isinstance(said, str):
                setattr(error, part, self.named(said))
        return error

    def keep(self, path: str, upload: S3Upload) -> None:
        """Have an upload stand for a file of the folder, which is empty, until `publish`."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        self._sent[path] = upload

    def facts(self) -> dict[str, tuple[int, str]]:
        """Size and SHA-256 (empty: not known) of what is sent without a local file, by path."""
        return {path: (upload.nbytes, upload.digest) for path, upload in self._sent.items()}

    def publish(self, paths: Iterable[str], *, verify: bool = False) -> list[str]:
        """Have files, and all in folders, appear in this order; return their URLs.

        Raises `TargetExists` where something is there that may not be replaced, and `WriteFailed`;
        what was not there before is not there then either. With `verify` all bytes are read back.
        """
        files = {self.url_of(file): file for path in paths for file in self._files(path)}
        known, left = self._known([*files]), self._left_over([*files])
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
        return upload_of(url, path, overwrite=self.replaces or url in known)

    def _appear(
        self, url: str, path: str, uploads: dict[str, Upload], known: set[str], *, verify: bool
    ) -> None:
        if url not in uploads:
            uploads[url] = self._upload(url, path, known)
        upload = uploads[url]
        upload.appear()
        if verify and not upload.read_back():
            raise upload.is_not_what_was_sent()
        self.notes += upload.notes
        if path not in self._sent:
            os.unlink(path)

    def _known(self, urls: list[str]) -> set[str]:
        """Those that are there; refused before anything is sent, unless they may be replaced."""
        known = set()
        wanted = self.looks and (not self.replaces or len(urls) > 1)
        for url in urls if wanted else ():
            if url not in self.absent and stat(url) is not None:
                if not self.replaces and not self._is_left_over(url, urls):
                    raise exists(url)
                known.add(url)
        return known

    def _left_over(self, urls: list[str]) -> list[str]:
        """The metadata of files that were there, which goes with them."""
        if len(urls) > _FEW:  # names that nobody has used: one look for each costs too much
            return []
        beside = [url + SUFFIX for url in urls if not url.endswith((SUFFIX, ITEMS_SUFFIX))]
        found = [url for url in beside if _is_sidecar(url)]
        items = [url for url in found if b"\nitems_file:" in range_of(url, 0, _LARGEST)]
        return [*found, *(url.removesuffix(SUFFIX) + ITEMS_SUFFIX for url in items)]

    def _is_left_over(self, url: str, urls: list[str]) -> bool:
        """True if a file that is there is metadata of one that is not there any more."""
        of = url.removesuffix(SUFFIX).removesuffix(ITEMS_SUFFIX)
        return of != url and of in urls and _is_sidecar(of + SUFFIX)

    def _files(self, path: str) -> list[str]:
        """A file, or all files in a folder, the one that names the others last."""
        if path in self._sent or not os.path.isdir(path):
            return [path]
        refuse_occupied(self.url_of(path))
        found = [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]
        return sorted(found, key=lambda file: (os.path.basename(file) == MANIFEST, file))


def _is_sidecar(url: str) -> bool:
    """True if an object is there, and is metadata that was written here."""
    if stat(url) is None:
        return False
    return range_of(url, 0, len(MARK)) == MARK


def refuse_occupied(url: str) -> None:
    """Refuse a folder at a URL in which there is anything."""
    fs, key = filesystem(url), key_of(url).rstrip("/") + "/"
    found: Sequence[Any] = attempted(lambda: fs.find(key), url)
    if found:
        raise TargetExists(
            f"holds {counted(len(found), 'file')} already, and is left as it was",
            path=url,
            remedy="name another folder, or remove it first: at a URL no folder is replaced",
        )


def replaceable(
    url: str, *, overwrite: bool, skip: bool, newest: float | None
) -> tuple[str, str] | None:
    """Why an object is kept that is there: (URL, reason); None if it may be written.

    `newest` is the time in seconds to which it is compared for ``--update``. Raises `TargetExists`.
    """
    found = stat(url)
    if found is None:
        return None
    if skip:
        return url, "exists already"
    if newest is not None and found.time / 1e9 >= newest:
        return url, "is not older than its source"
    if not overwrite and newest is None:
        raise exists(url)
    return None
