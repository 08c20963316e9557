"""Series: the frames of each array, their order, and the grid of their positions.

The frames of a series are those of one `SeriesInstanceUID` that have the same form, orientation,
pixel spacing, frame of reference and table of the modality; a series with several of these becomes
an array of each. They are sorted by their positions along the normal of their planes, never by name
or number.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import combinations, pairwise
from math import hypot

from raconvert.declared import Record
from raconvert.errors import Unsupported

from .frames import GRADIENT_KEY, KEYS, KIND_KEY, TIMES, cross

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .form import Form
    from .frames import File, Frame, Vector

# Tolerances: of positions as a part of the distance of pixels, or of slices.
SAME_POSITION = 0.01  # of frames at one position
UNEVEN = 0.01  # of slices on an even grid
NOTED = 1e-3  # of slices on an even grid, without a note
SAME_DIRECTION = 1e-4  # of direction cosines, and of spacings as a part of them
ORIENTATIONS = 64  # orientations of a series that are compared with each other
VOLUME = "volume"  # the name of an axis that only the numbers of the images distinguish
VOLUMES = "`--in-opt grid=volumes` takes them in the order of their InstanceNumber"
WHOLE = "`--in-opt grid=any` stacks them as they are, without their place"


class Part(Record):
    """Frames of one form, orientation and spacing of a series."""

    form: Form
    frames: list[Frame]
    files: list[File]  # all files of the source: `Frame.file` is an index of them


class Grid(Record):
    """The order of the frames of an array: along time, if `times`, then along the slices.

    `step` leads from one slice to the next. `key` is the name of the key that distinguishes the
    times, `values` its values. `problem` is the reason why the frames do not make a grid.
    """

    frames: list[Frame]
    times: int
    slices: int
    step: Vector | None
    key: str
    values: list[Any]
    notes: list[str]
    problem: Unsupported | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the axes before those of a frame."""
        if self.times > 1:
            return self.times, self.slices
        return (self.slices,) if self.slices > 1 else ()


# The frames of each array ------------------------------------------------------------------------


def parts_of(files: Sequence[File]) -> dict[str, list[Part]]:
    """The parts of each series, by its UID, in the order in which the files name them."""
    shared = [*files]  # one list for all parts
    series: dict[str, dict[Any, Part]] = {}
    planes: dict[str, list[tuple[float, ...]]] = {}
    for file in files:
        parts = series.setdefault(file.series, {})
        seen = planes.setdefault(file.series, [])
        for frame in file.frames:
            key = file.form, file.world, file.lut, frame.stack, *_plane(frame, seen)
            part = parts.get(key)
            if part is None:
                part = parts[key] = Part(file.form, [], shared)
            part.frames.append(frame)
    return {uid: [*parts.values()] for uid, parts in series.items()}


def _plane(frame: Frame, seen: list[tuple[float, ...]]) -> tuple[Any, ...]:
    """Orientation and spacing of a frame, or nearly equal ones that were `seen` before."""
    if frame.directions is None or frame.position is None:
        return (None,)
    spacing = frame.spacing or (0.0, 0.0)
    own = (*frame.directions[0], *frame.directions[1], *spacing)
    near = (*[SAME_DIRECTION] * 6, *(SAME_DIRECTION * length for length in spacing))
    for other in seen[:ORIENTATIONS]:
        if all(abs(a - b) <= most for a, b, most in zip(own, other, near, strict=True)):
            return other
    seen.append(own)
    return own


# Their order -------------------------------------------------------------------------------------


def grid_of(part: Part, rule: str) -> Grid:
    """The order of the frames of an array by a rule, ``even``, ``volumes`` or ``any``.

    By ``volumes``, numbers of images may distinguish frames of one position; by ``any``, frames
    need not be on a grid. `Grid.problem` is the reason why the frames do not make one.
    """
    frames = part.frames
    if len(frames) == 1:
        return Grid(frames, 1, 1, _alone(frames[0]), "", [], [])
    normal = frames[0].normal
    if normal is None or any(frame.position is None for frame in frames):
        return _by_number(frames, part, even=rule != "any")
    groups = _by_position(frames, normal)
    grid = _timed(groups, part, numbered=rule == "volumes")
    problem = grid.problem
    if problem is None or rule != "any":
        return grid
    ordered = [frame for _, group in groups for frame in group]
    note = f"{problem.what}: stacked by position, without an origin"
    return Grid(ordered, 1, len(ordered), None, "", [], [note])


def _alone(frame: Frame) -> Vector | None:
    """The step from a single slice to the next one, along its normal; None if it is unknown."""
    normal = frame.normal
    if normal is None or frame.position is None or frame.between is None:
        return None
    return tuple(frame.between * cosine for cosine in normal)  # type: ignore[return-value]


def _by_number(frames: list[Frame], part: Part, *, even: bool) -> Grid:
    """The order of frames without positions: as in their file if it is one, else by number."""
    if len({frame.file for frame in frames}) == 1:
        return Grid(frames, 1, len(frames), None, "", [], [])
    numbers = [frame.instance for frame in frames]
    sound = None not in numbers and len(set(numbers)) == len({frame.file for frame in frames})
    ordered = sorted(frames, key=lambda frame: (frame.instance or 0, frame.file, frame.number))
    note = "files have no positions: in the order of their InstanceNumber"
    if sound:
        return Grid(ordered, 1, len(frames), None, "", [], [note])
    what = "files have no positions, and no InstanceNumber of their own each"
    problem = Unsupported(what, path=_path(part, frames[0]), remedy=_in_order(WHOLE))
    if even:
        return Grid(frames, 1, len(frames), None, "", [], [], problem)
    return Grid(frames, 1, len(frames), None, "", [], [f"{what}: in the order given"])


def _in_order(remedy: str) -> str:
    """`WHOLE` for frames without positions."""
    return remedy.replace("as they are, without their place", "in the order given")


def _path(part: Part, frame: Frame) -> str:
    return part.files[frame.file].header.path


def _by_position(frames: list[Frame], normal: Vector) -> list[tuple[float, list[Frame]]]:
    """The positions along the normal in order, each with its frames."""
    near = SAME_POSITION * min(frames[0].spacing or (1.0,))
    along = sorted(
        ((_dot(frame.position, normal), n) for n, frame in enumerate(frames)),
    )
    groups: list[tuple[float, list[Frame]]] = []
    for distance, number in along:
        if not groups or distance - groups[-1][0] > near:
            groups.append((distance, []))
        groups[-1][1].append(frames[number])
    return groups


def _dot(a: Any, b: Vector) -> float:
    return float(sum(x * y for x, y in zip(a, b, strict=True)))


def _between(a: Any, b: Any) -> Vector:
    return tuple(y - x for x, y in zip(a, b, strict=True))


def _timed(groups: list[tuple[float, list[Frame]]], part: Part, *, numbered: bool) -> Grid:
    """The grid of frames by position: one at each, or equally many times at each."""
    problem = _side_by_side(groups, part)
    counts = Counter(len(group) for _, group in groups)
    times = counts.most_common(1)[0][0]
    if problem is None and len(counts) > 1:
        odd = next(group for _, group in groups if len(group) != times)
        problem = Unsupported(
            f"slices are not as many at each position: {len(odd)} at that of this file, "
            f"{times} at most others",
            path=_path(part, odd[0]), remedy=WHOLE,
        )  # fmt: skip
    key = ""
    values: list[Any] = []
    by_time = [[group[0] for _, group in groups]]
    if problem is None and times > 1:
        by_number = _numbered(groups)
        timing = _times(groups) or (by_number if numbered else None)
        if timing is None:
            problem = Unsupported(
                f"{times} slices at each position, and nothing that tells them apart in one way",
                path=_path(part, groups[0][1][1]),
                remedy=f"{VOLUMES}; {WHOLE}" if by_number else WHOLE,
            )  # fmt: skip
        else:
            key, values, by_time = timing
    step, notes = None, list[str]()
    if problem is None:
        step, notes, problem = _step([*by_time[0]], part)
    if key == VOLUME:
        notes.append(f"{times} slices at each position, in the order of their InstanceNumber")
    frames = [frame for of_time in by_time for frame in of_time]
    if problem is not None:
        frames = [frame for _, group in groups for frame in group]
        return Grid(frames, 1, len(frames), None, "", [], [], problem)
    return Grid(frames, times, len(groups), step, key, values, notes)


def _side_by_side(groups: list[tuple[float, list[Frame]]], part: Part) -> Unsupported | None:
    """The error for frames that are side by side in one plane, else None."""
    for _, group in groups:
        near = SAME_POSITION * min(group[0].spacing or (1.0,)) * 2
        for frame in group[1:]:
            if hypot(*_between(group[0].position, frame.position)) > near:
                return Unsupported(
                    "slices of one plane lie side by side in it",
                    path=_path(part, frame), remedy=WHOLE,
                )  # fmt: skip
    return None


def _times(
    groups: list[tuple[float, list[Frame]]],
) -> tuple[str, list[Any], list[list[Frame]]] | None:
    """Name and values of the key that distinguishes frames of one position, and the frames of each.

    Tried in order: single keys, b-value with gradient, the clock, any pair of keys. None if no key
    does.
    """
    names = [*dict.fromkeys(name for name, *_ in KEYS), KIND_KEY]
    present = [name for name in names if _all_have(groups, name)]
    diffusion = [("b-value", GRADIENT_KEY)] if _all_have(groups, GRADIENT_KEY) else []
    for chosen in (*((name,) for name in present), *diffusion):
        if timing := _distinguished_by(groups, chosen):
            return timing
    for name in dict.fromkeys(name for name, *_ in TIMES):
        if not _all_have(groups, name):
            continue
        ordered = _ordered(groups, partial(_key, name))
        ranges = [[frame.keys[name] for frame in frames] for frames in ordered]
        if all(max(a) < min(b) for a, b in pairwise(ranges)):
            return name, [seconds[0] for seconds in ranges], ordered
    pairs = (_distinguished_by(groups, pair) for pair in combinations(present, 2))
    return next(filter(None, pairs), None)


def _numbered(
    groups: list[tuple[float, list[Frame]]],
) -> tuple[str, list[Any], list[list[Frame]]] | None:
    """The frames of each time by the numbers of their images.

    None unless the numbers of each time, or of each position, follow those of another.
    """
    if any(frame.instance is None for _, group in groups for frame in group):
        return None
    ordered = _ordered(groups, lambda frame: frame.instance)
    for sets in (ordered, [group for _, group in groups]):
        numbers = sorted(sorted(frame.instance or 0 for frame in frames) for frames in sets)
        apart = all(a[-1] < b[0] for a, b in pairwise(numbers))
        if apart and all(a < b for of_set in numbers for a, b in pairwise(of_set)):
            return VOLUME, [], ordered
    return None


def _key(name: str, frame: Frame) -> Any:
    return frame.keys[name]


def _all_have(groups: list[tuple[float, list[Frame]]], name: str) -> bool:
    return all(name in frame.keys for _, group in groups for frame in group)


def _distinguished_by(
    groups: list[tuple[float, list[Frame]]], names: tuple[str, ...]
) -> tuple[str, list[Any], list[list[Frame]]] | None:
    """Name, values and frames of each time, if these keys distinguish all frames of a position.

    Times are ordered by the numbers among the values, then by first occurrence. Else None.
    """

    def values_of(frame: Frame) -> tuple[Any, ...]:
        return tuple(frame.keys[name] for name in names)

    def order_of(frame: Frame) -> tuple[float, ...]:
        values = values_of(frame)
        return *(value for value in values if not isinstance(value, str | tuple)), ranks[values]

    frames = sorted((frame for _, group in groups for frame in group), key=_in_series)
    ranks = {values: n for n, values in enumerate(dict.fromkeys(map(values_of, frames)))}
    first = {values_of(frame) for frame in groups[0][1]}
    if len(first) < len(groups[0][1]):
        return None
    if any({values_of(frame) for frame in group} != first for _, group in groups):
        return None
    ordered = _ordered(groups, order_of)
    values = [values_of(frames[0]) for frames in ordered]
    single = [value[0] for value in values]
    return " and ".join(names), values if len(names) > 1 else single, ordered


def _in_series(frame: Frame) -> tuple[float, int, int]:
    return frame.instance or 0, frame.file, frame.number


def _ordered(
    groups: list[tuple[float, list[Frame]]], order_of: Callable[[Frame], Any]
) -> list[list[Frame]]:
    """The frames of each time, in order of the positions; `order_of` orders the times."""
    columns = [sorted(group, key=order_of) for _, group in groups]
    return [list(frames) for frames in zip(*columns, strict=True)]


def _step(frames: list[Frame], part: Part) -> tuple[Vector | None, list[str], Unsupported | None]:
    """The step from slice to slice and notes on it, or the error for uneven slices."""
    if len(frames) == 1:
        return _alone(frames[0]), [], None
    first, last = frames[0].position, frames[-1].position
    count = len(frames) - 1
    whole = _between(first, last)
    step: Vector = tuple(part / count for part in whole)  # type: ignore[assignment]
    length = hypot(*step)
    distances = [  # from the even grid, in mm
        hypot(*(p - (o + n * s) for p, o, s in zip(frame.position, first, step, strict=True)))  # type: ignore[arg-type]
        for n, frame in enumerate(frames)
    ]
    if max(distances) > UNEVEN * length:
        return None, [], _gap(frames, part)
    notes = []
    if max(distances) > NOTED * length:
        notes.append(f"slices are up to {max(distances):.3g} mm off an even spacing")
    normal = frames[0].normal
    along: Vector = tuple(part / length for part in step)  # type: ignore[assignment]
    if normal is not None and hypot(*cross(along, normal)) > UNEVEN:
        notes.append("slices are not above each other (the gantry was tilted): the axes are skewed")
    return step, notes, None


def _gap(frames: list[Frame], part: Part) -> Unsupported:
    """The error for slices that are not evenly spaced, which names the most unusual gap."""
    gaps = [hypot(*_between(a.position, b.position)) for a, b in pairwise(frames)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    usual = sorted(gaps)[len(gaps) // 2]
    narrow = min(range(len(gaps)), key=gaps.__getitem__)
    if gaps[widest] - usual < usual - gaps[narrow]:
        widest = narrow
    return Unsupported(
        f"slices are not evenly spaced: {gaps[widest]:.6g} mm behind this one, {usual:.6g} mm "
        f"elsewhere",
        path=_path(part, frames[widest]),
        remedy=WHOLE,
    )


# Their names -------------------------------------------------------------------------------------


def names_of(series: Iterable[list[Part]], numbers: Iterable[int | None]) -> list[str]:
    """The names of the arrays: modality and number of the series, unique among them.

    Further series of one number are numbered behind a dot, the parts of a series behind a hyphen.
    """
    names: list[str] = []
    seen: Counter[str] = Counter()
    for parts, number in zip(series, numbers, strict=True):
        modality = parts[0].files[parts[0].frames[0].file].modality
        word = modality if modality.isascii() and modality.isalnum() else "series"
        base = word if number is None else f"{word}_{number}"
        seen[base] += 1
        if seen[base] > 1:
            base += f".{seen[base]}"
        names += [base] if len(parts) == 1 else [f"{base}-{n + 1}" for n in range(len(parts))]
    return names
