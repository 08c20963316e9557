"""Tens of thousands of small PNG files as one lazy array: the glued path.

Most files of a data set differ from the first one in nothing but the content of IDAT. For those,
the bytes before and after that chunk (`Lane`) are compared as a whole, so that header, order of the
chunks, checksums and metadata are as checked as the first file's; then only the checksum and the
inflated length of IDAT are left to verify, and a batch of images is unfiltered in one call.
Everything else takes the long way through `scan`, one file at a time.

Where the compiled loops are missing (`engine`), `read_alike` stands in for theirs.
"""

from __future__ import annotations

import os
import zlib
from collections import namedtuple
from io import BufferedReader, BytesIO
from math import prod
from zlib import decompressobj

import numpy as np

from raconvert.arrays.blocks import check_memory
from raconvert.arrays.stack import ItemMetadata
from raconvert.errors import UsageError
from raconvert.plugin import Metadata, Source

from . import engine, meta
from .chunks import CHUNK_HEAD, CHUNK_OVERHEAD, CRC, PALETTE, Header, Png, scan
from .pixels import (
    ADLER,
    BadFilter,
    BadIndex,
    Expansion,
    Inflater,
    decode,
    unfilter_images,
    unpack,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from .pixels import Samples

SMALL_FILE_BYTES = 1 << 16  # read with one call; anything longer takes the long way
GLUE_BYTES = 1 << 18  # filtered bytes that are unfiltered at once: they fit the processor's cache
MAX_NOTES = 10  # about single files of a stack
SLACK_BYTES = 512  # zlib decodes fast while 258 bytes of output are free, slowly after that
LIBDEFLATE_FROM = 2048  # inflated bytes; for less, zlib is as fast

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # never wait for the writer of a pipe
)
_COLORS = ("grey", "", "grey+alpha", "RGB", "RGBA")  # by number of channels

# What files that are alike share: the bytes before and after IDAT, and the inflated length.
Lane = namedtuple("Lane", "lead tail stream_bytes")


class PngStack:
    """Array source: shape (files, height, width[, channels]), uint8 or uint16.

    `stream` decodes in order and collects the metadata of the items: afterwards `common` is what
    all of them share, and `items` reads what differs.
    """

    def __init__(self, paths: list[str], *, max_memory: int, **options: str) -> None:
        self._paths = paths
        self._options = options
        self._max_memory = max_memory
        self.notes: list[str] = []
        first = self._open(paths[0])
        first.file.close()
        self._header: Header = first.png.header
        self._expansion = first.expansion
        self._lane = _lane(first)
        self._kind = _kind(first)
        self._first_fields = self._fields(first.png)
        self._add_notes(first.png)
        self._items = ItemMetadata(paths)
        self._alike = 0  # items since the last odd one whose metadata equals the first's
        item = first.expansion.shape(first.png.header.width, first.png.header.height)
        self.shape = (len(paths), *item)
        self.dtype = first.expansion.dtype
        self._item_bytes = prod(item) * self.dtype.itemsize
        self._glue = max(1, GLUE_BYTES // first.png.header.stream_bytes)

    # ---------------------------------------------------------------------------- array source

    def stream(self, max_bytes: int) -> Iterator[Samples]:
        """Yield blocks of whole images, at most `max_bytes` each (one image at least)."""
        self._items, self._alike = ItemMetadata(self._paths), 0
        step = max(1, max_bytes // self._item_bytes)
        for start in range(0, len(self._paths), step):
            yield self._decode(range(start, min(start + step, len(self._paths))), collect=True)

    def __getitem__(self, key: Any) -> Samples:
        key = key if isinstance(key, tuple) else (key,)
        everything = range(len(self._paths))
        chosen = everything[key[0]] if key else everything
        if isinstance(chosen, int):
            return self._decode((chosen,))[(0, *key[1:])]
        check_memory(len(chosen) * self._item_bytes, self._max_memory, "this part of the stack")
        return self._decode(chosen)[(slice(None), *key[1:])]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Samples:
        return np.asarray(self[:], dtype=dtype)

    @property
    def common(self) -> dict[str, Any]:
        """The metadata that all items share (complete after `stream` ended)."""
        if self._items.items is None:
            return self._first_fields
        self._add_alike()
        return self._items.common

    @property
    def items(self) -> Callable[[], Iterator[dict[str, Any]]] | None:
        """A reader of the metadata that differs, one mapping per item; None if none does."""
        if self._items.items is not None:
            self._add_alike()
        return self._items.items

    # --------------------------------------------------------------------------------- batches

    def _decode(self, indices: Sequence[int], *, collect: bool = False) -> Samples:
        out = np.empty((len(indices), *self.shape[1:]), self.dtype)
        for start in range(0, len(indices), self._glue):
            batch = indices[start : start + self._glue]
            self._decode_batch(batch, out[start : start + len(batch)], collect)
        return out

    def _decode_batch(self, batch: Sequence[int], out: Samples, collect: bool) -> None:
        """Decode some images into `out`; those like the first one together."""
        streams = self._streams(batch, out, collect)
        glued = [place for place, stream in enumerate(streams) if stream is not None]
        if not glued:
            return
        try:
            if len(glued) == len(batch):
                self._unglue(streams, out)
            else:
                images = np.empty((len(glued), *self.shape[1:]), self.dtype)
                self._unglue([streams[place] for place in glued], images)
                out[glued] = images
        except (BadFilter, BadIndex):
            for place in glued:  # one of them will say what is wrong with it
                opened = self._open(self._paths[batch[place]])
                with opened.file:
                    self._decode_alone(opened)
            raise

    def _streams(self, batch: Sequence[int], out: Samples, collect: bool) -> list[Any]:
        """Return the inflated stream of each image, None for those already decoded into `out`."""
        streams: list[Any] = [None] * len(batch)
        if self._lane is not None:
            streams = inflate_alike([self._paths[index] for index in batch], self._lane)
            if None not in streams:
                self._alike += len(batch) * collect
                return streams
        for place, stream in enumerate(streams):
            if stream is None:
                streams[place] = self._long_way(batch[place], out[place], collect)
            else:
                self._alike += collect
        return streams

    def _unglue(self, streams: list[bytes], out: Samples) -> None:
        """Decode the inflated streams of images like the first one into `out`, pass by pass."""
        header = self._header
        start = 0
        for part in header.passes():
            plain = unfilter_images(streams, start, part, header.pixel_bytes)
            samples = self._expansion(unpack(plain, header, part.width))
            out[:, part.y :: part.dy, part.x :: part.dx] = samples
            start += part.height * (1 + part.row_bytes)

    def _long_way(self, index: int, out: Samples, collect: bool) -> bytes | None:
        """Return the filtered rows of an image that can be glued; else decode it into `out`."""
        opened = self._open(self._paths[index])
        with opened.file as file:
            self._check_kind(opened)
            if collect:
                self._add_odd(self._fields(opened.png))
            header = opened.png.header
            rows = None
            if opened.expansion.key == self._expansion.key and header.stream_bytes <= GLUE_BYTES:
                stream = Inflater(file, opened.png.idat, opened.png)
                rows = stream.read(header.stream_bytes)
                stream.finish()
            else:
                out[:] = self._decode_alone(opened)
            if collect:  # only now, since the pixels may have added some
                self._add_notes(opened.png)
            return rows

    def _decode_alone(self, opened: Opened) -> Samples:
        file, png = opened.file, opened.png
        limit = self._max_memory
        return decode(file, png.idat, png.header, opened.expansion, png=png, max_memory=limit)

    # ----------------------------------------------------------------------------- single files

    def _open(self, path: str) -> Opened:
        source = Source(path, max_memory=self._max_memory)
        if source.size <= SMALL_FILE_BYTES:
            data = source.read_at(0, source.size)
            file: Any = BytesIO(data)
        else:
            data = b""
            file = BufferedReader(source.open())
        try:
            png = scan(file, source.size, path)
            return Opened(png, Expansion(png, **self._options), file, data)
        except BaseException:
            file.close()
            raise

    def _check_kind(self, opened: Opened) -> None:
        kind = _kind(opened)
        if kind == self._kind:
            return
        remedy = "leave it out, or convert each file on its own with --each"
        if PALETTE in (opened.png.header.color_type, self._header.color_type):
            remedy += "; a palette gives RGB, or RGBA if any of its colours is transparent"
        raise UsageError(
            "files to stack differ",
            path=opened.png.path,
            expected=f"{self._kind} as in '{self._paths[0]}'",
            got=kind,
            remedy=remedy,
        )

    # ---------------------------------------------------------------------------------- metadata

    def _fields(self, png: Png) -> dict[str, Any]:
        fields = {**meta.pixel_fields(png, **self._options), **meta.fields_of(png)}
        return Metadata(formats={"png": fields}).to_dict()

    def _add_notes(self, png: Png) -> None:
        """Keep what there is to say about a file; of many files only about the first ones."""
        if png.notes and len(self.notes) < MAX_NOTES:
            found = [f"'{png.path}': {note}" for note in png.notes]
            self.notes += [note for note in found if note not in self.notes]

    def _add_odd(self, fields: dict[str, Any]) -> None:
        """Add the metadata of an item that was read on its own."""
        if fields == self._first_fields:
            self._alike += 1
            return
        self._add_alike()
        self._items.add(fields)

    def _add_alike(self) -> None:
        for _ in range(self._alike):
            self._items.add(self._first_fields)
        self._alike = 0


Opened = namedtuple("Opened", "png expansion file data")  # data: the whole file if it is small


def _kind(opened: Opened) -> str:
    """Describe what the images of a stack must have in common: depth, colours, shape."""
    header, expansion = opened.png.header, opened.expansion
    colors = _COLORS[expansion.channels]
    if header.color_type == PALETTE:
        what = f"8-bit {colors}" if expansion.channels else "palette indices"
    else:
        what = f"{header.bit_depth}-bit {colors}"
    return f"{what} {expansion.shape(header.width, header.height)}"


def _lane(first: Opened) -> Lane | None:
    """Return what makes files like the first one recognisable; None if it has to be read longer."""
    png = first.png
    large = not first.data or png.header.stream_bytes > GLUE_BYTES
    if large or len(png.idat) != 1:
        return None
    offset, nbytes, _ = png.idat[0]
    lead = first.data[: offset - CHUNK_HEAD.size]
    return Lane(lead, first.data[offset + nbytes + CRC.size :], png.header.stream_bytes)


def inflate_alike(paths: list[str], lane: Lane) -> list[Any]:
    """Return the filtered rows of each file, None for those that need a closer look.

    Whatever is odd gives None: another header, other chunks, a wrong checksum, a damaged or
    surprising zlib stream, a file that cannot be read.
    """
    read = read_alike if engine.fast is None else engine.fast.read_alike
    inflate, failure = _inflater(lane.stream_bytes)
    found = []
    for packed in read(paths, lane.lead, lane.tail):
        rows = None
        if packed is not None:
            try:
                rows = inflate(packed)
            except failure:
                pass
        found.append(rows)
    return found


def read_alike(paths: list[str], lead: bytes, tail: bytes) -> list[bytes | None]:
    """Return the compressed pixels of each file, None for those that need a closer look.

    `lead` and `tail` are all that comes before and after the only IDAT chunk.
    """
    start = len(lead) + CHUNK_HEAD.size  # of the compressed pixels
    around = len(lead) + CHUNK_OVERHEAD + len(tail)
    crc32, crc_at = engine.crc32, CRC.unpack_from
    seed = crc32(b"IDAT")
    heads: dict[int, bytes] = {}  # size of a file -> all that must come before its pixels
    found = []
    for path in paths:
        packed = None
        data = _small_file(path)
        size = len(data)
        head = heads.get(size)
        if head is None:
            head = heads[size] = lead + CHUNK_HEAD.pack(max(0, size - around), b"IDAT")
        if data.startswith(head) and data.endswith(tail):
            stop = size - around + start
            pixels = data[start:stop]
            if crc32(pixels, seed) == crc_at(data, stop)[0]:
                packed = pixels
        found.append(packed)
    return found


def _small_file(path: str) -> bytes:
    """Return a small file whole, nothing if it is longer or cannot be read."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            data = os.read(descriptor, SMALL_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return b""
    return data if len(data) <= SMALL_FILE_BYTES else b""


def _inflater(nbytes: int) -> tuple[Callable[[bytes], Any], type[Exception]]:
    """Return what inflates a stream to exactly `nbytes`, else to None, and what it may raise."""
    if nbytes >= LIBDEFLATE_FROM:
        try:
            return _libdeflate(nbytes)
        except ImportError:  # not built for this machine; zlib does the same
            pass

    def inflate(packed: bytes) -> bytes | None:
        stream = decompressobj()
        rows = stream.decompress(packed, nbytes + SLACK_BYTES)
        whole = len(rows) == nbytes and stream.eof and not stream.unused_data
        return rows if whole else None

    return inflate, zlib.error


def _libdeflate(nbytes: int) -> tuple[Callable[[bytes], Any], type[Exception]]:
    from deflate import DeflateError, zlib_decompress

    adler32, adler_bytes = engine.adler32, ADLER.pack

    def inflate(packed: bytes) -> bytearray | None:
        rows = zlib_decompress(packed, nbytes)
        # libdeflate does not mind bytes behind the stream: its checksum must be the last of them.
        whole = len(rows) == nbytes and packed.endswith(adler_bytes(adler32(rows)))
        return rows if whole else None

    return inflate, DeflateError
