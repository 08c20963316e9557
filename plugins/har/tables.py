"""Types, sizes and limits of HAR, and the rules by which data is split over records."""

from __future__ import annotations

import re
from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMESPACE = "har"  # namespace of the metadata
NAME_CHARS = 4
LONG_CHARS = 70
WORD_CHARS = 12  # characters of set names, coefficient names and labels
MAX_RANK = 7
MAX_INT32 = (1 << 31) - 1

REAL, REAL_BARE, REAL_MATRIX, INTEGER, TEXT = "RE", "RL", "2R", "2I", "1C"
TYPES = (REAL, REAL_BARE, REAL_MATRIX, INTEGER, TEXT)
DOUBLES = ("DE", "DL")  # known by name to GEMPACK's own reader; nobody has seen one
FULL, SPARSE = "FULL", "SPSE"
SIZES = {TEXT: 2, INTEGER: 2, REAL_MATRIX: 2, REAL: MAX_RANK, REAL_BARE: MAX_RANK}

# How much GEMPACK puts into one record; the values are what its release 12.1 does.
FULL_LIMIT = 7996  # values; ViewHAR and AggHAR: 7000
MATRIX_LIMIT = 3996  # values; harpy: 7991
SPARSE_LIMIT = 3996  # positions and values
STRINGS_BYTES = 29_996  # of strings; releases 10.0 to 11.4: 29 strings; ViewHAR: all in one
DELPHI_LIMIT = 7000

LABEL_MEMORY = 100  # bytes that one label takes as a Python text


def strings_limit(width: int) -> int:
    """The number of strings of this width that go into one record."""
    return max(1, STRINGS_BYTES // max(1, width))


def parts_of(dims: tuple[int, ...], limit: int) -> tuple[int, int, int]:
    """The split of a full array: the axis that is cut, its planes in a part, values in a plane.

    Leading dimensions are taken whole while their product stays within `limit`; the first that
    would exceed it is cut into parts of as many planes as fit, anew for every combination of the
    outer dimensions. If no dimension is cut, the axis is the number of dimensions.
    """
    plane = 1
    for axis, size in enumerate(dims):
        if plane * size > limit:
            return axis, max(1, limit // plane), plane
        plane *= size
    return len(dims), 1, plane


def number_of_parts(dims: tuple[int, ...], limit: int) -> int:
    """The number of parts of a full array; at least one."""
    axis, planes, _ = parts_of(dims, limit)
    if axis == len(dims) or prod(dims) == 0:
        return 1
    return -(-dims[axis] // planes) * prod(dims[axis + 1 :])


def part_counts(dims: tuple[int, ...], limit: int) -> tuple[list[int], int]:
    """The values in each part along the split axis, and how often that pattern repeats."""
    axis, planes, plane = parts_of(dims, limit)
    if axis == len(dims) or prod(dims) == 0:
        return [prod(dims)], 1
    whole, rest = divmod(dims[axis], planes)
    pattern = [planes * plane] * whole + ([rest * plane] if rest else [])
    return pattern, prod(dims[axis + 1 :])


def boxes(dims: tuple[int, ...], limit: int) -> Iterator[list[int]]:
    """Yield first and last index of every dimension, counted from 1, for each part in order."""
    axis, planes, _ = parts_of(dims, limit)
    box = [end for size in dims for end in (1, size)]
    if axis == len(dims) or prod(dims) == 0:
        yield box
        return
    outer = dims[axis + 1 :]
    corner = [1] * len(outer)
    for _ in range(prod(outer)):
        for n, at in enumerate(corner, axis + 1):
            box[2 * n] = box[2 * n + 1] = at
        for start in range(0, dims[axis], planes):
            box[2 * axis : 2 * axis + 2] = start + 1, min(start + planes, dims[axis])
            yield box
        for n, size in enumerate(outer):
            corner[n] = corner[n] % size + 1
            if corner[n] > 1:
                break


PLACEHOLDER = re.compile(r"((?i:unk)[0-9]*)?")  # the set name of a dimension without a set


def text(raw: bytes) -> str:
    """Bytes as Latin-1 text, one character for each; HAR declares no encoding."""
    return raw.decode("latin-1")
