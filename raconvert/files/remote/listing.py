"""Listing of files at URLs: one file, those of a folder, those that a pattern matches."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from posixpath import normpath

from raconvert.declared import Record
from raconvert.errors import RaconvertError, ReadFailed, Unsafe, UsageError
from raconvert.files.limits import DEFAULT
from raconvert.files.remote import HIDDEN, SCHEMES, folder_of, located, private, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of, status_of
from raconvert.files.remote.objects_by_ranges import Facts, listed, object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import Any

    from raconvert.files.limits import Limits


_PATTERN = re.compile(r"[*?\[]")


class Entry(Record):
    """A file in a listing."""

    url: str
    facts: Facts


def is_file(url: str) -> bool:
    """True if there is a file at a URL; raises `ReadFailed` if the server does not say.

    False for a file beside one whose address is signed: the signature is for that one alone.
    """
    if f"://{HIDDEN}" in url and not _is_known(url):
        return False
    try:
        object_at(url)
    except ReadFailed as error:
        if is_missing(error):
            return False
        raise
    return True


def _is_known(url: str) -> bool:
    """True if the whole URL of a public name is known."""
    try:
        private(url)
    except UsageError:
        return False
    return True


def is_missing(error: ReadFailed) -> bool:
    """True if reading failed because the file does not exist, or is a folder."""
    cause = error.__cause__
    return isinstance(cause, FileNotFoundError | IsADirectoryError) or status_of(cause) in (
        404,
        410,
    )


def split(spec: str) -> tuple[str, str | None]:
    """Split ``URL#name`` into URL and name; in a bucket, the whole may be the URL of a file."""
    if "#" not in spec or (is_listed(spec) and is_file(spec)):
        return spec, None
    path, _, name = spec.rpartition("#")
    while "#" in path and not (is_listed(path) and is_file(path)):
        path, _, more = path.rpartition("#")
        name = f"{more}#{name}"
    return path, name


def is_listed(url: str) -> bool:
    """True if a URL is one of a store, which lists its files; web servers do not."""
    return SCHEMES[scheme_of(url)][0] != "http"


def is_pattern(url: str) -> bool:
    """True if a URL is a pattern: it has a wildcard and no file has that name."""
    match = _PATTERN.search(url.partition("://")[2])
    return match is not None and is_listed(url) and not is_file(url)


def matching(pattern: str) -> list[str]:
    """Return the URLs of the files that a pattern matches, in the order of their names."""
    listed = attempted(lambda: filesystem(pattern).glob(key_of(pattern), detail=True), pattern)
    return [entry.url for entry in _entries(pattern, listed)]


def is_folder(url: str) -> bool:
    """True if there are files below a URL, and no file at it."""
    if not is_listed(url):
        return url.endswith("/")
    if not url.endswith("/") and is_file(url):
        return False
    return bool(attempted(lambda: filesystem(url).isdir(key_of(url).rstrip("/")), url))


def candidates(
    url: str, recursive: bool, named: Callable[[str], object], *, every: bool,
    marks: Container[str] = (),
) -> list[str] | None:  # fmt: skip
    """Return the URLs of the files that a pattern or folder stands for; None for any other URL.

    `named` is true for a name with the suffix of a format, which is never taken for a folder. From
    a folder come the files for which it is true, or with `every` all of them; an inner folder that
    has a file of a name in `marks` is one source. Raises `ReadFailed` if there are no files.
    """
    if is_pattern(url):
        urls = matching(url)
    elif named(url.partition("#")[0]) or not is_folder(url):
        return None
    else:
        urls = files_in(url, recursive, bool if every else named, marks)
    if not urls:
        raise ReadFailed("holds no file of a known format", path=url)
    return urls


def files_in(
    url: str, recursive: bool, named: Callable[[str], object] = bool, marks: Container[str] = ()
) -> list[str]:
    """Return the URLs of the sources in a folder, as `candidates` does, without hidden files.

    Raises `Unsafe` for a name that leads out of a folder.
    """
    paths = {entry.url: below(url, entry.url) for entry in entries(url, recursive=recursive)}
    inside = folders_with(marks, paths.values())
    files = [f"{url.rstrip('/')}/{folder}" for folder in dict.fromkeys(inside.values())]
    for file, path in paths.items():
        if path not in inside and not f"/{path}".count("/.") and named(file):
            files.append(file)
    return files


def folders_with(marks: Container[str], paths: Iterable[str]) -> dict[str, str]:
    """Map each path below a folder that has a file of these names to the outermost such folder."""
    paths = list(paths)
    roots = {folder for folder, _, name in (p.rpartition("/") for p in paths) if name in marks}
    folders = {}
    for path in paths if roots else ():
        above = (path[:end] for end, letter in enumerate(path) if letter == "/")
        if outermost := next((folder for folder in above if folder in roots), ""):
            folders[path] = outermost
    return folders


def entries(url: str, *, recursive: bool) -> list[Entry]:
    """Return the files of a folder by their names, with `recursive` also those of inner folders.

    Raises `UsageError` for a web server, `ReadFailed` if the store does not answer.
    """
    if not is_listed(url):
        raise UsageError(
            "a web server does not tell which files it has",
            path=url,
            remedy="name each file, or give their list with `--files-from`",
        )
    fs, key = filesystem(url), key_of(url).rstrip("/")
    if recursive:
        listed = attempted(lambda: fs.find(key, detail=True), url)
    else:
        listed = {info["name"]: info for info in attempted(lambda: fs.ls(key, detail=True), url)}
    return _entries(url, listed)


def folders_in(url: str) -> list[str]:
    """Return the names of the folders directly in a folder, sorted, without unsafe names."""
    fs, key = filesystem(url), key_of(url).rstrip("/")
    listed = attempted(lambda: fs.ls(key, detail=True), url)
    folders = [info["name"].rstrip("/") for info in listed if info["type"] == "directory"]
    names = sorted(folder.rpartition("/")[2] for folder in folders if folder != key)
    return [name for name in names if is_safe(name)]


def _entries(url: str, listing: dict[str, Any]) -> list[Entry]:
    """Return the files in a listing of fsspec, which maps keys to facts, by their names."""
    files = []
    for key, info in sorted(listing.items()):
        if info["type"] != "file" or key.endswith("/"):  # an empty object may stand for a folder
            continue
        address = f"{url.partition('://')[0]}://{key.lstrip('/')}"
        files.append(Entry(address, listed(info)))
    return files


def below(folder: str, url: str) -> str:
    """Return the path of a file relative to a folder, checked to be safe below a local folder.

    Raises `Unsafe` for a path that would lead elsewhere: stores take any text for a name.
    """
    path = path_below(folder, url)
    if not is_safe(path):
        raise Unsafe(
            "has a name that would lead out of a folder", path=url, remedy="name it by itself"
        )
    return path


def path_below(folder: str, url: str) -> str:
    """Return the path of a file relative to a folder of the store; empty if it is outside."""
    above, key = key_of(folder).rstrip("/") + "/", key_of(url)
    return key[len(above) :] if key.startswith(above) else ""


def is_safe(path: str) -> bool:
    """True if a relative path stays below its folder on a local disk, too."""
    odd = path.startswith(("/", "../")) or path in ("", ".", "..") or "\\" in path or "\0" in path
    return path == normpath(path) and not odd


def partner(url: str, name: str, what: str) -> str:
    """Return the URL of a file that another one names, as `place_of_partner`; it must exist.

    Raises `ReadFailed` otherwise.
    """
    url_of_partner = place_of_partner(url, name, what)
    if not is_file(url_of_partner):
        raise ReadFailed(f"{what} '{name[:200]}' does not exist", path=url)
    return url_of_partner


def place_of_partner(url: str, name: str, what: str) -> str:
    """Return the URL of a file that the one at `url` names: in the same folder, or below it.

    `what` names the file in messages. Raises `Unsafe` for any other name, such as another URL.
    """
    path = normpath(name)
    odd = "://" in name or path.startswith(("/", "../")) or path in (".", "..")
    web = not is_listed(url) and any(letter in name for letter in "%?#")
    if odd or web or "\\" in name or "\0" in name:
        raise Unsafe(
            f"{what} lies outside the folder of the file that names it",
            path=url,
            expected=f"a file below '{folder_of(url)}'",
            got=f"'{name[:200]}'",
            remedy="fetch both files, and read them here",
        )
    return located(folder_of(url) + path)


def modified(url: str) -> float:
    """Return the time of a file's last change, in seconds; `ReadFailed` if not given."""
    time = object_at(url).facts.time
    if not time:
        raise ReadFailed("server does not tell when it was changed", path=url)
    return time / 1e9


# Facts of a store about an object, and small requests about one ----------------------------------


def is_s3(url: str) -> bool:
    """True if a URL is one of S3, or of a store that speaks S3."""
    return SCHEMES[scheme_of(url)][0] == "s3"


def remove(url: str) -> None:
    """Remove an object. Raises nothing."""
    try:
        attempted(lambda: filesystem(url).rm_file(key_of(url)), url, writing=True)
    except RaconvertError:  # the user gets the earlier error
        pass


def range_of(url: str, start: int, nbytes: int) -> bytes:
    """Read a range of an object."""
    fs, key = filesystem(url), key_of(url)
    return attempted(lambda: bytes(fs.cat_file(key, start=start, end=start + nbytes)), url)


def stat(url: str) -> Facts | None:
    """Return a store's facts about an object; None if it does not exist.

    Raises `ReadFailed` where the store does not answer.
    """
    fs, key = filesystem(url), key_of(url)

    def look() -> Facts | None:
        try:
            if is_s3(url):
                bucket, _, name = key.partition("/")
                answer = fs.call_s3("head_object", Bucket=bucket, Key=name)
                return listed({**answer, "size": answer["ContentLength"]})
            return listed(fs.info(key))
        except Exception as error:
            if isinstance(error, FileNotFoundError) or status_of(error) == 404:
                return None
            raise

    return attempted(look, url)


def uploads_below(prefix: str, limits: Limits = DEFAULT) -> list[tuple[str, str]]:
    """Return (URL, ID) of each upload below a URL that was neither completed nor aborted.

    Empty if the store does not list them. Raises nothing.
    """
    key = key_of(prefix).partition("/")[2]
    uploads: list[tuple[str, str]] = []
    with suppress(RaconvertError, KeyError):
        uploads.extend(  # those before an error stay
            (prefix + begun["Key"][len(key) :], begun["UploadId"])
            for begun in _uploads(prefix, limits)
        )
    return uploads


def _uploads(prefix: str, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield the uploads below a URL, of all pages of the list."""
    fs = filesystem(prefix)
    bucket, _, key = key_of(prefix).partition("/")
    after: dict[str, str] = {}
    for _ in range(limits.listed_pages):
        named = {"Bucket": bucket, "Prefix": key, **after}
        answer = attempted(partial(fs.call_s3, "list_multipart_uploads", **named), prefix)
        yield from answer.get("Uploads") or ()
        if not answer.get("IsTruncated"):
            return
        before, after = after, {"KeyMarker": answer["NextKeyMarker"],
                                "UploadIdMarker": answer["NextUploadIdMarker"]}  # fmt: skip
        if after == before:  # a list that goes on with itself
            return


def abort(url: str, upload: str) -> None:
    """Have a store forget an upload. Raises nothing."""
    bucket, _, key = key_of(url).partition("/")
    named = {"Bucket": bucket, "Key": key, "UploadId": upload}
    try:
        attempted(partial(filesystem(url).call_s3, "abort_multipart_upload", **named), url)
    except RaconvertError:  # it is complete by now, or somebody else has aborted it
        pass


def uploads_of(url: str, limits: Limits = DEFAULT) -> list[str] | None:
    """Return the IDs of the uploads of one object that were neither completed nor aborted.

    None if the store does not list them. Raises nothing.
    """
    key = key_of(url).partition("/")[2]
    try:
        return [begun["UploadId"] for begun in _uploads(url, limits) if begun["Key"] == key]
    except (RaconvertError, KeyError):
        return None
