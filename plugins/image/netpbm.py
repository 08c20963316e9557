r"""Netpbm: PBM, PGM, PPM and PAM, bitmaps and samples of 8 or 16 bits, read and write.

Specification: the manual pages pbm(5), pgm(5), ppm(5), pam(5), https://netpbm.sourceforge.net/doc/.
Compared with: netpbm's own tools.

Layout: a text header, then the pixels::

    P1 / P4   bitmap            width, height;           text / 8 pixels in a byte, rows padded
    P2 / P5   grey              width, height, maxval;   text / bytes, or 2 bytes big-endian
    P3 / P6   red, green, blue  the same                 (maxval above 255)
    P7        any depth         lines WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE, ENDHDR; as P5

    words of P1 to P6 are separated by white space, ``#`` begins a comment up to the end of the
    line, one white space ends the header; another image may follow behind the pixels (P4 to P7)

Reads: all of these, here, with nothing but numpy: imageio and Pillow reduce 16-bit colour to 8 bits
and stretch other maxvals. P5 to P7 of one image are not decoded at all, but copied or mapped.

Mapping, index order C: (height, width) bool for bitmaps, **True is white** (the file has 1 for
black); (height, width) for grey, (height, width, depth) for others; uint8, or uint16 for a maxval
above 255. Values are those of the file, also below a maxval of their own. Several images of one
kind give a new first axis.

Metadata, in the namespace ``image``: ``maxval`` where it is not 255 or 65535, ``tuple_type`` where
depth and values do not say it, ``comment`` of P1 to P6.

Refused: cut files; in text, values above maxval and anything behind the pixels; images that differ
in one file.

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
    Element,
    Fit,
    Format,
    Metadata,
    Source,
    element,
    refused,
    type_name,
)

from .lazy import lazily
from .meta import NAMESPACE, fields_of, metadata_fits, part
from .planes import HELD_BY, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAX_SIDE = 0x7FFFFFFF
HEADER_BYTES = 1 << 16  # what a header may have, its comments included
BITMAPS, TEXTS = b"14", b"123"  # the digits of the magic
SPACE = b" \t\n\v\f\r"
_WORD = re.compile(rb"(?:[ \t\n\v\f\r]|#[^\n\r]*[\n\r])*([0-9]+)")
_BEGIN = re.compile(rb"P[1-7][ \t\n\v\f\r]")
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
        _header(source, 0)
    except Corrupt:
        return MAYBE if _BEGIN.match(source.head) else NO
    return SURE


def read(source: Source) -> Bundle:
    """Return the image or the images as one lazy array, named after the file's stem.

    Shape ([images,] height, width[, depth]); bool, uint8 or uint16, as an extent where the file
    has the values verbatim.
    """
    first = _header(source, 0)
    if first.magic[1:] in (b"1", b"2", b"3"):
        starts, notes = [first.start], list[str]()
    else:
        starts, notes = _starts(source, first)
    fields: dict[str, Any] = {}
    if first.maxval not in (255, 65535) and first.magic[1] not in BITMAPS:
        fields["maxval"] = first.maxval
    if first.tuple_type:
        fields["tuple_type"] = first.tuple_type
    if first.comment:
        fields["comment"] = first.comment
    stored = _element(first)
    shape = (first.height, first.width) + (first.depth,) * (first.depth > 1)
    shape = (len(starts),) * (len(starts) > 1) + shape
    closers: list[Callable[[], None]] = []
    array = Array(
        stored,
        shape[::-1],
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAMESPACE: fields} if fields else None),
        **_place(source, first, starts, shape, stored, closers),
    )
    return Bundle([array], notes=notes, closers=closers)


def _place(
    source: Source,
    first: Header,
    starts: list[int],
    shape: tuple[int, ...],
    stored: Element,
    closers: list[Callable[[], None]],
) -> dict[str, Any]:
    """Return the extent of the values, or a promise of them; add to `closers` what closes them."""
    verbatim = first.magic[1] not in BITMAPS + TEXTS
    if verbatim and len(starts) == 1:
        nbytes = prod(shape) * stored.nbytes
        return {"extent": source.extent(first.start, nbytes, stored.nbytes)}

    def images() -> Any:
        from .netpbm_pixels import Pixels

        return Pixels(source, first, starts, shape, stored)

    return {"data": lazily(images, closers)}


def _element(header: Header) -> Element:
    if header.magic[1] in BITMAPS:
        return element("bool", 1)
    return element("uint", 1 if header.maxval < 256 else 2, ">")


# -------------------------------------------------------------------------------------- headers


def _header(source: Source, at: int) -> Header:
    """Return the header at an offset, checked against the size of the file."""
    data = source.read_at(at, HEADER_BYTES) if at else source.head
    magic = data[:2]
    if magic not in (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"P7"):
        raise Corrupt("does not begin as a netpbm file", path=source.path, where=f"byte {at}")
    if not at and len(data) < source.size and b"#" in data:
        data = source.read_at(at, HEADER_BYTES)
    header = _pam(source, data, at) if magic == b"P7" else _pnm(source, data, at)
    if not (0 < header.width <= MAX_SIDE and 0 < header.height <= MAX_SIDE and header.depth > 0):
        raise Corrupt("has no pixels", path=source.path, where=f"byte {at}")
    if not 0 < header.maxval < 65536:
        raise Corrupt("maxval is not 1 to 65535", path=source.path, got=header.maxval)
    need = _stored_bytes(header)
    if header.start + need > source.size:
        raise Corrupt(
            "is cut off",
            path=source.path,
            expected=f"{need} bytes of pixels from byte {header.start}",
            got=max(0, source.size - header.start),
        )
    return header


def _stored_bytes(header: Header) -> int:
    """Return the bytes of the pixels in the file; of text the least there can be."""
    count: int = header.width * header.height * header.depth
    if header.magic == b"P1":
        return count
    if header.magic == b"P4":
        return header.height * -(-header.width // 8)
    if header.magic[1] in TEXTS:
        return 2 * count - 1
    return count * (1 if header.maxval < 256 else 2)


def _pnm(source: Source, data: bytes, at: int) -> Header:
    numbers = []
    place = 2
    if data[2:3] not in _SPACES and data[2:3] != b"#":
        raise Corrupt("does not begin as a netpbm file", path=source.path, where=f"byte {at}")
    for _ in range(2 if data[1] in BITMAPS else 3):
        match = _WORD.match(data, place)
        if match is None or len(match[1]) > 10:
            raise Corrupt("header is damaged", path=source.path, where=f"byte {at + place}")
        numbers.append(int(match[1]))
        place = match.end()
    if data[place : place + 1] not in _SPACES:
        raise Corrupt("header is damaged", path=source.path, where=f"byte {at + place}")
    comments = [text.decode("utf-8", "replace") for text in _COMMENT.findall(data[:place])]
    width, height, maxval = (*numbers, 1)[:3]
    depth = 3 if data[1] in b"36" else 1
    comment = "\n".join(comments)
    return Header(data[:2], width, height, depth, maxval, "", comment, at + place + 1)


_SPACES = tuple(bytes([byte]) for byte in SPACE)


def _pam(source: Source, data: bytes, at: int) -> Header:
    fields: dict[bytes, bytes] = {}
    end = data.find(b"\nENDHDR\n")
    if end < 0 or not data.startswith(b"P7\n"):
        raise Corrupt("header is damaged", path=source.path, where=f"byte {at}")
    for line in data[3:end].split(b"\n"):
        name, _, value = line.strip().partition(b" ")
        if name and not name.startswith(b"#"):
            joined = name == b"TUPLTYPE" and name in fields
            fields[name] = fields[name] + b" " + value.strip() if joined else value.strip()
    numbers = []
    for name in (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL"):
        value = fields.get(name, b"")
        if not value.isdigit() or len(value) > 10:
            raise Corrupt(f"header has no {name.decode()}", path=source.path, where=f"byte {at}")
        numbers.append(int(value))
    width, height, depth, maxval = numbers
    kind = fields.get(b"TUPLTYPE", b"").decode("utf-8", "replace")
    if kind == _PAM_TYPES.get(depth):
        kind = ""
    return Header(b"P7", width, height, depth, maxval, kind, "", at + end + len(b"\nENDHDR\n"))


def _starts(source: Source, first: Header) -> tuple[list[int], list[str]]:
    """Return where the pixels of each image begin, and notes on what else there is."""
    starts = [first.start]
    end = first.start + _stored_bytes(first)
    while end < source.size:
        try:
            header = _header(source, end)
        except Corrupt:
            if len(starts) > 1 or source.read_at(end, 2) == first.magic:
                raise
            return starts, [f"{source.size - end} bytes after the pixels were ignored"]
        kinds = [h._replace(comment="", start=0) for h in (header, first)]
        if kinds[0] != kinds[1]:
            raise Unsupported(
                f"image {len(starts)} is not like the first one",
                path=source.path,
                expected=_words(first),
                got=_words(header),
                remedy="split the file first, for instance with: pamsplit",
            )
        starts.append(header.start)
        end = header.start + _stored_bytes(header)
    return starts, []


def _words(header: Header) -> str:
    size = f"{header.width} × {header.height} × {header.depth}"
    return f"{header.magic.decode()} {size}, maxval {header.maxval}"


# -------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what netpbm would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        found += _array_fits(array)
    kept = frozenset({"maxval", "tuple_type", "comment"})
    return found + metadata_fits(bundle, "netpbm", kept)


def _array_fits(array: Array) -> list[Fit]:
    found = []
    kind, nbytes = array.element[:2]
    if (kind, nbytes) not in (("uint", 1), ("uint", 2), ("bool", 1)):
        reason = f"netpbm holds bool, uint8 and uint16, not {type_name(array.element)}"
        numeric = kind in ("int", "uint", "float", "bfloat")
        flag = "--dtype uint8, --dtype uint16 or --scale" if numeric else None
        found.append(refused(array.name, "type", reason, flag))
    shape = array.shape
    if 0 in shape:
        reason = f"netpbm has no image without pixels: {shape}"
        found.append(refused(array.name, "shape", reason))
    elif max(shape, default=0) > MAX_SIDE:
        found.append(refused(array.name, "shape", f"a side is above {MAX_SIDE}" + HELD_BY))
    elif not (array.ndim == 2 or (array.ndim == 3 and shape[2] in (2, 3, 4) and kind != "bool")):
        reason = f"an image of netpbm has the shape (H, W) or (H, W, 2 to 4), not {shape}"
        flag = "--planes" if array.ndim > 2 else None
        found.append(refused(array.name, "shape", reason + ("" if flag else HELD_BY), flag))
    return found


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle, block by block."""
    from raconvert.files.copy import write_all

    array = bundle.arrays[0]
    header = _written_header(array, target)
    file = target.open()
    write_all(file, [header])
    write_all(file, target.counted(_written_pixels(array, target)))


def _written_header(array: Array, target: Target) -> bytes:
    kind, nbytes = array.element[:2]
    fields = fields_of(array)
    height, width = array.shape[:2]
    depth = array.shape[2] if array.ndim == 3 else 1
    tuple_type = part(fields, "tuple_type", str) or ""
    maxval = part(fields, "maxval", int)
    top = 255 if nbytes == 1 else 65535
    lowest = 1 if nbytes == 1 else 256
    maxval = maxval if maxval is not None and lowest <= maxval <= top else top
    if kind == "bool":
        magic, rest = "P4", ""
    elif depth in (1, 3) and not tuple_type and not target.path.lower().endswith(".pam"):
        magic, rest = ("P5" if depth == 1 else "P6"), f"{maxval}\n"
    else:
        magic, rest = "P7", ""
    expected = _SUFFIXES.get(target.path.lower()[-4:])
    if expected not in (None, magic):
        raise Unsupported(
            f"array '{array.name}' of shape {array.shape} would be a {magic} file",
            path=target.path,
            expected=f"{expected}, as the suffix says",
            remedy="use the suffix .pnm, which holds all of them",
        )
    if magic == "P7":
        name = tuple_type.replace("\n", " ") or _PAM_TYPES[depth]
        lines = f"WIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {maxval}\nTUPLTYPE {name}"
        return f"P7\n{lines}\nENDHDR\n".encode()
    comment = part(fields, "comment", str) or ""
    lines = "".join(f"# {line}\n" for line in comment.splitlines())[: HEADER_BYTES // 8]
    if lines and not lines.endswith("\n"):
        lines = ""
    return f"{magic}\n{lines}{width} {height}\n{rest}".encode()


def _written_pixels(array: Array, target: Target) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks, runs

    step = block_bytes(target.max_memory)
    if array.element.kind == "bool":
        for row in runs(array, array.shape[1], step):
            yield np.packbits(~row)
        return
    maxval = _maxval_of(array)
    for block in blocks(array, step):
        if maxval is not None and block.max() > maxval:
            raise Corrupt(
                f"array '{array.name}' has a value above the maxval in its metadata",
                path=target.path, expected=f"at most {maxval}", got=int(block.max()),
                remedy="leave the metadata out with --meta ignore",
            )  # fmt: skip
        yield block.reshape(-1).astype(f">u{array.element.nbytes}", copy=False).view("u1")


def _maxval_of(array: Array) -> int | None:
    """Return the maxval of the metadata if it is one that goes into the header."""
    maxval = part(fields_of(array), "maxval", int)
    lowest, top = (1, 255) if array.element.nbytes == 1 else (256, 65535)
    return maxval if maxval is not None and lowest <= maxval < top else None
