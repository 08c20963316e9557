"""RData: objects of R by name (``save``, ``save.image``), read.

Specification: "R Internals", section 1.8, and saveload.c of R. Compared with: R itself, and the
package `rdata`.

Layout: ``RDX3`` or ``RDX2`` and a newline, then the serialization that an .rds has, of a list of
all objects; whole or compressed by gzip, bzip2 or xz. ``RDB`` with native binary numbers is read,
too. Refused: text (``RDA``), and version 1, of R before 1.4, each with the line of R that rewrites
it.

The objects are arrays and groups by their names; see the format rds, which says what becomes of
each of them, of missing values, texts, factors, times, lists and data frames, and what is left out.
Written is .rds: one object, of which a list holds arrays by name.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Array, Bundle, Format, Option, Source

from .tables import PACKED, RDATA, RDATA_OLD

__all__ = ["FORMAT", "programs", "read", "sniff"]

# x <- matrix(1:6, 2), as R 4.2 writes it without compression.
_SAMPLE = bytes.fromhex(
    "524458330a580a000000030004020200030500000000055554462d38000004020000000100040009"
    "00000001780000020d00000006000000010000000200000003000000040000000500000006000004"
    "0200000001000400090000000364696d0000000d000000020000000200000003000000fe000000fe"
)

FORMAT = Format(
    name="rdata",
    title="R workspace (RData)",
    suffixes=(".rdata", ".rda"),
    magic=tuple((0, magic) for magic in (*RDATA, *RDATA_OLD)) + PACKED,
    writes=False,
    many=True,
    meta="some",
    holds=("names", "labels", "scale", "units", "description", "attributes"),
    index_orders="F",
    read_options=(
        Option("encoding", "auto", str, "encoding of strings for which the file names none"),
    ),
    samples={"two_by_three.rdata": _SAMPLE},
    spec="https://cran.r-project.org/doc/manuals/r-release/R-ints.html#Serialization-Formats",
    losses="it is read, not written; .rds holds a list of the same objects",
)


def sniff(source: Source) -> int:
    """Return SURE for the first five bytes, also inside gzip, bzip2 or xz."""
    from .streams import packing_of, start_of

    head = source.head
    if packing_of(head):
        head = start_of(source, 5)
    return SURE if head[:5] in (*RDATA, *RDATA_OLD) else NO


def read(source: Source, *, encoding: str = "auto") -> Bundle:
    """Read the objects of the file, lazily, after one pass over it; lists become groups.

    Raises `Corrupt`, `Unsupported` and `TooLarge`, all before elements are read.
    """
    from .reader import read_rdata

    return read_rdata(source, encoding)


def programs(array: Array) -> dict[str, str]:
    """Return the lines of R that read an array. Raises nothing."""
    from .tree import programs_of

    return programs_of(array, "x <- new.env()\nload(FILE, x)")
