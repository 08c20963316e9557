"""The elements of level 5, and the cursors that they are read at.

A cursor is a position in the file, or in the decoded bytes of a variable. Elements are tags, short
data, numbers, and the flags, dims and name of a matrix.
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.files.source import read_up_to

from .header import SMALL_BYTES, Tag, parse_dims, parse_flags, parse_tag
from .parts import FilePart, InflatedPart, Inflater, MemoryPart
from .tables import MI_COMPRESSED, MI_MATRIX, ORDERS, STORED, WIDEST, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    from raconvert.files.source import Source

    from .header import Flags
    from .tree import Tree


# Cursors ----------------------------------------------------------------------------------------


WINDOW_BYTES = 4096  # of the file that are read at once while it is walked
EAGER_BYTES = 1 << 20  # compressed variables up to this size are decoded as a whole
CACHED_BYTES = EAGER_BYTES  # numbers up to this size stay in memory when they are decoded


class FileCursor:
    """A position in the file, up to the end of one element."""

    def __init__(self, source: Source, file: FileIO, offset: int, end: int) -> None:
        self.path = source.path
        self._source = source
        self.position = offset
        self.end = end
        self._file = file
        self._window, self._window_position = b"", 0

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes, and go on behind them."""
        start = self.position - self._window_position
        if start < 0 or start + nbytes > len(self._window):
            self._file.seek(self.position)
            self._window = read_up_to(self._file, max(nbytes, WINDOW_BYTES))
            self._window_position, start = self.position, 0
        self.position += nbytes
        return self._window[start : start + nbytes]

    def skip(self, nbytes: int) -> None:
        """Go on behind the next `nbytes` bytes."""
        self.position += nbytes

    def part(self, dtype: str, nbytes: int) -> Any:
        """Return the numbers in the next bytes as a part; go on behind them if they are read."""
        piece = FilePart(self._source, self.position, dtype, nbytes // int(dtype[2:]))
        self.position += nbytes
        return piece

    broken = False

    @property
    def where(self) -> str:
        """The position, as messages name it."""
        return f"byte {self.position}"


class InflateCursor:
    """A position in the decoded bytes of a compressed variable."""

    lazy = True  # nothing is decoded behind the first numbers

    def __init__(self, inflater: Inflater, room: int) -> None:
        self.variable = inflater.variable
        self.path = self.variable.path
        self.end = self.variable.total
        self.room = room  # bytes of numbers that may still stay in memory
        self.inflater = inflater

    @property
    def position(self) -> int:
        """The number of decoded bytes before the cursor."""
        return self.inflater.position

    @property
    def broken(self) -> bool:
        """True if an error has ended the inflating."""
        return self.inflater.broken

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes, and go on behind them."""
        return self.inflater.read(nbytes)

    def skip(self, nbytes: int) -> None:
        """Go on behind the next `nbytes` bytes."""
        self.inflater.skip(nbytes)

    def part(self, dtype: str, nbytes: int) -> Any:
        """Return the numbers in the next bytes as a part; go on behind them if they are read."""
        if nbytes <= min(CACHED_BYTES, self.room):
            self.room -= nbytes
            return MemoryPart(self.inflater.read(nbytes), dtype)
        piece = InflatedPart(self.variable, self.position, dtype, nbytes // int(dtype[2:]))
        if not self.lazy:
            self.inflater.skip(nbytes)
        return piece

    @property
    def where(self) -> str:
        """The position, as messages name it."""
        return f"byte {self.variable.offset}, decoded byte {self.position}"


class DecodedCursor(InflateCursor):
    """A position in the decoded bytes of a small compressed variable, all of them in memory."""

    lazy = False
    broken = False
    position = 0

    def __init__(self, inflater: Inflater, data: bytes, room: int) -> None:
        super().__init__(inflater, room)
        self._data = data

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes, and go on behind them."""
        data = self._data[self.position : self.position + nbytes]
        if len(data) < nbytes:
            raise Corrupt("compressed variable ends inside its data", path=self.path,
                          where=self.where)  # fmt: skip
        self.position += nbytes
        return data

    def skip(self, nbytes: int) -> None:
        """Go on behind the next `nbytes` bytes."""
        self.position += nbytes

    def part(self, dtype: str, nbytes: int) -> Any:
        """Return the numbers in the next bytes as a part; go on behind them if they are read."""
        if nbytes <= self.room:
            self.room -= nbytes
            return MemoryPart(self.take(nbytes), dtype)
        piece = InflatedPart(self.variable, self.position, dtype, nbytes // int(dtype[2:]))
        self.position += nbytes
        return piece


Cursor = FileCursor | InflateCursor


def signed(data: bytes, order: str) -> int:
    """The signed integer in bytes of an order."""
    return int.from_bytes(data, ORDERS[order], signed=True)


class Elements5:
    """Reads elements at a cursor; refuses those longer than the variable they lie in."""

    def __init__(self, tree: Tree, order: str) -> None:
        self.tree = tree
        self.order = order
        self.framed = True  # False if no offset of a next variable can be computed

    def check_element(self, offset: int, code: int, nbytes: int) -> None:
        """Refuse the tag of a variable with another type, or with more bytes than the file has."""
        source = self.tree.source
        self.framed = False
        if code not in (MI_MATRIX, MI_COMPRESSED):
            raise Corrupt("element is not a variable", path=source.path, where=f"byte {offset}",
                          expected="type 14 or 15", got=code)  # fmt: skip
        if nbytes > source.size - offset - 8:
            raise Corrupt("variable is cut off", path=source.path, where=f"byte {offset}",
                          expected=f"{nbytes} bytes", got=source.size - offset - 8)  # fmt: skip
        self.framed = True

    def corrupt(
        self, cursor: Cursor, what: str, expected: object = None, got: object = None
    ) -> Corrupt:
        """The error for wrong data at the position of a cursor."""
        return Corrupt(what, path=cursor.path, where=cursor.where, expected=expected, got=got)

    def tag(self, cursor: Cursor, end: int, what: str) -> Tag:
        """Read a tag; raises `Corrupt` if its data goes beyond `end`."""
        if end - cursor.position < 8:
            raise self.corrupt(cursor, f"variable ends before {what}")
        tag = parse_tag(cursor.take(8), self.order)
        if tag.small is not None:
            if tag.nbytes > SMALL_BYTES:
                raise self.corrupt(cursor, f"wrong tag of {what}", "at most 4 bytes", tag.nbytes)
        elif tag.nbytes > end - cursor.position:
            raise self.corrupt(
                cursor, f"{what} is longer than its variable", f"at most {end - cursor.position}",
                tag.nbytes,
            )  # fmt: skip
        return tag

    def data(self, cursor: Cursor, end: int, what: str, limit: int) -> tuple[int, bytes]:
        """Read a whole element; return type and data. Raises `Corrupt` above `limit` bytes."""
        tag = self.tag(cursor, end, what)
        if tag.small is not None:
            return tag.code, tag.small
        if tag.nbytes > limit:
            raise self.corrupt(cursor, f"{what} is too long", f"at most {limit} bytes", tag.nbytes)
        data = cursor.take(tag.nbytes)
        self.pad(cursor, tag.nbytes, end)
        return tag.code, data

    def pad(self, cursor: Cursor, nbytes: int, end: int) -> None:
        """Skip the padding behind an element of `nbytes` bytes."""
        cursor.skip(min(-nbytes % 8, end - cursor.position))

    def part(self, cursor: Cursor, end: int, what: str, as_bytes: int | None = None) -> Any:
        """Return the numbers of an element as a part.

        A double element of `as_bytes` bytes is read as bytes: MATLAB writes the values of a sparse
        logical matrix so.
        """
        return self.stored(cursor, end, what, self.tag(cursor, end, what), as_bytes)

    def stored(
        self, cursor: Cursor, end: int, what: str, tag: Tag, as_bytes: int | None = None
    ) -> Any:
        """Return the numbers behind a tag as a part; see `part`."""
        stored = STORED.get(tag.code)
        if stored == "f8" and tag.nbytes == as_bytes:
            stored = "u1"
        if stored is None:
            raise self.corrupt(cursor, f"{what} is of unknown type", "numbers", tag.code)
        if tag.nbytes % int(stored[1:]):
            raise self.corrupt(cursor, f"{what} ends inside a number", got=f"{tag.nbytes} bytes")
        dtype = self.order + stored
        if tag.small is not None:
            return MemoryPart(tag.small, dtype)
        offset = cursor.position
        part = cursor.part(dtype, tag.nbytes)
        if cursor.position != offset or not tag.nbytes:
            self.pad(cursor, tag.nbytes, end)
        return part

    def flags(self, cursor: Cursor, end: int) -> Flags:
        """Read the array flags at the beginning of a matrix."""
        _, raw = self.data(cursor, end, "the array flags", 8)
        if len(raw) != 8:
            raise self.corrupt(cursor, "array flags have a wrong length", "8 bytes", len(raw))
        flags = parse_flags(raw, self.order)
        if flags.cls is None:
            raise self.corrupt(cursor, "unknown class", "1 to 17", flags.number)
        return flags

    def facts(self, cursor: Cursor, end: int) -> Facts:
        """Read flags, dims and name of a matrix; return its facts."""
        flags = self.flags(cursor, end)
        if flags.cls == "opaque":
            return Facts(flags.cls, (1, 1))
        dims = self.dims(cursor, end)
        self.name(cursor, end, "the name")
        logical = flags.is_logical and flags.cls != "char"
        return Facts(flags.cls, dims, flags.is_complex, logical, flags.is_global)

    def dims(self, cursor: Cursor, end: int) -> tuple[int, ...]:
        """Read the dims of a matrix, two at least."""
        _, data = self.data(cursor, end, "the dims", self.tree.limits.shape_bytes)
        if len(data) % 4 or not data:
            raise self.corrupt(
                cursor, "dims have a wrong length", "4 bytes each", f"{len(data)} bytes"
            )
        dims = parse_dims(data, self.order)
        self.tree.check_dims(dims, WIDEST, cursor.where)
        return dims

    def name(self, cursor: Cursor, end: int, what: str) -> str:
        """Read the name of a variable or of a class."""
        return text_of(self.data(cursor, end, what, self.tree.limits.name_bytes)[1])

    def check_members(self, cursor: Cursor, end: int, path: str, count: int) -> None:
        """Refuse more members than their bytes can hold, or than the memory allows."""
        if 8 * count > end - cursor.position:
            raise self.corrupt(cursor, f"'{path}' declares more members than there are",
                                f"at most {(end - cursor.position) // 8}", count)  # fmt: skip
        self.tree.count(count)

    def field_names(self, cursor: Cursor, end: int, path: str) -> list[str]:
        """Read the names of the fields of a struct."""
        _, data = self.data(cursor, end, "the length of field names", 8)
        width = signed(data[:4], self.order)
        _, text = self.data(cursor, end, "the field names", self.tree.limits.document_bytes)
        if not text:
            return []
        if width <= 0 or len(text) % width:
            raise self.corrupt(cursor, f"field names of '{path}' have a wrong length",
                                f"a multiple of {width}", len(text))  # fmt: skip
        self.tree.count(len(text) // width)
        return [text_of(text[i : i + width]) for i in range(0, len(text), width)]

    def member_end(self, cursor: Cursor, end: int, path: str) -> int:
        """Read the tag of the next member of a struct or cell; return the end of the member."""
        tag = self.tag(cursor, end, f"'{path}'")
        if tag.code != MI_MATRIX:
            raise self.corrupt(cursor, f"'{path}' is not a matrix", "type 14", tag.code)
        return cursor.position + tag.nbytes


def text_of(data: bytes) -> str:
    """The text of a name before its first NUL: UTF-8, or Latin-1 if it is not UTF-8."""
    data = data.split(b"\0", 1)[0]
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
