"""The scripts of the recipes for clusters, run as far as that goes without one.

`srun` is a script that starts as many copies of a command as the job has tasks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
SRUN = """#!/bin/bash
trap 'kill $(jobs -p)' TERM
for task in $(seq "$SLURM_NTASKS"); do "$@" & done
wait
"""


def scripts(page: str) -> list[str]:
    text = (ROOT / "docs" / "recipes" / page).read_text(encoding="utf-8")
    return re.findall(r"^```bash\n(#!/bin/bash\n.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a tree, and the programs that scripts call."""
    (tmp_path / "lab/a").mkdir(parents=True)
    for number in range(20):
        np.save(tmp_path / "lab/a" / f"{number}.npy", np.arange(number))
    (tmp_path / ".bin").mkdir()
    python = f'#!/bin/sh\nexec "{sys.executable}" -m {{}} "$@"\n'
    for name, text in (("srun", SRUN), *((n, python.format(n)) for n in ("raconvert", "dask"))):
        (tmp_path / ".bin" / name).write_text(text)
        (tmp_path / ".bin" / name).chmod(0o755)
    raconvert.migrate(tmp_path / "lab", tmp_path / "whole", to="ra", jobs=1)
    return tmp_path


@pytest.fixture
def run(place: Path, tool: Callable[..., str]) -> Callable[..., None]:
    """Return `run(script, **variables)`, which runs a script in bash, in the folder `place`."""

    def runs(script: str, **variables: str) -> None:
        path = f"{place / '.bin'}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [tool("bash"), "-c", script], cwd=place, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables}, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    return runs


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".raconvert-migration")
    }


def asked(script: str) -> dict[str, str]:
    """What the script asks `sbatch` for."""
    return dict(re.findall(r"^#SBATCH --([\w-]+)=(.*)$", script, re.MULTILINE))


def test_the_array_job(place: Path, run: Callable[..., None]) -> None:
    script, _ = scripts("slurm.md")
    first, last = map(int, asked(script)["array"].split("-"))
    for number in range(first, last + 1):
        run(script, SLURM_ARRAY_TASK_ID=str(number),
            SLURM_CPUS_PER_TASK=asked(script)["cpus-per-task"])  # fmt: skip

    assert contents(place / "lab-ra") == contents(place / "whole")


@pytest.mark.long
def test_dask_under_slurm(
    place: Path, run: Callable[..., None], package: Callable[..., None]
) -> None:
    package("distributed", "distributed")
    _, script = scripts("slurm.md")
    run(script, SLURM_JOB_ID="4711", SLURM_NTASKS="2")

    assert contents(place / "lab-ra") == contents(place / "whole")
    assert not list(place.glob("scheduler*"))


@pytest.mark.long
def test_dask_on_machines_of_ones_own(
    place: Path, run: Callable[..., None], package: Callable[..., None]
) -> None:
    package("distributed", "distributed")
    (script,) = scripts("dask.md")
    run(script)

    assert contents(place / "lab-ra") == contents(place / "whole")
