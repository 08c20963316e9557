r"""Netpbm: raw PBM, PGM and PPM, bitmaps and samples of 8 or 16 bits, read and write.

Specification: the manual pages pbm(5), pgm(5), ppm(5), https://netpbm.sourceforge.net/doc/.
Compared with: netpbm's own tools.

Reads, with nothing but numpy: PGM and PPM (P5, P6) are not decoded at all, but copied or mapped; a
bitmap (P4) is in memory as a whole.

Mapping, index order C: (height, width) bool for bitmaps, **True is white** (the file has 1 for
black); (height, width) for grey, (height, width, 3) for colour; uint8, or uint16 for a maxval above
255. Values are those of the file, also below a maxval of their own.

Metadata, in the namespace ``image``: ``maxval`` where it is not 255 or 65535; not written.

Refused: PAM (P7: ``pamtopng``); plain text (P1 to P3: ``pnmtopnm``); several images in one file
(``pamsplit``); cut files.

Writes: bool (H, W) as P4; uint8 and uint16 (H, W) as P5, (H, W, 3) as P6. A suffix that means
something else (``.pgm`` for colour) is an error.
"""

from __future__ import annotations

import re

from raconvert.conversion.planes import split
from raconvert.errors import Corrupt, Unsupported
from raconvert.plugin import MAYBE, NO, SURE, Array, Bundle, Format, Plan, element, trailing_note

from .metadata import metadata_fits, metadata_of
from .plan import image_fits
from .programs import pillow_programs as programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Source, Target

__all__ = ["FORMAT", "plan", "programs", "read", "sniff", "split"]

MAX_SIDE = 0x7FFFFFFF
_BEGIN = re.compile(rb"P[1-7][ \t\n\v\f\r#]")
_NUMBER = rb"(?:[ \t\n\v\f\r]|#[^\n\r]*[\n\r])+([0-9]{1,10})"
_HEADER = re.compile(rb"(?:(P4)" + 2 * _NUMBER + rb"|(P[56])" + 3 * _NUMBER + rb")[ \t\n\v\f\r]")
_SUFFIXES = {".pbm": "P4", ".pgm": "P5", ".ppm": "P6"}
_WAYS_OUT = {b"P1": "pnmtopnm", b"P2": "pnmtopnm", b"P3": "pnmtopnm", b"P7": "pamtopng"}

# Two pixels of grey, 0 and 255; written by pgmmake and pamcat of netpbm.
_SAMPLE = b"P5\n2 1\n255\n\x00\xff"

FORMAT = Format(
    name="netpbm",
    title="netpbm image (PBM, PGM, PPM)",
    suffixes=(".pnm", ".pbm", ".pgm", ".ppm"),
    magic=tuple((0, b"P%d" % n) for n in range(1, 8)),
    samples={"two_greys.pgm": _SAMPLE},
    spec="https://netpbm.sourceforge.net/doc/pnm.html",
    losses="only bool, uint8 and uint16; 2 axes, or 3 with 3 channels; no metadata",
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
    """One lazy array, named after the file's stem: (height, width[, 3]), bool, uint8 or uint16."""
    header, dims, maxval, nbytes = _header(source)
    bits, width = header.startswith(b"P4"), 1 if maxval < 256 else 2
    end = len(header) + nbytes
    if _BEGIN.match(source.read_at(end, 3)):
        remedy = "split the file first, for instance with: pamsplit"
        raise Unsupported("has more than one image", path=source.path, remedy=remedy)
    notes = ["comments of the header are left out"] if b"#" in header else []
    notes += [trailing_note(source.size - end, "the pixels")] if end < source.size else []
    data: dict[str, Any] = {"data": lambda: _bitmap(source, len(header), dims)}
    if not bits:
        data = {"extent": source.extent(len(header), nbytes, width)}
    meta = metadata_of({"maxval": None if bits or maxval in (255, 65535) else maxval})
    stored = element("bool", 1) if bits else element("uint", width, ">")
    array = Array(stored, dims, name=source.stem, index_order="C", meta=meta, **data)
    return Bundle([array], notes=notes)


def _header(source: Source) -> tuple[bytes, tuple[int, ...], int, int]:
    """The text of the header, dims, maxval, and the bytes of the pixels, which the file has."""
    data = source.read_at(0, source.limits.short_header_bytes) if _BEGIN.match(source.head) else b""
    if tool := _WAYS_OUT.get(data[:2]):
        what = "is a PAM file" if tool == "pamtopng" else "is netpbm's plain text"
        remedy = f"convert it first, for instance with: {tool}"
        raise Unsupported(what, path=source.path, remedy=remedy)
    match = _HEADER.match(data)
    magic, *words = [word for word in match.groups() if word] if match else [b"", 0, 0]
    width, height, maxval = map(int, [*words, 1][:3])
    if not (match and min(width, height) > 0 < maxval < 65536):
        what = "header is damaged, or has no pixels or a maxval that is not 1 to 65535"
        raise Corrupt(what, path=source.path)
    depth, start = 3 if magic == b"P6" else 1, match.end()
    row = -(-width // 8) if magic == b"P4" else width * depth * (1 if maxval < 256 else 2)
    if max(width, height) > MAX_SIDE or start + height * row > source.size:
        raise Corrupt(
            "is cut off", path=source.path, got=max(0, source.size - start),
            expected=f"{height * row} bytes of pixels from byte {start}",
        )  # fmt: skip
    return data[:start], (depth,) * (depth > 1) + (width, height), maxval, height * row


def _bitmap(source: Source, start: int, dims: tuple[int, ...]) -> Any:
    import numpy as np

    from raconvert.arrays.memory import check_memory

    width, height = dims
    row = -(-width // 8)
    what = f"'{source.path}': its {width * height} pixels"
    check_memory(height * row + 2 * width * height, source.max_memory, what)
    data = source.read_exact(start, height * row, "the pixels")
    rows = np.frombuffer(data, np.uint8).reshape(height, row)
    return np.unpackbits(rows, axis=1, count=width) == 0


def plan(bundle: Bundle) -> Plan:
    """Plan one image of bool, uint8 or uint16, (H, W) or (H, W, 3), written block by block."""

    def write(target: Target) -> None:
        from raconvert.files.copy import write_all

        array, file = bundle.arrays[0], target.open()
        write_all(file, [_written_header(array, target.path)])
        write_all(file, target.counted(_written_pixels(array, target.max_memory)))

    fits = image_fits(bundle.arrays[0], "netpbm", MAX_SIDE, "bool, uint8 and uint16")
    fits += metadata_fits(bundle, "netpbm")
    return Plan(fits, write, names=bundle.names)


def _written_header(array: Array, path: str) -> bytes:
    height, width = array.shape[:2]
    bits = array.element.kind == "bool"
    magic = "P4" if bits else "P5" if array.ndim == 2 else "P6"
    expected = _SUFFIXES.get(path.lower()[-4:], magic)
    if expected != magic:
        raise Unsupported(
            f"array '{array.name}' of shape {array.shape} would be a {magic} file", path=path,
            expected=f"{expected}, as the suffix says",
            remedy="use the suffix .pnm, which holds all of them",
        )  # fmt: skip
    maxval = "" if bits else f"{256**array.element.nbytes - 1}\n"
    return f"{magic}\n{width} {height}\n{maxval}".encode()


def _written_pixels(array: Array, max_memory: int) -> Iterator[Any]:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks, runs

    step = block_bytes(max_memory)
    if array.element.kind == "bool":
        yield from (np.packbits(~row) for row in runs(array, array.shape[1], step))
        return
    for block in blocks(array, step):
        yield block.reshape(-1).astype(f">u{array.element.nbytes}", copy=False).view("u1")
