"""Layout of the pages of LMDB: fields, flags, and a small whole file."""

from __future__ import annotations

from struct import Struct, pack

from raconvert.declared import Record

__all__ = ["DUPLICATES", "MAGIC", "NODE", "SAMPLE", "Tree"]

MAGIC = b"\xde\xc0\xef\xbe"
VERSION = 1
HEAD = Struct("<QHHHH")  # of a page: number, padding, flags, end of the pointers, end of the room
META = Struct("<4sIQQ")  # magic, version, address and bytes of the map
TREE = Struct("<IHHQQQQQ")  # see `Tree`
TAIL = Struct("<QQ")  # the last page, the transaction
NODE = Struct("<HHHH")  # low and high half of the size, flags, bytes of the key
PAGE_SIZES = tuple(1 << bits for bits in range(9, 17))
LEVELS = 32  # of a tree, as many as the library follows

BRANCH, LEAF, OVERFLOW, META_PAGE, FIXED_LEAF = 0x01, 0x02, 0x04, 0x08, 0x20  # flags of pages
BIG, SUBTREE, DUPLICATES = 0x01, 0x02, 0x04  # flags of nodes
REVERSE_KEY, INTEGER_KEY = 0x02, 0x08  # flags of trees
NO_PAGE = (1 << 64) - 1  # the root of an empty tree


class Tree(Record):
    """The record of a tree; the first field of the first one of a file is the size of its pages."""

    padding: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


def _sample() -> bytes:
    """Return a file of one datum of Caffe: 2 channels, 1 row, 3 columns, the label 7."""
    size = 512
    value = bytes([8, 2, 16, 1, 24, 3, 34, 6, *range(6), 40, 7])
    node = NODE.pack(len(value), 0, 0, 1) + b"a" + value
    node += bytes(len(node) % 2)
    leaf = HEAD.pack(2, 0, LEAF, HEAD.size + 2, size - len(node)) + pack("<H", size - len(node))
    pages = [leaf + bytes(size - len(node) - len(leaf)) + node]
    free, empty = (size, 0, 0, 0, 0, 0, 0, NO_PAGE), (0, 0, 0, 0, 0, 0, 0, NO_PAGE)
    for number, main in ((1, (0, 0, 1, 0, 1, 0, 1, 2)), (0, empty)):
        meta = HEAD.pack(number, 0, META_PAGE, 0, 0) + META.pack(MAGIC, VERSION, 0, 3 * size)
        meta += TREE.pack(*free) + TREE.pack(*main) + TAIL.pack(2 if number else 1, number)
        pages.insert(0, meta.ljust(size, b"\0"))
    return b"".join(pages)


SAMPLE = _sample()
