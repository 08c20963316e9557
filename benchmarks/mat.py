"""MAT: one large variable of v7 (compressed) and of v6 to .npy, against scipy, in the same run.

    python benchmarks/mat.py [--mib 512] [--rounds 3] [--dir /dev/shm]

The base is what people do today: `numpy.save` of what `scipy.io.loadmat` returns. The results are
compared with each other before anything is measured.
"""

from __future__ import annotations

import argparse
import os
import sys

from _measure import RACONVERT, heading, interleave, machine, program, python, run, table, workspace

# Random walks with three decimals, which zlib takes to about half their size, as it does with
# measured data.
MAKE = """
import sys
import numpy as np, scipy.io
size, space = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(1)
values = np.round(np.cumsum(rng.standard_normal((1024, size // 8192)), axis=0), 3)
scipy.io.savemat(space + "/v6.mat", {"x": values})
scipy.io.savemat(space + "/v7.mat", {"x": values}, do_compression=True)
"""
SCIPY_WAY = """
import sys
import numpy as np, scipy.io
np.save(sys.argv[2], scipy.io.loadmat(sys.argv[1])["x"])
"""
CHECK = """
import sys
import numpy as np
one, two = (np.load(path, mmap_mode="r") for path in sys.argv[1:])
assert one.shape == two.shape and one.dtype == two.dtype
assert all((one[:, i:i + 4096] == two[:, i:i + 4096]).all() for i in range(0, one.shape[1], 4096))
"""
BASE = "scipy.io.loadmat + np.save"


def main() -> None:
    """Make the two files and measure each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=512, help="size of the variable in MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "scipy")
    with workspace(options.dir) as space:
        run(sys.executable, "-c", MAKE, str(options.mib << 20), space)
        for version in ("v7", "v6"):
            measure(space, version, options.rounds)


def measure(space: str, version: str, rounds: int) -> None:
    """Compare both ways for one file; a new output file every time."""
    source, ours, theirs = (
        os.path.join(space, name) for name in (f"{version}.mat", "ours.npy", "theirs.npy")
    )

    def remove() -> None:
        for path in (ours, theirs):
            if os.path.exists(path):
                os.unlink(path)

    run(*RACONVERT, source, "-o", ours, "--quiet")
    run(sys.executable, "-c", SCIPY_WAY, source, theirs)
    run(sys.executable, "-c", CHECK, ours, theirs)
    remove()
    contenders = {
        BASE: python(SCIPY_WAY, source, theirs),
        f"raconvert {version} -> npy": program(*RACONVERT, source, "-o", ours, "--quiet"),
    }
    heading(f"{version}: a file of {os.path.getsize(source) >> 20} MiB in {space}")
    table(interleave(contenders, rounds, after=remove), BASE)


if __name__ == "__main__":
    main()
