"""The object of R that arrays become, and what is lost on the way."""

from __future__ import annotations

import os
from math import prod

from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, spanned
from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    file_fits,
    first_of,
    little,
    refused,
    refused_type,
    type_name,
)

from .contents import Box, Leaf, held_attributes, is_text, own_of
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
    STR,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Target

MOST_LENGTH = (1 << 31) - 1  # of one of several axes
MOST_ELEMENTS = 1 << 52
TIMES = {"<M8[D]", "<M8[s]", "<M8[ms]", "<M8[us]"}
TIMES |= {f">{one[1:]}" for one in TIMES}
HAS_NULLS = (LGL, INT, REAL, STR)


def make_plan(bundle: Bundle, *, compress: str, numbers: str, form: str) -> Plan:
    """One vector, or a list of all arrays, groups as lists inside it."""
    fits: list[Fit] = []
    nulls_by_name = _nulls_by_name(bundle)
    own = bundle.formats.get(OWN)
    own = own if isinstance(own, dict) else {}
    taken = {nulls.name for nulls in nulls_by_name.values()}
    leaves = [
        leaf_of(array, nulls_by_name.get(array.name), numbers, fits)
        for array in bundle.arrays
        if array.name not in taken
    ]
    bare = len(leaves) == 1 and not bundle.explicit_groups() and form != "list"
    bare = bare and (form == "vector" or not (bundle.named or own.get("root") == "list"))
    if form == "vector" and not bare:
        fits.append(refused("", "elements", "several arrays are a list, not one vector"))
    if bare:
        if bundle.named:
            reason = "one vector has the name of its file; `--out-opt object=list` keeps another"
            fits.append(equivalent(leaves[0].name, "names", reason))
        fits += file_fits(bundle, "an .rds of one vector")
        names = bundle.names

        def write(target: Target) -> None:
            from .writer import write_object

            stem = os.path.splitext(os.path.basename(target.place))[0]
            for number, name in enumerate(bundle.names):
                names[number] = f"{stem}.{NULLS}" if name in taken else stem
            write_object(target, leaves[0], compress)

        return Plan(fits, write, names=names)
    root = _root(bundle, own, leaves, fits)

    def write_list(target: Target) -> None:
        from .writer import write_object

        write_object(target, root, compress)

    return Plan(fits, write_list, names=bundle.names)


# --- lists ----------------------------------------------------------------------------------------


def _root(bundle: Bundle, own: dict[str, Any], leaves: list[Leaf], fits: list[Fit]) -> Box:
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


def _nulls_by_name(bundle: Bundle) -> dict[str, Array]:
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
