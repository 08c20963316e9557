"""Headers of chunk indexes against the shape that they are for, before the library believes them.

h5py writes datasets with an index of each kind; then one field of it is changed, with the checksum
of the object made right again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import h5py
import jld2_file as jld2
import numpy as np
import pytest
from cases import every
from h5py import h5d, h5p

import raconvert
from raconvert.errors import Corrupt

if TYPE_CHECKING:
    from pathlib import Path

UNLIMITED = (1 << 64) - 1
VALUES = np.arange(24, dtype="i4").reshape(4, 6)
GZIP = {"compression": 1}
SINGLE, IMPLICIT, FIXED, EXTENSIBLE, TREE = range(1, 6)
EARLY = h5p.create(h5p.DATASET_CREATE)
EARLY.set_alloc_time(h5d.ALLOC_TIME_EARLY)
# The kind of index, what makes h5py write it, and the signature of its header.
INDEXES: dict[str, tuple[int, dict[str, Any], bytes]] = {
    "single": (SINGLE, {"chunks": (4, 6)}, b""),
    "single gzip": (SINGLE, {"chunks": (4, 6), **GZIP}, b""),
    "implicit": (IMPLICIT, {"chunks": (2, 3), "dcpl": EARLY}, b""),
    "fixed": (FIXED, {"chunks": (2, 3)}, b"FAHD"),
    "fixed gzip": (FIXED, {"chunks": (2, 3), **GZIP}, b"FAHD"),
    "fixed with room": (FIXED, {"chunks": (2, 3), "maxshape": (9, 6)}, b"FAHD"),
    "first": (EXTENSIBLE, {"chunks": (2, 3), "maxshape": (None, 6)}, b"EAHD"),
    "last gzip": (EXTENSIBLE, {"chunks": (2, 3), "maxshape": (4, None), **GZIP}, b"EAHD"),
    "both": (TREE, {"chunks": (2, 3), "maxshape": (None, None)}, b"BTHD"),
    "both gzip": (TREE, {"chunks": (2, 3), "maxshape": (None, None), **GZIP}, b"BTHD"),
}
HEADED = [name for name, (_, _, mark) in INDEXES.items() if mark]


def made(path: Path, name: str, *, empty: bool = False) -> bytearray:
    with h5py.File(path, "w", libver="latest") as file:
        values = {"shape": (4, 6), "dtype": "i4"} if empty else {"data": VALUES}
        file.create_dataset("x", **values, **INDEXES[name][1])
    return bytearray(path.read_bytes())


def place_of_kind(data: bytearray) -> int:
    """The place of the kind of the index, the last byte before the fields of that kind."""
    (found,) = re.finditer(b"[\4\5]\2[\0-\3]\3\1(?:\4\6|\2\3)\4", data)
    return found.end()


def changed(path: Path, data: bytearray, place: int, new: bytes) -> None:
    """Write the file with other bytes at a place of the header of the object."""
    begin = data.rindex(b"OHDR", 0, place)
    end = next(
        at
        for at in range(place, len(data))
        if data[at : at + 4] == jld2.lookup3(bytes(data[begin:at])).to_bytes(4, "little")
    )
    data[place : place + len(new)] = new
    data[end : end + 4] = jld2.lookup3(bytes(data[begin:end])).to_bytes(4, "little")
    path.write_bytes(data)


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("empty", [False, True])
def test_each_kind_is_read(name: str, empty: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    data = made(path, name, empty=empty)
    assert data[place_of_kind(data)] == INDEXES[name][0]
    assert (raconvert.read(path)["x"] == (0 * VALUES if empty else VALUES)).all()


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("kind", [6, 255])
def test_kinds_that_do_not_exist(name: str, kind: int, tmp_path: Path) -> None:
    data = made(tmp_path / "x.h5", name)
    changed(tmp_path / "x.h5", data, place_of_kind(data), bytes([kind]))
    with pytest.raises(Corrupt, match="of an unknown kind|unknown chunk index type"):
        raconvert.read(tmp_path / "x.h5")


def as_bytes(*limits: int | None) -> bytes:
    return b"".join((UNLIMITED if n is None else n).to_bytes(8, "little") for n in limits)


@every("name", INDEXES)
@every("limits", [(4, 6), (None, 6), (4, None), (None, None), (3, None), (4, 5)])
def test_kinds_belong_to_axes_without_limit(
    name: str, limits: tuple[int | None, int | None], tmp_path: Path
) -> None:
    """Lists are for none, extensible arrays for one and trees for more; no axis is beyond its own."""
    kind, options, _ = INDEXES[name]
    data = made(tmp_path / "x.h5", name)
    old = options.get("maxshape", (4, 6))
    changed(tmp_path / "x.h5", data, data.index(as_bytes(4, 6, *old)) + 16, as_bytes(*limits))
    of_kind = {SINGLE: 0, IMPLICIT: 0, FIXED: 0, EXTENSIBLE: 1, TREE: 2}[kind]
    if limits.count(None) != of_kind or limits in [(3, None), (4, 5)]:
        with pytest.raises(Corrupt, match="unlimited|greater than maxdim"):  # some, the library
            raconvert.read(tmp_path / "x.h5")
    elif name == "fixed with room":
        with pytest.raises(Corrupt, match=r"does not belong to the shape.*expected 4.*got 10"):
            raconvert.read(tmp_path / "x.h5")
    elif limits == old:
        assert (raconvert.read(tmp_path / "x.h5")["x"] == VALUES).all()


@pytest.mark.parametrize("name", ["implicit", "fixed", "fixed gzip", "fixed with room"])
@pytest.mark.parametrize("empty", [False, True])
def test_several_chunks_without_an_index(name: str, empty: bool, tmp_path: Path) -> None:
    data = made(tmp_path / "x.h5", name, empty=empty)
    changed(tmp_path / "x.h5", data, place_of_kind(data), bytes([SINGLE]))
    with pytest.raises(Corrupt, match="is for one chunk, and there are several"):
        raconvert.read(tmp_path / "x.h5")


@pytest.mark.parametrize("name", HEADED)
def test_headers_behind_the_end(name: str, tmp_path: Path) -> None:
    kind, _, mark = INDEXES[name]
    data = made(tmp_path / "x.h5", name)
    at = place_of_kind(data) + 1 + {FIXED: 1, EXTENSIBLE: 5, TREE: 6}[kind]
    assert data[at : at + 8] == data.index(mark).to_bytes(8, "little")
    for address in (len(data) - 3, len(data), 1 << 62):
        changed(tmp_path / "x.h5", data, at, address.to_bytes(8, "little"))
        with pytest.raises(Corrupt, match="lies outside the file"):
            raconvert.read(tmp_path / "x.h5")


# Of each field of a header: its place, its bytes, and what may not stand there.
FIELDS = {
    b"FAHD": {"mark": (0, b"FAHX"), "version": (4, b"\1"), "entries": (8, b"\5"),
              "many entries": (9, b"\1")},
    b"EAHD": {"mark": (0, b"FAHD"), "version": (4, b"\1")},
    b"BTHD": {"mark": (0, b"BTLF"), "version": (4, b"\1"), "kind": (5, b"\5")},
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), [(n, f) for n in HEADED for f in FIELDS[INDEXES[n][2]]])
def test_fields_of_headers(name: str, field: str, tmp_path: Path) -> None:
    mark = INDEXES[name][2]
    data = made(tmp_path / "x.h5", name)
    place, new = FIELDS[mark][field]
    at = data.index(mark) + place
    assert data[at : at + len(new)] != new
    data[at : at + len(new)] = new
    (tmp_path / "x.h5").write_bytes(data)
    with pytest.raises(Corrupt, match="does not belong to the shape|is of another kind|B-tree has"):
        raconvert.read(tmp_path / "x.h5")


@pytest.mark.parametrize("name", [name for name in HEADED if INDEXES[name][0] != TREE])
def test_a_filter_makes_entries_larger(name: str, tmp_path: Path) -> None:
    """Address, or address, size of 1 to 8 bytes and mask; and the header says which of the two."""
    mark = INDEXES[name][2]
    data = made(tmp_path / "x.h5", name)
    at = data.index(mark) + 5
    filtered = name.endswith("gzip")
    assert data[at] == filtered
    assert data[at + 1] in (range(13, 21) if filtered else (8,))
    wrong = {(0, 8)} if filtered else {(1, 13)}
    wrong |= {(filtered, n) for n in ((12, 21, 8, 0) if filtered else (7, 9, 13, 0, 16))}
    for client, size in wrong:
        data[at : at + 2] = client, size
        (tmp_path / "x.h5").write_bytes(data)
        with pytest.raises(Corrupt, match="index of the chunks"):
            raconvert.read(tmp_path / "x.h5")


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("options", [{}, GZIP], ids=str)
def test_any_number_of_axes_without_limit(
    count: int, options: dict[str, Any], tmp_path: Path
) -> None:
    values = np.arange(96, dtype="i4").reshape(2, 4, 3, 4)
    most = (None,) * count + values.shape[count:]
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=values, chunks=(1, 2, 2, 3), maxshape=most, **options)
    assert (raconvert.read(tmp_path / "x.h5")["x"] == values).all()


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("axis", [0, 1])
def test_chunks_without_length(name: str, axis: int, tmp_path: Path) -> None:
    data = made(tmp_path / "x.h5", name)
    changed(tmp_path / "x.h5", data, place_of_kind(data) - 3 + axis, b"\0")
    with pytest.raises(Corrupt):
        raconvert.read(tmp_path / "x.h5")


@pytest.mark.parametrize("name", ["both", "both gzip"])
@pytest.mark.parametrize("shape", [(0, 6), (4, 0), (9, 9)])
def test_trees_of_which_nothing_is_left(name: str, shape: tuple[int, int], tmp_path: Path) -> None:
    """Nodes of 2,048 bytes, of which none is written, in a file that is shorter."""
    path = tmp_path / "x.h5"
    made(path, name, empty=True)
    with h5py.File(path, "a", libver="latest") as file:
        file["x"][0, 0] = 1
        file["x"].resize((0, 0))
        file["x"].resize(shape)
    made_small = tmp_path / "y.h5"
    with h5py.File(made_small, "w", libver="latest") as file:
        file.create_dataset("x", (4, 6), "i4", **INDEXES[name][1]).resize(shape)
    for one in (path, made_small):
        assert np.array_equal(raconvert.read(one)["x"], np.zeros(shape, "i4"))
    assert made_small.stat().st_size < 2048
