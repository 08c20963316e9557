r"""GIF: images and animations of at most 256 colours a frame, read; one image written in grey.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm, gifsicle,
ImageMagick.

Reads: the blocks are checked here, and the frames composed; Pillow gets one frame at a time, and
decodes the LZW data.

Mapping: uint8, index order C. A file of one frame that fills its screen is RGB (height, width, 3),
or RGBA where the frame has a transparent colour; grey (height, width) where the palette is the grey
values in order, (0,0,0), (1,1,1), …. Any other is composed (see `frames`): (frames, height, width,
3), or (height, width, 3) for one frame; 4 channels if there may be pixels that no frame has set,
which are 0 and transparent, as browsers have them, whatever background colour the file names.

Metadata: durations as the axis of time, and in the namespace ``image`` ``durations loop``.
Comments, text and data of applications are left out, with a note.

Refused: a frame that is not inside its screen; disposal methods that GIF does not define; cut
files, the end block included; sizes that the compressed bytes cannot fill; screens above
``--max-memory``, and frames that are together above it, a thousand times the file.

Writes: uint8 grey (H, W). Two or more frames of RGB along an axis of time, (T, H, W, 3), become an
animation of whole frames, each with a palette of its own, with ``loop`` and durations that are
hundredths of a second, or that of ``duration`` where the array has no such axis; a frame of more
than 256 colours is an error. Any other colour is refused: nothing is ever quantised.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Plan, Source, split

from .plan import COLOR, DURATION, GREY, frames_plan, image_plan
from .programs import pillow_programs as programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array, Target

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGICS = (b"GIF87a", b"GIF89a")
MAX_SIDE = 0xFFFF
DURATIONS = range(0, 655360, 10)  # durations that a frame can have, in milliseconds

# One grey pixel; written by netpbm's pamtogif.
_SAMPLE = bytes.fromhex("474946383761010001008000008080800000002c00000000010001000002024401003b")

FORMAT = Format(
    name="gif",
    title="GIF image",
    suffixes=(".gif",),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    needs=(("PIL", "pillow"),),
    samples={"grey_1x1.gif": _SAMPLE},
    spec="https://www.w3.org/Graphics/GIF/spec-gif89a.txt",
    meta="some",
    write_options=(DURATION,),
    losses="written: uint8, (H, W) or frames (T, H, W, 3) of 256 colours; of metadata their times",
)


def sniff(source: Source) -> int:
    """Return SURE for the magic ``GIF87a`` or ``GIF89a``."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source) -> Bundle:
    """Read one lazy array of uint8, named after the file's stem: see the mapping."""
    from .gif_frames import PIXELS_PER_BYTE, blocks_of, read_frames
    from .reader import read_picture

    screen, frames, end, left_out, loop = blocks_of(source)
    notes = [f"{left_out} blocks (comments, text, applications) are left out"] if left_out else []
    first = frames[0]
    if len(frames) > 1 or not first.fills:
        return read_frames(source, screen, frames, end=end + 1, loop=loop, notes=notes)
    spans = [(0, screen), first.control, (first.start, first.stop - first.start), (end, 1)]
    most = PIXELS_PER_BYTE * (first.stop - first.first)
    return read_picture(source, "GIF", end=end + 1, notes=notes, spans=spans, most=most)


def plan(bundle: Bundle, *, duration: int = -1) -> Plan:
    """Plan one image of uint8, grey, (H, W), or an animation, (T, H, W, 3), of few colours."""

    def write_frames(array: Array, durations: list[int], target: Target) -> None:
        from .gif_writer import write_frames

        write_frames(array, durations, target)

    animation = frames_plan(
        bundle, "GIF", write_frames, channels=(3,), max_side=MAX_SIDE, durations=DURATIONS,
        duration=duration,
    )  # fmt: skip
    if animation is not None:
        return animation
    options = {"optimize": False, "interlace": 0}
    return image_plan(bundle, "GIF", options, max_side=MAX_SIDE, forms=(GREY,), frames=(COLOR,))
