"""Changes of type, scale and axes, against exact oracles: Python integers, Fractions, transpose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

import raconvert
from raconvert import Metadata, convert
from raconvert.api import array_of
from raconvert.arrays import cast as casting
from raconvert.arrays import transpose
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis
from raconvert.errors import Unsupported, UsageError, WouldLose

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16")
COMPLEX = ("complex64", "complex128")
NUMBERS = ("bool", *INTS, *FLOATS, *COMPLEX)


class Binary(NamedTuple):
    """A binary floating-point type: bits of the fraction, least and greatest exponent of a bit."""

    bits: int
    low: int
    high: int

    def nearest(self, value: Fraction) -> Fraction | None:
        """Return the value rounded half to even, None where it overflows."""
        if value == 0:
            return value
        top = abs(value).numerator.bit_length() - value.denominator.bit_length()
        top += abs(value) >= Fraction(2) ** (top + 1)
        top -= abs(value) < Fraction(2) ** top
        quantum = Fraction(2) ** max(top - self.bits + 1, self.low)
        rounded = round(value / quantum) * quantum
        return rounded if abs(rounded) < Fraction(2) ** (self.high + 1) else None


BINARY = {
    "float16": Binary(11, -24, 15),
    "float32": Binary(24, -149, 127),
    "float64": Binary(53, -1074, 1023),
    "bfloat16": Binary(8, -133, 127),
    "complex64": Binary(24, -149, 127),
    "complex128": Binary(53, -1074, 1023),
}
LIMITS = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTS}
LIMITS["bool"] = (0, 1)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def part_fits(value: Any, name: str) -> bool:
    """Tell whether a type holds a real value exactly."""
    if name in LIMITS:
        low, high = LIMITS[name]
        return math.isfinite(value) and value == int(value) and low <= int(value) <= high
    if not math.isfinite(value):
        return True
    return BINARY[name].nearest(Fraction(value)) == Fraction(value)


def fits(value: Any, name: str) -> bool:
    """Tell whether a type holds a Python number exactly."""
    if isinstance(value, complex):
        if name in COMPLEX:
            return part_fits(value.real, name) and part_fits(value.imag, name)
        return value.imag == 0 and part_fits(value.real, name)
    return part_fits(value, name)


def same(a: Any, b: Any) -> bool:
    """Tell whether two Python numbers are one value, exactly; NaN is NaN."""
    if isinstance(a, complex) or isinstance(b, complex):
        a, b = complex(a), complex(b)
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return a == b  # Python compares integers with floats exactly


def python_of(values: np.ndarray) -> list[Any]:
    """Return the elements as Python numbers, exactly."""
    if values.dtype == dtype_of("bfloat16"):
        values = values.astype(np.float32)
    return values.reshape(-1).tolist()


def border_values(name: str) -> list[Any]:
    """Return the values of a type at its own borders and at those of all others."""
    dtype = dtype_of(name)
    if name == "bool":
        return [False, True]
    powers = (7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64)
    whole = {
        0,
        1,
        2,
        3,
        -1,
        -2,
        *(s * 2**p + d for p in powers for d in (-1, 0, 1) for s in (1, -1)),
    }
    if name in INTS:
        low, high = LIMITS[name]
        return sorted(value for value in whole if low <= value <= high)
    parts = "f4" if name == "complex64" else "f8" if name == "complex128" else dtype
    reals = [*whole, 0.5, 1.5, 2.5, -0.5, 0.1, 1 / 3, 1e-3, 65504, 65519.9, 65520, 3.4e38, 1e300]
    reals += [2.0**-24, 2.0**-25, 2.0**-133, 2.0**-149, 5e-324, 2.2250738585072014e-308]
    reals += [-0.0, math.nan, math.inf, -math.inf, 2.0**63 - 1024, 2.0**64 - 2048, 2.0**63]
    with np.errstate(all="ignore"):
        own = sorted(set(python_of(np.array(reals, "f8").astype(parts))), key=repr)
    if name not in COMPLEX:
        return own
    pairs = [(1.5, 2.5), (1.0, 1e-3), (math.nan, 0.0), (math.nan, 5.0), (0.0, math.nan)]
    pairs += [(math.inf, 1.0), (0.0, math.inf), (2.0, -0.0), (1e300, 1.0), (math.nan, 1e300)]
    with np.errstate(all="ignore"):
        odd = python_of(np.array([complex(*pair) for pair in pairs], "c16").astype(name))
    return [complex(value, 0) for value in own] + odd


def make(values: list[Any], name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(values, dtype_of(name))


def cast(values: np.ndarray, name: str, **options: bool) -> np.ndarray:
    return as_ndarray(casting.cast(array_of(values, "x"), name, **options))


# Casts -----------------------------------------------------------------------------------------

PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in NUMBERS for b in NUMBERS]


@every("source, target", PAIRS)
def test_values_that_fit_are_kept_exactly(source: str, target: str) -> None:
    good = [value for value in border_values(source) if fits(value, target)]
    values = make(good, source)
    got = cast(values, target)
    assert got.dtype == dtype_of(target)
    for before, after in zip(python_of(values), python_of(got), strict=True):
        assert same(before, after), (before, after)
        if isinstance(before, float) and isinstance(after, float) and not math.isnan(before):
            assert math.copysign(1, before) == math.copysign(1, after)


@every("source, target", PAIRS)
def test_the_first_value_that_does_not_fit_is_refused_with_its_index(
    source: str, target: str
) -> None:
    for value in border_values(source):
        if fits(value, target):
            continue
        values = make([1, 1, value, 1, value, 1], source).reshape(2, 3)
        with pytest.raises(WouldLose) as caught:
            cast(values, target)
        assert "index [0, 2]" in str(caught.value), value
        assert "array 'x'" in str(caught.value)
        assert target in str(caught.value)


ROUNDED = [
    pytest.param(a, b, id=f"{a}-to-{b}")
    for a in (*INTS, *FLOATS)
    for b in (*INTS, *FLOATS, *COMPLEX)
    if a != b
]


@every("source, target", ROUNDED)
def test_allowed_rounding_is_half_to_even_and_never_wraps(source: str, target: str) -> None:
    for value in border_values(source):
        expected: Any
        if not math.isfinite(value):
            expected = None if target in INTS else value
        elif target in INTS:
            expected = round(Fraction(value))
            low, high = LIMITS[target]
            expected = expected if low <= expected <= high else None
        else:
            expected = BINARY[target].nearest(Fraction(value))
        if expected is None:
            with pytest.raises(WouldLose, match=r"index \[0\]"):
                cast(make([value], source), target, round_values=True)
            continue
        got = python_of(cast(make([value], source), target, round_values=True))[0]
        assert same(got, expected if isinstance(expected, float | int) else float(expected)), value


@pytest.mark.parametrize("target", ["float32", "float64", "int16", "uint8", "float16"])
@pytest.mark.parametrize("value", [1 + 2j, complex(math.nan, 1), complex(1, math.nan)], ids=repr)
def test_an_imaginary_part_is_no_matter_of_precision(value: complex, target: str) -> None:
    for options in ({}, {"round_values": True}):
        with pytest.raises(WouldLose, match=r"index \[0\]"):
            cast(np.array([value]), target, **options)


@given(
    st_np.arrays(np.float64, st.integers(1, 20), elements=st.floats(width=64)),
    st.sampled_from(["float16", "float32", "int8", "int64", "uint64", "bool", "bfloat16"]),
)
def test_any_floats_are_kept_or_refused(values: np.ndarray, target: str) -> None:
    wrong = [not fits(value, target) for value in values.tolist()]
    if any(wrong):
        with pytest.raises(WouldLose) as caught:
            cast(values, target)
        assert f"index [{wrong.index(True)}]" in str(caught.value)
    else:
        assert all(map(same, values.tolist(), python_of(cast(values, target))))


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    st.sampled_from(["float16", "float32", "float64", "uint64", "int32", "complex64", "bfloat16"]),
)
def test_any_integers_are_kept_or_refused(numbers: list[int], target: str) -> None:
    wrong = [not fits(value, target) for value in numbers]
    if any(wrong):
        with pytest.raises(WouldLose) as caught:
            cast(np.array(numbers, "i8"), target)
        assert f"index [{wrong.index(True)}]" in str(caught.value)
    else:
        assert all(map(same, numbers, python_of(cast(np.array(numbers, "i8"), target))))


def test_the_index_is_that_of_the_array_and_not_of_the_block() -> None:
    values = np.zeros((30, 40, 50), "i4")
    values[29, 3, 7] = 300
    source = casting.cast(array_of(values, "x"), "uint8")
    with pytest.raises(WouldLose, match=r"index \[29, 3, 7\]"):
        list(blocks(source, 1000))


def test_the_index_of_a_column_major_array_is_the_logical_one() -> None:
    values = np.zeros((3, 4), "i4")
    values[2, 1] = 300
    array = Array(element_of(values.dtype), (3, 4), index_order="F", data=values.T)
    with pytest.raises(WouldLose, match=r"index \[2, 1\]"):
        as_ndarray(casting.cast(array, "uint8"))


def test_the_index_of_a_scalar_is_empty() -> None:
    with pytest.raises(WouldLose, match=r"index \[\]"):
        cast(np.array(300), "uint8")


def test_casting_to_the_same_type_changes_nothing() -> None:
    array = array_of(np.arange(3, dtype="<i4"), "x")
    assert casting.cast(array, "int32") is array


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2", ">c16"])
def test_big_endian_sources(dtype: str) -> None:
    values = np.arange(12).astype(dtype).reshape(3, 4)
    assert cast(values, "complex128").tolist() == values.tolist()


@pytest.mark.parametrize("name", ["text", "", "U4", "datetime64[ns]", "object", "void", "i4,f8"])
def test_a_type_that_is_no_number_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match=r'dtype="|element type') as caught:
        casting.cast(array_of(np.zeros(3), "x"), name)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["longdouble", "clongdouble"])
def test_a_type_without_a_portable_form_is_refused(name: str) -> None:
    with pytest.raises((Unsupported, UsageError)):
        casting.cast(array_of(np.zeros(3), "x"), name)


@pytest.mark.parametrize("dtype", ["M8[s]", "S3", "U2", "V4", "i4,f8"])
def test_elements_that_are_no_numbers_cannot_be_cast(dtype: str) -> None:
    with pytest.raises(Unsupported, match="cannot be cast"):
        casting.cast(array_of(np.zeros(3, dtype), "x"), "float64")


def test_a_cast_of_nothing_is_nothing() -> None:
    assert cast(np.zeros((0, 3)), "uint8").shape == (0, 3)


# Scale -----------------------------------------------------------------------------------------


def exact_scale(values: np.ndarray, low: Fraction, high: Fraction, bits: int) -> list[int]:
    top = 2**bits - 1
    numbers = python_of(values)
    return [round((Fraction(value) - low) * top / (high - low)) for value in numbers]


def scaled(values: np.ndarray, scale: str, bits: int) -> list[int]:
    array = casting.scaled(array_of(values, "x"), scale, bits)
    got = as_ndarray(array)
    assert got.dtype == f"<u{bits // 8}"
    return got.reshape(-1).tolist()


BITS = pytest.mark.parametrize("bits", [8, 16], ids=["8-bits", "16-bits"])


@BITS
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_unit(dtype: str, bits: int) -> None:
    top = 2**bits - 1
    values = np.concatenate([
        np.linspace(0, 1, 5000),
        (np.arange(top) + 0.5) / top,  # what lies between two steps, as near as the type allows
        np.arange(1025) / 1024,
    ]).astype(dtype)  # fmt: skip
    assert scaled(values, "unit", bits) == exact_scale(values, Fraction(0), Fraction(1), bits)


@BITS
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 510), (0, 50), (0, 131070), (-10, 40), (0, 7), (-255, 255), (100, 101), (-(2**40), 2**40),
     (0, 2**53), (-3, 65532), (0, 30), (0, 850)],
    ids=str,
)  # fmt: skip
def test_a_range_of_integers_is_exact_at_every_tie(low: int, high: int, bits: int) -> None:
    count = min(high - low + 1, 20_000)
    step = (high - low) // (count - 1)
    values = np.array([*range(low, high, step), high], "i8")
    expected = exact_scale(values, Fraction(low), Fraction(high), bits)
    assert scaled(values, f"{low}:{high}", bits) == expected
    assert scaled(values, "minmax", bits) == expected


@BITS
@given(
    st_np.arrays(np.float64, st.integers(2, 20), elements=st.floats(-1e300, 1e300)),
    st.booleans(),
)
def test_any_floats_are_scaled_exactly(bits: int, values: np.ndarray, explicit: bool) -> None:
    """Exact but for values nearer to a tie than float64 can tell."""
    low, high = Fraction(float(values.min())), Fraction(float(values.max()))
    if low == high:
        return
    scale = f"{values.min()!r}:{values.max()!r}".replace("np.float64(", "").replace(")", "")
    got = scaled(values, scale if explicit else "minmax", bits)
    for number, value in zip(got, values.tolist(), strict=True):
        exact = (Fraction(value) - low) * (2**bits - 1) / (high - low)
        near_tie = abs(abs(exact - round(exact)) - Fraction(1, 2)) < Fraction(1, 2**30)
        assert number == round(exact) or (near_tie and abs(number - exact) < 1)


@pytest.mark.parametrize(
    "values",
    [[-1.7e308, 0.0, 1.7e308], [0.0, 5e-324], [0.0, 5e-324, 1e-323], [1e-320, 2e-320, 3e-320]],
    ids=["range-above-the-largest", "smallest-range", "small-range", "subnormal-range"],
)
def test_extreme_ranges(values: list[float]) -> None:
    array = np.array(values)
    low, high = Fraction(values[0]), Fraction(values[-1])
    assert scaled(array, "minmax", 8) == exact_scale(array, low, high, 8)


@pytest.mark.parametrize("value", [0.0, 5.0, -3.5, 1e300, -1e300, 2.0**53, 5e-324], ids=repr)
def test_a_constant_array_is_black(value: float) -> None:
    assert scaled(np.full(3, value), "minmax", 8) == [0, 0, 0]


@pytest.mark.parametrize("scale", ["unit", "0:10", "minmax"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=repr)
def test_what_no_scale_holds_is_refused(scale: str, value: float) -> None:
    with pytest.raises(WouldLose):
        scaled(np.array([0.5, value]), scale, 8)


@pytest.mark.parametrize(
    ("scale", "value"), [("unit", 1.0000001), ("unit", -5e-324), ("0:10", 11), ("5:10", 4.999)]
)
def test_a_value_outside_the_scale_is_refused_with_its_index(scale: str, value: float) -> None:
    values = np.full((2, 3), 0.5 if scale != "5:10" else 7)
    values[1, 2] = value
    with pytest.raises(WouldLose, match=r"index \[1, 2\]") as caught:
        scaled(values, scale, 8)
    assert "scale=" in str(caught.value)


@pytest.mark.parametrize("scale", ["", "x", "1", "1:", ":1", "1:2:3", "a:b", "2:1", "1:1", "nan:1",
                                   "0:inf", "-inf:0", "max"])  # fmt: skip
def test_a_scale_that_is_none_is_a_usage_error(scale: str) -> None:
    with pytest.raises(UsageError, match="scale"):
        scaled(np.array([0.5]), scale, 8)


def test_bits_other_than_8_and_16_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="bits takes 8 or 16"):
        casting.scaled(array_of(np.zeros(3)), "unit", 12)


def test_integers_above_2_to_53_are_scaled_exactly() -> None:
    values = np.array([2**62, 2**62 + 1, 2**62 + 2], "i8")
    assert scaled(values, "minmax", 8) == [0, 128, 255]


def test_minmax_is_over_the_whole_array(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.array([[number * 10.0, number * 10.0 + 1]]))
    convert(tmp_path / "?.npy", tmp_path / "x.ra", scale="minmax")
    values = np.array([0, 1, 10, 11, 20, 21])
    got = raconvert.read(tmp_path / "x.ra").reshape(-1).tolist()
    assert got == exact_scale(values, Fraction(0), Fraction(21), 8)


def test_minmax_of_planes_is_over_the_whole_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(24.0).reshape(4, 2, 3))
    convert(tmp_path / "x.npy", tmp_path / "{}.png", scale="minmax")
    planes = [raconvert.read(tmp_path / f"{n}.png") for n in range(4)]
    assert np.stack(planes).reshape(-1).tolist() == exact_scale(
        np.arange(24), Fraction(0), Fraction(23), 8
    )


def test_minmax_of_nothing_is_nothing() -> None:
    assert scaled(np.zeros((0, 3)), "minmax", 8) == []


def test_complex_numbers_have_no_scale() -> None:
    with pytest.raises(Unsupported, match="no scale"):
        casting.scaled(array_of(np.zeros(3, "c8")), "unit", 8)


def test_the_scale_is_kept_in_the_metadata(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([2.0, 3.0]))
    convert(tmp_path / "x.npy", tmp_path / "x.ra", scale="minmax", bits=16)
    with raconvert.open(tmp_path / "x.ra") as array:
        assert array.meta.attributes == {"scale": {"from": [2.0, 3.0], "to": [0, 65535]}}


def test_the_metadata_of_the_source_is_not_changed() -> None:
    array = array_of(np.array([0.0, 1.0]), "x")
    array.meta = Metadata(attributes={"a": 1})
    casting.scaled(array, "unit", 8)
    assert array.meta.attributes == {"a": 1}


# Axes ------------------------------------------------------------------------------------------


def in_memory(logical: np.ndarray, order: str | None, **named: Any) -> Array:
    """Return an array of this logical shape, stored in this index order."""
    element = element_of(logical.dtype)
    if order == "F":
        data = np.ascontiguousarray(logical.T)
        return Array(element, logical.shape, index_order="F", data=data, **named)
    data = np.ascontiguousarray(logical).reshape(logical.shape)
    return Array(element, logical.shape[::-1], index_order=order, data=data, **named)


def logical_of(array: Array) -> np.ndarray:
    values = as_ndarray(array)
    return values.T if array.index_order == "F" else values


ORDERS = pytest.mark.parametrize("order", ["C", "F", None], ids=["C", "F", "unknown"])


@ORDERS
@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_permutations_are_those_of_numpy(rank: int, order: str | None) -> None:
    shape = (2, 3, 4, 5)[:rank]
    logical = np.arange(math.prod(shape), dtype="i4").reshape(shape)
    for axes in itertools.permutations(range(rank)):
        got = transpose.permuted(in_memory(logical, order), axes)
        assert got.shape == logical.transpose(axes).shape
        assert got.index_order == order
        assert np.array_equal(logical_of(got), logical.transpose(axes))


@st.composite
def permutations(draw: Callable[..., Any]) -> tuple[np.ndarray, tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(0, 9), max_size=5))
    axes = tuple(draw(st.permutations(range(len(shape)))))
    dtype = draw(st.sampled_from(["u1", "<i2", ">i4", "<c16", "S3", "?"]))
    values = np.arange(math.prod(shape)).astype(dtype).reshape(shape)
    return values, axes, draw(st.integers(1, 500))


@ORDERS
@given(case=permutations())
def test_any_permutation_in_any_blocks(
    order: str | None, case: tuple[np.ndarray, tuple[int, ...], int]
) -> None:
    logical, axes, max_bytes = case
    got = transpose.permuted(in_memory(logical, order), axes)
    pieces = [piece.reshape(-1).copy() for piece in blocks(got, max_bytes)]
    assert all(piece.nbytes <= max(max_bytes, piece.itemsize) for piece in pieces)
    expected = logical.transpose(axes)
    stored = expected.T if order == "F" else expected
    flat = np.concatenate(pieces) if pieces else stored.reshape(-1)
    assert flat.tolist() == stored.reshape(-1).tolist()


@ORDERS
def test_regions_of_a_permuted_array(order: str | None) -> None:
    logical = np.arange(120).reshape(2, 3, 4, 5)
    got = transpose.permuted(in_memory(logical, order), (3, 1, 0, 2))
    expected = logical.transpose(3, 1, 0, 2)
    assert got[2].tolist() == expected[2].tolist()
    assert got[1:3, 2, :, 1].tolist() == expected[1:3, 2, :, 1].tolist()
    assert got[0, 0, 0, 0] == expected[0, 0, 0, 0]
    assert got[-1, :, 1:].tolist() == expected[-1, :, 1:].tolist()


@ORDERS
def test_what_is_known_per_axis_moves_along(order: str | None) -> None:
    logical = np.zeros((2, 3, 4))
    names = ["a", "b", "c"]  # of the logical axes
    axes = [Axis(name=name) for name in (names if order == "F" else names[::-1])]
    array = in_memory(logical, order, meta=Metadata(axes=[Axis(name=name) for name in names]))
    for permutation in itertools.permutations(range(3)):
        got = transpose.permuted(array, permutation)
        told = [axis.name for axis in got.ra_axes]
        assert (told if order == "F" else told[::-1]) == [names[axis] for axis in permutation]
        assert dict(zip(told, got.dims, strict=True)) == {"a": 2, "b": 3, "c": 4}
    assert [axis.name for axis in array.ra_axes] == [axis.name for axis in axes]


@pytest.mark.parametrize("start", ["C", "F"])
@pytest.mark.parametrize("wanted", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (2, 0, 3)], ids=str)
def test_another_index_order_keeps_every_index(
    shape: tuple[int, ...], start: str, wanted: str
) -> None:
    logical = np.arange(math.prod(shape)).reshape(shape)
    got = transpose.in_order(in_memory(logical, start), wanted)
    assert got.shape == shape
    assert got.index_order == wanted or len(shape) < 2
    assert np.array_equal(logical_of(got), logical)


@pytest.mark.parametrize("axes", ["0,0", "0,1,2", "0", "-1,0", "1,2", "x", "0;1", "0.5,1"])
def test_what_is_no_permutation_is_a_usage_error(tmp_path: Path, axes: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    with pytest.raises(UsageError, match='axes="'):
        convert(tmp_path / "x.npy", tmp_path / "y.npy", axes=axes)


@every("fortran", [False, True], ids=["C", "F"])
@every("suffix", ["npy", "ra", "npz"])
@every("axes", ["0,1,2", "2,0,1", "1,0,2", "2,1,0"])
def test_permutations_from_file_to_file(
    tmp_path: Path, axes: str, suffix: str, fortran: bool
) -> None:
    logical = np.arange(24, dtype="i2").reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(logical) if fortran else logical)
    convert(tmp_path / "x.npy", tmp_path / f"y.{suffix}", axes=axes)
    got = raconvert.read(tmp_path / f"y.{suffix}")
    got = got["x"] if suffix == "npz" else got
    assert got.tolist() == logical.transpose([int(axis) for axis in axes.split(",")]).tolist()


@pytest.mark.parametrize("fortran", [False, True], ids=["C", "F"])
def test_keep_memory_lists_the_axes_in_reverse_and_moves_nothing(
    tmp_path: Path, fortran: bool
) -> None:
    logical = np.arange(24, dtype="i2").reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(logical) if fortran else logical)
    convert(tmp_path / "x.npy", tmp_path / "y.npy", axes="keep-memory")
    got = np.load(tmp_path / "y.npy")
    assert got.shape == (4, 3, 2)
    assert got.tolist() == logical.T.tolist()
    assert (tmp_path / "y.npy").read_bytes()[-48:] == (tmp_path / "x.npy").read_bytes()[-48:]


@pytest.mark.parametrize(("axes", "fortran_order"), [("c", False), ("fortran", True)])
@pytest.mark.parametrize("fortran", [False, True], ids=["C", "F"])
def test_the_memory_order_on_request_keeps_every_index(
    tmp_path: Path, axes: str, fortran_order: bool, fortran: bool
) -> None:
    logical = np.arange(24, dtype="i2").reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(logical) if fortran else logical)
    convert(tmp_path / "x.npy", tmp_path / "y.npy", axes=axes)
    got = np.load(tmp_path / "y.npy")
    assert got.flags.f_contiguous == fortran_order
    assert got.tolist() == logical.tolist()


def test_the_axis_of_pairs_that_stands_for_complex32_is_told(tmp_path: Path) -> None:
    """A permutation that moves it away from the end leaves float16, never a wrong complex32."""
    import ra_bytes

    pairs = np.arange(12, dtype="<f2").reshape(3, 2, 2)
    data = ra_bytes.ra_file(4, 4, (2, 3), pairs.tobytes())
    (tmp_path / "x.ra").write_bytes(data)
    convert(tmp_path / "x.ra", tmp_path / "same.ra", axes="1,0,2")
    assert (tmp_path / "same.ra").read_bytes() == ra_bytes.ra_file(
        4, 4, (3, 2), pairs.transpose(1, 0, 2).tobytes()
    )
    for axes in ("1,2,0", "2,1,0"):
        convert(tmp_path / "x.ra", tmp_path / "y.ra", axes=axes, overwrite=True)
        moved = pairs.transpose([int(axis) for axis in axes.split(",")])
        assert (tmp_path / "y.ra").read_bytes() == ra_bytes.ra_file(
            3, 2, moved.shape[::-1], moved.tobytes()
        )


@pytest.mark.parametrize(
    "options",
    [{"axes": "2,0,1", "dtype": "float32"}, {"axes": "2,0,1", "scale": "0:23"},
     {"scale": "0:23", "dtype": "uint16"}, {"axes": "1,2,0", "scale": "minmax", "dtype": "int64"}],
    ids=str,
)  # fmt: skip
def test_changes_go_together(tmp_path: Path, options: dict[str, str]) -> None:
    logical = np.arange(24, dtype="i2").reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(logical))
    convert(tmp_path / "x.npy", tmp_path / "y.npy", **options)
    expected = logical
    if "scale" in options:
        flat = exact_scale(logical, Fraction(0), Fraction(23), 8)
        expected = np.array(flat, "u1").reshape(logical.shape)
    if "axes" in options:
        expected = expected.transpose([int(axis) for axis in options["axes"].split(",")])
    got = np.load(tmp_path / "y.npy")
    assert got.tolist() == expected.tolist()
    assert got.dtype == options.get("dtype", "uint8")
