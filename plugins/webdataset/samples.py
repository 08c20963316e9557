"""The samples of shards: their keys, and for each extension where its members lie."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from raconvert.errors import Corrupt, Unsafe, Unsupported, listed
from raconvert.files import tars
from raconvert.files.names import is_inside
from raconvert.files.window import Window

from .tables import split_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Source

__all__ = ["Column", "Samples", "samples_of"]

LONGEST_SHOWN = 200  # characters of a name in a message


class Column:
    """The members of one extension, one for each sample as long as none is missing.

    `gap` is the number of the first sample without one, or None.
    """

    __slots__ = ("extension", "gap", "offsets", "samples", "sizes", "word")

    def __init__(self, samples: Samples, extension: str) -> None:
        self.samples: Samples = samples
        self.word: str = extension.lower()  # extensions that differ in case are one
        self.extension: str = extension
        self.offsets: array[int] = array("q")
        self.sizes: array[int] = array("q")
        self.gap: int | None = None

    def add(self, number: int, extension: str, offset: int, size: int) -> None:
        """Add the member of a sample."""
        if extension != self.extension:  # some have it in capitals, some not
            self.extension = self.word
        if self.gap is None and len(self.sizes) < number:
            self.gap = len(self.sizes)
        self.offsets.append(offset)
        self.sizes.append(size)

    def missing(self) -> int | None:
        """Return the number of the first sample that has no such member, or None."""
        if self.gap is None and len(self.sizes) < len(self.samples.keys):
            return len(self.sizes)
        return self.gap

    def member(self, number: int) -> str:
        """Return the name of the member of a sample, for messages."""
        return f"{self.samples.keys[number]}.{self.extension}"

    def shard(self, number: int) -> Source:
        """Return the shard of a sample."""
        starts = self.samples.starts
        return self.samples.shards[bisect_right(starts, number) - 1]

    def window(self, number: int) -> Window:
        """Return the member of a sample as a file of its own."""
        shard, name = self.shard(number), self.member(number)
        return Window(shard, name, self.offsets[number], self.sizes[number])

    def read(self, number: int) -> bytes:
        """Return the bytes of the member of a sample."""
        what = f"member '{self.member(number)}'"
        return self.shard(number).read_exact(self.offsets[number], self.sizes[number], what)


class Samples:
    """The samples of several shards in order, and their members by extension."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.shards: list[Source] = []
        self.starts: list[int] = []  # the number of the first sample of each shard
        self.columns: dict[str, Column] = {}
        self.notes: list[str] = []
        self._others: list[str] = []
        self._characters = 0
        self._extensions: set[str] = set()  # of the current sample

    def add_shard(self, source: Source) -> None:
        """Add the samples of a shard, behind those of the shards before it."""
        self.shards.append(source)
        self.starts.append(len(self.keys))
        seen: set[str] = set()
        end = 0
        for member in tars.members(source):
            end = member.end
            if member.kind == "folder":
                continue
            _check(member, source)
            parts = split_name(member.name)
            if parts is None:
                self._others.append(member.name)
                continue
            key, extension = parts
            if not seen or self.keys[-1] != key:
                if key in seen:
                    raise _scattered(source, key, member)
                seen.add(key)
                self._begin(source, key)
            self._add(source, extension, member)
        if trailing := tars.trailing_bytes(source, end + len(tars.END)):
            self.notes.append(f"'{source.path}': {trailing} bytes after the archive were ignored")

    def _begin(self, source: Source, key: str) -> None:
        """Begin a sample. Raises `Unsupported` if all keys together are too long."""
        self._characters += len(key)
        if self._characters > source.limits.path_characters:
            raise Unsupported(
                "the keys of all samples are too long", path=source.path,
                expected=f"at most {source.limits.path_characters} characters",
                remedy="read fewer shards at once",
            )  # fmt: skip
        self.keys.append(key)
        self._extensions.clear()

    def _add(self, source: Source, extension: str, member: tars.Member) -> None:
        """Add a member to the last sample. Raises `Corrupt` for a second one of its extension."""
        word = extension.lower()
        if word in self._extensions:
            raise Corrupt(
                f"sample '{self.keys[-1]}' has two members '{word}'", path=source.path,
                where=f"byte {member.begin}",
                expected="one of each extension, in capitals or not",
            )  # fmt: skip
        self._extensions.add(word)
        column = self.columns.get(word)
        if column is None:
            if len(self.columns) == source.limits.structure_fields:
                raise Unsupported(
                    "has too many extensions to be samples", path=source.path,
                    expected=f"at most {source.limits.structure_fields}",
                )  # fmt: skip
            column = self.columns[word] = Column(self, extension)
        column.add(len(self.keys) - 1, extension, member.offset, member.size)

    def note_others(self) -> None:
        """Add a note about members that are not of a sample, if there are any."""
        if self._others:
            names = [repr(name) for name in self._others]
            self.notes.append(f"left out, as they have no key or no extension: {listed(names)}")


def samples_of(sources: list[Source]) -> Samples:
    """Return the samples of shards; reads headers only.

    Raises `Corrupt`, `Unsafe` and `Unsupported`.
    """
    samples = Samples()
    for source in sources:
        samples.add_shard(source)
    samples.note_others()
    return samples


def _check(member: tars.Member, source: Source) -> None:
    """Refuse what is not a file, and names that lead elsewhere or are not UTF-8."""
    where = f"byte {member.begin}"
    if member.kind != "file":
        raise Unsafe(
            f"member '{_short(member.name)}' is {member.kind}", path=source.path, where=where,
            expected="files only",
            remedy="make the archive anew, with files in the place of links",
        )  # fmt: skip
    try:
        member.name.encode()
    except UnicodeEncodeError:
        raise Unsupported(
            "has a member whose name is not UTF-8", path=source.path, where=where,
            got=ascii(_short(member.name)),
        ) from None  # fmt: skip
    if not is_inside(member.name):
        raise Unsafe(
            "has a member whose name leads out of the archive", path=source.path, where=where,
            expected="a relative path without '..'", got=repr(_short(member.name)),
        )  # fmt: skip


def _scattered(source: Source, key: str, member: tars.Member) -> Corrupt:
    """Return the error for a sample with other samples between its members."""
    return Corrupt(
        f"the members of sample '{_short(key)}' do not follow each other", path=source.path,
        where=f"byte {member.begin}", expected="all members of a key in a row",
        remedy="make the archive anew, with its members in the order of their names",
    )  # fmt: skip


def _short(name: str) -> str:
    """Return a name as a message shows it, cut if it is long."""
    return name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "..."
