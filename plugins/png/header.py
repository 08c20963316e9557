"""The PNG container: signature, chunks, and every check that needs no pixels (PNG 3, clause 5).

Importing this module needs neither numpy nor Pillow. `scan` walks over a file once, reads the small
chunks with their checksums, and records the offsets of the compressed pixels (`Span`); their
checksums are verified by `payload`, when the pixels are read.

A fault of a *critical* chunk or of tRNS (it changes what the pixels mean), its checksum included,
makes the file `Corrupt`. Any other ancillary chunk that breaks its own rules, or whose
checksum is wrong, is left out of the metadata, with a note: the pixels do not depend on it.
"""

from __future__ import annotations

from collections import namedtuple
from zlib import crc32

from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import trailing_note

from .tables import (
    ADAM7,
    BIT_DEPTHS,
    CHANNELS,
    CHUNK_HEAD,
    CHUNK_OVERHEAD,
    CRC,
    FCTL,
    GREY,
    GREY_ALPHA,
    IHDR,
    MAX_NOTES,
    MAX_SIDE,
    NEEDED,
    PALETTE,
    PIECE_BYTES,
    PIXEL_LEADS,
    RGB,
    RULES,
    SIGNATURE,
    UNKNOWN,
    WHOLE,
    Chunk,
    Control,
    Frame,
    Pass,
    Span,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from raconvert.files.limits import Limits


class Header(namedtuple("Header", "width height bit_depth color_type interlace")):
    """The IHDR chunk."""

    __slots__ = ()

    @property
    def channels(self) -> int:
        """Samples per pixel."""
        return CHANNELS[self.color_type]

    @property
    def sample_bytes(self) -> int:
        """Bytes per sample of the array."""
        return 2 if self.bit_depth == 16 else 1

    @property
    def pixel_bytes(self) -> int:
        """Bytes per complete pixel, at least 1: the distance that the filters look back."""
        return max(1, self.channels * self.bit_depth // 8)

    def passes(self) -> list[Pass]:
        """The images that follow one another in the pixel stream: one, or up to seven."""
        passes = []
        for x, y, dx, dy in ADAM7 if self.interlace else WHOLE:
            width, height = -((x - self.width) // dx), -((y - self.height) // dy)
            if width > 0 and height > 0:
                row_bytes = (width * self.channels * self.bit_depth + 7) // 8
                passes.append(Pass(x, y, dx, dy, width, height, row_bytes))
        return passes

    @property
    def stream_bytes(self) -> int:
        """The exact length of the inflated pixel stream, filter bytes included."""
        return sum(p.height * (1 + p.row_bytes) for p in self.passes())


class Png:
    """The chunks of one file, as `scan` read them.

    `ancillary` are the valid ancillary chunks in file order, `ancillary_bytes` their length; `trns`
    is the raw tRNS payload; `frames` the animation in file order, where a frame with the spans of
    `idat` is the default image; `notes` one line for each chunk that was left out.
    """

    __slots__ = (
        "ancillary",
        "ancillary_bytes",
        "frames",
        "header",
        "idat",
        "limits",
        "notes",
        "palette",
        "path",
        "trns",
    )

    def __init__(self, path: str, header: Header, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.header = header
        self.palette: bytes | None = None
        self.trns: bytes | None = None
        self.ancillary: list[Chunk] = []
        self.ancillary_bytes = 0
        self.idat: list[Span] = []
        self.frames: list[Frame] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Add a remark about the file, up to `MAX_NOTES`."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)
        elif len(self.notes) == MAX_NOTES:
            self.notes.append("further remarks about this file were left out")

    def first(self, kind: bytes) -> bytes | None:
        """The payload of the first ancillary chunk of this kind, or None."""
        return next((chunk.data for chunk in self.ancillary if chunk.kind == kind), None)

    @property
    def is_bare(self) -> bool:
        """True if the file has nothing but pixels, in whole bytes."""
        colors = self.palette is not None or self.trns is not None
        return not (self.ancillary or colors or self.header.bit_depth < 8)

    @property
    def opaque(self) -> bool:
        """True if no palette entry is transparent."""
        return self.trns is None or self.trns.count(b"\xff") == len(self.trns)

    def array_channels(self, *, palette: str, trns: str) -> int:
        """The length of the channel axis with these options of `read`, 0 for none."""
        channels = self.header.channels
        if self.header.color_type == PALETTE:
            if palette == "indices":
                return 0
            return 3 if self.opaque else 4
        if trns == "alpha" and self.trns is not None:
            return channels + 1
        return channels if channels > 1 else 0


def scan(file: BinaryIO, size: int, path: str, limits: Limits) -> Png:
    """Walk over the chunks of a PNG file of `size` bytes, and check all but the pixels.

    Raises `Corrupt` and `Unsupported`.
    """
    _check_signature(file.read(len(SIGNATURE)), path)
    walk = _walk(file, size, path, limits)
    png = Png(path, _parse_header(next(walk), path), limits)
    seen = {b"IHDR"}
    previous = b"IHDR"
    for chunk in walk:
        kind = chunk.kind
        if kind == b"IDAT":
            if kind in seen and previous != b"IDAT":
                raise _corrupt(path, chunk.offset, "the IDAT chunks are not consecutive")
            png.idat.append(chunk.data)
        elif kind == b"PLTE":
            png.palette = _check_palette(png, chunk, seen)
        elif kind == b"IEND":
            _check_end(png, chunk)
            break
        elif kind in (b"fcTL", b"fdAT"):
            _add_to_frames(png, chunk, seen)
        elif kind == b"tRNS":
            png.trns = _check_transparency(png, chunk, seen)
        elif kind[0] & 0x20:
            _add_ancillary(png, chunk, seen)
        else:
            raise _critical(path, chunk, seen)
        seen.add(kind)
        previous = kind
    _check_whole(png, seen)
    trailing = size - file.tell()
    if trailing:
        png.note(trailing_note(trailing, "the IEND chunk"))
    return png


def payload(file: BinaryIO, spans: list[Span], path: str) -> Iterator[bytes]:
    """Yield the compressed pixels of `spans` in pieces, and verify each chunk's checksum.

    A checksum is compared after the last piece of its chunk was yielded: the pieces are verified
    only once the iterator is exhausted.
    """
    for offset, nbytes, lead in spans:
        kind = b"fdAT" if lead else b"IDAT"
        checksum = crc32(lead, crc32(kind))
        file.seek(offset)
        for done in range(0, nbytes, PIECE_BYTES):
            piece = file.read(min(nbytes - done, PIECE_BYTES))
            checksum = crc32(piece, checksum)
            yield piece
        _check_crc(file.read(CRC.size), checksum, kind, offset - len(lead) - CHUNK_HEAD.size, path)


# ------------------------------------------------------------------------------------ chunks


def _check_signature(signature: bytes, path: str) -> None:
    if signature == SIGNATURE:
        return
    if not signature:
        raise Corrupt("the file is empty, not a PNG", path=path)
    remedy = None
    if b"PNG" in signature:
        remedy = "a transfer in text mode damages the signature like this; copy the file again"
    raise Corrupt(
        "no PNG signature",
        path=path,
        where="byte 0",
        expected=SIGNATURE.hex(" "),
        got=signature.hex(" "),
        remedy=remedy,
    )


def _walk(file: BinaryIO, size: int, path: str, limits: Limits) -> Iterator[Chunk]:
    """Yield the chunks in file order; the data of IDAT and fdAT is their `Span`."""
    offset = len(SIGNATURE)
    for _ in range(limits.image_chunks):
        head = file.read(CHUNK_HEAD.size)
        if len(head) < CHUNK_HEAD.size:
            raise _corrupt(path, offset, "the file ends before its IEND chunk")
        nbytes, kind = CHUNK_HEAD.unpack(head)
        if not (kind.isalpha() and kind.isascii()):
            raise _corrupt(path, offset, "no chunk begins here", got=f"type {kind!r}")
        left = size - offset - CHUNK_OVERHEAD
        if nbytes > min(left, MAX_SIDE):
            raise _corrupt(
                path,
                offset,
                f"the file ends inside the chunk {_name(kind)}",
                expected=f"{nbytes} bytes and a checksum",
                got=f"{size - offset - CHUNK_HEAD.size} bytes",
            )
        if kind in PIXEL_LEADS:
            yield Chunk(kind, offset, _span(file, kind, offset, nbytes, path))
        else:
            yield Chunk(
                kind, offset, *_data(file, kind, offset, nbytes, path, limits.metadata_chunk_bytes)
            )
        offset += CHUNK_OVERHEAD + nbytes
        file.seek(offset)
    raise Unsupported(f"the file has more than {limits.image_chunks} chunks", path=path)


def _span(file: BinaryIO, kind: bytes, offset: int, nbytes: int, path: str) -> Span:
    """The span of the pixels of an IDAT or fdAT chunk, which are not read."""
    lead = file.read(PIXEL_LEADS[kind]) if nbytes >= PIXEL_LEADS[kind] else b""
    if len(lead) != PIXEL_LEADS[kind]:
        raise _corrupt(path, offset, f"the chunk {_name(kind)} ends inside its sequence number")
    return Span(offset + CHUNK_HEAD.size + len(lead), nbytes - len(lead), lead)


def _data(
    file: BinaryIO, kind: bytes, offset: int, nbytes: int, path: str, most: int
) -> tuple[bytes | None, bool]:
    """The payload of a chunk (None if it is longer than `most`), and True if it is damaged.

    Raises `Corrupt` for damage, unless it is of an ancillary chunk that the pixels do not need.
    A chunk whose checksum fits another type has a damaged type, and may be one of the others.
    """
    checksum = crc32(kind)
    data = b""
    piece = max(1, most)
    for done in range(0, nbytes, piece):
        data = file.read(min(nbytes - done, piece))
        checksum = crc32(data, checksum)
    stored = file.read(CRC.size)
    whole = data if nbytes <= most else None
    damaged = stored != CRC.pack(checksum)
    needed = kind in NEEDED or not kind[0] & 0x20 or whole is None
    if damaged and (
        needed or any(stored == CRC.pack(crc32(data, crc32(other))) for other in NEEDED)
    ):
        _check_crc(stored, checksum, kind, offset, path)
    return whole, damaged


def _check_crc(stored: bytes, computed: int, kind: bytes, offset: int, path: str) -> None:
    if stored != CRC.pack(computed):
        raise _corrupt(
            path,
            offset,
            f"the checksum of the chunk {_name(kind)} is wrong: its bytes are damaged",
            expected=stored.hex(),
            got=f"{computed:08x}",
        )


def _name(kind: bytes) -> str:
    return kind.decode("ascii", "backslashreplace")


def _corrupt(
    path: str, offset: int, what: str, expected: object = None, got: object = None
) -> Corrupt:
    return Corrupt(what, path=path, where=f"byte {offset}", expected=expected, got=got)


# -------------------------------------------------------------------------- what chunks mean


def _parse_header(chunk: Chunk, path: str) -> Header:
    """The checked IHDR (clause 11.2.1). Raises `Corrupt`."""

    def wrong(what: str, expected: object, got: object) -> Corrupt:
        return _corrupt(path, chunk.offset, f"IHDR: {what}", expected, got)

    if chunk.kind != b"IHDR":
        raise _corrupt(path, chunk.offset, "the first chunk is not IHDR", got=_name(chunk.kind))
    if len(chunk.data or b"") != IHDR.size:
        raise wrong("wrong length", f"{IHDR.size} bytes", len(chunk.data or b""))
    width, height, bit_depth, color_type, compression, filters, interlace = IHDR.unpack(chunk.data)
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise wrong("impossible image size", f"1 to {MAX_SIDE} each way", f"{width} x {height}")
    if color_type not in CHANNELS:
        raise wrong("unknown colour type", "0, 2, 3, 4 or 6", color_type)
    if bit_depth not in BIT_DEPTHS[color_type]:
        depths = ", ".join(map(str, BIT_DEPTHS[color_type]))
        raise wrong(f"bit depth not allowed for colour type {color_type}", depths, bit_depth)
    if (compression, filters) != (0, 0) or interlace > 1:
        got = f"{compression}, {filters}, {interlace}"
        raise wrong("unknown compression, filter or interlace method", "0, 0, 0 or 1", got)
    return Header(width, height, bit_depth, color_type, interlace)


def _check_palette(png: Png, chunk: Chunk, seen: set[bytes]) -> bytes:
    """The checked PLTE: 1 to 256 entries of three bytes, before IDAT (clause 11.2.2)."""
    header = png.header
    nbytes = -1 if chunk.data is None else len(chunk.data)
    most = 1 << header.bit_depth if header.color_type == PALETTE else 256
    if header.color_type in (GREY, GREY_ALPHA):
        what = f"a palette is not allowed in colour type {header.color_type}"
    elif b"PLTE" in seen or b"IDAT" in seen:
        what = "the palette is repeated or comes after the pixels"
    elif nbytes % 3 or not 3 <= nbytes <= 3 * most:
        what = f"the palette has {nbytes} bytes, not 3 for each of 1 to {most} entries"
    else:
        return chunk.data
    raise _corrupt(png.path, chunk.offset, f"PLTE: {what}")


def _check_transparency(png: Png, chunk: Chunk, seen: set[bytes]) -> bytes:
    """The checked tRNS: it decides whether there is an alpha plane (clause 11.3.1.1)."""
    color_type = png.header.color_type
    nbytes = -1 if chunk.data is None else len(chunk.data)
    entries = len(png.palette or b"") // 3
    allowed = {GREY: (2, 2), RGB: (6, 6), PALETTE: (1, entries)}.get(color_type)
    if allowed is None:
        what = f"not allowed in colour type {color_type}, which has an alpha plane"
    elif b"tRNS" in seen or b"IDAT" in seen:
        what = "repeated or after the pixels"
    elif color_type == PALETTE and not entries:
        what = "before the palette that it belongs to"
    elif not allowed[0] <= nbytes <= allowed[1]:
        what = f"{nbytes} bytes instead of {' to '.join(map(str, sorted(set(allowed))))}"
    else:
        return chunk.data
    raise _corrupt(png.path, chunk.offset, f"tRNS: {what}")


def _add_ancillary(png: Png, chunk: Chunk, seen: set[bytes]) -> None:
    """Add a well-formed ancillary chunk; leave any other out with a note."""
    kind = chunk.kind
    rule = RULES.get(kind, UNKNOWN)
    if chunk.damaged:
        fault = "its checksum is wrong"
    elif chunk.data is None:
        fault = f"longer than {png.limits.metadata_chunk_bytes} bytes"
    elif png.ancillary_bytes > png.limits.metadata_bytes:
        fault = f"more than {png.limits.metadata_bytes} bytes of metadata before it"
    elif rule.once and kind in seen:
        fault = "repeated"
    elif rule.before and (rule.before in seen or b"IDAT" in seen):
        fault = f"after the chunk {_name(rule.before if rule.before in seen else b'IDAT')}"
    elif rule.nbytes is not None and len(chunk.data) != rule.nbytes:
        fault = f"{len(chunk.data)} bytes instead of {rule.nbytes}"
    else:
        png.ancillary.append(chunk)
        png.ancillary_bytes += len(chunk.data)
        return
    png.note(f"the chunk {_name(kind)} at byte {chunk.offset} was ignored: {fault}")


def _add_to_frames(png: Png, chunk: Chunk, seen: set[bytes]) -> None:
    """Collect fcTL and fdAT in order; they are checked only if the animation is read.

    A control before IDAT makes the default image the first frame.
    """
    if chunk.kind == b"fcTL":
        whole = len(chunk.data or b"") == FCTL.size and not chunk.damaged
        control = Control(*FCTL.unpack(chunk.data)) if whole else None
        png.frames.append(Frame(control, [] if b"IDAT" in seen else png.idat))
    elif png.frames and png.frames[-1].spans is not png.idat:
        png.frames[-1].spans.append(chunk.data)
    else:
        png.frames.append(Frame(None, [chunk.data]))


def _critical(path: str, chunk: Chunk, seen: set[bytes]) -> Corrupt | Unsupported:
    """The error for a critical chunk that cannot be used here."""
    if chunk.kind in seen:
        return _corrupt(path, chunk.offset, f"a second {_name(chunk.kind)} chunk")
    return Unsupported(
        f"unknown critical chunk {_name(chunk.kind)}: the image cannot be read without it",
        path=path,
        where=f"byte {chunk.offset}",
    )


def _check_end(png: Png, chunk: Chunk) -> None:
    if chunk.data != b"":
        raise _corrupt(png.path, chunk.offset, "the IEND chunk is not empty")


def _check_whole(png: Png, seen: set[bytes]) -> None:
    """Raise `Corrupt` if a critical chunk is missing, or the compressed pixels are too short."""
    header = png.header
    if b"IDAT" not in seen:
        raise Corrupt("the file has no IDAT chunk: no pixels", path=png.path)
    if header.color_type == PALETTE and png.palette is None:
        raise Corrupt("a palette image without a PLTE chunk", path=png.path)
    check_inflation(png.idat, header, png.path)


def check_inflation(spans: list[Span], header: Header, path: str) -> None:
    """Raise `Corrupt` if so few compressed bytes cannot hold the pixels; nothing is allocated."""
    compressed = sum(span.nbytes for span in spans)
    if compressed * MAX_RATIO < header.stream_bytes:
        raise Corrupt(
            f"{compressed} compressed bytes cannot hold an image of {header.width} x "
            f"{header.height} pixels",
            path=path,
            where=f"byte {spans[0].offset - CHUNK_HEAD.size}",
            expected=f"{header.stream_bytes} bytes inflated",
            got=f"at most {compressed * MAX_RATIO}",
        )
