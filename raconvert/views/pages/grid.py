"""The arrays of a file as a grid: by group, each with a small picture, a line, or its value.

Pictures are made for a bounded number of arrays, taken in turn from all groups, and reading for
them is bounded; the page has the number of arrays without one. Coordinates stand with the arrays
that they belong to. Where scripts run, arrays can be sorted; else they stay in the file's order.
"""

from __future__ import annotations

from math import prod

import numpy as np

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.arrays.layout import COLOR, COLUMNS, IMAGE, LINE, SCALAR, layout_of
from raconvert.arrays.sources import is_decoded_whole
from raconvert.errors import RaconvertError, TooLarge
from raconvert.files.paths import is_remote
from raconvert.inspect.info import type_text
from raconvert.views.channels import channel_axis, mixed, scales_of, seen_at
from raconvert.views.filmstrip import strips_of
from raconvert.views.numbers import comparable
from raconvert.views.pages import drawings, figures
from raconvert.views.pages.markup import cut, name_of, text_of
from raconvert.views.pages.table import is_table, value_text, words_of
from raconvert.views.picture import png_of
from raconvert.views.roles import COORDINATE
from raconvert.views.sample import shown_of
from raconvert.workers.interrupts import raise_interruption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.views.roles import Roles
    from raconvert.views.sample import Sample

    Groups = dict[str, tuple[list[Array], Any]]  # by group: its arrays, and the groups inside it

MOST_PICTURES = 48  # arrays with a picture, a line or a value
_REMOTE_PICTURES = 6
_SIDES = ((9, 112), (24, 80), (MOST_PICTURES, 56))  # of so many arrays, pixels of each picture
_BYTES = 24_000  # bytes of all pictures
_DECODED = 24 << 20  # bytes read and decoded for all pictures
_MOST_BYTES = 320_000  # bytes of the list; arrays beyond them are only counted
_FLAT = 24  # up to so many groups are listed side by side; more are nested
_DEEPEST = 32  # levels of nested groups; groups inside these are listed side by side
_OPEN = 40  # if there are more arrays, all groups but the first are folded
_MOST_BESIDE = 8  # names of coordinates listed with an array
_COLUMNS = 3  # lines of an array of few columns
_WORDS = 48  # characters shown of a text


class Grid:
    """The tiles of the arrays of a bundle."""

    def __init__(self, bundle: Bundle, roles: Roles, pictures: int = MOST_PICTURES) -> None:
        self.bundle = bundle
        self.roles = roles
        self.groups: dict[str, list[Array]] = _groups_of(bundle, _hidden(bundle, roles))
        remote = bool(bundle.path) and is_remote(bundle.path)
        self.most: int = min(pictures, _REMOTE_PICTURES) if remote else pictures
        self.drawn: dict[str, str] = {}
        self.broken: dict[str, RaconvertError] = {}
        self.left: int = _MOST_BYTES
        self.omitted: int = 0  # arrays beyond the bytes of the list
        self.passed: int = 0  # sound arrays without a picture, since all would be too much
        self._draw()

    # Pictures -----------------------------------------------------------------------------------

    def _draw(self) -> None:
        """Make the pictures, one array of each group after the other."""
        waiting = [list(arrays) for arrays in self.groups.values()]
        turns = [
            array
            for turn in range(max(map(len, waiting), default=0))
            for arrays in waiting
            for array in arrays[turn : turn + 1]
        ]
        chosen = [array for array in turns if array.problem is None][: self.most]
        side = next((side for most, side in _SIDES if len(chosen) <= most), _SIDES[-1][1])
        bytes_left, work_left = _BYTES, _DECODED
        for array in chosen:
            cost = _cost_of(array)
            if cost > work_left or bytes_left <= 0:
                continue
            work_left -= cost
            try:
                drawn = _thumbnail(array, side)
            except RaconvertError as error:
                raise_interruption(error)
                if not isinstance(error, TooLarge):
                    self.broken[array.name] = error
                continue
            if len(drawn) * 3 // 4 <= bytes_left:
                bytes_left -= len(drawn) * 3 // 4
                self.drawn[array.name] = drawn
        sound = sum(array.problem is None for array in turns)
        self.passed = sound - len(self.drawn) - len(self.broken)

    # Markup -------------------------------------------------------------------------------------

    def html(self, *, sortable: bool = False) -> Iterator[str]:
        """Yield the groups of tiles, folded if they are many.

        `sortable`: the page has the script that sorts them.
        """
        shown = sum(map(len, self.groups.values()))
        yield '<div class="grid">\n'
        if sortable and shown > 1:
            yield _SORT
        yield from self._inside(_nested(self.groups), "", fold=shown > _OPEN)
        if self.omitted:
            yield f"<p>and {self.omitted:,} more (<code>raconvert info</code>)</p>\n"
        yield "</div>\n"
        if self.passed > 0:
            made = len(self.drawn)
            yield f"<p class=soft>{made} of {made + self.passed + len(self.broken):,} arrays have "
            yield "a picture here.</p>\n"

    def _inside(self, groups: Groups, above: str, *, fold: bool) -> Iterator[str]:
        """Yield the groups of one level, in the order of the file; of many, the first is open."""
        for number, (name, (arrays, inner)) in enumerate(groups.items()):
            group = "/".join(filter(None, (above, name)))
            tiles = "".join(self._tile(array, group) for array in arrays)
            listed = f'<ul class="tiles">\n{tiles}</ul>\n' if tiles else ""
            parts = "".join(self._inside(inner, group, fold=fold)) if inner else ""
            if not name and (above or len(groups) == 1):
                yield listed + parts
                continue
            every = _all_in((arrays, inner))
            total = size(sum(array.nbytes for array in every if array.problem is None))
            count = f"{len(every):,} array{'s' * (len(every) != 1)}, {total}"
            title = name_of(name) if name else "not in a group"
            opened = " open" * (not fold or number == 0)
            yield f'<details class="group"{opened}><summary>{title} <span class="soft">{count}'
            yield f"</span></summary>\n{listed}{parts}</details>\n"

    def _tile(self, array: Array, group: str) -> str:
        """The tile of an array; one without a picture is short, as there may be thousands."""
        name = array.name[len(group) + 1 :] if group else array.name
        problem = self.broken.get(array.name) or array.problem
        kind = "unknown" if array.pending else type_text(array.element)
        drawn = self.drawn.get(array.name, "")
        facts = f"{text_of(kind)} {_shape(array)}"
        data = f' data-size="{0 if array.pending else array.nbytes}"'
        if problem is not None:
            why = ", ".join(filter(None, (problem.what, problem.where)))
            facts += f' <b class="bad">cannot be read: {text_of(why)}</b>'
        elif not drawn:
            tile = f"<li{data}><bdi>{text_of(cut(name))}</bdi> <i>{facts}</i>\n"
            self.left -= len(tile)
            self.omitted += self.left < 0
            return tile if self.left >= 0 else ""
        unit = f", {text_of(array.meta.units)}" if array.meta.units else ""
        about = f"<br>{text_of(array.meta.description[:80])}" if array.meta.description else ""
        beside = self._beside(array)
        return (
            f'<li class="tile"{data}>{drawn} {name_of(name)} <i>{facts}{unit}, '
            f"{size(0 if array.pending else array.nbytes)}{about}{beside}</i></li>\n"
        )

    def _beside(self, array: Array) -> str:
        """The names of the coordinates of an array, and of other arrays that belong to it."""
        names = self.roles.beside.get(array.name, ())
        coordinates = [name for name in names if self.roles.kinds.get(name) == COORDINATE]
        others = [name for name in names if self.roles.kinds.get(name) != COORDINATE]
        lines = []
        for word, own in (("along", coordinates), ("with", others)):
            if own:
                more = f" and {len(own) - _MOST_BESIDE} more" * (len(own) > _MOST_BESIDE)
                listed = ", ".join(map(_last, own[:_MOST_BESIDE]))
                lines.append(f"<br>{word} {text_of(listed)}{more}")
        return "".join(lines)


def _last(name: str) -> str:
    """The last part of the name of an array, without its groups."""
    return name.rpartition("/")[2]


def _hidden(bundle: Bundle, roles: Roles) -> set[str]:
    """The names of arrays that are shown with those that they belong to; not of damaged ones."""
    damaged = {array.name for array in bundle.arrays if array.problem is not None}
    reached = {
        name for owner, names in roles.beside.items() if owner not in roles.kinds for name in names
    }
    for name in list(reached):  # a coordinate may have arrays of its own, such as bounds
        reached.update(roles.beside.get(name, ()))
    return {name for name in reached if name in roles.kinds} - damaged


def _groups_of(bundle: Bundle, hidden: set[str]) -> dict[str, list[Array]]:
    """The arrays of each group in the order of the file, without those that are hidden."""
    groups: dict[str, list[Array]] = {}
    for array in bundle.arrays:
        if array.name not in hidden:
            groups.setdefault(array.name.rpartition("/")[0], []).append(array)
    return groups


def _nested(groups: dict[str, list[Array]], depth: int = 0) -> Groups:
    """Groups as a tree; few of them, or deep ones, stay side by side with their whole paths."""
    if len(groups) <= _FLAT or depth >= _DEEPEST:
        return {name: (arrays, {}) for name, arrays in groups.items()}
    inside: dict[str, dict[str, list[Array]]] = {}
    for path, arrays in groups.items():
        first, _, rest = path.partition("/")
        inside.setdefault(first, {})[rest] = arrays
    nested: Groups = {}
    for name, inner in inside.items():
        own = inner.pop("", [])
        nested[name] = own, _nested(inner, depth + 1) if inner else {}
    return nested


def _all_in(group: tuple[list[Array], Groups]) -> list[Array]:
    """The arrays of a group and of all groups inside it."""
    arrays: list[Array] = []
    waiting = [group]
    while waiting:
        own, inner = waiting.pop()
        arrays += own
        waiting += inner.values()
    return arrays


def _shape(array: Array) -> str:
    """The shape of an array as Python writes it, with F for column-major ones."""
    if not array.ndim:
        return ""
    order = " F" if array.index_order == "F" and array.ndim > 1 else ""
    return f"({few_lengths(array.shape, ', ')}{',' * (array.ndim == 1)}){order}"


# One picture --------------------------------------------------------------------------------------


def _cost_of(array: Array) -> int:
    """The bytes that are read or decoded for the picture of an array, roughly."""
    if array.nbytes <= 1 << 16:
        return array.nbytes
    data = array.data if array.extent is None else None
    chunks = array.storage.get("chunks")
    if data is not None and is_decoded_whole(data):
        return array.nbytes
    if array.extent is None and isinstance(chunks, list | tuple):
        chunk = prod(part for part in chunks if isinstance(part, int)) * array.element.nbytes
        return min(array.nbytes, max(1 << 18, 2 * chunk))
    seen = array.dims[::-1]
    layout = layout_of(array)
    if layout.form in (IMAGE, COLOR):
        return min(array.nbytes // max(1, prod(seen[at] for at in layout.outer)), 1 << 22)
    return min(array.nbytes, 1 << 22)


def _thumbnail(array: Array, side: int) -> str:
    """The small picture of an array, its line, or its value. Raises what reading raises."""
    if not array.count or not array.element.nbytes:
        return '<span class="said soft">empty</span>'
    mapping = array.meta.attributes.get("grid_mapping_name")
    if isinstance(mapping, str):  # its value has no meaning
        return f'<span class="said">{text_of(mapping[:_WORDS])}</span>'
    axis = channel_axis(array) if array.described else None
    if axis is not None:
        seen = seen_at(array, axis)
        made = None if seen is None else mixed(seen, scales_of([seen]), side)
        if made is not None:
            return _image(made.together.pictures[0], side, array)
    array, sampled, problem = shown_of(array, frames=1)
    if problem is not None or sampled is None:
        raise problem or TooLarge("is too large for a picture")
    if sampled.damage is not None:
        raise sampled.damage
    values = sampled.values[0]
    if is_table(values):
        return _words(array, values)
    return _drawn(array, sampled, side)


def _drawn(array: Array, sampled: Sample, side: int) -> str:
    """The small picture of numbers or times, their line, or the one value."""
    values = sampled.values[0]
    if sampled.form == SCALAR:
        return f'<span class="said">{text_of(value_text(values.reshape(-1)[0]))}</span>'
    if values.dtype.kind in "mM":
        listed = " … ".join(map(value_text, values.reshape(-1)[[0, -1]]))
        return f'<span class="said">{text_of(listed)}</span>'
    if sampled.form in (LINE, COLUMNS) or values.ndim < 2:
        columns = np.atleast_2d(comparable(values))
        columns = columns if columns.shape[0] <= columns.shape[1] else columns.T
        drawn = "".join(map(drawings.spark, columns[:_COLUMNS]))
        return drawn or '<span class="said soft">missing</span>'
    if not comparable(values).size:
        return ""
    return _image(strips_of(array, sampled, side, side)[0].pictures[0], side, array)


def _words(array: Array, values: Any) -> str:
    """The fields of records, or the first texts."""
    if values.dtype.names is not None:
        words = f"{array.count:,} records: {', '.join(values.dtype.names[:8])}"
        words += ", …" * (len(values.dtype.names) > 8)
    else:
        words = words_of(values.reshape(-1)[:4], 3)
    words = words if len(words) <= _WORDS else f"{words[:_WORDS]}…"
    return f'<span class="said" dir="auto">{text_of(words) or "empty"}</span>'


def _image(picture: Any, side: int, array: Array) -> str:
    """The element of a small picture of an array."""
    enlarge = picture.palette is not None
    width, height = figures.small_size(picture, max(side, 56), enlarge=enlarge)
    name = _last(array.name)[:80] or "array"
    if picture.palette is not None:  # only the colours that are in it
        used, pixels = np.unique(picture.pixels, return_inverse=True)
        pixels = pixels.reshape(picture.pixels.shape).astype(np.uint8)
        picture = picture._replace(pixels=pixels, palette=picture.palette[used])
    return (
        f'<img width="{width}" height="{height}" alt="{text_of(name)}" '
        f'src="{figures.source_of(png_of(picture))}">'
    )


MARK = 'class="sort"'  # in the markup of the buttons, so that a page adds the script
_SORT = f"""<p {MARK}><span class="steps">Sorted by
<button type="button" data-by="file" aria-pressed="true">place in the file</button>
<button type="button" data-by="name" aria-pressed="false">name</button>
<button type="button" data-by="size" aria-pressed="false">size</button>
<button type="button" data-by="kind" aria-pressed="false">kind</button></span></p>
"""

SCRIPT = """
for (const grid of document.querySelectorAll(".grid")) {
  const lists = [...grid.querySelectorAll("ul")], buttons = [...grid.querySelectorAll("button")];
  const words = new Intl.Collator("en", { numeric: true });
  const text = (tile, part) => (tile.querySelector(part) || tile).textContent;
  const tiles = lists.map((list) => [...list.children]);
  const ways = {
    name: (a, b) => words.compare(text(a, "bdi"), text(b, "bdi")),
    size: (a, b) => b.dataset.size - a.dataset.size,
    kind: (a, b) => words.compare(text(a, "i"), text(b, "i")),
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const way = ways[button.dataset.by];
      lists.forEach((list, at) => list.append(...(way ? [...tiles[at]].sort(way) : tiles[at])));
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
    });
  }
}
"""
