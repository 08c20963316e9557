"""``python -m tests.faults``: every fault, or a sample; exit code 1 if anything is left wrong."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import needs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N faults, not all")
    parser.add_argument("--case", action="append", default=[], help="one writer (repeatable)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()
    if "FAULT_SHIM" not in os.environ:
        return again()
    from .engine import run

    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), args.sample, args.case)
    if args.json:
        print(json.dumps(result))
    else:
        counts = ", ".join(f"{count} {how}" for how, count in sorted(result["outcomes"].items()))
        print(
            f"{result['injected']} of {result['possible']} faults in {result['cases']} cases:",
            counts,
        )
        print(*result["wrong"], f"{len(result['wrong'])} wrong", sep="\n")
    return bool(result["wrong"])


def again() -> int:
    """Run once more, with the shim loaded."""
    gcc = needs.program("gcc")
    if gcc is None:
        print("no gcc that works here; install it to inject faults", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        shim = f"{folder}/shim.so"
        words = [gcc, "-shared", "-fPIC", "-O2", "-o", shim, str(HERE / "shim.c"), "-ldl"]
        subprocess.run(words, check=True)
        environment = {
            **os.environ,
            "LD_PRELOAD": shim,
            "FAULT_SHIM": "1",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "tests.faults", *sys.argv[1:]]
        return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
