"""`verify` over trees: against another tree in any format, and by the certificate."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, TargetExists
from raconvert.migration.check import check_tree
from raconvert.migration.compare import compare_trees


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Arrays of several types and orders, two containers, a damaged file."""
    root = tmp_path / "source"
    (root / "a/b").mkdir(parents=True)
    np.save(root / "a/x.npy", np.arange(6.0).reshape(2, 3))
    np.save(root / "a/fortran.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    np.save(root / "a/b/half.npy", np.ones((2, 3), "f2"))
    np.save(root / "a/b/big.npy", np.arange(4, dtype=">i4").reshape(2, 2))
    np.save(root / "line.npy", np.arange(3.0))
    np.savez(root / "z.npz", p=np.arange(4).reshape(2, 2), q=np.ones((2, 2)))
    return root


def marks(here: Path, there: Path, **options: object) -> dict[str, str]:
    """By path its mark and reason, as one text."""
    found = compare_trees(str(here), str(there), **options)
    return {one.path: f"{one.mark} {one.reason}".strip() for one in found}


def verify(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "raconvert", "verify", *map(str, words)],
                          capture_output=True, text=True, check=False)  # fmt: skip


# Two trees --------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["ra", "npy", "hdf5", "npz", "bundle"])
def test_a_converted_tree_is_the_same(to: str, tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to=to, jobs=1)

    there = marks(tmp_path / "out", tree)
    back = marks(tree, tmp_path / "out")

    assert len(there) in (6, 7)  # the container is two files, or one
    assert {text[:1] for text in [*there.values(), *back.values()]} == {"="}
    assert not any("equivalent" in text for path, text in there.items() if "fortran" not in path)


def test_equal_values_in_another_form_are_equivalent(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="mat", jobs=1)
    found = marks(tmp_path / "out", tree)

    assert found["a/b/half.mat"] == "= equivalent: type float16, now float64"
    assert found["line.mat"] == "= equivalent: shape (3,), now (1, 3)"
    assert found["a/b/big.mat"].startswith("=")
    assert found["z.mat"].startswith("=")


def test_every_difference_is_named(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    raconvert.migrate(tree, out, to="ra", jobs=1)
    raconvert.write(out / "a/x.ra", np.arange(1, 7.0).reshape(2, 3), overwrite=True)
    raconvert.write(out / "line.ra", np.arange(4.0), overwrite=True)
    raconvert.write(out / "a/b/big.ra", np.arange(4, dtype="f4").reshape(2, 2) + 0.5,
                    overwrite=True)  # fmt: skip
    (out / "a/b/half.ra").write_bytes((out / "a/b/half.ra").read_bytes()[:50])
    (out / "a/fortran.ra").unlink()
    (out / "z/p.ra").unlink()
    raconvert.write(out / "z/r.ra", [1])
    raconvert.write(out / "new.ra", [1])

    found = marks(out, tree)

    assert found.pop("a/x.ra") == "* 6 of 6 elements differ, first at [0, 0]"
    assert found.pop("line.ra") == "* shape (3,), now (4,)"
    assert found.pop("a/b/big.ra").startswith("* type int32, now float32; 4 of 4")
    assert found.pop("a/b/half.ra").startswith("! ")
    assert found == {
        "a/fortran.npy": "+", "z.npz#p": "+", "z/r.ra": "-", "new.ra": "-", "z/q.ra": "="
    }  # fmt: skip


def test_negative_zero_and_the_bits_of_nan_are_differences(tmp_path: Path) -> None:
    nan = np.array([0x7FF8000000000001], "u8").view("f8")
    for name, values in {"s": ([0.0], nan), "t": ([-0.0], [np.nan])}.items():
        (tmp_path / name).mkdir()
        raconvert.write(tmp_path / name / "zero.ra", np.array(values[0]))
        raconvert.write(tmp_path / name / "nan.ra", np.array(values[1]))

    assert {text[0] for text in marks(tmp_path / "t", tmp_path / "s").values()} == {"*"}


def test_any_changed_element_is_found(tmp_path: Path) -> None:
    choice = random.Random(5)
    (tmp_path / "in").mkdir()
    for number in range(40):
        shape = [choice.randrange(1, 5) for _ in range(choice.randrange(1, 4))]
        kind = choice.choice(["u1", "<i2", ">i4", "<f8", ">c16", "?"])
        values = np.arange(np.prod(shape)).reshape(shape).astype(kind)
        np.save(
            tmp_path / "in" / f"{number}.npy", choice.choice([np.asfortranarray, np.array])(values)
        )
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="ra", jobs=1)
    assert {text[0] for text in marks(tmp_path / "out", tmp_path / "in").values()} == {"="}

    changed = {f"{number}.ra" for number in choice.sample(range(40), 15)}
    for name in changed:
        whole = bytearray((tmp_path / "out" / name).read_bytes())
        data = np.load(tmp_path / "in" / name.replace(".ra", ".npy")).nbytes
        whole[len(whole) - 1 - choice.randrange(data)] ^= 1
        (tmp_path / "out" / name).write_bytes(whole)

    found = marks(tmp_path / "out", tmp_path / "in")
    assert {name for name, text in found.items() if text[0] != "="} == changed


def test_a_stack_is_compared_with_its_folder(tmp_path: Path) -> None:
    for folder in ("p", "q"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        for number in range(3):
            np.save(tmp_path / "in" / folder / f"{number}.npy", np.full((2, 2), number))
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="ra", jobs=1, stack_folders=True)
    assert marks(tmp_path / "out", tmp_path / "in") == {
        "p.ra": "= stack of 3 files", "q.ra": "= stack of 3 files"
    }  # fmt: skip

    np.save(tmp_path / "in/q/1.npy", np.full((2, 2), 7))
    found = marks(tmp_path / "out", tmp_path / "in")
    assert found["p.ra"].startswith("=")
    assert found["q.ra"].startswith("* 1 changed, such as ")


def test_class_folders_are_compared_with_their_stack_and_labels(tmp_path: Path) -> None:
    for name, number in (("cat", 3), ("dog", 2), ("eel", 1)):
        (tmp_path / "in/train" / name).mkdir(parents=True)
        for at in range(number):
            raconvert.write(tmp_path / f"in/train/{name}/{at}.png", np.full((2, 2), at, "u1"))
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="ra", jobs=1, stack_classes=True)
    assert marks(tmp_path / "out", tmp_path / "in") == {
        "train/images.ra": "= stack of 6 files", "train/labels.ra": "="
    }  # fmt: skip

    shutil.move(tmp_path / "in/train/cat/2.png", tmp_path / "in/train/dog/2.png")
    found = marks(tmp_path / "out", tmp_path / "in")
    assert found["train/images.ra"].startswith("* ")
    assert found["train/labels.ra"] == "* 1 of 6 elements differ, first at [2]"


def test_two_files_of_one_stem_are_not_guessed_about(tree: Path, tmp_path: Path) -> None:
    raconvert.migrate(tree, tmp_path / "out", to="ra", jobs=1)
    raconvert.write(tree / "line.nrrd", np.arange(3.0))

    found = marks(tmp_path / "out", tree)

    assert found["line.ra"].startswith("! several files")


def test_the_command_prints_the_marks_of_rclone(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    raconvert.migrate(tree, out, to="ra", jobs=1)
    whole = verify(out, "--against", tree)
    (out / "line.ra").unlink()
    raconvert.write(out / "a/x.ra", np.zeros((2, 3)), overwrite=True)
    done = verify(out, "--against", tree, "--combined", tmp_path / "list")
    plain = json.loads(verify(out, "--against", tree, "--json").stdout)

    assert whole.returncode == 0, whole.stderr
    assert "= line.ra" in whole.stdout.splitlines()
    assert done.returncode == 1
    assert sorted(line[:2] for line in done.stdout.splitlines()) == ["* ", "+ "]
    lines = (tmp_path / "list").read_text().splitlines()
    assert {"= a/b/half.ra", "* a/x.ra", "+ line.npy"} <= set(lines)
    assert not plain["same"]
    assert plain["counts"] == {
        "the same": 5, "different": 1, "only here": 0, "only there": 1, "not compared": 0
    }  # fmt: skip


def test_a_file_and_a_tree_are_not_compared(tree: Path, tmp_path: Path) -> None:
    done = verify(tree, "--against", tree / "line.npy")

    assert done.returncode == 2
    assert "two trees" in done.stderr
    assert "Traceback" not in done.stderr
    assert verify(tree, "--against", tmp_path / "nothing").returncode == 2
    alone = verify(tree / "line.npy", "--combined", tmp_path / "list")
    assert alone.returncode == 2
    assert "two trees" in alone.stderr


# By the certificate -----------------------------------------------------------------------------


def test_an_existing_list_is_refused_before_files_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("raconvert.migration.compare.compare_trees", fail)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", np.eye(2))
    (tmp_path / "list").write_text("mine")
    trees = [str(tmp_path / "a"), "--against", str(tmp_path / "b")]
    assert main(["verify", *trees, "--combined", str(tmp_path / "list")]) == TargetExists.exit_code
    assert (tmp_path / "list").read_text() == "mine"


def test_a_tree_is_checked_by_its_certificate(tree: Path, tmp_path: Path) -> None:
    out, cert, choice = tmp_path / "out", tmp_path / "cert.json", random.Random(3)
    raconvert.migrate(tree, out, to="bundle", jobs=1, report=tmp_path / "cert")
    assert {one.mark for one in check_tree(str(out), str(cert))} == {"="}
    files = sorted(path for path in out.rglob("*") if path.suffix in (".ra", ".yaml"))

    for path in files:
        whole = path.read_bytes()
        at = choice.randrange(len(whole))
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << choice.randrange(8)]) + whole[at + 1 :]
        )
        odd = [one for one in check_tree(str(out), str(cert)) if one.mark != "="]
        path.write_bytes(whole)
        assert [(one.mark, one.path) for one in odd] == [("*", str(path.relative_to(out)))]

    files[0].unlink()
    done = verify(out, "--certificate", cert)
    assert done.returncode == 1
    assert f"+ {files[0].relative_to(out)}   is missing" in done.stdout.splitlines()


def test_a_hostile_certificate_reads_nothing_outside(tree: Path, tmp_path: Path) -> None:
    out, cert = tmp_path / "out", tmp_path / "cert.json"
    raconvert.migrate(tree, out, to="ra", jobs=1, report=tmp_path / "cert")
    facts = json.loads(cert.read_bytes())
    for path in ("../cert.json", "/etc/passwd", "a/../../cert.json", "", 7, "a\0b"):
        facts["files"][0]["written"][0]["path"] = path
        cert.write_text(json.dumps(facts))
        with pytest.raises(Corrupt):
            list(check_tree(str(out), str(cert)))
    for text in ("", "[]", "{}", '{"certificate": 1}', "[" * 100_000, "\xff"):
        cert.write_text(text, encoding="latin-1")
        with pytest.raises(Corrupt):
            list(check_tree(str(out), str(cert)))


def test_links_and_devices_in_a_tree_are_not_read(tree: Path, tmp_path: Path) -> None:
    out, cert = tmp_path / "out", tmp_path / "cert.json"
    raconvert.migrate(tree, out, to="ra", jobs=1, report=tmp_path / "cert")
    shutil.move(out / "line.ra", tmp_path / "elsewhere")
    (out / "line.ra").symlink_to(tmp_path / "elsewhere")
    (out / "a/x.ra").unlink()
    os.mkfifo(out / "a/x.ra")

    odd = {one.path: one.reason for one in check_tree(str(out), str(cert)) if one.mark != "="}
    assert odd == {"line.ra": "leads out of the tree", "a/x.ra": "is not a regular file"}
