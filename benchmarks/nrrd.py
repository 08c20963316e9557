"""NRRD: raw files against `cp`, gzip files against bare zlib, and what they need in memory.

    python benchmarks/nrrd.py [--mib 4096] [--rounds 3] [--dir /dev/shm]

`cp --reflink=never` is the base of the raw files, since plain cp shares blocks on some file
systems. The base of the gzip files is a loop around `zlib.decompressobj` that keeps nothing: it
reads the same bytes and writes none. A second such loop writes what it inflates to a file, as
raconvert does. Two kinds of data: an image with noise, which inflates slowly, and a segmentation,
which inflates as fast as memory can be written.
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
import sys, zlib
import numpy as np
size, kind, raw, packed = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
rng = np.random.default_rng(1)
if kind == "image":
    noise = rng.normal(0, 8, (64, 1024, 1024))
    slices = (
        (1000 * np.sin(np.arange(1024)[:, None] / 200 + n) + noise[n % 64]).astype("<i2")
        for n in range(size >> 21)
    )
    fields = f"type: int16\\ndimension: 3\\nsizes: 1024 1024 {size >> 21}\\nendian: little"
else:
    y, x = np.ogrid[:1024, :2048]
    base = np.zeros((1024, 2048), "u1")
    for label in range(1, 12):
        cy, cx, radius = rng.integers(100, 900), rng.integers(100, 1900), rng.integers(20, 200)
        base[(y - cy) ** 2 + (x - cx) ** 2 < radius**2] = label
    slices = (np.roll(base, 3 * n, axis=1) for n in range(size >> 21))
    fields = f"type: uint8\\ndimension: 3\\nsizes: 2048 1024 {size >> 21}"
deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
with open(raw, "wb") as plain, open(packed, "wb") as small:
    plain.write(f"NRRD0001\\n{fields}\\nencoding: raw\\n\\n".encode())
    small.write(f"NRRD0001\\n{fields}\\nencoding: gzip\\n\\n".encode())
    for piece in slices:
        plain.write(piece.tobytes())
        small.write(deflate.compress(piece.tobytes()))
    small.write(deflate.flush())
"""
BARE = """
import sys, zlib
file = open(sys.argv[1], "rb", buffering=0)
file.seek(file.read(1000).index(b"\\n\\n") + 2)
out = open(sys.argv[2], "wb", buffering=0) if len(sys.argv) > 2 else None
inflate = zlib.decompressobj(31)
while data := file.read(1 << 17):
    while data:
        piece = inflate.decompress(data, 1 << 20)
        data = inflate.unconsumed_tail
        if out:
            out.write(piece)
assert inflate.eof
"""
PYNRRD = """
import sys
import nrrd
values, _ = nrrd.read(sys.argv[1], index_order="C")
values.tofile(sys.argv[2])
"""
CHECK = """
import sys
one, two = open(sys.argv[1], "rb"), open(sys.argv[2], "rb")
one.seek(one.read(1000).index(b"\\n\\n") + 2)
two.seek(48 + 8 * 3)
while piece := one.read(1 << 22):
    assert piece == two.read(len(piece))
assert not two.read(1)
"""


def main() -> None:
    """Measure raw and gzip files of both kinds of data."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=4096, help="size of the array in MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    parser.add_argument("--pynrrd", action="store_true", help="measure pynrrd too (needs memory)")
    options = parser.parse_args()
    machine("numpy", "pynrrd")
    for kind in ("image", "segmentation"):
        with workspace(options.dir) as space:
            measure(space, kind, options)


def measure(space: str, kind: str, options: argparse.Namespace) -> None:
    """Compare conversions of one array, raw and gzip; a new output file every time."""
    raw, packed, ra, out = (
        os.path.join(space, name) for name in ("raw.nrrd", "gzip.nrrd", "raw.ra", "out")
    )
    run(sys.executable, "-c", MAKE, str(options.mib << 20), kind, raw, packed)
    run(*RACONVERT, packed, "-o", ra, "--quiet")
    run(sys.executable, "-c", CHECK, raw, ra)

    def remove() -> None:
        for name in (out, f"{out}.ra", f"{out}.nrrd"):
            if os.path.exists(name):
                os.unlink(name)

    heading(f"{kind}: {options.mib} MiB, {os.path.getsize(packed) >> 20} MiB as gzip, in {space}")
    if kind == "image":
        contenders = {
            "cp --reflink=never": program("cp", "--reflink=never", raw, out),
            "raconvert raw nrrd -> ra": program(*RACONVERT, raw, "-o", f"{out}.ra", "--quiet"),
            "raconvert ra -> raw nrrd": program(*RACONVERT, ra, "-o", f"{out}.nrrd", "--quiet"),
        }
        if options.pynrrd:
            contenders["pynrrd.read + tofile"] = python(PYNRRD, raw, out)
        table(interleave(contenders, options.rounds, after=remove), "cp --reflink=never")
    os.unlink(raw)
    contenders = {
        "zlib, nothing written": python(BARE, packed),
        "zlib, written": python(BARE, packed, out),
        "raconvert gzip nrrd -> ra": program(*RACONVERT, packed, "-o", f"{out}.ra", "--quiet"),
    }
    if options.pynrrd:
        contenders["pynrrd.read + tofile"] = python(PYNRRD, packed, out)
    table(interleave(contenders, options.rounds, after=remove), "zlib, nothing written")


if __name__ == "__main__":
    main()
