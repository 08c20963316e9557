"""XLSX: workbooks of Excel and others, a table in each sheet, read and written.

Specification: ECMA-376 (Office Open XML), part 1, SpreadsheetML; part 2 for the package. Compared
with: openpyxl and pandas, in both directions. Read and written by code of its own: openpyxl gives
formulas or saved values, never both, and numbers only as what it takes them for.

Reads: the cells of each sheet that has any, within the rows and columns that hold something. The
first row is a header if all of its cells are text; if some are, ``header`` has to say. Numbers are
those of the file: int64 if a column has whole ones only, else float64; text, bool; numbers with the
format of a date are datetime64 of days, seconds or milliseconds, by either epoch, those with the
format of an elapsed time timedelta64. A column of several kinds is text. An empty cell is a missing
value, and so is an error (#N/A). Formulas are read as the value that was saved with them, which a
note counts; one without a value is missing. A merged cell has its value in its first cell alone, as
the file has it (named). Hidden sheets are read like all others (named).

Mapping: a sheet is a table as CSV and Parquet are; ``axes=region,year`` names columns that are
axes. Arrays of several sheets are in a group of the name of their sheet, unless raconvert wrote the
file: then its properties say what the arrays were, and what was edited comes back in their place,
with labels in the order of the rows. A number is taken for the float32 that the column had if both
are the same in the 15 digits that spreadsheets keep; a value that is not of the type that its
column had makes the column one of its own type, which a note says.

Writes: a sheet for arrays over the same axes, a column for each axis and each array; ``wide=AXIS``
makes a pivot. A cell is a double: bool, integers up to 32 bits, floats and bfloat16 are numbers
(NaN and infinity the words ``nan``, ``inf``), int64 and uint64 are refused, or checked value by
value with ``integers=checked``, or beyond 2**53 text with ``integers=text``. Times of whole
milliseconds between 1900-03-01 and 9999 are dates, others text of ISO 8601, as durations are.
Smaller types of numbers, texts and times come back as they were, which is named: to others each is
a cell. Where a mask, or a field ``x.null``, says that a value is missing, there is no cell.
Metadata is kept in properties of the file, in pieces of 250 characters.

An array is not added to a workbook (`-o FILE#NAME`): a sheet more changes the parts that all sheets
share (styles, texts, properties), in which charts and macros of others may count; write all arrays
together, or copy the sheet in a spreadsheet.

Refused: encrypted workbooks, which are not ZIP; document types in XML, and so entities; sheets of
macros and charts are left out. Writing: more than 1,048,575 rows, 16,384 columns, texts above
32,767 characters, complex numbers, void.
"""

from __future__ import annotations

from base64 import b85decode

from raconvert.files.zips import LOCAL, LOCAL_MAGIC
from raconvert.plugin import MODEL, NO, SURE, Bundle, Format, Option, Plan, Source

from .options import READING, WIDE

__all__ = ["FORMAT", "plan", "read", "sniff"]

FIRST = (b"[Content_Types].xml", b"_rels/", b"xl/", b"docProps/")  # first members of a package
TAIL = 1 << 16  # bytes at the end of the file, which have the directory

# A small workbook, as a sample: one sheet of two columns and a row of numbers.
WORKBOOK: bytes = b85decode(
    r"P)h>@6aWAK2mk;8App47`Mk^k006E5000vJ003J<Z*FvDZggK%d2nTOT`qWSY^{;MPQ)+_#$Tn%iY`9gz<}B=z{)"
    r"Z30>0F}Mor=<_8sNzFD<aJAS5RL`~3Z6xqbV{B+U{-lFm%3`2j%OL=nYurc@^*mxx-"
    r"+a)yj<#xucTzrP2^Nh#@0R}a&-Pc-"
    r"5sX!E?(ws=mRDHOyskDtPo)fvn=c!yf&a81Jx%I=F`>*l7B$!EE%0t0<}yizHCpym~ezF@3&umpJLGM|`dyUPAV<"
    r"8kzk26mTNSFGehILJh#G1x8Ih(7(omwyJY_iXt$7q&O`H&9Ch1QY-"
    r"O00;m803iUYUxsIf0002(0000B0001Aa%F6DFD`OrY;%pzJq`jP6a?U_5Du_!V_{)fDjQql1rQ%U;pY)x<9d53S7"
    r"Tv0naP)oxMEb@Q*O?e#<mo5Te$1JoB*13m{gmnU>=R3np7XLS|~~fWf2bZe1y6;xD<PnT^<XsoZVgp|AEOEuklQJ"
    r"O_=)+|7$U1RW0^~ZxNnU!<{Hh1LYtEe7uuyP)h>@6aWAK2mk;8Aplz4BsGix007(o000jF004MwFL!TpYhrJ2Yc6"
    r"<gY>kgG4udcZMXwV105$E<0RdB&&OJd2ris9DWCyj!FM_gnvY-Cfv)sHzr>Dr|K0GIDA(WD9MC${wx07T_Ych(mF"
    r"DvQ`Ei3uK0#V@^FI9C#_A$Y3sP!L*jAQKSCjG*c$}UlweTkAR#B9(t+XeegmpoGo4{#gahZfG@w2tedfL((}9gmN"
    r"?FHlPZ1QY-O00;m803iSknFIfW0002q0000Q0001ZY%gDOWo&aVcW-iQVsCG2E_iKhE^=jTbB)hE3IZ_@hT*G(9A"
    r"Ia$u#hB`jjecr5GR|kn;&LI)Z3eK1q;iM7asV`6*n)rRZh9HdX=rR)k&nE05~Kpo~PEajuIOcFJsaI-G|jL2#0w-"
    r"0__d$%-"
    r"&R&yVa!C?cMPoxW$+Qo?Cbntn$N$XQP!9q72m2f?_pKL($+2eBE&$P)h>@6aWAK2mk;8Apl8dVW6M@000^R000O8"
    r"004MwFLN$<ZESUrQ4WGI42G{lb^r?``e4cujW_TF6{jq+jdTrod<U2XAAIZo^>6>CI0b&i&KN1)uJ^G~oyc$mh;3"
    r"&a#a$STPn}0#N0KBzAr5Tlz6`k@>ask5BkPsMg<VKUBZsNrMpcQnb8)IvA&s)Wx87WZ6Sq;LXhIN;FbinE=JP-"
    r"E?bi$`B}dgcYOY3IA&lFdE3J3?%-"
    r"3<)Tn+gh`U6l)0Rj{Q6aWAK2mk;8App47`Mk^k006E5000vJ0000000000004ji00000TSISdbY*UIUsQQ;WpiCF"
    r"cx`M@O928D0~7!N00;m803iUYUxsIf0002(0000B00000000000001h0sQ~~0AF%tY;!Lza%F6DP)h*<6ay3h000"
    r"O8001EXTHPcyi~s-"
    r"t+yDRo4*&oF0000000000fB~!l004MwFL!TpYhrJ2Yc6<gY*0%90u%!j000080000X01cS~|APPk0Nwxq02%-"
    r"Q00000000000Du8y0ssJbY%gDOWo&aVcW-iQVsCG2E_iKhE^=jTb5KhG0u%!j000080000X07++Ipr8N%02%=R00"
    r";m800000000000Du7?0{{ScY%g;zcx`M@O9ci10000500jUw0RRBz0{{R300"
)  # fmt: skip

FORMAT = Format(
    name="xlsx",
    title="XLSX workbook",
    suffixes=(".xlsx", ".xlsm"),
    magic=((0, LOCAL_MAGIC),),
    many=True,
    lazy=False,
    meta="some",
    holds=MODEL,
    read_options=(
        *READING,
        Option("header", "auto", ("auto", "yes", "no"), "the first row has the names of columns"),
        Option("sheet", "", str, "the only sheet to read"),
    ),
    write_options=(
        WIDE,
        Option("integers", "refuse", ("refuse", "checked", "text"),
               "int64 and uint64: refused, checked one by one, or beyond 2**53 text"),
    ),
    samples={"two.xlsx": WORKBOOK},
    spec="https://ecma-international.org/publications-and-standards/standards/ecma-376/",
    losses="no int64 and uint64 but on request; 1,048,575 rows; no complex numbers, no void",
)  # fmt: skip


def sniff(source: Source) -> int:
    """Return SURE for a ZIP archive that begins as a package and lists a workbook."""
    head = source.head
    name = head[LOCAL.size :][: int.from_bytes(head[26:28], "little")]
    if not head.startswith(LOCAL_MAGIC) or not name.startswith(FIRST):
        return NO
    tail = source.read_at(max(0, source.size - TAIL), TAIL)
    return SURE if b"xl/workbook.xml" in tail else NO


def read(
    source: Source,
    *,
    layout: str = "auto",
    axes: str = "auto",
    wide: str = "",
    missing: str = "mask",
    fill: str = "",
    name: str = "",
    header: str = "auto",
    sheet: str = "",
) -> Bundle:
    """Read the arrays of the sheets; all cells are in memory.

    Raises `Corrupt` for a damaged file, `Unsafe` for document types, `TooLarge` above the memory
    allowed, `UsageError` if an option has to decide.
    """
    from .reader import Asked, bundle_of
    from .workbook import open_workbook

    if wide and header == "auto":
        header = "yes"
    book = open_workbook(source, header=header, sheet=sheet)
    bundle = bundle_of(book.tables, Asked(layout, axes, wide, missing, fill, name))
    bundle.notes[:0] = book.notes
    bundle.attributes = dict(book.of_file.get("attributes", {}))
    bundle.formats = dict(book.of_file.get("formats", {}))
    return bundle


def plan(bundle: Bundle, *, wide: str = "", integers: str = "refuse") -> Plan:
    """Plan a workbook with a sheet for each set of arrays over the same axes."""
    from .xlsx_plan import xlsx_plan

    return xlsx_plan(bundle, wide=wide, integers=integers)
