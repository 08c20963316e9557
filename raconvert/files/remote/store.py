"""What a store says of an object, and small things that it does with one."""

from __future__ import annotations

from functools import partial

from raconvert.errors import RaconvertError, TargetExists
from raconvert.files.remote import SCHEMES, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of, status_of
from raconvert.files.remote.ranges import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.remote.ranges import Facts

_MOST_PAGES = 1000  # of a list of uploads; of 1000 each


def is_s3(url: str) -> bool:
    """True if a URL is of S3, or of what speaks like it."""
    return SCHEMES[scheme_of(url)][0] == "s3"


def exists(url: str, what: str = "exists already") -> TargetExists:
    """The error for an object that is there and may not be replaced."""
    return TargetExists(
        f"{what}, and is left as it was",
        path=url,
        remedy="use `--overwrite` to replace it, or `--skip-existing` to keep it",
    )


def remove(url: str) -> None:
    """Remove an object. Raises nothing."""
    try:
        attempted(lambda: filesystem(url).rm_file(key_of(url)), url, writing=True)
    except RaconvertError:  # what went wrong before is what the user is told
        pass


def range_of(url: str, start: int, nbytes: int) -> bytes:
    """Some bytes of an object."""
    fs, key = filesystem(url), key_of(url)
    return attempted(lambda: bytes(fs.cat_file(key, start=start, end=start + nbytes)), url)


def stat(url: str) -> Facts | None:
    """What a store says of an object; None: not there.

    Raises `ReadFailed` where the store does not answer.
    """
    fs, key = filesystem(url), key_of(url)

    def look() -> Facts | None:
        try:
            if is_s3(url):
                bucket, _, name = key.partition("/")
                found = fs.call_s3("head_object", Bucket=bucket, Key=name)
                return listed({**found, "size": found["ContentLength"]})
            return listed(fs.info(key))
        except Exception as error:
            if isinstance(error, FileNotFoundError) or status_of(error) == 404:
                return None
            raise

    return attempted(look, url)


def uploads_below(prefix: str) -> list[tuple[str, str]]:
    """URL and name of each upload below a URL that was begun and neither completed nor aborted.

    Empty where the store does not say. Raises nothing.
    """
    fs = filesystem(prefix)
    bucket, _, key = key_of(prefix).partition("/")
    found: list[tuple[str, str]] = []
    after: dict[str, str] = {}
    try:
        for _ in range(_MOST_PAGES):
            named = {"Bucket": bucket, "Prefix": key, **after}
            answer = attempted(partial(fs.call_s3, "list_multipart_uploads", **named), prefix)
            found += [
                (prefix + one["Key"][len(key) :], one["UploadId"])
                for one in answer.get("Uploads") or ()
            ]
            if not answer.get("IsTruncated"):
                return found
            before, after = after, {"KeyMarker": answer["NextKeyMarker"],
                                    "UploadIdMarker": answer["NextUploadIdMarker"]}  # fmt: skip
            if after == before:  # a list that goes on with itself
                break
    except (RaconvertError, KeyError):
        pass
    return found


def abort(url: str, upload: str) -> None:
    """Have a store forget an upload. Raises nothing."""
    bucket, _, key = key_of(url).partition("/")
    named = {"Bucket": bucket, "Key": key, "UploadId": upload}
    try:
        attempted(partial(filesystem(url).call_s3, "abort_multipart_upload", **named), url)
    except RaconvertError:  # it is complete by now, or somebody else has aborted it
        pass


def uploads_of(url: str) -> list[str] | None:
    """The uploads of one object that were begun and neither completed nor aborted.

    None where the store does not say. Raises nothing.
    """
    fs = filesystem(url)
    bucket, _, key = key_of(url).partition("/")
    try:
        answer = attempted(
            lambda: fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=key), url
        )
    except RaconvertError:
        return None
    return [one["UploadId"] for one in answer.get("Uploads") or () if one["Key"] == key]
