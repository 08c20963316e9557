"""What is special to NIfTI: nibabel is the oracle, in both directions."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import Pairs, little, quiet

import raconvert
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, NotSupportedYet, ReadFailed, Unsafe, Unsupported, WouldLose
from raconvert.registry import by_name
from raconvert.registry import load as load_plugin

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "volumes"

AFFINE = np.array([[-2.5, 0, 0.25, 90], [0, 3, 0, -126], [0.5, 0, 4, -72], [0, 0, 0, 1]])


def load(path: Path) -> np.ndarray:
    """Read the stored values with nibabel, which says nothing about arrays of one axis."""
    with quiet():
        return little(np.asarray(nib.load(path).dataobj.get_unscaled()))


def affine_of(array: raconvert.Array) -> np.ndarray:
    """The affine that the common metadata amounts to: three rows."""
    assert array.meta.space is not None
    columns = [axis.vector for axis in array.ra_axes[:3]]
    return np.transpose([*columns, array.meta.space.origin])


def save(path: Path, values: np.ndarray, **fields: Any) -> None:
    """Write with nibabel: an affine, or fields of the header."""
    kind = nib.Nifti2Image if fields.pop("version", 1) == 2 else nib.Nifti1Image
    image = kind(values, fields.pop("affine", None), dtype=values.dtype)
    for name, value in fields.items():
        image.header[name] = value
    with quiet():
        nib.save(image, path)


def can_write(values: np.ndarray) -> bool:
    fine = values.dtype.kind in "iufc" and values.dtype.str[1:] != "f2" and values.size > 0
    return fine and values.ndim > 0 and values.dtype.isbuiltin != 2


IN_PAIRS = (
    Pairs(
        name="nifti",
        suffix=".nii",
        read=load,
        write=save,
        can_write=can_write,
        order="F",
        guest=True,
        types="""
            = int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
              complex128 int16_big uint16_big int64_big float32_big complex128_big
            ~ bool
            x *
        """,
        shapes="= * ~ () x 0 4,0 0,4 2,0,3 3,0,2",
        most_axes={"float32": 7},
    ),
)

VALUES = np.arange(24, dtype="i2").reshape(2, 3, 4) - 7


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("version", [1, 2])
def test_all_of_the_header_comes_back(version: int, suffix: str, tmp_path: Path) -> None:
    """NIfTI to NIfTI, and by RA and its sidecar: nibabel finds every field as it was."""
    source = tmp_path / f"a{suffix}"
    save(source, VALUES, version=version, affine=AFFINE, descrip=b"a scan", xyzt_units=2 | 8,
         intent_code=3, intent_p1=9.5, intent_name=b"stat", cal_max=5.5, toffset=0.25,
         slice_code=1, slice_end=3, aux_file=b"x.txt", dim_info=57)  # fmt: skip
    raconvert.convert(source, tmp_path / f"b{suffix}", strict=True)
    raconvert.convert(source, tmp_path / "c.ra", strict=True)
    raconvert.convert(tmp_path / "c.ra", tmp_path / f"c{suffix}", strict=True)
    sidecar = yaml.safe_load((tmp_path / "c.ra.yaml").read_text())
    assert sidecar["description"] == "a scan"
    vectors = [np.array(axis["direction"]) * axis["spacing"] for axis in sidecar["axes"]]
    assert np.array_equal(np.transpose(vectors), AFFINE[:3, :3])
    assert sidecar["space"] == {"frame": "aligned-RAS", "origin": AFFINE[:3, 3].tolist()}
    assert {axis["units"] for axis in sidecar["axes"]} == {"mm"}

    wanted = nib.load(source)
    for name in "bc":
        got = nib.load(tmp_path / f"{name}{suffix}")
        assert type(got) is type(wanted)
        assert np.array_equal(got.affine, wanted.affine)
        for field in wanted.header:
            if field not in ("scl_slope", "scl_inter", "regular", "glmax"):
                same = np.array_equal(got.header[field], wanted.header[field])
                assert same, (field, got.header[field], wanted.header[field])
        assert np.array_equal(got.dataobj.get_unscaled(), VALUES)


def test_values_are_as_stored_and_the_scale_is_kept(tmp_path: Path) -> None:
    image = nib.Nifti1Image(VALUES * 0.37 - 3, AFFINE)
    image.set_data_dtype("i2")  # nibabel scales
    nib.save(image, tmp_path / "a.nii")
    wanted = nib.load(tmp_path / "a.nii")
    report = raconvert.convert(tmp_path / "a.nii", tmp_path / "b.nii", strict=True)
    assert any(f"value * {wanted.dataobj.slope:g}" in note for note in report.notes)
    stored = wanted.dataobj.get_unscaled()
    assert wanted.dataobj.slope != 1
    assert np.array_equal(raconvert.read(tmp_path / "a.nii"), stored)
    assert np.array_equal(nib.load(tmp_path / "b.nii").get_fdata(), wanted.get_fdata())


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("said", [(1.0, -1024.0), (0.5, 3.0), (0.1, -7.3), (None, 5.0), (2.5, None),
                                  (-3, 0)])  # fmt: skip
def test_a_scale_of_attributes_is_that_of_the_header(
    said: tuple[float | None, float | None], version: str, tmp_path: Path
) -> None:
    """Slope and intercept of a CT from DICOM, or of netCDF: exact, or named."""
    attributes = {name: one for name, one in zip(("scale_factor", "add_offset"), said, strict=True)
                  if one is not None}  # fmt: skip
    stored = np.arange(24, dtype="i2").reshape(2, 3, 4)
    meta = Metadata(attributes={**attributes, "site": "here"})
    raconvert.write(tmp_path / "a.ra", stored, meta=meta)
    report = raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nii", out_opts={"version": version})
    slope, offset = (1.0 if said[0] is None else said[0]), said[1] or 0.0
    image = nib.load(tmp_path / "b.nii")
    real = np.float64 if version == "2" else np.float32
    assert (image.dataobj.slope, image.dataobj.inter) == (real(slope), real(offset))
    assert np.array_equal(image.dataobj.get_unscaled(), stored)
    assert np.allclose(
        np.asarray(image.dataobj), stored * float(real(slope)) + float(real(offset)), rtol=1e-14
    )
    fits = " ".join(map(str, report.equivalent))
    exact = (float(real(slope)), float(real(offset))) == (slope, offset)
    assert ("rounded to float32" in fits) is not exact
    assert "attributes (site)" in fits
    wanted = stored * float(real(slope)) + float(real(offset))
    assert np.array_equal(raconvert.read(tmp_path / "b.nii", unscale=True), wanted)


def test_the_scale_of_dicom_is_that_of_the_header(tmp_path: Path) -> None:
    """Rescale slope and intercept, as pydicom reads them, are what nibabel applies."""
    pydicom = pytest.importorskip("pydicom")
    (tmp_path / "a.dcm").write_bytes(load_plugin(by_name("dicom")).FORMAT.samples["placed.dcm"])
    dataset = pydicom.dcmread(tmp_path / "a.dcm")
    dataset.RescaleIntercept = "-1024"
    dataset.save_as(tmp_path / "b.dcm")
    raconvert.convert(tmp_path / "b.dcm", tmp_path / "b.nii")
    image = nib.load(tmp_path / "b.nii")
    assert (image.dataobj.slope, image.dataobj.inter) == (2, -1024)
    physical = np.squeeze(np.asarray(image.dataobj))
    wanted = dataset.pixel_array * 2.0 - 1024
    assert sorted(physical.ravel()) == sorted(wanted.ravel())


@pytest.mark.parametrize("attributes", [
    {"scale_factor": 0.0, "add_offset": 4.0}, {"scale_factor": "two"}, {"scale_factor": [1.0, 2.0]},
    {"scale_factor": 0.5, "_Unsigned": "true"},
])  # fmt: skip
def test_a_scale_that_nifti_has_not_is_named(attributes: dict[str, Any], tmp_path: Path) -> None:
    meta = Metadata(attributes=attributes)
    raconvert.write(tmp_path / "a.ra", np.arange(6, dtype="i2"), meta=meta)
    report = raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nii")
    assert "scale_factor" in " ".join(map(str, report.equivalent))
    assert (nib.load(tmp_path / "b.nii").dataobj.slope,
            nib.load(tmp_path / "b.nii").dataobj.inter) == (1, 0)  # fmt: skip


def test_a_fill_value_beside_a_scale_is_named(tmp_path: Path) -> None:
    meta = Metadata(attributes={"scale_factor": 0.5, "_FillValue": 3})
    raconvert.write(tmp_path / "a.ra", np.arange(6, dtype="i2"), meta=meta)
    report = raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nii")
    fits = " ".join(map(str, report.equivalent))
    assert "attributes (_FillValue)" in fits
    assert nib.load(tmp_path / "b.nii").dataobj.slope == 0.5


def test_a_scale_of_the_header_stays_beside_attributes(tmp_path: Path) -> None:
    """The namespace says what the header said; attributes that say another scale are named."""
    meta = Metadata(attributes={"scale_factor": 0.5}, formats={"nifti": {"scl_slope": 2.0}})
    raconvert.write(tmp_path / "a.ra", np.arange(6, dtype="i2"), meta=meta)
    report = raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nii")
    assert "attributes (scale_factor)" in " ".join(map(str, report.equivalent))
    assert nib.load(tmp_path / "b.nii").dataobj.slope == 2.0


def test_index_is_that_of_nibabel(tmp_path: Path) -> None:
    save(tmp_path / "a.nii", VALUES)
    raconvert.convert(tmp_path / "a.nii", tmp_path / "a.npy", strict=True)
    assert np.load(tmp_path / "a.npy")[1, 2, 3] == VALUES[1, 2, 3]
    np.save(tmp_path / "c.npy", VALUES)
    raconvert.convert(tmp_path / "c.npy", tmp_path / "c.nii.gz", strict=True)
    assert np.array_equal(load(tmp_path / "c.nii.gz"), VALUES)
    assert gzip.decompress((tmp_path / "c.nii.gz").read_bytes())[344:348] == b"n+1\0"


def test_permuted_axes_take_their_columns_along(tmp_path: Path) -> None:
    """The place of a voxel in the scanner is the same; qform, which cannot follow, is named."""
    image = nib.Nifti1Image(VALUES, AFFINE)
    image.set_qform(np.diag([2, 3, 4, 1]), 1)
    nib.save(image, tmp_path / "a.nii")
    report = raconvert.convert(tmp_path / "a.nii", tmp_path / "b.nii", axes="2,0,1")
    assert any("qform_code" in str(fit) for fit in report.equivalent)
    before, after = nib.load(tmp_path / "a.nii"), nib.load(tmp_path / "b.nii")
    assert after.shape == (4, 2, 3)
    assert np.allclose(before.affine @ [1, 2, 3, 1], after.affine @ [3, 1, 2, 1])


def test_big_endian_colours_and_extensions(tmp_path: Path) -> None:
    image = nib.Nifti1Image(VALUES.astype(">i2"), None, header=nib.Nifti1Header(endianness=">"))
    image.header.extensions.append(nib.nifti1.Nifti1Extension(6, b"a comment"))
    image.to_filename(tmp_path / "a.nii")
    assert (tmp_path / "a.nii").read_bytes()[:4] == (348).to_bytes(4, "big")
    raconvert.convert(tmp_path / "a.nii", tmp_path / "b.nii", strict=True)
    got = nib.load(tmp_path / "b.nii")
    assert np.array_equal(got.dataobj.get_unscaled(), VALUES)
    assert [
        (e.get_code(), bytes(e.text.encode()).rstrip(b"\0")) for e in got.header.extensions
    ] == [(6, b"a comment")]

    colours = np.zeros((2, 3), [(name, "u1") for name in "RGB"])
    colours["G"] = np.arange(6).reshape(2, 3)
    save(tmp_path / "c.nii", colours)
    raconvert.convert(tmp_path / "c.nii", tmp_path / "c.npy", strict=True)
    raconvert.convert(tmp_path / "c.npy", tmp_path / "d.nii", strict=True)
    assert np.array_equal(np.load(tmp_path / "c.npy"), colours)
    assert np.array_equal(load(tmp_path / "d.nii"), colours)


def test_long_axes_need_version_2(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((40_000, 2), "u1"))
    raconvert.convert(tmp_path / "x.npy", tmp_path / "x.nii", strict=True)
    assert isinstance(nib.load(tmp_path / "x.nii"), nib.Nifti2Image)
    with pytest.raises(WouldLose, match='"version": "2"'):
        raconvert.convert(tmp_path / "x.npy", tmp_path / "y.nii", out_opts={"version": "1"})


def test_what_is_said_of_axes_is_kept_or_named(tmp_path: Path) -> None:
    """Spacing and units of both kinds are in the header, the rest is named."""
    axes = [Axis(spacing=0.5 * n, units="mm") for n in (1, 2, 3)] + [Axis(spacing=2.0, units="s")]
    meta = Metadata(axes=axes, description="d")
    values = np.zeros((2, 3, 4, 5), "u1")
    report = raconvert.write(tmp_path / "a.nii", values, meta=meta)
    header = nib.load(tmp_path / "a.nii").header
    assert not report.equivalent
    assert header.get_zooms() == (0.5, 1.0, 1.5, 2.0)
    assert header.get_xyzt_units() == ("mm", "sec")
    meta = Metadata(axes=[Axis(name="x", spacing=0.1), *axes[1:]][::-1], attributes={"k": 1})
    report = raconvert.write(tmp_path / "b.nii", values, meta=meta)
    (said,) = map(str, report.equivalent)
    assert "axis 3 'x' (" in said
    assert all(word in said for word in ("attributes (k)", "name", "spacing rounded to float32"))


def test_a_report_numbers_the_axes_that_were_given(tmp_path: Path) -> None:
    """Axes of length 1 that the format needs between them do not count."""
    axes = [Axis("row", units="mm", spacing=2.0, direction=(0.0, -1.0, 0.0)), Axis("echo")]
    meta = Metadata(axes=[*axes, Axis()], space=raconvert.Space("LPS", (0.0, 0.0, 0.0)))
    values = np.zeros((2, 3, 4), "u1", order="F")
    array = raconvert.Array(values, name="a", meta=meta, index_order="F")
    report = raconvert.write(tmp_path / "a.nii", array)
    assert nib.load(tmp_path / "a.nii").shape == (2, 1, 1, 3, 4)
    assert "axes 0 'row' and 1 'echo' (name)" in str(report.equivalent[0])


ODD = {
    "rank": (40, b"\x08\0"), "length": (42, b"\0\0"), "negative": (42, b"\xff\xff"),
    "offset": (108, np.float32("nan").tobytes()), "infinite": (108, np.float32("inf").tobytes()),
    "inside": (108, np.float32(12).tobytes()), "half": (108, np.float32(352.5).tobytes()),
    "cut": (42, b"\xff\x7f"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_odd_headers_are_refused(name: str, suffix: str, tmp_path: Path) -> None:
    save(tmp_path / "a.nii", VALUES)
    data = bytearray((tmp_path / "a.nii").read_bytes())
    place, field = ODD[name]
    data[place : place + len(field)] = field
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(data) if suffix == ".nii.gz" else data)
    with pytest.raises(Corrupt):
        raconvert.read(path)


def test_other_types_are_named(tmp_path: Path) -> None:
    save(tmp_path / "a.nii", VALUES)
    data = bytearray((tmp_path / "a.nii").read_bytes())
    data[70:72] = (1536).to_bytes(2, "little")
    (tmp_path / "b.nii").write_bytes(data)
    with pytest.raises(Unsupported, match="long doubles"):
        raconvert.read(tmp_path / "b.nii")


PAIRS = [(nib.Nifti1Pair, "", "<"), (nib.Nifti1Pair, ".gz", ">"), (nib.Nifti2Pair, "", "<"),
         (nib.Nifti2Pair, ".gz", "<")]  # fmt: skip


@pytest.mark.parametrize(("kind", "end", "order"), PAIRS)
def test_pairs_of_nibabel(kind: Any, end: str, order: str, tmp_path: Path) -> None:
    """Either file may be named; what we make of it, nibabel reads as the same, header and all."""
    image = kind(VALUES.astype(f"{order}i2"), AFFINE, header=kind.header_class(endianness=order))
    image.header["descrip"] = b"a scan"
    image.header.extensions.append(nib.nifti1.Nifti1Extension(6, b"a comment"))
    image.to_filename(tmp_path / f"p.img{end}")
    assert (tmp_path / f"p.hdr{end}").exists()
    for name in (f"p.hdr{end}", f"p.img{end}"):
        assert raconvert.info(tmp_path / name)["format"] == "nifti"
        assert np.array_equal(raconvert.read(tmp_path / name), VALUES)
    for target in (f"q.img{end}", "r.nii"):
        raconvert.convert(tmp_path / f"p.hdr{end}", tmp_path / target, strict=True)
        got = nib.load(tmp_path / target)
        assert np.array_equal(got.dataobj.get_unscaled(), VALUES)
        assert np.array_equal(got.affine, AFFINE)
        assert bytes(got.header["descrip"].tobytes()).rstrip(b"\0") == b"a scan"
        assert got.header.extensions[0].get_code() == 6
    assert type(nib.load(tmp_path / f"q.img{end}")) is kind
    assert (tmp_path / f"q.hdr{end}").exists()
    with raconvert.open(tmp_path / f"q.img{end}") as array:
        assert len(array.meta.formats["nifti"]["extensions"]) == 1


def test_a_compressed_header_and_plain_data(tmp_path: Path) -> None:
    """Data that begins as gzip does is data; an offset counts in its own file."""
    values = np.frombuffer(b"\x1f\x8b\x08" + bytes(9), "u1").reshape(3, 4)
    image = nib.Nifti1Pair(values, None)
    image.to_filename(tmp_path / "p.img")
    assert np.array_equal(raconvert.read(tmp_path / "p.img"), values)
    header = (tmp_path / "p.hdr").read_bytes()
    (tmp_path / "p.hdr").unlink()
    moved = header[:108] + np.float32(5).tobytes() + header[112:]
    (tmp_path / "p.hdr.gz").write_bytes(gzip.compress(moved))
    (tmp_path / "p.img").write_bytes(b"12345" + values.tobytes(order="F"))
    for name in ("p.img", "p.hdr.gz"):
        assert np.array_equal(raconvert.read(tmp_path / name), values)
    raconvert.write(tmp_path / "q.img", values)
    assert np.array_equal(load(tmp_path / "q.img"), values)


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("named", [".hdr", ".img"])
def test_partners_of_pairs(named: str, end: str, tmp_path: Path) -> None:
    """Missing, cut, elsewhere; old data beside a new header."""
    folder = tmp_path / "in"
    folder.mkdir()
    path, data = folder / f"p{named}{end}", folder / f"p.img{end}"
    raconvert.write(path, VALUES, to="nifti")
    old = data.read_bytes()
    raconvert.write(path, VALUES + 1, to="nifti", overwrite=True)
    assert np.array_equal(raconvert.read(path), VALUES + 1)
    data.write_bytes(old)
    with pytest.raises(Corrupt, match="does not belong together"):
        raconvert.read(path)
    data.write_bytes(old[:20])
    with pytest.raises(Corrupt):
        raconvert.convert(path, tmp_path / "x.npy")
    partner = folder / f"p{'.img' if named == '.hdr' else '.hdr'}{end}"
    partner.rename(tmp_path / "away")
    with pytest.raises((ReadFailed, NotSupportedYet)):
        raconvert.read(path)
    partner.symlink_to(tmp_path / "away")
    with pytest.raises((Unsafe, NotSupportedYet), match="outside|gzip"):
        raconvert.read(path)


def test_analyze_is_refused_by_name(tmp_path: Path) -> None:
    for order in "<>":
        header = nib.AnalyzeHeader(endianness=order)
        image = nib.Spm2AnalyzeImage(VALUES, None, header=header)
        image.to_filename(tmp_path / "a.img")
        for name in ("a.hdr", "a.img"):
            with pytest.raises(NotSupportedYet, match=r"ANALYZE 7\.5.*\n?.*nibabel"):
                raconvert.read(tmp_path / name)
    (tmp_path / "b.img").write_bytes(bytes(512))
    with pytest.raises(ReadFailed, match=r"header of the data 'b\.hdr' does not exist"):
        raconvert.read(tmp_path / "b.img")


def test_fixtures() -> None:
    for end in (".hdr", ".img"):
        with raconvert.open(FIXTURES / f"nibabel_pair{end}") as array:
            assert np.array_equal(array, (np.arange(24) * 1829).astype("i2").reshape(2, 3, 4))
            assert affine_of(array).tolist() == AFFINE[:3].tolist()
    with raconvert.open(FIXTURES / "nibabel_int16.nii") as array:
        assert np.array_equal(array, (np.arange(24) * 1829).astype("i2").reshape(2, 3, 4))
        assert array.meta.description == "a scan"
        assert affine_of(array).tolist() == AFFINE[:3].tolist()
        assert {axis.units for axis in array.ra_axes} == {"mm"}
    with raconvert.open(FIXTURES / "nibabel_big.nii.gz") as array:
        assert np.array_equal(array, np.arange(0, 72, 3, "f4").reshape(3, 2, 2, 2))
        lengths = [*np.linalg.norm(AFFINE[:3, :3], axis=0), 0.5]  # of the sform, not of pixdim
        assert np.allclose([axis.spacing for axis in array.ra_axes], lengths, rtol=1e-12)
        assert array.ra_axes[3].units == "s"


# --- every byte of a header -----------------------------------------------------------------------

OF_THE_FILE = ("sizeof_hdr", "magic", "eol_check", "vox_offset")
TEXTS = {"data_type": 10, "db_name": 18, "descrip": 80, "aux_file": 24, "intent_name": 16}
HEADERS = {1: nib.Nifti1Header, 2: nib.Nifti2Header}


def texts(length: int) -> st.SearchStrategy[bytes]:
    """Texts as programs leave them: blanks, NUL, what was there before, any bytes."""
    word = st.binary(max_size=6) | st.sampled_from([b"FSL3.3", b"none", b"  ", b"\0", b"\xe9"])
    return st.lists(word, max_size=5).map(lambda words: b"".join(words)[:length])


@st.composite
def headers(draw: Any, version: int) -> tuple[bytes, bytes]:
    """The header of a volume of uint8 made by nibabel, and its data: any field may be odd."""
    order = draw(st.sampled_from("<>"))
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=7)))
    header = HEADERS[version](endianness=order)
    header.set_data_dtype("u1")
    header.set_data_shape(shape)
    fields = header.structarr.dtype.fields
    for name, (dtype, *_) in fields.items():
        if name in (*OF_THE_FILE, "datatype", "bitpix", "dim") or not draw(st.booleans()):
            continue
        if dtype.base.kind == "S":
            header[name] = draw(texts(dtype.itemsize))
        elif dtype.base.kind == "f" and draw(st.booleans()):
            few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, -3.0])
            count = int(np.prod(dtype.shape))
            found = [draw(few) for _ in range(count)]
            header[name] = np.reshape(found, dtype.shape) if dtype.shape else found[0]
        else:  # any bytes: numbers of all sizes, each NaN
            raw = draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
            header[name] = np.frombuffer(raw, dtype.base).reshape(dtype.shape)[()]
    if draw(st.booleans()):
        header["dim"][len(shape) + 1 :] = draw(st.sampled_from([0, 1, 5]))
    header["cal_max"] = 7.5  # so that the header says something
    header["magic"] = header.single_magic
    header["vox_offset"] = draw(st.sampled_from([0, 160])) + header.single_vox_offset
    data = bytes(range(int(np.prod(shape)) % 256)) or b"\0"
    return header.binaryblock, (data * 20)[: int(np.prod(shape))]


def fields_of(data: bytes) -> dict[str, bytes]:
    """The bytes of each field, little-endian; those of the layout of the file left out."""
    kind = HEADERS[1 if data[344:346] == b"n+" else 2]
    order = "<" if int.from_bytes(data[:4], "little") in (348, 540) else ">"
    header = kind(data[: kind.template_dtype.itemsize], endianness=order, check=False)
    found = {}
    for name, (dtype, *_) in header.structarr.dtype.fields.items():
        raw = header.structarr[name].tobytes()
        if order == ">" and dtype.base.kind != "S":
            size = dtype.base.itemsize
            raw = b"".join(raw[n : n + size][::-1] for n in range(0, len(raw), size))
        found[name] = raw
    return {name: raw for name, raw in found.items() if name not in OF_THE_FILE}


@pytest.mark.parametrize("version", [1, 2])
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_byte_of_a_header_comes_back(version: int, given_data: st.DataObject) -> None:
    """NIfTI to NIfTI, and by RA and its sidecar, whatever bytes the fields have."""
    header, data = given_data.draw(headers(version))
    with TemporaryDirectory() as name:
        folder = Path(name)
        kind = HEADERS[version]
        order = "<" if int.from_bytes(header[:4], "little") in (348, 540) else ">"
        offset = int(kind(header, endianness=order, check=False)["vox_offset"])
        (folder / "a.nii").write_bytes(header.ljust(offset, b"\0") + data)
        wanted = fields_of((folder / "a.nii").read_bytes())
        raconvert.convert(folder / "a.nii", folder / "b.nii", strict=True)
        raconvert.convert(folder / "a.nii", folder / "c.ra", strict=True)
        raconvert.convert(folder / "c.ra", folder / "c.nii", strict=True)
        for copy in ("b.nii", "c.nii"):
            got = (folder / copy).read_bytes()
            found = fields_of(got)
            assert {k: v for k, v in found.items() if wanted[k] != v} == {}
            assert got.endswith(data)


def test_the_form_of_a_header_lasts_as_long_as_it_is_true(tmp_path: Path) -> None:
    """A description or a spacing that was set wins, and odd spacings follow their axes."""
    save(tmp_path / "a.nii", VALUES, descrip=b"FSL3.3\0 v2.25", cal_max=1.0)
    data = bytearray((tmp_path / "a.nii").read_bytes())
    data[76:92] = np.array([1, 0, 2, 0], "<f4").tobytes()
    (tmp_path / "a.nii").write_bytes(data)
    raconvert.convert(tmp_path / "a.nii", tmp_path / "t.nii", axes="1,2,0")
    assert np.frombuffer((tmp_path / "t.nii").read_bytes()[76:92], "<f4").tolist() == [1, 2, 0, 0]

    raconvert.convert(tmp_path / "a.nii", tmp_path / "a.ra")
    sidecar = tmp_path / "a.ra.yaml"
    told = yaml.safe_load(sidecar.read_text())
    told["description"] = "another"
    told["axes"][0]["spacing"] = 4.0
    sidecar.write_text(yaml.safe_dump(told, sort_keys=False))
    raconvert.convert(tmp_path / "a.ra", tmp_path / "b.nii")
    raw = (tmp_path / "b.nii").read_bytes()
    assert raw[148:228] == b"another".ljust(80, b"\0")
    assert np.frombuffer(raw[76:92], "<f4").tolist() == [1, 4, 2, 0]


def test_a_header_that_says_nothing_leaves_nothing_behind(tmp_path: Path) -> None:
    """A slope of 0 and lengths of 0 behind the last axis are no metadata."""
    save(tmp_path / "a.nii", VALUES)
    data = bytearray((tmp_path / "a.nii").read_bytes())
    data[48:56] = bytes(8)
    data[112:116] = bytes(4)
    (tmp_path / "a.nii").write_bytes(data)
    raconvert.convert(tmp_path / "a.nii", tmp_path / "a.npy", strict=True)
    raconvert.convert(tmp_path / "a.nii", tmp_path / "a.ra")
    told = yaml.safe_load((tmp_path / "a.ra.yaml").read_text())
    assert "formats" not in told


def test_what_another_version_cannot_hold_is_named(tmp_path: Path) -> None:
    """NIfTI-1 has texts that NIfTI-2 lacks, NIfTI-2 has larger numbers."""
    save(tmp_path / "a.nii", VALUES, db_name=b"mine", aux_file=b"x\0y", slice_start=-2)
    report = raconvert.convert(tmp_path / "a.nii", tmp_path / "b.nii", out_opts={"version": "2"})
    assert [fit.reason for fit in report.equivalent] == ["not kept: nifti db_name"]
    header = nib.load(tmp_path / "b.nii").header
    assert header.structarr["aux_file"].tobytes() == b"x\0y".ljust(24, b"\0")
    assert header["slice_start"] == -2
    save(tmp_path / "c.nii", VALUES, version=2, slice_end=1 << 40, slice_start=3)
    report = raconvert.convert(tmp_path / "c.nii", tmp_path / "d.nii", out_opts={"version": "1"})
    assert [fit.reason for fit in report.equivalent] == ["not kept: nifti slice_end"]
    assert nib.load(tmp_path / "d.nii").header["slice_start"] == 3


def test_forms_that_anybody_made_are_named(tmp_path: Path) -> None:
    """Fields of a namespace that no header has are left out, and said to be."""
    form = {"descrip": "zz", "srow": [1], "scl_inter": "00", "dim": [1.5], "pixdim": "x", "no": 1}
    meta = Metadata(formats={"nifti": {"form": form, "extensions": [{"code": 4, "data": "00"}]}})
    report = raconvert.write(tmp_path / "a.nii", VALUES, meta=meta)
    (said,) = map(str, report.equivalent)
    assert all(f"nifti form ({name})" in said for name in form)
    assert "extensions (padded" in said
    nib.load(tmp_path / "a.nii")
