"""The object of R that arrays become: vectors in lists with their attributes, and what is lost."""

from __future__ import annotations

from math import prod

from raconvert.arrays.bundle import masks_of
from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, spanned
from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Array,
    Axis,
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

from .tables import (
    CPLX,
    FRAME,
    INT,
    INTEGER64,
    LGL,
    NULLS,
    OWN,
    RAW,
    REAL,
    RESERVED,
    STR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_INTEGER = (1 << 31) - 1
MOST_LENGTH = (1 << 31) - 1  # of an axis, if there are several
MOST_ELEMENTS = 1 << 52
TIMES = {"<M8[D]", "<M8[s]", "<M8[ms]", "<M8[us]"}
TIMES |= {f">{code[1:]}" for code in TIMES}
HAS_NULLS = (LGL, INT, REAL, STR)


class Leaf:
    """A vector: the array, the array that marks missing values, and the type in R."""

    def __init__(self, array: Array, nulls: Array | None, kind: int, levels: list[str]) -> None:
        self.array = array
        self.nulls = nulls
        self.kind = kind
        self.levels = levels  # of a factor
        self.own = own_of(array)
        self.attributes: dict[str, Any] = {}
        self.name = array.name


class Box:
    """A list: its members by name, its facts in the namespace of the file, and attributes."""

    def __init__(self, own: dict[str, Any], attributes: dict[str, Any]) -> None:
        self.members: dict[str, Leaf | Box] = {}
        self.own = own
        self.attributes = attributes

    @property
    def is_frame(self) -> bool:
        """True if it has the class of a data frame, and its columns are of one length."""
        return FRAME in self.classes and len(self.rows) <= 1

    @property
    def rows(self) -> set[int]:
        """The numbers of rows of its members; -1 for those that have none."""
        return {
            member.array.shape[0] if isinstance(member, Leaf) and member.array.ndim else -1
            for member in self.members.values()
        }

    @property
    def classes(self) -> list[str]:
        """The recorded classes of the object."""
        return classes_in(self.own)

    def dims(self, count: int) -> list[int] | None:
        """Return the recorded lengths of the axes of a list, if they fit `count` members."""
        dims = self.own.get("dim")
        if not isinstance(dims, list) or not dims:
            return None
        sound = all(type(n) is int and 0 <= n <= MOST_LENGTH for n in dims)
        return dims if sound and prod(dims) == count else None


def classes_in(own: Mapping[str, Any]) -> list[str]:
    """Return the recorded classes in a namespace; those that R cannot hold are left out."""
    classes = own.get("class")
    if not isinstance(classes, list):
        return []
    return [name for name in classes if isinstance(name, str) and is_text(name)]


def own_of(array: Array) -> dict[str, Any]:
    """Return the namespace of an array; empty without one."""
    own = array.meta.formats.get(OWN)
    return dict(own) if isinstance(own, dict) else {}


# --- attributes -----------------------------------------------------------------------------------


def writable_attributes(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes that R can hold as vectors, and the names of the others."""
    kept = {
        name: value
        for name, value in attributes.items()
        if isinstance(name, str) and name and name not in RESERVED and is_text(name)
        and vector_type(value) is not None
    }  # fmt: skip
    return kept, [str(name) for name in attributes if name not in kept]


def vector_type(value: Any) -> int | None:
    """Return the type of the vector of R for a plain value; None if no vector holds it."""
    if isinstance(value, bytes):
        return RAW
    items = [item for item in (value if isinstance(value, list | tuple) else [value])
             if item is not None]  # fmt: skip
    kinds = {*map(type, items)}
    if kinds == {bool}:
        return LGL
    if kinds == {str}:
        return STR if all(map(is_text, items)) else None
    if not kinds or not kinds <= {int, float}:
        return None
    integers = [abs(item) for item in items if type(item) is int]
    if kinds == {int} and max(integers) <= MAX_INTEGER:
        return INT
    return REAL if max(integers, default=0) <= 1 << 53 else None


def is_text(text: str) -> bool:
    """True for a text that R can hold as a string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def name_of(axis: Axis) -> str:
    """Return the name of an axis; empty if it has none, or one that R cannot hold."""
    return axis.name if axis.name and is_text(axis.name) else ""


def labels_of(axis: Axis) -> list[str | None] | None:
    """Return the labels of an axis as texts; None if it has none, or R cannot hold one of them."""
    if axis.labels is None:
        return None
    labels = [label if label is None else str(label) for label in axis.labels]
    return labels if all(label is None or is_text(label) for label in labels) else None


def _lost_texts(axis: Axis) -> list[str]:
    """List the fields of an axis that R cannot hold as strings."""
    lost = ["name"] if axis.name and not name_of(axis) else []
    return [*lost, *(["labels"] if axis.labels is not None and labels_of(axis) is None else [])]


# --- lists ----------------------------------------------------------------------------------------


def root_of(bundle: Bundle, own: dict[str, Any], leaves: list[Leaf], fits: list[Fit]) -> Box:
    """Return the list of all vectors, with lists inside it for the groups.

    What does not fit is added to `fits`; `own` is the namespace of the file.
    """
    groups = own.get("groups")
    groups = groups if isinstance(groups, dict) else {}
    boxes: dict[str, Box] = {}

    def box(path: str) -> Box | None:
        """Return the list of a group, made if need be; None if a vector has its name."""
        if path in boxes:
            return boxes[path]
        attributes = bundle.groups.get(path, {}) if path else bundle.attributes
        made = _box(path, groups.get(path), attributes, fits)
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
        if problem := _name_problem(path):
            fits.append(refused("", "names", f"group {path[:80]!r}: {problem}"))
        else:
            box(path)
    for path, made in boxes.items():
        fits += _box_fits(path, made)
    return boxes[""]


def _box(path: str, facts: Any, attributes: Mapping[str, Any], fits: list[Fit]) -> Box:
    """Return an empty list for a group; attributes that R cannot hold are added to `fits`."""
    kept, lost = writable_attributes(attributes)
    if lost:
        where = f"group '{path}'" if path else "the file"
        reason = f"R has no place for attributes of {where}: {first_of(lost)}"
        fits.append(equivalent("", "metadata", reason))
    return Box(dict(facts) if isinstance(facts, dict) else {}, kept)


def _name_problem(name: str) -> str:
    """Return the reason why R, or our reader, cannot take a name; empty without one."""
    if max(map(len, name.split("/"))) > DEFAULT.name_bytes:
        return f"names of more than {DEFAULT.name_bytes} characters are not read again"
    return "" if is_text(name) else "the name is not valid text"


def _box_fits(path: str, box: Box) -> Iterator[Fit]:
    """Yield how a list differs from the object that it was."""
    name = f"group '{path}'" if path else "the list"
    if box.own.get("S4"):
        yield equivalent(
            "", "metadata", f"{name}: an S4 object is written as the list of its slots"
        )
    elif FRAME in box.classes and not box.is_frame:
        reason = f"{name}: columns of different lengths are a list, not a data frame"
        yield equivalent("", "metadata", reason)


# --- vectors --------------------------------------------------------------------------------------


def nulls_by_name_of(bundle: Bundle, numbers: str) -> dict[str, Array]:
    """The arrays of bools that mark missing values, by the names of the arrays of the values.

    Arrays whose type has no missing value (NA) in R are left out.
    """
    masks = masks_of(bundle.arrays)
    nulls_by_name = {
        array.name: masks[id(array)]
        for array in bundle.arrays
        if id(array) in masks and _kind(array, own_of(array), numbers)[0] in HAS_NULLS
    }
    return {name: nulls for name, nulls in nulls_by_name.items() if nulls.name not in nulls_by_name}


def name_of_nulls(array: Array, nulls: Array) -> str:
    """The name that the array of what is missing has when it is read from R's file."""
    named = own_of(array).get("companions")
    own = isinstance(named, dict) and any(nulls.name.endswith(name) for name in named)
    return nulls.name if own else f"{array.name}.{NULLS}"


def leaf_of(array: Array, nulls: Array | None, numbers: str, fits: list[Fit]) -> Leaf:
    """Return the vector that an array becomes; changes and losses are added to `fits`.

    `nulls` marks missing values; `numbers` is the option `bytes`.
    """
    own = own_of(array)
    kind, change = _kind(array, own, numbers)
    levels = _levels(own) if kind == STR else None
    if levels is not None:
        kind, change = INT, ""
    if kind is None:
        fits.append(refused_type(array, "R", "float64"))
        kind = REAL
    if change:
        fits.append(equivalent(array.name, "type", change))
    leaf = Leaf(array, nulls if kind in HAS_NULLS else None, kind, levels or [])
    fits += _shape_fits(array)
    leaf.attributes, lost = writable_attributes(array.meta.attributes)
    lost = [f"attributes ({first_of(lost)})"] if lost else []
    if array.described and array.meta:
        more = ("kind", "units", "spacing", "origin", "direction")
        lost += facts_of_axes(
            array, [fields_of_axes([axis], *more, *_lost_texts(axis)) for axis in array.ra_axes]
        )
        texts = {"description": array.meta.description, "units": array.meta.units}
        written = [name for name, text in texts.items() if is_text(text or "")]
        lost += facts_of(array, *written, "axes", "attributes", OWN)
        labels = [label for axis in array.axes for label in axis.labels or ()]
        if any(not isinstance(label, str | None) for label in labels):
            fits.append(equivalent(array.name, "metadata", "labels are written as text"))
    if lost:
        reason = f"R has no place for it: {', '.join(lost)}"
        fits.append(equivalent(array.name, "metadata", reason))
    return leaf


def _levels(own: Mapping[str, Any]) -> list[str] | None:
    """Return the recorded levels of a factor; None without any, or if R cannot hold one."""
    levels = own.get("levels")
    if not isinstance(levels, list):
        return None
    fine = all(isinstance(level, str) and is_text(level) for level in levels)
    return levels if fine else None


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
    """Return the type of R that holds the elements, and what changes; None if R has none."""
    kind, nbytes, _, descr = array.element
    if kind == "user":
        return _kind_of_user(descr)
    if (kind, nbytes) == ("uint", 1) and numbers == "raw":
        return RAW, ""
    if (kind, nbytes) == ("int", 8) and INTEGER64 in classes_in(own):
        return REAL, ""
    r_type = _KINDS.get((kind, nbytes))
    if r_type is None or nbytes == _FULL[r_type]:
        return r_type, ""
    return r_type, f"{type_name(little(array.element))} is stored as {_WIDE[r_type]}"


def _kind_of_user(descr: Any) -> tuple[int | None, str]:
    """Return the same for times, texts and bytes."""
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


def _shape_fits(array: Array) -> Iterator[Fit]:
    """Yield how the shape changes, or why it is refused."""
    if not array.ndim:
        yield equivalent(array.name, "shape", "a single value is a vector of length 1")
    most = MOST_LENGTH if array.ndim > 1 else MOST_ELEMENTS
    spans = spanned(array.dims, max(8, array.element.nbytes)) > MAX_SPAN
    if spans or any(length > most for length in array.dims) or prod(array.dims) > MOST_ELEMENTS:
        yield refused(array.name, "shape", f"R has no axes of more than {most}, and "
                      f"no more than {MOST_ELEMENTS} elements")  # fmt: skip
