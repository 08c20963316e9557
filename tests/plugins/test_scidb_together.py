"""The columns of a SciDB file are decoded in one pass over it, within the memory allowed.

The kernel counts the bytes that are read; NumPy's view of the same records says what is right.
"""

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import raconvert
from raconvert.arrays.blocks import blocks
from raconvert.errors import RaconvertError

if TYPE_CHECKING:
    from collections.abc import Iterator

IO = Path("/proc/self/io")
ROWS, COLUMNS = 500, 600
COUNT = ROWS * COLUMNS
RECORD = np.dtype(
    [("a", "<i8"), ("b.null", "u1"), ("b", "<f8"), ("c", "<f4"), ("t", "<i8", 2), ("d", "S5")]
)
SIZE = COUNT * RECORD.itemsize
ATTRIBUTES = "a:int64 NOT NULL, b:double, c:float NOT NULL, t:datetimetz NOT NULL"
ATTRIBUTES += ", d:string NOT NULL"
SCHEMA = f"<{ATTRIBUTES}>[i=0:{ROWS - 1}:0:{{}}; j=0:{COLUMNS - 1}:0:{{}}]\n"
FORMAT = "format: (int64, double null, float, datetimetz, string(5))\n"
CHUNK = (70, 90)


def records() -> np.ndarray[Any, Any]:
    """Return records whose bytes are by chance; missing values are marked."""
    chance = np.random.default_rng(7)
    found = np.frombuffer(chance.bytes(SIZE), RECORD).copy()
    found["b.null"] = np.where(chance.random(COUNT) < 0.1, 3, 255)
    found["d"] = b"words"
    return found


def by_chunks() -> np.ndarray[Any, Any]:
    """Return the cells in the order in which SciDB writes them, chunk after chunk."""
    cells = np.arange(COUNT).reshape(ROWS, COLUMNS)
    height, width = CHUNK
    found = [
        cells[i : i + height, j : j + width].reshape(-1)
        for i in range(0, ROWS, height)
        for j in range(0, COLUMNS, width)
    ]
    return np.concatenate(found)


@pytest.fixture(params=["rows", "chunks"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, np.ndarray[Any, Any]]:
    """Return a file, and its records in row-major order."""
    rows = request.param == "rows"
    values = records()
    (values if rows else values[by_chunks()]).tofile(tmp_path / "x.scidb")
    chunks = (ROWS, COLUMNS) if rows else CHUNK
    (tmp_path / "x.scidb.schema").write_text(SCHEMA.format(*chunks) + FORMAT)
    return tmp_path / "x.scidb", values.reshape(ROWS, COLUMNS)


def bytes_read() -> int:
    """Return the bytes that this process has read so far, as the kernel counts them."""
    return int(IO.read_text().split("rchar:")[1].split()[0])


def is_same(found: Any, wanted: np.ndarray[Any, Any]) -> bool:
    """True if the arrays of all fields are those of the records, bit by bit."""
    assert set(found) == set(RECORD.names or ())
    return all(
        found[name].shape == wanted[name].shape and found[name].tobytes() == wanted[name].tobytes()
        for name in found
    )


def streamed(array: raconvert.Array, max_bytes: int = 1 << 16) -> Iterator[bytes]:
    """Yield the bytes of an array, piece by piece."""
    for piece in blocks(array, max_bytes):
        yield piece.tobytes()


@pytest.mark.skipif(not IO.exists(), reason="only Linux counts what a process reads")
def test_one_pass(file: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path) -> None:
    path, wanted = file
    begin = bytes_read()
    found = raconvert.read(path)
    middle = bytes_read()
    raconvert.convert(path, tmp_path / "x.npz")
    end = bytes_read()

    assert SIZE <= middle - begin < 1.2 * SIZE
    assert SIZE <= end - middle < 1.2 * SIZE
    assert is_same(found, wanted)
    with np.load(tmp_path / "x.npz") as members:
        assert is_same(dict(members), wanted)


def peak_of(read: Any) -> tuple[Any, int]:
    """Return the result of a call and its peak of memory in bytes."""
    tracemalloc.start()
    try:
        return read(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("how", ["FILE#a", "array", "arrays"])
def test_one_column_is_alone(
    file: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path, how: str
) -> None:
    """The others would need four times the memory."""
    path, wanted = file
    out = tmp_path / "a.npy"
    read = {
        "FILE#a": lambda: raconvert.convert(f"{path}#a", out, overwrite=True),
        "array": lambda: np.save(out, raconvert.read(path, "a")),  # type: ignore[arg-type]
        "arrays": lambda: raconvert.convert(path, out, arrays=["a"], overwrite=True),
    }[how]
    read()  # what is imported takes memory too
    _, peak = peak_of(read)

    assert np.load(out).tobytes() == wanted["a"].tobytes()
    # The column, its pieces (in chunks, cut out and put into order), and a block of records.
    assert peak < 3 * wanted["a"].nbytes + (2 << 20) < SIZE


@pytest.mark.parametrize("share", [4, 1])
def test_memory_is_bounded(
    file: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path, share: int
) -> None:
    path, wanted = file
    raconvert.convert(path, tmp_path / "warm.npz")
    limit = SIZE // share
    _, peak = peak_of(lambda: raconvert.convert(path, tmp_path / "x.npz", max_memory=limit))

    assert peak < limit
    with np.load(tmp_path / "x.npz") as members:
        assert is_same(dict(members), wanted)


@pytest.mark.parametrize("max_memory", [1 << 30, SIZE // 2])
def test_side_by_side(file: tuple[Path, np.ndarray[Any, Any]], max_memory: int) -> None:
    """Columns that are streamed at once, left half read, and read again in any order."""
    path, wanted = file
    with raconvert.open(path, max_memory=max_memory) as bundle:
        for array in bundle.arrays[::2]:
            next(streamed(array))
        pieces = list(zip_longest(*map(streamed, bundle.arrays), fillvalue=b""))
        found = dict(zip(bundle.names, map(b"".join, zip(*pieces, strict=True)), strict=True))
        assert all(found[name] == wanted[name].tobytes() for name in RECORD.names or ())
        for place in (5, 0, 3, 3, 1, 0, 2, 4):
            array = bundle.arrays[place]
            assert b"".join(streamed(array, 12345)) == wanted[array.name].tobytes()


def test_threads(file: tuple[Path, np.ndarray[Any, Any]]) -> None:
    path, wanted = file
    with raconvert.open(path) as bundle, ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = pool.map(lambda array: b"".join(streamed(array)), bundle.arrays)
            for array, data in zip(bundle.arrays, found, strict=True):
                assert data == wanted[array.name].tobytes()


def test_a_file_that_is_replaced_between_two_columns(
    file: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path
) -> None:
    path, wanted = file
    with raconvert.open(path) as bundle:
        assert b"".join(streamed(bundle["a"])) == wanted["a"].tobytes()
        (tmp_path / "new").write_bytes(bytes(SIZE))
        os.replace(tmp_path / "new", path)
        with pytest.raises(RaconvertError, match="changed while it was read"):
            list(streamed(bundle["c"]))
        with pytest.raises(RaconvertError, match="changed while it was read"):
            list(streamed(bundle["c"]))


def test_cells_in_the_places_of_their_coordinates(tmp_path: Path) -> None:
    """Records in an order by chance, with their coordinates behind the values."""
    place = np.random.default_rng(3).permutation(COUNT)[: COUNT // 2]
    values = records()[: len(place)]
    both = np.dtype([*RECORD.descr, ("i", "<i8"), ("j", "<i8")])
    stored = np.empty(len(place), both)
    for name in RECORD.names or ():
        stored[name] = values[name]
    stored["i"], stored["j"] = np.divmod(place, COLUMNS)
    stored.tofile(tmp_path / "x.scidb")
    text = SCHEMA.format(ROWS, COLUMNS) + FORMAT.replace(")\n", ", int64, int64)\n")
    (tmp_path / "x.scidb.schema").write_text(text + "coords: after\nlayout: dense\n")
    wanted = np.zeros(COUNT, RECORD)
    wanted[place] = values

    found = raconvert.read(tmp_path / "x.scidb")

    assert (found.pop("cells") == place).all()  # type: ignore[union-attr]
    assert is_same(found, wanted.reshape(ROWS, COLUMNS))
