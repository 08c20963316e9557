"""Coordinates of FITS images: linear ones are those of axes, all others stay keywords; judge: astropy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st

import raconvert

fits = pytest.importorskip("astropy.io.fits")
WCS = pytest.importorskip("astropy.wcs").WCS

SKY = {
    "CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CUNIT1": "deg", "CUNIT2": "deg", "CRVAL1": 83.6,
    "CRVAL2": 22.0, "CRPIX1": 2.5, "CRPIX2": -1.0, "RADESYS": "FK5", "EQUINOX": 2000.0,
}  # fmt: skip
DESCRIBED: dict[str, dict[str, Any]] = {
    "steps": {"CDELT1": -0.01, "CDELT2": 0.02},
    "matrix PC": {"CDELT1": -0.01, "CDELT2": 0.02, "PC1_1": 0.8, "PC1_2": 0.6, "PC2_1": -0.6,
                  "PC2_2": 0.8},
    "a part of PC": {"CDELT1": -0.01, "CDELT2": 0.02, "PC1_2": 0.3},
    "matrix CD": {"CD1_1": -0.01, "CD1_2": 0.003, "CD2_1": 0.002, "CD2_2": 0.015},
    "parameters": {"CTYPE1": "RA---ZPN", "CTYPE2": "DEC--ZPN", "CDELT1": -0.01, "CDELT2": 0.02,
                   "PV2_1": 1.0, "PV2_3": 0.1},
    "pole": {"CDELT1": -0.01, "CDELT2": 0.02, "LONPOLE": 120.0, "LATPOLE": 30.0},
}  # fmt: skip


def image(path: Path, cards: dict[str, Any], shape: tuple[int, ...] = (6, 7)) -> np.ndarray:
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    made = fits.PrimaryHDU(values)
    made.header.update(cards)
    made.writeto(path, overwrite=True)
    return values


def places(path: Path) -> Callable[[tuple[int, ...]], np.ndarray]:
    """The coordinates of an index, in the order of NumPy, as astropy works them out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wcs = WCS(fits.getheader(path))
    return lambda index: wcs.wcs_pix2world([index[::-1]], 0)[0]


def test_linear_coordinates_are_those_of_astropy(tmp_path: Path) -> None:
    image = fits.PrimaryHDU(np.zeros((3, 4, 5), "f4"))
    for n, (kind, unit, step, value, pixel) in enumerate(
        [("X", "m", 0.5, 3.0, 2.5), ("WAVE", "m", 1e-7, 5e-7, 1.0), ("FREQ", "Hz", -2.0, 9.0, 3.0)]
    ):
        image.header[f"CTYPE{n + 1}"], image.header[f"CUNIT{n + 1}"] = kind, unit
        image.header[f"CDELT{n + 1}"], image.header[f"CRVAL{n + 1}"] = step, value
        image.header[f"CRPIX{n + 1}"] = pixel
    image.writeto(tmp_path / "x.fits")

    with raconvert.open_array(tmp_path / "x.fits") as array:
        axes = array.meta.axes
    assert [axis.name for axis in axes] == ["FREQ", "WAVE", "X"]
    assert [axis.units for axis in axes] == ["Hz", "m", "m"]
    theirs = WCS(fits.getheader(tmp_path / "x.fits"))
    for index in np.ndindex(3, 4, 5):
        ours = [axis.origin + k * axis.spacing for axis, k in zip(axes, index, strict=True)]
        assert np.allclose(theirs.wcs_pix2world([index[::-1]], 0)[0], ours[::-1], rtol=1e-12)


@every(
    "cards",
    [
        {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CDELT1": 0.1},
        {"PC1_1": 0.6, "PC1_2": 0.8, "CDELT1": 1.0},
        {"CD1_1": 2.0, "CD1_2": 0.5, "CD2_2": 3.0},
        {"CROTA2": 30.0, "CDELT1": 1.0},
        {"CDELT1": 0.0, "CRVAL1": 1.0},
    ],
)
def test_other_coordinates_are_kept_and_named(cards: dict[str, Any], tmp_path: Path) -> None:
    image = fits.PrimaryHDU(np.zeros((3, 4), "f4"))
    image.header.update(cards)
    image.writeto(tmp_path / "x.fits")
    with raconvert.open_bundle(tmp_path / "x.fits") as bundle:
        assert bundle.arrays[0].meta.formats["fits"]["wcs"] == cards
        assert not any(axis.spacing for axis in bundle.arrays[0].meta.axes)
        assert any("kept as keywords" in note for note in bundle.notes)


@every("name", DESCRIBED)
@every("part", ["", "[1:6:2, 2:]", "[::-1, 1:7:3]", "[3:, ::-2]"])
def test_projections_stay_with_their_pixels(name: str, part: str, tmp_path: Path) -> None:
    """Written again, whole and in parts, each pixel is where it was on the sky."""
    values = image(tmp_path / "x.fits", SKY | DESCRIBED[name])
    raconvert.convert(f"{tmp_path / 'x.fits'}#PRIMARY{part}", tmp_path / "y.fits")
    if not part:
        theirs = fits.getheader(tmp_path / "y.fits")
        said = SKY | DESCRIBED[name]
        assert {key: theirs[key] for key in said} == said
    key = eval(f"np.s_{part}") if part else np.s_[:, :]
    found = fits.getdata(tmp_path / "y.fits")
    assert np.array_equal(found, values[key])
    before, after = places(tmp_path / "x.fits"), places(tmp_path / "y.fits")
    for index in np.ndindex(found.shape):
        was = divmod(int(found[index]), 7)
        assert np.allclose(after(index), before(was), rtol=0, atol=1e-10), (index, was)


@every("name", ["steps", "matrix PC", "a part of PC", "matrix CD", "parameters"])
@every("axes", ["1,0", "0,1"])
def test_axes_in_another_order_keep_the_sky(name: str, axes: str, tmp_path: Path) -> None:
    values = image(tmp_path / "x.fits", SKY | DESCRIBED[name])
    raconvert.convert(tmp_path / "x.fits", tmp_path / "x.ra")  # and through another format
    raconvert.convert(tmp_path / "x.ra", tmp_path / "y.fits", axes=axes)
    found = fits.getdata(tmp_path / "y.fits")
    assert np.array_equal(found, values.T if axes == "1,0" else values)
    before, after = places(tmp_path / "x.fits"), places(tmp_path / "y.fits")
    for index in np.ndindex(found.shape):
        was = divmod(int(found[index]), 7)
        theirs = before(was) if axes == "0,1" else before(was)[::-1]
        assert np.allclose(after(index), theirs, rtol=0, atol=1e-10), (index, was)


def test_a_cube_has_its_linear_axis_and_keeps_the_sky(tmp_path: Path) -> None:
    spectral = {"CTYPE3": "FREQ", "CUNIT3": "Hz", "CDELT3": 1e6, "CRVAL3": 1.4e9, "CRPIX3": 2.0}
    cards = SKY | DESCRIBED["matrix PC"] | spectral | {"WCSAXES": 3}
    values = image(tmp_path / "x.fits", cards, (4, 6, 7))
    with raconvert.open_array(tmp_path / "x.fits") as array:
        axis = array.meta.axes[0]
        assert (axis.name, axis.units, axis.spacing, axis.origin) == ("FREQ", "Hz", 1e6, 1.399e9)
        assert not any(array.meta.axes[1:])
    raconvert.convert(f"{tmp_path / 'x.fits'}#PRIMARY[1:,2:,::2]", tmp_path / "y.fits")
    before, after = places(tmp_path / "x.fits"), places(tmp_path / "y.fits")
    found = fits.getdata(tmp_path / "y.fits")
    assert np.array_equal(found, values[1:, 2:, ::2])
    for index in [(0, 0, 0), (2, 3, 3), (1, 2, 0)]:
        was = np.unravel_index(int(found[index]), values.shape)
        assert np.allclose(after(index), before(tuple(map(int, was))), rtol=1e-12, atol=1e-10)


def test_what_cannot_be_said_of_a_part_is_named(tmp_path: Path) -> None:
    """Polynomials of pixels of every second pixel, and a row alone."""
    sip = {"CTYPE1": "RA---TAN-SIP", "CTYPE2": "DEC--TAN-SIP", "A_ORDER": 2, "B_ORDER": 2,
           "A_2_0": 1e-3, "B_0_2": 2e-3, "CDELT1": -0.01, "CDELT2": 0.02}  # fmt: skip
    image(tmp_path / "x.fits", SKY | sip)
    for part, kept in (("", True), ("[2:, 3:]", True), ("[::2]", False), ("[1]", False)):
        report = raconvert.convert(
            f"{tmp_path / 'x.fits'}#PRIMARY{part}", tmp_path / "y.fits", overwrite=True
        )
        lost = "\n".join(map(str, report.equivalent))
        header = fits.getheader(tmp_path / "y.fits")
        assert ("fits wcs" in lost) == (not kept), part
        assert ("A_2_0" in header) == kept
        assert ("CTYPE1" in header) == kept
    raconvert.convert(f"{tmp_path / 'x.fits'}#PRIMARY[2:, 3:]", tmp_path / "y.fits", overwrite=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            WCS(fits.getheader(tmp_path / "x.fits")),
            WCS(fits.getheader(tmp_path / "y.fits")),
        )
    assert np.allclose(one.all_pix2world([(4, 5)], 0), other.all_pix2world([(1, 3)], 0), atol=1e-10)


def test_a_changed_axis_is_written_as_it_is(tmp_path: Path) -> None:
    """What somebody says of an axis wins over what the file said of it."""
    image(tmp_path / "x.fits", {"CTYPE1": "X", "CDELT1": 2.0, "CRVAL1": 5.0, "CRPIX1": 3.0,
                                "CTYPE1A": "MM", "CDELT1A": 0.1})  # fmt: skip
    with raconvert.open_array(tmp_path / "x.fits") as array:
        assert array.meta.axes[1].origin == 1.0
        axes = [array.meta.axes[0], array.meta.axes[1].replace(spacing=4.0)]
        changed = array.replace(meta=array.meta.replace(axes=axes))
        raconvert.write(tmp_path / "y.fits", changed)
        raconvert.write(tmp_path / "z.fits", array)
    header = fits.getheader(tmp_path / "y.fits")
    assert (header["CDELT1"], header["CRVAL1"], header["CRPIX1"]) == (4.0, 1.0, 1.0)
    assert header["CDELT1A"] == 0.1
    header = fits.getheader(tmp_path / "z.fits")
    assert (header["CDELT1"], header["CRVAL1"], header["CRPIX1"]) == (2.0, 5.0, 3.0)


KEYS = [f"{key}{n}" for key in ("CDELT", "CRVAL", "CRPIX") for n in (1, 2, 3)]
KEYS += [f"{key}{i}_{j}" for key in ("PC", "CD") for i in (1, 2) for j in (1, 2)]


@settings(max_examples=40, deadline=None)
@given(
    cards=st.dictionaries(
        st.sampled_from([*KEYS, "CTYPE1", "CTYPE2", "CUNIT1", "CROTA2", "WCSAXES", "PV2_1", "CRPIX1A"]),
        st.one_of(st.sampled_from(["", "x", "RA---TAN", True, None]), st.integers(-3, 70),
                  st.floats(-1e300, 1e300)),
    ),
    part=st.sampled_from(["", "[1:]", "[::-2,1:]", "[0]", "[:,0]"]),
)  # fmt: skip
def test_any_keywords_are_read_and_written(
    cards: dict[str, Any], part: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever they say: no error, the values as they are, the keywords kept of a whole image."""
    folder = tmp_path_factory.mktemp("fits")
    lines = [f"{key:8}= {_word(value)}".ljust(80) for key, value in cards.items()]
    head = [
        "SIMPLE  = T",
        "BITPIX  = 8",
        "NAXIS   = 2",
        "NAXIS1  = 4",
        "NAXIS2  = 3",
        *lines,
        "END",
    ]
    text = "".join(line.ljust(80) for line in head).encode()
    data = np.arange(12, dtype="u1")
    (folder / "x.fits").write_bytes(
        text.ljust(-(-len(text) // 2880) * 2880) + data.tobytes().ljust(2880, b"\0")
    )
    source = f"{folder / 'x.fits'}#PRIMARY{part}"
    raconvert.convert(source, folder / "y.fits")
    again = raconvert.diff(source, folder / "y.fits", ignore_meta=True)
    assert again["same"]
    if not part:
        found = fits.getheader(folder / "y.fits")
        assert {key: found.get(key) for key in cards} == cards


def _word(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool):
        return "T" if value else "F"
    return "" if value is None else repr(value).upper()
