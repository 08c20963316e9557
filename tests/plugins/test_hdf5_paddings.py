"""Fixed strings of HDF5 end where their padding says, as the library itself, h5py and h5dump see."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every
from h5py import h5a, h5d, h5p, h5s, h5t

import raconvert
from raconvert.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

PADDINGS = {
    "nullterm": h5t.STR_NULLTERM, "nullpad": h5t.STR_NULLPAD, "spacepad": h5t.STR_SPACEPAD
}  # fmt: skip
SHAPE = (7, 5)
LETTERS = b"ab \0\0\xc3\xa9"


def string(size: int, padding: str) -> h5t.TypeID:
    """Return a type of fixed strings."""
    found = h5t.C_S1.copy()
    found.set_size(size)
    found.set_strpad(PADDINGS[padding])
    return found


def properties(layout: str) -> Any:
    """Return how a dataset is created: contiguous, or in chunks that one of us decodes."""
    plist = h5p.create(h5p.DATASET_CREATE)
    if layout != "contiguous":
        plist.set_chunk((3, 2))
    if layout == "gzip":
        plist.set_deflate(1)
    if layout == "scaleoffset":
        plist.set_shuffle()
        plist.set_fletcher32()
    return plist


def write(path: Path, tid: h5t.TypeID, seed: int, layout: str = "contiguous") -> bytes:
    """Write a dataset "x", and an attribute of it, of random letters; return these."""
    chance = random.Random(seed)
    with h5py.File(path, "w") as file:
        raw = bytes(chance.choices(LETTERS, k=35 * tid.get_size()))
        space = h5s.create_simple(SHAPE)
        dataset = h5d.create(file.id, b"x", tid, space, properties(layout))
        dataset.write(h5s.ALL, h5s.ALL, np.frombuffer(raw, f"V{tid.get_size()}"), tid)
        attribute = h5a.create(dataset, b"a", tid, space)
        attribute.write(np.frombuffer(raw, f"V{tid.get_size()}").reshape(SHAPE).copy(), tid)
    return raw


def seen(path: Path) -> tuple[Any, Any]:
    """Return the elements and the attribute as h5py has them from the library."""
    with h5py.File(path) as file:
        return file["x"][()], file["x"].attrs["a"]


def plain(values: Any) -> Any:
    """Return strings as text where they are."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    try:
        return values.decode()
    except UnicodeDecodeError:
        return values


@every("layout", ["contiguous", "gzip", "scaleoffset"])
@every("padding", PADDINGS)
@every("size", [1, 2, 8])
def test_strings_end_where_the_library_ends_them(
    tmp_path: Path, size: int, padding: str, layout: str
) -> None:
    for seed in range(4):
        path = tmp_path / "x.h5"
        raw = write(path, string(size, padding), seed, layout)
        elements, attribute = seen(path)
        assert np.array_equal(raconvert.read(path, "x"), elements)
        with raconvert.open(path) as bundle:
            array = bundle["x"]
            assert np.array_equal(array[2:, ::2], elements[2:, ::2])
            assert array.meta.attributes["a"] == plain(attribute.tolist())
        raconvert.convert(path, tmp_path / "x.npy", overwrite=True)
        assert np.array_equal(np.load(tmp_path / "x.npy"), elements)

        back = tmp_path / "back.h5"
        raconvert.convert(path, back, overwrite=True)
        again, attribute_again = seen(back)
        assert np.array_equal(again, elements)
        assert np.array_equal(attribute_again, attribute)
        with h5py.File(back) as file:
            tid = file["x"].id.get_type()
            assert (tid.get_strpad(), tid.get_size()) == (PADDINGS[padding], size)
            stored = np.zeros(SHAPE, f"V{size}")
            file["x"].id.read(h5s.ALL, h5s.ALL, stored, tid)
        ends = {"nullterm": b"\0", "nullpad": b"\0", "spacepad": b" "}[padding]
        expected = [
            text.ljust(size, b"\0" if text.endswith(b" ") else ends)
            for text in elements.reshape(-1).tolist()
        ]
        assert stored.tobytes() == b"".join(expected)
        assert len(raw) == len(stored.tobytes())


@pytest.mark.parametrize("seed", range(6))
def test_strings_in_structures(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    inner = h5t.create(h5t.COMPOUND, 16)
    inner.insert(b"n", 0, h5t.STD_I32LE)
    inner.insert(b"s", 6, string(9, chance.choice([*PADDINGS])))
    tid = h5t.create(h5t.COMPOUND, 96)
    tid.insert(b"one", 3, string(5, chance.choice([*PADDINGS])))
    tid.insert(b"many", 10, h5t.array_create(string(6, chance.choice([*PADDINGS])), (2, 3)))
    tid.insert(b"inner", 50, h5t.array_create(inner, (2,)))
    path = tmp_path / "x.h5"
    write(path, tid, seed, chance.choice(["contiguous", "gzip"]))
    elements, _ = seen(path)

    def same(values: Any) -> bool:
        return all(
            np.array_equal(values[name], elements[name]) for name in ("one", "many")
        ) and all(np.array_equal(values["inner"][n], elements["inner"][n]) for n in ("n", "s"))

    assert same(raconvert.read(path, "x"))
    back = tmp_path / "back.h5"
    raconvert.convert(path, back)
    assert same(seen(back)[0])
    with h5py.File(path) as first, h5py.File(back) as second:
        assert first["x"].id.get_type() == second["x"].id.get_type()
        assert first["x"].attrs.get_id("a").get_type() == second["x"].attrs.get_id("a").get_type()


@pytest.mark.parametrize("padding", ["nullterm", "spacepad"])
def test_h5dump_sees_the_same(tmp_path: Path, padding: str, tool: Callable[..., str]) -> None:
    h5dump = tool("h5dump")
    shown = []
    write(tmp_path / "x.h5", string(8, padding), 3)
    raconvert.convert(tmp_path / "x.h5", tmp_path / "back.h5")
    for name in ("x.h5", "back.h5"):
        call = [h5dump, "-d", "/x", str(tmp_path / name)]
        text = subprocess.run(call, capture_output=True, check=True).stdout
        shown.append(text[text.index(b"DATATYPE") :])
    if padding == "nullterm":  # of padding by blanks it shows the blanks
        assert shown[0] == shown[1]


def test_text_of_netcdf(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "x.nc"
    words = np.array([b"Halifax", b"", b"a b "], "S7")
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("n", 3)
        file.createDimension("letters", 7)
        file.createVariable("word", "S1", ("n", "letters"))[:] = netcdf.stringtochar(words)
    letters = netcdf.stringtochar(words)
    assert np.array_equal(raconvert.read(path, "word"), letters)
    raconvert.convert(path, tmp_path / "back.nc")
    with netcdf.Dataset(tmp_path / "back.nc") as file:
        file.set_auto_mask(False)
        assert np.array_equal(file["word"][:], letters)


@pytest.mark.parametrize(("padding", "value"), [("nullterm", b"a\0b"), ("spacepad", b"abc ")])
def test_a_string_that_would_end_elsewhere_is_refused(
    tmp_path: Path, padding: str, value: bytes
) -> None:
    write(tmp_path / "x.h5", string(4, padding), 1)
    with raconvert.open(tmp_path / "x.h5") as bundle:
        changed = bundle["x"].replace(data=np.full(SHAPE, value, "S4"))
        with pytest.raises(Unsupported, match='"strings": "fixed"'):
            raconvert.write(tmp_path / "y.h5", changed)
        assert not (tmp_path / "y.h5").exists()
        raconvert.write(tmp_path / "y.h5", changed, out_opts={"strings": "fixed"})
    assert raconvert.read(tmp_path / "y.h5", "x").tolist() == np.full(SHAPE, value, "S4").tolist()
