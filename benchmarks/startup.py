"""What a small command costs beyond starting Python.

python benchmarks/startup.py [--rounds 15] [--dir /dev/shm]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from _measure import (
    IN_C,
    RACONVERT,
    Contender,
    beside_the_loop,
    heading,
    interleave,
    loop_in_c,
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
np.save(sys.argv[1], np.arange(784, dtype="f4").reshape(28, 28))
"""
NUMPY_WAY = """
import sys
import numpy as np
np.save(sys.argv[2], np.load(sys.argv[1]))
"""


def main() -> None:
    """Make one small file and run the small commands on it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy")
    with workspace(options.dir) as space:
        npy, ra = os.path.join(space, "x.npy"), os.path.join(space, "x.ra")
        run(sys.executable, "-c", MAKE, npy)
        run(*RACONVERT, npy, "-o", ra)
        heading("small commands")
        samples = interleave(contenders(npy, ra, space), options.rounds)
        shown = {name: runs for name, runs in samples.items() if name != IN_C}
        table(shown, "python -c pass", by="cpu")
        beside_the_loop(samples, "python -c pass", "python -m raconvert info x.ra")


def contenders(npy: str, ra: str, space: str) -> dict[str, Contender]:
    """Return the small commands; conversions overwrite their own earlier output."""
    found = {
        "python -c pass": python("pass"),
        "python -c 'import numpy'": python("import numpy"),
        "python -m raconvert --version": program(*RACONVERT, "--version"),
        "python -m raconvert --help": program(*RACONVERT, "--help"),
        "python -m raconvert info x.ra": program(*RACONVERT, "info", ra),
        "python -m raconvert x.npy -o y.ra": program(
            *RACONVERT, npy, "-o", os.path.join(space, "y.ra"), "--overwrite"
        ),
        "python -m raconvert x.ra -o y.npy": program(
            *RACONVERT, ra, "-o", os.path.join(space, "y.npy"), "--overwrite"
        ),
        "np.load + np.save": python(NUMPY_WAY, npy, os.path.join(space, "z.npy")),
        **loop_in_c(space),
    }
    script = shutil.which("raconvert", path=os.path.dirname(sys.executable))
    if script:
        found["raconvert info x.ra"] = program(script, "info", ra)
    return found


if __name__ == "__main__":
    main()
