"""What `peek` shows, how much it reads for it, and what independent readers make of its pictures."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import struct
import subprocess
import sys
from math import prod
from typing import TYPE_CHECKING

import h5py
import nibabel
import numpy as np
import openpyxl
import png
import pytest
from PIL import Image

import raconvert
from raconvert.api import array_of
from raconvert.arrays import summary
from raconvert.cli import main
from raconvert.views import terminal
from raconvert.views.fitting import folded
from raconvert.views.numbers import all_numbers, numbers_of
from raconvert.views.peek import Screen, lines_of
from raconvert.views.picture import GRAY, Picture, Scale, beside, colored, palette_of, png_of
from raconvert.views.sample import BUDGET, sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDE = Screen(columns=100, way=terminal.NONE)


def peek(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["peek", *map(str, words)]) == 0
    return capsys.readouterr().out


def text_of(values: object, screen: Screen = WIDE, **options: bool) -> str:
    return "\n".join(lines_of(array_of(np.asarray(values)), screen, **options))


# Pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(20, 24, 40), (20, 24, 20, 30)])
def test_planes_of_a_scan_are_those_with_something_in_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: tuple[int, ...]
) -> None:
    values = np.zeros(shape, "i2")
    slices = shape[2]
    values[:, :, slices * 15 // 100 : slices * 85 // 100 + 1] = 7
    image = nibabel.Nifti1Image(values, np.diag([2, 2, 3, 1]))
    image.header.set_xyzt_units("mm", "sec")
    image.header.set_zooms([2, 2, 3, 2.5][: len(shape)])
    nibabel.save(image, tmp_path / "scan.nii")
    array = raconvert.open(tmp_path / "scan.nii")
    for most in (1, 3, 5):
        part = sample(array, frames=most)
        assert all((frame.values == 7).all() for frame in part.frames)
        keys = {frame.key for frame in part.frames}
        assert len(keys) == most
        for frame in part.frames:  # the key and the number are those of the plane
            at = [int(word) for word in frame.key.strip("[]").split(", ") if word != ":"]
            assert frame.number == np.ravel_multi_index(at[::-1], shape[:1:-1])
    assert ", none near the ends" in part.text
    shown = peek(capsys, tmp_path / "scan.nii")
    assert "2 × 2 × 3 mm" in shown
    assert ("every 2.5 s" in shown) is (len(shape) == 4)


def test_a_line_says_from_where_to_where_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = openpyxl.Workbook()
    book.active.append(["quarter", "food"])
    for number in range(40):
        book.active.append([f"{2014 + number // 4}Q{number % 4 + 1}", 100 + number / 3])
    book.save(tmp_path / "prices.xlsx")
    assert "along quarter from 2014Q1 to 2023Q4" in peek(capsys, tmp_path / "prices.xlsx")
    page = tmp_path / "x.html"
    assert main(["info", "--html", str(tmp_path / "prices.xlsx"), "-o", str(page)]) == 0
    assert re.search(r"2023Q3</th>\s*<td[^>]*>112.667", page.read_text(encoding="utf-8"))


def test_labels_of_axes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goods = [f"good {number}" for number in range(12)]
    axes = [raconvert.Axis("COMM", labels=goods), raconvert.Axis("REG", labels=["EU", "USA"])]
    values = np.random.default_rng(1).normal(size=(12, 2))
    raconvert.write(tmp_path / "x.ra", values, meta=raconvert.Metadata(axes=axes))
    shown = peek(capsys, tmp_path / "x.ra")
    assert "COMM: good 0, good 1, " in shown
    assert "good 7, … good 11; REG: EU, USA" in shown


def test_places_of_planes_name_their_axis_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = [raconvert.Axis("time", units="days", spacing=30, origin=0), raconvert.Axis("y"),
            raconvert.Axis("x")]  # fmt: skip
    values = np.random.default_rng(1).normal(size=(3, 200, 200))
    raconvert.write(tmp_path / "x.ra", values, meta=raconvert.Metadata(axes=axes))
    assert "time = 0, 30, 60 days" in peek(capsys, tmp_path / "x.ra", "--graphics", "blocks")


def test_records_are_a_table_of_their_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = [("name", "S8"), ("born", "M8[D]"), ("x", "f4", (2,)), ("escape", "U4")]
    values = np.array(
        [(b"alpha", "2020-02-29", (1, 2), "\x1b[1m"), (b"be", "NaT", (3, 4), "")], fields
    )
    np.save(tmp_path / "x.npy", values)

    lines = peek(capsys, tmp_path / "x.npy").splitlines()
    at = next(n for n, line in enumerate(lines) if line.split() == list(values.dtype.names or ()))

    born = lines[at].index("born")
    assert [line[born:].split("  ")[0] for line in lines[at + 1 : at + 3]] == [
        "2020-02-29",
        "missing",
    ]
    assert lines[at + 1].split()[0] == "alpha"
    assert "[1, 2]" in lines[at + 1]
    assert "\x1b" not in "".join(lines)


def test_micrographs_of_few_bits_are_not_black(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tifffile = pytest.importorskip("tifffile")
    values = np.zeros((2, 40, 40), "u2")
    values[0, :20], values[1, 20:] = 900, 12  # of 65535
    named = {"axes": "CYX", "Channel": {"Name": ["DAPI", "Actin"]}}
    tifffile.imwrite(tmp_path / "x.ome.tif", values, metadata=named)

    shown = peek(capsys, tmp_path / "x.ome.tif")

    assert "DAPI (green), Actin (magenta)" in shown
    assert "C: 2, " in shown
    rows = shown.split("its bright\n")[1].split("\n")
    assert all(set(row.strip()) <= set("-=+*#%@") and row.strip() for row in rows[:15])


@pytest.mark.parametrize("depth", [0, 3, 4])
def test_others_read_the_png(depth: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (7, 5, *[depth] * (depth > 0)), "u1")
    palette = None if depth else palette_of("depth")
    data = png_of(Picture(pixels, palette))
    expected = pixels if depth else palette_of("depth")[pixels]

    with Image.open(io.BytesIO(data)) as image:
        assert np.array_equal(np.asarray(image.convert("RGBA" if depth == 4 else "RGB")), expected)
    width, height, rows, _ = png.Reader(bytes=data).asDirect()
    assert (width, height) == (5, 7)
    assert np.array_equal(np.vstack([list(row) for row in rows]), expected.reshape(7, -1))


def test_values_are_colors_between_two_ends() -> None:
    values = np.array([[-np.inf, 0.0, 5.0], [10.0, np.inf, np.nan]])
    picture = colored(values, Scale(0, 10, GRAY))

    assert [row.tolist() for row in picture.rgb.reshape(-1, 3)[1:4]] == [
        [0] * 3,
        [128] * 3,
        [255] * 3,
    ]
    odd = picture.rgb.reshape(-1, 3)[[0, 4, 5]].tolist()
    assert len({tuple(color) for color in odd}) == 3  # each a color of its own, and none a grey
    assert all(len(set(color)) > 1 for color in odd)


ANSI_CODE = re.compile(r"\x1b\[[\d;]*m")
ANSI = re.compile(r"\x1b\[([\d;]*)m|(.)")


def blocks_to_pixels(lines: list[str]) -> np.ndarray:
    """What a terminal shows of half blocks, by the rules of ANSI escape sequences."""
    rows: list[list[tuple[int, ...]]] = []
    for line in lines:
        upper, lower, colors = [], [], {38: (0, 0, 0), 48: (0, 0, 0)}
        for codes, sign in ANSI.findall(line):
            parts = [int(code) for code in codes.split(";") if code]
            if len(parts) > 1:
                assert parts[1] == 2
                colors[parts[0]] = tuple(parts[2:])
            elif sign == "▀":
                upper.append(colors[38])
                lower.append(colors[48])
        rows += [upper, lower]
    return np.array(rows)


def test_half_blocks_are_the_picture() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (8, 6, 3), "u1")
    lines = terminal.drawn([Picture(pixels, None)], "blocks", columns=80, true_color=True)

    assert np.array_equal(blocks_to_pixels(lines), pixels)


def test_kitty_and_iterm2_get_a_png(tmp_path: Path) -> None:
    import base64

    picture = Picture(np.random.default_rng(3).integers(0, 256, (90, 90, 3), "u1"), None)
    (kitty,) = terminal.drawn([picture] * 2, "kitty", columns=80, true_color=True)
    parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty)
    keys = [dict(pair.split("=") for pair in part.split(",")) for part, _ in parts]
    assert "".join(f"\x1b_G{key};{data}\x1b\\" for key, data in parts) == kitty
    assert (keys[0]["a"], keys[0]["f"]) == ("T", "100")  # shown at once; a PNG
    assert [key["m"] for key in keys] == ["1"] * (len(keys) - 1) + ["0"]
    assert len(parts) > 1
    assert all(len(data) <= 4096 for _, data in parts)
    with Image.open(io.BytesIO(base64.b64decode("".join(data for _, data in parts)))) as image:
        shown = np.asarray(image)
    factor = shown.shape[0] // 90
    assert np.array_equal(shown[::factor, : 90 * factor : factor, :3], picture.pixels)

    (iterm,) = terminal.drawn([picture] * 2, "iterm2", columns=80, true_color=True)
    match = re.fullmatch(r"\x1b\]1337;File=([^:]*):([^\x07]*)\x07", iterm)
    assert match is not None
    data = base64.b64decode(match[2])
    assert f"size={len(data)};" in match[1]
    with Image.open(io.BytesIO(data)) as image:
        assert np.array_equal(np.asarray(image), shown)


def sixel_to_pixels(text: str) -> np.ndarray:
    """The colors of a sixel picture in percent, by the DEC manual; -1 where nothing is drawn."""
    match = re.fullmatch(r'\x1bP0;1q"1;1;(\d+);(\d+)(.*)\x1b\\', text, re.DOTALL)
    assert match is not None
    width, height = int(match[1]), int(match[2])
    pixels = np.full((height + 6, width, 3), -1)
    colors: dict[int, tuple[int, ...]] = {}
    color = column = top = 0
    for number, shares, count, sign, other in re.findall(
        r"#(\d+)((?:;\d+)*)|(?:!(\d+))?([?-~])|([$-])", match[3]
    ):
        if number:
            color = int(number)
            if shares:
                kind, *colors[color] = map(int, shares[1:].split(";"))  # type: ignore[assignment]
                assert kind == 2
        elif sign:
            for _ in range(int(count or 1)):
                for bit in range(6):
                    if (ord(sign) - 63) >> bit & 1:
                        pixels[top + bit, column] = colors[color]
                column += 1
        elif other:
            column = 0
            top += 6 * (other == "-")
    return pixels[:height]


def test_sixels_are_the_picture() -> None:
    levels = np.random.default_rng(4).integers(0, 6, (13, 20, 3))
    pictures = [Picture((levels * 51).astype("u1"), None)] * 2
    (text,) = terminal.drawn(pictures, "sixel", columns=9, true_color=True)

    shown = sixel_to_pixels(text)
    assert np.array_equal(shown, np.where(beside(pictures, 8).pixels[..., 3:] > 0, shown, -1))
    assert np.array_equal(shown[:, :20], levels * 20)
    assert (shown[:, 20:28] == -1).all()


def test_sixels_have_the_colors_of_the_palette() -> None:
    palette = palette_of("depth")
    pixels = np.arange(240, dtype="u1").reshape(12, 20)
    (text,) = terminal.drawn([Picture(pixels, palette)], "sixel", columns=5, true_color=True)

    factor = sixel_to_pixels(text).shape[0] // 12
    shown = sixel_to_pixels(text)[::factor, ::factor]
    assert np.abs(shown - palette[pixels] / 2.55).max() <= 0.51


def test_lines_are_folded_at_the_width_of_a_terminal() -> None:
    line = "  \x1b[1mx\x1b[0m   uint8   shape (4, 5) C · dims 5 × 4 (RA, Julia, MATLAB)   20 bytes"
    for width in (56, 40, 24):
        parts = folded(line, width)
        assert max(len(ANSI_CODE.sub("", part)) for part in parts) <= width
        assert "".join(parts).replace(" ", "") == line.replace(" ", "")
    assert folded(line, 0) == folded(line, 200) == [line]
    drawn = terminal.drawn([Picture(np.zeros((4, 90, 3), "u1"), None)], "blocks", columns=80,
                           true_color=True)  # fmt: skip
    assert [part for one in drawn for part in folded(one, 44)] == drawn


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM": "iTerm.app"}, "blocks"),
    ],
)
def test_the_terminal_says_what_it_has(environment: dict[str, str], way: str) -> None:
    assert terminal.way_of(environment, terminal=True, unicode=True, color=True) == way
    assert terminal.way_of(environment, terminal=False, unicode=True, color=True) == "plain"
    assert terminal.way_of(environment, terminal=True, unicode=True, color=False) == "plain"


# Numbers -----------------------------------------------------------------------------------------

ODD = np.array([1.5, np.nan, np.inf, -np.inf, -2.5, 0.0, 0.0, np.nan])


@pytest.mark.parametrize("count", [numbers_of, lambda parts: all_numbers(array_of(parts[0]))])
def test_numbers_are_those_of_numpy(count: Callable) -> None:
    found = count([ODD])
    there = ODD[np.isfinite(ODD)]

    assert (found.nan, found.above, found.below, found.zeros) == (2, 1, 1, 2)
    assert (found.least, found.most, found.mean) == (there.min(), there.max(), there.mean())


@pytest.mark.parametrize("kind", ["i8", "u8", ">i2", "f2", ">f8", "c8", "?"])
def test_numbers_of_every_type(kind: str) -> None:
    values = np.random.default_rng(5).integers(0, 100, (50, 7)).astype(kind)
    numbers = np.abs(values) if values.dtype.kind == "c" else values
    found = all_numbers(array_of(values))

    assert (found.count, found.least, found.most) == (350, numbers.min(), numbers.max())
    assert found.mean == pytest.approx(numbers.astype("f8").mean())


def test_extreme_whole_numbers_are_told_exactly() -> None:
    text = text_of(np.array([-(2**63), 2**63 - 1, 5], "i8"))

    assert "min -9223372036854775808," in text
    assert "max 9223372036854775807" in text


def test_what_numbers_are_of_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = np.zeros((4000, 40, 40), "f4")
    values[123, 4, 5] = 77
    np.save(tmp_path / "x.npy", values)

    part = peek(capsys, tmp_path / "x.npy")
    assert "sample of 16000 of 6400000 values: 10 of 4000 planes" in part
    assert "max 0" in part
    whole = peek(capsys, tmp_path / "x.npy", "--full")
    assert "(all 6400000 values)" in whole
    assert "max 77" in whole


def numbers(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> dict:
    """What programs are told of the numbers of a file, in strict JSON."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found: dict = json.loads(peek(capsys, path, "--json", *words), parse_constant=refuse)
    return found


@pytest.mark.parametrize("kind", ["<i4", ">u8", "<f8", ">c16", "?", "<M8[s]", "<f2"])
def test_programs_are_told_the_numbers_of_numpy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    whole = np.random.default_rng(9).integers(0, 90, (40, 30))
    values = whole.astype("i8").astype(kind) if "M" in kind else whole.astype(kind)
    if values.dtype.kind == "f":
        values[:2, 0] = np.nan, -np.inf
    np.save(tmp_path / "x.npy", values)
    found = numbers(capsys, tmp_path / "x.npy")
    said = found["numbers"]

    size = np.abs(values) if values.dtype.kind == "c" else values
    there = size[np.isfinite(size)] if values.dtype.kind == "f" else size.reshape(-1)
    ends = [there.min(), there.max()]
    ends = [str(end) if "M" in kind else end.item() for end in ends]
    assert found["array"]["shape"] == [40, 30]
    assert (said["of"], said["count"], said["total"]) == ("all", 1200, 1200)
    assert [said["min"], said["max"]] == ends
    assert (said["nan"], said["-inf"]) == ((1, 1) if values.dtype.kind == "f" else (0, 0))
    assert said["measure"] == ("magnitude" if values.dtype.kind == "c" else "value")
    if values.dtype.kind not in "bM":
        assert said["mean"] == pytest.approx(there.astype("f8").mean())
        assert sum(said["histogram"]["counts"]) == there.size


def test_programs_are_told_what_numbers_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.zeros((4000, 140, 20), "f4")
    values[::3] = 7
    np.save(tmp_path / "x.npy", values)

    part = numbers(capsys, tmp_path / "x.npy")["numbers"]
    assert (part["of"], part["count"], part["total"]) == ("sample", 14_000, 11_200_000)
    bins = [int(re.findall(r"[0-9]+", key)[0]) // 800 for key in part["parts"]]
    assert bins == [0, 1, 2, 3, 4]
    read = np.stack([eval(f"values{key}", {"values": values}) for key in part["parts"]])
    assert (part["mean"], part["zeros"]) == (read.mean(), int((read == 0).sum()))
    whole = numbers(capsys, tmp_path / "x.npy", "--full")["numbers"]
    assert (whole["of"], whole["parts"]) == ("all", [])
    assert whole["zeros"] == int((values == 0).sum())


def test_programs_are_told_the_tree_and_the_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/labels"] = np.array([0, 1, 1], "u1")
        file["g/large"] = np.arange(400.0).reshape(20, 20)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")

    paths = [str(tmp_path / name) for name in ("x.h5", "bad.npy", "none.npy")]
    assert main(["peek", "--json", *paths]) == 1
    found, damaged, missing = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["type"], one["shape"]) for one in found["tree"]] == [
        ("g/labels", "uint8", [3]), ("g/large", "float64", [20, 20]),
    ]  # fmt: skip
    assert found["array"]["name"] == "g/large"
    assert (damaged["error"]["kind"], missing["error"]["kind"]) == ("Corrupt", "ReadFailed")
    assert damaged["error"]["path"] == paths[1]

    (labels,) = [numbers(capsys, f"{paths[0]}#g/labels")["numbers"]]
    assert labels["classes"] is None
    np.save(tmp_path / "classes.npy", np.repeat([4, 9], [30, 10]).astype("u1"))
    classes = numbers(capsys, tmp_path / "classes.npy")["numbers"]["classes"]
    assert [(one["value"], one["count"]) for one in classes] == [(4, 30), (9, 10)]


# Many small pictures ------------------------------------------------------------------------------


def digits(count: int) -> np.ndarray:
    """Pictures of one grey each, which tell their number."""
    return np.repeat(np.arange(count, dtype="u1"), 28 * 28).reshape(count, 28, 28)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_many_pictures_are_a_sheet(columns: int) -> None:
    lines = text_of(digits(240), Screen(columns, "blocks")).split("\n")
    per_row = columns // 16
    assert lines[0] == f"{2 * per_row} of 240 pictures"
    captions = [line.split() for line in lines if re.fullmatch(r"[\d ]+", line)]
    assert list(map(len, captions)) == [per_row, per_row]
    chosen = [int(number) for row in captions for number in row]
    assert [at * 2 * per_row // 240 for at in chosen] == list(range(2 * per_row))
    rows = [blocks_to_pixels([line]) for line in lines if "▀" in line]
    assert all(row.shape[1] <= columns for row in rows)
    middle = rows[len(rows) // 4][0]  # of the first row of pictures, one pixel of each
    low, high = chosen[0], chosen[-1]
    shades = [round((at - low) / (high - low) * 255) for at in chosen[:per_row]]
    assert [int(middle[14 * n + 7][0]) for n in range(per_row)] == pytest.approx(shades, abs=2)


@pytest.mark.parametrize("names", ["words", "numbers", "text"])
def test_a_sheet_has_the_labels_of_its_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: str
) -> None:
    words = np.array(["cat", "dog", "a bird of a long name"])
    labels = (np.arange(240) // 80).astype("u1")
    more = {"classes": words} if names == "words" else {}
    kept = words[labels] if names == "text" else labels
    np.savez(tmp_path / "x.npz", images=digits(240), labels=kept, **more)

    text = peek(capsys, tmp_path / "x.npz", "--graphics", "plain")
    captions = [line for line in text.split("\n") if re.match(r" +\d+: ", line)]
    found = dict(re.findall(r"(\d+): (\S+(?: \S+)*)", "  ".join(captions)))
    said = ["0", "1", "2"] if names == "numbers" else ["cat", "dog", "a bird o…"]
    assert [int(at) // 24 for at in found] == list(range(10))
    assert found == {at: said[labels[int(at)]] for at in found}


def test_a_page_shows_many_pictures_with_their_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = (np.arange(2400) // 240).astype("u1")
    colors = np.random.default_rng(3).integers(0, 256, (2400, 3, 8, 8), "u1")
    colors = colors.repeat(2, axis=2).repeat(2, axis=3)
    np.savez(tmp_path / "x.npz", images=colors, labels=labels)
    assert main(["info", str(tmp_path / "x.npz"), "--html", "-o", str(tmp_path / "x.html")]) == 0

    text = (tmp_path / "x.html").read_text()
    found = re.findall(r'alt="(\d+): (\d)" src="data:image/png;base64,([^"]*)"', text)
    assert len(found) == 24
    for number, label, data in found:
        assert int(label) == labels[int(number)]
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            assert np.array_equal(np.asarray(image), colors[int(number)].transpose(1, 2, 0))


def test_what_are_no_pictures_is_no_sheet() -> None:
    for shape in [(15, 28, 28), (60, 300, 300), (4, 5, 28, 28)]:
        assert "pictures" not in text_of(np.zeros(shape, "u1"), Screen(80, "blocks")), shape


# What is shown -----------------------------------------------------------------------------------


def test_the_tree_and_the_largest_array(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/small"] = np.arange(3)
        file["g/large"] = np.arange(400.0).reshape(20, 20)

    text = peek(capsys, tmp_path / "x.h5")
    assert "└── small  int64 (3,)" in text
    assert "large   float64   shape (20, 20) C" in text
    assert "max 399" in text
    assert "max 2" in peek(capsys, f"{tmp_path / 'x.h5'}#g/small")


def test_classes_are_a_table_with_their_names() -> None:
    array = array_of(np.repeat(np.array([0, 1, 2], "u1"), [50, 30, 20]))
    array.meta = array.meta.replace(attributes={"labels": ["cat", "dog", "fox"]})

    lines = list(lines_of(array, WIDE))
    assert [line.split("█")[0].split() for line in lines[:3]] == [
        ["0", "cat", "50"], ["1", "dog", "30"], ["2", "fox", "20"],
    ]  # fmt: skip


def test_text_is_text_and_cannot_move_the_cursor() -> None:
    text = text_of(np.array(["plain", "\x1b[2Jaway", "two\nlines"]))

    assert "plain\n" in text
    assert "\x1b" not in text
    assert "\\x1b[2Jaway\ntwo\\nlines\n" in text


def test_what_is_no_number_has_a_sign_of_its_own() -> None:
    values = np.arange(100.0).reshape(10, 10)
    values[4, 3:6] = np.nan
    plain = text_of(values, WIDE._replace(way=terminal.CHARACTERS))
    assert re.match(r"dark to [\d.]+, bright from [\d.]+, NaN x\n", plain)
    with_it = [line for line in plain.splitlines()[1:] if "x" in line and "max" not in line]
    assert {(line.index("x"), line.count("x")) for line in with_it} == {(9, 9)}  # 3 characters each
    assert ", NaN red\n" in text_of(values, WIDE._replace(way=terminal.BLOCKS))
    assert "NaN x" not in text_of(np.arange(100.0).reshape(10, 10))
    assert "no finite values, NaN x\n" in text_of(
        np.full((4, 4), np.nan), WIDE._replace(way=terminal.CHARACTERS)
    )


@pytest.mark.parametrize("unit", ["us", "ns", "D", "M"])
@pytest.mark.parametrize("order", "<>")
def test_times_between_others_have_units(unit: str, order: str) -> None:
    values = np.array([-3, 5, 4], f"{order}m8[{unit}]")
    text = text_of(values)
    assert f"min {values.min()},  max {values.max()}" in text
    assert "mean" not in text


def test_a_histogram_of_a_part_is_said_to_be_one() -> None:
    values = np.random.default_rng(3).normal(size=(2, 3, 4, 20, 20))
    assert "histogram of a sample " in text_of(values)
    assert "\nhistogram " in text_of(values[0, 0, 0])


def test_complex_values_have_two_pictures() -> None:
    values = np.exp(1j * np.linspace(-3, 3, 400)).reshape(20, 20) * 2
    text = text_of(values, Screen(80, "blocks"))

    assert text.index("magnitude") < text.index("phase, -π to π")
    assert "min |x| 2" in text


def test_a_line_is_plotted() -> None:
    values = np.sin(np.linspace(0, 2 * np.pi, 1000))
    lines = text_of(values).split("\n")[:6]
    dots = [[ord(sign) - 0x2800 for sign in line if 0x2800 <= ord(sign) < 0x2900] for line in lines]

    assert lines[0].strip().startswith(f"{values.max():.6g} ")
    assert lines[5].strip().startswith(f"{values.min():.6g} ")
    first = next(n for n, code in enumerate(dots[0]) if code)  # the crest lies in the first half
    assert first < len(dots[5]) // 2
    assert not any(dots[5][: len(dots[5]) // 2])
    assert dots[5][-1]


@pytest.mark.parametrize(
    "values", [np.zeros((0, 3)), np.float32(2.5), np.full((3, 3), np.nan), np.zeros((1, 1, 4))]
)
def test_arrays_of_little_are_shown(values: np.ndarray) -> None:
    assert text_of(values, Screen(80, "blocks"))


def test_colors_and_photos() -> None:
    photo = np.random.default_rng(6).integers(0, 256, (30, 40, 3), "u1")
    lines = list(lines_of(array_of(photo), Screen(44, "blocks")))
    shown = blocks_to_pixels([line for line in lines if "▀" in line])

    assert np.array_equal(shown, photo)


def test_columns_that_fortran_lists_are_turned(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(600, dtype="u1").reshape(20, 30) % 200)
    np.save(tmp_path / "f.npy", values)
    with raconvert.open(tmp_path / "f.npy") as array:
        assert np.array_equal(sample(array).values[0], values)


def test_damaged_elements_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.arange(5000))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[400:410] = b"\xff" * 10
    (tmp_path / "x.npz").write_bytes(data)

    assert main(["peek", str(tmp_path / "x.npz")]) == 1
    assert "damaged" in capsys.readouterr().err


# Bounds ------------------------------------------------------------------------------------------

COUNTED = """
import json, os, resource, sys
import raconvert.cli.peek
from raconvert.cli import main

def read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])

found = {}
sys.stdout, out = open("/dev/null", "w", encoding="utf-8"), sys.stdout
for path in sys.argv[1:]:
    here, there = os.pipe()
    if not os.fork():
        before = read()
        code = main(["peek", path, "--color", "always", "--graphics", "blocks"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        os.write(there, json.dumps([code, read() - before, peak]).encode())
        os._exit(0)
    os.close(there)
    with open(here, "rb") as answer:
        found[path] = json.load(answer)
    os.wait()
json.dump(found, out)
"""
IMPORTS = 24 << 20  # bytes of libraries that the first file of a format reads
MEMORY = 150 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="bytes are counted by /proc")


def counted(*paths: object) -> dict[str, list[int]]:
    """For each file, in a process of its own, the exit code of `peek`, bytes read, peak memory."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


def is_within(found: dict[str, list[int]]) -> bool:
    return all(read < BUDGET + IMPORTS and peak < MEMORY for _, read, peak in found.values())


def sparse_ra(path: Path, dims: tuple[int, ...]) -> Path:
    """An .ra file of float32 whose elements are a hole, as large as the file system lets it be."""
    nbytes = 4 * prod(dims)
    header = struct.pack(f"<8s{5 + len(dims)}Q", b"rawarray", 0, 3, 4, nbytes, len(dims), *dims)
    with path.open("wb") as file:
        file.write(header)
        try:
            file.truncate(len(header) + nbytes)
        except OSError:
            pytest.skip(f"the file system has no files of {nbytes} bytes")
    return path


TERA = 1 << 40


@linux
def test_eight_terabytes_are_looked_at_in_bounds(tmp_path: Path) -> None:
    shapes = [(1024, 1024, 2 * TERA >> 20), (2 * TERA >> 20, 1 << 20), (2 * TERA,), (TERA, 2)]
    paths = [sparse_ra(tmp_path / f"{n}.ra", dims) for n, dims in enumerate(shapes)]
    found = counted(*paths)

    assert all(os.stat(path).st_size > 8 * TERA for path in paths)
    assert [code for code, *_ in found.values()] == [0] * 4
    assert is_within(found), found


@linux
def test_chunks_and_compressed_files_are_looked_at_in_bounds(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        large = file.create_dataset("x", (250, 2000, 2000), "f4", chunks=(1, 500, 500))
        large[125, 500:1500, 500:1500] = np.arange(1e6).reshape(1000, 1000)
    noise = np.random.default_rng(8).integers(0, 256, (20, 1024, 1024), "u1")
    np.savez_compressed(tmp_path / "x.npz", x=noise)
    found = counted(tmp_path / "x.h5", tmp_path / "x.npz")

    assert [code for code, *_ in found.values()] == [0, 0]
    assert is_within(found), found


def test_a_sample_takes_few_chunks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rows = file.create_dataset("rows", (20_000, 8), "f4", chunks=(1, 8))
        rows[9_500:10_500] = np.arange(8_000).reshape(1000, 8)
        file.create_dataset("line", (20_000,), "i2", chunks=(4,))
        file.create_dataset("volume", (40, 64, 64), "u1", chunks=(1, 4, 4))
    with raconvert.open(tmp_path / "x.h5") as bundle:
        for name, per_chunk in (("rows", 8), ("line", 4), ("volume", 16)):
            found = sample(bundle[name])
            assert 0 < sum(values.size for values in found.values) <= 512 * per_chunk, name
            assert not found.whole
        found = sample(bundle["rows"])
        at = re.search(r"\((\d+):(\d+)\)", found.text)
    assert at is not None
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(found.values[0], file["rows"][int(at[1]) : int(at[2])])


@pytest.mark.parametrize("suffix", ["npz", "har"])
def test_planes_are_read_where_they_lie(tmp_path: Path, suffix: str) -> None:
    """Of what has no extent, though its elements are there as they are."""
    values = np.zeros((400, 80, 90), "f4")
    values[:] = np.arange(400, dtype="f4")[:, None, None]
    values = values if suffix == "npz" else np.asfortranarray(values.T)
    if suffix == "npz":
        np.savez(tmp_path / "x.npz", x=values)
    else:
        raconvert.write(tmp_path / "x.har", {"X": values})
    with raconvert.open(tmp_path / f"x.{suffix}") as bundle:
        found = sample(bundle.arrays[0])
    assert [float(part.mean()) for part in found.values] == [frame.number for frame in found.frames]
    assert [frame.number // 80 for frame in found.frames] == [0, 1, 2, 3, 4]


def test_only_what_is_shown_is_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "x.npz", **{f"a{number}": np.arange(3) for number in range(500)})
    lines = []
    one_line = summary.array_line
    monkeypatch.setattr(summary, "array_line", lambda array: lines.append(array) or one_line(array))
    text = peek(capsys, tmp_path / "x.npz")

    assert "… 461 more lines" in text
    assert "a38  int64 (3,)" in text
    assert "a39" not in text
    assert len(lines) <= 40


CORPUS = {
    "detect": [
        "matlab_v4_nomagic_bigendian.mat", "matlab_v5_big_endian.mat", "matlab_v7.mat",
        "matlab_v73_userblock512.mat", "netcdf_classic.nc", "nrrd_gzip_encoding.nrrd",
        "plain_hdf5_no_extension", "python3.npy", "standard.nii.gz", "rand100.ra",
    ],
    "har": [
        "SJSUB.sl4", "gtap7_3x3_basedata.har", "harpy_test.har", "test_timedim.har",
        "oranig_summary.har",
    ],
    "npy": [
        "npy_bool_3d.npy", "npy_datetime64_ns.npy", "npy_f8_2d_fortran.npy",
        "npy_f8_4d.npy", "npy_unicode_U4_2d.npy", "ok_npy_big_endian.npy",
        "ok_npy_zero_dim.npy", "npy_u8_1d.npy",
    ],
    "png/idx": [
        "mini-images-idx3-ubyte", "mini-labels-idx1-ubyte",
    ],
    "ra": [
        "cifar_airplane.png", "cifar_airplane.ra", "mnist_8.png", "mnist_8.ra",
        "mnist_8_z.ra", "randc32.ra", "randf16.ra", "randi32.ra", "shepplogan.ra",
    ],
    "mat-hdf5/hdf5": [
        "gen_types.h5", "gen_layouts.h5", "hg_tcompound.h5", "hj_bool_dset.h5",
    ],
    "mat-hdf5/jld2": [
        "example.jld2",
    ],
    "mat-hdf5/mat73": [
        "matjl_struct.mat",
    ],
    "mat-hdf5/mat": [
        "scipy_testcomplex_6.5.1_GLNX86.mat",
    ],
    "mat-hdf5/netcdf": [
        "gen_packed_groups.nc",
    ],
}  # fmt: skip


@linux
def test_files_of_all_formats_are_looked_at_in_bounds(corpus: Callable[..., Path]) -> None:
    paths = [corpus(folder, name) for folder, names in CORPUS.items() for name in names]
    assert len(paths) >= 40
    found = counted(*paths)

    wrong = {path: code for path, (code, *_) in found.items() if code}
    assert not wrong
    assert is_within(found), found


def test_a_file_at_a_url_is_looked_at_by_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    package("aiohttp", "remote")
    from tests.remote import webserver

    sparse_ra(tmp_path / "x.ra", (1000, 1000, 2500))  # 10 GB
    with webserver.running(tmp_path) as server:
        text = peek(capsys, server.url("x.ra"))

        assert "3 of 2500 planes" in text
        assert server.sent < 4 << 20
        assert len(server.paths) <= 5  # the header, a sidecar that is not there, three planes
        assert main(["info", server.url("x.ra"), "--html", "-o", str(tmp_path / "x.html")]) == 0
        assert len(server.paths) <= 5 + 7  # the size and the sidecar once more
