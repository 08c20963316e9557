"""The index of a file: every header parsed and checked, none of its data read.

Marks, counters and positions of all records are looked at, so that a cut or damaged file is found
when it is opened. What deviates from the rules by which this package writes goes into `own`, the
header's namespace in the metadata, so that the file can be written back byte for byte.

A header begins at a record of four characters, and all other records are longer. So a header that
contradicts itself is known to end at the next such record, and the others can be read; where marks
differ, the file ends too early or a name is damaged, nobody knows what else is lost: the whole file
is refused.
"""

from __future__ import annotations

from raconvert.errors import Changed, Corrupt, TooLarge, Unsupported
from raconvert.plugin import Axis

from .data import read_full, read_matrix, read_sparse, read_text, strings
from .header import BLANKS, DATA, LABELS, SECOND
from .records import Records
from .tables import (
    DOUBLES,
    FULL,
    INTEGER,
    MAX_RANK,
    NAME_CHARS,
    PLACEHOLDER,
    REAL,
    REAL_BARE,
    REAL_MATRIX,
    SIZES,
    SPARSE,
    TEXT,
    WORD_CHARS,
    set_names,
    strings_limit,
    text,
)
from .walk import Header, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.errors import RaconvertError
    from raconvert.plugin import Source

    from .records import Record

MAX_EMPTY = 100  # headers without records, which a file may have but hardly does
LABEL_MEMORY = 100  # bytes that one label takes as a Python text


def index(source: Source, framing: str, file: Any, *, skip_unknown: bool) -> list[Header]:
    """All headers of a file in its order; those that cannot be read have a `problem`.

    Headers of a type that nobody can read are among these, or are left out as headers whose `type`
    is neither empty nor one of `tables.TYPES`. `Corrupt` names header, record and byte.
    """
    walk = Walk(source, Records(source, file, framing))
    headers: list[Header] = []
    empty = 0
    while walk.offset < source.size:
        header = _header(walk, skip_unknown=skip_unknown)
        headers.append(header)
        empty += not header.type and header.problem is None
        if empty > MAX_EMPTY:
            raise Corrupt(
                f"more than {MAX_EMPTY} headers hold nothing",
                path=source.path,
                where=f"byte {header.offset}",
            )
    _check_names(source, headers)
    return headers


def _check_names(source: Source, headers: list[Header]) -> None:
    seen: dict[str, Header] = {}
    for header in headers:
        first = seen.setdefault(header.name, header)
        if first is not header:
            raise Corrupt(
                f"two headers are called '{header.name}'",
                path=source.path,
                where=f"bytes {first.offset} and {header.offset}",
                remedy="readers differ in which one they take; rename one of them",
            )


def _header(walk: Walk, *, skip_unknown: bool) -> Header:
    walk.header, walk.number = "", -1
    record = walk.peek()
    if record is None:
        raise AssertionError("only called before the end of the file")
    raw = text(record.head[:NAME_CHARS])
    if not _is_name(record):
        what = "a record that belongs to no header, or a damaged name of one"
        walk.refuse(what, record, f"a name of {NAME_CHARS} characters",
                    f"{record.nbytes} bytes, {raw!r}")  # fmt: skip
    walk.skip(record)
    header = Header(raw, record.offset)
    walk.header = header.name
    header.start = walk.offset
    if raw != header.name.ljust(NAME_CHARS):
        header.own["name"] = raw
    try:
        _records_of(walk, header, skip_unknown=skip_unknown)
    except Changed:
        raise
    except (Corrupt, TooLarge, Unsupported) as error:
        _pass_all(walk, header, error)
        header.problem = error
    header.stop = walk.offset
    header.records = walk.number
    return header


def _is_name(record: Record) -> bool:
    """True if the record can be the name of a header: four characters, printable, and no path."""
    raw = text(record.head[:NAME_CHARS])
    fine = raw.strip(" ") != "" and raw.isprintable() and "/" not in raw
    return bool(record.nbytes == NAME_CHARS and fine)


def _pass_all(walk: Walk, header: Header, problem: RaconvertError) -> None:
    """Go on to the name of the next header, or to the end; raise `problem` if neither is sure."""
    if walk.ended:
        raise problem
    walk.go_back(header.start)
    record = walk.peek()
    while record is not None and not _is_name(record):
        if record.nbytes < DATA.nbytes:  # the damaged name of another
            raise problem
        walk.skip(record)
        record = walk.peek()


def _records_of(walk: Walk, header: Header, *, skip_unknown: bool) -> None:
    """Pass all records behind the name of a header."""
    record = walk.peek()
    if record is None:
        walk.next("the second record of the last header")
    elif record.head[:4] != BLANKS and record.nbytes < SECOND.nbytes:
        return  # the name of the next one
    _second_record(walk, header)
    if header.type not in _BY_TYPE:
        _leave_out(walk, header, skip_unknown=skip_unknown)
        return
    _BY_TYPE[header.type](walk, header)
    if walk.more():
        extra = walk.next("data")
        walk.refuse("a record too many", extra, "the next header", f"{extra.nbytes} bytes")


def _second_record(walk: Walk, header: Header) -> None:
    record = walk.next("the second record")
    found, end = walk.fields(SECOND, record)
    header.type, header.storage, header.long = found.type, found.storage, found.long
    header.own["type"] = header.type
    if header.type not in SIZES:
        return
    real = header.type in (REAL, REAL_BARE)
    if header.storage not in ((FULL, SPARSE) if real else (FULL,)):
        allowed = f"{FULL} or {SPARSE}" if real else FULL
        walk.refuse(
            f"unknown storage of a {header.type} header", record, allowed, repr(header.storage)
        )
    if found.count != SIZES[header.type]:
        what = f"wrong number of sizes of a {header.type} header"
        walk.refuse(what, record, SIZES[header.type], found.count)
    if record.nbytes != end:
        walk.refuse("the second record has a wrong length", record, f"{end} bytes", record.nbytes)
    header.sizes = found.sizes
    if min(header.sizes) < 0:
        walk.refuse("negative size", record, "sizes of 0 and more", list(found.sizes))


def _leave_out(walk: Walk, header: Header, *, skip_unknown: bool) -> None:
    """Refuse a header of a type that nobody can read, or go on behind it."""
    if not skip_unknown:
        known = ", ".join(_BY_TYPE)
        double = " (8-byte reals, of which no sample is known)" if header.type in DOUBLES else ""
        raise Unsupported(
            f"header '{header.name}' has the data type {header.type!r}{double}",
            path=walk.source.path,
            where=f"byte {header.offset}",
            expected=known,
            remedy="leave such headers out with --in-opt unknown=skip",
        )
    while walk.more():
        walk.next("data")


# --- RE, RL: reals of up to seven dimensions ------------------------------------------------------


def _real(walk: Walk, header: Header) -> None:
    sizes = header.sizes
    if header.type == REAL:
        _label_record(walk, header)
    else:  # how many dimensions were meant is unknown: trailing ones of size 1 are dropped
        rank = max((n for n, size in enumerate(sizes, 1) if size != 1), default=0)
        header.dims = sizes[:rank]
    (read_full if header.storage == FULL else read_sparse)(walk, header)
    header.own["storage"] = "full" if header.storage == FULL else "sparse"


def _label_record(walk: Walk, header: Header) -> None:
    record = walk.next("the label record")
    found, end = walk.fields(LABELS, record)
    rank = found.rank
    if not 0 <= rank <= MAX_RANK or any(size != 1 for size in header.sizes[max(0, rank) :]):
        walk.refuse("wrong number of dimensions", record,
                    f"0 to {MAX_RANK}, all others of size 1", rank)  # fmt: skip
    header.dims = header.sizes[:rank]
    if not 0 <= found.extra <= MAX_RANK or record.nbytes != end:
        walk.refuse("the label record has a wrong length", record,
                    f"{end} bytes for {len(found.names)} sets and {found.extra} element names",
                    f"{record.nbytes} bytes")  # fmt: skip
    own = header.own
    own["coefficient"] = found.coefficient.rstrip(" ")
    if (found.first, found.second) != (1, 1):
        own["logical"] = [found.first, found.second]
    names = [name.rstrip(" ") for name in found.names]
    status = "".join(found.status)
    if any(found.numbers):
        own["numbers"] = list(found.numbers)
    if found.extra:
        own["elements"] = [word.rstrip(" ") for word in found.elements]
    if set(status) - set("kue"):
        walk.refuse("unknown status of a dimension", record, "k, u or e", repr(status))
    known = list(dict.fromkeys(n for n, letter in zip(names, status, strict=True) if letter == "k"))
    if found.lists != len(known):
        walk.refuse("wrong number of label lists", record, len(known), found.lists)
    _axes(walk, header, names, status)


def _axes(walk: Walk, header: Header, names: list[str], status: str) -> None:
    """Read the label lists and name the axes; keep what does not follow from those."""
    known: dict[str, list[str]] = {}
    explicit = iter(header.own.get("elements", ()))
    splits: list[int] = []
    axes = []
    for name, letter, size in zip(names, status, header.dims, strict=False):
        shown = None if PLACEHOLDER.fullmatch(name) else name
        if letter == "k":
            if name not in known:
                known[name] = _labels(walk, size, name, splits)
            labels: list[str] | None = known[name]
        else:
            labels = [word for word in [next(explicit, None)] if word] if letter == "e" else None
            labels = labels if labels and size == 1 else None
        if labels is not None and len(labels) != size:
            record = walk.peek()
            place = record.offset if record else walk.offset
            raise Corrupt(
                f"set '{name}' has {len(labels)} labels for a dimension of {size}",
                path=walk.source.path,
                where=f"header '{header.name}', byte {place}",
            )
        axes.append(Axis(name=shown, labels=labels))
    header.axes = axes if any(axis.to_dict() for axis in axes) else []
    if names != set_names([axis.name for axis in axes]):
        header.own["sets"] = names
    if status != "".join("u" if axis.labels is None else "k" for axis in axes):
        header.own["status"] = status
    if splits:
        header.own["label_split"] = max(splits)


def _labels(walk: Walk, size: int, name: str, splits: list[int]) -> list[str]:
    parts, _ = strings(walk, size, WORD_CHARS, f"the label list of set '{name}'")
    walk.label_count += size
    if walk.label_count * LABEL_MEMORY > walk.source.max_memory:
        raise TooLarge(
            f"labels need more than {walk.label_count * LABEL_MEMORY} bytes",
            path=walk.source.path,
            where=f"header '{walk.header}'",
            expected=f"at most {walk.source.max_memory} (--max-memory)",
        )
    pieces = [
        walk.records.bytes_at(offset, WORD_CHARS * count)
        for offset, count in zip(parts.offsets, parts.counts, strict=True)
    ]
    raw = b"".join(pieces)
    if parts.counts[0] != min(size, strings_limit(WORD_CHARS)):
        splits.append(parts.counts[0])
    found = walk.labels.get(raw)
    if found is None:
        found = walk.labels[raw] = _words(raw)
    else:
        walk.label_count -= size
    return found


def _words(raw: bytes) -> list[str]:
    """The words of 12 characters without the blanks behind them."""
    whole = text(raw)
    return [whole[i : i + WORD_CHARS].rstrip(" ") for i in range(0, len(whole), WORD_CHARS)]


_BY_TYPE: dict[str, Callable[[Walk, Header], None]] = {
    TEXT: read_text,
    INTEGER: read_matrix,
    REAL_MATRIX: read_matrix,
    REAL: _real,
    REAL_BARE: _real,
}
