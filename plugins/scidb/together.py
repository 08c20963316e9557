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
    """A field of all records of a file; `watch` is shown all that is read.

    `kept` are its values in the order of the file, shape (records, *items), if a pass for another
    column decoded them; `held` is the memory in bytes that they take, also while they are made.
    """

    def __init__(
        self, field: Field, together: Together, watch: Callable[[Values], object] | None = None
    ) -> None:
        super().__init__(field.width, field.offset, field.dtype, field.items)
        self.together = together
        self.source = together.source
        self.watch = watch
        self.kept: Values | None = None
        self.held = 0
        together.join(self)

    def records(self) -> Iterator[Values]:
        """Yield the values of all records in blocks, flat, each valid until the next."""
        for piece in self.together.records(self):
            if self.watch is not None:
                self.watch(piece)
            yield piece.reshape(-1)


class Together:
    """The `count` records of `width` bytes in a file, and the fields of them that are in use.

    What is decoded ahead takes at most a quarter of `max_memory`, and of its default.
    """

    def __init__(self, source: Source, width: int, count: int) -> None:
        self.source = source
        self.width = width
        self.count = count
        self._fields: list[ref[FileField]] = []  # in order; gone with the arrays they are of
        self._room = min(source.max_memory, DEFAULT_MAX_MEMORY) // 4
        self._lock = Lock()  # arrays of one bundle may be read in several threads

    def join(self, field: FileField) -> None:
        """Decode this field with others that came before."""
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
        kept = self._taken(field)
        if kept is None:
            yield from self._decoded(field, self._others(field))
            return
        try:
            step = max(1, READ_BYTES // field.nbytes)
            for first in range(0, self.count, step):
                yield kept[first : first + step]
        finally:
            field.held = 0

    @contextmanager
    def whole(self, field: FileField) -> Iterator[Values | None]:
        """The values of a field in the order of the file, shape (count, *items), for a while.

        None if they do not fit, or no other column is decoded with them.
        """
        kept = self._taken(field)
        others = self._others(field, whole=True) if kept is None else []
        if kept is None and not others:
            yield None
            return
        try:
            yield self._gathered(field, others) if kept is None else kept
        finally:
            field.held = 0

    def _gathered(self, field: FileField, others: list[FileField]) -> Values:
        values = np.empty((self.count, *field.items), field.dtype)
        first = 0
        for piece in self._decoded(field, others):
            values[first : first + len(piece)] = piece
            first += len(piece)
        return values

    def _taken(self, field: FileField) -> Values | None:
        """Return and release the values that were decoded ahead for a field; None if none were."""
        with self._lock:
            kept, field.kept = field.kept, None
        if kept is not None:
            try:
                self.source.open().close()  # it is still the file that was read
            except BaseException:
                field.held = 0
                raise
        return kept

    def _decoded(self, field: FileField, others: list[FileField]) -> Iterator[Values]:
        """Yield the values of a field while those of the others are put aside."""
        try:
            kept = [np.empty((self.count, *other.items), other.dtype) for other in others]
            piece = np.empty((min(self.count, max(1, READ_BYTES // self.width)), *field.items),
                             field.dtype)  # fmt: skip
            for first, (own, *more) in self.rows([field, *others]):
                for values, decoded in zip(kept, more, strict=True):
                    values[first : first + len(decoded)] = decoded
                piece[: len(own)] = own
                yield piece[: len(own)]
            for other, values in zip(others, kept, strict=True):
                other.kept = values
        finally:
            for other in others:
                if other.kept is None:
                    other.held = 0

    def _others(self, field: FileField, *, whole: bool = False) -> list[FileField]:
        """The fields behind this one that nobody has decoded yet, and that have room.

        If the `whole` field needs room too, it gets some first, but only to be with others.
        """
        fields: list[FileField] = []
        if self.width > READ_BYTES:  # most of such records is jumped over
            return fields
        with self._lock:
            alive = [other for other in (one() for one in self._fields) if other is not None]
            room = self._room - sum(other.held for other in alive)
            own = self.count * field.nbytes if whole else 0
            if own > room or (whole and field.held):
                return fields
            room -= own
            for other in alive[alive.index(field) + 1 :]:
                nbytes = self.count * other.nbytes
                if not other.held and 0 < nbytes <= room:
                    other.held = nbytes
                    room -= nbytes
                    fields.append(other)
            if whole and fields:
                field.held = own
        return fields
