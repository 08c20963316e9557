"""Every ordered pair of formats: exact, equivalent or refused, the law of the axis order, the way back.

What is expected stands in the `IN_PAIRS` of each format, which also write the sources and read the
results: none of it is the code under test.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import image_reader
import ml_dtypes
import numpy as np
import png as pypng
import pytest
import ra_bytes
import ra_reader
import shortcut
from pairs import NAME, keeps_values
from pairs_tables import (
    DTYPES,
    EQUIVALENT,
    EXACT,
    FORMATS,
    GUESTS,
    IMAGES,
    IN_TABLES,
    LAW,
    MISSION,
    OF_TYPE,
    PLAIN,
    REFUSED,
    cases,
    cases_back,
    expected,
    expected_back,
    order_of,
    outcomes,
    seen_from,
)

import raconvert
from raconvert.catalogue import ROWS
from raconvert.cli import main
from raconvert.errors import RaconvertError, WouldLose
from raconvert.inspect.diff import diff
from raconvert.testing import filled, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pairs import Case, Shape

    from raconvert.conversion.report import Report

convert = partial(raconvert.convert, sync=False)  # the disk is tested elsewhere


def test_every_built_in_format_is_in_these_tables() -> None:
    assert {row.name for row in ROWS} == set(FORMATS)
    read_only = {name for name, row in FORMATS.items() if row.reads_only}
    assert read_only == {row.name for row in ROWS if not row.writes}
    assert {*IN_TABLES, *GUESTS, *IMAGES, *read_only} == {*FORMATS}
    assert {*MISSION} <= {*IN_TABLES}
    assert all(FORMATS[name].write for name in IN_TABLES + GUESTS)
    for row in ROWS:
        assert FORMATS[row.name].suffix in (row.suffixes or ("",))
    for name in IN_TABLES + GUESTS:  # no pair of which nothing is tried
        assert any(FORMATS[name].can_write(values_of(*case)) for case in cases(name))
        assert any(FORMATS[name].can_write(values_of(*case)) for case in cases_back(name))


def test_a_table_says_each_outcome_once() -> None:
    """What a format forgets, or says twice, is not taken for exact."""
    assert outcomes("= a ~ b", {"a": 1, "b": 2}) == {1: EXACT, 2: EQUIVALENT}
    assert outcomes("x a = *", {"a": 1, "b": 2}) == {1: REFUSED, 2: EXACT}
    for odd in ("= a", "= a b ~ a", "= a b c"):
        with pytest.raises(AssertionError):
            outcomes(odd, {"a": 1, "b": 2})


# Files -------------------------------------------------------------------------------------------


def values_of(name: str, shape: Shape) -> np.ndarray:
    return filled(DTYPES[name], shape)


def in_format(folder: Path, name: str, stem: str = NAME) -> Path:
    return folder / f"{stem}{FORMATS[name].suffix}"


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return `source(format, type, shape, order)`, the path of a file made once."""
    made: dict[tuple[Any, ...], Path] = {}

    def find(format: str, name: str, shape: Shape, order: str = "C") -> Path:
        key = (format, name, shape, order)
        if key not in made:
            folder = tmp_path_factory.mktemp("source")
            path = in_format(folder, format)
            values = values_of(name, shape)
            write = FORMATS[format].write
            if order == "F":
                write = FORMATS[format].write_column_major or write
            write(path, np.asarray(values, order=order))
            made[key] = path
        return made[key]

    return find


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder for destinations."""
    (tmp_path / "out").mkdir()
    yield tmp_path / "out"
    shutil.rmtree(tmp_path)


def empty(folder: Path) -> None:
    """Remove everything in a folder."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


class Problems:
    """What is wrong with the cases of a test, all told at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def check(self, case: object, right: object, what: object) -> None:
        """Note what is wrong, unless it is right."""
        if not right:
            self.found.append(f"{case}: {what}")

    def done(self) -> None:
        """Fail if anything was wrong."""
        if self.found:
            lines = self.found[:12] + [f"and {len(self.found) - 12} more"] * (len(self.found) > 12)
            pytest.fail("\n".join([f"{len(self.found)} cases", *lines]), pytrace=False)


# The matrix --------------------------------------------------------------------------------------

BY_LANE = {"ra", "npy", "nrrd", "png"}  # formats that the shortcut connects
FEWEST_BY_LANE = 11  # cases of each pair
WITH_GUESTS = [
    pair
    for g in GUESTS
    for pair in [(g, g), *((g, m) for m in MISSION), *((m, g) for m in MISSION)]
]
PAIRS = [
    pytest.param(a, b, id=f"{a}-{b}")
    for a, b in [*((a, b) for a in IN_TABLES for b in IN_TABLES), *WITH_GUESTS]
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pair(a: str, b: str, source: Callable[..., Path], out: Path) -> None:
    """Exact says nothing, equivalent says what, refused writes nothing and names a way out."""
    problems, by_lane = Problems(), 0
    for case in cases(a, b):
        name, shape = case
        if FORMATS[a].can_write(values_of(name, shape)):
            path = source(a, name, shape)
            if expected(b, name, shape, order_of(a)) == REFUSED:
                _refused(problems, a, b, case, path, out)
            else:
                report = _done(problems, a, b, case, path, out)
                if report is not None and {a, b} <= BY_LANE:
                    by_lane += _by_lane(problems, case, path, report, out)
            empty(out)
    if {a, b} <= BY_LANE and shortcut.POSSIBLE:
        problems.check("the shortcut", by_lane >= FEWEST_BY_LANE, f"takes {by_lane} of them")
    problems.done()


def _by_lane(problems: Problems, case: Case, path: Path, report: Report, out: Path) -> bool:
    """True if the shortcut takes the file, too; then it makes and reports the same."""
    (folder := out / "lane").mkdir()
    try:
        return shortcut.taken(path, Path(report.target), report, folder)
    except AssertionError as error:
        problems.check(case, False, error)
        return False


def _refused(problems: Problems, a: str, b: str, case: Case, path: Path, out: Path) -> None:
    try:
        report = convert(path, in_format(out, b), to=b)
    except WouldLose as refusal:
        text = str(refusal)
        problems.check(case, re.search(r"\w=[\"\[{T]|no option allows this", text), text)
        problems.check(case, f"array '{NAME}'" in text, text)
    except Exception as error:  # noqa: BLE001 - the next case is tried, too
        problems.check(case, False, repr(error))
    else:
        problems.check(case, False, f"is not refused, but {report.equivalent or EXACT}")
    problems.check(case, not list(out.iterdir()), "something was written")


def _done(problems: Problems, a: str, b: str, case: Case, path: Path, out: Path) -> Report | None:
    name, shape = case
    order = order_of(a)
    values, outcome = values_of(name, shape), expected(b, name, shape, order)
    result = in_format(out, b)
    try:
        report = convert(path, result, to=b)
        got = FORMATS[b].read(result)
    except Exception as error:  # noqa: BLE001 - the next case is tried, too
        problems.check(case, False, f"{outcome}, not {error!r}")
        return None
    if seen_from(b, shape, order) != shape:  # no index order: the axes as they stand
        values = values.T
    form = {str(fit) for fit in report.equivalent if fit.property != "metadata"}
    about = {str(fit) for fit in report.equivalent if fit.property == "metadata" and fit.array}
    more = FORMATS[a].says_more and a != b and not FORMATS[b].keeps
    problems.check(case, bool(form) == (outcome == EQUIVALENT), f"{outcome}, not {form or EXACT}")
    problems.check(case, bool(about) == more, f"metadata: {about or 'nothing said'}")
    alike = same if outcome == EXACT else keeps_values
    problems.check(case, alike(values, got), f"{outcome}:\n{values!r}\nbecomes\n{got!r}")
    return report


@pytest.mark.parametrize("b", IN_TABLES)
def test_strict_refuses_what_is_equivalent_and_nothing_else(
    b: str, source: Callable[..., Path], out: Path
) -> None:
    problems = Problems()
    for name, shape in cases("npy"):
        outcome = expected(b, name, shape)
        if outcome == REFUSED or not FORMATS["npy"].can_write(values_of(name, shape)):
            continue
        path, result = source("npy", name, shape), in_format(out, b)
        try:
            convert(path, result, to=b, strict=True)
        except WouldLose as refusal:
            problems.check((name, shape), outcome == EQUIVALENT, f"{outcome}, not {refusal}")
            problems.check((name, shape), "refused by strict=True" in str(refusal), refusal)
            problems.check((name, shape), not list(out.iterdir()), "something was written")
        else:
            problems.check((name, shape), outcome == EXACT, f"{outcome} passes --strict")
        empty(out)
    problems.done()


@pytest.mark.parametrize(
    ("b", "case", "outcome"),
    [pytest.param(b, case, outcome, id=f"{b}-{case[0]}-{case[1]}")
     for b, table in IMAGES.items() for case, outcome in table.items()],
)  # fmt: skip
def test_other_images(
    b: str, case: Case, outcome: str, source: Callable[..., Path], out: Path
) -> None:
    """They are written only where nothing is lost."""
    path, result = source("npy", *case), in_format(out, b)

    if outcome != EXACT:
        with pytest.raises(WouldLose):
            convert(path, result, strict=outcome == EQUIVALENT)
        assert list(out.iterdir()) == []
    if outcome != REFUSED:
        convert(path, result, strict=outcome == EXACT)
        assert same(values_of(*case), FORMATS[b].read(result))
        convert(result, in_format(out, "npy"))
        assert same(values_of(*case), np.load(in_format(out, "npy")))


def test_jpeg_is_written_where_that_is_asked_for(source: Callable[..., Path], out: Path) -> None:
    report = convert(source("npy", "uint8", (4, 6, 3)), out / "x.jpg", allow="precision")

    assert [fit.property for fit in report.allowed] == ["precision"]
    assert image_reader.pillow(out / "x.jpg").shape == (4, 6, 3)


@pytest.mark.parametrize("b", IN_TABLES)
@pytest.mark.parametrize("a", ["npy", "npz"])
@pytest.mark.parametrize(
    "dtype", ["O", np.longdouble, np.clongdouble, ml_dtypes.float6_e2m3fn, ml_dtypes.int4],
    ids=["object", "longdouble", "clongdouble", "float6", "int4"],
)  # fmt: skip
def test_types_without_a_faithful_form_write_nothing(
    a: str, b: str, dtype: Any, tmp_path: Path, out: Path
) -> None:
    """From files they cannot come (or come as bytes); from memory they are refused by name."""
    values = np.ones((2, 3)).astype(dtype)

    with pytest.raises(RaconvertError, match="no option allows this"):
        raconvert.write(in_format(out, b), values, to=b)
    if np.dtype(dtype).isbuiltin == 1:
        np.savez(tmp_path / "x.npz", x=values)
        np.save(tmp_path / "x.npy", values)
        with pytest.raises(RaconvertError, match="no option allows this"):
            convert(tmp_path / f"x.{a}", in_format(out, b), to=b)
    assert list(out.iterdir()) == []


# More axes than most have
RANKS = [(b, name, most) for b, row in FORMATS.items() for name, most in row.most_axes.items()]


@pytest.mark.parametrize(("b", "name", "most"), RANKS)
def test_number_of_axes(b: str, name: str, most: int, tmp_path: Path, out: Path) -> None:
    for rank, holds in ((most, True), (most + 1, False)):
        shape = (2, *(1,) * (rank - 2), 2)
        values = values_of(name, (4,)).reshape(2, 2)
        (tmp_path / "vals.ra").write_bytes(
            ra_bytes.ra_file(4 if name == "complex64" else 3, values.itemsize, shape,
                             values.tobytes())
        )  # fmt: skip
        if holds:
            convert(tmp_path / "vals.ra", in_format(out, b))
            with raconvert.open(in_format(out, b), NAME if b in CONTAINERS else None) as array:
                assert array.ndim == rank
            empty(out)
        else:
            with pytest.raises(WouldLose, match="axes"):
                convert(tmp_path / "vals.ra", in_format(out, b))
            assert list(out.iterdir()) == []


CONTAINERS = [row.name for row in ROWS if row.many]
MADE_OF_RA = {row.name for row in ROWS if row.sidecar == "never"}


@pytest.mark.parametrize("b", ["ra", "bundle", "zip", "tar"])
def test_ra_holds_any_number_of_axes(b: str, tmp_path: Path, out: Path) -> None:
    contents = ra_bytes.ra_file(2, 1, (1,) * 64 + (3,), b"abc")
    (tmp_path / "vals.ra").write_bytes(contents)

    convert(tmp_path / "vals.ra", in_format(out, b), to=b, strict=True)
    if b != "ra":
        convert(in_format(out, b), out / "vals.ra", strict=True)

    assert (out / "vals.ra").read_bytes() == contents


# Widths that only RA has: eltype, elbyte, and the type in which the bytes travel
ONLY_RA = {
    "int128": (1, 16, "V16"),
    "uint128": (2, 16, "V16"),
    "float128": (3, 16, "V16"),
    "complex256": (4, 32, "V32"),
    "complex32": (4, 4, "<f2"),
}
HOLD_THEM = ("npy", "npz", "hdf5")


def wide_ra(folder: Path, name: str) -> bytes:
    """Write and return an .ra of shape (2, 3)."""
    eltype, elbyte, _ = ONLY_RA[name]
    contents = ra_bytes.ra_file(eltype, elbyte, (3, 2), bytes(range(1, 1 + 6 * elbyte)))
    (folder / "vals.ra").write_bytes(contents)
    return contents


@pytest.mark.parametrize("b", ["ra", *HOLD_THEM])
@pytest.mark.parametrize("name", ONLY_RA)
def test_types_that_only_ra_has(name: str, b: str, tmp_path: Path, out: Path) -> None:
    """They are exact from RA to RA; elsewhere the bytes are kept and the type is named as lost."""
    contents = wide_ra(tmp_path, name)
    carrier = ONLY_RA[name][2]

    report = convert(tmp_path / "vals.ra", in_format(out, b))

    if b == "ra":
        assert report.equivalent == []
        assert (out / "vals.ra").read_bytes() == contents
        return
    assert report.equivalent or FORMATS[b].keeps
    values = FORMATS[b].read(in_format(out, b))
    assert values.dtype == carrier
    assert values.shape == ((2, 3, 2) if name == "complex32" else (2, 3))
    assert values.tobytes() == contents[64:]


@pytest.mark.parametrize("name", ONLY_RA)
@pytest.mark.parametrize("between", [*HOLD_THEM, "bundle", "zip", "tar", "nrrd", "scidb"])
def test_types_that_only_ra_has_come_back_with_a_sidecar(
    name: str, between: str, tmp_path: Path, out: Path
) -> None:
    contents = wide_ra(tmp_path, name)

    if expected(between, "float16" if name == "complex32" else "void", PLAIN) == REFUSED:
        with pytest.raises(WouldLose):
            convert(tmp_path / "vals.ra", in_format(out, between), to=between, meta="sidecar")
        return
    convert(tmp_path / "vals.ra", in_format(out, between), to=between, meta="sidecar")
    convert(in_format(out, between), out / "vals.ra")

    assert (out / "vals.ra").read_bytes() == contents


@pytest.mark.parametrize("b", [b for b in IN_TABLES if OF_TYPE[b]["void"] == EXACT])
def test_bare_user_elements_are_void(b: str, tmp_path: Path, out: Path) -> None:
    values = filled(np.dtype("V7"), (4, 6))
    ra_reader.write(tmp_path / "vals.ra", values)

    report = convert(tmp_path / "vals.ra", in_format(out, b), to=b)

    assert report.equivalent == []
    assert same(values, FORMATS[b].read(in_format(out, b)))


# What may be allowed -----------------------------------------------------------------------------


ALLOWED = [(b, name, PLAIN) for b, row in FORMATS.items() for name in row.allowed]


@pytest.mark.parametrize(("b", "name", "shape"), ALLOWED, ids=str)
def test_allowed_loss_is_recorded(
    b: str, name: str, shape: Shape, source: Callable[..., Path], out: Path
) -> None:
    """One --allow is enough, no other one is, and what it makes is what the refusal says."""
    flag, becomes = FORMATS[b].allowed[name]
    path = source("ra" if name == "bfloat16" else "npy", name, shape)
    for other in {"dtype", "elements", "precision", "names", "nulls"} - {flag}:
        with pytest.raises(WouldLose, match=rf'allow=\["{flag}"\]'):
            convert(path, in_format(out, b), allow=other)
    assert list(out.iterdir()) == []

    report = convert(path, in_format(out, b), allow=flag)

    assert {fit.flag for fit in report.allowed} == {f"--allow {flag}"}
    values = becomes(values_of(name, shape))
    got = FORMATS[b].read(in_format(out, b))
    assert same(values, got) or np.array_equal(values, got)


@pytest.mark.parametrize("b", IN_TABLES + GUESTS)
def test_a_flag_that_a_refusal_names_helps(b: str, tmp_path: Path, out: Path) -> None:
    """With values that fit; where no flag is named, none is taken."""
    problems = Problems()
    for name, dtype in DTYPES.items():
        if expected(b, name, PLAIN) != REFUSED or name in FORMATS[b].by_value:
            continue
        values = np.zeros(PLAIN, dtype) if dtype.kind in "SUVmM" else np.ones(PLAIN, dtype)
        path = tmp_path / f"{name}.npy"
        suffix = ".ra" if name == "bfloat16" else ".npy"
        path = tmp_path / f"{name}{suffix}"
        FORMATS[suffix[1:]].write(path, values)
        with pytest.raises(WouldLose) as refusal:
            convert(path, in_format(out, b), to=b)
        text = str(refusal.value)
        named = set(re.findall(r"(allow|dtype)=\[?\"(\w+)\"", text))
        try:
            if "no option allows this" in text:
                with pytest.raises(WouldLose):
                    convert(path, in_format(out, b), to=b, allow="all")
            else:
                problems.check(name, named, text)
                convert(path, in_format(out, b), to=b, **dict(named))
        except (WouldLose, pytest.fail.Exception) as error:
            problems.check(name, False, f"{text}\nbut then {error}")
        empty(out)
    problems.done()


@pytest.mark.parametrize("b", ["npy", "npz", "mat", "scidb", "har", "hdf5"])
def test_strict_knows_of_metadata(b: str, tmp_path: Path, out: Path) -> None:
    """A PNG's own chunks have no place in NPY; PNG, HDF5 and RA (in its sidecar) keep them."""
    image = pypng.Writer(2, 1, greyscale=True, bitdepth=16, gamma=0.5)
    with (tmp_path / "x.png").open("wb") as file:
        image.write(file, [[0, 1]])

    if FORMATS[b].keeps:
        convert(tmp_path / "x.png", in_format(out, b), strict=True)
        return
    with pytest.raises(WouldLose, match="refused by strict=True"):
        convert(tmp_path / "x.png", in_format(out, b), strict=True)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("b", IN_TABLES + GUESTS)
def test_attributes_of_a_file_are_kept_or_named(b: str, tmp_path: Path, out: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "vals.h5", "w") as file:
        file[NAME] = values_of(FORMATS[b].usual, PLAIN)
        file.attrs["title"] = "of the file"

    report = convert(tmp_path / "vals.h5", in_format(out, b), to=b)

    lost = [fit for fit in report.equivalent if "attributes of the file" in str(fit)]
    assert bool(lost) == (b == "ra" or not (FORMATS[b].keeps or FORMATS[b].keeps_file))
    if not lost and b != "nrrd":
        with raconvert.open(in_format(out, b)) as back:
            assert back.attributes == {"title": "of the file"}


# The law of the axis order -----------------------------------------------------------------------

# source: its format, and the order in which its elements lie
SOURCES = {
    source: (name, order)
    for name in IN_TABLES + GUESTS
    for source, order in (
        {name: order_of(name)} if FORMATS[name].law is None else FORMATS[name].law
    ).items()
}
LAW_WITH_GUESTS = ("npy_C", "npy_F", "ra_bare", "mat")
LAW_PAIRS = [
    pytest.param(a, c, id=f"{a}-{c}")
    for a in SOURCES
    for c in IN_TABLES + GUESTS
    if not {a, c} & {*GUESTS} or a == c or a in LAW_WITH_GUESTS or c in ("npy", "mat")
]


def law_cases(a: str, c: str | None = None) -> Iterator[tuple[str, Shape]]:
    """Yield what can come from a source, and goes to a target."""
    suffix, order = SOURCES[a]
    for name, shape in LAW:
        possible = a == "ra_sidecar" or FORMATS[suffix].can_write(values_of(name, shape))
        if possible and (c is None or expected(c, name, shape, order) != REFUSED):
            yield name, shape


def law_source(source: Callable[..., Path], a: str, name: str, shape: Shape) -> Path:
    suffix, order = SOURCES[a]
    return source(suffix, name, shape, order or "C")


def is_exception(a: str, c: str, shape: Shape) -> bool:
    """Tell whether an .ra between the two is bare and read as column-major formats count."""
    return order_of(SOURCES[a][0]) == "C" and FORMATS[c].order == "F" and len(shape) > 1


@pytest.mark.parametrize(("a", "c"), LAW_PAIRS)
def test_law(a: str, c: str, source: Callable[..., Path], out: Path) -> None:
    """Element [i,j,k] keeps its index, and A to C equals A to RA to C.

    But where a row-major array goes by a bare .ra to a format that is column-major. An .ra with a
    sidecar says how it is counted. What defines no index order is read reversed, or as it stands.
    """
    problems = Problems()
    order = SOURCES[a][1]
    direct, bare, via = in_format(out / "1", c), out / "2" / "vals.ra", in_format(out / "3", c)
    for name, shape in law_cases(a, c):
        for path in (direct, bare, via):
            path.parent.mkdir()
        path, values = law_source(source, a, name, shape), values_of(name, shape)
        convert(path, direct, to=c)
        convert(path, bare)
        seen = values if seen_from(c, shape, order) == shape else values.T
        alike = same if expected(c, name, shape, order) == EXACT else keeps_values
        problems.check((name, shape), alike(seen, FORMATS[c].read(direct)), "an element moved")
        is_bare = not bare.with_name(f"{bare.name}.yaml").exists()
        if is_exception(a, c, shape) and is_bare:
            _check_exception(problems, (name, shape), bare, via, c)
        else:
            convert(bare, via, to=c)
            problems.check(
                (name, shape), same(FORMATS[c].read(direct), FORMATS[c].read(via)), "differs"
            )
            if (
                a not in ("bundle", "mat", "scidb")
                and c not in MADE_OF_RA
                and not (a in ("npy_F", "npz_F") and c in ("npy", "npz"))
            ):  # which say more of the file, or keep the order in memory
                same_files = _contents(direct.parent) == _contents(via.parent)
                problems.check((name, shape), same_files, "the bytes differ")
        empty(out)
    problems.done()


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _check_exception(problems: Problems, case: Case, bare: Path, via: Path, c: str) -> None:
    name, shape = case
    values = values_of(name, shape)
    if expected(c, name, shape, None) == REFUSED:
        return
    convert(bare, via, to=c)
    problems.check(case, keeps_values(values.T, FORMATS[c].read(via)), "is not read as it stands")
    convert(bare, via, to=c, index_order="C", overwrite=True)
    problems.check(
        case, keeps_values(values, FORMATS[c].read(via)), "--index-order C is not obeyed"
    )


@pytest.mark.parametrize("c", ["mat", "har"])
@pytest.mark.parametrize("a", ["npy", "hdf5", "png"])
def test_the_exception_is_told_in_one_line(
    a: str, c: str, source: Callable[..., Path], out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = source(a, "uint8", (4, 6, 3))
    assert main([str(path), "-o", str(out / "vals.ra")]) == 0
    capsys.readouterr()

    assert main([str(out / "vals.ra"), "-o", str(in_format(out, c))]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "--index-order" in line]
    assert main([str(path), "-o", str(in_format(out, c, "direct"))]) == 0
    assert "--index-order" not in capsys.readouterr().err

    assert len(told) == 1, told


@pytest.mark.parametrize("c", ["mat", "har"])
@pytest.mark.parametrize("a", ["npy", "npz", "hdf5", "png", "scidb", "tiff"])
def test_the_law_has_no_exception_with_a_sidecar(
    a: str, c: str, source: Callable[..., Path], out: Path
) -> None:
    path = source(a, "uint8", (4, 6, 3))

    convert(path, in_format(out, c, "direct"))
    convert(path, out / "vals.ra", meta="sidecar")
    report = convert(out / "vals.ra", in_format(out, c))

    assert keeps_values(values_of("uint8", (4, 6, 3)), FORMATS[c].read(in_format(out, c)))
    assert not [note for note in report.notes if "index_order" in note]


@pytest.mark.parametrize("a", ["ra_sidecar", "mat", "har"])
def test_column_major_sources_leave_their_order_in_the_sidecar(
    a: str, source: Callable[..., Path], out: Path
) -> None:
    """No byte moves: the dims are the shape, and the data is what lies in the source."""
    convert(law_source(source, a, "float32", (4, 6)), out / "vals.ra")

    assert ra_reader.sidecar(out / "vals.ra")["index_order"] == "F"
    plain = ra_bytes.ra_file(3, 4, (4, 6), values_of("float32", (4, 6)).tobytes(order="F"))
    assert (out / "vals.ra").read_bytes() == plain


ROW_MAJOR = ["npy_C", "npy_F", "npz_C", "npz_F", "png", "ra_bare", "hdf5", "nrrd", "bundle"]


@pytest.mark.parametrize("a", ROW_MAJOR)
def test_row_major_sources_leave_a_bare_ra(a: str, source: Callable[..., Path], out: Path) -> None:
    convert(law_source(source, a, "uint8", (4, 6, 3)), out / "vals.ra")

    values = values_of("uint8", (4, 6, 3))
    assert [path.name for path in out.iterdir()] == ["vals.ra"]
    assert (out / "vals.ra").read_bytes() == ra_bytes.ra_file(2, 1, (3, 6, 4), values.tobytes())


@pytest.mark.parametrize("a", ["npy_F", "npz_F"])
@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
def test_no_order_is_left_below_two_axes(
    a: str, shape: Shape, source: Callable[..., Path], out: Path
) -> None:
    convert(law_source(source, a, "float64", shape), out / "vals.ra")

    assert [path.name for path in out.iterdir()] == ["vals.ra"]


@pytest.mark.parametrize("c", ["npy", "npz"])
@pytest.mark.parametrize("a", ["npy_F", "npz_F", "ra_sidecar", "mat", "har"])
def test_column_major_arrays_stay_so_where_the_target_can(
    a: str, c: str, source: Callable[..., Path], out: Path
) -> None:
    convert(law_source(source, a, "float32", (4, 6, 3)), in_format(out, c))

    values = FORMATS[c].read(in_format(out, c))
    assert values.flags.f_contiguous
    assert not values.flags.c_contiguous


DIMS, DATA = (3, 4, 5), bytes(range(120))  # of an .ra, and of a NRRD


def listed(folder: Path, a: str) -> Path:
    """Write axes that are only listed, fastest first, in RA or NRRD."""
    path = in_format(folder, a)
    if a == "ra":
        path.write_bytes(ra_bytes.ra_file(1, 2, DIMS, DATA))
    else:
        FORMATS[a].write(path, np.frombuffer(DATA, "<i2").reshape(DIMS[::-1]))
    return path


@pytest.mark.parametrize("a", ["ra", "nrrd"])
@pytest.mark.parametrize("c", [c for c in IN_TABLES if expected(c, "int16", PLAIN) != REFUSED])
def test_listed_axes_are_read_as_each_format_counts(
    a: str, c: str, tmp_path: Path, out: Path
) -> None:
    """The last dimension in Python is the first one in Julia and MATLAB; no byte moves."""
    convert(listed(tmp_path, a), in_format(out, c), to=c)

    values = FORMATS[c].read(in_format(out, c))
    order = "F" if FORMATS[c].order == "F" else "C"
    assert values.shape == (DIMS if order == "F" else DIMS[::-1])
    assert values.astype("<i2").tobytes(order) == DATA


@pytest.mark.parametrize("a", ["ra", "nrrd"])
@pytest.mark.parametrize(("asked", "c"), [("F", "npy"), ("F", "hdf5"), ("C", "mat"), ("F", "mat")])
def test_index_order_answers_for_axes_that_are_only_listed(
    a: str, asked: str, c: str, tmp_path: Path, out: Path
) -> None:
    report = convert(listed(tmp_path, a), in_format(out, c), index_order=asked)

    values = FORMATS[c].read(in_format(out, c))
    assert values.shape == (DIMS if asked == "F" else DIMS[::-1])
    assert values.tobytes(asked) == DATA
    assert not [note for note in report.notes if "index_order" in note]


def test_ra_and_nrrd_list_the_same_dims(tmp_path: Path, out: Path) -> None:
    """Neither says anything of indices: data and dims are those of the other, there and back."""
    convert(listed(tmp_path, "ra"), out / "vals.nrrd", strict=True)
    convert(out / "vals.nrrd", out / "vals.ra", strict=True)

    header, _, data = (out / "vals.nrrd").read_bytes().partition(b"\n\n")
    assert b"\nsizes: 3 4 5\n" in header
    assert data == DATA
    assert (out / "vals.ra").read_bytes() == (tmp_path / "vals.ra").read_bytes()


@pytest.mark.parametrize("c", ["npy", "hdf5", "mat"])
def test_sidecar_decides_over_the_index_order_asked_for(
    c: str, source: Callable[..., Path], out: Path
) -> None:
    """``--index-order`` answers for a bare .ra only; this one says what it is."""
    convert(law_source(source, "ra_sidecar", "int64", (4, 6)), in_format(out, c), index_order="C")

    assert same(values_of("int64", (4, 6)), FORMATS[c].read(in_format(out, c)))


@pytest.mark.parametrize("a", ["npy_C", "npy_F", "ra_bare", "mat", "hdf5", "har"])
def test_keep_memory_lists_the_axes_in_reverse(
    a: str, source: Callable[..., Path], out: Path
) -> None:
    convert(law_source(source, a, "float32", (4, 6, 3)), out / "vals.npy", axes="keep-memory")

    assert same(values_of("float32", (4, 6, 3)).T, np.load(out / "vals.npy"))


@pytest.mark.parametrize("a", SOURCES)
@pytest.mark.parametrize("axes", ["1,2,0", "2,1,0", "0,2,1"])
def test_axes_permute_as_numpy_does(
    a: str, axes: str, source: Callable[..., Path], out: Path
) -> None:
    name = FORMATS[SOURCES[a][0]].usual

    convert(law_source(source, a, name, (4, 6, 3)), out / "vals.npy", axes=axes)

    permuted = values_of(name, (4, 6, 3)).transpose([int(axis) for axis in axes.split(",")])
    assert same(permuted, np.load(out / "vals.npy"))


# The way back ------------------------------------------------------------------------------------


BACK = [pytest.param(*pair, id="-".join(pair)) for g in GUESTS for pair in [("npy", g), (g, "npy")]]


@pytest.mark.parametrize(
    ("a", "b"), [*(pair for pair in PAIRS if not {*pair.values} & {*GUESTS}), *BACK]
)
def test_the_way_back_gives_what_was(
    a: str, b: str, source: Callable[..., Path], out: Path
) -> None:
    """X to Y with a sidecar, and back to X: not even `diff --bitwise` finds a difference."""
    problems = Problems()
    for name, shape in cases_back(a):
        if not FORMATS[a].can_write(values_of(name, shape)):
            continue
        if expected_back(b, name, shape, order_of(a)) == REFUSED:
            continue
        path = source(a, name, shape)
        between, back = in_format(out / "between", b), in_format(out, a)
        between.parent.mkdir()
        try:
            convert(path, between, to=b, meta="sidecar")
            convert(between, back, to=a)
            found = diff(path, back, bitwise=True)
            problems.check((name, shape), found["same"], differences(found))
        except Exception as error:  # noqa: BLE001 - the next case is tried, too
            problems.check((name, shape), False, f"{type(error).__name__}: {error}")
        empty(out)
    problems.done()


def differences(found: dict[str, Any]) -> dict[str, Any]:
    """Return what differs, of all that `diff` says."""
    told = {key: found[key] for key in found if key not in ("a", "b", "arrays") and found[key]}
    return {**told, "arrays": [one for one in found["arrays"] if not one["same"]]}


@pytest.mark.parametrize("b", ["mat", "nrrd", "scidb", "har", "png"])
def test_the_way_back_by_the_command_line(
    b: str, source: Callable[..., Path], out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "bool" if expected(b, "bool", PLAIN) != REFUSED else "uint8"
    path = source("npy", name, PLAIN)
    between = in_format(out, b, "between")

    assert main([str(path), "-o", str(between), "--meta", "sidecar"]) == 0
    assert main([str(between), "-o", str(out / "vals.npy")]) == 0
    assert main(["diff", str(path), str(out / "vals.npy")]) == 0
    assert main(["diff", str(path), str(between)]) == 0

    capsys.readouterr()
    assert same(np.load(path), np.load(out / "vals.npy"))


# Digests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_digest_is_that_of_the_ra_it_becomes(
    name: str, order: str, source: Callable[..., Path], out: Path
) -> None:
    path = source("npy", name, PLAIN, order)
    convert(path, out / "vals.ra")

    digits = hashlib.sha256((out / "vals.ra").read_bytes()).hexdigest()

    assert raconvert.digest(path) == digits
    assert raconvert.digest(source("npz", name, PLAIN, order), NAME) == digits
    assert raconvert.digest(out / "vals.ra") == digits


@pytest.mark.parametrize("name", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("a", ["png", "tiff", "hdf5", "nrrd", "scidb", "mat", "har", "bundle"])
def test_digests_of_the_other_formats(a: str, name: str, source: Callable[..., Path]) -> None:
    """Of the stored order: row-major, or reversed where the format is column-major."""
    values = values_of(name, (4, 6, 3))
    if not FORMATS[a].can_write(values):
        return
    digits = hashlib.sha256(
        ra_reader.contents_of(values.T if order_of(a) == "F" else values)
    ).hexdigest()
    if order_of(a) == "F":
        plain = ra_bytes.ra_file(
            ra_reader.code_of(values.dtype), values.itemsize, values.shape, values.tobytes("F")
        )
        digits = hashlib.sha256(plain).hexdigest()

    array = NAME if a in CONTAINERS else None

    assert raconvert.digest(source(a, name, (4, 6, 3)), array) == digits


def test_digests_are_equal_across_memory_orders(
    source: Callable[..., Path],
) -> None:
    c, f = (source("npy", "int32", PLAIN, order) for order in "CF")

    assert raconvert.digest(c) == raconvert.digest(f)
    assert np.array_equal(raconvert.read(c), raconvert.read(f))
