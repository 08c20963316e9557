"""TIFF, JPEG, GIF, WebP, BMP and netpbm: values against independent tools and libraries.

Damaged and hostile files are in test_image_hostile.py.
"""

from __future__ import annotations

import gc
import io
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from cases import every
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import raconvert
from raconvert import convert
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Unsupported, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "image"
Y, X = np.indices((13, 21))
GREY = ((7 * Y + 3 * X) % 256).astype("u1")
RGB = np.stack([(7 * Y + 3 * X + 50 * c) % 256 for c in range(3)], axis=-1).astype("u1")
DEEP = ((4001 * Y + 257 * X) % 65536).astype("u2")
BITS = GREY > 40
GREY_AS_RGB = np.repeat(GREY[..., None], 3, axis=2)


def meta_of(path: object) -> dict[str, Any]:
    with raconvert.open(str(path)) as array:
        return array.meta.formats.get("image", {})


def notes_of(path: object, **options: Any) -> list[str]:
    with raconvert.open(str(path), **options) as array:
        return array.owner.notes


def exactly(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype.newbyteorder("<")
    assert got.tobytes() == expected.astype(got.dtype).tobytes()


# Files of other tools ----------------------------------------------------------------------------

VALUES = {
    "tiffcp_deflate_predictor.tif": DEEP,
    "tiffcp_planar.tif": np.moveaxis(RGB, -1, 0),
    "tiffcp_big_endian.tif": DEEP,
    "tiffcp_bigtiff.tif": DEEP,
    "tiffcp_three_pages.tif": np.stack([GREY] * 3),
    "tiffcp_lzw.tif": RGB,
    "tiffcp_lzw_predictor_tiles.tif": RGB,
    "tiffcp_packbits.tif": GREY,
    "tiffcp_fax3.tif": BITS,
    "tiffcp_fax4.tif": BITS,
    "tiffcp_reversed_bits.tif": BITS,
    "ppmtobmp_24bit.bmp": RGB,
    "ppmtobmp_os2.bmp": RGB,
    "ppmtobmp_palette.bmp": GREY_AS_RGB,
    "pamtogif_palette.gif": GREY_AS_RGB,
    "pamtogif_interlaced.gif": GREY_AS_RGB,
    "cwebp_lossless.webp": RGB,
    "pgm_deep.pgm": DEEP,
    "pamtopam_rgb.pam": RGB,
    "pnmtoplain_grey.pgm": GREY,
    "pnmtoplain_rgb.ppm": RGB,
    "pnmtoplain_bits.pbm": BITS,
    "img2webp_animation.webp": np.stack([RGB, 255 - RGB]),
}
DECODED = {  # lossy files, and what their own decoder makes of them
    "cjpeg_rgb.jpg": "cjpeg_rgb.jpg.ppm",
    "cjpeg_grey_progressive.jpg": "cjpeg_grey_progressive.jpg.pgm",
    "cwebp_lossy.webp": "cwebp_lossy.webp.ppm",
}
REFUSED = {
    "tiffcp_mixed_pages.tif": "page 1 is not like the first one(.|\n)*pages.series0, ",
    "two_images.ppm": "has more than one image.*\n.*pamsplit",
}


def test_every_fixture_is_tested() -> None:
    files = {path.name for path in FIXTURES.iterdir()} - {"MANIFEST.md", "make.py", "__pycache__"}

    assert {*VALUES, *DECODED, *DECODED.values(), *REFUSED} == files


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    exactly(raconvert.read(FIXTURES / name), VALUES[name])


@pytest.mark.parametrize("name", DECODED)
def test_lossy_files_are_decoded_as_their_own_tool_does(name: str) -> None:
    with Image.open(FIXTURES / DECODED[name]) as decoded:
        exactly(raconvert.read(FIXTURES / name), np.asarray(decoded))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(Unsupported, match=REFUSED[name]):
        raconvert.read(FIXTURES / name)


@pytest.mark.parametrize(("page", "expected"), [(0, GREY), (1, RGB)])
def test_mixed_pages_one_by_one(
    page: int, expected: np.ndarray, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """By the command that the message names."""
    out = tmp_path / "one.tif"
    command = [tool("tiffcp"), f"{FIXTURES / 'tiffcp_mixed_pages.tif'},{page}", out]
    subprocess.run(command, check=True, capture_output=True)

    exactly(raconvert.read(out), expected)


def test_what_a_pam_file_becomes(tmp_path: Path, tool: Callable[..., str]) -> None:
    """By the command that the message names."""
    data = tool_output(tool("pamtopng"), FIXTURES / "pamtopam_rgb.pam")
    (tmp_path / "x.png").write_bytes(data)

    exactly(raconvert.read(tmp_path / "x.png"), RGB)


@pytest.mark.parametrize("name", VALUES)
def test_regions_are_slices_of_the_whole(name: str) -> None:
    whole = VALUES[name]
    for key in (0, -1, slice(1, 3), (slice(None), 2), (..., 1), slice(0, 0), (1, slice(2, 9, 3))):
        with raconvert.open(FIXTURES / name) as array:
            assert np.array_equal(array[key], whole[key]), key


@pytest.mark.parametrize("suffix", [".pgm", ".tif", ".bmp", ".jpg", ".webp", ".gif"])
def test_the_content_decides_not_the_suffix(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes((FIXTURES / "ppmtobmp_24bit.bmp").read_bytes())

    exactly(raconvert.read(path), RGB)


# TIFF: against tifffile and libtiff --------------------------------------------------------------

NUMBERS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")
LAYOUTS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "page": ((17, 23), {}),
    "strips": ((17, 23), {"rowsperstrip": 5}),
    "deflate": ((17, 23), {"rowsperstrip": 5, "compression": "zlib"}),
    "tiles": ((40, 50), {"tile": (16, 32)}),
    "tiles_deflate": ((40, 50), {"tile": (16, 32), "compression": "zlib"}),
    "rgb": ((17, 23, 3), {"photometric": "rgb"}),
    "rgba": ((17, 23, 4), {"photometric": "rgb", "extrasamples": ["unassalpha"]}),
    "rgb_tiles": ((40, 50, 3), {"photometric": "rgb", "tile": (16, 16)}),
    "planes": ((3, 17, 23), {"photometric": "rgb", "planarconfig": "separate"}),
    "planes_tiles": ((3, 40, 50), {"photometric": "rgb", "planarconfig": "separate",
                                   "tile": (16, 16), "compression": "zlib"}),
    "pages": ((4, 17, 23), {"photometric": "minisblack"}),
    "pages_rgb": ((4, 17, 23, 3), {"photometric": "rgb"}),
    "pages_deflate": ((4, 17, 23), {"photometric": "minisblack", "compression": "zlib"}),
    "shaped": ((2, 3, 4, 5), {"photometric": "minisblack"}),
    "truncated": ((2, 3, 4, 5), {"photometric": "minisblack", "truncate": True}),
    "one_page": ((1, 17, 23), {"photometric": "minisblack"}),
}  # fmt: skip


def bits(code: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return all kinds of bits, NaN payloads included."""
    dtype = np.dtype(code)
    data = np.random.default_rng(5).bytes(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


@every("bigtiff", [False, True], ids=["classic", "big"])
@every("order", ["<", ">"], ids=["little", "big_endian"])
@every("layout", LAYOUTS)
def test_tiff_of_tifffile(layout: str, order: str, bigtiff: bool, tmp_path: Path) -> None:
    shape, options = LAYOUTS[layout]
    for code in NUMBERS:
        values = bits(f"{order}{code}", shape)
        path = tmp_path / f"{code}.tif"
        tifffile.imwrite(path, values, byteorder=order, bigtiff=bigtiff, **options)
        if layout == "truncated" and code == "c16":  # whose extent tifffile does not tell
            with pytest.raises(Unsupported, match="directory for several images"):
                raconvert.read(path)
            continue

        exactly(raconvert.read(path), values)


@pytest.mark.parametrize("compression", ["zip", "zip:2"])
@pytest.mark.parametrize("layout", [[], ["-t", "-w", "16", "-l", "32"], ["-r", "3"]])
@pytest.mark.parametrize("planes", ["contig", "separate"])
def test_tiff_of_libtiff(
    compression: str, layout: list[str], planes: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    codes = ("u1", "u2", "u4")
    if planes == "separate":  # tiffcp takes planes of other sizes apart only by the byte
        codes = ("u1",)
    for code in codes:
        values = np.cumsum(bits(f"<{code}", (37, 41, 3)).view("u1") % 3, axis=1)
        values = values.astype("u1").view(f"<{code}").reshape(37, 41, 3)
        plain, packed = tmp_path / f"{code}.tif", tmp_path / f"{code}_packed.tif"
        tifffile.imwrite(plain, values, photometric="rgb")
        command = [tool("tiffcp"), "-c", compression, "-p", planes, *layout, plain, packed]
        subprocess.run(command, check=True, capture_output=True)

        exactly(raconvert.read(packed), values)


def test_other_compressions_of_tiff_are_refused_by_name(tmp_path: Path) -> None:
    tags = {256: 7, 257: 5, 258: 16, 259: 34676, 262: 32844, 278: 5}
    (tmp_path / "x.tif").write_bytes(tiff_bytes(tags, bytes(70)))

    with pytest.raises(Unsupported, match="compressed as SGILOG(.|\n)*tiffcp -c none"):
        raconvert.read(tmp_path / "x.tif")


@pytest.mark.parametrize("depth", [1, 2, 4, 7, 10, 12, 14])
def test_tiff_of_odd_depths(depth: int, tmp_path: Path) -> None:
    """Written here by hand: rows of samples packed to whole bytes, most significant bit first."""
    values = (np.arange(5 * 7).reshape(5, 7) * 37) % (1 << depth)
    spread = (values[..., None] >> np.arange(depth)[::-1]) & 1
    data = np.packbits(spread.reshape(5, -1).astype("u1"), axis=1).tobytes()
    path = tmp_path / "x.tif"
    path.write_bytes(tiff_bytes({256: 7, 257: 5, 258: depth, 259: 1, 262: 1, 278: 5}, data))
    got = raconvert.read(path)

    assert got.dtype == ("?" if depth == 1 else "u1" if depth <= 8 else "u2")
    assert np.array_equal(got, values)


def tiff_bytes(tags: dict[int, int], data: bytes) -> bytes:
    """Return a little-endian TIFF of one strip, with tags of one number each."""
    tags = {**tags, 273: 8, 279: len(data)}
    data += b"\0" * (len(data) % 2)
    entries = b"".join(
        tag.to_bytes(2, "little") + b"\4\0\1\0\0\0" + value.to_bytes(4, "little")
        for tag, value in sorted(tags.items())
    )
    head = b"II*\0" + (8 + len(data)).to_bytes(4, "little")
    return head + data + len(tags).to_bytes(2, "little") + entries + bytes(4)


def test_a_single_directory_of_imagej_for_many_images(tmp_path: Path) -> None:
    values = bits(">u2", (6, 9, 11))
    path = tmp_path / "x.tif"
    with tifffile.TiffWriter(path, byteorder=">") as out:
        out.write(values[0], description="ImageJ=1.53\nimages=6\nslices=6\n", metadata=None,
                  contiguous=False)  # fmt: skip
    with tifffile.TiffFile(path) as opened:
        offset = opened.pages[0].dataoffsets[0]
    with path.open("r+b") as file:
        file.seek(offset + values[0].nbytes)
        rest = file.read()
    with tifffile.TiffFile(path) as opened:
        directory = opened.pages[0].offset
    assert directory < offset, "tifffile writes the directory before the pixels"
    assert not rest.strip(b"\0")
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(values.tobytes())

    exactly(raconvert.read(path), values)


def test_reduced_images_are_taken_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    with tifffile.TiffWriter(path) as out:
        out.write(DEEP, metadata=None)
        out.write(DEEP[::2, ::2], subfiletype=1, metadata=None)

    exactly(raconvert.read(path), DEEP)
    (note,) = notes_of(path)
    assert note.startswith("1 reduced images or masks are left out, ")
    assert note.endswith(" takes them: x.page1")
    exactly(raconvert.read(path, "x.page1"), DEEP[::2, ::2])


def test_a_palette_gives_indices_and_is_kept(tmp_path: Path) -> None:
    table = (np.arange(768).reshape(3, 256) * 83 % 65536).astype("u2")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, GREY, photometric="palette", colormap=table)

    exactly(raconvert.read(path), GREY)
    convert(path, tmp_path / "y.ra")
    assert meta_of(tmp_path / "y.ra")["colormap"] == table.astype("<u2").tobytes()
    report = convert(tmp_path / "y.ra", tmp_path / "y.tif")
    exactly(raconvert.read(tmp_path / "y.tif"), GREY)
    assert "TIFF has no place for it: image.photometric, image.colormap" in str(
        list(report.equivalent)
    )


def test_white_is_zero_is_not_inverted_and_named_where_it_is_lost(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "x.tif", GREY, photometric="miniswhite")

    exactly(raconvert.read(tmp_path / "x.tif"), GREY)
    report = convert(tmp_path / "x.tif", tmp_path / "y.tif")
    exactly(raconvert.read(tmp_path / "y.tif"), GREY)
    assert "TIFF has no place for it: image.photometric" in str(list(report.equivalent))


@pytest.mark.parametrize("compression", ["none", "deflate"])
def test_tiff_for_other_readers(compression: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    """Shape and every bit through tifffile; libtiff has nothing to complain about."""
    shapes = [(), (5,), (5, 7), (5, 7, 1), (5, 7, 2), (5, 7, 3), (5, 7, 4), (4, 5, 7), (1, 5, 7),
              (1, 1), (2, 3, 5, 7), (2, 5, 7, 3), (1, 2, 1, 5, 7), (4, 1, 7)]  # fmt: skip
    path = tmp_path / "x.tif"
    for code in (*NUMBERS, "?"):
        for shape in shapes:
            values = bits("u1", shape) > 99 if code == "?" else bits(f"<{code}", shape)
            raconvert.write(path, values, overwrite=True, out_opts={"compression": compression})

            exactly(raconvert.read(path), values)
            with tifffile.TiffFile(path) as opened:
                got = np.stack([page.asarray() for page in opened.pages])
                assert got.astype(values.dtype).tobytes() == values.tobytes(), (code, shape)
            done = subprocess.run([tool("tiffinfo"), "-D", path], capture_output=True, check=True)
            complaints = [
                line for line in done.stderr.splitlines()
                if b"unsupported" not in line and b"Unknown field" not in line
            ]  # fmt: skip
            assert not complaints, (code, shape)


@settings(max_examples=60)
@given(
    hnp.arrays(
        st.sampled_from([np.dtype(code) for code in (*NUMBERS, "?", ">u2", ">f4", ">c8")]),
        hnp.array_shapes(min_dims=0, max_dims=5, max_side=6),
        elements={"allow_nan": True},
    ),
    st.sampled_from(["none", "deflate"]),
)
@example(np.zeros((1,) * 5, "u1"), "none")
@example(np.zeros((1,) * 7, ">f4"), "deflate")
def test_any_array_comes_back_from_tiff(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, compression: str
) -> None:
    path = tmp_path_factory.mktemp("tiff") / "x.tif"
    raconvert.write(path, values, out_opts={"compression": compression})

    exactly(raconvert.read(path), values)


def test_16_bit_color_is_kept_where_imageio_and_pillow_lose_it(tmp_path: Path) -> None:
    values = np.stack([DEEP, DEEP.T.copy().reshape(DEEP.shape), ~DEEP], axis=-1)
    for suffix in (".tif", ".ppm", ".png"):
        raconvert.write(tmp_path / f"x{suffix}", values)
        exactly(raconvert.read(tmp_path / f"x{suffix}"), values)
        convert(tmp_path / f"x{suffix}", tmp_path / f"{suffix[1:]}.ra")
    assert len({(tmp_path / f"{name}.ra").read_bytes() for name in ("tif", "ppm", "png")}) == 1


def test_plain_pages_are_copied_not_decoded(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.tif", bits("<f4", (5, 30, 40)))
    with raconvert.open(tmp_path / "x.tif") as array:
        assert array.extent is not None
        start = array.extent.offset
    data = (tmp_path / "x.tif").read_bytes()

    assert data[start : start + 24000] == bits("<f4", (5, 30, 40)).tobytes()


def test_tiff_metadata_comes_back(tmp_path: Path) -> None:
    geo = np.array([0.5, 0.5, 0.0], "<f8")
    first, last = tmp_path / "x.tif", tmp_path / "z.tif"
    tifffile.imwrite(
        first, RGB, photometric="rgb", description="a text: é".encode(), software="mine",
        resolution=((300, 7), (1, 3)), resolutionunit="CENTIMETER", iccprofile=b"profile" * 9,
        byteorder=">", metadata=None,
        extratags=[(274, "H", 1, 6, True), (33550, "d", 3, geo.astype(">f8").tobytes(), True),
                   (315, "s", 0, "A. N. Other", True), (700, "B", 4, b"<x/>", True)],
    )  # fmt: skip
    convert(first, tmp_path / "y.ra")
    convert(tmp_path / "y.ra", last)

    for path in (first, last):
        exactly(raconvert.read(path), RGB)  # the orientation is not applied
        meta = meta_of(path)
        assert meta == {
            "orientation": 6,
            "resolution": [[300, 7], [1, 3], "cm"],
            "icc": b"profile" * 9,
            "xmp": b"<x/>",
            "software": "mine",
        }
        with raconvert.open(path) as array:
            assert array.meta.description == "a text: é"
    assert notes_of(first) == ["tags that are left out: 315, 33550"]


def test_equal_arrays_give_equal_tiffs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        raconvert.write(tmp_path / f"{name}.tif", DEEP, out_opts={"compression": "deflate"})

    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


# The others: what is written, read by independent tools ------------------------------------------


@pytest.mark.parametrize("values", [GREY, RGB], ids=["grey", "rgb"])
def test_bmp_for_netpbm(values: np.ndarray, tmp_path: Path, tool: Callable[..., str]) -> None:
    path = tmp_path / "x.bmp"
    raconvert.write(path, values)
    exactly(raconvert.read(path), values)
    (tmp_path / "x.pnm").write_bytes(tool_output(tool("bmptopnm"), path))

    got = raconvert.read(tmp_path / "x.pnm")

    exactly(got if got.shape == values.shape else got[..., 0], values)


def tool_output(*command: object) -> bytes:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout


def test_bmp_of_bits_and_without_alpha(tmp_path: Path) -> None:
    for name, values in {"bits": BITS, "line": BITS[:1]}.items():
        raconvert.write(tmp_path / f"{name}.bmp", values)
        exactly(raconvert.read(tmp_path / f"{name}.bmp"), values)
    with pytest.raises(WouldLose, match="shape"):
        raconvert.write(tmp_path / "alpha.bmp", bits("u1", (9, 7, 4)))


def test_bmp_palette(tmp_path: Path) -> None:
    """A palette with equal colours in it keeps its places; one that is too short is refused."""
    table = np.zeros((256, 3), "u1")
    table[:4] = [[9, 8, 7], [1, 2, 3], [9, 8, 7], [4, 5, 6]]
    image = Image.fromarray(GREY % 4).convert("P")
    image.putdata((GREY % 4).ravel().tolist())
    image.putpalette(table.tobytes())
    image.save(tmp_path / "x.bmp")

    exactly(raconvert.read(tmp_path / "x.bmp"), table[GREY % 4])


@pytest.mark.parametrize("suffix", [".dib", ".bmp", "", ".dat"])
@pytest.mark.parametrize("values", [GREY, RGB, BITS], ids=["grey", "rgb", "bits"])
def test_a_bare_dib(values: np.ndarray, suffix: str, tmp_path: Path) -> None:
    """What Windows has in its clipboard and in .dib files: a BMP without its file header."""
    raconvert.write(tmp_path / "whole.bmp", values)
    path = tmp_path / f"x{suffix}"
    path.write_bytes((tmp_path / "whole.bmp").read_bytes()[14:])

    exactly(raconvert.read(path), values)


@every("size", [40, 108, 124])
@every("bits", [8, 24, 32])
@every("down", [False, True], ids=["up", "down"])
@every("suffix", [".dib", ""])
def test_bare_dibs_of_newer_versions(
    size: int, bits: int, down: bool, suffix: str, tmp_path: Path
) -> None:
    """Versions 4 and 5 of the header, known by content as the usual one is; Pillow is the judge."""
    head = np.array([size, 5, -3 if down else 3, 1 | bits << 16, 0, 0, 0, 0, 0, 0], "<i4")
    table = np.repeat(np.arange(256, dtype="<u4") * 0x010101, bits == 8)
    rows = np.random.default_rng(bits).integers(0, 256, (3, (5 * bits + 31) // 32 * 4), "u1")
    data = head.tobytes() + bytes(size - 40) + table.tobytes() + rows.tobytes()
    (tmp_path / f"x{suffix}").write_bytes(data)
    place = (14 + size + table.nbytes).to_bytes(4, "little")
    whole = b"BM" + (14 + len(data)).to_bytes(4, "little") + bytes(4) + place + data

    expected = np.asarray(Image.open(io.BytesIO(whole)))
    exactly(raconvert.read(tmp_path / f"x{suffix}"), expected)


def test_bits_of_a_channel_keep_their_values(tmp_path: Path) -> None:
    """5-5-5, the usual 16 bits: 31 stays 31, which a note says."""
    pixels = np.array([[0, 31, 31 << 5, 31 << 10]], "<u2")
    head = np.array([40, 4, 1], "<i4").tobytes() + b"\1\0\x10\0" + bytes(24)
    (tmp_path / "x.bmp").write_bytes(b"BM" + bytes(8) + b"\x36\0\0\0" + head + pixels.tobytes())

    expected = [[[0, 0, 0], [0, 0, 31], [0, 31, 0], [31, 0, 0]]]
    exactly(raconvert.read(tmp_path / "x.bmp"), np.array(expected, "u1"))
    assert meta_of(tmp_path / "x.bmp") == {"channel_bits": [5, 5, 5]}
    said = "channels of 5, 5, 5 bits keep the values of the file, unscaled"
    assert notes_of(tmp_path / "x.bmp") == [said]


BMP_BITS = [(bits, used) for bits in (1, 4, 8) for used in (1, 2, 3, 4, 15, 16, 17, 255, 256)
            if used <= 1 << bits]  # fmt: skip


@pytest.mark.parametrize("palette", ["greys", "scaled", "backwards", "colours"])
@pytest.mark.parametrize(("bits", "used"), BMP_BITS)
def test_bmp_of_few_greys(
    bits: int, used: int, palette: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Read as netpbm reads it."""
    greys = np.arange(used)
    table = {
        "greys": greys, "scaled": greys * (255 // max(used - 1, 1)), "backwards": greys[::-1],
        "colours": greys * 37 % 256,
    }[palette]  # fmt: skip
    colors = np.stack([table, table, table if palette != "colours" else table[::-1]], axis=-1)
    indices = np.random.default_rng(used).integers(0, used, (5, 23))
    spread = (indices[..., None] >> np.arange(bits)[::-1]) & 1
    rows = np.packbits(spread.reshape(5, -1).astype("u1"), axis=1)
    rows = np.pad(rows, [(0, 0), (0, -rows.shape[1] % 4)])[::-1]
    head = np.array([40, 23, 5], "<i4").tobytes() + bytes([1, 0, bits, 0]) + bytes(16)
    head += np.array([used, 0], "<i4").tobytes()
    data = head + np.pad(colors[:, ::-1], [(0, 0), (0, 1)]).astype("u1").tobytes() + rows.tobytes()
    start = 14 + len(head) + 4 * used
    path = tmp_path / "x.bmp"
    path.write_bytes(b"BM" + np.array([14 + len(data), 0, start], "<i4").tobytes() + data)
    got = raconvert.read(path)
    got = got * np.uint8(255) if got.dtype == bool else got
    (tmp_path / "x.pnm").write_bytes(tool_output(tool("bmptopnm"), path))
    expected = raconvert.read(tmp_path / "x.pnm")
    expected = expected * np.uint8(255) if expected.dtype == bool else expected

    planes = (values if values.ndim == 2 else values[..., 0] for values in (got, expected))
    assert np.array_equal(*planes)
    wanted = colors[indices].astype("u1")
    exactly(got, wanted[..., 0] if got.ndim == 2 else wanted)


def test_gif_for_netpbm(tmp_path: Path, tool: Callable[..., str]) -> None:
    path = tmp_path / "x.gif"
    for values in (GREY, np.arange(256, dtype="u1").reshape(8, 32), GREY // 64, GREY * 0 + 9):
        raconvert.write(path, values, overwrite=True)
        exactly(raconvert.read(path), values)
        (tmp_path / "x.pnm").write_bytes(tool_output(tool("giftopnm"), path))
        got = raconvert.read(tmp_path / "x.pnm")

        exactly(got if got.shape == values.shape else got[..., 0], values)


def test_what_is_not_written_of_the_metadata_is_named(tmp_path: Path) -> None:
    fields = {"icc": b"profile" * 20, "orientation": 6, "comment": "é", "resolution": [[1, 1]] * 3}
    meta = Metadata(description="a text", formats={"image": fields})
    for suffix, values in {".gif": GREY, ".bmp": GREY, ".webp": RGB, ".ppm": RGB}.items():
        report = raconvert.write(tmp_path / f"x{suffix}", values, meta=meta)

        exactly(raconvert.read(tmp_path / f"x{suffix}"), values)
        said = str(list(report.equivalent))
        for name in ("description", *(f"image.{field}" for field in fields)):
            assert name in said


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_animations_are_not_written(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="planes=True"):
        raconvert.write(tmp_path / f"y{suffix}", np.stack([GREY if suffix == ".gif" else RGB] * 2))


def test_colors_are_not_written_as_gif(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="image of GIF has the shape.*TIFF, NPY and RA hold it"):
        raconvert.write(tmp_path / "x.gif", RGB)

    assert os.listdir(tmp_path) == []


def test_gif_with_a_transparent_color_is_rgba(tmp_path: Path) -> None:
    image = Image.new("P", (3, 2), 1)
    image.putpalette([0, 0, 0, 250, 0, 0, 0, 250, 0])
    image.putpixel((2, 1), 2)
    image.save(tmp_path / "x.gif", transparency=2)

    got = raconvert.read(tmp_path / "x.gif")

    assert got.shape == (2, 3, 4)
    assert got[0, 0].tolist() == [250, 0, 0, 255]
    assert got[1, 2, 3] == 0


def test_webp_for_libwebp(tmp_path: Path, tool: Callable[..., str]) -> None:
    values = bits("u1", (20, 30, 3))
    raconvert.write(tmp_path / "x.webp", values)

    exactly(raconvert.read(tmp_path / "x.webp"), values)
    command = tool("dwebp"), "-quiet", "-ppm", tmp_path / "x.webp", "-o", tmp_path / "x.ppm"
    tool_output(*command)
    exactly(raconvert.read(tmp_path / "x.ppm"), values)


def test_alpha_of_webp(tmp_path: Path, tool: Callable[..., str]) -> None:
    """Read with the colours of transparent pixels, as dwebp reads it; never written."""
    values = bits("u1", (20, 30, 4)).copy()
    values[:5, :, -1] = 0
    Image.fromarray(values).save(tmp_path / "x.webp", lossless=True, exact=True)
    out = tool_output(tool("dwebp"), "-quiet", "-pam", tmp_path / "x.webp", "-o", "-")

    exactly(raconvert.read(tmp_path / "x.webp"), values)
    assert out.endswith(b"ENDHDR\n" + values.tobytes())
    with pytest.raises(WouldLose, match="image of WebP has the shape"):
        raconvert.write(tmp_path / "y.webp", values)


def test_an_animation_of_one_frame_is_composed_too(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Its frame does not fill the canvas; webpmux agrees on what it is."""

    def number(value: int) -> bytes:
        return value.to_bytes(3, "little")

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2)

    image = (FIXTURES / "cwebp_lossless.webp").read_bytes()[12:]
    height, width = GREY.shape
    frame = b"".join(map(number, (2, 1, width - 1, height - 1, 100))) + b"\0" + image
    body = b"WEBP" + chunk(b"VP8X", b"\2\0\0\0" + number(49) + number(39))
    body += chunk(b"ANIM", bytes(6)) + chunk(b"ANMF", frame)
    path = tmp_path / "x.webp"
    path.write_bytes(chunk(b"RIFF", body))
    said = tool_output(tool("webpmux"), "-info", path).decode()
    assert "Canvas size: 50 x 40" in said
    assert "Number of frames: 1" in said

    expected = np.zeros((40, 50, 4), "u1")
    expected[2 : 2 + height, 4 : 4 + width] = np.dstack([RGB, np.full_like(GREY, 255)])
    exactly(raconvert.read(path), expected)


def test_of_more_pictures_in_a_jpeg_the_first_is_read(tmp_path: Path) -> None:
    """Multi-Picture Format, as cameras and Pillow write it."""
    first, second = Image.fromarray(RGB), Image.fromarray(255 - RGB)
    first.save(tmp_path / "one.jpg", quality=90)
    first.save(tmp_path / "x.mpo", save_all=True, append_images=[second], quality=90)
    (tmp_path / "x.mpo").rename(tmp_path / "x.jpg")

    exactly(raconvert.read(tmp_path / "x.jpg"), raconvert.read(tmp_path / "one.jpg"))
    assert len(notes_of(tmp_path / "x.jpg")) == 1
    assert "bytes after the end of the JPEG image were ignored" in notes_of(tmp_path / "x.jpg")[0]


def test_bytes_behind_a_jpeg_are_noted(tmp_path: Path) -> None:
    """Counted from its own end marker, not from one in its thumbnail or in what follows."""
    contents = (FIXTURES / "cjpeg_rgb.jpg").read_bytes()
    thumbnail = b"\xff\xe1\0\x08\xff\xd8\xff\xd9ab"
    path = tmp_path / "x.jpg"
    for tail in (b"", b"\0" * 7, b"junk\xff\xd9junk"):
        path.write_bytes(contents[:2] + thumbnail + contents[2:] + tail)
        notes = [f"{len(tail)} bytes after the end of the JPEG image were ignored"] if tail else []

        assert notes_of(path) == notes
        assert raconvert.read(path).shape == RGB.shape


def test_jpeg_only_with_permission(tmp_path: Path, tool: Callable[..., str]) -> None:
    raconvert.write(tmp_path / "x.npy", RGB)
    with pytest.raises(WouldLose, match=r'allow=\["precision"\]'):
        convert(tmp_path / "x.npy", tmp_path / "x.jpg")
    assert not (tmp_path / "x.jpg").exists()

    convert(tmp_path / "x.npy", tmp_path / "x.jpg", allow=["precision"], out_opts={"quality": 90})

    (tmp_path / "x.ppm").write_bytes(tool_output(tool("djpeg"), "-dct", "int", tmp_path / "x.jpg"))
    exactly(raconvert.read(tmp_path / "x.jpg"), raconvert.read(tmp_path / "x.ppm"))


def test_jpeg_of_inks_is_refused(tmp_path: Path) -> None:
    inks = Image.fromarray(np.full((8, 8, 4), 200, "u1"), "CMYK")
    inks.save(tmp_path / "x.jpg", quality=100)

    with pytest.raises(Unsupported, match="CMYK.*\n.*PNG"):
        raconvert.read(tmp_path / "x.jpg")


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".tif"])
def test_orientation_is_kept_and_never_applied(suffix: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(RGB).save(tmp_path / f"x{suffix}", exif=exif, lossless=True)

    assert raconvert.read(tmp_path / f"x{suffix}").shape == RGB.shape
    assert meta_of(tmp_path / f"x{suffix}")["orientation"] == 6


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".tif"])
def test_profiles_are_read_and_go_to_tiff(suffix: str, tmp_path: Path) -> None:
    first, last = tmp_path / f"x{suffix}", tmp_path / "y.tif"
    options = {"icc_profile": b"profile" * 20, "dpi": (300, 150), "lossless": True}
    Image.fromarray(RGB).save(first, **options)
    convert(first, last)

    assert meta_of(first)["icc"] == b"profile" * 20
    with Image.open(last) as opened:
        assert opened.info["icc_profile"] == b"profile" * 20
        if suffix != ".webp":
            assert tuple(opened.info["dpi"]) == (300, 150)


def test_a_resolution_of_bmp_goes_to_tiff(tmp_path: Path) -> None:
    Image.fromarray(RGB).save(tmp_path / "x.bmp", dpi=(254, 127))
    convert(tmp_path / "x.bmp", tmp_path / "y.tif")

    assert meta_of(tmp_path / "x.bmp") == {"resolution": [[10000, 100], [5000, 100], "cm"]}
    with Image.open(tmp_path / "y.tif") as opened:
        assert [round(dots) for dots in opened.info["dpi"]] == [254, 127]


@pytest.mark.parametrize(
    ("name", "values", "magic"),
    [
        ("x.pbm", BITS, "PBM raw"),
        ("x.pgm", GREY, "PGM raw"),
        ("x.pgm", DEEP, "PGM raw"),
        ("x.ppm", RGB, "PPM raw"),
        ("x.ppm", np.stack([DEEP] * 3, axis=-1), "PPM raw"),
        ("x.pnm", RGB, "PPM raw"),
    ],
)
def test_netpbm_for_netpbm(
    name: str, values: np.ndarray, magic: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    raconvert.write(tmp_path / name, values)

    exactly(raconvert.read(tmp_path / name), values)
    assert magic in tool_output(tool("pamfile"), tmp_path / name).decode()
    again = tool_output(tool("pnmtopnm"), tmp_path / name)
    assert again.startswith((tmp_path / name).read_bytes()[:2])
    (tmp_path / "again.pnm").write_bytes(again)
    exactly(raconvert.read(tmp_path / "again.pnm"), values)


@pytest.mark.parametrize("channels", [1, 5])
def test_channels_that_netpbm_does_not_have_are_refused(channels: int, tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match=r"\(H, W, 3\) or \(H, W, 2\) or \(H, W, 4\)"):
        raconvert.write(tmp_path / "x.pnm", np.stack([GREY] * channels, axis=-1))


def test_a_suffix_that_means_another_netpbm_format(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="would be a P6 file"):
        raconvert.write(tmp_path / "x.pgm", RGB)


def test_a_maxval_is_kept_and_its_values_are_not_scaled(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P5\n# one\n# two\n3 2 15\n" + bytes(range(6)))

    exactly(raconvert.read(tmp_path / "x.pgm"), np.arange(6, dtype="u1").reshape(2, 3))
    assert meta_of(tmp_path / "x.pgm") == {"maxval": 15}
    report = convert(tmp_path / "x.pgm", tmp_path / "y.pgm")
    assert (tmp_path / "y.pgm").read_bytes() == b"P5\n3 2\n255\n" + bytes(range(6))
    assert "image.maxval" in str(list(report.equivalent))


@pytest.mark.parametrize("name", ["pamtogif_palette.gif", "cwebp_lossless.webp", "pgm_deep.pgm"])
def test_bytes_behind_an_image_are_noted(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((FIXTURES / name).read_bytes() + b"more")

    assert notes_of(FIXTURES / name) == []
    assert len(notes_of(path)) == 1
    assert notes_of(path)[0].startswith("4 bytes after the ")
    exactly(raconvert.read(path), VALUES[name])


# Refusals and stacks -----------------------------------------------------------------------------

DEEP_RGB = np.stack([DEEP] * 3, axis=-1)


@pytest.mark.parametrize(
    ("suffix", "values", "reason"),
    [
        (".bmp", DEEP, 'dtype="uint8" or scale'),
        (".bmp", np.stack([GREY] * 5), "planes=True"),
        (".gif", np.dstack([RGB, GREY]), "planes=True"),
        (".gif", RGB[None], "TIFF, NPY and RA hold it"),
        (".bmp", RGB[None], "planes=True"),
        (".gif", np.stack([GREY, GREY]), "planes=True"),
        (".webp", GREY, r"\(H, W, 3\)"),
        (".webp", DEEP_RGB, 'dtype="uint8" or scale'),
        (".pnm", GREY.astype("i1"), "or scale"),
        (".pnm", GREY.astype("f4"), "or scale"),
        (".jpg", np.dstack([RGB, GREY]), "planes=True"),
        (".bmp", np.stack([BITS] * 5), "planes=True"),
        (".tif", np.zeros((2, 0)), "without pixels"),
        (".tif", np.zeros((2, 2), "S3"), "not S3"),
        (".bmp", np.zeros((2, 2), "M8[s]"), "hold"),
    ],
)
def test_refusals(suffix: str, values: np.ndarray, reason: str, tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match=reason):
        raconvert.write(tmp_path / f"x{suffix}", values)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".tif", ".jpg", ".bmp", ".gif", ".webp", ".ppm"])
def test_a_glob_of_images_is_a_stack(suffix: str, tmp_path: Path) -> None:
    for number in (1, 2, 10):
        image = Image.fromarray(np.full_like(RGB, number * 20))
        image.save(
            tmp_path / f"im{number}{suffix}", **{"lossless": True} if suffix == ".webp" else {}
        )

    convert(str(tmp_path / f"im*{suffix}"), tmp_path / "x.ra")

    got = raconvert.read(tmp_path / "x.ra")
    assert got.shape == (3, *RGB.shape)
    assert np.abs(got[:, 0, 0, 0].astype(int) - [20, 40, 200]).max() <= (suffix == ".jpg")


def test_planes_of_a_stack(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.npy", np.stack([GREY, 255 - GREY]))
    convert(tmp_path / "x.npy", str(tmp_path / "x.bmp"), planes=True)

    exactly(raconvert.read(tmp_path / "x_001.bmp"), 255 - GREY)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files as Linux does")
def test_no_file_stays_open_behind_an_image(tmp_path: Path) -> None:
    """Some images of it are still to come."""
    path = tmp_path / "x.tif"
    values = np.arange(6 * 20 * 30, dtype="u2").astype("u1").reshape(6, 20, 30)
    tifffile.imwrite(path, values, compression="zlib", photometric="minisblack")
    gc.disable()
    try:
        with raconvert.open(path) as array:
            assert np.array_equal(array[0], values[0])
        links = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]
        assert str(path.resolve()) not in links
    finally:
        gc.enable()


def test_nothing_of_the_backends_leaks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No warning, no line, and their global settings are as before."""
    from PIL import ImageFile

    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in VALUES:
            raconvert.read(FIXTURES / name)
    damaged = bytearray((FIXTURES / "tiffcp_deflate_predictor.tif").read_bytes())
    damaged[8:60] = bytes(52)
    (tmp_path / "x.tif").write_bytes(damaged)
    with pytest.raises(raconvert.RaconvertError):
        raconvert.read(tmp_path / "x.tif")

    assert capfd.readouterr() == ("", "")
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)
