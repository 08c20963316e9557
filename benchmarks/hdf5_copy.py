"""HDF5 to RA and back against `cp` and h5py: contiguous, deflated chunks, and their memory.

    python benchmarks/hdf5_copy.py [--mib 4096] [--gzip-mib 256] [--rounds 5] [--dir /dev/shm]

`cp --reflink=never` of the same file is the base for contiguous data, since plain cp shares blocks
on some file systems. For deflated data it is h5py reading the dataset and writing it to a file.
The goals: contiguous at most 1.3 times cp, below 300 MB of memory; deflated faster than h5py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from _measure import RACONVERT, heading, interleave, machine, program, python, run, table, workspace

MAKE = """
import sys
import h5py
import numpy as np
size, path, storage = int(sys.argv[1]), sys.argv[2], sys.argv[3]
options = {"plain": {}, "gzip": {"compression": 4}, "shuffle": {"compression": 4, "shuffle": True}}
chunks = None if storage == "plain" else (128, 1024)
rows = size // 4096
with h5py.File(path, "w") as file:
    out = file.create_dataset("x", (rows, 1024), "f4", chunks=chunks, **options[storage])
    block = np.random.default_rng(1).integers(0, 1000, (4096, 1024)).astype("f4")
    for row in range(0, rows, 4096):
        out[row:row + 4096] = block[:rows - row] + row
"""
CHECK = """
import struct, sys
import h5py
import numpy as np
with open(sys.argv[2], "rb") as file:
    ndims = struct.unpack("<8s5Q", file.read(48))[-1]
with h5py.File(sys.argv[1]) as file:
    x = file[list(file)[0]]
    ra = np.memmap(sys.argv[2], "<f4", "r", 48 + 8 * ndims, x.shape)
    assert all((x[i:i + 4096] == ra[i:i + 4096]).all() for i in range(0, len(x), 4096))
"""
H5PY_READ = """
import sys
from collections.abc import Callable
import h5py
with h5py.File(sys.argv[1]) as file:
    file["x"][()].tofile(sys.argv[2])
"""
H5PY_WRITE = """
import struct, sys
import h5py
import numpy as np
with open(sys.argv[1], "rb") as file:
    head = struct.unpack("<8s5Q", file.read(48))
    dims = struct.unpack(f"<{head[-1]}Q", file.read(8 * head[-1]))
data = np.memmap(sys.argv[1], "<f4", "r", 48 + 8 * len(dims), dims[::-1])
options = {"compression": 4, "shuffle": True, "chunks": (256, 1024)} if len(sys.argv) > 3 else {}
with h5py.File(sys.argv[2], "w") as file:
    file.create_dataset("x", data=data, **options)
"""


def main() -> None:
    """Measure contiguous and deflated data."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=4096, help="size of the contiguous data")
    parser.add_argument("--gzip-mib", type=int, default=256, help="size of the deflated data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "h5py")
    with workspace(options.dir) as space:
        contiguous(space, options.mib << 20, options.rounds)
    for storage in ("gzip", "shuffle"):
        with workspace(options.dir) as space:
            deflated(space, storage, options.gzip_mib << 20, options.rounds)


def contiguous(space: str, size: int, rounds: int) -> None:
    """Compare both directions of one large contiguous dataset with cp."""
    h5, ra, out_h5, out_ra = _paths(space, size, "plain")
    contenders = {
        "cp --reflink=never": program("cp", "--reflink=never", h5, out_h5),
        "raconvert h5 -> ra": program(*RACONVERT, h5, "-o", out_ra, "--quiet"),
        "raconvert ra -> h5": program(*RACONVERT, ra, "-o", out_h5, "--quiet"),
        "h5py h5 -> raw": python(H5PY_READ, h5, out_ra),
        "h5py ra -> h5": python(H5PY_WRITE, ra, out_h5),
    }
    heading(f"{size >> 20} MiB of float32, contiguous, in {space}")
    table(interleave(contenders, rounds, after=_remover(out_h5, out_ra)), "cp --reflink=never")


def deflated(space: str, storage: str, size: int, rounds: int) -> None:
    """Compare reading and writing of deflated chunks with h5py."""
    h5, ra, out_h5, out_ra = _paths(space, size, storage)
    reading = {
        "h5py h5 -> raw": python(H5PY_READ, h5, out_ra),
        "raconvert h5 -> ra": program(*RACONVERT, h5, "-o", out_ra, "--quiet"),
    }
    heading(f"{size >> 20} MiB of float32, {storage}, in {space}")
    table(interleave(reading, rounds, after=_remover(out_h5, out_ra)), "h5py h5 -> raw")
    if storage == "gzip":
        return
    command = [*RACONVERT, ra, "-o", out_h5, "--out-opt", "compress=gzip:4", "--quiet"]
    writing = {
        "h5py ra -> h5 gzip": python(H5PY_WRITE, ra, out_h5, "gzip"),
        "raconvert ra -> h5 gzip:4": program(*command),
    }
    table(interleave(writing, rounds, after=_remover(out_h5, out_ra)), "h5py ra -> h5 gzip")


def _paths(space: str, size: int, storage: str) -> list[str]:
    """Make the two files and check one against the other; return them and two output paths."""
    paths = [os.path.join(space, name) for name in ("x.h5", "x.ra", "out.h5", "out.ra")]
    run(sys.executable, "-c", MAKE, str(size), paths[0], storage)
    run(*RACONVERT, paths[0], "-o", paths[1])
    run(sys.executable, "-c", CHECK, paths[0], paths[1])
    return paths


def _remover(*paths: str) -> Callable[[], None]:
    def remove() -> None:
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)

    return remove


if __name__ == "__main__":
    main()
