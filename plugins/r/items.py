"""The serialization of R: one pass over the bytes, to objects whose vectors stay where they are.

Nothing is evaluated: functions, environments, calls, promises and bytecode are passed over, in as
many steps as they have parts. Vectors are scanned once if their type here depends on it: integers
for missing values, strings for their lengths, compressed numbers for the units in which they would
be exact as times.
"""

from __future__ import annotations

import struct
from array import array

import numpy as np

from raconvert.errors import Corrupt, TooLarge, Unsupported, quoted

from .tables import (
    ALTREP,
    ATTR_LANG,
    ATTR_LIST,
    BASE,
    BASE_ENV,
    BC_REP_DEF,
    BC_REP_REF,
    BCODE,
    BUILTIN,
    BYTES_BIT,
    CHAR,
    CLO,
    DOT,
    EMPTY_ENV,
    ENV,
    EXPR,
    EXTPTR,
    GLOBAL,
    HAS_ATTRIBUTES,
    HAS_TAG,
    INT,
    LANG,
    LATIN1_BIT,
    LGL,
    LIST,
    MAGIC_A,
    MAGIC_B,
    MAGIC_X,
    MISSING,
    MOST_EXACT,
    NA_INTEGER,
    NA_REAL_LOW,
    NAMESPACE,
    NATIVE,
    NIL,
    NIL_VALUE,
    NO_DATA,
    PACKAGE,
    PERSIST,
    PROM,
    REAL,
    REF,
    REMEDY_XDR,
    S4,
    SPECIAL,
    STR,
    SYM,
    UNBOUND,
    UNITS,
    UTF8_BIT,
    VEC,
    VERSIONS,
    WEAKREF,
    WIDTHS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

    from .streams import Cursor

    Values = np.ndarray[Any, Any]

HELD_BYTES = 1 << 16  # of a vector that is short enough to stay in memory
ALL_HELD_BYTES = 16 << 20  # of all such vectors
STRING_COST = 64  # bytes that a string in memory counts as, besides its own
MOST_SEQUENCE = 1 << 53
# Tasks of objects that are passed over: a number above 0 is that many objects, below 0 a `_task`.
_CODE, _CONSTANTS, _CONSTANT, _PART = range(4)
_SINGLE = frozenset(
    {NIL, NIL_VALUE, GLOBAL, UNBOUND, MISSING, BASE, EMPTY_ENV, BASE_ENV}
)  # objects of which the file has nothing but the type
_PARTS = frozenset({BC_REP_DEF, BC_REP_REF, LANG, LIST, ATTR_LANG, ATTR_LIST})


class Node:
    """One object: `count` elements of type `kind` at decoded byte `at`, or `members` by name."""

    __slots__ = (
        "at", "attributes", "codings", "count", "deferred", "held", "kind", "members", "nbytes",
        "nulls",
        "sequence", "texts", "times", "what", "width",
    )  # fmt: skip

    def __init__(self, kind: int, count: int = 0, at: int = 0, what: str = "") -> None:
        self.kind = kind
        self.count = count
        self.at = at
        self.nbytes = 0  # decoded bytes of the elements
        self.what = what  # words for an object that holds no data
        self.attributes: list[tuple[str, Node]] = []
        self.members: list[tuple[str | None, Node]] = []
        self.held: bytes | None = None  # all bytes of the elements, if they are in memory
        self.texts: list[Any] | None = None  # all strings, None for NA, if they are in memory
        self.nulls = False  # True if some elements are NA
        self.width = 0  # the most characters, or bytes, of a string
        self.codings: set[str] = set()
        self.times: frozenset[str] | None = None  # units that are exact; None: not scanned
        self.sequence: tuple[int, int] | None = None  # first and step
        self.deferred: Node | None = None  # the numbers that are texts here

    def attribute(self, name: str) -> Node | None:
        """Return the attribute of this name, or None."""
        return next((node for own, node in self.attributes if own == name), None)


def exact_units(values: Values, units: frozenset[str]) -> frozenset[str]:
    """Return the units in which every number of days or seconds is whole; NA is in all of them.

    A fraction of seconds is whole if it is the float next to the decimal fraction.
    """
    bits = values.view(values.dtype.str.replace("f8", "u8"))
    missing = np.isnan(values)
    if (missing & ((bits & 0xFFFFFFFF) != NA_REAL_LOW)).any():
        return frozenset()
    numbers = np.where(missing, 1.0, values)
    if (np.signbit(numbers) & (numbers == 0)).any() or not (abs(numbers) < MOST_EXACT).all():
        return frozenset()
    exact = set()
    for unit, factor in {row for rows in UNITS.values() for row in rows}:
        if unit in units:
            whole = np.rint(numbers * factor)
            if (abs(whole) < MOST_EXACT).all() and (whole / factor == numbers).all():
                exact.add(unit)
    return frozenset(exact)


ALL_UNITS = frozenset(unit for rows in UNITS.values() for unit, _ in rows)


def _task(code: int, count: int = 1) -> int:
    """Return a task of bytecode, to be done `count` times."""
    return -(4 * count + code)


class Parser:
    """Reader of the objects of one file, front to back."""

    def __init__(self, cursor: Cursor, source: Source, native: str | None = None) -> None:
        self.cursor = cursor
        self.path = source.path
        self.limits = source.limits
        self.native = native  # the encoding of strings without a mark
        self.set_order(">")
        self._refs: list[str | None] = []  # the names of symbols, None for others
        self._steps = self._nodes = self._held = self._kept = self._strings = 0

    def set_order(self, order: str) -> None:
        """Take integers in this order of bytes."""
        self.order = order
        self._int, self._two = struct.Struct(f"{order}i"), struct.Struct(f"{order}2i")

    # --- the header -------------------------------------------------------------------------

    def header(self) -> None:
        """Read what comes before the first object.

        Raises `Corrupt`, and `Unsupported` for text, big-endian native numbers, other versions.
        """
        form = self.cursor.take(2)
        if form == MAGIC_A:
            raise Unsupported(
                "is serialized as text (form A), which is not read", path=self.path,
                expected="the binary forms X or B", remedy=REMEDY_XDR,
            )  # fmt: skip
        if form not in (MAGIC_X, MAGIC_B):
            raise self.corrupt("is not a serialization of R", "X or B, and a newline", form)
        if form == MAGIC_B:
            self.set_order("<")
        version = self.integer()
        if version not in VERSIONS:
            big = int.from_bytes(version.to_bytes(4, "little", signed=True), "big")
            if self.order == "<" and big in VERSIONS:
                raise Unsupported(
                    "is serialized in the order of bytes of a big-endian machine", path=self.path,
                    remedy=REMEDY_XDR,
                )  # fmt: skip
            raise Unsupported("has an unknown version", path=self.path, expected="2 or 3",
                              got=version)  # fmt: skip
        self.integer(), self.integer()  # of the R that wrote it, and of the oldest that reads it
        if version == 3:
            name = self._bytes(64, "the name of an encoding").decode("latin-1")
            self.native = self.native or NATIVE.get(name.upper())

    def corrupt(self, what: str, expected: Any = None, got: Any = None) -> Corrupt:
        """Return the error for damage at the position of the cursor."""
        where = f"{'' if self.cursor.skips else 'decompressed '}byte {self.cursor.position}"
        return Corrupt(what, path=self.path, where=where, expected=expected, got=got)

    def too_large(self, what: str, most: int) -> TooLarge:
        """Return the error for more than a limit allows."""
        return TooLarge(what, path=self.path, expected=f"at most {most}",
                        where=f"byte {self.cursor.position}")  # fmt: skip

    def integer(self) -> int:
        """Return the next integer."""
        return int(self._int.unpack(self.cursor.take(4))[0])

    def _bytes(self, most: int, what: str) -> bytes:
        """Return the next bytes, which follow their number."""
        length = self.integer()
        if not 0 <= length <= most:
            raise self.corrupt(f"length of {what} is wrong", f"0 to {most}", length)
        return self.cursor.take(length)

    def length(self) -> int:
        """Return the number of elements of a vector, of 32 or 64 bits. Raises `Corrupt`."""
        length = self.integer()
        if length == -1:
            high, low = self.integer(), self.integer() & 0xFFFFFFFF
            length = (high << 32) + low
            if high > 1 << 16:
                length = -2
        if length < 0:
            raise self.corrupt("length of a vector is wrong", "0 or more", length)
        return length

    # --- strings ----------------------------------------------------------------------------

    def string(self) -> tuple[int, bytes | None]:
        """Return the next string: its flags, and its bytes or None for NA."""
        flags, length = self._two.unpack(self.cursor.take(8))
        if flags & 0xFF != CHAR or flags & HAS_ATTRIBUTES or length < -1:
            raise self.corrupt("is not a string", f"type {CHAR}", f"type {flags & 0xFF}")
        if length == -1:
            return flags, None
        if length > self.limits.document_bytes:
            raise self.too_large("a string is too long", self.limits.document_bytes)
        raw = self.cursor.take(length)
        if b"\0" in raw:
            raise self.corrupt("a string holds a NUL, which R does not allow")
        return flags, raw

    def coding(self, flags: int, raw: bytes) -> str:
        """Return the encoding of a string; empty for ASCII, ``bytes`` for one that is not text."""
        if raw.isascii():
            return ""
        if flags & BYTES_BIT:
            return "bytes"
        if flags & LATIN1_BIT:
            return "latin-1"
        return "utf-8" if flags & UTF8_BIT else self.native or "unknown"

    def text(self, flags: int, raw: bytes) -> str:
        """Return a string, decoded; raises `UnicodeDecodeError`, and `LookupError` for bytes."""
        coding = self.coding(flags, raw)
        if coding == "unknown":  # version 2 does not name the encoding
            coding = "utf-8"
        return raw.decode(coding or "ascii")

    def _name(self) -> str:
        """Return the next string as a name; in Latin-1 if it cannot be decoded."""
        flags, raw = self.string()
        try:
            return "NA" if raw is None else self.text(flags, raw)
        except (UnicodeDecodeError, LookupError):
            return (raw or b"").decode("latin-1")

    def _texts(self, node: Node, *, keep: bool) -> None:
        """Scan the strings of a vector; `keep` them, as long as they are few bytes."""
        self._strings += node.count
        most = self.limits.memory // STRING_COST
        if self._strings > most:
            raise self.too_large("holds too many strings (`--max-memory`)", most)
        kept: list[Any] | None = [] if keep else None
        for _ in range(node.count):
            flags, raw = self.string()
            value: Any = None
            if raw is None:
                node.nulls = True
            elif raw.isascii():
                value = raw.decode() if keep else raw
                node.width = max(node.width, len(raw))
            else:
                value = self._odd_text(node, flags, raw)
            if kept is not None:
                self._kept += STRING_COST + len(raw or b"")
                kept.append(value)
                if self._kept > self.limits.attribute_bytes:
                    kept = None
        node.texts = kept

    def _odd_text(self, node: Node, flags: int, raw: bytes) -> Any:
        """Return a string that is not ASCII, decoded if it can be; record its encoding."""
        coding, value = self.coding(flags, raw), raw
        if coding != "bytes":
            try:
                text = self.text(flags, raw)
            except (UnicodeDecodeError, LookupError):
                coding = "undecodable"
            else:
                node.codings.add(coding)
                node.width = max(node.width, len(text))
                return text
        node.codings.add(coding)
        node.width = max(node.width, len(raw))
        return value

    # --- objects ----------------------------------------------------------------------------

    def item(self, depth: int = 0, *, keep: bool = False) -> Node:
        """Return the next object; `keep`: its strings stay in memory, as those of an attribute."""
        return self._item(self.integer(), depth, keep=keep)

    def _item(self, flags: int, depth: int, *, keep: bool = False) -> Node:
        """Return the object whose flags were read."""
        kind = flags & 0xFF
        self._nodes += 1
        if self._nodes > self.limits.nodes:
            raise self.too_large("holds too many objects", self.limits.nodes)
        if depth > self.limits.nesting_levels:
            raise self.too_large("lists lie too deep inside each other", self.limits.nesting_levels)
        if kind in (NIL_VALUE, NIL):
            return Node(NIL)
        if kind == ALTREP:
            return self._alternative(depth, keep=keep)
        if kind == LIST:
            node = Node(LIST)
            own, node.members = self._pairs(flags, depth + 1, keep=keep)
            node.attributes = own
            node.count = len(node.members)
            return node
        if kind in WIDTHS or kind in (STR, VEC):
            node = self._vector(kind, depth, keep=keep)
        elif kind == S4:
            node = Node(S4)
        else:
            self._pass(flags)
            return Node(kind, what=NO_DATA.get(kind, "an object"))
        if flags & HAS_ATTRIBUTES:
            node.attributes = self.attributes(depth + 1)
        return node

    def _vector(self, kind: int, depth: int, *, keep: bool) -> Node:
        """Return a vector or a list, without its attributes."""
        node = Node(kind, self.length())
        node.at = self.cursor.position
        if kind == STR:
            self._texts(node, keep=keep)
        elif kind == VEC:
            for _ in range(node.count):
                node.members.append((None, self.item(depth + 1, keep=keep)))
        else:
            self._numbers(node)
        node.nbytes = self.cursor.position - node.at
        return node

    def _numbers(self, node: Node) -> None:
        """Pass over the elements of a vector; hold them if they are few, scan them if need be."""
        nbytes = node.count * WIDTHS[node.kind]
        if nbytes <= HELD_BYTES and self._held + nbytes <= ALL_HELD_BYTES:
            node.held = self.cursor.take(nbytes)
            self._held += nbytes
            self._look(node, [node.held])
        elif node.kind in (LGL, INT) or (node.kind == REAL and not self.cursor.skips):
            self._look(node, self.cursor.pieces(nbytes))
        else:
            self.cursor.skip(nbytes)

    def _look(self, node: Node, pieces: Any) -> None:
        """Scan the elements for missing ones, and for the units in which they are exact times."""
        times = ALL_UNITS
        for piece in pieces:
            if node.kind in (LGL, INT):
                values = np.frombuffer(piece, f"{self.order}i4")
                missing = values == NA_INTEGER
                node.nulls = node.nulls or bool(missing.any())
                if node.kind == LGL and not (missing | (values >> 1 == 0)).all():
                    raise self.corrupt("a logical value is neither TRUE, FALSE nor NA")
            elif node.kind == REAL and times:
                times = exact_units(np.frombuffer(piece, f"{self.order}f8"), times)
        node.times = times if node.kind == REAL else None

    def attributes(self, depth: int) -> list[tuple[str, Node]]:
        """Return the attributes that follow an object. Raises `Corrupt`."""
        flags = self.integer()
        if flags & 0xFF in (NIL_VALUE, NIL):
            return []
        if flags & 0xFF != LIST:
            raise self.corrupt(
                "attributes are not a pairlist", f"type {LIST}", f"type {flags & 0xFF}"
            )
        own, members = self._pairs(flags, depth, keep=True)
        if own or any(name is None for name, _ in members):
            raise self.corrupt("attributes have no names")
        return [(name or "", node) for name, node in members]

    def _pairs(
        self, flags: int, depth: int, *, keep: bool
    ) -> tuple[list[tuple[str, Node]], list[tuple[str | None, Node]]]:
        """Return the attributes of a pairlist whose flags were read, and its members."""
        members: list[tuple[str | None, Node]] = []
        own: list[tuple[str, Node]] = []
        while flags & 0xFF == LIST:
            if flags & HAS_ATTRIBUTES:
                attributes = self.attributes(depth + 1)
                own = own or attributes
            name = self._tag() if flags & HAS_TAG else None
            members.append((name, self.item(depth, keep=keep)))
            flags = self.integer()
        if flags & 0xFF not in (NIL_VALUE, NIL):
            self._pass(flags)
        return own, members

    def _tag(self) -> str | None:
        """Return the name of a member of a pairlist: a symbol or a reference to one."""
        flags = self.integer()
        kind = flags & 0xFF
        if kind == SYM:
            self._refs.append(self._name())
            return self._refs[-1]
        if kind == REF:
            return self._reference(flags)
        if kind in (NIL_VALUE, NIL):
            return None
        raise self.corrupt("the name of a member is not a symbol", f"type {SYM}", f"type {kind}")

    def _reference(self, flags: int) -> str | None:
        """Return the name of the symbol that is referred to; None for another object."""
        number = (flags >> 8) & 0xFFFFFF or self.integer()
        if not 1 <= number <= len(self._refs):
            raise self.corrupt("refers to an object that is not before it",
                               f"1 to {len(self._refs)}", number)  # fmt: skip
        return self._refs[number - 1]

    # --- other forms of vectors ---------------------------------------------------------------

    def _alternative(self, depth: int, *, keep: bool) -> Node:
        """Return the vector that a class of R (ALTREP) stores in another form."""
        name = self._class_name()
        state = self.item(depth + 1, keep=keep)
        attributes = self.attributes(depth + 1)
        node = Node(ALTREP, what=f"a vector of the class {quoted(name[:80])}")
        if name in ("compact_intseq", "compact_realseq"):
            node = self._sequence(INT if name == "compact_intseq" else REAL, state)
        elif name.startswith("wrap_") and state.members:
            node = state.members[0][1]
            attributes = attributes or node.attributes
        elif name == "deferred_string" and state.members:
            inner = state.members[0][1]
            node = Node(STR, inner.count)
            node.deferred, node.nulls = inner, inner.nulls
            if inner.kind != INT:
                node = Node(ALTREP, what="texts of numbers that R has not made yet")
        node.attributes = attributes
        return node

    def _class_name(self) -> str:
        """Return the name of a class of vectors; its package and its type are passed over."""
        names: list[str | None] = []
        flags = self.integer()
        while flags & 0xFF == LIST:
            self._steps += 1
            if flags & HAS_TAG:
                self._tag()
            inner = self.integer()
            if inner & 0xFF == SYM:
                self._refs.append(self._name())
                names.append(self._refs[-1])
            elif inner & 0xFF == REF:
                names.append(self._reference(inner))
            else:
                self._pass(inner)
            flags = self.integer()
        if not names or names[0] is None:
            raise self.corrupt("the class of a vector has no name")
        return names[0]

    def _sequence(self, kind: int, state: Node) -> Node:
        """Return a sequence of whole numbers, stored as count, first and step. Raises `Corrupt`."""
        if state.kind != REAL or state.count != 3 or state.held is None:
            raise self.corrupt("a sequence is not three numbers")
        count, first, step = struct.unpack(f"{self.order}3d", state.held)
        numbers = (count, first, first + (count - 1) * step)
        low, high = (-MOST_EXACT, MOST_EXACT) if kind == REAL else (NA_INTEGER + 1, -NA_INTEGER - 1)
        whole = all(abs(n) <= MOST_SEQUENCE and n == int(n) for n in (*numbers, step))
        if not whole or count < 0 or not all(low <= n <= high for n in numbers[1:]):
            raise self.corrupt("a sequence is not of whole numbers", "count, first, step",
                               (count, first, step))  # fmt: skip
        node = Node(kind, int(count))
        node.sequence = int(first), int(step)
        node.times = frozenset()
        return node

    # --- what is passed over ------------------------------------------------------------------

    def _pass(self, flags: int) -> None:
        """Pass over the rest of an object whose flags were read."""
        tasks = array("q")
        self._begin(flags, tasks)
        while tasks:
            task = tasks.pop()
            if task > 0:
                if task > 1:
                    tasks.append(task - 1)
                self._begin(self.integer(), tasks)
            elif task:
                self._bytecode(-task, tasks)

    def _begin(self, flags: int, tasks: Any) -> None:
        """Read an object up to its parts, which become tasks."""
        self._steps += 1
        if self._steps > self.limits.pickle_operations:
            raise self.too_large("holds too many parts of programs", self.limits.pickle_operations)
        kind, more = flags & 0xFF, int(bool(flags & HAS_ATTRIBUTES))
        if kind in _SINGLE:
            return
        if kind == REF:
            self._reference(flags)
        elif kind == SYM:
            self._refs.append(self._name())
        elif kind in (PACKAGE, NAMESPACE, PERSIST):
            self._named()
        elif kind in (LIST, LANG, CLO, PROM, DOT):
            tasks.append(more + int(bool(flags & HAS_TAG)) + 2)
        elif kind in (ENV, EXTPTR, WEAKREF):
            self._begin_reference(kind, more, tasks)
        elif kind == BCODE:
            self.integer()
            tasks.extend([more, _task(_CODE)])
        elif kind == ALTREP:
            tasks.append(3)
        else:
            self._begin_vector(kind, more, tasks)

    def _begin_reference(self, kind: int, more: int, tasks: Any) -> None:
        """Read an object that others refer to, up to its parts."""
        self._refs.append(None)
        if kind == ENV:
            self.integer()  # whether it is locked
            tasks.append(4)
        else:
            tasks.append(more + (2 if kind == EXTPTR else 0))

    def _begin_vector(self, kind: int, more: int, tasks: Any) -> None:
        """Read a vector or a function, up to its parts; `more` is 1 if attributes follow."""
        if kind in (SPECIAL, BUILTIN):
            self._bytes(self.limits.name_bytes, "the name of a function")
        elif kind == CHAR:
            self._bytes_of_char()
        elif kind in (VEC, EXPR):
            more += self.length()
        elif kind == STR:
            self._texts(Node(STR, self.length()), keep=False)
        elif kind in WIDTHS:
            self.cursor.skip(self.length() * WIDTHS[kind])
        elif kind != S4:
            raise self.corrupt("unknown type of an object", "a type of R", kind)
        tasks.append(more)

    def _bytes_of_char(self) -> None:
        """Pass over the bytes of a string outside of a vector."""
        length = self.integer()
        if length < -1:
            raise self.corrupt("length of a string is wrong", "0 or more", length)
        self.cursor.skip(max(0, length))

    def _named(self) -> None:
        """Pass over an environment that has a name: a package, a namespace."""
        zero, count = self.integer(), self.integer()
        if zero or not 0 <= count <= self.limits.name_bytes:
            raise self.corrupt("the name of an environment is wrong")
        for _ in range(count):
            self.string()
        self._refs.append(None)

    def _bytecode(self, task: int, tasks: Any) -> None:
        """Carry out a task of bytecode, as serialize.c writes it."""
        count, code = divmod(task, 4)
        if count > 1:
            tasks.append(_task(code, count - 1))
        if code == _CODE:
            tasks.extend([_task(_CONSTANTS), 1])
        elif code == _CONSTANTS:
            constants = self.integer()
            if constants < 0:
                raise self.corrupt("number of constants is wrong", "0 or more", constants)
            if constants:
                tasks.append(_task(_CONSTANT, constants))
        else:
            kind = self.integer()
            if code == _CONSTANT and kind == BCODE:
                tasks.append(_task(_CODE))
            else:
                self._part(kind, tasks)

    def _part(self, kind: int, tasks: Any) -> None:
        """Pass over a part of a call in bytecode: a reference to an earlier part, or a new one."""
        self._steps += 1
        if self._steps > self.limits.pickle_operations:
            raise self.too_large("holds too many parts of programs", self.limits.pickle_operations)
        if kind == BC_REP_REF:
            self.integer()
        elif kind in _PARTS:
            if kind == BC_REP_DEF:
                self.integer()
                kind = self.integer()
            tasks.extend([_task(_PART, 2), 1 + int(kind in (ATTR_LANG, ATTR_LIST))])
        else:
            tasks.append(1)
