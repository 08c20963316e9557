"""Small images that begin and end alike: a decoder of their pixels alone (`Bundle.alike`)."""

from __future__ import annotations

from raconvert.arrays.bundle import Alike
from raconvert.errors import MissingDependency
from raconvert.files.inflate import inflater

from . import engine
from .pixels import BadFilter, Expansion, need_of, unfilter_images, unpack
from .tables import CHUNK_HEAD, CHUNK_OVERHEAD, CRC, PALETTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.plugin import Source

    from .header import Header, Png

MOST_BYTES = 1 << 20  # filtered rows of an image


def alike_of(source: Source, png: Png, options: dict[str, str]) -> Alike | None:
    """The decoder for files that differ from this one in nothing but one IDAT chunk.

    None if the pixels are not rows of whole samples, or the file is more than them.
    """
    header, size = png.header, source.size
    simple = header.bit_depth >= 8 and header.color_type != PALETTE and not header.interlace
    if not simple or png.trns is not None or png.frames or png.notes or len(png.idat) != 1:
        return None
    need = need_of(header, Expansion(png, **options))
    if header.stream_bytes > MOST_BYTES or need > source.max_memory:
        return None
    offset, nbytes, _ = png.idat[0]
    stop = offset + nbytes + CRC.size
    begin, end = source.read_at(0, offset - CHUNK_HEAD.size), source.read_at(stop, size - stop)
    return Alike(begin, end, decoder(header))


def decoder(header: Header) -> Callable[[bytes], bytes | None]:
    """A function from an IDAT chunk to its samples, or to None if anything about it is unusual."""
    inflate = inflater(header.stream_bytes, strict=True)
    (rows,) = header.passes()

    def decode(chunk: bytes) -> bytes | None:
        nbytes = len(chunk) - CHUNK_OVERHEAD
        if nbytes < 0 or chunk[: CHUNK_HEAD.size] != CHUNK_HEAD.pack(nbytes, b"IDAT"):
            return None
        if engine.crc32(chunk[4 : -CRC.size]) != CRC.unpack_from(chunk, len(chunk) - CRC.size)[0]:
            return None
        try:
            stream = inflate(chunk[CHUNK_HEAD.size : -CRC.size])
            if len(stream) != header.stream_bytes:
                return None
            samples = unfilter_images([stream], 0, rows, header.pixel_bytes)
        except (ValueError, BadFilter, MissingDependency):
            return None
        return unpack(samples, header, rows.width).tobytes()

    return decode
