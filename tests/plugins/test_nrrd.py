"""Reading NRRD: the corpus, files of other tools, every form that a header can have, metadata."""

from __future__ import annotations

import bz2
import csv
import ctypes
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from raconvert.plugins import nrrd
from raconvert.plugins.nrrd.fields import FIELDS, BadValue, parsed
from raconvert.plugins.nrrd.header import FIRST_READ, Header, Pattern, lowest_version, read_header

from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray, blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.metadata import Space
from raconvert.errors import Corrupt, RaconvertError, ReadFailed, Unsafe, Unsupported
from raconvert.files.source import Source
from raconvert.plugin import NO, SURE

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "nrrd"


def read(path: Path | str, *, trust: bool = False, **options: Any) -> Bundle:
    """Read with the plugin."""
    return nrrd.read(Source(str(path), trust_external=trust), **options)


def only(path: Path | str, **options: Any) -> Array:
    """Return the one array of a file."""
    (array,) = read(path, **options).arrays
    return array


def ramp(shape: tuple[int, ...], dtype: str, step: int = 1) -> np.ndarray:
    """Return 0, step, 2 step, ... in C order, modulo the range of the type."""
    return (np.arange(np.prod(shape)) * step).astype(dtype).reshape(shape)


def file_of(
    path: Path,
    data: bytes,
    *lines: str,
    type: str = "short",
    sizes: str = "2 3 4",
    encoding: str = "raw",
    magic: str = "NRRD0004",
) -> Path:
    """Write a NRRD file: required fields, then `lines`, then an empty line and the data."""
    fields = [f"type: {type}", f"dimension: {len(sizes.split())}", f"sizes: {sizes}"]
    header = "\n".join([magic, *fields, "endian: little", f"encoding: {encoding}", *lines, "", ""])
    path.write_bytes(header.encode("utf-8", "surrogateescape") + data)
    return path


def refuse(path: Path, error: type[RaconvertError], *words: str) -> str:
    """Assert that a file is refused, by this error, with these words."""
    with pytest.raises(error) as caught:
        as_ndarray(only(path))
    message = str(caught.value)
    for word in (str(path.parent), *words):
        assert word in message
    return message


# --- the corpus -----------------------------------------------------------------------------------

# Every file of the corpus that must be refused: the error, and what its message says.
CORPUS_REFUSED: dict[str, tuple[type[RaconvertError], str]] = {
    "ascii_short.nrrd": (Corrupt, "data is cut off, at byte 66"),
    "bomb_sizes.nrrd": (Corrupt, "data is cut off"),
    "dim17.nrrd": (Corrupt, "field 'dimension' has a wrong value, at line 3"),
    "dup_field.nrrd": (Corrupt, "field 'sizes' is repeated (its values differ), at line 6"),
    "fmt_zero_step.nhdr": (Corrupt, "a step that leads from MIN to MAX"),
    "gz_is_raw.nrrd": (Corrupt, "data is not encoded by gzip"),
    "gz_trunc.nrrd": (Corrupt, "gzip: deflated data is cut off"),
    "huge_raw.nrrd": (Corrupt, "data is cut off"),
    "list_short.nhdr": (Corrupt, "number of data files"),
    "no_endian.nrrd": (Corrupt, "header lacks the field 'endian'"),
    "noblank.nrrd": (Corrupt, "no empty line ends it"),
    "order.nrrd": (Corrupt, "the field 'dimension' before it"),
    "passwd.nhdr": (Unsafe, "outside the folder"),
    "raw_short.nrrd": (Corrupt, "(1 missing)"),
    "zero_raw.nhdr": (Unsafe, "outside the folder"),
    "zero_size.nrrd": (Corrupt, "field 'sizes' has a wrong value, at line 4"),
}
# Every other file decodes to what the manifest says; these with a note.
CORPUS_NOTED = {
    "generated/raw_trailing.nrrd": ["13 bytes after the data were ignored"],
    "real/test_simple4d_raw.nrrd": ["1 bytes after the data were ignored"],
}


def test_corpus_decodes_to_the_values_of_its_manifest(corpus: Callable[..., Path]) -> None:
    wrong, refused, count = {}, set(), 0
    with corpus("nrrd", "expected.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            name = row["file"]
            if row["sha256_of_little_endian_data_or_REFUSE"] == "REFUSE":
                refused.add(os.path.basename(name))
                continue
            bundle = read(corpus("nrrd", name))
            (array,) = bundle.arrays
            data = hashlib.sha256()
            for block in blocks(array, 1000):
                data.update(block.reshape(-1).view("u1"))
            got = (data.hexdigest(), "x".join(map(str, array.dims)), bundle.notes)
            expected = (
                row["sha256_of_little_endian_data_or_REFUSE"],
                row["sizes_fastest_first"],
                CORPUS_NOTED.get(name, []),
            )
            count += 1
            if got != expected:
                wrong[name] = got
    assert wrong == {}
    assert count == 96
    assert refused == set(CORPUS_REFUSED)


@pytest.mark.parametrize("name", CORPUS_REFUSED)
def test_corpus_hostile_files_are_refused_for_their_cause(
    name: str, corpus: Callable[..., Path], refused: Callable[..., str]
) -> None:
    error, words = CORPUS_REFUSED[name]
    path = corpus("nrrd", "hostile", name)

    refuse(path, error, name, words)
    assert words in refused(path)  # in a process of its own: within 2 s and bounded memory


# --- files of other tools -------------------------------------------------------------------------

SHORTS = ramp((4, 3, 2), "<i2", 1829)
VALUES = {
    "unu_gzip_big.nrrd": SHORTS,
    "unu_hex.nrrd": ramp((4, 6), "<u4", 715827881),
    "unu_text.nrrd": (ramp((4, 6), "<f4") / 7).astype("<f4"),
    "unu_bzip2.nrrd": ramp((4, 6), "<i8", 1 << 40),
    "unu_fields.nrrd": ramp((4, 3, 2), "<f8", 3),
    "unu_minmax.nrrd": ramp((10,), "<i4", 3),
    "unu_space.nrrd": ramp((2, 4, 5, 3), "u1", 2),
    "itk_rgb_gzip.nrrd": ramp((4, 5, 3), "u1", 4),
    "itk_complex.nrrd": np.stack([ramp((3, 4), "<f4"), ramp((3, 4), "<f4", 2)], axis=-1),
    "itk_detached.nhdr": ramp((2, 3, 4), "<i2", 100),
    "pynrrd_bzip2.nrrd": ramp((3, 5), "<i4", 9),
    "pynrrd_text.nrrd": ramp((3, 5), "<i4", 9),
    "skiplist.nhdr": SHORTS,
    "pattern_down.nhdr": SHORTS,
    "zrl.nrrd": SHORTS,
    "gzip_members.nrrd": SHORTS,
    "bzip2_streams.nrrd": SHORTS,
    "cr_only.nrrd": SHORTS,
    "latin1.nrrd": np.frombuffer(b"abc", "u1"),
}


def test_every_fixture_is_in_the_table() -> None:
    headers = {path.name for path in FIXTURES.iterdir() if path.suffix in (".nrrd", ".nhdr")}

    assert headers == set(VALUES)


@pytest.mark.parametrize("name", VALUES)
def test_files_of_other_tools(name: str) -> None:
    array, expected = only(FIXTURES / name), VALUES[name]
    got = as_ndarray(array)

    assert array.shape == got.shape == expected.shape
    assert array.index_order is None
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()
    assert np.array_equal(np.asarray(only(FIXTURES / name)), expected)
    assert np.array_equal(only(FIXTURES / name)[1:, ...], expected[1:, ...])
    assert np.array_equal(only(FIXTURES / name)[..., 0], expected[..., 0])
    for max_bytes in (1, 7, 100):
        pieces = b"".join(block.tobytes() for block in blocks(only(FIXTURES / name), max_bytes))
        assert pieces == expected.tobytes()


def test_sniffing() -> None:
    for path in FIXTURES.iterdir():
        if path.suffix in (".nrrd", ".nhdr"):
            assert nrrd.sniff(Source(str(path))) == SURE


@pytest.mark.parametrize("head", [b"", b"NRRD", b"NRRD0001", b"NRRD00011\n", b"nrrd0001\n"])
def test_sniffing_foreign_bytes(head: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.nrrd").write_bytes(head)

    assert nrrd.sniff(Source(str(tmp_path / "x.nrrd"))) == NO


def test_raw_data_is_an_extent(tmp_path: Path) -> None:
    big = file_of(tmp_path / "a.nrrd", b"xyz" + SHORTS.astype(">i2").tobytes(), "byte skip: 3")
    big.write_bytes(big.read_bytes().replace(b"endian: little", b"endian: big"))

    array = only(big)

    assert (array.extent.nbytes, array.extent.swap) == (48, 2)
    assert array.extent.offset == big.stat().st_size - 48
    assert array.element.order == ">"
    assert only(FIXTURES / "itk_detached.nhdr").extent.path.endswith("itk_detached.raw")
    assert only(FIXTURES / "unu_gzip_big.nrrd").extent is None


def test_storage_is_told() -> None:
    assert only(FIXTURES / "unu_gzip_big.nrrd").storage == {
        "version": "NRRD0001", "type": "int16", "encoding": "gzip", "endian": "big",
    }  # fmt: skip
    assert only(FIXTURES / "skiplist.nhdr").storage["data_files"] == 4


# --- header grammar -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("signed char", "i1"), ("int8_t", "i1"), ("UCHAR", "u1"), ("unsigned char", "u1"),
        ("short int", "i2"), ("signed short int", "i2"), ("unsigned short int", "u2"),
        ("signed int", "i4"), ("uint", "u4"), ("unsigned int", "u4"), ("longlong", "i8"),
        ("signed long long int", "i8"), ("unsigned long long int", "u8"), ("uint64_t", "u8"),
        ("Float", "f4"), ("double ", "f8"),
    ],
)  # fmt: skip
def test_names_of_types(name: str, element: str, tmp_path: Path) -> None:
    values = ramp((4,), f"<{element}", 50)
    path = file_of(tmp_path / "x.nrrd", values.tobytes(), type=name, sizes="4")

    assert as_ndarray(only(path)).dtype == values.dtype
    assert np.array_equal(as_ndarray(only(path)), values)


@pytest.mark.parametrize("name", ["char", "unsigned  char", "float16", "long", "bool", "", "blok"])
def test_unknown_types_are_refused(name: str, tmp_path: Path) -> None:
    refuse(file_of(tmp_path / "x.nrrd", b"", type=name), Corrupt, "field 'type'", "line 2")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\n \r \r\n", "\r \n \r\n"])
def test_line_ends_also_mixed(ends: str, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.nrrd", b"", "a:=1", "b:=2")
    lines = path.read_text().rstrip("\n").split("\n")
    kinds = ends.split(" ") if len(ends) > 2 else [ends]
    text = "".join(line + kinds[n % len(kinds)] for n, line in enumerate(lines))
    text += "\r" if text.endswith("\r") else "\n"  # CR LF would be the end of the line before
    path.write_bytes(text.encode() + SHORTS.tobytes())

    array = only(path)

    assert np.array_equal(as_ndarray(array), SHORTS)
    assert array.meta.attributes == {"a": "1", "b": "2"}


def test_escaped_quotes_and_backslashes_in_labels(tmp_path: Path) -> None:
    line = r"""labels: "a\"b"   "c\\"d" "\e\\" """
    refuse(file_of(tmp_path / "x.nrrd", RAW, line), Corrupt, "3 texts in double quotes")

    line = r"""labels: "a\"b"   "c\\"d"	"\e\\ " """
    axes = only(file_of(tmp_path / "x.nrrd", RAW, line)).ra_axes

    assert [axis.name for axis in axes] == ['a"b', 'c\\"d', "\\e\\\\ "]


def test_fields_and_values_in_any_case_and_without_blanks(tmp_path: Path) -> None:
    text = (
        b"NRRD0005\nTYPE: Short\nDimension: 3\nSIZES:  2\t3 4 \nEndian: LITTLE\nEncoding: GZ\n"
        b"SpaceDimension: 2\nspacedirections: NONE (1,0) (0,1)\nAXISMINS: 1 nan NaN\nKinds: "
        b"2-VECTOR Space SPACE\ncenters: Node CELL ???\nsampleunits: V\nOldMin: -1e3\n\n"
    )
    path = tmp_path / "x.nrrd"
    path.write_bytes(text + gzip.compress(SHORTS.tobytes()))
    refuse(path, Corrupt, "'space directions'")  # none is compared exactly

    path.write_bytes(text.replace(b"NONE", b"none") + gzip.compress(SHORTS.tobytes()))
    array = only(path)

    assert np.array_equal(as_ndarray(array), SHORTS)
    assert [axis.kind for axis in array.ra_axes] == ["2-vector", "space", "space"]
    assert array.meta.units == "V"
    assert array.meta.formats["nrrd"]["old_min"] == -1000
    assert array.ra_axes[0].origin == 1


def test_pairs_fields_and_unknown_fields(tmp_path: Path) -> None:
    lines = (
        "#comment", "# with: blank", "key:=value", "a: b:=c", "key:=last", "sizes:=not the field",
        "x:= kept blanks ", r"e\\s:=one\ntwo\\three\t", "colons:=a: b:= c", "µ:=日本",
        "odd field: text", "content:no blank", "units :=x",
    )  # fmt: skip
    path = file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), *lines)

    # The text before the first ": " decides: "a: b:=c" is no key/value pair.
    bundle = read(path)

    meta = bundle.arrays[0].meta
    assert meta.attributes == {
        "key": "last",
        "a": "b:=c",
        "sizes": "not the field",
        "x": " kept blanks ",
        "e\\s": "one\ntwo\\three\\t",
        "colons": "a: b:= c",
        "µ": "日本",
        "odd field": "text",
        "units ": "x",
    }
    assert meta.formats["nrrd"]["comments"] == ["comment", " with: blank"]
    assert meta.description == "no blank"
    assert [note.split(": ", 1)[1] for note in bundle.notes] == [
        "unknown field 'a', kept as a key/value pair",
        "unknown field 'odd field', kept as a key/value pair",
        "no blank after the colon of 'content'",
    ]


@pytest.mark.parametrize("count", [0, 1, 16, 17])
def test_the_number_of_axes_has_limits(count: int, tmp_path: Path) -> None:
    sizes = " ".join(["1"] * count)
    path = tmp_path / "x.nrrd"
    path.write_text(f"NRRD0001\ntype: uchar\ndimension: {count}\nsizes: {sizes}\n"
                    "encoding: raw\n\na")  # fmt: skip
    if count in (1, 16):
        assert only(path).shape == (1,) * count
    else:
        with pytest.raises(RaconvertError, match=f"from 1 to 16.*got '?{count}"):
            only(path)


WRONG_LINES = {
    "neither": ("just text", "line is neither a field"),
    "indented": (" # comment", "line is neither a field"),
    "blank_line_of_blanks": ("   ", "line is neither a field"),
    "no_key": (":=value", "without a key"),
    "repeated": ("encoding: gzip", "is repeated (its values differ)"),
    "repeated_badly": ("encoding: rwa", "raw, text, hex"),
    "spacing_zero": ("spacings: 1 0 1", "field 'spacings'"),
    "spacing_inf": ("spacings: 1 inf 1", "field 'spacings'"),
    "spacings_few": ("spacings: 1 1", "3 values, one for each axis"),
    "spacings_many": ("spacings: 1 1 1 1", "3 values, one for each axis"),
    "spacing_word": ("spacings: 1 1_0 1", "a number"),
    "thickness_negative": ("thicknesses: 1 -1 1", "field 'thicknesses'"),
    "min_inf": ("axis mins: 1 -inf 1", "field 'axis mins'"),
    "center_odd": ("centers: cell edge cell", "cell, node or ???"),
    "labels_few": ('labels: "a" "b"', "3 texts in double quotes"),
    "labels_many": ('labels: "a" "b" "c" "d"', "3 texts in double quotes"),
    "labels_open": ('labels: "a" "b" "c\\"', "3 texts in double quotes"),
    "labels_bare": ("labels: a b c", "3 texts in double quotes"),
    "origin_without_space": ("space origin: (0,0)", "'space' or 'space dimension' before it"),
    "space_odd": ("space: upside-down", "the name of a space"),
    "space_dimension_9": ("space dimension: 9", "a whole number from 1 to 8"),
    "line_skip_negative": ("line skip: -1", "field 'line skip'"),
    "skip_fraction": ("byte skip: 1.0", "a whole number"),
    "block_size": ("block size: 2", "belongs to type block"),
    "pattern_of_two": ("data file: a%d%d.raw 1 4 1", "one number such as %03d"),
    "pattern_with_s": ("data file: a%d%s.raw 1 4 1", "one number such as %03d"),
    "pattern_wide": ("data file: a%04000d.raw 1 4 1", "one number such as %03d"),
    "pattern_21": ("data file: a%021d.raw 1 4 1", "at most 20 digits"),
    "pattern_short": ("data file: a%d.raw 1 4", "PATTERN MIN MAX STEP"),
    "pattern_away": ("data file: a%d.raw 1 4 -1", "leads from MIN to MAX"),
    "pattern_beyond_int32": ("data file: a%d.raw 1 2147483648 1", "from -2147483648 to 2147483647"),
    "pattern_below_int32": ("data file: a%d.raw -2147483649 1 1", "from -2147483648 to 2147483647"),
    "pattern_lowest": ("data file: a%d.raw -2147483648 1 1", "4 files"),
    "pattern_standing": ("data file: a%d.raw 1 4 0", "leads from MIN to MAX"),
    "pattern_of_one": ("data file: a%d.raw 1 1 1", "4 files"),
    "pattern_endless": ("data file: a%d.raw 1 2147483647 1", "4 files"),
    "subdim_0": ("data file: a%d.raw 1 4 1 0", "a whole number from 1 to 3"),
    "subdim_4": ("data file: LIST 4", "a whole number from 1 to 3"),
    "list_none": ("data file: LIST", "4 files"),
    "list_of_three": ("data file: LIST 3\na\nb\nc", "a divisor of 4"),
    "skiplist_no_name": ("data file: SKIPLIST\n0 a\n0 b\n0 c\n0", "SKIP NAME"),
    "skiplist_twice": ("byte skip: 1\ndata file: SKIPLIST\n0 a\n0 b\n0 c\n0 d", "both SKIPLIST"),
    "no_name": ("data file: ", "the name of a file"),
    "standard_input": ("data file: -", "the name of a file"),
}


@every("name", WRONG_LINES)
def test_wrong_lines_are_refused(name: str, tmp_path: Path) -> None:
    line, words = WRONG_LINES[name]
    path = file_of(tmp_path / "x.nhdr", SHORTS.tobytes(), line)

    assert "line 7" in refuse(path, Corrupt, words) or "\n" in line


WRONG_SPACES = {
    "both": ("space: LPS\nspace dimension: 3", "either 'space' or 'space dimension'"),
    "both_other_way": ("space dimension: 3\nspace: LPS", "either 'space' or 'space dimension'"),
    "vectors_few": ("space: LPS\nspace directions: (1,0,0) (0,1,0)", "3 vectors"),
    "vectors_many": ("space: LPS\nspace directions: none none none none", "3 vectors"),
    "vector_short": ("space: LPS\nspace origin: (1,0)", "3 numbers in each vector"),
    "vector_inf": ("space: LPS\nspace origin: (1,0,inf)", "finite numbers"),
    "vector_half_nan": ("space: LPS\nspace origin: (1,0,nan)", "finite numbers"),
    "vector_open": ("space: LPS\nspace origin: (1,0,0", "vectors"),
    "frame_few": ("space: LPS\nmeasurement frame: (1,0,0)", "3 vectors"),
    "units_few": ('space: LPS\nspace units: "mm"', "3 texts"),
}


@pytest.mark.parametrize("name", WRONG_SPACES)
def test_wrong_spaces_are_refused(name: str, tmp_path: Path) -> None:
    lines, words = WRONG_SPACES[name]

    refuse(file_of(tmp_path / "x.nrrd", b"", lines), Corrupt, words, "line 8")


def test_blanks_inside_vectors(tmp_path: Path) -> None:
    lines = ("space: LPS", "space directions: none ( 1, 0 ,0) ( 0,1, 0)", "space origin: (1, 2, 3)")

    array = only(file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), *lines))

    assert array.meta.space == Space("LPS", (1, 2, 3))
    assert [axis.vector for axis in array.meta.axes] == [(0, 1, 0), (1, 0, 0), None]
    assert "nrrd" not in array.meta.formats


@pytest.mark.parametrize(
    ("magic", "error"),
    [("NRRD0007", Unsupported), ("NRRD0000", Unsupported), ("NRRD00.02", Unsupported),
     ("NRRD1", Unsupported), ("NRRD0004 ", Unsupported), ("nrrd0004", Corrupt)],
)  # fmt: skip
def test_other_versions_are_refused(magic: str, error: type, tmp_path: Path) -> None:
    refuse(file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), magic=magic), error)


@pytest.mark.parametrize("field", ["type", "dimension", "sizes", "encoding"])
def test_required_fields(field: str, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.nrrd", SHORTS.tobytes())
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if not line.startswith(field.encode())))

    refuse(path, Corrupt, f"'{field}'")


def test_notes_about_odd_kinds_and_positions(tmp_path: Path) -> None:
    lines = (
        "kinds: RGB-color domain whatever",
        "space: LPS",
        "space directions: none (1,0,0) (0,1,0)",
        "spacings: nan 2 nan",
    )
    bundle = read(file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), *lines))

    assert bundle.notes == [
        "an axis of kind RGB-color has 2 samples",
        "unknown kind of an axis: 'whatever'",
        "an axis has both a space direction and a value of 'spacings'",
    ]


def test_fields_that_are_repeated_with_the_same_value(tmp_path: Path) -> None:
    lines = ("encoding:  RAW", "spacings: 1 nan 2", "axis mins: 1 2 3", "spacings: 1.0 NaN  2")
    bundle = read(file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), *lines))

    assert [axis.spacing for axis in bundle.arrays[0].ra_axes] == [1, None, 2]
    assert bundle.notes == [
        "line 7: field 'encoding' is repeated",
        "line 10: field 'spacings' is repeated",
    ]
    refuse(
        file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), *lines, "spacings: 1 1 2"),
        Corrupt, "field 'spacings' is repeated (its values differ), at line 11",
        "expected 1 nan 2, got 1 1 2",
    )  # fmt: skip
    (tmp_path / "d").write_bytes(SHORTS.tobytes())
    (tmp_path / "e").write_bytes(bytes(48))
    same = file_of(tmp_path / "x.nhdr", b"", "data file: d", "datafile: d")
    assert np.array_equal(as_ndarray(only(same)), SHORTS)
    other = file_of(tmp_path / "x.nhdr", b"", "data file: d", "datafile: e")
    refuse(other, Corrupt, "field 'data file' is repeated")


def test_what_messages_show_is_printable(tmp_path: Path) -> None:
    bundle = read(file_of(tmp_path / "x.nrrd", SHORTS.tobytes(), "odd\x1b[1m: x"))
    assert bundle.notes == [r"line 7: unknown field 'odd\x1b[1m', kept as a key/value pair"]

    told = refuse(file_of(tmp_path / "x.nrrd", b"", "\x1b[1mtext"), Corrupt, r"got \x1b[1mtext")
    assert "\x1b" not in told


# --- where the data is ----------------------------------------------------------------------------

RAW = SHORTS.tobytes()
PIECES = {f"p{n}": SHORTS[n].tobytes() for n in range(4)}
# header lines, data files, attached data, encoding
PLACES: dict[str, tuple[list[str], dict[str, bytes], bytes, str]] = {
    "name_with_blanks": (["data file: a b.raw"], {"a b.raw": RAW}, b"", "raw"),
    "name_with_percent": (["datafile: 100%.raw"], {"100%.raw": RAW}, b"", "raw"),
    "name_list_like": (["data file: LIST.raw"], {"LIST.raw": RAW}, b"", "raw"),
    "below": (["data file: ./d/e.raw"], {"d/e.raw": RAW}, b"", "raw"),
    "list": (["data file: LIST", *PIECES], PIECES, b"", "raw"),
    "list_then_blank": (["data file: LIST", *PIECES, "", "junk"], PIECES, b"", "raw"),
    "list_2": (["data file: LIST 2", *PIECES], PIECES, b"", "raw"),
    "list_1": (
        ["data file: LIST 1", *(f"r{n}" for n in range(12))],
        {f"r{n}": RAW[4 * n : 4 * n + 4] for n in range(12)}, b"", "raw",
    ),
    "list_of_slabs": (
        ["data file: LIST 3", "h0", "h1"], {"h0": RAW[:24], "h1": RAW[24:]}, b"", "raw",
    ),
    "pattern": (["data file: p%d 0 3 1"], PIECES, b"", "raw"),
    "pattern_width": (
        ["data file: %%%02d.x 8 14 2 2"],
        {f"%{8 + 2 * n:02d}.x": p for n, p in enumerate(PIECES.values())}, b"", "raw",
    ),
    "one_file_many_times": (
        ["data file: LIST", "same", "same", "same", "same"], {"same": bytes(12)}, b"", "raw",
    ),
    "line_skip_attached": (["line skip: 2"], {}, b"one\r\ntwo\r" + RAW, "raw"),
    "skips_attached": (["line skip: 1", "byte skip: 2"], {}, b"one\nxx" + RAW, "raw"),
    "last_attached": (["byte skip: -1"], {}, b"whatever" + RAW, "raw"),
    "before_last_5": (
        ["byte skip: -6", "data file: d"], {"d": b"what" + RAW + b"12345"}, b"", "raw",
    ),
    "last_of_each": (
        ["byte skip: -1", "data file: LIST", *PIECES],
        {name: b"\n" * n + piece for n, (name, piece) in enumerate(PIECES.items())}, b"", "raw",
    ),
    "gzip": ([], {}, gzip.compress(RAW), "gzip"),
    "gzip_name_and_extra": (
        [], {}, b"\x1f\x8b\x08\x1c\0\0\0\0\0\xff\x02\0abname\0comment\0" +
        zlib.compress(RAW, 9, -15) + zlib.crc32(RAW).to_bytes(4, "little") + b"\x30\0\0\0", "gzip",
    ),
    "gzip_zeros_behind": ([], {}, gzip.compress(RAW) + bytes(100), "gzip"),
    "gzip_skip_inside": (["byte skip: 5"], {}, gzip.compress(b"12345" + RAW), "gzip"),
    "gzip_skip_lines_outside": (
        ["line skip: 1", "byte skip: 5"], {}, b"line\n" + gzip.compress(b"12345" + RAW), "gzip",
    ),
    "gzip_last": (["byte skip: -1"], {}, gzip.compress(b"head" + RAW), "gzip"),
    "gzip_before_last": (
        ["byte skip: -4"], {}, gzip.compress(b"head" + RAW[:7]) + gzip.compress(RAW[7:] + b"123"),
        "gzip",
    ),
    "gzip_list": (
        ["data file: LIST", *PIECES], {n: gzip.compress(p) for n, p in PIECES.items()}, b"", "gzip",
    ),
    "bzip2_last": (["byte skip: -1"], {}, bz2.compress(b"head" + RAW), "bz2"),
    "bzip2_skip": (["byte skip: 2"], {}, bz2.compress(b"he") + bz2.compress(RAW), "bz2"),
    "hex_spread": ([], {}, b"\n \t".join(b"%c" % c for c in RAW.hex().upper().encode()), "hex"),
    "hex_junk_behind": ([], {}, RAW.hex().encode() + b"!", "hex"),
    "hex_skip": (["line skip: 1", "byte skip: 2"], {}, b"xyz\nxy" + RAW.hex().encode(), "hex"),
    "hex_pattern": (
        ["data file: p%d 0 3 1"], {n: p.hex().encode() for n, p in PIECES.items()}, b"", "hex",
    ),
    "text_commas": ([], {}, (" , ,".join(map(str, SHORTS.ravel())) + ",").encode(), "txt"),
    "text_lines": ([], {}, "\r\n".join(map(str, SHORTS.ravel())).encode(), "text"),
    "text_signs": ([], {}, " ".join(f"{v:+05d}" for v in SHORTS.ravel()).encode(), "ascii"),
    "text_pieces": (
        ["data file: LIST", *PIECES],
        {n: " ".join(map(str, np.frombuffer(p, "<i2"))).encode() for n, p in PIECES.items()},
        b"", "text",
    ),
    "zrl_literals": ([], {}, RAW.replace(b"\0", b"\0\1"), "zrl"),
    "zrl_long": ([], {}, RAW.replace(b"\0", b"\0\0\1\0"), "zrl"),
    "zrl_skip": (["byte skip: 1"], {}, b"\0" + RAW.replace(b"\0", b"\0\1"), "zrl"),
}  # fmt: skip


@every("name", PLACES)
def test_places_of_data(name: str, tmp_path: Path) -> None:
    lines, files, data, encoding = PLACES[name]
    for file, contents in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(contents)
    path = file_of(tmp_path / "x.nhdr", data, *lines, encoding=encoding, magic="NRRD0006")
    expected = np.zeros_like(SHORTS) if name == "one_file_many_times" else SHORTS

    assert np.array_equal(as_ndarray(only(path)), expected)
    for max_bytes in (1, 5, 1 << 20):
        got = b"".join(block.tobytes() for block in blocks(only(path), max_bytes))
        assert got == expected.tobytes()
    # A header that names its data may end with the file.
    if files:
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        assert np.array_equal(as_ndarray(only(path)), expected)


def test_regions_of_many_files_read_only_those_files(tmp_path: Path) -> None:
    for name, piece in PIECES.items():
        (tmp_path / name).write_bytes(np.frombuffer(piece, "<i2").astype(">i2").tobytes())
    path = file_of(tmp_path / "x.nhdr", b"", "data file: LIST", *PIECES)
    path.write_bytes(path.read_bytes().replace(b"little", b"big"))
    array = only(path)
    (tmp_path / "p3").write_bytes(b"")  # shorter than it was

    keys: list[Any] = [
        0,
        -2,
        slice(0, 2),
        slice(2, None, -1),
        (1, 2),
        (slice(0, 3), ..., 1),
        slice(0, 0),
    ]
    for key in keys:
        assert np.array_equal(array[key], SHORTS[key])
    with pytest.raises(Corrupt, match="shorter"):
        array[3]


def test_extra_data_is_noted(tmp_path: Path) -> None:
    extra = {
        "raw": (RAW + b"123", "3 bytes after the data were ignored"),
        "gzip": (gzip.compress(RAW + b"123"), "3 decompressed bytes after the data were ignored"),
        "bzip2": (bz2.compress(RAW) + b"rest", "4 bytes after the compressed data were ignored"),
        "text": (b"5 " * 30, "12 bytes after the data were ignored"),
        "hex": (b"05" * 60, "values after the data were ignored"),
    }
    for encoding, (data, note) in extra.items():
        bundle = read(file_of(tmp_path / "x.nrrd", data, encoding=encoding))
        as_ndarray(bundle.arrays[0])
        assert bundle.notes == [note]


def test_blocks_are_bytes_verbatim(tmp_path: Path) -> None:
    for encoding, data in (("raw", RAW), ("gzip", gzip.compress(RAW)), ("hex", RAW.hex().encode())):
        path = file_of(
            tmp_path / "x.nrrd", data, "block size: 6", type="block", sizes="4 2", encoding=encoding
        )
        path.write_bytes(path.read_bytes().replace(b"little", b"big"))
        array = only(path)

        assert array.dtype == np.dtype("V6")
        assert as_ndarray(array).tobytes() == RAW
        assert array.meta.formats["nrrd"]["endian"] == "big"


# --- text numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("uchar", "0 255"), ("int8", "-128 127"), ("ushort", "0 65535"), ("uint", "0 4294967295"),
        ("int64", "-9223372036854775808 9223372036854775807"), ("uint64", "0 18446744073709551615"),
        ("int", "+1 -0"),
    ],
)  # fmt: skip
def test_text_holds_the_whole_range(type_name: str, text: str, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.nrrd", text.encode(), type=type_name, sizes="2", encoding="text")

    assert as_ndarray(only(path)).tolist() == [int(word) for word in text.split()]


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("uchar", "1 256"), ("uchar", "1 -1"), ("int8", "1 128"), ("uint64", "1 -1"),
        ("int64", "1 9223372036854775808"), ("uint64", "1 18446744073709551616"),
        ("short", "1 3.0"), ("short", "1 1e3"), ("short", "1 1_0"), ("short", "1 0x10"),
        ("short", "1 --1"), ("float", "1 1_0"), ("float", "1 one"), ("float", "1 0x1p3"),
        ("float", "1 1e"), ("double", "1 " + "1" * 5000), ("short", "1 " + "0" * 5000),
    ],
)  # fmt: skip
def test_text_that_the_type_does_not_hold(type_name: str, text: str, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.nrrd", text.encode(), type=type_name, sizes="2", encoding="text")

    refuse(path, Corrupt, "text is not a number of type", "value 1")


def test_text_of_floats_is_rounded_once(tmp_path: Path) -> None:
    # Just above the middle of two singles: as a double it is the middle itself, which rounds to even.
    words = ["1.00000005960464477540", "1.00000005960464477538", "1.000000059604644775390625",
             "nan", "-INF", "+inf", "-0", "1e-45", "3.4028235e38", "1e39", ".5", "5."]  # fmt: skip
    text = " ".join(words).encode()
    path = file_of(tmp_path / "x.nrrd", text, type="float", sizes="12", encoding="text")

    got = as_ndarray(only(path))

    expected = [1.0000001, 1, 1, np.nan, -np.inf, np.inf, -0.0, 1e-45, 3.4028235e38, np.inf, 0.5, 5]
    assert got.view("u4").tolist() == np.array(expected, "f4").view("u4").tolist()


def test_text_below_the_middle_of_the_largest_single_and_infinity_is_finite(tmp_path: Path) -> None:
    middle, largest = 2**128 - 2**103, np.finfo("f4").max
    text = f"{middle - 1} {middle} -{middle - 1} -{middle}".encode()
    path = file_of(tmp_path / "x.nrrd", text, type="float", sizes="4", encoding="text")

    assert as_ndarray(only(path)).tolist() == [largest, np.inf, -largest, -np.inf]


def test_long_text_in_pieces(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=60_000)
    text = "\n".join(map(repr, values.tolist())).encode()
    path = file_of(tmp_path / "x.nrrd", text, type="double", sizes="60000", encoding="text")

    assert as_ndarray(only(path)).tobytes() == values.tobytes()


# --- metadata -------------------------------------------------------------------------------------


def test_fields_become_metadata() -> None:
    meta = only(FIXTURES / "unu_fields.nrrd").meta

    assert meta.description == "some content: here"
    assert meta.attributes == {"simple": "value", "path": "C:\\new"}
    assert [axis.to_dict() for axis in meta.axes[::-1]] == [
        {"name": "vec", "kind": "2-vector", "units": "a"},
        {"name": "x ", "kind": "domain", "units": "b", "spacing": 2.5},
        {"name": "q", "kind": "list", "units": "mm", "spacing": 0.1},
    ]
    assert meta.formats["nrrd"]["axes"] == [
        {"center": "node"},
        {"center": "cell", "thickness": 3},
        {},
    ]
    assert len(meta.formats["nrrd"]["comments"]) == 2


def test_space_becomes_origin_directions_and_units() -> None:
    meta = only(FIXTURES / "unu_space.nrrd").meta

    assert [axis.to_dict() for axis in meta.axes[::-1]] == [
        {"kind": "RGB-color"},
        {"kind": "domain", "units": "mm", "spacing": 0.5, "direction": [1, 0, 0]},
        {"kind": "domain", "units": "um", "spacing": 0.25, "direction": [0, -1, 0]},
        {"kind": "domain", "spacing": 1, "direction": [0.6, 0, 0.8]},
    ]
    assert meta.space is not None
    assert meta.space.frame == "LPS"
    assert meta.space.origin is not None
    assert meta.space.origin[:2] == (1.5, -2)
    own = meta.formats["nrrd"]
    assert own["space_units"] == ["mm", "um", "mm"]  # which units of axes cannot say
    assert own["measurement_frame"] == [[1, 0, 0], [0, -1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("lines", "origin"),
    [
        (["axis mins: 3", "centers: node"], 3),
        (["axis mins: 3", "centers: cell", "spacings: 2"], 4),
        (["axis mins: 3", "centers: cell", "axis maxs: 7"], 3.5),
        (["axis mins: 3", "axis maxs: 7", "spacings: 1"], None),  # node or cell: not known
        (["axis mins: 3", "centers: cell"], None),
        (["axis mins: nan", "centers: node"], None),
    ],
)
def test_axis_mins_become_origins(lines: list[str], origin: float | None, tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.nrrd", b"abcd", *lines, type="uchar", sizes="4")
    axes = only(path).ra_axes

    assert (axes[0].origin if axes else None) == origin


@pytest.mark.parametrize(
    ("lines", "spacing"),
    [
        (["axis mins: 3", "axis maxs: 9", "centers: node"], 2),
        (["axis mins: 3", "axis maxs: 9", "centers: cell"], 1.5),
        (["axis mins: 9", "axis maxs: 3", "centers: cell"], -1.5),
        (["axis mins: 3", "axis maxs: 9", "centers: cell", "spacings: 7"], 7),
        (["axis mins: 3", "axis maxs: 9"], None),
        (["axis mins: 3", "axis maxs: 3", "centers: cell"], None),
        (["axis mins: -1e308", "axis maxs: 1e308", "centers: cell"], None),
        (["axis maxs: 9", "centers: cell"], None),
    ],
)
def test_minimum_and_maximum_become_the_spacing(
    lines: list[str], spacing: float | None, tmp_path: Path
) -> None:
    path = file_of(tmp_path / "x.nrrd", b"abcd", *lines, type="uchar", sizes="4")
    axes = only(path).ra_axes

    assert (axes[0].spacing if axes else None) == spacing


def test_one_node_has_no_spacing(tmp_path: Path) -> None:
    lines = ("axis mins: 1", "axis maxs: 2", "centers: node")
    (axis,) = only(file_of(tmp_path / "x.nrrd", b"a", *lines, type="uchar", sizes="1")).ra_axes

    assert axis.to_dict() == {"origin": 1}


def test_minimum_and_maximum_of_unu() -> None:
    meta = only(FIXTURES / "unu_minmax.nrrd").meta

    assert [axis.to_dict() for axis in meta.axes[::-1]] == [
        {"name": "bins", "spacing": 1, "origin": -4}
    ]
    assert meta.formats["nrrd"]["axes"] == [{"min": -4.5, "max": 5.5, "center": "cell"}]


def test_texts_that_are_no_utf8() -> None:
    meta = only(FIXTURES / "latin1.nrrd").meta

    assert meta.attributes == {"größe": "5 µm"}
    assert meta.axes[::-1][0].units == "µm"
    assert meta.formats["nrrd"]["charset"] == "latin-1"


def test_quotes_of_sample_units_come_off(tmp_path: Path) -> None:
    def units(text: str) -> str | None:
        return only(file_of(tmp_path / "x.nrrd", RAW, f"sample units: {text}")).meta.units

    assert units('"mm"') == units("mm") == units("mm ") == "mm"
    assert units('""mm""') == '"mm"'
    assert units('"') == '"'
    assert (units('"mm'), units('mm"'), units('a"b')) == ('"mm', 'mm"', 'a"b')
    assert units('""') is None


def test_complex_pairs_stay_pairs_unless_asked() -> None:
    path = FIXTURES / "itk_complex.nrrd"
    pairs = only(path)
    numbers = only(path, complex="numbers")

    assert (pairs.element.kind, pairs.dims) == ("float", (2, 4, 3))
    assert pairs.ra_axes[0].kind == "complex"
    expected = ramp((3, 4), "c8") * (1 + 2j)
    assert numbers.shape == (3, 4)
    assert np.array_equal(as_ndarray(numbers), expected)
    assert [axis.spacing for axis in numbers.ra_axes] == [1, 1]
    assert [axis.vector for axis in numbers.ra_axes] == [(1, 0), (0, 1)]
    assert "axes" not in numbers.meta.formats["nrrd"]


def test_complex_numbers_that_are_none_are_noted() -> None:
    bundle = read(FIXTURES / "unu_fields.nrrd", complex="numbers")

    assert bundle.arrays[0].dims == (2, 3, 4)
    assert "no complex numbers" in bundle.notes[0]


# --- what is named by a header --------------------------------------------------------------------


def test_data_files_stay_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.raw").write_bytes(RAW)
    inner = tmp_path / "in"
    inner.mkdir()
    (inner / "link.raw").symlink_to("../outside.raw")
    for name in ("../outside.raw", str(tmp_path / "outside.raw"), "link.raw"):
        path = file_of(inner / "x.nhdr", b"", f"data file: {name}")
        refuse(path, Unsafe, "outside the folder", "line 7")

        assert np.array_equal(as_ndarray(only(path, trust=True)), SHORTS)


def test_data_files_are_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, error in (("pipe", Unsafe), ("folder", Unsafe), ("missing", ReadFailed)):
        for encoding in ("raw", "gzip", "text"):
            path = file_of(tmp_path / "x.nhdr", b"", f"data file: {name}", encoding=encoding)
            refuse(path, error, name, *(["line 7"] if error is Unsafe else []))
            with pytest.raises(error):
                only(path, trust=True)


def test_errors_in_data_files_name_both_files(tmp_path: Path) -> None:
    (tmp_path / "d.raw").write_bytes(RAW[:-1])

    refuse(file_of(tmp_path / "x.nhdr", b"", "data file: d.raw"), Corrupt, "d.raw", "x.nhdr")


@pytest.mark.parametrize(
    ("lines", "version"),
    [((), "0001"), (("key:=value",), "0002"), (("kinds: space space space",), "0003"),
     (("space dimension: 3",), "0004"), (("space dimension: 3", "key:=value"), "0004")],
)  # fmt: skip
def test_the_lowest_version_that_has_all_fields(
    tmp_path: Path, lines: tuple[str, ...], version: str
) -> None:
    """As Teem's definition of the format says: pairs since 2, kinds since 3, spaces since 4."""
    path = file_of(tmp_path / "x.nrrd", bytes(48), *lines, magic="NRRD0005")
    assert lowest_version(read_header(Source(str(path)))) == version


# What the definition of the format says of each field (section 3, "new in NRRD000N").
SINCE = {
    "thicknesses": 4, "sample units": 4, "space": 4, "space dimension": 4, "space directions": 4,
    "space units": 4, "space origin": 4, "kinds": 3, "measurement frame": 5,
}  # fmt: skip


@every("field", FIELDS)
def test_each_field_is_written_from_its_version_on(field: str) -> None:
    header = Header(None, {"type": None, field: None}, {}, [], None)
    assert lowest_version(header) == f"{SINCE.get(field, 1):04}"


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [("block size", 1, 2**31 - 1), ("dimension", 1, 16), ("space dimension", 1, 8),
     ("line skip", 0, 1 << 62), ("byte skip", -(1 << 62), 1 << 62), ("sizes", 1, 2**63 - 1)],
)  # fmt: skip
def test_ranges_of_whole_numbers(field: str, low: int, high: int) -> None:
    fields = {"dimension": 1}
    for value in (low, high, low + 1, high - 1):
        assert parsed(field, f" {value}\t", fields) in (value, (value,))
    for value in (low - 1, high + 1):
        with pytest.raises(BadValue, match=f"a whole number from {low} to {high}"):
            parsed(field, str(value), fields)


def test_how_long_a_number_may_be() -> None:
    """As long as any double written exactly, and not so long that parsing takes time."""
    for text, value in ((f"0.{'0' * 2046}", 0), ("1".rjust(2048, "0"), 1)):
        assert parsed("old min", text, {}) == value
    for text in ("1".rjust(2049, "0"), f"0.{'0' * 2047}"):
        with pytest.raises(BadValue, match="a number"):
            parsed("old min", text, {})


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("spacings", "-1 nan 1e-300", "0 1 1"), ("spacings", "-0.1 1 1", "-0 1 1"),
        ("spacings", "1 1 1", "1 1 -inf"), ("thicknesses", "0 nan 1e300", "1 1 inf"),
        ("thicknesses", "-0 1 1", "-1e-9 1 1"), ("axis mins", "0 -1 nan", "0 -1 inf"),
        ("axis maxs", "0 -1 nan", "-inf 1 1"), ("centers", "??? NODE cell", "?? cell cell"),
        ("centers", "none cell cell", "None cell cell"),
    ],
)  # fmt: skip
def test_values_for_each_axis_at_their_limits(field: str, good: str, bad: str) -> None:
    fields = {"dimension": 3}
    assert len(parsed(field, good, fields)) == 3
    with pytest.raises(BadValue):
        parsed(field, bad, fields)


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
def test_vectors_have_as_many_numbers_as_the_space(rank: int) -> None:
    """All of them finite, or all of them not known."""
    fields = {"dimension": 2, "space dimension": rank}
    numbers = [str(n - 1) for n in range(rank)]
    vector = f"({','.join(numbers)})"
    assert parsed("space origin", vector, fields) == [n - 1 for n in range(rank)]
    assert parsed("space origin", f"({','.join(['nan'] * rank)})", fields) is None
    assert parsed("space directions", f"none {vector}", fields) == [None, [*range(-1, rank - 1)]]
    for wrong in (numbers[1:], [*numbers, "1"], ["inf", *numbers[1:]], [*numbers[:-1], "-inf"],
                  *([["nan", *numbers[1:]]] if rank > 1 else [])):  # fmt: skip
        with pytest.raises(BadValue):
            parsed("space origin", f"({','.join(wrong)})", fields)


def test_as_many_notes_as_are_worth_reading(tmp_path: Path) -> None:
    for count in (19, 20, 21, 40):
        path = file_of(tmp_path / "x.nrrd", RAW, *(f"odd{n}: x" for n in range(count)))
        notes = read(path).notes
        assert len(notes) == min(count, 21)
        assert [note.split("'")[1] for note in notes[:20]] == [f"odd{n}" for n in range(count)][:20]
        assert (
            notes[20:] == ["there are more than 20 notes, the others are not shown"][: count - 20]
        )


def test_how_much_of_a_bad_value_is_shown(tmp_path: Path) -> None:
    for length, shown in ((59, "x" * 59), (60, "x" * 60), (61, "x" * 57 + "...")):
        told = refuse(file_of(tmp_path / "x.nrrd", RAW, "x" * length), Corrupt, "line 7")
        assert told.endswith(f"got {shown}")


def test_limits_of_the_header_itself(tmp_path: Path) -> None:
    """65536 lines with the empty one, 4 MiB in one, 16 MiB in all; one more is refused."""
    most, line, lines = 16 << 20, 4 << 20, 1 << 16
    before = file_of(tmp_path / "x.nrrd", b"").read_bytes()[:-1]
    kib = b"#" * 1023 + b"\n"
    bodies = {
        "lines": (b"#\n" * (lines - before.count(b"\n") - 1), f"at most {lines} lines"),
        "one line": (b"#" * line + b"\n", f"lines of at most {line} bytes"),
        "all": (kib * 16383 + b"#" * (1023 - len(before)) + b"\n", f"at most {most} bytes"),
    }
    for data in (RAW, RAW + bytes(20 << 20)):  # what is behind a header does not count
        for body, words in bodies.values():
            path = tmp_path / "x.nrrd"
            path.write_bytes(before + body + b"\n" + data)
            assert read_header(Source(str(path))).offset == len(before) + len(body) + 1
            more = body[:-1] + (b"\n#\n" if "lines" in words and "of" not in words else b"##\n")
            path.write_bytes(before + more + b"\n" + data)
            refuse(path, Unsupported, "header is too long to be read safely", words)


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_lines_that_end_where_a_read_ends(end: bytes, tmp_path: Path) -> None:
    """A CR at the end of what was read may be half of a CR LF."""
    whole = file_of(tmp_path / "x.nrrd", b"").read_bytes()[:-2].replace(b"\n", end) + end
    for place in range(FIRST_READ - 4, FIRST_READ + 3):
        comment = b"#" * (place - len(whole) - len(end))
        data = whole + comment + end + end + RAW
        (tmp_path / "x.nrrd").write_bytes(data)
        header = read_header(Source(str(tmp_path / "x.nrrd")))
        assert header.offset == len(data) - len(RAW)
        assert np.array_equal(as_ndarray(only(tmp_path / "x.nrrd")), SHORTS)


@pytest.mark.parametrize(
    ("word", "names"),
    [("a%d", ["a8", "a9", "a10"]), ("%03db", ["008b", "009b", "010b"]), ("%3d", ["  8", "  9", " 10"]),
     ("%1d", ["8", "9", "10"]), ("%%%d%%", ["%8%", "%9%", "%10%"]), ("%0d", ["8", "9", "10"]),
     ("%020d", [f"{n:020d}" for n in (8, 9, 10)]), ("%20d", [f"{n:20d}" for n in (8, 9, 10)])],
)  # fmt: skip
def test_names_that_a_pattern_gives(word: str, names: list[str]) -> None:
    """Those of C's printf, which Teem calls."""
    assert [name.encode() for name in names] == [_printf(word, n) for n in (8, 9, 10)]
    assert list(Pattern(word, 8, 10, 1)) == names
    assert list(Pattern(word, 10, 8, -1)) == names[::-1]
    assert list(Pattern(word, 8, 11, 2)) == names[::2]
    assert list(Pattern(word, 8, 8, 1)) == names[:1]
    assert len(Pattern(word, 10, 8, -2)) == 2


def _printf(form: str, number: int) -> bytes:
    buffer = ctypes.create_string_buffer(100)
    ctypes.CDLL(None).snprintf(buffer, 100, form.encode(), ctypes.c_int(number))
    return buffer.value


@pytest.mark.parametrize(
    "word", ["a", "%%d", "%d%d", "%d%s", "%s%d", "%0020d", "%021d", "%21d", "%x"]
)
def test_patterns_that_are_none(word: str) -> None:
    with pytest.raises(BadValue, match="such as %03d|at most 20 digits"):
        iter(Pattern(word, 1, 2, 1))


@pytest.mark.parametrize(
    ("type", "encoding", "lines", "words"),
    [
        ("uchar", "raw", "", ""), ("int8", "gzip", "", ""), ("short", "text", "", ""),
        ("short", "raw", "", "lacks the field 'endian'"),
        ("short", "hex", "", "lacks the field 'endian'"),
        ("block", "raw", "block size: 1", ""),
        ("block", "raw", "block size: 2", "lacks the field 'endian'"),
        ("block", "text", "block size: 1", "text cannot hold blocks"),
        ("block", "raw", "", "belongs to type block"),
        ("uchar", "raw", "block size: 1", "belongs to type block"),
    ],
)  # fmt: skip
def test_what_needs_a_byte_order(
    type: str, encoding: str, lines: str, words: str, tmp_path: Path
) -> None:
    data = {"text": b"1 2", "hex": b"01000200", "gzip": gzip.compress(b"12")}.get(encoding, b"12")
    path = file_of(tmp_path / "x.nrrd", data, lines or "#", type=type, sizes="2", encoding=encoding)
    path.write_bytes(path.read_bytes().replace(b"endian: little\n", b""))
    if words:
        refuse(path, Corrupt, words)
    else:
        assert as_ndarray(only(path)).size == 2


def test_sizes_up_to_those_of_any_file(tmp_path: Path) -> None:
    for sizes, name in (("9223372036854775807", "uchar"), ("4611686018427387903", "short")):
        refuse(
            file_of(tmp_path / "x.nrrd", b"", sizes=sizes, type=name), Corrupt, "data is cut off"
        )
    for sizes, name in (("4611686018427387904", "short"), ("4294967296 2147483648", "uchar")):
        refuse(
            file_of(tmp_path / "x.nrrd", b"", sizes=sizes, type=name), Corrupt, "beyond any file"
        )
