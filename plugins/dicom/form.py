"""The form of the pixels of a file: type, rows, columns, samples, bits, colours, frames."""

from __future__ import annotations

from math import prod

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import Element, element

from .tables import (
    ALLOCATED,
    COLUMNS,
    ENCODINGS,
    FLOATS,
    FRAMES,
    GREY,
    HIGH,
    NATIVE,
    OF_CODEC,
    PHOTOMETRIC,
    PIXELS,
    PLANAR,
    REFUSED,
    RGB,
    ROWS,
    SAMPLES,
    SIGNED,
    STORED,
    YBR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .header import Header

PALETTE = "PALETTE COLOR"


class Form(Record):
    """The form of the pixels of a file; equal for the files of one array.

    `photometric` is the interpretation of the elements as read, `stored_as` that of the file;
    `across` is the number of tiles in a row of a mosaic, 0 for other images.
    """

    rows: int
    columns: int
    samples: int
    allocated: int
    stored: int
    high: int
    signed: bool
    floats: bool
    planar: bool
    photometric: str
    stored_as: str
    encoded: bool
    across: int = 0

    @property
    def element(self) -> Element:
        """The type of the elements."""
        if self.floats:
            return element("float", self.allocated // 8)
        if self.allocated == 1:
            return element("bool", 1)
        return element("int" if self.signed else "uint", self.allocated // 8)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes of a frame, slowest first."""
        return (self.rows, self.columns, *((self.samples,) if self.samples > 1 else ()))

    @property
    def size(self) -> int:
        """The number of elements of a frame."""
        return prod(self.shape)

    @property
    def is_raw(self) -> bool:
        """True if the bytes in the file are the elements, in either byte order."""
        return self.is_streamed and not self.unused

    @property
    def is_streamed(self) -> bool:
        """True if the file holds the elements in their order, as whole bytes."""
        return not (self.encoded or self.converts or self.planar or self.allocated == 1
                    or self.across)  # fmt: skip

    @property
    def stored_image(self) -> Form:
        """The form of an image as stored: a mosaic with all its tiles."""
        across = self.across or 1
        return self._replace(rows=self.rows * across, columns=self.columns * across, across=0)

    @property
    def unused(self) -> int:
        """The number of bits of an element that are not part of its value."""
        return 0 if self.floats or self.allocated == 1 else self.allocated - self.stored

    @property
    def converts(self) -> bool:
        """True if colours are converted."""
        return self.photometric != self.stored_as and self.stored_as not in OF_CODEC


def form_of(header: Header, colours: str) -> tuple[Form, int]:
    """The form of the pixels of a file, and the number of frames.

    `colours` is the option: ``auto``, ``rgb`` or ``stored``. Raises `Corrupt` and `Unsupported`.
    """
    pixels = header.image()
    encoded = _is_encoded(header)
    rows, columns = (_needed(header, tag, 1, 65535) for tag in (ROWS, COLUMNS))
    samples = _within(header, SAMPLES, 1, 1, 4)
    if samples not in (1, 3, 4):
        raise header.wrong(SAMPLES, "is not one of the colours", samples, "1, 3 or 4")
    frames = _within(header, FRAMES, 1, 0, (1 << 31) - 1) or 1
    floats = pixels.tag != PIXELS
    if floats:
        allocated = 32 if pixels.tag == FLOATS else 64
        stored = allocated
    else:
        allocated = _needed(header, ALLOCATED, 1, 64)
        stored = _within(header, STORED, allocated, 1, allocated)
    if allocated not in (1, 8, 16, 32, 64):
        raise Unsupported(
            "has pixels that are packed without regard to bytes", path=header.path,
            got=f"{allocated} bits allocated", expected="1, 8, 16, 32 or 64",
            remedy="let another program write it with 16 bits allocated",
        )  # fmt: skip
    high = stored - 1 if floats else _within(header, HIGH, stored - 1, stored - 1, allocated - 1)
    signed = bool(_within(header, SIGNED, 0, 0, 1)) and not floats
    planar = bool(_within(header, PLANAR, 0, 0, 1)) and samples > 1
    stored_as = header.text(PHOTOMETRIC) or "MONOCHROME2"
    is_single = stored_as in (*GREY, PALETTE)
    if (samples == 1) != is_single or (stored_as == RGB and samples != 3):
        raise header.wrong(PHOTOMETRIC, "contradicts the number of samples", ascii(stored_as))
    if allocated == 1 and (samples > 1 or encoded):
        raise Unsupported("has bits in colours, or encoded", path=header.path)
    form = Form(
        rows, columns, samples, allocated, stored, high, signed, floats,
        planar, _colours(header, stored_as, colours, encoded=encoded), stored_as, encoded,
    )  # fmt: skip
    if form.photometric != stored_as and (allocated, stored, signed) != (8, 8, False):
        raise Unsupported(
            f"colours of {stored_as} are converted from 8 bits only", path=header.path,
            got=f"{stored} of {allocated} bits", remedy=_STORED,
        )  # fmt: skip
    return form, frames


_STORED = "`--in-opt colours=stored` reads them as stored"


def _is_encoded(header: Header) -> bool:
    """True if the pixels are in fragments that a codec decodes."""
    syntax = header.syntax
    native = header.pixels is not None and header.pixels.nbytes is not None
    if syntax in NATIVE:
        if not native:
            raise Corrupt(
                "pixels have no length, as only encoded ones do", path=header.path, got=syntax
            )
        return False
    if syntax in ENCODINGS:
        return not native  # some writers leave the name of the encoding after decoding
    word = next((word for start, word in REFUSED.items() if syntax.startswith(start)), "")
    raise Unsupported(
        f"pixels are {word or 'in a transfer syntax that is not known'}", path=header.path,
        got=syntax[:64], remedy="let another program write it as explicit VR little endian",
    )  # fmt: skip


def _colours(header: Header, stored_as: str, option: str, *, encoded: bool) -> str:
    """The photometric interpretation of the elements as read. Raises `Unsupported`."""
    if stored_as in (*GREY, RGB, PALETTE):
        return stored_as
    if stored_as in OF_CODEC and encoded:
        return RGB
    if stored_as not in YBR or (stored_as == "YBR_FULL_422" and not encoded):
        raise Unsupported(
            "has colours of a kind that is not read", path=header.path, got=ascii(stored_as),
            expected=", ".join((*GREY, RGB, PALETTE, *YBR, *OF_CODEC)),
            remedy="let another program write it as RGB",
        )  # fmt: skip
    lossy = encoded and ENCODINGS[header.syntax][0].startswith("JPEG")
    if option == "rgb" or (option == "auto" and lossy):
        return RGB
    if option == "stored":
        return stored_as
    raise Unsupported(
        f"has colours in {stored_as}; RGB is made of them by rounding", path=header.path,
        remedy=f"`--in-opt colours=rgb` rounds; {_STORED}",
    )  # fmt: skip


def _needed(header: Header, tag: int, least: int, most: int) -> int:
    """The integer of an element. Raises `Corrupt` if it is missing or out of range."""
    value = header.integer(tag)
    if value is None:
        raise header.wrong(tag, "is missing, or empty", None, f"{least} to {most}")
    return _in_range(header, tag, value, least, most)


def _within(header: Header, tag: int, default: int, least: int, most: int) -> int:
    """The integer of an element, or `default` without one. Raises `Corrupt` if out of range."""
    value = header.integer(tag)
    return default if value is None else _in_range(header, tag, value, least, most)


def _in_range(header: Header, tag: int, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise header.wrong(tag, "is out of range", value, f"{least} to {most}")
    return value
