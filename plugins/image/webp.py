r"""WebP: one image of 8-bit colour, read; written without loss.

Specification: RFC 9649, WebP Image Format. Compared with: dwebp and cwebp of libwebp.

Reads, with Pillow: lossy images as libwebp decodes them, lossless ones exactly.

Mapping: shape (height, width, 3) RGB, or (height, width, 4) RGBA where the file declares alpha;
uint8, index order C.

Metadata, in the namespace ``image`` (see `metadata`): ``icc exif xmp orientation``.

Refused: animations, of which a decoder composes the frames; cut files; images above
``--max-memory``.

Writes: uint8 (H, W, 3) and (H, W, 4), lossless and exact, the colours of transparent pixels
included; alpha that is 255 everywhere would be dropped by the format, and comes back as RGB: such
an array is refused while writing. There is no grey in WebP: (H, W) is refused.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, UsageError, WouldLose
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source, trailing_note

from .metadata import embedded, fields_of
from .plan import image_plan, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAX_SIDE = 16383
CANVASES_BYTES = 8  # of a pixel: two canvases of libwebp

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
    losses="only uint8 of shape (H, W, 3) or (H, W, 4); common metadata; no animations",
)


def sniff(source: Source) -> int:
    """Sure by RIFF at the start and WEBP at byte 8."""
    head = source.head
    return SURE if head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8" else NO


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem: (height, width, 3 or 4), uint8."""
    from .reader import read_picture

    end = 8 + int.from_bytes(source.read_exact(4, 4, "the RIFF header"), "little")
    if source.head[:4] != b"RIFF" or source.head[8:12] != b"WEBP" or end > source.size:
        raise Corrupt("is cut off or does not begin as a WebP file", path=source.path)
    behind = source.size - end
    notes = [trailing_note(behind, "the end of the WebP")] if behind else []
    return read_picture(source, "WEBP", notes=notes, more=CANVASES_BYTES)


def plan(bundle: Bundle, *, effort: int = 4) -> Plan:
    """One image of uint8, (H, W, 3) or (H, W, 4), lossless."""
    if not 0 <= effort <= 6:
        raise UsageError("there is no such effort", expected="0 to 6", got=effort)
    array = bundle.arrays[0]

    def encode(values: Any, target: Target) -> bytes:
        from .writer import encoded

        if values.shape[2] == 4 and (values[..., 3] == 255).all():
            raise WouldLose(
                f"alpha of array '{array.name}' is 255 everywhere, and WebP would drop it",
                path=target.path,
                remedy="leave the alpha out first; PNG and TIFF hold it",
            )
        options = embedded(fields_of(array))
        return encoded(values, ".webp", lossless=True, exact=True, method=effort, **options)

    kept = {"icc", "exif", "xmp", "orientation"}
    held: Any = {"channels": (3, 4), "grey": False, "max_side": MAX_SIDE}
    return image_plan(bundle, "WebP", encode, kept=kept, **held)
