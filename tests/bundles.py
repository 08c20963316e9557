"""Bundles for tests: made in memory, written to any form, read back as values that compare."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from raconvert import registry
from raconvert.api import array_of
from raconvert.arrays.array import Array
from raconvert.arrays.blocks import blocks
from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import little
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.conversion.options import Settings
from raconvert.conversion.outputs import prepare_target
from raconvert.conversion.read import open_bundle
from raconvert.conversion.report import Conversion, Report
from raconvert.conversion.write import write_bundle

if TYPE_CHECKING:
    from pathlib import Path

FORMS = ("bundle", "zip", "tar")
SUFFIXES = {"bundle": "", "zip": ".zip", "tar": ".tar"}


def column_major(values: np.ndarray, name: str) -> Array:
    """Return an array with the elements [i, j, k] of `values`, stored in column-major order."""
    array = array_of(np.ascontiguousarray(values.T), name)
    return array.listed("F")


def place(folder: Path, form: str, name: str = "scan") -> Path:
    """Return a path for a bundle in one of the forms."""
    return folder / (name + SUFFIXES[form])


def save(path: Path, bundle: Bundle, to: str | None = None, **options: Any) -> Report:
    """Write a bundle, with whatever it says of itself; by default in the form of the suffix."""
    form = to or {suffix: form for form, suffix in SUFFIXES.items()}[path.suffix]
    row = registry.target_row(str(path), form)
    settings = Settings(**{"sync": False, **options})
    report = Report([])
    prepare_target(str(path), row, [], settings, report)
    return write_bundle(Conversion(str(path), row, settings, report), bundle)


def facts(bundle: Bundle) -> dict[str, Any]:
    """Return everything that a bundle is, in values that compare."""
    return {
        "arrays": [
            (
                array.name,
                little(array.element),
                array.dims,
                array.index_order,
                b"".join(bytes(block.reshape(-1).view("u1")) for block in blocks(array)),
                json.dumps(array.meta.to_dict(), default=repr),
                None if array.meta.items is None else list(array.meta.items()),
            )
            for array in bundle.arrays
        ],
        "attributes": bundle.attributes,
        "groups": bundle.groups,
        "formats": bundle.formats,
    }


def load(path: Path | str, **options: Any) -> dict[str, Any]:
    """Return everything that a file is."""
    with open_bundle(path, **options) as bundle:
        return facts(bundle)


def rich() -> Bundle:
    """Return arrays of all kinds in nested groups, with attributes everywhere."""
    rng = np.random.default_rng(3)
    floats = rng.standard_normal((3, 4, 5))
    arrays = [
        array_of(np.arange(24, dtype="i2").reshape(2, 3, 4), "z-first"),
        column_major(floats, "g/x"),
        array_of(floats.astype("c8"), "g/deep/er"),
        array_of(np.arange(5, dtype="u8") + 2**63, "a"),
        array_of(np.arange(3, dtype="i1"), "a/b"),
        array_of(np.array([[True, False]]), "A"),
        array_of(np.array(1.5), "scalar"),
        array_of(np.zeros((0, 3), "f4"), "empty"),
        array_of(np.array(["ä", "日本語"], "U5"), "text"),
        array_of(np.array([["2020-01-01", "NaT"]], "M8[ns]"), "dates"),
        array_of(np.array([(1, 2.5), (3, 4.5)], [("n", "<i4"), ("x", "<f8")]), "record"),
        array_of(floats.astype(">f4"), "big"),
        array_of(floats.astype("f2"), "half"),
        array_of(np.arange(6, dtype="u1").reshape(2, 3), "Zürich/日本"),
    ]
    bundle = Bundle(
        arrays,
        attributes={"title": "yes", "number": 1, "list": [1.5, "x"], "wait...": "...\n...\nend..."},
        groups={"g": {"kind": "group"}, "g/deep": {}, "nothing/in here": {}, "void": {"n": [1]}},
        formats={"hdf5": {"userblock": 512}},
    )
    bundle["g/x"].meta = Metadata(
        description="a scan",
        axes=[
            Axis(name="x", spacing=0.5, units="mm"),
            Axis(),
            Axis(name="t", labels=["a", "b", "c"]),
        ][::-1],
        attributes={"nested": {"a": [1, {"b": None}]}, "raw": b"\0\xff"},
        formats={"nrrd": {"space": "RAS"}},
    )
    bundle["z-first"].meta = Metadata(units="K")
    # Row-major arrays of a format without index order: the axes are only listed.
    half = bundle["half"].listed(None)
    bundle.arrays = [half if array.name == "half" else array for array in bundle.arrays]
    return bundle


def small() -> Bundle:
    """Return two arrays, one with a sidecar, in a group with an attribute."""
    arrays = [array_of(np.arange(3, dtype="u1"), "x"), column_major(np.eye(2), "g/y")]
    return Bundle(arrays, groups={"g": {"k": 1}}, attributes={"title": "t"})


def as_zip(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive with these members, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()
