"""Tables of FITS: blocks, types, the keywords with a meaning of their own, and sample files."""

from __future__ import annotations

import re
from zlib import compress

from raconvert.declared import Record
from raconvert.plugin import element

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "AS_TEXT", "BITPIX", "BITS_OF", "BLOCK", "CARD", "CODES", "ELEMENTS", "IMAGE_KEYWORDS", "MAGIC",
    "MAX_COLUMNS",
    "MAX_RANK", "MAX_TEXT", "NAMESPACE", "OTHERS", "OTHER_SIGN", "SAMPLES", "SCALE", "STRUCTURE",
    "TABLE_KEYWORDS", "TEXTS", "TILE_KEYWORDS", "Column",
]  # fmt: skip

NAMESPACE = "fits"
BLOCK, CARD = 2880, 80
MAGIC = b"SIMPLE  ="
ELEMENTS = {
    8: element("uint", 1), 16: element("int", 2, ">"), 32: element("int", 4, ">"),
    64: element("int", 8, ">"), -32: element("float", 4, ">"), -64: element("float", 8, ">"),
}  # fmt: skip
# The BZERO of integers of the other signedness, by BITPIX.
OTHER_SIGN = {8: -128, 16: 1 << 15, 32: 1 << 31, 64: 1 << 63}
BITPIX = {(e.kind, e.nbytes): bits for bits, e in ELEMENTS.items()}
OTHERS = {
    ("int" if ELEMENTS[bits].kind == "uint" else "uint", ELEMENTS[bits].nbytes): bits
    for bits in OTHER_SIGN
}
# Letters of the types of columns, but for L (logical), X (bits), A (text), P and Q (heap).
CODES = {"B": "u1", "I": "i2", "J": "i4", "K": "i8", "E": "f4", "D": "f8", "C": "c8", "M": "c16"}
BITS_OF = {"B": 8, "I": 16, "J": 32, "K": 64}
MAX_COLUMNS = 999
MAX_RANK = 64  # NumPy's; the standard has 999
MAX_TEXT = 67  # characters of the text of one card beside an &
SCALE = {"scale_factor": "BSCALE", "add_offset": "BZERO", "_FillValue": "BLANK"}
# Attributes that hold commentary, a line for each card, and the keyword of these cards.
TEXTS = {"COMMENT": "COMMENT", "HISTORY": "HISTORY", "BLANK CARDS": ""}

# Keywords that attributes do not have: of every HDU, of images, of tables, of compressed tiles.
STRUCTURE = re.compile(
    r"SIMPLE|XTENSION|BITPIX|NAXIS\d*|EXTEND|PCOUNT|GCOUNT|GROUPS|END|CHECKSUM|DATASUM|EXTNAME|EXTVER"
)
IMAGE_KEYWORDS = re.compile("BSCALE|BZERO|BLANK|BUNIT")
TABLE_KEYWORDS = re.compile(
    r"TFIELDS|THEAP|(?:TTYPE|TFORM|TUNIT|TNULL|TSCAL|TZERO|TDISP|TBCOL|TDIM)\d+"
)
TILE_KEYWORDS = re.compile(
    r"ZIMAGE|ZCMPTYPE|ZBITPIX|ZNAXIS\d*|Z(?:TILE|NAME|VAL)\d+|ZMASKCMP|ZQUANTIZ|ZDITHER0|ZBLANK"
    r"|ZSCALE|ZZERO|ZSIMPLE|ZTENSION|ZEXTEND|ZBLOCKED|ZPCOUNT|ZGCOUNT|ZHECKSUM|ZDATASUM"
)


_WIDTHS = {"A": 1, "L": 1, "P": 8, "Q": 16} | {key: int(code[1:]) for key, code in CODES.items()}


AS_TEXT = "`--in-opt logical=text` reads T, F, and nothing where a value is missing"


class Column(Record):
    """A column: its name, letter, first byte in a row, and the cells that it becomes."""

    name: str
    code: str
    start: int
    cells: int
    shape: tuple[int, ...]  # of a cell, the slowest axis first; of text with its characters
    flipped: bool  # integers of the other signedness, by TZERO
    form: str = ""  # the text behind P or Q of a column of variable length
    keywords: Any = None  # the keywords for the elements of such a column

    @property
    def width(self) -> int:
        """The bytes of a cell."""
        if self.code == "X":
            return (self.cells + 7) // 8
        return self.cells * _WIDTHS[self.code]


def _header(*cards: tuple[str, str]) -> bytes:
    lines = [f"{name:8}= {value:>20}".ljust(CARD).encode() for name, value in cards]
    return b"".join([*lines, b"END"]).ljust(-(-(len(lines) + 1) * CARD // BLOCK) * BLOCK)


_IMAGE = (("BITPIX", "16"), ("NAXIS", "2"), ("NAXIS1", "3"), ("NAXIS2", "2"))
_NUMBERS = bytes((0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6)).ljust(BLOCK, b"\0")
SAMPLES = {
    "two_by_three.fits": _header(("SIMPLE", "T"), *_IMAGE) + _NUMBERS,
    "image_and_table.fits": _header(
        ("SIMPLE", "T"), *_IMAGE, ("BZERO", "32768"), ("CTYPE1", "'WAVE'"), ("CDELT1", "0.5"),
        ("EXTNAME", "'SCI'"),
    ) + _NUMBERS + _header(
        ("XTENSION", "'BINTABLE'"), ("BITPIX", "8"), ("NAXIS", "2"), ("NAXIS1", "6"),
        ("NAXIS2", "2"), ("PCOUNT", "0"), ("GCOUNT", "1"), ("TFIELDS", "2"), ("TFORM1", "'J'"),
        ("TTYPE1", "'n'"), ("TFORM2", "'2A'"), ("TTYPE2", "'name'"),
    ) + b"\0\0\0\1ab\0\0\0\2cd".ljust(BLOCK, b"\0"),
}  # fmt: skip
SAMPLES["packed.fits.gz"] = compress(SAMPLES["two_by_three.fits"], wbits=31)
