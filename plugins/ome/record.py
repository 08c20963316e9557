"""Our record in a file of OME: the metadata of an array that OME cannot hold.

Its field `as` is a digest of the metadata in OME when it was written: if another program has
changed that since, axes and space are those of OME, not those of the record.
"""

from __future__ import annotations

from hashlib import sha256

from raconvert.errors import Corrupt
from raconvert.metadata import roundtrip
from raconvert.metadata.json import dumps
from raconvert.plugin import Metadata

from .axes import NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array

AS = "as"


def _of_axes(meta: Metadata) -> dict[str, Any]:
    """The metadata about axes: axes, space, and the namespace ``ome``."""
    own = meta.formats.get(NAMESPACE)
    fields = Metadata(axes=meta.axes, space=meta.space).to_dict()
    return {**fields, **({"formats": {NAMESPACE: dict(own)}} if own else {})}


def _digest(meta: Metadata) -> str:
    return sha256(dumps(_of_axes(meta)).encode()).hexdigest()[:16]


def record_of(array: Array, in_file: Metadata, *, whole: bool) -> dict[str, Any]:
    """The record of an array; empty if the file holds all of its metadata (`in_file`) by itself.

    With `whole` the record has all metadata, not only that of axes.
    """
    if not array.described:
        own, meta = _of_axes(Metadata()), {}
    else:
        own, meta = _of_axes(array.meta), array.meta.to_dict() if whole else {}
    if "description" in meta and meta["description"] == in_file.description:
        del meta["description"]
    formats = {
        name: roundtrip.without_extents(roundtrip.without_local(space))
        for name, space in meta.pop("formats", {}).items() if name != NAMESPACE
    }  # fmt: skip
    differs = own != _of_axes(in_file)
    fields = {key: value for key, value in meta.items() if key not in ("axes", "space")}
    if differs:
        formats = {**formats, **own.pop("formats", {})}
        fields = {**fields, **own}
    if formats:
        fields["formats"] = formats
    return {AS: _digest(in_file) if differs else "", **fields} if fields or differs else {}


def applied(meta: Metadata, in_file: Metadata, record: dict[str, Any], path: str) -> Metadata:
    """The metadata of an array, with that of a record. Raises `Corrupt` for a wrong record.

    Axes of the record count only if OME (`in_file`) is unchanged since the record was written.
    """
    if not record:
        return meta
    fields = {name: value for name, value in record.items() if name not in (AS, "was")}
    roundtrip.check_form(fields, path)
    if len(fields.get("axes", in_file.axes)) not in (0, len(in_file.axes)):
        raise Corrupt("our record has another number of axes", path=path)
    stored = Metadata.from_dict(fields)
    meta = meta.merged(stored.replace(axes=(), space=None).without_format(NAMESPACE))
    if record.get(AS) != _digest(in_file):
        return meta
    own = stored.formats.get(NAMESPACE)
    meta = meta.without_format(NAMESPACE).replace(axes=stored.axes, space=stored.space)
    return meta.with_format(NAMESPACE, **own) if own else meta


def record_in(text: Any, limits: Limits, path: str) -> dict[str, Any]:
    """The record in a text of a file; empty if the text is not a record. Raises `Corrupt`."""
    if text is None or not roundtrip.is_marked(text):
        return {}
    try:
        return roundtrip.record_in(text, limits)
    except ValueError as error:
        raise Corrupt(f"our record of an image is wrong: {error}", path=path) from error
