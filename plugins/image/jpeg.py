r"""JPEG: one image of 8 bits, read; written only with ``--allow precision``.

Specification: ITU-T T.81 (ISO/IEC 10918-1); T.871 for JFIF; Adobe technical note 5116 for the Adobe
marker. Compared with: djpeg of libjpeg-turbo.

Reads what libjpeg-turbo in Pillow decodes (accurate integer DCT, smooth upsampling of colour): grey
as (height, width), YCbCr and RGB as (height, width, 3) **RGB**, CMYK and YCCK as (height, width, 4)
**CMYK** with a note, as they are: four inks are never turned into RGB here, and inks that Adobe
stores inverted come out as ink (0: no ink). uint8, index order C. JPEG decoders differ by one or
two steps in a value; this one is fixed by the version of Pillow. Of a file with more pictures (MPO)
the first, with a note. The orientation in the EXIF data is kept and never applied.

Metadata, in the namespace ``image`` (see `metadata`): ``resolution icc exif xmp comment
orientation``, ``color: CMYK``.

Refused: 12-bit and lossless JPEG; more than 500 scans; files that have no end marker; sizes that
the compressed bytes cannot fill. Damage inside the compressed data can go unseen: the format has no
checksum, and decoders guess on.

Writes: uint8 (H, W) and (H, W, 3), with ``--allow precision`` only, since no value is sure to come
back; ``quality`` and ``subsampling`` as options. The resolution goes along in whole dots per inch.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.plugin import NO, SURE, Bundle, Format, Option, Plan, Source

from .metadata import embedded, fields_of, part, resolution_in
from .plan import image_plan, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAGIC = b"\xff\xd8\xff"
MAX_SIDE = 0xFFFF
# Entropy-coded blocks of 8 × 8 pixels have a bit at least in the first scan of each component.
PIXELS_PER_BYTE = 8 * 64
# Encoders make about ten; each one passes over the whole image, however short it is.
MAX_SCANS = 500
BASELINE, ARITHMETIC = 0xC0, (0xC9, 0xCA)
FRAMES = (BASELINE, 0xC1, 0xC2, *ARITHMETIC)
OTHER_FRAMES = (0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF)  # lossless, hierarchical
COEFFICIENTS_BYTES = 8  # of a pixel: all but baseline images are kept as coefficients

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
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    write_options=(
        Option("quality", 95, int, "1 to 100"),
        Option("subsampling", "4:4:4", ("4:4:4", "4:2:2", "4:2:0"), "of the colour"),
    ),
    samples={"grey_1x1.jpg": _SAMPLE},
    spec="https://www.w3.org/Graphics/JPEG/itu-t81.pdf",
    losses="every value may change, so that --allow precision is needed; only uint8",
)


def sniff(source: Source) -> int:
    """Sure by the first marker and the beginning of the second."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source) -> Bundle:
    """One lazy array, named after the file's stem.

    Shape (height, width), (height, width, 3) RGB or (height, width, 4) CMYK; uint8. The markers
    are read here, the pixels are decoded when they are asked for.
    """
    from .reader import read_picture

    process, height, width = _frame(source)
    _check_scans(source, process)
    pixels = width * height
    if process not in ARITHMETIC and pixels > PIXELS_PER_BYTE * source.size:
        raise Corrupt(
            "declares more pixels than its compressed bytes can hold",
            path=source.path, got=f"{width} × {height} in {source.size} bytes",
        )  # fmt: skip
    more = 0 if process == BASELINE else COEFFICIENTS_BYTES
    return read_picture(source, "JPEG", more=more)


def _frame(source: Source) -> tuple[int, int, int]:
    """The marker of the first frame, and its height and width."""
    at, code, found = 2, 0, b""
    while code not in FRAMES:
        found = source.read_exact(at, 9, "its JPEG markers")
        code = found[1]
        if found[0] != 0xFF or code == 0xDA:
            raise Corrupt("has no frame before its pixels", path=source.path, where=f"byte {at}")
        if code in OTHER_FRAMES:
            raise Unsupported("is a lossless or hierarchical JPEG", path=source.path)
        standalone = code in (0x01, 0xFF) or 0xD0 <= code <= 0xD8
        at += (1 + (code != 0xFF)) if standalone else 2 + int.from_bytes(found[2:4], "big")
    if found[4] != 8:
        raise Unsupported(f"is a JPEG of {found[4]} bits", path=source.path, expected="8 bits")
    height, width = int.from_bytes(found[5:7], "big"), int.from_bytes(found[7:9], "big")
    if not height:
        raise Unsupported("does not say its height before the pixels", path=source.path)
    return code, height, width


def _check_scans(source: Source, process: int) -> None:
    """There is an end marker, and not too many scans.

    Compressed data cannot look like a marker; what comes behind the end, such as previews, can.
    """
    scans, last, ended = 0, b"", False
    with source.open() as file:
        while piece := file.read(1 << 20):
            piece, last = last + piece, piece[-1:]
            scans += piece.count(b"\xff\xda")
            ended |= b"\xff\xd9" in piece
    if not ended:
        raise Corrupt("is cut off: it has no end marker", path=source.path)
    if scans > MAX_SCANS and process != BASELINE:
        raise Unsupported("has too many scans", path=source.path, expected=f"at most {MAX_SCANS}")


def plan(bundle: Bundle, *, quality: int = 95, subsampling: str = "4:4:4") -> Plan:
    """One image of uint8, (H, W) or (H, W, 3), whatever becomes of its values."""
    if not 1 <= quality <= 100:
        raise UsageError("there is no such quality", expected="1 to 100", got=quality)

    def encode(values: Any, _: Target) -> bytes:
        from .writer import encoded

        fields = fields_of(bundle.arrays[0])
        options = {
            "quality": quality,
            "subsampling": subsampling if values.ndim == 3 else None,
            "comment": (part(fields, "comment", str) or "").encode(),
            "dpi": resolution_in(fields, "inch"),
        }
        options = {name: value for name, value in options.items() if value}
        return encoded(values, ".jpg", **options, **embedded(fields))

    kept = {"icc", "exif", "xmp", "comment", "orientation"}
    held: Any = {"channels": (3,), "max_side": MAX_SIDE, "lossy": True}
    return image_plan(bundle, "JPEG", encode, kept=kept, unit="inch", **held)
