"""B-trees of version 2, checked before the library makes a table from what their headers say.

File format specification 3.0, III.A.2 "Disk Format: Level 1A2 - Version 2 B-trees", IV.A.2.c "The
Link Info Message" and IV.A.2.v "The Attribute Info Message".

The library believes the kind and the number of records of a header whose checksum fits; where they
are wrong it reads and writes memory that is not its own. So every node is counted first.
"""

from __future__ import annotations

from struct import Struct

from raconvert.errors import Corrupt

from .header import ADDRESS_BYTES, ATTRIBUTE_INFO, NOWHERE, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .files import File

LINK_INFO = 0x02  # message
LINK_NAMES, LINK_ORDER, ATTRIBUTE_NAMES, ATTRIBUTE_ORDER = 5, 6, 8, 9  # kinds of trees
FILTERED_CHUNKS = 11
RECORD_BYTES = {LINK_NAMES: 11, LINK_ORDER: 15, ATTRIBUTE_NAMES: 17, ATTRIBUTE_ORDER: 13}
_CREATION_BYTES = {LINK_INFO: 8, ATTRIBUTE_INFO: 2}  # of the largest creation index
_KINDS = {
    LINK_INFO: (LINK_NAMES, LINK_ORDER),
    ATTRIBUTE_INFO: (ATTRIBUTE_NAMES, ATTRIBUTE_ORDER),
}
# signature, version, kind, bytes of a node, of a record, depth, two percentages, root, its records,
# all records
_HEADER = Struct("<4sBBIHHBBQHQ")
_NODE = Struct("<4sBB")
_AROUND = _NODE.size + 4  # the checksum
MAX_DEPTH = 16


def check_trees(file: File, address: int) -> None:
    """Check the trees in which an object keeps its links or attributes, each object once."""
    if file.address_bytes != ADDRESS_BYTES or address in file.trees:
        return
    file.trees.add(address)
    for kind, body in messages(file, address):
        if kind in _KINDS and len(body) >= 2:
            at = 2 + (_CREATION_BYTES[kind] if body[1] & 1 else 0) + ADDRESS_BYTES
            for number in range(2 if body[1] & 2 else 1):
                place = int.from_bytes(body[at : at + ADDRESS_BYTES], "little")
                at += ADDRESS_BYTES
                if place != NOWHERE:
                    check_tree(file, place, _KINDS[kind][number])


def check_tree(file: File, address: int, kind: int, rank: int = 0) -> None:
    """Compare the header of a tree with its nodes; `rank`: of the dataset, for chunks."""
    raw = file.source.read_at(file.userblock + address, _HEADER.size)
    if len(raw) < _HEADER.size:
        raise _damaged(file, address, "lies outside the file")
    mark, version, found, node, record, depth, _, _, root, count, total = _HEADER.unpack(raw)
    if (mark, version, found) != (b"BTHD", 0, kind) or record not in _record_sizes(kind, rank):
        raise _damaged(file, address, "has a header of another kind")
    if depth > MAX_DEPTH or not _AROUND + record <= node <= file.source.size:
        raise _damaged(file, address, "has an impossible size")
    if root == NOWHERE or not total:
        if total or count:
            raise _damaged(file, address, "has records, and no place for them")
        return
    tree = _Tree(file, address, kind, node, record, depth)
    if tree.count(root, count, depth) != total:
        raise _damaged(file, address, "has another number of records than it says")


def _record_sizes(kind: int, rank: int) -> range:
    """The bytes that a record may have."""
    if kind in RECORD_BYTES:
        return range(RECORD_BYTES[kind], RECORD_BYTES[kind] + 1)
    plain = ADDRESS_BYTES + 8 * rank
    return range(plain + 5, plain + 13) if kind == FILTERED_CHUNKS else range(plain, plain + 1)


class _Tree:
    """The layout of the nodes of one tree, and how many there can be."""

    def __init__(
        self, file: File, address: int, kind: int, node: int, record: int, depth: int
    ) -> None:
        self.file, self.address, self.kind = file, address, kind
        self.node, self.record = node, record
        self.left = file.source.size // node + 1  # nodes that the file has room for
        most = (node - _AROUND) // record  # records of a node, at each level from the leaves up
        self.most = [most]
        below = most  # records of a node and of all below it
        self.widths = [_width(most)]  # of the number of records in a pointer to a node of a level
        self.totals = [0]  # and of the number in all below
        for _ in range(depth):
            pointer = ADDRESS_BYTES + self.widths[0] + self.totals[-1]
            most = (node - _AROUND - pointer) // (record + pointer)
            if most < 1:
                raise _damaged(file, address, "has nodes that are too small")
            below = (most + 1) * below + most
            self.most.append(most)
            self.totals.append(_width(below))

    def count(self, place: int, records: int, level: int) -> int:
        """The number of records in a node and below it."""
        self.left -= 1
        if self.left < 0 or records > self.most[level]:
            raise _damaged(self.file, self.address, "has more in it than there is room for")
        raw = self.file.source.read_at(self.file.userblock + place, self.node)
        mark = b"BTIN" if level else b"BTLF"
        if len(raw) < self.node or _NODE.unpack_from(raw) != (mark, 0, self.kind):
            raise _damaged(self.file, self.address, "has a node of another kind")
        if not level:
            return records
        at = _NODE.size + records * self.record
        widths = ADDRESS_BYTES, self.widths[0], self.totals[level - 1]
        total = records
        for _ in range(records + 1):
            parts = []
            for width in widths:
                parts.append(int.from_bytes(raw[at : at + width], "little"))
                at += width
            inside = self.count(parts[0], parts[1], level - 1)
            if widths[2] and inside != parts[2]:
                raise _damaged(
                    self.file, self.address, "has another number of records than it says"
                )
            total += inside
        return total


def _width(number: int) -> int:
    """How many bytes a number takes."""
    return (number.bit_length() + 7) // 8


def _damaged(file: File, address: int, what: str) -> Corrupt:
    return Corrupt(f"a B-tree {what}", path=file.path, where=f"address {address}")
