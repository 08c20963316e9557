"""Hostile and damaged MAT files: refused by cause, in little memory, and never by another error."""

from __future__ import annotations

import random
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import every, rounds, some
from mat_bytes import (
    body,
    deflated,
    doubles,
    element,
    fields,
    ints,
    level4,
    matrix,
    saved,
    tagged,
    v73,
)
from raconvert.plugins import mat
from raconvert.plugins.mat.tables import SAMPLES

from raconvert.arrays.blocks import blocks
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported
from raconvert.files.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "mat"
MAX_MEMORY = 64 << 20


def decode(path: Path, *, max_memory: int = MAX_MEMORY, **options: Any) -> list[bytes]:
    """Return the bytes of all arrays, decoded to the last."""
    with mat.read(Source(str(path), max_memory=max_memory), **options) as bundle:
        return [b"".join(block.tobytes() for block in blocks(a)) for a in bundle.arrays]


def nested(depth: int) -> bytes:
    found = matrix(6, (1, 1), b"", doubles(1))
    for _ in range(depth):
        found = matrix(1, (1, 1), b"", found)
    return matrix(1, (1, 1), b"c", found)


def zeros(nbytes: int) -> bytes:
    """Return a compressed variable of so many zero bytes, made piece by piece."""
    lead = body(9, (1, nbytes), b"x") + struct.pack("<2I", 2, nbytes)
    packer = zlib.compressobj(9)
    data = packer.compress(struct.pack("<2I", 14, len(lead) + nbytes) + lead)
    data += b"".join(packer.compress(bytes(1 << 20)) for _ in range(nbytes >> 20)) + packer.flush()
    return struct.pack("<2I", 15, len(data)) + data


X = matrix(6, (1, 1), b"x", doubles(1.5))
EMPTY = struct.pack("<2I", 14, 0)
MANY = 200_000

# What is wrong -> elements of the file, the error, words of its message
HOSTILE: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "dims_far_beyond_the_file": (
        matrix(6, (2**31 - 1, 2**31 - 1), b"x", doubles(1)), Corrupt, "dims that no array has"),
    "dims_beyond_the_data": (
        matrix(6, (1000, 1000), b"x", doubles(1)), Corrupt, "another length than the dims say"),
    "dims_negative": (matrix(6, (-1, 1), b"x", doubles(1)), Corrupt, "dims that no array has"),
    "dims_that_overflow": (
        matrix(6, (2**30, 2**30, 2**30, 0), b"x", doubles()), Corrupt, "dims that no array has"),
    "dims_of_too_many_axes": (
        matrix(6, (1,) * 65, b"x", doubles(1)), Unsupported, "too many axes"),
    "dims_missing": (
        element(14, element(6, bytes((6, 0, 0, 0, 0, 0, 0, 0)))), Corrupt, "ends before the dims"),
    "data_shorter_than_dims": (
        matrix(6, (1, 3), b"x", doubles(1, 2)), Corrupt, "expected 3 numbers, got 2"),
    "data_ends_inside_a_number": (
        matrix(6, (1, 1), b"x", element(9, b"12345")), Corrupt, "ends inside a number"),
    "data_of_unknown_type": (
        matrix(6, (1, 1), b"x", element(77, b"12345678")), Corrupt, "unknown type"),
    "data_beyond_its_variable": (
        matrix(6, (1, 1), b"x", element(9, bytes(8), 2**31)), Corrupt, "longer than its variable"),
    "imaginary_part_missing": (
        matrix(6, (1, 1), b"x", doubles(1), flags=0x800), Corrupt, "ends before imaginary part"),
    "imaginary_part_shorter": (
        matrix(6, (1, 2), b"x", doubles(1, 2), doubles(1), flags=0x800), Corrupt, "another length"),
    "value_beyond_its_class": (
        matrix(8, (1, 1), b"x", ints(300)), Corrupt, "300 stored as int32"),
    "value_that_is_no_whole_number": (
        matrix(12, (1, 1), b"x", doubles(0.5)), Corrupt, "0.5 stored as float64"),
    "variable_beyond_the_file": (
        matrix(6, (1, 1), b"x", doubles(1), nbytes=1 << 20), Corrupt, "variable is cut off"),
    "element_of_unknown_type": (element(13, b"12345678"), Corrupt, "element is not a variable"),
    "file_ends_inside_a_tag": (X + b"\1\2\3", Corrupt, "ends inside a tag"),
    "class_unknown": (matrix(99, (1, 1), b"x", doubles(1)), Corrupt, "unknown class"),
    "name_far_too_long": (
        matrix(6, (1, 1), b"x" * 5000, doubles(1)), Corrupt, "the name is too long"),
    "small_element_of_nine_bytes": (
        element(14, struct.pack("<2H", 6, 9) + bytes(12)), Corrupt, "wrong tag"),
    "cell_of_more_than_there_are": (
        matrix(1, (1, 10**9), b"c", EMPTY), Corrupt, "declares more members than there are"),
    "struct_of_more_than_there_are": (
        matrix(2, (10**6, 10**3), b"s", fields(b"a", b"b"), EMPTY), Corrupt, "more members"),
    "struct_with_names_of_no_width": (
        matrix(2, (1, 1), b"s", ints(0), element(1, b"abc"), EMPTY), Corrupt, "wrong length"),
    "struct_with_names_of_negative_width": (
        matrix(2, (1, 1), b"s", ints(-4), element(1, b"abcd"), EMPTY), Corrupt, "wrong length"),
    "member_that_is_no_matrix": (
        matrix(1, (1, 1), b"c", doubles(1)), Corrupt, "'c/1' is not a matrix"),
    "member_beyond_its_cell": (
        matrix(1, (1, 1), b"c", struct.pack("<2I", 14, 999) + bytes(8)), Corrupt, "longer than"),
    "nested_too_deep": (nested(100), Unsupported, "too deep"),
    "nested_too_deep_and_compressed": (deflated(nested(2000)), Unsupported, "too deep"),
    "cell_of_very_many": (
        deflated(matrix(1, (1, MANY), b"c", EMPTY * MANY)), Unsupported, "too many values"),
    "compressed_nothing": (deflated(b""), Corrupt, "ends inside its data"),
    "compressed_number_only": (deflated(doubles(1)), Corrupt, "is not a variable"),
    "compressed_garbage": (element(15, b"no zlib data at all"), Corrupt, "cannot be inflated"),
    "compressed_in_compressed": (deflated(deflated(X)), Corrupt, "is not a variable"),
    "compressed_longer_than_its_tag": (
        deflated(X + bytes(1000)), Corrupt, "longer than its tag says"),
    "compressed_shorter_than_its_tag": (
        deflated(matrix(6, (1, 2), b"x", doubles(1, 2), nbytes=1000)), Corrupt, "shorter than its"),
    "compressed_that_no_decoder_could_give": (
        deflated(struct.pack("<2I", 14, 2**31) + body(9, (1, 2**31 - 100), b"x")), Corrupt,
        "cannot be so long"),
    "compressed_cut_off": (
        struct.pack("<2I", 15, 24) + zlib.compress(X)[:24], Corrupt, "deflated data is cut off"),
    "text_of_another_length": (
        matrix(4, (1, 3), b"t", element(17, b"ab")), Corrupt, "another length"),
    "text_that_is_no_utf8": (
        matrix(4, (1, 2), b"t", element(16, b"\xff\xfe\xfd")), Corrupt, "not UTF-8"),
    "text_beyond_unicode": (
        matrix(4, (1, 1), b"t", element(18, b"\0\0\x11\0")), Corrupt, "is not a character"),
    "text_of_very_many_empty_rows": (
        matrix(4, (2**31 - 1, 0), b"t", element(17, b"")), TooLarge, "as text needs"),
    "sparse_row_outside": (
        matrix(5, (2, 1), b"s", ints(5), ints(0, 1), doubles(1)), Corrupt, "row outside"),
    "sparse_columns_going_back": (
        matrix(5, (2, 2), b"s", ints(0), ints(0, 9, 1), doubles(1)), Corrupt, "column starts"),
    "sparse_columns_missing": (
        matrix(5, (2, 9), b"s", ints(0), ints(0, 1), doubles(1)), Corrupt, "number of columns"),
    "sparse_with_one_element_twice": (
        matrix(5, (2, 1), b"s", ints(1, 1), ints(0, 2), doubles(1, 2)), Corrupt, "element twice"),
    "sparse_of_three_axes": (
        matrix(5, (2, 1, 1), b"s", ints(0), ints(0, 1), doubles(1)), Corrupt, "is not a matrix"),
    "sparse_bomb": (
        matrix(5, (2**31 - 1, 100), b"s", ints(0), ints(0, *[1] * 100), doubles(1)), TooLarge,
        'in_opts={"sparse": "parts"}'),
    "more_left_out_than_listed": (
        b"".join(matrix(16, (1, 1), b"f%d" % n) for n in range(6)), Unsupported,
        "'f4' (function_handle), ..."),
    "nothing_in_it": (b"", Unsupported, "holds no array; expected numeric"),
    "only_an_empty_struct": (
        matrix(2, (1, 1), b"s", ints(32), element(1, b"")), Unsupported, "'s' (empty)"),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_errors_name_variable_and_offset(packed: bool, tmp_path: Path) -> None:
    damaged = matrix(6, (2, 1), b"broken", element(77, b"12345678"))
    path = saved(tmp_path, X + (deflated(damaged) if packed else damaged))

    with pytest.raises(Corrupt, match=r"'broken'.*, at .*byte \d+"):
        decode(path)

    flipped = bytearray(deflated(matrix(6, (1, 1), b"late", doubles(1.5))))
    flipped[-1] ^= 1  # of the checksum
    path = saved(tmp_path, X + bytes(flipped))
    with pytest.raises(Corrupt, match=r"incorrect data check.*, at .*byte \d+"):
        decode(path)


@every("name", HOSTILE)
def test_hostile_file_is_refused_by_cause(name: str, tmp_path: Path) -> None:
    contents, error, words = HOSTILE[name]
    path = saved(tmp_path, contents)

    with pytest.raises(error) as raised:
        decode(path)

    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(path) in str(raised.value)


def test_bombs_are_streamed_in_little_memory(tmp_path: Path) -> None:
    """Half a gigabyte of zeros from half a megabyte: legal, and never whole in memory."""
    path = saved(tmp_path, zeros(512 << 20))
    assert path.stat().st_size < 1 << 20
    with mat.read(Source(str(path), max_memory=MAX_MEMORY)) as bundle:
        with pytest.raises(TooLarge, match="whole in memory needs 536870912 bytes"):
            bundle["x"].data[0]
        pieces = blocks(bundle["x"], 1 << 20)
        assert sum(next(pieces).nbytes for _ in range(3)) == 3 << 20
        pieces.close()


LIMITED = """
import resource, sys
from raconvert.errors import RaconvertError
from raconvert.plugins import mat
from raconvert.files.source import Source
from raconvert.arrays.blocks import blocks
import numpy, h5py
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        with mat.read(Source(path)) as bundle:
            for array in bundle.arrays:
                for _ in blocks(array):
                    pass
    except RaconvertError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_all_hostile_files_together_stay_below_200_mb(tmp_path: Path) -> None:
    """With the default limit of 1 GiB, which is what people have."""
    assert resource.getpagesize()  # Linux and macOS
    paths = []
    for name, (contents, _, _) in HOSTILE.items():
        path = tmp_path / f"{name}.mat"
        path.write_bytes(saved(tmp_path, contents).read_bytes())
        paths.append(str(path))
    done = subprocess.run([sys.executable, "-c", LIMITED, *paths], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert int(done.stdout) < 200_000


# --- level 4 ------------------------------------------------------------------------------------


HOSTILE_4: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "data_cut_off": (level4(0, 100, 100, 0, b"x\0", bytes(8)), Corrupt, "variable is cut off"),
    "dims_huge": (level4(0, 2**31 - 1, 2**31 - 1, 1, b"x\0", b""), Corrupt, "cut off"),
    "dims_negative": (level4(0, -1, 1, 0, b"x\0", bytes(8)), Corrupt, "wrong level 4 header"),
    "name_beyond": (level4(0, 1, 1, 0, b"x\0", bytes(8))[:22], Corrupt, "cut off"),
    "second_variable_cut": (
        level4(0, 1, 1, 0, b"x\0", bytes(8)) + b"\0" * 7, Corrupt, "ends inside a level 4"),
    "vax": (
        level4(0, 1, 1, 0, b"x\0", bytes(8)) + level4(2000, 1, 1, 0, b"y\0", bytes(8)), Unsupported,
        "VAX or a Cray"),
    "text_of_half_characters": (
        level4(1, 1, 1, 0, b"t\0", struct.pack("<d", 65.5)), Corrupt, "is not a character"),
    "sparse_of_two_columns": (level4(2, 2, 2, 0, b"s\0", bytes(32)), Corrupt, "wrong sparse"),
    "sparse_without_dims": (
        level4(2, 1, 3, 0, b"s\0", struct.pack("<3d", -1, 2, 0)), Corrupt, "has no dims"),
    "sparse_index_outside": (
        level4(2, 2, 3, 0, b"s\0", struct.pack("<6d", 9, 2, 1, 2, 5, 0)), Corrupt, "outside its"),
    "sparse_bomb": (
        level4(2, 2, 3, 0, b"s\0", struct.pack("<6d", 1, 1e8, 1, 1e8, 5, 0)), TooLarge, "sparse"),
}  # fmt: skip


@pytest.mark.parametrize("machine", [2, 3, 4])
def test_numbers_of_other_machines_are_refused(machine: int, tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    path.write_bytes(level4(0, 1, 1, 0, b"x\0", bytes(8)))
    with path.open("ab") as file:
        file.write(level4(1000 * machine, 1, 1, 0, b"y\0", bytes(8)))
    with pytest.raises(Unsupported, match=f"VAX or a Cray.*machine type {machine}"):
        decode(path)


@pytest.mark.parametrize("name", HOSTILE_4)
def test_hostile_level_4_is_refused_by_cause(name: str, tmp_path: Path) -> None:
    contents, error, words = HOSTILE_4[name]
    path = tmp_path / "x.mat"
    path.write_bytes(contents)

    with pytest.raises(error) as raised:
        decode(path)

    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(path) in str(raised.value)


# --- version 7.3 --------------------------------------------------------------------------------


def one(file: h5py.File) -> None:
    tagged(file.create_dataset("x", data=np.ones((1, 1))), b"double")


def loop(file: h5py.File) -> None:
    cell = tagged(file.create_dataset("c", (1, 1), h5py.ref_dtype), b"cell")
    cell[0, 0] = cell.ref


def group_loop(file: h5py.File) -> None:
    group = tagged(file.create_group("s"), b"struct")
    group["s"] = group


def shared_cells(file: h5py.File) -> None:
    """Fill a file of a few kilobytes with 2^40 values, each cell holding another one twice."""
    hidden = file.create_group("#refs#")
    last = tagged(hidden.create_dataset("a", data=np.ones((1, 1))), b"double")
    for number in range(40):
        cell = hidden.create_dataset(f"c{number}", (1, 2), h5py.ref_dtype)
        cell[0] = last.ref
        last = tagged(cell, b"cell")
    file["c"] = last


def shared_groups(file: h5py.File) -> None:
    last = file.create_group("#refs#/a")
    tagged(last.create_dataset("x", data=np.ones((1, 1))), b"double")
    for number in range(40):
        group = tagged(file.create_group(f"#refs#/g{number}"), b"struct")
        group["one"] = group["two"] = last
        last = group
    file["s"] = last


def sparse_group(file: h5py.File) -> None:
    group = tagged(file.create_group("s"), b"double", MATLAB_sparse=np.uint64(2))
    group["jc"], group["ir"], group["data"] = [0, 1], [9], [1.0]


def external(file: h5py.File) -> None:
    tagged(file.create_dataset("e", (1, 5), "u1", external=[("/etc/hostname", 0, 5)]), b"uint8")


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((1, 5), "u1")
    layout[0] = h5py.VirtualSource("other.h5", "d", (5,))
    tagged(file.create_virtual_dataset("v", layout), b"uint8")


HOSTILE_73: dict[str, tuple[Callable[[h5py.File], object], type[RaconvertError], str]] = {
    "nothing_in_it": (lambda f: None, Unsupported, "holds no array"),
    "cell_that_holds_itself": (loop, Corrupt, "lies inside itself, at variable 'c/1'"),
    "group_that_holds_itself": (group_loop, Corrupt, "lies inside itself, at variable 's/s'"),
    "cells_that_share_cells": (shared_cells, Unsupported, "cells are used too often"),
    "groups_that_share_groups": (shared_groups, Unsupported, "cells are used too often"),
    "external_data": (external, Unsupported, "'e' (uint8)"),
    "virtual_data": (virtual, Unsupported, "'v' (uint8)"),
    "external_link": (
        lambda f: f.__setitem__("l", h5py.ExternalLink("/etc/x.h5", "/d")), Unsupported, "a link"),
    "soft_link": (lambda f: f.__setitem__("l", h5py.SoftLink("/nope")), Unsupported, "a link"),
    "declares_terabytes_in_chunks": (
        lambda f: tagged(f.create_dataset("x", (10**6, 10**6), "f8", chunks=(1, 1000)), b"double"),
        TooLarge, "declares 8000000000000 bytes, of which the file stores 0"),
    "declares_terabytes_at_once": (
        lambda f: tagged(f.create_dataset("x", (10**6, 10**6), "f8"), b"double"), Corrupt,
        "does not store what its shape says"),
    "empty_with_elements": (
        lambda f: tagged(f.create_dataset("x", data=np.array([2, 3], "u8")), b"double",
                         MATLAB_empty=np.uint8(1)), Corrupt, "an empty value has elements"),
    "empty_of_one_axis": (
        lambda f: tagged(f.create_dataset("x", data=np.array([0], "u8")), b"double",
                         MATLAB_empty=np.uint8(1)), Corrupt, "wrong dims of an empty value"),
    "class_of_variable_length": (
        lambda f: f.create_dataset("x", data=[[1.0]]).attrs.create("MATLAB_class", "double"),
        Corrupt, "not a single number or text"),
    "value_beyond_its_class": (
        lambda f: tagged(f.create_dataset("x", data=np.array([[300]])), b"int8"), Corrupt,
        "300 stored as int64"),
    "sparse_row_outside": (sparse_group, Corrupt, "row outside"),
    "long_doubles": (
        lambda f: tagged(f.create_dataset("x", (1, 1), "f16"), b"double"), Unsupported,
        "'x' (double)"),
    "strings": (lambda f: tagged(f.create_dataset("x", data="a"), b"char"), Unsupported, "'x'"),
    "objects": (
        lambda f: tagged(f.create_dataset("x", data=np.ones((1, 6), "u4")), b"table",
                         MATLAB_object_decode=np.int32(3)), Unsupported, "'x' (table)"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_73)
def test_hostile_v73_is_refused_by_cause(name: str, tmp_path: Path) -> None:
    fill, error, words = HOSTILE_73[name]
    path = v73(tmp_path / "x.mat", fill)

    with pytest.raises(error) as raised:
        decode(path)

    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_file_of_v73_that_is_cut_off_is_damaged_and_not_in_use(tmp_path: Path) -> None:
    path = v73(tmp_path / "x.mat", one)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(Corrupt, match="cannot be opened as HDF5: truncated file"):
        decode(path)


def test_one_dataset_may_be_referred_to_from_everywhere(tmp_path: Path) -> None:
    """MATLAB writes ``[]`` once, and refers to it from every cell that has one."""

    def fill(file: h5py.File) -> None:
        empty = tagged(file.create_dataset("#refs#/a", data=np.zeros(2, "u8")),
                       b"canonical empty", MATLAB_empty=np.uint8(1))  # fmt: skip
        cell = tagged(file.create_dataset("c", (3, 1000), h5py.ref_dtype), b"cell")
        cell[...] = empty.ref

    with mat.read(Source(str(v73(tmp_path / "x.mat", fill)))) as bundle:
        assert bundle.names == [f"c/{number}" for number in range(1, 3001)]
        assert {array.shape for array in bundle.arrays} == {(0, 0)}
        assert bundle["c/3000"].data.shape == (0, 0)


def test_bad_variables_of_v73_are_noted_beside_good_ones(tmp_path: Path) -> None:
    def fill(file: h5py.File) -> None:
        one(file)
        external(file)
        HOSTILE_73["objects"][0](file.create_group("g"))
        file["l"] = h5py.SoftLink("/x")

    path = v73(tmp_path / "x.mat", fill)
    with mat.read(Source(str(path))) as bundle:
        assert bundle.names == ["x"]
        assert len(bundle.notes) == 3


@pytest.mark.parametrize("length", [2, 255, 2**28, 2**32 - 1])
def test_names_of_fields_with_lengths_that_cannot_be(length: int, tmp_path: Path) -> None:
    """The HDF5 library would allocate what such a length says, or crash."""

    def fill(file: h5py.File) -> None:
        group = tagged(file.create_group("s"), b"struct")
        group["f"] = np.ones((1, 1))
        names = np.empty(1, object)
        names[0] = np.array([b"f"], "S1")
        group.attrs.create("MATLAB_fields", names, dtype=h5py.vlen_dtype(np.dtype("S1")))

    path = v73(tmp_path / "x.mat", fill)
    assert len(decode(path)) == 1
    data = path.read_bytes()
    heap = struct.pack("<Q", data.index(b"GCOL") - 512)
    at = data.index(heap + struct.pack("<I", 1)) - 4
    path.write_bytes(data[:at] + struct.pack("<I", length) + data[at + 4 :])

    with pytest.raises(
        Corrupt, match="element of variable length|texts of attribute MATLAB_fields are longer"
    ):
        decode(path)


# --- every cut, and random damage ---------------------------------------------------------------


def borders(data: bytes) -> Iterator[int]:
    """Yield where elements of an uncompressed v5 file begin, at any depth, and places beside."""
    for place in range(128, len(data), 4):
        yield from (place - 1, place, place + 1)


@pytest.mark.parametrize("name", ["octave_v6.mat", "scipy_v6.mat", "octave_v4.mat"])
def test_cut_at_every_border(name: str, tmp_path: Path) -> None:
    """Whole variables may be missing, which nothing in the file tells; never parts of them."""
    data = (FIXTURES / name).read_bytes()
    whole = decode(FIXTURES / name)
    path = tmp_path / "cut.mat"
    for length in some(sorted({*range(130), *borders(data)}), 300, name):
        path.write_bytes(data[:length])
        try:
            found = decode(path)
        except RaconvertError:
            continue
        assert found == whole[: len(found)], length


@pytest.mark.parametrize("name", ["octave_v7.mat", "scipy_v7.mat"])
def test_cut_anywhere_in_compressed_variables(name: str, tmp_path: Path) -> None:
    data = (FIXTURES / name).read_bytes()
    whole = decode(FIXTURES / name)
    path = tmp_path / "cut.mat"
    for length in some(range(0, len(data), 3), 150, name):
        path.write_bytes(data[:length])
        try:
            found = decode(path)
        except RaconvertError:
            continue
        assert found == whole[: len(found)], length


def damaged(data: bytes, rng: random.Random, start: int) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(start, len(found))
        found[place] = rng.choice((0, 1, 127, 128, 255, found[place] ^ 1 << rng.randrange(8)))
    return bytes(found)


ROUNDS_IN_A_PROCESS = rounds(150, 40)
IN_A_PROCESS = """
import sys
from pathlib import Path
from os.path import dirname
sys.path[:0] = [sys.argv[1], dirname(sys.argv[1])]
import random
import test_mat_hostile as tests
data, path = Path(sys.argv[2]).read_bytes(), Path(sys.argv[3])
rng = random.Random(1)
for _ in range(tests.ROUNDS_IN_A_PROCESS):
    path.write_bytes(tests.damaged(data, rng, 512))
    try:
        tests.decode(path)
    except tests.RaconvertError as error:
        assert str(path) in str(error), error
print("survived")
"""


@pytest.mark.parametrize("name", ["matio_test_file_hdf5", "matjl_struct", "matjl_complex", "ours"])
def test_damage_to_v73_crashes_nothing(
    name: str, tmp_path: Path, corpus: Callable[..., Path]
) -> None:
    """In a process of its own: the HDF5 library has crashed on damaged types and lengths."""
    source = tmp_path / "ours.mat"
    source.write_bytes(SAMPLES["v73.mat"])
    if name != "ours":
        source = corpus("mat-hdf5", "mat73", f"{name}.mat")
    here = str(Path(__file__).resolve().parent)
    command = [sys.executable, "-c", IN_A_PROCESS, here, str(source), str(tmp_path / "x.mat")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "survived"), done.stderr
