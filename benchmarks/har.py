"""HAR: a full and a sparse file of 200 MB, read whole, against their bytes and against harpy3.

    python benchmarks/har.py [--mb 200] [--rounds 5] [--dir /dev/shm]

The base is reading the bytes of the file with one call. `stream` decodes block by block, as every
conversion does; `array` gives the whole array in memory, as harpy3 does. The sparse file holds six
values in ten. Peak memory is that of a new interpreter, numpy and the array included.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from _measure import (
    Contender,
    heading,
    in_process,
    interleave,
    machine,
    python,
    run,
    table,
    workspace,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np

NAME = "VALU"
MEMORY = {
    "bytes": "import sys, numpy\nopen(sys.argv[1], 'rb').read()",
    "raconvert stream": """
import sys, raconvert
from raconvert.arrays.blocks import blocks
with raconvert.open(sys.argv[1]) as bundle:
    for _ in blocks(bundle["VALU"]):
        pass
""",
    "raconvert array": """
import sys, numpy, raconvert
with raconvert.open(sys.argv[1]) as bundle:
    numpy.asarray(bundle["VALU"])
""",
    "harpy3": """
import sys, warnings
warnings.simplefilter("ignore")
from harpy import HarFileIO
HarFileIO.readHeaderArraysFromFile(sys.argv[1], "VALU")
""",
}


def make(path: str, megabytes: int, *, sparse: bool) -> None:
    """Write one RE header over three labelled sets whose file has about this size."""
    import numpy as np
    from raconvert.plugins import har

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.arrays.dtypes import element
    from raconvert.arrays.metadata import Axis, Metadata
    from raconvert.files.target import Target

    count = megabytes * 1_000_000 // (8 if sparse else 4)  # a sparse value has a position too
    cells = count * 10 // 6 if sparse else count
    dims = (400, 250, cells // 100_000)
    rng = np.random.default_rng(1)
    values = rng.random(dims[::-1], "f4") + 1
    if sparse:
        values[rng.random(dims[::-1], "f4") > 0.6] = 0
    axes = [
        Axis(name=name, labels=[f"{name}{n}" for n in range(size)])
        for name, size in zip(("COM", "SEC", "REG"), dims, strict=True)
    ]
    array = Array(
        element("float", 4),
        dims,
        name=NAME,
        index_order="F",
        data=values,
        meta=Metadata(axes=axes[::-1]),
    )
    with Target(path) as target:
        har.plan(Bundle([array]), storage="sparse" if sparse else "full").write(target)
        target.commit(sync=False)


def read_bytes(path: str) -> bytes:
    """Return the bytes of the file."""
    with open(path, "rb") as file:
        return file.read()


def stream(path: str) -> None:
    """Decode the header block by block."""
    import raconvert
    from raconvert.arrays.blocks import blocks

    with raconvert.open(path) as bundle:
        for _ in blocks(bundle[NAME]):
            pass


def whole(path: str) -> np.ndarray:
    """Return the header as one array."""
    import numpy as np

    import raconvert

    with raconvert.open(path) as bundle:
        return np.asarray(bundle[NAME])


def by_harpy(path: str) -> np.ndarray:
    """Return the header as harpy3 reads it."""
    from harpy import HarFileIO

    found: np.ndarray = HarFileIO.readHeaderArraysFromFile(path, NAME)[0]["array"]
    return found


def main() -> None:
    """Print one table of memory and one of times for each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        path, kind = options.make
        make(path, options.mb, sparse=kind == "sparse")
        return
    machine("numpy", "harpy3")
    with workspace(options.dir) as folder:
        paths = {kind: os.path.join(folder, f"{kind}.har") for kind in ("full", "sparse")}
        # What needs memory comes first: this process is small until it imports numpy itself.
        for kind, path in paths.items():
            run(sys.executable, __file__, "--mb", str(options.mb), "--make", path, kind)
            heading(f"{kind}: {os.path.getsize(path) / 1e6:.1f} MB, each in a new interpreter")
            table(interleave({n: python(c, path) for n, c in MEMORY.items()}, 1), "bytes")
        for kind, path in paths.items():
            heading(f"{kind}: {os.path.getsize(path) / 1e6:.1f} MB, in this process")
            table(interleave(timed(path), options.rounds), "bytes", memory=False)


def timed(path: str) -> dict[str, Contender]:
    """Return the contenders on one file, after a look whether both read the same."""
    import numpy as np

    warnings.simplefilter("ignore")  # harpy3 uses what numpy 2 deprecates
    if not np.array_equal(whole(path), by_harpy(path)):
        raise SystemExit(f"{path} is not the same to harpy3")
    return {
        "bytes": in_process(lambda: read_bytes(path)),
        "raconvert stream": in_process(lambda: stream(path)),
        "raconvert array": in_process(lambda: whole(path)),
        "harpy3": in_process(lambda: by_harpy(path)),
    }


if __name__ == "__main__":
    main()
