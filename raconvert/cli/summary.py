"""Many files in few lines: what kinds there are, how many of each, and what failed."""

from __future__ import annotations

from raconvert.arrays.dtypes import few_lengths, size
from raconvert.cli.console import one_line
from raconvert.errors import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.errors import RaconvertError

_MOST_KINDS = 5
_MOST_FAILURES = 2  # reasons, each with its first file


class Summary:
    """What `info` found in many files."""

    def __init__(self) -> None:
        self._count = self._stored = self._nbytes = 0
        self._folders: set[str] = set()
        self._kinds: dict[tuple[str, str], list[tuple[int, ...]]] = {}
        self._failures: dict[str, list[str]] = {}

    def add(self, path: str, facts: dict[str, Any]) -> int:
        """Count a file; the code is 0."""
        self._count += 1
        self._folders.add(path.rpartition("/")[0])
        self._stored += facts["stored_bytes"] or 0
        self._nbytes += facts["nbytes"]
        arrays = facts["arrays"]
        if facts["container"]:
            shapes, text = [(len(arrays),)], ""
        else:
            shapes, text = [tuple(array["shape"]) for array in arrays], arrays[0]["type"]
        self._kinds.setdefault((facts["format"], text), []).extend(shapes)
        return 0

    def add_failure(self, path: str, error: RaconvertError) -> int:
        """Count a file that cannot be read; return its exit code."""
        self._count += 1
        self._failures.setdefault(error.what, []).append(path)
        return error.exit_code

    def lines(self, name: str) -> Iterator[str]:
        """Yield at most ten lines about the files, those of most files first."""
        folders = f" in {len(self._folders)} folders" if len(self._folders) > 1 else ""
        yield (
            f"{one_line(name)}   {counted(self._count, 'file')}{folders}   "
            f"{size(self._stored)} stored, {size(self._nbytes)} of elements"
        )
        kinds = sorted(self._kinds.items(), key=lambda kind: -len(kind[1]))
        width = len(str(self._count))
        for (form, text), shapes in kinds[:_MOST_KINDS]:
            yield f"  {len(shapes):>{width}} {form}   {_shapes(text, shapes)}"
        if rest := kinds[_MOST_KINDS:]:
            files = sum(len(shapes) for _, shapes in rest)
            yield f"  {files:>{width}} of {len(rest)} other kinds"
        failures = sorted(self._failures.items(), key=lambda failure: -len(failure[1]))
        for what, paths in failures[:_MOST_FAILURES]:
            yield one_line(f"  {len(paths):>{width}} failed, such as {paths[0]}: {what}")
        if others := failures[_MOST_FAILURES:]:
            files = sum(len(paths) for _, paths in others)
            yield f"  {files:>{width}} failed for {len(others)} other reasons"
        yield "-s shows one line per array, -v everything"


def _shapes(text: str, shapes: list[tuple[int, ...]]) -> str:
    """What the files of a kind hold: the one shape, or the range of them."""
    low, high = min(shapes), max(shapes)
    if not text:
        few, most = low[0], high[0]
        return f"{few} array{'s' if few != 1 else ''}" if few == most else f"{few} to {most} arrays"
    if low == high:
        return f"{text}   {_tuple(low)}"
    return f"{text}   {len(set(shapes))} shapes, {_tuple(low)} to {_tuple(high)}"


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({few_lengths(shape, ', ')}{',' if len(shape) == 1 else ''})"
