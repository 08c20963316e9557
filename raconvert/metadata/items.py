"""What the items of a stack have of their own: one line of JSON for each, beside the sidecar."""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.files.places import is_there
from raconvert.files.source import Source
from raconvert.metadata.json import parsed
from raconvert.metadata.sidecar import items_path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from raconvert.arrays.array import Array


def items_lines(items: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Return the lines of ``TARGET.items.jsonl``."""
    import json

    for item in items:
        yield json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def items_facts(items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The fingerprint of the lines of ``TARGET.items.jsonl``."""
    from zlib import crc32

    size = state = 0
    for line in items_lines(items):
        size += len(line)
        state = crc32(line, state)
    return {"size": size, "crc32": f"{state:08x}"}


def items_reader(path: str, array: Array, said: Any) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads the per-item metadata of the stack at `path`, line by line.

    `said` is what the sidecar says of it.
    """
    place = items_path_of(path)
    return items_of(Source(place) if is_there(place) else None, place, array, said)


def items_of(
    beside: Source | None, place: str, array: Array, said: Any = None
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads per-item metadata, line by line; None: it is missing."""
    if beside is None:
        raise Corrupt(
            "per-item metadata is missing, although the sidecar promises it",
            path=place,
            remedy="read without metadata: `--meta ignore`",
        )
    count = array.shape[0] if array.shape else 0
    facts = said if isinstance(said, dict) else {}
    if facts.get("size", beside.size) != beside.size:
        raise _other_items(place, f"{facts['size']} bytes", beside.size)
    return lambda: _read_items(beside, count, facts)


def _other_items(place: str, expected: str, got: object) -> Corrupt:
    return Corrupt("per-item metadata is not of this array", path=place, expected=expected, got=got)


def _read_items(beside: Source, count: int, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from io import BufferedReader
    from zlib import crc32

    number = state = 0
    place = beside.path
    with BufferedReader(beside.open()) as file:
        lines = iter(lambda: file.readline(beside.limits.document), b"")
        for number, line in enumerate(lines, 1):
            state = crc32(line, state)
            try:
                item = parsed(line, beside.max_memory, f"'{place}': line {number}")
            except ValueError as error:
                raise Corrupt(
                    f"per-item metadata is not JSON: {error}", path=place, where=f"line {number}"
                ) from error
            if not isinstance(item, dict):
                raise Corrupt(
                    "per-item metadata is not a JSON object", path=place, where=f"line {number}"
                )
            yield item
    if number != count:
        raise _other_items(place, f"{count} lines", number)
    if facts.get("crc32", f"{state:08x}") != f"{state:08x}":
        raise _other_items(place, f"CRC-32 {facts['crc32']}", f"{state:08x}")
