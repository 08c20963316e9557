"""The compiled loops of PNG: the same as what stands in for them, whatever they are given."""

from __future__ import annotations

import os
import random
import resource
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from raconvert.plugins.png import engine
from raconvert.plugins.png.stack import SMALL_FILE_BYTES, PngStack, read_alike

from raconvert.errors import RaconvertError
from raconvert.files.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(
    engine.fast is None, reason="the compiled loops were not built (no C compiler?)"
)

DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I4s", len(data), kind) + data + struct.pack(">I", zlib.crc32(kind + data))


def image(
    rng: random.Random, width: int, height: int, depth: int, color: int, filters: int = 5
) -> bytes:
    """Return a PNG of noise, compressible in part, with all kinds of row filters."""
    row_bytes = (width * CHANNELS[color] * depth + 7) // 8
    rows = b"".join(
        bytes([rng.randrange(filters)]) + rng.choices([rng.randbytes(row_bytes), bytes(row_bytes)])[0]
        for _ in range(height)
    )  # fmt: skip
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    palette = (
        chunk(b"PLTE", bytes(range(256)) * 3) if depth == 8 else chunk(b"PLTE", bytes(3 << depth))
    )
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            palette if color == 3 else b"",
            chunk(b"IDAT", zlib.compress(rows, rng.randrange(10))),
            chunk(b"IEND"),
        )
    )


def paths_of(folder: Path, files: list[bytes]) -> list[str]:
    paths = []
    for number, data in enumerate(files):
        paths.append(str(folder / f"{number:04d}.png"))
        Path(paths[-1]).write_bytes(data)
    return paths


def outcome(paths: list[str], **options: str) -> Any:
    """Return the pixels of the stack, or what is wrong with it."""
    options = {"palette": "expand", "depth": "expand", "trns": "keep", **options}
    try:
        source = PngStack(paths, Limits(memory=1 << 28), **options)
        return [block.tobytes() for block in source.stream(1 << 20)], source.notes
    except RaconvertError as error:
        return str(error)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return `both(function, *arguments)`: its result, the same with the loops and without."""

    def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        compiled = function(*arguments, **options)
        with monkeypatch.context() as patched:
            patched.setattr(engine, "fast", None)
            assert function(*arguments, **options) == compiled
        return compiled

    return call


# Filters ------------------------------------------------------------------------------------------


def test_paeth_for_every_three_bytes() -> None:
    """One pixel of 64 KiB holds every pair of bytes above and upper left of it."""
    width = 1 << 16
    above, corner = np.divmod(np.arange(width), 256)
    top = np.concatenate([[0], corner, above]).astype(np.uint8)
    for left in range(256):
        rest = np.concatenate([[4], left - corner, np.zeros(width)]).astype(np.int64)
        stream = top.tobytes() + rest.astype(np.uint8).tobytes()
        plain = np.empty((1, 2, 2 * width), np.uint8)
        assert engine.fast.unfilter([stream], 0, width, plain)
        assert (plain[0, 1, :width] == left).all()
        estimate = left + above - corner
        far = np.abs([estimate - left, estimate - above, estimate - corner])
        nearest = np.choose(far.argmin(axis=0), [np.full(width, left), above, corner])
        assert (plain[0, 1, width:] == nearest).all()


@pytest.mark.parametrize(
    ("color", "depth"), [(c, d) for c, depths in DEPTHS.items() for d in depths]
)
def test_every_type_of_image(
    tmp_path: Path, both: Callable[..., Any], color: int, depth: int
) -> None:
    rng = random.Random(depth + color)
    for width, height in ((1, 1), (1, 9), (9, 1), (13, 7), (40, 40)):
        files = [image(rng, width, height, depth, color) for _ in range(9)]
        found = both(outcome, paths_of(tmp_path, files), palette="indices", depth="native")
        assert isinstance(found, tuple), found
        alone = [outcome([path])[0] for path in paths_of(tmp_path, files)]
        assert both(outcome, paths_of(tmp_path, files))[0] == [b"".join(b"".join(a) for a in alone)]


def test_unknown_filters_are_told() -> None:
    place = np.empty((2, 2, 3), np.uint8)
    for code in range(256):
        streams = [bytes(8), bytes([0, 1, 2, 3, code, 4, 5, 6])]
        assert engine.fast.unfilter(streams, 0, 1, place) == (code < 5)


def test_unfilter_refuses_what_does_not_fit() -> None:
    def call(streams: Any = (bytes(8),), start: int = 0, pixel: int = 1, place: Any = None) -> Any:
        if place is None:
            place = np.empty((1, 2, 3), np.uint8)
        return engine.fast.unfilter(list(streams), start, pixel, place)

    assert call() is True
    assert call([bytes(9)], 1) is True
    assert call([bytes(8)], pixel=1 << 62) is True
    for wrong in (
        {"streams": [bytes(7)]},
        {"streams": [bytes(8)], "start": 1},
        {"start": -1},
        {"start": (1 << 63) - 1},
        {"pixel": 0},
        {"place": np.empty((1, 2, 0), np.uint8)},
        {"place": np.empty((2, 3), np.uint8)},
        {"place": np.empty((1, 2, 3), np.uint16)},
        {"place": np.empty((1, 2, 6), np.uint8)[:, :, ::2]},
    ):
        with pytest.raises((ValueError, BufferError)):
            call(**wrong)
    with pytest.raises(IndexError):
        call([])
    with pytest.raises(TypeError):
        call([None])
    with pytest.raises(BufferError):
        call(place=memoryview(bytes(6)).cast("B", (1, 2, 3)))
    assert call([], place=np.empty((0, 1 << 30, 1 << 30), np.uint8)) is True
    assert call(place=np.empty((1, 0, 3), np.uint8)) is True


# Files --------------------------------------------------------------------------------------------


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return a file with some damage, often with checksums that hide it."""
    wrong = bytearray(data)
    place = rng.randrange(len(wrong))
    kind = rng.randrange(6)
    if kind == 0:
        wrong[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        wrong = wrong[:place]
    elif kind == 2:
        wrong[place:place] = rng.randbytes(rng.randrange(1, 9))
    elif kind == 3:
        del wrong[place : place + rng.randrange(1, 9)]
    else:
        start = data.index(b"IDAT") + 4
        nbytes = struct.unpack(">I", data[start - 8 : start - 4])[0]
        pixels = bytearray(data[start : start + nbytes])
        if kind == 4:  # inside the zlib stream
            pixels[rng.randrange(nbytes)] = rng.randrange(256)
        else:  # inside the rows
            rows = bytearray(zlib.decompress(pixels))
            rows[rng.randrange(len(rows))] = rng.randrange(256)
            pixels = zlib.compress(rows[: rng.choice([-1, None])]) + b"x" * rng.choice([0, 0, 1])
        wrong = data[: start - 8] + chunk(b"IDAT", pixels) + data[start + nbytes + 4 :]
    return bytes(wrong)


@pytest.mark.parametrize("seed", range(30))
def test_damage_has_the_same_consequences(
    tmp_path: Path, both: Callable[..., Any], seed: int
) -> None:
    rng = random.Random(seed)
    color = rng.choice(list(DEPTHS))
    depth = rng.choice(DEPTHS[color])
    good = [image(rng, rng.randrange(1, 40), 5, depth, color)] * 3
    for _ in range(20):
        both(outcome, paths_of(tmp_path, [*good, mutated(rng, good[0])]))


def test_what_is_no_file_like_the_others(tmp_path: Path) -> None:
    good = image(random.Random(0), 8, 8, 8, 0)
    start = good.index(b"IDAT") - 4
    lead, tail = good[:start], good[-12:]
    pixels = good[start + 8 : -16]
    paths = paths_of(tmp_path, [good, b"", good[:-1], good + b"x", good[:start], lead + tail])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(paths[0])
    (tmp_path / "nowhere").symlink_to("nothing")
    (tmp_path / "ümlaut \udcff").write_bytes(good)
    odd = [
        "folder",
        "pipe",
        "link",
        "nowhere",
        "missing",
        "\0",
        "\ud800",
        "x" * 5000,
        "ümlaut \udcff",
    ]
    paths += [str(tmp_path / name) for name in odd] + ["", "/dev/zero", "/dev/null"]

    found = engine.fast.read_alike(paths, lead, tail)

    assert found == read_alike(paths, lead, tail)
    assert [number for number, one in enumerate(found) if one is not None] == [0, 8, 14]
    assert found[0] == found[8] == found[14] == pixels
    assert read_alike(paths, lead, b"") == engine.fast.read_alike(paths, lead, b"")
    with pytest.raises(TypeError):
        engine.fast.read_alike([1], lead, tail)
    with pytest.raises(TypeError):
        engine.fast.read_alike(tuple(paths), lead, tail)


@pytest.mark.parametrize("more", range(-2, 3))
def test_the_longest_small_file(tmp_path: Path, more: int) -> None:
    around = image(random.Random(0), 1, 1, 8, 0)
    start = around.index(b"IDAT") - 4
    lead, tail = around[:start], around[-12:]
    pixels = bytes(SMALL_FILE_BYTES - len(lead) - len(tail) - 12 + more)
    paths = paths_of(tmp_path, [lead + chunk(b"IDAT", pixels) + tail])
    found = engine.fast.read_alike(paths, lead, tail)
    assert found == read_alike(paths, lead, tail) == [pixels if more <= 0 else None]


def test_checksums_of_every_length(tmp_path: Path) -> None:
    rng = random.Random(0)
    files = [chunk(b"IDAT", rng.randbytes(nbytes)) for nbytes in range(100)]
    assert engine.fast.read_alike(paths_of(tmp_path, files), b"", b"") == [f[8:-4] for f in files]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """Neither memory nor descriptors, of files that are alike or odd."""
    rng = random.Random(1)
    good = image(rng, 30, 30, 8, 2)
    files = [good] * 40 + [mutated(rng, good) for _ in range(40)]
    paths = [*paths_of(tmp_path, files), "\0"]
    start = good.index(b"IDAT") - 4
    place = np.empty((1, 30, 90), np.uint8)

    def use(times: int) -> None:
        for _ in range(times):
            engine.fast.read_alike(paths, good[:start], good[-12:])
            for stream in (bytes(30 * 91), bytes(9), b"\5" * 30 * 91):
                try:
                    engine.fast.unfilter([stream], 0, 3, place)
                except ValueError:
                    pass

    use(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    descriptors = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    use(200)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # KiB
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) == len(descriptors)
