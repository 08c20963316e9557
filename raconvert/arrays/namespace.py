"""The namespace of the core itself: what .ra files say of an array and NumPy cannot.

``eltype`` and ``elbyte`` are the type in the file where NumPy lacks it, such as 128-bit integers
and complex32; ``trailer`` is what follows the data: an `Extent`, or the bytes to be written.
"""

from __future__ import annotations

from raconvert.arrays.metadata import RA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.metadata import Metadata

NAME = RA


def own_of(meta: Metadata) -> dict[str, Any]:
    """The namespace; empty where there is none."""
    found: dict[str, Any] = meta.formats.get(NAME, {})
    return found


def own_only(meta: Metadata) -> dict[str, dict[str, Any]]:
    """Of all namespaces this one."""
    return {NAME: own_of(meta)}


def trailer_of(meta: Metadata) -> Any:
    """The trailer; None where there is none."""
    return own_of(meta).get("trailer")


def set_trailer(meta: Metadata, trailer: bytes) -> None:
    """Put a trailer in the place of the one that is there."""
    meta.formats.setdefault(NAME, {})["trailer"] = trailer


def drop_trailer(meta: Metadata) -> None:
    """Take the trailer away."""
    own_of(meta).pop("trailer", None)


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
