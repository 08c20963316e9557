r"""The fields of a header: one row for each, from which texts are read and written.

Numbers are those of C's ``strtod`` without hexadecimal ones; ``nan`` is a value that is not known,
and so is ``none`` where a vector stands. A quoted text has one escape, ``\"``; before anything
else a backslash stands for itself. Blanks may stand inside vectors. Sources: format definition,
section 3, and Teem's ``parseNrrd.c``.
"""

from __future__ import annotations

import re
from collections import namedtuple
from math import inf, isfinite, isinf, isnan

from .tables import (
    CENTERS,
    ENCODING_OF,
    KIND_OF,
    MAX_ARRAY_BYTES,
    MAX_BLOCK_BYTES,
    MAX_RANK,
    MAX_SPACE_RANK,
    NO_VECTOR,
    SPACE_OF,
    SPACE_RANKS,
    TEXT,
    TYPE_OF,
    UNKNOWN,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BLANKS = " \t"
MAX_SKIP = 1 << 62
MAX_NUMBER_CHARS = 1 << 11  # the longest double that is written exactly has 1079 characters

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)")
_QUOTED = re.compile(r'[ \t]*"(.*?)(?<!\\)"')  # a quote after a backslash does not end it
_VECTOR = re.compile(r"[ \t]*(?:\(([^()]*)\)|none(?=[ \t]|$))")


class BadValue(ValueError):
    """The description of a field is not what the field takes."""

    def __init__(self, expected: str, got: object, what: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.got = got
        self.what = what  # where it is not the value of one field


def parsed(field: str, text: str, fields: dict[str, Any]) -> Any:
    """Return the value of a field with this text; raises `BadValue`, a ValueError, for a wrong one.

    `fields` are those before it: how many values there must be depends on `dimension` and `space`.
    """
    return FIELDS[field].parse(text, fields)


def text_of(field: str, value: Any) -> str:
    """Return the text that `parsed` reads as this value.

    Raises `TypeError` or `ValueError` for a value that the field cannot have.
    """
    text: str = FIELDS[field].write(value)
    return text


def rank_of(fields: dict[str, Any]) -> int:
    """Return the number of axes. Raises `BadValue` if the header has not given it yet."""
    if "dimension" not in fields:
        raise BadValue("the field 'dimension' before it", "none")
    rank: int = fields["dimension"]
    return rank


def space_rank_of(fields: dict[str, Any]) -> int:
    """Return the number of axes of the space. Raises `BadValue` if it is not given yet."""
    if "space" in fields:
        return SPACE_RANKS[fields["space"]]
    if "space dimension" not in fields:
        raise BadValue("the field 'space' or 'space dimension' before it", "none")
    rank: int = fields["space dimension"]
    return rank


# --- one value ------------------------------------------------------------------------------------


def integer(text: str, low: int, high: int) -> int:
    """Return the whole number in a text. Raises `BadValue` for another one, or out of range."""
    text = text.strip(BLANKS)
    if _INTEGER.fullmatch(text):
        value = int(text)
        if low <= value <= high:
            return value
    raise BadValue(f"a whole number from {low} to {high}", text)


def _double(text: str) -> float:
    """Return the number in a text, which may be ``nan`` or infinite. Raises `BadValue`."""
    text = text.strip(BLANKS)
    if len(text) > MAX_NUMBER_CHARS or not _NUMBER.fullmatch(text.lower()):
        raise BadValue("a number", text)
    return float(text)


def _vector(text: str | None, rank: int) -> list[float] | None:
    """Return the `rank` numbers of a vector; None for None, and for a vector of ``nan``."""
    if text is None:
        return None
    parts = text.split(",", rank)
    if len(parts) != rank:
        raise BadValue(f"{rank} numbers in each vector", text)
    values = [_double(part) for part in parts]
    unknown = sum(map(isnan, values))
    if any(map(isinf, values)) or unknown not in (0, rank):
        raise BadValue("a vector of finite numbers, or of nan alone", text)
    return None if unknown else values


def _sample_units(text: str, fields: dict[str, Any]) -> str:
    """Return a text without the quotes that Teem adds anew at each round trip."""
    text = text.rstrip(BLANKS)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _space(text: str, fields: dict[str, Any]) -> str:
    if "space dimension" in fields:
        raise BadValue("either 'space' or 'space dimension'", "both")
    return _word_of(SPACE_OF, "the name of a space")(text, fields)


def _space_dimension(text: str, fields: dict[str, Any]) -> int:
    if "space" in fields:
        raise BadValue("either 'space' or 'space dimension'", "both")
    return integer(text, 1, MAX_SPACE_RANK)


def _space_origin(text: str, fields: dict[str, Any]) -> list[float] | None:
    origin: list[float] | None = _vectors(lambda _: 1)(text, fields)[0]
    return origin


def _as_it_is(text: str, fields: dict[str, Any]) -> str:
    """Return the text itself: the parser of a field of free text."""
    return text


def _word_of(known: dict[str, str], what: str) -> Callable[..., str]:
    """Return the parser of one word of a table, in upper or lower case."""

    def parse(text: str, fields: dict[str, Any]) -> str:
        word = text.rstrip(BLANKS).lower()
        if word not in known:
            raise BadValue(what, text)
        return known[word]

    return parse


# --- one value for each axis ----------------------------------------------------------------------


def _words(text: str, fields: dict[str, Any]) -> list[str]:
    """Return one word for each axis. Raises `BadValue` for another number of them."""
    rank = rank_of(fields)
    words = text.split(None, rank)
    if len(words) != rank:
        raise BadValue(f"{rank} values, one for each axis", text)
    return words


def _sizes(text: str, fields: dict[str, Any]) -> tuple[int, ...]:
    return tuple(integer(word, 1, MAX_ARRAY_BYTES) for word in _words(text, fields))


def _centers(text: str, fields: dict[str, Any]) -> list[str | None]:
    centers: list[str | None] = []
    for word in _words(text, fields):
        if word not in UNKNOWN and word.lower() not in CENTERS:
            raise BadValue("cell, node or ??? for each axis", word)
        centers.append(None if word in UNKNOWN else word.lower())
    return centers


def _kinds(text: str, fields: dict[str, Any]) -> list[str | None]:
    words = _words(text, fields)
    return [None if word in UNKNOWN else KIND_OF.get(word.lower(), word) for word in words]


def _doubles(is_valid: Callable[[float], bool], expected: str) -> Callable[..., list[float | None]]:
    """Return the parser of one number for each axis; ``nan`` becomes None: unknown."""

    def parse(text: str, fields: dict[str, Any]) -> list[float | None]:
        values = [_double(word) for word in _words(text, fields)]
        for value in values:
            if not isnan(value) and not is_valid(value):
                raise BadValue(expected, value)
        return [None if isnan(value) else value for value in values]

    return parse


def _quoted(count: Callable[[dict[str, Any]], int]) -> Callable[..., list[str]]:
    """Return the parser of quoted texts; `count` gives their number from the fields before."""

    def parse(text: str, fields: dict[str, Any]) -> list[str]:
        number = count(fields)
        texts = _matches(_QUOTED, text, number, f"{number} texts in double quotes")
        return [match[1].replace('\\"', '"') for match in texts]

    return parse


def _vectors(count: Callable[[dict[str, Any]], int]) -> Callable[..., list[list[float] | None]]:
    """Return the parser of space vectors, as many as `count` gives; ``none`` becomes None."""

    def parse(text: str, fields: dict[str, Any]) -> list[list[float] | None]:
        number, rank = count(fields), space_rank_of(fields)
        vectors = _matches(_VECTOR, text, number, f"{number} vectors (x,y,...) or {NO_VECTOR}")
        return [_vector(match[1], rank) for match in vectors]

    return parse


def _matches(form: re.Pattern[str], text: str, number: int, expected: str) -> list[re.Match[str]]:
    """Return `number` matches, one after the other; raises `BadValue` if anything else is there."""
    matches, offset = [], 0
    for _ in range(number):
        match = form.match(text, offset)
        if match is None:
            raise BadValue(expected, text)
        matches.append(match)
        offset = match.end()
    if text[offset:].strip(BLANKS):
        raise BadValue(expected, text)
    return matches


# --- the texts of values --------------------------------------------------------------------------


def _number_text(value: Any) -> str:
    """Return the shortest text that is read as the same double; ``nan`` for None."""
    if value is None:
        return "nan"
    if isinstance(value, bool):
        raise TypeError("a number was expected")
    return repr(float(value)).removesuffix(".0")


def _vector_text(value: Any) -> str:
    """Return the text of a vector; ``none`` for None."""
    return NO_VECTOR if value is None else f"({','.join(map(_number_text, value))})"


def _quoted_text(text: Any) -> str:
    """Return a text in quotes; an empty one for None. `ValueError` if a backslash ends it."""
    text = "" if text is None else text
    if text.endswith("\\"):
        raise ValueError("a backslash before the closing quote would hide it")
    return '"' + text.replace('"', '\\"') + '"'


def _word_text(text: Any) -> str:
    """Return a kind or a centering; ``???`` for None."""
    return UNKNOWN[0] if text is None else str(text)


def _each(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return the writer of several values, from that of one."""
    return lambda values: " ".join(map(text, values))


# --- the fields -----------------------------------------------------------------------------------

# A field: how its text is read (`parse`, of the text and the fields before it), how its value is
# written, the lowest version that has it, and how Teem spells it where that is another word.
Field = namedtuple("Field", "parse write version spelled", defaults=(1, ""))

_position = Field(_doubles(isfinite, "finite numbers, or nan where not known"), _each(_number_text))
_quoted_per_axis = Field(_quoted(rank_of), _each(_quoted_text))
_line = Field(_as_it_is, str)
_double_field = Field(lambda text, fields: _double(text), _number_text)

# In the order of Teem's writer. `dimension` comes before what has one value for each axis, `space`
# or `space dimension` before what has one for each axis of the space.
FIELDS: dict[str, Field] = {
    "content": _line,
    "number": _line,
    "type": Field(_word_of(TYPE_OF, "the name of a type"), str),
    "block size": Field(lambda text, fields: integer(text, 1, MAX_BLOCK_BYTES), str),
    "dimension": Field(lambda text, fields: integer(text, 1, MAX_RANK), str),
    "space": Field(_space, str, 4),
    "space dimension": Field(_space_dimension, str, 4),
    "sizes": Field(_sizes, _each(str)),
    "spacings": Field(
        _doubles(lambda v: v != 0 and abs(v) < inf, "finite numbers other than 0, or nan"),
        _each(_number_text),
    ),
    "thicknesses": Field(
        _doubles(lambda v: 0 <= v < inf, "finite numbers from 0, or nan"), _each(_number_text), 4
    ),
    "axis mins": _position,
    "axis maxs": _position,
    "space directions": Field(_vectors(rank_of), _each(_vector_text), 4),
    "centers": Field(_centers, _each(_word_text), 1, "centerings"),
    "kinds": Field(_kinds, _each(_word_text), 3),
    "labels": _quoted_per_axis,
    "units": _quoted_per_axis,
    "min": _line,
    "max": _line,
    "old min": _double_field,
    "old max": _double_field,
    "endian": Field(_word_of({"little": "little", "big": "big"}, "little or big"), str),
    "encoding": Field(
        _word_of(ENCODING_OF, ", ".join(dict.fromkeys(ENCODING_OF.values()))),
        lambda encoding: "ascii" if encoding == TEXT else encoding,
    ),
    "line skip": Field(lambda text, fields: integer(text, 0, MAX_SKIP), str),
    "byte skip": Field(lambda text, fields: integer(text, -MAX_SKIP, MAX_SKIP), str),
    "sample units": Field(_sample_units, str, 4),
    "space units": Field(_quoted(space_rank_of), _each(_quoted_text), 4),
    "space origin": Field(_space_origin, _vector_text, 4),
    "measurement frame": Field(_vectors(space_rank_of), _each(_vector_text), 5),
}
DATA_FILE = "data file"  # the last field: its value is `header.Files`
# spelling in lower case -> field
FIELD_OF = {
    spelling: field
    for field in (*FIELDS, DATA_FILE)
    for spelling in (field, field.replace(" ", ""))
} | {row.spelled: field for field, row in FIELDS.items() if row.spelled}
