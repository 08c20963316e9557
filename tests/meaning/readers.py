"""What libraries that are not ours see of a file: values, facts of each axis, positions.

Each reader gives the values of an array in logical order, and for each axis a mapping of what it
says: name, units, and either `places`, the labels or numbers along it, or spacing and origin. What
it has no word for is not in it. `positions` are those of corners, as ITK counts them; `physical` is
what the values stand for, as the reader works it out, None if the file says that nowhere.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import struct
import tarfile
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import png
import yaml
from PIL import Image

from .cases import ATTRIBUTES, FILL, IMAGE, IMAGE_WITH_LABELS, OFFSET, SLOPE

COLUMNS = ("X", "Y", "LVL", *IMAGE_WITH_LABELS)  # of arrays in a table; others are of axes
KNOWN = {*ATTRIBUTES, SLOPE, OFFSET, FILL}  # attributes that cases have; others are of the format


@dataclass
class Seen:
    """What a reader sees."""

    values: np.ndarray
    axes: list[dict[str, Any]]
    whole: dict[str, Any] = field(default_factory=dict)
    positions: Any = None  # from an index to a position; None: it says none
    attributes: dict[str, Any] = field(default_factory=dict)
    physical: np.ndarray | None = None

    def reversed(self) -> Seen:
        """The same with the axes in the other order."""
        at = self.positions and (lambda index: self.positions(index[::-1]))
        return Seen(self.values.T, self.axes[::-1], self.whole, at, self.attributes)


@contextlib.contextmanager
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def by_numpy(path: Path, name: str) -> Seen:
    found = np.load(path)
    values = found[name] if hasattr(found, "files") else found
    return Seen(values, [{} for _ in values.shape])


def by_webdataset(path: Path, name: str) -> Seen:
    """The members of each sample by tarfile; keys are labels, unless they count."""
    rows: dict[str, Any] = {}
    with tarfile.open(path) as file:
        for member in file:
            key, _, extension = member.name.partition(".")
            data = file.extractfile(member)
            assert data is not None
            if extension == f"{name}.npy":
                rows[key] = np.load(io.BytesIO(data.read()))
            elif extension == f"{name}.cls":
                rows[key] = np.array(int(data.read()), "i8")
    counted = [f"{n:06d}" for n in range(len(rows))]
    axes: list[dict[str, Any]] = [{} for _ in np.stack([*rows.values()]).shape]
    if [*rows] != counted:
        axes[0]["labels"] = [*rows]
    return Seen(np.stack([*rows.values()]), axes)


def by_safetensors(path: Path, name: str) -> Seen:
    from safetensors.numpy import load_file

    values = load_file(path)[name]
    return Seen(values, [{} for _ in values.shape])


def by_scipy(path: Path, name: str) -> Seen:
    from scipy.io import loadmat

    values = loadmat(path)[name]
    return Seen(values, [{} for _ in values.shape])


def by_yaml(path: Path, name: str) -> Seen:
    """An .ra, and its sidecar if there is one."""
    beside = path.with_name(f"{path.name}.yaml")
    return _seen_in_ra(path.read_bytes(), beside.read_bytes() if beside.exists() else b"{}")


def by_members(path: Path, name: str) -> Seen:
    """An .ra in a folder or an archive, and its sidecar if there is one."""
    member, beside = f"{name}.ra", f"{name}.ra.yaml"
    if path.is_dir():
        return by_yaml(path / member, name)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            found = {one: archive.read(one) for one in archive.namelist()}
    else:
        with tarfile.open(path) as archive:
            found = {one.name: archive.extractfile(one).read() for one in archive}
    return _seen_in_ra(found[member], found.get(beside, b"{}"))


def _seen_in_ra(data: bytes, sidecar: bytes) -> Seen:
    kind, width, _, rank = np.frombuffer(data[16:48], "<u8").tolist()
    dims = np.frombuffer(data[48 : 48 + 8 * rank], "<u8")
    code = {1: "i", 2: "u", 3: "f", 4: "c", 5: "b"}[kind]
    values = np.frombuffer(data[48 + 8 * rank :], f"<{code}{width}" if code != "b" else "?")
    fields = yaml.safe_load(sidecar)
    values = values.reshape(dims[::-1])
    axes = fields.get("axes", [{} for _ in dims])
    column_major = fields.get("index_order") == "F"
    values, axes = (values.T, axes) if column_major else (values, axes[::-1])
    told = [
        {
            "name": axis.get("name"),
            "units": axis.get("units"),
            "places": axis.get("labels"),
            "spacing": axis.get("spacing"),
            "origin": axis.get("origin"),
        }
        for axis in axes
    ]
    whole = {key: fields.get(key) for key in ("description", "units")}
    space = fields.get("space", {})
    return Seen(values, told, whole, _placed(axes, space), fields.get("attributes", {}))


def _placed(axes: list[dict[str, Any]], space: dict[str, Any]) -> Any:
    """Positions by the vectors of axes and the origin of a space."""
    if space.get("origin") is None:
        return None
    sign = [-1, -1, 1] if "RAS" in space.get("frame", "") else [1, 1, 1]

    def positions(index: tuple[int, ...]) -> np.ndarray:
        at = np.array(space["origin"], float)
        for k, axis in zip(index, axes, strict=True):
            if axis.get("direction") is not None and axis.get("spacing") is not None:
                at = at + k * axis["spacing"] * np.array(axis["direction"], float)
        return at * sign[: len(at)]

    return positions


def by_h5py(path: Path, name: str) -> Seen:
    import h5py

    with h5py.File(path) as file:
        data = file[name]
        axes = []
        for dim in data.dims:
            told: dict[str, Any] = {"name": dim.label or None}
            if len(dim):
                scale = dim[0]
                told["name"] = told["name"] or scale.name.rsplit("/", 1)[-1]
                made_up = text(scale.attrs.get("NAME", ""))
                if not made_up.startswith("This is a netCDF dimension but not a netCDF variable"):
                    values = scale.asstr()[()] if scale.dtype.kind in "OS" else scale[()]
                    if "units" in scale.attrs:
                        told["units"] = text(scale.attrs["units"])
                    told["places"] = values.tolist()
            axes.append(told)
        whole = {"units": text(data.attrs.get("units"))}
        whole["description"] = text(data.attrs.get("description", data.attrs.get("long_name")))
        attributes = {key: text(data.attrs[key]) for key in data.attrs if key in KNOWN}
        # A number that netCDF stores as a list of one
        attributes |= {k: v[0] for k, v in attributes.items() if np.shape(v) == (1,)}
        return Seen(np.asarray(data[()]), axes, whole, None, attributes)


def text(value: Any) -> Any:
    """A value of an attribute as Python has it."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, list):
        return [text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def by_xarray(path: Path, name: str) -> Seen:
    import xarray

    def opened(**how: Any) -> Any:
        if path.is_dir():
            return xarray.open_zarr(path, consolidated=False, chunks=None, **how)
        engine = "netcdf4" if path.suffix == ".cdf" else "h5netcdf"
        return xarray.open_dataset(path, engine=engine, **how)

    with quiet(), opened(decode_cf=False) as dataset:
        data = dataset[name]
        axes = []
        for number, dim in enumerate(data.dims):
            usual = {f"{name}_dim_{number}", f"{name}.{number}", f"phony_dim_{number}"}
            told: dict[str, Any] = {"name": None if dim in usual else str(dim)}
            if dim in dataset.variables and dim != name:
                scale = dataset[dim]
                told["places"] = _letters_joined(scale.values).tolist()
                told["units"] = scale.attrs.get("units")
            axes.append(told)
        whole = {"units": data.attrs.get("units")}
        whole["description"] = data.attrs.get("description", data.attrs.get("long_name"))
        attributes = {key: text(data.attrs[key]) for key in data.attrs if key in KNOWN}
        values = np.asarray(data.values)
        if data.dims[-1:] == ("ri",):  # netCDF classic has no complex numbers
            values, axes = _as_complex(values), axes[:-1]
        values = values.astype(bool) if data.attrs.get("dtype") == "bool" else values
    physical = None
    if {SLOPE, OFFSET, FILL} & set(attributes):
        with quiet(), opened(decode_times=False, drop_variables=[]) as dataset:
            physical = np.asarray(dataset[name].values)
    return Seen(values, axes, whole, None, attributes, physical)


def _letters_joined(values: np.ndarray) -> np.ndarray:
    """Texts, of which netCDF classic has the letters on a further axis."""
    if values.dtype != "S1" or values.ndim != 2:
        return values
    joined = np.ascontiguousarray(values).view(f"S{values.shape[-1]}")[..., 0]
    return np.char.decode(joined, "utf-8")


def _as_complex(values: np.ndarray) -> np.ndarray:
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    return native.view(f"c{2 * values.dtype.itemsize}")[..., 0]


def by_pynrrd(path: Path, name: str) -> Seen:
    import nrrd

    values, header = nrrd.read(str(path), index_order="F")
    values, rank = values.T, values.ndim
    names = header.get("labels", [None] * rank)
    units = header.get("units", [None] * rank)
    spacings, mins = (header.get(key, [None] * rank) for key in ("spacings", "axis mins"))
    axes = [
        {"name": a or None, "units": b or None, "spacing": finite(c), "origin": finite(d)}
        for a, b, c, d in zip(names, units, spacings, mins, strict=True)
    ]
    whole = {"description": header.get("content"), "units": header.get("sample units")}
    positions = None
    directions = header.get("space directions")
    if directions is not None and header.get("space origin") is not None:
        frame = str(header.get("space", "left-posterior-superior"))
        signs = [
            -1 if "right" in frame and k == 0 else 1 for k in range(len(header["space origin"]))
        ]
        if "anterior" in frame:
            signs[1] = -1
        vectors = np.nan_to_num(np.array(directions, float))[::-1]

        def positions(index: tuple[int, ...]) -> np.ndarray:
            return (np.array(header["space origin"]) + np.array(index) @ vectors) * signs

    if header.get("kinds", [None])[0] == "complex":
        values, axes = values[..., 0] + 1j * values[..., 1], axes[1:]
        positions = None if positions is None else _without_last(positions)
    return Seen(values, axes[::-1], whole, positions)


def finite(number: Any) -> float | None:
    return None if number is None or not np.isfinite(number) else float(number)


def _without_last(positions: Any) -> Any:
    return lambda index: positions((*index, 0))


_NIFTI_UNITS = {"mm": "mm", "meter": "m", "micron": "um", "sec": "s", "msec": "ms", "usec": "us"}


def by_nibabel(path: Path, name: str) -> Seen:
    import nibabel

    image = nibabel.load(path)
    factors = {SLOPE: image.dataobj.slope, OFFSET: image.dataobj.inter}
    scaled = factors != {SLOPE: 1, OFFSET: 0}
    values = np.asarray(image.dataobj.get_unscaled() if scaled else image.dataobj)

    def positions(index: tuple[int, ...]) -> np.ndarray:
        three = np.array([*index[:3], *[0] * (3 - len(index[:3]))], float)
        return (image.affine[:3, :3] @ three + image.affine[:3, 3]) * [-1, -1, 1]

    whole = {"description": text(image.header["descrip"].tobytes().rstrip(b"\0")) or None}
    told = int(image.header["sform_code"]) or int(image.header["qform_code"])
    space, time = image.header.get_xyzt_units()
    units = [_NIFTI_UNITS.get(unit) for unit in (space, space, space, time)]
    starts = [None, None, None, float(image.header["toffset"]) or None]
    axes = [
        {"spacing": float(zoom), "units": unit, "origin": start}
        for zoom, unit, start in zip(image.header.get_zooms(), units, starts, strict=False)
    ]
    attributes = {name: float(one) for name, one in factors.items()} if scaled else {}
    return Seen(values, axes, whole, positions if told else None, attributes)


def by_simpleitk(path: Path, name: str) -> Seen:
    import SimpleITK

    if "\nNDims = 1\n" in path.read_bytes()[:400].decode("latin-1"):  # ITK has no lines
        head, _, data = path.read_bytes().partition(b"LOCAL\n")
        code = {"UCHAR": "u1", "CHAR": "i1", "SHORT": "i2", "USHORT": "u2", "INT": "i4",
                "UINT": "u4", "LONG_LONG": "i8", "FLOAT": "f4", "DOUBLE": "f8"}  # fmt: skip
        kind = head.decode("latin-1").partition("ElementType = MET_")[2].split()[0]
        values = np.frombuffer(data, "<" + code[kind])
        said = re.search(rb"\nElementSpacing = (\S+)\n", head)
        return Seen(values, [{"spacing": float(said[1])} if said else {}])
    image = SimpleITK.ReadImage(str(path))
    values = SimpleITK.GetArrayFromImage(image)
    rank = image.GetDimension()

    def positions(index: tuple[int, ...]) -> np.ndarray:
        pairs = [0] * (rank - len(index))  # the fastest axis, of complex numbers
        place = [*pairs, *(int(n) for n in index[::-1])][-rank:]
        return np.array(image.TransformIndexToPhysicalPoint(place))

    steps = [*[None] * (values.ndim - rank), *image.GetSpacing()[::-1]]
    return Seen(values, [{"spacing": step} for step in steps], {}, positions)


def by_mrcfile(path: Path, name: str) -> Seen:
    import mrcfile

    with mrcfile.open(path) as file:
        header, values = file.header, np.array(file.data)
        sizes = file.voxel_size.tolist()
        labels = "\n".join(file.get_labels())
        volume = not (file.is_single_image() or file.is_image_stack())
    count = 3 if volume else 2
    told: list[dict[str, Any]] = [{} for _ in values.shape]
    for axis, step in zip(told[::-1], sizes[:count], strict=False):
        if step:
            axis.update(spacing=float(f"{step:.7g}"), units="angstrom")
    at = np.array(header.origin.tolist(), float)

    def positions(index: tuple[int, ...]) -> np.ndarray:
        steps = np.array(sizes[:count]) * index[::-1][:count]
        return at + np.pad(steps, (0, 3 - count))

    placed = all(sizes[:count]) and at.any()
    return Seen(values, told, {"description": labels or None}, positions if placed else None)


def by_astropy(path: Path, name: str) -> Seen:
    from astropy.io import fits

    with quiet(), fits.open(path, do_not_scale_image_data=True) as file:
        number = next(n for n, hdu in enumerate(file) if hdu.header.get("EXTNAME") == name)
        header = file[number].header
        rank = header["NAXIS"]
    with quiet(), fits.open(path) as file:
        physical = np.array(file[number].data)
    scaled = "BSCALE" in header or "BLANK" in header or header.get("BZERO", 0) % 128
    with quiet(), fits.open(path, do_not_scale_image_data=True) as file:
        values = np.array(file[number].data) if scaled else physical
    if header.get("BLANK") == 0:  # which astropy takes for none
        physical = np.where(values == 0, np.nan, physical)
    axes = []
    for n in range(rank, 0, -1):
        told: dict[str, Any] = {"name": header.get(f"CTYPE{n}"), "units": header.get(f"CUNIT{n}")}
        if f"CDELT{n}" in header:
            step, pixel = header[f"CDELT{n}"], header[f"CRPIX{n}"]
            told["spacing"], told["origin"] = step, header[f"CRVAL{n}"] + (1 - pixel) * step
        axes.append(told)
    attributes = {key: header[key] for key in KNOWN if key.upper() == key and key in header}
    known = {"BSCALE": SLOPE, "BZERO": OFFSET, "BLANK": FILL}
    attributes |= {key: header[card] for card, key in known.items() if scaled and card in header}
    return Seen(values, axes, {"units": header.get("BUNIT")}, None, attributes,
                physical if scaled else None)  # fmt: skip


def by_harpy(path: Path, name: str) -> Seen:
    from harpy import HarFileIO

    with quiet():
        [array] = HarFileIO.readHeaderArraysFromFile(str(path), [name])
    sets = array.get("sets") or [{} for _ in array["array"].shape]
    axes = []
    for one in sets:
        known = str(one.get("name") or "").strip()
        told: dict[str, Any] = {"name": known if known and not known.startswith("Unk") else None}
        if one.get("dim_desc"):
            told["places"] = [str(label).strip() for label in one["dim_desc"]]
        axes.append(told)
    whole = {"description": str(array.get("long_name", "")).strip() or None}
    return Seen(np.asarray(array["array"]), axes, whole)


def by_tifffile(path: Path, name: str) -> Seen:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series, said = file.series[0], file.pages[0].description
        values = series.asarray()
        if file.ome_metadata is None:
            noted = json.loads(said) if said.startswith('{"shape":') else {"description": said}
            whole = {"description": noted.get("description") or None}
            return Seen(values, [{} for _ in noted.get("shape", values.shape)], whole)
        ome = tifffile.xml2dict(file.ome_metadata)["OME"]
    pixels = ome["Image"]["Pixels"]
    letters, axes = series.axes, []
    if "StructuredAnnotations" in ome:  # the axes of length 1 that are there
        letters = ome["StructuredAnnotations"]["MapAnnotation"]["Value"]["M"]["value"]
    for letter in letters:
        told: dict[str, Any] = {"name": letter}
        field = "TimeIncrement" if letter == "T" else f"PhysicalSize{letter}"
        if field in pixels:
            unit = pixels[f"{field}Unit"]
            told["units"] = None if unit == "reference frame" else unit.replace("\u00b5", "u")
            told["places"] = [n * pixels[field] for n in range(pixels[f"Size{letter}"])]
        axes.append(told)
    shape = [values.shape[-1] if one == "S" else pixels[f"Size{one}"] for one in letters]
    return Seen(values.reshape(shape), axes, {"description": ome["Image"].get("Description")})


def by_tifffile_of_ome(path: Path, name: str) -> Seen:
    """An image of OME-XML, with what its elements say; of ours the axes of length 1 that exist."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        ome = tifffile.xml2dict(file.ome_metadata or "")["OME"]
        images = ome["Image"] if isinstance(ome["Image"], list) else [ome["Image"]]
        number = next(n for n, image in enumerate(images) if str(image["Name"]) == name)
        series = file.series[number]
        values = series.asarray()
    notes = ome["StructuredAnnotations"]["CommentAnnotation"]
    notes = notes if isinstance(notes, list) else [notes]
    letters = {note["ID"]: note["Value"] for note in notes}[f"Annotation:Axes:{number}"].upper()
    pixels, axes = images[number]["Pixels"], []
    shape = [values.shape[-1] if one == "S" else pixels[f"Size{one}"] for one in letters]
    shape = [n // shape[-1] if one == "C" and letters[-1] == "S" else n
             for one, n in zip(letters, shape, strict=True)]  # fmt: skip
    for letter in letters:
        told: dict[str, Any] = {"name": letter}
        field = "TimeIncrement" if letter == "T" else f"PhysicalSize{letter}"
        if field in pixels:
            unit = pixels[f"{field}Unit"]
            told["units"] = None if unit == "reference frame" else unit.replace("\u00b5", "u")
            told["spacing"] = pixels[field]
        if f"Position{letter}" in pixels.get("Plane", {}):
            told["origin"] = pixels["Plane"][f"Position{letter}"]
        axes.append(told)
    told_of_all = {"description": images[number].get("Description")}
    return Seen(values.reshape(shape), axes, told_of_all)


def by_ome_zarr(path: Path, name: str) -> Seen:
    """An image of OME-Zarr by ome-zarr-py; attributes of its first level as xarray has them."""
    from ome_zarr.format import FormatV05
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    root = path if (path / "0" / "zarr.json").exists() else path / name
    with quiet():
        (image, *_) = Reader(parse_url(str(root), fmt=FormatV05()))()
        values = np.asarray(image.data[0])
        level = by_xarray(root, "0")
    steps, *moves = image.metadata["coordinateTransformations"][0]
    origins = moves[0]["translation"] if moves else [None] * values.ndim
    units = {"micrometer": "um", "millimeter": "mm", "meter": "m", "second": "s"}
    axes = [
        {"name": axis["name"], "units": units.get(axis.get("unit"), axis.get("unit")),
         "spacing": step, "origin": origin}
        for axis, step, origin in zip(
            image.metadata["axes"], steps["scale"], origins, strict=True
        )
    ]  # fmt: skip
    return Seen(values, axes, level.whole, None, level.attributes, level.physical)


def by_hand_cfl(path: Path, name: str) -> Seen:
    """The lengths in the second line of the header, the fastest first; the data by NumPy."""
    dims = [int(word) for word in path.with_suffix(".hdr").read_text().splitlines()[1].split()]
    return bare(np.fromfile(path, "<c8").reshape(dims, order="F"))


def by_hand_idx(path: Path, name: str) -> Seen:
    """The header as the page of MNIST says it; the data by NumPy."""
    with path.open("rb") as file:
        code, rank = file.read(4)[2:]
        shape = np.fromfile(file, ">u4", rank)
        kind = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}[code]
        return bare(np.fromfile(file, kind).reshape(shape))


def by_hand_cifar(path: Path, name: str) -> Seen:
    """The records of CIFAR-10."""
    records = np.fromfile(path, "u1").reshape(-1, 1 + np.prod(IMAGE))
    return bare(records[:, 0] if name == "labels" else records[:, 1:].reshape(-1, *IMAGE))


def by_hand_netpbm(path: Path, name: str) -> Seen:
    """The lines of the header as they are written here, and the pixels by NumPy."""
    data = path.read_bytes()
    if data.startswith(b"P4"):
        _, sizes, pixels = data.split(b"\n", 2)
        width, height = map(int, sizes.split())
        rows = np.frombuffer(pixels, "u1").reshape(height, -1)
        return bare(np.unpackbits(rows, axis=1, count=width) == 0)
    if data.startswith(b"P7"):
        header, pixels = data.split(b"ENDHDR\n", 1)
        words = dict(line.split() for line in header.splitlines()[1:])
        shape = [int(words[word]) for word in (b"HEIGHT", b"WIDTH", b"DEPTH")]
        return bare(
            np.frombuffer(pixels, "u1" if words[b"MAXVAL"] == b"255" else ">u2").reshape(shape)
        )
    kind, sizes, largest, pixels = data.split(b"\n", 3)
    width, height = map(int, sizes.split())
    values = np.frombuffer(pixels, "u1" if largest == b"255" else ">u2")
    return bare(values.reshape((height, width, 3) if kind == b"P6" else (height, width)))


def by_pypng(path: Path, name: str) -> Seen:
    """16 bits of colour are too many for Pillow."""
    width, height, rows, about = png.Reader(filename=str(path)).read()
    values = np.array([list(row) for row in rows])
    if about["bitdepth"] == 1:
        values = values * 255
    planes = about["planes"]
    return bare(values.reshape((height, width, planes) if planes > 1 else (height, width)))


def by_pillow(path: Path, name: str) -> Seen:
    with Image.open(path) as image:
        return bare(np.asarray(image))


def by_hand_scidb(path: Path, name: str) -> Seen:
    """Records of the columns that the schema beside them has."""
    lines = path.with_name(f"{path.name}.schema").read_text().splitlines()
    made_up = [
        word for line in lines if line.startswith("unnamed: ") for word in line[9:].split(", ")
    ]
    names = re.findall(r"(\w+):\w+ NOT NULL", lines[0])
    types = re.fullmatch(r"format: \((.*)\)", lines[1])[1].split(", ")
    codes = {"float": "<f4", "double": "<f8", "bool": "?"}
    columns = [
        (one, codes.get(kind) or np.dtype(kind)) for one, kind in zip(names, types, strict=True)
    ]
    dims = re.findall(r"(\w+)=(-?\d+):(-?\d+):", lines[0])
    values = np.fromfile(path, columns)[name]
    axes = [
        {"name": None if one in made_up else one, "spacing": 1.0, "origin": float(low)}
        for one, low, _ in dims
    ]
    return Seen(values.reshape([int(high) - int(low) + 1 for _, low, high in dims]), axes)


class Unjudged(Exception):
    """No other reader has a type of this file."""


def by_rdata(path: Path, name: str) -> Seen:
    """A vector of a list, or of a file that is one, by the parser of the package `rdata`."""
    import rdata

    data = _integers_for_raw(gzip.decompress(path.read_bytes()))
    try:
        root = rdata.parser.parse_data(data).object
    except NotImplementedError as error:  # bytes in a list
        raise Unjudged from error
    if root.info.type.name == "VEC":
        names = [one.value.decode() for one in _attributes_of_r(root)["names"].value]
        root = root.value[names.index(name)]
    said = _attributes_of_r(root)
    values = np.asarray(root.value)
    if root.info.type.name == "STR":
        values = np.array([one.value.decode() for one in root.value])
    values = values.astype(bool) if root.info.type.name == "LGL" else values
    dims = [*map(int, said["dim"].value)] if "dim" in said else [values.size]
    axes: list[dict[str, Any]] = [{} for _ in dims]
    if "names" in said:
        axes[0]["labels"] = [one.value.decode() for one in said["names"].value]
    if "dimnames" in said:
        for axis, labels in zip(axes, said["dimnames"].value, strict=True):
            if labels.info.type.name == "STR":
                axis["labels"] = [one.value.decode() for one in labels.value]
        inner = _attributes_of_r(said["dimnames"])
        for axis, one in zip(axes, inner["names"].value if "names" in inner else (), strict=False):
            axis["name"] = one.value.decode() or None
    texts = {key: said[key].value[0].value.decode() for key in ("units", "comment") if key in said}
    whole = {"units": texts.get("units"), "description": texts.get("comment")}
    structural = ("dim", "dimnames", "names", "units", "comment", "class", "raconvert.NA")
    plain = {key: _value_of_r(node) for key, node in said.items() if key not in structural}
    return Seen(values.reshape(dims, order="F"), axes, whole, None, plain)


def _integers_for_raw(data: bytes) -> bytes:
    """The same serialization of a vector with integers in the place of bytes, which rdata lacks."""
    flags, count = struct.unpack_from(">2i", data, 23)
    if flags & 255 != 24:
        return data
    numbers = np.frombuffer(data, "u1", count, 31).astype(">i4").tobytes()
    return data[:23] + struct.pack(">2i", flags - 11, count) + numbers + data[31 + count :]


def _value_of_r(node: Any) -> Any:
    if node.info.type.name == "STR":
        values = [one.value.decode() for one in node.value]
    else:
        values = np.asarray(node.value).tolist()
    values = [bool(one) for one in values] if node.info.type.name == "LGL" else values
    return values[0] if len(values) == 1 else values


def _attributes_of_r(node: Any) -> dict[str, Any]:
    found, rest = {}, node.attributes
    while rest is not None and rest.tag is not None:
        tag = rest.tag.referenced_object or rest.tag
        found[tag.value.value.decode()] = rest.value[0]
        rest = rest.value[1]
    return found


def by_pandas(path: Path, name: str) -> Seen:
    """A long table: the columns that are no arrays are axes, each label or number once."""
    import pandas as pd

    return _of_columns(pd.read_csv(path, float_precision="round_trip"), name)


def by_openpyxl(path: Path, name: str) -> Seen:
    """The sheet that has a column of this name."""
    import openpyxl
    import pandas as pd

    book = openpyxl.load_workbook(path, data_only=True)
    try:
        for sheet in book:
            headers, *rows = sheet.iter_rows(values_only=True)
            if name in headers:
                return _of_columns(pd.DataFrame(rows, columns=headers), name)
    finally:
        book.close()
    raise KeyError(name)


def _of_columns(table: Any, name: str) -> Seen:
    """An array of a long table, by the order in which labels come first."""
    keys = axes_of_table([*table.columns])
    values = table[name].to_numpy()
    places = [table[key].drop_duplicates().tolist() for key in keys]
    if values.dtype.kind == "O":  # pandas has no complex numbers in CSV
        values = np.array([complex(one) for one in values])
    told: list[dict[str, Any]] = [
        {"name": _named(key), "places": place} for key, place in zip(keys, places, strict=True)
    ]
    return Seen(values.reshape([*map(len, places)]), told)


def by_pyarrow(path: Path, name: str) -> Seen:
    """A column of a long table, or of a row for each index of the first axis, with tensors."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
    column = table.column(name).combine_chunks()
    keys = axes_of_table(table.column_names)
    rows, inner, dims = len(column), [], None
    if isinstance(column.type, pa.FixedShapeTensorType):
        inner, dims = column.type.shape, column.type.dim_names
        column = column.storage
    while pa.types.is_fixed_size_list(column.type):
        inner = inner or [column.type.list_size]
        column = column.flatten()
    places = [list(dict.fromkeys(table.column(key).to_pylist())) for key in keys]
    first = [*map(len, places)] if keys else [rows]
    told: list[dict[str, Any]] = [{} for _ in (*first, *inner)]
    for axis, key, place in zip(told, keys, places, strict=False):
        axis.update(name=_named(key), places=place)
    for axis, label in zip(told[len(first) :], dims or (), strict=False):
        axis["name"] = label or None
    return Seen(column.to_numpy(zero_copy_only=False).reshape([*first, *inner]), told)


def axes_of_table(columns: list[str]) -> list[str]:
    """The columns before the last ones, which are arrays, in their order.

    An axis may have the name of an array, too.
    """
    arrays, last = 0, len(COLUMNS)
    for column in reversed(columns):
        if column not in COLUMNS[:last]:
            break
        arrays, last = arrays + 1, COLUMNS.index(column)
    return columns[: len(columns) - arrays]


def _named(column: str) -> str | None:
    """The name of an axis by that of its column: a number is none, nor one that is in its place."""
    return None if column.startswith("dim_") or column.endswith("_axis") else column


def bare(values: np.ndarray) -> Seen:
    """Values of which nothing more is said."""
    return Seen(values, [{} for _ in values.shape])


READERS = {
    "npy": by_numpy, "npz": by_numpy, "safetensors": by_safetensors, "wds.tar": by_webdataset, "mat": by_scipy,
    "ra": by_yaml, "h5": by_h5py, "nc": by_xarray, "zarr": by_xarray, "cdf": by_xarray,
    "nrrd": by_pynrrd,
    "nii": by_nibabel, "mha": by_simpleitk, "mrc": by_mrcfile, "rds": by_rdata,
    "fits": by_astropy, "har": by_harpy, "tif": by_tifffile,
    "ome.tif": by_tifffile_of_ome, "ome.zarr": by_ome_zarr,
    "csv": by_pandas, "parquet": by_pyarrow, "arrow": by_pyarrow, "xlsx": by_openpyxl,
    "scidb": by_hand_scidb, "zip": by_members, "tar": by_members, "bundle": by_members,
}  # fmt: skip
# Formats of few types and shapes, which know nothing but values.
OF_VALUES = {
    "cfl": by_hand_cfl, "idx": by_hand_idx, "png": by_pypng, "bmp": by_pillow, "gif": by_pillow,
    "jpg": by_pillow, "pnm": by_hand_netpbm, "webp": by_pillow, "cifar.bin": by_hand_cifar,
}  # fmt: skip
READERS |= OF_VALUES
MANY = {
    "npz", "fits", "rds", "wds.tar", "ome.tif", "ome.zarr", "safetensors", "mat", "h5", "nc",
    "cdf", "zarr", "har", "scidb", "zip", "tar", "bundle", "cifar.bin", "csv", "parquet", "arrow", "xlsx",
}  # fmt: skip
BETWEEN = (
    "zip", "tar", "bundle", "h5", "zarr", "nrrd", "ra", "nii", "mha", "nc", "cdf", "scidb",
    "csv", "parquet", "xlsx",
)  # fmt: skip
