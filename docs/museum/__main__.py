"""Run the museum, or write its page.

python -m docs.museum           what the installed versions do; exit code 1 if one of them no longer
                                loses what the page says
python -m docs.museum --page    rewrite docs/museum.md
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from . import Exhibit, gather, shown, verdict

PAGE = Path(__file__).resolve().parents[1] / "museum.md"
HEAD = """\
<!-- Written by `python -m docs.museum --page` from docs/museum/. Edit that instead. -->
# The museum of silent losses

Good libraries, used as their manuals say, change values without an error or a warning. Each exhibit
is a program that runs in our tests against the newest versions; an exhibit whose library has
changed leaves the museum. Below each is what raconvert does with the same values: *exact*, *said*
(one line tells what changes), or *refused* with the reason, before anything is written.

```sh
python -m docs.museum     # run all of them here
```
"""


def page(exhibits: list[Exhibit]) -> str:
    """The text of docs/museum.md."""
    count = Counter(exhibit.library for exhibit in exhibits)
    lines = [HEAD, f"{len(exhibits)} exhibits of {len(count)} libraries:", ""]
    lines += ["| library | loses | raconvert |", "|---|---|---|"]
    order = sorted(exhibits, key=lambda exhibit: exhibit.library.lower())
    for one in order:
        answer = one.ours.split(":")[0]
        lines.append(f"| {one.library} | [{one.title}](#{one.anchor}) | {answer} |")
    library = ""
    for one in order:
        if one.library != library:
            library = one.library
            lines += ["", f"## {library}"]
        lines += ["", f"({one.anchor})=", f"### {one.title}", ""]
        lines += ["```py", one.program, "```", ""]
        lines += ["| | |", "|---|---|", f"| given | `{one.before}` |"]
        lines += [f"| comes back | `{one.after}` |", f"| raconvert | {one.ours} |"]
    return "\n".join(lines) + "\n"


def run(exhibits: list[Exhibit]) -> int:
    """Print what each exhibit shows here; return the number of those that do not lose any more."""
    changed = 0
    for one in exhibits:
        with tempfile.TemporaryDirectory() as folder:
            before, after, ours = one.run(Path(folder))
        found = (shown(before), shown(after), verdict(before, ours))
        as_said = found == (one.before, one.after, one.ours)
        changed += not as_said
        print(
            f"{one.library} {version(one.library)}: {one.title}" + ("" if as_said else "  CHANGED")
        )
        for name, text in zip(("given", "comes back", "raconvert"), found, strict=True):
            print(f"    {name:<12}{text}")
    return changed


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    exhibits = gather()
    if arguments == ["--page"]:
        PAGE.write_text(page(exhibits), encoding="utf-8")
        return 0
    return 1 if run(exhibits) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
