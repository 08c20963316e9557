"""The pages as programs: which files a page shows, and which commands, in their order.

A block marked `console` shows commands after ``$ `` and what they print. A block marked with a
language and a file name, such as `python make_scan.py`, is a file that the commands below it use.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# The client of SciDB needs an older numpy than we do: a Python of its own.
SCIDB_PYTHON = os.environ.get("RACONVERT_SCIDBPY") or str(ROOT / ".scidbpy" / "bin" / "python")

_BLOCK = re.compile(r"^```(\w+)(?: ([\w.-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """A file to write, or a command to run: the other one is empty."""

    file: str
    command: str
    text: str  # of the file, or what the command prints


def steps(page: str) -> list[Step]:
    """Return the files and the commands of a page, in the order in which they stand there."""
    found = []
    for language, file, text in _BLOCK.findall(page):
        if file:
            found.append(Step(file, "", text))
        elif language == "console":
            parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
            assert parts[0] == "", "a console block begins with a command"
            found += [Step("", *pair) for pair in zip(parts[1::2], parts[2::2], strict=True)]
    return found


def modules(page: str, stem: str) -> dict[str, str]:
    """Return the Python of a page by the names of its files, each line at its line of the page.

    Blocks without a name are one program. A file for the Python of another client is left out.
    """
    found: dict[str, list[str]] = {}
    for block in _BLOCK.finditer(page):
        language, file, text = block.groups()
        if language == "python" and f"scidb-python {file}" not in page:
            lines = found.setdefault(f"{stem}_{file}" if file else f"{stem}.py", [])
            lines += [""] * (page.count("\n", 0, block.start(3)) - len(lines))
            lines += text.splitlines()
    return {name: "\n".join([*lines, ""]) for name, lines in found.items()}


def programs(folder: Path) -> dict[str, str]:
    """Write the programs that pages call, and return an environment in which they are found.

    `raconvert` there is this checkout, run by the interpreter that runs this.
    """
    home = folder / ".bin"
    home.mkdir()
    for name, command in (
        ("raconvert", f'"{sys.executable}" -m raconvert'),
        ("python", f'"{sys.executable}"'),
        ("scidb-python", f'"{SCIDB_PYTHON}"'),
    ):
        script = home / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return {
        "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
    }
