"""A folder of small PNG images into one RA file: raconvert against the loops that people write.

    python benchmarks/png_stack.py [--count 60000] [--rounds 5] [--jobs 2] [--dir /dev/shm]

Two deterministic sets of the shape and about the compressed size of MNIST (28 x 28 grey) and
CIFAR-10 (32 x 32 RGB) are written with Pillow. Measured is the whole command: start, glob, sort,
read, decode, write. Afterwards every pixel of the RA file is compared with what was encoded.

The loops over imageio and Pillow may run on fewer files (--peer-count); their time is then scaled
to all files after taking off the time they need for no file at all.
"""

from __future__ import annotations

import argparse
import os
import sys

from _measure import (
    IN_C,
    RACONVERT,
    Sample,
    beside_the_loop,
    heading,
    interleave,
    loop_in_c,
    machine,
    middle,
    program,
    python,
    ratios,
    run,
    table,
    workspace,
)

SETS = {"grey 28x28": (28, 28), "RGB 32x32": (32, 32, 3)}

LOOPS = {
    "imageio": """
import glob, sys
import imageio.v3 as iio, numpy as np
files = sorted(glob.glob(sys.argv[1]))[:int(sys.argv[2])]
if files:
    np.stack([iio.imread(f) for f in files]).tofile(sys.argv[3])
""",
    "Pillow": """
import glob, sys
import numpy as np
from PIL import Image
files = sorted(glob.glob(sys.argv[1]))[:int(sys.argv[2])]
if files:
    np.stack([np.asarray(Image.open(f)) for f in files]).tofile(sys.argv[3])
""",
    "only read the files": """
import glob, os, sys
for f in sorted(glob.glob(sys.argv[1]))[:int(sys.argv[2])]:
    fd = os.open(f, os.O_RDONLY); os.read(fd, 1 << 14); os.close(fd)
""",
}

# Strokes on black for grey, smooth noise for colour: compressible about as much as the real sets.
GENERATE = """
import os, sys
import numpy as np
from multiprocessing import get_context
from PIL import Image

folder, count, shape = sys.argv[1], int(sys.argv[2]), tuple(map(int, sys.argv[3].split(",")))
BLOCK = 1000

def strokes(rng, n):
    steps = rng.normal(0, 1.1, (n, 2, 90)).cumsum(axis=2)
    steps = np.apply_along_axis(np.convolve, 2, steps, np.ones(9) / 9, "same")
    steps -= steps.mean(axis=2, keepdims=True)
    points = np.clip(steps * 1.3 + shape[0] / 2, 4, shape[0] - 6)
    whole = points.astype(int)
    part = points - whole
    image = np.zeros((n, *shape))
    which = np.arange(n)[:, None]
    for dy in (0, 1):
        for dx in (0, 1):
            weight = np.abs(1 - dy - part[:, 0]) * np.abs(1 - dx - part[:, 1])
            np.add.at(image, (which, whole[:, 0] + dy, whole[:, 1] + dx), weight)
    return np.clip(image * 255, 0, 255).astype("u1")

def smooth(rng, n):
    coarse = rng.normal(128, 50, (n, 6, 6, 3))
    at = np.linspace(0, 4.999, shape[0])
    low, part = at.astype(int), (at % 1)[:, None]
    rows = coarse[:, low] * (1 - part[..., None]) + coarse[:, low + 1] * part[..., None]
    image = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    return np.clip(image + rng.normal(0, 4, image.shape), 0, 255).astype("u1")

def write(start):
    rng = np.random.default_rng([start, *shape])
    images = (smooth if len(shape) == 3 else strokes)(rng, min(BLOCK, count - start))
    for number, image in enumerate(images, start):
        Image.fromarray(image).save(f"{folder}/{number:05d}.png")
    return images

if __name__ == "__main__":
    with get_context("fork").Pool() as pool:
        truth = np.concatenate(pool.map(write, range(0, count, BLOCK), chunksize=1))
    np.save(f"{folder}/../truth.npy", truth)
"""

CHECK = """
import struct, sys
import numpy as np
truth = np.load(sys.argv[1], mmap_mode="r")
with open(sys.argv[2], "rb") as file:
    magic, flags, eltype, elbyte, size, ndims = struct.unpack("<8s5Q", file.read(48))
    dims = struct.unpack(f"<{ndims}Q", file.read(8 * ndims))
    data = np.fromfile(file, "u1").reshape(dims[::-1])
assert (magic, flags, eltype, elbyte, size) == (b"rawarray", 0, 2, 1, truth.nbytes)
assert data.shape == truth.shape, (data.shape, truth.shape)
assert (data == truth).all()
"""


def main() -> None:
    """Generate, measure, check, and print both sets."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=60_000, help="images in each set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="processes of the second contender")
    parser.add_argument("--peer-count", type=int, default=6_000, help="images for the slow loops")
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "pillow", "imageio")
    for name, shape in SETS.items():
        with workspace(options.dir) as space:
            measure(name, shape, space, options)


def measure(name: str, shape: tuple[int, ...], space: str, options: argparse.Namespace) -> None:
    """Measure one set of images."""
    folder, out = os.path.join(space, "images"), os.path.join(space, "out.ra")
    os.mkdir(folder)
    run(sys.executable, "-c", GENERATE, folder, str(options.count), ",".join(map(str, shape)))
    sizes = [entry.stat().st_size for entry in os.scandir(folder)]
    heading(f"{name}: {len(sizes)} files, {sum(sizes) / len(sizes):.0f} bytes on average")

    pattern = os.path.join(folder, "*.png")
    raw = os.path.join(space, "raw")
    few = min(options.peer_count, options.count)
    ours = program(*RACONVERT, pattern, "-o", out, "--quiet")
    jobs = f"raconvert --jobs {options.jobs}"
    together = program(*RACONVERT, pattern, "-o", out, "--quiet", "--jobs", str(options.jobs))
    contenders = {"raconvert": ours, jobs: together}
    for peer, code in LOOPS.items():
        number = options.count if peer == "only read the files" else few
        contenders[peer] = python(code, pattern, str(number), raw)
        if number < options.count:
            contenders[f"{peer}, no file"] = python(code, pattern, "0", raw)
    contenders |= loop_in_c(space)
    samples = interleave(contenders, options.rounds, after=lambda: remove(out))
    for contender in (ours, together):
        contender()
        run(sys.executable, "-c", CHECK, os.path.join(space, "truth.npy"), out)
        remove(out)

    if few < options.count:
        print(f"imageio and Pillow ran on {few} files; their times are scaled to {options.count}")
        for peer in ("imageio", "Pillow"):
            idle = samples.pop(f"{peer}, no file")
            samples[peer] = [
                scaled(*pair, options.count / few) for pair in zip(samples[peer], idle, strict=True)
            ]
    table({one: runs for one, runs in samples.items() if one != IN_C}, "raconvert", by="cpu")
    cpu = middle(samples["raconvert"], "cpu")
    for peer in LOOPS:
        found = sorted(ratios(samples, peer, "raconvert", "cpu"))
        print(f"  {found[len(found) // 2]:5.2f} x the CPU time of raconvert: {peer}")
    print(f"  {options.count / cpu:,.0f} files per CPU second; every pixel as encoded\n")
    beside_the_loop(samples, "raconvert", "Pillow")


def remove(path: str) -> None:
    """Remove a result: every run writes a new file."""
    if os.path.exists(path):
        os.unlink(path)


def scaled(some: Sample, none: Sample, factor: float) -> Sample:
    """Return what all files would take, given some of them and none of them; memory as measured."""
    wall = none.wall + (some.wall - none.wall) * factor
    return Sample(wall, none.cpu + (some.cpu - none.cpu) * factor, some.rss)


if __name__ == "__main__":
    main()
