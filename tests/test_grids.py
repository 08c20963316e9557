"""Pages of files of many arrays: what is shown of each, where, and within which bounds."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from base64 import b64decode
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.views.pages.grid import MOST_PICTURES, Grid
from raconvert.views.pages.notebook import STYLE
from raconvert.views.roles import main_array, roles_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

netcdf4 = pytest.importorskip("netCDF4")


class Tiles(HTMLParser):
    """The tiles of a page in order: the group, the words, and the tags inside each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tiles: list[dict[str, Any]] = []
        self.groups: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self._inside = False
        self._summary = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "details" and found.get("class") == "group":
            self.groups.append("")
        self._summary = tag == "summary" or (self._summary and tag not in ("ul", "details"))
        if tag == "li":
            self._inside = True
            self.tiles.append({"words": "", "tags": [], "images": [], "size": found["data-size"]})
        elif self._inside:
            self.tiles[-1]["tags"].append(tag)
            if tag == "img":
                self.tiles[-1]["images"].append(found)

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("li", "ul")
        self._summary = self._summary and tag != "summary"

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._inside:
            self.tiles[-1]["words"] += data
        elif self._summary and self.groups:
            self.groups[-1] += data

    def named(self, name: str) -> dict[str, Any]:
        (found,) = [tile for tile in self.tiles if re.search(rf"\b{name} ", tile["words"])]
        return found


def page(path: Path) -> str:
    out = path.parent / "page.html"
    assert main(["info", str(path), "--html", "-o", str(out), "--overwrite"]) == 0
    return out.read_text(encoding="utf-8")


def picture(tile: dict[str, Any]) -> np.ndarray:
    (found,) = tile["images"]
    data = b64decode(found["src"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def climate(path: Path) -> None:
    with netcdf4.Dataset(path, "w") as file:
        for name, length in (("time", 6), ("lat", 40), ("lon", 60), ("bnds", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.bounds = "days since 2000-01-01", "time_bnds"
        time[:] = np.arange(6) * 30.0
        file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = 0
        for name, length in (("lat", 40), ("lon", 60)):
            file.createVariable(name, "f4", (name,))[:] = np.arange(length)
        area = file.createVariable("area", "f8", ("lat", "lon"))
        area[:] = np.ones((40, 60))
        rain = file.createVariable("rain", "f4", ("time", "lat", "lon"))
        rain.units, rain.cell_measures = "mm", "area: area"
        rain[:] = np.arange(6 * 40 * 60).reshape(6, 40, 60)
        crs = file.createVariable("crs", "i4")
        crs.grid_mapping_name = "latitude_longitude"


# What people mean, and what belongs to it ---------------------------------------------------------


def test_coordinates_stand_with_their_variable(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    climate(path)
    found = Tiles(page(path))
    assert [tile["words"].split()[0] for tile in found.tiles] == ["rain", "latitude_longitude"]
    rain = found.named("rain")
    assert "along time, lat, lon" in rain["words"]
    assert "with area" in rain["words"]
    assert "mm" in rain["words"]
    assert "rain float32 (time: 6, lat: 40, lon: 60), with time, lat, lon, area" in found.words


def bundle_of(arrays: dict[str, np.ndarray]) -> raconvert.Bundle:
    return raconvert.Bundle([raconvert.Array(values, name=name) for name, values in arrays.items()])


MEANT = {
    "offsets": {"offsets": np.arange(9000), "values": np.arange(900.0), "indptr": np.arange(9999)},
    "bounds": {"time_bnds": np.zeros((500, 2)), "speed": np.zeros(400)},
    "mask": {"mask": np.zeros((50, 50), bool), "image": np.zeros((30, 40), "u1")},
    "palette": {"palette": np.zeros((256, 3)), "image": np.zeros((20, 30), "u1")},
    "texts": {"names": np.array(["a" * 500] * 99), "numbers": np.arange(3)},
    "codes": {"codes": np.zeros(4000, "i4"), "x": np.zeros((10, 100))},
    "plain": {"small": np.zeros(9), "large": np.zeros((20, 30))},
}


@pytest.mark.parametrize("case", MEANT)
def test_the_large_picture_is_of_what_people_mean(case: str) -> None:
    bundle = bundle_of(MEANT[case])
    meant = {"offsets": "values", "bounds": "speed", "texts": "numbers", "codes": "x"}
    found = main_array(bundle)
    assert found is not None
    assert found.name == meant.get(case, "large" if case == "plain" else "image")


def test_a_file_of_nothing_but_coordinates_shows_them() -> None:
    bundle = bundle_of({"offsets": np.arange(5), "index": np.arange(7)})
    assert roles_of(bundle).kinds == {}
    assert len(Tiles("".join(Grid(bundle, roles_of(bundle)).html())).tiles) == 2


# What is shown of each ----------------------------------------------------------------------------


def test_every_kind_of_array_has_its_tile(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["image"] = np.repeat(np.arange(0, 240, 60, dtype="u1"), 900).reshape(60, 60)
        file["photo"] = np.full((20, 30, 3), (200, 10, 90), "u1")
        file["line"] = np.arange(100.0)
        file["columns"] = np.random.default_rng(0).normal(size=(100, 2))
        file["score"] = 0.125
        file["words"] = np.array([b"alpha", b"beta"])
        file["records"] = np.zeros(7, [("name", "S4"), ("x", "f4")])
        file["empty"] = np.zeros((0, 4))
        file["<b>"] = np.eye(9)
    found = Tiles(page(path))
    assert len(found.tiles) == 9
    assert picture(found.named("photo")).reshape(-1, 3).tolist()[0] == [200, 10, 90]
    gray = picture(found.named("image"))
    assert np.array_equal(gray[..., 0], gray[..., 1])
    assert gray[0, 0, 0] < gray[-1, 0, 0]
    assert found.named("line")["tags"].count("svg") == 1
    assert found.named("columns")["tags"].count("svg") == 2
    assert found.named("score")["words"].startswith("0.125")
    assert found.named("words")["words"].startswith("alpha, beta")
    assert "b'alpha'" not in found.words
    assert found.named("records")["words"].startswith("7 records: name, x")
    assert found.named("empty")["words"].startswith("empty")
    assert any("<b> " in tile["words"] for tile in found.tiles)


def test_a_damaged_array_is_named_among_the_sound_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    rng = np.random.default_rng(3)
    wild = rng.integers(0, 256, (60, 90), "u1")
    np.savez(path, first=np.arange(99.0), wild=wild, image=rng.normal(size=(20, 20)))
    data = bytearray(path.read_bytes())
    data[data.index(wild.tobytes()[100:140])] ^= 1
    path.write_bytes(data)
    text = page(path)
    found = Tiles(text)
    assert "cannot be read: data is damaged" in found.named("wild")["words"]
    assert not found.named("wild")["images"]
    assert found.named("first")["tags"].count("svg") == 1
    assert picture(found.named("image")).shape[:2] == (20, 20)
    # The picture that is meant cannot be shown: the next one is.
    head = text[: text.index("All arrays")]
    assert head.count("data:image/png") == 1
    assert "The elements cannot be read" in head
    assert "image float64 (20, 20)" in Tiles(head).words


# Many ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 5,000 arrays in 500 groups."""
    path = tmp_path_factory.mktemp("many") / "many.npz"
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w") as file:
        for number in range(5000):
            values = io.BytesIO()
            np.save(values, rng.normal(size=(8, 8)).astype("f4"))
            name = f"layer{number // 100:02d}/block{number % 100 // 10}/w{number % 10}.npy"
            file.writestr(name, values.getvalue())
    return path


def test_five_thousand_arrays_are_listed_in_folded_groups(many: Path) -> None:
    text = page(many)
    assert len(text) < 560_000
    found = Tiles(text)
    assert len(found.tiles) == 5000
    drawn = sum(bool(tile["images"]) for tile in found.tiles)
    assert 40 <= drawn <= MOST_PICTURES
    assert f"{drawn} of 5,000 arrays have a picture here" in found.words
    assert len(found.groups) == 50 + 500
    assert text.count('class="group" open') == 1 + 50  # the first one, and the first in each
    assert "layer07 100 arrays, 25.6 kB" in found.words


# ru_maxrss of a child can start at its parent's peak (fork before exec), VmHWM cannot.
USED = """
import re, sys
from raconvert.cli import main
assert main(sys.argv[1:]) == 0
with open("/proc/self/status") as status:
    print(re.search(r"VmHWM:\\s+(\\d+)", status.read()).group(1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_five_thousand_arrays_take_little_memory(many: Path) -> None:
    out = many.with_suffix(".html")
    words = ["info", str(many), "--html", "-o", str(out), "--overwrite", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", USED, *words], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) << 10 < 150 << 20


def test_what_is_read_for_pictures_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for number in range(40):
            file.create_dataset(f"a{number}", data=np.ones((2000, 800), "f4"), compression=1,
                                chunks=(2000, 800))  # fmt: skip
    with raconvert.open(path) as bundle:
        grid = Grid(bundle, roles_of(bundle))
        assert 1 <= len(grid.drawn) <= 24 * (1 << 20) // (2000 * 800 * 4)
        assert grid.passed == 40 - len(grid.drawn)


# Sorting, in a browser ----------------------------------------------------------------------------


def test_arrays_are_sorted_where_scripts_run(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, b2=np.zeros(20), b10=np.zeros((9, 9), "f4"), a=np.zeros(5, "i2"))
    names = "[...document.querySelectorAll('.tiles bdi')].map(one => one.textContent)"
    page(path)
    tab = browser.new_page()  # the policy of the page holds
    tab.goto((tmp_path / "page.html").as_uri())
    seen = {}
    for way in ("name", "size", "kind", "place in the file"):
        tab.get_by_role("button", name=way).click()
        seen[way] = tab.evaluate(names)
        assert tab.evaluate("document.querySelector('[aria-pressed=true]').textContent") == way
    still = browser.new_context(java_script_enabled=False).new_page()
    still.goto((tmp_path / "page.html").as_uri())
    assert not still.get_by_role("button", name="size").is_visible()
    assert still.locator(".tiles bdi").all_text_contents() == ["b2", "b10", "a"]
    assert seen == {
        "name": ["a", "b2", "b10"], "size": ["b10", "b2", "a"], "kind": ["b10", "b2", "a"],
        "place in the file": ["b2", "b10", "a"],
    }  # fmt: skip


def test_groups_as_deep_as_a_file_may_have_them_are_listed(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 498)
    np.savez(tmp_path / "x.npz", **{f"{deep}/g{number}/x": np.eye(3) for number in range(30)})
    with raconvert.open_bundle(tmp_path / "x.npz") as bundle:
        text = "".join(Grid(bundle, roles_of(bundle)).html())
    found = Tiles(text)
    assert len(found.tiles) == 30
    assert text.count("<details") < 100


# Notebooks ----------------------------------------------------------------------------------------


def test_the_style_of_a_cell_is_its_own() -> None:
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", STYLE.removeprefix("<style>"))
    assert len(rules) > 20
    for rule in rules:
        for selector in rule.split(","):
            assert selector.strip().startswith(".raconvert"), selector


def test_a_cell_of_a_bundle_is_a_grid_without_scripts(tmp_path: Path) -> None:
    climate(tmp_path / "x.nc")
    with raconvert.open(tmp_path / "x.nc") as bundle:
        text = bundle._repr_html_()
    found = Tiles(text)
    assert "along time, lat, lon" in found.named("rain")["words"]
    assert found.named("rain")["images"]
    assert "<script" not in text
    assert "<button" not in text
