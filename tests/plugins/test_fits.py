"""What is special to FITS: astropy is the oracle, for values, keywords, coordinates and sums."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import NAME, Facts, Pairs, little, of_axes

import raconvert
from raconvert.errors import Corrupt, RaconvertError, Unsupported

fits = pytest.importorskip("astropy.io.fits")
WCS = pytest.importorskip("astropy.wcs").WCS


def load(path: Path) -> np.ndarray:
    """The first image of a file as astropy reads it."""
    with fits.open(path) as file:
        image = next(one for one in file if one.header["NAXIS"])
        if image.data is not None:
            return little(np.asarray(image.data))
        # It has no values for an empty axis.
        header = image.header
        shape = [header[f"NAXIS{n}"] for n in range(header["NAXIS"], 0, -1)]
        code = {8: "u1", 16: "i2", 32: "i4", 64: "i8", -32: "f4", -64: "f8"}[header["BITPIX"]]
        turned = header.get("BZERO", 0) != 0
        return np.zeros(shape, code if not turned else code.translate(str.maketrans("ui", "iu")))


def save(path: Path, values: np.ndarray) -> None:
    image = fits.PrimaryHDU(values)
    image.header["EXTNAME"] = NAME
    image.writeto(path)


def said(path: Path) -> Facts:
    """What the cards say of the axes and values of the first image."""
    with fits.open(path) as file:
        header = next(one for one in file if one.is_image and one.header["NAXIS"]).header
    numbers = range(header["NAXIS"], 0, -1)
    axes = [{"name": header.get(f"CTYPE{n}"), "spacing": header.get(f"CDELT{n}")} for n in numbers]
    return {**of_axes(axes), "units": header.get("BUNIT")}


IN_PAIRS = (
    Pairs(
        name="fits",
        suffix=".fits",
        read=load,
        write=save,
        can_write=lambda values: (
            values.dtype.str[1:] in TYPES and values.dtype != "i1" and values.ndim > 0
        ),
        order="C",
        guest=True,
        types="= int8 int16 int16_big int32 int64 int64_big uint8 uint16 uint16_big uint32 uint64 "
        "float32 float32_big float64 ~ bool x *",
        shapes="= * ~ ()",
        said=said,
    ),
)  # fmt: skip
TYPES = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def numbers(kind: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Any values of a type, its smallest and largest among them."""
    values = np.random.default_rng(seed).integers(0, 1 << 62, shape)
    if kind[0] == "f":
        return (values / (1 << 40)).astype(kind)
    values = values.astype(kind)
    values.flat[0], values.flat[-1] = np.iinfo(kind).min, np.iinfo(kind).max
    return values


@every("kind", TYPES)
@every("shape", [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 2)])
def test_images_of_astropy(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = numbers(kind, shape)
    if kind == "i1":  # astropy scales it only if it is told to
        image = fits.PrimaryHDU(values.astype("i2"))
        image.scale("uint8", bzero=-128)
    else:
        image = fits.PrimaryHDU(values)
    image.writeto(tmp_path / "x.fits", checksum=True)

    with raconvert.open_array(tmp_path / "x.fits") as array:
        assert array.dtype.newbyteorder("=") == np.dtype(kind)
        assert np.array_equal(array[...], values)
        assert np.array_equal(array[..., 1:], values[..., 1:])
        assert (array.extent is not None) == (kind in ("u1", "i2", "i4", "i8", "f4", "f8"))
        assert not array.meta.attributes.keys() & {"add_offset", "scale_factor"}
    raconvert.convert(tmp_path / "x.fits", tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), values)
    raconvert.verify(tmp_path / "x.fits")


def test_scale_and_blank_are_those_of_astropy(tmp_path: Path) -> None:
    stored = np.arange(-3, 9, dtype="i2").reshape(3, 4)
    image = fits.PrimaryHDU(stored)
    image.writeto(tmp_path / "x.fits")
    with fits.open(tmp_path / "x.fits", "update", do_not_scale_image_data=True) as file:
        file[0].header["BSCALE"], file[0].header["BZERO"] = 0.5, 10.0
        file[0].header["BLANK"], file[0].header["BUNIT"] = -3, "Jy"
    theirs = fits.getdata(tmp_path / "x.fits")

    with raconvert.open_array(tmp_path / "x.fits") as array:
        assert np.array_equal(array[...], stored)
        assert array.meta.units == "Jy"
        assert array.meta.attributes == {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -3}
    raconvert.convert(tmp_path / "x.fits", tmp_path / "x.npy", unscale=True)
    assert np.array_equal(np.load(tmp_path / "x.npy"), theirs, equal_nan=True)
    assert np.isnan(theirs[0, 0])


def test_keywords_of_every_kind(tmp_path: Path) -> None:
    image = fits.PrimaryHDU(np.zeros((2, 3), "u1"))
    long = "a text that is far longer than one card, 'quoted', " * 5 + "to its end"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image.header.update({
            "OBJECT": "it's M 31", "COUNT": 7, "GAIN": -1.5e-30, "DONE": True, "LONG": long,
            "HIERARCH ESO DET GAIN": 2.5, "EMPTY": "",
        })  # fmt: skip
    image.header["COMMENT"] = "first"
    image.header["COMMENT"] = "second"
    image.header["HISTORY"] = "made by hand"
    image.writeto(tmp_path / "x.fits")

    with raconvert.open_array(tmp_path / "x.fits") as array:
        found = dict(array.meta.attributes)
    assert found == {
        "OBJECT": "it's M 31", "COUNT": 7, "GAIN": -1.5e-30, "DONE": True, "LONG": long,
        "ESO DET GAIN": 2.5, "EMPTY": "", "COMMENT": "first\nsecond", "HISTORY": "made by hand",
    }  # fmt: skip


def test_all_hdus_have_names_and_unreadable_ones_a_place(tmp_path: Path) -> None:
    values = np.arange(6, dtype="i4").reshape(2, 3)
    odd = fits.ImageHDU(values, name="ODD")
    flags = np.array([np.array([1, 0], "u1"), np.array([1], "u1")], object)
    fits.HDUList([
        fits.PrimaryHDU(), fits.ImageHDU(values, name="SCI", ver=1),
        fits.ImageHDU(values + 1, name="SCI", ver=2), fits.ImageHDU(values + 2), odd,
        fits.BinTableHDU.from_columns([fits.Column("r", "PB()", array=flags)], name="FLAGS"),
        fits.ImageHDU(name="ONLY"),
    ]).writeto(tmp_path / "x.fits")  # fmt: skip
    data = (tmp_path / "x.fits").read_bytes()
    data = data.replace(b"'PB(2)   '", b"'PX(2)   '")
    at = data.rindex(b"XTENSION= 'IMAGE   '", 0, data.index(b"'ODD     '"))
    (tmp_path / "x.fits").write_bytes(
        data[:at] + data[at:].replace(b"'IMAGE   '", b"'OTHER   '", 1)
    )

    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle.names == ["SCI", "SCI,2", "HDU3", "ODD", "FLAGS"]
        assert np.array_equal(bundle["SCI,2"], values + 1)
        for name, words in (("ODD", "OTHER"), ("FLAGS", "of bits")):
            with pytest.raises(Unsupported, match=words):
                np.asarray(bundle[name])
        assert "ONLY" in bundle.groups
    with pytest.raises(RaconvertError):
        raconvert.convert(tmp_path / "x.fits", tmp_path / "x.h5")
    raconvert.convert(tmp_path / "x.fits", tmp_path / "x.h5", arrays=["SCI", "SCI,2", "HDU3"])


@every("place", ["data", "header"])
def test_wrong_sums_are_found_by_verify(place: str, tmp_path: Path) -> None:
    fits.PrimaryHDU(np.arange(3000, dtype="i2")).writeto(tmp_path / "x.fits", checksum=True)
    raconvert.verify(tmp_path / "x.fits")
    data = bytearray((tmp_path / "x.fits").read_bytes())
    data[2880 + 1000 if place == "data" else data.index(b"EXTEND") + 60] ^= 1
    (tmp_path / "x.fits").write_bytes(data)
    with pytest.raises(Corrupt, match="DATASUM" if place == "data" else "CHECKSUM"):
        raconvert.verify(tmp_path / "x.fits")


def cards(*lines: str, data: int = 2880) -> bytes:
    header = "".join(line.ljust(80) for line in ("SIMPLE  =                    T", *lines, "END"))
    return header.ljust(-(-len(header) // 2880) * 2880).encode("latin-1") + bytes(data)


IMAGE = ("BITPIX  = 16", "NAXIS   = 2", "NAXIS1  = 3", "NAXIS2  = 2")
TABLE = ("XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 4", "NAXIS2  = 2")


def of_table(*lines: str) -> bytes:
    return cards("BITPIX  = 8", "NAXIS   = 0", data=0) + cards(*TABLE, *lines)[80:].ljust(
        5760, b"\0"
    )


HOSTILE = {
    "nothing but the magic": b"SIMPLE  =",
    "half a block": cards(*IMAGE)[:1000],
    "no end": cards(*IMAGE)[:2880].replace(b"END", b"EMD"),
    "no end for megabytes": b"SIMPLE  =                    T".ljust(80) + b"HISTORY x".ljust(80) * 54000,
    "no data": cards(*IMAGE, data=0),
    "no BITPIX": cards(*IMAGE[1:]),
    "BITPIX of 7": cards("BITPIX  = 7", *IMAGE[1:]),
    "BITPIX of text": cards("BITPIX  = 'x'", *IMAGE[1:]),
    "BITPIX of a float": cards("BITPIX  = 16.5", *IMAGE[1:]),
    "no NAXIS": cards("BITPIX  = 16"),
    "NAXIS of -1": cards("BITPIX  = 16", "NAXIS   = -1"),
    "NAXIS of 10**60": cards("BITPIX  = 16", f"NAXIS   = {10**60}"),
    "NAXIS of 999": cards("BITPIX  = 16", "NAXIS   = 999"),
    "a missing length": cards(*IMAGE[:3]),
    "a negative length": cards(*IMAGE[:3], "NAXIS2  = -2"),
    "a length of 10**60": cards(*IMAGE[:3], f"NAXIS2  = {10**60}"),
    "random groups": cards("BITPIX  = 16", "NAXIS   = 2", "NAXIS1  = 0", "NAXIS2  = 2", "GROUPS  = T"),
    "only a header": cards("BITPIX  = 16", "NAXIS   = 0", data=0),
    "table without columns": of_table("TFIELDS = 0"),
    "table of a million columns": of_table("TFIELDS = 1000000"),
    "table without forms": of_table("TFIELDS = 1"),
    "table of a strange form": of_table("TFIELDS = 1", "TFORM1  = '1Z'"),
    "table of wide columns": of_table("TFIELDS = 1", "TFORM1  = '999999999999J'"),
    "table of narrow columns": of_table("TFIELDS = 1", "TFORM1  = '1I'"),
    "table of floats": of_table("TFIELDS = 1", "TFORM1  = '1J'").replace(b"= 8 ", b"=-32"),
}  # fmt: skip


@every("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.fits").write_bytes(HOSTILE[name])
    with pytest.raises((Corrupt, Unsupported)) as caught:
        raconvert.read(tmp_path / "x.fits")
    assert "x.fits" in str(caught.value)


@settings(max_examples=25, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([one for one in TYPES if one != "i1"]), min_size=1, max_size=4),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 999),
)
def test_any_file_of_images(
    kinds: list[str], shape: list[int], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("fits") / "x.fits"
    arrays = [numbers(kind, tuple(shape), seed) for kind in kinds]
    hdus = [fits.ImageHDU(values, name=f"a{n}") for n, values in enumerate(arrays)]
    fits.HDUList([fits.PrimaryHDU(), *hdus]).writeto(path, checksum=True)
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == [f"A{n}" for n in range(len(arrays))]
        for found, values in zip(bundle.arrays, arrays, strict=True):
            assert found.dtype.newbyteorder("=") == values.dtype
            assert np.array_equal(found[...], values)


@every("kind", [*TYPES, "?"])
@every("shape", [(5,), (3, 4), (2, 3, 4, 5), (0, 3)])
def test_images_for_astropy(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = np.ones(shape, "?") if kind == "?" or not np.prod(shape) else numbers(kind, shape)
    values = values.astype(kind)
    raconvert.write(tmp_path / "x.fits", {"a": values, "it's": values[:1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fits.open(tmp_path / "x.fits", checksum=True) as file:
            file.verify("exception")
            assert [hdu.name for hdu in file][1:] == ["a", "it's"]
            found = np.asarray(file[1].data) if np.prod(shape) else values
            assert np.array_equal(found, values)
    raconvert.verify(tmp_path / "x.fits")
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle.names == ["a", "it's"]
        wanted = np.dtype("u1" if kind == "?" else kind)
        assert bundle["a"].dtype.newbyteorder("=") == wanted
        assert np.array_equal(bundle["a"], values)
        assert bundle["a"].shape == shape


def test_what_is_said_of_an_array_comes_back(tmp_path: Path) -> None:
    attributes = {
        "OBJECT": "it's M 31 " * 20 + "end", "COUNT": -7, "GAIN": 1.5e-30, "DONE": False,
        "ESO DET GAIN": 2.5, "COMMENT": "first\nsecond", "scale_factor": 0.5, "add_offset": 10.0,
        "_FillValue": -3, "lower": 1, "NAXIS": 7, "TEXT": "größer",
    }  # fmt: skip
    axes = [raconvert.Axis("FREQ", units="Hz", spacing=0.1, origin=-2.5), raconvert.Axis()]
    meta = raconvert.Metadata(units="Jy", attributes=attributes, axes=axes)
    values = np.arange(-3, 9, dtype="i2").reshape(3, 4)
    for name in ("x.fits", "y.fits"):
        report = raconvert.write(tmp_path / name, raconvert.Array(values, name="SCI", meta=meta))
    assert (tmp_path / "x.fits").read_bytes() == (tmp_path / "y.fits").read_bytes()

    lost = "\n".join(map(str, report.equivalent))
    assert "attributes (lower, NAXIS, TEXT)" in lost
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        found = bundle["SCI"].meta
    kept = {key: value for key, value in attributes.items() if f"{key}" not in lost}
    assert dict(found.attributes) == kept
    assert (found.units, found.axes) == ("Jy", tuple(axes))
    with fits.open(tmp_path / "x.fits", checksum=True) as file:
        header = file[0].header
        assert header["OBJECT"] == attributes["OBJECT"]
        assert header["ESO DET GAIN"] == 2.5
        theirs = WCS(header).wcs_pix2world([(0, 2)], 0)[0][1]
        assert np.isclose(theirs, -2.5 + 2 * 0.1)
        assert np.array_equal(file[0].data, np.where(values == -3, np.nan, values * 0.5 + 10),
                              equal_nan=True)  # fmt: skip
    raconvert.convert(tmp_path / "x.fits", tmp_path / "z.fits")
    assert (tmp_path / "z.fits").read_bytes() == (tmp_path / "x.fits").read_bytes()


def test_refusals_of_writing(tmp_path: Path) -> None:
    for values in (np.zeros(3, "c8"), np.zeros(3, "f2"), np.zeros(3, "S3")):
        with pytest.raises(RaconvertError, match="FITS has no"):
            raconvert.write(tmp_path / "x.fits", {"a": values})
    for name in ("größer", "x" * 70, "ends "):
        with pytest.raises(RaconvertError, match="EXTNAME"):
            raconvert.write(tmp_path / "x.fits", {name: np.zeros(3)})
