"""Markers of a JPEG: its frames and scans, of a file or of a strip of a TIFF."""

from __future__ import annotations

import re
from collections import defaultdict

from raconvert.errors import Corrupt

MAGIC = b"\xff\xd8\xff"
_MARKER = re.compile(rb"\xff[^\0\xd0-\xd7\xff]")  # markers that compressed data cannot have
STANDALONE, END, SCAN, INTERVAL = (0x01, 0xD8, 0xD9), 0xD9, 0xDA, 0xDD
SEGMENT_BYTES = 22  # of a segment that are read: as many as a frame of four components has
_RESTART = re.compile(rb"\xff([\xd0-\xd7])")
BLOCK = 8  # pixels along a side
FRAMES = BASELINE, EXTENDED, PROGRESSIVE = 0xC0, 0xC1, 0xC2
LOSSLESS = 0xC3
OTHER_FRAMES = {LOSSLESS, *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)}


def markers(data: bytes, path: str, most: int) -> tuple[defaultdict[int, list[bytes]], int]:
    """The first bytes of the segments of each marker, and the offset behind the end marker.

    Of each marker at most `most` + 1 segments are listed. Raises `Corrupt` for a cut file.
    """
    if not data.startswith(MAGIC):
        raise Corrupt("does not begin as a JPEG file", path=path)
    offset, code, segments = 2, 0, defaultdict[int, list[bytes]](list)
    while code != END:
        marker = _MARKER.search(data, offset)
        if marker is None:
            raise Corrupt("is cut off: it has no end marker", path=path)
        start, code = marker.start(), marker[0][1]
        if len(segments[code]) <= most:  # a file may be markers and nothing else
            segments[code].append(data[start : start + SEGMENT_BYTES])
        offset = start + 2
        if code not in STANDALONE:
            offset += int.from_bytes(data[start + 2 : start + 4], "big")
    return segments, offset


def check_restarts(segments: dict[int, list[bytes]], data: bytes, path: str) -> None:
    """Raise `Corrupt` if restart markers of a picture of one scan are missing or out of order.

    Decoders go on behind the next marker, so that nothing else tells of damage between them.
    """
    if len(segments[SCAN]) != 1:
        return
    scan = segments[SCAN][0]
    start = data.find(scan)
    if start < 0:  # the picture ends within the bytes of the segment
        start = max(0, data.rfind(scan[:4]))
    numbers = [mark[0] & 7 for mark in _RESTART.findall(data, start)]
    frame = next(segments[code][0] for code in segments if code in (*FRAMES, LOSSLESS))
    interval = int.from_bytes(segments.get(INTERVAL, [b""])[-1][4:6], "big")
    least, most = 0, len(numbers)
    if interval:
        least = _restarts(frame, interval, 1 if LOSSLESS in segments else BLOCK)
        most = least + 1
    in_order = numbers == [number % 8 for number in range(len(numbers))]
    if not in_order or not least <= len(numbers) <= most:
        what = "has restart markers that are missing, or not in order"
        raise Corrupt(what, path=path, expected=f"{least} of them", got=len(numbers))


def _restarts(frame: bytes, interval: int, block: int) -> int:
    """The number of restart markers between the parts of a frame in one scan."""
    factors = [*frame[11 : 11 + 3 * frame[9] : 3]] if frame[9] > 1 else [0x11]
    across = max((factor >> 4 for factor in factors), default=1)  # a frame may be cut off
    down = max((factor & 15 for factor in factors), default=1)
    height, width = (int.from_bytes(frame[n : n + 2], "big") for n in (5, 7))
    units = -(-width // (block * across or 1)) * -(-height // (block * down or 1))
    return -(-units // interval) - 1
