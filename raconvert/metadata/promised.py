"""An array in the type and the shape that a record promises, every value checked.

Only what keeps every value is done: numbers in another type, pairs as complex numbers, text in
another kind or width, and bytes as what they are known to be. Anything else is `Corrupt`.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import (
    Element,
    dtype_of,
    element_from,
    frozen,
    is_float8,
    little,
    type_name,
)
from raconvert.arrays.memory import MAX_RANK
from raconvert.arrays.seen import Reshaped, are_pairs, as_complex, is_void, seen_as
from raconvert.arrays.texts import UTF8, as_text, as_utf8, from_utf8, letter_of
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array

NUMBERS = ("int", "uint", "float", "complex", "bool", "bfloat")
BOOLS = (0, 1, 255)  # what stands for false and true; images have 255


class Terms(Record):
    """Where a record is, and what it is known by; see `restored`."""

    path: str
    encoding: Any
    bools: tuple[int, ...]
    remedy: str | None


def as_type(array: Array, code: Any, terms: Terms) -> Array:
    """The array as elements of another type, every value checked while it streams."""
    try:
        element = element_from(frozen(code))
        dtype = dtype_of(element)
        if dtype.hasobject:
            raise TypeError("it has pointers to Python objects")
    except _NO_TYPE as error:
        raise Corrupt(
            "metadata has an unreadable type", path=terms.path, got=repr(code)[:80]
        ) from error
    if are_pairs(array, element):
        return as_complex(array, element)
    if array.element.kind in NUMBERS and element.kind in NUMBERS:
        from raconvert.arrays import cast as casting

        if element.kind == "bool":
            known = casting.as_bool(array, terms.bools)
        else:
            known = casting.cast(array, dtype.name)
        return known.replace(data=_Promised(known, terms)) if known is not array else array
    found = _as_user(array, element, terms) if element.kind == "user" else None
    if found is not None:
        return found
    raise Corrupt(
        f"metadata gives array '{array.name}' a type that it cannot have had",
        path=terms.path,
        expected=f"a form of {type_name(array.element)}",
        got=type_name(element),
    )


def _as_user(array: Array, element: Element, terms: Terms) -> Array | None:
    """The array as text, dates or structures; None where they cannot have been what it holds."""
    letters = letter_of(array.element) + letter_of(element)
    same_width = array.element.nbytes == element.nbytes
    if array.element.kind != "user":
        is_count = little(array.element) == _COUNT and letters[1] in "Mm"
        return _as_times(array, element) if is_count and same_width else None
    if letters == "US" and terms.encoding == UTF8:
        return as_utf8(array, element, terms.path)
    if letters == "SU" and array.meta.encoding == UTF8 and element.nbytes <= DEFAULT.document:
        return from_utf8(array, element, terms.path)
    if letters in _TEXTS and element.nbytes <= DEFAULT.document:
        return as_text(array, element, terms.path)
    if is_float8(array.element) and is_float8(element):  # kinds that a format cannot tell apart
        return seen_as(array, element)
    of_bytes = is_void(array.element) or isinstance(array.element.descr, tuple)
    return seen_as(array, element) if of_bytes and same_width else None


def _as_times(array: Array, element: Element) -> Array:
    """Integers as dates or durations: as they lie in a file, else little-endian."""
    code, extent = str(element.descr)[1:], array.extent
    if extent is None:
        from raconvert.arrays.cast import Converted

        own = element._replace(descr=f"<{code}")
        dtype = dtype_of(own)
        data = Converted(array, dtype, lambda block, _: block.astype("<i8", copy=False).view(dtype))
        return array.replace(element=own, data=data)
    # Numbers are reversed while they are read, dates are not: their type has the byte order.
    own = element._replace(descr=f"{'<' if extent.swap == 1 else '>'}{code}")
    stored = Extent(extent.path, extent.offset, extent.nbytes, 1, extent.identity, extent.checksum)
    return array.replace(element=own, extent=stored, data=None)


# What the code of a type may raise that is none.
_NO_TYPE = (
    Unsupported, TypeError, ValueError, SyntaxError, LookupError, AttributeError, OverflowError,
    RecursionError,
)  # fmt: skip
_COUNT = Element("int", 8, "<")  # what dates and durations are to formats that have none
_TEXTS = ("SS", "UU", "SU", "US")


class _Promised:
    """Array source: values in the type that a sidecar promises; those that have none are `Corrupt`.

    (`WouldLose`, with its flags, is about what the user asks for.)
    """

    def __init__(self, array: Array, terms: Terms) -> None:
        self.shape = array.dims[::-1]
        self.dtype = array.dtype
        self._array = array
        self._terms = terms

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
            f"metadata promises another type: {error.what}",
            path=self._terms.path,
            where=error.where,
            remedy=self._terms.remedy,
        )


def as_shape(array: Array, shape: Any, path: str) -> Array:
    """The array with axes of length 1 added or removed: no element moves, no axis is described."""
    known = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not known or len(shape) > MAX_RANK or not _same_but_ones(shape, array.shape):
        raise Corrupt(
            f"metadata gives array '{array.name}' a shape that it cannot have had",
            path=path,
            expected=f"{list(array.shape)}, but for axes of length 1",
            got=repr(shape)[:80],
        )
    dims = tuple(shape if array.index_order == "F" else shape[::-1])
    data = None if array.extent else Reshaped(array, dims[::-1])
    return array.replace(dims=dims, data=data, meta=array.meta.without_axes())


def _same_but_ones(a: list[int], b: tuple[int, ...]) -> bool:
    return [n for n in a if n != 1] == [n for n in b if n != 1]
