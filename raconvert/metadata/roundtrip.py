"""The way back: an array as it was before a format could only hold it in another form.

A sidecar beside a file that is no .ra says in `was` what the array was: `type` in the notation of
the NPY header, `shape` in logical order, `index_order`, `name`. Only changes that keep every value
can be undone; anything else in a sidecar is `Corrupt`.
"""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import (
    Element,
    code_of,
    dtype_of,
    element_from,
    frozen,
    little,
    type_name,
)
from raconvert.arrays.memory import MAX_RANK
from raconvert.errors import Corrupt, Unsupported, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array

NUMBERS = ("int", "uint", "float", "complex", "bool", "bfloat")
UTF8 = "utf-8"
MAX_TEXT_BYTES = 16 << 20  # of one string; a sidecar is not a reason to allocate more


def difference(origin: Array, array: Array, back: Array) -> dict[str, Any]:
    """The record from which `restored` makes `array` again out of `back`, as it was read.

    `origin` is what it was before its axes were put into an order that the format can store: a
    column-major format tells an order for arrays that had none.
    """
    was: dict[str, Any] = {}
    if array.name != back.name:
        was["name"] = array.name
    if little(array.element) != little(back.element):
        was["type"] = code_of(little(array.element))
    if array.index_order not in (None, back.index_order) or (
        back.row_major and array.index_order == "F" and not array.row_major
    ):
        was["index_order"] = array.index_order
        back = back.replace(index_order=array.index_order)
    if array.shape != back.shape:
        was["shape"] = list(array.shape)
    if origin.index_order is None and back.index_order == "F":
        was["index_order"] = None
    return was


def restored(array: Array, was: Any, path: str = "", encoding: Any = None) -> Array:
    """Return an array as it was; `Corrupt` where that is not a form of what the file holds.

    `encoding` is that of its bytes (`Metadata.encoding`) where text was made of them.
    """
    if not isinstance(was, dict):
        raise Corrupt("metadata field 'was' has the wrong form", path=path)
    if "type" in was:
        array = _as_type(array, was["type"], path, encoding)
    order = was.get("index_order", array.index_order)
    if order not in ("C", "F", None):
        raise Corrupt("metadata has an unknown index order", path=path, expected="C or F")
    own = array.row_major and "index_order" not in was
    array = array.replace(index_order=order or array.index_order, row_major=own)
    if "shape" in was:
        array = _as_shape(array, was["shape"], path)
    array = array.replace(index_order=order)  # none last: the shape is told in the order it had
    if "name" in was:
        if not isinstance(was["name"], str):
            raise Corrupt("metadata gives an array a name that is not text", path=path)
        array = array.replace(name=was["name"])
    return array


def _as_shape(array: Array, shape: Any, path: str) -> Array:
    """Return the array with axes of length 1 added or removed: no element moves."""
    known = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not known or len(shape) > MAX_RANK or not _same_but_ones(shape, array.shape):
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


class _Paired:
    """Array source: pairs of floats on the last axis, seen as complex numbers."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = dtype_of(Element("complex", 2 * array.element.nbytes, "<"))
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield the blocks of the array behind it; half a pair waits for the next block."""
        import numpy as np

        from raconvert.arrays.blocks import blocks

        half = np.empty(0, self._array.dtype)
        for block in blocks(self._array, max_bytes):
            flat = np.concatenate([half, block.reshape(-1)]) if half.size else block.reshape(-1)
            whole = flat.size - flat.size % 2
            half = flat[whole:].copy()
            yield flat[:whole].view(self.dtype)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.blocks import as_ndarray

        return as_ndarray(self._array).view(self.dtype).reshape(self.shape)[key]


class Reshaped:
    """Array source: the same elements in stored order, seen in another shape."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype: np.dtype[Any] = array.dtype
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield the blocks of the array behind it."""
        from raconvert.arrays.blocks import blocks

        return blocks(self._array, max_bytes)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.blocks import as_ndarray

        return as_ndarray(self._array).reshape(self.shape)[key]


def _are_pairs(array: Array, element: Element) -> bool:
    """True if the fastest axis holds the real and imaginary parts of numbers of this type."""
    return array.dims[:1] == (2,) and 2 * array.element.nbytes == element.nbytes


def _as_complex(array: Array, element: Element) -> Array:
    """Return pairs on the fastest axis as complex numbers: the same bytes."""
    element = element._replace(order=array.element.order)
    dims = array.dims[1:]
    data = None if array.extent else _Paired(array, dims[::-1])
    return array.replace(element=element, dims=dims, data=data)


def _as_type(array: Array, code: Any, path: str, encoding: Any) -> Array:
    """Return the array as elements of another type, every value checked while it streams."""
    try:
        element = element_from(frozen(code))
        dtype = dtype_of(element)
    except _NO_TYPE as error:
        raise Corrupt("metadata has an unreadable type", path=path, got=repr(code)[:80]) from error
    kinds = array.element.kind, element.kind
    if kinds == ("float", "complex") and _are_pairs(array, element):
        return _as_complex(array, element)
    if all(kind in NUMBERS for kind in kinds):
        from raconvert.arrays import cast as casting

        known = (
            casting.as_bool(array) if element.kind == "bool" else casting.cast(array, dtype.name)
        )
        return known.replace(data=_Promised(known, path)) if known is not array else array
    if kinds == ("user", "user"):
        letters = _letter(array.element) + _letter(element)
        if letters == "US" and encoding == UTF8:
            return _as_utf8(array, element, path)
        if letters in _TEXTS and element.nbytes <= MAX_TEXT_BYTES:
            return _as_text(array, element, path)
        if _is_void(array.element) and array.element.nbytes == element.nbytes:
            return _seen_as(array, element)
    if _is_date(element) and little(array.element) == _COUNT:
        return _seen_as(array, element)
    raise Corrupt(
        f"metadata gives array '{array.name}' a type that it cannot have had",
        path=path,
        expected=f"a form of {type_name(array.element)}",
        got=type_name(element),
    )


# What the code of a type may raise that is none.
_NO_TYPE = (
    Unsupported, TypeError, ValueError, SyntaxError, LookupError, AttributeError, OverflowError,
    RecursionError,
)  # fmt: skip
_COUNT = Element("int", 8, "<")  # what dates and durations are to formats that have none
_TEXTS = ("SS", "UU", "SU", "US")


def _is_void(element: Element) -> bool:
    return element.descr in (None, f"|V{element.nbytes}")


def _is_date(element: Element) -> bool:
    return _letter(element) in "Mm"


def _letter(element: Element) -> str:
    return element.descr[1] if isinstance(element.descr, str) else "V"


class _Promised:
    """Array source: values in the type that a sidecar promises; those that have none are `Corrupt`.

    (`WouldLose`, with its flags, is about what the user asks for.)
    """

    def __init__(self, array: Array, path: str) -> None:
        self.shape = array.dims[::-1]
        self.dtype = array.dtype
        self._array = array
        self._path = path

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield the blocks of the array behind it."""
        from raconvert.arrays.blocks import blocks

        try:
            yield from blocks(self._array, max_bytes)
        except WouldLose as error:
            raise self._corrupt(error) from error

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._array.data[key]
        except WouldLose as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: WouldLose) -> Corrupt:
        return Corrupt(
            f"metadata promises another type: {error.what}", path=self._path, where=error.where
        )


def undescribed(array: Array) -> Array:
    """Return an array without the description of what is inside user elements."""
    if array.element.kind != "user" or _is_void(array.element):
        return array
    return _seen_as(array, array.element._replace(descr=None))


def _seen_as(array: Array, element: Element) -> Array:
    """Return the same bytes as other user elements of the same width."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)
    data = None
    if array.extent is None:
        data = Converted(array, dtype, lambda block, _: block.view(dtype))
    return array.replace(element=element, data=data)


def _as_utf8(array: Array, element: Element, path: str) -> Array:
    """Return text as the bytes that it was made of."""
    import numpy as np

    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)

    def convert(block: np.ndarray[Any, Any], _: int) -> np.ndarray[Any, Any]:
        raw = np.char.encode(block, UTF8, "surrogateescape")
        if raw.dtype.itemsize > dtype.itemsize:
            raise Corrupt(f"a string of array '{array.name}' is no {type_name(element)}", path=path)
        return raw.astype(dtype)

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def as_characters(array: Array) -> Array:
    """Return UTF-8 bytes as the text that they are; any other array as it is."""
    if array.meta.encoding != UTF8 or _letter(array.element) != "S":
        return array
    import numpy as np

    from raconvert.arrays.cast import Converted

    width = array.element.nbytes
    element = Element("user", 4 * width, "|", f"<U{width}")
    dtype = dtype_of(element)

    def convert(block: np.ndarray[Any, Any], _: int) -> np.ndarray[Any, Any]:
        return np.char.decode(block, UTF8, "surrogateescape").astype(dtype)

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def _as_text(array: Array, element: Element, path: str) -> Array:
    """Return strings in their own width and kind: bytes are characters 0 to 255."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)
    growth = max(1, element.nbytes // array.element.nbytes)

    class Texts(Converted):
        def stream(self, max_bytes: int) -> Iterator[Any]:
            return super().stream(max(1, max_bytes // growth))

    def convert(block: np.ndarray[Any, Any], _: int) -> np.ndarray[Any, Any]:
        units = units_of(block)
        width = element.nbytes // (1 if dtype.kind == "S" else 4)
        if units[..., width:].any() or (dtype.kind == "S" and (units > 255).any()):
            raise Corrupt(
                f"a string of array '{array.name}' is no {dtype.kind}{width}",
                path=path,
                remedy="the metadata beside the file belongs to other content",
            )
        return _packed(units, width, dtype)

    return array.replace(element=element, extent=None, data=Texts(array, dtype, convert))


def units_of(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the characters of fixed-width strings as numbers, on a new last axis."""
    unit = _unit(block.dtype)
    width = block.dtype.itemsize // unit.itemsize
    return block.reshape(*block.shape, 1).view(unit).reshape(*block.shape, width)


def _packed(units: np.ndarray[Any, Any], width: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return numbers of characters as fixed-width strings."""
    import numpy as np

    shape = units.shape[:-1]
    room = np.zeros((prod(shape), width), _unit(dtype))
    kept = min(width, units.shape[-1])
    room[:, :kept] = units.reshape(prod(shape), units.shape[-1])[:, :kept]
    return room.view(dtype).reshape(shape)


def _unit(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of one character: a byte, or a code point in the byte order of the text."""
    import numpy as np

    return np.dtype("u1" if dtype.kind == "S" else "u4").newbyteorder(dtype.byteorder)
