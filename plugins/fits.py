"""FITS: images and tables of astronomy; images are written, too.

Specification: "Definition of the Flexible Image Transport System (FITS)", version 4.0. Compared
with: astropy.

Layout: header and data units (HDUs), each a header of cards of 80 characters in blocks of 2880
bytes, and data in blocks of 2880 bytes.

Reads: the primary HDU, IMAGE extensions and binary tables (BINTABLE). Images of integers and
floats lie in the file as they are, big-endian, and are mapped. Integers that BZERO makes unsigned
(or signed, of 8 bits) are that type exactly. Tables are one array of structures: numbers, complex
numbers, text, logical values and bits as bool, vectors of columns with TDIM, integers that TZERO
makes unsigned.

Mapping: row-major, with the lengths NAXISn reversed, as astropy has them. An array has the name of
EXTNAME, with ``,2`` for EXTVER 2, else PRIMARY or HDU and its number. BSCALE, BZERO and BLANK are
the attributes scale_factor, add_offset and _FillValue, applied by ``--unscale``; BUNIT is the unit.
CTYPEn, CUNITn, CDELTn, CRVALn and CRPIXn are name, unit, spacing and origin of an axis, if its
coordinate is linear and no axis is turned (PC, CD, CROTA). Else the keywords of the coordinates are
kept in ``wcs`` of the namespace ``fits``, and a note names them. All other keywords are attributes:
long strings (CONTINUE) and HIERARCH, too; COMMENT and HISTORY are lines of one text each. Columns
that have a scale (TSCALn, TZEROn) are as stored; ``columns`` of the namespace has their keywords.

Writes: images, big-endian, each in an HDU of its own with EXTNAME; one array without attributes of
the file is in the primary HDU. Unsigned integers get their BZERO; attributes with names in upper
case become keywords (HIERARCH for long ones), spacing and origin the linear coordinates of an axis.
DATASUM and CHECKSUM are written, unless ``checksum=no``.

Checked: DATASUM and CHECKSUM of every HDU, by ``raconvert verify``.

Refused: random groups. An HDU that is not read has its place, and the others are read: ASCII
tables, compressed tiles, columns of variable length, and what is damaged. Writing: complex numbers,
float16, texts and structures are refused; bool becomes uint8; labels of axes, a description, a
space and keywords that FITS cannot spell have no place (named as equivalent).
"""

from __future__ import annotations

import re
from math import isfinite, prod

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, needs_swap, spanned
from raconvert.declared import Record
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.copy import write_all
from raconvert.files.paths import write_failed
from raconvert.metadata.reals import is_real
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Axis,
    Bundle,
    Fit,
    Format,
    Metadata,
    Option,
    Plan,
    Source,
    element,
    equivalent,
    facts_of,
    facts_of_axes,
    fields_of_axes,
    file_fits,
    first_of,
    refused,
    refused_type,
    trailing_note,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Element, Target

__all__ = ["FORMAT", "check", "plan", "read", "sniff"]


# Cards and headers -------------------------------------------------------------------------------


NAMESPACE = "fits"
BLOCK, CARD = 2880, 80
MAGIC = b"SIMPLE  ="
ELEMENTS = {
    8: element("uint", 1), 16: element("int", 2, ">"), 32: element("int", 4, ">"),
    64: element("int", 8, ">"), -32: element("float", 4, ">"), -64: element("float", 8, ">"),
}  # fmt: skip
# BITPIX -> the BZERO that says the other signedness
OTHER_SIGN = {8: -128, 16: 1 << 15, 32: 1 << 31, 64: 1 << 63}
MAX_RANK = 64  # NumPy's; the standard has 999
TEXT_CARDS = ("COMMENT", "HISTORY", "")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([ED][+-]?\d+)?")
_STRING = re.compile(r"'((?:[^']|'')*)'")
_STRUCTURE = re.compile(
    r"SIMPLE|XTENSION|BITPIX|NAXIS\d*|EXTEND|PCOUNT|GCOUNT|GROUPS|END|CHECKSUM|DATASUM|EXTNAME|EXTVER"
    r"|BSCALE|BZERO|BLANK|BUNIT|TFIELDS|THEAP"
    r"|(?:TTYPE|TFORM|TUNIT|TNULL|TSCAL|TZERO|TDISP|TBCOL|TDIM)\d+"
)
_WCS = re.compile(
    r"(?:CTYPE|CUNIT|CDELT|CRVAL|CRPIX|CROTA)\d+[A-Z]?|(?:PC|CD|PV|PS)\d+_\d+[A-Z]?"
    r"|(?:WCSAXES|LONPOLE|LATPOLE|RADESYS|EQUINOX|WCSNAME)[A-Z]?"
)


class Unit(Record):
    """A header and data unit: its keywords, and where its header and data lie."""

    number: int
    cards: dict[str, Any]
    texts: dict[str, list[str]]
    start: int
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        """The place where the next HDU begins."""
        return self.offset + -(-self.nbytes // BLOCK) * BLOCK

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, the slowest first."""
        return tuple(self.cards[f"NAXIS{n}"] for n in range(self.cards["NAXIS"], 0, -1))


def _units(source: Source, notes: list[str]) -> Iterator[Unit]:
    """The HDUs of a file, headers only. Raises `Corrupt` and `TooLarge`."""
    at = number = 0
    while at < source.size:
        if number and source.read_at(at, 8) != b"XTENSION":
            notes.append(trailing_note(source.size - at, "the last HDU"))
            return
        if number >= source.limits.nodes:
            what = f"has more than {source.limits.nodes} HDUs"
            raise TooLarge(what, path=source.path, where=f"byte {at}")
        unit = _unit(source, at, number)
        yield unit
        at, number = unit.end, number + 1


def _unit(source: Source, start: int, number: int) -> Unit:
    cards: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    at, last, found = start, "", False
    while not found:
        if at - start >= source.limits.record_bytes:
            raise Corrupt("header has no end", path=source.path, where=f"byte {start}")
        block = source.read_exact(at, BLOCK, "a header")
        for place in range(0, BLOCK, CARD):
            card = block[place : place + CARD].decode("latin-1")
            if card[:8] == "END     ":
                found = True
                break
            last = _take(card, cards, texts, parts, last)
        at += BLOCK
    for name, pieces in parts.items():
        cards[name] = "".join(piece[:-1] for piece in pieces[:-1]) + pieces[-1]
    where = f"byte {start}, the header of HDU {number}"
    rank = _whole(source, cards, "NAXIS", where)
    if not 0 <= rank <= MAX_RANK:
        raise Unsupported(
            "has too many axes", path=source.path, where=where, expected=f"0 to {MAX_RANK}",
            got=rank,
        )  # fmt: skip
    lengths = [_whole(source, cards, f"NAXIS{n}", where) for n in range(1, rank + 1)]
    if cards.get("GROUPS") is True and lengths[:1] == [0]:
        raise Unsupported(
            "holds random groups", path=source.path, where=where,
            remedy="convert it first, in Python: astropy.io.fits.open(FILE)[0].data",
        )  # fmt: skip
    bits = _whole(source, cards, "BITPIX", where)
    if bits not in ELEMENTS:
        raise Corrupt(
            "has elements of no type", path=source.path, where=where,
            expected=f"BITPIX of {', '.join(map(str, ELEMENTS))}", got=bits,
        )  # fmt: skip
    more = _whole(source, cards, "PCOUNT", where) if "PCOUNT" in cards else 0
    groups = _whole(source, cards, "GCOUNT", where) if "GCOUNT" in cards else 1
    nbytes = (prod(lengths) + more) * groups * abs(bits) // 8 if rank else 0
    return Unit(number, cards, texts, start, at, nbytes)


def _whole(source: Source, cards: Mapping[str, Any], name: str, where: str) -> int:
    """A number of the structure; `Corrupt` if it is none."""
    value = cards.get(name)
    if type(value) is not int or (value < 0 and name != "BITPIX"):
        raise Corrupt(
            f"{name} is missing or not a number", path=source.path, where=where,
            expected="a whole number", got=str(value)[:40],
        )  # fmt: skip
    return value


def _take(
    card: str,
    cards: dict[str, Any],
    texts: dict[str, list[str]],
    parts: dict[str, list[str]],
    last: str,
) -> str:
    """Put a card into the keywords, and return its name, which a CONTINUE goes on with.

    `parts` takes the parts of long strings, all but the last of them with an & at the end.
    """
    name = card[:8].rstrip()
    if name == "CONTINUE":
        before = parts[last][-1] if last in parts else cards.get(last)
        if isinstance(before, str) and before.endswith("&"):
            parts.setdefault(last, [before]).append(str(_value(card[8:]) or ""))
            return last
    if name == "HIERARCH" and "=" in card:
        name, _, rest = card[9:].partition("=")
        name = name.strip()
    elif card[8:10] == "= " and name not in TEXT_CARDS:
        rest = card[10:]
    else:
        if text := card[8:].rstrip():
            texts.setdefault(name or "BLANK", []).append(text)
        return ""
    cards.setdefault(name, _value(rest))
    return name


def _value(text: str) -> Any:
    """The value of a card: text, bool, int, float, or the words that stand there."""
    text = text.strip()
    if found := _STRING.match(text):
        return found[1].replace("''", "'").rstrip()
    word = text.partition("/")[0].strip()
    if word in ("T", "F"):
        return word == "T"
    if _NUMBER.fullmatch(word):
        whole = word.lstrip("+-").isdigit()
        return int(word) if whole else float(word.replace("D", "E"))
    return word or None


# Reading -----------------------------------------------------------------------------------------


def _header(*cards: tuple[str, str]) -> bytes:
    lines = [f"{name:8}= {value:>20}".ljust(CARD).encode() for name, value in cards]
    return b"".join([*lines, b"END"]).ljust(-(-(len(lines) + 1) * CARD // BLOCK) * BLOCK)


_IMAGE = (("BITPIX", "16"), ("NAXIS", "2"), ("NAXIS1", "3"), ("NAXIS2", "2"))
_NUMBERS = bytes((0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6)).ljust(BLOCK, b"\0")
SAMPLES = {
    "two_by_three.fits": _header(("SIMPLE", "T"), *_IMAGE) + _NUMBERS,
    "image_and_table.fits": _header(
        ("SIMPLE", "T"), *_IMAGE, ("BZERO", "32768"), ("CTYPE1", "'WAVE'"), ("CDELT1", "0.5"),
        ("EXTNAME", "'SCI'"),
    ) + _NUMBERS + _header(
        ("XTENSION", "'BINTABLE'"), ("BITPIX", "8"), ("NAXIS", "2"), ("NAXIS1", "6"),
        ("NAXIS2", "2"), ("PCOUNT", "0"), ("GCOUNT", "1"), ("TFIELDS", "2"), ("TFORM1", "'J'"),
        ("TTYPE1", "'n'"), ("TFORM2", "'2A'"), ("TTYPE2", "'name'"),
    ) + b"\0\0\0\1ab\0\0\0\2cd".ljust(BLOCK, b"\0"),
}  # fmt: skip


FORMAT = Format(
    name="fits",
    title="FITS",
    suffixes=(".fits", ".fit", ".fts"),
    magic=((0, MAGIC),),
    proof=True,
    meta="some",
    holds=("names", "spacing", "scale", "units"),
    write_options=(Option("checksum", "yes", ("yes", "no"), "DATASUM and CHECKSUM"),),
    many=True,
    samples=SAMPLES,
    spec="https://fits.gsfc.nasa.gov/fits_standard.html",
    losses="images of integers, float32 and float64 are written; no labels, no lowercase keywords",
)


def sniff(source: Source) -> int:
    """Sure by the first keyword."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source) -> Bundle:
    """The images and tables of a file, each lazy; shapes in C order.

    Raises `Corrupt` and `Unsupported` before any data is read.
    """
    if not source.head.startswith(MAGIC):
        raise Corrupt(
            "is not a FITS file", path=source.path, where="byte 0", expected="SIMPLE  =",
            got=source.head[:9].hex(" ") or "nothing",
        )  # fmt: skip
    notes: list[str] = []
    arrays: list[Array] = []
    names: set[str] = set()
    attributes: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for unit in _units(source, notes):
        name = _name(unit, names)
        names.add(name)
        if unit.cards["NAXIS"] == 0:
            if unit.number == 0:
                attributes = _attributes(unit)
            else:
                groups[name] = _attributes(unit)
            continue
        try:
            arrays.append(_array(source, unit, name, notes))
        except RaconvertError as error:
            arrays.append(Array.unreadable(name, error))
    if not arrays:
        raise Unsupported("holds no data, only headers", path=source.path)
    return Bundle(some_sound(arrays), attributes=attributes, groups=groups, notes=notes)


def _name(unit: Unit, taken: set[str]) -> str:
    said = unit.cards.get("EXTNAME")
    usual = "HDU" + str(unit.number) if unit.number else "PRIMARY"
    name = said if isinstance(said, str) and said else usual
    version = unit.cards.get("EXTVER")
    if type(version) is int and version != 1:
        name = f"{name},{version}"
    return name if name not in taken else f"{name} (HDU {unit.number})"


def _attributes(unit: Unit) -> dict[str, Any]:
    """The keywords that are not about the structure or the coordinates."""
    found = {
        name: value
        for name, value in unit.cards.items()
        if name and not _STRUCTURE.fullmatch(name) and not _WCS.fullmatch(name)
    }
    return found | {name: "\n".join(lines) for name, lines in unit.texts.items()}


def _array(source: Source, unit: Unit, name: str, notes: list[str]) -> Array:
    kind = unit.cards.get("XTENSION", "IMAGE") if unit.number else "IMAGE"
    where = f"byte {unit.start}, HDU {unit.number} '{name}'"
    if kind == "BINTABLE" and unit.cards.get("ZIMAGE") is True:
        raise Unsupported(
            "holds an image in compressed tiles", path=source.path, where=where,
            remedy="unpack it first, for instance with: funpack FILE",
        )  # fmt: skip
    if kind not in ("IMAGE", "BINTABLE"):
        raise Unsupported(
            f"holds an extension {kind!r:.40}", path=source.path, where=where,
            expected="IMAGE or BINTABLE",
            remedy="read it in Python: astropy.io.fits.getdata(FILE, "f"{unit.number})",
        )  # fmt: skip
    if unit.nbytes > source.size - unit.offset:
        raise Corrupt(
            "data is cut off", path=source.path, where=where,
            expected=f"{unit.nbytes} bytes from byte {unit.offset}",
            got=max(0, source.size - unit.offset),
        )  # fmt: skip
    if kind == "BINTABLE":
        return _table(source, unit, name, notes, where)
    return _image(source, unit, name, notes, where)


def _image(source: Source, unit: Unit, name: str, notes: list[str], where: str) -> Array:
    cards = unit.cards
    bits, shape = cards["BITPIX"], unit.shape
    stored = ELEMENTS[bits]
    if spanned(shape, stored.nbytes) > MAX_SPAN:
        raise Corrupt("array is too large", path=source.path, where=where)
    slope, zero = cards.get("BSCALE", 1), cards.get("BZERO", 0)
    attributes = _attributes(unit)
    turned = bits in OTHER_SIGN and slope == 1 and zero == OTHER_SIGN[bits]
    blank = cards.get("BLANK")
    if not turned:
        attributes |= {"scale_factor": slope} if slope != 1 else {}
        attributes |= {"add_offset": zero} if zero != 0 else {}
    if type(blank) is int and bits > 0:
        attributes["_FillValue"] = blank + (zero if turned else 0)
    axes, own = _axes(unit, notes, name)
    units = cards.get("BUNIT")
    meta = Metadata(
        units=units if isinstance(units, str) and units else None, attributes=attributes,
        axes=axes, formats={NAMESPACE: own} if own else None,
    )  # fmt: skip
    extent = source.extent(unit.offset, unit.nbytes, needs_swap(stored))
    dims = shape[::-1]
    as_stored = Array(stored, dims, name=name, index_order="C", extent=extent, meta=meta)
    return _other_sign(as_stored, stored) if turned else as_stored


def _other_sign(array: Array, stored: Element) -> Array:
    """The array with the highest bit of each element turned: of the other signedness."""
    kind = element("int" if stored.kind == "uint" else "uint", stored.nbytes)

    def data() -> Any:
        import numpy as np

        from raconvert.arrays.cast import Converted

        unsigned = np.dtype(f"<u{stored.nbytes}")
        top = unsigned.type(1 << (8 * stored.nbytes - 1))

        turned = np.dtype(f"<{'u' if kind.kind == 'uint' else 'i'}{kind.nbytes}")

        def convert(block: Any, _: int) -> Any:
            return (np.asarray(block).astype(unsigned) ^ top).view(turned)

        return Converted(array, turned, convert)

    return Array(kind, array.dims, name=array.name, index_order="C", meta=array.meta, data=data)


def _axes(unit: Unit, notes: list[str], name: str) -> tuple[list[Axis], dict[str, Any]]:
    """Axes in the order of the shape, if their coordinates are linear; else the keywords."""
    cards, rank = unit.cards, unit.cards["NAXIS"]
    said = {key: value for key, value in cards.items() if _WCS.fullmatch(key)}
    if not said:
        return [], {}
    simple = re.compile(r"(?:CTYPE|CUNIT|CDELT|CRVAL|CRPIX)(\d+)")
    of_axes = [found for key in said if (found := simple.fullmatch(key))]
    linear = len(of_axes) + ("WCSAXES" in said) == len(said)
    linear = linear and all(1 <= int(found[1]) <= rank for found in of_axes)
    axes = []
    for n in range(rank, 0, -1):
        kind, step = said.get(f"CTYPE{n}", ""), said.get(f"CDELT{n}", 1.0)
        value, pixel = said.get(f"CRVAL{n}", 0.0), said.get(f"CRPIX{n}", 0.0)
        text = isinstance(kind, str) and isinstance(said.get(f"CUNIT{n}", ""), str)
        numbers = all(type(one) in (int, float) and isfinite(one) for one in (step, value, pixel))
        # Four letters, a hyphen and a projection: not linear.
        if not (text and numbers and step) or re.match(r".{4}-", kind):
            linear = False
            break
        places = any(f"{key}{n}" in said for key in ("CDELT", "CRVAL", "CRPIX"))
        axes.append(
            Axis(
                kind or None,
                units=said.get(f"CUNIT{n}") or None,
                spacing=float(step) if places else None,
                origin=float(value + (1 - pixel) * step) if places else None,
            )
        )
    if linear:
        return axes, {}
    notes.append(
        f"array '{name}': the coordinates are kept as keywords and not applied: "
        f"{', '.join([*said][:6])}{' ...' if len(said) > 6 else ''}"
    )
    return [], {"wcs": said}


# Tables ------------------------------------------------------------------------------------------


_FORM = re.compile(r"(\d*)([LXBIJKAEDCMPQ])(.*)")
_CODES = {"B": "u1", "I": "i2", "J": "i4", "K": "i8", "E": "f4", "D": "f8", "C": "c8", "M": "c16"}
_BITS_OF = {"B": 8, "I": 16, "J": 32, "K": 64}


class Column(Record):
    """A column: its name, code, place in a row, and what it becomes."""

    name: str
    code: str
    start: int
    count: int
    shape: tuple[int, ...]
    turned: bool


def _table(source: Source, unit: Unit, name: str, notes: list[str], where: str) -> Array:
    from raconvert.arrays.dtypes import element_of

    cards = unit.cards
    if cards["BITPIX"] != 8 or cards["NAXIS"] != 2:
        raise Corrupt(
            "table is not of bytes in rows", path=source.path, where=where,
            expected="BITPIX 8, NAXIS 2", got=f"BITPIX {cards['BITPIX']}, NAXIS {cards['NAXIS']}",
        )  # fmt: skip
    width, rows = cards["NAXIS1"], cards["NAXIS2"]
    columns, own = _columns(source, unit, where)
    used = sum(_width(column) for column in columns)
    if used != width or not width:
        raise Corrupt(
            "columns do not fill the rows", path=source.path, where=where,
            expected=f"{width} bytes", got=used,
        )  # fmt: skip
    import numpy as np

    dtype = np.dtype([_field(column) for column in columns if column.count])
    scaled = [key for key in own if key.startswith(("TSCAL", "TZERO"))]
    if scaled:
        notes.append(
            f"array '{name}': columns are as stored; the header says of them: "
            f"{', '.join(scaled[:6])}"
        )
    meta = Metadata(
        attributes=_attributes(unit), formats={NAMESPACE: {"columns": own}} if own else None
    )
    raw = Array(
        element("uint", 1), (width, rows), name=name, index_order="C",
        extent=source.extent(unit.offset, width * rows),
    )  # fmt: skip
    return Array(
        element_of(dtype), (rows,), name=name, index_order="C", meta=meta,
        data=lambda: _Rows(raw, dtype, _decoder(columns, dtype, source.path, where)),
    )  # fmt: skip


def _columns(source: Source, unit: Unit, where: str) -> tuple[list[Column], dict[str, Any]]:
    cards = unit.cards
    count = _whole(source, cards, "TFIELDS", where)
    if not 0 < count <= 999:
        raise Corrupt(
            "has no columns, or too many", path=source.path, where=where, expected="1 to 999",
            got=count,
        )  # fmt: skip
    columns: list[Column] = []
    own: dict[str, Any] = {}
    names: set[str] = set()
    at = 0
    for n in range(1, count + 1):
        form = cards.get(f"TFORM{n}")
        found = _FORM.match(form) if isinstance(form, str) else None
        if found is None or len(found[1]) > 18:
            raise Corrupt(
                f"TFORM{n} is missing or malformed", path=source.path, where=where,
                expected="a count and a letter", got=str(form)[:40],
            )  # fmt: skip
        said = cards.get(f"TTYPE{n}")
        name = said if isinstance(said, str) and said else f"col{n}"
        name = name if name not in names else f"{name}_{n}"
        names.add(name)
        repeat, code = int(found[1] or 1), found[2]
        if code in "PQ":
            raise Unsupported(
                f"column {n} '{name}' has a length of its own in each row (TFORM {form})",
                path=source.path, where=where, expected="columns of one width",
                remedy=f"read it in Python: astropy.io.fits.getdata(FILE, {unit.number})",
            )  # fmt: skip
        slope, zero = cards.get(f"TSCAL{n}", 1), cards.get(f"TZERO{n}", 0)
        bits = _BITS_OF.get(code)
        turned = slope == 1 and bits is not None and zero == OTHER_SIGN[bits]
        if not turned and (slope != 1 or zero != 0):
            own |= {key: cards[key] for key in (f"TSCAL{n}", f"TZERO{n}") if key in cards}
        for key in (f"TUNIT{n}", f"TNULL{n}", f"TDISP{n}"):
            own |= {key: cards[key]} if key in cards else {}
        shape = _dim(cards.get(f"TDIM{n}"), repeat, code)
        columns.append(Column(name, code, at, repeat, shape, turned))
        at += _width(columns[-1])
        if at > cards["NAXIS1"]:
            break
    return columns, own


def _width(column: Column) -> int:
    if column.code == "X":
        return (column.count + 7) // 8
    return column.count * (1 if column.code in "AL" else int(_CODES[column.code][1:]))


def _dim(text: Any, count: int, code: str) -> tuple[int, ...]:
    """The shape of each cell, the slowest first; of text with the characters as the last."""
    words = re.fullmatch(r"\(([\d, ]{1,200})\)", text.strip()) if isinstance(text, str) else None
    lengths = [int(word) for word in words[1].split(",") if word.strip()][::-1] if words else []
    if lengths and prod(lengths) == count and len(lengths) <= MAX_RANK // 2:
        return tuple(lengths)
    return (count,) if code == "A" or count != 1 else ()


def _field(column: Column) -> tuple[Any, ...]:
    """The field of a structure that a column becomes."""
    shape = column.shape
    if column.code == "A":
        return (column.name, f"S{shape[-1]}", shape[:-1])
    code = "?" if column.code in "LX" else "<" + _CODES[column.code]
    if column.turned:
        code = "i1" if column.code == "B" else code.replace("i", "u")
    return (column.name, code, shape)


def _decoder(columns: list[Column], dtype: Any, path: str, where: str) -> Callable[[Any], Any]:
    """The function that makes structures of rows of bytes."""
    import numpy as np

    def decode(rows: Any) -> Any:
        out = np.empty(len(rows), dtype)
        for column in columns:
            if not column.count:
                continue
            raw = np.ascontiguousarray(rows[:, column.start : column.start + _width(column)])
            shape = (len(rows), *column.shape)
            if column.code == "A":
                values = raw.view(f"S{column.shape[-1]}").reshape(shape[:-1])
            elif column.code == "X":
                values = np.unpackbits(raw, axis=1, count=column.count).astype("?").reshape(shape)
            elif column.code == "L":
                if not np.isin(raw, (84, 70)).all():
                    raise Unsupported(
                        f"column '{column.name}' has logical values that are neither T nor F",
                        path=path, where=where, expected="T or F", got="missing values",
                    )  # fmt: skip
                values = (raw == 84).reshape(shape)
            else:
                values = raw.view(">" + _CODES[column.code]).reshape(shape)
                if column.turned:
                    bits = _BITS_OF[column.code]
                    values = values.astype(f"u{bits // 8}") ^ np.uint64(1 << (bits - 1)).astype(
                        f"u{bits // 8}"
                    )
                    values = values.view("i1") if column.code == "B" else values
            out[column.name] = values
        return out

    return decode


class _Rows:
    """Array source: rows of a table, decoded from their bytes."""

    def __init__(self, raw: Array, dtype: Any, decode: Callable[[Any], Any]) -> None:
        self.shape = (raw.dims[1],)
        self.dtype = dtype
        self._raw = raw
        self._decode = decode

    def stream(self, max_bytes: int) -> Iterator[Any]:
        """Yield rows in order, in pieces of at most `max_bytes`."""
        width = max(self._raw.dims[0], self.dtype.itemsize, 1)
        step = max(1, max_bytes // width)
        for first in range(0, self.shape[0], step):
            yield self[first : first + step]

    def __getitem__(self, key: Any) -> Any:
        key = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if key is Ellipsis or key == ():
            key = slice(None)
        if isinstance(key, slice):
            return self._decode(self._raw[key])
        return self._decode(self._raw[key][None])[0]


# Writing -----------------------------------------------------------------------------------------


KEYWORD = re.compile(r"[A-Z0-9_-]{1,8}")
LONG_KEYWORD = re.compile(r"[A-Z0-9_-]+(?: [A-Z0-9_-]+)*")
MAX_TEXT = 67  # characters of the text of one card, with an & that goes on
BITPIX = {(e.kind, e.nbytes): bits for bits, e in ELEMENTS.items()}
OTHERS = {
    ("int" if ELEMENTS[bits].kind == "uint" else "uint", ELEMENTS[bits].nbytes): bits
    for bits in OTHER_SIGN
}
SCALE = {"scale_factor": "BSCALE", "add_offset": "BZERO", "_FillValue": "BLANK"}


class _Made(Record):
    """The cards of an image beside those of its structure, its BITPIX, and what is lost."""

    cards: list[str]
    bits: int
    lost: list[str]


def plan(bundle: Bundle, *, checksum: str = "yes") -> Plan:
    """Headers with what they hold of the metadata, and the elements, big-endian."""
    fits: list[Fit] = []
    names: set[str] = set()
    for array in bundle.arrays:
        fits += _fits(array, names)
        names.add(array.name)
    cards, lost = _cards_of(bundle.attributes)
    rest = bundle.like(bundle.arrays)
    rest.attributes = {name: bundle.attributes[name] for name in lost}
    fits += file_fits(rest, "FITS")
    return Plan(
        fits, lambda target: _write(bundle, cards, target, checksum == "yes"), names=bundle.names
    )


def _fits(array: Array, names: set[str]) -> list[Fit]:
    name, fits = array.name, []
    if not _is_text(name) or len(name.replace("'", "''")) > MAX_TEXT or not name:
        fits.append(refused(name, "names", "no text that EXTNAME holds: ASCII, in one card"))
    elif name in names:
        fits.append(refused(name, "names", "the name is used twice"))
    kind = (array.element.kind, array.element.nbytes)
    if array.element.kind == "bool":
        fits.append(equivalent(name, "type", "bool becomes uint8"))
    elif kind not in BITPIX and kind not in OTHERS:
        fits.append(refused_type(array, "FITS", "float64"))
    if array.ndim > MAX_RANK or spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", f"more than {MAX_RANK} axes, or 2**63 bytes"))
    elif not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    if array.described and array.meta and (lost := _made(array).lost):
        fits.append(equivalent(name, "metadata", f"not kept: {', '.join(lost)}"))
    return fits


def _made(array: Array) -> _Made:
    """The header of an image. Raises nothing for what `plan` lets pass."""
    kind = (array.element.kind, array.element.nbytes)
    bits = 8 if array.element.kind == "bool" else BITPIX.get(kind, OTHERS.get(kind, 8))
    turned = kind in OTHERS
    meta = array.meta if array.described else Metadata()
    scale, others = _scale_of(meta.attributes, bits, turned)
    cards, lost_names = _cards_of(others)
    if turned:
        scale["BZERO"] = OTHER_SIGN[bits]
    found = [_written(name, value) for name, value in scale.items()]
    lost = []
    if meta.units and _is_text(meta.units) and len(meta.units.replace("'", "''")) <= MAX_TEXT:
        found.append(_written("BUNIT", meta.units))
    elif meta.units:
        lost.append("units")
    by_axis = []
    for n, axis in enumerate(array.ra_axes if array.described else (), 1):
        of_axis, lost_of_axis = _of_axis(axis, n)
        found += of_axis
        by_axis.append(lost_of_axis)
    lost += facts_of_axes(array, by_axis) if by_axis else []
    if lost_names:
        lost.append(f"attributes ({first_of(lost_names, 10)})")
    own = meta.formats.get(NAMESPACE)
    lost += [f"fits {key}" for key in own] if isinstance(own, dict) else []
    if array.described:
        lost += facts_of(array, "units", "axes", "attributes", NAMESPACE)
    return _Made([*found, *cards], bits, lost)


def _scale_of(
    attributes: Mapping[str, Any], bits: int, turned: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cards of a scale, and the other attributes."""
    others = dict(attributes)
    scale: dict[str, Any] = {}
    for name, card in SCALE.items():
        value = attributes.get(name)
        if type(value) not in (int, float) or not isfinite(value):
            continue
        # With BZERO for the sign, BLANK is a number that astropy does not read.
        fine = not turned and (card != "BLANK" or (bits > 0 and type(value) is int))
        if fine:
            scale[card] = value
            del others[name]
    if (
        bits in OTHER_SIGN
        and scale.get("BSCALE", 1) == 1
        and scale.get("BZERO") == OTHER_SIGN[bits]
    ):
        others["add_offset"] = attributes["add_offset"]  # it would say another signedness
        del scale["BZERO"]
    for card, usual in (("BSCALE", 1), ("BZERO", 0)):
        if scale.get(card) == usual:
            del scale[card]
    return scale, others


def _of_axis(axis: Axis, n: int) -> tuple[list[str], list[str]]:
    """The cards of an axis, and its fields that are lost."""
    cards, lost = [], fields_of_axes([axis], "kind", "labels", "direction")
    name, units = axis.name or "", axis.units or ""
    short = all(_is_text(one) and len(one.replace("'", "''")) <= MAX_TEXT for one in (name, units))
    if not short or re.match(r".{4}-", name):
        lost += fields_of_axes([axis], "name", "units")
        name = units = ""
    cards += [_written(f"CTYPE{n}", name)] if name else []
    cards += [_written(f"CUNIT{n}", units)] if units else []
    step, first = axis.spacing, axis.origin
    if not is_real(step) or not step:
        return cards, lost + fields_of_axes([axis], "spacing", "origin")
    if not is_real(first):
        lost.append("origin unknown: written as 0")
        first = 0.0
    cards.append(_written(f"CRPIX{n}", 1.0))
    cards.append(_written(f"CDELT{n}", float(step or 0)))
    cards.append(_written(f"CRVAL{n}", float(first or 0)))
    return cards, lost


def _is_text(text: str) -> bool:
    """True for what a card can hold and a reader gives back."""
    return text.isascii() and (text.isprintable() or not text) and text == text.rstrip()


def _cards_of(attributes: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The cards of attributes, and the names of those that have none."""
    cards, lost = [], []
    for name, value in attributes.items():
        taken = _STRUCTURE.fullmatch(name) or _WCS.fullmatch(name) or name in ("", "CONTINUE")
        if name in ("COMMENT", "HISTORY") and isinstance(value, str):
            lines = value.split("\n")
            fine = all(_is_text(line) and 0 < len(line) <= CARD - 8 for line in lines)
            made = [f"{name:8}{line}" for line in lines] if fine else []
        elif taken or name in TEXT_CARDS or name == "HIERARCH":
            made = []
        elif KEYWORD.fullmatch(name):
            made = _long(name, value) if isinstance(value, str) else _one_card(name, value)
        elif LONG_KEYWORD.fullmatch(name) and len(name) < 40:
            made = _one_card(f"HIERARCH {name}", value)
        else:
            made = []
        cards += made
        lost += [] if made else [name]
    return cards, lost


def _one_card(name: str, value: Any) -> list[str]:
    if type(value) is bool or type(value) is int or (type(value) is float and isfinite(value)):
        card = _written(name, value)
        return [card] if len(card) <= CARD else []
    if isinstance(value, str) and _is_text(value):
        card = _written(name, value)
        return [card] if len(card) <= CARD and not value.endswith("&") else []
    return []


def _long(name: str, text: str) -> list[str]:
    """A text in one card, or in as many as it needs."""
    if not _is_text(text) or text.endswith("&"):
        return []
    pieces, piece = [], ""
    for letter in text:
        if len(piece.replace("'", "''")) + (2 if letter == "'" else 1) > MAX_TEXT:
            pieces.append(piece)
            piece = ""
        piece += letter
    pieces.append(piece)
    texts = [f"{one}&" for one in pieces[:-1]] + pieces[-1:]
    quoted = ["'" + one.replace("'", "''") + "'" for one in texts]
    return [f"{name:8}= {quoted[0]}", *(f"CONTINUE  {one}" for one in quoted[1:])]


def _written(name: str, value: Any) -> str:
    """A card with a value; numbers read back as they are."""
    if isinstance(value, str):
        word = "'" + value.replace("'", "''").ljust(8) + "'"
    elif isinstance(value, bool):
        word = f"{'T' if value else 'F':>20}"
    else:
        word = f"{repr(value).upper():>20}"
    return f"{name:8}= {word}"


def _structure(array: Array, number: int, bits: int) -> list[str]:
    dims = array.dims or (1,)
    first = ("SIMPLE", True) if number == 0 else ("XTENSION", "IMAGE")
    rows = [first, ("BITPIX", bits), ("NAXIS", len(dims))]
    rows += [(f"NAXIS{n}", length) for n, length in enumerate(dims, 1)]
    rows += [("EXTEND", True)] if number == 0 else [("PCOUNT", 0), ("GCOUNT", 1)]
    return [_written(name, value) for name, value in [*rows, ("EXTNAME", array.name)]]


def _write(bundle: Bundle, cards: list[str], target: Target, checksum: bool) -> None:
    file = target.open()
    try:
        number = 0
        if cards or len(bundle.arrays) != 1:
            rows = [("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 0), ("EXTEND", True)]
            _write_unit(file, [*(_written(*row) for row in rows), *cards], None, target, checksum)
            number = 1
        for array in bundle.arrays:
            made = _made(array)
            header = [*_structure(array, number, made.bits), *made.cards]
            _write_unit(file, header, _as_stored(array), target, checksum)
            number += 1
    except OSError as error:
        raise write_failed(target.path, error) from error


def _as_stored(array: Array) -> Array:
    """The array of which the bytes are those of the file."""
    from raconvert.arrays.reinterpret import big_endian

    kind = (array.element.kind, array.element.nbytes)
    stored = _other_sign(array, array.element) if kind in OTHERS else array
    return big_endian(stored)


def _write_unit(
    file: FileIO, cards: list[str], array: Array | None, target: Target, checksum: bool
) -> None:
    """Write a header, the elements and what fills their last block; then the sums."""
    from raconvert.arrays.blocks import block_bytes, blocks

    start = file.tell()
    header = _padded(cards, checksum, None)
    write_all(file, [header])
    total, length, rest = 0, 0, b""
    if array is not None:
        for block in target.counted(blocks(array, block_bytes(target.max_memory))):
            data = block.reshape(-1).view("u1")
            write_all(file, [data])
            length += data.nbytes
            if checksum:
                total, rest = _added(total, rest, data)
        write_all(file, [bytes(-length % BLOCK)])
    if checksum:
        total = _added(total, rest + bytes(-len(rest) % 4), None)[0]
        end = file.tell()
        file.seek(start)
        write_all(file, [_padded(cards, checksum, total)])
        file.seek(end)


def _added(total: int, rest: bytes, data: Any) -> tuple[int, bytes]:
    """The sum with the whole words of bytes, and the bytes that are left."""
    import numpy as np

    if data is None:
        words = np.frombuffer(rest, ">u4")
        return _folded(total + int(words.sum(dtype=np.uint64))), b""
    if rest:
        missing = min(4 - len(rest), data.size)
        rest, data = rest + data[:missing].tobytes(), data[missing:]
        if len(rest) < 4:
            return total, rest
        total = _folded(total + int.from_bytes(rest, "big"))
    whole = data.size // 4 * 4
    total = _folded(total + int(data[:whole].view(">u4").sum(dtype=np.uint64)))
    return total, data[whole:].tobytes()


def _padded(cards: list[str], checksum: bool, total: int | None) -> bytes:
    """The blocks of a header; with `total`, the sum of the data, its sums are worked out."""

    def made(encoded: str) -> bytes:
        sums = [f"CHECKSUM= '{encoded}'", f"DATASUM = '{total or 0:<10}'"] if checksum else []
        lines = [line.ljust(CARD) for line in [*cards, *sums, "END"]]
        text = "".join(lines).encode("ascii")
        return text.ljust(-(-len(text) // BLOCK) * BLOCK)

    zero = made("0" * 16)
    if total is None or not checksum:
        return zero
    whole = _added(total, zero, None)[0]
    return made(_encoded(0xFFFFFFFF - whole))


def _encoded(value: int) -> str:
    """A sum as 16 letters and digits, whose own sum is the value."""
    letters = [0] * 16
    for place in range(4):
        byte = value >> (24 - 8 * place) & 0xFF
        four = [byte // 4 + 48 + (byte % 4 if n == 0 else 0) for n in range(4)]
        while any(58 <= one <= 64 or 91 <= one <= 96 for one in four):
            for n in (0, 2):
                if any(58 <= one <= 64 or 91 <= one <= 96 for one in four[n : n + 2]):
                    four[n], four[n + 1] = four[n] + 1, four[n + 1] - 1
        for n, one in enumerate(four):
            letters[4 * n + place] = one
    return "".join(map(chr, [letters[-1], *letters[:-1]]))


# Checksums ---------------------------------------------------------------------------------------


def check(source: Source) -> None:
    """Compare DATASUM and CHECKSUM of every HDU with its bytes. Raises `Corrupt`."""
    for unit in _units(source, []):
        cards = unit.cards
        where = f"byte {unit.start}, HDU {unit.number}"
        if not {"DATASUM", "CHECKSUM"} & cards.keys() or unit.end > source.size:
            continue
        of_data = _sum(source, unit.offset, unit.end)
        said = str(cards.get("DATASUM", "")).strip()
        if said.isdigit() and int(said) != of_data:
            raise Corrupt(
                "data has another sum than DATASUM says", path=source.path, where=where,
                expected=said, got=of_data,
                remedy="get the file anew from where it comes from",
            )  # fmt: skip
        if str(cards.get("CHECKSUM", "")).strip():
            whole = _folded(_sum(source, unit.start, unit.offset) + of_data)
            if whole not in (0, 0xFFFFFFFF):
                raise Corrupt(
                    "HDU has another sum than CHECKSUM says", path=source.path, where=where,
                    expected="a sum of -0", got=f"{whole:#x}",
                    remedy="get the file anew from where it comes from",
                )  # fmt: skip


def _sum(source: Source, start: int, end: int) -> int:
    """The ones' complement sum of the words of 4 bytes."""
    import numpy as np

    total, step = 0, 1 << 20
    for at in range(start, end, step):
        data = source.read_exact(at, min(step, end - at), "an HDU")
        total = _folded(total + int(np.frombuffer(data, ">u4").sum(dtype=np.uint64)))
    return total


def _folded(total: int) -> int:
    while total >> 32:
        total = (total & 0xFFFFFFFF) + (total >> 32)
    return total
