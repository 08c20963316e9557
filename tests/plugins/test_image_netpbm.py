"""Netpbm bitmaps, headers and what is refused: against netpbm's own tools."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import convert
from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, WouldLose

RNG = np.random.default_rng(4)


@pytest.mark.parametrize(
    ("suffix", "values"),
    [
        (".pgm", RNG.integers(0, 65536, (300, 400), dtype="u2")),
        (".ppm", RNG.integers(0, 256, (200, 300, 3), dtype="u1")),
        (".pbm", RNG.integers(0, 2, (900, 1000), dtype="u1") == 1),
    ],
    ids=["deep_grey", "rgb", "bits"],
)
def test_plain_text(
    suffix: str, values: np.ndarray, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Written by netpbm; comments between the samples are passed."""
    raconvert.write(tmp_path / f"raw{suffix}", values)
    path = tmp_path / f"text{suffix}"
    with path.open("wb") as file:
        subprocess.run([tool("pnmtoplainpnm"), tmp_path / f"raw{suffix}"], check=True, stdout=file)

    assert np.array_equal(raconvert.read(path), values)
    with raconvert.open(path) as array:
        flat = np.concatenate([block.reshape(-1) for block in blocks(array, 1000)])
    assert np.array_equal(flat, values.reshape(-1))
    head, *lines = path.read_bytes().split(b"\n")
    path.write_bytes(head + b"\n" + b" # 9 9 9\n".join(lines))
    assert np.array_equal(raconvert.read(path), values)


def test_a_bitmap_is_in_memory_or_refused_before(tmp_path: Path) -> None:
    path = tmp_path / "x.pbm"
    path.write_bytes(b"P4\n8001 2000\n" + bytes(1001 * 2000))
    tracemalloc.start()
    with pytest.raises(TooLarge, match="allow it with max_memory="):
        convert(path, tmp_path / "x.ra", max_memory=8 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 << 20
    convert(path, tmp_path / "x.ra")
    assert np.array_equal(raconvert.read(tmp_path / "x.ra")[-1], np.ones(8001, bool))


@pytest.mark.parametrize(
    "header",
    [b"P5 2 1 255\n", b"P5\n#c\n2#c\n1\t\r255 ", b"P5#c\n2 # 9 9\n 1\n255\n", b"P5\v2\f1 255\r"],
)
def test_blanks_and_comments_of_headers(header: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(header + bytes([7, 8]))

    assert raconvert.read(tmp_path / "x.pgm").tolist() == [[7, 8]]


def test_what_a_header_says_besides_is_noted(tmp_path: Path) -> None:
    (tmp_path / "x.pgm").write_bytes(b"P5 # by hand\n2 1\n255\n\1\2")
    with raconvert.open(tmp_path / "x.pgm") as image:
        assert image[0].tolist() == [1, 2]
    assert raconvert.info(tmp_path / "x.pgm")["notes"] == ["comments of the header are left out"]


# PAM, plain text, and files that are neither -------------------------------------------------------


def pam(
    values: np.ndarray, maxval: int, said: str | None = None, order: str = "WIDTH HEIGHT DEPTH MAXVAL"
) -> bytes:  # fmt: skip
    """Return a PAM file of values (height, width[, depth])."""
    shape = (*values.shape, 1)[:3]
    numbers = {"WIDTH": shape[1], "HEIGHT": shape[0], "DEPTH": shape[2], "MAXVAL": maxval}
    lines = ["P7", *(f"{word} {numbers[word]}" for word in order.split())]
    lines += [f"TUPLTYPE {said}"] * (said is not None) + ["ENDHDR", ""]
    return "\n".join(lines).encode() + values.astype("u1" if maxval < 256 else ">u2").tobytes()


@pytest.mark.parametrize(
    ("depth", "maxval", "said", "fields"),
    [
        (1, 255, "GRAYSCALE", {}),
        (1, 255, None, {}),
        (2, 65535, "GRAYSCALE_ALPHA", {}),
        (3, 255, "RGB", {}),
        (4, 65535, "RGB_ALPHA", {}),
        (4, 255, None, {}),
        (3, 1000, "RGB", {"maxval": 1000}),
        (7, 255, "seven bands", {"tuple_type": "seven bands"}),
        (2, 1, "BLACKANDWHITE_ALPHA", {"maxval": 1, "tuple_type": "BLACKANDWHITE_ALPHA"}),
        (1, 255, "BLACKANDWHITE", {"tuple_type": "BLACKANDWHITE"}),
    ],
)
def test_pam(
    depth: int, maxval: int, said: str | None, fields: dict[str, object], tmp_path: Path
) -> None:
    """Of any depth, mapped and not decoded; the words of the header in any order."""
    values = RNG.integers(0, maxval + 1, (5, 6, depth), dtype="u2")
    values = (values if depth > 1 else values[..., 0]).astype("u1" if maxval < 256 else "u2")
    for order in ("WIDTH HEIGHT DEPTH MAXVAL", "MAXVAL DEPTH HEIGHT WIDTH"):
        (tmp_path / "x.pam").write_bytes(pam(values, maxval, said, order))
        with raconvert.open(tmp_path / "x.pam") as array:
            assert array.extent is not None
            assert array.meta.formats.get("image", {}) == fields
            assert array.owner.notes == []
            assert np.array_equal(np.asarray(array), values)
            assert np.asarray(array).dtype.newbyteorder("=") == values.dtype


def test_a_bitmap_of_pam_is_bool(tmp_path: Path) -> None:
    """1 is white there, as True is here."""
    values = RNG.integers(0, 2, (5, 6), dtype="u1")
    (tmp_path / "x.pam").write_bytes(pam(values, 1, "BLACKANDWHITE"))

    got = raconvert.read(tmp_path / "x.pam")

    assert got.dtype == bool
    assert np.array_equal(got, values == 1)
    (tmp_path / "x.pam").write_bytes(pam(values * 2, 1, "BLACKANDWHITE"))
    with pytest.raises(Corrupt, match="neither black nor white"):
        raconvert.read(tmp_path / "x.pam")


def test_pam_of_netpbm(tmp_path: Path, tool: Callable[..., str]) -> None:
    """What it makes of a PNG with alpha has the same values."""
    for values in (RNG.integers(0, 256, (5, 6, 4), "u1"), RNG.integers(0, 65536, (5, 6, 2), "u2")):
        raconvert.write(tmp_path / "x.png", values, overwrite=True)
        with (tmp_path / "x.pam").open("wb") as file:
            command = [tool("pngtopam"), "-alphapam", tmp_path / "x.png"]
            subprocess.run(command, check=True, stdout=file)

        assert np.array_equal(raconvert.read(tmp_path / "x.pam"), values)


def test_plain_bits_need_no_blanks(tmp_path: Path) -> None:
    for text in (b"P1\n4 2\n01100110", b"P1 4 2 0 1 1 0\n0 1 1 0\n", b"P1\n4 2\n0110#1111\n0110"):
        (tmp_path / "x.pbm").write_bytes(text)
        expected = np.array([[1, 0, 0, 1]] * 2, bool)
        assert np.array_equal(raconvert.read(tmp_path / "x.pbm"), expected)


def test_long_plain_text_is_read_in_pieces(tmp_path: Path) -> None:
    """With comments across the borders of the pieces; in memory of the pieces."""
    values = RNG.integers(0, 65536, (300, 1000), dtype="u2")
    lines = [" ".join(map(str, row)) + " # " + "9 " * (n % 700) for n, row in enumerate(values)]
    (tmp_path / "x.pgm").write_text("P2\n1000 300\n65535\n" + "\n".join(lines) + "\n")
    tracemalloc.start()
    convert(tmp_path / "x.pgm", tmp_path / "x.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    assert peak < 8 << 20
    bits = values % 2 == 0
    text = "\n".join(
        "".join(map(str, 1 - row)) + "#10" * (n % 50) for n, row in enumerate(bits * 1)
    )
    (tmp_path / "x.pbm").write_text("P1\n1000 300\n" + text)
    assert np.array_equal(raconvert.read(tmp_path / "x.pbm"), bits)


P7 = b"P7\nWIDTH 2\nHEIGHT 2\nDEPTH 1\nMAXVAL 255\n"
HOSTILE: dict[str, tuple[bytes, type[RaconvertError]]] = {
    "pam_cut.pam": (P7 + b"ENDHDR\n123", Corrupt),
    "pam_no_end.pam": (P7 + b"1234", Corrupt),
    "pam_no_depth.pam": (P7.replace(b"DEPTH 1\n", b"") + b"ENDHDR\n1234", Corrupt),
    "pam_two_widths.pam": (P7 + b"WIDTH 2\nENDHDR\n1234", Corrupt),
    "pam_unknown_word.pam": (P7 + b"SIZE 4\nENDHDR\n1234", Corrupt),
    "pam_negative.pam": (P7.replace(b"WIDTH 2", b"WIDTH -2") + b"ENDHDR\n1234", Corrupt),
    "pam_no_width.pam": (P7.replace(b"WIDTH 2", b"WIDTH 0") + b"ENDHDR\n1234", Corrupt),
    "pam_no_number.pam": (P7.replace(b"WIDTH 2", b"WIDTH") + b"ENDHDR\n1234", Corrupt),
    "pam_huge.pam": (P7.replace(b"WIDTH 2", b"WIDTH 4000000000") + b"ENDHDR\n1234", Corrupt),
    "pam_long_number.pam": (P7.replace(b"WIDTH 2", b"WIDTH " + b"9" * 5000) + b"ENDHDR\n1", Corrupt),
    "pam_maxval.pam": (P7.replace(b"255", b"65536") + b"ENDHDR\n12345678", Corrupt),
    "pam_no_maxval.pam": (P7.replace(b"255", b"0") + b"ENDHDR\n1234", Corrupt),
    "pam_two_images.pam": ((P7 + b"ENDHDR\n1234") * 2, Unsupported),
    "pam_endless_header.pam": (P7 + b"# comment\n" * 9000 + b"ENDHDR\n1234", Corrupt),
    "pam_blanks.pam": (P7 + b"TUPLTYPE" + b" " * 60_000 + b"x\n" + b" " * 60_000, Corrupt),
    "plain_cut.pgm": (b"P2\n3 2 255\n1 2 3 4 5\n", Corrupt),
    "plain_number_cut.pgm": (b"P2\n2 1 255\n1 25", Corrupt),
    "plain_too_many.pgm": (b"P2\n2 1 255\n1 2 3\n", Corrupt),
    "plain_two_images.pgm": (b"P2\n2 1 255\n1 2\nP2\n2 1 255\n1 2\n", Corrupt),
    "plain_above_maxval.pgm": (b"P2\n2 1 9\n1 10\n", Corrupt),
    "plain_negative.pgm": (b"P2\n2 1 255\n1 -2\n", Corrupt),
    "plain_fraction.pgm": (b"P2\n2 1 255\n1 2.5\n", Corrupt),
    "plain_underscore.pgm": (b"P2\n2 1 255\n1 1_0\n", Corrupt),
    "plain_digits_of_others.pgm": ("P2\n2 1 255\n1 \u0665\n".encode(), Corrupt),
    "plain_long_number.pgm": (b"P2\n2 1 255\n1 " + b"9" * 300_000 + b"\n", Corrupt),
    "plain_zeros.pgm": (b"P2\n2 1 255\n1 " + b"0" * 300_000 + b"1\n", Corrupt),
    "plain_huge.pgm": (b"P2\n2000000000 2000000000 255\n1 2\n", Corrupt),
    "plain_huge.pbm": (b"P1\n2000000000 2000000000\n1", Corrupt),
    "plain_bit_of_2.pbm": (b"P1\n2 2\n0120\n", Corrupt),
    "plain_bits_missing.pbm": (b"P1\n4 2\n0 1 1 0 0 1\n", Corrupt),
    "plain_bits_too_many.pbm": (b"P1\n2 2\n01100\n", Corrupt),
    "plain_comment_without_end.pgm": (b"P2\n2 1 255\n1 # 2\n", Corrupt),
    "plain_bytes.ppm": (b"P3\n1 1 255\n" + bytes(range(200)), Corrupt),
    "plain_maxval.ppm": (b"P3\n1 1 65536\n1 2 3\n", Corrupt),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    """Refused by an error of ours that names the file, and nothing is written."""
    data, error = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(error, match=name.replace(".", r"\.")):
        convert(path, tmp_path / "x.ra", from_="netpbm", max_memory=64 << 20)
    assert [one.name for one in tmp_path.iterdir()] == [name]


# Writing PAM -------------------------------------------------------------------------------------


@every("dtype", ["u1", "u2", "?"])
@every("channels", [0, 2, 3, 4])
@every("suffix", [".pam", ".pnm"])
def test_written_pam(
    suffix: str, channels: int, dtype: str, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """Netpbm's own tool reads the header, and makes PNG of the values."""
    if dtype == "?" and channels:
        return
    rng, shape = np.random.default_rng(channels), (13, 21, channels)[: 2 + (channels > 0)]
    values = rng.integers(0, 256 ** max(1, np.dtype(dtype).itemsize), shape)
    values = values > 100 if dtype == "?" else values.astype(dtype)
    path = tmp_path / f"x{suffix}"

    assert not raconvert.write(path, values).equivalent

    got = raconvert.read(path)
    assert got.dtype == values.dtype
    assert np.array_equal(got, values)
    as_pam = suffix == ".pam" or channels in (2, 4)
    assert path.read_bytes().startswith(b"P7") == as_pam
    if as_pam:
        with (tmp_path / "x.png").open("wb") as file:
            subprocess.run([tool("pamtopng"), path], stdout=file, check=True)
        theirs = raconvert.read(tmp_path / "x.png")
        assert np.array_equal(theirs, values.astype("u1") * 255 if dtype == "?" else values)


def test_alpha_is_no_ppm(tmp_path: Path) -> None:
    values = np.zeros((3, 4, 4), "u1")
    with pytest.raises(Unsupported, match="would be a P7 file"):
        raconvert.write(tmp_path / "x.ppm", values)
    with pytest.raises(WouldLose, match="shape"):
        raconvert.write(tmp_path / "x.pam", np.zeros((3, 4, 5), "u1"))
