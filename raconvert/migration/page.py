"""The certificate of a migration as a page: for people, on paper too, without scripts."""

from __future__ import annotations

from collections import Counter

from raconvert.files.quoting import operand
from raconvert.migration.report import masked
from raconvert.views.pages.markup import (
    TABLE_END,
    closing,
    lines_of,
    opening,
    table_head,
    text_of,
    whole_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

PAGE = "certificate"  # kind of page
_MOST_FILES = 1000  # a page lists up to so many files of a tree
_MOST_NAMES = 50  # files listed for each reason of leaving out
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
    """Yield the page in pieces; `json_name` is the file to name for all that it leaves out."""
    source, target = facts["source"]["name"], facts["target"]["name"]
    title = f"Migration of {source} to {target}"
    yield opening(PAGE, title)
    yield f"<h1>Certificate: {whole_name(source)} to {whole_name(target)}, "
    yield f"as {text_of(facts['to'])}</h1>\n"
    yield from _result(facts)
    yield from _how_to_check(facts, json_name)
    yield from _failures(facts["files"])
    yield from _changes(facts["files"])
    yield from _left_out(facts["left_out"])
    yield from _how_it_was_made(facts)
    yield from _files(facts["files"], json_name)
    yield closing()


def _result(facts: dict[str, Any]) -> Iterator[str]:
    summary = facts["summary"]
    yield f"<p>Made {text_of(facts['made'])} from the journal of the migration, which began "
    yield f"{text_of(facts['began'])} and "
    if facts["complete"]:
        yield f"ended {text_of(facts['ended'])}.</p>\n"
    else:
        yield '<strong class="bad">has not ended</strong>.</p>\n'
    if facts["shards"] and facts["shards"]["missing"]:
        missing = ", ".join(map(str, facts["shards"]["missing"]))
        count = facts["shards"]["count"]
        yield f'<p class="bad">Of {count} shards these never ran: {missing}.</p>\n'
    yield "<h2>Result</h2>\n"
    yield table_head(">number", "of")
    for result, words in _RESULTS.items():
        if summary[result]:
            bad = result in ("refused", "failed", "unfinished")
            yield _row(summary[result], text_of(words), bad=bad)
    yield _row(summary["sources"], "sources in all")
    yield _row(summary["left_out"], "other files, left out")
    yield _row(summary["files_written"], "files written")
    yield _row(summary["bytes_read"], "bytes read")
    yield _row(summary["bytes_written"], "bytes written")
    yield TABLE_END


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
    yield f"<li>Or from {whole_name(json_name)} (names with a backslash or a line break aside):\n"
    yield "<pre>jq -r '.files[].written[]? | .sha256 + \"  \" + .path' "
    yield f"{text_of(operand(json_name))} | sha256sum --check</pre></li>\n</ol>\n"


def _failures(files: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the files that were not converted, grouped by reason."""
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
        yield f"<details open><summary>{len(names):,}: {text_of(error['what'])}</summary>\n"
        for part in ("where", "expected", "got", "notes", "remedy"):
            if part in error:
                word = "what to do" if part == "remedy" else part
                yield f"<p>{word}: {lines_of(error[part])}</p>\n"
        yield from _names(names)
        yield "</details>\n"
    if unfinished:
        yield f"<details open><summary>{len(unfinished):,}: begun, not finished</summary>\n"
        yield from _names(unfinished)
        yield "</details>\n"


def _changes(files: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of changes and remarks: each with its number of files and the first file."""
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
    yield "<h2>Changes and remarks</h2>\n"
    yield table_head("kind", ">files", "what", "the first file")
    order = ("allowed", "equivalent", "note")
    for (kind, _), (text, count, first, _) in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), -item[1][1])
    ):
        yield f'<tr><td class="outcome">{kind}</td><td class="n">{count:,}</td>'
        yield f"<td>{lines_of(text)}</td><td>{whole_name(first)}</td></tr>\n"
    yield TABLE_END


def _count(groups: dict[tuple[str, str], list[Any]], key: tuple[str, str], source: str) -> None:
    """Count a file for a remark (kind, text): once, even if several of its arrays have it.

    An entry of `groups` is [text, number of files, first file, last file].
    """
    entry = groups.setdefault((key[0], masked(key[1])), [key[1], 0, source, None])
    if entry[3] != source:
        entry[1] += 1
        entry[3] = source


def _left_out(left_out: list[dict[str, str]]) -> Iterator[str]:
    if not left_out:
        return
    yield "<h2>Left out</h2>\n"
    reasons = Counter(file["reason"] for file in left_out)
    for reason, count in reasons.most_common():
        names = [file["path"] for file in left_out if file["reason"] == reason][:_MOST_NAMES]
        yield f"<details><summary>{count:,}: {text_of(reason)}</summary>\n"
        yield from _names(names)
        if count > len(names):
            yield f"<p>and {count - len(names):,} more</p>\n"
        yield "</details>\n"


def _how_it_was_made(facts: dict[str, Any]) -> Iterator[str]:
    yield "<h2>How it was made</h2>\n"
    yield table_head("what", "with")
    for name, value in facts["options"].items():
        yield f"<tr><td>option {text_of(name)}</td>"
        yield f"<td><code>{text_of(str(value))}</code></td></tr>\n"
    for run in facts["runs"]:
        yield f"<tr><td>run of {text_of(run['began'])}</td><td>{_versions(run)}</td></tr>\n"
    yield f"<tr><td>this certificate</td><td>{_versions(facts['made_by'])}</td></tr>\n"
    yield TABLE_END


def _versions(versions: dict[str, Any]) -> str:
    parts = [f"raconvert {versions['raconvert']}", versions.get("python", "")]
    parts += [f"{name} {version}" for name, version in versions.get("libraries", {}).items()]
    return text_of(", ".join(part for part in parts if part))


def _files(files: list[dict[str, Any]], json_name: str) -> Iterator[str]:
    converted = [file for file in files if "written" in file]
    yield "<h2>Files</h2>\n"
    if len(converted) > _MOST_FILES:
        yield f"<p>All {len(converted):,} are in {whole_name(json_name)}, one in a line, with "
        yield "their digests.</p>\n"
        return
    yield table_head("source", "written, with its SHA-256", kind="halves")
    for file in converted:
        yield f"<tr><td>{whole_name(file['source'])}"
        if file["sha256"]:
            yield f"<br><code>{text_of(file['sha256'])}</code>"
        yield "</td><td>"
        yield "<br>\n".join(
            f"{whole_name(result['path'])}<br><code>{text_of(result['sha256'])}</code>"
            for result in file["written"]
        )
        yield "</td></tr>\n"
    yield TABLE_END


def _names(names: Iterable[str]) -> Iterator[str]:
    yield "<ul>\n"
    for name in names:
        yield f"<li>{whole_name(name)}</li>\n"
    yield "</ul>\n"
