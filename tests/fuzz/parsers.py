"""What is fuzzed: for each parser the name of its files, its seeds, and changes that know it."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import NamedTuple

import numcodecs
import numpy as np
import ra_bytes
import shapes
from raconvert.plugins.zarr.codecs import with_crc32c

from raconvert import registry
from raconvert.catalogue import ROWS

from . import mutate

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SEED_BYTES = 20_000  # of a seed at most: larger ones make every change slow and unlikely
SHAPE_BYTES = 600
SPLIT = b"\n--8<--\n"  # between the files of an input that is several


class Parser(NamedTuple):
    """`names` are the files that an input is: split where it holds `SPLIT`."""

    names: tuple[str, ...]
    seeds: str  # a pattern below the fixtures
    change: mutate.Change | None = None
    from_: str | None = None


PARSERS: dict[str, Parser] = {
    "ra": Parser(("x.ra",), ""),
    "sidecar": Parser(("x.ra.yaml",), "", mutate.described),
    "items": Parser(("x.ra.items.jsonl",), ""),
    "zip": Parser(("x.zip",), "", mutate.archive),
    "tar": Parser(("x.tar",), "", mutate.tar),
    "npy": Parser(("x.npy",), "npy/**/*.npy", mutate.npy, "npy"),
    "npz": Parser(("x.npz",), "npy/**/*.npz", mutate.archive, "npz"),
    "png": Parser(("x.png",), "png/*.png", mutate.png, "png"),
    "nrrd": Parser(("x.nrrd",), "nrrd/*.nrrd", mutate.nrrd, "nrrd"),
    "har": Parser(("x.har",), "har/**/*.har", mutate.har, "har"),
    "mat": Parser(("x.mat",), "mat/*.mat", mutate.mat, "mat"),
    "scidb": Parser(("x.scidb.schema", "x.scidb"), "", None, "scidb"),
    "hdf5": Parser(("x.h5",), "hdf5/*.h5", None, "hdf5"),
    "gif": Parser(("x.gif",), "image/*.gif", None, "gif"),
    "tiff": Parser(("x.tif",), "image/*.tif", None, "tiff"),
    "ometiff": Parser(("x.ome.tif",), "ome/*.ome.tif", None, "ometiff"),
    "omezarr": Parser(("x.ome.zarr",), "", mutate.json_text, "omezarr"),
    "jpeg": Parser(("x.jpg",), "image/*.jpg", None, "jpeg"),
    "webp": Parser(("x.webp",), "image/*.webp", None, "webp"),
    "bmp": Parser(("x.bmp",), "image/*.bmp", None, "bmp"),
    "netpbm": Parser(("x.pnm",), "image/*.p?m", None, "netpbm"),
    "idx": Parser(("x.idx",), "learning/*idx*", None, "idx"),
    "safetensors": Parser(("x.safetensors",), "learning/*.safetensors", None, "safetensors"),
    "dicom": Parser(("x.dcm",), "dicom/*", None, "dicom"),
    "edf": Parser(("x.edf",), "edf/*.?df", None, "edf"),
    "tfrecord": Parser(("x.tfrecord",), "tfrecord/*.tfrecord*", None, "tfrecord"),
    "gguf": Parser(("x.gguf",), "models/*.gguf", None, "gguf"),
    "lmdb": Parser(("x.lmdb",), "lmdb/*.lmdb", None, "lmdb"),
    "rds": Parser(("x.rds",), "r/*.rds", None, "rds"),
    "rdata": Parser(("x.rdata",), "r/*.RData", None, "rdata"),
    "torch": Parser(("x.pt",), "models/*.pt*", mutate.archive, "torch"),
    "netcdf3": Parser(("x.nc",), "netcdf3/*.*", None, "netcdf3"),
    "nifti": Parser(("x.nii",), "volumes/*.nii*", None, "nifti"),
    "metaimage": Parser(("x.mha",), "volumes/*.mha", None, "metaimage"),
    "fits": Parser(("x.fits",), "fits/*.fits", None, "fits"),
    "csv": Parser(("x.csv",), "tables/*.csv", None, "csv"),
    "parquet": Parser(("x.parquet",), "tables/*.parquet", None, "parquet"),
    "arrow": Parser(("x.arrow",), "tables/*.arrow", None, "arrow"),
    "xlsx": Parser(("x.xlsx",), "tables/*.xlsx", mutate.archive, "xlsx"),
    "mrc": Parser(("x.mrc",), "", None, "mrc"),
    "webdataset": Parser(("x.tar",), "", mutate.tar, "webdataset"),
    "cfl": Parser(("x.hdr", "x.cfl"), "", None, "cfl"),
    "cifar": Parser(("x.cifar.bin",), "learning/*.cifar.bin", None, "cifar"),
    "refs": Parser(("x.json",), "", mutate.json_text),
    "zarr-3": Parser(("zarr.json",), "", mutate.json_text, "zarr"),
    "zarr-2": Parser((".zarray",), "", mutate.json_text, "zarr"),
    "zarr-chunk": Parser(("0.0", "zarr.json"), "", None, "zarr"),
    "zarr-chunk-2": Parser(("0.0", ".zarray"), "", None, "zarr"),
    "detect": Parser(("x.dat",), "*/*"),
}
_CODECS = (
    numcodecs.Zlib(), numcodecs.BZ2(), numcodecs.LZMA(), numcodecs.LZ4(), numcodecs.Zstd(),
    numcodecs.Blosc(), numcodecs.GZip(), numcodecs.Delta("<i2"), numcodecs.Shuffle(2),
    numcodecs.FixedScaleOffset(1, 2, "<i2", "<i4"), numcodecs.AsType("<i4", "<i2"),
    numcodecs.PackBits(), numcodecs.CRC32(), numcodecs.Adler32(), numcodecs.Fletcher32(),
)  # fmt: skip
_SHAPE_SUFFIXES = {
    "ra": (".ra",), "zip": (".zip",), "tar": (".tar",), "npy": (".npy",), "npz": (".npz",),
    "png": (".png",), "nrrd": (".nrrd",), "har": (".har",), "mat": (".mat",), "hdf5": (".h5",),
    "gif": (".gif",), "tiff": (".tif",), "ometiff": (".ome.tif",), "omezarr": (".ome.zarr",),
    "jpeg": (".jpg",), "webp": (".webp",), "bmp": (".bmp",),
    "netpbm": (".ppm", ".pgm", ".pam"), "idx": (".idx.gz",), "safetensors": (".safetensors",),
    "rds": (".rds",), "rdata": (".rda",),
    "nifti": (".nii",), "metaimage": (".mha",), "netcdf3": (".nc3",), "dicom": (".dcm",),
    "csv": (".csv",), "xlsx": (".xlsx",), "webdataset": (".wds.tar",),
}  # fmt: skip


def seeds(name: str) -> list[bytes]:
    """Return the files that inputs are made of: fixtures, samples, the worst shapes in small."""
    parser = PARSERS[name]
    paths = sorted(FIXTURES.glob(parser.seeds)) if parser.seeds else []
    found = [path.read_bytes() for path in paths if path.is_file() and _is_small(path)]
    found += _made(name)
    for row in ROWS:
        if name in (row.name, "detect"):
            found += [bytes(data) for data in registry.load(row).FORMAT.samples.values()]
    return sorted({seed for seed in found if seed})


def _is_small(path: Path) -> bool:
    return path.stat().st_size <= SEED_BYTES and path.suffix not in (".py", ".md")


def _made(name: str) -> list[bytes]:
    if name in ("sidecar", "items"):
        end = ".yaml" if name == "sidecar" else ".items.jsonl"
        made = [s.make(SHAPE_BYTES) for s in shapes.SHAPES.values() if s.suffix == ".ra"]
        return [
            files[end] for files in made if isinstance(files, dict) and end in files
        ] + _OURS.get(name, [])
    if name == "refs":
        made = [s.make(SHAPE_BYTES) for n, s in shapes.SHAPES.items() if n.startswith("view_of")]
        return [data for data in made if isinstance(data, bytes)]
    if name.startswith("zarr-chunk"):
        return _zarr_chunks(3 if name == "zarr-chunk" else 2)
    if name.startswith("zarr"):
        samples = registry.load(registry.by_name("zarr")).FORMAT.samples
        sample = bytes(samples["two.zarr" if name == "zarr-2" else "three.zarr"])
        return [sample, sample.replace(b'">f4"', b'"<f8"').replace(b'"int16"', b'"float64"')]
    if name == "cfl":
        texts = b"# Dimensions\n2 3 1 \n# Command\nx\n", b"# Dimensions\n6 " + b"1 " * 15 + b"\n"
        return [text + SPLIT + bytes(48) for text in texts]
    if name == "scidb":
        made = [s.make(SHAPE_BYTES) for s in shapes.SHAPES.values() if s.suffix == ".scidb"]
        good = [
            Path(f"{path}.schema").read_bytes() + SPLIT + path.read_bytes()
            for path in sorted(FIXTURES.glob("scidb/**/*.scidb"))
        ]
        return good + [files[".schema"] + SPLIT + files[""] for files in made]
    small = [
        s.make(SHAPE_BYTES if s.suffix != ".h5" else 4000)
        for s in shapes.SHAPES.values()
        if s.suffix in _SHAPE_SUFFIXES.get(name, ())
    ]
    found = [files for files in small if isinstance(files, bytes) and len(files) <= SEED_BYTES]
    if name == "ra":
        found += [sample()[0] for sample in ra_bytes.SAMPLES.values()]
    return found


def _zarr_chunks(version: int) -> list[bytes]:
    """Chunks and shards of four numbers in every codec, each with the metadata of its array."""
    raw = np.arange(4, dtype="<i2").tobytes()
    texts = struct.pack("<I", 4) + b"".join(struct.pack("<I", n) + b"abc"[:n] for n in range(4))
    fields = {"fill_value": 7, "shape": [3, 2], "zarr_format": version}
    found = []
    if version == 2:
        fields |= {"chunks": [2, 2], "dtype": "<i2", "order": "F", "compressor": None}
        for codec in _CODECS:
            chunk = bytes(codec.encode(np.frombuffer(raw, "<i2")))
            said = {**fields, "filters": [codec.get_config()]}
            found.append(chunk + SPLIT + json.dumps(said).encode())
        said = {**fields, "dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": ""}
        return [*found, texts + SPLIT + json.dumps(said).encode()]
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    fields |= {
        "node_type": "array", "data_type": "int16", "chunk_key_encoding":
        {"name": "v2", "configuration": {"separator": "."}},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    }  # fmt: skip
    index = b"".join(struct.pack("<QQ", 64 + 2 * n, 2) for n in range(4))
    shard = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": [little], "index_codecs": [little],
        "index_location": "start"}}  # fmt: skip
    checked = [little, {"name": "crc32c"}]
    return [
        index + raw + SPLIT + json.dumps({**fields, "codecs": [shard]}).encode(),
        with_crc32c(raw) + SPLIT + json.dumps({**fields, "codecs": checked}).encode(),
        texts + SPLIT + json.dumps(
            {**fields, "data_type": "string", "fill_value": "", "codecs": ["vlen-utf8"]}
        ).encode(),
    ]  # fmt: skip


SIDECAR = b"""attributes: {text: x, number: 1, list: [1.5, null, true], raw: !!binary AAEC, date: 2020-01-01}
description: some text
units: K
axes:
- {name: x, spacing: 0.5, origin: -1, units: mm, kind: space, labels: [a, b, c]}
formats:
  nrrd: {space: RAS, comments: [c]}
index_order: F
"""
_OURS = {
    "sidecar": [
        re.sub(rb"\n.*", b"\n", shapes.described("")[".yaml"], count=1, flags=re.DOTALL) + SIDECAR
    ],
    "items": [b'{"a": 1}\n{"b": 2}\n', b'{"a": {"b": [1, "x", null, 1.5]}}\n{"a": 2}\n'],
}
