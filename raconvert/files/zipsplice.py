"""A ZIP archive written anew with some members added or replaced: all others are copied.

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
from raconvert.files.copy import copy_range, write_all
from raconvert.files.inflate import ZIP_STORED
from raconvert.files.zips import (
    ALIGN,
    CENTRAL,
    END_BYTES,
    LOCAL,
    PADDING,
    PADDING_ID,
    ZIP64,
    Archive,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import FileIO

    from raconvert.files.source import Source
    from raconvert.files.zips import Member

    Put = Callable[[Archive], None]  # adds one member or several to an archive

_ZIP64_VERSION = 45  # 4.4.3.2: the version needed to extract a member with ZIP64 fields
_ZIP64_ID, _FIELD = 1, Struct("<2H")
_LARGEST = ZIP64 - 1
_MOST_EXTRA = 0xFFFF
_PADDING_MARK = PADDING_ID.to_bytes(2, "little")


class _Entry(Record):
    """The fixed fields of an entry in the directory; name, extra field and comment follow them."""

    signature: bytes
    made_version: int
    made_system: int
    version: int  # needed to extract
    system: int  # likewise
    flags: int
    method: int
    time: int
    date: int
    crc: int
    compressed: int
    size: int
    name_bytes: int
    extra_bytes: int
    comment_bytes: int
    disk: int
    internal: int
    external: int
    begin: int  # offset of the local header


class _Segment(Record):
    """The bytes of a member in an archive, up to the begin of the next one; and its entry."""

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
    """Write an archive anew, with functions that write members `instead` of some, or `more`.

    `members` are those of `zips.members`. `instead` maps names of members to functions; a member
    with None is left out. Members of `more` come last. Entries of the directory keep their order.
    Raises `Corrupt` and `Unsupported` for a directory that cannot be kept.
    """
    start, entries = _entries(source, len(members))
    segments = _segments(members, entries, start)
    first = segments[0].member.begin if segments else start
    copy_range(source, file, 0, first)
    archive = Archive(file)
    written: dict[str, list[bytes]] = {}
    for segment in segments:
        name, count = segment.member.filename, len(archive.directory)
        if name not in instead:
            _keep(source, file, archive, segment)
        elif (put := instead[name]) is not None:
            put(archive)
        written[name] = archive.directory[count:]
    count = len(archive.directory)
    for put in more:
        put(archive)
    last = archive.directory[count:]
    archive.directory[:] = [entry for m in members for entry in written[m.filename]] + last
    offset, raw = zips.end_record(source)
    length = int.from_bytes(raw[END_BYTES - 2 : END_BYTES], "little")
    archive.finish(raw[END_BYTES : END_BYTES + length])
    behind = offset + END_BYTES + length
    copy_range(source, file, behind, source.size)


def _entries(source: Source, count: int) -> tuple[int, list[bytes]]:
    """Return the offset of the directory, and its entries as raw bytes."""
    with source.open() as file:
        start = zips.directory_start(source, file)
    raw = source.read_at(start, source.size - start)
    entries, offset = [], 0
    for _ in range(count):
        if len(raw) - offset < CENTRAL.size:
            raise Corrupt("ZIP directory is cut off", path=source.path, where=f"byte {start}")
        fields = _Entry(*CENTRAL.unpack_from(raw, offset))
        lengths = fields.name_bytes + fields.extra_bytes + fields.comment_bytes
        end = offset + CENTRAL.size + lengths
        entries.append(raw[offset:end])
        offset = end
    return start, entries


def _segments(members: Sequence[Member], entries: list[bytes], start: int) -> list[_Segment]:
    """Return the members in the order of their offsets; `start` is that of the directory."""
    pairs = sorted(zip(members, entries, strict=True), key=lambda pair: pair[0].begin)
    ends = [*(member.begin for member, _ in pairs[1:]), start]
    return [_Segment(member, end, entry) for (member, entry), end in zip(pairs, ends, strict=True)]


def _keep(source: Source, file: FileIO, archive: Archive, segment: _Segment) -> None:
    """Copy a member; the offset of its data stays the same modulo 64 if it is stored."""
    member, begin = segment.member, file.tell()
    head = source.read_at(member.begin, member.offset - member.begin)
    if member.method == ZIP_STORED and (begin - member.begin) % ALIGN:
        head = _aligned(head, begin, member.offset)
    write_all(file, [head])
    copy_range(source, file, member.offset, segment.end)
    archive.directory.append(_moved(source, segment.entry, begin))
    archive.continue_at(file.tell())


def _aligned(head: bytes, begin: int, offset: int) -> bytes:
    """Return a local header for the offset `begin` whose data begins at `offset` modulo 64."""
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
    """Return the fields of an extra field, or None if their lengths do not fit."""
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
    """Return an entry of the directory for a member that now begins at `begin`."""
    fields = _Entry(*CENTRAL.unpack_from(entry))
    if fields.disk:
        raise Unsupported("archive is one of several disks", path=source.path)
    name_end = CENTRAL.size + fields.name_bytes
    extra_end = name_end + fields.extra_bytes
    extra = entry[name_end:extra_end]
    large = [value == ZIP64 for value in (fields.size, fields.compressed, fields.begin)]
    if not any(large) and begin <= _LARGEST:
        return CENTRAL.pack(*fields._replace(begin=begin)) + entry[CENTRAL.size :]
    parts = _fields(extra)
    if parts is None:
        raise Unsupported("directory has extra fields that do not fit", path=source.path)
    old = b"".join(part[4:] for part in parts if part[:2] == b"\1\0")
    numbers = [old[start : start + 8] for start in range(0, len(old), 8)]
    sizes = numbers[: large[0] + large[1]]
    if len(sizes) != large[0] + large[1]:
        raise Corrupt("directory lacks the size of a member", path=source.path)
    if begin > _LARGEST:
        sizes.append(begin.to_bytes(8, "little"))
    data = b"".join(sizes)
    rest = b"".join(part for part in parts if part[:2] != b"\1\0")
    extra = (_FIELD.pack(_ZIP64_ID, len(data)) + data if data else b"") + rest
    version = max(fields.version, _ZIP64_VERSION) if data else fields.version
    fields = fields._replace(version=version, extra_bytes=len(extra), begin=min(begin, ZIP64))
    name, comment = entry[CENTRAL.size : name_end], entry[extra_end:]
    return CENTRAL.pack(*fields) + name + extra + comment
