"""TIFF, JPEG, GIF, WebP, BMP and netpbm: values against independent tools and libraries.

Damaged and hostile files are in test_image_hostile.py.
"""

from __future__ import annotations

import gc
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import raconvert
from raconvert import convert
from raconvert.arrays.metadata import Metadata
from raconvert.errors import Unsupported, UsageError, WouldLose

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
    "tiffcp_planar.tif": RGB,
    "tiffcp_big_endian.tif": DEEP,
    "tiffcp_bigtiff.tif": DEEP,
    "tiffcp_three_pages.tif": np.stack([GREY] * 3),
    "ppmtobmp_24bit.bmp": RGB,
    "ppmtobmp_os2.bmp": RGB,
    "ppmtobmp_palette.bmp": GREY_AS_RGB,
    "pamtogif_palette.gif": GREY_AS_RGB,
    "pamtogif_interlaced.gif": GREY_AS_RGB,
    "cwebp_lossless.webp": RGB,
    "pgm_deep.pgm": DEEP,
    "pamtopam_rgb.pam": RGB,
}
DECODED = {  # lossy files, and what their own decoder makes of them
    "cjpeg_rgb.jpg": "cjpeg_rgb.jpg.ppm",
    "cjpeg_grey_progressive.jpg": "cjpeg_grey_progressive.jpg.pgm",
    "cwebp_lossy.webp": "cwebp_lossy.webp.ppm",
}
REFUSED = {
    "tiffcp_mixed_pages.tif": "page 1 is not like the first one",
    "two_images.ppm": "has more than one image.*\n.*pamsplit",
    "tiffcp_lzw.tif": "compressed as LZW.*\n.*tiffcp -c none",
    "tiffcp_lzw_predictor_tiles.tif": "compressed as LZW",
    "tiffcp_packbits.tif": "compressed as PACKBITS",
    "tiffcp_fax3.tif": "compressed as CCITTFAX3",
    "tiffcp_fax4.tif": "compressed as CCITTFAX4",
    "tiffcp_reversed_bits.tif": "reversed bit order",
    "img2webp_animation.webp": "is an animation.*\n.*webpmux",
    "pnmtoplain_grey.pgm": "plain text.*\n.*pnmtopnm",
    "pnmtoplain_rgb.ppm": "plain text",
    "pnmtoplain_bits.pbm": "plain text",
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


@pytest.mark.parametrize(("pages", "expected"), [("0", GREY), ("1", RGB)])
def test_mixed_pages_one_by_one(pages: str, expected: np.ndarray) -> None:
    path = FIXTURES / "tiffcp_mixed_pages.tif"

    exactly(raconvert.read(path, in_opts={"pages": pages}), expected)


@pytest.mark.parametrize("pages", ["2", "x", "1:", "-1", ""])
def test_pages_that_are_not_there(pages: str) -> None:
    with pytest.raises(UsageError, match="page"):
        raconvert.read(FIXTURES / "tiffcp_mixed_pages.tif", in_opts={"pages": pages})


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


@pytest.mark.parametrize("bigtiff", [False, True], ids=["classic", "big"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big_endian"])
@pytest.mark.parametrize("layout", LAYOUTS)
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
        expected = np.moveaxis(values, 0, -1) if "planarconfig" in options else values

        exactly(raconvert.read(path), expected)


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


@pytest.mark.parametrize("compression", ["lzw", "packbits", "zip:3", "lzma", "zstd", "jpeg"])
def test_other_compressions_of_tiff_are_refused_by_name(
    compression: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """What is named in the message makes a file that is read."""
    values = RGB if compression != "zip:3" else RGB.astype("f4")
    plain, packed, again = (tmp_path / f"{name}.tif" for name in ("plain", "packed", "again"))
    tifffile.imwrite(plain, values, photometric="rgb")
    subprocess.run([tool("tiffcp"), "-c", compression, plain, packed], check=True)
    with pytest.raises(Unsupported, match="(compressed as|predictor 3)(.|\n)*tiffcp -c none"):
        raconvert.read(packed)
    subprocess.run([tool("tiffcp"), "-c", "none", packed, again], check=True)

    got = raconvert.read(again)
    assert got.shape == values.shape
    assert compression == "jpeg" or np.array_equal(got, values)


@pytest.mark.parametrize("depth", [1, 2, 4, 7, 10, 12, 14])
def test_tiff_of_odd_depths(depth: int, tmp_path: Path) -> None:
    """Written here by hand: rows of samples packed to whole bytes, most significant bit first."""
    values = (np.arange(5 * 7).reshape(5, 7) * 37) % (1 << depth)
    spread = (values[..., None] >> np.arange(depth)[::-1]) & 1
    data = np.packbits(spread.reshape(5, -1).astype("u1"), axis=1).tobytes()
    path = tmp_path / "x.tif"
    path.write_bytes(tiff_bytes({256: 7, 257: 5, 258: depth, 259: 1, 262: 1, 278: 5}, data))
    if depth > 1:
        with pytest.raises(Unsupported, match=f"samples of {depth} bits"):
            raconvert.read(path)
        return

    got = raconvert.read(path)

    assert got.dtype == "?"
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


def test_reduced_images_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    with tifffile.TiffWriter(path) as out:
        out.write(DEEP, metadata=None)
        out.write(DEEP[::2, ::2], subfiletype=1, metadata=None)

    exactly(raconvert.read(path), DEEP)
    assert notes_of(path) == ["1 reduced images or masks are left out"]


def test_a_palette_gives_indices_and_comes_back(tmp_path: Path) -> None:
    table = (np.arange(768).reshape(3, 256) * 83 % 65536).astype("u2")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, GREY, photometric="palette", colormap=table)

    exactly(raconvert.read(path), GREY)
    convert(path, tmp_path / "y.tif")
    with tifffile.TiffFile(tmp_path / "y.tif") as opened:
        assert np.array_equal(opened.pages[0].colormap, table)
        assert opened.pages[0].photometric == tifffile.PHOTOMETRIC.PALETTE


def test_white_is_zero_is_not_inverted_and_comes_back(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "x.tif", GREY, photometric="miniswhite")

    exactly(raconvert.read(tmp_path / "x.tif"), GREY)
    convert(tmp_path / "x.tif", tmp_path / "y.tif")
    with tifffile.TiffFile(tmp_path / "y.tif") as opened:
        assert opened.pages[0].photometric == tifffile.PHOTOMETRIC.MINISWHITE


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


def test_bits_that_would_be_scaled_are_refused(tmp_path: Path) -> None:
    """5-5-5, the usual 16 bits: 31 would become 255."""
    pixels = np.array([[0, 31, 31 << 5, 31 << 10]], "<u2")
    head = np.array([40, 4, 1], "<i4").tobytes() + b"\1\0\x10\0" + bytes(24)
    (tmp_path / "x.bmp").write_bytes(b"BM" + bytes(8) + b"\x36\0\0\0" + head + pixels.tobytes())

    with pytest.raises(Unsupported, match="16 bits per pixel.*\n.*bmptopnm"):
        raconvert.read(tmp_path / "x.bmp")


@pytest.mark.parametrize("values", [GREY, RGB], ids=["grey", "rgb"])
def test_gif_for_netpbm(values: np.ndarray, tmp_path: Path, tool: Callable[..., str]) -> None:
    path = tmp_path / "x.gif"
    raconvert.write(path, values)
    exactly(raconvert.read(path), values)
    (tmp_path / "x.pnm").write_bytes(tool_output(tool("giftopnm"), path))

    got = raconvert.read(tmp_path / "x.pnm")

    exactly(got if got.shape == values.shape else got[..., 0], values)


def test_a_comment_of_gif_comes_back(tmp_path: Path) -> None:
    meta = Metadata(formats={"image": {"comment": "é" * 200}})
    raconvert.write(tmp_path / "x.gif", RGB, meta=meta)

    exactly(raconvert.read(tmp_path / "x.gif"), RGB)
    assert meta_of(tmp_path / "x.gif") == meta.formats["image"]


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_animations_are_refused_by_name(suffix: str, tmp_path: Path) -> None:
    frames = [Image.fromarray(RGB), Image.fromarray(255 - RGB)]
    frames[0].save(tmp_path / f"x{suffix}", save_all=True, append_images=frames[1:])

    with pytest.raises(Unsupported, match="is an animation, not one image.*\n.*for instance"):
        raconvert.read(tmp_path / f"x{suffix}")
    with pytest.raises(WouldLose, match="--planes"):
        raconvert.write(tmp_path / f"y{suffix}", np.stack([RGB, RGB]))


def test_gif_of_all_greys_in_color_stays_in_color(tmp_path: Path) -> None:
    greys = np.repeat(np.arange(256, dtype="u1").reshape(16, 16, 1), 3, axis=2)
    raconvert.write(tmp_path / "x.gif", greys)

    exactly(raconvert.read(tmp_path / "x.gif"), greys)


def test_gif_of_too_many_colors_is_refused_while_writing(tmp_path: Path) -> None:
    many = bits("u1", (30, 30, 3))
    with pytest.raises(WouldLose, match=r"array 'x' has \d+ colours"):
        raconvert.write(tmp_path / "x.gif", many)

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


@pytest.mark.parametrize("channels", [3, 4])
def test_webp_for_libwebp(channels: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    values = bits("u1", (20, 30, channels)).copy()
    values[:5, :, -1] = 0  # with alpha: transparent, with colours that are kept
    raconvert.write(tmp_path / "x.webp", values)

    exactly(raconvert.read(tmp_path / "x.webp"), values)
    command = tool("dwebp"), "-quiet", "-pam", tmp_path / "x.webp", "-o", tmp_path / "x.pam"
    tool_output(*command)
    exactly(raconvert.read(tmp_path / "x.pam")[..., :channels], values)


def test_webp_would_drop_alpha_of_255(tmp_path: Path) -> None:
    opaque = np.dstack([RGB, np.full_like(GREY, 255)])
    with pytest.raises(WouldLose, match="255 everywhere"):
        raconvert.write(tmp_path / "x.webp", opaque)

    assert os.listdir(tmp_path) == []


def test_jpeg_only_with_permission(tmp_path: Path, tool: Callable[..., str]) -> None:
    raconvert.write(tmp_path / "x.npy", RGB)
    with pytest.raises(WouldLose, match="--allow precision"):
        convert(tmp_path / "x.npy", tmp_path / "x.jpg")
    assert not (tmp_path / "x.jpg").exists()

    convert(tmp_path / "x.npy", tmp_path / "x.jpg", allow=["precision"], out_opts={"quality": 90})

    (tmp_path / "x.ppm").write_bytes(tool_output(tool("djpeg"), "-dct", "int", tmp_path / "x.jpg"))
    exactly(raconvert.read(tmp_path / "x.jpg"), raconvert.read(tmp_path / "x.ppm"))


def test_jpeg_of_inks_stays_inks(tmp_path: Path) -> None:
    inks = Image.fromarray(np.full((8, 8, 4), 200, "u1"), "CMYK")
    inks.save(tmp_path / "x.jpg", quality=100)

    got = raconvert.read(tmp_path / "x.jpg")

    assert got.shape == (8, 8, 4)
    assert np.abs(got.astype(int) - 200).max() <= 1
    assert meta_of(tmp_path / "x.jpg")["color"] == "CMYK"
    assert notes_of(tmp_path / "x.jpg") == ["the four channels are inks (CMYK), not RGB with alpha"]


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".tif"])
def test_orientation_is_kept_and_never_applied(suffix: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(RGB).save(tmp_path / f"x{suffix}", exif=exif, lossless=True)

    assert raconvert.read(tmp_path / f"x{suffix}").shape == RGB.shape
    assert meta_of(tmp_path / f"x{suffix}")["orientation"] == 6


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".tif"])
def test_profiles_and_resolution_go_from_one_format_to_the_other(
    suffix: str, tmp_path: Path
) -> None:
    first = tmp_path / "x.tif"
    tifffile.imwrite(
        first, RGB, photometric="rgb", iccprofile=b"profile" * 20, resolution=((300, 1), (150, 1)),
        resolutionunit="INCH", extratags=[(274, "H", 1, 3, True)], metadata=None,
    )  # fmt: skip
    last = tmp_path / f"y{suffix}"
    convert(first, last, allow=["precision"])

    with Image.open(last) as opened:
        assert opened.info["icc_profile"] == b"profile" * 20
        if suffix != ".webp":
            assert tuple(opened.info["dpi"]) == (300, 150)


@pytest.mark.parametrize(
    ("name", "values", "magic"),
    [
        ("x.pbm", BITS, "PBM raw"),
        ("x.pgm", GREY, "PGM raw"),
        ("x.pgm", DEEP, "PGM raw"),
        ("x.ppm", RGB, "PPM raw"),
        ("x.ppm", np.stack([DEEP] * 3, axis=-1), "PPM raw"),
        ("x.pam", RGB, "PAM"),
        ("x.pnm", np.dstack([RGB, GREY]), "PAM"),
        ("x.pnm", np.dstack([GREY, GREY]), "PAM"),
    ],
)
def test_netpbm_for_netpbm(
    name: str, values: np.ndarray, magic: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    raconvert.write(tmp_path / name, values)

    exactly(raconvert.read(tmp_path / name), values)
    assert magic in tool_output(tool("pamfile"), tmp_path / name).decode()
    with (tmp_path / name).open("rb") as file:
        done = subprocess.run([tool("pamtopam")], stdin=file, capture_output=True, check=True)
    (tmp_path / "again.pam").write_bytes(done.stdout)
    again = raconvert.read(tmp_path / "again.pam")
    exactly(again != 0 if values.dtype == bool else again, values)


def test_a_suffix_that_means_another_netpbm_format(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="would be a P6 file"):
        raconvert.write(tmp_path / "x.pgm", RGB)


def test_a_maxval_is_kept_and_its_values_are_not_scaled(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P5\n# one\n# two\n3 2 15\n" + bytes(range(6)))

    exactly(raconvert.read(tmp_path / "x.pgm"), np.arange(6, dtype="u1").reshape(2, 3))
    convert(tmp_path / "x.pgm", tmp_path / "y.pgm")
    assert (tmp_path / "y.pgm").read_bytes() == b"P5\n3 2\n15\n" + bytes(range(6))


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
        (".bmp", DEEP, "--dtype uint8 or --scale"),
        (".bmp", np.stack([GREY] * 5), "--planes"),
        (".gif", np.dstack([RGB, GREY]), "--planes"),
        (".gif", RGB[None], "--planes"),
        (".gif", np.stack([GREY, GREY]), "--planes"),
        (".webp", GREY, r"\(H, W, 3 or 4\)"),
        (".webp", DEEP_RGB, "--dtype uint8 or --scale"),
        (".pnm", GREY.astype("i1"), "--scale"),
        (".pnm", GREY.astype("f4"), "--scale"),
        (".jpg", np.dstack([RGB, GREY]), "--planes"),
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
