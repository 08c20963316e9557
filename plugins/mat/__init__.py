"""MAT: the variables of MATLAB, read in every version, written as v6, v7 and v7.3.

Specification: MathWorks, "MAT-File Format" (level 4 and version 5); v7.3 is HDF5 and has none
(facts in `level73`). Compared with: GNU Octave, scipy, matio's `matdump`, h5py, in both
directions; objects with mat-io.

Versions::

    4          a chain of matrices without a file header (`level4`); read only
    5, 6, 7    a header of 128 bytes, then tagged elements; in v7 each may be zlib (`level5`)
    7.3        the same header in the user block of an HDF5 file (`level73`), through h5py

Classes: what an element is, its MATLAB class says, never what it is stored in: a double of small
integers, which MATLAB stores as bytes, is float64; logical is bool; complex is kept (complex
integers up to 32 bits as complex128); in level 4 every number is a double. Shapes are MATLAB's,
with two axes at least, index order F: element (i,j,k) stays where it is.

char: what lies along the last axis becomes one string, ``<U`` of its length: a 3 x 5 char array is
three strings, ``'hello'`` is one, and 2 x 3 x 5 are (2, 3) strings, as in SciPy. Surrogate pairs
become one character; lone surrogates, NULs and trailing spaces are kept. UTF-8 is decoded, whether
the dims count units, characters or bytes, also where two of its bytes lie in one unit of 16 bits,
as MATLAB writes it with ``-v6`` (noted). ``char=units`` gives the units as uint16 instead.

sparse: dense by default, column by column in bounded memory; refused when it is asked for and its
dense form is above ``--max-memory``. ``sparse=parts`` gives ``x/data``, ``x/ir`` (rows) and
``x/jc`` (where each column begins), counted from 0. A dense one is written as sparse again.

struct, cell: their contents are named by path. Fields: ``s/field``. Elements of a cell and of an
array of structs: by MATLAB's linear index, from 1: ``c/3`` is ``c{3}``, ``s/2/name`` is
``s(2).name``. Shapes, order and what is empty travel in the file's namespace, so that they are
written as they were; a target without a place for them names the forms that it loses. Objects of
old classes are read as the structs that they are, the class kept in the namespace. Groups of other
formats become structs; a group whose members are numbered from 1 becomes a cell; what is missing in
it is ``{}``, and ``{}`` in a cell is nothing.

Classes of MATLAB's own (``string``, ``table``, ...), in v5 to v7.3 (facts in `mcos`)::

    string            text, ``<U`` of the longest; missing ones are empty, and true in NAME.missing
    datetime          datetime64 in ms, us or ns, the first that holds all; NaT; with a time zone in
                      UTC, the zone in the attribute time_zone
    duration          timedelta64, likewise
    calendarDuration  a group: months, days, millis
    categorical       int8, int16 or int32: indices into the attribute ``levels``, from 0; -1 if
                      undefined; the attribute ``ordered``
    table, timetable  a group of its columns: N x 1 becomes one axis of N, a cell of texts is text;
                      names of rows, or times, are a column, too; up to 1000 names are labels; units
                      and descriptions of variables are those of the arrays
    containers.Map    a group: keys, values; of dictionary Key, Value

A time is exact if it differs from a whole number of units by less than 0.01 ps, since MATLAB takes
seconds as double. Times that no unit holds (a third of a second, Inf, UTCLeapSeconds) are read as
the milliseconds that are stored, float64 or (of two parts) complex128, with a note;
``times=nearest`` rounds them to ns, ``times=milliseconds`` reads all times so.

Left out, and named in a note: function handles, enumerations, and objects of all other classes. A
file with nothing else is refused with the list of them.

Damage: every variable and every member of a struct or cell has a length of its own, so that what is
wrong in one hides none of the others. A compressed struct or cell with a wrong checksum is lost as
a whole, and what follows an element of unknown length.

Data of uncompressed numbers is copied from file to file where they are stored in the type of their
class. Compressed variables are decoded in a stream; a region of one needs it whole in memory.
A struct or cell inside a compressed variable is walked through when the file is opened.

Refused: damaged arrays, also where a checksum of a decoded variable is wrong; dims and lengths that
the file cannot have; more than 64 levels of structs and cells; more values in them than the memory
allows; VAX and Cray numbers; datasets that keep their data in other files.

A variable is added (``-o FILE#NAME``) in the version of the file; all else in it is copied as it
lies, function handles and data of classes included. In v7.3 the room of a replaced one stays in the
file, unused. Files of version 4, and big-endian ones, are refused.

Writes: little-endian, a header without a time, so that equal arrays give equal bytes. ``version=6``
(default) is not compressed; ``version=7`` compresses each variable; both hold 2^31 - 1 bytes in one
variable, ``version=7.3`` more. Scalars become 1 x 1 and lists 1 x N; float16 becomes double (single
in v7.3); text becomes char arrays, without any loss. Names must be MATLAB's own (a letter, then
letters, digits and _, 63 at most, no keyword), else they are refused, or changed with
``--allow names``.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Array, Format, Option, Source

from . import level4
from .plan import DEFAULT_LEVELS, DEFAULT_VERSION, add, plan
from .reader import level_of, read
from .tables import AFTER_73, MARKS_5, MARKS_73, PROGRAMS, PROGRAMS_73, SAMPLES

__all__ = ["FORMAT", "add", "plan", "programs", "read", "sniff"]

FORMAT = Format(
    name="mat",
    title="MATLAB MAT",
    names_files=True,
    suffixes=(".mat",),
    magic=tuple((124, mark) for mark in MARKS_5 + MARKS_73) + level4.MAGIC,
    many=True,
    meta="none",
    index_orders="F",
    needs=(("h5py", "h5py"),),
    read_options=(
        Option("char", "strings", ("strings", "units"), "char arrays as text, or as UTF-16 units"),
        Option(
            "sparse", "dense", ("dense", "parts"), "sparse matrices as dense, or as their parts"
        ),
        Option(
            "times",
            "exact",
            ("exact", "nearest", "milliseconds"),
            "datetime and duration that no unit holds: milliseconds, or to the nearest ns",
        ),
    ),
    write_options=(
        Option("version", DEFAULT_VERSION, tuple(DEFAULT_LEVELS), "7 is compressed; 7.3 is HDF5"),
        Option(
            "compress",
            "auto",
            ("auto", "none", *map(str, range(1, 10))),
            "level of zlib in 7 and 7.3; auto: 3 in 7, none in 7.3",
        ),
    ),
    samples=SAMPLES,
    spec="https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf",
    losses="no metadata; two axes at least; no bfloat16, dates or structures; 2^31 - 1 bytes in a "
    "variable, except in v7.3; strings and tables are written as char arrays and structs; objects "
    "of classes that are not MATLAB's own are left out with a note",
)


def sniff(source: Source) -> int:
    """Return SURE for the marks in the header; for level 4, if suffix and chain of headers fit."""
    return SURE if level_of(source) else NO


def programs(array: Array) -> dict[str, str]:
    """The lines that read a variable of numbers in Python, Julia, MATLAB, R and C, by language.

    They use SciPy or h5py, MAT.jl, MATLAB, R.matlab or rhdf5, and matio. Raises nothing.
    """
    from .sources import Numbers
    from .values73 import ClassNumbers

    if "/" in array.name or not array.name.isprintable():
        return {}
    kind = array.element.kind
    if isinstance(array.data, Numbers):
        lines = dict(PROGRAMS)
        if kind == "complex":  # with mat_dtype, SciPy drops the imaginary part
            lines["Python"] = lines["Python"].replace(", mat_dtype=True", "")
        elif array.storage.get("class") == "double" and array.storage.get("stored") != "f8":
            lines["Python"] += ".astype(float)"  # SciPy returns the stored type of level 4
        return lines
    if isinstance(array.data, ClassNumbers):
        lines = {**PROGRAMS_73, "Python": PROGRAMS_73["Python"] + AFTER_73.get(kind, "")}
        if kind == "complex":
            del lines["R"]
        return lines
    return {}
