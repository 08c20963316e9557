r"""Netpbm: raw PBM, PGM, PPM and PAM, bitmaps and samples of 8 or 16 bits, read and write.

Specification: the manual pages pbm(5), pgm(5), ppm(5), pam(5), https://netpbm.sourceforge.net/doc/.
Compared with: netpbm's own tools.

Layout: a text header, then the pixels::

    P4        bitmap            width, height;          8 pixels in a byte, rows padded
    P5        grey              width, height, maxval;  bytes, or 2 bytes big-endian
    P6        red, green, blue  the same                (maxval above 255)
    P7        any depth         lines WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE, ENDHDR; as P5

Reads, with nothing but numpy: P5 to P7 are not decoded at all, but copied or mapped; a bitmap is in
memory as a whole.

Mapping, index order C: (height, width) bool for bitmaps, **True is white** (the file has 1 for
black); (height, width) for grey, (height, width, depth) for others; uint8, or uint16 for a maxval
above 255. Values are those of the file, also below a maxval of their own.

Metadata, in the namespace ``image``: ``maxval`` where it is not 255 or 65535.

Refused: plain text (P1 to P3); cut files; several images in one file.

Writes: bool (H, W) as P4; uint8 and uint16 (H, W) as P5, (H, W, 3) as P6, (H, W, 2 and 4) as P7. A
suffix that means something else (``.pgm`` for colour) is an error.
"""

from __future__ import annotations

import re
from collections import namedtuple
from math import prod

from raconvert.errors import Corrupt, Unsupported, quoted
from raconvert.plugin import MAYBE, NO, SURE, Array, Bundle, Format, Plan, element, trailing_note

from .metadata import fields_of, metadata_fits, metadata_of, part
from .plan import image_fits, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source, Target

__all__ = ["FORMAT", "plan", "read", "sniff", "split"]

MAX_SIDE = 0x7FFFFFFF
HEADER_BYTES = 1 << 16  # what a header may have, its comments included
_BEGIN = re.compile(rb"P[1-7][ \t\n\v\f\r#]")
_GAP = rb"(?:[ \t\n\v\f\r]|#[^\n\r]*[\n\r])+"
_WORDS = {count: re.compile(rb"P." + (_GAP + rb"([0-9]{1,10})") * count + rb"[ \t\n\v\f\r]")
          for count in (2, 3)}  # fmt: skip
_PAM_TYPES = {2: "GRAYSCALE_ALPHA", 3: "RGB", 4: "RGB_ALPHA"}
_SUFFIXES = {".pbm": "P4", ".pgm": "P5", ".ppm": "P6", ".pam": "P7"}

Header = namedtuple("Header", "magic width height depth maxval start")

# Two pixels of grey, 0 and 255; written by pgmmake and pamcat of netpbm.
_SAMPLE = b"P5\n2 1\n255\n\x00\xff"

FORMAT = Format(
    name="netpbm",
    title="netpbm image (PBM, PGM, PPM, PAM)",
    suffixes=(".pnm", ".pbm", ".pgm", ".ppm", ".pam"),
    magic=tuple((0, b"P%d" % n) for n in range(1, 8)),
    meta="some",
    index_orders="C",
    samples={"two_greys.pgm": _SAMPLE},
    spec="https://netpbm.sourceforge.net/doc/pnm.html",
    losses="only bool, uint8 and uint16; 2 axes, or 3 with 2 to 4 channels; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by a header with enough bytes behind it; two letters alone prove nothing."""
    try:
        _header(source)
    except Unsupported:
        return SURE
    except Corrupt:
        return MAYBE if _BEGIN.match(source.head) else NO
    return SURE


def read(source: Source) -> Bundle:
    """The image as one lazy array, named after the file's stem.

    Shape (height, width[, depth]); bool, uint8 or uint16, as an extent where the file has the
    values verbatim.
    """
    header = _header(source)
    width = 1 if header.maxval < 256 else 2
    stored, odd = element("uint", width, ">"), header.maxval not in (255, 65535)
    shape = (header.height, header.width) + (header.depth,) * (header.depth > 1)
    if header.magic == b"P4":
        stored, odd = element("bool", 1), False
        place: dict[str, Any] = {"data": lambda: _bitmap(source, header)}
    else:
        place = {"extent": source.extent(header.start, prod(shape) * width, width)}
    behind = source.size - header.start - _stored_bytes(header)
    if behind and _BEGIN.match(source.read_at(source.size - behind, 3)):
        remedy = "split the file first, for instance with: pamsplit"
        raise Unsupported("has more than one image", path=source.path, remedy=remedy)
    notes = _left_out(source.read_at(0, header.start), header.depth)
    if behind:
        notes.append(trailing_note(behind, "the pixels"))
    meta = metadata_of({"maxval": header.maxval if odd else None})
    order: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    return Bundle([Array(stored, shape[::-1], **order, **place)], notes=notes)


def _left_out(text: bytes, depth: int) -> list[str]:
    """Notes of what a header says that is not kept: comments, and a tuple type of its own."""
    notes = ["comments of the header are left out"] if b"#" in text else []
    found = re.search(rb"^TUPLTYPE[ \t]+([^\n]*)", text, re.MULTILINE)
    name = found[1].decode("ascii", "replace") if found else ""
    if name and name not in (_PAM_TYPES.get(depth), "GRAYSCALE", "BLACKANDWHITE"):
        notes.append(f"the tuple type {quoted(name)} is left out")
    return notes


def _header(source: Source) -> Header:
    """The header, checked against the size of the file."""
    data = source.read_at(0, HEADER_BYTES) if source.head[:1] == b"P" else b""
    magic = data[:2]
    if _BEGIN.match(data) and magic in (b"P1", b"P2", b"P3"):
        remedy = "make it raw first, for instance with: pnmtopnm"
        raise Unsupported("is netpbm's plain text", path=source.path, remedy=remedy)
    if magic == b"P7":
        numbers, start = _pam(data)
    else:
        words = _WORDS[2 if magic == b"P4" else 3].match(data)
        numbers, start = (list(map(int, words.groups())), words.end()) if words else ([], 0)
        numbers[2:2] = [3 if magic == b"P6" else 1]
    width, height, depth, maxval = (*numbers, 1)[:4] if len(numbers) > 2 else (0, 0, 0, 0)
    if not _BEGIN.match(data) or not (min(width, height, depth) > 0 < maxval < 65536):
        what = "header is damaged, or has no pixels or a maxval that is not 1 to 65535"
        raise Corrupt(what, path=source.path)
    header = Header(magic, width, height, depth, maxval, start)
    need = _stored_bytes(header)
    if max(width, height) > MAX_SIDE or start + need > source.size:
        raise Corrupt(
            "is cut off", path=source.path, expected=f"{need} bytes of pixels from byte {start}",
            got=max(0, source.size - start),
        )  # fmt: skip
    return header


def _pam(data: bytes) -> tuple[list[int], int]:
    """Width, height, depth and maxval, as far as they are there, and where the header ends."""
    end = data.find(b"\nENDHDR\n")
    lines = [line.split() for line in data[: max(0, end)].split(b"\n")]
    fields = {line[0]: line[1] for line in lines if len(line) > 1}
    names = (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL")
    numbers = [fields[name] for name in names if fields.get(name, b"").isdigit()]
    return [int(number) for number in numbers if len(number) < 11], end + len(b"\nENDHDR\n")


def _stored_bytes(header: Header) -> int:
    """The bytes of the pixels in the file."""
    if header.magic == b"P4":
        return int(header.height * -(-header.width // 8))
    width = 1 if header.maxval < 256 else 2
    return int(header.width * header.height * header.depth * width)


def _bitmap(source: Source, header: Header) -> Any:
    import numpy as np

    from raconvert.arrays.blocks import check_memory

    nbytes = _stored_bytes(header)
    count = header.width * header.height
    check_memory(nbytes + 2 * count, source.max_memory, f"'{source.path}': its {count} pixels")
    data = source.read_exact(header.start, nbytes, "the pixels")
    rows = np.frombuffer(data, np.uint8).reshape(header.height, -1)
    return np.unpackbits(rows, axis=1, count=header.width) == 0


def plan(bundle: Bundle) -> Plan:
    """One image of bool, uint8 or uint16, (H, W) or (H, W, 2 to 4), block by block."""

    def write(target: Target) -> None:
        from raconvert.files.copy import write_all

        array = bundle.arrays[0]
        lowest, top = (1, 255) if array.element.nbytes == 1 else (256, 65535)
        maxval = part(fields_of(array), "maxval", int) or top
        maxval = maxval if lowest <= maxval <= top else top
        header = _written_header(array, maxval, target.path)
        file = target.open()
        write_all(file, [header])
        write_all(file, target.counted(_written_pixels(array, maxval, target)))

    held: Any = {"channels": (2, 3, 4), "max_side": MAX_SIDE, "held": "bool, uint8 and uint16"}
    found = [fit for array in bundle.arrays for fit in image_fits(array, "netpbm", **held)]
    found += metadata_fits(bundle, "netpbm", lambda _: {"maxval"})
    return Plan(found, write, names=bundle.names)


def _written_header(array: Array, maxval: int, path: str) -> bytes:
    height, width, depth = (*array.shape, 1)[:3]
    magic = "P4" if array.element.kind == "bool" else {1: "P5", 3: "P6"}.get(depth, "P7")
    expected = _SUFFIXES.get(path.lower()[-4:], magic)
    if depth in _PAM_TYPES and expected == "P7":
        magic = "P7"
    if expected != magic:
        raise Unsupported(
            f"array '{array.name}' of shape {array.shape} would be a {magic} file", path=path,
            expected=f"{expected}, as the suffix says",
            remedy="use the suffix .pnm, which holds all of them",
        )  # fmt: skip
    if magic == "P7":
        lines = f"WIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {maxval}\n"
        return f"P7\n{lines}TUPLTYPE {_PAM_TYPES[depth]}\nENDHDR\n".encode()
    rest = "" if magic == "P4" else f"{maxval}\n"
    return f"{magic}\n{width} {height}\n{rest}".encode()


def _written_pixels(array: Array, maxval: int, target: Target) -> Iterator[Any]:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks, runs

    step = block_bytes(target.max_memory)
    if array.element.kind == "bool":
        for row in runs(array, array.shape[1], step):
            yield np.packbits(~row)
        return
    for block in blocks(array, step):
        if maxval not in (255, 65535) and block.max() > maxval:
            raise Corrupt(
                f"array '{array.name}' has a value above the maxval in its metadata",
                path=target.path, expected=f"at most {maxval}", got=int(block.max()),
                remedy="leave the metadata out with --meta ignore",
            )  # fmt: skip
        yield block.reshape(-1).astype(f">u{array.element.nbytes}", copy=False).view("u1")
