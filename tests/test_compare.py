"""`diff` and `verify`: by index, whatever the format, the memory order and the byte order are."""

from __future__ import annotations

import copy
import datetime
import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bundles import save as write_bundle_file
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raconvert
from raconvert.api import array_of
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.arrays.transpose import Transposed
from raconvert.cli import main
from raconvert.conversion.pipeline import convert
from raconvert.errors import Corrupt, UsageError
from raconvert.inspect.described import meta_differences
from raconvert.inspect.diff import compare_arrays, diff
from raconvert.inspect.elements import Rule
from raconvert.inspect.info import plain
from raconvert.inspect.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from raconvert.arrays.array import Array

SMALL = 1 << 19  # a limit that makes blocks of 64 KiB


def save(path: Path, values: Any) -> str:
    np.save(path, values)
    return str(path)


def pair(tmp_path: Path, a: Any, b: Any) -> tuple[str, str]:
    return save(tmp_path / "a.npy", a), save(tmp_path / "b.npy", b)


def data_of(tmp_path: Path, a: Any, b: Any, **options: Any) -> dict[str, Any]:
    return diff(*pair(tmp_path, a, b), **options)["arrays"][0]["data"]


# Equal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("bytes_order", ["<", ">"])
def test_memory_and_byte_order_do_not_count(order: str, bytes_order: str, tmp_path: Path) -> None:
    values = np.arange(60, dtype="<f4").reshape(3, 4, 5)

    found = diff(
        *pair(tmp_path, values, np.asarray(values.astype(f"{bytes_order}f4"), order=order))
    )

    assert found["same"]
    assert found["arrays"][0]["data"]["count"] == 60


def test_other_formats_hold_the_same(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", np.asfortranarray(np.arange(12).reshape(3, 4)))
    convert(source, tmp_path / "b.ra")
    convert(source, tmp_path / "c.ra", out_opts={"encoding": "leb128"})

    assert diff(source, tmp_path / "b.ra")["same"]
    assert diff(source, tmp_path / "c.ra")["same"]


@pytest.mark.parametrize(
    "values",
    [
        np.array([np.nan, 1.0, -np.nan, np.inf]),
        np.array([complex(np.nan, 1), 2j]),
        np.array(["2020", "NaT"], "M8[Y]"),
        np.array(["x", "yy"]),
        np.zeros((0, 3)),
        np.array(5),
        np.array([(1, np.nan)], [("a", "i2"), ("b", "f8")]),
    ],
    ids=["nan", "complex", "datetime", "text", "empty", "rank0", "structured"],
)
def test_a_file_equals_itself(values: Any, tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", values)

    assert diff(path, path)["same"]
    assert diff(path, path, bitwise=True)["same"]


# Different ---------------------------------------------------------------------------------------


def test_counts_and_largest_differences(tmp_path: Path) -> None:
    a = np.zeros((3, 4))
    b = a.copy()
    a[1, 2], b[1, 2] = 100.0, 101.0
    b[2, 3] = 0.5

    data = data_of(tmp_path, a, b)

    assert (data["differ"], data["count"], data["first"]) == (2, 12, [1, 2])
    assert (data["max_abs"], data["max_abs_index"]) == (1.0, [1, 2])
    assert (data["max_rel"], data["max_rel_index"]) == (1.0, [2, 3])


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_index_is_logical_in_every_order(orders: str, tmp_path: Path) -> None:
    a = np.zeros((300, 200, 3))
    b = a.copy()
    b[123, 45, 1] = 1
    a, b = np.asarray(a, order=orders[0]), np.asarray(b, order=orders[1])

    data = data_of(tmp_path, a, b, max_memory=SMALL)

    assert (data["differ"], data["first"]) == (1, [123, 45, 1])


NAN = math.nan


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [(complex(NAN, 1), complex(NAN, 1), True), (complex(1, NAN), complex(1, NAN), True),
     (complex(NAN, NAN), complex(NAN, NAN), True), (complex(NAN, 1), complex(NAN, 2), False),
     (complex(1, NAN), complex(2, NAN), False), (complex(NAN, 1), complex(1, NAN), False),
     (complex(NAN, 1), complex(NAN, NAN), False), (complex(NAN, 1), 1.0, False),
     (complex(1, NAN), 1.0, False)],
)  # fmt: skip
def test_nan_in_one_part_of_complex_numbers(
    tmp_path: Path, a: complex, b: complex, same: bool
) -> None:
    for left, right in ((a, b), (b, a)):
        files = pair(tmp_path, np.array([left, 3]), np.array([right, 3]))
        assert bool(diff(*files)["arrays"][0]["data"]["differ"] == 0) is same


def test_nan_on_one_side(tmp_path: Path) -> None:
    data = data_of(tmp_path, np.array([np.nan, np.nan, 1.0]), np.array([np.nan, 0.0, np.nan]))

    assert (data["differ"], data["nan_only_in_a"], data["nan_only_in_b"]) == (2, 1, 1)
    assert data["max_abs"] is None


def test_infinities(tmp_path: Path) -> None:
    data = data_of(tmp_path, np.array([np.inf, np.inf]), np.array([np.inf, -np.inf]))

    assert (data["differ"], data["max_abs"]) == (1, "inf")


def test_zero_signs_and_payloads_only_bitwise(tmp_path: Path) -> None:
    payload = np.array([0x7FF8000000000001, 0x8000000000000000], "u8").view("f8")
    files = pair(tmp_path, np.array([np.nan, 0.0]), payload)

    assert diff(*files)["same"]
    assert diff(*files, bitwise=True)["arrays"][0]["data"]["differ"] == 2


def test_tolerances(tmp_path: Path) -> None:
    a, b = np.array([1.0, 100.0]), np.array([1.001, 100.1])

    assert data_of(tmp_path, a, b, atol=0.01)["differ"] == 1
    assert data_of(tmp_path, a, b, rtol=0.0011)["differ"] == 0
    assert data_of(tmp_path, np.array([np.inf]), np.array([-np.inf]), rtol=1.0)["differ"] == 1
    assert data_of(tmp_path, np.array([np.inf]), np.array([np.inf]), rtol=1.0)["differ"] == 0
    assert data_of(tmp_path, a, b, atol=1.0)["max_abs"] == pytest.approx(0.1)
    with pytest.raises(UsageError, match="tolerance"):
        data_of(tmp_path, a, b, atol=1.0, bitwise=True)
    with pytest.raises(UsageError, match="negative"):
        data_of(tmp_path, a, b, atol=float("nan"))


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        (np.array([2**53 + 1], "i8"), np.array([2.0**53]), 1),
        (np.array([2**53], "i8"), np.array([2.0**53]), 0),
        (np.array([2**63 - 1], "i8"), np.array([2.0**63]), 1),
        (np.array([-(2**63)], "i8"), np.array([-(2.0**63)]), 0),
        (np.array([2**64 - 1], "u8"), np.array([2.0**64]), 1),
        (
            np.array([2**63, 2**63 + 2048, 2**64 - 2048], "u8"),
            np.array([2.0**63, 2.0**63 + 2048, 2.0**64 - 2048]),
            0,
        ),
        (np.array([2**64 - 1], "u8"), np.array([-1], "i8"), 1),
        (np.array([-1], "i1"), np.array([255], "u1"), 1),
        (np.array([3], "i4"), np.array([3 + 0j]), 0),
        (np.array([3], "i4"), np.array([3 + 1j]), 1),
        (np.array([True]), np.array([1.0]), 0),
        (np.array([1], "u1"), np.array([np.nan]), 1),
        (np.array([0.1], "f4"), np.array([0.1]), 1),
    ],
)
def test_values_of_different_types_are_compared_exactly(
    a: Any, b: Any, differ: int, tmp_path: Path
) -> None:
    for files in (pair(tmp_path, a, b), pair(tmp_path, b, a)):
        found = diff(*files)

        assert found["arrays"][0]["data"]["differ"] == differ
        assert not found["arrays"][0]["same_type"]
        assert not found["same"]


@pytest.mark.parametrize("kind", "mM")
def test_dates_of_different_units(kind: str, tmp_path: Path) -> None:
    """NaT equals NaT, and no date."""
    a = np.array([0, "NaT", "NaT", 5, 7], f"{kind}8[s]")
    b = np.array([0, "NaT", 5000, "NaT", 7000], f"{kind}8[ms]")

    found = diff(*pair(tmp_path, a, b))["arrays"][0]

    assert not found["same_type"]
    assert found["data"]["differ"] == 2
    assert found["data"]["first"] == [2]


def test_an_error_of_no_array_is_raised_among_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every array can be read, nothing else is said in its place."""

    def fails(*_: Any) -> dict[str, Any]:
        raise Corrupt("file changed while it was read")

    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(4))
    monkeypatch.setattr("raconvert.inspect.diff.compare_data", fails)
    with pytest.raises(Corrupt, match="file changed while it was read"):
        diff(tmp_path / "a.npz", tmp_path / "a.npz")


def test_integer_differences_do_not_overflow(tmp_path: Path) -> None:
    lowest, highest = np.array([-(2**63)], "i8"), np.array([2**63 - 1], "i8")

    assert data_of(tmp_path, lowest, highest)["max_abs"] == float(2**64)
    assert data_of(tmp_path, np.array([1, 200], "u1"), np.array([3, 100], "u1"))["max_abs"] == 100
    assert data_of(tmp_path, np.array([2**60]), np.array([2**60 + 1]))["max_abs"] == 1.0


def test_shapes_that_differ_are_a_difference(tmp_path: Path) -> None:
    found = diff(*pair(tmp_path, np.zeros((2, 3)), np.zeros((3, 2))))

    assert not found["same"]
    assert found["arrays"][0]["data"] is None


def test_text_of_other_widths_is_compared_by_value(tmp_path: Path) -> None:
    data = data_of(tmp_path, np.array(["ab", "c"]), np.array(["ab", "cde"]))

    assert (data["differ"], data["first"]) == (1, [1])


def test_undescribed_bytes_are_compared_as_bytes(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", np.array(["ab", "c"]))
    convert(source, tmp_path / "b.ra", meta="drop", allow=["dtype"])

    found = diff(source, tmp_path / "b.ra")["arrays"][0]

    assert (found["type"], found["data"]["differ"]) == (["U2", "V8"], 0)


def test_bytes_are_compared_with_text_character_by_character(tmp_path: Path) -> None:
    text = save(tmp_path / "text.npy", np.array(["ab", "é", "c"]))
    raw = save(tmp_path / "raw.npy", np.array([b"ab", b"\xe9", b"cd"], "S8"))

    found = diff(text, raw)["arrays"][0]

    assert (found["type"], found["data"]["differ"]) == (["U2", "S8"], 1)
    assert found["data"]["first"] == [2]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.array(["a"]), np.array([1.0])),
        (np.array(["2020"], "M8[D]"), np.array([1])),
        (np.array(["2020"], "M8[s]"), np.array([1], "m8[s]")),
        (np.zeros(1, "V4"), np.zeros(1, "V5")),
    ],
)
def test_kinds_that_cannot_be_compared(a: Any, b: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be compared"):
        diff(*pair(tmp_path, a, b))


def test_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = array_of(np.array([1, 2, np.nan], ml_dtypes.bfloat16))
    b = array_of(np.array([1, 2.5, np.nan], "f4"))

    assert compare_arrays(a, a, Rule())["same"]
    assert compare_arrays(a, b, Rule())["data"]["max_abs"] == 0.5


@given(data=st.data())
def test_counts_are_those_of_numpy(data: st.DataObject) -> None:
    dtype = data.draw(
        hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(32, 64))
    )
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=4, min_side=0))
    values = hnp.from_dtype(dtype) | st.just(dtype.type(0))
    a = data.draw(hnp.arrays(dtype, shape, elements=values))
    b = np.where(
        data.draw(hnp.arrays(bool, shape)), a, data.draw(hnp.arrays(dtype, shape, elements=values))
    )
    b = np.asarray(b, order=data.draw(st.sampled_from("CF")))
    right = array_of(b)
    if b.flags.f_contiguous and b.ndim > 1 and not b.flags.c_contiguous:
        right = raconvert.Array(b, index_order="F")

    found = compare_arrays(array_of(a), right, Rule())["data"]

    nan = np.isnan
    wrong = ~((a == b) | (nan(a) & nan(b)))
    assert found["differ"] == wrong.sum()
    assert found["first"] is None or wrong[tuple(found["first"])]


# Memory ------------------------------------------------------------------------------------------


def test_pieces_of_unlike_sizes_are_compared(tmp_path: Path) -> None:
    values = np.arange(100_000) % 300
    source = save(tmp_path / "a.npy", values)
    convert(source, tmp_path / "b.ra", out_opts={"encoding": "leb128"})
    values[77_777] += 1

    other = save(tmp_path / "c.npy", values)

    assert diff(source, tmp_path / "b.ra", max_memory=SMALL)["same"]
    found = diff(tmp_path / "b.ra", other, max_memory=SMALL)
    assert found["arrays"][0]["data"]["first"] == [77_777]


# Containers --------------------------------------------------------------------------------------


def test_containers_are_compared_by_name(tmp_path: Path) -> None:
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(a, x=np.zeros(2), y=np.ones(3), z=np.ones(1))
    np.savez_compressed(b, y=np.ones(3), x=np.zeros(2), w=np.ones(1))

    found = diff(a, b)

    assert [array["same"] for array in found["arrays"]] == [True, True]
    assert (found["only_in_a"], found["only_in_b"]) == (["z"], ["w"])
    assert not found["same"]


def test_a_single_array_pairs_with_a_single_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    other = save(tmp_path / "other.npy", np.arange(3))

    assert diff(tmp_path / "a.npz", other)["same"]


def test_a_container_of_others_needs_a_choice(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=1)
    other = save(tmp_path / "other.npy", np.arange(3))

    with pytest.raises(UsageError, match="none of them called 'other'"):
        diff(tmp_path / "a.npz", other)
    assert diff(f"{tmp_path / 'a.npz'}#x", other)["same"]


# Metadata ----------------------------------------------------------------------------------------


def test_metadata_is_compared_field_by_field() -> None:
    a = Metadata("one", axes=[Axis("x", spacing=1.0), Axis("y")][::-1], attributes={"k": [1, 2]})
    b = Metadata(
        "two", axes=[Axis("x"), Axis("y")][::-1], attributes={"k": [1, 2], "nan": float("nan")}
    )

    found = meta_differences(a.to_dict(), b.to_dict())

    assert found == [
        {"field": "description", "a": "one", "b": "two"},
        {"field": "axes[1].spacing", "a": 1.0},
        {"field": "attributes.nan", "b": "nan"},
    ]
    assert meta_differences(b.to_dict(), b.to_dict()) == []


@pytest.mark.parametrize(
    ("a", "b", "types"),
    [
        (1, 1.0, ["int", "float"]),
        (1, True, ["int", "bool"]),
        (0.0, False, ["float", "bool"]),
        (math.nan, "nan", ["float", "str"]),
        (-math.inf, "-inf", ["float", "str"]),
        ([1, 2], [1, 2.0], ["list of int", "list of int, float"]),
        ([[1]], [[True]], ["list of list of int", "list of list of bool"]),
        ([math.nan], ["nan"], ["list of float", "list of str"]),
        (datetime.date(2020, 1, 2), "2020-01-02", ["date", "str"]),
        (1, "1", None),
        (b"a", "a", None),
        ([], {}, None),
        ([1], 1, None),
        (None, "", None),
        ([1, 2], [1], None),
        ("", 0, None),
    ],
    ids=repr,
)
def test_values_of_two_types_differ(a: Any, b: Any, types: list[str] | None) -> None:
    for x, y, named in ((a, b, types), (b, a, types and types[::-1])):
        (found,) = meta_differences({"k": x}, {"k": y})

        assert (found["field"], found.get("types")) == ("k", named)
        assert (found["a"], found["b"]) == (plain(x), plain(y))
        assert meta_differences({"k": x}, {"k": x}) == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 2), [1, 2]),
        (np.float64(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        ([np.int8(3), (np.nan,)], [3, [math.nan]]),
        (np.str_("x"), "x"),
        (np.bool_(True), True),
        (bytearray(b"x"), b"x"),
        (0.0, -0.0),
        (float("nan"), -float("nan")),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
    ],
    ids=repr,
)
def test_one_value_in_two_forms_is_the_same(a: Any, b: Any) -> None:
    assert meta_differences({"k": [a], "m": a}, {"k": [b], "m": b}) == []


@pytest.mark.parametrize(
    ("a", "b", "fields"),
    [
        ({"a.b": 1}, {"a": {"b": 1}}, [("'a.b'", "a"), ("a.b", "b")]),
        ({"a[0]": {}}, {"a": [{}]}, [("'a[0]'", "a"), ("a[0]", "b")]),
        ({"": 1}, {}, [("''", "a")]),
        ({1: "x"}, {"1": "x"}, [("1", "a"), ("1", "b")]),
        ({1: "x"}, {True: "x"}, [("1", "a"), ("True", "b")]),
        ({"a": {}}, {}, [("a", "a")]),
        ({"a": {}}, {"a": {"b": 1}}, [("a.b", "b")]),
        ({"a": 1}, {"a": {"b": 1, "c": 2}}, [("a", "a"), ("a.b", "b"), ("a.c", "b")]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}, 2]}, [("a[1]", "b")]),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 2}]}, [("a[1].b", "ab")]),
        ({"a": b"\x01"}, {"a": {"hex": "01"}}, [("a", "a"), ("a.hex", "b")]),
    ],
    ids=repr,
)
def test_structures_are_compared_before_they_are_shown(
    a: Any, b: Any, fields: list[tuple[str, str]]
) -> None:
    found = meta_differences(a, b)

    sides = [(item["field"], "".join(side for side in "ab" if side in item)) for item in found]
    assert sides == fields


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.floats() | st.text("a.[", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("a.[", max_size=2), inner, max_size=3)
    ),
)


@given(a=JSON, b=JSON)
def test_only_equal_structures_are_the_same(a: Any, b: Any) -> None:
    def text(value: Any) -> str:  # -0.0 and 0.0 are one value
        return json.dumps(value, sort_keys=True).replace("-0.0", "0.0")

    assert meta_differences({"k": a}, {"k": copy.deepcopy(a)}) == []
    assert (meta_differences({"k": a}, {"k": b}) == []) == (text(a) == text(b))


def bundle_file(path: Path, names: str = "x", **said: Any) -> Path:
    arrays = [array_of(np.arange(3), name) for name in names.split()]
    write_bundle_file(path, Bundle(arrays, **said), overwrite=True)
    return path


def about(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Return what `diff` says of two containers beyond their arrays."""
    files = bundle_file(tmp_path / "a.zip", **a), bundle_file(tmp_path / "b.zip", **b)
    found = diff(*files)
    told = {key: found[key] for key in ("metadata", "groups", "order") if found[key]}

    assert found["same"] == (not told)
    assert found["only_in_a"] == found["only_in_b"] == []
    assert diff(*files, ignore_meta=True)["same"]
    return told


def test_an_attribute_called_groups_is_not_mistaken_for_the_groups(tmp_path: Path) -> None:
    groups = {"g": {"k": 1}}
    one, two = {"attributes": {"groups": 1}}, {"attributes": {"groups": 2}}

    assert about(tmp_path, {**one, "groups": groups}, {**two, "groups": groups}) == {
        "metadata": [{"field": "groups", "a": 1, "b": 2}]
    }
    assert about(tmp_path, {"attributes": {"groups": groups}}, {"groups": groups}) == {
        "metadata": [{"field": "groups.g.k", "a": 1}],
        "groups": [{"field": "groups.g.k", "b": 1}],
    }


def test_empty_groups_count(tmp_path: Path) -> None:
    assert about(tmp_path, {"groups": {"g": {}, "h/i": {}}}, {"groups": {"h/i": {}}}) == {
        "groups": [{"field": "groups.g", "a": {}}]
    }


def test_groups_that_something_lies_in_are_there_anyway() -> None:
    array = array_of(np.arange(3), "g/h/x")
    bundle = Bundle([array], groups={"g": {}, "g/h": {}, "i": {}, "i/j": {}, "k": {"l": 1}})

    assert bundle.explicit_groups() == {"i/j": {}, "k": {"l": 1}}


def test_the_order_of_arrays_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = {"order": {"index": 1, "a": "y", "b": "z"}}

    assert about(tmp_path, {"names": "x y z"}, {"names": "x z y"}) == order
    assert main(["diff", str(tmp_path / "a.zip"), str(tmp_path / "b.zip")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "order    array 1: y ≠ z"

    found = diff(
        bundle_file(tmp_path / "a.zip", "a x y z"), bundle_file(tmp_path / "b.zip", "x b y z")
    )
    assert (found["only_in_a"], found["only_in_b"], found["order"]) == (["a"], ["b"], None)


def test_groups_and_types_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = bundle_file(tmp_path / "a.zip", attributes={"n": math.nan}, groups={"g": {"k": 1}})
    b = bundle_file(tmp_path / "b.zip", attributes={"n": "nan"}, groups={"g": {"k": 1.0}})

    assert main(["diff", str(a), str(b)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "attribute n: 'nan' (float) ≠ 'nan' (str)",
        "attribute groups.g.k: 1 (int) ≠ 1.0 (float)",
    ]


def test_both_sides_are_moved_in_the_memory_that_is_allowed(tmp_path: Path) -> None:
    values = np.arange(6).reshape(2, 3)
    files = pair(tmp_path, values, np.asfortranarray(values))
    limits = []

    class Moved(Transposed):
        def __init__(self, array: Array, axes: tuple[int, ...], max_memory: int) -> None:
            limits.append(max_memory)
            super().__init__(array, axes, max_memory)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raconvert.arrays.transpose.Transposed", Moved)
        assert diff(*files, max_memory=SMALL)["same"]

    assert limits
    assert set(limits) == {SMALL}


def test_metadata_counts_unless_ignored(tmp_path: Path) -> None:
    values = array_of(np.zeros(3))
    plain = compare_arrays(values, values, Rule(), ignore_meta=False)
    described = values.replace(meta=Metadata("about"))

    assert plain["same"]
    assert not compare_arrays(values, described, Rule(), ignore_meta=False)["same"]
    assert compare_arrays(values, described, Rule())["same"]


def test_trailers_are_compared_by_content(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", np.zeros(3))
    for name, tail in (("a", b"tail"), ("b", b"tail"), ("c", b"tale")):
        convert(source, tmp_path / f"{name}.ra")
        with open(tmp_path / f"{name}.ra", "ab") as file:
            file.write(tail)

    assert diff(tmp_path / "a.ra", tmp_path / "b.ra")["same"]
    assert not diff(tmp_path / "a.ra", tmp_path / "c.ra")["same"]
    assert diff(tmp_path / "a.ra", tmp_path / "c.ra", ignore_meta=True)["same"]


# Verification ------------------------------------------------------------------------------------


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Twelve numbered files, and the stack of them in s.ra."""
    for number in range(12):
        save(tmp_path / f"p{number:03d}.npy", np.full((4, 5), number))
    convert(str(tmp_path / "p*.npy"), tmp_path / "s.ra")
    return tmp_path


def check(folder: Path, pattern: str = "p*.npy") -> dict[str, Any]:
    return verify(folder / "s.ra", [str(folder / pattern)])["against"]


def test_a_stack_is_as_its_sources(stack: Path) -> None:
    found = verify(stack / "s.ra", [str(stack / "p*.npy")])

    assert found["same"]
    assert found["against"] == {"ok": 12, "changed": 0, "missing": 0, "extra": 0, "examples": {}}


def test_a_changed_source_is_named(stack: Path) -> None:
    save(stack / "p003.npy", np.full((4, 5), 99))

    found = check(stack)

    assert (found["ok"], found["changed"], found["missing"]) == (11, 1, 0)
    assert found["examples"] == {"changed": str(stack / "p003.npy")}


@pytest.mark.parametrize("gone", [[0], [5], [11], [0, 1], [4, 5, 6], [2, 9], [10, 11]])
def test_missing_sources_are_named(gone: list[int], stack: Path) -> None:
    for number in gone:
        (stack / f"p{number:03d}.npy").unlink()

    found = check(stack)

    assert (found["ok"], found["changed"], found["missing"]) == (12 - len(gone), 0, len(gone))
    # Names before the first source and after the last one would be guesses.
    inside = gone[0] > 0 and gone[-1] < 11
    name = str(stack / f"p{gone[0]:03d}.npy") if inside else f"item {gone[0]}"
    assert found["examples"] == {"missing": name}


def test_extra_sources_are_named(stack: Path) -> None:
    save(stack / "p0055.npy", np.full((4, 5), 55))
    save(stack / "p100.npy", np.full((4, 5), 100))

    found = check(stack)

    assert (found["ok"], found["extra"], found["missing"]) == (12, 2, 0)


def test_other_types_and_shapes_are_changes(stack: Path) -> None:
    for number in range(12):
        save(stack / f"p{number:03d}.npy", np.full((4, 5), number, "i4"))

    found = check(stack)

    assert (found["ok"], found["changed"]) == (0, 12)
    assert "int32 (4, 5), now int64 (4, 5)" in found["examples"]["changed"]


def test_missing_items_are_named_as_the_sidecar_kept_them(tmp_path: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    info = pytest.importorskip("PIL.PngImagePlugin")
    for number, name in enumerate("abc"):
        text = info.PngInfo()
        text.add_text("Title", name)
        image = pil.fromarray(np.full((4, 5), number, "u1"))
        image.save(tmp_path / f"{name}.png", pnginfo=text)
    convert(str(tmp_path / "*.png"), tmp_path / "s.ra")
    (tmp_path / "b.png").unlink()

    found = verify(tmp_path / "s.ra", [str(tmp_path / "*.png")])["against"]

    assert found["examples"] == {"missing": "b.png"}


def test_a_container_of_files_is_verified_by_name(tmp_path: Path) -> None:
    a, b = pair(tmp_path, np.arange(3), np.ones(2))
    convert([a, b], tmp_path / "x.npz")

    assert verify(tmp_path / "x.npz", [a, b])["against"]["ok"] == 2

    save(tmp_path / "b.npy", np.zeros(2))
    found = verify(tmp_path / "x.npz", [a, b])["against"]
    assert (found["ok"], found["changed"], found["examples"]) == (1, 1, {"changed": b})


def test_one_file_is_verified_against_one(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    convert(source, tmp_path / "a.ra")

    assert verify(tmp_path / "a.ra", [source])["same"]

    save(tmp_path / "a.npy", np.arange(1, 7).reshape(2, 3))
    assert verify(tmp_path / "a.ra", [source])["against"]["changed"] == 1


def test_every_byte_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(10), b=np.arange(100, dtype="u1"))
    data = bytearray(path.read_bytes())
    data[data.index(bytes(range(90, 100)))] ^= 1
    path.write_bytes(data)

    with pytest.raises(Corrupt, match="CRC"):
        verify(path)


def test_a_sidecar_of_another_file_is_damage(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", np.zeros((2, 3)))
    convert(source, tmp_path / "a.ra", axes="fortran")
    with open(tmp_path / "a.ra", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")

    with pytest.raises(Corrupt, match="describes another file"):
        verify(tmp_path / "a.ra")
    assert verify(tmp_path / "a.ra", meta="ignore")["same"]


# The command line --------------------------------------------------------------------------------


def test_diff_output_and_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, np.array([0.0, 1.0]), np.array([0.0, 2.0]))

    assert main(["diff", a, a]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "dtype    float64 = float64",
        "shape    (2,) = (2,)",
        "data     equal",
    ]
    assert main(["diff", a, b]) == 1
    assert "1 of 2 differ; first at [1]; max abs 1 at [1]; max rel 0.5 at [1]" in (
        capsys.readouterr().out
    )
    assert main(["diff", "--atol", "1", a, b]) == 0
    assert main(["diff", "--rtol=0.5", a, b]) == 0
    assert main(["diff", "-q", a, a]) == 0
    assert main(["diff", a]) == 2
    assert main(["diff", a, save(tmp_path / "t.npy", np.array(["a", "b"]))]) == 2
    assert main(["diff", a, str(tmp_path / "none.npy")]) == 2
    assert "cannot be compared" in capsys.readouterr().err


def test_diff_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, np.array([np.inf]), np.array([0.0]))

    assert main(["diff", "--json", a, b]) == 1

    found = json.loads(capsys.readouterr().out)
    assert found == diff(a, b)
    assert found["arrays"][0]["data"]["max_abs"] == "inf"


def test_diff_of_containers_names_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = str(tmp_path / "a.npz"), str(tmp_path / "b.npz")
    np.savez(a, x=1, y=2, z=3)
    np.savez(b, x=1, y=4)

    assert main(["diff", a, b]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["x: same", "y: different"]
    assert lines[-1] == "z: only in a"


def test_verify_output_and_codes(stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, pattern = str(stack / "s.ra"), str(stack / "p*.npy")

    assert main(["verify", path]) == 0
    assert capsys.readouterr().out.startswith(f"ok {path}   int64 (12, 4, 5)   digest ")
    assert main(["verify", path, "--against", pattern]) == 0
    assert capsys.readouterr().out.startswith("ok 12   changed 0   missing 0   digest ")
    (stack / "p007.npy").unlink()
    assert main(["verify", path, "--against", pattern]) == 1
    assert f"ok 11   changed 0   missing 1 ({stack / 'p007.npy'})" in capsys.readouterr().out
    assert main(["verify", path, path, "--against", pattern]) == 2
    os.truncate(path, 100)
    assert main(["verify", path]) == 1
    assert "is cut off" in capsys.readouterr().err


def test_verify_reads_lists_of_sources(stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = sorted(str(path) for path in stack.glob("p*.npy"))
    (stack / "list").write_text("\n".join(names))

    assert main(["verify", str(stack / "s.ra"), "--files-from", str(stack / "list"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["against"]["ok"] == 12


# What several arrays, and the items of stacks, have of their own -----------------------------------


def test_one_incomparable_array_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.array(["a", "b"]), z=np.arange(2))
    np.savez(tmp_path / "b.npz", x=np.arange(3), y=np.arange(2), z=np.arange(2) + 1)

    found = {item["name"]: item for item in diff(tmp_path / "a.npz", tmp_path / "b.npz")["arrays"]}

    assert found["x"]["same"]
    assert (found["y"]["same"], found["y"]["same_type"], found["y"]["data"]) == (False,) * 2 + (
        None,
    )
    assert found["z"]["data"]["differ"] == 2
    assert main(["diff", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]) == 1
    assert "data     not compared, the types differ" in capsys.readouterr().out
    bits = diff(tmp_path / "a.npz", tmp_path / "b.npz", bitwise=True)["arrays"]
    assert [item["data"] is None for item in bits] == [False, True, False]


def test_what_items_have_of_their_own_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, odd in (("a", {}), ("b", {}), ("c", {4: "new", 7: "new"})):
        stack = array_of(np.zeros((9, 2)), "s")
        items = [{"attributes": {"by": odd.get(n, "me"), "n": n}} for n in range(9)]
        stack.meta = stack.meta.replace(items=lambda items=items: iter(items))
        write_bundle_file(tmp_path / f"{name}.ra", Bundle([stack]), "ra")
    convert(tmp_path / "a.ra", tmp_path / "bare.ra", meta="drop")

    assert diff(tmp_path / "a.ra", tmp_path / "b.ra")["same"]
    found = diff(tmp_path / "a.ra", tmp_path / "c.ra")
    assert not found["same"]
    assert found["arrays"][0]["items"] == {
        "differ": 2,
        "first": 4,
        "fields": [{"field": "attributes.by", "a": "me", "b": "new"}],
    }
    assert diff(tmp_path / "a.ra", tmp_path / "c.ra", ignore_meta=True)["same"]
    gone = diff(tmp_path / "bare.ra", tmp_path / "a.ra")["arrays"][0]["items"]
    assert (gone["differ"], gone["first"]) == (9, 0)
    assert main(["diff", str(tmp_path / "a.ra"), str(tmp_path / "c.ra")]) == 1
    out = capsys.readouterr().out
    assert "items    2 differ in metadata; first at [4]" in out
    assert "metadata attributes.by: 'me' ≠ 'new'" in out


def test_chosen_arrays_are_verified_against_a_source_that_holds_more(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(2), z=np.arange(2))
    convert(tmp_path / "a.npz", tmp_path / "b.zip", arrays=["x", "y"])

    whole = verify(tmp_path / "b.zip", [str(tmp_path / "a.npz")])["against"]
    assert (whole["ok"], whole["extra"]) == (2, 1)
    some = verify(tmp_path / "b.zip", [str(tmp_path / "a.npz")], arrays=["[xy]"])
    assert (some["same"], some["against"]["ok"], some["against"]["extra"]) == (True, 2, 0)


@pytest.mark.parametrize("number", [complex(NAN, 1), complex(1, NAN), complex(NAN, NAN)])
def test_nan_in_one_part_in_another_width(tmp_path: Path, number: complex) -> None:
    """Of one type the bytes alone would be equal."""
    narrow = np.array([1j, number], "c8")
    assert data_of(tmp_path, narrow, narrow.astype("c16"))["differ"] == 0
    assert data_of(tmp_path, narrow, np.array([1j, 2 + 2j]))["differ"] == 1


def test_the_form_of_a_group_is_named_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A struct array of MATLAB that became plain arrays on its way through NPZ."""
    scipy_io = pytest.importorskip("scipy.io")
    values = np.array([[(1.0, 2.0), (3.0, 4.0)]], [("u", "f8"), ("v", "f8")])
    scipy_io.savemat(tmp_path / "x.mat", {"s": values})
    convert(tmp_path / "x.mat", tmp_path / "x.npz")
    found = diff(tmp_path / "x.mat", tmp_path / "x.npz")
    assert found["forms"] == [{"field": "s", "a": "struct 1 x 2"}]
    assert not found["same"]
    assert main(["diff", str(tmp_path / "x.mat"), str(tmp_path / "x.npz")]) == 1
    assert "form     group s: struct 1 x 2 in a, a plain group in b" in capsys.readouterr().out


# Against Python, whose numbers compare exactly -----------------------------------------------------

EDGES = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1024, 2**63 - 1, 2**63, 2**63 + 2048, 2**64 - 2048,
         2**64 - 1, 2**64]  # fmt: skip
FLOATS = [*map(float, EDGES), 0.5, 1.5, math.nan, math.inf, 1e300, 5e-324]


def numbers_of(code: str) -> list[Any]:
    """The numbers of a type that are at the end of one range or another, as Python has them."""
    dtype = np.dtype(code)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wanted = {sign * n for n in (*EDGES, 127, 128, 255) for sign in (1, -1)}
        return sorted(n for n in wanted if info.min <= n <= info.max)
    if dtype.kind == "b":
        return [False, True]
    with np.errstate(over="ignore"):
        floats = {repr(float(dtype.type(s * f).real)) for f in FLOATS for s in (1, -1)}
    found: list[Any] = [float(text) for text in sorted(floats)]
    if dtype.kind == "c":
        found += [complex(f, g) for f in found[:9] for g in (0.0, -0.0, 1.0, math.nan)]
    return found


def same_number(x: Any, y: Any) -> bool:
    """True if equal, NaN with NaN, part by part."""
    x, y = (z if isinstance(z, complex) else (z, 0) for z in (x, y))
    sides = [(z.real, z.imag) if isinstance(z, complex) else z for z in (x, y)]
    return all(a == b or (a != a and b != b) for a, b in zip(*sides, strict=True))  # noqa: PLR0124


CODES = ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8", "c16"]


@every("a", CODES)
@every("b", CODES)
def test_every_two_numbers_of_every_two_types(a: str, b: str) -> None:
    left, right = numbers_of(a), numbers_of(b)
    x = np.array(left, a).repeat(len(right))
    y = np.tile(np.array(right, b), len(left))
    pairs = [(m, n) for m in left for n in right]
    odd = [n for n, (m, o) in enumerate(pairs) if not same_number(m, o)]

    found = compare_arrays(array_of(x, "x"), array_of(y, "x"), Rule())

    assert found["data"]["count"] == len(pairs)
    assert found["data"]["differ"] == len(odd)
    assert found["data"]["first"] == ([odd[0]] if odd else None)
    nan = [[z != z for z in side] for side in zip(*pairs, strict=True)]  # noqa: PLR0124
    assert found["data"]["nan_only_in_a"] == sum(p and not q for p, q in zip(*nan, strict=True))
    assert found["data"]["nan_only_in_b"] == sum(q and not p for p, q in zip(*nan, strict=True))
    assert found["same"] == (a == b and not odd)


@pytest.mark.parametrize("code", ["i1", "u1", "i8", "u8"])
def test_distances_of_integers_are_exact_before_they_are_rounded(code: str) -> None:
    numbers = numbers_of(code)
    for m in numbers:
        for n in numbers:
            if m == n:
                continue
            data = compare_arrays(
                array_of(np.array([m], code), "x"), array_of(np.array([n], code), "x"), Rule()
            )["data"]
            assert data["max_abs"] == float(abs(m - n))
            assert data["max_rel"] == pytest.approx(abs(m - n) / max(abs(m), abs(n)))
            assert data["max_abs_index"] == data["max_rel_index"] == [0]


def test_unequal_numbers_without_a_distance_differ() -> None:
    """As floats they are the same: the distance is 0, and the largest one all the same."""
    x, y = np.array([1, 2**53 + 1]), np.array([1, 2.0**53])
    data = compare_arrays(array_of(x, "x"), array_of(y, "x"), Rule())["data"]
    assert (data["differ"], data["first"]) == (1, [1])
    assert (data["max_abs"], data["max_abs_index"]) == (0, [1])
    assert (data["max_rel"], data["max_rel_index"]) == (0, [1])
    data = compare_arrays(array_of(x, "x"), array_of(y, "x"), Rule(atol=1e-9))["data"]
    assert (data["differ"], data["first"]) == (0, None)


def test_the_first_of_the_largest_differences_is_named() -> None:
    x = np.zeros((4, 5))
    y = np.zeros((4, 5))
    y[1, 2] = y[2, 1] = 3
    y[0, 4] = -1
    y[3, 3] = math.nan
    for order in ("C", "F"):
        sides = [array_of(np.asarray(values, order=order), "x") for values in (x, y)]
        data = compare_arrays(*sides, Rule())["data"]
        assert data["differ"] == 4
        assert data["max_abs"] == 3
        assert data["max_abs_index"] in ([1, 2], [2, 1])
        assert data["nan_only_in_b"] == 1


@pytest.mark.parametrize("atol", [0, 0.5, 1, 2])
@pytest.mark.parametrize("rtol", [0, 0.1, 0.25, 0.5, 1])
def test_tolerances_are_those_of_the_formula(atol: float, rtol: float) -> None:
    numbers = [0.0, 0.5, 1.0, 1.5, 2.0, 4.0, -1.0, math.inf, -math.inf, math.nan]
    pairs = [(m, n) for m in numbers for n in numbers]
    x, y = (np.array(side) for side in zip(*pairs, strict=True))
    data = compare_arrays(array_of(x, "x"), array_of(y, "x"), Rule(atol, rtol))["data"]

    def far(m: float, n: float) -> bool:
        if same_number(m, n):
            return False
        if math.isinf(m) or math.isinf(n):
            return True
        return not abs(m - n) <= atol + rtol * max(abs(m), abs(n))

    odd = [n for n, one in enumerate(pairs) if far(*one)]
    assert data["differ"] == len(odd)
    assert data["first"] == [odd[0]]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("S3", "S5", True), ("U3", "U5", True), ("S3", "U5", True), ("U5", "S3", True),
        ("S3", "U2", False), ("U2", "S3", False), ("S2", "S3", False),
    ],
)  # fmt: skip
def test_texts_of_every_two_widths(a: str, b: str, same: bool) -> None:
    words = [["abc", "x", "", "ab\xe9"], ["", "abc"]]
    for texts in words:
        sides = []
        for code in (a, b):
            raw = [text.encode("latin-1") if code[0] == "S" else text for text in texts]
            sides.append(array_of(np.array(raw, code), "x"))
        data = compare_arrays(*sides, Rule())["data"]
        long = [n for n, text in enumerate(texts) if len(text) > 2]
        assert (data["differ"], data["first"]) == ((0, None) if same else (len(long), [long[0]]))
