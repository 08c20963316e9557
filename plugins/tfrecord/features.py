"""Features of records: where each lies, and what its values have in common."""

from __future__ import annotations

from array import array as numbers

from .messages import BYTES, Malformed, count_of, lists_of, steps_of

PNG = b"\x89PNG\r\n\x1a\n"
PADDING = 64  # the most bytes for each byte of texts, if all are made as long as the longest
SMALL_BYTES = 1 << 24  # bytes that padded texts may take anyway


class Span:
    """The least and the greatest of some numbers."""

    __slots__ = ("high", "low")

    def __init__(self) -> None:
        self.low, self.high = -1, -1

    def add(self, number: int) -> None:
        """Widen the span so that it includes a number."""
        if self.high < 0:
            self.low = self.high = number
        elif number < self.low:
            self.low = number
        elif number > self.high:
            self.high = number

    @property
    def is_one(self) -> bool:
        """True if all numbers are the same."""
        return self.low == self.high


class Feature:
    """A feature of many records: where it lies in each, and what its values have in common."""

    def __init__(
        self, key: str, *, has_steps: bool, whole: bool = False, is_image: bool = False
    ) -> None:
        self.key = key
        self.has_steps = has_steps
        self.whole = whole  # records themselves are the values
        self.kind = 0
        self.mixed = False
        self.records = numbers("Q")  # the records that have it, and where it lies in the file
        self.begins, self.nbytes = numbers("Q"), numbers("Q")
        self.steps, self.count, self.width = Span(), Span(), Span()
        self.total = self.all_steps = self.stored = 0
        self.is_text = True
        self.is_image = is_image and not has_steps  # as long as its values may be images
        self.is_png = True
        self.image_begins, self.image_nbytes = numbers("Q"), numbers("Q")

    def add(self, record: int, data: bytes, begin: int, at: int, end: int) -> None:
        """Take in the feature of a record, at `at` to `end` of its data.

        `begin` is the offset of the record in the file.
        """
        if self.records and self.records[-1] == record:
            raise Malformed(f"feature '{self.key[:80]}' is there twice")
        self.records.append(record)
        self.begins.append(begin + at)
        self.nbytes.append(end - at)
        steps = 0
        for first, last in steps_of(data, at, end) if self.has_steps else [(at, end)]:
            steps += 1
            self._add_values(data, *lists_of(data, first, last))
        self.steps.add(steps)
        self.all_steps += steps
        if self.is_image:
            self._add_image(data, begin, *lists_of(data, at, end))

    def add_extent(self, record: int, begin: int, nbytes: int) -> None:
        """Take in a whole record as one value, by its offset in the file."""
        self.kind, self.is_text = BYTES, False
        self.records.append(record)
        self.begins.append(begin)
        self.nbytes.append(nbytes)
        self.count.add(1)
        self.steps.add(0)
        self.width.add(nbytes)
        self.total += 1
        self.stored += nbytes

    def _add_image(
        self, data: bytes, begin: int, kind: int, lists: list[tuple[int, int, int]]
    ) -> None:
        """Take in the one value of a feature of images; any other number of values ends that."""
        self.is_image = kind == BYTES and len(lists) == 1
        if self.is_image:
            _, first, last = lists[0]
            self.is_png = self.is_png and data.startswith(PNG, first)
            self.image_begins.append(begin + first)
            self.image_nbytes.append(last - first)

    def _add_values(self, data: bytes, kind: int, lists: list[tuple[int, int, int]]) -> None:
        """Take in the values of a record, or of one step of it."""
        self.mixed |= bool(kind) and self.kind not in (0, kind)
        self.kind = self.kind or kind
        count = count_of(data, kind, lists) if kind else 0
        self.count.add(count)
        self.total += count
        if kind != BYTES:
            return
        for _, first, last in lists:
            self.width.add(last - first)
            self.stored += last - first
            self.is_text = self.is_text and _is_text(data[first:last])

    def is_regular(self, records: int) -> bool:
        """True if every record has the feature, with the same number of values."""
        return len(self.records) == records and self.count.is_one and self.steps.is_one

    @property
    def is_padded(self) -> bool:
        """True for texts that take little more bytes if all are as long as the longest."""
        room = max(SMALL_BYTES, PADDING * self.stored)
        return self.is_text and self.total * self.width.high <= room


def _is_text(raw: bytes) -> bool:
    """True for UTF-8 without zeros."""
    if 0 in raw:
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
