"""Records of HAR made field by field: what is read of them, and every byte written back."""

from __future__ import annotations

import struct
import tracemalloc
from array import array
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import every
from raconvert.plugins import har
from raconvert.plugins.har import data, records, tables
from raconvert.plugins.har.header import MATRIX
from raconvert.plugins.har.walk import Header

import raconvert
from raconvert.errors import Corrupt, RaconvertError
from raconvert.files.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from raconvert.arrays.array import Array

MARKS = {"<": "<i", ">": ">i"}


def record(payload: bytes, order: str = "<") -> bytes:
    mark = struct.pack(MARKS[order], len(payload))
    return mark + payload + mark


def ints(*values: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}{len(values)}i", *values)


def real(
    kind: str,
    sizes: tuple[int, ...],
    labels: bytes = b"",
    *,
    name: str = "DATA",
    order: str = "<",
) -> bytes:
    """A header RE or RL whose value number n in Fortran order is n, in one part."""
    seven = sizes + (1,) * (7 - len(sizes))
    count = prod(seven)
    front = b"    " + f"{kind}FULL{'long name':70}".encode() + ints(7, *seven, order=order)
    box = [edge for size in seven for edge in (1, size)]
    parts = [
        front,
        *([b"    " + labels] if labels else []),
        b"    " + ints(3, 7, *seven, order=order),
        b"    " + ints(2, *box, order=order),
        b"    " + ints(1, order=order) + np.arange(1, count + 1, dtype=f"{order}f4").tobytes(),
    ]
    return b"".join(record(part, order) for part in (name.ljust(4).encode(), *parts))


def label_record(
    rank: int,
    *,
    names: tuple[str, ...] = (),
    status: str = "",
    logical: tuple[int, int] = (1, 1),
    numbers: tuple[int, ...] = (),
    elements: tuple[str, ...] = (),
    lists: int = 0,
    extra: int | None = None,
    order: str = "<",
) -> bytes:
    texts = b"".join(name.ljust(12).encode() for name in names)
    return (
        ints(lists, logical[0], rank, order=order)
        + b"COEF".ljust(12)
        + ints(logical[1], order=order)
        + texts
        + status.encode()
        + ints(*numbers, order=order)
        + ints(len(elements) if extra is None else extra, order=order)
        + b"".join(word.ljust(12).encode() for word in elements)
    )


def plain_labels(rank: int, **changes: Any) -> bytes:
    fields = {
        "names": tuple(f"S{n}" for n in range(rank)),
        "status": "u" * rank,
        "numbers": (0,) * rank,
    }
    return label_record(rank, **(fields | changes))


def only(path: Path, data: bytes) -> Array:
    path.write_bytes(data)
    (array,) = har.read(Source(str(path))).arrays
    return array


def problem(path: Path, data: bytes, order: str = "<") -> str:
    """Why the one header cannot be read, with a good one behind it."""
    path.write_bytes(data + real("RL", (2,), name="GOOD", order=order))
    first, good = har.read(Source(str(path))).arrays
    assert np.array_equal(np.asarray(good), [1, 2])
    return str(first.problem)


def assert_written_back(path: Path) -> None:
    out = path.with_suffix(".out.har")
    raconvert.convert(path, out, overwrite=True)
    assert out.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("sizes", "rank"),
    [((), 0), ((1,), 0), ((2,), 1), ((1, 2), 2), ((2, 1, 1), 1), ((3, 1, 2), 3), ((0,), 1),
     ((1, 0), 2), ((1, 1, 1, 1, 1, 1, 2), 7), ((2, 1, 2, 1, 2, 1, 2), 7), ((1, 1, 1, 1, 1, 3), 6)],
)  # fmt: skip
def test_reals_without_labels_have_no_axes_of_one_at_the_end(
    sizes: tuple[int, ...], rank: int, order: str, tmp_path: Path
) -> None:
    array = only(tmp_path / "x.har", real("RL", sizes, order=order))

    assert array.shape == (sizes + (1,) * 7)[:rank]
    expected = np.arange(1, array.count + 1, dtype="f4").reshape(array.shape, order="F")
    assert np.array_equal(raconvert.read(tmp_path / "x.har", "DATA"), expected)
    assert_written_back(tmp_path / "x.har")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("rank", range(-1, 9))
def test_reals_have_as_many_axes_as_their_labels_say(rank: int, order: str, tmp_path: Path) -> None:
    """And all other sizes are 1."""
    for sizes in ((), (2,), (1, 2), (2, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 2), (1, 1, 1, 3)):
        labels = plain_labels(max(0, min(rank, 7)))
        labels = labels[:8].replace(labels[4:8], ints(1)) + ints(rank) + labels[12:]
        labels = _swapped(labels, max(0, min(rank, 7))) if order == ">" else labels
        fits = 0 <= rank <= 7 and all(size == 1 for size in sizes[rank:])
        data = real("RE", sizes, labels, order=order)
        if not fits:
            told = problem(tmp_path / "x.har", data, order)
            assert "wrong number of dimensions" in told
            assert f"got {rank}" in told
            continue
        array = only(tmp_path / "x.har", data)
        assert array.shape == (sizes + (1,) * 7)[:rank]
        assert_written_back(tmp_path / "x.har")


def _swapped(labels: bytes, rank: int) -> bytes:
    """A label record in the other byte order."""
    head, middle = labels[:12], labels[12:24]
    texts = labels[28 : 28 + 13 * rank]
    rest = labels[28 + 13 * rank :]

    def other(raw: bytes) -> bytes:
        return np.frombuffer(raw, "<i4").byteswap().tobytes()

    return other(head) + middle + other(labels[24:28]) + texts + other(rest)


@pytest.mark.parametrize("first", [-1, 0, 1, 2])
@pytest.mark.parametrize("second", [-1, 1, 2, 256])
def test_logicals_are_written_back(first: int, second: int, tmp_path: Path) -> None:
    array = only(tmp_path / "x.har", real("RE", (2, 3), plain_labels(2, logical=(first, second))))

    assert array.shape == (2, 3)
    own = array.meta.formats["har"]
    assert own.get("logical", [1, 1]) == [first, second]
    assert_written_back(tmp_path / "x.har")


@every("numbers", [(0, 0), (0, 1), (7, 0), (-1, 2)])
@every("status", ["uu", "ue", "eu", "ee"])
@every("elements", range(8))
def test_numbers_and_explicit_elements_are_written_back(
    numbers: tuple[int, int], status: str, elements: int, tmp_path: Path
) -> None:
    words = tuple(f"word{n}" for n in range(elements))
    labels = plain_labels(2, numbers=numbers, status=status, elements=words)
    array = only(tmp_path / "x.har", real("RE", (1, 1), labels))

    left = iter([[word] for word in words])
    expected = [next(left, None) if letter == "e" else None for letter in status]
    assert [axis.labels and [*axis.labels] for axis in array.ra_axes] == expected
    assert_written_back(tmp_path / "x.har")


@pytest.mark.parametrize("extra", [-1, 8, 9, 1, 7, 1 << 30])
def test_more_or_fewer_elements_than_are_there(extra: int, tmp_path: Path) -> None:
    labels = plain_labels(2, elements=(), extra=extra)
    told = problem(tmp_path / "x.har", real("RE", (2, 3), labels))
    assert "label record has a wrong length" in told or "too short" in told
    labels = plain_labels(2, elements=("a",) * 8)
    told = problem(tmp_path / "x.har", real("RE", (2, 3), labels))
    assert "label record has a wrong length" in told


@pytest.mark.parametrize(
    "name", ["A   ", " A  ", "   A", "A B ", "\x7fA  ", "é   ", "A/  ", "/   "]
)
def test_names_of_headers(name: str, tmp_path: Path) -> None:
    data = real("RE", (2,), plain_labels(1)) + real("RE", (2,), plain_labels(1)).replace(
        b"DATA", name.encode("latin-1")
    )
    path = tmp_path / "x.har"
    path.write_bytes(data)
    if "/" in name or not name.isprintable():
        bundle = har.read(Source(str(path)))
        assert bundle.names == ["DATA", f"byte {len(data) // 2}"]
        assert "damaged name" in str(bundle.arrays[1].problem)
        return
    bundle = har.read(Source(str(path)))
    assert bundle.names == ["DATA", name.strip()]
    own = bundle.arrays[1].meta.formats["har"]
    assert own.get("name", bundle.names[1].ljust(4)) == name
    assert ("name" in own) == name.startswith(" ")
    assert_written_back(path)


@every("framing", ["little", "big", "lahey"])
@every("length", [3, 4, 5, 63, 64, 65, 16383, 16384, 16385])
def test_lengths_of_records_around_those_of_marks(
    framing: str, length: int, tmp_path: Path
) -> None:
    """A Lahey mark has as many bytes as its number needs: 6, 14, 22 or 30 bits of it."""
    payload = b"    " + b"x" * max(0, length - 4)
    payload = payload[:length]
    lead, body, trail = records.framed(framing, [payload])
    assert body == payload
    if framing == "lahey":
        for raw, value in ((lead, length), (trail[::-1], length + len(lead))):
            number = int.from_bytes(raw, "little")
            assert number >> 2 == value
            assert len(raw) == (number & 3) + 1
            assert len(raw) == next(k for k in range(1, 5) if value < 1 << (8 * k - 2))
    else:
        assert lead == trail == struct.pack({"little": "<i", "big": ">i"}[framing], length)
    start = b"\xfd" if framing == "lahey" else b""
    path = tmp_path / "x"
    path.write_bytes(start + lead + payload + trail)
    source = Source(str(path))
    with source.open() as file:
        found = records.Records(source, file, framing)
        if length < 4:
            with pytest.raises(Corrupt, match=f"impossible length.*got {length}"):
                found.at(found.first, "here")
            return
        one = found.at(found.first, "here")
    assert (one.offset, one.start) == (len(start), len(start + lead))
    assert (one.nbytes, one.end) == (length, source.size)
    assert payload.startswith(one.head)
    whole = start + lead + payload + trail
    for there in (0, 1, length, length + len(trail) - 1):
        path.write_bytes(whole[: len(start + lead) + there])
        source = Source(str(path))
        with source.open() as file:
            found = records.Records(source, file, framing)
            with pytest.raises(Corrupt, match=rf"a record, at here.* {length} bytes.*got {there}$"):
                found.at(found.first, "here")


@pytest.mark.parametrize("framing", ["little", "big", "lahey"])
def test_a_file_that_ends_inside_a_mark(framing: str, tmp_path: Path) -> None:
    lead, _, _ = records.framed(framing, [b"    " + bytes(20_000)])
    for cut in range(len(lead)):
        (tmp_path / "x").write_bytes(bytes(20) + lead[:cut])
        source = Source(str(tmp_path / "x"))
        with source.open() as file:
            found = records.Records(source, file, framing)
            with pytest.raises(Corrupt, match=rf"inside the mark.*byte 20; .*got {cut}"):
                found.at(20, "")


@pytest.mark.parametrize("framing", ["little", "big"])
@pytest.mark.parametrize("here", [1, 2, 3])
def test_matrices_in_parts(framing: str, here: int, tmp_path: Path) -> None:
    order = {"little": "<", "big": ">"}[framing]
    front = b"    2RFULL" + b" " * 70 + ints(2, 2, 3, order=order)
    parts = []
    for first in range(1, 4, here):
        last = min(3, first + here - 1)
        box = ints(0, 2, 3, 1, 2, first, last, order=order)
        values = np.arange(2 * first - 1, 2 * last + 1, dtype=f"{order}f4")
        parts.append(b"    " + box + values.tobytes())
    parts = [
        part[:4] + ints(len(parts) - n, order=order) + part[8:] for n, part in enumerate(parts)
    ]
    data = b"".join(record(part, order) for part in (b"MAT ", front, *parts))
    array = only(tmp_path / "x.har", data)
    assert np.array_equal(
        raconvert.read(tmp_path / "x.har", "MAT"), np.arange(1, 7).reshape(2, 3, order="F")
    )
    assert array.shape == (2, 3)
    assert MATRIX.nbytes == 4 + 4 * 7
    assert_written_back(tmp_path / "x.har")


@every("cut", range(1, 60))
def test_damage_at_every_byte_of_a_label_record(cut: int, tmp_path: Path) -> None:
    """Whatever is read nevertheless is written back as it was, or refused to be."""
    path = tmp_path / "x.har"
    labels = bytearray(plain_labels(2, elements=("word",)))
    for value in (0, 1, 2, 32, 255):
        changed = labels.copy()
        changed[-cut] = value
        try:
            array = only(path, real("RE", (1, 3), bytes(changed)))
            if array.problem is None:
                assert array.shape == (1, 3)
                assert_written_back(path)
        except RaconvertError as error:
            assert "x.har" in str(error)  # noqa: PT017 - others are no error


@pytest.mark.parametrize("empty", [0, 1, 100, 101, 102])
def test_how_many_headers_may_hold_nothing(empty: int, tmp_path: Path) -> None:
    """And how many hold something has no limit."""
    path = tmp_path / "x.har"
    full = b"".join(real("RL", (2,), name=f"D{n:03}") for n in range(103))
    path.write_bytes(b"".join(record(b"E%03d" % n) for n in range(empty)) + full)
    if empty <= 100:
        assert har.read(Source(str(path))).names == [f"D{n:03}" for n in range(103)]
    else:
        with pytest.raises(Corrupt, match="more than 100 headers hold nothing, at byte 1200"):
            har.read(Source(str(path)))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("Unk1", "Unk2"), []), (("REG", "COM"), ["REG", "COM"]), (("Unk1", "REG"), [None, "REG"]),
        (("REG", "Unk2"), ["REG", None]), (("", "REG"), [None, "REG"]),
    ],
)  # fmt: skip
def test_names_of_sets_without_labels(
    names: tuple[str, str], expected: list[str | None], tmp_path: Path
) -> None:
    array = only(tmp_path / "x.har", real("RE", (2, 3), plain_labels(2, names=names)))
    assert [axis.name for axis in array.ra_axes] == expected
    assert all(axis.labels is None for axis in array.ra_axes)
    assert "status" not in array.meta.formats["har"]
    assert_written_back(tmp_path / "x.har")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_explicit_element_is_the_label_of_one(size: int, tmp_path: Path) -> None:
    labels = plain_labels(2, names=("Unk1", "Unk2"), status="ue", elements=("food",))
    array = only(tmp_path / "x.har", real("RE", (2, size), labels))
    found = [axis.labels and [*axis.labels] for axis in array.ra_axes]
    assert found == ([None, ["food"]] if size == 1 else [])
    assert array.meta.formats["har"]["status"] == "ue"


def labelled(count: int, here: int, name: str = "DATA") -> bytes:
    """A vector with a list of labels, so many in each record; its values are 1, 2, ..."""
    labels = plain_labels(1, names=("SET",), status="k", lists=1)
    whole = real("RE", (count,), labels, name=name)
    words = [f"e{n}".ljust(12).encode() for n in range(count)]
    starts = range(0, count, here)
    lists = b"".join(
        record(b"    " + ints(len(starts) - n, count, len(words[at : at + here]))
               + b"".join(words[at : at + here]))
        for n, at in enumerate(starts)
    )  # fmt: skip
    place = whole.index(ints(3, 7, count)) - 8
    return whole[:place] + lists + whole[place:]


@pytest.mark.parametrize("here", [1, 7, 100, 500, 999, 1000])
def test_labels_in_several_records(here: int, tmp_path: Path) -> None:
    array = only(tmp_path / "x.har", labelled(1000, here))
    assert [*array.ra_axes[0].labels] == [f"e{n}" for n in range(1000)]
    assert_written_back(tmp_path / "x.har")


@pytest.mark.parametrize("different", [False, True])
def test_how_much_memory_labels_may_take(different: bool, tmp_path: Path) -> None:
    """100 bytes each are counted, once for a list that several headers have."""
    path = tmp_path / "x.har"
    second = labelled(1000, 1000, "MORE")
    path.write_bytes(
        labelled(1000, 1000) + (second.replace(b"e1 ", b"f1 ") if different else second)
    )
    needed = 200_000  # the second list is made before it is known that it is the first one
    for room in (needed, needed - 1):
        bundle = har.read(Source(str(path), max_memory=room))
        assert bundle.arrays[0].problem is None
        assert (bundle.arrays[1].problem is None) == (room == needed)
    third = labelled(1000, 1000, "LAST")
    path.write_bytes(path.read_bytes() + third)
    bundle = har.read(Source(str(path), max_memory=needed))
    assert [array.problem is None for array in bundle.arrays] == [True, True, not different]


LONGEST = {"little": (1 << 31) - 1, "big": (1 << 31) - 1, "lahey": (1 << 30) - 5}


@pytest.mark.parametrize("framing", LONGEST)
def test_the_longest_records(framing: str, tmp_path: Path) -> None:
    """Of 2 GiB in marks of 31 bits, of 1 GiB where a mark also counts the one before it."""
    for nbytes in (1 << 29, LONGEST[framing]):
        lead, trail = records.marks(framing, nbytes)
        with (tmp_path / "x").open("wb") as file:  # most of it a hole
            file.write(lead + b"    ")
            file.seek(len(lead) + nbytes)
            file.write(trail)
        source = Source(str(tmp_path / "x"))
        with source.open() as opened:
            found = records.Records(source, opened, framing).at(0, "")
        assert (found.nbytes, found.end) == (nbytes, source.size)
    if framing == "lahey":
        (tmp_path / "x").write_bytes(records.mark(LONGEST[framing] + 1) + b"    ")
        source = Source(str(tmp_path / "x"))
        with source.open() as opened, pytest.raises(Corrupt, match="impossible length"):
            records.Records(source, opened, framing).at(0, "")


def in_parts(count: int, kind: str = "<") -> bytes:
    """A vector of this length, each of whose values is a part of its own."""
    whole = [b"VEC ", b"    RLFULL" + b" " * 70 + ints(7, count, *[1] * 6, order=kind)]
    whole.append(b"    " + ints(2 * count + 1, 7, count, *[1] * 6, order=kind))
    for n in range(count):
        left = 2 * (count - n)
        whole.append(b"    " + ints(left, n + 1, n + 1, *[1] * 12, order=kind))
        whole.append(b"    " + ints(left - 1, order=kind) + struct.pack(f"{kind}f", n))
    return b"".join(record(part, kind) for part in whole)


@pytest.mark.parametrize("order", ["<", ">"])
def test_many_parts_take_one_look_each(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many records are taken apart does not grow with the number of usual parts."""
    taken = []
    really = records.Records.at
    monkeypatch.setattr(
        records.Records, "at", lambda self, *place: taken.append(1) or really(self, *place)
    )
    looks = []
    for count in (2, 10, 500):
        taken.clear()
        array = only(tmp_path / "x.har", in_parts(count, order))
        looks.append(len(taken))
        assert np.array_equal(raconvert.read(tmp_path / "x.har", "VEC"), np.arange(count))
        assert array.shape == (count,)
    assert looks[0] == looks[1] == looks[2]


@pytest.mark.parametrize("record_of", ["position", "data"])
def test_damage_of_any_number_of_a_part(record_of: str, tmp_path: Path) -> None:
    """No damaged mark, blank, counter or position goes unnoticed, or is written back as it was."""
    good = in_parts(4)
    begin = len(good) - 2 * (8 + 64) - 2 * (8 + 12)  # of the third part
    nbytes, start = (72, begin) if record_of == "position" else (16, begin + 72)
    for place in range(start, start + nbytes, 4):
        (old,) = struct.unpack_from("<i", good, place)
        for new in (old + 1, old - 1, old + 4, -1, 0, 1 << 20):
            if new == old:
                continue
            data = bytearray(good)
            struct.pack_into("<i", data, place, new)
            try:
                array = only(tmp_path / "x.har", bytes(data))
            except RaconvertError:
                continue
            if array.problem is None:  # a counter, or a value
                values = np.asarray(array).copy()
                values[2] = 2
                assert np.array_equal(values, np.arange(4))
                assert_written_back(tmp_path / "x.har")


@pytest.mark.parametrize("dims", [(), (0,), (1,), (7,), (8, 3), (3, 0, 2), (2, 5, 3, 1), (50, 2)])
def test_number_of_parts(dims: tuple[int, ...]) -> None:
    for limit in (1, 2, 7, 8, 20, 1000):
        pattern, repeats = tables.part_counts(dims, limit)
        assert tables.number_of_parts(dims, limit) == len(pattern) * repeats


def test_a_first_part_of_one_value_takes_no_memory() -> None:
    """The split is that of no limit; a pattern of so many parts of one value is not made."""
    header = Header("VEC ", 0)
    count = 1_000_000
    tracemalloc.start()
    data._note_split(header, array("q", [1, count - 1]), (count,), [7996, 7000])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert header.own == {}
