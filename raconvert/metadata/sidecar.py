"""The metadata sidecar: ``TARGET.yaml`` beside a file, or the same text as an RA trailer.

It begins with `describes`, what the file was when the sidecar was written: for RA the header's
type, dimensions, size and the CRC-32 of the first and last 64 KiB of the data and of samples
between; for other formats the size of the file and the same checksums of the whole file. A
sidecar that does not describe the file beside it is an error, never silently used.

After that: `index_order` (F; C only where the sidecar was asked for), `dtype` (what is inside user
elements, in the notation of the NPY header), and the fields of `Metadata`. Fields that differ
between the items of a stack lie in ``TARGET.items.jsonl``, one JSON object per line, whose size and
CRC-32 stand under `items_file`.

Beside files that are not .ra it is `complete`: it takes the place of the metadata in the file, and
`was` says what the array was before the format changed its form (`raconvert.metadata.roundtrip`).
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
MARK = b"describes:"  # how every sidecar begins; other YAML files of that name are left alone
TRAILER_MARK = b"# raconvert metadata\n"
ENDS_BYTES = 64 << 10  # how much of either end of the data the checksums cover


def path_of(path: str) -> str:
    """Return the path of the sidecar of a file."""
    return path + SUFFIX


def lies_beside(path: str) -> bool:
    """True if something lies where the sidecar of a file would."""
    try:
        return is_there(path_of(path))
    except RaconvertError as error:
        error.add_note(worded("to read without what may lie beside the file: `--meta ignore`"))
        raise


def is_ours(path: str) -> bool:
    """True if a file exists, is not a link, and is a sidecar."""
    if is_remote(path):
        return is_there(path) and _is_marked(path)
    return os.path.isfile(path) and not os.path.islink(path) and _is_marked(path)


def _is_marked(path: str) -> bool:
    return Source(path).head.startswith(MARK)


def overlooked(path: str) -> str | None:
    """The note about a YAML file in the place of a sidecar that says what it describes elsewhere.

    A sidecar begins so, or it is another file. None if there is nothing to say.
    """
    beside = path_of(path)
    if not lies_beside(path):
        return None
    head = Source(beside).head
    if head.startswith(MARK) or b"\n" + MARK not in head:
        return None
    return f"'{beside}' is not read as metadata: a sidecar begins with '{MARK.decode()}'"


def added(path: str, known: Container[str] = ()) -> str:
    """Return the path of a sidecar that is read with a file though it is not among `known`, or "".

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

    The per-item metadata is one of them only if the sidecar says so. A link in the place of a
    sidecar would be honoured, and is refused (`TargetExists`); with `overwrite` the link itself
    goes, never what it leads to.
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
    """True if a sidecar says that the per-item metadata beside it is of the same file."""
    if os.path.islink(items) or not os.path.isfile(items):
        return False
    source = Source(beside)
    if source.size > source.limits.document_bytes:
        return False
    text = source.read_at(0, source.size)
    if b"\nitems:" not in text:
        return False
    try:
        said = parse(text, beside, source.limits).get("items_file")
    except RaconvertError:
        return False
    return not isinstance(said, dict) or said.get("size") == os.path.getsize(items)


def items_path_of(path: str) -> str:
    """Return the path of the per-item metadata of a stack."""
    return path + ITEMS_SUFFIX


def text_of(fields: dict[str, Any], describes: dict[str, Any] | None = None) -> bytes:
    """Return the text of a sidecar (behind `describes`), or of a trailer."""
    if not describes:
        return dump(fields)
    begin = dump({DESCRIBES: describes})
    return begin + dump(fields, limit=DEFAULT.document_bytes - len(begin))


# What to write ---------------------------------------------------------------------------------


def describe(source: Source, data_range: DataRange | None = None) -> dict[str, Any]:
    """The fingerprint of a file: see the module's docstring. `data_range` is that of its plugin."""
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


# What to read ----------------------------------------------------------------------------------


def load(source: Source, data_range: DataRange | None = None) -> dict[str, Any] | None:
    """Return the fields of the sidecar beside a file, or None; a mismatch is `Corrupt`."""
    path = path_of(source.path)
    return load_from(source.at(path), source, data_range) if lies_beside(source.path) else None


def load_from(
    beside: Source, source: Source, data_range: DataRange | None = None
) -> dict[str, Any] | None:
    """Return the fields of a sidecar, which must describe `source`; None if it is not a sidecar."""
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
    known = parse_behind(dump({DESCRIBES: description}), text, path, beside.limits)
    if known is not None and DESCRIBES not in known:
        return known
    fields = parse(text, path, beside.limits)
    promised = fields.pop(DESCRIBES, None)
    promised = promised if isinstance(promised, dict) else {}
    if "crc32_samples" not in promised:  # of an older version
        description.pop("crc32_samples", None)
    odd = [name for name in description if promised.get(name) != description[name]]
    if odd:
        raise Corrupt(
            f"metadata sidecar '{path}' describes another file: {odd[0]} differs",
            path=source.path,
            expected=f"{odd[0]} {promised.get(odd[0])}",
            got=f"{description[odd[0]]}",
            remedy="read without it: `--meta ignore`; or remove the sidecar if it is left over",
        )
    return fields


def read_trailer(array: Array, source: Source) -> Array:
    """Apply the metadata in an RA trailer of ours to the array; leave any other trailer."""
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


# What the items of a stack have of their own: one line of JSON for each, beside the sidecar ------


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


def items_reader(source: Source, array: Array, said: Any) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads the per-item metadata of the stack in a source, line by line.

    `said` is what the sidecar says of it.
    """
    items = items_path_of(source.path)
    return items_of(source.at(items) if is_there(items) else None, items, array, said)


def items_of(
    beside: Source | None, path: str, array: Array, said: Any = None
) -> Callable[[], Iterator[dict[str, Any]]]:
    """Return a function that reads per-item metadata, line by line; None: it is missing."""
    if beside is None:
        raise Corrupt(
            "per-item metadata is missing, although the sidecar promises it",
            path=path,
            remedy="read without metadata: `--meta ignore`",
        )
    count = array.shape[0] if array.shape else 0
    facts = said if isinstance(said, dict) else {}
    if facts.get("size", beside.size) != beside.size:
        raise _other_items(path, f"{facts['size']} bytes", beside.size)
    return lambda: _read_items(beside, count, facts)


def _other_items(path: str, expected: str, got: object) -> Corrupt:
    return Corrupt("per-item metadata is not of this array", path=path, expected=expected, got=got)


def _read_items(beside: Source, count: int, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
