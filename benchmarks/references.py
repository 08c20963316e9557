"""A view of a tree of large sparse files: no element is read.

    python benchmarks/references.py [--files 1000] [--gib 10] [--rounds 5]

The base is a stat of every file. The view is checked: it names the bytes of each file.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

import numpy as np
from _measure import heading, in_process, interleave, machine, table, workspace

import raconvert


def make(folder: str, files: int, gib: int) -> list[str]:
    """Write NPY files of which only the header takes room."""
    os.mkdir(folder)
    paths = []
    for number in range(files):
        path = os.path.join(folder, f"{number:05}.npy")
        with open(path, "wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (gib << 17, 1024)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + (gib << 30))
        paths.append(path)
    return paths


def main() -> None:
    """Measure the view and its proof."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--gib", type=int, default=10, help="size of each file in GiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy")
    with workspace(options.dir) as space:
        tree, view = os.path.join(space, "tree"), os.path.join(space, "view.refs.json")
        paths = make(tree, options.files, options.gib)
        refs = partial(raconvert.refs, tree, view, recursive=True, overwrite=True)
        refs()
        with open(view, "rb") as file:
            named = [ref for ref in json.load(file)["refs"].values() if isinstance(ref, list)]
        if sum(ref[2] for ref in named) != options.files * options.gib << 30:
            raise SystemExit("the view does not name every byte")
        contenders = {
            "stat": in_process(lambda: [os.stat(path) for path in paths]),
            "refs": in_process(refs),
            "verify": in_process(lambda: raconvert.verify(view)),
        }
        heading(
            f"{options.files} files of {options.gib} GiB, {os.path.getsize(view)} bytes of view"
        )
        table(interleave(contenders, options.rounds), "stat", memory=False, by="cpu")


if __name__ == "__main__":
    main()
