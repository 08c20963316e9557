r"""GIF: an image or an animation of at most 256 colours in each frame, read and write.

Specification: CompuServe, "Graphics Interchange Format", version 89a, 31 July 1990,
https://www.w3.org/Graphics/GIF/spec-gif89a.txt. Compared with: giftopnm of netpbm, gif2webp of
libwebp.

Reads: every frame as it is seen, composed here from the patches with transparency and the disposal
of the frames before it; imageio with Pillow pinned decodes the LZW data of each patch alone, since
Pillow confuses the palettes and transparent colours of frames that differ in them. Where a frame is
disposed of "to the background" the screen becomes transparent, as in browsers and in libwebp,
whatever the background colour is.

Mapping: uint8, index order C, shape (height, width, channels), animations of more than one frame
with a first axis for the frames. RGBA where pixels may be transparent after all frames below them
are drawn: a transparent colour in the first frame, a frame that leaves a part of the screen empty.
Else RGB, also if later frames use transparency to show what is below them. Grey, without the last
axis, where all palettes are the grey values in order (0,0,0), (1,1,1), …. ``palette=indices`` gives
the indices (height, width) of a file with a single frame; pixels beside the frame have the index of
the transparent colour, or of the background.

Metadata, in the namespace ``image``: ``comment``; ``palette`` of a file with a single frame;
``delays`` (hundredths of a second, one for each frame) and ``loop`` (0: for ever) of animations.

Refused: cut files, the end block included; frames that lie outside the screen; sizes that the
compressed bytes cannot fill; images above ``--max-memory``, and animations above it that are more
than a thousand times the file.

Writes: uint8 grey (H, W) or RGB (H, W, 3), and stacks of them as animations, each frame whole, with
a palette of its own. More than 256 colours in a frame, found while writing, end it without output:
nothing is ever quantised. Frames that are equal stay two frames (Pillow would merge them).
"""

from __future__ import annotations

from collections import namedtuple
from io import BufferedReader
from math import prod
from struct import Struct

from raconvert.errors import Corrupt, UsageError, WouldLose
from raconvert.plugin import NO, SURE, Array, Bundle, Fit, Format, Option, Source, refused

from .metadata import fields_of, image_bundle, metadata_fits, part
from .plan import HELD_BY, MAX_CHANNELS, type_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

    from .reader import Stack

    Values = np.ndarray[Any, Any]

__all__ = ["FORMAT", "fits", "read", "sniff", "split", "write"]

MAGICS = (b"GIF87a", b"GIF89a")
MAX_SIDE = 0xFFFF
MAX_COLORS = 256
# LZW: the string of a 12-bit code has at most 4096 pixels, and there are 2/3 of a code in a byte.
PIXELS_PER_BYTE = 4096
MAX_COMMENT_BYTES = 1 << 20
BAND_PIXELS = 1 << 16  # drawn at once: numpy has about 16 bytes for each of them
_SCREEN = Struct("<6sHHBBB")
_IMAGE = Struct("<HHHHB")
SCREEN_BYTES = 4  # of a pixel on the screen that frames are drawn on
DECODED_BYTES = 3  # of a pixel of a frame: as Pillow has it, and two copies
DATA_COPIES = 3  # of the compressed bytes of a frame: those read, a file of them, Pillow's
GREY = bytes(value for grey in range(MAX_COLORS) for value in (grey, grey, grey))

DISPOSED, RESTORED = 2, 3  # how a frame leaves the screen; others: as it is

# A patch of the screen; `data` is the place and length of its code size and LZW data.
Frame = namedtuple("Frame", "left top width height interlaced palette clear disposal delay data")

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

    from .reader import Stack, check_total

    file = _File(source)
    delays: list[int] = []
    grey, alpha = True, False
    covered = False  # is every pixel of the screen opaque before the frame?
    first = b""
    decoding = below = 0  # the most bytes that a frame takes to decode, that it puts back
    for frame in file.frames():
        first = first if delays else frame.palette
        delays.append(frame.delay)
        grey &= GREY.startswith(frame.palette)
        pixels = frame.width * frame.height
        decoding = max(decoding, DECODED_BYTES * pixels + DATA_COPIES * frame.data[1])
        whole = (frame.width, frame.height) == file.size and frame.clear is None
        alpha |= not (covered or whole)
        if frame.disposal == RESTORED:
            below = max(below, SCREEN_BYTES * pixels)
        else:
            covered = (covered or whole) and frame.disposal != DISPOSED
    count, indices, grey = len(delays), palette == "indices", grey and not alpha
    if indices and count > 1:
        raise UsageError(
            "palette=indices is for a single frame: frames are composed as colours",
            path=source.path, got=f"{count} frames",
        )  # fmt: skip
    width, height = file.size
    channels = 1 if indices or grey else 4 if alpha else 3
    seen = channels * width * height  # what was seen last, and what is next
    need = SCREEN_BYTES * width * height + seen + max(decoding, seen + below)
    what = f"'{source.path}': its screen of {width} × {height}"
    check_memory(need, source.max_memory, what)
    shape = (count,) * (count > 1) + (height, width) + (channels,) * (channels > 1)
    if count > 1:
        check_total(source, prod(shape))
    found: dict[str, Any] = {"comment": bytes(file.comment).decode("utf-8", "replace")}
    if count > 1:
        found |= {"delays": delays, "loop": file.loop}
    elif not grey:
        found["palette"] = first
    fields = {name: value for name, value in found.items() if value not in ("", b"", None)}

    def images() -> Stack:
        return Stack(source, shape, "u1", count, lambda n: _seen(source, n, channels, indices))

    notes = [f"{file.behind} bytes after the end of the GIF were ignored"] * (file.behind > 0)
    return image_bundle(source, "uint", shape, fields, images, notes)


# -------------------------------------------------------------------------------------- blocks


class _File:
    """One pass over the blocks of a GIF file; `size` and `background` are known with a frame."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = (0, 0)
        self.background = 0
        self.loop: int | None = None
        self.comment = bytearray()
        self.behind = 0  # bytes after the end block
        self._control: tuple[int | None, int, int] = (None, 0, 0)

    def frames(self) -> Generator[Frame, None, None]:
        """Yield the frames; `Corrupt` where blocks break off or contradict each other."""
        with BufferedReader(self._source.open()) as self._file:
            head = _SCREEN.unpack(self._read(_SCREEN.size))
            magic, width, height, flags, self.background, _ = head
            if magic not in MAGICS:
                raise self._corrupt("does not begin as a GIF file")
            self.size = (width, height)
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
            self.behind = self._source.size - self._file.tell()

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
        if width * height > PIXELS_PER_BYTE * self._skip():
            raise self._corrupt(f"frame {number} has more pixels than its data can hold")
        control, self._control = self._control, (None, 0, 0)
        data = (start, self._file.tell() - start)
        return Frame(left, top, width, height, bool(flags & 0x40), palette, *control, data)

    def _extension(self) -> None:
        label = self._read(1)[0]
        block = self._sub_block()
        if label == 0xF9 and len(block) >= 4:
            clear = block[3] if block[0] & 1 else None
            self._control = clear, block[0] >> 2 & 7, int.from_bytes(block[1:3], "little")
        elif label == 0xFF and block == b"NETSCAPE2.0":
            block = self._sub_block()
            if len(block) == 3 and block[0] == 1:
                self.loop = int.from_bytes(block[1:], "little")
        while label == 0xFE and block:
            self.comment += block
            if len(self.comment) > MAX_COMMENT_BYTES:
                raise self._corrupt("comment is above 1 MiB")
            block = self._sub_block()
        if block:
            self._skip()

    def _skip(self) -> int:
        """Go behind the sub-blocks; return their bytes."""
        total = 0
        while length := self._read(1)[0]:
            total += length
            self._file.seek(length, 1)
        if self._file.tell() > self._source.size:
            raise self._corrupt("is cut off")
        return total

    def _sub_block(self) -> bytes:
        return self._read(self._read(1)[0])

    def _read(self, nbytes: int) -> bytes:
        data = self._file.read(nbytes)
        if len(data) != nbytes:
            raise self._corrupt("is cut off")
        return data

    def _corrupt(self, what: str) -> Corrupt:
        place = f"byte {min(self._file.tell(), self._source.size)}"
        return Corrupt(what, path=self._source.path, where=place)


# --------------------------------------------------------------------------------------- frames


def _seen(
    source: Source, first: int, channels: int, indices: bool
) -> Generator[Values, None, None]:
    """Yield what is seen after each frame from `first` on; all those before it are drawn, too."""
    import numpy as np

    file = _File(source)
    screen = np.zeros((0, 0), np.uint32)  # R, G, B, A in the order of the bytes
    for number, frame in enumerate(file.frames()):
        values = _decoded(source, frame, number)
        at = np.s_[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        if indices:  # beside the only frame it is transparent, or background
            beside = file.background if frame.clear is None else frame.clear
            alone = np.full(file.size[::-1], beside, np.uint8)
            alone[at] = values
            yield alone
            continue
        if not number:
            screen = np.zeros(file.size[::-1], np.uint32)
        place = screen[at]
        below = place.copy() if frame.disposal == RESTORED else None
        _draw(place, values, frame, number)
        del values
        if number >= first:
            yield screen.view(np.uint8).reshape(*screen.shape, 4)[..., :channels].copy()
        if below is not None:
            place[:] = below
            del below
        elif frame.disposal == DISPOSED:
            place[:] = 0


def _decoded(source: Source, frame: Frame, number: int) -> Values:
    """The indices of a frame, (height, width): of a file of this frame alone, its palette grey."""
    from .reader import decoded

    start, nbytes = frame.data
    what = f"frame {number} of the GIF image"
    width, height = frame.width, frame.height
    head = _SCREEN.pack(MAGICS[1], width, height, 0xF7, 0, 0) + GREY
    head += b"," + _IMAGE.pack(0, 0, width, height, 0x40 * frame.interlaced)
    data = head + source.read_exact(start, nbytes, what) + b";"
    values = decoded(data, source.path, what)
    if values.shape != (height, width) or values.dtype.str != "|u1":
        raise Corrupt(f"{what} cannot be decoded", path=source.path, where=f"byte {start}")
    return values


def _draw(place: Values, values: Values, frame: Frame, number: int) -> None:
    """Draw the indices of a frame on its place, band by band; black where its palette ends."""
    import numpy as np

    colors = np.zeros((MAX_COLORS, 4), np.uint8)
    palette = np.frombuffer(frame.palette or GREY, np.uint8).reshape(-1, 3)
    colors[: len(palette), :3] = palette
    colors[:, 3] = 255
    if frame.clear is not None:
        colors[frame.clear, 3] = 0
    table = colors.view(np.uint32)[:, 0]
    rows = max(1, BAND_PIXELS // frame.width)
    for top in range(0, frame.height, rows):
        band = values[top : top + rows]
        # Where nothing is below, the colour that the file has for transparent pixels is kept.
        visible = True if frame.clear is None or not number else band != frame.clear
        np.copyto(place[top : top + rows], table[band], where=visible)


# ------------------------------------------------------------------------------------- writing


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what GIF would change or cannot hold; the number of colours is seen while writing."""
    found = []
    for array in bundle.arrays:
        found += [*type_fits(array, "GIF", "uint8"), *_shape_fits(array)]
    return found + metadata_fits(bundle, "GIF", frozenset({"comment", "delays", "loop"}))


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
    if max(shape[bool(images) :][:2]) > MAX_SIDE:
        reason = f"a side is above GIF's {MAX_SIDE}"
        return [refused(array.name, "shape", reason + HELD_BY)]
    return []


def _images(shape: tuple[int, ...]) -> int | None:
    """How many frames on a first axis there are, 0 without one; None: no such shape."""
    if len(shape) == 2 or (len(shape) == 3 and shape[2] == 3):
        return 0
    stack = (len(shape) == 3 and shape[2] > MAX_CHANNELS) or (len(shape) == 4 and shape[3] == 3)
    return shape[0] if stack else None


def split(array: Array) -> int:
    """Return how many leading axes become separate files with ``--planes``."""
    return max(0, array.ndim - (3 if array.ndim > 3 and array.shape[-1] == 3 else 2))


def write(bundle: Bundle, target: Target) -> None:
    """Write the one array of the bundle, frame by frame, one frame in memory.

    Raises `WouldLose` for the first frame of more than 256 colours.
    """
    import numpy as np

    from raconvert.files.copy import write_all

    pieces = _pieces(bundle.arrays[0], target)
    write_all(target.open(), target.counted(np.frombuffer(piece, "u1") for piece in pieces))


def _pieces(array: Array, target: Target) -> Iterator[bytes]:
    from raconvert.arrays.blocks import block_bytes, check_memory, runs

    count = _images(array.shape)
    shape = array.shape[1:] if count else array.shape
    check_memory(6 * prod(shape), target.max_memory, f"a frame of array '{array.name}'")
    fields = fields_of(array)
    yield _SCREEN.pack(MAGICS[1], shape[1], shape[0], 0x70, 0, 0)
    loop = part(fields, "loop", int)
    if count and loop is not None and 0 <= loop <= MAX_SIDE:
        yield b"!\xff\x0bNETSCAPE2.0\x03\x01" + loop.to_bytes(2, "little") + b"\0"
    if comment := (part(fields, "comment", str) or "").encode()[:MAX_COMMENT_BYTES]:
        parts = [comment[at : at + 255] for at in range(0, len(comment), 255)]
        yield b"!\xfe" + b"".join(bytes([len(part)]) + part for part in parts) + b"\0"
    delays = part(fields, "delays", list) or []
    for number, frame in enumerate(runs(array, prod(shape), block_bytes(target.max_memory))):
        if count:
            delay = delays[number] if number < len(delays) else 0
            delay = delay if type(delay) is int and 0 <= delay <= MAX_SIDE else 0
            yield b"!\xf9\x04\x04" + delay.to_bytes(2, "little") + b"\0\0"
        yield _frame(frame.reshape(shape), f"image {number} of array '{array.name}'", target)
    yield b";"


def _frame(frame: Values, what: str, target: Target) -> bytes:
    """The blocks of one frame, with its palette."""
    import numpy as np

    from .writer import encoded

    indices, palette = frame, GREY
    if frame.ndim == 3:
        wide = frame.astype(np.uint32)
        packed = (wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2]
        colors, inverse = np.unique(packed, return_inverse=True)
        if len(colors) > MAX_COLORS:
            raise WouldLose(
                f"{what} has {len(colors)} colours",
                path=target.path, expected=f"at most {MAX_COLORS}",
                remedy="nothing was written; PNG, WebP and TIFF hold them",
            )  # fmt: skip
        indices = inverse.reshape(frame.shape[:2]).astype(np.uint8)
        palette = _palette(colors)
        if palette == GREY:  # backwards, or it would be read as grey
            indices, palette = 255 - indices, _palette(colors[::-1])
    height, width = indices.shape
    data = encoded(indices, ".gif", optimize=False, interlace=0)
    at = data.index(b",", _SCREEN.size + 3 * MAX_COLORS)  # Pillow's own frame: all behind its head
    flags = data[at + _IMAGE.size]
    start = at + 1 + _IMAGE.size + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    return b"," + _IMAGE.pack(0, 0, width, height, 0x80 | 7) + palette + data[start:-1]


def _palette(colors: Values) -> bytes:
    """256 colours, padded with the last one."""
    import numpy as np

    padded = np.pad(colors, (0, MAX_COLORS - len(colors)), mode="edge").astype(">u4")
    return padded.view("u1").reshape(-1, 4)[:, 1:].tobytes()
