"""Channels of micrographs in their colours, strips through time, photos made smaller."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from PIL import Image

import raconvert
from raconvert.arrays.layout import layout_of
from raconvert.cli import main
from raconvert.plugin import Array, Axis, Metadata
from raconvert.views.averaged import averaged
from raconvert.views.channels import (
    BY_LIGHT,
    IN_ORDER,
    channel_axis,
    channels_of,
    mixed,
    scales_of,
    seen_at,
)
from raconvert.views.pages.array import section_of
from raconvert.views.pages.figures import shown_size
from raconvert.views.sample import BUDGET, sample
from raconvert.views.timeline import times_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

nibabel = pytest.importorskip("nibabel")
tifffile = pytest.importorskip("tifffile")

BLUE, GREEN, RED = (0, 0, 255), (0, 255, 0), (255, 0, 0)


def pictures(text: str) -> list[np.ndarray]:
    """The pictures of a page, decoded by Pillow, in order."""
    found = []
    for data in re.findall(r'src="data:image/png;base64,([^"]*)"', text):
        with Image.open(io.BytesIO(b64decode(data))) as image:
            found.append(np.asarray(image.convert("RGB")).astype(int))
    return found


def page(path: Path) -> str:
    out = path.parent / "page.html"
    assert main(["info", str(path), "--html", "-o", str(out), "--overwrite"]) == 0
    return out.read_text(encoding="utf-8")


def squares() -> np.ndarray:
    """Three channels, each with a bright square elsewhere, and one where all are bright."""
    values = np.full((3, 60, 60), 100, "u2")
    for number in range(3):
        values[number, 5:15, 20 * number + 2 : 20 * number + 12] = 3000 * (number + 1)
        values[number, 40:50, 20:30] = 3000 * (number + 1)
    return values


def cells(path: Path, values: np.ndarray, axes: str = "CYX", **channel: Any) -> Path:
    about = {"axes": axes, "PhysicalSizeX": 0.65, "PhysicalSizeY": 0.65, "Channel": channel}
    tifffile.imwrite(path, values, metadata=about)
    return path


NAMES = ["DAPI", "GFP", "Cy5"]


def test_channels_have_the_colours_of_the_file(tmp_path: Path) -> None:
    """Blue, green, red by the file; OME writes red, green, blue, alpha as a signed number."""
    colors = [int.from_bytes(bytes([*one, 255]), signed=True) for one in (BLUE, GREEN, RED)]
    text = page(cells(tmp_path / "x.ome.tif", squares(), Name=NAMES, Color=colors))
    together, *alone = pictures(text)
    assert "DAPI (blue), GFP (green), Cy5 (red) · colours of the file" in text
    assert together[10, 7].tolist() == [0, 0, 255]
    assert together[10, 27].tolist() == [0, 255, 0]
    assert together[10, 47].tolist() == [255, 0, 0]
    assert together[45, 25].tolist() == [255, 255, 255]
    assert together[30, 50].max() < 30
    assert len(alone) == 3
    for number, color in enumerate((BLUE, GREEN, RED)):
        assert alone[number][45, 25].tolist() == [*color]
        assert alone[number][10, 20 * number + 7].tolist() == [*color]
        assert alone[number][10, (20 * number + 27) % 60].max() < 30  # the square of another
    assert all(name in text for name in NAMES)
    assert "um</span>" in text  # the scale bar


@pytest.mark.parametrize(
    ("channel", "origin", "colors"),
    [
        ({"EmissionWavelength": [460, 520, 600]}, BY_LIGHT, [(0, 96, 255), GREEN, RED]),
        ({"ExcitationWavelength": [405, 488, 640]}, BY_LIGHT,
         [(0, 96, 255), (0, 255, 255), (255, 0, 255)]),
        ({"Name": NAMES}, IN_ORDER, [GREEN, (255, 0, 255), (0, 160, 255)]),
    ],
)  # fmt: skip
def test_other_channels_have_colours_of_light_or_of_an_order(
    tmp_path: Path, channel: dict[str, Any], origin: str, colors: list[tuple[int, int, int]]
) -> None:
    path = cells(tmp_path / "x.ome.tif", squares(), **channel)
    with raconvert.open(path) as opened:
        array = opened if isinstance(opened, Array) else opened.arrays[0]
        axis = channel_axis(array)
        assert axis is not None
        found = channels_of(array, axis)
    assert [one.color for one in found] == colors
    assert {one.origin for one in found} == {origin}
    assert f"colours {origin}" in page(path)


def test_each_channel_has_a_scale_of_its_own(tmp_path: Path) -> None:
    """A faint channel is as bright as a strong one; what is clipped is said."""
    values = squares().astype("f4") * np.array([1e-3, 1, 1e3])[:, None, None].astype("f4")
    axes = [Axis("c"), Axis("y"), Axis("x")]
    array = Array(values, meta=Metadata(axes=axes))
    seen = seen_at(array, 0)
    assert seen is not None
    scales = scales_of([seen])
    made = mixed(seen, scales, 200)
    assert made is not None
    assert made.together.pictures[0].pixels[45, 25].min() == 255
    for scale, part in zip(scales, values, strict=True):
        assert scale.low == pytest.approx(part.min())
        assert scale.high == pytest.approx(part.max(), rel=0.01)


@pytest.mark.parametrize(
    ("axes", "shape", "at"),
    [
        ("c y x", (3, 20, 20), 0), ("channel y x", (3, 20, 20), 0), ("t c y x", (4, 3, 20, 20), 1),
        ("y x c", (20, 20, 3), 2), ("channel time", (3, 500), None), ("z y x", (3, 20, 20), None),
        ("c y x", (1, 20, 20), None), ("c time trial", (3, 20, 20), None),
    ],
)  # fmt: skip
def test_only_channels_of_images_are_channels(
    axes: str, shape: tuple[int, ...], at: int | None
) -> None:
    named = [Axis(name) for name in axes.split()]
    assert channel_axis(Array(np.zeros(shape, "u2"), meta=Metadata(axes=named))) == at


def test_large_micrographs_are_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", (3, 20_000, 20_000), "u2", chunks=(1, 500, 500))
        made[:, 10_000:10_500, 10_000:10_500] = 7
    with raconvert.open(path, max_memory=4 << 30) as bundle:
        array = bundle["x"]
        array.meta = array.meta.replace(axes=[Axis("c"), Axis("y"), Axis("x")])
        seen = seen_at(array, 0)
    assert seen is not None
    assert max(plane.array.nbytes for plane in seen.planes) <= 6 << 20
    assert all((plane.sampled.values[0] == 7).any() for plane in seen.planes)


# Through time -------------------------------------------------------------------------------------


def test_a_movie_of_channels_has_a_strip_through_time(tmp_path: Path) -> None:
    values = squares()[None] * np.arange(1, 5, dtype="u2")[:, None, None, None]
    path = tmp_path / "x.ome.tif"
    about = {"axes": "TCYX", "TimeIncrement": 5.0, "Channel": {"Name": NAMES}}
    tifffile.imwrite(path, values, metadata=about)
    text = page(path)
    assert re.findall(r"T = \d+ s(?=</code>)", text) == [
        "T = 0 s",
        "T = 5 s",
        "T = 10 s",
        "T = 15 s",
    ]
    strip = pictures(text)[4:]
    assert len(strip) == 4
    # In the same colours at all times, the squares grow brighter.
    bright = [int(one[45, 25].sum()) for one in strip]
    assert bright == sorted(bright)
    assert bright[0] < bright[2]


def test_a_scan_through_time_shows_its_times(tmp_path: Path) -> None:
    values = (np.arange(11) * 10 + 1) * np.ones((12, 14, 9, 1))
    image = nibabel.Nifti1Image(values.astype("i2"), np.diag([2.0, 2.0, 3.0, 1.0]))
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = 1.5
    nibabel.save(image, tmp_path / "x.nii")
    with raconvert.open(tmp_path / "x.nii") as array:
        assert isinstance(array, Array)
        found = times_of(array)
    assert found is not None
    assert found.titles == ["t = 0 s", "t = 3 s", "t = 6 s", "t = 9 s", "t = 12 s", "t = 15 s"]
    stored = np.asanyarray(nibabel.load(tmp_path / "x.nii").dataobj)
    for frame in found.sampled.frames:
        np.testing.assert_array_equal(frame.values, eval(f"stored{frame.key}", {"stored": stored}))
    text = page(tmp_path / "x.nii")
    assert "Through time" in text
    assert [text.count(name) > 0 for name in found.titles] == [True] * 6


def test_a_compressed_scan_shows_the_times_at_its_front(tmp_path: Path) -> None:
    values = np.arange(64 * 64 * 20 * 240, dtype="i2").reshape(64, 64, 20, 240)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / "x.nii.gz")
    with raconvert.open(tmp_path / "x.nii.gz") as array:
        assert isinstance(array, Array)
        found = times_of(array)
    assert found is not None
    assert found.text == "of the first 204 of 240, which are decoded front to back"
    assert found.sampled.frames[-1].number == 203
    for frame in found.sampled.frames:
        np.testing.assert_array_equal(frame.values, eval(f"values{frame.key}", {"values": values}))


@pytest.mark.parametrize(
    ("axes", "shape", "titles"),
    [
        ([Axis("time", units="days", spacing=30.0), Axis("z"), Axis("y"), Axis("x")], (3, 4, 20, 20),
         ["time = 0 days", "time = 30 days", "time = 60 days"]),
        ([Axis("z"), Axis("t"), Axis("y"), Axis("x")], (4, 2, 20, 20), ["t 0", "t 1"]),
        ([], (2, 4, 20, 20), ["number 0", "number 1"]),
        ([Axis(kind="vector"), Axis(), Axis(), Axis()], (2, 4, 20, 20), None),
        ([], (4, 20, 20), None),
    ],
)  # fmt: skip
def test_time_is_the_axis_that_says_so(
    axes: list[Axis], shape: tuple[int, ...], titles: list[str] | None
) -> None:
    found = times_of(Array(np.zeros(shape), meta=Metadata(axes=axes)))
    assert (None if found is None else found.titles) == titles


# Photos -------------------------------------------------------------------------------------------


def test_a_large_photo_is_averaged_over_all_of_its_pixels(tmp_path: Path) -> None:
    """Fine stripes become grey, as means of two or three of them are; single rows are not."""
    values = np.zeros((2000, 1760, 3), "u1")
    values[::2, :, 0] = 200
    values[:, 1::2, 1] = 100
    Image.fromarray(values).save(tmp_path / "x.png", compress_level=1)
    assert values.nbytes > BUDGET
    text = page(tmp_path / "x.png")
    (shown,) = pictures(text)
    assert abs(shown[..., 0] - 100).max() <= 34
    assert abs(shown[..., 1] - 50).max() <= 17
    assert abs(shown[..., 0].mean() - 100) <= 2
    high, wide = shown.shape[:2]
    assert f"{wide} × {high} means of 1,760 × 2,000 elements" in text


@pytest.mark.parametrize("shape", [(701, 333, 3), (64, 64, 4), (333, 701)])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_averages_are_means(shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    array = Array(values)
    found = averaged(array, layout_of(array), 100)
    assert found is not None
    rows, columns = found.shape[:2]
    for row in (0, rows // 2, rows - 1):
        for column in (0, columns - 1):
            part = values[
                row * shape[0] // rows : (row + 1) * shape[0] // rows,
                column * shape[1] // columns : (column + 1) * shape[1] // columns,
            ]
            np.testing.assert_array_equal(
                found[row, column], np.rint(part.astype(float).mean(axis=(0, 1))).astype(dtype)
            )


def test_a_photo_is_never_larger_than_its_pixels(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (20, 30, 3), "u1")
    Image.fromarray(values).save(tmp_path / "x.png")
    text = page(tmp_path / "x.png")
    assert 'width="30" height="20"' in text
    np.testing.assert_array_equal(pictures(text)[0], values)
    assert "pixels wide" not in text
    np.save(tmp_path / "x.npy", np.arange(600.0).reshape(20, 30))
    assert "each element 24 pixels wide" in page(tmp_path / "x.npy")
    assert shown_size((20, 30), width=880, height=560, enlarge=False) == (30, 20)


def test_what_is_decoded_anew_for_each_region_is_read_once(tmp_path: Path) -> None:
    """Rows of a tiled image are not asked for one by one."""
    values = np.random.default_rng(0).integers(0, 999, (2, 1200, 1600), "u2")
    tifffile.imwrite(tmp_path / "x.tif", values, compression="zlib", tile=(256, 256))
    with raconvert.open(tmp_path / "x.tif") as opened:
        array = opened if isinstance(opened, Array) else opened.arrays[0]
        found = sample(array, budget=1 << 20)
        assert [frame.values.shape for frame in found.frames] == [(1200, 1600)]
        for frame in found.frames:
            np.testing.assert_array_equal(frame.values, values[frame.number])
        assert "".join(section_of(array)).count("<img") >= 1
