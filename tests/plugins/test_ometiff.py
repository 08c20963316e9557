"""OME-TIFF: tifffile judges what is read and written; the chain of a microscopist loses nothing."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import raconvert
from raconvert import Axis, Metadata, Space
from raconvert.cli import main
from raconvert.errors import Corrupt, Unsafe, WouldLose

LENGTHS = {"T": 2, "C": 3, "Z": 4, "Y": 6, "X": 5, "S": 3}
AXES = [
    "".join(outer) + "YX" + samples
    for count in range(4)
    for outer in itertools.permutations("TCZ", count)
    for samples in ("", "S")
]  # fmt: skip
TYPES = ["?", "i1", "i2", "i4", "u1", "u2", "u4", "f4", "f8", "c8", "c16"]
UNITS = {"um": "µm", "nm": "nm", "mm": "mm", "m": "m", "pm": "pm", "angstrom": "Å", "in": "in",
         "ft": "ft", "km": "km", "fm": "fm"}  # fmt: skip
TIMES = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns", "min": "min", "h": "h", "d": "d"}


def values_of(axes: str, dtype: str = "u2") -> np.ndarray:
    shape = tuple(LENGTHS[one] for one in axes)
    flat = np.arange(np.prod(shape)) % 251
    return (flat % 2 if dtype == "?" else flat).astype(dtype).reshape(shape)


def meta_of(axes: str, *, origin: bool = True) -> Metadata:
    """Metadata as OME-TIFF has it, everything known."""
    world = [one for one in "XYZ" if one in axes]
    said = {
        "T": Axis("T", kind="time", units="s", spacing=0.5),
        "C": Axis("C", kind="list", labels=["DAPI", "GFP", "RFP"]),
        "S": Axis("S", kind="RGB-color"),
    }
    for number, one in enumerate("ZYX"):
        direction = tuple(float(one == other) for other in world) if origin else None
        said[one] = Axis(one, kind="space", units="um", spacing=0.25 * (number + 1),
                         direction=direction)  # fmt: skip
    places = {"X": 3.0, "Y": -2.0, "Z": 10.0}
    space = Space(None, tuple(places[one] for one in world)) if origin else None
    return Metadata("a stack", axes=[said[one] for one in axes], space=space)


def only(spec: Path | str, **options: Any) -> Any:
    bundle = raconvert.open_bundle(spec, **options)
    assert len(bundle.arrays) == 1
    return bundle.arrays[0]


def xml_of(path: Path) -> dict[str, Any]:
    with tifffile.TiffFile(path) as file:
        return tifffile.xml2dict(file.ome_metadata or "")["OME"]


# Written by us ------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", AXES)
def test_every_order_of_axes_is_what_tifffile_reads(axes: str, tmp_path: Path) -> None:
    path, values, meta = tmp_path / "x.ome.tif", values_of(axes, "u1"), meta_of(axes)

    report = raconvert.write(path, values, meta=meta)

    assert not list(report.equivalent)
    with tifffile.TiffFile(path) as file:
        (series,) = file.series
        assert (series.kind, series.axes) == ("ome", axes)
        assert np.array_equal(series.asarray(), values)
    image = xml_of(path)["Image"]
    pixels = image["Pixels"]
    assert image["Description"] == "a stack"
    for letter, step in zip("ZYX", (0.25, 0.5, 0.75), strict=True):
        if letter in axes:
            assert pixels[f"PhysicalSize{letter}"] == step
            assert pixels[f"PhysicalSize{letter}Unit"] == "µm"
    assert pixels["Plane"]["PositionX"] == 3.0
    if "T" in axes:
        assert (pixels["TimeIncrement"], pixels["TimeIncrementUnit"]) == (0.5, "s")
    if "C" in axes:
        assert [one["Name"] for one in pixels["Channel"]] == ["DAPI", "GFP", "RFP"]
    array = only(path)
    assert np.array_equal(np.asarray(array), values)
    assert array.meta.space == meta.space
    assert array.meta.axes == meta.axes


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compression", ["none", "deflate"])
def test_every_type_comes_back(dtype: str, compression: str, tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("ZYX", dtype)

    raconvert.write(path, values, out_opts={"levels": "2", "compression": compression}, verify=True)

    array = only(path)
    assert np.array_equal(np.asarray(array), values)
    assert array.dtype == values.dtype
    with tifffile.TiffFile(path) as file:
        assert np.array_equal(file.series[0].asarray(), values)
        assert file.series[0].levels[1].dtype == values.dtype


@pytest.mark.parametrize("dtype", ["i8", "u8", "f2"])
def test_types_that_ome_lacks_are_refused_by_name(dtype: str, tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("ZYX", dtype)
    with pytest.raises(WouldLose, match="OME has no .* dtype="):
        raconvert.write(path, values)
    assert not path.exists()


@pytest.mark.parametrize(("unit", "word"), UNITS.items())
def test_units_of_length(unit: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    axes = [Axis(one, kind="space", units=unit, spacing=2.0) for one in "YX"]

    raconvert.write(path, values_of("YX"), meta=Metadata(axes=axes))

    pixels = xml_of(path)["Image"]["Pixels"]
    assert pixels["PhysicalSizeXUnit"] == pixels["PhysicalSizeYUnit"] == word
    assert list(only(path).meta.axes) == axes


@pytest.mark.parametrize(("unit", "word"), TIMES.items())
def test_units_of_time(unit: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    axes = [Axis("T", kind="time", units=unit, spacing=2.0), Axis("Y", kind="space"),
            Axis("X", kind="space")]  # fmt: skip

    raconvert.write(path, values_of("TYX"), meta=Metadata(axes=axes))

    assert xml_of(path)["Image"]["Pixels"]["TimeIncrementUnit"] == word
    assert list(only(path).meta.axes) == axes


def test_levels_are_those_that_tifffile_finds(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("CZYX")
    meta = meta_of("CZYX")

    raconvert.write(path, values, meta=meta, out_opts={"levels": "3"})

    with tifffile.TiffFile(path) as file:
        (series,) = file.series
        data = [level.asarray() for level in series.levels]
    assert [one.shape for one in data] == [(3, 4, 6, 5), (3, 4, 3, 3), (3, 4, 2, 2)]
    for above, below in itertools.pairwise(data):
        for c, z, y, x in np.ndindex(below.shape):
            block = above[c, z, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2].astype(int)
            assert below[c, z, y, x] == (2 * block.sum() + block.size) // (2 * block.size)
    bundle = raconvert.open_bundle(path)
    assert [array.name for array in bundle.more] == ["x.level1", "x.level2"]
    for number, array in enumerate(bundle.more, 1):
        assert np.array_equal(np.asarray(array), data[number])
        assert array.meta.axes[3].spacing == 0.75 * 2**number
        assert array.meta.axes[0].labels == ("DAPI", "GFP", "RFP")
    assert bundle.more[0].meta.space.origin == (3.375, -1.75, 10.0)
    assert "x.level1, x.level2" in " ".join(bundle.notes)
    assert main([f"{path}#x.level1", "-o", str(tmp_path / "x.npy")]) == 0
    assert np.array_equal(np.load(tmp_path / "x.npy"), data[1])


def test_several_images_in_one_file(tmp_path: Path) -> None:
    arrays = {"a": values_of("ZYX"), "b & <c>": values_of("CZYX", "f4"), "d": values_of("YX", "?")}
    path = tmp_path / "x.ome.tif"

    raconvert.write(path, arrays, out_opts={"levels": "2"})

    with tifffile.TiffFile(path) as file:
        assert len(file.series) == 3
        for series, values in zip(file.series, arrays.values(), strict=True):
            assert np.array_equal(series.asarray(), values)
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == [*arrays]
        for name, values in arrays.items():
            assert np.array_equal(np.asarray(bundle.get(name)), values)


@pytest.mark.parametrize("compression", ["none", "deflate"])
def test_itk_reads_the_pages(compression: str, tmp_path: Path) -> None:
    """It knows nothing of OME: the planes are one volume."""
    itk = pytest.importorskip("SimpleITK")
    path, values = tmp_path / "x.ome.tif", values_of("ZYX")
    raconvert.write(path, values, out_opts={"compression": compression})
    assert np.array_equal(itk.GetArrayFromImage(itk.ReadImage(str(path))), values)


@pytest.mark.parametrize("name", ["v4.ome.zarr", "v5.ome.zarr", "pyramid.ome.tif"])
def test_fixtures_of_others(name: str) -> None:
    """All of them are the same image, made by other programs."""
    path = Path(__file__).parents[2] / "fixtures" / "ome" / name
    bundle = raconvert.open_bundle(path)
    array, lower = bundle.arrays[0], bundle.more[0]
    expected = (np.arange(576) % 251).astype("u2").reshape(2, 3, 2, 8, 6)
    assert np.array_equal(np.asarray(array), expected)
    assert [axis.spacing for axis in array.meta.axes] == [1.5, None, 2.0, 0.5, 0.25]
    assert [axis.units for axis in array.meta.axes] == ["s", None, "um", "um", "um"]
    assert lower.shape == (2, 3, 2, 4, 3)
    assert lower.meta.axes[4].spacing == 0.5


def test_plates_come_back_as_plates(tmp_path: Path) -> None:
    arrays = {
        f"{well}/{field}": values_of("YX") + number
        for number, (well, field) in enumerate(itertools.product(("A/1", "H/12"), "01"))
    }
    first = tmp_path / "x.ome.zarr"
    bundle = raconvert.Bundle(
        [raconvert.Array(values, name=name) for name, values in arrays.items()]
    )
    bundle.formats = {"ome": {"plate": {"name": "p"}}}

    raconvert.write(first, bundle)
    raconvert.convert(first, tmp_path / "y.ome.tif")
    raconvert.convert(tmp_path / "y.ome.tif", tmp_path / "z.ome.zarr")

    plate = xml_of(tmp_path / "y.ome.tif")["Plate"]
    assert plate["Name"] == "p"
    assert [(one["Row"], one["Column"]) for one in plate["Well"]] == [(0, 0), (7, 11)]
    for path in (first, tmp_path / "y.ome.tif", tmp_path / "z.ome.zarr"):
        with raconvert.open_bundle(path) as found:
            assert found.names == [*arrays]
            assert found.formats["ome"]["plate"]["name"] == "p"
            for name, values in arrays.items():
                assert np.array_equal(np.asarray(found.get(name)), values)


def test_what_ome_has_no_word_for_comes_back_until_somebody_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    axes = [Axis("rows", spacing=2.0, units="um", direction=(0.6, 0.8)),
            Axis("columns", labels=list("abcde"), units="furlong")]  # fmt: skip
    meta = Metadata("a text\n<&>", units="K", axes=axes, space=Space("there", (1.0, 2.0)),
                    attributes={"by": "hand"})  # fmt: skip

    raconvert.write(path, values_of("YX"), meta=meta)

    assert only(path).meta.to_dict() == meta.to_dict()
    data = path.read_bytes()
    path.write_bytes(data.replace(b'PhysicalSizeY="2.0"', b'PhysicalSizeY="9.0"'))
    changed = only(path).meta
    assert changed.axes[0] == Axis("Y", kind="space", spacing=9.0, units="um")
    assert (changed.description, dict(changed.attributes)) == (meta.description, {"by": "hand"})


# Written by others --------------------------------------------------------------------------------


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("axes", AXES)
def test_every_order_of_axes_of_tifffile(axes: str, order: str, big: bool, tmp_path: Path) -> None:
    """All of T, C, Z, Y, X are there, in this order, also those of length 1."""
    path, values = tmp_path / "x.ome.tif", values_of(axes, "u1" if "S" in axes else "u2")
    said = {"axes": axes, "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "nm"}
    photometric = "rgb" if "S" in axes else "minisblack"
    tifffile.imwrite(path, values, ome=True, metadata=said, photometric=photometric, bigtiff=big,
                     byteorder=order)  # fmt: skip

    array = only(path)

    order_of = [axes.index(one) for one in "TCZYXS" if one in axes]
    shape = tuple(LENGTHS[one] if one in axes else 1 for one in "TCZYX") + (3,) * ("S" in axes)
    assert array.shape == shape
    assert np.array_equal(np.asarray(array), values.transpose(order_of).reshape(shape))
    assert array.meta.axes[4] == Axis("X", kind="space", spacing=0.5, units="nm")
    assert array.name == "x"
    squeezed = only(path, in_opts={"squeeze": "true"})
    expected = values.transpose(order_of)
    assert squeezed.shape == expected.shape
    assert "".join(axis.name for axis in squeezed.meta.axes) == "".join(axes[at] for at in order_of)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_regions_decode_what_they_touch(compression: str | None, tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("ZTCYX")
    tifffile.imwrite(path, values, ome=True, metadata={"axes": "ZTCYX"}, compression=compression,
                     photometric="minisblack")  # fmt: skip
    array, whole = only(path), values.transpose(1, 2, 0, 3, 4)
    for key in (
        (1, 2, 3), (slice(None), 1), (..., 2, slice(1, 4)), (0, slice(None, None, 2), -1),
        (slice(1, 1),), (1, 0, slice(1, 3), slice(None), 2), ..., (slice(None, None, -1),),
    ):  # fmt: skip
        assert np.array_equal(array[key], whole[key]), key


def test_pyramids_of_tifffile(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    values = np.random.default_rng(0).integers(0, 255, (2, 3, 64, 48), "u1")
    with tifffile.TiffWriter(path) as out:
        out.write(values, subifds=2, metadata={"axes": "CZYX", "PhysicalSizeX": 0.5,
                  "PhysicalSizeXUnit": "µm"}, photometric="minisblack", tile=(16, 16),
                  compression="zlib")  # fmt: skip
        out.write(values[..., ::2, ::2], subfiletype=1, photometric="minisblack")
        out.write(values[..., ::4, ::4], subfiletype=1, photometric="minisblack")

    bundle = raconvert.open_bundle(path)

    assert np.array_equal(np.asarray(bundle.arrays[0]), values[None])
    assert [array.name for array in bundle.more] == ["x.level1", "x.level2"]
    for array, factor in zip(bundle.more, (2, 4), strict=True):
        assert np.array_equal(np.asarray(array), values[None][..., ::factor, ::factor])
        assert array.meta.axes[4].spacing == 0.5 * factor


def test_images_of_several_files(tmp_path: Path) -> None:
    values = values_of("ZYX")
    names = ["a.ome.tif", "b.ome.tif"]
    blocks = "".join(
        f'<TiffData FirstZ="{2 * number}" IFD="0" PlaneCount="2"><UUID FileName="{name}">'
        f"urn:uuid:{number}</UUID></TiffData>"
        for number, name in enumerate(names)
    )
    text = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
        '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="5" SizeY="6" SizeZ="4" '
        f'SizeC="1" SizeT="1">{blocks}</Pixels></Image></OME>'
    )
    for number, name in enumerate(names):
        tifffile.imwrite(tmp_path / name, values[2 * number : 2 * number + 2], metadata=None,
                         description=text, photometric="minisblack")  # fmt: skip

    assert np.array_equal(np.asarray(only(tmp_path / "a.ome.tif"))[0, 0], values)
    assert np.array_equal(np.asarray(only(tmp_path / "b.ome.tif"))[0, 0], values)
    (tmp_path / "b.ome.tif").unlink()
    with pytest.raises(Exception, match=r"b\.ome\.tif"):
        only(tmp_path / "a.ome.tif")
    (tmp_path / "away").mkdir()
    outside = text.replace("b.ome.tif", "../b.ome.tif")
    tifffile.imwrite(tmp_path / "away" / "a.ome.tif", values[:2], metadata=None,
                     description=outside, photometric="minisblack")  # fmt: skip
    tifffile.imwrite(tmp_path / "b.ome.tif", values[:2], metadata=None)
    with pytest.raises(Unsafe):
        only(tmp_path / "away" / "a.ome.tif")


def test_planes_that_are_absent_are_zeros_and_said(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("ZYX")
    tifffile.imwrite(path, values, ome=True, metadata={"axes": "ZYX"}, photometric="minisblack")
    data = path.read_bytes().replace(b'PlaneCount="4"', b'PlaneCount="3"')
    path.write_bytes(data)

    bundle = raconvert.open_bundle(path)

    found = np.asarray(bundle.arrays[0])[0, 0]
    assert np.array_equal(found[:3], values[:3])
    assert not found[3].any()
    assert "1 of 4 planes of image 'x' are absent" in " ".join(bundle.notes)


def test_elements_that_are_left_out_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    raconvert.write(path, values_of("YX"))
    with tifffile.TiffFile(path) as file:
        text = file.ome_metadata or ""
    more = '<Instrument ID="I:0"><Objective ID="O:0"/></Instrument><Image'
    tifffile.imwrite(path, values_of("YX"), metadata=None,
                     description=text.replace("<Image", more, 1).encode())  # fmt: skip
    assert "OME-XML that is left out: Instrument" in raconvert.open_bundle(path).notes


def test_facts_of_single_planes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    planes = {"PositionX": [1.0, 2.0, 3.0, 4.0], "DeltaT": [0.0, 1.0, 2.0, 3.0]}
    said = {"axes": "ZYX", "Name": "a name", "SignificantBits": 12, "Plane": planes}
    tifffile.imwrite(path, values_of("ZYX"), ome=True, metadata=said)
    (note,) = (note for note in raconvert.open_bundle(path).notes if "left out" in note)
    for word in ("DeltaT of Plane", "PositionX of Plane", "SignificantBits of Pixels", "'a name'"):
        assert word in note


@pytest.mark.parametrize("color", ["FF0000", "00FF00", "0000FF", "12345678", "00000000"])
def test_colours_of_channels(color: str, tmp_path: Path) -> None:
    """OME-XML has a signed number, OME-Zarr the digits."""
    first, second = tmp_path / "a.ome.tif", tmp_path / "b.ome.zarr"
    meta = Metadata(axes=[Axis("C", kind="list"), Axis("Y", kind="space"), Axis("X", kind="space")])
    own = [{"color": color}, {"color": "FFFFFF"}, {"color": "FFFFFF"}]
    meta = meta.with_format("ome", axes=[{"channels": own}, {}, {}])

    raconvert.write(first, values_of("CYX"), meta=meta)
    raconvert.convert(first, second)

    number = int(xml_of(first)["Image"]["Pixels"]["Channel"][0]["Color"])
    assert f"{number & 0xFFFFFFFF:08X}" == color.ljust(8, "F")
    assert only(first).meta.formats["ome"]["axes"][0]["channels"] == own
    found = only(second).meta.formats["ome"]["axes"][0]["channels"]
    assert [one["color"] for one in found] == [one["color"] for one in own]


# The chain of a microscopist ----------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["TCZYX", "CZYX", "CYX", "ZYX", "YX", "TYX", "TCYX"])
def test_the_chain_of_a_microscopist_loses_nothing(axes: str, tmp_path: Path) -> None:
    """OME-TIFF to OME-Zarr to NRRD to OME-TIFF: sizes, order, channels and values."""
    names = ["a.ome.tif", "b.ome.zarr", "c.nrrd", "d.ome.tif"]
    paths = [tmp_path / name for name in names]
    meta = meta_of(axes).with_format(
        "ome",
        axes=[
            {"channels": [{"color": one} for one in ("FF0000", "00FF00", "0000FF")]}
            if one == "C"
            else {}
            for one in axes
        ],
    ) if "C" in axes else meta_of(axes)  # fmt: skip
    values = values_of(axes)
    raconvert.write(paths[0], values, meta=meta)
    for number, (source, target) in enumerate(itertools.pairwise(paths)):
        options = {"levels": "2"} if number == 0 else {}
        report = raconvert.convert(source, target, out_opts=options)
        assert not list(report.equivalent), (target, list(report.equivalent))

    first, last = (tifffile.TiffFile(path) for path in (paths[0], paths[-1]))
    with first, last:
        assert last.series[0].axes == first.series[0].axes == axes
        assert np.array_equal(last.series[0].asarray(), values)
        texts = [re.sub(r"<StructuredAnnotations>.*|Name=\"[ac]\"", "", file.ome_metadata or "")
                 for file in (first, last)]  # fmt: skip
    assert texts[0] == texts[1]
    assert only(paths[0]).meta.to_dict() == meta.to_dict()
    assert only(paths[-1]).meta.without_format("nrrd").to_dict() == meta.to_dict()


def test_the_chain_of_a_file_of_others(tmp_path: Path) -> None:
    values = values_of("TCZYX")
    paths = [tmp_path / name for name in ("a.ome.tif", "b.ome.zarr", "c.nrrd", "d.ome.tif")]
    said = {"axes": "TCZYX", "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.2,
            "PhysicalSizeYUnit": "µm", "PhysicalSizeZ": 2, "PhysicalSizeZUnit": "µm",
            "TimeIncrement": 1.5, "TimeIncrementUnit": "s",
            "Channel": {"Name": ["a", "b", "c"]}}  # fmt: skip
    tifffile.imwrite(paths[0], values, ome=True, metadata=said, compression="zlib")
    for source, target in itertools.pairwise(paths):
        raconvert.convert(source, target)
    with tifffile.TiffFile(paths[-1]) as file:
        assert file.series[0].axes == "TCZYX"
        assert np.array_equal(file.series[0].asarray(), values)
    pixels = xml_of(paths[-1])["Image"]["Pixels"]
    assert [pixels[f"PhysicalSize{one}"] for one in "XYZ"] == [0.1, 0.2, 2]
    assert [pixels[f"PhysicalSize{one}Unit"] for one in "XYZ"] == ["µm"] * 3
    assert (pixels["TimeIncrement"], pixels["TimeIncrementUnit"]) == (1.5, "s")
    assert [one["Name"] for one in pixels["Channel"]] == ["a", "b", "c"]


def test_other_tiff_files_by_this_name_are_read_as_such(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.tif", values_of("ZYX")
    tifffile.imwrite(path, values, photometric="minisblack", ome=False)
    assert np.array_equal(raconvert.read(path), values)
    with raconvert.open(path) as array:
        assert array.shape == values.shape
    with pytest.raises(Corrupt, match='from_="tiff"'):
        raconvert.open_bundle(path, from_="ometiff")


def test_ome_in_a_file_of_another_name_is_read_on_request(tmp_path: Path) -> None:
    path, values = tmp_path / "x.tif", values_of("ZYX")
    tifffile.imwrite(path, values, ome=True, metadata={"axes": "ZYX"}, photometric="minisblack")
    assert raconvert.read(path).shape == values.shape
    assert only(path, from_="ometiff").shape == (1, 1, 4, 6, 5)


def test_images_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    """Also if another image has the name that a number would make."""
    image = (
        '<Image ID="Image:{0}" Name="{1}"><Pixels ID="Pixels:{0}" DimensionOrder="XYZCT" '
        'Type="uint8" SizeX="3" SizeY="2" SizeZ="1" SizeC="1" SizeT="1">'
        '<TiffData IFD="{0}" PlaneCount="1"/></Pixels></Image>'
    )
    names = ["a", "a", "a (2)", "a"]
    images = "".join(image.format(number, name) for number, name in enumerate(names))
    text = f'<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">{images}</OME>'
    tifffile.imwrite(tmp_path / "x.ome.tif", np.zeros((4, 2, 3), np.uint8), metadata=None,
                     description=text, photometric="minisblack")  # fmt: skip
    with raconvert.open_bundle(tmp_path / "x.ome.tif") as bundle:
        assert bundle.names == ["a", "a (2)", "a (2) (2)", "a (3)"]
