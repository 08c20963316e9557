"""Damage in data without a checksum: CCITT and JPEG, of which every sound file is read as before."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from image_tiff import SHORT, entry, tiff
from PIL import Image
from raconvert.plugins.image.tiff.fax import check_fax

import raconvert
from raconvert.errors import Corrupt, Unsupported

RNG = np.random.default_rng(4)
PICTURE = np.cumsum(RNG.integers(0, 9, (61, 77)) == 0, axis=1) % 2 == 1
CODINGS = ["g3:1d", "g3:1d:fill", "g3:2d", "g3:2d:fill", "g4"]


def strip_of(path: Path) -> tuple[bytes, int, int]:
    """The compressed bytes of the first strip, the compression, and the options of group 3."""
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        start, nbytes = page.dataoffsets[0], page.databytecounts[0]
        options = page.tags.valueof(292, 0)
        return path.read_bytes()[start : start + nbytes], int(page.compression), int(options)


def encoded(values: np.ndarray, coding: str, folder: Path, tool: Callable[..., str]) -> Path:
    plain, packed = folder / "a.tif", folder / "b.tif"
    tifffile.imwrite(plain, values, photometric="miniswhite", metadata=None)
    command = [tool("tiffcp"), "-c", coding, "-s", plain, packed]
    subprocess.run(command, check=True, capture_output=True)
    return packed


def decoded(data: bytes, compression: int, options: int, shape: tuple[int, int]) -> np.ndarray:
    if compression == 4:
        return imagecodecs.ccittfax4_decode(data, *shape)
    return imagecodecs.ccittfax3_decode(data, *shape, t4options=options)


@every("coding", CODINGS)
def test_flipped_bits_of_fax_are_seen(
    coding: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Three quarters at least: the rest are codes of another picture that is as good."""
    data, compression, options = strip_of(encoded(PICTURE, coding, tmp_path, tool))
    check_fax(data, PICTURE.shape, compression, options, "x.tif")
    changed = seen = 0
    for bit in range(0, 8 * len(data), 3):
        other = bytearray(data)
        other[bit >> 3] ^= 0x80 >> (bit & 7)
        try:
            values = decoded(bytes(other), compression, options, PICTURE.shape)
        except RuntimeError:
            continue
        if np.array_equal(values, PICTURE):
            continue
        changed += 1
        try:
            check_fax(bytes(other), PICTURE.shape, compression, options, "x.tif")
        except (Corrupt, Unsupported):
            seen += 1

    assert changed > 100
    assert seen > 0.7 * changed


@every("coding", CODINGS)
def test_cuts_of_fax_are_seen(coding: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    """At each byte but those of the marks of the end."""
    data, compression, options = strip_of(encoded(PICTURE, coding, tmp_path, tool))
    for nbytes in range(len(data) - 12):
        with pytest.raises(Corrupt, match="row"):
            check_fax(data[:nbytes], PICTURE.shape, compression, options, "x.tif")
    with pytest.raises(Corrupt, match="more codes than rows"):
        check_fax(data, (60, 77), compression, options, "x.tif")
    with pytest.raises(Corrupt, match="row 61 of 62"):
        check_fax(data, (62, 77), compression, options, "x.tif")


@settings(max_examples=60, deadline=None)
@given(
    widths=st.lists(st.integers(1, 6000), min_size=1, max_size=12),
    rows=st.integers(1, 5),
    coding=st.sampled_from(["group3", "group4", "tiff_ccitt"]),
    seed=st.integers(0, 99),
)
def test_every_run_that_libtiff_writes_is_sound(
    widths: list[int], rows: int, coding: str, seed: int
) -> None:
    """Runs of all lengths, the longest ones included; Pillow writes with libtiff."""
    rng, width = np.random.default_rng(seed), sum(widths)
    values = np.zeros((rows, width), bool)
    for row in values:
        row[:] = np.repeat(np.arange(len(widths)) % 2 == 1, rng.permutation(widths))
    file = BytesIO()
    Image.fromarray(values).save(file, "TIFF", compression=coding)
    with tifffile.TiffFile(BytesIO(file.getvalue())) as opened:
        page = opened.pages.first
        top = 0
        for start, nbytes in zip(page.dataoffsets, page.databytecounts, strict=True):
            data = file.getvalue()[start : start + nbytes]
            count = min(page.rowsperstrip, rows - top)
            options = int(page.tags.valueof(292, 0))
            check_fax(data, (count, width), int(page.compression), options, "x.tif")
            top += count


def test_damaged_fax_is_refused_with_its_row(tmp_path: Path, tool: Callable[..., str]) -> None:
    path = encoded(PICTURE, "g4", tmp_path, tool)
    data = strip_of(path)[0]
    whole = path.read_bytes()
    at = whole.index(data)
    (tmp_path / "c.tif").write_bytes(whole[: at + 99] + b"\x55\x12" + whole[at + 101 :])

    assert np.array_equal(raconvert.read(path), PICTURE)
    with pytest.raises(Corrupt, match=r"c\.tif': has damaged CCITT data(.|\n)*tiffcp -c none"):
        raconvert.read(tmp_path / "c.tif")


def test_rows_of_fax_that_are_not_compressed(tmp_path: Path) -> None:
    """An extension of T.6 that no decoder here has."""
    tags = [entry(256, 8), entry(257, 8), entry(258, 1, SHORT), entry(259, 4, SHORT),
            entry(262, 0, SHORT), entry(273, 8), entry(279, 8)]  # fmt: skip
    (tmp_path / "x.tif").write_bytes(tiff(tags, b"\x03\xc0" + bytes(6)))
    with pytest.raises(Unsupported, match="not compressed"):
        raconvert.read(tmp_path / "x.tif")


# JPEG ---------------------------------------------------------------------------------------------

Y, X = np.indices((90, 110))
GREY = ((3 * Y + 5 * X) % 256).astype("u1")
RGB = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


def jpeg_of(values: np.ndarray, **words: object) -> bytes:
    file = BytesIO()
    Image.fromarray(values).save(file, "JPEG", **words)
    return file.getvalue()


def in_tiff(data: bytes, colour: bool) -> bytes:
    tags = [entry(256, 110), entry(257, 90), entry(258, 8, SHORT), entry(259, 7, SHORT),
            entry(262, 6 if colour else 1, SHORT), entry(277, 3 if colour else 1, SHORT),
            entry(273, 8), entry(279, len(data))]  # fmt: skip
    return tiff(tags, data)


@every(
    "interval", [{"restart_marker_blocks": n} for n in (1, 2, 7, 13)] + [{"restart_marker_rows": 1}]
)
@every("subsampling", [0, 1, 2])
@every("colour", [False, True])
@every("progressive", [False, True])
def test_restart_markers(
    progressive: bool, colour: bool, subsampling: int, interval: dict[str, int], tmp_path: Path
) -> None:
    """Of all sound files the number is right; one that is missing, or another, is seen."""
    words = {"subsampling": subsampling, "progressive": progressive, **interval}
    data = jpeg_of(RGB if colour else GREY, **words)
    start = data.index(b"\xff\xda")
    marks = [at for at in range(start, len(data) - 1)
             if data[at] == 0xFF and 0xD0 <= data[at + 1] <= 0xD7]  # fmt: skip
    assert len(marks) > 2
    other = bytearray(data)
    other[marks[2] + 1] ^= 4
    damaged = {"sound": data, "lost": data[: marks[1]] + data[marks[2] :], "other": bytes(other)}
    for name, contents in damaged.items():
        for suffix, file in ((".jpg", contents), (".tif", in_tiff(contents, colour))):
            path = tmp_path / f"{name}{suffix}"
            path.write_bytes(file)
            if name == "sound":
                assert raconvert.read(path).shape[:2] == (90, 110)
            elif not progressive:  # of several scans
                with pytest.raises(Corrupt, match="restart markers"):
                    raconvert.read(path)
