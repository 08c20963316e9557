"""FITS: images and tables of astronomy.

Specification: "Definition of the Flexible Image Transport System (FITS)", version 4.0. Compared
with: astropy, and fitsverify of HEASARC.

Layout: header and data units (HDUs), each a header of cards of 80 characters in blocks of 2880
bytes, and data in blocks of 2880 bytes.

Reads: the primary HDU, IMAGE extensions, tables (BINTABLE and TABLE) and images in compressed
tiles. Images of integers and floats lie in the file as they are, big-endian, and are mapped.
Integers that BZERO makes unsigned (or signed, of 8 bits) have that type exactly. Tables are one
array of structures: numbers, complex numbers, text, logical values and bits as bool, vectors of
columns with TDIM, integers that TZERO makes unsigned; of tables of characters text, int64 and
float64. A column of variable length has the lengths of its cells; the cells are an array of their
own after each other, ``TABLE.COLUMN``. Random groups are structures of their parameters and DATA. A
file inside gzip (``.fits.gz``) is inflated front to back when it is opened, and as far as needed
for what is picked. Tiles are decompressed by astropy (``pip install 'raconvert[fits]'``), only
those that a region needs.

Mapping: row-major, with the lengths NAXISn reversed, as astropy has them. An array has the name of
EXTNAME, with ``,2`` for EXTVER 2, else PRIMARY or HDU and its number; an HDU without data is a
group. BSCALE, BZERO and BLANK are the attributes scale_factor, add_offset and _FillValue, applied
by ``--unscale``; BUNIT is the unit. CTYPEn, CUNITn, CDELTn, CRVALn, CRPIXn and a matrix PC or CD
are name, unit, spacing and origin of each axis whose coordinate is linear and its own. The keywords
of other coordinates (projections, rotations, SIP, alternative descriptions) are kept in ``wcs`` of
the namespace ``fits``, which a note says; they are written again, also for parts of the image,
steps and axes in another order. All other keywords are attributes: long strings (CONTINUE) and
HIERARCH, too; COMMENT, HISTORY and cards without a keyword are lines of one text each. The
namespace has the comments of attributes in ``comments``, values that are neither text nor number in
``words``. Columns that have a scale (TSCALn, TZEROn) are as stored; ``columns`` has their keywords
by name.

Writes: images, big-endian, and structures as binary tables, each in an HDU of its own with EXTNAME;
attributes of the file are in the primary HDU, those of groups in an HDU without data. One array
without attributes of the file is the primary HDU, if it is an image; so is the first one if it is
called PRIMARY. Unsigned integers get their BZERO; attributes with names in upper case become
keywords (HIERARCH for long ones). DATASUM and CHECKSUM are written, unless ``checksum=no``. An
array is added to a file (``-o FILE#NAME``) by copying all its other HDUs byte for byte.

Checked: DATASUM and CHECKSUM of every HDU, by ``raconvert verify`` and by a conversion with
``--verify``, unless ``--allow arrays`` is given; any other reads only what is asked for.

Refused: an HDU that cannot be read is named, and the others are read: compressed tables, tables
with cells of variable length of bits, missing numbers, or missing logical values (``logical=text``
reads T, F and nothing), tiles inside gzip, and all that is damaged. Writing: complex numbers,
float16, text, and structures in structures, of several axes, or with fields that no column holds
are refused; bool becomes uint8; labels of axes, a description, a space and keywords that FITS
cannot spell have no place (named as equivalent), nor have the comments of structure, scale and
coordinates.
"""

from __future__ import annotations

from raconvert.files.inflate import start_of
from raconvert.plugin import NO, SURE, Format, Option, Source

from .adding import add
from .packed import GZIP_MAGIC, is_packed
from .plan import plan
from .reader import read
from .sums import check
from .tables import MAGIC, SAMPLES

__all__ = ["FORMAT", "add", "check", "plan", "read", "sniff"]

FORMAT = Format(
    name="fits",
    title="FITS",
    suffixes=(".fits", ".fit", ".fts", ".fz", ".fits.gz", ".fit.gz", ".fts.gz"),
    magic=((0, MAGIC), (0, GZIP_MAGIC)),
    meta="some",
    holds=("names", "spacing", "scale", "units"),
    read_options=(
        Option("logical", "bool", ("bool", "text"), "of tables; text: also where one is missing"),
    ),
    write_options=(Option("checksum", "yes", ("yes", "no"), "DATASUM and CHECKSUM"),),
    many=True,
    samples=SAMPLES,
    spec="https://fits.gsfc.nasa.gov/fits_standard.html",
    losses="images of integers, float32 and float64, and tables; no labels, no lowercase keywords",
)


def sniff(source: Source) -> int:
    """SURE if the file begins with the first keyword, inflated if it is compressed."""
    if is_packed(source):
        return SURE if start_of(source, len(MAGIC)) == MAGIC else NO
    return SURE if source.head.startswith(MAGIC) else NO
