r"""JPEG: one image of 8 bits, read; written only with ``--allow precision``.

Specification: ITU-T T.81 (ISO/IEC 10918-1); T.871 for JFIF; Adobe technical note 5116 for the Adobe
marker. Compared with: djpeg of libjpeg-turbo.

Reads what libjpeg-turbo in Pillow decodes (accurate integer DCT, smooth upsampling of colour): grey
as (height, width), YCbCr and RGB as (height, width, 3) RGB; uint8, index order C. JPEG decoders
differ by one or two steps in a value; this one is fixed by the version of Pillow. The orientation
in the EXIF data is kept, never applied.

Metadata, in the namespace ``image`` (see `metadata`): ``resolution icc exif xmp comment
orientation``; not written.

Refused, with djpeg as the way out: four inks (CMYK, YCCK); 12-bit, lossless, hierarchical and
arithmetic-coded JPEG; a height that only follows the pixels; more than 500 scans. Damaged are: a
second frame; files that have no end marker; sizes that the compressed bytes cannot fill. Bytes
behind the end marker, further pictures among them (MPO), are counted in a note. Damage inside the
compressed data can go unseen: the format has no checksum, and decoders guess on.

Writes: uint8 (H, W) and (H, W, 3), with ``--allow precision`` only, since no value is sure to come
back; colour in full resolution (4:4:4), ``quality`` as an option.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source, split

from .jpeg_markers import FRAMES, OTHER_FRAMES, PROGRESSIVE, SCAN, check_restarts, markers
from .plan import image_plan
from .programs import pillow_programs as programs

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAGIC = b"\xff\xd8\xff"
MAX_SIDE = 0xFFFF
# Entropy-coded blocks of 8 × 8 pixels have a bit at least in the first scan of each component.
PIXELS_PER_BYTE = 8 * 64
COEFFICIENTS_BYTES = 8  # for a pixel: libjpeg holds an image of several scans as coefficients

# One grey pixel of value 128, written by cjpeg of libjpeg-turbo.
_SAMPLE = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb00430008060607060508070707090908"
    "0a0c140d0c0b0b0c1912130f141d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c303134"
    "34341f27393d38323c2e333432ffc0000b080001000101011100ffc400140001000000000000"
    "00000000000000000000ffc40014100100000000000000000000000000000000ffda00080101"
    "00003f003fffd9"
)

FORMAT = Format(
    name="jpeg",
    title="JPEG image",
    suffixes=(".jpg", ".jpeg", ".jpe", ".jfif"),
    magic=((0, MAGIC),),
    proof=True,
    needs=(("PIL", "pillow"),),
    write_options=(Option("quality", 95, int, "1 to 100"),),
    samples={"grey_1x1.jpg": _SAMPLE},
    spec="https://www.w3.org/Graphics/JPEG/itu-t81.pdf",
    losses="every value may change, so that --allow precision is needed; only uint8",
)


def sniff(source: Source) -> int:
    """Return SURE for the first marker and the beginning of the second."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source) -> Bundle:
    """Read one lazy array of uint8, named after the stem: (height, width) or (height, width, 3)."""
    from .reader import contents, read_picture

    data = contents(source)
    frame, scan, end = _walk(data, source.path, source.limits.image_scans)
    more = COEFFICIENTS_BYTES if frame[1] == PROGRESSIVE or scan[4] < frame[9] else 0
    most = PIXELS_PER_BYTE * source.size
    return read_picture(source, "JPEG", end=end, most=most, more=more, data=data)


def _walk(data: bytes, path: str, most: int) -> tuple[bytes, bytes, int]:
    """The header of the frame, that of its first scan, and the offset of the end of the picture.

    Raises `Unsupported` for a JPEG that is not read here or has more than `most` scans, `Corrupt`
    for one that does not have exactly one frame.
    """
    segments, end = markers(data, path, most)
    frames, scans = [frame for code in FRAMES for frame in segments[code]], segments[SCAN]
    frame = (frames or [b"\0\0\0\0\x08\0\1"])[0]  # without one, only other frames are a fault
    faults = {
        "is a lossless, hierarchical or arithmetic-coded JPEG": OTHER_FRAMES & segments.keys(),
        f"is a JPEG of {frame[4]} bits": frame[4] != 8,
        "does not say its height before the pixels": frame[5:7] == b"\0\0",
        f"has more than {most} scans": len(scans) > most,
    }
    for fault in (what for what, is_so in faults.items() if is_so):
        remedy = "rewrite it first, for instance with: djpeg"
        raise Unsupported(fault, path=path, remedy=remedy)
    if len(frames) != 1 or len(frame) < 10 or not scans:
        raise Corrupt("has no pixels, or not one frame", path=path, got=f"{len(frames)} frames")
    check_restarts(segments, data[:end], path)
    return frame, scans[0], end


def plan(bundle: Bundle, *, quality: int = 95) -> Plan:
    """Plan one image of uint8, (H, W) or (H, W, 3), whose values may change.

    Raises `UsageError` for a quality that is not 1 to 100.
    """
    if not 1 <= quality <= 100:
        raise UsageError("quality is out of range", expected="1 to 100", got=quality)
    options = {"quality": quality, "subsampling": "4:4:4"}
    return image_plan(bundle, "JPEG", options, max_side=MAX_SIDE, lossy=True)
