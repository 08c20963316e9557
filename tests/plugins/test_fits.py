"""What is special to FITS: astropy is the oracle, for values, keywords, coordinates and sums."""

from __future__ import annotations

import gzip
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import NAME, Facts, Pairs, little, of_axes
from raconvert.plugins.fits import packed

import raconvert
from raconvert.cli import main
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
    with pytest.raises(Corrupt, match="DATASUM" if place == "data" else "CHECKSUM"):
        raconvert.convert(tmp_path / "x.fits", tmp_path / "x.npy", verify=True)
    assert not (tmp_path / "x.npy").exists()


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


# Inside gzip -----------------------------------------------------------------------------------------


def of_everything(path: Path) -> bytes:
    """A file with images, a table and a column of variable length, by astropy."""
    lists = np.array([np.arange(n) for n in range(9)], object)
    columns = [fits.Column("a", "J", array=np.arange(9)), fits.Column("v", "PJ()", array=lists)]
    fits.HDUList([
        fits.PrimaryHDU(numbers("i2", (90, 40, 30))), fits.ImageHDU(numbers("u2", (8, 9)), name="U"),
        fits.BinTableHDU.from_columns(columns, name="T"), fits.ImageHDU(name="EMPTY"),
    ]).writeto(path, checksum=True)  # fmt: skip
    return path.read_bytes()


KEYS = [(slice(70, None), 3, slice(None, None, -3)), (0,), (-1, -1, -1), (slice(0, 0),),
        (slice(80, 10, -50), slice(5, 9))]  # fmt: skip


@every("members", [1, 2, 5])
def test_a_compressed_file_is_read_as_it_is_inflated(
    members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one member or several, with few states of the decoder, or many that are thinned out."""
    monkeypatch.setattr(packed, "APART", 1 << 12)
    monkeypatch.setattr(packed, "STATES", 8)
    monkeypatch.setattr(packed, "PIECE_BYTES", 1 << 11)
    raw = of_everything(tmp_path / "x.fits")
    cuts = np.linspace(0, len(raw), members + 1).astype(int)
    parts = [gzip.compress(raw[a:b]) for a, b in pairwise(cuts)]
    (tmp_path / "x.fits.gz").write_bytes(b"".join(parts))
    with (
        raconvert.open_bundle(tmp_path / "x.fits") as plain,
        raconvert.open_bundle(tmp_path / "x.fits.gz") as bundle,
    ):
        assert bundle.names == plain.names == ["PRIMARY", "U", "T", "T.v"]
        for array in reversed(plain.arrays):  # backwards: from the states that were kept
            assert np.array_equal(bundle[array.name], array[...])
            assert dict(bundle[array.name].meta.attributes) == dict(array.meta.attributes)
        for key in KEYS:
            assert np.array_equal(bundle["PRIMARY"][key], plain["PRIMARY"][key])
    raconvert.convert(tmp_path / "x.fits.gz", tmp_path / "x.h5")
    assert np.array_equal(raconvert.read(tmp_path / "x.h5#U"), numbers("u2", (8, 9)))
    assert main(["verify", str(tmp_path / "x.fits.gz")]) == 0


def test_a_compressed_file_for_astropy(tmp_path: Path) -> None:
    """The same bytes as without compression, sums included; nothing is added to it."""
    arrays = {"PRIMARY": numbers("u2", (30, 20)), "F": numbers("f8", (5, 6))}
    raconvert.write(tmp_path / "x.fits", arrays)
    raconvert.write(tmp_path / "x.fits.gz", arrays)
    packed_bytes = (tmp_path / "x.fits.gz").read_bytes()
    assert gzip.decompress(packed_bytes) == (tmp_path / "x.fits").read_bytes()
    with fits.open(tmp_path / "x.fits.gz", checksum=True) as file:
        assert np.array_equal(file["F"].data, arrays["F"])
    with pytest.raises(Unsupported, match="compressed as a whole"):
        raconvert.write(f"{tmp_path / 'x.fits.gz'}#MORE", arrays["F"])
    assert (tmp_path / "x.fits.gz").read_bytes() == packed_bytes


def test_what_a_compressed_file_may_not_hold(tmp_path: Path) -> None:
    """Bytes that are cut off, changed or behind it; tiles; cells in another order than the rows."""
    raw = of_everything(tmp_path / "x.fits")
    whole = gzip.compress(raw)
    path = tmp_path / "y.fits.gz"
    for cut in (1000, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(Corrupt, match="cut off"):
            raconvert.open_bundle(path)
    path.write_bytes(whole[:5000] + bytes(20) + whole[5020:])
    with pytest.raises(Corrupt, match="cannot be inflated"):
        raconvert.open_bundle(path)
    path.write_bytes(whole + b"hello")
    with raconvert.open_bundle(path) as bundle:
        assert any("5 bytes after the compressed data" in note for note in bundle.notes)
    path.write_bytes(gzip.compress(cards(*IMAGE, data=0)))
    with pytest.raises(Corrupt, match="cut off"):
        np.asarray(raconvert.read(path))
    path.write_bytes(gzip.compress(b"SIMPLE  =" + bytes(1 << 26)))
    with pytest.raises(Corrupt, match="no end"):
        raconvert.open_bundle(path)
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(numbers("i2", (9, 9)))]).writeto(
        tmp_path / "t.fits"
    )
    path.write_bytes(gzip.compress((tmp_path / "t.fits").read_bytes()))
    with pytest.raises(Unsupported, match="tiles in a file that is compressed") as refusal:
        raconvert.read(path)
    assert "gunzip " in refusal.value.remedy
    at = raw.index(
        np.array([2, 2, 4, 3, 3, 12], ">i4").tobytes()
    )  # two rows: number, length, place
    turned = np.array([2, 2, 12, 3, 3, 0], ">i4").tobytes()
    path.write_bytes(gzip.compress(raw[:at] + turned + raw[at + 24 :]))
    with raconvert.open_bundle(path) as bundle, pytest.raises(Unsupported, match="out of order"):
        np.asarray(bundle["T"])


# Random groups, missing logical values ---------------------------------------------------------------


@every("kind", ["f4", "i2", "f8"])
def test_random_groups_are_structures(kind: str, tmp_path: Path) -> None:
    """Stored numbers as astropy has them, which puts a bar before names that come twice."""
    data = numbers(kind, (4, 1, 3, 5))
    parameters = [numbers(kind, (4,), seed) for seed in (1, 2, 3)]
    groups = fits.GroupData(data, bitpix={"f4": -32, "i2": 16, "f8": -64}[kind],
                            pardata=parameters, parnames=["UU", "DATE", "DATE"])  # fmt: skip
    image = fits.GroupsHDU(groups)
    image.header["PSCAL1"] = 0.5
    fits.HDUList([image, fits.ImageHDU(data[0, 0], name="NEXT")]).writeto(tmp_path / "x.fits")
    with fits.open(tmp_path / "x.fits", do_not_scale_image_data=True) as file:
        theirs = np.asarray(file[0].data)
        with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
            assert bundle.names == ["PRIMARY", "NEXT"]
            ours = bundle["PRIMARY"][...]
            assert ours.dtype.names == ("UU", "DATE", "DATE_3", "DATA")
            for own, other in zip(ours.dtype.names, theirs.dtype.names, strict=True):
                assert np.array_equal(ours[own], theirs[other])
            assert np.array_equal(bundle["PRIMARY"][1:3]["DATA"], ours["DATA"][1:3])
            assert any("a scale of them: UU" in note for note in bundle.notes)
            assert np.array_equal(bundle["NEXT"], data[0, 0])


def test_missing_logical_values_are_texts_when_asked_for(tmp_path: Path) -> None:
    flags = np.array([np.array([True]), np.array([False, True])], object)
    columns = [fits.Column("one", "L", array=[True, False]),
               fits.Column("two", "3L", array=[[True, False, True]] * 2),
               fits.Column("v", "PL()", array=flags)]  # fmt: skip
    fits.BinTableHDU.from_columns(columns, name="T").writeto(tmp_path / "x.fits")
    data = (tmp_path / "x.fits").read_bytes()
    at = data.index(b"TTFT")
    data = data[:at] + b"T\0FT" + data[at + 4 :]
    at = data.rindex(b"TFT")
    (tmp_path / "x.fits").write_bytes(data[:at] + b"T\0T" + data[at + 3 :])
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        for array in bundle.arrays:
            with pytest.raises(Unsupported, match="neither T nor F") as refusal:
                array[...]
            assert '{"logical": "text"}' in refusal.value.remedy
    with raconvert.open_bundle(tmp_path / "x.fits", in_opts={"logical": "text"}) as bundle:
        table, cells = (array[...] for array in bundle.arrays)
        assert table["one"].tolist() == [b"T", b"F"]
        assert table["two"].tolist() == [[b"", b"F", b"T"], [b"T", b"F", b"T"]]
        assert cells.tolist() == [b"T", b"", b"T"]


def test_a_sum_of_other_digits_is_no_sum(tmp_path: Path) -> None:
    """The digits of Latin-1 that are no decimals, such as a raised 2."""
    fits.PrimaryHDU(np.arange(3, dtype="i2")).writeto(tmp_path / "x.fits", checksum=True)
    data = (tmp_path / "x.fits").read_bytes()
    at = data.index(b"'", data.index(b"DATASUM ="))
    end = data.index(b"'", at + 1)
    data = data[: at + 1] + b"\xb2".ljust(end - at - 1) + data[end:]
    (tmp_path / "x.fits").write_bytes(data)
    with pytest.raises(Corrupt, match="CHECKSUM"):
        raconvert.verify(tmp_path / "x.fits")
