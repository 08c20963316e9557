"""A file of many arrays through bundle, MAT and archive, and back: what is said is what differs.

The file is made and checked with h5py alone, so that nothing is proven by our own reader.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raconvert.cli import main
from raconvert.inspect.diff import diff

h5py = pytest.importorskip("h5py")
pytest.importorskip("raconvert.plugins.mat")

NAMES = {
    "plain": [],
    "odd": ["größe µ", "CON", "x.", "A", "a", "L" * 200, "back\\slash", "*?", "#h"],
}


@pytest.fixture(params=sorted(NAMES))
def scan(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a file with groups, attributes, all sorts of elements, and names that are no files."""
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(size=(2, 3, 4))
    with h5py.File("scan.h5", "w", track_order=True) as file:
        file.attrs["title"] = "demo"
        file.attrs["number"] = np.int32(5)
        file.attrs["empty"] = h5py.Empty("f8")
        file.attrs["texts"] = np.array(["a", "bé"], h5py.string_dtype())
        group = file.create_group("grp", track_order=True)
        group.attrs["units"] = "mm"
        group.create_dataset("c64", data=(numbers[0] + 1j).astype("c8")).attrs["long_name"] = "both"
        inner = group.create_group("sub")
        inner.attrs["deep"] = np.uint8(3)
        inner["c128"] = numbers * 1j
        file.create_group("nothing")
        file.create_group("said").attrs["q"] = 1
        file["flag"] = np.array([[True, False, True], [False, False, True]])
        file["fixed"] = np.array([b"abc", b"de", b""], "S5")
        file.create_dataset("vlen", data=["hello", "wörld", ""], dtype=h5py.string_dtype())
        file["one"] = np.arange(7, dtype="i2")
        file["none"] = np.zeros((0, 3), "f4")
        file["scalar"] = np.float64(2.5)
        file.create_dataset("three", data=numbers).attrs["scale"] = [1, 2, 3]
        file.create_dataset("gz", data=np.arange(60, dtype=">i4"), chunks=(7,), compression="gzip")
        file["again"] = file["one"]
        file["way"] = h5py.SoftLink("/grp/c64")
        for number, name in enumerate(NAMES[request.param]):
            file[name] = np.arange(number + 2)
    return request.param


def content(path: str) -> dict[str, Any]:
    """Return everything in a file, as h5py sees it: elements, types and attributes by path."""
    found: dict[str, Any] = {}

    def add(name: str, item: Any) -> None:
        attributes = {
            key: (item.attrs.get_id(key).dtype.newbyteorder("="), repr(value))
            for key, value in item.attrs.items()
        }
        values = None
        if isinstance(item, h5py.Dataset):
            kind = h5py.check_string_dtype(item.dtype) or item.dtype.newbyteorder("=")
            values = (
                str(kind),
                item.shape,
                item[()].astype(object).tolist() if item.shape else item[()],
            )
        found[name] = attributes, values

    with h5py.File(path) as file:
        add("/", file)
        file.visititems(add)
        links = {name: file.get(name, getlink=True) for name in ("again", "way") if name in file}
        found["links"] = {
            name: getattr(link, "path", file[name].id == file["one"].id)
            for name, link in links.items()
        }
    return found


def chain(*paths: str, meta: str = "auto", capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Convert along the paths; return the lines that were said."""
    said = []
    for source, target in pairwise(paths):
        command = [source, "-o", target]
        if not target.endswith((".h5", "/")):
            command += ["--meta", meta]
        code = main(command)
        text = capsys.readouterr().err
        assert code == 0, text
        said += text.splitlines()
    return said


@pytest.mark.parametrize(
    "between", [["scan/", "scan.mat", "scan.zip"], ["scan.zip", "scan.tar", "scan/"], ["scan.npz"]]
)
def test_everything_comes_back_with_a_sidecar(
    scan: str, between: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    del scan
    chain("scan.h5", *between, "back.h5", meta="sidecar", capsys=capsys)
    assert main(["diff", "scan.h5", "back.h5"]) == 0
    assert content("back.h5") == content("scan.h5")
    assert main(["verify", "back.h5", "--against", "scan.h5"]) == 0


def told(lines: list[str]) -> set[tuple[str, str]]:
    """Return (array, property) of what was said to be equivalent, attributes and names by kind."""
    found = set()
    for line in lines:
        if match := re.match(r"equivalent: array '(.*?)': (\w+)", line):
            found.add((match[1], match[2]))
        elif line.startswith("equivalent: metadata: ") and "attributes of the file" in line:
            found.add(("", "attributes"))
        elif match := re.match(r"equivalent: metadata: .* attributes of groups: (.*)", line):
            found |= {(name, "group") for name in match[1].split(", ")}
        elif match := re.match(r"equivalent: metadata: .* further names: (.*)", line):
            found |= {(name, "alias") for name in re.findall(r"'([^']*)' of", match[1])}
        else:
            assert not line.startswith("equivalent"), line
    return found


def differing(a: str, b: str) -> set[tuple[str, str]]:
    """Return (array, property) of what differs, in the same words."""
    result = diff(a, b)
    assert result["only_in_a"] == result["only_in_b"] == []
    assert result["order"] is None
    found = set()
    for array in result["arrays"]:
        name = array["name"]
        if not array["same_type"]:
            found.add((name, "type"))
        if not array["same_shape"]:
            found.add((name, "shape"))
        assert array["data"] is None or not array["data"]["differ"]
        # How bytes are text belongs to their type.
        if any(item["field"] != "encoding" for item in array["metadata"]):
            found.add((name, "metadata"))
    if result["metadata"]:
        found.add(("", "attributes"))
    found |= {(item["field"].split(".")[1], "group") for item in result["groups"]}
    return found | {(item["field"], "alias") for item in result["aliases"]}


@pytest.mark.parametrize("scan", ["plain"], indirect=True)
@pytest.mark.parametrize("between", [["scan/", "scan.mat", "scan.zip"], ["scan.tar", "scan.mat"]])
def test_without_a_sidecar_what_was_said_is_what_differs(
    scan: str, between: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    del scan
    said = told(chain("scan.h5", *between, "back.h5", capsys=capsys))
    assert said == differing("scan.h5", "back.h5")
    assert {("one", "shape"), ("vlen", "type"), ("grp/sub", "group"), ("way", "alias")} <= said
    assert os.path.exists("scan.mat.yaml") is False
    capsys.readouterr()
    assert main(["diff", "scan.h5", "back.h5"]) == 1
    shown = capsys.readouterr().out
    assert "alias    again: only in a" in shown
    assert "one: different" in shown
