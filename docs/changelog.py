"""Collect the fragments of docs/changes/ into CHANGELOG.md.

python -m docs.changelog VERSION   under a heading for this version; the fragments are removed
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = "<!-- releases -->\n"
KINDS = ("added", "changed", "fixed", "removed")
NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")


def fragments(root: Path = ROOT) -> list[Path]:
    """The fragments, by name; `ValueError` for a file that is not one."""
    found = sorted(p for p in (root / "docs" / "changes").iterdir() if p.name != "README.md")
    for path in found:
        if not NAME.fullmatch(path.name):
            raise ValueError(f"{path}: the name is not WORDS.KIND.md, with KIND of {KINDS}")
    return found


def release(version: str, day: str, root: Path = ROOT) -> str:
    """The section of a version: one list for each kind that has fragments."""
    parts = [f"## {version} ({day})"]
    for kind in KINDS:
        own = [path for path in fragments(root) if path.name.endswith(f".{kind}.md")]
        texts = [" ".join(path.read_text(encoding="utf-8").split()) for path in own]
        if texts:
            parts += [f"### {kind.capitalize()}", "\n".join(f"- {text}" for text in texts)]
    return "\n\n".join(parts) + "\n"


def collect(version: str, root: Path = ROOT) -> None:
    """Put the section of a version above those of the others; remove the fragments."""
    changelog = root / "CHANGELOG.md"
    head, older = changelog.read_text(encoding="utf-8").split(MARK)
    section = release(version, f"{datetime.now(UTC):%Y-%m-%d}", root)
    changelog.write_text(f"{head}{MARK}\n{section}{older}", encoding="utf-8")
    for path in fragments(root):
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    collect(sys.argv[1])
