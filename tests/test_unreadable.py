"""One array that cannot be read beside others that can: named, refused, or left out on request."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest

import raconvert
from raconvert import convert
from raconvert.cli import main
from raconvert.errors import Corrupt, ReadFailed, Unsupported, UsageError, WouldLose
from raconvert.inspect.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = np.arange(12, dtype="<f8").reshape(3, 4)


def with_missing_source(path: Path) -> Path:
    """A file of which ``b`` is a virtual dataset without its source: known before it is read."""
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("nowhere.h5", "x", (4,))
    with h5py.File(path, "w") as file:
        file["a"] = GOOD
        file.create_virtual_dataset("b", layout)
        file["c"] = GOOD.T
    return path


def with_damaged_chunk(path: Path) -> Path:
    """A file of which ``b`` has a chunk that no longer inflates: known only when it is read."""
    with h5py.File(path, "w") as file:
        file["a"] = GOOD
        wild = np.random.default_rng(1).integers(0, 99, (64, 64))
        dataset = file.create_dataset("b", data=wild, chunks=(32, 64), compression=9)
        place = dataset.id.get_chunk_info(1).byte_offset
        file["c"] = GOOD.T
    data = bytearray(path.read_bytes())
    data[place + 2 : place + 40] = bytes(38)
    path.write_bytes(data)
    return path


def with_damaged_member(path: Path) -> Path:
    """An NPZ of which the member ``b`` has another CRC-32: known only when it is read."""
    np.savez(path, a=GOOD, b=np.arange(1000), c=GOOD.T.copy())
    data = bytearray(path.read_bytes())
    data[data.index(np.arange(500, 510).tobytes())] ^= 1
    path.write_bytes(data)
    return path


def with_damaged_header(path: Path) -> Path:
    """An NPZ of which the member ``b`` has a damaged header, and a CRC-32 that fits."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in (("a", GOOD), ("b", np.zeros(4)), ("c", GOOD.T)):
            text = io.BytesIO()
            np.save(text, values)
            data = text.getvalue()
            archive.writestr(
                f"{name}.npy", data.replace(b"descr", b"dexcr") * (name == "b") or data
            )
    return path


def with_damaged_ra(path: Path) -> Path:
    """A bundle, in one of three forms, of which ``b.ra`` has impossible flags."""
    raconvert.write(path, {"a": GOOD, "b": np.zeros(4, "u1"), "c": GOOD.T}, to=path.suffix[1:])
    place = path / "b.ra" if path.is_dir() else path
    data = bytearray(place.read_bytes())
    starts = [at for at in range(len(data)) if data.startswith(b"rawarray", at)]
    data[starts[-2 if len(starts) > 1 else 0] + 8] = 0xF0
    place.write_bytes(data)
    return path


def with_missing_member(path: Path) -> Path:
    """A bundle without one of the files that it lists."""
    raconvert.write(path, {"a": GOOD, "b": np.zeros(4, "u1"), "c": GOOD.T}, to="bundle")
    (path / "b.ra").unlink()
    return path


MAKERS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing.h5": (with_missing_source, "does not exist"),
    "damaged.h5": (with_damaged_chunk, "deflate|inflate|zlib|decode|compress"),
    "damaged.npz": (with_damaged_member, "CRC"),
    "header.npz": (with_damaged_header, "wrong keys"),
    "flags.zip": (with_damaged_ra, "unknown flag|CRC"),
    "flags.tar": (with_damaged_ra, "unknown flag"),
    "flags.bundle": (with_damaged_ra, "unknown flag"),
    "missing.bundle": (with_missing_member, "is missing from the bundle"),
}


@pytest.fixture(params=MAKERS)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    maker, words = MAKERS[request.param]
    return maker(tmp_path / request.param), words


def test_whole_arrays_are_had_by_name(broken: tuple[Path, str], tmp_path: Path) -> None:
    path, words = broken
    for name, values in (("a", GOOD), ("c", GOOD.T)):
        convert(f"{path}#{name}", tmp_path / f"{name}.npy")
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), values)
        assert np.array_equal(np.asarray(raconvert.open(path, name)), values)
        assert np.array_equal(raconvert.read(path, name), values)
    convert(path, tmp_path / "two.npz", arrays=["a", "c"])
    assert sorted(np.load(tmp_path / "two.npz").files) == ["a", "c"]
    with pytest.raises((Corrupt, ReadFailed, Unsupported), match=words):
        convert(f"{path}#b", tmp_path / "b.npy")
    with pytest.raises((Corrupt, ReadFailed, Unsupported), match=words):
        raconvert.read(path)
    assert not (tmp_path / "b.npy").exists()


@pytest.mark.parametrize("key", [0, (0, 1), (slice(2), ...), ...], ids=str)
def test_whatever_the_index_is_the_reason_is_told(key: object) -> None:
    with pytest.raises(Corrupt, match="ends early"):
        raconvert.Array.unreadable("b", Corrupt("ends early"))[key]


@pytest.mark.parametrize("suffix", ["npz", "h5", "mat", "zip", "har", "nothing/"])
def test_the_whole_is_refused_with_the_flag(
    broken: tuple[Path, str],
    suffix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, _ = broken
    target = tmp_path / f"out.{suffix}"
    extra = ["--to", "npy"] if suffix.endswith("/") else []
    words = ["precision", "dtype", "names", "elements"]

    arguments = [str(path), "-o", f"{target}{'/' * suffix.endswith('/')}", *extra]
    code = main([*arguments, "--allow", ",".join(words), "--dtype", "float32"])

    error = capsys.readouterr().err
    assert code == 4
    assert "array 'b': cannot be read" in error
    assert "--allow arrays" in error
    assert "'a'" not in error
    assert not target.exists()
    assert [other.name for other in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("flag", ["arrays", "all"])
@pytest.mark.parametrize("suffix", ["npz", "h5", "mat", "zip", "folder"])
def test_the_flag_leaves_it_out_and_names_it(
    broken: tuple[Path, str],
    suffix: str,
    flag: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, _ = broken
    target = tmp_path / f"out.{suffix}"
    place = f"{target}/" if suffix == "folder" else str(target)
    extra = ["--to", "npy"] if suffix == "folder" else []

    assert main([str(path), "-o", place, *extra, "--allow", flag, "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    left_out = [item for item in report["allowed"] if item["array"] == "b"]
    assert len(left_out) == 1
    assert "cannot be read and is left out" in left_out[0]["reason"]
    assert [array["name"] for array in report["arrays"]] == ["a", "c"]
    if suffix == "folder":
        found: dict[str, Any] = {p.stem: np.load(p) for p in target.iterdir()}
    else:
        found = raconvert.read(target)  # type: ignore[assignment]
    assert sorted(found) == ["a", "c"]
    assert np.array_equal(found["a"], GOOD)
    assert np.array_equal(found["c"], GOOD.T)


def test_the_flag_is_said_once(broken: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = broken
    report = convert(path, tmp_path / "x.npz", allow=["arrays"], verify=True)
    assert len(report.allowed) == 1
    assert not any("'b'" in note for note in report.notes)


def test_what_was_left_out_says_why_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(3), o=np.array([{1: 2}], dtype=object))
    with pytest.raises(UsageError, match=r"has no array 'o'.*pickle"):
        raconvert.read(path, "o")
    assert main([f"{path}#o", "-o", str(tmp_path / "o.ra")]) == 2


def test_one_that_is_left_may_fill_a_file_of_one(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("nowhere.h5", "x", (4,))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = GOOD
        file.create_virtual_dataset("b", layout)
    with pytest.raises(WouldLose, match="1 of its 2 arrays cannot be read"):
        convert(tmp_path / "x.h5", tmp_path / "x.npy")
    convert(tmp_path / "x.h5", tmp_path / "x.npy", allow=["arrays"])
    assert np.array_equal(np.load(tmp_path / "x.npy"), GOOD)


def test_stacks_and_merged_files(tmp_path: Path) -> None:
    for name in ("p.h5", "q.h5"):
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("nowhere.h5", "x", (4,))
        with h5py.File(tmp_path / name, "w") as file:
            file["a"] = GOOD
            file.create_virtual_dataset("b", layout)
    sources = [tmp_path / "p.h5", tmp_path / "q.h5"]
    for target in ("x.npy", "x.npz"):
        with pytest.raises(WouldLose, match="cannot be read"):
            convert(sources, tmp_path / target)
    convert(sources, tmp_path / "x.npy", allow=["arrays"])
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.stack([GOOD, GOOD]))
    convert(sources, tmp_path / "x.npz", allow=["arrays"])
    assert sorted(np.load(tmp_path / "x.npz").files) == ["p/a", "q/a"]


def test_looking_at_the_file_lists_it(
    broken: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, words = broken
    assert main(["verify", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "FAILED", "ok"]
    assert lines[1].startswith(f"FAILED {path}#b   cannot be read: ")
    with pytest.raises((Corrupt, ReadFailed, Unsupported), match=words):
        verify(path)

    assert main(["digest", str(path)]) == 1
    out, error = capsys.readouterr()
    assert [line[66:] for line in out.splitlines()] == [f"{path}#a", f"{path}#c"]
    convert(f"{path}#a", tmp_path / "a.ra")
    assert out[:64] == hashlib.sha256((tmp_path / "a.ra").read_bytes()).hexdigest()
    assert f"'{path}#b' has no digest" in error

    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.update({"a": GOOD, "b": np.zeros(4, "f4"), "c": GOOD.T})
    assert main(["diff", "--ignore-meta", str(path), str(tmp_path / "other.h5"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [array["same"] for array in found["arrays"]] == [True, False, True]
    if path.name == "missing.h5":  # the others differ in shape, which is told first
        assert "does not exist" in found["arrays"][1]["problems"][0]


def test_info_lists_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_missing_source(tmp_path / "x.h5")
    assert main(["info", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "cannot be read: the source of a virtual dataset" in lines[2]
    assert "float32" in lines[2]  # as far as it is known
    assert "1 of 3 arrays cannot be read" in lines[-1]
    assert main(["info", "--json", str(path)]) == 0
    arrays = json.loads(capsys.readouterr().out)["arrays"]
    assert [array["problem"] is None for array in arrays] == [True, False, True]


def test_real_file_of_which_a_part_is_missing(corpus: Callable[..., Path], tmp_path: Path) -> None:
    """`Therm_6_2.nxs`: what h5py reads is read, by every name it has, and the rest is named."""
    path = corpus("review", "wrong", "Therm_6_2.nxs")
    with pytest.raises(WouldLose, match="array 'entry/data/data': cannot be read"):
        convert(path, tmp_path / "x.npz")
    report = convert(path, tmp_path / "x.npz", allow=["arrays"])
    assert [fit.array for fit in report.allowed] == ["entry/data/data"]
    assert len(report.arrays) == len(np.load(tmp_path / "x.npz").files) == 39  # and 10 more names
    read = 0
    with h5py.File(path) as file, raconvert.open(path) as bundle:
        for name in datasets_of(file):
            if name == "entry/data/data":
                continue
            read += 1
            found, expected = np.asarray(bundle[name]), file[name][()]
            if isinstance(expected, np.ndarray | np.number):
                assert np.array_equal(found, expected, equal_nan=True), name
            else:
                assert found.shape == (), name
    assert read >= 47


def datasets_of(group: h5py.Group, above: str = "") -> list[str]:
    """Return the paths of all datasets below a group by hard links, without links to elsewhere."""
    found = []
    for name in group:
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            part = group[name]
            path = f"{above}{name}"
            found += datasets_of(part, f"{path}/") if isinstance(part, h5py.Group) else [path]
    return found
