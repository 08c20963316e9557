"""The law: what is reported exact is exact, and somebody else says so, for every ordered pair.

Sources are made by other programs (`writers`, h5py, pynrrd, Pillow) from seeded values; each is
converted with ``strict``, so that nothing but exact conversions go through, and the result is read
by an independent reader: the type, the shape, every bit, and everything that was said of the array.
"""

from __future__ import annotations

import json
import random
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import yaml
from pairs_tables import DTYPES, FORMATS, IN_TABLES, seen_from
from readers import READERS
from writers import NAME, WRITERS, can_write, column_major_ra, quiet

import raconvert
from raconvert.errors import WouldLose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

convert = partial(raconvert.convert, sync=False)
SHAPES = [
    (), (1,), (5,), (0,), (2, 3), (3, 1), (1, 4), (2, 2), (0, 3), (2, 3, 4), (3, 2, 2), (2, 1, 3),
    (4, 3, 3), (2, 3, 2, 2), (1, 1, 2, 1),
]  # fmt: skip
CASES_PER_SOURCE = 60
# Signed zeros, infinities, quiet and signalling NaNs with payloads, the least subnormal.
ODD_BITS = {
    2: [0x8000, 0x7C00, 0xFE01, 0x7E55, 0x0001],
    4: [0x80000000, 0xFF800000, 0x7FC00123, 0xFFC0BEEF, 0x00000001],
    8: [1 << 63, 0x7FF0 << 48, 0x7FF8_0000_0000_0123, 0xFFF8_DEAD_0000_0001, 1],
}


def values_for(generator: random.Random) -> np.ndarray:
    """Return values of a random type, shape and order in memory; any bits that the type has."""
    dtype, shape = DTYPES[generator.choice(list(DTYPES))], generator.choice(SHAPES)
    count = int(np.prod(shape))
    if dtype.kind in "bSU" or dtype.names is not None:
        numbers = np.array([generator.randrange(2) for _ in range(count)], "u1")
        values = numbers.astype(bool) if dtype.kind == "b" else np.zeros(count, dtype)
        if dtype.kind in "SU":
            values = np.array([generator.choice(["", "a", "Zq"]) for _ in range(count)], dtype)
        elif dtype.names is not None:
            values["a"], values["b"] = numbers, -0.5
    else:
        values = np.frombuffer(generator.randbytes(count * dtype.itemsize), dtype).copy()
    part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if dtype.kind in "fc" and count and part in ODD_BITS:
        order = dtype.str[0] if dtype.str[0] in "<>" else "<"
        bits = values.view(f"{order}u{part}")
        for place in range(0, bits.size, 2):
            bits[place] = generator.choice(ODD_BITS[part])
    values = values.reshape(shape)
    return np.asarray(values, order=generator.choice("CF"))


def is_same(wanted: np.ndarray, got: np.ndarray) -> bool:
    """True if type (but for byte order), shape and every bit are the same."""
    if wanted.dtype.kind != "U":
        wanted, got = (v.astype(v.dtype.newbyteorder("<")) for v in (wanted, got))
    elif wanted.dtype.byteorder != got.dtype.byteorder:
        wanted = wanted.astype(got.dtype.newbyteorder("=").newbyteorder(got.dtype.byteorder))
    types = wanted.dtype == got.dtype
    return types and wanted.shape == got.shape and wanted.tobytes() == got.tobytes()


def order_of(source: str) -> str | None:
    return None if source in ("ra", "nrrd") else "F" if source in ("mat", "har") else "C"


def in_format(folder: Path, name: str) -> Path:
    return folder / f"{NAME}{FORMATS[name].suffix}"


@pytest.mark.parametrize("source", IN_TABLES)
def test_exact_values_are_exact(source: str, tmp_path: Path) -> None:
    generator = random.Random(f"law {source}")
    exact, odd = 0, []
    for number in range(CASES_PER_SOURCE * 8):
        values = values_for(generator)
        if not can_write(source, values):
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        path, order = in_format(folder, source), order_of(source)
        try:
            with quiet():
                if source == "ra" and generator.random() < 0.3:
                    column_major_ra(path, values)
                    order = "F"
                else:
                    WRITERS[source](path, values)
        except (ValueError, TypeError, OverflowError):  # not everything that it can, by its words
            continue
        for target in IN_TABLES:
            result = in_format(folder / target, target)
            result.parent.mkdir()
            try:
                convert(path, result, to=target, strict=True)
            except WouldLose:
                assert not list(result.parent.iterdir())
                continue
            with quiet():
                got = READERS[target](result)
            seen = values if seen_from(target, values.shape, order) == values.shape else values.T
            if order is None and FORMATS[target].order == "F":
                seen = values.T
            exact += 1
            if not is_same(np.asarray(seen), got):
                odd.append(
                    (target, values.dtype.str, values.shape, order, got.dtype.str, got.shape)
                )
        if exact > CASES_PER_SOURCE * 5:
            break
    assert not odd, f"{len(odd)} of {exact}: {odd[:10]}"
    assert exact > CASES_PER_SOURCE


# What is said of the array -----------------------------------------------------------------------

Facts = dict[str, Any]
GREY = np.arange(6, dtype="u1").reshape(2, 3)
FLOATS = np.arange(6, dtype="<f4").reshape(2, 3) - 0.5


def hdf5_source(path: Path, generator: random.Random) -> Facts:
    facts: Facts = {}
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(NAME, data=generator.choice([GREY, FLOATS]))
        if generator.random() < 0.6:
            facts["attributes"] = {"title": "text", "number": 7, "half": 0.5, "list": [1, 2]}
            dataset.attrs.update(facts["attributes"])
        if generator.random() < 0.6:
            facts["names"] = ["row", "column"]
            dataset.dims[0].label, dataset.dims[1].label = facts["names"]
        if generator.random() < 0.4:
            dataset.attrs["units"] = facts["units"] = "K"
    return facts


def nrrd_source(path: Path, generator: random.Random) -> Facts:
    import nrrd

    facts: Facts = {}
    header: dict[str, Any] = {"encoding": "raw"}
    if generator.random() < 0.6:
        facts["names"] = ["row", "column"]
        header["labels"] = facts["names"][::-1]
    if generator.random() < 0.6:
        facts["spacings"] = [0.5, 2.0]
        header["spacings"] = facts["spacings"][::-1]
    if generator.random() < 0.5:
        facts["attributes"] = {"who": "text", "what": "more"}
        header |= facts["attributes"]
    nrrd.write(str(path), generator.choice([GREY, FLOATS]).T, header, index_order="F")
    return facts


def har_source(path: Path, generator: random.Random) -> Facts:
    from raconvert.arrays.metadata import Axis, Metadata

    labels = [["a", "b"], ["x", "y", "z"]]
    axes = [Axis(name=name, labels=own) for name, own in zip(["ROW", "COL"], labels, strict=True)]
    raconvert.write(path, {NAME: FLOATS}, meta=Metadata(axes=axes[::-1]))
    from harpy import HarFileIO

    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    told = [(one["name"], one["dim_desc"]) for one in found["sets"]]
    assert told == list(zip(["ROW", "COL"], labels, strict=True))
    return {"names": ["ROW", "COL"], "labels": labels}


def png_source(path: Path, generator: random.Random) -> Facts:
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    text = PngInfo()
    facts: Facts = {}
    if generator.random() < 0.7:
        facts["text"] = {"Author": "text", "Comment": "more"}
        for key, value in facts["text"].items():
            text.add_text(key, value)
    Image.fromarray(GREY).save(path, pnginfo=text)
    return facts


def ra_source(path: Path, generator: random.Random) -> Facts:
    """An .ra and its sidecar, written by hand; in either index order."""
    from zlib import crc32

    order = generator.choice("CF")
    data = FLOATS.tobytes(order)
    dims = list(FLOATS.shape if order == "F" else FLOATS.shape[::-1])
    words = np.array([0, 3, 4, len(data), 2, *dims], "<u8").tobytes()
    path.write_bytes(b"rawarray" + words + data)
    digits = f"{crc32(data):08x}"
    described = {"eltype": 3, "elbyte": 4, "dims": dims, "size": len(data)}
    described |= {"crc32_first": digits, "crc32_last": digits}
    axes = [
        {"name": "row", "spacing": 0.5, "origin": 1.5},
        {"name": "column", "labels": ["x", "y", "z"]},
    ]
    fields = {
        "describes": described, "index_order": order, "description": "what", "units": "K",
        "axes": axes if order == "F" else axes[::-1], "attributes": {"a": 1, "b": [0.5, "t"]},
    }  # fmt: skip
    path.with_name(f"{path.name}.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))
    return {
        "names": ["row", "column"], "labels": [None, ["x", "y", "z"]], "spacings": [0.5, None],
        "attributes": fields["attributes"], "units": "K", "description": "what",
    }  # fmt: skip


def of_axes(axes: list[dict[str, Any]]) -> Facts:
    """Return facts from entries in logical order."""
    names = {"names": "name", "labels": "labels", "spacings": "spacing"}
    return {fact: [axis.get(field) for axis in axes] for fact, field in names.items()}


def of_png(fields: dict[str, Any]) -> Facts:
    """Return the text chunks of a PNG that other formats keep in its namespace."""
    own = fields.get("formats", {}).get("png", {})
    return {"text": {key: value for key, value, *_ in own.get("text", [])}}


def of_sidecar(fields: dict[str, Any]) -> Facts:
    axes = fields.get("axes", [])
    order = fields.get("index_order", "C")
    facts = of_axes(axes if order == "F" else axes[::-1])
    facts |= {k: fields.get(k) for k in ("attributes", "units", "description")}
    return {**facts, **of_png(fields)}


def ra_facts(path: Path) -> Facts:
    beside = path.with_name(f"{path.name}.yaml")
    return of_sidecar(yaml.safe_load(beside.read_text())) if beside.exists() else {}


def bundle_facts(path: Path) -> Facts:
    return ra_facts(path / f"{NAME}.ra")


def zip_facts(path: Path) -> Facts:
    with zipfile.ZipFile(path) as archive:
        found = [name for name in archive.namelist() if name.endswith(".ra.yaml")]
        return of_sidecar(yaml.safe_load(archive.read(found[0]))) if found else {}


def hdf5_facts(path: Path) -> Facts:
    with h5py.File(path) as file:
        dataset = file[NAME]
        found = {}
        for name, value in dataset.attrs.items():
            found[name] = value.tolist() if hasattr(value, "tolist") else value
        kept = json.loads(found.pop("raconvert", "{}"))
        axes = kept.get("axes", [])[::-1]
        facts = of_axes(axes or [{}] * dataset.ndim)
        facts["names"] = [
            dim.label or name for dim, name in zip(dataset.dims, facts["names"], strict=True)
        ]
        for place, dim in enumerate(dataset.dims):
            for scale in dim.values():
                listed = scale[()].tolist()
                texts = [one.decode() if isinstance(one, bytes) else one for one in listed]
                facts["labels"][place] = facts["labels"][place] or texts
                if facts["spacings"][place] is None and not isinstance(texts[0], str):
                    facts["spacings"][place] = texts[1] - texts[0]
        attributes = {**found, **kept.get("attributes", {})}
        facts["units"] = attributes.get("units")
        facts["description"] = (
            kept.get("description") or found.get("description") or (found.get("long_name"))
        )
        return {**facts, **of_png(kept), "attributes": attributes}


def nrrd_facts(path: Path) -> Facts:
    import nrrd

    header = nrrd.read_header(str(path))
    kept = json.loads(header["raconvert"]) if "raconvert" in header else {}
    rank = header["dimension"]
    axes = kept.get("axes") or [{}] * rank
    step = 1 if kept.get("index_order") == "F" else -1
    facts = of_axes(axes[::step]) | of_png(kept)
    labels = header.get("labels")
    facts["names"] = list(labels[::step]) if labels else facts["names"]
    spacings = header.get("spacings")
    if spacings is not None:
        facts["spacings"] = [None if one != one else one for one in spacings[::step].tolist()]  # noqa: PLR0124
    attributes = {**header, **kept.get("attributes", {})}
    units = kept.get("units") or header.get("sample units")
    return {
        **facts, "attributes": attributes, "units": units,
        "description": kept.get("description") or header.get("content"),
    }  # fmt: skip


def har_facts(path: Path) -> Facts:
    from harpy import HarFileIO

    with quiet():
        [found] = HarFileIO.readHeaderArraysFromFile(str(path))
    sets = found["sets"] or []
    facts = {"names": [one["name"] for one in sets], "labels": [one["dim_desc"] for one in sets]}
    return {**facts, "description": found["long_name"].strip()}


def png_facts(path: Path) -> Facts:
    from PIL import Image

    with Image.open(path) as image:
        return {"text": dict(image.text)}


def scidb_facts(path: Path) -> Facts:
    text = path.with_name(f"{path.name}.schema").read_text()
    dims = text[text.index("[") + 1 : text.index("]")].split(";")
    return {"names": [dim.strip().partition("=")[0] for dim in dims]}


def no_facts(path: Path) -> Facts:
    return {}


SOURCES: dict[str, Callable[[Path, random.Random], Facts]] = {
    "ra": ra_source, "hdf5": hdf5_source, "nrrd": nrrd_source, "har": har_source, "png": png_source,
}  # fmt: skip
TOLD: dict[str, Callable[[Path], Facts]] = {
    "ra": ra_facts, "bundle": bundle_facts, "zip": zip_facts, "hdf5": hdf5_facts,
    "nrrd": nrrd_facts, "har": har_facts, "png": png_facts, "scidb": scidb_facts,
    "npy": no_facts, "npz": no_facts, "mat": no_facts,
}  # fmt: skip


HOLD_ALL = ("ra", "bundle", "zip", "hdf5", "nrrd")  # whatever is said of an array


def missing(wanted: Facts, found: Facts) -> list[str]:
    """Return what of the facts is not found, or found as something else."""
    odd = []
    for name, value in wanted.items():
        got = found.get(name)
        if name in ("attributes", "text"):
            odd += [key for key in value if key not in (got or {}) or got[key] != value[key]]
        elif isinstance(value, list):
            got = got or [None] * len(value)
            odd += [name for a, b in zip(value, got, strict=True) if a is not None and a != b]
        elif got != value:
            odd.append(name)
    return odd


@pytest.mark.parametrize("target", TOLD)
@pytest.mark.parametrize("source", SOURCES)
def test_exact_says_all(source: str, target: str, tmp_path: Path) -> None:
    """An exact conversion keeps every name, label, spacing and attribute, on its axis."""
    generator = random.Random(f"law {source} {target}")
    exact = 0
    for number in range(6):
        folder = tmp_path / str(number)
        (folder / "out").mkdir(parents=True)
        path, result = in_format(folder, source), in_format(folder / "out", target)
        wanted = SOURCES[source](path, generator)
        try:
            convert(path, result, to=target, strict=True)
        except WouldLose:
            continue
        exact += 1
        assert missing(wanted, TOLD[target](result)) == [], wanted
    assert exact == 6 or target not in HOLD_ALL


def test_the_facts_are_noticed() -> None:
    """The judge of the test above sees what is missing, swapped or changed."""
    wanted = {"names": ["a", "b"], "attributes": {"k": 1}, "units": "K"}
    assert missing(wanted, dict(wanted)) == []
    assert missing(wanted, {**wanted, "names": ["b", "a"]}) == ["names", "names"]
    assert missing(wanted, {**wanted, "attributes": {"k": 2}}) == ["k"]
    assert missing(wanted, {}) == ["names", "names", "k", "units"]
