"""Level 4 of MAT at its limits: which headers are some, and which sparse matrices."""

from __future__ import annotations

import struct
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.io
from cases import every
from mat_bytes import level4
from raconvert.plugins import mat
from raconvert.plugins.mat.level4 import order_of

from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.source import Source
from raconvert.plugin import NO, SURE

if TYPE_CHECKING:
    from pathlib import Path

GOOD = level4(0, 1, 1, 0, b"first\0", struct.pack("<d", 1.5))
WIDTHS = (8, 4, 4, 2, 2, 1)


def problem(path: Path, contents: bytes) -> RaconvertError | None:
    """Why the second variable cannot be read, or None."""
    path.write_bytes(GOOD + contents)
    with mat.read(Source(str(path))) as bundle:
        assert bundle.names[0] == "first"
        assert np.asarray(bundle["first"]).tolist() == [[1.5]]
        return bundle.arrays[1].problem


def header(order: str, *numbers: int) -> bytes:
    return struct.pack(f"{order}5i", *numbers)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("machine", range(6))
def test_every_type_word(order: str, machine: int, tmp_path: Path) -> None:
    """M (machine, 0 little and 1 big), O (0), P (type of the numbers), T (full, text, sparse)."""
    for zero, stored, kind in product((0, 1, 9), (0, 1, 5, 6, 9), (0, 1, 2, 3, 9)):
        word = 1000 * machine + 100 * zero + 10 * stored + kind
        if not word and order == ">":
            continue  # zero has no byte order
        data = header(order, word, 1, 1, 0, 2) + b"x\0" + bytes(8)
        known = machine == "<>".index(order) and not zero and stored < 6 and kind < 3
        assert order_of(data[:20]) == (order if known else None), word
        assert order_of(data[:19]) is None
        one = data[: 22 + (WIDTHS[stored] if known else 8)]
        found = problem(tmp_path / "x.mat", one)
        if known and kind < 2:
            assert found is None, word
        elif known:
            assert "wrong sparse matrix" in str(found), word
        elif machine in (2, 3, 4) and not zero and order == "<":
            assert isinstance(found, Unsupported), word
        else:
            assert isinstance(found, Corrupt | Unsupported), word


@pytest.mark.parametrize(
    ("numbers", "is_read"),
    [((0, 0, 3, 0, 2), True), ((0, 3, 0, 0, 2), True), ((0, 1, 1, 1, 2), True),
     ((0, -1, 0, 0, 2), False), ((0, 0, -1, 0, 2), False), ((0, -1, -1, 0, 2), False),
     ((0, 1, 1, 2, 2), False), ((0, 1, 1, -1, 2), False), ((0, 1, 1, 0, 0), False),
     ((0, 1, 1, 0, -2), False)],
)  # fmt: skip
def test_numbers_of_a_header(numbers: tuple[int, ...], is_read: bool, tmp_path: Path) -> None:
    _, rows, columns, imaginary, length = numbers
    nbytes = max(0, 8 * rows * columns * (1 + imaginary))
    found = problem(tmp_path / "x.mat", header("<", *numbers) + b"x\0" + bytes(nbytes))
    assert (found is None) == is_read
    if not is_read:
        assert f"got ({rows}, {columns}, {imaginary}, {length})" in str(found)


@every("order", "<>")
@every("imaginary", [0, 1])
@every("stored", range(6))
def test_numbers_are_those_of_scipy(
    order: str, imaginary: int, stored: int, tmp_path: Path
) -> None:
    """Several matrices one behind the other, so that each has to end where it ends."""
    code = order + ("f8", "f4", "i4", "i2", "u2", "u1")[stored]
    word = 10 * stored + 1000 * "<>".index(order)
    data = b""
    for number in range(3):
        parts = (np.arange(1, 6 * (1 + imaginary) + 1) * (number + 1)).astype(code)
        data += header(order, word, 2, 3, imaginary, 3) + f"n{number}\0".encode() + parts.tobytes()
    path = tmp_path / "x.mat"
    path.write_bytes(data)
    known = scipy.io.loadmat(path)
    with mat.read(Source(str(path))) as bundle:
        assert bundle.names == ["n0", "n1", "n2"]
        for name in bundle.names:
            found = np.asarray(bundle[name])
            assert (found.dtype.kind, found.dtype.itemsize) == (
                ("c", 16) if imaginary else ("f", 8)
            )
            assert np.array_equal(found, known[name])
    for cut in (1, 5):
        path.write_bytes(data[:-cut])
        with mat.read(Source(str(path))) as bundle:
            need = 6 * WIDTHS[stored] * (1 + imaginary)
            assert f"expected {need} bytes, got {need - cut}" in str(bundle.arrays[-1].problem)


def test_a_chain_longer_than_is_looked_at_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    one = level4(0, 1, 1, 0, b"x\0", bytes(8))
    for count, more, verdict in ((999, b"", SURE), (1000, b"", SURE), (1001, b"", SURE),
                                 (999, b"\0", NO), (1, b"", SURE)):  # fmt: skip
        path.write_bytes(one * count + more)
        assert mat.sniff(Source(str(path))) == verdict, (count, more)


# --- sparse: a row, a column and a value for each element, and at last the dims ------------------


def sparse(*rows: tuple[float, ...], imaginary: int = 0, code: str = "<f8") -> bytes:
    values = np.array(rows, code)
    data = values.T.tobytes() * (1 + imaginary)
    stored = ("f8", "f4", "i4", "i2", "u2", "u1").index(code[1:])
    return level4(2 + 10 * stored, *values.shape, imaginary, b"s\0", data)


@pytest.mark.parametrize("code", ["<f8", "<f4", "<i4", "<i2", "<u2", "<u1"])
def test_sparse_matrices_of_every_type_of_number(code: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    path.write_bytes(sparse((2, 3, 5), (1, 1, 7), (2, 4, 0), code=code) + GOOD)
    with mat.read(Source(str(path))) as bundle:
        assert np.asarray(bundle["s"]).tolist() == [[7, 0, 0, 0], [0, 0, 5, 0]]


def test_sparse_matrices_with_only_dims(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    for dims in ((2, 3), (0, 3), (2, 0), (1, 3)):
        path.write_bytes(sparse((*dims, 0)))
        with mat.read(Source(str(path))) as bundle:
            assert np.asarray(bundle["s"]).shape == dims
            assert not np.asarray(bundle["s"]).any()


WRONG: dict[str, tuple[bytes, str]] = {
    "two columns": (sparse((1, 2), (1, 2)), "wrong sparse matrix"),
    "five columns": (sparse((1, 1, 1, 1, 1), (2, 2, 0, 0, 0)), "wrong sparse matrix"),
    "no rows": (level4(2, 0, 3, 0, b"s\0", b""), "wrong sparse matrix"),
    "imaginary": (sparse((1, 1, 1), (2, 2, 0), imaginary=1), "wrong sparse matrix"),
    "half a row": (sparse((1, 1, 1), (2.5, 2, 0)), "has no dims"),
    "half a column": (sparse((1, 1, 1), (2, 0.5, 0)), "has no dims"),
    "negative rows": (sparse((1, 1, 1), (-2, 2, 0)), "has no dims"),
    "no number": (sparse((1, 1, 1), (np.nan, 2, 0)), "has no dims"),
    "infinite": (sparse((1, 1, 1), (2, np.inf, 0)), "has no dims"),
    "2**53": (sparse((1, 1, 1), (0, 2.0**53, 0)), r"has no dims"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_sparse_matrices(name: str, tmp_path: Path) -> None:
    contents, words = WRONG[name]
    found = problem(tmp_path / "x.mat", contents)
    assert isinstance(found, Corrupt)
    assert words in str(found)


@pytest.mark.parametrize(
    ("place", "limit"),
    [((0, 1), 2), ((3, 1), 2), ((1, 0), 3), ((1, 4), 3), ((1.5, 1), 2), ((1, 1.5), 3),
     ((-1, 1), 2), ((1, np.nan), 3), ((1e300, 1), 2)],
)  # fmt: skip
def test_places_outside_of_a_sparse_matrix(
    place: tuple[float, float], limit: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.mat"
    path.write_bytes(sparse((2, 3, 1), (*place, 5), (2, 3, 0)))
    with mat.read(Source(str(path))) as bundle, pytest.raises(Corrupt, match=f"1 to {limit}"):
        np.asarray(bundle["s"])


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (3, 0), (0, 3), (3, 2)])
def test_parts_are_those_of_scipy(shape: tuple[int, int], tmp_path: Path) -> None:
    places: list[Any] = [
        (r + 1, c + 1, 10 * r + c + 1) for r, c in np.ndindex(shape) if (r + c) % 2 == 0
    ]
    path = tmp_path / "x.mat"
    path.write_bytes(sparse(*places, (*shape, 0)))
    known = scipy.io.loadmat(path)["s"].tocsc()
    known.sort_indices()
    with mat.read(Source(str(path)), sparse="parts") as bundle:
        for part, values in (("data", known.data), ("ir", known.indices), ("jc", known.indptr)):
            assert np.asarray(bundle[f"s/{part}"]).tolist() == values.tolist()
