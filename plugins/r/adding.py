"""Adding an array to a list of R: its other members are copied as they lie.

R numbers the symbols of a file in their order, and refers to them by number. A member that takes
the place of another one brings other symbols, so that the numbers behind it are written anew.
"""

from __future__ import annotations

from typing import NamedTuple

from raconvert.errors import Unsupported
from raconvert.files.inflate import BZIP2, GZIP
from raconvert.files.paths import write_failed
from raconvert.plugin import Bundle, Plan, Source, array_exists, not_an_array

from .items import Parser
from .plan import leaf_of
from .streams import XZ, Stream
from .tables import HAS_ATTRIBUTES, IS_OBJECT, NULLS, REF, STR, VEC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Fit, Target

    from .plan import Leaf
    from .streams import Cursor
    from .writer import Sink

__all__ = ["add_to_list"]

PACKINGS = {"": "none", GZIP: "gzip", BZIP2: "bzip2", XZ: "xz"}
_REMEDY = "write all arrays together: FILE without #NAME, and `--overwrite`, replace the whole file"


class Event(NamedTuple):
    """A symbol, or another object that is referred to, or at `at` a reference to number `number`.

    `name` is that of a symbol.
    """

    name: str | None
    at: int = -1
    number: int = 0


class Member(NamedTuple):
    """A member of the list: its bytes in the decoded file, and the events in them."""

    begin: int
    end: int
    events: list[Event]


class _Marked(Parser):
    """Parser that records what is numbered in a file, and where it is referred to."""

    def __init__(self, cursor: Cursor, source: Source) -> None:
        super().__init__(cursor, source)
        self.events: list[Event] = []
        self._refs = _Recorded(self.events)

    def _reference(self, flags: int) -> str | None:
        name = super()._reference(flags)
        number = flags >> 8 & 0xFFFFFF
        if not number:  # behind the flags, which R does for millions of symbols
            raise Unsupported("refers to symbols by long numbers", path=self.path, remedy=_REMEDY)
        self.events.append(Event(name, self.cursor.position - 4, number))
        return name


class _Recorded(list["str | None"]):
    """The names of what is numbered, each of which is an event, too."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self._events = events

    def append(self, name: str | None) -> None:
        """Append a name, and the event."""
        super().append(name)
        self._events.append(Event(name))


class _List:
    """The list that a file is: where its members are, and their names."""

    def __init__(self, source: Source) -> None:
        self.stream = Stream(source)
        cursor = self.stream.cursor()
        try:
            parser = _Marked(cursor, source)
            parser.header()
            self.begin = cursor.position
            flags = parser.integer()
            is_list = flags & 0xFF == VEC and not flags & IS_OBJECT and parser.order == ">"
            if not is_list:
                raise _no_list(source)
            self.members = [self._member(parser) for _ in range(parser.length())]
            attributes = parser.attributes(1) if flags & HAS_ATTRIBUTES else []
        finally:
            cursor.close()
        texts = attributes[0][1] if len(attributes) == 1 and attributes[0][0] == "names" else None
        if texts is not None and texts.kind == STR and texts.texts is not None:
            self.names = [str(one) for one in texts.texts]
        elif not attributes and not self.members:
            self.names = []
        else:
            raise _no_list(source)

    @staticmethod
    def _member(parser: _Marked) -> Member:
        begin, first = parser.cursor.position, len(parser.events)
        parser.item(1)
        return Member(begin, parser.cursor.position, parser.events[first:])


def _no_list(source: Source) -> Unsupported:
    return Unsupported(
        "is not a plain list with names, in the form X, so that no array can be added",
        path=source.path, remedy=_REMEDY,
    )  # fmt: skip


def add_to_list(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, numbers: str
) -> Plan:
    """Plan the list with one more member, or another in the place of one of the same name.

    Raises `TargetExists`, and `Unsupported` for what is not a plain list with names.
    """
    there = _List(source)
    array = bundle.arrays[0]
    place = _place(array.name, there, held, source.path, overwrite=overwrite)
    fits: list[Fit] = []
    leaf = leaf_of(array, None, numbers, fits)
    if place is not None:
        _check_references(there, place, source)

    def write(target: Target) -> None:
        from .writer import Sink

        try:
            sink = Sink(target.open(), PACKINGS[there.stream.packing])
            _write(sink, target, there, leaf, place)
            sink.close()
        except OSError as error:
            raise write_failed(target.path, error) from error
        finally:
            there.stream.close()

    return Plan(fits, write, names=bundle.names)


def _place(name: str, there: _List, held: Bundle, path: str, *, overwrite: bool) -> int | None:
    """Return the number of the member to be replaced; None for a further one."""
    if "/" in name:
        raise Unsupported("lists inside the list take no further array", path=path, remedy=_REMEDY)
    inside = any(one.startswith(f"{name}/") for one in held.names)
    if name not in there.names and name not in held.names and not inside:
        return None
    if there.names.count(name) != 1 or name not in held.names or inside:
        raise not_an_array(path, name, "a member that is not an array of its own")
    if not overwrite:
        raise array_exists(path, name)
    if f"{name}.{NULLS}" in held.names:
        raise array_exists(path, name, "of which values are missing")
    return there.names.index(name)


def _check_references(there: _List, place: int, source: Source) -> None:
    """Refuse to replace a member with an environment that a later member refers to."""
    gone, number = set(), 0
    for index, member in enumerate(there.members):
        for event in member.events:
            number += event.at < 0
            if index == place and event.at < 0 and event.name is None:
                gone.add(number)
            elif index > place and event.number in gone:
                raise Unsupported(
                    "other members share an environment with this one", path=source.path,
                    remedy=_REMEDY,
                )  # fmt: skip


# The new file -------------------------------------------------------------------------------------


def _write(sink: Sink, target: Target, there: _List, leaf: Leaf, place: int | None) -> None:
    from .writer import put_vector

    cursor = there.stream.cursor()
    try:
        sink.put(cursor.take(there.begin))
        names = [*there.names, *([leaf.name] if place is None else [])]
        sink.integers(VEC | HAS_ATTRIBUTES)
        sink.length(len(names))
        old = 0  # what was numbered so far in the old file
        known: dict[int, int] = {}  # numbers of the old file -> of the new one
        for index, member in enumerate(there.members):
            if index == place:
                old += sum(event.at < 0 for event in member.events)
                put_vector(sink, target, leaf)
                continue
            cursor.skip(member.begin - cursor.position)
            old = _copy(sink, cursor, member, old, known)
        if place is None:
            put_vector(sink, target, leaf)
        sink.tagged("names")
        sink.texts(names)
        sink.end()
    finally:
        cursor.close()


def _copy(sink: Sink, cursor: Cursor, member: Member, old: int, known: dict[int, int]) -> int:
    """Copy a member with the numbers of the new file; return how many the old one has so far."""
    for event in member.events:
        if event.at < 0:
            old += 1
            known[old] = sink.number(event.name)
            continue
        _copy_bytes(sink, cursor, event.at)
        cursor.skip(4)
        if event.number in known:
            sink.integers(known[event.number] << 8 | REF)
        else:  # of the member that was replaced
            sink.symbol(event.name or "")
    _copy_bytes(sink, cursor, member.end)
    return old


def _copy_bytes(sink: Sink, cursor: Cursor, end: int) -> None:
    for piece in cursor.pieces(end - cursor.position):
        sink.put(piece)
