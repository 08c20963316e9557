"""Records of a file, in order, with their checksums verified; plain, or in gzip or zlib."""

from __future__ import annotations

import zlib
from struct import Struct

from raconvert.arrays.memory import check_memory
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.inflate import GZIP_WBITS, ZLIB_WBITS, Inflater

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from raconvert.files.source import Source

HEAD, CHECKSUM = Struct("<QI"), Struct("<I")
GZIP, ZLIB = b"\x1f\x8b", b"\x78"
PIECE_BYTES = 1 << 20  # bytes that are read at once
SHARE = 8  # the part of --max-memory, an eighth, for inflated data


def masked(checksum: int) -> int:
    """Return a checksum as a file has it: rotated, and moved by a constant."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of a few bytes, bit by bit.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def is_record(source: Source) -> bool:
    """True if a file, or its inflated data, begins with a length and its checksum."""
    head = source.head[: HEAD.size]
    if wrapping := _wrapping(source):
        try:
            head = zlib.decompressobj(wrapping).decompress(source.head, HEAD.size)
        except zlib.error:
            return False
    return len(head) == HEAD.size and _is_sound(head)


def _wrapping(source: Source) -> int:
    """Return the window bits of the deflated data in a file; 0 for a plain file."""
    head = source.head
    if head.startswith(GZIP):
        return GZIP_WBITS
    is_zlib = head.startswith(ZLIB) and len(head) > 1 and (head[0] << 8 | head[1]) % 31 == 0
    return ZLIB_WBITS if is_zlib and not _is_sound(head[: HEAD.size]) else 0


def _is_sound(head: bytes) -> bool:
    """True for a length with its checksum."""
    return len(head) == HEAD.size and masked(crc32c(head[:8])) == HEAD.unpack(head)[1]


class Content:
    """The bytes in which records lie: those of the file, or inflated in memory."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        wrapping = _wrapping(source)
        self.inflated = self._inflate(wrapping) if wrapping else None
        self.size = source.size if self.inflated is None else len(self.inflated)

    def _inflate(self, wrapping: int) -> bytes:
        """Inflate the whole file, all members of gzip. Raises `Corrupt` and `TooLarge`."""
        most, size = self.source.max_memory // SHARE, self.source.size
        whole, at = bytearray(), 0
        while at < size:
            stream = Inflater(self._pieces(at), wrapping, self.path)
            for piece in stream.pieces():
                whole += piece
                if len(whole) > most:
                    raise TooLarge(
                        "records are too many to be inflated in memory", path=self.path,
                        expected=f"at most {most} bytes", remedy="decompress the file first",
                    )  # fmt: skip
            at = self._read_to - len(stream.behind)
            if wrapping != GZIP_WBITS:
                break
        return bytes(whole)

    def _pieces(self, at: int) -> Iterator[bytes]:
        """Yield the bytes of the file from an offset on; `_read_to` is the offset behind them."""
        while piece := self.source.read_at(at, PIECE_BYTES):
            at += len(piece)
            self._read_to = at
            yield piece

    def read(self, at: int, nbytes: int) -> bytes:
        """Return the bytes at an offset. Raises `Corrupt` if the file ends before."""
        if self.inflated is not None:
            return self.inflated[at : at + nbytes]
        return self.source.read_exact(at, nbytes, "a record")

    def extents(self) -> Iterator[tuple[int, int]]:
        """Yield the offset and the length of each record; nothing else of it is read.

        Raises `Corrupt`.
        """
        at, begin, buffer, number = 0, 0, b"", 0
        piece = PIECE_BYTES
        while at < self.size:
            if not begin <= at <= begin + len(buffer) - HEAD.size:
                begin, buffer = at, self.read(at, min(piece, self.size - at))
            nbytes = self._length(buffer, at - begin, number, at)
            yield at + HEAD.size, nbytes
            # For long records the bytes between two lengths are not read.
            piece = HEAD.size if nbytes > PIECE_BYTES >> 4 else PIECE_BYTES
            at += HEAD.size + nbytes + CHECKSUM.size
            number += 1

    def _length(self, buffer: bytes, offset: int, number: int, at: int) -> int:
        """Return the length of the record at `offset` in the buffer, `at` in the file, verified.

        Raises `Corrupt`, also if the record goes on behind the end of the file.
        """
        import google_crc32c

        head = buffer[offset : offset + HEAD.size]
        if len(head) < HEAD.size:
            raise self._cut_off(number, at)
        nbytes, checksum = HEAD.unpack(head)
        if masked(google_crc32c.value(head[:8])) != checksum:
            raise self._wrong(number, at, "the length")
        at += HEAD.size
        if nbytes + CHECKSUM.size > self.size - at:
            raise self._cut_off(number, at)
        return int(nbytes)

    def verified(self, number: int, at: int, nbytes: int) -> bytes:
        """Return the bytes of a record, verified. Raises `Corrupt` and `TooLarge`."""
        check_memory(nbytes, self.source.max_memory, f"'{self.path}': record {number}")
        return self._checked(self.read(at, nbytes + CHECKSUM.size), 0, nbytes, number, at)

    def _checked(self, buffer: bytes, start: int, nbytes: int, number: int, at: int) -> bytes:
        """Return the bytes of a record in a buffer, compared with the checksum behind them."""
        import google_crc32c

        data = buffer[start : start + nbytes]
        if masked(google_crc32c.value(data)) != CHECKSUM.unpack_from(buffer, start + nbytes)[0]:
            raise self._wrong(number, at, "the data")
        return data

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the bytes of each record. Raises `Corrupt` and `TooLarge`."""
        at, begin, buffer, number = 0, 0, b"", 0
        while at < self.size:
            if at + HEAD.size > begin + len(buffer):
                begin, buffer = at, self.read(at, min(PIECE_BYTES, self.size - at))
            nbytes = self._length(buffer, at - begin, number, at)
            at += HEAD.size
            whole = nbytes + CHECKSUM.size
            if at + whole > begin + len(buffer):
                check_memory(nbytes, self.source.max_memory, f"'{self.path}': record {number}")
                begin, buffer = at, self.read(at, min(max(PIECE_BYTES, whole), self.size - at))
            yield at, self._checked(buffer, at - begin, nbytes, number, at)
            at += whole
            number += 1

    def _wrong(self, number: int, at: int, what: str) -> Corrupt:
        """Return the error for a wrong checksum."""
        return Corrupt(
            f"checksum of {what} of record {number} is wrong", path=self.path, where=f"byte {at}",
            remedy="copy the file again",
        )  # fmt: skip

    def _cut_off(self, number: int, at: int) -> Corrupt:
        """Return the error for a file that ends inside a record."""
        return Corrupt(
            f"file ends inside record {number}", path=self.path, where=f"byte {at}",
            got=f"{self.size - at} bytes", remedy="copy the file again",
        )  # fmt: skip
