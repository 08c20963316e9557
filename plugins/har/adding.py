"""A HAR file with headers added or replaced; all others are copied byte for byte.

A new header comes behind all others, a replacement where its predecessor was. Names that differ in
capitals only are one name, as to GEMPACK.
"""

from __future__ import annotations

from raconvert.errors import Corrupt, UsageError
from raconvert.files.copy import copy_extent
from raconvert.files.paths import write_failed
from raconvert.plugin import array_exists, not_an_array

from .index import index
from .records import framing_of
from .tables import TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

    from raconvert.plugin import Source, Target

    from .metadata import FilePlan
    from .walk import Header


def framing_in(source: Source, framing: str) -> str:
    """The framing of a file; added headers have it, too. Raises `UsageError` for another one."""
    existing = framing_of(source.head)
    if existing is None:
        raise Corrupt("is damaged in its first record", path=source.path)
    if framing not in ("auto", existing):
        raise UsageError(
            f"the file is in the framing {existing}, and a header cannot be added in {framing}",
            path=source.path,
        )
    return existing


def extents_in(source: Source, framing: str) -> list[tuple[Header, int, int]]:
    """The headers of a file, each with offset and end. Raises `Corrupt` if one is damaged."""
    with source.open() as file:
        headers = index(source, framing, file, skip_unknown=True, notes=[])
    for header in headers:
        if isinstance(header.problem, Corrupt):
            raise header.problem
    headers.sort(key=lambda header: header.offset)
    ends = [*(header.offset for header in headers[1:]), source.size]
    return [(header, header.offset, end) for header, end in zip(headers, ends, strict=True)]


def check_names(
    planned: FilePlan, extents: list[tuple[Header, int, int]], path: str, *, overwrite: bool
) -> None:
    """Raise `TargetExists` for names of existing headers, except arrays to be replaced."""
    existing = {header.name.upper(): header for header, _, _ in extents}
    for new in planned.headers:
        old = existing.get(new.name.upper())
        if old is None:
            continue
        if old.type not in TYPES or old.hidden:
            raise not_an_array(path, new.name, "another header")
        if not overwrite:
            raise array_exists(path, old.name)
        # The long name may hold the array's longer name.
        same_array = new.array.name in (new.name, old.long.rstrip(" "))
        if old.name != new.name or not same_array:
            raise array_exists(path, old.name, f"which '{new.array.name}' would be called too")


def write_added(
    planned: FilePlan, target: Target, source: Source, extents: list[tuple[Header, int, int]]
) -> None:
    """Copy the file to the target, with the planned headers in it or behind it."""
    from .writer import Out, write_header

    new = {header.name: header for header in planned.headers}
    copied = 0  # offset up to which the source was copied or replaced
    try:
        file = target.open()
        for old, begin, end in extents:
            if old.name not in new:
                continue
            _copy(source, file, copied, begin)
            out = Out(file, planned.framing, begins=False)
            write_header(out, new.pop(old.name), target)
            out.flush()
            copied = end
        _copy(source, file, copied, source.size)
        out = Out(file, planned.framing, begins=False)
        for header in new.values():
            write_header(out, header, target)
        out.flush()
    except OSError as error:
        raise write_failed(target.path, error) from error


def _copy(source: Source, file: FileIO, begin: int, end: int) -> None:
    if end > begin:
        copy_extent(b"", source.extent(begin, end - begin), file)
