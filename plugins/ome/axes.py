"""Axes of OME as axes of the core: letters, kinds, units, channels, and the place of the image.

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
# The words of UDUNITS-2 that OME-Zarr lists, as the core has them
LENGTHS = {f"{name}meter": f"{sign}m" for name, sign in _PREFIXES.items()} | {
    "angstrom": "angstrom", "foot": "ft", "inch": "in", "mile": "mi", "parsec": "pc", "yard": "yd",
}  # fmt: skip
TIMES = {f"{name}second": f"{sign}s" for name, sign in _PREFIXES.items()} | {
    "minute": "min", "hour": "h", "day": "d",
}  # fmt: skip


class Letters(Record):
    """The letters of the axes, slowest first; facts that were made up; or why there are none."""

    text: str
    made_up: list[str]
    reason: str


def axes_of(array: Array) -> list[Axis]:
    """The axes in the order of `shape`, empty ones without metadata."""
    axes = [*array.ra_axes][::-1]
    return axes if len(axes) == len(array.dims) else [Axis()] * len(array.dims)


def letters_of(array: Array, title: str, *, samples: bool, ordered: bool) -> Letters:
    """Find the letters of the axes of an array.

    `samples`: the format has an axis of samples behind the plane; `ordered`: only T, C, Z in this
    order, not in any other.
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
    known = [_letter(axis) for axis in outer]
    choices = [*combinations(PAGES, len(outer))][::-1]
    if not ordered:
        choices += [*permutations(PAGES, len(outer))]
    fitting = [
        choice for choice in choices
        if all(one in (None, letter) for one, letter in zip(known, choice, strict=True))
    ]  # fmt: skip
    if not fitting:
        listed = ", ".join(one or "?" for one in known)
        how = "in this order (`--axes` can move them)" if ordered else "each once"
        return Letters("", [], f"{title} has T, C, Z {how}, not {listed} before the plane")
    pages = fitting[0]
    unknown = [at for at, one in enumerate(known) if one is None]
    made_up = [f"axis {at} of unknown sort is written as {pages[at].upper()}" for at in unknown]
    return Letters("".join([*pages, "yx", "s" * has_samples]), made_up, "")


def renamed_fit(array: Array, letters: str) -> Fit | None:
    """The fit for axes that other programs know by another name: that of their letter."""
    pairs = zip(axes_of(array), letters, strict=True)
    other = [["name"] * ((axis.name or one).lower() != one) for axis, one in pairs]
    if not letters or not any(other):
        return None
    listed = ", ".join(facts_of_axes(array, other[::-1]))
    reason = f"other programs see the letters of OME as names, these are kept for us: {listed}"
    return equivalent(array.name, "metadata", reason)


def unseen_fit(array: Array) -> Fit | None:
    """The fit for numbers along axes that a scale above 0 and a translation do not say."""
    unseen = []
    for axis, place in zip(axes_of(array), places_of(array), strict=True):
        backwards = axis.direction is None and axis.spacing is not None and place.step is None
        origin = ["origin"] if axis.origin and place.start is None else []
        unseen.append(["spacing", *origin] if backwards else [])
    if not any(unseen):
        return None
    listed = ", ".join(facts_of_axes(array, unseen[::-1]))
    reason = f"OME has only scales above 0, other programs see no such numbers: {listed}"
    return equivalent(array.name, "metadata", reason)


def _are_samples(axis: Axis, length: int) -> bool:
    colour = axis.kind in COLOURS.values() or (axis.name or "").lower() == "s"
    return 1 < length <= MOST_SAMPLES and (colour or is_component(axis))


def _is_outside(axis: Axis) -> bool:
    """True for an axis that cannot be one of the plane: time, or channels."""
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


# What OME says of the axes, in numbers ------------------------------------------------------------


class Place(Record):
    """Spacing, first number and units along an axis; None for what is unknown."""

    step: float | None
    start: float | None
    units: str | None


def places_of(array: Array) -> list[Place]:
    """Spacing, origin and units of each axis, in the order of `shape`, as far as OME has them.

    An axis that runs backwards, or obliquely through the world, has no origin.
    """
    axes = axes_of(array)
    places = []
    for axis, along in zip(axes, coordinates(axes, array.meta.space), strict=True):
        step, start = along.spacing, along.origin
        if step is None or not isfinite(step) or step <= 0:
            step, start = axis.spacing, None
        if step is None or not isfinite(step) or step <= 0:
            step = None
        if start is not None and not isfinite(start):
            start = None
        places.append(Place(step, start, axis.units))
    return places


def axes_from(
    letters: str,
    places: Sequence[Place],
    *,
    labels: Sequence[str] | None = None,
    names: Sequence[str] = (),
    samples: int = 0,
) -> tuple[list[Axis], Space | None]:
    """The axes and the space by the metadata of OME; `names` replace the letters.

    Axes of space have directions only if the image has a position.
    """
    world = [letter for letter in WORLD if letter in letters]
    by_letter = dict(zip(letters, places, strict=True))
    starts = [by_letter[letter].start for letter in world]
    has_position = any(start is not None for start in starts)
    axes = []
    for number, (letter, place) in enumerate(zip(letters, places, strict=True)):
        fields: dict[str, Any] = {"name": names[number] if names else letter}
        fields |= {"kind": COLOURS.get(samples, "list") if letter == "s" else KINDS.get(letter)}
        fields |= {"spacing": place.step, "units": place.units}
        if letter in world and has_position:
            fields["direction"] = tuple(float(one == letter) for one in world)
            fields["spacing"] = 1.0 if place.step is None else place.step
        elif letter not in world:
            fields["origin"] = place.start or None  # they begin at 0 without one
        if letter == "c" and labels is not None:
            fields["labels"] = tuple(labels)
        axes.append(Axis(**fields))
    space = Space(None, tuple(float(start or 0) for start in starts)) if has_position else None
    return axes, space


# Channels -----------------------------------------------------------------------------------------


def channels_of(array: Array, letters: str) -> tuple[list[str] | None, list[dict[str, Any]] | None]:
    """The names of the channels, and what else is kept of each; None where nothing is known."""
    at = letters.find("c")
    if at < 0:
        return None, None
    length, axes = array.dims[::-1][at], axes_of(array)
    labels = axes[at].labels
    names = [str(one) for one in labels] if labels is not None and len(labels) == length else None
    own = array.meta.formats.get(NAMESPACE, {})
    listed = own.get("axes") if isinstance(own, dict) else None
    entry = listed[at] if isinstance(listed, list) and len(listed) == array.ndim else None
    kept = entry.get("channels") if isinstance(entry, dict) else None
    whole = isinstance(kept, list) and len(kept) == length
    whole = whole and all(isinstance(one, dict) for one in kept or ())
    return names, kept if whole else None


def with_channels(letters: str, channels: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The namespace of an array in which each channel has these fields; empty without any."""
    listed = [*channels]
    if not any(listed) or "c" not in letters:
        return {}
    return {"axes": [{"channels": listed} if letter == "c" else {} for letter in letters]}
