"""Single damaged bits in the metadata of HDF5 files, of every version of the format.

Each file is read in another process than the test: what is looked for is its death. Structures with
a checksum are damaged with the checksum made right again in half of the cases, so that the damage
gets beyond it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import jld2_file as jld2
import numpy as np
import pytest
from cases import rounds
from h5py import h5d, h5p, h5s, h5t

from raconvert.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

LIBVERS = [("earliest", "v108"), ("v108", "v108"), ("v110", "v110"),
           ("v112", "v112"), ("v114", "v114"), ("latest", "latest")]  # fmt: skip

# Opens and decodes files; a line before and after each, so that a death shows which one it was.
LOOK = """
import json, sys
LIMIT = 64 << 20
from raconvert.errors import RaconvertError
from raconvert.conversion.read import open_bundle
from raconvert.conversion.unreadable import find
for path in sys.stdin.read().split("\\n"):
    print(json.dumps({"path": path}), flush=True)
    try:
        with open_bundle(path, max_memory=LIMIT) as bundle:
            find(bundle.arrays, LIMIT)
        outcome = "read"
    except RaconvertError as error:
        outcome = type(error).__name__
    except Exception as error:
        outcome = "FOREIGN " + repr(error)
    print(json.dumps({"outcome": outcome}), flush=True)
"""


def seed_file(path: Path, libver: tuple[str, str]) -> Path:
    """Write one dataset of every layout, index, filter and kind of type, and many links."""
    with h5py.File(path, "w", libver=libver) as file:
        values = np.arange(24, dtype="i4").reshape(4, 6)
        file.create_dataset("plain", data=values)
        file.create_dataset("one", data=values, chunks=(4, 6))
        file.create_dataset("fixed", data=values, chunks=(2, 3))
        file.create_dataset("gzip", data=values, chunks=(2, 3), compression=1, fletcher32=True)
        file.create_dataset("first", data=values, chunks=(2, 3), maxshape=(None, 6))
        file.create_dataset("last", data=values, chunks=(2, 3), maxshape=(4, None), shuffle=True)
        file.create_dataset("both", data=values, chunks=(2, 3), maxshape=(None, None))
        file.create_dataset(
            "deep", data=values, chunks=(2, 3), maxshape=(None, None), scaleoffset=0
        )
        file.create_dataset("none", (40, 60), "f8", chunks=(2, 3), maxshape=(None, 60))
        file.create_dataset("words", data=["one", "three"], dtype=h5py.string_dtype())
        file.create_dataset("flags", data=np.array([True, False]))
        file.create_dataset("pairs", data=np.zeros(3, [("a", "i2"), ("b", "f8", (2,))]))
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_layout(h5d.COMPACT)
        space = h5s.create_simple((3,))
        compact = h5d.create(file.id, b"compact", h5t.STD_I16LE, space, plist)
        compact.write(h5s.ALL, h5s.ALL, np.arange(3, dtype="i2"))
        file["plain"].attrs["units"] = "m"
        for number in range(12):  # more than eight: in dense storage
            file["fixed"].attrs[f"attribute {number}"] = np.arange(number)
        many = file.create_group("many", track_order=True)
        for number in range(20):
            many[f"link {number}"] = h5py.SoftLink("/plain")
        file["deep group/inside/x"] = values[0]
        file["scale"] = np.arange(4.0)
        file["scale"].make_scale("time")
        file["plain"].dims[0].attach_scale(file["scale"])
        layout = h5py.VirtualLayout((4, 6), "i4")
        layout[:] = h5py.VirtualSource(".", "plain", (4, 6))
        if libver[1] not in ("earliest", "v108"):
            file.create_virtual_dataset("virtual", layout)
    return path


def structures(data: bytes) -> list[tuple[int, int]]:
    """Return (begin, end) of what looks like metadata: after each signature, up to the next."""
    marks = (b"\x89HDF", b"OHDR", b"OCHK", b"TREE", b"HEAP", b"SNOD", b"GCOL", b"BTHD", b"BTLF",
             b"BTIN", b"FRHP", b"FHDB", b"FHIB", b"FSHD", b"FSSE", b"FAHD", b"FADB", b"EAHD",
             b"EAIB", b"EASB", b"EADB", b"SMTB", b"SMLI")  # fmt: skip
    found = sorted({at for mark in marks for at in places(data, mark)})
    ends = [*found[1:], len(data)]
    return [(at, min(end, at + 600)) for at, end in zip(found, ends, strict=True)]


def places(data: bytes, mark: bytes) -> list[int]:
    found, at = [], data.find(mark)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + 1)
    return found


def summed(data: bytes) -> list[tuple[int, int]]:
    """Return (begin, place of the checksum) of the structures that end with one that fits."""
    found = []
    for begin, end in structures(data):
        for at in range(begin + 8, min(end, len(data) - 4) + 1):
            if data[at : at + 4] == jld2.lookup3(data[begin:at]).to_bytes(4, "little"):
                found.append((begin, at))
                break
    return found


def flipped(data: bytes, parts: list[tuple[int, int]], sums: dict[int, int],
            chance: random.Random) -> bytes:  # fmt: skip
    """Return the file with one bit of one structure changed; sometimes a whole byte of it."""
    begin, end = chance.choice(parts)
    damaged = bytearray(data)
    at = chance.randrange(begin, end)
    if chance.random() < 0.7:
        damaged[at] ^= 1 << chance.randrange(8)
    else:
        damaged[at] = chance.choice([0, 1, 127, 128, 255])
    if begin in sums and at < sums[begin] and chance.random() < 0.6:
        place = sums[begin]
        damaged[place : place + 4] = jld2.lookup3(bytes(damaged[begin:place])).to_bytes(4, "little")
    return bytes(damaged)


def look(paths: list[Path]) -> list[tuple[Path, str]]:
    """Return path and outcome of each file; after a death it goes on with the next file."""
    found: list[tuple[Path, str]] = []
    while len(found) < len(paths):
        rest = paths[len(found) :]
        done = subprocess.run(
            [sys.executable, "-c", LOOK], input="\n".join(map(str, rest)), text=True,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        outcomes = [line["outcome"] for line in lines if "outcome" in line]
        found += zip(rest, outcomes, strict=False)
        if len(outcomes) < len(rest):
            found.append((rest[len(outcomes)], f"DIED {done.returncode} {done.stderr[-500:]}"))
    return found


def damaged_files(folder: Path, libver: tuple[str, str], seed: int, count: int) -> list[Path]:
    data = seed_file(folder / "seed.h5", libver).read_bytes()
    parts, sums = structures(data), dict(summed(data))
    chance = random.Random(seed)
    paths = []
    for number in range(count):
        paths.append(folder / f"{number}.h5")
        paths[-1].write_bytes(flipped(data, parts, sums, chance))
    return paths


@pytest.mark.parametrize("libver", LIBVERS, ids="-".join)
def test_no_flipped_bit_ends_the_process(libver: tuple[str, str], tmp_path: Path) -> None:
    """60 files of each version in a full run; FLIPS in the environment: another number."""
    count = int(os.environ.get("FLIPS", str(rounds(60, 20))))
    paths = damaged_files(tmp_path, libver, 1, count)
    found = look([tmp_path / "seed.h5", *paths])
    assert found[0][1] == "read"
    bad = [(path.name, outcome) for path, outcome in found if outcome.startswith(("DIED", "FOR"))]
    assert bad == []


@pytest.mark.parametrize("name", ["bt2_bad.h5", "hdf5_segv.h5", "idx_bad.h5"])
@pytest.mark.parametrize("verb", ["info", "verify", "digest", "convert"])
def test_files_that_ended_the_process(
    corpus: Callable[..., Path], name: str, verb: str, tmp_path: Path
) -> None:
    path = corpus("review", "attack", name)
    extra = ["-o", str(tmp_path / "x.npz")] if verb == "convert" else []
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", verb, str(path), *extra],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 4)
    assert done.returncode == 0 or str(path) in done.stdout + done.stderr


def test_reused_strings_are_refused_by_us(
    corpus: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus("review", "wrong", "var-length-strings-reused.hdf5")
    assert main(["info", str(path)]) == 1
    error = capsys.readouterr().err
    assert "global heap size is too small" in error
    assert str(path) in error


# --- faults of the library that are public (raconvert.inspect.advisories) -------------------------


def chunks_of_another_rank(path: Path, rank: int) -> bytes:
    """CVE-2026-19025: the library loops for ever, or divides by zero."""
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(64, dtype="i4").reshape(8, 8), chunks=(4, 4))
        file.create_dataset("whole", data=np.arange(5))
    return path.read_bytes().replace(b"\3\2\3", bytes((3, 2, rank + 1)), 1)


def nbit_without_values(path: Path, count: int) -> bytes:
    """CVE-2026-19026: the library reads values that are not there."""
    tid = h5t.py_create(np.dtype("<i4")).copy()
    tid.set_precision(20)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((4,))
    plist.set_filter(5, 0, ())
    with h5py.File(path, "w", libver="earliest") as file:
        space = h5s.create_simple((8,))
        dataset = h5d.create(file.id, b"x", tid, space, plist)
        dataset.write(space, space, np.arange(8, dtype="i4"))
        file.create_dataset("whole", data=np.arange(5))
    data = path.read_bytes()
    at = data.index(b"nbit") - 2
    return data[:at] + count.to_bytes(2, "little") + data[at + 2 :]


def fill_value_of_negative_size(path: Path, size: int) -> bytes:
    """CVE-2026-19024: the library follows a pointer that is not there."""
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", shape=(8,), dtype="<i4", fillvalue=7, chunks=(2,))
        file.create_dataset("whole", data=np.arange(5))
    whole = b"\1" + (4).to_bytes(4, "little") + (7).to_bytes(4, "little")
    data = path.read_bytes()
    assert whole in data
    return data.replace(whole, b"\1" + size.to_bytes(4, "little", signed=True) + whole[5:])


@pytest.mark.parametrize("verb", ["info", "verify", "digest", "convert"])
@pytest.mark.parametrize(
    ("make", "value"),
    [(chunks_of_another_rank, 1), (nbit_without_values, 0), (nbit_without_values, 4),
     (fill_value_of_negative_size, -2), (fill_value_of_negative_size, -(1 << 31))],
    ids=lambda part: getattr(part, "__name__", None),
)  # fmt: skip
def test_public_faults_cost_one_array(
    make: Callable[[Path, int], bytes], value: int, verb: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.h5"
    path.write_bytes(make(tmp_path / "whole.h5", value))
    words = ["-o", str(tmp_path / "x.npz"), "--allow", "arrays"] if verb == "convert" else []
    done = subprocess.run(
        [sys.executable, "-m", "raconvert", verb, str(path), *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1)
    assert done.returncode or verb in ("info", "convert")
    assert ("'x'" if verb == "convert" else "whole") in done.stdout + done.stderr
    assert "SIG" not in done.stdout + done.stderr
    if verb == "convert":
        assert np.load(tmp_path / "x.npz")["whole"].tolist() == [0, 1, 2, 3, 4]
