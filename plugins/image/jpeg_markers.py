"""Markers of a JPEG: its frames and scans, of a file or of a strip of a TIFF."""

from __future__ import annotations

import re
from collections import defaultdict

from raconvert.errors import Corrupt

MAGIC = b"\xff\xd8\xff"
_MARKER = re.compile(rb"\xff[^\0\xd0-\xd7\xff]")  # none of those in compressed data
STANDALONE, END, SCAN = (0x01, 0xD8, 0xD9), 0xD9, 0xDA
FRAMES = BASELINE, EXTENDED, PROGRESSIVE = 0xC0, 0xC1, 0xC2
LOSSLESS = 0xC3
OTHER_FRAMES = {LOSSLESS, *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)}


def markers(data: bytes, path: str, most: int) -> tuple[defaultdict[int, list[bytes]], int]:
    """The beginnings of the segments of each marker, at most one more than `most`, and the end."""
    if not data.startswith(MAGIC):
        raise Corrupt("does not begin as a JPEG file", path=path)
    at, code, segments = 2, 0, defaultdict[int, list[bytes]](list)
    while code != END:
        marker = _MARKER.search(data, at)
        if marker is None:
            raise Corrupt("is cut off: it has no end marker", path=path)
        at, code = marker.start(), marker[0][1]
        if len(segments[code]) <= most:  # a file may be markers and nothing else
            segments[code].append(data[at : at + 10])
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big") * (code not in STANDALONE)
    return segments, at
