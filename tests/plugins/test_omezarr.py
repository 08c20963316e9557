"""OME-Zarr: ome-zarr-py, its models' validator and zarr-python judge what is read and written."""

from __future__ import annotations

import itertools
import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import raconvert
from raconvert import Axis, Metadata, Space
from raconvert.cli import main
from raconvert.errors import RaconvertError, UsageError, WouldLose

ome_zarr_io = pytest.importorskip("ome_zarr.io")
ome_zarr_reader = pytest.importorskip("ome_zarr.reader")
ome_zarr_writer = pytest.importorskip("ome_zarr.writer")
models = pytest.importorskip("ome_zarr_models")
from ome_zarr.format import FormatV04, FormatV05  # noqa: E402 - after the skip

pytestmark = pytest.mark.filterwarnings("ignore")
LENGTHS = {"t": 2, "c": 3, "z": 4, "y": 6, "x": 5}
AXES = [
    "".join(outer) + "yx"
    for count in range(4)
    for outer in itertools.combinations("tcz", count)
]  # fmt: skip
VERSIONS = {"0.4": FormatV04(), "0.5": FormatV05()}
NUMBERS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SPACE_UNITS = {"micrometer": "um", "nanometer": "nm", "angstrom": "angstrom", "inch": "in",
               "parsec": "pc", "meter": "m", "millimeter": "mm", "picometer": "pm"}  # fmt: skip
TIME_UNITS = {"second": "s", "millisecond": "ms", "minute": "min", "hour": "h", "day": "d",
              "microsecond": "us", "attosecond": "as"}  # fmt: skip


def values_of(axes: str, dtype: str = "u2") -> np.ndarray:
    shape = tuple(LENGTHS[one] for one in axes)
    flat = np.arange(np.prod(shape)) % 251
    return (flat % 2 if dtype == "?" else flat).astype(dtype).reshape(shape)


def meta_of(axes: str, *, origin: bool = True) -> Metadata:
    """Metadata as OME-Zarr has it, everything known."""
    world = [one for one in "xyz" if one in axes]
    said = {
        "t": Axis("t", kind="time", units="s", spacing=0.5),
        "c": Axis("c", kind="list", labels=["DAPI", "GFP", "RFP"]),
    }
    for number, one in enumerate("zyx"):
        direction = tuple(float(one == other) for other in world) if origin else None
        said[one] = Axis(one, kind="space", units="um", spacing=0.25 * (number + 1),
                         direction=direction)  # fmt: skip
    places = {"x": 3.0, "y": -2.0, "z": 10.0}
    space = Space(None, tuple(places[one] for one in world)) if origin else None
    return Metadata(axes=[said[one] for one in axes], space=space)


def validated(path: Path) -> Any:
    """The image as the validator has it."""
    return models.open_ome_zarr(zarr.open_group(path, mode="r"))


def nodes(path: Path) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(ome_zarr_reader.Reader(ome_zarr_io.parse_url(str(path)))())


def only(spec: Path | str) -> Any:
    bundle = raconvert.open_bundle(spec)
    assert len(bundle.arrays) == 1
    return bundle.arrays[0]


# Written by us ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("axes", AXES)
def test_every_set_of_axes_is_what_others_read(axes: str, version: str, tmp_path: Path) -> None:
    path, values, meta = tmp_path / "x.ome.zarr", values_of(axes), meta_of(axes)

    report = raconvert.write(path, values, meta=meta, out_opts={"version": version})

    assert not list(report.equivalent)
    image = validated(path)
    own = (image.ome_attributes if version == "0.5" else image.attributes).multiscales[0]
    assert [axis.name for axis in own.axes] == [*axes]
    found = nodes(path)[0]
    assert np.array_equal(np.asarray(found.data[0]), values)
    (said,) = found.metadata["coordinateTransformations"]
    scale, translation = said[0]["scale"], said[1]["translation"]
    places = {"x": 3.0, "y": -2.0, "z": 10.0}
    steps = {"z": 0.25, "y": 0.5, "x": 0.75, "t": 0.5, "c": 1.0}
    assert scale == [steps[one] for one in axes]
    assert translation == [places.get(one, 0.0) for one in axes]
    if "c" in axes:
        assert found.metadata["channel_names"] == ["DAPI", "GFP", "RFP"]
    array = only(path)
    assert np.array_equal(np.asarray(array), values)
    assert array.name == "x"
    assert array.meta.axes == meta.axes
    assert array.meta.space == meta.space


NAPARI = """
import json, sys
import numpy as np
from napari_ome_zarr import napari_get_reader

((levels, shown, kind),) = napari_get_reader(sys.argv[1])(sys.argv[1])
print(json.dumps({
    "kind": kind, "values": np.asarray(levels[0]).tolist(),
    "levels": [level.shape for level in levels], "channel": shown["channel_axis"],
    "axes": list(shown["axis_labels"]), "name": list(shown["name"]), "scale": list(shown["scale"]),
}))
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_napari_shows_it(version: str, tmp_path: Path, napari_python: str) -> None:
    """The function of its reader, without a window: levels, channels, and the size of a voxel.

    Version 0.10 looks at the first transformation alone, and so at no translation.
    """
    path, values = str(tmp_path / "x.ome.zarr"), values_of("tczyx")
    options = {"version": version, "levels": "2"}
    raconvert.write(path, values, meta=meta_of("tczyx"), out_opts=options)

    command = [napari_python, "-c", NAPARI, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    shown = json.loads(done.stdout.splitlines()[-1])

    assert shown["kind"] == "image"
    assert np.array_equal(shown["values"], values)
    assert shown["levels"] == [[2, 3, 4, 6, 5], [2, 3, 4, 3, 3]]
    assert shown["channel"] == 1
    assert shown["axes"] == [*"tzyx"]
    assert shown["name"] == ["x: DAPI", "x: GFP", "x: RFP"]
    assert shown["scale"] == [0.5, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_type_comes_back(dtype: str, version: str, tmp_path: Path) -> None:
    path, values = tmp_path / "x.ome.zarr", values_of("zyx", dtype)

    raconvert.write(path, values, out_opts={"version": version, "levels": "2"}, verify=True)

    array = only(path)
    assert np.array_equal(np.asarray(array), values)
    assert array.dtype == values.dtype
    group = zarr.open_group(path, mode="r")
    assert np.array_equal(group["0"][...], values)
    assert group["1"].dtype == values.dtype


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("word", "unit"), [*SPACE_UNITS.items(), ("furlong", "furlong")])
def test_units_of_space(word: str, unit: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    axes = [Axis(one, kind="space", units=unit, spacing=2.0) for one in "yx"]

    raconvert.write(path, values_of("yx"), meta=Metadata(axes=axes), out_opts={"version": version})

    said = nodes(path)[0].metadata["axes"]
    assert [axis["unit"] for axis in said] == [word, word]
    assert list(only(path).meta.axes) == axes


@pytest.mark.parametrize(("word", "unit"), TIME_UNITS.items())
def test_units_of_time(word: str, unit: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    axes = [Axis("t", kind="time", units=unit, spacing=2.0), Axis("y", kind="space"),
            Axis("x", kind="space")]  # fmt: skip

    raconvert.write(path, values_of("tyx"), meta=Metadata(axes=axes))

    assert nodes(path)[0].metadata["axes"][0] == {"name": "t", "type": "time", "unit": word}
    assert list(only(path).meta.axes) == axes


@pytest.mark.parametrize("version", VERSIONS)
def test_levels_are_means_of_blocks(version: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    values = np.random.default_rng(1).integers(0, 65535, (2, 7, 9), "u2", endpoint=True)
    meta = meta_of("zyx")

    raconvert.write(path, values, meta=meta, out_opts={"version": version, "levels": "3"})

    data = [np.asarray(one) for one in nodes(path)[0].data]
    assert [one.shape for one in data] == [(2, 7, 9), (2, 4, 5), (2, 2, 3)]
    for above, below in itertools.pairwise(data):
        for z, y, x in np.ndindex(below.shape):
            block = above[z, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2].astype(object)
            # An odd end stands twice, which changes no mean.
            assert int(below[z, y, x]) == (2 * block.sum() + block.size) // (2 * block.size)
    said = nodes(path)[0].metadata["coordinateTransformations"]
    assert [one[0]["scale"] for one in said] == [
        [0.25, 0.5, 0.75], [0.25, 1.0, 1.5], [0.25, 2.0, 3.0]
    ]  # fmt: skip
    assert [one[1]["translation"] for one in said] == [
        [10.0, -2.0, 3.0], [10.0, -1.75, 3.375], [10.0, -1.25, 4.125]
    ]  # fmt: skip
    validated(path)
    for level in (1, 2):
        lower = only(f"{path}#x.level{level}")
        assert np.array_equal(np.asarray(lower), data[level])
        assert lower.meta.axes[2].spacing == 0.75 * 2**level
        assert lower.meta.space.origin == (*said[level][1]["translation"][::-1],)


@pytest.mark.parametrize("dtype", ["u8", "i8", "i1", "u1"])
def test_means_of_integers_at_the_ends_of_their_type(dtype: str, tmp_path: Path) -> None:
    """No sum of four of them fits their type, and none of float64 is exact."""
    info = np.iinfo(dtype)
    rows = [[info.max] * 4, [info.min] * 4, [info.max, info.max - 1] * 2, [info.min, info.max] * 2]
    values = np.array(rows, dtype)[:, None].reshape(4, 1, 4).reshape(4, 2, 2)
    path = tmp_path / "x.ome.zarr"

    raconvert.write(path, values, out_opts={"levels": "2"})

    expected = [(2 * sum(map(int, row)) + 4) // 8 for row in rows]
    assert zarr.open_group(path, mode="r")["1"][:, 0, 0].tolist() == expected


def test_levels_of_labels_and_bools_are_nearest(tmp_path: Path) -> None:
    labels = np.array([[7, 0, 3], [0, 0, 3], [5, 5, 9]], "u4")
    for name, values, options in (
        ("a", labels, {"levels": "2", "filter": "nearest"}),
        ("b", labels > 0, {"levels": "2"}),
    ):
        path = tmp_path / f"{name}.ome.zarr"
        raconvert.write(path, values, out_opts=options)
        lower = zarr.open_group(path, mode="r")["1"][...]
        assert np.array_equal(lower, values[::2, ::2])


def test_auto_levels_end_at_256_and_as_many_as_there_can_be(tmp_path: Path) -> None:
    values = np.zeros((1025, 3), "u1")
    raconvert.write(tmp_path / "a.ome.zarr", values, out_opts={"levels": "auto"})
    assert len(nodes(tmp_path / "a.ome.zarr")[0].data) == 4
    report = raconvert.write(tmp_path / "b.ome.zarr", values[:2], out_opts={"levels": "9"})
    assert len(nodes(tmp_path / "b.ome.zarr")[0].data) == 3
    assert "has 3 levels" in str(report.notes)
    for word in ("0", "33", "x", "-1", "1.5"):
        with pytest.raises(UsageError, match="levels"):
            raconvert.write(tmp_path / "c.ome.zarr", values, out_opts={"levels": word})
    assert not (tmp_path / "c.ome.zarr").exists()


def test_a_level_larger_than_memory_is_made_row_by_row(tmp_path: Path) -> None:
    """Levels above an eighth of the memory are made anew from the one above."""
    values = np.random.default_rng(2).integers(0, 255, (2000, 1500), "u1")
    path = tmp_path / "x.ome.zarr"

    raconvert.write(path, values, out_opts={"levels": "4", "chunks": "100,1500"},
                    max_memory=2 << 20)  # fmt: skip

    data = [np.asarray(one).astype(int) for one in nodes(path)[0].data]
    for above, below in itertools.pairwise(data):
        even = above[: above.shape[0] // 2 * 2, : above.shape[1] // 2 * 2]
        blocks = even.reshape(even.shape[0] // 2, 2, -1, 2).sum((1, 3))
        inside = tuple(slice(n) for n in blocks.shape)
        assert np.array_equal(below[inside], (blocks + 2) // 4)


def test_axes_of_unknown_sort_are_named_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    report = raconvert.write(path, values_of("tczyx"))
    assert "axis 0 of unknown kind is written as T" in str(list(report.equivalent))
    assert not any(only(path).meta.axes)
    assert [axis["name"] for axis in nodes(path)[0].metadata["axes"]] == [*"tczyx"]


@pytest.mark.parametrize(
    ("axes", "shape", "words"),
    [
        ([], (5,), "2 to 5 axes"),
        ([], (1,) * 6, "2 to 5 axes"),
        (["y", "x", "c"], (4, 5, 3), "--axes"),
        (["z", "c", "y", "x"], (4, 3, 5, 5), "in this order"),
        (["t", "t", "y", "x"], (4, 3, 5, 5), "in this order"),
        (["x", "t"], (4, 3), "inside the plane"),
    ],
)
def test_axes_that_it_has_no_place_for_are_refused(
    axes: list[str], shape: tuple[int, ...], words: str, tmp_path: Path
) -> None:
    meta = Metadata(axes=[Axis(one) for one in axes]) if axes else None
    with pytest.raises(WouldLose) as refused:
        raconvert.write(tmp_path / "x.ome.zarr", np.zeros(shape, "u1"), meta=meta)
    assert words.strip("-") in str(refused.value)
    assert not (tmp_path / "x.ome.zarr").exists()


def test_colours_and_windows_of_channels_are_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "a.ome.zarr", tmp_path / "b.ome.zarr"
    window = {"start": 1.0, "end": 9.0, "min": 0.0, "max": 10.0}
    own = [{"color": color, "window": window, "active": False} for color in ("FF0000", "00FF00")]
    meta = Metadata(axes=[Axis("c", kind="list", labels=["a", "b"]), *meta_of("yx").axes[:2]])
    meta = meta.with_format("ome", axes=[{"channels": own}, {}, {}])

    raconvert.write(first, values_of("yx")[None].repeat(2, 0), meta=meta)
    raconvert.convert(first, second, out_opts={"version": "0.4"})

    for path in (first, second):
        omero = zarr.open_group(path, mode="r").attrs.asdict()
        omero = omero.get("ome", omero)["omero"]
        assert [{k: v for k, v in one.items() if k != "label"} for one in omero["channels"]] == own
        assert only(path).meta.formats["ome"]["axes"][0]["channels"] == own


def test_what_ome_has_no_word_for_comes_back_until_somebody_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    axes = [Axis("Y", spacing=2.0, units="um", direction=(0.6, 0.8)),
            Axis("X", labels=list("abcde"), units="nm")]  # fmt: skip
    meta = Metadata("a text", units="K", axes=axes, space=Space("there", (1.0, 2.0)),
                    attributes={"by": "hand"})  # fmt: skip

    raconvert.write(path, values_of("yx"), meta=meta)

    assert only(path).meta.to_dict() == meta.to_dict()
    document = json.loads((path / "zarr.json").read_text())
    scale = document["attributes"]["ome"]["multiscales"][0]["datasets"][0]
    scale["coordinateTransformations"][0]["scale"] = [7.0, 8.0]
    (path / "zarr.json").write_text(json.dumps(document))
    changed = only(path).meta
    assert [axis.spacing for axis in changed.axes] == [7.0, 8.0]
    assert [axis.name for axis in changed.axes] == ["y", "x"]
    assert (changed.description, dict(changed.attributes)) == ("a text", {"by": "hand"})


# Written by others --------------------------------------------------------------------------------


def written(path: Path, values: np.ndarray, axes: Any, version: str, **more: Any) -> None:
    """An image by ome-zarr-py."""
    fmt = VERSIONS[version]
    group = zarr.open_group(path, mode="w", zarr_format=fmt.zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ome_zarr_writer.write_image(values, group, axes=axes, fmt=fmt, **more)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("axes", AXES)
def test_every_set_of_axes_of_others(axes: str, version: str, tmp_path: Path) -> None:
    path, values = tmp_path / "x.zarr", values_of(axes)
    kinds = {"t": "time", "c": "channel"}
    units = {"t": "millisecond", "z": "micrometer", "y": "nanometer", "x": "angstrom"}
    said = [
        {"name": one, "type": kinds.get(one, "space")}
        | ({"unit": units[one]} if one in units else {})
        for one in axes
    ]
    steps = [0.5 + number for number in range(len(axes))]
    transforms = [
        {"type": "scale", "scale": steps},
        {"type": "translation", "translation": [10.0 * step for step in steps]},
    ]
    written(path, values, axes, version, scale_factors=[])
    fmt = VERSIONS[version]
    group = zarr.open_group(path, mode="r+", zarr_format=fmt.zarr_format)
    (name,) = group.array_keys()
    ome_zarr_writer.write_multiscales_metadata(
        group, [{"path": name, "coordinateTransformations": transforms}], fmt=fmt, axes=said
    )

    array = only(path)

    assert np.array_equal(np.asarray(array), values)
    assert [axis.name for axis in array.meta.axes] == [*axes]
    symbols = {"t": "ms", "z": "um", "y": "nm", "x": "angstrom"}
    assert [axis.units for axis in array.meta.axes] == [symbols.get(one) for one in axes]
    assert [axis.spacing for axis in array.meta.axes] == steps
    place = dict(zip(axes, steps, strict=True))
    origin = tuple(10 * place[one] for one in "xyz" if one in axes)
    assert array.meta.space == Space(None, origin)


@pytest.mark.parametrize("version", VERSIONS)
def test_pyramids_and_labels_of_others(version: str, tmp_path: Path) -> None:
    path, fmt = tmp_path / "x.zarr", VERSIONS[version]
    values = np.random.default_rng(0).integers(0, 99, (2, 64, 64), "u2")
    written(path, values, "cyx", version, scale_factors=[2, 4])
    group = zarr.open_group(path, mode="r+")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ome_zarr_writer.write_labels(
            values[0], group, "nuclei", axes="yx", fmt=fmt, scale_factors=[2]
        )

    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["x", "labels/nuclei"]
        lower = [array.name for array in bundle.more]
        assert lower[:3] == ["x.level1", "x.level2", "labels/nuclei.level1"]
        assert np.array_equal(np.asarray(bundle["labels/nuclei"]), values[0])
        levels = [np.asarray(one) for one in nodes(path)[0].data]
        for array, level in zip(bundle.more[:2], levels[1:], strict=True):
            assert np.array_equal(np.asarray(array), level)
        assert "x.level1" in " ".join(bundle.notes)
    raconvert.convert(path, tmp_path / "y.ome.zarr", out_opts={"version": version})
    again = nodes(tmp_path / "y.ome.zarr")
    assert [one.data[0].shape for one in again if one.data] == [(2, 64, 64), (64, 64)]
    assert main([f"{path}#x.level2", "-o", str(tmp_path / "z.npy")]) == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), levels[2])


@pytest.mark.parametrize("version", VERSIONS)
def test_plates_of_others_and_back(version: str, tmp_path: Path) -> None:
    path, fmt = tmp_path / "plate.zarr", VERSIONS[version]
    group = zarr.open_group(path, mode="w", zarr_format=fmt.zarr_format)
    rows, columns, wells = ["A", "B"], ["1", "2", "3"], ["A/1", "A/3", "B/2"]
    expected = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ome_zarr_writer.write_plate_metadata(group, rows, columns, wells, fmt=fmt, name="p")
        for number, well in enumerate(wells):
            inside = group.require_group(well)
            ome_zarr_writer.write_well_metadata(inside, ["0", "1"], fmt=fmt)
            for field in "01":
                values = values_of("cyx") + number
                ome_zarr_writer.write_image(
                    values, inside.require_group(field), axes="cyx", fmt=fmt, scale_factors=[]
                )
                expected[f"{well}/{field}"] = values

    with raconvert.open_bundle(path) as bundle:
        assert bundle.format == "omezarr"
        assert bundle.names == [*expected]
        for name, values in expected.items():
            assert np.array_equal(np.asarray(bundle.get(name)), values)

    again = tmp_path / "again.ome.zarr"
    raconvert.convert(path, again, out_opts={"version": version})
    plate = validated(again)
    own = plate.ome_attributes.plate if version == "0.5" else plate.attributes.plate
    assert sorted(well.path for well in own.wells) == wells
    assert [row.name for row in own.rows] == rows
    assert [column.name for column in own.columns] == columns
    assert own.name == "p"
    with raconvert.open_bundle(again) as bundle:
        assert bundle.names == [*expected]


def test_a_collection_of_images(tmp_path: Path) -> None:
    arrays = {"a": values_of("zyx"), "b/c": values_of("yx")}
    path = tmp_path / "x.ome.zarr"

    raconvert.write(path, arrays)

    root = zarr.open_group(path, mode="r")
    assert root.attrs["ome"]["bioformats2raw.layout"] == 3
    assert root["OME"].attrs["ome"]["series"] == ["a", "b/c"]
    for name, values in arrays.items():
        assert np.array_equal(root[f"{name}/0"][...], values)
        models.open_ome_zarr(root[name])
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == [*arrays]


def test_axes_of_length_one_stay(tmp_path: Path) -> None:
    values = np.zeros((1, 1, 1, 2, 3), "u1")
    raconvert.write(tmp_path / "x.ome.zarr", values)
    assert nodes(tmp_path / "x.ome.zarr")[0].data[0].shape == values.shape
    raconvert.convert(tmp_path / "x.ome.zarr", tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").shape == values.shape


def test_zarr_reads_the_hierarchy_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    raconvert.write(path, values_of("yx"), out_opts={"levels": "2"})
    with raconvert.open_bundle(path, from_="zarr") as bundle:
        assert bundle.names == ["0", "1"]
        assert bundle.format == "zarr"


def test_versions_before_are_read_by_zarr_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("0", data=values_of("yx"))
    group.attrs["multiscales"] = [{"version": "0.1", "datasets": [{"path": "0"}]}]
    with raconvert.open_bundle(path) as bundle:
        assert (bundle.format, bundle.names) == ("zarr", ["0"])
    with pytest.raises(RaconvertError, match=r"version 0\.1"):
        raconvert.open_bundle(path, from_="omezarr")


def test_what_has_no_place_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.zarr"
    raconvert.write(path, values_of("yx"))
    document = json.loads((path / "zarr.json").read_text())
    own = document["attributes"]["ome"]
    own["multiscales"] *= 3
    own["microscope"] = {"lens": 63}
    (path / "zarr.json").write_text(json.dumps(document))
    notes = " ".join(raconvert.open_bundle(path).notes)
    assert "the root that is left out: 'microscope', 2 further multiscales" in notes
