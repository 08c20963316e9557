"""Axes of OME as axes of the core: letters, kinds, units, channels, and the position of the image.

Letters are listed slowest axis first, in lower case. The world of an image has the axes x, y, z;
its frame is unknown, since a microscope has none that anatomy knows.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import isfinite

from raconvert.arrays.space import coordinates, is_component
from raconvert.declared import Record
from raconvert.plugin import Axis, Space, equivalent, facts_of_axes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from raconvert.plugin import Array, Fit

NAMESPACE = "ome"
ORDER = "tczyx"  # of OME-Zarr, slowest axis first
PAGES = "tcz"  # axes around the plane
WORLD = "xyz"
KINDS = {"t": "time", "c": "list", "z": "space", "y": "space", "x": "space"}
MOST_SAMPLES = 4
COLOURS = {3: "RGB-color", 4: "RGBA-color"}  # kinds of an axis of samples
_PREFIXES = {
    "yotta": "Y", "zetta": "Z", "exa": "E", "peta": "P", "tera": "T", "giga": "G", "mega": "M",
    "kilo": "k", "hecto": "h", "deca": "da", "": "", "deci": "d", "centi": "c", "milli": "m",
    "micro": "u", "nano": "n", "pico": "p", "femto": "f", "atto": "a", "zepto": "z", "yocto": "y",
}  # fmt: skip
# The words of UDUNITS-2 that OME-Zarr lists, and the symbols of the core.
LENGTHS = {f"{name}meter": f"{sign}m" for name, sign in _PREFIXES.items()} | {
    "angstrom": "angstrom", "foot": "ft", "inch": "in", "mile": "mi", "parsec": "pc", "yard": "yd",
}  # fmt: skip
TIMES = {f"{name}second": f"{sign}s" for name, sign in _PREFIXES.items()} | {
    "minute": "min", "hour": "h", "day": "d",
}  # fmt: skip


class Letters(Record):
    """The letters of the axes, slowest first; notes on made-up ones; the reason for having none."""

    text: str
    made_up: list[str]
    reason: str


def axes_of(array: Array) -> list[Axis]:
    """The axes in the order of `shape`; empty axes if the array has no metadata."""
    axes = [*array.ra_axes][::-1]
    return axes if len(axes) == len(array.dims) else [Axis()] * len(array.dims)


def letters_of(array: Array, title: str, *, samples: bool, ordered: bool) -> Letters:
    """The letters of the axes of an array.

    With `samples` the format has an axis of samples behind the plane; with `ordered` T, C, Z are
    in this order only.
    """
    axes = axes_of(array)
    last = len(axes) - 1
    has_samples = samples and len(axes) > 2 and _are_samples(axes[last], array.dims[0])
    plane = len(axes) - 2 - has_samples
    outer = axes[:plane]
    if plane < 0 or len(outer) > len(PAGES):
        count = "2 to 5, and samples" if samples else "2 to 5"
        return Letters("", [], f"{title} has {count} axes, not {array.ndim}")
    for axis in axes[plane : plane + 2]:
        if _is_outside(axis):
            where = "they come before it; `--axes` can move them"
            return Letters("", [], f"{title} has no channels or times inside the plane: {where}")
    decided = [_letter(axis) for axis in outer]
    choices = [*combinations(PAGES, len(outer))][::-1]
    if not ordered:
        choices += [*permutations(PAGES, len(outer))]
    fitting = [
        choice for choice in choices
        if all(own in (None, letter) for own, letter in zip(decided, choice, strict=True))
    ]  # fmt: skip
    if not fitting:
        listed = ", ".join(letter or "?" for letter in decided)
        how = "in this order (`--axes` can move them)" if ordered else "each once"
        return Letters("", [], f"{title} has T, C, Z {how}, not {listed} before the plane")
    pages = fitting[0]
    made_up = [
        f"axis {at} of unknown kind is written as {pages[at].upper()}"
        for at, letter in enumerate(decided) if letter is None
    ]  # fmt: skip
    return Letters("".join([*pages, "yx", "s" * has_samples]), made_up, "")


def renamed_fit(array: Array, letters: str) -> Fit | None:
    """The fit for axes whose names are not their letters, which other programs show; else None."""
    pairs = zip(axes_of(array), letters, strict=True)
    renamed = [
        ["name"] if axis.name and axis.name.lower() != letter else [] for axis, letter in pairs
    ]
    if not letters or not any(renamed):
        return None
    listed = ", ".join(facts_of_axes(array, renamed[::-1]))
    reason = f"other programs see the letters of OME as names, these are kept for us: {listed}"
    return equivalent(array.name, "metadata", reason)


def unseen_fit(array: Array) -> Fit | None:
    """The fit for numbers along axes that OME cannot hold, but our record can; else None."""
    unseen = []
    for axis, sampling in zip(axes_of(array), samplings_of(array), strict=True):
        backwards = axis.direction is None and axis.spacing is not None and sampling.step is None
        origin = ["origin"] if axis.origin and sampling.start is None else []
        unseen.append(["spacing", *origin] if backwards else [])
    if not any(unseen):
        return None
    listed = ", ".join(facts_of_axes(array, unseen[::-1]))
    reason = f"OME has only scales above 0, other programs see no such numbers: {listed}"
    return equivalent(array.name, "metadata", reason)


def _are_samples(axis: Axis, length: int) -> bool:
    """True for an axis of the samples of a pixel: short, and of colours or components."""
    colour = axis.kind in COLOURS.values() or (axis.name or "").lower() == "s"
    return 1 < length <= MOST_SAMPLES and (colour or is_component(axis))


def _is_outside(axis: Axis) -> bool:
    """True for an axis that cannot be in the plane: time, or channels."""
    if axis.direction is not None or (axis.name or "").lower() in ("x", "y"):
        return False
    named = (axis.name or "").lower() in ("t", "c")
    return named or axis.kind == "time" or axis.units in TIMES.values() or is_component(axis)


def _letter(axis: Axis) -> str | None:
    """The letter of an axis around the plane; None if nothing decides it."""
    if axis.direction is not None:
        return "z"
    name = (axis.name or "").lower()
    if name in PAGES and name:
        return name
    if axis.kind == "time" or axis.units in TIMES.values():
        return "t"
    if axis.labels is not None or is_component(axis):
        return "c"
    return "z" if axis.units in LENGTHS.values() or axis.kind == "space" else None


# Numbers along axes -------------------------------------------------------------------------------


class Sampling(Record):
    """Spacing, first coordinate and units along an axis; None if unknown."""

    step: float | None
    start: float | None
    units: str | None


def samplings_of(array: Array) -> list[Sampling]:
    """Spacing, origin and units of each axis, in the order of `shape`; None if OME cannot hold one.

    An axis that runs backwards, or obliquely through the world, has no origin.
    """
    axes = axes_of(array)
    samplings = []
    for axis, along in zip(axes, coordinates(axes, array.meta.space), strict=True):
        step, start = along.spacing, along.origin
        if step is None or not isfinite(step) or step <= 0:
            step, start = axis.spacing, None
        if step is None or not isfinite(step) or step <= 0:
            step = None
        if start is not None and not isfinite(start):
            start = None
        samplings.append(Sampling(step, start, axis.units))
    return samplings


def axes_from(
    letters: str,
    samplings: Sequence[Sampling],
    *,
    labels: Sequence[str] | None = None,
    names: Sequence[str] = (),
    samples: int = 0,
) -> tuple[list[Axis], Space | None]:
    """The axes and the space from the metadata of OME; `names` replace the letters.

    Axes of space have directions only if the image has a position.
    """
    world = [letter for letter in WORLD if letter in letters]
    by_letter = dict(zip(letters, samplings, strict=True))
    starts = [by_letter[letter].start for letter in world]
    has_position = any(start is not None for start in starts)
    axes = []
    for number, (letter, sampling) in enumerate(zip(letters, samplings, strict=True)):
        fields: dict[str, Any] = {"name": names[number] if names else letter}
        fields |= {"kind": COLOURS.get(samples, "list") if letter == "s" else KINDS.get(letter)}
        fields |= {"spacing": sampling.step, "units": sampling.units}
        if letter in world and has_position:
            fields["direction"] = tuple(float(other == letter) for other in world)
            fields["spacing"] = 1.0 if sampling.step is None else sampling.step
        elif letter not in world:
            fields["origin"] = sampling.start or None  # without an origin, they begin at 0
        if letter == "c" and labels is not None:
            fields["labels"] = tuple(labels)
        axes.append(Axis(**fields))
    space = Space(None, tuple(float(start or 0) for start in starts)) if has_position else None
    return axes, space


# Channels -----------------------------------------------------------------------------------------


def channels_of(array: Array, letters: str) -> tuple[list[str] | None, list[dict[str, Any]] | None]:
    """The names of the channels, and the other fields of each; None if there are none."""
    at = letters.find("c")
    if at < 0:
        return None, None
    length, axes = array.dims[::-1][at], axes_of(array)
    labels = axes[at].labels
    names = None
    if labels is not None and len(labels) == length:
        names = [str(label) for label in labels]
    own = array.meta.formats.get(NAMESPACE, {})
    listed = own.get("axes") if isinstance(own, dict) else None
    entry = listed[at] if isinstance(listed, list) and len(listed) == array.ndim else None
    channels = entry.get("channels") if isinstance(entry, dict) else None
    if not isinstance(channels, list) or len(channels) != length:
        return names, None
    return names, channels if all(isinstance(channel, dict) for channel in channels) else None


def with_channels(letters: str, channels: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The namespace of an array in which each channel has these fields; empty without any."""
    listed = [*channels]
    if not any(listed) or "c" not in letters:
        return {}
    return {"axes": [{"channels": listed} if letter == "c" else {} for letter in letters]}
