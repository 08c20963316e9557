"""GIF animations, composed from patches: against libwebp, which composes them as browsers do."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from raconvert.plugins.image import gif

import raconvert
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.source import Source

NONE, KEEP, CLEAR, RESTORE = range(4)  # disposal
PALETTE = (np.arange(768).reshape(256, 3) * [7, 11, 13] % 251).astype("u1")
Patch = tuple[int, int, np.ndarray, int, "int | None", "np.ndarray | None"]


def lzw(indices: np.ndarray) -> bytes:
    """Return code size 8 and the pixels as 9-bit codes, cleared before the codes grow longer."""
    codes = [256]
    for number, index in enumerate(indices.ravel()):
        codes += [int(index)] if (number + 1) % 250 else [int(index), 256]
    spread = (np.array([*codes, 257])[:, None] >> np.arange(9)) & 1
    data = np.packbits(spread.astype("u1").ravel(), bitorder="little").tobytes()
    pieces = [data[at : at + 255] for at in range(0, len(data), 255)]
    return b"\x08" + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\0"


def animation(width: int, height: int, patches: list[Patch], background: int = 0) -> bytes:
    """Return a GIF of patches: left, top, indices, disposal, transparent index, own palette."""
    data = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, background, 0) + PALETTE.tobytes()
    for left, top, indices, disposal, clear, palette in patches:
        flags = disposal << 2 | (clear is not None)
        data += b"!\xf9\x04" + struct.pack("<BHB", flags, 7, clear or 0) + b"\0"
        rows, columns = indices.shape
        own = b"" if palette is None else palette.tobytes()
        data += b"," + struct.pack("<HHHHB", left, top, columns, rows, 0x87 * bool(own)) + own
        data += lzw(indices)
    return data + b";"


def random_patches(seed: int) -> tuple[int, int, list[Patch]]:
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(4, 12, 2))
    patches: list[Patch] = []
    for number in range(rng.integers(2, 6)):
        columns, rows = int(rng.integers(1, width + 1)), int(rng.integers(1, height + 1))
        if number == 0 and rng.random() < 0.7:
            columns, rows = width, height
        left, top = int(rng.integers(width - columns + 1)), int(rng.integers(height - rows + 1))
        indices = rng.integers(0, 8, (rows, columns), dtype="u1")
        indices[0, 0] = 8 + number  # always to be seen: libwebp drops frames that change nothing
        clear = int(rng.integers(4)) if rng.random() < 0.4 else None
        own = rng.integers(0, 256, (256, 3), dtype="u1") if rng.random() < 0.4 else None
        patches.append((left, top, indices, int(rng.integers(4)), clear, own))
    return width, height, patches


def seen_by_libwebp(path: Path, program: str) -> tuple[np.ndarray, bool]:
    """Return the frames, and whether there is alpha: without it, what is empty is black."""
    subprocess.run([program, "-quiet", path, "-o", path.with_suffix(".webp")], check=True)
    with Image.open(path.with_suffix(".webp")) as image:
        frames = []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGBA")))
        return np.stack(frames), image.mode == "RGBA"


@pytest.mark.parametrize("seed", range(60))
def test_frames_as_libwebp_sees_them(seed: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    """Pillow has wrong colours in 12 of these 60."""
    path = tmp_path / "x.gif"
    path.write_bytes(animation(*random_patches(seed), background=5))

    got = raconvert.read(path)

    expected, has_alpha = seen_by_libwebp(path, tool("gif2webp"))
    opaque = expected[..., 3] == 255
    assert got.shape[:-1] == opaque.shape
    assert np.array_equal(got[..., :3][opaque], expected[..., :3][opaque])
    if got.shape[-1] == 3:
        assert opaque.all()
    elif has_alpha:
        assert np.array_equal(got[..., 3] == 255, opaque)


def test_transparency_that_only_shows_what_is_below_gives_rgb(tmp_path: Path) -> None:
    whole = np.full((4, 5), 9, "u1")
    patch = np.array([[1, 3], [3, 1]], "u1")
    path = tmp_path / "x.gif"
    path.write_bytes(animation(5, 4, [(0, 0, whole, KEEP, None, None), (1, 1, patch, 1, 3, None)]))

    got = raconvert.read(path)

    assert got.shape == (2, 4, 5, 3)
    assert np.array_equal(got[1, 1, 1], PALETTE[1])
    assert np.array_equal(got[1, 1, 2], PALETTE[9])


def test_what_no_frame_covers_is_transparent(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    path.write_bytes(animation(4, 3, [(1, 1, np.full((1, 2), 6, "u1"), 0, None, None)]))

    got = raconvert.read(path)

    assert got[..., 3].tolist() == [[0] * 4, [0, 255, 255, 0], [0] * 4]
    assert np.array_equal(got[1, 1, :3], PALETTE[6])


@pytest.mark.parametrize(("clear", "beside"), [(None, 5), (2, 2)])
def test_indices_beside_the_only_frame(clear: int | None, beside: int, tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    patch = np.full((1, 2), 6, "u1")
    path.write_bytes(animation(4, 2, [(1, 1, patch, 0, clear, None)], background=5))

    got = raconvert.read(path, in_opts={"palette": "indices"})

    assert got.tolist() == [[beside] * 4, [beside, 6, 6, beside]]


def test_frames_in_any_order_are_those_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    path.write_bytes(animation(*random_patches(24)))
    whole = raconvert.read(path)

    with raconvert.open(path) as array:
        for key in (2, 0, 1, -1, slice(None, None, -1), slice(1, None), (slice(None), 1, 2), 2):
            assert np.array_equal(array[key], whole[key]), key
        before = array[1]
        kept = before.copy()
        array[2]
        assert np.array_equal(before, kept), "a frame is not drawn over by the next"


def test_a_small_file_of_many_large_frames_needs_permission(tmp_path: Path) -> None:
    """Bounded by frame, all of them would still fill the disk."""
    dot = np.zeros((1, 1), "u1")
    patches: list[Patch] = [(0, 0, dot, KEEP, None, None)] * 300
    path = tmp_path / "x.gif"
    path.write_bytes(animation(1000, 1000, patches))

    with pytest.raises(TooLarge, match="all its images together needs 1200000000 bytes"):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=1 << 30)
    assert not (tmp_path / "x.ra").exists()
    with gif.read(Source(str(path), max_memory=2 << 30)) as bundle:
        assert bundle.arrays[0][299, 0, :2].tolist() == [[*PALETTE[0].tolist(), 255], [0] * 4]


def test_code_sizes_that_gif_does_not_have(tmp_path: Path) -> None:
    data = animation(1, 1, [(0, 0, np.zeros((1, 1), "u1"), 0, None, None)])
    at = data.rindex(b"\x08\x04")
    (tmp_path / "x.gif").write_bytes(data[:at] + b"\x09" + data[at + 1 :])

    with pytest.raises(Corrupt, match="code size"):
        raconvert.read(tmp_path / "x.gif")


@pytest.mark.parametrize(
    ("disposal", "needed"),
    [(KEEP, (4 + 3 + 3 + 3) * 1_000_000), (RESTORE, (4 + 3 + 3 + 4) * 1_000_000)],
)
def test_what_is_announced_is_what_is_needed(disposal: int, needed: int, tmp_path: Path) -> None:
    """Screen, last and next image, and what a frame covers; the rest is a band, and data."""
    path = tmp_path / "x.gif"
    whole = np.zeros((1000, 1000), "u1")
    path.write_bytes(animation(1000, 1000, [(0, 0, whole, disposal, None, None)] * 3))
    with pytest.raises(TooLarge, match="its screen of 1000 × 1000"):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=9_000_000)
    raconvert.convert(path, tmp_path / "x.ra", max_memory=1 << 30)  # what is imported only now

    tracemalloc.start()
    raconvert.convert(path, tmp_path / "y.ra", max_memory=1 << 30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < needed + (6 << 20)


def test_a_comment_of_200000_blocks_is_read_block_by_block(tmp_path: Path) -> None:
    """Counted as calls: pieces that are put together once, not once for every piece."""
    path = tmp_path / "x.gif"
    data = animation(1, 1, [(0, 0, np.zeros((1, 1), "u1"), 0, None, None)])
    calls = []
    for count in (100_000, 200_000):
        comment = b"!\xfe" + b"\x01a" * count + b"\0"
        path.write_bytes(data[:-1] + comment + b";")
        tracemalloc.start()
        with raconvert.open(path) as array:
            assert array.meta.formats["image"]["comment"] == "a" * count
        calls.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert calls[1] < 2.5 * calls[0]
    assert calls[1] < 8 << 20


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_a_small_animation_on_a_large_screen_needs_permission(suffix: str, tmp_path: Path) -> None:
    """Known from the header, before a library makes the screen."""
    path = tmp_path / f"x{suffix}"
    frames = [Image.new("RGB", (4000, 4000), (n, 0, 0)) for n in (1, 2)]
    frames[0].save(path, save_all=True, append_images=frames[1:], lossless=True)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    with pytest.raises(TooLarge, match="--max-memory"):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=64 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 16 << 20
    assert not (tmp_path / "x.ra").exists()
