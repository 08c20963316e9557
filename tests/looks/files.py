"""Files as people have them, made by libraries that are not ours: what a page is looked at with.

Each function writes one file below a folder and returns its path. What is in them can be named: a
head, cells, a map, a signal, a table of trade. So a mirrored, flattened or swapped picture is seen.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Maker = Callable[[Path], Path]

FILES: dict[str, Maker] = {}
RNG = np.random.default_rng(3)


def named(maker: Maker) -> Maker:
    FILES[maker.__name__] = maker
    return maker


# What is in them ----------------------------------------------------------------------------------


def inside(points: list[Any], center: tuple[float, ...], radii: tuple[float, ...]) -> Any:
    """True inside an ellipsoid."""
    return sum(((p - c) / r) ** 2 for p, c, r in zip(points, center, radii, strict=True)) < 1


def head(shape: tuple[int, int, int] = (96, 120, 40)) -> Any:
    """A head in RAS: a nose in front, and a bright spot on the right side only."""
    x, y, z = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    values = 300.0 * inside([x, y, z], (0, 0, 0), (0.7, 0.85, 0.9))
    values += 400 * inside([x, y, z], (0, -0.05, 0.05), (0.58, 0.7, 0.75))
    values -= 450 * inside([x, y, z], (0.15, 0, 0.1), (0.1, 0.3, 0.25))
    values -= 450 * inside([x, y, z], (-0.15, 0, 0.1), (0.1, 0.3, 0.25))
    values += 500 * inside([x, y, z], (0.4, 0.2, 0.3), (0.08, 0.08, 0.08))
    values += 300 * inside([x, y, z], (0, 0.88, -0.2), (0.08, 0.12, 0.15))
    return values + RNG.normal(0, 12, shape)


def cells(size: int = 200) -> Any:
    """Three channels: nuclei, membranes, a few spots."""
    y, x = np.mgrid[:size, :size]
    nuclei, rings, spots = np.zeros((3, size, size))
    for _ in range(14):
        cy, cx, r = *RNG.integers(20, size - 20, 2), RNG.integers(9, 16)
        far = np.hypot(y - cy, x - cx)
        nuclei += 3000 * np.exp(-((far / r) ** 4))
        rings += 1500 * np.exp(-(((far - 1.8 * r) / 2) ** 2))
        spots[cy - 2 : cy + 2, cx + r : cx + r + 4] = 4000
    return np.stack([nuclei, rings, spots]).astype("u2") + RNG.integers(
        0, 90, (3, size, size), "u2"
    )


def climate() -> tuple[Any, Any, Any]:
    """Temperatures of 12 months on 73 × 144 points, warm at the equator, a cold spot in the north."""
    lat, lon = np.linspace(90, -90, 73), np.arange(0, 360, 2.5)
    month = np.arange(12)[:, None, None]
    season = 12 * np.sin(np.deg2rad(lat))[None, :, None] * -np.cos(month / 12 * 2 * np.pi)
    values = 30 * np.cos(np.deg2rad(lat))[None, :, None] - 8 + season
    values = values + 4 * np.sin(np.deg2rad(lon))[None, None, :]
    values[:, 5:12, 120:130] -= 25
    return values, lat, lon


def scene() -> Any:
    """A sky, a sun and a hill in colors: 240 × 320."""
    y, x = np.mgrid[:240, :320]
    values = np.zeros((240, 320, 3))
    values[..., 0], values[..., 1], values[..., 2] = 120 + y / 3, 170 + y / 4, 250 - y / 5
    values[np.hypot(y - 60, x - 250) < 28] = (255, 220, 60)
    hill = y > 160 + 30 * np.sin(x / 40)
    values[hill] = np.stack([40 + y / 6, 120 - y / 6, 40 + 0 * y], -1)[hill]
    return np.clip(values, 0, 255).astype("u1")


# Bodies -------------------------------------------------------------------------------------------


def nifti(path: Path, values: Any, zooms: tuple[float, ...], **header: Any) -> Path:
    import nibabel

    affine = np.diag([*zooms[:3], 1.0])
    affine[:3, 3] = [-z * n / 2 for z, n in zip(zooms[:3], values.shape, strict=False)]
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_zooms(zooms)
    image.header.set_xyzt_units("mm", "sec")
    for key, value in header.items():
        image.header[key] = value
    nibabel.save(image, path)
    return path


@named
def head_float(folder: Path) -> Path:
    return nifti(folder / "head.nii.gz", head().astype("f4"), (1.9, 1.9, 4.0))


@named
def head_int16(folder: Path) -> Path:
    return nifti(folder / "head_int16.nii", head().astype("i2"), (1.9, 1.9, 4.0))


@named
def bold(folder: Path) -> Path:
    one = head((48, 60, 20))
    active = 1 + 0.3 * np.sin(np.arange(40) / 3)
    return nifti(folder / "bold.nii.gz", (one[..., None] * active).astype("i2"), (4, 4, 8, 2.5))


@named
def labels_of_a_head(folder: Path) -> Path:
    return nifti(folder / "labels.nii.gz", np.digitize(head(), [150, 500, 900]).astype("u1"),
                 (1.9, 1.9, 4.0))  # fmt: skip


@named
def computed_tomography(folder: Path) -> Path:
    import SimpleITK

    image = SimpleITK.GetImageFromArray((head().T - 700).astype("i2"))
    image.SetSpacing((1.9, 1.9, 4.0))
    path = folder / "ct.nrrd"
    SimpleITK.WriteImage(image, str(path))
    return path


@named
def dicom_series(folder: Path) -> Path:
    import SimpleITK

    target = folder / "study"
    target.mkdir(exist_ok=True)
    volume = head((64, 80, 12)).T.astype("i2")
    writer = SimpleITK.ImageFileWriter()
    writer.KeepOriginalImageUIDOn()
    for z, plane in enumerate(volume):
        image = SimpleITK.GetImageFromArray(plane)
        image.SetSpacing((2.8, 2.8))
        for key, text in (
            ("0008|0060", "MR"), ("0020|000d", "1.2.3"), ("0020|000e", "1.2.3.4"),
            ("0008|0018", f"1.2.3.4.{z + 1}"), ("0020|0013", str(z + 1)), ("0020|0052", "1.2.9"),
            ("0020|0037", "1\\0\\0\\0\\1\\0"), ("0020|0032", f"-89\\-112\\{z * 8.0 - 40}"),
            ("0018|0050", "8"), ("0010|0010", "Nobody^Ada"), ("0020|0011", "4"),
            ("0008|103e", "t1 axial"), ("0018|1030", "head routine"),
        ):  # fmt: skip
            image.SetMetaData(key, text)
        writer.SetFileName(str(target / f"IM{z:04}.dcm"))
        writer.Execute(image)
    return target


@named
def k_space(folder: Path) -> Path:
    values = np.fft.fftshift(np.fft.fft2(head((96, 120, 3))[..., 1])).astype("c8")
    path = folder / "kspace.npy"
    np.save(path, values)
    return path


# Micrographs, photographs --------------------------------------------------------------------------


@named
def cells_ome_tiff(folder: Path) -> Path:
    import tifffile

    path = folder / "cells.ome.tif"
    tifffile.imwrite(path, cells(), metadata={
        "axes": "CYX", "PhysicalSizeX": 0.32, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.32,
        "PhysicalSizeYUnit": "µm", "Channel": {"Name": ["DAPI", "Actin", "Spots"]},
    })  # fmt: skip
    return path


@named
def cells_ome_zarr(folder: Path) -> Path:
    import zarr
    from ome_zarr.writer import write_image

    path = folder / "cells.ome.zarr"
    movie = np.stack([np.roll(cells(128), 4 * t, -1) for t in range(5)])
    group = zarr.open_group(str(path), mode="w")
    write_image(movie, group, axes="tcyx", scaler=None)
    units = {
        "t": ("second", 30.0),
        "c": (None, 1.0),
        "y": ("micrometer", 0.5),
        "x": ("micrometer", 0.5),
    }
    own = dict(group.attrs["ome"])
    (pyramid,) = own["multiscales"]
    for axis in pyramid["axes"]:
        if unit := units[axis["name"]][0]:
            axis["unit"] = unit
    steps = [step for _, step in units.values()]
    for level in pyramid["datasets"]:
        first = level["coordinateTransformations"][0]
        first["scale"] = [s * step for s, step in zip(first["scale"], steps, strict=True)]
    own["omero"] = {"channels": [
        {"label": name, "color": color, "active": True,
         "window": {"min": 0, "max": 9999, "start": 0, "end": 5000}}
        for name, color in (("DAPI", "0000FF"), ("Actin", "00FF00"), ("Spots", "FF0000"))
    ]}  # fmt: skip
    group.attrs["ome"] = own
    return path


@named
def photograph(folder: Path) -> Path:
    from PIL import Image

    path = folder / "hill.png"
    Image.fromarray(scene()).save(path)
    return path


@named
def photograph_jpeg(folder: Path) -> Path:
    from PIL import Image

    path = folder / "hill.jpg"
    Image.fromarray(scene().repeat(5, 0).repeat(5, 1)).save(path, quality=90)
    return path


@named
def animation(folder: Path) -> Path:
    from PIL import Image

    path = folder / "sun.gif"
    frames = [Image.fromarray(np.roll(scene()[::2, ::2], 10 * n, 1)) for n in range(8)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=80, loop=0)
    return path


@named
def icon(folder: Path) -> Path:
    from PIL import Image

    path = folder / "icon.png"
    Image.fromarray(scene()[::15, ::20]).save(path)
    return path


@named
def lattice(folder: Path) -> Path:
    """Two odd types: booleans and a column of complex numbers."""
    path = folder / "lattice.npz"
    spins = RNG.random((64, 64)) < 0.5
    np.savez(path, spins=spins, phase=np.exp(1j * np.arange(64)), energy=np.float64(-1.7))
    return path


@named
def digits(folder: Path) -> Path:
    import subprocess
    import sys

    script = "docs/examples/make_digits.py"
    subprocess.run([sys.executable, script, str(folder / "digits")], check=True, stdout=-3)
    return folder / "digits"


@named
def bilevel(folder: Path) -> Path:
    import tifffile

    path = folder / "page.tif"
    tifffile.imwrite(path, scene()[..., 0] > 150)
    return path


# Earth, sky ----------------------------------------------------------------------------------------


@named
def temperatures(folder: Path) -> Path:
    import netCDF4

    values, lat, lon = climate()
    path = folder / "temperature.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, axis, unit in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
            file.createDimension(name, len(axis))
            file.createVariable(name, "f8", (name,))[:] = axis
            file[name].units = unit
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(12) * 30
        file["time"].units = "days since 2020-01-15"
        one = file.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32768)
        one.scale_factor, one.add_offset, one.units = 0.01, 273.15, "K"
        one.long_name = "temperature at 2 m"
        one[:] = np.ma.masked_where(np.zeros(values.shape, bool), values + 273.15)
        one[:, 40:50, 20:40] = np.ma.masked
    return path


@named
def temperatures_classic(folder: Path) -> Path:
    from scipy.io import netcdf_file

    values, lat, _ = climate()
    path = folder / "classic.nc"
    with netcdf_file(path, "w") as file:
        file.createDimension("month", 12)
        file.createDimension("lat", len(lat))
        one = file.createVariable("zonal_mean", "f4", ("month", "lat"))
        one[:], one.units = values.mean(-1), b"degC"
        file.createVariable("lat", "f4", ("lat",))[:] = lat
    return path


@named
def galaxy(folder: Path) -> Path:
    from astropy.io import fits

    y, x = np.mgrid[-100:100, -120:120]
    values = 20 + 5000 * np.exp(-np.hypot(y, x / 2) / 9) + RNG.normal(0, 3, y.shape)
    values[30:34, 40:44] = 60000
    values[150, :] = np.nan
    path = folder / "galaxy.fits"
    hdu = fits.PrimaryHDU(values.astype("f4"))
    hdu.header["BUNIT"] = "adu"
    hdu.header["OBJECT"] = "a galaxy"
    hdu.writeto(path, overwrite=True)
    return path


@named
def map_of_density(folder: Path) -> Path:
    import mrcfile

    path = folder / "map.mrc"
    with mrcfile.new(path, head((40, 48, 56)).T.astype("f4"), overwrite=True) as file:
        file.voxel_size = 1.5
    return path


# Signals, tables, models ---------------------------------------------------------------------------


@named
def sleep(folder: Path) -> Path:
    import edfio

    t = np.arange(60 * 100) / 100
    signals = [
        edfio.EdfSignal(30 * np.sin(2 * np.pi * f * t) * (1 + np.sin(t / 9)), 100, label=name,
                        physical_dimension="uV", physical_range=(-100, 100))
        for f, name in ((2, "EEG C3"), (10, "EEG O1"), (1.2, "ECG"))
    ]  # fmt: skip
    path = folder / "sleep.edf"
    edfio.Edf(signals).write(path)
    return path


@named
def signal(folder: Path) -> Path:
    path = folder / "walk.npy"
    np.save(path, np.cumsum(RNG.normal(size=50_000)))
    return path


@named
def trade(folder: Path) -> Path:
    from harpy import HarFileIO, HeaderArrayObj

    regions, goods = ["EU", "USA", "China", "RoW"], ["food", "steel", "cars", "services", "energy"]
    sets = [
        {"name": name, "status": "k", "dim_type": "Set", "dim_desc": labels}
        for name, labels in (("COMM", goods), ("REG", regions), ("DST", regions))
    ]
    values = (RNG.random((5, 4, 4)) * 900).astype("f4")
    text = "exports at market prices, million USD"
    path = folder / "trade.har"
    made = HeaderArrayObj.HeaderArrayFromData("VXMD", values, "VXMD", text, sets=sets)
    HarFileIO.writeHeaders(str(path), [made])
    return path


@named
def people(folder: Path) -> Path:
    rows = 500
    table = np.zeros(rows, [("name", "S8"), ("born", "M8[D]"), ("height", "f4"), ("smokes", "?"),
                            ("site", "U6")])  # fmt: skip
    table["name"] = [f"id{n}" for n in range(rows)]
    table["born"] = np.datetime64("1950-01-01") + RNG.integers(0, 20000, rows)
    table["height"], table["smokes"] = RNG.normal(172, 9, rows), RNG.random(rows) < 0.2
    table["site"] = np.array(["Graz", "Wien", "Łódź"])[RNG.integers(0, 3, rows)]
    path = folder / "people.npy"
    np.save(path, table)
    return path


@named
def survey_of_prices(folder: Path) -> Path:
    """A sheet as a statistical office sends it: a quarter in each row, a price in each column."""
    from openpyxl import Workbook

    path = folder / "prices.xlsx"
    book = Workbook()
    sheet = book.active
    sheet.title = "CPI"
    sheet.append(["quarter", "food", "energy", "rent"])
    for n in range(40):
        sheet.append(
            [f"{2014 + n // 4}Q{n % 4 + 1}", 100 + 0.6 * n, 90 + 25 * np.sin(n / 5), 100.0 + n]
        )
    book.save(path)
    return path


@named
def table_csv(folder: Path) -> Path:
    import pandas

    path = folder / "gdp.csv"
    years = range(1990, 2024)
    pandas.DataFrame({
        "year": years, "AUT": [160 + 7.5 * (y - 1990) for y in years],
        "POL": [65 + 18.0 * (y - 1990) for y in years], "GRC": [None, *[100 + 3.1 * n for n in range(33)]],
    }).to_csv(path, index=False)  # fmt: skip
    return path


@named
def words_of_many(folder: Path) -> Path:
    path = folder / "words.npy"
    np.save(path, np.array([["שלום", "مرحبا"], ["hello", "你好"], ["Grüße", "👩‍🚀"]]))
    return path


@named
def table_parquet(folder: Path) -> Path:
    import pandas

    path = folder / "weather.parquet"
    days = pandas.date_range("2024-01-01", periods=365)
    warm = 10 + 12 * np.sin((np.arange(365) - 100) / 58)
    pandas.DataFrame({"day": days, "t_max": warm + 4, "t_min": warm - 4}).to_parquet(path)
    return path


@named
def workspace(folder: Path) -> Path:
    from scipy.io import savemat

    path = folder / "workspace.mat"
    many = {f"run{n:02}": np.cumsum(RNG.normal(size=300)) for n in range(30)}
    savemat(path, {"image": scene()[..., 0], "gain": 3.5, "label": "patch clamp", **many})
    return path


@named
def experiment(folder: Path) -> Path:
    import h5py

    path = folder / "experiment.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "two days"
        for day in ("monday", "tuesday"):
            group = file.create_group(day)
            group["camera"] = np.stack([np.roll(scene()[::4, ::4, 0], n, 1) for n in range(20)])
            group["pressure"] = np.cumsum(RNG.normal(size=2000))
            group["pressure"].attrs["units"] = "Pa"
            group["offsets"] = np.arange(50_000_0, dtype="i8")
            group["temperature"] = 21.5
            group["notes"] = np.array([b"started", b"stopped"], "S8")
    return path


@named
def model(folder: Path) -> Path:
    from safetensors.numpy import save_file

    path = folder / "model.safetensors"
    save_file({f"layer.{n}.{what}": RNG.normal(0, 0.1, shape).astype("f4") for n in range(12)
               for what, shape in (("weight", (64, 64)), ("bias", (64,)))}, path)  # fmt: skip
    return path


@named
def damaged(folder: Path) -> Path:
    path = folder / "damaged.npz"
    np.savez_compressed(path, good=scene()[..., 0], bad=RNG.normal(size=(200, 200)))
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("bad.npy").header_offset
    with path.open("r+b") as file:
        file.seek(offset + 5000)
        file.write(b"\xff" * 100)
    return path
