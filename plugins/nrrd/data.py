"""Where the data of a NRRD file is, and reading it: files, skips, encodings, lazily and bounded.

One array lies in one file or, piece after piece, in many (`Part` each). Raw parts are read where
they are asked for. Encoded ones are decoded front to back, in pieces of `CHUNK_BYTES` whatever
the size of the array, and never further than the array needs: what follows it is counted up to
`MAX_EXTRA_BYTES`, so that a damaged end is found and a decompression bomb is not followed.

Facts: ``line skip`` is about lines of the file as it lies there; ``byte skip`` is about the file,
but with gzip and bzip2 about what is inside. ``byte skip: -1`` takes the last bytes, ``-1-K`` those
before the last K (Teem's ``nrrdByteSkip``; the definition knows -1 only).
"""

from __future__ import annotations

import re
from collections import namedtuple
from itertools import islice
from math import prod

from raconvert.arrays.dtypes import dtype_of, little
from raconvert.arrays.prefetch import ahead
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files.references import resolve
from raconvert.files.source import read_up_to
from raconvert.plugin import Array, Element, Extent, Source, trailing_note

from .tables import BZIP2, COMPRESSED, GZIP, HEX, RAW, TEXT, ZRL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy as np

    from .header import Header

CHUNK_BYTES = 1 << 19  # of decoded data: large enough for two threads, small enough for caches
AHEAD_BYTES = 8 << 20  # parts below this are decompressed without a thread
AHEAD_CHUNKS = 8
MAX_EXTRA_BYTES = 64 << 20  # decoded behind the array, or before it where it is its end
MAX_LINES_BYTES = 64 << 20  # how far line ends are looked for
SKIP_READ = 1 << 18
DEFLATE_RATIO = 1032  # RFC 1951: 258 bytes from two bits
_ZRL_RATIO = 65535 / 4  # "00 00 lo hi" is up to 65535 zeros
_STARTS = {GZIP: b"\x1f\x8b", BZIP2: b"BZh"}

# What one file contributes: `nbytes` of the array, which begin at `offset` in the file as it lies
# there; `skip` bytes of what is decoded come first (negative: count from the end).
Part = namedtuple("Part", "source offset nbytes skip")


def parts_of(source: Source, header: Header, element: Element, notes: list[str]) -> list[Part]:
    """Return the parts of the array, in order, each checked against its file.

    Raises `Unsafe` for files outside the folder of the header and for what is no regular file,
    `Corrupt` where a file cannot hold its part. Notes what lies behind the data.
    """
    fields, files = header.fields, header.files
    nbytes = prod(fields["sizes"]) * element.nbytes
    if files is None:
        parts = [_part(source, header, header.offset, nbytes, fields.get("byte skip", 0))]
    else:
        share = nbytes // len(files.names)
        parts = []
        opened: dict[str, Source] = {}
        for number, name in enumerate(files.names):
            if name not in opened:
                opened[name] = _open_named(source, name, files.line)
            skip = files.skips[number] if files.skips else fields.get("byte skip", 0)
            parts.append(_named_part(opened[name], header, share, skip, source))
    try:
        for part in parts:
            _check_room(part, fields["encoding"], element)
    except RaconvertError as error:
        raise _told(error, source.path) from None
    if fields["encoding"] == RAW:
        _note_rest(parts, fields, notes)
    return parts


def _open_named(source: Source, name: str, line: int) -> Source:
    what = "the data file"
    try:
        if name in ("", "-"):
            raise Unsafe(f"{what} has no name", path=source.path, got=f"'{name}'")
        path = resolve(source, name, what)
        named = source.named(path)
        named.size  # noqa: B018 - opened here, so that a file that cannot be is found
    except RaconvertError as error:
        error.where = error.where or f"line {line}"
        raise _told(error, source.path) from None
    return named


def _told(error: RaconvertError, header: str) -> RaconvertError:
    """Return an error about a data file with the path of the header that names it."""
    if error.path not in (None, header):
        error.what += f" (a data file of '{header}')"
    return error


def _named_part(named: Source, header: Header, nbytes: int, skip: int, source: Source) -> Part:
    try:
        return _part(named, header, 0, nbytes, skip)
    except RaconvertError as error:
        raise _told(error, source.path) from None


def _part(source: Source, header: Header, start: int, nbytes: int, skip: int) -> Part:
    """Apply the skips, as far as they are about the file as it lies there."""
    fields = header.fields
    encoding = fields["encoding"]
    lines = fields.get("line skip", 0)
    offset = _after_lines(source, start, lines) if lines else start
    if encoding in COMPRESSED:
        return Part(source, offset, nbytes, skip)
    if skip < 0 and encoding != RAW:
        raise Corrupt(
            f"a negative 'byte skip' has no meaning with encoding {encoding}",
            path=source.path,
            expected="one of at least 0",
            got=skip,
        )
    begin = offset + skip if skip >= 0 else source.size - nbytes + skip + 1
    if begin < start:
        raise Corrupt(
            "data is cut off",
            path=source.path,
            where=f"byte {source.size}",
            expected=f"{nbytes - skip - 1} bytes from byte {start}",
            got=max(0, source.size - start),
        )
    return Part(source, begin, nbytes, 0)


def _after_lines(source: Source, start: int, lines: int) -> int:
    """Return where the file goes on after so many lines; they end with LF, CRLF or CR."""
    left, offset, data = lines, start, b""
    with source.open() as file:
        file.seek(start)
        while offset - start <= MAX_LINES_BYTES:
            more = read_up_to(file, SKIP_READ)
            data += more
            # A CR that ends the piece may be the first half of CRLF.
            body = data[:-1] if more and data.endswith(b"\r") else data
            ends = body.count(b"\n") + body.count(b"\r") - body.count(b"\r\n")
            if ends >= left:
                found = islice(re.finditer(rb"\r\n|\n|\r", body), left - 1, None)
                return offset + next(found).end()
            if not more:
                raise Corrupt(
                    "file has fewer lines than 'line skip' says",
                    path=source.path,
                    expected=f"{lines} lines",
                    got=lines - left + ends,
                )
            left -= ends
            offset += len(body)
            data = data[len(body) :]
    raise Unsupported(
        "'line skip' leads too far into the file",
        path=source.path,
        expected=f"at most {MAX_LINES_BYTES} bytes of lines",
        got="more",
        remedy="say it with 'byte skip'",
    )


def _check_room(part: Part, encoding: str, element: Element) -> None:
    """Refuse a part that its file cannot hold, before anything is decoded or allocated."""
    there = max(0, part.source.size - part.offset)
    needed = part.nbytes + max(0, part.skip)
    if encoding == RAW:
        least, what = part.nbytes, "bytes"
    elif encoding == HEX:
        least, what = 2 * part.nbytes, "hexadecimal digits"
    elif encoding == TEXT:
        least, what = 2 * (part.nbytes // element.nbytes) - 1, "bytes of text"
    elif encoding == ZRL:
        least, what = int(part.nbytes / _ZRL_RATIO), "bytes or more"
    elif encoding == GZIP:
        least, what = -(-needed // DEFLATE_RATIO), "bytes or more"
    else:
        least, what = 1, "bytes or more"
    if there < least:
        raise Corrupt(
            "data is cut off",
            path=part.source.path,
            where=f"byte {part.source.size}",
            expected=f"{least} {what} from byte {part.offset}",
            got=f"{there} ({least - there} missing)",
        )
    start = _STARTS.get(encoding, b"")
    got = part.source.read_at(part.offset, len(start))
    if got != start:
        raise Corrupt(
            f"data is not encoded by {encoding}, as the header says",
            path=part.source.path,
            where=f"byte {part.offset}",
            expected=start,
            got=got,
        )


def _note_rest(parts: list[Part], fields: dict[str, Any], notes: list[str]) -> None:
    if fields.get("byte skip", 0) < 0:
        return
    rest = sum(part.source.size - part.offset - part.nbytes for part in parts)
    if rest and len({part.source.path for part in parts}) == len(parts):
        notes.append(trailing_note(rest))


def extent_of(part: Part, swap: int) -> Extent:
    """Return where the bytes of a raw part lie; `swap` is the width of the numbers to reverse."""
    source = part.source
    return source.extent(part.offset, part.nbytes, swap)


class Late:
    """What opens the data of an array when it is first asked for: its elements are known by then.

    (A sidecar may say what is inside the elements of a block.)
    """

    def __init__(
        self, path: str, array: Array, parts: list[Part], encoding: str, swap: int, notes: list[str]
    ) -> None:
        self.path = path  # of the header
        self.array = array
        self.parts = parts
        self.encoding = encoding
        self.swap = swap
        self.notes = notes

    def __call__(self) -> RawParts | Decoded:
        """Return the array source."""
        return RawParts(self) if self.encoding == RAW else Decoded(self)


# --- array sources --------------------------------------------------------------------------------


class RawParts:
    """Array source: raw pieces in many files, read where they are asked for.

    `shape` is slowest axis first; elements are little-endian.
    """

    def __init__(self, late: Late) -> None:
        self.shape = late.array.dims[::-1]
        self.dtype = dtype_of(little(late.array.element))
        self._late = late
        self._extents = [extent_of(part, late.swap) for part in late.parts]

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield pieces of at most `max_bytes`, file after file."""
        import numpy as np

        step = max(1, max_bytes // self.dtype.itemsize) * self.dtype.itemsize
        for extent in self._extents:
            for slab in self._slabs(extent, step):
                yield np.frombuffer(slab, self.dtype)

    def _slabs(self, extent: Extent, step: int) -> Iterator[memoryview]:
        from raconvert.files.copy import extent_slabs

        try:
            yield from extent_slabs(extent, step)
        except RaconvertError as error:
            raise _told(error, self._late.path) from error.__cause__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        keys = key if isinstance(key, tuple) else (key,)
        first, rest = (keys[0], keys[1:]) if keys else (slice(None), ())
        length = self.shape[0]
        if isinstance(first, int | np.integer):
            at = range(length)[first]
            return self._rows(at, at + 1)[(0, *rest)]
        if not isinstance(first, slice):
            return self._rows(0, length)[key]
        wanted = range(length)[first]
        low = min(wanted, default=0)
        rows = self._rows(low, max(wanted, default=-1) + 1)
        return rows[np.arange(wanted.start, wanted.stop, wanted.step) - low][(slice(None), *rest)]

    def _rows(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Return these indices of the slowest axis; only files that hold some of them are read."""
        import numpy as np

        from raconvert.arrays.blocks import check_memory

        row_bytes = prod(self.shape[1:]) * self.dtype.itemsize
        begin, nbytes = start * row_bytes, (stop - start) * row_bytes
        check_memory(nbytes, self._late.parts[0].source.max_memory, "this part of the array")
        raw = np.empty(nbytes, np.uint8)
        place = 0
        for extent in self._extents:
            low, high = max(begin - place, 0), min(begin + nbytes - place, extent.nbytes)
            if low < high:
                piece = extent.part(low, high - low)
                done = place + low - begin
                for slab in self._slabs(piece, CHUNK_BYTES):
                    raw[done : done + len(slab)] = slab
                    done += len(slab)
            place += extent.nbytes
        return raw.view(self.dtype).reshape(stop - start, *self.shape[1:])


class Decoded:
    """Array source: encoded parts, decoded front to back; regions keep the whole, once decoded.

    `shape` is slowest axis first; elements are little-endian.
    """

    def __init__(self, late: Late) -> None:
        self.shape = late.array.dims[::-1]
        self.dtype = dtype_of(little(late.array.element))
        self._late = late
        self._whole: np.ndarray[Any, Any] | None = None

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield pieces of at most `max_bytes`, each valid until the next one."""
        import numpy as np

        from raconvert.files.copy import swap_in_place

        width = self.dtype.itemsize
        step = max(1, min(max_bytes, CHUNK_BYTES) // width) * width
        for part in self._late.parts:
            chunks = self._decode(part)
            for piece in _filled(chunks, min(step, part.nbytes), own=self._late.swap > 1):
                if self._late.swap > 1:
                    swap_in_place(piece, self._late.swap)
                yield np.frombuffer(piece, self.dtype)

    def _decode(self, part: Part) -> Iterator[Any]:
        """Yield the bytes of a part, in pieces of any size; an error tells where it is."""
        from . import codecs

        with part.source.open() as file:
            file.seek(part.offset)
            try:
                if self._late.encoding in COMPRESSED:
                    members = codecs.MEMBERS[self._late.encoding]
                    chunks = codecs.inflated(file, members, part, self._late.notes)
                    yield from chunks if part.nbytes < AHEAD_BYTES else ahead(chunks, AHEAD_CHUNKS)
                elif self._late.encoding == TEXT:
                    yield from codecs.numbers(file, part.nbytes, self.dtype, self._late.notes)
                else:
                    decode = codecs.hexadecimal if self._late.encoding == HEX else codecs.zero_runs
                    yield from codecs.bounded(decode(file), part.nbytes, self._late.notes)
            except RaconvertError as error:
                error.path = error.path or part.source.path
                raise _told(error, self._late.path) from error.__cause__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        if self._whole is None:
            self._whole = self._load()
        # An index of nothing would give a scalar, which has lost the width of a text.
        return self._whole[... if key == () else key]

    def _load(self) -> np.ndarray[Any, Any]:
        import numpy as np

        from raconvert.arrays.blocks import check_memory

        nbytes = prod(self.shape) * self.dtype.itemsize
        source = self._late.parts[0].source
        what = f"'{source.path}': the array, encoded by {self._late.encoding}, whole in memory"
        check_memory(nbytes, source.max_memory, what)
        raw = np.empty(nbytes, np.uint8)  # as bytes, so that the padding of structures is kept
        done = 0
        for piece in self.stream(CHUNK_BYTES):
            raw[done : done + piece.nbytes] = piece.view(np.uint8)
            done += piece.nbytes
        return raw.view(self.dtype).reshape(self.shape)


class Bools:
    """Array source: numbers that were bools when raconvert wrote them, and must still be 0 or 1.

    (Other tools change the numbers and keep the key/value pair that says so.)
    """

    def __init__(self, numbers: Array, path: str) -> None:
        import numpy as np

        self.shape = numbers.dims[::-1]
        self.dtype = np.dtype(bool)
        self._numbers = numbers
        self._path = path

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the blocks of the numbers."""
        from raconvert.arrays.blocks import blocks

        for block in blocks(self._numbers, max_bytes):
            yield self._checked(block)

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        import numpy as np

        return self._checked(np.asarray(self._numbers.data[key]))

    def _checked(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.size and values.max() > 1:
            raise Corrupt(
                "numbers are no bools, though the key/value pair 'raconvert' says so",
                path=self._path,
                expected="0 and 1",
                got=int(values.max()),
                remedy="read them as numbers with --in-opt restore=no",
            )
        return values.view(bool)


def _filled(chunks: Iterable[Any], nbytes: int, *, own: bool) -> Iterator[memoryview]:
    """Yield the bytes of the chunks in pieces of exactly `nbytes`, but for the last one.

    A piece is valid until the next one is asked for; `own`: it may be changed. Otherwise chunks of
    that length pass as they are.
    """
    buffer = memoryview(bytearray(nbytes))
    filled = 0
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            take = min(nbytes - filled, len(rest))
            if take == nbytes and not own:
                yield rest[:take]
            else:
                buffer[filled : filled + take] = rest[:take]
                filled += take
                if filled == nbytes:
                    yield buffer
                    filled = 0
            rest = rest[take:]
    if filled:
        yield buffer[:filled]
