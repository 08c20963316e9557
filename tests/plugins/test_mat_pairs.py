"""MAT against every type and shape of the pair suite in version 7.3, and names that MATLAB lacks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import mat_reader
import numpy as np
import pytest
import ra_reader
from pairs import NAME, Shape, keeps_values
from pairs_tables import (
    DTYPES,
    EQUIVALENT,
    EXACT,
    FORMATS,
    PLAIN,
    REFUSED,
    cases,
    expected,
)

import raconvert
from raconvert.errors import WouldLose
from raconvert.testing import filled, same

convert = partial(raconvert.convert, sync=False)
NPY = FORMATS["npy"]
CASES = [case for case in cases("npy") if NPY.can_write(filled(DTYPES[case[0]], case[1]))]


def problem(name: str, shape: Shape, folder: Path) -> str:
    """Return what is wrong with a type and shape in version 7.3; half floats become single."""
    values, outcome = filled(DTYPES[name], shape), expected("mat", name, shape)
    result = folder / "vals.mat"
    NPY.write(folder / f"{NAME}.npy", values)
    try:
        report = convert(folder / f"{NAME}.npy", result, out_opts={"version": "7.3"})
    except WouldLose as refusal:
        return "" if outcome == REFUSED and not result.exists() else str(refusal)
    got = mat_reader.read_73(result)
    alike = same if outcome == EXACT else keeps_values
    if bool(report.equivalent) != (outcome == EQUIVALENT):
        return f"{outcome}, not {report}"
    if name == "float16" and got.dtype != "f4":
        return f"half floats become {got.dtype}"
    return "" if alike(values, got) else f"{outcome}:\n{values!r}\n{got!r}"


def test_mat_73(tmp_path: Path) -> None:
    """Like the other versions, but half floats become single."""
    found = {}
    for number, case in enumerate(CASES):
        (folder := tmp_path / str(number)).mkdir()
        if wrong := problem(*case, folder):
            found[case] = wrong
    assert found == {}


def test_mat_73_does_not_hold_bfloat16(tmp_path: Path) -> None:
    ra_reader.write(tmp_path / "x.ra", filled(DTYPES["bfloat16"], PLAIN))

    with pytest.raises(WouldLose, match='dtype="float32"'):
        convert(tmp_path / "x.ra", tmp_path / "x.mat", out_opts={"version": "7.3"})


# name of the array in the source, what it becomes
NAMES = [("a b", "a_b"), ("end", "xend"), ("1a", "x1a")]


@pytest.mark.parametrize(("name", "becomes"), NAMES)
def test_names_that_matlab_cannot_have(name: str, becomes: str, tmp_path: Path) -> None:
    from scipy.io import whosmat

    out = tmp_path / "out"
    out.mkdir()
    np.savez(tmp_path / "x.npz", **{name: filled(np.dtype("<i2"), PLAIN)})
    with pytest.raises(WouldLose, match=r'allow=\["names"\]'):
        convert(tmp_path / "x.npz", out / "vals.mat")
    assert list(out.iterdir()) == []

    convert(tmp_path / "x.npz", out / "vals.mat", allow="names")
    convert(tmp_path / "x.npz", out / "kept.mat", meta="sidecar")
    convert(out / "kept.mat", out / "back.npz")

    assert [found[0] for found in whosmat(out / "vals.mat")] == [becomes]
    with np.load(out / "back.npz") as back:
        assert back.files == [name]
