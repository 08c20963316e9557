r"""Netpbm: PBM, PGM, PPM and PAM, bitmaps and samples of 8 or 16 bits, read and write.

Specification: the manual pages pbm(5), pgm(5), ppm(5), pam(5), https://netpbm.sourceforge.net/doc/.
Compared with: netpbm's own tools.

Layout: a text header, then the pixels::

    P1 / P4   bitmap            width, height;           text / 8 pixels in a byte, rows padded
    P2 / P5   grey              width, height, maxval;   text / bytes, or 2 bytes big-endian
    P3 / P6   red, green, blue  the same                 (maxval above 255)
    P7        any depth         lines WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE, ENDHDR; as P5

    words of P1 to P6 are separated by white space, ``#`` begins a comment up to the end of the
    line, one white space ends the header

Reads: all of these, with nothing but numpy: imageio and Pillow reduce 16-bit colour to 8 bits and
stretch other maxvals. P5 to P7 are not decoded at all, but copied or mapped; a bitmap or a text is
in memory as a whole.

Mapping, index order C: (height, width) bool for bitmaps, **True is white** (the file has 1 for
black); (height, width) for grey, (height, width, depth) for others; uint8, or uint16 for a maxval
above 255. Values are those of the file, also below a maxval of their own.

Metadata, in the namespace ``image``: ``maxval`` where it is not 255 or 65535, ``tuple_type`` where
depth and values do not say it, ``comment`` of P1 to P6.

Refused: cut files; in text, values above maxval and anything behind the pixels; several images in
one file (``pamsplit`` makes files of them).

Writes: bool (H, W) as P4; uint8 and uint16 (H, W) as P5, (H, W, 3) as P6, (H, W, 1, 2 and 4) as P7.
A suffix that means something else (``.pgm`` for colour) is an error.
"""

from __future__ import annotations

import re
from collections import namedtuple
from math import prod

from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Metadata,
    Source,
    element,
    refused,
    trailing_note,
)

from .metadata import NAMESPACE, fields_of, metadata_fits, part
from .plan import HELD_BY, split, type_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAX_SIDE = 0x7FFFFFFF
HEADER_BYTES = 1 << 16  # what a header may have, its comments included
BITMAPS, TEXTS = b"14", b"123"  # the digits of the magic
TEXT_COPIES = 4  # of a text and its numbers that there are at once
SPACE = b" \t\n\v\f\r"
_WORD = re.compile(rb"(?:[ \t\n\v\f\r]|#[^\n\r]*[\n\r])*([0-9]{1,10})")
_BEGIN = re.compile(rb"P[1-7][ \t\n\v\f\r#]")
_COMMENT = re.compile(rb"#[ \t]?([^\n\r]*)[\n\r]")
_PAM_TYPES = {1: "GRAYSCALE", 2: "GRAYSCALE_ALPHA", 3: "RGB", 4: "RGB_ALPHA"}
_SUFFIXES = {".pbm": "P4", ".pgm": "P5", ".ppm": "P6", ".pam": "P7"}

Header = namedtuple("Header", "magic width height depth maxval tuple_type comment start")

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
    losses="only bool, uint8 and uint16; 2 axes, or 3 with 1 to 4 channels; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by a header with enough bytes behind it; two letters alone prove nothing."""
    try:
        _header(source)
    except Corrupt:
        return MAYBE if _BEGIN.match(source.head) else NO
    return SURE


def read(source: Source) -> Bundle:
    """Return the image as one lazy array, named after the file's stem.

    Shape (height, width[, depth]); bool, uint8 or uint16, as an extent where the file has the
    values verbatim.
    """
    header = _header(source)
    digit = header.magic[1]
    fields = {name: value for name in ("tuple_type", "comment") if (value := getattr(header, name))}
    if header.maxval not in (255, 65535) and digit not in BITMAPS:
        fields["maxval"] = header.maxval
    if digit in BITMAPS:
        stored = element("bool", 1)
    else:
        stored = element("uint", 1 if header.maxval < 256 else 2, ">")
    shape = (header.height, header.width) + (header.depth,) * (header.depth > 1)
    notes: list[str] = []
    place: dict[str, Any]
    if digit in TEXTS or digit in BITMAPS:
        place = {"data": lambda: _decoded(source, header).reshape(shape)}
    else:
        nbytes = prod(shape) * stored.nbytes
        place = {"extent": source.extent(header.start, nbytes, stored.nbytes)}
    behind = source.size - header.start - _stored_bytes(header)
    if digit not in TEXTS and behind:
        if _BEGIN.match(source.read_at(source.size - behind, 3)):
            remedy = "split the file first, for instance with: pamsplit"
            raise Unsupported("has more than one image", path=source.path, remedy=remedy)
        notes.append(trailing_note(behind, "the pixels"))
    meta = Metadata(formats={NAMESPACE: fields} if fields else None)
    order: dict[str, Any] = {"name": source.stem, "index_order": "C", "meta": meta}
    return Bundle([Array(stored, shape[::-1], **order, **place)], notes=notes)


# -------------------------------------------------------------------------------------- headers


def _header(source: Source) -> Header:
    """The header, checked against the size of the file."""
    data = source.head
    if b"#" in data or data.startswith(b"P7"):
        data = source.read_at(0, HEADER_BYTES)
    header = _pam(source, data) if data.startswith(b"P7") else _pnm(source, data)
    if not (0 < header.width <= MAX_SIDE and 0 < header.height <= MAX_SIDE and header.depth > 0):
        raise Corrupt("has no pixels", path=source.path)
    if not 0 < header.maxval < 65536:
        raise Corrupt("maxval is not 1 to 65535", path=source.path, got=header.maxval)
    need = _stored_bytes(header)
    if header.start + need > source.size:
        raise Corrupt(
            "is cut off", path=source.path,
            expected=f"{need} bytes of pixels from byte {header.start}",
            got=max(0, source.size - header.start),
        )  # fmt: skip
    return header


def _stored_bytes(header: Header) -> int:
    """The bytes of the pixels in the file; of text the least there can be."""
    count: int = header.width * header.height * header.depth
    if header.magic == b"P4":
        return header.height * -(-header.width // 8)
    if header.magic[1] in TEXTS:
        return count if header.magic == b"P1" else 2 * count - 1
    return count * (1 if header.maxval < 256 else 2)


def _pnm(source: Source, data: bytes) -> Header:
    numbers, place = [], 2
    for _ in range(2 if data[1:2] in (b"1", b"4") else 3):
        match = _WORD.match(data, place)
        if match is None or data[2:3] not in (*_SPACES, b"#"):
            raise Corrupt("header is damaged", path=source.path, where=f"byte {place}")
        numbers.append(int(match[1]))
        place = match.end()
    if data[place : place + 1] not in _SPACES:
        raise Corrupt("header is damaged", path=source.path, where=f"byte {place}")
    width, height, maxval = (*numbers, 1)[:3]
    comments = [text.decode("utf-8", "replace") for text in _COMMENT.findall(data[:place])]
    depth = 3 if data[1] in b"36" else 1
    return Header(data[:2], width, height, depth, maxval, "", "\n".join(comments), place + 1)


_SPACES = tuple(bytes([byte]) for byte in SPACE)


def _pam(source: Source, data: bytes) -> Header:
    fields: dict[bytes, bytes] = {}
    end = data.find(b"\nENDHDR\n")
    for line in data[3 : max(0, end)].split(b"\n"):
        name, _, value = line.strip().partition(b" ")
        if name and not name.startswith(b"#"):
            joined = name == b"TUPLTYPE" and name in fields
            fields[name] = fields[name] + b" " + value.strip() if joined else value.strip()
    numbers = []
    for name in (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL"):
        value = fields.get(name, b"")
        if not data.startswith(b"P7\n") or not value.isdigit() or len(value) > 10:
            raise Corrupt(f"header is damaged or has no {name.decode()}", path=source.path)
        numbers.append(int(value))
    kind = fields.get(b"TUPLTYPE", b"").decode("utf-8", "replace")
    usual = kind == _PAM_TYPES.get(numbers[2])
    width, height, depth, maxval = numbers
    start = end + len(b"\nENDHDR\n")
    return Header(b"P7", width, height, depth, maxval, "" if usual else kind, "", start)


# --------------------------------------------------------------------------------------- pixels


def _decoded(source: Source, header: Header) -> np.ndarray[Any, Any]:
    """The pixels of a bitmap or a text, one after the other; the file is in memory as a whole."""
    import numpy as np

    from raconvert.arrays.blocks import check_memory

    count = header.width * header.height * header.depth
    text = header.magic[1] in TEXTS
    nbytes = source.size - header.start if text else _stored_bytes(header)
    need = TEXT_COPIES * (nbytes + 4 * count) if text else nbytes + 2 * count
    check_memory(need, source.max_memory, f"'{source.path}': its {count} pixels")
    data = source.read_exact(header.start, nbytes, "the pixels")
    if header.magic == b"P4":
        rows = np.frombuffer(data, np.uint8).reshape(header.height, -1)
        return np.unpackbits(rows, axis=1, count=header.width).reshape(-1) == 0
    data = re.sub(rb"#[^\n\r]*", b" ", data)
    digits = data.translate(None, SPACE)
    values = np.empty(0, np.uint32)
    if header.magic == b"P1":
        if not digits.translate(None, b"01"):
            values = np.frombuffer(digits, np.uint8) - np.uint32(ord("0"))
    elif not digits.translate(None, b"0123456789") and not re.search(rb"[0-9]{10}", data):
        values = np.fromstring(data, np.uint32, sep=" ") if digits else values
    if len(values) != count:
        raise Corrupt(
            "text of the pixels is damaged, cut off, or followed by something else",
            path=source.path, expected=f"{count} numbers", got=len(values) or None,
        )  # fmt: skip
    if values.max() > header.maxval:
        raise Corrupt(
            "has a value above its maxval", path=source.path,
            expected=f"at most {header.maxval}", got=int(values.max()),
        )  # fmt: skip
    return (
        values == 0
        if header.magic == b"P1"
        else values.astype(np.uint8 if header.maxval < 256 else ">u2")
    )


# -------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what netpbm would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        found += type_fits(array, "netpbm", "bool, uint8 and uint16")
        shape, kind = array.shape, array.element.kind
        if 0 in shape:
            reason = f"netpbm has no image without pixels: {shape}"
            found.append(refused(array.name, "shape", reason))
        elif max(shape, default=0) > MAX_SIDE:
            found.append(refused(array.name, "shape", f"a side is above {MAX_SIDE}" + HELD_BY))
        elif array.ndim != 2 and not (array.ndim == 3 and shape[2] in (2, 3, 4) and kind != "bool"):
            reason = f"an image of netpbm has the shape (H, W) or (H, W, 2 to 4), not {shape}"
            flag = "--planes" if array.ndim > 2 else None
            found.append(refused(array.name, "shape", reason + ("" if flag else HELD_BY), flag))
    return found + metadata_fits(bundle, "netpbm", frozenset({"maxval", "tuple_type", "comment"}))


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle, block by block."""
    from raconvert.files.copy import write_all

    array = bundle.arrays[0]
    fields = fields_of(array)
    lowest, top = (1, 255) if array.element.nbytes == 1 else (256, 65535)
    maxval = part(fields, "maxval", int) or top
    maxval = maxval if lowest <= maxval <= top else top
    header = _written_header(array, fields, maxval, target.path)
    file = target.open()
    write_all(file, [header])
    write_all(
        file, target.counted(_written_pixels(array, maxval if maxval < top else None, target))
    )


def _written_header(array: Array, fields: dict[str, Any], maxval: int, path: str) -> bytes:
    height, width, depth = (*array.shape, 1)[:3]
    tuple_type = part(fields, "tuple_type", str) or ""
    suffix = path.lower()[-4:]
    if array.element.kind == "bool":
        magic, rest = "P4", ""
    elif depth in (1, 3) and not tuple_type and suffix != ".pam":
        magic, rest = ("P5" if depth == 1 else "P6"), f"{maxval}\n"
    else:
        magic, rest = "P7", ""
    expected = _SUFFIXES.get(suffix, magic)
    if expected != magic:
        raise Unsupported(
            f"array '{array.name}' of shape {array.shape} would be a {magic} file", path=path,
            expected=f"{expected}, as the suffix says",
            remedy="use the suffix .pnm, which holds all of them",
        )  # fmt: skip
    if magic == "P7":
        name = tuple_type.replace("\n", " ") or _PAM_TYPES[depth]
        lines = f"WIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {maxval}\nTUPLTYPE {name}"
        return f"P7\n{lines}\nENDHDR\n".encode()
    comment = part(fields, "comment", str) or ""
    lines = "".join(f"# {line}\n" for line in comment.splitlines())
    lines = lines if len(lines) < HEADER_BYTES // 8 else ""
    return f"{magic}\n{lines}{width} {height}\n{rest}".encode()


def _written_pixels(
    array: Array, maxval: int | None, target: Target
) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks, runs

    step = block_bytes(target.max_memory)
    if array.element.kind == "bool":
        for row in runs(array, array.shape[1], step):
            yield np.packbits(~row)
        return
    for block in blocks(array, step):
        if maxval is not None and block.max() > maxval:
            raise Corrupt(
                f"array '{array.name}' has a value above the maxval in its metadata",
                path=target.path, expected=f"at most {maxval}", got=int(block.max()),
                remedy="leave the metadata out with --meta ignore",
            )  # fmt: skip
        yield block.reshape(-1).astype(f">u{array.element.nbytes}", copy=False).view("u1")
