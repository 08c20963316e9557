"""Sources that are decoded front to back, pieces cut anew, bounded inflation, JSON of metadata."""

from __future__ import annotations

import gzip
import json as standard
import sys
import tracemalloc
import zlib
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import gathered, recut
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.regions import full_key
from raconvert.arrays.sources import Decoded
from raconvert.errors import Corrupt, TooLarge
from raconvert.files.inflate import (
    GZIP_WBITS,
    LIBDEFLATE_FROM,
    MAX_RATIO,
    RAW_WBITS,
    ZLIB_WBITS,
    Inflater,
    inflated,
    inflater,
)
from raconvert.files.limits import DEFAULT
from raconvert.metadata.json import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

PADDED = np.dtype({"names": ["a", "b"], "formats": ["u1", "<u4"], "offsets": [0, 4]})


class Counting(Decoded):
    """The numbers 0, 1, 2, …, and how often they were decoded."""

    decoded = 0
    short = 0

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        self.decoded += 1
        step = max(1, max_bytes // self.dtype.itemsize)
        for start in range(0, self.count - self.short, step):
            yield np.arange(start, min(start + step, self.count - self.short), dtype=self.dtype)


def counting(shape: tuple[int, ...] = (3, 4, 5), max_memory: int = 1 << 20) -> Counting:
    return Counting(shape, np.dtype("<u2"), what="the numbers", max_memory=max_memory)


KEYS = [
    0,
    -1,
    slice(1, 3),
    ...,
    (1, ..., 2),
    (slice(None), 3),
    (0, 1, 2),
    (..., slice(None, None, -2)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_regions_are_those_of_numpy(key: Any) -> None:
    whole = np.arange(60, dtype="<u2").reshape(3, 4, 5)

    assert np.array_equal(counting()[key], whole[key])
    assert np.array_equal(whole[full_key(key, 3)], whole[key])


@pytest.mark.parametrize("key", [(0, 0, 0, 0), (..., 0, ...)], ids=repr)
def test_keys_that_numpy_refuses(key: Any) -> None:
    with pytest.raises(IndexError) as ours:
        full_key(key, 3)
    with pytest.raises(IndexError) as theirs:
        np.zeros((1, 1, 1))[key]

    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("dtype", [">i4", ">M8[D]", ">U3", "S3", ">f2,u1"])
@pytest.mark.parametrize("key", [(), ..., (1, 2)], ids=str)
def test_one_element_keeps_its_type(dtype: str, key: Any) -> None:
    table = np.arange(12).reshape(3, 4).astype(dtype)
    values = table if isinstance(key, tuple) and key else table[2, 3:4].reshape(())
    array = Array(element_of(values.dtype), values.shape[::-1], index_order="C", data=values)

    assert type(array[key]) is np.ndarray
    assert array[key].dtype == values.dtype
    assert array[key].item() == values[key].item()


def test_the_whole_is_decoded_once_while_a_part_is_held() -> None:
    source = counting()
    held = source[1]
    source[2], source[0, 1]
    assert source.decoded == 1

    del held
    source[0]
    assert source.decoded == 2


def test_too_much_is_refused_before_it_is_decoded() -> None:
    source = counting(max_memory=119)

    with pytest.raises(TooLarge, match="the numbers whole in memory needs 120 bytes"):
        source[0]
    assert source.decoded == 0


@pytest.mark.parametrize("short", [1, -1])
def test_a_stream_of_another_length_is_corrupt(short: int) -> None:
    source = counting()
    source.short = short

    with pytest.raises(Corrupt, match="the numbers (ended early|has more)"):
        source[...]


@given(lengths=st.lists(st.integers(0, 9), max_size=9), count=st.integers(1, 12))
def test_pieces_are_cut_anew(lengths: list[int], count: int) -> None:
    whole = np.arange(sum(lengths), dtype="<i4")
    pieces = np.split(whole, np.cumsum(lengths)[:-1]) if lengths else []

    found = [piece.copy() for piece in recut(pieces, count, whole.dtype)]

    assert [piece.size for piece in found[:-1]] == [count] * (len(found) - 1)
    assert np.array_equal(np.concatenate([whole[:0], *found]), whole)


def test_padding_of_structures_is_kept() -> None:
    raw = np.frombuffer(bytes(range(64)), PADDED)

    cut = b"".join(piece.tobytes() for piece in recut([raw[:3], raw[3:]], 2, PADDED))

    assert cut == bytes(range(64))
    assert gathered([raw[:5], raw[5:]], (2, 4), PADDED, "it").tobytes() == bytes(range(64))


PACKED = {
    RAW_WBITS: lambda data: zlib.compress(data)[2:-4],
    ZLIB_WBITS: zlib.compress,
    GZIP_WBITS: gzip.compress,
}


@pytest.mark.parametrize("wrapping", PACKED)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_inflation_in_pieces(wrapping: int, step: int) -> None:
    data = np.random.default_rng(1).integers(0, 4, 3000, np.uint8).tobytes()
    packed = PACKED[wrapping](data)
    inflater = Inflater((packed[n : n + 5] for n in range(0, len(packed), 5)), wrapping, "x")

    pieces = list(inflater.pieces(step))

    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= step
    assert inflater.eof
    if wrapping == ZLIB_WBITS:
        assert inflated(packed, len(data)) == inflated(packed, len(data) + 1) == data


def test_a_bomb_is_inflated_no_further_than_asked() -> None:
    bomb = zlib.compress(bytes(10_000_000), 9)
    assert len(bomb) * MAX_RATIO > 10_000_000

    inflater = Inflater([bomb], ZLIB_WBITS, "x")
    assert len(inflater.read(1000)) == 1000
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        inflated(bomb, 1000)


@pytest.mark.parametrize("cut", [1, 4, 20])
def test_a_stream_that_is_cut_off_or_damaged(cut: int) -> None:
    packed = zlib.compress(bytes(range(256)))
    wrong = packed[:-1] + bytes([packed[-1] ^ 1])
    with pytest.raises(Corrupt, match="cut off"):
        list(Inflater([packed[:-cut]], ZLIB_WBITS, "x").pieces())
    with pytest.raises(ValueError, match="cut off"):
        inflated(packed[:-cut], 256)
    with pytest.raises(Corrupt, match="cannot be inflated"):
        list(Inflater([wrong], ZLIB_WBITS, "x").pieces())
    with pytest.raises(ValueError, match="is damaged"):
        inflated(wrong, 256)
    with pytest.raises(ValueError, match="more than 255 bytes"):
        inflated(packed, 255)
    assert inflated(packed + b"?", 256) == bytes(range(256))
    with pytest.raises(ValueError, match="follow it"):
        inflated(packed + b"?", 256, strict=True)


@pytest.mark.parametrize("nbytes", [1, 500, LIBDEFLATE_FROM - 1, LIBDEFLATE_FROM, 100_000])
@pytest.mark.parametrize("fast", [True, False], ids=["libdeflate", "zlib"])
def test_every_way_to_inflate_takes_and_refuses_the_same(
    nbytes: int, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fast:
        pytest.importorskip("deflate", reason="libdeflate is not there: zlib does the same")
    else:
        monkeypatch.setitem(sys.modules, "deflate", None)
    data = np.random.default_rng(2).integers(0, 9, nbytes, np.uint8).tobytes()
    packed = zlib.compress(data)
    wrong = packed[:-1] + bytes([packed[-1] ^ 1])

    for most in (nbytes, nbytes + 1, 2 * nbytes + 9999):
        assert inflater(most)(packed) == inflater(most, strict=True)(packed) == data
        assert inflater(most)(packed + b"more") == data
        for odd, what in (
            (packed + b"more", "follow it"),
            (packed + packed[-4:-1] + b"?", "follow it"),
            (wrong, "is damaged"),
            (packed[:-1], "cut off"),
        ):
            with pytest.raises(ValueError, match=what):
                inflater(most, strict=True)(odd)
    with pytest.raises(ValueError, match=f"more than {nbytes - 1} bytes"):
        inflater(nbytes - 1)(packed)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers(-99, 99) | st.just("$bytes"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_metadata_survives_json(value: Any) -> None:
    text = dumps(value)

    assert text.isascii()
    assert "\n" not in text
    assert loads(text, DEFAULT) == value
    standard.loads(text)  # anybody can read it


def test_json_of_odd_values() -> None:
    assert str(loads(dumps(float("nan")), DEFAULT)) == "nan"
    assert dumps({"when": datetime(2026, 1, 2, 3), "day": date(2026, 1, 2)}) == (
        '{"when":{"$time":"2026-01-02T03:00:00"},"day":{"$date":"2026-01-02"}}'
    )
    assert loads('{"$mapping":[[1,{"$bytes":"AP8="}]]}', DEFAULT) == {1: b"\x00\xff"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"$bytes":"?"}',
        '{"$date":"soon"}',
        '{"$dict":[[[1],2]]}',
        '{"$dict":[[1152921504606846976,2]]}',
    ],
)
def test_text_that_is_not_ours(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of many kinds, all of this class
        loads(text, DEFAULT)


def test_json_that_is_nested_too_deep() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(ValueError, match="nested"):
        dumps(value)
    with pytest.raises(ValueError, match="recursion"):
        loads("[" * 100_000, DEFAULT)


def test_recutting_a_small_array_takes_no_more_memory_than_it_has() -> None:
    tracemalloc.start()
    pieces = list(
        recut([np.arange(20, dtype="u1"), np.arange(5, dtype="u1")], 1 << 24, np.dtype("u1"))
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pieces[0].tolist() == [*range(20), *range(5)]
    assert peak < 1 << 20
