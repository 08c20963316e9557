"""Zarr at URLs, as zarr-python has written it: what is asked for, and servers that do wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from raconvert.plugins.zarr.reader import read_store

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, ReadFailed, TooLarge, Unsafe, Unsupported
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from tests.remote import s3server, webserver

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
    pytest.mark.usefixtures("no_waits"),
]
VALUES = np.arange(40 * 30, dtype="<i4").reshape(40, 30)
STORES: dict[str, dict[str, Any]] = {
    "two.zarr": {"zarr_format": 2},
    "three.zarr": {"zarr_format": 3},
    "shards.zarr": {"zarr_format": 3, "shards": (20, 20)},
}
# What the rows 15 to 24 of the columns 3 to 7 lie in, in chunks of 10 x 10.
TOUCHED = {"two.zarr": {"x/1.0", "x/2.0"}, "three.zarr": {"x/c/1/0", "x/c/2/0"},
           "shards.zarr": {"x/c/0/0", "x/c/1/0"}}  # fmt: skip
PART = (slice(15, 25), slice(3, 8))


def made(folder: Path, name: str, *, consolidated: bool = True) -> None:
    said = dict(STORES[name])
    group = zarr.open_group(folder / name, mode="w", zarr_format=said.pop("zarr_format"))
    group.create_array("x", shape=VALUES.shape, dtype="i4", chunks=(10, 10), **said)[...] = VALUES
    group.create_array("s/y", data=np.arange(5.0)).attrs["units"] = "m"
    if consolidated:
        zarr.consolidate_metadata(folder / name)


def put(bucket: s3server.Bucket, folder: Path, above: str = "") -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(above + path.relative_to(folder).as_posix(), path.read_bytes())


@pytest.mark.parametrize("name", STORES)
def test_a_web_server_is_asked_for_the_chunks_that_are_meant(
    name: str, web: webserver.Server
) -> None:
    made(web.folder, name)
    with raconvert.open(web.url(name)) as opened:
        assert sorted(opened.names) == ["s/y", "x"]
        assert opened["s/y"].meta.units == "m"
        assert not [path for path in web.paths if re.search(r"/(c/)?[0-9]", path[6:])]
        web.paths.clear()
        assert np.array_equal(opened["x"][PART], VALUES[PART])
        assert sorted(web.paths) == sorted(f"/{name}/{key}" for key in TOUCHED[name])
        assert np.array_equal(np.asarray(opened["x"]), VALUES)
    mark = ".zarray" if name == "two.zarr" else "zarr.json"
    for word in (f"{name}/x", f"{name}/x/{mark}", f"{name}/"):
        with raconvert.open(web.url(word)) as opened:
            array = opened["x"] if hasattr(opened, "names") else opened
            assert np.array_equal(array[PART], VALUES[PART]), word


@pytest.mark.parametrize(
    ("name", "consolidated"), [("two.zarr", True), ("three.zarr", False), ("shards.zarr", True)]
)
def test_a_store_is_asked_for_the_chunks_that_are_meant(
    name: str, consolidated: bool, s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    made(tmp_path, name, consolidated=consolidated)
    put(bucket, tmp_path)
    with raconvert.open(bucket.url(name)) as opened:
        assert sorted(opened.names) == ["s/y", "x"]
        s3.reset()
        assert np.array_equal(opened["x"][PART], VALUES[PART])
        asked = [request.path for request in s3.requests]
        assert sorted(asked) == sorted(f"/{bucket.name}/{name}/{key}" for key in TOUCHED[name])
        assert set(s3.operations) == {"GetObject"}
        assert np.array_equal(np.asarray(opened["x"]), VALUES)
    assert main(["-q", f"{bucket.url(name)}#x", "-o", str(tmp_path / "x.npy")]) == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), VALUES)


def test_a_tree_in_a_store_has_each_hierarchy_once(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in STORES:
        made(tree, name)
    (tree / "three.zarr").rename(tree / "plain")
    np.save(tree / "n.npy", np.arange(3))
    put(bucket, tree, "in/")
    assert main(["info", "-r", "--short", bucket.url("in/")]) == 0
    told = capsys.readouterr().out.split("\n")[:-1]
    assert sorted(line.split("  ")[0].rpartition("/in/")[2] for line in told) == [
        "n.npy", "plain#s/y", "plain#x", "shards.zarr#s/y", "shards.zarr#x",
        "two.zarr#s/y", "two.zarr#x",
    ]  # fmt: skip
    assert main(["migrate", bucket.url("in"), str(tmp_path / "out"), "--to", "h5", "-q"]) == 0
    names = {path.name for path in (tmp_path / "out").glob("*.h5")}
    assert names == {"two.h5", "plain.h5", "shards.h5", "n.h5"}
    assert np.array_equal(raconvert.read(tmp_path / "out" / "plain.h5")["x"], VALUES)


def test_a_chunk_that_is_not_there_is_the_fill_value_and_an_error_is_none(
    web: webserver.Server,
) -> None:
    made(web.folder, "three.zarr")
    (web.folder / "three.zarr/x/c/1/0").unlink()
    with raconvert.open(web.url("three.zarr")) as opened:
        expected = VALUES.copy()
        expected[10:20, :10] = 0
        assert np.array_equal(np.asarray(opened["x"]), expected)
        for status in (500, 403):
            web.status = status
            with pytest.raises(ReadFailed):
                opened["x"][PART]
            web.status = 0
        web.cut = 1 << 30
        with pytest.raises(ReadFailed):
            opened["x"][PART]
        web.cut = 0
        web.shift = 1
        with pytest.raises((ReadFailed, Corrupt)):
            opened["x"][30:40]
        web.shift = 0
        path = web.folder / "three.zarr/x/c/2/0"
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(Corrupt, match="c/2/0"):
            opened["x"][PART]


def test_an_error_of_a_store_is_no_fill_value(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    made(tmp_path, "shards.zarr")
    put(bucket, tmp_path)
    bucket.delete("shards.zarr/x/c/0/0")
    with raconvert.open(bucket.url("shards.zarr")) as opened:
        assert not opened["x"][:20, :20].any()
        for code in (500, 403):
            fault = s3.fail(s3server.status(code), "GetObject", key="x/c/1/1")
            with pytest.raises(ReadFailed):
                opened["x"][30, 25]
            assert fault.met
            s3.reset()
        assert opened["x"][30, 25] == VALUES[30, 25]


def test_consolidated_metadata_leads_nowhere_else(web: webserver.Server) -> None:
    made(web.folder, "three.zarr")
    path = web.folder / "three.zarr/zarr.json"
    fields = json.loads(path.read_text())
    known = fields["consolidated_metadata"]["metadata"]
    for odd in ("../x", "/x", "a/../../x", "http://127.0.0.1/x", "x?y", "a\\b", "x%2f.."):
        known_now = {**known, odd: known["x"]}
        fields["consolidated_metadata"]["metadata"] = known_now
        path.write_text(json.dumps(fields))
        web.paths.clear()
        with pytest.raises((Unsafe, Corrupt)):
            raconvert.read(web.url("three.zarr"), array=odd)
        assert all(one.startswith("/three.zarr/") and ".." not in one for one in web.paths), odd


def test_what_is_not_there_or_cannot_be_listed_is_said(web: webserver.Server) -> None:
    made(web.folder, "three.zarr", consolidated=False)
    with pytest.raises(Unsupported, match="consolidated"):
        raconvert.open(web.url("three.zarr"))
    with pytest.raises((ReadFailed, Unsupported)):
        raconvert.open(web.url("none.zarr"))
    with pytest.raises(ReadFailed, match="does not exist"):
        raconvert.open(web.url("none"))


# Chunks that a server does not have -----------------------------------------------------------------


def declared(folder: Path, shape: list[int], chunk: list[int], chunks: dict[str, bytes]) -> None:
    """An array of bytes as its metadata says, with the chunks that are there."""
    folder.mkdir()
    fields = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}], "fill_value": 0,
    }  # fmt: skip
    (folder / "zarr.json").write_text(json.dumps(fields))
    for key, raw in chunks.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(raw)


@pytest.mark.parametrize(
    ("shape", "chunk", "words"),
    [
        ([1 << 40], [1 << 20], "little more than a fill value"),
        ([1 << 20, 1 << 20], [1 << 10, 1 << 10], "little more than a fill value"),
        ([10**9], [1], "few exist"),
        ([1 << 29], [1], "few exist"),
    ],
)
def test_what_a_server_does_not_have_costs_few_requests(
    shape: list[int], chunk: list[int], words: str, web: webserver.Server, tmp_path: Path
) -> None:
    declared(web.folder / "x.zarr", shape, chunk, {})
    web.paths.clear()
    with pytest.raises(TooLarge, match=words) as caught:
        raconvert.convert(web.url("x.zarr"), tmp_path / "x.ra")
    assert caught.value.remedy
    assert len(web.paths) < 1100
    assert not list(tmp_path.glob("*x.ra*"))


def test_what_a_server_has_too_little_of_is_noticed_on_the_way(web: webserver.Server) -> None:
    """A single chunk does not buy a terabyte."""
    declared(web.folder / "x.zarr", [1 << 34], [1 << 12], {"c/0": bytes(1 << 12)})
    limits = Limits(memory=1 << 16, absent_ratio=10, absent_requests=50)
    array = read_store(Source(web.url("x.zarr"), limits=limits)).arrays[0]
    web.paths.clear()
    with pytest.raises(TooLarge):
        for _ in array.data.stream(1 << 14):
            pass
    assert len(web.paths) < 200


def test_a_sparse_store_is_read_and_its_gaps_are_counted(
    web: webserver.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks = {f"c/{n}": bytes([n]) * 64 for n in range(3, 300, 50)}
    declared(web.folder / "x.zarr", [64 * 300], [64], chunks)
    report = raconvert.convert(web.url("x.zarr"), tmp_path / "x.ra")
    assert "array 'x': 294 of 300 chunks absent: fill value 0" in report.notes
    values = raconvert.read(tmp_path / "x.ra").reshape(300, 64)
    assert [n for n in range(300) if values[n].any()] == list(range(3, 300, 50))
