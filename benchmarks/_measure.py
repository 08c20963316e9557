"""What the benchmarks share: interleaved runs, medians of ratios, CPU time and peak memory.

Every contender runs once per round, the order is reversed in every second round, and a ratio is
formed inside a round, so that a machine that becomes slower or faster meanwhile changes little. One
more round, at the beginning, is not counted.

Programs are run as child processes and measured with wait4. A child's peak memory is never below
that of the process that starts it, so this module and its callers import nothing large.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

Sample = namedtuple("Sample", "wall cpu rss")  # seconds, seconds, bytes
Contender = Callable[[], Sample]

RACONVERT = [sys.executable, "-m", "raconvert"]
# Compiled modules are kept, as in every installation; the uncounted round writes them.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

_about = {"title": ""}  # what the next tables are about


def run(*command: str) -> Sample:
    """Run a program to its end; stop the benchmark with its output if it fails."""
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        child = subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            log.seek(0)
            text = log.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(command)[:500]}\nexit code {child.returncode}\n{text}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def program(*command: str) -> Contender:
    """Return the contender that runs a program."""
    return lambda: run(*command)


def python(code: str, *arguments: str) -> Contender:
    """Return the contender that runs a piece of Python in a new interpreter."""
    return program(sys.executable, "-c", code, *arguments)


# Shifts and sums on one register: what a processor does by itself, without memory or system
LOOP = """
#include <stdint.h>
int main(void) {
    uint64_t x = 88172645463325252ull, sum = 0;
    for (long round = 0; round < 100000000; round++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        sum += x;
    }
    return sum == 1;
}
"""
IN_C = "loop in C"


def loop_in_c(space: str) -> dict[str, Contender]:
    """Return the contender that runs a loop in C, by its name; none without a compiler.

    A ratio to it travels between machines where a ratio to something of Python does not.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    source, made = os.path.join(space, "loop.c"), os.path.join(space, "loop")
    with open(source, "w") as file:
        file.write(LOOP)
    run(compiler, "-O2", "-o", made, source)
    return {IN_C: program(made)}


def beside_the_loop(samples: dict[str, list[Sample]], *names: str) -> None:
    """Print some contenders divided by the loop in C, which leaves the samples."""
    runs = samples.pop(IN_C, None)
    if runs:
        heading(f"{_about['title'].partition(':')[0]}, beside a loop in C")
        table({IN_C: runs, **{name: samples[name] for name in names}}, IN_C, by="cpu")


def in_process(function: Callable[[], object]) -> Contender:
    """Return the contender that calls a function in this process; its memory is not measured."""

    def measure() -> Sample:
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        return Sample(time.perf_counter() - wall, time.process_time() - cpu, 0)

    return measure


def interleave(
    contenders: dict[str, Contender], rounds: int, after: Callable[[], object] | None = None
) -> dict[str, list[Sample]]:
    """Run all contenders in every round; `after` is called, unmeasured, after each single run."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        names = list(contenders) if number % 2 else list(reversed(contenders))
        for name in names:
            sample = contenders[name]()
            if number:
                samples[name].append(sample)
            if after is not None:
                after()
    return samples


def ratios(samples: dict[str, list[Sample]], name: str, base: str, field: str) -> list[float]:
    """Return contender / base of one field ("wall", "cpu"), round by round."""
    return [
        getattr(mine, field) / getattr(other, field)
        for mine, other in zip(samples[name], samples[base], strict=True)
    ]


def middle(samples: list[Sample], field: str) -> float:
    """Return the median of one field."""
    return median(getattr(sample, field) for sample in samples)


def heading(text: str) -> None:
    """Print what the next tables are about."""
    _about["title"] = re.sub(r" in \S*raconvert-benchmark-\S+", "", text)
    print(text)


def record(base: str, rows: dict[str, dict[str, Any]], by: str, title: str | None = None) -> None:
    """Keep a table for `python -m benchmarks`, in the file that it names: one line of JSON."""
    if path := os.environ.get("RACONVERT_TABLES"):
        kept = {
            "title": (title or _about["title"]).rstrip(" ,"),
            "base": base,
            "by": by,
            "rows": rows,
        }
        with open(path, "a") as file:
            file.write(json.dumps(kept) + "\n")


def record_bytes(title: str, base: str, rows: dict[str, int]) -> None:
    """Keep a table of numbers of bytes, divided by those of its base."""
    kept = {name: {"memory": [n], "memory_ratio": [n / rows[base]]} for name, n in rows.items()}
    record(base, kept, "memory", title)


def table(
    samples: dict[str, list[Sample]], base: str, *, memory: bool = True, by: str = "wall"
) -> None:
    """Print one line per contender: medians, and the ratio to `base` as min / median / max.

    `by` is the time that counts, `wall` or `cpu`; both are printed.
    """
    rows = {}
    for name, runs in samples.items():
        own: dict[str, Any] = {f: [getattr(one, f) for one in runs] for f in ("wall", "cpu")}
        own |= {f"{f}_ratio": ratios(samples, name, base, f) for f in ("wall", "cpu")}
        rows[name] = own | ({"peak_memory": middle(runs, "rss")} if memory else {})
    record(base, rows, by)
    width = max(map(len, samples))
    head = f"{'':{width}}  {'wall':>9}  {'cpu':>9}  {'wall / base':^21}  {'cpu / base':^21}"
    print(head + ("  peak memory" if memory else ""))
    for name, runs in samples.items():
        line = f"{name:{width}}  {seconds(middle(runs, 'wall'))}  {seconds(middle(runs, 'cpu'))}"
        for field in ("wall", "cpu"):
            found = sorted(ratios(samples, name, base, field))
            line += f"  {found[0]:6.2f} {median(found):6.2f} {found[-1]:6.2f} "
        if memory:
            line += f"  {middle(runs, 'rss') / 2**20:7.1f} MiB"
        print(line)
    print(f"base: {base}; ratios are min, median, max of {len(samples[base])} interleaved rounds")
    if memory:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"peak memory includes that of this program, {own:.1f} MiB, as a lower bound")
    print()


def seconds(value: float) -> str:
    """Return a time in nine columns, in seconds, milliseconds or microseconds."""
    for factor, unit in ((1, "s "), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1 or unit == "us":
            break
    return f"{value * factor:6.2f} {unit}"


@contextmanager
def workspace(folder: str | None) -> Iterator[str]:
    """Yield a new folder below `folder`, else on /dev/shm where there is one; remove it after."""
    parent = folder or ("/dev/shm" if os.path.isdir("/dev/shm") else None)
    path = tempfile.mkdtemp(prefix="raconvert-benchmark-", dir=parent)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def machine(*packages: str) -> None:
    """Print what was measured where."""
    from importlib.metadata import PackageNotFoundError, version

    from raconvert import __version__

    found = [f"Python {sys.version.split()[0]}", f"raconvert {__version__}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    print(f"{os.cpu_count()} CPUs, {os.uname().sysname} {os.uname().release}; {', '.join(found)}\n")
