"""Objects of MATLAB's own classes as arrays and groups: a row of `CLASSES` for each.

Properties, as MATLAB saves them::

    string            any: uint64: 1, rank, dims, units of each text (all bits: missing), UTF-16
    datetime          data: milliseconds since 1970, of which the imaginary part is the rest that a
                      double does not hold; tz, fmt; in UTC if there is a time zone
    duration          millis, fmt
    calendarDuration  components: months, days, millis, each an array or one number for all
    categorical       categoryNames, codes from 1 (0: undefined), isOrdinal, isProtected
    table             data, varnames, nrows, rownames, props (units, descriptions, dimension names)
    timetable         any: the same in other words, and rowTimes
    containers.Map    serialization: keys, values
    dictionary        data: Key, Value
"""

from __future__ import annotations

from functools import partial
from math import prod

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import Element, element
from raconvert.arrays.metadata import Axis
from raconvert.errors import RaconvertError, Unsupported, worded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .mcos import Node, Values

    Properties = Mapping[str, Node]

LEAP_SECONDS = "UTCLeapSeconds"  # MATLAB's zone in which a day may have 86401 seconds
SINCE = "milliseconds since 1970-01-01 00:00:00"
USUAL_AXIS = "Row"  # MATLAB's name of the rows of a table that nobody named
CODES = ((1 << 7, 1), (1 << 15, 2), (1 << 31, 4))  # number of categories, bytes of their codes


# Text --------------------------------------------------------------------------------------------


def _string(values: Values, properties: Properties) -> None:
    from .sources_of_classes import Strings

    array = values.array(properties.get("any"), "text")
    if array.element.kind != "uint" or array.element.nbytes != 8:
        raise values.corrupt("is not stored as uint64", got=array.element.kind)
    if array.element.order == ">":
        raise Unsupported("holds strings in big-endian numbers, which no MATLAB is known to write",
                          path=values.source.path)  # fmt: skip
    strings = Strings(array, values.path, values.source)
    missing = f"{values.path}.missing"
    own = {"companions": {missing: "nulls"}} if strings.is_missing else {}
    width = strings.width
    text = Element("user", 4 * width, "|", f"<U{width}")
    values.add(text, strings.dims, data=strings.texts, own=own)
    if strings.is_missing:
        values.tree.of_class(missing, "missing", element("bool", 1), strings.dims,
                             data=strings.missing)  # fmt: skip


def _texts(values: Values, path: str, texts: list[str], **meta: Any) -> None:
    """Add texts along one axis; raises `Unsupported` if one ends with NUL."""
    from raconvert.arrays.memory import check_memory

    from .sources_of_classes import Texts

    width = max(1, max(map(len, texts), default=1))
    if any(text.endswith("\0") for text in texts):
        raise Unsupported("a text ends with NUL, which text of a fixed width cannot tell",
                          path=values.source.path)  # fmt: skip
    source = values.source
    check_memory(4 * width * len(texts), source.max_memory, f"{len(texts)} texts of {width}")
    kind = Element("user", 4 * width, "|", f"<U{width}")
    data = partial(Texts, texts, width, path, source)
    values.tree.of_class(path, "cell of text", kind, (len(texts),), data=data, **meta)


# Times -------------------------------------------------------------------------------------------


def _datetime(values: Values, properties: Properties) -> None:
    zone = values.text(properties.get("tz"), "time zone")
    since = f"{SINCE} UTC" if zone else SINCE
    leap = " in the zone UTCLeapSeconds" if zone == LEAP_SECONDS else ""
    attributes = {"time_zone": zone} if zone else {}
    array = values.array(properties.get("data"), "data")
    _times(values, properties, array, "M8", attributes=attributes, units=since, why=leap)


def _duration(values: Values, properties: Properties) -> None:
    _times(values, properties, values.array(properties.get("millis"), "data"), "m8", units="ms")


def _times(
    values: Values,
    properties: Properties,
    array: Array,
    kind: str,
    *,
    units: str,
    attributes: dict[str, Any] | None = None,
    why: str = "",
) -> None:
    """Add times or durations in a unit that holds all of them, else in milliseconds as stored.

    `why` is the reason for milliseconds, if one is known before the values are read.
    """
    from .sources_of_classes import Times, unit_of

    if array.element.kind not in ("float", "complex") or array.element.nbytes < 8:
        raise values.corrupt("is not stored as double", got=array.element.kind)
    tree = values.tree
    form = values.text(properties.get("fmt"), "format")
    own = {"format": form} if form else {}
    unit, rounded = None, False
    if not why and tree.times != "milliseconds":
        unit, rounded = unit_of(array, nearest=tree.times == "nearest")
    if unit is None:
        values.add(array.element, array.dims, data=array, own=own, attributes=attributes,
                   units=units)  # fmt: skip
        if tree.times != "milliseconds":
            why = why or " that no unit from ms to ns holds exactly"
            nearest = "" if "zone" in why else "; `--in-opt times=nearest` rounds them to ns"
            tree.note(worded(f"'{values.path}' has times{why}, and is read as {units}{nearest}"))
        return
    if rounded:
        tree.note(f"'{values.path}': times were rounded to {unit}")
    data = partial(Times, array, kind, unit, values.path, values.source)
    described = Element("user", 8, "|", f"<{kind}[{unit}]")
    values.add(described, array.dims, data=data, own=own, attributes=attributes)


def _calendar(values: Values, properties: Properties) -> None:
    node = properties.get("components")
    if node is None or node.cls != "struct":
        raise values.corrupt("has no components")
    values.tree.was_class(values.path, values.cls, "months, days and milliseconds")
    for name, part in node.fields().items():
        if part.cls == "double":
            values.add_value(part, f"{values.path}/{name}")


# Categories --------------------------------------------------------------------------------------


def _categorical(values: Values, properties: Properties) -> None:
    from .sources_of_classes import Codes

    names = _names(values, properties.get("categoryNames"))
    array = values.array(properties.get("codes"), "codes")
    if array.element.kind not in ("uint", "int"):
        raise values.corrupt("has codes that are not whole numbers", got=array.element.kind)
    ordinal = properties.get("isOrdinal")
    ordered = bool(values.number(ordinal, "order")) if ordinal is not None else False
    nbytes = next(n for limit, n in CODES if len(names) < limit)
    data = partial(Codes, array, len(names), nbytes, values.path, values.source)
    attributes = {"levels": names, "ordered": ordered}
    values.add(element("int", nbytes), array.dims, data=data, attributes=attributes)


def _names(values: Values, node: Node | None) -> list[str]:
    """The names of categories: a cell of texts, or a string."""
    texts = values.texts(node)
    if texts is not None:
        return texts
    arrays = [] if node is None else values.resolved(node)
    if len(arrays) != 1 or arrays[0].element.descr is None:
        raise values.corrupt("has names of categories that are not text")
    return [str(text) for text in arrays[0][...].reshape(-1, order="F")]


# Tables ------------------------------------------------------------------------------------------


def _table(values: Values, properties: Properties) -> None:
    node = properties.get("props")
    props = node.fields() if node is not None and node.cls == "struct" else {}
    columns = _Columns(values, properties, ("varnames", "nrows"), props)
    rows = values.texts(properties.get("rownames")) or []
    if rows and len(rows) != columns.rows:
        raise values.corrupt("has a wrong number of row names", columns.rows, len(rows))
    columns.open(["VariableUnits", "VariableDescriptions", "DimensionNames"], props)
    if rows:
        columns.label(rows)
    columns.add_all()


def _timetable(values: Values, properties: Properties) -> None:
    node = properties.get("any")
    if node is None or node.cls != "struct":
        raise values.corrupt("has no data")
    fields = node.fields()
    inside = fields.get("arrayProps")
    props = inside.fields() if inside is not None and inside.cls == "struct" else {}
    columns = _Columns(values, fields, ("varNames", "numRows"), props)
    columns.open(["varUnits", "varDescriptions", "dimNames"], fields)
    if "rowTimes" in fields:
        columns.add(columns.axis or "Time", fields["rowTimes"])
    columns.add_all()


class _Columns:
    """The variables of a table, each an array or a group below that of the table.

    `words` are the properties with the names of the variables and the number of rows.
    """

    def __init__(
        self, values: Values, properties: Properties, words: tuple[str, str], props: Properties
    ) -> None:
        self.values = values
        self.tree = values.tree
        names = values.texts(properties.get(words[0]))
        node = properties.get("data")
        if names is None or node is None or node.cls != "cell":
            raise values.corrupt("has no variables")
        if len(names) != prod(node.dims):
            expected = f"{len(names)}, one for each name"
            raise values.corrupt("has a wrong number of variables", expected, prod(node.dims))
        rows = values.number(properties.get(words[1]), "number of rows")
        if not 0 <= rows < 1 << 48 or rows % 1:
            raise values.corrupt(
                "has an impossible number of rows", "a whole number below 2^48", rows
            )
        self.rows = int(rows)
        self.nodes = node.members()
        self.names = names
        self.description = values.text(props.get("Description"), "description")
        self.user_data = props.get("UserData")
        self.axis = ""
        self.row = Axis()  # name and labels of the rows
        self.units: list[str] = []
        self.descriptions: list[str] = []

    def open(self, words: list[str], properties: Properties) -> None:
        """Make the group of the table; `properties` have units, descriptions and axis names."""
        tree, path = self.tree, self.values.path
        units, descriptions, axes = (self.values.texts(properties.get(w)) or [] for w in words)
        self.axis = axes[0] if axes else ""
        self.row = Axis(self.axis if self.axis != USUAL_AXIS else None)
        self.units = units if len(units) == len(self.names) else []
        self.descriptions = descriptions if len(descriptions) == len(self.names) else []
        self.paths = tree.fields(self.names, path)
        tree.was_class(path, self.values.cls, "its columns")
        if self.description or not self.names:
            tree.groups[path] = {"description": self.description} if self.description else {}
        if self.user_data is not None and prod(self.user_data.dims):
            reason = "has no place in a group of columns"
            tree.leave_out(f"{path}.Properties.UserData", self.user_data.cls, reason)

    def label(self, rows: list[str]) -> None:
        """Add the names of the rows as a column, and as labels of all others if they are few."""
        path = f"{self.values.path}/{self.axis or USUAL_AXIS}"
        _texts(self.values, path, rows)
        if len(rows) <= self.tree.limits.axis_labels:
            self.row = self.row.replace(labels=rows)

    def add_all(self) -> None:
        """Add all variables; an error in one does not hide the others."""
        units = self.units or [""] * len(self.names)
        descriptions = self.descriptions or [""] * len(self.names)
        columns = zip(self.paths, self.nodes, units, descriptions, strict=True)
        for name, node, unit, description in columns:
            self.add(name, node, unit or None, description or None)

    def add(
        self, name: str, node: Node, units: str | None = None, description: str | None = None
    ) -> None:
        """Add one variable, or in its place the error for which it cannot be read."""
        path = f"{self.values.path}/{name}"
        first = len(self.tree.arrays)
        mark = self.tree.mark()
        try:
            self._add(path, node, units, description)
        except RaconvertError as error:
            if self.tree.full:
                raise
            self.tree.unreadable(path, error, mark)
        if len(self.tree.arrays) == first:
            self.tree.close_container(path, first)

    def _add(self, path: str, node: Node, units: str | None, description: str | None) -> None:
        is_column = node.cls == "cell" and node.dims == (self.rows, 1)
        texts = self.values.texts(node) if is_column else None
        if texts is not None:
            _texts(self.values, path, texts)
        else:
            self.values.add_value(node, path)
        array = self.tree.arrays[-1] if self.tree.arrays else None
        if array is None or array.name not in (path, f"{path}.missing") or array.problem:
            return
        for index in (-1, -2)[: len(self.tree.arrays)]:  # strings and which of them are missing
            if self.tree.arrays[index].name in (path, f"{path}.missing"):
                self._finish(index, units, description)

    def _finish(self, index: int, units: str | None, description: str | None) -> None:
        """Give an array the metadata of its column; a matrix of one column gets a single axis."""
        array = self.tree.arrays[index]
        if array.shape[:1] != (self.rows,):
            what = f"has a variable '{array.name}' with another number of rows"
            raise self.values.corrupt(what, self.rows, array.shape)
        if array.shape == (self.rows, 1):
            array = _flat(array)
        meta = array.meta
        meta = meta.replace(units=units or meta.units, description=description)
        if self.row:
            meta = meta.replace(axes=[self.row] + [Axis()] * (array.ndim - 1))
        self.tree.arrays[index] = array.replace(meta=meta)


def _flat(array: Array) -> Array:
    """The array with one axis for a matrix of one column."""
    from .sources_of_classes import Flat

    return Array(
        array.element, (array.count,), name=array.name, index_order="C", meta=array.meta,
        extent=array.extent, data=partial(Flat, array), storage=array.storage,
    )  # fmt: skip


# Maps --------------------------------------------------------------------------------------------


def _map(values: Values, properties: Properties) -> None:
    node = properties.get("serialization")
    if node is None or node.cls != "struct":
        raise values.corrupt("has no data")
    values.tree.was_class(values.path, values.cls, "its keys and values")
    for name, part in node.fields().items():
        if name not in ("keys", "values"):
            continue
        texts = values.texts(part) if name == "keys" else None
        path = f"{values.path}/{name}"
        if texts is None:
            values.add_value(part, path)
        else:
            _texts(values, path, texts)


def _dictionary(values: Values, properties: Properties) -> None:
    node = properties.get("data")
    if node is None or node.cls != "struct":
        raise values.corrupt("has no data")
    values.tree.was_class(values.path, values.cls, "its keys and values")
    fields = node.fields()
    for name in ("Key", "Value"):
        if name in fields:
            values.add_value(fields[name], f"{values.path}/{name}")
    if "Key" not in fields:
        values.tree.groups.setdefault(values.path, {})


CLASSES: dict[str, Callable[[Values, Properties], None]] = {
    "string": _string,
    "datetime": _datetime,
    "duration": _duration,
    "calendarDuration": _calendar,
    "categorical": _categorical,
    "table": _table,
    "timetable": _timetable,
    "containers.Map": _map,
    "dictionary": _dictionary,
}
