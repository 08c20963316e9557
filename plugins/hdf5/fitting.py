"""What HDF5 keeps of a bundle as it is, keeps in another form, or cannot hold."""

from __future__ import annotations

from raconvert.arrays.dtypes import little
from raconvert.plugin import equivalent, refused

from .descriptions import MAX_TYPE_BYTES, type_of, type_of_element
from .errors import PROBLEMS, reason_of
from .links import alias_links, link_names
from .text import is_text, utf8_type
from .types import is_variable, kind_of, without_bools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from h5py import h5t

    from raconvert.plugin import Array, Bundle, Fit

    from .plan import Plan

NAMESPACE = "hdf5"
MAX_RANK = 32  # H5S_MAX_RANK
NAMED = 5  # further names that a reason lists


def fits_of(bundle: Bundle, plan: Plan) -> list[Fit]:
    """Return what HDF5 keeps in another form, or cannot hold."""
    found: list[Fit] = []
    names: set[str] = set()
    links = link_names(bundle.names)
    for array, link in zip(bundle.arrays, links, strict=True):
        if array.name in names:
            found.append(refused(array.name, "names", "the name is used twice"))
        elif link != array.name:
            reason = f"no link can have this name; it is '{link}', and the name is kept beside it"
            found.append(equivalent(array.name, "names", reason))
        names.add(array.name)
        found += _array_fits(array, plan)
    space = bundle.formats.get(NAMESPACE)
    _, left = alias_links(bundle, space if isinstance(space, dict) else {})
    if left:
        told = [f"'{alias}' of '{bundle.aliases[alias] or '/'}'" for alias in left[:NAMED]]
        more = ", …" * (len(left) > NAMED)
        reason = f"no link can be made for further names: {', '.join(told)}{more}"
        found.append(equivalent("", "metadata", reason))
    return found


def _array_fits(array: Array, plan: Plan) -> Iterator[Fit]:
    name = array.name
    if array.ndim > MAX_RANK:
        reason = f"{array.ndim} axes; HDF5 takes at most {MAX_RANK}"
        yield refused(name, "shape", reason)
    if isinstance(plan.chunk, tuple) and array.ndim and len(plan.chunk) != array.ndim:
        reason = f"chunks of {len(plan.chunk)} axes do not fit its {array.ndim}"
        yield refused(name, "storage", reason)
    yield from _type_fits(array, plan)
    if array.meta.items is not None:
        yield equivalent(
            name, "metadata", "what the items of a stack have of their own is left out"
        )
    elif array.late is not None and array.meta:
        reason = "what is known only when all items were read came too late for the attributes"
        yield equivalent(name, "metadata", reason)


def _type_fits(array: Array, plan: Plan) -> Iterator[Fit]:
    element, name = array.element, array.name
    if element.kind != "user":
        return
    if not 0 < element.nbytes < 1 << 31:
        yield refused(name, "type", f"elements of {element.nbytes} bytes; HDF5 takes 1 to 2**31-1")
        return
    try:
        tid = file_type(array, plan)
        nbytes = len(tid.encode())
    except PROBLEMS as error:
        yield refused(name, "type", f"its type has no form in HDF5 ({reason_of(error)})")
        return
    if nbytes > MAX_TYPE_BYTES:
        yield refused(name, "type", f"its description needs {nbytes} bytes, HDF5 takes 64 KiB")
    elif is_text(element):
        yield equivalent(name, "type", "text becomes UTF-8 in strings of fixed width")
    elif _has_tags(element.descr):
        reason = (
            "dates and texts become opaque bytes with h5py's tag, which other tools do not read"
        )
        yield equivalent(name, "type", reason)


def _has_tags(descr: Any) -> bool:
    if isinstance(descr, str):
        return descr[1:2] in "mMU"
    return any(_has_tags(field[1]) for field in descr or ())


def file_type(array: Array, plan: Plan) -> h5t.TypeID:
    """Return the type in which an array is written: the remembered one, if it still is its own."""
    element = little(array.element)
    description = array.meta.formats.get(NAMESPACE, {}).get("type")
    if description is not None:
        try:
            tid = type_of(description, None if element.kind == "user" else "<")
            if _is_type_of(tid, array) and not (is_variable(tid) and plan.strings == "fixed"):
                return tid
        except PROBLEMS:  # edited, or another plugin's
            pass
    return utf8_type(element) if is_text(element) else type_of_element(element)


def _is_type_of(tid: h5t.TypeID, array: Array) -> bool:
    """Tell whether elements can be written in this type as they are, or as variable strings."""
    kind = kind_of(tid)
    if kind.dims and array.dims[: len(kind.dims)] != kind.dims[::-1]:
        return False
    element = little(array.element)
    if kind.element is None:
        return not kind.dims and str(element.descr).startswith("|S")
    if element.kind == "user" and element.descr is None:  # bytes of which nothing is known
        element = element._replace(descr=f"|V{element.nbytes}")
    held = (kind.element, without_bools(kind).element)  # with bytes that are no bools, integers
    return kind.memory is None and element in held
