"""The compiled loops of PNG under the address and undefined-behaviour sanitisers.

They are compiled anew, with a Python of their own around them, and compared with the standard's
words (unfilter) and with what stands in for them (read_alike) on random and on hostile input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sanitised import ROOT, built, counts_of, hardened, run, spoiled

SOURCE = ROOT / "plugins" / "png" / "_fast.c"

PROGRAM = r"""
import importlib.machinery, importlib.util, os, random, struct, sys, tempfile, zlib

loader = importlib.machinery.ExtensionFileLoader("_fast", sys.argv[1])
fast = importlib.util.module_from_spec(importlib.util.spec_from_loader("_fast", loader))
loader.exec_module(fast)
rng = random.Random(9)
counts = {"unfilter": 0, "refused": 0, "alike": 0, "odd": 0}


def paeth(a, b, c):
    p = a + b - c
    distance = {a: abs(p - a), b: abs(p - b), c: abs(p - c)}
    return min((a, b, c), key=distance.__getitem__)


def unfiltered(stream, start, pixel, height, width):
    out, above = bytearray(), bytes(width)
    for row in range(height):
        at = start + row * (1 + width)
        kind, data, line = stream[at], stream[at + 1 : at + 1 + width], bytearray()
        for i, x in enumerate(data):
            a, c = (line[i - pixel], above[i - pixel]) if i >= pixel else (0, 0)
            b = above[i]
            line.append((x + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255)
        out += line
        above = line
    return bytes(out)


for _ in range(1500):
    images, height, width = rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 40)
    pixel, start = rng.choice([1, 2, 3, 4, 6, 8, 300]), rng.choice([0, 0, 1, 7])
    streams = []
    for _ in range(images):
        rows = b"".join(bytes([rng.randrange(5)]) + rng.randbytes(width) for _ in range(height))
        streams.append(rng.randbytes(start) + rows)
    hostile = rng.choice(["", "", "", "filter", "short", "few", "start", "pixel", "type", "shape"])
    place = bytearray(images * height * width)
    view = memoryview(place).cast("B", (images, height, width))
    given = list(streams)
    if hostile == "filter":
        odd = bytearray(given[-1]); odd[start] = rng.randint(5, 255); given[-1] = bytes(odd)
    elif hostile == "short":
        given[-1] = given[-1][: rng.randrange(len(given[-1]))]
    elif hostile == "few":
        given.pop()
    elif hostile == "start":
        start = rng.choice([-1, -(1 << 62), 1 << 62, sys.maxsize])
    elif hostile == "pixel":
        pixel = rng.choice([0, -1, -sys.maxsize])
    elif hostile == "type":
        given[0] = rng.choice(["text", None, 5])
    elif hostile == "shape":
        view = rng.choice([memoryview(place), memoryview(place).cast("B", (1, len(place))), bytes(9)])
    try:
        done = fast.unfilter(given, start, pixel, view)
    except (ValueError, TypeError, IndexError, BufferError, OverflowError):
        assert hostile, "valid input was refused"
        counts["refused"] += 1
        continue
    assert hostile in ("", "filter"), hostile
    assert done is (hostile == ""), hostile
    if done:
        expected = b"".join(unfiltered(s, start, pixel, height, width) for s in streams)
        assert bytes(place) == expected
        counts["unfilter"] += 1


def alike(path, lead, tail):
    # What the plugin says of one file where the compiled loops are missing.
    try:
        with open(path, "rb") as file:
            data = file.read(65537)
    except (OSError, ValueError):
        return None
    size = len(data) - len(lead) - len(tail) - 12
    head = lead + struct.pack(">I", max(0, size)) + b"IDAT"
    if size < 0 or len(data) > 65536 or not data.startswith(head) or not data.endswith(tail):
        return None
    pixels = data[len(head) : len(head) + size]
    crc = data[len(head) + size : len(head) + size + 4]
    return pixels if struct.pack(">I", zlib.crc32(b"IDAT" + pixels)) == crc else None


with tempfile.TemporaryDirectory() as folder:
    fifo = os.path.join(folder, "pipe")
    os.mkfifo(fifo)
    for number in range(400):
        lead, tail = rng.randbytes(rng.choice([0, 33, 200])), rng.randbytes(rng.choice([0, 12]))
        pixels = rng.randbytes(rng.choice([0, 1, 15, 16, 17, 900, 65536 - 300, 65536]))
        data = lead + struct.pack(">I4s", len(pixels), b"IDAT") + pixels
        data += struct.pack(">I", zlib.crc32(b"IDAT" + pixels)) + tail
        if rng.random() < 0.5:
            damaged = bytearray(data)
            if damaged:
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            data = rng.choice([bytes(damaged), data[: rng.randrange(len(data) + 1)], data + b"x", b""])
        path = os.path.join(folder, str(number % 5))
        with open(path, "wb") as file:
            file.write(data)
        paths = [path, folder, "\0", os.path.join(folder, "missing"), path]
        found = fast.read_alike([*paths, fifo], lead, tail)
        expected = [alike(p, lead, tail) for p in paths]
        assert found == [*expected, None]
        counts["alike" if expected[0] is not None else "odd"] += 1
print(counts)
"""


@pytest.fixture(scope="module")
def sanitised(
    tmp_path_factory: pytest.TempPathFactory, library: Callable[..., tuple[str, list[str]]]
) -> tuple[Path, str]:
    return built(SOURCE, tmp_path_factory.mktemp("sanitised"), library, shim=False)


def test_random_and_hostile_input(sanitised: tuple[Path, str]) -> None:
    counts = counts_of(*sanitised, PROGRAM)

    assert counts["unfilter"] > 400
    assert min(counts.values()) > 50


def test_the_sanitisers_are_at_work(sanitised: tuple[Path, str], tmp_path: Path) -> None:
    """The same with a fault put in: a row filter that writes beyond the NUL behind the bytes."""
    good, bad = "memcpy(out, in, nbytes);", "memcpy(out, in, nbytes + 2);"
    done = run(spoiled(SOURCE, good, bad, tmp_path), sanitised[1], PROGRAM)

    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the words of GNU ld")
def test_the_build_is_hardened(
    tmp_path: Path, tool: Callable[..., str], library: Callable[..., tuple[str, list[str]]]
) -> None:
    """As setup.py builds it: all symbols are resolved at the start, and then read-only."""
    library("python")
    hardened("_fast*.so", tmp_path, tool("readelf"))
