"""A working directory that somebody else has made: no command imports or runs what lies there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

OURS = ("raconvert", "numpy", "h5py", "PIL", "tifffile", "lz4", "yaml", "dask", "distributed",
        "tornado", "cloudpickle", "msgpack", "fsspec", "xarray", "rich", "shtab", "sitecustomize",
        "usercustomize")  # fmt: skip
STANDARD = [
    name
    for name in sys.stdlib_module_names
    if not name.startswith("_") and name not in sys.builtin_module_names
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module for every name that might be imported, which leaves its mark."""
    folder = tmp_path / "cwd"
    (folder / "tree").mkdir(parents=True)
    for number in range(3):
        np.save(folder / "tree" / f"{number}.npy", np.arange(6.0) + number)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(60), chunks=(7,), compression="gzip")
    text = f"with open({str(tmp_path / 'mark')!r}, 'a') as file:\n    file.write(__name__ + ' ')\n"
    for name in (*STANDARD, *OURS):
        (folder / f"{name}.py").write_text(text)
    for name in ("setup.cfg", "pyproject.toml", "raconvert.toml", ".raconvert", "dask.yaml"):
        (folder / name).write_text("]] no text of any format [[")
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command there, as the installed script does, whose own folder is the first to import."""
    script = folder.parent / "raconvert-script"
    script.write_text(
        "import sys\nfrom raconvert.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, script, *command], cwd=folder, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
    )  # fmt: skip
    mark = folder.parent / "mark"
    assert not mark.exists(), f"{command[0]} has imported {mark.read_text()}"
    return done


@pytest.mark.parametrize(
    "command",
    [
        "info tree/1.npy x.h5",
        "formats",
        "completion bash",
        "tree/1.npy -o x.tif --scale minmax",
        "tree/?.npy --stack -o s.ra --jobs 2",
        "tree --each --out-dir out --to hdf5",
        "migrate tree out --to ra --jobs 2 --report cert",
        "verify x.h5 --against x.h5",
    ],
)
def test_nothing_of_it_is_imported(command: str, hostile: Path) -> None:
    done = run(hostile, *command.split())

    assert done.returncode == 0, done.stderr


def test_nothing_of_it_is_imported_by_workers_of_dask(hostile: Path) -> None:
    pytest.importorskip("distributed")
    done = run(hostile, "migrate", "tree", "out", "--to", "ra", "--scheduler", "local:1")

    assert done.returncode == 0, done.stderr
    assert len(list((hostile / "out").glob("*.ra"))) == 3


def test_the_module_is_for_trusted_folders(hostile: Path) -> None:
    """What SECURITY.md says of `python -m raconvert`, with and without -P."""
    command = [sys.executable, "-m", "raconvert", "--version"]
    subprocess.run(command, cwd=hostile, capture_output=True, check=False)
    assert (hostile.parent / "mark").exists()
    (hostile.parent / "mark").unlink()
    command.insert(1, "-P")

    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert not (hostile.parent / "mark").exists()
