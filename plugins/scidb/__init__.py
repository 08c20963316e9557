"""SciDB binary: the records of ``save`` and ``load``, read and write.

Specification: "Loading binary data" of the SciDB documentation, and what the server of 19.11 does
(`TemplateParser`, `BinaryChunkLoader`). Compared with: SciDB-Py 19.11.7.

Layout: records, nothing else: no magic, header, count, names or alignment. Little-endian. A record
has the columns of a *format string* such as ``(int64, double null, string, skip(4))``:

=====================  ===========================================================================
fixed type             its bytes
string, binary         32-bit count, then as many bytes; a string's end with NUL, which is counted
string(N), binary(N)   N bytes, padded with zeros
skip(N), skip          bytes that belong to no attribute, as binary(N) and binary
any of them ``null``   one byte before: 255 if the value is there, else 0 to 127, why it is not
=====================  ===========================================================================

Since the file does not say so itself, what it holds comes from the options ``schema=`` (an AFL
schema) and ``format=``, from ``FILE.schema``, or from ``_schema.scidb-schema`` in its folder. Such
a file has the schema, then lines ``format: (...)`` and the other options of reading. The format
string decides about the bytes; without it the types of the schema do.

Becomes, for an attribute ``a``: the array ``a``, or ``a.offsets`` (int64, one more than records)
and ``a.bytes`` (uint8, the values one after the other, with their NUL) for string and binary;
``a.null``, the uint8 prefixes, if it is nullable. Bytes behind nulls are kept as they are. Skipped
columns are ``skip.1``, ``skip.2``, …, opaque. bool is the uint8 that it is stored as (any but 0 is
true), char is uint8, datetime int64 in seconds since 1970, datetimetz pairs of int64 on a fastest
axis (local clock, offset of the zone; UTC is their difference), string(N) ``S<N>``, binary(N) and
user-defined types (``types=point=16``) ``V<N>``. Shape, order and role of every array are in the
metadata, namespace ``scidb``, so that the file can be written again byte for byte. Converting an
array without the others that its `companions` name there loses nulls, or the ends of strings, and
is refused (--allow nulls, --allow elements).

Dimensions: where all have both bounds the arrays have their shape, and the number of records must
be that of the cells; otherwise, and with ``layout=flat``, they are tables of one dimension.
``order=chunk`` (found from the chunk lengths) undoes SciDB's order, chunk after chunk, each
row-major. ``coords=after`` or ``before`` says that the dimensions are int64 columns too, read as
arrays of their own; with ``layout=dense`` they put the values into cells instead, cells without a
record are zero, and an array ``cells`` has the cell index of every record. ``records=raw`` gives
the records verbatim as one array.

Refused: SciDB text and opaque dumps, by name; records that the file cuts off; counts that do not
fit the schema; schemas and format strings that do not follow their grammar, with the position. A
record holds a value of every attribute, and nothing but the counts tells where the next one begins:
what is cut off or out of step concerns all attributes, so none is read. Values have no checksums;
damage that leaves the records as long as they were is found only beside a schema written here,
which ends with a checksum of them (of samples, above 1 MiB).

Writing makes the attributes of one SciDB array in row-major order and one chunk; ``FILE.schema``
has the line that loads it. ``coords=after`` adds the coordinates as columns. Arrays must have one
shape. Nothing is nullable but what has a companion (marked in the metadata, or ``companions=names``
by its name). ``mode=canonical`` writes what SciDB itself would: prefixes 255, zeros behind nulls
and in skipped columns, strings up to their first NUL. float16 becomes float, complex numbers pairs
on a fastest axis, bytes ``binary(N)``; bool and datetime are read back as integers.
"""

from __future__ import annotations

from raconvert.errors import RaconvertError
from raconvert.plugin import MAYBE, NO, SURE, Bundle, Format, Option, Source

from .header import CHOICES, SUFFIX, combine, find_schema_file, foreign_kind, load_schema_file
from .plan import plan

__all__ = ["FORMAT", "plan", "read", "sniff"]

_HELP = {
    "layout": "dense: the shape of the schema; flat: a table of records",
    "order": "of the cells in the file: row-major, or chunk after chunk",
    "coords": "whether the dimensions are int64 columns, before or after the attributes",
    "records": "attributes: one array each; raw: the records verbatim in one array",
    "nullable_default": "what a schema without a format string means by neither NULL nor NOT NULL",
}

FORMAT = Format(
    name="scidb",
    title="SciDB binary",
    names_files=True,
    suffixes=(".scidb", ".sdbbin"),
    many=True,
    meta="some",
    holds=("names", "spacing"),
    index_orders="C",
    read_options=(
        Option("schema", "", str, "AFL schema: '<a:double NOT NULL, b:string>[i=0:9]'"),
        Option("format", "", str, "format string: '(double, string null)'"),
        Option("types", "", str, "bytes of user-defined types: 'point=16,rational=16'"),
        *(Option(name, "auto", words, _HELP[name]) for name, words in CHOICES.items()),
    ),
    write_options=(
        Option("mode", "exact", ("exact", "canonical"), "canonical: as SciDB itself writes it"),
        Option("coords", "auto", CHOICES["coords"], "add the coordinates as int64 columns"),
        Option(
            "companions",
            "metadata",
            ("metadata", "names"),
            "names: NAME.null, NAME.offsets and NAME.bytes belong to NAME also without metadata",
        ),
    ),
    samples={
        "three_records.scidb": b"\x01\x00\x00\x00\xff\x02\x00\x00\x00a\x00"
        b"\x02\x00\x00\x00\x07\x00\x00\x00\x00\x03\x00\x00\x00\xff\x01\x00\x00\x00\x00",
        "three_records.scidb.schema": b"<n:int32 NOT NULL, t:string>[i=0:2]\n",
    },
    spec="https://paradigm4.atlassian.net/wiki/spaces/scidb (Loading binary data)",
    losses="no metadata but names and integer origins of axes; text (U), dates other than seconds, "
    "structures and bfloat16 would lose their type; arrays of different shape need a file each",
)


def sniff(source: Source) -> int:
    """SURE for SciDB text and dumps, to refuse them by name, and beside a sound FILE.schema."""
    try:
        file = find_schema_file(source)
    except RaconvertError:  # it exists and may not be read: `read` raises the reason
        return MAYBE
    if file is None:
        return SURE if foreign_kind(source.head) else NO
    try:
        texts = load_schema_file(file)
        combine(source.path, texts, source.limits)
    except RaconvertError:
        return MAYBE
    return SURE if file.path.endswith(source.name + SUFFIX) else MAYBE


def read(
    source: Source,
    *,
    schema: str = "",
    format: str = "",
    types: str = "",
    layout: str = "auto",
    order: str = "auto",
    coords: str = "auto",
    records: str = "auto",
    nullable_default: str = "auto",
) -> Bundle:
    """The attributes of the file and their companions; values are read later.

    Records that differ in width are counted in one pass over the file. Raises `UsageError` without
    a schema, or for options that are wrong; `Unsupported` for SciDB text and dumps; `Corrupt` for
    anything that is cut off or does not fit its schema, naming record, column and byte.
    """
    from .reader import read_bundle

    options = {
        "schema": schema, "format": format, "types": types, "layout": layout, "order": order,
        "coords": coords, "records": records, "nullable_default": nullable_default,
    }  # fmt: skip
    return read_bundle(source, options)
