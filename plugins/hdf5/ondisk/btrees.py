"""B-trees, checked before the library sees them: of version 2, and of version 1.

File format specification 3.0, III.A.2 "Disk Format: Level 1A2 - Version 2 B-trees", IV.A.2.c "The
Link Info Message" and IV.A.2.v "The Attribute Info Message"; III.A.1 "Disk Format: Level 1A1 -
Version 1 B-trees", III.B "Group Symbol Table Nodes", III.D "Local Heaps", IV.A.2.q "The Symbol
Table Message".

Version 2: libhdf5 trusts the kind and the number of records in a header whose checksum matches; if
they are wrong it reads and writes out of bounds. So the records of every node are counted first.

Version 1: nothing has a checksum, and libhdf5 trusts the number of entries of a node. A smaller
number hides chunks (they would read as the fill value) or links, and nothing else in the file
counts them. The bytes behind the last entry of a node are undefined (older libraries leave old
memory there), so only the counted entries, their keys and the heap of the names are evidence:

* The last name of a node of links is the key behind that node, and the last key of a node of a
  group is the key that the node above has there, unless the name of that key was removed.
* A local heap has nothing in it but names, targets of soft links, free blocks, and 8 bytes here and
  there that were too few for a free block. A longer text that no entry refers to was hidden.
* Chunks of a dataset that cannot be resized are never removed: the last key of each node is the
  one that the node above has there, and the last key of all has no bytes.

So links with names of at most 7 bytes may be hidden at the end of a whole group, and chunks of
datasets that can be resized, without being noticed. Chunks that lie over each other, or over their
own index, groups or headers, were misplaced. A chunk without filters whose address leads to bytes
that nothing else claims, or to the elements of another dataset, is accepted: it may lie there.
"""

from __future__ import annotations

from bisect import bisect
from collections import namedtuple
from functools import cache
from struct import Struct

import numpy as np

from raconvert.errors import Corrupt

from ..files import sorted_places
from .header import ADDRESS_BYTES, ATTRIBUTE_INFO, CHUNKED, LAYOUT, MAX_RANK, NOWHERE, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...files import File

    Values = np.ndarray[Any, Any]


LINK_INFO = 0x02  # message
LINK_NAMES, LINK_ORDER, ATTRIBUTE_NAMES, ATTRIBUTE_ORDER = 5, 6, 8, 9  # kinds of trees
FILTERED_CHUNKS = 11
HUGE_PLACES = 1  # kind of tree: addresses of the large objects of a heap
RECORD_BYTES = {
    HUGE_PLACES: 24, LINK_NAMES: 11, LINK_ORDER: 15, ATTRIBUTE_NAMES: 17, ATTRIBUTE_ORDER: 13,
}  # fmt: skip
_CREATION_BYTES = {LINK_INFO: 8, ATTRIBUTE_INFO: 2}  # bytes of the largest creation index
_KINDS = {
    LINK_INFO: (LINK_NAMES, LINK_ORDER),
    ATTRIBUTE_INFO: (ATTRIBUTE_NAMES, ATTRIBUTE_ORDER),
}
# signature, version, kind, bytes of a node, of a record, depth, two percentages, root, its records,
# all records
_HEADER = Struct("<4sBBIHHBBQHQ")
_NODE = Struct("<4sBB")
_AROUND = _NODE.size + 4  # node header and checksum
MAX_EMPTY_NODE = 1 << 12  # the library writes nodes of 512 and 2,048 bytes


# Version 2 ---------------------------------------------------------------------------------------


def check_trees(file: File, address: int) -> None:
    """Check the trees with the links or attributes of an object, each object once."""
    if file.address_bytes != ADDRESS_BYTES or address in file.trees:
        return
    file.trees.add(address)
    for kind, body in messages(file, address):
        if kind in _KINDS and len(body) >= 2:
            at = 2 + (_CREATION_BYTES[kind] if body[1] & 1 else 0) + ADDRESS_BYTES
            for number in range(2 if body[1] & 2 else 1):
                root = int.from_bytes(body[at : at + ADDRESS_BYTES], "little")
                at += ADDRESS_BYTES
                if root != NOWHERE:
                    file.count_index(0)  # raises at once if there are too many bytes by now
                    file.count_index(check_tree(file, root, _KINDS[kind][number]))


def check_tree(
    file: File, address: int, kind: int, rank: int = 0, records: list[bytes] | None = None
) -> int:
    """Compare the header of a tree with its nodes; return the bytes of its records.

    `rank` is that of the dataset, for chunks. Appends all records of the tree to `records`.
    Raises `Corrupt`.
    """
    raw = file.source.read_at(file.userblock + address, _HEADER.size)
    if len(raw) < _HEADER.size:
        raise _damaged(file, address, "lies outside the file")
    mark, version, own_kind, node, record, depth, _, _, root, count, total = _HEADER.unpack(raw)
    if (mark, version, own_kind) != (b"BTHD", 0, kind) or record not in _record_sizes(kind, rank):
        raise _damaged(file, address, "has a header of another kind")
    most = max(file.source.size, MAX_EMPTY_NODE)  # an empty tree has no node in the file
    if depth > file.source.limits.tree_levels or not _AROUND + record <= node <= most:
        raise _damaged(file, address, "has an impossible size")
    if root == NOWHERE or not total:
        if total or count:
            raise _damaged(file, address, "has records, but no nodes")
        return 0
    tree = _Tree(file, address, kind, node, record, depth, records)
    if tree.count(root, count, depth) != total:
        raise _damaged(file, address, "has another number of records than it says")
    return int(total) * int(record)


def _record_sizes(kind: int, rank: int) -> range:
    """The bytes that a record may have."""
    if kind in RECORD_BYTES:
        return range(RECORD_BYTES[kind], RECORD_BYTES[kind] + 1)
    least = ADDRESS_BYTES + 8 * rank
    return range(least + 5, least + 13) if kind == FILTERED_CHUNKS else range(least, least + 1)


class _Tree:
    """The layout of the nodes of one tree, and the number of nodes that the file can hold."""

    def __init__(
        self,
        file: File,
        address: int,
        kind: int,
        node: int,
        record: int,
        depth: int,
        records: list[bytes] | None,
    ) -> None:
        self.file, self.address, self.kind, self.records = file, address, kind, records
        self.node, self.record = node, record
        self.left = file.source.size // node + 1  # nodes that the file has room for
        most = (node - _AROUND) // record  # records of a node, at each level from the leaves up
        self.most = [most]
        below = most  # records of a node and of all below it
        # By level: bytes of the number of records in a pointer to a node.
        self.widths = [_width(most)]
        self.totals = [0]  # by level: bytes of the number of records of all nodes below
        for _ in range(depth):
            pointer = ADDRESS_BYTES + self.widths[0] + self.totals[-1]
            most = (node - _AROUND - pointer) // (record + pointer)
            if most < 1:
                raise _damaged(file, address, "has nodes that are too small")
            below = (most + 1) * below + most
            self.most.append(most)
            self.totals.append(_width(below))

    def count(self, address: int, records: int, level: int) -> int:
        """The number of records in a node and below it."""
        self.left -= 1
        if self.left < 0 or records > self.most[level]:
            raise _damaged(self.file, self.address, "has more records or nodes than it can hold")
        raw = self.file.source.read_at(self.file.userblock + address, self.node)
        mark = b"BTIN" if level else b"BTLF"
        if len(raw) < self.node or _NODE.unpack_from(raw) != (mark, 0, self.kind):
            raise _damaged(self.file, self.address, "has a node of another kind")
        at = _NODE.size + records * self.record
        if self.records is not None:
            offsets = range(_NODE.size, at, self.record)
            self.records += [raw[offset : offset + self.record] for offset in offsets]
        if not level:
            return records
        widths = ADDRESS_BYTES, self.widths[0], self.totals[level - 1]
        total = records
        for _ in range(records + 1):
            pointer = []  # address of a node, its records, the records of all nodes below it
            for width in widths:
                pointer.append(int.from_bytes(raw[at : at + width], "little"))
                at += width
            inside = self.count(pointer[0], pointer[1], level - 1)
            if widths[2] and inside != pointer[2]:
                raise _damaged(
                    self.file, self.address, "has another number of records than it says"
                )
            total += inside
        return total


def _width(number: int) -> int:
    """Return the bytes that a number takes."""
    return (number.bit_length() + 7) // 8


# Version 1 ---------------------------------------------------------------------------------------

SYMBOL_TABLE = 0x11  # message
GROUP, CHUNKS = 0, 1  # kinds of trees
_OLD_NODE = Struct("<4sBBHQQ")  # signature, kind, level, entries, siblings
_SYMBOLS = Struct("<4sBxH")  # signature, version, entries
_NAME = np.dtype([("name", "<u8")])
_NAMED = np.dtype([("name", "<u8"), ("child", "<u8")])
# Offset of the name, address of the object, kind of cached data, offset of a soft link's target.
_SYMBOL = Struct("<QQI4xI12x")
SOFT = 2  # kind of the cached data of a soft link
_HEAP = Struct("<4sB3xQQQ")  # signature, version, bytes, first free block, address of the bytes
_FREE = Struct("<QQ")  # next free block, bytes of this one
_PAIR = Struct("<QQ")
_OLD_LAYOUT = Struct("<BBB5xQ")  # version 1 and 2: version, rank, class, address
_LAYOUT = Struct("<BBBQ")  # version 3: version, class, rank, address
LEVELS = range(64)
CHUNKS_OF_VERSION_0 = 64  # most entries of a node
LAST_FREE = 1  # marks the last free block

# A node: its address, its level, keys and children, and the last key; `end`: the key that the node
# above has behind it, None at the right border of the tree.
Node = namedtuple("Node", "address level entries last end nbytes")


def check_chunks(file: File, address: int, *, resizable: bool) -> int:
    """Raise `Corrupt` if chunks are hidden or misplaced; return the bytes of the index.

    `resizable`: the dataset may have been made smaller, so that chunks may have been removed.
    """
    nbytes = 0
    if file.address_bytes != ADDRESS_BYTES:
        return nbytes
    for kind, body in messages(file, address):
        tree = _chunked(body) if kind == LAYOUT else None
        if tree is not None and tree[0] != NOWHERE:
            nbytes += _check_chunks(file, *tree, resizable=resizable)
    return nbytes


def _chunked(body: bytes) -> tuple[int, int] | None:
    """The address of the index of a chunked dataset and its rank; None for other layouts."""
    if body[:1] in (b"\1", b"\2") and len(body) >= _OLD_LAYOUT.size:
        _, rank, layout, address = _OLD_LAYOUT.unpack_from(body)
    elif body[:1] == b"\3" and len(body) >= _LAYOUT.size:
        _, layout, rank, address = _LAYOUT.unpack_from(body)
    else:
        return None
    return (address, rank) if layout == CHUNKED and 1 < rank <= MAX_RANK + 1 else None


@cache
def _types_of_chunks(rank: int) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types of a key and of an entry of a node of chunks, cached by rank."""
    key = [("nbytes", "<u4"), ("mask", "<u4"), ("place", "<u8", (rank,))]
    return np.dtype(key), np.dtype([*key, ("child", "<u8")])


def _check_chunks(file: File, address: int, rank: int, *, resizable: bool) -> int:
    nodes = list(_nodes(file, address, CHUNKS, *_types_of_chunks(rank)))
    leaves = [node.entries for node in nodes if not node.level]
    chunks = np.concatenate(leaves) if leaves else nodes[0].entries[:0]
    for node in nodes:
        # At the right border a key without bytes ends the tree, as no chunk has it.
        ended = node.last["nbytes"] == 0 if node.end is None else node.last == node.end
        if not (ended or resizable):
            raise _hidden(file, "the index of the chunks", node)
    _check_overlaps(file, chunks[chunks["child"] != NOWHERE], nodes)
    return sum(node.nbytes for node in nodes)


def _check_overlaps(file: File, chunks: Values, nodes: list[Node]) -> None:
    """Raise `Corrupt` for chunks over each other, their index, or groups and headers of objects."""
    full = most_of(file)[CHUNKS] * nodes[0].entries.itemsize
    index = {
        node.address: max(node.nbytes, node.nbytes - node.entries.nbytes + full) for node in nodes
    }
    starts = np.sort(chunks["child"])
    ends = starts + chunks["nbytes"][np.argsort(chunks["child"], kind="stable")]
    wrong = np.flatnonzero(ends[:-1] > starts[1:])
    for start, reached in (sorted_places(index), file.taken()):
        if start.size:
            # Count of stretches that begin before the end of a chunk.
            before = np.searchsorted(start, ends)
            wrong = np.append(wrong, np.flatnonzero(np.append(0, reached)[before] > starts))
    if wrong.size:
        raise Corrupt(
            "a chunk lies over another one, or over something else",
            path=file.path,
            where=f"address {starts[wrong[0]]}",
        )


def most_of(file: File) -> tuple[int, int, int]:
    """The most entries of a node of groups, of one of chunks, and of one of links; 0: unknown.

    II.A "Disk Format: Level 0A": in the superblock, up to version 1.
    """
    head = file.source.read_at(file.userblock, 26)
    if len(head) < 26 or head[8] > 1:
        return 0, 0, 0
    leaf, inner, chunks = (int.from_bytes(head[at : at + 2], "little") for at in (16, 18, 24))
    return 2 * inner, 2 * chunks if head[8] else CHUNKS_OF_VERSION_0, 2 * leaf


def check_links(file: File, address: int) -> None:
    """Raise `Corrupt` if links of a group are hidden."""
    if file.address_bytes != ADDRESS_BYTES:
        return
    for kind, body in messages(file, address):
        if kind == SYMBOL_TABLE and len(body) >= _PAIR.size:
            tree, heap = _PAIR.unpack_from(body)
            if tree != NOWHERE:
                _check_links(file, tree, heap)


def _check_links(file: File, address: int, heap: int) -> None:
    """Compare the nodes of a group, and the symbols in them, with the names in its heap."""
    nodes = list(_nodes(file, address, GROUP, _NAME, _NAMED))
    names, targets = list[int](), list[int]()
    ends: list[tuple[Node, int]] = []  # last keys of nodes, to be compared with the names
    most, left = most_of(file), file.source.size
    for node in nodes:
        file.places[node.address] = max(node.nbytes, most[GROUP] * node.entries.itemsize + 32)
        if node.end is not None and node.last != node.end:
            ends.append((node, int(node.end["name"])))
        if node.level:
            continue
        keys = [*node.entries["name"].tolist(), int(node.last["name"])][1:]
        for child, key in zip(node.entries["child"].tolist(), keys, strict=True):
            symbols = _symbols(file, child)
            file.places[child] = _SYMBOLS.size + max(len(symbols), most[2]) * _SYMBOL.size
            names += [name for name, _, _, _ in symbols]
            targets += [target for _, _, kind, target in symbols if kind == SOFT]
            left -= len(symbols) * _SYMBOL.size
            if left < 0:
                raise _damaged(file, child, "has more nodes than there is room for")
            if not symbols or symbols[-1][0] != key:
                ends.append((node, key))
    _check_names(file, heap, names, targets, ends, nodes[0])


def _check_names(
    file: File,
    address: int,
    names: list[int],
    targets: list[int],
    ends: list[tuple[Node, int]],
    root: Node,
) -> None:
    """Compare the offsets of names with the local heap: all names, whole, once and in order."""
    raw = file.source.read_at(file.userblock + address, _HEAP.size)
    if len(raw) < _HEAP.size or raw[:4] != b"HEAP":
        raise Corrupt("a group has no names", path=file.path, where=f"address {address}")
    _, _, size, free, segment = _HEAP.unpack(raw)
    text = file.source.read_at(file.userblock + segment, size)
    file.places[address], file.places[segment] = _HEAP.size, size
    blocks = _free_blocks(text, free)
    starts = sorted(blocks)

    def is_free(at: int) -> bool:
        under = bisect(starts, at) - 1
        return under >= 0 and at < blocks[starts[under]]

    before, seen = None, set()
    left = size
    for at in names:
        end = text.find(b"\0", at)
        name = text[at:end]
        left -= len(name)  # below 0 if names overlap, which would take the square of their length
        # All names begin at multiples of 8; others that are not behind a NUL are inside of a name.
        inside = at % 8 and text[at - 1 : at] != b"\0"
        whole = at < size and end >= 0 and left >= 0 and not inside and not is_free(at)
        if not whole or at in seen or (before and name <= before):
            what = "the names of a group are not whole, each once, and in order"
            raise Corrupt(what, path=file.path, where=f"byte {at} of the heap at {address}")
        seen.add(at)
        before = name
    taken = _taken(text, [*names, *targets], blocks)
    for node, at in ends:
        if 0 < at < size and text[at] and not taken[at // 8]:
            raise _hidden(file, "the index of a group", node)
    if not any(at % 8 for at in names) and _has_more(text, taken):
        raise _hidden(file, "the index of a group", root)


def _taken(text: bytes, offsets: list[int], blocks: dict[int, int]) -> Values:
    """True for each 8 bytes of a local heap that a text or a free block has a part of.

    Texts and blocks that overlap are not gone over twice.
    """
    taken = np.zeros(len(text) // 8 + 1, bool)
    taken[0] = True  # the name of the root, which is empty
    last, behind = text.rfind(b"\0"), 0
    for at in sorted(offsets):
        if behind <= at < len(text):  # a text inside of the one before ends with it
            behind = 1 + (text.find(b"\0", at) if at <= last else at)
            taken[at // 8 : (behind - 1) // 8 + 1] = True
    behind = 0
    for begin, end in sorted(blocks.items()):
        taken[max(begin, behind) // 8 : -(-end // 8)] = True
        behind = max(behind, min(end, len(text)))
    return taken


def _has_more(text: bytes, taken: Values) -> bool:
    """True if a local heap has a text of 8 bytes or more that nothing refers to.

    The library leaves the 8 bytes of a shorter text as they are when it is removed.
    """
    left = ~taken[: len(text) // 8]
    words = np.frombuffer(text, np.uint8, left.size * 8).reshape(-1, 8)
    whole = left & words.all(axis=1)
    return bool((whole[:-1] & left[1:]).any())


def _free_blocks(text: bytes, free: int) -> dict[int, int]:
    """The free blocks of a local heap: the end of each by its offset."""
    blocks: dict[int, int] = {}
    while free != LAST_FREE and free + _FREE.size <= len(text) and free not in blocks:
        following, nbytes = _FREE.unpack_from(text, free)
        blocks[free] = free + nbytes
        free = following
    return blocks


def _symbols(file: File, address: int) -> list[tuple[int, int, int, int]]:
    """The entries of a node of a group, with the fields of `_SYMBOL`; empty for other nodes."""
    offset = file.userblock + address
    raw = file.source.read_at(offset, _SYMBOLS.size)
    if len(raw) < _SYMBOLS.size or raw[:4] != b"SNOD":
        return []
    raw = file.source.read_at(offset + _SYMBOLS.size, _SYMBOLS.unpack(raw)[2] * _SYMBOL.size)
    return list(_SYMBOL.iter_unpack(raw[: len(raw) // _SYMBOL.size * _SYMBOL.size]))


def _nodes(
    file: File, address: int, kind: int, key: np.dtype[Any], entry: np.dtype[Any]
) -> Iterator[Node]:
    """Yield the nodes of a tree, each once; raises `Corrupt` if they are not a tree."""
    step, left = entry.itemsize, file.source.size
    # Address of a node, with its level and its last key by the node above.
    todo: list[tuple[int, int | None, bytes]] = [(address, None, b"")]
    while todo:
        node, level, end = todo.pop()
        head = file.source.read_at(file.userblock + node, _OLD_NODE.size)
        if len(head) < _OLD_NODE.size:
            raise _damaged(file, node, "lies outside the file")
        mark, own_kind, own_level, count, _, _ = _OLD_NODE.unpack(head)
        levels = LEVELS if level is None else [level]
        if (mark, own_kind) != (b"TREE", kind) or own_level not in levels:
            raise _damaged(file, node, "is of another kind, or another level, than it must be")
        nbytes = count * step + key.itemsize
        left -= _OLD_NODE.size + nbytes
        if left < 0:
            raise _damaged(file, node, "has more nodes than there is room for")
        raw = file.source.read_at(file.userblock + node + _OLD_NODE.size, nbytes)
        if len(raw) < nbytes:
            raise _damaged(file, node, "lies outside the file")
        entries = np.frombuffer(raw, entry, count)
        last = raw[nbytes - key.itemsize : nbytes]
        above = np.frombuffer(end, key)[0] if end else None
        last_key, size = np.frombuffer(last, key)[0], _OLD_NODE.size + nbytes
        yield Node(node, own_level, entries, last_key, above, size)
        if own_level:
            starts = range(step, count * step, step)
            ends = [raw[start : start + key.itemsize] for start in starts]
            below = zip(entries["child"].tolist(), [*ends, end and last], strict=False)
            todo += [(child, own_level - 1, key_after) for child, key_after in below][::-1]


def _hidden(file: File, what: str, node: Node) -> Corrupt:
    return Corrupt(
        f"{what} has an entry more than it counts",
        path=file.path,
        where=f"address {node.address}",
        got=f"{len(node.entries)} entries",
    )


def _damaged(file: File, address: int, what: str) -> Corrupt:
    return Corrupt(f"a B-tree {what}", path=file.path, where=f"address {address}")
