"""JSON with marks for values that it lacks: bytes, dates, odd floats, complex, keys not text.

Each such value is a mapping with one key that begins with ``$``. Pure ASCII, on one line, so that
it fits into attributes, key/value pairs and lines.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from datetime import date, datetime
from math import isfinite, isnan

from raconvert.arrays.memory import check_memory
from raconvert.files.limits import DEFAULT
from raconvert.metadata.reals import nan_of, nan_text
from raconvert.metadata.yaml import MAX_KEY, SMALL, is_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.files.limits import Limits

# The most memory that a value needs, in bytes, by its mark in JSON: a list with space for four
# values, a mapping with one key (both of CPython 3.11 to 3.14), a reference and a number, and half
# a text, since it has two quotes.
_NEEDS = {b"[": 96, b"{": 256, b",": 48, b":": 128, b'"': 32}


def dumps(value: Any) -> str:
    """Return a value as one line of ASCII; `ValueError` for a type without a notation."""
    return json.dumps(_plain(value, 0), separators=(",", ":"), allow_nan=False)


def need_of(data: bytes) -> int:
    """Return the most bytes that the values of a JSON text need, the text itself included.

    Counted without parsing: ``[],`` of three bytes becomes a list of 64 in memory.
    """
    wide = 1 if data.isascii() and b"\\u" not in data else 4  # bytes of a character
    return len(data) * (1 + 2 * wide) + sum(need * data.count(one) for one, need in _NEEDS.items())


def parsed(
    data: bytes,
    max_memory: int,
    what: str,
    hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Return the values of a JSON text, after checking that memory has room for them.

    `what` names them in the error `TooLarge`; `hook` makes an object of pairs. Raises `ValueError`
    for a text that is not JSON in UTF-8, or is nested too deep.
    """
    check_memory(need_of(data), max_memory, what, f"{len(data)} bytes of JSON")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=hook)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def loads(text: str, limits: Limits) -> Any:
    """Return the value that `dumps` was given.

    Raises `ValueError` for any other text, and `TooLarge` if its values need more memory than
    `Limits.memory`.
    """
    if len(text) > limits.document_bytes:
        raise ValueError(f"it is longer than {limits.document_bytes} characters")
    need = need_of(text.encode("utf-8", "surrogatepass"))
    if need > SMALL:
        check_memory(need, limits.memory, "a record of metadata", f"{len(text)} bytes of JSON")
    try:
        return json.loads(text, object_hook=_rich, parse_constant=_refuse_constant)
    except (RecursionError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _plain(value: Any, depth: int) -> Any:
    """Return a value as values of JSON, odd ones marked; `ValueError` for types without a mark."""
    if depth > DEFAULT.nesting_levels:
        raise ValueError(f"it is nested more than {DEFAULT.nesting_levels} levels deep")
    if isinstance(value, dict):
        odd = [key for key in value if not isinstance(key, str) or key.startswith("$")]
        if not odd:
            return {key: _plain(item, depth + 1) for key, item in value.items()}
        pairs = [_pair(key, item) for key, item in value.items()]
        return {"$dict": [[_plain(k, depth + 1), _plain(v, depth + 1)] for k, v in pairs]}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": b64encode(value).decode("ascii")}
    if isinstance(value, float) and not isfinite(value):
        return {"$float": nan_text(value) if isnan(value) else str(value)}
    if isinstance(value, complex):
        return {"$complex": [_plain(part, depth + 1) for part in (value.real, value.imag)]}
    if type(value) in (date, datetime):
        return {"$date" if type(value) is date else "$time": value.isoformat()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ValueError(f"a value of type {type(value).__name__} has no place in JSON")


def _rich(value: dict[str, Any]) -> Any:
    """Restore the value that a mapping of one key encodes; its contents are restored already."""
    if len(value) != 1:
        return value
    ((key, inner),) = value.items()
    return _RICH[key](inner) if key in _RICH else value


def _float(text: str) -> float:
    number = nan_of(text)
    return float(text) if number is None else number


def _mapping(pairs: Any) -> dict[Any, Any]:
    return dict(_pair(key, item) for key, item in pairs)


def _pair(key: Any, item: Any) -> tuple[Any, Any]:
    """Return a key and its value; `ValueError` for an integer that would make lookups slow."""
    if not is_key(key):
        raise ValueError(f"it has an integer beyond {MAX_KEY} as a key")
    return key, item


_RICH: dict[str, Callable[[Any], Any]] = {
    "$bytes": lambda inner: b64decode(inner, validate=True),
    "$float": _float,
    "$complex": lambda inner: complex(*inner),
    "$date": date.fromisoformat,
    "$time": datetime.fromisoformat,
    "$dict": _mapping,
    "$mapping": _mapping,  # the word of HDF5 files before version 1
}
