"""What the records of a header hold: field layouts and the rules by which data is split.

All offsets count from the start of a payload; ``i4`` is an int32 in the file's byte order.

=================  ===============================================================================
header record      0 name, 4 characters, left-justified
second record      4 type, 2 characters; 6 storage, FULL or SPSE; 10 long name, 70 characters;
                   80 i4 nd; 84 nd times i4: sizes (1C: count, width; 2I 2R: rows, columns;
                   RE RL: always seven, the unused ones 1)
label record       4 i4 count of label lists; 8 logical; 12 i4 ns; 16 coefficient, 12 characters;
(RE only)          28 logical; ns set names of 12 characters; ns status letters; ns i4, always 0;
                   i4 ne; ne explicit element names of 12 characters
strings            4 i4 counter; 8 i4 strings in all; 12 i4 strings here; the strings
(1C, label lists)
matrix part        4 i4 counter; 8 i4 rows, columns; 16 i4 first and last row, first and last
(2I, 2R)           column of this part; the values in Fortran order
FULL (RE, RL)      dimension record: 4 i4 counter; 8 i4 7; 12 seven i4 sizes; then for each part
                   a position record: 4 i4 counter; 8 seven pairs of i4, first and last;
                   a data record: 4 i4 counter; 8 the values of that box in Fortran order
SPSE (RE, RL)      4 i4 nonzero values in all; 8 i4 4; 12 i4 4; 16 comment, 80 characters; then
                   4 i4 counter; 8 i4 nonzero values in all; 12 i4 values here; their positions
                   (i4, from 1, in Fortran order over all dimensions, increasing); their values
=================  ===============================================================================

A counter counts the records of a header (or list) down to 1 at the last one.
"""

from __future__ import annotations

from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_CHARS = 4
LONG_CHARS = 70
WORD_CHARS = 12  # set names, coefficient names and labels
MAX_RANK = 7
MAX_INT32 = (1 << 31) - 1

REAL, REAL_BARE, REAL_MATRIX, INTEGER, TEXT = "RE", "RL", "2R", "2I", "1C"
TYPES = (REAL, REAL_BARE, REAL_MATRIX, INTEGER, TEXT)
DOUBLES = ("DE", "DL")  # known by name to GEMPACK's own reader; nobody has seen one
FULL, SPARSE = "FULL", "SPSE"
SIZES = {TEXT: 2, INTEGER: 2, REAL_MATRIX: 2, REAL: MAX_RANK, REAL_BARE: MAX_RANK}

SECOND_BYTES = 84
LABEL_BYTES = 36
STRINGS_HEAD = 16
MATRIX_HEAD = 32
DIMENSION_BYTES = 12 + 4 * MAX_RANK
POSITION_BYTES = 8 + 8 * MAX_RANK
DATA_HEAD = 8
SPARSE_BYTES = 96
SPARSE_HEAD = 16

# How much GEMPACK puts into one record; the values are what its release 12.1 does.
FULL_LIMIT = 7996  # values; ViewHAR and AggHAR: 7000
MATRIX_LIMIT = 3996  # values; harpy: 7991
SPARSE_LIMIT = 3996  # positions and values
STRINGS_BYTES = 29_996  # of strings; releases 10.0 to 11.4: 29 strings; ViewHAR: all in one
DELPHI_LIMIT = 7000


def strings_limit(width: int) -> int:
    """Return how many strings of this width go into one record."""
    return max(1, STRINGS_BYTES // max(1, width))


def parts_of(dims: tuple[int, ...], limit: int) -> tuple[int, int, int]:
    """Return how a full array is split: axis, planes of it in one part, values in a plane.

    Leading dimensions are taken whole while their product stays within `limit`; the first that
    would exceed it is cut into parts of as many planes as fit, anew for every combination of the
    outer dimensions.
    """
    plane = 1
    for axis, size in enumerate(dims):
        if plane * size > limit:
            return axis, max(1, limit // plane), plane
        plane *= size
    return len(dims), 1, plane


def part_counts(dims: tuple[int, ...], limit: int) -> tuple[list[int], int]:
    """Return the values in each part along the split axis, and how often that pattern repeats."""
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
    place = [1] * len(outer)
    for _ in range(prod(outer)):
        for n, at in enumerate(place, axis + 1):
            box[2 * n] = box[2 * n + 1] = at
        for start in range(0, dims[axis], planes):
            box[2 * axis : 2 * axis + 2] = start + 1, min(start + planes, dims[axis])
            yield box
        for n, size in enumerate(outer):
            place[n] = place[n] % size + 1
            if place[n] > 1:
                break


def text(raw: bytes) -> str:
    """Return characters as text, one for each byte; nobody declares an encoding."""
    return raw.decode("latin-1")
