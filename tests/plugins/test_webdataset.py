"""What is special to WebDataset: its library and Python's tarfile are the oracles, both ways."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdataset
from pairs import NAME, Pairs
from PIL import Image
from raconvert.plugins import webdataset as plugin
from raconvert.plugins.webdataset.tables import counted_keys
from webdataset.autodecode import Decoder
from webdataset.tariterators import group_by_keys, tar_file_expander

import raconvert
from raconvert.cli import main
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TooLarge,
    Unsafe,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files import tars
from raconvert.files.limits import Limits
from raconvert.files.source import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "samples"
FORMAT = "webdataset"


def load(*paths: Path) -> list[dict[str, Any]]:
    """The samples of shards as the library decodes them, by its own steps: it leaves files open."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            files = tar_file_expander([{"url": str(path), "stream": stream}])
            for sample in group_by_keys(files):
                plain = {k: v for k, v in sample.items() if k not in ("__url__", "__local_path__")}
                found.append(Decoder([])(plain))
    return found


def save(path: Path, samples: list[dict[str, Any]]) -> None:
    """Write by the library, which encodes by extension."""
    with webdataset.TarWriter(str(path)) as file:
        for sample in samples:
            file.write(sample)


def save_values(path: Path, values: np.ndarray) -> None:
    """Write an array by the library, an NPY file for each index along its first axis."""
    rows = [np.ascontiguousarray(row).reshape(values.shape[1:]) for row in values]
    save(path, [{"__key__": f"{n:06d}", f"{NAME}.npy": npy_bytes(row)}
                for n, row in enumerate(rows)])  # fmt: skip


def npy_bytes(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def load_values(path: Path) -> np.ndarray:
    """The array of a file of one, stacked; `numpy` reads the members, as the library does."""
    samples = load(path)
    (word,) = samples[0].keys() - {"__key__"}
    rows = [np.asarray(sample[word]) for sample in samples]
    values = np.empty((len(rows), *rows[0].shape), rows[0].dtype)  # `numpy.stack` swaps bytes
    for number, row in enumerate(rows):
        assert row.dtype == values.dtype
        values[number] = row
    return values


IN_PAIRS = (
    Pairs(
        name=FORMAT,
        suffix=".wds.tar",
        read=load_values,
        write=save_values,
        can_write=lambda values: values.dtype.isbuiltin != 2 and values.ndim > 0 and len(values) > 0,
        order="C",
        guest=True,
        types="= * x bfloat16",  # NumPy makes V2 of it, silently
        shapes="x () 0 0,4 = *",
    ),
)  # fmt: skip


def picture(values: np.ndarray, form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, form)
    return file.getvalue()


def tar_of(path: Path, members: dict[str, bytes], **fields: Any) -> Path:
    """Pack by tarfile; `fields` are those of every member."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            file.addfile(info, io.BytesIO(data))
    return path


def read(path: Path | str, **in_opts: Any) -> dict[str, np.ndarray]:
    with raconvert.open(path, from_=FORMAT, in_opts=in_opts) as bundle:
        return {array.name: np.asarray(array) for array in bundle.arrays}


# The library, both ways ---------------------------------------------------------------------------


def samples_of_all_kinds() -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    return [
        {
            "__key__": f"train/s{n}",
            "png": picture(rng.integers(0, 255, (4, 6, 3), "u1"), "PNG"),
            "seg.png": picture(rng.integers(0, 255, (4, 6), "u1"), "PNG"),
            "cls": n * 10 - 5,
            "txt": "héllo " * n,
            "json": {"n": n},
            "x.npy": rng.random((2, 3)).astype("f4"),
            "wide.npy": rng.random((3, 2)).astype(">f8"),
        }
        for n in range(5)
    ]


def test_samples_of_the_library(tmp_path: Path) -> None:
    samples = samples_of_all_kinds()
    save(tmp_path / "x.tar", samples)

    theirs = load(tmp_path / "x.tar")
    with raconvert.open(tmp_path / "x.tar") as bundle:
        assert [row["name"] for row in raconvert.formats() if row["name"] == FORMAT] == [FORMAT]
        assert sorted(bundle.names) == ["cls", "json", "png", "seg.png", "txt", "wide", "x"]
        assert bundle.format == FORMAT
        for array in bundle.arrays:
            assert array.axes[0].labels == tuple(f"train/s{n}" for n in range(5))
        assert np.array_equal(bundle["x"], np.stack([one["x.npy"] for one in theirs]))
        assert np.array_equal(bundle["wide"], np.stack([one["wide.npy"] for one in theirs]))
        assert bundle["cls"].dtype == "i8"
        assert bundle["cls"].tolist() == [one["cls"] for one in theirs]
        texts = [one.decode() for one in bundle["txt"].tolist()]
        assert texts == [one["txt"] for one in theirs]
        assert [json.loads(one) for one in bundle["json"].tolist()] == [
            one["json"] for one in theirs
        ]
        for word in ("png", "seg.png"):
            expected = [np.asarray(Image.open(io.BytesIO(one[word]))) for one in samples]
            assert np.array_equal(bundle[word], np.stack(expected))
            assert bundle[word].dtype == "u1"


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    labels = ["a", "b/c", "d d", "é"]
    rng = np.random.default_rng(3)
    arrays = {
        "x": rng.random((4, 2, 3)).astype("f4"),
        "cls": np.array([1, -2, 2**63 - 1, -(2**63)]),
        "label": np.arange(4),
        "mask": rng.random((4, 2)) > 0.5,
        "scalar": rng.random(4),
        "small": np.arange(4, dtype="i4"),
    }
    made = {}
    for name, values in arrays.items():
        array = raconvert.Array(values, name=name)
        array.axes = [raconvert.Axis(labels=labels), *[raconvert.Axis()] * (values.ndim - 1)]
        made[name] = array
    report = raconvert.write(tmp_path / "x.wds.tar", made, strict=True)
    assert report.target_format == FORMAT

    theirs = load(tmp_path / "x.wds.tar")
    assert [one["__key__"] for one in theirs] == labels
    for number, one in enumerate(theirs):
        assert one["cls"] == arrays["cls"][number]
        assert one["label.cls"] == number
        for name in ("x", "mask", "scalar", "small"):
            found = np.asarray(one[f"{name}.npy"])
            assert found.dtype == arrays[name].dtype
            assert np.array_equal(found, arrays[name][number])


def test_texts_go_both_ways(tmp_path: Path) -> None:
    """Texts stay texts, JSON under its own extension; other bytes become NPY."""
    save(tmp_path / "a.tar", [{"__key__": f"k{n}", "txt": "é" * n, "json": [n]} for n in range(3)])
    with pytest.raises(Unsupported, match='from_="webdataset"'):  # texts may be any archive
        raconvert.convert(tmp_path / "a.tar", tmp_path / "b.wds.tar")
    report = raconvert.convert(
        tmp_path / "a.tar", tmp_path / "b.wds.tar", from_=FORMAT, verify=True
    )
    assert {fit.property for fit in report.equivalent} == {"type"}
    assert load(tmp_path / "b.wds.tar") == load(tmp_path / "a.tar")
    report = raconvert.convert(
        tmp_path / "a.tar",
        tmp_path / "c.wds.tar",
        from_=FORMAT,
        out_opts={"text": "npy"},
        verify=True,
    )
    assert {fit.property for fit in report.equivalent} == {"metadata"}
    assert [one["txt.npy"].item().decode() for one in load(tmp_path / "c.wds.tar")] == [
        "",
        "é",
        "éé",
    ]
    raconvert.write(tmp_path / "d.wds.tar", {"s": np.array([b"a", b"\xff"])}, strict=True)
    assert [one["s.npy"].item() for one in load(tmp_path / "d.wds.tar")] == [b"a", b"\xff"]


@pytest.mark.parametrize(
    "name",
    [
        "npy",
        "x.npy",
        "cls",
        "a.cls",
        "txt",
        "a.txt",
        "json",
        "a.b.json",
        "a/b",
        "100%",
        "é",
        "index",
        "png",
        ".",
        "..",
        "A",
        "a b",
    ],
)
@pytest.mark.parametrize("kind", ["f4", "i8", "S3"])
def test_names_come_back(name: str, kind: str, tmp_path: Path) -> None:
    array = raconvert.Array(np.arange(100, 103).astype(kind), name=name)
    if kind == "S3":
        array.meta = raconvert.Metadata(encoding="utf-8")
    raconvert.write(tmp_path / "x.wds.tar", {name: array})
    with raconvert.open(tmp_path / "x.wds.tar", from_=FORMAT) as bundle:
        assert bundle.names == [name]
        assert np.array_equal(np.asarray(bundle[name]), np.asarray(array))
    assert len(load(tmp_path / "x.wds.tar")) == 3


def test_names_that_the_library_cannot_tell_apart(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="cannot tell it from 'a'"):
        raconvert.write(tmp_path / "x.wds.tar", {"a": np.zeros(2), "A": np.zeros(2)})
    assert not [*tmp_path.iterdir()]


def test_labels_that_cannot_be_keys_are_named(tmp_path: Path) -> None:
    for labels in (["a.b", "c"], ["..", "c"], ["", "c"], ["a", "a"], [1, 2], ["/a", "c"],
                   ["000000", "000001"], ["a\n", "c"], ["__a", "b"]):  # fmt: skip
        array = raconvert.Array(np.zeros((2, 3), "f4"), name="x")
        array.axes = [raconvert.Axis(labels=labels), raconvert.Axis()]
        report = raconvert.write(tmp_path / "x.wds.tar", {"x": array}, overwrite=True)
        assert [str(fit) for fit in report.equivalent] == [
            "array 'x': metadata: not kept: axis 0 (labels)"
        ]
        assert [one["__key__"] for one in load(tmp_path / "x.wds.tar")] == ["000000", "000001"]
        with raconvert.open(tmp_path / "x.wds.tar") as bundle:
            assert bundle["x"].axes[0].labels is None


def test_arrays_take_the_keys_of_the_first_with_labels(tmp_path: Path) -> None:
    named, other, plain = (raconvert.Array(np.zeros(2), name=name) for name in "abc")
    named.axes, other.axes = (
        [raconvert.Axis(labels=["u", "v"])],
        [raconvert.Axis(labels=["v", "w"])],
    )
    report = raconvert.write(tmp_path / "x.wds.tar", {"a": named, "b": other, "c": plain})
    assert [str(fit) for fit in report.equivalent] == [
        "array 'b': metadata: not kept: axis 0 (labels)",
        "array 'c': metadata: takes the keys of other arrays: axis 0 (labels)",
    ]


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    values = {"b": np.arange(6.0).reshape(3, 2), "a": np.arange(3)}
    for name in ("x", "y"):
        raconvert.write(tmp_path / f"{name}.wds.tar", values)
    assert (tmp_path / "x.wds.tar").read_bytes() == (tmp_path / "y.wds.tar").read_bytes()
    with tarfile.open(tmp_path / "x.wds.tar") as file:
        found = file.getmembers()
    assert [one.name for one in found[:3]] == ["000000.b.npy", "000000.a.cls", "000001.b.npy"]
    about = {(one.mtime, one.uid, one.gid, one.uname, one.gname, one.mode) for one in found}
    assert about == {(0, 0, 0, "", "", 0o644)}


@pytest.mark.parametrize("size", [0, 1, 511, 8**11 - 1, 8**11, 1 << 60])
@pytest.mark.parametrize("name", ["a", "a" * 99, "a" * 100, "a" * 101, "d/" * 60 + "a", "é", "a b"])
def test_headers_are_those_of_tarfile(name: str, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    assert tars.header_of(name, size) == info.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_those_of_tarfile(form: int, tmp_path: Path) -> None:
    """Of every form, with headers that are read the short way and by tarfile in any order."""
    rng = np.random.default_rng(form)
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w", format=form) as file:
        for number in range(3000):
            long = "d/" * int(rng.choice([0, 0, 0, 20, 70]))
            info = tarfile.TarInfo(f"{long}{'é' * (number % 50 == 7)}{number}.cls")
            info.size = int(
                rng.choice([0, 1, 511, 512, 513, 3000, 200_000], p=[0.1] * 3 + [0.2] * 3 + [0.1])
            )
            info.mtime = float(rng.choice([0, 0.5, 1e9]))
            info.type = tarfile.DIRTYPE if rng.random() < 0.02 else tarfile.REGTYPE
            info.size *= info.isreg()
            file.addfile(info, io.BytesIO(bytes(info.size)))
    with tarfile.open(path) as file:
        theirs = [(one.name, one.offset_data, one.size, one.isreg()) for one in file]
    ours = [(m.name, m.offset, m.size, m.kind == "file") for m in tars.members(Source(str(path)))]
    assert ours == theirs


# Shards -------------------------------------------------------------------------------------------


def test_shards_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"x": np.arange(42.0).reshape(7, 3, 2), "cls": np.arange(7)}
    raconvert.write("s-000000.tar", values, to=FORMAT, out_opts={"samples": 3}, verify=True)
    shards = sorted(tmp_path.glob("s-*.tar"))
    assert [one.name for one in shards] == [f"s-{n:06d}.tar" for n in range(3)]
    assert [len(load(one)) for one in shards] == [3, 3, 1]
    assert [one["__key__"] for one in load(*shards)] == [f"{n:06d}" for n in range(7)]

    for found in (
        read("s-000000.tar", shards=3),
        _together("s-*.tar"),
        _together(*map(str, shards)),
    ):
        assert found.keys() == values.keys()
        assert all(np.array_equal(found[name], values[name]) for name in values)
    assert len(read("s-000001.tar", shards=2)["x"]) == 4
    assert len(read("s-000001.tar")["x"]) == 3
    assert main(["convert", "s-*.tar", "--from", FORMAT, "-o", "all.npz"]) == 0
    with np.load("all.npz") as found:
        assert np.array_equal(found["x"], values["x"])


def _together(*paths: str) -> dict[str, np.ndarray]:
    with raconvert.open_bundle([*paths], from_=FORMAT) as bundle:
        return {array.name: np.asarray(array) for array in bundle.arrays}


def test_shards_are_named_by_the_first(tmp_path: Path) -> None:
    values = np.zeros((4, 2))
    for name in ("x.tar", "x-000001.tar", "x-00000.tar"):
        with pytest.raises(UsageError, match="first of several shards"):
            raconvert.write(tmp_path / name, values, to=FORMAT, out_opts={"samples": 2})
        assert not [*tmp_path.iterdir()]
    (tmp_path / "x-000001.tar").write_bytes(b"mine")
    with pytest.raises(raconvert.TargetExists, match="x-000001.tar"):
        raconvert.write(tmp_path / "x-000000.tar", values, to=FORMAT, out_opts={"samples": 2})
    assert [one.name for one in tmp_path.iterdir()] == ["x-000001.tar"]
    for count in (0, -1):
        with pytest.raises(UsageError):
            read(tmp_path / "x-000001.tar", shards=count)


def test_a_sample_does_not_go_on_in_another_shard(tmp_path: Path) -> None:
    """The library has two samples, each without a member."""
    tar_of(tmp_path / "a.tar", {"k.x.npy": npy_bytes(1.0)})
    tar_of(tmp_path / "b.tar", {"k.cls": b"1", "l.x.npy": npy_bytes(1.0), "l.cls": b"2"})
    paths = [str(tmp_path / "a.tar"), str(tmp_path / "b.tar")]
    with pytest.raises(Unsupported, match="sample 'k' has no member"):
        raconvert.convert(paths, tmp_path / "x.npz", from_=FORMAT)


def test_keys_that_begin_anew_are_no_labels(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tar_of(tmp_path / f"{name}.tar", {"k.cls": b"1", "l.cls": b"2"})
    paths = [str(tmp_path / f"{name}.tar") for name in ("a", "b")]
    with raconvert.open_bundle(paths, from_=FORMAT) as bundle:
        assert bundle["cls"].tolist() == [1, 2, 1, 2]
        assert bundle["cls"].axes[0].labels is None
        assert any("begin anew in another shard" in note for note in bundle.notes)
    with pytest.raises(Unsupported, match="begin anew in another shard"):
        raconvert.open_bundle(paths, from_=FORMAT, in_opts={"apart": "cls"})


def test_a_folder_of_shards(tmp_path: Path) -> None:
    for name, key in (("x-10.tar", "c"), ("x-9.tar", "b"), ("x-1.tar", "a")):
        tar_of(tmp_path / name, {f"{key}.cls": b"7"})
    with raconvert.open(tmp_path, from_=FORMAT) as array:
        assert array.axes[0].labels == ("a", "b", "c")
    (tmp_path / "notes").write_text("mine")
    sources = [Source(str(tmp_path / name)) for name in ("x-1.tar", "x-9.tar", "notes")]
    found = plugin.read_together(sources, folder=str(tmp_path))
    assert found["cls"].axes[0].labels == ("a", "b")
    assert found.notes == ["left out, as they are not tar archives: notes"]
    with pytest.raises(Unsupported, match="no tar archive"):
        plugin.read_together([Source(str(tmp_path / "notes"))], folder=str(tmp_path))


def test_keys_are_bounded_together(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {"abc.cls": b"1", "de.cls": b"2"})
    assert plugin.read(Source(str(path), limits=Limits(path_characters=5))).names == ["cls"]
    with pytest.raises(Unsupported, match="keys of all samples are too long"):
        plugin.read(Source(str(path), limits=Limits(path_characters=4)))


# What is read, and what is not --------------------------------------------------------------------


def test_other_members_are_named_and_read_as_bytes(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {
        "README": b"hello", "__meta.json__": b"{}", ".hidden.txt": b"x", "a.cls": b"1",
        "a.msgpack": b"\1\2", "a.pyd": b"\x80\4N.", "b.cls": b"2", "b.msgpack": b"\3\4",
        "b.pyd": b"\x80\4N.",
    })  # fmt: skip
    with raconvert.open(path, from_=FORMAT) as bundle:
        assert bundle.names == ["cls"]
        notes = "\n".join(bundle.notes)
    assert "2 of 'msgpack', 2 of 'pyd'" in notes
    assert "'README', '__meta.json__', '.hidden.txt'" in notes
    assert read(path, raw="msgpack")["msgpack"].tolist() == [[1, 2], [3, 4]]
    assert [*read(path, only="msgpack")] == ["msgpack"]
    assert read(path, raw="cls")["cls"].tolist() == [[49], [50]]
    with pytest.raises(UsageError, match="'msgpak', which no sample has"):
        read(path, only="msgpak")


def test_samples_of_different_shapes(tmp_path: Path) -> None:
    """The array is refused by name, others are read, and each sample may be an array."""
    small, large = np.zeros((2, 3), "u1"), np.ones((3, 3), "u1")
    for word, pack in (("png", lambda v: picture(v, "PNG")), ("npy", npy_bytes)):
        members = {f"a.{word}": pack(small), "a.cls": b"1", f"b.{word}": pack(large), "b.cls": b"2"}
        path = tar_of(tmp_path / f"{word}.tar", members)
        with pytest.raises(WouldLose, match=f"the arrays '{word}' of the samples differ") as error:
            raconvert.convert(path, tmp_path / "x.npz")
        for part in ("(2, 3)", "(3, 3)", f"'b.{word}'", f'in_opts={{"apart": "{word}"}}'):
            assert part in str(error.value)
        for extension in (word, "x." + word):  # alone, it is the error of the file
            alone = tar_of(
                tmp_path / "y.tar", {f"a.{extension}": pack(small), f"b.{extension}": pack(large)}
            )
            with pytest.raises(Unsupported, match="of the samples differ"):
                read(alone)
        assert raconvert.read(path, "cls", from_=FORMAT).tolist() == [1, 2]
        found = read(path, apart=word)
        assert np.array_equal(found[f"{word}/a"], small)
        assert np.array_equal(found[f"{word}/b"], large)
        assert found["cls"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "second",
    [
        np.zeros((2, 3), "i2"),
        np.zeros((2, 3), ">f4"),
        np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)),
    ],
)
def test_npy_members_of_other_headers(second: np.ndarray, tmp_path: Path) -> None:
    """Byte and index order are not a difference, types are."""
    first = np.arange(6, dtype="f4").reshape(2, 3)
    path = tar_of(tmp_path / "x.tar", {"a.npy": npy_bytes(first), "b.npy": npy_bytes(second)})
    if second.dtype.kind == "i":
        with pytest.raises(Unsupported, match="differ"):
            read(path)
    else:
        assert np.array_equal(read(path)["npy"], np.stack([first, second]))
        raconvert.convert(path, tmp_path / "x.npz")
        with np.load(tmp_path / "x.npz") as found:
            assert np.array_equal(found["npy"], np.stack([first, second]))


@pytest.mark.parametrize(
    "text", [b"", b"1.5", b"x", b"1_0", b"9223372036854775808", b"1 2", b"1" * 65]
)
def test_numbers_that_are_none(text: bytes, tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {"a.cls": b" +3\n", "b.cls": text})
    with pytest.raises((Corrupt, Unsupported), match=r"'b\.cls'"):
        read(path)
    assert read(path, apart="cls")["cls/b"].tobytes() == text


@pytest.mark.parametrize("text", [b"\xff", b"a\0"])
def test_texts_that_are_none(text: bytes, tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {"a.txt": b"b\0c", "b.txt": text})
    with pytest.raises(Corrupt, match=r"'b\.txt'"):
        read(path)


def test_regions_read_their_members_only(tmp_path: Path) -> None:
    values = np.arange(60, dtype="f4").reshape(5, 4, 3)
    raconvert.write(tmp_path / "x.wds.tar", {"x": values, "n": np.arange(5)})
    data = bytearray((tmp_path / "x.wds.tar").read_bytes())
    data[data.index(b"000004.n.cls") + 512] = ord("x")
    (tmp_path / "x.wds.tar").write_bytes(data)
    with raconvert.open(tmp_path / "x.wds.tar") as bundle:
        assert bundle["n"][1:4].tolist() == [1, 2, 3]
        assert bundle["n"][-2] == 3
        assert np.array_equal(bundle["x"][3:0:-2, 1], values[3:0:-2, 1])
        with pytest.raises(Corrupt, match="000004"):
            np.asarray(bundle["n"])


def test_extensions_in_capitals_are_one(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {"a.CLS": b"1", "b.cls": b"2"})
    assert read(path)["cls"].tolist() == [1, 2]
    assert [one["cls"] for one in load(path)] == [1, 2]


def test_names_that_would_be_one_are_whole(tmp_path: Path) -> None:
    members = {
        "a.x.npy": npy_bytes(1.0),
        "a.x.cls": b"1",
        "b.x.npy": npy_bytes(2.0),
        "b.x.cls": b"2",
    }
    found = read(tar_of(tmp_path / "x.tar", members))
    assert {name: values.tolist() for name, values in found.items()} == {
        "x.npy": [1.0, 2.0], "x.cls": [1, 2]
    }  # fmt: skip


@pytest.mark.parametrize(("arrays", "reason"), [
    ({"x": np.zeros(())}, "no axis"),
    ({"x": np.zeros((0, 3))}, "no sample"),
    ({"x": np.zeros(3), "y": np.zeros(4)}, "4 samples, where 'x' has 3"),
    ({"x": np.broadcast_to(np.zeros(()), 400_000)}, "400000 members in a file"),
])  # fmt: skip
def test_writing_is_refused_before_anything_is_written(
    arrays: dict[str, np.ndarray], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(WouldLose, match=reason):
        raconvert.write(tmp_path / "x.wds.tar", arrays, allow="all")
    assert not [*tmp_path.iterdir()]


def test_a_text_that_is_not_utf8_is_not_written(tmp_path: Path) -> None:
    array = raconvert.Array(np.array([b"a", b"\xff"]), name="t")
    array.meta = raconvert.Metadata(encoding="utf-8")
    with pytest.raises(Corrupt, match="not UTF-8"):
        raconvert.write(tmp_path / "x.wds.tar", {"t": array})
    assert not [*tmp_path.iterdir()]


def test_detection_by_content(tmp_path: Path) -> None:
    """Two members of one key, or of one kind; a bundle is not one, nor any other archive."""
    sure = [{"a.x.npy": b"", "a.cls": b""}, {"a.png": b"", "b.png": b""}, {"a.x.npy": b""},
            {"d/a.jpg": b"", "d/a.json": b""}]  # fmt: skip
    no = [{"bundle.yaml": b"", "x.ra": b""}, {"a.png": b"", "b.txt": b""}, {"README": b""}, {"a.npy": b""},
        {"a.txt": b"", "b.txt": b""}, {"a.txt": b"", "a.json": b""}, {"a.png": b""},
          {"a.ra": b"", "b.ra": b""}, {"src/a.c": b"", "src/a.h": b""}]  # fmt: skip
    for answer, archives in ((True, sure), (False, no)):
        for members in archives:
            path = tar_of(tmp_path / "x.tar", members)
            found = raconvert.probe(path)
            assert (found.format == FORMAT) is answer, members


# Hostile files ------------------------------------------------------------------------------------


def header(name: str, size: int = 0, kind: bytes = b"0", **fields: Any) -> bytes:
    """One header block as tarfile makes it, whatever its fields are."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name: str, data: bytes = b"1") -> bytes:
    return header(name, len(data)) + data + bytes(-len(data) % 512)


def pax(fields: bytes, kind: bytes = b"x") -> bytes:
    return header("././@PaxHeader", len(fields), kind) + fields + bytes(-len(fields) % 512)


def record(key: str, value: bytes) -> bytes:
    body = b" " + key.encode() + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


END = bytes(1024)
FIRST = member("a.cls")
NPY = npy_bytes(np.zeros(3, "u1"))
HUGE = NPY.replace(b"(3,)", b"(4000000000000,)").replace(b" " * 13, b"", 1)
HOSTILE: dict[str, tuple[type[RaconvertError], bytes]] = {
    "hard_link": (Unsafe, FIRST + header("b.cls", kind=b"1", linkname="a.cls") + END),
    "link_to_a_secret": (Unsafe, FIRST + header("b.cls", kind=b"2", linkname="/etc/passwd") + END),
    "character_device": (Unsafe, FIRST + header("b.cls", kind=b"3") + END),
    "block_device": (Unsafe, FIRST + header("b.cls", kind=b"4") + END),
    "pipe": (Unsafe, FIRST + header("b.cls", kind=b"6") + END),
    "absolute_name": (Unsafe, FIRST + member("/etc/b.cls") + END),
    "name_that_goes_up": (Unsafe, FIRST + member("../b.cls") + END),
    "name_that_goes_up_later": (Unsafe, FIRST + member("x/../../b.cls") + END),
    "drive": (Unsafe, FIRST + member("C:/b.cls") + END),
    "backslashes": (Unsafe, FIRST + member("..\\b.cls") + END),
    "name_not_utf8": (Unsupported, FIRST + member("\udcff.cls") + END),
    "sparse": (Unsupported, FIRST + pax(record("GNU.sparse.major", b"1") + record(
        "GNU.sparse.minor", b"0") + record("GNU.sparse.name", b"b.cls") + record(
        "GNU.sparse.realsize", b"99999999999")) + header("b.cls", 512) + b"1\n0\n1\n"
        + bytes(506) + END),
    "old_sparse": (Unsupported, FIRST + header("b.cls", 1, kind=b"S") + b"1" + bytes(511) + END),
    "huge_pax_header": (Unsupported, FIRST + header("p", 1 << 30, b"x") + bytes(1024)),
    "pax_of_digits": (Corrupt, FIRST + pax(b"9" * 100_000 + b" a=b\n") + member("b.cls") + END),
    "many_global_fields": (Unsupported, FIRST + pax(b"".join(
        record(f"k{n}", b"v") for n in range(5000)), b"g") + member("b.cls") + END),
    "pax_in_pax": (Corrupt, FIRST + pax(record("a", b"b")) * 2000 + END),
    "size_below_zero": (Corrupt, FIRST + pax(record("size", b"-1024")) + member("b.cls") + END),
    "size_of_an_exabyte": (Corrupt, FIRST + header("b.cls", 1 << 60) + b"1" + bytes(511) + END),
    "long_name_without_end": (Unsupported, FIRST + header("././@LongLink", 1 << 29, b"L") + END),
    "name_of_a_megabyte": (Unsupported, FIRST + pax(record("path", b"b" * 500_000 + b".cls"))
                           + member("b.cls") + END),
    "cut_in_a_member": (Corrupt, FIRST + member("b.x.npy", NPY)[:700]),
    "cut_in_a_header": (Corrupt, FIRST + member("b.cls")[:300]),
    "no_end": (Corrupt, FIRST + member("b.cls")),
    "damaged_header": (Corrupt, FIRST + member("b.cls").replace(b"b.cls", b"c.cls") + END),
    "extension_twice": (Corrupt, FIRST + member("a.cls") + END),
    "extension_twice_in_capitals": (Corrupt, FIRST + member("a.CLS") + END),
    "key_in_two_places": (Corrupt, FIRST + member("b.cls") + member("a.txt") + END),
    "missing_member": (WouldLose, FIRST + member("a.x.npy", NPY) + member("b.cls")
                       + member("c.x.npy", NPY) + member("c.cls") + END),
    "no_sample": (Unsupported, member("README") + member("LICENSE") + END),
    "empty_archive": (Unsupported, END),
    "only_pickles": (Unsupported, member("a.pyd", b"\x80\4N.") + END),
    "pickle_in_npy": (Unsafe, member("a.x.npy", npy_bytes(np.array([{}], object))) + END),
    "npy_of_terabytes": (Corrupt, member("a.x.npy", HUGE) + END),
    "npy_cut_off": (Corrupt, member("a.x.npy", NPY[:-1]) + END),
    "png_that_is_none": (Corrupt, member("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100)) + END),
}  # fmt: skip


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_files_are_refused(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, data = HOSTILE[shape]
    path = tmp_path / "x.tar"
    path.write_bytes(data)
    with pytest.raises(kind) as raised:
        raconvert.convert(path, tmp_path / "y.npz", from_=FORMAT)
    assert "bug" not in str(raised.value)
    code = main([str(path), "--from", FORMAT, "-o", str(tmp_path / "y.npz")])
    assert code == kind.exit_code
    assert "Traceback" not in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["x.tar"]


def test_long_names_are_cut_in_messages(tmp_path: Path) -> None:
    for length, shown in ((200, "/" + "b" * 195 + ".cls'"), (201, "/" + "b" * 196 + ".cl...'")):
        path = tmp_path / "x.tar"
        path.write_bytes(
            pax(record("path", b"/" + b"b" * (length - 5) + b".cls")) + member("b.cls") + END
        )
        with pytest.raises(Unsafe) as raised:
            read(path)
        assert shown in str(raised.value)


def test_counted_keys_have_one_width() -> None:
    assert counted_keys(2) == ["000000", "000001"]
    assert counted_keys(1_000_000)[-1] == "999999"
    assert counted_keys(1_000_001)[-1] == "1000000"
    assert counted_keys(1_000_001)[0] == "0000000"
    assert counted_keys(0) == []


def test_texts_without_letters(tmp_path: Path) -> None:
    found = read(tar_of(tmp_path / "x.tar", {"a.txt": b"", "b.txt": b""}))
    assert found["txt"].dtype == "S1"
    assert found["txt"].tolist() == [b"", b""]


def test_a_long_text_does_not_make_all_texts_long(tmp_path: Path) -> None:
    members = {f"{n}.txt": b"" for n in range(2000)} | {"x.txt": b"x" * 3_000_000}
    path = tar_of(tmp_path / "x.tar", members)
    with pytest.raises(TooLarge, match="would all be as long as 'x.txt'"):
        read(path)
    members["x.txt"] = b"x" * 5_000_000
    with pytest.raises(Unsupported, match="too long a text"):
        read(tar_of(path, members))


def test_fixtures_of_the_library() -> None:
    """Shards by `webdataset.ShardWriter`; see the manifest."""
    paths = [FIXTURES / f"shards-{n:06d}.tar" for n in range(2)]
    theirs = load(*paths)
    with raconvert.open_bundle([*map(str, paths)], from_=FORMAT) as bundle:
        assert sorted(bundle.names) == ["cls", "json", "png", "txt", "x"]
        assert bundle["cls"].tolist() == [one["cls"] for one in theirs]
        assert np.array_equal(bundle["x"], np.stack([one["x.npy"] for one in theirs]))
        assert bundle["png"].shape == (5, 3, 4, 3)
