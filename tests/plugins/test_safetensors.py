"""What is special to safetensors: the library is the oracle, in both directions."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pairs import NAME, Pairs, little
from safetensors import SafetensorError, safe_open
from safetensors import numpy as library

import raconvert
from raconvert.errors import Corrupt, RaconvertError, WouldLose

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "learning"

NUMBERS = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8")


def load(path: Path) -> dict[str, np.ndarray]:
    """Read with the library; bfloat16, which it gives to PyTorch only, from its bytes."""
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    if any(entry.get("dtype") == "BF16" for entry in header.values()):
        found = {}
        for name, tensor in library.deserialize(raw):
            kind = {"BF16": ml_dtypes.bfloat16}.get(tensor["dtype"], "u1")
            found[name] = np.frombuffer(tensor["data"], kind).reshape(tensor["shape"])
        return found
    return library.load(raw)


def save(path: Path, values: np.ndarray) -> None:
    """Write with the library, which takes what lies in C order only."""
    path.write_bytes(library.save({NAME: np.ascontiguousarray(little(values))
                                   .reshape(values.shape)}))  # fmt: skip


IN_PAIRS = (
    Pairs(
        name="safetensors",
        suffix=".safetensors",
        read=lambda path: load(path)[NAME],
        write=save,
        can_write=lambda values: values.dtype.kind in "biufc" and values.dtype.itemsize < 16
        and values.dtype.isbuiltin != 2,
        order="C",
        guest=True,
        keeps_file=True,
        types="""
            = bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
              complex64 bfloat16 int16_big uint16_big int64_big float32_big
            x *
        """,
        shapes="= *",
    ),
)  # fmt: skip


def test_many_tensors_both_ways(tmp_path: Path) -> None:
    """Names, order, types and metadata; the library writes sorted, we in the order of the arrays."""
    rng = np.random.default_rng(3)
    tensors = {f"layer.{n}/{code}": (rng.random((n % 3, 4, 2)) * 9).astype(code)
               for n, code in enumerate(NUMBERS)} | {"scalar": np.array(2.5)}  # fmt: skip
    (tmp_path / "a.safetensors").write_bytes(library.save(tensors, {"format": "np", "é": "日本"}))
    raconvert.convert(tmp_path / "a.safetensors", tmp_path / "b.npz")
    with raconvert.open(tmp_path / "a.safetensors") as bundle:
        assert bundle.attributes == {"format": "np", "é": "日本"}
        assert sorted(bundle.names) == sorted(tensors)
    with np.load(tmp_path / "b.npz") as got:
        for name, values in tensors.items():
            assert got[name].dtype == values.dtype
            assert np.array_equal(got[name], values)

    raconvert.convert(tmp_path / "b.npz", tmp_path / "c.safetensors", strict=True)
    again = load(tmp_path / "c.safetensors")
    with raconvert.open(tmp_path / "b.npz") as names:
        assert list(again.keys()) != []
        with raconvert.open(tmp_path / "c.safetensors") as bundle:
            assert bundle.names == names.names
    assert all(np.array_equal(again[name], values) for name, values in tensors.items())
    raw = (tmp_path / "c.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    start = 8 + int.from_bytes(raw[:8], "little")
    for name, entry in header.items():  # as numpy.frombuffer needs it
        assert (start + entry["data_offsets"][0]) % tensors[name].dtype.itemsize == 0


def test_fortran_order_keeps_its_elements(tmp_path: Path) -> None:
    """The library, given the same array, exchanges them."""
    values = np.asfortranarray(np.arange(12, dtype="f4").reshape(3, 4))
    np.save(tmp_path / "x.npy", values)
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.safetensors", strict=True)
    raconvert.write(tmp_path / "y.safetensors", values)
    assert np.array_equal(load(tmp_path / "x.safetensors")["x"], values)
    assert (tmp_path / "x.safetensors").read_bytes()[-48:] == values.tobytes()
    (got,) = load(tmp_path / "y.safetensors").values()
    assert np.array_equal(got, values)


def test_metadata_of_the_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(library.save({"x": np.zeros(3)}, {"format": "pt"}))
    raconvert.convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors", strict=True)
    raconvert.convert(tmp_path / "a.safetensors", tmp_path / "b.h5", strict=True)
    raconvert.convert(tmp_path / "b.h5", tmp_path / "c.safetensors", strict=True)
    for name in ("b", "c"):
        with safe_open(tmp_path / f"{name}.safetensors", "np") as file:
            assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_floats_of_eight_bits_keep_their_type(dtype: Any, tmp_path: Path) -> None:
    values = np.linspace(-3, 3, 6).astype(dtype).reshape(2, 3)
    source, path = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    source.write_bytes(library.save({"x": values}))
    report = raconvert.convert(source, path)
    assert report.notes == []
    assert raconvert.read(source, "x").dtype == dtype
    assert path.read_bytes() == source.read_bytes()
    raconvert.convert(source, tmp_path / "x.ra")
    raconvert.convert(tmp_path / "x.ra", path, overwrite=True)
    assert path.read_bytes() == source.read_bytes()


def test_types_below_a_byte_do_not_cost_the_others(tmp_path: Path) -> None:
    text = (b'{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},'
            b'"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}')  # fmt: skip
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\1\2\3\4")
    assert raconvert.read(path, "b").tolist() == [3, 4]
    with pytest.raises(RaconvertError, match="F4"):
        raconvert.convert(path, tmp_path / "x.npz")
    raconvert.convert(path, tmp_path / "x.npz", allow="arrays")


HOLE = {"x": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}
GOOD = {"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}
ODD: dict[str, tuple[bytes, bytes]] = {
    "hole": (json.dumps(HOLE).encode(), b"123"),
    "overlap": (json.dumps(GOOD | {"y": GOOD["x"]}).encode(), b"12"),
    "cut": (json.dumps(GOOD).encode(), b"1"),
    "behind": (json.dumps(GOOD).encode(), b"123"),
    "shape": (json.dumps({"x": {**GOOD["x"], "shape": [3]}}).encode(), b"12"),
    "twice": (b'{"x":%b,"x":%b}' % ((json.dumps(GOOD["x"]).encode(),) * 2), b"12"),
    "negative": (json.dumps({"x": {**GOOD["x"], "shape": [-1, -2]}}).encode(), b"12"),
    "huge": (json.dumps({"x": {**GOOD["x"], "shape": [1 << 62, 1 << 62]}}).encode(), b"12"),
    "float": (json.dumps({"x": {**GOOD["x"], "shape": [2.0]}}).encode(), b"12"),
    "metadata": (b'{"__metadata__":{"k":1},"x":%b}' % json.dumps(GOOD["x"]).encode(), b"12"),
    "missing": (b'{"x":{"dtype":"U8","shape":[2]}}', b"12"),
    "list": (b'{"x":[1,2]}', b"12"),
    "deep": (b'{"dtype":' + b"[" * 100_000, b""),
    "digits": (b'{"x":{"dtype":"U8","shape":[%b],"data_offsets":[0,2]}}' % (b"9" * 9999), b"12"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_headers_are_refused_as_the_library_refuses_them(name: str, tmp_path: Path) -> None:
    text, data = ODD[name]
    raw = struct.pack("<Q", len(text)) + text + data
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    if name != "twice":  # of which the library takes the last
        with pytest.raises(SafetensorError):
            library.load(raw)
    with pytest.raises(Corrupt, match="safetensors"):
        raconvert.read(path)


def test_what_has_no_type_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.zeros(3, "c16"))
    np.save(tmp_path / "s.npy", np.array(["a", "b"]))
    with pytest.raises(WouldLose, match='dtype="complex64"'):
        raconvert.convert(tmp_path / "c.npy", tmp_path / "x.safetensors")
    with pytest.raises(WouldLose, match="no option allows this"):
        raconvert.convert(tmp_path / "s.npy", tmp_path / "x.safetensors")


def test_fixture() -> None:
    got = raconvert.read(FIXTURES / "library.safetensors")
    assert set(got) == {"layer.weight", "layer.bias", "mask", "half", "count"}
    assert np.array_equal(got["layer.weight"], np.arange(0, 36, 3, "f4").reshape(3, 4))
    assert got["layer.bias"].tolist() == [0, 1, 2]
    assert got["mask"].tolist() == [[False, True, False], [True, False, True]]
    assert got["half"].dtype == ml_dtypes.bfloat16
    assert got["half"].tolist() == [0, 2, 4, 6]
    assert got["count"] == 7
