"""TIFF as it occurs: every compression, predictor, type, layout and order, against other readers.

tifffile with imagecodecs and libtiff's `tiffcp` write; tifffile, Pillow and `tiffcp -c none` judge.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from cases import covering, every
from image_tiff import SHORT, entry, tiff
from PIL import Image
from raconvert.plugins.image import tiff as plugin

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, MissingDependency, RaconvertError, TooLarge, Unsupported
from raconvert.files.limits import Limits
from raconvert.files.source import Source

INTEGERS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")
FLOATS = ("f2", "f4", "f8")
PREDICTED = {1: (*INTEGERS, *FLOATS, "c8", "c16"), 2: INTEGERS, 3: FLOATS}
LAYOUTS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "strips": ((37, 41), {"rowsperstrip": 5}),
    "one_strip": ((37, 41), {}),
    "tiles": ((37, 41), {"tile": (16, 32)}),
    "rgb": ((37, 41, 3), {"photometric": "rgb", "rowsperstrip": 7}),
    "rgb_tiles": ((37, 41, 3), {"photometric": "rgb", "tile": (16, 16)}),
    "planes": ((3, 37, 41), {"photometric": "rgb", "planarconfig": "separate", "rowsperstrip": 9}),
    "planes_tiles": ((3, 37, 41), {"photometric": "rgb", "planarconfig": "separate",
                                   "tile": (32, 16)}),
    "pages": ((3, 17, 23), {"photometric": "minisblack", "rowsperstrip": 4}),
}  # fmt: skip
KEYS = (0, -1, (..., 1), (slice(None), slice(3, 9)), (slice(1, 3), slice(10, 30, 3)),
        (..., slice(2, 20)), slice(5, 2, -1), (2, 7), (slice(2, 2), 0))  # fmt: skip


def values_of(code: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return runs of equal bytes and noise, so that every code of a compression is used."""
    rng = np.random.default_rng(len(shape))
    dtype = np.dtype(code)
    data = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, dtype="u1")
    data[rng.integers(0, 2, len(data)) > 0] = 7
    return np.sort(data.reshape(-1, dtype.itemsize), axis=-1).reshape(-1).view(dtype).reshape(shape)


def same(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype.newbyteorder("=")
    assert got.tobytes() == expected.astype(got.dtype).tobytes()


CODECS = covering(
    LAYOUTS,
    ["lzw", "packbits", "zlib", "zstd", "lzma"],
    [(predictor, code) for predictor, codes in PREDICTED.items() for code in codes],
    "<>",
    (False, True),
    together=3,
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("compression", ["lzw", "packbits", "zlib", "zstd", "lzma"])
def test_every_codec_type_and_layout(compression: str, layout: str, tmp_path: Path) -> None:
    """In both byte orders, as TIFF and BigTIFF; regions and pieces as the whole."""
    shape, options = LAYOUTS[layout]
    here = [case[2:] for case in CODECS if case[:2] == (layout, compression)]
    assert {code for (_, code), _, _ in here} == {*INTEGERS, *FLOATS, "c8", "c16"}
    for (predictor, code), order, big in here:
        values = values_of(order + code, shape)
        path = tmp_path / f"{code}.tif"
        tifffile.imwrite(
            path, values, byteorder=order, bigtiff=big, compression=compression,
            predictor=predictor if predictor > 1 else None, **options,
        )  # fmt: skip

        got = raconvert.read(path)

        same(got, values)
        same(got, tifffile.imread(path))
        with raconvert.open(path) as array:
            flat = np.concatenate([block.reshape(-1) for block in blocks(array, 1000)])
            assert flat.tobytes() == got.tobytes()
            for key in KEYS:
                assert np.array_equal(array[key], got[key], equal_nan=code[0] in "fc"), key


@every(
    "layout", [["-s"], ["-r", "3"], ["-t", "-w", "16", "-l", "32"]], ids=["whole", "rows", "tiles"]
)
@every(
    "compression", ["lzw", "lzw:2", "packbits", "zip", "zip:2", "zstd", "zstd:2", "lzma", "lzma:2"]
)
@every("planes", ["contig", "separate"])
@every("order", ["-L", "-B", "-8"])
def test_files_of_libtiff(
    order: str, planes: str, compression: str, layout: list[str], tmp_path: Path,
    tool: Callable[..., str],
) -> None:  # fmt: skip
    for code in ("u1", "u2", "u4") if planes == "contig" else ("u1",):
        values = values_of(f"<{code}", (37, 41, 3))
        plain, packed = tmp_path / f"{code}.tif", tmp_path / f"{code}_packed.tif"
        tifffile.imwrite(plain, values, photometric="rgb", metadata=None)
        command = [tool("tiffcp"), order, "-c", compression, "-p", planes, *layout, plain, packed]
        subprocess.run(command, check=True, capture_output=True)

        ours = raconvert.read(packed)
        same(ours, tifffile.imread(packed))
        same(np.moveaxis(ours, 0, -1) if planes == "separate" else ours, values)
        if code == "u1":
            same(np.asarray(Image.open(packed)), values)


@every("predicted", [2, 3])
def test_floats_of_libtiff(predicted: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    """Predictor 2 takes floats for integers; NaN payloads are kept."""
    for code, compression in product(("f4", "f8"), ("lzw", "zip", "zstd")):
        values = values_of(f"<{code}", (37, 41))
        plain, packed = tmp_path / "x.tif", tmp_path / "y.tif"
        tifffile.imwrite(plain, values, metadata=None)
        options = ["-c", f"{compression}:{predicted}"]
        subprocess.run([tool("tiffcp"), *options, plain, packed], check=True, capture_output=True)

        same(raconvert.read(packed), values)


FAX = ["g3", "g3:1d", "g3:2d", "g3:2d:fill", "g4", "packbits", "lzw", "zip"]


@every("fill", ["msb2lsb", "lsb2msb"])
@every("compression", FAX)
@every(
    "layout", [["-s"], ["-r", "7"], ["-t", "-w", "16", "-l", "32"]], ids=["whole", "rows", "tiles"]
)
def test_bilevel(
    layout: list[str], compression: str, fill: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """CCITT and the others, in both orders of bits; `tiffcp -c none` and Pillow are the judges."""
    rng = np.random.default_rng(4)
    values = np.cumsum(rng.integers(0, 9, (61, 77)) == 0, axis=1) % 2 == 1
    for photometric in ("miniswhite", "minisblack"):
        plain, packed, again = (tmp_path / f"{name}.tif" for name in ("a", "b", "c"))
        tifffile.imwrite(plain, values, photometric=photometric, metadata=None)
        command = [tool("tiffcp"), "-c", compression, "-f", fill, *layout, plain, packed]
        subprocess.run(command, check=True, capture_output=True)

        same(raconvert.read(packed), values)
        same(tifffile.imread(packed), values)
        seen = np.asarray(Image.open(packed).convert("L")) > 0
        same(seen, values == (photometric == "minisblack"))
        done = [tool("tiffcp"), "-c", "none", "-s", packed, again]
        subprocess.run(done, check=True, capture_output=True)
        same(raconvert.read(again), values)


@every("photometric", ["rgb", "ycbcr", "minisblack"])
@every("layout", [{"rowsperstrip": 16}, {"tile": (16, 32)}, {}], ids=["strips", "tiles", "whole"])
@every("subsampling", [(1, 1), (2, 2), (2, 1)], ids=["11", "22", "21"])
def test_jpeg(
    subsampling: tuple[int, int], layout: dict[str, Any], photometric: str, tmp_path: Path
) -> None:
    """As libjpeg decodes it, which a note says; the colours are RGB."""
    y, x = np.indices((45, 50))
    values = np.stack([3 * y + x, 90 + y, 200 - 2 * x], axis=-1).astype("u1")
    values = values[..., 0] if photometric == "minisblack" else values
    path = tmp_path / "x.tif"
    arguments = {"outcolorspace": photometric, "subsampling": subsampling}
    if photometric == "minisblack":
        arguments = {}
    tifffile.imwrite(path, values, photometric="rgb" if values.ndim == 3 else "minisblack",
                     compression="jpeg", compressionargs={"level": 90} | arguments, **layout)  # fmt: skip

    with raconvert.open(path) as array:
        got = np.asarray(array)
        assert array.owner.notes == [
            "pixels are compressed by JPEG: they are those that libjpeg-turbo decodes"
        ]
        assert "photometric" not in array.meta.formats.get("image", {})
    same(got, tifffile.imread(path))
    assert np.abs(got.astype(int) - values).max() < 60
    assert np.abs(got.astype(int) - np.asarray(Image.open(path))).max() < 10


def test_jpeg_of_libtiff(tmp_path: Path, tool: Callable[..., str]) -> None:
    """With tables that all strips share."""
    y, x = np.indices((45, 50))
    values = np.stack([3 * y + x, 90 + y, 200 - 2 * x], axis=-1).astype("u1")
    plain, packed = tmp_path / "x.tif", tmp_path / "y.tif"
    tifffile.imwrite(plain, values, photometric="rgb", metadata=None)
    for compression, layout in product(["jpeg", "jpeg:r"], [["-r", "16"], ["-t", "-w", "32"]]):
        command = [tool("tiffcp"), "-c", compression, *layout, plain, packed]
        subprocess.run(command, check=True, capture_output=True)
        with tifffile.TiffFile(packed) as file:
            assert file.pages.first.jpegtables

        got = raconvert.read(packed)

        same(got, tifffile.imread(packed))
        assert np.abs(got.astype(int) - np.asarray(Image.open(packed))).max() < 10


@every("precision", [8, 12, 16])
@every("lossless", [True, False])
def test_jpeg_of_more_bits(lossless: bool, precision: int, tmp_path: Path) -> None:
    if precision == 16 and not lossless:
        return
    y, x = np.indices((45, 50))
    values = ((1 << precision) - 1 - 40 * y - x).astype("u1" if precision == 8 else "u2")
    packed = imagecodecs.jpeg8_encode(values, lossless=lossless, bitspersample=precision)
    tags = [entry(256, 50), entry(257, 45), entry(258, precision, SHORT), entry(259, 7, SHORT),
            entry(262, 1, SHORT), entry(273, 8), entry(279, len(packed))]  # fmt: skip
    path = tmp_path / "x.tif"
    path.write_bytes(tiff(tags, packed))

    got = raconvert.read(path)

    same(got, tifffile.imread(path))
    assert np.array_equal(got, values) or not lossless
    assert np.abs(got.astype(int) - values).max() < 100


# Samples of any number of bits --------------------------------------------------------------------


def packed_bits(values: np.ndarray, depth: int) -> bytes:
    """Return rows of samples, packed to whole bytes, most significant bit first."""
    spread = (values[..., None] >> np.arange(depth, dtype="u8")[::-1].astype(values.dtype)) & 1
    return np.packbits(spread.reshape(len(values), -1).astype("u1"), axis=1).tobytes()


@every("depth", [*range(1, 33), 64])
@every("compression", [1, 5, 8])
@every("samples", [1, 3])
def test_every_depth(samples: int, compression: int, depth: int, tmp_path: Path) -> None:
    """The type is the smallest of NumPy that holds them, as tifffile has it."""
    if depth in (32, 64):
        return  # stored in the byte order of the file
    rng = np.random.default_rng(depth)
    values = rng.integers(0, 1 << depth, (11, 13 * samples), dtype="u4")
    data = packed_bits(values, depth)
    if depth == 16:
        data = values.astype("<u2").tobytes()
    pack = {1: bytes, 5: imagecodecs.lzw_encode, 8: zlib.compress}[compression]
    stored = pack(data)
    tags = [entry(256, 13), entry(257, 11), entry(258, depth, SHORT), entry(262, 1, SHORT),
            entry(259, compression, SHORT), entry(277, samples, SHORT), entry(273, 8),
            entry(279, len(stored))]  # fmt: skip
    path = tmp_path / "x.tif"
    path.write_bytes(tiff(tags, stored))

    got = raconvert.read(path)

    width = 1 if depth <= 8 else 2 if depth <= 16 else 4
    assert got.dtype == ("?" if depth == 1 else f"u{width}")
    assert np.array_equal(got.reshape(11, -1), values)
    same(got, tifffile.imread(path))


@every("bits", [24])
def test_floats_of_24_bits(bits: int, tmp_path: Path) -> None:
    values = np.array([[0, 1, -2.5, 1e-9], [np.inf, 3e5, 0.1, -0.0]], "f4")
    for order, big in (("<", "little"), (">", "big")):
        data = imagecodecs.float24_encode(values, byteorder=order)
        tags = [entry(256, 4), entry(257, 2), entry(258, bits, SHORT), entry(262, 1, SHORT),
                entry(339, 3, SHORT), entry(273, 8), entry(279, len(data))]  # fmt: skip
        path = tmp_path / f"{big}.tif"
        whole = tiff(tags, data)
        if order == ">":
            continue  # laid out by hand in little-endian order only
        path.write_bytes(whole)

        got = raconvert.read(path)

        same(got, imagecodecs.float24_decode(data, byteorder=order).reshape(2, 4))
        assert np.allclose(got[np.isfinite(got)], values[np.isfinite(got)], rtol=1e-4)


@every("bits", [32, 64])
@every("order", "<>")
def test_complex_integers(order: str, bits: int, tmp_path: Path) -> None:
    """Of GDAL: complex floats have all of their values."""
    rng = np.random.default_rng(2)
    pairs = rng.integers(-30000, 30000, (5, 7, 2)).astype(f"{order}i{bits // 16}")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, pairs.reshape(5, 14), byteorder=order, metadata=None)
    with tifffile.TiffFile(path, mode="r+") as file:
        tags = file.pages.first.tags
        tags["ImageWidth"].overwrite(7)
        tags["BitsPerSample"].overwrite(bits)
        tags["SampleFormat"].overwrite(5)

    got = raconvert.read(path)

    same(got, (pairs[..., 0] + 1j * pairs[..., 1]).astype(f"c{bits // 4}"))
    same(got, tifffile.imread(path))


# Memory, missing packages, damage ----------------------------------------------------------------


def test_strips_are_decoded_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a page above --max-memory: the conversion streams, a region reads its own strips."""
    values = np.arange(3000 * 4000, dtype="u2").reshape(3000, 4000)
    path, read = tmp_path / "x.tif", list[int]()
    tifffile.imwrite(path, values, compression="lzw", rowsperstrip=50, metadata=None)
    plain = Source.read_exact

    def read_exact(source: Source, offset: int, nbytes: int, what: str) -> bytes:
        read.extend([1] * (what == "the pixels"))
        return plain(source, offset, nbytes, what)

    monkeypatch.setattr(Source, "read_exact", read_exact)
    raconvert.convert(path, tmp_path / "x.npy", max_memory=8 << 20)
    assert len(read) == 60
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    read.clear()
    with raconvert.open(path, max_memory=8 << 20) as array:
        assert np.array_equal(array[1000:1100, 5:9], values[1000:1100, 5:9])
        assert np.array_equal(array[2999], values[2999])
    assert len(read) == 3
    with pytest.raises(TooLarge, match="a strip or a row of tiles needs"):
        raconvert.convert(path, tmp_path / "y.npy", max_memory=1 << 20)


@pytest.mark.parametrize("name", ["lzw", "zip:3", "g4", "packbits", "zstd", "jpeg"])
def test_without_imagecodecs_the_install_line_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]
) -> None:
    values = np.zeros((16, 16), "f4" if name == "zip:3" else "?" if name == "g4" else "u1")
    plain, packed = tmp_path / "x.tif", tmp_path / "y.tif"
    tifffile.imwrite(plain, values, metadata=None)
    subprocess.run([tool("tiffcp"), "-c", name, plain, packed], check=True, capture_output=True)
    monkeypatch.setitem(sys.modules, "imagecodecs", None)

    with pytest.raises(MissingDependency, match=r"pip install 'raconvert\[tiff\]'") as found:
        raconvert.read(packed)
    assert found.value.exit_code == 3
    assert not raconvert.read(plain).any()


GREY = [entry(256, 64), entry(257, 64), entry(258, 8, SHORT), entry(262, 1, SHORT)]
BITS = [entry(256, 64), entry(257, 64), entry(258, 1, SHORT), entry(262, 1, SHORT)]


def strip(code: int, data: bytes, tags: list[bytes] = GREY) -> bytes:
    places = [entry(259, code, SHORT), entry(273, 8), entry(279, len(data))]
    return tiff([*tags, *places], data)


def replaced(tags: list[bytes], *others: bytes) -> list[bytes]:
    """Return the tags with others in the place of those of their numbers."""
    return [*{item[:2]: item for item in [*tags, *others]}.values()]


NOISE = np.random.default_rng(1).bytes(500)
SMOOTH = imagecodecs.jpeg8_encode(np.zeros((64, 64), "u1"))
WIDE = imagecodecs.jpeg8_encode(np.zeros((64, 65), "u1"))
COLOUR = imagecodecs.jpeg8_encode(np.zeros((64, 64, 3), "u1"))
HUGE = [entry(256, 60_000), entry(257, 60_000)]
HOSTILE: dict[str, tuple[bytes, type[RaconvertError]]] = {
    "lzw_noise.tif": (strip(5, NOISE), Corrupt),
    "lzw_empty_code.tif": (strip(5, b"\xff" * 90), Corrupt),
    "lzw_short.tif": (strip(5, imagecodecs.lzw_encode(bytes(4000))), Corrupt),
    "lzw_bomb.tif": (strip(5, imagecodecs.lzw_encode(bytes(1 << 20)), replaced(GREY, *HUGE)), Corrupt),
    "packbits_noise.tif": (strip(32773, b"\x7f" + NOISE[:60]), Corrupt),
    "packbits_too_much.tif": (strip(32773, b"\x81\0" * 400), Corrupt),
    "packbits_short.tif": (strip(32773, b"\x81\0" * 31), Corrupt),
    "packbits_bomb.tif": (strip(32773, b"\x81\0" * 99, replaced(GREY, *HUGE)), Corrupt),
    "zstd_noise.tif": (strip(50000, NOISE), Corrupt),
    "zstd_cut.tif": (strip(50000, imagecodecs.zstd_encode(bytes(4096))[:-3] + b"\1\1\1"), Corrupt),
    "zstd_too_much.tif": (strip(50000, imagecodecs.zstd_encode(bytes(1 << 26))), Corrupt),
    "zstd_bomb.tif": (strip(50000, imagecodecs.zstd_encode(bytes(1 << 26)), replaced(GREY, *HUGE)), Corrupt),
    "zstd_large.tif": (
        strip(50000, imagecodecs.zstd_encode(bytes(1 << 28)),
              replaced(GREY, entry(256, 1 << 14), entry(257, 1 << 14))), TooLarge),
    "lzma_noise.tif": (strip(34925, NOISE), Corrupt),
    "lzma_cut.tif": (strip(34925, imagecodecs.lzma_encode(NOISE * 10)[:300]), Corrupt),
    "lzma_bomb.tif": (strip(34925, imagecodecs.lzma_encode(bytes(1 << 20)), replaced(GREY, *HUGE)), Corrupt),
    "deflate_noise.tif": (strip(8, NOISE), Corrupt),
    "fax4_rows.tif": (strip(4, bytes(8), replaced(BITS, entry(257, 1 << 30))), Corrupt),
    "fax4_columns.tif": (strip(4, bytes(1 << 16), replaced(BITS, entry(256, 1 << 31 - 1))), TooLarge),
    "fax4_of_bytes.tif": (strip(4, bytes(8), GREY), Unsupported),
    "fax4_of_samples.tif": (strip(4, bytes(90), [*BITS, entry(277, 3, SHORT)]), Unsupported),
    "jpeg_noise.tif": (strip(7, NOISE), Corrupt),
    "jpeg_cut.tif": (strip(7, SMOOTH[:-2]), Corrupt),
    "jpeg_wide.tif": (strip(7, WIDE), Corrupt),
    "jpeg_colour.tif": (strip(7, COLOUR), Corrupt),
    "jpeg_huge.tif": (strip(7, SMOOTH.replace(b"\xff\xc0\0\x0b\x08\0\x40\0\x40", b"\xff\xc0\0\x0b\x08\xff\xff\xff\xff")), Corrupt),
    "jpeg_no_height.tif": (strip(7, SMOOTH.replace(b"\xff\xc0\0\x0b\x08\0\x40", b"\xff\xc0\0\x0b\x08\0\0")), Unsupported),
    "jpeg_arithmetic.tif": (strip(7, SMOOTH.replace(b"\xff\xc0", b"\xff\xc9")), Unsupported),
    "jpeg_two_frames.tif": (strip(7, SMOOTH[:2] + b"\xff\xc0\0\x0b\x08\0\x40\0\x40\x01\x01\x11\0" + SMOOTH[2:]), Unsupported),
    "jpeg_no_frame.tif": (strip(7, b"\xff\xd8\xff\xda\0\x08\1\1\0\0\x3f\0\xff\xd9"), Unsupported),
    "jpeg_scans.tif": (strip(7, SMOOTH[:-2] + b"\xff\xda\0\x08\1\1\0\0\x3f\0\0" * 501 + b"\xff\xd9"), Unsupported),
    "jpeg_tables.tif": (strip(7, SMOOTH, [*GREY, entry(347, 8, 4, count=3)]), Corrupt),
    "jpeg_predictor.tif": (strip(7, SMOOTH, [*GREY, entry(317, 2, SHORT)]), Unsupported),
    "old_jpeg_without_a_stream.tif": (strip(6, SMOOTH[2:]), Unsupported),
    "old_jpeg_of_two_strips.tif": (
        tiff([*GREY, entry(259, 6, SHORT), entry(278, 32), entry(273, 8, 4, 2), entry(279, 8, 4, 2)],
             struct.pack("<II", 8, 16) + SMOOTH), Unsupported),
    "old_jpeg_of_one_component.tif": (strip(6, SMOOTH), Corrupt),
    "predictor_3_of_integers.tif": (strip(8, zlib.compress(bytes(4096)), [*GREY, entry(317, 3, SHORT)]), Unsupported),
    "predictor_2_of_12_bits.tif": (
        strip(8, zlib.compress(bytes(6144)),
              [*replaced(GREY, entry(258, 12, SHORT)), entry(317, 2, SHORT)]), Unsupported),
    "tile_of_gigabytes.tif": (
        tiff([*GREY, entry(322, 1 << 17), entry(323, 1 << 17), entry(259, 5, SHORT),
              entry(324, 8), entry(325, 500)], NOISE), TooLarge),
    "83_bits.tif": (strip(1, bytes(1 << 16), replaced(GREY, entry(258, 83, SHORT))), Unsupported),
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


def test_scans_are_bounded_by_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    path.write_bytes(strip(7, SMOOTH[:-2] + SMOOTH[SMOOTH.index(b"\xff\xda") :]))
    limits = Limits(image_scans=1)
    with (
        plugin.read(Source(str(path), limits=limits)) as bundle,
        pytest.raises(Unsupported, match="2 scans"),
    ):
        np.asarray(bundle.arrays[0])


def test_old_style_lzw(tmp_path: Path) -> None:
    """Least significant bit first, before TIFF 5.0 was clear about it: two clear codes and pixels."""
    codes = [256, 1, 2, 3, 4, 257]
    bits = [code >> place & 1 for code in codes for place in range(9)]
    data = np.packbits(bits, bitorder="little").tobytes()
    assert data[0] == 0
    assert data[1] & 1
    tags = replaced(GREY, entry(256, 2), entry(257, 2))
    path = tmp_path / "x.tif"
    path.write_bytes(strip(5, data, tags))

    assert raconvert.read(path).tolist() == [[1, 2], [3, 4]]


def test_the_tags_of_those_tests_are_good_ones(tmp_path: Path) -> None:
    (tmp_path / "x.tif").write_bytes(strip(5, imagecodecs.lzw_encode(bytes(range(256)) * 16)))

    assert raconvert.read(tmp_path / "x.tif").tobytes() == bytes(range(256)) * 16
    assert struct.calcsize("<HHII") == len(GREY[0])
