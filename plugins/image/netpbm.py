r"""Netpbm: PBM, PGM, PPM and PAM, bitmaps and samples of 8 or 16 bits, read and write.

Specification: the manual pages pbm(5), pgm(5), ppm(5), pam(5), https://netpbm.sourceforge.net/doc/.
Compared with: netpbm's own tools.

Reads, with nothing but numpy: raw samples (P5, P6, P7) are not decoded at all, but copied or
mapped; bitmaps (P4, and those of PAM) are in memory as a whole; plain text (P1 to P3) is parsed a
piece at a time.

Mapping, index order C: (height, width) bool for bitmaps, **True is white** (the file of a PBM has 1
for black); (height, width) for grey, (height, width, 3) for colour, (height, width, depth) for PAM;
uint8, or uint16 for a maxval above 255. Values are those of the file, also below a maxval of their
own. BLACKANDWHITE of depth 1 is a bitmap.

Metadata, in the namespace ``image``: ``maxval`` where it is not 255 or 65535, and the
``tuple_type`` of PAM where it is not what its depth says (GRAYSCALE, GRAYSCALE_ALPHA, RGB,
RGB_ALPHA); not written.

Refused: several images in one file (``pamsplit``); cut files; samples of plain text above its
maxval, more of them than the header has, and a last one without an end of line, which may be cut.

Writes: bool (H, W) as P4; uint8 and uint16 (H, W) as P5, (H, W, 3) as P6, (H, W, 2) and (H, W, 4),
grey and RGB with alpha, as P7; into ``.pam`` all of them as P7. A suffix that means something else
(``.pgm`` for colour) is an error.
"""

from __future__ import annotations

import re

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Plan,
    element,
    split,
    trailing_note,
)

from .metadata import metadata_of
from .plan import ALPHAS, COLOR, GREY, image_fits, metadata_fits
from .programs import pillow_programs as programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source, Target

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAX_SIDE = 0x7FFFFFFF
_WHOLE = re.compile(rb"[0-9]{1,10}")
_BEGIN = re.compile(rb"P[1-7][ \t\n\v\f\r#]")
_NUMBER = rb"(?:[ \t\n\v\f\r]|#[^\n\r]*[\n\r])+([0-9]{1,10})"
_HEADER = re.compile(
    rb"(?:(P[14])" + 2 * _NUMBER + rb"|(P[2356])" + 3 * _NUMBER + rb")[ \t\n\v\f\r]"
)
_PAM = re.compile(rb"P7[ \t\r]*\n(?:[^\n]*\n)*?[ \t]*ENDHDR[ \t\r]*\n")
_WORDS = (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL", b"TUPLTYPE")
TUPLE_TYPES = {1: "GRAYSCALE", 2: "GRAYSCALE_ALPHA", 3: "RGB", 4: "RGB_ALPHA"}
BITMAP = "BLACKANDWHITE"
_SUFFIXES = {".pbm": "P4", ".pgm": "P5", ".ppm": "P6", ".pam": "P7"}

# Two pixels of grey, 0 and 255; written by pgmmake and pamcat of netpbm.
_SAMPLE = b"P5\n2 1\n255\n\x00\xff"

FORMAT = Format(
    name="netpbm",
    title="netpbm image (PBM, PGM, PPM, PAM)",
    suffixes=(".pnm", ".pbm", ".pgm", ".ppm", ".pam"),
    magic=tuple((0, b"P%d" % n) for n in range(1, 8)),
    samples={"two_greys.pgm": _SAMPLE},
    spec="https://netpbm.sourceforge.net/doc/pnm.html",
    losses="only bool, uint8 and uint16; 2 axes, or 3 with 2 to 4 channels; no metadata",
)


def sniff(source: Source) -> int:
    """Return SURE for a header with enough bytes behind it, MAYBE for its first letters alone."""
    try:
        _header(source)
    except Corrupt:
        return MAYBE if _BEGIN.match(source.head) else NO
    return SURE


class Header(Record):
    """The text of the header, `dims` as RA has them, maxval, and the bytes of the pixels.

    `kind` is ``raw``, ``plain``, or ``bits`` and ``bytes`` of a bitmap. `tuple_type` is that of PAM
    if it is not the usual one.
    """

    text: bytes
    dims: tuple[int, ...]
    maxval: int
    nbytes: int
    kind: str
    tuple_type: str

    @property
    def bitmap(self) -> bool:
        """True if the pixels are black and white."""
        return self.kind in ("bits", "bytes") or self.text.startswith(b"P1")


def read(source: Source) -> Bundle:
    """Read one lazy array, named after the file's stem: (height, width[, depth]), bool or uint.

    Raises `Corrupt` for a damaged file, `Unsupported` for several images.
    """
    header = _header(source)
    width, start = 1 if header.maxval < 256 else 2, len(header.text)
    end = start + header.nbytes if header.kind != "plain" else source.size
    if _BEGIN.match(source.read_at(end, 3)):
        remedy = "split the file first, for instance with: pamsplit"
        raise Unsupported("has more than one image", path=source.path, remedy=remedy)
    notes = ["comments of the header are left out"] if b"#" in header.text else []
    notes += [trailing_note(source.size - end, "the pixels")] if end < source.size else []
    usual = header.maxval in (255, 65535) or header.bitmap
    meta = metadata_of({
        "maxval": None if usual else header.maxval, "tuple_type": header.tuple_type or None,
    })  # fmt: skip
    order = ">" if header.kind == "raw" and width == 2 else "<"
    stored = element("bool", 1) if header.bitmap else element("uint", width, order)
    data: dict[str, Any] = {"extent": source.extent(start, header.nbytes, width)}
    if header.kind == "plain":
        from .netpbm_text import Text

        data = {"data": lambda: Text(source, start, header.dims[::-1], header.maxval)}
    elif header.bitmap:
        data = {"data": lambda: _bitmap(source, header)}
    array = Array(stored, header.dims, name=source.stem, index_order="C", meta=meta, **data)
    return Bundle([array], notes=notes)


def _header(source: Source) -> Header:
    """Read the header. Raises `Corrupt` if it is damaged, or the file has fewer bytes."""
    data = source.read_at(0, source.limits.short_header_bytes) if _BEGIN.match(source.head) else b""
    header = _pam(data, source.path) if data.startswith(b"P7") else _pnm(data, source.path)
    start = len(header.text)
    if max(header.dims) > MAX_SIDE or start + header.nbytes > source.size:
        raise Corrupt(
            "is cut off", path=source.path, got=max(0, source.size - start),
            expected=f"{header.nbytes} bytes of pixels from byte {start}",
        )  # fmt: skip
    return header


def _pnm(data: bytes, path: str) -> Header:
    """The header of PBM, PGM and PPM; `nbytes` of plain text is the least that it can have."""
    match = _HEADER.match(data)
    magic, *words = [word for word in match.groups() if word] if match else [b"", 0, 0]
    width, height, maxval = map(int, [*words, 1][:3])
    if not (match and min(width, height) > 0 < maxval < 65536):
        raise _damaged(path)
    depth = 3 if magic in (b"P3", b"P6") else 1
    count = width * height * depth
    nbytes, kind = count * (1 if maxval < 256 else 2), "raw"
    if magic == b"P4":
        nbytes, kind = height * -(-width // 8), "bits"
    elif magic in (b"P1", b"P2", b"P3"):
        nbytes, kind = count if magic == b"P1" else 2 * count - 1, "plain"
    dims = (depth,) * (depth > 1) + (width, height)
    return Header(data[: match.end()], dims, maxval, nbytes, kind, "")


def _pam(data: bytes, path: str) -> Header:
    """The header of PAM: lines of a word and its value, in any order, up to ENDHDR."""
    match = _PAM.match(data)
    fields: dict[bytes, list[bytes]] = {}
    for line in match[0].split(b"\n")[1:-2] if match else ():
        word, *value = line.split(None, 1) or [b"#"]
        if word in _WORDS:
            fields.setdefault(word, []).append(b"".join(value).strip())
        elif not word.startswith(b"#"):
            raise _damaged(path)
    words = [fields.get(word, [b""]) for word in (b"WIDTH", b"HEIGHT", b"DEPTH", b"MAXVAL")]
    if match is None or not all(len(word) == 1 and _WHOLE.fullmatch(word[0]) for word in words):
        raise _damaged(path)
    width, height, depth, maxval = (int(word[0]) for word in words)
    if not (min(width, height, depth) > 0 < maxval < 65536):
        raise _damaged(path)
    tuple_type = b" ".join(fields.get(b"TUPLTYPE", ())).decode("utf-8", "replace")
    kind = "bytes" if (tuple_type, depth, maxval) == (BITMAP, 1, 1) else "raw"
    dims = (depth,) * (depth > 1) + (width, height)
    nbytes = width * height * depth * (1 if maxval < 256 else 2)
    usual = tuple_type == TUPLE_TYPES.get(depth) or kind == "bytes"
    return Header(match[0], dims, maxval, nbytes, kind, "" if usual else tuple_type)


def _damaged(path: str) -> Corrupt:
    """The error for a header that contradicts the format."""
    what = "header is damaged, or has no pixels or a maxval that is not 1 to 65535"
    return Corrupt(what, path=path)


def _bitmap(source: Source, header: Header) -> Any:
    """Read the pixels of a bitmap; True is white."""
    import numpy as np

    from raconvert.arrays.memory import check_memory

    width, height = header.dims
    what = f"'{source.path}': its {width * height} pixels"
    check_memory(header.nbytes + 2 * width * height, source.max_memory, what)
    data = source.read_exact(len(header.text), header.nbytes, "the pixels")
    rows = np.frombuffer(data, np.uint8).reshape(height, -1)
    if header.kind == "bits":
        return np.unpackbits(rows, axis=1, count=width) == 0
    if rows.max() > 1:
        raise Corrupt("has pixels that are neither black nor white", path=source.path)
    return rows == 1


def plan(bundle: Bundle) -> Plan:
    """Plan one image of bool, uint8 or uint16, (H, W) or (H, W, 2 to 4), written block by block."""

    def write(target: Target) -> None:
        from raconvert.files.copy import write_all

        array, file = bundle.arrays[0], target.open()
        write_all(file, [_written_header(array, target.path)])
        pixels = _written_pixels(array, target.path.lower().endswith(".pam"), target.max_memory)
        write_all(file, target.counted(pixels))

    types, forms = "bool, uint8 and uint16", (GREY, COLOR, *ALPHAS)
    fits = image_fits(bundle.arrays[0], "netpbm", MAX_SIDE, types, forms)
    fits += metadata_fits(bundle, "netpbm")
    return Plan(fits, write, names=bundle.names)


def _written_header(array: Array, path: str) -> bytes:
    """The header of an array. Raises `Unsupported` if the suffix means another kind of image."""
    height, width, depth = (*array.shape, 1)[:3]
    is_bitmap = array.element.kind == "bool"
    magic = "P4" if is_bitmap else {1: "P5", 3: "P6"}.get(depth, "P7")
    expected = _SUFFIXES.get(path.lower()[-4:], magic)
    if expected not in (magic, "P7"):
        raise Unsupported(
            f"array '{array.name}' of shape {array.shape} would be a {magic} file", path=path,
            expected=f"{expected}, as the suffix says",
            remedy="use the suffix .pnm, which holds all of them",
        )  # fmt: skip
    maxval = 1 if is_bitmap else 256**array.element.nbytes - 1
    if expected == "P7":
        tuple_type = BITMAP if is_bitmap else TUPLE_TYPES[depth]
        return (
            f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {maxval}\n"
            f"TUPLTYPE {tuple_type}\nENDHDR\n"
        ).encode()
    line = "" if is_bitmap else f"{maxval}\n"
    return f"{magic}\n{width} {height}\n{line}".encode()


def _written_pixels(array: Array, as_pam: bool, max_memory: int) -> Iterator[Any]:
    """Yield the pixels as bytes: bitmaps packed in rows unless `as_pam`, big-endian samples."""
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks, runs

    step = block_bytes(max_memory)
    if array.element.kind == "bool" and not as_pam:
        yield from (np.packbits(~row) for row in runs(array, array.shape[1], step))
        return
    for block in blocks(array, step):
        yield block.reshape(-1).astype(f">u{array.element.nbytes}", copy=False).view("u1")
