"""Location of the data of a NRRD file: its files, the bytes to skip, and whether they can hold it.

One array lies in one file or, piece after piece, in many (`Part` each).

Facts: ``line skip`` is about lines of the file as it lies there; ``byte skip`` is about the file,
but with gzip and bzip2 about what is inside. ``byte skip: -1`` takes the last bytes, ``-1-K`` those
before the last K (Teem's ``nrrdByteSkip``; the definition knows -1 only).
"""

from __future__ import annotations

import re
from itertools import islice
from math import prod

from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files.inflate import MAX_RATIO, Part
from raconvert.files.named import of_header
from raconvert.files.source import read_up_to
from raconvert.plugin import Element, Extent, Source, trailing_note

from .tables import BZIP2, COMPRESSED, GZIP, HEX, RAW, TEXT, ZRL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .header import Header

SKIP_READ = 1 << 18
_ZRL_RATIO = 65535 / 4  # "00 00 lo hi" is up to 65535 zeros
_STARTS = {GZIP: b"\x1f\x8b", BZIP2: b"BZh"}


def parts_of(source: Source, header: Header, element: Element, notes: list[str]) -> list[Part]:
    """Return the parts of the array, in order, each checked against its file.

    Raises `Unsafe` for files outside the folder of the header and for those that are not regular
    files, `Corrupt` if a file cannot hold its part. Bytes behind the data are noted.
    """
    fields, files = header.fields, header.files
    nbytes = prod(fields["sizes"]) * element.nbytes
    if files is None:
        parts = [_part(source, header, header.offset, nbytes, fields.get("byte skip", 0))]
    else:
        share = nbytes // len(files.names)
        parts = []
        opened: dict[str, Source] = {}
        for number, name in enumerate(files.names):
            if name not in opened:
                opened[name] = _open_named(source, name, files.line)
            skip = files.skips[number] if files.skips else fields.get("byte skip", 0)
            parts.append(_named_part(opened[name], header, share, skip, source))
    try:
        for part in parts:
            _check_room(part, fields["encoding"], element)
    except RaconvertError as error:
        raise of_header(error, source.path) from None
    if fields["encoding"] == RAW:
        _note_rest(parts, fields, notes)
    return parts


def _open_named(source: Source, name: str, line: int) -> Source:
    """Open the data file that a line of the header names."""
    what = "the data file"
    try:
        if name in ("", "-"):
            raise Unsafe(f"{what} has no name", path=source.path, got=f"'{name}'")
        named = source.named(name, what)
        named.size  # noqa: B018 - opens the file, so that an error names the line
    except RaconvertError as error:
        error.where = error.where or f"line {line}"
        raise of_header(error, source.path) from None
    return named


def _named_part(named: Source, header: Header, nbytes: int, skip: int, source: Source) -> Part:
    """Return the part in a data file; errors name the header, too."""
    try:
        return _part(named, header, 0, nbytes, skip)
    except RaconvertError as error:
        raise of_header(error, source.path) from None


def _part(source: Source, header: Header, start: int, nbytes: int, skip: int) -> Part:
    """Return the part behind the skips; a byte skip inside compressed data stays in the part."""
    fields = header.fields
    encoding = fields["encoding"]
    lines = fields.get("line skip", 0)
    offset = _after_lines(source, start, lines) if lines else start
    if encoding in COMPRESSED:
        return Part(source, offset, nbytes, skip)
    if skip < 0 and encoding != RAW:
        raise Corrupt(
            f"a negative 'byte skip' has no meaning with encoding {encoding}",
            path=source.path,
            expected="one of at least 0",
            got=skip,
        )
    begin = offset + skip if skip >= 0 else source.size - nbytes + skip + 1
    if begin < start:
        raise Corrupt(
            "data is cut off",
            path=source.path,
            where=f"byte {source.size}",
            expected=f"{nbytes - skip - 1} bytes from byte {start}",
            got=max(0, source.size - start),
        )
    return Part(source, begin, nbytes, 0)


def _after_lines(source: Source, start: int, lines: int) -> int:
    """Return the offset behind so many lines, which end with LF, CRLF or CR."""
    left, offset, data, most = lines, start, b"", source.limits.searched_bytes
    with source.open() as file:
        file.seek(start)
        while offset - start <= most:
            more = read_up_to(file, SKIP_READ)
            data += more
            # A CR that ends the piece may be the first half of CRLF.
            body = data[:-1] if more and data.endswith(b"\r") else data
            ends = body.count(b"\n") + body.count(b"\r") - body.count(b"\r\n")
            if ends >= left:
                match = islice(re.finditer(rb"\r\n|\n|\r", body), left - 1, None)
                return offset + next(match).end()
            if not more:
                raise Corrupt(
                    "file has fewer lines than 'line skip' says",
                    path=source.path,
                    expected=f"{lines} lines",
                    got=lines - left + ends,
                )
            left -= ends
            offset += len(body)
            data = data[len(body) :]
    raise Unsupported(
        "'line skip' leads too far into the file",
        path=source.path,
        expected=f"at most {most} bytes of lines",
        got="more",
        remedy="say it with 'byte skip'",
    )


def _check_room(part: Part, encoding: str, element: Element) -> None:
    """Refuse a part that its file cannot hold, before anything is decoded or allocated."""
    present = max(0, part.source.size - part.offset)
    needed = part.nbytes + max(0, part.skip)
    if encoding == RAW:
        least, what = part.nbytes, "bytes"
    elif encoding == HEX:
        least, what = 2 * part.nbytes, "hexadecimal digits"
    elif encoding == TEXT:
        least, what = 2 * (part.nbytes // element.nbytes) - 1, "bytes of text"
    elif encoding == ZRL:
        least, what = int(part.nbytes / _ZRL_RATIO), "bytes or more"
    elif encoding == GZIP:
        least, what = -(-needed // MAX_RATIO), "bytes or more"
    else:
        least, what = 1, "bytes or more"
    if present < least:
        raise Corrupt(
            "data is cut off",
            path=part.source.path,
            where=f"byte {part.source.size}",
            expected=f"{least} {what} from byte {part.offset}",
            got=f"{present} ({least - present} missing)",
        )
    start = _STARTS.get(encoding, b"")
    got = part.source.read_at(part.offset, len(start))
    if got != start:
        raise Corrupt(
            f"data is not encoded by {encoding}, as the header says",
            path=part.source.path,
            where=f"byte {part.offset}",
            expected=start,
            got=got,
        )


def _note_rest(parts: list[Part], fields: dict[str, Any], notes: list[str]) -> None:
    """Note the bytes behind the data, unless the data is the end of the file, or files repeat."""
    if fields.get("byte skip", 0) < 0:
        return
    rest = sum(part.source.size - part.offset - part.nbytes for part in parts)
    if rest and len({part.source.path for part in parts}) == len(parts):
        notes.append(trailing_note(rest))


def extent_of(part: Part, swap: int) -> Extent:
    """Return the extent of a raw part; `swap` is the width of the numbers to reverse."""
    return part.source.extent(part.offset, part.nbytes, swap)
