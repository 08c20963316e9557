"""The compiled loops of _fast.c."""

from typing import Any

def read_alike(paths: list[str], lead: bytes, tail: bytes, /) -> list[bytes | None]:
    """The same as `stack.read_alike`."""

def unfilter(streams: list[Any], start: int, pixel_bytes: int, images: Any, /) -> bool:
    """Undo the filters of the rows from byte `start` of each stream, False if one is unknown.

    `images` is where they go: bytes in C order of shape (streams, height, row_bytes).
    """
