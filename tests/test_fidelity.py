"""The fidelity contract: exact, equivalent or refused, never a fourth outcome."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import ra_bytes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

import raconvert
from raconvert import Metadata, convert
from raconvert.conversion.report import Report
from raconvert.errors import Unsupported, WouldLose

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def npy(tmp_path: Path) -> Callable[[np.ndarray], Path]:
    """Return a function that saves values and returns the path."""

    def save(values: np.ndarray) -> Path:
        np.save(tmp_path / "x.npy", values)
        return tmp_path / "x.npy"

    return save


def refusal(source: Path, target: Path, **options: object) -> str:
    """Assert that a conversion is refused and nothing written; return the message."""
    before = sorted(os.listdir(target.parent))
    with pytest.raises(WouldLose) as caught:
        convert(source, target, **options)
    assert caught.value.exit_code == 4
    assert sorted(os.listdir(target.parent)) == before
    text = str(caught.value)
    assert str(target) in text
    assert "nothing was written" in text
    return text


def changes(report: Report) -> list[str]:
    return [str(fit) for fit in report.equivalent]


# Exact says nothing ------------------------------------------------------------------------------

PLAIN = [
    "?",
    "i1",
    "<i2",
    "<i4",
    "<i8",
    "u1",
    "<u2",
    "<u4",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    "<c8",
    "<c16",
]
OTHERS = [">i2", ">f8", ">c16", "S3", "<U2", "<M8[us]", "<m8[h]", "V5"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("suffix", ["ra", "npy", "npz"])
@pytest.mark.parametrize("dtype", [*PLAIN, *OTHERS])
def test_exact_says_nothing(
    npy: Callable[[np.ndarray], Path], tmp_path: Path, dtype: str, suffix: str, order: str
) -> None:
    raw = np.random.default_rng(0).integers(0, 2, 6 * np.dtype(dtype).itemsize, "u1")
    values = raw.view(dtype).reshape(2, 3, order=order)
    report = convert(npy(values), tmp_path / f"y.{suffix}", strict=True)
    assert report.equivalent == []
    assert report.allowed == []
    moved = order == "F" and suffix == "ra"
    assert report.notes == ["array 'x': transposed to row-major order, [i,j] kept"] * moved
    got = raconvert.read(tmp_path / f"y.{suffix}")
    got = got["x"] if suffix == "npz" else got
    assert got.shape == (2, 3)
    assert got.tobytes() == values.astype(np.dtype(dtype).newbyteorder("<")).tobytes() or (
        np.dtype(dtype).kind in "SUmMV" and got.tobytes() == values.tobytes()
    )


@pytest.mark.parametrize(
    "shape", [(), (1,), (0,), (1, 1), (0, 3), (2, 0), (5,), (1, 4, 1), (2,) * 10]
)
def test_every_shape_is_exact(
    npy: Callable[[np.ndarray], Path], tmp_path: Path, shape: tuple[int, ...]
) -> None:
    """No axis is squeezed, none is added: the position has a meaning."""
    source = npy(np.zeros(shape, "f4"))
    for suffix in ("ra", "npz"):
        report = convert(source, tmp_path / f"y.{suffix}", strict=True)
        assert report.equivalent == []
        convert(tmp_path / f"y.{suffix}", tmp_path / "back.npy", overwrite=True, strict=True)
        assert (tmp_path / "back.npy").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("suffix", ["ra", "npy", "npz"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_nan_payloads_and_negative_zeros_survive(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], suffix: str, width: int
) -> None:
    quiet = {2: 0x7E00, 4: 0x7FC0_0000, 8: 0x7FF8 << 48}[width]
    signal = {2: 0x7C01, 4: 0x7F80_0001, 8: (0x7FF0 << 48) + 1}[width]
    sign = 1 << (8 * width - 1)
    bits = [quiet, quiet + 77, sign + quiet + 5, signal, sign + signal, sign, 0, 1, sign + 1]
    values = np.array(bits, f"<u{width}").view(f"<f{width}")
    convert(npy(values), tmp_path / f"y.{suffix}")
    convert(tmp_path / f"y.{suffix}", tmp_path / "back.npy", overwrite=True)
    assert np.load(tmp_path / "back.npy").view(f"<u{width}").tolist() == bits
    if width > 2:
        paired = np.array(list(itertools.product(bits, bits)), f"<u{width}")
        convert(npy(paired.view(f"<c{2 * width}")), tmp_path / f"y.{suffix}", overwrite=True)
        convert(tmp_path / f"y.{suffix}", tmp_path / "back.npy", overwrite=True)
        assert np.load(tmp_path / "back.npy").view(f"<u{width}").tolist() == paired.tolist()


@pytest.mark.parametrize("options", [{"axes": "1,0"}, {"axes": "fortran"}], ids=str)
def test_nan_payloads_survive_moving(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], options: dict[str, str]
) -> None:
    bits = np.arange(12, dtype="<u4").reshape(3, 4) + 0x7F80_0001
    convert(npy(bits.view("<f4")), tmp_path / "y.npy", **options)
    expected = bits.T if options["axes"] == "1,0" else bits
    assert np.load(tmp_path / "y.npy").view("<u4").tolist() == expected.tolist()


def test_nan_payloads_survive_a_change_of_byte_order(
    tmp_path: Path, npy: Callable[[np.ndarray], Path]
) -> None:
    bits = np.array([0x7F80_0001, 0xFFC0_0033, 0x8000_0000], "<u4")
    convert(npy(bits.astype(">u4").view(">f4")), tmp_path / "y.ra")
    assert raconvert.read(tmp_path / "y.ra").view("<u4").tolist() == bits.tolist()


def test_nan_payloads_survive_stacking(tmp_path: Path) -> None:
    bits = np.array([0x7F80_0001, 0xFFC0_0033, 0x8000_0000], "<u4")
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", bits.view("<f4"))
    convert(tmp_path / "?.npy", tmp_path / "y.ra")
    assert raconvert.read(tmp_path / "y.ra").view("<u4").tolist() == [bits.tolist()] * 2


@given(
    st_np.arrays(
        st.sampled_from(["<f8", ">f4", "<c8", "<i8", ">u2", "?"]),
        st_np.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    st.sampled_from(["C", "F"]),
)
def test_any_array_survives_there_and_back(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, order: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    np.save(folder / "any.npy", np.array(values, order=order))
    convert(folder / "any.npy", folder / "any.ra", overwrite=True, strict=True, sync=False)
    convert(folder / "any.ra", folder / "any.npz", overwrite=True, strict=True, sync=False)
    convert(folder / "any.npz", folder / "back.npy", overwrite=True, strict=True, sync=False)
    back = np.load(folder / "back.npy")
    assert back.shape == values.shape
    assert back.tobytes() == values.astype(values.dtype.newbyteorder("<")).tobytes()


# Equivalent is said in one line and recorded -----------------------------------------------------


def test_metadata_without_a_place_is_equivalent(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.zeros(3), meta=Metadata(description="text"))
    report = convert(tmp_path / "x.ra", tmp_path / "y.npy")
    assert changes(report) == ["array 'x': metadata: NPY has no place for it: description"]
    assert (tmp_path / "y.npy").exists()


def test_bool_images_are_equivalent(tmp_path: Path, npy: Callable[[np.ndarray], Path]) -> None:
    values = np.eye(3, dtype=bool)
    report = convert(npy(values), tmp_path / "y.png")
    assert len(report.equivalent) == 1
    assert report.equivalent[0].property == "type"
    assert "\n" not in changes(report)[0]
    assert raconvert.read(tmp_path / "y.png").tolist() == (values * 255).tolist()


def test_one_channel_is_equivalent(tmp_path: Path, npy: Callable[[np.ndarray], Path]) -> None:
    report = convert(npy(np.zeros((4, 5, 1), "u1")), tmp_path / "y.png")
    assert [fit.property for fit in report.equivalent] == ["shape"]


@pytest.mark.parametrize(
    ("values", "suffix"),
    [(np.eye(3, dtype=bool), "png"), (np.zeros((4, 5, 1), "u1"), "png")],
    ids=["bool", "one-channel"],
)
def test_strict_refuses_what_is_equivalent(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], values: np.ndarray, suffix: str
) -> None:
    text = refusal(npy(values), tmp_path / f"y.{suffix}", strict=True)
    assert "array 'x'" in text
    assert "strict=True" in text


def test_strict_refuses_metadata_that_would_go(tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.ra", np.zeros(3), meta=Metadata(description="text"))
    refusal(tmp_path / "x.ra", tmp_path / "y.npy", strict=True)
    report = convert(tmp_path / "x.ra", tmp_path / "y.npy", strict=True, meta="sidecar")
    assert report.equivalent == []


def test_strict_and_allow_together(tmp_path: Path) -> None:
    """--allow is for what would be lost; it does not undo --strict."""
    raconvert.write(tmp_path / "x.ra", np.zeros(3), meta=Metadata(description="text"))
    refusal(tmp_path / "x.ra", tmp_path / "y.npy", strict=True, allow=["all"])


def test_a_stack_with_metadata_that_would_go_is_refused_by_strict(tmp_path: Path) -> None:
    """Also where the metadata is met only while the files are read."""
    for number in range(3):
        meta = Metadata(attributes={"n": number}) if number else None
        raconvert.write(tmp_path / f"{number}.ra", np.zeros(3), meta=meta)
    refusal(tmp_path / "?.ra", tmp_path / "y.npy", strict=True)
    report = convert(tmp_path / "?.ra", tmp_path / "y.npy")
    assert [fit.property for fit in report.equivalent] == ["metadata"]


# Refused: array, property, flag ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "<i2", "<i4", "<i8", "<u4", "<u8", "<f2", "<f4", "<f8"])
def test_types_decide_and_not_values(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], dtype: str
) -> None:
    source = npy(np.array([[0, 1], [2, 3]], dtype))
    text = refusal(source, tmp_path / "y.png")
    assert "array 'x'" in text
    assert "type" in text
    assert 'dtype="uint8"' in text
    convert(source, tmp_path / "y.png", dtype="uint8")
    assert raconvert.read(tmp_path / "y.png").tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "dtype", ["<c8", "<c16", "S3", "<U2", "<M8[s]", "V4"], ids=lambda dtype: dtype.strip("<")
)
def test_no_flag_is_named_where_there_is_none(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], dtype: str
) -> None:
    text = refusal(npy(np.zeros((2, 3), dtype)), tmp_path / "y.png", allow=["all"])
    assert "no option allows this" in text
    assert "dtype=" not in text


@pytest.mark.parametrize(
    ("shape", "flag"),
    [((5,), None), ((), None), ((0, 3), None), ((2, 3, 5), "planes=True"), ((3, 5, 6), 'axes="1,2,0"'),
     ((2, 4, 5, 3), "planes=True")],
    ids=str,
)  # fmt: skip
def test_shapes_that_a_png_cannot_have(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], shape: tuple[int, ...], flag: str | None
) -> None:
    text = refusal(npy(np.zeros(shape, "u1")), tmp_path / "y.png", allow=["all"])
    assert "shape" in text
    assert flag is None or flag in text


def test_all_reasons_are_told_at_once(tmp_path: Path, npy: Callable[[np.ndarray], Path]) -> None:
    text = refusal(npy(np.zeros((2, 3, 5))), tmp_path / "y.png")
    assert "type:" in text
    assert "shape:" in text


def test_every_array_is_named(tmp_path: Path) -> None:
    with pytest.raises(WouldLose) as caught:
        raconvert.write(
            tmp_path / "y.npz",
            {"good": np.zeros(3), "b1": np.zeros(3, ml_dtypes.bfloat16),
             "b2": np.zeros(3, ml_dtypes.bfloat16)},
        )  # fmt: skip
    assert "array 'b1'" in str(caught.value)
    assert "array 'b2'" in str(caught.value)
    assert "array 'good'" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble", "float6_e2m3fn", "int4", "object"])
def test_what_ra_cannot_hold_is_refused_with_the_reason(tmp_path: Path, dtype: str) -> None:
    values = np.zeros(3, getattr(ml_dtypes, dtype, dtype))
    with pytest.raises(Unsupported, match="no option allows this"):
        raconvert.write(tmp_path / "y.ra", values)
    assert os.listdir(tmp_path) == []


# Allowed -----------------------------------------------------------------------------------------


def test_allow_lets_exactly_that_through(tmp_path: Path) -> None:
    values = np.arange(3).astype(ml_dtypes.bfloat16)
    raconvert.write(tmp_path / "x.ra", values)
    for allow in ([], ["precision"], ["names", "nulls", "elements"]):
        assert 'allow=["dtype"]' in refusal(tmp_path / "x.ra", tmp_path / "y.npy", allow=allow)
    for allow in (["dtype"], ["all"], "dtype"):
        report = convert(tmp_path / "x.ra", tmp_path / "y.npy", allow=allow, overwrite=True)
        assert [fit.property for fit in report.allowed] == ["type"]
        assert report.equivalent == []
    assert np.load(tmp_path / "y.npy").tobytes() == values.tobytes()


def test_an_unknown_loss_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(raconvert.RaconvertError, match="did you mean 'dtype'") as caught:
        convert(tmp_path / "x.npy", tmp_path / "y.ra", allow=["dtyp"])
    assert caught.value.exit_code == 2


def test_dtype_is_checked_value_by_value(tmp_path: Path, npy: Callable[[np.ndarray], Path]) -> None:
    values = np.zeros((100, 100), "i8")
    values[70, 30], values[80, 1] = 256, -1
    text = refusal(npy(values), tmp_path / "y.png", dtype="uint8")
    assert "value 256" in text
    assert "index [70, 30]" in text
    assert "array 'x'" in text
    convert(tmp_path / "x.npy", tmp_path / "y.ra", dtype="int16")
    assert raconvert.read(tmp_path / "y.ra").tolist() == values.tolist()


def test_the_first_misfit_aborts_with_its_index_in_a_column_major_array(
    tmp_path: Path, npy: Callable[[np.ndarray], Path]
) -> None:
    values = np.zeros((3, 4), "i8", order="F")
    values[2, 1] = 300
    assert "index [2, 1]" in refusal(npy(values), tmp_path / "y.npy", dtype="uint8")
    assert "index [2, 1]" in refusal(npy(values), tmp_path / "y.ra", dtype="uint8")
    assert "index [2, 1]" in refusal(npy(values), tmp_path / "y.png", dtype="uint8")


def test_the_misfit_in_a_stack_is_named_with_the_index_in_the_stack(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((2, 2), 100 * number))
    np.save(tmp_path / "2.npy", np.array([[0, 0], [0, 999]]))
    assert "index [2, 1, 1]" in refusal(tmp_path / "?.npy", tmp_path / "y.ra", dtype="uint8")


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([0.5, 1.5, 2.5, -0.5], "int8", [0, 2, 2, 0]),
        ([0.1, 1 / 3], "float32", [float(np.float32(0.1)), float(np.float32(1 / 3))]),
        ([2**53 + 1, 2**53 + 3], "float64", [2**53, 2**53 + 4]),
    ],
    ids=["to-integers", "to-float32", "to-float64"],
)
def test_precision_rounds_half_to_even(
    tmp_path: Path,
    npy: Callable[[np.ndarray], Path],
    values: list[float],
    dtype: str,
    expected: list[float],
) -> None:
    source = npy(np.array(values))
    assert 'allow=["precision"]' in refusal(source, tmp_path / "y.npy", dtype=dtype)
    refusal(source, tmp_path / "y.npy", dtype=dtype, allow=["dtype", "nulls"])
    convert(source, tmp_path / "y.npy", dtype=dtype, allow=["precision"])
    assert np.load(tmp_path / "y.npy").tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(255.5, "uint8"), (-0.6, "uint8"), (1e39, "float32"), (np.nan, "int32"), (np.inf, "uint8"),
     (70000.0, "float16"), (2.0**63, "int64"), (300.0, "uint8")],
)  # fmt: skip
def test_precision_never_wraps_or_saturates(
    tmp_path: Path, npy: Callable[[np.ndarray], Path], value: float, dtype: str
) -> None:
    text = refusal(npy(np.array([0, value])), tmp_path / "y.ra", dtype=dtype, allow=["precision"])
    assert "index [1]" in text
    assert 'allow=["precision"]' not in text


def test_rounding_that_happened_is_recorded(
    tmp_path: Path, npy: Callable[[np.ndarray], Path]
) -> None:
    report = convert(npy(np.array([0.5])), tmp_path / "y.ra", dtype="uint8", allow=["precision"])
    assert "precision" in " ".join(map(str, report.allowed))


def test_nothing_is_recorded_where_every_value_fits(
    tmp_path: Path, npy: Callable[[np.ndarray], Path]
) -> None:
    report = convert(npy(np.array([1.0])), tmp_path / "y.ra", dtype="uint8")
    assert report.allowed == []


# What the types of RA that numpy lacks become ----------------------------------------------------


@pytest.mark.parametrize("code", [(1, 16), (2, 16), (3, 16), (4, 32), (4, 4)], ids=str)
def test_a_type_that_numpy_lacks_survives_from_ra_to_ra(
    tmp_path: Path, code: tuple[int, int]
) -> None:
    data = ra_bytes.ra_file(*code, (3, 2), bytes(range(6 * code[1])))
    (tmp_path / "x.ra").write_bytes(data)
    report = convert(tmp_path / "x.ra", tmp_path / "y.ra", strict=True)
    assert (tmp_path / "y.ra").read_bytes() == data
    assert report.equivalent == []


@pytest.mark.parametrize("code", [(1, 16), (3, 16), (4, 4)], ids=str)
def test_a_type_that_numpy_lacks_is_named_where_it_is_lost(
    tmp_path: Path, code: tuple[int, int]
) -> None:
    data = ra_bytes.ra_file(*code, (3, 2), bytes(range(6 * code[1])))
    (tmp_path / "x.ra").write_bytes(data)
    report = convert(tmp_path / "x.ra", tmp_path / "y.npy")
    assert report.equivalent


# On the command line -----------------------------------------------------------------------------


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "raconvert", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_outcomes_on_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "exact.npy", np.eye(3, dtype="u1"))
    np.save(tmp_path / "bool.npy", np.eye(3, dtype=bool))
    np.save(tmp_path / "wide.npy", np.eye(3, dtype="i8"))

    exact = run(tmp_path / "exact.npy", "-o", tmp_path / "exact.png", "-q")
    equivalent = run(tmp_path / "bool.npy", "-o", tmp_path / "bool.png", "-q")
    strict = run(tmp_path / "bool.npy", "-o", tmp_path / "strict.png", "--strict")
    refused = run(tmp_path / "wide.npy", "-o", tmp_path / "wide.png")

    assert (exact.returncode, exact.stderr) == (0, "")
    assert equivalent.returncode == 0
    assert strict.returncode == 4
    assert refused.returncode == 4
    assert "array 'wide': type" in refused.stderr
    assert "--dtype uint8" in refused.stderr
    assert "nothing was written" in refused.stderr
    assert "Traceback" not in strict.stderr + refused.stderr
    assert not (tmp_path / "wide.png").exists()
    told = run(tmp_path / "bool.npy", "-o", tmp_path / "told.png")
    lines = [line for line in told.stderr.splitlines() if "1-bit" in line]
    assert len(lines) == 1
