"""All tables by one command, each from its own program, with the peers measured in the same run.

    python -m benchmarks [--list] [--only NAME]... [--quick] [--json FILE] [--svg FOLDER]

`--quick` takes small data and few rounds: it shows that everything runs, in about two minutes, and
its ratios are rough. The programs stay what they are: `python benchmarks/NAME.py --help`.

At the end every row of raconvert that is slower than what it is compared with is named. Bases that
do less than the whole work (reading the bytes, an empty program) are floors, not competitors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._svg import bars

HERE = Path(__file__).resolve().parent
# name of the program -> options of a quick run
PROGRAMS = {
    "reading": "--mib 4 --rounds 3",
    "png_stack": "--count 400 --peer-count 100 --rounds 3",
    "startup": "--rounds 3",
    "small_ra": "--count 100 --rounds 3",
    "large_copy": "--mib 64 --sparse-gib 1 --rounds 3",
    "hdf5_copy": "--mib 64 --gzip-mib 16 --rounds 3",
    "mat": "--mib 16 --rounds 3",
    "nrrd": "--mib 32 --rounds 3",
    "har": "--mb 16 --rounds 3",
    "scidb": "--records 400000 --few 4000 --repeats 3 --rounds 2",
    "transpose": "--mib 16 --rounds 2",
    "references": "--files 20 --gib 1 --rounds 2",
    "leb128": "--count 20000 --rounds 2",
    "migrate": "--count 400 --rounds 2",
    "migrate_memory": "--mib 32",
    "remote": "--mib 32",
}
# What people install for the peers.
PEERS = (
    "numpy", "h5py", "hidefix", "scipy", "mat73", "pillow", "imageio", "imagecodecs", "pynrrd",
    "simpleitk", "safetensors", "zarr", "tensorstore", "harpy3",
)  # fmt: skip
FLOORS = {
    "bare open/write/read/close", "bare loop", "bytes", "np.fromfile", "only read the files",
    "python -c pass", "stat", "zlib, nothing written",
}  # fmt: skip
SLOWER = 1.05  # from which on a ratio counts as slower
OURS = "raconvert"

Table = dict[str, Any]


def main() -> int:
    """Run the programs that were chosen; 1 if one of them failed."""
    options = arguments()
    if options.list:
        for name in PROGRAMS:
            print(f"{name:16} {(HERE / f'{name}.py').read_text().split(chr(10), 1)[0][3:]}")
        return 0
    installed = peers()
    for name, found in installed.items():
        print(f"{name:12} {found or 'skipped: not installed'}")
    tables: list[Table] = []
    failed = []
    for name in options.only or PROGRAMS:
        print(f"\n=== {name}\n", flush=True)
        made, code = run(name, quick=options.quick, folder=options.dir)
        tables += made
        failed += [name] if code else []
    lost = [*losses(tables)]
    print("\n=== Slower than what they are compared with\n")
    for one in lost:
        print(f"{one['table']}: {one['row']} takes {one['ratio']:.2f} of the time of {one['peer']}")
    print("" if lost else "none")
    if failed:
        print(f"failed: {', '.join(failed)}")
    if options.json:
        result = {"quick": options.quick, "cpus": os.cpu_count(), "system": os.uname().release,
                  "python": sys.version.split()[0], "peers": installed, "failed": failed,
                  "slower": lost, "tables": tables}  # fmt: skip
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if options.svg:
        draw(tables, Path(options.svg))
    return bool(failed)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    assert __doc__
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="name the programs, and run none")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="this one; repeatable")
    parser.add_argument("--quick", action="store_true", help="small data, few rounds")
    parser.add_argument("--json", metavar="FILE", help="write all tables there")
    parser.add_argument("--svg", metavar="FOLDER", help="draw a picture for each program there")
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    return parser.parse_args()


def peers() -> dict[str, str | None]:
    """The version of each peer; None if it is not installed."""
    found: dict[str, str | None] = {"cp": "of this system"}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    elsewhere = os.environ.get("RACONVERT_SCIDBPY")
    found["SciDB-Py"] = "in an environment of its own" if elsewhere else None
    return found


def run(name: str, *, quick: bool, folder: str | None) -> tuple[list[Table], int]:
    """Run one program; return its tables and its exit code."""
    command = [sys.executable, str(HERE / f"{name}.py"), *(PROGRAMS[name].split() if quick else [])]
    if folder and name not in ("leb128", "remote"):  # which write no files
        command += ["--dir", folder]
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as log:
        started = time.monotonic()
        path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "RACONVERT_TABLES": log.name, "PYTHONPATH": path}
        code = subprocess.run(command, env=environment, check=False).returncode
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
        return [{"program": name, **json.loads(line)} for line in log], code


def losses(tables: list[Table]) -> Iterator[dict[str, Any]]:
    """Yield each row of raconvert that is slower than the base, or that a peer is faster than."""
    for table in tables:
        base, title = table["base"], f"{table['program']}, {table['title']}"
        for name, row in table["rows"].items():
            ratio = median(row[f"{table['by']}_ratio"])
            if name == base or (base in FLOORS or name in FLOORS):
                continue
            if name.startswith(OURS) and ratio > SLOWER:
                yield {"table": title, "row": name, "peer": base, "ratio": ratio}
            elif base.startswith(OURS) and not name.startswith(OURS) and ratio < 1 / SLOWER:
                yield {"table": title, "row": base, "peer": name, "ratio": 1 / ratio}


def draw(tables: list[Table], folder: Path) -> None:
    """Write a picture for each program, of all its tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in {table["program"]: None for table in tables}:
        groups = []
        for table in tables:
            if table["program"] == name:
                field = f"{table['by']}_ratio"
                found = {row: sorted(one[field]) for row, one in table["rows"].items()}
                rows = [(row, one[0], median(one), one[-1]) for row, one in found.items()]
                kind = {"cpu": "CPU time", "wall": "time"}[table["by"]]
                groups.append((f"{table['title']}: {kind} / {table['base']}", rows))
        (folder / f"{name}.svg").write_text(bars(name, groups))


if __name__ == "__main__":
    sys.exit(main())
