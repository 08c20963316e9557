"""Hostile and damaged HDF5 files: what they name, what they declare, and what they make the library do.

Each is read in a process of its own: a crash, a hang or gigabytes of memory are what is looked for.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import jld2_file as jld2
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from raconvert.plugins import hdf5

from raconvert.arrays.blocks import as_ndarray
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge, Unsafe
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_MEMORY = 64 << 20

# Reads and decodes every file named; prints one JSON line for each: outcome, message, peak memory.
LOOK = """
import json, sys, time
from raconvert.plugins import hdf5
from raconvert.errors import RaconvertError
from raconvert.files.source import Source
from raconvert.testing import decode
for path in sys.argv[2:]:
    print(json.dumps({"path": path, "begin": True}), flush=True)
    start = time.monotonic()
    try:
        bundle = hdf5.read(Source(path, max_memory=int(sys.argv[1])))
        for array in bundle.arrays:  # which refuses what is declared, before there is room for it
            array.data
        arrays = decode(bundle)
        found = {"outcome": "read", "message": str([a.shape for a in arrays])}
    except RaconvertError as error:
        found = {"outcome": type(error).__name__, "message": str(error)}
    except Exception as error:
        found = {"outcome": "FOREIGN", "message": repr(error)}
    found["seconds"] = time.monotonic() - start
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    found["mib"] = int(status["VmHWM"].split()[0]) // 1024  # ru_maxrss may begin at the parent's
    print(json.dumps({"path": path, **found}), flush=True)
"""


def look(*paths: Path, timeout: float = 120) -> list[dict[str, Any]]:
    """Read files in a new process; what it was at when it died is the last one."""
    command = [sys.executable, "-c", LOOK, str(MAX_MEMORY), *map(str, paths)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
        text, how = done.stdout, f"exit code {done.returncode}: {done.stderr[-500:]}"
    except subprocess.TimeoutExpired as error:
        text, how = (error.stdout or b"").decode(), "hangs"
    lines = [json.loads(line) for line in text.splitlines()]
    found = [line for line in lines if "outcome" in line]
    if len(found) < len(paths):
        found.append({"path": lines[-1]["path"], "outcome": how, "message": "", "mib": 0})
    return found


def problems_of(found: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with the way in which files were read or refused."""
    wrong = []
    for line in found:
        if not (line["outcome"] == "read" or line["outcome"][0].isupper()):
            wrong.append(f"{line['path']}: {line['outcome']}")
        elif line["outcome"] == "FOREIGN" or line["mib"] > 250:
            wrong.append(f"{line['path']}: {line}")
        elif line["outcome"] != "read" and line["path"] not in line["message"]:
            wrong.append(f"{line['path']} is not named: {line['message']}")
    return wrong


def read(path: Path, **options: Any) -> Any:
    return hdf5.read(Source(str(path), **options))


def external_dataset(
    path: Path, *pieces: tuple[str, int, int], dtype: str = "u1", count: int = 5
) -> Path:
    with h5py.File(path, "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        for name, offset, size in pieces:
            plist.set_external(name.encode(), offset, size)
        tid = h5t.py_create(np.dtype(dtype))
        h5d.create(file.id, b"x", tid, h5s.create_simple((count,)), plist)
    return path


# ------------------------------------------------------------------------- files that are named


def test_external_storage_that_names_a_system_file(tmp_path: Path) -> None:
    secret = Path("/etc/hostname").read_bytes()
    path = external_dataset(tmp_path / "x.h5", ("/etc/hostname", 0, 2), count=2)
    assert path.stat().st_size < 4000
    with pytest.raises(Unsafe, match=r"external storage.*outside the folder") as caught:
        read(path)
    assert 'trust=["external"]' in str(caught.value)
    (found,) = look(path)
    assert (found["outcome"], found["seconds"] < 1) == ("Unsafe", True)
    with read(path, trust_external=True) as bundle:
        assert as_ndarray(bundle.arrays[0]).tobytes() == secret[:2]


@pytest.mark.parametrize(
    "name", ["../secret.bin", "sub/../../secret.bin", "link.bin", "sub/link/secret.bin"]
)
def test_external_storage_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.bin").write_bytes(b"secret")
    folder = tmp_path / "inner"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "sub" / "link").symlink_to(tmp_path)
    path = external_dataset(folder / "x.h5", (name, 0, 5))
    with pytest.raises(Unsafe):
        read(path)


def test_external_storage_of_devices_and_missing_files(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("pipe", Unsafe), ("missing.bin", ReadFailed), (".", Unsafe)):
        with pytest.raises(kind):
            read(external_dataset(tmp_path / "x.h5", (name, 0, 5)))


def test_external_storage_inside_the_folder(tmp_path: Path) -> None:
    """One piece is an extent; several are read by the library; both byte orders."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").write_bytes(bytes(range(20)))
    (tmp_path / "b.bin").write_bytes(bytes(range(100, 120)))
    one = external_dataset(tmp_path / "one.h5", ("data/a.bin", 2, h5f_unlimited()), dtype=">i2")
    with read(one) as bundle:
        extent = bundle.arrays[0].extent
        assert (extent.path, extent.offset, extent.nbytes, extent.swap) == (
            str(tmp_path / "data" / "a.bin"), 2, 10, 2
        )  # fmt: skip
        assert as_ndarray(bundle.arrays[0]).tolist() == [0x0203, 0x0405, 0x0607, 0x0809, 0x0A0B]
    two = external_dataset(tmp_path / "two.h5", ("data/a.bin", 1, 3), ("b.bin", 4, 2))
    with read(two) as bundle:
        assert bundle.arrays[0].extent is None
        assert as_ndarray(bundle.arrays[0]).tolist() == [1, 2, 3, 104, 105]
    short = external_dataset(tmp_path / "short.h5", ("b.bin", 18, 5))
    with pytest.raises(Corrupt, match="shorter"):
        read(short)


def h5f_unlimited() -> int:
    return int(h5py.h5f.UNLIMITED) if hasattr(h5py.h5f, "UNLIMITED") else (1 << 64) - 1


def test_external_links_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = 1
    with h5py.File(folder / "x.h5", "w") as file:
        file["link"] = h5py.ExternalLink("../secret.h5", "/x")
        file["absolute"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/x")
    with pytest.raises(Unsafe):
        read(folder / "x.h5")
    with h5py.File(folder / "x.h5", "a") as file:
        file["own"] = 2
        file["soft"] = h5py.SoftLink("/link")
    with read(folder / "x.h5") as bundle:
        assert bundle.names == ["own"]
        notes = " ".join(bundle.notes)
        assert all(f"'{name}' was left out" in notes for name in ("link", "absolute", "soft"))
    with read(folder / "x.h5", trust_external=True) as bundle:
        assert bundle.names == ["absolute", "own"]


def virtual(path: Path, source: str, dataset: str = "x") -> Path:
    layout = h5py.VirtualLayout(shape=(4,), dtype="i4")
    layout[:] = h5py.VirtualSource(source, dataset, shape=(4,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-9)
    return path


def test_sources_of_virtual_datasets(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    for place in (tmp_path, folder):
        with h5py.File(place / "source.h5", "w") as file:
            file["x"] = np.arange(4, dtype="i4")
            file["soft"] = h5py.SoftLink("x")
            file["group/y"] = 1
    with read(virtual(folder / "good.h5", "source.h5")) as bundle:
        assert as_ndarray(bundle.arrays[0]).tolist() == [0, 1, 2, 3]
        assert bundle.arrays[0].storage["files"] == ["source.h5"]
    with read(virtual(folder / "soft.h5", "source.h5", "soft")) as bundle:
        assert as_ndarray(bundle.arrays[0]).tolist() == [0, 1, 2, 3]
    for name, dataset, kind in (
        ("../source.h5", "x", Unsafe),
        (str(tmp_path / "source.h5"), "x", Unsafe),
        ("missing.h5", "x", ReadFailed),
        ("source.h5", "missing", ReadFailed),
        ("source.h5", "group", ReadFailed),
    ):
        with pytest.raises(kind):
            read(virtual(folder / "bad.h5", name, dataset))


def test_sources_that_are_a_pattern(tmp_path: Path) -> None:
    """Names made by a pattern are checked as any others."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        space = h5s.create_simple((4,), (h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5s.UNLIMITED,), (4,), (4,))
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_virtual(space, b"/etc/host%b", b"x", h5s.create_simple((4,)))
        h5d.create(file.id, b"v", h5t.STD_I32LE, h5s.create_simple((4,), (h5s.UNLIMITED,)), plist)
    with pytest.raises(Unsafe, match="/etc/host0"):
        read(tmp_path / "x.h5")


def test_sources_that_are_hostile_themselves(tmp_path: Path) -> None:
    """A virtual dataset over external storage or a link out of the folder is no way around."""
    external_dataset(tmp_path / "outer.h5", ("/etc/hostname", 0, 4), dtype="i1", count=4)
    with pytest.raises(Unsafe):
        read(virtual(tmp_path / "v.h5", "outer.h5"))
    with h5py.File(tmp_path / "linked.h5", "w") as file:
        file["x"] = h5py.ExternalLink("/etc/hostname", "/x")
    with pytest.raises(Unsafe):
        read(virtual(tmp_path / "w.h5", "linked.h5"))
    virtual(tmp_path / "one.h5", "two.h5", "v")
    virtual(tmp_path / "two.h5", "one.h5", "v")
    with pytest.raises(RaconvertError, match="deep"):
        read(tmp_path / "one.h5")


def test_what_cannot_be_read_fails_only_when_it_is_asked_for(tmp_path: Path) -> None:
    path = external_dataset(tmp_path / "x.h5", ("/etc/hostname", 0, 5))
    with h5py.File(path, "a") as file:
        file["good"] = np.arange(3)
    with read(path) as bundle:
        assert bundle.names == ["good", "x"]
        assert as_ndarray(bundle["good"]).tolist() == [0, 1, 2]
        assert bundle["x"].shape == (5,)
        assert [array.name for array in bundle.unreadable] == ["x"]
        with pytest.raises(Unsafe):
            as_ndarray(bundle["x"])


# -------------------------------------------------------------------------- sizes that are declared


def test_terabytes_in_a_small_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (1 << 40,), "f8")
    assert (tmp_path / "x.h5").stat().st_size < 4000
    with pytest.raises(TooLarge, match="declares 8796093022208 bytes, of which the file stores 0"):
        read(tmp_path / "x.h5")
    (found,) = look(tmp_path / "x.h5")
    assert found["outcome"] == "TooLarge"
    assert found["seconds"] < 1
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("x", (1 << 20, 1 << 20), "f8", chunks=(64, 64), compression=9)
        file["x"][:64, :64] = 1
        file.create_dataset("texts", (1 << 40,), h5py.string_dtype(), chunks=(10,))
        file.create_dataset("more", (1 << 30,), h5py.string_dtype())
    (found,) = look(tmp_path / "y.h5")
    assert (found["outcome"], problems_of([found])) == ("TooLarge", [])
    with h5py.File(tmp_path / "y.h5", "a") as file:
        file["good"] = 1
    with read(tmp_path / "y.h5") as bundle:
        assert bundle["x"].shape == (1 << 20, 1 << 20)


@pytest.mark.parametrize("arguments", [
    ["x.h5#big", "-o", "out.ra"],
    ["x.h5#big", "-o", "out.npy"],
    ["x.h5#big", "-o", "out.ra", "--dtype", "float32"],
    ["x.h5#wide", "-o", "out.ra", "--axes", "1,0"],
    ["x.h5#big", "-o", "out.h5"],
    ["x.h5#big", "-o", "out.h5", "--dtype", "float32"],
    ["x.h5", "-o", "out.h5"],
    ["x.h5", "-o", "out.h5", "--out-opt", "compress=gzip"],
    ["x.h5", "-o", "out.npz"],
    ["x.h5", "-o", "out/"],
])  # fmt: skip
def test_terabytes_beside_other_data_get_no_room(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The refusal is the same as alone (exit 4), and comes before a full disk could show."""
    asked: list[int] = []
    monkeypatch.setattr("os.posix_fallocate", lambda *given: asked.append(given[2]), raising=False)
    monkeypatch.chdir(tmp_path)
    with h5py.File("x.h5", "w") as file:
        file["good"] = np.arange(3.0)
        file.create_dataset("big", (10**12,), "f8")
        file.create_dataset("wide", (10**6, 10**6), "f8", chunks=(100, 100))
    assert main(arguments) == 4
    errors = capsys.readouterr().err
    assert "declares 8000000000000 bytes, of which the file stores 0" in errors
    assert asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["x.h5"]


def test_unwritten_data_below_the_limit_is_its_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (3, 4), "i2", fillvalue=7)
        file.create_dataset("y", (300, 4), "i2", fillvalue=7, chunks=(100, 4), compression=1)
    with read(tmp_path / "x.h5") as bundle:
        assert as_ndarray(bundle["x"]).tolist() == [[7] * 4] * 3
        assert np.unique(as_ndarray(bundle["y"])).tolist() == [7]


def chunk_bomb(path: Path, data: bytes, filters: dict[str, Any]) -> Path:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (64,), "u1", chunks=(64,), **filters)
        dataset.id.write_direct_chunk((0,), data)
    return path


@pytest.mark.parametrize("filters", [{"compression": 1}, {"compression": 1, "shuffle": True}])
def test_chunks_that_are_not_what_they_should_be(tmp_path: Path, filters: dict[str, Any]) -> None:
    whole = zlib.compress(bytes(64))
    bad = {
        "a gigabyte": zlib.compress(bytes(1 << 28)),
        "cut off": whole[:-3],
        "short": zlib.compress(bytes(63)),
        "no zlib": b"\xff" * 40,
        "bad checksum": whole[:-1] + b"\2",
    }
    for name, data in bad.items():
        path = chunk_bomb(tmp_path / f"{name}.h5", data, filters)
        with read(path) as bundle, pytest.raises(Corrupt, match="chunk"):
            as_ndarray(bundle.arrays[0])
    found = look(*(tmp_path / f"{name}.h5" for name in bad))
    assert not problems_of(found)
    assert {line["outcome"] for line in found} == {"Corrupt"}


def test_chunks_larger_than_memory_are_refused_before_decoding(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (1 << 28,), "u1", chunks=(1 << 28,), compression=1)
        dataset.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 28)))
    (found,) = look(tmp_path / "x.h5")
    assert found["outcome"] == "TooLarge"
    assert "a chunk of the dataset needs 536870912 bytes" in found["message"]


def test_many_references_to_one_long_text(tmp_path: Path) -> None:
    """A thousand strings of a megabyte each, all of them the same one in the heap."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (1000,), h5py.string_dtype())
        dataset[0] = "x" * (1 << 20)
        dataset[1:] = "y"
        offset = dataset.id.get_offset()
    data = bytearray((tmp_path / "x.h5").read_bytes())
    data[offset : offset + 16000] = bytes(data[offset : offset + 16]) * 1000
    (tmp_path / "x.h5").write_bytes(data)
    (found,) = look(tmp_path / "x.h5")
    assert found["outcome"] == "TooLarge"
    assert not problems_of([found])


# ------------------------------------------------------- what the library itself takes on trust


def patched(path: Path, at: int, data: bytes) -> Path:
    whole = bytearray(path.read_bytes())
    whole[at : at + len(data)] = data
    path.write_bytes(whole)
    return path


def texts_file(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=["a", "bc", "d" * 30], dtype=h5py.string_dtype())
        file["x"].attrs["word"] = "attribute"
        for number in range(12):
            file.attrs[f"a{number}"] = f"text {number}"
    return path


def test_lengths_beyond_the_file(tmp_path: Path) -> None:
    """The library would reserve and clear 4 GiB before it looks into the heap."""
    path = texts_file(tmp_path / "x.h5")
    with h5py.File(path) as file:
        offset = file["x"].id.get_offset()
    path = patched(path, offset, b"\xff\xff\xff\xff")
    (found,) = look(path)
    assert "longer than the file" in found["message"]
    assert found["mib"] < 200
    # The same in attributes, which are left out.
    other = texts_file(tmp_path / "y.h5")
    whole = other.read_bytes()
    length = len("attribute").to_bytes(4, "little")
    at = whole.index(length, whole.index(b"word\0"))
    patched(other, at, b"\xff\xff\xff\x7f")
    with read(other) as bundle:
        assert bundle.arrays[0].meta.attributes == {}
        assert "attribute 'word'" in " ".join(bundle.notes)
    (found,) = look(other)
    assert not problems_of([found])


def test_texts_longer_than_what_is_stored_of_them(tmp_path: Path) -> None:
    """What there is of a text is not the text."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["text"] = "seventeen letters"
        file["x"].attrs["other"] = 5
    data = path.read_bytes()
    at = data.index((17).to_bytes(4, "little") + data.index(b"GCOL").to_bytes(8, "little"))
    patched(path, at, (18).to_bytes(4, "little"))

    with read(path) as bundle:
        assert bundle["x"].meta.attributes == {"other": 5}
        assert ["'text' of '/x'" in note for note in bundle.notes] == [True]
        assert "longer than its stored bytes" in bundle.notes[0]


@pytest.mark.parametrize("damage", ["length", "circle"])
def test_attributes_in_dense_storage_that_the_library_chokes_on(
    damage: str, tmp_path: Path
) -> None:
    """It would reserve 4 GiB for a length, and run in a circle in a heap: hence the search."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = np.arange(3)
        for number in range(12):  # more than eight
            file["x"].attrs[f"a{number:02}"] = f"seventeen letters{number}"
    data = bytearray(path.read_bytes())
    heap, block = data.index(b"GCOL"), data.index(b"FHDB")
    if damage == "circle":
        data[heap + 16 : heap + 80] = bytes(64)
    else:
        at = data.index((18).to_bytes(4, "little") + heap.to_bytes(8, "little"))
        place = checksum_of_block(data, block)
        data[at : at + 4] = b"\xff\xff\xff\xff"
        data[place : place + 4] = summed_block(data, block, place)
    path.write_bytes(data)
    assert problems_of(look(path)) == []
    with read(path) as bundle:
        count = len(bundle["x"].meta.attributes)
        assert count == (0 if damage == "circle" else 11)
        assert len(bundle.notes) == 12 - count


def checksum_of_block(data: bytearray, block: int) -> int:
    """The place of the checksum in a direct block of a fractal heap, behind its offset."""
    places = range(block + 14, block + 22)
    return next(
        place for place in places if data[place : place + 4] == summed_block(data, block, place)
    )


def summed_block(data: bytearray, block: int, place: int) -> bytes:
    whole = data[block : block + 1024]  # the size of the first blocks for attributes
    whole[place - block : place - block + 4] = bytes(4)
    return jld2.lookup3(bytes(whole)).to_bytes(4, "little")


def test_heaps_that_run_in_circles(tmp_path: Path) -> None:
    """An object of a global heap without a number and without a size."""
    path = texts_file(tmp_path / "x.h5")
    heap = path.read_bytes().index(b"GCOL")
    patched(path, heap + 16, bytes(64))
    (found,) = look(path, timeout=30)
    assert found["outcome"] in ("read", "Corrupt")
    assert not problems_of([found])


def test_ranks_that_overflow_the_library(tmp_path: Path) -> None:
    """The selections of a virtual dataset, whose rank it does not look at."""
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["x"] = np.arange(4, dtype="i4")
    path = virtual(tmp_path / "x.h5", "source.h5")
    whole = path.read_bytes()
    start = whole.index(b"source.h5\0")
    found = []
    for at in range(start, start + 120, 2):
        bad = tmp_path / f"{at}.h5"
        bad.write_bytes(whole)
        found.append(patched(bad, at, b"\x7f"))
    assert not problems_of(look(*found))


def test_groups_deeper_than_any_stack(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        group = file
        for _ in range(2000):
            group = group.create_group("g")
        group["x"] = 1
        file["y"] = 2
    (found,) = look(tmp_path / "x.h5")
    assert not problems_of([found])
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.names == ["y"]
        assert "nested more than" in " ".join(bundle.notes)


def test_our_own_attribute_with_nonsense(tmp_path: Path) -> None:
    texts = [
        '{"raconvert":1,"dtype":"<U9"}', '{"raconvert":1,"dtype":"|O"}', '{"raconvert":1,"axes":[1]}',
        '{"raconvert":1,"axes":[{},{}]}', '{"raconvert":1,"name":5}', '{"raconvert":9}', '{"raconvert":1',
        '{"raconvert":1,"attributes":[]}', '{"raconvert":1,"formats":{"a":3}}', '{"raconvert":' + "[" * 100_000,
        '{"raconvert":1,"index_order":"Q"}', '{"raconvert":1,"groups":{"g":3},"order":[[],{}]}',
        '{"raconvert":1,"attributes":{"x":{"$bytes":"?"}}}',
    ]  # fmt: skip
    paths = []
    for number, text in enumerate(texts):
        for holder in ("x", "/"):
            paths.append(tmp_path / f"{number}{'-root' * (holder == '/')}.h5")
            with h5py.File(paths[-1], "w") as file:
                file["x"] = np.arange(3)
                file[holder].attrs["raconvert"] = text
    found = look(*paths)
    assert not problems_of(found)
    assert sum(line["outcome"] == "Corrupt" for line in found) > 15


def rich(path: Path) -> Path:
    """A file with something of everything."""
    with h5py.File(path, "w", track_order=True) as file:
        texts = np.array(["a", "bcd", "é" * 5] * 4, object).reshape(6, 2)
        file.create_dataset(
            "texts", data=texts, dtype=h5py.string_dtype(), chunks=(4, 2), compression=1
        )
        file["g/x"] = np.arange(5.0)
        file["g/x"].make_scale("x")
        table = file.create_dataset(
            "g/t", data=np.ones((5, 3), "i2"), chunks=(2, 3), compression=1, shuffle=True
        )
        table.dims[0].attach_scale(file["g/x"])
        table.dims[1].label = "why"
        file["g/flags"] = np.array([True, False])
        file["g"].attrs["list"] = ["a", "b"]
        file["structure"] = np.zeros(2, [("a", "i4"), ("b", "S3")])
        file["soft"] = h5py.SoftLink("/g/x")
        for number in range(10):
            file.attrs[f"a{number}"] = f"text {number}"
    return path


@pytest.mark.parametrize("seed", range(3))
def test_bit_flips(tmp_path: Path, seed: int) -> None:
    """No crash, no hang, no foreign error, no gigabytes, wherever bits change."""
    rng = random.Random(seed)
    whole = rich(tmp_path / "x.h5").read_bytes()
    paths = []
    for number in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        paths.append(tmp_path / f"{number}.h5")
        paths[-1].write_bytes(damaged)
    assert not problems_of(look(*paths))


def test_corpus_files_cut_anywhere(corpus: Callable[..., Path], tmp_path: Path) -> None:
    """A cut file is refused, or gives the very arrays that the whole one does."""
    paths, names = [], ("gen_types.h5", "gen_layouts.h5", "jhdf_utf8-fixed-length.hdf5")
    for name in names:
        whole = corpus("mat-hdf5", "hdf5", name).read_bytes()
        for length in range(0, len(whole), 1 + len(whole) // 60):
            paths.append(tmp_path / f"{length}-{name}")
            paths[-1].write_bytes(whole[:length])
    found = look(*paths)
    assert not problems_of(found)
    assert not [line for line in found if line["outcome"] == "read"]


def test_pipes_and_folders_are_refused_before_the_library_opens_them(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.h5")
    for path in (tmp_path / "pipe.h5", tmp_path):
        with pytest.raises(RaconvertError):
            read(path)


def test_a_file_that_another_program_writes(tmp_path: Path) -> None:
    code = "import h5py, sys\nf = h5py.File(sys.argv[1], 'w')\nf['x'] = 1\nf.flush()\nprint('open', flush=True)\nsys.stdin.read()"
    path = tmp_path / "x.h5"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()  # type: ignore[union-attr]
        try:
            with pytest.raises(ReadFailed, match="open for writing"):
                read(path)
        finally:
            other.stdin.close()  # type: ignore[union-attr]
    with read(path) as bundle:
        assert bundle.names == ["x"]


def test_files_that_are_open_in_h5py_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(3)
    with h5py.File(tmp_path / "x.h5") as file:
        with read(tmp_path / "x.h5") as bundle:
            assert as_ndarray(bundle.arrays[0]).tolist() == [0, 1, 2]
        assert file["x"][()].tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_headers_of_jld2(tmp_path: Path, seed: int) -> None:
    """With checksums that are right, so that what is inside is believed."""
    chance = random.Random(seed)
    file = jld2.Jld2(jld2.OLD_HEADER)
    address = file.put(jld2.heap(b"Core.Bool"))
    own = file.commit(jld2.datatype())
    named = file.commit(jld2.opaque(1), jld2.type_attribute(own, b"Core.Bool", address))
    file.deflated("bools", named, np.ones(5, "u1"))
    file.deflated("pairs", file.commit(jld2.complex_of(8)), np.ones((2, 3), "c16"))
    file.deflated("single", jld2.floating(8), np.array([1.5]), dimensions=())
    file.add("plain", jld2.boolean(), (2, 3), bytes(6), dimensions=())
    data = file.done()
    heads = [at for at in range(len(data)) if data.startswith(b"OHDR", at)]
    paths = []
    for number in range(60):
        damaged = bytearray(data)
        at = chance.choice(heads)
        end = at + 10 + int.from_bytes(data[at + 6 : at + 10], "little")
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(at + 10, end)] = chance.choice([0, 1, 2, 127, 128, 255])
        damaged[end : end + 4] = jld2.lookup3(bytes(damaged[at:end])).to_bytes(4, "little")
        paths.append(tmp_path / f"{number}.jld2")
        paths[-1].write_bytes(damaged)
    assert problems_of(look(*paths)) == []
