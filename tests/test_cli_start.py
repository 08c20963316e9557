"""What the command line imports: the light paths load neither numpy nor what they do not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raconvert.conversion.pipeline import convert

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"numpy", "PIL", "lz4", "ml_dtypes", "shtab", "rich"}
# Modules of the standard library that cost a start noticeably, and that nothing here needs.
SLOW = {
    "dataclasses", "inspect", "json", "locale", "logging", "pathlib", "shutil", "signal",
    "string", "subprocess", "tempfile", "typing", "yaml",
}  # fmt: skip
SCAN = {"importlib.metadata"}
PLUGINS = {"raconvert.plugins.npy", "raconvert.plugins.npz", "raconvert.plugins.png"}
_CODE = """
import sys
before = set(sys.modules)
from raconvert.cli import main
code = main(sys.argv[1:])
print(code, *sorted(set(sys.modules) - before), file=sys.stderr)
"""


def imported(folder: Path, *words: str) -> set[str]:
    """Return what a command imports beyond the bare interpreter; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.arange(6, dtype="f4").reshape(2, 3))
    np.save(tmp_path / "swapped.npy", np.arange(6, dtype="f4").reshape(2, 3))
    convert(tmp_path / "a.npy", tmp_path / "x.ra")
    return tmp_path


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["-h"], ["help"], ["version"]])
def test_help_and_version_import_no_parser(words: list[str], folder: Path) -> None:
    modules = imported(folder, *words)

    assert not modules & (HEAVY | SLOW | SCAN | PLUGINS | {"argparse", "re"})


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (["info", "x.ra"], set()),
        (["info", "-s", "x.ra"], set()),
        (["digest", "x.ra"], set()),
        (["digest", "a.npy"], {"raconvert.plugins.npy"}),
        (["info", "a.npy"], {"raconvert.plugins.npy"}),
        (["a.npy", "-o", "b.ra"], {"raconvert.plugins.npy"}),
        (["convert", "a.npy", "-o", "b.ra"], {"raconvert.plugins.npy"}),
        (["x.ra", "-o", "b.npy"], {"raconvert.plugins.npy"}),
        (["x.ra", "-o", "b.ra"], set()),
        (["x.ra", "-n", "-o", "b.ra"], set()),
        (["convert", "--help"], set()),
        (["help", "convert"], set()),
        (["version", "--debug"], set()),
    ],
    ids=" ".join,
)
def test_light_commands_import_only_what_they_use(
    words: list[str], used: set[str], folder: Path
) -> None:
    modules = imported(folder, *words)

    assert not modules & (HEAVY | SLOW | SCAN)
    assert modules & PLUGINS == used


@pytest.mark.parametrize(
    ("words", "most"),
    [(["info", "x.ra"], 37), (["a.npy", "-o", "b.ra"], 46), (["x.ra", "-o", "b.npy"], 46)],
    ids=["info", "npy to ra", "ra to npy"],
)
def test_few_modules_of_ours_are_imported(words: list[str], most: int, folder: Path) -> None:
    """Each takes about 80 µs; 13 ms are all that a bare interpreter takes."""
    ours = {name for name in imported(folder, *words) if name.partition(".")[0] == "raconvert"}

    assert len(ours) <= most, sorted(ours)


@pytest.mark.parametrize("words", [["x.ra", "-o", "b.nrrd"], ["x.ra", "-o", "b.nhdr"]])
def test_a_raw_nrrd_is_written_without_numpy(words: list[str], folder: Path) -> None:
    assert not imported(folder, *words) & (HEAVY | SCAN)


def test_formats_imports_no_plugin(folder: Path) -> None:
    modules = imported(folder, "formats")

    assert not modules & (HEAVY | PLUGINS)
