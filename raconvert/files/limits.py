"""Bounds of memory, work, counts and depth for one source: parsers ask them, tests lower them."""

from __future__ import annotations

from threading import Lock

from raconvert.declared import Record
from raconvert.errors import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Limits(Record):
    """Bounds that hold for a source wherever it lies: in a file, in a folder, at a URL.

    `memory` is --max-memory: bytes that decoding may hold at once. No option changes the
    others; their defaults are far above the numbers in sound files.
    """

    memory: int = 1 << 30
    document: int = 16 << 20  # bytes of one metadata document, of a record in a file, of a string
    record: int = 1 << 20  # bytes of a record of a known kind: an extended header, a list of names
    header: int = 1 << 18  # bytes of a header that is parsed: 5000 fields; NumPy reads 10,000 bytes
    window: int = 1 << 16  # bytes in which a header of some lines must end
    line: int = 4 << 20  # bytes of one line of a header
    lines: int = 1 << 16  # of a header
    name: int = 4096  # bytes of the name of an array; programs write 63
    number: int = 1 << 11  # bytes of one number in a text; the longest exact double has 1079
    lengths: int = 4096  # bytes of the lengths of axes: 1024 axes
    digits: int = 512  # of a number in a header: tarfile before 3.11.10 takes the square as time
    directory: int = 8 << 20  # bytes of the directory of an archive; ten times as many in memory
    members: int = 300_000  # of an archive: a hundred thousand arrays and what may lie beside them
    trailing: int = 1 << 20  # bytes behind the array in a member of an archive
    surplus: int = 64 << 20  # decoded bytes that do not belong to the array
    chunks: int = 200_000  # of one image: a file of 1.5 GiB in pieces of 8 KiB
    scans: int = 500  # of one image, each a pass over all its pixels; encoders make ten
    chunk: int = 8 << 20  # bytes of one chunk of metadata that is kept in memory, also inflated
    metadata: int = 32 << 20  # bytes of all of these
    pages: int = 1 << 10  # characters of a description for each page that it describes
    read: int = 8  # times that the bytes of a file may be read for its directories, and a record
    documents: int = 64 << 20  # bytes of one that has those of a whole hierarchy
    nesting: int = 64  # lists and mappings, or structs and cells, inside each other
    values: int = 400_000  # of one YAML document: about two seconds
    attributes: int = 128 << 20  # bytes of the plain values that all attributes of a file become
    nodes: int = 200_000  # arrays and groups of one file; some kilobytes each in memory
    depth: int = 500  # groups inside each other
    links: int = 200_000  # of one file, beside the first name of each of its objects
    names: int = 32 << 20  # characters of all paths in a file: each has those of its groups in it
    ways: int = 1_000_000  # names that all links of a file lead along
    follows: int = 40  # links on the way of one path
    others: int = 100  # further files that one file may name
    maps: int = 8  # virtual datasets that take their elements from each other
    reads: int = 100_000  # sources of a virtual dataset, and theirs
    search: int = 64 << 20  # bytes that are looked through, for a mark or for ends of lines
    fields: int = 10_000  # fields of a structure, its columns, or the texts in it
    types: int = 32  # types inside types
    trees: int = 16  # levels of a tree of records
    blocks: int = 1000  # of the header of one object
    grid: int = 1 << 20  # chunks of an array beyond the bytes of its file; a second or two
    shared: int = 32  # times that the bytes of a file may be read as attributes
    axis: int = 1 << 16  # values of a scale that are read to describe an axis
    labels: int = 1000  # values of an irregular scale that become labels
    brackets: int = 50  # of an expression, inside each other
    again: int = 1000  # uses of structs and cells after the first one of each
    given: int = 8  # variables beyond the limits, after which the file is refused
    holes: int = 1 << 20  # elements of a cell that need not be there
    probed: int = 1000  # headers that are followed to know a format
    empty: int = 100  # headers without records, which a file may have but hardly does
    unnamed: int = 100  # damaged names that are looked at one by one
    text: int = 4 << 20  # bytes of a text that is kept without being understood
    raw: int = 1 << 16  # bytes of other records that are
    word: int = 64  # characters of the name of a type
    steps: int = 16  # codecs in a chain
    shards: int = 3  # shards inside shards
    counted: int = 100_000  # files of a folder that are counted when it is opened
    listed: int = 1_000_000  # files of a folder of which the names are kept
    indexes: int = 16 << 20  # bytes of indexes of shards that are read to count their chunks
    repeats: int = 16  # times that the bytes of a shard may be decoded, as parts may overlap
    dictionary: int = 1 << 26  # bytes of the dictionary of an LZMA stream; xz -9 takes as many
    decoder: int = 128 << 20  # bytes that liblzma may take for itself
    ratio: int = 1 << 18  # bytes that stored bytes may become beyond `memory`; Zstandard: 1 << 15
    sparse: int = 1000  # pieces or bytes that may be absent for each one that is stored
    piece: int = 16 << 20  # bytes of an absent piece that `sparse` counts
    absent: int = 10_000  # requests that a server may answer with "not there", if it has no more


DEFAULT = Limits()


# Counts of what reading one array has cost, compared with what there really is -------------------


class Found:
    """Pieces of one array that were looked for: how many there are, and how many there are not.

    Counted while the array is read, for all threads that read it. `nbytes` is the size of a piece
    when it is decoded; `asked` says that each absent piece costs a request to a server. `parts`
    counts the smallest units that are there: chunks, also those of a shard.
    """

    __slots__ = (
        "_lock", "absent", "asked", "limits", "nbytes", "parts", "path", "stored", "there", "what",
    )  # fmt: skip

    def __init__(
        self, limits: Limits, nbytes: int, what: str, path: str, *, asked: bool = False
    ) -> None:
        self.limits: Limits = limits
        self.nbytes: int = nbytes
        self.what: str = what
        self.path: str = path
        self.asked: bool = asked
        self.there: int = 0
        self.stored: int = 0
        self.absent: int = 0
        self.parts: int = 0
        self._lock = Lock()

    def add(self, stored: int | None) -> None:
        """Count a piece of `stored` bytes, or one that is not there (None).

        Raises `TooLarge` if a server has far fewer pieces than it is asked for.
        """
        with self._lock:
            if stored is None:
                self.absent += 1
            else:
                self.there += 1
                self.stored += stored
        most = max(self.limits.absent, self.limits.sparse * (self.there + 1))
        if self.asked and self.absent > most:
            raise self.too_many(most)

    def add_parts(self, count: int) -> None:
        """Count units that are there. Raises nothing."""
        with self._lock:
            self.parts += count

    def too_many(self, most: int) -> TooLarge:
        """The error for an array of which nearly no piece was found. Raises nothing."""
        return TooLarge(
            f"{self.what} is cut into many chunks, of which few are there", path=self.path,
            expected=f"at most {most} requests for chunks that are absent", got=self._counts(),
            remedy="choose a part of it, or copy it to a disk, where it can be listed",
        )  # fmt: skip

    def check(self) -> None:
        """Refuse (`TooLarge`) elements that are little more than a fill value, or a few bytes."""
        limits = self.limits
        filled = self.absent * self.nbytes
        room = limits.sparse * (self.there + 1) * min(self.nbytes, limits.piece)
        if filled > max(limits.memory, room):
            raise self._too_much(filled, "are little more than a fill value")
        decoded = self.there * self.nbytes
        if decoded > max(limits.memory, limits.ratio * self.stored):
            raise self._too_much(decoded, f"have only {self.stored} bytes stored")

    def _too_much(self, nbytes: int, why: str) -> TooLarge:
        memory = -(-nbytes // (1 << 20))
        return TooLarge(
            f"{self.what} declares {nbytes} bytes that {why}", path=self.path, got=self._counts(),
            expected=f"at most {self.limits.memory} (`--max-memory`), unless more is stored",
            remedy=f"choose a part of it, or allow it with `--max-memory {memory}M`",
        )  # fmt: skip

    def _counts(self) -> str:
        return f"{self.there} of {self.there + self.absent} chunks"


class Work:
    """Bytes that may still be decoded for one stored piece; `spend` counts them.

    `parts` are the units of the piece that began in what was read of it.
    """

    __slots__ = ("_left", "_most", "parts")

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        self.parts: int = 0

    def spend(self, nbytes: float, what: str, **where: Any) -> None:
        """Count bytes that are decoded; `TooLarge` where all of them are spent."""
        self._left -= int(nbytes)
        if self._left < 0:
            raise TooLarge(
                f"{what} would decode the same bytes again and again",
                expected=f"at most {self._most} bytes", got=f"{self._most - self._left} or more",
                remedy="write it again: parts of a shard do not overlap", **where,
            )  # fmt: skip
