r"""JPEG: one image of 8 bits, read; written only with ``--allow precision``.

Specification: ITU-T T.81 (ISO/IEC 10918-1), markers in annex B; T.871 for JFIF; Adobe technical
note 5116 for the Adobe marker. Compared with: djpeg of libjpeg-turbo.

Layout: markers ``FF xx``, most of them followed by a big-endian length that includes itself::

    FFD8  start of image
    FFE0  APP0: "JFIF\0", version, density unit (0 none, 1 inch, 2 cm), x and y density
    FFE1  APP1: "Exif\0\0" and a TIFF, or the URL of XMP and its text
    FFE2  APP2: "ICC_PROFILE\0", number, count, a piece of the colour profile
    FFEE  APP14: "Adobe", ... transform (0 RGB or CMYK, 1 YCbCr, 2 YCCK)
    FFFE  comment
    FFCn  start of frame: precision, height, width, components (baseline, progressive, ...)
    FFDA  start of scan: compressed data follow
    FFD9  end of image

Reads, through imageio with Pillow pinned: what libjpeg-turbo in Pillow decodes (accurate integer
DCT, smooth upsampling of colour): grey as (height, width), YCbCr and RGB as (height, width, 3)
**RGB**, CMYK and YCCK as (height, width, 4) **CMYK** with a note, as they are: four inks are never
turned into RGB here, and inks that Adobe stores inverted come out as ink (0 is no ink). uint8,
index order C. JPEG decoders differ by one or two steps in a value; this one is fixed by the version
of Pillow. Of a file with more pictures (MPO) the first, with a note. The orientation in the EXIF
data is kept and never applied.

Metadata, in the namespace ``image`` (see `meta`): ``resolution icc exif xmp comment orientation``,
``color: CMYK``.

Refused: 12-bit and lossless JPEG; more than 500 scans; files that end before their last marker;
sizes that the compressed bytes cannot fill. Damage inside the compressed data can go unseen: the
format has no checksum, and decoders guess on.

Writes: uint8 (H, W) and (H, W, 3), with ``--allow precision`` only, since no value is sure to come
back; ``quality`` and ``subsampling`` as options.
"""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

from raconvert.errors import Corrupt, Unsupported, UsageError
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Metadata,
    Option,
    Source,
    element,
    refused,
)

from .lazy import lazily
from .meta import NAMESPACE, fields_of, metadata_fits, part, whole
from .planes import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGIC = b"\xff\xd8\xff"
WHAT = "the JPEG image"
MAX_SIDE = 0xFFFF
MAX_METADATA_BYTES = 64 << 20  # of all markers before the first scan
# Entropy-coded blocks of 8 × 8 pixels have a bit at least in the first scan of each component.
# (Arithmetic coding can be shorter.)
PIXELS_PER_BYTE = 8 * 64
# Encoders make about ten; each one passes over the whole image, however short it is.
MAX_SCANS = 500
_FRAME = Struct(">BHHB")  # precision, height, width, components
_DENSITY = Struct(">BHH")  # at byte 13 of a JFIF file: unit, x, y
# A TIFF directory of one tag, the orientation.
_ORIENTATION = bytes.fromhex("49492a0008000000 0100 1201 0300 01000000 00000000 00000000")
_SOF = {0xC0: "baseline", 0xC1: "extended", 0xC2: "progressive", 0xC3: "lossless",
        0xC5: "hierarchical", 0xC6: "hierarchical", 0xC7: "lossless", 0xC9: "arithmetic",
        0xCA: "arithmetic", 0xCB: "lossless", 0xCD: "hierarchical", 0xCE: "hierarchical",
        0xCF: "lossless"}  # fmt: skip
_NO_LENGTH = frozenset([0x01, *range(0xD0, 0xD9)])
_UNITS = {0: "none", 1: "inch", 2: "cm"}
_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
_EXIF, _XMP, _ICC = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0", b"ICC_PROFILE\0"

Header = namedtuple("Header", "process precision height width components fields pictures")

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
    are checked here, the pixels are decoded when they are asked for.
    """
    from .backend import Images, check_need

    header = _header(source)
    _check_frame(source, header)
    mode = _MODES[header.components]
    shape = (header.height, header.width) + (header.components,) * (mode != "L")
    kept = 2 * header.components if header.process == "progressive" else 0  # coefficients
    check_need(source, header.height * header.width, header.components, kept)
    fields, notes = header.fields, []
    if mode == "CMYK":
        fields["color"] = "CMYK"
        notes.append("the four channels are inks (CMYK), not RGB with alpha")
    if header.pictures:
        notes.append("there are more pictures in this file (MPO); only the first is read")

    def images() -> Images:
        import numpy as np

        return Images(source, WHAT, shape, np.dtype("u1"))

    closers: list[Callable[[], None]] = []
    array = Array(
        element("uint", 1),
        shape[::-1],
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAMESPACE: fields} if fields else None),
        data=lazily(images, closers),
    )
    return Bundle([array], notes=notes, closers=closers)


def _check_frame(source: Source, header: Header) -> None:
    if header.precision != 8 or header.process in ("lossless", "hierarchical"):
        raise Unsupported(
            f"is a {header.process} JPEG of {header.precision} bits",
            path=source.path,
            expected="baseline or progressive, 8 bits",
        )
    if header.components not in _MODES:
        raise Unsupported(
            "has an odd number of components", path=source.path, got=header.components
        )
    pixels = header.height * header.width
    if pixels == 0:
        raise Unsupported("does not say its height before the pixels", path=source.path)
    if header.process != "arithmetic" and pixels > PIXELS_PER_BYTE * source.size:
        raise Corrupt(
            "declares more pixels than its compressed bytes can hold",
            path=source.path,
            got=f"{header.width} × {header.height} in {source.size} bytes",
        )
    if header.process != "baseline" and _scans(source) > MAX_SCANS:
        raise Unsupported("has too many scans", path=source.path, expected=f"at most {MAX_SCANS}")


# ------------------------------------------------------------------------------------- markers


def _scans(source: Source) -> int:
    """Return how many markers of scans there may be; compressed data cannot look like one."""
    found, last = 0, b""
    with source.open() as file:
        while piece := file.read(1 << 20):
            found += (last + piece).count(b"\xff\xda")
            last = piece[-1:]
    return found


def _header(source: Source) -> Header:
    """Read the markers up to the first scan; the file must end with the end marker."""
    from io import BufferedReader

    if not source.head.startswith(MAGIC):
        raise Corrupt("does not begin with a JPEG marker", path=source.path)
    fields: dict[str, Any] = {}
    profile: dict[int, bytes] = {}
    frame: tuple[int, ...] = ()
    process, total, pictures = "", 0, False
    with BufferedReader(source.open()) as file:
        file.seek(2)
        while True:
            code, payload = _marker(source, file)
            if code in (0xDA, 0xD9):
                break
            total += len(payload)
            if total > MAX_METADATA_BYTES:
                raise Unsupported("has more than 64 MiB before its pixels", path=source.path)
            if code in _SOF and not frame:
                process, frame = _SOF[code], _frame(source, payload)
            elif code == 0xE2 and payload.startswith(b"MPF\0"):
                pictures = True
            else:
                _collect(code, payload, fields, profile)
    if not frame or code == 0xD9:
        raise Corrupt("has no image before its end", path=source.path)
    if source.read_at(max(0, source.size - 2), 2) != b"\xff\xd9":
        _check_end(source)
    if profile:
        fields["icc"] = b"".join(profile[number] for number in sorted(profile))
    precision, height, width, components = frame
    return Header(process, precision, height, width, components, fields, pictures)


def _marker(source: Source, file: BinaryIO) -> tuple[int, bytes]:
    """Return the code and the payload of the next marker."""
    at = file.tell()
    code = file.read(1)
    if code != b"\xff":
        raise _damaged(source, at, code)
    while code == b"\xff":  # fill bytes
        code = file.read(1)
    if not code or code == b"\0":
        raise _damaged(source, at, code)
    number = code[0]
    if number in _NO_LENGTH or number == 0xD9:
        return number, b""
    length = int.from_bytes(file.read(2), "big")
    payload = file.read(max(0, length - 2))
    if length < 2 or len(payload) != length - 2:
        raise _damaged(source, at, code)
    return number, payload


def _damaged(source: Source, at: int, code: bytes) -> Corrupt:
    return Corrupt(
        "file is damaged or ends inside its JPEG markers",
        path=source.path,
        where=f"byte {at}",
        got="the end of the file" if not code else f"{code!r}",
    )


def _check_end(source: Source) -> None:
    """Look for the end marker before bytes that others put behind it (previews, padding)."""
    end = source.size
    overlap = b""
    while end > 0:
        begin = max(0, end - (1 << 16))
        piece = source.read_at(begin, end - begin)
        if b"\xff\xd9" in piece + overlap:
            return
        overlap = piece[:1]
        end = begin
    raise Corrupt("is cut off: it has no end marker", path=source.path, where=f"byte {source.size}")


def _frame(source: Source, payload: bytes) -> tuple[int, ...]:
    if len(payload) < _FRAME.size or len(payload) != _FRAME.size + 3 * payload[5]:
        raise Corrupt("frame header has the wrong length", path=source.path, got=len(payload))
    return _FRAME.unpack_from(payload)


def _collect(code: int, payload: bytes, fields: dict[str, Any], profile: dict[int, bytes]) -> None:
    """Keep what is metadata; the first of each kind counts."""
    if code == 0xE0 and payload.startswith(b"JFIF\0") and len(payload) >= 12:
        unit, x, y = payload[7], payload[8:10], payload[10:12]
        if unit in _UNITS and "resolution" not in fields:
            pair = [int.from_bytes(x, "big"), int.from_bytes(y, "big")]
            if unit or pair not in ([0, 0], [1, 1]):
                fields["resolution"] = [*pair, _UNITS[unit]]
    elif code == 0xE1 and payload.startswith(_EXIF):
        fields.setdefault("exif", payload[len(_EXIF) :])
        orientation = exif_orientation(fields["exif"])
        if orientation:
            fields["orientation"] = orientation
    elif code == 0xE1 and payload.startswith(_XMP):
        fields.setdefault("xmp", payload[len(_XMP) :])
    elif code == 0xE2 and payload.startswith(_ICC) and len(payload) > len(_ICC) + 2:
        profile[payload[len(_ICC)]] = payload[len(_ICC) + 2 :]
    elif code == 0xFE:
        fields.setdefault("comment", payload.rstrip(b"\0").decode("utf-8", "replace"))


def exif_orientation(exif: bytes) -> int:
    """Return the orientation (tag 274 of the first directory) of EXIF data; 0 if there is none."""
    order = {b"II*\0": "little", b"MM\0*": "big"}.get(exif[:4])
    if order is None:
        return 0

    def number(at: int, nbytes: int) -> int:
        return int.from_bytes(exif[at : at + nbytes], "big" if order == "big" else "little")

    at = number(4, 4)
    for entry in range(at + 2, min(at + 2 + 12 * number(at, 2), len(exif) - 11), 12):
        if number(entry, 2) == 274 and number(entry + 2, 2) == 3:
            value = number(entry + 8, 2)
            return value if 1 <= value <= 8 else 0
    return 0


# ------------------------------------------------------------------------------------- writing

_KEPT = frozenset({"resolution", "icc", "exif", "xmp", "comment", "orientation"})


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what JPEG would change or cannot hold: the values, whatever they are."""
    found = []
    for array in bundle.arrays:
        own = image_fits(array, "JPEG", channels=(3,), max_side=MAX_SIDE)
        if not own:
            reason = "JPEG keeps no value exactly; PNG, TIFF and WebP do"
            own = [refused(array.name, "precision", reason, "--allow precision")]
        found += own
    return found + metadata_fits(bundle, "JPEG", _KEPT)


def write(bundle: Bundle, target: Target, *, quality: int = 95, subsampling: str = "4:4:4") -> None:
    """Write the one array of the bundle, with losses; the image is in memory as a whole."""
    from raconvert.arrays.blocks import as_ndarray
    from raconvert.files.copy import write_all

    from .backend import encoded

    if not 1 <= quality <= 100:
        raise UsageError("there is no such quality", expected="1 to 100", got=quality)
    array = bundle.arrays[0]
    values = as_ndarray(array, target.max_memory)
    options: dict[str, Any] = {"quality": quality}
    if values.ndim == 3:
        options["subsampling"] = subsampling
    fields = fields_of(array)
    data = encoded(values, ".jpg", **options, **_kept(fields))
    write_all(target.open(), [_with_resolution(data, fields)])
    if target.progress is not None:
        target.progress(array.nbytes)


def _with_resolution(data: bytes, fields: dict[str, Any]) -> bytes:
    """Return the file with the resolution of the metadata in its JFIF header (T.871, 10.1)."""
    resolution = part(fields, "resolution", list)
    if not resolution or len(resolution) != 3 or data[2:4] != b"\xff\xe0":
        return data
    unit = next((code for code, word in _UNITS.items() if word == resolution[2]), None)
    numbers = [n for n in map(whole, resolution[:2]) if 0 < n <= MAX_SIDE]
    if unit is None or len(numbers) != 2:
        return data
    return data[:13] + _DENSITY.pack(unit, *numbers) + data[18:]


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    """Return Pillow's options for the metadata that goes along."""
    options: dict[str, Any] = {}
    for field, option in (("icc", "icc_profile"), ("xmp", "xmp")):
        if value := part(fields, field, bytes):
            options[option] = value
    exif, orientation = part(fields, "exif", bytes), part(fields, "orientation", int)
    if not exif and orientation in range(1, 9):
        exif = _ORIENTATION[:18] + bytes([orientation]) + _ORIENTATION[19:]
    if exif:
        options["exif"] = _EXIF + exif
    if comment := part(fields, "comment", str):
        options["comment"] = comment.encode()
    return options
