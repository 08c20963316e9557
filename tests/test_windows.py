"""`peek` and `formats` in windows of terminals: in a real pty, judged by the emulator pyte."""

from __future__ import annotations

import base64
import io
import os
import re
import struct
import sys
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from PIL import Image

from raconvert.views.fitting import cells, cut_to, folded, rows_of, within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

RNG = np.random.default_rng(28)
SIZES = ((80, 24), (120, 40), (40, 24))
LOOKS = {
    "truecolor": {"COLORTERM": "truecolor"},
    "256 colors": {},
    "NO_COLOR": {"NO_COLOR": "1"},
    "dumb": {"TERM": "dumb", "NO_COLOR": "1"},
}
linux = pytest.mark.skipif(sys.platform == "win32", reason="there are no ptys")


def in_window(
    words: list[str], columns: int, rows: int, look: dict[str, str], folder: Path
) -> bytes:
    """What a command writes into a terminal of this size."""
    import fcntl
    import pty
    import termios

    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "TERM_PROGRAM", "TMUX")
    }
    environment |= {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **look}
    process, terminal = pty.fork()
    if not process:  # pragma: no cover - another process
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "raconvert", *words], environment)
    parts = []
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # as Linux says the end
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return b"".join(parts)


def screen_of(written: bytes, columns: int, rows: int) -> Any:
    """The screen of an emulator to which this was written."""
    import pyte

    screen = pyte.HistoryScreen(columns, rows)
    pyte.ByteStream(screen).feed(written)
    return screen


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files and a folder whose looks are long."""
    folder = tmp_path_factory.mktemp("windows")
    z, y, x = np.mgrid[:40, :60, :70]
    np.save(folder / "volume.npy", (z**2 + 300 * np.sin(y / 5) + 300 * np.cos(x / 7)).astype("f4"))
    np.save(folder / "digits.npy", RNG.integers(0, 255, (2000, 28, 28)).astype("u1"))
    np.save(folder / "line.npy", RNG.normal(size=5000).cumsum())
    np.save(folder / "waves.npy", np.exp(1j * np.arange(500) / 20))
    np.save(folder / "complex.npy", RNG.normal(size=(3, 20, 20)) + 1j)
    np.save(folder / "labels.npy", RNG.integers(0, 16, (64, 64)).astype("u1"))
    np.save(folder / "tall.npy", RNG.normal(size=(500, 40)))
    np.save(folder / "wide.npy", RNG.normal(size=(12, 900)))
    np.save(folder / "columns.npy", RNG.normal(size=(900, 7)))
    np.save(folder / "text.npy", np.array([f"a text number {n}" * 9 for n in range(40)]))
    with h5py.File(folder / "many.h5", "w") as file:
        for number in range(60):
            file[f"group{number % 7}/a{number}"] = np.arange(20) * number
        file["image"] = RNG.normal(size=(200, 300))
        file["image"].attrs["units"] = "K"
    name = "a name of many words which is longer than the narrow window is.npy"
    np.save(folder / name, np.arange(12.0).reshape(3, 4))
    np.save(folder / "漢字の長い名前のファイルです漢字の長い名前.npy", np.eye(30))
    images = folder / "images"
    for number in range(90):
        path = images / f"class{number % 3}" / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = RNG.integers(0, 200, (20, 28), "u1") if number != 40 else np.zeros((20, 28), "u1")
        Image.fromarray(values).save(path)
    (images / "class0/000.png").write_bytes(b"no image")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@linux
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("look", LOOKS)
def test_a_look_fits_the_window(
    files: Path, size: tuple[int, int], look: str, package: Callable[..., None]
) -> None:
    """The name is on the first row, nothing has scrolled away, and the prompt has a row."""
    package("pyte", "test")
    assert len(names(files)) == 14
    some = names(files) if look == "truecolor" else ["images", "labels.npy", "many.h5", "wide.npy"]
    for name in some:
        written = in_window(["peek", name], *size, LOOKS[look], files)
        screen = screen_of(written, *size)
        assert not screen.history.top, f"{name} scrolled away"
        start = screen.display[0].replace(" ", "")
        assert start.startswith(name[:20].replace(" ", "")), name
        assert screen.cursor.x == 0
        assert screen.cursor.y < size[1]
        text = "\n".join(screen.display)
        assert re.search(r"\bmin\b", text) or name in ("text.npy", "images"), text
        if look in ("NO_COLOR", "dumb"):
            assert b"\x1b" not in written
        else:
            assert b"\x1b[" in written


@linux
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_pictures_use_the_window(
    files: Path, size: tuple[int, int], package: Callable[..., None]
) -> None:
    """A picture that could be larger takes most of the width or of the rows."""
    package("pyte", "test")
    for name in ("tall.npy", "many.h5", "labels.npy", "digits.npy", "images"):
        screen = screen_of(in_window(["peek", name], *size, LOOKS["truecolor"], files), *size)
        drawn = [row for row in screen.display if "▀" in row]
        assert drawn, name
        wide = max(len(row.rstrip()) for row in drawn) / size[0]
        used = screen.cursor.y / size[1]
        assert wide > 0.6 or used > 0.7, (name, wide, used)


@linux
def test_numbers_are_not_broken(files: Path, package: Callable[..., None]) -> None:
    package("pyte", "test")
    for size in SIZES:
        for name in ("volume.npy", "digits.npy", "many.h5"):
            screen = screen_of(in_window(["peek", name], *size, {"NO_COLOR": "1"}, files), *size)
            for row in screen.display:
                line = row.rstrip()
                assert line.count("(") == line.count(")") or not re.search(r"\(\d[\d, ]*$", line)
                assert not re.search(r"\b(min|max|mean|zeros|NaN)$", line), line
                assert not re.match(r" +(%|kB|MB|bytes)\b", line), line
            text = "\n".join(screen.display)
            shape = {"volume.npy": "(40, 60, 70)", "digits.npy": "(2000, 28, 28)"}
            assert shape.get(name, "(200, 300)") in text


@linux
def test_formats_fit_eighty_columns(files: Path, package: Callable[..., None]) -> None:
    package("pyte", "test")
    written = in_window(["formats"], 80, 400, {"NO_COLOR": "1"}, files).decode()
    lines = written.replace("\r\n", "\n").splitlines()
    assert len(lines) > 30
    assert max(map(cells, lines)) <= 80
    written = in_window(["formats", "har"], 80, 400, {"NO_COLOR": "1"}, files).decode()
    wide = [line for line in written.replace("\r\n", "\n").splitlines() if cells(line) > 80]
    assert [line for line in wide if " " in line.strip()] == []  # an address stays whole


def test_a_pipe_has_all(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """80 columns or COLUMNS, and LINES only if it is set."""
    from raconvert.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LINES", raising=False)
        patch.setenv("COLUMNS", "80")
        assert main(["peek", str(files / "labels.npy")]) == 0
        whole = capsys.readouterr().out.splitlines()
        patch.setenv("LINES", "20")
        assert main(["peek", str(files / "labels.npy")]) == 0
        some = capsys.readouterr().out.splitlines()
    assert "16 values" not in whole
    assert len([line for line in whole if re.match(r" +\d+ +\d+ +█", line)]) == 16
    assert len(some) < 20 < len(whole)


@linux
def test_pictures_of_pixels_are_as_high_as_rows_are_left(files: Path) -> None:
    """As kitty, iTerm2 and sixel draw them, where a character has 16 pixels."""
    for size in SIZES:
        written = in_window(
            ["peek", "tall.npy", "--graphics", "iterm2"], *size, LOOKS["truecolor"], files
        )
        (data,) = re.findall(rb"\x1b\]1337;File=[^:]*:([^\x07]*)\x07", written)
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            high = -(-image.size[1] // 16)
            assert image.size[0] <= size[0] * 8
        others = len(written.splitlines()) - 1
        assert high + others < size[1]
        assert high >= 5


# Folding ------------------------------------------------------------------------------------------


def test_what_belongs_together_stays_so() -> None:
    line = "  min -1.5,  mean 2.25,  max 8   shape (4, 50, 600) C · dims 600 × 50 × 4   12.5 kB"
    for width in range(24, 90):
        parts = folded(line, width)
        assert all(len(part) <= width for part in parts)
        assert "".join(parts).replace(" ", "") == line.replace(" ", "")
        for whole in ("min -1.5", "mean 2.25", "(4, 50, 600)", "600 × 50 × 4", "12.5 kB"):
            assert any(whole in part for part in parts), (width, whole)


def test_wide_characters_count_twice() -> None:
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert cells("\x1b[1mab\x1b[0m") == 2
    assert cut_to("漢字漢字", 5) == "漢字…"
    assert rows_of(["漢" * 21, "", "a" * 40], 40) == 4


def test_lines_are_cut_to_rows() -> None:
    lines = [f"line {number}" for number in range(10)]
    assert within(lines, 10, 80) == within(lines, 0, 80) == lines
    some = within(lines, 4, 80)
    assert some[:3] == lines[:3]
    assert some[3].split()[:3] == ["…", "7", "more"]
    assert rows_of(within(["a" * 200] * 5, 4, 80), 80) <= 4
