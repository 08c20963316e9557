"""From the objects of a file to a bundle: names, shapes, labels, missing values, notes.

A vector is an array, with a second one of bools where values are missing (`NA`); a list, a data
frame and an S4 object are groups of what lies in them. What paths and shapes do not tell is in the
namespace ``rds``, so that it is written as it was.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from math import isnan, prod

import numpy as np

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, listed
from raconvert.files.quoting import r
from raconvert.plugin import Array, Axis, Element, Metadata, element

from . import values
from .tables import (
    CPLX,
    DATE,
    FACTOR,
    FRAME,
    INT,
    INTEGER64,
    LGL,
    LIST,
    MOST_EXACT,
    NA_INTEGER,
    NA_REAL_LOW,
    NIL,
    NO_NULLS,
    NULLS,
    OWN,
    RAW,
    REAL,
    RESERVED,
    ROW_NAMES,
    S4,
    STR,
    TIME,
    TYPE_NAMES,
    UNITS,
    VEC,
    WIDTHS,
)
from .values import File, Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.plugin import Source

    from .items import Node

NUMBERS = {INT: ("int", 4, "i4"), REAL: ("float", 8, "f8"), CPLX: ("complex", 16, "c16"),
           RAW: ("uint", 1, "u1")}  # fmt: skip
MOST_AXES = 64  # as many as NumPy has
MOST_NOTES = 50
GROUPS = (LIST, VEC, S4)
LONGEST_EXPRESSION = 200  # characters of an expression of R that programs show
LETTERS_PER_BYTE = 64  # the most letters of the paths of all objects, for each decoded byte
WIDENING = 256  # the most bytes for each stored byte of texts, if all are as wide as the widest
KEPT_ATTRIBUTE = 1000  # the most elements of an attribute that is kept


class Names:
    """The names in one group, no two of them alike."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Return a name as one part of a path, with a number behind it if it is taken."""
        chosen = name.replace("%", "%25").replace("/", "%2F") if "/" in name else name
        chosen = own = chosen or "unnamed"
        while chosen in self._used:
            self._used[own] += 1
            chosen = f"{own}~{self._used[own]}"
        self._used[chosen] = 1
        return chosen


class Tree:
    """Arrays, groups and notes of one file.

    `own` has the facts of groups for the namespace, `forms` their forms in words, by path.
    """

    def __init__(self, source: Source, file: File, nbytes: int) -> None:
        self.source = source
        self.nbytes = nbytes  # of all objects, decoded
        self.file = file
        self.arrays: list[Array] = []
        self.groups: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any]] = {}
        self.forms: dict[str, str] = {}
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self._letters = 0  # of all paths

    def note(self, text: str) -> None:
        """Add a note, up to `MOST_NOTES` of them."""
        if len(self.notes) < MOST_NOTES:
            self.notes.append(text)
        elif len(self.notes) == MOST_NOTES:
            self.notes.append(f"there are more than {MOST_NOTES} notes, the others are not shown")

    def leave_out(self, path: str, what: str) -> None:
        """Note an object that is left out; `what` it is in words."""
        self.left_out.append(f"'{path}' ({what})")
        self.note(f"'{path}' was left out: it is {what}")

    def add(self, path: str, node: Node, names: Names, expression: str | None = None) -> None:
        """Add an object: an array, or a group with all its members.

        `expression` selects it in R behind the object of the file; None if that is not simple.
        """
        self._letters += len(path)
        most = min(self.source.limits.path_characters, LETTERS_PER_BYTE * (1000 + self.nbytes))
        if self._letters > most:
            raise TooLarge("names are too long, one inside the other", path=self.source.path,
                           expected=f"at most {most} characters of all paths")  # fmt: skip
        if node.kind == NIL:
            self.leave_out(path, "NULL")
        elif node.what:
            self.leave_out(path, node.what)
        elif node.kind in GROUPS:
            self.group(path, node, expression)
        else:
            try:
                self.array(path, node, names, expression)
            except (Corrupt, TooLarge, Unsupported) as error:
                error.path = error.path or self.source.path
                error.where = f"'{path[:80]}'" + (f", {error.where}" if error.where else "")
                self.arrays.append(Array.unreadable(path, error))

    # --- groups -----------------------------------------------------------------------------

    def group(self, path: str, node: Node, expression: str | None = "") -> None:
        """Add a list, a data frame, or the slots of an S4 object; the root has no path."""
        before = len(self.arrays)
        own = self._group_facts(node)
        self._add_members(path, node, expression, own)
        attributes = {} if node.kind == S4 else self.attributes(path, node)
        if own:
            self.own[path] = own
        if (form := _form(node, own)) and path:
            self.forms[path] = form
        if attributes or len(self.arrays) == before:
            self.groups[path] = attributes

    def _group_facts(self, node: Node) -> dict[str, Any]:
        """Return the facts of a group for the namespace, but for the names of its members."""
        own: dict[str, Any] = {}
        if classes := self.strings(node.attribute("class")):
            own["class"] = classes
        if node.kind == S4:
            own["S4"] = True
        if dims := self.integers(node.attribute("dim")):
            own["dim"] = dims
            if node.attribute("dimnames") is not None:
                self.note("labels of the axes of a list were left out")
        return own

    def _add_members(
        self, path: str, node: Node, expression: str | None, own: dict[str, Any]
    ) -> None:
        """Add the members of a group; `own` gets the names that paths do not have."""
        members, named = self._members(node)
        names, inside = Names(), f"{path}/" if path else ""
        changed: dict[str, str] = {}
        for number, (name, member) in enumerate(members, 1):
            if len(name) > self.source.limits.name_bytes:
                raise TooLarge("a name is too long", path=self.source.path, where=f"'{path[:80]}'",
                               expected=f"at most {self.source.limits.name_bytes} characters",
                               got=len(name))  # fmt: skip
            chosen = names.add(name or str(number))
            if chosen != name:
                changed[chosen] = name
                if name:
                    self.note(f"'{name}' was read as '{inside}{chosen}'")
            key = _key(name if named and chosen == name else number)
            simple = expression is not None and key is not None and node.kind != S4
            simple = simple and len(f"{expression}{key}") <= LONGEST_EXPRESSION
            self.add(inside + chosen, member, names, f"{expression}[[{key}]]" if simple else None)
        rows = node.attribute(ROW_NAMES)
        if rows is not None and not self._counted(rows):
            self.add(inside + ROW_NAMES, rows, names)
        if not named and members:
            own["unnamed"] = True
        elif changed:
            own["names"] = changed

    def _members(self, node: Node) -> tuple[list[tuple[str, Node]], bool]:
        """Return the members of a list by name, and True if they have names, else numbers."""
        if node.kind == S4:
            return [(name, slot) for name, slot in node.attributes if name != "class"], True
        names: list[Any] = [name for name, _ in node.members]
        if node.kind == VEC:
            names = self.strings(node.attribute("names"))
        if len(names) != len(node.members) or not any(names):
            return [(str(n), member) for n, (_, member) in enumerate(node.members, 1)], False
        pairs = zip(names, node.members, strict=True)
        return [(name or "", member) for name, (_, member) in pairs], True

    def _counted(self, rows: Node) -> bool:
        """True for row names that only count the rows: c(NA, -n), or 1 to n."""
        if rows.sequence is not None:
            return rows.sequence == (1, 1)
        return rows.kind == INT and (rows.count == 0 or (rows.count == 2 and rows.nulls))

    # --- arrays -----------------------------------------------------------------------------

    def array(self, path: str, node: Node, names: Names, expression: str | None) -> None:
        """Add a vector as an array of its shape, and one that marks its missing values."""
        classes = self.strings(node.attribute("class"))
        shape, axes = self._axes(node)
        own: dict[str, Any] = {"class": classes} if classes else {}
        if node.attribute("dim") is not None and len(shape) == 1:
            own["dim"] = True
        if node.attribute("dimnames") is not None and not any(axes):
            own["dimnames"] = True
        kind, pieces, nulls = self._typed(node, classes, own)
        self._check_span(node, kind, shape)
        meta = Metadata(axes=axes if any(axes) else (), attributes=self.attributes(path, node))
        attributes = dict(meta.attributes)
        for name, field in (("units", "units"), ("comment", "description")):
            if isinstance(attributes.get(name), str) and attributes[name]:
                meta = meta.replace(**{field: attributes.pop(name)})
        meta = meta.replace(attributes=attributes)
        nulls = nulls or node.attribute(NO_NULLS) is not None
        nulls_path = ""
        if nulls:
            above, _, last = path.rpartition("/")
            nulls_path = names.add(f"{last}.{NULLS}")
            nulls_path = f"{above}/{nulls_path}" if above else nulls_path
            own["companions"] = {nulls_path: "nulls"}
        meta = meta.with_format(OWN, **own) if own else meta
        made = self._lazy(path, node, kind, shape, meta, pieces)
        wrap = "as.character({})" if "levels" in own else "{}"
        self.arrays.append(_selected(made, expression, wrap))
        if nulls:
            missing = partial(values.missing, self.file, node)
            kind = element("bool", 1)
            meta = Metadata(axes=axes if any(axes) else ())
            made = self._lazy(nulls_path, node, kind, shape, meta, missing)
            self.arrays.append(_selected(made, expression, "is.na({})"))

    def _typed(
        self, node: Node, classes: list[str], own: dict[str, Any]
    ) -> tuple[Element, Callable[[], Iterator[Any]] | None, bool]:
        """Return the element type of a vector, the maker of its pieces, and True if some are NA.

        Facts for the namespace are added to `own`.
        """
        file = self.file
        if node.kind == STR:
            return (*self._texts(node), node.nulls)
        if node.kind == LGL:
            return element("bool", 1), partial(values.logicals, file, node), node.nulls
        if node.kind == INT and FACTOR in classes:
            levels = self.strings(node.attribute("levels"))
            own["levels"] = levels
            kind = _text_element(max(map(len, levels), default=1))
            return (
                kind,
                partial(values.labels, file, node, levels, np.dtype(kind.descr)),
                node.nulls,
            )
        for name in (DATE, TIME):
            if name in classes and node.kind in (INT, REAL) and (unit := self._unit(node, name)):
                if node.kind == INT:
                    own["stored"] = "integer"
                kind = Element("user", 8, "|", f"<M8[{unit}]")
                return kind, partial(values.times, file, node, unit), False
        order = file.order
        if node.kind == REAL and INTEGER64 in classes:
            return element("int", 8, order), partial(file.numbers, node, "i8"), True
        name, nbytes, code = NUMBERS[node.kind]
        return element(name, nbytes, order), partial(file.numbers, node, code), node.nulls

    def _texts(self, node: Node) -> tuple[Element, Callable[[], Iterator[Any]]]:
        """Return the element type of strings, and the maker of their pieces."""
        if "undecodable" in node.codings:
            raise Unsupported(
                "holds a string that is not in the encoding that the file says",
                remedy="name the encoding with `--in-opt encoding=latin-1`, or another one",
            )
        width = node.width if node.deferred is None else 11  # the digits of an integer, and a sign
        kind = _text_element(width)
        if "bytes" in node.codings:
            if node.codings - {"", "bytes"}:
                raise Unsupported("holds texts and strings of bytes without an encoding")
            kind = Element("user", max(1, width), "|", f"|S{max(1, width)}")
        dtype = np.dtype(kind.descr)
        return kind, partial(values.texts, self.file, node, dtype)

    def _unit(self, node: Node, name: str) -> str | None:
        """Return the coarsest unit of datetime64 that is exact for all elements, or None."""
        units = [unit for unit, _ in UNITS[name]]
        if node.kind == INT:
            return units[0]
        exact = node.times
        if exact is None:
            from .items import exact_units

            exact = frozenset(units)
            for piece in self.file.numbers(node, "f8"):
                exact = exact_units(piece, exact)
                if not exact:
                    break
        return next((unit for unit in units if unit in exact), None)

    def _lazy(
        self, path: str, node: Node, kind: Element, shape: tuple[int, ...], meta: Metadata,
        pieces: Callable[[], Iterator[Any]] | None,
    ) -> Array:  # fmt: skip
        """Return the array of a vector: an extent if it lies in the file as it is."""
        order = "F" if len(shape) > 1 else "C"
        storage = {"class": TYPE_NAMES[node.kind]}
        if packing := self.file.stream.packing:
            storage["compression"] = packing
        fields: dict[str, Any] = {"name": path, "index_order": order, "meta": meta}
        fields["storage"] = storage
        as_stored = kind.kind in ("int", "uint", "float", "complex") and node.sequence is None
        if as_stored and not packing:
            swap = 1 if kind.order != ">" else kind.nbytes // (2 if kind.kind == "complex" else 1)
            nbytes = node.count * WIDTHS[node.kind]
            return Array(kind, shape, extent=self.source.extent(node.at, nbytes, swap), **fields)
        return Array(kind, shape, data=partial(_made, self.file, path, shape, kind, pieces),
                     **fields)  # fmt: skip

    def _check_span(self, node: Node, kind: Element, shape: tuple[int, ...]) -> None:
        """Refuse axes that do not hold the elements, or far more than the file has bytes for."""
        if prod(shape) != node.count:
            raise Corrupt("dims do not fit the number of elements", expected=node.count, got=shape)
        if len(shape) > MOST_AXES:
            raise Unsupported("array has too many axes", expected=f"at most {MOST_AXES}",
                              got=len(shape))  # fmt: skip
        if spanned(shape, kind.nbytes) > MAX_SPAN:
            raise Corrupt("dims that no array has", got=shape)
        limits, nbytes = self.source.limits, node.count * kind.nbytes
        stored, most = self.source.size, limits.expansion_ratio * self.source.size
        if isinstance(kind.descr, str) and kind.descr[1] in "US":
            stored, most = node.nbytes, WIDENING * node.nbytes
        if nbytes > max(limits.memory, most):
            raise TooLarge(
                f"declares {nbytes} bytes of elements, of which few are stored",
                expected=f"at most {limits.memory} (`--max-memory`), unless more is stored",
                got=f"{stored} stored bytes",
            )

    def _axes(self, node: Node) -> tuple[tuple[int, ...], list[Axis]]:
        """Return the lengths of the axes, and the axes with their names and labels."""
        dim, names = node.attribute("dim"), node.attribute("dimnames")
        if dim is None:
            return (node.count,), [Axis(labels=self._labels_of(node.attribute("names"), node))]
        shape = tuple(self.integers(dim))
        if dim.count != len(shape) or not shape or any(n < 0 for n in shape):
            raise Corrupt("dims are not lengths of axes", got=shape)
        if len(shape) > MOST_AXES:
            raise Unsupported("array has too many axes", expected=f"at most {MOST_AXES}",
                              got=len(shape))  # fmt: skip
        axes = [Axis() for _ in shape]
        if names is not None and names.kind == VEC:
            called = self.strings(names.attribute("names"))
            called += [""] * (len(names.members) - len(called))
            if len(names.members) != len(shape):
                raise Corrupt("names of dims are not as many as dims", expected=len(shape),
                              got=len(names.members))  # fmt: skip
            axes = [
                Axis(name or None, labels=self._labels_of(one, None, length))
                for name, (_, one), length in zip(called, names.members, shape, strict=False)
            ]
        return shape, axes

    def _labels_of(
        self, node: Node | None, of: Node | None, length: int | None = None
    ) -> list[str | None] | None:
        """Return the labels of an axis; raises `Corrupt` unless they are as many as in `of`."""
        length = of.count if of is not None else length
        if node is None or node.kind == NIL:
            return None
        labels: list[Any] = self.strings(node)
        if node.kind != STR or len(labels) != length:
            raise Corrupt("labels are not as many as elements", expected=length, got=node.count)
        return labels

    # --- plain values -----------------------------------------------------------------------

    def strings(self, node: Node | None) -> list[Any]:
        """Return the strings of an attribute, None for NA; an empty list for other objects."""
        if node is None or node.kind != STR:
            return []
        if node.texts is None and node.deferred is None:
            raise TooLarge(
                "holds too many strings in attributes",
                expected=f"at most {self.source.limits.attribute_bytes} bytes of them",
            )
        if {"undecodable", "bytes"} & node.codings:
            raise Unsupported(
                "has a name or a label that is not in the encoding that the file says",
                remedy="name the encoding with `--in-opt encoding=latin-1`, or another one",
            )
        return list(self.file.texts(node))

    def integers(self, node: Node | None) -> list[int]:
        """Return the whole numbers of a short attribute; an empty list for anything else."""
        if node is None or node.kind not in (INT, REAL) or node.count > KEPT_ATTRIBUTE:
            return []
        code = "i4" if node.kind == INT else "f8"
        numbers = [n for piece in self.file.numbers(node, code) for n in piece.tolist()]
        if any(not 0 <= n < MOST_EXACT or n % 1 for n in numbers):
            return []
        return [*map(int, numbers)]

    def attributes(self, path: str, node: Node) -> dict[str, Any]:
        """Return the attributes as plain values; those that have none are noted and left out."""
        kept, lost = {}, []
        for name, attribute in node.attributes:
            if name in RESERVED:
                continue
            value = self._attribute_value(attribute)
            if value is None:
                what = attribute.what or TYPE_NAMES.get(attribute.kind, "NULL")
                lost.append(f"{name} ({what})")
            else:
                kept[name] = value
        if lost:
            self.note(f"attributes of '{path}' were left out: {listed(lost, 5)}")
        return kept

    def _attribute_value(self, node: Node) -> Any:
        """Return the value of an attribute: one, or a list; None if it has no plain form."""
        if node.what or node.count > KEPT_ATTRIBUTE or node.attributes:
            return None
        if node.kind == RAW:
            return node.held
        if node.kind == STR:
            if {"undecodable", "bytes"} & node.codings:
                return None
            if node.texts is None and node.deferred is None:  # too many to be in memory
                return None
            values: list[Any] = list(self.file.texts(node))
        elif node.kind in (LGL, INT, REAL):
            code = "f8" if node.kind == REAL else "i4"
            values = [n for piece in self.file.numbers(node, code) for n in piece.tolist()]
            values = [None if _is_missing(n) else n for n in values]
            if node.kind == LGL:
                values = [n if n is None else bool(n) for n in values]
        else:
            return None
        return values[0] if len(values) == 1 and values[0] is not None else values


def _key(name: str | int) -> str | None:
    """Return the word in double brackets for a member of a list; None if no program may name it."""
    if isinstance(name, int):
        return str(name)
    return None if not name.isprintable() or _WORDS.search(name) else r(name)


_WORDS = re.compile(r"\b(FILE|NAME|PATH)\b")  # words that are filled in when a program is shown


def _selected(array: Array, expression: str | None, wrap: str) -> Array:
    """Return the array with the expression that selects it in R from an object ``x``."""
    if expression is not None:
        array.storage["in R"] = wrap.replace("{}", f"x{expression}")
    return array


def _is_missing(value: float) -> bool:
    """True for NA."""
    if isinstance(value, float):
        bits = int.from_bytes(struct.pack("<d", value), "little")
        return isnan(value) and bits & 0xFFFFFFFF == NA_REAL_LOW
    return value == NA_INTEGER


def _text_element(width: int) -> Element:
    """Return the element type of texts of at most `width` characters."""
    width = max(1, width)
    return Element("user", 4 * width, "|", f"<U{width}")


def _form(node: Node, own: dict[str, Any]) -> str:
    """Return the form of a group in words, such as its class; empty for a plain list."""
    classes = own.get("class", [])
    if node.kind == S4:
        return f"S4 {listed(classes)}"
    if FRAME in classes:
        return FRAME
    words = [f"list {' x '.join(map(str, own['dim']))}"] if "dim" in own else []
    return " ".join([*words, *(["class", listed(classes)] if classes else [])])


def _made(file: File, path: str, shape: tuple[int, ...], kind: Element, pieces: Any) -> Vector:
    from raconvert.arrays.dtypes import dtype_of

    return Vector(file, path, shape[::-1], dtype_of(kind), pieces)


def check_any_array(tree: Tree) -> None:
    """Refuse a file without a readable array; the error names what it holds."""
    problems: list[RaconvertError | None] = [array.problem for array in tree.arrays]
    if None in problems:
        return
    if problems and problems[0] is not None:
        raise problems[0]
    raise Unsupported(
        "holds no array", path=tree.source.path, expected="vectors of R, or lists of them",
        got=listed(tree.left_out, 5) or "empty lists",
    )  # fmt: skip


# Lines of R that read an array --------------------------------------------------------------------


def programs_of(array: Array, whole: str) -> dict[str, str]:
    """Return the lines of R that take an array out of the object ``x``, which `whole` reads.

    Raises nothing.
    """
    expression = array.storage.get("in R")
    if expression is None or array.problem is not None:
        return {}
    return {"R": whole if expression == "x" else f"{whole}\nx <- {expression}"}
