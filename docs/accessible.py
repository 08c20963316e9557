"""The last step of the site: what axe-core and the Nu Html Checker found in pages of the theme.

An extension of Sphinx, which edits the finished HTML: names of landmarks, levels of headings, keys
for what scrolls, lists that are none, heads of tables without a word. tests/test_site.py has both
judges look at each kind of page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EMPTY = r'<th class="head(?:[^"]*)">(?:<p></p>)?</th>'
REPAIRS = (
    (r'<p class="caption" role="heading">', r'<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', r'<aside class="sidebar-drawer" aria-label="All pages">'),
    (r'<aside class="(toc-drawer[^"]*)">', r'<aside class="\1" aria-label="On this page">'),
    (r'(<input [^>]*class="toctree-checkbox"[^>]*) role="switch"', r"\1"),
    (r'(<div class="highlight">)<pre>', r'\1<pre tabindex="0">'),
    (rf'<thead>\s*<tr class="row-odd">(?:{EMPTY}\s*)+</tr>\s*</thead>\s*', ""),
    (EMPTY, '<td class="head"></td>'),
    (r'(?<!</p>\n)(<div id="search-results"></div>)', r"<h1>Search</h1>\n{note}\n\1"),
)  # fmt: skip
# Arguments below each other, which Sphinx writes as a list of definitions without terms.
ARGUMENTS = re.compile(r"<dl>\s*((?:<dd>.*?</dd>\s*)+)</dl>", re.DOTALL)
NOTE = (
    '<p>A format that raconvert does not read has <a href="reference/not-read.html">what to do '
    'instead</a>; those that it reads are <a href="formats.html">listed</a>. One that is on '
    "neither page is not known to it.</p>"
)


def repaired(text: str) -> str:
    """The page with all repairs."""
    for found, put in REPAIRS:
        text = re.sub(found, put.replace("{note}", NOTE), text)
    return ARGUMENTS.sub(
        lambda match: (
            match[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
        ),
        text,
    )


def repair_all(app: Sphinx, error: Exception | None) -> None:
    """Repair every page of HTML that was written."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        made = repaired(text)
        if made != text:
            path.write_text(made, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_css_file("site.css")
    app.connect("build-finished", repair_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
