"""Many files of one shape and type as one lazy array on a new slowest axis.

The first file decides shape and type; every other file is opened when its turn comes, and one that
differs is an error that names both files and what they hold. Metadata that all items share is
stored once, fields that differ are stored per item, in a temporary file, so that memory stays that
of one block whatever the number of files. Slices that lie evenly apart make an axis of space.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import finalize

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks, region_of
from raconvert.arrays.dtypes import dtype_of, little, opaque, opaque_dtype, type_name
from raconvert.arrays.memory import check_memory
from raconvert.arrays.metadata import Axis, Metadata, Space, carried, in_dims_order, take_trailer
from raconvert.arrays.regions import full_key
from raconvert.arrays.space import directed, is_vector
from raconvert.arrays.transpose import in_order
from raconvert.errors import UsageError, WriteFailed, changed
from raconvert.files.source import DEFAULT_MAX_MEMORY, refuse_changed
from raconvert.workers.worker import can_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self


UNEVEN = 1e-3  # of the distance of two slices: how far one may be from its even position
SHARED_BYTES = 1 << 19  # bytes of items that another process reads at once


class Item(Protocol):
    """A file that is open: its one array, and the identities of its files (`seen`)."""

    @property
    def array(self) -> Array:
        """The one array of the file."""

    seen: dict[str, tuple[int, int, int, int]]

    def __enter__(self) -> Self:
        """The file itself, to be closed at the end of the block."""

    def __exit__(self, *_: object) -> None:
        """Close the file."""


def stack(
    paths: list[str],
    first: Item,
    open_one: Callable[[str], Item],
    max_memory: int = DEFAULT_MAX_MEMORY,
) -> Array:
    """Return the stack of the arrays that `open_one` opens from each path; `first` is open already.

    Shape (N, *shape of an item), element type of the first, index order C. All headers are read
    here, so that a file that differs is found before any data is read.
    """
    source = Stack(paths, first, open_one, max_memory)
    item = source.first
    meta = Metadata.from_dict(in_dims_order(source.items_meta.common, "C"))
    meta = meta.with_axis(0, Axis(), item.ndim)
    spatial = _evenly_placed(meta, source.origins, item)
    if spatial is not None:
        meta = spatial
        source.items_meta.settle(("space", "origin"))
    elif not source.items_meta.agree_on(("space", "origin")):
        source.notes = [
            *source.notes,
            "the files lie at different places, which stay with each item",
        ]
    meta = meta.replace(items=source.items_meta.items)
    return Array(
        little(item.element),
        (*item.dims, len(paths)),
        name=item.name,
        index_order="C",
        meta=meta,
        data=source,
    )


def _evenly_placed(meta: Metadata, origins: array[float], item: Array) -> Metadata | None:
    """Return the metadata of a stack of slices that lie evenly apart: its first axis is spatial.

    An axis of length 1 across each slice is then spatial no more, since the first one takes its
    direction. None if positions are unknown, or are not those of a stack of slices.
    """
    axes, count = list(meta.axes), len(origins) // 3
    if count < 2 or len(axes) != item.ndim + 1:
        return None
    positions = np.array(origins).reshape(count, 3)
    step = (positions[-1] - positions[0]) / (count - 1)
    even = positions[0] + np.arange(count)[:, None] * step
    if not step.any() or np.abs(positions - even).max() > UNEVEN * np.linalg.norm(step):
        return None
    spatial = [number for number, axis in enumerate(axes) if axis.vector is not None]
    across = [number for number in spatial if item.dims[::-1][number - 1] == 1]
    if len(spatial) == 3 and across:
        axes[across[0]] = axes[across[0]].replace(direction=None)
        spatial.remove(across[0])
    matrix = np.array([*(axes[number].vector for number in spatial), step])
    if len(spatial) != 2 or matrix.shape != (3, 3) or np.linalg.matrix_rank(matrix) < 3:
        return None
    units = {axes[number].units for number in spatial}
    axis = Axis(units=units.pop() if len(units) == 1 else None)
    axes[0] = directed(axis, [float(part) for part in step])
    frame = None if meta.space is None else meta.space.frame
    return meta.replace(axes=axes, space=Space(frame, tuple(origins[:3])))


class Stack:
    """Array source: item after item along a new first axis."""

    def __init__(
        self,
        paths: list[str],
        first: Item,
        open_one: Callable[[str], Item],
        max_memory: int,
    ) -> None:
        self.first: Array = in_order(first.array, "C", max_memory)  # all others must be like it
        self.shape: tuple[int, ...] = (len(paths), *self.first.dims[::-1])
        self.dtype: np.dtype[Any] = dtype_of(little(self.first.element))
        self.items_meta: ItemMetadata = ItemMetadata(paths)
        self.notes: list[str] = []
        self.jobs = 1  # processes that read the items (``--jobs``)
        self._paths = paths
        self._open_one = open_one
        self._max_memory = max_memory
        self._marks = array("q")  # a hash of the identities of each item's files (8 bytes)
        # The origins of the items in space, three numbers each; empty if one is unknown.
        self.origins: array[float] = array("d")
        known = True
        for number, path in enumerate(paths):
            with first if number == 0 else open_one(path) as opened:
                item = self._checked(opened, path)
                self._marks.append(_mark(opened))
                fields = in_dims_order(item.meta.to_dict(), item.index_order)
                origin = None if item.meta.space is None else item.meta.space.origin
                known = known and is_vector(origin, 3)
                self.origins.extend((origin or ()) if known else ())
                if take_trailer(fields) is not None:
                    self.notes = ["the trailers of the stacked files are not kept"]
                if item.meta.items is not None:
                    self.notes = [
                        "what the items of the stacked files have of their own is left out"
                    ]
                self.items_meta.add(fields)
        if not known:
            self.origins = array("d", [])

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield blocks of at most `max_bytes`, one item after the other."""
        fewest = max(1, SHARED_BYTES // max(1, self.first.nbytes))  # items of a piece
        jobs = min(self.jobs, self._max_memory // (6 * fewest * max(1, self.first.nbytes)))
        if jobs > 1 and len(self._paths) > fewest and can_fork():
            yield from self._stream_of_copies(fewest, jobs)
            return
        for number in range(len(self._paths)):
            with self._open_one(self._paths[number]) as opened:
                yield from blocks(self._same_item(opened, number), max_bytes)
                refuse_changed(opened.seen)

    def _stream_of_copies(self, step: int, jobs: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield blocks of `step` items, which copies of this process read."""
        from raconvert.workers.shared_memory import first_to_last, pieces

        paths, nbytes = self._paths, self.first.nbytes

        def make(number: int, memory: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
            offset = 0
            for item in range(len(paths))[number * step : (number + 1) * step]:
                with self._open_one(paths[item]) as opened:
                    for block in blocks(self._same_item(opened, item), nbytes):
                        memory[offset : offset + block.nbytes] = block.reshape(-1).view(np.uint8)
                        offset += block.nbytes
                    refuse_changed(opened.seen)

        def files_of(number: int) -> str:
            return first_to_last(paths[number * step : (number + 1) * step])

        count = -(-len(paths) // step)
        for number, (memory, _) in enumerate(pieces(make, count, step * nbytes, jobs, files_of)):
            items = min(step, len(paths) - number * step)
            yield memory[: items * nbytes].view(self.dtype).reshape(items, *self.shape[1:])

    def _same_item(self, opened: Item, number: int) -> Array:
        """Return the array of an item that was opened again; `Changed` if its files changed."""
        item = self._checked(opened, self._paths[number])
        if _mark(opened) != self._marks[number]:
            raise changed(self._paths[number])
        return item

    def _checked(self, opened: Item, path: str) -> Array:
        """Return the array of an item in C order; `UsageError` if it differs from the first."""
        item = in_order(opened.array, "C", self._max_memory)
        first = self.first
        same_type = little(item.element) == little(first.element)
        same_type &= carried(item.meta) == carried(first.meta)
        if item.dims != first.dims or not same_type:
            raise UsageError(
                "files to stack differ",
                path=path,
                expected=f"{type_name(first.element)} {first.shape} as in '{self._paths[0]}'",
                got=f"{type_name(item.element)} {item.shape}",
                remedy="leave it out, or convert each file on its own with `--each`",
            )
        return item

    def __getitem__(self, key: Any) -> Any:
        number, *rest = full_key(key, len(self.shape))
        inner = tuple(rest)
        chosen = range(self.shape[0])[number]
        if isinstance(chosen, int):
            return self._part(chosen, inner)
        if not chosen:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *inner)]
        first = self._part(chosen[0], inner)
        check_memory(len(chosen) * first.nbytes, self._max_memory, "this part of the stack")
        out = np.empty((len(chosen), *first.shape), opaque_dtype(self.dtype))
        out[0] = opaque(first)
        for position, number in enumerate(chosen[1:], 1):
            out[position] = opaque(self._part(number, inner))
        return out.view(self.dtype)

    def _part(self, number: int, key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """Return a region of one item, in memory of its own."""
        with self._open_one(self._paths[number]) as opened:
            region = region_of(self._same_item(opened, number), key)
            return opaque(region).astype(opaque_dtype(self.dtype)).view(self.dtype)


def _mark(opened: Item) -> int:
    """Return a hash that changes with any of the files that are read for an item."""
    return hash(tuple(opened.seen.items()))


class ItemMetadata:
    """Collects the metadata of many items: common fields once, those that differ on disk.

    Two values are the same if their JSON is: 1, 1.0 and True differ, NaN equals NaN. A field is
    named by its path: its keys in the mappings of the metadata.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._count = 0
        self._spool: Any = None  # the file with a line of JSON for each item
        self._common: dict[tuple[Any, ...], Any] = {}
        self._texts: dict[tuple[Any, ...], str] = {}  # the common fields as JSON
        self._odd: set[tuple[Any, ...]] = set()  # fields that differ
        self._settled: set[tuple[Any, ...]] = set()

    def agree_on(self, path: tuple[Any, ...]) -> bool:
        """True if a field is the same in all items, or missing in all."""
        return path not in self._odd

    def settle(self, path: tuple[Any, ...]) -> None:
        """Drop a field from the items, since the file has it elsewhere."""
        self._settled.add(path)
        if self._odd <= self._settled and self._spool is not None:
            self._spool = None

    def add(self, fields: dict[str, Any]) -> None:
        """Add the metadata of the next item; nothing is stored while all items agree."""
        flat = dict(_flatten(fields))
        texts = {path: json_of(value) for path, value in flat.items()}
        if self._count == 0:
            self._common, self._texts = flat, texts
        elif texts != self._texts or self._spool is not None:
            try:
                self._write(flat)
            except OSError as error:
                raise _spool_failed(error) from error
            same = {k: v for k, v in self._texts.items() if texts.get(k) == v}
            self._odd |= (self._texts.keys() | texts.keys()) - same.keys()
            self._texts = same
            self._common = {k: self._common[k] for k in self._texts}
        self._count += 1

    def _write(self, flat: dict[tuple[Any, ...], Any]) -> None:
        if self._spool is None:
            from tempfile import TemporaryFile

            self._spool = TemporaryFile()  # noqa: SIM115 - kept open
            finalize(self, _close, self._spool)
            self._spool.write(_line(self._common) * self._count)
        self._spool.write(_line(flat))

    @property
    def common(self) -> dict[str, Any]:
        """The fields that all items share."""
        return _nested(self._common.items())

    @property
    def items(self) -> Callable[[], Iterator[dict[str, Any]]] | None:
        """A reader of the fields that differ, one mapping per item; None if none do."""
        return None if self._spool is None else self._read

    def _read(self) -> Iterator[dict[str, Any]]:
        import json

        try:
            self._spool.flush()
        except OSError as error:
            raise _spool_failed(error) from error
        for number, line in enumerate(self._lines()):
            pairs = [(tuple(path), value) for path, value in json.loads(line)]
            odd = [
                (path, value)
                for path, value in pairs
                if path not in self._texts and path not in self._settled
            ]
            yield {"item": number, "file": os.path.basename(self._paths[number]), **_nested(odd)}

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the temporary file, each by its offset: several readers share it."""
        offset = 0
        while True:
            self._spool.seek(offset)
            line: bytes = self._spool.readline()
            if not line:
                return
            offset += len(line)
            yield line.decode("utf-8", "surrogatepass")


def _spool_failed(error: OSError) -> WriteFailed:
    from tempfile import gettempdir

    return WriteFailed(
        f"a temporary file for metadata cannot be written: {error.strerror}",
        path=gettempdir(),
        remedy="name a folder with more space in the environment variable TMPDIR; the destination "
        "is as it was before",
    )


def _close(file: Any) -> None:
    with suppress(OSError):  # a full disk does not matter now: the file is deleted
        file.close()


def json_of(value: Any) -> str:
    """Return metadata of an item as JSON; bytes become base64, dates and other values text."""
    import json

    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=_text)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    return str(value)


def _line(flat: dict[tuple[Any, ...], Any]) -> bytes:
    text = json_of([[list(path), value] for path, value in flat.items()])
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _flatten(
    fields: dict[Any, Any], path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the fields of nested mappings by their paths; an empty mapping is a value."""
    for key, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, (*path, key))
        else:
            yield (*path, key), value


def _nested(pairs: Iterable[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    """Return nested mappings of fields by their paths: the reverse of `_flatten`."""
    root: dict[str, Any] = {}
    for path, value in pairs:
        mapping = root
        for key in path[:-1]:
            mapping = mapping.setdefault(key, {})
        mapping[path[-1]] = value
    return root
