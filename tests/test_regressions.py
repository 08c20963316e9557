"""Defects that a review found, each as the user would have met it."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pytest
import ra_bytes

import raconvert
from raconvert import convert
from raconvert.arrays.array import Array
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import RaconvertError, TargetExists, UsageError, WouldLose

GREY = np.arange(12, dtype="u1").reshape(3, 4)


def save(path: Path, values: np.ndarray) -> Path:
    np.save(path, values)
    return path


def test_planes_of_one_plane_do_not_overwrite(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", GREY)
    (tmp_path / "o.png").write_bytes(b"mine")
    with pytest.raises(TargetExists):
        convert(source, tmp_path / "o.png", planes=True)
    assert (tmp_path / "o.png").read_bytes() == b"mine"


def test_one_file_each_does_not_overwrite_a_source_that_is_still_to_be_read(tmp_path: Path) -> None:
    first, second = save(tmp_path / "x.npy", GREY), save(tmp_path / "x_1.npy", GREY + 1)
    with pytest.raises(TargetExists):
        convert([first, second], str(tmp_path / "{stem}_1.npy"), overwrite=True)
    assert np.array_equal(np.load(second), GREY + 1)


def test_joined_files_with_axes_and_items_can_be_read_back(tmp_path: Path) -> None:
    for number in range(2):
        axes = [Axis(name="x", labels=list("abcd")), Axis(name="y")]
        meta = Metadata(axes=axes[::-1], attributes={"n": number, "same": 1})
        raconvert.write(tmp_path / f"{number}.ra", GREY + number, meta=meta)
    for axis in (0, 1):
        out = tmp_path / f"out{axis}.ra"
        report = convert(str(tmp_path / "?.ra"), out, stack=("concat", axis))
        assert np.array_equal(raconvert.read(out), np.concatenate([GREY, GREY + 1], axis))
        with raconvert.open(out) as array:
            assert [found.name for found in array.ra_axes] == ["x", "y"]
            assert array.meta.attributes == {"same": 1}
        assert any("left out" in fit.reason for fit in report.equivalent)
        with pytest.raises(WouldLose):
            convert(str(tmp_path / "?.ra"), tmp_path / "s.ra", stack=("concat", axis), strict=True)


def test_items_of_a_stack_in_a_container_are_named_not_promised(tmp_path: Path) -> None:
    for number in range(2):
        meta = Metadata(attributes={"n": number})
        raconvert.write(tmp_path / f"{number}.ra", GREY, meta=meta)
    convert(str(tmp_path / "?.ra"), f"{tmp_path / 'o.npz'}#x", meta="sidecar")
    assert raconvert.read(tmp_path / "o.npz", "x").shape == (2, 3, 4)


@pytest.mark.parametrize("suffix", ["ra", "npy"])
def test_padding_of_structures_is_copied_when_axes_move(tmp_path: Path, suffix: str) -> None:
    dtype = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
    raw = np.full(6 * dtype.itemsize, 7, "u1")
    save(tmp_path / "a.npy", raw.view(dtype).reshape(2, 3))
    convert(tmp_path / "a.npy", tmp_path / f"o.{suffix}", axes="1,0")
    data = (tmp_path / f"o.{suffix}").read_bytes()
    assert data.endswith(b"\7" * raw.size)


def test_pairs_of_half_floats_are_not_paired_anew_after_a_transpose(tmp_path: Path) -> None:
    halves = np.arange(12, dtype="<f2").reshape(2, 3, 2)
    (tmp_path / "a.ra").write_bytes(ra_bytes.ra_file(4, 4, (3, 2), halves.tobytes()))
    convert(tmp_path / "a.ra", tmp_path / "o.ra", axes="0,2,1")
    assert np.array_equal(raconvert.read(tmp_path / "o.ra"), halves.transpose(0, 2, 1))


def test_planes_of_two_leading_axes_have_the_metadata_of_their_item(tmp_path: Path) -> None:
    for number in range(2):
        meta = Metadata(formats={"png": {"text": [["Title", f"item {number}", "tEXt", "", ""]]}})
        raconvert.write(tmp_path / f"{number}.ra", np.zeros((3, 8, 8), "u1"), meta=meta)
    convert(str(tmp_path / "?.ra"), tmp_path / "s.ra")
    convert(tmp_path / "s.ra", str(tmp_path / "p" / "{:03d}.png"), planes=True)
    names = sorted(os.listdir(tmp_path / "p"))
    assert len(names) == 6
    for number, name in enumerate(names):
        with raconvert.open(tmp_path / "p" / name) as array:
            assert f"item {number // 3}" in str(array.meta.formats["png"])


def test_an_array_handed_out_alone_closes_its_bundle() -> None:
    closed: list[int] = []
    array = Array(element_of(GREY.dtype), (4, 3), data=GREY)
    bundle = Bundle([array], closers=[lambda: closed.append(1)])
    with bundle.only() as alone:
        assert alone[0, 1] == 1
    assert closed == [1]


def test_verify_reads_back_as_it_was_read(tmp_path: Path) -> None:
    from PIL import Image

    image = Image.new("P", (4, 3))
    image.putpalette([0, 0, 0, 9, 9, 9])
    image.putdata([0, 1] * 6)
    image.save(tmp_path / "p.png")
    options = {"palette": "indices"}
    convert(tmp_path / "p.png", tmp_path / "q.png", in_opts=options, verify=True)
    assert raconvert.read(tmp_path / "q.png", in_opts=options).tolist() == [[0, 1, 0, 1]] * 3


@pytest.mark.parametrize("option", [{"labels": "l.ra"}, {"planes": True}])
def test_options_for_one_destination_are_refused_with_many(
    tmp_path: Path, option: dict[str, object]
) -> None:
    source = save(tmp_path / "a.npy", GREY)
    with pytest.raises(UsageError):
        convert([source], out_dir=str(tmp_path / "out"), to="ra", **option)


def test_a_sidecar_with_arrays_of_the_wrong_form_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.asfortranarray(GREY))
    convert(tmp_path / "a.npz", tmp_path / "b.npz", meta="sidecar")
    facts = raconvert.metadata.sidecar.describe(
        raconvert.files.source.Source(str(tmp_path / "b.npz"))
    )
    text = raconvert.metadata.sidecar.text_of({"arrays": [1]}, facts)
    (tmp_path / "b.npz.yaml").write_bytes(text)
    with pytest.raises(RaconvertError, match=r"b\.npz\.yaml"):
        raconvert.read(tmp_path / "b.npz")


def test_the_standard_output_has_no_sidecar_and_says_so(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = save(tmp_path / "d.npy", np.array(["2020-01-01"], "M8[D]"))
    with pytest.raises(WouldLose):
        convert(source, "-", to="ra")
    ordered = save(tmp_path / "f.npy", np.asfortranarray(GREY))
    report = convert(ordered, "-", to="ra", axes="fortran")
    assert [fit.property for fit in report.equivalent] == ["index order"]
    assert capfdbinary.readouterr().out.startswith(b"rawarray")
    with pytest.raises(UsageError):
        convert(ordered, "-", to="ra", meta="sidecar")
    with pytest.raises(UsageError):
        convert(ordered, "-", to="png", planes=True)


@pytest.mark.parametrize("labels", ["l.txt", "missing/l.npy", "l.png"])
def test_labels_that_cannot_be_written_are_refused_before_the_stack_is(
    tmp_path: Path, labels: str
) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "1.npy", GREY)
    with pytest.raises(RaconvertError):
        convert(str(tmp_path / "*" / "1.npy"), tmp_path / "t.ra", labels=str(tmp_path / labels))
    assert sorted(os.listdir(tmp_path)) == ["cat", "dog"]


def test_names_of_labels_without_a_place_are_named(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "1.npy", GREY)
    pattern, target = str(tmp_path / "*" / "1.npy"), tmp_path / "t.ra"
    with pytest.raises(WouldLose):
        convert(pattern, target, labels=str(tmp_path / "l.npy"), strict=True)
    report = convert(pattern, target, labels=str(tmp_path / "l.npy"))
    assert [fit.array for fit in report.equivalent] == ["labels"]


def test_verify_reads_the_sources_as_they_were_read(tmp_path: Path) -> None:
    bits = np.array([[0, 1], [1, 0]], bool)
    convert(save(tmp_path / "b.npy", bits), tmp_path / "b.png")
    options = {"depth": "native"}
    convert(tmp_path / "b.png", tmp_path / "b.ra", in_opts=options)
    against = str(tmp_path / "b.png")
    assert raconvert.verify(tmp_path / "b.ra", against, in_opts=options)["same"]
    assert not raconvert.verify(tmp_path / "b.ra", against)["same"]


def test_a_refused_batch_leaves_no_folder(tmp_path: Path) -> None:
    source = save(tmp_path / "a.npy", GREY.astype("f8"))
    with pytest.raises(RaconvertError):
        convert(source, out_dir=str(tmp_path / "out"), to="png")
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize(
    ("value", "dtype", "word"),
    [(1.5, "uint8", r'allow=\["precision"\]'), (-3.0, "uint8", "range"), (np.nan, "int32", "floating"),
     (1e300, "float32", "range"), (1 + 2j, "float32", "complex")],
    ids=str,
)  # fmt: skip
def test_the_way_out_of_a_cast_helps(tmp_path: Path, value: complex, dtype: str, word: str) -> None:
    source = save(tmp_path / "a.npy", np.array([value]))
    with pytest.raises(WouldLose, match=word):
        convert(source, tmp_path / "o.ra", dtype=dtype)


def test_ra_is_there_after_import_raconvert() -> None:
    assert raconvert.ra.read is not None


def test_read_into_an_array_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    raconvert.ra.write(tmp_path / "a.ra", GREY)
    closed = np.empty_like(GREY)
    closed.flags.writeable = False
    for out in (closed, [1], np.empty((3, 4), "u1", order="F"), np.empty((3, 4), ">u2")):
        with pytest.raises(UsageError):
            raconvert.ra.read(tmp_path / "a.ra", out=out)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["1.5e3", "1.e5", "-1.5E7", "0.1e1", "+.5", "1e5", ".5", "1_0.5", "=", "~"]
)
def test_text_that_looks_like_a_number_stays_text(text: str, tmp_path: Path) -> None:
    meta = Metadata(attributes={text: text, "list": [text, 1.5e3]})
    raconvert.write(tmp_path / "x.ra", np.arange(3), meta=meta)
    raconvert.convert(tmp_path / "x.ra", tmp_path / "x.zip")

    for name in ("x.ra", "x.zip"):
        with raconvert.open(tmp_path / name) as opened:
            array = opened if name == "x.ra" else opened["x"]
            assert array.meta.attributes == {text: text, "list": [text, 1500.0]}


def test_dates_and_marked_mappings_survive_in_hdf5(tmp_path: Path) -> None:
    kept = {
        "day": datetime.date(2020, 1, 2),
        "time": datetime.datetime(2020, 1, 2, 3, 4, 5),
        "mark": {"$bytes": "AAAA"},
        "raw": b"\x00\xff",
    }
    raconvert.write(tmp_path / "x.h5", np.arange(3), meta=Metadata(attributes=kept))

    with raconvert.open(tmp_path / "x.h5") as bundle:
        assert bundle["x"].meta.attributes == kept


def test_merging_files_keeps_what_they_say(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for name in ("s0", "s1"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.attrs["operator"] = name
            file["x"] = GREY
            if name == "s1":
                file["g/y"] = GREY
                file["g"].attrs["note"] = "n"
    sources = [tmp_path / "s0.h5", tmp_path / "s1.h5"]

    convert(sources, tmp_path / "c.h5")
    convert(sources, tmp_path / "x.ra", arrays=["x"], stack=True)

    with raconvert.open(tmp_path / "c.h5") as both:
        assert both["s0"].meta.attributes == {"operator": "s0"}
        assert both.groups == {"s1": {"operator": "s1"}, "s1/g": {"note": "n"}}
    with raconvert.open(tmp_path / "x.ra") as stack:
        items = [item["attributes"] for item in stack.meta.items()]
    assert items == [{"operator": "s0"}, {"operator": "s1"}]
