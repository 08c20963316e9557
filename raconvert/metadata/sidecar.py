"""The metadata sidecar: ``TARGET.yaml`` beside a file, or the same text as an RA trailer.

It begins with `describes`, the state of the file when the sidecar was written: for RA the header's
type, dimensions, size and the CRC-32 of the first and last 64 KiB of the data and of samples
between; for other formats the size of the file and the same checksums of the whole file. A
sidecar that does not describe the file beside it is an error, never silently used.

After that: `index_order` (F; C only if the sidecar was asked for), `dtype` (the type inside user
elements, in the notation of the NPY header), and the fields of `Metadata`. Fields that differ
between the items of a stack lie in ``TARGET.items.jsonl``, one JSON object per line, whose size and
CRC-32 stand under `items_file`.

Beside files that are not .ra it is `complete`: it replaces the metadata in the file, and `was`
describes the array before the format changed its form (`raconvert.metadata.roundtrip`).
Beside containers the fields of each array stand under `arrays`, by name.
"""

from __future__ import annotations

import os

from raconvert.arrays.array import Array
from raconvert.arrays.metadata import trailer_of, without_trailer
from raconvert.errors import Corrupt, RaconvertError, worded
from raconvert.files.limits import DEFAULT
from raconvert.files.pairing import checksum
from raconvert.files.paths import check_target, is_remote, is_there
from raconvert.files.source import Extent, Source
from raconvert.metadata import ITEMS_SUFFIX, SUFFIX
from raconvert.metadata.json import parsed
from raconvert.metadata.roundtrip import apply
from raconvert.metadata.yaml import dump, parse, parse_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import Any

    DataRange = Callable[[Source], tuple[int, int, dict[str, Any]]]


DESCRIBES = "describes"
MARK = b"describes:"  # the beginning of every sidecar; other YAML files of that name are ignored
TRAILER_MARK = b"# raconvert metadata\n"
ENDS_BYTES = 64 << 10  # how much of either end of the data the checksums cover


def path_of(path: str) -> str:
    """Return the path of the sidecar of a file."""
    return path + SUFFIX


def lies_beside(path: str) -> bool:
    """True if a file exists at the path of the sidecar of a file."""
    try:
        return is_there(path_of(path))
    except RaconvertError as error:
        error.add_note(worded("to read without what may lie beside the file: `--meta ignore`"))
        raise


def is_ours(path: str) -> bool:
    """True if a path is a sidecar, and not a link."""
    if is_remote(path):
        return is_there(path) and _is_marked(path)
    return os.path.isfile(path) and not os.path.islink(path) and _is_marked(path)


def _is_marked(path: str) -> bool:
    """True if a file begins as a sidecar does."""
    return Source(path).head.startswith(MARK)


def overlooked(path: str) -> str | None:
    """Return a note about an ignored YAML file at the path of a sidecar, or None.

    It has the field `describes`, but not at its beginning: maybe a sidecar that was edited.
    """
    beside = path_of(path)
    if not lies_beside(path):
        return None
    head = Source(beside).head
    if head.startswith(MARK) or b"\n" + MARK not in head:
        return None
    return f"'{beside}' is not read as metadata: a sidecar begins with '{MARK.decode()}'"


def added(path: str, known: Container[str] = ()) -> str:
    """Return the path of the sidecar that is read with a file, unless it is among `known`; else "".

    A sidecar that cannot be opened counts: the file cannot be read then, or not as it was.
    """
    beside = path_of(path)
    if beside in known:
        return ""
    try:
        return beside if is_there(beside) and _is_marked(beside) else ""
    except RaconvertError:
        return beside


def left_over(path: str, *, overwrite: bool) -> list[str]:
    """Return the metadata files of the old file at a path, to be removed or replaced with it.

    The per-item metadata is one of them only if the sidecar lists it. A link at the path of the
    sidecar is refused (`TargetExists`), since it would be read as one; with `overwrite` the link
    itself is removed, never its target.
    """
    beside = path_of(path)
    if not os.path.lexists(beside) or not os.path.isfile(beside) or not _is_marked(beside):
        return []
    if os.path.islink(beside):
        check_target(beside, overwrite=overwrite)
        return [beside]
    items = items_path_of(path)
    return [beside, items] if os.path.lexists(items) and _has_items(beside, items) else [beside]


def _has_items(beside: str, items: str) -> bool:
    """True if a sidecar lists the per-item metadata beside it, by its size."""
    if os.path.islink(items) or not os.path.isfile(items):
        return False
    source = Source(beside)
    if source.size > source.limits.document_bytes:
        return False
    text = source.read_at(0, source.size)
    if b"\nitems:" not in text:
        return False
    try:
        facts = parse(text, beside, source.limits).get("items_file")
    except RaconvertError:
        return False
    return not isinstance(facts, dict) or facts.get("size") == os.path.getsize(items)


def items_path_of(path: str) -> str:
    """Return the path of the per-item metadata of a stack."""
    return path + ITEMS_SUFFIX


def text_of(fields: dict[str, Any], describes: dict[str, Any] | None = None) -> bytes:
    """Return the text of a sidecar, which begins with `describes`, or of a trailer without it."""
    if not describes:
        return dump(fields)
    begin = dump({DESCRIBES: describes})
    return begin + dump(fields, limit=DEFAULT.document_bytes - len(begin))


# Writing ------------------------------------------------------------------------------------------


def describe(source: Source, data_range: DataRange | None = None) -> dict[str, Any]:
    """Return the fingerprint of a file (the field `describes`).

    `data_range` is the function of its plugin that returns the range of the data and a description.
    """
    from zlib import crc32

    start, stop, description = data_range(source) if data_range else (0, source.size, {})
    description = description or {"size": source.size}
    first = source.read_at(start, min(ENDS_BYTES, stop - start))
    description["crc32_first"] = description["crc32_last"] = f"{crc32(first):08x}"
    if stop - start > ENDS_BYTES:
        last = source.read_at(stop - ENDS_BYTES, ENDS_BYTES)
        description["crc32_last"] = f"{crc32(last):08x}"
    if stop - start > 2 * ENDS_BYTES:
        description["crc32_samples"] = checksum(source, start, stop)
    return description


# Reading ------------------------------------------------------------------------------------------


def load(source: Source, data_range: DataRange | None = None) -> dict[str, Any] | None:
    """Return the fields of the sidecar beside a file, or None; a mismatch is `Corrupt`."""
    path = path_of(source.path)
    return load_from(source.at(path), source, data_range) if lies_beside(source.path) else None


def load_from(
    beside: Source, source: Source, data_range: DataRange | None = None
) -> dict[str, Any] | None:
    """Return the fields of a sidecar; None if it is not one.

    Raises `Corrupt` if it describes another file than `source`.
    """
    path = beside.path
    if beside.size > beside.limits.document_bytes:
        raise Corrupt(
            "metadata sidecar is too large",
            path=path,
            expected=f"at most {beside.limits.document_bytes} bytes",
            got=beside.size,
            remedy="read without it: `--meta ignore`",
        )
    if not beside.head.startswith(MARK):
        return None
    text = beside.read_at(0, beside.size)
    description = describe(source, data_range)
    # The usual sidecar begins with the very text that is written today.
    rest = parse_behind(dump({DESCRIBES: description}), text, path, beside.limits)
    if rest is not None and DESCRIBES not in rest:
        return rest
    fields = parse(text, path, beside.limits)
    promised = fields.pop(DESCRIBES, None)
    promised = promised if isinstance(promised, dict) else {}
    if "crc32_samples" not in promised:  # a sidecar of an older version
        description.pop("crc32_samples", None)
    differing = [name for name in description if promised.get(name) != description[name]]
    if differing:
        raise Corrupt(
            f"metadata sidecar '{path}' describes another file: {differing[0]} differs",
            path=source.path,
            expected=f"{differing[0]} {promised.get(differing[0])}",
            got=f"{description[differing[0]]}",
            remedy="read without it: `--meta ignore`; or remove the sidecar if it is left over",
        )
    return fields


def read_trailer(array: Array, source: Source) -> Array:
    """Return an array with the metadata in a trailer of ours; with any other trailer unchanged."""
    trailer = trailer_of(array.meta)
    if not isinstance(trailer, Extent):
        return array
    if source.read_at(trailer.offset, len(TRAILER_MARK)) != TRAILER_MARK:
        return array
    if trailer.nbytes > source.limits.document_bytes:
        raise Corrupt(
            "metadata trailer is too large",
            path=source.path,
            where=f"byte {trailer.offset}",
            expected=f"at most {source.limits.document_bytes} bytes",
            got=trailer.nbytes,
            remedy="read without it: `--meta ignore`",
        )
    array.meta = without_trailer(array.meta)
    text = source.read_exact(trailer.offset, trailer.nbytes, "the YAML trailer")
    fields = parse(text, source.path, source.limits)
    return apply(fields, array, source.path, source.limits)


# Metadata of the single items of a stack: one line of JSON for each, beside the sidecar ----------


def items_lines(items: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the lines of ``TARGET.items.jsonl``."""
    import json

    for item in items:
        try:
            line = json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # lone surrogates, which JSON can only escape
            line = json.dumps(item, separators=(",", ":")).encode()
        yield line + b"\n"


def items_facts(items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the fingerprint of ``TARGET.items.jsonl`` for the sidecar: its size and CRC-32."""
    from zlib import crc32

    size = state = 0
    for line in items_lines(items):
        size += len(line)
        state = crc32(line, state)
    return {"size": size, "crc32": f"{state:08x}"}


def items_reader(
    source: Source, array: Array, facts: Any
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads the per-item metadata of the stack in a source, line by line.

    `facts` is the fingerprint in the sidecar, `items_facts`.
    """
    items = items_path_of(source.path)
    return items_of(source.at(items) if is_there(items) else None, items, array, facts)


def items_of(
    beside: Source | None, path: str, array: Array, promised: Any = None
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads per-item metadata from the file `beside`, line by line.

    Raises `Corrupt` if the file is missing (None), or has another size than `promised`.
    """
    if beside is None:
        raise Corrupt(
            "per-item metadata is missing, although the sidecar promises it",
            path=path,
            remedy="read without metadata: `--meta ignore`",
        )
    count = array.shape[0] if array.shape else 0
    facts = promised if isinstance(promised, dict) else {}
    if facts.get("size", beside.size) != beside.size:
        raise _other_items(path, f"{facts['size']} bytes", beside.size)
    return lambda: _read_items(beside, count, facts)


def _other_items(path: str, expected: str, got: object) -> Corrupt:
    return Corrupt("per-item metadata is not of this array", path=path, expected=expected, got=got)


def _read_items(beside: Source, count: int, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items; `Corrupt` at the end if they are not `count`, or have another CRC-32."""
    from io import BufferedReader
    from zlib import crc32

    number = state = 0
    path = beside.path
    with BufferedReader(beside.open()) as file:
        lines = iter(lambda: file.readline(beside.limits.document_bytes), b"")
        for number, line in enumerate(lines, 1):
            state = crc32(line, state)
            try:
                item = parsed(line, beside.max_memory, f"'{path}': line {number}")
            except ValueError as error:
                raise Corrupt(
                    f"per-item metadata is not JSON: {error}", path=path, where=f"line {number}"
                ) from error
            if not isinstance(item, dict):
                raise Corrupt(
                    "per-item metadata is not a JSON object", path=path, where=f"line {number}"
                )
            yield item
    if number != count:
        raise _other_items(path, f"{count} lines", number)
    if facts.get("crc32", f"{state:08x}") != f"{state:08x}":
        raise _other_items(path, f"CRC-32 {facts['crc32']}", f"{state:08x}")
