"""Writing: how an array becomes a NRRD array, its header, and the data behind or beside it.

The header is what unu, ITK, pynrrd and VTK all read: the lowest version that has its fields, at
most 0005; canonical names in lower case; fields in Teem's order; LF; little-endian; no time stamp.
"""

from __future__ import annotations

import os
from collections import namedtuple
from math import isfinite

from raconvert.errors import Unsupported, WouldLose
from raconvert.plugin import Array, Axis, Bundle

from .header import MAX_HEADER_BYTES, MAX_LINE_BYTES, MAX_LINES
from .meta import (
    AXIS_FIELDS,
    KEY,
    NAMESPACE,
    OWN_FIELDS,
    escaped,
    flattened,
    implied_by,
    is_encodable,
    is_kind,
    is_line,
    is_pair,
    is_quotable,
)
from .pair import extras_text, is_axis, without_extents
from .tables import BLOCK, LIST, NAME_OF_TYPE, SKIPLIST, TEXT
from .values import number_text, parsed, quoted_text, vector_text, word_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from raconvert.plugin import Target

    Entry = dict[str, Any]

# What an array is in NRRD: type, bytes of a block (else 0), sizes, whether an axis of two stands
# for the parts of complex numbers, and the marker that makes the array again what it was.
Form = namedtuple("Form", "type block sizes pairs marker")

PAIRS_BYTES = MAX_HEADER_BYTES // 2  # room for key/value pairs
PAIRS = MAX_LINES // 2
MAX_TEXT_BYTES = MAX_LINE_BYTES // 2
LONG_LINE = 1000  # characters that other readers see of a text that cannot be written as it is
# the lowest version that has a field
_VERSION_OF = {
    "kinds": 3, "thicknesses": 4, "sample units": 4, "space": 4, "space dimension": 4,
    "space directions": 4, "space origin": 4, "space units": 4, "measurement frame": 5,
}  # fmt: skip
_ORDER = (
    "content", "number", "type", "block size", "dimension", "space", "space dimension", "sizes",
    "spacings", "thicknesses", "axis mins", "axis maxs", "space directions", "centers", "kinds",
    "labels", "units", "min", "max", "old min", "old max", "endian", "encoding", "sample units",
    "space units", "space origin", "measurement frame", "data file",
)  # fmt: skip
_KNOWN_OWN = {*OWN_FIELDS.values(), "comments", "charset", "endian", "axes", "complex_axis"}


def form_of(array: Array) -> Form:
    """Return how an array that NRRD can hold is written."""
    kind, nbytes, _, descr = array.element
    sizes, block, pairs = array.dims, 0, False
    marker: dict[str, Any] = {}
    if kind == "complex":
        name, pairs, marker = NAME_OF_TYPE["float", nbytes // 2], True, {"element": "complex"}
        sizes = (2, *sizes)
    elif kind == "bool":
        name, marker = NAME_OF_TYPE["uint", 1], {"element": "bool"}
    elif kind == "user":
        name, block = BLOCK, nbytes
        if not is_void(array):
            marker = {"element": descr}
    else:
        name = NAME_OF_TYPE[kind, nbytes]
    if not array.dims:
        sizes, marker = sizes or (1,), {**marker, "dims": []}
    if array.index_order == "F" and array.ndim > 1:
        marker = {**marker, "index_order": "F"}
    return Form(name, block, sizes, pairs, marker)


def is_void(array: Array) -> bool:
    """Tell whether user elements are nothing but bytes."""
    descr = array.element.descr
    return descr is None or descr == f"|V{array.element.nbytes}"


# --- the header -----------------------------------------------------------------------------------


def header_of(bundle: Bundle, encoding: str, data_file: str | None = None) -> tuple[bytes, list]:
    """Return the header of the one array of a bundle, and the names of what it cannot hold.

    A field of the namespace that has a wrong form raises `Unsupported` with its name.
    """
    writer = _Writer(bundle, data_file)
    writer.add_form(encoding)
    writer.add_own()
    writer.add_axes()
    writer.add_texts()
    return writer.header(), writer.lost


class _Writer:
    """Collects the fields of one header."""

    def __init__(self, bundle: Bundle, data_file: str | None) -> None:
        self.bundle = bundle
        self.array = bundle.arrays[0]
        self.form = form_of(self.array)
        self.meta = self.array.meta
        own = self.meta.formats.get(NAMESPACE, {})
        self.own: dict[str, Any] = own
        self.fields: dict[str, str] = {}
        if data_file is not None:
            self.fields["data file"] = data_file
        # File names are UTF-8, and a header is read in one encoding.
        latin = own.get("charset") == "latin-1" and (data_file or "").isascii()
        self.charset = "latin-1" if latin else "utf-8"
        self.typed: dict[str, Any] = {}  # the fields that others depend on, as they are read
        self.pairs: dict[str, str] = {}
        self.extras: dict[str, Any] = dict(self.form.marker)
        self.lost: list[str] = []

    def add(self, field: str, text: str) -> None:
        """Add a field whose text comes from the namespace, if it is one that can be read."""
        try:
            self.typed[field] = parsed(field, text, self.typed)
            text.encode(self.charset)
        except ValueError as error:
            raise self._wrong(field, text, error) from error
        if "\n" in text or "\r" in text:
            raise self._wrong(field, text, ValueError("there is a line end in it"))
        self.fields[field] = text

    def _wrong(self, field: str, value: object, error: Exception) -> Unsupported:
        return Unsupported(
            f"the metadata field {NAMESPACE}.{field.replace(' ', '_')} cannot be written: {error}",
            got=repr(value)[:80],
            remedy="correct the field, or leave the metadata out",
        )

    def add_form(self, encoding: str) -> None:
        """Add what the elements are and how they are stored."""
        form = self.form
        self.add("type", form.type)
        if form.block:
            self.add("block size", str(form.block))
        self.add("dimension", str(len(form.sizes)))
        self.add("sizes", " ".join(map(str, form.sizes)))
        width = form.block or self.array.element.nbytes // (2 if form.pairs else 1)
        if width > 1:
            big = form.block and self.own.get("endian") == "big"
            self.add("endian", "big" if big else "little")
        self.add("encoding", "ascii" if encoding == TEXT else encoding)

    def add_own(self) -> None:
        """Add the fields of the namespace that are about the whole array."""
        formats: dict[str, Callable[[Any], str]] = {
            "space": str,
            "space dimension": str,
            "space origin": vector_text,
            "space units": lambda value: " ".join(map(quoted_text, value)),
            "measurement frame": lambda value: " ".join(map(vector_text, value)),
            "old min": number_text,
            "old max": number_text,
            "number": str,
            "min": str,
            "max": str,
        }
        for field, form in formats.items():
            value = self.own.get(OWN_FIELDS[field])
            if value is not None:
                try:
                    text = form(value)
                except (TypeError, ValueError) as error:
                    raise self._wrong(field, value, error) from error
                self.add(field, text)
        odd = {key: value for key, value in self.own.items() if key not in _KNOWN_OWN}
        if odd:
            self.extras.setdefault("formats", {})[NAMESPACE] = odd

    # --- axes

    def add_axes(self) -> None:
        """Add the fields with one value per axis; what they cannot hold goes to the extras."""
        ndim = self.array.ndim
        entries = self._entries(ndim)
        axes = self.meta.axes
        if len(axes) != ndim:
            if axes:
                self.lost.append(f"what is known of {len(axes)} axes, as there are {ndim}")
            axes = [Axis() for _ in range(ndim)]
        columns: list[Entry] = []
        more: list[Entry] = []
        for axis, entry, size in zip(axes, entries, self.array.dims, strict=True):
            column, rest = self._column(axis, dict(entry), size)
            odd = [field for field in rest if not is_axis({field: rest[field]})]
            self.lost += [f"the {field} of an axis, {rest.pop(field)!r:.40}" for field in odd]
            columns.append(column)
            more.append(rest)
        if self.form.pairs:
            columns.insert(0, {**self._mapping("complex_axis"), "kind": "complex"})
        if any(more):
            self.extras["axes"] = more
        columns += [{} for _ in self.form.sizes[len(columns) :]]
        for field, (key, form) in _COLUMNS.items():
            values = [column.get(key) for column in columns]
            if any(value is not None for value in values):
                try:
                    text = " ".join(map(form, values))
                except (TypeError, ValueError) as error:
                    raise self._wrong(field, values, error) from error
                self.add(field, text)

    def _entries(self, ndim: int) -> list[Entry]:
        entries = self.own.get("axes", [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise self._wrong("axes", entries, TypeError("a list of mappings was expected"))
        if len(entries) > ndim:
            self.lost.append(f"the axes of the namespace {NAMESPACE}, which are others")
            entries = []
        # A stack has one axis more than its items: the slowest.
        return entries + [{} for _ in range(ndim - len(entries))]

    def _mapping(self, key: str) -> Entry:
        value = self.own.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, value, TypeError("a mapping was expected"))
        return value

    def _column(self, axis: Axis, entry: Entry, size: int) -> tuple[Entry, Entry]:
        """Return what the header holds of an axis, and the fields of `Axis` that it does not."""
        rest: Entry = {}
        column = {key: entry.get(key) for key in AXIS_FIELDS.values()}
        said = entry.get("spacing") is not None
        if axis.name:
            (column if is_quotable(axis.name, self.charset) else rest)["name"] = axis.name
        if axis.kind is not None:
            (column if is_kind(axis.kind, size) else rest)["kind"] = axis.kind
        if axis.labels is not None:
            rest["labels"] = axis.labels
        self._place_position(axis, column, rest, size, said=said)
        return column, rest

    def _place_position(
        self, axis: Axis, column: Entry, rest: Entry, size: int, *, said: bool
    ) -> None:
        """Write spacing, origin and units where the entry does not imply them already.

        `said`: the spacing is written even then, as it was read.
        """
        directed = column["direction"] is not None
        given = axis.spacing if _is_spacing(axis.spacing) and not directed else None
        try:
            spacing, origin, units = implied_by(column, self.own, given, size)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise self._wrong("axes", column, error) from error
        if axis.spacing is not None and (said or axis.spacing != spacing):
            (rest if given is None else column)["spacing"] = axis.spacing
        if axis.units and axis.units != units:
            fits = is_quotable(axis.units, self.charset) and not directed
            (column if fits else rest)["units"] = axis.units
        if axis.origin is None or axis.origin == origin:
            return
        free = column["min"] is None and column["max"] is None and column["center"] is None
        if free and not directed and _is_double(axis.origin):
            column["min"], column["center"] = axis.origin, "node"
        else:
            rest["origin"] = axis.origin

    # --- texts

    def add_texts(self) -> None:
        """Add description, units, attributes and what else is known."""
        meta = self.meta
        self._add_line("content", "description", meta.description)
        quoted = (meta.units or "")[:1] == (meta.units or "")[-1:] == '"'
        self._add_line("sample units", "units", meta.units, odd=quoted)
        if meta.encoding:
            self._keep(("encoding",), meta.encoding, "encoding")
        self._add_pairs(meta.attributes)
        for name, space in meta.formats.items():
            if name != NAMESPACE:
                self._keep_space(("formats", name), space)
        if meta.items is not None:
            self.lost.append("what the items have of their own")
        for part in ("attributes", "groups", "formats"):
            for name, value in getattr(self.bundle, part).items():
                if part == "formats":
                    self._keep_space(("file", part, name), value)
                else:
                    self._keep(("file", part, name), value, f"{part[:-1]} {str(name)[:40]!r}")

    def _add_pairs(self, attributes: dict[str, Any]) -> None:
        """Add attributes as key/value pairs, or to the extras."""
        room = PAIRS_BYTES
        for key, value in attributes.items():
            what = f"attribute {str(key)[:40]!r}"
            if is_pair(key, value, self.charset):
                nbytes = len(f"{escaped(key)}:={escaped(value)}\n".encode(self.charset))
                if nbytes > MAX_TEXT_BYTES or nbytes > room or len(self.pairs) == PAIRS:
                    self.lost.append(f"{what}, too long for the header")
                    continue
                self.pairs[key] = value
                room -= nbytes
            else:
                self._keep(("attributes", key), value, what)

    def _add_line(self, field: str, key: str, text: str | None, *, odd: bool = False) -> None:
        if not text:
            return
        odd |= len(text) > MAX_TEXT_BYTES // 4 or text != text.rstrip(" \t")
        if odd or not is_line(text, self.charset):
            self.extras[key] = text
            text = flattened(text[:LONG_LINE], self.charset).strip('"')
        if text:
            self.add(field, text)

    def _keep_space(self, path: tuple[str, ...], space: dict[str, Any]) -> None:
        kept = without_extents(space)
        self.lost += [f"{path[-1]}.{key}" for key in space if key not in kept]
        if kept:
            self._keep(path, kept, f"the namespace {path[-1]}")

    def _keep(self, path: tuple[str, ...], value: Any, what: str) -> None:
        """Put a value into the extras, or its name into the list of what is lost."""
        try:
            extras_text({"value": value, "path": list(path)})
        except ValueError as error:
            self.lost.append(f"{what} ({error})")
            return
        place = self.extras
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value

    # --- all of it

    def header(self) -> bytes:
        """Return the bytes of the header, its empty line included."""
        if self.extras:
            form = self.form
            self.pairs[KEY] = self._extras_that_fit(
                {"type": form.type, "sizes": list(form.sizes), **self.extras}
            )
        comments = self.own.get("comments", [])
        if not isinstance(comments, list) or not all(is_comment(c, self.charset) for c in comments):
            error = ValueError("a list of single lines was expected")
            raise self._wrong("comments", comments, error)
        version = max([1 + bool(self.pairs), *(_VERSION_OF.get(field, 1) for field in self.fields)])
        name = self.fields.get("data file")
        if name and (version < 4 or name.startswith(("-", LIST, SKIPLIST))):
            # Before version 4 a bare name was relative to the folder of the process.
            self.fields["data file"] = f"./{name}"
        lines = [f"NRRD000{version}", *(f"#{comment}" for comment in comments)]
        lines += [
            f"{_SPELLED.get(field, field)}: {self.fields[field]}"
            for field in _ORDER
            if field in self.fields
        ]
        lines += [f"{escaped(key)}:={escaped(value)}" for key, value in self.pairs.items()]
        return _encoded("\n".join([*lines, "", ""]), self.charset)

    def _extras_that_fit(self, extras: dict[str, Any]) -> str:
        """Return the JSON text; what makes it too long is left out, largest part first."""
        while True:
            try:
                return extras_text(extras)
            except ValueError:
                parts = [key for key in extras if key not in ("type", "sizes")]
                largest = max(parts, key=lambda key: len(repr(extras[key])))
                del extras[largest]
                self.lost.append(f"{largest}, too much for one line of the header")


def _encoded(text: str, charset: str) -> bytes:
    """Return the bytes of a header; Latin-1 only where the reader will see that it is."""
    raw = text.encode(charset)
    if charset != "utf-8":
        try:
            if raw.decode() != text:
                return text.encode()
        except UnicodeDecodeError:
            pass
    return raw


def is_comment(text: Any, charset: str) -> bool:
    """Tell whether a text can follow the # of a comment."""
    try:
        return "\n" not in text and "\r" not in text and bool(text.encode(charset) or True)
    except (TypeError, AttributeError, UnicodeEncodeError):
        return False


# Teem writes the longer name; both are read everywhere.
_SPELLED = {"centers": "centerings"}


def _is_double(value: Any) -> bool:
    """Tell whether a number is one that a double holds."""
    try:
        return not isinstance(value, bool) and isfinite(value) and float(value) == value
    except (TypeError, OverflowError):
        return False


def _is_spacing(value: Any) -> bool:
    return value is not None and _is_double(value) and value != 0


# field of the header -> its key in a column, and how one value is written
_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "spacings": ("spacing", number_text),
    "thicknesses": ("thickness", number_text),
    "axis mins": ("min", number_text),
    "axis maxs": ("max", number_text),
    "space directions": ("direction", vector_text),
    "centers": ("center", word_text),
    "kinds": ("kind", word_text),
    "labels": ("name", quoted_text),
    "units": ("units", quoted_text),
}


# --- the data -------------------------------------------------------------------------------------


def write_data(
    array: Array, target: Target, header: bytes, encoding: str, level: int, *, any_nan: bool
) -> bool:
    """Write the header and the encoded elements behind it.

    Returns whether signs or payloads of NaN were lost in text, as `any_nan` allows; otherwise they
    are refused (`WouldLose`).
    """
    from raconvert.arrays.blocks import block_bytes, blocks
    from raconvert.files.copy import write_all

    from . import codecs

    file = target.open()
    write_all(file, [header])
    pieces = target.counted(blocks(array, block_bytes(target.max_memory)))
    odd_nans: list[int] = []
    if encoding == TEXT:
        row = 1 if array.ndim < 2 else array.dims[0]
        pieces = _watched(pieces, odd_nans, array, any_nan=any_nan)
        encoded = codecs.as_text(pieces, 2 if array.element.kind == "complex" else row)
    elif encoding == "hex":
        encoded = codecs.as_hex(pieces)
    else:
        encoded = codecs.compressed(pieces, encoding, level)
    write_all(file, encoded)
    return bool(odd_nans)


def _watched(
    pieces: Iterable[Any], odd_nans: list[int], array: Array, *, any_nan: bool
) -> Iterator[Any]:
    """Yield the pieces, and note where a NaN is that ``nan`` does not stand for.

    Raises `WouldLose` there, unless it may be any NaN.
    """
    done = 0
    for piece in pieces:
        places = _odd_nans(piece)
        if places.size and not any_nan:
            from raconvert.arrays.blocks import index_of

            raise WouldLose(
                f"a NaN of array '{array.name}' has a sign or a payload, which text does not keep",
                where=f"index {list(index_of(array, done + int(places[0])))}",
                remedy="nothing was written; --allow precision makes it a plain nan; the other "
                "encodings hold it",
            )
        odd_nans += places[:1].tolist()
        done += piece.size
        yield piece


def _odd_nans(piece: Any) -> Any:
    """Return the places of the elements with a NaN whose bits are not those of a quiet one."""
    import numpy as np

    width = piece.dtype.itemsize // (2 if piece.dtype.kind == "c" else 1)
    if piece.dtype.kind not in "fc":
        return np.empty(0, np.int64)
    bits = piece.reshape(-1).view(f"<u{width}")
    plain = np.array(np.nan, f"<f{width}").view(bits.dtype)
    odd = np.isnan(bits.view(f"<f{width}")) & (bits != plain)
    return np.flatnonzero(odd) // (piece.dtype.itemsize // width)


def companion_name(path: str, suffix: str) -> str:
    """Return the name of the data file beside a detached header, as the header can say it."""
    name = os.path.splitext(os.path.basename(path))[0] + suffix
    odd = "\r" in name or "\n" in name or "%" in name or name != name.strip(" \t")
    if odd or not is_encodable(name, "utf-8"):
        raise Unsupported(
            "a NRRD header cannot name a data file with such a name",
            path=path,
            expected="a name in UTF-8, without %, line ends, or blanks at its ends",
            got=repr(name),
            remedy="choose another name, or write an attached .nrrd",
        )
    return name
