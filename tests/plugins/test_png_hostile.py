"""Damaged and hostile PNG files, built by name: each is refused, with its path and its cause.

Every file is read alone and as one of a stack, where most take another way through the code.
"""

from __future__ import annotations

import contextlib
import random
import re
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from raconvert.plugins import png
from raconvert.plugins.png import engine

from raconvert.arrays.blocks import as_ndarray
from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = "raconvert.files.limits.DEFAULT"  # of what each source has
SIGNATURE = b"\x89PNG\r\n\x1a\n"
ROWS = b"".join(b"\0" + bytes(range(8 * y, 8 * y + 8)) for y in range(8))  # 8 x 8 grey


@pytest.fixture(scope="module", autouse=True, params=["compiled", "python"])
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run everything twice, with the compiled loops and with what stands in for them."""
    if request.param == "compiled" and engine.fast is None:
        pytest.skip("the compiled loops were not built (no C compiler?)")
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "python":
            patched.setattr(engine, "fast", None)
        yield


def chunk(kind: bytes, data: bytes = b"", *, crc: int = 0) -> bytes:
    """Return a chunk; `crc` is added to its checksum."""
    checksum = (zlib.crc32(kind + data) + crc) & 0xFFFFFFFF
    return struct.pack(">I4s", len(data), kind) + data + struct.pack(">I", checksum)


def ihdr(width: int = 8, height: int = 8, depth: int = 8, color: int = 0, *more: int) -> bytes:
    return chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, *(more or (0, 0, 0)))
    )


def idat(rows: bytes = ROWS, level: int = 6) -> bytes:
    return chunk(b"IDAT", zlib.compress(rows, level))


def file_of(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks)


END = chunk(b"IEND")
GOOD = file_of(ihdr(), idat(), END)
PLTE = chunk(b"PLTE", bytes(range(12)))
STREAM = zlib.compress(ROWS)
INDEXED = b"".join(b"\0" + bytes([n % 4] * 8) for n in range(8))
BOMB = zlib.compress(bytes(40_000_000), 9)  # 39 kB


def bad_filter(row: int, code: int) -> bytes:
    rows = bytearray(ROWS)
    rows[9 * row] = code
    return bytes(rows)


def of_many_chunks(count: int) -> bytes:
    return file_of(ihdr(), chunk(b"tEXt", b"a\0b") * count, idat(), END)


# name of the fault -> the file, what the message says
CORRUPT = {
    "empty_file": (b"", "empty"),
    "a_jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", "no PNG signature"),
    "signature_only": (SIGNATURE, "ends before its IEND"),
    "line_ends_changed_by_a_transfer": (GOOD.replace(b"\r\n", b"\n"), "text mode"),
    "header_cut": (GOOD[:20], "ends inside the chunk IHDR"),
    "no_header": (file_of(idat(), END), "not IHDR|IHDR"),
    "header_after_another_chunk": (file_of(chunk(b"gAMA", b"\0\0\0\1"), ihdr(), idat(), END), "IHDR"),
    "second_header": (file_of(ihdr(), ihdr(), idat(), END), "second IHDR"),
    "header_too_short": (file_of(chunk(b"IHDR", bytes(12)), idat(), END), "IHDR: wrong length"),
    "header_checksum": (file_of(chunk(b"IHDR", ihdr()[8:21], crc=1), idat(), END), "checksum.*IHDR"),
    "width_zero": (file_of(ihdr(0), idat(), END), "impossible image size"),
    "height_zero": (file_of(ihdr(8, 0), idat(), END), "impossible image size"),
    "width_above_2_31": (file_of(ihdr(1 << 31, 8), idat(), END), "impossible image size"),
    "width_of_2_31_minus_1": (file_of(ihdr((1 << 31) - 1, 1), idat(), END), "cannot hold"),
    "height_of_2_31_minus_1": (file_of(ihdr(1, (1 << 31) - 1), idat(), END), "cannot hold"),
    "height_above_2_31": (file_of(ihdr(8, 1 << 31), idat(), END), "impossible image size"),
    "depth_3": (file_of(ihdr(8, 8, 3), idat(), END), "bit depth"),
    "rgb_of_4_bits": (file_of(ihdr(8, 8, 4, 2), idat(), END), "bit depth"),
    "color_type_5": (file_of(ihdr(8, 8, 8, 5), idat(), END), "colour type"),
    "compression_1": (file_of(ihdr(8, 8, 8, 0, 1, 0, 0), idat(), END), "compression"),
    "filter_method_1": (file_of(ihdr(8, 8, 8, 0, 0, 1, 0), idat(), END), "filter or interlace method"),
    "interlace_2": (file_of(ihdr(8, 8, 8, 0, 0, 0, 2), idat(), END), "filter or interlace method"),
    "no_pixels": (file_of(ihdr(), END), "no IDAT"),
    "pixels_cut": (GOOD[:60], "ends inside the chunk IDAT"),
    "pixel_checksum": (file_of(ihdr(), chunk(b"IDAT", STREAM, crc=1), END), "checksum.*IDAT"),
    "pixel_chunks_apart": (
        file_of(ihdr(), chunk(b"IDAT", STREAM[:9]), chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", STREAM[9:]), END),
        "not consecutive",
    ),
    "pixels_empty": (file_of(ihdr(), chunk(b"IDAT"), END), "cannot hold"),
    "pixels_are_no_zlib_stream": (file_of(ihdr(), chunk(b"IDAT", b"garbage, not zlib"), END), "damaged"),
    "zlib_checksum": (
        file_of(ihdr(), chunk(b"IDAT", STREAM[:-1] + bytes([STREAM[-1] ^ 1])), END),
        "damaged",
    ),
    "zlib_stream_cut": (file_of(ihdr(), chunk(b"IDAT", STREAM[:-5]), END), "ends early|no end"),
    "zlib_checksum_missing": (file_of(ihdr(), chunk(b"IDAT", STREAM[:-4]), END), "no end"),
    "zlib_dictionary": (
        file_of(ihdr(), chunk(b"IDAT", b"\x78\xbb" + bytes(4) + STREAM[2:]), END),
        "damaged",
    ),
    "a_row_missing": (file_of(ihdr(), idat(ROWS[:-9]), END), "ends early"),
    "a_byte_missing": (file_of(ihdr(), idat(ROWS[:-1]), END), "ends early"),
    "a_byte_too_many": (file_of(ihdr(), idat(ROWS + b"\0"), END), "longer than the image"),
    "much_too_many_bytes": (file_of(ihdr(), chunk(b"IDAT", BOMB), END), "longer than the image"),
    "checksum_of_a_chunk_behind_the_zlib_stream": (
        file_of(ihdr(), chunk(b"IDAT", STREAM), chunk(b"IDAT", b"xyz", crc=1), END), "checksum.*IDAT",
    ),
    "filter_5_in_row_0": (file_of(ihdr(), idat(bad_filter(0, 5)), END), "filter, at row 0;.* got 5"),
    "filter_255_in_row_7": (file_of(ihdr(), idat(bad_filter(7, 255)), END), "at row 7;.* got 255"),
    "no_palette": (file_of(ihdr(8, 8, 8, 3), idat(), END), "without a PLTE"),
    "palette_after_pixels": (file_of(ihdr(8, 8, 8, 3), idat(INDEXED), PLTE, END), "after the pixels"),
    "two_palettes": (file_of(ihdr(8, 8, 8, 3), PLTE, PLTE, idat(INDEXED), END), "repeated"),
    "palette_of_grey": (file_of(ihdr(), PLTE, idat(), END), "not allowed"),
    "palette_of_4_bytes": (file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE", bytes(4)), idat(), END), "4 bytes"),
    "palette_empty": (file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE"), idat(), END), "0 bytes"),
    "palette_of_257": (file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE", bytes(771)), idat(), END), "771 bytes"),
    "palette_above_its_depth": (
        file_of(ihdr(8, 8, 1, 3), PLTE, idat(b"\0\0" * 8), END), "1 to 2 entries",
    ),
    "index_outside_palette": (
        file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE", bytes(9)), idat(INDEXED), END),
        "outside the palette.*below 3.* got 3",
    ),
    "transparency_before_palette": (
        file_of(ihdr(8, 8, 8, 3), chunk(b"tRNS", b"\0"), PLTE, idat(INDEXED), END), "before the palette",
    ),
    "transparency_longer_than_palette": (
        file_of(ihdr(8, 8, 8, 3), PLTE, chunk(b"tRNS", bytes(5)), idat(INDEXED), END), "tRNS: 5 bytes",
    ),
    "transparency_of_3_bytes": (file_of(ihdr(), chunk(b"tRNS", bytes(3)), idat(), END), "tRNS: 3 bytes"),
    "transparency_of_1_byte": (file_of(ihdr(), chunk(b"tRNS", b"\0"), idat(), END), "tRNS: 1 bytes"),
    "transparency_of_rgb": (
        file_of(ihdr(8, 8, 8, 2), chunk(b"tRNS", bytes(7)), idat(bytes(8 * 25)), END), "tRNS: 7 bytes",
    ),
    "transparency_after_pixels": (file_of(ihdr(), idat(), chunk(b"tRNS", b"\0\0"), END), "after the pixels"),
    "transparency_with_alpha": (
        file_of(ihdr(2, 2, 8, 4), chunk(b"tRNS", b"\0\0"), idat(bytes(10)), END), "tRNS: not allowed",
    ),
    "palette_checksum": (
        file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE", bytes(768), crc=1), idat(INDEXED), END), "checksum.*PLTE",
    ),
    "transparency_checksum": (
        file_of(ihdr(), chunk(b"tRNS", b"\0\0", crc=1), idat(), END), "checksum.*tRNS",
    ),
    "text_of_1_GiB": (
        file_of(ihdr(), struct.pack(">I4s", 1 << 30, b"tEXt"), END), "ends inside the chunk tEXt",
    ),
    "chunk_of_4_GiB": (
        file_of(ihdr(), struct.pack(">I4s", (1 << 32) - 1, b"IDAT"), END), "ends inside the chunk IDAT",
    ),
    "chunk_type_of_digits": (file_of(ihdr(), chunk(b"1234"), idat(), END), "no chunk begins here"),
    "garbage_between_chunks": (file_of(ihdr(), b"\0" * 30, idat(), END), "no chunk begins here"),
    "no_end": (GOOD[:-12], "ends before its IEND"),
    "end_cut": (GOOD[:-1], "ends inside the chunk IEND"),
    "end_checksum": (GOOD[:-1] + b"\0", "checksum.*IEND"),
    "end_not_empty": (file_of(ihdr(), idat(), chunk(b"IEND", b"x")), "IEND chunk is not empty"),
    "bomb_of_4_EiB": (file_of(ihdr(2**31 - 1, 2**31 - 1), idat(), END), "cannot hold"),
    "bomb_of_900_MB": (file_of(ihdr(30_000, 30_000), idat(), END), "cannot hold"),
    "bomb_interlaced": (file_of(ihdr(30_000, 30_000, 16, 6, 0, 0, 1), idat(), END), "cannot hold"),
    "interlaced_image_cut": (file_of(ihdr(8, 8, 8, 0, 0, 0, 1), idat(), END), "unknown row filter|ends early"),
}  # fmt: skip
UNSUPPORTED = {
    "unknown_critical_chunk": (file_of(ihdr(), chunk(b"HARD"), idat(), END), "critical chunk HARD"),
    "far_too_many_chunks": (of_many_chunks(200_000), "more than 200000 chunks"),
}
ALL = {
    **{name: (Corrupt, *case) for name, case in CORRUPT.items()},
    **{name: (Unsupported, *case) for name, case in UNSUPPORTED.items()},
}


def decode(path: Path) -> np.ndarray:
    return as_ndarray(png.read(Source(str(path))).arrays[0])


def decode_stack(paths: list[Path]) -> np.ndarray:
    return as_ndarray(png.read_stack([str(p) for p in paths], max_memory=1 << 30))


@every("name", ALL)
def test_refused_alone(tmp_path: Path, name: str) -> None:
    kind, data, message = ALL[name]
    path = tmp_path / f"{name}.png"
    path.write_bytes(data)
    with pytest.raises(kind) as caught:
        decode(path)
    assert caught.value.path == str(path)
    # Without the path, which has the words that are looked for in it.
    assert re.search(f"(?s){message}", str(caught.value).replace(str(path), ""))


@every("name", sorted(set(ALL) - {"far_too_many_chunks"}))
def test_refused_in_a_stack(tmp_path: Path, name: str) -> None:
    """The first files are like the odd one as far as its own header is readable."""
    _, data, _ = ALL[name]
    first = alike(data)
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for path in paths:
        path.write_bytes(first)
    paths[2].write_bytes(data)
    with pytest.raises(RaconvertError) as caught:
        decode_stack(paths)
    assert caught.value.path == str(paths[2])


def alike(data: bytes) -> bytes:
    """Return an intact image with the palette and header of a damaged one, if they are usable."""
    if data[12:16] == b"IHDR" and data[25:26] == b"\3" and data.count(b"PLTE") == 1:
        return file_of(ihdr(8, 8, 8, 3), PLTE, idat(INDEXED), END)
    return GOOD


def test_the_good_one_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.png"
    path.write_bytes(GOOD)
    assert (decode(path) == np.arange(64).reshape(8, 8)).all()
    assert (decode_stack([path] * 3) == np.arange(64).reshape(8, 8)).all()


# Accepted, with a note ----------------------------------------------------------------------------

NOTED = {
    "trailing_bytes": (GOOD + b"more", "4 bytes after the IEND"),
    "two_bytes_behind_the_zlib_stream": (
        file_of(ihdr(), chunk(b"IDAT", STREAM + b"xy"), END), "2 bytes behind the zlib stream",
    ),
    "a_chunk_behind_the_zlib_stream": (
        file_of(ihdr(), chunk(b"IDAT", STREAM), chunk(b"IDAT", b"xyz"), END), "3 bytes behind the zlib",
    ),
    "text_checksum": (
        file_of(ihdr(), chunk(b"tEXt", b"a\0b", crc=1), idat(), END), "tEXt.*checksum is wrong",
    ),
    "unknown_checksum": (file_of(ihdr(), chunk(b"juNk", b"x", crc=7), idat(), END), "juNk.*checksum"),
    "gamma_twice": (file_of(ihdr(), chunk(b"gAMA", bytes(4)) * 2, idat(), END), "gAMA.*repeated"),
    "gamma_of_5_bytes": (file_of(ihdr(), chunk(b"gAMA", bytes(5)), idat(), END), "gAMA.*5 bytes"),
    "gamma_after_pixels": (file_of(ihdr(), idat(), chunk(b"gAMA", bytes(4)), END), "gAMA.*after"),
    "text_without_separator": (file_of(ihdr(), chunk(b"tEXt", b"ab"), idat(), END), "tEXt.*separator"),
    "text_not_utf8": (
        file_of(ihdr(), chunk(b"iTXt", b"a\0\0\0\0\0\xff"), idat(), END), "iTXt.*utf-8",
    ),
    "text_bomb": (
        file_of(ihdr(), chunk(b"zTXt", b"a\0\0" + BOMB), idat(), END), "zTXt.*inflates to more",
    ),
    "many_text_bombs": (
        file_of(ihdr(), *[chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(8_000_000)))] * 20, idat(), END),
        "zTXt.*inflates to more",
    ),
    "text_damaged": (file_of(ihdr(), chunk(b"zTXt", b"a\0\0xxxx"), idat(), END), "zTXt.*damaged"),
    "profile_cut": (
        file_of(ihdr(), chunk(b"iCCP", b"a\0\0" + zlib.compress(b"profile")[:-6]), idat(), END),
        "iCCP.*cut off",
    ),
    "no_such_time": (file_of(ihdr(), chunk(b"tIME", bytes(7)), idat(), END), "tIME.*time is out of range"),
    "background_too_short": (file_of(ihdr(), chunk(b"bKGD", b"\0"), idat(), END), "bKGD"),
    "unknown_and_unsafe_to_copy": (file_of(ihdr(), chunk(b"juNK", b"x"), idat(), END), "juNK.*safe to copy"),
    "text_of_9_MB": (file_of(ihdr(), chunk(b"tEXt", b"a\0" + bytes(9 << 20)), idat(), END), "longer than"),
    "animation_without_control": (
        file_of(ihdr(), chunk(b"fcTL", bytes(26)), idat(), END), "without an acTL",
    ),
}  # fmt: skip


@every("name", NOTED)
def test_accepted_with_a_note(tmp_path: Path, name: str) -> None:
    data, message = NOTED[name]
    path = tmp_path / f"{name}.png"
    path.write_bytes(data)
    bundle = png.read(Source(str(path)))
    assert (as_ndarray(bundle.arrays[0]) == np.arange(64).reshape(8, 8)).all()
    notes = "\n".join(bundle.notes)
    assert re.search(message, notes), notes


def test_a_palette_of_one_color_and_a_key_of_rgb(tmp_path: Path) -> None:
    """The shortest palette that there can be, and the only length of the key."""
    one = file_of(ihdr(8, 8, 8, 3), chunk(b"PLTE", b"\7\x08\x09"), idat(bytes(72)), END)
    key = file_of(ihdr(8, 8, 8, 2), chunk(b"tRNS", b"\0\1\0\2\0\3"), idat(bytes(8 * 25)), END)
    (tmp_path / "one.png").write_bytes(one)
    (tmp_path / "key.png").write_bytes(key)

    assert (decode(tmp_path / "one.png") == [7, 8, 9]).all()
    assert png.read(Source(str(tmp_path / "key.png"))).arrays[0].shape == (8, 8, 3)


@pytest.mark.parametrize("extra", [19, 20, 21, 50])
def test_of_many_notes_the_first_are_kept(extra: int, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(file_of(ihdr(), *[chunk(b"tEXt", b"a\0b", crc=1)] * extra, idat(), END))

    notes = png.read(Source(str(path))).notes

    assert len(notes) == min(extra, 21)
    assert sum("checksum is wrong" in note for note in notes) == min(extra, 20)
    assert ("further remarks about this file were left out" in notes) == (extra > 20)


# Animations ---------------------------------------------------------------------------------------


def fctl(number: int, width: int = 8, height: int = 8, x: int = 0, y: int = 0, *ops: int) -> bytes:
    fields = (number, width, height, x, y, 1, 10, *(ops or (0, 0)))
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", *fields))


def fdat(number: int, rows: bytes = ROWS) -> bytes:
    return chunk(b"fdAT", struct.pack(">I", number) + zlib.compress(rows))


def animation(count: int, *chunks: bytes) -> bytes:
    return file_of(ihdr(), chunk(b"acTL", struct.pack(">II", count, 0)), *chunks, END)


BROKEN_ANIMATIONS = {
    "frame_missing": animation(2, fctl(0), idat()),
    "frame_outside": animation(2, fctl(0), idat(), fctl(1, 8, 8, 1, 0), fdat(2)),
    "frame_far_outside": animation(2, fctl(0), idat(), fctl(1, 8, 8, 2**32 - 1, 0), fdat(2)),
    "frame_of_no_width": animation(2, fctl(0), idat(), fctl(1, 0), fdat(2)),
    "frame_without_pixels": animation(2, fctl(0), idat(), fctl(1)),
    "frame_too_large_for_its_pixels": animation(2, fctl(0), idat(), fctl(1), fdat(2, ROWS[:30])),
    "default_image_of_another_size": animation(1, fctl(0, 4, 4), idat()),
    "two_controls_before_the_image": animation(2, fctl(0), fctl(1), idat()),
    "numbers_repeated": animation(2, fctl(0), idat(), fctl(1), fdat(1)),
    "pixels_before_their_control": animation(1, fdat(0), idat()),
    "unknown_dispose": animation(1, fctl(0, 8, 8, 0, 0, 3, 0), idat()),
    "unknown_blend": animation(1, fctl(0, 8, 8, 0, 0, 0, 2), idat()),
    "control_too_short": animation(1, chunk(b"fcTL", bytes(25)), idat()),
    "frame_checksum": animation(
        2, fctl(0), idat(), fctl(1), chunk(b"fdAT", b"\0\0\0\2" + STREAM, crc=1)
    ),
}


@every("name", BROKEN_ANIMATIONS)
def test_broken_animations(tmp_path: Path, name: str) -> None:
    """The default image is intact; all frames are not to be had."""
    path = tmp_path / f"{name}.png"
    path.write_bytes(BROKEN_ANIMATIONS[name])
    assert (decode(path) == np.arange(64).reshape(8, 8)).all()
    with pytest.raises(Corrupt) as caught:
        _ = png.read(Source(str(path)), frames="all").arrays[0].data
    assert caught.value.path == str(path)


def test_frames_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    count = 2000
    frames = [fctl(2 * n + 1, 1, 1) + fdat(2 * n + 2, b"\0\0") for n in range(count)]
    rows = (b"\0" + bytes(2000)) * 2000
    path = tmp_path / "x.png"
    path.write_bytes(
        file_of(
            ihdr(2000, 2000),
            chunk(b"acTL", struct.pack(">II", count + 1, 0)),
            fctl(0, 2000, 2000),
            idat(rows),
            *frames,
            END,
        )
    )
    array = png.read(Source(str(path)), frames="all").arrays[0]
    assert array.shape == (2001, 2000, 2000)
    with pytest.raises(RaconvertError, match="max_memory"):
        _ = array.data


# Any damage ---------------------------------------------------------------------------------------


def test_memory_of_hostile_files_is_bounded(tmp_path: Path) -> None:
    names = ["much_too_many_bytes", "bomb_of_4_EiB", "text_of_1_GiB", "chunk_of_4_GiB"]
    files = {name: ALL[name][1] for name in names}
    files |= {name: NOTED[name][0] for name in ("text_bomb", "many_text_bombs", "text_of_9_MB")}
    for name, data in files.items():
        path = tmp_path / f"{name}.png"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            decode(path)
        except RaconvertError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 150 << 20, name


@pytest.mark.parametrize("header", [ihdr(), ihdr(8, 8, 8, 3)], ids=["grey", "palette"])
def test_every_flipped_bit_is_noticed(header: bytes, tmp_path: Path) -> None:
    """A single wrong bit is an error; in the text, which no pixel needs, it is worth a note."""
    path = tmp_path / "x.png"
    trns = [PLTE, chunk(b"tRNS", bytes([7, 200]))] if header != ihdr() else []
    text = chunk(b"tEXt", b"a\0b")
    pixels = INDEXED if trns else ROWS
    data = file_of(header, *trns, text, idat(pixels), END)
    path.write_bytes(data)
    good = decode(path)
    in_text = range(data.index(text), data.index(text) + len(text))
    noted = 0
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            bundle = png.read(Source(str(path)))
            got = as_ndarray(bundle.arrays[0])
        except RaconvertError:
            continue
        assert place // 8 in in_text
        assert "checksum is wrong" in bundle.notes[0]
        assert np.array_equal(got, good)
        noted += 1
    assert noted > 8 * 5, "type, payload and checksum of the text"


def test_a_damaged_type_of_a_chunk_that_the_pixels_need(tmp_path: Path) -> None:
    """It looks like an ancillary chunk with a wrong checksum, and is none."""
    for kind in (b"PLTE", b"tRNS", b"IDAT"):
        data = file_of(ihdr(8, 8, 8, 3), PLTE, chunk(b"tRNS", b"\7"), idat(INDEXED), idat(b""), END)
        (tmp_path / "x.png").write_bytes(data.replace(kind, b"juNk", 1))
        with pytest.raises(Corrupt, match="checksum of the chunk juNk"):
            decode(tmp_path / "x.png")


def test_what_one_file_of_a_stack_has_behind_its_pixels_is_noted(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path in paths:
        path.write_bytes(GOOD)
    paths[3].write_bytes(file_of(ihdr(), chunk(b"IDAT", STREAM + b"\0\0"), END))
    array = png.read_stack([str(path) for path in paths], max_memory=1 << 30)
    blocks = np.concatenate(list(array.data.stream(1 << 20)))

    assert (blocks == np.arange(64).reshape(8, 8)).all()
    assert array.data.notes == [
        f"'{paths[3]}': 2 bytes behind the zlib stream of the pixels were ignored"
    ]


def test_a_wrong_checksum_is_found_at_its_chunk(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(file_of(ihdr(), chunk(b"IDAT", STREAM, crc=1), END))
    with pytest.raises(Corrupt) as caught:
        decode(path)
    assert caught.value.where == "byte 33"

    data = file_of(
        ihdr(), chunk(b"acTL", struct.pack(">II", 2, 0)), fctl(0), idat(), fctl(1),
        chunk(b"fdAT", b"\0\0\0\2" + STREAM, crc=1), END,
    )  # fmt: skip
    path.write_bytes(data)
    with pytest.raises(Corrupt) as caught:
        as_ndarray(png.read(Source(str(path)), frames="all").arrays[0])
    assert caught.value.where == f"byte {data.index(b'fdAT') - 4}"


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    for length in range(len(GOOD)):
        path.write_bytes(GOOD[:length])
        with pytest.raises(Corrupt):
            decode(path)
        with pytest.raises(Corrupt):
            decode_stack([path])


@given(st.integers(0, 2**32 - 1))
def test_random_damage_with_right_checksums(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Whatever the compressed pixels hold, the only errors are our own."""
    rng = random.Random(seed)
    header = rng.choice([ihdr(), ihdr(8, 8, 2, 3), ihdr(3, 5, 16, 6), ihdr(9, 9, 1, 0, 0, 0, 1)])
    body = bytearray(zlib.compress(rng.randbytes(rng.randrange(1, 300)), rng.randrange(10)))
    for _ in range(rng.randrange(4)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    path = tmp_path_factory.mktemp("png") / "x.png"
    path.write_bytes(
        file_of(header, chunk(b"PLTE", bytes(12)) * (header[17] == 3), chunk(b"IDAT", body), END)
    )
    with contextlib.suppress(RaconvertError):
        decode(path)


@given(st.binary(max_size=300))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("png") / "x.png"
    for content in (data, SIGNATURE + data, file_of(ihdr()) + data):
        path.write_bytes(content)
        with pytest.raises(RaconvertError):
            decode(path)


# --- lengths at their limits ----------------------------------------------------------------------


def why(path: Path, data: bytes, **options: str) -> str:
    """What is said of a file that is refused; nothing if it is read."""
    path.write_bytes(data)
    try:
        as_ndarray(png.read(Source(str(path)), **options).arrays[0])
    except RaconvertError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("color", "depth"), [(3, 1), (3, 2), (3, 4), (3, 8), (2, 8), (6, 8), (2, 16)]
)
def test_palettes_have_as_many_entries_as_there_are_indices(
    color: int, depth: int, tmp_path: Path
) -> None:
    """PNG, clause 11.2.2: of palette images 2 ** depth, of others, to which it is a hint, 256."""
    most = 1 << depth if color == 3 else 256
    rows = bytes(8 * (1 + 8 * {3: 1, 2: 3, 6: 4}[color] * depth // 8))
    for entries in (1, 2, most - 1, most, most + 1):
        for more in (-1, 0, 1):
            palette = chunk(b"PLTE", bytes(max(0, 3 * entries + more)))
            found = why(
                tmp_path / "x.png", file_of(ihdr(8, 8, depth, color), palette, idat(rows), END)
            )
            if 0 < entries <= most and not more:
                assert not found
            else:
                assert f"not 3 for each of 1 to {most} entries" in found


@pytest.mark.parametrize(
    ("color", "allowed"), [(0, {2}), (2, {6}), (3, {1, 2, 3, 4}), (4, set()), (6, set())]
)
def test_transparency_has_a_length_of_its_own(
    color: int, allowed: set[int], tmp_path: Path
) -> None:
    """PNG, clause 11.3.1.1."""
    rows = bytes(8 * (1 + 8 * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]))
    lead = [PLTE] if color == 3 else []
    for nbytes in range(10):
        data = file_of(ihdr(8, 8, 8, color), *lead, chunk(b"tRNS", bytes(nbytes)), idat(rows), END)
        found = why(tmp_path / "x.png", data)
        assert (not found) == (nbytes in allowed), nbytes
        if found and allowed:
            assert f"tRNS: {nbytes} bytes instead of" in found


@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize("color", [0, 2, 3, 4, 6])
def test_streams_of_one_byte_more_or_less(color: int, interlace: int, tmp_path: Path) -> None:
    """How long the pixels are inflated follows from the header, for every depth and side."""
    depths = {0: (1, 2, 4, 8, 16), 3: (1, 2, 4, 8)}.get(color, (8, 16))
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2)] if interlace else [(0, 0, 1, 1)]  # fmt: skip
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    lead = [chunk(b"PLTE", bytes(3))] if color == 3 else []
    for depth in depths:
        for width, height in ((1, 1), (2, 5), (5, 2), (9, 7), (17, 3)):
            need = 0
            for x, y, dx, dy in passes:
                wide, high = len(range(x, width, dx)), len(range(y, height, dy))
                if wide:
                    need += high * (1 + (wide * samples * depth + 7) // 8)
            for more in (-1, 0, 1):
                data = file_of(ihdr(width, height, depth, color, 0, 0, interlace), *lead,
                               idat(bytes(need + more)), END)  # fmt: skip
                assert (not why(tmp_path / "x.png", data)) == (more == 0)


@pytest.mark.parametrize("order", ["<", "="])
def test_how_many_bytes_may_come_out_of_one(order: str, tmp_path: Path) -> None:
    """An image of so many bytes is tried; one more per byte and nothing is inflated."""
    from raconvert.files.inflate import MAX_RATIO

    for nbytes in (11, 20):
        length = nbytes * MAX_RATIO
        for rows, words in ((length, "damaged|ends early|no end"), (length + 1, "cannot hold")):
            data = file_of(ihdr(rows - 1, 1), chunk(b"IDAT", b"x" * nbytes), END)
            assert re.search(words, why(tmp_path / "x.png", data))


def test_remarks_and_chunks_up_to_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raconvert.plugins.png import header

    for count in range(header.MAX_NOTES - 1, header.MAX_NOTES + 3):
        bad = [chunk(b"gAMA", b"\0\0\0\1", crc=1)] * count
        (tmp_path / "x.png").write_bytes(file_of(ihdr(), *bad, idat(), END))
        notes = png.read(Source(str(tmp_path / "x.png"))).notes
        assert len(notes) == min(count, header.MAX_NOTES + 1)
        assert ("left out" in notes[-1]) == (count > header.MAX_NOTES)
    for count in (4, 5):
        monkeypatch.setattr(PLACE, DEFAULT._replace(image_chunks=count))
        found = why(
            tmp_path / "x.png", file_of(ihdr(), *[chunk(b"gAMA", b"\0\0\0\1")] * 2, idat(), END)
        )
        assert ("more than 4 chunks" in found) == (count == 4)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_ancillary_chunks_up_to_their_lengths(
    more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each, and of all before one; longer ones are left out with a note, or damage is found."""
    path = tmp_path / "x.png"
    text = chunk(b"tEXt", b"key\0" + b"v" * 16)
    monkeypatch.setattr(PLACE, DEFAULT._replace(metadata_chunk_bytes=20 - more))
    path.write_bytes(file_of(ihdr(), text, idat(), END))
    notes = png.read(Source(str(path))).notes
    assert notes == (
        [f"the chunk tEXt at byte 33 was ignored: longer than {20 - more} bytes"]
        if more > 0
        else []
    )
    path.write_bytes(file_of(ihdr(), chunk(b"tEXt", b"key\0" + b"v" * 16, crc=1), idat(), END))
    if more > 0:
        assert "the checksum of the chunk tEXt is wrong" in why(path, path.read_bytes())
    else:
        (note,) = png.read(Source(str(path))).notes
        assert note == "the chunk tEXt at byte 33 was ignored: its checksum is wrong"
    monkeypatch.setattr(PLACE, DEFAULT._replace(metadata_chunk_bytes=100, metadata_bytes=40 - more))
    path.write_bytes(file_of(ihdr(), text, text, text, idat(), END))
    notes = png.read(Source(str(path))).notes
    assert len(notes) == (more > 0)
    for rule, length in ((b"gAMA", 4), (b"pHYs", 9), (b"sRGB", 1), (b"cHRM", 32)):
        path.write_bytes(file_of(ihdr(), chunk(rule, bytes(length + more)), idat(), END))
        notes = [note for note in png.read(Source(str(path))).notes if "ignored" in note]
        assert len(notes) == (more != 0)
        assert not more or f"{length + more} bytes instead of {length}" in notes[0]
