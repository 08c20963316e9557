"""The elements of a data set before its pixels: a walk over tags, representations and lengths.

Only elements that are read (`tables.KNOWN`, and those of ``keep-tags``) are taken into memory; all
others are skipped by their length. Work is bounded by `Limits.header_elements` and
`Limits.nesting_levels`, memory by `Limits.record_bytes` of an element.
"""

from __future__ import annotations

import os
import struct
import zlib
from math import isfinite

from raconvert.declared import Record
from raconvert.errors import Corrupt, TooLarge, Unsupported

from .tables import (
    BIG,
    CODES,
    CSA,
    DEFLATED,
    DOUBLES,
    EXPLICIT,
    FLOATS,
    IMPLICIT,
    ITEM,
    ITEM_END,
    KNOWN,
    LONG,
    MAGIC,
    MODALITY,
    PIXELS,
    PREAMBLE,
    SEQUENCE_END,
    SHORT,
    SYNTAX,
    UNDEFINED,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from raconvert.files.source import Source

    Items = list["Data"]

WINDOW = 1 << 16  # bytes that are read at once


class Pixels(Record):
    """The element of the pixels: tag, representation, offset, and length (None: in fragments)."""

    tag: int
    vr: bytes
    offset: int
    nbytes: int | None


class Data:
    """The elements of a data set, or of an item of a sequence, that are read.

    A value is the bytes of an element, or the items of a sequence.
    """

    __slots__ = ("big", "path", "values")

    def __init__(self, path: str, *, big: bool) -> None:
        self.path = path
        self.big = big
        self.values: dict[int, tuple[bytes, Any]] = {}

    def items(self, tag: int) -> Items:
        """The items of a sequence; empty if it is missing."""
        vr, value = self.values.get(tag, (b"", b""))
        return value if vr == b"SQ" else []

    def item(self, tag: int) -> Data | None:
        """The first item of a sequence, or None."""
        items = self.items(tag)
        return items[0] if items else None

    def text(self, tag: int, charset: str = "latin-1") -> str:
        """The text of an element without the space around it; empty if there is none."""
        vr, value = self.values.get(tag, (b"", b""))
        return "" if vr == b"SQ" else bytes(value).decode(charset, "replace").strip(" \0")

    def numbers(self, tag: int) -> tuple[float, ...]:
        """The numbers of an element; empty if it is missing. Raises `Corrupt` for other values."""
        vr, value = self.values.get(tag, (b"", b""))
        if vr == b"SQ" or not value:
            return ()
        try:
            if vr in CODES:
                code = CODES[vr]
                width = struct.calcsize(code)
                order = ">" if self.big else "<"
                numbers: Any = struct.unpack(f"{order}{len(value) // width}{code}", value)
            else:
                text = value.decode("ascii").strip(" \0")
                numbers = [float(part) for part in text.split("\\") if part.strip(" \0")]
        except (ValueError, struct.error) as error:
            raise self.wrong(tag, "is not a list of numbers", ascii(value[:40])) from error
        if not all(isfinite(number) for number in numbers):
            raise self.wrong(tag, "is not a list of finite numbers", ascii(value[:40]))
        return tuple(numbers)

    def number(self, tag: int) -> float | None:
        """The first number of an element, or None."""
        numbers = self.numbers(tag)
        return numbers[0] if numbers else None

    def integer(self, tag: int) -> int | None:
        """The first number of an element, or None. Raises `Corrupt` if it is not a whole number."""
        number = self.number(tag)
        if number is not None and int(number) != number:
            raise self.wrong(tag, "is not a whole number", number)
        return None if number is None else int(number)

    def optional_number(self, tag: int) -> float | None:
        """The first number of an element; None if it is missing, or not a number."""
        try:
            return self.number(tag)
        except Corrupt:
            return None

    def wrong(self, tag: int, what: str, got: object, expected: str | None = None) -> Corrupt:
        """The error for an element with a wrong value; `what` follows its tag."""
        return Corrupt(f"element {named(tag)} {what}", path=self.path, got=got, expected=expected)


class Header(Data):
    """The elements before the pixels, the transfer syntax, and the location of the pixels.

    `tags` are those of all elements at the top; `inflated` is the data set of a deflated file.
    """

    __slots__ = ("inflated", "pixels", "source", "syntax", "tags")

    def __init__(self, source: Source) -> None:
        super().__init__(source.path, big=False)
        self.source = source
        self.pixels: Pixels | None = None
        self.syntax: str = ""
        self.tags: set[int] = set()
        self.inflated: Inflated | None = None

    def image(self) -> Pixels:
        """The element of the pixels. Raises `Unsupported` if the file holds no image."""
        if self.pixels is not None:
            return self.pixels
        kind = self.text(MODALITY)
        listing = "DICOMDIR" in os.path.basename(self.path).upper()
        raise Unsupported(
            f"is a DICOM file without an image{f' ({kind})' if kind else ''}", path=self.path,
            remedy="it lists the files of a set: name its folder" if listing
            else "name files with images",
        )  # fmt: skip


def named(tag: int) -> str:
    """A tag as DICOM writes it.

    >>> named(0x00280010)
    '(0028,0010)'
    """
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X})"


# Bytes -------------------------------------------------------------------------------------------


class Window:
    """The bytes of a file, or its inflated data set, read in pieces of `WINDOW`."""

    def __init__(self, source: Any, size: int) -> None:
        self._source = source
        self.size = size
        self._start = 0
        self._bytes = b""

    def at(self, offset: int, nbytes: int) -> bytes:
        """Up to `nbytes` bytes at an offset; fewer only at the end."""
        start = offset - self._start
        if start < 0 or start + nbytes > len(self._bytes):
            self._bytes = self._source.read_at(offset, max(nbytes, WINDOW))
            self._start, start = offset, 0
        return self._bytes[start : start + nbytes]


class Inflated:
    """The data set of a deflated file, inflated front to back; only the last bytes are in memory.

    Until `pixels` is set, at most `Limits.metadata_bytes` are inflated.
    """

    def __init__(self, source: Source, begin: int) -> None:
        self._source = source
        self._begin = begin
        self.pixels = False
        # Deflate makes at most 1032 bytes of one.
        self.most: int = 1032 * max(0, source.size - begin)
        self._restart()

    @property
    def begin(self) -> int:
        """The offset before which bytes are inflated again from the first one."""
        return self._start

    def _restart(self) -> None:
        self._at = self._begin
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        self._start, self._bytes = 0, bytearray()

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Up to `nbytes` inflated bytes at an offset; fewer only at the end."""
        most = self._source.limits.metadata_bytes
        if offset > most and not self.pixels:
            raise TooLarge(
                "the deflated data set has very much before its pixels", path=self._source.path,
                got=offset, expected=f"at most {most} bytes",
                remedy="write the file again without the elements that nobody needs",
            )  # fmt: skip
        if offset < self._start:
            self._restart()
        end = offset + nbytes
        while self._start + len(self._bytes) < end and self._more():
            if self._start + len(self._bytes) <= offset:
                self._start += len(self._bytes)
                self._bytes.clear()
        del self._bytes[: offset - self._start]
        self._start = offset
        return bytes(self._bytes[:nbytes])

    def _more(self) -> bool:
        """Inflate some more bytes; False at the end."""
        decoder = self._decoder
        if decoder.eof:
            return False
        chunk = decoder.unconsumed_tail
        if not chunk:
            chunk = self._source.read_at(self._at, WINDOW)
            self._at += len(chunk)
        if not chunk:
            return False
        try:
            self._bytes += decoder.decompress(chunk, 16 * WINDOW)
        except zlib.error as error:
            raise Corrupt(
                f"the deflated data set cannot be inflated: {error}", path=self._source.path
            ) from error
        return True


# The walk ----------------------------------------------------------------------------------------


def read_header(source: Source, wanted: Collection[int] = ()) -> Header:
    """The header of a file; `wanted` are tags to read besides those in `KNOWN`.

    Raises `Corrupt`, `Unsupported` and `TooLarge`.
    """
    header = Header(source)
    begin = PREAMBLE + len(MAGIC) if source.head[PREAMBLE:].startswith(MAGIC) else 0
    walk = _Walk(header, Window(source, source.size), {*KNOWN, *wanted})
    at = walk.meta(begin)
    header.syntax = header.text(SYNTAX)
    if header.syntax == DEFLATED:
        header.inflated = Inflated(source, at)
        walk.window, at = Window(header.inflated, header.inflated.most), 0
    walk.implicit, header.big = _syntax_of(walk.window.at(at, 8), header)
    walk.order = ">" if header.big else "<"
    walk.data_set(at)
    return header


def _syntax_of(first: bytes, header: Header) -> tuple[bool, bool]:
    """The pair (implicit representations, big-endian numbers), from the syntax or the bytes."""
    # Some writers declare explicit representations and write implicit ones, or the reverse.
    implicit = first[4:6] not in LONG | SHORT
    if header.syntax:
        return implicit, header.syntax == BIG
    big = first[:1] == b"\0" and first[1:2] != b"\0"
    header.syntax = IMPLICIT if implicit else BIG if big else EXPLICIT
    return implicit, big


class _Walk:
    """The walk over the elements of a file; `left` is the number of elements it may still read."""

    def __init__(self, header: Header, window: Window, wanted: set[int]) -> None:
        self.header = header
        self.window = window
        self.wanted = wanted
        self.implicit = False
        self.order = "<"
        self.limits = header.source.limits
        self.left = self.limits.header_elements

    def meta(self, at: int) -> int:
        """Read group 0002, which is explicit and little-endian; return the offset of its end."""
        while self.window.at(at, 2) == b"\x02\x00":
            tag, vr, nbytes, at = self.element(at)
            self.check(tag, nbytes, at)
            self.keep(self.header, tag, vr, nbytes, at)
            self.header.tags.add(tag)
            at += nbytes
        return at

    def data_set(self, at: int) -> None:
        """Read the elements up to the pixels."""
        header, tags = self.header, self.header.tags
        while at < self.window.size:
            if len(rest := self.window.at(at, 8)) < 8:
                if any(rest) and self.header.inflated is None:
                    raise self.ends(at)
                return
            if rest == bytes(8):  # padding behind the data set
                return
            tag, vr, nbytes, at = self.element(at)
            if tag in (PIXELS, FLOATS, DOUBLES):
                whole = None if nbytes == UNDEFINED else nbytes
                header.pixels = Pixels(tag, vr, at, whole)
                if header.inflated is not None:
                    header.inflated.pixels = True
                return
            tags.add(tag)
            at = self.value(header, tag, vr, nbytes, at, 1)

    def element(self, at: int) -> tuple[int, bytes, int, int]:
        """Tag, representation and length of an element, and the offset of its value."""
        self.left -= 1
        if self.left < 0:
            raise TooLarge(
                "has very many elements before its pixels", path=self.header.path,
                expected=f"at most {self.limits.header_elements}", where=f"byte {at}",
                remedy="write the file again without the elements that nobody needs",
            )  # fmt: skip
        head = self.window.at(at, 12)
        if len(head) < 8:
            raise self.ends(at)
        group, number = struct.unpack_from(f"{self.order}HH", head)
        tag = group << 16 | number
        if self.implicit or group == 0xFFFE:
            (nbytes,) = struct.unpack_from(f"{self.order}I", head, 4)
            return tag, KNOWN.get(tag, b"UN"), nbytes, at + 8
        vr = head[4:6]
        if vr in SHORT:
            (nbytes,) = struct.unpack_from(f"{self.order}H", head, 6)
            return tag, vr, nbytes, at + 8
        if not vr.isalpha() or not vr.isupper():
            raise Corrupt(
                f"element {named(tag)} has no value representation", path=self.header.path,
                where=f"byte {at + 4}", got=ascii(vr), expected="two capital letters",
            )  # fmt: skip
        if len(head) < 12:
            raise self.ends(at)
        (nbytes,) = struct.unpack_from(f"{self.order}I", head, 8)
        return tag, vr, nbytes, at + 12

    def value(
        self, data: Data | None, tag: int, vr: bytes, nbytes: int, at: int, depth: int
    ) -> int:
        """Read a value, or skip it if `data` is None; return the offset of its end."""
        if nbytes != UNDEFINED:
            self.check(tag, nbytes, at)
            if data is None or tag not in self.wanted:
                return at + nbytes
            if KNOWN.get(tag) == b"SQ":
                data.values[tag] = b"SQ", self.sequence(data, at, at + nbytes, depth)
            else:
                self.keep(data, tag, vr, nbytes, at)
            return at + nbytes
        if tag == PIXELS:  # of an icon in a sequence
            return self.fragments(at)
        if vr not in (b"SQ", b"UN") or (vr == b"UN" and KNOWN.get(tag, b"SQ") != b"SQ"):
            raise Corrupt(
                f"element {named(tag)} has no length, and is not a sequence",
                path=self.header.path, where=f"byte {at}", got=ascii(vr),
            )  # fmt: skip
        before = self.implicit, self.order
        if vr == b"UN":  # a sequence that its writer did not know
            self.implicit, self.order = True, "<"
        is_read = data is not None and tag in self.wanted
        items: Items = []
        at = self.items(data if is_read else None, items, at, None, depth)
        if is_read and data is not None:
            data.values[tag] = b"SQ", items
        self.implicit, self.order = before
        return at

    def fragments(self, at: int) -> int:
        """Skip encoded pixels; return the offset of their end."""
        while True:
            tag, _, nbytes, at = self.element(at)
            if tag == SEQUENCE_END:
                return at
            if tag != ITEM:
                raise self.odd_item(tag, at)
            self.check(tag, nbytes, at)
            at += nbytes

    def sequence(self, data: Data, at: int, end: int, depth: int) -> Items:
        """The items of a sequence of a known length."""
        items: Items = []
        self.items(data, items, at, end, depth)
        return items

    def items(
        self, data: Data | None, items: Items, at: int, end: int | None, depth: int
    ) -> int:  # fmt: skip
        """Read the items of a sequence, or skip them if `data` is None; return its end."""
        if depth > self.limits.nesting_levels:
            raise TooLarge(
                "has sequences inside each other", path=self.header.path, where=f"byte {at}",
                expected=f"at most {self.limits.nesting_levels} levels",
                remedy="write the file again without them",
            )  # fmt: skip
        while end is None or at < end:
            tag, _, nbytes, at = self.element(at)
            if tag == SEQUENCE_END:
                return at
            if tag != ITEM:
                raise self.odd_item(tag, at)
            item = None if data is None else Data(data.path, big=self.order == ">")
            if nbytes != UNDEFINED:
                self.check(tag, nbytes, at)
                if item is None:
                    at += nbytes
                    continue
            at = self.item(item, at, None if nbytes == UNDEFINED else at + nbytes, depth)
            if item is not None:
                items.append(item)
        return at

    def item(self, item: Data | None, at: int, end: int | None, depth: int) -> int:
        """Read the elements of an item; return the offset of its end."""
        while end is None or at < end:
            tag, vr, nbytes, at = self.element(at)
            if tag == ITEM_END:
                return at
            at = self.value(item, tag, vr, nbytes, at, depth + 1)
        return at

    def keep(self, data: Data, tag: int, vr: bytes, nbytes: int, at: int) -> None:
        """Read the value of an element into `data`, if it is wanted. Raises `TooLarge`."""
        if tag not in self.wanted:
            return
        if nbytes > self.limits.record_bytes:
            if tag == CSA:  # another maker's element of this tag may be anything
                return
            raise TooLarge(
                f"element {named(tag)} is too large", path=self.header.path, got=nbytes,
                where=f"byte {at}", expected=f"at most {self.limits.record_bytes} bytes",
                remedy="repair the file, or leave the element out of `keep-tags`",
            )  # fmt: skip
        value = self.window.at(at, nbytes)
        if len(value) < nbytes:
            raise self.ends(at)
        data.values[tag] = (KNOWN.get(tag, vr) if vr == b"UN" else vr), value

    def check(self, tag: int, nbytes: int, at: int) -> None:
        """Raise `Corrupt` for a length that reaches beyond the file."""
        if at + nbytes > self.window.size:
            raise Corrupt(
                f"element {named(tag)} ends behind the file", path=self.header.path,
                where=f"byte {at}", expected=f"at most {max(0, self.window.size - at)} bytes",
                got=nbytes, remedy="copy the file again; it is cut off, or damaged",
            )  # fmt: skip

    def odd_item(self, tag: int, at: int) -> Corrupt:
        """The error for another element between the items of a sequence."""
        return Corrupt(
            "a sequence has something that is not an item", path=self.header.path,
            where=f"byte {at - 8}", got=named(tag),
        )  # fmt: skip

    def ends(self, at: int) -> Corrupt:
        """The error for a file that ends inside an element."""
        return Corrupt("file ends inside an element", path=self.header.path, where=f"byte {at}")


# Detection ---------------------------------------------------------------------------------------


def looks_like(head: bytes, size: int) -> bool:
    """True if bytes without a preamble begin as a data set: three elements, in order."""
    for order in "<>":
        tags = [*_first_tags(head, size, order)]
        if len(tags) == 3 and tags == sorted(set(tags)) and tags[0] >> 16 in (2, 8):
            return True
    return False


def _first_tags(head: bytes, size: int, order: str) -> Iterator[int]:
    """Yield the tags of up to three elements at the beginning of a file."""
    at = 0
    for _ in range(3):
        if len(head) < at + 12:
            return
        group, number = struct.unpack_from(f"{order}HH", head, at)
        vr = head[at + 4 : at + 6]
        if vr in SHORT:
            nbytes, step = struct.unpack_from(f"{order}H", head, at + 6)[0], 8
        elif vr in LONG:
            nbytes, step = struct.unpack_from(f"{order}I", head, at + 8)[0], 12
        else:
            nbytes, step = struct.unpack_from(f"{order}I", head, at + 4)[0], 8
        if nbytes % 2 or nbytes > size - at:
            return
        yield group << 16 | number
        at += step + nbytes


def wants_items(tag: int) -> Unsupported:
    """The error for a sequence in ``keep-tags``."""
    return Unsupported(f"element {named(tag)} is a sequence, which `keep-tags` does not keep")
