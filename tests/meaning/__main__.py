"""``python -m tests.meaning``: the law of meaning, over as many cases as are asked for."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from .judge import SILENT, alone, judged
from .readers import READERS

# suffix -> name, if it is another
FORMATS = {
    "h5": "hdf5", "nii": "nifti", "mha": "metaimage", "tif": "tiff", "jpg": "jpeg",
    "pnm": "netpbm", "cifar.bin": "cifar", "cdf": "netcdf3",
    "ome.tif": "ometiff", "ome.zarr": "omezarr", "wds.tar": "webdataset",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.meaning", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others follow")
    parser.add_argument(
        "--table", metavar="FILE", help="write each case to each format alone, and what is observed"
    )
    parser.add_argument(
        "--only", metavar="FORMAT", help="with --table: replace the rows of this format alone"
    )
    args = parser.parse_args()
    seeds = range(args.seed, args.seed + args.cases)
    if args.table:
        forms = [one for one in READERS if args.only in (None, FORMATS.get(one, one))]
        if not forms:
            parser.error(f"no format of READERS is called {args.only}")
        rows = observed(seeds, forms)
        path = Path(args.table)
        others = json.loads(path.read_text(encoding="utf-8")) if args.only else {}
        path.write_text(json.dumps({**others, **rows}, indent=1, sort_keys=True) + "\n")
        return 1 if any(SILENT in found for row in rows.values() for found in row.values()) else 0
    counts: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    faults = 0
    for seed in seeds:
        with room() as folder:
            try:
                verdict = judged(seed, folder)
            except Exception as error:  # noqa: BLE001 - any of it is a finding
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{last.filename}:{last.lineno}"
                print(f"seed {seed}: {type(error).__name__}: {error} ({where})")
                faults += 1
                continue
        unjudged = verdict.chain[-1] == "(unjudged)"
        counts["refused" if verdict.refused else "unjudged" if unjudged else "arrived"] += 1
        for (_, _, outcome), count in verdict.outcomes.items():
            outcomes[outcome] += count
        for fault in verdict.faults:
            print(f"seed {seed}: {' '.join(verdict.chain)}: {fault}")
        faults += bool(verdict.faults)
    print(f"{args.cases} cases: {dict(counts)}, facts: {dict(outcomes)}, {faults} with a violation")
    return 1 if faults else 0


def observed(seeds: range, forms: Iterable[str] = READERS) -> dict[str, dict[str, list[str]]]:
    """The outcomes of each fact in each format: format -> fact -> outcomes that were met."""
    rows: dict[str, dict[str, list[str]]] = {}
    for form in forms:
        if form == "nc":  # HDF5, read by xarray
            continue
        found: dict[str, list[str]] = rows.setdefault(FORMATS.get(form, form), {})
        for seed in seeds:
            with room() as folder:
                for _, fact, outcome in alone(seed, form, folder).outcomes:
                    found[fact] = sorted({*found.get(fact, []), outcome})
    return rows


@contextlib.contextmanager
def room() -> Iterator[Path]:
    """A folder in memory, if there is one."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if Path(shared).is_dir() else None) as name:
        yield Path(name)


if __name__ == "__main__":
    sys.exit(main())
