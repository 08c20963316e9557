"""Bytes that nothing leads to mean nothing: what was deleted, replaced, or only looks like it.

A generator gives files a life: objects, links and attributes of every kind are made, changed,
moved and deleted again, in every version of the format, and the file is closed and opened on the
way. Whatever h5py reads of it then, raconvert must read, and must say nothing against.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import h5py
import jld2_file as jld2
import numpy as np
import pytest
from raconvert.plugins.hdf5.dense import dense_attribute
from raconvert.plugins.hdf5.files import File, info_of
from raconvert.plugins.hdf5.ondisk.header import attribute_data
from test_hdf5_flips import LIBVERS, places

from raconvert.conversion.read import open_bundle
from raconvert.errors import Unsafe
from raconvert.plugin import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIVES = int(os.environ.get("RACONVERT_HDF5_LIVES", "16"))
TEXT = h5py.string_dtype()
# HDF5 2.0 writes the fill value of texts while it reads chunks that are absent, or cannot.
UNREAD = "no write intent on file"
LENGTHS = (1, 2, 5, 6, 7, 8, 9, 14, 15, 16, 30)  # of names: a heap keeps them in pieces of 8 bytes


class Life:
    """One file and the random numbers that decide what becomes of it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.chance = path, random.Random(seed)
        self.libver = self.chance.choice(LIBVERS)
        self.file = h5py.File(path, "w", libver=self.libver, track_order=self.chance.random() < 0.3)
        self.groups = ["/"]
        for _ in range(self.chance.choice((10, 40, 120))):
            self.chance.choice(STEPS)(self, self.file[self.chance.choice(self.groups)], self.name())
            if self.chance.random() < 0.06:
                self.file.close()
                self.file = h5py.File(path, "r+", libver=self.libver)
        self.file.close()

    def name(self) -> str:
        return self.chance.choice("abcdefgh") * self.chance.choice(LENGTHS) + str(
            self.chance.randrange(6)
        )

    def word(self) -> str:
        letters = self.chance.choice((0, 1, 3, 6, 7, 8, 9, 15, 40, 320))
        return "".join(self.chance.choice("abcdefghé ") for _ in range(letters))

    def value(self) -> Any:
        kinds: tuple[Callable[[], Any], ...] = (
            self.word,
            lambda: [self.word() for _ in range(self.chance.randrange(1, 30))],
            lambda: np.arange(self.chance.choice((1, 5, 200, 8000)), dtype="f8"),
            lambda: self.chance.randrange(100),
            lambda: "x" * self.chance.choice((10, 5000, 60_000)),
        )
        return self.chance.choice(kinds)()

    def hard(self, group: h5py.Group) -> list[str]:
        links = ((name, group.get(name, getlink=True)) for name in group)
        return [name for name, link in links if isinstance(link, h5py.HardLink)]

    def datasets(self, group: h5py.Group) -> list[h5py.Dataset]:
        return [group[n] for n in self.hard(group) if isinstance(group[n], h5py.Dataset)]

    # Steps ----------------------------------------------------------------------------------------

    def attributes(self, group: h5py.Group, _: str) -> None:
        owner = self.chance.choice([group, *self.datasets(group)])
        for _ in range(self.chance.choice((1, 12, 12))):
            name, value = self.name(), self.value()
            if name in owner.attrs and self.chance.random() < 0.5:
                del owner.attrs[name]
                continue
            try:
                owner.attrs.create(name, value, dtype=TEXT if isinstance(value, list) else None)
            except (OSError, RuntimeError):  # larger than a header of old versions holds
                pass

    def numbers(self, group: h5py.Group, name: str) -> None:
        if name not in self.links(group):
            data = np.arange(self.chance.choice((6, 20)), dtype="i4")
            group.create_dataset(name, data=data, **self.layout())

    def texts(self, group: h5py.Group, name: str) -> None:
        if name not in self.links(group):
            data = [self.word() for _ in range(self.chance.choice((4, 9)))]
            fill = self.chance.choice(({}, {"fillvalue": "none"}))
            group.create_dataset(name, data=data, dtype=TEXT, **self.layout(), **fill)

    def layout(self) -> dict[str, Any]:
        chunks: tuple[dict[str, Any], ...] = (
            {}, {"chunks": (3,)}, {"chunks": (2,), "maxshape": (None,)},
            {"chunks": (2,), "compression": 1}, {"chunks": (2,), "maxshape": (50,)},
        )  # fmt: skip
        return self.chance.choice(chunks)

    def group(self, group: h5py.Group, name: str) -> None:
        if name not in self.links(group) and len(self.groups) < 8:
            made = group.create_group(name, track_order=self.chance.random() < 0.3)
            self.groups.append(made.name)

    def delete(self, group: h5py.Group, _: str) -> None:
        if names := self.links(group):
            name = self.chance.choice(names)
            path = f"{group.name.rstrip('/')}/{name}"
            del group[name]
            self.groups = [one for one in self.groups if f"{one}/".find(f"{path}/") != 0]

    def move(self, group: h5py.Group, name: str) -> None:
        there = [one.name.rpartition("/")[2] for one in self.datasets(group)]
        if there and name not in self.links(group):
            group.move(self.chance.choice(there), name)

    def soft(self, group: h5py.Group, name: str) -> None:
        if name not in self.links(group):
            group[name] = h5py.SoftLink("/" + self.name() * self.chance.choice((1, 3)))

    def resize(self, group: h5py.Group, _: str) -> None:
        if found := [one for one in self.datasets(group) if one.maxshape != one.shape]:
            self.chance.choice(found).resize((self.chance.choice((0, 1, 5, 40)),))

    def write(self, group: h5py.Group, _: str) -> None:
        if found := [one for one in self.datasets(group) if one.dtype == object and one.size]:
            one = self.chance.choice(found)
            one[self.chance.randrange(one.size)] = self.word()

    def many(self, group: h5py.Group, name: str) -> None:
        for number in range(20):
            if f"{name}{number}" not in self.links(group):
                group[f"{name}{number}"] = number

    def links(self, group: h5py.Group) -> list[str]:
        return list(group)


STEPS = (
    *[Life.attributes] * 3, *[Life.delete] * 3, Life.numbers, Life.texts, Life.texts, Life.group,
    Life.move, Life.soft, Life.resize, Life.write, Life.many,
)  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value as lists, texts and numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def truth(path: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the values and attributes of each dataset, as h5py reads them."""
    found = {}

    def note(name: str, one: Any) -> None:
        if isinstance(one, h5py.Dataset):
            try:
                values = plain(one[()])
            except OSError as error:
                assert UNREAD in str(error)  # noqa: PT017
                values = None
            found[name] = values, {key: plain(value) for key, value in one.attrs.items()}

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def read(path: Path) -> tuple[dict[str, tuple[Any, dict[str, Any]]], list[str]]:
    """Return the same as raconvert reads it, and what it says against the file."""
    said = []
    with open_bundle(path) as bundle:
        said += [note for note in bundle.notes if "another name" not in note]
        said += [str(array.problem) for array in bundle.arrays if array.problem is not None]
        found = {
            array.name: (
                plain(np.asarray(array[...])),
                {key: plain(value) for key, value in array.meta.attributes.items()},
            )
            for array in bundle.arrays
            if array.problem is None
        }
    return found, [one for one in said if "leads to nothing" not in one and UNREAD not in one]


@pytest.mark.parametrize("part", range(4))
def test_whatever_a_file_has_been_through(part: int, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    for seed in range(part, LIVES, 4):
        Life(path, seed)
        expected = truth(path)
        if not expected:
            continue
        found, said = read(path)
        assert said == [], seed
        readable = {name for name, (values, _) in expected.items() if values is not None}
        assert found.keys() & readable == readable, seed
        assert found.keys() <= expected.keys(), seed
        for name, (values, attributes) in expected.items():
            if name not in found:
                continue
            assert values is None or found[name][0] == values, (seed, name)
            known = {key: found[name][1].get(key) for key in attributes}
            assert known == attributes, (seed, name)


GARBAGE = b"GCOL\1\0\0\0" + b"\xff" * 56  # a global heap by its name, and nothing like it


def many_texts(file: h5py.File, name: str) -> dict[str, str]:
    """Write a dataset with texts in dense storage; return them."""
    said = {f"text {number}": f"value {number}" for number in range(20)}
    file[name] = np.arange(3)
    file[name].attrs.update(said)
    return said


@pytest.mark.parametrize("kind", ["heap", "message"])
def test_elements_that_look_like_texts_are_no_texts(kind: str, tmp_path: Path) -> None:
    """Another HDF5 file as an array of bytes: what lies in it is not of this one."""
    with h5py.File(tmp_path / "other.h5", "w", libver="latest") as file:
        many_texts(file, "x")
    inner = bytearray((tmp_path / "other.h5").read_bytes())
    heap = inner.index(b"GCOL")
    for at in places(bytes(inner), heap.to_bytes(8, "little")):
        inner[at - 4 : at] = b"\xff" * 4  # lengths of the texts
    held = GARBAGE if kind == "heap" else bytes(inner).replace(b"GCOL", b"gcol")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["bytes"] = np.frombuffer(held, "u1")
        said = many_texts(file, "x")
        words = ["none", "a", "bc", ""]
        file.create_dataset("t", data=words, dtype=TEXT, chunks=(2,), fillvalue="none")
        file.create_dataset("u", (2,), np.dtype([("t", TEXT, (2,)), ("n", "i4")]))

    found, notes = read(path)

    assert [note for note in notes if "in a fixed width" not in note] == []
    assert found["x"][1] == said
    assert found["t"][0] == words


def test_a_virtual_dataset_of_texts_looks_at_those_of_its_sources_alone(tmp_path: Path) -> None:
    words = ["a", "bcd", ""]
    for name in ("x.h5", "source.h5"):
        with h5py.File(tmp_path / name, "w", libver="latest") as file:
            file["bytes"] = np.frombuffer(GARBAGE, "u1")
            if name == "source.h5":
                file.create_dataset("t", data=words, dtype=TEXT, chunks=(2,), fillvalue="x")
                continue
            layout = h5py.VirtualLayout((3,), TEXT)
            layout[:] = h5py.VirtualSource("source.h5", "t", (3,), TEXT)
            file.create_virtual_dataset("t", layout)

    found, notes = read(tmp_path / "x.h5")

    assert (found["t"][0], notes) == (words, [])


@pytest.mark.parametrize("libver", LIBVERS, ids=lambda one: one[0])
def test_attributes_are_found_where_the_library_finds_them(
    libver: tuple[str, str], tmp_path: Path
) -> None:
    """Small and large ones, in heaps of one block and of many, some of them deleted."""
    chance = random.Random(libver[0])
    for count in (9, 60, 900):
        path = tmp_path / "x.h5"
        with h5py.File(path, "w", libver=libver) as file:
            group = file.create_group("g", track_order=True)
            for number in range(count):
                size = chance.choice((1, 50, 300, 700 if number < 100 else 1))
                group.attrs[f"a{number}"] = np.full(size, number)
            for number in range(count):
                if chance.random() < 0.3:
                    del group.attrs[f"a{number}"]
            expected = {key.encode(): value.tobytes() for key, value in group.attrs.items()}
        file = File(Source(str(path)))
        try:
            address = info_of(file.fid, b"g").address
            found = attribute_data(file, address)
            for name in expected.keys() - found.keys():
                one = dense_attribute(file, address, name)
                found[name] = one.data if one is not None else b""
            assert dense_attribute(file, address, b"none") is None
        finally:
            file.close()
        assert found == expected


def test_one_message_for_many_attributes(tmp_path: Path) -> None:
    """Every record leads to the same message: what it needs is that many times as much."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["large"] = ["t"] * 240
        file["x"].attrs.update({f"a{number}": number for number in range(24)})
    data = bytearray(path.read_bytes())
    (leaf,) = places(bytes(data), b"BTLF\0\x08")
    records = range(leaf + 6, leaf + 6 + 25 * 17, 17)
    longest = max((bytes(data[at : at + 8]) for at in records), key=lambda one: one[6:8][::-1])
    for at in records:
        data[at : at + 8] = longest
    end = records.stop
    data[end : end + 4] = jld2.lookup3(bytes(data[leaf:end])).to_bytes(4, "little")
    path.write_bytes(data)

    _, notes = read(path)

    assert any("larger than the file" in note for note in notes)


@pytest.mark.parametrize("kind", ["filter", "addresses"])
def test_bytes_like_a_heap_are_no_damage(kind: str, tmp_path: Path) -> None:
    """Where references to texts cannot be seen, such bytes are not read, and not called damaged."""
    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    more: dict[str, Any] = {}
    if kind == "addresses":
        fcpl.set_sizes(4, 4)
    else:
        more = {"chunks": (2,), **pytest.importorskip("hdf5plugin").Zstd()}
    for name, mark in (("good", b"GCOL\1\0\0 "), ("odd", b"GCOL\1\0\0\0")):
        path = tmp_path / f"{name}.h5"
        with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl)) as file:
            file["raw"] = np.frombuffer(mark + b"\xff" * 100, "u1")
            file.create_dataset("s", data=["ab", "cde"], dtype=TEXT, **more)
        with h5py.File(path) as file:
            assert file["s"][:].tolist() == [b"ab", b"cde"]  # it is sound
    with open_bundle(str(tmp_path / "good.h5")) as bundle:
        assert bundle["s"][...].tolist() == [b"ab", b"cde"]
    with open_bundle(str(tmp_path / "odd.h5")) as bundle:
        assert isinstance(bundle["s"].problem, Unsafe)
        assert "could take for a damaged heap" in str(bundle["s"].problem)
        assert bundle["raw"].problem is None
