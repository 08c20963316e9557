"""Column-major to row-major: a physical transpose from file to file, against `cp` and numpy.

    python benchmarks/transpose.py [--mib 1024] [--rounds 3] [--dir /dev/shm]

`cp --reflink=never` of the same bytes is the base: nothing that reads and writes all of them can be
much faster. Every result is compared, element by element, with what numpy makes of the source.
"""

from __future__ import annotations

import argparse
import os
import sys

from _measure import RACONVERT, heading, interleave, machine, program, python, run, table, workspace

# name -> element type, shape with the number of rows left open
CASES = {
    "float32, rows of 1024": ("f4", (1024,)),
    "float32, square": ("f4", ()),
    "float64, rows of 1024": ("f8", (1024,)),
    "uint8, rows of 1024": ("u1", (1024,)),
    "complex64, three axes": ("c8", (128, 256)),
}
MAKE = """
import sys
from math import isqrt, prod
import numpy as np
size, code, rest, path = int(sys.argv[1]), sys.argv[2], eval(sys.argv[3]), sys.argv[4]
count = size // np.dtype(code).itemsize
shape = (count // prod(rest), *rest) if rest else (isqrt(count),) * 2
out = np.lib.format.open_memmap(path, "w+", code, shape, fortran_order=True)
flat = out.T.reshape(-1)
for start in range(0, flat.size, 1 << 22):
    part = flat[start:start + (1 << 22)]
    part[:] = (np.arange(start, start + part.size) * 2654435761 % 251).astype(code)
"""
CHECK = """
import struct, sys
import numpy as np
npy = np.load(sys.argv[1], mmap_mode="r")
with open(sys.argv[2], "rb") as file:
    ndims = struct.unpack("<8s5Q", file.read(48))[-1]
ra = np.memmap(sys.argv[2], npy.dtype, "r", 48 + 8 * ndims, npy.shape)
step = max(1, len(npy) // 64)
assert all((npy[i:i + step] == ra[i:i + step]).all() for i in range(0, len(npy), step))
"""
NUMPY_WAY = """
import sys
import numpy as np
np.save(sys.argv[2], np.ascontiguousarray(np.load(sys.argv[1])))
"""


def main() -> None:
    """Measure every case on a file of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of each file in MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    parser.add_argument("--only", choices=CASES, help="one case")
    options = parser.parse_args()
    machine("numpy")
    for name in [options.only] if options.only else CASES:
        with workspace(options.dir) as space:
            measure(space, name, options.mib << 20, options.rounds)


def measure(space: str, name: str, size: int, rounds: int) -> None:
    """Compare copy and transposes of one file; a new output file every time."""
    source, copy, moved, saved = (
        os.path.join(space, file) for file in ("f.npy", "copy", "c.ra", "c.npy")
    )
    code, rest = CASES[name]
    run(sys.executable, "-c", MAKE, str(size), code, repr(rest), source)
    command = [*RACONVERT, source, "-o", moved, "--axes", "c", "--quiet"]
    run(*command)
    run(sys.executable, "-c", CHECK, source, moved)
    os.unlink(moved)

    def remove() -> None:
        for path in (copy, moved, saved):
            if os.path.exists(path):
                os.unlink(path)

    contenders = {
        "cp --reflink=never": program("cp", "--reflink=never", source, copy),
        "raconvert --axes c": program(*command),
        "np.ascontiguousarray": python(NUMPY_WAY, source, saved),
    }
    heading(f"{name}: {os.stat(source).st_size >> 20} MiB in {space}")
    table(interleave(contenders, rounds, after=remove), "cp --reflink=never")


if __name__ == "__main__":
    main()
