"""Record of an array as it was before a format changed it, from which it is restored exactly.

A format may hold an array only in a form of its own, and only a part of its metadata. The *record*
is a mapping of all that the file itself does not hold:

``was``
    how the array differs from what the file holds (`difference`): `type` in the notation of the
    NPY header, `shape` in logical order, `index_order`, `name`
``description``, ``units``, ``encoding``, ``axes``, ``attributes``, ``formats``
    as in `Metadata`; axes without the fields that the file holds
``index_order``, ``dtype``
    of an .ra, which lists its dims only and holds any user elements as bytes
``describes``
    facts that prove that a record is about this very data
``attributes``, ``groups``, ``formats``, ``aliases``
    of a file as a whole (`record_of_file`)

`record_of` makes it and `apply` restores the array. It is stored in the sidecar, as YAML
(`raconvert.metadata.sidecar`), or as the text of `text_of` if the format can hold text:
a key/value pair of NRRD, an attribute of HDF5, both named `raconvert`.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import (
    NUMBERS,
    Element,
    code_of,
    described,
    dtype_of,
    element_from,
    frozen,
    is_float8,
    little,
    type_name,
)
from raconvert.arrays.memory import MAX_RANK
from raconvert.arrays.metadata import NAME as RA
from raconvert.arrays.metadata import Axis, Metadata, Space, in_dims_order
from raconvert.arrays.reinterpret import (
    UTF8,
    Reshaped,
    are_pairs,
    as_complex,
    as_text,
    as_utf8,
    from_utf8,
    is_void,
    letter_of,
    seen_as,
)
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, Unsupported, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.files.limits import Limits

# An array in the type and the shape that a record promises, every value checked ------------------
# Only conversions that keep every value: numbers to another type, pairs to complex numbers, text to
# another kind or width, and bytes to the type that the record gives. Anything else is `Corrupt`.


BOOLS = (0, 1, 255)  # numbers that stand for false and true; images have 255


class Terms(Record):
    """Terms of restoring a record: path for messages, encoding, bools, remedy; see `restored`."""

    path: str
    encoding: Any
    bools: tuple[int, ...]
    remedy: str | None
    limits: Limits


def as_type(array: Array, code: Any, terms: Terms) -> Array:
    """Return the array as elements of the type `code`, every value checked while it streams.

    Raises `Corrupt` for a code that is not a type, or one that the elements cannot have had.
    """
    try:
        element = element_from(frozen(code))
        dtype = dtype_of(element)
        if dtype.hasobject:
            raise TypeError("it has pointers to Python objects")
    except _NO_TYPE as error:
        raise Corrupt(
            "metadata has an unreadable type", path=terms.path, got=repr(code)[:80]
        ) from error
    if are_pairs(array, element):
        return as_complex(array, element)
    if array.element.kind in NUMBERS and element.kind in NUMBERS:
        from raconvert.arrays import cast as casting

        if element.kind == "bool":
            converted = casting.as_bool(array, terms.bools)
        else:
            converted = casting.cast(array, dtype.name)
        if converted is array:
            return array
        return converted.replace(data=_Promised(converted, terms))
    user = _as_user(array, element, terms) if element.kind == "user" else None
    if user is not None:
        return user
    raise Corrupt(
        f"metadata gives array '{array.name}' a type that it cannot have had",
        path=terms.path,
        expected=f"a form of {type_name(array.element)}",
        got=type_name(element),
    )


def _as_user(array: Array, element: Element, terms: Terms) -> Array | None:
    """Return the array as text, dates or structures; None if it cannot have been such."""
    letters = letter_of(array.element) + letter_of(element)
    same_width = array.element.nbytes == element.nbytes
    fits = element.nbytes <= terms.limits.document_bytes
    if array.element.kind != "user":
        is_count = little(array.element) == _COUNT and letters[1] in "Mm"
        return _as_times(array, element) if is_count and same_width else None
    if letters == "US" and terms.encoding == UTF8:
        return as_utf8(array, element, terms.path)
    if letters == "SU" and array.meta.encoding == UTF8 and fits:
        return from_utf8(array, element, terms.path)
    if letters in _TEXTS and fits:
        return as_text(array, element, terms.path)
    if is_float8(array.element) and is_float8(element):  # a format may have one type for several
        return seen_as(array, element)
    of_bytes = is_void(array.element) or isinstance(array.element.descr, tuple)
    return seen_as(array, element) if of_bytes and same_width else None


def _as_times(array: Array, element: Element) -> Array:
    """Return integers as dates or durations: the stored bytes, if they are in their byte order."""
    order, extent = str(element.descr)[0], array.extent
    if extent is None or order != ("<" if extent.swap == 1 else ">"):
        from raconvert.arrays.cast import Converted

        dtype, number = dtype_of(element), f"{order}i8"
        data = Converted(array, dtype, lambda block, _: block.astype(number).view(dtype))
        return array.replace(element=element, extent=None, data=data)
    # Numbers are reversed while they are read, dates are not: their type has the byte order.
    stored = Extent(extent.path, extent.offset, extent.nbytes, 1, extent.identity, extent.checksum)
    return array.replace(element=element, extent=stored, data=None)


# Errors of a code that is not a type.
_NO_TYPE = (
    Unsupported, TypeError, ValueError, SyntaxError, LookupError, AttributeError, OverflowError,
    RecursionError,
)  # fmt: skip
_COUNT = Element("int", 8, "<")  # the type of dates and durations in formats without such
_TEXTS = ("SS", "UU", "SU", "US")


class _Promised:
    """Array source: values in the type that a record promises; `Corrupt` if one does not fit.

    (`WouldLose`, with its flags, is for conversions that the user asks for.)
    """

    def __init__(self, array: Array, terms: Terms) -> None:
        self.shape = array.dims[::-1]
        self.dtype = array.dtype
        self._array = array
        self._terms = terms

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield the blocks of the converted array."""
        from raconvert.arrays.blocks import blocks

        try:
            yield from blocks(self._array, max_bytes)
        except WouldLose as error:
            raise self._corrupt(error) from error

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._array.data[key]
        except WouldLose as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: WouldLose) -> Corrupt:
        return Corrupt(
            f"metadata promises another type: {error.what}",
            path=self._terms.path,
            where=error.where,
            remedy=self._terms.remedy,
        )


def as_shape(array: Array, shape: Any, path: str) -> Array:
    """Return the array in a shape with other axes of length 1, without metadata of axes."""
    is_shape = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or len(shape) > MAX_RANK or not _same_but_ones(shape, array.shape):
        raise Corrupt(
            f"metadata gives array '{array.name}' a shape that it cannot have had",
            path=path,
            expected=f"{list(array.shape)}, but for axes of length 1",
            got=repr(shape)[:80],
        )
    dims = tuple(shape if array.index_order == "F" else shape[::-1])
    data = None if array.extent else Reshaped(array, dims[::-1])
    return array.replace(dims=dims, data=data, meta=array.meta.without_axes())


def _same_but_ones(a: list[int], b: tuple[int, ...]) -> bool:
    return [n for n in a if n != 1] == [n for n in b if n != 1]


KEY = "raconvert"  # the name of an attribute with the text of a record, and of the version in it
LOCAL = "local"  # in the namespace of a format: the names of fields that no record has
VERSION = 2


# --- the record of an array -----------------------------------------------------------------------


def record_of(
    array: Array, was: dict[str, Any] | None = None, *, beside_ra: bool = False
) -> dict[str, Any]:
    """Return the record of an array: all its metadata, and what it `was` (see `difference`).

    `beside_ra`: the record is for a file beside an .ra, which itself has type and dims, RA's own
    namespace and a trailer. A format may take out of the record what its file holds.
    """
    fields: dict[str, Any] = {}
    column_major = array.index_order == "F" and not array.row_major and array.ndim > 1
    if beside_ra and column_major:
        fields["index_order"] = "F"
    if beside_ra and array.element.kind == "user" and not is_void(array.element):
        fields["dtype"] = code_of(array.element)
    meta = in_dims_order(array.meta.to_dict(), array.index_order)
    formats = {
        name: without_extents(without_local(space))
        for name, space in meta.get("formats", {}).items()
        if not (beside_ra and name == RA)
    }
    meta.pop("formats", None)
    fields.update(meta)
    if any(formats.values()):
        fields["formats"] = {name: space for name, space in formats.items() if space}
    if array.meta.items is not None:
        fields["items"] = True
    if was:
        fields["was"] = was
    return fields


def without_extents(space: dict[str, Any]) -> dict[str, Any]:
    """Return a namespace without extents, which are bytes of their own file (RA trailers)."""
    return {key: value for key, value in space.items() if not isinstance(value, Extent)}


def without_local(space: Any) -> Any:
    """Return a namespace without the fields that are of no use in a file of another format.

    The namespace itself lists their names under `LOCAL`: the rest of the metadata has the same
    facts, or they are about the very file that was read.
    """
    local = space.get(LOCAL) if isinstance(space, dict) else None
    if not isinstance(local, list):
        return space
    return {key: value for key, value in space.items() if key != LOCAL and key not in local}


def apply(
    record: dict[str, Any],
    array: Array,
    path: str,
    limits: Limits,
    *,
    complete: bool = False,
    bools: tuple[int, ...] = BOOLS,
    remedy: str | None = None,
) -> Array:
    """Return the array that a record describes; `Corrupt` for wrong types and contradictions.

    `path` names the file with the record in messages. `complete`: the record replaces the metadata
    that the file itself has, and is not merged with it. `bools` and `remedy`: see `restored`.
    """
    check_form(record, path)
    if "was" in record:
        encoding = record.get("encoding")
        array = restored(
            array, record["was"], path, limits, encoding=encoding, bools=bools, remedy=remedy
        )
    _check_axes(record, array, path)
    order = record.get("index_order", "C")
    if order not in ("C", "F"):
        raise Corrupt(
            "metadata has an unknown index order", path=path, expected="C or F", got=order
        )
    if "dtype" in record:  # set in place: a source that is not open yet asks this array for it
        array.element = _described(array.element, frozen(record["dtype"]), path)
    if "index_order" in record and order != array.index_order:
        array = array.listed(order)
    stored = Metadata.from_dict(in_dims_order(record, array.index_order))
    array.meta = stored if complete else array.meta.merged(stored)
    return array


# Field of a record -> the type that its value must have.
_TYPES = {
    "index_order": str,
    "description": str,
    "units": str,
    "encoding": str,
    "axes": list,
    "attributes": dict,
    "formats": dict,
    "space": dict,
    "was": dict,
}


# Field of `was` -> the types that its value may have.
_OF_WAS: dict[str, tuple[type, ...]] = {
    "type": (str, list),
    "shape": (list,),
    "index_order": (str, type(None)),
    "name": (str,),
}


def check_form(record: dict[str, Any], path: str) -> None:
    """Refuse (`Corrupt`) fields of the wrong type."""
    for name, kind in _TYPES.items():
        if name in record and not isinstance(record[name], kind):
            raise Corrupt(
                f"metadata field '{name}' has the wrong form",
                path=path,
                expected=kind.__name__,
                got=type(record[name]).__name__,
            )
    for part in ("axes", "formats"):
        values = record.get(part, [])
        values = values.values() if isinstance(values, dict) else values
        if not all(isinstance(value, dict) for value in values):
            raise Corrupt(f"metadata field '{part}' has the wrong form", path=path)
    for axis in record.get("axes", []):
        _check_axis(axis, path)
    if "space" in record and not Space.takes(record["space"]):
        raise Corrupt("metadata field 'space' has the wrong form", path=path)
    for name, kinds in _OF_WAS.items():
        if name in record.get("was", {}) and not isinstance(record["was"][name], kinds):
            raise Corrupt(f"metadata field '{name}' of 'was' has the wrong form", path=path)
    if not all(
        isinstance(name, str)
        for name in (*record.get("attributes", ()), *record.get("formats", ()))
    ):
        raise Corrupt("metadata has a name that is not text", path=path)


def _check_axis(axis: dict[str, Any], path: str) -> None:
    for name in Axis.FIELDS:
        if name in axis and not Axis.takes(name, axis[name]):
            raise Corrupt(
                f"metadata field '{name}' of an axis has the wrong form",
                path=path,
                got=f"{type(axis[name]).__name__}",
            )


def _check_axes(record: dict[str, Any], array: Array, path: str) -> None:
    if "axes" in record and len(record["axes"]) != array.ndim:
        raise Corrupt(
            "metadata describes another number of axes",
            path=path,
            expected=array.ndim,
            got=len(record["axes"]),
        )


def _described(element: Element, descr: Any, path: str) -> Element:
    """Return a user element with a description; `Corrupt` if its width is another one."""
    described = Element("user", element.nbytes, "|", descr)
    try:
        width = dtype_of(described).itemsize
        objects = dtype_of(described).hasobject
    except (*_NO_TYPE, RaconvertError) as error:
        raise Corrupt(f"metadata has an unreadable dtype: {_short(descr)}", path=path) from error
    if element.kind != "user" or width != element.nbytes or objects:
        raise Corrupt(
            "metadata describes other elements than the file holds",
            path=path,
            expected=f"{element.nbytes} bytes each",
            got=f"{_short(descr)} ({width} bytes)",
        )
    return described


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- the form of an array -------------------------------------------------------------------------


def difference(origin: Array, array: Array, back: Array) -> dict[str, Any]:
    """Return the record `was`, by which `restored` makes `array` of `back`, the array read again.

    `origin` is the array before its axes were put into an order that the format can store: a
    column-major format gives an index order to arrays that had none.
    """
    was: dict[str, Any] = {}
    if array.name != back.name:
        was["name"] = array.name
    if described(array.element) != described(back.element):
        was["type"] = code_of(little(array.element))
        if are_pairs(back, array.element):
            back = as_complex(back, array.element)
    if array.index_order not in (None, back.index_order) or (
        back.row_major and array.index_order == "F" and not array.row_major
    ):
        was["index_order"] = array.index_order
        back = back.listed(array.index_order)
    if array.shape != back.shape:
        was["shape"] = list(array.shape)
    if origin.index_order is None and back.index_order == "F":
        was["index_order"] = None
    return was


def restored(
    array: Array,
    was: Any,
    path: str,
    limits: Limits,
    *,
    encoding: Any = None,
    bools: tuple[int, ...] = BOOLS,
    remedy: str | None = None,
) -> Array:
    """Return the array that the record `was` describes; `Corrupt` if the file cannot hold it.

    `path` names the file with the record in messages. `encoding` is that of its bytes
    (`Metadata.encoding`) if the file has them as text. `bools` are the numbers that the format has
    for false and true. `remedy` is the advice for a value that does not fit the promised type.
    """
    if not isinstance(was, dict):
        raise Corrupt("metadata field 'was' has the wrong form", path=path)
    if "type" in was:
        array = as_type(array, was["type"], Terms(path, encoding, bools, remedy, limits))
    order = was.get("index_order", array.index_order)
    if order not in ("C", "F", None):
        raise Corrupt("metadata has an unknown index order", path=path, expected="C or F")
    row_major = array.row_major and "index_order" not in was
    array = array.listed(order or array.index_order, row_major=row_major)
    if "shape" in was:
        array = as_shape(array, was["shape"], path)
    array = array.listed(order)  # last: the recorded shape is in the index order of before
    if "name" in was:
        if not isinstance(was["name"], str):
            raise Corrupt("metadata gives an array a name that is not text", path=path)
        array = array.replace(name=was["name"])
    return array


# --- the record of a file as a whole --------------------------------------------------------------

# Field of a bundle -> type of its values.
OF_FILE: dict[str, type] = {"groups": dict, "attributes": object, "formats": dict, "aliases": str}


def record_of_file(bundle: Bundle) -> dict[str, Any]:
    """Return the metadata of a file as a whole, beside its arrays; empty fields are left out."""
    record = {name: getattr(bundle, name) for name in OF_FILE if getattr(bundle, name)}
    formats = {name: without_local(space) for name, space in record.pop("formats", {}).items()}
    formats = {name: space for name, space in formats.items() if space}
    return {**record, **({"formats": formats} if formats else {})}


def of_file(record: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
    """Return the fields of the record of a file, missing ones empty; `Corrupt` for other types."""
    fields = {}
    for name, kind in OF_FILE.items():
        field = record.get(name, {})
        has_names = isinstance(field, dict) and all(isinstance(key, str) for key in field)
        if not has_names or not all(isinstance(value, kind) for value in field.values()):
            raise Corrupt(f"metadata field '{name}' has the wrong form", path=path)
        fields[name] = field
    return fields


def apply_to_file(
    record: dict[str, Any], bundle: Bundle, path: str, *, complete: bool = False
) -> None:
    """Apply the record of a file to its bundle; with `complete` it replaces what the file has."""
    for name, values in of_file(record, path).items():
        setattr(bundle, name, values if complete else {**getattr(bundle, name), **values})


# --- the text of a record -------------------------------------------------------------------------


def text_of(record: dict[str, Any], limit: int = DEFAULT.document_bytes) -> str:
    """Return a record as one line of ASCII (JSON); `Unsupported` for values that JSON lacks."""
    from raconvert.metadata.json import dumps

    try:
        text = dumps({KEY: VERSION, **record})
    except ValueError as error:
        raise _unkept(str(error)) from error
    if len(text) > limit:
        raise _unkept(f"it is longer than {limit} bytes")
    return text


def _unkept(why: str) -> Unsupported:
    return Unsupported(f"metadata cannot be kept: {why}", remedy="leave it out with `--meta drop`")


def is_marked(text: Any) -> bool:
    """True if a text begins as `text_of` makes it, so that it is not another program's."""
    return isinstance(text, str) and text.startswith(f'{{"{KEY}":')


def record_in(text: str, limits: Limits, *, most: int | None = None) -> dict[str, Any]:
    """Return the record of a text that `text_of`, of this or an earlier version, has made.

    Raises ValueError for any other text, or one longer than `most`; `TooLarge` for one that needs
    more memory than `Limits.memory`. The fields are checked by `apply`.
    """
    if most is not None and len(text) > most:
        raise ValueError(f"it is longer than {most} characters")
    from raconvert.metadata.json import loads

    fields = loads(text, limits)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as every other fault in it
    version = fields.pop(KEY, 0)
    if type(version) is not int or not 0 <= version <= VERSION:
        raise ValueError(f"it has another version, {_short(version)}")
    axes = fields.get("axes")
    for axis in axes if isinstance(axes, list) else ():
        if not isinstance(axis, dict) or not all(Axis.takes(*field) for field in axis.items()):
            raise ValueError("an axis in it has a wrong form")
    if version < VERSION:
        return _of_before(fields)
    return {name: value for name, value in fields.items() if name not in _OF_RA}


_OF_RA = ("index_order", "dtype", "items")  # fields that only a sidecar beside an .ra has
# The fields of `was` in the words of HDF5 (version 1) and of NRRD (which had none).
_BEFORE = {
    "name": "name",
    "dtype": "type",
    "element": "type",
    "dims": "shape",
    "index_order": "index_order",
}
_ELEMENTS = {("bool", "uint8"): "|b1", ("complex", "float"): "<c8", ("complex", "double"): "<c16"}


def _of_before(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the record for the fields of an earlier version."""
    facts = {name: fields.pop(name) for name in ("type", "sizes") if name in fields}
    was = {new: fields.pop(old) for old, new in _BEFORE.items() if old in fields}
    if was.get("type") in ("bool", "complex"):
        was["type"] = _ELEMENTS.get((was["type"], str(facts.get("type"))), was["type"])
    parts = {"was": was, "describes": facts}
    return {**{name: part for name, part in parts.items() if part}, **fields}


FIELDS = {"units": "units", "long_name": "description"}  # attribute -> common field of `Metadata`


def take_record(attributes: dict[str, Any], path: str, limits: Limits) -> dict[str, Any]:
    """Take our record out of attributes; empty without one, or if it is another program's.

    Raises `Corrupt` for a text that begins as a record of ours and is not one.
    """
    text = attributes.get(KEY)
    if text is None or not is_marked(text):
        return {}
    del attributes[KEY]
    try:
        record = record_in(text, limits)
    except ValueError as error:
        raise Corrupt(f"attribute '{KEY}' is not a record of ours: {error}", path=path) from error
    check_form(record, path)
    if not isinstance(record.get("order", []), list):
        raise Corrupt(f"field 'order' of attribute '{KEY}' has the wrong form", path=path)
    return record


def take_common(attributes: dict[str, Any]) -> dict[str, str]:
    """Take the attributes that stand for common fields out of others; return these fields."""
    return {
        field: attributes.pop(name)
        for name, field in FIELDS.items()
        if is_field(name, attributes.get(name))
    }


def common_names(fields: dict[str, Any]) -> dict[str, str]:
    """Return the names of the attributes that stand for common fields which are set."""
    return {name: field for name, field in FIELDS.items() if fields.get(field)}


def divided(
    fields: dict[str, Any], common: dict[str, str], reserved: Container[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that the format can store, and those only for the record.

    `fields` are those of the record, `common` those of `common_names`, which are stored as
    attributes, `reserved` the names that the format uses itself.
    """
    stored: dict[str, Any] = {}
    recorded: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        is_taken = name == KEY or name in reserved or name in common or is_field(name, value)
        (recorded if is_taken else stored)[name] = value
    return {**stored, **{name: fields[field] for name, field in common.items()}}, recorded


def is_field(name: str, value: Any) -> bool:
    """True if reading would take this attribute for a common field."""
    return name in FIELDS and isinstance(value, str) and bool(value)
