"""What is special to HDF5: types, links, metadata, storage; h5py and h5dump are the oracles."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from h5py import h5a, h5d, h5o, h5s, h5t
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from raconvert.plugins import hdf5
from raconvert.plugins.hdf5.elements import _is_sparse
from raconvert.plugins.hdf5.files import system_reason

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import Element, element_of, little
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.cli import main
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, TooLarge, Unsupported, UsageError
from raconvert.files.source import Extent, Source
from raconvert.files.target import Target
from raconvert.plugin import EQUIVALENT, NO, REFUSED, SURE
from raconvert.testing import CASES, same

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hdf5"
RAMP = (7 * np.arange(60) - 100).reshape(3, 4, 5).astype("<i2")


def read(path: Path | str, **options: Any) -> Bundle:
    return hdf5.read(Source(str(path), **options))


def write(bundle: Bundle, path: Path, **options: Any) -> Path:
    with Target(str(path)) as target:
        hdf5.plan(bundle, **options).write(target)
        target.commit(sync=False)
    return path


def array_of(values: np.ndarray, name: str = "x", meta: Metadata | None = None) -> Array:
    element, dims = element_of(values.dtype), values.shape[::-1]
    return Array(element, dims, name=name, index_order="C", data=values, meta=meta)


def values_of(path: Path, name: str | None = None) -> np.ndarray:
    with read(path) as bundle:
        return as_ndarray(bundle.arrays[0] if name is None else bundle[name])


def again(path: Path, out: Path, **options: Any) -> Path:
    """Read a file and write it anew."""
    with read(path) as bundle:
        return write(bundle, out, **options)


def everything(bundle: Bundle) -> dict[str, Any]:
    """Return all that a bundle says, with the elements decoded."""
    found: dict[str, Any] = {
        "attributes": bundle.attributes,
        "groups": bundle.groups,
        "formats": bundle.formats,
        "names": bundle.names,
    }
    for array in bundle.arrays:
        meta = array.meta.to_dict()
        found[f"/{array.name}"] = (
            little(array.element),
            array.dims,
            meta,
            as_ndarray(array).tobytes(),
        )
    return found


# ------------------------------------------------------------------------------------ the corpus

# What the reference reader lists more than once: second links to an object already found.
ALIASES = {
    "gen_layouts.h5": ("/g/up/",),
    "hg_thlink.h5": ("/g1/dset2", "/g1/g1.1/dset3", "/g3/dset1"),
    "hg_tmany.h5": ("/g4/dset2",),
}
# netCDF dimensions without a variable: a length, but no data.
NO_VARIABLE = {
    "gen_packed_groups.nc": ("/nov", "/t", "/y"),
    "hj_comp_complex.h5": ("/n",),
}
# Where design and fact sheet decide otherwise than the reference reader, or it reads nothing.
REFUSED_FILES = {
    "gen_vds_missing_source.h5": (ReadFailed, "no_such_source.h5"),
    "hg_h5repack_ext.h5": (ReadFailed, "h5repack_ext.bin"),
    "hj_h5ex_d_extern.h5": (ReadFailed, "h5ex_d_extern.data"),
    "hg_tldouble.h5": (Unsupported, "floats of 80 bits"),
    "hg_tloop2.h5": (Unsupported, "holds no array"),
    "hg_tnullspace.h5": (Unsupported, "holds no array"),
    "hg_tslink.h5": (ReadFailed, "leads to nothing"),
    "hj_notahdf5file.h5": (RaconvertError, "no HDF5 signature"),
    "hj_null_space_dset.h5": (Unsupported, "holds no array"),
    "hj_vlen_dset.h5": (Unsupported, "sequences of variable length"),
    "jhdf_space_padding_problem.hdf5": (Unsupported, "holds no array"),
    "jhdf_test_userblock_latest.hdf5": (Unsupported, "holds no array"),
}
# Left out with a note, each named with its cause.
LEFT_OUT = {
    "hg_h5repack_deflate.h5": {"ref": "references"},
    "hg_tempty.h5": {"Dataset1.0": "sequences of variable length"},
    "hg_tfvalues.h5": {"fill_vlen": "sequences of variable length"},
    "hg_tref.h5": {"ZZZDataset3": "references"},
    "hg_h5diff_types.h5": {"ud_link": "user-defined link", "ext_link": "does not exist"},
    "hg_tall.h5": {"g2/udlink": "user-defined link", "g1/g1.2/extlink": "does not exist"},
}
CORPUS = [("hdf5", "*"), ("jld2", "*.jld2"), ("netcdf", "*.nc")]


def test_corpus(corpus: Callable[..., Path]) -> None:
    root = corpus("mat-hdf5")
    expected = json.loads((root / "expected.json").read_text())
    wrong, compared = [], 0
    for folder, pattern in CORPUS:
        for path in sorted((root / folder).glob(pattern)):
            if path.name in REFUSED_FILES:
                continue
            facts = expected[f"{folder}/{path.name}"]
            with read(path) as bundle:
                got = {f"/{array.name}": array for array in bundle.arrays}
                for name, fact in facts.items():
                    if "sha256_C_LE" not in fact or _is_explained(path.name, name):
                        continue
                    compared += 1
                    array = got.get(name)
                    if array is None or not _agrees(array, fact):
                        wrong.append(f"{path.name} {name}: {array}")
    assert not wrong
    assert compared > 180


def _is_explained(file: str, name: str) -> bool:
    known = ALIASES.get(file, ()) + NO_VARIABLE.get(file, ())
    return name.startswith(tuple(known)) if known else False


def _agrees(array: Array, fact: dict[str, Any]) -> bool:
    values = as_ndarray(array)
    digest = hashlib.sha256(values.tobytes()).hexdigest()[:16]
    return list(values.shape) == fact["shape"] and digest == fact["sha256_C_LE"]


@pytest.mark.parametrize("name", REFUSED_FILES)
def test_corpus_refusals(corpus: Callable[..., Path], name: str) -> None:
    kind, words = REFUSED_FILES[name]
    with pytest.raises(kind, match=words) as caught:
        read(corpus("mat-hdf5", "hdf5", name))
    assert name in str(caught.value)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_corpus_notes(corpus: Callable[..., Path], name: str) -> None:
    with read(corpus("mat-hdf5", "hdf5", name)) as bundle:
        for path, cause in LEFT_OUT[name].items():
            assert any(note.startswith(f"'{path}'") and cause in note for note in bundle.notes)


def test_corpus_comes_back(corpus: Callable[..., Path], tmp_path: Path) -> None:
    """Read, written and read again, every file of the corpus says the same; also compressed."""
    compared = 0
    for folder, pattern in CORPUS:
        for path in sorted(corpus("mat-hdf5", folder).glob(pattern)):
            if path.name in REFUSED_FILES:
                continue
            for number, options in enumerate(({}, {"compress": "gzip:1"})):
                out = again(path, tmp_path / f"{path.name}.{number}.h5", **options)
                with read(path) as first, read(out) as second:
                    was, now = everything(first), everything(second)
                for space in (was, now):  # links are in the order in which a walk comes to them
                    space["formats"].get("hdf5", {}).get("links", []).sort(key=str)
                assert now == was, path.name
                compared += 1
    assert compared > 140


def test_fixtures_of_other_tools() -> None:
    for path in sorted(FIXTURES.glob("h5*.h5")):
        with read(path) as bundle:
            assert bundle.names == ["group/ramp"], path.name
            assert np.array_equal(as_ndarray(bundle.arrays[0]), RAMP), path.name
            layout = bundle.arrays[0].storage["layout"]
        with h5py.File(path) as file:
            plain = file["group/ramp"].chunks is None
        assert (layout == "chunked") != plain
    octave = FIXTURES / "octave.h5"
    complex_ = np.array([[1 + 2j, 5], [3 - 4j, 6j]])
    assert np.array_equal(values_of(octave, "complex_double/value"), complex_)
    ramp = (np.arange(24) / 8).reshape(4, 3, 2)
    assert np.array_equal(values_of(octave, "ramp/value"), ramp)
    assert values_of(octave, "ramp/type").tobytes() == b"matrix\0"


# ----------------------------------------------------------------------------------------- types


def make(path: Path, **datasets: Any) -> Path:
    """Write datasets with h5py, each by its own function of (file, name)."""
    with h5py.File(path, "w") as file:
        for name, maker in datasets.items():
            maker(file, name)
    return path


def raw_dataset(
    file: h5py.File, name: str, tid: h5t.TypeID, values: np.ndarray, shape: tuple[int, ...]
) -> None:
    """Write bytes as they are into a dataset of any type."""
    dataset = h5d.create(file.id, name.encode(), tid, h5s.create_simple(shape))
    dataset.write(h5s.ALL, h5s.ALL, values, tid)


@pytest.mark.parametrize(
    ("names", "offsets", "size"),
    [
        (("r", "i"), (0, 4), 8),
        (("real", "imag"), (0, 4), 8),
        (("RE", "IM"), (0, 4), 8),
        (("i", "r"), (0, 4), 8),
        (("real", "imag"), (0, 8), 16),
        (("imag", "real"), (4, 12), 20),
    ],
)
def test_complex_in_every_spelling(
    tmp_path: Path, names: tuple[str, str], offsets: tuple[int, int], size: int
) -> None:
    numbers = np.array([1 + 2j, complex(-0.0, np.nan), complex(np.inf, -3)], "c8")
    part = {"r": numbers.real, "i": numbers.imag}
    tid = h5t.create(h5t.COMPOUND, size)
    buffer = np.full((3, size), 0xEE, np.uint8)
    for name, offset in zip(names, offsets, strict=True):
        tid.insert(name.encode(), offset, h5t.IEEE_F32LE)
        values = part["r" if name.lower() in ("r", "re", "real") else "i"]
        buffer[:, offset : offset + 4] = values.copy().view(np.uint8).reshape(3, 4)
    path = make(tmp_path / "x.h5", x=lambda f, n: raw_dataset(f, n, tid, buffer, (3,)))
    with read(path) as bundle:
        assert bundle.arrays[0].element == Element("complex", 8, "<")
        assert as_ndarray(bundle.arrays[0]).tobytes() == numbers.tobytes()
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        back = file["x"].id.get_type()
        assert {back.get_member_name(0).decode(), back.get_member_name(1).decode()} == set(names)
    assert values_of(out).tobytes() == numbers.tobytes()


def test_pairs_that_are_no_complex_numbers(tmp_path: Path) -> None:
    """Of half floats or integers, or of other names: structures, since numpy has no such type."""
    for number, fields in enumerate(
        ([("r", "<f2"), ("i", "<f2")], [("re", "<i4"), ("im", "<i4")], [("x", "<f4"), ("y", "<f4")])
    ):
        values = np.ones(3, fields)
        path = make(tmp_path / f"{number}.h5", x=lambda f, n, v=values: f.create_dataset(n, data=v))
        assert values_of(path).dtype == values.dtype


def test_native_complex_of_hdf5_2(tmp_path: Path) -> None:
    if not hasattr(h5t, "COMPLEX_IEEE_F32BE"):
        pytest.skip("this HDF5 library has no complex numbers of its own")
    values = np.array([1 + 2j, 3 - 4j], ">c8")
    path = make(
        tmp_path / "x.h5",
        x=lambda f, n: raw_dataset(f, n, h5t.COMPLEX_IEEE_F32BE, values.view("u1"), (2,)),
    )
    assert np.array_equal(values_of(path), values)
    with h5py.File(again(path, tmp_path / "y.h5")) as file:
        assert file["x"].id.get_type().get_class() == h5t.COMPOUND  # which older tools can open


def test_bools_that_are_neither_0_nor_1(tmp_path: Path) -> None:
    """They do not become True without a word; as integers they are kept, with the enum."""
    raw = np.array([0, 1, 2, 255, 0], "u1")
    tid = h5t.py_create(np.dtype("?"), logical=True)

    def half_bools(file: h5py.File, name: str) -> None:
        values = np.zeros(3, [("n", "<i4"), ("b", "?")])
        dataset = file.create_dataset(name, data=values)
        buffer = values.copy().view(np.uint8).reshape(3, -1)
        buffer[:, 4] = [0, 7, 1]
        dataset.id.write(h5s.ALL, h5s.ALL, buffer, dataset.id.get_type())

    path = make(
        tmp_path / "x.h5",
        plain=lambda f, n: raw_dataset(f, n, tid, raw, (5,)),
        structure=half_bools,
    )
    with read(path) as bundle:
        for name in ("plain", "structure"):
            with pytest.raises(Corrupt, match="neither FALSE") as caught:
                as_ndarray(bundle[name])
            assert '"bools": "integers"' in str(caught.value)
            with pytest.raises(Corrupt, match="neither FALSE"):
                bundle[name].data[...]
    with hdf5.read(Source(str(path)), bools="integers") as bundle:
        assert bundle["plain"].element == Element("int", 1, "|")
        assert as_ndarray(bundle["plain"]).view("u1").tolist() == [0, 1, 2, 255, 0]
        assert as_ndarray(bundle["structure"])["b"].tolist() == [0, 7, 1]
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(path) as file, h5py.File(out) as other:
        assert file["plain"].id.get_type() == other["plain"].id.get_type()
        assert other["plain"][()].tobytes() == file["plain"][()].tobytes() == raw.tobytes()


def test_bools_of_attributes_that_are_neither_0_nor_1(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", data=[1])
        tid = h5t.py_create(np.dtype("?"), logical=True)
        aid = h5a.create(x.id, b"flags", tid, h5s.create_simple((3,)))
        aid.write(np.array([0, 1, 2], "u1"), mtype=tid)
    with read(tmp_path / "x.h5") as bundle:
        assert bundle["x"].meta.attributes == {"flags": [0, 1, 2]}


def test_the_bool_enum_of_the_review(corpus: Callable[..., Path]) -> None:
    path = corpus("review", "wrong", "gen_bool_enum_value2.h5")
    with read(path) as bundle, pytest.raises(Corrupt, match="neither FALSE"):
        as_ndarray(bundle["be2"])
    with h5py.File(path) as file, hdf5.read(Source(str(path)), bools="integers") as bundle:
        for name in ("be2", "inverted", "lower"):
            assert as_ndarray(bundle[name]).tobytes() == file[name][()].tobytes()


def test_enum_keeps_its_names(tmp_path: Path) -> None:
    kind = h5py.enum_dtype({"RED": 0, "GREEN": 5, "false": -1}, basetype=">i2")
    path = make(
        tmp_path / "x.h5", x=lambda f, n: f.create_dataset(n, data=np.array([5, 0, -1]), dtype=kind)
    )
    with read(path) as bundle:
        assert bundle.arrays[0].element == Element("int", 2, ">")
        assert bundle.arrays[0].extent is not None
        kept = bundle.arrays[0].meta.formats["hdf5"]["type"]
        assert kept["names"] == {"RED": 0, "GREEN": 5, "false": -1}
    with h5py.File(again(path, tmp_path / "y.h5")) as file:
        assert h5py.check_enum_dtype(file["x"].dtype) == {"RED": 0, "GREEN": 5, "false": -1}
        assert file["x"][()].tolist() == [5, 0, -1]


def test_bfloat16_is_a_float_to_every_tool(tmp_path: Path, tool: Callable[..., str]) -> None:
    bits = np.array([0x3FC0, 0xC000, 0x7F80, 0x0001], "<u2")
    array = Array(Element("bfloat", 2, "<"), (4,), name="x", index_order="C", data=bits)
    pytest.importorskip("ml_dtypes")
    path = write(Bundle([array.replace(data=bits.view(array.dtype))]), tmp_path / "x.h5")
    text = subprocess.run([tool("h5dump"), path], capture_output=True, text=True, check=True).stdout
    assert "1.5, -2, inf, 9.1" in text
    with read(path) as bundle:
        assert bundle.arrays[0].element == array.element
        assert as_ndarray(bundle.arrays[0]).view("u2").tolist() == bits.tolist()
    with h5py.File(path) as file:
        assert file["x"][:3].tolist() == [1.5, -2, np.inf]


def test_odd_widths_are_read_by_value(tmp_path: Path) -> None:
    small = h5t.STD_I32LE.copy()
    small.set_precision(24)
    small.set_size(3)
    numbers = np.array([1, -2, 70000, -8388608], "<i4")

    def maker(file: h5py.File, name: str) -> None:
        dataset = h5d.create(file.id, name.encode(), small, h5s.create_simple((4,)))
        dataset.write(h5s.ALL, h5s.ALL, numbers)

    path = make(tmp_path / "x.h5", x=maker)
    with read(path) as bundle:
        assert as_ndarray(bundle.arrays[0]).tolist() == numbers.tolist()
        assert bundle.arrays[0].extent is None
        assert "24 bits" in bundle.notes[0]


def test_strings_keep_every_byte(tmp_path: Path) -> None:
    """Charset and NULs inside survive, and the padding, which is not part of a string."""
    for number, (padding, raw, text, again) in enumerate(
        [
            (h5t.STR_NULLTERM, b"ab\0zcd\0\0", b"ab\0\0cd\0\0", b"ab\0\0cd\0\0"),
            (h5t.STR_NULLPAD, b"a\0\0\0\0b c", b"a\0\0\0\0b c", b"a\0\0\0\0b c"),
            (h5t.STR_SPACEPAD, b"a   b c ", b"a\0\0\0b c\0", b"a   b c "),
        ]
    ):
        tid = h5t.C_S1.copy()
        tid.set_size(4)
        tid.set_strpad(padding)
        tid.set_cset(h5t.CSET_UTF8)
        values = np.frombuffer(raw, "u1").copy()
        path = make(
            tmp_path / f"{number}.h5", x=lambda f, n, t=tid, v=values: raw_dataset(f, n, t, v, (2,))
        )
        with read(path) as bundle:
            assert bundle.arrays[0].element == Element("user", 4, "|", "|S4")
            assert as_ndarray(bundle.arrays[0]).tobytes() == text
            out = write(bundle, tmp_path / f"{number}-out.h5")
        with h5py.File(out) as file:
            assert file["x"].id.get_type() == tid
            stored = np.zeros(2, "V4")
            file["x"].id.read(h5s.ALL, h5s.ALL, stored, tid)
            assert stored.tobytes() == again
        assert values_of(out).tobytes() == text


TEXTS = ["", "a", "日本é", "x" * 1000, "tab\t"]


@pytest.mark.parametrize("charset", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    "options", [{}, {"chunks": (2, 2)}, {"chunks": (3, 1), "compression": "gzip"}]
)
def test_variable_strings(tmp_path: Path, charset: str, options: dict[str, Any]) -> None:
    texts = np.array(
        ["", "a", "b" * 30, "c", "dd", "e"] if charset == "ascii" else [*TEXTS, "z"], object
    )
    path = make(
        tmp_path / "x.h5",
        x=lambda f, n: f.create_dataset(
            n, data=texts.reshape(3, 2), dtype=h5py.string_dtype(charset), **options
        ),
    )
    widest = max(len(text.encode()) for text in texts)
    with read(path) as bundle:
        array = bundle.arrays[0]
        assert array.element == Element("user", widest, "|", f"|S{widest}")
        got = b"".join(block.tobytes() for block in blocks(array, 64))
        assert got == b"".join(text.encode().ljust(widest, b"\0") for text in texts)
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        back = file["x"]
        assert h5py.check_string_dtype(back.dtype) == (charset, None)
        assert back.asstr("utf-8")[()].reshape(-1).tolist() == texts.tolist()


def test_variable_strings_never_written(tmp_path: Path) -> None:
    path = make(
        tmp_path / "x.h5",
        nothing=lambda f, n: f.create_dataset(n, (5,), h5py.string_dtype()),
        fill=lambda f, n: f.create_dataset(n, (5,), h5py.string_dtype(), fillvalue="missing"),
        scalar=lambda f, n: f.create_dataset(n, data="text", dtype=h5py.string_dtype()),
        none=lambda f, n: f.create_dataset(n, (0, 3), h5py.string_dtype()),
    )
    with read(path) as bundle:
        assert as_ndarray(bundle["nothing"]).tolist() == [b""] * 5
        assert as_ndarray(bundle["fill"]).tolist() == [b"missing"] * 5
        assert as_ndarray(bundle["scalar"]).item() == b"text"
        assert bundle["none"].shape == (0, 3)


def test_single_strings_keep_their_width(tmp_path: Path) -> None:
    """One of NumPy's bytes is no array: it takes no index, and drops its padding."""
    path = make(
        tmp_path / "x.h5",
        variable=lambda f, n: f.create_dataset(n, data="text"),
        padded=lambda f, n: f.create_dataset(n, data=np.array(b"ab", "S5")),
        empty=lambda f, n: f.create_dataset(n, data=np.array(b"", "S3")),
        pair=lambda f, n: f.create_dataset(n, data=np.array((1, b"x"), "i4,S2")),
        row=lambda f, n: f.create_dataset(n, data=["a", "bcd"]),
    )
    expected = {
        "variable": np.array(b"text"),
        "padded": np.array(b"ab", "S5"),
        "empty": np.array(b"", "S3"),
        "pair": np.array((1, b"x"), "i4,S2"),
    }
    with read(path) as bundle:
        for name, values in expected.items():
            array = bundle[name]
            for got in (np.asarray(array), array[...], array[()], array.data[()]):
                assert (got.dtype, got.shape, got.tobytes()) == (
                    values.dtype, (), values.tobytes(),
                )  # fmt: skip
        assert bundle["row"][0] == b"a"
        assert bundle["row"][1:].tolist() == [b"bcd"]


def test_strings_that_cannot_be_variable_any_more(tmp_path: Path) -> None:
    meta = Metadata(
        formats={"hdf5": {"type": {"class": "string", "padding": "nullterm", "charset": "utf-8"}}}
    )
    bundle = Bundle([array_of(np.array([b"a\0b", b"c"]), meta=meta)])
    with pytest.raises(Unsupported, match='"strings": "fixed"'):
        write(bundle, tmp_path / "x.h5")
    assert not list(tmp_path.iterdir())
    path = write(bundle, tmp_path / "x.h5", strings="fixed")
    assert values_of(path).tolist() == [b"a\0b", b"c"]


def test_opaque_and_bitfields_keep_tag_and_class(tmp_path: Path) -> None:
    tagged = h5t.create(h5t.OPAQUE, 3)
    tagged.set_tag(b"three bytes")
    raw = np.arange(6, dtype="u1")
    path = make(
        tmp_path / "x.h5",
        tagged=lambda f, n: raw_dataset(f, n, tagged, raw, (2,)),
        bits=lambda f, n: raw_dataset(f, n, h5t.STD_B16BE, raw, (3,)),
        plain=lambda f, n: f.create_dataset(n, data=np.void(b"abcde")),
        dates=lambda f, n: f.create_dataset(
            n, data=np.array(["2001-02-03", "NaT"], "M8[D]").astype(h5py.opaque_dtype("M8[D]"))
        ),
    )
    with read(path) as bundle:
        assert bundle["tagged"].element == Element("user", 3, "|", "|V3")
        assert as_ndarray(bundle["bits"]).tolist() == [0x0001, 0x0203, 0x0405]
        assert bundle["dates"].element.descr == "<M8[D]"
        assert bundle["plain"].element.descr == "|V5"
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        assert file["tagged"].id.get_type().get_tag() == b"three bytes"
        assert file["bits"].id.get_type() == h5t.STD_B16LE
        assert file["plain"][()].tobytes() == b"abcde"
        assert file["dates"][()].astype(str).tolist() == ["2001-02-03", "NaT"]


def test_text_becomes_utf8_and_comes_back(tmp_path: Path, tool: Callable[..., str]) -> None:
    texts = np.array(["", "a", "日本é", "nul\0in", "\ud800x", "\U0001f600"], "<U6").reshape(2, 3)
    for values in (texts, texts.astype(">U6")):
        array = array_of(values)
        (fit,) = hdf5.plan(Bundle([array])).fits
        assert (fit.outcome, fit.property) == (EQUIVALENT, "type")
        path = write(Bundle([array]), tmp_path / f"{values.dtype.byteorder == '>'}.h5")
        with read(path) as bundle:
            back = bundle.arrays[0]
            assert back.element.descr == values.dtype.str
            assert as_ndarray(back).tobytes() == values.tobytes()
            assert back[1, 0] == values[1, 0]
            assert back[0, 1:].tolist() == values[0, 1:].tolist()
            assert back.extent is None
    with h5py.File(path) as file:
        assert file["x"][0, 2].decode() == "日本é"
    shown = subprocess.run(
        [tool("h5dump"), "-r", "-d", "/x", path], capture_output=True, text=True, check=True
    ).stdout
    assert "CSET H5T_CSET_UTF8" in shown
    assert '"a\\000' in shown


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9), min_size=1)
)
def test_any_text(texts: list[str]) -> None:
    values = np.array(texts, f"<U{max(1, *map(len, texts), 1)}")
    from raconvert.arrays.reinterpret import decoded, encoded

    packed = encoded(values)
    assert packed.dtype.itemsize == values.dtype.itemsize
    assert decoded(packed, values.dtype).tobytes() == values.tobytes()
    first = packed.reshape(-1)[0].rstrip(b"\0")
    assert first == values.reshape(-1)[0].encode().rstrip(b"\0")


# --------------------------------------------------------------------------- shapes and storage


def test_layouts_slices_and_blocks(tmp_path: Path) -> None:
    """Every layout, read whole, in blocks of all sizes, and in regions."""
    values = np.random.default_rng(1).integers(-9, 9, (13, 7, 5)).astype(">i4")
    makers: dict[str, dict[str, Any]] = {
        "contiguous": {},
        "plain": {"chunks": (4, 3, 5)},
        "gzip": {"chunks": (4, 3, 2), "compression": "gzip"},
        "shuffled": {"chunks": (13, 2, 5), "compression": 9, "shuffle": True},
        "checked": {"chunks": (4, 3, 2), "fletcher32": True, "compression": 1},
        "lzf": {"chunks": (5, 7, 5), "compression": "lzf"},
    }
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, options in makers.items():
            file.create_dataset(name, data=values, **options)
        sparse = file.create_dataset("sparse", values.shape, ">i4", chunks=(4, 3, 2), fillvalue=7)
        sparse[4:8, 3:6, 2:4] = 1
    expected = dict.fromkeys(makers, values)
    expected["sparse"] = np.full(values.shape, 7)
    expected["sparse"][4:8, 3:6, 2:4] = 1
    keys: list[Any] = [..., 0, -1, (0, 0, 0), np.s_[2:11, 1:6, 1:4], np.s_[::-2, ::3], np.s_[:, 2], np.s_[5:5],
                       np.s_[..., 3], np.s_[1, ..., 2:4]]  # fmt: skip
    with read(tmp_path / "x.h5") as bundle:
        for name, whole in expected.items():
            array = bundle[name]
            assert np.array_equal(as_ndarray(array), whole), name
            for size in (4, 30, 140, 700, 1 << 20):
                parts = [block.reshape(-1).copy() for block in blocks(array, size)]
                assert max(part.nbytes for part in parts) <= size
                assert np.array_equal(np.concatenate(parts), whole.reshape(-1)), (name, size)
            for key in keys:
                assert np.array_equal(array[key], whole[key]), (name, key)
        with pytest.raises(IndexError):
            bundle["gzip"].data[0, 0, 0, 0]


def test_chunks_are_decoded_past_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(4000, dtype="<f8").reshape(40, 100)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, options in {
            "gzip": {"compression": 1},
            "both": {"compression": 1, "shuffle": True},
            "plain": {},
        }.items():
            file.create_dataset(name, data=values, chunks=(7, 30), **options)
    from raconvert.plugins.hdf5.values import Dataset

    monkeypatch.setattr(Dataset, "_read", None)
    with read(tmp_path / "x.h5") as bundle:
        for array in bundle.arrays:
            assert np.array_equal(as_ndarray(array), values)


def test_skipped_filters_of_single_chunks(tmp_path: Path) -> None:
    """A filter mask says which filters one chunk went without."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (8,), "<i4", chunks=(4,), compression=1, shuffle=True)
        dataset[:4] = [1, 2, 3, 4]
        dataset.id.write_direct_chunk((4,), np.arange(4, dtype="<i4").tobytes(), filter_mask=3)
    assert values_of(tmp_path / "x.h5").tolist() == [1, 2, 3, 4, 0, 1, 2, 3]


def test_shapes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["scalar"] = np.float32(2.5)
        file["none"] = np.zeros((0, 3), "i2")
        raw_dataset(
            file, "array", h5t.array_create(h5t.IEEE_F32LE, (4,)), np.ones(24, "<f4"), (2, 3)
        )
        file["empty"] = h5py.Empty("f8")
        file["empty"].attrs["why"] = "nothing here"
        file.create_dataset("deep", data=np.ones((1,) * 32, "u1"))
    with read(tmp_path / "x.h5") as bundle:
        assert sorted(bundle.names) == ["array", "deep", "none", "scalar"]
        assert bundle["scalar"].shape == ()
        assert bundle["none"].shape == (0, 3)
        assert bundle["array"].shape == (2, 3, 4)
        assert as_ndarray(bundle["array"]).sum() == 24
        assert bundle["array"][1, :, 2].tolist() == [1, 1, 1]
        assert "'empty' is empty" in " ".join(bundle.notes)
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        assert file["empty"].shape is None
        assert file["empty"].attrs["why"] == "nothing here"
        assert file["array"].id.get_type().get_class() == h5t.ARRAY
    too_deep = Array(
        Element("uint", 1, "|"), (1,) * 33, name="x", index_order="C", data=np.ones(1, "u1")
    )
    (fit,) = hdf5.plan(Bundle([too_deep])).fits
    assert (fit.outcome, fit.property, fit.flag) == (REFUSED, "shape", None)


def test_extents_only_where_bytes_are_as_they_are(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file["number"] = np.arange(5, dtype=">f8")
        file["complex"] = np.arange(5, dtype="c8")
        file["structure"] = np.zeros(3, [("a", "<i4"), ("b", ">f8")])
        file["bool"] = np.array([True])
        file["text"] = np.array(["a"], h5py.string_dtype())
        file.create_dataset("chunked", data=np.arange(5), chunks=(2,))
        file.create_dataset("unwritten", (5,), "i4")
    with read(tmp_path / "x.h5") as bundle:
        whole = (tmp_path / "x.h5").read_bytes()
        for name in ("number", "complex", "structure"):
            extent = bundle[name].extent
            assert extent is not None
            data = whole[extent.offset : extent.offset + extent.nbytes]
            with h5py.File(tmp_path / "x.h5") as file:
                assert data == file[name][()].tobytes()
        for name in ("bool", "text", "chunked", "unwritten"):
            assert bundle[name].extent is None, name


@pytest.mark.parametrize("size", [512, 1024, 4096])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_nothing_written_behind_a_user_block(size: int, libver: str, tmp_path: Path) -> None:
    """The library says that such data begins at the last byte of the user block."""
    kinds: dict[str, Any] = {
        "number": ((90, 80), "f8", 7),
        "text": ((), h5py.string_dtype(), None),
        "texts": ((3,), h5py.string_dtype(), None),
        "fixed": ((5, 90), "S9", None),
        "structure": ((400,), [("a", "i4"), ("b", h5py.string_dtype())], None),
    }
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=size, libver=libver) as file:
        for name, (shape, dtype, fill) in kinds.items():
            file.create_dataset(name, shape, dtype, fillvalue=fill)
    with h5py.File(tmp_path / "x.h5", "r") as file, read(tmp_path / "x.h5") as bundle:
        for array in bundle.arrays:
            want, got = file[array.name][()], as_ndarray(array)
            assert got.shape == np.shape(want)
            assert got.tolist() == (want.tolist() if got.shape else np.array(want).tolist())


def test_storage_is_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(100), chunks=(30,), maxshape=(None,), compression=5,
                            shuffle=True, fillvalue=-1)  # fmt: skip
        stored = file["x"].id.get_storage_size()
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.arrays[0].storage == {
            "layout": "chunked",
            "stored_bytes": stored,
            "chunks": [30],
            "filters": ["shuffle", "deflate 5"],
            "maxshape": [None],
            "fillvalue": -1,
        }


# ------------------------------------------------------------------------------ links and groups


def test_links_are_followed_once_and_written_again(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["deep/inside"] = np.arange(3)
        other["deep/soft"] = h5py.SoftLink("/deep/inside")
        other["back"] = h5py.ExternalLink("x.h5", "/group/data")
    with h5py.File(tmp_path / "x.h5", "w", track_order=True) as file:
        file["soft"] = h5py.SoftLink("group/data")
        file["group/data"] = np.arange(5)
        file["hard"] = file["group/data"]
        file["group/up"] = file["/"]
        file["dangling"] = h5py.SoftLink("/no/where")
        file["outside"] = h5py.ExternalLink("other.h5", "/deep")
        file["through"] = h5py.SoftLink("/outside/inside")
        file["home"] = h5py.ExternalLink("other.h5", "/back")
        file["circle"] = h5py.SoftLink("/circle")
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.names == ["group/data", "outside/inside"]
        links = {link[0]: link[1:] for link in bundle.formats["hdf5"]["links"]}
        assert links["soft"] == ["soft", "group/data"]
        assert links["hard"] == ["hard", "group/data"]
        assert links["group/up"] == ["hard", ""]
        assert links["dangling"] == ["soft", "/no/where"]
        assert links["home"] == ["hard", "group/data"]
        assert links["outside/soft"] == ["soft", "/deep/inside"]
        assert links["through"] == ["soft", "/outside/inside"]
        assert "circle" in links
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        assert file["hard"] == file["group/data"] == file["group/up/soft"]
        assert file.get("dangling", getlink=True).path == "/no/where"
        assert file["through"][()].tolist() == [0, 1, 2]


@pytest.fixture
def linked(tmp_path: Path) -> str:
    """Return a file with two arrays, and further names for them."""
    with h5py.File(tmp_path / "x.h5", "w", track_order=True) as file:
        group = file.create_group("a", track_order=True)
        group["x"], group["y"] = np.arange(3), np.arange(4)
        file["b/y"] = group["x"]
        file["soft"] = h5py.SoftLink("/a/x")
        file["twice"] = h5py.SoftLink("soft")
        file["group"] = h5py.SoftLink("a")
        group["up"] = file["/"]
        file["dangling"] = h5py.SoftLink("/nope")
        file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
        file["rough"] = h5py.SoftLink("ragged")
    return str(tmp_path / "x.h5")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("soft", ["a/x"]),
        ("/soft", ["a/x"]),
        ("twice", ["a/x"]),
        ("b/y", ["a/x"]),
        ("b", ["a/x"]),
        ("group", ["a/x", "a/y"]),
        ("group/y", ["a/y"]),
        ("group/up/group/up/soft", ["a/x"]),
        ("a", ["a/x", "a/y"]),
        ("a/up", ["a/x", "a/y"]),
    ],
)
def test_arrays_have_all_their_names(linked: str, name: str, expected: list[str]) -> None:
    with open_bundle(f"{linked}#{name}") as bundle:
        assert bundle.names == expected
    with open_bundle(linked, arrays=[name]) as bundle:
        assert bundle.names == expected


def test_aliases_in_globs(linked: str) -> None:
    with open_bundle(linked, arrays=["b/*"]) as bundle:
        assert bundle.names == ["a/x"]
    with open_bundle(linked, arrays=["so*"]) as bundle:
        assert bundle.names == ["a/x"]


def test_aliases_of_the_corpus(corpus: Callable[..., Path]) -> None:
    path = corpus("mat-hdf5") / "hdf5" / "hg_thlink.h5"
    with h5py.File(path) as file:
        values = file["g1/dset2"][()]
    with open_bundle(f"{path}#g1/dset2") as bundle:
        assert as_ndarray(bundle.arrays[0]).tolist() == values.tolist()


def test_aliases_are_noted(linked: str) -> None:
    with read(linked) as bundle:
        assert bundle.names == ["a/x", "a/y"]
        assert [note for note in bundle.notes if "another name" in note] == [
            "'a/up' is another name of '/'",
            "'b/y' is another name of 'a/x'",
            "'soft' is another name of 'a/x'",
            "'twice' is another name of 'a/x'",
            "'group' is another name of 'a'",
            "'rough' is another name of 'ragged'",
        ]
    with h5py.File(linked, "a") as file:
        for number in range(20):
            file[f"more{number}"] = h5py.SoftLink("soft")
    with read(linked) as bundle:
        assert len([note for note in bundle.notes if "another name" in note]) == 5
        assert "21 more links are other names of objects of this file" in bundle.notes


def test_aliases_of_names_that_no_link_can_have(tmp_path: Path) -> None:
    path = write(Bundle([array_of(np.arange(2), "a//b"), array_of(np.arange(3), "c")]),
                 tmp_path / "x.h5")  # fmt: skip
    with h5py.File(path, "a") as file:
        found: list[str] = []
        file.visit(found.append)
        (place,) = (name for name in found if getattr(file[name], "shape", None) == (2,))
        file["soft"] = h5py.SoftLink(place)
    with open_bundle(f"{path}#soft") as bundle:
        assert bundle.names == ["a//b"]


def test_aliases_without_the_links_of_a_file_are_written(tmp_path: Path) -> None:
    arrays = [array_of(np.arange(n), name) for n, name in enumerate(("g/x", "h", "a//b"), 1)]
    aliases = {"second": "g/x", "new/y": "h", "g/early": "h", "whole": "g", "up": "", "odd": "a//b"}
    path = write(Bundle(arrays, aliases=aliases, groups={"e": {}}), tmp_path / "x.h5")
    with h5py.File(path) as file:
        assert file["second"] == file["g/x"]
        assert file["new/y"] == file["g/early"] == file["h"]
        assert file["whole"] == file["g"]
        assert file["up"] == file["/"]
        assert file["odd"][()].tolist() == [0, 1, 2]
        links = [file.get(name, getlink=True) for name in ("second", "new/y", "whole", "up")]
        assert all(isinstance(link, h5py.HardLink) for link in links)
    with read(path) as bundle:
        assert bundle.names == ["g/x", "h", "a//b"]
        assert bundle.aliases == aliases


def test_a_scale_does_not_take_the_place_of_an_alias(tmp_path: Path) -> None:
    meta = Metadata(axes=[Axis(name="t", labels=["a", "b"])][::-1])
    bundle = Bundle([array_of(np.arange(2), "x", meta)], aliases={"x.t": "x"})
    with h5py.File(write(bundle, tmp_path / "x.h5")) as file:
        assert file["x.t"] == file["x"]


def test_aliases_that_no_link_can_be_are_told(tmp_path: Path) -> None:
    arrays = [array_of(np.arange(2), "x"), array_of(np.arange(3), "g/y")]
    aliases = {"x": "g/y", "g": "x", "x/z": "x", "a//b": "x", "gone": "nothing", "fine": "x"}
    bundle = Bundle(arrays, aliases=aliases)
    (fit,) = hdf5.plan(bundle).fits
    assert (fit.array, fit.property, fit.outcome) == ("", "metadata", EQUIVALENT)
    assert "'x' of 'g/y', 'g' of 'x', 'x/z' of 'x', 'a//b' of 'x', 'gone' of" in fit.reason
    with read(write(bundle, tmp_path / "x.h5")) as found:
        assert found.aliases == {"fine": "x"}


def test_aliases_beside_a_namespace_that_was_edited(tmp_path: Path) -> None:
    space = {"dimensions": 3, "empty": ["e"], "links": {"l": 1}}
    bundle = Bundle([array_of(np.arange(2), "x")], formats={"hdf5": space}, aliases={"y": "x"})
    assert hdf5.plan(bundle).fits == []
    with read(write(bundle, tmp_path / "x.h5")) as found:
        assert found.aliases == {"y": "x"}


def test_a_bundle_that_lost_the_namespace_of_hdf5_keeps_its_aliases(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/a"] = np.arange(6)
        file["b"], file["h"] = file["g/a"], file["g"]
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.aliases
        assert hdf5.plan(bundle).fits == []
        bundle.formats = {}
        assert hdf5.plan(bundle).fits == []
        write(bundle, tmp_path / "y.h5")
    assert main(["diff", str(tmp_path / "x.h5"), str(tmp_path / "y.h5")]) == 0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ragged", "'ragged' was left out: its elements are sequences of variable length"),
        ("rough", "'ragged' was left out: its elements are sequences of variable length"),
        ("dangling", "'dangling' was left out: link leads to nothing: 'nope' does not exist"),
    ],
)
def test_what_was_left_out_says_why_when_it_is_asked_for(linked: str, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"has no array '{name}': .*{why}"):
        open_bundle(f"{linked}#{name}")
    with pytest.raises(UsageError) as caught:
        open_bundle(f"{linked}#nope")  # what a note mentions by the way
    assert caught.value.what == "has no array 'nope'"


def test_formats_tells_the_version_of_h5py(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "hdf5"]) == 0
    assert f"built in (h5py {h5py.__version__})" in capsys.readouterr().out


def test_groups_and_order(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", track_order=True) as file:
        file.create_group("z", track_order=True)
        for name in ("z/b", "z/a", "y", "x/deep/one"):
            file[name] = np.arange(2)
        file.create_group("empty/inner")
        file["z"].attrs["note"] = "of a group"
    with read(tmp_path / "x.h5") as bundle:
        assert bundle.names == ["z/b", "z/a", "y", "x/deep/one"]
        assert bundle.groups == {"z": {"note": "of a group"}, "empty/inner": {}}
        mixed = bundle.like([bundle[name] for name in ("z/a", "y", "z/b", "x/deep/one")])
        out = write(mixed, tmp_path / "y.h5")
    with read(out) as bundle:
        assert bundle.names == ["z/a", "y", "z/b", "x/deep/one"]  # though z/a and z/b lie together
        assert bundle.groups == {"z": {"note": "of a group"}, "empty/inner": {}}
        assert not bundle.attributes


@pytest.mark.parametrize(
    "names",
    [
        ["a", "a/b"],
        ["/lead", "trail/", "a//b"],
        [".", "..", "./x"],
        ["nul\0", "\ud800"],
        ["", "data"],
        ["x" * 70_000],
    ],
)
def test_names_that_no_link_can_have(tmp_path: Path, names: list[str]) -> None:
    bundle = Bundle([array_of(np.arange(n + 1), name) for n, name in enumerate(names)])
    fits = hdf5.plan(bundle).fits
    assert {fit.outcome for fit in fits} <= {EQUIVALENT}
    assert {fit.property for fit in fits} <= {"names"}
    with read(write(bundle, tmp_path / "x.h5")) as back:
        assert back.names == names
        assert [array.dims[0] for array in back.arrays] == [n + 1 for n in range(len(names))]


def test_an_array_without_a_name_is_called_data(tmp_path: Path) -> None:
    path = write(Bundle([array_of(np.arange(3), "")]), tmp_path / "x.h5")
    with h5py.File(path) as file:
        assert list(file) == ["data"]


# -------------------------------------------------------------------------------------- metadata


def test_attributes_keep_value_and_type(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {
        "int": 5,
        "f4": np.float32(0.1),
        "u1": np.array([1, 2], "u1"),
        "big": np.array([[1.5]], ">f8"),
        "bool": True,
        "bools": np.array([True, False]),
        "text": "日本",
        "texts": ["a", "bc"],
        "fixed": np.bytes_(b"abc"),
        "spaces": np.array([b"a", b"bcd"]),
        "complex": 1 + 2j,
        "nan": np.nan,
        "void": np.void(b"\0\1"),
        "structure": np.array((1, b"x", [1, 2]), [("n", "i2"), ("s", "S3"), ("a", "u1", (2,))]),
        "none": h5py.Empty("f4"),
        "zero": np.zeros((0, 2), "i4"),
        "enum": np.array(3, h5py.enum_dtype({"THREE": 3}, "i2")),
        "raconvert": "a word of somebody else",
    }
    with h5py.File(tmp_path / "x.h5", "w", track_order=True) as file:
        file["x"] = np.arange(3)
        for holder in (file, file["x"], file.create_group("g", track_order=True)):
            for name, value in attributes.items():
                holder.attrs[name] = value
    with read(tmp_path / "x.h5") as bundle:
        found = bundle.arrays[0].meta.attributes
        assert list(bundle.attributes) == list(attributes)
        assert found["complex"] == [1.0, 2.0]
        assert found["structure"] == {"n": 1, "s": "x", "a": [1, 2]}
        assert found["none"] is None
        assert found["u1"] == [1, 2]
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(tmp_path / "x.h5") as old, h5py.File(out) as new:
        for path in ("/", "x", "g"):
            for name in attributes:
                was = h5py.h5a.open(old[path].id, name.encode())
                now = h5py.h5a.open(new[path].id, name.encode())
                if name == "raconvert":
                    continue
                assert now.get_type() == was.get_type(), (path, name)
                assert now.shape == was.shape
                assert repr(new[path].attrs[name]) == repr(old[path].attrs[name]), (path, name)
    with read(out) as back, read(tmp_path / "x.h5") as first:
        for bundle in (back, first):  # the one that goes into our own attribute comes last
            attributes = dict(bundle.arrays[0].meta.attributes)
            for values in (bundle.attributes, bundle.groups["g"], attributes):
                assert values.pop("raconvert") == "a word of somebody else"
            bundle.arrays[0].meta = bundle.arrays[0].meta.replace(attributes=attributes)
        assert repr(everything(back)) == repr(everything(first))


def test_whatever_no_attribute_can_be_is_kept_as_json(tmp_path: Path) -> None:
    values = {
        "mixed": [1, "two", None, [3.5]],
        "mapping": {"a": {"b": [True]}},
        "nothing": None,
        "huge": 1 << 80,
        "bytes": b"",
        "ragged": [[1], [2, 3]],
        "empty": [],
        "name\0with": "nul",
        "": "nameless",
        "CLASS": "IMAGE",
        "DIMENSION_LIST": "mine",
        "units": 5,
        "long_name": "a longer one",
        "bad \ud800": "text \ud800",
    }
    meta = Metadata(
        description="described",
        units="m/s²",
        attributes=values,
        axes=[
            Axis(name="t", kind="time", units="s", spacing=0.1, origin=-1.0),
            Axis(labels=["a", 2]),
        ][::-1],
        formats={"elsewhere": {"raw": b"\0\xff", "deep": {"x": [1.5, None]}}},
    )
    bundle = Bundle(
        [array_of(np.zeros((2, 3)), meta=meta)],
        attributes={**values, "units": "kept as it is"},
        groups={"g": dict(values), "not a//link": {"k": 1}},
        formats={"other": {"k": [1, b"2"]}},
    )
    assert not hdf5.plan(bundle).fits
    with read(write(bundle, tmp_path / "x.h5")) as back:
        assert back.names == ["x"]
        assert back.attributes == bundle.attributes
        assert back.groups == bundle.groups
        assert back.formats == {"other": {"k": [1, b"2"]}}
        got = back.arrays[0].meta.to_dict()
        assert got == meta.to_dict()


def test_long_name_is_the_description_and_no_other_attribute_is(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in ("both", "about"):
            file[name] = np.arange(3)
            file[name].attrs["description"] = "what it is"
            file[name].attrs["units"] = np.bytes_(b"mm")
        file["both"].attrs["long_name"] = "a name"
    with read(tmp_path / "x.h5") as bundle:
        about, both = (bundle[name].meta for name in ("about", "both"))
        assert (about.description, about.units) == (None, "mm")
        assert both.description == "a name"
        assert about.attributes == both.attributes == {"description": "what it is"}
        out = write(bundle, tmp_path / "y.h5")
    with h5py.File(out) as file:
        assert dict(file["about"].attrs) == {"description": "what it is", "units": b"mm"}
        assert dict(file["both"].attrs) == {**dict(file["about"].attrs), "long_name": "a name"}


def test_scales_become_axes_and_scales_again(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["lat"] = np.array([-45.0, 0.5, 30.0])
        file["lat"].attrs["units"] = "degrees"
        file["time"] = np.arange(10, 18, 2)
        file["site"] = np.array([b"a", b"bc"])
        file["data"] = np.zeros((4, 3, 2, 5))
        for name in ("lat", "time", "site"):
            file[name].make_scale(name.title())
        for axis, name in enumerate(("time", "lat", "site")):
            file["data"].dims[axis].attach_scale(file[name])
        file["data"].dims[0].label = "when"
        file["data"].dims[3].label = "channel"
    with read(tmp_path / "x.h5") as bundle:
        axes = [axis.to_dict() for axis in bundle["data"].ra_axes]
        assert axes == [
            {"name": "channel"},
            {"name": "site", "labels": ["a", "bc"]},
            {"name": "lat", "units": "degrees", "labels": [-45.0, 0.5, 30.0]},
            {"name": "when", "spacing": 2.0, "origin": 10.0},
        ]
        out = write(bundle, tmp_path / "y.h5")
        # Some arrays only: what the scales said must not be lost with them.
        alone = write(bundle.like([bundle["data"]]), tmp_path / "alone.h5")
        # The axes in another order: each goes with its own scale.
        moved = bundle["data"].replace(
            dims=(4, 5, 3, 2),
            extent=None,
            data=np.zeros((2, 3, 5, 4)),
        )
        moved.axes = [bundle["data"].ra_axes[i] for i in (3, 0, 2, 1)][::-1]
        others = [bundle[name] for name in ("lat", "time", "site")]
        turned = write(bundle.like([moved, *others]), tmp_path / "turned.h5")
        assert everything(bundle)["/data"] == everything(read(out))["/data"]
    with h5py.File(out) as file:
        assert "raconvert" not in file["data"].attrs
        assert file["lat"].attrs["NAME"] == b"Lat"
        assert [list(dim.keys()) for dim in file["data"].dims] == [["Time"], ["Lat"], ["Site"], []]
        assert [dim.label for dim in file["data"].dims] == ["when", "", "", "channel"]
    with read(alone) as bundle:
        assert bundle.names == ["data"]
        assert [axis.to_dict() for axis in bundle.arrays[0].ra_axes] == axes
    with h5py.File(turned) as file:
        assert [list(dim.keys()) for dim in file["data"].dims] == [["Site"], ["Lat"], [], ["Time"]]


def test_axes_make_scales_for_other_programs(tmp_path: Path) -> None:
    axes = [
        Axis(name="x", units="mm", spacing=0.5, origin=-1.0, kind="space"),
        Axis(name="site", labels=["a", "b", "é"]),
        Axis(name="only a name"),
        Axis(),
    ]
    values = np.arange(24.0).reshape(1, 2, 3, 4)
    path = write(Bundle([array_of(values, "g/v", Metadata(axes=axes[::-1]))]), tmp_path / "x.h5")
    with h5py.File(path) as file:
        dims = file["g/v"].dims
        assert dims[3][0][()].tolist() == [-1.0, -0.5, 0.0, 0.5]
        assert dims[3][0].attrs["units"] == "mm"
        assert dims[2][0].asstr()[()].tolist() == ["a", "b", "é"]
        assert dims[1].label == "only a name"
    with read(path) as bundle:
        assert bundle.names == ["g/v"]
        assert [a.to_dict() for a in bundle.arrays[0].ra_axes] == [a.to_dict() for a in axes]


def test_netcdf_dimensions_and_packing(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("mat-hdf5", "netcdf", "gen_packed_groups.nc")
    with read(path) as bundle:
        packed = bundle["packed"]
        assert packed.element.kind == "int"  # nothing is applied
        assert {"scale_factor", "add_offset", "_FillValue"} <= set(packed.meta.attributes)
        assert [axis.name for axis in packed.ra_axes[::-1]][1] == "y"
        dimensions = bundle.formats["hdf5"]["dimensions"]
        assert {"nov", "t", "y"} == set(dimensions)
        out = write(bundle, tmp_path / "out.h5")
    with h5py.File(path) as old, h5py.File(out) as new:
        for dataset in ("packed", "st", "g/z"):
            was = [list(dim.keys()) for dim in old[dataset].dims]
            assert [list(dim.keys()) for dim in new[dataset].dims] == was
        assert new["nov"].is_scale
        assert new["nov"].attrs["NAME"] == old["nov"].attrs["NAME"]


def test_jld2_lists_axes_as_julia_does(tmp_path: Path) -> None:
    """No real file with these could be had: the layout is that of JLD2's source."""
    with h5py.File(tmp_path / "x.jld2", "w", userblock_size=512) as file:
        file["matrix"] = np.arange(6.0).reshape(3, 2)  # reshape(0:5, 2, 3) in Julia
        raw_dataset(file, "flags", h5t.STD_B8LE, np.array([0, 1], "u1"), (2,))
        file["z"] = np.array([1 + 2j], [("re_", "f8"), ("im_", "f8")][0][1] and "c16")
        file["_types/00000001"] = np.dtype([("a", "i4")])
    text = b"HDF5-based Julia Data Format, version 0.2.0\0"
    data = bytearray((tmp_path / "x.jld2").read_bytes())
    data[: len(text)] = text
    (tmp_path / "x.jld2").write_bytes(data)
    assert hdf5.sniff(Source(str(tmp_path / "x.jld2"))) == SURE
    with read(tmp_path / "x.jld2") as bundle:
        matrix = bundle["matrix"]
        assert (matrix.index_order, matrix.shape, matrix.dims) == ("F", (2, 3), (2, 3))
        assert np.asarray(matrix).tolist() == [[0, 2, 4], [1, 3, 5]]
        assert bundle["flags"].element.kind == "bool"
        assert as_ndarray(bundle["flags"]).tolist() == [False, True]
        assert not any("_types" in note for note in bundle.notes)


# --------------------------------------------------------------------------------------- writing


def test_no_times_and_a_low_superblock(tmp_path: Path) -> None:
    array = array_of(np.arange(3), "g/x", Metadata(attributes={"a": 1, "b": "c"}))
    path = write(Bundle([array], groups={"h": {"k": "v"}}), tmp_path / "x.h5")
    with h5py.File(path) as file:
        assert file.id.get_create_plist().get_version()[0] == 0
        for name in ("/", "g", "h", "g/x"):
            info = h5o.get_info(file[name].id)
            assert (info.ctime, info.mtime) == (0, 0) if hasattr(info, "ctime") else True
            flags = _header_flags(path.read_bytes(), info.addr)
            assert not flags & 0x20, name  # the bit for times in a header of version 2
    again_path = write(Bundle([array], groups={"h": {"k": "v"}}), tmp_path / "y.h5")
    assert path.read_bytes() == again_path.read_bytes()


def _header_flags(data: bytes, address: int) -> int:
    return data[address + 5] if data[address : address + 4] == b"OHDR" else 0


@pytest.mark.parametrize("case", [name for name in CASES if name.endswith(("-5x6x3-C", "-0d-C"))])
def test_clients_read_every_type(case: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    """h5dump 1.10 exports the very bytes; what it cannot export it can at least describe."""
    values = CASES[case].values
    path = write(Bundle([array_of(values)]), tmp_path / "x.h5")
    header = subprocess.run(
        [tool("h5dump"), "-H", path], capture_output=True, text=True, check=True
    )
    assert 'DATASET "x"' in header.stdout
    plain = little(element_of(values.dtype))
    if plain.kind in ("user", "complex", "bool", "bfloat") or (
        values.dtype.itemsize == 2 and values.dtype.kind == "f"
    ):
        return  # -b exports native numbers only, and no half floats
    out = tmp_path / "x.bin"
    command = [tool("h5dump"), "-d", "/x", "-b", "LE", "-o", out, path]
    subprocess.run(command, capture_output=True, check=True)
    assert out.read_bytes() == values.astype(values.dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize("options", [{}, {"compress": "gzip:6"}, {"compress": "gzip", "shuffle": False},
                                     {"chunks": "3,2,2"}, {"compress": "gzip:9", "chunks": "2,6,3"}])  # fmt: skip
def test_h5diff_finds_no_difference(
    options: dict[str, Any], tmp_path: Path, tool: Callable[..., str]
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, case in CASES.items():
            dtype = case.values.dtype
            if name.endswith("-5x6x3-C") and dtype.kind in "iufcb" and dtype.str[1:] != "f2":
                file[name] = case.values.astype(dtype.newbyteorder("<"))
        file["structure"] = np.zeros((5, 6, 3), [("a", "<i4"), ("c", "<c8"), ("s", "S3")])
        file["structure"].attrs["text"] = "word"
    out = again(tmp_path / "x.h5", tmp_path / "y.h5", **options)
    done = subprocess.run(
        [tool("h5diff"), tmp_path / "x.h5", out], capture_output=True, text=True, check=False
    )
    # NaN bits differ from themselves for h5diff only without --use-system-epsilon: none is reported.
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("compress", ["none", "gzip", "gzip:0", "gzip:9", "lzf"])
@pytest.mark.parametrize("chunks", ["auto", "5,3", "1,1", "100,100"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_chunked_writing(tmp_path: Path, compress: str, chunks: str, shuffle: bool) -> None:
    values = np.random.default_rng(2).integers(0, 50, (17, 10)).astype("<i4")
    flags = values % 3 == 0
    bundle = Bundle(
        [
            array_of(values, "v"),
            array_of(flags, "f"),
            array_of(np.float64(2), "s"),
            array_of(np.zeros((0, 4)), "n"),
        ]
    )
    path = write(bundle, tmp_path / "x.h5", compress=compress, chunks=chunks, shuffle=shuffle)
    with h5py.File(path) as file:
        assert np.array_equal(file["v"], values)
        assert np.array_equal(file["f"], flags)
        assert file["f"].dtype == bool
        assert file["s"][()] == 2
        assert file["n"].shape == (0, 4)
        assert file["v"].compression == {"n": None, "g": "gzip", "l": "lzf"}[compress[0]]
        assert file["v"].shuffle == (shuffle and compress != "none")
        if chunks == "5,3":
            assert file["v"].chunks == (5, 3)
        assert (file["v"].chunks is None) == (chunks == "auto" and compress == "none")
    with read(path) as back:
        assert np.array_equal(as_ndarray(back["v"]), values)


@pytest.mark.parametrize(
    "options",
    [{"compress": "zip"}, {"compress": "gzip:10"}, {"compress": "lzf:3"}, {"compress": "gzip:x"}, {"chunks": "a"},
     {"chunks": "0,1"}, {"chunks": "none", "compress": "gzip"}, {"chunks": ""}],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, str], tmp_path: Path) -> None:
    bundle = Bundle([array_of(np.arange(3))])
    with pytest.raises(UsageError):
        hdf5.plan(bundle, **options)
    with pytest.raises(UsageError), Target(str(tmp_path / "x.h5")) as target:
        hdf5.plan(bundle, **options).write(target)
    assert not list(tmp_path.iterdir())


def test_chunks_of_another_rank_are_refused() -> None:
    (fit,) = hdf5.plan(Bundle([array_of(np.zeros((2, 3)))]), chunks="4").fits
    assert (fit.outcome, fit.property) == (REFUSED, "storage")


def test_structures_with_too_many_fields_are_refused(tmp_path: Path) -> None:
    many = np.zeros(2, [(f"field{n:05}", "i1") for n in range(4000)])
    (fit,) = hdf5.plan(Bundle([array_of(many)])).fits
    assert (fit.outcome, fit.property) == (REFUSED, "type")
    some = np.zeros(2, [(f"f{n}", "i1") for n in range(500)])
    assert not hdf5.plan(Bundle([array_of(some)])).fits
    assert values_of(write(Bundle([array_of(some)]), tmp_path / "x.h5")).dtype == some.dtype


def test_remembered_types_are_dropped_when_they_fit_no_more(tmp_path: Path) -> None:
    """A namespace is only a memory: the array decides."""
    odd: list[Any] = [
        {"class": "enum", "base": "<i2", "names": {"A": 1}},
        {"class": "string", "size": 7, "padding": "nullpad", "charset": "ascii"},
        {"class": "array", "dims": [9], "base": "<f8"},
        {"class": "compound", "size": 1 << 40, "members": []},
        {"class": "unknown"},
        {"class": "string", "padding": "nullterm", "charset": "utf-8"},
        "<i4",
        ["list"],
        5,
    ]
    for number, description in enumerate(odd):
        space = {
            "type": description, "fillvalue": "x", "scale": 5, "attributes": 3, "dimensions": [1], "description": [],
        }  # fmt: skip
        meta = Metadata(attributes={"k": 1}, axes=[Axis(name="a")][::-1], formats={"hdf5": space})
        bundle = Bundle([array_of(np.arange(3.0), meta=meta)], formats={"hdf5": {
            "links": [["a"], 3, ["x", "soft", "y"], ["q/r", "hard", "x"], ["l", "hard", "nowhere"]],
            "empty": {"x": {}, "e": 5, "f": {"type": "bad"}}, "dimensions": {"d": {"type": "<f4"}}, "groups": 5,
            "attributes": [],
        }})  # fmt: skip
        assert not hdf5.plan(bundle).fits
        with read(write(bundle, tmp_path / f"{number}.h5")) as back:
            assert back.names == ["x"]
            assert as_ndarray(back.arrays[0]).tolist() == [0, 1, 2]
            assert back.arrays[0].meta.attributes == {"k": 1}


@given(
    hnp.arrays(
        st.one_of(
            hnp.integer_dtypes(endianness="<"), hnp.floating_dtypes(endianness="<", sizes=(16, 32, 64)),
            hnp.complex_number_dtypes(endianness="<", sizes=(64, 128)), hnp.boolean_dtypes(), hnp.byte_string_dtypes(min_len=1),
        ),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6),
    ),
    st.sampled_from([{}, {"compress": "gzip:1"}, {"compress": "lzf"}]),
)  # fmt: skip
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, options: dict[str, str]
) -> None:
    path = write(Bundle([array_of(values)]), tmp_path_factory.mktemp("h5") / "x.h5", **options)
    got = values_of(path)
    assert same(values, got)
    with h5py.File(path) as file:
        theirs = file["x"][()]
    assert np.asarray(theirs).tobytes() == values.tobytes() or values.dtype.kind == "S"


def test_hdf5plugin_decodes_what_the_library_cannot(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    values = np.arange(1000, dtype="<f4").reshape(10, 100)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(3, 50), **hdf5plugin.Zstd())
    assert np.array_equal(values_of(tmp_path / "x.h5"), values)


ABSENT = """
import sys
sys.modules["hdf5plugin"] = None
from raconvert.plugins import hdf5
from raconvert.arrays.blocks import as_ndarray
from raconvert.errors import MissingDependency
from raconvert.files.source import Source
with hdf5.read(Source(sys.argv[1])) as bundle:
    print(bundle.names, bundle["packed"].shape, bundle["packed"].storage["filters"])
    print(as_ndarray(bundle["plain"]).tolist() if "plain" in bundle else "")
    try:
        as_ndarray(bundle["packed"])
    except MissingDependency as error:
        print(error)
"""


@pytest.mark.parametrize("beside", [True, False])
def test_a_missing_filter_is_named(tmp_path: Path, beside: bool) -> None:
    """Shape and attributes are known without it; only the data is not, and the others are."""
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        # Not Blosc: it cannot write in a process that imported netCDF4 (another libhdf5) before it.
        file.create_dataset("packed", data=np.arange(100), chunks=(50,), **hdf5plugin.Zstd())
        if beside:
            file["plain"] = [1, 2]
    environment = {k: v for k, v in os.environ.items() if k != "HDF5_PLUGIN_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, tmp_path / "x.h5"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "(100,)" in done.stdout
    assert "filter 32015 (zstd)" in done.stdout
    assert "raconvert[filters]" in done.stdout
    assert ("[1, 2]" in done.stdout) == beside


# -------------------------------------------------------------------------------------- sniffing


def test_sniff(corpus: Callable[..., Path], tmp_path: Path) -> None:
    for place in (0, 512, 1024, 2048):
        path = tmp_path / f"{place}.bin"
        with h5py.File(path, "w", userblock_size=place) as file:
            file["x"] = 1
        assert hdf5.sniff(Source(str(path))) == SURE
    for path in sorted(corpus("mat-hdf5", "mat73").glob("*.mat")):
        assert hdf5.sniff(Source(str(path))) == NO
    assert hdf5.sniff(Source(str(corpus("detect", "netcdf_classic.nc")))) == NO
    assert hdf5.sniff(Source(str(corpus("detect", "plain_hdf5_no_extension")))) == SURE


# ------------------------------------------------------------------------------ types with axes


def test_array_types_of_what_the_library_converts(tmp_path: Path) -> None:
    """Their elements reach memory in a type of its own, which needs the axes as well."""
    odd = h5t.STD_I32LE.copy()
    odd.set_precision(31)
    text = h5t.py_create(h5py.string_dtype(), logical=True)
    names = np.array([["a", "bc"], ["", "d"], ["eee", "é"]], dtype=object)
    numbers = np.arange(-6, 6, dtype="<i4").reshape(3, 4)
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for name, inner, memory, values in (
            ("names", text, h5t.py_create(h5py.string_dtype()), names),
            ("numbers", odd, h5t.NATIVE_INT32, numbers),
        ):
            dims = values.shape[1:]
            tid = h5t.array_create(inner, dims)
            dataset = h5d.create(file.id, name.encode(), tid, h5s.create_simple((3,)))
            dataset.write(h5s.ALL, h5s.ALL, values, mtype=h5t.array_create(memory, dims))
            one = h5py.h5a.create(dataset, b"one", tid, h5s.create(h5s.SCALAR))
            one.write(values[2].copy(), mtype=h5t.array_create(memory, dims))
    for place in (path, again(path, tmp_path / "y.h5")):
        with read(place) as bundle:
            texts = [value.decode() for value in as_ndarray(bundle["names"]).reshape(-1)]
            assert texts == names.reshape(-1).tolist()
            assert bundle["names"].shape == (3, 2)
            assert bundle["names"].meta.attributes["one"] == ["eee", "é"]
            assert np.array_equal(as_ndarray(bundle["numbers"]), numbers)
            assert bundle["numbers"].meta.attributes["one"] == [2, 3, 4, 5]
    with h5py.File(tmp_path / "y.h5") as file:
        assert file["names"].asstr()[()].tolist() == names.tolist()


def test_tags_of_opaque_elements_survive_formats_without_types(tmp_path: Path) -> None:
    """An .ra knows the width of such elements alone."""
    tid = h5t.create(h5t.OPAQUE, 3)
    tid.set_tag(b"a tag")
    raw = np.frombuffer(b"abcdefghijkl", "V3").copy()
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, kind, shape in (("x", tid, (4,)), ("y", h5t.array_create(tid, (2,)), (2,))):
            dataset = h5d.create(file.id, name.encode(), kind, h5s.create_simple(shape))
            dataset.write(h5s.ALL, h5s.ALL, raw, mtype=kind)
    first, bundle, second = (str(tmp_path / name) for name in ("1.h5", "b.zip", "2.h5"))
    assert main(["-q", str(tmp_path / "x.h5"), "-o", first]) == 0
    assert main(["-q", first, "-o", bundle]) == 0
    assert main(["-q", bundle, "-o", second]) == 0
    assert Path(first).read_bytes() == Path(second).read_bytes()
    with h5py.File(second) as file:
        assert file["x"].id.get_type().get_tag() == b"a tag"
        assert file["y"].id.get_type() == h5t.array_create(tid, (2,))


def test_chunks_of_array_types(tmp_path: Path) -> None:
    """The axes of a type are never cut."""
    values = np.arange(24, dtype="<i2").reshape(4, 2, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (4,), np.dtype(("<i2", (2, 3))))[...] = values
    out = again(tmp_path / "x.h5", tmp_path / "y.h5", chunks="3,1,2")
    with h5py.File(out) as file:
        assert file["x"].chunks == (3,)
        assert np.array_equal(file["x"][()], values)


@pytest.mark.parametrize("compress", ["none", "gzip:1", "lzf"])
@pytest.mark.parametrize("chunks", ["1,1,1000", "1,2,999", "1,1,1", "2,3,400"])
def test_rows_of_chunks_larger_than_a_slab(chunks: str, compress: str, tmp_path: Path) -> None:
    """Where chunks have length 1 along an axis, memory holds no more than a row of the next."""
    length = 300 if chunks == "1,1,1" else 200_000
    values = (np.arange(2 * 3 * length) % 251).astype("u1").reshape(2, 3, length)
    array, path = array_of(values), tmp_path / "x.h5"
    options = {"chunks": chunks, "compress": compress}
    with Target(str(path), max_memory=1 << 20) as target:
        if chunks == "2,3,400":
            with pytest.raises(TooLarge, match="a row of its chunks needs 2400000 bytes"):
                hdf5.plan(Bundle([array]), **options).write(target)
            return
        hdf5.plan(Bundle([array]), **options).write(target)
        target.commit(sync=False)
    with h5py.File(path) as file:
        assert file["x"].chunks == tuple(map(int, chunks.split(",")))
        assert np.array_equal(file["x"][()], values)


# ---------------------------------------------------------------------- systems, and full disks


def test_chunks_are_read_by_threads_without_pread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(3).integers(0, 99, (512, 512))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(32, 32), compression="gzip")
    monkeypatch.delattr(os, "pread")
    with read(tmp_path / "x.h5") as bundle:
        assert bundle["x"].data.chunks is not None
        for _ in range(5):
            assert as_ndarray(bundle["x"]).tobytes() == values.tobytes()


def test_a_file_is_not_sparse_where_the_system_does_not_tell_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extent = Extent("x", 0, 100)
    for told, expected in (({}, False), ({"st_blocks": 0}, True), ({"st_blocks": 1}, False)):
        status = SimpleNamespace(st_size=100, **told)
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", lambda _, status=status: status)
            assert _is_sparse(extent) is expected


LIMITED = """
import resource, sys
import numpy as np
from raconvert.cli import main
np.save("x.npy", np.random.default_rng(0).standard_normal(100_000))
sys.dont_write_bytecode = True  # it would be cut too
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(["x.npy", "-o", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("limit", [10, 1000, 3000, 200_000])
@pytest.mark.parametrize(
    "options",
    [
        ["y.h5"],
        ["y.h5", "--out-opt", "compress=gzip"],
        ["y.h5", "--out-opt", "compress=lzf"],
        ["y.mat", "--out-opt", "version=7.3", "--out-opt", "compress=none"],
        ["y.mat", "--out-opt", "version=7.3", "--out-opt", "compress=3"],
    ],
    ids=" ".join,
)
def test_a_limit_of_the_file_size_is_told_by_its_reason(
    tmp_path: Path, options: list[str], limit: int
) -> None:
    """The library fails again when it closes what it could not write, and crashes at the end."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *options],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"raconvert: '{options[0]}': cannot be written: File too large",
        "  the destination is as it was before",
    ]
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("Can't close (file write failed, errno = 28, error = '...')"),
         "No space left on device"),
        (OSError(28, "Can't write data (file write failed)"), "No space left on device"),
        (OSError("Can't write data (no filter)"), "Can't write data (no filter)"),
        (KeyError("Unable to synchronously open object (no object)"), "no object"),
    ],
)  # fmt: skip
def test_the_reason_of_the_system_is_told(error: Exception, reason: str) -> None:
    assert system_reason(error) == reason


def test_many_attributes_of_several_arrays_are_each_their_own(tmp_path: Path) -> None:
    """In dense storage earlier versions stay in the file; those of other arrays look the same."""
    path, random = tmp_path / "x.h5", np.random.default_rng(5)
    with h5py.File(path, "w", libver="v108") as file:
        for name, length in (("x", 2), ("y", 2), ("z", 2)):
            file[name] = np.arange(float(length))
            file[name].make_scale(name)
        for name, dims in (("c", "xy"), ("b", "yz"), ("a", "zx")):
            made = file.create_dataset(name, data=np.zeros((2, 2)))
            for number in range(150 if name == "b" else 12):
                texts = ["a" * int(random.integers(1, 900)), f"{name} {number}"]
                made.attrs[f"a{number}"] = texts if number % 2 else np.arange(number)
            for axis, dim in enumerate(dims):  # a version of DIMENSION_LIST for each
                made.dims[axis].attach_scale(file[dim])
            made.attrs["large"] = np.arange(3000.0)
            made.attrs["a3"] = f"{name} again"
    with read(path) as bundle, h5py.File(path) as file:
        for name, dims in (("c", "xy"), ("b", "yz"), ("a", "zx")):
            assert [axis.name for axis in bundle[name].meta.axes] == list(dims)
            found, wanted = bundle[name].meta.attributes, dict(file[name].attrs)
            del wanted["DIMENSION_LIST"]
            assert list(found) == list(wanted)
            assert all(found[key] == np.asarray(one).tolist() for key, one in wanted.items())
