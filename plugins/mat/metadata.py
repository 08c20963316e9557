"""The namespace `mat`: facts of structs and cells that paths alone do not show.

Of a file: ``variables`` (their order, where arrays alone do not tell it) and ``values``, which maps
the path of a struct or cell to ``class``, ``dims``, ``fields`` and ``global``; ``forms`` is what
other formats name of it. Of an array: ``class``, ``columns`` of a char array, ``global``.
"""

from __future__ import annotations

import re

from .tables import KEYWORDS, MAX_DIM, MAX_RANK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
_INDEX = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
MOST_GAPS = 1 << 20  # elements that a cell may be written with and no value has been given for
SPARSE_HOLES = 16  # how many numbers may be missing in a group that becomes a cell


def is_name(text: str) -> bool:
    """True if MATLAB takes a text as the name of a variable or of a field."""
    return _NAME.fullmatch(text) is not None and text not in KEYWORDS


def is_index(text: str) -> bool:
    """True if a text is a linear index as this plugin writes it: 1, 2, 3 and so on."""
    return _INDEX.fullmatch(text) is not None


# --- reading --------------------------------------------------------------------------------------


def above(path: str) -> str:
    """The group in which a path lies; empty for the file itself."""
    return path.rpartition("/")[0]


def forms_of(
    values: dict[str, dict[str, Any]], arrays: list[str], groups: Iterable[str]
) -> dict[str, str]:
    """The form of each group whose members do not show it to who reads them alone."""
    if not values:
        return {}
    there = set(groups)
    for name in arrays:
        path = name
        while path and path not in there:
            there.add(path)
            path = above(path)
    forms = {}
    for path, facts in values.items():
        cls, dims = facts["class"], facts["dims"]
        if cls == "cell":
            shown = len(dims) == 2 and dims[0] == 1 and f"{path}/{dims[1]}" in there
        else:
            shown = dims == [1, 1] and not all(map(is_index, facts.get("fields") or [""]))
        if not shown or facts.get("global"):
            forms[path] = f"{cls} {' x '.join(map(str, dims))}"
    return forms


def telling(**facts: Any) -> dict[str, Any]:
    """The facts that say something."""
    return {name: value for name, value in facts.items() if value not in (None, False)}


# --- writing --------------------------------------------------------------------------------------


def in_order(content: dict[str, Any], listed: Any) -> list[tuple[str, Any]]:
    """The members in the order in which the namespace lists them; others come last."""
    names = listed if isinstance(listed, list) else []
    places = {name: position for position, name in enumerate(names) if isinstance(name, str)}
    return sorted(content.items(), key=lambda item: places.get(item[0], len(places)))


def dims_of(facts: dict[str, Any]) -> tuple[int, ...]:
    """The dims that the namespace has; none where they are not valid."""
    dims = facts.get("dims")
    if not isinstance(dims, list) or len(dims) < 2 or len(dims) > MAX_RANK["7.3"]:
        return ()
    if any(type(n) is not int or not 0 <= n <= MAX_DIM for n in dims):
        return ()
    return tuple(dims)


def all_below(content: dict[str, Any], count: int) -> bool:
    """True if all names are numbers of a cell with so many elements."""
    if any(not is_index(name) or int(name) > count for name in content):
        return False
    return count <= max(MOST_GAPS, 64 * len(content))


def is_numbered(content: dict[str, Any]) -> bool:
    """True for a group that becomes a cell by itself: its members are numbers from 1."""
    if not content or any(not is_index(name) for name in content):
        return False
    return max(map(int, content)) <= len(content) + SPARSE_HOLES


def is_struct_array(content: dict[str, Any], count: int, fields: list[str]) -> bool:
    """True if the members are elements of an array of structs with these fields."""
    if not fields:
        return not content
    return all_below(content, count) and all(
        isinstance(inside, dict) and set(inside) <= set(fields) for inside in content.values()
    )
