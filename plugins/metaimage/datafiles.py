"""Location of the data of a MetaImage: behind its header, in one file, or in a list of files.

Facts (``metaImage.cxx``): ``LIST D`` is followed by a line for each file, which has the first D
axes (without D all but the slowest); ``a%03d.raw MIN MAX STEP`` has a file for each index of the
slowest axis, MIN being 1, and STEP 1, where they are not said.
"""

from __future__ import annotations

import re
from math import prod

from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.inflate import MAX_RATIO, Part
from raconvert.files.named import of_header
from raconvert.plugin import Source, trailing_note

from .header import TEXT, Header, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WHAT = "the data file"
_NUMBER = re.compile("%(0?[0-9]{0,2})[diu]")
_WHOLE = re.compile("-?[0-9]{1,9}")


def parts_of(source: Source, header: Header, notes: list[str]) -> list[Part]:
    """Return the parts of the array in order, each checked against its file.

    Raises `Corrupt`, `Unsupported`, and `Unsafe` or `ReadFailed` for a data file. Bytes behind the
    data are noted.
    """
    word = header.fields["ElementDataFile"]
    nbytes = prod(header.dims) * header.element.nbytes
    if word.upper() in ("LOCAL", "THIS FILE"):
        parts = [_part(source, header, header.offset, nbytes)]
    else:
        names, count = _names(word, source, header)
        opened: dict[str, Source] = {}  # a list may name one file many times
        parts = [_named(source, name, header, nbytes // count, opened) for name in names]
    if header.encoding is None and header.skip >= 0:
        behind = sum(part.source.size - part.offset - part.nbytes for part in parts)
        if behind and len({part.source.path for part in parts}) == len(parts):
            notes.append(trailing_note(behind))
    return parts


def _names(word: str, source: Source, header: Header) -> tuple[Iterable[str], int]:
    """Return the names of the data files, and how many they are."""
    # Of bytes `split` takes only the blanks of ASCII.
    words = [raw.decode("latin-1") for raw in word.encode("latin-1").split()]
    first, *rest = words or [""]
    if first == "LIST":
        return _listed(rest, source, header)
    if first.startswith("LIST"):
        raise Unsupported(
            "a data file with such a name, which other readers take for a list", path=source.path,
            where="ElementDataFile", got=word[:60], remedy="give the file another name",
        )  # fmt: skip
    if "%" in word:
        return _numbered(first, rest, source, header)
    if not word:
        raise wrong(source, "ElementDataFile", "LOCAL or the name of a file", word)
    return [_system_name(word.encode("latin-1"))], 1


def _listed(words: list[str], source: Source, header: Header) -> tuple[list[str], int]:
    """Return the data files in the lines behind ``LIST``, and their number."""
    rank = header.rank
    if len(words) > 1 or not all(_WHOLE.fullmatch(word) for word in words):
        raise wrong(
            source, "ElementDataFile", "LIST, or LIST and a number of axes", " ".join(words)
        )
    axes_of_file = int(words[0]) if words else 0
    axes_of_file = axes_of_file if 1 <= axes_of_file <= rank else rank - 1
    count = prod(header.dims[len(header.dims) - rank + axes_of_file :])
    text = source.read_at(
        header.offset, min(source.limits.record_bytes, source.size - header.offset)
    )
    names = [line.strip() for line in text.split(b"\n", count)[:count]]
    if len(names) < count or not all(names):
        named = sum(map(bool, names))
        raise wrong(source, "LIST", f"{count} names of files, a line each", f"{named} names")
    return [_system_name(name) for name in names], count


def _numbered(
    word: str, numbers: list[str], source: Source, header: Header
) -> tuple[Iterable[str], int]:
    """Return the data files of a pattern such as ``x%03d.raw 1 9 2``, and their number."""
    count = header.dims[-1]
    before, *rest = _NUMBER.split(word.replace("%%", "\0"))
    fine = len(rest) == 2 and "%" not in before + rest[1] and len(numbers) <= 3
    if not fine or not all(_WHOLE.fullmatch(number) for number in numbers):
        raise wrong(source, "ElementDataFile", "a name with one %03d, MIN, MAX and STEP", word)
    low = int(numbers[0]) if numbers else 1
    high = int(numbers[1]) if numbers[1:] else low + count - 1
    step = int(numbers[2]) if numbers[2:] else 1
    if step < 1 or len(range(low, high + 1, step)) != count:
        got = f"{low} to {high} in steps of {step}"
        raise wrong(source, "ElementDataFile", f"numbers of {count} files", got)
    width, behind = rest
    before, behind = (
        _system_name(part.replace("\0", "%").encode("latin-1")) for part in (before, behind)
    )
    return (f"{before}{n:{width}d}{behind}" for n in range(low, high + 1, step)), count


def _system_name(raw: bytes) -> str:
    """Return a file name as the system takes it: the bytes of the header, whatever they are."""
    return raw.decode("utf-8", "surrogateescape")


def _named(
    source: Source, name: str, header: Header, nbytes: int, opened: dict[str, Source]
) -> Part:
    """Return the part of the data in the file of this name; each file is opened once."""
    try:
        if name not in opened:
            opened[name] = source.named(name, WHAT)
        return _part(opened[name], header, 0, nbytes)
    except RaconvertError as error:
        raise of_header(error, source.path) from None


def _part(source: Source, header: Header, offset: int, nbytes: int) -> Part:
    """Return the part of the data in one file; `Corrupt` if the file is too short for it."""
    offset += max(header.skip, 0)
    if header.skip == -1 and header.encoding is None:
        offset = max(source.size - nbytes, 0)
    least = nbytes
    if header.encoding == TEXT:
        least = 2 * (nbytes // header.element.nbytes) - 1
    elif header.encoding:
        least = -(-nbytes // MAX_RATIO)
    present = max(source.size - offset, 0)
    if present < least:
        raise Corrupt(
            "data is cut off", path=source.path, where=f"byte {source.size}",
            expected=f"{least} bytes of data or more from byte {offset}", got=present,
        )  # fmt: skip
    return Part(source, offset, nbytes, 0)
