"""Samples of signals: in each record a stretch, read where it is asked for.

Stretches that lie close together are read with what is between them, others one by one.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from raconvert.errors import changed
from raconvert.files.copy import read_at
from raconvert.files.paths import close_file, is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy as np

    from raconvert.files.source import Source

    from .header import Header, Signal

    Values = np.ndarray[Any, Any]

SPAN_BYTES = 1 << 20  # bytes that are read at once
NEAR = 8  # a record is read whole if it has at most so many times the bytes of the signal
PAGE_BYTES = 4096  # or if it has at most so many bytes


class Stretches:
    """The stretches of one signal in the records of a file."""

    def __init__(self, source: Source, header: Header, signal: Signal) -> None:
        self.path = source.path
        self.nbytes = header.width * signal.samples
        self.apart = header.record_bytes
        span = max(0, header.records - 1) * self.apart + self.nbytes
        self.extent = source.extent(header.begin + signal.offset, span if header.records else 0)
        near = self.apart <= max(PAGE_BYTES, NEAR * self.nbytes) or is_remote(source.path)
        self.at_once = max(1, SPAN_BYTES // self.apart) if near else 1

    def read(self, first: int, count: int) -> Values:
        """Return the bytes of the stretches of `count` records as an array (record, byte)."""
        import numpy as np

        out = np.empty((count, self.nbytes), np.uint8)
        file = self.extent.open()
        try:
            for start in range(0, count, self.at_once):
                some = min(self.at_once, count - start)
                offset = self.extent.offset + (first + start) * self.apart
                if some == 1:
                    self._fill(file, memoryview(out[start]), offset)
                    continue
                buffer = bytearray((some - 1) * self.apart + self.nbytes)
                self._fill(file, memoryview(buffer), offset)
                out[start : start + some] = np.ndarray(
                    (some, self.nbytes), np.uint8, buffer, 0, (self.apart, 1)
                )
        finally:
            close_file(file)
        return out

    def _fill(self, file: Any, view: memoryview, offset: int) -> None:
        """Read as many bytes as the view has; raises `changed` if the file became shorter."""
        done = 0
        while done < len(view):
            count = read_at(file, view[done:], offset + done)
            if not count:
                raise changed(self.path, shorter=True)
            done += count


def chunks(source: Source, header: Header, signal: Signal) -> Iterator[bytes]:
    """Yield the bytes of a signal in each record."""
    stretches = Stretches(source, header, signal)
    step = max(1, SPAN_BYTES // max(1, stretches.nbytes))
    for first in range(0, header.records, step):
        for stretch in stretches.read(first, min(step, header.records - first)):
            yield stretch.tobytes()


class Samples:
    """Array source of signals of one length: (channel, record, time) or less.

    Without `by_record` the samples of all records are one axis; one signal has no axis of channels
    unless `by_channel`.
    """

    by_regions = True

    def __init__(
        self, source: Source, header: Header, signals: Sequence[Signal], *, by_channel: bool,
        by_record: bool,
    ) -> None:  # fmt: skip
        import numpy as np

        self._stretches = [Stretches(source, header, signal) for signal in signals]
        self._samples = signals[0].samples
        self._total = header.records * self._samples
        self._width = header.width
        self._max_memory = source.max_memory
        self._what = f"'{source.path}': signal '{signals[0].label}'"
        inner = (header.records, self._samples) if by_record else (self._total,)
        self.shape: tuple[int, ...] = (len(signals), *inner) if by_channel else inner
        self.dtype: np.dtype[Any] = np.dtype("<i2" if header.width == 2 else "<i4")
        self._inner = inner

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield samples in stored order, in pieces of at most about `max_bytes`."""
        step = max(1, max_bytes // self.dtype.itemsize)
        for stretches in self._stretches:
            for first in range(0, self._total, step):
                yield self._run(stretches, first, min(step, self._total - first))

    def _run(self, stretches: Stretches, first: int, count: int) -> Values:
        """Return `count` samples of one signal that follow each other."""
        record = first // self._samples
        last = -(-(first + count) // self._samples)
        raw = stretches.read(record, last - record).reshape(-1)
        begin = first - record * self._samples
        return _numbers(raw[begin * self._width : (begin + count) * self._width], self._width)

    def __getitem__(self, key: Any) -> Any:
        from raconvert.arrays.regions import chosen

        return chosen(self.shape, self.dtype, key, self._region)

    def _region(self, key: tuple[slice, ...]) -> Values:
        """Return the samples of slices with steps above 0."""
        import numpy as np

        from raconvert.arrays.memory import check_memory

        ranges = [range(n)[part] for n, part in zip(self.shape, key, strict=True)]
        nbytes = prod(map(len, ranges)) * self.dtype.itemsize
        check_memory(nbytes, self._max_memory, f"this part of {self._what}")
        out = np.empty([*map(len, ranges)], self.dtype)
        if not out.size:
            return out
        channels = ranges[0] if len(self.shape) > len(self._inner) else range(1)
        rows = out.reshape(len(channels), *out.shape[len(out.shape) - len(self._inner) :])
        for row, channel in zip(rows, channels, strict=True):
            if len(self._inner) == 1:  # the samples of all records are one axis
                self._pick(row, self._stretches[channel], ranges[-1], 0)
                continue
            if ranges[-2].step == 1 and ranges[-1] == range(self._samples):  # whole records
                run = self._run(self._stretches[channel], ranges[-2][0] * self._samples, row.size)
                row[...] = run.reshape(row.shape)
                continue
            for line, record in zip(row, ranges[-2], strict=True):
                self._pick(line, self._stretches[channel], ranges[-1], record * self._samples)
        return out

    def _pick(self, out: Values, stretches: Stretches, picked: range, base: int) -> None:
        """Fill `out` with the samples of a range of indices behind `base`, in pieces."""
        step = max(1, SPAN_BYTES // self.dtype.itemsize // picked.step)
        for start in range(0, len(picked), step):
            some = picked[start : start + step]
            run = self._run(stretches, base + some[0], some[-1] - some[0] + 1)
            out[start : start + len(some)] = run[:: picked.step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)


def _numbers(raw: Values, width: int) -> Values:
    """Return the integers in bytes, little-endian; those of three bytes as int32."""
    import numpy as np

    if width == 2:
        return raw.view("<i2")
    out = np.zeros((len(raw) // 3, 4), np.uint8)
    out[:, 1:] = raw.reshape(-1, 3)
    numbers: Values = out.view("<i4").reshape(-1)
    return np.right_shift(numbers, 8, out=numbers)
