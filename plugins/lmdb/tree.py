"""Pages of LMDB: which of the two states of a file holds, and the entries of its trees in order.

Nothing is mapped and no lock is taken: every page is read where it lies and checked. Keys that
ascend through a whole tree are also the proof that no page is in it twice.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from raconvert.errors import Corrupt, TooLarge, Unsupported

from .tables import (
    BIG,
    BRANCH,
    DUPLICATES,
    FIXED_LEAF,
    HEAD,
    INTEGER_KEY,
    LEAF,
    LEVELS,
    MAGIC,
    META,
    META_PAGE,
    NO_PAGE,
    NODE,
    OVERFLOW,
    PAGE_SIZES,
    REVERSE_KEY,
    SUBTREE,
    TAIL,
    TREE,
    VERSION,
    Tree,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from raconvert.plugin import Source

__all__ = ["Database", "File"]

LEAST_NODE = NODE.size + 1 + 2  # bytes of the smallest entry: a node, its key and its pointer
_DUMPED = "write it anew on this machine: `mdb_dump` where it was made, `mdb_load` here"


class Node(NamedTuple):
    """An entry of a page: where its key and its value lie in the file, or the page it leads to.

    `begin` and `nbytes` are those of the value; `child` is the number of the page, in a branch.
    """

    key: bytes
    key_at: int
    flags: int
    begin: int
    nbytes: int
    child: int


class Database:
    """The entries of a tree in the order of their keys: offsets and lengths, 26 bytes for each.

    `integers` is True if the keys are native integers, `text` if all of them are text that can be
    shown.
    """

    __slots__ = (
        "_begins", "_key_begins", "_key_bytes", "_nbytes", "_source", "integers", "text",
    )  # fmt: skip

    def __init__(self, source: Source, *, integers: bool) -> None:
        self._source = source
        self.integers = integers
        self.text = not integers
        self._key_begins, self._key_bytes = array("Q"), array("H")
        self._begins, self._nbytes = array("Q"), array("Q")

    def __len__(self) -> int:
        return len(self._begins)

    def add(self, node: Node) -> None:
        """Append an entry. Raises nothing."""
        self.text = self.text and shown(node.key) is not None
        self._key_begins.append(node.key_at)
        self._key_bytes.append(len(node.key))
        self._begins.append(node.begin)
        self._nbytes.append(node.nbytes)

    def key(self, number: int) -> str:
        """Read the key of an entry from the file: as text, in digits, or in hexadecimal."""
        raw = self._source.read_exact(self._key_begins[number], self._key_bytes[number], "a key")
        if self.integers:
            return str(int.from_bytes(raw, "little"))
        return raw.decode() if self.text else raw.hex()

    @property
    def key_bytes(self) -> int:
        """The bytes of all keys together."""
        return sum(self._key_bytes)

    @property
    def longest_key(self) -> int:
        """The most bytes that a key takes as text; 20 or more, for integers."""
        return max(20, max(self._key_bytes) * (1 if self.text else 2))

    def span(self, number: int) -> tuple[int, int]:
        """Return the offset and the bytes of the value of an entry. Raises nothing."""
        return self._begins[number], self._nbytes[number]


class File:
    """The newer one of the two states of a file, and the way along its trees."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._left = source.size  # bytes that may still be entries and values
        self.page_size = self._page_size()
        states = [self._state(number) for number in (0, 1)]
        # As in the library, the second is taken only if it is of a later transaction.
        self.main, self._last = states[states[1][2] > states[0][2]][:2]

    def _page_size(self) -> int:
        """Return the size of a page, by the first one.

        Raises `Unsupported` for files of other machines.
        """
        raw = self.source.read_exact(0, HEAD.size + META.size + TREE.size, "the first page")
        offsets = {raw[at : at + 4]: at for at in (12, 16)}
        if MAGIC[::-1] in offsets or offsets.get(MAGIC) == 12:
            machine = "big-endian" if MAGIC[::-1] in offsets else "32-bit"
            raise Unsupported(
                f"was written on a {machine} machine", path=self.source.path, remedy=_DUMPED
            )
        if MAGIC not in offsets:
            self._wrong("does not begin as LMDB", HEAD.size, MAGIC.hex(), raw[16:20].hex())
        size: int = TREE.unpack_from(raw, HEAD.size + META.size)[0]
        if size not in PAGE_SIZES:
            self._wrong(
                "size of pages is out of range", 40, "a power of two from 512 to 65536", size
            )
        return size

    def _state(self, number: int) -> tuple[Tree, int, int]:
        """Return the main tree, the last page and the transaction of one of the two states."""
        at = number * self.page_size
        nbytes = HEAD.size + META.size + 2 * TREE.size + TAIL.size
        raw = self.source.read_exact(at, nbytes, f"meta page {number}")
        flags = HEAD.unpack_from(raw)[2]
        magic, version = META.unpack_from(raw, HEAD.size)[:2]
        if magic != MAGIC or not flags & META_PAGE:
            self._wrong(f"page {number} is not a meta page", at)
        if version != VERSION:
            raise Unsupported(
                f"is LMDB of version {version}", path=self.source.path, expected="version 1",
                where=f"byte {at + 20}", remedy="write it anew with LMDB 0.9",
            )  # fmt: skip
        begin = HEAD.size + META.size
        trees = [Tree(*TREE.unpack_from(raw, begin + n * TREE.size)) for n in (0, 1)]
        if trees[0].padding != self.page_size:
            self._wrong("meta pages differ in the size of pages", at)
        last, transaction = TAIL.unpack_from(raw, begin + 2 * TREE.size)
        return trees[1], last, transaction

    def _wrong(self, what: str, at: int, expected: object = None, got: object = None) -> NoReturn:
        """Raise `Corrupt` at an offset."""
        raise Corrupt(what, path=self.source.path, where=f"byte {at}", expected=expected, got=got)

    def databases(self) -> Iterator[tuple[str, Database]]:
        """Yield the main database under the name "", then the named ones in it."""
        inner: list[tuple[bytes, Tree]] = []
        yield "", self._database(self.main, inner)
        for name, tree in inner:
            yield shown(name) or name.hex(), self._database(tree, None)

    def _database(self, tree: Tree, inner: list[tuple[bytes, Tree]] | None) -> Database:
        """Return the entries of a tree; named databases in it are appended to `inner`."""
        database = Database(self.source, integers=bool(tree.flags & INTEGER_KEY))
        order = _order_of(tree)
        count, last = 0, None
        most = self.source.limits.entries
        for node in self._leaves(tree):
            count += 1
            key = order(node.key)
            if last is not None and key <= last:
                self._wrong("keys do not ascend", node.key_at)
            last = key
            if count > most:
                raise TooLarge(
                    "holds too many entries to be read safely", path=self.source.path,
                    expected=f"at most {most}",
                )  # fmt: skip
            self._spend(LEAST_NODE, node.key_at)
            if node.flags & DUPLICATES:
                raise Unsupported(
                    "has several values of one key", path=self.source.path,
                    where=f"key {node.key[:40]!r}",
                    remedy="write the values under keys of their own, without `dupsort`",
                )  # fmt: skip
            if node.flags & SUBTREE:
                self._add_inner(node, inner)
            else:
                database.add(self._value(node))
        if count != tree.entries:
            self._wrong("tree has another number of entries", 0, tree.entries, count)
        return database

    def _add_inner(self, node: Node, inner: list[tuple[bytes, Tree]] | None) -> None:
        """Append a named database to `inner`, which is None inside of one."""
        if inner is None or node.nbytes != TREE.size:
            self._wrong("named database is not where one can be", node.begin)
        if len(inner) >= self.source.limits.nodes:
            raise TooLarge(
                "holds too many databases to be read safely", path=self.source.path,
                expected=f"at most {self.source.limits.nodes}",
            )  # fmt: skip
        raw = self.source.read_exact(node.begin, node.nbytes, "the record of a database")
        inner.append((node.key, Tree(*TREE.unpack(raw))))

    def _spend(self, nbytes: int, at: int) -> None:
        """Count bytes of entries and values; `Corrupt` if they are more than the file has."""
        self._left -= nbytes
        if self._left < 0:
            self._wrong("entries overlap: they have more bytes than the file", at)

    def _value(self, node: Node) -> Node:
        """Return a node with the offset of its value, also of a large one on pages of its own."""
        begin = node.begin
        if node.flags & BIG:
            raw = self.source.read_exact(begin, 8, "the number of a page")
            number = int.from_bytes(raw, "little")
            at = self._offset_of(number, begin)
            head = HEAD.unpack(self.source.read_exact(at, HEAD.size, "a page"))
            pages = head[3] | head[4] << 16
            begin = at + HEAD.size
            if not head[2] & OVERFLOW or HEAD.size + node.nbytes > pages * self.page_size:
                self._wrong("value is not on pages of its own, or longer than those", at)
            if number + pages - 1 > self._last:
                self._wrong("value goes on behind the last page", at)
        if begin + node.nbytes > self.source.size:
            self._wrong("value is cut off", begin, f"{node.nbytes} bytes")
        self._spend(node.nbytes, begin)
        return node._replace(begin=begin)

    def _offset_of(self, number: int, at: int) -> int:
        """Return the offset of a page to which the bytes at `at` lead."""
        if not 2 <= number <= self._last:
            self._wrong("page is not one of the file", at, f"2 to {self._last}", number)
        return number * self.page_size

    def _leaves(self, tree: Tree) -> Iterator[Node]:
        """Yield the entries of a tree in order, page after page."""
        if tree.root == NO_PAGE:
            return
        if not 1 <= tree.depth <= LEVELS:
            self._wrong("depth of a tree is out of range", 0, f"1 to {LEVELS}", tree.depth)
        way = [iter((tree.root,))]
        while way:
            number = next(way[-1], None)
            if number is None:
                way.pop()
            elif len(way) == tree.depth:
                yield from self._nodes(number, LEAF)
            else:
                way.append(iter([node.child for node in self._nodes(number, BRANCH)]))

    def _nodes(self, number: int, kind: int) -> list[Node]:
        """Return the entries of a page, which has one at least."""
        at, size = self._offset_of(number, 0), self.page_size
        page = self.source.read_exact(at, size, f"page {number}")
        own, _, flags, lower, _ = HEAD.unpack_from(page)
        if own != number or flags & (BRANCH | LEAF | OVERFLOW | META_PAGE | FIXED_LEAF) != kind:
            self._wrong(f"page {number} is not the one that its tree expects", at)
        if not HEAD.size < lower <= size or lower % 2:
            self._wrong(f"page {number} has no entries", at, got=lower)
        return [
            self._node(page, at, int.from_bytes(page[pointer : pointer + 2], "little"), kind)
            for pointer in range(HEAD.size, lower, 2)
        ]

    def _node(self, page: bytes, at: int, offset: int, kind: int) -> Node:
        """Return the entry at an offset in a page, which itself lies at `at`."""
        if not HEAD.size <= offset <= len(page) - NODE.size:
            self._wrong("entry is not inside its page", at, got=offset)
        low, high, flags, key_bytes = NODE.unpack_from(page, offset)
        key_at = offset + NODE.size
        begin, nbytes = key_at + key_bytes, low | high << 16
        stored = 0  # bytes of the value in this page
        if kind != BRANCH:
            stored = 8 if flags & BIG else nbytes
        if begin + stored > len(page):
            self._wrong("entry is not inside its page", at + offset, got=f"{key_bytes}, {stored}")
        child = nbytes | flags << 32 if kind == BRANCH else 0
        key = page[key_at:begin]
        return Node(key, at + key_at, flags, at + begin, nbytes, child)


def shown(key: bytes) -> str | None:
    """Return a key as text; None if it is not text that can be shown. Raises nothing."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _order_of(tree: Tree) -> Any:
    """Return the function by which the keys of a tree ascend."""
    if tree.flags & INTEGER_KEY:
        return _little
    return _reversed if tree.flags & REVERSE_KEY else bytes


def _little(key: bytes) -> int:
    return int.from_bytes(key, "little")


def _reversed(key: bytes) -> bytes:
    return key[::-1]
