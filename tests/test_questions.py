"""Five questions about an unknown file, answered from the text of its page, and by what it pastes.

Which type and shape in Python and in Julia? Is it compressed? Can it become a MAT file, and what
would change? How is it read in C? Is it the file from last year? Files are written by others, or
byte by byte here (HAR by this project); what the page says of them is compared with NumPy, SciPy,
gcc and sha256sum.
"""

from __future__ import annotations

import html
import re
import struct
import subprocess
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
import scipy.io

import raconvert
from raconvert.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VOLUME = np.arange(60).reshape(3, 4, 5)
WAVES = np.exp(1j * np.arange(12.0)).reshape(3, 4).astype("<c8")


def npy(path: Path) -> np.ndarray:
    np.save(path, VOLUME.astype(">u2"))
    return VOLUME.astype(">u2")


def npy_by_columns(path: Path) -> np.ndarray:
    values = np.asfortranarray(VOLUME.astype("<f8"))
    np.save(path, values)
    return values


def hdf5(path: Path) -> np.ndarray:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=VOLUME.astype(">i4"), compression="gzip")
    return VOLUME.astype(">i4")


def nrrd(path: Path) -> np.ndarray:
    head = b"NRRD0004\ntype: short\ndimension: 3\nsizes: 5 4 3\nendian: big\nencoding: raw\n\n"
    path.write_bytes(head + VOLUME.astype(">i2").tobytes())
    return VOLUME.astype(">i2")


def har(path: Path) -> np.ndarray:
    """By this project, the values by columns in one record."""
    values = np.arange(12, dtype="<f4").reshape(3, 4)
    raconvert.write(path, {"X": np.asfortranarray(values)})
    assert values.tobytes("F") in path.read_bytes()
    return values


def mat(path: Path) -> np.ndarray:
    values = np.arange(12.0).reshape(3, 4)
    scipy.io.savemat(path, {"x": values}, do_compression=True)
    return values


def ra(path: Path) -> np.ndarray:
    header = struct.pack("<8s7Q", b"rawarray", 0, 4, 8, WAVES.nbytes, 2, 4, 3)
    path.write_bytes(header + WAVES.tobytes())
    return WAVES


# the file -> how it is made, its type in Julia, if it is compressed
FILES = {
    "big.npy": (npy, "Array{UInt16,3}", False),
    "columns.npy": (npy_by_columns, "Array{Float64,3}", False),
    "packed.h5": (hdf5, "Array{Int32,3}", True),
    "scan.nrrd": (nrrd, "Array{Int16,3}", False),
    "trade.har": (har, "Array{Float32,2}", False),
    "v7.mat": (mat, "Array{Float64,2}", True),
    "waves.ra": (ra, "Array{ComplexF32,2}", False),
}


class Page:
    """What can be read on a page: its facts, the rows of its tables, and its programs."""

    def __init__(self, path: Path) -> None:
        target = path.with_name("page.html")
        assert main(["info", str(path), "--html", "-o", str(target), "--quiet"]) == 0
        text = target.read_text(encoding="utf-8")
        target.unlink()
        self.facts = {
            name: _words(found) for name, found in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
        }
        self.rows = [
            [_words(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
            for row in re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
        ]
        listing = r"<summary>([^<]*)</summary>\n<pre[^>]*>(.*?)</pre>"
        self.programs = {
            title: html.unescape(code) for title, code in re.findall(listing, text, re.DOTALL)
        }
        self.lines = [html.unescape(line) for line in re.findall(r"<pre>(.*?)</pre>", text)]


def _words(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", text.replace("<br>", "\n")))


@pytest.fixture(params=FILES)
def asked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, np.ndarray, Page]:
    """A file, its values, and its page; the working directory is where the file lies."""
    path = tmp_path / request.param
    values = FILES[request.param][0](path)
    monkeypatch.chdir(tmp_path)
    return path, values, Page(path)


def made_plain(page: Page, tool: Callable[..., str]) -> str:
    """Do what the page says first, if it does; return what follows the titles of its programs."""
    line = next((line for line in page.lines if line.startswith("raconvert ")), None)
    if line is None:
        return ""
    subprocess.run([tool("bash"), "-c", line], check=True, capture_output=True)
    return " of x.ra"


def indexed(elements: np.ndarray, page: Page) -> np.ndarray:
    """Elements in the order of the file, as the page says they are indexed in Python."""
    dims = [int(n) for n in page.facts["in Julia"].split(", ", 1)[1].split(" × ")]
    if "first" in page.facts["order"]:
        return elements.reshape(dims, order="F")
    return elements.reshape(dims[::-1])


def test_which_type_and_shape(
    asked: tuple[Path, np.ndarray, Page], tool: Callable[..., str]
) -> None:
    path, values, page = asked
    order = {">": "big", "<": "little"}[values.dtype.str[0]]

    assert page.facts["type"] == f"{values.dtype.name}, {order}-endian"
    assert page.facts["in Python"] == f"shape {values.shape}"
    assert page.facts["in Julia"].startswith(f"{FILES[path.name][1]}, ")
    for title in dict.fromkeys(("Python", f"Python{made_plain(page, tool)}")):
        space: dict[str, np.ndarray] = {}
        exec(page.programs[title], space)
        found = np.squeeze(space["x"])
        assert found.shape == values.shape
        assert np.array_equal(found, values), title


def test_is_it_compressed(asked: tuple[Path, np.ndarray, Page]) -> None:
    path, values, page = asked
    said = page.facts["compressed"]

    assert said.startswith("yes" if FILES[path.name][2] else "no")
    place = re.search(r"from byte ([\d,]+) of", said)
    assert (place is None) == FILES[path.name][2]
    if place is not None:
        elements = np.fromfile(
            path, values.dtype, values.size, offset=int(place[1].replace(",", ""))
        )
        assert np.array_equal(indexed(elements, page), values)


def test_can_it_become_a_mat_file(asked: tuple[Path, np.ndarray, Page], tmp_path: Path) -> None:
    path, values, page = asked
    (row,) = [row for row in page.rows if row and row[0].startswith("mat ")]
    report = raconvert.convert(path, tmp_path / "y.mat")

    assert row[1] == ("equivalent" if report.equivalent else "exact")
    assert [str(fit) for fit in report.equivalent if str(fit) not in row[2]] == []
    (found,) = [
        part for name, part in scipy.io.loadmat(tmp_path / "y.mat").items() if name[0] != "_"
    ]
    # NRRD and RA list axes from the fastest, and MATLAB takes them as they stand, as Julia does.
    listed = path.suffix in (".nrrd", ".ra")
    assert np.array_equal(found, values.T if listed else values)
    if listed:
        dims = " × ".join(map(str, found.shape))
        assert page.facts["in Julia"].endswith(f", {dims}")


def test_how_is_it_read_in_c(
    asked: tuple[Path, np.ndarray, Page], tmp_path: Path, tool: Callable[..., str]
) -> None:
    _, values, page = asked
    code = page.programs[f"C{made_plain(page, tool)}"]
    tail = "    fwrite(x, sizeof *x, n, stdout);\n    return 0;\n}"
    (tmp_path / "read.c").write_text(code.removesuffix("    return 0;\n}") + tail)
    words = [tool("gcc"), "-Wall", "-Wextra", "-Werror", "-o", "read", "read.c"]
    subprocess.run(words, check=True, cwd=tmp_path)
    out = subprocess.run(["./read"], check=True, cwd=tmp_path, capture_output=True).stdout

    elements = np.frombuffer(out, values.dtype.newbyteorder("="))
    assert np.array_equal(indexed(elements, page), values)


def test_is_it_the_file_from_last_year(
    asked: tuple[Path, np.ndarray, Page], tool: Callable[..., str]
) -> None:
    path, _, page = asked
    (line,) = [one for one in page.lines if re.fullmatch(rf"[0-9a-f]{{64}}  {path.name}", one)]
    check = [tool("sha256sum"), "--check", "--status", "-"]

    assert subprocess.run(check, input=line.encode(), check=False).returncode == 0
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert subprocess.run(check, input=line.encode(), check=False).returncode == 1
