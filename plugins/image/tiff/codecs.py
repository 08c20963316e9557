"""Compressions of the strips and tiles of a TIFF: bounds and decoders.

Each has a bound for the bytes that a stored byte can become, so that a header that announces more
is refused. A decoder never gets more room than the strip or tile has. Most are in imagecodecs, an
extra; zlib and lzma are Python's own.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from raconvert.declared import Record
from raconvert.errors import Corrupt, MissingDependency, Unsupported
from raconvert.files.inflate import MAX_RATIO

from ..jpeg_markers import (
    BASELINE,
    EXTENDED,
    LOSSLESS,
    OTHER_FRAMES,
    PROGRESSIVE,
    SCAN,
    check_restarts,
    markers,
)
from .pictures import unjpeg2k, unjpegxl, unlerc, unwebp

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.files.limits import Limits

NONE, CCITT_RLE, CCITT_3, CCITT_4, LZW, OLD_JPEG, JPEG, DEFLATE = 1, 2, 3, 4, 5, 6, 7, 8
JPEGS = OLD_JPEG, JPEG
LONG = 4  # the type of a number in a directory
REMEDY = "rewrite it, for instance with: tiffcp -c none IN OUT"
INSTALL = "pip install 'raconvert[tiff]'"
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
FRAMES = {
    BASELINE: (8,), EXTENDED: (8, 12), PROGRESSIVE: (8, 12), LOSSLESS: (*range(2, 17),),
}  # fmt: skip
UNBOUNDED = 1 << 40  # ratio of pictures, whose memory is checked instead
SPARE_BYTES = 1 << 10  # room behind a strip, since a run of PackBits may end there


class Codec(Record):
    """A compression: its name, the most bytes that one byte becomes (`ratio`), and its decoder.

    `decode` takes the stored bytes, the number of decoded bytes, and the limits. It is None for
    compressions that depend on rows and columns, which tifffile decodes. `picture` takes the stored
    bytes, the array to fill, the parameters of the page, and the path. A `ratio` of 0 stands for
    coded rows, of which one bit can be a row. `extra` is True if it needs imagecodecs. `library`
    decodes a compression that may be lossy.
    """

    name: str
    ratio: int
    decode: Callable[[bytes, int, Limits], Any] | None = None
    extra: bool = True
    library: str = ""
    picture: Callable[[Any, Any, tuple[int, ...], str], None] | None = None


def _inflated(data: bytes, room: int, _: Limits) -> bytes:
    # One byte more than allowed, so that zlib reads on to the checksum at the end.
    return zlib.decompressobj().decompress(data, room + 1)


def _unlzma(data: bytes, room: int, limits: Limits) -> bytes:
    memory = room + limits.lzma_decoder_bytes
    decoder = lzma.LZMADecompressor(lzma.FORMAT_AUTO, memory)
    return decoder.decompress(data, room + 1)


def _unlzw(data: bytes, room: int, _: Limits) -> Any:
    """Decode LZW by libtiff, as a TIFF of one row: `lzw_decode` crashes on damaged codes."""
    import imagecodecs

    fields = ((256, room), (257, 1), (258, 8), (259, LZW), (262, 1), (273, 8), (277, 1), (278, 1),
              (279, len(data)))  # fmt: skip
    data += b"\0" * (len(data) % 2)
    directory = b"".join(struct.pack("<HHII", tag, LONG, 1, value) for tag, value in fields)
    head = b"II*\0" + struct.pack("<I", 8 + len(data))
    whole = b"".join((head, data, struct.pack("<H", len(fields)), directory, bytes(4)))
    return imagecodecs.tiff_decode(whole).tobytes()


def _unpackbits(data: bytes, room: int, _: Limits) -> Any:
    import imagecodecs

    return imagecodecs.packbits_decode(data, out=room + SPARE_BYTES)


def _unzstd(data: bytes, room: int, _: Limits) -> Any:
    import imagecodecs

    return imagecodecs.zstd_decode(data, out=room)


# Bytes that one byte becomes: LZW, a code of 9 bits for 4096 bytes; PackBits, two bytes for 128; a
# block of Zstandard, four bytes for 128 KiB; LZMA, a match of 273 bytes for a thirtieth of a byte;
# JPEG, a bit for a block of 64 pixels and four samples.
_INFLATE = Codec("deflate", MAX_RATIO, _inflated, extra=False)
_ZSTD = Codec("zstd", 1 << 15, _unzstd)
_JPEG = Codec("JPEG", 1 << 11, library="libjpeg-turbo")
# A picture of one colour has a few bytes, whatever its size.
_WEBP = Codec("WebP", UNBOUNDED, library="libwebp", picture=unwebp)
_JPEG_XL = Codec("JPEG XL", UNBOUNDED, library="libjxl", picture=unjpegxl)
_JPEG_2000 = Codec("JPEG 2000", UNBOUNDED, library="OpenJPEG", picture=unjpeg2k)
CODECS = {
    NONE: Codec("none", 1, extra=False),
    CCITT_RLE: Codec("CCITT modified Huffman", 0),
    CCITT_3: Codec("CCITT group 3", 0),
    CCITT_4: Codec("CCITT group 4", 0),
    LZW: Codec("LZW", 1 << 12, _unlzw),
    OLD_JPEG: _JPEG,
    JPEG: _JPEG,
    DEFLATE: _INFLATE,
    32773: Codec("PackBits", 64, _unpackbits),
    32946: _INFLATE,
    33003: _JPEG_2000,
    33005: _JPEG_2000,
    34712: _JPEG_2000,
    34887: Codec("LERC", UNBOUNDED, library="Esri's library of LERC", picture=unlerc),
    34925: Codec("LZMA", 1 << 14, _unlzma, extra=False),
    34926: _ZSTD,
    34927: _WEBP,
    50000: _ZSTD,
    50001: _WEBP,
    50002: _JPEG_XL,
    50013: _INFLATE,
    52546: _JPEG_XL,
}
BY_ROWS = (CCITT_RLE, CCITT_3, CCITT_4)  # codes of rows of pixels of one bit


def check_extra(what: str, path: str) -> None:
    """Raise `MissingDependency`, with the install line, if imagecodecs is not installed."""
    try:
        is_installed = find_spec("imagecodecs") is not None
    except ValueError:
        is_installed = False
    if not is_installed:
        message = f"has {what}, which needs the package imagecodecs"
        raise MissingDependency(message, path=path, remedy=INSTALL)


def check_jpeg(data: bytes, path: str, size: tuple[int, int, int], limits: Limits) -> None:
    """Check the frame of a strip or tile of JPEG: at most these rows and columns, these samples.

    Raises `Unsupported` for a JPEG that is not decoded here, `Corrupt` for another size.
    """
    segments, _ = markers(data, path, limits.image_scans)
    frames = [(code, frame) for code in FRAMES for frame in segments.get(code, ())]
    others = segments.keys() & (OTHER_FRAMES - FRAMES.keys())
    if others or len(frames) != 1 or len(frames[0][1]) < 10:
        raise Unsupported("has a JPEG without one frame that is read", path=path, remedy=REMEDY)
    code, frame = frames[0]
    frame_size = (int.from_bytes(frame[5:7], "big"), int.from_bytes(frame[7:9], "big"), frame[9])
    scans = len(segments[SCAN])
    if frame[4] not in FRAMES[code] or 0 in frame_size or not 0 < scans <= limits.image_scans:
        what = f"has a JPEG of {frame[4]} bits, {frame_size[0]} rows and {scans} scans"
        raise Unsupported(what, path=path, remedy=REMEDY)
    if frame_size[0] > size[0] or frame_size[1] > size[1] or frame_size[2] != size[2]:
        raise Corrupt(
            "has a JPEG that is not its strip or tile", path=path,
            expected=f"at most {size[0]} × {size[1]}, of {size[2]} components", got=frame_size,
        )  # fmt: skip
    check_restarts(segments, data, path)
