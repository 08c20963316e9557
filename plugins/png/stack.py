"""Tens of thousands of small PNG files as one lazy array: the glued path.

Most files of a data set differ from the first one in nothing but the content of IDAT. For those,
the bytes before and after that chunk (`Around`) are compared as a whole, so that header, order of
the chunks, checksums and metadata are as checked as the first file's; then only the checksum and
the inflated length of IDAT are left to verify, and a batch of images is unfiltered in one call. All
other files are parsed by `scan`, one at a time.

If the compiled loops are missing (`engine`), `read_alike` replaces theirs.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple
from io import BufferedReader, BytesIO
from math import prod

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key
from raconvert.arrays.stack import SHARED_BYTES, ItemMetadata, json_of
from raconvert.errors import UsageError
from raconvert.files.inflate import inflater
from raconvert.plugin import Array, Metadata, Source, element
from raconvert.workers.worker import can_fork

from . import engine, metadata
from .header import Header, Png, scan
from .pixels import (
    BadFilter,
    BadIndex,
    Expansion,
    PixelStream,
    decode,
    need_of,
    unfilter_images,
    unpack,
)
from .tables import CHUNK_HEAD, CHUNK_OVERHEAD, CRC, NAME, PALETTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.files.limits import Limits

    from .pixels import Samples

SMALL_FILE_BYTES = 1 << 16  # read by one call; longer files are parsed by `scan`
GLUE_BYTES = 1 << 18  # filtered bytes that are unfiltered at once: they fit the processor's cache
MAX_NOTES = 10  # remarks about single files of a stack

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # never wait for the writer of a pipe
)
_COLORS = ("grey", "", "grey+alpha", "RGB", "RGBA")  # by number of channels

# What files that are alike share: the bytes before and after IDAT, and the inflated length.
Around = namedtuple("Around", "lead tail stream_bytes")


def read_images(paths: list[str], limits: Limits, *, frames: str, **options: str) -> Array:
    """The images of many files as one array; see the package's `read_stack`."""
    if frames != "default":
        raise UsageError(
            "frames=all reads the images of one file, it cannot be combined with a stack of files",
            path=paths[0],
            remedy="convert each file on its own with `--each`",
        )
    images = PngStack(paths, limits, **options)
    return Array(
        element("uint", images.dtype.itemsize),
        images.shape[::-1],
        name=Source(paths[0]).stem,
        index_order="C",
        data=images,
    )


class PngStack:
    """Array source: shape (files, height, width[, channels]), uint8 or uint16.

    `stream` decodes in order and collects the metadata of the items: afterwards `common` is the
    metadata that all of them share, and `items` reads the metadata that differs. Not a `Decoded`: a
    region needs only its own images.
    """

    def __init__(self, paths: list[str], limits: Limits, **options: str) -> None:
        self._paths = paths
        self._options = options
        self._limits = limits
        self._max_memory = limits.memory
        self.notes: list[str] = []
        self.jobs = 1  # processes that decode; callers may change it
        first = self._open(paths[0])
        first.file.close()
        self._header: Header = first.png.header
        self._expansion = first.expansion
        self._around = _around(first)
        self._kind = _kind(first)
        self._first_fields = self._fields(first.png)
        self._add_notes(first.png)
        self._items: ItemMetadata | Events | None = None  # from the first differing item on
        self._alike = 0  # items with the first's metadata since the last differing one
        item = first.expansion.shape(first.png.header.width, first.png.header.height)
        self.shape = (len(paths), *item)
        self.dtype = first.expansion.dtype
        self._item_bytes = prod(item) * self.dtype.itemsize
        self._glue = max(1, GLUE_BYTES // first.png.header.stream_bytes)

    # ---------------------------------------------------------------------------- array source

    def stream(self, max_bytes: int) -> Iterator[Samples]:
        """Yield blocks of whole images, at most `max_bytes` each (one image at least)."""
        self._items, self._alike = None, 0
        jobs = min(self.jobs, self._max_memory // self._need_of_copy())
        if jobs > 1 and can_fork():
            yield from self._stream_of_copies(jobs)
            return
        step = max(1, max_bytes // self._item_bytes)
        for start in range(0, len(self._paths), step):
            yield self._decode(range(start, min(start + step, len(self._paths))), collect=True)

    def _need_of_copy(self) -> int:
        """The bytes that a decoding process needs: its pieces, and the memory of `decode`."""
        return 3 * max(SHARED_BYTES, self._item_bytes) + need_of(self._header, self._expansion)

    def _stream_of_copies(self, jobs: int) -> Iterator[Samples]:
        """Yield blocks as `stream` does, decoded by copies of this process."""
        from raconvert.workers.shared_memory import first_to_last, pieces

        paths, first = self._paths, self._first_fields
        step = max(1, SHARED_BYTES // self._item_bytes)

        def make(number: int, memory: Samples) -> tuple[list[Any], list[str]]:
            part = range(len(paths))[number * step : (number + 1) * step]
            events = self._items = Events(first)
            self.notes = []
            self._decode_into(part, self._shaped(memory, len(part)), collect=True)
            self._add_alike()
            return events.events, self.notes

        def files_of(number: int) -> str:
            return first_to_last(paths[number * step : (number + 1) * step])

        count = -(-len(paths) // step)
        nbytes = step * self._item_bytes
        results = pieces(make, count, nbytes, jobs, files_of)
        for number, (memory, (events, notes)) in enumerate(results):
            for event in events:
                if isinstance(event, int):
                    self._alike += event
                else:
                    self._add(event)
            self._keep_notes(notes)
            yield self._shaped(memory, min(step, len(paths) - number * step))

    def _shaped(self, memory: Samples, count: int) -> Samples:
        values = memory[: count * self._item_bytes].view(self.dtype)
        return values.reshape(count, *self.shape[1:])

    def __getitem__(self, key: Any) -> Samples:
        number, *rest = full_key(key, len(self.shape))
        chosen = range(len(self._paths))[number]
        if isinstance(chosen, int):
            return self._decode((chosen,))[(0, *rest)]
        check_memory(len(chosen) * self._item_bytes, self._max_memory, "this part of the stack")
        return self._decode(chosen)[(slice(None), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Samples:
        return np.asarray(self[:], dtype=dtype)

    @property
    def common(self) -> dict[str, Any]:
        """The metadata that all items share; complete once `stream` has ended."""
        if self.items is None:
            return self._first_fields
        return self._items.common

    @property
    def items(self) -> Callable[[], Iterator[dict[str, Any]]] | None:
        """A function that yields the differing metadata of each item; None if all is common."""
        if self._items is None or self._items.items is None:
            return None
        self._add_alike()
        return self._items.items

    # --------------------------------------------------------------------------------- batches

    def _decode(self, indices: Sequence[int], *, collect: bool = False) -> Samples:
        out = np.empty((len(indices), *self.shape[1:]), self.dtype)
        self._decode_into(indices, out, collect=collect)
        return out

    def _decode_into(self, indices: Sequence[int], out: Samples, *, collect: bool) -> None:
        for start in range(0, len(indices), self._glue):
            batch = indices[start : start + self._glue]
            self._decode_batch(batch, out[start : start + len(batch)], collect)

    def _decode_batch(self, batch: Sequence[int], out: Samples, collect: bool) -> None:
        """Decode a batch of images into `out`: those like the first one together, others alone."""
        streams = self._streams(batch, out, collect)
        glued = [index for index, stream in enumerate(streams) if stream is not None]
        if not glued:
            return
        try:
            if len(glued) == len(batch):
                self._unglue(streams, out)
            else:
                images = np.empty((len(glued), *self.shape[1:]), self.dtype)
                self._unglue([streams[index] for index in glued], images)
                out[glued] = images
        except (BadFilter, BadIndex):
            for index in glued:  # decoded alone, the bad one raises `Corrupt` with its path
                opened = self._open(self._paths[batch[index]])
                with opened.file:
                    self._decode_alone(opened)
            raise

    def _streams(self, batch: Sequence[int], out: Samples, collect: bool) -> list[Any]:
        """The inflated stream of each image, None for those already decoded into `out`."""
        streams: list[Any] = [None] * len(batch)
        if self._around is not None:
            streams = inflate_alike([self._paths[index] for index in batch], self._around)
            if None not in streams:
                self._alike += len(batch) * collect
                return streams
        for number, stream in enumerate(streams):
            if stream is None:
                streams[number] = self._read_alone(batch[number], out[number], collect)
            else:
                self._alike += collect
        return streams

    def _unglue(self, streams: list[bytes], out: Samples) -> None:
        """Decode the inflated streams of images like the first one into `out`, pass by pass."""
        header = self._header
        start = 0
        for part in header.passes():
            unfiltered = unfilter_images(streams, start, part, header.pixel_bytes)
            samples = self._expansion(unpack(unfiltered, header, part.width))
            out[:, part.y :: part.dy, part.x :: part.dx] = samples
            start += part.height * (1 + part.row_bytes)

    def _read_alone(self, index: int, out: Samples, collect: bool) -> bytes | None:
        """The filtered rows of an image to decode with others; else decode it into `out`."""
        opened = self._open(self._paths[index])
        with opened.file as file:
            self._check_kind(opened)
            if collect:
                self._add_item(self._fields(opened.png))
            header = opened.png.header
            rows = None
            if opened.expansion.key == self._expansion.key and header.stream_bytes <= GLUE_BYTES:
                stream = PixelStream(file, opened.png.idat, opened.png)
                rows = stream.read(header.stream_bytes)
                stream.finish()
            else:
                out[:] = self._decode_alone(opened)
            if collect:  # after the pixels, which may add notes
                self._add_notes(opened.png)
            return rows

    def _decode_alone(self, opened: Opened) -> Samples:
        file, png = opened.file, opened.png
        limit = self._max_memory
        return decode(file, png.idat, png.header, opened.expansion, png=png, max_memory=limit)

    # ----------------------------------------------------------------------------- single files

    def _open(self, path: str) -> Opened:
        source = Source(path, limits=self._limits)
        if source.size <= SMALL_FILE_BYTES:
            data = source.read_at(0, source.size)
            file: Any = BytesIO(data)
        else:
            data = b""
            file = BufferedReader(source.open())
        try:
            png = scan(file, source.size, path, source.limits)
            return Opened(png, Expansion(png, **self._options), file, data)
        except BaseException:
            file.close()
            raise

    def _check_kind(self, opened: Opened) -> None:
        kind = _kind(opened)
        if kind == self._kind:
            return
        remedy = "leave it out, or convert each file on its own with `--each`"
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
        if png.is_bare:
            return {}
        fields = {**metadata.pixel_fields(png, **self._options), **metadata.fields_of(png)}
        return Metadata(formats={NAME: fields}).to_dict()

    def _add_notes(self, png: Png) -> None:
        """Add the remarks about a file, up to `MAX_NOTES` of all files."""
        if png.notes:
            self._keep_notes([f"'{png.path}': {note}" for note in png.notes])

    def _keep_notes(self, notes: list[str]) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes += [note for note in notes if note not in self.notes]

    def _add_item(self, fields: dict[str, Any]) -> None:
        """Add the metadata of an item that was read on its own."""
        if fields == self._first_fields:
            self._alike += 1
            return
        self._add(fields)

    def _add(self, fields: dict[str, Any]) -> None:
        """Add the metadata of an item that differs, after that of the alike items before it."""
        self._add_alike().add(fields)

    def _add_alike(self) -> ItemMetadata | Events:
        if self._items is None:
            self._items = ItemMetadata(self._paths)
        for _ in range(self._alike):
            self._items.add(self._first_fields)
        self._alike = 0
        return self._items


class Events:
    """Metadata of items in a copy of this process: counts of items like the first, and others."""

    def __init__(self, first: dict[str, Any]) -> None:
        self._first = first
        self.events: list[Any] = []

    def add(self, fields: dict[str, Any]) -> None:
        """Add the metadata of the next item; a number counts items like the first in a row."""
        if fields is not self._first:
            self.events.append(json.loads(json_of(fields)))
        elif self.events and isinstance(self.events[-1], int):
            self.events[-1] += 1
        else:
            self.events.append(1)


Opened = namedtuple("Opened", "png expansion file data")  # `data`: all bytes of a small file


def _kind(opened: Opened) -> str:
    """The properties that the images of a stack must share, in words: depth, colours, shape."""
    header, expansion = opened.png.header, opened.expansion
    colors = _COLORS[expansion.channels]
    if header.color_type == PALETTE:
        what = f"8-bit {colors}" if expansion.channels else "palette indices"
    else:
        what = f"{header.bit_depth}-bit {colors}"
    return f"{what} {expansion.shape(header.width, header.height)}"


def _around(first: Opened) -> Around | None:
    """The bytes that like files have around their pixels; None if all files are to be parsed."""
    png = first.png
    large = not first.data or png.header.stream_bytes > GLUE_BYTES
    if large or len(png.idat) != 1:
        return None
    offset, nbytes, _ = png.idat[0]
    lead = first.data[: offset - CHUNK_HEAD.size]
    return Around(lead, first.data[offset + nbytes + CRC.size :], png.header.stream_bytes)


def inflate_alike(paths: list[str], around: Around) -> list[Any]:
    """The filtered rows of each file; None for files that `scan` has to parse.

    These are files with another header, other chunks, a wrong checksum, a damaged or unusual zlib
    stream, and files that cannot be read.
    """
    read = read_alike if engine.fast is None else engine.fast.read_alike
    inflate = inflater(around.stream_bytes, strict=True)
    inflated_rows = []
    for packed in read(paths, around.lead, around.tail):
        try:
            rows = None if packed is None else inflate(packed)
        except ValueError:
            rows = None
        inflated_rows.append(
            rows if rows is not None and len(rows) == around.stream_bytes else None
        )
    return inflated_rows


def read_alike(paths: list[str], lead: bytes, tail: bytes) -> list[bytes | None]:
    """The compressed pixels of each file; None for files that `scan` has to parse.

    `lead` and `tail` are all bytes before and after the only IDAT chunk.
    """
    start = len(lead) + CHUNK_HEAD.size  # of the compressed pixels
    around = len(lead) + CHUNK_OVERHEAD + len(tail)
    crc32, crc_at = engine.crc32, CRC.unpack_from
    seed = crc32(b"IDAT")
    heads: dict[int, bytes] = {}  # all bytes before the pixels, by size of the file
    streams = []
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
        streams.append(packed)
    return streams


def _small_file(path: str) -> bytes:
    """The bytes of a small file; empty if it is longer or cannot be read."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            data = os.read(descriptor, SMALL_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return b""
    return data if len(data) <= SMALL_FILE_BYTES else b""
