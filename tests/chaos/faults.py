"""Migrations by two workers in which a system call fails once in each process: disk full, or EIO."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from raconvert.declared import Record
from tests import needs

from . import trees

KINDS = {"ENOSPC": 1, "EIO": 2}  # of tests/faults/shim.c
SHIM = Path(__file__).resolve().parents[1] / "faults" / "shim.c"
# Run by every Python that finds it: the call of that number fails.
_ARM = """
import ctypes, os
shim = ctypes.CDLL(None)
if hasattr(shim, "fault_arm"):
    shim.fault_arm(ctypes.c_long(int(os.environ["FAULT_AT"])), int(os.environ["FAULT_KIND"]))
"""


class Case(Record):
    """Which call that changes files fails, and how."""

    kind: str
    at: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.at}"


def cases() -> list[Case]:
    """Faults at calls of the driver before there are workers, of the workers, and of both."""
    numbers = (48, 140, 20, 5, 40, 27, 33, 60, 1, 3, 9, 12, 15, 18, 23, 30, 36, 54, 70, 85, 100, 7,
               11, 13, 17)  # fmt: skip
    return [Case(kind, at) for at in numbers for kind in KINDS]


@cache
def _prepared() -> Path:
    """A folder with the shim, and with what arms it."""
    folder = Path(mkdtemp(prefix="raconvert-chaos-"))
    gcc = needs.program("gcc") or "gcc"
    words = [gcc, "-shared", "-fPIC", "-O2", "-o", str(folder / "shim.so"), str(SHIM), "-ldl"]
    subprocess.run(words, check=True)
    (folder / "sitecustomize.py").write_text(_ARM)
    return folder


def wrong(case: Case, folder: Path) -> str:
    """Run a migration with the fault, then one without; say what is wrong with either."""
    source, target = trees.make(folder / "source"), folder / "target"
    words = trees.command(source, target, "--jobs", "2")
    place = _prepared()
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    first = trees.run(
        words, LD_PRELOAD=str(place / "shim.so"), PYTHONPATH=path, FAULT_AT=str(case.at),
        FAULT_KIND=str(KINDS[case.kind]),
    )  # fmt: skip
    if first.returncode not in (1, 4, 5) or "bug" in first.stderr or "Traceback" in first.stderr:
        return f"ended with {first.returncode}: {first.stderr}"
    last = trees.run(words)
    if last.returncode != 1 or "1 failed" not in last.stdout:
        return f"went on and ended with {last.returncode}: {last.stdout} {last.stderr}"
    left = trees.temporaries(target)  # what cannot be removed stays
    found = trees.contents(target)
    for name in left[:1]:
        found.pop(name, None)
    return trees.difference(found, trees.clean())
