"""Damaged and hostile images: refused by an error of ours that names the file, at little cost."""

from __future__ import annotations

import io
import itertools
import struct
import subprocess
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from cases import every, rounds
from image_tiff import SHORT, entry, tiff
from PIL import Image

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.source import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "image"
MODULES = {
    ".tif": "tiff", ".jpg": "jpeg", ".gif": "gif", ".webp": "webp", ".bmp": "bmp",
    ".pgm": "netpbm", ".ppm": "netpbm", ".pbm": "netpbm", ".pam": "netpbm",
}  # fmt: skip
NAMES = sorted(path.name for path in FIXTURES.iterdir() if path.suffix in MODULES)
MAX_MEMORY = 64 << 20


def decode(path: Path) -> list[np.ndarray]:
    plugin = import_module(f"raconvert.plugins.image.{MODULES[path.suffix]}")
    with plugin.read(Source(str(path), max_memory=MAX_MEMORY)) as bundle:
        return [np.concatenate([b.reshape(-1).copy() for b in blocks(bundle.arrays[0], 4096)])]


@every("name", NAMES)
def test_cut_anywhere(name: str, tmp_path: Path) -> None:
    """Never other values; the cuts are every byte of short files, a sample of the others."""
    contents = (FIXTURES / name).read_bytes()
    try:
        whole = decode(FIXTURES / name)[0]
    except Unsupported:
        whole = None
    path = tmp_path / f"cut{Path(name).suffix}"
    end = len(contents)
    step = 1 + end // rounds(200, 40)
    for length in {*range(0, end, step), *range(max(0, end - 20), end)}:
        path.write_bytes(contents[:length])
        try:
            got = decode(path)[0]
        except RaconvertError as error:
            assert str(path) in str(error)  # noqa: PT017 - not every cut or flip is an error
        else:
            first = name == "two_images.ppm"  # cut between its images, it is a file of one image
            assert first or (whole is not None and np.array_equal(got, whole)), length


# TIFF --------------------------------------------------------------------------------------------

FLOAT = 11
GREY_TAGS = [entry(256, 4), entry(257, 2), entry(258, 8, SHORT), entry(262, 1, SHORT)]
PIXELS = [entry(273, 8), entry(279, 8)]


def refused_tiff(path: Path, data: bytes, error: type[Exception], match: str) -> None:
    path.write_bytes(data)
    with pytest.raises(error, match=match):
        decode(path)


@every(
    "tags, error, match",
    [
        ([entry(256, 0), *GREY_TAGS[1:], *PIXELS], Corrupt, "no pixels"),
        ([*GREY_TAGS[1:], *PIXELS], Corrupt, "no pixels"),
        ([*GREY_TAGS], Corrupt, "missing data offset tag"),
        ([*GREY_TAGS, entry(273, 8), entry(279, 7)], Corrupt, "than its compressed bytes"),
        ([*GREY_TAGS, entry(273, 9000), entry(279, 8)], Corrupt, "ends inside its pixels"),
        ([entry(256, 1 << 20), entry(257, 1 << 20), *GREY_TAGS[2:], entry(273, 0), entry(279, 0)],
         TooLarge, "all its images together"),
        ([entry(256, 1 << 31), entry(257, 1 << 31), *GREY_TAGS[2:], *PIXELS], Corrupt, "than its"),
        ([entry(256, 1 << 31), entry(257, 1 << 31), *GREY_TAGS[2:], *PIXELS, entry(259, 4, SHORT)],
         Unsupported, "CCITT"),
        ([entry(256, 1 << 28), entry(257, 1), entry(258, 1, SHORT), entry(262, 1, SHORT),
          entry(259, 8, SHORT), *PIXELS], Corrupt, "than its"),
        ([*GREY_TAGS, *PIXELS, entry(259, 7, SHORT)], Corrupt, "not begin as a JPEG"),
        ([*GREY_TAGS, *PIXELS, entry(259, 6, SHORT)], Unsupported, "OJPEG"),
        ([*GREY_TAGS, *PIXELS, entry(259, 50000, SHORT)], Corrupt, "ZSTD"),
        ([*GREY_TAGS, *PIXELS, entry(259, 34925, SHORT)], Corrupt, "corrupted strip"),
        ([*GREY_TAGS, *PIXELS, entry(259, 999, SHORT)], Unsupported, "compressed as 999"),
        ([*GREY_TAGS, *PIXELS, entry(317, 9, SHORT)], Unsupported, "predictor 9"),
        ([*GREY_TAGS, entry(273, 0x41000000, FLOAT), entry(279, 8)], Corrupt, "damaged"),
        ([*GREY_TAGS, entry(273, 8), entry(279, 0x41000000, FLOAT)], Corrupt, "damaged"),
        ([entry(256, 0x40800000, FLOAT), *GREY_TAGS[1:], *PIXELS], Corrupt, "damaged"),
        ([*GREY_TAGS, *PIXELS, entry(277, 0x3F800000, FLOAT)], Corrupt, "damaged"),
        ([*GREY_TAGS, *PIXELS, entry(339, 5, SHORT)], Unsupported, "format 5"),
        ([*GREY_TAGS, *PIXELS, entry(277, 65535, SHORT)], Corrupt, "than its"),
        ([*GREY_TAGS, *PIXELS, entry(278, 0)], Corrupt, "rowsperstrip=0"),
        ([*GREY_TAGS, *PIXELS, entry(322, 0), entry(323, 0)], Corrupt, "damaged"),
        ([*GREY_TAGS, *PIXELS, entry(32997, 5)], Corrupt, "StripByteCounts"),
        ([*GREY_TAGS, *PIXELS, entry(270, 8, 2, count=1 << 30)], Corrupt, "tag 270 .*invalid value offset"),
        ([*GREY_TAGS, entry(273, 8, 4, count=1 << 30), entry(279, 8)], Corrupt, "tag 273 .*invalid value offset"),
    ],
)  # fmt: skip
def test_hostile_directories(
    tags: list[bytes], error: type[Exception], match: str, tmp_path: Path
) -> None:
    refused_tiff(tmp_path / "x.tif", tiff(tags, bytes(8)), error, match)


def test_images_with_a_depth(tmp_path: Path) -> None:
    """Of two planes, as SGI's libraries write them."""
    places = struct.pack("<4I", 8, 16, 8, 8)
    tags = [
        *GREY_TAGS,
        entry(278, 2),
        entry(32997, 2),
        entry(273, 24, count=2),
        entry(279, 32, count=2),
    ]

    refused_tiff(tmp_path / "x.tif", tiff(tags, bytes(16) + places), Unsupported, "with a depth")


@every("kind", [1, 2, 3, 4, 5, 7, 11, 12])
@every("tag", [254, 258, 262, 266, 270, 274, 278, 282, 284, 296, 305, 317, 320,
                                 322, 330, 338, 339, 347, 530, 700, 32997, 33550, 34665, 50839])  # fmt: skip
def test_tags_of_unusual_types(tag: int, kind: int, tmp_path: Path) -> None:
    """Read, or refused by an error of ours; as metadata, and where they say what the pixels are."""
    tags = {number: item for item in [*GREY_TAGS, *PIXELS] for number in [item[:2]]}
    for compression, count in itertools.product((1, 7, 8), (1, 3)):
        tags[tag.to_bytes(2, "little")] = entry(tag, 8, kind, count=count)
        packed = entry(259, compression, SHORT)
        (tmp_path / "x.tif").write_bytes(tiff([*tags.values(), packed], bytes(range(64))))
        try:
            decode(tmp_path / "x.tif")
        except RaconvertError as error:
            assert "x.tif" in str(error)  # noqa: PT017 - not all of them are wrong


def test_the_directory_of_those_tests_is_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "x.tif").write_bytes(tiff([*GREY_TAGS, *PIXELS], bytes(range(8))))

    assert decode(tmp_path / "x.tif")[0].tolist() == list(range(8))


@pytest.mark.parametrize("to", [0, 1], ids=["itself", "the_first"])
def test_directories_in_a_loop(to: int, tmp_path: Path) -> None:
    data = tiff([*GREY_TAGS, *PIXELS], bytes(8), pages=2, loop_to=to)

    refused_tiff(tmp_path / "x.tif", data, Corrupt, "loop")


def overlapping(pages: int) -> bytes:
    """Return a chain of directories of 4096 entries, each an entry behind the one before.

    All say that they are reduced images, so that none is looked at any closer.
    """
    entries = 4096
    data = b"II*\0\x08\0\0\0"
    for number in range(entries):
        data += struct.pack("<HHHIH", entries, (254, 273, 279)[number % 3], SHORT, 1, 1)
    for page in range(pages):
        following = 8 + 12 * (page + 1) if page < pages - 1 else 0
        data += struct.pack("<HIIH", entries, following, 1, 1)
    return data + bytes(8)


def sharing(pages: int, tag: int, kind: int) -> bytes:
    """Return pages that all have the same value, of half a megabyte, in a tag."""
    shared = b"\x08\0\0\0" * (1 << 17)
    size = {2: 1, 4: 4}[kind]
    tags = [*GREY_TAGS, *[item for item in PIXELS if item[:2] != tag.to_bytes(2, "little")],
            entry(tag, 8, kind, count=len(shared) // size)]  # fmt: skip
    return tiff(tags, shared, pages=pages)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(overlapping(3000), id="directories"),
        pytest.param(sharing(5000, 270, 2), id="descriptions"),
        pytest.param(sharing(5000, 273, 4), id="offsets"),
        pytest.param(sharing(5000, 34665, 4), id="exif"),
    ],
)
def test_work_is_in_proportion_to_the_file(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are the bytes that tifffile reads of it."""
    path = tmp_path / "x.tif"
    path.write_bytes(data)
    total = 0
    plain = tifffile.FileHandle.read

    def read(*arguments: Any) -> bytes:
        nonlocal total
        found = plain(*arguments)
        total += len(found)
        return found

    monkeypatch.setattr(tifffile.FileHandle, "read", read)
    try:
        decode(path)
    except RaconvertError as error:
        assert str(path) in str(error)  # noqa: PT017 - whether it is refused is not the point

    assert 0 < total < 10 * len(data) + (2 << 20)


def test_strips_that_overlap(tmp_path: Path) -> None:
    """One strip named a thousand times would take a thousand times its bytes."""
    count = 1000
    offsets = struct.pack("<I", 8) * count
    sizes = struct.pack("<I", 400) * count
    data = bytes(400)
    tags = [entry(256, 1), entry(257, count * 400), entry(258, 8, SHORT), entry(262, 1, SHORT),
            entry(278, 400), entry(273, 8 + len(data), 4, count=count),
            entry(279, 8 + len(data) + len(offsets), 4, count=count)]  # fmt: skip

    refused_tiff(tmp_path / "x.tif", tiff(tags, data + offsets + sizes), Corrupt, "overlap")


def test_a_deflate_bomb(tmp_path: Path) -> None:
    """256 MiB of zeros behind 256 KiB, declared as 16 pixels, are not inflated."""
    import zlib

    packed = zlib.compress(bytes(1 << 28), 9)
    tags = [entry(256, 4), entry(257, 4), entry(258, 8, SHORT), entry(262, 1, SHORT),
            entry(259, 8, SHORT), entry(273, 8), entry(279, len(packed))]  # fmt: skip
    path = tmp_path / "x.tif"
    path.write_bytes(tiff(tags, packed))
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
from raconvert.plugins.image import tiff
from raconvert.files.source import Source
from raconvert.arrays.blocks import as_ndarray
print(as_ndarray(tiff.read(Source({str(path)!r})).arrays[0]).sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_thousands_of_pages(tmp_path: Path) -> None:
    pages = 20_000
    values = (np.arange(pages) % 251).astype("u1").reshape(pages, 1, 1) + np.zeros((2, 3), "u1")
    raconvert.write(tmp_path / "x.tif", values)

    assert np.array_equal(raconvert.read(tmp_path / "x.tif"), values)


@pytest.mark.parametrize("images", [9, 900, 10**9])
def test_an_announcement_of_more_images_than_there_are(tmp_path: Path, images: int) -> None:
    text = f"ImageJ=1.5\nimages={images}\n\0".encode()
    tags = [*GREY_TAGS, *PIXELS, entry(270, 16, 2, count=len(text))]

    refused_tiff(tmp_path / "x.tif", tiff(tags, bytes(8) + text), Unsupported, "announces")


# The others --------------------------------------------------------------------------------------


def bmp(width: int, height: int, bits: int = 24, compression: int = 0) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 54) + head + bytes(100)


def gif(width: int, height: int, data: bytes = b"\x02\x02\x44\x01\x00") -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    return head + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + data + b";"


def jpeg(width: int, height: int, precision: int = 8, code: int = 0xC0) -> bytes:
    frame = struct.pack(">BHHB", precision, height, width, 1) + b"\x01\x11\x00"
    marker = bytes([0xFF, code]) + struct.pack(">H", len(frame) + 2) + frame
    return b"\xff\xd8" + marker + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\0\xff\xd9"


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + size + b"VP8L" + bytes([5, 0, 0, 0])
    body += b"\x2f\0\0\0\0\0"
    return b"RIFF" + struct.pack("<I", len(body)) + body


HOSTILE = {
    # Its frame ends before the sampling factors of its 255 components.
    "cut_frame.jpg": (bytes.fromhex("ffd8ffdd00040001ffc0000208ffda0002ffd9"), Corrupt),
    "huge.bmp": (bmp(1 << 30, 1 << 30), Corrupt),
    "negative.bmp": (bmp(-4, 4), Corrupt),
    "empty.bmp": (bmp(0, 0), Corrupt),
    "huge_rle.bmp": (bmp(60_000, 60_000, 8, 1), Corrupt),
    "long_rows.bmp": (bmp(1000, 1000, 8, 1), Corrupt),
    "16_bits.bmp": (bmp(200, 2, 16), Corrupt),
    "jpeg_inside.bmp": (bmp(2, 2, 24, 4), RaconvertError),
    "unknown_header.bmp": (b"BM" + bytes(12) + b"\x29\0\0\0" + bytes(100), Corrupt),
    "huge.gif": (gif(65535, 65535), Corrupt),
    "empty.gif": (gif(0, 0), Corrupt),
    "no_end.gif": (gif(1, 1)[:-1], Corrupt),
    "unknown_block.gif": (gif(1, 1)[:-1] + b"x;", Corrupt),
    "no_image.gif": (b"GIF89a" + bytes(7) + b";", Corrupt),
    "outside.gif": (gif(1, 1)[:-1] + b"," + struct.pack("<HHHHB", 5, 5, 9, 9, 0)
                    + b"\x02\x02\x44\x01\x00;", Unsupported),
    "huge.jpg": (jpeg(65535, 65535), Corrupt),
    "no_height.jpg": (jpeg(5, 0), Unsupported),
    "12_bit.jpg": (jpeg(5, 5, 12, 0xC1), Unsupported),
    "lossless.jpg": (jpeg(5, 5, 8, 0xC3), Unsupported),
    "hierarchical.jpg": (jpeg(5, 5, 8, 0xC5), Unsupported),
    "arithmetic.jpg": (jpeg(5, 5, 8, 0xC9), Unsupported),
    "scans.jpg": (jpeg(5, 5, 8, 0xC2)[:-2] + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\0" * 500
                  + b"\xff\xd9", Unsupported),
    "no_end.jpg": (jpeg(5, 5)[:-2], Corrupt),
    "two_bytes.jpg": (b"\xff\xd8\xff", Corrupt),
    "huge.webp": (webp(1 << 24, 1 << 24), Corrupt),
    "no_chunk.webp": (b"RIFF\4\0\0\0WEBP", Corrupt),
    "huge.pgm": (b"P5\n4000000000 4000000000 255\n0", Corrupt),
    "long_number.pgm": (b"P5\n" + b"9" * 5000 + b" 1 255\n0", Corrupt),
    "maxval.pgm": (b"P5\n1 1 70000\n00", Corrupt),
    "plain_text.pgm": (b"P2\n2 1 9\n5 12\n", Corrupt),
    "pam.ppm": (b"P7\nWIDTH 1\nHEIGHT 1\nMAXVAL 255\nENDHDR\n0", Corrupt),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    data, error = HOSTILE[name]
    (tmp_path / name).write_bytes(data)

    with pytest.raises(error, match=name.replace(".", r"\.")):
        decode(tmp_path / name)


def test_a_large_image_needs_permission_not_trust_in_a_warning(tmp_path: Path) -> None:
    """Pillow's own limit is no limit here: what counts is the memory."""
    Image.new("L", (10_000, 10_000)).save(tmp_path / "x.webp", lossless=True)
    plugin = import_module("raconvert.plugins.image.webp")
    with pytest.raises(TooLarge, match="allow it with max_memory="):
        plugin.read(Source(str(tmp_path / "x.webp"), max_memory=256 << 20))

    with plugin.read(Source(str(tmp_path / "x.webp"), max_memory=2 << 30)) as bundle:
        assert bundle.arrays[0].shape == (10_000, 10_000, 3)
        assert not bundle.arrays[0][5000].any()


def test_bytes_of_runs_count_as_memory(tmp_path: Path) -> None:
    """Runs may set no pixel, so that a small image can have any number of their bytes."""
    palette, runs = b"\0\0\0\0\xff\xff\xff\0", b"\4\1\0\0" * 4 + b"\0\1" + bytes(2 << 20)
    header = struct.pack("<IiiHHIIiiII", 40, 4, 4, 1, 8, 1, 0, 0, 0, 2, 0)
    path = tmp_path / "x.bmp"
    path.write_bytes(b"BM" + struct.pack("<IHHI", 0, 0, 0, 62) + header + palette + runs)
    plugin = import_module("raconvert.plugins.image.bmp")

    with pytest.raises(TooLarge, match="its runs"):
        plugin.read(Source(str(path), max_memory=1 << 20))


def test_a_second_size_in_a_jpeg_is_not_believed(tmp_path: Path) -> None:
    """The first start of frame is checked here, the last one counts for Pillow."""
    frame = bytes.fromhex("ffc0000b08ffffffff01011100")
    contents = (FIXTURES / "cjpeg_grey_progressive.jpg").read_bytes()
    at = contents.index(b"\xff\xda")
    (tmp_path / "x.jpg").write_bytes(contents[:at] + frame + contents[at:])

    with pytest.raises((TooLarge, Corrupt), match=r"x\.jpg"):
        decode(tmp_path / "x.jpg")


def baseline(path: Path, scans: bytes) -> None:
    """A baseline JPEG of three components and other scans than its own."""
    data = io.BytesIO()
    Image.new("RGB", (512, 512), (1, 2, 3)).save(data, "JPEG")
    contents = data.getvalue()
    path.write_bytes(contents[: contents.index(b"\xff\xda")] + scans + bytes(2000) + b"\xff\xd9")


SCAN = b"\xff\xda\x00\x08\x01%c\x00\x00\x3f\x00\x00"


def test_many_scans_of_a_baseline_jpeg(tmp_path: Path) -> None:
    """Each passes over the whole image, in baseline files too where they are not in one scan."""
    baseline(tmp_path / "x.jpg", SCAN % 1 * 501)

    with pytest.raises(Unsupported, match="has more than 500 scans"):
        decode(tmp_path / "x.jpg")


def test_scans_of_a_baseline_jpeg_are_kept_in_memory(tmp_path: Path) -> None:
    """20 bytes for each pixel, not 12, are needed where not all components are in one scan."""
    path = tmp_path / "x.jpg"
    plugin = import_module("raconvert.plugins.image.jpeg")
    baseline(path, b"".join(SCAN % number for number in (1, 2, 3)))
    with pytest.raises(TooLarge, match=f"needs {20 * 512 * 512} bytes"):
        plugin.read(Source(str(path), max_memory=15 * 512 * 512))
    Image.new("RGB", (512, 512), (1, 2, 3)).save(path)

    with plugin.read(Source(str(path), max_memory=15 * 512 * 512)) as bundle:
        assert bundle.arrays[0].shape == (512, 512, 3)


def test_a_second_frame_in_a_jpeg(tmp_path: Path) -> None:
    contents = (FIXTURES / "cjpeg_rgb.jpg").read_bytes()
    start = contents.index(b"\xff\xc0")
    frame = contents[start : start + 19]
    (tmp_path / "x.jpg").write_bytes(contents[:start] + frame + contents[start:])

    with pytest.raises(Corrupt, match="not one frame; got 2 frames"):
        decode(tmp_path / "x.jpg")


@pytest.mark.parametrize(
    "filling",
    [b"\xff\xe0\0\2", b"\xff\x01", b"\xff\xff", b"\xff\0", b"\xff\xd0", b"\0" * 99 + b"\xff\x01"],
)
def test_markers_are_found_in_proportion_to_the_file(
    filling: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are the bytes that are read for them."""
    contents = (FIXTURES / "cjpeg_grey_progressive.jpg").read_bytes()
    path, total, plain = tmp_path / "x.jpg", 0, Source.read_at
    end = contents.rindex(b"\xff\xd9")
    path.write_bytes(contents[:end] + filling * (200_000 // len(filling)) + contents[end:])

    def read_at(source: Source, offset: int, nbytes: int) -> bytes:
        nonlocal total
        found = plain(source, offset, nbytes)
        total += len(found)
        return found

    monkeypatch.setattr(Source, "read_at", read_at)
    with import_module("raconvert.plugins.image.jpeg").read(Source(str(path))) as bundle:
        assert bundle.notes == []
    assert total < 2 * path.stat().st_size


def test_guards_of_several_threads_put_back_what_was() -> None:
    """One at a time: the settings of Pillow are those of all threads."""
    from PIL import ImageFile
    from raconvert.plugins.image.reader import guarded

    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)
    at_work: list[int] = []

    def work(number: int) -> int:
        with guarded("a", "a"):
            at_work.append(number)
            assert Image.MAX_IMAGE_PIXELS is None
            assert not ImageFile.LOAD_TRUNCATED_IMAGES
            seen = len(at_work)
            at_work.remove(number)
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(200))) == {1}

    after = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)
    assert after == before


def test_truncated_images_stay_refused_when_pillow_would_take_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import ImageFile

    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    contents = (FIXTURES / "cjpeg_rgb.jpg").read_bytes()
    (tmp_path / "x.jpg").write_bytes(contents[: len(contents) // 2] + b"\xff\xd9")

    with pytest.raises(Corrupt):
        decode(tmp_path / "x.jpg")
    assert ImageFile.LOAD_TRUNCATED_IMAGES


@pytest.mark.parametrize("kind", ["jpeg", "gif"])
def test_a_file_of_blocks_alone_takes_no_more_than_its_bytes(kind: str, tmp_path: Path) -> None:
    """Markers of two bytes, frames of thirteen: nothing is kept of each."""
    count = 150_000
    if kind == "jpeg":
        data = b"\xff\xd8" + b"\xff\x01" * count + b"\xff\xda\0\x02" * count + b"\xff\xd9"
    else:
        data = b"GIF89a" + bytes(7) + (b"," + bytes(9) + b"\x02" + b"\0") * count + b";"
    path = tmp_path / f"x.{kind}"
    path.write_bytes(data)
    module = import_module(f"raconvert.plugins.image.{kind}")
    tracemalloc.start()
    with pytest.raises((Corrupt, Unsupported)):
        module.read(Source(str(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 1.5 * len(data) + 500_000
