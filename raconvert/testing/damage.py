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
    """Yield every sample cut after each of its bytes: a description and the content.

    One above 3 KiB, which is mostly data, is cut after its first 256 bytes and then every 16 bytes.
    """
    for name, contents in plugin.FORMAT.samples.items():
        whole = len(contents) if len(contents) <= LONG else FIRST
        for length in (*range(whole), *range(whole, len(contents), 16)):
            yield f"{name} cut to {length} bytes", contents[:length]


def flipped(plugin: ModuleType) -> Iterator[tuple[str, bytes]]:
    """Yield copies of every sample with one bit flipped: a description and the content."""
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
    """Write each of the contents to one file in turn; yield its path and the description."""
    with scratch() as folder:
        path = folder / f"damaged{suffix_of(plugin)}"
        for description, data in contents:
            path.write_bytes(data)
            yield path, description
