"""``python -m tests.chaos pool``: kill migrations of one engine in many places, and go on.

Each engine is a module of this package with ``cases()`` (in a fixed order, the most telling ones
first) and ``wrong(case, folder)``, which says what is wrong with how a case ends, or nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ENGINES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if not path.stem.startswith("_") and path.stem != "trees"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("engine", choices=ENGINES, help="whose processes are killed")
    parser.add_argument("--sample", type=int, metavar="N", help="the first N cases, not all")
    parser.add_argument("--case", help="one case, by its name")
    args = parser.parse_args()
    engine = import_module(f"tests.chaos.{args.engine}")
    chosen = [case for case in engine.cases() if args.case in (None, str(case))][: args.sample]
    failed = 0
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            wrong = engine.wrong(case, Path(folder))
        failed += bool(wrong)
        print(f"{case}: {wrong or 'as a run that nobody disturbs'}", flush=True)
    print(f"{len(chosen)} cases of {args.engine}, {failed} wrong")
    return bool(failed or not chosen)


if __name__ == "__main__":
    sys.exit(main())
