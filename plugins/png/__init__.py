r"""PNG: one image of 1 to 4 channels and 1, 2, 4, 8 or 16 bits, read and write.

Specification: Portable Network Graphics (PNG), third edition, W3C Recommendation of 24 June 2025,
https://www.w3.org/TR/png-3/. Compared with: pypng, libpng and ImageMagick (values of the corpus);
pypng and Pillow read what is written here.

Layout::

    offset  size  type       meaning
    0       8     bytes      signature \x89PNG\r\n\x1a\n
    then, for each chunk:
    +0      4     uint32 BE  length of the payload, at most 2^31 - 1
    +4      4     ASCII      type; lower-case first letter: ancillary
    +8      n     bytes      payload
    +8+n    4     uint32 BE  CRC-32 of type and payload

    IHDR    width, height (uint32 BE, not 0), bit depth, colour type, 0, 0, interlace (0 or 1)
    PLTE    1 to 256 colours of three bytes
    IDAT    one zlib stream over all IDAT chunks: for each row a filter byte (0 to 4) and the
            samples, packed to whole bytes, 16-bit samples big-endian
    IEND    empty

Reads: all colour types and bit depths, Adam7, any number of IDAT chunks. Of an APNG the default
image, with a note, or with ``frames=all`` every image in it, composed, on a new first axis (a
default image that does not belong to the animation is image 0). Pillow is used for one thing only:
undoing the row filters. Gamma and colour profiles are never applied.

Mapping: shape (height, width) for grey, else (height, width, channels) with 2 grey+alpha, 3 RGB,
4 RGBA; index order C; uint8, or uint16 for 16 bits.

* Grey of 1, 2 and 4 bits is scaled to 0..255 (by 255, 85, 17); ``depth=native`` gives 0..2^d-1.
* Palette images become RGB, or RGBA if the tRNS chunk has a value below 255; ``palette=indices``
  gives (height, width) indices. The palette is in the metadata.
* A colour key (tRNS of grey and RGB) is in the metadata; ``trns=alpha`` makes it an alpha plane.

Metadata: only what the file has beyond the pixels, in the namespace ``png``, under lower-case chunk
names (see `metadata`). Writing puts it back. Interlacing is not kept.

Refused: a wrong checksum of a critical chunk, of tRNS or of the pixels; missing, repeated or
misplaced critical chunks; unknown critical chunks; a cut file, IEND included; pixels that inflate
to less or more than the image, filter bytes above 4, palette indices without a colour; declared
sizes that the compressed bytes cannot fill. Other ancillary chunks that break their own rules, or
whose checksum is wrong, are left out with a note, and so are bytes behind IEND or behind the zlib
stream of the pixels.

Writes: bool as 1-bit grey, uint8 as 8 bits, uint16 as 16 bits, of shape (H, W), (H, W, 1) (both
grey), (H, W, 2), (H, W, 3) and (H, W, 4). The last axis is the channels, or it is an error: the
first one is never guessed to be. A low depth or a palette in the metadata is restored if it holds
every value exactly. Other types are refused without ``--dtype`` or ``--scale``, more axes without
``--planes``.
"""

from __future__ import annotations

from raconvert.files.limits import DEFAULT, Limits
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Option,
    Source,
    split,
)

from .plan import plan
from .reader import programs
from .tables import NAME, SIGNATURE

__all__ = ["FORMAT", "plan", "programs", "read", "read_stack", "sniff", "split"]

# One grey pixel of value 0, written by pypng.
_SAMPLE = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
)

FORMAT = Format(
    name=NAME,
    title="PNG image",
    suffixes=(".png", ".apng"),
    magic=((0, SIGNATURE),),
    proof=True,
    stream=True,
    meta="some",
    index_orders="C",
    needs=(("PIL", "pillow"),),
    read_options=(
        Option("palette", "expand", ("expand", "indices"), "palette images as colours or indices"),
        Option("depth", "expand", ("expand", "native"), "grey below 8 bits as 0..255 or as is"),
        Option("trns", "keep", ("keep", "alpha"), "a colour key as metadata or as alpha plane"),
        Option("frames", "default", ("default", "all"), "of an animation one image or all"),
    ),
    write_options=(
        Option("level", 6, int, "compression level, 0 (none) to 9 (smallest)"),
        Option(
            "filter",
            "auto",
            ("auto", "none", "sub", "up", "average", "paeth", "adaptive"),
            "row filter; auto: what makes the file small",
        ),
    ),
    samples={"grey_1x1.png": _SAMPLE},
    spec="https://www.w3.org/TR/png-3/",
    losses="only bool, uint8 and uint16; 2 axes, or 3 with 1 to 4 channels; common metadata",
)


def sniff(source: Source) -> int:
    """SURE by the signature; MAYBE if a transfer in text mode may have damaged it."""
    if source.head.startswith(SIGNATURE):
        return SURE
    return MAYBE if source.head[1:4] == b"PNG" else NO


def read(
    source: Source,
    *,
    palette: str = "expand",
    depth: str = "expand",
    trns: str = "keep",
    frames: str = "default",
) -> Bundle:
    """The image as one lazy array, named after the file's stem.

    Shape (height, width[, channels]), with ``frames=all`` (images, height, width[, channels]);
    uint8 or uint16. All chunks but the pixels are checked here (`Corrupt`, `Unsupported`); the
    pixels when they are read, after a check of memory (`TooLarge`).
    """
    from .reader import read_image

    return read_image(source, frames=frames, palette=palette, depth=depth, trns=trns)


def read_stack(
    paths: list[str],
    *,
    palette: str = "expand",
    depth: str = "expand",
    trns: str = "keep",
    frames: str = "default",
    max_memory: int,
    limits: Limits = DEFAULT,
) -> Array:
    """The images of many files as one lazy array, named after the first.

    Shape (files, height, width[, channels]); uint8 or uint16. Every image must have the first
    one's shape, depth and colours (`UsageError` names both); a damaged file is named (`Corrupt`).
    Each file has the same `limits`, with `max_memory` in the place of theirs.
    """
    from .stack import read_images

    options = {"palette": palette, "depth": depth, "trns": trns}
    return read_images(paths, limits._replace(memory=max_memory), frames=frames, **options)
