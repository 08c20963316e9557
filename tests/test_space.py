"""Every corner voxel stays at its point of the world, through every format, judged by others.

SimpleITK, nibabel and MRtrix say where voxels are; header fields are not compared. Points are in
LPS, as SimpleITK has them.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK

import raconvert
from raconvert import Array, Axis, Metadata
from raconvert.arrays.metadata import Space
from raconvert.arrays.space import World, coordinates, signs, split
from raconvert.cli import main

itk = SimpleITK
SUFFIXES = ("nii", "nii.gz", "nrrd", "nhdr", "mha", "mhd")
PAIRS = list(itertools.permutations(SUFFIXES, 2))
TURNS = {"as it is": np.eye(3), "mirrored": np.diag([1.0, 1, -1]), "swapped": np.eye(3)[[1, 2, 0]]}
NEAR = 2e-3  # a quaternion, and float32 of NIfTI-1, some hundred units from the origin


def rotation(random: np.random.Generator) -> np.ndarray:
    """A random matrix at right angles, of either handedness."""
    turned, _ = np.linalg.qr(random.normal(size=(3, 3)))
    return turned


def image_of(
    seed: int, ndim: int, *, oblique: bool = True, dtype: str = "i2"
) -> tuple[itk.Image, np.ndarray]:
    """An image of ITK with random steps, and its elements with the slowest axis first."""
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(2, 6, ndim))
    values = random.integers(0, 2, shape).astype(dtype)
    image = itk.GetImageFromArray(values, isVector=False)
    directions = np.eye(ndim)
    if ndim == 2:
        angle = random.uniform(0, 6) if oblique else 0.0
        flip = random.choice([-1.0, 1.0])
        directions[:2, :2] = np.array(
            [[np.cos(angle), -np.sin(angle) * flip], [np.sin(angle), np.cos(angle) * flip]]
        )
    else:
        swapped = np.eye(3)[random.permutation(3)] * random.choice([-1.0, 1.0], 3)
        directions[:3, :3] = rotation(random) if oblique else swapped
    image.SetDirection(directions.ravel().tolist())
    image.SetSpacing(random.uniform(0.3, 4, ndim).tolist())
    image.SetOrigin(random.uniform(-150, 150, ndim).tolist())
    return image, values


def save(image: itk.Image, path: Path) -> None:
    itk.WriteImage(image, str(path))


def corners(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*((0, n - 1) for n in shape)))


def points_of_itk(path: Path) -> np.ndarray:
    """The points of all corners, by index with the fastest axis first."""
    image = itk.ReadImage(str(path))
    return np.array([image.TransformIndexToPhysicalPoint(one) for one in corners(image.GetSize())])


def points_of_nibabel(path: Path) -> np.ndarray:
    """The points of all corners, from RAS to LPS."""
    image = nib.load(path)
    places = np.array(corners(image.shape), float)[:, :3]
    places = np.pad(places, ((0, 0), (0, 3 - places.shape[1])))
    return nib.affines.apply_affine(image.affine, places) * [-1, -1, 1]


def points_of_metadata(array: Array) -> np.ndarray:
    """The points of all corners that our common metadata means, in LPS."""
    world = World.of(array.ra_axes, array.meta.space)
    assert world is not None
    turned = world.to("LPS") or world
    steps = np.array([vector or (0.0,) * turned.rank for vector in turned.vectors])
    return np.array(turned.origin) + np.array(corners(array.dims)) @ steps


def judge(path: Path, wanted: np.ndarray) -> None:
    """Every independent reader of a file sees the points."""
    found = points_of_itk(path)
    assert np.allclose(found, wanted, atol=NEAR), path
    if ".nii" in path.name:
        flat = np.pad(wanted, ((0, 0), (0, max(0, 3 - wanted.shape[1]))))[:, :3]
        assert np.allclose(points_of_nibabel(path), flat, atol=NEAR), path


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=map("-".join, PAIRS))
def test_every_pair_keeps_every_corner(source: str, target: str, tmp_path: Path) -> None:
    """Two, three and four axes, oblique or not, of either handedness: 12 images a pair."""
    for case, (ndim, oblique) in enumerate(itertools.product((2, 3, 4), (True, False))):
        for turn in range(2):
            seed = 1000 * PAIRS.index((source, target)) + 10 * case + turn
            image, values = image_of(seed, ndim, oblique=oblique)
            first = tmp_path / f"{seed}.{source}"
            save(image, first)
            wanted = points_of_itk(first)
            made = tmp_path / f"{seed}-made.{target}"
            raconvert.convert(first, made)
            judge(made, wanted)
            assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(str(made))), values)


def numbered(seed: int, ndim: int) -> itk.Image:
    """An image of random place of which no two elements are equal."""
    image, values = image_of(seed, ndim)
    made = itk.GetImageFromArray(np.arange(values.size, dtype="i2").reshape(values.shape), False)
    made.CopyInformation(image)
    return made


def places(path: Path) -> np.ndarray:
    """The point of each element, in the order of their values: it holds for any index order."""
    image = itk.ReadImage(str(path))
    values = itk.GetArrayFromImage(image).transpose()
    found = sorted((int(values[index]), index) for index in np.ndindex(values.shape))
    return np.array([image.TransformIndexToPhysicalPoint([*map(int, index)]) for _, index in found])


@pytest.mark.parametrize("through", ["ra", "h5", "zarr", "zip"])
@pytest.mark.parametrize("ndim", [2, 3, 4])
def test_chains_through_other_formats(ndim: int, through: str, tmp_path: Path) -> None:
    for number, (source, target) in enumerate(itertools.product(("nii", "nrrd", "mha"), repeat=2)):
        image = numbered(77 + number + 100 * ndim, ndim)
        first = tmp_path / f"{number}.{source}"
        save(image, first)
        middle, last = tmp_path / f"{number}.{through}", tmp_path / f"{number}-last.{target}"
        raconvert.convert(first, middle)
        report = raconvert.convert(middle, last)
        # NIfTI counts the fastest axis first, so that time comes first in a row-major array of it,
        # where no NIfTI can say it.
        turned = through in ("h5", "zarr") and ndim == 4 and target == "nii" != source
        if not turned:
            assert np.allclose(places(last), places(first), atol=NEAR), last
        else:
            assert any("space" in str(fit) for fit in report.equivalent)


def test_chains_of_all_formats(tmp_path: Path) -> None:
    """Eight formats in a row, and back to the first."""
    for ndim in (2, 3, 4):
        path = first = tmp_path / f"{ndim}.nii.gz"
        save(numbered(5 + ndim, ndim), path)
        end = "nii" if ndim < 4 else "mha"  # time is the first axis then, and cannot be in NIfTI
        for suffix in ("mha", "ra", "nrrd", "h5", "nhdr", "zarr", "mhd", "zip", end):
            following = tmp_path / f"{ndim}-after-{path.suffix[1:]}.{suffix}"
            raconvert.convert(path, following)
            path = following
        assert np.allclose(places(path), places(first), atol=NEAR)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"axes": "moved"}])
@pytest.mark.parametrize("dtype", ["i2", "u1"])
def test_casts_and_permuted_axes(options: dict[str, str], dtype: str, tmp_path: Path) -> None:
    """A permutation is one of indices: the same voxels stay at the same points."""
    for number, (source, target) in enumerate(itertools.product(SUFFIXES, ("nii", "nrrd", "mha"))):
        image, _ = image_of(300 + number, 3, dtype=dtype)
        first, last = tmp_path / f"{number}.{source}", tmp_path / f"{number}-last.{target}"
        save(image, first)
        before = itk.ReadImage(str(first))
        order = np.random.default_rng(number).permutation(3)
        said = dict(options)
        if "axes" in said:
            said["axes"] = ",".join(map(str, order))
        raconvert.convert(first, last, **said)
        after = itk.ReadImage(str(last))
        # The axes are numbered as in the source: NIfTI the fastest first, the others the slowest.
        forward = order if ".nii" in first.name else 2 - order
        if "axes" not in said:
            listed = np.arange(3)
        elif ".nii" in first.name:
            listed = forward
        else:
            listed = forward[::-1]
        for corner in corners(after.GetSize()):
            index = [0, 0, 0]
            for place, axis in enumerate(listed):
                index[int(axis)] = int(corner[place])
            found = after.TransformIndexToPhysicalPoint(corner)
            assert np.allclose(found, before.TransformIndexToPhysicalPoint(index), atol=NEAR)


def test_bools_keep_their_place(tmp_path: Path) -> None:
    image, _ = image_of(8, 3)
    save(image, tmp_path / "a.nrrd")
    with raconvert.open(tmp_path / "a.nrrd") as array:
        mask = Array(np.asarray(array) > 0, name="mask", meta=array.meta)
    wanted = np.sort(points_of_itk(tmp_path / "a.nrrd"), axis=0)
    for suffix in SUFFIXES:
        path = tmp_path / suffix / f"mask.{suffix}"
        path.parent.mkdir()
        raconvert.write(path, mask)
        assert np.allclose(np.sort(points_of_itk(path), axis=0), wanted, atol=NEAR)
        there = itk.GetArrayFromImage(itk.ReadImage(str(path)))
        assert np.array_equal(there.T if "nii" in suffix else there, np.asarray(mask))


def test_common_metadata_says_the_points(tmp_path: Path) -> None:
    """120 images of three kinds of files: our own sum of steps is that of ITK."""
    for seed in range(40):
        image, _ = image_of(9000 + seed, 2 + seed % 3, oblique=seed % 4 > 0)
        for suffix in ("nii", "nrrd", "mha"):
            path = tmp_path / f"{seed}.{suffix}"
            save(image, path)
            wanted = points_of_itk(path)
            with raconvert.open(path) as array:
                found = points_of_metadata(array)
            rank = min(wanted.shape[1], 3)
            assert np.allclose(found[:, :rank], wanted[:, :rank], atol=NEAR), path


# --- parts -----------------------------------------------------------------------------------------

PARTS = ["1:, ::-1, ...", "..., ::2, -1", "-1, ..., 1:", "::-1, 0, ...", "..., ::-2"]


@pytest.mark.parametrize("source", SUFFIXES)
def test_a_part_keeps_the_point_of_each_element(source: str, tmp_path: Path) -> None:
    """Cut by ITK's and nibabel's libraries as by us; a format without words for it says so."""
    ends = ("nii", "nrrd", "mha")
    for number, (ndim, key) in enumerate(itertools.product((3, 4), PARTS)):
        image = numbered(600 + number, ndim)
        first = tmp_path / f"{number}.{source}"
        save(image, first)
        wanted = dict(zip(sorted(itk.GetArrayFromImage(image).ravel()), places(first), strict=True))
        for end in ends:
            last = tmp_path / f"{number}-part.{end}"
            report = raconvert.convert(first, last, slice=key)
            found = points_of_elements(last)
            said = "space" in str(list(report.equivalent))
            if found is None:
                assert said, (last, key)
                continue
            for value, point in found.items():
                same = np.allclose(point[:3], wanted[value][:3], atol=NEAR)
                assert same or (end == "mha" and said), (last, key)


def points_of_elements(path: Path) -> dict[int, np.ndarray] | None:
    """The point of each element as nibabel, pynrrd or ITK has it; None if the file says none."""
    if path.suffix == ".mha":
        image = itk.ReadImage(str(path))
        values = np.sort(itk.GetArrayFromImage(image).ravel())
        return dict(zip(values, np.pad(places(path), ((0, 0), (0, 1)))[:, :3], strict=True))
    if path.suffix == ".nrrd":
        nrrd = pytest.importorskip("nrrd")
        values, header = nrrd.read(str(path), index_order="F")
        if "space origin" not in header:
            return None
        steps, origin = np.nan_to_num(header["space directions"]), header["space origin"]
        matrix = np.column_stack([*steps, origin])[:3]
        matrix[:2] *= 1 if header.get("space", "left").startswith("left") else -1
    else:
        loaded = nib.load(path)
        values, rank = np.asarray(loaded.dataobj), min(3, loaded.ndim)
        if not int(loaded.header["sform_code"]):
            return None
        affine = np.diag([-1, -1, 1.0]) @ loaded.affine[:3]
        blank = np.zeros((3, values.ndim - rank))
        matrix = np.column_stack([affine[:, :rank], blank, affine[:, 3]])
    return {int(values[at]): matrix @ (*at, 1) for at in np.ndindex(values.shape)}


def test_slices_are_those_of_nibabel(tmp_path: Path) -> None:
    """Nibabel's slicer and ours make the same affine, and nothing is lost of sform and qform."""
    for seed, key in enumerate(
        [np.s_[1:, ::2, :], np.s_[:, :, ::-1], np.s_[::-2, 1:2, :], np.s_[-1:, ::-1, 1:]]
    ):
        save(image_of(70 + seed, 3)[0], tmp_path / "a.nii")
        text = ", ".join(
            ":".join("" if n is None else str(n) for n in (k.start, k.stop, k.step)) for k in key
        )
        report = raconvert.convert(
            tmp_path / "a.nii", tmp_path / "b.nii", slice=text, overwrite=True
        )
        whole, found = nib.load(tmp_path / "a.nii"), nib.load(tmp_path / "b.nii")
        # Nibabel places a part right only if its start is said, as a number that is not negative.
        said = [slice(*k.indices(n)) for k, n in zip(key, whole.shape, strict=True)]
        wanted = whole.slicer[
            *(slice(k.start, None if k.stop < 0 else k.stop, k.step) for k in said)
        ]
        assert np.array_equal(wanted.dataobj, found.dataobj)
        assert np.allclose(wanted.affine, found.affine, atol=NEAR)
        assert np.allclose(found.get_qform(), found.affine, atol=NEAR)
        assert "qform" not in str(list(report.equivalent))
        with raconvert.open(tmp_path / "a.nii") as array:
            world = World.of(array.slicer[key].axes, array.slicer[key].meta.space)
        assert world is not None
        matrix = np.column_stack([*world.vectors, world.origin])
        assert np.allclose(matrix, wanted.affine[:3], atol=NEAR)


def test_a_slice_over_time_has_its_place_in_nifti(tmp_path: Path) -> None:
    """Time is the fourth axis of NIfTI: axes of length 1 are added, and that is said."""
    image = numbered(9, 4)
    for source, key, more in (
        ("nii", "0", 1), ("nii", ":, -1", 1), ("nii", "0, :, 0", 2), ("mha", "..., 1", 1),
    ):  # fmt: skip
        first, last = tmp_path / f"a.{source}", tmp_path / "b.nii"
        save(image, first)
        known = dict(zip(sorted(itk.GetArrayFromImage(image).ravel()), places(first), strict=True))
        report = raconvert.convert(first, last, slice=key, overwrite=True, verify=True)
        assert "axes of length 1 are added" in str(list(report.equivalent))
        assert not any("not kept: space (NIfTI" in str(fit) for fit in report.equivalent)
        found = nib.load(last)
        assert found.ndim == 4
        assert found.shape[3 - more : 3] == (1,) * more
        assert found.header["pixdim"][4] == np.float32(image.GetSpacing()[3])
        wanted = points_of_elements(last)
        assert wanted is not None
        for value, point in wanted.items():
            assert np.allclose(point, known[value][:3], atol=NEAR), key


@pytest.mark.parametrize("suffix", ["mha", "nrrd", "nii"])
def test_a_stack_of_slices_has_their_places(suffix: str, tmp_path: Path) -> None:
    """Slices of ITK that lie evenly apart; of others each item says its place."""
    image = numbered(21, 3)
    save(image, tmp_path / f"whole.{suffix}")
    wanted = places(tmp_path / f"whole.{suffix}")
    folder = tmp_path / "slices"
    folder.mkdir()
    for number in range(image.GetSize()[2]):
        save(image[:, :, number : number + 1], folder / f"{number}.{suffix}")
    for end in ("mha", "ra"):
        raconvert.convert(folder, tmp_path / f"a.{end}")
        raconvert.convert(tmp_path / f"a.{end}", tmp_path / f"{end}.mha")
        assert np.allclose(places(tmp_path / f"{end}.mha")[:, :3], wanted, atol=NEAR)
    save(image[:, :, :1], folder / f"9.{suffix}")
    report = raconvert.convert(folder, tmp_path / "b.mha")
    assert "the files lie at different places" in str(report.notes)
    assert "items" in str(list(report.equivalent))
    with raconvert.open(tmp_path / "b.mha") as array:
        assert array.meta.space is None or array.meta.space.origin is None


@pytest.mark.parametrize("suffix", ["nhdr", "mhd"])
def test_views_keep_the_place(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A header of another program over the bytes where they lie, of any format."""
    for number, (source, ndim) in enumerate(itertools.product(("nii", "mha", "h5"), (2, 3, 4))):
        save(numbered(40 + number, ndim), tmp_path / "a.nrrd")
        first, view = tmp_path / f"{number}.{source}", tmp_path / f"{number}-view.{suffix}"
        raconvert.convert(tmp_path / "a.nrrd", first)
        assert main(["refs", str(first), "-o", str(view)]) == 0
        assert np.allclose(places(view), places(tmp_path / "a.nrrd"), atol=NEAR), first
    axes = [Axis(spacing=2.0, direction=(0, 0.6, 0.8)), Axis(spacing=3.0, direction=(1, 0, 0))]
    meta = Metadata(axes=axes, space=Space("LPS", (1.0, 2, 3)))
    raconvert.write(tmp_path / "flat.ra", np.zeros((2, 3), "i2"), meta=meta)
    capsys.readouterr()
    assert main(["refs", str(tmp_path / "flat.ra"), "-o", str(tmp_path / f"flat.{suffix}")]) == 0
    assert ("space (its axes" in capsys.readouterr().err) is (suffix == "mhd")


# --- what a header says, and what it does not ------------------------------------------------------


def test_qform_alone_and_sform_before_qform(tmp_path: Path) -> None:
    turned = rotation(np.random.default_rng(3)) @ np.diag([1.5, 2, 3])
    turned *= np.sign(np.linalg.det(turned))
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = turned, [10, -20, 30]
    other = np.diag([1.5, 2.0, 3, 1])
    for codes in ((0, 1), (2, 1), (3, 0), (4, 4), (5, 2)):
        image = nib.Nifti1Image(np.zeros((3, 4, 5), "u1"), None)
        image.set_sform(affine if codes[0] else None, codes[0])
        image.set_qform(other if all(codes) else affine, codes[1])
        path = tmp_path / f"{codes[0]}{codes[1]}.nii"
        nib.save(image, path)
        wanted = points_of_nibabel(path)
        for suffix in ("mha", "nrrd"):
            made = tmp_path / f"{path.stem}.{suffix}"
            raconvert.convert(path, made)
            assert np.allclose(points_of_itk(made), wanted, atol=NEAR), (codes, suffix)
        back = tmp_path / f"{path.stem}-back.nii"
        raconvert.convert(path, back, strict=True)
        assert back.read_bytes() == path.read_bytes()


def test_frames_of_nifti_come_back_through_nrrd_and_ra(tmp_path: Path) -> None:
    for code in range(1, 6):
        image = nib.Nifti1Image(np.zeros((3, 4, 5), "u1"), None)
        image.set_sform(np.diag([2, 2, 2, 1]), code)
        nib.save(image, tmp_path / f"{code}.nii")
        for suffix in ("nrrd", "ra", "h5", "zarr"):
            raconvert.convert(tmp_path / f"{code}.nii", tmp_path / f"{code}.{suffix}")
            raconvert.convert(tmp_path / f"{code}.{suffix}", tmp_path / f"{code}-{suffix}.nii")
            assert int(nib.load(tmp_path / f"{code}-{suffix}.nii").header["sform_code"]) == code


def test_skew_is_kept_by_the_sform(tmp_path: Path) -> None:
    affine = np.array([[2, 0.5, 0, 5], [0, 3, 0.25, 6], [0, 0, 4, 7], [0, 0, 0, 1.0]])
    nib.save(nib.Nifti1Image(np.zeros((2, 3, 4), "u1"), affine), tmp_path / "a.nii")
    for suffix in ("mha", "nrrd"):
        raconvert.convert(tmp_path / "a.nii", tmp_path / f"a.{suffix}")
        raconvert.convert(tmp_path / f"a.{suffix}", tmp_path / f"b-{suffix}.nii")
        back = nib.load(tmp_path / f"b-{suffix}.nii")
        assert np.allclose(back.affine, affine, atol=1e-6)
        assert int(back.header["qform_code"]) == 0


@pytest.mark.parametrize("suffix", ["mha", "nrrd"])
def test_an_unknown_fourth_spacing_keeps_the_others(suffix: str, tmp_path: Path) -> None:
    image = nib.Nifti1Image(np.zeros((2, 3, 4, 5), "i2"), np.diag([2.0, 2, 2, 1]))
    image.header.set_zooms((2, 2, 2, 1))
    nib.save(image, tmp_path / "a.nii")
    report = raconvert.convert(tmp_path / "a.nii", tmp_path / f"a.{suffix}")
    assert not any("spacing" in str(fit) for fit in report.equivalent)
    assert itk.ReadImage(str(tmp_path / f"a.{suffix}")).GetSpacing() == (2, 2, 2, 1)
    with raconvert.open(tmp_path / f"a.{suffix}") as array:
        assert [axis.spacing for axis in array.ra_axes] == [2, 2, 2, None]


def test_time_keeps_spacing_and_start(tmp_path: Path) -> None:
    axes = [Axis(spacing=2.0, direction=row, units="mm") for row in np.eye(3).tolist()]
    axes.append(Axis(spacing=0.5, origin=3.0))
    meta = Metadata(axes=axes[::-1], space=Space("LPS", (1.0, 2, 3)))
    raconvert.write(tmp_path / "a.nrrd", np.zeros((5, 4, 3, 2), "i2"), meta=meta)
    for suffix in SUFFIXES:
        path = tmp_path / suffix / f"a.{suffix}"
        path.parent.mkdir()
        raconvert.convert(tmp_path / "a.nrrd", path)
        with raconvert.open(path) as array:
            time = array.ra_axes[3]
            assert (time.spacing, time.origin, time.direction) == (0.5, 3.0, None)
        found = itk.ReadImage(str(path))
        assert np.allclose(found.GetOrigin(), (1, 2, 3, 3))
        assert np.allclose(found.GetSpacing(), (2, 2, 2, 0.5))


@pytest.mark.parametrize("ndim", [2, 3])
def test_components_of_samples_stay_components(ndim: int, tmp_path: Path) -> None:
    values = np.arange(2 * 3 * 4 * 3, dtype="f4").reshape(2, 3, 4, 3)
    values = values if ndim == 3 else values[1]
    image = itk.GetImageFromArray(values, isVector=True)
    image.SetOrigin((5, 6, 7)[:ndim])
    image.SetSpacing((1, 2, 3)[:ndim])
    image.SetDirection((0, 1, 0, 1, 0, 0, 0, 0, -1) if ndim == 3 else (0.6, -0.8, 0.8, 0.6))
    for source, target in itertools.permutations(("nrrd", "nhdr", "mha", "mhd"), 2):
        save(image, tmp_path / f"a.{source}")
        raconvert.convert(tmp_path / f"a.{source}", tmp_path / f"b.{target}", overwrite=True)
        found = itk.ReadImage(str(tmp_path / f"b.{target}"))
        assert found.GetNumberOfComponentsPerPixel() == 3
        assert np.array_equal(itk.GetArrayFromImage(found), values)
        judge(tmp_path / f"b.{target}", points_of_itk(tmp_path / f"a.{source}"))


SPACES = {
    "RAS": ("space: right-anterior-superior", (-1, -1, 1)),
    "LAS": ("space: left-anterior-superior", (1, -1, 1)),
    "LPS": ("space: LPS", (1, 1, 1)),
    "scanner": ("space: scanner-xyz", (1, 1, 1)),
    "right-handed": ("space: 3D-right-handed", (1, 1, 1)),
    "no name": ("space dimension: 3", (1, 1, 1)),
}


@pytest.mark.parametrize("name", SPACES)
def test_spaces_of_nrrd(name: str, tmp_path: Path) -> None:
    """A frame that is not anatomical is taken for LPS, as ITK does, and that is said."""
    line, factors = SPACES[name]
    path = tmp_path / "a.nrrd"
    path.write_bytes(
        f"NRRD0004\ntype: uint8\ndimension: 3\n{line}\nsizes: 2 3 4\nencoding: raw\n"
        "space directions: (0,1.5,0) (0.8,0,-0.6) (1.2,0,1.6)\nspace origin: (5,6,7)\n\n".encode()
        + bytes(24)
    )
    wanted = points_of_itk(path)
    assert np.allclose(wanted[0], np.multiply((5, 6, 7), factors))
    for suffix in ("nii", "mha"):
        report = raconvert.convert(path, tmp_path / f"b.{suffix}")
        judge(tmp_path / f"b.{suffix}", wanted)
        said = any("frame" in str(fit) for fit in report.equivalent)
        assert said is (name in ("scanner", "right-handed", "no name"))
    raconvert.convert(path, tmp_path / "c.nrrd", strict=True)
    assert np.array_equal(points_of_itk(tmp_path / "c.nrrd"), wanted)


def test_a_directionless_array_gets_no_space(tmp_path: Path) -> None:
    """Spacings alone stay spacings alone: no format makes up an orientation."""
    meta = Metadata(axes=[Axis(spacing=2.0), Axis(spacing=3.0), Axis(spacing=4.0)])
    raconvert.write(tmp_path / "a.nii", np.zeros((2, 3, 4), "u1"), meta=meta)
    header = nib.load(tmp_path / "a.nii").header
    assert (int(header["sform_code"]), int(header["qform_code"])) == (0, 0)
    for suffix in ("nrrd", "mha"):
        raconvert.convert(tmp_path / "a.nii", tmp_path / f"a.{suffix}")
        text = (tmp_path / f"a.{suffix}").read_bytes()
        assert b"space directions" not in text
        assert b"TransformMatrix" not in text


def test_changed_common_fields_win_over_the_namespace(tmp_path: Path) -> None:
    image = nib.Nifti1Image(np.zeros((2, 3, 4), "u1"), None)
    image.set_sform(np.diag([1.0, 2, 3, 1]), 1)
    image.set_qform(np.diag([3.0, 2, 1, 1]), 2)
    nib.save(image, tmp_path / "a.nii")
    save(image_of(4, 3)[0], tmp_path / "a.mha")
    save(image_of(4, 3)[0], tmp_path / "a.nrrd")
    for suffix in ("nii", "mha", "nrrd"):
        with raconvert.open(tmp_path / f"a.{suffix}") as array:
            assert array.meta.space is not None
            array.meta = array.meta.replace(space=Space(array.meta.space.frame, (7.0, 8.0, 9.0)))
            wanted = points_of_metadata(array)
            raconvert.write(tmp_path / f"b.{suffix}", array)
        judge(tmp_path / f"b.{suffix}", wanted)


def test_linear_coordinates_of_other_programs(tmp_path: Path) -> None:
    """An image along the axes of the world has coordinates that xarray reads; an oblique has not."""
    xarray = pytest.importorskip("xarray")
    axes = [
        Axis("x", spacing=2.0, direction=(-1, 0, 0), units="mm"),
        Axis("y", spacing=3.0, direction=(0, 1, 0), units="mm"),
        Axis("z", spacing=4.0, direction=(0, 0.6, 0.8), units="mm"),
    ]
    meta = Metadata(axes=axes[::-1], space=Space("LPS", (10.0, 20.0, 30.0)))
    array = Array(np.zeros((4, 3, 2), "i2"), name="scan", meta=meta)
    raconvert.write(tmp_path / "a.zarr", {"scan": array})
    with xarray.open_zarr(tmp_path / "a.zarr", consolidated=False) as found:
        assert found["x"].values.tolist() == [10, 8]
        assert found["y"].values.tolist() == [20, 23, 26]
        assert "z" not in found.coords
    with raconvert.open(tmp_path / "a.zarr") as bundle:
        assert World.of(bundle["scan"].ra_axes, bundle["scan"].meta.space) == World.of(
            array.ra_axes, meta.space
        )


# --- the parts -------------------------------------------------------------------------------------


def test_split_is_exact_where_doubles_allow_it() -> None:
    random = np.random.default_rng(1)
    exact = 0
    for vector in random.normal(size=(500, 3)) * random.uniform(0.01, 100, (500, 1)):
        parts = split(vector.tolist())
        assert parts is not None
        spacing, direction = parts
        assert np.allclose(np.linalg.norm(direction), 1)
        product = [spacing * part for part in direction]
        assert np.allclose(product, vector, rtol=1e-15, atol=0)
        exact += product == vector.tolist()
    assert exact > 490
    assert split((0, 0, 0)) is None


def test_signs_between_frames() -> None:
    assert signs("LPS", "scanner-RAS") == (-1, -1, 1)
    assert signs("LAS", "LPS") == (1, -1, 1)
    assert signs("scanner-xyz", "LPS") is None


def test_coordinates_of_an_unknown_origin_are_unknown() -> None:
    (axis,) = coordinates([Axis("x", spacing=2.0, direction=(1, 0, 0))], Space("LPS"))
    assert axis.spacing is None


# --- MRtrix ----------------------------------------------------------------------------------------


def points_of_mrtrix(mrinfo: str, path: Path) -> np.ndarray:
    """The points of all corners as `mrinfo` has them, with its strides undone, in LPS."""

    def asked(what: str) -> list[list[float]]:
        text = subprocess.run(
            [mrinfo, what, str(path)], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        rows = [re.findall(r"[-+0-9.e]+", line) for line in text.splitlines() if line.strip()]
        return [[float(word) for word in row] for row in rows]

    matrix = np.array(asked("-transform"))
    (size,), (spacing,), (strides,) = asked("-size"), asked("-spacing"), asked("-strides")
    points = []
    order = np.argsort(np.abs(strides[:3]))  # which of its axes is that of the file
    for corner in corners((*nib.load(path).shape[:3], 1)[:3]):
        index = np.zeros(3)
        for place, axis in enumerate(order):
            step = corner[place]
            index[axis] = step if strides[axis] > 0 else size[axis] - 1 - step
        points.append(matrix[:3, :3] @ (index * spacing[:3]) + matrix[:3, 3])
    return np.array(points) * [-1, -1, 1]


@pytest.mark.parametrize("suffix", ["nrrd", "mha"])
def test_mrtrix_sees_the_same_points(suffix: str, tmp_path: Path, tool: Callable[..., str]) -> None:
    """Files of ITK by us to NIfTI, and by `mrconvert` to another NIfTI and by us back."""
    mrinfo, mrconvert = tool("mrinfo"), tool("mrconvert")
    for seed in range(7):
        ndim = (3, 3, 3, 4, 4, 2, 2)[seed]
        image, _ = image_of(50 + seed, ndim, oblique=seed > 1)
        if seed % 2:  # of the other handedness
            turned = np.reshape(image.GetDirection(), (ndim, ndim)) @ np.diag(
                [-1.0] + [1] * (ndim - 1)
            )
            image.SetDirection(turned.ravel().tolist())
        first, made = tmp_path / f"{seed}.{suffix}", tmp_path / f"{seed}.nii"
        save(image, first)
        wanted = np.unique(np.pad(points_of_itk(first), ((0, 0), (0, 1)))[:, :3].round(3), axis=0)
        raconvert.convert(first, made)
        found = np.unique(points_of_mrtrix(mrinfo, made).round(3), axis=0)
        assert np.allclose(found, wanted, atol=NEAR)
        if ndim == 2:  # MRtrix makes three axes of it, the third of a spacing of its own
            continue
        theirs, back = tmp_path / f"{seed}-mrtrix.nii", tmp_path / f"{seed}-back.{suffix}"
        subprocess.run([mrconvert, "-quiet", made, theirs], check=True, timeout=60)
        raconvert.convert(theirs, back)
        assert np.allclose(points_of_itk(back), points_of_itk(theirs), atol=NEAR)
        found = np.unique(points_of_mrtrix(mrinfo, theirs).round(2), axis=0)
        assert np.allclose(found, np.unique(points_of_itk(back)[:, :3].round(2), axis=0), atol=0.02)
