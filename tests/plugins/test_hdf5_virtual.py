"""Virtual datasets and external storage, read by us: as h5py reads them, and nothing outside."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import raconvert
from raconvert import convert
from raconvert.errors import RaconvertError, Unsafe, WouldLose

if TYPE_CHECKING:
    from collections.abc import Callable

UNLIMITED = h5s.UNLIMITED


def ours(path: Path, name: str = "v") -> np.ndarray:
    return np.asarray(raconvert.open(path, name))


def same_as_h5py(path: Path, name: str = "v") -> None:
    """Compare with h5py, which is asked in the folder of the file, as it wants to be."""
    found = ours(path, name)
    with h5py.File(path) as file:
        expected = file[name][...]
        if expected.dtype.kind in "iuf" and expected.shape:
            # Where mappings overlap, the library takes all elements for mapped ones, and leaves the
            # memory of the others as it is: so that has to be the fill value.
            expected[...] = file[name].fillvalue
            if expected.size:
                file[name].read_direct(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype or expected.dtype.kind == "O"
    if expected.dtype.kind == "O":
        expected = np.array(list(expected.reshape(-1)), found.dtype).reshape(expected.shape)
    assert np.array_equal(found, expected)


def run_of(chance: random.Random, length: int, positions: int) -> tuple[int, int, int, int] | None:
    """Return (start, stride, count, block) with so many positions on an axis, if there is one."""
    blocks = [b for b in range(1, positions + 1) if positions % b == 0]
    block = chance.choice(blocks)
    count = positions // block
    most = (length - block) // (count - 1) if count > 1 else block + 2
    if most < block or positions > length:
        return None
    stride = chance.randint(block, min(most, block + 3))
    end = (count - 1) * stride + block
    return chance.randint(0, length - end), stride, count, block


def selected(chance: random.Random, shape: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
    """Return a space of this shape, a grid of these lengths selected in it."""
    space = h5s.create_simple(shape)
    runs = [run_of(chance, n, k) for n, k in zip(shape, lengths, strict=True)]
    if None in runs:
        return None
    start, stride, count, block = zip(*runs, strict=True)
    space.select_hyperslab(start, count, stride, block)
    return space


def odd_selection(chance: random.Random, shape: tuple[int, ...], count: int) -> Any:
    """Return a space with so many single elements selected, in no order that makes a grid."""
    space = h5s.create_simple(shape)
    space.select_none()
    for place in chance.sample(range(int(np.prod(shape))), count):
        at = tuple(int(i) for i in np.unravel_index(place, shape))
        space.select_hyperslab(at, (1,) * len(shape), op=h5s.SELECT_OR)
    return space


@pytest.mark.parametrize("seed", range(int(os.environ.get("RACONVERT_VIRTUAL_SEEDS", "8"))))
def test_random_mappings(seed: int, tmp_path: Path) -> None:
    """Ten virtual datasets, each of several mappings: grids and others, ranks mixed, overlapping."""
    chance = random.Random(seed)
    types = [h5t.STD_I32LE, h5t.STD_I16BE, h5t.IEEE_F64LE, h5t.STD_U8LE]
    sources = []
    for number in range(3):
        shape = tuple(chance.randint(4, 9) for _ in range(chance.randint(1, 3)))
        name = ("s0.h5", "sub/s1.h5", ".")[number]
        path = tmp_path / ("x.h5" if name == "." else name)
        path.parent.mkdir(exist_ok=True)
        with h5py.File(path, "a") as file:
            values = np.arange(np.prod(shape)).reshape(shape) + 1 + 10 * number
            options = (
                {"chunks": tuple(max(1, n // 2) for n in shape)} if chance.random() < 0.5 else {}
            )
            file.create_dataset("g/s", data=values.astype(chance.choice(["i4", "u1", "f8"])),
                                **options)  # fmt: skip
        sources.append((name, shape))
    with h5py.File(tmp_path / "x.h5", "a") as file:
        for number in range(10):
            shape = tuple(chance.randint(4, 10) for _ in range(chance.randint(1, 3)))
            plist = h5p.create(h5p.DATASET_CREATE)
            kind = chance.choice(types)
            if chance.random() < 0.5:
                plist.set_fill_value(np.array(7, "i4"))
            made = 0
            while made < chance.randint(1, 4):
                name, other = chance.choice(sources)
                lengths = tuple(chance.randint(1, 4) for _ in other)
                there = selected(chance, other, lengths)
                count = int(np.prod(lengths))
                if chance.random() < 0.25:
                    there = odd_selection(chance, other, count)
                grid = [n for n in lengths if n > 1 or chance.random() < 0.5]
                grid += [1] * (len(shape) - len(grid))
                if len(grid) > len(shape) or chance.random() < 0.2:
                    here = odd_selection(chance, shape, count) if count < np.prod(shape) else None
                else:
                    here = selected(chance, shape, tuple(grid))
                if here is not None and there is not None:
                    plist.set_virtual(here, name.encode(), b"g/s", there)
                    made += 1
            h5d.create(file.id, b"v%d" % number, kind, h5s.create_simple(shape), plist)
    for number in range(10):
        same_as_h5py(tmp_path / "x.h5", f"v{number}")
        part = raconvert.open(tmp_path / "x.h5", f"v{number}")
        whole = np.asarray(part)
        keys = tuple(sorted(chance.sample(range(n + 1), 2)) for n in whole.shape)
        key = tuple(slice(a, b) for a, b in keys)
        assert np.array_equal(part[key], whole[key])


@pytest.mark.parametrize("seed", range(12))
def test_axes_without_an_end(seed: int, tmp_path: Path) -> None:
    """The whole grows with its sources, by way of strides on both sides."""
    chance = random.Random(seed)
    width = chance.randint(1, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_fill_value(np.array(-1, "i4"))
        many = chance.randint(1, 3)
        for number in range(many):
            length = chance.randint(0, 11)
            values = np.arange(length * width).reshape(length, width) + 100 * number
            name = f"s{number}"
            file.create_dataset(name, data=values.astype("i4"), maxshape=(None, width))
            block = whole = 1  # the library does not read a last block that is cut off
            there = h5s.create_simple((length, width), (UNLIMITED, width))
            there.select_hyperslab((chance.randint(0, 2), 0), (UNLIMITED, 1),
                                   (block + chance.randint(0, 2), width), (block, width))  # fmt: skip
            here = h5s.create_simple((1, width * many), (UNLIMITED, width * many))
            here.select_hyperslab((chance.randint(0, 2), width * number), (UNLIMITED, 1),
                                  (whole + chance.randint(0, 2), width), (whole, width))  # fmt: skip
            plist.set_virtual(here, b".", name.encode(), there)
        space = h5s.create_simple((1, width * many), (UNLIMITED, width * many))
        h5d.create(file.id, b"v", h5t.STD_I32LE, space, plist)
    same_as_h5py(tmp_path / "x.h5")


@pytest.mark.parametrize("seed", range(12))
def test_sources_by_a_pattern(seed: int, tmp_path: Path) -> None:
    """As many as there are in a row, by the names of files, of datasets, or of both."""
    chance = random.Random(seed)
    block, gap = chance.randint(1, 3), chance.randint(0, 2)
    form = chance.choice(
        [("s%b.h5", "d"), (".", "d%b"), ("s%b.h5", "d%b"), ("%%s%b.h5", "100%%%b")]
    )
    there = [n for n in range(5) if n < 3 or chance.random() < 0.5]
    for number in there:
        name, dataset = (p.replace("%%", "%").replace("%b", str(number)) for p in form)
        with h5py.File(tmp_path / ("x.h5" if name == "." else name), "a") as file:
            file[dataset] = np.arange(block * 4).reshape(block, 4) + 10 * number
    with h5py.File(tmp_path / "x.h5", "a") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        here = h5s.create_simple((1, 4), (UNLIMITED, 4))
        here.select_hyperslab(
            (chance.randint(0, 1), 0), (UNLIMITED, 1), (block + gap, 4), (block, 4)
        )
        plist.set_virtual(here, form[0].encode(), form[1].encode(), h5s.create_simple((block, 4)))
        space = h5s.create_simple((1, 4), (UNLIMITED, 4))
        h5d.create(file.id, b"v", h5t.STD_I32LE, space, plist)
    same_as_h5py(tmp_path / "x.h5")


def test_real_pattern(corpus: Callable[..., Path]) -> None:
    same_as_h5py(corpus("review", "wrong", "4_vds.h5"), "vds_dset")


def test_kinds_of_elements(tmp_path: Path) -> None:
    """Structures, bools, texts, arrays as elements and scalars, also two virtual ones deep."""
    values = {
        "structures": np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f8")]),
        "bools": np.array([True, False, True]),
        "fixed": np.array([b"ab", b"c"], "S3"),
        "arrays": np.zeros(3, np.dtype(("i4", (2,)))) + 5,
        "complex": np.array([1 + 2j, 3]),
        "halves": np.arange(5, dtype="f2"),
    }
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for name, one in values.items():
            file[name] = one
        file["words"] = np.array(["one", "twenty-two", ""], h5py.string_dtype())
    names = [*values, "words"]
    for target, source in (("one.h5", "s.h5"), ("two.h5", "one.h5")):
        with h5py.File(tmp_path / source) as file, h5py.File(tmp_path / target, "w") as made:
            for name in names:
                layout = h5py.VirtualLayout(file[name].shape, file[name].dtype)
                layout[...] = h5py.VirtualSource(file[name])
                made.create_virtual_dataset(name, layout)
    for name in names:
        same_as_h5py(tmp_path / "two.h5", name)
    convert(tmp_path / "two.h5", tmp_path / "out.h5", verify=True)
    for name in names:
        with h5py.File(tmp_path / "s.h5") as file, h5py.File(tmp_path / "out.h5") as made:
            assert np.array_equal(file[name][...], made[name][...])


# ---------------------------------------------------------------------------- nothing from outside

SECRET = np.full(8, 99, "i1")


def secret_sources(folder: Path) -> Path:
    """A virtual dataset over external storage `secret.bin`, which is also in the folder above."""
    (folder / "dl").mkdir(parents=True)
    (folder / "secret.bin").write_bytes(SECRET.tobytes())
    (folder / "dl" / "secret.bin").write_bytes(bytes(8))
    with h5py.File(folder / "dl" / "src.h5", "w") as file:
        file.create_dataset("s", (8,), "i1", external=[("secret.bin", 0, 8)])
    layout = h5py.VirtualLayout((8,), "i1")
    layout[:] = h5py.VirtualSource("src.h5", "s", (8,))
    with h5py.File(folder / "dl" / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    return folder / "dl" / "v.h5"


def test_external_storage_of_a_source_is_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = secret_sources(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert ours(Path("dl/v.h5")).tolist() == [0] * 8
    (tmp_path / "dl" / "secret.bin").unlink()
    with pytest.raises(RaconvertError, match="does not exist"):
        ours(Path("dl/v.h5"))
    assert path.exists()


def test_a_linked_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`d1/v.h5` leads to `d2/v.h5`; beside the link lies a link out of the folder."""
    for name in ("d1", "d2", "out"):
        (tmp_path / name).mkdir()
    for name, values in (("out/secret.h5", SECRET), ("d2/src.h5", np.zeros(8, "i1"))):
        with h5py.File(tmp_path / name, "w") as file:
            file["s"] = values
    layout = h5py.VirtualLayout((8,), "i1")
    layout[:] = h5py.VirtualSource("src.h5", "s", (8,))
    with h5py.File(tmp_path / "d2" / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    (tmp_path / "d1" / "v.h5").symlink_to("../d2/v.h5")
    (tmp_path / "d1" / "src.h5").symlink_to("../out/secret.h5")
    monkeypatch.chdir(tmp_path)
    assert ours(Path("d1/v.h5")).tolist() == [0] * 8
    (tmp_path / "d2" / "src.h5").unlink()
    with pytest.raises(Unsafe):
        ours(Path("d1/v.h5"))


@pytest.mark.parametrize("variable", ["HDF5_VDS_PREFIX", "HDF5_EXTFILE_PREFIX"])
@pytest.mark.parametrize("name", ["v.h5", "pieces.h5", "odd.h5"])
def test_variables_that_lead_elsewhere(variable: str, name: str, tmp_path: Path) -> None:
    """The library reads them when it starts: so in another process."""
    secret_sources(tmp_path / "a")
    folder = tmp_path / "a" / "dl"
    with h5py.File(folder / "pieces.h5", "w") as file:
        file.create_dataset("v", (8,), "i1",
                            external=[("secret.bin", 0, 4), ("secret.bin", 4, 4)])  # fmt: skip
    with h5py.File(folder / "odd.h5", "w") as file:  # integers of 7 bits, which need a conversion
        kind = h5t.STD_I8LE.copy()
        kind.set_precision(7)
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_external(b"secret.bin", 0, 8)
        h5d.create(file.id, b"v", kind, h5s.create_simple((8,)), plist)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.bin").write_bytes(SECRET.tobytes())
    with h5py.File(elsewhere / "src.h5", "w") as file:
        file["s"] = SECRET
    done = subprocess.run(
        [sys.executable, "-c", "import raconvert, sys; print(raconvert.read(sys.argv[1], 'v'))",
         str(folder / name)],
        capture_output=True, text=True, check=False, timeout=60, cwd=elsewhere,
        env={**os.environ, variable: str(elsewhere)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[0", *["0"] * 6, "0]"]


def test_external_storage_in_pieces(tmp_path: Path) -> None:
    values = np.arange(60, dtype=">i4").reshape(3, 4, 5)
    data = values.tobytes()
    (tmp_path / "a.bin").write_bytes(b"skip" + data[:50])
    (tmp_path / "b.bin").write_bytes(data[50:])
    pieces = [("a.bin", 4, 50), ("b.bin", 0, h5py.h5f.UNLIMITED)]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("v", values.shape, ">i4", external=pieces)
    part = raconvert.open(tmp_path / "x.h5", "v")
    assert np.array_equal(np.asarray(part), values)
    for key in [(1,), (slice(1, 3), 2), (slice(None), slice(1, 3), slice(0, 5, 2)), (2, 3, 4)]:
        assert np.array_equal(part[key], values[key])


def test_what_makes_endless_work_is_refused(tmp_path: Path) -> None:
    """A thousand times a thousand times a thousand: each mapping takes the whole of the one below."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["v0"] = np.zeros(1, "i1")
        for depth in range(1, 5):
            plist = h5p.create(h5p.DATASET_CREATE)
            space = h5s.create_simple((1,))
            for _ in range(100):
                plist.set_virtual(space, b".", b"v%d" % (depth - 1), space)
            h5d.create(file.id, b"v%d" % depth, h5t.STD_I8LE, space, plist)
    assert ours(tmp_path / "x.h5", "v2").tolist() == [0]
    with pytest.raises(RaconvertError, match="too many pieces"):
        ours(tmp_path / "x.h5", "v4")
    with pytest.raises(WouldLose, match="too many pieces"):
        convert(tmp_path / "x.h5", tmp_path / "x.npz")


@pytest.mark.parametrize("shrink", ["smaller", "other rank"])
def test_sources_that_do_not_fit(shrink: str, tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((2, 4), "i4")
    layout[:] = h5py.VirtualSource("s.h5", "s", (2, 4))[0:2, 0:4]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["s"] = np.zeros((2, 3) if shrink == "smaller" else 8, "i4")
    with pytest.raises(RaconvertError):
        ours(tmp_path / "x.h5")


def test_a_piece_that_is_replaced_after_the_look_at_it(tmp_path: Path) -> None:
    """What is opened again is the file that was checked, or the array cannot be read."""
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(bytes(4))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("v", (8,), "i1", external=[("a.bin", 0, 4), ("b.bin", 0, 4)])
    part = raconvert.open(tmp_path / "x.h5", "v")
    (tmp_path / "secret").write_bytes(b"cccc")
    (tmp_path / "b.bin").unlink()
    (tmp_path / "b.bin").symlink_to("secret")
    with pytest.raises(RaconvertError):
        np.asarray(part)


@pytest.mark.parametrize("seed", range(12))
def test_sources_with_shared_names(seed: int, tmp_path: Path) -> None:
    """HDF5 2.0 with libver latest writes each name once, and none for the file itself."""
    chance = random.Random(seed)
    long = "a_name_that_is_longer_than_the_number_of_an_entry"
    files = [".", "b.h5", f"{long}.h5", f"{long}2.h5"]
    names = ["x", long, f"{long}2"]
    for number, file in enumerate(files):
        path = tmp_path / ("v.h5" if file == "." else file)
        with h5py.File(path, "w", libver="latest") as made:
            for place, name in enumerate(names):
                made[name] = np.arange(4) + 100 * number + 10 * place
    layout = h5py.VirtualLayout((12, 4), "i8")
    for row in range(12):
        layout[row] = h5py.VirtualSource(chance.choice(files), chance.choice(names), (4,))
    with h5py.File(tmp_path / "v.h5", "a", libver="latest") as made:
        made.create_virtual_dataset("v", layout)
    same_as_h5py(tmp_path / "v.h5")


def test_a_list_of_sources_that_ends_early(tmp_path: Path) -> None:
    """One more entry than there are, in a heap object that ends behind the last."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w", libver="latest") as made:
        made["x"] = np.arange(4)
        layout = h5py.VirtualLayout((4,), "i8")
        layout[:] = h5py.VirtualSource(".", "x", (4,))
        made.create_virtual_dataset("v", layout)
    raw = bytearray(path.read_bytes())
    heap = raw.index(b"GCOL") + 16  # of its first object
    if raw[heap + 16] == 0:
        pytest.skip("this HDF5 writes the first version of the list")
    raw[heap + 8] -= 4  # its length: the checksum is not in it any more
    raw[heap + 17] += 1  # entries
    path.write_bytes(raw)
    with pytest.raises(RaconvertError, match="list of sources of a virtual dataset is damaged"):
        raconvert.read(path, "v")
