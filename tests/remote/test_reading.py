"""Files at URLs are read as local ones are: the same elements, few bytes, one version."""

from __future__ import annotations

import gc
import hashlib
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from h5py._objects import phil

import raconvert
from raconvert.cli import main
from raconvert.errors import (
    Changed,
    RaconvertError,
    ReadFailed,
    Unsafe,
    Unsupported,
    UsageError,
)
from raconvert.files.remote import filesystem as fs
from raconvert.files.remote.source import RemoteFile
from tests.remote import s3server, webserver

if TYPE_CHECKING:
    from collections.abc import Callable

TEN_GB = 10 << 30
FEW = 256 << 10  # bytes that `info` may take

pytestmark = pytest.mark.usefixtures("no_waits")


VALUES = np.arange(2400, dtype="f4").reshape(40, 60)
SUFFIXES = ["ra", "npy", "npz", "nrrd", "h5", "mat", "tiff"]


def made(folder: Path, suffix: str) -> Path:
    path = folder / f"a.{suffix}"
    raconvert.write(path, VALUES)
    return path


def test_no_garbage_is_collected_while_the_library_for_hdf5_waits(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    """An h5py object among it would wait for the lock of the thread that waits for the bytes."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        values = np.random.default_rng(5).random((100, 1000))
        file.create_dataset("x", data=values, chunks=(10, 100), compression="lzf")
    url = bucket.put("x.h5", (tmp_path / "x.h5").read_bytes())
    taken: list[bool] = []  # at each request, and whenever garbage is collected, by that thread
    collected: list[bool] = []

    def is_taken() -> bool:
        free = phil.acquire(blocking=False)
        if free:
            phil.release()
        return not free

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            collected.append(is_taken())

    def waste() -> None:
        taken.append(is_taken())
        Garbage()
        _ = [[] for _ in range(3 * gc.get_threshold()[0])]  # enough for the collector to begin

    s3.fail(s3server.call(waste), "GetObject", key="x.h5")
    assert np.array_equal(raconvert.read(f"{url}#x"), values)
    gc.collect()
    assert len(collected) == len(taken) > 3
    assert any(taken)
    assert not any(collected)
    assert gc.isenabled()


# The same elements -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_from_s3(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path, suffix: str
) -> None:
    path = made(tmp_path, suffix)
    url = bucket.put(f"deep/a b.{suffix}", path.read_bytes())
    name = "a" if isinstance(raconvert.read(path), dict) else None

    assert np.array_equal(np.squeeze(raconvert.read(url, name)), VALUES)
    assert raconvert.digest(url, name) == raconvert.digest(path, name)
    assert raconvert.info(url)["arrays"][0]["shape"] == raconvert.info(path)["arrays"][0]["shape"]
    raconvert.convert(path, tmp_path / "local.npy")
    raconvert.convert(url, tmp_path / "remote.npy")
    assert (tmp_path / "local.npy").read_bytes() == (tmp_path / "remote.npy").read_bytes()


@pytest.mark.parametrize("suffix", ["ra", "h5", "mat"])
def test_every_way_from_the_web(web: webserver.Server, suffix: str) -> None:
    made(web.folder, suffix)
    name = None if suffix == "ra" else "a"

    assert np.array_equal(raconvert.read(web.url(f"a.{suffix}"), name), VALUES)
    web.ranges = False
    assert np.array_equal(raconvert.read(web.url(f"a.{suffix}"), name), VALUES)


def test_memory_and_file_urls(tmp_path: Path, package: Callable[..., None]) -> None:
    package("fsspec", "remote")
    path = made(tmp_path, "ra")
    url = "memory://test_memory_and_file_urls/a.ra"
    fs.filesystem(url).pipe_file(fs.key_of(url), path.read_bytes())

    assert np.array_equal(raconvert.read(url), VALUES)
    assert np.array_equal(raconvert.ra.read(url), VALUES)
    assert np.array_equal(raconvert.read(f"file://{path}"), VALUES)


def test_a_part_of_an_array_is_a_part_of_the_bytes(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    values = np.arange(1 << 20, dtype="i8").reshape(1024, 1024)
    np.save(tmp_path / "x.npy", values)
    url = bucket.put("x.npy", (tmp_path / "x.npy").read_bytes())
    with raconvert.open(url) as lazy:
        s3.reset()
        assert np.array_equal(lazy[500], values[500])
        assert s3.down < 100_000
        assert np.array_equal(np.asarray(lazy), values)


def test_chunks_of_hdf5_are_decoded(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    values = np.random.default_rng(1).integers(0, 50, (300, 500))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("g/x", data=values, chunks=(64, 64), compression="gzip", shuffle=True)
        file.create_dataset("g/lzf", data=values, chunks=(64, 64), compression="lzf")
        file["text"] = "a text"
    url = bucket.put("x.h5", (tmp_path / "x.h5").read_bytes())

    assert np.array_equal(raconvert.read(f"{url}#g/x"), values)
    assert np.array_equal(raconvert.read(url, "g/lzf"), values)
    assert raconvert.read(f"{url}#text")[()] == raconvert.read(f"{tmp_path}/x.h5#text")[()]


def test_globs_folders_and_sidecars(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    """A column-major source leaves its index order in the sidecar, which is honoured here too."""
    (tmp_path / "in").mkdir()
    for number in range(11):
        raconvert.write(tmp_path / "in" / f"s{number}.png", VALUES[:, :9].astype("u1") + number)
    for path in (tmp_path / "in").iterdir():
        bucket.put(f"in/{path.name}", path.read_bytes())
    bucket.put("in/deep/t.png", path.read_bytes())
    bucket.put("in/notes.txt", b"none of ours")
    for number, words in enumerate([bucket.url("in/*.png"), bucket.url("in"), bucket.url("in/")]):
        raconvert.convert(words, tmp_path / f"{number}.ra", stack=True)
        raconvert.convert(tmp_path / "in", tmp_path / "local.ra", overwrite=True)
        found = (tmp_path / f"{number}.ra").read_bytes()
        assert found == (tmp_path / "local.ra").read_bytes()
    raconvert.convert(bucket.url("in"), out_dir=tmp_path / "out", to="ra", recursive=True)
    assert (tmp_path / "out" / "deep" / "t.ra").is_file()

    raconvert.write(tmp_path / "m.mat", {"m": VALUES})
    raconvert.convert(tmp_path / "m.mat", tmp_path / "m.ra")
    bucket.put("m.ra", (tmp_path / "m.ra").read_bytes())
    bucket.put("m.ra.yaml", (tmp_path / "m.ra.yaml").read_bytes())
    assert np.array_equal(raconvert.read(bucket.url("m.ra")), VALUES)


def test_braces_are_files_at_urls(
    bucket: s3server.Bucket, web: webserver.Server, tmp_path: Path
) -> None:
    for number in range(3):
        raconvert.write(web.folder / f"x-{number:03}.ra", VALUES + number)
        bucket.put(f"x-{number:03}.ra", (web.folder / f"x-{number:03}.ra").read_bytes())
    for url in (web.url("x-{000..002}.ra"), bucket.url("x-{000..002}.ra")):
        assert np.array_equal(raconvert.read(url), [VALUES, VALUES + 1, VALUES + 2])
    raconvert.write(tmp_path / "y.ra", VALUES - 1)
    bucket.put("x-{0,1}.ra", (tmp_path / "y.ra").read_bytes())
    assert np.array_equal(raconvert.read(bucket.url("x-{0,1}.ra")), VALUES - 1)


@pytest.mark.parametrize("name", ["IM{}", "IM{}.dcm"])
def test_a_folder_of_dicom_is_one_source(
    name: str, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    """By suffixes or first bytes, with all folders below a DICOMDIR, other files named."""
    pytest.importorskip("pydicom")
    import dicom_files as made

    values = made.volume((3, 4, 5), "int16")
    paths = made.series(tmp_path / "scan", values, order=[2, 0, 1])
    for number, path in enumerate(paths):
        bucket.put(f"scan/{name.format(number)}", path.read_bytes())
        bucket.put(f"set/a/b/{name.format(number)}", path.read_bytes())
    bucket.put("scan/zz.npy", b"of another format")
    bucket.put("set/DICOMDIR", paths[0].read_bytes()[:132])
    raconvert.convert(tmp_path / "scan", tmp_path / "local.nrrd")
    for url in (bucket.url("scan"), bucket.url("scan/")):
        report = raconvert.convert(url, tmp_path / "x.nrrd", overwrite=True)
        assert any("left out 1 file of other formats: zz.npy" in note for note in report.notes)
        assert (tmp_path / "x.nrrd").read_bytes() == (tmp_path / "local.nrrd").read_bytes()
    with raconvert.open_bundle(bucket.url("scan")) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
    with raconvert.open_bundle(bucket.url("set")) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
        assert any("without an image: DICOMDIR" in note for note in bundle.notes)


def test_a_folder_at_a_web_server_has_no_page(
    web: webserver.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (web.folder / "scan").mkdir()
    np.save(web.folder / "scan" / "a.npy", np.arange(3))
    (web.folder / "list").write_text("<!doctype html><title>x</title>")
    page = tmp_path / "x.html"
    assert main(["info", "--html", web.url("list/"), "-o", str(page)]) != 0
    said = capsys.readouterr().err
    assert "a page about a folder is made of one on this machine, not of one at a URL" in said
    assert not page.exists()
    assert main(["info", "--html", web.url("scan/a.npy"), "-o", str(page)]) == 0


def test_a_folder_of_a_bucket_has_no_page(
    bucket: s3server.Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    bucket.put("many/a.npy", (tmp_path / "a.npy").read_bytes())
    bucket.put("many/b.npy", (tmp_path / "a.npy").read_bytes())
    assert main(["info", "--html", bucket.url("many/"), "-o", str(tmp_path / "x.html")]) != 0
    said = capsys.readouterr().err
    assert "not of one at a URL" in said
    assert main(["peek", bucket.url("many/")]) == 0  # file by file
    shown = capsys.readouterr().out
    assert "many/a.npy" in shown
    assert "many/b.npy" in shown


def test_a_folder_of_dicom_at_a_web_server_has_a_way_out(
    web: webserver.Server, tmp_path: Path
) -> None:
    """Nothing lists its files; they are read by their names."""
    pytest.importorskip("pydicom")
    import dicom_files as made

    values = made.volume((3, 4, 5), "int16")
    paths = made.series(web.folder / "scan", values)
    with pytest.raises(UsageError, match="does not tell which files it has") as refusal:
        raconvert.convert(web.url("scan/"), tmp_path / "x.nrrd")
    assert "files_from" in refusal.value.remedy
    urls = [web.url(f"scan/{path.name}") for path in paths]
    raconvert.convert(urls, tmp_path / "x.nrrd")
    assert np.array_equal(raconvert.read(tmp_path / "x.nrrd"), values)


def test_names_with_odd_letters(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    data = made(tmp_path, "ra").read_bytes()
    for key in ("a#b.ra", "a[1].ra", "a%20b.ra", "ä ö.ra", "q?versionId=1.ra"):
        assert np.array_equal(raconvert.read(bucket.put(key, data)), VALUES), key
    with pytest.raises(ReadFailed, match="does not exist"):
        raconvert.read(bucket.url("a#c.ra"))


def test_a_name_that_leads_out_of_the_destination_is_refused(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    bucket.put("in/../../evil.npy", b"x")

    with pytest.raises(Unsafe, match="lead out"):
        raconvert.convert(bucket.url("in"), out_dir=tmp_path / "out", to="ra", recursive=True)


# Few bytes ---------------------------------------------------------------------------------------


def large(path: Path) -> None:
    """A file of 10 GiB that is one hole behind its header."""
    count = TEN_GB // 4
    suffix = path.suffix
    if suffix == ".h5":
        with h5py.File(path, "w") as file:
            for number in range(20):
                file[f"group/small{number}"] = np.arange(number + 1)
            space = h5py.h5s.create_simple((count,))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, space, plist)
        return
    header = {
        ".ra": struct.pack("<8s5QQ", b"rawarray", 0, 3, 4, TEN_GB, 1, count),
        ".nrrd": f"NRRD0004\ntype: float\ndimension: 1\nsizes: {count}\nencoding: raw\nendian: little\n\n".encode(),
    }.get(suffix)
    if suffix == ".npy":
        np.save(path, np.empty(0, "f4"))
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}"
        header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.ljust(117).encode() + b"\n"
    assert header is not None
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + TEN_GB)


@pytest.mark.parametrize("suffix", ["ra", "npy", "nrrd", "h5"])
def test_info_of_10_gib_takes_kilobytes(web: webserver.Server, suffix: str) -> None:
    large(web.folder / f"x.{suffix}")

    facts = raconvert.info(web.url(f"x.{suffix}"))

    assert facts["stored_bytes"] >= TEN_GB
    assert any(array["nbytes"] == TEN_GB for array in facts["arrays"])
    assert 0 < web.sent <= FEW
    assert len(web.paths) < 20


def test_large_reads_are_ranged_and_memory_is_bounded(web: webserver.Server) -> None:
    size = 40 << 20
    path = web.folder / "x.bin"
    data = np.random.default_rng(2).bytes(size)
    path.write_bytes(data)
    file = RemoteFile(web.url("x.bin"))
    digest, place, buffer = hashlib.sha256(), 0, bytearray(1 << 18)
    while got := file.read_into(memoryview(buffer), place):
        digest.update(buffer[:got])
        place += got

    assert digest.digest() == hashlib.sha256(data).digest()
    assert len(web.paths) < 16  # ranges grow to 8 MiB
    assert web.sent == size  # nothing is asked for twice


def test_reads_anywhere_are_right(web: webserver.Server) -> None:
    data = np.random.default_rng(3).bytes(3 << 20)
    (web.folder / "x.bin").write_bytes(data)
    file = RemoteFile(web.url("x.bin"))
    random = np.random.default_rng(4)
    place = 0
    for _ in range(400):
        length = int(random.choice([1, 100, 5000, 20_000, 300_000]))
        place = place if random.random() < 0.6 else int(random.integers(0, len(data)))
        assert file.read(length, place) == data[place : place + length]
        place = min(place + length, len(data))


# One version -------------------------------------------------------------------------------------


def test_a_change_on_s3_is_refused(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    values = np.arange(1 << 20, dtype="f8")
    raconvert.write(tmp_path / "x.ra", values)
    data = (tmp_path / "x.ra").read_bytes()
    url = bucket.put("x.ra", data)
    s3.fail(
        s3server.call(lambda: bucket.put("x.ra", data[:-1] + b"!")), "GetObject", skip=3, times=1
    )

    with pytest.raises(Changed, match="changed while it was read"):
        raconvert.convert(url, tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("said", ["ETag", "Last-Modified", "nothing"])
def test_a_change_on_the_web_is_refused(web: webserver.Server, said: str) -> None:
    path = web.folder / "x.ra"
    raconvert.write(path, np.arange(1 << 17, dtype="f8"))
    if said == "Last-Modified":
        web.version = lambda path: {
            "Last-Modified": f"Sun, 22 Nov 2026 13:00:{path.stat().st_mtime_ns % 60:02} GMT"
        }
    elif said == "nothing":  # then the size alone tells
        web.version = lambda path: {}
    os.utime(path, ns=(1, 1))
    with raconvert.open(web.url("x.ra")) as lazy:
        with path.open("r+b") as file:
            file.truncate((1 << 20) + 55)
        os.utime(path, ns=(2, 2))
        with pytest.raises(Changed):
            lazy[100_000]


# What goes wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["ra", "h5", "npz", "mat", "tiff"])
@pytest.mark.parametrize("fault", ["503", "cut", "half"])
def test_faults_that_pass_are_not_noticed(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path, suffix: str, fault: str
) -> None:
    path = made(tmp_path, suffix)
    url = bucket.put(f"a.{suffix}", path.read_bytes())
    action = {"503": s3server.status(503), "cut": s3server.cut(), "half": s3server.cut_answer(100)}
    s3.fail(action[fault], "GetObject", times=2)
    name = None if suffix in ("ra", "tiff") else "a"

    assert np.array_equal(np.squeeze(raconvert.read(url, name)), VALUES)


@pytest.mark.parametrize("skip", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    ("status", "text"), [(403, "refused"), (503, "slow down"), (500, "failed")]
)
def test_faults_that_stay_are_no_damage_of_the_file(
    s3: s3server.S3Server,
    bucket: s3server.Bucket,
    tmp_path: Path,
    skip: int,
    status: int,
    text: str,
) -> None:
    """Also where the library for HDF5 asks: a store that fails says nothing about the file."""
    values = np.random.default_rng(5).random((100, 1000))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(10, 100), compression="lzf")
    url = bucket.put("x.h5", (tmp_path / "x.h5").read_bytes())
    fault = s3.fail(s3server.status(status), "GetObject", skip=skip, key="x.h5")

    error = None
    try:
        found = raconvert.read(f"{url}#x")
    except RaconvertError as raised:
        error = raised

    if error is None:
        assert len(fault.met) <= skip
        assert np.array_equal(found, values)
    else:
        assert type(error) is ReadFailed, repr(error)
        assert text in str(error)
        assert len(fault.met) > skip


def test_a_missing_file_has_a_line_and_a_code(
    s3: s3server.S3Server,
    bucket: s3server.Bucket,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = bucket.url("none.ra")

    assert main(["info", url]) == 1
    assert main([url, "-o", str(tmp_path / "x.npy")]) == 1
    told = capsys.readouterr().err
    assert told.count(f"'{url}': does not exist") == 2
    assert "Traceback" not in told


@pytest.mark.parametrize("wrong", ["shift", "length", "cut", "location", "gzip"])
def test_a_server_that_answers_wrong_is_refused(web: webserver.Server, wrong: str) -> None:
    made(web.folder, "ra")
    if wrong == "gzip":
        web.version = lambda path: {"Content-Encoding": "gzip"}
    elif wrong == "length":
        web.ranges = web.length = False
    else:
        setattr(web, wrong, {"shift": 1, "cut": 1 << 30, "location": "file:///etc/passwd"}[wrong])

    with pytest.raises(ReadFailed):
        raconvert.read(web.url("a.ra"))


def test_a_file_that_a_server_gives_whole_is_read_once_and_said(
    web: webserver.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    path = web.folder / "x.ra"
    raconvert.write(path, np.arange(1 << 18, dtype="f8"))
    web.ranges = False

    facts = raconvert.info(web.url("x.ra"))

    assert any("no ranges" in note for note in facts["notes"])
    assert web.sent < 2.2 * path.stat().st_size


# Safety ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["http://127.0.0.1:{port}/x.raw", "../x.raw", "/x.raw", "%2e%2e/x.raw"]
)
@pytest.mark.parametrize("trust", [(), ("external",)])
def test_what_a_header_names_is_not_fetched(
    web: webserver.Server, tmp_path: Path, name: str, trust: tuple[str, ...]
) -> None:
    name = name.format(port=web.server_address[1])
    text = f"NRRD0004\ntype: uchar\ndimension: 1\nsizes: 4\nencoding: raw\ndata file: {name}\n"
    (web.folder / "d").mkdir()
    for path in (web.folder / "d" / "x.nhdr", tmp_path / "x.nhdr"):
        path.write_text(text)
    (web.folder / "x.raw").write_bytes(b"abcd")

    for place in (web.url("d/x.nhdr"), tmp_path / "x.nhdr"):
        with pytest.raises((Unsafe, ReadFailed)):
            raconvert.read(place, trust=trust)
    assert not [path for path in web.paths if "x.raw" in path]


def test_a_data_file_beside_its_header_is_read(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path
) -> None:
    raconvert.write(tmp_path / "x.nhdr", VALUES)
    for path in tmp_path.iterdir():
        bucket.put(f"pair/{path.name}", path.read_bytes())

    assert np.array_equal(raconvert.read(bucket.url("pair/x.nhdr")), VALUES)


@pytest.mark.parametrize("kind", ["external", "link", "virtual"])
def test_files_that_hdf5_names_are_not_read(
    s3: s3server.S3Server, bucket: s3server.Bucket, tmp_path: Path, kind: str
) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(4)
    (tmp_path / "x.raw").write_bytes(bytes(32))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "external":
            file.create_dataset("x", (4,), "i8", external=[(str(tmp_path / "x.raw"), 0, 32)])
        elif kind == "link":
            file["x"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "x")
        else:
            layout = h5py.VirtualLayout((4,), "i8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (4,))
            file.create_virtual_dataset("x", layout)
    url = bucket.put("x.h5", (tmp_path / "x.h5").read_bytes())

    with pytest.raises((Unsupported, Unsafe)):
        raconvert.read(url, "x")


def test_what_proves_who_asks_is_shown_nowhere(
    web: webserver.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(web.folder, "ra")
    url = web.url("a.ra", user="me:geheim@", query="?X-Signature=geheim2")

    assert main(["info", "--json", url]) == 0
    assert main([url, "-o", str(tmp_path / "x.npy"), "--report", str(tmp_path / "r.json")]) in (
        0,
        2,
    )
    assert main(["digest", url]) == 0
    assert main(["info", url.replace("a.ra", "none.ra")]) == 1
    assert main([url, "-o", str(tmp_path / "x.png")]) == 4
    web.status = 403
    assert main(["info", url]) == 1
    told = "".join(capsys.readouterr())
    for path in tmp_path.glob("*.*"):
        told += path.read_bytes().decode("latin-1") if path.is_file() else ""
    assert "geheim" not in told
    assert "***@127.0.0.1" in told


def test_local_commands_import_nothing_of_this(tmp_path: Path) -> None:
    made(tmp_path, "npy")
    code = (
        "import sys; from raconvert.cli import main; main(sys.argv[1:]); "
        "print(sorted(m for m in sys.modules if 'remote' in m or 'fsspec' in m))"
    )
    for words in (["info", "a.npy"], ["a.npy", "-o", "b.ra"], ["./s3://x.ra", "-o", "b.npy"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        if not words[0].startswith("./"):
            assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_a_local_file_whose_name_looks_like_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    raconvert.write(tmp_path / "s3:" / "b" / "x.ra", VALUES)
    monkeypatch.chdir(tmp_path)

    assert np.array_equal(raconvert.read("./s3://b/x.ra"), VALUES)
