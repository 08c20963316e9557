"""Trees that are migrated out of a store: what a run over the same files on a disk makes."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert.errors import ReadFailed, UsageError
from raconvert.migration.journal import NAME
from tests.remote.s3server import at_one_time, status

if TYPE_CHECKING:
    from tests.remote.s3server import Bucket, S3Server

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "lab"
    (root / "deep" / "er").mkdir(parents=True)
    for number in range(12):
        np.save(root / "deep" / f"{number}.npy", np.arange(number + 1))
    np.savez(root / "deep" / "er" / "two.npz", a=np.arange(5), b=np.ones((2, 2)))
    raconvert.write(root / "m.mat", {"m": np.arange(6.0).reshape(2, 3)})
    raconvert.convert(root / "m.mat", root / "column.ra")
    raconvert.write(root / "pair.nhdr", np.arange(7, dtype="u1"))
    (root / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00 nothing of the kind")
    (root / "notes.txt").write_text("left out")
    (root / ".hidden.npy").write_bytes(b"")
    return root


@pytest.fixture
def url(tree: Path, bucket: Bucket) -> str:
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            bucket.put(f"lab/{path.relative_to(tree)}", path.read_bytes())
    return bucket.url("lab")


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_tree_is_that_of_a_local_run(
    s3: S3Server, tree: Path, url: str, tmp_path: Path, jobs: int
) -> None:
    here = raconvert.migrate(tree, tmp_path / "here", to="npy", jobs=1)
    away = raconvert.migrate(url, tmp_path / "away", to="npy", jobs=jobs)

    assert files(tmp_path / "here") == files(tmp_path / "away")
    assert len(files(tmp_path / "away")) >= 16
    assert sorted(away.left_out) == sorted(here.left_out)
    assert [unit.source for unit, _ in away.of_state("failed")] == ["bad.npy"]


def test_resume_notices_what_has_changed(
    s3: S3Server, bucket: Bucket, tree: Path, url: str, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    s3.fail(at_one_time())  # what is new is of the same size, and of the same second
    raconvert.migrate(url, target, to="npy")
    before = files(target)
    s3.reset()
    s3.fail(at_one_time())
    raconvert.migrate(url, target, to="npy")
    assert not [r for r in s3.requests if r.operation == "GetObject" and "deep/3.npy" in r.path]

    np.save(tree / "new.npy", np.arange(4) + 1)
    bucket.put("lab/deep/3.npy", (tree / "new.npy").read_bytes())
    raconvert.migrate(url, target, to="npy", overwrite=True)
    after = files(target)

    assert np.array_equal(np.load(target / "deep" / "3.npy"), np.arange(4) + 1)
    assert {name for name in before if before[name] != after[name]} == {
        "deep/3.npy",
        "SHA256SUMS",
    }


def test_a_store_that_refuses_one_file_stops_no_other(
    s3: S3Server, url: str, tmp_path: Path
) -> None:
    s3.fail(status(403), "GetObject", key="deep/5.npy")
    s3.fail(status(503), "GetObject", key="deep/6.npy", times=2)

    done = raconvert.migrate(url, tmp_path / "out", to="ra")

    failed = {unit.source: outcome.error["what"] for unit, outcome in done.of_state("failed")}
    assert set(failed) == {"bad.npy", "deep/5.npy"}
    assert "access is refused" in failed["deep/5.npy"]
    assert "deep/6.ra" in files(tmp_path / "out")


def test_names_that_lead_elsewhere_are_left_out(
    s3: S3Server, bucket: Bucket, url: str, tmp_path: Path
) -> None:
    for name in ("lab/../../evil.npy", "lab//double.npy", "lab/a\\b.npy"):
        bucket.put(name, b"\x93NUMPY")
    bucket.put("lab/b/bundle.yaml", b"x")
    bucket.put("lab/b/x.ra", b"x")

    done = raconvert.migrate(url, tmp_path / "out", to="ra")

    why = dict(done.left_out)
    assert "lead out" in why["../../evil.npy"]
    assert "lead out" in why["a\\b.npy"]
    assert "bundle" in why["b/x.ra"]
    assert not list(tmp_path.rglob("evil*"))


def test_no_tree(s3: S3Server, bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(ReadFailed, match="not a folder"):
        raconvert.migrate(bucket.url("none"), tmp_path / "out", to="ra")
    with pytest.raises(UsageError, match="does not tell which files"):
        raconvert.migrate("http://127.0.0.1:1/tree", tmp_path / "out", to="ra")


def test_the_journal_has_no_secrets_and_the_time_of_change(
    s3: S3Server, url: str, tmp_path: Path
) -> None:
    raconvert.migrate(url, tmp_path / "out", to="ra")
    database = sqlite3.connect(tmp_path / "out" / NAME)
    text = "\n".join(database.iterdump())
    database.close()

    assert "testing" not in text.replace(os.fspath(tmp_path), "")
    assert url in text
