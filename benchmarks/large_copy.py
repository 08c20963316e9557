"""Large files: NPY to RA and back against `cp`, and what they need in memory.

    python benchmarks/large_copy.py [--mib 1024] [--rounds 5] [--dir /dev/shm] [--sparse-gib 8]

`cp --reflink=never` is the base, since plain cp shares blocks on some file systems instead of
copying them. Like is compared with like: what waits for the disk (the command line does) with
``cp`` followed by ``sync FILE``, and `convert(sync=False)` with ``cp`` alone. The sparse file shows
that memory does not grow with size, and that holes stay holes.
"""

from __future__ import annotations

import argparse
import os
import sys

from _measure import (
    RACONVERT,
    heading,
    interleave,
    machine,
    program,
    python,
    run,
    table,
    workspace,
)

MAKE = """
import sys
import numpy as np
size, order, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
out = np.lib.format.open_memmap(path, "w+", order + "f4", (size // 4096, 1024))
for row in range(0, len(out), 4096):
    out[row:row + 4096] = np.arange(row, row + len(out[row:row + 4096]), dtype="f4")[:, None]
"""
# Not written at all: a header, then a hole.
MAKE_SPARSE = """
import sys
import numpy as np
np.lib.format.open_memmap(sys.argv[2], "w+", "u1", (int(sys.argv[1]),)).flush()
"""
NUMPY_WAY = """
import sys
import numpy as np
np.save(sys.argv[2], np.load(sys.argv[1]))
"""
SWAP_WAY = """
import sys
import numpy as np
np.save(sys.argv[2], np.load(sys.argv[1]).astype("<f4"))
"""
UNSYNCED = """
import sys
from raconvert.conversion.pipeline import convert
convert(sys.argv[1], sys.argv[2], sync=False)
"""
COPY_AND_SYNC = 'cp --reflink=never "$0" "$1" && sync "$1"'
CHECK = """
import struct, sys
import numpy as np
npy = np.load(sys.argv[1], mmap_mode="r")
with open(sys.argv[2], "rb") as file:
    ndims = struct.unpack("<8s5Q", file.read(48))[-1]
ra = np.memmap(sys.argv[2], "<f4", "r", 48 + 8 * ndims, npy.shape)
assert all((npy[i:i + 8192] == ra[i:i + 8192]).all() for i in range(0, len(npy), 8192))
"""


def main() -> None:
    """Measure one large file, its byte-swapped twin, and a sparse one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the file in MiB")
    parser.add_argument("--sparse-gib", type=int, default=8, help="size of the sparse file in GiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy")
    with workspace(options.dir) as space:
        measure(space, options.mib << 20, options.rounds)
    with workspace(options.dir) as space:
        sparse(space, options.sparse_gib << 30)


def measure(space: str, size: int, rounds: int) -> None:
    """Compare copies and conversions of one file; a new output file every time."""
    little, big, ra = (os.path.join(space, name) for name in ("little.npy", "big.npy", "little.ra"))
    run(sys.executable, "-c", MAKE, str(size), "<", little)
    run(sys.executable, "-c", MAKE, str(size), ">", big)
    run(*RACONVERT, little, "-o", ra)
    run(sys.executable, "-c", CHECK, little, ra)
    out_ra, out_npy = os.path.join(space, "out.ra"), os.path.join(space, "out.npy")

    def remove() -> None:
        for path in (out_ra, out_npy):
            if os.path.exists(path):
                os.unlink(path)

    synced = {
        "cp; sync": program("sh", "-c", COPY_AND_SYNC, little, out_npy),
        "raconvert npy -> ra": program(*RACONVERT, little, "-o", out_ra, "--quiet"),
        "raconvert ra -> npy": program(*RACONVERT, ra, "-o", out_npy, "--quiet"),
        "raconvert big-endian npy -> ra": program(*RACONVERT, big, "-o", out_ra, "--quiet"),
    }
    unsynced = {
        "cp --reflink=never": program("cp", "--reflink=never", little, out_npy),
        "convert(sync=False) npy -> ra": python(UNSYNCED, little, out_ra),
        "convert(sync=False) ra -> npy": python(UNSYNCED, ra, out_npy),
        "convert(sync=False) big-endian": python(UNSYNCED, big, out_ra),
        "np.load + np.save": python(NUMPY_WAY, little, out_npy),
        "np.load + astype + np.save": python(SWAP_WAY, big, out_npy),
    }
    heading(f"{size >> 20} MiB of float32 in {space}")
    table(interleave(synced, rounds, after=remove), "cp; sync")
    table(interleave(unsynced, rounds, after=remove), "cp --reflink=never")


def sparse(space: str, size: int) -> None:
    """Convert a file that is one hole; print what it took and what the result occupies."""
    npy, ra = os.path.join(space, "sparse.npy"), os.path.join(space, "sparse.ra")
    run(sys.executable, "-c", MAKE_SPARSE, str(size), npy)
    sample = run(*RACONVERT, npy, "-o", ra, "--quiet")
    found = os.stat(ra)
    print(
        f"{size >> 30} GiB sparse npy -> ra: {sample.wall:.2f} s, peak memory "
        f"{sample.rss / 2**20:.1f} MiB, {found.st_size:,} bytes of which "
        f"{found.st_blocks * 512:,} are stored"
    )


if __name__ == "__main__":
    main()
