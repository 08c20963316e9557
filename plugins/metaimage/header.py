"""The header of a MetaImage: text to fields, checked, and back."""

from __future__ import annotations

import re
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import MAX_RATIO
from raconvert.plugin import Element, Source

from .tables import ALIASES, ELEMENTS, MAX_HEADER_BYTES, MAX_RANK

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_ ]{0,79}?)[ \t]*[=:][ \t]*(.*)")
_TRUE, _FALSE = ("true", "1", "t", "yes"), ("false", "0", "f", "no")
_END = re.compile(rb"^ElementDataFile[ \t]*[=:][^\n]*(?:\n|\Z)", re.MULTILINE)


class Header(Record):
    """What the header says; `dims` with the channels first, `offset` where it ends."""

    path: str
    fields: dict[str, str]
    type: str
    element: Element
    dims: tuple[int, ...]
    channels: int
    compressed: bool
    data_file: str  # empty: the file itself
    offset: int
    skip: int

    def place_in(self, data: Source) -> int:
        """Where the data begins in its file, which has all of it; `Corrupt` if not."""
        nbytes = prod(self.dims) * self.element.nbytes
        offset = 0 if self.data_file else self.offset
        offset += max(self.skip, 0)
        if self.skip == -1 and not self.compressed:
            offset = max(data.size - nbytes, 0)
        there = max(data.size - offset, 0)
        if nbytes > there * (MAX_RATIO if self.compressed else 1):
            raise Corrupt(
                "data is cut off", path=data.path, where=f"byte {data.size}",
                expected=f"{nbytes} bytes of data from byte {offset}", got=there,
            )  # fmt: skip
        return offset


def read_header(source: Source) -> Header:
    """Return the header of an image. Raises `Corrupt` and `Unsupported`."""
    text = source.read_at(0, min(source.size, MAX_HEADER_BYTES))
    end = _END.search(text)
    if end is None:
        raise Corrupt("header has no end", path=source.path, where=f"byte {len(text)}",
                      expected="a line ElementDataFile = ...")  # fmt: skip
    fields = _fields(text[: end.end()].decode("latin-1"), source)
    kind = _word(fields, "ObjectType", "Image", source)
    if kind != "Image":
        raise Unsupported(f"holds no image, but a {kind}"[:80], path=source.path)
    if not _truth(fields, "BinaryData", "True", source):
        raise Unsupported(
            "holds numbers as text", path=source.path, where="BinaryData",
            remedy="write it again as binary, for instance with SimpleITK",
        )  # fmt: skip
    name = _word(fields, "ElementType", "", source)
    if name not in ELEMENTS:
        raise Unsupported("unknown elements", path=source.path, where="ElementType",
                          expected=", ".join(ELEMENTS), got=name[:40])  # fmt: skip
    element = ELEMENTS[name]
    if element.nbytes > 1 and _truth(fields, "ElementByteOrderMSB", "False", source):
        element = element._replace(order=">")
    dims, channels = _dims(fields, source)
    if prod(dims) * element.nbytes > MAX_SPAN:
        raise _wrong(source, "DimSize", "fewer than 2**63 bytes", fields["DimSize"])
    return Header(
        source.path, fields, name, element, dims, channels,
        _truth(fields, "CompressedData", "False", source), _data_file(fields, source), end.end(),
        _integers(fields, "HeaderSize", 1, source, least=-1)[0] if "HeaderSize" in fields else 0,
    )  # fmt: skip


def _fields(text: str, source: Source) -> dict[str, str]:
    fields: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise Corrupt("a line of the header is none of KEY = VALUE", path=source.path,
                          where=f"line {number}", got=line[:60])  # fmt: skip
        key = ALIASES.get(found[1], found[1])
        if key in fields:
            raise Corrupt(f"field {key} is there twice", path=source.path, where=f"line {number}")
        fields[key] = found[2]
    return fields


def _dims(fields: dict[str, str], source: Source) -> tuple[tuple[int, ...], int]:
    """The lengths, channels before them, and the number of channels."""
    rank = _integers(fields, "NDims", 1, source)[0]
    if rank > MAX_RANK:
        raise Unsupported("too many axes", path=source.path, where="NDims",
                          expected=f"at most {MAX_RANK}", got=rank)  # fmt: skip
    sizes = _integers(fields, "DimSize", rank, source)
    channels = 1
    if "ElementNumberOfChannels" in fields:
        channels = _integers(fields, "ElementNumberOfChannels", 1, source)[0]
    return (*((channels,) if channels > 1 else ()), *sizes), channels


def _data_file(fields: dict[str, str], source: Source) -> str:
    name = fields["ElementDataFile"].strip()
    if name.upper() in ("LOCAL", "THIS FILE"):
        return ""
    if name.upper().startswith("LIST") or "%" in name:
        raise Unsupported(
            "data in a list or pattern of files", path=source.path, where="ElementDataFile",
            got=name[:60], remedy="write it again as one file, for instance with SimpleITK",
        )  # fmt: skip
    if not name:
        raise _wrong(source, "ElementDataFile", "LOCAL or the name of a file", name)
    return name.encode("latin-1").decode("utf-8", "surrogateescape")


def _word(fields: dict[str, str], name: str, default: str, source: Source) -> str:
    if name not in fields and not default:
        raise Corrupt(f"header has no field {name}", path=source.path)
    return fields.get(name, default).strip()


def _truth(fields: dict[str, str], name: str, default: str, source: Source) -> bool:
    word = _word(fields, name, default, source).lower()
    if word not in _TRUE + _FALSE:
        raise _wrong(source, name, "True or False", word)
    return word in _TRUE


def _integers(
    fields: dict[str, str], name: str, count: int, source: Source, least: int = 1
) -> tuple[int, ...]:
    words = _word(fields, name, "", source).split()
    fine = len(words) == count and all(re.fullmatch("-?[0-9]{1,19}", word) for word in words)
    if not fine or any(int(word) < least for word in words):
        raise _wrong(source, name, f"{count} whole numbers of {least} or more", fields[name])
    return tuple(map(int, words))


def _wrong(source: Source, name: str, expected: str, got: str) -> Corrupt:
    return Corrupt(
        "header is wrong",
        path=source.path,
        where=name,
        expected=expected,
        got=got[:80] or "nothing",
    )


def header_bytes(fields: dict[str, str]) -> bytes:
    """The lines of a header. Raises nothing for what `plan` lets pass."""
    lines = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return lines.encode("latin-1")
