"""Files of formats that are not supported: their names, and remedies that work as they are printed.

Each file is made by a library of the format. The line of Python that the refusal prints is run in
an interpreter of its own, and raconvert reads what it saves.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raconvert
from raconvert.errors import NotSupportedYet, UnknownFormat
from raconvert.foreign import FOREIGN

VALUES = np.arange(12, dtype="f4").reshape(3, 4)


def wav(path: Path) -> None:
    from scipy.io import wavfile

    wavfile.write(path, 8000, VALUES.astype("i2"))


def freesurfer(path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.MGHImage(VALUES.reshape(3, 4, 1), np.eye(4)), path)


def jpeg2000(path: Path) -> None:
    pytest.importorskip("imagecodecs").imwrite(path, VALUES.astype("u1"), codec="jpeg2k", level=0)


def jpeg_xl(path: Path) -> None:
    codecs = pytest.importorskip("imagecodecs")
    path.write_bytes(codecs.jpegxl_encode(VALUES.astype("u1"), lossless=True))


def root(path: Path) -> None:
    with pytest.importorskip("uproot").recreate(path) as file:
        file["TREE"] = {"branch": VALUES.ravel()}


def tdms(path: Path) -> None:
    nptdms = pytest.importorskip("nptdms")
    with nptdms.TdmsWriter(path) as writer:
        writer.write_segment([nptdms.ChannelObject("group", "channel", VALUES.ravel())])


def onnx(path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    tensors = [onnx.numpy_helper.from_array(VALUES, "w")]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], tensors)), path)


def exr(path: Path) -> None:
    openexr = pytest.importorskip("OpenEXR")
    with openexr.File({"type": openexr.scanlineimage}, {"Y": VALUES}) as file:
        file.write(str(path))


def hdf4(path: Path) -> None:
    sd = pytest.importorskip("pyhdf.SD")
    file = sd.SD(str(path), sd.SDC.WRITE | sd.SDC.CREATE)
    dataset = file.create("a", sd.SDC.FLOAT32, VALUES.shape)
    dataset[:] = VALUES
    dataset.endaccess()
    file.end()


def orc(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"a": VALUES.ravel()}).to_orc(path)


MADE: dict[str, tuple[Callable[[Path], None], str]] = {  # name of a file -> its maker, its format
    "x.wav": (wav, "WAV"), "x.mgz": (freesurfer, "MGZ"), "x.mgh": (freesurfer, "MGH"),
    "x.jp2": (jpeg2000, "JPEG 2000"), "x.jxl": (jpeg_xl, "JPEG XL"), "x.root": (root, "ROOT"),
    "x.tdms": (tdms, "TDMS"), "x.onnx": (onnx, "ONNX"),
    "x.exr": (exr, "OpenEXR"), "x.hdf": (hdf4, "HDF4"), "x.orc": (orc, "ORC"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_the_line_of_the_refusal_makes_a_file_of_the_values(name: str, tmp_path: Path) -> None:
    make, title = MADE[name]
    path = tmp_path / name
    make(path)
    with pytest.raises((NotSupportedYet, UnknownFormat)) as refusal:
        raconvert.convert(path, tmp_path / "x.ra")
    assert title in str(refusal.value)
    code = refusal.value.remedy.partition("in Python: ")[2].splitlines()[0]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    (saved,) = (one for one in tmp_path.glob("x.*") if one != path)
    made: Any = raconvert.read(saved)
    values = next(iter(made.values())) if isinstance(made, dict) else made
    assert np.array_equal(np.ravel(values), VALUES.ravel())


BEGINNINGS = {  # of formats that only their own programs write
    "x.czi": (b"ZISRAWFILE" + bytes(22), "CZI"),
    "x.nd2": (b"\xda\xce\xbe\x0a\x20\0\0\0" + b"ND2 FILE SIGNATURE CHUNK NAME01!", "ND2"),
    "x.dm4": (b"\0\0\0\x04" + bytes(7) + b"\x80\0\0\0\x01", "DM4"),
    "x.dm3": (b"\0\0\0\x03\0\0\0\x80\0\0\0\x01", "DM3"),
    "x.feather": (b"FEA1" + bytes(28), "Feather 1"),
    "x.grb": (b"GRIB" + bytes(28), "GRIB"),
    "x.cdf": (b"\xcd\xf3\0\x01\0\0\xff\xff" + bytes(24), "NASA's CDF"),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_formats_are_named_by_their_first_bytes(name: str, tmp_path: Path) -> None:
    content, title = BEGINNINGS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnknownFormat) as refusal:
        raconvert.convert(tmp_path / name, tmp_path / "x.ra")
    assert title in str(refusal.value)
    assert "in Python: import " in refusal.value.remedy


@pytest.mark.parametrize("name", [name for name in MADE if name != "x.orc"])
def test_made_files_are_named_whatever_they_are_called(name: str, tmp_path: Path) -> None:
    make, title = MADE[name]
    make(tmp_path / name)
    (tmp_path / name).rename(tmp_path / "download")
    with pytest.raises((NotSupportedYet, UnknownFormat)) as refusal:
        raconvert.convert(tmp_path / "download", tmp_path / "x.ra")
    assert title in str(refusal.value)
    assert "in Python: import " in (refusal.value.remedy or "")


@pytest.mark.parametrize("name", ["x.dm3", "x.dm4"])
def test_tags_of_gatan_are_named_whatever_they_are_called(name: str, tmp_path: Path) -> None:
    (tmp_path / "download").write_bytes(BEGINNINGS[name][0] + b"\1\0" + bytes(20))
    with pytest.raises(UnknownFormat, match="Gatan DM3 or DM4"):
        raconvert.convert(tmp_path / "download", tmp_path / "x.ra")


@pytest.mark.parametrize("row", FOREIGN, ids=lambda row: row.title)
def test_python_of_a_remedy_imports_what_it_uses(row: Any) -> None:
    code = row.remedy.replace("FILE", "'x'").partition("in Python: import ")[2]
    if not code and "in Python" not in row.remedy:
        return
    tree = ast.parse(f"import {code}")
    imported = {one.name.split(".")[0] for node in tree.body[:1] for one in node.names}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assert {node.id for node in names} - bound - {"open", "enumerate", "hasattr"} <= imported
