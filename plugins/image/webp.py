r"""WebP: an image or an animation of 8-bit colour, read; images written without loss.

Specification: RFC 9649, WebP Image Format. Compared with: dwebp and cwebp of libwebp.

Layout, a RIFF file, little-endian: ``RIFF``, the number of bytes that follow, ``WEBP``, then chunks
of four letters, length, payload, padded to an even length: ``VP8 `` lossy, ``VP8L`` lossless, or
``VP8X`` (flags, 24-bit width - 1 and height - 1) and then ``ICCP``, ``ANIM``, ``ANMF`` for each
frame, ``ALPH``, ``EXIF``, ``XMP ``.

Reads, through imageio with Pillow (libwebp) pinned: lossy images as libwebp decodes them, lossless
ones exactly. Frames of an animation as the viewer sees them, composed by libwebp.

Mapping: shape (height, width, 3) RGB, or (height, width, 4) RGBA where the file declares alpha;
animations of more than one frame have a first axis for the frames; uint8, index order C.

Metadata, in the namespace ``image`` (see `metadata`): ``icc exif xmp orientation``; for animations
``loop`` (0: for ever) and ``durations`` (milliseconds, one for each frame).

Refused: cut files; images above ``--max-memory``, and animations above it that are more than a
thousand times the file.

Writes: uint8 (H, W, 3) and (H, W, 4), lossless and exact, the colours of transparent pixels
included; alpha that is 255 everywhere would be dropped by the format, and comes back as RGB: such
an array is refused while writing. There is no grey in WebP: (H, W) is refused. Stacks are written
with ``--planes``: an animation merges equal frames.
"""

from __future__ import annotations

from math import prod
from struct import Struct

from raconvert.errors import Corrupt, Unsupported, UsageError, WouldLose
from raconvert.files.source import read_up_to
from raconvert.plugin import NO, SURE, Bundle, Fit, Format, Option, Source

from .metadata import EXIF, exif_orientation, fields_of, image_bundle, metadata_fits, part
from .plan import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

WHAT = "the WebP image"
MAX_SIDE = 16383
MAX_METADATA_BYTES = 64 << 20
CANVASES_BYTES = 16  # of a pixel: two canvases of libwebp, and what Pillow copies of them
_CHUNK = Struct("<4sI")
_ALPHA = 0x10  # flag of VP8X
_KEPT = {b"ICCP": "icc", b"EXIF": "exif", b"XMP ": "xmp"}

# One red pixel; written by cwebp -lossless.
_SAMPLE = bytes.fromhex("524946461c000000574542505650384c0f0000002f000000000710fd8ffe0722a2ff0100")

FORMAT = Format(
    name="webp",
    title="WebP image",
    suffixes=(".webp",),
    magic=((8, b"WEBP"),),
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    write_options=(Option("effort", 4, int, "0 (fast) to 6 (small)"),),
    samples={"red_1x1.webp": _SAMPLE},
    spec="https://www.rfc-editor.org/rfc/rfc9649",
    losses="only uint8 of shape (H, W, 3) or (H, W, 4); common metadata",
)


def sniff(source: Source) -> int:
    """Sure by RIFF at the start and WEBP at byte 8."""
    head = source.head
    return SURE if head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8" else NO


def read(source: Source) -> Bundle:
    """Return the image or the frames as one lazy array, named after the file's stem.

    Shape (height, width, 3 or 4), with more than one frame (frames, height, width, 3 or 4);
    uint8. The chunks are checked here, the pixels are decoded when they are asked for.
    """
    from .reader import check_need, check_total, pillow_images

    width, height, channels, frames, fields = _scan(source)
    check_need(source, height * width, channels, CANVASES_BYTES if frames > 1 else 0)
    shape = (frames,) * (frames > 1) + (height, width, channels)
    if frames > 1:
        check_total(source, prod(shape))
    mode = "RGBA" if channels == 4 else "RGB"
    images = pillow_images(source, WHAT, shape, mode, frames)
    behind = source.size - 8 - int.from_bytes(source.head[4:8], "little")
    notes = [f"{behind} bytes after the end of the WebP were ignored"] * (behind > 0)
    return image_bundle(source, "uint", shape, fields, images, notes)


def _scan(source: Source) -> tuple[int, int, int, int, dict[str, Any]]:
    """Width, height, channels, number of frames and metadata, from the chunks.

    Pillow would make the canvases of an animation before it tells how large they are.
    """
    end = 8 + int.from_bytes(source.read_exact(4, 4, "the RIFF header"), "little")
    if source.head[:4] != b"RIFF" or source.head[8:12] != b"WEBP" or end > source.size:
        raise Corrupt("is cut off or does not begin as a WebP file", path=source.path)
    fields: dict[str, Any] = {}
    durations: list[int] = []
    size: tuple[int, int, int] | None = None
    pixels = False
    for name, at, nbytes, head in _chunks(source, end):
        size = size or _size(source, name, head)
        pixels |= name in (b"VP8 ", b"VP8L", b"ANMF")
        if name == b"ANMF":
            durations.append(int.from_bytes(head[12:15], "little"))
        elif name == b"ANIM":
            fields["loop"] = int.from_bytes(head[4:6], "little")
        elif name in _KEPT and _KEPT[name] not in fields:
            if nbytes > MAX_METADATA_BYTES:
                raise Unsupported("has more than 64 MiB of metadata", path=source.path)
            fields[_KEPT[name]] = source.read_exact(at, nbytes, "the metadata")
    if size is None or not pixels:
        raise Corrupt("has no image", path=source.path)
    if len(durations) > 1:
        fields["durations"] = durations
    else:
        fields.pop("loop", None)
    if orientation := exif_orientation(fields.get("exif", b"").removeprefix(EXIF)):
        fields["orientation"] = orientation
    return (*size, max(1, len(durations)), fields)


def _chunks(source: Source, end: int) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Yield name, place, length and first bytes of every chunk."""
    at = 12
    with source.open() as file:
        while at + _CHUNK.size <= end:
            file.seek(at)
            name, nbytes = _CHUNK.unpack(read_up_to(file, _CHUNK.size))
            place = at + _CHUNK.size
            if place + nbytes > end:
                raise Corrupt("chunk is longer than the file", path=source.path, where=f"byte {at}")
            yield name, place, nbytes, read_up_to(file, min(nbytes, 30))
            at = place + nbytes + nbytes % 2


def _size(source: Source, name: bytes, head: bytes) -> tuple[int, int, int]:
    """Width, height and channels as the first chunk says them (RFC 9649, 2.5 to 2.7)."""
    if name == b"VP8X" and len(head) >= 10:
        width, height = (1 + int.from_bytes(head[at : at + 3], "little") for at in (4, 7))
        return width, height, 4 if head[0] & _ALPHA else 3
    if name == b"VP8L" and len(head) >= 5 and head[0] == 0x2F:
        bits = int.from_bytes(head[1:5], "little")
        return 1 + (bits & MAX_SIDE), 1 + (bits >> 14 & MAX_SIDE), 4 if bits >> 28 & 1 else 3
    if name == b"VP8 " and len(head) >= 10 and head[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(head[at : at + 2], "little") & MAX_SIDE for at in (6, 8))
        if width and height:
            return width, height, 3
    raise Corrupt("first chunk is damaged or unknown", path=source.path, where="byte 12")


# ------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what WebP would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        found += image_fits(array, "WebP", channels=(3, 4), grey=False, max_side=MAX_SIDE)
    kept = frozenset({"icc", "exif", "xmp", "orientation"})
    return found + metadata_fits(bundle, "WebP", kept)


def write(bundle: Bundle, target: Target, *, effort: int = 4) -> None:
    """Write the one array of the bundle, lossless; the image is in memory as a whole."""
    from .writer import encoded, write_image

    if not 0 <= effort <= 6:
        raise UsageError("there is no such effort", expected="0 to 6", got=effort)
    array = bundle.arrays[0]
    fields = fields_of(array)
    options = {f: v for f in ("exif", "xmp") if (v := part(fields, f, bytes))}
    if profile := part(fields, "icc", bytes):
        options["icc_profile"] = profile

    def pieces(values: np.ndarray[Any, Any]) -> list[bytes]:
        if values.shape[2] == 4 and (values[..., 3] == 255).all():
            raise WouldLose(
                f"alpha of array '{array.name}' is 255 everywhere, and WebP would drop it",
                path=target.path,
                remedy="leave the alpha out first; PNG and TIFF hold it",
            )
        return [encoded(values, ".webp", lossless=True, exact=True, method=effort, **options)]

    write_image(bundle, target, pieces)
