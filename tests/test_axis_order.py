"""Index order belongs to the language of a format, not to the memory layout of one file.

Equal arrays of a row-major format become equal files where axes are only listed, and have equal
digests, in whatever order they lie in memory.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert import convert
from raconvert.catalogue import ROWS
from raconvert.cli import main
from raconvert.errors import WouldLose
from raconvert.inspect.diff import diff

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from raconvert.catalogue import Row

SHAPES = [(3, 4), (2, 2), (1, 5), (5, 1), (2, 3, 4), (3, 1, 2, 2), (0, 3), (2, 0, 2)]
LISTED = ["ra", "nrrd"]  # formats that list axes and say nothing of indices
MOVED = "transposed to row-major order, [i,j] kept"


def saved(folder: Path, values: np.ndarray, kind: str, stem: str) -> Path:
    """Save values as numpy does, in the order in which they lie in memory."""
    path = folder / f"{stem}.{kind}"
    if kind == "npy":
        np.save(path, values)
    else:
        save = np.savez_compressed if kind == "compressed.npz" else np.savez
        save(path, x=values)
    return path


def ra_bytes_of(values: np.ndarray) -> bytes:
    """Return the plain .ra of row-major float64 or int values: by its specification."""
    eltype = {"i": 1, "u": 2, "f": 3}[values.dtype.kind]
    words = [0, eltype, values.itemsize, values.nbytes, values.ndim, *values.shape[::-1]]
    return b"rawarray" + np.array(words, "<u8").tobytes() + values.tobytes("C")


@every("shape", SHAPES, ids=str)
@every("kind", ["npy", "npz", "compressed.npz"])
def test_both_orders_in_memory_become_one_file(tmp_path: Path, kind: str, shape: Any) -> None:
    values = np.random.default_rng(len(shape)).integers(-9, 9, shape).astype("<i4")
    for order in "CF":
        source = saved(tmp_path, np.asarray(values, order=order), kind, order)
        for suffix in LISTED if values.size else ["ra"]:  # NRRD has no axes of length 0
            convert(source, tmp_path / f"{order}.{suffix}", sync=False)
        assert not (tmp_path / f"{order}.ra.yaml").exists()
        name = None if kind == "npy" else "x"
        expected = ra_bytes_of(values)
        assert raconvert.digest(source, name) == hashlib.sha256(expected).hexdigest()
        assert (tmp_path / f"{order}.ra").read_bytes() == expected
    if values.size:
        assert (tmp_path / "C.nrrd").read_bytes() == (tmp_path / "F.nrrd").read_bytes()


def test_the_python_interface_and_the_command_line_agree(
    tmp_path: Path, corpus: Callable[[str], Path]
) -> None:
    rows, columns = (corpus(f"review/wrong/{n}_order_3x4.npy") for n in ("c", "fortran"))
    values = np.load(columns)
    assert values.flags.f_contiguous
    assert np.array_equal(np.load(rows), values)
    for suffix in LISTED:
        made = {name: tmp_path / f"{name}.{suffix}" for name in ("c", "f", "api", "open")}
        assert main([str(rows), "-o", str(made["c"]), "-q"]) == 0
        assert main([str(columns), "-o", str(made["f"]), "-q"]) == 0
        raconvert.write(made["api"], values)
        with raconvert.open(columns) as array:
            raconvert.write(made["open"], array)
        assert len({path.read_bytes() for path in made.values()}) == 1
    raconvert.ra.write(tmp_path / "fast.ra", values)
    assert (tmp_path / "fast.ra").read_bytes() == (tmp_path / "f.ra").read_bytes()
    assert (tmp_path / "f.ra").read_bytes() == ra_bytes_of(values)


@pytest.mark.parametrize("suffix", [*LISTED, "zip"])
def test_one_line_says_so(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert main([str(tmp_path / "x.npy"), "-o", str(tmp_path / f"x.{suffix}")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if MOVED in line] == [f"array 'x': {MOVED}"]


@pytest.mark.parametrize("suffix", LISTED)
def test_keep_memory_moves_nothing(tmp_path: Path, suffix: str) -> None:
    values = np.arange(24, dtype="<i2").reshape(2, 3, 4)
    np.save(tmp_path / "f.npy", np.asfortranarray(values))
    np.save(tmp_path / "t.npy", values.T.copy("C"))  # whose bytes lie as those of f.npy
    report = convert(tmp_path / "f.npy", tmp_path / f"f.{suffix}", axes="keep-memory")
    convert(tmp_path / "t.npy", tmp_path / f"t.{suffix}")
    assert report.notes == []
    assert (tmp_path / f"f.{suffix}").read_bytes() == (tmp_path / f"t.{suffix}").read_bytes()


def test_fortran_order_on_request_is_kept_in_the_sidecar(tmp_path: Path) -> None:
    values = np.arange(6, dtype="<i2").reshape(2, 3)
    for order in "CF":
        np.save(tmp_path / f"{order}.npy", np.asarray(values, order=order))
        convert(tmp_path / f"{order}.npy", tmp_path / f"{order}.ra", axes="fortran")
        assert (tmp_path / f"{order}.ra.yaml").exists()
        assert (tmp_path / f"{order}.ra").read_bytes()[-12:] == values.tobytes("F")
        assert np.array_equal(raconvert.read(tmp_path / f"{order}.ra"), values)


@pytest.mark.parametrize("axes", ["1,0,2", "2,1,0", "0,1,2", "1,2,0"])
@pytest.mark.parametrize("suffix", ["ra", "npy", "nrrd"])
def test_permuted_axes_are_those_of_the_values(tmp_path: Path, axes: str, suffix: str) -> None:
    values = np.arange(24, dtype="<i2").reshape(2, 3, 4)
    expected = values.transpose([int(part) for part in axes.split(",")])
    for order in "CF":
        source, target = tmp_path / f"{order}-source.npy", tmp_path / f"{order}.{suffix}"
        np.save(source, np.asarray(values, order=order))
        convert(source, target, axes=axes)
        assert np.array_equal(raconvert.read(target), expected)
    if suffix in LISTED:
        made = [(tmp_path / f"{order}.{suffix}").read_bytes() for order in "CF"]
        assert made[0] == made[1]


@pytest.mark.parametrize("suffix", ["mat", "har"])
def test_column_major_formats_stay_column_major(tmp_path: Path, suffix: str) -> None:
    values = np.arange(6, dtype="<f4").reshape(2, 3)
    for order in "CF":
        np.save(tmp_path / f"{order}.npy", np.asarray(values, order=order))
        convert(tmp_path / f"{order}.npy", tmp_path / f"{order}.{suffix}")
        convert(tmp_path / f"{order}.{suffix}", tmp_path / f"{order}.ra")
        assert "index_order: F" in (tmp_path / f"{order}.ra.yaml").read_text()
        assert (tmp_path / f"{order}.ra").read_bytes()[-24:] == values.tobytes("F")


def test_comparisons_are_by_index(tmp_path: Path) -> None:
    """Digests of one array in formats of two languages differ, and nothing else does."""
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    convert(tmp_path / "x.npy", tmp_path / "x.ra", axes="fortran")
    convert(tmp_path / "x.ra", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").flags.f_contiguous
    assert raconvert.digest(tmp_path / "y.npy") == raconvert.digest(tmp_path / "x.npy")
    assert raconvert.digest(tmp_path / "y.npy") != raconvert.digest(tmp_path / "x.ra")
    assert diff(tmp_path / "y.npy", tmp_path / "x.ra")["same"]
    assert raconvert.verify(tmp_path / "y.npy", [str(tmp_path / "x.ra")])["same"]


def test_a_large_array_is_moved_in_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc

    values = np.asfortranarray(np.arange(6_000_000, dtype="<f8").reshape(2000, 3000))
    np.save(tmp_path / "f.npy", values)
    tracemalloc.start()
    convert(tmp_path / "f.npy", tmp_path / "f.ra", max_memory=8 << 20, sync=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20 < values.nbytes
    assert (tmp_path / "f.ra").read_bytes() == ra_bytes_of(values)


# A bare .ra has no index order ------------------------------------------------------------------

COLUMN_MAJOR = [row for row in ROWS if row.writes and row.index_orders == "F"]


@pytest.mark.parametrize("row", COLUMN_MAJOR, ids=lambda row: row.name)
@pytest.mark.parametrize("kind", ["ra", "bundle", "zip", "named"])
def test_strict_refuses_a_bare_ra_unless_an_index_order_is_given(
    row: Row, kind: str, tmp_path: Path
) -> None:
    """Nothing is written; -q or not, the line stays without --strict; --index-order decides."""
    exact = {"cfl": "c8", "rds": "f8"}  # types that these formats have
    values = np.arange(6, dtype=exact.get(row.name, "f4")).reshape(2, 3)
    raconvert.ra.write(tmp_path / "x.ra", values)
    raconvert.ra.write(tmp_path / "y.ra", values)
    source: Any = tmp_path / "x.ra"
    if kind in ("bundle", "zip"):
        source = tmp_path / f"x.{kind}"
        raconvert.convert(tmp_path / "x.ra", source, to=kind)
    elif kind == "named":
        source = [tmp_path / "x.ra", tmp_path / "y.ra"]
    if kind == "named" and not row.many:
        pytest.skip("holds one array")
    target = tmp_path / "out" / f"t{row.suffixes[0]}"
    target.parent.mkdir()
    for _ in range(4):  # the third call alike may go another way
        with pytest.raises(WouldLose, match=r"bare \.ra.*refused by strict=True"):
            raconvert.convert(source, target, to=row.name, strict=True)
        assert os.listdir(target.parent) == []
    report = raconvert.convert(source, target, to=row.name)
    assert any("no index order" in note for note in report.notes)
    for order in "CF":
        raconvert.convert(
            source, target, to=row.name, strict=True, index_order=order, overwrite=True
        )
        got = raconvert.read(target)
        for array in got.values() if isinstance(got, dict) else [got]:
            assert np.array_equal(array, values if order == "C" else values.T)


def test_strict_lets_pass_what_is_the_same_in_both_orders(tmp_path: Path) -> None:
    for number, shape in enumerate([(4,), (1, 4), (1, 4, 1)]):
        raconvert.ra.write(tmp_path / f"{number}.ra", np.arange(4.0).reshape(shape))
        raconvert.convert(tmp_path / f"{number}.ra", tmp_path / f"{number}.nii", strict=True)
    raconvert.ra.write(tmp_path / "x.ra", np.zeros((2, 3)))
    for suffix in (".npy", ".h5", ".nrrd", ".mha", ".ra"):
        raconvert.convert(tmp_path / "x.ra", tmp_path / f"y{suffix}", strict=True)


def test_strict_of_the_command_line_and_of_migrate(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((100, 8)))
    (tmp_path / "in").mkdir()
    assert main([str(tmp_path / "x.npy"), "-o", str(tmp_path / "in/x.ra"), "-q"]) == 0
    words = [str(tmp_path / "in/x.ra"), "-o", str(tmp_path / "x.mat"), "-q"]
    assert main([*words, "--strict"]) == 4
    assert main([*words, "--strict", "--index-order", "C"]) == 0
    loadmat = pytest.importorskip("scipy.io").loadmat
    assert loadmat(tmp_path / "x.mat")["x"].shape == (100, 8)
    tree = [str(tmp_path / "in"), str(tmp_path / "out"), "--to", "mat", "-q"]
    assert main(["migrate", *tree, "--strict"]) == 1
    assert not (tmp_path / "out/x.mat").exists()
    tree[1] = str(tmp_path / "decided")
    assert main(["migrate", *tree, "--strict", "--index-order", "C"]) == 0
    assert (tmp_path / "decided/x.mat").exists()
