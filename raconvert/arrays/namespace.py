"""The namespace of the core itself: what .ra files say of an array and NumPy cannot.

``eltype`` and ``elbyte`` are the type in the file where NumPy lacks it, such as 128-bit integers
and complex32; ``trailer`` is what follows the data: an `Extent`, or the bytes to be written.
"""

from __future__ import annotations

from raconvert.arrays.metadata import RA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from raconvert.arrays.metadata import Metadata

NAME = RA
PAIR_BYTES = 4  # of complex32, carried as pairs of float16 on a new fastest axis


def own_of(meta: Metadata) -> Mapping[str, Any]:
    """The namespace; empty where there is none."""
    return meta.formats.get(NAME, {})


def own_only(meta: Metadata) -> dict[str, Mapping[str, Any]]:
    """Only the namespace of RA."""
    return {NAME: own_of(meta)}


def trailer_of(meta: Metadata) -> Any:
    """The trailer; None where there is none."""
    return own_of(meta).get("trailer")


def with_trailer(meta: Metadata, trailer: bytes) -> Metadata:
    """Return metadata with a trailer in the place of the one that is there."""
    return meta.with_format(NAME, trailer=trailer)


def without_trailer(meta: Metadata) -> Metadata:
    """Return metadata without its trailer."""
    return meta.without_format(NAME, "trailer") if "trailer" in own_of(meta) else meta


def without_pairs(meta: Metadata) -> Metadata:
    """Return metadata that no longer says that the fastest axis holds the parts of complex32."""
    pairs = own_of(meta).get("elbyte") == PAIR_BYTES
    return meta.without_format(NAME, "eltype", "elbyte") if pairs else meta


def take_trailer(fields: dict[str, Any]) -> Any:
    """Take the trailer out of metadata in the form of `Metadata.to_dict`; None: it has none."""
    return fields.get("formats", {}).get(NAME, {}).pop("trailer", None)


def replaced_trailer(fields: dict[str, Any], trailer: Any) -> dict[str, Any]:
    """Metadata in the form of `Metadata.to_dict` with another trailer."""
    formats = fields["formats"]
    return {**fields, "formats": {**formats, NAME: {**formats[NAME], "trailer": trailer}}}


def carried(meta: Metadata) -> tuple[Any, Any]:
    """The type in the file where NumPy lacks it: element type and bytes; else None and None."""
    own = own_of(meta)
    return own.get("eltype"), own.get("elbyte")
