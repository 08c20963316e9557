"""Zarr: named arrays in a tree of groups, each cut into chunks, in a folder; read and write.

Specifications: "Zarr core specification (version 3)", "Zarr v2", and the registered extensions
(zarr-specs and zarr-extensions, zarr-developers on GitHub). Compared with: zarr-python, tensorstore
and xarray. The codecs are numcodecs', as zarr-python uses them.

Layout: version 3 has a ``zarr.json`` in the folder of every array and group, version 2 ``.zarray``
or ``.zgroup``, and ``.zattrs``; each chunk, or shard of chunks, is a file of its own: ``c/0/1``,
``0.1`` or ``0/1``.

Reads: both versions, in folders and at URLs; the folder, or a metadata file in it, is named. A
hierarchy is a bundle, whose arrays are named by their paths, in the order that we wrote, else by
name. Regular chunk grids; the codecs below; shards, of which only the chunks that are asked for are
read. Both byte orders; a region reads only the chunks that it touches.

===========================  ==================================  ===============================
Zarr                         array                               written as
===========================  ==================================  ===============================
bool, int, uint, float,      the same                            the same, in the byte order
complex, bfloat16                                                that it had, or ``endian``
S, null_terminated_bytes     S                                   the same
V, raw_bytes, r8, r16, ...   V                                   the same
U, fixed_length_utf32        U                                   the same
M8, m8, numpy.datetime64     dates and times                     the same
lists of fields, structured  structure                           the same in version 2; in 3 only
                                                                 of plain little-endian fields
string, objects with         S in UTF-8, as wide as the longest  the same
vlen-utf8
bytes, objects with          S, as wide as the longest           null_terminated_bytes
vlen-bytes
===========================  ==================================  ===============================

Codecs: bytes, transpose, sharding_indexed, crc32c; gzip, zlib, bz2, lzma, zstd, blosc, lz4;
shuffle, delta, fixedscaleoffset, quantize, bitround, packbits, astype; crc32, adler32, fletcher32,
jenkins_lookup3; in version 3 also under the names ``numcodecs.NAME``.

Metadata: the attributes ``units`` and ``long_name`` are the fields units and description,
``dimension_names`` (version 2: ``_ARRAY_DIMENSIONS``) the names of axes; all other attributes stay
attributes. What JSON or Zarr has no place for is one attribute ``raconvert`` of text, taken away
again on reading. Axes without names get ``NAME_dim_0``, ..., as xarray needs names; they are none
when they are read again. What stands along a named axis (labels, origin and spacing) is also
written as an array of that name, which xarray takes for the coordinate; reading leaves it out.
``_FillValue`` is a number, in the form that xarray has in each version: an attribute, base64 of
floats in version 3; in version 2 the ``fill_value`` of arrays whose dimensions have names.

AnnData: as in HDF5, levels of categories, masks, and ``anndata=labels``.

A chunk that is not there reads as the fill value, and a note says how many are absent ("3 of 40
chunks absent: fill value 0"); at a URL they are counted while the array is read. A chunk that is
cut, damaged, or decodes to another size is an error that names it.

Writes: a group whose members are the arrays, version 3 (``format=2`` for the other), chunks of
whole rows of about 1 MiB, zstd; every chunk, so that nothing hangs on a fill value; equal arrays
give equal bytes. The folder appears whole; an existing one is replaced only with ``--overwrite``,
and only if there is nothing else in it: metadata, and chunks of arrays that are there.

An array is added (``-o FOLDER#NAME``) in the version of the hierarchy; the files of all others keep
their content, consolidated metadata lists the new one. Where the name of an axis is that
of a dimension with another length, or other values, other programs see a dimension of another name.

Refused: objects and codecs that make them of bytes (pickle, json2, msgpack2); irregular chunk
grids, storage transformers, codecs that are not known; links to folders, and files outside the
folder; JSON above 16 MiB or nested more than 64 levels; chunks, or steps of their codecs, that need
more than ``--max-memory``. Above that, too: arrays that are little more than a fill value (1000
chunks may be absent for each that is there), or whose stored bytes become 262,144 times as many. A
server is asked for 10,000 chunks that it does not have, more only if it has others. Parts of a
shard that overlap are decoded up to 16 times the length of the shard.
"""

from __future__ import annotations

import os

from raconvert.arrays.dtypes import FLOAT8
from raconvert.errors import UsageError
from raconvert.files.paths import is_remote, is_there
from raconvert.plugin import MODEL, NO, SURE, Array, Bundle, Format, Option, Plan, Source

from ..ome.sniffing import is_ome_zarr
from .form import WRITE_OPTIONS, Options, options_of
from .plan import plan
from .stores import check_target, target
from .tables import MARKS, PROGRAMS, SAMPLE_2, SAMPLE_3

__all__ = ["FORMAT", "add", "check_target", "plan", "programs", "read", "sniff", "target"]

FORMAT = Format(
    name="zarr",
    title="Zarr",
    suffixes=(".zarr",),
    magic=((0, b"{"),),
    many=True,
    float8=FLOAT8,
    meta="all",
    holds=MODEL,
    folder=True,
    marks=MARKS,
    needs=(("numcodecs", "numcodecs"), ("google_crc32c", "google-crc32c")),
    names_files=True,
    sidecar="never",
    read_options=(
        Option("metadata", True, bool, "read what we keep beside the attributes"),
        Option("anndata", "plain", ("plain", "labels"), "labels: X and others have obs and var"),
    ),
    write_options=WRITE_OPTIONS,
    samples={"three.zarr": SAMPLE_3, "two.zarr": SAMPLE_2},
    spec="https://zarr-specs.readthedocs.io",
    losses="what single items of a stack have of their own; structures with padding",
)
LOOKED_AT = 1 << 20  # bytes of a document that are searched by `sniff`


def sniff(source: Source) -> int:
    """Sure by the key ``"zarr_format"`` in a JSON object, unless it is of OME-Zarr."""
    head = source.head
    if not head.lstrip().startswith(b"{"):
        return NO
    if source.name in MARKS:
        head = source.read_at(0, LOOKED_AT)
    if b'"zarr_format"' not in head:
        return NO
    return NO if is_ome_zarr(source) else SURE


def read(source: Source, *, metadata: bool = True, anndata: str = "plain") -> Bundle:
    """The arrays of a hierarchy as lazy arrays, named by their paths.

    Raises the first reason if nothing in it can be read; otherwise each array that cannot has its
    reason as `Array.problem`.
    """
    from .reader import read_store

    path, name = source.path, source.name
    if is_remote(path):
        folder = name not in MARKS and (path.endswith(".zarr") or not is_there(path))
    else:
        folder = os.path.isdir(path)
    return read_store(
        source,
        metadata_file="" if folder else name,
        described=metadata,
        labels=anndata == "labels",
    )


def add(
    bundle: Bundle,
    source: Source,
    held: Bundle,
    *,
    overwrite: bool,
    format: str = "3",
    chunks: str = "auto",
    shards: str = "none",
    compress: str = "zstd",
    checksum: bool = False,
    endian: str = "auto",
    strings: str = "auto",
) -> Plan:
    """Plan the hierarchy with the arrays added in its version, and all other files; see `Add`."""
    from .adding import plan_added

    def options_for(version: int) -> Options:
        if format == "2" and version == 3:
            raise UsageError(
                "the hierarchy is of version 3, and an array cannot be added in version 2",
                path=source.path,
            )
        return options_of(
            str(version), chunks, shards, compress, endian, strings, checksum=checksum
        )

    return plan_added(bundle, source, held, overwrite=overwrite, options_for=options_for)


def programs(array: Array) -> dict[str, str]:
    """Programs of zarr-python and Zarr.jl that read an array of numbers. Raises nothing."""
    from .values import Chunks

    if not isinstance(array.data, Chunks) or not array.name.isprintable():
        return {}
    is_number = array.element.kind in ("int", "uint", "float", "complex", "bool")
    if not is_number or array.data.key not in ("", array.name):
        return {}
    axes = ", ".join(":" * array.ndim) or "1"
    lines = {language: text.replace("AXES", axes) for language, text in PROGRAMS.items()}
    if array.data.key:
        return lines
    return {language: text.replace("[NAME]", "") for language, text in lines.items()}
