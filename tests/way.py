"""The way of the data: functions of ours that a command calls, in how many modules, and jumps.

    python -m tests.way [--calls]

Each command runs once so that everything is imported, then again while `sys.setprofile` counts: the
calls of functions in raconvert and its plugins, the modules that they are in, and how often a call
is in another module than the one before it. With `--calls` the functions called most are listed.
Work that a copy of the process would do, to outlive a crash of a library, is done in this one, so
that it counts. The numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

from raconvert.cli import main as command
from raconvert.conversion import isolated
from raconvert.conversion.converter import forget

ROOT = Path(__file__).resolve().parent.parent
OURS = tuple(f"{ROOT / folder}{os.sep}" for folder in ("raconvert", "plugins"))
WAYS = {
    "a.npy -> b.ra": ["a.npy", "-o", "b.ra", "--overwrite"],
    "PNG stack -> m.ra": ["i*.png", "-o", "m.ra", "--overwrite"],
    "x.h5 -> x.mat": ["x.h5", "-o", "x.mat", "--overwrite"],
    "peek x.h5": ["peek", "x.h5"],
    "info x.h5": ["info", "x.h5"],
    "info --html x.h5": ["info", "--html", "x.h5", "-o", "x.html"],
}


def make() -> None:
    """Write the sources into the working folder."""
    np.save("a.npy", np.arange(12.0).reshape(3, 4))
    for number in range(5):
        Image.fromarray(np.full((28, 28), number, np.uint8)).save(f"i{number}.png")
    with h5py.File("x.h5", "w") as file:
        file["a"] = np.arange(12.0).reshape(3, 4)
        file["g/b"] = np.arange(5, dtype="i4")


def followed(words: list[str]) -> list[tuple[str, str]]:
    """Module and name of each function of ours that a command calls, in order."""
    found: list[tuple[str, str]] = []

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(OURS):
            found.append((os.path.relpath(code.co_filename, ROOT), code.co_name))

    sys.setprofile(profile)
    try:
        quiet(words)
    finally:
        sys.setprofile(None)
    return found


def quiet(words: list[str]) -> None:
    """Run a command without its output; stop if it fails."""
    for name in ("x.html",):
        if os.path.exists(name):
            os.unlink(name)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = command(words)
    if code:
        raise SystemExit(f"{' '.join(words)}: exit code {code}")


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", action="store_true", help="list the functions called most")
    options = parser.parse_args()
    print(f"{'':20} {'calls':>6} {'modules':>8} {'jumps':>6}")  # noqa: T201
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        make()
        vars(isolated)["can_fork"] = bool
        for name, words in WAYS.items():
            quiet(words)
            forget()
            found = followed(words)
            modules = [module for module, _ in found]
            jumps = sum(a != b for a, b in pairwise(modules))
            print(f"{name:20} {len(found):6} {len(set(modules)):8} {jumps:6}")  # noqa: T201
            for (module, function), count in Counter(found).most_common(25 * options.calls):
                print(f"    {count:5}  {module}: {function}")  # noqa: T201


if __name__ == "__main__":
    main()
