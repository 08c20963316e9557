"""Array sources over chunks: only those are read that a region touches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from raconvert.arrays.blocks import chunk_slabs
from raconvert.arrays.dtypes import opaque
from raconvert.arrays.indexing import full_key
from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.plugin import dtype_of

from .codecs import SLACK, Pipeline, texts_of
from .fills import fill_of
from .header import Codec, Node, chunk_count
from .tables import MANY, SPARSE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from .stores import Store

    Values = np.ndarray[Any, Any]
    Box = tuple[tuple[int, ...], tuple[int, ...]]  # start and lengths

    class Bytes(Protocol):
        """What is read of a key: a `Source`, or a stretch of one."""

        @property
        def size(self) -> int:
            """The number of bytes."""

        def read_at(self, offset: int, nbytes: int, /) -> bytes:
            """Up to `nbytes` bytes from `offset`."""


LARGE = 1 << 20  # bytes of a region from which chunks are decoded by several threads
THREADS = min(4, os.cpu_count() or 1)
TASKS = 64  # chunks that are handed to them at once
NOT_THERE = (1 << 64) - 1  # offset and length in the index of a shard
HEADROOM = 1 << 16  # bytes that an encoded chunk may have more than it should


class Part:
    """A stretch of a file, as a file: a chunk in a shard."""

    def __init__(self, whole: Bytes, offset: int, size: int) -> None:
        self._whole, self._offset, self.size = whole, offset, size

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Up to `nbytes` bytes from `offset`."""
        return self._whole.read_at(self._offset + offset, min(nbytes, self.size - offset))


class Form:
    """How what lies under a key is read: one chunk, or a shard of smaller ones."""

    def __init__(
        self, codecs: tuple[Codec, ...], shape: tuple[int, ...], dtype: np.dtype[Any], path: str,
        *, variable: int = 0,
    ) -> None:  # fmt: skip
        self.shape = shape
        self.nbytes = prod(shape) * dtype.itemsize
        self.inner: Form | None = None
        self.pipeline: Pipeline | None = None
        names = [codec.name for codec in codecs]
        if "sharding_indexed" not in names:
            self.pipeline = Pipeline(codecs, shape, dtype, path, variable=variable)
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
        self.index = Pipeline(settings["index_codecs"], (*self.counts, 2), np.dtype("<u8"), path)
        names = [codec.name for codec in settings["index_codecs"]]
        if any(name not in ("bytes", "crc32c") for name in names):
            raise Unsupported("the index of shards is compressed", path=path)
        if settings["index_codecs"][0].settings.get("endian") == "big":
            self.index.dtype = np.dtype(">u8")
        self.index_bytes = prod(self.counts) * 16 + 4 * names.count("crc32c")
        self.inner = Form(settings["codecs"], chunk, dtype, path, variable=variable)

    @property
    def unit(self) -> int:
        """The bytes of what is decoded at once."""
        return self.nbytes if self.inner is None else self.inner.unit

    def needs(self) -> int:
        """The bytes that reading an element needs beside the result."""
        if self.inner is None:
            return self.nbytes
        return int(2 * self.index_bytes + self.inner.needs())

    def fill(self, out: Values, start: tuple[int, ...], data: Bytes) -> None:
        """Copy into `out`, which has the fill value, the box of this chunk that begins at `start`.

        Raises `Corrupt` for bytes that are not a chunk.
        """
        if self.inner is None:
            values = self.decoded(data)
            key: Any = tuple(slice(a, a + n) for a, n in zip(start, out.shape, strict=True))
            opaque(out)[...] = opaque(values[(*key, ...)])  # a scalar has forgotten its byte order
            return
        index = self._index(data)
        for place, low, part in overlaps(start, out.shape, self.inner.shape):
            offset, nbytes = (int(n) for n in index[place])
            if offset == nbytes == NOT_THERE:
                continue
            if offset + nbytes > data.size:
                raise Corrupt(
                    f"index leads outside the shard, to part {_dotted(place)}",
                    expected=f"at most {data.size}", got=offset + nbytes,
                )  # fmt: skip
            self.inner.fill(out[part], low, Part(data, offset, nbytes))

    def decoded(self, data: Bytes) -> Values:
        """The whole chunk; for texts of variable length its bytes."""
        pipeline = self.pipeline
        if pipeline is None:
            raise Unsupported("texts of variable length in shards are not read")
        limit = pipeline.variable or SLACK * self.nbytes + HEADROOM
        if data.size > limit:
            raise Corrupt(
                "is far longer than a chunk", expected=f"at most {limit} bytes", got=data.size
            )
        return pipeline.decoded(data.read_at(0, data.size))

    def _index(self, data: Bytes) -> Values:
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
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]]:
    """The chunks that a box touches: place in the grid, where the box begins in it, its part."""
    axes = []
    for low, count, high in zip(start, lengths, chunk, strict=True):
        axis = []
        for place in range(low // high, -(-(low + count) // high)):
            first, last = max(low, place * high), min(low + count, (place + 1) * high)
            axis.append((place, first - place * high, slice(first - low, last - low)))
        axes.append(axis)
    for parts in product(*axes):
        yield (
            tuple(part[0] for part in parts),
            tuple(part[1] for part in parts),
            (*(part[2] for part in parts), ...),  # a view, also of no axis
        )


def _dotted(place: tuple[int, ...]) -> str:
    return ".".join(map(str, place))


class Chunks:
    """The elements of an array, read chunk by chunk."""

    variable = False

    def __init__(
        self, store: Store, key: str, name: str, node: Node, present: int | None, max_memory: int
    ) -> None:
        self.store, self.key, self.name, self.node = store, key, name, node
        self.shape = node.shape
        self.dtype = dtype_of(node.element)
        self.max_memory = max_memory
        self.present = present
        path = store.path(key)
        most = max_memory // 4 if self.variable else 0
        self.form = Form(node.codecs, node.grid, self.dtype, path, variable=most)
        self.fill = fill_of(node, path)
        check_memory(
            self.form.needs(), max_memory, f"a chunk of array '{name}'", f"shape {node.grid}"
        )

    # regions

    def __getitem__(self, key: Any) -> Values:
        """A region: integers, slices and one Ellipsis, as NumPy indexes."""
        start, count, then = [], [], []
        for part, length in zip(full_key(key, len(self.shape)), self.shape, strict=True):
            low, n, rest = _range_of(part, length)
            start.append(low)
            count.append(n)
            then.append(rest)
        what = f"a region of array '{self.name}'"
        check_memory(prod(count) * self.dtype.itemsize, self.max_memory, what)
        return self.box(tuple(start), tuple(count))[(*then, ...)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[...], dtype=dtype, copy=copy)

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield one-dimensional pieces in stored order, read in slabs of whole chunks."""
        self._refuse_sparse(prod(self.shape) * self.dtype.itemsize)
        self._touched((0,) * len(self.shape), self.shape)
        step = max(1, max_bytes // self.dtype.itemsize)
        budget = max(1 << 16, self.max_memory // 4)
        item = self.dtype.itemsize
        for key in chunk_slabs(self.shape, self.node.grid, item, max_bytes, budget):
            values = self[key].reshape(-1)
            for start in range(0, values.size, step):
                yield values[start : start + step]

    def _refuse_sparse(self, nbytes: int) -> None:
        """Refuse (`TooLarge`) to make of a few files very much that is but a fill value."""
        if self.present is None:
            return
        most = max(self.max_memory, SPARSE * (self.present + 1) * max(1, self.form.nbytes))
        if nbytes > most:
            raise TooLarge(
                f"array '{self.name}' declares {nbytes} bytes that are little more than a fill "
                "value", path=self.store.path(self.key), expected=f"at most {most}",
                got=f"{self.present} chunks",
                remedy="choose a part of it, or allow it with "
                f"--max-memory {-(-nbytes // (1 << 20))}M",
            )  # fmt: skip

    def _touched(self, start: tuple[int, ...], count: tuple[int, ...]) -> int:
        """How many chunks a box touches; `TooLarge` where there are far fewer in all."""
        found = prod(
            (low + n - 1) // high - low // high + 1
            for low, n, high in zip(start, count, self.node.grid, strict=True)
        )
        if self.present is None or found <= max(MANY, SPARSE * (self.present + 1)):
            return found
        raise TooLarge(
            f"array '{self.name}' is cut into {found} chunks, of which few are there",
            path=self.store.path(self.key), got=self.present,
            remedy="choose a part of it, or write it again with larger chunks",
        )  # fmt: skip

    def box(self, start: tuple[int, ...], count: tuple[int, ...]) -> Values:
        """The elements of a box."""
        out: Values = np.empty(count, self.dtype)
        if not out.size:
            return out
        opaque(out)[...] = opaque(self.fill)[0]
        touched = self._touched(start, count)
        if self.present == 0:
            return out
        tasks = (
            (place, low, out[part]) for place, low, part in overlaps(start, count, self.node.grid)
        )
        small = out.nbytes < LARGE and not self.store.remote
        if touched < 2 or small or THREADS * self.form.needs() > self.max_memory // 2:
            for task in tasks:
                self._take(task)
            return out
        with ThreadPoolExecutor(THREADS) as pool:
            while some := list(islice(tasks, TASKS)):
                for _ in pool.map(self._take, some):
                    pass
        return out

    def _take(self, task: tuple[tuple[int, ...], tuple[int, ...], Values]) -> None:
        """Read one chunk; what is wrong with it says which one."""
        place, low, out = task
        key = self.node.key(place)
        found = self.store.find(f"{self.key}/{key}" if self.key else key, f"chunk {key}")
        if found is None:
            return
        try:
            self.form.fill(out, low, found)
        except RaconvertError as error:
            error.path = error.path or self.store.path(self.key)
            where = f"chunk {key} of array '{self.name}'"
            error.where = f"{where}, {error.where}" if error.where else where
            raise
        finally:
            found.close()


def _range_of(part: Any, length: int) -> tuple[int, int, Any]:
    """Where a part of a key begins, how much is read, and what is taken of that."""
    if isinstance(part, slice):
        start, stop, step = part.indices(length)
        picked = range(start, stop, step)
        if not picked:
            return 0, 0, slice(None)
        low, high = min(picked[0], picked[-1]), max(picked[0], picked[-1])
        return low, high - low + 1, slice(None, None, step)
    place = part.__index__()
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of bounds for an axis of length {length}")
    return place % length, 1, 0


class Texts(Chunks):
    """The elements of variable length, in the width of the longest; known once all were read."""

    variable = True

    def __init__(
        self, store: Store, key: str, name: str, node: Node, present: int | None, max_memory: int
    ) -> None:
        self._variable = node
        super().__init__(
            store, key, name, node._replace(element=_width(1), fill=None), present, max_memory
        )
        self._least = self._fill_text()
        grid = chunk_count(node)
        if grid > MANY or prod(node.grid) * 64 > max_memory:
            raise TooLarge(
                f"array '{name}' has too many texts to find the longest", path=store.path(key),
                expected=f"at most {MANY} chunks, and one in --max-memory", got=grid,
            )  # fmt: skip
        longest = len(self._least)
        counts = [range(-(-n // high)) for n, high in zip(node.shape, node.grid, strict=True)]
        for place in product(*counts):
            longest = max([longest, *map(len, self._texts(place) or ())])
        self.node = node._replace(element=_width(max(1, longest)))
        self.dtype = dtype_of(self.node.element)
        self.fill = np.array([self._least], self.dtype)

    def _fill_text(self) -> bytes:
        value = self._variable.fill
        if value in (None, 0, ""):
            return b""
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass")
        raise Corrupt(
            "metadata field 'fill_value' is wrong", path=self.store.path(self.key),
            expected="a text", got=repr(value)[:80],
        )  # fmt: skip

    def _texts(self, place: tuple[int, ...]) -> list[bytes] | None:
        key = self.node.key(place)
        found = self.store.find(f"{self.key}/{key}" if self.key else key, f"chunk {key}")
        if found is None:
            return None
        try:
            return _kept(texts_of(self.form.decoded(found), prod(self.node.grid)))
        except RaconvertError as error:
            error.path = error.path or self.store.path(self.key)
            error.where = f"chunk {key} of array '{self.name}'"
            raise
        finally:
            found.close()

    def _take(self, task: tuple[tuple[int, ...], tuple[int, ...], Values]) -> None:
        place, low, out = task
        texts = self._texts(place)
        if texts is None:
            return
        values = np.array(texts, self.dtype).reshape(self.node.grid)
        out[...] = values[tuple(slice(a, a + n) for a, n in zip(low, out.shape, strict=True))]


def _kept(texts: list[bytes]) -> list[bytes]:
    if any(text.endswith(b"\0") for text in texts):
        raise Unsupported("has a text that ends with a NUL, which no fixed width keeps")
    return texts


def _width(nbytes: int) -> Any:
    from raconvert.plugin import Element

    return Element("user", nbytes, "|", f"|S{nbytes}")
