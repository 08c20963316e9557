"""Folders of images as stacks: their order, gaps, odd files, and labels of class folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.errors import UsageError
from raconvert.migration.compare import compare_trees
from raconvert.migration.report import Migration


def images(folder: Path, numbers: list[int], size: tuple[int, int] = (4, 3)) -> None:
    """Grey PNG images, each full of its number."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        Image.new("L", size, number).save(folder / f"{number}.png")


def migrate(root: Path, **options: Any) -> Migration:
    return raconvert.migrate(root / "s", root / "out", **{"to": "ra", "jobs": 1, **options})


def names(root: Path) -> list[str]:
    found = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(
        name for name in found if not name.startswith((".raconvert-migration", "SHA256SUMS"))
    )


def test_stacks_are_in_natural_order_and_gaps_are_named(tmp_path: Path) -> None:
    images(tmp_path / "s/whole", [1, 2, 3])
    images(tmp_path / "s/gaps", [2, 10, 11])
    words = [sys.executable, "-m", "raconvert", "migrate", "s", "out", "--to", "ra", "--jobs", "1",
             "--stack-folders"]  # fmt: skip

    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)

    stack = raconvert.read(tmp_path / "out/gaps.ra")
    assert [image[0, 0] for image in stack] == [2, 10, 11]
    assert "gaps: stacking 3 files: 2.png … 11.png (natural order; gaps 3-9)" in said.stderr
    assert "whole:" not in said.stderr
    assert "plan: 2 files, stacks of 6 among them (2 png)" in said.stderr


def test_an_odd_image_fails_its_stack_alone_and_is_named(tmp_path: Path) -> None:
    images(tmp_path / "s/good", [1, 2])
    images(tmp_path / "s/other", [1, 2])
    images(tmp_path / "s/other", [3], size=(5, 5))
    images(tmp_path / "s/broken", [1, 2, 3])
    place = tmp_path / "s/broken/2.png"
    place.write_bytes(place.read_bytes()[:-20])

    result = migrate(tmp_path, stack_folders=True)

    assert names(tmp_path / "out") == ["good.ra"]
    failed = {path: str(error) for path, error in result.failed}
    assert sorted(failed) == ["broken", "other"]
    assert "broken/2.png" in failed["broken"]
    assert "other/3.png" in failed["other"]
    assert "(5, 5)" in failed["other"] or "5" in failed["other"]


def test_class_folders_become_one_stack_with_labels_and_names(tmp_path: Path) -> None:
    images(tmp_path / "s/train/dog", [7, 10])
    images(tmp_path / "s/train/cat", [2, 1, 30])
    images(tmp_path / "s/test/cat", [5, 6])

    result = migrate(tmp_path, stack_classes=True)

    assert not result.failed
    assert names(tmp_path / "out") == [
        "test/images.ra", "test/labels.ra", "test/labels.ra.yaml",
        "train/images.ra", "train/labels.ra", "train/labels.ra.yaml",
    ]  # fmt: skip
    assert raconvert.read(tmp_path / "out/train/images.ra")[:, 0, 0].tolist() == [1, 2, 30, 7, 10]
    assert raconvert.read(tmp_path / "out/train/labels.ra").tolist() == [0, 0, 0, 1, 1]
    with raconvert.open(tmp_path / "out/train/labels.ra") as labels:
        assert labels.meta.attributes["labels"] == ["cat", "dog"]
    again = migrate(tmp_path, stack_classes=True)
    assert (len(again.before), again.outcomes) == (2, [])


@pytest.mark.parametrize("to", ["hdf5", "npz", "zip"])
def test_class_folders_become_one_container(to: str, tmp_path: Path) -> None:
    """With the images, labels and classes that `convert --labels labels` writes."""
    images(tmp_path / "s/train/dog", [7, 10])
    images(tmp_path / "s/train/cat", [2, 1, 30])
    images(tmp_path / "s/test/cat", [5, 6])
    result = migrate(tmp_path, stack_classes=True, to=to)
    assert not result.failed
    suffix = {"hdf5": ".h5", "npz": ".npz", "zip": ".zip"}[to]
    made = {path.name for path in (tmp_path / "out").glob(f"*{suffix}")}
    assert made == {f"test{suffix}", f"train{suffix}"}
    got = raconvert.read(tmp_path / f"out/train{suffix}")
    assert [*got] == ["images", "labels", "classes"]
    assert got["images"][:, 0, 0].tolist() == [1, 2, 30, 7, 10]
    assert got["labels"].tolist() == [0, 0, 0, 1, 1]
    words = got["classes"].tolist()
    assert [one.decode() if isinstance(one, bytes) else one for one in words] == ["cat", "dog"]
    again = migrate(tmp_path, stack_classes=True, to=to)
    assert (len(again.before), again.outcomes) == (2, [])

    def compared() -> dict[str, str]:
        found = compare_trees(str(tmp_path / "out"), str(tmp_path / "s"))
        return {one.path: one.mark for one in found}

    assert compared() == {f"test{suffix}": "=", f"train{suffix}": "="}
    (tmp_path / "s/train/cat/30.png").rename(tmp_path / "s/train/dog/3.png")
    assert compared() == {f"test{suffix}": "=", f"train{suffix}": "*"}


def test_a_container_of_the_classes_of_a_whole_tree(tmp_path: Path) -> None:
    images(tmp_path / "s/a", [1, 2])
    images(tmp_path / "s/b", [3])
    migrate(tmp_path, stack_classes=True, to="hdf5")
    got = raconvert.read(tmp_path / "out/stack.h5")
    assert got["labels"].tolist() == [0, 0, 1]
    found = list(compare_trees(str(tmp_path / "out"), str(tmp_path / "s")))
    assert [(one.path, one.mark) for one in found] == [("stack.h5", "=")]


def test_a_broken_image_of_a_class_leaves_neither_stack_nor_labels(tmp_path: Path) -> None:
    images(tmp_path / "s/train/dog", [7, 10])
    images(tmp_path / "s/train/cat", [2, 3])
    (tmp_path / "s/train/cat/3.png").write_bytes(b"?")

    result = migrate(tmp_path, stack_classes=True)

    assert "cat/3.png" in str(dict(result.failed)["train"])
    assert names(tmp_path / "out") == []
    assert not (tmp_path / "out/train").exists()


def test_classes_directly_in_the_tree_and_two_kinds_of_files(tmp_path: Path) -> None:
    images(tmp_path / "s/a", [1, 2])
    images(tmp_path / "s/b", [3])
    for number in (1, 2):
        np.save(tmp_path / f"s/a/{number}.npy", np.zeros(3))

    result = migrate(tmp_path, stack_classes=True)

    assert names(tmp_path / "out")[:2] == ["stack/images.ra", "stack/labels.ra"]
    assert len(result.failed) == 1  # both would become the same folder
    with pytest.raises(UsageError):
        migrate(tmp_path, stack_classes=True, to="bundle")


def test_dry_run_plans_stacks(tmp_path: Path) -> None:
    images(tmp_path / "s/train/dog", [7, 10])

    for options in ({"stack_folders": True}, {"stack_classes": True}):
        (one,) = migrate(tmp_path, dry_run=True, **options).outcomes
        assert one[1].state == "planned"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [{"stack_folders": True}, {"stack_classes": True}])
@pytest.mark.parametrize("to", ["ra", "hdf5"])
def test_names_are_no_patterns_and_no_templates(
    to: str, options: dict[str, bool], tmp_path: Path
) -> None:
    odd = ["a{1}", "b{stem}", "c{}", "run#2", "e[1]", "{", "-", "new\nline", "f*", "x{i}/y"]
    for number, name in enumerate(odd):
        images(tmp_path / "s" / name / "g#{}", [number, number + 1])

    result = migrate(tmp_path, to=to, **options)

    assert not result.failed
    suffix = {"ra": ".ra", "hdf5": ".h5"}[to]
    for number, name in enumerate(odd):
        place = tmp_path / "out" / name
        if "stack_folders" in options:
            place /= f"g#{{}}{suffix}"
        else:
            place = place / "images.ra" if to == "ra" else Path(f"{place}{suffix}")
        stack = raconvert.read(place)
        stack = stack if to == "ra" else next(iter(stack.values()))
        assert stack[:, 0, 0].tolist() == [number, number + 1]
