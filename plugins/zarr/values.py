"""Array sources over chunks: only chunks that a region touches are read."""

from __future__ import annotations

import os
from array import array
from functools import partial
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import chunk_slabs
from raconvert.arrays.dtypes import opaque
from raconvert.arrays.memory import check_memory
from raconvert.arrays.regions import full_key, range_of
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.limits import Found, Work
from raconvert.files.threads import Threads
from raconvert.plugin import dtype_of

from .codecs import Pipeline, spans_of
from .header import Codec, Node, absent_note, chunk_count, fill_of, part_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from raconvert.files.limits import Limits
    from raconvert.plugin import Source

    from .stores import Store

    Values = np.ndarray[Any, Any]
    Piece = tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]
    Task = tuple[tuple[int, ...], tuple[int, ...], Values]

    class Bytes(Protocol):
        """The bytes of a key: a `Source`, or a stretch of one."""

        @property
        def size(self) -> int:
            """The number of bytes."""

        def read_at(self, offset: int, nbytes: int, /) -> bytes:
            """Read up to `nbytes` bytes from `offset`."""


LARGE = 1 << 20  # bytes of a region from which chunks are decoded by several threads
THREADS = min(4, os.cpu_count() or 1)
TASKS = 64  # chunks that are handed to the threads at once
NOT_THERE = (1 << 64) - 1  # offset and length of an absent chunk in the index of a shard
PAGE = 4096  # bytes that the index of a shard costs at least
DIRECT = 1000  # chunks of a region that are looked for one by one, without listing the folder


class Part:
    """A part of a file, with the methods of a file: a chunk in a shard."""

    def __init__(self, whole: Bytes, offset: int, size: int) -> None:
        self._whole, self._offset, self.size = whole, offset, size

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Read up to `nbytes` bytes from `offset`."""
        return self._whole.read_at(self._offset + offset, min(nbytes, self.size - offset))


class Form:
    """The form of a stored piece: one chunk, or a shard of smaller ones (`inner`)."""

    def __init__(
        self, codecs: tuple[Codec, ...], shape: tuple[int, ...], dtype: np.dtype[Any], path: str,
        limits: Limits, *, variable: int = 0,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.nbytes = prod(shape) * dtype.itemsize
        self.inner: Form | None = None
        self.pipeline: Pipeline | None = None
        names = [codec.name for codec in codecs]
        if "sharding_indexed" not in names:
            self.pipeline = Pipeline(codecs, shape, dtype, path, limits, variable=variable)
            return
        if names != ["sharding_indexed"]:
            raise Unsupported("array has codecs beside that of its shards", path=path)
        settings = codecs[0].settings
        chunk = settings["chunk_shape"]
        if len(chunk) != len(shape) or any(a % b for a, b in zip(shape, chunk, strict=True)):
            raise Corrupt(
                "chunks do not fill their shard", path=path, expected=f"divisors of {shape}",
                got=chunk,
            )  # fmt: skip
        self.at_start = settings["index_location"] == "start"
        self.counts = tuple(a // b for a, b in zip(shape, chunk, strict=True))
        places, number = (*self.counts, 2), np.dtype("<u8")
        self.index = Pipeline(settings["index_codecs"], places, number, path, limits)
        names = [codec.name for codec in settings["index_codecs"]]
        if any(name not in ("bytes", "crc32c") for name in names):
            raise Unsupported("the index of shards is compressed", path=path)
        if settings["index_codecs"][0].settings.get("endian") == "big":
            self.index.dtype = np.dtype(">u8")
        self.index_bytes = prod(self.counts) * 16 + 4 * names.count("crc32c")
        self.inner = Form(settings["codecs"], chunk, dtype, path, limits, variable=variable)

    @property
    def unit(self) -> int:
        """The bytes of a chunk that is decoded at once."""
        return self.nbytes if self.inner is None else self.inner.unit

    def needs(self) -> int:
        """The bytes that reading an element needs beside the result."""
        if self.pipeline is not None:
            return self.pipeline.needs
        return int(2 * self.index_bytes + (self.inner.needs() if self.inner else 0))

    def fill(self, out: Values, start: tuple[int, ...], data: Bytes, work: Work) -> None:
        """Copy a box of this chunk, from `start`, into `out`, which has the fill value.

        `work` bounds the bytes that are decoded of the parts of a shard. Raises `Corrupt` for bytes
        that are not a chunk, `TooLarge` if its parts have far more bytes than it.
        """
        if self.inner is None:
            work.parts += not any(start)
            values = self.decoded(data)
            key: Any = tuple(slice(a, a + n) for a, n in zip(start, out.shape, strict=True))
            opaque(out)[...] = opaque(
                values[(*key, ...)]
            )  # ...: a scalar would lose its byte order
            return
        work.spend(self.index_bytes, "a shard")
        index = self._index(data)
        if self.inner.inner is None:
            box = tuple(
                slice(low // n, -(-(low + count) // n))
                for low, count, n in zip(start, out.shape, self.inner.shape, strict=True)
            )
            parts = index[box].reshape(-1, 2)
            sizes = parts[(parts != NOT_THERE).any(axis=1), 1]
            work.spend(float(sizes.sum(dtype=np.float64)), "a shard")
        for chunk, low, part in overlaps(start, out.shape, self.inner.shape):
            offset, nbytes = (int(n) for n in index[chunk])
            if offset == nbytes == NOT_THERE:
                continue
            if offset + nbytes > data.size:
                raise Corrupt(
                    f"index leads outside the shard, to part {_dotted(chunk)}",
                    expected=f"at most {data.size}", got=offset + nbytes,
                )  # fmt: skip
            self.inner.fill(out[part], low, Part(data, offset, nbytes), work)

    def count(self, data: Bytes, inside: tuple[int, ...]) -> int:
        """Count the chunks of a shard that exist, among those in its first elements.

        `inside` is the shape of these elements: there are no chunks beyond the border of the array.
        """
        if self.inner is None:
            return 1
        box = tuple(
            slice(0, -(-n // high)) for n, high in zip(inside, self.inner.shape, strict=True)
        )
        present = (self._index(data)[box] != NOT_THERE).any(axis=-1)
        return int(present.sum())

    def decoded(self, data: Bytes) -> Values:
        """Decode the whole chunk; for texts of variable length, to their bytes."""
        pipeline = self.pipeline
        if pipeline is None:
            raise Unsupported("texts of variable length in shards are not read")
        if data.size > pipeline.most:
            raise Corrupt(
                "is far longer than a chunk", expected=f"at most {pipeline.most} bytes",
                got=data.size,
            )  # fmt: skip
        return pipeline.decoded(data.read_at(0, data.size))

    def _index(self, data: Bytes) -> Values:
        """Decode the index of a shard: offset and length of each chunk. Raises `Corrupt`."""
        if data.size < self.index_bytes:
            raise Corrupt(
                "is too short for the index of a shard", expected=f"{self.index_bytes} bytes",
                got=data.size,
            )  # fmt: skip
        at = 0 if self.at_start else data.size - self.index_bytes
        try:
            return self.index.decoded(data.read_at(at, self.index_bytes))
        except Corrupt as error:
            raise Corrupt(f"the index of the shard {error.what}") from error


def overlaps(
    start: tuple[int, ...], lengths: tuple[int, ...], chunk: tuple[int, ...]
) -> Iterator[Piece]:
    """Yield (index, start of the box in it, its part of the box) for each chunk of a box."""
    counts = [
        range(low // high, -(-(low + n) // high))
        for low, n, high in zip(start, lengths, chunk, strict=True)
    ]
    for index in _indices(counts):
        yield overlap(index, start, lengths, chunk)


def _indices(counts: list[range]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of a grid in C order; itertools would make a list of each axis."""
    if not counts:
        yield ()
        return
    for outer in _indices(counts[:-1]):
        for last in counts[-1]:
            yield (*outer, last)


def overlap(
    index: tuple[int, ...],
    start: tuple[int, ...],
    lengths: tuple[int, ...],
    chunk: tuple[int, ...],
) -> Piece:
    """The chunk at an index: (index, start of the box in it, its part of the box)."""
    begins, parts = [], []
    for at, low, count, high in zip(index, start, lengths, chunk, strict=True):
        first, last = max(low, at * high), min(low + count, (at + 1) * high)
        begins.append(first - at * high)
        parts.append(slice(first - low, last - low))
    return index, tuple(begins), (*parts, ...)  # ...: a view, also without axes


def _dotted(index: tuple[int, ...]) -> str:
    return ".".join(map(str, index))


class Chunks:
    """The elements of an array, read chunk by chunk."""

    variable = False

    def __init__(
        self,
        store: Store,
        key: str,
        name: str,
        node: Node,
        tell: Callable[[str], object],
        *,
        known: bool,
    ) -> None:
        """`tell` is called with a note on absent chunks, unless that was `known` before."""
        self.known = known
        self.store, self.key, self.name, self.node = store, key, name, node
        self.shape = node.shape
        self.dtype = dtype_of(node.element)
        self.limits = store.source.limits
        self.max_memory = self.limits.memory
        self._tell = tell
        self._listed: Listed | None = None
        path = store.path(key)
        most = self.max_memory // 4 if self.variable else 0
        what = f"a chunk of array '{name}'"
        check_memory(self.dtype.itemsize, self.max_memory, f"an element of array '{name}'")
        self.form = Form(node.codecs, node.grid, self.dtype, path, self.limits, variable=most)
        check_memory(self.form.needs(), self.max_memory, what, f"shape {node.grid}")
        self.fill = fill_of(node, path)

    # regions

    def __getitem__(self, key: Any) -> Values:
        """A region: integers, slices and one Ellipsis, as NumPy indexes."""
        start, count, then = [], [], []
        for part, length in zip(full_key(key, len(self.shape)), self.shape, strict=True):
            low, end, rest = range_of(part, length)
            start.append(low)
            count.append(end - low)
            then.append(rest)
        return self.box(tuple(start), tuple(count))[(*then, ...)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, read in slabs of whole chunks."""
        listed, total = self._listing(), chunk_count(self.node)
        item = self.dtype.itemsize
        if prod(self.shape) * item > self.max_memory:
            self._check_declared(listed, total)
        step = max(1, max_bytes // item)
        budget = max(1 << 16, self.max_memory // 4)
        for key in chunk_slabs(self.shape, self.node.grid, item, max_bytes, budget):
            start, lengths = _box_of(key, self.shape)
            values = self.box(start, lengths, listed).reshape(-1)
            if self.store.remote:
                listed.check()
            for at in range(0, values.size, step):
                yield values[at : at + step]
        parts = part_count(self.node)
        if listed.parts < parts and not self.known:
            self._tell(absent_note(self.name, parts - listed.parts, parts, self.node))

    def _listing(self) -> Found:
        """A new count of present and absent chunks."""
        return Found(
            self.limits, max(1, self.form.nbytes), f"array '{self.name}'",
            self.store.path(self.key), asked=self.store.remote,
        )  # fmt: skip

    def _check_declared(self, chunks: Found, total: int) -> None:
        """Raise `TooLarge` for an array of little more than a fill value, before it is made.

        In a folder the files are counted. A server is asked for chunks all over the array until it
        has one; its absent chunks are counted while the array is read.
        """
        known = self._listing()
        listed = self._all()
        if listed is not None:
            known.there, known.stored = len(listed.indices), listed.stored
        elif self._is_any_there(chunks.limits):
            return
        known.absent = total - known.there
        if listed is None or listed.complete:
            known.check()

    def _is_any_there(self, limits: Limits) -> bool:
        """True if a server has one of `Limits.absent_ratio` chunks from all over the array."""
        grid = [-(-n // high) for n, high in zip(self.shape, self.node.grid, strict=True)]
        total = prod(grid)
        count = min(total, limits.absent_ratio)
        for number in range(count):
            # The golden ratio spreads the first chunks, too, far apart from each other.
            flat = int(number * 0.6180339887498949 * total) % total
            index = []
            for length in reversed(grid):
                flat, at = divmod(flat, length)
                index.append(at)
            if self._stored_bytes(tuple(reversed(index))) is not None:
                return True
        return False

    def _stored_bytes(self, index: tuple[int, ...]) -> int | None:
        """The stored bytes of a chunk; None if it is absent."""
        key = self.node.key(index)
        source = self.store.find(f"{self.key}/{key}" if self.key else key, f"chunk {key}")
        if source is None:
            return None
        try:
            return source.size
        finally:
            source.close()

    def _all(self) -> Listed | None:
        """The chunks that exist, listed once; None for a server, which is not asked for a list."""
        if self._listed is None and not self.store.remote:
            self._listed = Listed(self.store, self.key, self.node)
        return self._listed

    def box(
        self, start: tuple[int, ...], count: tuple[int, ...], listed: Found | None = None
    ) -> Values:
        """The elements of a box; `listed` counts the pieces that are looked for."""
        nbytes = prod(count) * self.dtype.itemsize
        check_memory(nbytes, self.max_memory, f"a region of array '{self.name}'")
        out: Values = np.empty(count, self.dtype)
        if not out.size:
            return out
        opaque(out)[...] = opaque(self.fill)[0]
        touched = prod(
            (low + n - 1) // high - low // high + 1
            for low, n, high in zip(start, count, self.node.grid, strict=True)
        )
        listed = self._listing() if listed is None else listed
        if self.store.remote and touched > self.limits.absent_requests:
            self._check_touched(listed)
        tasks = (
            (index, low, out[part]) for index, low, part in self._pieces(start, count, touched)
        )
        take = partial(self._take, listed=listed, use=self._fill)
        small = out.nbytes < LARGE and not self.store.remote
        if touched < 2 or small or THREADS * self.form.needs() > self.max_memory // 2:
            for task in tasks:
                take(task)
            return out
        with Threads(THREADS) as threads:
            threads.run(take, tasks, TASKS)
        return out

    def _check_touched(self, listed: Found) -> None:
        """Raise `TooLarge` if a server would be asked for very many chunks, all absent it seems."""
        if not listed.there and not self._is_any_there(listed.limits):
            listed.absent += listed.limits.absent_ratio
            raise listed.too_many(listed.limits.absent_requests)

    def _pieces(
        self, start: tuple[int, ...], count: tuple[int, ...], touched: int
    ) -> Iterator[Piece]:
        """Yield the chunks that a box touches; if they are very many, only those that exist."""
        grid = self.node.grid
        listed = self._all() if touched > DIRECT else self._listed
        if listed is None or not listed.complete:
            return overlaps(start, count, grid)
        return (overlap(index, start, count, grid) for index in listed.inside(start, count, grid))

    def _take(
        self, task: Task, listed: Found, use: Callable[[Values, tuple[int, ...], Source], int]
    ) -> None:
        """Read one chunk by `use`, which returns the number of its parts; errors name the chunk."""
        index, low, out = task
        key = self.node.key(index)
        source = self.store.find(f"{self.key}/{key}" if self.key else key, f"chunk {key}")
        if source is None:
            listed.add(None)
            return
        try:
            listed.add(source.size)
            listed.add_parts(use(out, low, source))
        except RaconvertError as error:
            error.path = error.path or self.store.path(self.key)
            where = f"chunk {key} of array '{self.name}'"
            error.where = f"{where}, {error.where}" if error.where else where
            raise
        finally:
            source.close()

    def _fill(self, out: Values, low: tuple[int, ...], source: Source) -> int:
        """Fill a box from one stored piece; return how many of its chunks begin there."""
        work = Work(self.limits.shard_passes * source.size + (1 << 16))
        self.form.fill(out, low, source, work)
        return work.parts


def counted(store: Store, key: str, node: Node, shards: int) -> int | None:
    """Count the chunks that exist in an array of shards, by the shard indexes; None if unknown.

    Raises nothing: reading a damaged shard reports it.
    """
    try:
        limits, path = store.source.limits, store.path(key)
        form = Form(node.codecs, node.grid, dtype_of(node.element), path, limits)
        nested = form.inner is None or form.inner.inner is not None
        if nested or shards * max(PAGE, form.index_bytes) > store.source.limits.shard_index_bytes:
            return None
        count = 0
        for index, _ in store.chunks(key, node):
            name = node.key(index)
            source = store.find(f"{key}/{name}" if key else name, f"chunk {name}")
            if source is None:
                return None
            inside = tuple(
                min(high, n - at * high)
                for n, at, high in zip(node.shape, index, node.grid, strict=True)
            )
            try:
                count += form.count(source, inside)
            finally:
                source.close()
    except RaconvertError:
        return None
    return count


class Listed:
    """The chunks of an array that its folder has: `indices` in the grid, `stored` bytes in all.

    It is not `complete` if there are more than `Limits.listed_files`.
    """

    def __init__(self, store: Store, key: str, node: Node) -> None:
        flat = array("q")
        self.stored, count, most = 0, 0, store.source.limits.listed_files
        for index, nbytes in store.chunks(key, node):
            flat.extend(index)
            count += 1
            self.stored += nbytes
            if count > most:
                break
        self.complete = count <= most
        places = np.frombuffer(flat, np.int64) if flat else np.empty(0, np.int64)
        self.indices = places.reshape(count, len(node.shape))

    def inside(
        self, start: tuple[int, ...], count: tuple[int, ...], grid: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the indices of the chunks that a box touches."""
        low = np.array([a // n for a, n in zip(start, grid, strict=True)], np.int64)
        high = np.array(
            [(a + c - 1) // n for a, c, n in zip(start, count, grid, strict=True)], np.int64
        )
        picked = ((self.indices >= low) & (self.indices <= high)).all(axis=1)
        for index in self.indices[picked]:
            yield tuple(index.tolist())


def _box_of(
    key: tuple[int | slice, ...], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return start and lengths of a slab as a box."""
    start, lengths = [], []
    for part, length in zip(full_key(key, len(shape)), shape, strict=True):
        low, end, _ = range_of(part, length)
        start.append(low)
        lengths.append(end - low)
    return tuple(start), tuple(lengths)


class Texts(Chunks):
    """Elements of variable length, in the width of the longest, which all chunks are read for."""

    variable = True

    def __init__(
        self,
        store: Store,
        key: str,
        name: str,
        node: Node,
        tell: Callable[[str], object],
        *,
        known: bool,
    ) -> None:
        self._declared_fill = node.fill
        node = node._replace(element=_width(1), fill=None)
        super().__init__(store, key, name, node, tell, known=known)
        self._least = self._fill_text()
        self._per_chunk = prod(node.grid)
        if 64 * self._per_chunk > self.max_memory:
            raise TooLarge(
                f"array '{name}' has too many texts in a chunk", path=store.path(key),
                expected="their lengths in `--max-memory`", got=self._per_chunk,
            )  # fmt: skip
        element = _width(max(1, self._longest()))
        self.node = self.node._replace(element=element)
        self.dtype = dtype_of(element)
        check_memory(element.nbytes, self.max_memory, f"an element of array '{name}'")
        self.fill = np.array([self._least], self.dtype)

    def _fill_text(self) -> bytes:
        """The fill value as bytes. Raises `Corrupt`."""
        value = self._declared_fill
        if value in (None, 0, ""):
            return b""
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        raise Corrupt(
            "metadata field 'fill_value' is wrong", path=self.store.path(self.key),
            expected="a text", got=repr(value)[:80],
        )  # fmt: skip

    def _longest(self) -> int:
        """The bytes of the longest element; every chunk is decoded, one after the other."""
        longest = len(self._least)
        listed = self._listing()
        total = chunk_count(self.node)
        if self.store.remote and total > self.limits.absent_requests:
            self._check_touched(listed)
        zero = (0,) * len(self.shape)

        def look(out: Any, low: tuple[int, ...], source: Source) -> int:
            nonlocal longest
            data = self._data(source)
            inside = self._last(out) + 1
            for begin, end in islice(spans_of(data, self._per_chunk), inside):
                if end > begin and data[end - 1] == 0:
                    raise _ends_with_nul()
                longest = max(longest, end - begin)
            return not any(low)

        for index, low, part in self._pieces(zero, self.shape, total) if total else ():
            shape = tuple(axis.stop - axis.start for axis in part[:-1])
            self._take((index, low, np.broadcast_to(np.uint8(0), shape)), listed, look)
        return longest

    def _data(self, source: Source) -> memoryview:
        return np.ascontiguousarray(self.form.decoded(source)).data

    def _last(self, out: Values) -> int:
        """The flat index in its chunk of the last element of a box, which begins with the chunk."""
        flat = 0
        for length, high in zip(out.shape, self.node.grid, strict=True):
            flat = flat * high + length - 1
        return flat

    def _fill(self, out: Values, low: tuple[int, ...], source: Source) -> int:
        data = self._data(source)
        grid = self.node.grid
        wanted = (
            np.arange(prod(grid))
            .reshape(grid)[tuple(slice(a, a + n) for a, n in zip(low, out.shape, strict=True))]
            .reshape(-1)
        )
        most = int(wanted[-1]) + 1
        spans = np.fromiter(
            (at for span in islice(spans_of(data, self._per_chunk), most) for at in span),
            np.int64, 2 * most,
        ).reshape(most, 2)  # fmt: skip
        whole = out.flags.c_contiguous
        flat = out.reshape(-1) if whole else np.empty(len(wanted), self.dtype)
        for number, (begin, end) in enumerate(spans[wanted].tolist()):
            flat[number] = data[begin:end].tobytes()
        if not whole:
            out[...] = flat.reshape(out.shape)
        return not any(low)


def _ends_with_nul() -> Unsupported:
    return Unsupported("has a text that ends with a NUL, which no fixed width keeps")


def _width(nbytes: int) -> Any:
    from raconvert.plugin import Element

    return Element("user", nbytes, "|", f"|S{nbytes}")
