"""The numbers and names of PNG: chunks and their rules, colour types, passes, filters, limits."""

from __future__ import annotations

from collections import namedtuple
from struct import Struct

NAME = "png"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHUNK_HEAD = Struct(">I4s")  # length of the payload, type
CRC = Struct(">I")  # CRC-32 of type and payload
IHDR = Struct(">IIBBBBB")  # width, height, bit depth, colour type, compression, filter, interlace
FCTL = Struct(">IIIIIHHBB")  # sequence, width, height, x, y, delay (two parts), dispose, blend

CHUNK_OVERHEAD = CHUNK_HEAD.size + CRC.size
MAX_SIDE = 2**31 - 1  # PNG four-byte integers, clause 7.1
MAX_NOTES = 20  # remarks about one file
PIECE_BYTES = 1 << 18  # compressed pixels are read in pieces of this size

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
BIT_DEPTHS = {
    GREY: (1, 2, 4, 8, 16),
    RGB: (8, 16),
    PALETTE: (1, 2, 4, 8),
    GREY_ALPHA: (8, 16),
    RGBA: (8, 16),
}

# The rules of an ancillary chunk: at most once or often, before which chunk, and its length (None:
# any). PNG 3, table 5.3 and clause 11.3.
Rule = namedtuple("Rule", "once before nbytes")
RULES = {
    b"acTL": Rule(True, b"IDAT", 8),
    b"bKGD": Rule(True, b"IDAT", None),
    b"cHRM": Rule(True, b"PLTE", 32),
    b"cICP": Rule(True, b"PLTE", 4),
    b"cLLI": Rule(True, b"PLTE", 8),
    b"eXIf": Rule(True, None, None),
    b"gAMA": Rule(True, b"PLTE", 4),
    b"hIST": Rule(True, b"IDAT", None),
    b"iCCP": Rule(True, b"PLTE", None),
    b"iTXt": Rule(False, None, None),
    b"mDCV": Rule(True, b"PLTE", 24),
    b"pHYs": Rule(True, b"IDAT", 9),
    b"sBIT": Rule(True, b"PLTE", None),
    b"sPLT": Rule(False, b"IDAT", None),
    b"sRGB": Rule(True, b"PLTE", 1),
    b"tEXt": Rule(False, None, None),
    b"tIME": Rule(True, None, 7),
    b"tRNS": Rule(True, b"IDAT", None),
    b"zTXt": Rule(False, None, None),
}
UNKNOWN = Rule(False, None, None)

# The seven passes of Adam7: first column, first row, column step, row step (clause 8.2).
ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
WHOLE = ((0, 0, 1, 1),)

NEEDED = (b"PLTE", b"IDAT", b"tRNS")  # the pixels depend on these, besides IHDR and IEND
PIXEL_LEADS = {b"IDAT": 0, b"fdAT": 4}  # bytes before the pixels: the sequence number of an fdAT

# `offset` is that of the length field; `damaged` an ancillary chunk whose checksum is wrong
Chunk = namedtuple("Chunk", "kind offset data damaged", defaults=(False,))
Span = namedtuple("Span", "offset nbytes lead")  # compressed pixels, and the bytes before them
Control = namedtuple("Control", "sequence width height x y delay_num delay_den dispose blend")
Frame = namedtuple("Frame", "control spans")
Pass = namedtuple("Pass", "x y dx dy width height row_bytes")  # `row_bytes`: without filter
