"""Many small arrays, one file each, written and read in one process.

    python benchmarks/small_ra.py [--count 2000] [--rounds 9] [--dir /dev/shm]

The floor is a bare open, write or read, close of the same bytes. safetensors and h5py take part
where they are installed. On a real disk the disk is measured; the default is /dev/shm.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _measure import heading, in_process, interleave, machine, table, workspace

import raconvert.ra

Way = tuple[Callable[[str, Any], object], Callable[[str], Any]]
BASE = "bare open/write/read/close"
SMALL = 1 << 14  # bytes
SHAPES = {"10 floats": (10,), "28 x 28 bytes": (28, 28), "1000 x 1000 floats": (1000, 1000)}


def bare_write(path: str, array: Any) -> None:
    """Write the bytes, with a header's worth of zeros, by three system calls."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.writev(descriptor, (bytes(48 + 8 * array.ndim), array))
    os.close(descriptor)


def bare_read(path: str) -> Any:
    """Read the bytes by three system calls: small ones as bytes, large ones into new memory."""
    descriptor = os.open(path, os.O_RDONLY)
    found: Any = os.read(descriptor, SMALL)
    if len(found) == SMALL:
        found = np.empty(os.fstat(descriptor).st_size, "u1")
        os.preadv(descriptor, [found], 0)
    os.close(descriptor)
    return found


def pickle_write(path: str, array: Any) -> None:
    """Write with pickle, protocol 5."""
    with open(path, "wb") as file:
        pickle.dump(array, file, 5)


def pickle_read(path: str) -> Any:
    """Read with pickle."""
    with open(path, "rb") as file:
        return pickle.load(file)


def ways() -> dict[str, Way]:
    """Return the ways to write and read an array, each in the form its users know."""
    found: dict[str, Way] = {
        BASE: (bare_write, bare_read),
        "raconvert.ra": (raconvert.ra.write, raconvert.ra.read),
        "np.save, np.load": (np.save, np.load),
        "pickle": (pickle_write, pickle_read),
    }
    try:
        from safetensors.numpy import load_file, save_file
    except ImportError:
        pass
    else:
        found["safetensors"] = (lambda p, a: save_file({"a": a}, p), lambda p: load_file(p)["a"])
    try:
        import h5py
    except ImportError:
        pass
    else:
        found["h5py, a file each"] = (
            lambda p, a: _h5_write(h5py, p, a),
            lambda p: _h5_read(h5py, p),
        )
    return found


def _h5_write(h5py: Any, path: str, array: Any) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = array


def _h5_read(h5py: Any, path: str) -> Any:
    with h5py.File(path, "r") as file:
        return file["a"][()]


def main() -> None:
    """Measure writing and reading for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=2000, help="files per contender and round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "safetensors", "h5py")
    for name, shape in SHAPES.items():
        dtype = "u1" if "bytes" in name else "f4"
        array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
        count = options.count if array.nbytes < 1 << 20 else max(1, options.count // 100)
        with workspace(options.dir) as space:
            measure(name, array, count, space, options.rounds)


def measure(name: str, array: Any, count: int, space: str, rounds: int) -> None:
    """Write `count` new files, and read them, with every way; contents are checked at the end."""
    found = ways()
    files = places(space, found, count)

    def writing(way: str) -> None:
        write = found[way][0]
        for path in files[way]:
            write(path, array)

    def reading(way: str) -> None:
        read = found[way][1]
        for path in files[way]:
            read(path)

    heading(f"write {count} new files of {name}")
    contenders = {way: in_process(partial(writing, way)) for way in found}
    table(
        interleave(contenders, rounds, after=partial(remove, files)), BASE, memory=False, by="cpu"
    )
    for way in found:
        writing(way)
    heading(f"read {count} files of {name}")
    contenders = {way: in_process(partial(reading, way)) for way in found}
    table(interleave(contenders, rounds), BASE, memory=False, by="cpu")
    for way in found:
        assert way == BASE or np.array_equal(found[way][1](files[way][-1]), array), way


def places(space: str, found: dict[str, Way], count: int) -> dict[str, list[str]]:
    """Return the paths each way shall write, in a folder of its own."""
    files = {}
    for number, way in enumerate(found):
        folder = os.path.join(space, str(number))
        os.mkdir(folder)
        suffix = ".npy" if "np." in way else ".bin"  # np.save would add its own
        files[way] = [os.path.join(folder, f"{k}{suffix}") for k in range(count)]
    return files


def remove(files: dict[str, list[str]]) -> None:
    """Remove what was written, so that every round writes new files."""
    for path in itertools.chain(*files.values()):
        if os.path.exists(path):
            os.unlink(path)


if __name__ == "__main__":
    main()
