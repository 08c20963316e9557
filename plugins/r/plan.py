"""The object of R that arrays become: vectors in lists with their attributes, and what is lost."""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, spanned
from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    first_of,
    little,
    refused,
    refused_type,
    type_name,
)

from .tables import CPLX, FRAME, INT, INTEGER64, LGL, OWN, RAW, REAL, RESERVED, STR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_INTEGER = (1 << 31) - 1
MOST_LENGTH = (1 << 31) - 1  # of one of several axes
MOST_ELEMENTS = 1 << 52
TIMES = {"<M8[D]", "<M8[s]", "<M8[ms]", "<M8[us]"}
TIMES |= {f">{one[1:]}" for one in TIMES}
HAS_NULLS = (LGL, INT, REAL, STR)


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


# --- lists ----------------------------------------------------------------------------------------


def root_of(bundle: Bundle, own: dict[str, Any], leaves: list[Leaf], fits: list[Fit]) -> Box:
    """The list of all vectors, with lists inside it for the groups."""
    groups = own.get("groups")
    groups = groups if isinstance(groups, dict) else {}
    boxes: dict[str, Box] = {}

    def box(path: str) -> Box | None:
        if path in boxes:
            return boxes[path]
        said = groups.get(path)
        attributes = bundle.attributes if not path else bundle.groups.get(path, {})
        kept, lost = held_attributes(attributes)
        if lost:
            where = f"group '{path}'" if path else "the file"
            reason = f"R has no place for attributes of {where}: {first_of(lost)}"
            fits.append(equivalent("", "metadata", reason))
        made = Box(dict(said) if isinstance(said, dict) else {}, kept)
        if path:
            above, _, name = path.rpartition("/")
            around = box(above)
            if around is None or name in around.members:
                return None
            around.members[name] = made
        boxes[path] = made
        return made

    box("")
    for leaf in leaves:
        above, _, name = leaf.name.rpartition("/")
        problem = _name_problem(leaf.name)
        around = None if problem else box(above)
        if around is None or name in around.members:
            problem = problem or "the name stands for something else, too"
            fits.append(refused(leaf.name, "names", problem))
        else:
            around.members[name] = leaf
    for path in bundle.explicit_groups():
        box(path)
    for path, made in boxes.items():
        fits += _box_fits(path, made)
    return boxes[""]


def _name_problem(name: str) -> str:
    if max(map(len, name.split("/"))) > DEFAULT.name_bytes:
        return f"names of more than {DEFAULT.name_bytes} characters are not read again"
    return "" if is_text(name) else "the name is not valid text"


def _box_fits(path: str, box: Box) -> Iterator[Fit]:
    name = f"group '{path}'" if path else "the list"
    if box.own.get("S4"):
        yield equivalent(
            "", "metadata", f"{name}: an S4 object is written as the list of its slots"
        )
    elif FRAME in box.classes and not box.is_frame:
        reason = f"{name}: columns of different lengths are a list, not a data frame"
        yield equivalent("", "metadata", reason)


# --- vectors --------------------------------------------------------------------------------------


def nulls_by_name_of(bundle: Bundle) -> dict[str, Array]:
    """The arrays of bools that mark missing values, by the names of the arrays of the values."""
    nulls_by_name: dict[str, Array] = {}
    for array in bundle.arrays:
        groups = array.name.split("/")[:-1]
        named = own_of(array).get("companions")
        for name in named if isinstance(named, dict) else ():
            paths = ("/".join([*groups[:n], name]) for n in range(len(groups), -1, -1))
            nulls = next((bundle.get(path) for path in paths if bundle.get(path) is not None), None)
            if nulls is not None and nulls.element.kind == "bool" and nulls.dims == array.dims:
                nulls_by_name[array.name] = nulls
    return {name: nulls for name, nulls in nulls_by_name.items() if nulls.name not in nulls_by_name}


def leaf_of(array: Array, nulls: Array | None, numbers: str, fits: list[Fit]) -> Leaf:
    """The vector that an array becomes; what would change or be lost goes to `fits`."""
    own = own_of(array)
    kind, change = _kind(array, own, numbers)
    levels = own.get("levels")
    if kind == STR and isinstance(levels, list) and all(isinstance(one, str) for one in levels):
        kind, change = INT, ""
    else:
        levels = []
    if kind is None:
        fits.append(refused_type(array, "R", "float64"))
        kind = REAL
    if change:
        fits.append(equivalent(array.name, "type", change))
    leaf = Leaf(array, nulls if kind in HAS_NULLS else None, kind, levels)
    fits += _shape_fits(array)
    leaf.attributes, lost = held_attributes(array.meta.attributes)
    lost = [f"attributes ({first_of(lost)})"] if lost else []
    if array.described and array.meta:
        more = ("kind", "units", "spacing", "origin", "direction")
        lost += facts_of_axes(array, [fields_of_axes([one], *more) for one in array.ra_axes])
        lost += facts_of(array, "description", "units", "axes", "attributes", OWN)
        if any(not isinstance(one, str | None) for axis in array.axes for one in axis.labels or ()):
            fits.append(equivalent(array.name, "metadata", "labels are written as text"))
    if lost:
        reason = f"R has no place for it: {', '.join(lost)}"
        fits.append(equivalent(array.name, "metadata", reason))
    return leaf


# kind and bytes -> the type of R; those that are narrower are stored wider
_KINDS = {
    **{(kind, nbytes): REAL for kind in FLOATS for nbytes in (2, 4, 8)},
    **{("int", nbytes): INT for nbytes in (1, 2, 4)},
    ("bool", 1): LGL, ("complex", 8): CPLX, ("complex", 16): CPLX, ("uint", 1): INT,
    ("uint", 2): INT,
}  # fmt: skip
_FULL = {LGL: 1, CPLX: 16, REAL: 8, INT: 4}
_WIDE = {CPLX: "complex128", REAL: "double", INT: "integer (32 bits)"}


def _kind(array: Array, own: dict[str, Any], numbers: str) -> tuple[int | None, str]:
    """The type of R that holds the elements, and what changes; None if there is none."""
    kind, nbytes, _, descr = array.element
    if kind == "user":
        return _kind_of_user(descr)
    if (kind, nbytes) == ("uint", 1) and numbers == "raw":
        return RAW, ""
    if (kind, nbytes) == ("int", 8) and INTEGER64 in _classes(own):
        return REAL, ""
    r_type = _KINDS.get((kind, nbytes))
    if r_type is None or nbytes == _FULL[r_type]:
        return r_type, ""
    return r_type, f"{type_name(little(array.element))} is stored as {_WIDE[r_type]}"


def _kind_of_user(descr: Any) -> tuple[int | None, str]:
    if not isinstance(descr, str):
        return None, ""
    if descr in TIMES:
        if descr in ("<M8[D]", "<M8[s]"):
            return REAL, ""
        unit = "R has no unit of times: it is the coarsest that is exact"
        return REAL, f"{unit}, and little-endian" if descr[0] == ">" else unit
    changes = {"U": "R keeps no width of texts: it is that of the longest",
               "S": "R keeps no width of bytes, and those that are ASCII are text"}  # fmt: skip
    change = changes.get(descr[1:2])
    return (None, "") if change is None else (STR, change)


def _classes(own: dict[str, Any]) -> list[Any]:
    classes = own.get("class")
    return classes if isinstance(classes, list) else []


def _shape_fits(array: Array) -> Iterator[Fit]:
    if not array.ndim:
        yield equivalent(array.name, "shape", "a single value is a vector of length 1")
    most = MOST_LENGTH if array.ndim > 1 else MOST_ELEMENTS
    spans = spanned(array.dims, max(8, array.element.nbytes)) > MAX_SPAN
    if spans or any(length > most for length in array.dims) or prod(array.dims) > MOST_ELEMENTS:
        yield refused(array.name, "shape", f"R has no axes of more than {most}, and "
                      f"no more than {MOST_ELEMENTS} elements")  # fmt: skip
