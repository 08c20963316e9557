"""`Scale`: the slope, intercept and missing values that a file gives for its stored elements.

`scale_of` finds them in the metadata, whatever the format: the attributes of netCDF and of those
who follow it (``scale_factor``, ``add_offset``, ``_FillValue``, ``missing_value``, ``valid_range``,
``_Unsigned``), and ``scl_slope`` and ``scl_inter`` in a namespace. Elements stay as stored unless
`raconvert.arrays.unscale` is asked for physical values.
"""

from __future__ import annotations

from math import isfinite, isnan

from raconvert.declared import Record
from raconvert.errors import RaconvertError, Unsupported, counted, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.arrays.metadata import Metadata

    Number = int | float

_FACTORS = ("scale_factor", "add_offset")
_MISSING = ("_FillValue", "missing_value")
_RANGE = ("valid_range", "valid_min", "valid_max")
_ATTRIBUTES = {*_FACTORS, *_MISSING, *_RANGE, "_Unsigned"}
# In the namespace of a format: factors, and stored elements that stand for missing ones.
_SLOPE, _INTERCEPT = "scl_slope", "scl_inter"
_OWN = {_SLOPE, _INTERCEPT, "fill_value", "fillvalue"}
_RECORDS = ("attributes", "form")  # mappings in a namespace, from attribute or field to its type


class Scale(Record):
    """Conversion of stored elements to physical values: stored * slope + intercept.

    Elements that equal one of `missing`, or lie outside `low` to `high`, are missing: NaN. Both are
    stored numbers, but the range is one of physical values if `of_physical`. `unsigned` is the
    signedness of integers that are stored in the other one (None: in their own); `single` is True
    if both factors are float32. `each` has a slope and an intercept for each of several equal
    parts of the elements, in stored order.
    """

    slope: float | None = None
    intercept: float | None = None
    missing: tuple[Number, ...] = ()
    low: Number | None = None
    high: Number | None = None
    of_physical: bool = False
    unsigned: bool | None = None
    single: bool = False
    each: tuple[tuple[float, float], ...] = ()

    @property
    def varies(self) -> bool:
        """True if parts of the array have factors of their own."""
        return bool(self.each)

    @property
    def packs(self) -> bool:
        """True if there is a slope or an intercept."""
        return self.slope is not None or self.intercept is not None

    @property
    def masks(self) -> bool:
        """True if some values stand for missing ones."""
        return bool(self.missing) or self.low is not None or self.high is not None

    @property
    def formula(self) -> str:
        """The factors in words, such as ``value * 0.5 + 10``."""
        slope = "" if self.slope is None else f" * {self.slope:g}"
        if not self.intercept:
            return f"value{slope or ' * 1'}"
        return f"value{slope} {'-' if self.intercept < 0 else '+'} {abs(self.intercept):g}"


# The scale in the metadata ------------------------------------------------------------------------


def scale_of(array: Any) -> Scale | None:
    """Return the scale of an array of numbers, None if it has none; no element is read.

    Raises `Unsupported` for a scale that cannot be understood.
    """
    meta = array.meta
    if not _says_a_scale(meta) or array.element.kind in ("bool", "user"):
        return None
    return _of_attributes(array) or _of_namespaces(array)


def _says_a_scale(meta: Metadata) -> bool:
    """True if metadata may hold a scale: an attribute of one, or a slope in a namespace."""
    if not _ATTRIBUTES.isdisjoint(meta.attributes):
        return True
    return any(_SLOPE in own for own in meta.formats.values())


def _of_attributes(array: Any) -> Scale | None:
    """Return the scale in the attributes, by the conventions of netCDF; None if they have none."""
    attributes: Mapping[str, Any] = array.meta.attributes
    if _ATTRIBUTES.isdisjoint(attributes):
        return None
    slope, intercept = (_factor(array, name, attributes.get(name)) for name in _FACTORS)
    missing = [
        number for name in _MISSING for number in _numbers(array, name, attributes.get(name))
    ]
    bounds = _numbers(array, "valid_range", attributes.get("valid_range"))
    if len(bounds) not in (0, 2):
        raise _wrong(array, "valid_range", attributes["valid_range"], "two numbers")
    low, high = bounds or (None, None)
    for name in ("valid_min", "valid_max"):
        if numbers := _numbers(array, name, attributes.get(name)):
            low, high = (numbers[0], high) if name == "valid_min" else (low, numbers[0])
    kind = array.element.kind
    if kind == "complex" and (missing or low is not None or high is not None):
        raise _wrong(array, "_FillValue or valid_range", "complex numbers", "real numbers")
    whole = kind in ("int", "uint")
    unsigned = {"true": True, "false": False}.get(str(attributes.get("_Unsigned", "")).lower())
    if not whole or unsigned == (kind == "uint"):
        unsigned = None
    packs = slope is not None or intercept is not None
    factors = [name for name in _FACTORS if name in attributes]
    all_single = all(type_of_attribute(array.meta, name) == "f4" for name in factors)
    scale = Scale(
        slope,
        intercept,
        tuple(dict.fromkeys(number for number in missing if not isnan(number))),
        low,
        high,
        # A range of another type than the packed elements is one of physical values.
        of_physical=packs and whole and any(type(bound) is float for bound in (low, high)),
        unsigned=unsigned,
        single=slope is not None and all_single,
    )
    return None if scale == Scale(single=scale.single) else scale


def _of_namespaces(array: Any) -> Scale | None:
    """Return the scale in the fields of a header, which its format's namespace holds, or None.

    Without a slope, or with 0, there is no scale, whatever the intercept is.
    """
    for own in array.meta.formats.values():
        if isinstance(own.get(_SLOPE), list | tuple):
            return _of_parts(array, own)
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


def _of_parts(array: Any, own: Mapping[str, Any]) -> Scale:
    """Return the scale of an array whose parts have factors of their own, given as lists."""
    slopes = _numbers(array, _SLOPE, own[_SLOPE])
    intercepts = _numbers(array, _INTERCEPT, own.get(_INTERCEPT, [0.0] * len(slopes)))
    parts = len(slopes)
    sound = parts and len(intercepts) == parts and array.count % parts == 0
    if not (sound and all(map(isfinite, (*slopes, *intercepts)))):
        raise _wrong(array, _SLOPE, own[_SLOPE], "a finite number for each part")
    return Scale(each=tuple(zip(map(float, slopes), map(float, intercepts), strict=True)))


def refuse_varying(array: Any) -> None:
    """Set the `problem` of an array whose parts are stored in different scales."""
    if array.problem is not None or array.pending:
        return
    if any(isinstance(own.get(_SLOPE), list | tuple) for own in array.meta.formats.values()):
        array.problem = Unsupported(
            f"parts of array '{array.name}' are stored in scales of their own, and have no meaning "
            "together",
            remedy="`--unscale` applies each, to float64",
        )


def type_of_attribute(meta: Metadata, name: str) -> str | None:
    """Return the type of an attribute, such as ``f4``, if its format has recorded it, else None."""
    for own in meta.formats.values():
        records = own.get("attributes")
        record = records.get(name) if isinstance(records, dict) else None
        descr = record.get("type") if isinstance(record, dict) else None
        if isinstance(descr, str):
            return descr.lstrip("<>|=")
    return None


def _factor(array: Any, name: str, value: Any) -> float | None:
    """Return a slope or intercept, None if it is not given; `Unsupported` unless it is finite."""
    numbers = _numbers(array, name, value)
    if value is None:
        return None
    if len(numbers) != 1 or not isfinite(numbers[0]):
        raise _wrong(array, name, value, "a finite number")
    return float(numbers[0])


def _numbers(array: Any, name: str, value: Any) -> list[Number]:
    """Return the numbers that an attribute has, of None an empty list; `Unsupported` for others."""
    if value is None:
        return []
    values = value if isinstance(value, list | tuple) else [value]
    if any(type(number) not in (int, float) for number in values):
        raise _wrong(array, name, value, "numbers")
    return list(values)


def _wrong(array: Any, name: str, value: Any, expected: str) -> Unsupported:
    return Unsupported(
        f"the scale of array '{array.name}' cannot be applied: {name} is not what it should be",
        expected=expected,
        got=str(value)[:60],
        remedy="leave out unscale (`--unscale`): elements are then as stored",
    )


def without_scale(meta: Metadata) -> Metadata:
    """Return the metadata of physical values: without the scale, but with the unit."""
    dropped = _ATTRIBUTES | _OWN
    formats = {}
    for name, namespace in meta.formats.items():
        fields = {key: value for key, value in namespace.items() if key not in _OWN}
        for record in _RECORDS:
            if isinstance(fields.get(record), dict):
                fields[record] = {k: v for k, v in fields[record].items() if k not in dropped}
                if not fields[record]:
                    del fields[record]
        if fields:
            formats[name] = fields
    attributes = {key: value for key, value in meta.attributes.items() if key not in _ATTRIBUTES}
    return meta.replace(attributes=attributes, formats=formats)


# Notes --------------------------------------------------------------------------------------------


def scale_notes(arrays: Sequence[Any]) -> list[str]:
    """Return notes that name the arrays whose stored values are not the physical ones."""
    names_by_scale: dict[str, list[str]] = {}
    for array in arrays:
        if array.problem is None and not array.pending and _says_a_scale(array.meta):
            try:
                scale = scale_of(array)
            except RaconvertError as error:
                names_by_scale.setdefault(f"values are as stored; {error.what}", []).append(
                    array.name
                )
                continue
            if scale is not None and scale.packs:
                unit = f", in {array.meta.units}" if array.meta.units else ""
                line = f"values are as stored; the header says: {scale.formula}{unit}"
                names_by_scale.setdefault(line, []).append(array.name)
    if len(arrays) == 1:
        return list(names_by_scale)
    if len(names_by_scale) > 3:
        names = [name for line in names_by_scale.values() for name in line]
        line = "values are as stored; slope, offset and unit are in the metadata of each"
        return [f"{counted(len(names), 'array')}: {line}: {listed(names)}"]
    return [
        f"array{'s' * (len(names) > 1)} {listed([_in_quotes(name) for name in names])}: {line}"
        for line, names in names_by_scale.items()
    ]


def _in_quotes(name: str) -> str:
    return f"'{name}'"
