"""The plan of a tree: room in the destination, and targets that never meet."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import raconvert
from raconvert.errors import UsageError
from raconvert.files.names import folded
from raconvert.migration.plan import planned
from raconvert.migration.tree import Found, Tree
from raconvert.registry import by_name


def disk(monkeypatch: pytest.MonkeyPatch, free: int, files: int) -> None:
    """A disk with so many bytes and files free."""
    there = SimpleNamespace(f_bavail=free, f_frsize=1, f_favail=files, f_files=1000)
    monkeypatch.setattr(os, "statvfs", lambda place: there)


@pytest.mark.parametrize(("free", "files"), [(1599, 100), (10**9, 1)])
def test_a_disk_that_is_too_full_is_refused_before_anything_is_written(
    free: int, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").mkdir()
    for number in range(2):
        np.save(tmp_path / f"s/{number}.npy", np.zeros(84))  # 800 bytes
    disk(monkeypatch, free, files)

    with pytest.raises(UsageError, match="enough space|so many files"):
        raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1)

    assert not (tmp_path / "out").exists()


def test_a_run_that_goes_on_needs_room_for_the_rest_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s").mkdir()
    np.save(tmp_path / "s/0.npy", np.zeros(84))
    raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1)
    np.save(tmp_path / "s/1.npy", np.zeros(84))

    disk(monkeypatch, 799, 100)
    with pytest.raises(UsageError, match="enough space"):
        raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1)
    disk(monkeypatch, 800, 1)
    assert raconvert.migrate(tmp_path / "s", tmp_path / "out", to="ra", jobs=1).done == 2


PARTS = st.sampled_from(["a", "A", "b", "a.npy", "a.ra", "a.v1", "\u00e9", "e\u0301"])
NAMES = st.builds(
    lambda folders, name, ending: "/".join([*folders, name + ending]),
    st.lists(PARTS, max_size=3), PARTS, st.sampled_from([".npy", ".npz", ".h5", ".png", "", ".NPY"]),
)  # fmt: skip
TREES = st.lists(NAMES, unique=True, max_size=12)
OPTIONS = st.sampled_from([
    {}, {"containers": "file"}, {"containers": "folder"}, {"stack_folders": True},
    {"stack_classes": True},
])  # fmt: skip


@example(["a.npz", "a/b/x.npy", "a/b/y.npy"], "ra", {"stack_classes": True}, str)
@example(["x.npz", "X/y.npy"], "ra", {}, folded)
@example(["x.npy", "x/y.npy"], "bundle", {}, str)
@given(TREES, st.sampled_from(["ra", "npz", "bundle"]), OPTIONS, st.sampled_from([str, folded]))
def test_no_target_is_another_one_or_lies_in_it(
    names: list[str], to: str, options: dict[str, object], key: type[str]
) -> None:
    tree = Tree([Found(name, 1, 1) for name in names], [])
    try:
        plan = planned(tree, by_name(to), key=key, **options)  # type: ignore[arg-type]
    except UsageError:
        assert to != "ra"  # options that go with formats of one array
        return

    # Each unit with all that it may become.
    places = [{key(unit.target), key(unit.folder or unit.target)} for unit in plan.units]
    for number, mine in enumerate(places):
        others = set().union(*places[:number], *places[number + 1 :])
        for place in mine:
            assert place not in others
            assert not any(other.startswith(f"{place}/") for other in others)
    # Every file is planned, or refused with a reason.
    units = [*plan.units, *(unit for unit, _ in plan.refused)]
    covered = [
        f"{unit.source}/{member}".lstrip("/") if unit.members else unit.source
        for unit in units
        for member in unit.members or ("",)
    ]
    assert sorted(covered) == sorted(names)
