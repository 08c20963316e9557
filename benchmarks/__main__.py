"""All tables by one command, each from its own program, with the peers measured in the same run.

    python -m benchmarks [--list] [--only NAME]... [--quick] [--json FILE] [--svg FOLDER]
    python -m benchmarks --json docs/performance/results.json --svg docs/performance
    python -m benchmarks --draw docs/performance/results.json --svg docs/performance

The second measures for the site, the third draws that again. What is kept and drawn names the
machine, the day and the versions. `--quick` takes small data and few rounds: it shows that
everything runs, in a few minutes, and its ratios are rough. Each program runs alone, too:
`python benchmarks/NAME.py --help`.

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

from benchmarks._results import Table, about, draw, installed, keep, losses, purpose

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
    result |= {"failed": failed, "slower": lost, "tables": tables}
    if options.json:
        keep(result, Path(options.json))
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
