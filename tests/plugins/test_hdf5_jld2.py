"""JLD2: files laid out as the Julia package does, judged by h5dump 1.10 and by hand."""

from __future__ import annotations

import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import h5py
import jld2_file as jld2
import numpy as np
import pytest
from jld2_file import Jld2
from raconvert.plugins import hdf5

from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.cli import main
from raconvert.errors import Corrupt, TooLarge, Unsupported
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RAMP = np.arange(24, dtype="<f8").reshape(2, 3, 4)  # reshape(0:23, 4, 3, 2) in Julia
PAIRS = (np.arange(6) - 2.5j).astype("<c16").reshape(2, 3)
FLAGS = np.array([[0, 1, 1], [1, 0, 0]], "u1")


def saved(path: Path, file: Jld2) -> Path:
    path.write_bytes(file.done())
    return path


def read(path: Path, **options: Any) -> Any:
    return hdf5.read(Source(str(path), **options))


def shuffled(values: np.ndarray) -> bytes:
    units = np.ascontiguousarray(values).view("u1").reshape(-1, values.itemsize)
    return zlib.compress(units.T.tobytes())


def every_kind(header: bytes = jld2.HEADER) -> Jld2:
    file = Jld2(header)
    floats, flags = jld2.floating(8), jld2.boolean()
    pairs = file.commit(jld2.complex_of(8))
    file.add("plain", floats, RAMP.shape, RAMP.tobytes())
    file.deflated("packed", floats, RAMP)
    file.deflated("packed_shortly", floats, RAMP, encoded=1)  # as in HDF5.jl, and in JLD2 to come
    file.add("shuffled", floats, RAMP.shape, shuffled(RAMP), filters=((2, (8,)), (1, (5,))))
    file.add("half", jld2.floating(2), (3,), np.array([1, -2, 0.5], "<f2").tobytes())
    file.deflated("wide", jld2.integer(2), np.arange(70_000, dtype="<i2").reshape(7, 10_000))
    file.add("pairs", pairs, PAIRS.shape, PAIRS.tobytes())
    file.deflated("pairs_packed", pairs, PAIRS)
    file.add("flags", flags, FLAGS.shape, FLAGS.tobytes())
    file.deflated("flags_packed", flags, FLAGS)
    file.add("empty", floats, (0, 3))
    file.add("scalar", floats, (), np.float64(3.5).tobytes())
    return file


NAMES = ["plain", "packed", "packed_shortly", "shuffled", "half", "wide", "pairs", "pairs_packed",
         "flags", "flags_packed", "empty", "scalar"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_what_h5dump_says(name: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    path = saved(tmp_path / "x.jld2", every_kind())
    command = [tool("h5dump"), "-m", "%.17g", "-y", "-w", "1", "-d", f"/{name}", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shape = text.split("DATASPACE")[1].split("/")[0].split("(")[-1].split(")")[0]
    dims = [] if "SCALAR" in text else [int(n) for n in shape.split(",")]
    words = text.split("DATA {")[1].replace("}", " ").replace("{", " ").replace(",", " ").split()
    with read(path) as bundle:
        array = bundle[name]
        assert (array.index_order, list(array.shape)) == ("F", dims[::-1])
        values = as_ndarray(array).reshape(-1)  # slowest axis first
        flat = values.view("<f8") if values.dtype.kind == "c" else values
        as_number = (lambda word: int(word, 16)) if name.startswith("flags") else float
        assert flat.tolist() == [as_number(word) for word in words]
        assert array.element.kind == {"pairs": "complex", "flags": "bool", "wide": "int"}.get(
            name.removesuffix("_packed"), "float"
        )


def test_slices_and_blocks_of_what_the_library_does_not_open(tmp_path: Path) -> None:
    with read(saved(tmp_path / "x.jld2", every_kind())) as bundle:
        data = bundle["packed"].data
        assert np.array_equal(data[1, :, ::2], RAMP[1, :, ::2])
        assert data[0, 2, 3] == 11
        joined = b"".join(bytes(part) for part in blocks(bundle["packed"], 40))
        assert joined == RAMP.tobytes()
        assert bundle["packed"].storage["filters"] == ["deflate 5"]
        assert bundle["packed"].storage["chunks"] == [2, 3, 4]


@pytest.mark.parametrize("header", [jld2.HEADER, jld2.OLD_HEADER])
def test_both_headers_mean_julia(header: bytes, tmp_path: Path) -> None:
    with read(saved(tmp_path / "x.jld2", every_kind(header))) as bundle:
        assert bundle["plain"].index_order == "F"
        assert bundle["plain"].shape == (4, 3, 2)
        assert not any("_types" in note for note in bundle.notes)


def test_a_larger_user_block_before_the_mark(tmp_path: Path) -> None:
    """The mark is that of the last 512 bytes before the superblock."""
    path = tmp_path / "x.jld2"
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["x"] = RAMP
    data = bytearray(path.read_bytes())
    for at, order in ((512, "F"), (0, "C")):
        data[:1024] = bytes(1024)
        data[at : at + len(jld2.HEADER)] = jld2.HEADER
        path.write_bytes(data)
        with read(path) as bundle:
            assert bundle["x"].index_order == order


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_without_axes(packed: bool, tmp_path: Path) -> None:
    """fill(3.5) in Julia: one element, and an attribute that says that there are no axes."""
    file = Jld2()
    value = np.array([3.5])
    if packed:
        file.deflated("x", jld2.floating(8), value, dimensions=())
        file.deflated("y", jld2.floating(8), value, dimensions=(), encoded=1)
    else:
        file.add("x", jld2.floating(8), (1,), value.tobytes(), dimensions=())
        file.add("y", jld2.floating(8), (1,), value.tobytes())
    with read(saved(tmp_path / "x.jld2", file)) as bundle:
        array = bundle["x"]
        assert (array.shape, as_ndarray(array).tolist()) == ((), 3.5)
        assert np.asarray(array.data[()]) == 3.5
        assert b"".join(bytes(part) for part in blocks(array, 64)) == value.tobytes()
        assert "dimensions" not in array.meta.attributes
        assert bundle["y"].shape == (() if packed else (1,))
        assert as_ndarray(bundle["y"]).reshape(-1).tolist() == [3.5]


@pytest.mark.parametrize(("name", "kind"), [(b"Core.Bool", "bool"), (b"Core.Char", "user")])
def test_bools_of_older_versions(name: bytes, kind: str, tmp_path: Path) -> None:
    """Before 0.3.3: a named opaque type, which only its attribute tells apart."""
    file = Jld2(jld2.OLD_HEADER)
    address = file.put(jld2.heap(name))
    own = file.commit(jld2.datatype())
    named = file.commit(jld2.opaque(1), jld2.type_attribute(own, name, address))
    file.add("x", named, FLAGS.shape, FLAGS.tobytes())
    file.deflated("packed", named, FLAGS)
    with read(saved(tmp_path / "x.jld2", file)) as bundle:
        for array in bundle.arrays:
            assert array.element.kind == kind
            assert as_ndarray(array).tobytes() == FLAGS.tobytes()
        assert bundle.names == ["packed", "x"]


def test_bools_stay_bools_in_hdf5(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.jld2", every_kind())
    out = tmp_path / "x.h5"
    assert main(["-q", str(path), "-o", str(out)]) == 0
    with h5py.File(out) as file:
        for name in ("flags", "flags_packed"):
            assert file[name].dtype == bool
            assert np.array_equal(file[name][()].T, FLAGS != 0)
        assert np.array_equal(file["packed"][()].T, RAMP)
    assert main(["diff", "-q", str(path), str(out)]) == 0


def test_other_filters_are_named_and_stop_nothing(tmp_path: Path) -> None:
    file = Jld2()
    file.add("x", jld2.floating(8), (3,), bytes(24))
    file.add("y", jld2.floating(8), (3,), bytes(9), filters=((5, (8,)),))
    with read(saved(tmp_path / "x.jld2", file)) as bundle:
        assert bundle.names == ["x"]
        note = next(note for note in bundle.notes if "'y'" in note)
        assert "nbit" in note


def test_types_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    file = Jld2()
    file.add("ok", jld2.floating(8), (3,), bytes(24))
    file.add("big", jld2.integer(16), (2,), bytes(32))
    file.add("nothing", file.commit(jld2.opaque(1)), None)
    with read(saved(tmp_path / "x.jld2", file)) as bundle:
        assert bundle.names == ["ok"]
        assert any("'big'" in note and "128 bits" in note for note in bundle.notes)
        assert any("'nothing'" in note and "null space" in note for note in bundle.notes)


# ----------------------------------------------------------------------------------- damaged files


def broken(tmp_path: Path, **options: Any) -> Path:
    file = Jld2()
    file.add("x", jld2.floating(8), (3,), bytes(24))
    raw = options.pop("raw", zlib.compress(bytes(192)))
    shape = options.pop("shape", (24,))
    file.add("y", jld2.floating(8), shape, raw, filters=((1, (5,)),), **options)
    return saved(tmp_path / "x.jld2", file)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"raw": zlib.compress(bytes(184))}, Corrupt, "another size"),
        ({"raw": zlib.compress(bytes(1 << 20))}, Corrupt, "more than 192"),
        ({"raw": b"no zlib stream"}, Corrupt, "cannot be inflated"),
        ({"chunk": (23,)}, Corrupt, "chunk dimension encoding"),
        ({"shape": (1 << 40,)}, TooLarge, "declares 8796093022208 bytes"),
        ({"shape": (1 << 24,), "raw": bytes(1 << 20)}, TooLarge, "to be decoded"),
    ],
)
def test_damaged_chunks(options: dict[str, Any], error: type, words: str, tmp_path: Path) -> None:
    path = broken(tmp_path, **options)
    with read(path, max_memory=64 << 20) as bundle:
        assert as_ndarray(bundle["x"]).tolist() == [0, 0, 0]
        with pytest.raises(error) as found:
            next(iter(blocks(bundle["y"])))
        assert words in str(found.value)


def test_a_chunk_outside_the_file(tmp_path: Path) -> None:
    path = broken(tmp_path)
    data = path.read_bytes()
    layout = data.index(b"\4\2\2\2\x08")
    at = layout + 5 + 16 + 1 + 8 + 4  # two lengths, index, stored bytes, mask
    for place in (len(data) - 520, 1 << 62, (1 << 63) + 5):
        file = data[:at] + place.to_bytes(8, "little") + data[at + 8 :]
        start = data.rindex(b"OHDR", 0, layout)
        length = 10 + int.from_bytes(data[start + 6 : start + 10], "little")
        check = jld2.lookup3(file[start : start + length]).to_bytes(4, "little")
        path.write_bytes(file[: start + length] + check + file[start + length + 4 :])
        with read(path) as bundle, pytest.raises(Corrupt, match="outside the file"):
            as_ndarray(bundle["y"])


def test_a_file_without_any_array_says_why(tmp_path: Path) -> None:
    file = Jld2()
    file.add("x", jld2.integer(16), (2,), bytes(32))
    with pytest.raises(Unsupported, match="integers of 128 bits"):
        read(saved(tmp_path / "x.jld2", file))
    for number in range(12):
        file.add(f"y{number}", jld2.integer(16), (2,), bytes(32))
    with pytest.raises(Unsupported) as found:
        read(saved(tmp_path / "x.jld2", file))
    assert "'y0': its elements are integers of 128" in str(found.value)
    assert "no array that can be read" in str(found.value)
    assert "; 3 more" in str(found.value)
