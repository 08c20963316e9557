"""What all engines have in common: a tree of many formats, runs of the command, what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np

import raconvert

BAD = "a/bad.npy"  # the one source that is damaged
COUNT = 60  # arrays


def make(root: Path, count: int = COUNT) -> Path:
    """A tree of NPY, NRRD and PNG files in folders, one of them damaged; the same each time."""
    rng = np.random.default_rng(11)
    for number in range(count):
        folder = root / ("a", "b", "b/c")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        values = rng.integers(0, 255, (3 + number % 5, 4), "u1")
        suffix = (".npy", ".nrrd", ".npy", ".png")[number % 4]
        if suffix == ".npy":
            np.save(folder / f"x{number}.npy", values.astype(("u1", ">f8", "i4")[number % 3]))
        else:
            raconvert.write(folder / f"x{number}{suffix}", values)
    (root / BAD).write_bytes(b"hello")
    return root


def command(source: Path, target: Path, *words: str) -> list[str]:
    """The words of a migration to RA in small batches."""
    return [sys.executable, "-m", "raconvert", "migrate", str(source), str(target), "--to", "ra",
            "--batch-seconds", "0.004", *words]  # fmt: skip


def run(
    words: list[str], seconds: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        words, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        timeout=seconds,
    )  # fmt: skip


def contents(root: Path) -> dict[str, bytes]:
    """The files of a tree by name, without the journal; temporary ones are among them."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".raconvert-migration")
    }


def temporaries(root: Path) -> list[str]:
    """The names of temporary files and folders that a run has left."""
    return [str(path.relative_to(root)) for path in root.rglob(".raconvert-*.tmp")]


def eventually(check: object, seconds: float = 20) -> bool:
    """True as soon as a condition holds, False if it never does."""
    until = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def is_gone(group: int) -> bool:
    """True if no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def killed(process: subprocess.CompletedProcess[str]) -> bool:
    """True if a command ended by SIGKILL."""
    return process.returncode == -signal.SIGKILL


@cache
def clean(*words: str, count: int = COUNT) -> dict[str, bytes]:
    """What a run over such a tree leaves that nobody disturbs, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = make(Path(folder) / "source", count), Path(folder) / "target"
        found = run(command(source, target, "--jobs", "1", *words))
        if found.returncode != 1:
            raise RuntimeError(f"a clean run ends with {found.returncode}: {found.stderr}")
        return contents(target)


def difference(found: dict[str, bytes], wanted: dict[str, bytes]) -> str:
    """Where two trees differ, in words; empty if they do not."""
    if found == wanted:
        return ""
    missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    other = sorted(name for name in wanted.keys() & found.keys() if wanted[name] != found[name])
    return f"missing {missing}, too many {more}, other bytes {other}"
