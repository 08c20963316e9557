"""The plain part of YAML, written and read line by line: nearly all sidecars have only that.

It has mappings and lists in block style; words, numbers, and text in single quotes, each on one
line, in ASCII. A bundle has tens of thousands of such texts, for which a whole parser is too slow.
From the first field on that is not plain, the YAML library does it (`raconvert.metadata.yaml`); it
reads the plain part as the same values.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Token = tuple[int, bool, str | None, Any]  # indentation, True if it begins an item, key, value

MAX_INDENT = 40
_WORD = "[A-Za-z][A-Za-z0-9_./%-]{0,99}"
_WHOLE = "-?(?:0|[1-9][0-9]{0,17})"
_FLOAT = r"-?[0-9]{1,20}\.[0-9]{0,20}(?:e[-+][0-9]{1,3})?"
_LINE = re.compile(
    rf"( *)(- )?(?:({_WORD}):(?: |(?=\n)))?"
    rf"(?:({_WHOLE})|({_FLOAT})|'([ -&(-~]{{0,99}})'|({_WORD})|(\[\]|\{{\}}))?\n"
)
_IS_WORD = re.compile(_WORD).fullmatch
_NUMBERS = {int: re.compile(_WHOLE).fullmatch, float: re.compile(_FLOAT).fullmatch}
_NAMED = {list: "[]", tuple: "[]", dict: "{}", type(None): "null"}
_IS_QUOTABLE = re.compile("[!-&(-~]{0,99}").fullmatch  # longer lines with spaces would be folded
_CONSTANTS = {"true": True, "false": False, "null": None}
_ODD_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # in any case
_END = "...\n"
FIELD_BEGIN: re.Pattern[str] = re.compile("[A-Za-z_\"']")
_NOTHING: Any = object()
_ODD: Any = object()


class _NotPlainError(Exception):
    """Raised for anything that is left to the YAML library."""


# Writing -----------------------------------------------------------------------------------------


def written(fields: dict[Any, Any]) -> tuple[str, int, int]:
    """Return the first fields as text, as far as they are plain: text, number of fields, lines."""
    lines: list[str] = []
    whole = done = 0
    try:
        for key, value in fields.items():
            _write_field(lines, "", key, value)
            whole, done = len(lines), done + 1
    except _NotPlainError:
        pass
    return "".join(lines[:whole]), done, whole


def _write_field(lines: list[str], indent: str, key: Any, value: Any) -> None:
    """Append the lines of one field of a mapping."""
    if type(key) is not str or _scalar_of(key) != key:
        raise _NotPlainError
    _write(lines, f"{indent}{key}:", indent, value)


def _write(lines: list[str], begin: str, indent: str, value: Any) -> None:
    """Append the lines of a value; the first one begins with `begin`."""
    if type(value) is dict and value:
        if len(indent) > MAX_INDENT - 2:
            raise _NotPlainError
        lines.append(f"{begin}\n")
        for key, item in value.items():
            _write_field(lines, indent + "  ", key, item)
    elif type(value) in (list, tuple) and value:
        lines.append(f"{begin}\n")
        for item in value:
            _write_item(lines, indent, item)
    else:
        lines.append(f"{begin} {_scalar_of(value)}\n")


def _write_item(lines: list[str], indent: str, value: Any) -> None:
    """Append the lines of one item of a list."""
    if type(value) is dict and value:
        first = len(lines)
        for key, item in value.items():
            _write_field(lines, indent + "  ", key, item)
        lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
    elif type(value) in (list, tuple) and value:
        raise _NotPlainError
    else:
        lines.append(f"{indent}- {_scalar_of(value)}\n")


def _scalar_of(value: Any) -> str:
    """Return the text of a plain value."""
    kind = type(value)
    if kind is str:
        if _IS_WORD(value) and value.lower() not in _ODD_WORDS:
            return str(value)
        if _IS_QUOTABLE(value):
            return f"'{value}'"
    elif kind in _NUMBERS:
        text = repr(value)
        if _NUMBERS[kind](text):
            return text
    elif kind in _NAMED:
        return _NAMED[kind]
    elif kind is bool:
        return "true" if value else "false"
    raise _NotPlainError


# Reading -----------------------------------------------------------------------------------------


def leading(text: str, most: int) -> tuple[dict[str, Any], int, int]:
    """Return the plain fields at the beginning of a text, their end offset, and number of values.

    The rest of the text is empty, or the YAML of a mapping that can be read on its own. From `most`
    tokens on, nothing more is read here.
    """
    tokens, starts, end = _tokens(text, most)
    fields: dict[str, Any] = {}
    index = stop = 0
    while index < len(tokens):
        try:
            key, value, index = _field(tokens, index, 0)
        except (_NotPlainError, IndexError):
            break
        if key in fields or (index == len(tokens) and end != len(text)):
            break
        if index < len(tokens) and (tokens[index][0] or tokens[index][1]):
            break
        fields[key] = value
        stop = starts[index] if index < len(tokens) else end
    else:
        return fields, len(text), len(tokens) + 1
    if stop and FIELD_BEGIN.match(text, stop):
        return fields, stop, index + 1
    return {}, 0, 0


def _tokens(text: str, most: int) -> tuple[list[Token], list[int], int]:
    """Return the tokens of the first lines that are plain, their offsets, and the end offset."""
    tokens: list[Token] = []
    starts: list[int] = []
    match, offset = _LINE.match, 0
    while (line := match(text, offset)) and len(tokens) < most:
        blanks, dash, key, *texts = line.groups()
        indent = len(blanks)
        value = _value_of(*texts)
        if indent > MAX_INDENT or value is _ODD or (key is None and value is _NOTHING):
            break
        if key is not None and key.lower() in _ODD_WORDS:
            break
        if dash and key is not None:
            tokens.append((indent, True, None, _NOTHING))
            starts.append(offset)
            indent, dash = indent + 2, None
        tokens.append((indent, dash is not None, key, value))
        starts.append(offset)
        offset = line.end()
    if text.startswith(_END, offset) and len(text) == offset + len(_END):
        offset = len(text)
    return tokens, starts, offset


def _value_of(
    whole: str | None, number: str | None, quoted: str | None, word: str | None, empty: str | None
) -> Any:
    """Return the value of a line by the one text that matched; `_NOTHING` without one."""
    if word is not None:
        return word if word.lower() not in _ODD_WORDS else _CONSTANTS.get(word, _ODD)
    if whole is not None:
        return int(whole)
    if quoted is not None:
        return quoted
    if number is not None:
        return float(number)
    if empty is not None:
        return [] if empty == "[]" else {}
    return _NOTHING


def _field(tokens: list[Token], index: int, indent: int) -> tuple[str, Any, int]:
    """Return key and value of a field, and the index of the token after it."""
    indent_of_key, dash, key, value = tokens[index]
    if indent_of_key != indent or dash or key is None:
        raise _NotPlainError
    index += 1
    if value is _NOTHING:
        inner, dash = tokens[index][:2]
        if inner < indent or (inner == indent and not dash):
            raise _NotPlainError  # no value
        value, index = _list(tokens, index, inner) if dash else _mapping(tokens, index, inner)
    return key, value, index


def _mapping(tokens: list[Token], index: int, indent: int) -> tuple[dict[str, Any], int]:
    """Return the mapping that begins with a token, and the index of the token after it."""
    mapping: dict[str, Any] = {}
    while index < len(tokens) and tokens[index][0] == indent and not tokens[index][1]:
        key, value, index = _field(tokens, index, indent)
        if key in mapping:
            raise _NotPlainError
        mapping[key] = value
    return mapping, index


def _list(tokens: list[Token], index: int, indent: int) -> tuple[list[Any], int]:
    """Return the list that begins with a token, and the index of the token after it."""
    items = []
    while index < len(tokens) and tokens[index][0] == indent and tokens[index][1]:
        value = tokens[index][3]
        index += 1
        if value is _NOTHING:
            value, index = _mapping(tokens, index, indent + 2)
        items.append(value)
    return items, index
