"""Numbers written as text, to the elements of an array: pieces of a bounded size, exactly as many.

Integers must fit their type, as readers differ in what they make of others; numbers of 32 bits are
rounded once, from the text.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt
from raconvert.files.inflate import left_in, note_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.files.limits import Limits

    Parse = Callable[[list[bytes], np.dtype[Any], int], np.ndarray[Any, Any]]


TEXT_BYTES = 1 << 18


def numbers(
    file: Any,
    nbytes: int,
    dtype: np.dtype[Any],
    notes: list[str],
    limits: Limits,
    *,
    commas: bool = False,
) -> Iterator[Any]:
    """Yield the elements, as bytes, that numbers in text stand for.

    White space separates them, with `commas` commas too. Without `commas`, integers may be written
    as ``1e3`` or ``5.0``. Raises `Corrupt` for other words, and for too few.
    """
    dtype = number_dtype(dtype)
    left = nbytes // dtype.itemsize  # elements that are still to come
    total = left
    carry = b""
    while left:
        more = file.read(TEXT_BYTES) or b""
        text = carry + more
        text = text.replace(b",", b" ") if commas else text
        # The last word may go on in the next piece.
        words = text.split()
        carry = words.pop() if more and words and not text[-1:].isspace() else b""
        if len(words) + bool(carry) > left:
            rest = next(islice(re.finditer(rb"\S+", text), left, None)).start()
            behind = len(text) - rest + left_in(file)  # bytes
            note_once(notes, f"{behind} bytes after the data were ignored")
            carry = b""
            del words[left:]
        if words:
            yield (
                _values(words, dtype, total - left, limits.number_bytes, exact=commas)
                .view("u1")
                .data
            )
        left -= len(words)
        if left and len(carry) > limits.number_bytes:
            raise _no_number(carry, total - left, dtype)
        if left and not more:
            raise Corrupt(
                "text has too few values", expected=f"{total} values", got=f"{total - left}"
            )


def number_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the numbers in text: a float for each part of complex, uint8 for bool."""
    if dtype.kind == "c":
        return np.dtype(f"<f{dtype.itemsize // 2}")
    return np.dtype("u1") if dtype.kind == "b" else dtype


def _values(
    words: list[bytes], dtype: np.dtype[Any], done: int, most: int, *, exact: bool
) -> np.ndarray[Any, Any]:
    """Return the numbers that words stand for; `done` words came before.

    A word has at most `most` bytes. With `exact`, integers must be written as such.
    """
    wide = np.dtype({"i": "<i8", "u": "<u8", "f": "<f8"}[dtype.kind])
    parse = _floats if dtype.kind == "f" else _integers if exact else _whole
    try:
        values = parse(words, wide, most)
    except (ValueError, OverflowError):
        index, word = next(
            (n, w) for n, w in enumerate(words) if not _is_number(w, wide, parse, most)
        )
        raise _no_number(word, done + index, dtype) from None
    if dtype.kind == "f":
        return values if dtype.itemsize == 8 else _as_single(values, words)
    limits = np.iinfo(dtype)
    if values.min() < limits.min or values.max() > limits.max:
        index = int(np.flatnonzero((values < limits.min) | (values > limits.max))[0])
        raise _no_number(words[index], done + index, dtype)
    return values.astype(dtype)


_OF_INTEGERS = re.compile(rb"[-+0-9 ]+")
_OF_FLOATS = re.compile(rb"[-+0-9.eEnaNAifIFtTyY ]+")


def _integers(words: list[bytes], dtype: np.dtype[Any], most: int) -> np.ndarray[Any, Any]:
    """Parse the integers; ValueError if a word is not one, OverflowError beyond 64 bits."""
    text = b" ".join(words)
    if not _OF_INTEGERS.fullmatch(text) or len(max(words, key=len)) > most:
        raise ValueError
    return np.array(list(map(int, words)), dtype)


def _floats(words: list[bytes], dtype: np.dtype[Any], most: int) -> np.ndarray[Any, Any]:
    """Parse the words as float64; ValueError if one is not a number."""
    # Of these characters Python's float takes numbers, nan, inf and infinity; not "1_0".
    if not _OF_FLOATS.fullmatch(b" ".join(words)) or len(max(words, key=len)) > most:
        raise ValueError
    return np.array(list(map(float, words)), dtype)


def _whole(words: list[bytes], dtype: np.dtype[Any], most: int) -> np.ndarray[Any, Any]:
    """Parse integers that may be written as ``1e3`` or ``5.0``; errors as of `_integers`."""
    try:
        return _integers(words, dtype, most)
    except ValueError:
        return np.array([_integer(word, most) for word in words], dtype)


def _integer(word: bytes, most: int) -> int:
    """Return the integer, of at most 21 digits, that a word stands for; ValueError for others."""
    if not _OF_FLOATS.fullmatch(word) or len(word) > most:
        raise ValueError
    try:
        number = Decimal(word.decode())
    except ArithmeticError:
        raise ValueError from None
    if not number.is_finite() or number.adjusted() > 20 or number != number.to_integral_value():
        raise ValueError
    return int(number)


def _is_number(word: bytes, dtype: np.dtype[Any], parse: Parse, most: int) -> bool:
    try:
        parse([word], dtype, most)
    except (ValueError, OverflowError):
        return False
    return True


def _no_number(word: bytes, index: int, dtype: np.dtype[Any]) -> Corrupt:
    shown = word if len(word) <= 40 else word[:37] + b"..."
    return Corrupt(
        f"text is not a number of type {dtype.name}", where=f"value {index}", got=repr(shown)
    )


_BELOW_INFINITY = 2.0**128 - 2.0**103  # between the largest single and infinity


def _as_single(values: np.ndarray[Any, Any], words: list[bytes]) -> np.ndarray[Any, Any]:
    """Round doubles to the nearest singles, by the texts that they were parsed from.

    A double exactly between two singles may be a rounded text itself; then the text decides.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        single = values.astype("<f4")
        other = np.nextafter(single, np.where(values > single, np.inf, -np.inf).astype("<f4"))
        between = (single.astype("f8") + other) / 2 == values
        between |= np.isinf(single) & (np.abs(values) == _BELOW_INFINITY)
    for index in np.flatnonzero(between & (values != single)):
        exact, middle = Decimal(words[index].decode()), Decimal(float(values[index]))
        if exact != middle:
            nearest = max if exact > middle else min
            single[index] = nearest(single[index], other[index])
    return single
