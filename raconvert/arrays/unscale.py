"""Physical values: the slope, intercept and missing values that a file says of stored elements.

`scale_of` finds them in the metadata, whatever the format: the attributes of netCDF and of those
who follow it (``scale_factor``, ``add_offset``, ``_FillValue``, ``missing_value``, ``valid_range``,
``_Unsigned``), and ``scl_slope`` and ``scl_inter`` in a namespace. Elements stay as stored unless
`unscaled` is asked for.
"""

from __future__ import annotations

from math import isfinite, isnan

from raconvert.declared import Record
from raconvert.errors import RaconvertError, Unsupported, WouldLose, counted, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array
    from raconvert.arrays.metadata import Metadata

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]
    Number = int | float

_FACTORS = ("scale_factor", "add_offset")
_MISSING = ("_FillValue", "missing_value")
_RANGE = ("valid_range", "valid_min", "valid_max")
_ATTRIBUTES = {*_FACTORS, *_MISSING, *_RANGE, "_Unsigned"}
# In the namespace of a format: factors, and elements of the stored type that stand for none.
_SLOPE, _INTERCEPT = "scl_slope", "scl_inter"
_OWN = {_SLOPE, _INTERCEPT, "fill_value", "fillvalue"}
_RECORDS = ("attributes", "form")  # of a namespace, by the names of attributes and fields
_NUMBERS = ("int", "uint", "float", "bfloat", "complex")


class Scale(Record):
    """How stored elements become physical values: stored * slope + intercept.

    Elements that equal one of `missing`, or lie outside `low` to `high`, are missing: NaN. These
    are of the stored type, or of the physical values if `of_physical`. `unsigned` says that integers
    are stored in the other signedness (None: in their own), `single` that both factors are float32.
    """

    slope: float | None = None
    intercept: float | None = None
    missing: tuple[Number, ...] = ()
    low: Number | None = None
    high: Number | None = None
    of_physical: bool = False
    unsigned: bool | None = None
    single: bool = False

    @property
    def packs(self) -> bool:
        """True if there is a slope or an intercept."""
        return self.slope is not None or self.intercept is not None

    @property
    def formula(self) -> str:
        """The factors in words, such as ``value * 0.5 + 10``."""
        slope = "" if self.slope is None else f" * {self.slope:g}"
        if not self.intercept:
            return f"value{slope or ' * 1'}"
        return f"value{slope} {'-' if self.intercept < 0 else '+'} {abs(self.intercept):g}"


# What the metadata says ---------------------------------------------------------------------------


def scale_of(array: Array) -> Scale | None:
    """Return the scale of an array of numbers, None if it has none; no element is read.

    Raises `Unsupported` for a scale that is said and cannot be understood.
    """
    meta = array.meta
    if not _says_a_scale(meta) or array.element.kind not in _NUMBERS:
        return None
    return _of_attributes(array) or _of_namespaces(array)


def _says_a_scale(meta: Metadata) -> bool:
    if not _ATTRIBUTES.isdisjoint(meta.attributes):
        return True
    return any(_SLOPE in own for own in meta.formats.values())


def _of_attributes(array: Array) -> Scale | None:
    """The scale that attributes say, as the conventions of netCDF have it."""
    said: Mapping[str, Any] = array.meta.attributes
    if _ATTRIBUTES.isdisjoint(said):
        return None
    slope, intercept = (_factor(array, name, said.get(name)) for name in _FACTORS)
    missing = [one for name in _MISSING for one in _numbers(array, name, said.get(name))]
    bounds = _numbers(array, "valid_range", said.get("valid_range"))
    if len(bounds) not in (0, 2):
        raise _wrong(array, "valid_range", said["valid_range"], "two numbers")
    low, high = bounds or (None, None)
    for name in ("valid_min", "valid_max"):
        if found := _numbers(array, name, said.get(name)):
            low, high = (found[0], high) if name == "valid_min" else (low, found[0])
    kind = array.element.kind
    if kind == "complex" and (missing or low is not None or high is not None):
        raise _wrong(array, "_FillValue or valid_range", "complex numbers", "real numbers")
    whole = kind in ("int", "uint")
    unsigned = {"true": True, "false": False}.get(str(said.get("_Unsigned", "")).lower())
    if not whole or unsigned == (kind == "uint"):
        unsigned = None
    packs = slope is not None or intercept is not None
    scale = Scale(
        slope,
        intercept,
        tuple(dict.fromkeys(one for one in missing if not isnan(one))),
        low,
        high,
        # A range of another type than the packed elements is one of what they stand for.
        of_physical=packs and whole and any(type(bound) is float for bound in (low, high)),
        unsigned=unsigned,
        single=slope is not None
        and all(type_of_attribute(array.meta, name) == "f4" for name in _FACTORS if name in said),
    )
    return None if scale == Scale(single=scale.single) else scale


def _of_namespaces(array: Array) -> Scale | None:
    """The scale that the fields of a header say, kept in the namespace of its format.

    A slope of 0, or none, says that there is no scale, whatever the intercept is.
    """
    for own in array.meta.formats.values():
        slope = _factor(array, _SLOPE, own.get(_SLOPE))
        if not slope:
            continue
        intercept = _factor(array, _INTERCEPT, own.get(_INTERCEPT))
        form = own.get("form")
        if intercept is None and isinstance(form, dict) and isinstance(form.get(_INTERCEPT), str):
            raise _wrong(array, _INTERCEPT, "a number that is not finite", "a finite number")
        if (slope, intercept or 0) != (1, 0):
            return Scale(slope, intercept)
    return None


def type_of_attribute(meta: Metadata, name: str) -> str | None:
    """Return the type of an attribute that its format remembers, such as ``f4``, else None."""
    for own in meta.formats.values():
        known = own.get("attributes")
        found = known.get(name) if isinstance(known, dict) else None
        descr = found.get("type") if isinstance(found, dict) else None
        if isinstance(descr, str):
            return descr.lstrip("<>|=")
    return None


def _factor(array: Array, name: str, value: Any) -> float | None:
    found = _numbers(array, name, value)
    if value is None:
        return None
    if len(found) != 1 or not isfinite(found[0]):
        raise _wrong(array, name, value, "a finite number")
    return float(found[0])


def _numbers(array: Array, name: str, value: Any) -> list[Number]:
    found = value if isinstance(value, list | tuple) else [] if value is None else [value]
    if any(type(one) not in (int, float) for one in found):
        raise _wrong(array, name, value, "numbers")
    return list(found)


def _wrong(array: Array, name: str, value: Any, expected: str) -> Unsupported:
    return Unsupported(
        f"the scale of array '{array.name}' cannot be applied: {name} is not what it should be",
        expected=expected,
        got=str(value)[:60],
        remedy="leave out unscale (--unscale): elements are then as stored",
    )


def without_scale(meta: Metadata) -> Metadata:
    """Return the metadata of physical values: the unit stays, all that is of stored ones goes."""
    gone = _ATTRIBUTES | _OWN
    formats = {}
    for name, own in meta.formats.items():
        kept = {key: value for key, value in own.items() if key not in _OWN}
        for record in _RECORDS:
            if isinstance(kept.get(record), dict):
                kept[record] = {k: v for k, v in kept[record].items() if k not in gone}
                if not kept[record]:
                    del kept[record]
        if kept:
            formats[name] = kept
    attributes = {key: value for key, value in meta.attributes.items() if key not in _ATTRIBUTES}
    return meta.replace(attributes=attributes, formats=formats)


# What is told and done --------------------------------------------------------------------------


def scale_notes(arrays: Sequence[Array]) -> list[str]:
    """Return lines that say which arrays are stored in other values than they stand for."""
    found: dict[str, list[str]] = {}
    for array in arrays:
        if array.problem is None and not array.pending and _says_a_scale(array.meta):
            try:
                scale = scale_of(array)
            except RaconvertError as error:
                found.setdefault(f"values are as stored; {error.what}", []).append(array.name)
                continue
            if scale is not None and scale.packs:
                unit = f", in {array.meta.units}" if array.meta.units else ""
                line = f"values are as stored; the header says: {scale.formula}{unit}"
                found.setdefault(line, []).append(array.name)
    if len(arrays) == 1:
        return list(found)
    if len(found) > 3:
        names = [name for line in found.values() for name in line]
        line = "values are as stored; slope, offset and unit are in the metadata of each"
        return [f"{counted(len(names), 'array')}: {line}: {listed(names)}"]
    return [
        f"array{'s' * (len(names) > 1)} {listed([_in_quotes(name) for name in names])}: {line}"
        for line, names in found.items()
    ]


def _in_quotes(name: str) -> str:
    return f"'{name}'"


NOTHING = "unscale changes nothing: the metadata says no slope, offset or fill value"


def all_unscaled(
    arrays: Iterable[Array], *, round_values: bool = False
) -> tuple[list[Array], list[str]]:
    """Return the arrays in physical values, and a note if there is no scale at all.

    Raises what `scale_of` and, while values are read, what `unscaled` raises.
    """
    made, any_scale = [], False
    for array in arrays:
        scale = scale_of(array) if array.problem is None else None
        any_scale |= scale is not None
        made.append(array if scale is None else unscaled(array, scale, round_values=round_values))
    return made, [] if any_scale else [NOTHING]


def unscaled(array: Array, scale: Scale, *, round_values: bool = False) -> Array:
    """Return the array in physical values, as a lazy array in bounded memory.

    The type is float32 where all values of the stored type and both factors are, else float64;
    floats without factors, and complex numbers, keep their kind. An integer of 64 bits without
    factors that float64 does not hold raises `WouldLose`, unless `round_values`.
    """
    import numpy as np

    from raconvert.arrays.blocks import index_of
    from raconvert.arrays.cast import Converted
    from raconvert.arrays.dtypes import dtype_of, element_of, little

    stored = as_kept = dtype_of(little(array.element))
    if scale.unsigned is not None:
        stored = np.dtype(f"<{'u' if scale.unsigned else 'i'}{stored.itemsize}")
    physical = _physical(stored, array.element.kind, scale)
    wraps = scale.unsigned is not None
    missing = [_as_stored(one, stored, wraps=wraps) for one in scale.missing]
    low, high = scale.low, scale.high
    if wraps and not scale.of_physical:
        low, high = (_as_stored(one, stored, wraps=True) for one in (low, high))
    exact = stored.kind in "iu" and stored.itemsize == 8 and not scale.packs and not round_values

    def convert(block: Values, done: int) -> Values:
        shape = block.shape
        block = np.ascontiguousarray(block, as_kept).view(stored)
        if stored == physical and not (missing or low is not None or high is not None):
            return block.reshape(shape)
        gone = np.zeros(block.shape, bool)
        for one in missing:
            if one is not None:
                gone |= block == one
        if not scale.of_physical:
            gone |= _outside(block, low, high)
        with np.errstate(all="ignore"):
            values = block.astype(physical)
            if exact:
                refuse_rounded(block, values, gone, done)
            if scale.slope is not None:
                values *= physical.type(scale.slope)
            if scale.intercept is not None:
                values += physical.type(scale.intercept)
        if scale.of_physical:
            gone |= _outside(values, low, high)
        values[gone] = np.nan
        return values.reshape(shape)

    def refuse_rounded(block: Values, values: Values, gone: Values, done: int) -> None:
        wrong = np.flatnonzero(~(_exactly(block, values) | gone).reshape(-1))
        if wrong.size:
            raise WouldLose(
                f"value {block.reshape(-1)[wrong[0]]} of array '{array.name}' does not fit "
                f"{physical.name}, which has NaN for those that are missing",
                where=f"index {list(index_of(array, done + int(wrong[0])))}",
                remedy="--allow precision rounds it; without --unscale it is as stored",
            )

    return array.replace(
        element=element_of(physical),
        extent=None,
        storage={},
        meta=without_scale(array.meta),
        data=Converted(array, physical, convert),
    )


def _physical(stored: Dtype, kind: str, scale: Scale) -> Dtype:
    """The type of physical values."""
    import numpy as np

    if kind == "complex":
        return np.dtype("<c16")
    whole = stored.kind in "iu"
    small = stored.itemsize <= (2 if whole else 4)
    if scale.packs:
        return np.dtype("<f4" if scale.single and small else "<f8")
    if not whole or not (scale.missing or scale.low is not None or scale.high is not None):
        return stored
    return np.dtype("<f4" if small else "<f8")


def _as_stored(number: Number | None, stored: Dtype, *, wraps: bool) -> Any:
    """A number as an element of the stored type; None if there is none that equals it.

    An integer that `wraps` may be said in the other signedness.
    """
    import numpy as np

    if number is None:
        return None
    if stored.kind not in "iu":
        with np.errstate(all="ignore"):
            return np.array(number).astype(stored)
    if not isfinite(number) or number != int(number):
        return None
    whole, bits = int(number), 8 * stored.itemsize
    lowest = 0 if stored.kind == "u" else -(1 << (bits - 1))
    if wraps and -(1 << (bits - 1)) <= whole < 1 << bits:
        whole = (whole - lowest) % (1 << bits) + lowest
    return np.array(whole, stored) if lowest <= whole < lowest + (1 << bits) else None


def _outside(values: Values, low: Number | None, high: Number | None) -> Any:
    """True for each value that lies outside a range."""
    import numpy as np

    gone = np.zeros(values.shape, bool)
    if low is not None:
        gone |= values < low
    if high is not None:
        gone |= values > high
    return gone


def _exactly(block: Values, values: Values) -> Any:
    """True for each integer that a float64 holds."""
    inside = values < 2.0 ** (64 if block.dtype.kind == "u" else 63)
    back = values.copy()
    back[~inside] = 0
    return inside & (back.astype(block.dtype) == block)
