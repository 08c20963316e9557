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
    """An object that gets a number, such as a symbol called `name`, or a reference to one.

    A reference lies at decoded byte `at`, and is to number `number`; for an object `at` is -1.
    """

    name: str | None
    at: int = -1
    number: int = 0

    @property
    def is_numbered(self) -> bool:
        """True for an object that gets the next number."""
        return self.at < 0


class Member(NamedTuple):
    """A member of the list: its bytes in the decoded file, and the events in them."""

    begin: int
    end: int
    events: list[Event]


class _Marked(Parser):
    """Parser that records which objects of a file have numbers, and where they are referred to."""

    def __init__(self, cursor: Cursor, source: Source) -> None:
        super().__init__(cursor, source)
        self.events: list[Event] = []
        self._refs = _Recorded(self.events)

    def _reference(self, flags: int) -> str | None:
        name = super()._reference(flags)
        number = flags >> 8 & 0xFFFFFF
        if not number:  # it is behind the flags, as R writes it for millions of symbols
            raise Unsupported("refers to symbols by long numbers", path=self.path, remedy=_REMEDY)
        self.events.append(Event(name, self.cursor.position - 4, number))
        return name


class _Recorded(list["str | None"]):
    """The names of numbered objects; each that is appended is an event, too."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self._events = events

    def append(self, name: str | None) -> None:
        """Append a name, and the event."""
        super().append(name)
        self._events.append(Event(name))


class _List:
    """The list that is the object of a file: the extents of its members, and their names."""

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
            self.names = [str(text) for text in texts.texts]
        elif not attributes and not self.members:
            self.names = []
        else:
            raise _no_list(source)

    @staticmethod
    def _member(parser: _Marked) -> Member:
        """Pass over a member, and return its extent and events."""
        begin, first = parser.cursor.position, len(parser.events)
        parser.item(1)
        return Member(begin, parser.cursor.position, parser.events[first:])


def _no_list(source: Source) -> Unsupported:
    """Return the error for a file to which no array can be added."""
    return Unsupported(
        "is not a plain list with names, in the form X, so that no array can be added",
        path=source.path, remedy=_REMEDY,
    )  # fmt: skip


def add_to_list(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool, numbers: str
) -> Plan:
    """Plan the list with one more member, or a new one instead of that of the same name.

    Raises `TargetExists`, and `Unsupported` for an object that is not a plain list with names.
    """
    old = _List(source)
    array = bundle.arrays[0]
    replaced = _replaced(array.name, old, held, source.path, overwrite=overwrite)
    fits: list[Fit] = []
    leaf = leaf_of(array, None, numbers, fits)
    if replaced is not None:
        _check_references(old, replaced, source)

    def write(target: Target) -> None:
        from .writer import Sink

        try:
            sink = Sink(target.open(), PACKINGS[old.stream.packing])
            _write(sink, target, old, leaf, replaced)
            sink.close()
        except OSError as error:
            raise write_failed(target.path, error) from error
        finally:
            old.stream.close()

    return Plan(fits, write, names=bundle.names)


def _replaced(name: str, old: _List, held: Bundle, path: str, *, overwrite: bool) -> int | None:
    """Return the index of the member to be replaced; None for a further one."""
    if "/" in name:
        raise Unsupported("lists inside the list take no further array", path=path, remedy=_REMEDY)
    is_group = any(array_name.startswith(f"{name}/") for array_name in held.names)
    if name not in old.names and name not in held.names and not is_group:
        return None
    if old.names.count(name) != 1 or name not in held.names or is_group:
        raise not_an_array(path, name, "a member that is not an array of its own")
    if not overwrite:
        raise array_exists(path, name)
    if f"{name}.{NULLS}" in held.names:
        raise array_exists(path, name, "of which values are missing")
    return old.names.index(name)


def _check_references(old: _List, replaced: int, source: Source) -> None:
    """Refuse to replace a member with an environment that a later member refers to."""
    gone, number = set(), 0
    for index, member in enumerate(old.members):
        for event in member.events:
            number += event.is_numbered
            if index == replaced and event.is_numbered and event.name is None:
                gone.add(number)
            elif index > replaced and event.number in gone:
                raise Unsupported(
                    "other members share an environment with this one", path=source.path,
                    remedy=_REMEDY,
                )  # fmt: skip


# The new file -------------------------------------------------------------------------------------


def _write(sink: Sink, target: Target, old: _List, leaf: Leaf, replaced: int | None) -> None:
    """Write the list; member `replaced` becomes the vector, which else is behind all members."""
    from .writer import put_vector

    cursor = old.stream.cursor()
    try:
        sink.put(cursor.take(old.begin))
        names = [*old.names, *([leaf.name] if replaced is None else [])]
        sink.integers(VEC | HAS_ATTRIBUTES)
        sink.length(len(names))
        count = 0  # objects of the old file with a number, so far
        new_numbers: dict[int, int] = {}  # by the numbers of the old file
        for index, member in enumerate(old.members):
            if index == replaced:
                count += sum(event.is_numbered for event in member.events)
                put_vector(sink, target, leaf)
                continue
            cursor.skip(member.begin - cursor.position)
            count = _copy(sink, cursor, member, count, new_numbers)
        if replaced is None:
            put_vector(sink, target, leaf)
        sink.tagged("names")
        sink.texts(names)
        sink.end()
    finally:
        cursor.close()


def _copy(
    sink: Sink, cursor: Cursor, member: Member, count: int, new_numbers: dict[int, int]
) -> int:
    """Copy a member with the numbers of the new file; return the count of the old one behind it."""
    for event in member.events:
        if event.is_numbered:
            count += 1
            new_numbers[count] = sink.number(event.name)
            continue
        _copy_bytes(sink, cursor, event.at)
        cursor.skip(4)
        if event.number in new_numbers:
            sink.integers(new_numbers[event.number] << 8 | REF)
        else:  # a symbol of the member that was replaced
            sink.symbol(event.name or "")
    _copy_bytes(sink, cursor, member.end)
    return count


def _copy_bytes(sink: Sink, cursor: Cursor, end: int) -> None:
    """Copy the bytes up to an offset."""
    for piece in cursor.pieces(end - cursor.position):
        sink.put(piece)
