"""What is special to R's files: R reads what we write and writes what we read, by `identical`."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from meaning.readers import by_rdata
from pairs import Pairs, little, quiet

import raconvert
from raconvert import Axis, Metadata
from raconvert.cli import main
from raconvert.errors import (
    Corrupt,
    RaconvertError,
    TargetExists,
    TooLarge,
    Unsafe,
    Unsupported,
    WouldLose,
)
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load
from raconvert.views.pages.programs import filled

rdata = pytest.importorskip("rdata")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "r"
FORMS = ("everything.rds", "everything_plain.rds", "everything_v2.rds", "everything_native.rds")
NA = struct.pack("<Q", 0x7FF00000000007A2)


def elements(path: Path) -> np.ndarray:
    """The vector of a file by the parser of `rdata`, which drops the dims of texts itself."""
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    flags, count = struct.unpack_from(">2i", raw, 23)
    if flags & 255 == 24:  # raw, which rdata does not know
        values = np.frombuffer(raw, "u1", count, 31)
        at = raw.find(b"\0\0\0\3dim\0\0\0\r")
        rank = struct.unpack_from(">i", raw, at + 11)[0] if at > 0 else 0
        dims = struct.unpack_from(f">{rank}i", raw, at + 15)
        return values.reshape(dims or values.shape, order="F")
    with quiet():
        node = rdata.parser.parse_data(raw).object
    attributes = {}
    rest = node.attributes
    while rest is not None and rest.tag is not None:
        tag = rest.tag.referenced_object or rest.tag
        attributes[tag.value.value.decode()] = rest.value[0]
        rest = rest.value[1]
    values = node.value
    kind = node.info.type.name
    if kind == "STR":
        values = [one.value.decode() for one in values]
    elif kind == "LGL":
        values = np.asarray(values).astype(bool)
    elif kind == "INT":
        values = np.asarray(values).astype("i4")
    values = np.asarray(values)
    if "class" in attributes:
        unit = attributes["class"].value[0].value.decode()
        values = values.astype("i8").astype({"Date": "M8[D]", "POSIXct": "M8[s]"}[unit])
    dims = np.asarray(attributes["dim"].value).tolist() if "dim" in attributes else [*values.shape]
    return little(values.reshape(dims, order="F"))


def said(path: Path) -> dict[str, Any]:
    """The facts that a file says, by the parser of `rdata`."""
    with quiet():
        seen = by_rdata(path, "vals")
    facts = {f"{fact}s": [axis.get(fact) for axis in seen.axes] for fact in ("name", "labels")}
    facts["labels"] = facts.pop("labelss")
    return {**facts, **seen.whole, "attributes": seen.attributes}


def save(path: Path, values: np.ndarray) -> None:
    """Write a vector by `rdata`."""
    with quiet():
        rdata.write_rds(path, np.asfortranarray(values) if values.ndim > 1 else values)


IN_PAIRS = (
    Pairs(
        name="rds",
        suffix=".rds",
        read=elements,
        write=save,
        can_write=lambda values: (
            values.dtype.str[1:] in ("b1", "i4", "f8", "c16") and values.ndim > 0
        ),
        order="F",
        guest=True,
        usual="float64",
        types="""
            = bool int32 uint8 float64 complex128 complex128_big
            ~ int8 int16 uint16 int16_big uint16_big float16 bfloat16 float32 float32_big complex64
              text text_big
            x int64 uint32 uint64 int64_big datetime timedelta structured void bytes seconds
        """,
        by_value=("bytes", "seconds"),  # a NUL inside, and more than 2**53
        shapes="= * ~ ()",
        said=said,
    ),
    Pairs(name="rdata", suffix=".rdata", read=elements, reads_only=True),
)


def read(path: Path, name: str = "rds", **options: Any) -> raconvert.Bundle:
    return load(by_name(name)).read(Source(str(path)), **options)


def values(bundle: raconvert.Bundle, name: str) -> list[Any]:
    return bundle[name][...].ravel(order="F").tolist()


# Files of R ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_object_of_a_list_is_what_r_wrote(form: str) -> None:
    with read(FIXTURES / form) as bundle:
        assert values(bundle, "integer") == [1, -(2**31), -3]
        assert values(bundle, "integer.NA") == [False, True, False]
        assert bundle["integer"].meta.companions == {"integer.NA": "nulls"}
        assert dict(bundle["integer"].meta.attributes) == {"note": "kept", "numbers": [1.5, None]}
        assert bundle["logical"].dtype == bool
        assert values(bundle, "logical") == [True, False, False]
        assert values(bundle, "logical.NA") == [False, True, False]
        assert values(bundle, "text") == ["a", "", "été", ""]
        assert values(bundle, "text.NA") == [False, True, False, False]
        assert values(bundle, "factor") == ["low", "high", "", "low"]
        assert bundle["factor"].meta.formats["rds"]["levels"] == ["low", "high", "never"]
        assert values(bundle, "factor.NA") == [False, False, True, False]
        day, time = bundle["day"][...], bundle["time"][...]
        assert day.dtype == "M8[D]"
        assert day.astype(str).tolist() == ["2020-02-29", "NaT", "1969-12-31"]
        assert time.dtype == "M8[ms]"
        assert time.astype("i8").tolist() == [500, 10**12, -(2**63)]
        assert bundle["time"].meta.attributes["tzone"] == "Europe/Berlin"
        assert values(bundle, "complex") == [1 + 0.5j, -2 + 4j]
        assert values(bundle, "raw") == [0, 127, 255]
        matrix = bundle["matrix"]
        assert (matrix.shape, matrix.index_order) == ((2, 3), "F")
        assert [axis.to_dict() for axis in matrix.meta.axes] == [
            {"name": "sex", "labels": ["m", "f"]}, {}]  # fmt: skip
        bits = np.asarray(matrix).astype("<f8").ravel(order="F").tobytes()
        assert bits[8:16] == NA
        assert np.isnan(np.frombuffer(bits, "<f8")[2])
        assert bits[16:24] != NA
        assert bits[24:32] == struct.pack("<d", -0.0)
        assert bundle["cube"].shape == (2, 3, 4)
        assert bundle["cube"][1, 2, 3] == 24
        assert bundle["cube"][1, 0, 0] == 2
        assert bundle["named"].meta.axes[0].labels == ("u", "v")
        assert values(bundle, "sequence") == [*range(1, 11)]
        assert values(bundle, "frame/x") == [1, 2, 3]
        assert values(bundle, "frame/y.NA") == [False, False, True]
        assert values(bundle, "cars/row.names") == ["Mazda RX4", "Mazda RX4 Wag"]
        assert values(bundle, "nested/2/1") == ["deep"]
        assert values(bundle, "nested/b") == [2]
        assert values(bundle, "latin") == ["été"]
        assert values(bundle, "bytes") == [b"ab", b"\xff"]
        assert bundle["series"].meta.attributes["tsp"] == [2000, 2000.5, 4]
        notes = "\n".join(bundle.notes)
        for name, what in {
            "nothing": "NULL", "function": "a function", "environment": "an environment",
            "call": "a call", "formula": "a call", "compiled": "a function",
        }.items():  # fmt: skip
            assert f"'{name}' was left out: it is {what}" in notes
        assert bundle.formats["rds"]["forms"] == {"frame": "data.frame", "cars": "data.frame"}


def test_a_workspace_has_its_objects_by_name() -> None:
    with read(FIXTURES / "workspace.RData", "rdata") as bundle:
        assert values(bundle, "x") == [1, 2, 3, 4, 5, 6]
        assert values(bundle, "thing/i") == [1, 2]
        assert values(bundle, "thing/x") == [0.5, 1]
        assert bundle.formats["rds"]["forms"]["thing"] == "S4 Thing"
        assert values(bundle, "later") == ["1", "2", "3", "4", "5"]
        assert values(bundle, "sorted") == [1, 2, 3]
        assert values(bundle, "everything/integer") == [1, -(2**31), -3]
        assert "'compiled' was left out: it is a function" in bundle.notes


def test_plain_numbers_are_mapped_where_they_lie() -> None:
    with read(FIXTURES / "everything_plain.rds") as bundle:
        assert all(bundle[name].extent is not None for name in ("matrix", "integer", "raw"))
    with read(FIXTURES / "everything.rds") as bundle:
        assert bundle["matrix"].extent is None


@pytest.mark.parametrize(("name", "form"), [("text.rds", "rds"), ("text.RData", "rdata")])
def test_text_is_refused_by_name(name: str, form: str) -> None:
    with pytest.raises(Unsupported, match="text \\(form A\\)"):
        read(FIXTURES / name, form)


def test_a_part_without_what_is_missing_is_refused(tmp_path: Path) -> None:
    path = f"{FIXTURES / 'everything.rds'}#integer"
    with pytest.raises(WouldLose, match=r"integer\.NA"):
        raconvert.convert(path, tmp_path / "x.npy")
    raconvert.convert(path, tmp_path / "x.npy", allow=["nulls"])
    both = ["integer", "integer.NA"]
    raconvert.convert(FIXTURES / "everything.rds", tmp_path / "x.npz", arrays=both)


# R itself -----------------------------------------------------------------------------------------


SAME = """
same <- function(a, b) {
  if (is.list(a) && is.list(b) && !isS4(a)) {
    keep <- vapply(a, function(v) is.atomic(v) && !is.null(v) || is.list(v), TRUE)
    a <- a[keep]
    if (!identical(names(a), names(b)) || length(a) != length(b)) return(FALSE)
    rest <- function(v) { v <- attributes(v); v[sort(setdiff(names(v), "names"))] }
    if (is.data.frame(a) && !identical(rest(a), rest(b))) return(FALSE)
    return(all(as.logical(mapply(same, a, b))))
  }
  identical(a, b, num.eq = FALSE, single.NA = FALSE, attrib.as.set = TRUE)
}
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("compress", ["gzip", "none", "bzip2", "xz"])
def test_what_is_read_and_written_is_identical_in_r(
    form: str, compress: str, tmp_path: Path, r: Callable[..., str]
) -> None:
    raconvert.convert(FIXTURES / form, tmp_path / "x.rds", out_opts={"compress": compress})
    code = (
        f'{SAME} a <- readRDS("{FIXTURES / "everything.rds"}"); b <- readRDS("x.rds")\n'
        "bad <- names(b)[!mapply(same, a[names(b)], b)]\n"
        "b2 <- setdiff(names(a), names(b)); cat(length(b), bad, '|', b2)"
    )
    assert r(code, tmp_path) == "18  | nothing function environment call formula compiled"


RANDOM = (
    SAME
    + """
set.seed(%d)
pick <- function(n) {
  kind <- sample(9, 1)
  v <- switch(kind, sample(c(NA, -5:5), n, TRUE), sample(c(TRUE, FALSE, NA), n, TRUE),
    c(NA, NaN, Inf, -0, rnorm(5))[sample(9, n, TRUE)], complex(real = rnorm(n), imaginary = rnorm(n)),
    as.raw(sample(0:255, n, TRUE)), sample(c("a", "\\u00e9\\u65e5", NA, ""), n, TRUE),
    factor(sample(c("x", "y", NA), n, TRUE), levels = c("y", "x", "z")),
    as.Date(sample(c(NA, 0:20000), n, TRUE), origin = "1970-01-01"),
    .POSIXct(sample(c(NA, 1e9, 0.25, 1234567890.123456), n, TRUE), tz = "UTC"))
  if (kind < 7 && n == 12 && runif(1) < 0.5) {
    dim(v) <- list(c(3, 4), c(12), c(2, 1, 6), c(2, 3, 2))[[sample(4, 1)]]
    if (runif(1) < 0.5) dimnames(v) <- lapply(dim(v), function(k) if (runif(1) < 0.7) paste0("l", seq_len(k)))
    if (!is.null(dimnames(v)) && runif(1) < 0.5) names(dimnames(v)) <- letters[seq_along(dim(v))]
  } else if (n > 0 && runif(1) < 0.3) names(v) <- paste0("n", seq_len(n))
  if (kind < 5 && runif(1) < 0.3) attr(v, "some thing") <- list(1L, "t", c(TRUE, FALSE), c(0.5, 2))[[sample(4, 1)]]
  v
}
make <- function(depth) {
  l <- lapply(seq_len(sample(4, 1)), function(k) if (depth && runif(1) < 0.3) make(depth - 1) else pick(sample(c(0, 1, 12, 30), 1)))
  if (runif(1) < 0.7) names(l) <- paste0("m", seq_along(l))
  if (depth == 2) l$frame <- data.frame(i = 1:4, s = c("a", "b", NA, "d"), row.names = if (runif(1) < 0.5) letters[1:4])
  l
}
"""
)


@pytest.mark.parametrize("seed", range(4))
def test_random_objects_of_r_come_back_identical(
    seed: int, tmp_path: Path, r: Callable[..., str]
) -> None:
    """Forty lists of vectors of all types and shapes, in all forms that R writes."""
    r(RANDOM % seed + """
    for (k in 1:40) {
      o <- make(2)
      how <- list("gzip", "bzip2", "xz", FALSE)[[k %% 4 + 1]]
      saveRDS(o, sprintf("%d.rds", k), compress = how, version = 2 + k %% 2)
    }""", tmp_path)  # fmt: skip
    for number in range(1, 41):
        raconvert.convert(
            tmp_path / f"{number}.rds", tmp_path / f"{number}_back.rds", verify=True,
            out_opts={"object": "list"},
        )  # fmt: skip
    found = r(SAME + """
    for (k in 1:40) {
      a <- readRDS(sprintf("%d.rds", k)); b <- readRDS(sprintf("%d_back.rds", k))
      if (!same(a, b)) { cat("differs:", k, ""); str(a); str(b) }
    }""", tmp_path)  # fmt: skip
    assert found == ""


def test_r_reads_what_is_written(tmp_path: Path, r: Callable[..., str]) -> None:
    """Every type and shape, in one run of R."""
    kinds = {"b": "logical", "i": "integer", "u": "integer", "f": "double", "c": "complex"}
    wide = {"logical": "<i4", "integer": "<i4", "double": "<f8", "complex": "<c16", "raw": "u1"}
    expected, stored = [], []
    for code, shape in product(
        ("?", "i1", "i2", "i4", "u2", "u1", "f4", "f8", "c8", "c16"),
        ((), (1,), (7,), (2, 3), (2, 3, 4), (1, 4, 1, 2), (0,), (2, 0, 3)),
    ):
        count = int(np.prod(shape))
        values = (np.arange(count) % 5) * (1 + (2j if code[0] == "c" else 0))
        array = values.astype(code).reshape(shape)
        raconvert.write(tmp_path / f"{len(expected)}.rds", array)
        kind = "raw" if code == "u1" else kinds[np.dtype(code).kind]
        dims = f" {' '.join(map(str, shape))}" if len(shape) > 1 else ""
        expected.append(f"{kind} {count} dim{dims}")
        stored.append(array.ravel(order="F").astype(wide[kind]))
    out = r(f"""for (n in 0:{len(expected) - 1}) {{
        x <- readRDS(sprintf("%d.rds", n)); cat(typeof(x), length(x), "dim", dim(x)); cat("\\n")
        values <- if (is.logical(x)) as.integer(x) else as.vector(x)
        writeBin(values, sprintf("%d.out", n)) }}""", tmp_path)  # fmt: skip
    assert out.splitlines() == expected
    for number, values in enumerate(stored):
        assert (tmp_path / f"{number}.out").read_bytes() == values.tobytes(), expected[number]


def test_labels_units_and_attributes_arrive_in_r(tmp_path: Path, r: Callable[..., str]) -> None:
    meta = Metadata(
        "made by hand", units="K", attributes={"by": "us", "n": [1, 2], "ok": True, "raw": b"\1"},
        axes=[Axis("place", labels=["here", "there"]), Axis("time", spacing=0.5)],
    )  # fmt: skip
    report = raconvert.write(tmp_path / "x.rds", np.zeros((2, 3)), meta=meta)
    assert "axis 1 'time' (spacing)" in "".join(map(str, report.equivalent))
    out = r('x <- readRDS("x.rds"); cat(rownames(x), names(dimnames(x)), attr(x, "units"), '
            'comment(x), attr(x, "by"), attr(x, "n"), attr(x, "ok"), class(attr(x, "raw")))',
            tmp_path)  # fmt: skip
    assert out == "here there place time K made by hand us 1 2 TRUE raw"
    with raconvert.open_array(tmp_path / "x.rds") as array:
        assert array.meta.units == "K"
        assert array.meta.description == "made by hand"
        assert dict(array.meta.attributes) == {"by": "us", "n": [1, 2], "ok": True, "raw": b"\1"}
        assert [axis.name for axis in array.meta.axes] == ["place", "time"]


def test_the_lines_of_r_read_the_arrays(tmp_path: Path, r: Callable[..., str]) -> None:
    """As `info --html` prints them, for every array that has some."""
    (tmp_path / "it's").mkdir()
    checked = 0
    for name, form in (("everything.rds", "rds"), ("workspace.RData", "rdata")):
        path = tmp_path / "it's" / name
        path.write_bytes((FIXTURES / name).read_bytes())
        plugin = load(by_name(form))
        code = []
        with read(path, form) as bundle:
            arrays = {one.name: np.array(one[...]) for one in bundle.values()}
            for number, array in enumerate(bundle.values()):
                found = filled(plugin.programs(array), f"it's/{name}", array.name)
                if not found:
                    assert array.name.endswith("row.names") or array.name.startswith("thing/")
                    continue
                lines = found["R"].splitlines()
                code += [*lines, f'cat({number}, length(x), is.na(x)[seq_len(min(3, length(x)))], '
                         "dim(x), '\\n')"]  # fmt: skip
        said = dict(line.split(maxsplit=1) for line in r("\n".join(code), tmp_path).splitlines())
        for number, (array_name, array) in enumerate(arrays.items()):
            if str(number) not in said:
                continue
            words = said[str(number)].split()
            assert int(words[0]) == array.size, array_name
            if array.ndim > 1:
                assert words[-array.ndim :] == [str(n) for n in array.shape]
            if array.dtype.kind == "f":
                gone = [str(bool(one)).upper() for one in np.isnan(array.ravel(order="F"))[:3]]
                assert words[1 : 1 + len(gone)] == gone
            checked += 1
    assert checked > 40


# What R does not hold -----------------------------------------------------------------------------


def test_the_smallest_int32_is_the_missing_integer_of_r(tmp_path: Path) -> None:
    array = np.array([[1, -(2**31)]], "i4")
    with pytest.raises(WouldLose, match=r"NA.*element \(0, 1\)"):
        raconvert.write(tmp_path / "x.rds", array)
    assert not (tmp_path / "x.rds").exists()
    raconvert.write(tmp_path / "x.rds", array, dtype="float64")
    assert elements(tmp_path / "x.rds").tolist() == [[1, -(2**31)]]


def test_wide_integers_are_refused_or_doubles(tmp_path: Path) -> None:
    array = np.array([2**53, -5], "i8")
    with pytest.raises(WouldLose, match="float64"):
        raconvert.write(tmp_path / "x.rds", array)
    raconvert.write(tmp_path / "x.rds", array, dtype="float64")
    assert elements(tmp_path / "x.rds").tolist() == [2.0**53, -5]
    with pytest.raises(WouldLose):
        raconvert.write(tmp_path / "y.rds", array + 1, dtype="float64")


@every("text", [["a\0b"], [b"a\0b"], ["\ud800"]])
def test_texts_that_r_has_not_are_refused(text: list[Any], tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="element"):
        raconvert.write(tmp_path / "x.rds", np.array(text))
    assert not (tmp_path / "x.rds").exists()


@every("text", ["a\0b", "\ud800"])
def test_texts_of_metadata_that_r_has_not_are_named_as_lost(text: str, tmp_path: Path) -> None:
    meta = Metadata(text, units=text, axes=[Axis("time", labels=["a", text]), Axis(text)])
    report = raconvert.write(tmp_path / "x.rds", np.ones((2, 3)), meta=meta)
    (fit,) = [fit for fit in report.equivalent if "no place" in fit.reason]
    assert all(word in fit.reason for word in ("description", "units", "labels", "name"))
    with raconvert.open_array(tmp_path / "x.rds") as array:
        assert array[...].tolist() == [[1] * 3] * 2
        assert [axis.name for axis in array.meta.axes] == ["time", None]
        assert array.meta.units is None
        assert array.meta.description is None


@every("name", ["a\0b", "x/\ud800"])
def test_names_of_groups_that_r_has_not_are_refused(name: str, tmp_path: Path) -> None:
    raconvert.write(tmp_path / "x.rds", {"a": np.arange(2.0), "b": np.arange(3.0)})
    with read(tmp_path / "x.rds") as bundle:
        bundle.groups = {name: {"k": 1}}
        with pytest.raises(WouldLose, match="group .*not valid text"):
            raconvert.write(tmp_path / "y.rds", bundle)


@every("facts", [
    {"dim": ["a", "b"]}, {"dim": [-1, -2]}, {"dim": [2.0, 1.0]}, {"class": ["a\0"]},
    {"class": ["\ud800"]}, {"names": {"a": "x\0"}}, {"names": {"a": 1}},
])  # fmt: skip
def test_recorded_facts_of_a_list_that_r_has_not_are_left_out(
    facts: dict[str, Any], tmp_path: Path
) -> None:
    raconvert.write(tmp_path / "x.rds", {"a": np.arange(2.0), "b": np.arange(3.0)})
    with read(tmp_path / "x.rds") as bundle:
        bundle.formats["rds"] = {"root": "list", "groups": {"": facts}}
        raconvert.write(tmp_path / "y.rds", bundle)
    with read(tmp_path / "y.rds") as bundle:
        assert bundle.names == ["a", "b"]
        assert bundle.formats["rds"] == {"root": "list"}


def test_times_that_are_not_exact_are_refused_or_stay_doubles(tmp_path: Path) -> None:
    with pytest.raises(WouldLose, match="exactly"):
        raconvert.write(tmp_path / "x.rds", np.array([2**60], "M8[us]"))
    raconvert.write(tmp_path / "x.rds", np.array([1234567890123456, "NaT"], "M8[us]"))
    with read(tmp_path / "x.rds") as bundle:
        assert bundle["x"][...].astype("i8").tolist() == [1234567890123456, -(2**63)]
    third = serialized(vector(14, struct.pack(">d", 1 / 3), classes=("POSIXct", "POSIXt")))
    (tmp_path / "y.rds").write_bytes(third)
    with read(tmp_path / "y.rds") as bundle:
        assert bundle["y"].dtype == ">f8"
        assert bundle["y"].meta.formats["rds"]["class"] == ["POSIXct", "POSIXt"]


def test_integer64_is_what_it_says(tmp_path: Path) -> None:
    data = struct.pack(">3q", 5, -(2**63), 2**62 + 1)
    raw = serialized(vector(14, data, 3, classes=("integer64",)))
    (tmp_path / "x.rds").write_bytes(raw)
    with read(tmp_path / "x.rds") as bundle:
        assert bundle["x"].dtype == ">i8"
        assert values(bundle, "x") == [5, -(2**63), 2**62 + 1]
        assert values(bundle, "x.NA") == [False, True, False]
    raconvert.convert(tmp_path / "x.rds", tmp_path / "y.rds", out_opts={"compress": "none"})
    assert data in (tmp_path / "y.rds").read_bytes()


def test_one_array_is_a_vector_and_several_a_list(tmp_path: Path, r: Callable[..., str]) -> None:
    raconvert.write(tmp_path / "one.rds", {"a": np.zeros(3)})
    raconvert.write(tmp_path / "list.rds", {"a": np.zeros(3)}, out_opts={"object": "list"})
    raconvert.write(tmp_path / "two.rds", {"a": np.zeros(3), "g/b": np.ones(2)})
    out = r('for (f in c("one", "list", "two")) cat(class(readRDS(paste0(f, ".rds"))), ""); '
            'cat(readRDS("two.rds")$g$b)', tmp_path)  # fmt: skip
    assert out == "numeric list list 1 1"
    with raconvert.open_bundle(tmp_path / "one.rds") as bundle:
        assert bundle.names == ["one"]
    with raconvert.open_bundle(tmp_path / "list.rds") as bundle:
        assert bundle.names == ["a"]
    raconvert.convert(tmp_path / "list.rds", tmp_path / "again.rds")
    with raconvert.open_bundle(tmp_path / "again.rds") as bundle:
        assert bundle.names == ["a"]


def test_the_name_of_one_array_is_kept_or_named(tmp_path: Path, r: Callable[..., str]) -> None:
    """`x.rds#NAME` is a list of one, since a vector has no name in R."""
    np.save(tmp_path / "a.npy", np.arange(3.0))
    raconvert.convert(tmp_path / "a.npy", f"{tmp_path / 'x.rds'}#temperature", strict=True)
    assert r('x <- readRDS("x.rds"); cat(names(x), x$temperature)', tmp_path) == (
        "temperature 0 1 2"
    )
    with raconvert.open_bundle(tmp_path / "x.rds") as bundle:
        assert bundle.names == ["temperature"]
    report = raconvert.convert(
        tmp_path / "a.npy", f"{tmp_path / 'y.rds'}#temperature", out_opts={"object": "vector"}
    )
    assert [fit.property for fit in report.equivalent] == ["names"]
    raconvert.convert(tmp_path / "a.npy", tmp_path / "z.rds", name="temperature", strict=True)
    with raconvert.open_bundle(tmp_path / "z.rds") as bundle:
        assert bundle.names == ["temperature"]
    raconvert.convert(tmp_path / "a.npy", tmp_path / "plain.rds", strict=True)
    with raconvert.open_bundle(tmp_path / "plain.rds") as bundle:
        assert bundle.names == ["plain"]


@every("packing", ["gzip", "none", "bzip2", "xz"])
def test_an_array_is_added_to_what_r_wrote(
    packing: str, tmp_path: Path, r: Callable[..., str]
) -> None:
    """R finds all else identical: functions, shared environments, factors, attributes."""
    compress = {"gzip": "TRUE", "none": "FALSE"}.get(packing, f'"{packing}"')
    r('e <- new.env(); y <- list(m = matrix(1:6, 2, dimnames = list(NULL, letters[1:3])), '
      'f = factor(c("u", "v")), run = function(x) x + 1, e1 = e, e2 = e, '
      'd = structure(c(1.5, NA), own = "é"), s = as.name("own"), z = 1:3, '
      'deep = list(own = structure(1, dim = 1L), q = quote(own + dim))); '
      f'saveRDS(y, "x.rds", compress = {compress}); saveRDS(y, "y.rds")', tmp_path)  # fmt: skip
    meta = Metadata(units="K", attributes={"own": "ours", "new": 3}, axes=[Axis(labels=list("ab"))])
    for name, replaces in (("m", True), ("new", False), ("z", True), ("new", True)):
        values = np.arange(2.0) + len(name)
        raconvert.write(tmp_path / "a.ra", values, meta=meta, overwrite=True)
        spec = f"{tmp_path / 'x.rds'}#{name}"
        if replaces:
            with pytest.raises(TargetExists):
                raconvert.convert(tmp_path / "a.ra", spec)
        raconvert.convert(tmp_path / "a.ra", spec, overwrite=replaces)
        head = (tmp_path / "x.rds").read_bytes()[:2]
        assert (
            head == {"gzip": b"\x1f\x8b", "none": b"X\n", "bzip2": b"BZ", "xz": b"\xfd7"}[packing]
        )
        out = r('x <- readRDS("x.rds"); y <- readRDS("y.rds"); o <- c("f", "d", "s", "deep", "run", '
                f'if ("{name}" != "z" && !any(names(x$z) == "a")) "z"); '
                'cat(identical(x[o], y[o]), identical(x$e1, x$e2), is.environment(x$e1), x$run(1), '
                f'attr(x${name}, "units"), attr(x${name}, "own"), x${name}, '
                'all(names(y) %in% names(x)))', tmp_path)  # fmt: skip
        assert out == f"TRUE TRUE TRUE 2 K ours {values[0]:g} {values[1]:g} TRUE"


def test_what_no_array_is_added_to(tmp_path: Path, r: Callable[..., str]) -> None:
    """What is not a plain list with names, and names that are no arrays of their own."""
    r('saveRDS(1:3, "vector.rds"); saveRDS(data.frame(a = 1:2), "frame.rds"); '
      'saveRDS(list(1, 2), "bare.rds"); saveRDS(structure(list(a = 1), own = 2), "own.rds"); '
      'e <- new.env(); saveRDS(list(a = structure(1, e = e), b = c(1L, NA), g = list(x = 1), '
      'h = structure(1, e = e), n = NULL, t = 1, t = 2), "x.rds")', tmp_path)  # fmt: skip
    np.save(tmp_path / "a.npy", np.zeros(2))
    cases = dict.fromkeys(("vector", "frame", "bare", "own"), ("new", Unsupported))
    for stem, (name, kind) in cases.items():
        with pytest.raises(kind):
            raconvert.convert(tmp_path / "a.npy", f"{tmp_path / stem}.rds#{name}", overwrite=True)
    before = (tmp_path / "x.rds").read_bytes()
    for name, kind in {"a": Unsupported, "b": TargetExists, "g": TargetExists, "g/y": Unsupported,
                       "n": TargetExists, "t": TargetExists, "b.NA": TargetExists}.items():  # fmt: skip
        with pytest.raises(kind):
            raconvert.convert(tmp_path / "a.npy", f"{tmp_path / 'x.rds'}#{name}", overwrite=True)
        assert (tmp_path / "x.rds").read_bytes() == before


def test_what_was_missing_may_be_nowhere_in_a_part(tmp_path: Path) -> None:
    """The array of missing values is found again, although none is missing."""
    raconvert.convert(FIXTURES / "everything.rds", tmp_path / "all.zip")
    with raconvert.open_bundle(tmp_path / "all.zip") as bundle:
        part = {name: bundle[name].slicer[:1] for name in ("integer", "integer.NA")}
        raconvert.write(tmp_path / "x.rds", part)
    with read(tmp_path / "x.rds") as bundle:
        assert bundle.names == ["x", "x.NA"]
        assert values(bundle, "x.NA") == [False]


def test_large_vectors_are_decoded_once_and_in_pieces(tmp_path: Path) -> None:
    names = [f"v{n}" for n in range(6)]
    held = {name: np.arange(200_000.0) + n for n, name in enumerate(names)}
    raconvert.write(tmp_path / "x.rds", held)
    with read(tmp_path / "x.rds") as bundle:
        for n, name in enumerate(names):
            assert np.array_equal(bundle[name][5:9], np.arange(5.0, 9) + n)
    raconvert.convert(tmp_path / "x.rds", tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as found:
        assert all(np.array_equal(found[name], held[name]) for name in names)
    rds = [name for name, array in held.items() if array is not None]
    assert rds == names


def test_encodings_of_version_2_are_told(tmp_path: Path) -> None:
    """Without a mark they are UTF-8, or what the option says."""
    raw = serialized(strings((9, b"caf\xe9")), version=2)
    (tmp_path / "x.rds").write_bytes(raw)
    with pytest.raises(Unsupported, match="encoding"):
        read(tmp_path / "x.rds")
    for name in ("latin-1", "ISO-8859-1", "cp1252"):
        with read(tmp_path / "x.rds", encoding=name) as bundle:
            assert values(bundle, "x") == ["café"]
    with pytest.raises(RaconvertError, match="not an encoding"):
        read(tmp_path / "x.rds", encoding="rot13")


# Hostile files ------------------------------------------------------------------------------------


def i(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def char(raw: bytes, flags: int = 0x40009) -> bytes:
    return i(flags, len(raw)) + raw


def symbol(name: str) -> bytes:
    return i(1) + char(name.encode())


def strings(*rows: tuple[int, bytes]) -> bytes:
    return i(16, len(rows)) + b"".join(char(raw, flags) for flags, raw in rows)


def pairs(*rows: tuple[str, bytes]) -> bytes:
    return b"".join(i(0x402) + symbol(name) + value for name, value in rows) + i(254)


def vector(
    kind: int, data: bytes, count: int = 1, classes: tuple[str, ...] = (), *more: tuple[str, bytes]
) -> bytes:
    rows = [*more]
    if classes:
        rows.append(("class", strings(*[(0x40009, one.encode()) for one in classes])))
    flags = kind | (0x200 if rows else 0)
    return i(flags, count) + data + (pairs(*rows) if rows else b"")


def serialized(body: bytes, version: int = 3, form: bytes = b"X\n") -> bytes:
    head = form + i(version, 0x40202, 0x30500)
    return head + (i(5) + b"UTF-8" if version == 3 else b"") + body


def altrep(name: str, state: bytes) -> bytes:
    info = i(2) + symbol(name) + i(2) + symbol("base") + i(2) + vector(13, i(13)) + i(254)
    return i(238) + info + state + i(254)


def compact(count: float, first: float, step: float) -> bytes:
    return altrep("compact_intseq", vector(14, struct.pack(">3d", count, first, step), 3))


NUL = i(254)
INT = vector(13, i(7))
HOSTILE: dict[str, tuple[bytes, type[RaconvertError], str]] = {
    "no_serialization": (b"X\n\0\0\0\3" + b"\0\4\2\2\0\3\5\0" + i(5) + b"UTF-8" + i(99), Corrupt,
                         "unknown type"),
    "version_of_the_future": (serialized(INT, version=4), Unsupported, "unknown version"),
    "encoding_of_a_gigabyte": (b"X\n" + i(3, 0, 0, 1 << 30), Corrupt, "encoding is wrong"),
    "vector_of_exabytes": (serialized(i(14, -1, 1 << 16, 0)), Corrupt, "cut off"),
    "vector_of_negative_length": (serialized(i(13, -2)), Corrupt, "length of a vector"),
    "vector_of_too_high_words": (serialized(i(13, -1, 1 << 20, 0)), Corrupt, "length of a vector"),
    "vector_that_is_cut": (serialized(i(13, 1000) + bytes(8)), Corrupt, "cut off"),
    "list_of_two_billion": (serialized(i(19, (1 << 31) - 1)), Corrupt, "cut off"),
    "list_of_many_nothings": (serialized(i(19, 300_000) + NUL * 300_000), TooLarge, "objects"),
    "strings_of_two_billion": (serialized(i(16, (1 << 31) - 1)), TooLarge, "too many strings"),
    "strings_that_are_cut": (serialized(i(16, 1 << 20)), Corrupt, "cut off"),
    "string_of_two_gigabytes": (serialized(i(16, 1, 9, (1 << 31) - 1)), TooLarge, "too long"),
    "string_of_negative_length": (serialized(i(16, 1, 9, -5)), Corrupt, "not a string"),
    "string_with_a_nul": (serialized(strings((9, b"a\0b"))), Corrupt, "NUL"),
    "string_that_is_a_number": (serialized(i(16, 1) + INT), Corrupt, "not a string"),
    "string_of_no_utf8": (serialized(strings((0x8009, b"\xff\xfe"))), Unsupported, "encoding"),
    "bytes_among_texts": (
        serialized(strings((0x2009, b"\xff"), (0x8009, "é".encode()))), Unsupported, "bytes"),
    "dims_that_do_not_fit": (
        serialized(vector(13, i(1, 2), 2, (), ("dim", vector(13, i(3, 4), 2)))), Corrupt, "dims"),
    "dims_that_are_negative": (
        serialized(vector(13, b"", 0, (), ("dim", vector(13, i(-3, 0), 2)))), Corrupt, "dims"),
    "dims_that_are_texts": (
        serialized(vector(13, i(1), 1, (), ("dim", strings((9, b"1"))))), Corrupt, "dims"),
    "dims_of_a_thousand_axes": (
        serialized(vector(13, i(1), 1, (), ("dim", vector(13, i(*[1] * 1000), 1000)))),
        Unsupported, "axes"),
    "dims_beyond_any_memory": (
        serialized(vector(13, b"", 0, (), ("dim", vector(13, i(0, *[(1 << 31) - 1] * 3), 4)))),
        Corrupt, "no array has"),
    "labels_that_are_too_few": (
        serialized(vector(13, i(1, 2), 2, (), ("names", strings((9, b"a"))))), Corrupt, "labels"),
    "logical_of_seven": (serialized(vector(10, i(7))), Corrupt, "neither TRUE"),
    "factor_beyond_its_levels": (
        serialized(vector(13, i(9), 1, ("factor",), ("levels", strings((9, b"a"))))), Corrupt,
        "level"),
    "reference_to_nothing": (serialized(i(0x20D, 1, 7, 0x402, 5 << 8 | 255) + INT + NUL), Corrupt,
                             "refers to an object"),
    "attributes_that_are_a_vector": (serialized(i(0x20D, 1, 7) + INT), Corrupt, "not a pairlist"),
    "attributes_without_end": (serialized(i(0x20D, 1, 7) + i(0x402)), Corrupt, "cut off"),
    "lists_inside_each_other": (serialized(i(19, 1) * 5000 + INT), TooLarge, "too deep"),
    "pairlists_inside_each_other": (serialized(i(2) * 5000 + INT), TooLarge, "too deep"),
    "attributes_inside_each_other": (
        serialized((i(0x20D, 1, 7, 0x402) + symbol("a")) * 3000), TooLarge, "too deep"),
    "calls_inside_each_other": (serialized(i(6) * 2_500_000), TooLarge, "parts of programs"),
    "bytecode_of_many_constants": (serialized(i(21, 1) + INT + i((1 << 31) - 1)), Corrupt,
                                   "cut off"),
    "bytecode_inside_bytecode": (serialized(i(21, 1) + (INT + i(1, 21)) * 100_000), Corrupt,
                                 "cut off"),
    "environment_alone": (serialized(i(4, 0) + NUL * 4), Unsupported, "holds no array"),
    "function_alone": (serialized(i(3) + i(253) + NUL + NUL), Unsupported, "a function"),
    "promise_alone": (serialized(i(5) + NUL + INT), Unsupported, "a promise"),
    "persistent_object": (serialized(i(247, 0, 1) + char(b"hook")), Unsupported, "persistent"),
    "sequence_of_peta": (serialized(compact(2.0**45, 1, 0)), TooLarge, "few are stored"),
    "sequence_of_halves": (serialized(compact(3, 0.5, 1)), Corrupt, "whole numbers"),
    "sequence_beyond_integers": (serialized(compact(2.0**40, 1, 1)), Corrupt, "whole numbers"),
    "sequence_of_nan": (serialized(compact(float("nan"), 1, 1)), Corrupt, "whole numbers"),
    "vector_mapped_from_another_file": (
        serialized(altrep("mmap_real", strings((9, b"/etc/passwd")))), Unsupported, "mmap_real"),
    "bomb_of_zeros": (lambda: gzip.compress(serialized(INT) + bytes(200 << 20)), Unsafe, "bomb"),
    "bomb_of_nothings": (
        lambda: gzip.compress(serialized(i(19, 1 << 30) + NUL * (4 << 20))), TooLarge, "objects"),
    "xz_that_is_cut": (lzma.compress(serialized(INT))[:-20], Corrupt, "xz data is cut off"),
    "bzip2_that_is_damaged": (bz2.compress(serialized(INT))[:40] + b"\0" * 20, Corrupt, "bzip2"),
    "gzip_without_checksum": (gzip.compress(serialized(INT))[:-4], Corrupt, "gzip"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    raw, kind, words = HOSTILE[name]
    path = tmp_path / "x.rds"
    path.write_bytes(raw() if callable(raw) else raw)
    with pytest.raises(kind, match=words):
        raconvert.convert(path, tmp_path / "x.npz", from_="rds")
    code = main([str(path), "--from", "rds", "-o", str(tmp_path / "y.npz")])
    assert code in (1, 4)
    assert os.listdir(tmp_path) == ["x.rds"]


def test_a_large_dictionary_of_xz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.rds"
    path.write_bytes(lzma.compress(serialized(INT), preset=9))
    with pytest.raises(TooLarge, match="xz"):
        load(by_name("rds")).read(Source(str(path), limits=Limits(lzma_decoder_bytes=1 << 20)))


@pytest.mark.parametrize("name", ["workspace_of_version_1", "workspace_of_nothing",
                                  "workspace_that_is_a_vector"])  # fmt: skip
def test_hostile_workspaces_are_refused(name: str, tmp_path: Path) -> None:
    raw, kind, words = {
        "workspace_of_version_1": (b"RDX1\n" + bytes(20), Unsupported, "version 1"),
        "workspace_of_nothing": (b"RDX3\n" + serialized(NUL), Corrupt, "not a list"),
        "workspace_that_is_a_vector": (b"RDX3\n" + serialized(INT), Corrupt, "not a list"),
    }[name]
    (tmp_path / "x.rda").write_bytes(raw)
    with pytest.raises(kind, match=words):
        raconvert.convert(tmp_path / "x.rda", tmp_path / "x.npz")
