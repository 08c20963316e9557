"""Markup that all pages share: their beginning and end, and texts of others, escaped.

Such texts are in one line, without control characters; nothing is loaded and nothing is obeyed.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from re import sub

from raconvert import __version__
from raconvert.errors import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# The style of pages, for light and dark, and for paper -------------------------------------------


STYLE = """
:root { color-scheme: light dark;
  --ink: light-dark(#1d232b, #e4e7eb); --soft: light-dark(#5b6672, #9aa5b1);
  --line: light-dark(#d9dee4, #343c46); --ground: light-dark(#ffffff, #14181d);
  --panel: light-dark(#f5f7f9, #1b2127); --one: light-dark(#2b6cb0, #6db3f2);
  --two: light-dark(#d69e2e, #ecc94b); --three: light-dark(#9b4d96, #d291cc);
  --good: light-dark(#1b7048, #6fd3a0); --other: light-dark(#8a5a00, #f0b429);
  --bad: light-dark(#a61b1b, #ff9b9b); }
body { margin: 0; overflow-wrap: anywhere; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Noto Sans", sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.2rem 1.2rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; }
h1 code, h2 code { font: inherit; font-weight: 700; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .7rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
.lead { margin: .35rem 0 0; color: var(--soft); }
.soft { color: var(--soft); } h2 .soft { font-weight: 400; font-size: .95rem; }
summary .soft { font-weight: 400; }
svg .soft { fill: var(--soft); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; }
figure { margin: 1rem 0; }
figcaption { color: var(--soft); font-size: .875rem; margin-top: .3rem; }
.part { font-weight: 600; margin: 1.2rem 0 0; color: var(--soft); }
.strip, .pair { display: flex; flex-wrap: wrap; gap: .8rem; align-items: start; }
.strip div { font-size: .8rem; color: var(--soft); }
.four { display: grid; gap: .9rem; color: var(--soft); font-size: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); }
.sheet > div { width: 84px; font-size: .72rem; line-height: 1.3; }
td.portions { width: 40%; }
.pair figure { margin: 0; max-width: 100%; flex: 0 1 min(27rem, 100%); }
.pair, figure.lead { margin-top: 1.4rem; }
.title { display: block; } figcaption .key { margin: 0 .35em 0 .6em; }
.value { font-size: 2rem; margin: .6rem 0; }
.hung { position: relative; display: inline-block; max-width: 100%; vertical-align: top; }
.hung b { position: absolute; color: #fff; text-shadow: 0 0 3px #000, 0 0 2px #000; }
.hung .left, .hung .right { top: calc(50% - .8em); left: 4px; }
.hung .right { left: auto; right: 4px; }
.hung .top, .hung .bottom { left: calc(50% - .4em); top: 1px; }
.hung .bottom { top: auto; bottom: 1px; }
.stack:focus-visible { outline: 2px solid var(--one); outline-offset: 4px; }
.window { overflow: hidden; } .window img { max-width: none; border-radius: 0; display: block; }
.steps { display: none; } .scripted .steps { display: inline; }
.ruler { display: block; border-top: 2px solid var(--ink); white-space: nowrap; margin-top: 4px;
  font-size: .75rem; }
.bar { margin-right: .8em; } .bar code { white-space: nowrap; }
.bar i { display: inline-block; width: 9em; height: .8em; margin: 0 .4em; vertical-align: middle;
  print-color-adjust: exact; }
img { image-rendering: pixelated; border-radius: 3px; max-width: 100%; height: auto;
  display: block; }
.photo img { image-rendering: auto; }
svg { display: block; max-width: 100%; height: auto; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg.ribbon, svg.plot { width: 100%; }
svg.spark { width: 120px; height: 26px; }
svg.cube { max-width: min(100%, 44rem); }
.front, .side, .top { fill: var(--one); stroke: var(--ground); stroke-width: 1.5; }
.side { fill-opacity: .7; } .top { fill-opacity: .45; }
.line { fill: var(--one); stroke: var(--one); stroke-width: 1.2; stroke-linejoin: round; }
rect.header, .key.header { fill: var(--two); background: var(--two); }
rect.data, .key.data { fill: var(--one); background: var(--one); }
rect.coded, .key.coded { fill: var(--one); background: var(--one); opacity: .6; }
rect.between, .key.between, rect.end, .key.end { fill: var(--three); background: var(--three); }
rect.data:not(.bare), rect.coded { stroke: var(--ground); stroke-width: .5; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em;
  print-color-adjust: exact; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th { white-space: nowrap; font-weight: 600; color: var(--soft); font-size: .85rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0;
  border-bottom: 1px solid var(--line); }
td.outcome { white-space: nowrap; overflow-wrap: break-word; }
.arrays th, .arrays td { overflow-wrap: break-word; } .arrays bdi { overflow-wrap: anywhere; }
.halves td { width: 50%; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.n:first-child { width: 1%; padding-right: 1.2rem; }
.exact { color: var(--good); font-weight: 600; }
.equivalent { color: var(--other); font-weight: 600; }
.refused, .bad { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid var(--one); }
table.rows, table.counts, table.lines { width: auto; max-width: 100%; }
.scroll table { max-width: none; overflow-wrap: normal; }
.scroll td { white-space: nowrap; } .scroll td.long { white-space: normal; min-width: 16rem; }
.channels .cell { flex: 1 1 9rem; }
.rows th, .rows td, .counts th, .lines th { padding-right: 1.2rem; }
.counts th, .rows tbody th { font-weight: 400; color: inherit; }
.rows tbody th { color: var(--soft); } .rows .n:first-child { width: auto; }
table.rows, table.counts, table.lines, .scroll { margin-top: 1rem; } .scroll table { margin: 0; }
.group .group { margin-left: 1.1rem; }
td.wide { width: 130px; } .lines td.wide, .lines .spark { width: 100%; min-width: 120px; }
.share { display: block; height: .7em; background: var(--one); min-width: 1px;
  margin-top: .35em; print-color-adjust: exact; }
dl.fields { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .15rem 1rem;
  margin: 0; } dl.fields dl.fields { border-left: 2px solid var(--line); padding-left: .8rem; }
dl.fields dt { max-width: 15rem; } dl.fields table { width: auto; }
.grid .group { margin: .3rem 0 .8rem; }
ul.tiles { list-style: none; margin: .3rem 0; padding: 0; display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); align-items: start; }
.tiles li { font-size: .875rem; line-height: 1.35; padding: .3rem 0; }
.tiles li.tile { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .6rem;
  height: 100%; box-sizing: border-box; }
.tiles i { font-style: normal; color: var(--soft); display: block; font-size: .8rem; }
.tiles img { margin-bottom: .3rem; } .tiles svg.spark { width: 100%; margin-bottom: .3rem; }
.said { display: block; font-size: 1.05rem; margin-bottom: .3rem; }
.sort { margin: 0; color: var(--soft); font-size: .9rem; }
.scripted .sort { margin: .2rem 0 .6rem; }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line);
  border-radius: 4px; padding: .1rem .5rem; cursor: pointer; }
button[aria-pressed=true] { background: var(--panel); color: var(--ink);
  border-color: var(--soft); }
button:focus-visible { outline: 2px solid var(--one); outline-offset: 2px; }
dl.outcomes { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
code, pre { font: .875rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .7rem .9rem; margin: .6rem 0; white-space: pre-wrap; }
.flag { white-space: nowrap; }
summary { cursor: pointer; font-weight: 600; padding: .2rem 0; }
summary:focus-visible { outline: 2px solid var(--one); outline-offset: 2px; }
footer { max-width: 58rem; margin: 0 auto; padding: 0 1.2rem 2rem; color: var(--soft);
  font-size: .85rem; }
@media (max-width: 40rem) { main { padding: 1.2rem .8rem 2rem; } th, td { padding-right: .4rem; }
  th, td.outcome, th.n, td.n { white-space: normal; } dl.fields { grid-template-columns: 1fr; }
  dl.fields dd { margin-left: .6rem; } ul.tiles { gap: .4rem;
  grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); } }
@media print { :root { color-scheme: light; } body { font-size: 10pt; }
  main, footer { max-width: none; padding: 0; }
  details::details-content { content-visibility: visible; }
  h2, summary { break-after: avoid; } tr, figure, pre, .tile { break-inside: avoid; }
  .sort { display: none; } .scroll { overflow: visible; } }
"""


_MOST = 200  # characters shown of a value


def text_of(words: str) -> str:
    """A text as it may stand between tags, or in an attribute."""
    return escape(quoted(words))


def reason_of(words: str) -> str:
    """A reason as it may stand between tags; a flag in it stays in one line."""
    return sub(r"--[a-z][a-z-]*( [a-z]+\d*\b)?", r'<span class="flag">\g<0></span>', text_of(words))


def cut(words: str) -> str:
    """The beginning of a long text."""
    return words if len(words) <= _MOST else f"{words[:_MOST]}…"


def name_of(words: str) -> str:
    """The beginning of a name in an element of its own, which keeps its direction of writing."""
    return whole_name(cut(words))


def whole_name(words: str) -> str:
    """A name in an element of its own, however long."""
    return f"<bdi><code>{text_of(words)}</code></bdi>"


def lines_of(words: str) -> str:
    """A text of several lines, as it may stand between tags."""
    return "<br>\n".join(text_of(line) for line in words.splitlines())


def head_of(kind: str) -> str:
    """The first characters of a page, by which a page of this kind is recognised."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="raconvert {kind} '
    )


def opening(kind: str, title: str, script: str = "") -> str:
    """Return the beginning of a page: its head with the style, and the start of its body.

    `script` is the digest of the one script that may run, which `closing` writes.
    """
    may_run = f"; script-src '{script}'" if script else ""
    return (
        f'{head_of(kind)}{escape(__version__)}">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:{may_run}\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text_of(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )


def closing(script: str = "") -> str:
    """The end of a page, with a script if it has one."""
    run = f"<script>{script}</script>\n" if script else ""
    return (
        f"</main>\n<footer>Made by raconvert {text_of(__version__)}. Nothing is loaded from "
        f"elsewhere.</footer>\n{run}</body>\n</html>\n"
    )


def page(kind: str, names: Sequence[str], lead: str, body: Iterable[str]) -> Iterator[str]:
    """Yield a page without a script: names as its heading, a line below them, and its body."""
    yield opening(kind, " and ".join(names))
    yield f"<h1>{' and '.join(map(name_of, names))}</h1>\n"
    yield f'<p class="lead">{text_of(lead)}</p>\n'
    yield from body
    yield closing()


def table(rows: Iterable[str], *names: str, kind: str = "") -> Iterator[str]:
    """Yield a table of these rows; `names` and `kind` are those of `table_head`."""
    yield table_head(*names, kind=kind)
    yield from rows
    yield TABLE_END


def table_head(*names: str, kind: str = "") -> str:
    """The first row of a table and the start of its body; columns of numbers have `>` first."""
    cells = "".join(
        f'<th scope="col" class="n">{name[1:]}</th>'
        if name.startswith(">")
        else f'<th scope="col">{name}</th>'
        for name in names
    )
    mark = f' class="{kind}"' if kind else ""
    return f"<table{mark}>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n"


# Shows the elements of a page that are of use only with scripts.
SCRIPTED = 'document.documentElement.classList.add("scripted");\n'


def digest_of(script: str) -> str:
    """The digest by which a page allows its one script; empty without a script."""
    digest = b64encode(sha256(script.encode()).digest()).decode("ascii")
    return f"sha256-{digest}" if script else ""


def share_cell(share: float) -> str:
    """A cell of a table with a bar for a share of the largest, which is 1."""
    return f'<td class="portions"><span class="share" style="width:{100 * share:.3g}%"></span></td>'


TABLE_END = "</tbody>\n</table>\n"
