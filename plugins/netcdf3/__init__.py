"""netCDF classic (CDF-1, CDF-2 and CDF-5): variables of climate and ocean files, read and written.

Specification: "The NetCDF Classic Format Specification" and "64-bit offset format" (Unidata); the
CDF-5 format of PnetCDF. Compared with: netCDF4, scipy and xarray, ncdump and nccopy, CDO and NCO.

Layout, all big-endian::

    magic        CDF and 1, 2 (offsets of 8 bytes) or 5 (counts of 8 bytes, too)
    numrecs      records of the unlimited dimension; all bits set: as many as the file has
    dimensions   name, length (0: the unlimited one)
    attributes   of the file: name, type, values
    variables    name, dimensions, attributes, type, size, place
    data         of variables without the unlimited dimension, then the records

Reads: byte, char, short, int, float, double, and ubyte, ushort, uint, int64, uint64 of CDF-5.
Variables of fixed size are extents of the file. Those with the unlimited dimension are read where
they lie, a stretch in each record; the parts of a record are padded to 4 bytes, unless there is
only one. netCDF-4 files are HDF5 inside, see `hdf5`: `.nc` is either, told apart by content.

=========================  =====================================================================
array                      written as
=========================  =====================================================================
int8, int16, int32         byte, short, int
float32, float64           float, double
uint8 to uint64, int64     ubyte, ushort, uint, uint64, int64: in CDF-5 only
bool                       byte, with the attribute ``dtype = "bool"``, as xarray writes it
complex                    pairs on a further dimension, ``ri``
dates, durations           int64 with the units of the CF conventions: in CDF-5 only
bytes (S) of one letter    char
bytes (S), text (U)        char with a further dimension for the letters, ``string9``; text in UTF-8
                           with ``_Encoding``, by which netCDF4 and xarray know it
=========================  =====================================================================

Mapping: as for netCDF-4. Dimensions name the axes; the variable of the name of a dimension gives
its axis units, and spacing and origin where its values are exactly regular, else labels. It stays
an array, too. `units` and `long_name` are the units and the description; all other attributes
(CF: scale_factor, _FillValue, bounds, coordinates) are kept, and applied by ``--unscale`` only.
An attribute of one value is that value; text loses NUL at its end. Types of attributes are
remembered as those of netCDF-4 (namespace ``hdf5``), so that a copy in either has them. Chars with
``_Encoding`` are texts as wide as their fastest dimension; other chars are texts of one byte.

Writes: the smallest of CDF-1, CDF-2 and CDF-5 that holds types, sizes and places, unless
``version`` asks for another one. `.nc` is netCDF-4 without ``--to netcdf3``. Axes that name
themselves share a dimension of that name where they say the same; where an axis says what stands
along it and no array does, a coordinate variable is written, which reading leaves out. An axis of
the name of a dimension that says something else has one of its own (``v.x``). The dimension that
was unlimited in the source, or is named by ``unlimited``, is that of the records. The library has
no data behind a variable above 2 GiB (CDF-1) or 4 GiB (CDF-2): the last one may be larger.

What no attribute holds is one attribute ``raconvert`` of JSON text, taken away again on reading:
names with ``/``, groups, further names, attributes other than numbers of one type and texts, axes
that no coordinate says, namespaces of other formats.

An array is added (``-o FILE#NAME``) to a file that is written anew: the header grows, all bytes of
names, attributes and elements stay. The file keeps its version unless the array needs a larger one.
Along the unlimited dimension a new array lies in the records. Refused: to replace a coordinate
along which other arrays lie, and to add to a file whose data is cut off.

Noted: dimensions that no variable has, text that is not UTF-8 (read as Latin-1), records that are
counted by the size of the file.

An array that cannot be read, by name: a variable whose data is cut off.

Refused: headers that are damaged, variables that overlap each other or the header, more than 64
dimensions, files without variables. In writing: float16, structures, and axes without elements
other than one slowest axis, since only the unlimited dimension has the length 0.
"""

from __future__ import annotations

from raconvert.plugin import MODEL, NO, SURE, Bundle, Format, Source

from .adding import add
from .plan import plan
from .tables import RECORDS, SAMPLE, VERSIONS, WRITE_OPTIONS

__all__ = ["FORMAT", "add", "plan", "read", "sniff"]

FORMAT = Format(
    name="netcdf3",
    title="netCDF classic",
    suffixes=(".nc3", ".cdf"),
    magic=tuple((0, magic) for magic in VERSIONS),
    proof=True,
    many=True,
    meta="all",
    holds=MODEL,
    write_options=WRITE_OPTIONS,
    samples={"x.cdf": SAMPLE, "records.nc3": RECORDS},
    spec="https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html",
    losses="float16, structures, most empty axes; what single items of a stack have of their own",
)


def sniff(source: Source) -> int:
    """Return SURE for any file that begins with the magic of one of the versions."""
    return SURE if source.head[:4] in VERSIONS else NO


def read(source: Source) -> Bundle:
    """Read the variables of a file in C order: extents, or stretches in the records.

    Raises `Corrupt`, `Unsupported` and `TooLarge` before any data is read.
    """
    from .reader import read_file

    return read_file(source)
