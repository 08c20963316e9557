"""Checks of `Plan.header` and `Bundle.alike`: a header decides everything but the elements."""

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
    from raconvert.arrays.bundle import Alike
    from raconvert.testing.cases import Case


def check_headers_tell(plugin: ModuleType) -> None:
    """`Plan.header` and `Plan.whole` make what `Plan.write` writes; `Bundle.alike` decodes right.

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
    """Write a case; return a description of the fault of its header, or ""."""
    array = adapted(case.array(), row_of(plugin), Settings())
    renamed = array.replace(name="other")
    plans = [Plugin(plugin).plan(Bundle([written])) for written in (array, renamed)]
    if any(fit.outcome == REFUSED for fit in plans[0].fits):
        return ""
    header, header_renamed = (plan.header() if plan.header else None for plan in plans)
    if header != header_renamed:
        return "the header depends on the name of the array"
    try:
        report = write(plugin, [case.array()], path)
    except WouldLose:
        return ""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    if header is not None:
        if content[: len(header)] != header or len(content) != len(header) + array.nbytes:
            return "the file is not the header and the elements"
    elif not report.says_something and _makes_another(plans[0], array, content):
        return "`whole` makes another file than `write`"
    return _problem_of_alike(plugin, path, content) if plugin.FORMAT.reads else ""


def _makes_another(plan: Plan, array: Array, content: bytes) -> bool:
    """True if `Plan.whole` makes another file than the content."""
    return plan.whole is not None and plan.whole(_elements_of(array)) != content


def _elements_of(array: Array) -> bytes:
    """Return the elements of an array, slowest axis first, as RA has them: little-endian."""
    values = np.asarray(array.data)
    if array.element.kind == "user":
        return values.tobytes()
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _problem_of_alike(plugin: ModuleType, path: Path, content: bytes) -> str:
    """Describe the fault of `alike` for files that begin and end as this one, or return ""."""
    with plugin.read(Source(str(path))) as bundle:
        alike = bundle.alike() if bundle.alike is not None else None
        if alike is None:
            return ""
        expected = _elements_of(bundle.arrays[0])
    begin, end = alike.begin, alike.end
    if not content.startswith(begin) or not content.endswith(end):
        return "`alike` has other ends than the file"
    middle = content[len(begin) : len(content) - len(end)]
    if alike.elements(middle) != expected:
        return "`alike` finds other elements"
    wrong = {b"", middle[:-1], middle + b"\0"} - {middle}
    wrong |= {bytes(len(middle))} if end else set()  # coded elements are not all zeros
    if any(alike.elements(data) is not None for data in wrong):
        return "`alike` finds elements where there are none"
    return _mismatch(plugin, path, content, alike)


def _mismatch(plugin: ModuleType, path: Path, content: bytes, alike: Alike) -> str:
    """Describe the fault of an `alike` that accepts bytes by which the file means another array."""
    first, begin, end = _facts(plugin, path), alike.begin, alike.end
    nbytes = len(content) - len(begin) - len(end)
    for byte in (b"\0", b"\n", b"\r", b"\xff"):
        middle = byte * nbytes
        if alike.elements(middle) is None:
            continue
        path.write_bytes(begin + middle + end)
        if _facts(plugin, path) != first:
            return f"`alike` finds elements in {byte!r}, and the file tells something else"
    return ""


def _facts(plugin: ModuleType, path: Path) -> tuple[Any, ...]:
    """Return the facts read from a file, without its elements."""
    with plugin.read(Source(str(path))) as bundle:
        (array,) = bundle.arrays
        facts = array.element, array.dims, array.index_order, array.row_major, repr(array.meta)
        return *facts, bundle.notes
