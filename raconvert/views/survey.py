"""A folder in few facts: how many files of each kind, a sample of them, and what differs.

Names, sizes and formats are those of all files. The headers of at most `MOST_OPENED` files are
read, and the elements of at most `MOST_READ` of these, as many as the cost of their bytes allows:
one file of each of equal bins of the list, at random by a fixed seed, so that every stretch of the
folder is sampled, and the first of each folder that no bin has met.

A number is an outlier if it is further than `FAR` robust standard deviations from the median, i.e.
1.4826 times the median of the absolute deviations (MAD), of at least `FEWEST` files. Means are
compared among files of one format and type; sizes by their logarithm, among files of one format,
and within a factor of 2 none is an outlier.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections import Counter
from math import isfinite, log, prod
from statistics import median

import numpy as np

from raconvert.arrays.layout import COLOR, EMPTY, IMAGE, LINE
from raconvert.conversion.isolated import Jobs, outcomes
from raconvert.conversion.options import Settings
from raconvert.conversion.read import open_spec
from raconvert.declared import Record
from raconvert.errors import Corrupt
from raconvert.inspect.info import type_text
from raconvert.registry import by_name
from raconvert.views.filmstrip import small_plane
from raconvert.views.folder import Entry, Listing, group_of, listing_of, without
from raconvert.views.numbers import Numbers, comparable
from raconvert.views.roles import main_array
from raconvert.views.sample import DECODED, shown_of, spread
from raconvert.views.terminal import envelope, number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.conversion.read import Opened


MOST_OPENED = 2000  # files whose headers are read
MOST_READ = 400  # files whose elements are read
_FEWEST_READ = 16  # files whose elements are read, however large they are
_WORK = 256 << 20  # bytes that may be decoded for all files
_PART = 1 << 20  # bytes of one file that are read, if it need not be decoded
_MOST_GROUPS = 500  # folders of which one file at least is opened
_SIDE = 64  # the longest side of a thumbnail, in pixels
_POINTS = 128  # values of a thumbnail of a line
FAR = 5.0
FEWEST = 8
_NORMAL = 1.4826  # times the MAD is the standard deviation of a normal distribution
_USUAL = 0.8  # share of the files that makes a shape, a type or a format the usual one
_LEAST_SPREAD = 0.01  # of the range of values in a file; closer means are not outliers
_LEAST_RATIO = log(2) / FAR  # sizes within a factor of 2 are not outliers: images pack unevenly


class Kind(Record):
    """A kind of files: their format, type, shape and number of arrays, and how many there are."""

    format: str
    type: str
    shape: tuple[int, ...]
    arrays: int
    files: int


class Flag(Record):
    """A file that differs: in what, its path below the root, and how."""

    what: str
    path: str
    reason: str


class Tile(Record):
    """A file of the sample: its path, kind, numbers, and its small picture, if it has one.

    `seen` is the number of values that were read, `form` that of the sample; `values` are its plane
    or its line, None for other forms.
    """

    path: str
    format: str
    type: str
    shape: tuple[int, ...]
    form: str
    least: float | None
    mean: float | None
    most: float | None
    nan: int
    seen: int
    values: Any


class Survey(Record):
    """The facts about a folder.

    `opened` is the number of files whose headers were read, `read` that of files whose elements
    were read, `partly` that of those of which only a part was read.
    """

    listing: Listing
    formats: dict[str, int]
    stored: int
    opened: int
    read: int
    partly: int
    kinds: list[Kind]
    flags: list[Flag]
    tiles: list[Tile]

    @property
    def files(self) -> int:
        """The number of files with arrays."""
        return len(self.listing.files)


# The words for what differs, in the order in which they are listed.
(
    UNREADABLE, EMPTY_FILE, ODD_FORMAT, ODD_TYPE, ODD_SHAPE, BLANK, MISSING, ODD_MEAN, ODD_SIZE,
) = WORDS = (
    "cannot be read", "empty file", "another format", "another type", "another shape", "blank",
    "nothing but NaN", "mean far off", "size far off",
)  # fmt: skip


def survey_of(
    root: str,
    settings: dict[str, Any],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Survey:
    """Look at a folder; `settings` are the options of reading, `include` and `exclude` are globs.

    One file that cannot be read does not stop the others. Raises `ReadFailed` for a folder that
    cannot be listed.
    """
    listing = listing_of(root, include, exclude)
    chosen = _chosen(listing.files, MOST_OPENED)
    opened, failed = _looked(root, chosen, lambda path: _header(path, settings))
    listing = without(listing, _partners(opened))
    listed = {file.path for file in listing.files}
    opened = {path: facts for path, facts in opened.items() if path in listed}
    affordable = _affordable([file for file in chosen if file.path in opened], opened)
    read, more = _looked(root, affordable, lambda path: _elements(path, settings))
    failed = {path: why for path, why in {**failed, **more}.items() if path in listed}
    tiles = [_tile(path, opened[path], facts) for path, facts in read.items()]
    empty = {file.path for file in listing.files if file.size == 0}
    flags = [Flag(UNREADABLE, path, why) for path, why in failed.items() if path not in empty]
    formats = Counter(file.format for file in listing.files)
    return Survey(
        listing,
        dict(formats.most_common()),
        sum(max(0, file.size) for file in listing.files),
        len(opened) + sum(path not in opened for path in failed),
        len(tiles),
        sum(not facts["whole"] for facts in read.values()),
        _kinds(opened),
        [*flags, *_odd_files(listing.files, formats), *_odd_headers(opened), *_odd_values(tiles)],
        tiles,
    )


# Sample -----------------------------------------------------------------------------------------


def _chosen(files: list[Entry], most: int) -> list[Entry]:
    """One file of each of equal bins of a list, and one of each folder that no bin has met."""
    chosen = spread(len(files), most)
    if len(chosen) < len(files):
        met = {group_of(files[number].path) for number in chosen}
        for number, file in enumerate(files):
            if len(met) >= _MOST_GROUPS:
                break
            if (group := group_of(file.path)) not in met:
                met.add(group)
                chosen.append(number)
    return [files[number] for number in sorted(chosen)]


def _affordable(entries: list[Entry], opened: dict[str, dict[str, Any]]) -> list[Entry]:
    """As many of the files as may be decoded within `_WORK`, of all stretches of the list."""
    if not entries:
        return []
    cost = median(_cost(opened[entry.path]) for entry in entries)
    return _chosen(entries, max(_FEWEST_READ, min(MOST_READ, int(_WORK // max(1, cost)))))


def _cost(facts: dict[str, Any]) -> int:
    """The bytes that are read or decoded to show an array."""
    return min(int(facts["nbytes"]), DECODED if facts["encoded"] else _PART)


def _looked(
    root: str, entries: Sequence[Entry], look: Callable[[str], Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The results of `look` by file, as values of JSON, and the reasons of failures by file."""
    paths = [os.path.join(root, entry.path) for entry in entries]
    results: dict[str, Any] = {}
    failed: dict[str, str] = {}
    looks = outcomes(paths, Jobs(lambda number: look(paths[number])), fewest=1)
    for entry, facts in zip(entries, looks, strict=True):
        if isinstance(facts, Exception):
            failed[entry.path] = getattr(facts, "what", None) or str(facts).partition("\n")[0]
        else:
            results[entry.path] = facts
    return results, failed


def _header(path: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The kind of a file, its size in memory, and the other files that it is made of."""
    with open_spec(path, Settings(**settings)) as opened:
        array = main_array(opened.bundle)
        facts = {
            "format": opened.bundle.format,
            "arrays": len(opened.bundle.arrays),
            "used": _beside(path, opened),
        }
        if array is None:
            return {**facts, "type": "", "shape": [], "nbytes": 0, "encoded": False}
        if array.problem is not None:
            raise array.problem
        return {
            **facts,
            "type": type_text(array.element),
            "shape": list(array.shape),
            "nbytes": array.nbytes,
            "encoded": array.extent is None,
        }


def _beside(path: str, opened: Opened) -> list[str]:
    """The files in the folder of a file that are read with it."""
    folder = os.path.dirname(path)
    return [
        os.path.basename(used)
        for used in sorted(opened.used)
        if os.path.dirname(used) == folder and used != path
    ]


def _partners(opened: dict[str, dict[str, Any]]) -> set[str]:
    """The paths of files that others are made of; of two that name each other, the second."""
    partners: set[str] = set()
    for path, facts in sorted(opened.items()):
        folder = path[: path.rfind("/") + 1]
        if path not in partners:
            partners.update(folder + name for name in facts["used"])
    return partners


def _elements(path: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The numbers and the small picture of the array that stands for a file."""
    with open_spec(path, Settings(**settings)) as opened:
        array = main_array(opened.bundle)
        if array is None:
            return {"form": EMPTY, "whole": True, "count": 0, "nan": 0}
        array, sampled, problem = shown_of(array, budget=_PART, frames=1)
        if sampled is None:
            raise problem or Corrupt("nothing can be shown")
        if sampled.damage is not None:
            raise sampled.damage
        numbers = Numbers()
        for part in sampled.values:
            numbers.add(part)
        facts = {
            "form": sampled.form,
            "whole": sampled.whole,
            "count": numbers.count,
            "nan": numbers.nan,
            **_ends(numbers),
        }
        if not sampled.frames or not comparable(sampled.values[0]).size:
            return facts
        if sampled.form in (IMAGE, COLOR) and sampled.values[0].dtype.kind in "iufcbV":
            return {**facts, "values": _packed(small_plane(array, sampled, _SIDE))}
        if sampled.form == LINE and sampled.values[0].dtype.kind in "iufcb":
            line = comparable(sampled.values[0]).reshape(-1)
            low, high = envelope(line, _POINTS)
            return {**facts, "values": _packed((low / 2 + high / 2).astype(np.float32))}
        return facts


def _ends(numbers: Numbers) -> dict[str, float | None]:
    """The least, the mean and the largest value; each is None for times, and if none is finite."""
    parts = {"least": numbers.least, "mean": None, "most": numbers.most}
    if numbers.least is None or np.asarray(numbers.least).dtype.kind in "mM":
        return dict.fromkeys(parts)
    parts["mean"] = numbers.mean
    return {name: None if value is None else float(value) for name, value in parts.items()}


def _packed(values: Any) -> dict[str, Any]:
    """An ndarray as values of JSON: its type, its shape, and its bytes in base64."""
    values = np.ascontiguousarray(values)
    text = b64encode(values.tobytes()).decode("ascii")
    return {"dtype": values.dtype.str, "shape": list(values.shape), "bytes": text}


def _tile(path: str, header: dict[str, Any], facts: dict[str, Any]) -> Tile:
    """The tile of a file, from the facts of its header and of its elements."""
    packed = facts.get("values")
    values = None
    if packed is not None:
        data = b64decode(packed["bytes"])
        values = np.frombuffer(data, packed["dtype"]).reshape(packed["shape"])
    return Tile(
        path,
        header["format"],
        header["type"],
        tuple(header["shape"]),
        facts["form"],
        facts.get("least"),
        facts.get("mean"),
        facts.get("most"),
        facts["nan"],
        facts["count"],
        values,
    )


# Kinds, and flags of files that differ ----------------------------------------------------------


def _kinds(opened: dict[str, dict[str, Any]]) -> list[Kind]:
    """The kinds of the opened files, those of most files first."""
    counts = Counter(
        (facts["format"], facts["type"], tuple(facts["shape"]), facts["arrays"])
        for facts in opened.values()
    )
    return [Kind(*kind, count) for kind, count in counts.most_common()]


def _odd_files(files: list[Entry], formats: Counter[str]) -> Iterator[Flag]:
    """Yield the flags of all files by their formats and sizes."""
    yield from (Flag(EMPTY_FILE, file.path, "0 bytes") for file in files if file.size == 0)
    usual = _usual(formats)
    for file in files if usual else ():
        if file.format != usual:
            reason = f"{by_name(file.format).title}, most are {by_name(usual).title}"
            yield Flag(ODD_FORMAT, file.path, reason)
    by_format: dict[str, list[Entry]] = {}
    for file in files:
        if file.size > 0:
            by_format.setdefault(file.format, []).append(file)
    for some in by_format.values():
        logs = [log(file.size) for file in some]
        far = outliers(logs, _LEAST_RATIO)
        if not far:
            continue
        middle = round(median(file.size for file in some))
        for at in far:
            yield Flag(ODD_SIZE, some[at].path, f"{some[at].size} bytes, the median is {middle}")


def _odd_headers(opened: dict[str, dict[str, Any]]) -> Iterator[Flag]:
    """Yield the flags of files of another type or shape than most of their format."""
    by_format: dict[str, dict[str, dict[str, Any]]] = {}
    for path, facts in opened.items():
        by_format.setdefault(facts["format"], {})[path] = facts
    for some in by_format.values():
        types = Counter(facts["type"] for facts in some.values())
        usual_type = _usual(types)
        shapes = Counter(tuple(facts["shape"]) for facts in some.values())
        usual_shape = _usual(shapes)
        for path, facts in some.items():
            shape = tuple(facts["shape"])
            if usual_type and facts["type"] != usual_type:
                reason = f"{facts['type'] or 'no array'}, most are {usual_type}"
                yield Flag(ODD_TYPE, path, reason)
            if usual_shape is not None and shape != usual_shape:
                yield Flag(ODD_SHAPE, path, f"{shape}, most are {usual_shape}")
        if usual_shape is None:
            yield from _odd_counts(some)


def _odd_counts(some: dict[str, dict[str, Any]]) -> Iterator[Flag]:
    """Yield the flags of files of far more or fewer elements than others of any shape."""
    counts = {path: prod(facts["shape"]) for path, facts in some.items()}
    counts = {path: count for path, count in counts.items() if count}
    paths = list(counts)
    for at in outliers([log(count) for count in counts.values()], _LEAST_RATIO):
        path = paths[at]
        reason = f"{tuple(some[path]['shape'])}, the median is {round(median(counts.values()))}"
        yield Flag(ODD_SHAPE, path, f"{reason} elements")


def _odd_values(tiles: list[Tile]) -> Iterator[Flag]:
    """Yield the flags of files by the elements that were read."""
    by_kind: dict[tuple[str, str], list[Tile]] = {}
    for tile in tiles:
        by_kind.setdefault((tile.format, tile.type), []).append(tile)
        if tile.seen > 1 and tile.nan == tile.seen:
            yield Flag(MISSING, tile.path, f"all {tile.seen} values that were read")
        elif tile.seen > 1 and tile.least is not None and tile.least == tile.most:
            value = number_text(tile.least)
            yield Flag(BLANK, tile.path, f"all {tile.seen} values that were read are {value}")
    for kind in by_kind.values():
        some = [tile for tile in kind if tile.mean is not None and isfinite(tile.mean)]
        means = [float(tile.mean or 0) for tile in some]
        spreads = [float(tile.most or 0) - float(tile.least or 0) for tile in some]
        least = _LEAST_SPREAD * median(spreads) if spreads else 0
        for at in outliers(means, least):
            middle = number_text(median(means))
            reason = f"{number_text(means[at])}, the median is {middle}"
            yield Flag(ODD_MEAN, some[at].path, reason)


def outliers(values: Sequence[float], least: float = 0.0) -> list[int]:
    """The indices of the values that are further than `FAR` robust deviations from the median.

    A deviation is at least `least`. Fewer than `FEWEST` values have no outliers.
    """
    if len(values) < FEWEST:
        return []
    all_values = np.asarray(values, np.float64)
    distance = np.abs(all_values - np.median(all_values))
    deviation = max(_NORMAL * float(np.median(distance)), least)
    far: list[int] = np.flatnonzero(distance > FAR * deviation).tolist()
    return far


def _usual(counts: Counter[Any]) -> Any:
    """The value that nearly all have, if there are others; None without such a value."""
    if len(counts) < 2:
        return None
    ((value, count),) = counts.most_common(1)
    return value if count >= _USUAL * sum(counts.values()) else None


def by_word(flags: Iterable[Flag]) -> dict[str, list[Flag]]:
    """Flags by what differs, in the order of `WORDS`."""
    grouped: dict[str, list[Flag]] = {word: [] for word in WORDS}
    for flag in flags:
        grouped[flag.what].append(flag)
    return {word: some for word, some in grouped.items() if some}
