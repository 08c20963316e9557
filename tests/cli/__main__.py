"""Run the commands of the text files, or accept what they print; see `tests/cli/__init__.py`."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from . import FILES, cases, ran, text_of


def main(words: list[str]) -> int:
    """Show what differs, or write it; return 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.cli")
    parser.add_argument("files", nargs="*", type=Path, help="default: all of tests/cli")
    parser.add_argument("--accept", action="store_true", help="rewrite the files")
    given = parser.parse_args(words)
    differ = 0
    for path in given.files or FILES:
        old, new = path.read_text(encoding="utf-8"), text_of([ran(case) for case in cases(path)])
        if old == new:
            continue
        differ += 1
        lines = (old.splitlines(keepends=True), new.splitlines(keepends=True))
        sys.stdout.writelines(difflib.unified_diff(*lines, str(path), "now"))
        if given.accept:
            path.write_text(new, encoding="utf-8")
    return int(differ > 0 and not given.accept)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
