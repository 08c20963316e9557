"""Every ordered pair of formats: exact, equivalent or refused, and the law of the axis order.

The expectations are written from the type tables of the formats' own documents, not from the
plugins. Sources are written, and results read, by others than the code under test: NumPy, pypng,
and the RA layout table.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import png as pypng
import pytest
import ra_bytes
import yaml

import raconvert
from raconvert.catalogue import ROWS
from raconvert.errors import RaconvertError, WouldLose
from raconvert.testing import filled, same, same_values

convert = partial(raconvert.convert, sync=False)  # the disk is tested elsewhere

EXACT, EQUIVALENT, REFUSED = "exact", "equivalent", "refused"
FORMATS = ("ra", "npy", "npz", "png")


def test_every_built_in_format_is_in_these_tables() -> None:
    assert [row.name for row in ROWS] == list(FORMATS)


# Expectations ------------------------------------------------------------------------------------


class Type(NamedTuple):
    """An element type: what an array of two axes becomes in each format."""

    dtype: Any
    ra: str
    npy: str
    png: str


NUMBER = (EXACT, EXACT, REFUSED)  # NPY and RA hold it, PNG does not
TYPES = {
    # PNG: 1-bit grey, which every reader but Pillow gives as 0 and 255: the values, not the type
    "bool": Type("?", EXACT, EXACT, EQUIVALENT),
    "int8": Type("i1", *NUMBER),
    "int16": Type("<i2", *NUMBER),
    "int32": Type("<i4", *NUMBER),
    "int64": Type("<i8", *NUMBER),
    "uint8": Type("u1", EXACT, EXACT, EXACT),
    "uint16": Type("<u2", EXACT, EXACT, EXACT),
    "uint32": Type("<u4", *NUMBER),
    "uint64": Type("<u8", *NUMBER),
    "float16": Type("<f2", *NUMBER),
    "float32": Type("<f4", *NUMBER),
    "float64": Type("<f8", *NUMBER),
    "complex64": Type("<c8", *NUMBER),
    "complex128": Type("<c16", *NUMBER),
    # silently V2 if numpy is left to itself
    "bfloat16": Type(ml_dtypes.bfloat16, EXACT, REFUSED, REFUSED),
    "int16_big": Type(">i2", *NUMBER),
    "uint16_big": Type(">u2", EXACT, EXACT, EXACT),
    "int64_big": Type(">i8", *NUMBER),
    "float32_big": Type(">f4", *NUMBER),
    "complex128_big": Type(">c16", *NUMBER),
    # bytes verbatim; RA keeps what they are in the sidecar
    "bytes": Type("S3", *NUMBER),
    "text": Type("<U2", *NUMBER),
    "text_big": Type(">U2", *NUMBER),
    "datetime": Type("<M8[ns]", *NUMBER),
    "timedelta": Type("<m8[D]", *NUMBER),
    "structured": Type([("a", "<i4"), ("b", ">f8", (2,))], *NUMBER),
    "void": Type("V3", *NUMBER),
}

# shape -> what it becomes in PNG, for a type that PNG holds: (height, width), or with a last axis
# of 1 to 4 channels; one channel needs no axis. RA and NPY hold every shape.
SHAPES = {
    (): REFUSED,
    (5,): REFUSED,
    (0,): REFUSED,
    (4, 6): EXACT,
    (1, 1): EXACT,
    (4, 0): REFUSED,
    (4, 6, 1): EQUIVALENT,
    (4, 6, 2): EXACT,
    (4, 6, 3): EXACT,
    (4, 6, 4): EXACT,
    (4, 6, 5): REFUSED,
    (3, 4, 6): REFUSED,
    (2, 3, 4, 3): REFUSED,
}
PLAIN = (4, 6)


def expected(target: str, type_name: str, shape: tuple[int, ...]) -> str:
    """Return what a conversion of this type and shape to this format has to be."""
    of_type = getattr(TYPES[type_name], target.replace("npz", "npy"))
    if target != "png" or of_type == REFUSED:
        return of_type
    if type_name == "bool":  # 1-bit images have no channels
        return EQUIVALENT if SHAPES[shape] != REFUSED and shape[2:] in ((), (1,)) else REFUSED
    return SHAPES[shape]


CASES = [(name, PLAIN) for name in TYPES] + [
    (name, shape)
    for name in ("bool", "uint8", "uint16_big", "float64", "text")
    for shape in SHAPES
    if shape != PLAIN
]


def can_be_source(source: str, type_name: str, shape: tuple[int, ...]) -> bool:
    """Tell whether the writers used here can make such a file."""
    if source == "png":
        return type_name in ("uint8", "uint16") and expected("png", type_name, shape) == EXACT
    if source == "ra":  # a bare file does not say what is inside user elements
        return np.dtype(TYPES[type_name].dtype).kind in "biufc" or type_name == "bfloat16"
    return type_name != "bfloat16"


PAIRS = [
    pytest.param(source, target, name, shape, id=f"{source}-{target}-{name}-{shape}")
    for source in FORMATS
    for target in FORMATS
    for name, shape in CASES
    if can_be_source(source, name, shape)
]


# Independent writers and readers -----------------------------------------------------------------

RA_CODES = {"i": 1, "u": 2, "f": 3, "c": 4, "b": 5}
RA_DTYPES = {(1, 5): "?", (2, 5): ml_dtypes.bfloat16}


def little(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "iufc":
        return values.astype(values.dtype.newbyteorder("<"))
    return values


def ra_contents(values: np.ndarray, *, big: bool = False) -> bytes:
    """Return the plain .ra file of values in C order: dims reversed; big-endian behind flag 1."""
    code = RA_CODES.get(values.dtype.kind, 0 if values.dtype != ml_dtypes.bfloat16 else 5)
    data = little(values)
    if big:
        data = values.astype(values.dtype.newbyteorder(">"))
    dims = values.shape[::-1]
    return ra_bytes.ra_file(code, values.itemsize, dims, data.tobytes(), flags=int(big))


def make(path: Path, values: np.ndarray) -> Path:
    """Write values to a file of the format that the suffix says, not by the code under test."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        np.savez(path, **{path.stem: values})
    elif path.suffix == ".ra":
        path.write_bytes(ra_contents(values, big=values.dtype.byteorder == ">"))
    else:
        height, width, *channels = values.shape
        planes = channels[0] if channels else 1
        writer = pypng.Writer(
            width,
            height,
            greyscale=planes < 3,
            alpha=planes in (2, 4),
            bitdepth=8 * values.itemsize,
        )
        with path.open("wb") as file:
            writer.write(file, values.reshape(height, -1).tolist())
    return path


def make_column_major_ra(path: Path, values: np.ndarray) -> Path:
    """Write an .ra with the dims as they stand, and by hand the sidecar that says so."""
    data = little(values).tobytes(order="F")
    code = RA_CODES.get(values.dtype.kind, 0)
    path.write_bytes(ra_bytes.ra_file(code, values.itemsize, values.shape, data))
    crc = f"{zlib.crc32(data):08x}"  # of the first and of the last 64 KiB, here the same
    lines = [
        "describes:",
        f"  eltype: {code}",
        f"  elbyte: {values.itemsize}",
        f"  dims: {list(values.shape)}",
        f"  size: {len(data)}",
        f"  crc32_first: '{crc}'",
        f"  crc32_last: '{crc}'",
        "index_order: F",
    ]
    if code == 0:
        descr = np.lib.format.dtype_to_descr(values.dtype)
        lines.append(f"dtype: {json.dumps(descr)}")
    Path(f"{path}.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> np.ndarray:
    """Read a file in logical order, not by the code under test."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as archive:
            (name,) = archive.files
            return archive[name]
    return load_ra(path) if path.suffix == ".ra" else load_png(path)


def load_ra(path: Path) -> np.ndarray:
    """Read a plain .ra: dims reversed, or as they stand where the sidecar says F."""
    contents = path.read_bytes()
    magic, flags, eltype, elbyte, size, ndims = struct.unpack_from("<8s5Q", contents)
    dims = struct.unpack_from(f"<{ndims}Q", contents, 48)
    data = contents[48 + 8 * ndims :]
    assert (magic, flags, size) == (b"rawarray", 0, len(data))
    told = sidecar(path)
    kind = {code: kind for kind, code in RA_CODES.items()}.get(eltype)
    dtype = RA_DTYPES.get((elbyte, eltype)) or f"<{kind}{elbyte}"
    if eltype == 0:
        dtype = told.get("dtype", f"V{elbyte}")
        if isinstance(dtype, list):
            dtype = [tuple(tuple(x) if isinstance(x, list) else x for x in f) for f in dtype]
    values = np.frombuffer(data, np.dtype(dtype)).reshape(dims[::-1])
    return values.T if told.get("index_order") == "F" else values


def sidecar(path: Path) -> dict[str, Any]:
    beside = Path(f"{path}.yaml")
    return yaml.safe_load(beside.read_text(encoding="utf-8")) if beside.exists() else {}


def load_png(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        width, height, rows, facts = pypng.Reader(file).read()
        values = np.array([list(row) for row in rows])
    if facts["bitdepth"] == 1:
        return values.astype("?")
    shape = (height, width) if facts["planes"] == 1 else (height, width, facts["planes"])
    return values.reshape(shape).astype(f"u{facts['bitdepth'] // 8}")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return an empty folder for destinations."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


# The matrix --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target", "name", "shape"), PAIRS)
def test_pair(
    source: str, target: str, name: str, shape: tuple[int, ...], tmp_path: Path, out: Path
) -> None:
    values = filled(np.dtype(TYPES[name].dtype), shape)
    path, result = make(tmp_path / f"x.{source}", values), out / f"x.{target}"
    outcome = expected(target, name, shape)

    if outcome == REFUSED:
        with pytest.raises(WouldLose, match=r"--\w|no flag allows this") as refusal:
            convert(path, result)
        assert "array 'x'" in str(refusal.value)
        assert list(out.iterdir()) == []
        return
    report = convert(path, result)
    assert bool(report.equivalent) == (outcome == EQUIVALENT), report.equivalent
    assert (same if outcome == EXACT else same_values)(values, load(result))


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", ["npy", "npz"])
@pytest.mark.parametrize(
    "dtype", ["O", np.longdouble, np.clongdouble, ml_dtypes.float8_e4m3fn, ml_dtypes.int4],
    ids=["object", "longdouble", "clongdouble", "float8", "int4"],
)  # fmt: skip
def test_types_without_a_faithful_form_write_nothing(
    source: str, target: str, dtype: Any, tmp_path: Path, out: Path
) -> None:
    """From files they cannot come (or come as bytes); from memory they are refused by name."""
    values = np.ones((2, 3)).astype(dtype)

    with pytest.raises(RaconvertError, match="no flag allows this"):
        raconvert.write(out / f"x.{target}", values)
    if np.dtype(dtype).isbuiltin == 1:
        np.savez(tmp_path / "x.npz", x=values)
        np.save(tmp_path / "x.npy", values)
        with pytest.raises(RaconvertError, match="no flag allows this"):
            convert(tmp_path / f"x.{source}", out / f"x.{target}")
    assert list(out.iterdir()) == []


# Widths that only RA has: eltype, elbyte, dims, and the type in which the bytes travel
ONLY_RA = {
    "int128": (1, 16, "V16"),
    "uint128": (2, 16, "V16"),
    "float128": (3, 16, "V16"),
    "complex256": (4, 32, "V32"),
    "complex32": (4, 4, "<f2"),
}


@pytest.mark.parametrize("target", ["ra", "npy", "npz"])
@pytest.mark.parametrize("name", ONLY_RA)
def test_types_that_only_ra_has(name: str, target: str, tmp_path: Path, out: Path) -> None:
    """They are exact from RA to RA; elsewhere the bytes are kept and the type is named as lost."""
    eltype, elbyte, carrier = ONLY_RA[name]
    contents = ra_bytes.ra_file(eltype, elbyte, (3, 2), bytes(range(1, 1 + 6 * elbyte)))
    (tmp_path / "x.ra").write_bytes(contents)

    report = convert(tmp_path / "x.ra", out / f"x.{target}")

    if target == "ra":
        assert report.equivalent == []
        assert (out / "x.ra").read_bytes() == contents
        return
    assert report.equivalent
    values = load(out / f"x.{target}")
    assert values.dtype == carrier
    assert values.shape == ((2, 3, 2) if name == "complex32" else (2, 3))
    assert values.tobytes() == contents[64:]


@pytest.mark.parametrize("name", ONLY_RA)
@pytest.mark.parametrize("between", ["npy", "npz"])
def test_types_that_only_ra_has_come_back_with_a_sidecar(
    name: str, between: str, tmp_path: Path, out: Path
) -> None:
    eltype, elbyte, _ = ONLY_RA[name]
    contents = ra_bytes.ra_file(eltype, elbyte, (3, 2), bytes(range(1, 1 + 6 * elbyte)))
    (tmp_path / "x.ra").write_bytes(contents)

    convert(tmp_path / "x.ra", tmp_path / f"x.{between}", meta="sidecar")
    convert(tmp_path / f"x.{between}", out / "x.ra")

    assert (out / "x.ra").read_bytes() == contents


@pytest.mark.parametrize(
    ("target", "outcome"),
    [("ra", EXACT), ("npy", REFUSED), ("npz", REFUSED), ("png", REFUSED)],
)
def test_more_axes_than_numpy_has(target: str, outcome: str, tmp_path: Path, out: Path) -> None:
    contents = ra_bytes.ra_file(2, 1, (1,) * 64 + (3,), b"abc")
    (tmp_path / "x.ra").write_bytes(contents)

    if outcome == REFUSED:
        with pytest.raises(WouldLose):
            convert(tmp_path / "x.ra", out / f"x.{target}")
        assert list(out.iterdir()) == []
    else:
        convert(tmp_path / "x.ra", out / f"x.{target}")
        assert (out / "x.ra").read_bytes() == contents


@pytest.mark.parametrize("target", ["npy", "npz", "ra"])
def test_bare_user_elements_are_void(target: str, tmp_path: Path, out: Path) -> None:
    values = filled(np.dtype("V7"), (4, 6))
    make(tmp_path / "x.ra", values)

    report = convert(tmp_path / "x.ra", out / f"x.{target}")

    assert report.equivalent == []
    assert same(values, load(out / f"x.{target}"))


@pytest.mark.parametrize("target", ["npy", "npz"])
def test_allowed_loss_is_recorded(target: str, tmp_path: Path, out: Path) -> None:
    """``--allow dtype`` writes bfloat16 as the bytes that NumPy makes of it."""
    values = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    make(tmp_path / "x.ra", values)

    report = convert(tmp_path / "x.ra", out / f"x.{target}", allow="dtype")

    assert [fit.property for fit in report.allowed] == ["type"]
    assert load(out / f"x.{target}").tobytes() == values.tobytes()


@pytest.mark.parametrize("target", FORMATS)
def test_strict_refuses_what_is_equivalent(target: str, tmp_path: Path, out: Path) -> None:
    """A PNG's own chunks have no place in NPY; PNG and RA (in its sidecar) keep them."""
    image = pypng.Writer(2, 1, greyscale=True, bitdepth=1)
    with (tmp_path / "x.png").open("wb") as file:
        image.write(file, [[0, 1]])

    if target in ("npy", "npz"):
        with pytest.raises(WouldLose, match="refused by --strict"):
            convert(tmp_path / "x.png", out / f"x.{target}", strict=True)
        assert list(out.iterdir()) == []
    else:
        convert(tmp_path / "x.png", out / f"x.{target}", strict=True)


# The law of the axis order -----------------------------------------------------------------------

LAW_TYPES = ("uint8", "uint16_big", "float64", "complex64", "text_big", "structured")
SOURCES = {
    "npy_C": ("npy", "C"), "npy_F": ("npy", "F"), "npz_C": ("npz", "C"), "npz_F": ("npz", "F"),
    "ra_bare": ("ra", None), "ra_sidecar": ("ra", "F"), "png": ("png", "C"),
}  # fmt: skip


def law_source(folder: Path, source: str, type_name: str, shape: tuple[int, ...]) -> Path:
    suffix, order = SOURCES[source]
    values = filled(np.dtype(TYPES[type_name].dtype), shape)
    if source == "ra_sidecar":
        return make_column_major_ra(folder / "x.ra", values)
    return make(folder / f"x.{suffix}", np.asarray(values, order=order or "C"))


def law_cases() -> list[Any]:
    return [
        pytest.param(source, target, name, shape, id=f"{source}-{target}-{name}-{shape}")
        for source, (suffix, _) in SOURCES.items()
        for target in FORMATS
        for name in LAW_TYPES
        for shape in ((4, 6), (4, 6, 3))
        if can_be_source(suffix, name, shape) or source == "ra_sidecar"
        if expected(target, name, shape) != REFUSED
    ]


@pytest.mark.parametrize(("source", "target", "name", "shape"), law_cases())
def test_law_a_to_c_equals_a_to_ra_to_c(
    source: str, target: str, name: str, shape: tuple[int, ...], tmp_path: Path, out: Path
) -> None:
    path = law_source(tmp_path, source, name, shape)
    (out / "via").mkdir()
    (out / "direct").mkdir()

    convert(path, out / "direct" / f"x.{target}")
    convert(path, out / "x.ra")
    convert(out / "x.ra", out / "via" / f"x.{target}")

    direct, via = (out / way / f"x.{target}" for way in ("direct", "via"))
    assert direct.read_bytes() == via.read_bytes()
    assert sidecar(direct) == sidecar(via)


@pytest.mark.parametrize(("source", "target", "name", "shape"), law_cases())
def test_law_every_element_keeps_its_index(
    source: str, target: str, name: str, shape: tuple[int, ...], tmp_path: Path, out: Path
) -> None:
    path = law_source(tmp_path, source, name, shape)

    convert(path, out / f"x.{target}")

    assert same(filled(np.dtype(TYPES[name].dtype), shape), load(out / f"x.{target}"))


@pytest.mark.parametrize("source", ["npy_F", "npz_F"])
def test_column_major_sources_leave_their_order_in_the_sidecar(
    source: str, tmp_path: Path, out: Path
) -> None:
    """No byte moves: the dims are the shape, and the data is what lies in the source."""
    path = law_source(tmp_path, source, "float64", (4, 6))
    values = load(path)

    convert(path, out / "x.ra")

    assert sidecar(out / "x.ra")["index_order"] == "F"
    plain = ra_bytes.ra_file(3, 8, (4, 6), values.tobytes(order="F"))
    assert (out / "x.ra").read_bytes() == plain


@pytest.mark.parametrize("source", ["npy_C", "npz_C", "png", "ra_bare"])
def test_row_major_sources_leave_a_bare_ra(source: str, tmp_path: Path, out: Path) -> None:
    path = law_source(tmp_path, source, "uint8", (4, 6, 3))
    values = load(path)

    convert(path, out / "x.ra")

    assert [p.name for p in out.iterdir()] == ["x.ra"]
    assert (out / "x.ra").read_bytes() == ra_bytes.ra_file(2, 1, (3, 6, 4), values.tobytes())


@pytest.mark.parametrize("source", ["npy_F", "npz_F"])
@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
def test_no_order_is_left_below_two_axes(
    source: str, shape: tuple[int, ...], tmp_path: Path, out: Path
) -> None:
    convert(law_source(tmp_path, source, "float64", shape), out / "x.ra")

    assert [p.name for p in out.iterdir()] == ["x.ra"]


@pytest.mark.parametrize("target", ["npy", "npz"])
@pytest.mark.parametrize("source", ["npy_F", "npz_F", "ra_sidecar"])
def test_column_major_arrays_stay_so_where_the_target_can(
    source: str, target: str, tmp_path: Path, out: Path
) -> None:
    path = law_source(tmp_path, source, "float64", (4, 6, 3))

    convert(path, out / f"x.{target}")

    values = load(out / f"x.{target}")
    assert values.flags.f_contiguous
    assert not values.flags.c_contiguous


@pytest.mark.parametrize("target", ["npy", "npz"])
def test_ra_dims_are_read_reversed(target: str, tmp_path: Path, out: Path) -> None:
    """The last dimension in Python is the first one in Julia and Matlab; no byte moves."""
    (tmp_path / "x.ra").write_bytes(ra_bytes.ra_file(1, 2, (3, 4, 5), bytes(range(120))))

    convert(tmp_path / "x.ra", out / f"x.{target}")

    values = load(out / f"x.{target}")
    assert values.shape == (5, 4, 3)
    assert values.tobytes() == bytes(range(120))


def test_index_order_f_reads_dims_as_they_stand(tmp_path: Path, out: Path) -> None:
    (tmp_path / "x.ra").write_bytes(ra_bytes.ra_file(1, 2, (3, 4, 5), bytes(range(120))))

    convert(tmp_path / "x.ra", out / "x.npy", index_order="F")

    values = load(out / "x.npy")
    assert values.shape == (3, 4, 5)
    assert values.tobytes(order="F") == bytes(range(120))


def test_sidecar_decides_over_the_index_order_asked_for(tmp_path: Path, out: Path) -> None:
    """``--index-order`` answers for a bare .ra only; this one says what it is."""
    path = law_source(tmp_path, "ra_sidecar", "int64", (4, 6))

    convert(path, out / "x.npy", index_order="C")

    assert same(load(path), load(out / "x.npy"))


@pytest.mark.parametrize("source", ["npy_C", "npy_F", "ra_bare"])
def test_keep_memory_lists_the_axes_in_reverse(source: str, tmp_path: Path, out: Path) -> None:
    path = law_source(tmp_path, source, "float64", (4, 6, 3))
    values = load(path)

    convert(path, out / "x.npy", axes="keep-memory")

    assert same(values.T, load(out / "x.npy"))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("axes", ["1,2,0", "2,1,0", "0,2,1"])
def test_axes_permute_as_numpy_does(source: str, axes: str, tmp_path: Path, out: Path) -> None:
    path = law_source(tmp_path, source, "uint8", (4, 6, 3))
    values = load(path)

    convert(path, out / "x.npy", axes=axes)

    permuted = values.transpose([int(axis) for axis in axes.split(",")])
    assert same(permuted, load(out / "x.npy"))


# Digests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, _ in CASES[: len(TYPES)] if name != "bfloat16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_digest_is_that_of_the_ra_it_becomes(name: str, order: str, tmp_path: Path) -> None:
    values = np.asarray(filled(np.dtype(TYPES[name].dtype), (4, 6)), order=order)
    make(tmp_path / "x.npy", values)
    make(tmp_path / "x.npz", values)
    convert(tmp_path / "x.npy", tmp_path / "x.ra")

    digits = hashlib.sha256((tmp_path / "x.ra").read_bytes()).hexdigest()

    assert raconvert.digest(tmp_path / "x.npy") == digits
    assert raconvert.digest(tmp_path / "x.npz", "x") == digits
    assert raconvert.digest(tmp_path / "x.ra") == digits


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3)], ids=str)
@pytest.mark.parametrize("name", ["uint8", "uint16"])
def test_digest_of_a_png(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = filled(np.dtype(TYPES[name].dtype), shape)
    make(tmp_path / "x.png", values)

    digits = hashlib.sha256(ra_contents(values)).hexdigest()

    assert raconvert.digest(tmp_path / "x.png") == digits


def test_digests_differ_across_memory_orders_and_verify_does_not(tmp_path: Path) -> None:
    values = filled(np.dtype("<i4"), (4, 6))
    make(tmp_path / "c.npy", values)
    make(tmp_path / "f.npy", np.asfortranarray(values))

    assert raconvert.digest(tmp_path / "c.npy") != raconvert.digest(tmp_path / "f.npy")
    assert np.array_equal(raconvert.read(tmp_path / "c.npy"), raconvert.read(tmp_path / "f.npy"))
