"""The index of a file: every header parsed and checked, none of its data read.

Marks, counters and positions of all records are looked at, so that a cut or damaged file is found
when it is opened. What deviates from the rules by which this package writes goes into `own`, the
header's namespace in the metadata, so that the file can be written back byte for byte.

A header begins at a record of four characters, and all other records are longer. So a header that
contradicts itself ends at the next such record, and the others can be read. `resume` finds the next
record behind one that is damaged itself. A header whose name is damaged is an entry called by its
offset.
"""

from __future__ import annotations

from raconvert.errors import Changed, Corrupt, TooLarge, Unsupported
from raconvert.plugin import Axis

from .data import read_full, read_matrix, read_sparse, read_text, strings
from .header import LABELS, SECOND
from .metadata import set_names
from .records import Records
from .resume import Resume, is_name, unreadable_part
from .tables import (
    DOUBLES,
    FULL,
    INTEGER,
    LABEL_MEMORY,
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
    strings_limit,
    text,
)
from .walk import Header, Walk, continues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Source


def index(
    source: Source, framing: str, file: Any, *, skip_unknown: bool, notes: list[str]
) -> list[Header]:
    """Parse all headers of a file in its order; those that cannot be read have a `problem`.

    A header of an unknown type has a `problem`, too; with `skip_unknown` it has only a `type` that
    is neither empty nor one of `tables.TYPES`. Raises the first problem if every header has one.
    """
    walk = Walk(source, Records(source, file, framing))
    resume = Resume(walk)
    headers: list[Header] = []
    empty = unnamed = 0
    while walk.offset < source.size:
        if unnamed == source.limits.damaged_names:
            resume.lose(walk.offset, source.size)
        else:
            headers.append(_header(walk, resume, skip_unknown=skip_unknown))
            empty += not headers[-1].type and headers[-1].problem is None
            unnamed += not walk.header
        headers += resume.lost
        resume.lost.clear()
        if empty > source.limits.empty_headers:
            raise Corrupt(
                f"more than {source.limits.empty_headers} headers hold nothing",
                path=source.path,
                where=f"byte {headers[-1].offset}",
            )
    notes += resume.notes
    return _distinct(source, headers)


def _distinct(source: Source, headers: list[Header]) -> list[Header]:
    """The first header of each name; it gets a `problem` if others repeat its name."""
    seen: dict[str, Header] = {}
    for header in headers:
        first = seen.setdefault(header.name, header)
        if first is not header:
            first.problem = Corrupt(
                f"two headers are called '{header.name}'",
                path=source.path,
                where=f"bytes {first.offset} and {header.offset}",
                remedy="readers differ in which one they take; rename one of them",
            )
    distinct = list(seen.values())
    problems = [header.problem for header in distinct]
    if problems and None not in problems:
        raise problems[0]  # type: ignore[misc]
    return distinct


def _header(walk: Walk, resume: Resume, *, skip_unknown: bool) -> Header:
    """Parse the header at the offset of the walk; damage becomes its `problem`."""
    walk.header, walk.number = "", -1
    offset = start = walk.offset
    try:
        record = walk.peek()
        if record is None:
            raise AssertionError("only called before the end of the file")
        raw = text(record.head[:NAME_CHARS])
        if not is_name(record):
            start = record.end
            what = "a record that belongs to no header, or a damaged name of one"
            walk.refuse(what, record, f"a name of {NAME_CHARS} characters",
                        f"{record.nbytes} bytes, {raw!r}")  # fmt: skip
    except Corrupt as error:
        resume.pass_all(start)
        return unreadable_part(f"byte {offset}", offset, error)
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
        resume.pass_all(header.start)
        header.problem = error
    header.stop = walk.offset
    header.records = walk.number
    return header


def _records_of(walk: Walk, header: Header, *, skip_unknown: bool) -> None:
    """Parse all records of a header behind its name."""
    record = walk.peek()
    if record is None:
        walk.next("the second record of the last header")
    elif not continues(record) and record.nbytes < SECOND.nbytes:
        return  # it is the name of the next header
    _second_record(walk, header)
    if header.type not in _BY_TYPE:
        _leave_out(walk, header, skip_unknown=skip_unknown)
        return
    _BY_TYPE[header.type](walk, header)
    try:
        more = walk.more()
    except Corrupt:  # most likely the name of the next header: this one is whole
        return
    if more:
        extra = walk.next("data")
        walk.refuse("a record too many", extra, "the next header", f"{extra.nbytes} bytes")


def _second_record(walk: Walk, header: Header) -> None:
    record = walk.next("the second record")
    fields, end = walk.fields(SECOND, record)
    header.type, header.storage, header.long = fields.type, fields.storage, fields.long
    header.own["type"] = header.type
    if header.type not in SIZES:
        return
    real = header.type in (REAL, REAL_BARE)
    if header.storage not in ((FULL, SPARSE) if real else (FULL,)):
        allowed = f"{FULL} or {SPARSE}" if real else FULL
        walk.refuse(
            f"unknown storage of a {header.type} header", record, allowed, repr(header.storage)
        )
    if fields.count != SIZES[header.type]:
        what = f"wrong number of sizes of a {header.type} header"
        walk.refuse(what, record, SIZES[header.type], fields.count)
    if record.nbytes != end:
        walk.refuse("the second record has a wrong length", record, f"{end} bytes", record.nbytes)
    header.sizes = fields.sizes
    if min(header.sizes) < 0:
        walk.refuse("negative size", record, "sizes of 0 and more", list(fields.sizes))


def _leave_out(walk: Walk, header: Header, *, skip_unknown: bool) -> None:
    """Pass a header of an unknown type. Raises `Unsupported` unless `skip_unknown`."""
    if not skip_unknown:
        double = " (8-byte reals, of which no sample is known)" if header.type in DOUBLES else ""
        raise Unsupported(
            f"header '{header.name}' has the data type {header.type!r}{double}",
            path=walk.source.path,
            where=f"byte {header.offset}",
            expected=", ".join(_BY_TYPE),
            remedy="leave such headers out with `--in-opt unknown=skip`",
        )
    while walk.more():
        walk.next("data")


# --- RE, RL: reals of up to seven dimensions ------------------------------------------------------


def _real(walk: Walk, header: Header) -> None:
    sizes = header.sizes
    if header.type == REAL:
        _label_record(walk, header)
    else:  # the rank is not stored: trailing dimensions of size 1 are dropped
        rank = max((n for n, size in enumerate(sizes, 1) if size != 1), default=0)
        header.dims = sizes[:rank]
    (read_full if header.storage == FULL else read_sparse)(walk, header)
    header.own["storage"] = "full" if header.storage == FULL else "sparse"


def _label_record(walk: Walk, header: Header) -> None:
    record = walk.next("the label record")
    fields, end = walk.fields(LABELS, record)
    rank = fields.rank
    if not 0 <= rank <= MAX_RANK or set(header.sizes[max(0, rank) :]) - {1}:
        walk.refuse("wrong number of dimensions", record,
                    f"0 to {MAX_RANK}, all others of size 1", rank)  # fmt: skip
    header.dims = header.sizes[:rank]
    if not 0 <= fields.extra <= MAX_RANK or record.nbytes != end:
        walk.refuse("the label record has a wrong length", record,
                    f"{end} bytes for {len(fields.names)} sets and {fields.extra} element names",
                    f"{record.nbytes} bytes")  # fmt: skip
    own = header.own
    own["coefficient"] = fields.coefficient.rstrip(" ")
    if (fields.first, fields.second) != (1, 1):
        own["logical"] = [fields.first, fields.second]
    names = [name.rstrip(" ") for name in fields.names]
    status = "".join(fields.status)
    if any(fields.numbers):
        own["numbers"] = list(fields.numbers)
    if fields.extra:
        own["elements"] = [word.rstrip(" ") for word in fields.elements]
    if set(status) - set("kue"):
        walk.refuse("unknown status of a dimension", record, "k, u or e", repr(status))
    listed = len({name for name, letter in zip(names, status, strict=True) if letter == "k"})
    if fields.lists != listed:
        walk.refuse("wrong number of label lists", record, listed, fields.lists)
    _axes(walk, header, names, status)


def _axes(walk: Walk, header: Header, names: list[str], status: str) -> None:
    """Read the label lists into axes; record names, statuses and splits that axes do not imply."""
    if names == set_names([None] * len(names)) and not status.strip("u"):
        return  # as most files without sets write it
    lists: dict[str, tuple[str, ...]] = {}
    explicit = iter(header.own.get("elements", ()))
    splits: list[int] = []
    axes = []
    for name, letter, size in zip(names, status, header.dims, strict=False):
        axis_name = None if PLACEHOLDER.fullmatch(name) else name
        if letter == "k":
            if name not in lists:
                lists[name] = _labels(walk, size, name, splits)
            labels: tuple[str, ...] | None = lists[name]
        else:
            word = next(explicit, None) if letter == "e" else None
            labels = (word,) if word and size == 1 else None
        if labels is not None and len(labels) != size:
            record = walk.peek()
            offset = record.offset if record else walk.offset
            raise Corrupt(
                f"set '{name}' has {len(labels)} labels for a dimension of {size}",
                path=walk.source.path,
                where=f"header '{header.name}', byte {offset}",
            )
        axes.append(Axis(name=axis_name, labels=labels))
    if any(axis.name is not None or axis.labels is not None for axis in axes):
        header.axes = axes
    if names != set_names([axis.name for axis in axes]):
        header.own["sets"] = names
    if status != "".join("u" if axis.labels is None else "k" for axis in axes):
        header.own["status"] = status
    if splits:
        header.own["label_split"] = max(splits)


def _labels(walk: Walk, size: int, name: str, splits: list[int]) -> tuple[str, ...]:
    """Read the labels of a set; equal lists of a file are one tuple. Raises `TooLarge`."""
    parts, _ = strings(walk, size, WORD_CHARS, f"the label list of set '{name}'")
    walk.label_count += size
    if walk.label_count * LABEL_MEMORY > walk.source.max_memory:
        raise TooLarge(
            f"labels need more than {walk.label_count * LABEL_MEMORY} bytes",
            path=walk.source.path,
            where=f"header '{walk.header}'",
            expected=f"at most {walk.source.max_memory} (`--max-memory`)",
        )
    pieces = [
        walk.records.bytes_at(offset, WORD_CHARS * count)
        for offset, count in zip(parts.offsets, parts.counts, strict=True)
    ]
    raw = b"".join(pieces)
    if parts.counts[0] != min(size, strings_limit(WORD_CHARS)):
        splits.append(parts.counts[0])
    labels = walk.labels.get(raw)
    if labels is None:
        labels = walk.labels[raw] = tuple(_words(raw))
    else:
        walk.label_count -= size
    return labels


def _words(raw: bytes) -> list[str]:
    """The words of 12 characters, without the blanks behind them."""
    chars = text(raw)
    return [chars[i : i + WORD_CHARS].rstrip(" ") for i in range(0, len(chars), WORD_CHARS)]


_BY_TYPE: dict[str, Callable[[Walk, Header], None]] = {
    TEXT: read_text,
    INTEGER: read_matrix,
    REAL_MATRIX: read_matrix,
    REAL: _real,
    REAL_BARE: _real,
}
