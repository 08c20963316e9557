"""Damaged copies of files: cut after every byte, and with single bits changed."""

from __future__ import annotations

import random

from raconvert.testing.cases import SEED
from raconvert.testing.kit import FLIPS, scratch, suffix_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import ModuleType

LONG, FIRST = 3072, 256  # bytes


def prefixes(plugin: ModuleType) -> Iterator[tuple[str, bytes]]:
    """Every sample cut after each of its bytes: name and content.

    One above 3 KiB, which is mostly data, is cut after its first bytes and then after every 16th.
    """
    for name, contents in plugin.FORMAT.samples.items():
        whole = len(contents) if len(contents) <= LONG else FIRST
        for length in (*range(whole), *range(whole, len(contents), 16)):
            yield f"{name} cut to {length} bytes", contents[:length]


def flipped(plugin: ModuleType) -> Iterator[tuple[str, bytes]]:
    """Copies of every sample with one byte changed: name and content."""
    rng = random.Random(SEED)  # noqa: S311 - reproducible on purpose
    for name, contents in plugin.FORMAT.samples.items():
        count = 8 * len(contents)
        for bit in sorted(rng.sample(range(count), min(FLIPS, count))):
            damaged = bytearray(contents)
            damaged[bit // 8] ^= 1 << bit % 8
            yield f"{name} with bit {bit % 8} of byte {bit // 8} flipped", bytes(damaged)


def damaged(
    plugin: ModuleType, contents: Iterable[tuple[str, bytes]]
) -> Iterator[tuple[Path, str]]:
    """Write each of the contents to one file in turn; yield its path and what it is."""
    with scratch() as folder:
        path = folder / f"damaged{suffix_of(plugin)}"
        for what, data in contents:
            path.write_bytes(data)
            yield path, what
