"""Bundles of RA, with PyYAML and the standard library, for the suites over all pairs of formats."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import ra_reader
import yaml
from pairs import NAME, Facts, Pairs, of_sidecar
from ra_reader import contents_of, sidecar_of


def _members(values: np.ndarray) -> dict[str, bytes]:
    """Return the files of a bundle of one row-major array."""
    entry = {"name": NAME, "file": f"{NAME}.ra", "index_order": "C"}
    index = yaml.safe_dump({"raconvert_bundle": 1, "arrays": [entry]}, sort_keys=False)
    members = {"bundle.yaml": f"{index}...\n".encode(), f"{NAME}.ra": contents_of(values)}
    if ra_reader.code_of(values.dtype) == 0:
        members[f"{NAME}.ra.yaml"] = sidecar_of(values, values.tobytes(), values.shape[::-1])
    return members


def write_folder(path: Path, values: np.ndarray) -> None:
    path.mkdir()
    for name, contents in _members(values).items():
        (path / name).write_bytes(contents)


def write_zip(path: Path, values: np.ndarray) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in _members(values).items():
            archive.writestr(name, contents)


def write_tar(path: Path, values: np.ndarray) -> None:
    with tarfile.open(path, "w") as archive:
        for name, contents in _members(values).items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))


def _values(members: Mapping[str, bytes]) -> np.ndarray:
    [entry] = yaml.safe_load(members["bundle.yaml"])["arrays"]
    assert entry["name"] == NAME
    beside = yaml.safe_load(members.get(f"{entry['file']}.yaml", b"{}"))
    order = entry.get("index_order", "C")
    assert beside.get("index_order", order) == order
    return ra_reader.values_of(members[entry["file"]], {**beside, "index_order": order})


def read_folder(path: Path) -> np.ndarray:
    return _values({file.name: file.read_bytes() for file in path.iterdir()})


def read_zip(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        return _values({name: archive.read(name) for name in archive.namelist()})


def read_tar(path: Path) -> np.ndarray:
    with tarfile.open(path) as archive:
        files = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        return _values({name: file.read() for name, file in files.items() if file})


def folder_said(path: Path) -> Facts:
    return ra_reader.said(path / f"{NAME}.ra")


def zip_said(path: Path) -> Facts:
    with zipfile.ZipFile(path) as archive:
        found = [name for name in archive.namelist() if name.endswith(".ra.yaml")]
        return of_sidecar(yaml.safe_load(archive.read(found[0]))) if found else {}


def can_write(values: np.ndarray) -> bool:
    return values.dtype.byteorder != ">"


# The manifest says the index order of each array; what is inside user elements is in sidecars.
FOLDER = Pairs(
    name="bundle",
    suffix="",
    read=read_folder,
    write=write_folder,
    can_write=can_write,
    order="CF",
    keeps=True,
    few=True,
    types="= *",
    shapes="= *",
    said=folder_said,
)
IN_PAIRS = (
    FOLDER,
    FOLDER._replace(
        name="zip", suffix=".zip", read=read_zip, write=write_zip, law={}, said=zip_said
    ),
    FOLDER._replace(name="tar", suffix=".tar", read=read_tar, write=write_tar, law={}, said=None),
)
