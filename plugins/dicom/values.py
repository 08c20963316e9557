"""Array source over the frames of files, native or encoded, each read when it is needed."""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.blocks import gathered
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, picked
from raconvert.declared import Record
from raconvert.errors import Corrupt
from raconvert.files.copy import swap_in_place
from raconvert.files.source import Source

from .codecs import decoded, fragments_of, rgb_of
from .tables import BIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .codecs import Fragments
    from .form import Form
    from .frames import File, Frame
    from .header import Inflated
    from .series import Grid

    Values = np.ndarray[Any, Any]


class Stored(Record):
    """The pixels of a file: their offset, or the fragments of each frame."""

    source: Source
    offset: int
    syntax: str
    words: bool  # big-endian words of 16 bits, whatever the pixels are
    inflated: Inflated | None
    fragments: list[Fragments]
    frames: int


class Frames:
    """Array source: frames in the order of a grid; memory is that of one frame."""

    by_regions = True

    def __init__(self, name: str, form: Form, grid: Grid, files: list[File]) -> None:
        self.shape: tuple[int, ...] = (*grid.lengths, *form.shape)
        self.dtype: np.dtype[Any] = dtype_of(little(form.element))
        self._name = name
        self._form = form
        self._stored_form = form.stored_image
        self._image: tuple[int, Values] | None = None  # number and mosaic of the last file
        self._frames = [(frame.file, frame.number) for frame in grid.frames]
        self._stored = _stored(grid.frames, files, form)
        self._max_memory = files[grid.frames[0].file].header.source.max_memory
        self._open: tuple[int, Source] | None = None
        self._whole: dict[int, bytes] = {}

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield frame after frame, in pieces of at most `max_bytes`."""
        step = max(1, max_bytes // self.dtype.itemsize)
        form = self._form
        for file, number in self._frames:
            if form.is_streamed:
                for first in range(0, form.size, step):
                    count = min(step, form.size - first)
                    yield self._native(file, number * form.size + first, count)
                continue
            flat = self._frame(file, number).reshape(-1)
            for first in range(0, form.size, step):
                yield flat[first : first + step]
        self._open = self._image = None

    def __getitem__(self, key: Any) -> Any:
        full = full_key(key, len(self.shape))
        inner = len(self._form.shape)
        outer, rest = full[: len(full) - inner], full[len(full) - inner :]
        numbers = np.arange(len(self._frames)).reshape(self.shape[: len(outer)])[outer]
        chosen = np.atleast_1d(numbers).reshape(-1)
        width = self.dtype.itemsize
        nbytes = chosen.size * prod(self._lengths(rest)) * width + self._form.size * width
        check_memory(nbytes, self._max_memory, f"this part of array '{self._name}'")
        parts = [np.asarray(self._frame(*self._frames[number])[rest]) for number in chosen]
        shape = np.shape(numbers)
        if not parts:
            lengths = tuple(n for n, index in zip(self._lengths(rest), rest, strict=True)
                            if isinstance(index, slice))  # fmt: skip
            return np.empty((*shape, *lengths), self.dtype)
        values = np.stack(parts).reshape((*shape, *parts[0].shape))
        return picked(values, ...) if values.ndim else values[()]

    def _lengths(self, key: tuple[Any, ...]) -> list[int]:
        """The number of elements that a key of a frame picks along each axis."""
        return [
            len(range(length)[index]) if isinstance(index, slice) else 1
            for index, length in zip(key, self._form.shape, strict=True)
        ]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        check_memory(
            prod(self.shape) * self.dtype.itemsize, self._max_memory, f"array '{self._name}'"
        )
        whole = gathered(self.stream(1 << 24), self.shape, self.dtype, self._name)
        return np.array(whole, dtype=dtype, copy=copy)

    # One frame

    def _frame(self, file: int, number: int) -> Values:
        """All elements of a frame, in its shape; a frame of a mosaic is one tile of its image."""
        form = self._form
        if not form.across:
            return self._stored_image(file, number)
        if self._image is None or self._image[0] != file:
            self._image = file, self._stored_image(file, 0)
        down, right = divmod(number, form.across)
        top, left = down * form.rows, right * form.columns
        return self._image[1][top : top + form.rows, left : left + form.columns]

    def _stored_image(self, file: int, number: int) -> Values:
        """An image as stored: a frame, or a mosaic with all tiles of a volume."""
        form = self._stored_form
        path = self._stored[file].source.path
        what = f"'{path}': a frame of array '{self._name}'"
        check_memory(form.size * self.dtype.itemsize, self._max_memory, what)
        if form.encoded:
            stored = self._stored[file]
            values = decoded(self._source(file), stored.syntax, form, stored.fragments[number])
            return self._cleaned(np.ascontiguousarray(values).astype(self.dtype, copy=False))
        if form.allocated == 1:
            return self._bits(file, number)
        values = self._native(file, number * form.size, form.size)
        if form.planar:
            values = np.moveaxis(values.reshape(form.samples, form.rows, form.columns), 0, -1)
        values = values.reshape(form.shape)
        return np.ascontiguousarray(rgb_of(values) if form.converts else values)

    def _source(self, file: int) -> Source:
        """The source of a file; one is open at a time, without the cache of its header."""
        if self._open is None or self._open[0] != file:
            source = self._stored[file].source
            self._open = file, source.at(source.path)
        return self._open[1]

    def _native(self, file: int, first: int, count: int) -> Values:
        """Contiguous elements of a file in native order, with their unused bits cleared."""
        width, stored = self.dtype.itemsize, self._stored[file]
        raw = bytearray(self._read(file, first * width, count * width))
        if stored.syntax == BIG and width > 1:
            swap_in_place(memoryview(raw), width)
        return self._cleaned(np.frombuffer(raw, self.dtype))

    def _read(self, file: int, begin: int, nbytes: int) -> bytes:
        """Bytes of the pixels; big-endian words are swapped into the order of the pixels."""
        if self._stored[file].words:
            start, end = begin // 2 * 2, -(-(begin + nbytes) // 2) * 2
            raw = bytearray(self._bytes(file, start, end - start))
            raw += bytes(end - start - len(raw))
            swap_in_place(memoryview(raw), 2)
            return bytes(raw[begin - start : begin - start + nbytes])
        return self._bytes(file, begin, nbytes)

    def _bytes(self, file: int, begin: int, nbytes: int) -> bytes:
        """Bytes of the pixels as stored. Raises `Corrupt` if they are cut off."""
        stored = self._stored[file]
        at, inflated = stored.offset + begin, stored.inflated
        if inflated is None:
            source = self._source(file)
            if stored.words:  # a byte that fills the last word may be missing
                nbytes = min(nbytes, source.size - at)
            return source.read_exact(at, nbytes, "the pixels")
        if file not in self._whole and at < inflated.begin:  # backwards: inflated once, as a whole
            whole = stored.frames * self._stored_form.size * self.dtype.itemsize
            check_memory(whole, self._max_memory, "the deflated pixels of a file")
            self._whole = {file: inflated.read_at(stored.offset, whole)}  # of one file at a time
        if file in self._whole:
            data = self._whole[file][begin : begin + nbytes]
        else:
            data = inflated.read_at(at, nbytes)
        if len(data) < nbytes:
            raise Corrupt(
                "pixels are cut off", path=stored.source.path, expected=nbytes, got=len(data)
            )
        return data

    def _bits(self, file: int, number: int) -> Values:
        """A frame of bits, which may begin inside a byte."""
        begin = number * self._stored_form.size
        first, last = begin // 8, -(-(begin + self._stored_form.size) // 8)
        raw = np.frombuffer(self._read(file, first, last - first), np.uint8)
        bits = np.unpackbits(raw, bitorder="little")[begin - 8 * first :]
        return bits[: self._stored_form.size].astype(bool).reshape(self._stored_form.shape)

    def _cleaned(self, values: Values) -> Values:
        """The elements with unused bits cleared and signs extended."""
        form, unused = self._stored_form, self._stored_form.unused
        if not unused:
            return values
        values = values if values.flags.writeable else values.copy()
        np.left_shift(values, form.allocated - 1 - form.high, out=values)
        np.right_shift(values, unused, out=values)
        return values


def _stored(frames: list[Frame], files: list[File], form: Form) -> dict[int, Stored]:
    """The pixels of each file that holds some of the frames, by its number."""
    stored = {}
    for number in dict.fromkeys(frame.file for frame in frames):
        header = files[number].header
        pixels = header.image()
        count = 1 if form.across else len(files[number].frames)
        fragments = fragments_of(header, count) if form.encoded else []
        words = header.syntax == BIG and pixels.vr == b"OW" and form.allocated <= 8
        stored[number] = Stored(
            header.source, pixels.offset, header.syntax, words, header.inflated, fragments,
            count,
        )  # fmt: skip
    return stored
