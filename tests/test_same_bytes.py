"""The same data gives the same bytes: on another day, for another user, anywhere, in every format.

`same_bytes.py` writes all formats in two processes that have nothing in common but the data.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs
import pytest

from raconvert.catalogue import ROWS

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "same_bytes.py"
WRITTEN = [row.name for row in ROWS if row.writes]
GROUPS = 6  # of formats, each in processes of its own
# One process and the other: the day, the surroundings, and what only the system can change
FIRST = {
    "PYTHONHASHSEED": "0", "TZ": "UTC", "HOME": "/", "USER": "ada", "LOGNAME": "ada",
    "LC_ALL": "C", "LANG": "C", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1", "BLOSC_NTHREADS": "1", "SOURCE_DATE_EPOCH": "1",
}  # fmt: skip
SECOND = {
    "PYTHONHASHSEED": "4242", "TZ": "Asia/Kolkata", "HOME": "/tmp", "USER": "grace",
    "LOGNAME": "grace", "LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "OMP_NUM_THREADS": "4",
    "OPENBLAS_NUM_THREADS": "3", "NUMEXPR_NUM_THREADS": "4", "BLOSC_NTHREADS": "4",
    "SOURCE_DATE_EPOCH": "1900000000", "OTHER_USER": "4321",
}  # fmt: skip
DAYS = ("2001-02-03 04:05:06", "2031-07-09 22:33:44")
# Formats that hold the kinds of data which the promise names, as the programs write them
HOLD = {
    "numbers": {"bundle", "zip", "tar", "hdf5", "mat", "npz", "zarr", "netcdf3", "rds"},
    "labelled": {"hdf5", "csv", "parquet", "arrow", "xlsx", "zarr", "nrrd", "ometiff", "omezarr"},
    "text": {"ra", "npy", "hdf5", "mat", "csv", "xlsx", "parquet", "zarr", "rds", "netcdf3"},
    "records": {"ra", "npy", "npz", "hdf5", "mat", "fits", "parquet", "scidb", "zarr"},
}


def run(folder: Path, environment: dict[str, str], day: str, names: list[str], **how: Any) -> Any:
    command = [needs.program("faketime") or "faketime", day, sys.executable, str(PROGRAM)]
    (folder / "home").mkdir(parents=True)
    done = subprocess.run(
        [*command, str(folder / "work"), *names],
        env={**os.environ, **environment},
        cwd=folder / "home",
        capture_output=True,
        text=True,
        check=False,
        **how,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("group", range(GROUPS))
def test_same_data_same_bytes(group: int, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("faketime")
    names = WRITTEN[group::GROUPS]
    everywhere = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

    def alone() -> None:
        os.umask(0o022)
        if everywhere:
            os.sched_setaffinity(0, everywhere[:1])

    first = run(tmp_path / "one", FIRST, DAYS[0], names, preexec_fn=alone)
    second = run(
        tmp_path / "other place" / "deeper", SECOND, DAYS[1], names,
        preexec_fn=lambda: os.umask(0o077),
    )  # fmt: skip

    assert (first["day"], second["day"]) == (DAYS[0][:10], DAYS[1][:10])
    assert first["files"].keys() == second["files"].keys()
    odd = [case for case, found in first["files"].items() if found != second["files"][case]]
    assert odd == []
    done = {case for case, found in first["files"].items() if isinstance(found, dict)}
    assert [name for name in names if not any(case.split()[0] == name for case in done)] == []
    forms = {"nifti stack .nii.gz", "fits stack .fits.gz", "nrrd volume .nhdr", "idx stack .idx.gz"}
    assert {case for case in forms if case.split()[0] in names} <= done
    for kind, formats in HOLD.items():
        assert {f"{name} {kind}" for name in formats & {*names}} <= done
