"""The variables of MATLAB that arrays become: class, dims and form of each; structs and cells."""

from __future__ import annotations

from math import prod

from .tables import ELEMENTS, TYPE_CODES, WIDE_COMPLEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Element

OWN = "mat"  # the namespace


class Leaf:
    """An array as a variable: class, MATLAB's dims, and how its elements become those of the class.

    `form` is ``numbers``, ``char`` or ``sparse``; `change` what happens to each element: ``same``,
    ``float`` (to the class), ``count`` (of a date), ``bytes``, ``integers`` (complex ones).
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
        self.columns = 0  # of a char array
        self.unit = 2  # bytes of each of its units
        self.jc: Any = None  # of a sparse matrix, once its elements were counted

    @property
    def nbytes(self) -> int:
        """The bytes of the elements, as far as they are known before any is read."""
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


HOLE = Box("cell", (0, 0))  # stands for an element of a cell that there is no array for: ``{}``


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
        leaf.columns = dims[1]
        return leaf
    if element.kind in ("float", "bfloat") and element.nbytes == 2:
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
    if element.kind == "complex":
        return "single" if element.nbytes == 8 else "double"
    return next(
        (
            cls
            for cls, known in ELEMENTS.items()
            if (known.kind, known.nbytes) == (element.kind, element.nbytes)
        ),
        "double",
    )


def letter_of(element: Element) -> str:
    """The kind of a numpy type: S, U, m, M or V; empty for plain and structured elements."""
    return element.descr[1:2] if isinstance(element.descr, str) else ""


def _user_leaf(array: Array, own: dict[str, Any]) -> Leaf:
    """Strings as char, dates as their counts, everything else as bytes."""
    element, dims = array.element, array.dims
    letter = letter_of(element)
    if letter in ("S", "U"):
        columns = element.nbytes // (4 if letter == "U" else 1)
        if own.get("class") == "char" and own.get("columns") == 0 and columns == 1:
            columns = 0  # it was empty; the text itself is looked at when it is written
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
    return dims if len(dims) > 1 else (1, *dims) if dims else (1, 1)


def char_dims(dims: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """The dims of the char array that holds strings: one row each."""
    return (dims[0] if dims else 1, columns, *dims[1:])
