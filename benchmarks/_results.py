"""What `python -m benchmarks` measured: kept as JSON, drawn, and told as a page."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._measure import seconds
from benchmarks._svg import Group, Row, bars, ratio

Table = dict[str, Any]
Result = dict[str, Any]

HERE = Path(__file__).resolve().parent
# What people install for the peers.
PEERS = (
    "numpy", "h5py", "hidefix", "scipy", "mat73", "pillow", "imageio", "imagecodecs", "pynrrd",
    "simpleitk", "safetensors", "zarr", "tensorstore", "harpy3",
)  # fmt: skip
# Bases that do less than the whole work.
FLOORS = {
    "bare open/write/read/close", "bare loop", "bytes", "np.fromfile", "only read the files",
    "python -c pass", "stat", "zlib, nothing written", "loop in C",
}  # fmt: skip
LIMIT = "the limit"  # a base that is a number of seconds
# What depends on the machine, although it is a ratio
STAYS = {
    "png_stack": "These ratios do not travel: how fast a processor inflates, and how fast it runs "
    "Python, differ by themselves. What travels is the ratio to a loop in C.",
    "startup": "These ratios do not travel: how long Python takes to start depends on its build, "
    "its packages and the disk. What travels is the ratio to a loop in C.",
}
SLOWER = 1.05  # from which on a ratio counts as slower
# How the names of the rows of raconvert begin.
OURS = (
    "raconvert", "python -m raconvert", "convert(", "migrate", "refs", "verify", "decode",
    "scidb ->", "bundle ->",
)  # fmt: skip
# What counts in a table -> what its ratios are of, and which side is the good one.
MEASURED = {
    "cpu": ("CPU time", "lower is faster"),
    "wall": ("Time", "lower is faster"),
    "memory": ("Bytes", "lower is less"),
}


def about(*, quick: bool, peers: dict[str, str | None]) -> Result:
    """When, on what machine, and with what this is measured."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        "machine": f"{os.cpu_count()} CPUs ({processor()}), {memory()} of memory, "
        f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "raconvert": version("raconvert"),
        "peers": peers,
    }


def processor() -> str:
    """The name of the processor, as far as the system says it."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def memory() -> str:
    """The memory of the machine."""
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def installed() -> dict[str, str | None]:
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


def losses(tables: Iterable[Table]) -> Iterator[dict[str, Any]]:
    """Yield each row of raconvert that is slower than the base, or that a peer is faster than."""
    for table in tables:
        base, title = table["base"], f"{table['program']}, {table['title']}"
        for name, row in table["rows"].items():
            found = median(row[f"{table['by']}_ratio"])
            if name == base or (base in FLOORS or name in FLOORS):
                continue
            ours = [one.startswith(OURS) for one in (name, base)]
            if ours == [True, False] and found > SLOWER:
                yield {"table": title, "row": name, "peer": base, "ratio": found}
            elif ours == [False, True] and found < 1 / SLOWER:
                yield {"table": title, "row": base, "peer": name, "ratio": 1 / found}


def keep(result: Result, path: Path) -> None:
    """Write all as JSON, with a table in a line."""
    head = {name: value for name, value in result.items() if name != "tables"}
    tables = ",\n".join(json.dumps(shortened(table)) for table in result["tables"])
    text = json.dumps(shortened(head), indent=1).removesuffix("\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{text},\n "tables": [\n{tables}\n]}}\n', encoding="utf-8")


def shortened(value: Any) -> Any:
    """The same with numbers of five digits: more were not measured."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def draw(result: Result, folder: Path) -> None:
    """Write a picture for each program, of all its tables, and `results.md` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in {table["program"]: None for table in result["tables"]}:
        tables = [table for table in result["tables"] if table["program"] == name]
        groups = [group(table) for table in tables if len(table["rows"]) > 1]  # with a peer
        text = bars(
            f"{name}: {purpose(name)}".replace("`", ""),
            groups,
            [*([STAYS[name]] if name in STAYS else []), conditions(result), versions(result)],
        )
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    (folder / "results.md").write_text(page(result), encoding="utf-8")


def group(table: Table) -> Group:
    """The rows of a table as bars."""
    by, base = table["by"], table["base"]
    kind, better = MEASURED[by]
    rows = []
    for name, row in table["rows"].items():
        found = sorted(row[f"{by}_ratio"])
        rows.append(Row(name, found[0], median(found), found[-1], took(row, by), role(name)))
    when = f". Measured {table['measured']}" if "measured" in table else ""
    divisor = base if base == LIMIT else f"that of “{base}”"
    return Group(table["title"], f"{kind} divided by {divisor}; {better}{when}", rows)


def took(row: dict[str, Any], by: str) -> str:
    """The middle one of what was measured, with its unit; and the most memory."""
    values = row.get(by)
    if by == "memory":
        return size(median(row[by]))
    parts = [" ".join(seconds(median(values)).split()).replace("us", "µs")] if values else []
    return ", ".join([*parts, *([size(row["peak_memory"])] if row.get("peak_memory") else [])])


def size(nbytes: float) -> str:
    """A number of bytes, in MiB."""
    return f"{nbytes / 2**20:,.{0 if nbytes >= 10 << 20 else 2}f} MiB"


def role(name: str) -> str:
    """Which colour a bar gets."""
    if name.startswith(OURS):
        return "ours"
    return "floor" if name in FLOORS else "other"


def purpose(name: str) -> str:
    """The first line of a program."""
    return (HERE / f"{name}.py").read_text(encoding="utf-8").split("\n", 1)[0][3:]


def conditions(result: Result) -> str:
    """When and where, in a line."""
    how = "A quick run (small data, few rounds): its ratios are rough. " if result["quick"] else ""
    return f"{how}{result['date']}, {result['machine']}."


def versions(result: Result) -> str:
    """What was compared, in a line; what is not installed takes no part."""
    numpy = result["peers"]["numpy"]
    return f"Python {result['python']}, raconvert {result['raconvert']}, numpy {numpy}."


def page(result: Result) -> str:
    """What was measured with what, and where raconvert is slower, as Markdown."""
    lines = [
        "<!-- Written by `python -m benchmarks --svg`, from results.json. -->",
        "# The last measurement",
        "",
        conditions(result),
        versions(result),
        "",
        "The [pictures](../performance.md) show all of it; `results.json` has every round.",
        "",
        *([f"These ended with an error: {', '.join(result['failed'])}.", ""]
          if result["failed"] else []),
        "## With what",
        "",
        "| | version |",
        "|---|---|",
        *(f"| {name} | {found or 'not installed, left out'} |"
          for name, found in result["peers"].items()),
        "",
        "## Where raconvert is slower",
        "",
    ]  # fmt: skip
    slower = sorted(result["slower"], key=lambda one: -one["ratio"])
    if not slower:
        return "\n".join([*lines, "Nowhere, of what was measured.", ""])
    lines += [
        "Of all rows those that take more than "
        f"{SLOWER} times as long as a peer that does the same work:",
        "",
        "| | | takes | of the time of |",
        "|---|---|---|---|",
    ]
    for one in slower:
        cells = (one["table"], f"`{one['row']}`", ratio(one["ratio"]), f"`{one['peer']}`")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])
