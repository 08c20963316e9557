"""A part of an array that stands for it: read in bounded time, whatever the size of the array.

Planes are the two fastest axes; of many, some are read, one of each of equal bins, the middle one
among them. Of a plane that is too large, rows of equal bins are read. What lies in chunks that are
decoded whole is cut to the chunks around the middle; what can only be decoded front to back gives
its front. Singleton axes are passed over.
"""

from __future__ import annotations

from functools import partial
from math import ceil, prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.layout import COLOR, COLUMNS, EMPTY, IMAGE, LINE, SCALAR, Layout, layout_of
from raconvert.arrays.metadata import Metadata
from raconvert.arrays.regions import some_rows
from raconvert.arrays.reinterpret import for_showing
from raconvert.arrays.scales import scale_notes, scale_of
from raconvert.arrays.sources import is_decoded_whole
from raconvert.arrays.transpose import as_listed
from raconvert.arrays.unscale import physical_values, unscaled
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TooLarge
from raconvert.files.paths import is_remote
from raconvert.views.terminal import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from raconvert.arrays.metadata import Axis
    from raconvert.arrays.scales import Scale

    Values = np.ndarray[Any, Any]
    Key = tuple[int | slice, ...]

BUDGET = 8 << 20  # bytes read for the sample of an array
REMOTE_BUDGET = 1 << 20  # bytes read for the sample of an array at a URL
DECODED = 32 << 20  # bytes; the budget may grow to it when whole chunks are decoded
MOST_CHUNKS = 512  # chunks decoded for a sample, one read each; 32 at a URL
FRAMES = 5  # planes shown per array
ROWS = 192  # rows sampled from a plane that is over budget
POINTS = 40  # points per side where even one row is over budget
WINDOWS = 96  # windows sampled along an axis that is over budget
PAGE = 4 << 10  # bytes that the system reads for an element that lies alone
SHEET_SIDE = 128  # pictures up to so many rows and columns go on a contact sheet
_INNER = 0.7  # share of an axis in space, around its middle, from which planes are shown
SHEET_FROM = 16  # fewer pictures are not worth a contact sheet


class Frame(Record):
    """A part of an array: its values in logical order, and the key that picks it.

    `key` is the key in the words of Python, `where` its labels and coordinates. `size` has the rows
    and columns of the whole plane, if some were left out between others; else it is empty.
    `number` is the index of the plane among all planes.
    """

    values: Any
    key: str
    size: tuple[int, ...] = ()
    number: int = -1
    where: str = ""


class Sample(Record):
    """A sample of an array: frames of one form, and a text that says how much they cover."""

    form: str
    frames: tuple[Frame, ...]
    text: str
    whole: bool
    pictures: int = 0  # pictures in the array, if the sample is a contact sheet
    damage: RaconvertError | None = None  # the error of the first plane that cannot be read

    @property
    def values(self) -> list[Any]:
        """The values of all parts."""
        return [for_showing(frame.values) for frame in self.frames]


def sample(array: Array, *, budget: int = 0, frames: int = FRAMES, sheet: int = 0) -> Sample:
    """Return a part of an array that stands for it; at most about `budget` bytes are read.

    At most `frames` planes are read, or at most `sheet` if they are many small pictures.
    Raises what reading elements raises, `TooLarge` if even the least part costs too much.
    """
    if array.problem is not None:
        raise array.problem
    if not array.count or not array.element.nbytes:
        return Sample(EMPTY, (), "no elements", whole=True)
    remote = array.extent is not None and is_remote(array.extent.path)
    budget = budget or (REMOTE_BUDGET if remote else BUDGET)
    layout = layout_of(array)
    pictures = _pictures(array, layout) if sheet > frames else 0
    frames = sheet if pictures else frames
    if array.nbytes > budget and some_rows(array) is None and _is_streamed(array):
        part = _front(array, layout, budget, frames)
    else:
        frames = min(frames, 8 if pictures else 3) if remote else frames
        part = _Reader(array, layout, budget, frames, remote=remote).sample()
    if not pictures or len(part.frames) < 2:
        return part
    return part._replace(pictures=pictures)


class Shown(Record):
    """An array in its physical values, and its sample: None if it is too large, by `problem`."""

    array: Array
    sampled: Sample | None
    problem: TooLarge | None


def shown_of(array: Array, *, budget: int = 0, frames: int = FRAMES, sheet: int = 0) -> Shown:
    """Sample an array, in its physical values if its file has a scale; missing ones are NaN.

    `budget`, `frames` and `sheet` are those of `sample`. Raises what reading elements raises.
    """
    array = as_listed(array)
    scale = known_scale(array)
    shown = array if scale is None else unscaled(array, scale, round_values=True)
    try:
        if scale is None or scale.varies:
            part = sample(shown, budget=budget, frames=frames, sheet=sheet)
            return Shown(shown, part, None)
        sampled = sample(array, budget=budget, frames=frames, sheet=sheet)
    except TooLarge as error:
        return Shown(shown, None, error)
    convert = physical_values(array, scale)
    parts = [frame._replace(values=convert(frame.values)) for frame in sampled.frames]
    return Shown(shown, sampled._replace(frames=tuple(parts)), None)


def known_scale(array: Array) -> Scale | None:
    """The scale of an array, if it has one that can be understood. Raises nothing."""
    if array.problem is not None or not array.described or array.pending:
        return None
    try:
        return scale_of(array)
    except RaconvertError:
        return None


def values_text(array: Array) -> str:
    """Describe how the values that are shown are made from the stored ones, and their unit."""
    scale = known_scale(array)
    if scale is None:
        return ", ".join(scale_notes([array]))
    unit = f", in {array.meta.units}" if array.meta.units else ""
    if scale.varies:
        return f"physical values are shown, each part by its own factors{unit}"
    made = f"physical values are shown: {scale.formula}{unit}" if scale.packs else ""
    gone = "missing values are shown as NaN" if scale.masks else ""
    return ", ".join(filter(None, (made, gone)))


def _pictures(array: Array, layout: Layout) -> int:
    """Return the number of pictures, if they are small, many, and along one axis; else 0."""
    seen = array.dims[::-1]
    if layout.form not in (IMAGE, COLOR) or len(layout.outer) != 1:
        return 0
    count = seen[layout.outer[0]]
    small = max(seen[layout.rows], seen[layout.columns]) <= SHEET_SIDE
    return count if small and count >= SHEET_FROM else 0


def _is_streamed(array: Array) -> bool:
    """True for an array that can only be decoded front to back."""
    data = array.data if array.extent is None else None
    return is_decoded_whole(data)


def is_coded(array: Array) -> bool:
    """True for an array whose elements are neither in memory nor in a file as they are."""
    if array.extent is not None or some_rows(array) is not None:
        return False
    return not isinstance(array.data, np.ndarray) and _is_scattered(array, 0) is None


def _is_scattered(array: Array, axis: int) -> bool | None:
    """True if neighbours along an axis lie apart in a local file; None without such a file."""
    is_scattered = getattr(None if array.extent is not None else array.source, "is_scattered", None)
    return None if is_scattered is None else is_scattered(axis)


def spread(count: int, most: int) -> list[int]:
    """At most `most` indices below `count`: one of each of as many equal bins, at random.

    Even distances would beat against data that repeats itself: of images of the digits in turn, all
    could be zeros. The seed is fixed; the middle one of an odd number is the middle of all.
    """
    if count <= most:
        return list(range(count))
    edges = np.arange(most + 1) * count // most
    chosen: list[int] = np.random.default_rng(count).integers(edges[:-1], edges[1:]).tolist()
    middle, at = count // 2, most // 2
    if most % 2 and middle not in chosen:
        chosen[at] = middle
    elif most % 2 and chosen[at] != middle and middle + 1 < edges[at + 2]:
        chosen[at : at + 2] = middle, middle + 1  # the middle lies in the next bin
    return chosen


def region(array: Array, key: Key) -> Values:
    """The elements at a key of the axes, slowest first; the result is slowest first as well."""
    if array.index_order == "F":
        return np.asarray(array[key[::-1]]).T
    return np.asarray(array[key])


def where_of(array: Array, index: Mapping[int, int]) -> str:
    """The labels and coordinates of an index by axis, as text: ``time = 30 days, REG = EU``.

    Axes are counted slowest first.
    """
    parts = []
    for slowest_first, at in index.items():
        number = array.ndim - 1 - slowest_first if array.index_order == "F" else slowest_first
        axis = array.axes[number]
        value = _coordinate_text(axis, at)
        if axis.name and value is not None:
            parts.append(f"{axis.name} = {value}{f' {axis.units}' * bool(axis.units)}")
    return ", ".join(parts)


def places_text(places: list[str]) -> str:
    """The labels and coordinates of planes in one text, of one axis with its name only once.

    >>> places_text(["time = 30 days", "time = 60 days"]), places_text(["a = 1, b = 2", "a = 3"])
    ('time = 30, 60 days', 'a = 1, b = 2; a = 3')
    """
    name, equals, _ = places[0].partition(" = ")
    values = [place.removeprefix(name + equals) for place in places]
    if not equals or any(", " in place or not place.startswith(name + equals) for place in places):
        return "; ".join(places)
    _, space, unit = values[0].partition(" ")
    if space and all(value.endswith(space + unit) for value in values):
        values = [value.removesuffix(space + unit) for value in values[:-1]] + values[-1:]
    return f"{name} = {', '.join(values)}"


def _is_in_space(array: Array, slowest_first: int) -> bool:
    """True for an axis along a direction in space, counted slowest first."""
    if not array.described:
        return False
    number = array.ndim - 1 - slowest_first if array.index_order == "F" else slowest_first
    return array.axes[number].direction is not None


def value_at(axis: Axis, at: int, length: int) -> Any:
    """The label or the coordinate at an index, as `axis.values(length)` has it; None without any.

    For coordinates the others are not made: there may be more of them than memory holds.
    """
    if axis.labels is not None:
        values = axis.values(length)
        return None if values is None else values[at]
    first = axis.values(1)
    if first is None:
        return None
    return first[0].item() + at * (1 if axis.spacing is None else axis.spacing)


def _coordinate_text(axis: Axis, at: int) -> str | None:
    """The label or the coordinate at an index of an axis; None without one, or for spatial axes."""
    if axis.labels is not None:
        value = axis.labels[at]
        return number_text(value) if isinstance(value, float) else str(value)
    if axis.spacing is None or axis.origin is None or axis.direction is not None:
        return None
    return number_text(axis.origin + at * axis.spacing)


def chunk_count(array: Array) -> int:
    """The number of pieces that are decoded for all elements; 1 if it is unknown."""
    chunks = array.storage.get("chunks")
    if array.extent is not None or not isinstance(chunks, (list, tuple)):
        return 1
    return prod(ceil(n / max(1, chunk)) for n, chunk in zip(array.dims[::-1], chunks, strict=False))


class _Reader:
    """Reads the frames of one array within a budget."""

    def __init__(
        self, array: Array, layout: Layout, budget: int, frames: int, *, remote: bool
    ) -> None:
        self.array = array
        self.layout = layout
        self.seen = array.dims[::-1]
        self.item = array.element.nbytes
        self.apart = self.item  # bytes read for an element of a row
        if _is_scattered(array, layout.columns) and array.nbytes > budget:
            self.apart, budget = max(PAGE, self.item), DECODED
        self.budget = budget
        self.frames = frames
        self.remote = remote
        self.chunk = _chunk_of(array)
        self.chunks = 32 if remote else MOST_CHUNKS
        if self.chunk is not None:
            self.budget = max(budget, min(DECODED, prod(self.chunk) * self.item))
        # An array that is encoded in unknown pieces is decoded anew for each region of it.
        self.coded = self.chunk is None and is_coded(array) and layout.rows >= 0
        if self.coded:
            self.budget = max(budget, min(DECODED, self._plane_bytes()))
        self.cut = ""  # the words for how planes were cut
        self.thinned = False  # True if rows or columns were left out
        self.total = 0  # planes of the whole array, if this is only its front

    def sample(self) -> Sample:
        """The sample of the array. Raises what reading elements raises."""
        layout, seen = self.layout, self.seen
        if layout.form == SCALAR:
            values = region(self.array, (slice(None),) * len(seen))
            return Sample(SCALAR, (Frame(values.reshape(-1), ""),), "", whole=True)
        if layout.form == LINE:
            return self._line()
        outer = [seen[axis] for axis in layout.outer]
        planes = prod(outer)
        chosen = spread(planes, self._frames_within(planes))
        indices = [[*map(int, np.unravel_index(one, outer))] if outer else [] for one in chosen]
        inward = len(chosen) < planes and self._moved_inward(indices)
        parts, damage, broken = [], None, 0
        for outer_index in indices:
            index = dict(zip(layout.outer, outer_index, strict=True))
            number = int(np.ravel_multi_index(outer_index, outer)) if outer else 0
            try:
                values = self._plane(index, len(chosen))
            except Corrupt as error:  # other planes may be sound
                damage, broken = damage or error, broken + 1
                continue
            size = self._size() if self.thinned else ()
            where = where_of(self.array, index)
            parts.append(Frame(values, self._text(index), size, number, where))
        if damage is not None and not parts:
            raise damage
        whole = len(parts) == planes and not self.cut
        total = max(planes, self.total)
        text = f"{len(parts)} of {total} planes" if total > len(parts) else ""
        text += ", none near the ends" * bool(text and inward)
        odd = f"{broken} more cannot be read" if broken else ""
        text = ", ".join(part for part in (text, odd, self.cut) if part)
        return Sample(layout.form, tuple(parts), text, whole, damage=damage)

    def _moved_inward(self, indices: list[list[int]]) -> bool:
        """Choose planes along an axis in space from its inner part; the ends of a scan are empty.

        False if the array has no such axis, or one too short.
        """
        moved = False
        for at, slowest_first in enumerate(self.layout.outer):
            length = self.seen[slowest_first]
            inner = int(length * _INNER)
            if inner < len(indices) or not _is_in_space(self.array, slowest_first):
                continue
            first = length // 2 - inner // 2  # so that the middle one stays the middle of all
            for index, place in zip(indices, spread(inner, len(indices)), strict=True):
                index[at] = first + place
            moved = True
        return moved

    def _frames_within(self, planes: int) -> int:
        """Return the number of planes to read: fewer than `frames` if one costs much."""
        most = min(self.frames, planes)
        if self.chunk is not None:
            cost = prod(min(self.chunk[axis], self.seen[axis]) for axis in range(len(self.seen)))
            most = max(1, min(most, self.budget // max(1, cost * self.item)))
        if self.coded:
            most = max(1, min(most, self.budget // self._plane_bytes()))
        row_bytes = self.seen[self.layout.columns] * self.item
        if row_bytes > self.budget // 32 and planes * self._plane_bytes() > self.budget:
            return 1
        return most

    def _plane_bytes(self) -> int:
        """The bytes that are read for a plane with all its colors."""
        layout, seen = self.layout, self.seen
        colors = seen[layout.color] if layout.color >= 0 else 1
        return seen[layout.rows] * seen[layout.columns] * colors * self.apart

    def _text(self, index: dict[int, int]) -> str:
        """The key of a plane in the words of Python, in logical order."""
        parts = [
            str(index.get(axis, ":" if length > 1 else 0)) for axis, length in enumerate(self.seen)
        ]
        return f"[{', '.join(parts[::-1] if self.array.index_order == 'F' else parts)}]"

    def _key(self, index: dict[int, int | slice]) -> Key:
        """The key that picks an index of some axes, slowest first, and all of the others."""
        return tuple(
            index.get(axis, slice(None) if length > 1 else 0)
            for axis, length in enumerate(self.seen)
        )

    def _size(self) -> tuple[int, ...]:
        """The rows and columns of a whole plane as it is drawn."""
        size = self.seen[self.layout.rows], self.seen[self.layout.columns]
        return size[::-1] if self.array.index_order == "F" else size

    def _oriented(self, values: Values) -> Values:
        """A plane as it is drawn: first index down, second to the right, colors behind."""
        layout = self.layout
        if layout.color >= 0:
            axes = sorted((layout.rows, layout.columns, layout.color))
            values = np.moveaxis(values, axes.index(layout.color), -1)
        return values.swapaxes(0, 1) if self.array.index_order == "F" else values

    def _plane(self, index: dict[int, int], count: int) -> Values:
        """Read the plane at an index of the outer axes, or a part of it: one of `count` planes."""
        limit = self.budget // count
        if self.chunk is not None or self.remote or self.coded:
            crop = self._crop(limit, max(1, self.chunks // count))
            return self._oriented(region(self.array, self._key({**index, **crop})))
        if self._plane_bytes() <= limit:
            return self._oriented(region(self.array, self._key({**index})))
        return self._oriented(self._rows(index, limit))

    def _rows(self, index: dict[int, int], limit: int) -> Values:
        """Read some rows of a plane, each alone; of rows that are too long, single elements."""
        layout, seen = self.layout, self.seen
        self.thinned = True
        width = self._plane_bytes() // seen[layout.rows]
        most = max(1, min(ROWS, limit // width))
        axes = sorted((layout.rows, layout.columns, *([layout.color] * (layout.color >= 0))))
        if most < min(POINTS, seen[layout.rows]):
            rows = spread(seen[layout.rows], POINTS)
            columns = spread(seen[layout.columns], POINTS)
            self.cut = f"{len(rows)} × {len(columns)} points of each"
            across = [axis for axis in axes if axis != layout.rows].index(layout.columns)
            lines = [
                np.concatenate([line(slice(c, c + 1)) for c in columns], axis=across)
                for line in self._lines_at(index, rows)
            ]
        else:
            rows = spread(seen[layout.rows], most)
            self.cut = f"{len(rows)} of {seen[layout.rows]} rows of each"
            lines = [line(slice(None)) for line in self._lines_at(index, rows)]
        return np.stack(lines, axis=axes.index(layout.rows))

    def _lines_at(
        self, index: dict[int, int], rows: list[int]
    ) -> Iterator[Callable[[slice], Values]]:
        """Yield, for each of the rows, a function that reads some of its columns."""
        layout = self.layout
        decoded = some_rows(self.array)
        if decoded is not None and layout.rows == 0 and layout.columns == 1 and not layout.outer:
            yield from (row.__getitem__ for row in decoded(rows))
            return
        for row in rows:
            yield partial(self._line_at, index, row)

    def _line_at(self, index: dict[int, int], row: int, columns: slice) -> Values:
        """Read some columns of a row of the plane at an index of the outer axes."""
        key: dict[int, int | slice] = {**index}
        key |= {self.layout.rows: row, self.layout.columns: columns}
        return region(self.array, self._key(key))

    def _crop(self, limit: int, chunks: int) -> dict[int, slice]:
        """The slices of rows and columns around the middle that cost at most so much; empty if all.

        `limit` are bytes, `chunks` those that are decoded.
        """
        layout, seen = self.layout, self.seen
        chunk = self.chunk or (1,) * len(seen)
        if self.remote and self._plane_bytes() // seen[layout.rows] <= limit:
            chunk = tuple(n if axis != layout.rows else 1 for axis, n in enumerate(seen))
        axes = (layout.rows, layout.columns)
        fixed = self.item * (seen[layout.color] if layout.color >= 0 else 1)
        if self.chunk is not None:
            fixed = prod(chunk) // prod(chunk[axis] for axis in axes) * self.item
        lengths = {axis: seen[axis] for axis in axes}
        while fixed * prod(covered(lengths[a], chunk[a]) for a in axes) > limit or (
            self.chunk is not None and prod(ceil(lengths[a] / chunk[a]) for a in axes) > chunks
        ):
            longest = max(axes, key=lambda a: lengths[a] / chunk[a])
            if lengths[longest] <= chunk[longest]:
                break
            lengths[longest] = max(chunk[longest], lengths[longest] // 2)
        crop = {}
        for axis in axes:
            if lengths[axis] < seen[axis]:
                step = chunk[axis]
                start = (seen[axis] - lengths[axis]) // 2 // step * step
                crop[axis] = slice(start, start + lengths[axis])
        if crop:
            parts = [f"{part.start}:{part.stop}" for part in crop.values()]
            self.cut = f"the part around the middle ({', '.join(parts)}) of each"
        return crop

    def _line(self) -> Sample:
        """The sample of an array of one long axis: all of it, or windows of equal bins."""
        axis = self.layout.columns
        length = self.seen[axis]
        chunk = self.chunk[axis] if self.chunk is not None else 0
        if length * self.item <= self.budget and length <= (chunk or length) * self.chunks:
            values = region(self.array, self._key({axis: slice(None)}))
            return Sample(LINE, (Frame(values, "[:]"),), "", whole=True)
        most = 8 if self.remote else WINDOWS
        if chunk:
            most = max(1, min(most, self.budget // (chunk * self.item)))
        size = max(1, min(self.budget // most // self.item, chunk or length, length // most))
        if self.remote:
            size = min(size, (64 << 10) // self.item or 1)
        starts = [min(start, length - size) for start in spread(length, most)]
        parts = [region(self.array, self._key({axis: slice(s, s + size)})) for s in starts]
        text = f"{len(starts)} windows of {size} of {length} elements"
        return Sample(LINE, (Frame(np.concatenate(parts), "[:]"),), text, whole=False)


def covered(length: int, chunk: int) -> int:
    """The length of all chunks that a part from the start of a chunk touches."""
    return ceil(length / chunk) * chunk


def _chunk_of(array: Array) -> tuple[int, ...] | None:
    """The shape of the chunks that a file decodes whole, slowest axis first; None without any.

    Raises `TooLarge` if one chunk is too large to decode.
    """
    chunks = array.storage.get("chunks")
    if array.extent is not None or not isinstance(chunks, (list, tuple)):
        return None
    if len(chunks) != array.ndim or not all(isinstance(n, int) and n > 0 for n in chunks):
        return None
    chunk = tuple(min(n, length) for n, length in zip(chunks, array.dims[::-1], strict=True))
    nbytes = prod(chunk) * array.element.nbytes
    if nbytes > DECODED:
        raise TooLarge(
            f"one chunk of array '{array.name}' has {nbytes} bytes",
            expected=f"at most {DECODED} for a look at it",
            remedy="--full reads all of it",
        )
    return chunk


def _front(array: Array, layout: Layout, budget: int, frames: int) -> Sample:
    """Sample the front of an array that can only be decoded front to back."""
    pieces, count = [], 0
    most = max(1, budget // array.element.nbytes)
    for piece in array.data.stream(min(budget, 1 << 20)):
        part = np.array(piece.reshape(-1)[: most - count])
        pieces.append(part)
        count += len(part)
        if count >= most:
            break
    values = np.concatenate(pieces)
    seen = array.dims[::-1]
    text = f"the first {count} of {array.count} elements, which are decoded front to back"
    if layout.form in (LINE, COLUMNS, SCALAR):
        if layout.form == COLUMNS:
            width = seen[layout.columns]
            values = values[: len(values) // width * width].reshape(-1, width)
        return Sample(layout.form, (Frame(values, "[:]"),), text, whole=False)
    first = min(axis for axis in (layout.rows, layout.columns, layout.color) if axis >= 0)
    inner = seen[first:]
    plane = prod(inner)
    if count < plane:  # the first rows of the first plane
        rows = count // prod(inner[1:])
        if not rows:
            return Sample(LINE, (Frame(values, "[:]"),), text, whole=False)
        box = (*(1,) * first, rows, *inner[1:])
    else:
        box = (*_box_within(seen[:first], count // plane), *inner)
    front = _in_memory(values[: prod(box)], box, array)
    reader = _Reader(front, layout_of(front), front.nbytes, frames, remote=False)
    reader.total = prod(seen[:first])
    made = reader.sample()
    return made._replace(text=", ".join(filter(None, (text, made.text))), whole=False)


def _box_within(lengths: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The lengths of the largest box of indices that the first `count` ones in C order fill."""
    box: list[int] = []
    for axis, length in enumerate(lengths):
        inner = prod(lengths[axis + 1 :])
        box.append(max(1, min(length, count // inner)))
        if box[-1] > 1:
            return (*box, *lengths[axis + 1 :])
    return tuple(box)


def _in_memory(values: Values, seen: tuple[int, ...], array: Array) -> Array:
    """An array in memory of values that are listed slowest axis first."""
    order = array.index_order
    dims = tuple(seen[::-1])
    meta = Metadata(axes=[_first_of(axis) for axis in array.axes])
    data = values.reshape(seen)
    return Array(array.element, dims, name=array.name, index_order=order, data=data, meta=meta)


def _first_of(axis: Axis) -> Axis:
    """The axis for its first indices: without labels, since those are for all of them."""
    return axis if axis.labels is None else axis.replace(labels=None)
