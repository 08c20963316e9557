"""TFRecord: the `tfrecord` package and protobuf write and read, and records that neither writes."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tfrecord
import tfrecord_files as by_hand
from attempts import refuses
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import NAME, Pairs
from PIL import Image
from tfrecord.example_pb2 import Example, SequenceExample
from tfrecord_files import example, features, field, file, floats, ints, record, texts, varint

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError, WouldLose
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "tfrecord"
FLAT = {"ragged": "flat"}


def by_the_package(path: Path) -> dict[str, list[Any]]:
    """The features of all records as the `tfrecord` package reads them."""
    found: dict[str, list[Any]] = {}
    for one in tfrecord.tfrecord_loader(str(path), None):
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return found


IN_PAIRS = (
    Pairs(
        name="tfrecord", suffix=".tfrecord", reads_only=True,
        read=lambda path: np.array(by_the_package(path)[NAME]),
    ),
)  # fmt: skip


def made(folder: Path, content: bytes, name: str = "x.tfrecord") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def arrays(path: Path, **options: Any) -> dict[str, Any]:
    """All arrays of a file, in memory."""
    with raconvert.open_bundle(path, **options) as bundle:
        return {name: np.asarray(array[...]) for name, array in bundle.items()
                if array.problem is None}  # fmt: skip


def test_what_the_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    writer = tfrecord.TFRecordWriter(str(path))
    for n in range(7):
        writer.write({
            "image/encoded": (bytes([137, n, 0, 255]), "byte"), "name": (f"é{n}".encode(), "byte"),
            "label": (n - 3, "int"), "box": ([0.1 * n, 2.5], "float"),
        })  # fmt: skip
    writer.close()
    theirs = by_the_package(path)
    found = arrays(path)
    assert found["label"].dtype == "<i8"
    assert found["label"].tolist() == [int(one[0]) for one in theirs["label"]]
    assert found["box"].dtype == "<f4"
    assert np.array_equal(found["box"], np.array(theirs["box"]))
    assert found["name"].tolist() == [bytes(one) for one in theirs["name"]]
    assert found["image/encoded"].dtype == np.uint8
    assert [bytes(one) for one in found["image/encoded"]] == [
        bytes(one) for one in theirs["image/encoded"]]  # fmt: skip
    with raconvert.open_bundle(path) as bundle:
        assert bundle["name"].meta.encoding == "utf-8"
    raconvert.convert(path, tmp_path / "x.npz")
    assert np.load(tmp_path / "x.npz")["label"].tolist() == found["label"].tolist()


@every("name", ["examples.tfrecord", "sequences.tfrecord", "examples.tfrecord.gz"])
def test_fixtures(name: str) -> None:
    found = arrays(FIXTURES / name, in_opts=FLAT)
    if name.startswith("sequences"):
        assert found["context/id"].tolist() == [0, 1, 2]
        assert found["feature_lists/even"].tolist() == [[[n, 2], [n, 3]] for n in range(3)]
        assert found["feature_lists/odd/steps"].tolist() == [1, 2, 3]
        assert found["feature_lists/odd/lengths"].tolist() == [0, 0, 1, 0, 1, 2]
        assert found["feature_lists/odd/values"].tolist() == [1.5, 1.5, 1.5, 1.5]
        return
    assert found["label"].tolist() == [0, -1, -2]
    assert found["box"].tolist() == [[n, n + 0.5] for n in range(3)]
    assert found["ragged/lengths"].tolist() == [0, 1, 2]
    assert found["ragged/values"].tolist() == [0, 0, 1]
    assert found["class/text"].tolist() == [b"cat", "Käfer".encode(), b"dog"]


NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9)
VALUES = {
    "int64_list": st.lists(NUMBERS, max_size=40),
    "float_list": st.lists(st.floats(width=32), max_size=5),
    "bytes_list": st.lists(
        st.binary(max_size=5) | st.sampled_from([b"", "é".encode()]), max_size=3
    ),
}
KINDS = {"i": "int64_list", "f": "float_list", "b": "bytes_list"}


def numbers(values: Any, kind: str) -> np.ndarray:
    if kind == "b":
        return np.frombuffer(b"".join(values), "u1")
    return np.array(list(values), "<i8" if kind == "i" else "<f4")


@settings(max_examples=60, deadline=None)
@given(data=st.data(), records=st.integers(1, 4), seed=st.integers(0, 9))
def test_any_examples_of_protobuf(
    data: st.DataObject, records: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tf") / "x.tfrecord"
    kept: dict[str, list[Any]] = {}
    made_of = []
    for _ in range(records):
        one = Example()
        for name, kind in KINDS.items():
            values = data.draw(VALUES[kind])
            getattr(one.features.feature[name], kind).value.extend(values)
            kept.setdefault(name, []).append(values)
        made_of.append(one.SerializeToString())
    path.write_bytes(file(made_of))
    if not any(any(rows) for rows in kept.values()):
        with pytest.raises(Unsupported, match="without any value"):
            raconvert.read(path)
        return
    found = arrays(path, in_opts=FLAT)
    for name, rows in kept.items():
        if not any(rows):
            assert name not in found
            continue
        if name in found:  # regular: as many values in each
            array = found[name]
            if name == "b" and array.dtype != np.uint8:
                assert array.ravel().tolist() == [value for row in rows for value in row]
                continue
            assert array.shape[0] == records
            assert array.tobytes() == b"".join(numbers(row, name).tobytes() for row in rows)
            continue
        flat = np.concatenate([numbers(row, name) for row in rows])
        assert found[f"{name}/values"].tobytes() == flat.tobytes()
        counts = found[f"{name}/{'counts' if name == 'b' else 'lengths'}"]
        assert counts.tolist() == [len(row) for row in rows]
        if name == "b":
            lengths = [len(value) for row in rows for value in row]
            assert found["b/lengths"].tolist() == lengths


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(), records=st.integers(1, 3), kind=st.sampled_from(sorted(KINDS)),
    even=st.booleans(),
)  # fmt: skip
def test_any_sequence_of_protobuf(
    data: st.DataObject, records: int, kind: str, even: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("tf") / "x.tfrecord"
    kept, made_of = [], []
    for n in range(records):
        one = SequenceExample()
        one.context.feature["id"].int64_list.value.append(n)
        steps = []
        for _ in range(3 if even else data.draw(st.integers(0, 3))):
            values = data.draw(VALUES[KINDS[kind]])
            values = (values + [b"ab" if kind == "b" else 1] * 2)[:2] if even else values
            step = one.feature_lists.feature_list["x"].feature.add()
            getattr(step, KINDS[kind]).value.extend(values)
            steps.append(values)
        one.feature_lists.feature_list["x"].SetInParent()
        kept.append(steps)
        made_of.append(one.SerializeToString())
    path.write_bytes(file(made_of))
    found = arrays(path, in_opts=FLAT)
    name = "feature_lists/x"
    flat = [value for steps in kept for values in steps for value in values]
    assert found["context/id"].tolist() == [*range(records)]
    if name in found:
        array = found[name]
        assert array.shape[:2] == (records, len(kept[0]))
        if array.dtype.kind == "S":
            assert array.ravel().tolist() == flat
        else:
            assert array.tobytes() == numbers(flat, kind).tobytes()
    elif flat:
        assert found[f"{name}/values"].tobytes() == numbers(flat, kind).tobytes()
        assert found[f"{name}/steps"].tolist() == [len(steps) for steps in kept]
        per_step = [len(values) for steps in kept for values in steps]
        assert found[f"{name}/{'counts' if kind == 'b' else 'lengths'}"].tolist() == per_step


@every("packed", [True, False])
def test_integers_of_every_length(packed: bool, tmp_path: Path) -> None:
    values = [sign * (1 << n) for n in range(63) for sign in (1, -1)] + [0, -(1 << 63)]
    lists = b"".join(b"\x08" + varint(one) for one in values)
    feature = ints(*values) if packed else field(3, lists)
    path = made(tmp_path, file([example(x=feature)] * 3))
    with raconvert.open_bundle(path) as bundle:
        array = bundle["x"]
        assert np.array_equal(array[...], [values] * 3)
        assert np.array_equal(array[1:, 5:50:7], np.array([values] * 2)[:, 5:50:7])
        assert np.array_equal(array[::-2, -1], [values[-1]] * 2)
        pieces = [piece.copy() for piece in array.data.stream(100)]
        assert np.array_equal(np.concatenate(pieces).reshape(3, -1), [values] * 3)


def test_long_runs_are_decoded_in_pieces(tmp_path: Path) -> None:
    values = (np.arange(200_000) * 977 % 1_000_003 - 500_000).tolist()
    path = made(tmp_path, file([example(x=ints(*values))]))
    assert raconvert.read(path)["x"].ravel().tolist() == values


def test_floats_that_are_not_packed(tmp_path: Path) -> None:
    lists = b"".join(b"\x0d" + np.float32(one).tobytes() for one in (1.5, np.nan, -0.0))
    path = made(tmp_path, file([example(x=field(2, lists))]))
    assert raconvert.read(path)["x"].tobytes() == np.array([1.5, np.nan, -0.0], "<f4").tobytes()


@every("pack", [gzip.compress, zlib.compress, lambda data: gzip.compress(data[:30]) + gzip.compress(data[30:])])  # fmt: skip
def test_compressed_files(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = file([example(x=ints(n, 300 * n)) for n in range(50)])
    path = made(tmp_path, pack(content), "x.bin")
    assert np.array_equal(raconvert.read(path)["x"], [[n, 300 * n] for n in range(50)])
    with pytest.raises(TooLarge, match="decompress"):
        load(by_name("tfrecord")).read(Source(str(path), max_memory=1024))
    made(tmp_path, pack(content)[:-9], "x.bin")
    with pytest.raises(Corrupt, match=r"cut off|inflated"):
        raconvert.read(path)


def test_ragged_features_are_refused_by_name(tmp_path: Path) -> None:
    path = made(tmp_path, file([
        example(x=ints(1), y=floats(1), z=texts(b"\xff"), w=ints(7), all=ints(5)),
        example(x=ints(1, 2), z=texts(b"\xff\xfe"), w=floats(7), all=ints(6)),
    ]))  # fmt: skip
    reasons = {
        "x": "has 1 to 2 values in a record", "y": "is in 1 of 2 records",
        "z": "has values of 1 to 2 bytes", "w": "values of several kinds",
    }  # fmt: skip
    with raconvert.open_bundle(path) as bundle:
        for name, why in reasons.items():
            assert why in str(bundle[name].problem)
            assert ("flat" in str(bundle[name].problem)) == (name != "w")
    with pytest.raises(WouldLose, match="4 of its 5 arrays cannot be read"):
        raconvert.convert(path, tmp_path / "x.npz")
    raconvert.convert(path, tmp_path / "x.npz", allow=["arrays"])
    assert np.load(tmp_path / "x.npz").files == ["all"]
    found = arrays(path, in_opts=FLAT)
    assert found["y/lengths"].tolist() == [1, 0]
    assert found["z/values"].tolist() == [255, 255, 254]


def test_values_without_their_lengths_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path, file([example(x=ints(1)), example(x=ints(1, 2))]))
    with pytest.raises(WouldLose, match="elements"):
        raconvert.convert(f"{path}#x/values", tmp_path / "x.npy", in_opts=FLAT)
    raconvert.convert(f"{path}#x/values", tmp_path / "x.npy", in_opts=FLAT, allow=["elements"])
    assert np.load(tmp_path / "x.npy").tolist() == [1, 1, 2]


def test_one_long_text_is_not_padded_into_all(tmp_path: Path) -> None:
    rows = [example(x=texts(b"a" * (1 << 16 if n == 5 else 1))) for n in range(999)]
    path = made(tmp_path, file(rows))
    with pytest.raises(Unsupported, match="1 to 65536 bytes"):
        raconvert.read(path)
    assert arrays(path, in_opts=FLAT)["x/lengths"].sum() == 65536 + 998


def test_records_as_they_are(tmp_path: Path) -> None:
    path = made(tmp_path, file([b"abc", b"\xff\0z"]))
    with pytest.raises(Corrupt, match="record 0 is not an Example"):
        raconvert.read(path)
    options = {"records": "bytes"}
    found = arrays(path, in_opts=options)
    assert found["records"].tolist() == [[97, 98, 99], [255, 0, 122]]
    made(tmp_path, file([b"abc", b""]))
    found = arrays(path, in_opts=options | FLAT)
    assert found["records/values"].tobytes() == b"abc"
    assert found["records/lengths"].tolist() == [3, 0]


def test_records_of_no_bytes(tmp_path: Path) -> None:
    path = made(tmp_path, file([b"", b"", b""]))
    with raconvert.open_bundle(path, in_opts={"records": "bytes"}) as bundle:
        assert bundle["records"].shape == (3, 0)
        assert bundle["records"][1:].shape == (2, 0)
    raconvert.convert(path, tmp_path / "x.npz", in_opts={"records": "bytes"})
    assert np.load(tmp_path / "x.npz")["records"].shape == (3, 0)


def test_records_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    """Records of a few bytes to some megabytes, which lie across the pieces that are read."""
    rng = np.random.default_rng(3)
    rows = [rng.integers(1, 256, n, "u1").tobytes() for n in (5, 999_990, 3, 2_500_000, 7, 1 << 20)]
    path = made(tmp_path, file([example(x=texts(row), n=ints(len(row))) for row in rows]))
    theirs = by_the_package(path)
    found = arrays(path, in_opts=FLAT)
    assert found["n"].tolist() == [int(one[0]) for one in theirs["n"]]
    assert found["x/lengths"].tolist() == [len(row) for row in rows]
    assert found["x/values"].tobytes() == b"".join(bytes(one) for one in theirs["x"])


def test_features_of_nothing_are_noted(tmp_path: Path) -> None:
    path = made(tmp_path, file([example(x=b"", y=ints(), z=ints(3)), example(x=b"", z=ints(4))]))
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["z"]
        assert any("without any value: x, y" in note for note in bundle.notes)


def test_bounds_are_those_of_the_source(tmp_path: Path) -> None:
    path = made(tmp_path, file([example(x=ints(1), y=ints(2), z=ints(3))]))
    read = load(by_name("tfrecord")).read
    with pytest.raises(TooLarge, match="at most 2"):
        read(Source(str(path), limits=Limits(nodes=2)))
    with pytest.raises(TooLarge, match="more features in all"):
        read(Source(str(path), limits=Limits(memory=4 * 24 * 2)))


# Images ------------------------------------------------------------------------------------------


def encoded(values: Any, form: str = "PNG") -> bytes:
    """An image as Pillow writes it."""
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, form)
    return stream.getvalue()


def pixels(count: int = 5, size: tuple[int, ...] = (6, 9, 3)) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 256, (count, *size), "u1")


def of_images(values: Any, form: str = "PNG", name: str = "image/encoded") -> list[bytes]:
    rows = []
    for n, one in enumerate(values):
        row = Example()
        row.features.feature[name].bytes_list.value.append(encoded(one, form))
        row.features.feature["image/format"].bytes_list.value.append(form.lower().encode())
        row.features.feature["label"].int64_list.value.append(n)
        rows.append(row.SerializeToString())
    return rows


@every("pack", [bytes, gzip.compress])
def test_png_of_the_usual_name_is_decoded(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    values = pixels()
    path = made(tmp_path, pack(file(of_images(values))))
    with raconvert.open_bundle(path) as bundle:
        images = bundle["image/encoded"]
        assert images.shape == (5, 6, 9, 3)
        assert np.array_equal(images[...], values)
        assert np.array_equal(images[3, 2:4, ::2], values[3, 2:4, ::2])
        assert bundle["image/format"][...].tolist() == [b"png"] * 5
    raconvert.convert(f"{path}#image/encoded", tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    stored = arrays(path, in_opts=FLAT)  # all have one length
    assert stored["image/encoded"].tobytes() == b"".join(map(encoded, values))


@every("form", ["PNG", "JPEG", "WebP", "BMP", "GIF"])
def test_images_that_are_asked_for(form: str, tmp_path: Path) -> None:
    """Pillow decodes them alike; only PNG is decoded without being asked for."""
    values = pixels(size=(6, 9)) if form == "GIF" else pixels()
    path = made(tmp_path, file(of_images(values, form, "photo")))
    theirs = [np.asarray(Image.open(io.BytesIO(encoded(one, form))).convert("L" if form == "GIF" else "RGB"))
              for one in values]  # fmt: skip
    found = arrays(path, in_opts={"images": "photo"})["photo"]
    if form == "GIF":
        found = found[..., 0]
    assert np.array_equal(found, theirs)
    assert "photo" not in arrays(path) or arrays(path)["photo"].shape[1:] != theirs[0].shape
    named = made(tmp_path, file(of_images(values, form)))
    shape = arrays(named, in_opts={"images": "image/encoded"})["image/encoded"].shape
    assert shape[:3] == (5, 6, 9)
    if form == "JPEG":  # decoders differ
        with raconvert.open_bundle(named) as bundle:
            assert "bytes" in str(bundle["image/encoded"].problem)


def test_images_of_different_sizes_are_named(tmp_path: Path) -> None:
    rows = of_images(pixels(2)) + of_images(pixels(2, (6, 8, 3)))
    with raconvert.open_bundle(made(tmp_path, file(rows))) as bundle:
        problem = str(bundle["image/encoded"].problem)
        assert "first in record 2" in problem
        assert "flat" in problem
        assert bundle["label"][...].tolist() == [0, 1, 0, 1]


@every("change", [
    (lambda raw: raw[:40], "record 1"), (lambda raw: raw[:-20] + b"\1" + raw[-19:], "record 1"),
])  # fmt: skip
def test_a_damaged_image_names_its_record(
    change: tuple[Callable[[bytes], bytes], str], tmp_path: Path
) -> None:
    raw = [encoded(one) for one in pixels(3)]
    raw[1] = change[0](raw[1])
    path = made(tmp_path, file([example(**{"image/encoded": texts(one)}) for one in raw]))
    with pytest.raises(RaconvertError, match=change[1]):
        raconvert.convert(path, tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()


def test_images_that_are_not_there(tmp_path: Path) -> None:
    path = made(tmp_path, file(of_images(pixels(2))))
    for name in ("photo", "label"):
        with pytest.raises(UsageError, match="its features: .*image/encoded"):
            raconvert.open_bundle(path, in_opts={"images": name})
    path = made(tmp_path, file([example(x=texts(b"\xffab"), n=ints(n)) for n in range(2)]))
    with raconvert.open_bundle(path, in_opts={"images": "x"}) as bundle:
        assert "not an image of a known format" in str(bundle["x"].problem)


def test_whole_records_are_found_by_their_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 8 MB no more than the lengths are read; damage is found with the record that has it."""
    rows = [bytes([n]) * (1 << 20) for n in range(8)]
    path, total, plain = made(tmp_path, file(rows)), 0, Source.read_at

    def read_at(source: Source, offset: int, nbytes: int) -> bytes:
        nonlocal total
        found = plain(source, offset, nbytes)
        total += len(found)
        return found

    monkeypatch.setattr(Source, "read_at", read_at)
    with raconvert.open_bundle(path, in_opts={"records": "bytes"}) as bundle:
        assert bundle["records"].shape == (8, 1 << 20)
        assert total < 2 << 20
        assert np.array_equal(bundle["records"][3], np.full(1 << 20, 3, "u1"))
    raw = bytearray(path.read_bytes())
    raw[(5 << 20) + 1000] ^= 1
    path.write_bytes(raw)
    with raconvert.open_bundle(path, in_opts={"records": "bytes"}) as bundle:
        assert bundle["records"][4, 0] == 4
        with pytest.raises(Corrupt, match="the data of record 5"):
            bundle["records"][5]


LONG = b"\x80" * 11 + b"\x01"
HOSTILE: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "nothing": (b"", Unsupported, "no records"),
    "half_a_length": (file([example(x=ints(1))])[:7], Corrupt, "ends inside record 0"),
    "half_a_record": (file([example(x=ints(1))])[:-9], Corrupt, "ends inside record 0"),
    "no_checksum_of_the_data": (file([example(x=ints(1))])[:-4], Corrupt, "ends inside"),
    "junk_behind": (file([example(x=ints(1))]) + b"junk", Corrupt, "ends inside record 1"),
    "length_of_an_exabyte": (record(b"", length=1 << 60), Corrupt, "ends inside record 0"),
    "length_of_all": (record(b"", length=(1 << 64) - 1), Corrupt, "ends inside record 0"),
    "wrong_checksum_of_the_length": (b"\1" + file([b"ab"])[1:], Corrupt, "the length of record 0"),
    "wrong_checksum_of_the_data": (file([b"ab"])[:12] + b"ac" + file([b"ab"])[14:], Corrupt,
                                   "the data of record 0"),
    "no_example": (file([b"hello"]), Corrupt, "is not an Example"),
    "example_of_nothing": (file([b""]), Unsupported, "without any value"),
    "features_that_are_a_number": (file([b"\x08\x01"]), Corrupt, "no field 1 of wire type 0"),
    "field_of_a_group": (file([b"\x0b\x0c"]), Corrupt, "wire type 3"),
    "field_zero": (file([field(0, b"")]), Corrupt, "number 0"),
    "field_of_an_exabyte": (file([b"\x0a" + varint(1 << 60)]), Corrupt, "cut off"),
    "field_that_is_cut_off": (file([b"\x0a\x09ab"]), Corrupt, "cut off"),
    "field_of_a_long_number": (file([b"\x0a" + LONG]), Corrupt, "more than 10 bytes"),
    "field_of_no_length": (file([b"\x0a"]), Corrupt, "cut off"),
    "unknown_field_of_a_high_number": (file([field(2000, b"")]), Corrupt, "no field 2000"),
    "unknown_field": (file([field(3, b"")]), Corrupt, "no field 3"),
    "feature_without_a_name": (file([field(1, features()) + field(1, field(1, field(2, ints(1))))]),
                               Corrupt, "name of a feature has 0"),
    "feature_twice": (file([field(1, features(x=ints(1)) * 2)]), Corrupt, "there twice"),
    "feature_of_two_kinds": (file([example(x=ints(1) + floats(1))]), Corrupt, "two kinds"),
    "feature_of_an_unknown_kind": (file([example(x=field(4, b""))]), Corrupt, "no field 4"),
    "name_not_utf8": (file([field(1, field(1, field(1, b"\xff") + field(2, ints(1))))]), Corrupt,
                      "not UTF-8"),
    "name_of_a_megabyte": (file([example(**{"x" * 1_000_000: ints(1)})]), Corrupt, "characters"),
    "floats_of_five_bytes": (file([example(x=field(2, field(1, b"12345")))]), Corrupt, "not whole"),
    "integers_cut_off": (file([example(x=field(3, field(1, b"\x01\x80")))]), Corrupt, "cut off"),
    "integer_of_eleven_bytes": (file([example(x=field(3, field(1, LONG)))]), Corrupt, "10 bytes"),
    "integers_as_floats": (file([example(x=field(3, b"\x0d1234"))]), Corrupt, "wire type 5"),
    "sequence_of_numbers": (file([field(2, b"\x08\x01")]), Corrupt, "wire type 0"),
    "gzip_of_noise": (gzip.compress(file([b"ab"]))[:15] + b"noise" * 9, Corrupt, "inflated|cut"),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    refuses(tmp_path / "x.tfrecord", HOSTILE[name], from_="tfrecord")


def test_what_is_not_tfrecord_is_not_taken_for_it(tmp_path: Path) -> None:
    sniff = load(by_name("tfrecord")).sniff
    for content in (bytes(64), b"x" * 64, gzip.compress(bytes(64)), zlib.compress(b"x" * 99), b""):
        assert not sniff(Source(str(made(tmp_path, content))))
    assert by_hand.masked(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")  # fmt: skip
