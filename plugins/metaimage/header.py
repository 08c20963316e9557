"""The header of a MetaImage: text to fields, checked, and back."""

from __future__ import annotations

import re
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.inflate import ZLIB
from raconvert.files.pairing import check_seal
from raconvert.plugin import Element, Source, element

# Types and fields of MetaImage -------------------------------------------------------------------


MAGICS = ((0, b"ObjectType"), (0, b"NDims"), (0, b"Comment"))
GZIP_MAGIC = b"\x1f\x8b"
NAMESPACE = "metaimage"
BLANKS = " \t\n\v\f\r"  # as C has them
TEXT = "text"  # the encoding of numbers that are written out
MAX_RANK = 10  # of MetaIO

ELEMENTS = {
    "MET_CHAR": element("int", 1),
    "MET_UCHAR": element("uint", 1),
    "MET_SHORT": element("int", 2),
    "MET_USHORT": element("uint", 2),
    "MET_INT": element("int", 4),
    "MET_UINT": element("uint", 4),
    "MET_LONG": element("int", 4),
    "MET_ULONG": element("uint", 4),
    "MET_LONG_LONG": element("int", 8),
    "MET_ULONG_LONG": element("uint", 8),
    "MET_FLOAT": element("float", 4),
    "MET_DOUBLE": element("float", 8),
}
NAMES = {(e.kind, e.nbytes): name for name, e in reversed(ELEMENTS.items())}
# Fields that say how the data lies; they are worked out anew.
STRUCTURE = {
    "ObjectType", "NDims", "BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB",
    "CompressedData", "CompressedDataSize", "DimSize", "HeaderSize", "ElementNumberOfChannels",
    "ElementType", "ElementDataFile", "RaconvertIndexOrder", "RaconvertSeal",
}  # fmt: skip
ORDER = "RaconvertIndexOrder"  # our own, of column-major arrays; others ignore it
SEAL = "RaconvertSeal"  # our own, of a header with its data beside it (`raconvert.files.pairing`)
# Fields of other names that mean the same
ALIASES = {
    "Position": "Offset", "Origin": "Offset", "Rotation": "TransformMatrix",
    "Orientation": "TransformMatrix", "BinaryDataByteOrderMSB": "ElementByteOrderMSB",
}  # fmt: skip
UNITS = ("um", "mm", "cm")

SAMPLE = (
    b"ObjectType = Image\nNDims = 2\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
    b"CompressedData = False\nDimSize = 3 2\nElementType = MET_SHORT\nElementDataFile = LOCAL\n"
    + bytes(range(12))
)


_LINE = re.compile(r"([^=:\x00-\x1f]{1,255}?)[ \t]*[=:](.*)", re.DOTALL)
_TRUE, _FALSE = ("true", "1", "t", "yes"), ("false", "0", "f", "no")
_END = re.compile(rb"^[ \t]*ElementDataFile[ \t]*[=:][^\n]*(?:\n|\Z)", re.MULTILINE)


class Header(Record):
    """The header: `dims` begin with the channels, `offset` is behind its last byte."""

    path: str
    fields: dict[str, str]
    type: str
    element: Element
    dims: tuple[int, ...]
    channels: int
    encoding: str | None  # text or zlib; None: as it is
    offset: int
    skip: int

    @property
    def rank(self) -> int:
        """The number of axes without that of the channels."""
        return len(self.dims) - (self.channels > 1)


def read_header(source: Source) -> Header:
    """Return the header of an image. Raises `Corrupt` and `Unsupported`."""
    text = source.read_at(0, min(source.size, source.limits.short_header_bytes))
    end = _END.search(text)
    if end is None:
        raise Corrupt("header has no end", path=source.path, where=f"byte {len(text)}",
                      expected="a line ElementDataFile = ...")  # fmt: skip
    fields = _fields(text[: end.end()].decode("latin-1"), source)
    kind = _word(fields, "ObjectType", "Image", source)
    if kind != "Image":
        raise Unsupported(f"holds no image, but a {kind}"[:80], path=source.path)
    name = _word(fields, "ElementType", "", source)
    if name not in ELEMENTS:
        raise Unsupported("unknown elements", path=source.path, where="ElementType",
                          expected=", ".join(ELEMENTS), got=name[:40])  # fmt: skip
    element = ELEMENTS[name]
    encoding, skip = _encoding(fields, source)
    big = _truth(fields, "ElementByteOrderMSB", "False", source)
    if element.nbytes > 1 and big and encoding != TEXT:
        element = element._replace(order=">")
    dims, channels = _dims(fields, source)
    if prod(dims) * element.nbytes > MAX_SPAN:
        raise wrong(source, "DimSize", "fewer than 2**63 bytes", fields["DimSize"])
    return Header(source.path, fields, name, element, dims, channels, encoding, end.end(), skip)


def _encoding(fields: dict[str, str], source: Source) -> tuple[str | None, int]:
    """Return the encoding of the data, and the bytes before it in its file (-1: it is the end)."""
    text = not _truth(fields, "BinaryData", "True", source)
    packed = _truth(fields, "CompressedData", "False", source)
    skip = 0
    if "HeaderSize" in fields:
        skip = _integers(fields, "HeaderSize", 1, source, least=-1)[0]
    if text and packed:
        raise Unsupported(
            "holds numbers as compressed text", path=source.path, where="CompressedData",
            remedy="write it again as binary, for instance with SimpleITK",
        )  # fmt: skip
    if text and skip < 0:
        raise wrong(source, "HeaderSize", "0 or more, as the data is text", str(skip))
    if text:
        return TEXT, skip
    return ZLIB if packed else None, skip


def _fields(text: str, source: Source) -> dict[str, str]:
    """Return the fields by key; 0x85 and 0xA0 are not blanks, unlike in Latin-1."""
    fields: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(BLANKS):
            continue
        match = _LINE.fullmatch(line.strip(BLANKS))
        if match is None:
            remark = ", and MetaImage has no comment lines" if line.lstrip()[:1] in "#%" else ""
            raise Corrupt(f"a line of the header is not KEY = VALUE{remark}", path=source.path,
                          where=f"line {number}", got=line[:60])  # fmt: skip
        key = ALIASES.get(match[1], match[1])
        if key in fields:
            raise Corrupt(f"field {key} is there twice", path=source.path, where=f"line {number}")
        fields[key] = match[2].strip(BLANKS)
    return fields


def _dims(fields: dict[str, str], source: Source) -> tuple[tuple[int, ...], int]:
    """Return the lengths, the channels before them, and the number of channels."""
    rank = _integers(fields, "NDims", 1, source)[0]
    if rank > MAX_RANK:
        raise Unsupported("too many axes", path=source.path, where="NDims",
                          expected=f"at most {MAX_RANK}", got=rank)  # fmt: skip
    sizes = _integers(fields, "DimSize", rank, source)
    channels = 1
    if "ElementNumberOfChannels" in fields:
        channels = _integers(fields, "ElementNumberOfChannels", 1, source)[0]
    return (*((channels,) if channels > 1 else ()), *sizes), channels


def _word(fields: dict[str, str], name: str, default: str, source: Source) -> str:
    """Return a field, or its default. Raises `Corrupt` if it has neither."""
    if name not in fields and not default:
        raise Corrupt(f"header has no field {name}", path=source.path)
    return fields.get(name, default).strip()


def _truth(fields: dict[str, str], name: str, default: str, source: Source) -> bool:
    """Return a field that is true or false. Raises `Corrupt` for other words."""
    word = _word(fields, name, default, source).lower()
    if word not in _TRUE + _FALSE:
        raise wrong(source, name, "True or False", word)
    return word in _TRUE


def _integers(
    fields: dict[str, str], name: str, count: int, source: Source, least: int = 1
) -> tuple[int, ...]:
    """Return the `count` whole numbers of a field. Raises `Corrupt` for others."""
    words = _word(fields, name, "", source).split()
    fine = len(words) == count and all(re.fullmatch("-?[0-9]{1,19}", word) for word in words)
    if not fine or any(int(word) < least for word in words):
        raise wrong(source, name, f"{count} whole numbers of {least} or more", fields[name])
    return tuple(map(int, words))


def wrong(source: Source, name: str, expected: str, got: str) -> Corrupt:
    """Return the error for a field with a value that is not allowed."""
    return Corrupt(
        "header is wrong",
        path=source.path,
        where=name,
        expected=expected,
        got=got[:80] or "nothing",
    )


def header_bytes(fields: dict[str, str]) -> bytes:
    """Return the lines of a header. Raises nothing for what `plan` lets pass."""
    lines = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return lines.encode("latin-1")


def sealed(header: bytes, seal: str) -> bytes:
    """Return a header with the line of a seal before its last one."""
    lines = header.splitlines(keepends=True)
    return b"".join([*lines[:-1], f"{SEAL} = {seal}\n".encode(), lines[-1]])


def check_sealed(source: Source, header: Header, data: Source) -> None:
    """Refuse (`Corrupt`) a data file that is not the one that the header was written with."""
    if SEAL in header.fields:
        text = source.read_at(0, header.offset)
        line = f"{SEAL} = {header.fields[SEAL]}\n".encode("latin-1")
        check_seal(header.fields[SEAL], text.replace(line, b"", 1), data, source.path)
