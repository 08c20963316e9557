"""Raw arrays inside one bucket: the store copies them, and no byte of them comes here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import raconvert
from raconvert.api import array_of
from raconvert.errors import Changed, ReadFailed, WriteFailed
from raconvert.files.remote import server_copy
from tests.remote.s3server import EVERY, call, cut, lose_answer, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.remote.s3server import Bucket, S3Server

LARGE = (12 << 20) + 13  # bytes
CROSSES = 8 << 20  # each way, at most: the first part and headers

pytestmark = pytest.mark.usefixtures("no_waits")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One array in three formats, and one with metadata."""
    folder = tmp_path_factory.mktemp("files")
    values = np.random.default_rng(7).integers(0, 256, LARGE, "u1")
    np.save(folder / "x.npy", values)
    raconvert.convert(folder / "x.npy", folder / "x.ra")
    raconvert.convert(folder / "x.npy", folder / "x.nrrd")
    array = array_of(values, "said")
    array.meta = raconvert.Metadata(description="a grid")
    raconvert.write(folder / "said.nrrd", array)
    raconvert.convert(folder / "said.nrrd", folder / "said.ra")
    return folder


def copied(s3: S3Server) -> bool:
    return "UploadPartCopy" in s3.operations and s3.up <= CROSSES and s3.down <= CROSSES


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("npy", "ra"),
        ("ra", "nrrd"),
        ("nrrd", "npy"),
        *([("ra", "npy"), ("npy", "nrrd"), ("nrrd", "ra")] if EVERY else []),
    ],
)
def test_the_store_copies(
    source: str, target: str, files: Path, s3: S3Server, bucket: Bucket, tmp_path: Path
) -> None:
    url = bucket.put(f"x.{source}", (files / f"x.{source}").read_bytes())
    s3.reset()
    report = raconvert.convert(url, bucket.url(f"d/x.{target}"))
    assert copied(s3), (s3.operations, s3.up, s3.down)
    raconvert.convert(files / f"x.{source}", tmp_path / f"x.{target}")
    assert bucket.get(f"d/x.{target}") == (tmp_path / f"x.{target}").read_bytes()
    assert "their digest is not known (verify=True reads them)" in " ".join(report.notes)
    assert bucket.uploads() == []


def test_metadata_is_written_beside_it(files: Path, s3: S3Server, bucket: Bucket) -> None:
    url = bucket.put("said.nrrd", (files / "said.nrrd").read_bytes())
    raconvert.convert(url, bucket.url("said.ra"))
    assert copied(s3), (s3.operations, s3.up, s3.down)
    for name in ("said.ra", "said.ra.yaml"):
        assert bucket.get(name) == (files / name).read_bytes()


def test_parts_are_copied_in_order(
    files: Path, s3: S3Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_copy, "COPIED_PART", 5 << 20)
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    raconvert.convert(url, bucket.url("x.ra"))
    assert s3.operations.count("UploadPartCopy") == 2
    assert bucket.get("x.ra") == (files / "x.ra").read_bytes()


def test_what_must_be_changed_is_not_copied(s3: S3Server, bucket: Bucket, tmp_path: Path) -> None:
    """Big-endian numbers, and columns first, pass through here."""
    values = np.arange(2_000_000, dtype=">i8").reshape(1000, 2000)
    for name, array in (("big", values), ("columns", np.asfortranarray(values.astype("i8")))):
        np.save(tmp_path / "x.npy", array)
        url = bucket.put(f"{name}.npy", (tmp_path / "x.npy").read_bytes())
        raconvert.convert(url, bucket.url(f"{name}.ra"))
        raconvert.convert(tmp_path / "x.npy", tmp_path / "x.ra", overwrite=True)
        assert bucket.get(f"{name}.ra") == (tmp_path / "x.ra").read_bytes()
    assert "UploadPartCopy" not in s3.operations


@pytest.mark.parametrize("when", ["UploadPart", "UploadPartCopy", "CreateMultipartUpload"], ids=str)
def test_a_source_that_changes_is_refused(
    when: str, files: Path, s3: S3Server, bucket: Bucket
) -> None:
    data = (files / "x.npy").read_bytes()
    url = bucket.put("x.npy", data)
    s3.fail(call(lambda: bucket.put("x.npy", data[:-1] + b"!")), when, times=1)
    with pytest.raises(Changed, match="changed while it was read"):
        raconvert.convert(url, bucket.url("x.ra"))
    assert (bucket.names(), bucket.uploads()) == (["x.npy"], [])


def test_a_source_that_vanishes(files: Path, s3: S3Server, bucket: Bucket) -> None:
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    s3.fail(call(lambda: bucket.delete("x.npy")), "UploadPartCopy", times=1)
    with pytest.raises((Changed, ReadFailed)):
        raconvert.convert(url, bucket.url("x.ra"))
    assert (bucket.names(), bucket.uploads()) == ([], [])


def test_a_store_that_copies_no_ranges(files: Path, s3: S3Server, bucket: Bucket) -> None:
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    s3.fail(status(501), "UploadPartCopy")
    raconvert.convert(url, bucket.url("x.ra"))
    assert s3.up > LARGE
    assert bucket.get("x.ra") == (files / "x.ra").read_bytes()
    assert bucket.uploads() == []


@pytest.mark.parametrize("fault", [lose_answer(), status(503), *([cut(), status(500)] * EVERY)])
def test_faults_that_pass(fault: object, files: Path, s3: S3Server, bucket: Bucket) -> None:
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    raconvert.convert(url, bucket.url("count.ra"))
    count = s3.operations.index("CreateMultipartUpload"), len(s3.requests)
    for skip in range(*count):
        s3.reset()
        s3.fail(fault, times=1, skip=skip)
        raconvert.convert(url, bucket.url(f"{skip}.ra"))
        assert bucket.get(f"{skip}.ra") == (files / "x.ra").read_bytes()
        assert bucket.uploads() == [], skip
        bucket.delete(f"{skip}.ra")


@pytest.mark.parametrize("code", [403, *([404, 500] * EVERY)])
def test_a_copy_that_fails_leaves_nothing(
    code: int, files: Path, s3: S3Server, bucket: Bucket
) -> None:
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    s3.fail(status(code), "UploadPartCopy")
    with pytest.raises((ReadFailed, WriteFailed)):
        raconvert.convert(url, bucket.url("x.ra"))
    assert (bucket.names(), bucket.uploads()) == (["x.npy"], [])


def test_verify_reads_both(
    files: Path, s3: S3Server, bucket: Bucket, damaged: Callable[[str], None]
) -> None:
    url = bucket.put("x.npy", (files / "x.npy").read_bytes())
    raconvert.convert(url, bucket.url("x.ra"), verify=True)
    assert s3.down > 2 * LARGE
    damaged("y.ra")
    with pytest.raises(WriteFailed, match="does not hold what was sent"):
        raconvert.convert(url, bucket.url("y.ra"), verify=True)
    assert bucket.names() == ["x.npy", "x.ra"]


def test_trees_inside_a_bucket(files: Path, s3: S3Server, bucket: Bucket, tmp_path: Path) -> None:
    """Small files by way of here, large ones not; from a store to here as a local run."""
    (tmp_path / "src").mkdir()
    np.save(tmp_path / "src" / "small.npy", np.arange(10))
    raconvert.migrate(tmp_path / "src", tmp_path / "ra", to="ra", jobs=1)
    bucket.put("src/small.npy", (tmp_path / "src" / "small.npy").read_bytes())
    bucket.put("src/x.npy", (files / "x.npy").read_bytes())
    options = {"to": "ra", "jobs": 1}
    raconvert.migrate(
        bucket.url("src"), bucket.url("dst"), journal=tmp_path / "j.sqlite", **options
    )
    assert copied(s3), (s3.operations, s3.up, s3.down)
    small = (tmp_path / "ra" / "small.ra").read_bytes()
    assert bucket.get("dst/small.ra") == small
    assert bucket.get("dst/x.ra") == (files / "x.ra").read_bytes()
    assert b"x.ra" not in bucket.get("dst/SHA256SUMS")  # nobody has read it
    again = raconvert.migrate(
        bucket.url("src"), bucket.url("dst"), journal=tmp_path / "j.sqlite", **options
    )
    assert len(again.before) == 2
    again = raconvert.migrate(
        bucket.url("src"), bucket.url("dst"), journal=tmp_path / "j.sqlite", paranoid=True,
        **options,
    )  # fmt: skip
    assert len(again.before) == 1
    assert "'x.ra' is not proven, and is written again" in again.notes
    assert (again.done, again.failed) == (2, [])
    raconvert.migrate(
        bucket.url("src"), bucket.url("proven"), journal=tmp_path / "p.sqlite", verify=True,
        **options,
    )  # fmt: skip
    raconvert.migrate(bucket.url("src"), tmp_path / "here", **options)
    sums = (tmp_path / "here" / "SHA256SUMS").read_bytes()
    assert bucket.get("proven/SHA256SUMS") == sums
    assert sums.count(b"\n") == 2
