"""HDF5 structures with strings of variable length, and enums over odd integers, against h5py."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest
from cases import every
from h5py import h5d, h5p, h5s, h5t
from raconvert.plugins import hdf5

import raconvert
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.source import Source

TEXT = h5py.string_dtype()
ASCII = h5py.string_dtype("ascii")
WORDS = ["", "x", "yyy", "é", "日本語", "a longer text, which needs some bytes more"]


def read(path: Path, **options: Any) -> Any:
    return hdf5.read(Source(str(path), **options))


def a_structure(rng: Any, depth: int = 0) -> np.dtype[Any]:
    """Return a random structure; those at the top have a text in them."""
    kinds = ["<i2", ">f8", "u1", "S3", TEXT, TEXT, "?", "<c8"]
    fields: list[Any] = []
    for n in range(int(rng.integers(1, 5))):
        kind: Any = kinds[int(rng.integers(0, len(kinds)))]
        if depth < 2 and rng.random() < 0.2:
            kind = a_structure(rng, depth + 1)
        dims = tuple(rng.integers(1, 4, int(rng.integers(1, 3))).tolist())
        fields.append((f"f{n}", kind, dims) if rng.random() < 0.3 else (f"f{n}", kind))
    if depth == 0:
        fields.append(("text", TEXT))
    return np.dtype(fields)


def fill(values: Any, rng: Any) -> None:
    if values.dtype.names is not None:
        for name in values.dtype.names:
            fill(values[name], rng)
    elif values.dtype.kind == "O":
        for place in np.ndindex(values.shape):
            values[place] = WORDS[int(rng.integers(0, len(WORDS)))]
    else:
        values[...] = rng.integers(0, 2, values.shape)


def same(found: Any, expected: Any) -> bool:
    """True if all members are equal: texts as their bytes, everything else bit by bit."""
    if expected.dtype.names is not None:
        assert found.dtype.names == expected.dtype.names
        return all(same(found[name], expected[name]) for name in expected.dtype.names)
    assert found.shape == expected.shape
    if expected.dtype.kind == "O":
        return found.astype(object).tolist() == expected.tolist()
    return np.ascontiguousarray(found).tobytes() == expected.astype(found.dtype).tobytes()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (2,)},
        {"chunks": (3,), "compression": 1, "shuffle": True},
        {"chunks": (3,), "compression": "lzf"},
        {"chunks": (2,), "fletcher32": True, "maxshape": (None,)},
    ],
)
def test_random_structures_with_texts(seed: int, options: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    dtype = a_structure(rng)
    values = np.zeros(7, dtype)
    fill(values, rng)
    libver = ("earliest", "latest")[seed % 2]
    with h5py.File(tmp_path / "x.h5", "w", libver=(libver, "latest")) as file:
        file.create_dataset("x", data=values, dtype=dtype, **options)
    with h5py.File(tmp_path / "x.h5") as file, read(tmp_path / "x.h5") as bundle:
        expected = file["x"][...]
        array = bundle["x"]
        whole = as_ndarray(array)
        assert same(whole, expected)
        assert same(array.data[2:5], expected[2:5])
        pieces = b"".join(block.tobytes() for block in blocks(array, 1))
        assert pieces == whole.tobytes()
        assert any("texts of variable length" in note for note in bundle.notes)
    raconvert.write(tmp_path / "y.h5", whole)  # the widths are enough for all
    with h5py.File(tmp_path / "y.h5") as file:
        assert same(file["y"][...], expected)


def test_widths_are_those_of_the_longest_text_of_each_member(tmp_path: Path) -> None:
    values = np.zeros(3, [("a", TEXT), ("n", "<i4"), ("b", ASCII, (2,))])
    values["a"] = ["é", "abc", ""]
    values["b"] = "q"
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = values
        file.create_dataset("none", (0,), values.dtype)
        file.create_dataset("unwritten", (4,), values.dtype, chunks=(2,))
        file["one"] = values[1]
    found: Any = raconvert.read(tmp_path / "x.h5")
    assert found["x"].dtype == np.dtype([("a", "S3"), ("n", "<i4"), ("b", "S1", (2,))])
    assert found["none"].shape == (0,)
    assert found["unwritten"]["a"].tolist() == [b""] * 4
    assert not found["unwritten"]["n"].any()
    assert found["one"]["a"] == b"abc"


def test_texts_of_structures_have_a_limit(tmp_path: Path) -> None:
    values = np.zeros(3000, [("a", TEXT)])
    values["a"] = ""
    values["a"][7] = "t" * 1000
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = values
    assert as_ndarray(read(tmp_path / "x.h5")["x"]).nbytes == 3_000_000
    with pytest.raises(TooLarge, match="3000 strings of variable length"):
        as_ndarray(read(tmp_path / "x.h5", max_memory=1 << 20)["x"])


@pytest.mark.parametrize("chunks", [None, (2,)])
@pytest.mark.parametrize("member", ["a", "b"])
def test_damaged_references_in_structures(
    chunks: tuple[int, ...] | None, member: str, tmp_path: Path
) -> None:
    """The library would reserve what a length says; so each is looked at first."""
    values = np.zeros(4, [("a", TEXT), ("n", "<i4"), ("b", TEXT)])
    values["a"], values["b"] = "aaaaa", "bbbbbbb"
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=chunks)
    raw = path.read_bytes()
    length = {"a": 5, "b": 7}[member].to_bytes(4, "little")
    heap = raw.index(b"GCOL").to_bytes(8, "little")
    at = raw.index(length + heap)
    path.write_bytes(raw[:at] + b"\xff\xff\xff\x7f" + raw[at + 4 :])
    with pytest.raises(Corrupt, match="longer than the file"):
        raconvert.read(path)


def enum_of(bits: int, base: h5t.TypeID, names: dict[str, int]) -> h5t.TypeID:
    narrow = base.copy()
    narrow.set_precision(bits)
    tid = h5t.enum_create(narrow)
    for name, value in names.items():
        tid.enum_insert(name.encode(), value)
    return tid


@pytest.mark.parametrize(
    ("bits", "base", "dtype"),
    [
        (20, h5t.STD_I32LE, "<i4"),
        (31, h5t.STD_I32BE, "<i4"),
        (9, h5t.STD_U16LE, "<u2"),
        (5, h5t.STD_U8LE, "u1"),
        (40, h5t.STD_I64LE, "<i8"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_enums_of_reduced_precision(
    bits: int, base: h5t.TypeID, dtype: str, chunked: bool, tmp_path: Path
) -> None:
    names = {"A": 0, "B": 5, "C": 9} if "u" in dtype else {"A": 0, "B": 5, "C": -3}
    values = np.array([*names.values(), 7], dtype)  # 7 has no name
    plist = h5p.create(h5p.DATASET_CREATE)
    if chunked:
        plist.set_chunk((2,))
        plist.set_deflate(1)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        tid = enum_of(bits, base, names)
        x = h5d.create(file.id, b"x", tid, h5s.create_simple((4,)), plist)
        raw = values.copy()
        h5t.convert(h5t.py_create(values.dtype), tid.get_super(), 4, raw)
        x.write(h5s.ALL, h5s.ALL, raw, tid)
        out = np.zeros(4, dtype)
        x.read(h5s.ALL, h5s.ALL, out, h5t.py_create(out.dtype))
        assert out.tolist() == values.tolist()
    with read(tmp_path / "x.h5") as bundle:
        assert as_ndarray(bundle["x"]).dtype == np.dtype(dtype)
        assert as_ndarray(bundle["x"]).tolist() == values.tolist()
        assert any(f"integers of {bits} bits" in note for note in bundle.notes)
    raconvert.convert(tmp_path / "x.h5", tmp_path / "y.h5")
    with h5py.File(tmp_path / "y.h5") as file:
        assert h5py.check_enum_dtype(file["x"].dtype) == names
        assert file["x"][...].tolist() == values.tolist()


@every("form", ["number", "chunks", "enum", "structure", "axes"])
@every("base", [h5t.STD_I8BE, h5t.STD_I16BE, h5t.STD_I32BE, h5t.STD_I64BE, h5t.STD_I32LE])
def test_signs_of_reduced_precision(form: str, base: h5t.TypeID, tmp_path: Path) -> None:
    """Between byte orders of one size the library swaps bytes, and extends no sign (h5dump, too)."""
    random = Random(f"{form} {base.get_size()}")
    narrow = base.copy()
    bits = random.randint(4 * base.get_size() + 1, 8 * base.get_size() - 1)
    narrow.set_precision(bits)
    narrow.set_offset(random.randint(0, 8 * base.get_size() - bits))
    low = -(1 << bits - 1)
    values = np.array([1, -2, low, -1 - low, *(random.randint(low, -1) for _ in range(8))])
    tid, memory, shape, data = narrow, h5t.NATIVE_INT64, (12,), values
    plist = h5p.create(h5p.DATASET_CREATE)
    if form == "chunks":
        plist.set_chunk((5,))
        plist.set_deflate(1)
    elif form == "enum":
        tid, memory = h5t.enum_create(narrow), h5t.enum_create(memory)
        for value in set(values.tolist()):
            tid.enum_insert(str(value).encode(), value)
            memory.enum_insert(str(value).encode(), value)
    elif form == "structure":
        data = np.zeros(12, [("key", "u1"), ("value", "i8")])
        data["value"] = values
        tid, memory = h5t.create(h5t.COMPOUND, 1 + base.get_size()), h5t.py_create(data.dtype)
        tid.insert(b"key", 0, h5t.STD_U8BE)
        tid.insert(b"value", 1, narrow)
    elif form == "axes":
        tid, memory, shape = (*(h5t.array_create(t, (3,)) for t in (tid, memory)), (4,))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = h5d.create(file.id, b"x", tid, h5s.create_simple(shape), plist)
        x.write(h5s.ALL, h5s.ALL, data, memory)
    got = raconvert.read(tmp_path / "x.h5", "x")
    got = got["value"] if form == "structure" else got
    assert got.dtype.newbyteorder("=") == np.dtype(f"i{base.get_size()}")
    assert got.ravel().tolist() == values.tolist()
