"""The header of a CFL file: text to lengths of axes, and back."""

from __future__ import annotations

import re
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN
from raconvert.errors import Corrupt
from raconvert.files.seal import MARK, check_seal
from raconvert.plugin import Array, Source, element

ELEMENT = element("complex", 8)
MAGIC = b"# Dimensions"
MOST_AXES = 16  # BART's
NAMESPACE = "cfl"
_SEAL = re.compile(f"^# {MARK}.*\n".encode(), re.MULTILINE)
_LENGTHS = re.compile(rb"^# Dimensions[ \t\r]*\n([0-9 \t]+)\r?(?:\n|\Z)", re.MULTILINE)


def read_header(source: Source, data: Source) -> tuple[tuple[int, ...], str]:
    """The lengths, the fastest axis first, and the text of the other sections.

    Raises `Corrupt`, also for data that is not what the header was written with.
    """
    most = source.limits.window
    text = source.read_exact(0, source.size, "the header") if source.size <= most else b""
    found = _LENGTHS.search(text)
    if found is None:
        raise Corrupt(
            "has no lengths of axes", path=source.path, where="byte 0",
            expected=f"a line '# Dimensions' and numbers, in at most {most} bytes",
            got=source.head[:40],
        )  # fmt: skip
    words = found[1].split()
    dims = tuple(int(word) for word in words if len(word) < 20)
    if not 1 <= len(words) <= MOST_AXES or len(dims) != len(words) or 0 in dims:
        raise Corrupt("wrong lengths of axes", path=source.path, where="# Dimensions",
                      expected="1 to 16 lengths of 1 or more", got=found[1][:80])  # fmt: skip
    if prod(dims) * ELEMENT.nbytes > MAX_SPAN:
        raise Corrupt("array is too large", path=source.path, expected="fewer than 2**63 bytes")
    rest = text[: found.start()] + text[found.end() :]
    if seal := _SEAL.search(text):
        line = seal[0].decode("utf-8", "replace")[2:]
        check_seal(line, text.replace(seal[0], b"", 1), data, source.path)
        rest = rest.replace(seal[0], b"", 1)
    return dims, rest.decode("utf-8", "surrogateescape")


def header_bytes(array: Array, sections: str) -> bytes:
    """The whole text of a header but the seal."""
    lengths = " ".join(map(str, array.dims or (1,)))
    return MAGIC + f"\n{lengths}\n".encode() + sections.encode("utf-8", "surrogateescape")


def sealed(text: bytes, seal: str) -> bytes:
    """The text of a header with the comment of a seal behind the lengths."""
    first, second, *rest = text.splitlines(keepends=True)
    return b"".join([first, second, f"# {seal}\n".encode(), *rest])
