r"""HDF5: named arrays in a tree of groups, with attributes, read and write.

Specifications: "HDF5 File Format Specification Version 3.0" and the reference manual of the library
(The HDF Group); "HDF5 Dimension Scale Specification"; the netCDF-4 and JLD2 conventions. Through
the package h5py, and past it where that is safer or faster. Compared with: h5dump and h5diff 1.10.

Layout: the signature ``\x89HDF\r\n\x1a\n`` at byte 0, 512, 1024, 2048, ... (before it: a user
block), then objects at addresses, all behind the library.

Reads: every layout (compact, contiguous, chunked with any filter that is there, external storage,
virtual); both byte orders; all element types in the table below. Contiguous data that has the form
of the core carries an extent, and is never read here. Chunks that are stored, deflated, or shuffled
and deflated are decoded by threads outside the library, bounded by their declared size. Everything
else goes through the library in the file's own datatype, in slabs of whole chunks.

=========================  ====================================  ================================
HDF5                       array                                 written as
=========================  ====================================  ================================
integers, floats           int, uint, float                      the same, little-endian
odd widths (31 bits)       the next wider number, with a note    that number
bfloat16                   bfloat                                the same 16-bit float
float of one byte          float8 of ml_dtypes, by its bias      the same
bitfield, full             uint (bool in JLD2)                   bitfield (bool: as enum)
enum                       its integer; of odd width: as above   enum
enum FALSE TRUE on int8    bool; int8 with ``bools=integers``    the same (h5py's convention)
compound of two floats     complex: r i, re im, real imag, any   compound r i, or the names that
                           order, padding or case                it had, side by side
native complex (2.0)       complex                               compound r i
compound                   structure, offsets and padding kept;  the same; its strings in that
                           variable strings as below, packed     fixed width
array type                 its axes become the fastest ones      the same, but not of strings
fixed string               S, without padding (its rule says     the same padding and charset
                           where that begins)
variable string            S, as wide as the longest             variable string again, unless
                                                                 ``strings=fixed``
opaque                     V; dates and texts by h5py's tag      the same
(text of NumPy: U)                                               UTF-8 strings of 4 bytes a letter
=========================  ====================================  ================================

Names are the paths of the objects without the leading slash, in creation order where the file
keeps it, else by name. Row-major: dims are the shape reversed, index order C; in files of JLD2 and
JLD (written by Julia) index order F, so that the shape is the one that Julia lists. Arrays that
JLD2 compressed are read also where the library refuses their chunk (HDF5 2.0).

Links: hard ones make the tree, and no object is found twice; further hard and soft links to it are
aliases, by which it can be asked for (with a note). They, and links that lead nowhere (with a
note), are kept in the namespace ``hdf5`` of the file and written again. External links are
followed. Files that the file names are opened only inside its own folder tree (or with ``--trust
external``): a link that leads out of it leads nowhere, other data outside is refused. Sources of
virtual datasets and external storage are opened here, not by the library, relative to the file that
names them. A missing source is an error, not a fill value; sources by a pattern (``%b``) end with
the first that is missing.

Metadata: the attributes ``units`` and ``long_name`` are the fields units and description, dimension
scales and labels the axes; all other attributes stay attributes, their HDF5 types in the namespace.
 netCDF-4 files are read in the same way; nothing that their conventions say
(scale_factor, _FillValue) is applied without ``--unscale``.
What HDF5 has no place for (foreign namespaces, mixed lists)
is one attribute ``raconvert`` of JSON text, taken away again on reading.

AnnData (.h5ad): all arrays as they lie, sparse matrices as their parts. Codes of categories get the
attributes ``levels`` (up to 1000) and ``ordered``, also in files of version 0.7, where a reference
leads to them; values with a mask are not chosen without it (``--allow nulls``). AnnData reads what
is written of it. With ``anndata=labels`` X, layers, obsm and varm get the axes obs and var, with up
to 1000 labels, for formats that hold them; not for AnnData, since HDF5 has them as further arrays.

Writes: superblock 0, readable since HDF5 1.8; contiguous data, or chunks with ``compress`` or
``chunks``, whatever layout, filters and unlimited axes there were; creation order kept; no times,
so that equal arrays give equal files. The axes of arrays that name them, or say what stands along
them, make dimension scales, shared by the arrays of a group as netCDF shares dimensions: netCDF4,
h5netcdf and xarray open such files. In ``.nc`` all axes do, and texts become strings of variable
length.

A dataset is added (``-o FILE#NAME``) to a copy of the file, in which everything that is there keeps
its bytes, also what is left out below. Its named axes share the dimension scales of the group where
these say the same. A replaced one leaves its room unused (``h5repack`` gives it back), and its
attributes are those of the new array; references to it lead nowhere. Refused: to replace a scale to
which others are attached, to add below a link, to files of JLD2.

Noted and left out: references, sequences of variable length, long doubles and other floats beyond
float64, integers beyond 64 bits, times, structures with any of these, user-defined links, named
datatypes, and attributes of these types; empty datasets (null space), which come back in HDF5. As
long as one array is left; otherwise the file is refused for that reason.

Cannot be read, while the others can (``--allow arrays`` leaves them out): datasets with a filter
that is not installed (named, with the install line); declared sizes that the file cannot hold; data
outside the file; damaged chunks; external storage that is shorter than the dataset; strings of
variable length above ``--max-memory`` once they have one width, or in external storage; bools that
are neither 0 nor 1 (``bools=integers`` keeps them); groups and chunked datasets whose old index
(version 1, without checksums) hides entries, or puts chunks over something else. Not found there: a
chunk without filters whose address leads to bytes that nothing claims, or to another dataset's; a
damaged filter mask of a chunk whose stored size is its plain size (shuffled only, or deflated to
that size by chance), whose bytes are taken as the mask says, as the library takes them.

Limits of one file, so that work and memory stay in proportion to it: 200,000 objects, 200,000
further links, 40 links on the way of one, 500 groups inside each other, 100 notes; attributes that
need 128 MiB as plain values (the others are noted and left out); ``--max-memory`` for all data that
is little more than a fill value.

Writing keeps everything but the metadata that single items of a stack have. Text and
dates are equivalent: other programs see UTF-8 strings and opaque bytes, which h5py takes for dates.
In a ``.nc`` dates and durations are integers with the units of the CF conventions, as they are in
NumPy: ``nanoseconds since 1970-01-01``. More than 32 axes are refused.
"""

from __future__ import annotations

from raconvert.plugin import MODEL, NO, SURE, Array, Bundle, Format, Plan, Source

from .tables import (
    C_TYPES,
    FLOAT8_LAYOUTS,
    MAT_MARKS,
    PLACES,
    PROGRAMS,
    READ_OPTIONS,
    SAMPLE,
    SIGNATURE,
    USUAL_FILTERS,
    WRITE_OPTIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

__all__ = ["FORMAT", "add", "plan", "programs", "read", "sniff"]

FORMAT = Format(
    name="hdf5",
    title="HDF5",
    names_files=True,
    suffixes=(".h5", ".hdf5", ".he5", ".nc"),
    magic=tuple((at, SIGNATURE) for at in PLACES),
    many=True,
    float8=tuple(FLOAT8_LAYOUTS),
    meta="all",
    holds=MODEL,
    index_orders="C",
    needs=(("h5py", "h5py"),),
    native=True,
    read_options=READ_OPTIONS,
    write_options=WRITE_OPTIONS,
    samples={"three_bytes.h5": SAMPLE},
    spec="https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html",
    losses="what single items of a stack have of their own; dates become tagged bytes",
)


def sniff(source: Source) -> int:
    """Sure by the signature, except in MAT files of version 7.3, which are another format."""
    head = source.head
    if head[124:128] in MAT_MARKS:
        return NO
    return SURE if any(head[at : at + len(SIGNATURE)] == SIGNATURE for at in PLACES) else NO


def read(source: Source, *, bools: str = "auto", anndata: str = "plain") -> Bundle:
    """The datasets of an HDF5 file as lazy arrays, named by their paths.

    Raises the first reason if nothing in the file can be read; otherwise each dataset that cannot
    has its reason as `Array.problem`.
    """
    from .reader import read_file

    return read_file(source, bools, labels=anndata == "labels")


def plan(
    bundle: Bundle,
    *,
    compress: str = "none",
    chunks: str = "auto",
    shuffle: bool = True,
    strings: str = "auto",
) -> Plan:
    """Plan a file of the arrays in order, with groups, attributes, scales and links.

    `compress` is none, gzip, gzip:0 to gzip:9, or lzf; `chunks` auto, none, or a length for each
    axis; `shuffle` sorts the bytes of elements before they are compressed; `strings` fixed writes
    no strings of variable length. Raises `UsageError` for other words.
    """
    from .structure import fits_of, options_of, structure_of

    options = options_of(compress, chunks, shuffle, strings)
    structure = structure_of(bundle, options)

    def write(target: Target) -> None:
        from .writer import Writer

        Writer(bundle, target, options, structure).run()

    return Plan(fits_of(bundle, options, structure), write, names=bundle.names)


def add(
    bundle: Bundle,
    source: Source,
    held: Bundle,
    *,
    overwrite: bool,
    compress: str = "none",
    chunks: str = "auto",
    shuffle: bool = True,
    strings: str = "auto",
) -> Plan:
    """Plan a copy of the file with the arrays added; options as those of `plan`; see `Add`."""
    from .adding import plan_added
    from .structure import options_of

    options = options_of(compress, chunks, shuffle, strings)

    return plan_added(bundle, source, held, options, overwrite=overwrite)


def programs(array: Array) -> dict[str, str]:
    """Programs that read an array: h5py, HDF5.jl, h5read of MATLAB, rhdf5, the library itself.

    Raises nothing.
    """
    from .values import Dataset

    kind, width = array.element.kind, array.element.nbytes
    if not isinstance(array.data, Dataset) or not array.name.isprintable():
        return {}
    lines = dict(PROGRAMS)
    filters = {text.split()[0] for text in array.storage.get("filters", ())}
    if filters - USUAL_FILTERS:
        first = "" if filters - USUAL_FILTERS == {"lzf"} else "import hdf5plugin  # its filters\n"
        lines = {"Python": first + lines["Python"]}
    if kind == "bool":
        return {"Python": lines["Python"].replace("[()]", "[()].astype(bool)")}
    if kind not in ("int", "uint", "float", "complex"):
        return {}
    kind_in_c = C_TYPES.get((kind, width))
    if kind_in_c is None or "C" not in lines:
        return {name: lines[name] for name in ("Python", "Julia") if name in lines}
    lines["C"] = lines["C"].replace("TYPE", kind_in_c[0]).replace("NATIVE", kind_in_c[1])
    lines["C"] = lines["C"].replace("COUNT", str(array.count))
    if width == 8 and kind != "float":
        lines["R"] = lines["R"].replace("NAME)", 'NAME, bit64conversion = "bit64")')
    elif (kind, width) == ("uint", 4):
        del lines["R"]  # R has no such numbers
    return lines
