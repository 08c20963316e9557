"""Variables, dimensions and types of the file to be, and the arrays that change their form in it.

All arrays of a file share its dimensions: those of equal names are one, if their axes say the same.
"""

from __future__ import annotations

import re

from raconvert.arrays.dtypes import MAX_SPAN, ml_name, spanned
from raconvert.arrays.interop.conventions import (
    calendar_of,
    is_own,
    says,
    shared_name,
    values_of,
)
from raconvert.arrays.interop.times import times_of
from raconvert.arrays.memory import MAX_RANK
from raconvert.arrays.space import coordinates
from raconvert.arrays.summary import facts_of_axes
from raconvert.declared import Record
from raconvert.errors import RaconvertError, UsageError
from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Array,
    Axis,
    Element,
    Metadata,
    element,
    element_of,
    equivalent,
    first_of,
    little,
    refused,
    refused_type,
)

from .tables import BOOL, CHAR, ENCODING, NAME_BYTES, NAMESPACE, NUMBERS, PARTS, TITLE, TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array, Bundle, Fit

_ODD = re.compile(r"[\x00-\x1f/\x7f-\x9f\ud800-\udfff]| \Z")
_FIRST = re.compile(r"[A-Za-z0-9_]|[^\x00-\x7f]")
_MARK = 12  # hexadecimal digits that stand for the rest of a long name


def key_of(name: str) -> str:
    """Return the name that a variable or a dimension can have; the same one if it can."""
    text = name
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFC", text)
    text = _ODD.sub(lambda match: f"%{ord(match.group()):02X}", text)
    if not _FIRST.match(text):
        text = f"_{text}"
    raw = text.encode()
    if len(raw) > NAME_BYTES:
        from hashlib import sha256

        mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
        text = raw[: NAME_BYTES - _MARK - 1].decode("utf-8", "ignore") + f"%{mark}"
    return text


class Free:
    """Keys that are not taken; each counter goes on where it ended, since no key becomes free."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = {*taken}
        self._numbers: dict[str, int] = {}

    def take(self, key: str) -> str:
        """Return a key, with a counter if it is taken, and take it."""
        number, made = self._numbers.get(key, 1), key
        while made in self.taken:
            number += 1
            made = f"{key[: NAME_BYTES // 8]}%{number}"
        self._numbers[key] = number
        self.taken.add(made)
        return made


def keys_of(names: Sequence[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return the key of each name; no two are alike, and none is a reserved one.

    A name that is its own key keeps it.
    """
    others = {*reserved}
    kept = {name for name in names if key_of(name) == name} - others
    free, given = Free({*others, *kept}), set()
    keys = []
    for name in names:
        own = name in kept and name not in given
        given.add(name)
        keys.append(name if own else free.take(key_of(name)))
    return keys


class Coordinates:
    """Variables that stand along dimensions, by name, and the facts that they give an axis."""

    def __init__(self, arrays: dict[str, Array], limits: Limits) -> None:
        self.arrays = arrays
        self._limits = limits
        self._facts: dict[str, dict[str, Any]] = {}

    def axes_of(self, key: str, dims: Sequence[str], lengths: Sequence[int]) -> list[Axis]:
        """Return the axes of a variable, slowest first, by the names of its dimensions."""
        axes = []
        for index, (name, length) in enumerate(zip(dims, lengths, strict=False)):
            facts: dict[str, Any] = {}
            scale = self.arrays.get(name)
            if scale is not None and name != key and scale.dims == (length,):
                facts = self._along(name)
            axes.append(Axis(name if name != unnamed(key, index) else None, **facts))
        return axes

    def _along(self, name: str) -> dict[str, Any]:
        """Return units, and spacing and origin or labels, from a coordinate variable."""
        from raconvert.arrays.interop.conventions import facts_of

        if name not in self._facts:
            scale = self.arrays[name]
            units = {"units": scale.meta.units} if scale.meta.units else {}
            try:
                self._facts[name] = {**units, **facts_of(scale, self._limits)}
            except (RaconvertError, OSError):  # reading it later reports the error
                self._facts[name] = units
        return self._facts[name]


def unnamed(key: str, index: int) -> str:
    """Return the name of the dimension of an axis that has none."""
    return f"{key}.{index}"


UTF8 = "utf-8"


class Form(Record):
    """A variable to be: its name, its array, and how that lies in the file.

    `dims` are the names of dimensions, slowest first; `inner` of them, the last, are not axes of
    the array, but the letters of texts or the parts of complex numbers. `type_attributes` tell
    other programs what the elements are. `axis_of` is the name of the array whose axis a
    coordinate is made from, else empty.
    """

    key: str
    array: Array
    type: int
    dims: tuple[str, ...] = ()
    inner: int = 0
    type_attributes: Mapping[str, Any] = {}
    axis_of: str = ""


class Existing(Record):
    """Lengths of dimensions, coordinates and names of variables that a file has already.

    `unlimited` is the dimension of the records; `limits` are those of the source.
    """

    lengths: Mapping[str, int] = {}
    scales: Mapping[str, Array] = {}
    taken: Collection[str] = ()
    unlimited: str | None = None
    limits: Limits = DEFAULT


class Structure:
    """The variables and dimensions of a file, made of the arrays of a bundle.

    `existing` are the dimensions and variables of the file, if it exists; see `Existing`.
    """

    def __init__(
        self, bundle: Bundle, keys: Sequence[str], existing: Existing | None = None
    ) -> None:
        existing = existing or Existing()
        self.fits: list[Fit] = []
        self.lengths: dict[str, int] = dict(existing.lengths)
        self.scales: dict[str, Array] = dict(existing.scales)
        self.unlimited = existing.unlimited
        self._existing = existing
        self.made: dict[str, Form] = {}  # coordinates made from axes, by name
        self._says: dict[str, tuple[int, str]] = {}
        self._taken = {*existing.taken, *keys}
        self._inner: set[str] = set()
        self._names = Free([*self._taken, *self.lengths])  # of dimensions and variables
        for array, key in zip(bundle.arrays, keys, strict=True):
            fits = key == key_of(array.name) and array.problem is None and is_own(array, key)
            if fits and self.lengths.setdefault(key, array.dims[0]) == array.dims[0]:
                self.scales[key] = array
        pairs = zip(bundle.arrays, keys, strict=True)
        self.arrays = [self._form(array, key) for array, key in pairs]

    @property
    def forms(self) -> list[Form]:
        """All variables, coordinates first: the last one may be larger than its field tells."""
        return [*self.made.values(), *self.arrays]

    def _form(self, array: Array, key: str) -> Form:
        """Return the variable of an array; what does not fit goes to `fits`."""
        form = self._typed(array, key)
        dims: list[str] = []
        axes = coordinates(array.ra_axes, array.meta.space)[::-1] or [Axis()] * array.ndim
        for index, length in enumerate(array.dims[::-1]):
            dims.append(self._dimension(array, key, axes, index, length))
        if array.ndim > MAX_RANK - bool(form.inner):
            reason = f"{array.ndim} axes; at most {MAX_RANK - bool(form.inner)} are read again"
            self.fits.append(refused(array.name, "shape", reason))
        if spanned(array.dims, max(1, array.element.nbytes)) > MAX_SPAN:
            self.fits.append(refused(array.name, "shape", "more than 2**63 bytes"))
        if form.inner:
            dims.append(self._inner_dimension(array))
        return form._replace(dims=tuple(dims))

    # types

    def _typed(self, array: Array, key: str) -> Form:
        """Return the variable of an array without its dimensions."""
        kind = array.element
        number = NUMBERS.get((kind.kind, kind.nbytes)) if ml_name(kind) is None else None
        if number is not None:
            return Form(key, array, number)
        if kind.kind == "bool":
            own = array.meta.attributes
            marks = {name: word for name, word in BOOL.items() if name not in own}
            self._equivalent(
                array, "type", "bools become int8, with an attribute that xarray reads"
            )
            return Form(key, array, TYPES["i1"], type_attributes=marks)
        if kind.kind == "complex" and kind.nbytes <= 16:
            reason = (
                f"complex numbers become pairs (real, imaginary) on a new fastest axis '{PARTS}'"
            )
            self._equivalent(array, "type", reason)
            return Form(key, array, TYPES[f"f{kind.nbytes // 2}"], inner=1)
        letter = str(kind.descr)[1:2] if isinstance(kind.descr, str) else ""
        if kind.kind == "user" and letter in ("M", "m"):
            reason = "dates and durations become int64, with units of CF where it has them"
            self._equivalent(array, "type", reason)
            return Form(key, array, TYPES["i8"], type_attributes=times_of(array) or {})
        if kind.kind == "user" and letter in ("S", "U"):
            return self._text(array, key, letter)
        self.fits.append(refused_type(array, TITLE, "float32"))
        return Form(key, array, CHAR)

    def _text(self, array: Array, key: str, letter: str) -> Form:
        """Return the variable of chars of an array of texts (U) or bytes (S)."""
        is_utf8 = letter == "U" or array.meta.encoding == UTF8
        if letter == "U":
            self._equivalent(
                array, "type", "text becomes chars in UTF-8, with a dimension for them"
            )
        elif not is_utf8 and array.element.nbytes == 1:
            return Form(key, array, CHAR)
        elif not is_utf8:
            self._equivalent(array, "type", "strings become chars, with a dimension for them")
        marks = {ENCODING: UTF8} if is_utf8 else {}
        return Form(key, array, CHAR, inner=1, type_attributes=marks)

    def _inner_dimension(self, array: Array) -> str:
        """Return the dimension of the letters of texts, or of the parts of complex numbers."""
        if array.element.kind == "complex":
            name, length = PARTS, 2
        else:
            length = array.element.nbytes
            name = f"string{length}"
            recorded = array.meta.formats.get(NAMESPACE, {}).get("text")
            if isinstance(recorded, str) and key_of(recorded) == recorded:
                name = recorded
        if self.lengths.get(name, length) != length or name == self.unlimited:
            name = self._names.take(name)
        self.lengths[name] = length
        self._names.taken.add(name)
        self._inner.add(name)
        return name

    # dimensions

    def _dimension(
        self, array: Array, key: str, axes: Sequence[Axis], index: int, length: int
    ) -> str:
        """Return the name of the dimension of an axis, a new one unless another says the same."""
        axis = axes[index]
        name = shared_name(axis, axes[:index])
        dim = key_of(name) if name else unnamed(key, index)
        if not length:
            return self._empty(array, dim, index, named=bool(name))
        if name and not self._is_shared(array, dim, axis, index, length):
            reason = (
                f"its axis '{name}' is not the dimension '{name}', which says something else: "
                "other programs see another name, the axis itself is kept"
            )
            self._equivalent(array, "metadata", reason)
        elif name:
            return dim
        last = str(index) if not axis.name or "/" in axis.name else key_of(axis.name)
        dim = self._names.take(key_of(f"{key}.{last}"))
        self._new(array, dim, axis, length)
        return dim

    def _empty(self, array: Array, dim: str, index: int, *, named: bool) -> str:
        """Return the dimension of an axis without elements: only the unlimited one can be empty."""
        if index or self.lengths.get(self.unlimited or "", 0):
            reason = f"{TITLE} has one dimension of length 0, the slowest, of the records"
            self.fits.append(refused(array.name, "shape", reason))
            return dim
        if self.unlimited is None:
            self.unlimited = dim if dim not in self.lengths else self._names.take(dim)
            self.lengths[self.unlimited] = 0
        if named and self.unlimited != dim:
            reason = (
                f"an axis without elements is the dimension '{self.unlimited}': other programs see "
                "that name, the axis itself is kept"
            )
            self._equivalent(array, "metadata", reason)
        return self.unlimited

    def _is_shared(self, array: Array, dim: str, axis: Axis, index: int, length: int) -> bool:
        """True if the dimension of this name is that of an axis, or becomes it."""
        old_length = self.lengths.get(dim)
        if old_length not in (None, length) or (index and dim == self.unlimited):
            return False
        if dim in self.scales:
            own = self.scales[dim].name == array.name
            return own or self._agrees(array, dim, axis, index, length)
        values = values_of(axis, length)
        meaning = (length, "") if values is None else says(axis, length)
        if dim in self._says:
            return self._says[dim] == meaning
        if values is not None and (old_length is not None or dim in self._taken):
            return False
        self._new(array, dim, axis, length)
        return True

    def _agrees(self, array: Array, dim: str, axis: Axis, index: int, length: int) -> bool:
        """True unless an axis says other values than a coordinate that was there before.

        The axis takes what the coordinate says beyond it, which is named.
        """
        scale = self._existing.scales.get(dim)
        if scale is None or scale is not self.scales[dim]:
            return True
        coordinates = Coordinates({dim: scale}, self._existing.limits)
        (read,) = coordinates.axes_of("", [dim], [length])
        own, facts = axis.to_dict(), read.to_dict()
        of_values = ("spacing", "origin", "labels") if "labels" in own or "spacing" in own else ()
        if any(own[field] != facts.get(field) for field in ("units", *of_values) if field in own):
            return False
        more = [field for field in Axis.FIELDS if field in facts and field not in own]
        if more:
            taken = [more if n == index else [] for n in range(array.ndim)]
            listed = ", ".join(facts_of_axes(array, taken[::-1]))
            reason = f"it takes the coordinates that the container has for its dimensions: {listed}"
            self._equivalent(array, "metadata", reason)
        return True

    def _new(self, array: Array, dim: str, axis: Axis, length: int) -> None:
        """Take a new dimension, with a coordinate if the axis has values."""
        values = values_of(axis, length)
        self.lengths[dim] = length
        self._names.taken.add(dim)
        self._says[dim] = (length, "") if values is None else says(axis, length)
        if values is not None:
            made = _coordinate(dim, axis, values, calendar_of(array, axis))
            form = self._typed(made, dim)._replace(axis_of=array.name)
            dims = (dim, self._inner_dimension(made)) if form.inner else (dim,)
            self.made[dim] = form._replace(dims=dims)
        elif axis.units:
            reason = f"axis '{axis.name or dim}' has units and no values: only raconvert reads them"
            self._equivalent(array, "metadata", reason)

    def _equivalent(self, array: Array, what: str, reason: str) -> None:
        self.fits.append(equivalent(array.name, what, reason))

    # records

    def choose_unlimited(self, bundle: Bundle, asked: str) -> None:
        """Set the dimension of the records, as it is asked for or as it was."""
        if self.unlimited is not None or asked == "none":
            return
        inside = {name for form in self.forms for name in form.dims[1:]}
        if asked != "auto":
            name = key_of(asked)
            if name not in self.lengths:
                expected = first_of([*self.lengths]) or "no axis has a name"
                raise UsageError(f"no array has the axis unlimited={asked}", expected=expected)
            if name in inside:
                array = next(form.array for form in self.forms if name in form.dims[1:])
                reason = f"its axis '{asked}' is not the slowest, as that of the records must be"
                self.fits.append(refused(array.name, "shape", reason, "--out-opt unlimited=none"))
                return
            self.unlimited = name
            return
        recorded: list[Any] = [bundle.formats.get(NAMESPACE, {}).get("unlimited")]
        recorded += [_growing(array) for array in bundle.arrays]
        for axis_name in recorded:
            name = key_of(axis_name) if isinstance(axis_name, str) else ""
            if name in self.lengths and name not in inside and name not in self._inner:
                self.unlimited = name
                return


def _growing(array: Array) -> str | None:
    """Return the name of the slowest axis of an array, if that was unlimited in its file."""
    most = array.storage.get("maxshape")
    grows = isinstance(most, list) and len(most) == array.ndim > 0 and most[0] is None
    axes = array.ra_axes[::-1]
    return axes[0].name if grows and axes else None


def _coordinate(name: str, axis: Axis, values: Any, attributes: dict[str, str]) -> Array:
    """Return the array of the values along an axis."""
    import numpy as np

    encoding = None
    if isinstance(values, list):
        raw = [value.encode("utf-8", "surrogatepass") for value in values]
        values, encoding = np.array(raw, f"S{max(1, *map(len, raw))}"), UTF8
    elif values.dtype.kind == "i" and (not values.size or np.abs(values).max() < 1 << 31):
        values = values.astype("<i4")
    else:
        values = values.astype("<i8" if values.dtype.kind == "i" else "<f8")
    meta = Metadata(units=axis.units, encoding=encoding, attributes=attributes)
    return Array(
        element_of(values.dtype), (len(values),), name=name, index_order="C", data=values,
        meta=meta,
    )  # fmt: skip


def stored(form: Form, path: str) -> Array:
    """Return the array whose bytes are those of a variable in a file, whatever they mean."""
    from raconvert.arrays.cast import checked_bools
    from raconvert.arrays.reinterpret import big_endian, letter_of, seen_as

    array = form.array
    kind = array.element
    if kind.kind == "bool":
        return checked_bools(array)
    if kind.kind != "user":
        return big_endian(array)
    letter = letter_of(kind)
    if letter == "U":
        return _as_chars(array, path)
    if letter in ("M", "m") and not str(kind.descr).startswith(">"):
        return big_endian(seen_as(array, element("int", 8)))
    return array


def _as_chars(array: Array, path: str) -> Array:
    """Return text as UTF-8, of four bytes a letter."""
    import numpy as np

    from raconvert.arrays.cast import Converted
    from raconvert.arrays.reinterpret import encoded_block

    width = array.element.nbytes

    def convert(block: Any, done: int) -> Any:
        return encoded_block(block, array, done, path)

    kind = Element("user", width, "|", f"|S{width}")
    data = Converted(array, np.dtype(f"S{width}"), convert)
    return array.replace(element=kind, extent=None, data=data)


def read_element(form: Form) -> Element:
    """Return the element type in which a variable is read before its record is applied."""
    kind = little(form.array.element)
    if kind.kind == "bool":
        return element("int", 1)
    if kind.kind == "complex":
        return element("float", kind.nbytes // 2)
    letter = str(kind.descr)[1:2] if kind.kind == "user" else ""
    if letter in ("M", "m"):
        return element("int", 8)
    if letter == "U":
        return Element("user", kind.nbytes, "|", f"|S{kind.nbytes}")
    return kind
