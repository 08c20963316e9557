"""Writing NRRD: other tools as oracles in both directions, the way back, and what does not fit."""

from __future__ import annotations

import gzip
import itertools
import math
import os
import subprocess
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raconvert.plugins import nrrd
from raconvert.plugins.nrrd.fields import FIELDS, parsed, text_of
from raconvert.plugins.nrrd.header import lowest_version, read_header
from raconvert.plugins.nrrd.tables import ELEMENTS, KIND_SIZES, SPACE_RANKS

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TargetExists,
    Unsupported,
    UsageError,
    WouldLose,
)
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Extent, Source
from raconvert.files.target import Target
from raconvert.metadata import roundtrip
from raconvert.plugin import EQUIVALENT, REFUSED
from raconvert.testing import CASES, same

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "nrrd"
NUMBERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
UNU_NAMES = ("char", "uchar", "short", "ushort", "int", "uint", "longlong", "ulonglong", "float",
             "double")  # fmt: skip
ENCODINGS = ("raw", "gzip", "gzip:1", "bzip2", "ascii", "hex")


def extremes(code: str, shape: tuple[int, ...] = (4, 3, 2)) -> np.ndarray:
    """Return values of a type, its extremes, NaN, infinities and -0.0 among them."""
    dtype = np.dtype(f"<{code}")
    count = math.prod(shape)
    rng = np.random.default_rng(7)
    if dtype.kind == "f":
        values = rng.normal(size=count).astype(dtype)
        limits = np.finfo(dtype)
        values[:7] = [np.nan, np.inf, -np.inf, -0.0, limits.max, limits.smallest_subnormal, 0.1]
    else:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        values[:2] = limits.min, limits.max
    return values.reshape(shape)


def array_of(values: np.ndarray, meta: Metadata | None = None, **more: Any) -> Array:
    """Return an array as an importer would hand it out."""
    return Array(
        element_of(values.dtype), values.shape[::-1], name="x", data=values, meta=meta, **more
    )


def written(array: Array, path: Path, allow: tuple[str, ...] = (), **options: Any) -> Path:
    """Write one array with the plugin."""
    with Target(str(path), overwrite=True, allow=allow) as target:
        nrrd.plan(Bundle([array]), **options).write(target)
        target.commit(sync=False)
    return path


def read(path: Path, **options: Any) -> Array:
    """Read the one array."""
    bundle = nrrd.read(Source(str(path)), **options)
    (array,) = bundle.arrays
    assert bundle.notes == []
    return array


def fits(array: Array, **options: Any) -> list[tuple[str, str, str | None]]:
    """Return outcome, property and flag of everything that writing would change."""
    return [(f.outcome, f.property, f.flag) for f in nrrd.plan(Bundle([array]), **options).fits]


def head(path: Path) -> list[str]:
    """Return the lines of the header."""
    return path.read_bytes().partition(b"\n\n")[0].decode().split("\n")


# --- other tools read what we write ---------------------------------------------------------------

UNU = ("unu", "teem-unu")


@pytest.fixture
def unu(tool: Callable[..., str]) -> Callable[..., bytes]:
    """Return a function that runs unu and returns what it prints."""

    def run(*words: object, data: bytes = b"") -> bytes:
        command = [tool(*UNU), *map(str, words)]
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


def values_by_unu(unu: Callable[..., bytes], path: Path, values: np.ndarray) -> np.ndarray:
    """Return what unu reads, in the type and shape of `values`."""
    raw = unu("save", "-f", "nrrd", "-e", "raw", "-en", "little", "-i", path)
    return np.frombuffer(raw.partition(b"\n\n")[2], values.dtype).reshape(values.shape)


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Compare types and values, the sign of zero included; any NaN equals any NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return np.array_equal(a, b, equal_nan=True) and bool(
        (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
    )


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_unu_reads_every_type(
    encoding: str, suffix: str, unu: Callable[..., bytes], tmp_path: Path
) -> None:
    for code in NUMBERS:
        values = extremes(code)
        path = written(array_of(values), tmp_path / f"{code}.{suffix}", encoding=encoding)

        got = values_by_unu(unu, path, values)

        same_bits = encoding != "ascii" or np.dtype(code).kind != "f"
        assert got.tobytes() == values.tobytes() if same_bits else equal(got, values)


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2", "ascii"])
def test_pynrrd_reads_every_type(encoding: str, suffix: str, tmp_path: Path) -> None:
    pynrrd = pytest.importorskip("nrrd")
    for code in NUMBERS:
        values = extremes(code)
        path = written(array_of(values), tmp_path / f"{code}.{suffix}", encoding=encoding)

        got, _ = pynrrd.read(str(path), index_order="C")

        assert equal(got, values)


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("encoding", ["raw", "gzip", "ascii", "hex"])
def test_simpleitk_reads_every_type(encoding: str, suffix: str, tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    for code, shape in itertools.product(NUMBERS, [(4, 6), (4, 3, 2), (5, 1, 2, 3)]):
        values = extremes(code, shape)
        path = written(array_of(values), tmp_path / f"{code}.{suffix}", encoding=encoding)

        assert equal(itk.GetArrayFromImage(itk.ReadImage(str(path))), values)


def test_metadata_for_other_tools(unu: Callable[..., bytes], tmp_path: Path) -> None:
    pynrrd = pytest.importorskip("nrrd")
    axes = [
        Axis(name="a", kind="2-vector"),
        Axis(name='q"\\b', units="mm", spacing=0.1, origin=-3.5),
        Axis(kind="time", units="s", spacing=2),
    ]
    meta = Metadata("what it is", "V", axes[::-1], {"key": "value\nwith \\n", "µ": "é"})
    path = written(array_of(extremes("i2"), meta), tmp_path / "x.nrrd")

    assert head(path) == [
        "NRRD0004", "content: what it is", "type: int16", "dimension: 3", "sizes: 2 3 4",
        "spacings: nan 0.1 2", "axis mins: nan -3.5 nan", "centerings: ??? node ???",
        "kinds: 2-vector ??? time", r'labels: "a" "q\"\b" ""', 'units: "" "mm" "s"',
        "endian: little", "encoding: raw", "sample units: V", r"key:=value\nwith \\n", "µ:=é",
    ]  # fmt: skip
    by_unu = unu("save", "-f", "nrrd", "-e", "raw", "-i", path).partition(b"\n\n")[0].decode()
    for line in (r"key:=value\nwith \\n", r'labels: "a" "q\"\b" ""', "kinds: 2-vector ??? time",
                 "spacings: nan 0.10000000000000001 2", "axis mins: nan -3.5 nan"):  # fmt: skip
        assert line in by_unu.split("\n")
    _, header = pynrrd.read(str(path))
    assert header["spacings"][1:].tolist() == [0.1, 2]
    assert header["content"] == "what it is"
    assert header["sample units"] == "V"


def test_simpleitk_reads_the_space_again(tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    image = itk.GetImageFromArray(extremes("f4", (4, 3, 2)))
    image.SetSpacing((0.5, 2.0, 0.3))
    image.SetOrigin((1.0, -2.0, 3.0))
    image.SetDirection((0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    itk.WriteImage(image, str(tmp_path / "a.nrrd"))
    raconvert.convert(tmp_path / "a.nrrd", tmp_path / "a.ra", sync=False)
    raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nrrd", sync=False)

    back = itk.ReadImage(str(tmp_path / "b.nrrd"))

    assert back.GetSpacing() == image.GetSpacing()
    assert back.GetOrigin() == image.GetOrigin()
    assert back.GetDirection() == image.GetDirection()
    assert itk.GetArrayFromImage(back).tobytes() == itk.GetArrayFromImage(image).tobytes()


def test_other_tools_see_complex_pixels(unu: Callable[..., bytes], tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    values = extremes("f4", (4, 12)).view("<c8")
    path = written(array_of(values), tmp_path / "x.nrrd")

    assert head(path)[1:5] == [
        "type: float",
        "dimension: 3",
        "sizes: 2 6 4",
        "kinds: complex ??? ???",
    ]
    assert itk.GetArrayFromImage(itk.ReadImage(str(path))).tobytes() == values.tobytes()
    pairs = np.ascontiguousarray(values).view("<f4").reshape(4, 6, 2)
    assert values_by_unu(unu, path, pairs).tobytes() == values.tobytes()


def test_unu_reads_blocks(unu: Callable[..., bytes], tmp_path: Path) -> None:
    values = np.array([b"ab", b"cde", b""], "S3")
    path = written(array_of(values), tmp_path / "x.nrrd")

    assert unu("data", path) == values.tobytes()


# --- we read what other tools write ---------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("encoding", ["raw", "ascii", "hex", "gzip", "bzip2"])
def test_what_unu_writes(
    encoding: str, order: str, suffix: str, unu: Callable[..., bytes], tmp_path: Path
) -> None:
    if (encoding, order) == ("ascii", "big"):
        order = "little"  # unu swaps the bytes and then prints the numbers that they became
    (tmp_path / "out").mkdir()
    for code, name in zip(NUMBERS, UNU_NAMES, strict=True):
        values = extremes(code)
        kind = {"char": "signed char"}.get(name, name)
        raw = tmp_path / "raw"
        raw.write_bytes(values.tobytes())
        made = unu("make", "-i", raw, "-t", kind, "-s", 2, 3, 4, "-e", "raw", "-en", "little")
        path = tmp_path / "out" / f"{name}.{suffix}"
        unu("save", "-f", "nrrd", "-e", encoding, "-en", order, "-o", path, data=made)

        assert equal(as_ndarray(read(path)), values)


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("encoding", ["raw", "ascii", "gzip", "bzip2"])
def test_what_pynrrd_writes(encoding: str, suffix: str, tmp_path: Path) -> None:
    pynrrd = pytest.importorskip("nrrd")
    for code, order in itertools.product(NUMBERS, "<>"):
        values = extremes(code)
        if encoding == "ascii" and code in ("i8", "u8"):
            values %= 1 << 50  # pynrrd writes larger ones as floats, which are no integers
        path = tmp_path / f"{code}.{suffix}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pynrrd.write(
                str(path), values.astype(order + code), {"encoding": encoding}, index_order="C"
            )

        assert equal(as_ndarray(read(path)), values)


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("compressed", [False, True])
def test_what_simpleitk_writes(compressed: bool, suffix: str, tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    for code, shape in itertools.product(NUMBERS, [(4, 6), (4, 3, 2)]):
        values, path = extremes(code, shape), tmp_path / f"{code}.{suffix}"
        itk.WriteImage(itk.GetImageFromArray(values), str(path), useCompression=compressed)

        assert equal(as_ndarray(read(path)), values)
    vectors = itk.GetImageFromArray(extremes("u2", (4, 6, 3)), isVector=True)
    itk.WriteImage(vectors, str(tmp_path / f"v.{suffix}"), useCompression=compressed)
    assert equal(as_ndarray(read(tmp_path / f"v.{suffix}")), extremes("u2", (4, 6, 3)))


def test_positions_are_those_that_unu_means(unu: Callable[..., bytes], tmp_path: Path) -> None:
    # Bins of a histogram are cells: a value falls into the bin whose position is the nearest.
    (tmp_path / "v.txt").write_text("0.3\n1.9\n2.2\n4.9\n")
    unu("histo", "-i", tmp_path / "v.txt", "-b", 10, "-min", 0, "-max", 5, "-o",
        tmp_path / "h.nrrd")  # fmt: skip
    counts = read(tmp_path / "h.nrrd")
    (axis,) = counts.ra_axes
    assert np.flatnonzero(as_ndarray(counts)).tolist() == [0, 3, 4, 9]
    assert [round((v - axis.origin) / axis.spacing) for v in (0.3, 1.9, 2.2, 4.9)] == [0, 3, 4, 9]

    # A map of nodes gives its own values at the positions of its samples.
    values = np.array([7, 1, 5, 2, 9], "f4")
    entry = {"min": -1, "max": 7, "center": "node"}
    path = written(
        array_of(values, Metadata(formats={"nrrd": {"axes": [entry]}})), tmp_path / "m.nrrd"
    )
    (axis,) = read(path).ra_axes
    positions = np.array([axis.origin + n * axis.spacing for n in range(5)], "f4")
    where = written(array_of(positions), tmp_path / "p.nrrd")
    mapped = unu("rmap", "-i", where, "-m", path, "-t", "float", "-o", "-")
    assert np.frombuffer(mapped.partition(b"\n\n")[2], "<f4").tolist() == values.tolist()


# --- the way back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["nrrd", "nhdr"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_case_of_the_kit_in_every_encoding(
    encoding: str, suffix: str, tmp_path: Path
) -> None:
    wrong, held = [], 0
    for name, case in CASES.items():
        array = case.array()
        if case.shape not in ((), (4, 6), (3, 4, 1)) or any(
            outcome == REFUSED for outcome, *_ in fits(array, encoding=encoding)
        ):
            continue
        in_text = encoding == "ascii" and case.values.dtype.kind in "fc"  # NaN is plain there
        allow = ("precision",) if in_text else ()
        back = read(written(array, tmp_path / f"x.{suffix}", allow, encoding=encoding))
        values = np.asarray(back)
        held += 1
        exact = same(case.values, values)
        if in_text:
            with np.errstate(invalid="ignore"):  # signalling NaN, from numpy 2.5 on
                exact = np.array_equal(case.values, values, equal_nan=True)
        if not exact or (back.index_order == "F") != (case.order == "F" and len(case.shape) > 1):
            wrong.append((name, values.dtype, values.shape, back.index_order))
    assert wrong == []
    assert held > 90


def test_text_has_the_shortest_numbers_and_a_line_per_row(tmp_path: Path) -> None:
    values = np.array([[0.1, 1e22, -0.0], [np.nan, np.inf, 16777216]], "<f4")

    path = written(array_of(values), tmp_path / "x.nrrd", encoding="ascii")

    assert path.read_text().partition("\n\n")[2] == "0.1 1e+22 -0.0\nnan inf 1.6777216e+07\n"


def test_text_and_hex_over_many_blocks(tmp_path: Path) -> None:
    values = np.arange(300_000, dtype="<i4").reshape(100_000, 3)
    for encoding in ("ascii", "hex"):
        with Target(str(tmp_path / "x.nrrd"), max_memory=1 << 19, overwrite=True) as target:
            nrrd.plan(Bundle([array_of(values)]), encoding=encoding).write(target)
            target.commit(sync=False)
        assert np.array_equal(as_ndarray(read(tmp_path / "x.nrrd")), values)
        if encoding == "ascii":
            rows = (tmp_path / "x.nrrd").read_text().partition("\n\n")[2].splitlines()
            assert rows == [f"{3 * n} {3 * n + 1} {3 * n + 2}" for n in range(100_000)]


def test_output_is_deterministic_and_has_no_time(tmp_path: Path) -> None:
    meta = Metadata("d", attributes={"b": "1", "a": 2})
    for encoding in ENCODINGS:
        one, two = (
            written(array_of(extremes("f8"), meta), tmp_path / name, encoding=encoding).read_bytes()
            for name in ("1.nrrd", "2.nrrd")
        )
        assert one == two
    data = written(array_of(extremes("f8")), tmp_path / "x.nhdr", encoding="gzip")
    assert data.with_name("x.raw.gz").read_bytes()[4:8] == bytes(4)  # RFC 1952: MTIME


def test_levels(tmp_path: Path) -> None:
    values = np.tile(np.arange(2000, dtype="<i4"), 50)
    sizes = [
        written(array_of(values), tmp_path / "x.nrrd", encoding=f"gzip:{n}").stat().st_size
        for n in (1, 6, 9)
    ]
    default = written(array_of(values), tmp_path / "x.nrrd", encoding="gzip").stat().st_size

    assert sizes[0] > sizes[1] >= sizes[2]
    assert default == sizes[1]


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("a.nhdr", "a.raw", "data file: ./a.raw"),
        ("a b.NHDR", "a b.raw", "data file: ./a b.raw"),
        ("LIST.nhdr", "LIST.raw", "data file: ./LIST.raw"),
        ("é.nhdr", "é.raw", "data file: ./é.raw"),
    ],
)
def test_detached_data_lies_beside_the_header(
    name: str, data: str, line: str, tmp_path: Path, unu: Callable[..., bytes]
) -> None:
    values = extremes("i2")
    report = raconvert.convert(_npy(tmp_path, values), tmp_path / name, sync=False)

    assert sorted(map(os.path.basename, report.written)) == sorted([name, data])
    assert head(tmp_path / name)[-1] == line
    assert (tmp_path / data).read_bytes() == values.tobytes()
    assert np.array_equal(values_by_unu(unu, tmp_path / name, values), values)


def _npy(folder: Path, values: np.ndarray) -> Path:
    np.save(folder / "source.npy", values)
    return folder / "source.npy"


def test_detached_data_never_replaces_another_file(tmp_path: Path) -> None:
    source = _npy(tmp_path, extremes("i2"))
    (tmp_path / "x.raw").write_bytes(b"mine")

    with pytest.raises(TargetExists, match=r"x\.raw"):
        raconvert.convert(source, tmp_path / "x.nhdr")

    assert (tmp_path / "x.raw").read_bytes() == b"mine"
    assert not (tmp_path / "x.nhdr").exists()
    raconvert.convert(source, tmp_path / "x.nhdr", overwrite=True)
    assert (tmp_path / "x.raw").read_bytes() == extremes("i2").tobytes()


@pytest.mark.parametrize("encoding", ["raw", "hex"])
def test_detached_data_never_replaces_its_own_source(encoding: str, tmp_path: Path) -> None:
    lines = ["NRRD0001", "type: uchar", "dimension: 1", "sizes: 4", f"encoding: {encoding}"]
    (tmp_path / "a.nhdr").write_text("\n".join([*lines, "data file: b.raw", ""]))
    (tmp_path / "b.raw").write_bytes(b"61626364"[: 4 if encoding == "raw" else 8])
    before = (tmp_path / "b.raw").read_bytes()

    with pytest.raises(TargetExists, match="is read by the source"):
        raconvert.convert(tmp_path / "a.nhdr", tmp_path / "b.nhdr", overwrite=True)

    assert (tmp_path / "b.raw").read_bytes() == before


def test_names_of_data_files_are_utf8_whatever_the_header_was(
    tmp_path: Path, unu: Callable[..., bytes]
) -> None:
    for name in ("日本", "é", "plain"):
        raconvert.convert(FIXTURES / "latin1.nrrd", tmp_path / f"{name}.nhdr", sync=False)

        back = read(tmp_path / f"{name}.nhdr")

        assert back.meta.attributes == {"größe": "5 µm"}
        assert back.ra_axes[0].units == "µm"
        assert as_ndarray(back).tobytes() == b"abc"
        values = np.frombuffer(b"abc", "u1")
        assert np.array_equal(values_by_unu(unu, tmp_path / f"{name}.nhdr", values), values)
    assert 'units: "µm"'.encode("latin-1") in (tmp_path / "plain.nhdr").read_bytes()


@pytest.mark.parametrize("name", ["a%d.nhdr", "100%.nhdr", " a.nhdr", "a\nb.nhdr", "a\udcff.nhdr"])
def test_names_that_a_header_cannot_hold(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="cannot name a data file"):
        raconvert.convert(_npy(tmp_path, extremes("i2")), tmp_path / name)

    assert sorted(os.listdir(tmp_path)) == ["source.npy"]


def test_a_failed_write_leaves_neither_header_nor_data(tmp_path: Path) -> None:
    path = written(array_of(extremes("i2")), tmp_path / "a.nrrd", encoding="gzip")
    damaged = bytearray(path.read_bytes())
    damaged[-6] ^= 1
    path.write_bytes(damaged)

    for suffix in ("nhdr", "nrrd"):
        for encoding in ENCODINGS:
            with pytest.raises(RaconvertError, match="gzip"):
                raconvert.convert(path, tmp_path / f"b.{suffix}", out_opts={"encoding": encoding})

    assert os.listdir(tmp_path) == ["a.nrrd"]


def test_raw_data_is_copied_from_file_to_file(tmp_path: Path) -> None:
    values = extremes("i4")
    written(array_of(values), tmp_path / "a.nrrd")
    array = read(tmp_path / "a.nrrd")
    array._data = None

    assert isinstance(array.extent, Extent)
    written(array, tmp_path / "b.nrrd")
    written(array, tmp_path / "c.nhdr")

    assert array._data is None  # nothing was mapped
    assert (tmp_path / "b.nrrd").read_bytes() == (tmp_path / "a.nrrd").read_bytes()
    assert (tmp_path / "c.raw").read_bytes() == values.tobytes()


def test_unknown_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gzip:10"):
        raconvert.convert(
            _npy(tmp_path, extremes("i2")), tmp_path / "x.nrrd", out_opts={"encoding": "gzip:10"}
        )


# --- what fits ------------------------------------------------------------------------------------


def test_numbers_fit_exactly() -> None:
    for code in NUMBERS:
        assert fits(array_of(extremes(code))) == []
    assert fits(array_of(extremes(">i4"[1:]).astype(">i4"))) == []
    assert fits(array_of(np.zeros(3, "V5"))) == []


SHAPE, TYPE = (EQUIVALENT, "shape", None), (EQUIVALENT, "type", None)


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        (np.zeros(3, "?"), {}, [TYPE]),
        (np.zeros(3, "c8"), {}, [TYPE]),
        (np.zeros(3, "S3"), {}, [TYPE]),
        (np.zeros(3, "M8[s]"), {}, [TYPE]),
        (np.zeros((), "f4"), {}, [SHAPE]),
        (np.zeros((), "c8"), {}, [TYPE]),  # the axis of pairs is the one axis
        (np.zeros((3, 0)), {}, [(REFUSED, "shape", None)]),
        (np.zeros(3, "f2"), {}, [(REFUSED, "type", "--dtype float32")]),
        (np.zeros((1,) * 16), {}, []),
        (np.zeros((1,) * 17), {}, [(REFUSED, "shape", None)]),
        (np.zeros((1,) * 15, "c8"), {}, [TYPE]),
        (np.zeros((1,) * 16, "c8"), {}, [(REFUSED, "shape", None), TYPE]),
        (np.zeros(3), {"encoding": "ascii"}, []),
        (np.zeros(3, "i4"), {"encoding": "ascii"}, []),
        (np.zeros(3, "V5"), {"encoding": "ascii"}, [(REFUSED, "type", None)]),
        (np.zeros(3, "V5"), {"encoding": "hex"}, []),
    ],
    ids=lambda value: f"{value.dtype}-{value.ndim}" if isinstance(value, np.ndarray) else "",
)  # fmt: skip
def test_what_fits(values: np.ndarray, options: dict, expected: list) -> None:
    assert fits(array_of(values), **options) == expected


def test_sixteen_axes_round_trip(tmp_path: Path, unu: Callable[..., bytes]) -> None:
    values = extremes("i2", (2, *[1] * 14, 12))
    path = written(array_of(values), tmp_path / "x.nrrd")

    assert np.array_equal(as_ndarray(read(path)), values)
    assert np.array_equal(values_by_unu(unu, path, values), values)


def test_float16_goes_through_a_cast(tmp_path: Path) -> None:
    values = np.array([0.1, np.inf, -0.0, 6e-8], "f2")
    source = _npy(tmp_path, values)

    with pytest.raises(WouldLose, match='dtype="float32"'):
        raconvert.convert(source, tmp_path / "x.nrrd")
    raconvert.convert(source, tmp_path / "x.nrrd", dtype="float32")

    assert np.array_equal(as_ndarray(read(tmp_path / "x.nrrd")), values.astype("f4"))


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    meta = Metadata(
        attributes={
            "clock": time(12),
            "long": "x" * (5 << 20),
            "many": [0] * (1 << 20),
        },
        axes=[Axis(name=5, labels=["a"]), Axis(spacing="wide")][::-1],
        formats={"ra": {"trailer": Extent("x", 0, 1)}, "nrrd": {"axes": [{}] * 3}},
    )
    meta = meta.replace(items=lambda: iter([]))

    (fit,) = nrrd.plan(Bundle([array_of(extremes("i2", (4, 6)), meta)])).fits

    for what in ("'clock'", "'long'", "'many'", "axis 0 (spacing 'wide')", "axis 1 5 (name 5)",
                 "trailer", "items", "namespace nrrd"):  # fmt: skip
        assert what in fit.reason
    assert (fit.outcome, fit.property) == (EQUIVALENT, "metadata")
    path = written(array_of(extremes("i2", (4, 6)), meta), tmp_path / "x.nrrd")
    assert [*read(path).ra_axes[0].labels] == ["a"]


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"space": "nowhere"}, "space"),
        ({"space_dimension": "3"}, None),
        ({"space_dimension": 9}, "space_dimension"),
        ({"space": "scanner-xyz", "space_origin": [1, 2]}, "space_origin"),
        ({"space": "scanner-xyz", "space_origin": 5}, "space_origin"),
        ({"space_origin": [1, 2]}, "space_origin"),
        ({"space_dimension": 1, "space_units": ["a\nb"]}, "space_units"),
        ({"space_dimension": 1, "space_units": ["a\\"]}, "space_units"),
        ({"old_min": "much"}, "old_min"),
        ({"old_min": True}, "old_min"),
        ({"number": "a\nsizes: 1"}, "number"),
        ({"comments": ["a\nb"]}, "comments"),
        ({"comments": "ab"}, "comments"),
        ({"axes": 5}, "axes"),
        ({"axes": [{"center": "edge"}]}, "centers"),
        ({"axes": [{"thickness": -1}]}, "thicknesses"),
        ({"axes": [{"min": "low", "center": "cell"}]}, "axes|axis_mins"),
        ({"axes": [{"direction": [1]}]}, "space_directions"),
        ({"complex_axis": 3}, None),
    ],
)
def test_metadata_of_a_wrong_form_is_named(own: dict, field: str | None, tmp_path: Path) -> None:
    array = array_of(extremes("i2", (4, 6)), Metadata(formats={"nrrd": own}))
    if field is None:
        assert fits(array) == []
        written(array, tmp_path / "x.nrrd")
        return

    with pytest.raises(Unsupported, match=rf"nrrd\.({field}) cannot be written"):
        written(array, tmp_path / "x.nrrd")
    assert os.listdir(tmp_path) == []


# --- metadata there and back ----------------------------------------------------------------------

TEXTS = st.text(max_size=8) | st.sampled_from(
    ["a: b", "a:=b", "#a", " a", "a ", "\t", '"q"', 'q"', "b\\", '\\"', "\\n", "n\nl", "\r", "µ",
     "\x85", "\ud800", "\0", "none", "???", "type", "raconvert", "encoding: raw"]
)  # fmt: skip
FLOATS = st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | FLOATS
    | TEXTS
    | st.binary(max_size=4)
    | st.dates()
    | st.datetimes(timezones=st.just(UTC) | st.none()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS | st.sampled_from(["$bytes", "$float", "$dict"]), inner, max_size=3)
    ),
    max_leaves=6,
)
AXES = st.builds(
    Axis,
    name=st.none() | TEXTS.filter(bool),
    kind=st.none() | st.sampled_from(["domain", "time", "RGB-color", "2-vector"]) | TEXTS,
    units=st.none() | TEXTS.filter(bool),
    spacing=st.none() | FLOATS | st.integers(),
    origin=st.none() | FLOATS | st.integers(),
    labels=st.none() | st.lists(VALUES, max_size=3),
)
TREES = st.dictionaries(TEXTS, VALUES, max_size=4)


@st.composite
def metadata(draw: Callable[..., Any]) -> Metadata:
    """Draw any metadata of an array of dims 2 × 3."""
    return Metadata(
        draw(st.none() | TEXTS.filter(bool)),
        draw(st.none() | TEXTS.filter(bool)),
        [draw(AXES), draw(AXES)] if draw(st.booleans()) else [],
        draw(TREES),
        draw(st.dictionaries(TEXTS.filter(lambda t: t != "nrrd"), TREES.filter(bool), max_size=2)),
        draw(st.sampled_from([None, "utf-8"])),
    )


@given(meta=metadata(), file=TREES, groups=st.dictionaries(TEXTS, TREES, max_size=2),
       kind=st.sampled_from(["<i2", "?", "<c8", "S2"]), order=st.sampled_from([None, "F"]))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_any_metadata_comes_back(
    meta: Metadata, file: dict, groups: dict, kind: str, order: str | None, tmp_path: Path
) -> None:
    array = array_of(np.zeros((3, 2), kind), meta, index_order=order)
    bundle = Bundle([array], attributes=file, groups=groups, formats={"other": {"x": file}})
    assert [fit for fit in nrrd.plan(bundle).fits if fit.property == "metadata"] == []
    with Target(str(tmp_path / "x.nrrd"), overwrite=True) as target:
        nrrd.plan(bundle).write(target)
        target.commit(sync=False)

    got = nrrd.read(Source(str(tmp_path / "x.nrrd")))

    assert got.notes == []
    (back,) = got.arrays
    assert back.meta.to_dict() == meta.to_dict()
    assert (got.attributes, got.groups, got.formats) == (file, groups, {"other": {"x": file}})
    assert (back.dims, back.element, back.index_order) == (array.dims, array.element, order)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that say something of the array, not of its storage."""
    storage = ("encoding", "endian", "line skip", "byte skip")
    return {
        name: value
        for name, value in fields.items()
        if name not in storage and not (isinstance(value, list) and not any(_told(value)))
    }


def _told(values: list[Any]) -> list[bool]:
    return [value not in (None, "") for value in values]


def _by_pynrrd(path: Path) -> dict[str, Any]:
    """Return the header as pynrrd reads it, without what concerns storage."""
    pynrrd = pytest.importorskip("nrrd")
    header = dict(pynrrd.read_header(str(path)))
    for name in ("encoding", "endian", "byte skip", "line skip", "data file", "type", "datafile",
                 "byteskip", "lineskip"):  # fmt: skip
        header.pop(name, None)
    return {name: repr(value) for name, value in header.items()}


# These differ in nothing, but pynrrd takes some of their fields for text, since it does not know
# the spelling; or it cannot read them at all (its limits are listed by its own tests).
NOT_FOR_PYNRRD = {
    "nospacealias.nrrd", "magic0001.nrrd", "block.nrrd", "meta_basic.nrrd", "list.nhdr",
    "crlf.nrrd", "skiplist.nhdr", "zrl.nrrd", "cr_only.nrrd", "latin1.nrrd", "unu_fields.nrrd",
    "test_customFields.nrrd", "eltype_rgb_u8.nrrd", "eltype_gray_u16.nrrd", "Segmentation.seg.nrrd",
}  # fmt: skip


@pytest.mark.parametrize("by", ["ra", "h5", "npy", "zip"])
@pytest.mark.parametrize("where", ["generated", "real", "fixtures"])
def test_every_header_field_survives_the_way_through_another_format(
    where: str, by: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    folder = FIXTURES if where == "fixtures" else corpus("nrrd", where)
    wrong, count, by_pynrrd = {}, 0, 0
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".nrrd", ".nhdr"):
            continue
        between = tmp_path / f"x.{by}"
        meta = "sidecar" if by == "npy" else "auto"
        raconvert.convert(path, between, sync=False, overwrite=True, meta=meta)
        raconvert.convert(between, tmp_path / "x.nrrd", sync=False, overwrite=True)
        before, after = (
            read_header(Source(str(path))),
            read_header(Source(str(tmp_path / "x.nrrd"))),
        )
        attributes = {k: v for k, v in after.attributes.items() if k != "raconvert"}
        told = [
            (_known(header.fields), header.comments, pairs)
            for header, pairs in ((before, before.attributes), (after, attributes))
        ]
        if told[0] != told[1]:
            wrong[path.name] = told
        if path.name not in NOT_FOR_PYNRRD:
            assert _by_pynrrd(path) == _by_pynrrd(tmp_path / "x.nrrd"), path.name
            by_pynrrd += 1
        count += 1
    assert wrong == {}
    assert count == {"generated": 77, "real": 19, "fixtures": 19}[where]
    assert by_pynrrd > count / 2


@pytest.mark.parametrize(
    "lines",
    [
        ["axis mins: 0 0 0", "axis maxs: 1 6 4", "centerings: node cell node"],
        # Said twice: minimum and maximum imply the first two spacings.
        ["spacings: 1 2 5", "axis mins: 0 0 0", "axis maxs: 1 6 4", "centerings: node cell node"],
        ["spacings: -1 nan 3", "thicknesses: 1 nan 0.25", "axis maxs: 1 6 4"],
        ["axis mins: 3 nan nan", "centerings: node ??? cell"],
    ],
)
def test_positions_are_written_as_they_were(
    lines: list[str], unu: Callable[..., bytes], tmp_path: Path
) -> None:
    fields = ["type: int16", "dimension: 3", "sizes: 2 3 4"]
    stored = ["endian: little", "encoding: raw"]
    data = extremes("i2").tobytes()
    before = ["NRRD0004", *fields, *lines, *stored, "", ""]
    (tmp_path / "a.nrrd").write_bytes("\n".join(before).encode() + data)
    raconvert.convert(tmp_path / "a.nrrd", tmp_path / "b.nrrd", sync=False)
    raconvert.convert(tmp_path / "a.nrrd", tmp_path / "c.h5", sync=False)
    raconvert.convert(tmp_path / "c.h5", tmp_path / "c.nrrd", sync=False)

    assert head(tmp_path / "b.nrrd")[1:] == head(tmp_path / "c.nrrd")[1:] == before[1:-2]
    saved = [unu("save", "-f", "nrrd", "-i", tmp_path / name) for name in ("a.nrrd", "b.nrrd")]
    assert saved[0].splitlines()[1:] == saved[1].splitlines()[1:]


def test_pair_that_another_tool_changed_the_array_of(
    unu: Callable[..., bytes], tmp_path: Path
) -> None:
    values = extremes("f4", (4, 12)).view("<c8")
    meta = Metadata(attributes={"n": 5}, axes=[Axis(labels=["a"] * 6), Axis()][::-1])
    path = written(array_of(values, meta, index_order="F"), tmp_path / "x.nrrd")
    unu("crop", "-i", path, "-min", 0, 0, 0, "-max", 0, "M", "M", "-o", tmp_path / "y.nrrd")

    bundle = nrrd.read(Source(str(tmp_path / "y.nrrd")))

    (array,) = bundle.arrays
    assert array.dims == (1, 6, 4)
    assert array.index_order is None
    assert array.meta.attributes == {"n": 5}
    assert bundle.notes == [
        "the key/value pair 'raconvert' is about another array; not used: was, axes"
    ]


def test_bools_that_another_tool_made_numbers_of(unu: Callable[..., bytes], tmp_path: Path) -> None:
    path = written(array_of(np.array([[True, False, True]])), tmp_path / "x.nrrd")
    unu("2op", "x", path, 5, "-t", "uchar", "-o", tmp_path / "y.nrrd")
    assert b"raconvert:=" in (tmp_path / "y.nrrd").read_bytes()

    with pytest.raises(
        Corrupt, match=r"value 5 of array 'y' is not a bool.*(\n.*)*\"restore\": \"no"
    ):
        as_ndarray(read(tmp_path / "y.nrrd"))

    assert as_ndarray(read(tmp_path / "y.nrrd", restore=False)).tolist() == [[5, 0, 5]]


def test_what_was_is_not_restored_on_request(tmp_path: Path) -> None:
    values = extremes("f4", (4, 12)).view("<c8")
    meta = Metadata(attributes={"n": 5}, axes=[Axis(labels=["a"]), Axis()][::-1])
    path = written(array_of(values, meta, index_order="F"), tmp_path / "x.nrrd")

    array = read(path, restore=False)

    assert (array.dims, array.index_order, array.element.kind) == ((2, 6, 4), None, "float")
    assert array.meta.attributes == {"n": 5}


# By Teem's "Definition of NRRD File Format": which version brought a field; the others, the first.
VERSIONS = dict.fromkeys(
    ("space", "space dimension", "thicknesses", "space directions", "sample units", "space units",
     "space origin"), 4) | {"kinds": 3, "measurement frame": 5}  # fmt: skip


@every("field", FIELDS)
def test_the_version_is_the_lowest_that_has_a_field(field: str, tmp_path: Path) -> None:
    (tmp_path / "x.nrrd").write_bytes(
        b"NRRD0005\ntype: uchar\ndimension: 1\nsizes: 3\nencoding: raw\n\nabc"
    )
    plain = read_header(Source(str(tmp_path / "x.nrrd")))
    assert lowest_version(plain) == "0001"
    assert lowest_version(plain._replace(attributes={"key": "value"})) == "0002"
    one = plain._replace(fields={**plain.fields, field: None})
    assert lowest_version(one) == f"{VERSIONS.get(field, 1):04}"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":{"$date":"2020-13-01"}}', '{"a":{"$time":5}}', '{"encoding":5}',
        "", "text", "[1]", "{", '{"element":5}', '{"axes":[{"name":5}]}', '{"axes":[{"odd":1}]}',
        '{"file":{"x":{}}}', '{"formats":{"a":1}}', '{"a":NaN}', '{"a":{"$bytes":"?"}}',
        '{"a":{"$float":"x"}}', '{"a":{"$dict":[1]}}', '{"a":{"$dict":[[{},1]]}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_pair_that_we_did_not_write(text: str, tmp_path: Path) -> None:
    lines = ["NRRD0002", "type: uchar", "dimension: 1", "sizes: 3", "encoding: raw"]
    path = tmp_path / "x.nrrd"
    path.write_text("\n".join([*lines, f"raconvert:={text}", "", "abc"]))

    bundle = nrrd.read(Source(str(path)))

    assert bundle.arrays[0].meta.attributes == {"raconvert": text}
    assert len(bundle.notes) == 1


@pytest.mark.parametrize(
    "element",
    ['"bool"', '"complex"', '"<f8"', '"|O"', '"O"', '[["a","|O"]]', '[["a","<f4"]]', '"nonsense"',
     '[["a"]]', "[[[[[]]]]]"],
)  # fmt: skip
def test_pair_that_promises_other_elements(element: str, tmp_path: Path) -> None:
    lines = ["NRRD0002", "type: short", "dimension: 1", "sizes: 3", "endian: big", "encoding: raw"]
    path = tmp_path / "x.nrrd"
    pair = f'raconvert:={{"type":"int16","sizes":[3],"element":{element}}}'
    path.write_text("\n".join([*lines, pair, "", "abcdef"]))

    bundle = nrrd.read(Source(str(path)))

    assert as_ndarray(bundle.arrays[0]).tobytes() == b"badcfe"
    assert bundle.arrays[0].element == element_of(np.dtype(">i2"))


def test_pairs_can_be_asked_for(tmp_path: Path) -> None:
    values = extremes("f4", (4, 12)).view("<c8")
    meta = Metadata(axes=[Axis("x", labels=["a"]), Axis("y", spacing=2)][::-1])
    path = written(array_of(values, meta), tmp_path / "x.nrrd")

    pairs = read(path, complex="pairs")

    assert (pairs.element.kind, pairs.dims) == ("float", (2, 6, 4))
    assert [axis.to_dict() for axis in pairs.ra_axes] == [
        {"kind": "complex"}, {"name": "x", "labels": ["a"]}, {"name": "y", "spacing": 2},
    ]  # fmt: skip
    assert as_ndarray(pairs).tobytes() == values.tobytes()


def test_what_the_axis_of_pairs_had_comes_back(tmp_path: Path) -> None:
    lines = [
        "NRRD0004", "type: float", "dimension: 2", "space dimension: 1", "sizes: 2 1",
        "thicknesses: 3 nan", "space directions: none (0.5)", "centerings: cell ???",
        "kinds: complex space", 'labels: "parts" "x"', "endian: little", "encoding: raw",
        "space origin: (7)",
    ]  # fmt: skip
    (tmp_path / "a.nrrd").write_bytes("\n".join([*lines, "", ""]).encode() + bytes(8))
    array = read(tmp_path / "a.nrrd", complex="numbers")

    assert array.dims == (1,)
    path = written(array, tmp_path / "b.nrrd")

    assert [line for line in head(path) if not line.startswith("raconvert:=")] == lines
    assert read(path).element.kind == "complex"


def test_stack_keeps_the_space(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.nrrd").write_bytes((FIXTURES / "unu_space.nrrd").read_bytes())
    sources = [str(tmp_path / f"{n}.nrrd") for n in range(3)]
    raconvert.convert(sources, tmp_path / "all.nrrd", sync=False)

    lines = head(tmp_path / "all.nrrd")

    assert "sizes: 3 5 4 2 3" in lines
    assert "space directions: none (0.5,0,0) (0,-0.25,0) (0.6,0,0.8) none" in lines


def test_long_headers(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {f"key {n}": f"value {n}" * 20 for n in range(20_000)}
    attributes["numbers"] = list(range(100_000))
    meta = Metadata(attributes=attributes, description="x" * (3 << 20))
    array = array_of(extremes("i2"), meta)
    assert [fit.reason for fit in nrrd.plan(Bundle([array])).fits] == [
        "not kept: description, too much for one line of the header"
    ]

    back = read(written(array, tmp_path / "x.nrrd"))

    assert back.meta.attributes == attributes
    assert back.meta.description == "x" * 1000


def test_a_charset_is_only_kept_where_it_will_be_seen(tmp_path: Path) -> None:
    meta = Metadata(attributes={"a": "Âµ"}, formats={"nrrd": {"charset": "latin-1"}})
    path = written(array_of(extremes("i2"), meta), tmp_path / "x.nrrd")
    assert "a:=Âµ".encode() in path.read_bytes()  # as Latin-1 it would be the UTF-8 of µ

    meta = Metadata(attributes={"a": "5 µm"}, formats={"nrrd": {"charset": "latin-1"}})
    path = written(array_of(extremes("i2"), meta), tmp_path / "x.nrrd")
    assert b"a:=5 \xb5m" in path.read_bytes()
    assert read(path).meta.attributes == {"a": "5 µm"}


def test_our_own_json() -> None:
    value = {
        "t": [datetime(2020, 1, 2, 3), datetime(2020, 1, 2).date()],
        "b": b"\0\xff",
        "f": [math.inf, -math.inf],
        "$x": {"$bytes": 1},
        5: None,
        "": -0.0,
    }
    text = roundtrip.text_of({"attributes": value})

    assert text.isascii()
    assert roundtrip.record_in(text, DEFAULT) == {"attributes": value}
    assert roundtrip.record_in('{"attributes":{"$dict":[[{"$bytes":"AA=="},[{"$float":"inf"}]]]}}'
                                  , DEFAULT) == {"attributes": {b"\0": [math.inf]}}  # fmt: skip
    assert math.isnan(roundtrip.record_in(roundtrip.text_of({"x": math.nan}), DEFAULT)["x"])


def test_integer_keys_that_could_have_one_hash_are_neither_read_nor_written() -> None:
    assert roundtrip.record_in('{"x":{"$dict":[[1152921504606846975,1]]}}', DEFAULT) == {
        "x": {2**60 - 1: 1}
    }
    with pytest.raises(ValueError, match="beyond 1152921504606846976 as a key"):
        roundtrip.record_in('{"x":{"$dict":[[1,1],[1152921504606846976,1]]}}', DEFAULT)
    with pytest.raises(Unsupported, match="beyond 1152921504606846976 as a key"):
        roundtrip.text_of({"x": {-(2**60): 1}})


# --- size -----------------------------------------------------------------------------------------


def test_large_gzip_is_read_ahead_by_a_thread(tmp_path: Path) -> None:
    values = np.arange(3_000_000, dtype="<f8")
    path = written(array_of(values), tmp_path / "x.nrrd", encoding="gzip:1")

    assert as_ndarray(read(path)).tobytes() == values.tobytes()

    # Stopped halfway, the thread ends too.
    pieces = blocks(read(path), 1 << 16)
    assert next(pieces).tobytes() == values[: 1 << 13].tobytes()
    pieces.close()

    # What the thread finds wrong is raised here.
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(RaconvertError, match="gzip: deflated data is cut off"):
        as_ndarray(read(path))
    path.write_bytes(data + gzip.compress(bytes(100)))
    bundle = nrrd.read(Source(str(path)))
    as_ndarray(bundle.arrays[0])
    assert bundle.notes == ["100 decompressed bytes after the data were ignored"]


# --- NaN in text ----------------------------------------------------------------------------------

PLAIN_NANS = {"f4": (0x7FC00000,), "f8": (0x7FF8000000000000,), "c8": (0x7FC00000, 0)}
ODD_NANS = {
    "negative": ("<f8", "<u8", 0xFFF8000000000000),
    "payload": ("<f8", "<u8", 0x7FF8000000000001),
    "signalling": ("<f4", "<u4", 0x7F800001),
    "imaginary": ("<c8", "<u4", 0xFFC00000),
}


@pytest.mark.parametrize("code", PLAIN_NANS)
def test_a_plain_nan_survives_text(code: str, tmp_path: Path) -> None:
    words = np.array(PLAIN_NANS[code] * 3, {"f4": "<u4", "f8": "<u8", "c8": "<u4"}[code])
    np.save(tmp_path / "x.npy", words.view(code))
    report = raconvert.convert(
        tmp_path / "x.npy", tmp_path / "x.nrrd", out_opts={"encoding": "ascii"}
    )
    assert not [fit for fit in report.equivalent if fit.property == "precision"]
    raconvert.convert(tmp_path / "x.nrrd", tmp_path / "y.npy")
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()


@pytest.mark.parametrize("case", ODD_NANS)
def test_other_nans_do_not_become_text_unless_that_is_allowed(case: str, tmp_path: Path) -> None:
    code, unit, bits = ODD_NANS[case]
    values = np.zeros((2, 3), code)
    values.view(unit).reshape(-1)[-1] = bits
    np.save(tmp_path / "x.npy", values)
    source, target = tmp_path / "x.npy", tmp_path / "x.nrrd"

    with pytest.raises(WouldLose, match=r'(?s)index \[1, 2\].*allow=\["precision"\]') as caught:
        raconvert.convert(source, target, out_opts={"encoding": "ascii"})
    assert "sign or a payload" in str(caught.value)
    assert not target.exists()

    report = raconvert.convert(source, target, out_opts={"encoding": "ascii"}, allow=["precision"])
    assert [fit.property for fit in report.allowed] == ["precision"]
    raconvert.convert(source, tmp_path / "y.nrrd", out_opts={"encoding": "hex"})
    with raconvert.open(tmp_path / "y.nrrd") as exact:
        assert np.asarray(exact).tobytes() == values.tobytes()


# --- one table of fields --------------------------------------------------------------------------

DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
# field -> values of the fields before it, and values of it
VALUES_OF_FIELDS: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "content": ({}, st.text("ab c\\:=é", min_size=1).filter(lambda text: text == text.strip())),
    "type": ({}, st.sampled_from(list(ELEMENTS))),
    "block size": ({}, st.integers(1, 1 << 30)),
    "dimension": ({}, st.integers(1, 16)),
    "space": ({}, st.sampled_from(list(SPACE_RANKS))),
    "space dimension": ({}, st.integers(1, 8)),
    "sizes": ({"dimension": 2}, st.tuples(st.integers(1, 1 << 40), st.integers(1, 9))),
    "spacings": ({"dimension": 1}, st.lists(DOUBLES.filter(bool) | st.none(), min_size=1, max_size=1)),
    "axis mins": ({"dimension": 2}, st.lists(DOUBLES | st.none(), min_size=2, max_size=2)),
    "centers": ({"dimension": 2}, st.lists(st.sampled_from(["cell", "node", None]), min_size=2,
                                           max_size=2)),
    "kinds": ({"dimension": 1}, st.lists(st.sampled_from(list(KIND_SIZES)), min_size=1, max_size=1)),
    "labels": ({"dimension": 2}, st.lists(st.text('a "é('), min_size=2, max_size=2)),
    "encoding": ({}, st.sampled_from(["raw", "text", "hex", "gzip", "bzip2"])),
    "byte skip": ({}, st.integers(-(1 << 40), 1 << 40)),
    "old min": ({}, DOUBLES),
    "space origin": ({"space dimension": 2}, st.lists(DOUBLES, min_size=2, max_size=2)),
    "measurement frame": ({"space dimension": 1}, st.lists(st.lists(DOUBLES, min_size=1, max_size=1)
                                                           | st.none(), min_size=1, max_size=1)),
}  # fmt: skip


@pytest.mark.parametrize("field", VALUES_OF_FIELDS)
@given(data=st.data())
def test_one_row_reads_what_it_writes(field: str, data: st.DataObject) -> None:
    before, values = VALUES_OF_FIELDS[field]
    value = data.draw(values)

    assert parsed(field, text_of(field, value), before) == value
