"""Damage in B-trees of version 1, which have no checksum: told, or shown here not to be found."""

from __future__ import annotations

import itertools
import random
import struct
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from cases import rounds
from jld2_file import lookup3
from test_hdf5_flips import look, places

import raconvert
from raconvert.cli import main
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD = ("earliest", "v108")
VALUES = np.random.default_rng(1).integers(1, 1 << 20, (64, 48), "i4")
NAMES = [f"number{number:02}" for number in range(12)]


def small_file(path: Path, **options: Any) -> Path:
    """Twelve chunks, and a group of twelve links in two nodes."""
    with h5py.File(path, "w", libver=OLD) as file:
        for number, name in enumerate(NAMES):
            file[f"g/{name}"] = np.arange(number + 1)
        file.create_dataset("x", data=VALUES, chunks=(16, 16), **options)
        file["one of a longer name"] = 1
    return path


def nodes(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, begin, end of what is used) of each node of a tree or group."""
    at = -1
    while (at := min((p for p in (data.find(b"TREE", at + 1), data.find(b"SNOD", at + 1)) if p > 0),
                     default=-1)) > 0:  # fmt: skip
        count = struct.unpack_from("<H", data, at + 6)[0]
        if data[at : at + 4] == b"SNOD":
            yield "links", at, at + 8 + 40 * count
        elif data[at + 4] == 0:
            yield "group", at, at + 32 + 16 * count
        else:
            yield "chunks", at, at + 24 + 40 * count + 32


def behind(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the bytes of each node that no entry uses.

    Of trees of version 2 those behind the checksum; of version 1 those behind the last entry.
    """
    leaf, inner = struct.unpack_from("<HH", data, 16)
    chunks = struct.unpack_from("<H", data, 24)[0] if data[8] else 32
    sizes = {"links": 8 + 40 * 2 * leaf, "group": 32 + 16 * 2 * inner,
             "chunks": 56 + 40 * 2 * chunks}  # fmt: skip
    for kind, begin, used in nodes(data) if data[8] < 2 else ():
        yield used, begin + sizes[kind]
    for mark in (b"BTLF", b"BTIN"):
        for at in places(bytes(data), mark):
            end = checksum_end(data, at)
            if end:
                yield end, at + node_bytes(data, at)


def checksum_end(data: bytes, at: int) -> int:
    """The end of what the checksum of a structure covers, itself included; 0 if none fits."""
    return next((end + 4 for end in range(at + 6, min(at + 2048, len(data) - 4))
                 if data[end : end + 4] == lookup3(bytes(data[at:end])).to_bytes(4, "little")), 0)  # fmt: skip


def node_bytes(data: bytes, at: int) -> int:
    """The bytes of a node of a tree of version 2: as its header says, which has the same kind."""
    header = next(
        place for place in places(bytes(data), b"BTHD") if data[place + 5] == data[at + 5]
    )
    return int(struct.unpack_from("<I", data, header + 6)[0])


def datasets(path: Path) -> int:
    """The number of datasets that h5py finds."""
    found: list[str] = []

    def note(name: str, one: Any) -> None:
        if isinstance(one, h5py.Dataset):
            found.append(name)

    with h5py.File(path) as file:
        file.visititems(note)
    return len(found)


def read_all(path: Path) -> tuple[dict[str, bytes], list[str]]:
    """The elements of all arrays by name, and what is said of those that cannot be read."""
    found, said = {}, []
    try:
        with open_bundle(path) as bundle:
            said += bundle.notes
            for array in bundle.arrays:
                try:
                    found[array.name] = np.asarray(array.data[...]).tobytes()
                except RaconvertError as error:
                    said.append(str(error))
    except RaconvertError as error:
        said.append(str(error))
    return found, said


@pytest.mark.parametrize("options", [{}, {"compression": 4}], ids=["plain", "deflated"])
def test_single_bits_of_nodes_are_found(tmp_path: Path, options: dict[str, Any]) -> None:
    """One bit anywhere in the nodes: nothing changes, or something is said.

    A sample of the bits. Left alone are pointers to bytes that nobody claims: see the last test.
    """
    data = small_file(tmp_path / "seed.h5", **options).read_bytes()
    whole, said = read_all(tmp_path / "seed.h5")
    assert said == []
    assert whole["x"] == VALUES.tobytes()
    bits = [8 * at + bit for _, begin, end in nodes(data) for at in range(begin, end)
            for bit in range(8)]  # fmt: skip
    paths = []
    for number in random.Random(4).sample(bits, len(bits) // rounds(25, 100)):
        damaged = bytearray(data)
        damaged[number // 8] ^= 1 << number % 8
        paths.append(tmp_path / f"{number}.h5")
        paths[-1].write_bytes(damaged)
    fine = [path for path, outcome in look(paths) if outcome == "read"]
    assert len(fine) < len(paths)
    silent = [path for path in fine if (found := read_all(path))[0] != whole and not found[1]]
    assert [path.name for path in silent if not leads_astray(path)] == []
    assert len(silent) <= 3


def leads_astray(path: Path) -> bool:
    """True if a chunk lies where nothing else does, by what h5py says."""
    with h5py.File(path) as file:
        chunks = file["x"].id
        found = [chunks.get_chunk_info(n) for n in range(chunks.get_num_chunks())]
        places = [(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in found]
        for name in NAMES:
            dataset = file["g"][name].id
            places.append((dataset.get_offset(), dataset.get_offset() + 8 * dataset.shape[0]))
    places += [(begin, end) for _, begin, end in nodes(path.read_bytes())]
    places.sort()
    return all(end <= begin for (_, end), (begin, _) in itertools.pairwise(places))


@pytest.mark.parametrize("kind", ["links", "group", "chunks"])
def test_smaller_counts_are_found(tmp_path: Path, kind: str) -> None:
    data = small_file(tmp_path / "seed.h5").read_bytes()
    places = [at for found, at, _ in nodes(data) if found == kind]
    tried = 0
    for at in places:
        count = struct.unpack_from("<H", data, at + 6)[0]
        for fewer in range(count):
            damaged = bytearray(data)
            struct.pack_into("<H", damaged, at + 6, fewer)
            (tmp_path / "x.h5").write_bytes(damaged)
            found, said = read_all(tmp_path / "x.h5")
            tried += 1
            assert any("has an entry more than it counts" in line for line in said), (at, fewer)
            if kind == "chunks":
                assert "x" not in found
                assert found["g/number03"] == np.arange(4).tobytes()
            elif "x" in found:  # else its own link is hidden, too
                assert found["x"] == VALUES.tobytes()
    assert tried >= 2


def test_hidden_links_do_not_block_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(small_file(tmp_path / "seed.h5").read_bytes())
    at = [place for kind, place, _ in nodes(bytes(data)) if kind == "links"][-1]
    data[at + 6] = 1
    path = tmp_path / "x.h5"
    path.write_bytes(data)
    assert raconvert.read(path, "g/number00").tolist() == [0]
    assert main([str(path), "-o", str(tmp_path / "x.npz")]) == 4
    assert "counts" in capsys.readouterr().err
    words = ["-o", str(tmp_path / "x.npz"), "--allow", "arrays"]
    assert main([str(path), *words]) == 0
    assert "'g'" in capsys.readouterr().err
    assert np.array_equal(np.load(tmp_path / "x.npz")["x"], VALUES)


def test_deep_trees_with_fewer_entries(tmp_path: Path) -> None:
    """Every node of a tree of two levels, with one entry less."""
    path = tmp_path / "seed.h5"
    values = np.arange(1, 401)
    with h5py.File(path, "w", libver=OLD) as file:
        file.create_dataset("x", data=values, chunks=(1,))
    data = path.read_bytes()
    places = [at for kind, at, _ in nodes(data) if kind == "chunks"]
    assert {data[at + 5] for at in places} == {0, 1}
    for at in places:
        damaged = bytearray(data)
        struct.pack_into("<H", damaged, at + 6, struct.unpack_from("<H", data, at + 6)[0] - 1)
        path.write_bytes(damaged)
        with pytest.raises(Corrupt, match="has an entry more than it counts"):
            raconvert.read(path)


def test_short_names_at_the_end_of_a_group_are_not_found(tmp_path: Path) -> None:
    """The limit of what can be told: the library leaves names of 7 bytes behind, too."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=OLD) as file:
        for number in range(12):
            file[f"g/{number}"] = np.arange(number + 1)
    data = bytearray(path.read_bytes())
    at = next(at for kind, at, end in nodes(bytes(data)) if kind == "group" and end > at + 48)
    struct.pack_into("<H", data, at + 6, 1)
    path.write_bytes(data)
    found, said = read_all(path)
    assert said == []
    assert 0 < len(found) < 12
    with h5py.File(path) as file:
        assert len(file["g"]) == len(found)


def test_chunks_that_a_resized_dataset_lost_are_not_found(tmp_path: Path) -> None:
    """The limit of what can be told: the library leaves such keys where it removes chunks."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=OLD) as file:
        file.create_dataset("x", data=VALUES, chunks=(16, 16), maxshape=(None, None))
    data = bytearray(path.read_bytes())
    at = next(at for kind, at, _ in nodes(bytes(data)) if kind == "chunks")
    struct.pack_into("<H", data, at + 6, 3)
    path.write_bytes(data)
    got = raconvert.read(path, "x")
    assert np.array_equal(got[:16], VALUES[:16])
    assert not got[16:].any()


@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
@pytest.mark.parametrize("seed", range(6))
def test_bytes_behind_what_is_counted_mean_nothing(tmp_path: Path, seed: int, libver: str) -> None:
    """Anything may stand there: what was in memory, entries of other nodes, or random bytes."""
    chance = random.Random(seed)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for group in range(chance.randint(1, 12)):
            for number in range(chance.choice([1, 2, 5, 9, 40, 400])):
                file[f"{group}/{'n' * chance.randint(0, 12)}{number}"] = (group, number)
        file["1/soft link"] = h5py.SoftLink("/" * 30 + "chunks 0")
        for number in range(6):
            sides = [chance.randint(5, 60), chance.randint(5, 60)]
            file.create_dataset(
                f"chunks {number}", sides, "i4", chunks=(chance.randint(1, 5), 4),
                maxshape=[None if chance.random() < 0.4 else side for side in sides],
                compression=chance.choice([None, 1]),
            )[: chance.randint(1, sides[0])] = np.arange(sides[1]) + 1  # fmt: skip
        for number in range(chance.choice([0, 5, 30])):
            file["chunks 0"].attrs[f"attribute {number}"] = f"text {number}"
    expected = read_all(path)
    assert expected[1] == [note for note in expected[1] if "another name" in note]
    count = datasets(path)
    assert len(expected[0]) == count
    data = bytearray(path.read_bytes())
    unused = list(behind(data))
    assert unused
    for _ in range(4):
        for begin, end in unused:
            if begin == end:
                continue
            source = chance.choice(unused)
            old = bytes(data[source[0] - 48 : source[0] - 48 + end - begin])
            random_bytes = bytes(chance.choices(range(256), k=end - begin))
            data[begin:end] = chance.choice(
                [bytes(end - begin), random_bytes, old.ljust(end - begin, b"\1")]
            )
        path.write_bytes(data)
        assert datasets(path) == count
        assert read_all(path) == expected


@pytest.mark.parametrize("seed", range(12))
def test_whole_files_of_every_history_are_read(tmp_path: Path, seed: int) -> None:
    """Written in any order, made longer and shorter, links removed: it is all as h5py reads it."""
    chance = random.Random(seed)
    path = tmp_path / "x.h5"
    rank = chance.randint(1, 3)
    with h5py.File(path, "w", libver=OLD) as file:
        shape = [chance.randint(10, (600, 80, 25)[rank - 1]) for _ in range(rank)]
        dataset = file.create_dataset(
            "x", shape, "i2", maxshape=(None,) * rank,
            chunks=tuple(chance.randint(1, 3) for _ in range(rank)),
            compression=chance.choice([None, 1]),
        )  # fmt: skip
        names = []
        for step in range(chance.randint(20, 300)):
            what = chance.random()
            if what < 0.1:
                dataset.resize([chance.randint(max(1, n // 2), n + 8) for n in dataset.shape])
            else:
                starts = [chance.randrange(n) for n in dataset.shape]
                box = tuple(slice(at, at + chance.randint(1, 5)) for at in starts)
                dataset[box] = step + 1
            if what < 0.7 or not names:
                names.append("n" * chance.randint(0, 12) + str(step))
                file[f"g/{names[-1]}"] = step
            else:
                del file[f"g/{names.pop(chance.randrange(len(names)))}"]
        expected = dataset[...]
    found, said = read_all(path)
    assert said == []
    assert found.pop("x") == expected.tobytes()
    assert sorted(found) == sorted(f"g/{name}" for name in names)


def test_a_chunk_that_leads_to_what_nobody_claims_is_not_found(tmp_path: Path) -> None:
    """The limit of what can be told: without a filter, any bytes are the elements of a chunk."""
    path = small_file(tmp_path / "x.h5")
    with h5py.File(path, "a", libver=OLD) as file:
        file["unused"] = np.zeros(4096, "u1")
        file["last"] = 1  # so that the file does not end there
        place = file["unused"].id.get_offset()
        del file["unused"]
    data = bytearray(path.read_bytes())
    at = next(begin for kind, begin, _ in nodes(bytes(data)) if kind == "chunks")
    child = at + 24 + 32
    other = struct.unpack_from("<Q", data, child + 40)[0]
    struct.pack_into("<Q", data, child, place)
    path.write_bytes(data)
    got = raconvert.read(path, "x")
    assert not got[:16, :16].any()
    assert np.array_equal(got[16:], VALUES[16:])
    for wrong in (at, other + 8, 96):  # the index itself, another chunk, the root group
        struct.pack_into("<Q", data, child, wrong)
        path.write_bytes(data)
        with pytest.raises(Corrupt, match="a chunk lies over another one"):
            raconvert.read(path, "x")
