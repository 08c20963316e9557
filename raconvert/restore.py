"""The way back: an array as it was before a format could only hold it in another form.

A sidecar beside a file that is no .ra says in `was` what the array was: `type` in the notation of
the NPY header, `shape` in logical order, `index_order`, `name`. Only changes that keep every value
can be undone; anything else in a sidecar is `Corrupt`.
"""

from __future__ import annotations

from math import prod

from raconvert.elements import Element, element_from, frozen, little, type_name
from raconvert.errors import Corrupt, RaconvertError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from raconvert.model import Array

NUMBERS = ("int", "uint", "float", "complex", "bool", "bfloat")


def difference(array: Array, back: Array) -> dict[str, Any]:
    """Return what `restored` needs to make of `back`, as it was read, what `array` is."""
    from raconvert.elements import code_of

    was: dict[str, Any] = {}
    if array.name != back.name:
        was["name"] = array.name
    if little(array.element) != little(back.element):
        was["type"] = code_of(little(array.element))
    if array.shape != back.shape:
        was["shape"] = list(array.shape)
    if array.index_order not in (None, back.index_order):
        was["index_order"] = array.index_order
    return was


def restored(array: Array, was: Any, path: str = "") -> Array:
    """Return an array as it was; `Corrupt` where that is no form of what the file holds."""
    if not isinstance(was, dict):
        raise Corrupt("metadata field 'was' has the wrong form", path=path)
    if "type" in was:
        array = _as_type(array, was["type"], path)
    if "index_order" in was:
        array = array.replace(index_order=was["index_order"])
        if array.index_order not in ("C", "F", None):
            raise Corrupt("metadata has an unknown index order", path=path, expected="C or F")
    if "shape" in was:
        array = _as_shape(array, was["shape"], path)
    if isinstance(was.get("name"), str):
        array = array.replace(name=was["name"])
    return array


def _as_shape(array: Array, shape: Any, path: str) -> Array:
    """Return the array with axes of length 1 added or removed: no element moves."""
    known = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not known or not _same_but_ones(shape, array.shape):
        raise Corrupt(
            f"metadata gives array '{array.name}' a shape that it cannot have had",
            path=path,
            expected=f"{list(array.shape)}, but for axes of length 1",
            got=repr(shape)[:80],
        )
    dims = tuple(shape if array.index_order == "F" else shape[::-1])
    return array.replace(dims=dims, data=None if array.extent else Reshaped(array, dims[::-1]))


def _same_but_ones(a: list[int], b: tuple[int, ...]) -> bool:
    return [n for n in a if n != 1] == [n for n in b if n != 1]


class Reshaped:
    """Array source: the same elements in stored order, seen in another shape."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = array.dtype
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield the blocks of the array behind it."""
        from raconvert.blocks import blocks

        return blocks(self._array, max_bytes)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.blocks import as_ndarray

        return as_ndarray(self._array).reshape(self.shape)[key]


def _as_type(array: Array, code: Any, path: str) -> Array:
    """Return the array as elements of another type, every value checked while it streams."""
    try:
        element = element_from(frozen(code))
    except (RaconvertError, TypeError, ValueError, SyntaxError) as error:
        raise Corrupt("metadata has an unreadable type", path=path, got=repr(code)[:80]) from error
    kinds = array.element.kind, element.kind
    if all(kind in NUMBERS for kind in kinds):
        from raconvert import adapt

        if element.kind == "bool":
            return adapt.as_bool(array)
        return adapt.cast(array, code)
    if kinds == ("user", "user") and _letter(array.element) + _letter(element) in _TEXTS:
        return _as_text(array, element)
    raise Corrupt(
        f"metadata gives array '{array.name}' a type that it cannot have had",
        path=path,
        expected=f"a form of {type_name(array.element)}",
        got=type_name(element),
    )


_TEXTS = ("SS", "UU", "SU", "US")


def _letter(element: Element) -> str:
    return element.descr[1] if isinstance(element.descr, str) else "V"


def _as_text(array: Array, element: Element) -> Array:
    """Return strings in their own width and kind: bytes are characters 0 to 255."""
    from raconvert.adapt import Converted
    from raconvert.elements import dtype_of

    dtype = dtype_of(element)

    def convert(block: np.ndarray[Any, Any], _: int) -> np.ndarray[Any, Any]:
        units = _units(block)
        width = element.nbytes // (1 if dtype.kind == "S" else 4)
        if units[..., width:].any() or (dtype.kind == "S" and (units > 255).any()):
            raise Corrupt(
                f"a string of array '{array.name}' is no {dtype.kind}{width}",
                remedy="the metadata beside the file belongs to other content",
            )
        return _packed(units, width, dtype)

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def _units(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the characters of fixed-width strings as numbers, on a new last axis."""
    unit = "u1" if block.dtype.kind == "S" else "<u4"
    width = block.dtype.itemsize // (1 if unit == "u1" else 4)
    return block.reshape(*block.shape, 1).view(unit).reshape(*block.shape, width)


def _packed(units: np.ndarray[Any, Any], width: int, dtype: np.dtype[Any]) -> Any:
    """Return numbers of characters as fixed-width strings."""
    import numpy as np

    shape = units.shape[:-1]
    room = np.zeros((prod(shape), width), "u1" if dtype.kind == "S" else "<u4")
    kept = min(width, units.shape[-1])
    room[:, :kept] = units.reshape(prod(shape), units.shape[-1])[:, :kept]
    return room.view(dtype).reshape(shape)
