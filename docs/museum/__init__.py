"""The museum of silent losses: what well-known libraries change without a word, as programs.

Each exhibit is a function of one module here: it gives a library some values, takes back what the
library made of them, and asks raconvert the same. `python -m docs.museum` runs them with the
installed versions; `tests/test_museum.py` holds what the page docs/museum.md says of them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import raconvert

Values = Any  # an array, or what else a library gives back


@dataclass(frozen=True)
class Answer:
    """What raconvert made of the same values, and what it said: one line, or why it refuses."""

    values: Values
    says: str = ""
    refused: bool = False


Exhibited = tuple[Values, Values, Answer]  # before, after, and what raconvert made of it
Run = Callable[[Path], Exhibited]


@dataclass(frozen=True)
class Exhibit:
    """One loss: the library, what it does, the values before and after, and our answer."""

    library: str
    before: str
    after: str
    ours: str
    run: Run

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def title(self) -> str:
        """What the library does."""
        return (self.run.__doc__ or "").rstrip(".")

    @property
    def anchor(self) -> str:
        """Where it is on the page."""
        return f"{self.library.lower()}-{self.name.replace('_', '-')}"

    @property
    def program(self) -> str:
        """The lines of the function, below its docstring."""
        lines = inspect.getsource(self.run).splitlines(keepends=True)
        first = next(n for n, line in enumerate(lines) if line.startswith("def ")) + 2
        return textwrap.dedent("".join(lines[first:])).strip()


MODULES = ("numbers", "shapes", "missing", "texts")
EXHIBITS: list[Exhibit] = []


def exhibit(library: str, *, before: str, after: str, ours: str) -> Callable[[Run], Run]:
    """Put a function in the museum."""

    def keep(run: Run) -> Run:
        EXHIBITS.append(Exhibit(library, before, after, ours, run))
        return run

    return keep


def through(path: Path, values: Values, *, dtype: str | None = None, of: str = "") -> Answer:
    """Write values by raconvert, as `dtype` if that is given, and read them again.

    `of` reads what the metadata says instead: "attributes", or "spacing" of the first axis.
    """
    origin = path.with_name("origin.npy")
    try:
        report = raconvert.write(origin if dtype else path, values)
        if dtype:
            report = raconvert.convert(origin, path, dtype=dtype)
        answer = reading(path, of=of)
    except raconvert.RaconvertError as error:
        return Answer(None, reason(error, path), refused=True)
    said = "; ".join(line.split(": ", 1)[-1] for line in map(str, report.equivalent))
    return replace(answer, says=answer.says or said)


def reading(path: Path, *, index_order: str | None = None, of: str = "") -> Answer:
    """Read by raconvert what a library wrote."""
    try:
        if of:
            metadata = raconvert.open(path).meta
            return Answer(
                dict(metadata.attributes) if of == "attributes" else metadata.axes[0].spacing
            )
        found = raconvert.read(path, index_order=index_order)
    except raconvert.RaconvertError as error:
        return Answer(None, reason(error, path), refused=True)
    if not isinstance(found, raconvert.Array) and hasattr(found, "keys"):
        (found,) = (found[name] for name in found)
    return Answer(np.asarray(found))


def reason(error: raconvert.RaconvertError, path: Path) -> str:
    """The cause in one line, without the file and its folder."""
    lines = str(error).replace(f"{path.parent}/", "").splitlines()
    cause = lines[1].strip() if "cannot hold this as it is" in lines[0] else lines[0]
    return cause.split("': ", 1)[-1].split(" (allow with")[0]


def shown(values: Values) -> str:
    """Type, shape and values of an array; what else there is, as Python writes it."""
    if not isinstance(values, np.ndarray):
        return repr(values)
    kind = values.dtype.str.lstrip("|<") if values.dtype.kind in "SU" else values.dtype.name
    if values.size > 8:
        return f"{kind} {values.shape}"
    plain = values.dtype.kind in "biufcOSU" and values.dtype.name != "float128"
    text = str(values if np.ma.isMaskedArray(values) or not plain else values.tolist())
    return f"{kind} {values.shape} {' '.join(text.split())}"


def verdict(before: Values, ours: Answer) -> str:
    """Our answer in one line: exact, what was said, or refused."""
    if ours.refused:
        return f"refused: {ours.says}"
    if same(before, ours.values):
        return "exact"
    if ours.says:
        return f"said: {ours.says}"
    return f"SILENT: {shown(ours.values)}"


def same(first: Values, second: Values) -> bool:
    """Compare type (byte order aside), shape, mask and values, NaN being equal to itself."""
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return type(first) is type(second) and bool(first == second)
    if first.dtype.newbyteorder("=") != second.dtype.newbyteorder("="):
        return False
    if not np.array_equal(np.ma.getmaskarray(first), np.ma.getmaskarray(second)):
        return False
    return np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def gather() -> list[Exhibit]:
    """Return all exhibits, in the order of the modules."""
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    return EXHIBITS
