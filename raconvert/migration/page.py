"""The certificate of a migration as a page: for people, on paper too, without scripts.

Nothing is loaded from anywhere, and nothing in it is obeyed: every text from elsewhere is escaped,
names stand in elements of their own that keep their direction of writing.
"""

from __future__ import annotations

from collections import Counter
from html import escape

from raconvert import __version__
from raconvert.errors import quoted
from raconvert.migration.failures import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

HTML_HEAD = b'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="generator" content="raconvert '  # noqa: E501
_MOST_FILES = 1000  # of a tree whose files the page lists
_MOST_NAMES = 50  # of files that were left out for one reason
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: .875rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; padding: .6rem .8rem;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.bad { color: light-dark(#a40000, #ff9a9a); font-weight: 600; }
@media print { body { font-size: 10pt; margin: 0; max-width: none; } tr { break-inside: avoid; } }
"""
_RESULTS = {
    "exact": "exact: every value and its form is kept",
    "equivalent": "equivalent: every value is kept, the form is another one",
    "allowed": "with a loss that was asked for",
    "kept": "kept: the destination was there, and was not to be replaced",
    "refused": "refused: nothing was written",
    "failed": "failed: nothing was written",
    "unfinished": "not finished",
}


def page_of(facts: dict[str, Any], json_name: str) -> Iterator[str]:
    """Yield the page, piece by piece; `json_name` is the file with all that it leaves out."""
    source, target = facts["source"]["name"], facts["target"]["name"]
    title = f"Migration of {source} to {target}"
    yield HTML_HEAD.decode()
    yield f'{escape(__version__)}">\n'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n<body>\n"
        f"<h1>Certificate: {_name(source)} to {_name(target)}, as {_text(facts['to'])}</h1>\n"
    )
    yield from _result(facts)
    yield from _how_to_check(facts, json_name)
    yield from _failures(facts["files"])
    yield from _changes(facts["files"])
    yield from _left_out(facts["left_out"])
    yield from _how_it_was_made(facts)
    yield from _files(facts["files"], json_name)
    yield "</body>\n</html>\n"


def _result(facts: dict[str, Any]) -> Iterator[str]:
    summary = facts["summary"]
    yield f"<p>Made {_text(facts['made'])} from the journal of the migration, which began "
    yield f"{_text(facts['began'])} and "
    if facts["complete"]:
        yield f"ended {_text(facts['ended'])}.</p>\n"
    else:
        yield '<strong class="bad">has not ended</strong>.</p>\n'
    if facts["shards"] and facts["shards"]["missing"]:
        missing = ", ".join(map(str, facts["shards"]["missing"]))
        count = facts["shards"]["count"]
        yield f'<p class="bad">Of {count} shards these never ran: {missing}.</p>\n'
    yield "<h2>Result</h2>\n<table>\n"
    for result, words in _RESULTS.items():
        if summary[result]:
            bad = result in ("refused", "failed", "unfinished")
            yield _row(summary[result], _text(words), bad=bad)
    yield _row(summary["sources"], "sources in all")
    yield _row(summary["left_out"], "other files, left out")
    yield _row(summary["files_written"], "files written")
    yield _row(summary["bytes_read"], "bytes read")
    yield _row(summary["bytes_written"], "bytes written")
    yield "</table>\n"


def _row(count: int, words: str, *, bad: bool = False) -> str:
    mark = ' class="bad"' if bad else ""
    return f'<tr><td class="n">{count:,}</td><td{mark}>{words}</td></tr>\n'


def _how_to_check(facts: dict[str, Any], json_name: str) -> Iterator[str]:
    yield "<h2>How to check it, in ten years</h2>\n"
    yield "<p>With <code>sha256sum</code> alone, in the folder of the destination:</p>\n<ol>\n"
    if facts["checksums"]:
        name, digest = facts["checksums"]["file"], facts["checksums"]["sha256"]
        yield f"<li>The list of checksums is the one of this certificate if\n<pre>sha256sum {name}"
        yield f"</pre>\nprints <code>{digest}</code>.</li>\n"
        yield f"<li>The files are as they were written if\n<pre>sha256sum --check {name}</pre>\n"
        yield "says <code>OK</code> for every line.</li>\n"
    yield f"<li>Or from {_name(json_name)} (names with a backslash or a line break aside):\n"
    yield "<pre>jq -r '.files[].written[]? | .sha256 + \"  \" + .path' "
    yield f"{_text(_quoted_for_a_shell(json_name))} | sha256sum --check</pre></li>\n</ol>\n"


def _quoted_for_a_shell(name: str) -> str:
    from shlex import quote

    return quote(name)


def _failures(files: list[dict[str, Any]]) -> Iterator[str]:
    """All files that were not converted, those with the same reason together."""
    groups: dict[str, tuple[dict[str, str], list[str]]] = {}
    for file in files:
        if "error" in file:
            error = file["error"]
            key = "\n".join(masked(error.get(part, "")) for part in ("kind", "what", "remedy"))
            groups.setdefault(key, (error, []))[1].append(file["source"])
    unfinished = [file["source"] for file in files if file["result"] == "unfinished"]
    if not groups and not unfinished:
        return
    yield "<h2>Not converted</h2>\n"
    for error, names in groups.values():
        yield f"<details open><summary>{len(names):,}: {_text(error['what'])}</summary>\n"
        for part in ("where", "expected", "got", "notes", "remedy"):
            if part in error:
                word = "what to do" if part == "remedy" else part
                yield f"<p>{word}: {_lines(error[part])}</p>\n"
        yield from _names(names)
        yield "</details>\n"
    if unfinished:
        yield f"<details open><summary>{len(unfinished):,}: begun, not finished</summary>\n"
        yield from _names(unfinished)
        yield "</details>\n"


def _changes(files: list[dict[str, Any]]) -> Iterator[str]:
    """What was changed or remarked, once each, with the number of files and the first one."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for file in files:
        for kind in ("allowed", "equivalent"):
            for fit in file.get(kind, ()):
                text = f"{fit['property']}: {fit['reason']}"
                if kind == "allowed" and fit.get("flag"):
                    text += f" (allowed by {fit['flag']})"
                _count(groups, (kind, text), file["source"])
        for note in file.get("notes", ()):
            _count(groups, ("note", note), file["source"])
    if not groups:
        return
    yield "<h2>Changes and remarks</h2>\n<table>\n"
    yield "<tr><th>kind</th><th>files</th><th>what</th><th>the first file</th></tr>\n"
    order = ("allowed", "equivalent", "note")
    for (kind, _), (text, count, first, _) in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), -item[1][1])
    ):
        yield f'<tr><td>{kind}</td><td class="n">{count:,}</td><td>{_lines(text)}</td>'
        yield f"<td>{_name(first)}</td></tr>\n"
    yield "</table>\n"


def _count(groups: dict[tuple[str, str], list[Any]], key: tuple[str, str], source: str) -> None:
    """Count a file for a remark, once whatever the number of its arrays."""
    entry = groups.setdefault((key[0], masked(key[1])), [key[1], 0, source, None])
    if entry[3] != source:
        entry[1] += 1
        entry[3] = source


def _left_out(left_out: list[dict[str, str]]) -> Iterator[str]:
    if not left_out:
        return
    yield "<h2>Left out</h2>\n"
    reasons = Counter(one["reason"] for one in left_out)
    for reason, count in reasons.most_common():
        names = [one["path"] for one in left_out if one["reason"] == reason][:_MOST_NAMES]
        yield f"<details><summary>{count:,}: {_text(reason)}</summary>\n"
        yield from _names(names)
        if count > len(names):
            yield f"<p>and {count - len(names):,} more</p>\n"
        yield "</details>\n"


def _how_it_was_made(facts: dict[str, Any]) -> Iterator[str]:
    yield "<h2>How it was made</h2>\n<table>\n"
    for name, value in facts["options"].items():
        yield f"<tr><td>option {_text(name)}</td><td><code>{_text(str(value))}</code></td></tr>\n"
    for run in facts["runs"]:
        yield f"<tr><td>run of {_text(run['began'])}</td><td>{_versions(run)}</td></tr>\n"
    yield f"<tr><td>this certificate</td><td>{_versions(facts['made_by'])}</td></tr>\n</table>\n"


def _versions(of: dict[str, Any]) -> str:
    parts = [f"raconvert {of['raconvert']}", of.get("python", "")]
    parts += [f"{name} {version}" for name, version in of.get("libraries", {}).items()]
    return _text(", ".join(part for part in parts if part))


def _files(files: list[dict[str, Any]], json_name: str) -> Iterator[str]:
    converted = [file for file in files if "written" in file]
    yield "<h2>Files</h2>\n"
    if len(converted) > _MOST_FILES:
        yield f"<p>All {len(converted):,} are in {_name(json_name)}, one in a line, with their "
        yield "digests.</p>\n"
        return
    yield "<table>\n<tr><th>source</th><th>written, with its SHA-256</th></tr>\n"
    for file in converted:
        yield f"<tr><td>{_name(file['source'])}"
        if file["sha256"]:
            yield f"<br><code>{_text(file['sha256'])}</code>"
        yield "</td><td>"
        yield "<br>\n".join(
            f"{_name(one['path'])}<br><code>{_text(one['sha256'])}</code>"
            for one in file["written"]
        )
        yield "</td></tr>\n"
    yield "</table>\n"


def _names(names: Iterable[str]) -> Iterator[str]:
    yield "<ul>\n"
    for name in names:
        yield f"<li>{_name(name)}</li>\n"
    yield "</ul>\n"


def _name(name: str) -> str:
    return f"<bdi><code>{_text(name)}</code></bdi>"


def _text(text: str) -> str:
    """A text as it may stand between tags: in one line, nothing odd in it."""
    return escape(quoted(text))


def _lines(text: str) -> str:
    return "<br>\n".join(_text(line) for line in text.splitlines())
