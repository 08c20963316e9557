"""All tables by one command, each from its own program, with the peers measured in the same run.

    python -m benchmarks [--list] [--only NAME]... [--quick] [--json FILE] [--svg FOLDER]
    python -m benchmarks --json docs/performance/results.json --svg docs/performance
    python -m benchmarks --draw docs/performance/results.json --svg docs/performance

The second measures for the site, the third draws that again. What is kept and drawn names the
machine, the day and the versions. `--quick` takes small data and few rounds: it shows that
everything runs, in a few minutes, and its ratios are rough. `--only` with a FILE that is there
replaces the tables of that program. Each runs alone, too: `python benchmarks/NAME.py --help`.

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
from pathlib import Path

from benchmarks._results import Result, Table, about, draw, installed, keep, losses, purpose

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
    "looking": "--mib 4 --arrays 100 --files 0 --rounds 1",
}


def main() -> int:
    """Run the programs that were chosen; 1 if one of them failed."""
    options = arguments()
    if options.list:
        for name in PROGRAMS:
            print(f"{name:16} {purpose(name)}")
        return 0
    if options.draw:
        draw(json.loads(Path(options.draw).read_text(encoding="utf-8")), Path(options.svg))
        return 0
    peers = installed()
    result = about(quick=options.quick, peers=peers)
    for name, found in peers.items():
        print(f"{name:12} {found or 'skipped: not installed'}")
    tables = kept(options, result)
    failed = []
    for name in options.only or PROGRAMS:
        print(f"\n=== {name}\n", flush=True)
        made, code = run(name, quick=options.quick, folder=options.dir)
        tables = in_order([*(one for one in tables if one["program"] != name), *made])
        failed += [name] if code else []
        result |= {"failed": failed, "slower": [*losses(tables)], "tables": tables}
        if options.json:  # after each: hours are not lost by the last one
            keep(result, Path(options.json))
    print("\n=== Slower than what they are compared with\n")
    for one in result["slower"]:
        print(f"{one['table']}: {one['row']} takes {one['ratio']:.2f} of the time of {one['peer']}")
    print("" if result["slower"] else "none")
    if failed:
        print(f"failed: {', '.join(failed)}")
    if options.svg:
        draw(result, Path(options.svg))
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
    parser.add_argument("--draw", metavar="FILE", help="draw what --json kept; measure nothing")
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    if options.draw and not options.svg:
        parser.error("--draw needs --svg FOLDER, where the pictures go")
    return options


def kept(options: argparse.Namespace, result: Result) -> list[Table]:
    """With --only, the tables that the file of --json has already, if they are comparable."""
    path = Path(options.json or "")
    if not (options.only and path.is_file()):
        return []
    earlier = json.loads(path.read_text(encoding="utf-8"))
    for key in ("quick", "machine", "python", "raconvert", "peers"):
        if earlier[key] != result[key]:
            raise SystemExit(
                f"{path} has tables that were measured otherwise ({key}: {earlier[key]}, now "
                f"{result[key]}): name another file, or measure all"
            )
    return earlier["tables"]


def in_order(tables: list[Table]) -> list[Table]:
    """The tables in the order of the programs."""
    return sorted(tables, key=lambda one: [*PROGRAMS].index(one["program"]))


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


if __name__ == "__main__":
    sys.exit(main())
