"""Attributes as plain values and back, and the metadata that no attribute holds.

The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On a variable:
what dimensions, coordinates and attributes do not hold, what the array `was`, and `axis_of` on
coordinates made from an axis. On the file: attributes of other types, groups, namespaces.

An attribute is a list of numbers of one type, or a text. Its type, which the value does not tell,
is remembered as that of the same attribute in netCDF-4, in the namespace and the words of `hdf5`:
a classic file and its copy by the library of netCDF say the same.
"""

from __future__ import annotations

from raconvert.arrays.interop.conventions import MISSING
from raconvert.arrays.scales import type_of_attribute
from raconvert.errors import WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY, LOCAL, common_names, divided
from raconvert.metadata.yaml import alike
from raconvert.plugin import Axis, Metadata

from ..hdf5.tables import NAMESPACE as HDF5
from .header import Attribute, Dimension, Header, Variable, beyond, laid_out, smallest, text_of
from .structure import Coordinates, key_of, read_element, stored
from .tables import CHAR, CLASSIC, CODES, DOUBLE, ELEMENTS, INT, NAMESPACE, TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from raconvert.plugin import Bundle, Target

    from .structure import Form, Structure

    Types = dict[str, dict[str, Any]]  # of attributes, by name

_USUAL_TYPES = (DOUBLE, TYPES["i8"])  # of numbers whose type is not remembered
INT32, INT64, UINT64 = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63), range(1 << 64)


# Reading ------------------------------------------------------------------------------------------


def values_of(
    attributes: list[Attribute], of: str, notes: list[str]
) -> tuple[dict[str, Any], Types]:
    """Return the plain values of attributes, and the types that are worth remembering."""
    values = {attribute.name: value_of(attribute, of, notes) for attribute in attributes}
    return values, types_of(attributes)


def types_of(attributes: list[Attribute]) -> Types:
    """Return types in the words of `hdf5`; those of `_USUAL_TYPES` are left out."""
    types: Types = {}
    for attribute in attributes:
        if attribute.type == CHAR:
            text = {"class": "string", "size": max(1, attribute.length), "padding": "nullterm"}
            charset = "ascii" if attribute.raw.isascii() else "utf-8"
            types[attribute.name] = {"type": {**text, "charset": charset}, "shape": []}
        elif attribute.type not in _USUAL_TYPES:
            order = "|" if ELEMENTS[attribute.type].nbytes == 1 else "<"
            shape = [] if attribute.length == 1 else [attribute.length]
            types[attribute.name] = {"type": order + CODES[attribute.type], "shape": shape}
    return types


def value_of(attribute: Attribute, of: str, notes: list[str]) -> Any:
    """Return a number, a list of numbers, or a text without the NULs at its end."""
    if attribute.type == CHAR:
        what = f"attribute '{attribute.name}' of {of}"
        return text_of(attribute.raw.rstrip(b"\0"), what, notes)
    import numpy as np

    from raconvert.metadata.reals import doubles

    values = np.frombuffer(attribute.raw, f">{CODES[attribute.type]}")
    listed: list[Any] = (doubles(values) if values.dtype.kind == "f" else values).tolist()
    return listed[0] if len(listed) == 1 else listed


def remembered(types: Types) -> dict[str, Any]:
    """Return the fields of the namespace `hdf5` that keep types of attributes.

    Texts, and integers of 32 bits, would be written as such again: no record of another format
    keeps their types alone.
    """
    if not types:
        return {}
    usual = all(
        isinstance(entry["type"], dict) or entry["type"] == "<i4" for entry in types.values()
    )
    return {"attributes": types, **({LOCAL: ["attributes"]} if usual else {})}


# Writing ------------------------------------------------------------------------------------------


class Writing:
    """Maker of attributes: it knows which types they may have.

    `most` is the last type that is written because metadata remembers it; `large` is True if
    integers of more than 32 bits may be attributes.
    """

    def __init__(self, most: int, *, large: bool) -> None:
        self.most = most
        self.large = large

    def attribute(
        self, name: str, value: Any, meta: Metadata, missing: int | None = None
    ) -> tuple[Attribute | None, bool]:
        """Return the attribute of a value, and True if it is read back as that very value.

        None if no attribute holds it. `meta` remembers types; `missing` is the type of the
        variable, which that of `_FillValue` has to be.
        """
        if name == KEY or key_of(name) != name:
            return None, False
        if isinstance(value, str):
            return _text(name, value, filling=name == MISSING and missing == CHAR)
        numbers = value if isinstance(value, list) else [value]
        kinds = {*map(type, numbers)}
        if len(kinds) > 1 or not kinds <= {int, float}:
            return None, False
        if name == MISSING and missing is not None:
            if CODES.get(missing, "")[:1] == "f":  # the elements may have been integers before
                numbers = [_as_float(n) for n in numbers]
            made = _numbers(name, numbers, missing) if missing != CHAR else None
            return made, made is not None and _is_same(made, value)
        code = type_of_attribute(meta, name) or ""
        candidates = [TYPES.get(code, 0), *self._usual(numbers)]
        for number in candidates:
            made = _numbers(name, numbers, number) if self._may_be(number) else None
            if made is not None:
                return made, _is_same(made, value)
        return None, False

    def _may_be(self, number: int) -> bool:
        """True if an attribute may have the type with this number."""
        is_large = self.large and number in (TYPES["i8"], TYPES["u8"])
        return 0 < number <= self.most or is_large

    def _usual(self, numbers: list[Any]) -> list[int]:
        """Return the types that numbers get if none is remembered, the first that fits first."""
        if not numbers or type(numbers[0]) is float:
            return [DOUBLE]
        if all(number in INT32 for number in numbers):
            return [INT]
        if not self.large:
            return []
        wide = ((INT64, "i8"), (UINT64, "u8"))
        return [TYPES[code] for span, code in wide if all(number in span for number in numbers)]


def _text(name: str, value: str, *, filling: bool) -> tuple[Attribute | None, bool]:
    """Return the attribute of a text, and True since it keeps the value; else None and False.

    `filling` is True for a fill value.
    """
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return None, False
    if raw.endswith(b"\0"):
        return None, False
    raw = raw or b"\0" * filling  # the library of Unidata takes no empty fill value
    return Attribute(name, CHAR, len(raw), raw, name.encode()), True


def _numbers(name: str, numbers: list[Any], number: int) -> Attribute | None:
    """Return the attribute of numbers in a type; None if that does not hold them exactly."""
    import numpy as np

    from raconvert.metadata.reals import narrowed

    dtype = np.dtype(CODES[number])
    try:
        if dtype.kind == "f":
            values = narrowed(np.array(numbers, np.float64), dtype)
        else:
            values = np.array(numbers, dtype)
    except (OverflowError, ValueError, TypeError):  # numbers that the type does not have
        return None
    raw = values.astype(dtype.newbyteorder(">")).tobytes()
    made = Attribute(name, number, len(numbers), raw, name.encode())
    value = value_of(made, "", [])
    value = value if isinstance(value, list) else [value]
    return made if repr(value) == repr(numbers) and alike(value, numbers) else None


def _as_float(number: Any) -> Any:
    """Return an integer as the float of its value, if there is one; any other number as it is."""
    exact = type(number) is int and abs(number) < 1 << 63 and float(number) == number
    return float(number) if exact else number


def _is_same(attribute: Attribute, value: Any) -> bool:
    """True if an attribute with these numbers is read as a list, as the value is, or as one."""
    return isinstance(value_of(attribute, "", []), list) == isinstance(value, list)


def record_attribute(record: dict[str, Any]) -> list[Attribute]:
    """Return the attribute with the text of a record, in a list; an empty list without a record."""
    if not record:
        return []
    raw = roundtrip.text_of(record).encode()
    return [Attribute(KEY, CHAR, len(raw), raw, KEY.encode())]


def without_types(
    formats: Mapping[str, Mapping[str, Any]], written: list[Attribute], own: int = 0
) -> dict[str, dict[str, Any]]:
    """Return namespaces without the types that the attributes have; `own`: see `settled`."""
    rest = {name: dict(space) for name, space in formats.items() if name != NAMESPACE}
    types = rest.get(HDF5, {}).get("attributes")
    if types is not None and types == settled(types_of(written), own):
        del rest[HDF5]["attributes"]
    return {name: space for name, space in rest.items() if space}


def settled(types: Types, own: int) -> Types:
    """Return types without that of `_FillValue` if it is `own`, the type of the variable."""
    code = types.get(MISSING, {}).get("type", "")
    if own and isinstance(code, str) and code.lstrip("<|") == CODES.get(own):
        return {name: kept for name, kept in types.items() if name != MISSING}
    return types


def most_of(version: str, types: list[int]) -> int:
    """Return the last type that is written because metadata remembers it; see `Writing`."""
    wide = version == "5" or (version == "auto" and any(number > CLASSIC for number in types))
    return max(CODES) if wide else CLASSIC


# The header to be ---------------------------------------------------------------------------------


class Draft:
    """A file to be written: variables with their attributes, and the version that is asked for.

    `hidden` has the names of attributes that only raconvert reads, by array; `hidden_of_file` those
    of the file.
    """

    def __init__(self, bundle: Bundle, structure: Structure, version: str) -> None:
        self.bundle = bundle
        self.structure = structure
        self.version = version
        most = most_of(version, [form.type for form in structure.forms])
        self._writing = Writing(most, large=version in ("auto", "5"))
        self._read_back: Coordinates | None = None
        self.hidden: dict[str, list[str]] = {}
        self._attributes = {form.key: self._divided(form) for form in structure.forms}
        self.hidden_of_file: list[str] = []
        self._of_file = self._whole()

    # the header

    def header(self, *, with_axes: bool) -> Header:
        """Return the header, not laid out; `with_axes`: with the axes that only a record holds.

        To know these, the values of coordinates are read.
        """
        structure = self.structure
        names = {name: number for number, name in enumerate(structure.lengths)}
        dims = [
            Dimension(name, None if name == structure.unlimited else length, name.encode())
            for name, length in structure.lengths.items()
        ]
        variables = [
            Variable(
                form.key, tuple(names[name] for name in form.dims),
                self._attributes_of(form, with_axes=with_axes), form.type, 0, form.key.encode(),
            )
            for form in structure.forms
        ]  # fmt: skip
        records = structure.lengths[structure.unlimited] if structure.unlimited else 0
        return Header(1, records, dims, self._of_file, variables, 0)

    def sized(self, header: Header, path: str) -> Header:
        """Return a header laid out in the version that is asked for.

        Raises `WouldLose` if it has no room in that version, now that axes in records are counted.
        """
        if self.version == "auto":
            return smallest(header)
        made = laid_out(header._replace(version=int(self.version)))
        for key, reason in beyond(made):
            needed = f", which '{key}' needs" if key else ""
            raise WouldLose(
                f"CDF-{self.version} has {reason}{needed}", path=path,
                remedy="write another version with `--out-opt version=5`; nothing was written",
            )  # fmt: skip
        return made

    # attributes

    def _divided(self, form: Form) -> tuple[list[Attribute], dict[str, Any]]:
        """Return the attributes of a variable, and the record of what they do not hold."""
        if form.axis_of:
            values: dict[str, Any] = dict(form.type_attributes)
            units = form.array.meta.units
            values |= {"units": units} if units else {}
            values |= form.array.meta.attributes
            return self._written(form, values)[0], {"axis_of": form.axis_of}
        array = form.array
        fields = roundtrip.record_of(array)
        common = common_names(fields)
        own, rest = divided(fields, common, frozenset(form.type_attributes))
        attributes, left = self._written(form, {**form.type_attributes, **own})
        record: dict[str, Any] = {
            field: fields[field] for name, field in common.items() if name in left
        }
        rest |= {name: value for name, value in left.items() if name not in common}
        seen = {attribute.name for attribute in attributes}
        self.hidden[array.name] = [name for name in rest if name not in seen]
        formats = without_types(fields.get("formats", {}), attributes, form.type)
        record |= {"attributes": rest} if rest else {}
        record |= {"formats": formats} if formats else {}
        record |= {"space": fields["space"]} if "space" in fields else {}
        if fields.get("encoding") and not form.type_attributes:
            record["encoding"] = fields["encoding"]
        was = self._was(form)
        return attributes, {**record, **({"was": was} if was else {})}

    def _written(
        self, form: Form, values: dict[str, Any]
    ) -> tuple[list[Attribute], dict[str, Any]]:
        """Return attributes, and the values that are not read back as they are."""
        attributes, left = [], {}
        for name, value in values.items():
            made, same = self._writing.attribute(name, value, form.array.meta, form.type)
            attributes += [made] if made is not None else []
            left.update({} if same else {name: value})
        return attributes, left

    def _was(self, form: Form) -> dict[str, Any]:
        """Return the record of the name and the type that the array had."""
        array = form.array
        dims = (2, *array.dims) if array.element.kind == "complex" else array.dims
        back = array.replace(
            name=form.key, element=read_element(form), dims=dims, extent=None, data=None,
            meta=array.meta.without_axes(),
        )  # fmt: skip
        was = roundtrip.difference(array, array, back)
        is_bytes = form.type == CHAR and form.inner and not form.type_attributes
        return {**was, **({"type": array.element.descr} if is_bytes else {})}

    def _whole(self) -> list[Attribute]:
        """Return the attributes of the file, the record of what they do not hold among them."""
        bundle = self.bundle
        meta = _meta_of_file(bundle)
        attributes: list[Attribute] = []
        left: dict[str, Any] = {}
        for name, value in bundle.attributes.items():
            made, same = self._writing.attribute(name, value, meta)
            attributes += [made] if made is not None else []
            left.update({} if same else {name: value})
            self.hidden_of_file += [name] if made is None else []
        record = roundtrip.record_of_file(bundle)
        record.pop("attributes", None)
        formats = without_types(record.pop("formats", {}), attributes)
        record |= {"attributes": left} if left else {}
        record |= {"formats": formats} if formats else {}
        return [*attributes, *record_attribute(record)]

    def _attributes_of(self, form: Form, *, with_axes: bool) -> list[Attribute]:
        """Return the attributes of a variable, with a record of what they do not hold."""
        attributes, record = self._attributes[form.key]
        axes = self._axes_unread(form) if with_axes and not form.axis_of else None
        return [*attributes, *record_attribute({**record, **({"axes": axes} if axes else {})})]

    def _axes_unread(self, form: Form) -> list[dict[str, Any]] | None:
        """Return the axes of an array, fastest first; None if they are read from coordinates.

        A coordinate that is an array may say more than an axis, which no record takes away.
        """
        array = form.array
        if not array.ndim:
            return None
        dims = form.dims[: array.ndim]
        read = self._coordinates().axes_of(form.key, dims, array.dims[::-1])
        axes = list(array.ra_axes[::-1]) or [Axis()] * array.ndim
        wanted = [axis.to_dict() for axis in axes]
        same = [
            facts == meant or (name in self.structure.scales and _says_more(facts, meant))
            for name, facts, meant in zip(dims, map(Axis.to_dict, read), wanted, strict=True)
        ]
        return None if all(same) else wanted[::-1]

    def _coordinates(self) -> Coordinates:
        """Return the coordinates as they will be read."""
        if self._read_back is None:
            made = {key: form.array for key, form in self.structure.made.items()}
            self._read_back = Coordinates({**self.structure.scales, **made}, DEFAULT)
        return self._read_back

    # the file

    def write(self, target: Target) -> None:
        """Write the whole file."""
        from .writer import write_file

        header = self.sized(self.header(with_axes=True), target.path)
        arrays = [stored(form, target.path) for form in self.structure.forms]
        write_file(header, arrays, target)


def _says_more(facts: dict[str, Any], meant: dict[str, Any]) -> bool:
    """True if the first axis has all facts of the second one, and the same name."""
    return {**facts, **meant} == facts and facts.get("name") == meant.get("name")


def _meta_of_file(bundle: Bundle) -> Any:
    """Return metadata whose namespaces remember the types of the attributes of the file."""
    formats = {name: space for name, space in bundle.formats.items() if isinstance(space, dict)}
    return Metadata(formats=formats)
