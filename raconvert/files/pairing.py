"""Seals, by which a file that names another proves that both are of one run.

A process that is killed between two renames leaves a new file beside an old one, which may well
fit each other in size. The text of the one therefore ends, or begins, with a line that holds the
CRC-32 of the rest of that text, and size and checksum of the other file. If the text was edited, or
rewritten by another program that carries comments along, its seal is ignored.
"""

from __future__ import annotations

from zlib import crc32

from raconvert.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Source


MARK = "raconvert seal: "
WHOLE_BYTES = 1 << 20  # up to this size the digest covers every byte
# For larger files: number and bytes of samples, evenly spread, with both ends.
SAMPLES, SAMPLE_BYTES = 64, 4096


def checksum(source: Source, start: int = 0, stop: int | None = None) -> str:
    """Return a CRC-32 of a stretch of a file as hex: of all of it, or of samples if it is large."""
    stop = source.size if stop is None else stop
    if stop - start <= WHOLE_BYTES:
        return f"{crc32(source.read_at(start, stop - start)):08x}"
    state = 0
    for number in range(SAMPLES):
        offset = start + (stop - start - SAMPLE_BYTES) * number // (SAMPLES - 1)
        state = crc32(source.read_at(offset, SAMPLE_BYTES), state)
    return f"{state:08x}"


def seal_of(text: bytes, other: Source) -> str:
    """Return the line that ties a text to another file."""
    return f"{MARK}{crc32(text):08x} {other.size} {checksum(other)}"


def check_seal(line: str, text: bytes, other: Source, path: str) -> None:
    """Raise `Corrupt` if a text (without its line) is sealed with another file than `other`.

    `path` is the file of the text.
    """
    words = line.strip().removeprefix(MARK).split()
    if len(words) != 3 or words[0] != f"{crc32(text):08x}":
        return
    current = f"{other.size} {checksum(other)}"
    if " ".join(words[1:]) != current:
        raise Corrupt(
            f"does not belong together with '{other.path}': one of them is older, or was changed",
            path=path,
            expected=f"size and checksum {words[1]} {words[2]}",
            got=current,
            remedy="write both again; if the data was changed on purpose, remove the line "
            f"'{MARK.strip()} …' from '{path}'",
        )
