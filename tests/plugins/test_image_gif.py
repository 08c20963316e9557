"""GIF of one frame, put together byte by byte; what would have to be composed is refused."""

from __future__ import annotations

import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.errors import Corrupt, Unsupported

KEEP = 1  # disposal
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


def test_a_frame_of_its_own_palette(tmp_path: Path, tool: Callable[..., str]) -> None:
    """One that fills its screen, as giftopnm decodes it."""
    rng = np.random.default_rng(3)
    indices = rng.integers(0, 256, (30, 40), dtype="u1")
    for own in (None, rng.integers(0, 256, (256, 3), dtype="u1")):
        path = tmp_path / "x.gif"
        path.write_bytes(animation(40, 30, [(0, 0, indices, KEEP, None, own)]))
        done = subprocess.run([tool("giftopnm"), path], check=True, capture_output=True)
        (tmp_path / "x.ppm").write_bytes(done.stdout)

        got = raconvert.read(path)

        assert np.array_equal(got, (PALETTE if own is None else own)[indices])
        assert np.array_equal(got, raconvert.read(tmp_path / "x.ppm"))


def test_a_transparent_colour_keeps_its_values(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    indices = np.array([[1, 3], [3, 1]], "u1")
    path.write_bytes(animation(2, 2, [(0, 0, indices, KEEP, 3, None)]))

    got = raconvert.read(path)

    assert np.array_equal(got[..., :3], PALETTE[indices])
    assert got[..., 3].tolist() == [[255, 0], [0, 255]]


def test_colours_that_a_palette_has_not(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    data = animation(2, 2, [(0, 0, np.array([[1, 9], [3, 1]], "u1"), KEEP, None, PALETTE[:8])])
    path.write_bytes(data.replace(b"\x02\0\x02\0\x87", b"\x02\0\x02\0\x82"))

    with pytest.raises(Corrupt, match="its palette does not have"):
        raconvert.read(path)


@pytest.mark.parametrize("patch", [(0, 0, (4, 4)), (1, 0, (3, 4)), (3, 2, (2, 1))])
def test_a_frame_outside_its_screen_is_refused(
    patch: tuple[int, int, tuple[int, int]], tmp_path: Path
) -> None:
    path, (x, y, size) = tmp_path / "x.gif", patch
    path.write_bytes(animation(4, 3, [(x, y, np.full(size, 6, "u1"), KEEP, None, None)]))

    with pytest.raises(Unsupported, match="not inside its screen(.|\n)*-coalesce"):
        raconvert.read(path)


def test_code_sizes_that_gif_does_not_have(tmp_path: Path) -> None:
    data = animation(1, 1, [(0, 0, np.zeros((1, 1), "u1"), 0, None, None)])
    at = data.rindex(b"\x08\x04")
    (tmp_path / "x.gif").write_bytes(data[:at] + b"\x09" + data[at + 1 :])

    with pytest.raises(Corrupt, match="code size"):
        raconvert.read(tmp_path / "x.gif")


def test_a_comment_of_200000_blocks_is_passed(tmp_path: Path) -> None:
    """In memory of the size of the file; Pillow never sees it."""
    path = tmp_path / "x.gif"
    data = animation(1, 1, [(0, 0, np.zeros((1, 1), "u1"), 0, None, None)])
    for count in (100_000, 200_000):
        comment = b"!\xfe" + b"\x01a" * count + b"\0"
        path.write_bytes(data[:-1] + comment + b";")
        tracemalloc.start()
        with raconvert.open(path) as array:
            note = "1 blocks (comments, text, applications) are left out"
            assert array.owner.notes == [note]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert peak < 1.5 * path.stat().st_size


def test_what_is_said_of_the_frame_is_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    data = animation(1, 1, [(0, 0, np.zeros((1, 1), "u1"), 0, 0, None)])
    path.write_bytes(data)

    with raconvert.open(path) as array:
        assert array.owner.notes == []
        assert array[0, 0].tolist() == [*PALETTE[0], 0]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory")
@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_a_small_image_of_a_large_screen_needs_permission(suffix: str, tmp_path: Path) -> None:
    """Known from the header, before a library makes the screen of 48 MB.

    Measured is what the whole process had in memory, libraries included.
    """
    for name, side in (("small", 2), ("large", 4000)):
        image = Image.new("RGB", (side, side), (1, 0, 0))
        image.save(tmp_path / f"{name}{suffix}", lossless=True)
    assert (tmp_path / f"large{suffix}").stat().st_size < 200_000
    code = """
import sys, raconvert
try:
    raconvert.convert(sys.argv[1], sys.argv[1] + ".ra", max_memory=64 << 20)
except raconvert.errors.TooLarge as error:
    print("max_memory" in str(error))
words = open("/proc/self/status").read().split()
print(words[words.index("VmHWM:") + 1])
"""
    found = {}
    for name in ("small", "large"):
        command = [sys.executable, "-c", code, str(tmp_path / f"{name}{suffix}")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = done.stdout.split()

    assert found["large"][0] == "True"
    assert int(found["large"][-1]) - int(found["small"][-1]) < 6 << 10  # KiB
    assert not (tmp_path / f"large{suffix}.ra").exists()
