"""Roles of the arrays of a file: what people mean by it, and what only serves another array.

Coordinates, their bounds, tables of codes and columns of offsets belong to arrays beside them. They
are recognised by the names of axes, by attributes that name them (as the CF conventions do), and by
their own names.
"""

from __future__ import annotations

from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle

COORDINATE, SUPPORT = "coordinate", "support"
# Attributes of a variable that name others, by the CF conventions, and what these are.
_NAMING = {
    "coordinates": COORDINATE, "bounds": SUPPORT, "climatology": SUPPORT, "grid_mapping": SUPPORT,
    "ancillary_variables": SUPPORT, "cell_measures": SUPPORT, "formula_terms": SUPPORT,
    "geometry": SUPPORT, "DIMENSION_LABELS": COORDINATE,
}  # fmt: skip
# Last parts of the names of integer arrays that have offsets, lengths or numbers of other values.
_SERVING = frozenset(
    ("offset", "offsets", "indptr", "indices", "index", "row_splits", "cu_seqlens", "lengths",
     "shape", "strides", "permutation", "codes", "row_ptr")
)  # fmt: skip
_ENDINGS = ("_offsets", "_offset", "_indptr", "_index", "_lengths", "_splits")
_TABLES = frozenset(("palette", "lut", "colormap", "color_map"))  # colours of numbers in others
_BOUNDS = ("_bnds", "_bounds")  # endings of the names of the ends of cells
_MOST_WORDS = 64  # names in an attribute


class Roles(Record):
    """The arrays of a bundle by role.

    `kinds` has the role of each array that serves others, by name; `beside` the names of those that
    belong to each array.
    """

    kinds: dict[str, str]
    beside: dict[str, tuple[str, ...]]


def roles_of(bundle: Bundle) -> Roles:
    """Find the arrays of a bundle that serve others. Reads no elements, raises nothing."""
    arrays = {array.name: array for array in bundle.arrays}
    kinds: dict[str, str] = {}
    beside: dict[str, tuple[str, ...]] = {}
    if len(arrays) < 2:
        return Roles(kinds, beside)
    for array in bundle.arrays:
        named = dict.fromkeys(_named_by(array, arrays))
        if named:
            beside[array.name] = tuple(name for name, _ in named)
            for name, kind in named:
                kinds.setdefault(name, kind)
        if _serves(array):
            kinds.setdefault(array.name, SUPPORT)
    if len(kinds) >= len(arrays):  # a file of nothing but coordinates is about them
        kinds = {}
    return Roles(kinds, beside)


def _named_by(array: Array, arrays: dict[str, Array]) -> Iterator[tuple[str, str]]:
    """Yield the names of the arrays that belong to one, each with its role."""
    if array.problem is not None:
        return
    for axis, length in zip(array.axes, array.shape, strict=False):
        other = _resolved(axis.name, array, arrays)
        if other is not None and other.ndim == 1 and other.count == length:
            yield other.name, COORDINATE
    for attribute, kind in _NAMING.items():
        words = array.meta.attributes.get(attribute)
        if isinstance(words, str):
            for word in words.split()[:_MOST_WORDS]:
                other = _resolved(word, array, arrays)
                if other is not None:
                    yield other.name, kind


def _resolved(name: Any, array: Array, arrays: dict[str, Array]) -> Array | None:
    """The array of this name in the group of `array`, or in a group above it; None without any."""
    if not name or not isinstance(name, str):
        return None
    group = array.name.rpartition("/")[0]
    while True:
        other = arrays.get(f"{group}/{name}" if group else name)
        if other is not None and other is not array and other.problem is None:
            return other
        if not group:
            return None
        group = group.rpartition("/")[0]


def _serves(array: Array) -> bool:
    """True if the name or an attribute of an array says that it is about the values of others."""
    last = array.name.rpartition("/")[2].lower()
    if last in _TABLES or last.endswith(_BOUNDS):
        return True
    if "grid_mapping_name" in array.meta.attributes:
        return True
    named = last in _SERVING or last.endswith(_ENDINGS)
    return named and array.ndim == 1 and array.element.kind in ("int", "uint", "user")


def main_array(bundle: Bundle, roles: Roles | None = None) -> Array | None:
    """The array that people mean: the largest readable one that serves no other.

    Numbers come before other elements; of equally many, those with a description or a unit.
    """
    kinds = (roles or roles_of(bundle)).kinds
    sound = [array for array in bundle.arrays if array.problem is None]
    return max(sound, key=lambda array: _weight(array, kinds), default=None)


def _weight(array: Array, kinds: dict[str, str]) -> tuple[bool, bool, int, int, int]:
    """The key by which arrays are sorted: the largest is that of the array that people mean."""
    numbers = array.element.kind != "user" and bool(array.count)
    count = array.count // 8 if array.element.kind == "bool" else array.count
    described = bool(array.meta.description) + bool(array.meta.units)
    return numbers and array.name not in kinds, numbers, count, described, array.nbytes
