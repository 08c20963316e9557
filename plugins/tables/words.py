"""Values as text that reads back with the same bits, and back: the cells of CSV, and some of XLSX.

Integers are decimal, floats the shortest decimal of their double, which holds every smaller float
(``nan``, ``inf``, ``-inf``, and ``nan:0x1`` for a NaN of other bits);
complex numbers are ``1.0-2.0j``, bools ``true`` and ``false``, times and dates those of ISO 8601
with as many digits as their unit has (``2020-01-31``, ``2020-01-31T12:00:00.123``), durations too
(``P5D``, ``PT0.005S``); ``NaT`` is not a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from raconvert.metadata.reals import bits_of, doubles, nan_of, nan_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Values = np.ndarray[Any, Any]

__all__ = ["common", "dtype_of_kind", "kind_of", "parsed", "spelled"]

_USUAL_NAN = bits_of(float("nan"))
# digits behind the point of a second -> unit
_FRACTIONS = {0: "s", 3: "ms", 6: "us", 9: "ns", 12: "ps", 15: "fs", 18: "as"}
DATES = ("D", "h", "m", *_FRACTIONS.values())  # units of times that text tells apart
DURATIONS = ("W", *DATES)

_INTEGER = r"[+-]?(?:0|[1-9][0-9]*)"
_REAL = (
    r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[iI]nf(?:inity)?|[nN]a[nN](?::0x[0-9a-f]{1,13})?)"
)
_DATE = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_TIME = r"[T ](?P<h>[0-9]{2})(?P<m>:[0-9]{2}(?P<s>:[0-9]{2}(?:\.(?P<f>[0-9]{1,18}))?)?)?"
_IS = {
    "int": re.compile(_INTEGER).fullmatch,
    "float": re.compile(rf"[+-]?{_REAL}").fullmatch,
    "date": re.compile(rf"{_DATE}(?:{_TIME})?").fullmatch,
    "duration": re.compile(
        r"-?P(?:(?P<W>[0-9]+)W|(?P<D>[0-9]+)D|T(?:(?P<h>[0-9]+)H|(?P<m>[0-9]+)M"
        r"|(?P<s>[0-9]+)(?:\.(?P<f>[0-9]{1,18}))?S))"
    ).fullmatch,
}
_BOOLS = {"true": True, "false": False, "TRUE": True, "FALSE": False, "True": True, "False": False}
_LONG = 18  # digits from which on an integer may be beyond int64


# Values to text ----------------------------------------------------------------------------------


def spelled(values: Values) -> list[str]:
    """Return the text of each element of a one-dimensional array. Raises nothing."""
    kind = values.dtype.kind
    if kind == "b":
        return ["true" if value else "false" for value in values.tolist()]
    if kind in "iu":
        return list(map(str, values.tolist()))
    if kind == "c":
        width = values.dtype.itemsize // 2
        parts = np.ascontiguousarray(values).view(f"f{width}").reshape(-1, 2)
        real, imaginary = spelled(parts[:, 0]), spelled(parts[:, 1])
        return [
            f"{a}{'' if b[0] == '-' else '+'}{b}j" for a, b in zip(real, imaginary, strict=True)
        ]
    if kind == "M":
        return [str(text) for text in np.datetime_as_string(values).tolist()]
    if kind == "m":
        return _durations(values)
    if kind == "U":
        return [str(text) for text in values.tolist()]
    return _reals(doubles(values))


def _reals(values: Values) -> list[str]:
    """The texts of doubles."""
    texts = list(map(repr, values.tolist()))
    other_nans = np.flatnonzero(np.isnan(values) & (values.view(np.uint64) != _USUAL_NAN))
    for index in other_nans.tolist():
        texts[index] = nan_text(float(values[index]))
    return texts


def _durations(values: Values) -> list[str]:
    """The texts of durations."""
    unit = np.datetime_data(values.dtype)[0]
    digits = next((n for n, u in _FRACTIONS.items() if u == unit), 0)
    form = {"W": "P{}W", "D": "P{}D", "h": "PT{}H", "m": "PT{}M"}.get(unit, "PT{}S")
    texts = []
    for number in values.astype(np.int64).tolist():
        if number == -(1 << 63):
            texts.append("NaT")
            continue
        text = str(abs(number))
        if digits:
            text = text.rjust(digits + 1, "0")
            text = f"{text[:-digits]}.{text[-digits:]}"
        texts.append("-" * (number < 0) + form.format(text))
    return texts


# The kind of a column: that of all its texts ------------------------------------------------------


def kind_of(text: str) -> str:
    """Return the kind of one text. Raises nothing.

    It is ``int``, ``negative`` (an integer), ``uint`` (beyond int64), ``float``, ``bool``,
    ``complex``, ``text``, ``date`` or ``duration`` with its unit, or ``time`` (for ``NaT``, which
    is a missing date or a missing duration).

    An integer that is too large for 64 bits is text, and so is one with zeros in front of it.

    >>> kind_of("5"), kind_of("-1.5e3"), kind_of("007"), kind_of("2020-01-31")
    ('int', 'float', 'text', 'date:D')
    """
    if text in _BOOLS:
        return "bool"
    if text == "NaT":
        return "time"
    if _IS["int"](text):
        return _integer_kind(text)
    if _IS["float"](text):
        return "float" if _is_exact(text) else "text"
    if match := _IS["date"](text):
        unit = _date_unit(match)
        return f"date:{unit}" if _is_time(text, unit) else "text"
    if match := _IS["duration"](text):
        unit = next((u for u in ("W", "D", "h", "m") if match[u]), "") or _unit_of(match["f"])
        return f"duration:{unit}"
    if text[-1:] in "ji" and _complex(text) is not None:
        return "complex"
    return "text"


def _integer_kind(text: str) -> str:
    """The kind of an integer, by its sign and size."""
    if text == "-0":
        return "float"
    if len(text) < _LONG:
        return "negative" if text[0] == "-" else "int"
    number = int(text) if len(text) <= 40 else 1 << 70
    if -(1 << 63) <= number < 1 << 63:
        return "int" if number >= 0 else "negative"
    return "uint" if 0 <= number < 1 << 64 else "text"


def _is_exact(text: str) -> bool:
    """False for a number with zeros in front, or beyond the doubles."""
    digits = text.lstrip("+-")
    if digits[:1] == "0" and digits[1:2].isdigit():
        return False
    if not digits[:1].isdigit() and digits[:1] != ".":
        return True
    value = float(text)
    tiny = value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]) is not None
    return abs(value) != float("inf") and not tiny


def _unit_of(fraction: str | None) -> str:
    """The unit that holds the digits of a fraction of a second."""
    return _FRACTIONS[-(-len(fraction or "") // 3) * 3]


def _date_unit(match: re.Match[str]) -> str:
    """The unit of the smallest part of a time."""
    if match["h"] is None:
        return "D"
    if match["s"] is None:
        return "m" if match["m"] else "h"
    return _unit_of(match["f"])


def _is_time(text: str, unit: str) -> bool:
    """True if the unit holds the time in a text."""
    try:
        value = np.array(text, f"M8[{unit}]")[()]
    except (ValueError, OverflowError):
        return False
    begin = text.replace(" ", "T")[:16]
    return str(np.datetime_as_string(value)).startswith(begin)


def _complex(text: str) -> complex | None:
    """The complex number in a text; None for other texts."""
    if len(text) > 400 or any(letter in text for letter in "_() "):
        return None
    body = text[:-1]
    split = max((n for n, c in enumerate(body) if n and c in "+-" and body[n - 1] not in "eE"),
                default=0)  # fmt: skip
    parts = body[:split], body[split:]
    if not _IS["float"](parts[1]) or (split and not _IS["float"](parts[0])):
        return None
    return complex(_real(parts[0]) if split else 0.0, _real(parts[1]))


def _real(text: str) -> float:
    """The number in a text, NaN with its bits."""
    other_nan = nan_of(text.lower())
    if other_nan is not None:
        return other_nan
    return float("nan") if text.lstrip("+-").lower() == "nan" else float(text)


_FINER = {unit: rank for rank, unit in enumerate(("W", *DATES))}
_MERGED = {
    frozenset(("int", "uint")): "uint", frozenset(("int", "float")): "float",
    frozenset(("int", "negative")): "negative", frozenset(("negative", "float")): "float",
    frozenset(("negative", "complex")): "complex", frozenset(("uint", "complex")): "complex",
    frozenset(("uint", "float")): "float", frozenset(("int", "complex")): "complex",
    frozenset(("float", "complex")): "complex",
}  # fmt: skip


def common(first: str | None, second: str | None) -> str | None:
    """Return the kind that holds texts of two kinds; None is the kind of no text. Raises nothing.

    >>> common("int", "float"), common("date:D", "date:ms"), common("bool", "int")
    ('float', 'date:ms', 'text')
    """
    if first == second or second is None:
        return first
    if first is None:
        return second
    pair = frozenset((first, second))
    if pair in _MERGED:
        return _MERGED[pair]
    a, _, unit = first.partition(":")
    b, _, other = second.partition(":")
    if "time" in pair:
        other_kind = second if first == "time" else first
        return other_kind if ":" in other_kind else "text"
    if a == b and unit and other:
        return f"{a}:{max(unit, other, key=_FINER.__getitem__)}"
    return "text"


# Text to values ----------------------------------------------------------------------------------


NAT_ALONE = "date:ns"  # kind of a column of NaT alone, which may be times or durations


def dtype_of_kind(kind: str | None, width: int) -> np.dtype[Any]:
    """The type of the values of a kind; `width` is the length of the longest text."""
    name, _, unit = (kind or "float").partition(":")
    if name == "date":
        return np.dtype(f"M8[{unit}]")
    if name == "duration":
        return np.dtype(f"m8[{unit}]")
    types = {
        "int": "i8",
        "negative": "i8",
        "uint": "u8",
        "float": "f8",
        "bool": "?",
        "complex": "c16",
    }
    return np.dtype(types[name]) if name in types else np.dtype(f"U{max(1, width)}")


def parsed(texts: list[str], dtype: np.dtype[Any]) -> Values:
    """Return the values of texts in a type.

    Raises ValueError, with the index of the text and a message, for a text that is not of the type,
    or a number that the type does not hold.
    """
    kind = dtype.kind
    if kind == "U":
        longest = max(map(len, texts), default=0)
        if longest > dtype.itemsize // 4:
            raise _first_wrong(texts, lambda text: len(text) <= dtype.itemsize // 4, dtype)
        return np.array(texts, dtype) if texts else np.empty(0, dtype)
    convert = _CONVERT.get(kind, _floats)
    native = dtype.newbyteorder("=")
    try:
        return convert(texts, native).astype(dtype, copy=False)
    except (ValueError, KeyError, OverflowError, TypeError) as error:
        raise _first_wrong(texts, lambda text: _converts(convert, text, native), dtype) from error


def _converts(convert: Callable[..., Values], text: str, dtype: np.dtype[Any]) -> bool:
    """True if a text can be converted."""
    try:
        convert([text], dtype)
    except (ValueError, KeyError, OverflowError, TypeError):
        return False
    return True


def _first_wrong(texts: list[str], fits: Callable[[str], bool], dtype: np.dtype[Any]) -> ValueError:
    """The error for the first text that does not fit, with its index."""
    index = next((n for n, text in enumerate(texts) if not fits(text)), 0)
    return ValueError(index, f"'{texts[index][:60]}' is not {dtype.name}")


def _integers(texts: list[str], dtype: np.dtype[Any]) -> Values:
    if any(not _IS["int"](text) for text in texts):
        raise ValueError
    return np.array([int(text) for text in texts], dtype)


def _bools(texts: list[str], dtype: np.dtype[Any]) -> Values:
    bools = {**_BOOLS, "1": True, "0": False}
    return np.array([bools[text] for text in texts], dtype)


def _floats(texts: list[str], dtype: np.dtype[Any]) -> Values:
    from raconvert.metadata.reals import narrowed

    if any(not _IS["float"](text) for text in texts):
        raise ValueError
    wide = np.array([_real(text) for text in texts], "f8")
    values = narrowed(wide, dtype)
    if dtype.itemsize < 8:
        lost = np.isinf(doubles(values)) & ~np.isinf(wide)
        if lost.any():
            raise ValueError
    return values


def _complexes(texts: list[str], dtype: np.dtype[Any]) -> Values:
    from raconvert.metadata.reals import narrowed

    parts: list[float] = []
    for text in texts:
        number = _complex(text) if text[-1:] in "ji" else None
        if number is not None:
            parts += [number.real, number.imag]
        elif _IS["float"](text):
            parts += [_real(text), 0.0]
        else:
            raise ValueError
    flat = narrowed(np.array(parts, "f8"), np.dtype(f"f{dtype.itemsize // 2}"))
    return flat.view(dtype)


def _dates(texts: list[str], dtype: np.dtype[Any]) -> Values:
    unit = np.datetime_data(dtype)[0]
    for text in texts:
        match = _IS["date"](text)
        fits = match is not None and _FINER.get(_date_unit(match), 99) <= _FINER.get(unit, -1)
        if text != "NaT" and not (fits and _is_time(text, unit)):
            raise ValueError
    return np.array(texts, dtype) if texts else np.empty(0, dtype)


_SECONDS = {"W": 7 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


def _spans(texts: list[str], dtype: np.dtype[Any]) -> Values:
    unit = np.datetime_data(dtype)[0]
    digits = next((n for n, u in _FRACTIONS.items() if u == unit), 0)
    numbers = [_span(text, unit, digits) for text in texts]
    return np.array(numbers, np.int64).view(dtype)


def _span(text: str, unit: str, digits: int) -> int:
    """The number of units in a duration; `digits` are those of a fraction in the unit."""
    if text == "NaT":
        return -(1 << 63)
    match = _IS["duration"](text)
    if match is None:
        raise ValueError
    smallest = next((u for u in ("W", "D", "h", "m", "s") if match[u]), "s")
    fraction = match["f"] or ""
    number = int(match[smallest] + fraction) * _SECONDS[smallest] * 10 ** (digits + 1)
    steps, rest = divmod(number, _SECONDS.get(unit, 1) * 10 ** (len(fraction) + 1))
    if rest or steps >= 1 << 63:
        raise ValueError
    return int(-steps if text[0] == "-" else steps)


_CONVERT: dict[str, Callable[[list[str], np.dtype[Any]], Values]] = {
    "i": _integers, "u": _integers, "b": _bools, "c": _complexes, "M": _dates, "m": _spans,
}  # fmt: skip
