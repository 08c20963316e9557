"""``SHA256SUMS`` in a target tree, checked by the system's `sha256sum`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import raconvert
from raconvert.cli import main
from raconvert.migration.check import check_tree
from raconvert.migration.checksums import NAME

ODD = ["plain", " lead", "a\\b", "line\nbreak", "re\rturn", "#", "*star", "ümlaut", "\\", "-x"]


@pytest.fixture
def check(tool: Callable[..., str]) -> Callable[..., tuple[int, list[str]]]:
    """Give `check(root)`: the exit code of `sha256sum -c`, and the files that it says are bad."""

    def run(root: Path) -> tuple[int, list[str]]:
        done = subprocess.run(
            [tool("sha256sum"), "--strict", "--quiet", "-c", NAME],
            cwd=root, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )  # fmt: skip
        said = os.fsdecode(done.stdout).split("\n")[:-1]
        return done.returncode, [line.rpartition(": ")[0] for line in said]

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Arrays under names that need escapes, one with a sidecar, one in Fortran order."""
    root = tmp_path / "source"
    for number, name in enumerate(ODD):
        (root / name).mkdir(parents=True)
        np.save(root / name / f"{name}.npy", np.arange(number + 1.0))
    np.save(root / "dates.npy", np.array(["2020-01-01"], "M8[D]"))  # needs a sidecar
    np.save(root / "fortran.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    return root


def written(root: Path) -> set[Path]:
    """What was written below a root, without what belongs to the run as a whole."""
    return {
        path
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path != root / NAME
    }


@pytest.mark.parametrize("to", ["ra", "npy", "nrrd", "bundle"])
def test_sha256sum_checks_the_whole_tree(
    to: str, tree: Path, tmp_path: Path, check: Callable[..., tuple[int, list[str]]]
) -> None:
    out = tmp_path / "out"
    result = raconvert.migrate(tree, out, to=to, jobs=1)

    assert not result.failed
    assert check(out) == (0, [])
    assert len((out / NAME).read_bytes().splitlines()) == len(written(out))


def test_every_flipped_bit_is_found(
    tree: Path, tmp_path: Path, check: Callable[..., tuple[int, list[str]]]
) -> None:
    out, choice = tmp_path / "out", random.Random(11)
    raconvert.migrate(tree, out, to="bundle", jobs=1)

    for path in sorted(written(out)):
        whole = path.read_bytes()
        at, bit = choice.randrange(len(whole)), 1 << choice.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        code, bad = check(out)
        path.write_bytes(whole)
        assert code == 1
        assert len(bad) == 1, (path, bad)
    assert check(out) == (0, [])


def test_names_that_are_no_text_are_listed_as_they_are(
    tmp_path: Path, check: Callable[..., tuple[int, list[str]]]
) -> None:
    (tmp_path / "in").mkdir()
    try:
        np.save(os.path.join(os.fsencode(tmp_path / "in"), b"\xff\xfe.npy").decode(
            "utf-8", "surrogateescape"), np.arange(3))  # fmt: skip
    except OSError:
        pytest.skip("this file system has texts as names only")
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="ra", jobs=1)

    assert check(tmp_path / "out") == (0, [])
    assert (tmp_path / "out" / NAME).read_bytes().endswith(b"  \xff\xfe.ra\n")


def test_a_later_run_adds_what_is_new_and_keeps_what_is_gone(
    tree: Path, tmp_path: Path, check: Callable[..., tuple[int, list[str]]]
) -> None:
    out = tmp_path / "out"
    raconvert.migrate(tree, out, to="ra", jobs=1)
    before = (out / NAME).read_bytes().splitlines()
    (tree / "plain/plain.npy").unlink()
    np.save(tree / "dates.npy", np.arange(3))  # needs none any more
    np.save(tree / "new.npy", np.arange(4))

    raconvert.migrate(tree, out, to="ra", jobs=1, update=True)

    assert check(out) == (0, [])
    after = (out / NAME).read_bytes().splitlines()
    names = {line.split(b"  ", 1)[1] for line in after}
    assert b"plain/plain.ra" in names
    assert b"new.ra" in names
    assert b"dates.ra.yaml" not in names
    assert len(after) == len(before)  # one more, one less


def test_lines_about_other_files_stay(
    tree: Path, tmp_path: Path, tool: Callable[..., str],
    check: Callable[..., tuple[int, list[str]]],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    (out / "my\nnotes.txt").write_text("mine")
    line = subprocess.run([tool("sha256sum"), "my\nnotes.txt"], cwd=out, capture_output=True,
                          check=True).stdout  # fmt: skip
    (out / NAME).write_bytes(line)

    raconvert.migrate(tree, out, to="ra", jobs=1)

    assert check(out) == (0, [])
    assert line in (out / NAME).read_bytes()


def test_another_file_of_this_name_is_left_as_it_is(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / NAME).write_text("my diary\n")

    result = raconvert.migrate(tree, out, to="ra", jobs=1)

    assert result.done == len(ODD) + 2
    assert [note for note in result.notes if "not a list of checksums" in note]
    assert (out / NAME).read_text() == "my diary\n"


def test_a_target_of_this_name_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in" / f"{NAME}.npz", a=np.arange(3))

    result = raconvert.migrate(tmp_path / "in", tmp_path / "out", to="bundle", jobs=1)

    assert result.done == 1
    assert [note for note in result.notes if "is a folder" in note]
    assert raconvert.read(tmp_path / "out" / NAME, array="a").tolist() == [0, 1, 2]


def test_shards_that_end_at_once_list_the_whole_tree(
    tree: Path, tmp_path: Path, check: Callable[..., tuple[int, list[str]]]
) -> None:
    def run(number: int) -> int:
        words = [sys.executable, "-m", "raconvert", "migrate", str(tree), str(tmp_path / "out"),
                 "--to", "ra", "--shard", f"{number}/3"]  # fmt: skip
        return subprocess.run(words, capture_output=True, check=False).returncode

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(run, (1, 2, 3))) == [0, 0, 0]
    raconvert.migrate(tree, tmp_path / "whole", to="ra", jobs=1)

    assert check(tmp_path / "out") == (0, [])
    assert (tmp_path / "out" / NAME).read_bytes() == (tmp_path / "whole" / NAME).read_bytes()


def sidecar_that_turns(path: Path, scratch: Path) -> bytes:
    """A sidecar that describes a file and gives its axes the other order."""
    np.save(scratch / "a.npy", raconvert.read(path))
    raconvert.convert(scratch / "a.npy", scratch / "whole.ra", meta="sidecar")
    assert (scratch / "whole.ra").read_bytes() == path.read_bytes()
    text = (scratch / "whole.ra.yaml").read_bytes()
    assert b"index_order: C" in text
    return text.replace(b"index_order: C", b"index_order: F")


def test_an_added_sidecar_is_noticed(tree: Path, tmp_path: Path) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    source = tmp_path / "plain"
    source.mkdir()
    scratch.mkdir()
    np.save(source / "a.npy", np.arange(6, dtype="i2").reshape(2, 3))
    np.save(source / "b.npy", np.arange(6, dtype="i2").reshape(2, 3))
    raconvert.migrate(source, out, to="ra", jobs=1, report=tmp_path / "cert")
    certificate = str(tmp_path / "cert.json")
    assert {one.mark for one in check_tree(str(out), certificate)} == {"="}
    (out / "b.ra.yaml").write_text("mine: not a sidecar of raconvert, which nobody reads\n")
    (out / "a.ra.yaml").write_bytes(sidecar_that_turns(out / "a.ra", scratch))
    assert raconvert.read(out / "a.ra").shape == (3, 2)

    found = [one for one in check_tree(str(out), certificate) if one.mark != "="]
    paranoid = raconvert.migrate(source, out, to="ra", jobs=1, paranoid=True)

    assert [(one.mark, one.path) for one in found] == [("-", "a.ra.yaml")]
    assert [error.path for _, error in paranoid.failed] == [str(out / "a.ra.yaml")]
    assert main(["verify", str(out), "--certificate", certificate]) == 1
    raconvert.migrate(source, out, to="ra", jobs=1, paranoid=True, overwrite=True)
    assert raconvert.read(out / "a.ra").shape == (2, 3)
    assert {one.mark for one in check_tree(str(out), certificate)} == {"="}


def test_a_removed_sidecar_is_noticed(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    raconvert.migrate(tree, out, to="ra", jobs=1, report=tmp_path / "cert")
    (out / "dates.ra.yaml").unlink()

    found = [one for one in check_tree(str(out), str(tmp_path / "cert.json")) if one.mark != "="]
    paranoid = raconvert.migrate(tree, out, to="ra", jobs=1, paranoid=True)

    assert [(one.mark, one.path) for one in found] == [("+", "dates.ra.yaml")]
    assert [error.path for _, error in paranoid.failed] == [str(out / "dates.ra.yaml")]


@pytest.mark.parametrize("to", ["zarr", "bundle"])
def test_files_added_to_a_folder_that_is_one_source_are_noticed(to: str, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    np.savez(source / "a.npz", x=np.arange(4), y=np.eye(3))
    raconvert.migrate(source, out, to=to, jobs=1, report=tmp_path / "cert")
    certificate = str(tmp_path / "cert.json")
    assert {one.mark for one in check_tree(str(out), certificate)} == {"="}
    (whole,) = (path for path in out.iterdir() if path.is_dir())
    (whole / "x" / "c").mkdir(parents=True, exist_ok=True)
    (whole / "x" / "c" / "9").write_bytes(b"")

    found = [one for one in check_tree(str(out), certificate) if one.mark != "="]

    assert [(one.mark, one.path) for one in found] == [("-", f"{whole.name}/x/c/9")]


def test_paranoid_finds_a_changed_sidecar(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    raconvert.migrate(tree, out, to="ra", jobs=1)
    sidecar = out / "dates.ra.yaml"
    sidecar.write_bytes(sidecar.read_bytes() + b"# mine\n")

    usual = raconvert.migrate(tree, out, to="ra", jobs=1)
    paranoid = raconvert.migrate(tree, out, to="ra", jobs=1, paranoid=True)

    assert not usual.failed
    assert [error.path for _, error in paranoid.failed] == [str(sidecar)]
    assert sidecar.read_bytes().endswith(b"# mine\n")
