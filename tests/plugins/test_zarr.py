"""What is special to Zarr: zarr-python, tensorstore, xarray and chunks decoded by hand agree."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tracemalloc
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorstore
import xarray
import zarr
import zarr.codecs
from cases import every
from pairs import NAME, Pairs
from raconvert.plugins.zarr import codecs

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Axis, Metadata
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
from raconvert.files.source import Source

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
VALUES = np.arange(60).reshape(5, 12)
DTYPES = ("?", "i1", "<i4", ">i8", "u2", "<f2", ">f4", "f8", "c8", ">c16", "S3", "<U3", ">U3",
          "M8[ns]", "m8[25s]", "V5")  # fmt: skip


def made(path: Path, version: int = 3, **arrays: dict[str, Any]) -> Any:
    """A group written by zarr-python: name -> what is said of the array, its values included."""
    group = zarr.open_group(path, mode="w", zarr_format=version)
    for name, said in arrays.items():
        values = said.pop("values", VALUES)
        more = {"chunks": (2, 5)[: values.ndim], "dtype": values.dtype, **said}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group.create_array(name, shape=values.shape, **more)[...] = values
    return group


def store_of(path: Path, name: str) -> Any:
    """The array of a group as tensorstore reads it."""
    version = "zarr3" if (path / name / "zarr.json").exists() else "zarr"
    kvstore = {"driver": "file", "path": str(path / name)}
    return tensorstore.open({"driver": version, "kvstore": kvstore}).result().read().result()


def load(path: Path) -> np.ndarray:
    """Read with zarr-python; bfloat16, which it does not have, with tensorstore."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fields = json.loads((path / NAME / "zarr.json").read_text())
        if fields["data_type"] == "bfloat16":
            return np.asarray(store_of(path, NAME))
        values = np.asarray(zarr.open_group(path, mode="r")[NAME][...])
        order = fields["codecs"][0].get("configuration", {}).get("endian")
        big = order == "big" and values.dtype.kind == "U"  # which zarr-python gives as little
        return values.astype(values.dtype.newbyteorder(">")) if big else values


def save(path: Path, values: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="w")
        chunks = tuple(max(1, n) for n in values.shape)
        group.create_array(NAME, shape=values.shape, chunks=chunks, dtype=values.dtype)
        group[NAME][...] = values


IN_PAIRS = (
    Pairs(
        name="zarr",
        suffix=".zarr",
        read=load,
        write=save,
        can_write=lambda values: (
            values.dtype.isbuiltin != 2
            and values.dtype.names is None
            and (values.dtype.kind != "U" or values.dtype.byteorder != ">")
        ),
        order="C",
        guest=True,
        keeps=True,
        types="""
            = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
              complex64 complex128 bfloat16 int16_big uint16_big int64_big float32_big
              complex128_big bytes text text_big datetime seconds timedelta void
            x structured
        """,
        shapes="= *",
        most_axes={"float32": 64},
    ),
)


def agree(expected: np.ndarray, got: Any) -> None:
    values = np.asarray(got)
    assert values.dtype.newbyteorder("<") == expected.dtype.newbyteorder("<")
    assert np.array_equal(values, expected)
    if values.ndim == 2:
        assert np.array_equal(got[1:4, ::-2], expected[1:4, ::-2])
        assert np.array_equal(got[-1, 3:3], expected[-1, 3:3])


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_is_read_as_zarr_python_reads_it(version: int, tmp_path: Path) -> None:
    said = {f"a{n}": {"values": VALUES.astype(code) if code != "V5" else
                      np.frombuffer(bytes(range(120)) * 5, "V5").reshape(10, 12)}
            for n, code in enumerate(DTYPES)}  # fmt: skip
    group = made(tmp_path / "x.zarr", version, **said)
    with raconvert.open(tmp_path / "x.zarr") as bundle:
        assert bundle.names == sorted(said)
        for name, array in bundle.items():
            agree(group[name][...], array)


CODECS: dict[str, dict[str, Any]] = {
    "raw": {"compressors": None},
    "gzip": {"compressors": [zarr.codecs.GzipCodec(level=1)]},
    "zstd": {"compressors": [zarr.codecs.ZstdCodec(level=3, checksum=True)]},
    "blosc": {"compressors": [zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle")]},
    "several": {"compressors": [zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()]},
    "big": {"serializer": zarr.codecs.BytesCodec(endian="big")},
    "turned": {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    "shards": {"chunks": (1, 3), "shards": (2, 6)},
    "shards_in_front": {"serializer": zarr.codecs.ShardingCodec(
        chunk_shape=(1, 5), index_location="start",
        codecs=[zarr.codecs.BytesCodec(), zarr.codecs.GzipCodec()]), "compressors": None},
    "dots": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "names": {"dimension_names": ["y", None], "attributes": {"units": "m", "odd": [1, None]}},
}  # fmt: skip


def test_every_codec_of_version_3(tmp_path: Path) -> None:
    group = made(tmp_path / "x.zarr", **{name: dict(said) for name, said in CODECS.items()})
    with raconvert.open(tmp_path / "x.zarr") as bundle:
        assert sorted(bundle.names) == sorted(CODECS)
        for name, array in bundle.items():
            agree(group[name][...], array)
        assert bundle["big"].element.order == ">"
        assert bundle["shards"].storage["shards"] == [2, 6]
        names = bundle["names"].meta
        assert [axis.name for axis in names.axes] == ["y", None]
        assert (names.units, names.attributes) == ("m", {"odd": [1, None]})


def test_every_filter_of_version_2(tmp_path: Path) -> None:
    import numcodecs as nc

    filters: dict[str, list[Any]] = {
        "delta": [nc.Delta("<i8")], "offset": [nc.FixedScaleOffset(5, 2, "<i8", "<i4")],
        "shuffle": [nc.Shuffle(8)], "astype": [nc.AsType("<f8", "<i8")],
        "crc": [nc.CRC32()], "adler": [nc.Adler32()], "fletcher": [nc.Fletcher32()],
        "pack": [nc.PackBits()], "quantize": [nc.Quantize(2, "<f8")], "round": [nc.BitRound(5)],
    }  # fmt: skip
    packers = [nc.Zlib(), nc.BZ2(), nc.LZMA(), nc.LZ4(), nc.Zstd(), nc.Blosc(), nc.GZip(), None]
    said = {}
    for n, (name, chosen) in enumerate(filters.items()):
        kind = {"pack": "?", "quantize": "<f8", "round": "<f8"}.get(name, "<i8")
        said[name] = {"values": VALUES.astype(kind), "filters": chosen,
                      "compressors": packers[n % len(packers)],
                      "order": "CF"[n % 2]}  # fmt: skip
    group = made(tmp_path / "x.zarr", 2, **said)
    with raconvert.open(tmp_path / "x.zarr") as bundle:
        for name, array in bundle.items():
            agree(group[name][...], array)


def test_texts_of_variable_length(tmp_path: Path) -> None:
    texts = np.array(["a", "日本", "", "longest"])
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        group = zarr.open_group(path, mode="w", zarr_format=version)
        group.create_array("s", shape=(5,), chunks=(2,), dtype=str)[:4] = texts
        with raconvert.open(path) as bundle:
            array = bundle["s"]
            assert array.meta.encoding == "utf-8"
            found = [text.decode() for text in np.asarray(array)]
            assert found == [*texts, ""]
            assert array[1:3].tolist() == ["日本".encode(), b""]


def test_tensorstore_writes_what_is_read(tmp_path: Path) -> None:
    import ml_dtypes

    values = VALUES.astype(ml_dtypes.bfloat16)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "x.zarr")},
            "metadata": {"shape": values.shape, "data_type": "bfloat16", "dimension_names": ["a", "b"],
                         "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
                         "codecs": [{"name": "sharding_indexed", "configuration": {
                             "chunk_shape": [2, 3], "codecs": [{"name": "bytes", "configuration":
                                                                {"endian": "big"}}, "zstd"]}}]},
            "create": True}  # fmt: skip
    tensorstore.open(spec).result()[...] = values
    with raconvert.open(tmp_path / "x.zarr", "x") as array:
        assert array.element[:3] == ("bfloat", 2, ">")
        assert [axis.name for axis in array.meta.axes] == ["a", "b"]
        assert np.array_equal(np.asarray(array).astype("f8"), VALUES)


def by_hand(folder: Path, **said: Any) -> Path:
    """An array in version 2 written as its specification says, with json and zlib."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"zarr_format": 2, "shape": [5, 12], "chunks": [2, 5], "dtype": "<i2", "order": "C",
              "compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": -1, **said}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(fields))
    padded = np.full((6, 15), 99, "<i2")
    padded[:5, :12] = VALUES
    for row in range(3):
        for column in range(3):
            chunk = padded[2 * row : 2 * row + 2, 5 * column : 5 * column + 5]
            (folder / f"{row}.{column}").write_bytes(zlib.compress(chunk.tobytes()))
    return folder


def test_chunks_written_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = by_hand(tmp_path / "x.zarr")
    assert np.array_equal(raconvert.read(path, "x"), VALUES)
    (path / "1.1").unlink()
    expected = VALUES.copy()
    expected[2:4, 5:10] = -1
    assert np.array_equal(raconvert.read(path, "x"), expected)
    assert main(["info", str(path)]) == 0
    assert "array 'x': 1 of 9 chunks absent: fill value -1" in capsys.readouterr().out


@pytest.mark.parametrize("fill", ["-1", "7", "0"])
def test_a_fill_value_that_is_a_number_as_text(tmp_path: Path, fill: str) -> None:
    """jzarr, with which bioformats2raw writes, has it so, and zarr-python reads it."""
    path = by_hand(tmp_path / "x.zarr", fill_value=fill)
    (path / "1.1").unlink()
    expected = zarr.open(path, mode="r")[...]
    assert expected[2, 5] == int(fill)
    assert np.array_equal(raconvert.read(path, "x"), expected)


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_fill_value_is_kept_in_both_versions(version: str, tmp_path: Path) -> None:
    path = by_hand(tmp_path / "x.zarr", fill_value=7)

    raconvert.convert(path, tmp_path / "y.zarr", out_opts={"format": version})

    with raconvert.open(tmp_path / "y.zarr") as bundle:
        assert bundle.arrays[0].meta.formats == {"zarr": {"fill_value": 7}}


def test_gzip_members_of_a_chunk_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes behind a member are copied by zlib: those of many members are their square."""
    copied = 0

    class Counting:
        def __init__(self, wbits: int) -> None:
            self.real = zlib.decompressobj(wbits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def decompress(self, data: Any, most: int) -> bytes:
            nonlocal copied
            piece = self.real.decompress(data, most)
            copied += len(self.real.unused_data)
            return piece

    values = np.arange(4000, dtype="<i2")
    raw = values.tobytes()
    parts = [raw[:2], *[b""] * 2000, raw[2:5000], raw[5000:]]
    data = b"".join(gzip.compress(part) for part in parts)
    by_hand(tmp_path / "x.zarr", shape=[4000], chunks=[4000], compressor={"id": "gzip", "level": 1})
    (tmp_path / "x.zarr" / "0").write_bytes(data)
    fake = SimpleNamespace(**{**vars(zlib), "decompressobj": Counting})
    monkeypatch.setattr(codecs, "zlib", fake)

    assert np.array_equal(raconvert.read(tmp_path / "x.zarr", "x"), values)
    assert 0 < copied < 40 * len(data)


@pytest.mark.parametrize("damage", ["cut", "longer", "bits", "empty", "shorter"])
def test_a_damaged_chunk_is_named(damage: str, tmp_path: Path) -> None:
    path = by_hand(tmp_path / "x.zarr")
    whole = (path / "1.2").read_bytes()
    (path / "1.2").write_bytes({
        "cut": whole[:-3], "empty": b"", "bits": whole[:9] + b"\xff\xff" + whole[11:],
        "longer": zlib.compress(bytes(22)), "shorter": zlib.compress(bytes(18)),
    }[damage])  # fmt: skip
    with raconvert.open(path, "x") as array:
        assert np.array_equal(array[:2], VALUES[:2])  # which needs other chunks
        with pytest.raises(Corrupt, match=r"chunk 1\.2 of array 'x'"):
            array[2:4]
    with pytest.raises(Corrupt, match=r"chunk 1\.2 of array 'x'"):
        raconvert.convert(path, tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize("shards", [False, True])
def test_a_region_reads_its_chunks_only(
    shards: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: dict[str, Any] = {"chunks": (10, 10), "compressors": None}
    values = np.arange(10_000, dtype="i4").reshape(100, 100)
    made(
        tmp_path / "x.zarr",
        v={"values": values, **said, **({"shards": (50, 50)} if shards else {})},
    )
    bytes_read: list[int] = []
    real = Source.read_at

    def counted(self: Source, offset: int, nbytes: int) -> bytes:
        found = real(self, offset, nbytes)
        if not self.path.endswith("json"):
            bytes_read.append(len(found))
        return found

    with raconvert.open(tmp_path / "x.zarr", "v") as array:
        monkeypatch.setattr(Source, "read_at", counted)
        assert np.array_equal(array[15:25, 33], values[15:25, 33])
    index = 25 * 16 + 4 if shards else 0
    assert sum(bytes_read) == 2 * 400 + index, bytes_read


BOMB = zlib.compress(bytes(64 << 20), 9)


@every(
    "said, error",
    [
        ({"shape": [1 << 62, 1 << 62]}, Corrupt),
        ({"shape": [5, -12]}, Corrupt),
        ({"shape": [5, 12.0]}, Corrupt),
        ({"shape": [True, 12]}, Corrupt),
        ({"chunks": [0, 5]}, Corrupt),
        ({"chunks": [2]}, Corrupt),
        ({"chunks": [1 << 40, 1 << 20]}, RaconvertError),
        ({"dtype": "|O"}, Unsafe),
        ({"dtype": [["a", "|O"]]}, RaconvertError),
        ({"dtype": "<f99"}, Corrupt),
        ({"dtype": [["a"]]}, Corrupt),
        ({"dtype": 7}, Corrupt),
        ({"compressor": {"id": "pickle"}}, Unsafe),
        ({"filters": [{"id": "json2"}]}, Unsafe),
        ({"compressor": {"id": "nobody_knows"}}, Unsupported),
        ({"filters": [{"id": "shuffle", "elementsize": 0}]}, Corrupt),
        ({"filters": [{"id": "delta", "dtype": "O"}]}, Corrupt),
        ({"filters": [{"id": "delta"}]}, Corrupt),
        ({"filters": [{"id": "zlib"}] * 17}, Corrupt),
        ({"fill_value": "x"}, Corrupt),
        ({"fill_value": 1e99}, Corrupt),
        ({"order": "X"}, Corrupt),
        ({"dimension_separator": "/../"}, Corrupt),
        ({"zarr_format": 9}, Unsupported),
        ({"fill_value": json.loads("[" * 90 + "]" * 90)}, Corrupt),
    ],
    ids=str,
)  # fmt: skip
def test_hostile_metadata_is_refused(
    said: dict[str, Any], error: type[RaconvertError], tmp_path: Path
) -> None:
    path = by_hand(tmp_path / "x.zarr", **said)
    tracemalloc.start()
    try:
        with pytest.raises(error, match="x.zarr"):
            raconvert.read(path, "x", max_memory=64 << 20)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [[1 << 40], [1 << 20, 1 << 20]])
def test_very_much_of_a_fill_value_is_refused(shape: list[int], tmp_path: Path) -> None:
    path = by_hand(tmp_path / "x.zarr", shape=shape, chunks=[1 << 10] * len(shape))
    with pytest.raises(TooLarge, match="fill value"):
        raconvert.convert(path, tmp_path / "x.npy", max_memory=64 << 20)
    assert not (tmp_path / "x.npy").exists()
    path = by_hand(tmp_path / "y.zarr", shape=[1 << 24], chunks=[1])
    # Its chunks are listed: those that are absent cost nothing but the values of the result.
    assert (raconvert.read(path, "y", max_memory=64 << 20) == -1).all()


def test_a_chunk_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    path = by_hand(tmp_path / "x.zarr", chunks=[5, 12])
    (path / "0.0").write_bytes(BOMB[: 16 * 120])
    tracemalloc.start()
    with pytest.raises(Corrupt, match=r"chunk 0\.0"):
        raconvert.read(path, "x")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    import numcodecs

    for name in ("zstd", "blosc", "lz4", "bz2", "gzip", "lzma"):
        path = by_hand(tmp_path / f"{name}.zarr", chunks=[5, 12], compressor={"id": name})
        codec = numcodecs.get_codec({"id": name})
        (path / "0.0").write_bytes(codec.encode(np.zeros(60, "<i2")))
        assert not raconvert.read(path, name).any()
        (path / "0.0").write_bytes(codec.encode(np.zeros(100_000, "<i2")))
        with pytest.raises(Corrupt, match=r"chunk 0\.0.*"):
            raconvert.read(path, name)


def test_nothing_leads_out_of_the_folder(tmp_path: Path) -> None:
    secret = by_hand(tmp_path / "secret")
    path = by_hand(tmp_path / "x.zarr")
    (path / "0.0").unlink()
    (path / "0.0").symlink_to(secret / "0.0")
    with pytest.raises(Unsafe, match="outside"):
        raconvert.read(path, "x")
    assert np.array_equal(raconvert.read(path, "x", trust=["external"]), VALUES)
    (path / "0.0").unlink()
    os.mkfifo(path / "0.0")
    with pytest.raises(Unsafe, match="regular"):
        raconvert.read(path, "x")

    group = tmp_path / "g.zarr"
    by_hand(group / "a")
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    (group / "b").symlink_to(secret)
    (group / "loop").symlink_to(group)
    with raconvert.open(group) as bundle:
        assert np.array_equal(np.asarray(bundle["a"]), VALUES)
        assert {array.name for array in bundle.unreadable} == {"b", "loop"}
    (group / ".zgroup").unlink()
    (group / ".zgroup").symlink_to(tmp_path / "x.zarr" / ".zarray")
    with pytest.raises(Unsafe):
        raconvert.read(group)


def test_hierarchies_become_bundles(tmp_path: Path) -> None:
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        root = zarr.open_group(path, mode="w", zarr_format=version, attributes={"title": "T"})
        root.create_group("deep/er", attributes={"n": 1})
        root.create_array("deep/er/x", shape=(2,), dtype="i2")[...] = [1, 2]
        root.create_array("b", data=np.array(7.5))
        root.create_group("empty")
        with raconvert.open(path) as bundle:
            assert bundle.names == ["b", "deep/er/x"]
            assert bundle.attributes == {"title": "T"}
            assert bundle.groups == {"deep/er": {"n": 1}, "empty": {}}
            assert np.asarray(bundle["b"]) == 7.5
            assert bundle["deep/er"]["x"][...].tolist() == [1, 2]
        # An array alone, by its folder or by a file in it.
        name = "zarr.json" if version == 3 else ".zarray"
        for word in (path / "deep/er/x", path / "deep/er/x" / name):
            assert raconvert.read(word, "x").tolist() == [1, 2]
        raconvert.convert(path, tmp_path / f"{version}.h5")
        assert raconvert.read(f"{tmp_path / f'{version}.h5'}#deep/er/x").tolist() == [1, 2]
    broken = tmp_path / "3.zarr" / "deep/er/x/zarr.json"
    broken.write_text("{")
    with raconvert.open(tmp_path / "3.zarr") as bundle:
        assert [array.name for array in bundle.unreadable] == ["deep/er/x"]
    with pytest.raises(RaconvertError, match="zarr.json"):
        raconvert.convert(tmp_path / "3.zarr", tmp_path / "y.npz")
    shutil.rmtree(tmp_path / "3.zarr" / "b")
    with pytest.raises(RaconvertError):
        raconvert.read(tmp_path / "3.zarr")


# Writing ------------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "usual": {}, "raw": {"compress": "none"}, "gzip": {"compress": "gzip:1"},
    "blosc": {"compress": "blosc:lz4:3"}, "zstd": {"compress": "zstd:7"},
    "chunks": {"chunks": "2,5"}, "whole": {"chunks": "none", "checksum": "yes"},
    "shards": {"chunks": "2,3", "shards": "4,6", "checksum": "yes"},
    "shards_of_rows": {"shards": "4,12"},
    "big": {"endian": "big"}, "two": {"format": "2"},
    "two_in_chunks": {"format": "2", "chunks": "2,5", "compress": "blosc", "endian": "big"},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_other_programs_read_what_is_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    arrays = {f"a{code.strip('<>?')}{code[0] == '>'}": VALUES.astype(code)
              for code in ("?", "i1", "<u2", ">i4", "<f4", ">f8", "<c8", "S3", "<U3", "M8[ns]")}  # fmt: skip
    np.savez(tmp_path / "x.npz", **arrays)
    raconvert.convert(tmp_path / "x.npz", path, out_opts=OPTIONS[name], strict=True)
    group = zarr.open_group(path, mode="r")
    for key, values in arrays.items():
        assert np.array_equal(group[key][...], values), key
        if values.dtype.kind in "biufc":
            assert np.array_equal(store_of(path, key), values), key
    with raconvert.open(path) as bundle:
        assert bundle.names == list(arrays)
        for key, array in bundle.items():
            agree(arrays[key], array)
    if name == "usual":
        with xarray.open_zarr(path) as dataset:
            for key, values in arrays.items():
                assert np.array_equal(dataset[key].values, values)


def test_a_chunk_decoded_by_hand(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.zarr", VALUES.astype(">i2"),
                    out_opts={"chunks": "2,5", "compress": "gzip", "endian": "auto"})  # fmt: skip
    (name,) = (p.name for p in (tmp_path / "x.zarr").iterdir() if p.is_dir())
    fields = json.loads((tmp_path / "x.zarr" / name / "zarr.json").read_text())
    assert fields["chunk_grid"]["configuration"]["chunk_shape"] == [2, 5]
    assert fields["codecs"][0] == {"name": "bytes", "configuration": {"endian": "big"}}
    raw = (tmp_path / "x.zarr" / name / "c/1/2").read_bytes()
    chunk = np.frombuffer(zlib.decompress(raw, 31), ">i2").reshape(2, 5)
    assert np.array_equal(chunk[:, :2], VALUES[2:4, 10:12])


def test_byte_order_is_kept_both_ways(tmp_path: Path) -> None:
    for version in (2, 3):
        group = made(tmp_path / "a.zarr", version, x={"values": VALUES.astype(">f4"), **(
            {"serializer": zarr.codecs.BytesCodec(endian="big")} if version == 3 else {})})  # fmt: skip
        raconvert.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", overwrite=True,
                          out_opts={"format": str(version)}, strict=True)  # fmt: skip
        with raconvert.open(tmp_path / "b.zarr") as bundle:
            assert bundle["x"].element.order == ">"
        assert np.array_equal(zarr.open_group(tmp_path / "b.zarr", mode="r")["x"], group["x"][...])


def test_structures_go_into_the_version_that_holds_them(tmp_path: Path) -> None:
    plain = np.zeros(3, [("a", "<i4"), ("b", "<f8")])
    plain["b"] = [1, np.nan, 3]
    nested = np.zeros(3, [("a", ">i4"), ("b", "<f8", (2,)), ("c", [("d", "S2")])])
    nested["b"] = np.arange(6).reshape(3, 2)
    np.save(tmp_path / "p.npy", plain)
    np.save(tmp_path / "n.npy", nested)
    for version in ("2", "3"):
        raconvert.convert(tmp_path / "p.npy", tmp_path / f"p{version}.zarr",
                          out_opts={"format": version}, strict=True)  # fmt: skip
        found = zarr.open_group(tmp_path / f"p{version}.zarr", mode="r")["p"][...]
        assert found.tobytes() == plain.tobytes()
        assert raconvert.read(tmp_path / f"p{version}.zarr", "p").tobytes() == plain.tobytes()
    with pytest.raises(WouldLose, match='"format": "2"'):
        raconvert.convert(tmp_path / "n.npy", tmp_path / "n.zarr")
    raconvert.convert(
        tmp_path / "n.npy", tmp_path / "n.zarr", out_opts={"format": "2"}, strict=True
    )
    assert raconvert.read(tmp_path / "n.zarr", "n").tobytes() == nested.tobytes()


def test_metadata_comes_back(tmp_path: Path) -> None:
    meta = Metadata(
        description="d", units="K", attributes={"n": [1, None], "units": "own", "b": b"\0", "f": np.inf},
        axes=[Axis(name="time", spacing=0.5, units="s"), Axis(labels=["a", "b", "c"])],
        formats={"other": {"key": 1}},
    )  # fmt: skip
    first = Array(np.arange(6.0).reshape(2, 3), name="z/first").replace(meta=meta)
    second = Array(np.arange(3), name="CON")
    bundle = Bundle([first, second], attributes={"title": "T", "odd": b"x"},
                    groups={"empty": {}, "z": {"g": 1, "__h": 2}, "a.": {}})  # fmt: skip
    for version in ("3", "2"):
        path = tmp_path / f"{version}.zarr"
        raconvert.write(path, bundle, out_opts={"format": version})
        with raconvert.open(path) as got:
            assert got.names == ["z/first", "CON"]
            assert got.attributes == bundle.attributes
            assert got.groups == bundle.groups
            assert got["z/first"].meta.to_dict() == meta.to_dict()
            assert not got["CON"].meta
        group = zarr.open_group(path, mode="r")
        assert group.attrs["title"] == "T"
        attributes = dict(group["z/first"].attrs)
        assert (attributes["units"], attributes["long_name"]) == ("K", "d")
        with xarray.open_zarr(path, group="z") as dataset:
            assert dataset["first"].dims == ("time", "first_dim_1")


def test_a_hierarchy_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    np.save(tmp_path / "b.npy", -VALUES)
    path = tmp_path / "x.zarr"
    source = str(tmp_path / "a.npy")
    assert main([source, "-o", str(path), "--out-opt", "chunks=2,2"]) == 0
    assert main([str(tmp_path / "b.npy"), "-o", str(path)]) == 5
    assert np.array_equal(raconvert.read(path, "a"), VALUES)
    assert main([str(tmp_path / "b.npy"), "-o", f"{path}/", "--overwrite"]) == 0
    assert {p.name for p in path.iterdir()} == {"b", "zarr.json"}
    assert np.array_equal(raconvert.read(path, "b"), -VALUES)
    (path / "b" / "notes.txt").write_text("mine")
    assert main([source, "-o", str(path), "--overwrite"]) == 5
    assert (path / "b" / "notes.txt").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "1").write_text("mine")
    assert main([source, "-o", str(tmp_path / "full"), "--to", "zarr", "--overwrite"]) == 5
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_memory_is_bounded_by_chunks(tmp_path: Path) -> None:
    values = np.arange(6_000_000, dtype="i4").reshape(2000, 3000)
    np.save(tmp_path / "a.npy", values)
    for chunks in ("auto", "100,3000", "500,500"):
        tracemalloc.start()
        raconvert.convert(tmp_path / "a.npy", tmp_path / "x.zarr", overwrite=True,
                          max_memory=4 << 20, out_opts={"chunks": chunks})  # fmt: skip
        raconvert.convert(
            tmp_path / "x.zarr", tmp_path / "b.npy", overwrite=True, max_memory=4 << 20
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 << 20, (chunks, peak)  # of 24 MB
        assert np.array_equal(np.load(tmp_path / "b.npy"), values)


@pytest.mark.parametrize(
    "options",
    [{"compress": "zip"}, {"compress": "gzip:10"}, {"compress": "blosc:none"}, {"chunks": "0"},
     {"shards": "x"}, {"format": "2", "shards": "2,2"}, {"chunk": "auto"}],
    ids=str,
)  # fmt: skip
def test_options_that_are_not_understood(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        raconvert.write(tmp_path / "x.zarr", VALUES, out_opts=options)
    assert not list(tmp_path.iterdir())


def test_shards_must_hold_whole_chunks(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="multiples"):
        raconvert.write(tmp_path / "x.zarr", VALUES, out_opts={"shards": "4,6", "chunks": "3,2"})
    with pytest.raises(WouldLose, match="axes"):
        raconvert.write(tmp_path / "x.zarr", VALUES, out_opts={"chunks": "3"})
