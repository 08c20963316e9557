r"""HAR: GEMPACK header array files (.har .prm .upd .shk .sl4), read and write.

Specification: none is published; the layout was decoded from files by GEMPACK 7 to 12.1, ViewHAR,
AggHAR, HARr, harpy and equilibria. Compared with: harpy3 in both directions, where it is correct.

A file is a sequence of Fortran records (`records`): a header record, four characters of name, and
the records that belong to it, each of which begins with four blanks (`layout`). There is no magic,
no version and no table of contents; the file is indexed once by its record marks, and data is read
when it is asked for, record by record in bounded memory.

Reads: types 1C (strings), 2I, 2R (matrices of int32, float32), RE, RL (float32 up to 7 dimensions,
with and without sets), full and sparse storage, data split over any number of records, little- and
big-endian and Lahey framing. Files are recognised by their first two records, whatever the suffix.

Mapping: index order F, element [i,j] of the GEMPACK array is element [i,j]. Names as stored,
without the blanks around them, case kept. RE: rank as declared (a scalar has shape (), a set of
one element is an axis); RL: trailing dimensions of size 1 are dropped; 2I and 2R stay matrices.
1C becomes byte strings of its width; the blanks behind them are padding, as are NULs, and come as
NULs, which is the padding of such strings here and elsewhere. The long name is `description`; set
names and labels are names and labels of the axes, as Latin-1 text, since nobody declares an
encoding; set names ``Unk1``, ``Unk2``, … of dimensions without labels are placeholders, no names.
The namespace ``har`` holds type, storage, coefficient name, and whatever a file has otherwise than
it would be written here: where records are split, odd counters, logicals, blanks in names.

Headers whose name begins with XX (creation date, history) are housekeeping: they stay in the
namespace of the file and come back when HAR is written; ``housekeeping=show`` makes them arrays.

Writes: what GEMPACK reads: little-endian marks, full data in parts of 7996 values, sparse data of
3996, strings of 29,996 bytes, each set of an array once. A HAR file that was read and not changed
is written back byte for byte, also by way of a bundle; what a file stores against its own rules
(explicit zeros in sparse data, parts in no order, NULs behind strings) comes back in the usual
form. Sparse storage is chosen as GEMPACK 12.1 does it, below 60 % of nonzero values, unless the
source says how it was.
float32 and float16 become RE; int32 of up to two axes 2I; smaller integers and bools 2I, or RE if
they have more axes or labels; other numbers need --dtype. Lists of byte strings become 1C, padded
with blanks; a string that ends with a blank would not come back, which stops the conversion
(--allow elements leaves such blanks out). Unicode becomes Latin-1 (--allow dtype).

Names become up to four letters or digits, unique without regard to case; the original is kept as
coefficient and long name. Sets: an axis with labels becomes a known set, one without an unlabelled
dimension. Labels that are no text of up to 12 Latin-1 characters are shortened, and it is said.

Refused: data types DE and DL and unknown ones (``unknown=skip`` leaves them out with a note);
records whose marks differ, lengths and counts that contradict each other, parts that leave a gap or
overlap, sparse positions that do not increase, repeated names; JSON archives of browsers and
GEMPACK text files, which share the suffixes. Counters may be wrong: some writers get them wrong.
"""

from __future__ import annotations

from functools import partial

from raconvert.errors import Corrupt, NotSupportedYet
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Element,
    Fit,
    Format,
    Metadata,
    Option,
    Source,
    element,
    refused,
)

from .layout import FULL, SECOND_BYTES, SIZES, SPARSE, TEXT, TYPES, text
from .records import BIG, BLANKS, LAHEY, LITTLE, Records, framing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

    from .headers import Header

__all__ = ["FORMAT", "fits", "names", "read", "sniff", "write"]

NAMESPACE = "har"
MAX_RAW_BYTES = 1 << 16  # of a housekeeping header that is no text, kept as bytes
MAX_TEXT_BYTES = 4 << 20  # of one that is text

# One header as GEMPACK writes it: a vector over the set REG, 1.5 and -2.
_SAMPLE = bytes.fromhex(
    "04000000" "56445f31" "04000000"
    "70000000" "20202020" "5245" "46554c4c"
) + b"Two values".ljust(70) + bytes.fromhex(
    "07000000" "02000000" "010000000100000001000000010000000100000001000000" "70000000"
    "35000000" "20202020" "01000000" "01000000" "01000000"
) + b"VALUE".ljust(12) + bytes.fromhex("01000000") + b"REG".ljust(12) + bytes.fromhex(
    "6b" "00000000" "00000000" "35000000"
    "28000000" "20202020" "010000000200000002000000"
) + b"EU".ljust(12) + b"ROW".ljust(12) + bytes.fromhex(
    "28000000"
    "28000000" "20202020" "03000000" "07000000"
    "02000000010000000100000001000000010000000100000001000000" "28000000"
    "40000000" "20202020" "02000000"
    "0100000002000000" "0100000001000000" "0100000001000000" "0100000001000000"
    "0100000001000000" "0100000001000000" "0100000001000000" "40000000"
    "10000000" "20202020" "01000000" "0000c03f" "000000c0" "10000000"
)  # fmt: skip

FORMAT = Format(
    name="har",
    title="GEMPACK HAR",
    suffixes=(".har", ".prm", ".upd", ".shk", ".sl4"),
    many=True,
    meta="some",
    index_orders="F",
    read_options=(
        Option("housekeeping", "hide", ("hide", "show"), "show headers XX* as arrays"),
        Option("unknown", "refuse", ("refuse", "skip"), "leave out headers of unknown types"),
    ),
    write_options=(
        Option("storage", "auto", ("auto", "full", "sparse"), "auto: as the source, or GEMPACK's"),
        Option("framing", "auto", ("auto", LITTLE, BIG, LAHEY), "auto: as the source, or little"),
    ),
    samples={"two_values.har": _SAMPLE},
    spec="no public one; see the docstring of raconvert.plugins.har",
    losses="float32, int32 (matrices) and strings only; 7 axes; names of 4 characters; labels, "
    "set and coefficient names of 12, descriptions of 70; no other metadata",
)


def sniff(source: Source) -> int:
    """Sure if the first two records are a name and what follows it; no at the first oddity."""
    framing = framing_of(source.head)
    if framing is None:
        return NO
    records = Records(source, _Head(source), framing)
    try:
        name = records.at(records.first, "")
        second = records.at(name.end, "") if name.end < source.size else None
    except Corrupt:
        return MAYBE if _is_text(source.head[records.first :][:12]) else NO
    if name.head == BLANKS or not text(name.head).isprintable():
        return NO
    if second is None:
        return MAYBE
    kind, storage = text(second.head[4:6]), text(second.head[6:10])
    known = storage in (FULL, SPARSE) and second.head[:4] == BLANKS
    if not known or second.nbytes < SECOND_BYTES:
        return NO
    if kind in SIZES:
        return SURE if second.nbytes == SECOND_BYTES + 4 * SIZES[kind] else NO
    return SURE if kind.isalnum() else NO


def _is_text(head: bytes) -> bool:
    """Tell whether a name stands where it must in a file that is cut off or damaged there."""
    return len(head) == 12 and text(head[4:8]).strip().isalnum()


class _Head:
    """The source as the file that records are looked up in; it opens nothing that it keeps."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._place = 0

    def seek(self, offset: int) -> None:
        self._place = offset

    def read(self, nbytes: int) -> bytes:
        return self._source.read_at(self._place, nbytes)


# --- reading --------------------------------------------------------------------------------------


def read(source: Source, *, housekeeping: str = "hide", unknown: str = "refuse") -> Bundle:
    """Return the headers of a file in its order, data not yet read.

    Shape: that of the GEMPACK array; index order F. Raises `Corrupt` for anything damaged,
    `Unsupported` for unknown data types, `NotSupportedYet` for JSON and GEMPACK text.
    """
    from .headers import index

    framing = framing_of(source.head)
    if framing is None:
        raise _foreign(source)
    with source.open() as file:
        headers = index(source, framing, file, skip_unknown=unknown == "skip")
        notes = _alike(headers)
        shown: list[Header] = []
        hidden = []
        for header in headers:
            if header.type not in TYPES:
                kept = _left_out(header, notes)
            elif header.hidden and housekeeping == "hide":
                kept = _housekeeping(source, file, framing, header, notes)
            else:
                shown.append(header)
                continue
            if kept is not None:
                hidden.append({"before": len(shown), **kept})
    space: dict[str, Any] = {}
    if framing != LITTLE:
        space["framing"] = framing
    if hidden:
        space["hidden"] = hidden
    if housekeeping == "show":
        space["housekeeping"] = "shown"
    arrays = [_array(source, framing, header) for header in shown]
    return Bundle(arrays, formats={NAMESPACE: space} if space else {}, notes=notes)


def _alike(headers: list[Header]) -> list[str]:
    """Note names that GEMPACK does not tell apart."""
    seen: dict[str, str] = {}
    found = []
    for header in headers:
        first = seen.setdefault(header.name.upper(), header.name)
        if first != header.name:
            found.append(f"headers '{first}' and '{header.name}' are one name to GEMPACK")
    return found


def _foreign(source: Source) -> Corrupt | NotSupportedYet:
    """Return the error for a file that is no HAR, naming what it is where that can be seen."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"{", b"["):
        web = b'"log"' in head
        return NotSupportedYet(
            f"is {'an HTTP archive of a browser' if web else 'a file'} in JSON, "
            "which only shares the suffix with GEMPACK",
            path=source.path,
            where="byte 0",
        )
    if (
        head
        and b"\0" not in head
        and all(32 <= byte < 127 or byte in b"\t\r\n\f\x1a" for byte in head)
    ):
        return NotSupportedYet(
            "is a text file; GEMPACK's text form of header arrays is not supported yet",
            path=source.path,
            where="byte 0",
            remedy="turn it into a header array file first, with GEMPACK's TXT2HAR or ViewHAR",
        )
    return Corrupt(
        "is no GEMPACK header array file",
        path=source.path,
        where="byte 0",
        expected="a record of 4 bytes, the name of a header (marks 04000000, 00000004 or fd10)",
        got=source.head[:12].hex() or "an empty file",
    )


def _array(source: Source, framing: str, header: Header) -> Array:
    order = ">" if framing == BIG else "<"
    kind = header.type
    if kind == TEXT:
        width = header.sizes[1]
        made = Element("user", width, "|", f"|S{width}")
    else:
        made = element("int" if kind == "2I" else "float", 4, order)
    found = Array(
        made,
        header.dims,
        name=header.name,
        index_order="F",
        meta=Metadata(
            description=header.long.rstrip(" ") or None,
            axes=header.axes,
            formats={NAMESPACE: header.own},
        ),
        storage={
            "type": kind,
            "storage": header.storage,
            "records": header.records,
            "stored_bytes": header.stop - header.start,
        },
    )
    parts = header.parts
    plain = header.storage == FULL and parts.boxes is None and kind != TEXT
    if plain and len(parts.offsets) == 1 and found.nbytes:
        offset = parts.offsets[0] + source.base
        swap = 4 if made.order == ">" else 1
        found.extent = source.extent(offset, found.nbytes, swap)
        return found
    return found.replace(data=partial(_stored, source, header, made))


def _stored(source: Source, header: Header, made: Element) -> Any:
    from .values import Sparse, Stored, Texts

    kind = Sparse if header.storage == SPARSE else Texts if header.type == TEXT else Stored
    return kind(source, header, made)


def _left_out(header: Header, notes: list[str]) -> dict[str, Any] | None:
    """Note a header that holds nothing, or nothing known; the former is kept by its name."""
    if header.type:
        notes.append(f"header '{header.name}' was left out: unknown data type {header.type!r}")
        return None
    notes.append(f"header '{header.name}' at byte {header.offset} has no data and was left out")
    return {"name": header.raw}


def _housekeeping(
    source: Source, file: Any, framing: str, header: Header, notes: list[str]
) -> dict[str, Any] | None:
    """Return what is kept of a hidden header: its lines if it is text, else its records."""
    kept = {"name": header.name, **header.own, "long": header.long.rstrip(" ")}
    records = Records(source, file, framing)
    if header.stop - header.start > (MAX_TEXT_BYTES if header.type == TEXT else MAX_RAW_BYTES):
        notes.append(f"housekeeping header '{header.name}' is too long to be kept: left out")
        return None
    if header.type == TEXT:
        width = header.sizes[1]
        lines = []
        for offset, count in zip(header.parts.offsets, header.parts.counts, strict=True):
            raw = text(records.bytes_at(offset, count * width))
            lines += [raw[i : i + width].rstrip(" ") for i in range(0, len(raw), width)]
        return {**kept, "width": width, "text": lines}
    payloads = []
    offset = header.start
    while offset < header.stop:
        record = records.at(offset, f"header '{header.name}'")
        payloads.append(records.bytes_at(record.start, record.nbytes))
        offset = record.end
    return {"name": header.raw, "records": payloads}


# --- writing --------------------------------------------------------------------------------------


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what HAR cannot hold, from types, shapes, names and metadata."""
    from .plan import plan

    return plan(bundle, options).fits


def names(bundle: Bundle, options: dict[str, Any]) -> list[str]:
    """Return the names of the headers that the arrays become."""
    from .plan import plan

    return [header.name for header in plan(bundle, options).headers]


def write(bundle: Bundle, target: Target, *, storage: str = "auto", framing: str = "auto") -> None:
    """Write the arrays in order, and the housekeeping headers that came with them.

    Raises `WouldLose` for a string that ends with a blank, unless the bundle allows ``elements``.
    """
    from .encode import write_file
    from .plan import plan

    planned = plan(bundle, {"storage": storage, "framing": framing})
    write_file(planned, target)
    for header in planned.headers:
        if header.cut:
            reason = "blanks at the end of some strings are left out"
            bundle.lost.append(refused(header.array.name, "elements", reason, "--allow elements"))
