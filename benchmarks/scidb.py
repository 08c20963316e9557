"""SciDB binary: raconvert against `np.fromfile` of the same bytes, a struct loop, and SciDB-Py.

    python benchmarks/scidb.py [--records 4000000] [--rounds 5] [--scidbpy PYTHON] [--dir /dev/shm]

Records of one width (int64, double null, int32; 21 bytes) and of differing width (int64, string
null, double). Compared are CPU seconds. Decoding means an array for every attribute and its nulls;
for `np.fromfile` the bytes only. Every contender is a new process that decodes the file several
times; the same process without decoding is taken off. The slow contenders decode a file of fewer
records (--few), and their time is scaled. SciDB-Py needs numpy below 2: --scidbpy, or
RACONVERT_SCIDBPY, is the Python of an environment that has it. Last, all is converted by the
command into a bundle and back, for the peak memory and the proof that the bytes are the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from filecmp import cmp
from statistics import median

from _measure import (
    RACONVERT,
    Sample,
    heading,
    interleave,
    machine,
    program,
    record,
    run,
    seconds,
    table,
    workspace,
)

SCHEMAS = {
    "fixed": "<a:int64 NOT NULL,b:double,c:int32 NOT NULL>[i=0:*]",
    "variable": "<a:int64 NOT NULL,s:string,d:double NOT NULL>[i=0:*]",
}

# What the others are compared with: a plain read, where records have one width.
BASES = {"fixed": "np.fromfile", "variable": "struct loop"}

GENERATE = """
import sys
import numpy as np
path, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(1)
BLOCK = 100_000
with open(path, "wb") as file:
    for start in range(0, count, BLOCK):
        n = min(BLOCK, count - start)
        if kind == "fixed":
            rows = np.empty(n, [("a", "<i8"), ("n", "u1"), ("b", "<f8"), ("c", "<i4")])
            rows["a"], rows["c"] = rng.integers(0, 1 << 60, n), rng.integers(0, 1 << 30, n)
            rows["n"], rows["b"] = np.where(rng.random(n) < 0.1, 0, 255), rng.random(n)
            file.write(rows.tobytes())
            continue
        for size in rng.integers(0, 20, n):
            row = np.zeros(1, [("a", "<i8"), ("n", "u1"), ("k", "<u4"), ("s", f"S{size + 1}"),
                               ("d", "<f8")])
            row["a"], row["n"], row["k"], row["s"], row["d"] = size, 255, size + 1, b"x" * size, 0.5
            file.write(row.tobytes())
"""

# Each decodes the file sys.argv[1] as the schema sys.argv[2], sys.argv[3] times.
DECODERS = {
    "np.fromfile": """
import sys
import numpy as np
for _ in range(int(sys.argv[3])):
    np.fromfile(sys.argv[1], "u1")
""",
    "raconvert": """
import sys
import raconvert, raconvert.arrays.blocks, raconvert.conversion.pipeline
from raconvert.plugins.scidb import reader
for _ in range(int(sys.argv[3])):
    raconvert.read(sys.argv[1], from_="scidb", in_opts={"schema": sys.argv[2]})
""",
    "raconvert, a[:]": """
import sys
import raconvert, raconvert.arrays.blocks, raconvert.conversion.pipeline
from raconvert.plugins.scidb import reader
for _ in range(int(sys.argv[3])):
    with raconvert.open(sys.argv[1], from_="scidb", in_opts={"schema": sys.argv[2]}) as bundle:
        kept = [array[:] for array in bundle.arrays]
""",
    "struct loop": """
import sys
from struct import Struct
fixed = Struct("<qBdi").unpack_from
head, tail = Struct("<qBI").unpack_from, Struct("<d").unpack_from
for _ in range(int(sys.argv[3])):
    data = open(sys.argv[1], "rb").read()
    at, rows = 0, []
    while at < len(data):
        if "string" in sys.argv[2]:
            a, null, size = head(data, at)
            text = data[at + 13 : at + 12 + size].decode()
            rows.append((a, null, text, *tail(data, at + 13 + size)))
            at += 21 + size
        else:
            rows.append(fixed(data, at))
            at += 21
""",
    "SciDB-Py": """
import sys
from scidbpy.schema import Schema
for _ in range(int(sys.argv[3])):
    Schema.fromstring(sys.argv[2]).frombytes(open(sys.argv[1], "rb").read())
""",
}
SLOW = ("struct loop", "SciDB-Py")


def main() -> None:
    """Generate, measure, check, and print both kinds of records."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=4_000_000, help="records of one width")
    parser.add_argument("--few", type=int, default=50_000, help="records for the slow contenders")
    parser.add_argument("--repeats", type=int, default=5, help="how often a process decodes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scidbpy", default=os.environ.get("RACONVERT_SCIDBPY"))
    parser.add_argument("--dir", help="where to work (default /dev/shm)")
    options = parser.parse_args()
    machine("numpy")
    for kind in SCHEMAS:
        with workspace(options.dir) as space:
            measure(kind, space, options)


def measure(kind: str, space: str, options: argparse.Namespace) -> None:
    """Measure one kind of records."""
    count = options.records if kind == "fixed" else options.records // 8
    path, few = os.path.join(space, "all.scidb"), os.path.join(space, "few.scidb")
    run(sys.executable, "-c", GENERATE, path, kind, str(count))
    run(sys.executable, "-c", GENERATE, few, kind, str(options.few))
    heading(f"{kind}: {count} records, {os.path.getsize(path) / 2**20:.1f} MiB")

    contenders = {}
    for name, code in DECODERS.items():
        python = options.scidbpy if name == "SciDB-Py" else sys.executable
        if not python:
            print("SciDB-Py is left out: name its Python with --scidbpy")
            continue
        file = few if name in SLOW else path
        for label, times in ((name, options.repeats), (f"{name}, start", 0)):
            contenders[label] = program(python, "-c", code, file, SCHEMAS[kind], str(times))
    samples = interleave(contenders, options.rounds)
    base = BASES[kind]
    scales = {
        name: (count / options.few if name in SLOW else 1) / options.repeats for name in DECODERS
    }
    others = net(samples, base, scales[base])
    print(f"{'one decode':15}  {'CPU':>9}  x {base} (min, median, max)")
    rows = {}
    for name in DECODERS:
        if name not in samples:
            continue
        mine = net(samples, name, scales[name])
        found = sorted(one / other for one, other in zip(mine, others, strict=True))
        rows[name] = {"cpu": mine, "cpu_ratio": found}
        line = f"{name:15}  {seconds(median(mine))}"
        print(f"{line}  {found[0]:9.3f} {median(found):9.3f} {found[-1]:9.3f}")
    record(base, rows, "cpu")
    print(f"the slow ones on {options.few} records, scaled; the start of each process taken off\n")
    there_and_back(kind, path, space, options)


def net(samples: dict[str, list[Sample]], name: str, scale: float) -> list[float]:
    """Return the CPU seconds of one decode of all records, round by round."""
    start = median(sample.cpu for sample in samples[f"{name}, start"])
    return [max(1e-6, whole.cpu - start) * scale for whole in samples[name]]


def there_and_back(kind: str, path: str, space: str, options: argparse.Namespace) -> None:
    """Convert into a bundle and back by the command; print times and peak memory."""
    folder, back = os.path.join(space, "bundle"), os.path.join(space, "back.scidb")
    schema = f"schema={SCHEMAS[kind]}"
    quiet = ("--overwrite", "--quiet")
    there = [*RACONVERT, path, "--in-opt", schema, "-o", f"{folder}/", *quiet]
    again = [*RACONVERT, folder, "-o", back, *quiet]
    run(*there)
    contenders = {
        "cp": program("cp", path, back + ".copy"),
        "scidb -> bundle": program(*there),
        "bundle -> scidb": program(*again),
    }
    table(interleave(contenders, options.rounds), "cp")
    if not cmp(path, back, shallow=False):
        raise SystemExit("what came back is not what was there")


if __name__ == "__main__":
    main()
