"""Writing an object of R: XDR, version 3, front to back, in memory that does not grow with it."""

from __future__ import annotations

import struct
from zlib import DEFLATED, compressobj

import numpy as np

from raconvert.arrays.blocks import block_bytes, blocks, index_of
from raconvert.errors import WouldLose
from raconvert.files.copy import write_all
from raconvert.files.inflate import GZIP_WBITS
from raconvert.files.paths import write_failed
from raconvert.plugin import refused

from .plan import Box, Leaf, classes_in, is_text, labels_of, name_of, vector_type
from .tables import (
    ASCII_BIT,
    BYTES_BIT,
    CHAR,
    CPLX,
    DATE,
    FACTOR,
    FRAME,
    HAS_ATTRIBUTES,
    HAS_TAG,
    INT,
    INTEGER64,
    IS_OBJECT,
    LGL,
    LIST,
    MOST_EXACT,
    NA_INTEGER,
    NA_REAL_BITS,
    NIL_VALUE,
    NO_NULLS,
    RAW,
    REAL,
    REF,
    ROW_NAMES,
    STR,
    SYM,
    TIME,
    UTF8_BIT,
    VEC,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.plugin import Target

    Values = np.ndarray[Any, Any]

HEADER = b"X\n" + struct.pack(">iii", 3, 0x00040000, 0x00030500) + struct.pack(">i", 5) + b"UTF-8"
LEVEL = 6  # of gzip, as in R
BUFFER_BYTES = 1 << 16
STORED = {LGL: ">i4", INT: ">i4", REAL: ">f8", CPLX: ">c16", RAW: "u1"}
LONGEST_SHORT = (1 << 31) - 1
PER_SECOND = {"D": 1, "s": 1, "ms": 1000, "us": 1_000_000}


def _encoder(compress: str) -> Any:
    """Return the compressor of an option; None without one."""
    if compress == "bzip2":
        from bz2 import BZ2Compressor

        return BZ2Compressor()
    if compress == "xz":
        from lzma import LZMACompressor

        return LZMACompressor()
    return compressobj(LEVEL, DEFLATED, GZIP_WBITS) if compress == "gzip" else None


class Sink:
    """Writer of the serialization, through a compressor if there is one; it numbers symbols."""

    def __init__(self, file: Any, compress: str) -> None:
        self._file = file
        self._encoder = _encoder(compress)
        self._parts: list[bytes] = []
        self._pending = 0
        self._symbols: dict[str, int] = {}
        self._numbered = 0  # symbols, and other objects that references name by number

    def put(self, data: Any) -> None:
        """Write bytes."""
        self._parts.append(data)
        self._pending += len(data)
        if self._pending >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Compress and write the bytes that were put."""
        data, self._parts, self._pending = b"".join(self._parts), [], 0
        write_all(self._file, [self._encoder.compress(data) if self._encoder else data])

    def close(self) -> None:
        """Write the end of the compressed data."""
        self.flush()
        if self._encoder:
            write_all(self._file, [self._encoder.flush()])

    def integers(self, *numbers: int) -> None:
        """Write integers."""
        self.put(struct.pack(f">{len(numbers)}i", *numbers))

    def length(self, count: int) -> None:
        """Write the number of elements of a vector."""
        if count <= LONGEST_SHORT:
            self.integers(count)
        else:
            self.put(struct.pack(">iII", -1, count >> 32, count & 0xFFFFFFFF))

    def string(self, text: str | bytes | None) -> None:
        """Write a string: ASCII, UTF-8, bytes, or NA."""
        if text is None:
            self.integers(CHAR, -1)
            return
        raw = text.encode() if isinstance(text, str) else text
        mark = UTF8_BIT if isinstance(text, str) else BYTES_BIT
        self.integers(CHAR | (ASCII_BIT if raw.isascii() else mark), len(raw))
        self.put(raw)

    def symbol(self, name: str) -> None:
        """Write a symbol, or a reference to one that was written before."""
        if name in self._symbols:
            self.integers(self._symbols[name] << 8 | REF)
            return
        self.number(name)
        self.integers(SYM)
        self.string(name)

    def number(self, name: str | None) -> int:
        """Count a symbol, or with None another object, that is written; return its number."""
        self._numbered += 1
        if name is not None:
            self._symbols.setdefault(name, self._numbered)
        return self._numbered

    def tagged(self, name: str) -> None:
        """Begin a member of a pairlist."""
        self.integers(LIST | HAS_TAG)
        self.symbol(name)

    def end(self) -> None:
        """End a pairlist."""
        self.integers(NIL_VALUE)

    def value(self, value: Any) -> None:
        """Write a plain value as a vector."""
        kind = vector_type(value)
        if kind == RAW:
            self.integers(RAW, len(value))
            self.put(value)
            return
        items = list(value) if isinstance(value, list | tuple) else [value]
        self.integers(kind if kind is not None else LGL, len(items))
        for item in items:
            if kind == STR:
                self.string(item)
            elif kind != REAL:
                self.integers(NA_INTEGER if item is None else int(item))
            elif item is None:
                self.put(struct.pack(">Q", NA_REAL_BITS))
            else:
                self.put(struct.pack(">d", item))

    def texts(self, texts: Any) -> None:
        """Write a vector of strings."""
        self.integers(STR, len(texts))
        for text in texts:
            self.string(text)


def write_object(target: Target, root: Leaf | Box, compress: str) -> None:
    """Write the file. Raises `WouldLose` for a value that R lacks."""
    file = target.open()
    try:
        sink = Sink(file, compress)
        sink.put(HEADER)
        _object(sink, target, root)
        sink.close()
    except OSError as error:
        raise write_failed(target.path, error) from error


def _object(sink: Sink, target: Target, member: Leaf | Box) -> None:
    """Write a list or a vector."""
    if isinstance(member, Box):
        _list(sink, target, member)
    else:
        put_vector(sink, target, member)


# --- lists ----------------------------------------------------------------------------------------


def _list(sink: Sink, target: Target, box: Box) -> None:
    """Write a list with its names and attributes, as a data frame if it is one."""
    members = dict(box.members)
    rows = members.pop(ROW_NAMES, None) if box.is_frame else None
    without_class = box.own.get("S4") or (FRAME in box.classes and not box.is_frame)
    classes = [] if without_class else box.classes
    unnamed = bool(box.own.get("unnamed")) and all(name.isdecimal() for name in members)
    dims = box.dims(len(members))
    has = (bool(members) and not unnamed) or classes or box.attributes or box.is_frame or dims
    flags = VEC | (IS_OBJECT if classes else 0) | (HAS_ATTRIBUTES if has else 0)
    sink.integers(flags, len(members))
    for member in members.values():
        _object(sink, target, member)
    if not has:
        return
    if members and not unnamed:
        sink.tagged("names")
        sink.texts([_old_name(box, name) for name in members])
    attributes = {"dim": dims, **box.attributes} if dims else box.attributes
    for name, value in attributes.items():
        sink.tagged(name)
        sink.value(value)
    if classes:
        sink.tagged("class")
        sink.texts(classes)
    if box.is_frame:
        sink.tagged(ROW_NAMES)
        if isinstance(rows, Leaf):
            put_vector(sink, target, rows)
        else:
            sink.value([None, -next(iter(box.rows), 0)])
    sink.end()


def _old_name(box: Box, name: str) -> str:
    """Return the recorded name of a member, which a path could not have; else its name."""
    recorded = box.own.get("names")
    old = recorded.get(name) if isinstance(recorded, dict) else None
    return old if isinstance(old, str) and is_text(old) else name


# --- vectors --------------------------------------------------------------------------------------


def put_vector(sink: Sink, target: Target, leaf: Leaf) -> None:
    """Write a vector and its attributes. Raises `WouldLose` for a value that R lacks."""
    attributes = _attributes(leaf)
    is_object = "class" in attributes
    has = attributes or leaf.nulls is not None or _dimnames(leaf) is not None
    sink.integers(leaf.kind | (IS_OBJECT if is_object else 0) | (HAS_ATTRIBUTES if has else 0))
    sink.length(leaf.array.count)
    any_missing = _elements(sink, target, leaf)
    if not has:
        return
    _write_dimnames(sink, leaf)
    for name, value in attributes.items():
        sink.tagged(name)
        sink.value(value)
    if leaf.nulls is not None and not any_missing:
        sink.tagged(NO_NULLS)
        sink.value(value=False)
    sink.end()


def _attributes(leaf: Leaf) -> dict[str, Any]:
    """Return the attributes of a vector but for the names of its elements."""
    array, meta = leaf.array, leaf.array.meta
    attributes: dict[str, Any] = {}
    if array.ndim > 1 or (array.ndim and _is_array(leaf)):
        attributes["dim"] = list(array.dims)
    if meta.units and is_text(meta.units):
        attributes["units"] = meta.units
    if meta.description and is_text(meta.description):
        attributes["comment"] = meta.description
    attributes |= {k: v for k, v in leaf.attributes.items() if k not in attributes}
    if leaf.levels:
        attributes["levels"] = leaf.levels
    if classes := _classes(leaf):
        attributes["class"] = classes
    return attributes


def _is_array(leaf: Leaf) -> bool:
    """True if one axis is written as an array with dims, not as a plain vector."""
    return bool(leaf.own.get("dim")) or bool(leaf.array.axes and name_of(leaf.array.axes[0]))


def _classes(leaf: Leaf) -> list[str]:
    """Return the recorded classes of a vector, if they fit its type; else the usual ones."""
    recorded = classes_in(leaf.own)
    element = leaf.array.element
    if isinstance(element.descr, str) and element.descr[1:3] == "M8":
        usual = [DATE] if element.descr.endswith("[D]") else [TIME, "POSIXt"]
        return recorded if usual[0] in recorded else usual
    if leaf.own.get("levels") is not None and leaf.kind == INT and element.kind == "user":
        return recorded if FACTOR in recorded else [FACTOR]
    if INTEGER64 in recorded and element.kind != "int":
        return [name for name in recorded if name != INTEGER64]
    return [name for name in recorded if name not in (FACTOR, DATE, TIME, "POSIXt")]


def _dimnames(leaf: Leaf) -> list[list[str | None] | None] | None:
    """Return the labels of all axes as texts; None if no axis has labels or a name."""
    axes = leaf.array.axes
    labels = [*map(labels_of, axes)]
    had_dimnames = leaf.own.get("dimnames") and len(axes) > 1
    has_dimnames = any(listed is not None for listed in labels) or any(map(name_of, axes))
    return labels if had_dimnames or has_dimnames else None


def _write_dimnames(sink: Sink, leaf: Leaf) -> None:
    """Write labels and names of axes: ``names`` of a plain vector, else ``dimnames``."""
    labels = _dimnames(leaf)
    if labels is None:
        return
    if leaf.array.ndim == 1 and not _is_array(leaf):
        sink.tagged("names")
        sink.texts(labels[0] or [])
        return
    names = [*map(name_of, leaf.array.axes)]
    sink.tagged("dimnames")
    sink.integers(VEC | (HAS_ATTRIBUTES if any(names) else 0), len(labels))
    for of_axis in labels:
        if of_axis is None:
            sink.end()
        else:
            sink.texts(of_axis)
    if any(names):
        sink.tagged("names")
        sink.texts(names)
        sink.end()


# --- elements -------------------------------------------------------------------------------------


def _elements(sink: Sink, target: Target, leaf: Leaf) -> bool:
    """Write all elements; return True if some are missing."""
    step = block_bytes(target.max_memory)
    nulls = _Nulls(leaf.nulls, step)
    done, any_missing = 0, False
    for block in target.counted(blocks(leaf.array, step)):
        values = block.reshape(-1)
        gone = nulls.take(values.size)
        any_missing = any_missing or (gone is not None and bool(gone.any()))
        if leaf.kind == STR:
            _strings(sink, leaf, values, gone, done)
        else:
            sink.put(_stored(target, leaf, values, gone, done).tobytes())
        done += values.size
    return any_missing


class _Nulls:
    """Marks of missing values, front to back, as many at once as are asked for."""

    def __init__(self, array: Array | None, step: int) -> None:
        self._pieces: Iterator[Values] | None = None if array is None else (
            block.reshape(-1) for block in blocks(array, step))  # fmt: skip
        self._rest: Values = np.zeros(0, bool)

    def take(self, count: int) -> Values | None:
        """Return the next marks; None if no array marks missing values."""
        if self._pieces is None:
            return None
        while self._rest.size < count:
            self._rest = np.concatenate([self._rest, next(self._pieces)])
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def _lost(leaf: Leaf, index: int, what: str, word: str | None) -> WouldLose:
    """Return the error for an element that R lacks; `word` of ``--allow`` allows it."""
    where = f"element {index_of(leaf.array, index)}"
    return WouldLose(
        f"array '{leaf.name}': {what}", where=where,
        remedy=f"allow it with `--allow {word}`" if word else "no option allows this",
    )  # fmt: skip


def _stored(target: Target, leaf: Leaf, values: Values, gone: Values | None, done: int) -> Values:
    """Return the elements as R stores them; raises `WouldLose` for one that R lacks."""
    element = leaf.array.element
    if leaf.levels or (element.kind == "user" and leaf.kind == INT):
        return _codes(leaf, values, gone, done)
    if element.kind == "user":
        return _times(target, leaf, values, done)
    if element.kind == "int" and leaf.kind == REAL:  # the class is integer64
        return values.astype(">i8")
    with np.errstate(all="ignore"):  # a signalling NaN would warn
        stored = values.astype(STORED[leaf.kind])
    if leaf.kind == INT and element.nbytes == 4:
        bad = values == NA_INTEGER
        if gone is not None:
            bad &= ~gone
        if bad.any():
            raise WouldLose(
                f"array '{leaf.name}': {NA_INTEGER} is R's missing integer (NA)",
                where=f"element {index_of(leaf.array, done + int(bad.argmax()))}",
                remedy="write doubles with `--dtype float64`",
            )
    if gone is not None and leaf.kind == REAL:
        stored.view(">u8")[gone] = NA_REAL_BITS
    elif gone is not None:
        stored[gone] = NA_INTEGER
    return stored


def _codes(leaf: Leaf, values: Values, gone: Values | None, done: int) -> Values:
    """Return the numbers of the levels of a factor; raises `WouldLose` for another text."""
    codes = {level: number for number, level in enumerate(leaf.levels, 1)}
    missing = [False] * values.size if gone is None else gone.tolist()
    level_numbers = [
        NA_INTEGER if is_missing else codes.get(text, 0)
        for text, is_missing in zip(values.tolist(), missing, strict=True)
    ]
    if 0 in level_numbers:
        raise _lost(leaf, done + level_numbers.index(0), "is not a level of the factor", None)
    return np.array(level_numbers, ">i4")


def _times(target: Target, leaf: Leaf, values: Values, done: int) -> Values:
    """Return days or seconds since 1970, NA for NaT."""
    unit = str(leaf.array.element.descr)[4:-1]
    counts = values.astype(f"<M8[{unit}]").view("<i8")
    gone = counts == np.iinfo(np.int64).min
    numbers = np.where(gone, 0, counts)
    seconds = numbers / PER_SECOND[unit]
    bad = (abs(numbers) >= MOST_EXACT) | (np.rint(seconds * PER_SECOND[unit]) != numbers)
    if bad.any():
        what = "is not a time that a double holds exactly"
        if not target.allows("precision"):
            raise _lost(leaf, done + int(bad.argmax()), what, "precision")
        fit = refused(leaf.name, "precision", what, "--allow precision")
        if fit not in target.lost:
            target.lost.append(fit)
    stored = seconds.astype(">f8")
    stored.view(">u8")[gone] = NA_REAL_BITS
    return stored


def _strings(sink: Sink, leaf: Leaf, values: Values, gone: Values | None, done: int) -> None:
    """Write texts or bytes, NA for missing ones; raises `WouldLose` for a NUL or bad text."""
    missing = [False] * values.size if gone is None else gone.tolist()
    is_utf8 = leaf.array.meta.encoding == "utf-8"
    for number, (text, is_missing) in enumerate(zip(values.tolist(), missing, strict=True)):
        nul = "\0" if isinstance(text, str) else b"\0"
        if nul in text:
            raise _lost(leaf, done + number, "holds a NUL, which no string of R does", None)
        try:
            string = text.decode() if is_utf8 and isinstance(text, bytes) else text
            sink.string(None if is_missing else string)
        except UnicodeError:
            raise _lost(leaf, done + number, "is not valid text", None) from None
