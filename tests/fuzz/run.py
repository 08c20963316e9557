"""The loop: inputs made and judged in a child, which may crash, hang or eat memory."""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from . import mutate
from .judge import judge
from .parsers import PARSERS, seeds

HERE = Path(__file__).resolve().parent
REGRESSIONS = HERE / "regressions"
SECONDS = 10  # of CPU for one input
ADDRESS_SPACE = 6 << 30
KEPT = 400  # inputs with an outcome that is new, at most


class Ran(NamedTuple):
    """What a run came to."""

    inputs: int
    findings: list[Path]


def main(words: list[str]) -> int:
    """Fuzz; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("parser", nargs="?", choices=PARSERS, help="which parser")
    parser.add_argument("--all", action="store_true", help="all of them, sharing the minutes")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--inputs", type=int, default=1 << 62, help="stop each after so many")
    parser.add_argument(
        "--seed", type=int, help="of the random numbers; default: another each time"
    )
    parser.add_argument("--engine", choices=["atheris", "own"], default=None,
                        help="atheris: guided by coverage; default for one parser where installed")  # fmt: skip
    parser.add_argument("--keep", default="fuzz-findings", help="folder for what is found")
    given = parser.parse_args(words)
    if given.all == (given.parser is not None):
        parser.error("name a parser, or --all")
    names = list(PARSERS) if given.all else [given.parser]
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 32)
    engine = given.engine or ("atheris" if not given.all and _has_atheris() else "own")
    print(f"seed {seed}, engine {engine}", flush=True)
    found = 0
    for name in names:
        loop = _guided if engine == "atheris" else fuzz
        ran = loop(name, 60 * given.minutes / len(names), given.inputs, seed, Path(given.keep))
        print(f"{name}: {ran.inputs} inputs, {len(ran.findings)} findings", flush=True)
        found += len(ran.findings)
    return 1 if found else 0


def _has_atheris() -> bool:
    from importlib.util import find_spec

    return find_spec("atheris") is not None


def fuzz(name: str, seconds: float, inputs: int, seed: int, keep: Path) -> Ran:
    """Fuzz one parser with our own loop; a child that dies is a finding, and the next goes on."""
    end = time.monotonic() + seconds
    done, findings = 0, []
    while time.monotonic() < end and done < inputs:
        with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:
            folder = Path(scratch)
            child = os.fork()
            if not child:
                _child(name, end, inputs - done, seed + done, folder)
            _, status = os.waitpid(child, 0)
            count = folder / "count"
            done += int(count.read_text() or 0) if count.exists() else 0
            why = _why(status, folder)
            if why is None:
                break
            findings.append(_kept(name, folder / "input", why, keep))
    return Ran(done, findings)


def _why(status: int, folder: Path) -> str | None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        slow = f"more than {SECONDS} seconds of CPU" if number == signal.SIGPROF else "a crash"
        return f"{slow} ({signal.Signals(number).name})"
    why = folder / "why"
    if why.exists():
        return why.read_text()
    return None if os.WEXITSTATUS(status) == 0 else "the child ended without a word"


def _kept(name: str, path: Path, why: str, keep: Path) -> Path:
    keep.mkdir(parents=True, exist_ok=True)
    data = path.read_bytes()
    kept = keep / f"{name}_{hashlib.sha256(data).hexdigest()[:12]}"
    kept.write_bytes(data)
    kept.with_suffix(".txt").write_text(why)
    print(f"{name}: {kept}: {why.strip().splitlines()[-1]:.300}", flush=True)
    return kept


def _child(name: str, end: float, inputs: int, seed: int, folder: Path) -> None:
    """Judge inputs until the time is over or one is a finding."""
    bounded()
    room = folder / "room"
    room.mkdir()
    code = 3
    try:
        _loop(name, end, inputs, random.Random(seed), folder, room)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def bounded() -> None:
    """Give this process its limit of memory, and make warnings of libraries quiet."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    warnings.simplefilter("ignore")


def _loop(name: str, end: float, inputs: int, rng: random.Random, folder: Path, room: Path) -> None:
    pool = seeds(name)
    known: set[str] = set()
    kept = 0
    for number in range(inputs):
        if time.monotonic() >= end:
            return
        data = made(name, pool, rng)
        (folder / "input").write_bytes(data)
        (folder / "count").write_text(str(number + 1))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        why, outcome = judge(name, data, room)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if why:
            (folder / "why").write_text(why)
            return
        told = re.sub(r"'.*'|[0-9]+", "", outcome[:400], flags=re.DOTALL)
        if told not in known and kept < KEPT:
            known.add(told)
            pool.append(data)
            kept += 1


def made(name: str, pool: list[bytes], rng: random.Random) -> bytes:
    """Return a changed seed: by what knows the format, blindly, or both."""
    data = rng.choice(pool)
    change = PARSERS[name].change
    if change is not None and rng.random() < 0.7:
        for _ in range(rng.choice((1, 1, 2))):
            try:
                data = change(data, rng, pool)
            except Exception:  # noqa: BLE001 - no file of this format any more
                return mutate.changed(data, rng, pool)
        return data
    return mutate.changed(data, rng, pool)


# Guided by coverage ------------------------------------------------------------------------------


def _guided(name: str, seconds: float, inputs: int, seed: int, keep: Path) -> Ran:
    """Fuzz one parser with atheris, in a process of its own."""
    import subprocess

    with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:
        corpus = Path(scratch) / "corpus"
        corpus.mkdir()
        for number, data in enumerate(seeds(name)):
            (corpus / f"{number:04}").write_bytes(data)
        command = [
            sys.executable, "-m", "tests.fuzz.guided", name, str(seed % (1 << 31)), scratch, str(corpus),
            f"-max_total_time={max(1, int(seconds))}", f"-timeout={SECONDS}", "-rss_limit_mb=2000",
            "-print_final_stats=1",
            f"-artifact_prefix={scratch}/found-", f"-seed={seed % (1 << 31) or 1}", "-max_len=65536",
            *([f"-runs={inputs}"] if inputs < 1 << 62 else []),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        count = re.search(r"stat::number_of_executed_units: *([0-9]+)", done.stderr)
        found = [
            _kept(name, path, done.stderr[-4000:], keep) for path in Path(scratch).glob("found-*")
        ]
        if done.returncode and not found:
            print(done.stderr[-4000:], file=sys.stderr)
            raise SystemExit(f"{name}: atheris failed")
        shutil.rmtree(corpus)
        return Ran(int(count[1]) if count else 0, found)
