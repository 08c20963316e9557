"""Arrays whose bytes stay, seen in another shape or as other elements."""

from __future__ import annotations

from math import prod

from raconvert.arrays.dtypes import Element, dtype_of, needs_swap, type_name
from raconvert.errors import Corrupt, WouldLose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.arrays.array import Array
    from raconvert.files.source import Extent

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]


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


class _Paired:
    """Array source: pairs of floats on the last axis, seen as complex numbers."""

    def __init__(self, array: Array, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = dtype_of(Element("complex", 2 * array.element.nbytes, "<"))
        self._array = array

    def stream(self, max_bytes: int) -> Any:
        """Yield complex numbers in stored order; half a pair waits for the next block."""
        import numpy as np

        from raconvert.arrays.blocks import blocks

        half = np.empty(0, self._array.dtype)
        for block in blocks(self._array, max_bytes):
            flat = np.concatenate([half, block.reshape(-1)]) if half.size else block.reshape(-1)
            whole = flat.size - flat.size % 2
            half = flat[whole:].copy()
            yield flat[:whole].view(self.dtype)

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        from raconvert.arrays.blocks import region_of
        from raconvert.arrays.regions import full_key

        pairs = region_of(self._array, (*full_key(key, len(self.shape)), slice(None)))
        little = np.ascontiguousarray(pairs, self._array.dtype.newbyteorder("<"))
        return little.view(self.dtype)[..., 0]


def are_pairs(array: Array, element: Element) -> bool:
    """True if the fastest axis holds the real and imaginary parts of numbers of this type."""
    kinds = array.element.kind, element.kind
    widths = 2 * array.element.nbytes, element.nbytes
    return kinds == ("float", "complex") and widths[0] == widths[1] and array.dims[:1] == (2,)


def as_complex(array: Array, element: Element) -> Array:
    """Return pairs on the fastest axis as complex numbers of this type: the same bytes."""
    element = element._replace(order=array.element.order)
    dims = array.dims[1:]
    data = None if array.extent else _Paired(array, dims[::-1])
    fastest = 0 if array.index_order == "F" else array.ndim - 1
    meta = array.meta.without_axis(fastest, array.ndim)
    return array.replace(element=element, dims=dims, data=data, meta=meta)


def undescribed(array: Array) -> Array:
    """Return an array whose user elements have no description; others as they are."""
    if array.element.kind != "user" or is_void(array.element):
        return array
    return seen_as(array, array.element._replace(descr=None))


def is_void(element: Element) -> bool:
    """True if an element has no description, only bytes."""
    return element.descr in (None, f"|V{element.nbytes}")


def seen_as(array: Array, element: Element) -> Array:
    """Return the same bytes as other elements of the same width."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)
    data = None
    if array.extent is None:
        data = Converted(array, dtype, lambda block, _: block.view(dtype))
    return array.replace(element=element, data=data)


# Arrays whose bytes are those of big-endian numbers, for formats that have only these ------------


def big_endian(array: Array) -> Array:
    """Return an array whose "little-endian" bytes are the big-endian ones of the given array.

    It is for writing only: its values mean nothing. Big-endian data in a file is copied as it is.

    Raises nothing.
    """
    width = needs_swap(array.element._replace(order=">"))
    if width == 1:
        return array
    element = array.element._replace(order="<")
    if array.extent is not None:
        return array.replace(element=element, extent=_turned(array.extent, width), data=None)
    return array.replace(element=element, data=lambda: _Turned(array))


def _turned(extent: Extent, width: int) -> Extent:
    """Return an extent whose numbers of `width` bytes are read in the other byte order."""
    turned = extent.part(0, extent.nbytes)
    turned.swap = width if extent.swap == 1 else 1
    turned.checksum = extent.checksum
    return turned


class _Turned:
    """Array source: the elements of another, each with its bytes reversed."""

    def __init__(self, array: Array) -> None:
        self.shape = array.dims[::-1]
        self.dtype = dtype_of(array.element._replace(order="<"))
        self._array = array

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield pieces in stored order, each valid until the next is asked for."""
        from raconvert.arrays.blocks import blocks

        for piece in blocks(self._array, max_bytes):
            yield piece.byteswap()


# Text of fixed width in another kind or width: bytes (S), characters (U), UTF-8 in bytes ---------
# Text that does not fit is `Corrupt`: the metadata at `path` has promised another width.


UTF8 = "utf-8"
LAST = 0x10FFFF  # code point of Unicode; NumPy keeps larger numbers in its text, which no text is
_REPLACEMENT = 0xFFFD  # shown instead of such a number


def letter_of(element: Element) -> str:
    """Return the letter of NumPy for a user element: S, U, M, m, or V for all others."""
    return element.descr[1] if isinstance(element.descr, str) else "V"


def as_utf8(array: Array, element: Element, path: str) -> Array:
    """Return characters as the UTF-8 bytes that they were decoded from."""
    import numpy as np

    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)

    def convert(block: Values, _: int) -> Values:
        raw = np.char.encode(block, UTF8, "surrogateescape")
        if raw.dtype.itemsize > dtype.itemsize:
            raise Corrupt(
                f"a string of array '{array.name}' is not {type_name(element)}", path=path
            )
        return raw.astype(dtype)

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def as_characters(array: Array) -> Array:
    """Return UTF-8 bytes as characters; any other array as it is."""
    if array.meta.encoding != UTF8 or letter_of(array.element) != "S":
        return array
    import numpy as np

    from raconvert.arrays.cast import Converted

    width = array.element.nbytes
    element = Element("user", 4 * width, "|", f"<U{width}")
    dtype = dtype_of(element)

    def convert(block: Values, _: int) -> Values:
        return np.char.decode(block, UTF8, "surrogateescape").astype(dtype)

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def from_utf8(array: Array, element: Element, path: str) -> Array:
    """Return UTF-8 bytes as characters of the width of `element`; surrogates are kept."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)

    def convert(block: Values, _: int) -> Values:
        try:
            return decoded(block, dtype)
        except ValueError as error:
            raise Corrupt(f"a string of array '{array.name}' is not {type_name(element)}: {error}",
                          path=path) from error  # fmt: skip

    return array.replace(element=element, extent=None, data=Converted(array, dtype, convert))


def decoded(values: Values, dtype: Dtype) -> Values:
    """Return UTF-8 (S) as text of type `dtype` (U); ValueError for a text that does not fit."""
    import numpy as np

    count = dtype.itemsize // 4
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.dtype.itemsize)
    result = np.zeros((len(raw), count), _unit(dtype))
    width = min(count, raw.shape[1])
    result[:, :width] = raw[:, :width]
    texts = result.view(dtype).reshape(-1)
    for row in np.flatnonzero((raw > 0x7F).any(axis=1) | raw[:, width:].any(axis=1)):
        text = raw[row].tobytes().rstrip(b"\0").decode(UTF8, "surrogatepass")
        if len(text) > count:
            raise ValueError(f"a text of {len(text)} characters, where {count} fit")
        texts[row] = text
    return texts.reshape(values.shape)


def encoded(values: Values) -> Values:
    """Return text (U) as UTF-8 in elements of the same size (S); `from_utf8` is the reverse.

    The text has been checked by `check_characters`.
    """
    import numpy as np

    count = values.dtype.itemsize // 4
    codes = np.ascontiguousarray(values).view(_unit(values.dtype)).reshape(-1, count)
    result = np.zeros((len(codes), 4 * count), np.uint8)
    result[:, :count] = codes
    for row in np.flatnonzero((codes > 0x7F).any(axis=1)):
        text = values.reshape(-1)[row].encode(UTF8, "surrogatepass")
        result[row] = 0
        result[row, : len(text)] = np.frombuffer(text, np.uint8)
    return result.reshape(-1).view(f"S{4 * count}").reshape(values.shape)


def encoded_block(block: Values, array: Array, done: int, path: str) -> Values:
    """Return a block of text (U) as UTF-8, after `check_characters`; its arguments are the same."""
    check_characters(block, array, done, path)
    return encoded(block)


def check_characters(block: Values, array: Array, done: int, path: str) -> None:
    """Raise `WouldLose` if a block of text (U) holds a number that is not a character.

    `done` is the number of elements of the array before the block, `path` the file to be written.
    """
    from raconvert.arrays.blocks import index_of

    if (first_beyond := beyond(block)) is not None:
        position, code = first_beyond
        raise WouldLose(
            f"array '{array.name}' holds a number that is not a character",
            path=path,
            where=f"element {index_of(array, done + position)}",
            expected=f"at most U+{LAST:X}",
            got=f"U+{code:X}",
            remedy="no option allows this; NPY and Zarr can hold it; nothing was written",
        )


def as_text(array: Array, element: Element, path: str) -> Array:
    """Return strings in the width and kind of `element`: bytes are characters 0 to 255."""
    from raconvert.arrays.cast import Converted

    dtype = dtype_of(element)
    growth = max(1, element.nbytes // array.element.nbytes)

    class Texts(Converted):
        def stream(self, max_bytes: int) -> Iterator[Any]:
            return super().stream(max(1, max_bytes // growth))

    def convert(block: Values, _: int) -> Values:
        units = units_of(block)
        width = element.nbytes // (1 if dtype.kind == "S" else 4)
        if units[..., width:].any() or (dtype.kind == "S" and (units > 255).any()):
            raise Corrupt(
                f"a string of array '{array.name}' is not {dtype.kind}{width}",
                path=path,
                remedy="the metadata beside the file belongs to other content",
            )
        return _packed(units, width, dtype)

    return array.replace(element=element, extent=None, data=Texts(array, dtype, convert))


def units_of(block: Values) -> Values:
    """Return the characters of fixed-width strings as numbers, on a new last axis."""
    unit = _unit(block.dtype)
    width = block.dtype.itemsize // unit.itemsize
    return block.reshape(*block.shape, 1).view(unit).reshape(*block.shape, width)


def beyond(values: Values) -> tuple[int, int] | None:
    """Return the first number beyond the last code point in text (U): index of its element, number.

    None if there is no such number; the index counts the elements in C order.
    """
    if values.dtype.kind != "U" or not values.dtype.itemsize:
        return None
    units = units_of(_contiguous(values))
    wrong = units > LAST
    if not wrong.any():
        return None
    first = int(wrong.argmax())
    return first // units.shape[-1], int(units.reshape(-1)[first])


def for_showing(values: Values) -> Values:
    """Return values, those of text (U) with U+FFFD for numbers beyond the last code point."""
    if beyond(values) is None:
        return values
    units = units_of(_contiguous(values)).copy()
    units[units > LAST] = _REPLACEMENT
    return units.view(values.dtype).reshape(values.shape)


def _contiguous(values: Values) -> Values:
    """Return values as they are if they are contiguous, else a copy."""
    import numpy as np

    return np.ascontiguousarray(values).reshape(values.shape)


def _packed(units: Values, width: int, dtype: Dtype) -> Values:
    """Return numbers of characters (last axis) as strings of `width`; further ones are cut off."""
    import numpy as np

    shape = units.shape[:-1]
    packed = np.zeros((prod(shape), width), _unit(dtype))
    count = min(width, units.shape[-1])
    packed[:, :count] = units.reshape(prod(shape), units.shape[-1])[:, :count]
    return packed.view(dtype).reshape(shape)


def _unit(dtype: Dtype) -> Dtype:
    """Return the type of a character: a byte, or a code point in the byte order of the text."""
    import numpy as np

    return np.dtype("u1" if dtype.kind == "S" else "u4").newbyteorder(dtype.byteorder)
