"""Pages of `diff --html`, and where arrays differ: judged by NumPy and Pillow."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.api import array_of
from raconvert.cli import main
from raconvert.inspect.elements import Rule, compare_data
from raconvert.inspect.where import Where
from raconvert.views.comparison import _difference, _extremes, seen_of, where_of_pair
from raconvert.views.picture import DIFFERENCE, palette_of
from tests.test_page import HOSTILE, check

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

RNG = np.random.default_rng(25)
KINDS = ("u1", "i2", "i8", "u8", "f4", "f8", ">f8", "c8", "?")


def compared(
    x: np.ndarray, y: np.ndarray, rule: Rule | None = None
) -> tuple[dict[str, Any], Where, Any]:
    a, b = array_of(x), array_of(y)
    where = where_of_pair(a, b)
    found = compare_data(a, b, rule or Rule(), where)
    return found, where, (a, b)


def some_arrays(kind: str, shape: tuple[int, ...], order: str) -> tuple[np.ndarray, np.ndarray]:
    """An array, and one that differs from it in about every ninth element."""
    x = (RNG.normal(size=shape) * 50).astype(kind)
    if kind == "?":
        x = RNG.random(shape) < 0.5
    y = (RNG.normal(size=shape) * 50).astype(kind)
    y[RNG.random(shape) > 1 / 9] = 0
    y = np.where(y != 0, y, x).astype(kind)
    if np.dtype(kind).kind == "f":
        x.reshape(-1)[3], y.reshape(-1)[5] = np.nan, np.inf
    return np.asarray(x, order=order), np.asarray(y, order=order)


# Where, and how much ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", KINDS)
def test_places_and_sizes_are_those_of_numpy(kind: str, order: str) -> None:
    """Read in many small blocks."""
    x, y = some_arrays(kind, (7, 5, 40, 30), order)
    found, where, _ = compared(x, y, Rule(max_memory=1 << 16))
    odd = x != y
    if x.dtype.kind in "fc":
        odd &= ~(np.isnan(x) & np.isnan(y))
    places = np.argwhere(odd)
    assert where.count == found["differ"] == odd.sum() > 100
    assert where.low == places.min(axis=0).tolist()
    assert where.high == places.max(axis=0).tolist()
    assert where.outer in ((0, 1), (2, 3))
    planes = odd.sum(axis=tuple({0, 1, 2, 3} - {*where.outer}))
    assert where.planes is not None
    assert where.planes.tolist() == planes.reshape(-1).tolist()
    assert where.most[0] == (
        tuple(int(one) for one in np.unravel_index(planes.argmax(), planes.shape)),
        planes.max(),
    )
    flat = places if where.order == "C" else np.argwhere(odd.T)[:, ::-1]
    assert [place for place, *_ in where.examples] == [tuple(one) for one in flat[:10].tolist()]
    assert all(
        (int(a), int(b)) == (int(x[place]), int(y[place]))
        if kind == "?"
        else (str(a), str(b)) == (str(x[place]), str(y[place]))
        for place, a, b in where.examples
    )


@pytest.mark.parametrize("kind", ["u1", "i2", "i8", "f4", "f8"])
def test_sizes_are_counted_by_powers_of_ten(kind: str) -> None:
    x, y = some_arrays(kind, (60, 70), "C")
    _, where, _ = compared(x, y)
    signed = y.astype("f8") - x.astype("f8")
    signed = signed[np.isfinite(signed) & (signed != 0)]
    edges = [10.0**power for power in range(-12, 12)]
    counts, _ = np.histogram(np.abs(signed), edges)
    assert where.sizes == {
        power: count for power, count in zip(range(-12, 12), counts, strict=False) if count
    }
    with np.errstate(invalid="ignore"):
        assert (where.larger, where.smaller) == ((y > x).sum(), (y < x).sum())
    assert where.finite == signed.size
    assert where.total == pytest.approx(signed.sum())


def test_powers_of_ten_begin_their_own_range() -> None:
    y = np.array([1e-3, 1.0, 10.0, 100.0, 999.0, 1000.0, 1e300, 5e-324])
    _, where, _ = compared(np.zeros(8), y)
    assert where.sizes == {-3: 1, 0: 1, 1: 1, 2: 2, 3: 1, 300: 1, -323: 1}


def test_tolerated_differences_are_none() -> None:
    x = np.zeros((4, 5))
    y = x.copy()
    y[1, 2], y[3, 3] = 1e-9, 1.0
    found, where, _ = compared(x, y, Rule(atol=1e-6))
    assert (found["differ"], where.count, where.low, where.high) == (1, 1, [3, 3], [3, 3])


def test_differences_of_large_integers_are_exact() -> None:
    x = np.array([0, -(2**63), 2**63 - 1, 7], "i8")
    y = np.array([1, 2**63 - 1, -(2**63), 7], "i8")
    assert _difference(x, y).tolist() == [1.0, 2.0**64, -(2.0**64), 0.0]
    assert _difference(x.astype("u8"), y.astype("u8"))[0] == 1.0
    gone = _difference(np.array([np.nan, np.nan, 1]), np.array([np.nan, 1, np.inf]))
    assert gone[0] == 0
    assert np.isnan(gone[1])
    assert np.isinf(gone[2])


# Pictures -----------------------------------------------------------------------------------------


def pictures_of(text: str) -> list[np.ndarray]:
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
        for data in re.findall(r'src="data:image/png;base64,([^"]*)"', text)
    ]


def unbroken(text: str) -> str:
    return text.replace("\n", "")


def page(
    folder: Path, x: np.ndarray, y: np.ndarray, *words: str, code: int = 1
) -> tuple[str, list[np.ndarray]]:
    np.save(folder / "a.npy", x)
    np.save(folder / "b.npy", y)
    out = folder / "d.html"
    names = [str(folder / "a.npy"), str(folder / "b.npy")]
    assert main(["diff", *names, "--html", "-o", str(out), "--overwrite", *words]) == code
    text = out.read_text()
    check(text)
    return text, pictures_of(text)


def test_both_have_the_same_limits_and_the_difference_its_sign(tmp_path: Path) -> None:
    x = np.tile(np.linspace(0, 10, 40), (30, 1))
    y = x.copy()
    y[4:8, 5:9] += 3
    y[20, 30] -= 1.5
    _, (a, b, signed, mask) = page(tmp_path, x, y)
    same = x == y
    assert a.shape == b.shape == signed.shape == mask.shape == (*x.shape, 3)
    assert (a[same] == b[same]).all()
    assert not (a[~same] == b[~same]).all()
    palette = palette_of(DIFFERENCE)
    assert (signed[same] == palette[3 + 126]).all()  # the middle of 253 colours
    assert (signed[5, 6] == palette[255]).all()
    assert signed[20, 30][2] > signed[20, 30][0]  # blue
    assert (mask[same] == mask[0, 0]).all()
    assert (mask[~same] != mask[0, 0]).any(axis=-1).all()


def test_the_scale_of_a_difference_is_symmetric() -> None:
    palette = palette_of(DIFFERENCE)[3:].astype(int)
    assert (palette[126] == palette[126][0]).all()
    light = palette.sum(axis=1)
    assert (np.diff(light[:127]) >= 0).all()
    assert (np.diff(light[126:]) <= 0).all()


def test_one_element_of_many_is_seen(tmp_path: Path) -> None:
    x = RNG.normal(size=(900, 1100)).astype("f4")
    y = x.copy()
    y[777, 123] += 40
    y[100, 1000] = np.nan
    text, (_, _, signed, mask) = page(tmp_path, x, y)
    assert max(mask.shape) == 300
    odd = np.argwhere((mask != mask[0, 0]).any(axis=-1))
    factor = 300 / 1100
    expected = [[100 * factor, 1000 * factor], [777 * factor, 123 * factor]]
    assert np.abs(odd - np.array(expected)).max() <= 1
    shown = np.argwhere((signed != signed[0, 0]).any(axis=-1))
    assert shown.tolist() == odd.tolist()
    assert "777" in text
    assert "NaN" in check(text).words


def test_extremes_are_those_of_each_pixel() -> None:
    values = RNG.normal(size=(60, 84))
    small = _extremes(values, (10, 12))
    for row in range(10):
        for column in range(12):
            part = values[6 * row : 6 * row + 6, 7 * column : 7 * column + 7]
            assert small[row, column] == part.reshape(-1)[np.abs(part).argmax()]


def test_the_plane_with_most_differences_is_shown(tmp_path: Path) -> None:
    for order in "CF":
        x = np.asarray(RNG.normal(size=(6, 5, 20, 30)), order=order)
        y = x.copy(order="K")
        index = (4, 2) if order == "C" else (slice(None), slice(None), 11, 13)
        y[index] += 1
        text, pictures = page(tmp_path, x, y)
        key = "[4, 2, :, :]" if order == "C" else "[:, :, 11, 13]"
        count = 600 if order == "C" else 30
        assert f"<code>{key}</code>, with {count} of the {count} differences" in text
        assert (pictures[3] != palette_of("classes")[3]).any(axis=-1).all()


def test_a_plane_that_is_too_large_is_a_window_around_the_largest(tmp_path: Path) -> None:
    x = np.zeros((3000, 2000), "u1")
    y = x.copy()
    y[2900, 10], y[5, 1500] = 9, 3
    text, (_, _, _, mask) = page(tmp_path, x, y)
    assert "<code>[2488:3000, 0:512]</code>, a window around the largest difference" in text
    assert (mask != mask[0, 0]).any(axis=-1).sum() == 1
    assert "2 of 6,000,000" in text
    assert '<td class="n">5</td><td class="n">2,900</td><td class="n">3,000</td>' in unbroken(text)


def test_photos_and_complex_values(tmp_path: Path) -> None:
    photo = RNG.integers(0, 255, (20, 30, 3)).astype("u1")
    other = photo.copy()
    other[3, 4, 1] ^= 0xFF
    _, (a, b, signed, mask) = page(tmp_path, photo, other)
    assert np.array_equal(a, photo)
    assert np.array_equal(b, other)
    assert np.argwhere((mask != mask[0, 0]).any(axis=-1)).tolist() == [[3, 4]]
    assert np.argwhere((signed != signed[0, 0]).any(axis=-1)).tolist() == [[3, 4]]
    x = RNG.normal(size=(20, 30)) + 1j
    text, pictures = page(tmp_path, x, np.where(np.arange(30) == 7, x.conj(), x))
    assert "|B - A|" in text  # whose magnitudes are equal
    assert {one[1] for one in np.argwhere((pictures[3] != pictures[3][0, 0]).any(axis=-1))} == {7}


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.array([b"alpha", b"beta"]), np.array([b"alpha", b"gamma"])),
        (np.array(["<b>", "\u202e"]), np.array(["<b>", "z"])),
        (np.array(3.5), np.array(4.5)),
        (np.arange(6.0), np.arange(6.0) + (np.arange(6) == 3)),
        (np.array(["2020-01-01"], "M8[D]"), np.array(["2021-01-01"], "M8[D]")),
        (np.zeros(3, [("a", "i4"), ("b", "f8")]), np.ones(3, [("a", "i4"), ("b", "f8")])),
        (np.zeros((30, 3)), np.eye(30)[:, :3]),
        (np.array([np.nan, np.inf]), np.array([1, -np.inf])),
        (np.arange(12).reshape(3, 4), np.arange(12).reshape(4, 3)),
        (np.zeros((3, 4), "f4"), np.zeros((3, 4), "f8")),
        (np.full((20, 20), np.nan), np.zeros((20, 20))),
        (np.zeros((9, 9), bool), np.eye(9, dtype=bool)),
    ],
)
def test_all_kinds_have_a_page(tmp_path: Path, x: np.ndarray, y: np.ndarray) -> None:
    text, _ = page(tmp_path, x, y)
    words = check(text).words
    assert words.count("different")
    if x.shape == y.shape and x.dtype == y.dtype:
        assert f"{(x != y).sum():,} of {x.size:,}" in words
    else:
        assert "≠" in words


# Commands -----------------------------------------------------------------------------------------


def test_exit_codes_stay(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    x = np.arange(12.0).reshape(3, 4)
    text, _ = page(tmp_path, x, x, code=0)
    assert "the same" in text
    out = capfdbinary.readouterr().out.decode()
    assert "data     equal" in out  # what is printed stays
    names = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    np.save(names[1], x + 1)
    assert main(["diff", *names, "--html", "-o", "-"]) == 1
    check(capfdbinary.readouterr().out.decode())
    assert main(["diff", *names, "--html"]) == 2
    assert main(["diff", *names, "-o", str(tmp_path / "x.html")]) == 2
    assert main(["diff", *names, "--html", "-o", names[0]]) == 5
    assert main(["diff", *names, "--html", "-o", names[0], "--overwrite"]) == 5
    assert np.array_equal(np.load(names[0]), x)
    (tmp_path / "b.npy").write_bytes(b"no array")
    assert main(["diff", *names, "--html", "-o", str(tmp_path / "y.html")]) == 2
    assert not (tmp_path / "x.html").exists()
    assert not (tmp_path / "y.html").exists()


def test_containers_are_compared_array_by_array(tmp_path: Path) -> None:
    for name, more in (("a", 0.0), ("b", 1.0)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["same"] = np.arange(9.0)
            file["image"] = np.arange(200.0).reshape(10, 20) + more * np.eye(10, 20)
            file["image"].attrs["units"] = "K" if more else "C"
            file["shapes"] = np.zeros((3, 4 + int(more)))
            file[f"only{name}"] = np.arange(3)
            file.attrs[HOSTILE] = HOSTILE + name
    out = tmp_path / "d.html"
    names = [str(tmp_path / "a.h5"), str(tmp_path / "b.h5")]
    assert main(["diff", *names, "--html", "-o", str(out)]) == 1
    words = check(out.read_text()).words
    for text in ("2 of 3 arrays in both differ", "only in A", "only in B", "(3, 4) ≠ (3, 5)"):
        assert text in words, text
    assert "10 of 200" in words
    assert HOSTILE in words
    assert "'C'" in words
    assert "'K'" in words
    assert len(pictures_of(out.read_text())) == 4


def test_folders_are_compared_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in "ab":
        (tmp_path / side).mkdir()
        for number in range(300):
            np.save(tmp_path / side / f"{number}.npy", np.arange(3))
        np.save(tmp_path / side / "odd.npy", np.arange(4) + (side == "b"))
        np.save(tmp_path / side / f"<i>{side}.npy", np.arange(4))
        (tmp_path / side / "bad.npy").write_bytes(b"x")
    out = tmp_path / "d.html"
    words = ["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--html", "-o", str(out)]
    assert main(words) == 2
    told = capsys.readouterr().out
    assert "300 the same, 1 different, 1 only in a, 1 only in b, 1 not compared" in told
    text = check(out.read_text()).words
    for line in ("304 files", "300 the same", "4 of 4 elements differ", "<i>a.npy", "bad.npy"):
        assert line in text, line
    assert "299.npy" not in text
    (tmp_path / "a/bad.npy").unlink()
    (tmp_path / "b/bad.npy").unlink()
    assert main([*words, "--overwrite"]) == 1


def test_many_differences_are_cut(tmp_path: Path) -> None:
    for side in "ab":
        (tmp_path / side).mkdir()
        for number in range(900):
            np.save(tmp_path / side / f"{side}{number}.npy", np.arange(3))
    out = tmp_path / "d.html"
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--html", "-o", str(out)]) == 1
    assert "and 700 more" in check(out.read_text()).words
    assert out.stat().st_size < 100_000


def test_coordinates_are_told(tmp_path: Path) -> None:
    x = np.zeros((4, 20, 30))
    y = x.copy()
    y[2, 5:9, 3] = 1
    axes = [
        {"name": "time", "units": "days", "spacing": 10.0, "origin": 0.0},
        {"name": "lat"},
        {"name": "REG", "labels": [f"R{number}" for number in range(30)]},
    ]
    for name, values in (("a", x), ("b", y)):
        meta = raconvert.Metadata(axes=[raconvert.Axis(**one) for one in axes], units="K")
        array = array_of(values).replace(meta=meta)
        raconvert.write(str(tmp_path / f"{name}.ra"), array)
    out = tmp_path / "d.html"
    names = [str(tmp_path / "a.ra"), str(tmp_path / "b.ra")]
    assert main(["diff", *names, "--html", "-o", str(out)]) == 1
    words = check(out.read_text()).words
    assert "time = 20 days" in words
    assert "REG = R3" in words
    assert "1 K at [2, 5, 3]" in words


COUNTED = """
import re, sys
from raconvert.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = re.search(r"VmHWM:\\s+(\\d+)", status.read()).group(1)
print(code, int(peak) << 10, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    for name, value in (("a", 0), ("b", 7)):
        large = np.lib.format.open_memmap(
            tmp_path / f"{name}.npy", "w+", np.float32, (300, 512, 1024)
        )
        large[150, 3:90, 5:900] = value
        large[7] += value
        large.flush()
    words = ["diff", "a.npy", "b.npy", "--html", "-o", "d.html", "--max-memory", "32M"]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert code == 1
    assert peak < 150 << 20
    assert (tmp_path / "d.html").stat().st_size < 600_000
    count = 512 * 1024 + 87 * 895
    assert f"{count:,} of {300 * 512 * 1024:,}" in (tmp_path / "d.html").read_text()


def test_what_cannot_be_shown_is_said() -> None:
    a = array_of(np.zeros((30, 30)))
    where = where_of_pair(a, a)
    assert seen_of(a, array_of(np.zeros((3, 30))), where, None, 100) is None
    assert seen_of(a, array_of(np.array(["x"])), where, None, 100) is None
    shown = seen_of(a, a, where, None, 100)
    assert shown is not None
    assert [side.title for side in shown.sides] == ["A", "B", "B - A", "where they differ"]
