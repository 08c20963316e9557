"""Markers of a JPEG: its frames and scans, of a file or of a strip of a TIFF."""

from __future__ import annotations

import re
from collections import defaultdict

from raconvert.errors import Corrupt

MAGIC = b"\xff\xd8\xff"
_MARKER = re.compile(rb"\xff[^\0\xd0-\xd7\xff]")  # none of those in compressed data
STANDALONE, END, SCAN, INTERVAL = (0x01, 0xD8, 0xD9), 0xD9, 0xDA, 0xDD
SEGMENT_BYTES = 22  # of a segment that are looked at: a frame of four components
_RESTART = re.compile(rb"\xff([\xd0-\xd7])")
BLOCK = 8  # pixels along a side
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
            segments[code].append(data[at : at + SEGMENT_BYTES])
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big") * (code not in STANDALONE)
    return segments, at


def check_restarts(segments: dict[int, list[bytes]], data: bytes, path: str) -> None:
    """Check the restart markers of a picture of one scan: they count up, and none is missing.

    They are all that tells of damage between them: decoders go on behind the next one. Raises
    `Corrupt`.
    """
    if len(segments[SCAN]) != 1:
        return
    scan = segments[SCAN][0]
    start = data.find(scan)
    if start < 0:  # the picture ends within what was looked at
        start = max(0, data.rfind(scan[:4]))
    numbers = [mark[0] & 7 for mark in _RESTART.findall(data, start)]
    frame = next(one[0] for code, one in segments.items() if code in (*FRAMES, LOSSLESS))
    interval = int.from_bytes(segments.get(INTERVAL, [b""])[-1][4:6], "big")
    least = _restarts(frame, interval, 1 if LOSSLESS in segments else BLOCK) if interval else 0
    in_order = numbers == [number % 8 for number in range(len(numbers))]
    if not in_order or not least <= len(numbers) <= (least + 1 if interval else len(numbers)):
        what = "has restart markers that are missing, or not in order"
        raise Corrupt(what, path=path, expected=f"{least} of them", got=len(numbers))


def _restarts(frame: bytes, interval: int, block: int) -> int:
    """The number of restart markers between the parts of a frame in one scan."""
    factors = [*frame[11 : 11 + 3 * frame[9] : 3]] if frame[9] > 1 else [0x11]
    across, down = max(one >> 4 for one in factors), max(one & 15 for one in factors)
    height, width = (int.from_bytes(frame[at : at + 2], "big") for at in (5, 7))
    units = -(-width // (block * across or 1)) * -(-height // (block * down or 1))
    return -(-units // interval) - 1
