"""Checks of `header` and `header_tells`: that a header decides everything but the elements."""

from __future__ import annotations

import numpy as np

from raconvert.arrays.bundle import Bundle
from raconvert.conversion.options import Settings
from raconvert.conversion.write import adapted
from raconvert.errors import WouldLose
from raconvert.plugin import REFUSED, Plan, Plugin, Source
from raconvert.testing.cases import CASES
from raconvert.testing.kit import remove, require_none, row_of, scratch, suffix_of, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.testing.cases import Case


def check_headers_tell(plugin: ModuleType) -> None:
    """`Plan.header` is what a file begins with, and `Bundle.header_tells` is true of every content.

    `Plan.whole` is what `Plan.write` writes, and `Bundle.alike` finds the same elements.

    Raises `AssertionError` that lists what is wrong.
    """
    if not plugin.FORMAT.writes:
        return
    problems = []
    with scratch() as folder:
        for name, case in CASES.items():
            problem = _problem(plugin, case, folder / f"x{suffix_of(plugin)}")
            problems += [f"{name}: {problem}"] * bool(problem)
            for left in folder.iterdir():
                remove(left)
    require_none(problems, f"of {len(CASES)} arrays have other headers")


def _problem(plugin: ModuleType, case: Case, path: Path) -> str:
    array = adapted(case.array(), row_of(plugin), Settings())
    plans = [Plugin(plugin).plan(Bundle([one])) for one in (array, array.replace(name="other"))]
    if any(fit.outcome == REFUSED for fit in plans[0].fits):
        return ""
    if plans[0].header is None:
        return _problem_of_coded(plugin, case, array, plans[0], path)
    header, other = (plan.header() if plan.header else b"" for plan in plans)
    if header != other:
        return "the header depends on the name of the array"
    try:
        write(plugin, [case.array()], path)
    except WouldLose:
        return ""
    content = path.read_bytes()
    if content[: len(header)] != header or len(content) != len(header) + array.nbytes:
        return "the file is not the header and the elements"
    return _mismatch(plugin, path, content) if plugin.FORMAT.reads else ""


def _problem_of_coded(plugin: ModuleType, case: Case, array: Array, plan: Plan, path: Path) -> str:
    """Describe the fault of `whole` or `alike` for a file of coded elements, or return ""."""
    try:
        report = write(plugin, [case.array()], path)
    except WouldLose:
        return ""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    whole = None if report.says_something else plan.whole
    if whole is not None and whole(_elements_of(array)) != content:
        return "`whole` makes another file than `write`"
    return _problem_of_alike(plugin, path, content) if plugin.FORMAT.reads else ""


def _elements_of(array: Array) -> bytes:
    """The elements of an array, slowest axis first, little-endian."""
    values = np.asarray(array.data)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _problem_of_alike(plugin: ModuleType, path: Path, content: bytes) -> str:
    with plugin.read(Source(str(path))) as bundle:
        alike = bundle.alike() if bundle.alike is not None else None
        if alike is None:
            return ""
        expected = _elements_of(bundle.arrays[0])
    if content[: len(alike.begin)] != alike.begin or not content.endswith(alike.end):
        return "`alike` has other ends than the file"
    middle = content[len(alike.begin) : len(content) - len(alike.end)]
    if alike.elements(middle) != expected:
        return "`alike` finds other elements"
    odd = (b"", middle[:-1], middle + b"\0", bytes(len(middle)))
    if any(alike.elements(bad) is not None for bad in odd):
        return "`alike` finds elements where there are none"
    return ""


def _mismatch(plugin: ModuleType, path: Path, content: bytes) -> str:
    """Describe the fault of a file that claims `header_tells`; empty if there is none."""
    first, extent = _facts(plugin, path)
    if extent is None:
        return ""
    if extent.offset + extent.nbytes != len(content):
        return "`header_tells`, and the extent does not go on to the end of the file"
    for byte in (b"\0", b"\n", b"\r", b"\xff"):
        path.write_bytes(content[: extent.offset] + byte * extent.nbytes)
        if _facts(plugin, path)[0] != first:
            return f"`header_tells`, and elements of {byte!r} tell something else"
    return ""


def _facts(plugin: ModuleType, path: Path) -> tuple[Any, Any]:
    """Return the facts read from a file, and the extent of its elements if `header_tells`."""
    with plugin.read(Source(str(path))) as bundle:
        (array,) = bundle.arrays
        facts = array.element, array.dims, array.index_order, array.row_major, repr(array.meta)
        return (*facts, bundle.notes), array.extent if bundle.header_tells else None
