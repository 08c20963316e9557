"""What is at a URL, as it was when it was first asked for, and the files of stores that speak S3.

S3 is asked for no other version (``If-Match``), of other servers the answers are compared.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from raconvert.errors import Changed
from raconvert.files.remote import SCHEMES, scheme_of
from raconvert.files.remote.filesystem import attempted, filesystem, key_of, status_of
from raconvert.files.remote.ranges import BLOCK_BYTES, Asked, Cut, Facts, Object, nanoseconds
from raconvert.files.remote.web import WebObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    Identity = tuple[int, int, int, int]


class _S3Object(Asked):
    """A file in a store that speaks S3."""

    def look(self) -> None:
        self.first = attempted(self._beginning, self.url)

    def _beginning(self) -> bytes:
        try:
            return self._range(0, BLOCK_BYTES)
        except OSError as error:
            if status_of(error) != 416:
                raise
        self.facts = self._ask()  # no byte is there to be asked for
        if self.facts.size:
            raise self._changed()
        return b""

    async def _got(self, fs: Any, begin: int, end: int, _limit: asyncio.Timeout) -> bytes:
        bucket, _, name = key_of(self.url).partition("/")
        only = {"IfMatch": self.facts.version} if self.facts.version else {}
        answer = await fs._call_s3(
            "get_object", Bucket=bucket, Key=name, Range=f"bytes={begin}-{end - 1}", **only
        )
        body = answer["Body"]
        try:
            span = answer.get("ContentRange")
            size = int(span.rpartition("/")[2]) if span else -1
            found = Facts(size, answer.get("ETag", ""), nanoseconds(answer.get("LastModified")))
            length = self._check(found, span, begin, end)
            if answer.get("ContentLength") != length:
                raise Cut(f"an answer of {answer.get('ContentLength')} bytes, not {length}")
            data = bytes(await body.read())
        finally:
            body.close()
        if len(data) != length:
            raise Cut(f"{len(data)} of {length} bytes")
        self.facts = found
        return data

    def _ask(self) -> Facts:
        bucket, _, name = key_of(self.url).partition("/")
        found = filesystem(self.url).call_s3("head_object", Bucket=bucket, Key=name)
        return Facts(
            found["ContentLength"], found.get("ETag", ""), nanoseconds(found.get("LastModified"))
        )


_CLASSES: dict[str, type[Object]] = {"s3": _S3Object, "http": WebObject}
_seen: WeakValueDictionary[tuple[str, Identity], Object] = WeakValueDictionary()


def notes_of(url: str, known: Identity) -> list[str]:
    """Notes about how a file is read; empty if it is by ranges."""
    found = _seen.get((url, known))
    if found is None or found.whole is None:
        return []
    return [
        f"the server gives no ranges: all {found.facts.size} bytes were copied to a temporary file"
    ]


def object_at(url: str, known: Identity | None = None) -> Object:
    """What is at a URL, asked for anew; with `known` that of this identity, as it was then.

    Raises `Changed` if it is not the one that is known, `ReadFailed` if it cannot be read.
    """
    if known is not None:
        kept = _seen.get((url, known))
        if kept is not None:
            return kept
    found = _CLASSES.get(SCHEMES[scheme_of(url)][0], Object)(url)
    found.look()
    if known is not None and found.identity != known:
        raise Changed(
            "file changed while it was read", path=url, remedy="try again when nothing writes to it"
        )
    _seen.setdefault((url, found.identity), found)
    return found
