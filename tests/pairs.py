"""What a format's own test file says for the suites over all pairs: its `IN_PAIRS`.

A file of `tests/plugins/` with a `IN_PAIRS` is found by itself; the tables of `pairs_tables`, `READERS`
and `WRITERS` take it up under the name of the format.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

NAME = "vals"  # of the one array in each file; fine in every format
PLUGINS = Path(__file__).resolve().parent / "plugins"
Shape = tuple[int, ...]


class Pairs(NamedTuple):
    """A format: how others read and write it, and what has to become of types and shapes.

    `read` and `write` are not the code under test; `can_write` is True for what `write` takes.
    `types` (by the names of `pairs_tables.DTYPES`) and `shapes` (as the format counts the indices)
    list what is not exact: `~` equivalent, every value is kept in another form, `x` refused.
    """

    name: str
    suffix: str
    read: Callable[[Path], np.ndarray]
    write: Callable[[Path, np.ndarray], None]
    can_write: Callable[[np.ndarray], bool]
    order: str = ""  # C or F: the index order that it defines, CF: both
    keeps: bool = False  # has a place for all metadata
    few: bool = False  # another form of a format of which everything is tried
    types: Mapping[str, str] = {}
    shapes: Mapping[Shape, str] = {}


@cache
def collected() -> dict[str, Pairs]:
    """The `IN_PAIRS` of all test files of formats, by the name of the format."""
    found = {}
    for path in sorted(PLUGINS.glob("test_*.py")):
        if "\nIN_PAIRS = " in path.read_text(encoding="utf-8"):
            if str(PLUGINS) not in sys.path:
                sys.path.insert(0, str(PLUGINS))
            pairs = importlib.import_module(path.stem).IN_PAIRS
            assert pairs.name not in found, f"two files have the pairs of {pairs.name}"
            found[pairs.name] = pairs
    return found
