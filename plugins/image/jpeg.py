r"""JPEG: one image of 8 bits, read; written only with ``--allow precision``.

Specification: ITU-T T.81 (ISO/IEC 10918-1); T.871 for JFIF; Adobe technical note 5116 for the Adobe
marker. Compared with: djpeg of libjpeg-turbo.

Reads, through imageio with Pillow pinned: what libjpeg-turbo in Pillow decodes (accurate integer
DCT, smooth upsampling of colour): grey as (height, width), YCbCr and RGB as (height, width, 3)
**RGB**, CMYK and YCCK as (height, width, 4) **CMYK** with a note, as they are: four inks are never
turned into RGB here, and inks that Adobe stores inverted come out as ink (0 is no ink). uint8,
index order C. JPEG decoders differ by one or two steps in a value; this one is fixed by the version
of Pillow. Of a file with more pictures (MPO) the first, with a note. The orientation in the EXIF
data is kept and never applied.

Metadata, in the namespace ``image`` (see `metadata`): ``resolution icc exif xmp comment
orientation``, ``color: CMYK``.

Refused: 12-bit and lossless JPEG; more than 500 scans; files that have no end marker; sizes that
the compressed bytes cannot fill. Damage inside the compressed data can go unseen: the format has no
checksum, and decoders guess on.

Writes: uint8 (H, W) and (H, W, 3), with ``--allow precision`` only, since no value is sure to come
back; ``quality`` and ``subsampling`` as options.
"""

from __future__ import annotations

from struct import Struct

from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.plugin import NO, SURE, Bundle, Fit, Format, Option, Source, refused

from .metadata import (
    EXIF,
    exif_orientation,
    fields_of,
    image_bundle,
    metadata_fits,
    part,
    whole_resolution,
)
from .plan import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGIC = b"\xff\xd8\xff"
WHAT = "the JPEG image"
MAX_SIDE = 0xFFFF
# Entropy-coded blocks of 8 × 8 pixels have a bit at least in the first scan of each component.
PIXELS_PER_BYTE = 8 * 64
# Encoders make about ten; each one passes over the whole image, however short it is.
MAX_SCANS = 500
UNITS = ("none", "inch", "cm")
_MODES = {"L": 1, "RGB": 3, "CMYK": 4}
_DENSITY = Struct(">BHH")  # at byte 13 of a JFIF file: unit, x, y
# A TIFF directory of one tag, the orientation; its value follows.
_ORIENTATION = bytes.fromhex("49492a0008000000 0100 1201 0300 01000000")

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
    """Return the image as one lazy array, named after the file's stem.

    Shape (height, width), (height, width, 3) RGB or (height, width, 4) CMYK; uint8. The markers
    are read here, the pixels are decoded when they are asked for.
    """
    from PIL import Image

    from .reader import UNLIMITED, check_need, guarded, pillow_images

    process = _frame(source)
    with (
        source.open() as file,
        guarded(source.path, WHAT, UNLIMITED),
        Image.open(file, formats=("JPEG", "MPO")) as opened,
    ):
        mode, (width, height) = opened.mode, opened.size
        fields, pictures = _fields(opened.info), getattr(opened, "n_frames", 1)
    if mode not in _MODES or min(width, height) < 1:
        raise Unsupported("has an odd number of components or no size", path=source.path)
    channels = _MODES[mode]
    if process not in (0xC9, 0xCA) and width * height > PIXELS_PER_BYTE * source.size:
        raise Corrupt(
            "declares more pixels than its compressed bytes can hold",
            path=source.path, got=f"{width} × {height} in {source.size} bytes",
        )  # fmt: skip
    # Of all but baseline images the coefficients are kept.
    check_need(source, height * width, channels, 2 * channels * (process != 0xC0))
    notes = []
    if mode == "CMYK":
        fields["color"] = "CMYK"
        notes.append("the four channels are inks (CMYK), not RGB with alpha")
    if pictures > 1:
        notes.append("there are more pictures in this file (MPO); only the first is read")
    shape = (height, width) + (channels,) * (channels > 1)
    return image_bundle(source, "uint", shape, fields, pillow_images(source, WHAT, shape), notes)


def _frame(source: Source) -> int:
    """The marker of the frame, checked; the file must have an end marker, and not too many scans.

    Compressed data cannot look like a marker; what comes behind the end, such as previews, can.
    """
    at, found = 2, b""
    while found[1:2] not in (b"\xc0", b"\xc1", b"\xc2", b"\xc9", b"\xca"):
        found = source.read_exact(at, 9, "its JPEG markers")
        code = found[1]
        if found[0] != 0xFF or code == 0xDA:
            raise Corrupt("has no frame before its pixels", path=source.path, where=f"byte {at}")
        if 0xC0 <= code <= 0xCF and code not in (0xC0, 0xC1, 0xC2, 0xC4, 0xC8, 0xC9, 0xCA, 0xCC):
            raise Unsupported("is a lossless or hierarchical JPEG", path=source.path)
        standalone = code in (0x01, 0xFF) or 0xD0 <= code <= 0xD8
        at += (1 + (code != 0xFF)) if standalone else 2 + int.from_bytes(found[2:4], "big")
    if found[4] != 8:
        raise Unsupported(f"is a JPEG of {found[4]} bits", path=source.path, expected="8 bits")
    if found[5:7] == b"\0\0":
        raise Unsupported("does not say its height before the pixels", path=source.path)
    scans, last, ended = 0, b"", False
    with source.open() as file:
        while piece := file.read(1 << 20):
            piece, last = last + piece, piece[-1:]
            scans += piece.count(b"\xff\xda")
            ended |= b"\xff\xd9" in piece
    if not ended:
        raise Corrupt("is cut off: it has no end marker", path=source.path)
    if scans > MAX_SCANS and found[1] != 0xC0:
        raise Unsupported("has too many scans", path=source.path, expected=f"at most {MAX_SCANS}")
    return found[1]


def _fields(info: dict[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    unit, density = info.get("jfif_unit", 3), info.get("jfif_density", (0, 0))
    if unit < len(UNITS) and (unit or density not in ((0, 0), (1, 1))):
        fields["resolution"] = [*density, UNITS[unit]]
    if exif := info.get("exif", b"").removeprefix(EXIF):
        fields["exif"] = exif
        if orientation := exif_orientation(exif):
            fields["orientation"] = orientation
    for name, field in (("icc_profile", "icc"), ("xmp", "xmp")):
        if info.get(name):
            fields[field] = info[name]
    if comment := info.get("comment"):
        fields["comment"] = comment.rstrip(b"\0").decode("utf-8", "replace")
    return fields


# ------------------------------------------------------------------------------------- writing

_KEPT = frozenset({"resolution", "icc", "exif", "xmp", "comment", "orientation"})


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what JPEG would change or cannot hold: the values, whatever they are."""
    found = []
    for array in bundle.arrays:
        own = image_fits(array, "JPEG", channels=(3,), max_side=MAX_SIDE)
        reason = "JPEG keeps no value exactly; PNG, TIFF and WebP do"
        found += own or [refused(array.name, "precision", reason, "--allow precision")]
    return found + metadata_fits(bundle, "JPEG", _KEPT)


def write(bundle: Bundle, target: Target, *, quality: int = 95, subsampling: str = "4:4:4") -> None:
    """Write the one array of the bundle, with losses; the image is in memory as a whole."""
    from .writer import encoded, write_image

    if not 1 <= quality <= 100:
        raise UsageError("there is no such quality", expected="1 to 100", got=quality)
    fields = fields_of(bundle.arrays[0])

    def pieces(values: np.ndarray[Any, Any]) -> list[bytes]:
        options = {"subsampling": subsampling} if values.ndim == 3 else {}
        data = encoded(values, ".jpg", quality=quality, **options, **_kept(fields))
        resolution = whole_resolution(fields, UNITS, MAX_SIDE)
        if resolution and data[2:4] == b"\xff\xe0":  # the JFIF header (T.871, 10.1)
            data = data[:13] + _DENSITY.pack(*resolution) + data[18:]
        return [data]

    write_image(bundle, target, pieces)


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    """Pillow's options for the metadata that goes along."""
    options: dict[str, Any] = {}
    for field, option in (("icc", "icc_profile"), ("xmp", "xmp")):
        if value := part(fields, field, bytes):
            options[option] = value
    exif, orientation = part(fields, "exif", bytes), part(fields, "orientation", int)
    if not exif and orientation in range(1, 9):
        exif = _ORIENTATION + bytes([orientation]) + bytes(7)
    if exif:
        options["exif"] = EXIF + exif
    if comment := part(fields, "comment", str):
        options["comment"] = comment.encode()
    return options
