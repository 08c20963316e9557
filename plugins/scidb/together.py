"""The columns of records of one width, decoded in as few passes over their file as memory allows.

A pass for each column would read all records again and again. So the pass for one column also
decodes those behind it that are still in use: all columns of an open bundle, one of ``FILE#name``.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from weakref import ref

import numpy as np

from raconvert.arrays.memory import check_memory
from raconvert.files.source import DEFAULT_MAX_MEMORY

from .record import Field
from .scan import read_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.files.source import Source

    Values = np.ndarray[Any, Any]

READ_BYTES = 1 << 20  # a block of records of one width: it stays in the cache of a processor


class FileField(Field):
    """A field of all records of a file; `watch` is called with all values that are read.

    `ahead` are its values in the order of the file, shape (records, *items), if a pass for another
    column decoded them; `reserved` is the memory in bytes for them, from before they are decoded.
    """

    def __init__(
        self, field: Field, together: Together, watch: Callable[[Values], object] | None = None
    ) -> None:
        super().__init__(field.width, field.offset, field.dtype, field.items)
        self.together = together
        self.source = together.source
        self.watch = watch
        self.ahead: Values | None = None
        self.reserved = 0
        together.join(self)

    def records(self) -> Iterator[Values]:
        """Yield the values of all records in blocks, flat, each valid until the next."""
        for piece in self.together.records(self):
            if self.watch is not None:
                self.watch(piece)
            yield piece.reshape(-1)


class Together:
    """The `count` records of `width` bytes in a file, and the fields of them that are in use.

    Values decoded ahead take at most a quarter of `max_memory`, and of its default.
    """

    def __init__(self, source: Source, width: int, count: int) -> None:
        self.source = source
        self.width = width
        self.count = count
        self._fields: list[ref[FileField]] = []  # in order; dead once their arrays are
        self._room = min(source.max_memory, DEFAULT_MAX_MEMORY) // 4
        self._lock = Lock()  # arrays of one bundle may be read in several threads

    def join(self, field: FileField) -> None:
        """Let this field be decoded in the passes for fields that joined before."""
        self._fields.append(ref(field))

    def rows(self, fields: Sequence[Field]) -> Iterator[tuple[int, list[Values]]]:
        """Yield, block by block, the first record and views of these fields, shape (n, *items).

        One pass over the file; the views are valid until the next block.
        """
        begin = min(field.offset for field in fields)
        end = max(field.offset + field.nbytes for field in fields)
        check_memory(end - begin, self.source.max_memory, f"'{self.source.path}': one value")
        step = min(self.count, max(1, READ_BYTES // self.width))
        # From the first field in one record to the last in another: wide ones are not read whole.
        buffer = np.empty(max(0, step - 1) * self.width + end - begin, np.uint8)
        views = [
            Field(self.width, field.offset - begin, field.dtype, field.items) for field in fields
        ]
        for first in range(0, self.count, step or 1):
            count = min(step, self.count - first)
            data = memoryview(buffer)[: (count - 1) * self.width + end - begin]
            with self.source.open() as file:  # many columns at once would be many open files
                read_into(file, first * self.width + begin, data, self.source.path)
            yield first, [view.rows(buffer, count) for view in views]

    def records(self, field: FileField) -> Iterator[Values]:
        """Yield the values of a field in blocks, shape (n, *items), each valid until the next."""
        values = self._taken(field)
        if values is None:
            yield from self._decoded(field, self._others(field))
            return
        try:
            step = max(1, READ_BYTES // field.nbytes)
            for first in range(0, self.count, step):
                yield values[first : first + step]
        finally:
            field.reserved = 0

    @contextmanager
    def whole(self, field: FileField) -> Iterator[Values | None]:
        """All values of a field in the order of the file, shape (count, *items), in a block.

        None if they do not fit, or no other column is decoded with them.
        """
        values = self._taken(field)
        others = self._others(field, whole=True) if values is None else []
        if values is None and not others:
            yield None
            return
        try:
            yield self._gathered(field, others) if values is None else values
        finally:
            field.reserved = 0

    def _gathered(self, field: FileField, others: list[FileField]) -> Values:
        values = np.empty((self.count, *field.items), field.dtype)
        first = 0
        for piece in self._decoded(field, others):
            values[first : first + len(piece)] = piece
            first += len(piece)
        return values

    def _taken(self, field: FileField) -> Values | None:
        """Take the values that were decoded ahead for a field; None if they were not."""
        with self._lock:
            values, field.ahead = field.ahead, None
        if values is not None:
            try:
                self.source.open().close()  # raises `Changed` if it is another file by now
            except BaseException:
                field.reserved = 0
                raise
        return values

    def _decoded(self, field: FileField, others: list[FileField]) -> Iterator[Values]:
        """Yield the values of a field; those of the others are decoded ahead in the same pass."""
        try:
            ahead = [np.empty((self.count, *other.items), other.dtype) for other in others]
            piece = np.empty((min(self.count, max(1, READ_BYTES // self.width)), *field.items),
                             field.dtype)  # fmt: skip
            for first, (own, *more) in self.rows([field, *others]):
                for values, decoded in zip(ahead, more, strict=True):
                    values[first : first + len(decoded)] = decoded
                piece[: len(own)] = own
                yield piece[: len(own)]
            for other, values in zip(others, ahead, strict=True):
                other.ahead = values
        finally:
            for other in others:
                if other.ahead is None:
                    other.reserved = 0

    def _others(self, field: FileField, *, whole: bool = False) -> list[FileField]:
        """The fields behind this one that are not decoded yet and fit into memory; it is reserved.

        If all values of this field are needed at once (`whole`), memory for them comes first; it is
        reserved only if there are other fields.
        """
        fields: list[FileField] = []
        if self.width > READ_BYTES:  # most of such a record is skipped
            return fields
        with self._lock:
            alive = [other for other in (field() for field in self._fields) if other is not None]
            room = self._room - sum(other.reserved for other in alive)
            own = self.count * field.nbytes if whole else 0
            if own > room or (whole and field.reserved):
                return fields
            room -= own
            for other in alive[alive.index(field) + 1 :]:
                nbytes = self.count * other.nbytes
                if not other.reserved and 0 < nbytes <= room:
                    other.reserved = nbytes
                    room -= nbytes
                    fields.append(other)
            if whole and fields:
                field.reserved = own
        return fields
