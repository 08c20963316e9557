"""Destinations at URLs: they appear when they are complete, and are what a local run makes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert import metadata
from raconvert.cli import main
from raconvert.errors import ReadFailed, TargetExists, UsageError, WriteFailed
from raconvert.files.remote import filesystem, listing, target
from tests.remote.s3server import CODES, EVERY, call, cut, lose_answer, status

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

    from tests.remote.s3server import Bucket, S3Server

ROOT = Path(__file__).resolve().parents[2]
LARGE = (9 << 20) + 13  # bytes: two parts
FAULTS = {
    "cut": cut(),
    "cut midway": cut(1000),
    "403": status(403),
    "404": status(404),
    "500": status(500),
    "503": status(503),
    "lost": lose_answer(),
}

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small array, a large one, and one with metadata."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    np.save(folder / "small.npy", rng.integers(0, 99, (3, 4), "u2"))
    np.save(folder / "large.npy", rng.integers(0, 256, LARGE, "u1"))
    np.savez(folder / "two.npz", a=np.arange(5), b=np.ones((2, 2)))
    np.save(folder / "cube.npy", rng.integers(0, 256, (3, 4, 5), "u1"))
    raconvert.write(folder / "said.nrrd", _described(np.arange(6.0).reshape(2, 3)))
    return folder


def _described(values: np.ndarray) -> raconvert.Array:
    from raconvert.api import array_of

    array = array_of(values, "said")
    array.meta = raconvert.Metadata(description="a grid")
    return array


@pytest.mark.parametrize(
    ("name", "to"),
    [("small", "ra"), ("small", "nhdr"), ("large", "ra"), ("large", "h5"), ("large", "nhdr"),
     *([("large", to) for to in ("npy", "nrrd", "mat", "tar")] if EVERY else [])],
)  # fmt: skip
def test_the_bytes_are_those_of_a_local_run(
    name: str, to: str, files: Path, bucket: Bucket, tmp_path: Path
) -> None:
    report = raconvert.convert(files / f"{name}.npy", bucket.url(f"d/x.{to}"))
    raconvert.convert(files / f"{name}.npy", tmp_path / f"x.{to}")

    local = {f"d/{path.name}": path.read_bytes() for path in tmp_path.iterdir()}
    found = {key: bucket.get(key) for key in bucket.names()}
    if to in ("h5", "mat"):  # they hold the time of writing
        assert {key: len(data) for key, data in found.items()} == {
            key: len(data) for key, data in local.items()
        }
    else:
        assert found == local
    assert sorted(report.written) == sorted(bucket.url(key) for key in local)
    assert bucket.uploads() == []


def test_other_destinations(files: Path, bucket: Bucket, tmp_path: Path) -> None:
    """Sidecars, planes, one file each, bundles and labels: what a local run makes."""

    def both(src: object, dst: str, **options: object) -> None:
        raconvert.convert(src, f"{tmp_path}/{dst}", **options)
        raconvert.convert(src, bucket.url(dst), **options)

    both(files / "said.nrrd", "said.ra")
    both(files / "cube.npy", "planes/{:03d}.png")
    (tmp_path / "each").mkdir()
    both([files / "small.npy", files / "cube.npy"], "each/", to="ra")
    both(files / "two.npz", "two/", to="bundle")
    both([files / "small.npy"] * 2, "stack.npy")
    found = {key: bucket.get(key) for key in bucket.names()}
    local = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == local
    assert "said.ra.yaml" in found


def test_write_and_memory(bucket: Bucket) -> None:
    import fsspec

    values = np.arange(20.0).reshape(4, 5)
    raconvert.write(bucket.url("x.ra"), values)
    raconvert.write("memory://store/x.ra", values)
    assert fsspec.filesystem("memory").cat("/store/x.ra") == bucket.get("x.ra")
    with pytest.raises(TargetExists, match="'memory://store/x.ra': exists already"):
        raconvert.write("memory://store/x.ra", values)
    raconvert.write("memory://store/x.ra", values + 1, overwrite=True)
    assert fsspec.filesystem("memory").cat("/store/x.ra") != bucket.get("x.ra")


def test_nothing_is_replaced_unasked(files: Path, s3: S3Server, bucket: Bucket) -> None:
    url = bucket.put("x.ra", b"mine")
    with pytest.raises(TargetExists, match="exists already"):
        raconvert.convert(files / "small.npy", url)
    assert raconvert.convert(files / "small.npy", url, skip_existing=True).written == []
    assert raconvert.convert(files / "small.npy", url, update=True).written == []
    assert bucket.get("x.ra") == b"mine"
    raconvert.convert(files / "small.npy", url, overwrite=True)
    assert bucket.get("x.ra").startswith(b"rawarray")


@pytest.mark.parametrize("name", ["small", "large"])
def test_what_appears_meanwhile_is_not_replaced(
    name: str, files: Path, s3: S3Server, bucket: Bucket
) -> None:
    late = "PutObject|CompleteMultipartUpload"
    s3.fail(call(lambda: bucket.put("x.ra", b"mine")), late, times=1)
    with pytest.raises(TargetExists, match="appeared while it was written"):
        raconvert.convert(files / f"{name}.npy", bucket.url("x.ra"))
    assert bucket.get("x.ra") == b"mine"
    assert bucket.uploads() == []


def test_a_conflict_is_not_an_object_that_is_there(
    files: Path, s3: S3Server, bucket: Bucket
) -> None:
    """Only who has asked for nothing to be replaced is told that something is there."""
    s3.fail(status(412), "PutObject")
    with pytest.raises(WriteFailed, match="412 PreconditionFailed"):
        raconvert.convert(files / "small.npy", bucket.url("x.ra"), overwrite=True)
    with pytest.raises(TargetExists, match="appeared"):
        raconvert.convert(files / "small.npy", bucket.url("x.ra"))


@pytest.mark.parametrize("name", ["small", "large"])
def test_a_store_that_does_not_know_the_condition(
    name: str, files: Path, s3: S3Server, bucket: Bucket
) -> None:
    s3.fail(status(501), "PutObject|CompleteMultipartUpload", times=1)
    report = raconvert.convert(files / f"{name}.npy", bucket.url("x.ra"))
    assert "does not know If-None-Match" in " ".join(report.notes)
    assert bucket.names() == ["x.ra"]


def test_metadata_of_a_file_that_was_there_goes_with_it(files: Path, bucket: Bucket) -> None:
    raconvert.convert(files / "said.nrrd", bucket.url("x.ra"))
    assert bucket.names() == ["x.ra", "x.ra.yaml"]
    raconvert.convert(files / "small.npy", bucket.url("x.ra"), overwrite=True)
    assert bucket.names() == ["x.ra"]
    raconvert.convert(files / "said.nrrd", bucket.url("x.ra"), overwrite=True)
    bucket.delete("x.ra")
    raconvert.convert(files / "small.npy", bucket.url("x.ra"))
    assert bucket.names() == ["x.ra"]
    assert (target.SUFFIX, target.ITEMS_SUFFIX) == (metadata.SUFFIX, metadata.ITEMS_SUFFIX)


def _requests(files: Path, s3: S3Server, bucket: Bucket, name: str) -> int:
    s3.reset()
    raconvert.convert(files / name, bucket.url("count.ra"))
    return len(s3.requests)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *(("large.npy", fault) for fault in (FAULTS if EVERY else ("cut", "lost", "403"))),
        *(("said.nrrd", fault) for fault in (FAULTS if EVERY else ["cut midway"])),
    ],
)
def test_a_fault_at_each_request(
    name: str, fault: str, files: Path, s3: S3Server, bucket: Bucket
) -> None:
    """Complete or not visible, and nothing is left behind; a fault that passes is no failure."""
    count = _requests(files, s3, bucket, name)
    expected = {key.replace("count", "x"): bucket.get(key) for key in bucket.names()}
    passes = fault not in ("403", "404")
    stays = EVERY or fault == "403"
    for times in (1, 1 << 30) if stays else (1,):
        for skip in range(count):
            s3.reset()
            own = s3.bucket()
            s3.fail(FAULTS[fault], times=times, skip=skip)
            said = None
            try:
                raconvert.convert(files / name, own.url("x.ra"))
            except (ReadFailed, WriteFailed, TargetExists) as error:
                said = error
            found = {key: own.get(key) for key in own.names()}
            assert said is None or (said.path or "").startswith(own.url())
            assert said is None or times > 1 or not passes, f"request {skip}: {said}"
            whole = found == expected
            # Where nothing answers any more, what has appeared cannot be removed again.
            assert whole or not found or (times > 1 and "x.ra" not in found), f"request {skip}"
            assert whole or times > 1 or not passes
            s3.reset()
            assert times > 1 or own.uploads() == [], f"request {skip}"


def test_throttling_is_bounded(files: Path, s3: S3Server, bucket: Bucket) -> None:
    s3.fail(status(503), "UploadPart")
    with pytest.raises(WriteFailed, match="slow down .*5 times"):
        raconvert.convert(files / "large.npy", bucket.url("x.ra"))
    assert s3.operations.count("UploadPart") == filesystem.ATTEMPTS
    assert (bucket.names(), bucket.uploads()) == ([], [])


def test_what_arrives_changed_is_removed(
    files: Path, s3: S3Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store holds other bytes: seen by its ETag, and where that says nothing by reading."""
    other = bytearray((9 << 20) + 61)
    for name in ("small", "large"):
        late = "PutObject|CompleteMultipartUpload"
        seen = target.S3Upload._compare

        def compare(upload: target.S3Upload, answer: dict, expected: str) -> None:
            etag = bucket.put("x.ra", bytes(other)) and listing.stat(upload.url).version
            seen(upload, {**answer, "ETag": etag}, expected)  # noqa: B023

        monkeypatch.setattr(target.S3Upload, "_compare", compare)
        with pytest.raises(WriteFailed, match="does not hold what was sent"):
            raconvert.convert(files / f"{name}.npy", bucket.url("x.ra"))
        monkeypatch.setattr(target.S3Upload, "_compare", seen)
        assert bucket.names() == [], late


def test_verify_reads_it_back(
    files: Path, s3: S3Server, bucket: Bucket, damaged: Callable[[str], None]
) -> None:
    raconvert.convert(files / "large.npy", bucket.url("x.ra"), verify=True)
    assert s3.down > LARGE
    damaged("y.ra")
    with pytest.raises(WriteFailed, match="does not hold what was sent"):
        raconvert.convert(files / "large.npy", bucket.url("y.ra"), verify=True)
    assert bucket.names() == ["x.ra"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interruption_leaves_nothing(files: Path, s3: S3Server, bucket: Bucket) -> None:
    pids: list[int] = []
    s3.fail(call(lambda: os.kill(pids[0], signal.SIGINT)), "UploadPart", times=1, skip=1)
    command = [sys.executable, "-m", "raconvert", files / "large.npy", "-o", bucket.url("x.ra")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        pids.append(process.pid)
        _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert (bucket.names(), bucket.uploads()) == ([], [])


def test_an_interruption_cancels_what_nobody_waits_for(
    files: Path, s3: S3Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes between a request and the wait for its answer: nobody knows the request."""
    sent: list[concurrent.futures.Future[None]] = []

    def send(upload: target.S3Upload, data: bytes) -> None:
        sent.append(asyncio.run_coroutine_threadsafe(asyncio.sleep(3600), upload._fs.loop))
        raise KeyboardInterrupt

    monkeypatch.setattr(target.S3Upload, "_send", send)
    assert main([str(files / "large.npy"), "-o", bucket.url("x.ra")]) == 130
    assert [request.cancelled() for request in sent] == [True]
    assert (bucket.names(), bucket.uploads()) == ([], [])


def test_memory_does_not_grow_with_the_array(s3: S3Server, bucket: Bucket, tmp_path: Path) -> None:
    """Of a file that is but a header and elements; there is no local file either."""
    for name, mib in (("first", 20), ("more", 80)):
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", "u1", (mib << 20,)).flush()
    code = (
        "import os, resource, sys, raconvert\n"
        "for name in ('first', 'more'):\n"
        "    raconvert.convert(f'{name}.npy', f'{sys.argv[1]}{name}.ra')\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "print(os.listdir(os.environ['TMPDIR']))"
    )
    (tmp_path / "none").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, bucket.url()], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, more, left = done.stdout.splitlines()
    assert int(more) - int(first) < 32 << 10  # KiB
    assert left == "[]"


def test_parts_suffice_for_any_size() -> None:
    for nbytes in (1, 8 << 20, 80_000 << 20, 5 << 40, 50 << 40):
        part = target.part_size(nbytes)
        assert part >= target.LEAST_PART
        assert -(-nbytes // part) <= 10_000


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.org/x.ra", "can be read, not written"),
        ("s3://bucket", "is a bucket, not a name in it"),
        ("ftp://example.org/x.ra", "not a kind of URL"),
        ("s3://bucket/..", "cannot be the name of a file"),
    ],
)
def test_destinations_that_cannot_be_meant(url: str, said: str, files: Path) -> None:
    with pytest.raises(UsageError, match=said):
        raconvert.convert(files / "small.npy", url, to="ra")


def test_the_command_says_what_failed(files: Path, s3: S3Server, bucket: Bucket) -> None:
    def run(*words: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "raconvert", *map(str, words)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    assert run(files / "small.npy", "-o", bucket.url("x.ra"))[0] == 0
    code, err = run(files / "small.npy", "-o", bucket.url("x.ra"))
    assert (code, "--overwrite" in err) == (5, True)
    code, err = run(files / "small.npy", "-o", "s3://no-such-bucket-here/x.ra")
    assert (code, "its bucket does not exist" in err) == (1, True)
    s3.fail(status(403), "PutObject")
    code, err = run(files / "small.npy", "-o", bucket.url("y.ra"))
    assert code == 1
    assert "access is refused (403 AccessDenied)" in err
    assert f"'{bucket.url('y.ra')}'" in err
    assert CODES[403] in err


@pytest.mark.parametrize("to", ["npz", "zarr"])
def test_no_array_is_added_to_a_container_at_a_url(to: str, bucket: Bucket) -> None:
    """All others would go with it, or come back from an older copy."""
    url = bucket.url(f"d/x.{to}")
    raconvert.write(f"{url}#a", np.arange(3))
    for overwrite in (False, True):
        with pytest.raises(TargetExists, match="at a URL"):
            raconvert.write(f"{url}#b", np.arange(4), overwrite=overwrite)
    assert list(raconvert.read(url)) == ["a"]
    if to == "npz":  # no folder is replaced at a URL
        raconvert.write(url, {"b": np.arange(4)}, overwrite=True)
        assert list(raconvert.read(url)) == ["b"]
