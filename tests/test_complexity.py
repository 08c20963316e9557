"""Work and memory grow with the file and no faster, for every parser and its worst known shapes.

Nothing here is timed. Counted are calls of Python and C functions, and the peak of memory, for a
shape of some size and of twice that size (`shapes.SHAPES`): 4 and 8 KB, and the largest pair up to
512 KB and 1 MB for which there are not too many calls to count. What is quadratic in one call of
C (a regular expression, a concatenation, a dictionary of equal hashes) is not seen by that: for it,
a large file of each shape has a limit of CPU seconds that is generous when work is proportional,
and that anything quadratic misses by far.
"""

from __future__ import annotations

import contextlib
import cProfile
import gc
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import shapes
from cases import FULL, some
from raconvert.plugins import npy
from raconvert.plugins.nrrd import header as nrrd_header
from shapes import SHAPES

import raconvert
from raconvert.cli import main
from raconvert.errors import RaconvertError
from raconvert.files.limits import DEFAULT

GROWTH = 2.5  # how much more twice the file may cost
SMALL = 4 << 10  # bytes of the smaller of two files
LARGEST = 512 << 10  # and of the smaller of two large ones
# That the larger one of these may take, going by the small ones; 100,000 takes some minutes more.
MOST_CALLS = int(os.environ.get("RACONVERT_COMPLEXITY_CALLS", "30000"))
SOME_CALLS = 10_000  # below, what every file costs outweighs what a large one costs more
SOME_MEMORY = 1 << 20
LARGE = 512 << 10
SECONDS = 10  # of CPU for a large file; none takes half of that
PEAK = 800 << 20  # of memory for a large file, with the interpreter and its libraries
MAX_TEXT = 64 * LARGE  # characters that `info` and `verify` print: some for each byte of a file


# Half of the shapes of each parser are doubled, the other half made large; in a full run all are both.
DOUBLED, ENLARGED = [], []
for _suffix in sorted({one.suffix for one in SHAPES.values()}):
    _names = [name for name, one in SHAPES.items() if one.suffix == _suffix]
    DOUBLED += some(_names, (len(_names) + 1) // 2, _suffix)
    ENLARGED += [name for name in _names if FULL or len(_names) == 1 or name not in DOUBLED]


def saved(folder: Path, suffix: str, made: bytes | dict[str, bytes]) -> Path:
    """Write the file of a shape, and what belongs to it; return the path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"x{suffix}"
    for name, data in ({"": made} if isinstance(made, bytes) else made).items():
        beside = name.removeprefix("/") if name.startswith("/") else path.name + name
        (folder / beside).write_bytes(data)
    return path


def work(path: Path) -> str:
    """Do what a user does with a file that somebody sent: look, verify, convert; return the text."""
    out = path.with_name("out.zip")
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        for words in (["info", str(path)], ["verify", str(path)], [str(path), "-o", str(out)]):
            main(words)
    out.unlink(missing_ok=True)
    return told.getvalue()


def cost(path: Path) -> tuple[int, int]:
    """Return the number of calls of Python and C functions, and the peak of memory."""
    gc.collect()
    profile = cProfile.Profile()
    tracemalloc.start()
    try:
        profile.runcall(work, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return sum(entry.callcount for entry in profile.getstats()), peak


def look(path: Path) -> tuple[int, int]:
    """Return the characters that `info` and `verify` print, and the number of calls in `info`."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        profile = cProfile.Profile()
        profile.runcall(main, ["info", str(path)])
        main(["verify", str(path)])
    return len(told.getvalue()), sum(entry.callcount for entry in profile.getstats())


@cache
def warm(suffix: str) -> None:
    """Do once for each kind of file whatever is imported or cached at first."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, make, _ in SHAPES.values():
            if kind == suffix:
                work(saved(Path(folder), suffix, make(600)))


def serve() -> None:
    """Read names of functions and paths; call each in a child forked from this warm process."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        function, path = json.loads(line)
        warm(Path(path).suffix)
        gc.freeze()  # a child that looks through what was there before copies every page of it
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, json.dumps(globals()[function](Path(path))).encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as file:
            answer = json.loads(file.read() or "[0, 0]")
        _, status, usage = os.wait4(child, 0)
        sys.stdout.write(json.dumps([*answer, status, usage.ru_maxrss << 10]) + "\n")
        sys.stdout.flush()


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[[str, Path], list[int]]]:
    """Give `ask(function, path)`: its two numbers, how the process ended, and its peak of memory.

    The processes have nothing of the tests before in them.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(raconvert.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, __file__],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def run(function: str, path: Path) -> list[int]:
            print(json.dumps([function, str(path)]), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


@pytest.mark.long
@pytest.mark.parametrize("name", DOUBLED)
def test_twice_the_file_costs_no_more_than_twice(
    name: str, tmp_path: Path, ask: Callable[[str, Path], list[int]]
) -> None:
    suffix, make, largest = SHAPES[name]

    def costs(*sizes: int) -> list[list[int]]:
        paths = [saved(tmp_path / f"{size}", suffix, make(size)) for size in sizes]
        return [ask("cost", path)[:2] for path in paths]

    small = min(SMALL, largest // 2)
    (calls, memory), (more_calls, more_memory) = costs(small, 2 * small)
    assert calls, "the process died"
    assert more_calls <= GROWTH * max(calls, SOME_CALLS)
    assert more_memory <= GROWTH * max(memory, SOME_MEMORY)
    size = affordable(small, more_calls - calls, largest // 2)
    if size <= small:
        return
    (calls, memory), (more_calls, more_memory) = costs(size, 2 * size)
    assert calls, "the process died"
    assert more_calls <= GROWTH * max(calls, SOME_CALLS), size
    assert more_memory <= GROWTH * max(memory, SOME_MEMORY), size


def affordable(small: int, calls: int, most: int) -> int:
    """The largest size of which a file of twice that is counted soon; `small` more take `calls`."""
    size = min(LARGEST, most)
    while size > small and calls * 2 * size // small > MOST_CALLS:
        size //= 2
    return size


@pytest.mark.long
@pytest.mark.parametrize("name", ENLARGED)
def test_a_large_file_takes_no_more_than_it_should(
    name: str, tmp_path: Path, ask: Callable[[str, Path], list[int]]
) -> None:
    suffix, make, largest = SHAPES[name]
    size = min(LARGE, largest)
    calls = ask("look", saved(tmp_path / "smaller", suffix, make(size // 16)))[1]
    large = saved(tmp_path / "large", suffix, make(size))
    text, more_calls, status, peak = ask("look", large)
    assert status == 0, f"ended by signal {os.WTERMSIG(status)}"
    assert more_calls <= GROWTH * 16 * max(calls, SOME_CALLS // 4)
    assert text <= MAX_TEXT
    assert peak <= PEAK


# Totals of one file ------------------------------------------------------------------------------

# what is limited -> the constant, a file that is just beyond it, and words of the refusal
LIMITS: dict[str, tuple[int, Callable[[int], tuple[str, bytes | dict[str, bytes]]], str]] = {
    "sidecar-bytes": (
        DEFAULT.document_bytes,
        lambda most: (".ra", shapes.described("#" * most)),
        "too large",
    ),
    "sidecar-values": (
        DEFAULT.document_values,
        lambda most: (".ra", shapes.described(f"attributes: {{k: [{'1,' * most}]}}\n")),
        "values",
    ),
    "sidecar-depth": (
        DEFAULT.nesting_levels,
        lambda most: (".ra", shapes.described(f"attributes: {{k: {'[' * most}{']' * most}}}\n")),
        "nested too deep",
    ),
    "npy-header-bytes": (
        DEFAULT.header_bytes,
        lambda most: (".npy", shapes.npy(" " * (most + 1))),
        "too long to be parsed safely",
    ),
    "npy-axes": (
        npy.header.MAX_RANK,
        lambda most: (".npy", shapes.npy(shapes.npy_of("'|u1'", f"({'1,' * (most + 1)})"), b"1")),
        "too many axes",
    ),
    "png-chunks": (
        DEFAULT.image_chunks,
        lambda most: (".png", shapes.png(shapes.chunk(b"abCd") * most, shapes.PIXEL)),
        "more than 200000 chunks",
    ),
    "nrrd-lines": (
        DEFAULT.header_lines,
        lambda most: (".nrrd", shapes.nrrd(*["#"] * most) + b"123"),
        "at most 65536 lines",
    ),
    "scidb-columns": (
        DEFAULT.structure_fields,
        lambda most: (".scidb", shapes.scidb_of_attributes(24 * (most + 1))),
        "more than 10000 attributes|too long|larger",
    ),
    "har-empty-headers": (
        DEFAULT.empty_headers,
        lambda most: (".har", shapes.har_of_empty_headers(12 * (most + 2))),
        "more than 100 headers hold nothing",
    ),
    "mat-depth": (
        DEFAULT.nesting_levels,
        lambda most: (".mat", shapes.mat_of_deep_cells(48 * (most + 1))),
        "at most 64 levels",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_totals_have_the_limits_that_the_code_states(name: str, tmp_path: Path) -> None:
    most, make, words = LIMITS[name]
    path = saved(tmp_path / "beyond", *make(most))
    with pytest.raises(RaconvertError, match=words):
        raconvert.info(path)


def test_every_shape_is_doubled_or_made_large() -> None:
    assert {*DOUBLED, *ENLARGED} == {*SHAPES}


@pytest.mark.parametrize("shape", ["nrrd_of_unknown_fields", "nrrd_of_repeated_fields"])
def test_notes_of_one_header_are_capped(shape: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "notes", ".nrrd", SHAPES[shape].make(4000))
    assert len(raconvert.info(path)["notes"]) == nrrd_header.MAX_NOTES + 1


if __name__ == "__main__":
    serve()
