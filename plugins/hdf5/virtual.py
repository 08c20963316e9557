"""Virtual datasets, assembled here: every source is opened under our own check.

"HDF5 Virtual Dataset" (RFC, The HDF Group) and its reference manual. The library would look for
sources, and for the external storage of sources, relative to the working directory, and where the
variables HDF5_VDS_PREFIX and HDF5_EXTFILE_PREFIX say, and would read a missing one as the fill
value. Here `raconvert.files.named` resolves each file, and each source is read by itself.

Unlimited axes are as long as the sources make them, the view "last available" of the library (its
default); sources by a pattern (``%b``) are read up to the first that is missing.
"""

from __future__ import annotations

from collections import namedtuple
from math import prod

import numpy as np
from h5py import h5d, h5o, h5s, h5t

from raconvert.arrays.dtypes import opaque
from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, Unsupported
from raconvert.files.copy import extent_slabs
from raconvert.plugin import Extent

from .datatypes import in_file, kind_of
from .files import FAILURES, guarded, info_of, name_in_link, reason_of
from .ondisk.chunk_indexes import check_index
from .ondisk.header import check_all_heaps
from .storage import (
    Storage,
    check_filters,
    check_size,
    declared_bytes,
    external_pieces,
    space_of,
    storage_of,
    stored_bytes,
)
from .strings import longest_of
from .values import Dataset, read_box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from h5py import h5p

    from raconvert.plugin import Element

    from .datatypes import Kind
    from .files import File, Files
    from .walk import Walk

    Places = np.ndarray[Any, np.dtype[np.int64]]
    Values = np.ndarray[Any, Any]
    Axes = list[tuple[int, int, int, int]]


# Selections of virtual datasets: they pair the elements of a source with those of the whole -------
# "HDF5 User's Guide", 7.4.2 "Selecting a subset of a dataspace". A selection is an ordered list
# of elements: those of a grid (on each axis blocks at equal distances), or any others by their
# flat indices. No array here is longer than the box that is read.


UNLIMITED = (1 << 64) - 1


class Run(namedtuple("Run", "start stride block length")):
    """A grid along one axis: `length` positions, in blocks of `block` every `stride`."""

    __slots__ = ()

    def inside(self, low: int, high: int) -> tuple[Places, Places]:
        """The selected indices from `low` to `high`, and their positions in the run."""
        indices = np.arange(max(low, self.start), min(high, self.end), dtype=np.int64)
        whole, rest = np.divmod(indices - self.start, self.stride)
        which = whole * self.block + rest
        chosen = (rest < self.block) & (which < self.length)
        return indices[chosen], which[chosen]

    def at(self, which: Places) -> Places:
        """The indices at positions of the run."""
        whole, rest = np.divmod(which, self.block)
        return self.start + whole * self.stride + rest

    @property
    def end(self) -> int:
        """The index behind the last one."""
        if not self.length:
            return self.start
        last = self.length - 1
        return self.start + last // self.block * self.stride + last % self.block + 1


class Grid:
    """The elements at all combinations of selected indices, the last axis fastest."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.lengths = tuple(run.length for run in runs)
        self.size = prod(self.lengths)
        self.ends = tuple(run.end for run in runs)

    def inside(self, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Places]:
        """The coordinates of the selected elements in a box, and their positions among all."""
        parts = [r.inside(s, s + n) for r, s, n in zip(self.runs, start, count, strict=True)]
        if not parts:
            return (), np.zeros(1, np.int64)
        places = np.meshgrid(*(indices for indices, _ in parts), indexing="ij")
        which = np.meshgrid(*(number for _, number in parts), indexing="ij")
        flat = np.zeros(0, np.int64)
        if which[0].size:
            flat = np.ravel_multi_index([part.reshape(-1) for part in which], self.lengths)
        return tuple(index.reshape(-1) for index in places), flat

    def at(self, which: Places) -> tuple[Places, ...]:
        """The coordinates of the elements at positions of the selection."""
        if not self.runs:
            return ()
        parts = np.unravel_index(which, self.lengths)
        return tuple(r.at(part) for r, part in zip(self.runs, parts, strict=True))


class Scattered:
    """Any elements, in the order of their flat indices."""

    def __init__(self, places: Places, shape: tuple[int, ...]) -> None:
        self.coordinates = np.unravel_index(places, shape)
        self.size = places.size
        self.ends = tuple(int(c.max()) + 1 if c.size else 0 for c in self.coordinates)

    def inside(self, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Places]:
        """The coordinates of the selected elements in a box, and their positions among all."""
        chosen = np.ones(self.size, bool)
        for places, low, n in zip(self.coordinates, start, count, strict=True):
            chosen &= (places >= low) & (places < low + n)
        which = np.flatnonzero(chosen)
        return self.at(which), which

    def at(self, which: Places) -> tuple[Places, ...]:
        """The coordinates of the elements at positions of the selection."""
        return tuple(places[which] for places in self.coordinates)


Selection = Grid | Scattered


def regular(space: h5s.SpaceID) -> list[tuple[int, int, int, int]] | None:
    """Return (start, stride, count, block) of each axis of a grid; None for other selections."""
    if space.get_select_type() == h5s.SEL_ALL:
        return [(0, 1, 1, int(n)) for n in space.get_simple_extent_dims()]
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return None
    parts = space.get_regular_hyperslab()
    return [tuple(int(n) for n in part) for part in zip(*parts, strict=True)]  # type: ignore[misc]


def unlimited_axis(axes: list[tuple[int, int, int, int]] | None) -> int | None:
    """The unlimited axis of a grid, or None."""
    unlimited = (axis for axis, part in enumerate(axes or ()) if UNLIMITED in part[2:])
    return next(unlimited, None)


def grid(axes: list[tuple[int, int, int, int]], axis: int | None = None, length: int = 0) -> Grid:
    """Make a grid; on its unlimited `axis` it has `length` positions."""
    runs = []
    for number, (start, stride, count, block) in enumerate(axes):
        is_unlimited = number == axis
        each = length if block == UNLIMITED else block
        several = is_unlimited and block != UNLIMITED
        step = stride if several or UNLIMITED > count > 1 else each
        positions = length if is_unlimited else count * block
        runs.append(Run(start, max(1, step), max(1, each), positions))
    return Grid(runs)


def block_at(axes: list[tuple[int, int, int, int]], axis: int, number: int) -> Grid:
    """Make the grid of one block of a grid with an unlimited axis."""
    start, stride, _, block = axes[axis]
    of_block = list(axes)
    of_block[axis] = (start + number * stride, 1, 1, block)
    return grid(of_block)


def positions_up_to(part: tuple[int, int, int, int], end: int) -> int:
    """Count the positions below the index `end` on an unlimited axis."""
    start, stride, _, block = part
    if end <= start:
        return 0
    if block in (UNLIMITED, stride):
        return end - start
    whole, rest = divmod(end - start, stride)
    return whole * block + min(rest, block)


def end_of(part: tuple[int, int, int, int], length: int) -> int:
    """The index behind the last of `length` positions on an unlimited axis."""
    start, stride, _, block = part
    if not length:
        return 0
    if block in (UNLIMITED, stride):
        return start + length
    return Run(start, stride, block, length).end


def scattered(space: h5s.SpaceID, limit: int) -> Scattered:
    """Make a selection that is not a grid. Raises `TooLarge` above `limit` bytes of memory."""
    shape = tuple(int(n) for n in space.get_simple_extent_dims())
    count = int(space.get_select_npoints())
    check_memory(32 * count * (len(shape) + 1), limit, "a selection of a virtual dataset")
    offsets = [np.zeros(0, np.int64)]
    for first, last in space.get_select_hyper_blocklist():
        ranges = [np.arange(a, b + 1, dtype=np.int64) for a, b in zip(first, last, strict=True)]
        mesh = np.meshgrid(*ranges, indexing="ij")
        offsets.append(np.ravel_multi_index([part.reshape(-1) for part in mesh], shape))
    return Scattered(np.sort(np.concatenate(offsets)), shape)


# One mapping: the elements `there` of a source (`Part`) are the elements `here` of the whole.
Piece = namedtuple("Piece", "source there here")
# A mapping as the file has it: names of file and dataset, and two dataspaces.
VirtualMapping = namedtuple("VirtualMapping", "file path there here")


class Virtual:
    """One virtual dataset with its sources resolved: its shape, and its pieces."""

    def __init__(self, shape: tuple[int, ...], pieces: list[Piece], fill: h5p.PropDCID) -> None:
        self.shape = shape
        self.pieces = pieces
        self.reads = sum(1 + piece.source.reads for piece in pieces)  # pieces, also of sources
        self.mapped = sum(piece.here.size for piece in pieces)  # elements that sources provide
        self.fill = fill
        # Bytes of the longest string.
        self.longest = max((piece.source.longest for piece in pieces), default=1)
        lows, highs = [], []
        for piece in pieces:
            lows.append(_starts(piece.here))
            highs.append(piece.here.ends)
        self._lows = np.array(lows, np.uint64).reshape(len(pieces), len(shape))
        self._highs = np.array(highs, np.uint64).reshape(len(pieces), len(shape))

    def read(
        self, start: tuple[int, ...], count: tuple[int, ...], kind: Kind, tid: h5t.TypeID
    ) -> Values:
        """Read a box: the fill value, and over it the elements of every piece."""
        out = np.zeros(count + kind.dims, kind.buffer)
        out[...] = self._fill_value(kind)
        for piece in self._pieces_in(start, count):
            piece.source.check_type(kind, tid)
            grids = isinstance(piece.here, Grid) and isinstance(piece.there, Grid)
            if grids and _copy_grid(piece, out, start, count, kind, tid):
                continue
            here, which = piece.here.inside(start, count)
            if which.size:
                at = tuple(places - low for places, low in zip(here, start, strict=True))
                opaque(out)[at] = opaque(piece.source.pick(piece.there.at(which), kind, tid))
        return out

    def _pieces_in(self, start: tuple[int, ...], count: tuple[int, ...]) -> Iterator[Piece]:
        """Yield the pieces that may have elements in a box."""
        low = np.array(start, np.uint64)
        high = low + np.array(count, np.uint64)
        touched = ((self._lows < high) & (self._highs > low)).all(axis=1)
        for number in np.flatnonzero(touched):
            yield self.pieces[number]

    def _fill_value(self, kind: Kind) -> Any:
        if kind.buffer.kind == "O":
            return b""
        value = np.zeros((), kind.buffer)
        if self.fill.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            if kind.dims:
                raise Unsupported("a fill value of an array type, in a virtual dataset")
            self.fill.get_fill_value(value)
        return value


def _starts(selection: Selection) -> tuple[int, ...]:
    """The lowest index of a selection on each axis."""
    if isinstance(selection, Grid):
        return tuple(run.start for run in selection.runs)
    return tuple(int(c.min()) if c.size else 0 for c in selection.coordinates)


def _copy_grid(
    piece: Piece,
    out: Values,
    start: tuple[int, ...],
    count: tuple[int, ...],
    kind: Kind,
    tid: h5t.TypeID,
) -> bool:
    """Copy the elements of a piece in a box, axis by axis; False if axes do not match in pairs."""
    here, there = piece.here, piece.there
    long_here = [k for k, n in enumerate(here.lengths) if n != 1]
    long_there = [k for k, n in enumerate(there.lengths) if n != 1]
    if [here.lengths[k] for k in long_here] != [there.lengths[k] for k in long_there]:
        return False
    parts = [r.inside(s, s + n) for r, s, n in zip(here.runs, start, count, strict=True)]
    if not all(indices.size for indices, _ in parts):
        return True
    wanted = [run.at(np.zeros(1, np.int64)) for run in there.runs]
    for a, b in zip(long_here, long_there, strict=True):
        wanted[b] = there.runs[b].at(parts[a][1])
    values = piece.source.read(wanted, kind, tid)
    shape = tuple(indices.size for indices, _ in parts)
    places = [indices - low for (indices, _), low in zip(parts, start, strict=True)]
    opaque(out)[np.ix_(*places)] = opaque(values).reshape(shape + kind.dims)
    return True


class Part:
    """A source of a virtual dataset: a dataset with the checks of one that is read itself."""

    def __init__(self, dataset: h5d.DatasetID, file: File, path: str) -> None:
        self.dataset = dataset
        self.file = file
        self.place = path
        self.tid = dataset.get_type()
        self.shape: tuple[int, ...] = ()
        self.reads = 0
        self.longest = int(file.source.size)
        self.virtual: Virtual | None = None
        self.pieces: list[Extent] = []

    def check_type(self, kind: Kind, tid: h5t.TypeID) -> None:
        """Raise `Unsupported` if elements that the library does not read need a conversion."""
        if (self.virtual or self.pieces) and not self.tid == tid:
            raise Unsupported(
                "source of a virtual dataset is stored elsewhere, in another type than the whole",
                path=self.file.path,
                where=self.place,
            )
        if self.pieces:
            check_external_type(kind)

    def read(self, wanted: list[Places], kind: Kind, tid: h5t.TypeID) -> Values:
        """Read the elements at all combinations of the indices of each axis. Raises `Corrupt`."""
        for indices, length in zip(wanted, self.shape, strict=True):
            if int(indices.max()) >= length:
                raise Corrupt(
                    "a virtual dataset takes elements that its source does not have",
                    path=self.file.path,
                    where=self.place,
                    expected=f"less than {length}",
                    got=int(indices.max()),
                )
        steps = [_step(indices) for indices in wanted]
        start = tuple(int(indices[0]) for indices in wanted)
        count = tuple(
            len(indices) if step else int(indices[-1] - indices[0]) + 1
            for indices, step in zip(wanted, steps, strict=True)
        )
        self._check_memory(prod(count) * kind.buffer.itemsize)
        with guarded(self.file.path, self.place):
            values = self._box(start, count, tuple(step or 1 for step in steps), kind, tid)
        picked = [
            np.arange(n) if step else indices - indices[0]
            for n, step, indices in zip(count, steps, wanted, strict=True)
        ]
        return values if all(steps) else values[np.ix_(*picked)]

    def pick(self, indices: tuple[Places, ...], kind: Kind, tid: h5t.TypeID) -> Values:
        """Read single elements, from the smallest box around them."""
        lows = [int(part.min()) for part in indices]
        box = [np.arange(a, int(p.max()) + 1) for a, p in zip(lows, indices, strict=True)]
        values = self.read(box, kind, tid)
        inside = tuple(part - low for part, low in zip(indices, lows, strict=True))
        return values[inside] if inside else values.reshape(1, *kind.dims)

    def _check_memory(self, nbytes: int) -> None:
        limit = self.file.source.max_memory
        check_memory(nbytes, limit, f"{self.place}, of which a virtual dataset takes a part,")

    def _box(
        self,
        start: tuple[int, ...],
        count: tuple[int, ...],
        step: tuple[int, ...],
        kind: Kind,
        tid: h5t.TypeID,
    ) -> Values:
        """Read `count` elements on each axis, from `start` in steps of `step`."""
        if self.virtual is None and not self.pieces:
            buffer = np.zeros(count + kind.dims, kind.buffer)
            read_box(self.dataset, start, count, buffer, kind.memory or tid, step)
            return buffer
        whole = tuple((n - 1) * s + 1 for n, s in zip(count, step, strict=True))
        self._check_memory(prod(whole) * kind.buffer.itemsize)
        if self.virtual is not None:
            values = self.virtual.read(start, whole, kind, tid)
        else:
            values = read_pieces(self.pieces, self.shape, start, whole, kind, tid)
        every = tuple(slice(None, None, s) for s in step)
        return values[every] if every else values


def _step(indices: Places) -> int:
    """The distance between indices if it is the same everywhere; else 0."""
    if len(indices) == 1:
        return 1
    steps = np.diff(indices)
    return int(steps[0]) if (steps == steps[0]).all() else 0


# --- mappings in a file ---------------------------------------------------------------------------


class Resolver:
    """Finds the sources of one virtual dataset, and those of the virtual ones among them."""

    def __init__(self, files: Files, walk: Walk) -> None:
        self._files = files
        self._walk = walk
        self._parts: dict[tuple[int, bytes], Part] = {}  # by number of the file object and path

    def virtual(self, dataset: h5d.DatasetID, file: File, depth: int = 0) -> Virtual:
        """Resolve a virtual dataset, and check every source. Raises what the checks raise."""
        limits = file.source.limits
        if depth > limits.virtual_levels:
            raise Unsupported(
                f"virtual datasets refer to each other more than {limits.virtual_levels} deep",
                path=file.path,
            )
        plist = dataset.get_create_plist()
        mappings = [_mapping_of(plist, index) for index in range(plist.get_virtual_count())]
        axes = {unlimited_axis(regular(mapping.here)) for mapping in mappings} - {None}
        if not axes:
            shape = space_of(dataset) or ()
        else:
            shape = tuple(int(n) for n in mappings[0].here.get_simple_extent_dims())
        pieces: list[Piece] = []
        ends = [0] * len(shape)
        for mapping in mappings:
            for piece, end in self._pieces(mapping, file, depth):
                pieces.append(piece)
                ends = [max(a, b) for a, b in zip(ends, end, strict=True)]
        if axes:
            shape = tuple(ends[axis] if axis in axes else n for axis, n in enumerate(shape))
        for piece in pieces:
            _check_piece(piece, shape, file)
        values = Virtual(shape, pieces, plist)
        if values.reads > limits.virtual_sources:
            raise Unsupported(
                "virtual dataset takes too many pieces from others",
                path=file.path,
                expected=f"at most {limits.virtual_sources}",
                got=values.reads,
            )
        return values

    def _pieces(
        self, mapping: VirtualMapping, file: File, depth: int
    ) -> Iterator[tuple[Piece, tuple[int, ...]]]:
        """Yield the pieces of one mapping, each with the end of its elements on every axis."""
        limit = file.source.max_memory
        here, there = regular(mapping.here), regular(mapping.there)
        axis = unlimited_axis(here)
        if axis is None or here is None:
            part = self._part(mapping.file, mapping.path, file, depth)
            if there is None:
                from_source: Selection = scattered(mapping.there, limit)
            elif mapping.there.get_select_type() == h5s.SEL_ALL:
                from_source = grid([(0, 1, 1, n) for n in part.shape])
            else:
                from_source = grid(there)
            target = scattered(mapping.here, limit) if here is None else grid(here)
            yield Piece(part, from_source, target), target.ends
            return
        from_axis = unlimited_axis(there)
        if from_axis is not None and there is not None:
            part = self._part(mapping.file, mapping.path, file, depth)
            length = positions_up_to(there[from_axis], part.shape[from_axis])
            target = grid(here, axis, length)
            end = list(target.ends)
            end[axis] = end_of(here[axis], length)
            yield Piece(part, grid(there, from_axis, length), target), tuple(end)
            return
        yield from self._patterned(mapping, here, axis, file, depth)

    def _patterned(
        self, mapping: VirtualMapping, here: Axes, axis: int, file: File, depth: int
    ) -> Iterator[tuple[Piece, tuple[int, ...]]]:
        """Yield a piece for each source of a pattern, up to the first that is missing."""
        there = regular(mapping.there)
        if here[axis][3] == UNLIMITED:
            raise Unsupported("virtual dataset takes its sources by a pattern, without an end",
                              path=file.path)  # fmt: skip
        if all(_named(name, 0) == _named(name, 1) for name in (mapping.file, mapping.path)):
            raise Corrupt("a virtual dataset without an end has one source that ends",
                          path=file.path)  # fmt: skip
        for number in range(file.source.limits.virtual_sources):
            names = _named(mapping.file, number), _named(mapping.path, number)
            try:
                part = self._part(*names, file, depth, literal=True)
            except ReadFailed as error:
                if _is_missing(error):
                    return
                raise
            target = block_at(here, axis, number)
            if mapping.there.get_select_type() == h5s.SEL_ALL:
                from_source: Selection = grid([(0, 1, 1, n) for n in part.shape])
            elif there is None:
                from_source = scattered(mapping.there, file.source.max_memory)
            else:
                from_source = grid(there)
            yield Piece(part, from_source, target), target.ends

    def _part(self, name: str, path: str, file: File, depth: int, *, literal: bool = False) -> Part:
        """Open and check a source; in names that are not `literal`, ``%%`` stands for ``%``."""
        if not literal:
            name, path = name.replace("%%", "%"), path.replace("%%", "%")
        other = file
        if name != ".":
            other = self._files.named(file, name, "the source of a virtual dataset")
        where = f"source '{path}' of a virtual dataset"
        try:
            other, hard = self._walk.resolve(other, b"/", path)
            if info_of(other.fid, hard).kind != h5o.TYPE_DATASET:
                raise ReadFailed(f"{where} is not a dataset", path=other.path)
            key = id(other), hard
            if key not in self._parts:
                dataset = h5d.open(other.fid, hard)
                self._parts[key] = self._checked(Part(dataset, other, where), depth)
        except RaconvertError as error:
            error.where = error.where or where
            raise
        except FAILURES as error:
            raise ReadFailed(
                f"{where} cannot be opened: {reason_of(error)}", path=other.path
            ) from error
        return self._parts[key]

    def _checked(self, part: Part, depth: int) -> Part:
        """Check a source like a dataset that is read itself; return it with its shape set."""
        dataset, file = part.dataset, part.file
        with guarded(file.path):
            check_index(dataset, file)
            storage = storage_of(dataset, dataset.get_create_plist(), file.userblock)
            item = stored_bytes(part.tid, file.source.limits)
            if storage.layout == "virtual":
                part.virtual = self.virtual(dataset, file, depth + 1)
                part.shape, part.reads = part.virtual.shape, part.virtual.reads
                part.longest = part.virtual.longest
                storage = stored_of(storage, part.virtual, item)
            else:
                part.shape = space_of(dataset) or ()
            nbytes = declared_bytes(part.shape, item)
            if storage.pieces:
                part.pieces = external_pieces(storage, nbytes, file)
            check_filters(storage, file.path)
            check_size(storage, nbytes, item, file)
            if in_file(part.tid, file.source.limits)[1] and part.virtual is None:
                plist = dataset.get_create_plist()
                kind = kind_of(part.tid, file.source.limits)
                longest = longest_of(file, kind, dataset, plist, storage)
                if longest is None:
                    check_all_heaps(file)
                else:
                    part.longest = longest
        return part


def stored_of(storage: Storage, virtual: Virtual, item: int) -> Storage:
    """The storage of a virtual dataset, with its elements in sources counted as stored."""
    return storage._replace(stored=virtual.mapped * item)


def _mapping_of(plist: h5p.PropDCID, index: int) -> VirtualMapping:
    return VirtualMapping(
        name_in_link(plist.get_virtual_filename(index)),
        name_in_link(plist.get_virtual_dsetname(index)),
        plist.get_virtual_srcspace(index),
        plist.get_virtual_vspace(index),
    )


def _named(pattern: str, number: int) -> str:
    """The name that a pattern gives the block of this number."""
    return "%".join(part.replace("%b", str(number)) for part in pattern.split("%%"))


def _is_missing(error: RaconvertError) -> bool:
    """True for the error of a file or link that does not exist."""
    return "does not exist" in error.what or "leads to nothing" in error.what


def _check_piece(piece: Piece, shape: tuple[int, ...], file: File) -> None:
    """Raise `Corrupt` if the two sides of a mapping do not fit each other, or the datasets."""
    if piece.here.size != piece.there.size:
        raise Corrupt(
            "a virtual dataset maps selections of different sizes",
            path=file.path,
            expected=f"{piece.here.size} elements",
            got=piece.there.size,
        )
    ends = ((piece.here.ends, shape), (piece.there.ends, piece.source.shape))
    for end, limits in ends:
        if piece.here.size and (
            len(end) != len(limits) or any(a > b for a, b in zip(end, limits, strict=True))
        ):
            raise Corrupt(
                "a virtual dataset maps elements that do not exist",
                path=file.path,
                expected=f"within {limits}",
                got=f"up to {end}",
            )


# --- external storage -----------------------------------------------------------------------------


def read_pieces(
    pieces: list[Extent],
    shape: tuple[int, ...],
    start: tuple[int, ...],
    count: tuple[int, ...],
    kind: Kind,
    tid: h5t.TypeID,
) -> Values:
    """Read a box of a dataset in external storage from the checked files."""
    unit = int(tid.get_size())
    out = np.empty(prod(count) * unit, np.uint8)
    axis = len(shape)  # behind the last axis that is not read whole
    while axis and count[axis - 1] == shape[axis - 1]:
        axis -= 1
    outer = max(0, axis - 1)
    run = prod(count[outer:]) * unit
    done = 0
    for index in np.ndindex(*count[:outer]):
        first = tuple(s + i for s, i in zip(start, index, strict=False)) + start[outer:]
        flat = 0  # index of the first element in the dataset
        for i, n in zip(first, shape, strict=True):
            flat = flat * n + i
        _fill_from(pieces, flat * unit, out.data[done : done + run])
        done += run
    if kind.memory is not None:
        wide = np.zeros(max(out.size, prod(count) * kind.memory.get_size()), np.uint8)
        wide[: out.size] = out
        h5t.convert(tid, kind.memory, prod(count), wide)
        out = wide[: prod(count) * kind.memory.get_size()]
    return out.view(kind.buffer).reshape(count + kind.dims)


def check_external_type(kind: Kind) -> None:
    """Raise `Unsupported` for strings of variable length in external storage."""
    if kind.element is None:
        raise Unsupported("strings of variable length in external storage")


def _fill_from(pieces: list[Extent], start: int, view: memoryview) -> None:
    """Fill a buffer from byte `start` of the pieces of files, one after the other."""
    for piece in pieces:
        take = min(piece.nbytes - start, len(view))
        if take > 0:
            for slab in extent_slabs(piece.part(start, take), 1 << 20):
                view[: len(slab)] = slab
                view = view[len(slab) :]
            start = 0
        else:
            start -= piece.nbytes
        if not view:
            return


class Assembled(Dataset):
    """Array source over a virtual dataset, or one in external storage."""

    def __init__(
        self,
        file: File,
        hard: bytes,
        kind: Kind,
        space: tuple[int, ...],
        element: Element,
        virtual: Virtual | list[Extent],
        tid: h5t.TypeID,
    ) -> None:
        super().__init__(file, hard, kind, space, None, element)
        self._from = virtual
        self._tid = tid

    def _read(self, start: tuple[int, ...], count: tuple[int, ...], _: tuple[int, ...]) -> Any:
        if isinstance(self._from, Virtual):
            return self._from.read(start, count, self.kind, self._tid)
        return read_pieces(self._from, self.space, start, count, self.kind, self._tid)
