"""A ZIP archive with members more, or other ones: all others are copied as they lie.

Specification: PKWARE APPNOTE 6.3. The bytes of a member stay what they are: local header, name,
data, data descriptor; in the directory its entry with dates, modes, comment and extra fields. Where
a stored member moves, its data keeps its place modulo 64 by padding in the local extra field, so
that it can be mapped as before. What lies before the first member and behind the archive stays.
"""

from __future__ import annotations

from struct import Struct

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files import zips
from raconvert.files.copy import copy_extent, write_all
from raconvert.files.inflate import ZIP_STORED
from raconvert.files.zips import ALIGN, END_BYTES, LOCAL, PADDING, PADDING_ID, ZIP64, Archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import FileIO

    from raconvert.files.source import Source
    from raconvert.files.zips import Member

    Put = Callable[[Archive], None]  # adds one member or several to an archive

_CENTRAL = Struct("<4s4B4H3I5H2I")  # APPNOTE 4.3.12
_LENGTHS = slice(12, 15)  # the fields with the lengths of name, extra field and comment
_ZIP64_ID, _FIELD = 1, Struct("<2H")
_LARGEST = ZIP64 - 1
_MOST_EXTRA = 0xFFFF
_PADDING_MARK = PADDING_ID.to_bytes(2, "little")


class _Lying(Record):
    """A member as it lies in an archive: up to where the next one begins; and its entry."""

    member: Member
    end: int
    entry: bytes


def spliced(
    source: Source,
    file: FileIO,
    members: Sequence[Member],
    instead: Mapping[str, Put | None],
    more: Sequence[Put],
) -> None:
    """Write an archive anew, with members `instead` of some, by name, and more at the end.

    None leaves a member out. `members` are those of `zips.members`. Entries of the directory keep
    their order. Raises `Corrupt` and `Unsupported` for a directory that cannot be kept.
    """
    start, entries = _entries(source, len(members))
    lying = _lying(members, entries, start)
    first = lying[0].member.begin if lying else start
    _copy(source, file, 0, first)
    archive = Archive(file)
    written: dict[str, list[bytes]] = {}
    for one in lying:
        name, known = one.member.filename, len(archive.directory)
        if name not in instead:
            _keep(source, file, archive, one)
        elif (put := instead[name]) is not None:
            put(archive)
        written[name] = archive.directory[known:]
    known = len(archive.directory)
    for put in more:
        put(archive)
    last = archive.directory[known:]
    archive.directory[:] = [e for m in members for e in written[m.filename]] + last
    offset, raw = zips.end_record(source)
    length = int.from_bytes(raw[END_BYTES - 2 : END_BYTES], "little")
    archive.finish(raw[END_BYTES : END_BYTES + length])
    behind = offset + END_BYTES + length
    _copy(source, file, behind, source.size)


def _entries(source: Source, count: int) -> tuple[int, list[bytes]]:
    """Return the offset of the directory, and its entries as raw bytes."""
    with source.open() as file:
        start = zips.directory_start(source, file)
    raw = source.read_at(start, source.size - start)
    entries, offset = [], 0
    for _ in range(count):
        if len(raw) - offset < _CENTRAL.size:
            raise Corrupt("ZIP directory is cut off", path=source.path, where=f"byte {start}")
        fields = _CENTRAL.unpack_from(raw, offset)
        end = offset + _CENTRAL.size + sum(fields[_LENGTHS])
        entries.append(raw[offset:end])
        offset = end
    return start, entries


def _lying(members: Sequence[Member], entries: list[bytes], start: int) -> list[_Lying]:
    """The members in the order in which they lie."""
    pairs = sorted(zip(members, entries, strict=True), key=lambda pair: pair[0].begin)
    ends = [*(member.begin for member, _ in pairs[1:]), start]
    return [_Lying(member, end, entry) for (member, entry), end in zip(pairs, ends, strict=True)]


def _copy(source: Source, file: FileIO, begin: int, end: int) -> None:
    if end > begin:
        copy_extent(b"", source.extent(begin, end - begin), file)


def _keep(source: Source, file: FileIO, archive: Archive, one: _Lying) -> None:
    """Copy a member, its data at the same place modulo 64 if it is stored."""
    member, begin = one.member, file.tell()
    head = source.read_at(member.begin, member.offset - member.begin)
    if member.method == ZIP_STORED and (begin - member.begin) % ALIGN:
        head = _aligned(head, begin, member.offset)
    write_all(file, [head])
    _copy(source, file, member.offset, one.end)
    archive.directory.append(_moved(source, one.entry, begin))
    archive.went_on(file.tell())


def _aligned(head: bytes, begin: int, offset: int) -> bytes:
    """A local header whose data, when it begins at `begin`, has the place of `offset` modulo 64."""
    local = zips.Local(*LOCAL.unpack_from(head))
    lead = LOCAL.size + local.name_bytes
    fields = _fields(head[lead:])
    if fields is None:
        return head  # malformed extra fields: nothing is added to them
    extra = b"".join(field for field in fields if field[:2] != _PADDING_MARK)
    zeros = -(begin + lead + len(extra) + PADDING.size - offset) % ALIGN
    extra = PADDING.pack(PADDING_ID, PADDING.size - 4 + zeros, ALIGN) + bytes(zeros) + extra
    if len(extra) > _MOST_EXTRA:
        return head
    fixed = LOCAL.pack(*local._replace(extra_bytes=len(extra)))
    return fixed + head[LOCAL.size : lead] + extra


def _fields(extra: bytes) -> list[bytes] | None:
    """The fields of an extra field, or None if its lengths do not fit."""
    fields, offset = [], 0
    while offset < len(extra):
        if len(extra) - offset < _FIELD.size:
            return None
        end = offset + _FIELD.size + _FIELD.unpack_from(extra, offset)[1]
        if end > len(extra):
            return None
        fields.append(extra[offset:end])
        offset = end
    return fields


def _moved(source: Source, entry: bytes, begin: int) -> bytes:
    """An entry of the directory for a member that begins elsewhere."""
    fields = [*_CENTRAL.unpack_from(entry)]
    compressed, size, name_bytes, extra_bytes = fields[10], fields[11], fields[12], fields[13]
    if fields[15]:
        raise Unsupported("archive is one of several disks", path=source.path)
    name_end = _CENTRAL.size + name_bytes
    extra = entry[name_end : name_end + extra_bytes]
    large = [value == ZIP64 for value in (size, compressed, fields[18])]
    if not any(large) and begin <= _LARGEST:
        fields[18] = begin
        return _CENTRAL.pack(*fields) + entry[_CENTRAL.size :]
    parts = _fields(extra)
    if parts is None:
        raise Unsupported("directory has extra fields that do not fit", path=source.path)
    old = b"".join(part[4:] for part in parts if part[:2] == b"\1\0")
    numbers = [old[at : at + 8] for at in range(0, len(old), 8)]
    kept = numbers[: large[0] + large[1]]
    if len(kept) != large[0] + large[1]:
        raise Corrupt("directory lacks the size of a member", path=source.path)
    if begin > _LARGEST:
        kept.append(begin.to_bytes(8, "little"))
    data = b"".join(kept)
    rest = b"".join(part for part in parts if part[:2] != b"\1\0")
    extra = (_FIELD.pack(_ZIP64_ID, len(data)) + data if data else b"") + rest
    fields[13], fields[18] = len(extra), min(begin, ZIP64)
    fields[3] = max(fields[3], 45) if data else fields[3]
    behind = entry[name_end + extra_bytes :]
    return _CENTRAL.pack(*fields) + entry[_CENTRAL.size : name_end] + extra + behind
