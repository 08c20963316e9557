"""What is written while the system fails: sources, destination and how it is read."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np

import raconvert
from raconvert.errors import Corrupt

VIEW = "refs-"  # how the names of cases begin that write a view of arrays where they lie
# `sources` are names in the folder of sources, of the old (0) and the new run (1); `read` are the
# files that are read together, a glob or names; `options` are those of `convert`.
Case = namedtuple("Case", "name sources target options read")


def one(name: str, target: str, source: str = "x.npy", **options: Any) -> Case:
    return Case(name, source, target, options, (target.partition("#")[0],))


CASES = [
    one("ra", "x.ra"),
    one("ra-blocks", "x.ra", "x.npz#x"),
    one("ra-lz4", "x.ra", out_opts={"encoding": "lz4"}),
    one("ra-sidecar", "x.ra", "told.ra"),
    one("npy", "x.npy", "x.ra"),
    one("npy-sidecar", "x.npy", "told.ra", meta="sidecar"),
    one("npz", "x.npz"),
    one("npz-deflate", "x.npz", out_opts={"compress": "deflate"}),
    one("png", "x.png"),
    one("mat-6", "x.mat"),
    one("mat-7.3", "x.mat", out_opts={"version": "7.3"}),
    one("nrrd", "x.nrrd"),
    one("nrrd-gzip", "x.nrrd", out_opts={"encoding": "gzip"}),
    one("nhdr", "x.nhdr"),
    one("nhdr-gzip-sidecar", "x.nhdr", "told.ra", out_opts={"encoding": "gzip"}, meta="sidecar"),
    one("hdf5", "x.h5"),
    one("hdf5-gzip", "x.h5", out_opts={"compress": "gzip"}),
    one("netcdf3", "x.cdf"),
    one("netcdf3-records", "x.cdf", "told.ra", out_opts={"version": "5"}),
    one("har", "x.har", dtype="float32"),
    one("scidb", "x.scidb"),
    one("scidb-sidecar", "x.scidb", "told.ra", meta="sidecar"),
    one("bundle", "x", "two.npz", to="bundle"),
    one("zip", "x.zip", "two.npz"),
    one("tar", "x.tar", "two.npz"),
    one("zarr", "x.zarr", "two.npz"),
    one("zarr-2", "x.zarr", "two.npz", out_opts={"format": "2"}),
    one("tiff", "x.tif"),
    one("ometiff", "x.ome.tif"),
    one("omezarr", "x.ome.zarr", out_opts={"levels": "2"}),
    one("bmp", "x.bmp"),
    one("pnm", "x.pgm"),
    one("gif", "x.gif"),
    one("idx", "x.idx"),
    one("idx-gzip", "x.idx.gz"),
    one("safetensors", "x.safetensors", "two.npz"),
    one("nifti", "x.nii", "told.ra"),
    one("nifti-gzip", "x.nii.gz"),
    one("nifti-pair", "x.img", "told.ra"),
    one("nifti-pair-gzip", "x.img.gz"),
    one("cfl", "x.cfl", dtype="complex64"),
    one("mha", "x.mha"),
    one("rds", "x.rds", "two.npz"),
    one("mrc", "x.mrc", dtype="float32"),
    one("webdataset", "x.wds.tar"),
    Case("webdataset-shards", "x.npy", "x-000000.tar", {"to": "webdataset", "out_opts": {
        "samples": "20"}}, ("x-*.tar",)),
    one("csv", "x.csv"),
    one("parquet", "x.parquet"),
    one("arrow", "x.arrow"),
    one("xlsx", "x.xlsx"),
    one("fits", "x.fits", dtype="float32"),
    one("mhd", "x.mhd", "told.ra"),
    one("mhd-zlib", "x.mhd", out_opts={"compress": "zlib"}),
    one("cifar", "x.bin", "cifar.npz", to="cifar"),
    one("raw", "x.npy", "x.bin", from_="raw", in_opts={"dtype": "uint8", "shape": "60,70"}),
    one("refs-kerchunk", "x.json", digest=True),
    one("refs-nrrd", "x.nhdr"),
    one("refs-mhd", "x.mhd"),
    one("refs-envi", "x.hdr"),
    one("refs-vrt", "x.vrt"),
    one("refs-hdf5", "x.h5"),
    Case("items", ["item0.ra", "item1.ra"], "x.ra", {}, ("x.ra",)),
    Case("planes", "cube.npy", "{}.png", {}, ("*.png",)),
    Case("planes-sidecar", "cube.npy", "{}.png", {"meta": "sidecar"}, ("*.png",)),
    Case("labels", ["1/a.npy", "2/a.npy"], "x.ra", {"labels": "y.npy"}, ("x.ra", "y.npy")),
    Case("out-dir", "two.npz", None, {"out_dir": ".", "to": "ra"}, ("*.ra",)),
    Case("each", ["item0.ra", "item1.ra"], None, {"out_dir": ".", "to": "npy"}, ("*.npy",)),
    one("add-npz", "x.npz#more"),
    one("add-zip", "x.zip#more"),
    one("add-tar", "x.tar#more"),
    one("add-bundle", "x#more", to="bundle"),
    one("add-hdf5", "x.h5#more"),
    one("add-mat-6", "x.mat#more"),
    one("add-mat-7.3", "x.mat#more"),
    one("add-har", "x.har#more", dtype="float32"),
    one("add-safetensors", "x.safetensors#more"),
    one("add-netcdf3", "x.cdf#more"),
    one("add-zarr", "x.zarr#more"),
    one("add-zarr-2", "x.zarr#more"),
    # The first one proves what the shortcut (`files/_small.c`) makes of the others.
    Case("lane", [f"{n}.npy" for n in "abcdef"], None, {"out_dir": ".", "to": "ra"}, ("*.ra",)),
]  # fmt: skip


def make_sources(folder: Path, run: int) -> None:
    """Write the sources of a run: the same names, shapes and types in both, other values."""
    folder.mkdir()
    rng = np.random.default_rng(run)
    values = rng.integers(0, 200, (60, 70), "u1")
    told = raconvert.Metadata(description=f"run {run}")
    np.save(folder / "x.npy", values)
    values.tofile(folder / "x.bin")
    images = rng.integers(0, 256, (5, 3, 32, 32), "u1")
    np.savez(folder / "cifar.npz", images=images, labels=np.arange(5, dtype="u1"))
    np.save(folder / "cube.npy", rng.integers(0, 200, (3, 5, 7), "u1"))
    for number, name in enumerate("abcdef"):
        np.save(folder / f"{name}.npy", values[number])
    np.savez(folder / "x.npz", x=values)
    np.savez(folder / "two.npz", a=values, b=values[::-1])
    raconvert.write(folder / "x.ra", values)
    raconvert.write(folder / "told.ra", values, meta=told)
    for number in range(2):
        meta = raconvert.Metadata(attributes={"n": 10 * run + number})
        raconvert.write(folder / f"item{number}.ra", values + number, meta=meta)
        (folder / f"{number + 1 + run}").mkdir()
        np.save(folder / f"{number + 1 + run}" / "a.npy", values[number])


def prepare(case: Case) -> None:
    """Write the container that an array is added to, with another array in it."""
    if not case.name.startswith("add-"):
        return
    _, _, form = case.name.partition("-")
    options = {"mat-7.3": {"version": "7.3"}, "zarr-2": {"format": "2"}}.get(form)
    other = np.arange(700, dtype="f4").reshape(70, 10)
    raconvert.write(case.read[0], {"other": other}, to=case.options.get("to"), out_opts=options)


def convert(case: Case, sources: Path, run: int, *, overwrite: bool = False) -> list[Any]:
    """Write the destination of a case in the working directory; return the files that failed."""
    if case.name.startswith(VIEW):
        raconvert.refs(
            sources / case.sources, case.target, overwrite=overwrite, trust=["external"],
            **case.options,
        )  # fmt: skip
        return []
    names = case.sources
    if case.name == "labels":
        names = [f"{label + run}/a.npy" for label in (1, 2)]
    words = [f"{sources}/{name}" for name in ([names] if isinstance(names, str) else names)]
    return raconvert.convert(
        words[0] if isinstance(names, str) else words,
        case.target,
        overwrite=overwrite,
        **case.options,
    ).failed


def read(case: Case, scratch: str) -> None:
    """Read what a case has written as its users do; an error means that it is no whole."""
    if case.name.startswith(VIEW):
        found = raconvert.verify(case.target, trust=["external"])
        if "references" not in found or not found["same"]:
            raise Corrupt("is not what its proof says", path=case.target)
        return
    for number, name in enumerate(case.read):
        if "*" in name:
            raconvert.convert(name, os.path.join(scratch, "read.npz"), stack=True, overwrite=True)
        else:
            with raconvert.open(name) as opened:
                if getattr(getattr(opened, "meta", None), "items", None) is not None:
                    list(opened.meta.items())
            raconvert.read(name)
        assert number < 9
