"""The options of writing, and the chunks that follow from them."""

from __future__ import annotations

from collections import namedtuple
from math import prod

from raconvert.errors import UsageError
from raconvert.files.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK_BYTES = 1 << 20
DEFAULT_LEVEL = 4
MAX_CHUNK_BYTES = (1 << 32) - 1

# What the options say: filter is None, "gzip" or "lzf"; chunk is "auto", None or a shape;
# strings is "auto" (of variable length where they once were) or "fixed".
Options = namedtuple("Options", "filter level chunk shuffle strings")


def options_of(compress: str, chunks: str, shuffle: bool, strings: str) -> Options:
    """The options in terms of HDF5; `UsageError` where one of them is not understood."""
    name, _, level = compress.partition(":")
    if name not in ("none", "gzip", "lzf") or (level and name != "gzip"):
        raise UsageError(f"option compress={compress} is not understood",
                         expected="none, gzip, gzip:0 to gzip:9, or lzf")  # fmt: skip
    if level and not (level.isascii() and level.isdecimal() and int(level) <= 9):
        raise UsageError(f"level of option compress={compress} is out of range", expected="0 to 9")
    chunk: Any = {"auto": "auto", "none": None}.get(chunks, "")
    if chunk == "":
        parts = chunks.split(",")
        if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
            raise UsageError(f"option chunks={chunks} is not understood",
                             expected="auto, none, or a length for each axis as 64,64")  # fmt: skip
        chunk = tuple(map(int, parts))
    if chunk is None and name != "none":
        raise UsageError(f"compress={compress} needs chunks", expected="chunks=auto, or a shape")
    compressor = None if name == "none" else name
    return Options(compressor, int(level) if level else DEFAULT_LEVEL, chunk, shuffle, strings)


def chunk_of(
    shape: tuple[int, ...], item: int, options: Options, max_memory: int = DEFAULT_MAX_MEMORY
) -> tuple[int, ...] | None:
    """The shape of the chunks of a dataset; None if it is stored in one piece.

    By default chunks are whole rows of about 1 MiB, so that the file is written and read front to
    back; they are smaller if `max_memory` asks for it, since a row of chunks is in memory twice.
    Lengths for axes that belong to the type of the elements are ignored.
    """
    if not shape or 0 in shape:
        return None
    if isinstance(options.chunk, tuple):
        chunk = tuple(min(*pair) for pair in zip(options.chunk, shape, strict=False))
        if prod(chunk) * item > MAX_CHUNK_BYTES:
            raise UsageError("chunks are larger than HDF5 allows", expected="less than 4 GiB")
        return chunk
    if options.filter is None:
        return None
    most = max(1 << 12, min(CHUNK_BYTES, max_memory // 4))
    chunk_list = list(shape)
    for axis, length in enumerate(shape):
        inner = prod(shape[axis + 1 :]) * item
        chunk_list[axis] = max(1, min(length, most // inner))
        if chunk_list[axis] > 1 or inner < most:
            break
    return tuple(chunk_list)
