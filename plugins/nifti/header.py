"""The header of a NIfTI file: bytes to fields, checked, and back."""

from __future__ import annotations

from math import isfinite, prod
from struct import calcsize

from raconvert.arrays.dtypes import MAX_SPAN
from raconvert.declared import Record
from raconvert.errors import Corrupt, NotSupportedYet, Unsupported
from raconvert.files.inflate import MAX_RATIO, start_of
from raconvert.files.pairing import MARK, check_seal
from raconvert.files.quoting import python
from raconvert.plugin import Array, Element, Source

from .tables import (
    CODES,
    ELEMENTS,
    GZIP_MAGIC,
    LAYOUTS,
    MAX_LENGTH_1,
    MAX_RANK,
    MOST_HEADER_BYTES,
    OLD_BIG,
    OLD_LITTLE,
    RGB,
    RGBA,
    UNREAD,
    Layout,
    packed_field,
    unpacked,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMENT = 6  # the code of an extension that is text
SEAL_BYTES = 56  # of the text of the last extension of a pair that we write


class Header(Record):
    """The header; `offset` and `nbytes` locate the data, after decompression."""

    version: int
    order: str  # little or big
    fields: dict[str, Any]
    element: Element
    dims: tuple[int, ...]
    offset: int
    nbytes: int


class Start:
    """The first bytes of a file, decompressed; `version` is 0 if they are not those of a header.

    `pair`: the data is in another file; `analyze`: it is a header of what NIfTI came from.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.gzip = source.head.startswith(GZIP_MAGIC)
        self.head = self.read(MOST_HEADER_BYTES)
        self.version, self.order, self.pair = 0, "<", False
        for layout in LAYOUTS.values():
            offset = layout.nbytes - 4 if layout.version == 1 else 4
            magic = self.head[offset : offset + len(layout.magic)]
            if magic in (layout.magic, layout.pair):
                self.pair = magic == layout.pair
                for order, name in (("<", "little"), (">", "big")):
                    if int.from_bytes(self.head[:4], name) == layout.nbytes:  # type: ignore[arg-type]
                        self.version, self.order = layout.version, order

    @property
    def analyze(self) -> bool:
        """True for a header of ANALYZE 7.5, as far as its length and number of axes tell."""
        order: Any = {OLD_LITTLE: "little", OLD_BIG: "big"}.get(self.head[:4])
        if self.version or order is None or len(self.head) < LAYOUTS[1].nbytes:
            return False
        return 1 <= int.from_bytes(self.head[40:42], order) <= MAX_RANK

    def read(self, nbytes: int) -> bytes:
        """Read the first `nbytes` bytes; fewer at the end of the file."""
        return start_of(self.source, nbytes) if self.gzip else self.source.read_at(0, nbytes)


def read_header(start: Start, data: Source, *, gzip: bool) -> Header:
    """Return the header, checked against the file of the data. Raises `Corrupt`, `Unsupported`."""
    if start.analyze:
        raise NotSupportedYet(
            "is ANALYZE 7.5, not supported yet", path=start.path,
            remedy="NIfTI is: nibabel.save(nibabel.Nifti1Image.from_image("
            f"nibabel.load({python(start.path)})), 'x.nii')",
        )  # fmt: skip
    if not start.version:
        raise Corrupt(
            "is not a NIfTI file, or its header is cut off", path=start.path, where="byte 0",
            expected="348 or 540 and the magic n+1 or n+2", got=start.head[:8],
        )  # fmt: skip
    layout = LAYOUTS[start.version]
    if len(start.head) < layout.nbytes:
        raise Corrupt("file ends inside the header", path=start.path)
    fields = _fields(layout, start)
    dims = _dims(fields, start)
    code = fields["datatype"]
    if code not in ELEMENTS:
        what = UNREAD.get(code, f"unknown elements (datatype {code})")
        raise Unsupported(f"holds {what}", path=start.path, where="datatype")
    kind = ELEMENTS[code]
    if kind.kind != "user" and kind.nbytes > 1:
        kind = kind._replace(order=start.order)
    offset, nbytes = _offset(fields, layout, start), prod(dims) * kind.nbytes
    word = "little" if start.order == "<" else "big"
    header = Header(layout.version, word, fields, kind, dims, offset, nbytes)
    _check_size(header, data, gzip=gzip)
    return header


def _fields(layout: Layout, start: Start) -> dict[str, Any]:
    """Return the fields of a header by name; those of several numbers are lists."""
    fields: dict[str, Any] = {}
    offset = 0
    for name, code, count in layout.fields:
        size = count * calcsize(f"<{code}")
        values = unpacked(start.order, code, count, start.head[offset : offset + size])
        fields[name] = values[0] if count == 1 else values
        offset += size
    return fields


def _dims(fields: dict[str, Any], start: Start) -> tuple[int, ...]:
    """Return the lengths of the axes. Raises `Corrupt`."""
    rank = fields["dim"][0]
    if not 1 <= rank <= MAX_RANK:
        raise Corrupt("wrong number of axes", path=start.path, where="dim[0]",
                      expected="1 to 7", got=rank)  # fmt: skip
    dims = tuple(fields["dim"][1 : rank + 1])
    if min(dims) < 1 or prod(dims) * 16 > MAX_SPAN:
        raise Corrupt("wrong lengths of axes", path=start.path, where="dim",
                      expected="1 and more, fewer than 2**63 bytes in all", got=dims)  # fmt: skip
    return dims


def _offset(fields: dict[str, Any], layout: Layout, start: Start) -> int:
    """Return the offset of the data. Raises `Corrupt`."""
    offset = fields["vox_offset"]
    least = 0 if start.pair else layout.nbytes
    if not (isfinite(offset) and offset == int(offset) and least <= offset < 1 << 62):
        raise Corrupt(
            "offset of the data is wrong", path=start.path, where="vox_offset",
            expected=f"a whole number, {least} or more", got=offset,
        )  # fmt: skip
    return int(offset)


def _check_size(header: Header, data: Source, *, gzip: bool) -> None:
    """Refuse (`Corrupt`) a file that cannot hold the data."""
    end = header.offset + header.nbytes
    if gzip and end > MAX_RATIO * data.size:
        raise Corrupt("compressed data cannot hold the array", path=data.path,
                      expected=f"{end} bytes", got=f"at most {MAX_RATIO * data.size}")  # fmt: skip
    if not gzip and end > data.size:
        raise Corrupt("data is cut off", path=data.path, where=f"byte {data.size}",
                      expected=f"{header.nbytes} bytes of data from byte {header.offset}",
                      got=f"{max(0, data.size - header.offset)}")  # fmt: skip


def extensions_of(header: Header, start: Start, notes: list[str]) -> list[dict[str, Any]]:
    """Read the extensions between header and data, as codes and bytes; note anything else."""
    begin = LAYOUTS[header.version].nbytes
    most = start.source.limits.record_bytes
    end = begin + most if start.pair else header.offset
    if end <= begin + 4:
        return []
    data = start.read(min(end, begin + most))[begin:]
    end = begin + len(data) if start.pair else end
    word = "little" if start.order == "<" else "big"
    extensions, offset = [], 4
    while data[:1] not in (b"\0", b"") and offset + 8 <= len(data):
        size = int.from_bytes(data[offset : offset + 4], word)  # type: ignore[arg-type]
        code = int.from_bytes(data[offset + 4 : offset + 8], word)  # type: ignore[arg-type]
        if size < 8 or offset + size > len(data):
            break
        extensions.append({"code": code, "data": data[offset + 8 : offset + size].hex()})
        offset += size
    if start.pair and extensions and extensions[-1]["data"].startswith(MARK.encode().hex()):
        del extensions[-1]
    rest = end - begin - offset
    if rest > 15 or any(data[offset:]):
        notes.append(f"{rest} bytes between the header and the data were ignored")
    return extensions


def check_sealed(start: Start, data: Source) -> None:
    """Refuse (`Corrupt`) data of a pair that is not that which the header was written with."""
    text = start.read(LAYOUTS[2].nbytes + start.source.limits.record_bytes)
    seal = text[-SEAL_BYTES:]
    if seal.startswith(MARK.encode()):
        line = seal.rstrip(b"\0").decode("latin-1")
        check_seal(line, text[:-SEAL_BYTES] + bytes(SEAL_BYTES), data, start.path)


# --- writing --------------------------------------------------------------------------------------


def version_of(array: Array, asked: str, own: dict[str, Any]) -> int:
    """Return the version in which an array is written."""
    if asked != "auto":
        return int(asked)
    long = max(array.dims, default=0) > MAX_LENGTH_1
    return 2 if long or own.get("version") == 2 else 1


def datatype_of(element: Element) -> int | None:
    """Return the `datatype` of the elements, or None. Bools are numbers of a byte."""
    if element in (RGB, RGBA):
        return 128 if element == RGB else 2304
    kind = "uint" if element.kind == "bool" else element.kind
    return CODES.get((kind, element.nbytes))


def header_bytes(
    array: Array, version: int, known: dict[str, Any], extensions: list[dict[str, Any]],
    *, pair: bool = False,
) -> bytes:  # fmt: skip
    """Return everything before the data. Raises nothing for what `plan` lets pass."""
    layout = LAYOUTS[version]
    dims = array.dims or (1,)
    behind = b"\1\0\0\0" if extensions else bytes(4)
    for extension in extensions:
        data = bytes.fromhex(extension["data"])
        data += bytes(-(len(data) + 8) % 16)
        behind += (len(data) + 8).to_bytes(4, "little")
        behind += extension["code"].to_bytes(4, "little") + data
    fixed = {
        "sizeof_hdr": layout.nbytes,
        "magic": layout.pair if pair else layout.magic,
        "dim": [len(dims), *dims, *(known.get("dim") or (1,) * (MAX_RANK - len(dims)))],
        "datatype": datatype_of(array.element),
        "bitpix": 8 * array.element.nbytes,
        "vox_offset": 0 if pair else layout.nbytes + len(behind),
    }
    return field_bytes(layout, {**known, **fixed}) + behind


def field_bytes(layout: Layout, known: dict[str, Any]) -> bytes:
    """Return the bytes of all fields, little-endian; 0 for those without a value.

    Raises `struct.error`.
    """
    return b"".join(
        packed_field(code, count, known.get(name)) for name, code, count in layout.fields
    )
