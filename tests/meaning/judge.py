"""Send an array with a meaning through a chain of formats, and judge what arrived."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import raconvert
from raconvert import Bundle
from raconvert.errors import Unsupported, UsageError, WouldLose

from .cases import Known, array_of, made
from .readers import MANY, ONLY_BETWEEN, READERS, Seen, quiet

# What a report says of a fact that is gone; "axes" alone is all facts of axes.
WORDS = {
    "name": ("name", "called", "becomes the set", "sets"),
    "places": ("label", "spacing", "origin", "coordinate", "along axis"),
    "units": ("units",),
    "positions": ("space", "direction", "origin", "orientation", "position", "affine"),
    "description": ("description", "long name"),
    "array units": ("units",),
    "attributes": ("attribute",),
}
SEEN, KEPT, NAMED, SILENT = "seen", "kept", "named", "silent"


@dataclass
class Verdict:
    """What became of one case; `faults` are violations of the law."""

    chain: list[str]
    refused: bool
    faults: list[str]
    outcomes: Counter[tuple[str, str, str]]  # format, fact, outcome


def judged(seed: int, folder: Path, largest: int = 4) -> Verdict:
    """Make a case of a seed, send it on its way, and judge it."""
    chance = random.Random(seed)
    known = made(chance)
    first = chance.choice([*READERS, *ONLY_BETWEEN])
    middle = [chance.choice(ONLY_BETWEEN) for _ in range(chance.choice([0, 0, 0, 1, largest - 2]))]
    last = chance.choice(list(READERS))
    chain, said = [first], []
    path = folder / f"0.{first}"
    try:
        with quiet():
            array = array_of(known)
            report = raconvert.write(path, {"X": array} if first in MANY else array)
            said += words_of(report)
            for number, form in enumerate([*middle, last], 1):
                target = folder / f"{number}.{form}"
                known, how = step(chance, known, path, target, said)
                chain += [*how, form]
                path = target
    except (WouldLose, UsageError, Unsupported):
        left = [str(one) for one in folder.iterdir() if one.stem == str(len(chain))]
        return Verdict(chain, True, [f"refused, but {left} is there"] if left else [], Counter())
    with quiet():
        found = judge(known, READERS[last](path), path, said, last)
    return Verdict(chain, False, found.faults, found.outcomes)


def written(seed: int, form: str, folder: Path) -> Verdict:
    """Write a case to one format, and judge it."""
    known, path = made(random.Random(seed)), folder / f"x.{form}"
    array = array_of(known)
    try:
        said = words_of(raconvert.write(path, {"X": array} if form in MANY else array))
    except (WouldLose, UsageError, Unsupported):
        return Verdict([form], True, [], Counter())
    with quiet():
        found = judge(known, READERS[form](path), path, said, form)
    return Verdict([form], False, found.faults, found.outcomes)


def words_of(report: Any) -> list[str]:
    fits = [*report.equivalent, *report.allowed]
    return [str(one).lower() for one in [*fits, *report.notes, *report.left_out]]


def step(
    chance: random.Random, known: Known, path: Path, target: Path, said: list[str]
) -> tuple[Known, list[str]]:
    """Convert one file into the next, in a way that is drawn; what is known of the result."""
    way = chance.choice(["plain", "plain", "cast", "moved", "cut", "stacked", "written", "xarray"])
    options: dict[str, Any] = {}
    rank = known.values.ndim
    single = path.suffix[1:] not in MANY and path.suffix not in (".zip", ".tar")
    source: Any = path if single else f"{path}#X"
    if target.suffix[1:] in MANY and chance.random() < 0.5:
        target_word: Any = f"{target}#X"
    else:
        target_word = target
    with raconvert.open(source, index_order="C") as opened:
        shape = (opened["X"] if isinstance(opened, Bundle) else opened).shape
    if way in ("moved", "cut") and shape != known.values.shape:
        way = "plain"  # a format that has no vectors made a matrix of one, and said so
    if way == "cast" and known.values.dtype.kind in "iufb":
        options["dtype"] = "float64"
        known = known.cast("f8")
    elif way == "moved" and rank > 1:
        order = tuple(chance.sample(range(rank), rank))
        options["axes"] = ",".join(map(str, order))
        known = known.moved(order)
    elif way == "cut" and rank:
        key = tuple(_part(chance, n) for n in known.values.shape)
        if all(isinstance(part, int) for part in key):
            key = (slice(None), *key[1:])
        options["slice"] = ",".join(_spelled(part) for part in key)
        known = known.cut(key)
    elif way == "stacked" and single and rank < 4:
        options["stack"] = True
        source = [path, path]
        known = known.stacked(2)
    elif way in ("written", "xarray"):
        with raconvert.open(source, index_order="C") as opened:
            array = opened["X"] if isinstance(opened, Bundle) else opened
            made_of = array.to_xarray().rename("X") if way == "xarray" else array.replace(name="X")
            many = target.suffix[1:] in (*MANY, "zip", "tar") and way == "written"
            said += words_of(raconvert.write(target, {"X": made_of} if many else made_of))
        return known, [f"({way})"]
    else:
        way = "plain"
    if target.suffix[1:] in (*MANY, "zip", "tar") and target_word is target:
        options["name"] = "X"
    said += words_of(raconvert.convert(source, target_word, index_order="C", **options))
    return known, [f"({way})"]


def _part(chance: random.Random, length: int) -> Any:
    if chance.random() < 0.2:
        return chance.randrange(length)
    start = chance.randrange(length)
    if chance.random() < 0.3:
        return slice(None, None, -1)
    return slice(start, None, chance.choice([None, 1, 2]))


def _spelled(part: Any) -> str:
    if isinstance(part, int):
        return str(part)
    ends = (part.start, part.stop, part.step)
    return ":".join("" if end is None else str(end) for end in ends)


# --- the judgement --------------------------------------------------------------------------------


class Judge:
    """Holds what others see of a file against what is known, fact by fact."""

    def __init__(self, form: str, said: list[str]) -> None:
        self.form = form
        self.said = said
        self.faults: list[str] = []
        self.outcomes: Counter[tuple[str, str, str]] = Counter()

    def check(self, fact: str, wanted: Any, others: Any, own: Any, where: str = "") -> None:
        """Judge one fact: as wanted, as others see it, as raconvert reads it."""
        if wanted is None or wanted == {}:
            return
        if others is not None and _alike(wanted, others):
            outcome = SEEN
        elif others is None and _alike(wanted, own):
            outcome = KEPT
        elif _is_named(fact, self.said):
            outcome = NAMED
        else:
            outcome = SILENT
            self.faults.append(
                f"{fact}{where}: {wanted!r:.80} is seen as {others!r:.80}, read as {own!r:.60}"
            )
        self.outcomes[self.form, fact, outcome] += 1

    def axes(self, known: Known, seen: Seen, axes: Any) -> None:
        """Judge the facts of each axis."""
        if not len(axes) == len(known.axes) == len(seen.axes):
            facts = {
                "name": [axis.name for axis in known.axes],
                "units": [axis.units for axis in known.axes],
                "places": [axis.labels or axis.spacing for axis in known.axes],
            }
            for fact, values in facts.items():
                self.check(fact, values if any(values) else None, None, None, " of other axes")
            return
        for number, (axis, told, own) in enumerate(zip(known.axes, seen.axes, axes, strict=True)):
            length, where = known.values.shape[number], f" of axis {number}"
            self.check("name", axis.name, told.get("name"), own.name, where)
            self.check("units", axis.units, told.get("units"), own.units, where)
            if axis.direction is None:
                wanted, others = _places(axis, length), told.get("places")
                self.check("places", wanted, others, _places(own, length), where)


def judge(known: Known, seen: Seen, path: Path, said: list[str], form: str) -> Judge:
    """Judge what a reader that is not ours sees of a file, and what raconvert reads of it."""
    found = Judge(form, said)
    with raconvert.open(path, None if form not in MANY else "X", index_order="C") as back:
        axes, meta, order = back.axes, back.meta, back.index_order
    if form in ("nrrd", "mha") and order == "F":  # their axes are only listed, here the other way
        seen = seen.reversed()
    if not _same_values(known.values, seen.values):
        shapes = f"{known.values.shape} became {seen.values.shape}"
        found.faults.append(f"values: {shapes}, or other numbers")
        return found
    found.axes(known, seen, axes)
    positions = known.positions()
    if positions and known.values.size:
        others = seen.positions and {index: seen.positions(index) for index in positions}
        fits = len(axes) == len(known.axes)
        own = Known(known.values, axes, meta.space).positions() if fits else None
        found.check("positions", positions, others, own)
    found.check("description", known.description, seen.whole.get("description"), meta.description)
    found.check("array units", known.units, seen.whole.get("units"), meta.units)
    own_attributes = dict(meta.attributes)
    found.check("attributes", known.attributes, seen.whole.get("attributes"), own_attributes)
    return found


def _places(axis: Any, length: int) -> list[Any] | None:
    if axis.labels is None and axis.spacing is None:
        return None
    values = axis.values(length)
    return None if values is None else values.tolist()


def _same_values(wanted: np.ndarray, got: np.ndarray) -> bool:
    """Each value is there, in whatever type and with axes of length one that a format needs."""
    wanted, got = np.squeeze(wanted), np.squeeze(got)
    if wanted.dtype.kind == "c" and got.dtype.kind == "f" and got.shape[-1:] == (2,):
        got = got[..., 0] + 1j * got[..., 1]
    if got.dtype.names:
        got = got[got.dtype.names[0]] + 1j * got[got.dtype.names[1]]
    return wanted.shape == got.shape and bool(np.all(wanted.astype("c16") == got.astype("c16")))


def _alike(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, dict) and all(isinstance(key, tuple) for key in wanted):
        return isinstance(got, dict) and all(
            index in got and len(at) <= len(got[index])
            and np.allclose(at, np.asarray(got[index])[: len(at)], rtol=1e-5, atol=1e-4)
            for index, at in wanted.items()
        )  # fmt: skip
    if isinstance(wanted, dict):
        return isinstance(got, dict) and all(got.get(key) == value for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(_alike, wanted, got))
    if isinstance(wanted, float) and isinstance(got, int | float):
        return math.isclose(wanted, got, rel_tol=1e-6, abs_tol=1e-9)
    return bool(wanted == got)


def _is_named(fact: str, said: list[str]) -> bool:
    of_axes = fact in ("name", "places", "units", "positions")
    for line in said:
        if of_axes and "axes" in line and "axes (" not in line:
            return True
        if any(word in line for word in WORDS[fact]):
            return True
    return False
