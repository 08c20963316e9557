"""Run the museum, or write its page.

python -m docs.museum           what the installed versions do; exit code 1 if one of them no longer
                                loses what the page says
python -m docs.museum --page    rewrite docs/museum.md; exhibits of libraries that are not installed
                                stay on it as they are
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from . import ROOMS, Exhibit, Outcome, gather, missing, run, shown, verdict, versions

PAGE = Path(__file__).resolve().parents[1] / "museum.md"
HEAD = """\
<!-- Written by `python -m docs.museum --page` from docs/museum/. Edit that instead. -->
# The museum of silent losses

Good libraries change values without an error or a warning: some against their manual, some as it
says. Each exhibit is a program that our tests paste at the prompt of Python, with the newest
versions of the libraries; those that it was seen with are named. An exhibit whose library has
changed leaves the museum. With it stand what the manual or an issue says, the safe way in the same
library where there is one, and the same task by raconvert: *exact*, *said* (one line tells what
changes), or *refused* with the reason, before anything is written. The parts of an exhibit are
pasted one below the other; the last line of a part may end in the error that is shown.

```sh
python -m docs.museum     # run all of them here
```
"""


def page(sections: dict[str, str], exhibits: list[Exhibit]) -> str:
    """The text of docs/museum.md from the sections of its exhibits by their anchors."""
    libraries = {one.library for one in exhibits}
    lines = [HEAD, f"{len(exhibits)} exhibits of {len(libraries)} libraries in three rooms:", ""]
    for room, (title, about) in ROOMS.items():
        lines += [f"**{title}.** {about}", "", "| library | loses | raconvert |", "|---|---|---|"]
        for one in exhibits:
            if one.room == room:
                answer = re.search(r"^\| raconvert \| (\w+)", sections[one.anchor], re.MULTILINE)
                said = answer[1] if answer else "?"
                lines.append(f"| {one.library} | [{one.title}](#{one.anchor}) | {said} |")
        lines.append("")
    for room, (title, about) in ROOMS.items():
        lines += [f"## {title}", "", about, ""]
        lines += [sections[one.anchor] for one in exhibits if one.room == room]
    return "\n".join(lines).rstrip() + "\n"


def section(one: Exhibit, found: Outcome) -> str:
    """An exhibit on the page: sources, program, and what came out."""
    lines = [f"({one.anchor})=", f"### {one.library}: {one.title}", ""]
    lines += [f"Seen with {versions(one)}. {sources(one)}", ""]
    lines += ["```py", one.parts["loss"], "```", ""]
    if "safe" in one.parts:
        lines += ["```py", one.parts["safe"], "```", ""]
    lines += ["```py", one.parts["ours"], "```", ""]
    lines += ["| | |", "|---|---|", f"| given | `{shown(found.given)}` |"]
    lines.append(f"| comes back | `{shown(found.back)}` |")
    if "safe" in one.parts:
        lines.append(f"| the safe way | `{shown(found.safe)}` |")
    else:
        lines.append(f"| the safe way | none in this library: {one.unsafe} |")
    return "\n".join([*lines, f"| raconvert | {verdict(found)} |", ""])


def sources(one: Exhibit) -> str:
    """The sentences in which the library says what it does, and where."""
    said = [f"`{name}` says: “{text.replace('`', '').rstrip('.')}”." for name, text in one.manual]
    said += [f"[{quoted(text)}]({url})." for url, text in one.links]
    return " ".join(said)


def quoted(text: str) -> str:
    """The text with the marks of print around what is cited."""
    return re.sub(r'"([^"]*)"', r"“\1”", text)


def sections_of(text: str) -> dict[str, str]:
    """The sections of a page by their anchors."""
    parts = re.split(r"^(?=\(([\w-]+)\)=$)", text, flags=re.MULTILINE)
    ends = [part.partition("\n## ")[0].rstrip() for part in parts[2::2]]
    return {anchor: f"{end}\n" for anchor, end in zip(parts[1::2], ends, strict=True)}


def fresh(one: Exhibit) -> str:
    """The section of an exhibit as the installed versions make it."""
    with tempfile.TemporaryDirectory() as folder:
        return section(one, run(one, Path(folder)))


def look(exhibits: list[Exhibit]) -> int:
    """Print what each exhibit shows here; return how many the page has otherwise."""
    changed, there = 0, sections_of(PAGE.read_text(encoding="utf-8"))
    for one in exhibits:
        if missing(one):
            print(f"{one.library} is not installed: {one.title}")
            continue
        made = fresh(one)
        as_said = results(made) == results(there.get(one.anchor, ""))
        changed += not as_said
        print(f"{versions(one)}: {one.title}" + ("" if as_said else "  CHANGED"))
        for name, text in results(made):
            print(f"    {name:<14}{text}")
    return changed


def results(text: str) -> list[tuple[str, str]]:
    """The rows of the table of a section."""
    return re.findall(
        r"^\| (given|comes back|the safe way|raconvert) \| (.*) \|$", text, re.MULTILINE
    )


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    exhibits = gather()
    if arguments == ["--page"]:
        kept = sections_of(PAGE.read_text(encoding="utf-8"))
        made = {one.anchor: kept[one.anchor] if missing(one) else fresh(one) for one in exhibits}
        PAGE.write_text(page(made, exhibits), encoding="utf-8")
        return 0
    return 1 if look(exhibits) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
