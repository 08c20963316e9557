"""Arrays of structs of MATLAB on the way through other formats: the same again, or said.

Random ones, nested, empty and among cells, are written and compared by scipy alone.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import mat_bytes as made
import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import WouldLose
from raconvert.inspect.diff import diff

scipy_io = pytest.importorskip("scipy.io")
pytest.importorskip("raconvert.plugins.mat")

LEAVES = [(1, 1), (1, 3), (2, 2), (0, 0), (0, 3), (3, 0), (2, 1, 2)]
MANY = [(1, 1), (1, 2), (2, 1), (2, 3), (0, 0), (0, 3), (1, 0), (2, 1, 2), (1, 4)]
FIELDS = ["a", "b", "c", "x1", "name"]
# What keeps the form of groups itself or in its sidecar; NPZ alone does not.
KEEPING = [
    ("x.h5", {}), ("x.zip", {}), ("x.tar", {}), ("x", {"to": "bundle"}), ("x.npz", {"meta": "sidecar"}),
    ("x.mat", {"out_opts": {"version": "7.3"}}), ("y.h5", {"meta": "sidecar"}),
]  # fmt: skip


def leaf(rng: random.Random) -> Any:
    shape = rng.choice(LEAVES)
    numbers = np.arange(np.prod(shape)).reshape(shape)
    return rng.choice(
        [
            numbers.astype(rng.choice(["f8", "u1", "i4", "f4"])),
            np.array(rng.choice(["", "x", "ab", "yyy"])),
            numbers % 2 == 0,
            numbers * 1j,
            np.zeros((0, 0)),
        ]
    )


def value(rng: random.Random, depth: int) -> Any:
    """A number array, a text, an array of structs, or a cell array."""
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return leaf(rng)
    names = rng.sample(FIELDS, rng.randrange(1, 4)) if kind < 0.75 else []
    found = np.empty(rng.choice(MANY), [(name, object) for name in names] if names else object)
    for place in product(*map(range, found.shape)):
        one = tuple(value(rng, depth - 1) for _ in names)
        found[place] = one if names else value(rng, depth - 1)
    return found


def plain(found: Any) -> Any:
    """What scipy has read, in tuples that are compared by value."""
    if found.dtype.names:
        members = [[plain(one[name]) for name in found.dtype.names] for one in found.flat]
        return "struct", found.shape, found.dtype.names, members
    if found.dtype == object:
        return "cell", found.shape, [plain(one) for one in found.flat]
    if found.dtype.kind == "U":
        return "char", found.tolist()
    return found.dtype.str, found.shape, found.tobytes()


def content(path: Path) -> dict[str, Any]:
    return {k: plain(v) for k, v in scipy_io.loadmat(path).items() if not k.startswith("__")}


@pytest.fixture(params=range(8))
def random_mat(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    rng = random.Random(request.param)
    values = {f"v{n}": value(rng, 3) for n in range(4)}
    fixed = np.empty((2, 3), [("k", object)])
    fixed["k"] = 1.0
    path = tmp_path / "s.mat"
    scipy_io.savemat(path, {"fixed": fixed, **values, "p": np.eye(2)}, do_compression=True)
    return path


def test_they_are_the_same_again(random_mat: Path) -> None:
    known = content(random_mat)
    assert known["fixed"][:3] == ("struct", (2, 3), ("k",))
    for name, options in KEEPING:
        between, back = random_mat.with_name(name), random_mat.with_name("b.mat")
        raconvert.convert(random_mat, between, **options)
        raconvert.convert(between, back, overwrite=True)

        assert content(back) == known, name
        assert diff(random_mat, back)["same"], name


def test_a_target_without_a_place_for_their_form_says_so(random_mat: Path) -> None:
    npz, back = random_mat.with_name("x.npz"), random_mat.with_name("b.mat")
    with pytest.raises(WouldLose):
        raconvert.convert(random_mat, npz, strict=True)
    report = raconvert.convert(random_mat, npz)
    reasons = [fit.reason for fit in report.equivalent]
    assert any("forms of groups: fixed (struct 2 x 3)" in reason for reason in reasons)

    raconvert.convert(npz, back)

    assert content(back)["fixed"] != content(random_mat)["fixed"]
    for path in (npz, back):
        forms = {form["field"]: form.get("a") for form in diff(random_mat, path)["forms"]}
        assert forms["fixed"] == "struct 2 x 3"


def test_those_with_function_handles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Handles are left out by name; what is beside them keeps its place and its form."""
    one, handle = made.matrix(6, (1, 1), b"", made.doubles(5)), made.matrix(16, (1, 1), b"")
    path = made.saved(
        tmp_path,
        made.matrix(2, (1, 2), b"s", made.fields(b"h", b"k"), handle, one, one, one)
        + made.matrix(
            1, (1, 2), b"c", handle, made.matrix(2, (1, 2), b"", made.fields(b"h"), handle, handle)
        )
        + made.matrix(2, (1, 2), b"g", made.fields(b"h"), handle, handle)
        + made.matrix(6, (1, 1), b"p", made.doubles(1)),
    )
    handles = ["s/1/h", "c/1", "c/2/1/h", "c/2/2/h", "g/1/h", "g/2/h"]
    for name in ("x.h5", "x.zip", "x.tar"):
        between, back = tmp_path / name, tmp_path / "b.mat"
        assert main([str(path), "-o", str(between)]) == 0
        said = capsys.readouterr().err
        for handle_name in handles:
            assert f"variable '{handle_name}' of class function_handle was left out" in said

        raconvert.convert(between, back, overwrite=True)

        for other in (between, back):
            assert diff(path, other)["same"], other
        found = scipy_io.loadmat(back)
        assert found["s"].shape == found["g"].shape == found["c"].shape == (1, 2)
        assert found["c"][0, 1].shape == (1, 2)
        assert found["s"]["k"].tolist() == [[[[5]], [[5]]]]
