"""Source and destination have nothing in common, whatever the names are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.errors import TargetExists, UsageError
from raconvert.files.names import folded
from raconvert.migration import plan
from raconvert.migration.plan import planned
from raconvert.migration.tree import walk
from raconvert.registry import by_name


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "s/sub").mkdir(parents=True)
    np.save(tmp_path / "s/x.npy", np.arange(3))
    np.save(tmp_path / "s/sub/y.npy", np.arange(4))
    return tmp_path / "s"


def test_a_folder_of_the_destination_that_leads_into_the_source(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sub").symlink_to(source / "sub")

    with pytest.raises(UsageError, match="one of the source"):
        raconvert.migrate(source, tmp_path / "out", to="ra", jobs=1)

    assert sorted(os.listdir(source / "sub")) == ["y.npy"]
    assert os.listdir(tmp_path / "out") == ["sub"]


@pytest.mark.usefixtures("mounting_here")
def test_trees_that_are_mounted_twice(source: Path, tmp_path: Path) -> None:
    """The same folders under names that no link connects."""
    (tmp_path / "m").mkdir()
    subprocess.run(["mount", "--bind", source, tmp_path / "m"], capture_output=True, check=True)
    try:
        for target in ("m", "m/sub", "m/new"):
            with pytest.raises(UsageError, match="same folder|one in the other"):
                raconvert.migrate(source, tmp_path / target, to="ra", jobs=1)
        with pytest.raises(UsageError, match="one in the other"):
            raconvert.migrate(tmp_path / "m/sub", source, to="ra", jobs=1)
    finally:
        subprocess.run(["umount", tmp_path / "m"], check=True)


def test_mounts_are_known_by_the_identity_of_folders(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above where nobody may mount: `mnt` is told to be the folder `s/sub`."""
    (tmp_path / "mnt").mkdir()
    true = plan.identity

    def as_mounted(path: str, **named: bool) -> tuple[int, int] | None:
        alias = str(path).replace(str(tmp_path / "mnt"), str(source / "sub"))
        return true(alias, **named)

    monkeypatch.setattr(plan, "identity", as_mounted)

    for place, other in ((tmp_path / "mnt/new", source), (source / "sub", tmp_path / "mnt")):
        with pytest.raises(UsageError, match="same folder|one in the other"):
            raconvert.migrate(other, place, to="ra", jobs=1)
    with pytest.raises(UsageError, match="same folder"):
        raconvert.migrate(tmp_path / "mnt", source / "sub", to="ra", jobs=1)


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_target_that_is_a_file_of_the_source(link: object, source: Path, tmp_path: Path) -> None:
    before = (source / "sub/y.npy").read_bytes()
    (tmp_path / "out").mkdir()
    link(source / "sub/y.npy", tmp_path / "out/x.ra")  # type: ignore[operator]

    result = raconvert.migrate(source, tmp_path / "out", to="ra", jobs=1, overwrite=True)

    error = dict(result.failed)["x.npy"]
    assert isinstance(error, TargetExists)
    assert "a file of the source under another name" in str(error)
    assert (source / "sub/y.npy").read_bytes() == before
    assert (tmp_path / "out/sub/y.ra").is_file()


def test_a_link_to_something_else_is_written_through(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere.ra").write_bytes(b"old")
    (tmp_path / "out/x.ra").symlink_to(tmp_path / "elsewhere.ra")

    assert not raconvert.migrate(source, tmp_path / "out", to="ra", jobs=1, overwrite=True).failed
    assert raconvert.read(tmp_path / "elsewhere.ra").tolist() == [0, 1, 2]


def test_names_that_collide_where_case_does_not_count(tmp_path: Path) -> None:
    for name in ("a/X.npy", "a/x.npy", "A/z.npy", "a/Z.npy", "é.npy", "E\u0301.npy"):
        place = tmp_path / "s" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, np.arange(3))
    tree = walk(str(tmp_path / "s"))

    counts = planned(tree, by_name("ra"))
    blind = planned(tree, by_name("ra"), key=folded)

    assert counts.refused == []
    assert sorted(unit.source for unit, _ in blind.refused) == ["a/Z.npy", "a/x.npy", "é.npy"]
    assert "as 'a/X.npy' does" in str({u.source: e for u, e in blind.refused}["a/x.npy"])


def test_whether_case_counts_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Letters").mkdir()
    assert plan.case_counts(str(tmp_path))
    assert plan.case_counts(str(tmp_path / "Letters/not/there"))

    true = plan.identity
    monkeypatch.setattr(
        plan, "identity",
        lambda path, **named: true(path, **named) or true(_other_case(path), **named),
    )  # fmt: skip
    assert not plan.case_counts(str(tmp_path))
    assert not plan.case_counts(str(tmp_path / "Letters/not/there"))


def _other_case(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, name.swapcase())


@pytest.mark.usefixtures("mounting_here")
def test_a_file_system_without_case(tmp_path: Path, tool: Callable[..., str]) -> None:
    image, place = tmp_path / "fat", tmp_path / "fatdir"
    image.write_bytes(bytes(8 << 20))
    place.mkdir()
    subprocess.run([tool("mkfs.vfat"), image], check=True, capture_output=True)
    mounted = subprocess.run(
        ["mount", "-o", "loop", image, place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a file as a disk")
    try:
        (place / "Some").mkdir()
        assert not plan.case_counts(str(place))
    finally:
        subprocess.run(["umount", place], check=True)
