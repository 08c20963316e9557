"""Templates and --planes: one file per plane, all of them or none."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert import Metadata, convert
from raconvert.arrays.metadata import Axis
from raconvert.cli import main
from raconvert.errors import RaconvertError, TargetExists, UsageError, WouldLose
from raconvert.views.peek import Screen, lines_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cube(shape: tuple[int, ...] = (3, 4, 5), dtype: str = "u1") -> np.ndarray:
    """Write x.npy and return its values."""
    values = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    np.save("x.npy", values)
    return values


def image(path: str) -> np.ndarray:
    with Image.open(path) as opened:
        return np.asarray(opened)


def pngs(folder: str = ".") -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in Path(folder).rglob("*.png") if path.is_file()
    )


# Templates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("out/{:05d}.png", ["out/00000.png", "out/00001.png", "out/00002.png"]),
        ("out/{}.png", ["out/0.png", "out/1.png", "out/2.png"]),
        ("out/{0}.png", ["out/0.png", "out/1.png", "out/2.png"]),
        ("out/{i}.png", ["out/0.png", "out/1.png", "out/2.png"]),
        ("out/{i:03}.png", ["out/000.png", "out/001.png", "out/002.png"]),
        ("p{}_{i:02}.png", ["p0_00.png", "p1_01.png", "p2_02.png"]),
        ("{}/a.png", ["0/a.png", "1/a.png", "2/a.png"]),
        ("{{{}}}.png", ["{0}.png", "{1}.png", "{2}.png"]),
        ("{:x}.png", ["0.png", "1.png", "2.png"]),
    ],
)
def test_a_template_names_the_planes(template: str, names: list[str]) -> None:
    values = cube()
    report = convert("x.npy", template)
    assert pngs() == names
    assert report.written == names
    for number, name in enumerate(names):
        assert image(name).tolist() == values[number].tolist()


def test_planes_are_numbered_before_the_suffix() -> None:
    values = cube((12, 4, 5))
    convert("x.npy", "out.png", planes=True)
    assert pngs() == [f"out_{number:03d}.png" for number in range(12)]
    assert image("out_011.png").tolist() == values[11].tolist()


def test_numbers_are_as_wide_as_needed() -> None:
    cube((1001, 1, 1))
    convert("x.npy", "out/p.png", planes=True)
    assert pngs("out")[0] == "p_0000.png"
    assert pngs("out")[-1] == "p_1000.png"


@pytest.mark.parametrize(
    "template",
    ["out/{:05d.png", "{unknown}.png", "{stem}_{}.png", "{1}.png", "{i!q}.png", "{:q}.png",
     "{i.real}.png", "{i[0]}.png", "{i.__class__}.png", "{0.__init__}.png", "{label}.png"],
)  # fmt: skip
def test_a_bad_template_is_a_usage_error(template: str) -> None:
    cube()
    with pytest.raises(UsageError, match="template|label") as caught:
        convert("x.npy", template)
    assert caught.value.exit_code == 2
    assert os.listdir() == ["x.npy"]


def test_a_template_with_a_huge_width_is_refused() -> None:
    cube()
    with pytest.raises(RaconvertError):
        convert("x.npy", "{:099999d}.png")
    assert os.listdir() == ["x.npy"]


@pytest.mark.parametrize("template", ["{:.0s}x.png", "{i:c}.png"], ids=["all-alike", "control"])
def test_a_template_that_cannot_name_the_planes(template: str) -> None:
    cube()
    with pytest.raises(RaconvertError):
        convert("x.npy", template)
    assert os.listdir() == ["x.npy"]


def test_planes_that_would_have_one_name_are_an_error() -> None:
    for number in range(3):
        Path(f"{number % 2}").mkdir(exist_ok=True)
        np.save(f"{number % 2}/{number}.npy", np.zeros((4, 5), "u1"))
    with pytest.raises(UsageError, match="one name"):
        convert("?/*.npy", "{label}.png")


def test_labels_in_a_template() -> None:
    for number, label in enumerate(("cat", "dog", "cat")):
        Path(label).mkdir(exist_ok=True)
        np.save(f"{label}/{number}.npy", np.full((4, 5), number, "u1"))
    convert("*/*.npy", "out/{label}/{:02d}.png")
    assert pngs("out") == ["cat/00.png", "cat/01.png", "dog/02.png"]
    assert [int(image(f"out/{name}")[0, 0]) for name in pngs("out")] == [0, 2, 1]


def test_a_label_that_is_no_file_name_stays_inside() -> None:
    """A label comes from a folder's name, which holds no separator: nothing leaves the folder."""
    for label in ("a..b", "a b", "ä"):
        Path("in", label).mkdir(parents=True)
        np.save(f"in/{label}/x.npy", np.zeros((2, 3), "u1"))
    convert("in/*/x.npy", "out/{label}.png")
    assert len(pngs("out")) == 3


def test_an_existing_path_is_no_template() -> None:
    cube((4, 5))
    Path("{}.png").write_bytes(b"old")
    convert("x.npy", "{}.png", overwrite=True)
    assert image("{}.png").shape == (4, 5)


def test_a_template_for_files_is_no_template_for_planes() -> None:
    for name in ("a", "b"):
        np.save(f"{name}.npy", np.zeros((4, 5), "u1"))
    convert("?.npy", "out/{stem}.png")
    assert pngs("out") == ["a.png", "b.png"]


def test_planes_of_files_each_with_its_own_template_fields() -> None:
    np.save("a.npy", np.zeros((2, 4, 5), "u1"))
    with pytest.raises(RaconvertError):
        convert("a.npy", "out/{stem}.png", fail_fast=True)
    assert pngs() == []


# What is a plane ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "count", "plane"),
    [
        ((3, 4, 5), 3, (4, 5)),
        ((2, 3, 4, 5), 6, (4, 5)),
        ((6, 4, 5, 3), 6, (4, 5, 3)),
        ((2, 3, 4, 5, 4), 6, (4, 5, 4)),
        ((6, 4, 5, 2), 6, (4, 5, 2)),
        ((4, 5, 3), 4, (5, 3)),
    ],
    ids=str,
)
def test_leading_axes_become_planes(
    shape: tuple[int, ...], count: int, plane: tuple[int, ...]
) -> None:
    values = cube(shape)
    convert("x.npy", "out/{:02d}.png")
    assert len(pngs("out")) == count
    flat = values.reshape(count, *plane)
    for number in range(count):
        assert raconvert.read(f"out/{number:02d}.png").tolist() == flat[number].tolist()


def test_without_planes_an_image_of_three_channels_is_an_image() -> None:
    """(N, H, 3) is ambiguous: it is taken for an image, and only --planes makes it a stack."""
    values = cube((4, 5, 3))
    convert("x.npy", "one.png")
    assert image("one.png").tolist() == values.tolist()
    report = convert("x.npy", "many.png", planes=True)
    assert pngs() == ["many_000.png", "many_001.png", "many_002.png", "many_003.png", "one.png"]
    assert image("many_003.png").tolist() == values[3].tolist()
    assert len(report.written) == 4


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 7)], ids=str)
def test_an_image_has_no_planes(shape: tuple[int, ...]) -> None:
    cube(shape)
    if len(shape) == 2:
        convert("x.npy", "out.png", planes=True)
        assert pngs() == ["out.png"]
    else:
        with pytest.raises(WouldLose, match="planes=True"):
            convert("x.npy", "out.png")
        assert pngs() == []


def test_a_single_image_under_a_template_is_plane_0() -> None:
    values = cube((4, 5))
    convert("x.npy", "{:02d}.png")
    assert pngs() == ["00.png"]
    assert image("00.png").tolist() == values.tolist()


def test_a_vector_has_no_planes() -> None:
    cube((5,))
    with pytest.raises(RaconvertError, match="shape"):
        convert("x.npy", "{}.png")
    assert pngs() == []


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 0, 5), (3, 4, 0)], ids=str)
def test_planes_of_nothing_are_refused(shape: tuple[int, ...]) -> None:
    np.save("x.npy", np.zeros(shape, "u1"))
    with pytest.raises(RaconvertError) as caught:
        convert("x.npy", "{}.png")
    assert caught.value.exit_code in (2, 4)
    assert os.listdir() == ["x.npy"]


@pytest.mark.parametrize("suffix", ["npy", "ra", "npz"])
def test_formats_of_any_rank_have_no_planes(suffix: str) -> None:
    cube()
    with pytest.raises(UsageError, match="any rank"):
        convert("x.npy", f"{{}}.{suffix}")
    with pytest.raises(UsageError, match="any rank"):
        convert("x.npy", f"out.{suffix}", planes=True)


def test_planes_of_one_array_only() -> None:
    np.savez("x.npz", a=np.zeros((2, 3, 4), "u1"), b=np.zeros((2, 3, 4), "u1"))
    with pytest.raises(UsageError, match="a, b"):
        convert("x.npz", "{}.png")
    convert("x.npz", "{}.png", arrays=["b"])
    assert pngs() == ["0.png", "1.png"]


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "?"])
def test_values_orders_and_types(dtype: str, order: str) -> None:
    values = np.random.default_rng(0).integers(0, 2, (3, 4, 5)).astype(dtype)
    np.save("x.npy", np.array(values, order=order))
    convert("x.npy", "{}.png")
    got = np.stack([raconvert.read(f"{number}.png") for number in range(3)])
    assert got.tolist() == (values * 255 if dtype == "?" else values).tolist()


def test_planes_and_a_stack_are_the_way_there_and_back() -> None:
    values = cube((11, 4, 5), "u2")
    convert("x.npy", "out/{}.png")
    convert("out", "y.ra")
    assert raconvert.read("y.ra").tolist() == values.tolist()


@pytest.mark.parametrize(
    "options", [{"axes": "2,0,1"}, {"dtype": "uint16"}, {"scale": "0:255"}, {"axes": "c"}], ids=str
)
def test_changes_are_made_once(options: dict[str, str]) -> None:
    values = cube()
    convert("x.npy", "{}.png", **options)
    expected = values.transpose(2, 0, 1) if options.get("axes") == "2,0,1" else values
    got = np.stack([raconvert.read(f"{number}.png") for number in range(len(expected))])
    assert got.tolist() == expected.tolist()


def test_types_are_refused_once_and_not_for_every_plane() -> None:
    cube(dtype="f4")
    with pytest.raises(WouldLose) as caught:
        convert("x.npy", "{}.png")
    assert str(caught.value).count('dtype="uint8"') == 1


def test_memory_limits_do_not_change_the_planes() -> None:
    values = cube((7, 300, 300))
    convert("x.npy", "{}.png", max_memory=1 << 20)
    got = np.stack([image(f"{number}.png") for number in range(7)])
    assert got.tolist() == values.tolist()


# Report, existing files, metadata ----------------------------------------------------------------


def test_the_report_is_about_the_whole() -> None:
    values = cube()
    report = convert("x.npy", "out/{}.png")
    assert report.nbytes == values.nbytes
    assert report.target_format == "png"
    assert [array[2] for array in report.arrays] == [values.shape]
    assert "3 files" in str(report)


def test_what_is_equivalent_is_said_once() -> None:
    np.save("x.npy", np.zeros((50, 4, 5), bool))
    report = convert("x.npy", "out/{}.png")
    assert len(report.equivalent) == 1


def test_progress_is_that_of_the_whole() -> None:
    values = cube((3, 40, 50))
    seen = []
    convert("x.npy", "out/{}.png", progress=lambda now: seen.append((now.done, now.total)))
    assert seen
    assert seen[-1] == (values.nbytes, values.nbytes)


def test_existing_planes_can_be_skipped() -> None:
    values = cube()
    Path("1.png").write_bytes(b"kept")
    report = convert("x.npy", "{}.png", skip_existing=True)
    assert Path("1.png").read_bytes() == b"kept"
    assert image("2.png").tolist() == values[2].tolist()
    assert [path for path, _ in report.skipped] == ["1.png"]


def test_existing_planes_can_be_replaced_and_keep_their_mode() -> None:
    values = cube()
    Path("1.png").write_bytes(b"old")
    Path("1.png").chmod(0o640)
    convert("x.npy", "{}.png", overwrite=True)
    assert image("1.png").tolist() == values[1].tolist()
    assert Path("1.png").stat().st_mode & 0o777 == 0o640


def test_an_existing_plane_that_is_a_link_is_written_through() -> None:
    values = cube()
    Path("real.png").write_bytes(b"old")
    os.symlink("real.png", "1.png")
    convert("x.npy", "{}.png", overwrite=True)
    assert Path("1.png").is_symlink()
    assert image("real.png").tolist() == values[1].tolist()


def test_a_plane_that_is_a_folder_refuses_all() -> None:
    cube()
    Path("1.png").mkdir()
    with pytest.raises(TargetExists, match=r"1\.png"):
        convert("x.npy", "{}.png", overwrite=True)
    assert sorted(os.listdir()) == ["1.png", "x.npy"]


def test_metadata_without_a_place_is_named_once() -> None:
    meta = Metadata("text", axes=[Axis(name="x"), Axis(name="y"), Axis(name="z")][::-1])
    raconvert.write("x.ra", np.zeros((3, 4, 5), "u1"), meta=meta)
    report = convert("x.ra", "{}.png")
    assert [fit.property for fit in report.equivalent] == ["metadata"]
    assert pngs() == ["0.png", "1.png", "2.png"]


def test_sidecars_of_the_planes() -> None:
    raconvert.write("x.ra", np.zeros((3, 4, 5), "u1"), meta=Metadata("text"))
    convert("x.ra", "{}.png", meta="sidecar")
    assert sorted(os.listdir()) == [
        *(f"{n}.png{end}" for n in range(3) for end in ("", ".yaml")),
        "x.ra",
        "x.ra.yaml",
    ]
    for number in range(3):
        with raconvert.open(f"{number}.png") as array:
            assert array.meta.description == "text"


def test_every_plane_gets_the_metadata_of_its_item() -> None:
    for number in range(3):
        meta = Metadata(f"number {number}", attributes={"n": number, "same": 1})
        raconvert.write(f"{number}.ra", np.zeros((4, 5), "u1"), meta=meta)
    convert("?.ra", "stack.ra")
    convert("stack.ra", "{}.png", meta="sidecar")
    for number in range(3):
        with raconvert.open(f"{number}.png") as array:
            assert array.meta.attributes == {"n": number, "same": 1}
            assert array.meta.description == f"number {number}"


def test_no_folder_is_left_when_nothing_is_written() -> None:
    cube(dtype="f4")
    with pytest.raises(WouldLose):
        convert("x.npy", "a/b/{}.png")
    assert os.listdir() == ["x.npy"]


def test_total_of_all_planes() -> None:
    values = cube((2, 3, 4, 5, 3))
    convert("x.npy", "out/{:02d}.png")
    assert len(pngs("out")) == math.prod(values.shape[:2])


# Which planes ------------------------------------------------------------------------------------


def planes_of(pattern: str) -> list[list[list[int]]]:
    return [image(path).tolist() for path in sorted(pngs()) if path.startswith(pattern)]


def test_planes_of_a_volume_are_those_that_peek_shows() -> None:
    """A column-major volume is cut along its last axis, the first index going down."""
    values = np.arange(60, dtype="u1").reshape(3, 4, 5)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), "x.nii")
    convert("x.nii", "p.png", planes=True)
    assert planes_of("p") == [values[:, :, k].tolist() for k in range(5)]
    convert("x.nii", "t{}.png")
    assert planes_of("t") == [values[:, :, k].tolist() for k in range(5)]
    shown = subprocess.run(
        [sys.executable, "-m", "raconvert", "peek", "x.nii"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "[:, :, 0]" in shown
    time = np.arange(240, dtype="u1").reshape(4, 6, 5, 2)
    nibabel.save(nibabel.Nifti1Image(time, np.eye(4)), "y.nii")
    convert("y.nii", "q{:02}.png")
    assert planes_of("q") == [time[:, :, k, t].tolist() for t in range(2) for k in range(5)]


def test_colors_before_the_rows_come_last() -> None:
    values = np.random.default_rng(1).integers(0, 255, (4, 3, 20, 30)).astype("u1")
    np.save("x.npy", values)
    convert("x.npy", "p{}.png", planes=True)
    assert planes_of("p") == [np.moveaxis(one, 0, -1).tolist() for one in values]


@pytest.mark.parametrize("kind", ["npy", "nii"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_planes_along_any_axis(kind: str, axis: int) -> None:
    values = np.arange(60, dtype="u1").reshape(3, 4, 5)
    if kind == "npy":
        np.save("x.npy", values)
    else:
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), "x.nii")
    wanted = [one.tolist() for one in np.moveaxis(values, axis, 0)]
    convert(f"x.{kind}", "p{}.png", planes=axis)
    assert planes_of("p") == wanted
    for number, words in enumerate((["--planes", str(axis)], [f"--planes={axis}"])):
        assert main([*words, f"x.{kind}", "-o", f"c{number}.png"]) == 0
        assert planes_of(f"c{number}") == wanted


def test_a_file_behind_planes_is_a_file() -> None:
    cube()
    assert main(["--planes", "x.npy", "-o", "a.png"]) == 0
    assert main(["x.npy", "-o", "b.png", "--planes"]) == 0
    assert len(pngs()) == 6
    with pytest.raises(UsageError, match="not an axis"):
        convert("x.npy", "c.png", planes=3)


@pytest.mark.parametrize("shape", [(4, 6, 5), (3, 20, 30), (2, 20, 30, 3), (5, 3, 20, 30)])
def test_peek_shows_the_planes_that_are_cut(
    shape: tuple[int, ...],
) -> None:
    """An .npy in Fortran order is the array that its twin in C order is, in both."""
    values = np.random.default_rng(1).integers(0, 256, shape, "u1")
    np.save("c.npy", values)
    np.save("f.npy", np.asfortranarray(values))
    seen, cut = {}, {}
    for name in ("c", "f"):
        with raconvert.open(f"{name}.npy") as array:
            seen[name] = list(lines_of(array, Screen(columns=60, way="blocks")))
            assert len(seen[name]) > 3
        report = convert(f"{name}.npy", name + "{:d}.png", planes=True)
        cut[name] = [image(path).tolist() for path in report.written]
    assert seen["c"] == seen["f"]
    assert cut["c"] == cut["f"]
