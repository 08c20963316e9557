"""HAR files of which one header contradicts itself: the others are read, and nothing is guessed."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from raconvert.plugins import har

import raconvert
from raconvert.cli import main
from raconvert.errors import Corrupt, RaconvertError, Unsupported, WouldLose
from raconvert.files.source import Source
from raconvert.inspect.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = Path(__file__).parent.parent.parent / "fixtures" / "har" / "good"


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the payloads of a little-endian file begin and end."""
    at = 0
    while at < len(data):
        (nbytes,) = struct.unpack_from("<i", data, at)
        yield at + 4, at + 4 + nbytes
        at += 8 + nbytes


def headers(data: bytes) -> list[list[tuple[int, int]]]:
    """The payloads of each header, its name first: the only records of four bytes."""
    found: list[list[tuple[int, int]]] = []
    for start, end in spans(data):
        if end - start == 4:
            found.append([])
        found[-1].append((start, end))
    return found


def values_of(path: Path) -> dict[str, bytes | None]:
    """The elements of every array; None for those that cannot be read."""
    found: dict[str, bytes | None] = {}
    for name in (bundle := har.read(Source(str(path)))).names:
        try:
            found[name] = np.asarray(bundle[name].data).tobytes()
        except RaconvertError:
            found[name] = None
    return found


@pytest.mark.parametrize("name", ["every_type.har", "harpy.har"])
def test_damage_inside_one_header_leaves_the_others_as_they_were(name: str, tmp_path: Path) -> None:
    contents = (GOOD / name).read_bytes()
    path = tmp_path / "x.har"
    path.write_bytes(contents)
    whole = values_of(path)
    parts = headers(contents)
    assert len(parts) == len(whole) > 1
    rng = random.Random(9)
    problems = 0
    for _ in range(300):
        number = rng.randrange(len(parts) - 1)  # the last one may look cut off
        records = parts[number][1:]
        start, end = rng.choice(records)
        damaged = bytearray(contents)
        for _ in range(rng.choice([1, 2])):
            damaged[rng.randrange(start, min(end, start + 96))] = rng.choice([0, 1, 32, 200, 255])
        path.write_bytes(damaged)
        found = values_of(path)

        assert list(found) == list(whole)
        bad = list(whole)[number]
        problems += found[bad] is None
        assert {n: v for n, v in found.items() if n != bad} == {
            n: v for n, v in whole.items() if n != bad
        }
    assert problems > 50


def damaged_file(path: Path, *, at: int = 80, value: int = 3) -> list[str]:
    """Write three vectors, of which the second has a wrong number of sizes; return the names."""
    arrays = {name: np.arange(3, dtype="f4") + n for n, name in enumerate(("AAA", "BBB", "CCC"))}
    raconvert.write(path, arrays, overwrite=True)
    data = bytearray(path.read_bytes())
    start, _ = headers(data)[1][1]
    struct.pack_into("<i", data, start + at, value)
    path.write_bytes(data)
    return list(arrays)


def test_a_damaged_header_is_refused_by_name_or_left_out_when_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.har"
    damaged_file(path)

    assert raconvert.read(f"{path}#AAA").tolist() == [0, 1, 2]
    assert raconvert.read(f"{path}#CCC").tolist() == [2, 3, 4]
    with pytest.raises(Corrupt, match=r"wrong number of sizes.*'BBB', record 1"):
        raconvert.read(f"{path}#BBB")
    with pytest.raises(WouldLose, match=r"(?s)1 of its 3 arrays.*'BBB'.*wrong number of sizes"):
        raconvert.convert(path, tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()
    assert main([str(path), "-o", str(tmp_path / "y.npz"), "--allow", "arrays"]) == 0
    assert "BBB" in capsys.readouterr().err
    with np.load(tmp_path / "y.npz") as made:
        assert sorted(made.files) == ["AAA", "CCC"]
        assert made["CCC"].tolist() == [2, 3, 4]
    found = verify(path, go_on=True)
    assert not found["same"]
    assert [array["problem"] is None for array in found["arrays"]] == [True, False, True]


def test_a_header_of_an_unknown_type_does_not_block_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    damaged_file(path, at=4, value=int.from_bytes(b"DEFU", "little"))

    assert raconvert.read(f"{path}#CCC").tolist() == [2, 3, 4]
    with pytest.raises(Unsupported, match="'BBB' has the data type 'DE'"):
        raconvert.read(f"{path}#BBB")
    with pytest.raises(WouldLose, match="data type 'DE'"):
        raconvert.convert(path, tmp_path / "x.npz")


@pytest.mark.parametrize("name", [b"    ", b"A/B ", b"\x01BC "])
def test_a_damaged_name_behind_a_damaged_header_refuses_the_whole_file(
    name: bytes, tmp_path: Path
) -> None:
    """Otherwise the header of that name would go unnoticed, as records of the one before."""
    path = tmp_path / "x.har"
    for value in (3, 7):  # the header before is damaged, and whole
        damaged_file(path, value=value)
        data = bytearray(path.read_bytes())
        start, end = headers(data)[2][0]
        data[start:end] = name
        path.write_bytes(data)

        with pytest.raises(Corrupt):
            har.read(Source(str(path)))


def test_a_file_that_ends_before_a_header_does_is_refused_whole(tmp_path: Path) -> None:
    """Nobody knows which headers were cut off with the rest of this one."""
    path = tmp_path / "x.har"
    damaged_file(path, value=7)
    data = path.read_bytes()
    path.write_bytes(data[: headers(data)[2][-1][0] - 4])

    with pytest.raises(Corrupt, match=r"file ends before .*'CCC'"):
        har.read(Source(str(path)))
