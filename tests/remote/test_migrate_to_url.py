"""Trees that are migrated into a store: what a local run makes, whatever happens on the way."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert.api import array_of
from raconvert.errors import UsageError, WriteFailed
from tests.remote.s3server import EVERY, at_one_time, call, cut, lose_answer, status

if TYPE_CHECKING:
    from tests.remote.s3server import Bucket, S3Server

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small arrays, a large one, one with metadata, a container, a file that is damaged."""
    root = tmp_path_factory.mktemp("tree") / "lab"
    (root / "deep" / "er").mkdir(parents=True)
    rng = np.random.default_rng(6)
    for number in range(6):
        np.save(root / "deep" / f"{number}.npy", rng.integers(0, 99, (3, number + 1), "u2"))
    np.save(root / "large.npy", rng.integers(0, 256, (9 << 20) + 5, "u1"))
    np.savez(root / "deep" / "er" / "two.npz", a=np.arange(5), b=np.ones((2, 2)))
    array = array_of(np.arange(6.0).reshape(2, 3), "said")
    array.meta = raconvert.Metadata(description="a grid")
    raconvert.write(root / "said.nrrd", array)
    (root / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00 nothing of the kind")
    (root / "notes.txt").write_text("left out")
    return root


@pytest.fixture(scope="module")
def local(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a local run makes, by path."""
    target = tmp_path_factory.mktemp("local") / "ra"
    raconvert.migrate(tree, target, to="ra", jobs=1)
    return {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def found(bucket: Bucket, below: str = "ra/") -> dict[str, bytes]:
    return {
        name.removeprefix(below): bucket.get(name)
        for name in bucket.names()
        if name.startswith(below)
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_tree_is_that_of_a_local_run(
    jobs: int, tree: Path, local: dict[str, bytes], bucket: Bucket, tmp_path: Path
) -> None:
    result = raconvert.migrate(
        tree, bucket.url("ra"), to="ra", jobs=jobs, journal=tmp_path / "j.sqlite"
    )
    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert found(bucket) == local
    assert bucket.uploads() == []
    sums = dict(reversed(line.split("  ", 1)) for line in local["SHA256SUMS"].decode().splitlines())
    assert {
        name: hashlib.sha256(data).hexdigest() for name, data in found(bucket).items()
        if name != "SHA256SUMS"
    } == sums  # fmt: skip


def test_a_second_run_has_nothing_to_do(
    tree: Path, local: dict[str, bytes], s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    def run(**options: object) -> raconvert.Migration:
        s3.reset()
        return raconvert.migrate(
            tree, bucket.url("ra"), to="ra", jobs=1, journal=tmp_path / "j.sqlite", **options
        )

    first = run()
    again = run()
    assert (again.done, len(again.before)) == (first.done, first.done)
    assert not [name for name in s3.operations if name.startswith(("Put", "Upload"))]
    assert len(run(paranoid=True).before) == first.done
    bucket.delete("ra/deep/1.ra")
    bucket.put("ra/deep/2.ra", b"cut")
    bucket.put("ra/deep/3.ra", b"x" * len(local["deep/3.ra"]))
    result = run()
    assert {path for path, _ in result.failed} == {"bad.npy", "deep/3.npy"}
    assert "was changed since it was written" in str(dict(result.failed)["deep/3.npy"])
    assert found(bucket)["deep/3.ra"].startswith(b"x")
    run(overwrite=True)
    assert found(bucket) == local


@pytest.mark.parametrize("changed", ["one.ra", "said.ra", "said.ra.yaml"])
def test_replaced_by_as_many_bytes_in_the_same_second(
    changed: str, tree: Path, s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    """A store tells whole seconds: what was replaced is known by its version."""
    root = tmp_path / "lab"
    root.mkdir()
    np.save(root / "one.npy", np.arange(5))
    shutil.copy(tree / "said.nrrd", root)
    s3.fail(at_one_time(), "HeadObject|GetObject")

    def run(**options: object) -> raconvert.Migration:
        return raconvert.migrate(
            root, bucket.url("ra"), to="ra", jobs=1, journal=tmp_path / "j.sqlite", **options
        )

    assert run().done == 2
    before = found(bucket)
    assert "said.ra.yaml" in before
    assert len(run().before) == 2
    bucket.put(f"ra/{changed}", before[changed].swapcase()[::-1])
    result = run()
    ((path, error),) = result.failed
    assert path.partition(".")[0] == changed.partition(".")[0]
    assert "was changed since it was written" in str(error)
    run(overwrite=True)
    assert found(bucket) == before


def test_a_journal_without_versions(
    tree: Path, local: dict[str, bytes], s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    """As older ones are: the time alone proves nothing, the digest does."""
    s3.fail(at_one_time(), "HeadObject|GetObject")
    journal = tmp_path / "j.sqlite"

    def run() -> raconvert.Migration:
        return raconvert.migrate(tree, bucket.url("ra"), to="ra", jobs=1, journal=journal)

    first = run()
    base = sqlite3.connect(journal)
    rows = base.execute("SELECT number, files FROM batches").fetchall()
    for number, text in rows:
        files = json.loads(text)
        for outcome in files["outcomes"]:
            if outcome[0] == "done":
                assert outcome[2] % 1_000_000_000
                outcome[2] -= outcome[2] % 1_000_000_000
        base.execute("UPDATE batches SET files=? WHERE number=?", (json.dumps(files), number))
    base.commit()
    base.close()

    assert len(run().before) == first.done
    bucket.put("ra/deep/3.ra", b"x" * len(local["deep/3.ra"]))
    assert {path for path, _ in run().failed} == {"bad.npy", "deep/3.npy"}


@pytest.mark.parametrize("phase", ["worker-written", *(["synced", "begun"] * EVERY)])
def test_a_run_that_was_killed_goes_on(
    phase: str, tree: Path, local: dict[str, bytes], bucket: Bucket, tmp_path: Path
) -> None:
    command = [
        sys.executable, "-m", "raconvert", "migrate", tree, bucket.url("ra"), "--to", "ra",
        "--jobs", "1", "--batch-seconds", "0.001", "--journal", tmp_path / "j.sqlite",
    ]  # fmt: skip
    killed = subprocess.run(
        command, env={**os.environ, "RACONVERT_TEST_KILL": f"{phase}:1"}, check=False,
        capture_output=True,
    )  # fmt: skip
    assert killed.returncode < 0, killed.stderr
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 1  # one file is damaged
    assert found(bucket) == local


def test_parts_of_a_run_that_was_killed_are_given_up(
    tree: Path, local: dict[str, bytes], s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    """Those of its own targets, and no others."""
    command = [
        sys.executable, "-m", "raconvert", "migrate", tree, bucket.url("ra"), "--to", "ra",
        "--jobs", "1", "--journal", tmp_path / "j.sqlite",
    ]  # fmt: skip
    pids: list[int] = []
    s3.fail(call(lambda: os.killpg(pids[0], signal.SIGKILL)), "UploadPart", times=1)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as killed:
        pids.append(killed.pid)
    assert killed.returncode == -signal.SIGKILL
    assert bucket.uploads() == ["ra/large.ra"], s3.operations
    other = s3.bucket()
    s3.fail(cut(), "AbortMultipartUpload")
    s3.fail(status(403), "UploadPart")
    with pytest.raises(WriteFailed):
        raconvert.convert(tree / "large.npy", other.url("ra/large.ra"))
    s3.reset()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # one file is damaged
    assert found(bucket) == local
    assert (bucket.uploads(), other.uploads()) == ([], ["ra/large.ra"])


@pytest.mark.parametrize("fault", [lose_answer(), *([cut(), status(500), status(503)] * EVERY)])
def test_faults_that_pass_are_no_failures(
    fault: object, tree: Path, local: dict[str, bytes], s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    for skip in range(0, 40, 7):
        s3.fail(fault, times=1, skip=skip)
    result = raconvert.migrate(
        tree, bucket.url("ra"), to="ra", jobs=1, journal=tmp_path / "j.sqlite"
    )
    assert [path for path, _ in result.failed] == ["bad.npy"]
    assert found(bucket) == local
    assert bucket.uploads() == []


def test_what_is_refused_is_named(
    tree: Path, local: dict[str, bytes], s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    """One file that the store refuses does not stop the others."""
    s3.fail(status(403), "PutObject", key="deep/4.ra")
    options = {"to": "ra", "jobs": 1, "journal": tmp_path / "j.sqlite"}
    result = raconvert.migrate(tree, bucket.url("ra"), **options)
    failed = dict(result.failed)
    assert set(failed) == {"bad.npy", "deep/4.npy"}
    assert "access is refused (403 AccessDenied)" in str(failed["deep/4.npy"])
    s3.reset()
    raconvert.migrate(tree, bucket.url("ra"), **options)
    assert found(bucket) == local


def test_the_journal_is_kept_here(tree: Path, bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'add journal="ra\.sqlite"'):
        raconvert.migrate(tree, bucket.url("ra"), to="ra")
    assert bucket.names() == []
    planned = raconvert.migrate(tree, bucket.url("ra"), to="ra", dry_run=True)
    assert planned.planned
    assert bucket.names() == []
    for name, value in (("shard", "1/2"), ("scheduler", "local:2")):
        with pytest.raises(UsageError, match=f"{name} does not go with a destination at a URL"):
            raconvert.migrate(
                tree, bucket.url("ra"), to="ra", journal=tmp_path / "j.sqlite", **{name: value}
            )


def test_status_certificate_and_verify(tree: Path, bucket: Bucket, tmp_path: Path) -> None:
    journal, base = tmp_path / "j.sqlite", tmp_path / "report.html"
    raconvert.migrate(
        tree, bucket.url("ra"), to="ra", jobs=1, journal=journal, report=base, verify=True
    )
    run = [sys.executable, "-m", "raconvert", "migrate", "--status", bucket.url("ra")]
    done = subprocess.run([*run, "--journal", journal], check=False, capture_output=True, text=True)
    assert re.search(r"\d+ done, 1 failed", done.stdout), done
    done = subprocess.run(run, check=False, capture_output=True, text=True)
    assert (done.returncode, "add --journal ra.sqlite" in done.stderr) == (2, True)
    assert bucket.url("ra") in base.read_text() or "SHA256SUMS" in base.read_text()
    assert base.with_suffix(".json").stat().st_size > 1000
