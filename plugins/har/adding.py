"""A HAR file with headers more, or other ones; all others are copied record by record, as they are.

A new header comes behind all others, or into the place of the one of its name. GEMPACK does not
tell capitals from small letters in names, so that both are one name here.
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
    """The framing of a file, which new headers get too; `UsageError` if another one is asked."""
    existing = framing_of(source.head)
    if existing is None:
        raise Corrupt("is damaged in its first record", path=source.path)
    if framing not in ("auto", existing):
        raise UsageError(
            f"the file is in the framing {existing}, and a header cannot be added in {framing}",
            path=source.path,
        )
    return existing


def places_in(source: Source, framing: str) -> list[tuple[Header, int, int]]:
    """The headers of a file, each with the offsets of its ends. Raises `Corrupt` for damage."""
    with source.open() as file:
        headers = index(source, framing, file, skip_unknown=True, notes=[])
    for header in headers:
        if isinstance(header.problem, Corrupt):
            raise header.problem
    headers.sort(key=lambda header: header.offset)
    ends = [*(header.offset for header in headers[1:]), source.size]
    return [(header, header.offset, end) for header, end in zip(headers, ends, strict=True)]


def check_names(
    planned: FilePlan, places: list[tuple[Header, int, int]], path: str, *, overwrite: bool
) -> None:
    """Refuse (`TargetExists`) existing names, unless they name arrays to be replaced."""
    there = {header.name.upper(): header for header, _, _ in places}
    for new in planned.headers:
        old = there.get(new.name.upper())
        if old is None:
            continue
        if old.type not in TYPES or old.hidden:
            raise not_an_array(path, new.name, "another header")
        if not overwrite:
            raise array_exists(path, old.name)
        # The long name may hold the array's longer name.
        own = new.array.name in (new.name, old.long.rstrip(" "))
        if old.name != new.name or not own:
            raise array_exists(path, old.name, f"which '{new.array.name}' would be called too")


def write_added(
    planned: FilePlan, target: Target, source: Source, places: list[tuple[Header, int, int]]
) -> None:
    """Write the file again, with the planned headers in it."""
    from .writer import Out, write_header

    new = {header.name: header for header in planned.headers}
    done = 0
    try:
        file = target.open()
        for old, begin, end in places:
            if old.name not in new:
                continue
            _copy(source, file, done, begin)
            out = Out(file, planned.framing, begins=False)
            write_header(out, new.pop(old.name), target)
            out.flush()
            done = end
        _copy(source, file, done, source.size)
        out = Out(file, planned.framing, begins=False)
        for header in new.values():
            write_header(out, header, target)
        out.flush()
    except OSError as error:
        raise write_failed(target.path, error) from error


def _copy(source: Source, file: FileIO, begin: int, end: int) -> None:
    if end > begin:
        copy_extent(b"", source.extent(begin, end - begin), file)
