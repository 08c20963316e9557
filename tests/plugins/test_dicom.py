"""DICOM: series as SimpleITK (GDCM) and dcm2niix place them, pixels as pydicom decodes them."""

from __future__ import annotations

import gzip
import itertools
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dicom_files as made
import numpy as np
import pytest
from pairs import Pairs
from raconvert.plugins.dicom import codecs
from raconvert.plugins.dicom.frames import file_of, seconds_of
from raconvert.plugins.dicom.header import read_header
from raconvert.plugins.dicom.series import parts_of

import raconvert
from raconvert.errors import (
    Corrupt,
    MissingDependency,
    RaconvertError,
    TooLarge,
    Unsupported,
    UsageError,
)
from raconvert.files.limits import Limits
from raconvert.files.source import Source
from raconvert.registry import by_name, load

sitk = pytest.importorskip("SimpleITK")
pydicom = pytest.importorskip("pydicom")
nibabel = pytest.importorskip("nibabel")

Point = tuple[float, ...]


def by_pydicom(path: Path) -> np.ndarray:
    return np.asarray(pydicom.dcmread(path).pixel_array)


IN_PAIRS = (Pairs(name="dicom", suffix=".dcm", read=by_pydicom, reads_only=True),)


def read(path: Path, **reading: Any) -> raconvert.Bundle:
    return raconvert.open_bundle(path, **reading)


def only(path: Path, **reading: Any) -> Any:
    """The values of the one array of a file or folder."""
    with read(path, **reading) as bundle:
        assert len(bundle.arrays) == 1, bundle.names
        return bundle.arrays[0][...]


def corners(image: Any) -> dict[Point, float]:
    """The value at each corner of an image, by its point in the patient."""
    found = {}
    for place in itertools.product(*((0, n - 1) for n in image.GetSize())):
        point = image.TransformIndexToPhysicalPoint(place)
        found[tuple(np.round(point, 2) + 0.0)] = image.GetPixel(place)
    return found


def by_gdcm(folder: Path) -> Any:
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    return reader.Execute()


def by_dcm2niix(program: str, folder: Path, target: Path) -> Any:
    target.mkdir()
    words = [program, "-b", "n", "-z", "n", "-f", "x", "-o", str(target), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = target.glob("*.nii")
    return nibabel.load(path)


# Places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("direction", made.DIRECTIONS)
def test_slices_lie_where_others_see_them(
    direction: str, ascending: bool, tool: Callable[..., str], tmp_path: Path
) -> None:
    """Names and numbers in another order than positions; NRRD and NIfTI of the same folder."""
    values = made.volume((5, 6, 7), "uint16", 12)
    order = [3, 0, 4, 1, 2] if ascending else [4, 3, 2, 1, 0]
    folder = tmp_path / "scan"
    made.series(folder, values, direction, order=order, BitsStored=12, HighBit=11)
    wanted = by_gdcm(folder)
    for suffix in ("nrrd", "nii", "mha"):
        raconvert.convert(folder, tmp_path / f"x.{suffix}")
        image = sitk.ReadImage(str(tmp_path / f"x.{suffix}"))
        assert corners(image) == corners(wanted), suffix

    theirs = by_dcm2niix(tool("dcm2niix"), folder, tmp_path / "out")
    ours = nibabel.load(tmp_path / "x.nii")
    for place in itertools.product(*map(range, theirs.shape)):
        at = np.linalg.solve(ours.affine, theirs.affine @ [*place, 1])[:3]
        assert np.allclose(at, at.round(), atol=1e-3)
        assert theirs.dataobj[place] == ours.dataobj[tuple(at.round().astype(int))]


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("uint8", 8), ("int8", 8), ("uint16", 8), ("uint16", 12), ("int16", 12), ("uint16", 16),
     ("int16", 16), ("uint32", 32), ("int32", 32)],
)  # fmt: skip
@pytest.mark.parametrize("syntax", [made.EXPLICIT, made.IMPLICIT, made.BIG, made.DEFLATED])
def test_types_and_bits(dtype: str, bits: int, syntax: str, tmp_path: Path) -> None:
    """As pydicom decodes them, in every native transfer syntax; unused bits are not values."""
    values = made.volume((3, 5, 7), dtype, bits)
    folder = tmp_path / "scan"
    made.series(folder, values, syntax=syntax, BitsStored=bits, HighBit=bits - 1)
    with read(folder) as bundle:
        (array,) = bundle.arrays
        found = array[...]
        assert (found.dtype.str[1:], found.shape) == (np.dtype(dtype).str[1:], values.shape)
        assert np.array_equal(found, values)
        for key in (0, -1, slice(None, None, -2), (1, slice(1, 3)), (..., 2), slice(0, 0)):
            assert np.array_equal(array[key], values[key]), key
    if bits == values.dtype.itemsize * 8 and dtype in ("uint16", "int16"):
        assert np.array_equal(sitk.GetArrayFromImage(by_gdcm(folder)), values)


def test_bits_above_those_stored_are_no_part_of_a_value(tmp_path: Path) -> None:
    values = made.volume((4, 6), "int16", 12)
    noisy = (values.view("u2") & 0x0FFF) | 0x5000
    ds = made.dataset(noisy, BitsStored=12, HighBit=11, PixelRepresentation=1)
    path = made.save(ds, tmp_path / "x.dcm")
    assert np.array_equal(only(path), values)
    assert np.array_equal(only(path), pydicom.pixels.pixel_array(str(path)))
    shifted = (values.view("u2") << 4).astype("u2")
    ds = made.dataset(shifted, BitsStored=12, HighBit=15, PixelRepresentation=1)
    assert np.array_equal(only(made.save(ds, tmp_path / "y.dcm")), values)


FILES = sorted(
    path for path in Path(pydicom.__file__).parent.joinpath("data/test_files").glob("*.dcm")
)  # fmt: skip
# Files that pydicom decodes and we refuse, and why.
REFUSED = {
    "SC_ybr_full_422_uncompressed": "colours of a kind",
    "liver_1frame": "functional group for each frame",
    "liver_expb_1frame": "functional group for each frame",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_pydicom(path: Path) -> None:
    """What pydicom decodes is the same here; what it does not is refused. Lossy colours are near."""
    pytest.importorskip("openjpeg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            header = pydicom.dcmread(path, force=True)
            wanted = pydicom.pixels.pixel_array(header)
        except Exception:  # noqa: BLE001 - whatever it says
            with pytest.raises(RaconvertError):
                only(path)
            return
    if path.stem in REFUSED:
        with pytest.raises(RaconvertError, match=REFUSED[path.stem]):
            only(path)
        return
    found = only(path)
    assert found.shape == wanted.shape
    lossy = "YBR" in header.PhotometricInterpretation or header.SamplesPerPixel > 1
    near = 3 * (lossy and "JPEG" in header.file_meta.TransferSyntaxUID.name)
    assert np.abs(found.astype("i8") - wanted.astype("i8")).max() <= near


def test_deflated_frames_in_any_order(tmp_path: Path) -> None:
    """Forwards as they are inflated; backwards after all of them were, once."""
    values = made.volume((6, 40, 50), "int16")
    ds = made.dataset(values, NumberOfFrames=6)
    path = made.save(ds, tmp_path / "x.dcm", made.DEFLATED)
    with read(path) as bundle:
        assert np.array_equal(bundle.arrays[0][::-1], values[::-1])
        assert np.array_equal(bundle.arrays[0][2], values[2])
    plugin = load(by_name("dicom"))
    with plugin.read(Source(str(path), limits=Limits(metadata_bytes=1000))) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
    with pytest.raises(TooLarge, match="very much before its pixels"):
        plugin.read(Source(str(path), limits=Limits(metadata_bytes=-1)))


def test_what_a_header_may_leave_out_and_its_largest_image(tmp_path: Path) -> None:
    path = tmp_path / "x.dcm"
    path.write_bytes(made.raw(x00280103=None, x00280102=None, x00280101=None, x00280002=None))
    assert only(path).dtype == np.uint16
    long = made.element(0x7FE00010, b"OW", np.arange(65535, dtype="<u2").tobytes())
    path.write_bytes(made.raw(x00280010=b"\xff\xff", x00280011=made.short(1), pixels=long))
    assert np.array_equal(only(path)[:, 0], np.arange(65535))
    odd = {"x00200011": (b"IS", b"many"), "x00200013": (b"IS", b"1-2 "), "x00180081": b"long"}
    path.write_bytes(made.raw(**odd))
    with read(path) as bundle:  # nothing depends on these
        assert bundle.names == ["MR"]
    path.write_bytes(made.raw(x00280101=made.short(12), x00280102=made.short(11)))
    assert only(path).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("010203.5", 3723.5), ("12", 43200), ("1230", 45000), ("00010101000001", 86401),
     ("20240229010000.25", 738945 * 86400 + 3600.25), ("12:30:15", 45015), ("101500+0100", 36900),
     ("20249999", None), ("noon", None), ("", None), ("1200.x", None)],
)  # fmt: skip
def test_times_as_dicom_writes_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_what_is_missing_for_encoded_frames_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pydicom[\s\S]*pip install 'raconvert\[dicom\]'"):
        only(FIXTURES / "rle.dcm")
    assert only(FIXTURES / "big.dcm").shape == (6, 7)
    with pytest.raises(MissingDependency, match="pip install pydicom pylibjpeg pylibjpeg-libjpeg"):
        codecs.check_decoder("1.2.840.10008.1.2.4.70", "x.dcm")


# Scale -----------------------------------------------------------------------------------------


def test_one_scale_of_all_slices_is_that_of_the_array(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    scale = {"RescaleSlope": 0.5, "RescaleIntercept": -1024, "RescaleType": "HU"}
    made.series(tmp_path / "ct", values, sop=made.CT, **scale)
    with read(tmp_path / "ct") as bundle:
        (array,) = bundle.arrays
        assert (bundle.names, array.meta.units) == (["CT_3"], "HU")
        assert array.meta.attributes == {"scale_factor": 0.5, "add_offset": -1024}
        assert np.array_equal(array[...], values)
    physical = only(tmp_path / "ct", unscale=True)
    assert np.array_equal(physical, values * 0.5 - 1024)
    assert np.array_equal(sitk.GetArrayFromImage(by_gdcm(tmp_path / "ct")), physical)


def test_a_scale_of_each_slice_is_applied_or_refused(
    tool: Callable[..., str], tmp_path: Path
) -> None:
    values = made.volume((4, 5, 6), "int16", 10)
    made.series(
        tmp_path / "pet", values, order=[2, 0, 3, 1],
        each=lambda n: {"RescaleSlope": 0.5 + n, "RescaleIntercept": float(n)},
    )  # fmt: skip
    wanted = values * (0.5 + np.arange(4))[:, None, None] + np.arange(4)[:, None, None]
    with pytest.raises(Unsupported, match=r"scales of their own[\s\S]*unscale=True"):
        raconvert.convert(tmp_path / "pet", tmp_path / "x.nrrd")
    assert not (tmp_path / "x.nrrd").exists()
    with read(tmp_path / "pet", unscale=True) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], wanted)
        for key in (1, (slice(None), 2), (..., 0), (slice(None, None, -1), slice(1, 3))):
            assert np.array_equal(array[key], wanted[key])
        assert array.meta.formats == {}
    raconvert.convert(tmp_path / "pet", tmp_path / "x.nii", unscale=True, max_memory=1 << 20)
    theirs = by_dcm2niix(tool("dcm2niix"), tmp_path / "pet", tmp_path / "out")
    ours = nibabel.load(tmp_path / "x.nii")
    at = np.linalg.solve(ours.affine, theirs.affine @ [1, 2, 3, 1])[:3].round().astype(int)
    assert np.allclose(theirs.get_fdata()[1, 2, 3], ours.get_fdata()[tuple(at)], rtol=1e-6)


# Colours and what is bright ----------------------------------------------------------------------


def test_colours_planes_and_ybr(tmp_path: Path) -> None:
    values = made.volume((2, 6, 8, 3), "uint8")
    colour = {"SamplesPerPixel": 3, "NumberOfFrames": 2, "sop": made.SC}
    path = made.save(made.dataset(values, **colour), tmp_path / "a.dcm")
    planes = np.moveaxis(values, -1, 1)
    ds = made.dataset(values, **colour, PlanarConfiguration=1)
    ds.PixelData = np.ascontiguousarray(planes).tobytes()
    other = made.save(ds, tmp_path / "b.dcm")
    with read(path) as bundle, read(other) as planar:
        for array in (bundle.arrays[0], planar.arrays[0]):
            assert np.array_equal(array[...], values)
            assert array.meta.axes[-1].kind == "RGB-color"
        assert np.array_equal(planar.arrays[0][1, 2:4, :, 0], values[1, 2:4, :, 0])
    ybr = made.save(
        made.dataset(values, **colour, PhotometricInterpretation="YBR_FULL"), tmp_path / "c.dcm"
    )
    with pytest.raises(Unsupported, match="colours in YBR_FULL"):
        only(ybr)
    with read(ybr, in_opts={"colours": "stored"}) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
        assert bundle.arrays[0].meta.axes[-1].labels == ("Y", "CB", "CR")
    rgb = only(ybr, in_opts={"colours": "rgb"}).astype(int)
    assert np.abs(rgb - pydicom.pixels.pixel_array(str(ybr)).astype(int)).max() <= 1


def test_an_icon_in_the_header_is_passed(tmp_path: Path) -> None:
    """Its pixels may be encoded, in fragments of their own."""
    icon = made.element(0x00280010, b"US", made.short(9)) + made.fragments(b"icon" * 9)
    path, six = tmp_path / "x.dcm", np.arange(6, dtype="u2").tobytes()
    whole = made.item(icon)
    ended = made.item(icon + made.ended(False), made.UNDEFINED)
    for items, nbytes in (
        (whole, None), (ended, None), (whole + made.ended(True), made.UNDEFINED),
        (ended + made.ended(True), made.UNDEFINED),
    ):  # fmt: skip
        sequence = made.element(0x00880200, b"SQ", items, nbytes)
        path.write_bytes(made.raw(sequence, pixels=made.element(0x7FE00010, b"OW", six)))
        assert only(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_small_values_may_be_bright(tmp_path: Path) -> None:
    values = made.volume((4, 6), "uint8")
    ds = made.dataset(values, sop=made.SC, PhotometricInterpretation="MONOCHROME1")
    path = made.save(ds, tmp_path / "x.dcm")
    with read(path) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
        assert bundle.arrays[0].meta.formats["dicom"] == {"photometric": "MONOCHROME1"}
        assert any(note.startswith("MONOCHROME1") for note in bundle.notes)


def test_bits_and_floats(tmp_path: Path) -> None:
    """Frames of bits need not begin at a byte."""
    bits = np.random.default_rng(1).random((3, 5, 7)) < 0.5
    ds = made.dataset(np.zeros((3, 5, 7), "u1"), NumberOfFrames=3, BitsAllocated=1, BitsStored=1,
                      HighBit=0)  # fmt: skip
    ds.PixelData = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    path = made.save(ds, tmp_path / "x.dcm")
    with read(path) as bundle:
        assert bundle.arrays[0].dtype == bool
        assert np.array_equal(bundle.arrays[0][...], bits)
        assert np.array_equal(bundle.arrays[0][1:, 2], bits[1:, 2])
    for dtype, keyword in (("f4", "FloatPixelData"), ("f8", "DoubleFloatPixelData")):
        values = np.random.default_rng(2).random((4, 6)).astype(dtype)
        ds = made.dataset(np.zeros((4, 6), "u2"))
        path = made.save(ds, tmp_path / "y.dcm")
        ds = pydicom.dcmread(path)
        del ds.PixelData
        setattr(ds, keyword, values.tobytes())
        ds.BitsAllocated = 8 * values.itemsize
        ds.save_as(path)
        assert np.array_equal(only(path), values)


# Tables of the modality, overlays --------------------------------------------------------------------


def modality(first: int, bits: int, entries: Any, *, vr: str = "US") -> Any:
    """A Modality LUT Sequence of one item."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    item = Dataset()
    item.add_new("LUTDescriptor", "SS" if first < 0 else "US", [len(entries), first, bits])
    item.ModalityLUTType = "HU"
    raw = np.asarray(entries, "<u2")
    item.add_new("LUTData", vr, raw.tobytes() if vr == "OW" else raw.tolist())
    return Sequence([item])


@pytest.mark.parametrize("syntax", [made.EXPLICIT, made.IMPLICIT])
@pytest.mark.parametrize(
    ("dtype", "first", "bits", "vr"),
    [("uint8", 0, 8, "US"), ("uint8", 40, 16, "OW"), ("uint16", 1000, 16, "US"),
     ("int16", -300, 16, "OW"), ("int16", -300, 8, "US")],
)  # fmt: skip
def test_a_table_of_the_modality_is_applied_when_asked_for(
    dtype: str, first: int, bits: int, vr: str, syntax: str, tmp_path: Path
) -> None:
    """Below the first entry, within and above the last: as pydicom has it."""
    count = 200 if bits == 8 else 3000
    entries = np.random.default_rng(3).integers(0, 1 << bits, count)
    values = made.volume((3, 24, 26), dtype)
    near = np.random.default_rng(4).integers(first, first + count, values.shape[1:])
    if dtype != "uint8":
        values[1] = near
    table = modality(first, bits, entries, vr=vr)
    made.series(tmp_path / "s", values, syntax=syntax, ModalityLUTSequence=table)
    paths = sorted((tmp_path / "s").iterdir())
    datasets = [pydicom.dcmread(path) for path in paths]
    # In 16 bits the library takes 32767 for a small value, as its differences run over.
    wide = [ds.pixel_array.astype("i4") for ds in datasets]
    applied = [*map(pydicom.pixels.apply_modality_lut, wide, datasets)]
    wanted = np.stack(applied)
    assert np.array_equal(only(tmp_path / "s"), values)
    with read(tmp_path / "s") as bundle:
        assert any("table of the modality" in note for note in bundle.notes)
    with read(tmp_path / "s", unscale=True) as bundle:
        (array,) = bundle.arrays
        assert array.dtype == wanted.dtype
        assert np.array_equal(array[...], wanted)
        assert np.array_equal(array[1:, 3, ::-2], wanted[1:, 3, ::-2])
        assert array.meta.units == "HU"
        assert array.meta.axes[0].spacing == 2.5
        assert not any("table of the modality" in note for note in bundle.notes)
    raconvert.convert(tmp_path / "s", tmp_path / "s.nrrd", unscale=True)
    assert np.array_equal(raconvert.read(tmp_path / "s.nrrd"), wanted)


def test_slices_of_several_tables_are_arrays_of_their_own(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "uint8")
    rng = np.random.default_rng(5)
    for number, slice_ in enumerate(values):
        made.series(tmp_path / "s", slice_[None], start=1 + number,
                    ModalityLUTSequence=modality(0, 16, rng.integers(0, 999, 256)))  # fmt: skip
    with read(tmp_path / "s") as bundle:
        assert [array.shape for array in bundle.arrays] == [(4, 5)] * 3
        assert any("table of the modality" in note for note in bundle.notes)
    paths = sorted((tmp_path / "s").iterdir())
    plugin = load(by_name("dicom"))
    for most, fits in ((3 * 512, True), (3 * 512 - 1, False)):
        sources = [Source(str(path), limits=Limits(metadata_bytes=most)) for path in paths]
        if fits:
            plugin.read_together(sources, folder=None).close()
            continue
        with pytest.raises(TooLarge, match=f"at most {most} bytes of tables"):
            plugin.read_together(sources, folder=None)


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    values = made.volume((4, 5), "uint8")
    for number, (entries, bits, what) in enumerate(
        [([1, 2], 17, "entries of no size"), ([1, 999], 8, "more bits than it says")]
    ):
        table = modality(0, bits, entries)
        path = made.save(made.dataset(values, ModalityLUTSequence=table), tmp_path / f"{number}")
        with pytest.raises(Corrupt, match=what):
            only(path)
    table = modality(0, 16, [1, 2])
    table[0].LUTDescriptor = [3, 0, 16]
    path = made.save(made.dataset(values, ModalityLUTSequence=table), tmp_path / "short")
    with pytest.raises(Corrupt, match="too short"):
        only(path)


def test_overlays_are_named_and_left_out(tmp_path: Path) -> None:
    """Also of another slice than the first one."""
    values = made.volume((3, 4, 8), "uint8")

    made.series(tmp_path / "s", values)
    ds = pydicom.dcmread(tmp_path / "s" / "IM0002")
    ds.add_new(0x60020010, "US", 4)
    ds.add_new(0x60023000, "OW", bytes(4))
    ds.save_as(tmp_path / "s" / "IM0002")
    with read(tmp_path / "s") as bundle:
        assert "overlays are left out: group 6002" in bundle.notes
        assert np.array_equal(bundle.arrays[0][...], values)


# Objects of many frames --------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["axial", "oblique"])
@pytest.mark.parametrize("sop", [made.ENHANCED_MR, made.ENHANCED_CT])
def test_enhanced_objects(
    sop: str, direction: str, tool: Callable[..., str], tmp_path: Path
) -> None:
    """Each frame by its functional groups, in the order of positions."""
    values = made.volume((5, 6, 7), "uint16", 12)
    more = {"BitsStored": 12, "HighBit": 11}
    path = made.enhanced(tmp_path / "e" / "x.dcm", values, direction, sop=sop,
                         order=[3, 1, 0, 2, 4], **more)  # fmt: skip
    raconvert.convert(path, tmp_path / "x.nrrd")
    made.series(tmp_path / "scan", values, direction, **more)
    image = sitk.ReadImage(str(tmp_path / "x.nrrd"))
    assert corners(image) == corners(by_gdcm(tmp_path / "scan"))
    slopes = made.enhanced(tmp_path / "s.dcm", values, slopes=[1, 2, 3, 4, 5], **more)
    with pytest.raises(Unsupported, match="scales of their own"):
        raconvert.convert(slopes, tmp_path / "y.nrrd")
    assert np.array_equal(only(slopes, unscale=True),
                          values * np.arange(1.0, 6)[:, None, None])  # fmt: skip


def test_times_of_an_enhanced_object(tmp_path: Path) -> None:
    """Frames in any order; the temporal position of each tells them apart."""
    values = made.volume((2, 3, 4, 5), "uint16")
    from pydicom.dataset import Dataset

    order = [(1, 2), (0, 0), (1, 0), (0, 2), (0, 1), (1, 1)]
    cosines, positions = made.places("coronal", 3)
    frames = np.stack([values[at] for at in order])
    ds = made.dataset(frames, sop=made.ENHANCED_MR, NumberOfFrames=6)
    groups = []
    for time, slice_ in order:
        group, place, plane, content, measures = (Dataset() for _ in range(5))
        place.ImagePositionPatient = [*map(float, positions[slice_])]
        plane.ImageOrientationPatient = cosines
        content.TemporalPositionIndex = time + 1
        measures.PixelSpacing, measures.SpacingBetweenSlices = [0.75, 1.25], 2.5
        group.PlanePositionSequence, group.PlaneOrientationSequence = [place], [plane]
        group.FrameContentSequence, group.PixelMeasuresSequence = [content], [measures]
        groups.append(group)
    ds.PerFrameFunctionalGroupsSequence = groups
    with read(made.save(ds, tmp_path / "x.dcm")) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], values)
        assert np.array_equal(array[1, :, 2], values[1, :, 2])
        assert [axis.vector is None for axis in array.meta.axes] == [True, False, False, False]


RLE = "1.2.840.10008.1.2.5"
NIBABEL = Path(nibabel.__file__).parent / "nicom" / "tests" / "data"


@pytest.mark.parametrize("syntax", ["explicit", "RLE"])
@pytest.mark.parametrize("direction", ["axial", "oblique"])
def test_tiles_of_a_mosaic_are_slices(direction: str, syntax: str, tmp_path: Path) -> None:
    """They lie where the same slices lie in files of their own, in either direction."""
    values = made.volume((5, 6, 7), "uint16", 12)
    made.series(tmp_path / "scan", values, direction)
    positions = made.places(direction, 5)[1]
    normal = (positions[1] - positions[0]) / 2.5
    for number, order in enumerate((1, -1)):
        said = [f"{one:.8f}" for one in order * normal]
        private = made.csa(Other=["1", ""], NumberOfImagesInMosaic=["5"], SliceNormalVector=said)
        place = positions[0 if order > 0 else -1]
        path = made.mosaic(tmp_path / f"{number}.dcm", values[::order], direction, private)
        ds = pydicom.dcmread(path)
        shift = np.array(ds.ImagePositionPatient) + place - positions[0]
        ds.ImagePositionPatient = [round(float(one), 8) for one in shift]
        if syntax == "RLE":
            ds.compress(RLE, generate_instance_uid=False)
        ds.save_as(path)
        with read(path) as bundle:
            (array,) = bundle.arrays
            assert np.array_equal(array[...], values)
            assert np.array_equal(array[1:4, 2, ::-1], values[1:4, 2, ::-1])
        raconvert.convert(path, tmp_path / f"{number}.nrrd")
        image = sitk.ReadImage(str(tmp_path / f"{number}.nrrd"))
        assert corners(image) == corners(by_gdcm(tmp_path / "scan"))


def test_a_mosaic_that_is_not_understood_stays_an_image(tmp_path: Path) -> None:
    values = made.volume((4, 6, 8), "uint16")
    good = made.csa(NumberOfImagesInMosaic=["4"], SliceNormalVector=["0", "0", "1"])
    bad = {
        "nothing": b"", "first version": b"\0" * 40, "cut": good[:-30],
        "no number": made.csa(NumberOfImagesInMosaic=["many"], SliceNormalVector=["0", "0", "1"]),
        "no direction": made.csa(NumberOfImagesInMosaic=["4"], SliceNormalVector=["0", "0", "0"]),
        "other tiles": made.csa(NumberOfImagesInMosaic=["25"], SliceNormalVector=["0", "0", "1"]),
        "a billion": made.csa(NumberOfImagesInMosaic=["9" * 5000], SliceNormalVector=["0", "0", "1"]),
        "long": good[:12] + b"\xff" * (len(good) - 12),
    }  # fmt: skip
    for number, (what, private) in enumerate(bad.items()):
        path = made.mosaic(tmp_path / f"{number}.dcm", values, "axial", private)
        with read(path) as bundle:
            assert bundle.arrays[0].shape == (12, 16), what
            assert bundle.arrays[0].meta.space is None
            assert any("tiles of a mosaic" in note for note in bundle.notes)


@pytest.mark.parametrize("name", ["siemens_dwi_0", "siemens_dwi_1000", "philips_mprage"])
def test_files_of_scanners(name: str, tool: Callable[..., str], tmp_path: Path) -> None:
    """Real ones, which nibabel carries: voxels where dcm2niix sees them."""
    packed = NIBABEL / f"{name}.dcm.gz"
    if not packed.exists():
        pytest.skip("this nibabel has no such files")
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "x.dcm"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    raconvert.convert(path, tmp_path / "x.nii")
    theirs = by_dcm2niix(tool("dcm2niix"), tmp_path / "in", tmp_path / "out")
    ours = nibabel.load(tmp_path / "x.nii")
    rng = np.random.default_rng(1)
    for place in rng.integers(0, theirs.shape[:3], (200, 3)):
        at = np.linalg.solve(ours.affine, theirs.affine @ [*place, 1])[:3]
        assert np.allclose(at, at.round(), atol=1e-2)
        found = ours.dataobj.get_unscaled()[tuple(at.round().astype(int))]
        assert theirs.dataobj.get_unscaled()[tuple(place)] == found


def test_frames_without_a_place_and_a_dose(tmp_path: Path) -> None:
    values = made.volume((4, 5, 6), "uint16")
    path = made.save(made.dataset(values, NumberOfFrames=4, sop=made.SC), tmp_path / "x.dcm")
    with read(path) as bundle:
        (array,) = bundle.arrays
        assert array.extent is not None
        assert np.array_equal(array[...], values)
        assert array.meta.space is None
    cosines, positions = made.places("axial", 4)
    dose = {"ImagePositionPatient": [*positions[0]], "ImageOrientationPatient": cosines,
            "PixelSpacing": [2, 3], "GridFrameOffsetVector": [0, 2.5, 5, 7.5],
            "DoseGridScaling": 0.001, "DoseUnits": "GY", "Modality": "RTDOSE"}  # fmt: skip
    path = made.save(made.dataset(values, NumberOfFrames=4, **dose), tmp_path / "y.dcm")
    with read(path) as bundle:
        (array,) = bundle.arrays
        assert array.meta.attributes == {"scale_factor": 0.001}
        assert array.meta.units == "Gy"
        assert array.meta.axes[0].vector == (0, 0, 2.5)
    raconvert.convert(path, tmp_path / "y.nrrd")
    dose["GridFrameOffsetVector"] = [30, 27, 24, 21]  # from the origin of the patient, downwards
    other = made.save(made.dataset(values, NumberOfFrames=4, **dose), tmp_path / "z.dcm")
    with read(other) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], values[::-1])
        assert array.meta.axes[0].vector == (0, 0, 3)
        assert array.meta.space.origin == (-11.5, 7.25, 21)
    assert sitk.ReadImage(str(tmp_path / "y.nrrd")).GetSpacing() == (3, 2, 2.5)


# Grids -------------------------------------------------------------------------------------------


def refusal(folder: Path) -> str:
    """The error for a folder that does not become one array; nothing is written."""
    target = folder.parent / "refused.nrrd"
    with pytest.raises(RaconvertError) as caught:
        raconvert.convert(folder, target)
    assert not target.exists()
    return str(caught.value)


def test_a_gap_is_named_and_may_be_passed_over(tmp_path: Path) -> None:
    values = made.volume((6, 4, 5), "int16")
    paths = made.series(tmp_path / "gap", values)
    paths[3].unlink()
    said = refusal(tmp_path / "gap")
    assert "5 mm behind this one, 2.5 mm elsewhere" in said
    assert paths[2].name in said
    with read(tmp_path / "gap", in_opts={"grid": "any"}) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], np.delete(values, 3, 0))
        assert array.meta.space is None
        assert any("not evenly spaced" in note for note in bundle.notes)


def test_slices_twice_and_aside(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    made.series(tmp_path / "twice", values)
    made.series(tmp_path / "twice", values, start=4)
    assert "2 slices at each position, and nothing that tells them apart" in refusal(
        tmp_path / "twice"
    )
    assert only(tmp_path / "twice", in_opts={"grid": "any"}).shape == (6, 4, 5)
    made.series(tmp_path / "once", values)
    made.series(tmp_path / "once", values[:1], start=4)
    assert "not as many at each position" in refusal(tmp_path / "once")
    places = [[0.0, 0, 0], [9.0, 0, 0], [18.0, 0, 0]]
    made.series(tmp_path / "aside", values, each=lambda n: {"ImagePositionPatient": places[n]})
    assert "side by side" in refusal(tmp_path / "aside")


def test_one_slice_in_time_is_as_thick_as_it_is(tmp_path: Path) -> None:
    values = made.volume((3, 1, 4, 5), "int16")
    for number, volume in enumerate(values):
        made.series(tmp_path / "t", volume, "doubly oblique", start=1 + number, gap=4.0,
                    TemporalPositionIdentifier=number, AcquisitionTime=f"1200{number * 10:02}")  # fmt: skip
    with read(tmp_path / "t") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], values)
        time, slices, *_ = array.meta.axes
        assert (time.name, time.units, time.spacing) == ("time", "s", 10)
        assert slices.vector == pytest.approx((4 * 0.36, 4 * -0.8, 4 * 0.48))
    raconvert.convert(tmp_path / "t", tmp_path / "x.nii")
    assert nibabel.load(tmp_path / "x.nii").header.get_zooms() == (1.25, 0.75, 4, 10)


def test_a_tilted_gantry_skews_the_axes(tmp_path: Path) -> None:
    values = made.volume((4, 5, 6), "int16")
    places = [[0.0, 0.5 * n, 2.0 * n] for n in range(4)]
    made.series(tmp_path / "ct", values, each=lambda n: {"ImagePositionPatient": places[n]})
    with read(tmp_path / "ct") as bundle:
        assert bundle.arrays[0].meta.axes[0].vector == pytest.approx((0, 0.5, 2.0))
        assert any("gantry was tilted" in note for note in bundle.notes)
    raconvert.convert(tmp_path / "ct", tmp_path / "x.nii")
    affine = nibabel.load(tmp_path / "x.nii").affine
    assert np.allclose(affine @ [0, 0, 3, 1], [0, -1.5, 6, 1])


def test_several_series_and_orientations_are_arrays_of_their_own(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    folder = tmp_path / "study"
    made.series(folder, values)
    made.series(folder, values + 1, "sagittal", start=4)
    made.series(folder, values[:, :3] + 2, start=7, SeriesInstanceUID=made.uid(2, 2))
    made.series(folder, values + 3, start=10, SeriesInstanceUID=made.uid(2, 3), SeriesNumber=12)
    names = ["MR_3-1", "MR_3-2", "MR_3.2", "MR_12"]
    said = refusal(folder)
    assert all(name in said for name in names)
    with read(folder) as bundle:
        assert bundle.names == names
        assert any("slices of one series differ" in note for note in bundle.notes)
    raconvert.convert(folder, tmp_path / "x.h5")
    with raconvert.open_bundle(tmp_path / "x.h5") as copy:
        assert [*copy.names] == names
        for number, name in enumerate(names):
            wanted = (values[:, :3] if number == 2 else values) + number
            assert np.array_equal(copy[name][...], wanted)
    raconvert.convert(folder, tmp_path / "y.nrrd", arrays=["MR_12"])
    assert np.array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "y.nrrd"))),
                          values + 3)  # fmt: skip


@pytest.mark.parametrize(
    ("keyword", "values", "name", "labels"),
    [
        ("TemporalPositionIdentifier", [1, 2], "time", None),
        ("EchoTime", [4.5, 9.0], "echo time", (4.5, 9)),
        ("DiffusionBValue", [0.0, 1000.0], "b-value", (0, 1000)),
        ("AcquisitionTime", ["120000.0", "120002.5"], "time", None),
        ("ContentTime", ["235959", "000002"], None, None),
    ],
)
def test_frames_at_one_position_are_a_further_axis(
    keyword: str, values: list[Any], name: str | None, labels: Any, tmp_path: Path
) -> None:
    """Time by its number, echoes, b-values; a clock that was turned back orders them by itself."""
    pixels = made.volume((2, 3, 4, 5), "int16")
    for number, value in enumerate(values):
        made.series(tmp_path / "t", pixels[number], start=1 + 3 * number, **{keyword: value})
    wanted = pixels[::-1] if name is None else pixels
    with read(tmp_path / "t") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], wanted)
        assert array.meta.axes[0].name == (name or "time")
        assert array.meta.axes[0].labels == labels
        if keyword == "AcquisitionTime":
            assert (array.meta.axes[0].spacing, array.meta.axes[0].units) == (2.5, "s")
    raconvert.convert(tmp_path / "t", tmp_path / "t.nii")
    image = nibabel.load(tmp_path / "t.nii")
    assert image.shape == (5, 4, 3, 2)
    assert image.header.get_zooms()[:3] == (1.25, 0.75, 2.5)
    assert np.array_equal(np.asarray(image.dataobj).T, wanted)


def test_diffusion_is_told_by_b_values_and_gradients(tmp_path: Path) -> None:
    """In classic files and in an enhanced object; without a direction where there is none."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    gradients = [None, [1.0, 0.0, 0.0], [-0.6, 0.0, 0.8], None]
    weights = [0.0, 700.0, 700.0, 700.0]  # the last is the mean of all directions
    pixels = made.volume((4, 3, 4, 5), "int16")
    groups = []
    cosines, positions = made.places("axial", 3)
    for number, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
        more = {"DiffusionBValue": weight}
        if gradient:
            more["DiffusionGradientOrientation"] = gradient
        made.series(tmp_path / "c", pixels[number], start=1 + 3 * number, **more)
        for position in positions:
            group, place, diffusion, direction = (Dataset() for _ in range(4))
            place.ImagePositionPatient = [*map(float, position)]
            group.PlanePositionSequence = Sequence([place])
            diffusion.DiffusionBValue = weight
            if gradient:
                direction.DiffusionGradientOrientation = gradient
                diffusion.DiffusionGradientDirectionSequence = Sequence([direction])
            group.MRDiffusionSequence = Sequence([diffusion])
            groups.append(group)
    ds = made.dataset(pixels.reshape(-1, 4, 5), sop=made.ENHANCED_MR, NumberOfFrames=12,
                      ImageOrientationPatient=cosines)  # fmt: skip
    ds.PerFrameFunctionalGroupsSequence = Sequence(groups)
    made.save(ds, tmp_path / "e.dcm")
    for path in (tmp_path / "c", tmp_path / "e.dcm"):
        with read(path) as bundle:
            (array,) = bundle.arrays
            assert np.array_equal(array[...], pixels)
            assert array.meta.axes[0].name == "b-value and gradient"
            assert array.meta.axes[0].labels == ("0", "700, 1 0 0", "700, -0.6 0 0.8", "700")


def test_images_of_two_kinds_or_pairs_of_facts_are_a_further_axis(tmp_path: Path) -> None:
    """Magnitude and phase by the type of the image; echoes of both by a pair."""
    pixels = made.volume((2, 2, 3, 4, 5), "int16")
    start = 1
    for echo, kind in itertools.product((0, 1), (0, 1)):
        type_ = ["ORIGINAL", "PRIMARY", "MP"[kind]]
        more = {"EchoTime": 2.5 + echo, "ImageType": type_, "start": start}
        made.series(tmp_path / "pair", pixels[echo, kind], **more)
        if echo == 0:
            made.series(tmp_path / "kinds", pixels[0, kind], ImageType=type_, start=start)
        start += 3
    with read(tmp_path / "kinds") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], pixels[0])
        assert array.meta.axes[0].name == "image type"
        assert array.meta.axes[0].labels == ("ORIGINAL PRIMARY M", "ORIGINAL PRIMARY P")
    with read(tmp_path / "pair") as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], pixels.reshape(4, 3, 4, 5))
        assert array.meta.axes[0].name == "echo time and image type"
        assert array.meta.axes[0].labels[2] == "3.5, ORIGINAL PRIMARY M"


@pytest.mark.parametrize("by", ["volume", "position"])
def test_numbers_of_images_tell_volumes_apart_when_asked_to(by: str, tmp_path: Path) -> None:
    """As `dcm2niix` takes them; the refusal names the option where numbers are in such an order."""
    pixels = made.volume((2, 3, 4, 5), "int16")

    def number(volume: int, slice_: int) -> int:
        return 3 * volume + slice_ if by == "volume" else 2 * slice_ + volume

    for volume in (0, 1):
        made.series(tmp_path / by, pixels[volume], start=10 * volume,
                    each=lambda n, v=volume: {"InstanceNumber": number(v, n)})  # fmt: skip
    assert '{"grid": "volumes"} takes them' in refusal(tmp_path / by)
    with read(tmp_path / by, in_opts={"grid": "volumes"}) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], pixels)
        assert array.meta.axes[0].name == "volume"
        assert array.meta.axes[1].spacing == 2.5
        assert any("in the order of their InstanceNumber" in note for note in bundle.notes)
    made.series(tmp_path / by, pixels[0], start=20,
                each=lambda n: {"InstanceNumber": 5 - 2 * n})  # fmt: skip
    assert '"volumes"' not in refusal(tmp_path / by)


def test_a_table_of_the_colours_of_ultrasound_is_exact() -> None:
    """Every triple of a coarse grid, by fractions; halves upwards."""
    from fractions import Fraction

    steps = [*range(0, 256, 15), 78, 178]
    grid = np.array([*itertools.product(steps, steps, steps)], np.uint8)
    made_rgb = codecs.rgb_of(grid)
    red, blue = Fraction(1402, 1000), Fraction(1772, 1000)
    for (y, cb, cr), got in zip(grid.tolist(), made_rgb.tolist(), strict=True):
        green = (Fraction(114, 587) * blue * (cb - 128)) + (Fraction(299, 587) * red * (cr - 128))
        exact = (y + red * (cr - 128), y - green, y + blue * (cb - 128))
        assert got == [min(255, max(0, (one + Fraction(1, 2)).__floor__())) for one in exact]


# Files and folders ---------------------------------------------------------------------------------


def test_files_without_suffix_preamble_or_position(tmp_path: Path) -> None:
    values = made.volume((4, 6), "int16")
    for number, syntax in enumerate((made.EXPLICIT, made.IMPLICIT, made.BIG)):
        path = tmp_path / f"image{number}"
        ds = made.dataset(values if syntax != made.BIG else values.byteswap())
        made.save(ds, path, syntax, bare=True)
        assert np.array_equal(only(path), values), syntax
    for number in range(3):
        made.save(made.dataset(values + number, number=9 - number), tmp_path / f"s/{number}.ima")
    with read(tmp_path / "s") as bundle:
        assert np.array_equal(bundle.arrays[0][...], np.stack([values + n for n in (2, 1, 0)]))
        assert any("InstanceNumber" in note for note in bundle.notes)


def test_a_list_and_a_pattern_are_one_source(tmp_path: Path) -> None:
    values = made.volume((4, 5, 6), "int16")
    paths = made.series(tmp_path / "scan", values, order=[2, 0, 1, 3])
    for source in (paths, [str(tmp_path / "scan" / "IM*")]):
        raconvert.convert(source, tmp_path / "x.nrrd", overwrite=True)
        assert np.array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "x.nrrd"))),
                              values)  # fmt: skip
    raconvert.convert(paths, tmp_path / "x.h5")
    with raconvert.open_bundle(tmp_path / "x.h5") as bundle:
        assert bundle.names == ["MR_3"]
    np.save(tmp_path / "mask.npy", values)
    raconvert.convert([paths[0], str(tmp_path / "mask.npy")], tmp_path / "y.h5")
    with raconvert.open_bundle(tmp_path / "y.h5") as bundle:
        assert bundle.names == ["IM0001", "mask"]


def test_a_folder_names_what_it_leaves_out(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    folder = tmp_path / "scan"
    made.series(folder, values)
    (folder / "NOTES").write_text("read me\n")
    np.save(folder / "mask.npy", values)
    report = made.dataset(values[0], number=9, Modality="SR")
    del report.PixelData
    from pydicom.dataset import FileMetaDataset

    report.file_meta = FileMetaDataset()
    report.file_meta.TransferSyntaxUID = made.EXPLICIT
    report.save_as(folder / "report", enforce_file_format=True)
    with read(folder) as bundle:
        assert np.array_equal(bundle.arrays[0][...], values)
        assert "left out 1 file, no DICOM: NOTES" in bundle.notes
        assert "left out 1 file of other formats: mask.npy" in bundle.notes
        assert "left out 1 file, without an image: report" in bundle.notes
    with pytest.raises(Unsupported, match=r"without an image \(SR\)"):
        only(folder / "report")
    (folder / "IM0002").write_bytes((folder / "IM0002").read_bytes()[:-7])
    with pytest.raises(Corrupt, match="IM0002"):
        only(folder)


def test_a_set_with_its_directory(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    made.series(tmp_path / "disc" / "A" / "B", values)
    made.series(tmp_path / "disc" / "A" / "C", values + 1, SeriesInstanceUID=made.uid(2, 2))
    ds = made.dataset(values[0])
    del ds.PixelData
    from pydicom.dataset import FileMetaDataset

    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = made.EXPLICIT
    ds.save_as(tmp_path / "disc" / "DICOMDIR", enforce_file_format=True)
    with read(tmp_path / "disc") as bundle:
        assert bundle.names == ["MR_3", "MR_3.2"]
    with pytest.raises(Unsupported, match="name its folder"):
        only(tmp_path / "disc" / "DICOMDIR")


def test_a_tree_becomes_a_file_for_each_folder(tmp_path: Path) -> None:
    values = made.volume((3, 4, 5), "int16")
    for number, name in enumerate(("one", "two")):
        made.series(tmp_path / "tree" / "scans" / name, values + number)
    done = raconvert.migrate(tmp_path / "tree", tmp_path / "out", to="nrrd")
    assert done.failed == []
    for number, name in enumerate(("one", "two")):
        image = sitk.ReadImage(str(tmp_path / "out" / "scans" / f"{name}.nrrd"))
        assert np.array_equal(sitk.GetArrayFromImage(image), values + number)


# People --------------------------------------------------------------------------------------------


def test_nothing_of_a_person_leaves_the_file(tmp_path: Path) -> None:
    """No text of the headers is in what is written; the report says which kinds were left out."""
    values = np.zeros((3, 4, 5), "int16")
    words = {"PatientName": "Xsecretname^Who", "PatientID": "XsecretID", "StudyDate": "19991231",
             "InstitutionName": "Xsecretplace", "OperatorsName": "Xsecretoperator",
             "SeriesDescription": "Xsecretseries", "StudyDescription": "Xsecretstudy",
             "AccessionNumber": "Xsecretnumber", "PatientComments": "Xsecretcomment",
             "ProtocolName": "Xsecretprotocol"}  # fmt: skip
    made.series(tmp_path / "scan", values, **words)
    for suffix in ("nrrd", "h5", "nii", "ra", "zip", "nc"):
        report = raconvert.convert(tmp_path / "scan", tmp_path / f"x.{suffix}")
        said = " ".join(report.notes)
        assert "patient (4)" in said
        assert "names of people (1)" in said
        for path in tmp_path.glob(f"x.{suffix}*"):
            raw = path.read_bytes()
            assert b"Xsecret" not in raw
            assert b"19991231" not in raw
            assert made.ROOT.encode() not in raw
    kept = {"keep-tags": "SeriesDescription,0018,0050 InstanceNumber"}
    with read(tmp_path / "scan", in_opts=kept) as bundle:
        assert bundle.arrays[0].meta.attributes == {
            "SeriesDescription": "Xsecretseries", "SliceThickness": 2.5,
            "InstanceNumber": [1, 2, 3],
        }  # fmt: skip
    made.series(tmp_path / "letters", values, SpecificCharacterSet="ISO_IR 144",
                SeriesDescription="голова")  # fmt: skip
    with read(tmp_path / "letters", in_opts={"keep-tags": "SeriesDescription"}) as bundle:
        assert bundle.arrays[0].meta.attributes == {"SeriesDescription": "голова"}
    made.series(tmp_path / "sets", values, SpecificCharacterSet=["", "ISO 2022 IR 87"],
                SeriesDescription="頭")  # fmt: skip
    with read(tmp_path / "sets", in_opts={"keep-tags": "SeriesDescription"}) as bundle:
        assert bundle.arrays[0].meta.attributes == {}
        assert any("unknown encoding" in note for note in bundle.notes)
    with pytest.raises(UsageError, match="no element of DICOM is called 'Nonsense'"):
        read(tmp_path / "scan", in_opts={"keep-tags": "Nonsense"})


# Fixtures ---------------------------------------------------------------

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "dicom"
HELD = {"bare": "plain", "big.dcm": "plain", "deflated.dcm": "plain", "explicit.dcm": "plain",
        "implicit.dcm": "plain", "enhanced.dcm": "frames", "rle.dcm": "frames",
        "jpeg2000.dcm": "waves", "mosaic.dcm": "frames", "rgb.dcm": "colours"}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_fixtures(name: str) -> None:
    values = np.load(FIXTURES / "values.npz")[HELD[name]]
    with read(FIXTURES / name) as bundle:
        (array,) = bundle.arrays
        assert np.array_equal(array[...], values)
        assert np.array_equal(array[-1], values[-1])
    assert {*HELD} == {p.name for p in FIXTURES.iterdir()} - {
        "make.py",
        "MANIFEST.md",
        "values.npz",
    }


def test_very_many_fragments_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dcm"
    path.write_bytes(made.raw(syntax="1.2.840.10008.1.2.5", pixels=made.fragments(*[b""] * 500)))
    source = Source(str(path), limits=Limits(header_elements=400))
    with pytest.raises(TooLarge, match="very many fragments"):
        np.asarray(load(by_name("dicom")).read(source).arrays[0])


def test_all_series_share_one_list_of_files(tmp_path: Path) -> None:
    files = []
    for number in range(3):
        more = {"SeriesInstanceUID": made.uid(9, number)}
        path = made.save(made.dataset(np.zeros((2, 3), "u2"), **more), tmp_path / f"{number}.dcm")
        files.append(file_of(read_header(Source(str(path))), number, "auto"))
    parts = [part for parts in parts_of(files).values() for part in parts]
    assert len(parts) == 3
    assert all(part.files is parts[0].files for part in parts)
