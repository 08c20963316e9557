"""A HAR file as a bundle: an array for every header, housekeeping in the namespace of the file."""

from __future__ import annotations

from functools import partial

from raconvert.errors import Corrupt, NotSupportedYet, listed
from raconvert.plugin import Array, Axis, Bundle, Element, Metadata, Source, element

from .index import index
from .records import BIG, LITTLE, Records, framing_of
from .resume import framing_of_damaged
from .solution import Solution, is_solution
from .tables import FULL, INTEGER, NAMESPACE, SPARSE, TEXT, TYPES, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .solution import Variable
    from .walk import Header

GROUP = "headers"  # group of the headers that a solution file has beside its variables


def read_bundle(
    source: Source, *, show_housekeeping: bool, skip_unknown: bool, decode: bool
) -> Bundle:
    """The headers of a file in its order, data not yet read; see `read` of the plugin."""
    framing = framing_of(source.head) or framing_of_damaged(source)
    if framing is None:
        raise _foreign(source)
    notes: list[str] = []
    with source.open() as file:
        headers = index(source, framing, file, skip_unknown=skip_unknown, notes=notes)
        notes += _alike(headers)
        shown, hidden = _split(
            source, file, framing, headers, notes, show_housekeeping=show_housekeeping
        )
        solution = None
        if decode and is_solution(shown):
            solution = Solution(source, framing, file, shown)
            variables, lines = solution.variables(), solution.lines()
    space: dict[str, Any] = {}
    if framing != LITTLE:
        space["framing"] = framing
    if hidden:
        space["hidden"] = hidden
    if show_housekeeping:
        space["housekeeping"] = "shown"
    arrays = [_array(source, framing, header) for header in shown]
    formats = {NAMESPACE: space} if space else {}
    if solution is None:
        return Bundle(arrays, formats=formats, notes=notes)
    for entry in hidden:
        entry["before"] = 0
    if unknown := [variable.name for variable in variables if variable.unknown]:
        notes.append(f"not all results of {listed(unknown)} are there: the others are NaN")
    return Bundle(
        _solved(source, framing, solution, variables, arrays),
        attributes={"description": lines} if lines else {},
        formats=formats,
        notes=notes,
    )


def _split(
    source: Source, file: Any, framing: str, headers: list[Header], notes: list[str], *,
    show_housekeeping: bool,
) -> tuple[list[Header], list[dict[str, Any]]]:  # fmt: skip
    """The headers that become arrays, and entries of the others for the namespace of the file."""
    shown: list[Header] = []
    hidden = []
    for header in headers:
        if header.problem is not None:
            shown.append(header)
            continue
        if header.type not in TYPES:
            entry = _left_out(header, notes)
        elif header.hidden and not show_housekeeping:
            entry = _housekeeping(source, file, framing, header, notes)
        else:
            shown.append(header)
            continue
        if entry is not None:
            hidden.append({"before": len(shown), **entry})
    return shown, hidden


def _solved(
    source: Source, framing: str, solution: Solution, variables: list[Variable], arrays: list[Array]
) -> list[Array]:
    """The variables of a solution file, then the headers that do not hold their values."""
    real = element("float", 4, ">" if framing == BIG else "<")
    used = {
        piece.header for variable in variables for pieces in variable.results for piece in pieces
    }
    solved = [_variable(source, solution, variable, real) for variable in variables]
    for array in arrays:
        if array.name not in used - {"SHOC"}:
            array.name = f"{GROUP}/{array.name}"
            solved.append(array)
    return solved


def _variable(source: Source, solution: Solution, variable: Variable, real: Element) -> Array:
    axes = [Axis(name=name, labels=labels) for name, _, labels in variable.sets]
    return Array(
        real,
        tuple(size for _, size, _ in variable.sets),
        name=variable.name,
        index_order="F",
        meta=Metadata(description=variable.label or None, units=variable.units, axes=axes),
        data=partial(_results, source, solution.headers, variable, real),
        storage={"solution": variable.closure},
    )


def _results(source: Source, headers: dict[str, Header], variable: Variable, real: Element) -> Any:
    from .solution import Results

    return Results(source, headers, variable, real)


def _alike(headers: list[Header]) -> list[str]:
    """Notes on names that are one name to GEMPACK, which ignores case."""
    seen: dict[str, str] = {}
    notes = []
    for header in headers:
        first = seen.setdefault(header.name.upper(), header.name)
        if first != header.name:
            notes.append(f"headers '{first}' and '{header.name}' are one name to GEMPACK")
    return notes


def _foreign(source: Source) -> Corrupt | NotSupportedYet:
    """The error for a file that is not HAR; it names JSON and plain text."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"{", b"["):
        archive = b'"log"' in head
        return NotSupportedYet(
            f"is {'an HTTP archive of a browser' if archive else 'a file'} in JSON, "
            "which only shares the suffix with GEMPACK",
            path=source.path,
            where="byte 0",
        )
    if head and all(32 <= byte < 127 or byte in b"\t\r\n\f\x1a" for byte in head):
        return NotSupportedYet(
            "is a text file; GEMPACK's text form of header arrays is not supported yet",
            path=source.path,
            where="byte 0",
            remedy="turn it into a header array file first, with GEMPACK's TXT2HAR or ViewHAR",
        )
    return Corrupt(
        "is not a GEMPACK header array file",
        path=source.path,
        where="byte 0",
        expected="a record of 4 bytes, the name of a header (marks 04000000, 00000004 or fd10)",
        got=source.head[:12].hex() or "an empty file",
    )


def _array(source: Source, framing: str, header: Header) -> Array:
    if header.problem is not None:
        return Array.unreadable(header.name, header.problem)
    order = ">" if framing == BIG else "<"
    kind = header.type
    if kind == TEXT:
        width = header.sizes[1]
        stored = Element("user", width, "|", f"|S{width}")
    else:
        stored = element("int" if kind == INTEGER else "float", 4, order)
    array = Array(
        stored,
        header.dims,
        name=header.name,
        index_order="F",
        meta=Metadata(
            description=header.long.rstrip(" ") or None,
            axes=header.axes,
            formats={NAMESPACE: header.own},
        ),
        storage={
            "type": kind,
            "storage": header.storage,
            "records": header.records,
            "stored_bytes": header.stop - header.start,
        },
    )
    parts = header.parts
    in_order = header.storage == FULL and parts.boxes is None and kind != TEXT
    if in_order and len(parts.offsets) == 1 and array.nbytes:
        offset = parts.offsets[0] + source.base
        swap = 4 if stored.order == ">" else 1
        array.extent = source.extent(offset, array.nbytes, swap)
        return array
    return array.replace(data=partial(_values, source, header, stored))


def _values(source: Source, header: Header, stored: Element) -> Any:
    from .values import Sparse, Stored, Texts

    if header.storage == SPARSE:
        return Sparse(source, header, stored)
    return (Texts if header.type == TEXT else Stored)(source, header, stored)


def _left_out(header: Header, notes: list[str]) -> dict[str, Any] | None:
    """Note a header that is left out; the entry of an empty one, None for an unknown type."""
    if header.type:
        notes.append(f"header '{header.name}' was left out: unknown data type {header.type!r}")
        return None
    notes.append(f"header '{header.name}' at byte {header.offset} has no data and was left out")
    return {"name": header.raw}


def _housekeeping(
    source: Source, file: Any, framing: str, header: Header, notes: list[str]
) -> dict[str, Any] | None:
    """The entry of a hidden header: its lines if it is text, else its records; None if too long."""
    entry = {"name": header.name, **header.own, "long": header.long.rstrip(" ")}
    records = Records(source, file, framing)
    most = source.limits.text_bytes if header.type == TEXT else source.limits.raw_record_bytes
    if header.stop - header.start > most:
        notes.append(f"housekeeping header '{header.name}' is too long to be kept: left out")
        return None
    if header.type == TEXT:
        width = header.sizes[1]
        lines = []
        for offset, count in zip(header.parts.offsets, header.parts.counts, strict=True):
            raw = text(records.bytes_at(offset, count * width))
            lines += [raw[i : i + width].rstrip(" ") for i in range(0, len(raw), width)]
        return {**entry, "width": width, "text": lines}
    payloads = []
    offset = header.start
    while offset < header.stop:
        record = records.at(offset, f"header '{header.name}'")
        payloads.append(records.bytes_at(record.start, record.nbytes))
        offset = record.end
    return {"name": header.raw, "records": payloads}
