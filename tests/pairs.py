"""What the files of a format say for the suites over all pairs: its `IN_PAIRS`.

They stand in `tests/plugins/`, in the test file of the format or in a `FORMAT_reader.py` beside it,
and are found by themselves. Here is what they have in common.
"""

from __future__ import annotations

import contextlib
import importlib
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

NAME = "vals"  # of the one array in each file; fine in every format
PLUGINS = Path(__file__).resolve().parent / "plugins"
Shape = tuple[int, ...]
Case = tuple[str, Shape]  # the name of a type, and a shape
Facts = dict[
    str, Any
]  # what is said of an array: names, labels and spacings of its axes, text, ...


class Pairs(NamedTuple):
    """A format: how others read and write it, and what has to become of types and shapes.

    `read` gives the array `vals` in logical order, `write` makes a file of one. Neither is the code
    under test. `can_write` is True for what `write` takes. `types` (by the names of
    `pairs_tables.DTYPES`) and `shapes` (as the format counts the indices) are lines of outcomes:
    `=` exact, `~` equivalent, every value is kept in another form, `x` refused; `= *` is all that no
    other line names. They are written from the format's documents, never derived from the plugin.
    """

    name: str
    suffix: str
    read: Callable[[Path], np.ndarray]
    write: Callable[[Path, np.ndarray], None] | None = None
    can_write: Callable[[np.ndarray], bool] = lambda values: False
    write_column_major: Callable[[Path, np.ndarray], None] | None = None  # where write does not
    order: str = ""  # C or F: the index order that it defines, CF: both, empty: none
    keeps: bool = False  # has a place for all metadata
    keeps_file: bool = False  # has a place for attributes of the file, which are text
    few: bool = False  # another form of a format of which everything is tried
    guest: bool = False  # paired with the eight formats of the mission and itself only
    reads_only: bool = False  # is in no table, since nothing is converted to it
    says_more: bool = False  # what `write` makes says more than the array
    usual: str = "uint8"  # the type in which it has all shapes
    types: str = ""  # empty: not in the tables, see `images`
    shapes: str = ""
    by_value: tuple[str, ...] = ()  # types refused for some values, which the suite has
    special: Callable[[str, Shape], str] = lambda name, shape: ""  # =, ~ or x in place of `types`
    images: Mapping[Case, str] = {}  # of what is written only where nothing is lost
    law: Mapping[str, str | None] | None = (
        None  # files for the law of the axes: name -> index order
    )
    most_axes: Mapping[str, int] = {}  # by type, where there is a limit
    allowed: Mapping[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {}
    # type -> --allow, and what the values become
    say: Callable[[Path, random.Random], Facts] | None = None  # write a file that says these facts
    said: Callable[[Path], Facts] | None = None  # the facts that a file says


@cache
def collected() -> dict[str, Pairs]:
    """The `IN_PAIRS` of all formats, by the name of the format."""
    found: dict[str, Pairs] = {}
    for path in sorted([*PLUGINS.glob("test_*.py"), *PLUGINS.glob("*_reader.py")]):
        if "\nIN_PAIRS = " in path.read_text(encoding="utf-8"):
            for pairs in importlib.import_module(path.stem).IN_PAIRS:
                assert pairs.name not in found, f"two files have the pairs of {pairs.name}"
                found[pairs.name] = pairs
    return found


# For readers and writers -------------------------------------------------------------------------


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let clients use what is deprecated elsewhere; that is no concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def little(values: np.ndarray) -> np.ndarray:
    """Return numbers in little-endian order; everything else as it is."""
    if values.dtype.kind in "iufc":
        return values.astype(values.dtype.newbyteorder("<"))
    return values


# Facts -------------------------------------------------------------------------------------------

GREY = np.arange(6, dtype="u1").reshape(2, 3)
FLOATS = np.arange(6, dtype="<f4").reshape(2, 3) - 0.5


def of_axes(axes: list[dict[str, Any]]) -> Facts:
    """Return facts from entries in logical order."""
    names = {"names": "name", "labels": "labels", "spacings": "spacing"}
    return {fact: [axis.get(field) for axis in axes] for fact, field in names.items()}


def of_png(fields: dict[str, Any]) -> Facts:
    """Return the text chunks of a PNG that other formats keep in its namespace."""
    own = fields.get("formats", {}).get("png", {})
    return {"text": {key: value for key, value, *_ in own.get("text", [])}}


def of_sidecar(fields: dict[str, Any]) -> Facts:
    axes = fields.get("axes", [])
    order = fields.get("index_order", "C")
    facts = of_axes(axes if order == "F" else axes[::-1])
    facts |= {k: fields.get(k) for k in ("attributes", "units", "description")}
    return {**facts, **of_png(fields)}


def nothing_said(path: Path) -> Facts:
    return {}


# Comparing ---------------------------------------------------------------------------------------


def _steps(expected: np.ndarray, got: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times as the numbers of their steps, where those are comparable."""
    steps = expected.astype(expected.dtype.newbyteorder("<")).view("<i8")
    alike = got.dtype.newbyteorder("<") == expected.dtype.newbyteorder("<")
    # A text of NaT alone says neither unit nor kind.
    if alike or (got.dtype.kind == "M" and np.isnat(expected).all()):
        return steps, got.astype(got.dtype.newbyteorder("<")).view("<i8")
    return (steps if got.dtype == "i8" else expected), got


def keeps_values(expected: np.ndarray, got: np.ndarray) -> bool:
    """True if all values are there, in another form than the exact one.

    Axes of length 1 may come and go, complex numbers be pairs on a new last axis, elements their
    bare bytes, byte strings characters, bools two numbers, times the numbers of their steps, and
    numbers those of a wider type.
    """
    expected, got = np.squeeze(expected), np.squeeze(got)
    if expected.dtype.kind == "c" and got.shape == (*expected.shape, 2):
        expected = np.stack([expected.real, expected.imag], axis=-1)
    if expected.shape != got.shape:
        return False
    if got.dtype.kind == "V" and (not got.dtype.names or got.dtype == expected.dtype):
        return expected.tobytes() == got.tobytes()
    if expected.dtype.kind == "S" and got.dtype.kind == "U":
        expected = np.char.decode(expected, "latin-1")
    if expected.dtype.kind in "mM":
        expected, got = _steps(expected, got)
    if expected.dtype.kind == "b" and got.dtype.kind in "iuf":
        return np.array_equal(expected, got != 0) and np.unique(got[expected]).size <= 1
    with np.errstate(all="ignore"):
        if expected.dtype == ml_dtypes.bfloat16:
            expected = expected.astype("<f4")
        return np.array_equal(expected, got, equal_nan=expected.dtype.kind in "fc")
