"""Strips and tiles that are pictures: WebP, JPEG XL, JPEG 2000 and LERC, by imagecodecs.

Each is decoded into an array with the shape and the type of its page: the decoders compare both
with the picture's own header before they decode a pixel. OpenJPEG does so afterwards, hence the
header of JPEG 2000 is checked here.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from raconvert.errors import Corrupt, Unsupported

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    Values = np.ndarray[Any, Any]

ADDED = {0: "nothing", 1: "deflate", 2: "Zstandard"}  # around LERC: second number of tag 50674
BOX, SIZ = struct.Struct(">I4s"), struct.Struct(">HHHIIIIIIIIH")
CODESTREAM = b"\xff\x4f\xff\x51"  # first marker of a codestream, and that of its sizes
TILE_BYTES = 14  # least bytes of a tile of JPEG 2000: its two markers
LERC_HEADER_BYTES = 64  # that are parsed
LERC = struct.Struct("<6sI")
LERC_SPARE_BYTES = 1 << 10  # room for the header of LERC, which may be longer than the pixels


def unwebp(data: Any, out: Values, _: tuple[int, ...], __: str) -> None:
    """Decode WebP; pictures without transparency may have no alpha."""
    import imagecodecs

    imagecodecs.webp_decode(data, hasalpha=out.ndim == 3 and out.shape[-1] == 4, out=out)


def unjpegxl(data: Any, out: Values, _: tuple[int, ...], __: str) -> None:
    """Decode JPEG XL."""
    import imagecodecs

    imagecodecs.jpegxl_decode(data, out=out)


def unjpeg2k(data: Any, out: Values, _: tuple[int, ...], path: str) -> None:
    """Decode JPEG 2000, with or without the boxes of a JP2 file around it."""
    import imagecodecs

    _check_siz(data, out, path)
    imagecodecs.jpeg2k_decode(data, out=out)


def unlerc(data: Any, out: Values, parameters: tuple[int, ...], path: str) -> None:
    """Decode LERC, which may be compressed once more. Raises `Unsupported` for another way."""
    import imagecodecs

    added, room = (*parameters, 0, 0)[1], 2 * out.nbytes + LERC_SPARE_BYTES
    if added not in ADDED:
        what = f"has LERC that is compressed once more, in an unknown way ({added})"
        raise Unsupported(what, path=path)
    if added == 1:
        data = zlib.decompressobj().decompress(data, room)
    elif added == 2:
        data = imagecodecs.zstd_decode(data, out=room)
    _check_valid(bytes(data[:LERC_HEADER_BYTES]), path)
    imagecodecs.lerc_decode(data, out=out)


def _check_siz(data: bytes, out: Values, path: str) -> None:
    """Raise `Corrupt` if the sizes in a codestream are not those of the strip or tile."""
    at = _codestream(data)
    if data[at : at + 4] != CODESTREAM or len(data) < at + 4 + SIZ.size:
        raise Corrupt("has a JPEG 2000 without a header", path=path)
    sizes = SIZ.unpack_from(data, at + 2)
    right, bottom, left, top, across, down, x, y, components = sizes[-9:]
    height, width, samples = (*out.shape, 1)[:3]
    if (bottom - top, right - left, components) != (height, width, samples):
        raise Corrupt(
            "has a JPEG 2000 that is not its strip or tile", path=path,
            expected=f"{height} × {width}, of {samples} components",
            got=f"{bottom - top} × {right - left}, of {components} components",
        )  # fmt: skip
    count = -(-(right - x) // max(1, across)) * -(-(bottom - y) // max(1, down))
    if not across * down or count * TILE_BYTES > len(data):
        raise Corrupt("has a JPEG 2000 of more tiles than it has bytes for", path=path)


def _codestream(data: bytes) -> int:
    """The offset of the codestream: 0, or behind the header of its box; the end without one."""
    at = 0
    if data[:4] == CODESTREAM:
        return at
    while at + BOX.size <= len(data):
        nbytes, name = BOX.unpack_from(data, at)
        if name == b"jp2c":
            return at + BOX.size + (8 if nbytes == 1 else 0)
        if nbytes < BOX.size:
            break
        at += nbytes
    return len(data)


def _check_valid(head: bytes, path: str) -> None:
    """Raise `Unsupported` for LERC with invalid pixels, since a TIFF has no value for them."""
    magic, version = LERC.unpack_from(head.ljust(LERC.size, b"\0"))
    if magic != b"Lerc2 ":
        raise Unsupported("has LERC of an old version, or none", path=path)
    at = LERC.size + 4 * (version >= 3)
    rows, columns, *rest = struct.unpack_from("<4I", head.ljust(LERC_HEADER_BYTES, b"\0"), at)
    if rest[version >= 4] != rows * columns:
        what = "has LERC with pixels that are not valid, for which TIFF has no value"
        raise Unsupported(what, path=path)
