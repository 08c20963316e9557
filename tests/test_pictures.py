"""What pictures of arrays say: which part, hung how, in which proportions, in which values."""

from __future__ import annotations

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest

import raconvert
from raconvert.arrays import regions
from raconvert.arrays.layout import layout_of
from raconvert.cli import main
from raconvert.plugin import Array, Axis, Metadata
from raconvert.views.filmstrip import strips_of
from raconvert.views.hanging import hanging_of, scale_bar
from raconvert.views.pages.volume import stacks_of
from raconvert.views.picture import DEPTH, GRAY, SIGNS, Scale, colored, scale_of
from raconvert.views.sample import sample, shown_of, spread, values_text, where_of

nibabel = pytest.importorskip("nibabel")
netcdf4 = pytest.importorskip("netCDF4")

# Which part ---------------------------------------------------------------------------------------


def test_a_sample_does_not_beat_against_what_repeats_itself() -> None:
    digits = np.arange(2000) % 10  # as in the digits of the README
    for most in (5, 10, 20, 24):
        chosen = spread(2000, most)
        assert [at * most // 2000 for at in chosen] == [*range(most)]  # one of each equal part
        assert chosen == spread(2000, most)
        assert len(set(digits[chosen].tolist())) > min(most, 10) // 2
    assert spread(7, 9) == [*range(7)]
    assert spread(101, 5)[2] == 50
    for most in (1, 2, 3, 5, 9):
        for count in range(most, 60):  # nothing twice, also where the middle is in the next bin
            chosen = spread(count, most)
            assert chosen == sorted(set(chosen))
            assert len(chosen) == most
            if most % 2 and count > most + 1:
                assert count // 2 in chosen


@pytest.mark.parametrize("shape", [(512, 600, 700), (7000, 9000)])
def test_a_large_array_in_fortran_order_is_read_at_points(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are not read with all that lies between their elements: gigabytes for a picture."""
    path = tmp_path / "x.npy"
    values = np.lib.format.open_memmap(path, "w+", "<f4", shape, fortran_order=True)
    values[..., ::50] = 1.5
    del values
    nbytes = []
    read_at = regions.read_at

    def counted(file: object, view: memoryview, offset: int) -> int:
        nbytes.append(len(view))
        return read_at(file, view, offset)

    monkeypatch.setattr(regions, "read_at", counted)
    with raconvert.open(path) as array:
        shown = shown_of(array)
    assert 0 < sum(nbytes) < 4 << 20
    assert shown.sampled is not None
    whole = np.load(path, mmap_mode="r")
    for frame in shown.sampled.frames:
        assert frame.values.shape == (40, 40)
        plane = whole[int(frame.key[1:].split(",")[0])] if whole.ndim == 3 else whole
        assert frame.size == plane.shape
        rows, columns = (spread(length, 40) for length in plane.shape)
        assert (frame.values == plane[np.ix_(rows, columns)]).all()


@pytest.mark.parametrize("name", ["x.nii.gz", "x.nii", "x.npz", "x.nc"])
@pytest.mark.parametrize("shape", [(50, 60, 40, 30), (40, 7, 9, 11, 13), (300, 400, 40)])
def test_captions_are_keys_that_python_takes(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    if "nii" in name:
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / name)
    else:
        raconvert.write(tmp_path / name, {"x": values})
    array = raconvert.open(tmp_path / name)
    array = array if isinstance(array, Array) else array["x"]
    found = sample(array, budget=1 << 20)
    assert (
        f"{len(found.frames)} of {np.prod(shape[2:] if 'nii' in name else shape[:-2])} planes"
        in (found.text)
    )
    for frame in found.frames:
        plane = eval(f"values{frame.key}", {"values": values})
        if frame.values.shape == plane.shape:
            np.testing.assert_array_equal(frame.values, plane)
        else:  # some of its rows and columns
            assert set(frame.values.ravel().tolist()) <= set(plane.ravel().tolist())


def test_captions_say_where_a_plane_lies() -> None:
    axes = [
        Axis("time", units="days", spacing=30.0, origin=0.0), Axis("REG", labels=["USA", "EU"]),
        Axis("y"), Axis("x"),
    ]  # fmt: skip
    array = Array(np.zeros((3, 2, 4, 5)), meta=Metadata(axes=axes))
    assert where_of(array, {0: 1, 1: 1}) == "time = 30 days, REG = EU"
    frames = sample(array).frames
    assert all("days, REG = " in frame.where for frame in frames)


# Hung how -----------------------------------------------------------------------------------------

CODES = [
    "".join(pair[end] for pair, end in zip(order, ends, strict=True))
    for order in itertools.permutations(["RL", "AP", "SI"])
    for ends in itertools.product((0, 1), repeat=3)
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("dtype", ["i2", "f4", "u1"])
def test_bodies_stand_as_radiologists_hang_them(tmp_path: Path, code: str, dtype: str) -> None:
    """Judged by nibabel's canonical image: x to the right, y to the front, z up."""
    body = np.random.default_rng(0).integers(0, 99, (5, 7, 9)).astype(dtype)
    image = nibabel.Nifti1Image(body, np.diag([2.0, 3.0, 4.0, 1.0]))
    turn = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt(tuple("RAS")),
        nibabel.orientations.axcodes2ornt(tuple(code)),
    )
    nibabel.save(image.as_reoriented(turn), tmp_path / "x.nii")
    stored = np.asanyarray(nibabel.load(tmp_path / "x.nii").dataobj)

    with raconvert.open(tmp_path / "x.nii") as array:
        stacks = {stack.hanging.name: stack for stack in stacks_of(array)}
    expected = {
        "axial": ("RLAP", [body[::-1, ::-1, z].T for z in range(9)], (3.0, 2.0)),
        "coronal": ("RLSI", [body[::-1, y, ::-1].T for y in range(7)], (4.0, 2.0)),
        "sagittal": ("APSI", [body[x, ::-1, ::-1].T for x in range(5)], (4.0, 3.0)),
    }
    assert [*stacks] == [*expected]
    for name, (edges, planes, steps) in expected.items():
        stack = stacks[name]
        assert (stack.hanging.edges, stack.hanging.steps) == (edges, pytest.approx(steps))
        assert {plane.tobytes() for plane in planes} == {
            np.ascontiguousarray(plane).tobytes() for plane in stack.planes
        }
        for key, plane in zip(stack.keys, stack.planes, strict=True):
            cut = eval(f"stored{key}", {"stored": stored})
            np.testing.assert_array_equal(np.sort(cut, axis=None), np.sort(plane, axis=None))


def test_what_is_no_body_stands_as_it_is_indexed() -> None:
    array = Array(np.zeros((20, 30)), meta=Metadata(axes=[Axis("y"), Axis("x")]))
    hanging = hanging_of(array, layout_of(array))
    assert not hanging.text
    values = np.arange(6).reshape(2, 3)
    assert hanging.of(values) is values
    assert stacks_of(array) == []


def test_maps_have_north_at_the_top() -> None:
    for spacing, rows in ((2.0, [1, 0]), (-2.0, [0, 1])):
        axes = [Axis("lat", spacing=spacing, origin=-10.0), Axis("lon", spacing=1.0, origin=0.0)]
        array = Array(np.zeros((20, 30)), meta=Metadata(axes=axes))
        hanging = hanging_of(array, layout_of(array))
        assert hanging.text.startswith("map, W on the left, N at the top")
        assert hanging.of(np.arange(2)[:, None])[:, 0].tolist() == rows


def test_a_circle_is_a_circle() -> None:
    """One that is sampled at 1 × 4 mm."""
    down, right = np.mgrid[-40:40:4, -40:40:1]
    axes = [Axis("y", units="mm", spacing=4.0), Axis("x", units="mm", spacing=1.0)]
    array = Array(np.where(down**2 + right**2 < 900, 9.0, 0.0), meta=Metadata(axes=axes))
    (strip,) = strips_of(array, sample(array), 200, 200)
    (picture,) = strip.pictures
    assert picture.pixels.shape == (80, 80)
    inside = picture.pixels == picture.pixels.max()
    high, wide = inside.any(axis=1).sum(), inside.any(axis=0).sum()
    assert abs(int(high) - int(wide)) <= 4
    assert "elements 1 × 4 mm" in strip.legend(["", "", ""])
    assert scale_bar(strip.hanging, 80) == (0.25, "20 mm")
    assert scale_bar(strip.hanging._replace(units=None), 80) is None


# In which values ----------------------------------------------------------------------------------


def test_packed_values_are_physical_and_the_fill_is_missing(tmp_path: Path) -> None:
    with netcdf4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("y", 40)
        file.createDimension("x", 60)
        packed = file.createVariable("t", "i2", ("y", "x"), fill_value=-999)
        packed.scale_factor, packed.add_offset, packed.units = 0.01, 273.15, "K"
        values = np.ma.masked_less(np.arange(2400.0).reshape(40, 60) / 100 + 270, 275)
        packed[:] = values
        expected = packed[:]
    with raconvert.open(tmp_path / "x.nc") as bundle:
        shown = shown_of(bundle["t"])
        text = values_text(bundle["t"])
    assert shown.sampled is not None
    np.testing.assert_allclose(shown.sampled.values[0], expected.filled(np.nan))
    assert text == (
        "physical values are shown: value * 0.01 + 273.15, in K, missing values are shown as NaN"
    )


def test_k_space_is_shown_by_its_logarithm() -> None:
    image = np.zeros((64, 64))
    image[20:40, 25:50] = 1
    magnitude = np.abs(np.fft.fftshift(np.fft.fft2(image))) + 0.1
    assert scale_of([magnitude], GRAY).power
    scale = scale_of([magnitude], GRAY)
    middle = np.sqrt(scale.low * scale.high)
    pixels = colored(np.array([[scale.low, middle, scale.high]]), scale).pixels[0]
    first, half, last = pixels.astype(int).tolist()
    assert (first, last) == (len(SIGNS), 255)
    assert half == pytest.approx((first + last) / 2, abs=1)
    assert not scale_of([image + 0.1], GRAY).power
    assert not scale_of([np.random.default_rng(0).normal(size=(50, 50))], DEPTH).power


def test_clipped_values_are_said() -> None:
    values = np.arange(10_000.0)
    scale = scale_of([values], GRAY)
    assert scale.clips
    assert not scale_of([values.astype("u1")], GRAY).clips
    assert not Scale(0, 1, GRAY).clips


# What can be read ---------------------------------------------------------------------------------


def test_the_sound_planes_of_a_damaged_file_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.random.default_rng(0).integers(0, 999, (12, 40, 30), "i4")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", data=values, chunks=(1, 40, 30), compression=1)
        places = [made.id.get_chunk_info(number).byte_offset for number in range(12)]
    with raconvert.open(path) as bundle:
        whole = sample(bundle["x"])
    assert whole.damage is None
    broken = whole.frames[1].number
    data = bytearray(path.read_bytes())
    data[places[broken] + 2 : places[broken] + 60] = bytes(58)
    path.write_bytes(data)

    with raconvert.open(path) as bundle:
        part = sample(bundle["x"])
    assert isinstance(part.damage, raconvert.errors.Corrupt)
    assert "4 of 12 planes, 1 more cannot be read" in part.text
    for frame in part.frames:
        np.testing.assert_array_equal(frame.values, values[frame.number])

    assert main(["peek", str(path)]) == 1
    said = capsys.readouterr()
    assert "1 more cannot be read" in said.out
    assert "planes [" in said.out
    assert said.err.startswith("raconvert: ")
    assert main(["info", str(path), "--html", "-o", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text()
    assert page.count("data:image/png") == 4
    assert "The elements cannot be read" in page
    assert "every conversion is refused" in page
