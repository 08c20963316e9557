"""What is wrong with one MAT variable, or inside it, hides none of the others."""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import scipy.io
from cases import every, rounds
from mat_bytes import deflated, doubles, element, fields, ints, level4, matrix, saved, tagged, v73
from raconvert.plugins import mat
from raconvert.plugins.mat.tables import VALUE_BYTES
from raconvert.plugins.mat.tree import MAX_NOTES
from test_mat_hostile import HOSTILE, HOSTILE_73

import raconvert
from raconvert.arrays.blocks import as_ndarray
from raconvert.cli import main
from raconvert.errors import RaconvertError, Unsupported, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from raconvert.arrays.bundle import Bundle


def read(path: Path, *, max_memory: int = 1 << 30, **options: Any) -> Bundle:
    return mat.read(Source(str(path), max_memory=max_memory), **options)


def values(bundle: Bundle, name: str) -> list[Any]:
    """Return the elements of an array in stored order."""
    return as_ndarray(bundle[name]).reshape(-1).tolist()


def problems(bundle: Bundle) -> dict[str, str]:
    return {array.name: str(array.problem) for array in bundle.unreadable}


FIRST = matrix(6, (1, 1), b"first_one", doubles(1.5))
LAST = matrix(6, (1, 2), b"the_last_of_all", doubles(2, 3))
# Where these end, nothing tells: what follows them is not looked for.
NO_LENGTH = {
    "compressed_garbage",
    "element_of_unknown_type",
    "variable_beyond_the_file",
    "file_ends_inside_a_tag",
}


@every("name", HOSTILE)
def test_hostile_variable_hides_no_other(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, FIRST + HOSTILE[name][0] + LAST)
    with read(path) as bundle:
        assert values(bundle, "first_one") == [1.5]
        if name in NO_LENGTH:
            assert bundle.unreadable
            assert "the_last_of_all" not in bundle
        else:
            assert values(bundle, "the_last_of_all") == [2, 3]


@pytest.mark.parametrize("packed", [False, True])
def test_random_damage_inside_a_variable_hides_no_other(packed: bool, tmp_path: Path) -> None:
    rng = random.Random(packed)
    inner = [
        matrix(6, (1, 3), b"", doubles(1, 2, 3)),
        matrix(4, (1, 2), b"", element(17, b"a\0b\0")),
    ]
    several = {
        "n": matrix(6, (1, 4), b"n", doubles(*range(4))),
        "some_cell": matrix(1, (1, 2), b"some_cell", *inner),
        "a_long_name_of_a_struct": matrix(
            2, (1, 1), b"a_long_name_of_a_struct", fields(b"one", b"two"), *inner),
        "sparse": matrix(5, (2, 2), b"sparse", ints(0, 1), ints(0, 1, 2), doubles(1, 2)),
    }  # fmt: skip
    with read(saved(tmp_path, b"".join(several.values()))) as bundle:
        whole = {name: values(bundle, name) for name in bundle}
    assert len(whole) == 6
    broken = 0
    for _ in range(rounds(250, 80)):
        chosen = rng.choice(list(several))
        pieces = []
        for name, variable in several.items():
            data = bytearray(deflated(variable) if packed else variable)
            if name == chosen:
                data[rng.randrange(8, len(data))] = rng.choice((0, 1, 14, 127, 128, 255))
            pieces.append(bytes(data))
        with read(saved(tmp_path, b"".join(pieces))) as bundle:
            broken += bool(bundle.unreadable)
            for name, expected in whole.items():
                if name.split("/")[0] != chosen:
                    assert values(bundle, name) == expected, (chosen, name)
    assert broken > rounds(40, 12)


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_member_hides_no_other(packed: bool, tmp_path: Path) -> None:
    good, bad = matrix(6, (1, 1), b"", doubles(7)), matrix(6, (1, 9), b"", doubles(7))
    cell = matrix(1, (1, 3), b"", good, bad, good)
    struct_array = matrix(2, (1, 2), b"s", fields(b"a", b"b"), good, bad, cell, good)
    path = saved(tmp_path, deflated(struct_array) if packed else struct_array)
    with read(path) as bundle:
        assert bundle.names == ["s/1/a", "s/1/b", "s/2/a/1", "s/2/a/2", "s/2/a/3", "s/2/b"]
        assert list(problems(bundle)) == ["s/1/b", "s/2/a/2"]
        assert "expected 9 numbers, got 1" in problems(bundle)["s/2/a/2"]
        assert values(bundle, "s/2/a/3") == values(bundle, "s/2/b") == [7]


def test_last_element_of_a_member_need_not_be_padded(tmp_path: Path) -> None:
    """What its tag counts ends it, whatever its last element would be padded to."""
    text = matrix(4, (1, 5), b"", element(16, b"abcde"))
    text = text[:4] + struct.pack("<I", len(text) - 8 - 3) + text[8:-3]
    good = matrix(6, (1, 1), b"", doubles(7))
    cell = matrix(1, (1, 3), b"c", good, text, good)
    for path in (saved(tmp_path, cell), saved(tmp_path, deflated(cell))):
        with read(path) as bundle:
            assert bundle.unreadable == []
            assert values(bundle, "c/2") == ["abcde"]
            assert values(bundle, "c/3") == [7]


def test_members_behind_one_of_unknown_length_are_each_named(tmp_path: Path) -> None:
    good = matrix(6, (1, 1), b"", doubles(7))
    wrong = struct.pack("<2I", 14, 1 << 20) + good[8:]
    path = saved(tmp_path, matrix(1, (1, 4), b"c", good, wrong, good, good) + LAST)
    with read(path) as bundle:
        assert bundle.names == ["c/1", "c/2", "c/3", "c/4", "the_last_of_all"]
        assert values(bundle, "c/1") == [7]
        assert list(problems(bundle)) == ["c/2", "c/3", "c/4"]
        assert "longer than its variable" in problems(bundle)["c/2"]
        assert "lies behind a member of unknown length" in problems(bundle)["c/4"]
        assert values(bundle, "the_last_of_all") == [2, 3]


def test_wrong_checksum_of_a_walked_variable_spoils_all_of_it_and_nothing_else(
    tmp_path: Path,
) -> None:
    good = matrix(6, (1, 1), b"", doubles(7))
    data = bytearray(deflated(matrix(1, (1, 2), b"c", good, good)))
    data[-1] ^= 1
    with read(saved(tmp_path, FIRST + bytes(data) + LAST)) as bundle:
        assert bundle.names == ["first_one", "c", "the_last_of_all"]
        assert "incorrect data check" in problems(bundle)["c"]
        assert bundle.groups == {}
        assert "values" not in bundle.formats["mat"]


@pytest.mark.parametrize("packed", [False, True])
def test_file_cut_off_keeps_its_whole_variables_by_name(packed: bool, tmp_path: Path) -> None:
    """Wherever it is cut; the variable that is cut is named as soon as its name is there."""
    last = deflated(LAST) if packed else LAST
    data = saved(tmp_path, FIRST + last).read_bytes()
    start = len(data) - len(last)
    path = tmp_path / "cut.mat"
    for length in range(start + 8, len(data)):
        path.write_bytes(data[:length])
        with read(path) as bundle:
            assert values(bundle, "first_one") == [1.5]
            assert len(bundle) == 2
            name = bundle.names[1]
            place = "" if "byte" in name else f"variable '{name}', "
            place += f"byte {start}; "
            assert name in ("the_last_of_all", f"variable at byte {start}")
            if not packed:
                assert (name == "the_last_of_all") == (length >= start + 8 + 16 + 16 + 8 + 15)
            said = f"expected {len(last) - 8} bytes, got {length - start - 8}"
            assert f"variable is cut off, at {place}{said}" in problems(bundle)[name]


def test_values_beyond_the_memory_are_given_up_by_the_variable(tmp_path: Path) -> None:
    count = (16 << 20) // (2 << 13) + 100
    big = deflated(matrix(1, (1, count), b"big", struct.pack("<2I", 14, 0) * count))
    path = saved(tmp_path, FIRST + big + LAST)
    with read(path, max_memory=16 << 20) as bundle:
        assert bundle.names == ["first_one", "big", "the_last_of_all"]
        assert "too many values" in problems(bundle)["big"]
        assert values(bundle, "the_last_of_all") == [2, 3]
    with read(path) as bundle:
        assert len(bundle) == count + 2
    path = saved(tmp_path, FIRST + big * (DEFAULT.skipped_variables + 1) + LAST)
    with pytest.raises(Unsupported, match="too many values"):
        read(path, max_memory=16 << 20)


def test_limits_are_where_they_are_said_to_be(tmp_path: Path) -> None:
    """Of values, of levels and of axes: as many are read, one more is not."""
    limit = (32 << 20) // (2 * VALUE_BYTES)
    for count, is_read in ((limit - 2, True), (limit - 1, False)):  # and the two variables
        cell = matrix(1, (1, count), b"c", struct.pack("<2I", 14, 0) * count)
        with read(saved(tmp_path, FIRST + cell), max_memory=32 << 20) as bundle:
            assert (len(bundle) == count + 1) == is_read
            assert bool(bundle.unreadable) != is_read
    one = matrix(6, (1, 1), b"", doubles(7))
    for levels, is_read in ((DEFAULT.nesting_levels, True), (DEFAULT.nesting_levels + 1, False)):
        inside = one
        for level in range(levels, 0, -1):
            inside = matrix(1, (1, 2), b"c" if level == 1 else b"", inside, one)
        with read(saved(tmp_path, inside)) as bundle:
            assert len(bundle) == levels + 1
            found = list(problems(bundle))
            assert found == [] if is_read else {len(path.split("/")) for path in found} == {66}
    for axes, is_read in ((64, True), (65, False)):
        with read(saved(tmp_path, FIRST + matrix(6, (1,) * axes, b"x", doubles(1)))) as bundle:
            assert bool(bundle.unreadable) != is_read


def test_long_paths_count_as_several_values(tmp_path: Path) -> None:
    """Else a megabyte of long names around many small values would need gigabytes."""
    inside = matrix(1, (1, 2000), b"", struct.pack("<2I", 14, 0) * 2000)
    for level in range(40):
        name = b"n" * 4000
        last = level == 39
        inside = matrix(2, (1, 1), b"s" if last else b"", fields(name, width=4001), inside)
    path = saved(tmp_path, FIRST + deflated(inside))
    tracemalloc.start()
    with read(path) as bundle:
        assert values(bundle, "first_one") == [1.5]
        assert "too many values" in problems(bundle)["s"]
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def counted(path: Path) -> int:
    """Return how many functions are called while a file is read."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        read(path, max_memory=4 << 30).close()
    finally:
        sys.setprofile(None)
    return calls


def many(shape: str, count: int) -> bytes:
    """Return a file of one shape, with so many small things in it."""
    nothing, one = struct.pack("<2I", 14, 0), matrix(6, (1, 1), b"", doubles(1))
    bad = matrix(6, (1, 2), b"", doubles(1))
    names = [b"f%d" % n for n in range(count)]
    shapes = {
        "variables": lambda: b"".join(matrix(6, (1, 1), n, doubles(1)) for n in names),
        "compressed": lambda: b"".join(deflated(matrix(6, (1, 1), n, doubles(1))) for n in names),
        "equal names": lambda: matrix(6, (1, 1), b"x", doubles(1)) * count,
        "damaged": lambda: b"".join(matrix(6, (1, 2), n, doubles(1)) for n in names) + FIRST,
        "cell": lambda: matrix(1, (1, count), b"c", nothing * count),
        "cell of damage": lambda: matrix(1, (1, count + 1), b"c", one, bad * count),
        "holes": lambda: matrix(1, (1, count + 1), b"c", one, matrix(1, (0, 0), b"") * count),
        "lost": lambda: matrix(1, (1, count + 1), b"c", one, doubles(1) * count),
        "fields": lambda: matrix(2, (1, 1), b"s", fields(*names), one * count),
        "equal fields": lambda: matrix(2, (1, 1), b"s", fields(*[b"f"] * count), one * count),
        "structs": lambda: matrix(2, (1, count), b"s", fields(b"a", b"b"), (one + nothing) * count),
        "opaque": lambda: matrix(1, (1, count + 1), b"c", one, matrix(16, (1, 1), b"") * count),
        "bare structs": lambda: matrix(
            1, (1, count + 1), b"c", one, matrix(2, (1, 1), b"", fields()) * count
        ),
    }
    return shapes[shape]()


BUFFERS = 1 << 17  # bytes that are needed for the smallest file, too
SHAPES = ("variables", "compressed", "equal names", "damaged", "cell", "cell of damage", "holes",
          "lost", "fields", "equal fields", "structs", "opaque", "bare structs")  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_file(shape: str, packed: bool, tmp_path: Path) -> None:
    """Calls, and memory: twice as much of it is at most 2.5 times the work."""
    found = []
    for count in (500, 1000):
        data = many(shape, count)
        if packed and shape not in ("variables", "compressed", "equal names", "damaged"):
            data = deflated(data)
        path = saved(tmp_path, data)
        read(path).close()
        tracemalloc.start()
        with read(path, max_memory=4 << 30) as bundle:
            assert len(bundle.notes) <= MAX_NOTES + 1
            assert bool(bundle.unreadable) == (shape in ("damaged", "cell of damage", "lost"))
            peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        found.append((counted(path), peak + BUFFERS))
    assert found[0][0] > 500
    assert all(more < 2.5 * few for few, more in zip(*found, strict=True))


def test_many_empty_elements_from_few_bytes(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "attack", "cell30000.mat")
    with read(path) as bundle:
        assert len(bundle) == 30000
        assert {array.shape for array in bundle.arrays} == {(0, 0)}
    assert counted(path) < 100 * 30000


def test_whole_is_refused_and_what_cannot_be_read_left_out_on_request(tmp_path: Path) -> None:
    path = saved(tmp_path, FIRST + matrix(6, (1, 9), b"bad", doubles(7)) + LAST)
    out = tmp_path / "x.npz"
    with pytest.raises(WouldLose, match="1 of its 3 arrays") as raised:
        raconvert.convert(str(path), str(out))
    assert "'bad'" in str(raised.value)
    assert 'allow=["arrays"]' in str(raised.value)
    assert not out.exists()

    one = tmp_path / "one.npy"
    assert main([f"{path}#the_last_of_all", "-o", str(one)]) == 0
    assert np.load(one).tolist() == [[2, 3]]
    report = raconvert.convert(str(path), str(out), allow=["arrays"])
    assert [fit.array for fit in report.allowed] == ["bad"]
    with np.load(out) as loaded:
        assert sorted(loaded) == ["first_one", "the_last_of_all"]


# --- level 4 ------------------------------------------------------------------------------------


def test_level_4_damage_hides_no_other(tmp_path: Path) -> None:
    good = level4(0, 1, 1, 0, b"x\0", struct.pack("<d", 1.5))
    sparse = level4(2, 1, 3, 0, b"s\0", struct.pack("<3d", -1, 2, 0))
    path = tmp_path / "x.mat"
    path.write_bytes(good + sparse + good.replace(b"x\0", b"y\0"))
    with read(path) as bundle:
        assert bundle.names == ["x", "s", "y"]
        assert "has no dims" in problems(bundle)["s"]
        assert values(bundle, "x") == values(bundle, "y") == [1.5]
    path.write_bytes(good + good[:20])
    with read(path) as bundle:
        assert bundle.names == ["x", f"variable at byte {len(good)}"]
        assert values(bundle, "x") == [1.5]


# --- version 7.3 --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE_73)
def test_hostile_variable_of_v73_hides_no_other(name: str, tmp_path: Path) -> None:
    def fill(file: h5py.File) -> None:
        HOSTILE_73[name][0](file)
        tagged(file.create_dataset("a_good_one", data=[[1.5]]), b"double")
        tagged(file.create_dataset("z_good_one", data=[[2.5]]), b"double")

    with read(v73(tmp_path / "x.mat", fill)) as bundle:
        assert values(bundle, "a_good_one") == [1.5]
        assert values(bundle, "z_good_one") == [2.5]


def test_references_that_lead_nowhere_hide_no_other(tmp_path: Path) -> None:
    def fill(file: h5py.File) -> None:
        one = tagged(file.create_dataset("#refs#/a", data=[[1.5]]), b"double")
        bad = tagged(file.create_dataset("#refs#/b", data=[2.0]), b"double", MATLAB_empty=1)
        cell = tagged(file.create_dataset("c", (1, 4), h5py.ref_dtype), b"cell")
        cell[0, 0], cell[0, 2], cell[0, 3] = one.ref, one.ref, bad.ref
        group = tagged(file.create_group("s"), b"struct")
        group["cell"], group["one"] = cell, one

    with read(v73(tmp_path / "x.mat", fill)) as bundle:
        assert set(bundle) == {"s/one", *(f"{c}/{i}" for c in ("c", "s/cell") for i in range(1, 5))}
        assert set(problems(bundle)) == {"c/2", "c/4", "s/cell/2", "s/cell/4"}
        assert "leads nowhere" in problems(bundle)["c/2"]
        assert values(bundle, "c/3") == values(bundle, "s/one") == [1.5]


def test_structs_used_too_often_are_given_up_by_the_variable(tmp_path: Path) -> None:
    def fill(file: h5py.File) -> None:
        HOSTILE_73["cells_that_share_cells"][0](file)
        last = tagged(file.create_group("#refs#/s"), b"struct")
        tagged(last.create_dataset("x", data=[[4.0]]), b"double")
        file["z"] = last

    with read(v73(tmp_path / "x.mat", fill)) as bundle:
        assert bundle.names == ["c", "z/x"]
        assert "used too often" in problems(bundle)["c"]
        assert values(bundle, "z/x") == [4]


# --- files of the review ------------------------------------------------------------------------


def test_struct_without_fields_of_matlab(corpus: Callable[..., Path]) -> None:
    """MATLAB writes it as its dims with the mark of an empty value, though it has an element."""
    path = corpus("review", "wrong", "mat73_struct_no_fields.mat")
    compared = 0
    with read(path) as bundle, h5py.File(path) as file:
        assert len(bundle) == 4680
        assert bundle.unreadable == []
        assert bundle.groups["struct_no_fields"] == {}
        assert any("'struct_no_fields'" in note for note in bundle.notes)
        for name, item in file.items():
            if (
                isinstance(item, h5py.Dataset)
                and name.endswith(("_array", "_scalar"))
                and (
                    item.attrs["MATLAB_class"] not in (b"cell", b"char")
                    and item.dtype.names is None
                )
            ):
                assert values(bundle, name) == item[()].reshape(-1).tolist()
                compared += 1
    assert compared > 20


def test_odd_fields_of_a_struct(corpus: Callable[..., Path]) -> None:
    """Two texts of one letter have none; the fields of equal names are all there."""
    path = corpus("review", "wrong", "mat_nasty_duplicate_fieldnames.mat")
    with read(path) as bundle:
        assert list(problems(bundle)) == ["Summary/Units/Cells", "Summary/Units/Track_Reference"]
        assert len(bundle) == 29
        known = scipy.io.loadmat(path)["Summary"][0, 0]
        for name in ("Top_Q", "Depth", "Boat_Vel"):
            assert values(bundle, f"Summary/{name}") == known[name].T.reshape(-1).tolist()
        assert any("'Station_Q~2'" in note for note in bundle.notes)


def test_zlib_of_a_variable_is_not_what_its_name_says(tmp_path: Path) -> None:
    """Cut inside its compressed data: the name is there, the elements are not."""
    data = zlib.compress(LAST)
    path = saved(tmp_path, FIRST + struct.pack("<2I", 15, len(data) - 8) + data[:-8])
    with read(path) as bundle:
        assert list(problems(bundle)) == ["the_last_of_all"]
    with read(path) as bundle, pytest.raises(RaconvertError, match="compressed variable"):
        as_ndarray(bundle["the_last_of_all"])
