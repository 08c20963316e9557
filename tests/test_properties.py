"""Properties: what holds for any array, any header, any bytes and any sidecar."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import ra_bytes
import yaml
from cases import rounds
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pairs import keeps_values

import raconvert
import raconvert.ra
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import dtype_of, element_of
from raconvert.arrays.metadata import Metadata
from raconvert.arrays.regions import slabs
from raconvert.catalogue import ROWS
from raconvert.errors import RaconvertError, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source
from raconvert.metadata import sidecar
from raconvert.ra.header import Header, NeedMore, encodings_of, pack, unpack
from raconvert.ra.plugin import data_range
from raconvert.testing import decode, read, remove, same, write

# A format that is told by nothing in its files has no samples of them, and is read only.
PLUGINS = {row.name: import_module(row.module) for row in ROWS if row.writes}
NUMBERS = ["i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
TYPES = [
    "?",
    *(f"<{code}" for code in NUMBERS),
    *(f">{code}" for code in NUMBERS[2:]),
    "S3", "<U2", ">U2", "<M8[ns]", ">M8[D]", "<m8[s]", "V3",
    [("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "S2")])],
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties")


def emptied(folder: Path) -> Path:
    """Return the folder without anything in it, as every example needs it."""
    for path in folder.iterdir():
        remove(path)
    return folder


# Arrays ------------------------------------------------------------------------------------------


@st.composite
def values_of(draw: st.DrawFn, types: list[Any]) -> np.ndarray:
    """Arrays of every rank up to 4, with empty axes; numbers of any bits."""
    dtype = np.dtype(draw(st.sampled_from(types)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    if dtype.kind in "iufc" or dtype in (ml_dtypes.bfloat16, "V3"):
        count = int(np.prod(shape)) * dtype.itemsize
        raw = draw(st.binary(min_size=count, max_size=count))
        return np.frombuffer(raw, dtype).reshape(shape)
    return draw(hnp.arrays(dtype, shape))


@st.composite
def arrays_of(draw: st.DrawFn, types: list[Any]) -> tuple[np.ndarray, Array]:
    """Values in logical order, and an array of them in any index order."""
    values = draw(values_of(types))
    order = draw(st.sampled_from(["C", "F", None]))
    data = np.ascontiguousarray(values.T).reshape(values.shape[::-1]) if order == "F" else values
    dims = data.shape[::-1]
    array = Array(element_of(data.dtype), dims, name="x", index_order=order, data=data)
    return values, array


@pytest.mark.parametrize("name", PLUGINS)
@settings(max_examples=rounds(100, 50))  # beside the arrays of the kit
@given(st.data())
def test_round_trip(name: str, folder: Path, data: st.DataObject) -> None:
    """What is not refused comes back: bit for bit if nothing was said."""
    types = ["?", "u1", "<u2", ">u2"] if name == "png" else [*TYPES, ml_dtypes.bfloat16]
    values, array = data.draw(arrays_of(types))
    path = emptied(folder) / f"x.{name}"
    try:
        report = write(PLUGINS[name], [array], path)
    except WouldLose:
        assert os.listdir(folder) == []
        return
    (got,) = decode(read(PLUGINS[name], path))
    if array.index_order is None and PLUGINS[name].FORMAT.index_orders == "F":
        values = values.T  # axes that are only listed are taken as they stand

    judge = keeps_values if any(f.property != "metadata" for f in report.equivalent) else same
    assert judge(values, got)


@pytest.mark.parametrize(
    ("encoding", "types"),
    [
        ("leb128", ["?", *(f"<{code}" for code in NUMBERS[:8]), ">i4", ">u8"]),
        ("lz4", TYPES),
        ("bits", ["?"]),
    ],
    ids=["leb128", "lz4", "bits"],
)
@given(st.data())
def test_round_trip_through_an_encoding(
    encoding: str, types: list[Any], folder: Path, data: st.DataObject
) -> None:
    values, array = data.draw(arrays_of(types))
    path = emptied(folder) / "x.ra"

    write(PLUGINS["ra"], [array], path, out_opts={"encoding": encoding})

    assert same(values, decode(read(PLUGINS["ra"], path))[0])


@given(values_of([*TYPES, ml_dtypes.bfloat16]))
def test_fast_round_trip(folder: Path, values: np.ndarray) -> None:
    """`raconvert.ra.write` and `read`; what is inside user elements is not in the file."""
    raconvert.ra.write(folder / "fast.ra", values)

    got = raconvert.ra.read(folder / "fast.ra")

    if element_of(values.dtype).kind == "user":
        assert (got.shape, got.tobytes()) == (values.shape, values.tobytes())
    else:
        assert same(values, got)


@given(arrays_of(TYPES), st.integers(1, 200))
def test_blocks_make_up_the_whole(drawn: tuple[np.ndarray, Array], max_bytes: int) -> None:
    values, array = drawn
    stored = values.T if array.index_order == "F" else values

    pieces = [block.tobytes() for block in blocks(array, max_bytes)]

    assert all(len(piece) <= max(max_bytes, array.element.nbytes) for piece in pieces)
    little = np.ascontiguousarray(stored).astype(np.asarray(stored).dtype.newbyteorder("<"))
    expected = little if values.dtype.kind in "iufcb" else stored
    assert b"".join(pieces) == expected.tobytes()


@given(hnp.array_shapes(min_dims=0, max_dims=5, max_side=6), st.integers(1, 300))
def test_slabs_cover_every_element_once_in_order(shape: tuple[int, ...], max_bytes: int) -> None:
    numbers = np.arange(int(np.prod(shape))).reshape(shape)

    found = [numbers[key or ()].ravel() for key in slabs(shape, 1, max_bytes)]

    assert np.concatenate(found).tolist() == numbers.ravel().tolist()


@given(values_of(["<i4", "<f8"]), st.data())
def test_permuted_axes_are_those_of_numpy(
    folder: Path, values: np.ndarray, data: st.DataObject
) -> None:
    assume(values.ndim)
    axes = data.draw(st.permutations(range(values.ndim)))
    source = np.asarray(values, order=data.draw(st.sampled_from("CF")))
    np.save(emptied(folder) / "x.npy", source)

    raconvert.convert(folder / "x.npy", folder / "y.npy", axes=",".join(map(str, axes)), sync=False)

    assert same(values.transpose(axes), np.load(folder / "y.npy"))


@given(st.sampled_from(TYPES))
def test_element_of_and_dtype_of_are_inverse(dtype: Any) -> None:
    assert dtype_of(element_of(np.dtype(dtype))) == np.dtype(dtype)


# Headers -----------------------------------------------------------------------------------------

WIDTHS = {0: (1, 3, 16, 1000), 1: (1, 2, 4, 8, 16), 2: (1, 2, 4, 8, 16), 3: (2, 4, 8, 16)}
WIDTHS |= {4: (4, 8, 16, 32), 5: (1, 2)}


@st.composite
def headers(draw: st.DrawFn) -> Header:
    eltype = draw(st.sampled_from(sorted(WIDTHS)))
    elbyte = draw(st.sampled_from(WIDTHS[eltype]))
    dims = tuple(draw(st.lists(st.integers(0, 50), max_size=12)))
    assume(np.prod([length or 1 for length in dims], dtype=object) * elbyte < 2**63)
    size = int(np.prod(dims, dtype=object)) * elbyte
    return Header(draw(st.sampled_from([0, 1])), eltype, elbyte, size, dims)


@given(headers())
def test_header_is_what_was_packed(header: Header) -> None:
    packed = pack(header)

    assert unpack(packed, 1 << 40, "x.ra") == header
    assert packed == ra_bytes.ra_file(
        header.eltype, header.elbyte, header.dims, b"", flags=header.flags, size=header.size
    )


@given(headers(), st.floats(0, 1))
def test_header_that_is_not_whole_asks_for_more(header: Header, part: float) -> None:
    packed = pack(header)
    length = 48 + int(part * (len(packed) - 48))
    assume(length < len(packed))

    with pytest.raises(NeedMore) as more:
        unpack(packed[:length], 1 << 40, "x.ra")
    assert more.value.args == (len(packed),)


NUMBER = st.one_of(
    st.integers(0, 9),
    st.sampled_from([16, 32, 48, 2**31, 2**32, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1]),
    st.integers(0, 2**64 - 1),
)


@st.composite
def wild_ra(draw: st.DrawFn) -> bytes:
    """Files with the right magic and any numbers behind it, most of them nearly plausible."""
    eltype, elbyte = draw(st.integers(0, 6)), draw(st.sampled_from([0, 1, 2, 4, 8, 16, 32]))
    dims = draw(st.lists(NUMBER, max_size=4))
    data = draw(st.binary(max_size=60))
    flags = draw(st.sampled_from([0, 1, 2, 3, 4, 6, 7]))
    size = draw(st.sampled_from([len(data), int(np.prod(dims, dtype=object)) * elbyte, 2**63]))
    ndims = draw(st.sampled_from([len(dims)] * 9 + [0, 2**60]))
    return ra_bytes.ra_file(
        eltype, elbyte, dims, data, flags=flags, size=size % 2**64, ndims=ndims
    )  # fmt: skip


@given(wild_ra())
def test_any_header_is_read_or_refused(contents: bytes) -> None:
    try:
        header = unpack(contents, len(contents), "x.ra")
        encodings_of(header, len(contents), "x.ra")
    except RaconvertError as error:
        assert "x.ra" in str(error)  # noqa: PT017 - not being raised is fine, too
    else:
        assert contents.startswith(pack(header))


# Arbitrary bytes ---------------------------------------------------------------------------------


def must_decode_or_refuse(plugin: ModuleType, path: Path, contents: bytes) -> None:
    """Decode a file to its end; only an error of ours that names the file may stop it."""
    path.write_bytes(contents)
    try:
        decode(plugin.read(Source(str(path), max_memory=1 << 26)))
    except RaconvertError as error:
        assert str(path) in str(error)  # noqa: PT017 - not being raised is fine, too


@given(wild_ra())
def test_any_ra(folder: Path, contents: bytes) -> None:
    must_decode_or_refuse(PLUGINS["ra"], folder / "x.ra", contents)


@given(wild_ra())
def test_any_ra_by_the_fast_path(folder: Path, contents: bytes) -> None:
    path = folder / "fast.ra"
    path.write_bytes(contents)
    try:
        raconvert.ra.read(path)
    except RaconvertError as error:
        assert str(path) in str(error)  # noqa: PT017 - not being raised is fine, too


DESCR_WORDS = st.sampled_from(
    ["<", ">", "|", "=", "i4", "f8", "b1", "U3", "S0", "O", "V9", "M8[ns]", "m8", "f16", "c8", "9", ","]
)  # fmt: skip
DESCR = st.one_of(
    st.lists(DESCR_WORDS, max_size=4).map("".join).map(repr),
    st.text(max_size=8).map(repr),
    st.lists(st.tuples(st.text(max_size=2), st.sampled_from(["<i4", "|S2", "O", "<f8"])), max_size=3).map(repr),
    st.tuples(st.sampled_from(["<i4", "|V2"]), st.lists(st.integers(-1, 3), max_size=3).map(tuple)).map(repr),
    st.sampled_from(["None", "1", "[]", "[('a',)]", "{'a': 1}", "b'<i4'", "[[]]", "'' * 9"]),
)  # fmt: skip
SHAPE = st.one_of(
    st.lists(st.integers(-1, 5), max_size=4).map(tuple).map(repr),
    st.sampled_from(["(2**70,)", "(True,)", "(1.0,)", "3", "None", "(0, 1 << 62)", "(9" * 30, "(-0,)"]),
    st.integers(0, 2**70).map(lambda n: f"({n},)"),
)  # fmt: skip


@st.composite
def wild_npy(draw: st.DrawFn) -> bytes:
    """Files with the right magic and a header that is nearly one."""
    order = draw(st.sampled_from(["True", "False", "1", "None"]))
    text = f"{{'descr': {draw(DESCR)}, 'fortran_order': {order}, 'shape': {draw(SHAPE)}, }}"
    text = draw(st.sampled_from([text, text + "\n", text[:-1], text.replace("'", '"'), text * 2]))
    version = draw(st.sampled_from([(1, 0), (2, 0), (3, 0), (1, 1), (4, 0)]))
    raw = text.encode("utf-8", "surrogatepass")
    width = 2 if version[0] == 1 else 4
    length = draw(st.sampled_from([len(raw)] * 6 + [0, len(raw) + 5, 65535]))
    head = b"\x93NUMPY" + bytes(version) + length.to_bytes(width, "little")
    return head + raw + draw(st.binary(max_size=60))


@given(wild_npy())
@example(b"\x93NUMPY\x01\0\x0a\0" + b"[" * 10)
@example(b"\x93NUMPY\x02\0\x40\x9c\0\0" + b"(" * 40000)
def test_any_npy(folder: Path, contents: bytes) -> None:
    must_decode_or_refuse(PLUGINS["npy"], folder / "x.npy", contents)


@given(wild_npy(), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.text(max_size=6))
def test_any_member_of_npz(folder: Path, contents: bytes, method: int, name: str) -> None:
    file = io.BytesIO()
    try:
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr(f"{name}.npy", contents)
    except (ValueError, IndexError):  # a name that zipfile cannot write
        assume(False)

    must_decode_or_refuse(PLUGINS["npz"], folder / "x.npz", file.getvalue())


CHUNK_TYPES = st.sampled_from(
    b"IHDR PLTE IDAT IEND tRNS tEXt zTXt iTXt iCCP gAMA cHRM pHYs sBIT bKGD hIST tIME sPLT eXIf acTL fcTL fdAT "
    b"abCd ABCD".split()
)  # fmt: skip
SIDE = st.one_of(st.integers(1, 6), st.sampled_from([0, 2**31 - 1, 2**31, 2**32 - 1]))


@st.composite
def wild_png(draw: st.DrawFn) -> bytes:
    """Files of chunks with right checksums, in any order and with any content."""
    width, height = draw(SIDE), draw(SIDE)
    depth, color = draw(st.sampled_from([1, 2, 4, 8, 16])), draw(st.sampled_from([0, 2, 3, 4, 6]))
    header = struct.pack(">2I5B", width, height, depth, color, 0, 0, draw(st.integers(0, 1)))
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    row = min(-(-width * depth * samples // 8), 99) + 1
    pixels = draw(st.binary(max_size=200)) or bytes(row * min(height, 99))
    palette = draw(st.binary(max_size=30))
    plain = [(b"IHDR", header), (b"PLTE", palette)][: 1 + (color == 3)]
    plain += draw(st.lists(st.tuples(CHUNK_TYPES, st.binary(max_size=40)), max_size=3))
    plain += [(b"IDAT", zlib.compress(pixels)), (b"IEND", b"")]
    if draw(st.booleans()):
        plain = draw(st.permutations(plain))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in plain
    )


@given(wild_png())
def test_any_png(folder: Path, contents: bytes) -> None:
    must_decode_or_refuse(PLUGINS["png"], folder / "x.png", contents)


@given(wild_png())
def test_any_animation(folder: Path, contents: bytes) -> None:
    path = folder / "animated.png"
    path.write_bytes(contents)
    try:
        source = Source(str(path), max_memory=1 << 26)
        decode(PLUGINS["png"].read(source, frames="all", palette="indices", depth="native"))
    except RaconvertError as error:
        assert str(path) in str(error)  # noqa: PT017 - not being raised is fine, too


@pytest.mark.parametrize("name", PLUGINS)
@given(data=st.data())
def test_sample_with_any_changes(name: str, folder: Path, data: st.DataObject) -> None:
    """Bytes overwritten, inserted and cut out anywhere in a whole file."""
    (sample, whole), *beside = PLUGINS[name].FORMAT.samples.items()
    for other, unchanged in beside:  # SciDB's schema
        if other.startswith(f"{sample}."):
            (folder / other).write_bytes(unchanged)
    contents = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(contents)))
        stop = data.draw(st.integers(start, min(len(contents), start + 12)))
        contents[start:stop] = data.draw(st.binary(max_size=12))

    must_decode_or_refuse(PLUGINS[name], folder / sample, bytes(contents))


@pytest.mark.parametrize("name", PLUGINS)
@given(tail=st.binary(max_size=300))
def test_anything_behind_the_magic(name: str, folder: Path, tail: bytes) -> None:
    offset, magic = next(iter(PLUGINS[name].FORMAT.magic), (0, b""))
    sample = next(iter(PLUGINS[name].FORMAT.samples))

    path = emptied(folder) / sample
    must_decode_or_refuse(PLUGINS[name], path, bytes(offset) + magic + tail)


# Sidecars ----------------------------------------------------------------------------------------

FIELDS = ["index_order", "dtype", "description", "units", "axes", "attributes", "formats", "items"]
KEYS = st.one_of(st.sampled_from(FIELDS), st.text(max_size=4))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates(),
    st.datetimes(), st.binary(max_size=4), st.sampled_from(["F", "C", "<f4", "|O", "<U3", "no"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.one_of(st.text(max_size=200).map(str.encode), st.binary(max_size=200)))
@example(b"a: &x [1]\nb: *x\n")
@example(b"[" * 100)
@example(b"{" * 10_000)
@example(b"!!python/object/apply:os.system ['true']")
@example(b"a: 9999-99-99\n")
@example(b"? {a: b}\n: c\n")
@example(b"2001-01-01T00:00:60Z: 1\n")
@example(b"a: 0x\n")
@example(b"a: 1" + b":59" * 500)
@example(b"a: " + b"9" * 10_000)
@example(b"a: .\n")
@example(b"<<: 3\n")
@example(b"=: 1\n")
def test_any_text_is_no_reason_for_a_foreign_error(text: bytes) -> None:
    try:
        assert isinstance(sidecar.parse(text, "x.yaml", DEFAULT), dict)
    except RaconvertError as error:
        assert "x.yaml" in str(error)  # noqa: PT017 - not being raised is fine, too


@given(st.dictionaries(KEYS, VALUES, max_size=5))
@example({"axes": [{"labels": 3}, {"name": []}]})
@example({"formats": {"ra": {"eltype": "x", "elbyte": [1]}}})
@example({"formats": {"ra": {"trailer": 5}}})
@example({"formats": {1: {}}})
@example({"dtype": [["a"]]})
@example({"dtype": []})
@example({"attributes": {1: 2}, "description": 3})
@example({"items": True})
def test_any_sidecar_fields(folder: Path, fields: dict[str, Any]) -> None:
    """Read the array beside it, and write it to another file, with whatever its sidecar says."""
    path = emptied(folder) / "x.ra"
    path.write_bytes(ra_bytes.ra_file(0, 8, (3, 2), bytes(range(48))))
    facts = sidecar.describe(Source(str(path)), data_range)
    text = yaml.safe_dump({"describes": facts} | {k: v for k, v in fields.items() if k != "describes"},
                          sort_keys=False)  # fmt: skip
    (folder / "x.ra.yaml").write_text(text, encoding="utf-8")
    try:
        raconvert.convert(path, folder / "y.ra", sync=False)
        raconvert.read(folder / "y.ra")
        raconvert.info(path)
        raconvert.convert(path, folder / "y.npy", sync=False)
    except RaconvertError as error:
        assert str(error)  # noqa: PT017 - not being raised is fine, too


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.text(), st.text(), st.dictionaries(st.text(), PLAIN, max_size=4))
@example("", "no", {"yes": "1e3", "0x10": "2001-01-01", "~": "null", "=": "<<"})
@example("\x00\x07\x85\u2028\ufeff", "\r\n", {"\t": "\x1b"})
def test_metadata_comes_back(
    folder: Path, description: str, units: str, attributes: dict[str, Any]
) -> None:
    meta = Metadata(description=description, units=units, attributes=attributes)
    path = emptied(folder) / "x.ra"

    raconvert.write(path, np.zeros(2), meta=meta)

    with raconvert.open(path) as array:
        assert array.meta.to_dict() == meta.to_dict()
