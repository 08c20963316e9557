"""The pictures of the benchmarks: what a bar stands for is printed, and all bars have one scale."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "performance"
PICTURES = sorted(FOLDER.glob("*.svg"))
RESULT = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT = 22, 538  # where the bars may lie
UNITS = {"s": 1, "ms": 1e3, "µs": 1e6}


def drawn(path: Path) -> list[tuple[float, float, float, str]]:
    """Each bar of a picture: where it begins and ends, the ratio printed, and what it took."""
    found, said = [], ""
    for element in ElementTree.parse(path).getroot():
        kind = element.get("class")
        if element.tag == f"{SVG}text" and (element.text or "").endswith("×"):
            said = (element.text or "") if kind == "ink name" else said
        elif element.tag == f"{SVG}rect" and element.get("rx") == "2" and said:
            start, width = float(element.get("x") or 0), float(element.get("width") or 0)
            took, _, ratio = said.removesuffix(" ×").rpartition(" · ")
            found.append((start, start + width, float(ratio), took))
            said = ""
    return found


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_all_bars_of_a_picture_have_one_scale(path: Path) -> None:
    bars = drawn(path)
    text = path.read_text(encoding="utf-8")
    rows = [
        median(row[f"{table['by']}_ratio"])
        for table in RESULT["tables"]
        if table["program"] == path.stem and len(table["rows"]) > 1
        for row in table["rows"].values()
    ]

    assert [ratio for *_, ratio, _ in bars] == pytest.approx(rows, rel=0.05, abs=0.0051)
    assert all(start >= LEFT - 0.1 and stop <= RIGHT + 2.1 for start, stop, *_ in bars)
    if "One scale for all bars, from 0." in text:
        longest = max(stop for _, stop, *_ in bars) - LEFT
        for (start, stop, *_), ratio in zip(bars, rows, strict=True):
            assert start == LEFT
            assert stop - start == pytest.approx(max(longest * ratio / max(rows), 2), abs=0.2)
    else:
        assert "by powers of ten" in text
        assert max(rows) > 15
        ones = {round(start) for start, _, ratio, _ in bars if ratio > 1.2}
        ones |= {round(stop) for _, stop, ratio, _ in bars if ratio < 0.8}
        assert len(ones) == 1, "a bar leads from 1"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_light_on_light_pages_and_dark_on_dark_ones(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    style = re.search(r"<style>(.*)@media \(prefers-color-scheme:dark\)\{(.*)\}</style>", text)

    assert style is not None
    assert ".card{fill:#ffffff}" in style[1]
    assert ".card{fill:#10151c}" in style[2]
    assert {*re.findall(r"\.(\w+)\{", style[1])} == {*re.findall(r"\.(\w+)\{", style[2])}
    classes = {name for names in re.findall(r'class="([^"]*)"', text) for name in names.split()}
    assert classes <= {*re.findall(r"\.(\w+)\{", style[1])}
    assert not re.search(r'(?:fill|stroke)="#', text)


def test_looks_at_files_print_seconds() -> None:
    limits = {"peek": 0.5, "page": 1.0}
    for took, ratio, way in [
        (took, ratio, "peek" if number < len(drawn(FOLDER / "looking.svg")) // 2 else "page")
        for number, (*_, ratio, took) in enumerate(drawn(FOLDER / "looking.svg"))
    ]:
        value, unit = took.split()
        assert float(value) / UNITS[unit] / limits[way] == pytest.approx(ratio, abs=0.02)


def test_what_does_not_travel_says_so() -> None:
    for name in ("png_stack", "startup"):
        text = " ".join(re.findall(r">([^<]+)</text>", (FOLDER / f"{name}.svg").read_text()))
        assert "These ratios do not travel" in text
        assert "beside a loop in C" in text
        (base,) = {
            table["base"]
            for table in RESULT["tables"]
            if table["program"] == name and "beside" in table["title"]
        }
        assert base == "loop in C"


def test_a_loop_in_c_is_measured(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("gcc")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        measure = importlib.import_module("_measure")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))

    (sample,) = [contender() for contender in measure.loop_in_c(str(tmp_path)).values()]

    assert 0.01 < sample.cpu < 30
