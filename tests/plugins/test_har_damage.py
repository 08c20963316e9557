"""HAR files of which one header is damaged: the others are read, and nothing is guessed."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import rounds
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
            values = np.asarray(bundle[name].data)
            found[name] = values.astype(values.dtype.newbyteorder("<")).tobytes()
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
    for _ in range(rounds(300, 80)):
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
    assert problems > rounds(50, 13)


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


@pytest.mark.parametrize("count", [0, 1, 7])
def test_sizes_are_looked_for_only_where_the_type_has_as_many(count: int, tmp_path: Path) -> None:
    """The second record of an unknown type may end behind its count, and so may a damaged one."""
    path = tmp_path / "x.har"
    for kind, words in ((b"ZZ", "data type 'ZZ'"), (b"2R", "wrong number of sizes of a 2R header")):
        raconvert.write(path, {"AAA": np.arange(3, dtype="f4")}, overwrite=True)
        with path.open("ab") as file:
            second = b"    " + kind + b"FULL" + b" " * 70 + struct.pack("<i", count)
            for record in (b"BBB ", second, b"    " + struct.pack("<i", 1)):
                mark = struct.pack("<i", len(record))
                file.write(mark + record + mark)
        bundle = har.read(Source(str(path)))
        assert bundle.names == ["AAA", "BBB"]
        assert words in str(bundle["BBB"].problem)
        skipped = har.read(Source(str(path)), unknown="skip").names
        assert skipped == (["AAA"] if kind == b"ZZ" else ["AAA", "BBB"])


@pytest.mark.parametrize("name", [b" BB ", b"  B ", b"   B", b"B B ", b"BBBB", b"bb  "])
def test_a_name_is_written_back_with_its_blanks(name: bytes, tmp_path: Path) -> None:
    """Its array is called by it without those before and behind it."""
    raconvert.write(
        tmp_path / "x.har", {n: np.arange(3, dtype="f4") for n in ("AAA", "BBB", "CCC")}
    )
    data = bytearray((tmp_path / "x.har").read_bytes())
    start, end = headers(data)[1][0]
    data[start:end] = name
    (tmp_path / "x.har").write_bytes(data)

    raconvert.convert(tmp_path / "x.har", tmp_path / "y.har")

    assert har.read(Source(str(tmp_path / "x.har"))).names[1] == name.strip().decode()
    assert (tmp_path / "y.har").read_bytes() == data


@pytest.mark.parametrize("name", [b"    ", b"A/B ", b"\x01BC "])
def test_a_header_with_a_damaged_name_is_an_array_called_by_its_place(
    name: bytes, tmp_path: Path
) -> None:
    """It must not go unnoticed, as records of the one before."""
    path = tmp_path / "x.har"
    for value in (3, 7):  # the header before is damaged, and whole
        damaged_file(path, value=value)
        data = bytearray(path.read_bytes())
        start, end = headers(data)[2][0]
        data[start:end] = name
        path.write_bytes(data)

        found = values_of(path)
        place = f"byte {start - 4}"
        assert list(found) == ["AAA", "BBB", place]
        assert found["AAA"] == np.arange(3, dtype="f4").tobytes()
        assert (found["BBB"] is None, found[place]) == (value == 3, None)
        with pytest.raises(WouldLose, match=f"'{place}': .*damaged name"):
            raconvert.convert(path, tmp_path / "x.npz")


def test_a_file_that_ends_before_a_header_does_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    damaged_file(path, value=7)
    data = path.read_bytes()
    path.write_bytes(data[: headers(data)[2][-1][0] - 4])

    found = values_of(path)
    assert list(found) == ["AAA", "BBB", "CCC"]
    assert found["CCC"] is None
    assert raconvert.read(f"{path}#BBB").tolist() == [1, 2, 3]
    with pytest.raises(Corrupt, match=r"file ends before .*'CCC'"):
        raconvert.read(f"{path}#CCC")
    with pytest.raises(WouldLose, match=r"1 of its 3 arrays.*(?s:.*)'CCC'"):
        raconvert.convert(path, tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["every_type.har", "harpy.har"])
def test_a_file_cut_anywhere_keeps_the_headers_before_and_names_the_rest(
    name: str, tmp_path: Path
) -> None:
    contents = (GOOD / name).read_bytes()
    path = tmp_path / "x.har"
    path.write_bytes(contents)
    whole = values_of(path)
    ends = [records[-1][1] + 4 for records in headers(contents)]
    borders = {start - 4 for start, _ in spans(contents)}
    rng = random.Random(4)
    for size in [
        *rng.sample(range(ends[0] + 1, len(contents)), rounds(150, 40)),
        *sorted(borders)[: rounds(40, 20)],
    ]:
        if size < ends[0] or size in ends:
            continue
        path.write_bytes(contents[:size])
        kept = sum(end <= size for end in ends)

        found = values_of(path)

        names = list(whole)[:kept]
        assert list(found)[:kept] == names
        assert {n: found[n] for n in names} == {n: whole[n] for n in names}
        broken = [n for n in found if n not in names]
        assert broken
        assert all(found[n] is None for n in broken)
        with pytest.raises(WouldLose):
            raconvert.convert(path, tmp_path / "x.npz")


@pytest.mark.parametrize("side", ["leading", "trailing", "both"])
@pytest.mark.parametrize("name", ["every_type.har", "harpy.har"])
def test_damaged_marks_cost_one_header(name: str, side: str, tmp_path: Path) -> None:
    """Every record of every header once; what is lost is never silent."""
    contents = (GOOD / name).read_bytes()
    path = tmp_path / "x.har"
    path.write_bytes(contents)
    whole = values_of(path)
    rng = random.Random(side)
    places = [
        (number, start, end)
        for number, records in enumerate(headers(contents))
        for start, end in records
        if start > 4 or side != "both"  # one at least of the first two tells the framing
    ]
    for number, start, end in rng.sample(places, min(len(places), rounds(200, 60))):
        damaged = bytearray(contents)
        for at in {"leading": [start - 4], "trailing": [end], "both": [start - 4, end]}[side]:
            damaged[at + rng.randrange(4)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)

        found = values_of(path)

        owner = list(whole)[number]
        sound = {n: v for n, v in whole.items() if n != owner}
        assert {n: v for n, v in found.items() if v is not None} == sound
        broken = [n for n, v in found.items() if v is None]
        assert broken
        if len(headers(contents)[number]) and start != headers(contents)[number][0][0]:
            assert owner in broken
        with pytest.raises(WouldLose):
            raconvert.convert(path, tmp_path / "x.npz")


def test_two_damaged_records_never_hide_a_header_silently(tmp_path: Path) -> None:
    contents = (GOOD / "every_type.har").read_bytes()
    path = tmp_path / "x.har"
    path.write_bytes(contents)
    whole = values_of(path)
    parts = headers(contents)
    rng = random.Random(11)
    gaps = 0
    for _ in range(rounds(300, 80)):
        damaged = bytearray(contents)
        for start, end in rng.sample([r for part in parts[1:] for r in part], 2):
            for at in rng.choice([[start - 4], [end], [start - 4, end]]):
                damaged[at : at + 4] = rng.randbytes(4)
        path.write_bytes(damaged)

        found = values_of(path)

        for name, value in found.items():
            assert value is None or value == whole[name]
        missing = [n for n in whole if found.get(n) is None]
        broken = [n for n, v in found.items() if v is None]
        assert missing
        assert broken
        nameless = [n for n in broken if " " in n]
        assert nameless or set(missing) == set(broken)
        gaps += any(n.startswith(("bytes", "from")) for n in nameless)
    assert gaps > rounds(20, 5)


def test_what_follows_damage_that_nobody_can_pass_is_one_entry(tmp_path: Path) -> None:
    """A length that leads nowhere, and a file that is cut off behind it."""
    path = tmp_path / "x.har"
    damaged_file(path, value=7)
    data = bytearray(path.read_bytes())
    start, _ = headers(data)[1][1]
    struct.pack_into("<i", data, start - 4, 1 << 20)
    path.write_bytes(data[:-2])

    found = har.read(Source(str(path)))

    assert found.names == ["AAA", "BBB", f"from byte {start - 4}"]
    assert [a.problem is None for a in found.arrays] == [True, False, False]
    assert raconvert.read(f"{path}#AAA").tolist() == [0, 1, 2]
    report = raconvert.convert(path, tmp_path / "x.npz", allow="arrays")
    assert f"from byte {start - 4}" in str(report.allowed)


@pytest.mark.parametrize("framing", ["big", "lahey"])
def test_damaged_marks_of_other_framings(framing: str, tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    arrays = {n: np.arange(40, dtype="f4") + k for k, n in enumerate(("AAA", "BBB", "CCC"))}
    raconvert.write(path, arrays, out_opts={"framing": framing})
    contents = path.read_bytes()
    start, end = contents.index(b"BBB "), contents.index(b"CCC ")
    rng = random.Random(6)
    broken = 0
    for _ in range(rounds(300, 80)):
        damaged = bytearray(contents)
        damaged[rng.randrange(start, end - 4)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)

        found = values_of(path)

        assert found["AAA"] == arrays["AAA"].tobytes()
        assert found["CCC"] == arrays["CCC"].tobytes()
        broken += found.get("BBB") is None
    assert broken > rounds(50, 13)


def test_headers_of_one_name_do_not_block_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    damaged_file(path, value=7)
    data = bytearray(path.read_bytes())
    start, end = headers(data)[2][0]
    data[start:end] = b"BBB "
    path.write_bytes(data)

    assert values_of(path)["AAA"] == np.arange(3, dtype="f4").tobytes()
    with pytest.raises(Corrupt, match="two headers are called 'BBB'"):
        raconvert.read(f"{path}#BBB")
    with pytest.raises(WouldLose, match="1 of its 2 arrays"):
        raconvert.convert(path, tmp_path / "x.npz")


def test_damaged_names_are_listed_one_by_one_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    damaged_file(path, value=7)
    name = struct.pack("<i4si", 4, b"\x01BC ", 4)
    path.write_bytes(path.read_bytes() + name * 5000)

    names = har.read(Source(str(path))).names

    assert len(names) == 3 + 100 + 1
    assert names[-1].startswith("from byte ")


DAMAGE = {  # how the bytes of the second header are damaged, and what it is called then
    "trailing mark": (lambda d, b, c: d.__setitem__(c - 8, d[c - 8] ^ 1), "BBB"),
    "leading mark": (lambda d, b, c: d.__setitem__(b + 8, d[b + 8] ^ 1), "BBB"),
    "name": (lambda d, b, c: d.__setitem__(b, 1), "byte 341"),
    "field": (lambda d, b, c: d.__setitem__(b + 92, 9), "BBB"),
    "mark of the name": (lambda d, b, c: d.__setitem__(b - 4, 5), "byte 341"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_verb_names_the_header_that_is_damaged(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, out = (str(tmp_path / name) for name in ("good.har", "bad.har", "out.npz"))
    damaged_file(Path(good), value=7)
    data = bytearray(Path(good).read_bytes())
    change, name = DAMAGE[damage]
    change(data, data.index(b"BBB "), data.index(b"CCC "))
    Path(bad).write_bytes(data)

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(list(words))
        return code, "".join(capsys.readouterr())

    lost = name == "BBB"
    for words, code, texts in (
        (["info", bad], 0, [name, "cannot be read", "1 of 3 arrays cannot be read"]),
        (["verify", bad], 1, [f"FAILED {bad}#{name}", f"ok {bad}#AAA", f"ok {bad}#CCC"]),
        (["digest", bad], 1, [f"{bad}#{name}", f"  {bad}#AAA", f"  {bad}#CCC"]),
        (["diff", bad, good], 1, ["AAA: same", "CCC: same", "in a" if lost else "BBB: only in b"]),
        (["diff", good, bad], 1, ["AAA: same", "CCC: same", "in b" if lost else "BBB: only in a"]),
        (["diff", f"{bad}#CCC", f"{good}#CCC"], 0, ["equal"]),
        (["digest", f"{bad}#CCC"], 0, ["#CCC"]),
        (["digest", f"{bad}#{name}"], 1, ["cannot read"]),
        ([bad, "-o", out], 4, ["1 of its 3 arrays", f"'{name}'", "--allow arrays"]),
        ([bad, "-o", out, "--allow", "arrays"], 0, ["allowed loss", f"'{name}'"]),
    ):
        found, said = run(*words)
        assert (found, [text for text in texts if text not in said]) == (code, []), (words, said)
    with np.load(out) as made:
        assert {n: v.tolist() for n, v in made.items()} == {"AAA": [0, 1, 2], "CCC": [2, 3, 4]}
