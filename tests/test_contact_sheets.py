"""Folders as contact sheets: counts, sample, and what differs, judged by Pillow and NumPy."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import h5py
import nibabel
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.cli import main
from raconvert.errors import ReadFailed
from raconvert.views import folder, survey
from raconvert.views.pages.folder import page_of
from raconvert.views.survey import WORDS, Survey, by_word, outliers, survey_of
from tests.test_page import HOSTILE, check

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

RNG = np.random.default_rng(22)
SHAPE = (24, 30)


def write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values)).save(path)


def gray(mean: int = 100) -> np.ndarray:
    return np.clip(RNG.normal(mean, 20, SHAPE), 0, 255).astype("u1")


ODD = {
    "cannot be read": {"cats/07.png"},
    "empty file": {"cats/08.png"},
    "another format": {"dogs/values.npy"},
    "another type": {"dogs/11.png"},
    "another shape": {"dogs/12.png"},
    "blank": {"cats/13.png", "dogs/14.png"},
}


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder of two classes with planted differences."""
    root = tmp_path / "odd"
    for name in ("cats", "dogs"):
        for number in range(20):
            write(root / name / f"{number:02d}.png", gray())
    cut = root / "cats/07.png"
    cut.write_bytes(cut.read_bytes()[:400])
    (root / "cats/08.png").write_bytes(b"")
    write(root / "dogs/11.png", RNG.integers(0, 65535, SHAPE).astype("u2"))
    write(root / "dogs/12.png", np.clip(RNG.normal(100, 20, (31, 17)), 0, 255).astype("u1"))
    write(root / "cats/13.png", np.full(SHAPE, 100, "u1"))
    write(root / "dogs/14.png", np.full(SHAPE, 3, "u1"))
    np.save(root / "dogs/values.npy", RNG.normal(size=50))
    (root / "notes.txt").write_text("hello")
    (root / "README").write_text("hello")
    (root / "cats/00.png.yaml").write_text("title: x\n")
    return root


def seen(root: Path, **options: Any) -> Survey:
    return survey_of(str(root), {}, **options)


def flagged(found: Survey) -> dict[str, set[str]]:
    return {word: {one.path for one in some} for word, some in by_word(found.flags).items()}


def files_in(root: Path, *suffixes: str) -> list[str]:
    return [
        os.path.relpath(os.path.join(above, name), root)
        for above, _, names in os.walk(root)
        for name in names
        if name.endswith(suffixes)
    ]


# Counts -------------------------------------------------------------------------------------------


def test_files_are_counted_by_kind_and_folder(odd: Path) -> None:
    found = seen(odd)
    there = files_in(odd, ".png", ".npy")
    kinds: Counter[tuple[Any, ...]] = Counter()
    for path in there:
        if path.endswith(".npy"):
            kinds["npy", "float64", (50,)] += 1
        elif path not in ODD["empty file"] | ODD["cannot be read"]:
            with Image.open(odd / path) as image:
                values = "uint16" if image.mode.startswith("I") else "uint8"
                kinds["png", values, image.size[::-1]] += 1
    assert found.files == len(there)
    assert found.stored == sum(os.path.getsize(odd / path) for path in there)
    assert {(one.format, one.type, one.shape): one.files for one in found.kinds} == kinds
    assert found.listing.groups == Counter(path.split("/")[0] for path in there)
    assert found.listing.others == {".txt": 1, "": 1, "sidecars": 1}
    assert found.opened == len(there)


def test_what_differs_is_named(odd: Path) -> None:
    found = flagged(seen(odd))
    assert {word: found[word] for word in ODD} == ODD
    means = {}
    for path in files_in(odd, ".png"):
        if path not in ODD["empty file"] | ODD["cannot be read"] | ODD["another type"]:
            means[path] = float(np.asarray(Image.open(odd / path)).mean())
    middle = median(means.values())
    deviation = 1.4826 * median(abs(mean - middle) for mean in means.values())
    far = {path for path, mean in means.items() if abs(mean - middle) > 5 * deviation}
    assert found["mean far off"] == far == {"dogs/14.png"}
    assert list(found) == [word for word in WORDS if word in found]


def test_reasons_are_one_line(odd: Path) -> None:
    (flag,) = by_word(seen(odd).flags)["cannot be read"]
    with pytest.raises(raconvert.RaconvertError) as caught:
        raconvert.convert(str(odd / flag.path), str(odd / "x.npy"))
    assert flag.reason == caught.value.what
    assert "\n" not in flag.reason


def test_numbers_are_those_of_pillow(odd: Path) -> None:
    tiles = {tile.path: tile for tile in seen(odd).tiles}
    for path in ("cats/00.png", "dogs/11.png", "dogs/12.png", "cats/13.png"):
        values = np.asarray(Image.open(odd / path))
        tile = tiles[path]
        assert (tile.least, tile.most, tile.seen) == (values.min(), values.max(), values.size)
        assert tile.mean == pytest.approx(values.mean())
        assert np.array_equal(tile.values, values)  # as it is smaller than a thumbnail


def test_outliers_are_those_of_the_formula() -> None:
    for count in (8, 30, 501):
        values = np.concatenate([RNG.normal(5, 2, count), [40, -90]])
        scale = np.median(np.abs(values - np.median(values))) * 1.4826
        far = np.flatnonzero(np.abs(values - np.median(values)) > 5 * scale).tolist()
        assert outliers(values.tolist()) == far
        assert {count, count + 1} <= set(far)
    assert outliers([1.0] * 6 + [100.0]) == []  # too few to say what is usual
    assert outliers([1.0] * 9 + [1.04], least=0.01) == []
    assert outliers([1.0] * 9 + [1.06], least=0.01) == [9]


def test_a_usual_folder_has_no_flags(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"{number}.png", gray(100))
    assert seen(tmp_path).flags == []


def test_a_page_says_above_its_pictures_that_nothing_differs(
    tmp_path: Path, odd: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "usual").mkdir()
    for number in range(30):
        write(tmp_path / "usual" / f"{number}.png", gray(100))
    for place, at_once in ((tmp_path / "usual", True), (odd, False)):
        assert main(["info", str(place), "--html", "-o", "-"]) == 0
        above = capfdbinary.readouterr().out.decode().partition("<img")[0]
        assert ("Nothing differs." in above) is at_once
        assert ("flagged" in above) is not at_once


def test_images_of_many_shapes_are_not_all_odd(tmp_path: Path) -> None:
    for number in range(30):
        values = RNG.integers(0, 255, (20 + number, 40 - number // 2), "u1")
        write(tmp_path / f"{number}.png", values)
    write(tmp_path / "large.png", RNG.integers(0, 255, (400, 500), "u1"))
    assert flagged(seen(tmp_path))["another shape"] == {"large.png"}


# Sample -------------------------------------------------------------------------------------------


def test_one_file_of_each_bin_is_opened_and_one_of_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (tmp_path / "many").mkdir(exist_ok=True)
        np.save(tmp_path / f"many/{number:03d}.npy", np.arange(3) + number)
    for number in range(12):
        (tmp_path / f"z{number}").mkdir()
        np.save(tmp_path / f"z{number}/x.npy", np.arange(4))
    monkeypatch.setattr(survey, "MOST_OPENED", 40)
    monkeypatch.setattr(survey, "MOST_READ", 20)
    listing = folder.listing_of(str(tmp_path))
    chosen = survey._chosen(listing.files, 40)
    numbers = [listing.files.index(one) for one in chosen]
    edges = np.arange(41) * 312 // 40
    assert {*np.searchsorted(edges, numbers, "right").tolist()} == {*range(1, 41)}
    assert len({number % 8 for number in numbers}) > 4  # not at even distances
    assert {one.path.split("/")[0] for one in chosen} == {"many", *(f"z{n}" for n in range(12))}
    found = seen(tmp_path)
    assert found.opened == len(chosen) < 60
    assert found.files == 312
    text = "".join(page_of(found))
    assert f"eaders of {len(chosen)} of 312 files were read" in text


def test_pairs_of_files_are_one(tmp_path: Path) -> None:
    for number in range(5):
        image = nibabel.Nifti1Pair(np.arange(24.0).reshape(2, 3, 4) + number, np.eye(4))
        nibabel.save(image, tmp_path / f"{number}.img")
    found = seen(tmp_path)
    assert len(files_in(tmp_path, ".img", ".hdr")) == 10
    assert found.files == 5
    assert found.listing.others == {folder.PARTNERS: 5}


def test_files_are_known_by_content_without_a_suffix(tmp_path: Path) -> None:
    for number in range(4):
        np.save(tmp_path / "x.npy", np.arange(9))
        os.rename(tmp_path / "x.npy", tmp_path / f"scan{number}")
    (tmp_path / "a.txt").write_text("x")
    found = seen(tmp_path)
    assert found.formats == {"npy": 4}
    assert found.listing.others == {".txt": 1}


def test_folders_that_are_one_source_are_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = np.arange(5), np.eye(30)
    raconvert.convert(str(tmp_path / "x.h5"), str(tmp_path / "y.zarr"))
    found = seen(tmp_path)
    assert found.formats == {"hdf5": 1, "zarr": 1}
    assert {(kind.shape, kind.arrays) for kind in found.kinds} == {((30, 30), 2)}


def test_nothing_odd_is_opened_and_links_end(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(5))
    os.mkfifo(tmp_path / "pipe.npy")  # which opening would wait for
    os.symlink(tmp_path, tmp_path / "again")
    os.symlink("nowhere.npy", tmp_path / "gone.npy")
    found = seen(tmp_path)
    assert found.files == 2
    assert flagged(found)["cannot be read"] == {"gone.npy"}
    assert found.listing.others == {folder.SPECIAL: 1}
    with pytest.raises(ReadFailed):
        seen(tmp_path / "x.npy")


def test_what_is_meant_can_be_chosen(odd: Path) -> None:
    assert seen(odd, include=["*.npy"]).formats == {"npy": 1}
    assert seen(odd, exclude=["0*"]).files == len(
        [one for one in files_in(odd, ".png", ".npy") if not one.split("/")[1].startswith("0")]
    )


# The page -----------------------------------------------------------------------------------------


def pictures_of(text: str) -> list[np.ndarray]:
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        for data in re.findall(r'src="data:image/png;base64,([^"]*)"', text)
    ]


def test_a_page_has_pictures_names_and_counts(
    odd: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["info", str(odd), "--html", "-o", "-"]) == 0
    text = capfdbinary.readouterr().out.decode()
    tags = check(text)
    for words in ("41 files", "2 folders", "PNG image uint8 (24, 30)", "dogs/12.png", "1 .txt"):
        assert words in tags.words, words
    for name in set().union(*ODD.values()):
        assert name in tags.words
    assert len(pictures_of(text)) >= 39
    shown = {one.shape[:2] for one in pictures_of(text)}
    assert shown == {SHAPE, (31, 17)}


def test_pictures_of_one_type_have_the_same_limits(tmp_path: Path) -> None:
    for number, value in enumerate((0, 60, 120, 255)):
        write(tmp_path / f"{number}.png", np.full(SHAPE, value, "u1"))
    first = pictures_of("".join(page_of(seen(tmp_path))))[:4]
    with Image.open(tmp_path / "0.png") as image:
        assert image.size == SHAPE[::-1]
    images = re.findall(r'base64,([^"]*)"', "".join(page_of(seen(tmp_path))))[:4]
    lights = [
        int(np.asarray(Image.open(io.BytesIO(base64.b64decode(one))).convert("L")).mean())
        for one in images
    ]
    assert len(first) == 4
    assert lights == pytest.approx([0, 60, 120, 255], abs=1)


def test_names_are_not_obeyed(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "")
    write(tmp_path / name / f"{name}.png", gray())
    (tmp_path / f"x.{name}").write_text("x")
    (tmp_path / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00")
    text = "".join(page_of(seen(tmp_path)))
    tags = check(text)
    assert not [tag for tag, _ in tags.tags if tag == "script"]
    assert [one["src"][:22] for tag, one in tags.tags if tag == "img"] == [
        "data:image/png;base64,"
    ] * text.count("<img")
    assert name in tags.words


def test_a_page_replaces_no_file_of_the_folder(odd: Path) -> None:
    target = odd / "cats/00.png"
    before = target.read_bytes()
    assert main(["info", str(odd), "--html", "-o", str(target)]) == 5
    assert main(["info", str(odd), "--html", "-o", str(target), "--overwrite"]) == 5
    assert target.read_bytes() == before
    assert main(["info", str(odd), "--html", "--full", "-o", str(odd / "x.html")]) == 2
    assert not (odd / "x.html").exists()
    assert main(["info", str(odd), "--html", "-o", str(odd / "x.html")]) == 0
    assert main(["info", str(odd), "--html", "-o", str(odd / "x.html")]) == 5


# peek ---------------------------------------------------------------------------------------------


def test_peek_tells_people_and_programs(odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peek", str(odd)]) == 0
    text = capsys.readouterr().out
    for name in set().union(*ODD.values()):
        assert name in text
    assert main(["peek", str(odd), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["files"] == 41
    assert facts["folders"] == {"cats": 20, "dogs": 21}
    assert {one["path"] for one in facts["flags"] if one["what"] == "blank"} == ODD["blank"]
    assert main(["peek", "-v", "-r", "--graphics", "none", str(odd / "dogs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if ".png   PNG image" in line]) == 20  # one by one


def test_a_folder_without_arrays_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert main(["peek", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "no file of a format that is read" in text
    assert "1 .txt" in text
    words = check("".join(page_of(seen(tmp_path)))).words
    assert "No file of a format that is read" in words
    assert "What differs" not in words


# Bounds -------------------------------------------------------------------------------------------

COUNTED = """
import re, sys
from raconvert.cli import main
opened = set()
sys.addaudithook(lambda event, args: opened.add(args[0])
                 if event == "open" and str(args[0]).endswith(".png") else None)
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read()).group(1)) << 10
print(code, len(opened), peak, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60,000 images: hard links, of each of 100 images 600."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(100):
        write(folder / f"{number}.png", RNG.integers(0, 255, (28, 28), "u1"))
    root = folder / "images"
    for number in range(60_000):
        if number % 6000 == 0:
            (root / str(number // 6000)).mkdir(parents=True)
        os.link(folder / f"{number % 100}.png", f"{root}/{number // 6000}/{number}.png")
    return root


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("verb", ["peek", "info"])
def test_sixty_thousand_images_are_bounded(many: Path, tmp_path: Path, verb: str) -> None:
    page = tmp_path / "x.html"
    words = [verb, str(many), *(["--html", "-o", str(page)] if verb == "info" else [])]
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words], capture_output=True, text=True, check=True
    )
    code, opened, peak = map(int, done.stderr.splitlines()[-1].split())
    assert code == 0
    assert 1000 < opened <= survey.MOST_OPENED
    assert peak < 150 << 20
    if verb == "info":
        assert page.stat().st_size < 1_000_000
        assert "60,000 files" in page.read_text()
    else:
        assert "60,000 files" in done.stdout
        assert len(done.stdout.splitlines()) < 60


def test_large_images_are_read_in_smaller_numbers(tmp_path: Path) -> None:
    write(tmp_path / "x0.png", np.zeros((3000, 4000, 3), "u1"))
    for number in range(1, 60):
        os.link(tmp_path / "x0.png", tmp_path / f"x{number}.png")
    found = seen(tmp_path)
    assert found.opened == 60
    assert found.read == survey._FEWEST_READ
