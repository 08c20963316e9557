r"""HAR: GEMPACK header array files (.har .prm .upd .shk .sl4), read and write.

Specification: none is published; the layout was decoded from files by GEMPACK 7 to 12.1, ViewHAR,
AggHAR, HARr, harpy and equilibria. Compared with: harpy3 in both directions, where it is correct.

A file is a sequence of Fortran records (`records`): a header record, four characters of name, and
the records that belong to it, each of which begins with four blanks (`header`). There is no magic,
no version and no table of contents; the file is indexed once by its record marks, and data is read
when it is asked for, record by record in bounded memory. In Python a region is read from those
records that hold it.

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
The namespace ``har`` holds type, storage, coefficient name, and all by which a file differs from
what would be written here: where records are split, odd counters, logicals, blanks in names.

Headers whose name begins with XX (creation date, history) are housekeeping: they stay in the
namespace of the file and come back when HAR is written; ``housekeeping=show`` makes them arrays.

Solution files (.sl4) are recognised by their tables. Their variables come first, by name, over
their sets: percentage changes (units ``%``) or changes, with results, shocks and the zeros of what
is exogenous, each in its component; if there are subtotals, on a last axis ``RESULTS``:
``Cumulative``, then each subtotal. The group ``levels`` has the levels of variables on an axis
``WHEN``: ``before`` and ``after``. Components without a result in the file are NaN, which a note
says. All other headers are in the group ``headers``: texts, closure, accuracy. ``solution=headers``
gives the headers as they are, which are written back byte for byte.

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

A header is added (``-o FILE#NAME``) in the framing of the file; all others are copied record by
record. Names that differ in capitals only are one name.

Names become up to four letters or digits, unique without regard to case; the original is kept as
coefficient and long name. Sets: an axis with labels becomes a known set, one without an unlabelled
dimension. Labels that are not text of up to 12 Latin-1 characters are shortened, as the report
says.

Refused, as one header that cannot be read beside others that can (--allow arrays leaves it out):
data types DE and DL and unknown ones (``unknown=skip`` leaves them out with a note); lengths and
counts that contradict each other, parts that leave a gap or overlap, sparse positions that do not
increase; headers of one name; records whose marks differ, files that are cut off. Reading goes on
behind a damaged record where one of its marks leads to a sound one, which a note says. A header
whose name is damaged is called ``byte N`` by its offset; ``bytes N to M`` and ``from byte N`` may
have held any number of headers. Refused as a whole: JSON archives of browsers and GEMPACK text
files, which share the suffixes; files of which no header can be read. Counters may be wrong: some
writers get them wrong.
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Format, Option, Source

from .header import BLANKS, SECOND
from .plan import add, plan
from .records import BIG, LAHEY, LITTLE, Records, framing_of
from .tables import FULL, SIZES, SPARSE, text

__all__ = ["FORMAT", "add", "plan", "read", "sniff"]

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
    holds=("names", "labels", "description"),
    index_orders="F",
    read_options=(
        Option("housekeeping", "hide", ("hide", "show"), "show headers XX* as arrays"),
        Option("unknown", "refuse", ("refuse", "skip"), "leave out headers of unknown types"),
        Option("solution", "variables", ("variables", "headers"), "what of a solution file"),
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
    """SURE if the first two records are a name and its second record; NO at the first oddity."""
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
    is_second = storage in (FULL, SPARSE) and second.head[:4] == BLANKS
    if not is_second or second.nbytes < SECOND.nbytes:
        return NO
    if kind in SIZES:
        return SURE if second.nbytes == SECOND.nbytes + 4 * SIZES[kind] else NO
    return SURE if kind.isalnum() else NO


def _is_text(head: bytes) -> bool:
    """True if the record of a name begins the head of a file that is cut off or damaged there."""
    return len(head) == 12 and text(head[4:8]).strip().isalnum()


class _Head:
    """The source as a file for `Records`, without an open handle."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._offset = 0

    def seek(self, offset: int) -> None:
        self._offset = offset

    def read(self, nbytes: int) -> bytes:
        return self._source.read_at(self._offset, nbytes)


def read(
    source: Source,
    *,
    housekeeping: str = "hide",
    unknown: str = "refuse",
    solution: str = "variables",
) -> Bundle:
    """The headers of a file in its order, or the variables of a solution file; data is read later.

    Shape: that of the GEMPACK array; index order F. A header that contradicts itself, or has an
    unknown type, becomes an array that cannot be read. Raises `Corrupt` if none can be read,
    `NotSupportedYet` for JSON and GEMPACK text.
    """
    from .reader import read_bundle

    return read_bundle(
        source,
        show_housekeeping=housekeeping == "show",
        skip_unknown=unknown == "skip",
        decode=solution == "variables",
    )
