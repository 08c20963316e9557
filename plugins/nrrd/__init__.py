r"""NRRD ("nearly raw raster data"): one array, attached to its header or beside it, read and write.

Specification: "Definition of NRRD File Format" (teem.sourceforge.net/nrrd/format.html, up to
NRRD0005); where it is silent, and for NRRD0006 and NRRD00.01, Teem's source (``src/nrrd``).
Compared with: unu of Teem, SimpleITK, pynrrd.

Layout::

    NRRD000n                      magic; the version says what a writer needed, not what may follow
    # text                        comments
    field: description            fields, in nearly any order; names without regard to case
    key:=value                    key/value pairs; \n and \\ are escapes
    (an empty line)               ends the header; data follows, unless `data file:` names it

Reads: NRRD00.01 and NRRD0001 to NRRD0006; lines ended by LF, CRLF or CR; all fields and their
aliases; all types, blocks included, in both byte orders; the encodings raw, text (with commas),
hex, gzip and bzip2 (of several members), zrl; attached data, one data file, lists, lists with
skips, numbered patterns, with any number of axes per file; line and byte skips, negative ones too.
One raw piece is an extent (a copy from file to file, or a map); several are read where they are
asked for; encoded data streams in bounded memory.

Writes: the lowest version that has the fields, at most 0005; little-endian; attached (``.nrrd``)
or detached (``.nhdr``, with the data in a file of the same name beside it); encodings raw, gzip,
bzip2, ascii (text) and hex.

Mapping: `sizes` are `dims` (fastest first); NRRD says nothing of indices, so the index order is
None. All fields become metadata and are written back: see ``plugins/nrrd/metadata.py``. Space,
directions and origin become the common ones. Three axes of space and one of time are written as
ITK reads them: in a space with time, as LPS; a plane in a space of two axes. A key/value
pair ``raconvert`` keeps what NRRD has no field for, so that nothing is lost on the way back: see
``plugins/nrrd/pair.py``.

Numbers are NRRD's types. Bool is written as uint8, complex numbers as pairs on a new fastest axis
of kind ``complex``, elements such as texts and structures as blocks, an array without axes as one
of one sample: each comes back as it was. A file from elsewhere with such an axis of pairs stays as
it is, unless ``complex=numbers`` says otherwise.

Refused when reading: data files outside the folder of the header, and what is not a regular file
(pipes, devices); the standard input as data file; compressed data that goes on for more than 64 MiB
after the array; fields repeated with another value, as readers differ in which they take; sizes of
0; more than 16 axes; text numbers that the type does not hold; data that is cut off. Data after the
array, fields repeated as they were, unknown fields and unknown kinds of axes are accepted with a
note.

Refused when writing: axes of length 0, more than 16 axes (15 for complex numbers), float16 and
bfloat16 (cast them with `--dtype float32`, which is exact).
"""

from __future__ import annotations

from raconvert.plugin import MODEL, NO, SURE, Array, Format, Option, Source

from .plan import ENCODINGS, plan
from .reader import read
from .tables import VERSIONS

__all__ = ["FORMAT", "plan", "programs", "read", "sniff"]

SAMPLES = {
    "raw.nrrd": b"NRRD0001\ntype: uint8\ndimension: 1\nsizes: 3\nencoding: raw\n\n\x01\x02\x03",
    "text.nrrd": (
        b"NRRD0005\r\n# a comment\r\ntype: short\r\ndimension: 2\r\nspace dimension: 1\r\n"
        b"sizes: 2 3\r\nspace directions: none (0.5)\r\nkinds: 2-vector space\r\n"
        b'labels: "v" "x"\r\nencoding: ascii\r\nspace origin: (-1)\r\nby:=hand\\n\r\n\r\n'
        b"1 2\r\n3 4\r\n-5 6\r\n"
    ),
    "gzip.nrrd": (
        b"NRRD0004\ntype: uint8\ndimension: 1\nsizes: 4\nencoding: gz\nthicknesses: 1\n\n"
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x04\0\xfb\xff\x01\x02\x03\x04\xcd\xfb\x3c\xb6\x04\0\0\0"
    ),
}

FORMAT = Format(
    name="nrrd",
    title="NRRD",
    names_files=True,
    suffixes=(".nrrd", ".nhdr"),
    magic=tuple((0, b"NRRD" + version.encode("ascii")) for version in VERSIONS),
    proof=False,
    stream=True,
    meta="all",
    holds=MODEL,
    index_orders="",
    read_options=(
        Option(
            "complex",
            "auto",
            ("auto", "pairs", "numbers"),
            "a fastest axis of kind complex: a plain axis of two, or the parts of numbers "
            "(auto: numbers where raconvert wrote them)",
        ),
        Option(
            "restore",
            True,
            bool,
            "make bools, complex numbers, texts and axes of what raconvert's own pair says "
            "that they were",
        ),
    ),
    write_options=(
        Option("encoding", "raw", tuple(ENCODINGS), "how the data is written; gzip:N is level N"),
    ),
    samples=SAMPLES,
    spec="https://teem.sourceforge.net/nrrd/format.html",
    losses="bool, complex and texts come back only through raconvert; no axes of length 0, at most "
    "16 axes; float16 and bfloat16 only with --dtype float32",
)


def sniff(source: Source) -> int:
    """Return SURE for one of the seven magics on a line of its own."""
    line, end, _ = source.head[:10].replace(b"\r", b"\n").partition(b"\n")
    is_magic = line.startswith(b"NRRD") and line[4:].decode("latin-1") in VERSIONS
    return SURE if is_magic and end else NO


def programs(array: Array) -> dict[str, str]:
    """Return programs for NumPy, NRRD.jl, nat of R and Teem, as far as each reads this file.

    Raises nothing.
    """
    from raconvert.arrays.sources import DecodedParts

    from .reader import programs_of

    is_number = array.element.kind in ("int", "uint", "float")
    data = array.data
    whole = isinstance(data, DecodedParts) and array.index_order != "F"
    usual = array.storage.get("encoding") in ("gzip", "bzip2", "text", "hex")
    return programs_of(array, data) if is_number and whole and usual else {}
