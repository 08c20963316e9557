"""LMDB: values by key, read: images, arrays of NumPy, data of Caffe, texts, bytes.

Specification: the structures in ``mdb.c`` and ``lmdb.h`` of LMDB 0.9 (``MDB_meta``, ``MDB_db``,
``MDB_page``, ``MDB_node``); Caffe's ``caffe.proto`` for ``Datum``. Compared with: py-lmdb, which
wrote the fixtures.

Layout, little-endian; numbers of pages are 64 bits::

    page 0, 1  the two last states: magic ``DE C0 EF BE``, version 1, two trees, last page,
               transaction; the later transaction holds
    a page     number, flags, end of the pointers, end of the room, pointers to its entries
    an entry   size of the value (or a page below), flags, size of the key, key, value
    overflow   a value that is larger than a quarter of a page, on pages of its own that follow
               each other

Reads a file, or a folder with ``data.mdb``, where it lies: no lock, no map, no file beside it. All
entries are looked at once, values are decoded when they are asked for. A file that is being written
meanwhile is refused as soon as that shows.

Becomes, for each database (named ones are groups), by the kind of its values:

==================  ============================================================================
PNG, JPEG, WebP,    ``images``, as those formats are read here: (values, height, width, channels)
BMP, GIF
``.npy``            ``arrays``
Caffe ``Datum``     ``images`` of (values, channels, height, width), uint8 or float32, in the order
                    of channels that is stored (usually BGR); encoded ones as the images above.
                    ``labels``: int32
text of UTF-8       ``texts``
anything else       ``values``: bytes as uint8
==================  ============================================================================

if all of them have one type and shape: the keys are the labels of the first axis (more than 200,000
keys are an array of their own). Values of different shapes become an array for each key, with the
label of a datum as an attribute; a damaged value becomes an array that cannot be read. Keys are
text of UTF-8; all of them are in hexadecimal if some are not text; integers are in digits.
``values=bytes`` reads every value as bytes.

Left unread: ``meta_info.txt`` of MMEditing beside the file, which repeats what images say;
the tree of free pages.

Refused: pickles, which are never opened; several values of one key (``dupsort``); files of 32-bit
or big-endian machines; other versions; trees whose keys do not ascend, whose depth or count is
another, or that lead outside the file; values that overlap.
"""

from __future__ import annotations

from raconvert.plugin import NO, SURE, Bundle, Format, Option, Source

from .tables import MAGIC, SAMPLE

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = Format(
    name="lmdb",
    title="LMDB",
    suffixes=(".lmdb", ".mdb"),
    magic=tuple((at, word) for at in (16, 12) for word in (MAGIC, MAGIC[::-1])),
    many=True,
    marks=("data.mdb",),
    holds=("names", "labels", "attributes"),
    writes=False,
    read_options=(Option("values", "auto", ("auto", "bytes"), "bytes: all values as bytes"),),
    samples={"datum.lmdb": SAMPLE},
    spec="https://git.openldap.org/openldap/openldap/-/blob/mdb.master/libraries/liblmdb/mdb.c",
    losses="it is read, not written",
)


def sniff(source: Source) -> int:
    """Return SURE for the magic behind the header of a page, of any machine."""
    return SURE if any(source.head.startswith(word, at) for at, word in FORMAT.magic) else NO


def read(source: Source, *, values: str = "auto") -> Bundle:
    """Return the arrays of a file; raises `Corrupt`, `TooLarge`, `Unsafe`, `Unsupported`."""
    from .reader import read as read_file

    return read_file(source, values)
