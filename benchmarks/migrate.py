"""Many small files of one tree: `migrate`, `convert` in a loop, and a bare loop by hand.

    python benchmarks/migrate.py [--count 20000] [--rounds 5] [--dir /dev/shm] [--old CHECKOUT]
                                 [--dask] [--shortcut]

The base opens, reads, makes the RA header of each NPY header, writes and renames, file by file, in
this process. `migrate` does that and all the rest: the walk, the plan, the journal, digests, names
that are never replaced. `--old` is a checkout of an older raconvert whose `convert` takes part (of
commit 5e34d38, before there was a fast lane), on every tenth file. With `--dask`, a second table
compares as many workers of a Dask scheduler on this machine, that run already, with the pool; each
migration has an interpreter of its own, and what it imports before is not measured; `local:N` is
measured with all that it starts. With `--shortcut` the same ways are measured with the shortcut of
`raconvert.conversion.converter` closed, so that its gain is seen, and `np.load` with a bare write.
Peak memory is
that of a program of its own. On a real disk the disk is measured; the default is /dev/shm.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable

from _measure import (
    ENVIRONMENT,
    Sample,
    heading,
    in_process,
    interleave,
    machine,
    run,
    table,
    workspace,
)

BARE = "bare loop"
FOLDER = 1000  # files
MAKE = """
import os, sys
import numpy as np
root, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    folder = f"{root}/{number // 1000:03d}"
    os.makedirs(folder, exist_ok=True)
    np.save(f"{folder}/{number:06d}.npy", np.arange(736, dtype="f4").reshape(16, 46) + number)
"""
OLD = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import raconvert
assert raconvert.__file__.startswith(sys.argv[1]), raconvert.__file__
pairs = [line.split("\\t") for line in open(sys.argv[2]).read().splitlines()]
wall, cpu = time.perf_counter(), time.process_time()
for source, target in pairs:
    raconvert.convert(source, target)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
MIGRATE = "import sys, raconvert; raconvert.migrate(sys.argv[1], sys.argv[2], to='ra', jobs=1)"
APART = """
import json, sys, time
import raconvert
options = json.loads(sys.argv[3])
if "scheduler_file" in options:
    import distributed
wall, cpu = time.perf_counter(), time.process_time()
result = raconvert.migrate(sys.argv[1], sys.argv[2], to="ra", **options)
assert not result.failed, result.failed[:3]
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
Pairs = list[tuple[str, str]]


def bare(pairs: Pairs) -> None:
    """Convert NPY of float32 in C order to RA, and check nothing."""
    for source, target in pairs:
        with open(source, "rb") as file:
            data = file.read()
        begin = 10 + int.from_bytes(data[8:10], "little")
        text = data[10:begin].decode()
        at = text.index("'shape': (") + 10
        shape = [int(n) for n in text[at : text.index(")", at)].split(",") if n.strip()]
        size = len(data) - begin
        fields = (0, 3, 4, size, len(shape), *reversed(shape))
        head = struct.pack(f"<8s{len(fields)}Q", b"rawarray", *fields)
        with open(f"{target}.tmp", "wb", buffering=0) as file:
            file.write(head + data[begin:])
        os.rename(f"{target}.tmp", target)


def loop(pairs: Pairs) -> None:
    """Convert with one call for each file."""
    import raconvert

    for source, target in pairs:
        raconvert.convert(source, target)


def by_numpy(pairs: Pairs) -> None:
    """Read each array with numpy, and write its bytes behind as many zeros as a header has."""
    import numpy as np

    for source, target in pairs:
        values = np.load(source)
        with open(target, "wb") as file:
            file.write(bytes(48 + 8 * values.ndim) + values.tobytes())


def ordinarily(function: Callable[[], object]) -> Callable[[], None]:
    """A function with the shortcut closed: every file goes the ordinary way."""
    from unittest.mock import patch

    from raconvert.conversion.converter import Converter, forget

    def call() -> None:
        forget()
        with patch.object(Converter, "_learn", lambda *_: None):
            function()

    return call


def whole(root: str, target: str, jobs: int) -> None:
    """Convert the tree."""
    import raconvert

    result = raconvert.migrate(root, target, to="ra", jobs=jobs)
    assert not result.failed, result.failed[:3]


def old(checkout: str, pairs: Pairs, listing: str) -> Sample:
    """Convert every tenth file with an older version; the times are those of all."""
    some = pairs[::10]
    with open(listing, "w", encoding="utf-8") as file:
        file.write("\n".join(map("\t".join, some)))
    command = [sys.executable, "-P", "-c", OLD, os.path.abspath(checkout), listing]
    said = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    wall, cpu = (float(word) * len(pairs) / len(some) for word in said.stdout.split())
    return Sample(wall, cpu, 0)


def apart(root: str, target: str, **options: object) -> Sample:
    """Convert the tree in an interpreter of its own; the times are those of the call."""
    command = [sys.executable, "-c", APART, root, target, json.dumps(options)]
    said = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    wall, cpu = map(float, said.stdout.split())
    return Sample(wall, cpu, 0)


def dask(folder: str, workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """Start a scheduler and workers; its file, and the processes."""
    file = os.path.join(folder, "scheduler.json")
    quiet = {"env": ENVIRONMENT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = [sys.executable, "-m", "dask"]
    host = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = [subprocess.Popen([*words, "scheduler", *host, "--scheduler-file", file], **quiet)]
    one = [*words, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard",
           "--no-nanny", "--local-directory", folder]  # fmt: skip
    started += [subprocess.Popen(one, **quiet) for _ in range(workers)]
    return file, started


def compare_engines(root: str, target: str, options: argparse.Namespace) -> None:
    """Print the table of the pool and of Dask."""
    folder = os.path.dirname(root)
    file, started = dask(folder, options.jobs)
    pool = f"migrate --jobs {options.jobs}"
    contenders = {
        pool: lambda: apart(root, target, jobs=options.jobs),
        f"migrate --scheduler-file, {options.jobs} workers": lambda: apart(
            root, target, scheduler_file=file
        ),
        f"migrate --scheduler local:{options.jobs}": lambda: apart(
            root, target, scheduler=f"local:{options.jobs}"
        ),
    }
    try:
        shutil.rmtree(target, ignore_errors=True)
        samples = interleave(
            contenders, options.rounds, after=lambda: shutil.rmtree(target, ignore_errors=True)
        )
        table(samples, pool, memory=False)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main() -> None:
    """Measure one tree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    parser.add_argument("--old", help="checkout of an older version")
    parser.add_argument("--jobs", type=int, default=2, help="workers of the second migration")
    parser.add_argument("--dask", action="store_true", help="compare Dask with the pool, too")
    parser.add_argument("--shortcut", action="store_true", help="measure without it, too")
    options = parser.parse_args()
    machine("numpy")
    with workspace(options.dir) as space:
        root, target = os.path.join(space, "npy"), os.path.join(space, "ra")
        run(sys.executable, "-c", MAKE, root, str(options.count))
        folders = sorted(os.listdir(root))
        pairs = [
            (os.path.join(root, folder, name), os.path.join(target, folder, name[:-4] + ".ra"))
            for folder in folders
            for name in sorted(os.listdir(os.path.join(root, folder)))
        ]

        def clear() -> None:
            shutil.rmtree(target, ignore_errors=True)
            for folder in folders:
                os.makedirs(os.path.join(target, folder))

        contenders = {
            BARE: in_process(lambda: bare(pairs)),
            "migrate, one process": in_process(lambda: whole(root, target, 1)),
            f"migrate --jobs {options.jobs}": in_process(lambda: whole(root, target, options.jobs)),
            "convert() in a loop": in_process(lambda: loop(pairs)),
        }
        if options.shortcut:
            contenders |= {
                "convert() in a loop, no shortcut": in_process(ordinarily(lambda: loop(pairs))),
                "migrate, one process, no shortcut": in_process(
                    ordinarily(lambda: whole(root, target, 1))
                ),
                "np.load and a bare write": in_process(lambda: by_numpy(pairs)),
            }
        if options.old:
            listing = os.path.join(space, "listing")
            contenders["older convert() in a loop"] = lambda: old(options.old, pairs, listing)
        clear()
        heading(f"{len(pairs)} NPY files of {os.path.getsize(pairs[0][0])} bytes to RA in {space}")
        table(interleave(contenders, options.rounds, after=clear), BARE, memory=False)
        if options.dask:
            compare_engines(root, target, options)
        begin = time.perf_counter()
        sample = run(sys.executable, "-c", MIGRATE, root, target)
        print(
            f"peak memory of a migration in a program of its own: {sample.rss / 2**20:.1f} MiB "
            f"({time.perf_counter() - begin:.1f} s, start-up included)"
        )


if __name__ == "__main__":
    main()
