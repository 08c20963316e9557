"""What is special to WebDataset: its library and Python's tarfile are the oracles, both ways."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from raconvert.plugins import webdataset as plugin
from raconvert.plugins.webdataset.tables import counted_keys, split_name
from webdataset_reader import FORMAT, load, npy_bytes, picture, save, tar_of

import raconvert
from raconvert.cli import main
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TooLarge,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files import tars
from raconvert.files.limits import Limits
from raconvert.files.source import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "samples"


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


@pytest.mark.parametrize(("limit", "least", "reason"), [
    ("archive_members", 4, "too many members"),
    ("structure_fields", 2, "too many extensions"),
    ("nodes", 2, "too many for an array of each"),
    ("text_bytes", 3, "too long a text"),
])  # fmt: skip
def test_limits_of_the_source_are_obeyed(
    limit: str, least: int, reason: str, tmp_path: Path
) -> None:
    path = tar_of(tmp_path / "x.tar", {"a.npy": npy_bytes(1), "a.txt": b"abc", "b.npy": npy_bytes(2),
                                       "b.txt": b"abc"})  # fmt: skip

    def opened(most: int) -> raconvert.Bundle:
        source = Source(str(path), limits=Limits(**{limit: most}))
        return plugin.read(source, apart="npy" if limit == "nodes" else "")

    assert all(array.problem is None for array in opened(least).arrays)
    try:
        problems = [str(array.problem) for array in opened(least - 1).arrays]
    except RaconvertError as error:
        problems = [str(error)]
    assert any(reason in problem for problem in problems)


def test_many_keys_are_no_labels(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar", {"a.cls": b"1", "b.cls": b"2"})
    for most, labels in ((2, ("a", "b")), (1, None)):
        bundle = plugin.read(Source(str(path), limits=Limits(table_labels=most)))
        assert bundle["cls"].axes[0].labels == labels
        assert any("labels are at most 1" in note for note in bundle.notes) is (labels is None)


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


def test_defaults_that_are_numbers_are_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", FORMAT]) == 0
    said = capsys.readouterr().out
    assert "shards=1 " in said
    assert "samples=0 " in said


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


def test_members_about_all_samples_have_the_marks_at_both_ends() -> None:
    assert split_name("__meta.json__") is None
    assert split_name("__a.cls") == ("__a", "cls")
    assert split_name("a.cls__") == ("a", "cls__")
    assert split_name("d/__a.cls__") == ("d/__a", "cls__")


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
