"""The object that arrays become: vectors in lists, and plain values as attributes of both."""

from __future__ import annotations

from .tables import FRAME, INT, LGL, OWN, RAW, REAL, RESERVED, STR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from raconvert.plugin import Array

MAX_INTEGER = (1 << 31) - 1


class Leaf:
    """A vector: the array, the array of what is missing, and its type in R."""

    def __init__(self, array: Array, nulls: Array | None, kind: int, levels: list[str]) -> None:
        self.array = array
        self.nulls = nulls
        self.kind = kind
        self.levels = levels  # of a factor
        self.own = own_of(array)
        self.attributes: dict[str, Any] = {}
        self.name = array.name


class Box:
    """A list: its members by name, and what the namespace of the file says of it."""

    def __init__(self, own: dict[str, Any], attributes: dict[str, Any]) -> None:
        self.members: dict[str, Leaf | Box] = {}
        self.own = own
        self.attributes = attributes

    @property
    def is_frame(self) -> bool:
        """True if it is to be a data frame, and its columns are of one length."""
        return FRAME in self.classes and len(self.rows) <= 1

    @property
    def rows(self) -> set[int]:
        """The numbers of rows of its members; -1 for those that have none."""
        leaves = self.members.values()
        return {one.array.shape[0] if isinstance(one, Leaf) and one.array.ndim else -1
                for one in leaves}  # fmt: skip

    @property
    def classes(self) -> list[str]:
        """The classes of the object."""
        classes = self.own.get("class")
        return [one for one in classes if isinstance(one, str)] if isinstance(classes, list) else []


def own_of(array: Array) -> dict[str, Any]:
    """The namespace of an array."""
    own = array.meta.formats.get(OWN)
    return dict(own) if isinstance(own, dict) else {}


# --- attributes -----------------------------------------------------------------------------------


def held_attributes(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The attributes that R can hold as vectors, and the names of the others."""
    kept = {name: value for name, value in attributes.items()
            if isinstance(name, str) and name and name not in RESERVED
            and vector_type(value) is not None and "\0" not in name}  # fmt: skip
    return kept, [str(name) for name in attributes if name not in kept]


def vector_type(value: Any) -> int | None:
    """The type of the vector of R that a plain value is, or None."""
    if isinstance(value, bytes):
        return RAW
    items = list(value) if isinstance(value, list | tuple) else [value]
    kinds = {type(one) for one in items} - {type(None)}
    if kinds == {bool}:
        return LGL
    if kinds == {str}:
        return STR if all(one is None or is_text(one) for one in items) else None
    if kinds and kinds <= {int, float}:
        if kinds == {int} and all(one is None or abs(one) <= MAX_INTEGER for one in items):
            return INT
        return REAL if all(one is None or abs(one) <= 1 << 53 or isinstance(one, float)
                           for one in items) or kinds == {float} else None  # fmt: skip
    return None


def is_text(text: str) -> bool:
    """True for what R can hold as a string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
