r"""GIF: an image or an animation of at most 256 colours in each frame, read and write.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm,
gif2webp of libwebp.

Layout, little-endian::

    offset  size  meaning
    0       6     GIF87a or GIF89a
    6       2+2   width, height of the screen
    10      1     0x80: a palette follows; bits 0 to 2: its size is 2^(n+1)
    13      3n    palette
    then blocks: 21 F9 graphic control (transparent index, delay, disposal), 21 FE comment,
    21 FF application (NETSCAPE2.0: loop count), 2C image (left, top, width, height, flags,
    palette, LZW data), 3B end

Reads: every frame as it is seen, composed here from the patches with transparency and the disposal
of the frames before it; imageio with Pillow pinned decodes the LZW data of each patch alone, since
Pillow confuses the palettes and transparent colours of frames that differ in them. Where a frame is
disposed of "to the background" the screen becomes transparent, as in browsers and in libwebp,
whatever the background colour is.

Mapping: uint8, index order C, shape (height, width, channels), animations of more than one frame
with a first axis for the frames. RGBA where pixels may be transparent after all frames below them
are drawn: a transparent colour in the first frame, a frame that leaves a part of the screen empty.
Else RGB, also if later frames use transparency to show what is below them. Grey, without the last
axis, where all palettes are the grey values in order (0,0,0), (1,1,1), ….
``palette=indices`` gives the indices (height, width) of a file with a single frame; pixels beside
the frame have the index of the transparent colour, or of the background.

Metadata, in the namespace ``image`` (see `meta`): ``comment``; ``palette`` of a file with a
single frame; ``delays`` (hundredths of a second, one for each frame) and ``loop`` (0: for ever) of
animations.

Refused: cut files, the end block included; frames that lie outside the screen; sizes that the
compressed bytes cannot fill; images above ``--max-memory``, and animations above it that are more
than a thousand times the file.

Writes: uint8 grey (H, W) or RGB (H, W, 3), and stacks of them as animations, each frame whole, with
a palette of its own. More than 256 colours in a frame, found while writing, end it without output:
nothing is ever quantised. Frames that are equal stay two frames (Pillow would merge them).
"""

from __future__ import annotations

from collections import namedtuple
from math import prod
from struct import Struct

from raconvert.errors import Corrupt, UsageError, WouldLose
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
from .meta import NAMESPACE, fields_of, metadata_fits, part
from .planes import HELD_BY, MAX_CHANNELS, type_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGICS = (b"GIF87a", b"GIF89a")
WHAT = "the GIF image"
MAX_SIDE = 0xFFFF
MAX_COLORS = 256
# LZW: the string of a 12-bit code has at most 4096 pixels, and there are 2/3 of a code in a byte.
PIXELS_PER_BYTE = 4096
MAX_COMMENT_BYTES = 1 << 20
_SCREEN = Struct("<6sHHBBB")
_IMAGE = Struct("<HHHHB")
SCREEN_BYTES = 4  # of a pixel on the screen that frames are drawn on
DECODED_BYTES = 3  # of a pixel of a frame: as Pillow has it, and two copies
DATA_COPIES = 3  # of the compressed bytes of a frame: those read, a file of them, Pillow's
_NO_CONTROL: tuple[int | None, int, int] = (None, 0, 0)  # transparent index, disposal, delay
GREY = bytes(value for grey in range(MAX_COLORS) for value in (grey, grey, grey))

DISPOSED, RESTORED = 2, 3  # how a frame leaves the screen; others: as it is

# A patch of the screen; `data` is the place and length of its code size and LZW data.
Frame = namedtuple("Frame", "left top width height interlaced palette clear disposal delay data")
Scan = namedtuple(
    "Scan", "width height frames grey alpha delays loop comment palette decoding below"
)

# One grey pixel; written by netpbm's pamtogif.
_SAMPLE = bytes.fromhex("474946383761010001008000008080800000002c00000000010001000002024401003b")

FORMAT = Format(
    name="gif",
    title="GIF image",
    suffixes=(".gif",),
    magic=tuple((0, magic) for magic in MAGICS),
    proof=True,
    meta="some",
    index_orders="C",
    needs=(("imageio", "imageio"), ("PIL", "pillow")),
    read_options=(
        Option("palette", "expand", ("expand", "indices"), "one frame as colours or indices"),
    ),
    samples={"grey_1x1.gif": _SAMPLE},
    spec="https://www.w3.org/Graphics/GIF/spec-gif89a.txt",
    losses="only uint8, grey or RGB of at most 256 colours in a frame, no alpha; common metadata",
)


def sniff(source: Source) -> int:
    """Sure by the magic ``GIF87a`` or ``GIF89a``."""
    return SURE if source.head.startswith(MAGICS) else NO


def read(source: Source, *, palette: str = "expand") -> Bundle:
    """Return the image or the frames as one lazy array, named after the file's stem.

    Shape ([frames,] height, width[, 3 or 4]); uint8. All blocks are checked here, the pixels are
    decoded when they are asked for.
    """
    from raconvert.arrays.blocks import check_memory

    from .stack import check_total

    scan = Blocks(source).scan()
    indices = palette == "indices"
    if indices and scan.frames > 1:
        raise UsageError(
            "palette=indices is for a single frame: frames are composed as colours",
            path=source.path,
            got=f"{scan.frames} frames",
        )
    channels = 1 if indices or scan.grey else 4 if scan.alpha else 3
    what = f"'{source.path}': its screen of {scan.width} × {scan.height}"
    check_memory(_need(scan, channels), source.max_memory, what)
    shape: tuple[int, ...] = (scan.height, scan.width) + (channels,) * (channels > 1)
    if scan.frames > 1:
        shape = (scan.frames, *shape)
        check_total(source, prod(shape))

    def images() -> Any:
        from .frames import Frames

        return Frames(source, shape, scan.frames, indices=indices)

    fields = _fields(scan)
    closers: list[Callable[[], None]] = []
    array = Array(
        element("uint", 1),
        shape[::-1],
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAMESPACE: fields} if fields else None),
        data=lazily(images, closers),
    )
    return Bundle([array], closers=closers)


def _need(scan: Scan, channels: int) -> int:
    """Return how many bytes there are at once while the frames are composed.

    The screen and what was seen last; besides, a frame being decoded, or what is seen next and
    what the frame has covered.
    """
    pixels = scan.height * scan.width
    seen = channels * pixels
    return SCREEN_BYTES * pixels + seen + max(scan.decoding, seen + scan.below)


def _fields(scan: Scan) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if scan.comment:
        fields["comment"] = scan.comment
    if scan.frames > 1:
        fields["delays"] = scan.delays
        if scan.loop is not None:
            fields["loop"] = scan.loop
    elif not scan.grey and scan.palette:
        fields["palette"] = scan.palette
    return fields


# -------------------------------------------------------------------------------------- blocks


class Blocks:
    """One pass over the blocks of a GIF file; `size` and `background` are known with a frame."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = (0, 0)
        self.background = 0
        self._loop: int | None = None
        self._comment = b""

    def scan(self) -> Scan:
        """Return what the blocks say, without decoding any pixel."""
        delays: list[int] = []
        grey, alpha = True, False
        covered = False  # is every pixel of the screen opaque before the frame?
        first = b""
        decoding = below = 0  # the most bytes that a frame takes to decode, that it puts back
        for frame in self.frames():
            if not delays:
                first = frame.palette
            delays.append(frame.delay)
            grey &= _is_grey(frame.palette)
            pixels = frame.width * frame.height
            decoding = max(decoding, DECODED_BYTES * pixels + DATA_COPIES * frame.data[1])
            if frame.disposal == RESTORED:
                below = max(below, SCREEN_BYTES * pixels)
            whole = (frame.width, frame.height) == self.size and frame.clear is None
            alpha |= not (covered or whole)
            if frame.disposal != RESTORED:
                covered = (covered or whole) and frame.disposal != DISPOSED
        comment = self._comment.decode("utf-8", "replace")
        return Scan(
            *self.size, len(delays), grey and not alpha, alpha, delays, self._loop, comment, first,
            decoding, below,
        )  # fmt: skip

    def frames(self) -> Generator[Frame, None, None]:
        """Yield the frames; `Corrupt` where blocks break off or contradict each other."""
        from io import BufferedReader

        with BufferedReader(self._source.open()) as self._file:
            yield from self._frames()

    def _frames(self) -> Iterator[Frame]:
        magic, width, height, flags, self.background, _ = _SCREEN.unpack(self._read(_SCREEN.size))
        if magic not in MAGICS:
            raise self._corrupt("does not begin as a GIF file")
        self.size = (width, height)
        self._comment, self._control = b"", _NO_CONTROL
        common = self._read(3 << (flags & 7) + 1) if flags & 0x80 else b""
        number = 0
        while (code := self._read(1)) != b";":
            if code == b"!":
                self._extension()
            elif code == b",":
                yield self._frame(number, common)
                number += 1
            elif code != b"\0":  # some writers leave an extra end of data
                raise self._corrupt("unknown block")
        if not number:
            raise self._corrupt("has no image")

    def _frame(self, number: int, common: bytes) -> Frame:
        left, top, width, height, flags = _IMAGE.unpack(self._read(_IMAGE.size))
        palette = self._read(3 << (flags & 7) + 1) if flags & 0x80 else common
        if not number:  # as all viewers do it: the first frame may enlarge the screen
            self.size = max(self.size[0], left + width), max(self.size[1], top + height)
        if left + width > self.size[0] or top + height > self.size[1]:
            raise self._corrupt(f"frame {number} lies outside the screen")
        start = self._file.tell()
        bits = self._read(1)[0]
        if not 1 <= bits <= 8 or width == 0 or height == 0:
            raise self._corrupt(f"frame {number} has no pixels, or no code size")
        nbytes = self._skip()
        if width * height > PIXELS_PER_BYTE * nbytes:
            raise self._corrupt(f"frame {number} has more pixels than its data can hold")
        clear, disposal, delay = self._control
        self._control = _NO_CONTROL
        return Frame(
            left, top, width, height, bool(flags & 0x40), palette, clear, disposal, delay,
            (start, self._file.tell() - start),
        )  # fmt: skip

    def _extension(self) -> None:
        label = self._read(1)[0]
        if label == 0xF9:
            block = self._sub_block()
            if len(block) >= 4:
                clear = block[3] if block[0] & 1 else None
                delay = int.from_bytes(block[1:3], "little")
                self._control = clear, block[0] >> 2 & 7, delay
            if block:
                self._skip()
        elif label == 0xFE:
            while block := self._sub_block():
                if len(self._comment) + len(block) > MAX_COMMENT_BYTES:
                    raise self._corrupt("comment is above 1 MiB")
                self._comment += block
        else:
            block = self._sub_block()
            if block == b"NETSCAPE2.0":
                block = self._sub_block()
                if len(block) == 3 and block[0] == 1:
                    self._loop = int.from_bytes(block[1:], "little")
            if block:
                self._skip()

    def _skip(self) -> int:
        """Go behind the sub-blocks; return their bytes."""
        total = 0
        read, seek = self._file.read, self._file.seek
        while True:
            length = read(1)
            if not length:
                raise self._corrupt("is cut off")
            if length == b"\0":
                break
            total += length[0]
            seek(length[0], 1)
        if self._file.tell() > self._source.size:
            raise self._corrupt("is cut off")
        return total

    def _sub_block(self) -> bytes:
        length = self._read(1)[0]
        return self._read(length)

    def _read(self, nbytes: int) -> bytes:
        data = self._file.read(nbytes)
        if len(data) != nbytes:
            raise self._corrupt("is cut off")
        return data

    def _corrupt(self, what: str) -> Corrupt:
        place = f"byte {min(self._file.tell(), self._source.size)}"
        return Corrupt(what, path=self._source.path, where=place)


def _is_grey(palette: bytes) -> bool:
    """Tell whether the colours are the grey values in order; a missing palette is that, too."""
    return GREY.startswith(palette)


# ------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what GIF would change or cannot hold; the number of colours is seen while writing."""
    found = []
    for array in bundle.arrays:
        found += type_fits(array, "GIF")
        found += _shape_fits(array)
    kept = frozenset({"comment", "delays", "loop"})
    return found + metadata_fits(bundle, "GIF", kept)


def _shape_fits(array: Array) -> list[Fit]:
    shape = array.shape
    if 0 in shape:
        return [refused(array.name, "shape", f"GIF has no image without pixels: {shape}")]
    images = _images(shape)
    if images is None:
        reason = f"GIF holds (H, W), (H, W, 3), (N, H, W) and (N, H, W, 3), not {shape}"
        if array.ndim == 3:
            reason += "; a last axis of 1, 2 or 4 is never taken for the width"
        flag = "--planes" if split(array) else None
        return [refused(array.name, "shape", reason + HELD_BY, flag)]
    if images == 1:
        reason = "a GIF of one frame has no axis for the frames"
        return [refused(array.name, "shape", reason, "--planes")]
    if max(shape[-3:-1] if shape[-1] == 3 and len(shape) > 2 else shape[-2:]) > MAX_SIDE:
        reason = f"a side is above GIF's {MAX_SIDE}"
        return [refused(array.name, "shape", reason + HELD_BY)]
    return []


def _images(shape: tuple[int, ...]) -> int | None:
    """Return how many frames on a first axis there are, 0 without one; None: no such shape."""
    if len(shape) == 2 or (len(shape) == 3 and shape[2] == 3):
        return 0
    if (len(shape) == 3 and shape[2] > MAX_CHANNELS) or (len(shape) == 4 and shape[3] == 3):
        return shape[0]
    return None


def split(array: Array) -> int:
    """Return how many leading axes become separate files with ``--planes``."""
    return max(0, array.ndim - (3 if array.ndim > 3 and array.shape[-1] == 3 else 2))


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle, frame by frame, one frame in memory.

    Raises `WouldLose` for the first frame of more than 256 colours.
    """
    from raconvert.files.copy import write_all

    array = bundle.arrays[0]
    file = target.open()
    write_all(file, target.counted(_pieces(array, target)))


def _pieces(array: Array, target: Target) -> Iterator[np.ndarray[Any, Any]]:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, check_memory, runs

    count = _images(array.shape)
    shape = array.shape[1:] if count else array.shape
    height, width = shape[:2]
    size = height * width * (3 if len(shape) == 3 else 1)
    check_memory(6 * size, target.max_memory, f"a frame of array '{array.name}'")
    fields = fields_of(array)
    yield _bytes(_preamble(width, height, fields, count or 0))
    delays = part(fields, "delays", list) or []
    step = block_bytes(target.max_memory)
    for number, frame in enumerate(runs(array, size, step)):
        delay = delays[number] if number < len(delays) else 0
        data = _frame(frame.reshape(shape), delay if count else None, array, number, target)
        yield _bytes(data)
    yield np.frombuffer(b";", "u1")


def _bytes(data: bytes) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.frombuffer(data, "u1")


def _preamble(width: int, height: int, fields: dict[str, Any], count: int) -> bytes:
    data = _SCREEN.pack(MAGICS[1], width, height, 0x70, 0, 0)
    loop = part(fields, "loop", int)
    if count and loop is not None and 0 <= loop <= MAX_SIDE:
        data += b"!\xff\x0bNETSCAPE2.0\x03\x01" + loop.to_bytes(2, "little") + b"\0"
    comment = (part(fields, "comment", str) or "").encode()[:MAX_COMMENT_BYTES]
    if comment:
        pieces = [comment[at : at + 255] for at in range(0, len(comment), 255)]
        data += b"!\xfe" + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\0"
    return data


def _frame(
    frame: np.ndarray[Any, Any], delay: Any, array: Array, number: int, target: Target
) -> bytes:
    """Return the blocks of one frame, with its palette."""
    import numpy as np

    if frame.ndim == 2:
        indices, palette = frame, GREY
    else:
        wide = frame.astype(np.uint32)
        packed = (wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2]
        colors, inverse = np.unique(packed, return_inverse=True)
        if len(colors) > MAX_COLORS:
            raise WouldLose(
                f"image {number} of array '{array.name}' has {len(colors)} colours",
                path=target.path,
                expected=f"at most {MAX_COLORS}",
                remedy="nothing was written; PNG, WebP and TIFF hold them",
            )
        indices = inverse.reshape(frame.shape[:2]).astype(np.uint8)
        palette = _palette(colors)
        if palette == GREY:  # backwards, or it would be read as grey
            indices, palette = 255 - indices, _palette(colors[::-1])
    data = _lzw(indices)
    control = b""
    if delay is not None:
        hundredths = delay if type(delay) is int and 0 <= delay <= MAX_SIDE else 0
        control = b"!\xf9\x04\x04" + hundredths.to_bytes(2, "little") + b"\0\0"
    height, width = indices.shape
    head = b"," + _IMAGE.pack(0, 0, width, height, 0x80 | 7)
    return control + head + palette + data


def _palette(colors: np.ndarray[Any, Any]) -> bytes:
    """Return 256 colours, padded with the last one."""
    import numpy as np

    padded = np.pad(colors, (0, MAX_COLORS - len(colors)), mode="edge").astype(">u4")
    return padded.view("u1").reshape(-1, 4)[:, 1:].tobytes()


def single_frame(width: int, height: int, interlaced: bool, data: bytes) -> bytes:
    """Return a GIF of one frame whose colours are the grey values: decoded, it is the indices."""
    screen = _SCREEN.pack(MAGICS[1], width, height, 0xF7, 0, 0)
    head = b"," + _IMAGE.pack(0, 0, width, height, 0x40 * interlaced)
    return screen + GREY + head + data + b";"


def _lzw(indices: np.ndarray[Any, Any]) -> bytes:
    """Return code size and LZW data: of a grey image that Pillow writes, all after the palette."""
    from .backend import encoded

    data = encoded(indices, ".gif", optimize=False, interlace=0)
    at = data.index(b",", _SCREEN.size + 3 * MAX_COLORS)
    flags = data[at + _IMAGE.size]
    start = at + 1 + _IMAGE.size + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    return data[start:-1]
