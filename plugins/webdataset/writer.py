"""Writer of shards: sample after sample, a member for each array, front to back."""

from __future__ import annotations

import os
import re
from math import prod
from typing import TYPE_CHECKING

from raconvert.arrays.blocks import Feed, block_bytes, blocks
from raconvert.arrays.dtypes import dtype_of, little
from raconvert.errors import Corrupt, UsageError
from raconvert.files import tars
from raconvert.files.copy import write_all
from raconvert.files.names import check_inside
from raconvert.files.paths import write_failed
from raconvert.plugin import Array

from ..npy.header import header_of
from .tables import ARRAY, DIGITS, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["write_shards"]

WAITING = 1 << 20  # bytes of small members that are written at once
_FIRST = re.compile(rf"-0{{{DIGITS},}}(\.wds)?\.tar$", re.IGNORECASE)


def write_shards(
    target: Target, arrays: Sequence[Array], kinds: Sequence[str], extensions: Sequence[str],
    keys: Sequence[str], samples: int,
) -> None:  # fmt: skip
    """Write the samples, `samples` of them into each file (0: all of them into one)."""
    step = samples or len(keys)
    ending = _ending(target.place) if samples else ""
    columns = [
        _Column(array, kind, extension, target, len(arrays))
        for array, kind, extension in zip(arrays, kinds, extensions, strict=True)
    ]
    for start in range(0, len(keys), step):
        shard = target
        if start:
            own = _numbered(ending, start // step)
            shard = target.beside(own, ending=ending)
            target.series = True
        _write_shard(shard, columns, keys[start : start + step], last=shard is target)


def _ending(path: str) -> str:
    """Return the end of the name of the first of several shards: ``-000000.tar``.

    Raises `UsageError` for another name. Six digits are enough for `MOST_SHARDS`.
    """
    match = _FIRST.search(path)
    if match is None:
        raise UsageError(
            "is not the name of the first of several shards", path=path,
            expected="a name that ends in -000000.tar",
            remedy="add the number: -o x-000000.tar; the others become x-000001.tar, and so on",
        )  # fmt: skip
    return match.group().lower()


def _numbered(ending: str, number: int) -> str:
    """Return the ending with another number, of as many digits."""
    digits, dot, rest = ending[1:].partition(".")
    return f"-{number:0{len(digits)}d}{dot}{rest}"


def _write_shard(
    target: Target, columns: Sequence[_Column], keys: Sequence[str], *, last: bool
) -> None:
    """Write the samples of these keys into one file; all files but the last are closed."""
    try:
        file = target.open()
        waiting = bytearray()
        for key in keys:
            for column in columns:
                column.write(key, file, waiting)
        write_all(file, [waiting, tars.END])
        if not last:  # there may be many: an open file each would be too many for the system
            os.fsync(file.fileno())
            file.close()
    except OSError as error:
        raise write_failed(target.path, error) from error


class _Column:
    """The writer of the members of one array, one after the other."""

    def __init__(
        self, array: Array, kind: str, extension: str, target: Target, arrays: int
    ) -> None:
        size = max(1 << 16, block_bytes(target.max_memory) // arrays)
        dtype = dtype_of(little(array.element))
        self._feed = Feed(target.counted(blocks(array, size)), dtype, f"array '{array.name}'")
        self._extension = extension
        self._inner = prod(array.shape[1:])
        self._nbytes = self._inner * dtype.itemsize
        self._header = b""
        self._text: Callable[[bytes], bytes] | None = None
        if kind == ARRAY:
            sample = Array(array.element, array.shape[1:][::-1], name=array.name, index_order="C")
            self._header = header_of(sample)
        else:
            self._text = _digits if kind == NUMBER else _TextOf(array.name)

    def write(self, key: str, file: FileIO, waiting: bytearray) -> None:
        """Write the member of the next sample; small ones wait for others."""
        name = f"{key}.{self._extension}"
        check_inside(name, "a member")
        if self._text is not None:
            text = self._text(self._feed.take(1).view("u1").tobytes())
            waiting += tars.header_of(name, len(text)) + text + bytes(-len(text) % tars.BLOCK)
        else:
            size = len(self._header) + self._nbytes
            waiting += tars.header_of(name, size) + self._header
            for piece in self._pieces():
                waiting += piece
                _flush(file, waiting)
            waiting += bytes(-size % tars.BLOCK)
        _flush(file, waiting)

    def _pieces(self) -> Iterator[Any]:
        """Yield the bytes of the next sample."""
        for piece in self._feed.pieces(self._inner) if self._nbytes else ():
            yield piece.view("u1").data


def _flush(file: FileIO, waiting: bytearray) -> None:
    """Write what waits, if it is `WAITING` bytes or more."""
    if len(waiting) >= WAITING:
        write_all(file, [bytes(waiting)])
        waiting.clear()


def _digits(data: bytes) -> bytes:
    """Return an int64 in decimal digits."""
    return str(int.from_bytes(data, "little", signed=True)).encode()


class _TextOf:
    """Function from an element of an array to its text, without the zeros that fill it up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, data: bytes) -> bytes:
        text = data.rstrip(b"\0")
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise Corrupt(
                f"array '{self._name}' has a text that is not UTF-8", got=ascii(text[:40])[1:],
                remedy="write its bytes with `--out-opt text=npy`",
            ) from error  # fmt: skip
        return text
