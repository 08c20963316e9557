"""Translation of metadata into CF and netCDF, which files can hold: coordinates, dimensions.

Specification: NetCDF Climate and Forecast (CF) Metadata Conventions: 4.4 "Time Coordinate", dates
as numbers, ``hours since 2020-01-01``; 5 "Coordinate Systems", the attribute ``coordinates``;
appendix A "Attributes", those that name other variables.

A dimension of netCDF has a name and a length, and arrays share it. The array of one axis that has
the name of the dimension is its coordinate. If an axis has values along it and no array is its
coordinate, the writer makes one of these values.
"""

from __future__ import annotations

import re

from raconvert.arrays.metadata import Axis
from raconvert.arrays.space import coordinates
from raconvert.errors import RaconvertError, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array
    from raconvert.arrays.dtypes import Element
    from raconvert.arrays.metadata import Metadata
    from raconvert.files.limits import Limits

_NANOSECONDS = {
    "days": 86_400_000_000_000, "hours": 3_600_000_000_000, "minutes": 60_000_000_000,
    "seconds": 1_000_000_000, "milliseconds": 1_000_000, "microseconds": 1000, "nanoseconds": 1,
}  # fmt: skip
_UNITS = re.compile(r"(\w+?)s? since (\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?))?")
CALENDAR = "calendar"  # the attribute of a coordinate of times that names it
_CALENDARS = {"standard", "gregorian", "proleptic_gregorian"}
# Before this day the default calendar of CF is the Julian one.
_GREGORIAN = "1582-10-15"

# Attributes with the names of other variables, separated by blanks. Words with a colon at their end
# are not names but terms, except in `grid_mapping`.
_NAMING = (
    "ancillary_variables", "bounds", "cell_measures", "climatology", "coordinates", "formula_terms",
    "geometry", "grid_mapping", "interior_ring", "node_coordinates", "node_count",
    "part_node_count",
)  # fmt: skip


# Coordinates --------------------------------------------------------------------------------------


def facts_of(coordinate: Array, limits: Limits) -> dict[str, Any]:
    """Return spacing and origin if the values of a coordinate are exactly regular, else labels.

    Empty for values that are neither numbers nor texts, or too many. Raises what reading them
    raises.
    """
    import numpy as np

    from raconvert.arrays.blocks import as_ndarray

    numeric = coordinate.element.kind in ("int", "uint", "float")
    text = coordinate.element.kind == "user" and str(coordinate.element.descr)[1:2] in ("S", "U")
    if coordinate.ndim != 1 or not 1 <= coordinate.count <= limits.scale_values:
        return {}
    if not (numeric or text):
        return {}
    values = as_ndarray(coordinate)
    if text:
        return _text_labels(values, limits)
    if len(values) > 1:
        numbers = values.astype(np.float64)
        origin, spacing = float(numbers[0]), float(numbers[1]) - float(numbers[0])
        with np.errstate(all="ignore"):
            regular = np.array_equal(numbers, origin + spacing * np.arange(len(values)))
        if regular and spacing and np.isfinite(spacing):
            return {"spacing": spacing, "origin": origin}
    return {"labels": values.tolist()} if len(values) <= limits.axis_labels else {}


def _text_labels(values: np.ndarray[Any, Any], limits: Limits) -> dict[str, Any]:
    if len(values) > limits.axis_labels:
        return {}
    if values.dtype.kind == "U":
        return {"labels": values.tolist()}
    try:
        return {"labels": [value.rstrip(b" ").decode() for value in values.tolist()]}
    except UnicodeDecodeError:
        return {}


class Coordinates:
    """The arrays of a file that are coordinates: they have the values along the axes of others.

    A coordinate has one axis, of its own name, and lies in the group of the other array or around
    it. `limits` are those of the source of the values.
    """

    def __init__(self, arrays: Sequence[Array], keys: Sequence[str], limits: Limits) -> None:
        self._limits = limits
        self._arrays: dict[str, Array] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        for array, key in zip(arrays, keys, strict=True):
            axes = array.meta.axes if array.problem is None and len(array.dims) == 1 else ()
            if axes and axes[0].name == key.rpartition("/")[2]:
                self._arrays[key] = array

    def at(self, key: str, name: str, length: int) -> str | None:
        """Return the key of the coordinate along an axis called `name` of array `key`, or None."""
        above = key if name and "/" not in name and key not in self._arrays else ""
        while above:
            above = above.rpartition("/")[0]
            path = f"{above}/{name}" if above else name
            if path in self._arrays and self._arrays[path].dims == (length,):
                return path
        return None

    def calendar(self, key: str, axis: Axis, length: int, taken: Container[str]) -> str:
        """Return an unusual calendar of the coordinate of an axis, if that is not `taken`."""
        path = self.at(key, axis.name or "", length)
        if path is None or path in taken:
            return ""
        said = self._arrays[path].meta.attributes.get(CALENDAR)
        return said if isinstance(said, str) and said.lower() not in _CALENDARS else ""

    def along(self, key: str, axis: Axis, length: int) -> dict[str, Any]:
        """Return the fields of an `Axis` by the coordinate along an axis of array `key`.

        Empty if the axis has no coordinate; only units if its values cannot be read.
        """
        path = self.at(key, axis.name or "", length)
        if path is None:
            return {}
        if path not in self._facts:
            self._facts[path] = _known(self._arrays[path], self._limits)
        return self._facts[path]


def _known(coordinate: Array, limits: Limits) -> dict[str, Any]:
    units = {"units": coordinate.meta.units} if coordinate.meta.units else {}
    try:
        return {**facts_of(coordinate, limits), **units}
    except (RaconvertError, OSError):  # raised again when the values are asked for
        return units


_PLACES = ("spacing", "origin", "labels", "direction")


def filled(axis: Axis, facts: Mapping[str, Any]) -> Axis:
    """Return an axis with the facts of its coordinate, unless it has values of its own."""
    own = axis.to_dict()
    if not facts or any(field in own for field in _PLACES):
        return axis
    return axis.replace(**{**facts, **own})


def unsaid(axis: Axis, facts: Mapping[str, Any]) -> Axis:
    """Return an axis without the fields that `filled` restores from the facts of its coordinate."""
    own = axis.to_dict()
    rest = Axis(**{field: value for field, value in own.items() if not _is_same(field, own, facts)})
    restored = filled(rest, facts).to_dict()
    return rest if all(_is_same(field, own, restored) for field in own) else axis


def _is_same(field: str, fields: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if a field has the same value, of the same type, in another mapping."""
    return field in other and repr(fields[field]) == repr(other[field])


def named_by(array: Array, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (attribute, name) for each array that an attribute of another one names, as CF does.

    `names` are those of all arrays of the file. A name without a path is searched in the group of
    the array and in those around it.
    """
    for attribute in _NAMING:
        text = array.meta.attributes.get(attribute)
        for word in text.split() if isinstance(text, str) else ():
            name = _named(attribute, word, array.name, names)
            if name is not None and name != array.name:
                yield attribute, name


def _named(attribute: str, word: str, by: str, names: Container[str]) -> str | None:
    """Return the name that a word in an attribute of the array `by` stands for, or None."""
    if word.endswith(":") and attribute != "grid_mapping":
        return None
    name = word.rstrip(":")
    groups = by.split("/")[:-1] if not name.startswith("/") else []
    name = name.strip("/")
    paths = ("/".join([*groups[:depth], name]) for depth in range(len(groups), -1, -1))
    return next((path for path in paths if path in names), None)


def following(arrays: Sequence[Array], before: Sequence[tuple[str, str]]) -> list[Array]:
    """Return renamed arrays with the names of others in their attributes changed, too.

    `before` has the file of each array and its name in that. An array is searched in the same file,
    else in the others, if only one has the name. A word stays as it is if it leads to the array by
    the new names, too, or if the new name has blanks. Raises nothing.
    """
    new_names = _NewNames(arrays, before)
    renamed_arrays = []
    for array, (file, name) in zip(arrays, before, strict=True):
        changed = {}
        for attribute in _NAMING:
            text = array.meta.attributes.get(attribute)
            words = text.split() if isinstance(text, str) else []
            new = [new_names.word(attribute, word, array.name, file, name) for word in words]
            if new != words:
                changed[attribute] = " ".join(new)
        if changed:
            attributes = {**array.meta.attributes, **changed}
            array = array.replace(meta=array.meta.replace(attributes=attributes))  # noqa: PLW2901
        renamed_arrays.append(array)
    return renamed_arrays


class _NewNames:
    """The new names of arrays, by the names that they had in their files."""

    def __init__(self, arrays: Sequence[Array], before: Sequence[tuple[str, str]]) -> None:
        self._now = {array.name for array in arrays}
        pairs = [*zip(before, [array.name for array in arrays], strict=True)]
        files: dict[str, list[tuple[str, str]]] = {}
        for (file, name), now in pairs:
            files.setdefault(file, []).append((name, now))
        self._files = {file: _single(names) for file, names in files.items()}
        self._all = _single((name, now) for (_, name), now in pairs)

    def word(self, attribute: str, word: str, by: str, file: str, name: str) -> str:
        """Return the word to write in an attribute of the array `by`, called `name` in its file."""
        meant = None  # the new name of the array that the word names
        for new_names in (self._files[file], self._all):
            target = _named(attribute, word, name, new_names)
            meant = meant or (None if target is None else new_names[target])
        if meant is None or meant == by or _named(attribute, word, by, self._now) == meant:
            return word
        last = meant.rpartition("/")[2]
        new = last if _named(attribute, last, by, self._now) == meant else f"/{meant}"
        return word if len(new.split()) != 1 else new + ":" * word.endswith(":")


def _single(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a mapping of pairs without the keys that come twice."""
    single: dict[str, str] = {}
    twice = set()
    for key, value in pairs:
        if key in single:
            twice.add(key)
        single[key] = value
    return {key: value for key, value in single.items() if key not in twice}


def take_calendars(chosen: Sequence[Array], arrays: Sequence[Array], limits: Limits) -> None:
    """Give arrays the calendar of a time axis whose coordinate is not chosen with them.

    `arrays` are all of the file. The axis has units, ``days since 2000-01-01``, and no word for a
    calendar in which other days follow each other than in the usual one.
    """
    known: Coordinates | None = None
    taken = {array.name for array in chosen}
    for array in chosen:
        axes = array.axes if array.described and array.problem is None else ()
        for axis, length in zip(axes, array.shape, strict=False):
            if _counts_time(axis):
                known = known or Coordinates(arrays, [one.name for one in arrays], limits)
                calendar = known.calendar(array.name, axis, length, taken)
                if calendar:
                    attributes = {CALENDAR: calendar, **array.meta.attributes}
                    array.meta = array.meta.replace(attributes=attributes)


def calendar_of(array: Array, axis: Axis) -> dict[str, str]:
    """The attribute of the coordinate of an axis that says the calendar, if the array has it."""
    calendar = array.meta.attributes.get(CALENDAR) if _counts_time(axis) else None
    return {CALENDAR: calendar} if isinstance(calendar, str) else {}


def _counts_time(axis: Axis) -> bool:
    return isinstance(axis.units, str) and " since " in axis.units


def left_out(chosen: Sequence[Array], names: Collection[str]) -> Iterator[str]:
    """Yield a note for each array that chosen ones name in an attribute, and that is not chosen.

    The coordinate of an axis is not among them: the axis has its values.
    """
    taken = {array.name for array in chosen}
    missing: dict[str, tuple[str, str]] = {}
    for array in chosen:
        for attribute, name in named_by(array, names):
            own = {axis.name for axis in array.meta.axes}
            if name not in taken and name.rpartition("/")[2] not in own:
                missing.setdefault(name, (array.name, attribute))
    for name, (by, attribute) in missing.items():
        yield f"'{name}' is not chosen, and the attribute '{attribute}' of '{by}' names it"


def renamed(arrays: Sequence[Array], places: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (array, reason) for attributes that name an array which has another name in a file.

    `places` maps the name of each array to its name in the file.
    """
    for array in arrays:
        for attribute, name in named_by(array, places):
            written = places[name].rpartition("/")[2]
            if written != name.rpartition("/")[2]:
                reason = (
                    f"the attribute '{attribute}' names '{name}', which is '{written}' in the file"
                )
                yield array.name, f"{reason}: only raconvert finds it"


def without_coordinates(meta: Metadata) -> str | None:
    """Return a note that names the oblique axes of an array, which CF lacks; None without any."""
    names = [
        f"'{axis.name}'" if axis.name else str(number)
        for number, (axis, along) in enumerate(
            zip(meta.axes, coordinates(meta.axes, meta.space), strict=True)
        )
        if axis.vector is not None and along.spacing is None and sum(map(bool, axis.vector)) > 1
    ]
    if not names:
        return None
    return (
        f"CF has no oblique axes: other programs see {', '.join(names)} without coordinates, only "
        "raconvert finds where they lie"
    )


def naming_coordinates(meta: Metadata, values: Any) -> Metadata:
    """Return metadata of a variable with an attribute that names its non-dimension coordinates."""
    names = [str(key) for key in values.coords if key not in values.dims]
    has_attribute = "coordinates" in meta.attributes
    if names and not has_attribute and not any(set(name) & set(" \t\n") for name in names):
        return meta.replace(attributes={**meta.attributes, "coordinates": " ".join(names)})
    return meta


def naming_all(attributes: dict[str, Any], dataset: Any) -> dict[str, Any]:
    """Return attributes of a Dataset with one that names the coordinates of no variable.

    xarray writes the same for coordinates whose dimensions no variable has.
    """
    named = {key for name in dataset.data_vars for key in dataset[name].coords}
    names = [str(key) for key in dataset.coords if key not in named and key not in dataset.dims]
    if not names or "coordinates" in attributes or any(set(name) & set(" \t\n") for name in names):
        return attributes
    return {**attributes, "coordinates": " ".join(names)}


def as_numbers(
    coordinate: Any, dim: Any, name: str, changes: list[tuple[str, str]]
) -> tuple[np.ndarray[Any, Any], str | None]:
    """Return the values of a coordinate of xarray, dates and durations as numbers, and their units.

    `changes` gets (name, what changed). All other values, and dates that numbers cannot express,
    are returned as they are. Raises `WouldLose` for values that xarray cannot read itself.
    """
    encoding = coordinate.encoding
    try:
        values = coordinate.values
    except Exception as error:  # pandas may hold text in Arrow, which refuses lone surrogates
        raise WouldLose(
            f"the coordinate along axis '{dim}' cannot be read from xarray: {error!s:.200}",
            remedy="drop it first; nothing was written",
        ) from error
    if values.dtype.kind not in "mM":
        return values, None
    numbers = numbered(values, encoding.get("units"), encoding.get("calendar"))
    if numbers is None:
        return values, None
    changes.append((name, f"the {values.dtype} along axis '{dim}' become {numbers[1]}"))
    return numbers


def numbered(
    values: np.ndarray[Any, Any], units: Any = None, calendar: Any = None
) -> tuple[np.ndarray[Any, Any], str] | None:
    """Return dates or durations as integers, exactly, and their units in CF.

    The units are those given, as they were in a file, if they express every value exactly; else the
    largest that do, for dates since the day of the first one. None if a value is missing, is not a
    whole number of nanoseconds, or is before the calendar.

    >>> numbered(np.array(["2020-01-01", "2020-01-03"], "M8[D]"))
    (array([0, 2]), 'days since 2020-01-01')
    """
    import numpy as np

    dates = values.dtype.kind == "M"
    if not values.size or np.isnat(values).any():
        return None
    if dates and values.min().astype("M8[D]") < np.datetime64(_GREGORIAN):
        return None
    nanoseconds = _as_nanoseconds(values)
    if nanoseconds is None:
        return None
    if not dates:
        return _largest(nanoseconds)
    step, origin = _meant(units) if calendar is None or calendar in _CALENDARS else (0, 0)
    if step and _is_near(nanoseconds, origin) and not ((nanoseconds - origin) % step).any():
        return (nanoseconds - origin) // step, units
    first = values.reshape(-1)[0].astype("M8[D]")
    origin = int(first.astype("i8")) * _NANOSECONDS["days"]
    if not _is_near(nanoseconds, origin):
        return None
    numbers, unit = _largest(nanoseconds - origin)
    return numbers, f"{unit} since {first}"


def _meant(units: Any) -> tuple[int, int]:
    """Return step and origin, in nanoseconds, of units such as ``hours since 2020-01-01``.

    Both are 0 for any other text.
    """
    import numpy as np

    match = _UNITS.fullmatch(units) if isinstance(units, str) else None
    if not match:
        return 0, 0
    unit, day, time = match.groups()
    whole, _, part = (time or "00:00:00").partition(".")
    try:
        seconds = int(np.datetime64(f"{day}T{whole}", "s").astype("i8"))
    except ValueError:  # a month that does not exist
        return 0, 0
    return _NANOSECONDS.get(f"{unit}s", 0), seconds * 10**9 + int(part.ljust(9, "0"))


def _is_near(nanoseconds: np.ndarray[Any, Any], origin: int) -> bool:
    """True if an origin, and the distances of all values from it, are integers of 64 bits."""
    ends = int(nanoseconds.min()) - origin, int(nanoseconds.max()) - origin
    return max(map(abs, (*ends, origin))) < 1 << 63


def _as_nanoseconds(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return dates or durations as nanoseconds; None if int64 does not hold them exactly."""
    import numpy as np

    if np.datetime_data(values.dtype)[0] in ("generic", "ps", "fs", "as"):
        return None
    nanoseconds = values.astype(f"{values.dtype.kind}8[ns]")
    if not (nanoseconds.astype(values.dtype) == values).all():
        return None
    return nanoseconds.astype("i8")


def _largest(nanoseconds: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    """Return nanoseconds as numbers of the largest unit of which all are multiples, and that."""
    unit, step = next(
        (name, step) for name, step in _NANOSECONDS.items() if not (nanoseconds % step).any()
    )
    return nanoseconds // step, unit


MISSING = "_FillValue"  # the attribute with the value of missing elements
MOST_WRITTEN = 1 << 22  # most values of a coordinate that is made of an axis
# The fill values of netCDF (NC_FILL_BYTE and so on), by kind and bytes of the elements.
_FILLS = {
    ("int", 1): -127, ("int", 2): -32767, ("int", 4): -(2**31) + 1, ("int", 8): -(2**63) + 2,
    ("uint", 1): 255, ("uint", 2): 65535, ("uint", 4): 2**32 - 1, ("uint", 8): 2**64 - 2,
    ("float", 4): 9.969209968386869e36, ("float", 8): 9.969209968386869e36,
}  # fmt: skip


def usual_fill(element: Element) -> int | float | None:
    """Return the fill value that netCDF gives to elements of a type; None for other types."""
    return _FILLS.get((element.kind, element.nbytes))


def values_of(axis: Axis, length: int) -> Any:
    """Return the values of the coordinate of an axis: an array, a list of texts, or None."""
    import numpy as np

    if not 1 <= length <= MOST_WRITTEN:
        return None
    labels = axis.labels
    if labels is not None and len(labels) == length:
        if all(type(label) is int and abs(label) < 1 << 63 for label in labels):
            return np.array(labels, np.int64)
        if all(type(label) in (int, float) for label in labels):
            return np.array(labels, np.float64)
        if all(isinstance(label, str) and "\0" not in label for label in labels):
            return list(labels)
    if axis.spacing is not None:
        return axis.values(length)
    return None


def shared_name(axis: Axis, before: Sequence[Axis]) -> str:
    """Return the name of the dimension of an axis, by which arrays share it; "" without a name.

    It is the name of the axis, with a number if the array has several of that name; `before` are
    the axes of the same array before it.
    """
    name = axis.name or ""
    if not name or "/" in name:
        return ""
    number = 1 + sum(other.name == name for other in before)
    return name if number == 1 else f"{name}_{number}"


def is_own(array: Array, link: str) -> bool:
    """True for an array with the name of its one axis: in netCDF the coordinate of that."""
    axes = array.meta.axes
    return array.ndim == 1 and bool(axes) and axes[0].name == link.rpartition("/")[2]


def says(axis: Axis, length: int) -> tuple[int, str]:
    """Return a key of the coordinate of an axis; axes with equal keys share a coordinate."""
    return length, repr(axis.to_dict())
