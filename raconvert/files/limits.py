"""Bounds of memory, work, counts and depth for one source: parsers ask them, tests lower them."""

from __future__ import annotations

from raconvert.declared import Record


class Limits(Record):
    """Bounds that hold for a source wherever it lies: in a file, in a folder, at a URL.

    `memory` is --max-memory: bytes that decoding may hold at once. No option changes the
    others; their defaults are far above the numbers in sound files.
    """

    memory: int = 1 << 30
    document: int = 16 << 20  # bytes of one metadata document, or of a record inside a file
    documents: int = 64 << 20  # bytes of one that has those of a whole hierarchy
    nesting: int = 64  # lists and mappings inside each other in a document
    values: int = 400_000  # of one YAML document: about two seconds
    attributes: int = 128 << 20  # bytes of the plain values that all attributes of a file become
    nodes: int = 200_000  # arrays and groups of one file; some kilobytes each in memory
    depth: int = 500  # groups inside each other
    links: int = 200_000  # of one file, beside the first name of each of its objects
    names: int = 32 << 20  # characters of all paths in a file: each has those of its groups in it
    ways: int = 1_000_000  # names that all links of a file lead along
    follows: int = 40  # links on the way of one path
    others: int = 100  # further files that one file may name
    maps: int = 8  # virtual datasets that take their elements from each other
    reads: int = 100_000  # sources of a virtual dataset, and theirs
    search: int = 64 << 20  # bytes of a file that is looked through as a whole
    fields: int = 10_000  # fields of a structure
    word: int = 64  # characters of the name of a type
    steps: int = 16  # codecs in a chain
    shards: int = 3  # shards inside shards
    counted: int = 100_000  # files of a folder that are counted when it is opened
    listed: int = 1_000_000  # files of a folder of which the names are kept
    indexes: int = 16 << 20  # bytes of indexes of shards that are read to count their chunks
    repeats: int = 16  # times that the bytes of a shard may be decoded, as parts may overlap
    ratio: int = 1 << 18  # bytes that stored bytes may become beyond `memory`; Zstandard: 1 << 15
    sparse: int = 1000  # pieces that may be absent for each piece that is stored
    piece: int = 16 << 20  # bytes of an absent piece that `sparse` counts
    absent: int = 10_000  # requests that a server may answer with "not there", if it has no more


DEFAULT = Limits()
