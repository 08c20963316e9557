"""Zarr: memory, work and requests stay in proportion to what there is, wherever the store lies."""

from __future__ import annotations

import json
import pickle
import struct
import tracemalloc
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from raconvert.plugins.zarr.header import Node, document, node_of_2, node_of_3
from raconvert.plugins.zarr.reader import read_store

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsafe, Unsupported
from raconvert.files.limits import DEFAULT, Limits
from raconvert.files.source import Source

VERSION_2 = {
    "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": None,
    "fill_value": 7, "order": "C", "filters": None,
}  # fmt: skip
VERSION_3 = {
    "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 7,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
}  # fmt: skip


def store(path: Path, data: dict[str, bytes] | None = None, **said: Any) -> Path:
    """An array of version 2, or of version 3 if codecs are said, and its chunks by their keys."""
    three = "codecs" in said or "chunk_grid" in said or "chunk_shape" in said
    fields = {**(VERSION_3 if three else VERSION_2)}
    if three and "chunk_shape" in said:
        shape = said.pop("chunk_shape")
        fields["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": shape}}
    fields.update(said)
    path.mkdir(parents=True, exist_ok=True)
    (path / ("zarr.json" if three else ".zarray")).write_text(json.dumps(fields))
    for key, raw in (data or {}).items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(raw)
    return path


def peak_of(call: Any) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Chains of codecs ---------------------------------------------------------------------------------


ASTYPE = {"id": "astype", "encode_dtype": "i1", "decode_dtype": "c16"}
BOMBS: dict[str, dict[str, Any]] = {
    "astype": {"filters": [ASTYPE] * 3, "compressor": {"id": "zlib"}},
    "packbits": {"filters": [{"id": "packbits"}] * 4, "compressor": {"id": "zlib"}},
    "delta": {"filters": [{"id": "delta", "dtype": "f8", "astype": "i1"}] * 4,
              "compressor": {"id": "zlib"}},
    "one": {"filters": [{"id": "astype", "encode_dtype": "u1", "decode_dtype": "u1"}],
            "compressor": {"id": "zlib"}},
    "twice": {"filters": [{"id": "zlib"}] * 3, "compressor": {"id": "zlib"}},
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_no_step_of_a_chain_decodes_to_more_than_a_chunk(name: str, tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(32 << 20), 9)
    for _ in range(2 if name == "twice" else 0):
        bomb = zlib.compress(bomb, 9)
    size = 1 << 16
    path = store(tmp_path / "x.zarr", {"0": bomb}, shape=[size], chunks=[size], **BOMBS[name])

    def read() -> None:
        with pytest.raises(Corrupt, match="chunk 0 of array 'x'"):
            raconvert.read(path, "x", max_memory=16 << 20)

    assert peak_of(read) < 4 << 20


def test_a_chain_that_decodes_to_more_than_memory_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    shrinks = {"id": "astype", "encode_dtype": "c16", "decode_dtype": "f8"}
    widens = {"id": "astype", "encode_dtype": "i8", "decode_dtype": "i1"}
    path = store(tmp_path / "w.zarr", filters=[widens] * 8, shape=[1 << 16], chunks=[1 << 16])
    with pytest.raises(TooLarge, match="a chunk of array 'w' needs"):
        raconvert.read(path, "w")
    path = store(tmp_path / "c.zarr", filters=[shrinks])
    with pytest.raises(Corrupt, match="real numbers of complex"):
        raconvert.read(path, "c")


FILTERS = st.lists(
    st.sampled_from([
        numcodecs.Delta("<i2", "<i4"), numcodecs.Delta("<i4"), numcodecs.Shuffle(2),
        numcodecs.FixedScaleOffset(5, 2, "<f4", "<i2"), numcodecs.AsType("<i4", "<i2"),
        numcodecs.Zlib(), numcodecs.CRC32(), numcodecs.Fletcher32(), numcodecs.PackBits(),
        numcodecs.LZ4(), numcodecs.Zstd(), numcodecs.Quantize(2, "<f4", "<f2"),
    ]),
    max_size=4,
)  # fmt: skip


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(filters=FILTERS)
def test_chains_that_numcodecs_encodes_are_read_or_refused_as_it_decodes_them(
    filters: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What the bounds of a chain follow from is what the codecs really do."""
    encoded: Any = np.arange(48, dtype="<i2")
    try:
        for codec in filters:
            encoded = codec.encode(encoded)
        raw = bytes(np.ascontiguousarray(encoded).data)
        expected: Any = raw
        for codec in reversed(filters):
            expected = codec.decode(np.frombuffer(bytes(expected), "u1"))
        expected = np.frombuffer(bytes(expected), "<i2")
    except (ValueError, TypeError, RuntimeError, RuntimeWarning, zlib.error):
        return
    path = store(
        tmp_path_factory.mktemp("x") / "x.zarr", {"0": raw}, shape=[48], chunks=[48], dtype="<i2",
        filters=[codec.get_config() for codec in filters] or None,
    )  # fmt: skip
    if expected.size == 48:
        assert np.array_equal(raconvert.read(path, "x"), expected)
    else:
        with pytest.raises(RaconvertError):
            raconvert.read(path, "x")


def test_a_frame_without_its_size_that_is_too_short_is_refused(tmp_path: Path) -> None:
    """Its end is memory that nobody has written."""
    head = struct.pack("<I", 0xFD2FB528) + b"\x00\x58"
    frame = head + (1 | 47 << 3).to_bytes(3, "little") + bytes(range(47))
    said = {"compressor": {"id": "zstd"}}
    path = store(tmp_path / "x.zarr", {"0": frame}, shape=[47], chunks=[47], **said)
    assert raconvert.read(path, "x").tolist() == list(range(47))
    path = store(tmp_path / "y.zarr", {"0": frame}, shape=[48], chunks=[48], **said)
    with pytest.raises(Corrupt, match="chunk 0 of array 'y'"):
        raconvert.read(path, "y")


# Elements, types, fill values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "data_type",
    [
        {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2147483644}},
        {"name": "null_terminated_bytes", "configuration": {"length_bytes": 2147483647}},
        {"name": "raw_bytes", "configuration": {"length_bytes": 2147483647}},
        "r17179869176",
    ],
    ids=str,
)
def test_an_element_larger_than_memory_is_refused_before_there_is_one(
    data_type: Any, tmp_path: Path
) -> None:
    path = store(
        tmp_path / "x.zarr", data_type=data_type, fill_value="", codecs=[{"name": "bytes"}]
    )

    def read() -> None:
        with pytest.raises(RaconvertError):
            raconvert.read(path, "x", max_memory=50 << 20)

    assert peak_of(read) < 1 << 20


LONG = "i1," * 300_000 + "i1"


@pytest.mark.parametrize(
    "said",
    [
        {"filters": [{"id": "astype", "encode_dtype": LONG, "decode_dtype": "i1"}]},
        {"filters": [{"id": "delta", "dtype": "<" * 1000 + "i1"}]},
        {"dtype": LONG},
        {"dtype": [[f"f{n}", "i1"] for n in range(10_001)]},
        {"dtype": [["a", [[f"f{n}", "i1"] for n in range(6000)]]] * 2},
        {"dtype": [["a", LONG]]},
        {"dtype": [["a", "i1", [1] * 100]]},
        {"dtype": "a10"},
        {"dtype": "i4, (2,3)f8"},
        {"dtype": "O"},
        {"dtype": ""},
        {"codecs": ["bytes"], "data_type": {"name": "structured", "configuration": {
            "fields": [[f"f{n}", "int8"] for n in range(10_001)]}}},
    ],
    ids=lambda said: str(said)[:40],
)  # fmt: skip
def test_types_are_short_words_and_few_fields(said: dict[str, Any], tmp_path: Path) -> None:
    path = store(tmp_path / "x.zarr", {"0": b"ab"}, **said)

    def read() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RaconvertError):
                raconvert.read(path, "x")

    read()
    assert peak_of(read) < 16 << 20


# Shards -------------------------------------------------------------------------------------------


def sharded(chunk: int, codecs: list[Any], location: str = "start") -> dict[str, Any]:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [chunk], "codecs": codecs, "index_codecs": [little],
        "index_location": location,
    }}  # fmt: skip


def same_part(count: int, body: bytes) -> bytes:
    """A shard whose parts are all the same bytes."""
    index = np.zeros((count, 2), "<u8")
    index[:] = 16 * count, len(body)
    return index.tobytes() + body


def test_shards_inside_shards_whose_parts_overlap_are_refused(tmp_path: Path) -> None:
    count = 256
    codecs = [sharded(count**2, [sharded(count, [sharded(1, ["bytes"])])])]
    shard = same_part(count, same_part(count, same_part(count, b"\7")))
    path = store(tmp_path / "x.zarr", {"c/0": shard}, shape=[count**3], chunk_shape=[count**3],
                 codecs=codecs)  # fmt: skip
    with pytest.raises(TooLarge, match=r"again and again, at chunk c/0 of array 'x'"):
        raconvert.read(path, "x")
    with raconvert.open(path, "x") as array:
        assert array[5:7].tolist() == [7, 7]


def test_a_few_bytes_that_become_very_many_are_refused(tmp_path: Path) -> None:
    inner, count = 1 << 20, 4096
    body = numcodecs.Zstd().encode(bytes(inner))
    codecs = [sharded(inner, ["bytes", "zstd"])]
    path = store(tmp_path / "x.zarr", {"c/0": same_part(count, bytes(body))},
                 shape=[count * inner], chunk_shape=[count * inner], codecs=codecs)  # fmt: skip
    bundle = read_store(Source(str(path), limits=Limits(memory=64 << 20, expansion_ratio=1 << 10)))
    with pytest.raises(TooLarge, match=r"bytes stored.*max_memory"):
        next(bundle.arrays[0].data.stream(1 << 20))
    bundle = read_store(Source(str(path), limits=Limits(shard_passes=-1)))
    with pytest.raises(TooLarge, match="again and again"):
        _ = bundle.arrays[0].data[: 4 * inner]


def test_zarr_python_writes_shards_that_are_read(tmp_path: Path) -> None:
    values = np.arange(4096, dtype="<u2").reshape(64, 64)
    array = zarr.create_array(tmp_path / "x.zarr", shape=(64, 64), chunks=(4, 4), shards=(32, 32),
                              dtype="<u2", compressors=None)  # fmt: skip
    array[...] = values
    assert np.array_equal(raconvert.read(tmp_path / "x.zarr", "x"), values)


# Metadata that nobody means -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {"codecs": [{"name": "Sharding_Indexed"}]},
        {"codecs": [{"name": "numcodecs.sharding_indexed", "configuration": {
            "chunk_shape": [1], "codecs": ["bytes"], "index_codecs": ["bytes"]}}]},
        {"codecs": [{"name": "numcodecs.bytes"}]},
        {"codecs": [{"name": "ZSTD"}]},
        {"compressor": {"id": "sharding_indexed"}},
        {"compressor": {"id": "transpose"}},
        {"compressor": {"id": "bytes"}},
        {"codecs": [{"name": "numcodecs.pickle"}]},
    ],
    ids=str,
)  # fmt: skip
def test_codecs_are_known_by_their_exact_names(
    said: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store(tmp_path / "x.zarr", **said)
    assert main(["info", str(path)]) != 0
    assert "is encoded by" in capsys.readouterr().err


@pytest.mark.parametrize("order", [[1], ["1", 2], "1", {"1": 2}, [["1"]], [None], 7, ["2"], []])
def test_an_order_of_other_names_is_ignored(order: Any, tmp_path: Path) -> None:
    record = json.dumps({"raconvert": 2, "order": order})
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"raconvert": record}}
    store(tmp_path / "x.zarr" / "1", codecs=["bytes"])
    (tmp_path / "x.zarr" / "zarr.json").write_text(json.dumps(group))
    if isinstance(order, list):
        assert raconvert.open(tmp_path / "x.zarr").names == ["1"]
        return
    with pytest.raises(Corrupt):
        raconvert.open(tmp_path / "x.zarr")


@pytest.mark.parametrize("inner", [[], [1, 1]])
def test_chunks_in_shards_have_the_axes_of_the_array(
    inner: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = sharded(1, ["bytes"])
    shards["configuration"]["chunk_shape"] = inner
    path = store(tmp_path / "x.zarr", codecs=[shards])
    for verb in ("info", "digest"):
        assert main([verb, str(path)]) == Corrupt.exit_code
        assert "chunks have another number of axes than the array" in capsys.readouterr().err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.text(max_size=4)
    | st.sampled_from([1 << 62, 1 << 70, "bytes", "zlib", "NaN", "<i4", "c", "/", "regular"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["name", "id", "configuration", "order", "dtype", "endian",
                                       "chunk_shape", "codecs", "scale", "level"]), inner,
                      max_size=3),
    max_leaves=8,
)  # fmt: skip
SHARDED = {
    **VERSION_3,
    "codecs": [sharded(1, [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1}}])],
}
FILTERED = {
    **VERSION_2, "order": "F", "compressor": {"id": "blosc", "cname": "lz4"},
    "filters": [{"id": "delta", "dtype": "|u1"}, {"id": "fixedscaleoffset", "scale": 2, "offset": 1,
                "dtype": "<f4", "astype": "|u1"}, {"id": "lzma", "format": 3, "filters": [{"id": 3}]}],
}  # fmt: skip
DATED = {**VERSION_3, "data_type": {"name": "numpy.datetime64",
                                    "configuration": {"unit": "s", "scale_factor": 1}}}  # fmt: skip
STRUCTURED = {**VERSION_2, "dtype": [["a", "<i4"], ["b", "<f8", [2]]], "fill_value": "AAAA"}
TEXTS = {**VERSION_3, "data_type": "string", "codecs": ["vlen-utf8", "zstd"], "fill_value": "x"}


def places_in(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [(*above, key) for key, _ in inner]
    for key in found[:]:
        held = value[key[-1]]
        found += places_in(held, key) if isinstance(held, (dict, list)) else []
    return found


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), fields=st.sampled_from([
    VERSION_2, VERSION_3, SHARDED, FILTERED, DATED, STRUCTURED, TEXTS]))  # fmt: skip
def test_any_value_anywhere_in_the_metadata_is_an_error_of_ours(
    data: Any, fields: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    fields = json.loads(json.dumps(fields))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places_in(fields)))
        held: Any = fields
        for key in path[:-1]:
            held = held[key]
        if data.draw(st.booleans()) or isinstance(held, list):
            held[path[-1]] = data.draw(JSON)
        else:
            del held[path[-1]]
        if not places_in(fields):
            return
    folder = tmp_path_factory.mktemp("x") / "x.zarr"
    folder.mkdir()
    three = fields.get("zarr_format") == 3
    (folder / ("zarr.json" if three else ".zarray")).write_text(json.dumps(fields))
    (folder / ("c" if three else "0")).write_bytes(b"abcdefgh" * 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(RaconvertError):
            raconvert.info(folder)
            raconvert.read(folder, max_memory=1 << 22)


@pytest.mark.parametrize(
    "settings_of",
    [{"scale": 0}, {"scale": float("nan")}, {"offset": float("inf")}, {"scale": 10**400}],
    ids=str,
)
def test_numbers_that_no_filter_can_use(settings_of: dict[str, Any], tmp_path: Path) -> None:
    codec = {"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": "u1", **settings_of}
    path = store(tmp_path / "x.zarr", {"0": b"ab"}, filters=[codec])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Corrupt, match="fixedscaleoffset"):
            raconvert.read(path, "x")


def test_no_warning_reaches_the_terminal(tmp_path: Path) -> None:
    """A NaN has no place among integers: it is an error, not what the processor makes of it."""
    codec = {"id": "astype", "encode_dtype": "<f4", "decode_dtype": "|u1"}
    nan = np.array([np.nan, 1], "<f4").tobytes()
    path = store(tmp_path / "x.zarr", {"0": nan}, filters=[codec])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Corrupt, match="cannot be decoded: invalid value"):
            raconvert.read(path, "x")
        floats = {**codec, "decode_dtype": "<f2"}
        path = store(tmp_path / "y.zarr", {"0": np.array([1e30, np.nan], "<f4").tobytes()},
                     filters=[floats], dtype="<f2")  # fmt: skip
        assert str(raconvert.read(path, "y").tolist()) == "[inf, nan, 7.0, 7.0]"


# Texts --------------------------------------------------------------------------------------------


def test_texts_that_are_not_in_the_array_cost_nothing(tmp_path: Path) -> None:
    count = 10**6
    raw = struct.pack("<I", count) + bytes(4 * count)
    path = store(tmp_path / "x.zarr", {"c/0": bytes(numcodecs.Zstd().encode(raw))},
                 codecs=["vlen-utf8", "zstd"], shape=[2], chunk_shape=[count], data_type="string",
                 fill_value="")  # fmt: skip
    assert peak_of(lambda: raconvert.read(path, "x")) < 32 << 20
    assert raconvert.read(path, "x").tolist() == [b"", b""]


@pytest.mark.parametrize("version", [2, 3])
def test_texts_in_every_place_of_a_chunk(version: int, tmp_path: Path) -> None:
    texts = np.array([f"{n}" * (n % 5) for n in range(35)], object).reshape(5, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=version)
        group.create_array("s", shape=(5, 7), chunks=(2, 3), dtype=str)[...] = texts
    with raconvert.open(tmp_path / "x.zarr", "s") as array:
        expected = np.array([[text.encode() for text in row] for row in texts])
        assert np.array_equal(array[...], expected)
        for key in (np.s_[1:4, 2:5], np.s_[4, 6], np.s_[::2, ::-3], np.s_[3:, :1]):
            assert np.array_equal(array[key], expected[key]), key


# Chunks that are absent ---------------------------------------------------------------------------


def test_absent_chunks_are_counted_where_a_person_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    present = {str(n): b"ab" for n in range(37)}
    path = store(tmp_path / "x.zarr", {**present, "notes": b"", "99": b"", "0.0": b"", "01": b""},
                 shape=[80], chunks=[2], fill_value=0)  # fmt: skip
    line = "array 'x': 3 of 40 chunks absent: fill value 0"
    assert main(["info", str(path)]) == 0
    assert line in capsys.readouterr().out
    assert raconvert.info(path)["arrays"][0]["storage"]["missing_chunks"] == 3
    report = raconvert.convert(path, tmp_path / "x.ra")
    assert line in report.notes
    assert main([str(path), "-o", str(tmp_path / "y.npy")]) == 0
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(("depth", "counted"), [(1, True), (1, False), (2, False)])
def test_absent_chunks_of_shards_are_counted(
    depth: int, counted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that zarr leaves out: in shards, with them, and at the border of the array.

    When it is opened, where the indexes are few; else when the elements were read.
    """
    chunk, shard, shape = (5, 2), (10, 8), (25, 17)
    codecs: Any = {"shards": shard, "chunks": chunk}
    if depth == 2:
        inner = zarr.codecs.ShardingCodec(chunk_shape=chunk)
        outer = zarr.codecs.ShardingCodec(chunk_shape=(5, 4), codecs=[inner])
        codecs = {"chunks": shard, "serializer": outer, "compressors": None}
    rng = np.random.default_rng(depth)
    for number in range(5):
        path = tmp_path / f"{number}.zarr"
        array = zarr.create_array(path, shape=shape, dtype="i4", fill_value=7, **codecs)
        chosen = rng.random((5, 9)) < (0, 0.03, 0.3, 0.9, 1)[number]
        for row, column in np.argwhere(chosen):
            array[5 * row : 5 * row + 5, 2 * column : 2 * column + 2] = 1
        absent = chosen.size - int(chosen.sum())
        notes = [f"array '{number}': {absent} of 45 chunks absent: fill value 7"] * bool(absent)
        limits = Limits(shard_index_bytes=(16 << 20) * counted)
        monkeypatch.setattr("raconvert.files.limits.DEFAULT", limits)
        with raconvert.open(path) as bundle:
            told = bundle.arrays[0].storage.get("missing_chunks", 0)
            known = counted or absent == chosen.size
            assert (told, bundle.notes) == ((absent, notes) if known else (0, []))
        report = raconvert.convert(path, tmp_path / f"{number}.npy")
        assert report.notes == notes
        assert np.array_equal(np.load(tmp_path / f"{number}.npy"), array[...])


def test_an_index_that_is_damaged_is_no_reason_to_open_nothing(tmp_path: Path) -> None:
    """It is told when the elements are read."""
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(8,), shards=(8,), chunks=(2,), dtype="i4")[:4] = 1
    data = bytearray((path / "c" / "0").read_bytes())
    data[-1] ^= 1
    (path / "c" / "0").write_bytes(data)
    assert "missing_chunks" not in raconvert.info(path)["arrays"][0]["storage"]
    with pytest.raises(Corrupt, match="the index of the shard"):
        raconvert.read(path)


def test_many_absent_chunks_cost_no_work(tmp_path: Path) -> None:
    path = store(tmp_path / "x.zarr", {str(n): b"x" for n in range(0, 1000, 7)}, shape=[10**6],
                 chunks=[1])  # fmt: skip
    calls = 0
    real = Source.named

    def counted(self: Source, *args: Any) -> Source:
        nonlocal calls
        calls += 1
        return real(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "named", counted)
        assert peak_of(lambda: raconvert.read(path, "x")) < 8 << 20
    assert calls < 1000
    values = raconvert.read(path, "x")
    assert (values[:1000:7] == ord("x")).all()
    assert values.sum() == 143 * ord("x") + (10**6 - 143) * 7


def test_little_more_than_a_fill_value_is_refused_in_large_chunks_too(tmp_path: Path) -> None:
    chunk = 1 << 24
    path = store(tmp_path / "x.zarr", {"5": zlib.compress(bytes(chunk), 9)}, shape=[1 << 40],
                 chunks=[chunk], compressor={"id": "zlib"})  # fmt: skip
    with pytest.raises(TooLarge, match="little more than a fill value"):
        raconvert.convert(path, tmp_path / "x.ra", max_memory=32 << 20)
    assert not (tmp_path / "x.ra").exists()
    with raconvert.open(path, "x", max_memory=32 << 20) as array:
        assert array[5 * chunk - 1 : 5 * chunk + 1].tolist() == [7, 0]


@given(shape=st.lists(st.integers(0, 6), max_size=3), data=st.data())
@example(shape=[], data=None)
def test_keys_are_the_places_of_a_grid(shape: list[int], data: Any) -> None:
    for separator in "./":
        for default in (True, False):
            node = Node(
                3, tuple(shape), (2,) * len(shape), None, (), 0, separator, default, {}, None
            )
            counts = [range(-(-n // 2)) for n in shape]
            places = [tuple(place) for place in np.ndindex(*map(len, counts))]
            keys = [node.key(place) for place in places]
            assert [node.index_of(key) for key in keys] == places
            assert len(set(keys)) == len(keys)
            for odd in ("", "c", "00", "c/-1", "c/99/99/99", "0.0.0.9", "zarr.json", "é", "c/²"):
                assert odd in keys or node.index_of(odd) is None


# Overwriting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "stranger"),
    [
        ({"5": b"precious", "c/1": b"precious"}, "5"),
        ({"a/c/7": b"precious"}, "a/c/7"),
        ({"a/c/00": b"precious"}, "a/c/00"),
        ({"a/c/0.0": b"precious"}, "a/c/0.0"),
        ({"a/0": b"precious"}, "a/0"),
        ({"a/c/3/0": b"precious"}, "a/c/3/0"),
        ({"c/0": b"precious"}, "c"),
        ({"a/.zarray": b"{}", "b/zarr.json": b"no JSON", "b/c/0": b"precious"}, "b/c"),
        ({"g/zarr.json": b'{"zarr_format":3,"node_type":"group"}', "g/0": b"x"}, "g/0"),
    ],
    ids=str,
)
def test_overwriting_removes_nothing_but_arrays_that_are_there(
    change: dict[str, bytes], stranger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "a.npy", np.arange(9))
    path = tmp_path / "v.zarr"
    assert main([str(tmp_path / "a.npy"), "-o", str(path), "--out-opt", "chunks=2"]) == 0
    (path / "a" / "c" / "3").unlink()  # which makes it no other array
    store(path, change, codecs=["bytes"])
    (path / "zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    capsys.readouterr()
    assert main([str(tmp_path / "a.npy"), "-o", str(path), "--overwrite"]) == 5
    assert f"such as '{stranger}" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("options", [{}, {"shards": (4, 6)}, {"dimension_separator": "/"}], ids=str)
def test_what_zarr_python_wrote_may_be_replaced(
    version: int, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.zarr"
    if "dimension_separator" in options:
        options = {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    if version == 2 and "shards" in options:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="w", zarr_format=version)
        for name in ("a", "deep/b"):
            group.create_array(name, shape=(5, 7), chunks=(2, 3), dtype="i2", **options)[...] = 3
        group.create_array("scalar", shape=(), dtype="i2")[...] = 3
        zarr.consolidate_metadata(path)
    raconvert.write(path, {"z": np.arange(3)}, overwrite=True)
    assert raconvert.open(path).names == ["z"]
    assert raconvert.read(path, "z").tolist() == [0, 1, 2]


# One record of limits -----------------------------------------------------------------------------


def test_every_limit_is_asked(tmp_path: Path) -> None:
    """Each limit, lowered alone, refuses what it is about."""
    nested = {**VERSION_3, "attributes": {"a": [[[]]]}}
    many = {**VERSION_2, "dtype": [["a", "i1"], ["b", "i1"]]}
    chain = {**VERSION_2, "filters": [{"id": "shuffle", "elementsize": 1}] * 2}
    inside = {**VERSION_3, "codecs": [sharded(1, [sharded(1, ["bytes"])])]}
    for limits, fields in (
        (Limits(nesting_levels=2), nested),
        (Limits(structure_fields=1), many),
        (Limits(type_name_characters=1), many),
        (Limits(chained_codecs=1), chain),
        (Limits(shard_levels=1), inside),
    ):
        make = node_of_3 if fields["zarr_format"] == 3 else (
            lambda fields, path, limits: node_of_2(fields, {}, path, limits)
        )  # fmt: skip

        def parse(allowed: Limits, fields: Any = fields, make: Any = make) -> Node:
            return make(document(json.dumps(fields).encode(), "x", allowed), "x", allowed)

        parse(DEFAULT)
        with pytest.raises((Corrupt, Unsupported)):
            parse(limits)
    root = tmp_path / "x.zarr"
    root.mkdir()
    (root / "zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    store(root / "g", codecs=["bytes"])
    store(root / "h", {f"c/{n}": b"ab" for n in range(2)}, codecs=["bytes"])
    assert [a.name for a in read_store(Source(str(root))).arrays] == ["g", "h"]
    for limits in (
        Limits(nodes=1),
        Limits(group_levels=-1),
        Limits(hierarchy_bytes=3),
        Limits(document_bytes=9),
    ):
        with pytest.raises((Corrupt, Unsupported)):
            read_store(Source(str(root), limits=limits))
    bundle = read_store(Source(str(root), limits=Limits(counted_files=1)))
    assert [array.storage.get("missing_chunks") for array in bundle.arrays] == [2, None]
    with pytest.raises(Unsafe):
        read_store(Source(str(root), limits=Limits(memory=0))).arrays[1].data[...]


def test_info_decodes_no_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = bytes(
        numcodecs.Zstd().encode(
            struct.pack("<III", 2, 1, 3)[:-4] + b"a" + struct.pack("<I", 3) + b"bcd"
        )
    )
    path = store(tmp_path / "x.zarr", {"c/0": raw}, codecs=["vlen-utf8", "zstd"], shape=[2],
                 data_type="string", fill_value="")  # fmt: skip
    read: list[str] = []
    real = Source.read_at

    def noted(self: Source, offset: int, nbytes: int) -> bytes:
        read.append(Path(self.path).name)
        return real(self, offset, nbytes)

    monkeypatch.setattr(Source, "read_at", noted)
    assert main(["info", str(path)]) == 0
    assert "text of variable length   shape (2,)" in capsys.readouterr().out
    assert main(["info", "--json", str(path)]) == 0
    facts = json.loads(capsys.readouterr().out)["arrays"][0]
    assert (facts["type"], facts["nbytes"], facts["element_bytes"]) == (
        "text of variable length", None, None,
    )  # fmt: skip
    assert main(["info", "--short", str(path)]) == 0
    assert set(read) <= {"zarr.json"}
    with raconvert.open(path) as bundle:
        assert bundle["x"].pending
        assert bundle["x"].element.descr == "|S3"
        assert not bundle["x"].pending
        again = pickle.loads(pickle.dumps(bundle["x"]))
    assert again[...].tolist() == [b"a", b"bcd"]


def test_texts_that_cannot_be_read_are_found_when_they_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "x.zarr"
    root.mkdir()
    (root / "zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    store(root / "good", {"c/0": b"ab"}, codecs=["bytes"])
    store(
        root / "bad", {"c/0": b"damaged"}, codecs=["vlen-utf8"], data_type="string", fill_value=""
    )
    assert main(["info", str(root)]) == 0
    with pytest.raises(RaconvertError, match="'bad'|allow"):
        raconvert.convert(root, tmp_path / "x.h5")
    raconvert.convert(root, tmp_path / "x.h5", allow=["arrays"])
    assert raconvert.open(tmp_path / "x.h5").names == ["good"]
    assert raconvert.read(root, "good").tolist() == [97, 98, 7, 7]
    with pytest.raises(Corrupt, match="chunk c/0 of array 'bad'"):
        raconvert.read(root, "bad")
