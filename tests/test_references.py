"""Views of arrays where they lie: read by the programs they are for, and proved by `verify`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import h5py
import nrrd
import numpy as np
import pytest
import rasterio
import scipy.io
import SimpleITK
import spectral
import xarray
import zarr
from harpy import HarFileIO
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
from virtualizarr import open_virtual_dataset

import raconvert
from raconvert.cli import main
from raconvert.errors import (
    Corrupt,
    TargetExists,
    TooLarge,
    Unsafe,
    Unsupported,
    UsageError,
    WouldLose,
    WriteFailed,
)
from raconvert.references import external, kerchunk, pieces
from raconvert.references.virtual import Parser

VALUES = np.arange(24.0).reshape(2, 3, 4)


def by_zarr(path: Path | str) -> Any:
    """The arrays that zarr finds through fsspec."""
    return zarr.open_group("reference://", mode="r", storage_options={"fo": os.fspath(path)})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Readers ----------------------------------------------------------------------------------------

KINDS = {
    "float64": VALUES,
    "big": VALUES.astype(">i4"),
    "fortran": np.asfortranarray(VALUES.astype("f4")),
    "big_fortran": np.asfortranarray(VALUES.astype(">c8")),
    "half": VALUES.astype("f2"),
    "bool": VALUES > 5,
    "bytes": np.array([[b"ab", b"c"], [b"", b"de"]]),
    "texts": np.array(["äb", "c"]),
    "records": np.array([(1, 2.5), (3, 4.5)], [("n", "<i2"), ("x", ">f8")]),
    "scalar": np.array(7),
    "empty": np.zeros((0, 3)),
}


@pytest.mark.parametrize("name", KINDS)
def test_zarr_reads_what_numpy_wrote(here: Path, name: str) -> None:
    np.save("a b%20#é.npy", KINDS[name])

    raconvert.refs("a b%20#é.npy", "view.json")

    found = by_zarr("view.json")["a b%20#é"][...]
    assert found.shape == KINDS[name].shape
    np.testing.assert_array_equal(found, KINDS[name])


@pytest.mark.parametrize(
    "suffix", [".ra", ".nrrd", ".nhdr", ".mha", ".nii", ".cfl", ".safetensors"]
)
def test_zarr_reads_formats_of_plain_bytes(here: Path, suffix: str) -> None:
    values = VALUES.astype("c8" if suffix == ".cfl" else "f4")
    raconvert.write(f"x{suffix}", values)
    expected = raconvert.read(f"x{suffix}", "x" if suffix == ".safetensors" else None)

    raconvert.refs(f"x{suffix}", "view.json")

    np.testing.assert_array_equal(by_zarr("view.json")["x"][...], expected)


def test_index_order_of_a_sidecar_counts(here: Path) -> None:
    np.save("f.npy", np.asfortranarray(VALUES))
    raconvert.convert("f.npy", "f.ra", axes="keep-memory", meta="sidecar", overwrite=True)

    raconvert.refs("f.ra", "view.json")

    np.testing.assert_array_equal(by_zarr("view.json")["f"][...], raconvert.read("f.ra"))


def test_xarray_finds_names_units_and_attributes(here: Path) -> None:
    axes = [raconvert.Axis(name=name) for name in "tyx"]
    meta = raconvert.Metadata(units="K", description="air", attributes={"n": 3}, axes=axes)
    raconvert.write("air.ra", VALUES, meta=meta)

    raconvert.refs("air.ra", "view.json")
    found = xarray.open_dataset(
        "reference://", engine="zarr", backend_kwargs={"storage_options": {"fo": "view.json"}}
    )

    assert found["air"].dims == ("t", "y", "x")
    assert {key: found["air"].attrs[key] for key in ("units", "long_name", "n")} == {
        "units": "K", "long_name": "air", "n": 3,
    }  # fmt: skip
    np.testing.assert_array_equal(found["air"].isel(t=1, x=2), VALUES[1, :, 2])


def test_large_arrays_are_cut_along_slow_axes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 100)
    np.save("c.npy", np.arange(6 * 7 * 5.0).reshape(6, 7, 5))
    np.save("f.npy", np.asfortranarray(np.arange(4 * 3 * 9.0).reshape(4, 3, 9)))
    np.save("prime.npy", np.arange(31.0))

    raconvert.refs(["c.npy", "f.npy", "prime.npy"], "view.json")

    found = by_zarr("view.json")
    assert found["c"].chunks == (1, 1, 5)
    assert found["f"].chunks == (4, 3, 1)
    for name in ("c", "f", "prime"):
        np.testing.assert_array_equal(found[name][...], np.load(f"{name}.npy"))


def test_a_tree_becomes_groups(here: Path) -> None:
    for place in ("t/a/x.npy", "t/b/x.npy", "t/y.ra"):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        raconvert.write(place, VALUES)

    made = raconvert.refs("t", "view.json", recursive=True)

    assert (made["arrays"], made["files"]) == (3, 3)
    found = by_zarr("view.json")
    for name in ("a/x", "b/x", "y"):
        np.testing.assert_array_equal(found[name][...], VALUES)


# Nothing is read --------------------------------------------------------------------------------

COUNTING = """
import sys, raconvert
def count():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])
raconvert.refs("tree/0000.npy", "warm.json")
before = count()
made = raconvert.refs("tree", "view.json", recursive=True)
print(count() - before, made["arrays"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes that are read")
def test_ten_terabytes_are_not_read(here: Path) -> None:
    count, nbytes = 200, 50 << 30  # 10 TB
    Path("tree").mkdir()
    np.save("head.npy", np.zeros(0))
    for number in range(count):
        with open(f"tree/{number:04}.npy", "wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (nbytes // 8 // 1024, 1024)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + nbytes)

    done = subprocess.run(
        [sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True
    )

    read, arrays = map(int, done.stdout.split())
    assert arrays == count
    assert 0 < read < count * 8192
    assert os.path.getsize("view.json") < count * 120_000


# Proof ------------------------------------------------------------------------------------------


def edit(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    os.utime(path, ns=(1, 1))


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 8)


def replace(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "edit": (edit, "changed"),
    "truncate": (cut_off, "cut"),
    "delete": (Path.unlink, "missing"),
    "move": (lambda path: path.rename(path.with_name("elsewhere.npy")), "missing"),
    "append": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "changed"),
    "replace": (replace, "changed"),
}


@pytest.mark.parametrize("digest", [False, True], ids=["stat", "digest"])
@pytest.mark.parametrize("harm", HARMS)
def test_verify_finds_harm(
    here: Path, capsys: pytest.CaptureFixture[str], harm: str, digest: bool
) -> None:
    for name in "ab":
        np.save(f"{name}.npy", VALUES)
    words = ["refs", "a.npy", "b.npy", "-o", "v.refs.json", *(["--digest"] if digest else [])]
    assert main(words) == 0
    assert main(["verify", "v.refs.json"]) == 0
    capsys.readouterr()
    do, word = HARMS[harm]

    do(here / "b.npy")

    assert main(["verify", "v.refs.json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{word.upper()} {here / 'b.npy'}")
    assert lines[0].endswith("arrays b")
    assert "ok 1   " in lines[1]
    assert f"{word} 1" in lines[1]
    assert raconvert.verify("v.refs.json")["references"][word] == 1
    assert [row["path"] for row in raconvert.info("v.refs.json")["references"]["odd"]] == [
        str(here / "b.npy")
    ]


def test_a_digest_finds_what_time_and_size_hide_and_forgives_a_touch(here: Path) -> None:
    np.save("a.npy", VALUES)
    kept = os.stat("a.npy").st_mtime_ns
    raconvert.refs("a.npy", "v.json", digest=True)
    said = json.loads(Path("v.json").read_text())["raconvert"]["files"][0]
    assert said["sha256"] == hashlib.sha256(Path("a.npy").read_bytes()).hexdigest()

    os.utime("a.npy", ns=(1, 1))
    assert raconvert.verify("v.json")["same"]
    with open("a.npy", "r+b") as file:
        file.seek(200)
        file.write(b"\1")
    os.utime("a.npy", ns=(kept, kept))

    found = raconvert.verify("v.json")
    assert [row["problem"] for row in found["problems"]] == ["changed"]


def test_digests_outside_the_folder_need_trust(here: Path) -> None:
    Path("data").mkdir()
    Path("views").mkdir()
    np.save("data/a.npy", VALUES)
    raconvert.refs("data/a.npy", "views/v.json", digest=True)

    with pytest.raises(Unsafe, match="outside"):
        raconvert.verify("views/v.json")
    assert raconvert.verify("views/v.json", trust=["external"])["same"]


@pytest.mark.parametrize("change", ["offset", "file", "attribute"])
def test_edited_references_are_found(here: Path, change: str) -> None:
    np.save("a.npy", VALUES)
    raconvert.refs("a.npy", "v.json")
    whole = json.loads(Path("v.json").read_text())
    if change == "offset":
        whole["refs"]["a/0.0.0"][1] -= 8
    elif change == "file":
        whole["refs"]["a/0.0.0"][0] = "file:///etc/passwd"
    else:
        whole["refs"]["a/.zattrs"] = "{}"
    Path("v.json").write_text(json.dumps(whole))

    found = raconvert.verify("v.json")

    assert [row["path"] for row in found["problems"]] == ["v.json"]


def test_layout_of_the_json_is_free(here: Path) -> None:
    np.save("a.npy", VALUES)
    raconvert.refs("a.npy", "v.json")
    Path("v.json").write_text(json.dumps(json.loads(Path("v.json").read_text()), indent=4))

    assert raconvert.verify("v.json")["same"]


# Hostile ----------------------------------------------------------------------------------------


def _said(**changes: Any) -> dict[str, Any]:
    proof = {"references": 1, "kind": "kerchunk", "view": "", "sha256": "", "files": [],
             "arrays": []}  # fmt: skip
    return {"version": 1, "raconvert": {**proof, **changes}, "refs": {}}


FILE = {"path": "/x", "size": 1, "mtime_ns": 1}
ARRAY = {"name": "a", "type": "int8", "byte_order": None, "shape": [1], "index_order": "C",
         "pieces": 1, "nbytes": 1, "files": [0]}  # fmt: skip
HOSTILE = {
    "empty": b"",
    "nested": b'{"version":1,"raconvert":' + b"[" * 100_000,
    "long number": b'{"version":1,"raconvert":{"references":' + b"1" * 10_000 + b"}}",
    "no mapping": b'{"version":1,"raconvert":3}',
    "another version": _said(references=2),
    "huge count": _said(files=[{**FILE, "size": 1 << 64}]),
    "float": _said(files=[{**FILE, "size": 1e300}]),
    "true": _said(files=[{**FILE, "size": True}]),
    "relative path": _said(files=[{**FILE, "path": "../x"}]),
    "nul": _said(files=[{**FILE, "path": "/x\0"}]),
    "view elsewhere": _said(view="../../etc/passwd"),
    "digest": _said(files=[{**FILE, "sha256": "0" * 63 + "g"}]),
    "negative shape": _said(files=[FILE], arrays=[{**ARRAY, "shape": [-1]}]),
    "file number": _said(files=[FILE], arrays=[{**ARRAY, "files": [1]}]),
    "refs": {**_said(), "refs": [1]},
    "files": _said(files={"a": 1}),
    "templates": {**_said(), "templates": {"u": "https://x"}},
    "rules": {**_said(), "gen": [{"key": "a/0", "url": "file:///etc/passwd"}]},
    "another layout": {**_said(), "version": 2},
    "kind": _said(kind="\x1b[2J"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_proofs_are_refused(here: Path, name: str) -> None:
    content = HOSTILE[name]
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    Path("v.refs.json").write_bytes(data)

    for look in (raconvert.verify, raconvert.info):
        with pytest.raises(Corrupt) as caught:
            look("v.refs.json")
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("value", [[["x"], 0, 0], [{}, 0, 0], [None, 0, 0], {}, 3, [], ["x"]])
def test_references_to_what_is_no_file_are_named(here: Path, value: object) -> None:
    """Values of JSON that cannot be keys of a mapping are among them."""
    np.save("a.npy", np.arange(10))
    raconvert.refs("a.npy", "v.json")
    said = json.loads(Path("v.json").read_text())
    said["refs"]["a/0"] = value
    text = json.dumps(said["refs"], sort_keys=True, separators=(",", ":"))
    said["raconvert"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    Path("v.json").write_text(json.dumps(said))

    found = raconvert.verify("v.json")

    assert not found["same"]
    assert [row["found"] for row in found["problems"]] == ["a/0 names a file that has no proof"]


def test_odd_files_are_never_opened(here: Path) -> None:
    os.mkfifo("pipe")
    files = [{**FILE, "path": str(here / "pipe"), "sha256": "0" * 64},
             {**FILE, "path": "/dev/zero", "sha256": "0" * 64},
             {**FILE, "path": "/" + "x" * 5000}]  # fmt: skip
    Path("v.refs.json").write_text(json.dumps(_said(files=files)))

    found = raconvert.verify("v.refs.json", trust=["external"])

    assert [row["problem"] for row in found["problems"][:3]] == ["changed", "changed", "missing"]


def test_memory_for_the_json_is_bounded(here: Path) -> None:
    Path("v.refs.json").write_bytes(b'{"version":1,"raconvert":{"a":[' + b"[]," * 30_000 + b"[]]}}")

    with pytest.raises(TooLarge):
        raconvert.verify("v.refs.json", max_memory=1 << 20)


def test_references_of_others_have_no_proof(here: Path) -> None:
    np.save("a.npy", VALUES)
    text = {"version": 1, "refs": {"a/0": ["file:///a", 1, 2]}}
    Path("other.refs.json").write_text(json.dumps(text))

    with pytest.raises(Unsupported, match="without a proof"):
        raconvert.verify("other.refs.json")


# Refusals ---------------------------------------------------------------------------------------


def test_what_has_no_place_is_refused_with_the_reason(here: Path) -> None:
    np.save("a.npy", VALUES)
    raconvert.write("z.npz", {"x": VALUES}, out_opts={"compress": "deflate"})
    raconvert.write("z.nrrd", VALUES, out_opts={"encoding": "gzip"})

    with pytest.raises(WouldLose, match="as they are") as caught:
        raconvert.refs(["a.npy", "z.nrrd"], "v.json")
    assert "z.nrrd" in str(caught.value)
    assert caught.value.exit_code == 4
    assert not os.path.exists("v.json")

    made = raconvert.refs(["a.npy", "z.nrrd"], "v.json", allow=["arrays"])
    assert made["arrays"] == 1
    assert "z.nrrd" in made["notes"][0]


@pytest.mark.parametrize("name", ["x\udc80", "x\udc80\U0001f600", "\ud800/x"])
def test_names_that_are_not_text_have_no_references(here: Path, name: str) -> None:
    np.save("a.npy", VALUES)
    with raconvert.open_array("a.npy") as array:
        placed = pieces.placed(array, name, "a.npy")
    assert isinstance(placed, pieces.Placed)
    for kind in (kerchunk, external):
        assert kind.problem_of(placed) == "its name is not text"
        assert kind.problem_of(placed._replace(name="x\U0001f600")) is None


@pytest.mark.skipif(os.name != "posix", reason="names of files are texts elsewhere")
def test_files_whose_names_are_not_text_have_no_datasets(here: Path) -> None:
    name = os.fsdecode(b"n\x80.npy")
    np.save(name, VALUES)
    with pytest.raises(WouldLose, match="its name is not text"):
        raconvert.refs(name, "v.h5")


@pytest.mark.parametrize("suffix", [".json", ".h5"])
def test_an_array_that_would_be_a_group_too_is_refused(here: Path, suffix: str) -> None:
    np.savez("c.npz", **{"a": VALUES, "a/b": VALUES})
    with pytest.raises(Unsupported, match="'a' would be an array and a group"):
        raconvert.refs("c.npz", f"v{suffix}")
    assert not os.path.exists(f"v{suffix}")


ATTRIBUTES: dict[str, Any] = {
    "": 1, "a\0b": 1, "n" * 70_000: 1, "large": 1 << 64, "long": "x" * 70_000, "units": "K",
    "long_name": "a scan", "kept": 2.5, "not a number": float("nan"), "not finite": [float("inf")],
}  # fmt: skip
LOST = {
    ".h5": ["attribute ", "attribute a\0b", "attribute " + "n" * 80, "attribute large",
            "attribute long", "attribute units", "attribute not finite", "space", "description"],
    ".json": ["attribute units", "attribute long_name", "attribute not a number",
              "attribute not finite", "space"],
}  # fmt: skip


@pytest.mark.parametrize("suffix", LOST)
def test_metadata_that_a_view_cannot_hold_is_named(here: Path, suffix: str) -> None:
    """An attribute of the name of the unit, or of the description, is replaced by that."""
    meta = raconvert.Metadata(
        units="m", description="y" * 70_000, attributes=ATTRIBUTES, space=raconvert.Space("RAS")
    )
    raconvert.write("x.ra", VALUES, meta=meta)
    (note,) = raconvert.refs("x.ra", f"v{suffix}")["notes"]
    assert note.removeprefix("x: not kept: ").split(", ") == LOST[suffix]


def test_destinations_and_names(here: Path) -> None:
    np.save("a.npy", VALUES)
    shutil.copy("a.npy", "v.json")
    with pytest.raises(TargetExists):
        raconvert.refs("a.npy", "v.json")
    with pytest.raises(UsageError, match="kind"):
        raconvert.refs("a.npy", "view")
    with pytest.raises(UsageError, match="kerchunk"):
        raconvert.refs("a.npy", "view", kind="kerchunks")
    raconvert.write("a.ra", VALUES)
    with pytest.raises(UsageError, match="'a'"):
        raconvert.refs(["a.npy", "a.ra"], "view.json")
    assert sorted(os.listdir()) == ["a.npy", "a.ra", "v.json"]


def test_fsspec_knows_no_other_keys(here: Path) -> None:
    """The proof in the same file is nothing to fsspec."""
    np.save("a.npy", VALUES)
    raconvert.refs("a.npy", "v.json")

    system = fsspec.filesystem("reference", fo="v.json")

    assert {name.split("/")[0] for name in system.find("")} == {".zgroup", ".zmetadata", "a"}


# Formats with a way of their own ----------------------------------------------------------------

CHUNKED: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": (2, 2, 3)},
    "gzip": {"chunks": (1, 2, 4), "compression": "gzip"},
    "shuffle": {"chunks": (2, 2, 2), "compression": "gzip", "shuffle": True},
    "checksum": {"chunks": (2, 2, 2), "compression": "gzip", "shuffle": True, "fletcher32": True},
}


@pytest.mark.parametrize("code", ["<f8", ">i4", "?", "<c8"])
@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_of_hdf5(here: Path, name: str, code: str) -> None:
    values = (np.arange(2 * 5 * 7).reshape(2, 5, 7) % 9).astype(code)
    with h5py.File("x.h5", "w", userblock_size=512) as file:
        file.create_dataset("g/x", data=values, **CHUNKED[name])
        file["g/x"].attrs["units"] = "mm"
        file["y"] = values[0]

    made = raconvert.refs("x.h5", "view.json")

    assert made["arrays"] == 2
    found = by_zarr("view.json")
    np.testing.assert_array_equal(found["g/x"][...], values)
    np.testing.assert_array_equal(found["y"][...], values[0])
    assert found["g/x"].attrs["units"] == "mm"


def test_chunks_that_were_never_written(here: Path) -> None:
    with h5py.File("x.h5", "w") as file:
        hole = file.create_dataset("zero", (4, 6), "f4", chunks=(2, 2))
        hole[:2, :2] = 7
        other = file.create_dataset("nine", (4, 6), "f4", chunks=(2, 2), fillvalue=9)
        other[:2, :2] = 7

    made = raconvert.refs("x.h5", "view.json", allow=["arrays"])

    expected = np.zeros((4, 6), "f4")
    expected[:2, :2] = 7
    np.testing.assert_array_equal(by_zarr("view.json")["zero"][...], expected)
    assert [note.partition(":")[0] for note in made["notes"]] == ["left out"]
    assert "fill value" in made["notes"][0]


def test_chunks_behind_the_end_are_refused(here: Path) -> None:
    with h5py.File("x.h5", "w") as file:
        made = file.create_dataset("x", data=VALUES, chunks=(2, 3, 4))
        place = made.id.get_chunk_info(0).byte_offset
    data = Path("x.h5").read_bytes()
    assert data.count(place.to_bytes(8, "little")) == 1
    Path("x.h5").write_bytes(
        data.replace(place.to_bytes(8, "little"), (place + (1 << 30)).to_bytes(8, "little"))
    )

    with pytest.raises(WouldLose, match="outside the file"):
        raconvert.refs("x.h5", "view.json")


@pytest.mark.parametrize("version", ["4", "5"])
def test_variables_of_mat(here: Path, version: str) -> None:
    values = {"m": np.arange(6.0).reshape(2, 3), "s": np.arange(4.0).reshape(4, 1)}
    scipy.io.savemat("x.mat", values, format=version)

    raconvert.refs("x.mat", "view.json")

    found = by_zarr("view.json")
    for name, expected in values.items():
        np.testing.assert_array_equal(found[name][...], expected)
        assert found[name].metadata.order == "F"


def test_what_mat_stores_in_another_form_is_refused(here: Path) -> None:
    scipy.io.savemat("deflated.mat", {"m": VALUES}, do_compression=True)
    scipy.io.savemat("pairs.mat", {"m": VALUES + 1j})

    for name, why in {"deflated": "compressed", "pairs": "lie apart"}.items():
        with pytest.raises(WouldLose, match=why):
            raconvert.refs(f"{name}.mat", "view.json")


def test_chunks_of_mat_73(here: Path) -> None:
    values = np.arange(300.0).reshape(10, 30)
    with h5py.File("x.mat", "w", userblock_size=512) as file:
        made = file.create_dataset("m", data=values.T, chunks=(7, 4), compression="gzip")
        made.attrs["MATLAB_class"] = np.bytes_("double")
    with open("x.mat", "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")

    raconvert.refs("x.mat", "view.json")

    np.testing.assert_array_equal(by_zarr("view.json")["m"][...], values)


def test_members_of_archives(here: Path) -> None:
    np.savez("x.npz", c=VALUES, f=np.asfortranarray(VALUES.astype(">f4")))
    raconvert.convert("x.npz", "x.zip", meta="sidecar")
    raconvert.convert("x.npz", "x.tar", meta="sidecar")

    for suffix in ("npz", "zip", "tar"):
        raconvert.refs(f"x.{suffix}", f"{suffix}.json")
        found = by_zarr(f"{suffix}.json")
        np.testing.assert_array_equal(found["c"][...], VALUES)
        np.testing.assert_array_equal(found["f"][...], VALUES.astype("f4"))


def test_records_of_har(here: Path) -> None:
    small, large = np.arange(12.0, dtype="f4").reshape(3, 4), np.zeros((40, 50, 30), "f4")
    large += np.arange(large.size, dtype="f4").reshape(large.shape)
    raconvert.write("x.har", {"AAAA": small, "BBBB": large})
    expected = {
        one["name"].strip(): one["array"] for one in HarFileIO.readHeaderArraysFromFile("x.har")
    }

    made = raconvert.refs("x.har", "view.json", allow=["arrays"])

    found = by_zarr("view.json")
    names = {*found.keys()}
    assert "AAAA" in names
    for name in names:
        np.testing.assert_array_equal(found[name][...], expected[name])
    assert len(names) + len(made["notes"]) == 2


def test_lists_of_files_of_nrrd(here: Path) -> None:
    for number in range(3):
        VALUES[number % 2].astype(">f4").tofile(f"p{number}.raw")
    Path("x.nhdr").write_text(
        "NRRD0004\ntype: float\ndimension: 3\nsizes: 4 3 3\nendian: big\nencoding: raw\n"
        "data file: LIST\np0.raw\np1.raw\np2.raw\n"
    )

    made = raconvert.refs("x.nhdr", "view.json")

    assert made["files"] == 4  # the header, too
    np.testing.assert_array_equal(
        by_zarr("view.json")["x"][...], np.stack([VALUES[0], VALUES[1], VALUES[0]])
    )


# Views for other programs -----------------------------------------------------------------------


def by_simpleitk(path: str) -> np.ndarray:
    return SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path))


def by_pynrrd(path: str) -> np.ndarray:
    return nrrd.read(path, index_order="C")[0]


def by_gdal(path: str) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path) as image:
            return image.read()


def by_spectral(path: str) -> np.ndarray:
    image = spectral.envi.open(path, path.replace(".hdr", ".img"))
    return np.asarray(image.open_memmap(interleave="bsq"))


def by_h5py(path: str) -> np.ndarray:
    with h5py.File(path) as file:
        return file["x"][()]


READERS = {
    "pynrrd": (".nhdr", by_pynrrd),
    "simpleitk nrrd": (".nhdr", by_simpleitk),
    "simpleitk mhd": (".mhd", by_simpleitk),
    "gdal envi": (".hdr", lambda path: by_gdal(path.replace(".hdr", ".img"))),
    "spectral": (".hdr", by_spectral),
    "gdal vrt": (".vrt", by_gdal),
    "h5py": (".h5", by_h5py),
}
CODES = ["<u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<f4", ">f4", "<f8", ">f8"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("reader", READERS)
def test_other_programs_read_what_numpy_wrote(here: Path, reader: str, code: str) -> None:
    suffix, read = READERS[reader]
    values = np.arange(24).reshape(2, 3, 4).astype(code)
    Path("data").mkdir()
    np.save("data/x.npy", values)
    before = Path("data/x.npy").stat()

    made = raconvert.refs("data/x.npy", f"view{suffix}")

    np.testing.assert_array_equal(read(f"view{suffix}"), values)
    assert Path("data/x.npy").stat().st_mtime_ns == before.st_mtime_ns
    assert made["proofs"] == [f"view{suffix}.refs.json"]
    assert made["notes"] == []
    assert raconvert.verify(f"view{suffix}")["same"]
    edit(here / "data/x.npy")
    found = raconvert.verify(f"view{suffix}")
    assert [row["problem"] for row in found["problems"]] == ["changed"]


@pytest.mark.parametrize("suffix", [".nhdr", ".mhd", ".hdr", ".vrt", ".h5"])
def test_edited_views_are_found_and_marked(
    here: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("x.npy", VALUES)
    raconvert.refs("x.npy", f"view{suffix}")

    if suffix in (".nhdr", ".mhd"):  # raconvert reads it itself
        assert main(["info", f"view{suffix}"]) == 0
        assert "references: 1 file, proof of size, time" in capsys.readouterr().out
        np.testing.assert_array_equal(raconvert.read(f"view{suffix}"), VALUES)
    with open(f"view{suffix}", "ab") as file:
        file.write(b"\n")

    assert [row["path"] for row in raconvert.verify(f"view{suffix}")["problems"]] == [
        f"view{suffix}"
    ]


def test_pairs_of_complex_numbers_in_nrrd(here: Path) -> None:
    values = (VALUES + 2j).astype("c8")
    np.save("x.npy", values)

    made = raconvert.refs("x.npy", "x.nhdr")

    assert "pairs" in made["notes"][0]
    np.testing.assert_array_equal(by_pynrrd("x.nhdr").view("c8")[..., 0], values)


def test_fortran_order_is_said_or_refused(here: Path) -> None:
    np.save("f.npy", np.asfortranarray(VALUES))
    scipy.io.savemat("m.mat", {"m": VALUES[0]})

    made = raconvert.refs("f.npy", "f.nhdr")
    assert "Fortran order" in made["notes"][0]
    np.testing.assert_array_equal(nrrd.read("f.nhdr", index_order="F")[0], VALUES)
    assert raconvert.refs("m.mat", "m.nhdr")["notes"] == []  # lists its dims as they stand
    np.testing.assert_array_equal(nrrd.read("m.nhdr", index_order="F")[0], VALUES[0])
    with pytest.raises(WouldLose, match="Fortran order"):
        raconvert.refs("f.npy", "f.h5")


@pytest.mark.parametrize(
    ("suffix", "reworded"),
    [(".nhdr", "description, axes (name)"), (".mhd", "description"), (".hdr", "description")],
)
def test_texts_that_a_header_spells_otherwise_are_named(
    here: Path, suffix: str, reworded: str
) -> None:
    axes = [raconvert.Axis(name=name) for name in ("z", 'the "y"', "x")]
    for description in ("two\nlines", "two lines"):
        meta = raconvert.Metadata(description=description, axes=axes)
        raconvert.write("x.ra", VALUES, meta=meta, overwrite=True)
        words = reworded if "\n" in description else reworded.removeprefix("description")
        words = words.removeprefix(", ")
        notes = raconvert.refs("x.ra", f"x{suffix}", overwrite=True)["notes"]
        spelled = [note for note in notes if "spelled" in note]
        assert spelled == [f"x: spelled in the characters of the header: {words}"] * bool(words)


def test_metadata_goes_along_or_is_named(here: Path) -> None:
    axes = [raconvert.Axis(name=name, spacing=n + 1, origin=n, units="mm", labels=None)
            for n, name in enumerate("zyx")]  # fmt: skip
    attributes = {"n": 1, "of": "me"}
    meta = raconvert.Metadata(description="a scan", attributes=attributes, axes=axes)
    raconvert.write("x.ra", VALUES, meta=meta)

    nhdr = raconvert.refs("x.ra", "x.nhdr")
    mhd = raconvert.refs("x.ra", "x.mhd")
    h5 = raconvert.refs("x.ra", "x.h5")

    header = nrrd.read_header("x.nhdr")
    assert header["labels"] == ["x", "y", "z"]
    assert header["spacings"].tolist() == [3, 2, 1]
    assert header["axis mins"].tolist() == [2, 1, 0]
    assert header["content"] == "a scan"
    assert nhdr["notes"] == ["x: not kept: attributes"]
    image = SimpleITK.ReadImage("x.mhd")
    assert (image.GetSpacing(), image.GetOrigin()) == ((3, 2, 1), (2, 1, 0))
    assert mhd["notes"] == ["x: not kept: every axis (name, units), attributes"]
    with h5py.File("x.h5") as file:
        assert dict(file["x"].attrs) == {"n": 1, "of": "me", "long_name": "a scan"}
    assert "every axis (name, " in h5["notes"][0]


def test_a_folder_of_views(here: Path) -> None:
    np.savez("x.npz", a=VALUES, b=VALUES + 1)

    with pytest.raises(UsageError, match="DIR/"):
        raconvert.refs("x.npz", "x.vrt")
    made = raconvert.refs("x.npz", "views/", kind="vrt")

    np.testing.assert_array_equal(by_gdal("views/b.vrt"), VALUES + 1)
    assert sorted(os.listdir("views")) == [
        "a.vrt", "a.vrt.refs.json", "b.vrt", "b.vrt.refs.json",
    ]  # fmt: skip
    assert len(made["proofs"]) == 2


def test_folders_are_searched_for_views_of_every_kind(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.makedirs("views/deep")
    np.save("x.npy", VALUES.astype("f4"))
    names = ["a.refs.json", "b.json", "c.nhdr", "deep/d.mhd", "deep/e.hdr", "deep/f.vrt", "g.h5"]
    for name in names:
        raconvert.refs("x.npy", f"views/{name}", kind="envi" if name.endswith("hdr") else None)
        assert main(["info", f"views/{name}"]) == 0
        assert "references: 1 file, proof of size, time" in capsys.readouterr().out
    os.remove("x.npy")
    assert main(["verify", "views"]) == 1  # without the folders below
    failed = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "FAILED" in line]
    assert failed == [f"views/{name}" for name in names if "deep" not in name]
    assert main(["verify", "views", "-r", "--exclude", "*.img"]) == 1
    failed = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "FAILED" in line]
    assert sorted(failed) == sorted(f"views/{name}" for name in names)
    assert main(["verify", "views/deep/e.img"]) == 1
    assert "it is a link to" in capsys.readouterr().err


def test_references_named_like_their_source_say_nothing_of_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, refs in {"x.npy": None, "y.npy": '{"version": 1, "refs": {}}'}.items():
        np.save(name, VALUES)
        if refs is None:
            raconvert.refs(name, f"{name}.refs.json")
        else:  # of another program
            Path(f"{name}.refs.json").write_text(refs)
        assert raconvert.info(name)["format"] == "npy"
        assert raconvert.verify(name)["arrays"][0]["digest"]
    os.remove("y.npy.refs.json")
    assert main(["verify", "."]) == 0
    assert capsys.readouterr().out.count("ok ./") == 3


def test_hdf5_shows_many_arrays_and_other_hdf5(here: Path) -> None:
    Path("t").mkdir()
    np.save("t/a.npy", VALUES > 3)
    np.save("t/b.npy", np.zeros((0, 2)))
    with h5py.File("t/c.h5", "w") as file:
        file["g/x"] = VALUES

    raconvert.refs(["t/a.npy", "t/b.npy", "t/c.h5"], "all.h5")

    with h5py.File("all.h5") as file:
        np.testing.assert_array_equal(file["a"][()], VALUES > 3)
        assert file["b"].shape == (0, 2)
        np.testing.assert_array_equal(file["c/g/x"][()], VALUES)


def test_vrt_names_what_is_below_it_relative_to_itself(here: Path) -> None:
    Path("a").mkdir()
    np.save("a/x.npy", VALUES)

    raconvert.refs("a/x.npy", "x.vrt")
    raconvert.refs("a/x.npy", "v/x.vrt")

    assert '<SourceFilename relativeToVRT="1">a/x.npy<' in Path("x.vrt").read_text()
    assert f'relativeToVRT="0">{here}/a/x.npy<' in Path("v/x.vrt").read_text()
    for path in ("x.vrt", "v/x.vrt"):
        np.testing.assert_array_equal(by_gdal(path), VALUES)


def test_envi_beside_its_data_needs_no_link(here: Path) -> None:
    np.save("x.npy", VALUES.astype("f4"))

    raconvert.refs("x.npy", "x.npy.hdr")
    assert sorted(os.listdir()) == ["x.npy", "x.npy.hdr", "x.npy.hdr.refs.json"]
    np.testing.assert_array_equal(by_gdal("x.npy"), VALUES)
    Path("y.img").write_bytes(b"mine")
    with pytest.raises(TargetExists, match=r"y\.img"):
        raconvert.refs("x.npy", "y.hdr", overwrite=True)
    assert Path("y.img").read_bytes() == b"mine"
    assert not os.path.exists("y.hdr")


def test_envi_and_its_link_appear_together(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full for the link, or for what follows it: everything is as it was."""
    for number, name in enumerate("xy"):
        np.save(f"{name}.npy", np.full((2, 3), number, "f4"))
    os.mkdir("v")
    rename = os.replace
    failing = [""]

    def full(source: str, target: str) -> None:
        if str(target) == failing[0] and not source.endswith("-old.tmp"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    def there() -> dict[str, object]:
        return {one.name: (one.is_symlink(), one.read_bytes()) for one in Path("v").iterdir()}

    raconvert.refs("x.npy", "v/v.hdr")
    before = there()
    monkeypatch.setattr("os.replace", full)
    for name in ("v/v.img", "v/v.hdr", "v/v.hdr.refs.json"):
        failing[0] = name
        with pytest.raises(WriteFailed, match="as it was before"):
            raconvert.refs("y.npy", "v/v.hdr", overwrite=True)
        assert there() == before
    failing[0] = ""
    raconvert.refs("y.npy", "v/v.hdr", overwrite=True)
    np.testing.assert_array_equal(by_gdal("v/v.img").squeeze(), np.ones((2, 3)))
    assert raconvert.verify("v/v.hdr")["same"]


@pytest.mark.parametrize("change", ["gone", "elsewhere"])
def test_envi_whose_link_is_another_is_not_what_it_was(here: Path, change: str) -> None:
    np.save("x.npy", VALUES.astype("f4"))
    np.save("y.npy", VALUES.astype("f4"))
    raconvert.refs("x.npy", "v.hdr")
    assert raconvert.verify("v.hdr")["same"]
    os.unlink("v.img")
    if change == "elsewhere":
        os.symlink("y.npy", "v.img")
    (problem,) = raconvert.verify("v.hdr")["problems"]
    words = "to the data is gone" if change == "gone" else "leads to another file"
    assert words in problem["found"]


def test_a_proof_that_lists_a_file_twice_is_damaged(here: Path) -> None:
    """Each would be read to its end for its digest."""
    np.save("x.npy", VALUES)
    raconvert.refs("x.npy", "v.json", digest=True)
    said = json.loads(Path("v.json").read_text())
    again = {**said["raconvert"]["files"][0]}
    again["path"] = again["path"].replace("/x.npy", "/./x.npy")
    said["raconvert"]["files"].append(again)
    Path("v.json").write_text(json.dumps(said, separators=(",", ":")))
    with pytest.raises(Corrupt, match="listed twice"):
        raconvert.verify("v.json")


REFUSED = {
    ".vrt": {"rank": np.zeros((2, 2, 2, 2)), "half": np.zeros(3, "f2")},
    ".hdr": {"rank": np.zeros((2, 2, 2, 2)), "int8": np.zeros((2, 2), "i1")},
    ".mhd": {"complex": np.zeros((2, 2), "c8"), "empty": np.zeros((2, 0))},
    ".nhdr": {"half": np.zeros(3, "f2"), "text": np.array(["a"])},
    ".h5": {"text": np.array(["a"])},
}


@pytest.mark.parametrize(("suffix", "name"), [(s, n) for s in REFUSED for n in REFUSED[s]])
def test_what_a_kind_cannot_hold_is_refused(here: Path, suffix: str, name: str) -> None:
    np.save("x.npy", REFUSED[suffix][name])

    with pytest.raises(WouldLose):
        raconvert.refs("x.npy", f"view{suffix}")
    assert os.listdir() == ["x.npy"]


# VirtualiZarr -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("code", ["<f8", ">i4", "<c8"])
def test_virtualizarr_reads_sources_by_our_parser(here: Path, code: str) -> None:
    values = (np.arange(2 * 5 * 7).reshape(2, 5, 7) % 9).astype(code)
    np.save("c.npy", values)
    np.save("f.npy", np.asfortranarray(values))
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("x", data=values, **CHUNKED["checksum"])
        file["g/y"] = values[0]
        file["x"].attrs["units"] = "mm"
    registry = ObjectStoreRegistry({"file://": LocalStore()})

    for path, names in {"c.npy": ["c"], "f.npy": ["f"], "x.h5": ["x", "g/y"]}.items():
        store = Parser()((here / path).as_uri(), registry)
        found = zarr.open_group(store, mode="r", zarr_format=3)
        for name in names:
            expected = values if name != "g/y" else values[0]
            np.testing.assert_array_equal(found[name][...], expected)
        assert dict(found[names[0]].attrs) == ({"units": "mm"} if path == "x.h5" else {})

    virtual = open_virtual_dataset((here / "f.npy").as_uri(), parser=Parser(), registry=registry)
    assert virtual["f"].dims == ("dim_0", "dim_1", "dim_2")


def test_the_parser_refuses_what_no_view_can_show(here: Path) -> None:
    raconvert.write("z.nrrd", VALUES, out_opts={"encoding": "gzip"})

    with pytest.raises(WouldLose, match="as they are"):
        Parser()((here / "z.nrrd").as_uri(), None)
    with pytest.raises(UsageError, match="local"):
        Parser()("s3://bucket/x.ra", None)
