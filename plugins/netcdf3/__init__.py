"""netCDF classic (CDF-1, CDF-2 and CDF-5): the variables of climate and ocean files, read.

Specification: "The NetCDF Classic Format Specification" and "64-bit offset format" (Unidata); the
CDF-5 format of PnetCDF. Compared with: netCDF4 and scipy, which write the files of the tests.

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
only one. netCDF-4 files are HDF5 inside, see there: `.nc` is either, told apart by content.

Mapping: as for netCDF-4. Dimensions name the axes; the variable of the name of a dimension gives
its axis units, and spacing and origin where its values are exactly regular, else labels. It stays
an array, too. `units` and `long_name` are the units and the description; all other attributes
(CF: scale_factor, _FillValue, bounds, coordinates) are kept, and applied by ``--unscale`` only.
An attribute of one value is that value; text loses NUL at its end. Attributes have no type here:
a float is a double of the same value. Elements of type char are texts of one byte.

Noted: dimensions that no variable has, text that is not UTF-8 (read as Latin-1), records that are
counted by the size of the file.

An array that cannot be read, by name: a variable whose data is cut off.

Refused: headers that are damaged, variables that overlap each other or the header, more than 64
dimensions, files without variables. Not written: ``--to hdf5`` makes netCDF-4.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Source

from .plan import add, plan
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
    write_options=WRITE_OPTIONS,
    samples={"x.cdf": SAMPLE, "records.nc3": RECORDS},
    spec="https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html",
    losses="float16 and structures are refused; what single items of a stack have of their own",
)


def sniff(source: Source) -> int:
    """Sure of any file that begins with the magic of one of the versions."""
    return SURE if source.head[:4] in VERSIONS else NO


def read(source: Source) -> Bundle:
    """The variables of a file in C order: extents, or stretches in the records.

    Raises `Corrupt`, `Unsupported` and `TooLarge` before any data is read.
    """
    from .reader import read_file

    return read_file(source)
