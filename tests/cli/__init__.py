"""Commands and their output as text files, in `tests/cli/*.txt`.

    python -m tests.cli                     # run them, and show what is printed otherwise
    python -m tests.cli --accept [FILE ...]  # write what is printed now into the files; review it

A case begins with ``# title`` and runs in a folder of its own, which has the files of `make_files`.
Its commands follow, each after ``$ ``. The lines behind a command are what it does, all of it:

    | a line of its standard output
    ! a line of its standard error
    = 2 (its exit code, if it is not 0)
    + name of a file or folder that is there now, and was not before
    - name of one that is gone

Names are relative to the folder and sizes are those of the files, so nothing stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from raconvert.cli import VERBS, main
from tests.cases import forget_calls

FOLDER = Path(__file__).resolve().parent
FILES = sorted(FOLDER.glob("*.txt"))
MARKS = ("| ", "! ", "= ", "+ ", "- ")


class Case(NamedTuple):
    """A title, and the commands with the lines behind them."""

    title: str
    commands: list[tuple[str, list[str]]]


def make_files() -> None:
    """Write the files that every case has, into the working folder."""
    np.save("a.npy", np.arange(6, dtype="f4").reshape(2, 3))
    for name in ("f8", "i4", "c16"):
        np.save(f"big-{name}.npy", np.arange(6).reshape(2, 3).astype(f">{name}"))
    np.save("half.npy", np.array([0.5, 1.0]))
    np.savez("two.npz", x=np.arange(3), y=np.zeros((2, 2), "u1"))
    Path("text.dat").write_text("nothing of the kind\n")
    Path("cut.npy").write_bytes(Path("a.npy").read_bytes()[:-5])
    for verb in VERBS:
        Path(f"file-{verb}").mkdir()
        Path(f"file-{verb}", verb).write_bytes(Path("a.npy").read_bytes())


def cases(path: Path) -> list[Case]:
    """Return the cases of a text file."""
    found: list[Case] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# "):
            found.append(Case(line[2:], []))
        elif line.startswith("$ "):
            found[-1].commands.append((line[2:], []))
        elif line.strip():
            assert line.startswith(MARKS) or line in ("|", "!"), f"{path.name}:{number}: {line}"
            found[-1].commands[-1][1].append(line)
    return found


def ran(case: Case) -> Case:
    """Run the commands of a case in a folder of its own; return it with what they do now."""
    told = []
    environment = {"COLUMNS": "100", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, environment), \
            contextlib.chdir(folder):  # fmt: skip
        make_files()
        forget_calls()
        for command, _ in case.commands:
            told.append((command, _lines(command)))
    return Case(case.title, told)


def _lines(command: str) -> list[str]:
    """Run one command in the working folder, and return the lines that say what it does."""
    program, *words = shlex.split(command)
    assert program in ("raconvert", "cd"), command
    if program == "cd":
        os.chdir(words[0])
        return []
    before, out, err = _names(), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    after = _names()
    return [
        *(f"| {line}".rstrip() for line in out.getvalue().splitlines()),
        *(f"! {line}".rstrip() for line in err.getvalue().splitlines()),
        *([f"= {code}"] if code else []),
        *(f"+ {name}" for name in sorted(after - before)),
        *(f"- {name}" for name in sorted(before - after)),
    ]


def _names() -> set[str]:
    return set(os.listdir())


def text_of(found: list[Case]) -> str:
    """Return cases as the text of a file."""
    parts = []
    for case in found:
        lines = [f"# {case.title}"]
        for command, told in case.commands:
            lines += [f"$ {command}", *told]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
