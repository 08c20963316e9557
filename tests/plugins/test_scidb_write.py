"""Writing SciDB binary: byte for byte the way back, new arrays, and SciDB-Py as the reader."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scidb_records
import yaml
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from raconvert.plugins import scidb
from raconvert.plugins.scidb import writer
from raconvert.plugins.scidb.schema import parse_schema
from scidb_records import CORPUS

import raconvert
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import as_ndarray
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, TargetExists, WouldLose
from raconvert.files.limits import DEFAULT
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.plugin import EQUIVALENT, REFUSED
from raconvert.testing import filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "scidb" / "good"


def read(path: Path, max_memory: int = 1 << 26, **options: str) -> Bundle:
    """Read with the plugin."""
    return scidb.read(Source(str(path), max_memory=max_memory), **options)


def unsealed(path: Path) -> str:
    """Return the text of a schema file without the line that ties it to its records."""
    lines = path.read_text().splitlines(keepends=True)
    assert lines[-1].startswith("-- raconvert seal: ")
    return "".join(lines[:-1])


def written(bundle: Bundle, path: Path, *, max_memory: int = 1 << 26, **options: str) -> bytes:
    """Write with the plugin, replacing what is there; return the bytes of the records."""
    with Target(str(path), overwrite=True, max_memory=max_memory) as target:
        scidb.plan(bundle, **options).write(target)
        target.commit(sync=False)
    return path.read_bytes()


def bundle_of(**arrays: np.ndarray) -> Bundle:
    """Return a bundle over ndarrays in C order."""
    return Bundle(
        [
            Array(element_of(v.dtype), v.shape[::-1], name=name, index_order="C", data=v)
            for name, v in arrays.items()
        ]
    )


def through_yaml(bundle: Bundle) -> Bundle:
    """Return the bundle as it comes from a folder: data in memory, metadata through YAML."""
    arrays = []
    for array in bundle.arrays:
        text = sidecar.dump({"meta": array.meta.to_dict()})
        meta = Metadata.from_dict(yaml.safe_load(text)["meta"] or {})
        arrays.append(array.replace(data=as_ndarray(array), extent=None, meta=meta, storage={}))
    formats = yaml.safe_load(sidecar.dump({"formats": bundle.formats}))["formats"]
    return Bundle(arrays, formats=formats)


def corpus_options(folder: Path, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the expected facts of a file of the corpus, and the options to read it."""
    facts = json.loads((folder / f"{name}.expected.json").read_text())
    return facts, {"schema": facts["schema"], "format": facts["format"], **CORPUS[name]}


# --- the way back -------------------------------------------------------------------------------

WAYS: list[dict[str, str]] = [{}, {"layout": "flat"}, {"records": "raw"}]


@every("extra", WAYS, ids=str)
@every("name", CORPUS)
def test_corpus_comes_back_byte_for_byte(
    name: str, extra: dict[str, str], corpus: Callable[..., Path], tmp_path: Path
) -> None:
    path = corpus("scidb", name)
    _, options = corpus_options(path.parent, name)
    bundle = through_yaml(read(path, **options, **extra))

    assert scidb.plan(bundle).fits == []
    out = tmp_path / "x.scidb"
    assert written(bundle, out) == path.read_bytes()

    again = read(out)  # the schema file beside it says all
    assert again.names == bundle.names
    assert [array.dims for array in again.arrays] == [array.dims for array in bundle.arrays]
    assert written(again, tmp_path / "y.scidb") == path.read_bytes()
    assert unsealed(tmp_path / "y.scidb.schema").replace("y.scidb", "x.scidb").replace(
        ", y)", ", x)"
    ) == unsealed(tmp_path / "x.scidb.schema")


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize("name", ["vendor_intensity_data.bin", "skip_forms.scidb"])
def test_through_a_bundle_on_disk(
    name: str, kind: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    path = corpus("scidb", name)
    _, options = corpus_options(path.parent, name)
    between = tmp_path / {"folder": "b/", "zip": "b.zip", "tar": "b.tar"}[kind]
    target = f"{between}/" if kind == "folder" else str(between)

    raconvert.convert(path, target, from_="scidb", in_opts=options, sync=False)
    raconvert.convert(between, tmp_path / "x.scidb", sync=False, strict=True)

    assert (tmp_path / "x.scidb").read_bytes() == path.read_bytes()


def test_records_through_one_ra_file(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("scidb", "all_types_nullable.scidb")
    _, options = corpus_options(path.parent, path.name)
    for file, given_options in ((path, options), (FIXTURES / "fixed_4x5.scidb", {})):
        core, back = tmp_path / "x.ra", tmp_path / "x.scidb"

        raconvert.convert(file, core, overwrite=True, in_opts={**given_options, "records": "raw"})
        raconvert.convert(core, back, overwrite=True)

        assert core.read_bytes().endswith(file.read_bytes())
        assert back.read_bytes() == file.read_bytes()
        assert read(back).names == ["records"]
        assert len(read(back, records="attributes").names) > 4


def test_one_attribute_through_one_ra_file(tmp_path: Path) -> None:
    """The RA metadata carries schema and format string, without a bundle around it."""
    source = tmp_path / "a.scidb"
    source.write_bytes(struct.pack("<3i", 1, 2, 3))
    schema = "A<v:int32 NOT NULL DEFAULT 7>[i=5:7,2,0]"

    raconvert.convert(source, tmp_path / "x.ra", in_opts={"schema": schema})
    raconvert.convert(tmp_path / "x.ra", tmp_path / "b.scidb", strict=True)

    assert (tmp_path / "b.scidb").read_bytes() == source.read_bytes()
    assert (tmp_path / "b.scidb.schema").read_text().startswith(schema + "\nformat: (int32)\n")


@given(data=st.data())
def test_any_records_come_back(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Any types, prefixes, counts, payloads behind nulls and skipped bytes, in any blocks."""
    kinds = [*scidb_records.SIZES, "string", "binary", "skip", "string(5)", "skip(7)", "point"]
    parts = data.draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.booleans()), min_size=1, max_size=5)
    )
    text = "(" + ", ".join(kind + " null" * null for kind, null in parts) + ")"
    record = []
    for kind, size, null in scidb_records.columns(text):
        least, most = {"point": (3, 3)}.get(kind, (0, 9) if size is None else (size, size))
        record.append(st.tuples(st.integers(0, 255) if null else st.none(),
                                st.binary(min_size=least, max_size=most)))  # fmt: skip
    records = data.draw(st.lists(st.tuples(*record), max_size=9))
    raw = b""
    for one in records:
        for (prefix, value), (kind, size, null) in zip(
            one, scidb_records.columns(text), strict=True
        ):
            raw += bytes([prefix]) if null else b""
            raw += struct.pack("<I", len(value)) if size is None and kind != "point" else b""
            raw += value
    folder = tmp_path_factory.getbasetemp()
    path = folder / "any.scidb"
    path.write_bytes(raw)
    bundle = through_yaml(read(path, format=text, types="point=3"))

    out = folder / "again.scidb"
    assert scidb.plan(bundle).fits == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "LEAST_BLOCK", data.draw(st.integers(1, 50)))
        patch.setattr(writer, "block_bytes", lambda _: data.draw(st.integers(1, 200)))
        assert written(bundle, out) == raw
    assert read(out).names == bundle.names


@given(data=st.data())
def test_chunk_order_comes_back(data: st.DataObject, tmp_path_factory: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    count = int(np.prod(shape))
    raw = np.random.default_rng(count).bytes(25 * count)
    path = tmp_path_factory.getbasetemp() / "chunks.scidb"
    path.write_bytes(raw)
    dims = ",".join(
        f"d{k}=0:{n - 1},{c},0" for k, (n, c) in enumerate(zip(shape, chunks, strict=True))
    )
    bundle = read(
        path, schema=f"<v:double,t:datetimetz>[{dims}]", format="(double null, datetimetz)"
    )

    out = path.with_name("again.scidb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "LEAST_BLOCK", data.draw(st.integers(1, 200)))
        patch.setattr(writer, "block_bytes", lambda _: 1)
        assert written(through_yaml(bundle), out) == raw
    again = read(out)
    assert [array.shape for array in again.arrays] == [array.shape for array in bundle.arrays]
    assert np.array_equal(again["t"][...], bundle["t"][...])


def test_scattered_cells_come_back_in_their_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cells = rng.permutation(600)[:200]
    rows = np.zeros(200, [("i", "<i8"), ("j", "<i8"), ("n", "u1"), ("v", "<f8")])
    rows["i"], rows["j"] = cells // 30 - 4, cells % 30 + 7
    rows["n"], rows["v"] = rng.integers(0, 256, 200), rng.random(200)
    path = tmp_path / "x.scidb"
    path.write_bytes(rows.tobytes())
    bundle = read(
        path, schema="<v:double>[i=-4:15; j=7:36]", format="(int64, int64, double null)",
        coords="before", layout="dense",
    )  # fmt: skip

    assert bundle["v"].shape == (20, 30)
    assert written(through_yaml(bundle), tmp_path / "y.scidb") == path.read_bytes()
    assert read(tmp_path / "y.scidb").names == ["v", "v.null", "cells"]


def test_canonical_form(corpus: Callable[..., Path], tmp_path: Path) -> None:
    path = corpus("scidb", "skip_forms.scidb")
    facts, options = corpus_options(path.parent, path.name)
    bundle = read(path, **options)

    out = tmp_path / "x.scidb"
    assert written(bundle, out, mode="canonical").hex() == facts["canonical_hex"]
    [fit] = scidb.plan(bundle, mode="canonical").fits
    assert (fit.outcome, fit.property) == (EQUIVALENT, "storage")


def test_canonical_nulls_and_strings(tmp_path: Path) -> None:
    def text(value: bytes, prefix: int = 0xFF) -> bytes:
        return bytes([prefix]) + struct.pack("<I", len(value)) + value

    path = tmp_path / "x.scidb"
    values = [b"", b"a", b"b\0", b"c\0d\0", b"\0\0", b"junk"]
    prefixes = [255, 128, 255, 255, 200, 7]
    path.write_bytes(
        b"".join(
            text(v, p) + bytes([p]) + b"\x11\x22" for v, p in zip(values, prefixes, strict=True)
        )
    )
    bundle = read(path, format="(string null, int16 null)")

    got = scidb_records.decode(
        written(bundle, tmp_path / "y.scidb", mode="canonical"), "(string null, int16 null)"
    )

    assert [row[0] for row in got] == [
        (255, b"\0"), (255, b"a\0"), (255, b"b\0"), (255, b"c\0"), (255, b"\0"), (7, b""),
    ]  # fmt: skip
    assert [row[1] for row in got] == [(255, b"\x11\x22")] * 5 + [(7, b"\0\0")]


def test_what_was_changed_is_written_anew(tmp_path: Path) -> None:
    """Arrays that are left out, cast or renamed make another schema; nothing is made up."""
    bundle = read(FIXTURES / "fixed_4x5.scidb")
    chosen = Bundle([bundle["b"], bundle["b.null"], bundle["t"]], formats=bundle.formats)
    raw = written(chosen, tmp_path / "x.scidb")

    whole = scidb_records.decode((FIXTURES / "fixed_4x5.scidb").read_bytes(),
                                 "(int64, double null, int16 null, bool, uint32, datetime)")  # fmt: skip
    assert scidb_records.decode(raw, "(double null, datetime)") == [[r[1], r[5]] for r in whole]
    text = (tmp_path / "x.scidb.schema").read_text()
    assert text.startswith("<b:double, t:datetime NOT NULL>[i=0:3:0:4; j=-2:2:0:5]\n")

    lonely = Bundle([bundle["b.null"]], formats=bundle.formats)
    written(lonely, tmp_path / "y.scidb")
    assert read(tmp_path / "y.scidb").names == ["b.null"]

    cast = bundle["b"].replace(
        data=bundle["b"][...].astype("i4"), element=element_of(np.dtype("i4"))
    )
    written(Bundle([cast, bundle["b.null"]], formats=bundle.formats), tmp_path / "z.scidb")
    assert "<b:int32>" in (tmp_path / "z.scidb.schema").read_text()


def test_companions_by_their_names(tmp_path: Path) -> None:
    arrays = {
        "v": np.arange(3.0),
        "v.null": np.array([255, 0, 9], "u1"),
        "s.offsets": np.array([0, 2, 2, 4], "i8"),
        "s.bytes": np.frombuffer(b"a\0b\0", "u1"),
        "s.null": np.array([255, 1, 255], "u1"),
    }

    raw = written(bundle_of(**arrays), tmp_path / "x.scidb", companions="names")

    there, gone = (255, struct.pack("<d", 0)), (0, struct.pack("<d", 1))
    assert scidb_records.decode(raw, "(double null, binary null)")[:2] == [
        [there, (255, b"a\0")], [gone, (1, b"")],
    ]  # fmt: skip
    assert read(tmp_path / "x.scidb").names == ["v", "v.null", "s.offsets", "s.bytes", "s.null"]

    plain = {name: arrays[name] for name in ("v", "v.null")}
    written(bundle_of(**plain), tmp_path / "y.scidb")
    assert (
        (tmp_path / "y.scidb.schema").read_text().startswith('<v:double NOT NULL, "v.null":uint8')
    )


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([1, 2, 2, 4], "does not begin with 0"),
        ([0, 3, 2, 4], "do not fit its bytes"),
        ([0, 2, 2, 5], "do not fit its bytes"),
        ([0, 2, 2, 3], "1 bytes more"),
        ([0, -1, 2, 4], "do not fit its bytes"),
    ],
)
def test_offsets_that_are_wrong(offsets: list[int], words: str, tmp_path: Path) -> None:
    bundle = bundle_of(**{"s.offsets": np.array(offsets), "s.bytes": np.zeros(4, "u1")})

    with pytest.raises(Corrupt, match=words):
        written(bundle, tmp_path / "x.scidb", companions="names")
    assert os.listdir(tmp_path) == []


def test_cells_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.scidb"
    path.write_bytes(struct.pack("<dq", 1.5, 1))
    bundle = read(
        path, schema="<v:double>[i=0:3]", format="(double, int64)", coords="after", layout="dense"
    )
    bundle.arrays[1] = bundle.arrays[1].replace(data=np.array([4]))

    with pytest.raises(Corrupt, match="places outside.*0 to 3"):
        written(bundle, tmp_path / "y.scidb")


@pytest.mark.parametrize(
    "space",
    [
        {"schema": "<", "format": "(int8)"},
        {"schema": "<v:int8>[i]", "format": "(int8"},
        {"schema": 5, "format": ["x"]},
        {"format": "(point)", "types": {"point": "x"}},
        {"format": "(int8, int8)", "schema": "<v:int8>[i]"},
        {"format": "(int8)", "records": "raw"},
        "text",
    ],
)
def test_metadata_that_was_changed_by_hand_is_not_trusted(space: Any, tmp_path: Path) -> None:
    bundle = bundle_of(v=np.arange(3, dtype="i2"))
    bundle.formats = {"scidb": space}
    for own in ({}, {"role": "values", "attribute": 7, "column": "x", "type": "point(("},
                {"role": "records"}, {"role": "null", "attribute": "v"}):  # fmt: skip
        bundle.arrays[0].meta = bundle.arrays[0].meta.replace(formats={"scidb": own})

        assert written(bundle, tmp_path / "x.scidb") == np.arange(3, dtype="<i2").tobytes()


# --- new arrays ---------------------------------------------------------------------------------

# type: the column of the format string, and what `fits` says: nothing, or outcome and property
TYPES: dict[str, tuple[str, tuple[str, str] | None]] = {
    **{
        f"<{k}{n}": (f"{w}{8 * n}", None)
        for k, w in (("i", "int"), ("u", "uint"))
        for n in (2, 4, 8)
    },
    "i1": ("int8", None),
    "u1": ("uint8", None),
    ">i4": ("int32", None),
    "<f4": ("float", None),
    "<f8": ("double", None),
    ">f8": ("double", None),
    "V5": ("binary(5)", None),
    "<f2": ("float", (EQUIVALENT, "type")),
    "?": ("bool", (EQUIVALENT, "type")),
    "S3": ("binary(3)", (EQUIVALENT, "type")),
    "<M8[s]": ("datetime", (EQUIVALENT, "type")),
    "<c8": ("float", (EQUIVALENT, "shape")),
    "<c16": ("double", (EQUIVALENT, "shape")),
    "<U2": ("binary(8)", (REFUSED, "type")),
    "<M8[ns]": ("binary(8)", (REFUSED, "type")),
    "<m8[s]": ("binary(8)", (REFUSED, "type")),
}


@pytest.mark.parametrize("code", TYPES)
def test_types(code: str, tmp_path: Path) -> None:
    column, said = TYPES[code]
    values = filled(np.dtype(code), (2, 3))
    bundle = bundle_of(v=values)

    fits = [(fit.outcome, fit.property) for fit in scidb.plan(bundle).fits]
    assert fits == ([said] if said else [])
    raw = written(bundle, tmp_path / "x.scidb")

    assert f"\nformat: ({column})\n" in (tmp_path / "x.scidb.schema").read_text()
    little = values.astype(values.dtype.newbyteorder("<")) if code[0] == ">" else values
    wide = little.astype("<f4") if code == "<f2" else little
    assert raw == wide.tobytes()


def test_refused_types_need_their_flag(tmp_path: Path) -> None:
    values = np.array(["é", "日本"])
    with pytest.raises(WouldLose, match=r'allow=\["dtype"\]'):
        raconvert.write(tmp_path / "x.scidb", values)
    assert os.listdir(tmp_path) == []


def test_schema_of_several_arrays(tmp_path: Path) -> None:
    axes = [Axis(name="x", origin=-3), Axis(name="time")]
    one = Array(element_of(np.dtype("<i4")), (3, 2), name="one", index_order="C",
                data=np.arange(6, dtype="<i4").reshape(2, 3), meta=Metadata(axes=axes[::-1]))  # fmt: skip
    two = bundle_of(**{"two words": np.arange(6.0).reshape(2, 3)}).arrays[0]
    bundle = Bundle([one, two])

    assert scidb.plan(bundle).fits == []
    raw = written(bundle, tmp_path / "x.scidb")

    assert raw == b"".join(struct.pack("<id", n, n) for n in range(6))
    assert unsealed(tmp_path / "x.scidb.schema") == (
        '<one:int32 NOT NULL, "two words":double NOT NULL>[time=0:1:0:2; x=-3:-1:0:3]\n'
        "format: (int32, double)\n"
        "-- To load it, in the folder of the file, on the machine of instance 0:\n"
        '-- iquery -anq "store(input(<one:int32 NOT NULL, \\"two words\\":double NOT NULL>'
        "[time=0:1:0:2; x=-3:-1:0:3], '$PWD/x.scidb', -2, '(int32, double)'), x)\"\n"
    )
    again = read(tmp_path / "x.scidb")
    assert again.names == ["one", "two words"]
    assert [(axis.name, axis.origin) for axis in again["one"].ra_axes] == [
        ("x", -3),
        ("time", None),
    ]


def test_the_load_line_is_one_word_for_the_shell(tmp_path: Path) -> None:
    name = "a$HOME`id`\"q'x.scidb"
    raw = written(bundle_of(**{"b$c": np.zeros(2, "i1")}), tmp_path / name)
    text = (tmp_path / f"{name}.schema").read_text()
    line = text.splitlines()[-2].removeprefix("-- iquery -anq ")

    done = subprocess.run(
        ["sh", "-c", f"printf %s {line}"], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert raw == bytes(2)
    quoted = name.replace("'", "\\'")
    assert done.stdout == (
        f"store(input(<b$c:int8 NOT NULL>[i=0:1:0:2], '{tmp_path}/{quoted}', -2, '(int8)'), A)"
    )


@pytest.mark.parametrize("coords", ["after", "before"])
def test_coordinates_as_columns(coords: str, tmp_path: Path) -> None:
    values = np.arange(6, dtype="<i4").reshape(2, 3)

    raw = written(bundle_of(v=values), tmp_path / "x.scidb", coords=coords)

    form = "(int32, int64, int64)" if coords == "after" else "(int64, int64, int32)"
    rows = [
        [scidb_records.value(kind, value) for (_, value), (kind, _, _) in
         zip(row, scidb_records.columns(form), strict=True)]
        for row in scidb_records.decode(raw, form)
    ]  # fmt: skip
    expected = [[int(values[i, j]), i, j] for i in range(2) for j in range(3)]
    assert rows == (expected if coords == "after" else [[i, j, v] for v, i, j in expected])
    assert "redimension(input(" in (tmp_path / "x.scidb.schema").read_text()
    [again] = read(tmp_path / "x.scidb").arrays
    assert np.array_equal(again[...], values)


def test_one_shape_for_all(tmp_path: Path) -> None:
    bundle = bundle_of(a=np.zeros((2, 3)), b=np.zeros((3, 2)), c=np.zeros(6))

    found = [(fit.outcome, fit.array, fit.property, fit.flag) for fit in scidb.plan(bundle).fits]

    assert found == [(REFUSED, "b", "shape", None), (REFUSED, "c", "shape", None)]
    assert "--array" in scidb.plan(bundle).fits[0].reason


@pytest.mark.parametrize("name", ["", 'a"b', "a\nb", "\ud800", "x" * 2000, "\x7f"])
def test_names_that_afl_cannot_hold(name: str) -> None:
    [fit] = scidb.plan(bundle_of(ok=np.zeros(2), **{name: np.zeros(2)})).fits

    assert (fit.outcome, fit.array, fit.property) == (REFUSED, name, "names")


@given(
    names=st.lists(
        st.text("ab é/.<>:,;'[]\\$`i-", min_size=1, max_size=5), min_size=1, unique=True
    ),
    axes=st.lists(st.none() | st.text('ai j"\n', max_size=3), min_size=2, max_size=2),
)
def test_names_come_back(
    names: list[str], axes: list[str | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    bundle = bundle_of(**dict.fromkeys(names, np.zeros((2, 1), "i1")))
    bundle.arrays[0].axes = [Axis(name=name) for name in axes][::-1]
    path = tmp_path_factory.getbasetemp() / "names.scidb"

    written(bundle, path)

    assert read(path).names == names
    parsed, _ = parse_schema((path.parent / "names.scidb.schema").read_text(), DEFAULT)
    assert [attribute.name for attribute in parsed.attributes] == names
    kept = not any(fit.property == "metadata" for fit in scidb.plan(bundle).fits)
    got = [axis.name for axis in read(path).arrays[0].ra_axes]
    assert not kept or all(want in (None, "", name) for want, name in zip(axes, got, strict=True))


def test_metadata_that_has_no_place_is_named() -> None:
    bundle = bundle_of(v=np.zeros(3))
    bundle.arrays[0].meta = Metadata(
        description="d", units="m", axes=[Axis(spacing=0.5)][::-1], attributes={"a": 1},
        formats={"nrrd": {"space": "LPS"}},
    )  # fmt: skip
    bundle.attributes = {"by": "me"}

    of_array, of_file = scidb.plan(bundle).fits

    for word in ("description", "units", "axis 0 (spacing)", "attributes", "namespace nrrd"):
        assert word in of_array.reason
    assert "attributes of the file" in of_file.reason
    came_back = read(FIXTURES / "texts.scidb")
    came_back["n"].meta = came_back["n"].meta.replace(description="added")
    assert "description" in scidb.plan(came_back).fits[0].reason


def test_the_schema_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x.scidb.schema").write_text("mine")

    with pytest.raises(TargetExists, match=r"x\.scidb\.schema"):
        raconvert.write(tmp_path / "x.scidb", np.zeros(3))

    assert os.listdir(tmp_path) == ["x.scidb.schema"]
    raconvert.write(tmp_path / "x.scidb", np.zeros(3), overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["x.scidb", "x.scidb.schema"]
    assert list(raconvert.read(tmp_path / "x.scidb")["x"]) == [0, 0, 0]


def test_report_says_how_to_load_it(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))

    report = raconvert.convert(tmp_path / "a.npy", tmp_path / "a.scidb", verify=True)

    assert any("iquery" in note and "a.scidb.schema" in note for note in report.notes)


def test_written_in_blocks(tmp_path: Path) -> None:
    import tracemalloc

    values = {f"a{n}": np.arange(1_000_000, dtype="<i4") + n for n in range(5)}
    expected = np.empty(1_000_000, [(name, "<i4") for name in values])
    for name, column in values.items():
        expected[name] = column
    bundle = bundle_of(**values)
    tracemalloc.start()
    try:
        raw = tmp_path / "x.scidb"
        with Target(str(raw), max_memory=1 << 20) as target:
            scidb.plan(bundle).write(target)
            target.commit(sync=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raw.read_bytes() == expected.tobytes()
    assert peak < 4 << 20


# --- SciDB-Py -----------------------------------------------------------------------------------

# A program for the Python of an environment that has scidb-py and numpy below 2. Each line is a
# schema and a path as JSON, and is answered by one: the records.
DECODE = """
import datetime, json, sys
import numpy
from scidbpy.schema import Schema
def plain(value):
    if isinstance(value, (tuple, numpy.void)):
        return [plain(part) for part in tuple(value)]
    if isinstance(value, (float, numpy.floating)):
        return numpy.float64(value).tobytes().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (datetime.datetime, datetime.timedelta)):
        value = numpy.array(value)[()]
    if isinstance(value, numpy.datetime64):
        return int(value.astype("datetime64[s]").astype("int64"))
    if isinstance(value, numpy.timedelta64):
        return int(value.astype("timedelta64[s]").astype("int64"))
    return value.item() if isinstance(value, numpy.generic) else value
for line in sys.stdin:
    schema, path = json.loads(line)
    data = Schema.fromstring(schema).frombytes(open(path, "rb").read())
    print(json.dumps([[plain(value) for value in tuple(row)] for row in data]), flush=True)
"""


@pytest.fixture(scope="session")
def scidbpy(scidbpy_python: str) -> Iterator[Callable[[str, Path], list[list[Any]]]]:
    """Give `scidbpy(schema, path)`, the records that SciDB-Py reads in a file."""
    with subprocess.Popen(
        [scidbpy_python, "-c", DECODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def decode(schema: str, path: Path) -> list[list[Any]]:
            print(json.dumps([schema, str(path)]), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert answer, "SciDB-Py ended; its error is in the captured output"
            return list(json.loads(answer))

        yield decode
        process.stdin.close()


NATIVE = [kind for kind in scidb_records.SIZES if kind != "char"]


def facts_for(kind: str, n: int) -> tuple[bytes, Any]:
    """Return bytes of a value of this type, and what SciDB-Py calls it."""
    rng = np.random.default_rng([n, len(kind)])
    if kind == "string":
        text = ["", "a", "né", "漢" * 50][n % 4]
        return text.encode() + b"\0", text
    if kind == "binary":
        raw = rng.bytes(n * 5)
        return raw, raw.hex()
    if kind == "bool":
        return bytes([n % 2]), bool(n % 2)
    if kind == "datetime":
        return struct.pack("<q", 10**9 * n), 10**9 * n
    if kind == "datetimetz":
        pair = [10**9 + n, -3600 * n]
        return struct.pack("<2q", *pair), pair
    raw = rng.bytes(scidb_records.SIZES[kind])
    value = scidb_records.value(kind, raw)
    return raw, struct.pack("<d", value).hex() if isinstance(value, float) else value


@pytest.mark.parametrize("null", [False, True], ids=["not-null", "null"])
@pytest.mark.parametrize("kind", [*NATIVE, "string", "binary"])
def test_scidbpy_reads_every_type(
    kind: str, null: bool, scidbpy: Callable[..., Any], tmp_path: Path
) -> None:
    held = [facts_for(kind, n) for n in range(12)]
    meta = {"attribute": "v", "column": 0, "type": kind}
    prefixes = np.where(np.arange(12) % 5 == 4, np.arange(12), 255).astype("u1")
    values: dict[str, tuple[str, np.ndarray]]
    if kind in ("string", "binary"):
        ends = np.cumsum([0, *(len(raw) for raw, _ in held)])
        flat = np.frombuffer(b"".join(raw for raw, _ in held), "u1")
        values = {"v.offsets": ("offsets", ends), "v.bytes": ("bytes", flat)}
    else:
        code = {"datetimetz": "q"}.get(kind) or scidb_records.CODES[kind]
        flat = np.frombuffer(b"".join(raw for raw, _ in held), np.dtype(f"<{code}"))
        values = {"v": ("values", flat.reshape(12, -1) if kind == "datetimetz" else flat)}
    if null:
        values["v.null"] = ("null", prefixes)
    bundle = bundle_of(**{name: array for name, (_, array) in values.items()})
    for array, (role, _) in zip(bundle.arrays, values.values(), strict=True):
        array.meta = array.meta.with_format("scidb", **{**meta, "role": role})

    path = tmp_path / "x.scidb"
    written(bundle, path)

    schema = (tmp_path / "x.scidb.schema").read_text().partition("\n")[0]
    assert schema.startswith(f"<v:{kind}{'' if null else ' NOT NULL'}>[i=")
    got = [row[0] for row in scidbpy(schema, path)]
    expected = [value for _, value in held]
    if null:
        expected = [[int(p), value] for p, value in zip(prefixes, expected, strict=True)]
    if kind == "datetimetz":
        got = [flattened(value) for value in got]
        expected = [flattened(value) for value in expected]
    assert got == expected


def flattened(value: Any) -> list[Any]:
    """Return nested lists as one."""
    if not isinstance(value, list):
        return [value]
    return [part for item in value for part in flattened(item)]


def test_scidbpy_reads_several_attributes(scidbpy: Callable[..., Any], tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype="<i8").reshape(2, 3),
        "b": np.arange(6, dtype="<f4").reshape(2, 3) / 3,
        "c": np.arange(6, dtype="u1").reshape(2, 3) > 2,
    }
    raconvert.write(tmp_path / "x.scidb", arrays)

    schema = (tmp_path / "x.scidb.schema").read_text().partition("\n")[0]
    got = scidbpy(schema, tmp_path / "x.scidb")

    columns = [array.ravel().tolist() for array in arrays.values()]
    columns[1] = [struct.pack("<d", value).hex() for value in columns[1]]
    assert got == [list(row) for row in zip(*columns, strict=True)]


def test_a_name_moves_with_its_axis_where_all_lengths_stay(tmp_path: Path) -> None:
    meta = Metadata(axes=[Axis(), Axis(), Axis("time")])
    raconvert.write(tmp_path / "a.scidb", Array(np.zeros((1, 2, 1)), name="x", meta=meta))
    raconvert.convert(f"{tmp_path}/a.scidb#x", f"{tmp_path}/b.scidb#x", axes="2,1,0")
    with raconvert.open(tmp_path / "b.scidb", "x") as back:
        assert [axis.name for axis in back.axes] == ["time", None, None]


def test_attributes_of_all_usual_names_for_rows(tmp_path: Path) -> None:
    """The line that loads a table finds a name for its dimension beside any attributes."""
    names = ("k", "row", "row0", "row1", "record")
    bundle = Bundle([Array(np.arange(3) + n, name=name) for n, name in enumerate(names)])
    raconvert.write(tmp_path / "x.scidb", bundle, out_opts={"coords": "after"})
    assert "[row2=0:*]" in (tmp_path / "x.scidb.schema").read_text()


def test_a_column_that_is_no_number(tmp_path: Path) -> None:
    own = {"role": "values", "attribute": "a", "column": [1]}
    array = Array(np.arange(3), name="a", meta=Metadata(formats={"scidb": own}))
    raconvert.write(tmp_path / "x.scidb", Bundle([array]))
    assert raconvert.read(tmp_path / "x.scidb")["a"].tolist() == [0, 1, 2]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_lines_in_the_name_of_a_file_are_no_options(tmp_path: Path) -> None:
    path = tmp_path / "a\nlayout: flat\n-- .scidb"
    raconvert.write(path, Bundle([Array(np.arange(6).reshape(2, 3), name="a")]))
    assert "layout" not in Path(f"{path}.schema").read_text()
    assert raconvert.read(path)["a"].shape == (2, 3)
