r"""WebP: images and animations of 8-bit colour, read; one image written without loss.

Specification: RFC 9649, WebP Image Format. Compared with: dwebp, cwebp, webpmux and img2webp of
libwebp.

Reads, with Pillow: lossy images as libwebp decodes them, lossless ones exactly; animations as
libwebp composes them on a transparent canvas.

Mapping: shape (height, width, 3) RGB, or (height, width, 4) RGBA where the file declares alpha;
uint8, index order C. An animation is (frames, height, width, channels), without the axis of frames
for one (see `frames`); it has 4 channels also where a frame may leave pixels of the canvas unset.

Metadata: durations as the axis of time, and in the namespace ``image`` (see `metadata`) ``icc exif
xmp orientation durations loop``; not written. The background colour of an animation is left out.

Refused: cut files; frames outside the canvas; images above ``--max-memory``, and frames that are
together above it, a thousand times the file.

Writes: uint8 (H, W, 3), lossless. WebP has no greyscale. Alpha is refused, since libwebp would drop
one that is 255 everywhere. Two or more frames along an axis of time, (T, H, W, 3) or (T, H, W, 4),
become an animation of whole frames without loss, each there as often as it was, with their
durations in whole milliseconds and ``loop``; so do frames along any other axis if ``duration`` says
how many milliseconds each takes, else they are refused (``--planes``).
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.plugin import NO, SURE, Bundle, Format, Plan, Source, split

from .plan import COLOR, DURATION, RGBA, frames_plan, image_plan
from .programs import pillow_programs as programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array, Target

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAX_SIDE = 16383
DURATIONS = range(1 << 24)  # durations that a frame can have, in milliseconds
ANIMATED = 2  # bit of the flags of a VP8X chunk
CANVASES_BYTES = 8  # for a pixel: two canvases of libwebp

# One red pixel; written by cwebp -lossless.
_SAMPLE = bytes.fromhex("524946461c000000574542505650384c0f0000002f000000000710fd8ffe0722a2ff0100")

FORMAT = Format(
    name="webp",
    title="WebP image",
    suffixes=(".webp",),
    magic=((8, b"WEBP"),),
    meta="some",
    write_options=(DURATION,),
    needs=(("PIL", "pillow"),),
    samples={"red_1x1.webp": _SAMPLE},
    spec="https://www.rfc-editor.org/rfc/rfc9649",
    losses="written: only uint8, (H, W, 3) or frames (T, H, W, 3 or 4); of metadata their times",
)


def sniff(source: Source) -> int:
    """Return SURE for RIFF at the start and WEBPVP8 at byte 8."""
    head = source.head
    return SURE if head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8" else NO


def read(source: Source) -> Bundle:
    """Read one lazy array of uint8, named after the file's stem: see the mapping."""
    from .reader import read_picture

    end = 8 + int.from_bytes(source.read_exact(4, 4, "the RIFF header"), "little")
    if source.head[:4] != b"RIFF" or source.head[8:12] != b"WEBP" or end > source.size:
        raise Corrupt("is cut off or does not begin as a WebP file", path=source.path)
    if source.head[12:16] == b"VP8X" and source.read_exact(20, 1, "the canvas")[0] & ANIMATED:
        from .webp_frames import read_frames

        return read_frames(source, end)
    return read_picture(source, "WEBP", end=end, more=CANVASES_BYTES)


def plan(bundle: Bundle, *, duration: int = -1) -> Plan:
    """Plan one lossless image of uint8, (H, W, 3), or an animation, (T, H, W, 3 or 4)."""

    def write_frames(array: Array, durations: list[int], target: Target) -> None:
        from .webp_writer import write_frames

        write_frames(array, durations, target)

    animation = frames_plan(
        bundle, "WebP", write_frames, channels=(3, 4), max_side=MAX_SIDE, durations=DURATIONS,
        duration=duration,
    )  # fmt: skip
    if animation is not None:
        return animation
    return image_plan(
        bundle, "WebP", {"lossless": True}, max_side=MAX_SIDE, forms=(COLOR,), frames=(COLOR, RGBA)
    )
