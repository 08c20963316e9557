"""Hostile OME-XML and OME-Zarr: refused by one clear error, in memory that does not grow."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import raconvert
from raconvert.cli import main
from raconvert.errors import RaconvertError, Unsafe

MOST_BYTES = 250 << 20  # of Python's memory
SIZES = 'SizeX="5" SizeY="6" SizeZ="4" SizeC="1" SizeT="1"'
ORDER = 'DimensionOrder="XYZCT" Type="uint16"'
SCHEMA = "http://www.openmicroscopy.org/Schemas/OME/2016-06"


def xml(
    pixels: str = f"{ORDER} {SIZES}", inside: str = "<TiffData/>", *, before: str = "",
    image: str = "", after: str = "",
) -> str:  # fmt: skip
    return (
        f'{before}<OME xmlns="{SCHEMA}"><Image ID="Image:0">{image}<Pixels ID="Pixels:0" {pixels}>'
        f"{inside}</Pixels></Image>{after}</OME>"
    )


def sized(**sizes: int | str) -> str:
    said = {"X": 5, "Y": 6, "Z": 4, "C": 1, "T": 1, **sizes}
    return ORDER + "".join(f' Size{one}="{length}"' for one, length in said.items())


MANY_FILES = "".join(
    f'<TiffData IFD="0" FirstZ="{n}"><UUID FileName="{n}.tif"/></TiffData>' for n in range(5000)
)
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
TEXTS: dict[str, str] = {
    "entities inside each other": xml(
        image="<Description>&a9;</Description>",
        before=f'<!DOCTYPE OME [<!ENTITY a0 "ha">{LAUGHS}]>',
    ),
    "an entity that is a file": xml(
        image="<Description>&a;</Description>",
        before='<!DOCTYPE OME [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    ),
    "a document type elsewhere": xml(before=f'<!DOCTYPE OME SYSTEM "{SCHEMA}/ome.dtd">'),
    "an entity without a document type": xml(image="<Description>&a;</Description>"),
    "elements nested deep": xml(after="<A>" * 5000 + "</A>" * 5000),
    "very many elements": xml(after="<A/>" * 500_000),
    "very many planes of time": xml(sized(T=999_999_999)),
    "planes beyond 64 bits": xml(sized(T=999_999_999, Z=999_999_999, C=999_999_999)),
    "a size that is not a number": xml(sized(Z="four")),
    "a negative size": xml(sized(Z=-4)),
    "a size of nothing": xml(sized(Z=0)),
    "a size of a thousand digits": xml(sized(Z="9" * 1000)),
    "a size in other digits": xml(sized(Z="\u0664")),
    "a width that the pages do not have": xml(sized(X=6)),
    "a height that the pages do not have": xml(sized(Y=60_000)),
    "no sizes": xml(ORDER),
    "an order of other letters": xml(f'DimensionOrder="XYQZT" {SIZES}'),
    "an order with a letter twice": xml(f'DimensionOrder="XYZZT" {SIZES}'),
    "a page that is not there": xml(inside='<TiffData IFD="99"/>'),
    "a page before the first": xml(inside='<TiffData IFD="-1"/>'),
    "more planes than pages": xml(inside='<TiffData IFD="2" PlaneCount="4"/>'),
    "a plane outside its image": xml(inside='<TiffData IFD="0" FirstT="7"/>'),
    "a plane named twice": xml(inside='<TiffData IFD="0"/><TiffData IFD="1"/>'),
    "a file outside the folder": xml(
        inside='<TiffData IFD="0" PlaneCount="1"/><TiffData IFD="0" FirstZ="1">'
        '<UUID FileName="../x.ome.tif">urn:uuid:1</UUID></TiffData>'
    ),
    "a file that is a device": xml(
        inside='<TiffData IFD="0" PlaneCount="1"/><TiffData IFD="0" FirstZ="1">'
        '<UUID FileName="/dev/zero">urn:uuid:1</UUID></TiffData>'
    ),
    "very many files": xml(sized(Z=5000), MANY_FILES),
    "an image without pixels": f'<OME xmlns="{SCHEMA}"><Image ID="Image:0"/></OME>',
    "no image": f'<OME xmlns="{SCHEMA}"/>',
    "elements elsewhere": xml(inside="<MetadataOnly/>"),
    "an element that is not closed": xml()[:-6],
    "two roots": xml() + xml(),
    "a NUL in it": xml(image="<Description>\1</Description>"),
    "a record of ours that is not one": xml(
        after='<StructuredAnnotations><CommentAnnotation ID="Annotation:Record:0" '
        'Namespace="raconvert"><Value>{"raconvert":2,"axes":[{"name":7}]}</Value>'
        "</CommentAnnotation></StructuredAnnotations>"
    ),
}
# Shapes that are read, since nothing of the elements depends on them
READ: dict[str, str] = {
    "thousands of channels": xml(
        sized(Z=1, C=4),
        "".join('<Channel ID="C" Name="c"/>' for _ in range(50_000)) + "<TiffData/>",
    ),
    "sizes of a voxel that are not numbers": xml(
        f'{ORDER} {SIZES} PhysicalSizeX="NaN" PhysicalSizeY="1e999" PhysicalSizeZ="-1" '
        'TimeIncrement="x"'
    ),
    "wells without images": xml(
        after='<Plate ID="P"><Well ID="W" Row="0" Column="0"><WellSample ID="S" Index="0">'
        '<ImageRef ID="Image:7"/></WellSample></Well></Plate>'
    ),
}


def measured(call: Callable[[], Any]) -> Any:
    """The result of a call, which must not need much memory."""
    tracemalloc.start()
    try:
        return call()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MOST_BYTES


def tiff(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.arange(120, dtype="u2").reshape(4, 6, 5)
    tifffile.imwrite(path, values, description=text.encode(), metadata=None,
                     photometric="minisblack")  # fmt: skip
    return path


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_xml_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tiff(tmp_path / "in" / "x.ome.tif", TEXTS[name]), tmp_path / "out.npy"

    code = measured(lambda: main([str(path), "-o", str(out), "--from", "ometiff"]))

    assert code in (1, 3, 4), code
    assert "x.ome.tif" in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(RaconvertError), raconvert.open_bundle(path, from_="ometiff") as bundle:
        np.asarray(bundle.arrays[0])


@pytest.mark.parametrize("name", READ)
def test_xml_that_is_odd_but_harmless_is_read(name: str, tmp_path: Path) -> None:
    path = tiff(tmp_path / "x.ome.tif", READ[name])
    bundle = measured(lambda: raconvert.open_bundle(path))
    assert np.array_equal(np.asarray(bundle.arrays[0]).reshape(-1), np.arange(120))
    assert all(axis.spacing is None for axis in bundle.arrays[0].meta.axes)


def test_levels_that_lead_to_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ome.tif"
    raconvert.write(path, np.zeros((2, 8, 8), "u1"), out_opts={"levels": "2"})
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        at, target = page.tags[330].valueoffset, page.offset
    data = bytearray(path.read_bytes())
    data[at : at + 4] = target.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(RaconvertError, match="loop"):
        raconvert.open_bundle(path)


# OME-Zarr -----------------------------------------------------------------------------------------


AXES = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]


def scaled(*numbers: Any) -> list[dict[str, Any]]:
    return [{"type": "scale", "scale": [*numbers]}]


def image(**said: Any) -> dict[str, Any]:
    fields = {
        "axes": AXES,
        "datasets": [{"path": "0", "coordinateTransformations": scaled(1.0, 2.0)}],
        **said,
    }
    return {"multiscales": [{k: v for k, v in fields.items() if v is not ...}]}


def level(path: Any = "0", transforms: Any = ...) -> dict[str, Any]:
    return {
        "path": path,
        "coordinateTransformations": scaled(1.0, 2.0) if transforms is ... else transforms,
    }


DEEP = "lists inside each other"  # of which JSON's encoder of Python makes no text


def deep(count: int) -> Any:
    value: Any = 1
    for _ in range(count):
        value = [value]
    return value


DOCUMENTS: dict[str, dict[str, Any]] = {
    "a path out of the folder": image(datasets=[level("../secret")]),
    "a path from the root": image(datasets=[level("/etc/passwd")]),
    "a path through the folder itself": image(datasets=[level("./0")]),
    "a path with backslashes": image(datasets=[level("..\\secret")]),
    "a path that is a URL": image(datasets=[level("file:///etc/passwd")]),
    "a path that is a number": image(datasets=[level(0)]),
    "an empty path": image(datasets=[level("")]),
    "a level below that leads out": image(datasets=[level(), level("../0")]),
    "a first level that is missing": image(datasets=[level("7")]),
    "levels that are a mapping": image(datasets={"path": "0"}),
    "no levels": image(datasets=[]),
    "levels that are texts": image(datasets=["0"]),
    "very many levels": image(datasets=[level()] * 100_000),
    "axes without names": image(axes=[{"type": "space"}, {"type": "space"}]),
    "axes of one name": image(axes=[AXES[0], AXES[0]]),
    "axes that are texts": image(axes=["y", "x"]),
    "more axes than the array": image(
        axes=[{"name": "z", "type": "space"}, *AXES],
        datasets=[level(transforms=scaled(1.0, 1.0, 1.0))],
    ),
    "a thousand axes": image(axes=[{"name": str(n)} for n in range(1000)]),
    "four axes of space": image(
        axes=[{"name": str(n), "type": "space"} for n in range(4)],
        datasets=[level(transforms=scaled(1.0, 1.0, 1.0, 1.0))],
    ),
    "a unit that is a list": image(axes=[{**AXES[0], "unit": ["m"]}, AXES[1]]),
    "no scale": image(datasets=[{"path": "0"}]),
    "a scale of texts": image(datasets=[level(transforms=scaled("1", "1"))]),
    "a scale of too many numbers": image(datasets=[level(transforms=scaled(*[1.0] * 9999))]),
    "a scale beyond all numbers": image(datasets=[level(transforms=scaled(10**400, 1))]),
    "a scale that is true": image(datasets=[level(transforms=scaled(True, True))]),
    "a transformation of another kind": image(
        datasets=[level(transforms=[{"type": "affine", "affine": [[1, 0], [0, 1]]}])]
    ),
    "a transformation in a file": image(
        datasets=[level(transforms=[{"type": "scale", "path": "../scale"}])]
    ),
    "very many transformations": image(datasets=[level(transforms=scaled(1.0, 1.0) * 9999)]),
    "lists nested deep": image(axes=deep(50)),
    "lists nested deeper": image(axes=DEEP),
    "images that are a text": {"multiscales": "0"},
    "no images": {"multiscales": []},
    "channels that are a text": {**image(), "omero": {"channels": "red"}},
    "channels that are numbers": {**image(), "omero": {"channels": [1, 2]}},
    "very many channels": {**image(), "omero": {"channels": [{"label": "c"}] * 100_000}},
    "a level that is larger": image(datasets=[level("1"), level("0")]),
    "an array that is the group": image(datasets=[level("labels")]),
    "a plate that is a list": {"plate": [1]},
    "wells that lead out": {"plate": {"wells": [{"path": "../A/1"}]}},
    "wells that are numbers": {"plate": {"wells": [1, 2, 3]}},
}


def hierarchy(folder: Path, document: dict[str, Any], version: str) -> Path:
    """A group with two arrays, and beside it an array that nobody may read."""
    path = folder / "in" / "x.ome.zarr"
    path.parent.mkdir()
    raconvert.write(path, np.zeros((4, 6), "u1"), out_opts={"levels": "2", "version": version})
    raconvert.write(folder / "in" / "secret", np.ones((4, 6), "u1"), to="zarr")
    name = "zarr.json" if version == "0.5" else ".zattrs"
    fields = json.loads((path / name).read_text())
    if version == "0.5":
        fields.pop("consolidated_metadata", None)
        fields["attributes"] = {"ome": {"version": "0.5", **document}}
    else:
        for part in (*document.get("multiscales", ()), document.get("plate")):
            if isinstance(part, dict):
                part.setdefault("version", "0.4")
        fields = document
        (path / ".zmetadata").unlink(missing_ok=True)
    text = json.dumps(fields).replace(f'"{DEEP}"', "[" * 5000 + "]" * 5000)
    (path / name).write_text(text)
    return path


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_hostile_multiscales_are_refused(
    name: str, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hierarchy(tmp_path, DOCUMENTS[name], version)
    out = tmp_path / "out.npy"

    code = measured(lambda: main([str(path), "-o", str(out), "--from", "omezarr"]))

    assert code in (1, 2, 3, 4), code
    if "plate" not in DOCUMENTS[name]:  # a plate without images is a hierarchy of two arrays
        assert code != 2
    assert "x.ome.zarr" in capsys.readouterr().err
    assert not out.exists()
    assert (tmp_path / "in" / "secret").exists()


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_paths_that_lead_out_are_unsafe(version: str, tmp_path: Path) -> None:
    path = hierarchy(tmp_path, DOCUMENTS["a path out of the folder"], version)
    with pytest.raises(Unsafe, match="outside the image"):
        raconvert.open_bundle(path)


def test_other_levels_that_are_missing_are_named(tmp_path: Path) -> None:
    path = hierarchy(tmp_path, image(datasets=[level(), level("7"), level("1")]), "0.5")
    with raconvert.open_bundle(path) as bundle:
        assert bundle.names == ["x"]
        assert [array.name for array in bundle.more] == ["x.level2"]
        assert "level 1 of image 'x' is missing" in bundle.notes


def test_a_scale_of_zero_is_unknown(tmp_path: Path) -> None:
    """Converters have written it."""
    path = hierarchy(tmp_path, image(datasets=[level(transforms=scaled(0.0, -2.0))]), "0.5")
    with raconvert.open_bundle(path) as bundle:
        assert [axis.spacing for axis in bundle.arrays[0].meta.axes] == [None, None]
