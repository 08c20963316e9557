"""CCITT: a strict walk over the codes of a strip or tile, since decoders guess over damage.

Specification: ITU-T T.4 (groups 3, one and two dimensions; modified Huffman) and T.6 (group 4). The
data have no checksum, but every code has to be one of the tables, each row has to end exactly at
its width, there have to be as many rows as the strip has, and nothing but end marks behind them. A
flipped bit that passes all of this gives another valid picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt, Unsupported

from .codecs import CCITT_3, CCITT_4, CCITT_RLE

if TYPE_CHECKING:
    Codes = list[tuple[int, int]]

# Codes of the runs 0 to 63, then of 64, 128 and so on up to 1728
_WHITE = (
    "00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 "
    "110101 101010 101011 0100111 0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011 "
    "0100100 0011000 00000010 00000011 00011010 00011011 00010010 00010011 00010100 00010101 "
    "00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100 00000101 "
    "00001010 00001011 01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001 "
    "01011010 01011011 01001010 01001011 00110010 00110011 00110100 "
    "11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100 "
    "011001101 011010010 011010011 011010100 011010101 011010110 011010111 011011000 011011001 "
    "011011010 011011011 010011000 010011001 010011010 011000 010011011"
)
_BLACK = (
    "0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 "
    "00000111 000011000 0000010111 0000011000 0000001000 00001100111 00001101000 00001101100 "
    "00000110111 00000101000 00000010111 00000011000 000011001010 000011001011 000011001100 "
    "000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011 "
    "000011010100 000011010101 000011010110 000011010111 000001101100 000001101101 000011011010 "
    "000011011011 000001010100 000001010101 000001010110 000001010111 000001100100 000001100101 "
    "000001010010 000001010011 000000100100 000000110111 000000111000 000000100111 000000101000 "
    "000001011000 000001011001 000000101011 000000101100 000001011010 000001100110 000001100111 "
    "0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 "
    "0000001101100 0000001101101 0000001001010 0000001001011 0000001001100 0000001001101 "
    "0000001110010 0000001110011 0000001110100 0000001110101 0000001110110 0000001110111 "
    "0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011 "
    "0000001100100 0000001100101"
)
# Of both colours, for 1792, 1856 and so on
_LONG = (
    "00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101 "
    "000000010110 000000010111 000000011100 000000011101 000000011110 000000011111"
)
WINDOW = 13  # bits of the longest code
RUNS = [*range(64), *range(64, 2561, 64)]
MAKE_UP = 64  # a code of a run this long or longer is followed by another one of its colour
# Modes of a row that is coded by the one above: an offset from -3 to 3 (vertical), or one of these
PASS, HORIZONTAL, EXTENSION, NO_MODE = 10, 11, 12, 13
_MODES = {"1": 0, "011": 1, "010": -1, "000011": 2, "000010": -2, "0000011": 3, "0000010": -3,
          "0001": PASS, "001": HORIZONTAL, "0000001": EXTENSION}  # fmt: skip
END_ZEROS = 11  # zero bits before the set bit of an end of line
TWO_DIMENSIONS = 1  # bit of the options of group 3 (tag 292)


def _table(codes: dict[str, int], missing: int) -> Codes:
    """The value and the length of the code at the start of each window; `missing` without one."""
    table = [(missing, 0)] * (1 << WINDOW)
    for code, value in codes.items():
        left = WINDOW - len(code)
        start = int(code, 2) << left
        table[start : start + (1 << left)] = [(value, len(code))] * (1 << left)
    return table


def _runs(text: str) -> Codes:
    """The table of the runs of one colour; -1 for other codes."""
    return _table(dict(zip(f"{text} {_LONG}".split(), RUNS, strict=True)), -1)


COLOURS = _runs(_WHITE), _runs(_BLACK)
MODES = _table(_MODES, NO_MODE)


class _Damaged(Exception):
    """An unknown code, or a row that does not end at its width."""


def check_fax(
    data: bytes, size: tuple[int, int], compression: int, options: int, path: str
) -> None:
    """Check the codes of a strip or tile of rows and columns.

    Raises `Corrupt` for damage, with the row; `Unsupported` for rows that are not compressed.
    """
    rows, width = size
    walk = _Walk(data, width)
    try:
        _pass(walk, rows, compression, options)
    except _Damaged as error:
        raise Corrupt(
            f"has damaged CCITT data: {error}", path=path, where=f"row {walk.number} of {rows}",
            remedy="decode what is left of it, for instance with: tiffcp -c none IN OUT",
        ) from None  # fmt: skip
    except NotImplementedError:
        what = "has CCITT data with rows that are not compressed"
        raise Unsupported(what, path=path, where=f"row {walk.number} of {rows}") from None


def _pass(walk: _Walk, rows: int, compression: int, options: int) -> None:
    """Pass all rows, and the end marks behind them."""
    above, tagged = [walk.width] * 4, compression == CCITT_3 and bool(options & TWO_DIMENSIONS)
    while walk.number < rows:
        if compression == CCITT_4:
            walk.pass_equal(len(above) - 3, rows)
            if walk.number == rows:
                break
            above = walk.row_below(above)
        else:
            above = walk.row_by_itself(above, compression, tagged)
        walk.number += 1
    if walk.at > walk.bits:
        raise _Damaged("the data end")
    if compression != CCITT_RLE:
        walk.check_rest(tagged)


class _Walk:
    """A position (`at`) in the bits of a strip; `number` is the row that is read."""

    def __init__(self, data: bytes, width: int) -> None:
        self.at, self.bits, self.width, self.number = 0, 8 * len(data), width, 0
        padded = np.frombuffer(data + bytes(4), np.uint8).astype(np.uint32)
        self._empty_runs = False
        # For each byte, the 24 bits that begin with it
        words = padded[:-2] << 16 | padded[1:-1] << 8 | padded[2:]
        self._words = memoryview(words.tobytes()).cast("I")

    def window(self) -> int:
        """The next bits, as many as the longest code has. Raises `_Damaged` at the end."""
        at = self.at
        if at > self.bits:
            raise _Damaged("the data end")
        return self._words[at >> 3] >> (11 - (at & 7)) & 0x1FFF

    def bit(self) -> int:
        """Read the next bit."""
        bit = self.window() >> (WINDOW - 1)
        self.at += 1
        return bit

    def ends(self) -> int:
        """Pass the next ends of lines, with zeros before them; return their number."""
        count = 0
        while self.window() >> (WINDOW - END_ZEROS) == 0:
            start = self.at
            self.at += END_ZEROS
            while self.at < self.bits and not self.window() >> (WINDOW - 1):
                self.at += 1
            if self.at >= self.bits:
                self.at = start
                break
            self.at += 1
            count += 1
        return count

    def check_rest(self, tagged: bool) -> None:
        """Raise `_Damaged` if anything but ends of lines, their tags and zeros follow the rows."""
        while self.at < self.bits and self.window() >> (WINDOW - END_ZEROS) == 0:
            if not self.ends():
                return
            self.at += tagged
        while self.at < self.bits:
            if self.bit():
                raise _Damaged("there are more codes than rows")

    def pass_equal(self, codes: int, rows: int) -> None:
        """Pass rows that equal the one above: a set bit for each of their `codes`, end included."""
        word = (self._words[self.at >> 3] << (self.at & 7)) & 0xFFFFFF if self.at < self.bits else 0
        ones = 24 - (~word & 0xFFFFFF).bit_length()
        equal = min(ones // codes, rows - self.number)
        self.at += equal * codes
        self.number += equal

    def row_by_itself(self, above: list[int], compression: int, tagged: bool) -> list[int]:
        """Read a row of group 3, which may begin with a mark, or of modified Huffman."""
        if compression == CCITT_RLE:
            self.at += -self.at % 8
            return self.row()
        ends = self.ends()
        if ends > 1:
            raise _Damaged("the data end")
        if tagged and not ends:
            raise _Damaged("a row has no mark before it")
        return self.row_below(above) if tagged and not self.bit() else self.row()

    def _run(self, colour: int) -> int:
        """Read the length of a run."""
        table, total, words, at = COLOURS[colour], 0, self._words, self.at
        while at <= self.bits:
            run, length = table[words[at >> 3] >> (11 - (at & 7)) & 0x1FFF]
            if run == 0:
                self._empty_runs = True
            if run < 0:
                raise _Damaged("a code is not one of a run")
            at += length
            total += run
            if run < MAKE_UP:
                self.at = at
                return total
        raise _Damaged("the data end")

    def row(self) -> list[int]:
        """Read a row by itself; return the columns where its colour changes."""
        column, colour, changes = 0, 0, list[int]()
        while column < self.width:
            column += self._run(colour)
            changes.append(column)
            colour ^= 1
        return self._checked(column, changes)

    def row_below(self, above: list[int]) -> list[int]:
        """Read a row that is coded by the changes of the one above."""
        column, colour, at, width, changes = -1, 0, 0, self.width, list[int]()
        words, bits, add = self._words, self.bits, changes.append
        while column < width:
            at = at - 3 if at > 3 else 0
            while (above[at] <= column or at & 1 != colour) and above[at] < width:
                at += 1
            here = self.at
            if here > bits:
                raise _Damaged("the data end")
            mode, length = MODES[words[here >> 3] >> (11 - (here & 7)) & 0x1FFF]
            self.at = here + length
            if mode < PASS:
                here = above[at] + mode
                if here < column or here < 0:
                    raise _Damaged("a run ends before it begins")
                self._empty_runs |= here == column
                column = here
                add(column)
                colour ^= 1
            elif mode == PASS:
                column = above[at + 1]
            elif mode == HORIZONTAL:
                first = (max(0, column)) + self._run(colour)
                column = first + self._run(colour ^ 1)
                changes += [first, column]
            elif mode == EXTENSION:
                raise NotImplementedError
            else:
                raise _Damaged("a code is not one of a row")
        return self._checked(column, changes)

    def _checked(self, column: int, changes: list[int]) -> list[int]:
        """The columns where the colour changes, and four times the width, for searches in them."""
        if column != self.width:
            raise _Damaged("a row does not end at its width")
        if self._empty_runs:
            self._empty_runs, changes = False, _without_empty_runs(changes)
        while changes and changes[-1] == column:
            changes.pop()
        return [*changes, column, column, column, column]


def _without_empty_runs(changes: list[int]) -> list[int]:
    """The columns where the colour changes, without those where it changes twice."""
    distinct = list[int]()
    for column in changes:
        if distinct and distinct[-1] == column:
            distinct.pop()
        else:
            distinct.append(column)
    return distinct
