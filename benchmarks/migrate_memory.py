"""The memory of a migration whose files are of all sizes: all its processes together.

    python benchmarks/migrate_memory.py [--mib 3072] [--max-memory 256] [--jobs 2] [--dir FOLDER]

A tree of 1,000 files of 1 kB and of large ones, of `--mib` each, in five formats: NPY (sparse),
chunks of gzip in HDF5, a compressed MAT file (1.5 GiB at most,
which is what the format can hold), PNG (as large as its decoded pixels may be within
`--max-memory`), and the same PNG again, since a worker alone may use all. Printed is the most that
each process ever had, as Linux counts it (VmHWM), and the sum: never more at once than that. It
takes as much room on the disk as it writes: about three times `--mib`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from _measure import ENVIRONMENT, RACONVERT, machine, record_bytes, run, workspace

CONSTANT = 64  # MiB of each worker: interpreter, numpy and what reads the format
MAKE = """
import os, sys
import h5py
import numpy as np
import raconvert
root, size, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(1000):
    folder = f"{root}/{number % 7}"
    os.makedirs(folder, exist_ok=True)
    np.save(f"{folder}/{number:04d}.npy", np.arange(110.0) + number)
np.lib.format.open_memmap(f"{root}/0/a.npy", "w+", "f4", (size // 4096, 1024)).flush()
with h5py.File(f"{root}/1/b.h5", "w") as file:
    made = file.create_dataset("b", (size // 4096, 1024), "f4", chunks=(256, 1024),
                               compression="gzip", compression_opts=1)
    for row in range(0, len(made), 256):
        made[row:row + 256] = row
few = min(size, 1536 << 20)
np.lib.format.open_memmap(f"{root}/c.npy", "w+", "u1", (few,)).flush()
raconvert.convert(f"{root}/c.npy", f"{root}/2/c.mat", out_opts={"version": "7"})
os.unlink(f"{root}/c.npy")
side = int((limit / 2.5) ** 0.5)
raconvert.write(f"{root}/3/d.png", np.zeros((side, side), "u1"))
raconvert.write(f"{root}/4/e.png", np.zeros((side, side), "u1"))
"""


def main() -> None:
    """Migrate one tree, and print what each process has had."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=3072, help="size of the large files in MiB")
    parser.add_argument("--max-memory", type=int, default=256, help="in MiB")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "h5py")
    limit = options.max_memory << 20
    with workspace(options.dir) as space:
        source, target = os.path.join(space, "source"), os.path.join(space, "target")
        run(sys.executable, "-c", MAKE, source, str(options.mib << 20), str(limit))
        peaks = migrate([source, target, "--to", "ra", "--jobs", str(options.jobs),
                         "--max-memory", str(limit)])  # fmt: skip
    for pid, peak in peaks.items():
        print(f"process {pid}: {peak / 2**20:7.1f} MiB")
    allowed = options.max_memory + CONSTANT * len(peaks)
    print(f"together:      {sum(peaks.values()) / 2**20:7.1f} MiB; --max-memory and {CONSTANT} MiB "
          f"for each process: {allowed} MiB")  # fmt: skip
    record_bytes(
        f"files of up to {options.mib} MiB, --max-memory {options.max_memory}M, "
        f"--jobs {options.jobs}: the most memory of all processes together",
        "allowed",
        {"allowed": allowed << 20, "raconvert migrate": sum(peaks.values())},
    )


def migrate(words: list[str]) -> dict[int, int]:
    """Run a migration to its end; the most bytes of memory that each of its processes had."""
    process = subprocess.Popen([*RACONVERT, "migrate", *words], env=ENVIRONMENT)
    peaks: dict[int, int] = {}
    while process.poll() is None:
        for pid in (process.pid, *children(process.pid)):
            peaks[pid] = max(peaks.get(pid, 0), peak_of(pid))
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}")
    return peaks


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def peak_of(pid: int) -> int:
    """The most bytes of memory that a process has had so far."""
    try:
        with open(f"/proc/{pid}/status") as file:
            found = [line.split()[1] for line in file if line.startswith("VmHWM:")]
    except OSError:
        return 0
    return int(found[0]) << 10 if found else 0


if __name__ == "__main__":
    main()
