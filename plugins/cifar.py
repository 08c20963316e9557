"""CIFAR-10 and CIFAR-100 in their binary version: labels and images, read and write.

Specification: "Binary version" on the page of the data sets (www.cs.toronto.edu/~kriz/cifar.html).
Compared with: NumPy, after the words of that page, in the tests.

Layout: records without a header::

    CIFAR-10   1 byte label (0-9), 3072 bytes image
    CIFAR-100  1 byte coarse label (0-19), 1 byte fine label (0-99), 3072 bytes image

An image is 32 × 32 pixels, row by row: all of red, then green, then blue.

Mapping: the arrays ``labels`` (N), or ``coarse_labels`` and ``fine_labels``, and ``images``
(N, 3, 32, 32), uint8, row-major. ``--axes 0,2,3,1`` puts the colours of ``FILE#images`` last. The
files of the data sets are known by their names (``data_batch_1.bin``, ``test.bin``) and labels;
others by ``--from cifar``, with ``--in-opt classes=10`` or ``100`` where both would fit.

Writes: a bundle of exactly these arrays, all of one length N (the name ends with ``.cifar.bin``, or
``--to cifar``). Other arrays, types and shapes are refused; metadata is lost (named as equivalent).

Refused: the pickled version of the data sets, since reading it would run whatever it contains; the
binary version is on the same page.
"""

from __future__ import annotations

import re
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from raconvert.arrays.memory import check_memory
from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsafe
from raconvert.plugin import (
    MAYBE,
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Option,
    Plan,
    Source,
    element,
    equivalent,
    facts_of,
    file_fits,
    refused,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from raconvert.plugin import Target

    Values = np.ndarray[Any, Any]


# The records of both data sets, and how their files are known ------------------------------------


BYTE = element("uint", 1)
IMAGE = (3, 32, 32)
IMAGE_BYTES = 3072


class Layout(Record):
    """Layout of a record: the labels before the image, the count of each, and its bytes."""

    labels: tuple[str, ...]
    limits: tuple[int, ...]
    nbytes: int


LAYOUTS = {
    "10": Layout(("labels",), (10,), 1 + IMAGE_BYTES),
    "100": Layout(("coarse_labels", "fine_labels"), (20, 100), 2 + IMAGE_BYTES),
}
_NAME = re.compile(r"(data_batch_[0-9]+|test_batch|train|test|.*\.cifar)\.bin")
_PICKLED_NAME = re.compile(r"data_batch_[0-9]+|test_batch|train|test|meta|batches\.meta")
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_RECORDS_CHECKED = 64  # the first records, whose labels decide the data set

SAMPLE = bytes([3]) + bytes(range(256)) * 12


def known_name(name: str) -> bool:
    """True for the names that the files of the data sets have."""
    return _NAME.fullmatch(name.lower()) is not None


def is_pickled(source: Source) -> bool:
    """True for a file of the pickled version, by its first bytes and its name or its keys."""
    if not _PICKLE.match(source.head):
        return False
    keys = (b"batch_label", b"fine_labels")
    return _PICKLED_NAME.fullmatch(source.name) is not None or any(k in source.head for k in keys)


def layout_of(source: Source) -> Layout | None:
    """Return the layout that the length and the labels of a file allow; None unless just one."""
    fitting = [layout for layout in LAYOUTS.values() if _matches(source, layout)]
    return fitting[0] if len(fitting) == 1 else None


def _matches(source: Source, layout: Layout) -> bool:
    """True if a file is whole records, and the labels of its first ones and the last are valid."""
    if not source.size or source.size % layout.nbytes:
        return False
    count = source.size // layout.nbytes
    for record in {*range(min(count, _RECORDS_CHECKED)), count - 1}:
        labels = source.read_at(record * layout.nbytes, len(layout.labels))
        if any(label >= limit for label, limit in zip(labels, layout.limits, strict=True)):
            return False
    return True


# Whether arrays are the labels and images of CIFAR, and the file itself --------------------------


RECORDS_AT_ONCE = 256


def plan(bundle: Bundle) -> Plan:
    """Plan records of labels and images; other arrays do not fit."""
    layout = _layout(bundle)
    fits: list[Fit] = []
    for array in bundle.arrays:
        if layout is None:
            names = " or ".join(", ".join(_names(known)) for known in LAYOUTS.values())
            fits.append(refused(array.name, "names", f"CIFAR has the arrays {names}, no others"))
        else:
            fits += _fits(array, bundle.arrays[0])
        if array.described and array.meta:
            reason = f"CIFAR has no place for it: {', '.join(facts_of(array))}"
            fits.append(equivalent(array.name, "metadata", reason))
    fits += file_fits(bundle, "CIFAR")
    return Plan(fits, lambda target: _write(bundle, layout, target), names=bundle.names)


def _names(layout: Layout) -> list[str]:
    """Return the names of the arrays of a data set."""
    return [*layout.labels, "images"]


def _layout(bundle: Bundle) -> Layout | None:
    """Return the layout whose arrays a bundle has, all of them and no others."""
    names = sorted(bundle.names)
    layouts = (layout for layout in LAYOUTS.values() if sorted(_names(layout)) == names)
    return next(layouts, None)


def _fits(array: Array, first: Array) -> list[Fit]:
    """List what of an array CIFAR refuses; `first` gives the number of records."""
    fits = []
    inner = IMAGE if array.name == "images" else ()
    if array.element != BYTE:
        reason = f"CIFAR has no {type_name(array.element)}"
        flag = None if array.element.kind == "user" else "--dtype uint8"
        fits.append(refused(array.name, "type", reason, flag))
    count = first.dims[-1] if first.dims else 0
    if not count or array.dims != (*inner[::-1], count):
        shape = ", ".join(["N", *map(str, inner)])
        reason = f"CIFAR has {array.name} of shape ({shape}), the same N for all"
        fits.append(refused(array.name, "shape", reason))
    return fits


def _write(bundle: Bundle, layout: Layout | None, target: Target) -> None:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, runs
    from raconvert.files.copy import write_all
    from raconvert.files.paths import write_failed

    if layout is None:
        return
    most = block_bytes(target.max_memory)
    columns = [runs(bundle.get(name), RECORDS_AT_ONCE, most) for name in layout.labels]
    images = runs(bundle.get("images"), RECORDS_AT_ONCE * IMAGE_BYTES, most)
    file = target.open()
    try:
        for pixels, *labels in zip(images, *columns, strict=True):
            count = pixels.size // IMAGE_BYTES
            records = np.empty((count, layout.nbytes), np.uint8)
            for index, column in enumerate(labels):
                records[:, index] = column
            records[:, len(labels) :] = pixels.reshape(count, IMAGE_BYTES)
            write_all(file, [records.reshape(-1)])
    except OSError as error:
        raise write_failed(target.path, error) from error


__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="cifar",
    title="CIFAR-10/100 (binary)",
    suffixes=(".cifar.bin",),
    many=True,
    read_options=(Option("classes", "auto", ("auto", "10", "100"), "which of the two data sets"),),
    samples={"one.cifar.bin": SAMPLE},
    spec="https://www.cs.toronto.edu/~kriz/cifar.html",
    losses="only labels (N) and images (N, 3, 32, 32) of uint8; no metadata",
)


def sniff(source: Source) -> int:
    """Return SURE for whole records with valid labels in a file with a name of the data sets.

    MAYBE under any other name. SURE also for the pickled files of CIFAR, which `read` refuses.
    """
    if is_pickled(source):
        return SURE
    if layout_of(source) is None:
        return NO
    return SURE if known_name(source.name) else MAYBE


def read(source: Source, *, classes: str = "auto") -> Bundle:
    """Read labels and images lazily, in C order.

    Raises `Corrupt` for other sizes, and `Unsafe` for the pickled version.
    """
    if is_pickled(source):
        raise Unsafe(
            "is the pickled version of CIFAR; reading it would run whatever it contains",
            path=source.path, where="byte 0",
            remedy="no option allows this; the same page has the binary version: "
            "cifar-10-binary.tar.gz, cifar-100-binary.tar.gz",
        )  # fmt: skip
    layout = layout_of(source) if classes == "auto" else LAYOUTS[classes]
    if layout is None or not source.size or source.size % layout.nbytes:
        sizes = " or ".join(str(layout.nbytes) for layout in LAYOUTS.values())
        raise Corrupt(
            "is not a whole number of CIFAR records", path=source.path,
            expected=f"records of {sizes} bytes, labels below 10, or 20 and 100",
            got=f"{source.size} bytes",
        )  # fmt: skip
    count = source.size // layout.nbytes
    columns = [(name, offset, ()) for offset, name in enumerate(layout.labels)]
    return Bundle([
        Array(BYTE, (*shape[::-1], count), name=name, index_order="C",
              data=partial(Column, source, layout, offset, shape))
        for name, offset, shape in [*columns, ("images", len(layout.labels), IMAGE)]
    ])  # fmt: skip


# An array source over one column of the records --------------------------------------------------


READ_BYTES = 1 << 20  # bytes of records that are read at once


class Column:
    """The labels, or the images, of all records: the bytes at `offset` in each, of this shape."""

    def __init__(self, source: Source, layout: Layout, offset: int, shape: tuple[int, ...]) -> None:
        import numpy as np

        self.shape: tuple[int, ...] = (source.size // layout.nbytes, *shape)
        self.dtype = np.dtype(np.uint8)
        self._source, self._record, self._offset = source, layout.nbytes, offset

    def stream(self, max_bytes: int) -> Iterator[Values]:
        """Yield pieces in stored order, at most `max_bytes` each."""
        for start, stop in self._pieces(0, self.shape[0]):
            values = self._records(start, stop).reshape(-1)
            step = max(1, max_bytes)
            for first in range(0, values.size, step):
                yield values[first : first + step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        import numpy as np

        return np.array(self[...], dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        import numpy as np

        from raconvert.arrays.regions import full_key, range_of

        first, *rest = full_key(key, len(self.shape))
        start, stop, inside = range_of(first, self.shape[0])
        inner = self.shape[1:]
        check_memory(
            (stop - start) * prod(inner), self._source.max_memory, "this part of the array"
        )
        out = np.empty((stop - start, *inner), self.dtype)
        for begin, end in self._pieces(start, stop):
            out[begin - start : end - start] = self._records(begin, end)
        return out[(inside, *rest)]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the end of as many records as are read at once."""
        step = max(1, READ_BYTES // self._record)
        for begin in range(start, stop, step):
            yield begin, min(begin + step, stop)

    def _records(self, start: int, stop: int) -> Values:
        """Return the elements of these records, the records along the first axis."""
        import numpy as np

        count, record = stop - start, self._record
        raw = self._source.read_exact(start * record, count * record, "the records")
        width = prod(self.shape[1:])
        rows = np.frombuffer(raw, np.uint8).reshape(count, record)
        return rows[:, self._offset : self._offset + width].reshape(count, *self.shape[1:])
