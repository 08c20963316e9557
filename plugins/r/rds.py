"""RDS: one object of R (``saveRDS``), read and written.

Specification: "R Internals", section 1.8 (serialization formats), and serialize.c of R. Compared
with: R itself, which reads what is written here and writes what is read, and the package `rdata`.

Forms: XDR (big-endian, ``X``) and native binary (``B``, little-endian), versions 2 and 3, whole or
compressed by gzip, bzip2 or xz. Text (``A``) is refused, with the line of R that rewrites it.

Vectors become arrays of the same shape, index order F; one without dims has one axis::

    logical     bool                  double     float64, NA_real_ with its bits (payload 1954)
    integer     int32                 complex    complex128
    character   <U of the longest     raw        uint8
    factor      <U, its labels; the levels are in the namespace ``rds``
    Date        datetime64[D]         POSIXct    datetime64[s], [ms] or [us], in UTC
    integer64   int64 (package bit64)

Missing values of logical, integer, character, factor and integer64 are told by a second array of
bools, ``NAME.NA``, which is there where a value is missing; without it the array is not whole
(`companions`, refused unless ``--allow nulls``). In a double NA keeps its bits, and is NaN to
others; a time that is missing is NaT. Dates and times of which one is not exact (a NaN, a fraction
that is not the float next to a microsecond) stay doubles, the class in the namespace. Masks of
other formats are written as NA, too, where R has it for the type.

Text is UTF-8, Latin-1 or what the file says is native; of version 2, which says nothing, UTF-8, or
``encoding=NAME``. Strings marked as bytes become ``S``.

Axes: ``names``, ``dimnames`` and their names are labels and names of axes. ``comment`` is the
description, ``units`` the unit. Other attributes are those of the array, if they are plain: up to
1000 numbers, texts or bytes; those that are not are named in a note.

Lists are groups, by names or by numbers from 1; a data frame is a group of its columns, and of
``row.names`` where they are more than a count; an S4 object is a group of its slots. Classes, and
what paths do not tell, are in the namespace, so that they are written as they were. A vector alone
has the name of the file.

ALTREP: sequences, wrappers and texts of integers that R has not made yet are read as what they are.

Nothing is evaluated. Left out, and named in a note: NULL, functions, environments, promises, calls,
expressions, symbols, bytecode, external pointers, vectors of other classes of ALTREP.

The bytes are looked through once when the file is opened: a file of R has no index. Vectors that
are not compressed are then copied and mapped where they lie; compressed ones are decoded in a
stream, in the order of the file once.

Refused: lengths that the file has not the bytes for, dims that do not fit, references to nothing,
strings with NULs or in another encoding than said, logicals other than 0, 1 and NA, codes without a
level, more than 64 lists inside each other.

Writes: XDR, version 3, gzip as R does (``compress=none``, ``bzip2``, ``xz``); one array as a
vector, several as a list (``object=list`` or ``vector`` says which), one that is named
(``-o x.rds#NAME``) as a list of one. An array is added to a plain list with names; all else in it
stays, functions and environments too. int8, int16 and uint16 become
integer, float16, float32 and bfloat16 double, complex64 complex. int64, uint32 and uint64 are
refused, or become double with ``--dtype float64``. uint8 is raw; ``bytes=integer`` makes numbers of
it. An int32 of -2147483648, which is R's NA, is refused (``--dtype float64`` holds it); datetime64
of other units, durations and structures are refused.
"""

from __future__ import annotations

import os

from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Format,
    Option,
    Plan,
    Source,
    equivalent,
    file_fits,
    refused,
)

from .tables import MAGIC_A, MAGIC_B, MAGIC_X, NULLS, OWN, PACKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Fit, Target

__all__ = ["FORMAT", "add", "plan", "programs", "read", "sniff"]

# matrix(1:6, 2), of which an integer is a whole vector, as R 4.2 writes it without compression.
_SAMPLE = bytes.fromhex(
    "580a000000030004020200030500000000055554462d380000020d00000006000000010000000200"
    "0000030000000400000005000000060000040200000001000400090000000364696d0000000d0000"
    "00020000000200000003000000fe"
)

FORMAT = Format(
    name="rds",
    title="R object (RDS)",
    suffixes=(".rds",),
    magic=((0, MAGIC_X), (0, MAGIC_B), (0, MAGIC_A), *PACKED),
    many=True,
    alone=True,
    refuses="SUM",
    stream=True,
    meta="some",
    holds=("names", "labels", "scale", "units", "description", "attributes"),
    index_orders="F",
    read_options=(
        Option("encoding", "auto", str, "encoding of strings for which the file names none"),
    ),
    write_options=(
        Option("compress", "gzip", ("gzip", "none", "bzip2", "xz"), "the compression around all"),
        Option("bytes", "raw", ("raw", "integer"), "what uint8 becomes"),
        Option(
            "object", "auto", ("auto", "list", "vector"),
            "a list of all arrays, or one vector; auto: a vector if there is one array",
        ),
    ),
    samples={"two_by_three.rds": _SAMPLE},
    spec="https://cran.r-project.org/doc/manuals/r-release/R-ints.html#Serialization-Formats",
    losses="no spacing, origin or place of axes; no int64, uint32, durations or structures; texts "
    "have no width of their own",
)  # fmt: skip


def sniff(source: Source) -> int:
    """Return SURE for the letter of the form and the version, also inside gzip, bzip2 or xz."""
    from .streams import packing_of, start_of

    head = source.head
    if packing_of(head):
        head = start_of(source, 6)
    version = head[2:6]
    if head.startswith(MAGIC_A):
        return SURE if version[:1].isdigit() and version[1:2] in (b"\n", b"\r") else NO
    if not head.startswith((MAGIC_X, MAGIC_B)):
        return NO
    return SURE if version in _VERSIONS else NO


_VERSIONS = {number.to_bytes(4, order) for number in (2, 3) for order in ("big", "little")}


def read(source: Source, *, encoding: str = "auto") -> Bundle:
    """Read the vectors of the object, lazily, after one pass over the file; lists become groups.

    Raises `Corrupt`, `Unsupported` and `TooLarge`, all before elements are read.
    """
    from .reader import read_rds

    return read_rds(source, encoding)


def plan(
    bundle: Bundle, *, compress: str = "gzip", bytes: str = "raw", object: str = "auto"
) -> Plan:
    """Plan a vector, or a list of all arrays, with groups as lists inside it."""
    from .plan import leaf_of, name_of_nulls, nulls_by_name_of, root_of

    fits: list[Fit] = []
    nulls_by_name = nulls_by_name_of(bundle, bytes)
    own = bundle.formats.get(OWN)
    own = own if isinstance(own, dict) else {}
    taken = {nulls.name for nulls in nulls_by_name.values()}
    leaves = [
        leaf_of(array, nulls_by_name.get(array.name), bytes, fits)
        for array in bundle.arrays
        if array.name not in taken
    ]
    was_list = bundle.named or own.get("root") == "list"
    can_be_bare = len(leaves) == 1 and not bundle.explicit_groups()
    bare = can_be_bare and (object == "vector" or (object == "auto" and not was_list))
    if object == "vector" and not bare:
        fits.append(refused("", "elements", "several arrays are a list, not one vector"))
    if bare:
        if bundle.named:
            reason = "one vector has the name of its file; `--out-opt object=list` keeps another"
            fits.append(equivalent(leaves[0].name, "names", reason))
        fits += file_fits(bundle, "an .rds of one vector")
        names = bundle.names

        def write(target: Target) -> None:
            from .writer import write_object

            stem = os.path.splitext(os.path.basename(target.place))[0]
            for number, name in enumerate(bundle.names):
                names[number] = f"{stem}.{NULLS}" if name in taken else stem
            write_object(target, leaves[0], compress)

        return Plan(fits, write, names=names)
    root = root_of(bundle, own, leaves, fits)

    def write_list(target: Target) -> None:
        from .writer import write_object

        write_object(target, root, compress)

    said = {
        leaf.nulls.name: name_of_nulls(leaf.array, leaf.nulls)
        for leaf in leaves
        if leaf.nulls is not None
    }
    return Plan(fits, write_list, names=[said.get(name, name) for name in bundle.names])


def add(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, compress: str = "gzip",
    bytes: str = "raw", object: str = "auto",
) -> Plan:  # fmt: skip
    """Plan the list of the file with one more vector, in the same compression; see `Add`."""
    from .adding import add_to_list

    return add_to_list(bundle, source, held, overwrite=overwrite, numbers=bytes)


def programs(array: Array) -> dict[str, str]:
    """Return the lines of R that read an array. Raises nothing."""
    from .tree import programs_of

    return programs_of(array, "x <- readRDS(FILE)")
