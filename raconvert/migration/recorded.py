"""What a journal says, checked: whoever may write into the destination can have made it.

It is believed in what it says of its own run, and not where it leads out of the trees, is not of
the types that `records` declare, or could not be said by a certificate.
"""

from __future__ import annotations

import json
import os
import re
from math import isfinite

from raconvert import errors
from raconvert.migration.records import (
    DONE,
    FAILED,
    PLANNED,
    SKIPPED,
    Outcome,
    Unit,
    unit_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LAST = 1 << 63  # of sizes in bytes, and of times in nanoseconds
_LAST_SECOND = 1e11  # of times in seconds: year 5138
_STATES = (DONE, FAILED, SKIPPED, PLANNED)
_PARTS = ("path", "where", "expected", "got", "remedy")
_digest = re.compile(r"(?:[0-9a-f]{64})?").fullmatch
_mark = re.compile(r"[0-9a-f]{0,64}").fullmatch


def values_of(text: Any) -> Any:
    """The values of a text of JSON. Raises `ValueError`."""
    try:
        return json.loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_below(path: Any) -> bool:
    """True for the path of a file in a tree, whatever the tree."""
    if type(path) is not str or "\0" in path or path[:1] == "/" or _is_elsewhere(path):
        return False
    return ".." not in path or ".." not in path.replace(os.sep, "/").split("/")


def _is_elsewhere(path: str) -> bool:
    """True for a path on a drive of Windows, or from its root."""
    return os.name == "nt" and (os.path.isabs(path) or bool(os.path.splitdrive(path)[0]))


def known_of(text: Any) -> list[tuple[Unit, Outcome | None]]:
    """The units of a batch, and what became of each. Raises `ValueError`."""
    found = values_of(text)
    if type(found) is dict and found.keys() <= {"units", "outcomes"}:
        units = found.get("units")
        if type(units) is list and all(map(_is_unit, units)):
            outcomes = found.get("outcomes", [None] * len(units))
            if type(outcomes) is list and all(one is None or _is_outcome(one) for one in outcomes):
                return [
                    (unit_of(unit), outcome and Outcome(*outcome))
                    for unit, outcome in zip(units, outcomes, strict=True)
                ]
    raise ValueError(f"not sources and what became of them: {repr_of(found)}")


def refused_of(row: list[Any]) -> tuple[Unit, Outcome]:
    """A unit that was refused before the run began, and why, as settings have it."""
    width = len(Unit._fields)
    return unit_of(row[:width]), Outcome(*row[width:])


def settings_of(values: dict[str, Any]) -> dict[str, Any]:
    """What a run was begun with, as it is. Raises `ValueError`."""
    for name, value in values.items():
        if name in _SETTINGS and not _SETTINGS[name](value):
            raise ValueError(f"{name} cannot be {repr_of(value)}")
    if values and not values.keys() >= {"options", "began"}:
        raise ValueError("not the beginning of a run")
    return values


def time_of(value: Any) -> float:
    """A time in seconds since 1970. Raises `ValueError`."""
    if not _is_time(value):
        raise ValueError(f"not a time: {repr_of(value)}")
    return float(value)


def repr_of(value: Any) -> str:
    """The beginning of what a value is, for a message."""
    try:
        return repr(value)[:80]
    except RecursionError:
        return "values in values"


# Types ------------------------------------------------------------------------------------------


def _fit(checks: tuple[Callable[[Any], object], ...], values: list[Any]) -> bool:
    """True if all values pass, each its own check."""
    return all(check(value) for check, value in zip(checks, values, strict=False))


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) is int and -_LAST <= value < _LAST


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LAST


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LAST_SECOND


def _is_digest(value: Any) -> bool:
    return type(value) is str and _digest(value) is not None


def _is_mark(value: Any) -> bool:
    return type(value) is str and _mark(value) is not None


def _is_maybe_text(value: Any) -> bool:
    return value is None or type(value) is str


def _are(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A check for lists of what `check` passes."""
    return lambda value: type(value) is list and all(map(check, value))


_are_texts, _are_below = _are(_is_text), _are(is_below)


def _is_file(value: Any) -> bool:
    return type(value) is list and len(value) == 3 and _fit(_FILE, value)


def _is_pair(value: Any) -> bool:
    return _are_texts(value) and len(value) == 2


def _is_fit(value: Any) -> bool:
    return type(value) is list and len(value) == 5 and _fit(_FIT, value)


def _is_said(value: Any) -> bool:
    if value is None:
        return True
    return type(value) is dict and all(
        name in _SAID and _SAID[name](items) for name, items in value.items()
    )


def _is_error(value: Any) -> bool:
    if value is None:
        return True
    if type(value) is not dict or not _is_text(value.get("class")):
        return False
    kind = getattr(errors, value["class"], None)
    return (
        isinstance(kind, type)
        and issubclass(kind, errors.RaconvertError)
        and _is_text(value.get("what"))
        and all(name in value and _is_maybe_text(value[name]) for name in _PARTS)
        and _are_texts(value.get("notes"))
    )


def _is_shallow(value: Any, depth: int = 3) -> bool:
    """True for what an option may be: plain values, not deep in one another."""
    if type(value) is list:
        return depth > 0 and all(_is_shallow(one, depth - 1) for one in value)
    if type(value) is dict:
        return depth > 0 and all(_is_shallow(one, depth - 1) for one in value.values())
    return type(value) is not float or isfinite(value)


def _are_options(value: Any) -> bool:
    return (
        type(value) is dict
        and _is_shallow(value)
        and _is_text(value.get("source"))
        and _is_text(value.get("to"))
    )


def _is_run(value: Any) -> bool:
    return (
        type(value) is dict
        and value.keys() <= {"began", "raconvert", "python", "libraries"}
        and _is_time(value.get("began"))
        and _is_text(value.get("raconvert"))
        and _is_text(value.get("python", ""))
        and type(libraries := value.get("libraries", {})) is dict
        and all(map(_is_text, libraries.values()))
    )


def _is_unit(row: Any) -> bool:
    """True for a unit; fields at its end may be missing."""
    return type(row) is list and _LEAST <= len(row) <= len(Unit._fields) and _fit(_UNIT, row)


def _is_outcome(row: Any) -> bool:
    return type(row) is list and 1 <= len(row) <= len(Outcome._fields) and _fit(_OUTCOME, row)


def _is_refused(row: Any) -> bool:
    width = len(Unit._fields)
    return type(row) is list and _is_unit(row[:width]) and _is_outcome(row[width:])


_LEAST = 4  # fields of a unit
_UNIT = (is_below, is_below, _is_count, _is_number, _are_below, _is_count, is_below)
_FILE = (is_below, _is_count, _is_digest)
_FIT = (_is_text, _is_text, _is_text, _is_text, _is_maybe_text)
_SAID = {"notes": _are_texts, "equivalent": _are(_is_fit), "allowed": _are(_is_fit)}
_OUTCOME = (_STATES.__contains__, _is_count, _is_number, _is_digest, _is_error, _is_said, is_below,
            _are(_is_file), _is_digest)  # fmt: skip
_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "version": _is_count,
    "options": _are_options,
    "began": _is_time,
    "ended": lambda value: value is None or _is_time(value),
    "raconvert": _is_text,
    "mark": _is_mark,
    "units": _is_count,
    "left_out": _are(_is_pair),
    "refused": _are(_is_refused),
    "runs": _are(_is_run),
}
