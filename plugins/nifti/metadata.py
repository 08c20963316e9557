"""The metadata that a NIfTI header holds, both ways.

`Meaning` is the part that other formats understand, and the fields with names of their own. The
form of a header is the rest of its bytes: a slope of 0 for one of 1, characters behind the end of
a text, NaN, the spacing 0 of an axis, lengths of axes that are not there. The namespace keeps it
in ``form``, and it is written again as long as a reader takes it for what the metadata says now.

The namespace ``nifti`` may have been edited, or made by anybody: a field of a wrong form is left
out, and named.
"""

from __future__ import annotations

import struct
from itertools import zip_longest
from math import isfinite

from raconvert.arrays.scales import scale_of
from raconvert.arrays.space import OF_ONE, UNKNOWN, World, same
from raconvert.declared import Record
from raconvert.errors import RaconvertError
from raconvert.metadata.reals import are_reals, is_real
from raconvert.plugin import Array, Axis, Metadata, facts_of, facts_of_axes, fields_of_axes

from .header import Header, Start, extensions_of
from .space import FIELDS, fields_of_space, placed, world_of
from .tables import (
    LAYOUTS,
    MAX_RANK,
    SPACE_CODES,
    SPACE_UNITS,
    TIME_CODES,
    TIME_UNITS,
    Bits,
    Layout,
    bits,
    packed_field,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.metadata import Space

NAMESPACE = "nifti"
# Fields that are kept as they are if they are not 0: numbers, lists of numbers, texts of n bytes
_NUMBERS = ("intent_code", "slice_start", "slice_end", "slice_code", "dim_info", "extents",
            "session_error", "glmax", "glmin")  # fmt: skip
_CODES = ("sform_code", "qform_code")
_SCALE = ("scl_slope", "scl_inter")
_FACTORS = ("scale_factor", "add_offset")  # the attributes of the same meaning, in this order
_REALS = (*_SCALE, "cal_max", "cal_min", "slice_duration", "toffset")
_LISTS = {"intent_p": 3}
_TEXTS = {"aux_file": 24, "intent_name": 16, "data_type": 10, "db_name": 18, "unused": 15}
_FORM_TEXTS = {"descrip": 80, "regular": 1, **_TEXTS}
_FORM_LISTS = {"pixdim": 8, "srow": 12, "quatern": 3, "qoffset": 3, **_LISTS}
_OF_SPACE = (*FIELDS, "pixdim")
SLACK = 1e-3  # between the sform and a qform of rounded numbers
# (-1 if signed, else 0; number of bits without the sign), by struct code
_BITS = {"B": (0, 8), "h": (-1, 15), "i": (-1, 31), "q": (-1, 63)}


class Meaning(Record):
    """The part of a header that metadata has fields for."""

    description: str
    axes: Sequence[Axis]  # of `dims`; empty if the header says nothing of them
    own: dict[str, Any]
    space: Space | None = None

    def is_same(self, other: Meaning) -> bool:
        """True if both are equal, positions up to the last digits of their numbers."""
        same_own = (self.description, self.own) == (other.description, other.own)
        return same_own and self.is_placed_as(other)

    def is_placed_as(self, other: Meaning) -> bool:
        """True if both give the same spacings and positions."""
        world, other_world = World.of(self.axes, self.space), World.of(other.axes, other.space)
        if world is None and other_world is not None:
            return False
        if world is not None and not world.is_same(other_world):
            return False
        return all(
            axis.units == twin.units
            and axis.origin == twin.origin
            and same(_step(axis), _step(twin))
            for axis, twin in zip_longest(self.axes, other.axes, fillvalue=Axis())
        )


def _step(axis: Axis) -> tuple[float, ...] | None:
    """Return the spacing of an axis as `same` compares it."""
    return None if axis.spacing is None else (axis.spacing,)


def metadata_of(header: Header, start: Start, notes: list[str]) -> Metadata:
    """Return the metadata of a header, and add notes on what it ignores."""
    layout = LAYOUTS[header.version]
    rank = len(header.dims)
    meaning = meaning_of(header.fields, rank)
    own = dict(meaning.own)
    if header.version == 2:
        own["version"] = 2
    if odd := _not_finite(header.fields):
        notes.append(f"fields that are not finite were ignored: {', '.join(odd)}")
    if extensions := extensions_of(header, start, notes):
        own["extensions"] = extensions
    form, matters = _form_of(header, meaning, layout)
    attributes = {}
    if _has_scale(header, own):
        pairs = zip(_FACTORS, _SCALE, strict=True)
        attributes = {factor: own.pop(name) for factor, name in pairs if name in own}
    if form and (matters or own or attributes or meaning.axes or meaning.description):
        own["form"] = form
    if own.get("form", {}).keys() & set(_OF_SPACE):
        own["axes"] = [{"place": axis} for axis in range(rank)]
    return Metadata(
        meaning.description or None,
        axes=meaning.axes,
        attributes=attributes,
        space=meaning.space,
        formats={NAMESPACE: own} if own else None,
    )


def _has_scale(header: Header, own: dict[str, Any]) -> bool:
    """True if the elements have a scale; an intercept that is not finite stays with its slope."""
    numbers = header.element.kind not in ("bool", "user")
    return numbers and "scl_slope" in own and isfinite(header.fields["scl_inter"])


def meaning_of(fields: dict[str, Any], rank: int) -> Meaning:
    """Return the meaning of the fields of a header; numbers that are not finite have none."""
    wanted = {name: fields.get(name, 0) for name in (*_NUMBERS, *_REALS)}
    wanted |= {name: _text(fields[name]) for name in _TEXTS if name in fields}
    wanted |= {name: list(fields.get(name, ())) for name in _LISTS}
    own: dict[str, Any] = {}
    for name, value in wanted.items():
        numbers = _numbers(value)
        if all(map(isfinite, numbers)) and (any(numbers) or (isinstance(value, str) and value)):
            own[name] = value
    if own.get("scl_slope") == 1 and "scl_inter" not in own:
        del own["scl_slope"]
    if rest := fields.get("xyzt_units", 0) & ~_unit_bits(fields, rank):
        own["xyzt_units"] = rest
    if rank > 3:
        own.pop("toffset", None)  # the origin of the fourth axis
    world = world_of(fields, rank)
    axes = placed(_axes(fields, rank), world)
    space = None if world is None else world.space
    axes = axes if any(axes) or space is not None else []
    return Meaning(_text(fields.get("descrip", b"")), axes, own, space)


def _not_finite(fields: dict[str, Any]) -> list[str]:
    """Return the fields with NaN or infinities, but for a scale: NaN is an unknown one."""
    names = [name for name in (*_REALS, *_LISTS, "quatern", "qoffset") if name not in _SCALE]
    odd = [name for name in names if not all(map(isfinite, _numbers(fields[name])))]
    return odd + ["sform"] * (not all(map(isfinite, fields["srow"])))


def _numbers(value: Any) -> list[float]:
    """Return the numbers of a field; an empty list for a text."""
    if isinstance(value, list):
        return value
    return [] if isinstance(value, str) else [value]


def _text(raw: bytes) -> str:
    """Return the text of a field: up to a NUL, without blanks at its end."""
    return raw.partition(b"\0")[0].decode("latin-1").rstrip(" ")


def _unit_bits(fields: dict[str, Any], rank: int) -> int:
    """Return the bits of `xyzt_units` that the units of the axes imply."""
    units = fields.get("xyzt_units", 0)
    space = 7 if units & 7 in SPACE_UNITS else 0
    return space | (56 if rank > 3 and units & 56 in TIME_UNITS else 0)


def _axes(fields: dict[str, Any], rank: int) -> Sequence[Axis]:
    """Return spacing and units of each axis, and the origin of the fourth, which is time."""
    units = fields.get("xyzt_units", 0)
    space, time = SPACE_UNITS.get(units & 7), TIME_UNITS.get(units & 56)
    axes = []
    unit_of_axis: list[str | None] = [space, space, space, time, *[None] * (MAX_RANK - 4)]
    for number, unit in enumerate(unit_of_axis[:rank]):
        start = fields.get("toffset", 0.0) if number == 3 else 0.0
        axes.append(
            Axis(
                units=unit,
                spacing=_spacing(fields["pixdim"][number + 1], unit),
                origin=start if start and isfinite(start) else None,
            )
        )
    return axes


def _spacing(number: float, unit: str | None) -> float | None:
    """Return the spacing that a number of `pixdim` stands for; None if it stands for no spacing.

    A 1 without a unit is what writers put there if they know of none.
    """
    is_meant = number != 1 or bool(unit)
    return number if isfinite(number) and number > 0 and is_meant else None


# --- the form of a header -------------------------------------------------------------------------


def _form_of(header: Header, written: Meaning, layout: Layout) -> tuple[dict[str, Any], bool]:
    """Return the fields whose bytes differ from those that we write for the same meaning.

    Also return True if any of them matters: text behind the end of a text, a negative spacing, a
    number that is not finite.
    """
    rank, form, matters = len(header.dims), {}, False
    ours = _fields(written, rank, layout, [], [], [[] for _ in written.axes])
    for name in (*_FORM_TEXTS, *_FORM_LISTS, *_REALS, *_CODES):
        if name not in header.fields:
            continue
        value = header.fields[name]
        if _bytes(layout, name, value) == _bytes(layout, name, ours.get(name)):
            continue
        if name in _FORM_TEXTS:
            form[name] = value.rstrip(b"\0").hex()
            matters |= name != "regular" and bool(value.partition(b"\0")[2].strip(b"\0 "))
        else:
            numbers = _numbers(value)
            form[name] = _kept_field(value)
            signed = name in (*FIELDS, "toffset")  # any number there may be meant
            matters |= name not in _SCALE and not all(
                isfinite(n) and (n >= 0 or signed) for n in numbers
            )
            matters |= signed and any(numbers)
    if written.space is not None and form.keys() & set(_OF_SPACE):
        # All of them or none: a part would go with the place of another image.
        for name in _OF_SPACE:
            form[name] = _kept_field(header.fields[name])
    if any(length != 1 for length in header.fields["dim"][rank + 1 :]):
        form["dim"] = list(header.fields["dim"][rank + 1 :])
    return form, matters


def _bytes(layout: Layout, name: str, value: Any) -> bytes:
    """Return the bytes of a field; 0 for None."""
    code, count = next((code, count) for key, code, count in layout.fields if key == name)
    return packed_field(code, count, value)


def _kept_field(value: Any) -> Any:
    """Return the number of a field, or its list of numbers, for the metadata."""
    return [_kept(number) for number in value] if isinstance(value, list) else _kept(value)


def _kept(number: float) -> float | str:
    """Return a number for the metadata; one that is not finite as its bytes, big-endian."""
    return number.raw.hex() if isinstance(number, Bits) else number


def _number(kept: object, layout: Layout) -> float | None:
    """Return the number that `_kept` recorded; None if the layout does not hold it."""
    try:
        if isinstance(kept, str):
            raw = bytes.fromhex(kept)
            return bits(raw) if len(raw) == struct.calcsize(layout.real) else None
        if not is_real(kept):
            return None
        number = float(kept)  # type: ignore[arg-type]
        (stored,) = struct.unpack(layout.real, struct.pack(layout.real, number))
    except (ValueError, OverflowError):
        return None
    return number if stored == number else None


def _take_form(
    meaning: Meaning, written: dict[str, Any], rank: int, layout: Layout, unplaced: list[str]
) -> list[str]:
    """Put fields into the form they had, if it still means the same; name those that cannot be.

    `unplaced` names the facts of the position that the fields `written` do not have; the form they
    had may have them.
    """
    form, numbers = meaning.own.get("form", {}), _old_numbers(meaning.own.get("axes"), rank)
    lost: list[str] = []
    if not isinstance(form, dict):
        return [*unplaced, "nifti form"]
    of_space = {}
    for name, kept in form.items():
        value = _of_form(name, kept, layout)
        if value is None:
            lost.append(f"nifti form ({name})"[:80])
        elif name in _OF_SPACE:
            of_space[name] = value
        elif name == "dim":
            written["dim"] = value if len(value) == MAX_RANK - rank else None
        elif _means_the_same(written, {name: value}, rank):
            written[name] = value
    return lost + _take_form_of_space(meaning, written, of_space, numbers, unplaced)


def _take_form_of_space(
    meaning: Meaning,
    written: dict[str, Any],
    of_space: dict[str, Any],
    old_numbers: list[int] | None,
    unplaced: list[str],
) -> list[str]:
    """Put sform, qform and pixdim into the form they had in the source; return what is lost.

    If they mean another position than `meaning`, only numbers of pixdim may be put back.
    """
    rank = max(len(meaning.axes), 1) if old_numbers is None else len(old_numbers)
    unmoved = of_space and old_numbers == list(range(rank))
    if unmoved and meaning_of({**written, **of_space}, rank).is_placed_as(meaning):
        written.update(of_space)
        return []
    lost = list(unplaced)
    differ = _differ({**written, **of_space}, rank)
    pixdim = of_space.pop("pixdim", None)
    if differ:
        lost.append("nifti qform_code, quatern and qoffset, which say another place than sform")
    if pixdim is not None:
        lost += _take_pixdim(pixdim, written, meaning.axes, old_numbers)
    return lost


def _differ(fields: dict[str, Any], rank: int) -> bool:
    """True if a header has both a sform and a qform, which say different places."""
    if min(fields.get("sform_code", 0), fields.get("qform_code", 0)) <= 0:
        return False
    worlds = [world_of({**fields, code: 0}, 3) for code in _CODES]
    columns = [[*world.vectors, world.origin] for world in worlds if world is not None]
    if len(columns) < 2:
        return True
    # Of axes that the image lacks, columns count only if both forms have them; 3 is the origin.
    return any(
        abs(x - y) > SLACK
        for number, (a, b) in enumerate(zip(*columns, strict=True))
        if number == 3 or number < rank or (a and b)
        for x, y in zip(a or (0.0,) * 3, b or (0.0,) * 3, strict=True)
    )


def _take_pixdim(
    kept: list[float], written: dict[str, Any], axes: Sequence[Axis], old_numbers: list[int] | None
) -> list[str]:
    """Put back the numbers of `pixdim` whose axes still have that spacing, and those of no axis."""
    if old_numbers is None:  # the spacings are those of other axes
        return ["nifti form (pixdim)"] * (not all(number >= 0 for number in kept[1:]))
    rank, pixdim = len(old_numbers), written["pixdim"]
    pixdim[0] = kept[0] if (kept[0] < 0) == (pixdim[0] < 0) else pixdim[0]
    pixdim[rank + 1 :] = kept[rank + 1 :]
    for number, old_number in enumerate(old_numbers):
        axis = axes[number] if axes else Axis()
        if axis.direction is None and _spacing(kept[old_number + 1], axis.units) == axis.spacing:
            pixdim[number + 1] = kept[old_number + 1]
    return []


def _means_the_same(written: dict[str, Any], values: dict[str, Any], rank: int) -> bool:
    """True if a header has the same meaning with and without these values of fields."""
    return meaning_of({**written, **values}, rank).is_same(meaning_of(written, rank))


def _of_form(name: object, kept: Any, layout: Layout) -> Any:
    """Return the value of a field that `_form_of` recorded; None if the layout cannot hold it."""
    if name not in {key for key, *_ in layout.fields}:
        return None
    if name in _FORM_TEXTS:
        if not isinstance(kept, str):
            return None
        try:
            raw = bytes.fromhex(kept)
        except ValueError:
            return None
        return raw if len(raw) <= _FORM_TEXTS[name] else None
    if name == "dim":
        code = next(code for key, code, _ in layout.fields if key == "dim")
        fine = isinstance(kept, list) and all(_is_integer(number, code) for number in kept)
        return kept if fine else None
    if name in _REALS:
        return _number(kept, layout)
    if name in _CODES:
        code = next(code for key, code, _ in layout.fields if key == name)
        return kept if _is_integer(kept, code) else None
    if name not in _FORM_LISTS or not isinstance(kept, list) or len(kept) != _FORM_LISTS[name]:
        return None
    numbers = [_number(number, layout) for number in kept]
    return None if None in numbers else numbers


def _is_integer(value: object, code: str) -> bool:
    """True for an integer that a field of this struct code holds."""
    signed, bits = _BITS[code]
    return type(value) is int and signed << bits <= value < 1 << bits


# --- writing --------------------------------------------------------------------------------------


def fields_of(
    array: Array, layout: Layout, given: Array | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """Return the fields of a header, the extensions, and names of what is lost of the metadata.

    `given`: the array without the axes that `with_three_axes` added; losses have its numbers of
    axes. Numbers are rounded to those of the layout. Raises nothing.
    """
    given = array if given is None else given
    lost: list[str] = []
    if not array.described:
        return _fields(Meaning("", [], {}), array.ndim, layout, lost, lost, []), [], lost
    meta = array.meta
    own = meta.formats.get(NAMESPACE)
    own = own if isinstance(own, dict) else {}
    factors = _factors_of(array, own)
    meaning = Meaning(meta.description or "", array.ra_axes, own | factors, meta.space)
    unplaced: list[str] = []
    by_axis: list[list[str]] = [[] for _ in meaning.axes]
    fields = _fields(meaning, array.ndim, layout, lost, unplaced, by_axis)
    lost += _take_form(meaning, fields, max(array.ndim, 1), layout, unplaced)
    _take_ones(meaning.axes, fields, by_axis)
    del by_axis[3 - (array.ndim - given.ndim) : 3]
    lost += facts_of_axes(given, by_axis)
    written = _FACTORS if factors else ()
    rest = {name: value for name, value in meta.attributes.items() if name not in written}
    without_factors = Array(
        array.element, array.dims, index_order=array.index_order,
        meta=meta.replace(attributes=rest),
    )  # fmt: skip
    lost += facts_of(without_factors, "description", "axes", "space", NAMESPACE)
    extensions = own.get("extensions", [])
    if not _are_extensions(extensions):
        lost.append("extensions")
        extensions = []
    elif any(len(extension["data"]) // 2 % 16 != 8 for extension in extensions):
        lost.append("extensions (padded with zeros to a multiple of 16 bytes)")
    return fields, extensions, lost


def _factors_of(array: Array, own: dict[str, Any]) -> dict[str, float]:
    """Return the fields of a scale that the attributes give, unless the namespace has one.

    A slope of 0 would be no scale in NIfTI, and elements of the other signedness other values.
    """
    if array.meta.attributes.keys().isdisjoint(_FACTORS) or not own.keys().isdisjoint(_SCALE):
        return {}
    try:
        scale = scale_of(array)
    except RaconvertError:  # attributes without a meaning are named as lost with the others
        return {}
    if scale is None or not scale.packs or scale.unsigned is not None or scale.slope == 0:
        return {}
    factors = {"scl_slope": 1.0 if scale.slope is None else scale.slope}
    return factors | ({"scl_inter": scale.intercept} if scale.intercept else {})


def _fields(
    meaning: Meaning, rank: int, layout: Layout, lost: list[str], unplaced: list[str],
    by_axis: list[list[str]],
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a header that has this meaning, in the form that we write."""
    written: dict[str, Any] = {"pixdim": [1.0] * 8}
    _take_own(meaning.own, written, lost, layout)
    _take_axes(meaning.axes, written, by_axis, layout)
    _take_space(meaning, rank, written, unplaced, layout)
    _take_text(meaning.description, "descrip", 80, written, lost, "description")
    if not written.keys() & set(_SCALE):
        written["scl_slope"] = 1.0
    return written


def _take_own(
    own: dict[str, Any], written: dict[str, Any], lost: list[str], layout: Layout
) -> None:
    """Put the fields of the namespace into the header; those of a wrong form are lost."""
    codes = {name: code for name, code, _ in layout.fields}
    for name, value in own.items():
        if name in ("axes", "version", "extensions", "form"):
            continue
        if name in (*_NUMBERS, "xyzt_units") and name in codes and _is_integer(value, codes[name]):
            written[name] = value
        elif name in _REALS and is_real(value):
            written[name] = _rounded(float(value), layout.real, name, lost)
        elif name in _LISTS and are_reals(value, _LISTS[name]):
            written[name] = [_rounded(float(number), layout.real, name, lost) for number in value]
        elif name in _TEXTS and name in codes:
            _take_text(value, name, _TEXTS[name], written, lost, name)
        else:
            lost.append(f"nifti {name}")


def _old_numbers(axes: Any, rank: int) -> list[int] | None:
    """Return the number that each axis had in the source; None if unknown or inconsistent."""
    listed = axes if isinstance(axes, list) else []
    numbers = [entry.get("place") if isinstance(entry, dict) else None for entry in listed]
    fine = all(type(number) is int for number in numbers) and sorted(numbers) == list(range(rank))
    return numbers if fine else None


def _take_space(
    meaning: Meaning, rank: int, written: dict[str, Any], lost: list[str], layout: Layout
) -> None:
    """Put sform and qform into the fields."""
    values, qfac, missing = fields_of_space(meaning.axes, meaning.space, max(rank, 1), layout)
    lost += missing
    written["pixdim"][0] = qfac
    for name, value in values.items():
        if name == "quatern":  # the sform says it more exactly
            written[name] = [_rounded(part, layout.real, name, []) for part in value]
        elif isinstance(value, list):
            written[name] = [_rounded(part, layout.real, "space", lost) for part in value]
        else:
            written[name] = value


def _take_axes(
    axes: Sequence[Axis], written: dict[str, Any], by_axis: list[list[str]], layout: Layout
) -> None:
    """Put spacings, units and the origin of times into the fields; list what each axis loses."""
    units = 0
    rest = written.get("xyzt_units", 0)
    space = {axis.units for axis in axes[:3]} - {None}
    for number, (axis, lost) in enumerate(zip(axes[:MAX_RANK], by_axis, strict=False)):
        if axis.spacing is not None:
            value = float(axis.spacing) if is_real(axis.spacing) else 0.0
            value = abs(value) if axis.direction is not None else value
            if value > 0:
                noted = [] if axis.direction is not None else lost  # the sform has it, too
                written["pixdim"][number + 1] = _rounded(value, layout.real, "spacing", noted)
            else:
                lost.append("spacing")
        if number == 3 and axis.direction is None and is_real(axis.origin):
            written["toffset"] = _rounded(float(axis.origin or 0), layout.real, "origin", lost)
            axis = axis.replace(origin=None)  # noqa: PLW2901
        if axis.origin is not None and axis.direction is None:
            lost.append("origin")
        codes = SPACE_CODES if number < 3 else TIME_CODES if number == 3 else {}
        if axis.units is None:
            shared = space & SPACE_CODES.keys() if number < 3 and len(space) == 1 else ()
            lost.extend(f"units unknown: written as {unit}" for unit in shared)
        elif axis.units in codes and (number == 3 or len(space) == 1):
            units |= codes[axis.units]
        else:
            lost.append("units")
    for axis, lost in zip(axes, by_axis, strict=True):
        lost.extend(fields_of_axes([axis], "name", "labels", "kind"))
    rest &= ~(7 if units & 7 else 0) & ~(56 if units & 56 else 0)
    written["xyzt_units"] = units | rest


def _take_ones(axes: Sequence[Axis], fields: dict[str, Any], by_axis: list[list[str]]) -> None:
    """Name the facts lost since a `pixdim` of 1 is a spacing only if its units are stated."""
    has_form = bool(fields.get("sform_code") or fields.get("qform_code"))
    read = _axes(fields, len(axes[:MAX_RANK]))
    for axis, read_axis, lost in zip(axes[:MAX_RANK], read, by_axis[:MAX_RANK], strict=True):
        if axis.direction is not None and has_form:
            continue
        if axis.spacing is None and read_axis.spacing is not None:
            lost.append(UNKNOWN)
        elif axis.spacing == 1 and read_axis.spacing is None:
            lost.append(OF_ONE)


def _take_text(
    text: Any, name: str, nbytes: int, written: dict[str, Any], lost: list[str], what: str
) -> None:
    """Put a text into a field of `nbytes` bytes, or its name `what` into the list of losses."""
    if not text:
        return
    raw = text.encode("latin-1", "replace") if isinstance(text, str) else b""
    if isinstance(text, str) and len(raw) <= nbytes and _text(raw) == text:
        written[name] = raw
    else:
        lost.append(what)


def _rounded(value: float, real: str, what: str, lost: list[str]) -> float:
    """Return the number that the header holds; `what` is named as lost if it is rounded."""
    try:
        kept: float = struct.unpack(real, struct.pack(real, value))[0]
    except OverflowError:
        lost.append(what)
        return 0.0
    if kept != value and f"{what} rounded to float32" not in lost:
        lost.append(f"{what} rounded to float32")
    return kept


def _are_extensions(value: object) -> bool:
    """True for a list of extensions as `extensions_of` returns it."""
    return isinstance(value, list) and all(map(_is_extension, value))


def _is_extension(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"code", "data"}:
        return False
    code, data = value["code"], value["data"]
    if type(code) is not int or not 0 <= code < 1 << 32 or not isinstance(data, str):
        return False
    try:
        bytes.fromhex(data)
    except ValueError:
        return False
    return True
