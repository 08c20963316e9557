"""Detection of images of OME among files of TIFF and Zarr."""

from __future__ import annotations

import re
from struct import Struct

from raconvert.errors import RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Source

LOOKED_AT = 1 << 20  # bytes read of a document of Zarr
DESCRIPTION_BYTES = 4096  # bytes read of a description
IMAGE_DESCRIPTION = 270  # the tag
ENTRIES = 200  # entries read of a directory
GROUP_2, ATTRIBUTES_2 = ".zgroup", ".zattrs"
# The words of an image in the attributes of a group, in version 3 below the key ``ome``
_OME_3 = re.compile(rb'"ome"\s*:\s*\{')
_PARTS = re.compile(rb'"(?:multiscales|plate|well|labels|series|bioformats2raw\.layout)"\s*:')
_OME_2 = re.compile(rb'"(?:multiscales|plate|bioformats2raw\.layout)"\s*:')
_VERSION_2 = re.compile(rb'"version"\s*:\s*"0\.4[^"]{0,20}"|"bioformats2raw\.layout"\s*:\s*3')


def is_ome_zarr(source: Source) -> bool:
    """True if a metadata file of Zarr is that of a group of images. Raises nothing."""
    if not source.head.lstrip().startswith(b"{"):
        return False
    if source.name == GROUP_2:
        return _is_ome_2(source)
    text = source.read_at(0, LOOKED_AT) if source.name == "zarr.json" else source.head
    return bool(b'"zarr_format"' in text and _OME_3.search(text) and _PARTS.search(text))


def _is_ome_2(source: Source) -> bool:
    """True if the attributes beside a group of Zarr 2 are those of OME 0.4."""
    try:
        attributes = source.named(ATTRIBUTES_2, "the attributes")
        text = attributes.read_at(0, LOOKED_AT)
        attributes.close()
    except RaconvertError:
        return False
    return bool(_OME_2.search(text) and _VERSION_2.search(text))


def is_ome_tiff(source: Source) -> bool:
    """True if the first page of a TIFF has OME-XML as its description. Raises nothing."""
    return b"<OME" in _description(source)


def _description(source: Source) -> bytes:
    """The beginning of the description of the first page of a TIFF; empty if it has none."""
    head = source.head
    order = "<" if head[:1] == b"I" else ">"
    big = head[2:4] in (b"+\0", b"\0+")
    number = Struct(f"{order}{'Q' if big else 'I'}")
    count = Struct(f"{order}{'Q' if big else 'H'}")
    entry = Struct(f"{order}HH{'QQ' if big else 'II'}")
    try:
        (start,) = number.unpack_from(head, 8 if big else 4)
        (entries,) = count.unpack(source.read_at(start, count.size))
        data = source.read_at(start + count.size, min(entries, ENTRIES) * entry.size)
        whole = data[: len(data) // entry.size * entry.size]
        for tag, kind, length, value in entry.iter_unpack(whole):
            if tag == IMAGE_DESCRIPTION and kind in (1, 2, 7) and length > number.size:
                return source.read_at(value, min(length, DESCRIPTION_BYTES))
    except Exception:  # noqa: BLE001 - any fault means that there is no description
        return b""
    return b""
