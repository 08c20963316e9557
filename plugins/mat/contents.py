"""The contents of a file that holds a bundle: variables, structs and cells; and what is lost.

They are worked out from names, types, shapes and metadata alone. Groups become structs. A group
becomes a cell or an array of structs again if the namespace lists it as one, a cell also if its
members are numbered from 1.
"""

from __future__ import annotations

import re
from math import prod

from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, little, ml_name, spanned, type_name
from raconvert.files.limits import DEFAULT
from raconvert.plugin import equivalent, facts_of, refused

from .tables import (
    ELEMENTS,
    INDEX,
    KEYWORDS,
    MAX_DIM,
    MAX_NAME,
    MAX_RANK,
    MAX_V5_BYTES,
    TYPE_CODES,
    WIDE_COMPLEX,
    WIDEST,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.plugin import Element, Fit

V73 = "--out-opt version=7.3"
OWN = "mat"  # the namespace
MOST_NAMED = 5  # objects that a report names


class Leaf:
    """An array as a variable: class, MATLAB's dims, and how its elements become those of the class.

    `form` is ``numbers``, ``char`` or ``sparse``. `change` is what happens to each element:
    ``same``; ``float`` (cast to the class); ``count`` (a date to its number); ``bytes`` (its raw
    bytes); ``integers`` (complex ones, of the class); for char ``S`` or ``U`` (strings of that
    type) or ``units`` (uint16 as UTF-16).
    """

    __slots__ = (
        "array", "change", "cls", "columns", "complex", "dims", "form", "is_global", "jc",
        "logical", "unit",
    )  # fmt: skip

    def __init__(self, array: Array, cls: str, dims: tuple[int, ...]) -> None:
        self.array = array
        self.cls = cls
        self.dims = dims
        self.form = "numbers"
        self.change = "same"
        self.complex = array.element.kind == "complex"
        self.logical = cls == "logical"
        self.is_global = False
        self.columns = 0  # units in each row of a char array
        self.unit = 2  # bytes of a unit of a char array
        self.jc: Any = None  # starts of the columns of a sparse matrix, once they are counted

    @property
    def nbytes(self) -> int:
        """The bytes of the elements; 0 for a sparse matrix, whose elements are counted later."""
        if self.form == "char":
            return 2 * prod(self.dims)
        if self.form == "sparse":
            return 0
        return prod(self.dims) * int(TYPE_CODES[self.cls][1:]) * (1 + self.complex)


class Box:
    """A struct, an array of structs (its members one element after the other) or a cell."""

    __slots__ = ("cls", "dims", "fields", "is_global", "members")

    def __init__(
        self,
        cls: str,
        dims: tuple[int, ...],
        fields: list[str] | None = None,
        members: list[Node] | None = None,
    ) -> None:
        self.cls = cls
        self.dims = dims
        self.fields = fields or []
        self.members = members or []
        self.is_global = False

    @property
    def nbytes(self) -> int:
        """The bytes of all elements inside."""
        return sum(member.nbytes for member in self.members)


Node = Leaf | Box


HOLE = Box("cell", (0, 0))  # stands for an element of a cell without an array: ``{}``


def leaf_of(array: Array, version: str) -> Leaf:
    """The class, dims and form of an array."""
    element, dims = array.element, matrix_dims(array.dims)
    own = array.meta.formats.get(OWN)
    former = own.get("class") if isinstance(own, dict) else None
    if element.kind == "user":
        return _user_leaf(array, own if isinstance(own, dict) else {})
    cls = _class_of(element)
    if former == "char" and cls == "uint16":
        leaf = Leaf(array, "char", dims)
        leaf.form, leaf.change = "char", "units"
        leaf.columns = dims[-1]
        return leaf
    if element.kind in FLOATS and element.nbytes == 2:
        leaf = Leaf(array, "single" if version == "7.3" else "double", dims)
        leaf.change = "float"
        return leaf
    leaf = Leaf(array, cls, dims)
    if former == "sparse" and len(dims) == 2 and cls in ("double", "logical"):
        leaf.form = "sparse"
    if isinstance(former, str) and former in WIDE_COMPLEX and element.kind == "complex":
        leaf.cls, leaf.change = former, "integers"
    return leaf


def _class_of(element: Element) -> str:
    """The class of an element type; double for those that MATLAB has no class for."""
    if element.kind == "complex":
        return "single" if element.nbytes == 8 else "double"
    for cls, row in ELEMENTS.items():
        if (row.kind, row.nbytes) == (element.kind, element.nbytes):
            return cls
    return "double"


def letter_of(element: Element) -> str:
    """The letter of a numpy type: S, U, m, M or V; empty for numbers and structured elements."""
    return element.descr[1:2] if isinstance(element.descr, str) else ""


def _user_leaf(array: Array, own: dict[str, Any]) -> Leaf:
    """The leaf of strings (as char), of dates (as counts), or of anything else (as bytes)."""
    element, dims = array.element, array.dims
    letter = letter_of(element)
    if letter in ("S", "U"):
        columns = element.nbytes // (4 if letter == "U" else 1)
        if own.get("class") == "char" and own.get("columns") == 0 and columns == 1:
            columns = 0  # it was empty; the text is measured when it is written
        leaf = Leaf(array, "char", char_dims(dims, columns))
        leaf.form, leaf.change, leaf.columns = "char", letter, columns
        return leaf
    if letter in ("m", "M"):
        leaf = Leaf(array, "int64", matrix_dims(dims))
        leaf.change = "count"
        return leaf
    leaf = Leaf(array, "uint8", matrix_dims((element.nbytes, *dims)))
    leaf.change = "bytes"
    return leaf


def matrix_dims(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The dims as MATLAB has them, two at least: a scalar is 1 x 1, a list is a row."""
    return (*(1,) * (2 - len(dims)), *dims)


def char_dims(dims: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """The dims of the char array that holds strings, each along the last axis."""
    return (*(dims or (1,)), columns)


class Contents:
    """The variables of a file, in order, and the fits of what is changed or lost.

    `names` are the paths of the arrays in the file, in the order of the bundle.
    """

    def __init__(self, bundle: Bundle, version: str) -> None:
        self.version = version
        self.fits: list[Fit] = []
        own = bundle.formats.get(OWN)
        own = own if isinstance(own, dict) else {}
        values = own.get("values")
        self._values: dict[str, Any] = values if isinstance(values, dict) else {}
        self._listed = own.get("variables")
        self._objects: list[str] = []  # groups that were objects, with their classes
        self._paths: dict[int, str] = {}
        self._order: list[int] = []
        self._arrays = bundle.arrays
        root = self._tree(bundle)
        self.variables = self._variables(root)
        self.names = [self._paths[index] for index in range(len(bundle.arrays))]
        if self._order != sorted(self._order):
            reason = "the arrays of one group are stored together, so that their order changes"
            self.fits.append(equivalent("", "names", reason))
        self._metadata(bundle)
        self._note_objects()

    # --- names ------------------------------------------------------------------------------

    def _tree(self, bundle: Bundle) -> dict[str, Any]:
        """A tree of the names: a dict for each group, the index in the bundle for each array."""
        root: dict[str, Any] = {}
        for index, array in enumerate(bundle.arrays):
            *groups, last = array.name.split("/")
            inside = root
            most = DEFAULT.nesting_levels
            if len(groups) >= most:
                reason = f"it lies below {len(groups)} groups, at most {most} can be read"
                self.fits.append(refused(array.name, "names", reason))
                groups = []
            for group in groups:
                inside = self._group(inside, group, array.name)
            if last in inside:
                reason = "another array or group has the same name"
                self.fits.append(refused(array.name, "names", reason, "--allow names"))
                last = next(f"{last}_{n}" for n in range(2, 1 << 30) if f"{last}_{n}" not in inside)
            inside[last] = index
        for path in bundle.groups:
            inside = root
            for group in path.split("/")[: DEFAULT.nesting_levels]:
                if not isinstance(inside.get(group, {}), dict):
                    break
                inside = inside.setdefault(group, {})
        return root

    def _group(self, inside: dict[str, Any], name: str, array: str) -> dict[str, Any]:
        """Return the group of a name, created if needed; with a number if the name is an array."""
        if not isinstance(inside.get(name, {}), dict):
            reason = f"'{name}' is an array and the group of this one"
            self.fits.append(refused(array, "names", reason, "--allow names"))
            number = 2
            while not isinstance(inside.get(f"{name}_{number}", {}), dict):
                number += 1
            name = f"{name}_{number}"
        group: dict[str, Any] = inside.setdefault(name, {})
        return group

    def _called(self, names: list[str], path: str, what: str) -> dict[str, str]:
        """Map each name to a valid one for the file; add a fit for each that changes."""
        chosen: dict[str, str] = {}
        used = {name for name in names if is_name(name)}
        for name in names:
            chosen[name] = name
            if is_name(name):
                continue
            chosen[name] = sanitised(name, used)
            used.add(chosen[name])
            member = f"{path}/{name}" if path else name
            reason = f"{_shown(name)} is not a name of a {what} in MATLAB{_why(name)}"
            reason += f"; it would be called {chosen[name]}"
            self.fits.append(refused(member, "names", reason, "--allow names"))
        return chosen

    # --- values -----------------------------------------------------------------------------

    def _variables(self, root: dict[str, Any]) -> list[tuple[str, Node]]:
        """The variables, by name; adds a fit for each that is too large for the version."""
        called = self._called(list(root), "", "variable")
        variables = []
        for name, content in in_order(root, self._listed):
            node = self._node(content, name, called[name])
            if self.version != "7.3" and node.nbytes > MAX_V5_BYTES:
                reason = (
                    f"variable '{name}' has {node.nbytes} bytes; version {self.version} holds at "
                    f"most {MAX_V5_BYTES} in one"
                )
                array = name if isinstance(content, int) else ""
                self.fits.append(refused(array, "storage", reason, V73))
            variables.append((called[name], node))
        return variables

    def _node(self, content: Any, path: str, called: str) -> Node:
        """The node of an array or group; `path` is its path in the bundle, `called` in the file."""
        if isinstance(content, int):
            self._paths[content] = called
            self._order.append(content)
            return self._leaf(self._arrays[content])
        facts = self._values.get(path)
        box = self._box(content, path, called, facts if isinstance(facts, dict) else {})
        if isinstance(facts, dict):
            box.is_global = facts.get("global") is True
            if isinstance(facts.get("object"), str):
                self._objects.append(f"'{path}' ({facts['object']})")
        return box

    def _box(self, content: dict[str, Any], path: str, called: str, facts: dict[str, Any]) -> Box:
        """The struct or cell of a group, as the namespace (`facts`) describes it, if it fits."""
        dims = dims_of(facts)
        if facts.get("class") == "cell" and dims and all_below(content, prod(dims)):
            return self._cell(content, path, called, dims)
        fields = facts.get("fields")
        if facts.get("class") == "struct" and dims and isinstance(fields, list | None):
            fields = [str(name) for name in fields or []]
            if dims != (1, 1) and is_struct_array(content, prod(dims), fields):
                return self._struct_array(content, path, called, dims, fields)
        if is_numbered(content):
            return self._cell(content, path, called, (1, max(map(int, content))))
        return self._struct(content, path, called, fields)

    def _cell(self, content: dict[str, Any], path: str, called: str, dims: tuple[int, ...]) -> Box:
        members: list[Node] = []
        for number in map(str, range(1, prod(dims) + 1)):
            if number in content:
                members.append(
                    self._node(content[number], f"{path}/{number}", f"{called}/{number}")
                )
            else:
                members.append(HOLE)
        return Box("cell", dims, None, members)

    def _struct(self, content: dict[str, Any], path: str, called: str, listed: Any) -> Box:
        content = dict(in_order(content, listed))
        names = self._called(list(content), path, "field")
        members = [
            self._node(inside, f"{path}/{name}", f"{called}/{names[name]}")
            for name, inside in content.items()
        ]
        return Box("struct", (1, 1), list(names.values()), members)

    def _struct_array(
        self,
        content: dict[str, Any],
        path: str,
        called: str,
        dims: tuple[int, ...],
        fields: list[str],
    ) -> Box:
        names = self._called(fields, path, "field")
        members: list[Node] = []
        for number in map(str, range(1, prod(dims) + 1)) if fields else ():
            inside = content.get(number, {})
            members += [
                self._node(
                    inside[field], f"{path}/{number}/{field}", f"{called}/{number}/{names[field]}"
                )
                if field in inside
                else HOLE
                for field in fields
            ]
        return Box("struct", dims, list(names.values()), members)

    # --- arrays -----------------------------------------------------------------------------

    def _leaf(self, array: Array) -> Leaf:
        """The leaf of an array; adds the fits for what changes in it."""
        leaf = leaf_of(array, self.version)
        own = array.meta.formats.get(OWN)
        leaf.is_global = isinstance(own, dict) and own.get("global") is True
        self.fits += type_fits(array, leaf, self.version)
        self.fits += shape_fits(array, leaf, self.version)
        return leaf

    def _metadata(self, bundle: Bundle) -> None:
        for array in bundle.arrays:
            has_encoding = letter_of(array.element) in ("S", "U")  # not lost: char is Unicode
            if words := facts_of(array, OWN, *["encoding"] * has_encoding):
                reason = f"MAT has no place for it: {', '.join(words)}"
                self.fits.append(equivalent(array.name, "metadata", reason))
        if bundle.attributes:
            self.fits.append(
                equivalent("", "metadata", "MAT has no place for attributes of the file")
            )
        groups = [path for path, attributes in bundle.groups.items() if attributes]
        if groups:
            reason = f"MAT has no place for attributes of groups: {', '.join(groups[:5])}"
            self.fits.append(equivalent("", "metadata", reason))

    def _note_objects(self) -> None:
        """Add a fit that names the groups that were objects, since they are written as structs."""
        objects = self._objects
        if objects:
            more = f" and {len(objects) - MOST_NAMED} more" if len(objects) > MOST_NAMED else ""
            reason = f"objects are written as structs: {', '.join(objects[:MOST_NAMED])}{more}"
            self.fits.append(equivalent("", "type", reason))


def sanitised(name: str, used: set[str]) -> str:
    """A name that is valid in MATLAB, similar to `name` and different from all `used`."""
    taken = re.sub(r"[^A-Za-z0-9_]", "_", name[: 2 * MAX_NAME], flags=re.ASCII)[:MAX_NAME]
    if not taken[:1].isalpha() or taken in KEYWORDS:
        taken = f"x{taken}"[:MAX_NAME]
    if taken not in used:
        return taken
    number = 2
    while True:
        ending = f"_{number}"
        numbered = taken[: MAX_NAME - len(ending)] + ending
        if numbered not in used:
            return numbered
        number += 1


def _shown(name: str) -> str:
    """A name in quotes, as ASCII, cut to 40 characters."""
    text = ascii(name)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _why(name: str) -> str:
    """The rule that a name breaks, in parentheses."""
    if name in KEYWORDS:
        return " (a keyword)"
    if len(name) > MAX_NAME:
        return f" (above {MAX_NAME} characters)"
    return " (a letter, then letters, digits and _)"


def type_fits(array: Array, leaf: Leaf, version: str) -> list[Fit]:
    """The fits for elements that get another type."""
    name, element = array.name, array.element
    if leaf.change == "float":
        kind = type_name(little(element))
        if ml_name(element) and version == "7.3":
            reason = f"v7.3 has no {kind}"
            return [refused(name, "type", reason, "--dtype float32")]
        return [equivalent(name, "type", f"{kind} becomes {leaf.cls}")]
    if leaf.change in ("S", "U") and not _is_own_text(array):
        what = "text"
        if leaf.change == "S":
            what = "UTF-8" if array.meta.encoding == "utf-8" else "bytes"
        return [equivalent(name, "type", f"{what} of a fixed width become rows of a char array")]
    if leaf.change == "count":
        reason = f"{element.descr} would become a count without its unit (int64)"
        return [refused(name, "type", reason, "--allow dtype")]
    if leaf.change == "bytes":
        what = "structured elements" if isinstance(element.descr, tuple) else "raw bytes"
        reason = f"{what} would become {element.nbytes} uint8 on a new first axis"
        return [refused(name, "type", reason, "--allow dtype")]
    return []


def _is_own_text(array: Array) -> bool:
    """True if text was read from a char array and becomes the same one again."""
    own = array.meta.formats.get(OWN)
    columns = own.get("columns") if isinstance(own, dict) else None
    if not isinstance(columns, int) or own is None or own.get("class") != "char":
        return False
    return bool(array.element.descr == f"<U{max(1, columns)}") and array.ndim > 0


def shape_fits(array: Array, leaf: Leaf, version: str) -> list[Fit]:
    """The fits for a shape that changes, or that the version cannot hold."""
    name, dims, fits = array.name, leaf.dims, []
    if leaf.change == "bytes":
        pass  # `type_fits` names the new axis
    elif not array.dims:
        what = "one row" if leaf.form == "char" else " x ".join(map(str, dims))
        fits.append(equivalent(name, "shape", f"a single element becomes {what}"))
    elif array.ndim == 1 and leaf.form != "char":
        fits.append(equivalent(name, "shape", f"one axis of {dims[1]} becomes 1 x {dims[1]}"))
    if len(dims) > 2 and dims[-1] == 1:
        reason = "written, but MATLAB drops trailing axes of length 1"
        fits.append(equivalent(name, "shape", reason))
    if len(dims) > MAX_RANK[version]:
        reason = f"{len(dims)} axes; version {version} holds at most {MAX_RANK[version]}"
        flag = "--out-opt version=7" if version == "7.3" and len(dims) <= MAX_RANK["7"] else None
        fits.append(refused(name, "shape", reason, flag))
    if version != "7.3" and max(dims) > MAX_DIM:
        reason = f"an axis of {max(dims)}; version {version} holds at most {MAX_DIM}"
        fits.append(refused(name, "shape", reason, V73))
    if spanned(dims, WIDEST) > MAX_SPAN:
        fits.append(refused(name, "shape", "its axes span more than an array of MAT can have"))
    return fits


# Names, and what the namespace says -------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
MOST_GAPS = 1 << 20  # elements without a value with which a cell may be written
SPARSE_HOLES = 16  # how many numbers may be missing in a group that becomes a cell


def is_name(text: str) -> bool:
    """True if a text is a valid name of a variable or field in MATLAB."""
    return _NAME.fullmatch(text) is not None and text not in KEYWORDS


def in_order(content: dict[str, Any], listed: Any) -> list[tuple[str, Any]]:
    """The members in the order in which the namespace lists them; others come last."""
    names = listed if isinstance(listed, list) else []
    ranks = {name: rank for rank, name in enumerate(names) if isinstance(name, str)}
    return sorted(content.items(), key=lambda item: ranks.get(item[0], len(names)))


def dims_of(facts: dict[str, Any]) -> tuple[int, ...]:
    """The dims in the namespace; empty if they are missing or not valid."""
    dims = facts.get("dims")
    if not isinstance(dims, list) or len(dims) < 2 or len(dims) > MAX_RANK["7.3"]:
        return ()
    if any(type(n) is not int or not 0 <= n <= MAX_DIM for n in dims):
        return ()
    return tuple(dims)


def all_below(content: dict[str, Any], count: int) -> bool:
    """True if all names are indices up to `count`, and not too many of these are missing."""
    if any(not INDEX.fullmatch(name) or int(name) > count for name in content):
        return False
    return count <= max(MOST_GAPS, 64 * len(content))


def is_numbered(content: dict[str, Any]) -> bool:
    """True if a group becomes a cell without the namespace: its members are numbered from 1."""
    if not content or any(not INDEX.fullmatch(name) for name in content):
        return False
    return max(map(int, content)) <= len(content) + SPARSE_HOLES


def is_struct_array(content: dict[str, Any], count: int, fields: list[str]) -> bool:
    """True if the members are elements of an array of structs with these fields."""
    if not fields:
        return not content
    return all_below(content, count) and all(
        isinstance(inside, dict) and set(inside) <= set(fields) for inside in content.values()
    )
