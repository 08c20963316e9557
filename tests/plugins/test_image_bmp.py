"""BMP of runs and bit fields, laid out by hand: against netpbm, Pillow and numbers."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every, rounds
from PIL import Image

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported

PALETTE = np.random.default_rng(5).integers(0, 256, (256, 3), dtype="u1")
RLE8, RLE4, FIELDS, JPEG, PNG, ALPHA_FIELDS = 1, 2, 3, 4, 5, 6


def bmp(
    width: int, height: int, bits: int, data: bytes, *, how: int = 0, masks: Any = (),
    colours: int | None = None, size: int = 40, used: int | None = None,
) -> bytes:  # fmt: skip
    """Return a BMP of a header of this size, with a palette below 16 bits."""
    count = (1 << bits if bits <= 8 else 0) if colours is None else colours
    table = np.zeros((count, 4), "u1")
    table[:, :3] = PALETTE[:count, ::-1]
    head = struct.pack(
        "<IiiHHIIiiII", size, width, height, 1, bits, how, len(data), 2835, 2835,
        count if used is None else used, 0,
    )  # fmt: skip
    words = struct.pack(f"<{len(masks)}I", *masks)
    head += words.ljust(size - 40, b"\0") if size > 40 else words
    first = 14 + len(head) + table.nbytes
    whole = head + table.tobytes() + data
    return b"BM" + struct.pack("<IHHI", 14 + len(whole), 0, 0, first) + whole


def runs_of(rows: np.ndarray, seed: int, small: bool) -> bytes:
    """Return rows from the bottom as runs, repetitions and copies chosen at random."""
    rng, out = np.random.default_rng(seed), bytearray()
    for row in rows[::-1]:
        at = 0
        while at < len(row):
            left = len(row) - at
            count = int(rng.integers(1, min(left, 9) + 1))
            piece = row[at : at + count]
            if count >= 3 and rng.random() < 0.6:
                out += bytes([0, count])
                data = piece.tobytes()
                if small:
                    data = np.pad(piece, (0, count % 2)).reshape(-1, 2)
                    data = (data[:, 0] << 4 | data[:, 1]).astype("u1").tobytes()
                out += data + b"\0" * (len(data) % 2)
            else:
                step = 2 if small else 1
                same = 1
                while same < count and piece[same] == piece[same % step]:
                    same += 1
                count = same
                second = piece[1] if small and count > 1 else piece[0]
                out += bytes([count, piece[0] << 4 | second if small else piece[0]])
            at += count
        out += b"\0\0"
    return bytes(out) + b"\0\1"


@every("seed", range(rounds(100, 20)))
@every("bits", [4, 8])
def test_runs(bits: int, seed: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    """As the palette has them, and as netpbm and Pillow read them."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 20)), int(rng.integers(1, 40))
    rows = rng.integers(0, 1 << bits, shape, dtype="u1") if seed % 2 else np.repeat(
        rng.integers(0, 1 << bits, (shape[0], 1), dtype="u1"), shape[1], axis=1)  # fmt: skip
    path = tmp_path / "x.bmp"
    path.write_bytes(bmp(shape[1], shape[0], bits, runs_of(rows, seed, bits == 4),
                         how=RLE4 if bits == 4 else RLE8))  # fmt: skip

    got = raconvert.read(path)

    assert np.array_equal(got, PALETTE[rows])
    assert np.array_equal(np.asarray(Image.open(path).convert("RGB")), got)
    done = subprocess.run([tool("bmptopnm"), path], check=True, capture_output=True)
    (tmp_path / "x.ppm").write_bytes(done.stdout)
    theirs = raconvert.read(tmp_path / "x.ppm")
    assert np.array_equal(theirs if theirs.ndim == 3 else np.stack([theirs] * 3, -1), got)
    with raconvert.open(path) as array:
        assert array.owner.notes == []
        assert np.array_equal(array[-1], got[-1])


def test_pixels_that_no_run_sets_are_counted(tmp_path: Path) -> None:
    """Moves, ends of rows and the end of the image leave some out: they are of colour 0."""
    data = b"\x02\x05" + b"\0\2\1\1" + b"\x01\x06" + b"\0\0" + b"\0\1"
    path = tmp_path / "x.bmp"
    path.write_bytes(bmp(5, 4, 8, data, how=RLE8))
    rows = np.zeros((4, 5), "u1")
    rows[3, :2], rows[2, 3] = 5, 6

    assert np.array_equal(raconvert.read(path), PALETTE[rows])
    with raconvert.open(path) as array:
        assert array.owner.notes == ["17 pixels that no run sets are of colour 0"]


MASKS: dict[str, tuple[int, tuple[int, ...]]] = {
    "555": (16, (0x7C00, 0x3E0, 0x1F)),
    "565": (16, (0xF800, 0x7E0, 0x1F)),
    "1555": (16, (0x7C00, 0x3E0, 0x1F, 0x8000)),
    "4444": (16, (0xF00, 0xF0, 0xF, 0xF000)),
    "231": (16, (0x6000, 0x1C00, 0x200)),
    "888": (32, (0xFF0000, 0xFF00, 0xFF)),
    "888_swapped": (32, (0xFF, 0xFF00, 0xFF0000)),
    "8888": (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    "10_10_10_2": (32, (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000)),
    "11_11_10": (32, (0xFFE00000, 0x1FFC00, 0x3FF)),
    "6_17_5_4": (32, (0xFC00000, 0x3FFFE0, 0x1F, 0xF0000000)),
}


@every("name", MASKS)
@every("size", [40, 52, 56, 108, 124])
@every("down", [False, True])
def test_bit_fields(down: bool, size: int, name: str, tmp_path: Path) -> None:
    """The values of the file in each channel; Pillow scales those that it reads."""
    bits, masks = MASKS[name]
    if len(masks) > 3 and size == 52:
        return
    rng = np.random.default_rng(bits)
    stored = rng.integers(0, 1 << bits, (5, 7), dtype="u4").astype(f"<u{bits // 8}")
    rows = np.pad(stored.view("u1").reshape(5, -1), [(0, 0), (0, -7 * bits // 8 % 4)])
    how = ALPHA_FIELDS if len(masks) > 3 and size == 40 else FIELDS
    path = tmp_path / "x.bmp"
    data = (rows if down else rows[::-1]).tobytes()
    path.write_bytes(bmp(7, -5 if down else 5, bits, data, how=how, masks=masks, size=size))
    depths = [mask.bit_count() for mask in masks]
    values = [(stored & mask) >> (mask & -mask).bit_length() - 1 for mask in masks]
    dtype = "u1" if max(depths) <= 8 else "u2" if max(depths) <= 16 else "u4"

    got = raconvert.read(path)

    assert got.dtype == dtype
    assert np.array_equal(got, np.stack(values, -1))
    with raconvert.open(path) as array:
        fields = array.meta.formats["image"]
        odd = {*depths} != {8}
        assert fields.get("channel_bits") == (depths if odd else None)
        assert any("unscaled" in note for note in array.owner.notes) == odd
        assert np.array_equal(array[1:3, 2], got[1:3, 2])
    if name in ("555", "565"):
        tops = np.array([(1 << depth) - 1 for depth in depths])
        theirs = np.asarray(Image.open(path).convert("RGB")).astype(float)
        assert np.abs(got.astype(float) * 255 / tops - theirs).max() < 1.01


def test_usual_16_bits_for_netpbm(tmp_path: Path, tool: Callable[..., str]) -> None:
    stored = np.random.default_rng(3).integers(0, 1 << 15, (6, 8), dtype="u2")
    path = tmp_path / "x.bmp"
    path.write_bytes(bmp(8, 6, 16, stored[::-1].astype("<u2").tobytes()))
    done = subprocess.run([tool("bmptopnm"), path], check=True, capture_output=True)
    (tmp_path / "x.ppm").write_bytes(done.stdout)
    with raconvert.open(tmp_path / "x.ppm") as array:
        top = array.meta.formats.get("image", {}).get("maxval", 255)
        theirs = np.asarray(array).astype(float)

    assert np.abs(raconvert.read(path).astype(float) * top / 31 - theirs).max() <= 1


def test_rows_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    """Of a file above --max-memory, from the bottom to the top."""
    values = np.random.default_rng(3).integers(0, 256, (3000, 1000, 3), dtype="u1")
    raconvert.write(tmp_path / "x.bmp", values)
    tracemalloc.start()
    raconvert.convert(tmp_path / "x.bmp", tmp_path / "x.npy", max_memory=6 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 7 << 20 < values.nbytes
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    with raconvert.open(tmp_path / "x.bmp", max_memory=6 << 20) as array:
        assert np.array_equal(array[::-1000, 5:9, 1], values[::-1000, 5:9, 1])
        assert np.array_equal(array[2999], values[2999])
        flat = b"".join(block.tobytes() for block in blocks(array, 1 << 20))
        assert flat == values.tobytes()


ROWS = bytes(4 * 4)
HOSTILE: dict[str, tuple[bytes, type[RaconvertError]]] = {
    "run_too_long.bmp": (bmp(4, 4, 8, b"\x05\1\0\1", how=RLE8), Corrupt),
    "run_above_the_top.bmp": (bmp(4, 4, 8, b"\0\0" * 4 + b"\1\1\0\1", how=RLE8), Corrupt),
    "copy_too_long.bmp": (bmp(4, 4, 8, b"\0\x06123456\0\1", how=RLE8), Corrupt),
    "copy_cut.bmp": (bmp(4, 4, 8, b"\0\x04123", how=RLE8), Corrupt),
    "move_to_the_right.bmp": (bmp(4, 4, 8, b"\0\2\xff\0\1\1\0\1", how=RLE8), Corrupt),
    "move_above_the_top.bmp": (bmp(4, 4, 8, b"\0\2\0\xff\1\1\0\1", how=RLE8), Corrupt),
    "move_cut.bmp": (bmp(4, 4, 8, b"\0\2\0", how=RLE8), Corrupt),
    "no_end.bmp": (bmp(4, 4, 8, b"\4\1\0\0" * 3, how=RLE8), Corrupt),
    "no_runs.bmp": (bmp(4, 4, 8, b"", how=RLE8), Corrupt),
    "half_a_run.bmp": (bmp(4, 4, 8, b"\4", how=RLE8), Corrupt),
    "runs_of_few_bytes.bmp": (bmp(60_000, 60_000, 8, b"\0\1", how=RLE8), TooLarge),
    "moves_of_few_bytes.bmp": (bmp(9000, 9000, 4, b"\0\2\xff\xff" * 30 + b"\0\1", how=RLE4), TooLarge),
    "runs_from_the_top.bmp": (bmp(4, -4, 8, b"\0\1", how=RLE8), Corrupt),
    "runs_of_16_bits.bmp": (bmp(4, 4, 16, b"\0\1", how=RLE8), Unsupported),
    "small_runs_of_8_bits.bmp": (bmp(4, 4, 8, b"\0\1", how=RLE4), Unsupported),
    "colours_missing.bmp": (bmp(4, 4, 8, b"\4\x09\0\1", how=RLE8, colours=4), Corrupt),
    "no_palette.bmp": (bmp(4, 4, 8, ROWS, colours=0, used=0), Corrupt),
    "palette_cut.bmp": (bmp(4, 4, 8, b"")[:200], Corrupt),
    "masks_overlap.bmp": (bmp(4, 4, 16, ROWS * 2, how=FIELDS, masks=(0xFF, 0xFF0, 0xF)), Unsupported),
    "masks_with_gaps.bmp": (bmp(4, 4, 16, ROWS * 2, how=FIELDS, masks=(0xA000, 0x3E0, 0x1F)), Unsupported),
    "mask_of_nothing.bmp": (bmp(4, 4, 16, ROWS * 2, how=FIELDS, masks=(0, 0x3E0, 0x1F)), Unsupported),
    "mask_outside.bmp": (bmp(4, 4, 16, ROWS * 2, how=FIELDS, masks=(0xFF0000, 0x3E0, 0x1F)), Unsupported),
    "masks_cut.bmp": (bmp(4, 4, 16, b"", how=FIELDS)[:60], Corrupt),
    "rows_cut.bmp": (bmp(4, 4, 16, ROWS), Corrupt),
    "huge_16_bits.bmp": (bmp(1 << 30, 1 << 30, 16, ROWS), Corrupt),
    "pixels_outside.bmp": (b"BM" + bytes(8) + b"\xff\xff\xff\x7f" + bmp(4, 4, 8, ROWS)[14:], Corrupt),
    "jpeg_inside.bmp": (bmp(4, 4, 0, ROWS, how=JPEG), Unsupported),
    "png_inside.bmp": (bmp(4, 4, 0, ROWS, how=PNG), Unsupported),
    "3_bits.bmp": (bmp(4, 4, 3, ROWS), Unsupported),
    "fields_of_8_bits.bmp": (bmp(4, 4, 8, ROWS, how=FIELDS), Unsupported),
    "os2_huffman.bmp": (bmp(4, 4, 1, ROWS, how=FIELDS, size=64), Unsupported),
    "os2_runs_of_24_bits.bmp": (bmp(4, 4, 24, ROWS, how=JPEG, size=64), Unsupported),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    """Refused by an error of ours that names the file, and nothing is written."""
    data, error = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(error, match=name.replace(".", r"\.")):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=64 << 20)
    assert [one.name for one in tmp_path.iterdir()] == [name]
