r"""Header fields as metadata, and back.

================  ===================================================================
``content``       `Metadata.description`
``sample units``  `Metadata.units`
``key:=value``    `Metadata.attributes`, always texts
``labels``        `Axis.name` (an empty label: none)
``kinds``         `Axis.kind`, in the spelling of the definition
``units``         `Axis.units`; an axis along one axis of the space has that axis's units
``space``         the frame of `Metadata.space`: RAS, LAS, LPS, or the name as it stands
``space origin``  the origin of `Metadata.space`
``space           `Axis.direction` and, as its length, `Axis.spacing`; of time in a space with time
directions``      `Axis.spacing` and `Axis.origin`
``spacings``      `Axis.spacing` (``nan``: none); where it is not given, and it is known whether
                  samples are nodes or cells, what ``axis mins`` and ``axis maxs`` say
``axis mins``     `Axis.origin`, the position of the first sample: the minimum itself where samples
                  are nodes, half a spacing further where they are cells
================  ===================================================================

Everything else of the header lies in the namespace ``nrrd``: ``measurement_frame``, ``old_min``,
``old_max``, ``number``, ``min``, ``max``, ``comments``, ``charset`` (``latin-1`` where the header
is not UTF-8), ``endian`` (of blocks, whose bytes are kept as they are) and ``axes``: one mapping
per axis, parallel to `Metadata.axes`, of ``center``, ``min``, ``max``, ``thickness``, and
``spacing`` where it is given and minimum and maximum say the same. ``complex_axis`` is the mapping
of the axis that complex numbers were made of, with its ``name``, ``units``, ...

Where we would write the space in another way (as LPS with time, without a name), ``space`` or
``space_dimension``, ``space_units``, ``space_origin`` and each ``direction`` stay in the namespace
as well; they are written as long as they mean what the common metadata says.

What NRRD has no field for travels in one key/value pair: see ``pair.py``.
"""

from __future__ import annotations

import re
from math import isfinite

from raconvert.arrays.metadata import in_dims_order
from raconvert.errors import Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Axis, Bundle, Metadata, facts_of_axes

from .fields import parsed, text_of
from .header import (
    Header,
    escaped,
    form_of,
    lowest_version,
)
from .pair import NAMESPACE, facts_of
from .space import OF_SPACE, axes_in, fields_of, is_said_by
from .tables import KIND_SIZES, SPACE_RANKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.metadata import Space

    Entry = dict[str, Any]

# field of the header -> field of the entries in `axes`
AXIS_FIELDS = {
    "space directions": "direction",
    "centers": "center",
    "axis mins": "min",
    "axis maxs": "max",
    "thicknesses": "thickness",
}
# and what of an axis is common metadata -> its key in a column
COLUMNS = AXIS_FIELDS | {
    "spacings": "spacing",
    "kinds": "kind",
    "labels": "name",
    "units": "units",
}
# field of the header -> field of the namespace
OWN_FIELDS = {
    name: name.replace(" ", "_")
    for name in (
        "space", "space dimension", "space units", "space origin", "measurement frame",
        "old min", "old max", "number", "min", "max",
    )
}  # fmt: skip
KNOWN_OWN = {*OWN_FIELDS.values(), "comments", "charset", "endian", "axes", "complex_axis"}

PAIRS_BYTES = DEFAULT.document_bytes // 2  # room for key/value pairs
PAIRS = DEFAULT.header_lines // 2
MAX_TEXT_BYTES = DEFAULT.header_line_bytes // 2
LONG_LINE = 1000  # characters that other readers see of a text that cannot be written as it is


# --- header to metadata ---------------------------------------------------------------------------


def metadata_of(header: Header) -> Metadata:
    """Return the metadata of a header, its axes in C order, our own key/value pair included."""
    fields = header.fields
    own: dict[str, Any] = {
        key: fields[name] for name, key in OWN_FIELDS.items() if fields.get(name) is not None
    }
    if header.comments:
        own["comments"] = header.comments
    if header.charset != "utf-8":
        own["charset"] = header.charset
    if fields["type"] == "block" and fields.get("endian") == "big":
        own["endian"] = "big"
    rank = len(fields["sizes"])
    entries: list[Entry] = [{} for _ in range(rank)]
    for name, key in AXIS_FIELDS.items():
        for entry, value in zip(entries, fields.get(name, ()), strict=False):
            if value is not None:
                entry[key] = value
    axes, own, space = _axes(header, entries, own)
    if any(entries):
        own["axes"] = entries[::-1]
    return Metadata(
        description=fields.get("content") or None,
        units=fields.get("sample units") or None,
        axes=axes[::-1] if any(axes) else [],
        space=space,
        attributes=dict(header.attributes),
        formats={NAMESPACE: own} if own else {},
    )


def _axes(
    header: Header, entries: list[Entry], own: dict[str, Any]
) -> tuple[list[Axis], dict[str, Any], Space | None]:
    """Return the axes, the namespace, and the space.

    Fields that follow from the axes and the space are taken out of the namespace.
    """
    directions = [entry.get("direction") for entry in entries]
    placed, space, world = axes_in(own, directions)
    if world is not None:
        written, vectors, frame, _ = fields_of(placed, space)
        raw = {key: own[key] for key in OF_SPACE if key in own}
        if frame is None and (written, vectors) == (raw, directions):
            own = {key: value for key, value in own.items() if key not in OF_SPACE}
            for entry in entries:
                entry.pop("direction", None)
    axes = [
        _axis(header, number, entry, placed[number] if directions[number] is not None else None)
        for number, entry in enumerate(entries)
    ]
    return axes, own, space


def _axis(header: Header, number: int, entry: Entry, placed: Axis | None) -> Axis:
    """Return one axis; `placed` is what follows from its space direction, if it has one."""

    def given(name: str) -> Any:
        values = header.fields.get(name)
        return values[number] if values else None

    if placed is not None:
        if given("spacings") is not None:
            entry["spacing"] = given("spacings")  # kept besides the direction, which counts
        return placed.replace(
            name=given("labels") or None,
            kind=given("kinds"),
            units=given("units") or placed.units,
        )
    size = header.fields["sizes"][number]
    spacing, origin, units = implied_by(entry, given("spacings"), size)
    if given("spacings") is not None:
        if spacing == given("spacings"):
            entry["spacing"] = spacing
        spacing = given("spacings")
    if is_only_node(entry):
        entry.clear()
    return Axis(
        name=given("labels") or None,
        kind=given("kinds"),
        units=given("units") or units,
        spacing=spacing,
        origin=origin,
    )


def is_only_node(entry: Entry) -> bool:
    """True if an entry has nothing but the position of the first sample, as `Axis.origin` has."""
    return set(entry) == {"center", "min"} and entry["center"] == "node"


def implied_by(
    entry: Entry, spacing: float | None, size: int
) -> tuple[float | None, float | None, str | None]:
    """Return spacing, origin and units of an axis without direction, as other fields imply them."""
    low, high, center = entry.get("min"), entry.get("max"), entry.get("center")
    if low is None or center is None:
        return None, None, None
    step = _step(low, high, size - (center == "node")) if high is not None else None
    if center == "node":
        return step, low, None
    width = step if spacing is None else spacing
    return step, None if width is None else low + width / 2, None


def _step(low: float, high: float, count: int) -> float | None:
    """Return the spacing of `count` steps between the ends of an axis; None for 0 or infinity."""
    step = (high - low) / count if count else 0.0
    return step if step and isfinite(step) else None


# --- metadata to header ---------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab
_CONTROL_IN_PAIR = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # and but the newline, which is escaped


def is_line(text: Any, charset: str) -> bool:
    """True if a text can be the rest of a header line and is read as it is."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.startswith((" ", "\t"))
        and is_encodable(text, charset)
    )


def is_quotable(text: Any, charset: str) -> bool:
    r"""True if a text can be put in quotes, where ``\"`` is the only escape."""
    return (
        isinstance(text, str)
        and not _CONTROL.search(text)
        and not text.endswith("\\")
        and is_encodable(text, charset)
    )


def is_pair(key: Any, value: Any, charset: str) -> bool:
    """True if an attribute can be a key/value pair, also for Teem."""
    if not (isinstance(key, str) and isinstance(value, str)) or key in ("", KEY):
        return False
    odd_key = key.startswith("#") or ":=" in key or ": " in key or "\n" in key
    return (
        not odd_key
        and not _CONTROL_IN_PAIR.search(key + value)
        and is_encodable(key + value, charset)
    )


def is_encodable(text: str, charset: str) -> bool:
    """True if a text can be encoded in a charset."""
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def flattened(text: str, charset: str) -> str:
    """Return a text on one line, for readers that do not know our pair."""
    line = _CONTROL.sub(" ", text).strip(" \t")
    return line.encode(charset, "replace").decode(charset)


def is_kind(kind: Any, size: int) -> bool:
    """True if NRRD has this kind, for an axis of this size."""
    return isinstance(kind, str) and KIND_SIZES.get(kind, -1) in (0, size)


# --- an array as a header -------------------------------------------------------------------------


def header_of(bundle: Bundle, encoding: str) -> tuple[Header, list[str]]:
    """Return the header of the one array of a bundle, and the names of what it cannot hold.

    Raises `Unsupported` for a field of the namespace that has a wrong form.
    """
    draft = _Draft(bundle)
    draft.add_form(encoding)
    draft.take_space()
    draft.add_own()
    draft.add_axes()
    draft.add_texts()
    return draft.header(), draft.lost


class _Draft:
    """Collects the fields of one header."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.array = bundle.arrays[0]
        self.form = form_of(self.array)
        self.meta = self.array.meta
        self.own: dict[str, Any] = self.meta.formats.get(NAMESPACE, {})
        self.placed: list[Axis] = []  # what follows from the space directions
        self.charset = "latin-1" if self.own.get("charset") == "latin-1" else "utf-8"
        self.fields: dict[str, Any] = {}
        self.pairs: dict[str, str] = {}
        self.record: dict[str, Any] = {"was": self.form.was} if self.form.was else {}
        self.lost: list[str] = []

    def add(self, field: str, value: Any) -> None:
        """Add a field, if its value is one that can be read again."""
        try:
            text = text_of(field, value)
            parsed_value = parsed(field, text, self.fields)
            text.encode(self.charset)
        except (TypeError, ValueError) as error:
            raise self._wrong(field, value, error) from error
        if "\n" in text or "\r" in text:
            raise self._wrong(field, value, ValueError("there is a line end in it"))
        self.fields[field] = parsed_value

    def _wrong(self, field: str, value: object, error: Exception) -> Unsupported:
        """Return the error for a field that cannot be written."""
        return Unsupported(
            f"the metadata field {NAMESPACE}.{field.replace(' ', '_')} cannot be written: {error}",
            got=repr(value)[:80],
            remedy="correct the field, or leave the metadata out",
        )

    def add_form(self, encoding: str) -> None:
        """Add the fields of type, sizes and encoding."""
        form = self.form
        self.add("type", form.type)
        if form.block:
            self.add("block size", form.block)
        self.add("dimension", len(form.sizes))
        self.add("sizes", form.sizes)
        width = form.block or self.array.element.nbytes // (2 if form.pairs else 1)
        if width > 1:
            big = form.block and self.own.get("endian") == "big"
            self.add("endian", "big" if big else "little")
        self.add("encoding", encoding)

    def take_space(self) -> None:
        """Put the fields of the space into the namespace, unless those there mean the same."""
        array, meta = self.array, self.meta
        before = list(self.lost)
        entries = self._entries(array.ndim)
        self.lost = before  # `add_axes` names those of the entries
        directions = [entry.get("direction") for entry in entries]
        axes = array.ra_axes
        axes = list(axes) if len(axes) == array.ndim else [Axis() for _ in entries]
        placed = meta.space is not None or any(axis.direction is not None for axis in axes)
        try:
            kept = not placed or is_said_by(self.own, directions, axes, meta.space)
        except (TypeError, ValueError, LookupError):
            kept = not placed  # `add` refuses the wrong fields
        if not kept:
            fields, directions, frame, lost = fields_of(axes, meta.space)
            own = {key: value for key, value in self.own.items() if key not in OF_SPACE}
            rank = fields.get("space_dimension") or SPACE_RANKS.get(fields.get("space", ""), 0)
            if len(own.get("measurement_frame") or ()) not in (0, rank):
                self.lost.append("measurement_frame, which belongs to another space")
                own.pop("measurement_frame")
            # In the order of the shape, as `_entries` takes them.
            made = [
                {**{k: v for k, v in entry.items() if k != "direction"}, "direction": vector}
                for entry, vector in zip(entries, directions, strict=True)
            ]
            made = made if array.index_order == "F" else made[::-1]
            self.own = {**own, **fields, "axes": made}
            if lost and meta.space is not None:
                self.record["space"] = meta.space.to_dict()
            elif frame is not None:
                self.record["space"] = {"frame": frame}
        try:
            self.placed, *_ = axes_in(self.own, directions)
        except (TypeError, ValueError, LookupError):
            self.placed = [Axis() for _ in axes]

    def add_own(self) -> None:
        """Add the fields of the namespace that are about the whole array."""
        for field, key in OWN_FIELDS.items():
            value = self.own.get(key)
            if value is not None:
                self.add(field, value)
        odd = {key: value for key, value in self.own.items() if key not in KNOWN_OWN}
        if odd:
            self.record.setdefault("formats", {})[NAMESPACE] = odd

    # --- axes

    def add_axes(self) -> None:
        """Add the fields with one value per axis; what they cannot hold goes to the record."""
        ndim = self.array.ndim
        entries = self._entries(ndim)
        axes: Sequence[Axis] = self.array.ra_axes
        if len(axes) != ndim:
            if axes:
                self.lost.append(f"metadata of {len(axes)} axes, since there are {ndim}")
            axes = [Axis() for _ in range(ndim)]
        columns: list[Entry] = []
        more: list[Entry] = []
        wrong: list[list[str]] = []
        for axis, entry, size, placed in zip(
            axes, entries, self.array.dims, self.placed, strict=True
        ):
            column, rest = self._column(axis, dict(entry), size, placed)
            odd = [field for field in rest if not Axis.takes(field, rest[field])]
            wrong.append([f"{field} {rest.pop(field)!r:.40}" for field in odd])
            columns.append(column)
            more.append(rest)
        self.lost += facts_of_axes(self.array, wrong)
        if self.form.pairs:
            columns.insert(0, {**self._mapping("complex_axis"), "kind": "complex"})
        if any(more):
            self.record["axes"] = more
        columns += [{} for _ in self.form.sizes[len(columns) :]]
        for field, key in COLUMNS.items():
            values = [column.get(key) for column in columns]
            if any(value is not None for value in values):
                self.add(field, values)

    def _entries(self, ndim: int) -> list[Entry]:
        """Return the entries of the namespace for `ndim` axes, the fastest first."""
        entries = self.own.get("axes", [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise self._wrong("axes", entries, TypeError("a list of mappings was expected"))
        if self.array.index_order != "F":
            entries = entries[::-1]
        if len(entries) > ndim:
            self.lost.append(f"the axes of the namespace {NAMESPACE}, which are more than {ndim}")
            entries = []
        # A stack has one axis more than its items: the slowest.
        return entries + [{} for _ in range(ndim - len(entries))]

    def _mapping(self, key: str) -> Entry:
        """Return a mapping of the namespace; empty without one."""
        value = self.own.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, value, TypeError("a mapping was expected"))
        return value

    def _column(self, axis: Axis, entry: Entry, size: int, placed: Axis) -> tuple[Entry, Entry]:
        """Return the values of an axis for the header, and the fields of `Axis` for the record."""
        rest: Entry = {}
        column = {key: entry.get(key) for key in AXIS_FIELDS.values()}
        has_spacing = entry.get("spacing") is not None
        if axis.name:
            home = column if is_quotable(axis.name, self.charset) else rest
            home["name"] = axis.name
        if axis.kind is not None:
            home = column if is_kind(axis.kind, size) else rest
            home["kind"] = axis.kind
        if axis.labels is not None:
            rest["labels"] = list(axis.labels)
        if column["direction"] is not None:
            if has_spacing:
                column["spacing"] = entry["spacing"]
            self._record_besides(axis, placed, rest)
        else:
            self._add_position(axis, column, rest, size, has_spacing=has_spacing)
            if axis.direction is not None:
                rest["direction"] = list(axis.direction)
        return column, rest

    def _record_besides(self, axis: Axis, placed: Axis, rest: Entry) -> None:
        """Record the fields of an axis that do not follow from its space direction."""
        if axis.units and axis.units != placed.units:
            rest["units"] = axis.units
        if placed.direction is None:
            for field in ("spacing", "origin"):
                if getattr(axis, field) not in (None, getattr(placed, field)):
                    rest[field] = getattr(axis, field)
            if axis.spacing == 1 and placed.spacing is None:
                rest["spacing"] = axis.spacing
        elif axis.origin is not None:
            rest["origin"] = axis.origin

    def _add_position(
        self, axis: Axis, column: Entry, rest: Entry, size: int, *, has_spacing: bool
    ) -> None:
        """Add spacing, origin and units, unless the entry implies them already.

        With `has_spacing` the spacing is added even if it is implied, as it was read.
        """
        given = axis.spacing if _is_spacing(axis.spacing) else None
        try:
            spacing, origin, units = implied_by(column, given, size)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise self._wrong("axes", column, error) from error
        if axis.spacing is not None and (has_spacing or axis.spacing != spacing):
            home = rest if given is None else column
            home["spacing"] = axis.spacing
        if axis.units and axis.units != units:
            home = column if is_quotable(axis.units, self.charset) else rest
            home["units"] = axis.units
        if axis.origin is None or axis.origin == origin:
            return
        free = column["min"] is None and column["max"] is None and column["center"] is None
        if free and _is_double(axis.origin):
            column["min"], column["center"] = axis.origin, "node"
        else:
            rest["origin"] = axis.origin

    # --- texts

    def add_texts(self) -> None:
        """Add description, units and attributes; other namespaces and the file go to the record."""
        meta = self.meta
        self._add_line("content", "description", meta.description)
        quoted = (meta.units or "")[:1] == (meta.units or "")[-1:] == '"'
        self._add_line("sample units", "units", meta.units, odd=quoted)
        if meta.encoding:
            self._keep(("encoding",), meta.encoding, "encoding")
        self._add_pairs(meta.attributes)
        spaces = in_dims_order({"formats": meta.formats}, self.array.index_order)["formats"]
        for name, space in spaces.items():
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
        """Add attributes as key/value pairs, or to the record."""
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
        """Add a field of free text; a text that cannot be read back goes to the record, too."""
        if not text:
            return
        odd |= len(text) > MAX_TEXT_BYTES // 4 or text != text.rstrip(" \t")
        if odd or not is_line(text, self.charset):
            self.record[key] = text
            text = flattened(text[:LONG_LINE], self.charset).strip('"')
        if text:
            self.add(field, text)

    def _keep_space(self, path: tuple[str, ...], space: dict[str, Any]) -> None:
        """Put a namespace into the record, without extents of files."""
        kept = roundtrip.without_extents(space)
        self.lost += [f"{path[-1]}.{key}" for key in space if key not in kept]
        if kept:
            self._keep(path, kept, f"the namespace {path[-1]}")

    def _keep(self, path: tuple[str, ...], value: Any, what: str) -> None:
        """Put a value into the record at a path of keys, or its name `what` into the losses."""
        try:
            roundtrip.text_of({"value": value, "path": list(path)}, DEFAULT.record_bytes)
        except Unsupported as error:
            self.lost.append(f"{what} ({error.what.removeprefix('metadata cannot be kept: ')})")
            return
        record = self.record
        for part in path[:-1]:
            record = record.setdefault(part, {})
        record[path[-1]] = value

    # --- all of it

    def header(self) -> Header:
        """Return the header, with our own pair in it."""
        if self.record:
            form = self.form
            facts = facts_of(form.type, form.sizes)
            self.pairs[KEY] = self._record_that_fits({"describes": facts, **self.record})
        comments = self.own.get("comments", [])
        if not isinstance(comments, list) or not all(is_comment(c, self.charset) for c in comments):
            error = ValueError("a list of single lines was expected")
            raise self._wrong("comments", comments, error)
        draft = Header("", self.fields, self.pairs, comments, None, charset=self.charset)
        return draft._replace(version=lowest_version(draft))

    def _record_that_fits(self, record: dict[str, Any]) -> str:
        """Return the text of a record; the largest parts are left out until it is short enough."""
        while True:
            try:
                return roundtrip.text_of(record, DEFAULT.record_bytes)
            except Unsupported:
                parts = [key for key in record if key != "describes"]
                largest = max(parts, key=lambda key: len(repr(record[key])))
                del record[largest]
                self.lost.append(f"{largest}, too much for one line of the header")


def is_comment(text: Any, charset: str) -> bool:
    """True if a text can follow the # of a comment."""
    is_line = isinstance(text, str) and "\n" not in text and "\r" not in text
    return is_line and is_encodable(text, charset)


def _is_double(value: Any) -> bool:
    """True if a number is one that a double holds."""
    try:
        return not isinstance(value, bool) and isfinite(value) and float(value) == value
    except (TypeError, OverflowError):
        return False


def _is_spacing(value: Any) -> bool:
    """True if NRRD can hold a number as a spacing."""
    return value is not None and _is_double(value) and value != 0
