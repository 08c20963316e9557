"""A look at a file and a page about it: time, memory, and what is largest and slowest of each kind.

    python benchmarks/looking.py [--mib 256] [--arrays 30000] [--corpus FOLDER] [--rounds 3]

`raconvert peek` and `raconvert info --html` of the files in `fixtures/` and of the corpus, and of
files that are large or have many parts: 8 TB that were never written, 10 GB at a URL, an
object of a bucket, thousands of arrays or chunks. Of each kind the slowest is shown; what is beyond
a limit even in the best of all rounds is marked.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import _measure
from _measure import RACONVERT, Sample, machine, record, seconds, workspace

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

from tests.remote import s3server, webserver  # noqa: E402 - found by the line above
from tests.remote.s3server import Bucket  # noqa: E402

LIMITS = {"peek": 0.5, "page": 1.0}  # seconds
MEMORY = 150 << 20
LIMIT = "the limit"
DRAWN = ("large: 8 TB", "large: 10GB")  # beside those that are beyond a limit
SUFFIXES = frozenset((  # of files that some format reads
    "ra", "npy", "npz", "nrrd", "nhdr", "nii", "gz", "har", "sl4", "shk", "prm", "mat", "h5",
    "hdf5", "jld2", "nc", "png", "jpg", "bmp", "tif", "pgm", "scidb", "bin", "mha", "mhd", "idx",
    "safetensors",
))  # fmt: skip
MAKE = """
import os, struct, sys
import h5py, numpy as np, scipy.io, zarr
import raconvert

folder, mib, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.chdir(folder)
rng = np.random.default_rng(1)
T = 1 << 40

def hole(name, header, nbytes):
    with open(name, "wb") as file:
        file.write(header)
        file.truncate(len(header) + nbytes)

def npy(shape, descr):
    text = str({"descr": descr, "fortran_order": False, "shape": shape})
    return b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", 118) + f"{text:<117}\\n".encode()

def ra(*dims):
    return struct.pack(f"<8s{5 + len(dims)}Q", b"rawarray", 0, 3, 4, 4 * int(np.prod(dims)),
                       len(dims), *dims)

hole("8 TB.ra", ra(1024, 1024, 2 * T >> 20), 8 * T)
hole("8 TB line.ra", ra(2 * T), 8 * T)
hole("8 TB.npy", npy((2 * T >> 20, 1024, 1024), "<f4"), 8 * T)
hole("8 TB F.npy", npy((1 << 20, 2 << 20), "<f4").replace(b"False", b"True "), 8 * T)
hole("8 TB.nrrd", b"NRRD0004\\ntype: float\\ndimension: 3\\nsizes: 1024 1024 2097152\\n"
     b"endian: little\\nencoding: raw\\n\\n", 8 * T)
hole("10GB.ra", ra(1000, 1000, 2500), 10**10)
hole("10GB.npy", npy((2500, 1000, 1000), "<f4"), 10**10)
hole("60000 pictures.npy", npy((60000, 28, 28), "|u1"), 60000 * 784)
size = mib << 20
volume = rng.integers(0, 4000, (size >> 19, 512, 512), "i2")
np.savez_compressed("volume packed.npz", volume=volume)
np.savez("volume.npz", volume=volume)
raconvert.write("volume.ra", volume)
raconvert.write("volume.png", volume[:, ::2].reshape(-1, 8192).astype("u2")[:8192])
raconvert.write("volume.nii", volume)
raconvert.convert("volume.ra", "volume.nrrd", out_opts={"encoding": "gzip"})
raconvert.convert("volume.ra", "volume.mha")
scipy.io.savemat("volume v7.mat", {"volume": volume}, do_compression=True)
with h5py.File("volume.h5", "w") as file:
    file.create_dataset("volume", data=volume, chunks=(1, 512, 512), compression="gzip")
with h5py.File("one chunk.h5", "w") as file:
    file.create_dataset("volume", data=volume[:64], chunks=volume[:64].shape, compression="gzip")
with h5py.File("chunks.h5", "w") as file:
    file.create_dataset("x", data=np.zeros((50_000, 64), "f4"), chunks=(1, 64), compression="gzip")
zarr.create_array("chunks.zarr", shape=(2 * many, 64), chunks=(2, 64), dtype="f4")[:] = 1.0
small = {f"a{n}": np.arange(3.0) + n for n in range(many)}
scipy.io.savemat("arrays v6.mat", small)
scipy.io.savemat("arrays v7.mat", small, do_compression=True)
scipy.io.savemat("arrays v4.mat", small, format="4")
with h5py.File("arrays.h5", "w") as file:
    for name, values in small.items():
        file[name] = values
np.savez("arrays.npz", **small)
np.savez_compressed("arrays packed.npz", **small)
raconvert.convert("arrays.npz", "arrays.safetensors")
for suffix in ("zip", "tar"):
    raconvert.convert("arrays.npz", f"arrays.{suffix}")
raconvert.write("arrays.har", {f"A{n:03x}": np.ones(5, "f4") for n in range(min(many, 4000))})
raconvert.write("large.har", {"BIG": np.ones((size >> 10, 256), "f4")})
group = zarr.open_group("arrays.zarr", mode="w")
for name in list(small)[: many // 10]:
    group.create_array(name, data=small[name])
"""


def main() -> None:
    """Make the files, look at all, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=256, help="size of the volumes")
    parser.add_argument("--arrays", type=int, default=30_000, help="of those of many arrays")
    parser.add_argument("--corpus", default=os.environ.get("RACONVERT_CORPUS"), metavar="FOLDER")
    parser.add_argument("--files", type=int, default=4, help="of each suffix, the largest")
    parser.add_argument("--all", action="store_true", help="a line for every file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy", "h5py", "zarr", "s3fs", "moto")
    with workspace(options.dir) as space, ExitStack() as servers:
        _measure.run(sys.executable, "-c", MAKE, space, str(options.mib), str(options.arrays))
        found = measured(
            sources(space, options.corpus, options.files, servers), space, options.rounds
        )
    told(found, every=options.all)


def sources(
    space: str, corpus: str | None, most: int, servers: ExitStack
) -> Iterator[tuple[str, str]]:
    """Yield what is looked at, with its kind."""
    for name in sorted(os.listdir(space)):
        yield f"large: {name}", os.path.join(space, name)
    web = servers.enter_context(webserver.running(Path(space)))
    yield "large: 10GB.ra by http", web.url("10GB.ra")
    yield "large: 10GB.npy by http", web.url("10GB.npy")
    store = servers.enter_context(s3server.running())
    _measure.ENVIRONMENT.update(store.env)
    bucket = store.bucket()
    for name in ("volume.ra", "volume.h5"):
        # In a copy of this process: what it once needed counts as needed by all it starts.
        copy = get_context("fork").Process(target=stored, args=(bucket, name, Path(space, name)))
        copy.start()
        copy.join()
        yield f"large: {name} in a bucket", bucket.url(name)
    for folder in (HERE.parents[1] / "fixtures", *([Path(corpus)] if corpus else [])):
        kinds: dict[str, list[Path]] = {}
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix.lower().lstrip(".") in SUFFIXES:
                kinds.setdefault(path.suffix.lower(), []).append(path)
        for kind, paths in sorted(kinds.items()):
            paths.sort(key=lambda path: (-path.stat().st_size, path))
            readable = (path for path in paths if is_readable(path))
            yield from ((kind, str(path)) for path in islice(readable, most))


def stored(bucket: Bucket, name: str, path: Path) -> None:
    """Store a file in a bucket."""
    bucket.put(name, path.read_bytes())


Row = dict[str, list[Sample]]  # of "peek" and "page"


def measured(
    files: Iterator[tuple[str, str]], space: str, rounds: int
) -> dict[tuple[str, str], Row]:
    """Look at every file."""
    found: dict[tuple[str, str], Row] = {}
    page = ["--html", "-o", os.path.join(space, "page.html"), "--overwrite"]
    for kind, path in files:
        ways = {"peek": ["peek", path, "--color", "always", "--graphics", "blocks"],
                "page": ["info", path, *page]}  # fmt: skip
        row: Row = {}
        for way, words in ways.items():
            samples = [_measure.run(*RACONVERT, *words) for _ in range(rounds)]
            row[way] = samples
        found[kind, path] = row
    return found


def is_readable(path: Path) -> bool:
    """True if peek can show a file; what is damaged on purpose is left out."""
    command = [*RACONVERT, "peek", str(path)]
    return not subprocess.run(command, capture_output=True, check=False).returncode


def told(found: dict[tuple[str, str], Row], *, every: bool) -> None:
    """Print the slowest of each kind; keep what is large or beyond a limit as a table."""
    kinds: dict[str, list[tuple[str, Row]]] = {}
    for (kind, path), row in found.items():
        kinds.setdefault(kind, []).append((path, row))
    beyond = 0
    tables: dict[str, dict[str, Any]] = {
        way: {LIMIT: limited(limit, limit, limit)} for way, limit in LIMITS.items()
    }
    limits = ", ".join(f"{way} {limit} s" for way, limit in LIMITS.items())
    print(f"{len(found)} files; limits: {limits}, {MEMORY >> 20} MiB\n")
    others: list[Row] = []
    for kind, rows in kinds.items():
        rows.sort(key=lambda one: -best(one[1]["page"], "cpu"))
        for number, (path, row) in enumerate(rows):
            over = any(is_beyond(row[way], limit) for way, limit in LIMITS.items())
            beyond += over
            name = kind if kind.startswith("large") else f"{kind} {os.path.basename(path)}"
            if over or kind.startswith(DRAWN):
                for way, limit in LIMITS.items():
                    tables[way][f"raconvert {way}, {name}"] = share(row[way], limit)
            else:
                others.append(row)
            if over or every or not number:
                line = "   ".join(shown(way, row[way]) for way in LIMITS)
                print(f"{'BEYOND ' * over}{name:44} {line}")
    for way, limit in LIMITS.items():
        slowest = max((row[way] for row in others), key=lambda one: best(one, "cpu"), default=None)
        if slowest:
            name = f"raconvert {way}, the slowest of {len(others)} others"
            tables[way][name] = share(slowest, limit)
    for way, limit in LIMITS.items():
        record(LIMIT, tables[way], "cpu", f"{way}, divided by its limit of {limit} s")
    print(f"\n{beyond} of {len(found)} beyond a limit")


def best(samples: list[Sample], field: str) -> float:
    """The least of one field: what a look takes when nobody else wants the processors."""
    return float(min(getattr(sample, field) for sample in samples))


def share(samples: list[Sample], limit: float) -> dict[str, Any]:
    """What a look takes of its limit."""
    return limited(best(samples, "wall"), best(samples, "cpu"), limit)


def is_beyond(samples: list[Sample], limit: float) -> bool:
    """True if no round was within the limits of time and memory."""
    return best(samples, "wall") > limit or best(samples, "rss") > MEMORY


def shown(way: str, samples: list[Sample]) -> str:
    """The times and the memory of one way to look."""
    wall, cpu = (seconds(best(samples, field)) for field in ("wall", "cpu"))
    return f"{way} {wall} wall {cpu} cpu {best(samples, 'rss') / 2**20:4.0f} MiB"


def limited(wall: float, cpu: float, limit: float) -> dict[str, Any]:
    """A row of a table: seconds, and what they are of a limit."""
    return {"wall": [wall], "cpu": [cpu], "wall_ratio": [wall / limit], "cpu_ratio": [cpu / limit]}


if __name__ == "__main__":
    main()
