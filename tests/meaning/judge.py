"""Send arrays with a meaning through a chain of formats, and judge what arrived."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import raconvert
from raconvert import Bundle
from raconvert.errors import Unsupported, UsageError, WouldLose

from .cases import HOLDS, OF_AXES, OF_SCALE, Known, array_of, several
from .readers import BETWEEN, MANY, OF_VALUES, READERS, Seen, Unjudged, axes_of_table, quiet

SEEN, KEPT, NAMED, SILENT = "seen", "kept", "named", "silent"
LOSSY = {"jpg": {"allow": ["precision"]}}
TO: dict[str, dict[str, Any]] = {  # what a format needs besides a suffix
    "bundle": {"to": "bundle"}, "rds": {"out_opts": {"object": "list"}},
}  # fmt: skip
RAW = "raw"  # bytes, which are read only
OF_OME = {*"TCZYXS"}  # which TIFF has for every axis
# What a report says is gone: a term of a list, and the facts that it is about.
TERMS = (
    (re.compile(r"(every axis|(?:axis|axes) [0-9].*?) \(([^()]*)\)"), "axes"),
    (re.compile(r"(space|frame of the space|origin beyond)\b"), "space"),
    (re.compile(r"attributes \((.*)\)$"), "attributes"),
    (re.compile(r"attribute '(.*)' of type"), "attributes"),
    (re.compile(r"an attribute is .* only raconvert reads '(.*)'$"), "attributes"),
    (re.compile(r"its axis '(.*)' is not the dimension"), "an axis"),
    (re.compile(r"(description|units)( \(.*)?$"), "whole"),
)
OTHER_TERM = re.compile(r", (?![^()]*\))(?![0-9])")  # "axes 0, 1 and 3 (name)" is one term


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
    length = chance.choice([0, 0, 0, 1, largest - 2])
    chain = [chance.choice([*_one_format(chance), RAW])]
    forms = [*(chance.choice(BETWEEN) for _ in range(length)), *_one_format(chance)]
    known = several(chance, next((form for form in (forms[-1], chain[0]) if form in HOLDS), ""))
    if len(known) > 1 and (chain[0] not in MANY or (chain[0] in HOLDS) != ("labels" in known)):
        chain = [chance.choice(sorted(MANY - HOLDS.keys()))]
    if "labels" in known:  # the names of CIFAR are longer than those of HAR
        chain, forms = [["h5" if form == "har" else form for form in one] for one in (chain, forms)]
    path = folder / f"0.{chain[0]}"
    try:
        with quiet():
            known = written(known, path)
            for number, form in enumerate(forms, 1):
                target = folder / f"{number}.{form}"
                known, how = step(chance, known, path, target)
                chain += [how, form]
                path = target
    except (WouldLose, UsageError, Unsupported):
        count = len(chain) // 2 + 1
        left = [one.name for one in folder.iterdir() if form_of(one)[0] == str(count)]
        return Verdict(chain, True, [f"refused, but {left} is there"] if left else [], Counter())
    try:
        return judge(known, path, chain)
    except Unjudged:
        return Verdict([*chain, "(unjudged)"], False, [], Counter())


def _one_format(chance: random.Random) -> list[str]:
    """One of those that know more than values, most of the time."""
    rich = chance.random() < 0.75
    return [chance.choice([one for one in READERS if (one not in OF_VALUES) == rich])]


def alone(seed: int, form: str, folder: Path) -> Verdict:
    """Write a case to one format, and judge it."""
    path = folder / f"x.{form}"
    known = several(random.Random(seed), form)
    if form != "cifar.bin":
        known = {"X": known["X"]}
    try:
        known = written(known, path)
    except (WouldLose, UsageError, Unsupported):
        return Verdict([form], True, [], Counter())
    return judge(known, path, [form])


# --- the way --------------------------------------------------------------------------------------


def form_of(path: Path) -> tuple[str, str]:
    """The number of a file and its format."""
    number, _, form = path.name.partition(".")
    return number, form


def asked(target: Path) -> dict[str, Any]:
    """The options that a destination needs."""
    form = form_of(target)[1]
    return {**LOSSY.get(form, {}), **TO.get(form, {})}


def columns(path: Path | str) -> dict[str, Any]:
    """The options that reading a table needs which does not say what its columns are."""
    file = Path(str(path).partition("#")[0])
    if file.suffix != ".csv":
        return {}
    header = file.read_text(encoding="utf-8").partition("\n")[0]
    axes = axes_of_table(header.replace('"', "").split(","))
    chosen = {"axes": ",".join(axes)} if axes else {"layout": "columns"}
    return {"in_opts": {**chosen, "header": "yes"}}


def reading(path: Path | str, known: Known) -> dict[str, Any]:
    """The options that reading a file needs: those of plain bytes, and of tables."""
    if isinstance(path, str) or form_of(path)[1] != RAW:
        return columns(path)
    shape = ",".join(map(str, known.values.shape))
    return {"from_": RAW, "in_opts": {"dtype": known.values.dtype.str, "shape": shape}}


def written(known: dict[str, Known], path: Path) -> dict[str, Known]:
    if form_of(path)[1] == RAW:
        one = known["X"]
        one.values.tofile(path)
        return {"X": one.bare()}
    arrays = {name: array_of(one, name) for name, one in known.items()}
    many = form_of(path)[1] in MANY
    return told(known, raconvert.write(path, arrays if many else arrays["X"], **asked(path)))


def step(
    chance: random.Random, known: dict[str, Known], path: Path, target: Path
) -> tuple[dict[str, Known], str]:
    """Convert one file into the next, in a way that is drawn; what is known of the result."""
    to_many = form_of(target)[1] in MANY
    if len(known) > 1 and (not to_many or chance.random() < 0.3):
        name = chance.choice(list(known))
        known = {name: known[name]}
    if len(known) > 1:
        way = chance.choice([*WAYS_OF_MANY, *WAYS_OF_PARTS])
        if way in WAYS_OF_PARTS:
            return parts(chance, way, known, path, target), f"({way} {len(known)})"
        return WAYS_OF_MANY[way](known, path, target), f"({way} {len(known)})"
    [(name, one)] = known.items()
    if form_of(path)[1] in LOSSY:
        one = replace(one, values=READERS[form_of(path)[1]](path, name).values)
    single = form_of(path)[1] not in MANY
    source: Any = path if single else f"{path}#{name}"
    way = chance.choice(["plain", "written", "xarray", *WAYS_OF_ONE])
    if way in ("written", "xarray"):
        return _write_one(name, one, source, target, as_xarray=way == "xarray"), f"({way})"
    options: dict[str, Any] = {}
    reads = reading(path, one)
    fits = single if way == "stacked" else way in WAYS_OF_ONE
    if fits and (way not in ("moved", "cut") or _is_whole(one, source, name)):
        one, options = WAYS_OF_ONE[way](chance, one)
    if options.get("stack"):
        source = [path, path]
    word: Any = target
    if to_many and form_of(target)[1] not in HOLDS and chance.random() < 0.5:
        word = f"{target}#{name}"
    elif to_many:
        options["name"] = name
    how = f"({way})" if options.keys() - {"name"} else "(plain)"
    options |= reads | asked(target)
    return told({name: one}, raconvert.convert(source, word, index_order="C", **options)), how


def _is_whole(known: Known, source: Any, name: str) -> bool:
    """False where a format that has no vectors made a matrix of one, and said so."""
    if form_of(Path(source))[1] == RAW:
        return True
    with raconvert.open(source, index_order="C", **columns(source)) as opened:
        array = opened[name] if isinstance(opened, Bundle) else opened
        return bool(array.shape == known.values.shape)


def _write_one(
    name: str, one: Known, source: Any, target: Path, *, as_xarray: bool
) -> dict[str, Known]:
    """Read the array, and write it, or what xarray has of it."""
    reads = reading(source, one)
    with raconvert.open(source, index_order="C", **reads) as opened:
        array = opened[name] if isinstance(opened, Bundle) else opened
        if as_xarray:  # whose coordinates need a spacing, as `to_xarray` says
            gone = {("origin", key) for key in one.ids if ("spacing", key) in one.named}
            known = {name: replace(one, decoded=True, named=one.named | gone)}
            named = array.to_xarray().rename(name)
            return told(known, raconvert.write(target, named, **asked(target)))
        made_of = array.replace(name=name)
        arrays: Any = {name: made_of} if form_of(target)[1] in MANY else made_of
        return told({name: one}, raconvert.write(target, arrays, **asked(target)))


Options = tuple[Known, dict[str, Any]]


def _cast_one(chance: random.Random, one: Known) -> Options:
    if one.values.dtype.kind not in "iufb":
        return one, {}
    return one.cast("f8"), {"dtype": "float64"}


def _moved(chance: random.Random, one: Known) -> Options:
    rank = one.values.ndim
    order = tuple(chance.sample(range(rank), rank))
    return (one.moved(order), {"axes": ",".join(map(str, order))}) if rank > 1 else (one, {})


def _cut(chance: random.Random, one: Known) -> Options:
    key = tuple(_part(chance, n) for n in one.values.shape)
    if not key:
        return one, {}
    if all(isinstance(part, int) for part in key):
        key = (slice(None), *key[1:])
    return one.cut(key), {"slice": ",".join(_spelled(part) for part in key)}


def _stacked(chance: random.Random, one: Known) -> Options:
    return (one.stacked(2), {"stack": True}) if one.values.ndim < 4 else (one, {})


def _unscaled_one(chance: random.Random, one: Known) -> Options:
    return _unscaled(one), {"unscale": True}


WAYS_OF_ONE = {
    "cast": _cast_one, "moved": _moved, "cut": _cut, "stacked": _stacked,
    "unscaled": _unscaled_one,
}  # fmt: skip


def _unscaled(known: Known) -> Known:
    """What --unscale makes of an array whose scale has not been lost on the way."""
    gone = any(("attribute", key) in known.named for key in known.scale)
    return known if gone else known.unscaled()


def _all(known: dict[str, Known], path: Path, target: Path, **options: Any) -> dict[str, Known]:
    options |= asked(target) | columns(path)
    report = raconvert.convert(path, target, index_order="C", arrays=tuple(known), **options)
    return told(known, report)


def _cast(known: dict[str, Known], path: Path, target: Path) -> dict[str, Known]:
    if any(one.values.dtype.kind not in "iufb" for one in known.values()):
        return _all(known, path, target)
    known = {name: one.cast("f8") for name, one in known.items()}
    return _all(known, path, target, dtype="float64")


def _unscale(known: dict[str, Known], path: Path, target: Path) -> dict[str, Known]:
    known = {name: _unscaled(one) for name, one in known.items()}
    return _all(known, path, target, unscale=True)


def _write(known: dict[str, Known], path: Path, target: Path) -> dict[str, Known]:
    with raconvert.open(path, index_order="C", **columns(path)) as opened:
        arrays = {name: opened[name] for name in known}
        return told(known, raconvert.write(target, arrays, **asked(target)))


def _xarray(known: dict[str, Known], path: Path, target: Path) -> dict[str, Known]:
    known = {name: replace(one, decoded=True) for name, one in known.items()}
    with raconvert.open(path, index_order="C", **columns(path)) as opened:
        dataset = opened.to_xarray()[list(known)]
        return told(known, raconvert.write(target, dataset, **asked(target)))


def _added(known: dict[str, Known], path: Path, target: Path) -> dict[str, Known]:
    """One array after the other into the container."""
    found: dict[str, Known] = {}
    for name, one in known.items():
        word = f"{target}#{name}"
        try:
            options = asked(target) | columns(path)
            report = raconvert.convert(f"{path}#{name}", word, index_order="C", **options)
        except (WouldLose, UsageError, Unsupported):
            if not found:
                raise
            break  # the others are as they were
        found = told({**found, name: one}, report)
    return found


WAYS_OF_MANY = {
    "plain": _all, "cast": _cast, "unscaled": _unscale, "written": _write, "xarray": _xarray,
    "added": _added,
}  # fmt: skip


def parts(
    chance: random.Random, way: str, known: dict[str, Known], path: Path, target: Path
) -> dict[str, Known]:
    """Several arrays, moved or cut alike: those of one rank."""
    rank = chance.choice(list(known.values())).values.ndim
    known = {name: one for name, one in known.items() if one.values.ndim == rank}
    if not all(_is_whole(one, f"{path}#{name}", name) for name, one in known.items()):
        return _all(known, path, target)
    found, options = WAYS_OF_PARTS[way](chance, known)
    return _all(found, path, target, **options)


Parts = tuple[dict[str, Known], dict[str, Any]]


def _moved_alike(chance: random.Random, known: dict[str, Known]) -> Parts:
    [rank] = {one.values.ndim for one in known.values()}
    order = tuple(chance.sample(range(rank), rank))
    moved = {name: one.moved(order) for name, one in known.items()}
    return moved, {"axes": ",".join(map(str, order))}


def _cut_alike(chance: random.Random, known: dict[str, Known]) -> Parts:
    """The same part of each, at the first axes or the last ones."""
    shapes = [one.values.shape for one in known.values()]
    [rank] = set(map(len, shapes))
    count = chance.randint(1, rank)
    at_end = chance.random() < 0.5
    cut = slice(-count, None) if at_end else slice(0, count)
    together = zip(*(shape[cut] for shape in shapes), strict=True)
    parts = tuple(_part(chance, min(lengths)) for lengths in together)
    if count == rank and all(isinstance(part, int) for part in parts):
        parts = (slice(None), *parts[1:])
    rest = (slice(None),) * (rank - count)
    key = (*rest, *parts) if at_end else (*parts, *rest)
    words = [_spelled(part) for part in parts]
    words = ["...", *words] if at_end else [*words, "..."]
    return {name: one.cut(key) for name, one in known.items()}, {"slice": ",".join(words)}


WAYS_OF_PARTS = {"moved": _moved_alike, "cut": _cut_alike}


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


# --- what a report names --------------------------------------------------------------------------


def told(known: dict[str, Known], report: Any) -> dict[str, Known]:
    """What is known, with the facts that a report says are gone: of that array, that field."""
    found = {}
    for name, one in known.items():
        told_of = [
            fit
            for fit in (*report.equivalent, *report.allowed)
            if fit.array == name or len(known) == 1
        ]
        named = {fact for fit in told_of for fact in facts_in(fit.reason, one)}
        one = replace(one, named=one.named | named)  # noqa: PLW2901
        for fit in told_of:  # numbers of axes in a report are those of before
            if fit.reason.endswith("read as uint8 of 0 and 255"):
                one = replace(one, values=one.values.astype("u1") * 255)  # noqa: PLW2901
            elif fit.reason.startswith("axes of length 1 are added"):
                one = one.with_three_axes()  # noqa: PLW2901
            elif fit.reason == "becomes an image of one row":
                one = one.with_one_row()  # noqa: PLW2901
        found[name] = one
    return found


def facts_in(reason: str, known: Known) -> Iterator[tuple[str, Any]]:
    """The facts that a reason of a `Fit` names."""
    _, _, listed = reason.partition(": ")
    for term in (reason, *OTHER_TERM.split(listed)):
        for pattern, kind in TERMS:
            if not (match := pattern.match(term)):
                continue
            if kind == "axes":
                words = [part.split()[0] for part in match[2].split(", ")]
                words += ["spacing", "origin"] * ("not" in words)  # not spatial
                yield from itertools.product(words, axes_in(match[1], known))
            elif kind == "an axis":
                pairs = zip(known.axes, known.ids, strict=True)
                yield from (("name", key) for axis, key in pairs if axis.name == match[1])
            elif kind == "attributes":
                yield from (("attribute", key) for key in match[1].split(", "))
            else:
                yield (kind if kind == "space" else match[1], None)
            break


def axes_in(text: str, known: Known) -> list[int]:
    """The ids of the axes that a report names by number, with or without their names.

    An axis that a format has added, for real and imaginary parts, has none.
    """
    if text == "every axis":
        return list(known.ids)
    numbers = re.findall(r"[0-9]+", re.sub(r"'[^']*'", "", text))
    places = range(int(numbers[0]), int(numbers[1]) + 1) if " to " in text else map(int, numbers)
    return [known.ids[place] for place in places if place < len(known.ids)]


# --- the judgement --------------------------------------------------------------------------------


class Judge:
    """Holds what others see of an array against what is known, fact by fact."""

    def __init__(self, known: Known, name: str, form: str) -> None:
        self.known = known
        self.name = name
        self.form = form
        self.faults: list[str] = []
        self.outcomes: Counter[tuple[str, str, str]] = Counter()

    def check(self, fact: str, key: tuple[str, Any], wanted: Any, others: Any, own: Any) -> None:
        """Judge one fact: as wanted, as others see it, as raconvert reads it."""
        if wanted is None:
            letter = fact == "name" and own in OF_OME
            # In a Dataset, what one array says of a dimension is of all.
            shared = self.known.decoded
            if own and not (letter or shared) and key not in self.known.named:
                self.faults.append(f"{self.name}: {fact} {key[1:]}: nothing is read as {own!r:.60}")
            return
        if others is not None and _alike(wanted, others):
            outcome = SEEN
        elif others is None and _alike(wanted, own):
            outcome = KEPT
        elif key in self.known.named:
            outcome = NAMED
        else:
            outcome = SILENT
            self.faults.append(
                f"{self.name}: {fact} {key[1:]}: {wanted!r:.80} is seen as {others!r:.80}, "
                f"read as {own!r:.60}"
            )
        self.outcomes[self.form, fact, outcome] += 1

    def axes(self, seen: Seen, shape: tuple[int, ...], axes: Sequence[Any]) -> None:
        """Judge the facts of each axis."""
        known = self.known
        at_others = _found_at(known.values.shape, seen.values.shape)
        at_own = _found_at(known.values.shape, shape)
        for number, (axis, key) in enumerate(zip(known.axes, known.ids, strict=True)):
            length = known.values.shape[number]
            others = _facts_seen(seen.axes[at_others[number]]) if number in at_others else {}
            own = _facts_read(axes[at_own[number]], length) if number in at_own and axes else {}
            for fact in OF_AXES:
                if fact in ("spacing", "origin") and axis.direction is not None:
                    continue  # which positions are about
                wanted = getattr(axis, fact)
                if fact == "origin" and wanted == 0:
                    continue  # where the numbers of an axis without an origin begin
                wanted = list(wanted) if isinstance(wanted, tuple) else wanted
                self.check(fact, (fact, key), wanted, others.get(fact), own.get(fact))


def judge(known: dict[str, Known], path: Path, chain: list[str]) -> Verdict:
    """Judge what readers that are not ours see of a file, and what raconvert reads of it."""
    faults: list[str] = []
    outcomes: Counter[tuple[str, str, str]] = Counter()
    for name, one in known.items():
        found = Judge(one, name, chain[-1])
        with quiet():
            judge_array(found, path)
        faults += found.faults
        outcomes += found.outcomes
    return Verdict(chain, False, faults, outcomes)


def judge_array(found: Judge, path: Path) -> None:
    known, form = found.known, found.form
    seen = READERS[form](path, found.name)
    chosen = None if form not in MANY else found.name
    with raconvert.open(path, chosen, index_order="C", **columns(path)) as back:
        axes, meta, order, shape = back.axes, back.meta, back.index_order, back.shape
    if form in ("nrrd", "mha") and order == "F":  # their axes are only listed, here the other way
        seen = seen.reversed()
    meant = known.unscaled()  # which xarray gives, and a file may have without a scale
    if known.decoded and seen.physical is None and _same_values(meant.values, seen.values):
        found.known = known = meant
    same = _same_shape if form in LOSSY else _same_values
    if not same(known.values, seen.values):
        shapes = f"{known.values.shape} became {seen.values.shape}"
        found.faults.append(f"{found.name}: values: {shapes}, or other numbers")
        return
    found.axes(seen, shape, axes)
    positions = known.positions()
    if positions and known.values.size:
        others = seen.positions and {index: seen.positions(index) for index in positions}
        fits = len(axes) == len(known.axes)
        own = replace(known, axes=axes, space=meta.space).positions() if fits else None
        found.check("positions", ("space", None), positions, others, own)
    for fact in ("description", "units"):
        name = "array units" if fact == "units" else fact
        wanted, own = getattr(known, fact), getattr(meta, fact)
        found.check(name, (fact, None), wanted, seen.whole.get(fact), own)
    for key, value in known.attributes.items():
        scales = key in known.scale
        if scales and seen.physical is not None:
            wanted, others, own = known.physical(), seen.physical, None
        else:
            wanted, others, own = [value], _one(seen.attributes, key), _one(meta.attributes, key)
        fact = "scale" if key in OF_SCALE else "attributes"
        found.check(fact, ("attribute", key), wanted, others, own)


def _one(attributes: Any, key: str) -> list[Any] | None:
    return [attributes[key]] if key in attributes else None


def _found_at(wanted: tuple[int, ...], got: tuple[int, ...]) -> dict[int, int]:
    """Where each axis is among those of a file, which may have more, or fewer, of length one."""
    count = min(len(wanted), len(got))
    for ours in itertools.combinations(range(len(wanted)), count):
        for theirs in itertools.combinations(range(len(got)), count):
            if all(wanted[a] == got[b] for a, b in zip(ours, theirs, strict=True)):
                return dict(zip(ours, theirs, strict=True))
    return {}


def _facts_seen(axis: dict[str, Any]) -> dict[str, Any]:
    """The facts of an axis as a reader sees them; spacing and origin of numbers along it."""
    found = {key: axis[key] for key in OF_AXES if key in axis}
    places = axis.get("places")
    if places and isinstance(places[0], int | float) and not isinstance(places[0], bool):
        found["origin"] = places[0]
        found["spacing"] = places[1] - places[0] if len(places) > 1 else None
    elif places is not None:
        found["labels"] = list(places)
    return found


def _facts_read(axis: Any, length: int) -> dict[str, Any]:
    """The facts of an axis as raconvert reads them."""
    found = {fact: getattr(axis, fact) for fact in OF_AXES}
    found["labels"] = None if axis.labels is None else list(axis.labels)
    return found


def _same_shape(wanted: np.ndarray, got: np.ndarray) -> bool:
    return np.squeeze(wanted).shape == np.squeeze(got).shape


def _same_values(wanted: np.ndarray, got: np.ndarray) -> bool:
    """Each value is there, in whatever type and with axes of length one that a format needs."""
    wanted, got = np.squeeze(wanted), np.squeeze(got)
    if wanted.dtype.kind == "c" and got.dtype.kind == "f" and got.shape[-1:] == (2,):
        got = got[..., 0] + 1j * got[..., 1]
    if got.dtype.names:
        got = got[got.dtype.names[0]] + 1j * got[got.dtype.names[1]]
    return wanted.shape == got.shape and np.array_equal(
        wanted.astype("c16"), got.astype("c16"), equal_nan=True
    )


def _alike(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, np.ndarray):
        wanted, got = np.squeeze(wanted), np.squeeze(got)
        return wanted.shape == got.shape and np.allclose(wanted, got, rtol=1e-6, equal_nan=True)
    if isinstance(wanted, dict) and wanted and all(isinstance(key, tuple) for key in wanted):
        return isinstance(got, dict) and all(
            index in got and len(at) <= len(got[index])
            and np.allclose(at, np.asarray(got[index])[: len(at)], rtol=1e-5, atol=1e-4)
            for index, at in wanted.items()
        )  # fmt: skip
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(_alike, wanted, got))
    if isinstance(wanted, float) and isinstance(got, int | float):
        return math.isclose(wanted, got, rel_tol=1e-6, abs_tol=1e-9)
    return bool(wanted == got)
