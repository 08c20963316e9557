"""Damaged files of every parser, in one harness: bytes that are changed, and files that are cut off.

    python -m tests.damage                          # 400 changes and every cut of each parser's seeds
    python -m tests.damage har mat --changes 2000   # more of some; prints what is wrong

The seeds are those of the fuzzer that are read whole, and what must hold is what `fuzz.judge` says. An
array that is read of a file that was cut off must be one of the whole file. The tests judge a sample, the same each time.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))  # as pytest finds the helper modules

from fuzz.judge import MAX_MEMORY, MAX_READ, judge, place, told
from fuzz.parsers import PARSERS, SPLIT, seeds

import raconvert
from raconvert.errors import RaconvertError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES, CUTS = 400, 1 << 16  # of each parser, at most, by the command
ODD = (0, 1, 2, 32, 127, 128, 255)  # bytes that mean something somewhere
# Ways to read a format beside the usual one.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "har": [{"solution": "headers"}],
    "mat": [{"char": "units", "sparse": "parts"}],
}
# Damaged or not, what is read in this way can be written, and is then read again.
REWRITTEN = {"har": {"solution": "headers"}}
# libhdf5 may end the process: tests/plugins/test_hdf5_flips.py reads in others.
IN_OTHER_PROCESSES = {"hdf5"}
# Parsers of files of which nothing tells that they were cut off: lines of a sidecar, the last number
# of a text (NRRD, MetaImage) or data found from the end of a file (NRRD), records without bounds
# (SciDB, CIFAR), rows of a table (CSV); `detect` has files of all of them.
# The tests of these formats know which cuts can be told.
WITHOUT_AN_END = {"csv", "sidecar", "nrrd", "metaimage", "scidb", "cifar", "tfrecord", "detect"}
HDF5 = b"\x89HDF\r\n\x1a\n"  # MAT 7.3 has it too, and is damaged by test_mat_hostile.py
HERE = [name for name in PARSERS if name not in IN_OTHER_PROCESSES]


class Damaged(NamedTuple):
    """A damaged copy of a seed."""

    what: str
    seed: bytes
    data: bytes


def good(name: str) -> list[bytes]:
    """Return the seeds of a parser that are read, not those that are hostile already."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            seed
            for seed in seeds(name)
            if HDF5 not in seed
            and not isinstance(told(place(name, seed, Path(folder)), PARSERS[name].from_), str)
        ]


def changed(files: list[bytes], count: int, seed: object = 0) -> Iterator[Damaged]:
    """Yield copies of the files in turn, one to five bytes of each replaced."""
    rng = random.Random(str(seed))
    for number in range(count):
        whole = files[number % len(files)]
        data = bytearray(whole)
        end = rng.choice((64, len(data), len(data)))  # headers matter more than elements
        at = [rng.randrange(min(len(data), end)) for _ in range(rng.choice((1, 1, 2, 5)))]
        for place_ in at:
            data[place_] = rng.choice((*ODD, data[place_] ^ 1 << rng.randrange(8)))
        yield Damaged(f"seed {number % len(files)} with bytes {at} changed", whole, bytes(data))


def cut(files: list[bytes], count: int, seed: object = 0) -> Iterator[Damaged]:
    """Yield files that end early, at most `count`; those of several files are cut in the last."""
    lengths = [(number, length) for number, whole in enumerate(files)
               for length in range(whole.rfind(SPLIT) + len(SPLIT) if SPLIT in whole else 0, len(whole))]  # fmt: skip
    if count < len(lengths):
        lengths = sorted(random.Random(str(seed)).sample(lengths, count))
    for number, length in lengths:
        yield Damaged(f"seed {number} cut to {length}", files[number], files[number][:length])


def problems(name: str, cases: Iterator[Damaged], outcomes: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with how damaged files are taken; `outcomes` counts what became of them."""
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder, again = Path(scratch) / "in", Path(scratch) / "out"
        folder.mkdir()
        again.mkdir()
        for case in cases:
            is_cut = len(case.data) < len(case.seed)
            for options in ({}, *OPTIONS.get(name, ())):
                why, outcome = judge(name, case.data, folder, options)
                outcomes[outcome.partition(":")[0]] += 1
                if why is None and not is_cut and options == REWRITTEN.get(name):
                    why = _written_again(folder / PARSERS[name].names[-1], again, options)
                if why is None and outcome == "read" and is_cut and name not in WITHOUT_AN_END:
                    why = _of_another_file(name, case, folder, options)
                if why is not None:
                    yield f"{name}: {case.what} {options or ''}: {why}"


def _arrays(path: Path, from_: str | None, options: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the names and digests of the arrays that can be read."""
    found = told(path, from_, options)
    return set() if isinstance(found, str) else {one[:2] for one in found if isinstance(one, tuple)}


def _of_another_file(name: str, case: Damaged, folder: Path, options: dict[str, Any]) -> str | None:
    """Say which arrays of a file that was cut off are not those of the whole one."""
    from_ = PARSERS[name].from_
    found = _arrays(place(name, case.data, folder), from_, options)
    whole = _arrays(place(name, case.seed, folder), from_, options)
    return f"other arrays: {sorted(found - whole)}" if found - whole else None


def _written_again(path: Path, folder: Path, options: dict[str, Any]) -> str | None:
    """Write what is read of a file, and say what is read otherwise then."""
    there = folder / path.name
    try:
        with raconvert.open_bundle(path, in_opts=options, max_memory=MAX_MEMORY) as bundle:
            whole = [a for a in bundle.arrays if a.problem is None]
            if len(whole) < len(bundle.arrays) or any(a.nbytes > MAX_READ for a in whole):
                return None
            before = _arrays(path, None, options)
            raconvert.write(there, bundle, overwrite=True)
    except RaconvertError:
        return None
    after = _arrays(there, None, options)
    return None if before == after else f"written and read again: {sorted(before ^ after)}"


def main(words: list[str]) -> int:
    """Judge all damage of the parsers that are named; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=__doc__)
    parser.add_argument("parsers", nargs="*", help=f"of {', '.join(HERE)}; default: all")
    parser.add_argument("--changes", type=int, default=CHANGES, help=f"default {CHANGES}")
    parser.add_argument("--cuts", type=int, default=CUTS, help=f"at most; default {CUTS}")
    given = parser.parse_args(words)
    wrong = 0
    for name in given.parsers or HERE:
        files, outcomes = good(name), Counter[str]()
        for cases in (changed(files, given.changes), cut(files, given.cuts)):
            for text in problems(name, cases, outcomes):
                wrong += 1
                sys.stdout.write(f"{text}\n")
        sys.stdout.write(f"{name}: {len(files)} seeds, {dict(outcomes)}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
