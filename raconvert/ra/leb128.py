"""LEB128: the variable-length integers of RA files that Julia wrote with ``compress=true``.

Sources: RawArray.jl (``src/RawArray.jl``: flag bit 1 on integer and Bool arrays) and
LittleEndianBase128.jl (``src/LittleEndianBase128.jl``: ``encode``, ``decode``, ``movesign``).

One group of bytes per element, in memory order, nothing between groups and nothing around them::

    byte       bits                 meaning
    0 … n-2    1 v v v v v v v      seven bits of the value, lowest seven first; more follow
    n-1        0 v v v v v v v      the last seven bits

* Unsigned integers and Bool (0 or 1) are encoded as they are.
* Signed integers are zigzag-mapped first, ``(n << 1) xor (n >> 63)``: 0, -1, 1, -2 → 0, 1, 2, 3.
* 64 bits fill at most ten bytes, and the tenth holds only the 64th bit: 0 or 1.
* Overlong groups (``80 00`` for 0) are decoded, and never written.

The stream does not say where it ends: the number of elements does. What follows the last group is
the trailer of the file; `DecodedBlocks.consumed` says where it begins.

Groups are not assembled byte by byte. The two, four or eight bytes from the start of every group
are loaded as one word, cut to the group's length, and the seven-bit pieces of all words are pushed
together by one, two or three shifts; encoding is the mirror image. Only values of 2**56 and above
need their ninth and tenth byte separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

__all__ = ["DTYPES", "MAX_GROUP_BYTES", "DecodedBlocks", "decode_blocks", "encode_blocks"]

MAX_GROUP_BYTES = 10  # 64 bits in pieces of seven
SLAB_BYTES = 1 << 16  # encoded bytes at a time: slab and words stay in the processor's cache
SLAB_ELEMENTS = 1 << 13  # elements at a time when encoding: 64 KiB of 64-bit values

# (kind of element, bytes per element) -> type of the decoded blocks
DTYPES: dict[tuple[str, int], np.dtype[Any]] = {
    **{("int", nbytes): np.dtype(f"<i{nbytes}") for nbytes in (1, 2, 4, 8)},
    **{("uint", nbytes): np.dtype(f"<u{nbytes}") for nbytes in (1, 2, 4, 8)},
    ("bool", 1): np.dtype(np.bool_),
}

# bytes per word -> steps that join neighbours, pieces of 7 bits in every 8, then of 14 in every 16,
# then of 28 in every 32: (mask of the lower pieces, mask of the upper pieces, shift of the upper)
_STEPS = {
    2: ((0x007F, 0x7F00, 1),),
    4: ((0x007F007F, 0x7F007F00, 1), (0x00003FFF, 0x3FFF0000, 2)),
    8: (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    ),
}
_WORD_BITS = 56  # bits of a value in the eight bytes of the widest word


def decode_blocks(
    read: Callable[[int], bytes],
    count: int,
    element_kind: str,
    nbytes: int,
    *,
    path: object,
    offset: int,
    max_bytes: int,
) -> DecodedBlocks:
    """Return an iterable over the `count` decoded elements, as arrays of at most `max_bytes`.

    `read(n)` returns up to `n` further bytes, and ``b""`` only at the end of the file; it may be
    asked for bytes beyond the last group. `offset`, where the first byte lies in the file `path`,
    is for messages. ``(element_kind, nbytes)`` is a key of `DTYPES`. A block holds at least one
    element, whatever `max_bytes`.

    Iterating raises `Corrupt` for a stream that ends before `count` elements, a group of more than
    ten bytes, a tenth byte above 1, or a value that its element type does not hold. Memory does
    not depend on `count`; a caller that allocates the whole array first checks `count` against the
    length of the file, since every element takes a byte at least.
    """
    return DecodedBlocks(
        read, count, element_kind, nbytes, path=path, offset=offset, max_bytes=max_bytes
    )


class DecodedBlocks:
    """The decoded elements, to be iterated once.

    `consumed` is the number of bytes that the groups decoded so far take up: after the last block,
    the length of the encoded data, without any trailer that was read along with it.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        count: int,
        element_kind: str,
        nbytes: int,
        *,
        path: object,
        offset: int,
        max_bytes: int,
    ) -> None:
        self.consumed: int = 0
        self._read = read
        self._count = count
        self._kind = element_kind
        self._dtype = DTYPES[element_kind, nbytes]
        self._limit = 1 if element_kind == "bool" else (1 << 8 * nbytes) - 1
        self._path = path
        self._offset = offset
        self._block_elements = max(1, max_bytes // nbytes)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield little-endian 1-D blocks in memory order, `count` elements in all."""
        # ten bytes longer than its contents: a group may be loaded from the last byte on
        slab = np.zeros(SLAB_BYTES + MAX_GROUP_BYTES, np.uint8)
        carried = 0  # bytes at the front of the slab: the unfinished group of the slab before
        done = 0
        while done < self._count:
            filled = _fill(self._read, slab, carried)
            ends = np.flatnonzero(slab[:filled] < 0x80)[: self._count - done]
            if ends.size:
                elements = self._decode(slab, ends, done)
                done += ends.size
                used = int(ends[-1]) + 1
                self.consumed += used
                for first in range(0, elements.size, self._block_elements):
                    yield elements[first : first + self._block_elements]
            else:
                used = 0
            carried = filled - used
            if done < self._count:
                if carried >= MAX_GROUP_BYTES:
                    self._check_group(slab[used:filled].tobytes(), done, 0)
                if filled < SLAB_BYTES:
                    raise self._cut_off(done, carried)
                slab[:carried] = slab[used:filled]

    def _decode(self, slab: np.ndarray, ends: np.ndarray, done: int) -> np.ndarray:
        """Return the elements whose groups end at `ends`; the first is element number `done`."""
        if int(ends[-1]) + 1 == ends.size:  # every group is one byte
            words = slab[: ends.size].copy()
            sound = self._limit > 0x7F or int(words.max()) <= self._limit
            starts = ends
        else:
            starts = np.empty_like(ends)
            starts[0] = 0
            np.add(ends[:-1], 1, out=starts[1:])
            words, sound = _join(slab, starts, ends, self._limit)
        if not sound:
            for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
                self._check_group(slab[start : end + 1].tobytes(), done + number, start)
        if self._kind == "int":
            words = _unzigzag(words)
        return words.astype(self._dtype, copy=False)

    def _check_group(self, group: bytes, number: int, start: int) -> None:
        """Raise `Corrupt` when one group is not an element; `start` counts from `consumed`."""
        where = f"element {number} of {self._count}, byte {self._offset + self.consumed + start}"
        if len(group) > MAX_GROUP_BYTES or group[-1] > 0x7F:
            raise Corrupt(
                f"a LEB128 group runs over {MAX_GROUP_BYTES} bytes",
                path=self._path,
                where=where,
                expected=f"a byte below 128 among the first {MAX_GROUP_BYTES}",
                got=group[:MAX_GROUP_BYTES].hex(" "),
                remedy="the data is damaged, or is not LEB128",
            )
        if len(group) == MAX_GROUP_BYTES and group[-1] > 1:
            raise Corrupt(
                "a LEB128 group holds more than 64 bits",
                path=self._path,
                where=where,
                expected="a tenth byte of 0 or 1",
                got=group[-1],
                remedy="the data is damaged, or is not LEB128",
            )
        value = sum((byte & 0x7F) << 7 * position for position, byte in enumerate(group))
        if value > self._limit:
            signed = self._kind == "int"
            bounds = (~(self._limit >> 1), self._limit >> 1) if signed else (0, self._limit)
            number = value >> 1 ^ -(value & 1) if signed else value  # signed ones are in zigzag
            raise Corrupt(
                f"a LEB128 value does not fit its element type, {self._type_name()}",
                path=self._path,
                where=where,
                expected=f"{bounds[0]} to {bounds[1]}",
                got=number,
                remedy="the data is damaged, or the header names the wrong element type",
            )

    def _cut_off(self, done: int, carried: int) -> Corrupt:
        """Return the error for a stream that ends `carried` bytes behind `done` elements."""
        begun = f" and {carried} bytes of the next" if carried else ""
        return Corrupt(
            "the LEB128 data ends early",
            path=self._path,
            where=f"element {done} of {self._count}, byte {self._offset + self.consumed + carried}",
            expected=f"{self._count} elements",
            got=f"{done} elements{begun}",
            remedy="the file is cut off; get a complete copy",
        )

    def _type_name(self) -> str:
        """Return the name of the element type for messages."""
        return "bool" if self._kind == "bool" else self._dtype.name


def _fill(read: Callable[[int], bytes], slab: np.ndarray, carried: int) -> int:
    """Read behind the `carried` bytes of a slab until it is full or the file ends.

    Returns the number of bytes in the slab.
    """
    filled = carried
    while filled < SLAB_BYTES:
        piece = read(SLAB_BYTES - filled)
        if not piece:
            break
        slab[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
        filled += len(piece)
    return filled


def _join(
    slab: np.ndarray, starts: np.ndarray, ends: np.ndarray, limit: int
) -> tuple[np.ndarray, bool]:
    """Return the values of all groups as unsigned words, and True if every group is sound."""
    more = ends - starts  # bytes after the first
    longest = int(more.max()) + 1
    width = next((width for width in (2, 4) if longest <= width), 8)
    word = np.dtype(f"<u{width}")
    total = int(ends[-1]) + 1
    # copying a word from every byte on, then taking, is 3 times as fast as gathering unaligned
    words = np.ndarray((total,), word, slab, 0, (1,)).copy().take(starts)
    pieces = int.from_bytes(b"\x7f" * width, "little")
    cuts = np.array([pieces >> 8 * (width - 1 - k) for k in range(width)], word)
    words &= cuts.take(more, mode="clip")
    for lower, upper, shift in _STEPS[width]:
        high = words & word.type(upper)
        high >>= word.type(shift)
        words &= word.type(lower)
        words |= high
    sound = longest <= MAX_GROUP_BYTES
    if longest > 8 and sound:
        sound = _add_last_bytes(words, slab, starts, more)
    return words, sound and int(words.max()) <= limit


def _add_last_bytes(
    words: np.ndarray, slab: np.ndarray, starts: np.ndarray, more: np.ndarray
) -> bool:
    """Add the ninth and tenth bytes of groups that have them; return True if 64 bits suffice."""
    ninth = slab.take(starts + 8) & np.uint8(0x7F)
    ninth *= more >= 8
    tenth = slab.take(starts + 9)
    tenth *= more == 9
    ninth |= tenth << np.uint8(7)
    words |= ninth.astype(np.uint64) << np.uint64(_WORD_BITS)
    return int(tenth.max()) <= 1


def _unzigzag(words: np.ndarray) -> np.ndarray:
    """Return 0, 1, 2, 3 … as 0, -1, 1, -2 …, in signed words of the same width; reuses `words`."""
    one = words.dtype.type(1)
    signs = words & one
    np.negative(signs, out=signs)
    words >>= one
    words ^= signs
    return words.view(f"<i{words.dtype.itemsize}")


def encode_blocks(blocks: Iterable[np.ndarray]) -> Iterator[bytes]:
    """Yield the LEB128 groups of blocks of int, uint (any byte order) or bool elements.

    A block of several dimensions is taken in C order. Every group is the shortest that holds its
    value, as LittleEndianBase128.jl writes it.
    """
    for block in blocks:
        flat = block.reshape(-1)
        for first in range(0, flat.size, SLAB_ELEMENTS):
            part = flat[first : first + SLAB_ELEMENTS]
            values = part.astype(part.dtype.newbyteorder("<"), copy=False)
            if values.dtype.kind == "i":
                values = _zigzag(values)
            bits = int(values.max()).bit_length()
            if bits <= 7:
                yield values.astype(np.uint8).tobytes()
            elif bits <= _WORD_BITS:
                yield _split(values, 2 if bits <= 14 else 4 if bits <= 28 else 8)
            else:
                yield _split_wide(values)


def _zigzag(values: np.ndarray) -> np.ndarray:
    """Return 0, -1, 1, -2 … as 0, 1, 2, 3 …, in unsigned words of the same width."""
    words: np.ndarray = values >> values.dtype.type(8 * values.dtype.itemsize - 1)
    words ^= values << values.dtype.type(1)
    return words.view(f"<u{words.dtype.itemsize}")


def _split(values: np.ndarray, width: int) -> bytes:
    """Return the groups of values that fit words of `width` bytes: the inverse of `_join`."""
    word = np.dtype(f"<u{width}")
    words = values.astype(word)
    for lower, upper, shift in reversed(_STEPS[width]):
        high = words << word.type(shift)
        high &= word.type(upper)
        words &= word.type(lower)
        words |= high
    more = words >> word.type(8)  # a byte becomes nonzero where any byte above it is nonzero
    for distance in (8, 16, 32):
        if distance < 8 * (width - 1):
            more |= more >> word.type(distance)
    more += word.type(int.from_bytes(b"\x7f" * width, "little"))  # now its top bit says the same
    more &= word.type(int.from_bytes(b"\x80" * width, "little"))
    words |= more
    more <<= word.type(1)  # from "another byte follows" to "this byte is used", 0 or 1
    more |= word.type(1)
    groups: np.ndarray = words.view(np.uint8)[more.view(np.bool_)]
    return groups.tobytes()


def _split_wide(values: np.ndarray) -> bytes:
    """Return the groups of 64-bit values, some of which take nine or ten bytes."""
    groups = np.empty((values.size, MAX_GROUP_BYTES), np.uint8)
    used = np.empty(groups.shape, np.bool_)
    rest = values.copy()
    for number in range(MAX_GROUP_BYTES):
        groups[:, number] = rest & np.uint64(0x7F)
        used[:, number] = rest != 0
        rest >>= np.uint64(7)
    used[:, 0] = True
    groups[:, :-1] |= used[:, 1:].view(np.uint8) << np.uint8(7)
    return groups[used].tobytes()
