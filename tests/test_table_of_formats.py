"""The table of formats is true: what a format holds, by what its files give when they are read.

Of formats that are written, the law of meaning observes that; here are those that are only read.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import raconvert
from raconvert.arrays.scales import scale_of
from raconvert.catalogue import ROWS
from raconvert.plugin import MODEL, Array
from raconvert.registry import by_name, load

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
# Format -> the folder and pattern of its fixtures, options, what only other files have
READ_ONLY: dict[str, tuple[str, str, tuple[dict[str, str], ...], set[str]]] = {
    "dicom": ("dicom", "*", ({},), set()),
    "edf": ("edf", "*.[eb]df", ({}, {"layout": "channels"}), set()),
    "gguf": ("models", "*.gguf", ({},), set()),
    "lmdb": ("lmdb", "*.lmdb", ({}, {"values": "bytes"}), {"attributes"}),
    "rdata": ("r", "*.RData", ({},), {"description", "scale", "units"}),  # as in .rds, see there
    "tfrecord": ("tfrecord", "*.tfrecord", ({}, {"ragged": "flat"}), set()),
    "torch": ("models", "*.pt*", ({},), set()),
}


def facts(array: Array) -> set[str]:
    """The words of the model that are known of an array."""
    meta, axes = array.meta, array.meta.axes
    known: dict[str, Any] = {
        "names": any(axis.name for axis in axes),
        "labels": any(axis.labels for axis in axes),
        "spacing": any(axis.spacing is not None for axis in axes),
        "space": meta.space is not None or any(axis.direction for axis in axes),
        "scale": scale_of(array) is not None,
        "units": meta.units or any(axis.units for axis in axes),
        "description": meta.description,
        "attributes": meta.attributes,
    }
    assert known.keys() == set(MODEL)
    return {word for word, there in known.items() if there}


def test_every_format_that_is_only_read_is_here() -> None:
    only_read = {row.name for row in ROWS if row.reads and not row.writes}
    assert only_read - {"raw"} == READ_ONLY.keys()  # of which nobody knows anything


@pytest.mark.parametrize("name", READ_ONLY)
def test_formats_hold_what_the_table_says(name: str, tmp_path: Path) -> None:
    row = by_name(name)
    if name == "dicom":
        pytest.importorskip("pydicom")
    folder, pattern, options, elsewhere = READ_ONLY[name]
    paths = sorted((FIXTURES / folder).glob(pattern))
    for file, content in load(row).FORMAT.samples.items():
        (tmp_path / file).write_bytes(content)
        paths.append(tmp_path / file)
    found: set[str] = set()
    for path in paths:
        for in_opts in options:
            found |= _facts_in(path, name, in_opts)
    assert found <= set(row.holds)
    assert set(row.holds) - found == elsewhere


def _facts_in(path: Path, name: str, in_opts: dict[str, str]) -> set[str]:
    if path.suffix in (".md", ".py"):
        return set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bundle = raconvert.open_bundle(path, from_=name, in_opts=in_opts)
    except raconvert.RaconvertError:
        return set()
    with bundle:
        sound = [array for array in bundle.arrays if array.problem is None]
        return set().union(*map(facts, sound))
