"""TIFF: the axes of ImageJ and OME, and compressions that libtiff decodes."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from cases import every

import raconvert
from raconvert import convert
from raconvert.arrays.metadata import Axis, Metadata, Space
from raconvert.errors import TooLarge, Unsupported
from raconvert.files.source import Source

Y, X = np.indices((45, 50))
GREY = ((3 * Y + 5 * X) % 256).astype("u1")
RGB = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


def axes_of(path: Path) -> list[dict[str, Any]]:
    """Return what is known of the axes, slowest first, as an ndarray has them."""
    with raconvert.open(path) as array:
        return [axis.to_dict() for axis in reversed(array.ra_axes)]


def notes_of(path: Path) -> list[str]:
    with raconvert.open(path) as array:
        return array.owner.notes


def pages(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="u2").reshape(shape)


# Axes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (3, 5, 6), (2, 1, 4, 5, 6), (2, 3, 1, 5, 6, 3)])
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_imagej_hyperstacks(
    shape: tuple[int, ...], compression: str | None, tmp_path: Path
) -> None:
    values = pages(*shape) if len(shape) < 6 else pages(*shape).astype("u1")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, values, imagej=True, compression=compression)

    got = raconvert.read(path)

    assert got.shape == np.squeeze(values).shape == tifffile.imread(path).shape
    assert np.array_equal(got, np.squeeze(values))


def test_axes_of_imagej(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    tifffile.imwrite(
        path,
        pages(2, 3, 4, 5, 6),
        imagej=True,
        resolution=(4, 2),
        metadata={"axes": "TZCYX", "spacing": 2.5, "unit": "um", "finterval": 0.5},
    )

    assert axes_of(path) == [
        {"name": "T", "units": "s", "spacing": 0.5},
        {"name": "Z", "units": "um", "spacing": 2.5},
        {"name": "C"},
        {"name": "Y", "units": "um", "spacing": 0.5},
        {"name": "X", "units": "um", "spacing": 0.25},
    ]


@pytest.mark.parametrize("axes", ["TZCYX", "CZTYX", "ZCTYX"])
def test_axes_of_ome(axes: str, tmp_path: Path) -> None:
    values = pages(2, 3, 4, 5, 6)
    path = tmp_path / "x.tif"
    sizes = {"PhysicalSizeX": 0.3, "PhysicalSizeZ": 2.0, "PhysicalSizeZUnit": "nm"}
    tifffile.imwrite(path, values, ome=True, metadata={"axes": axes, **sizes})

    got = raconvert.read(path)

    assert np.array_equal(got, values)
    found = {axis["name"]: axis for axis in axes_of(path)}
    assert "".join(found) == axes
    assert found["X"] == {"name": "X", "units": "um", "spacing": 0.3}
    assert found["Z"] == {"name": "Z", "units": "nm", "spacing": 2.0}


@pytest.mark.parametrize("sizes", [{"Z": 2}, {"Z": 3, "X": 1}, {"Y": 4, "X": 4}])
@pytest.mark.parametrize("unit", ["", "nm", "µm", "&#181;m", "&#xB5;m"])
def test_whole_numbers_as_sizes_of_ome(sizes: dict[str, int], unit: str, tmp_path: Path) -> None:
    """PhysicalSizeZ="2" is no number of planes; units may be written as entities."""
    path = tmp_path / "x.tif"
    fields: dict[str, Any] = {f"PhysicalSize{name}": size for name, size in sizes.items()}
    if unit:
        fields |= {f"PhysicalSize{name}Unit": "nm" for name in sizes}
    tifffile.imwrite(path, pages(4, 5, 6), ome=True, metadata={"axes": "ZYX", **fields})
    if unit not in ("", "nm"):
        with tifffile.TiffFile(path) as opened:
            text = opened.ome_metadata or ""
        text = text.replace('"nm"', f'"{unit}"')
        options = {"description": text.encode(), "metadata": None, "photometric": "minisblack"}
        tifffile.imwrite(path, pages(4, 5, 6), **options)
    found = {axis["name"]: axis for axis in axes_of(path)}
    assert "".join(found) == "ZYX"
    assert {name: axis["spacing"] for name, axis in found.items() if "spacing" in axis} == sizes
    assert {axis["units"] for axis in found.values() if "units" in axis} == {
        "nm" if unit == "nm" else "um"
    }
    convert(path, tmp_path / "y.tif")
    with tifffile.TiffFile(path) as first, tifffile.TiffFile(tmp_path / "y.tif") as last:
        assert last.series[0].axes == "ZYX"
        assert last.ome_metadata == first.ome_metadata


def test_labels_of_imagej_are_named_as_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    labels = {"axes": "ZYX", "Labels": ["a", "b", "c"]}
    tifffile.imwrite(path, pages(3, 5, 6), imagej=True, metadata=labels)
    assert notes_of(path) == ["tags that are left out: 50838, 50839"]


def test_samples_are_channels_of_ome(tmp_path: Path) -> None:
    values = pages(2, 5, 6, 3).astype("u1")
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, values, ome=True, photometric="rgb", metadata={"axes": "ZYXS"})

    assert np.array_equal(raconvert.read(path), values)
    assert [axis["name"] for axis in axes_of(path)] == ["Z", "Y", "X", "S"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('DimensionOrder="XYCZT"', 'DimensionOrder="XYQZT"'),
        ('SizeT="2"', 'SizeT="3"'),
        ('<TiffData IFD="0" PlaneCount="24"/>', '<TiffData IFD="0" FirstC="1" PlaneCount="24"/>'),
        ('<TiffData IFD="0" PlaneCount="24"/>', '<TiffData IFD="5" PlaneCount="24"/>'),
        ("<OME ", '<!DOCTYPE OME [<!ENTITY a "b">]><OME '),
        ("</OME>", "</OM>"),
    ],
)
def test_ome_that_says_something_else_gives_plain_pages(old: str, new: str, tmp_path: Path) -> None:
    values = pages(2, 3, 4, 5, 6)
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, values, ome=True, metadata={"axes": "TZCYX"})
    with tifffile.TiffFile(path) as opened:
        text = opened.ome_metadata
    assert text is not None
    assert old in text
    tifffile.imwrite(
        path, values, description=text.replace(old, new), metadata=None, photometric="minisblack"
    )

    assert np.array_equal(raconvert.read(path), values.reshape(24, 5, 6))
    assert axes_of(path) == []


SIZES = 'DimensionOrder="XYZCT" SizeX="6" SizeY="5" SizeZ="2" SizeC="1" SizeT="1" Type="uint16"'
PIXELS = f"<OME><Image><Pixels {SIZES}>{{}}</Pixels></Image>{{}}</OME>"
PLANES = '<TiffData IFD="0"/><TiffData IFD="1" FirstZ="1"/>'


@pytest.mark.parametrize(
    ("inside", "behind"),
    [
        pytest.param("<TiffData/>" * 400_000, "", id="more TiffData than pages"),
        pytest.param(PLANES, "<a>" * (1 << 20) + "</a>" * (1 << 20), id="deep"),
        pytest.param(PLANES, '<a b="' + "c" * (8 << 20) + '"/>', id="long tag"),
        pytest.param(PLANES, " " * (16 << 20), id="long text"),
    ],
)
def test_ome_of_more_than_its_pages_need_is_not_parsed(
    inside: str, behind: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.tif"
    text = PIXELS.format(inside, behind)
    options: Any = {"photometric": "minisblack", "metadata": None}
    tifffile.imwrite(path, pages(2, 5, 6), description=text, **options)

    _, peak = measured(lambda: raconvert.read(path))

    assert axes_of(path) == []
    # The bytes of the tag, the text that tifffile makes of them, and one copy on the way.
    assert peak < 3.1 * len(text) + (1 << 18)


def measured(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a call returns, and the most bytes that Python had for it."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sizes", ["999999999 1 1", "2 999999999 1", "1 1 1", "2 1 2"])
def test_sizes_of_ome_that_the_pages_do_not_have_give_plain_pages(
    sizes: str, tmp_path: Path
) -> None:
    """Tifffile would make a list of them."""
    z, c, t = sizes.split()
    text = PIXELS.replace('SizeZ="2" SizeC="1" SizeT="1"', f'SizeZ="{z}" SizeC="{c}" SizeT="{t}"')
    path = tmp_path / "x.tif"
    options: Any = {"photometric": "minisblack", "metadata": None}
    tifffile.imwrite(path, pages(2, 5, 6), description=text.format("<TiffData/>", ""), **options)

    got, peak = measured(lambda: raconvert.read(path))

    assert np.array_equal(got, pages(2, 5, 6))
    assert axes_of(path) == []
    assert peak < 4 << 20


@pytest.mark.parametrize("kind", ["imagej", "ome"])
def test_axes_come_back_from_our_own_file(kind: str, tmp_path: Path) -> None:
    path, again = tmp_path / "x.tif", tmp_path / "again.tif"
    tifffile.imwrite(path, pages(2, 3, 4, 5, 6), metadata={"axes": "TZCYX"}, **{kind: True})

    report = convert(path, again)

    assert not list(report.equivalent)
    assert np.array_equal(raconvert.read(again), pages(2, 3, 4, 5, 6))
    assert axes_of(again) == axes_of(path)
    assert tifffile.imread(again).shape == (2, 3, 4, 5, 6)


@pytest.mark.parametrize("kind", ["imagej", "ome"])
@pytest.mark.parametrize("way", [".tif", ".ra"])
def test_other_readers_find_the_axes_in_our_file(kind: str, way: str, tmp_path: Path) -> None:
    """Tifffile reads the same axes, spacings and units from the copy, also by way of RA."""
    path, middle, again = tmp_path / "x.tif", tmp_path / f"y{way}", tmp_path / "again.tif"
    sizes: dict[str, Any] = {"spacing": 2.5, "unit": "um", "finterval": 0.5}
    if kind == "ome":
        sizes = {"PhysicalSizeX": 0.25, "PhysicalSizeZ": 2.5, "PhysicalSizeZUnit": "nm"}
    tifffile.imwrite(
        path, pages(2, 3, 4, 5, 6), resolution=(4, 2), metadata={"axes": "TZCYX", **sizes},
        **{kind: True},
    )  # fmt: skip
    convert(path, middle)
    report = convert(middle, again)

    assert not list(report.equivalent)
    with tifffile.TiffFile(path) as first, tifffile.TiffFile(again) as last:
        assert last.series[0].axes == first.series[0].axes == "TZCYX"
        assert last.series[0].shape == first.series[0].shape
        assert last.imagej_metadata == first.imagej_metadata
        assert last.ome_metadata == first.ome_metadata
        for tag in (282, 283, 296):
            assert last.pages[0].tags[tag].value == first.pages[0].tags[tag].value


def test_a_text_of_imagej_that_speaks_of_other_images_is_not_written_as_such(
    tmp_path: Path,
) -> None:
    """Half of a hyperstack: ImageJ would look for the other half."""
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, pages(4, 5, 6), imagej=True, metadata={"axes": "ZYX"})
    with raconvert.open(path) as array:
        meta = array.meta
        report = raconvert.write(tmp_path / "half.tif", array[:2], meta=meta)

    assert not list(report.equivalent)
    with tifffile.TiffFile(tmp_path / "half.tif") as opened:
        assert not opened.is_imagej
        assert opened.series[0].axes == "ZYX"
        assert opened.asarray().shape == (2, 5, 6)


def spatial(row: int, spacing: float) -> Axis:
    return Axis(spacing=spacing, units="mm", direction=np.eye(3)[row].tolist())


PLANE = [spatial(1, 1.5), spatial(0, 0.7)]
TIME = Axis(spacing=2.5, units="s", origin=3.0)
COLORS = Axis(kind="RGB-color")
KNOWN = [  # shape, type, axes, letters as tifffile sees them, what OME has no word for
    ((3, 4, 5), "u2", [spatial(2, 2.0), *PLANE], "ZYX", ["every axis (direction)"]),
    ((2, 3, 4, 5), "f4", [TIME, spatial(2, 2.0), *PLANE], "TZYX", ["axis 0 (origin)"]),
    ((2, 3, 4, 5), "i2", [Axis(), spatial(2, 2.0), *PLANE], "TZYX", ["unknown: written as T"]),
    ((2, 1, 4, 5), "?", [Axis("C", labels="ab"), spatial(2, 2.0), *PLANE], "CYX", ["(labels)"]),
    ((1, 1, 4, 3), "c8", [TIME, spatial(2, 2.0), *PLANE], "YX", ["axis 0 (origin)"]),
    ((6, 4, 5, 3), "u1", [spatial(2, 2.0), *PLANE, COLORS], "ZYXS", ["axis 3 (kind)"]),
    ((6, 4, 3), "u1", [spatial(2, 2.0), *PLANE], "ZYX", ["every axis (direction)"]),
    ((4, 5), "f8", [Axis("lat", spacing=2.0), Axis("X", spacing=1)], "YX", ["axis 0 'lat' (name)"]),
]


@pytest.mark.parametrize(("shape", "dtype", "axes", "letters", "lost"), KNOWN)
def test_sizes_are_written_as_ome(
    shape: tuple[int, ...],
    dtype: str,
    axes: list[Axis],
    letters: str,
    lost: list[str],
    tmp_path: Path,
) -> None:
    """Tifffile reads shape, sizes and units; what OME cannot say is named, field by field."""
    values = (pages(*shape) % 2).astype(dtype) if dtype == "?" else pages(*shape).astype(dtype)
    text = 'a <b> & "c"\r\n\u00b5'
    meta = Metadata(text, axes=axes, space=Space("RAS", (1.0, 2.0, 3.0)))
    report = raconvert.write(tmp_path / "x.tif", values, meta=meta)

    (fit,) = map(str, report.equivalent)
    assert all(word in fit for word in [*lost, "space (origin)", "space (frame)"])
    with tifffile.TiffFile(tmp_path / "x.tif") as opened:
        (series,) = opened.series
        assert (series.kind, series.axes) == ("ome", letters)
        assert np.array_equal(series.asarray(), values.squeeze())
        ome = tifffile.xml2dict(opened.ome_metadata or "")["OME"]["Image"]
    assert ome["Description"] == text
    for letter, axis in zip("XYZ", axes[::-1][COLORS in axes :], strict=False):
        assert ome["Pixels"][f"PhysicalSize{letter}"] == axis.spacing
        assert ome["Pixels"][f"PhysicalSize{letter}Unit"] == (axis.units or "reference frame")
    assert ome["Pixels"].get("TimeIncrement") == (2.5 if TIME in axes else None)
    with raconvert.open(tmp_path / "x.tif") as back:
        assert np.array_equal(np.asarray(back), values)
        assert back.meta.description == text
        assert [axis.spacing for axis in back.axes] == [axis.spacing for axis in axes]
        assert [axis.units for axis in back.axes] == [axis.units for axis in axes]
        assert not raconvert.write(tmp_path / "y.tif", back).equivalent
    assert (tmp_path / "y.tif").read_bytes() == (tmp_path / "x.tif").read_bytes()
    convert(tmp_path / "x.tif", tmp_path / "part.tif", slice="..., ::2, 1:")
    with tifffile.TiffFile(tmp_path / "part.tif") as opened:
        assert opened.series[0].kind == "ome"
    with raconvert.open(tmp_path / "x.tif") as whole, raconvert.open(tmp_path / "part.tif") as part:
        wanted = whole.slicer[..., ::2, 1:].axes
        assert [axis.spacing for axis in part.axes] == [axis.spacing for axis in wanted]


@pytest.mark.parametrize(
    ("dtype", "axes", "reason"),
    [
        ("i8", [spatial(2, 2.0), *PLANE], "OME does not have its type"),
        ("u1", [spatial(2, 2.0), spatial(1, 1.0), TIME], "last two axes"),
        ("u1", [spatial(2, 2.0), Axis("C"), spatial(1, 1.0)], "axes can move them"),
    ],
)
def test_axes_that_ome_cannot_say_are_named_with_the_reason(
    dtype: str, axes: list[Axis], reason: str, tmp_path: Path
) -> None:
    meta = Metadata(axes=axes)
    report = raconvert.write(tmp_path / "x.tif", pages(3, 4, 5).astype(dtype), meta=meta)
    assert reason in str(list(report.equivalent))
    with tifffile.TiffFile(tmp_path / "x.tif") as opened:
        assert not opened.is_ome


def test_ome_of_ours_that_was_edited(tmp_path: Path) -> None:
    """Another size is believed; what does not fit is a text as any other."""
    meta = Metadata(axes=[spatial(2, 2.0), *PLANE])
    raconvert.write(tmp_path / "x.tif", pages(1, 4, 5), meta=meta)
    whole = (tmp_path / "x.tif").read_bytes()
    (tmp_path / "x.tif").write_bytes(whole.replace(b'"2.0"', b'"3.5"'))
    with raconvert.open(tmp_path / "x.tif") as array:
        assert [axis.spacing for axis in array.axes] == [3.5, 1.5, 0.7]
    for old, new in ((b'SizeX="5"', b'SizeX="4"'), (b">ZYX<", b">QYX<"), (b'"Image:0"', b'"a"')):
        assert old in whole
        (tmp_path / "y.tif").write_bytes(whole.replace(old, new.ljust(len(old))))
        with raconvert.open(tmp_path / "y.tif") as array:
            assert array.shape == (4, 5)
            assert (array.meta.description or "").startswith("<?xml")


def test_axes_that_nothing_tells_are_named_as_lost(tmp_path: Path) -> None:
    meta = Metadata(axes=[Axis(name="wavelength"), Axis()][::-1])
    report = raconvert.write(tmp_path / "x.tif", GREY, meta=meta)

    (fit,) = map(str, report.equivalent)
    assert "axis 1 'wavelength' (name)" in fit


PLANES = [{"name": "S", "kind": "RGB-color"}, {"name": "Y"}, {"name": "X"}]


def test_planes_of_samples_come_first_with_or_without_a_description(tmp_path: Path) -> None:
    """Where tifffile has them, and the axes say so."""
    path = tmp_path / "x.tif"
    values = np.moveaxis(RGB, -1, 0)
    tifffile.imwrite(path, values, photometric="rgb", planarconfig="separate")

    assert np.array_equal(raconvert.read(path), values)
    assert notes_of(path) == []
    assert axes_of(path) == PLANES
    tifffile.imwrite(path, values, photometric="rgb", planarconfig="separate", metadata=None)
    assert np.array_equal(raconvert.read(path), values)
    assert axes_of(path) == PLANES


def test_images_below_others_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    with tifffile.TiffWriter(path) as out:
        out.write(GREY, subifds=2, metadata=None)
        out.write(GREY[::2, ::2], subfiletype=1, metadata=None)
        out.write(GREY[::4, ::4], subfiletype=1, metadata=None)

    assert np.array_equal(raconvert.read(path), GREY)
    (note,) = notes_of(path)
    assert note.startswith("2 images below others (SubIFDs) are left out, ")
    assert note.endswith(" takes them: x.sub0, x.sub1")
    for number, step in enumerate((2, 4)):
        assert np.array_equal(raconvert.read(path, f"x.sub{number}"), GREY[::step, ::step])


def test_regions_of_pages_on_several_axes(tmp_path: Path) -> None:
    values = pages(2, 3, 4, 5, 6)
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, values, imagej=True, compression="zlib")

    with raconvert.open(path) as array:
        for key in (
            1, (1, 2), (1, 2, 3), (slice(None), 1), (slice(None, None, -1), slice(1, 3), 2),
            (0, slice(2, 2)), (..., 2), (1, ..., slice(1, 3), 0), (1, 2, 3, 4, 5),
        ):  # fmt: skip
            assert np.array_equal(array[key], values[key]), key


@pytest.mark.parametrize("shape", [(6, 5, 4), (2, 3, 5, 4), (1, 6, 5, 4)])
def test_of_one_index_only_its_own_pages_are_decoded(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, read = pages(*shape), list[int]()
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, values, photometric="minisblack", compression="zlib")
    plain = Source.read_exact

    def read_exact(source: Source, offset: int, nbytes: int, what: str) -> bytes:
        read.extend([1] * (what == "the pixels"))
        return plain(source, offset, nbytes, what)

    monkeypatch.setattr(Source, "read_exact", read_exact)

    with raconvert.open(path) as array:
        for key in (0, -1, shape[0] - 1, (0, ..., slice(1, 3)), (0, 0)):
            read.clear()
            assert np.array_equal(array[key], values[key]), key
            assert 0 < len(read) <= 6 // shape[0]
        for key in (shape[0], -shape[0] - 1):
            with pytest.raises(IndexError):
                array[key]


def test_texts_that_are_not_ascii_come_back(tmp_path: Path) -> None:
    meta = Metadata(description="ü µm", formats={"image": {"software": "é 1.0"}})
    raconvert.write(tmp_path / "x.tif", GREY, meta=meta)

    with raconvert.open(tmp_path / "x.tif") as array:
        assert array.meta.to_dict() == meta.to_dict()
    with tifffile.TiffFile(tmp_path / "x.tif") as opened:
        assert opened.pages[0].tags[305].value == "é 1.0"


@pytest.mark.parametrize(
    "said",
    [
        '{"shape": [1, 17, 23]}', '{"shape": [17, 1, 23, 1]}', '{"shape": [17, 23], "axes": "AB"}',
        '{"shape": [391]}', '{"shape": [17, -23]}', '{"shape": [17, 23.0]}', '{"shape": "no"}',
        '{"shape": [17, 23], "axes": 5}', '{"shape": []}', '{"shape": [' + "1," * 70 + "391]}",
        '{"shape": [' + "9" * 4000 + "]}", '{"shape": [17', '{"shape": {"a": 1}}', '{"shape": 7}',
        '{"shape": [true, 17, 23]}',
    ],
)  # fmt: skip
def test_notes_of_a_shape(said: str, tmp_path: Path) -> None:
    """The shape where it fits the pages, else that of the pages; never other values."""
    path = tmp_path / "x.tif"
    values = pages(17, 23)
    tifffile.imwrite(path, values, description=said, metadata=None, photometric="minisblack")
    wanted = {0: (1, 17, 23), 1: (17, 1, 23, 1)}
    number = ['{"shape": [1, 17, 23]}', '{"shape": [17, 1, 23, 1]}']
    try:
        got = raconvert.read(path)
    except Unsupported as error:
        assert "announces" in str(error)  # noqa: PT017 - some are read
        return

    assert got.shape == (wanted[number.index(said)] if said in number else (17, 23))
    assert np.array_equal(got.reshape(values.shape), values)
    if "AB" in said:
        assert [axis["name"] for axis in axes_of(path)] == ["A", "B"]


def test_many_pages_of_the_same_bytes_need_permission(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    tifffile.imwrite(path, np.zeros((2000, 2000), "u1"), compression="zlib", metadata=None)
    contents = bytearray(path.read_bytes())
    start = int.from_bytes(contents[4:8], "little")
    nbytes = 2 + 12 * int.from_bytes(contents[start : start + 2], "little")
    directory = bytes(contents[start : start + nbytes])
    contents[start + nbytes : start + nbytes + 4] = len(contents).to_bytes(4, "little")
    for number in range(300):
        following = len(contents) + nbytes + 4 if number < 299 else 0
        contents += directory + following.to_bytes(4, "little")
    path.write_bytes(contents)

    with pytest.raises(TooLarge, match="all its images together needs 1204000000 bytes"):
        convert(path, tmp_path / "x.ra", max_memory=1 << 30)


# Samples in planes of their own ------------------------------------------------------------------

SHAPES = ((2, 2), (3, 4), (3, 3, 3), (3, 4, 5), (4, 5, 3), (3, 3, 5), (2, 3, 2), (2, 2, 2), (1, 3, 3),
          (3, 1, 1), (3, 1, 3), (3, 3, 1), (2, 3, 3, 3), (2, 3, 4, 5), (2, 4, 5, 3), (3, 3, 3, 3),
          (4, 2, 2, 2), (2, 2, 3, 3, 3), (1, 2, 1, 2, 1, 2))  # fmt: skip
LAYOUTS = {
    "strips": {},
    "rows": {"rowsperstrip": 1},
    "tiles": {"tile": (16, 16)},
    "deflate": {"compression": "zlib"},
}
DESCRIBED = {"shape": {}, "none": {"metadata": None}, "ome": {"ome": True}}


@every("layout", LAYOUTS)
@every("planar", ["contig", "separate"])
@every("described", DESCRIBED)
def test_samples_are_those_of_tifffile(
    described: str, planar: str, layout: str, tmp_path: Path
) -> None:
    """2-D, 3-D and several pages, of C and Fortran order in memory; tifffile is the judge."""
    path, seen = tmp_path / "x.tif", 0
    for shape, photometric, order, dtype in product(
        SHAPES, ("rgb", "minisblack"), "CF", ("u1", ">i2")
    ):
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype, order=order)
        words = {**LAYOUTS[layout], **DESCRIBED[described], "planarconfig": planar}
        try:
            tifffile.imwrite(path, values, photometric=photometric, byteorder=">", **words)
        except (ValueError, tifffile.TiffFileError, tifffile.OmeXmlError):
            continue  # no such file
        with tifffile.TiffFile(path) as file:
            expected, pages = file.asarray(), len(file.pages)
            axes = file.series[0].axes
        found = raconvert.read(path)
        if described == "ome" and expected.shape != found.shape:
            expected = expected.reshape(found.shape)  # axes of length 1 are those of the pages
        assert found.shape == expected.shape, (shape, photometric, axes, pages)
        assert np.array_equal(found, expected), (shape, photometric, axes)
        with raconvert.open(path) as array:
            assert np.array_equal(array[-1], expected[-1]), (shape, photometric)
            assert np.array_equal(array[..., 0], expected[..., 0]), (shape, photometric)
        seen += 1
    assert seen > 40


def test_samples_that_another_program_took_apart(tmp_path: Path, tool: Callable[..., str]) -> None:
    """Libtiff copies a description that tells the order from before."""
    for shape in [(2, 2, 4, 5, 3), (2, 2, 3, 3, 3), (2, 2, 3, 4, 3)]:
        values = np.arange(np.prod(shape), dtype="u1").reshape(shape)
        raconvert.write(tmp_path / "x.tif", values, overwrite=True)
        command = [tool("tiffcp"), "-p", "separate", tmp_path / "x.tif", tmp_path / "y.tif"]
        subprocess.run(command, check=True)
        if shape[-3] == shape[-2] == shape[-1]:
            with pytest.raises(Unsupported, match="before or after rows and columns"):
                raconvert.read(tmp_path / "y.tif")
            back = [tool("tiffcp"), "-p", "contig", tmp_path / "y.tif", tmp_path / "z.tif"]
            subprocess.run(back, check=True)
            assert np.array_equal(raconvert.read(tmp_path / "z.tif"), values)
        else:
            assert np.array_equal(raconvert.read(tmp_path / "y.tif"), values)


@pytest.mark.parametrize("between", ["ra", "zip", "h5", "nrrd", "zarr", "npz", "npy", "tif"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 1), (5, 1), (2, 1, 3), (1, 1, 1, 1)])
def test_every_shape_comes_back_through_other_formats(
    shape: tuple[int, ...], between: str, tmp_path: Path
) -> None:
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    raconvert.write(tmp_path / "a.tif", values)
    raconvert.convert(tmp_path / "a.tif", tmp_path / f"b.{between}")
    raconvert.convert(tmp_path / f"b.{between}", tmp_path / "c.tif")

    assert raconvert.read(tmp_path / "c.tif").shape == shape
    assert tifffile.imread(tmp_path / "c.tif").size == values.size
