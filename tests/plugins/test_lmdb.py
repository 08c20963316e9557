"""LMDB: what py-lmdb writes, whatever the tree; images by Pillow, data of Caffe; hostile pages."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import Pairs
from PIL import Image
from raconvert.plugins.lmdb.tables import HEAD, META, NO_PAGE, NODE, SAMPLE, TAIL, TREE

import raconvert
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsafe, Unsupported
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "lmdb"
RNG = np.random.default_rng(7)


def store(path: Path, items: dict[bytes, bytes], **options: Any) -> Path:
    """Write a file, or a folder, with py-lmdb; `options` are those of its named database."""
    lmdb = pytest.importorskip("lmdb")
    subdir = path.suffix == ""
    with lmdb.open(str(path), subdir=subdir, map_size=1 << 28, max_dbs=9, sync=False) as env:
        database = env.open_db(b"inner", **options) if options else None
        with env.begin(write=True, db=database) as transaction:
            for key, value in items.items():
                transaction.put(key, value)
    return path


def held(path: Path, name: bytes | None = None) -> list[tuple[bytes, bytes]]:
    """All entries of a database in order, as py-lmdb reads them."""
    lmdb = pytest.importorskip("lmdb")
    folder = path.is_dir()
    with lmdb.open(str(path), subdir=folder, readonly=True, lock=False, max_dbs=9) as env:
        database = env.open_db(name, create=False) if name else None
        with env.begin(db=database) as transaction:
            return [(bytes(key), bytes(value)) for key, value in transaction.cursor()]


def read(path: Path, limits: Limits | None = None, **options: Any) -> raconvert.Bundle:
    return load(by_name("lmdb")).read(Source(str(path), limits=limits), **options)


def encoded(pixels: np.ndarray, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def loaded(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return dict(file)


def stored(path: Path) -> np.ndarray:
    """The values of a file as py-lmdb reads them, of equal lengths."""
    return np.array([list(value) for _, value in held(path)], np.uint8)


IN_PAIRS = (Pairs(name="lmdb", suffix=".lmdb", read=stored, reads_only=True),)


def by_pillow(raw: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(raw)) as image:
        return np.asarray(image)


def pixels(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def keyed(values: list[bytes]) -> dict[bytes, bytes]:
    return {b"%08d" % number: value for number, value in enumerate(values)}


# Trees --------------------------------------------------------------------------------------------


def tree(seed: int) -> tuple[dict[bytes, bytes], dict[str, Any]]:
    """Random entries, and the options of the database that holds them."""
    rng = random.Random(seed)
    count = rng.choice([1, 2, 40, 300, 3000])
    longest = rng.choice([3, 40, 500])
    most = rng.choice([0, 30, 900, 3000, 9000] if count < 3000 else [0, 30])
    options: dict[str, Any] = rng.choice([{}, {}, {"reverse_key": True}, {"integerkey": True}])
    items = {}
    for number in range(count):
        key = rng.randbytes(rng.randint(1, longest))
        if options.get("integerkey"):
            key = struct.pack("@Q", rng.getrandbits(62))
        elif rng.random() < 0.5:
            key = (f"{number:x}-" + "k" * rng.randint(0, longest))[:longest].encode()
        items[key] = rng.randbytes(rng.randint(0, most))
    return items, options


@pytest.mark.parametrize("seed", range(40))
def test_entries_are_those_of_the_library(seed: int, tmp_path: Path) -> None:
    """Trees of any depth, keys of any order, after some were removed and replaced."""
    lmdb = pytest.importorskip("lmdb")
    items, options = tree(seed)
    path = store(tmp_path / "x.lmdb", items, **options)
    rng = random.Random(seed)
    name = b"inner" if options else None
    with lmdb.open(str(path), subdir=False, map_size=1 << 28, max_dbs=9, sync=False) as env:
        database = env.open_db(name, create=False) if name else None
        for _ in range(rng.randint(0, 3)):
            with env.begin(write=True, db=database) as transaction:
                for key in rng.sample(sorted(items), len(items) // 3):
                    transaction.delete(key)
                for key in rng.sample(sorted(items), len(items) // 4):
                    transaction.put(key, rng.randbytes(rng.randint(1, 3000)))
    wanted = held(path, name)
    if not wanted:
        return
    prefix = "inner/" if name else ""
    with read(path, values="bytes") as bundle:
        text = all(_is_shown(key) for key, _ in wanted)
        names = [_named(key, text, "integerkey" in options) for key, _ in wanted]
        if len({len(value) for _, value in wanted}) == 1:
            array = bundle[f"{prefix}values"]
            assert list(array.meta.axes[0].labels) == names
            assert array[...].tolist() == [list(value) for _, value in wanted]
        else:
            assert bundle.names == [prefix + one for one in names]
            for array, (_, value) in zip(bundle.arrays, wanted, strict=True):
                assert array[...].tobytes() == value


def _is_shown(key: bytes) -> bool:
    try:
        return key.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _named(key: bytes, text: bool, integer: bool) -> str:
    if integer:
        return str(int.from_bytes(key, "little"))
    return key.decode() if text else key.hex()


def test_nothing_is_written_beside_a_file(tmp_path: Path) -> None:
    """A folder that may not be written is read; no lock appears in one that may."""
    path = store(tmp_path / "x", keyed([b"\0\1"] * 3))
    (path / "lock.mdb").unlink()
    before = (path / "data.mdb").stat()
    raconvert.convert(path, tmp_path / "x.npz")
    assert os.listdir(path) == ["data.mdb"]
    after = (path / "data.mdb").stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert loaded(tmp_path / "x.npz")["values"].tolist() == [[0, 1]] * 3


def test_a_folder_is_one_source_beside_its_lock(tmp_path: Path) -> None:
    """In a tree, `lock.mdb` and `meta_info.txt` are no sources of their own."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    store(tmp_path / "in" / "deep" / "x", keyed([encoded(pixels(2, 3, 3))] * 2))
    (tmp_path / "in" / "deep" / "x" / "meta_info.txt").write_text("00000000.png (2,3,3) 1\n")
    raconvert.migrate(tmp_path / "in", tmp_path / "out", to="ra")
    made = sorted(one.relative_to(tmp_path / "out").as_posix()
                  for one in (tmp_path / "out").rglob("*.ra"))  # fmt: skip
    assert [one.partition(".")[0] for one in made] == ["deep/x"]
    assert raconvert.read(tmp_path / "out" / made[0]).shape == (2, 2, 3, 3)


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_images_are_those_of_pillow(form: str, tmp_path: Path) -> None:
    """One array, by parts and whole; its keys as labels."""
    options = {"lossless": True} if form == "WEBP" else {}
    items = keyed([encoded(pixels(5, 7, 3), form, **options) for _ in range(30)])
    path = store(tmp_path / "x.lmdb", items)
    with Image.open(io.BytesIO(items[b"00000000"])) as image:
        mode = "RGB" if image.mode == "P" else image.mode
    wanted = []
    for raw in items.values():
        with Image.open(io.BytesIO(raw)) as image:
            wanted.append(np.asarray(image.convert(mode)))
    with read(path) as bundle:
        array = bundle["images"]
        assert array.shape == (30, 5, 7, 3)
        assert array.meta.axes[0].labels == tuple(key.decode() for key in items)
        for key in (np.s_[...], np.s_[3], np.s_[-2:, 1], np.s_[::-9, ..., 0], np.s_[4:4]):
            assert np.array_equal(array[key], np.stack(wanted)[key]), key
        streamed = [piece.copy() for piece in array.data.stream(200)]
        assert np.array_equal(np.concatenate(streamed), np.stack(wanted).ravel())
    raconvert.convert(path, tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.stack(wanted))


def test_what_images_say_of_themselves_stays_with_each(tmp_path: Path) -> None:
    """Metadata that all share is that of the array, the rest goes to its items."""
    quarter = [encoded(pixels(2, 3), "PNG", dpi=(dots, dots)) for dots in (100, 100, 300)]
    path = store(tmp_path / "x.lmdb", keyed(quarter))
    raconvert.convert(path, tmp_path / "x.ra")
    lines = (tmp_path / "x.ra.items.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert lines[0] != lines[2]


def test_words_beside_images_of_many_sizes(tmp_path: Path) -> None:
    """Data sets of text recognition: an array for each image, all texts in one."""
    path = FIXTURES / "words.lmdb"
    wanted = dict(held(path))
    with read(path) as bundle:
        assert bundle.names == ["texts", "image-0", "image-1", "image-2"]
        for number in range(3):
            name = f"image-{number}"
            assert np.array_equal(bundle[name][...], by_pillow(wanted[name.encode()]))
        texts = bundle["texts"]
        assert [one.decode() for one in texts[...]] == ["größe 0", "größe 1", "größe 2", "3"]
        assert texts.meta.encoding == "utf-8"
        assert texts.meta.axes[0].labels == ("label-0", "label-1", "label-2", "num-samples")


def number(value: int) -> bytes:
    """A number of Protocol Buffers."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def datum(values: np.ndarray | None = None, label: int | None = None, *, data: bytes = b"",
          packed: bool = False, reverse: bool = False) -> bytes:  # fmt: skip
    """A message of Caffe, as its library writes it."""
    parts = []
    if values is not None:
        parts += [number(n << 3) + number(one) for n, one in enumerate(values.shape, 1)]
        if values.dtype == np.uint8:
            data = values.tobytes()
    if data:
        parts.append(b"\x22" + number(len(data)) + data)
    if label is not None:
        parts.append(b"\x28" + number(label % (1 << 64)))
    if values is not None and values.dtype == np.float32:
        raw = values.astype("<f4").ravel()
        parts.append(b"\x32" + number(raw.nbytes) + raw.tobytes() if packed
                     else b"".join(b"\x35" + one.tobytes() for one in raw))  # fmt: skip
    if values is None:
        parts.append(b"\x38\x01")
    return b"".join(parts[::-1] if reverse else parts)


def by_protobuf(raw: bytes) -> Any:
    """A datum as the library of Protocol Buffers reads it."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="datum.proto", package="t", syntax="proto2")
    message = file.message_type.add(name="Datum")
    kinds = ["INT32", "INT32", "INT32", "BYTES", "INT32", "FLOAT", "BOOL"]
    words = ["channels", "height", "width", "data", "label", "float_data", "encoded"]
    for place, (word, kind) in enumerate(zip(words, kinds, strict=True), 1):
        field = message.field.add(name=word, number=place)
        field.type = getattr(field, f"TYPE_{kind}")
        field.label = field.LABEL_REPEATED if kind == "FLOAT" else field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Datum"))()
    found.ParseFromString(raw)
    return found


@pytest.mark.parametrize("kind", ["bytes", "floats", "packed"])
@pytest.mark.parametrize("reverse", [False, True])
def test_data_of_caffe(kind: str, reverse: bool, tmp_path: Path) -> None:
    """Elements and labels of any sign, whatever the order of the fields."""
    made = [RNG.random((3, 40, 50), np.float32) if kind != "bytes" else pixels(3, 40, 50)
            for _ in range(6)]  # fmt: skip
    labels = [0, 7, -1, -(1 << 31), (1 << 31) - 1, 3]
    raw = [datum(one, label, packed=kind == "packed", reverse=reverse)
           for one, label in zip(made, labels, strict=True)]  # fmt: skip
    path = store(tmp_path / "x.lmdb", keyed(raw))
    with read(path) as bundle:
        assert bundle.names == ["images", "labels"]
        assert bundle["labels"][...].tolist() == labels
        assert bundle["labels"][...].dtype == np.int32
        assert np.array_equal(bundle["images"][...], np.stack(made))
        assert [axis.name for axis in bundle["images"].meta.axes][1:] == [
            "channels", "height", "width"]  # fmt: skip
    for one, label in zip(raw, labels, strict=True):
        assert by_protobuf(one).label == label


def test_floats_in_several_runs(tmp_path: Path) -> None:
    """Packed and single floats of one datum follow each other, as Protocol Buffers joins them."""
    values = RNG.random((1, 2, 4), np.float32)
    raw = values.ravel()
    mixed = b"\x08\x01\x10\x02\x18\x04" + b"\x32\x08" + raw[:2].tobytes()
    mixed += b"".join(b"\x35" + one.tobytes() for one in raw[2:5])
    mixed += b"\x28\x05" + b"\x32\x0c" + raw[5:].tobytes()
    assert list(by_protobuf(mixed).float_data) == raw.tolist()
    with read(store(tmp_path / "x.lmdb", {b"a": mixed})) as bundle:
        assert np.array_equal(bundle["images"][...], values[None])
        assert bundle["labels"][...].tolist() == [5]


def test_encoded_data_of_caffe(tmp_path: Path) -> None:
    """Images inside of messages are images, with the labels of the messages."""
    made = [pixels(5, 7, 3) for _ in range(4)]
    raw = [datum(data=encoded(one), label=n) for n, one in enumerate(made)]
    with read(store(tmp_path / "x.lmdb", keyed(raw))) as bundle:
        assert np.array_equal(bundle["images"][...], np.stack(made))
        assert bundle["labels"][...].tolist() == [0, 1, 2, 3]


def test_a_label_that_is_not_said_is_named(tmp_path: Path) -> None:
    raw = [datum(pixels(1, 2, 3), label) for label in (4, None)]
    with read(store(tmp_path / "x.lmdb", keyed(raw))) as bundle:
        assert bundle["labels"][...].tolist() == [4, 0]
        assert any("no label" in note for note in bundle.notes)


def test_data_of_different_shapes_keep_their_labels(tmp_path: Path) -> None:
    made = [pixels(1, 2, 3), pixels(1, 3, 3)]
    raw = [datum(one, label) for label, one in enumerate(made)]
    with read(store(tmp_path / "x.lmdb", keyed(raw))) as bundle:
        for label, (name, one) in enumerate(zip(bundle.names, made, strict=True)):
            assert np.array_equal(bundle[name][...], one)
            assert bundle[name].meta.attributes == {"label": label}


NO_DATA: dict[str, bytes] = {
    "too few bytes": b"\x08\x01\x10\x02\x18\x03\x22\x05abcde",
    "too many bytes": b"\x08\x01\x10\x02\x18\x03\x22\x07abcdefg",
    "bytes and floats": b"\x08\x01\x10\x01\x18\x01\x22\x01a\x35abcd",
    "a negative length": b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x02\x18\x03",
    "another field": b"\x08\x01\x10\x01\x18\x01\x22\x01a\x40\x01",
    "another kind": b"\x08\x01\x10\x01\x18\x01\x24\x01a",
    "a cut number": b"\x08\x01\x10\x01\x18\x01\x22\x01a\x28\xff",
    "an endless number": b"\x08" + b"\xff" * 40,
    "bytes behind the end": b"\x08\x01\x10\x01\x18\x01\x22\xff\xff\xff\xff\x0fa",
    "a cut float": b"\x08\x01\x10\x01\x18\x01\x35abc",
    "a ragged list": b"\x08\x01\x10\x01\x18\x01\x32\x05abcde",
    "no lengths": b"\x22\x03abc",
    "many fields": b"\x28\x01" * 500,
    "an image of no format": b"\x22\x03abc\x38\x01",
}


@pytest.mark.parametrize("what", NO_DATA)
def test_what_is_no_datum_is_bytes(what: str, tmp_path: Path) -> None:
    raw = NO_DATA[what]
    with read(store(tmp_path / "x.lmdb", {b"a": raw, b"b": b"\xff" * len(raw)})) as bundle:
        assert bundle["values"][0].tobytes() == raw


def test_pickles_are_named_and_never_opened(tmp_path: Path) -> None:
    """All else is read; `values=bytes` gives the bytes."""
    ran = tmp_path / "ran"

    class Runs:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(ran),)

    raw = [pickle.dumps(Runs(), protocol) for protocol in (2, 3, 4, 5)]
    path = store(tmp_path / "x.lmdb", {**keyed(raw), b"a": encoded(pixels(2, 3, 3))})
    with pytest.raises(RaconvertError, match="pickles") as refusal:
        raconvert.convert(path, tmp_path / "x.npz")
    assert "cannot be read" in str(refusal.value)
    raconvert.convert(path, tmp_path / "x.npz", allow="arrays")
    assert [*loaded(tmp_path / "x.npz")] == ["images"]
    with read(path, values="bytes") as bundle:
        assert bundle["00000002"][...].tobytes() == raw[2]
    with pytest.raises(Unsafe, match="4 pickles"):
        read(store(tmp_path / "y.lmdb", keyed(raw)))
    objects = io.BytesIO()
    np.save(objects, np.array([Runs()], object), allow_pickle=True)
    with pytest.raises(Unsafe):
        read(store(tmp_path / "z.lmdb", {b"a": objects.getvalue()}))
    assert not ran.exists()


def test_a_damaged_image_is_an_array_that_cannot_be_read(tmp_path: Path) -> None:
    made = [pixels(2, 3, 3) for _ in range(3)]
    raw = [encoded(one) for one in made]
    raw[1] = raw[1][:40]
    path = store(tmp_path / "x.lmdb", keyed(raw))
    raconvert.convert(path, tmp_path / "x.npz", allow="arrays")
    found = loaded(tmp_path / "x.npz")
    assert [*found] == ["00000000", "00000002"]
    assert np.array_equal(found["00000002"], made[2])


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_images_that_begin_alike_are_checked_when_decoded(form: str, tmp_path: Path) -> None:
    """The headers of images are compared with those of the first; their data is not trusted."""
    path = store(tmp_path / "x.lmdb", keyed([encoded(pixels(8, 9, 3), form) for _ in range(4)]))
    raw = bytearray(path.read_bytes())
    value = dict(held(path))[b"00000002"]
    begin = raw.index(value)
    raw[begin + 36 : begin + len(value) - 16] = bytes(len(value) - 52)
    if form == "JPEG":  # markers amid the data, which end it
        raw[begin : begin + len(value)] = value
        scan = begin + value.index(b"\xff\xda")
        raw[scan : scan + 14] = bytes(14)
    path.write_bytes(raw)
    with pytest.raises(RaconvertError, match="00000002"):
        raconvert.convert(path, tmp_path / "y.npz")
    assert not (tmp_path / "y.npz").exists()
    raw[begin : begin + len(value)] = value
    if form == "PNG":
        raw[begin + 60] ^= 1
        path.write_bytes(raw)
        with read(path) as bundle, pytest.raises(Corrupt, match="key '00000002'"):
            bundle["images"][...]


def test_a_named_database_is_a_group(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    path = tmp_path / "x.lmdb"
    with lmdb.open(str(path), subdir=False, max_dbs=3) as env:
        for name in (b"train", b"test"):
            database = env.open_db(name)
            with env.begin(write=True, db=database) as transaction:
                transaction.put(b"a", name)
        with env.begin(write=True) as transaction:
            transaction.put(b"z", b"main")
    with read(path) as bundle:
        assert {name: bundle[name][...].tolist() for name in bundle.names} == {
            "texts": [b"main"], "test/texts": [b"test"], "train/texts": [b"train"]}  # fmt: skip


def test_more_keys_than_labels_are_an_array(tmp_path: Path) -> None:
    path = store(tmp_path / "x.lmdb", keyed([b"\0"] * 20))
    with read(path, Limits(table_labels=10)) as bundle:
        assert bundle.names == ["values", "values.keys"]
        assert bundle["values.keys"][...].tolist() == [b"%08d" % n for n in range(20)]
        assert not bundle["values"].meta.axes


def test_names_of_keys_and_of_all_values_differ(tmp_path: Path) -> None:
    items = {b"texts": encoded(pixels(2, 3)), b"u": encoded(pixels(3, 3)), b"v": b"word"}
    with read(store(tmp_path / "x.lmdb", items)) as bundle:
        assert bundle.names == ["texts (all)", "texts", "u"]
        assert bundle["texts (all)"][...].tolist() == [b"word"]


def test_texts_of_very_different_lengths_stay_apart(tmp_path: Path) -> None:
    items = keyed([b"a"] * 2000 + [b"b" * 5000])
    with read(store(tmp_path / "x.lmdb", items)) as bundle:
        assert len(bundle.arrays) == 2001
        assert bundle["00002000"][...].tobytes() == b"b" * 5000


# Hostile pages ------------------------------------------------------------------------------------

PAGE = 512
ENTRY = SAMPLE[2 * PAGE :]
MAIN = HEAD.size + META.size + TREE.size  # of the main tree in a meta page
Change = Callable[[bytearray], object]


def put(layout: str, at: int, *values: Any) -> Change:
    """A change of a few bytes."""
    return lambda raw: struct.pack_into(layout, raw, at, *values)


def main(**fields: int) -> Change:
    """A change of the record of the main tree of the later transaction."""

    def change(raw: bytearray) -> None:
        place = PAGE + MAIN
        names = ["padding", "flags", "depth", "branch_pages", "leaf_pages", "overflow_pages",
                 "entries", "root"]  # fmt: skip
        values = dict(zip(names, TREE.unpack_from(raw, place), strict=True))
        TREE.pack_into(raw, place, *(values | fields).values())

    return change


def both(*changes: Change) -> Change:
    def change(raw: bytearray) -> None:
        for one in changes:
            one(raw)

    return change


LEAF = 2 * PAGE
PLACE = struct.unpack_from("<H", SAMPLE, LEAF + HEAD.size)[0]  # of its one entry
LAST = HEAD.size + META.size + 2 * TREE.size


def pages(*more: bytes) -> Change:
    """Append pages and say so."""

    def change(raw: bytearray) -> None:
        raw += b"".join(one.ljust(PAGE, b"\0") for one in more)
        TAIL.pack_into(raw, PAGE + LAST, 2 + len(more), 1)

    return change


def branch(page: int, *children: int) -> bytes:
    """A branch page with children under keys a, b, c."""
    nodes = [NODE.pack(one & 0xFFFF, one >> 16 & 0xFFFF, 0, 2) + bytes([97 + n, 0])
             for n, one in enumerate(children)]  # fmt: skip
    begin = PAGE - sum(map(len, nodes))
    head = HEAD.pack(page, 0, 1, HEAD.size + 2 * len(nodes), begin)
    places = struct.pack(f"<{len(nodes)}H", *(begin + 10 * n for n in range(len(nodes))))
    return (head + places).ljust(begin, b"\0") + b"".join(nodes)


HOSTILE: dict[str, tuple[Change, type[RaconvertError], str]] = {
    "another magic": (put("4s", HEAD.size, b"abcd"), Corrupt, "begin as LMDB"),
    "32-bit": (both(put("4s", 12, bytes.fromhex("dec0efbe")), put("4s", 16, b"\1\0\0\0")),
               Unsupported, "32-bit"),
    "big-endian": (put("4s", 16, bytes.fromhex("beefc0de")), Unsupported, "big-endian"),
    "another version": (put("<I", 20, 999), Unsupported, "version 999"),
    "second version": (put("<I", PAGE + 20, 2), Unsupported, "version 2"),
    "pages of no size": (put("<I", 40, 0), Corrupt, "size of pages"),
    "pages of an odd size": (put("<I", 40, 513), Corrupt, "size of pages"),
    "huge pages": (put("<I", 40, 1 << 31), Corrupt, "size of pages"),
    "larger pages than the file": (put("<I", 40, 4096), Corrupt, "ends inside"),
    "different page sizes": (put("<I", PAGE + 40, 1024), Corrupt, "differ"),
    "second magic": (put("4s", PAGE + 16, b"abcd"), Corrupt, "not a meta page"),
    "no flag of a meta page": (put("<H", PAGE + 10, 2), Corrupt, "not a meta page"),
    "root behind the end": (main(root=9), Corrupt, "not one of the file"),
    "root far away": (main(root=1 << 62), Corrupt, "not one of the file"),
    "root is a meta page": (main(root=1), Corrupt, "not one of the file"),
    "last page behind the end": (both(put("<Q", PAGE + LAST, 1 << 40), main(root=1 << 30)),
                                 Corrupt, "ends inside"),
    "no depth": (main(depth=0), Corrupt, "depth"),
    "a deep tree": (main(depth=33), Corrupt, "depth"),
    "deeper than it is": (main(depth=2), Corrupt, "not the one"),
    "more entries than said": (main(entries=0), Corrupt, "number of entries"),
    "fewer entries than said": (main(entries=1 << 60), Corrupt, "number of entries"),
    "nothing in it": (main(root=NO_PAGE, entries=0), Unsupported, "no values"),
    "page of another number": (put("<Q", LEAF, 3), Corrupt, "not the one"),
    "page of another kind": (put("<H", LEAF + 10, 4), Corrupt, "not the one"),
    "page of fixed keys": (put("<H", LEAF + 10, 0x22), Corrupt, "not the one"),
    "page without entries": (put("<H", LEAF + 12, HEAD.size), Corrupt, "no entries"),
    "too many pointers": (put("<H", LEAF + 12, 0xFFFE), Corrupt, "no entries"),
    "half a pointer": (put("<H", LEAF + 12, HEAD.size + 3), Corrupt, "no entries"),
    "pointer into the header": (put("<H", LEAF + HEAD.size, 2), Corrupt, "inside its page"),
    "pointer behind the page": (put("<H", LEAF + HEAD.size, 600), Corrupt, "inside its page"),
    "key behind the page": (put("<H", LEAF + PLACE + 6, 0xFFFF), Corrupt, "inside its page"),
    "value behind the page": (put("<H", LEAF + PLACE, 0xFFFF), Corrupt, "inside its page"),
    "huge value": (put("<HH", LEAF + PLACE, 0xFFFF, 0xFFFF), Corrupt, "inside its page"),
    "large value without pages": (put("<H", LEAF + PLACE + 4, 1), Corrupt, "not one of the file"),
    "several values of a key": (put("<H", LEAF + PLACE + 4, 4), Unsupported, "several values"),
    "several values in a tree": (put("<H", LEAF + PLACE + 4, 6), Unsupported, "several values"),
    "database of no size": (put("<H", LEAF + PLACE + 4, 2), Corrupt, "named database"),
    "the same entry again": (
        both(put("<H", LEAF + 12, HEAD.size + 4), put("<HH", LEAF + HEAD.size, PLACE, PLACE),
             main(entries=2)), Corrupt, "do not ascend"),
    "a page twice": (both(pages(branch(3, 2, 2)), main(root=3, depth=2, entries=2)),
                     Corrupt, "do not ascend"),
    "a page that leads to itself": (both(pages(branch(3, 3, 3)), main(root=3, depth=32)),
                                    Corrupt, "not the one"),
    "branches that multiply": (
        both(pages(*(branch(n, n + 1, n + 1) for n in range(3, 33)), branch(33, 2, 2)),
             main(root=3, depth=32, entries=1 << 31)), Corrupt, "do not ascend"),
    "a leaf too high": (both(pages(branch(3, 2)), main(root=3, depth=3)), Corrupt, "not the one"),
}  # fmt: skip


def hostile(what: str) -> tuple[bytes, type[RaconvertError], str]:
    change, kind, words = HOSTILE[what]
    raw = bytearray(SAMPLE)
    change(raw)
    return bytes(raw), kind, words


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_pages_are_refused(what: str, tmp_path: Path) -> None:
    raw, kind, words = hostile(what)
    path = tmp_path / "x.lmdb"
    path.write_bytes(raw)
    with pytest.raises(kind, match=words):
        read(path)
    with pytest.raises(RaconvertError):
        raconvert.convert(path, tmp_path / "y.npz", from_="lmdb")
    assert sorted(os.listdir(tmp_path)) == ["x.lmdb"]


def large(path: Path) -> tuple[bytearray, int, int]:
    """A file with a value on pages of its own: its bytes, the place of its entry, that page."""
    store(path, {b"a": b"x" * 5000})
    raw = bytearray(path.read_bytes())
    last = 4096 * (raw.index(b"x" * 5000) // 4096)
    entry = raw.index(NODE.pack(5000, 0, 1, 1) + b"a")
    return raw, entry, last


@pytest.mark.parametrize("what", ["pages", "flag", "size", "last", "cut"])
def test_hostile_pages_of_large_values(what: str, tmp_path: Path) -> None:
    raw, entry, page = large(tmp_path / "x.lmdb")
    if what == "pages":
        struct.pack_into("<I", raw, page + 12, 1)
    elif what == "flag":
        struct.pack_into("<H", raw, page + 10, 2)
    elif what == "size":
        struct.pack_into("<HH", raw, entry, 0xFFFF, 0xFFFF)
    elif what == "last":
        struct.pack_into("<I", raw, page + 12, 1 << 31)
    else:
        del raw[page + 4096 :]
    (tmp_path / "x.lmdb").write_bytes(raw)
    with pytest.raises(Corrupt):
        read(tmp_path / "x.lmdb")


def test_one_large_value_under_many_keys_is_refused(tmp_path: Path) -> None:
    """Values are counted: together they are not larger than the file."""
    path = store(tmp_path / "x.lmdb", {b"a": b"x" * 9000, b"b": b"y" * 9000, b"c": b"z" * 9000})
    raw = bytearray(path.read_bytes())
    places = [
        raw.index(NODE.pack(9000, 0, 1, 1) + key) + NODE.size + 1 for key in (b"a", b"b", b"c")
    ]
    with read(path, values="bytes") as bundle:
        assert bundle["values"].shape == (3, 9000)
    for place in places[1:]:
        raw[place : place + 8] = raw[places[0] : places[0] + 8]
    path.write_bytes(raw[: raw.index(b"y" * 9000) - 16])
    with pytest.raises(Corrupt, match="overlap"):
        read(path)


def test_bounds_are_those_of_the_source(tmp_path: Path) -> None:
    path = store(tmp_path / "x.lmdb", keyed([b"a" * n for n in range(1, 40)]))
    with pytest.raises(TooLarge, match="too many entries"):
        read(path, Limits(entries=38))
    with pytest.raises(TooLarge, match="different shapes"):
        read(path, Limits(nodes=10), values="bytes")


def test_every_cut_is_noticed() -> None:
    """Behind the last value nothing is needed."""
    raw = (FIXTURES / "png.lmdb").read_bytes()
    entries = [value for _, value in held(FIXTURES / "png.lmdb")]
    end = max(raw.index(value) + len(value) for value in entries)
    assert end > len(raw) - 8


@pytest.fixture(autouse=True)
def _no_locks_in_the_fixtures() -> Iterator[None]:
    before = sorted(os.listdir(FIXTURES))
    yield
    assert sorted(os.listdir(FIXTURES)) == before
