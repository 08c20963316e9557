"""Programs of pages that read encoded arrays by libraries: run as they are on the page."""

from __future__ import annotations

import bz2
import gzip
import html
import re
import struct
import subprocess
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import hdf5plugin
import nibabel
import nrrd
import numpy as np
import pytest
import scipy.io
import zarr

import raconvert
from raconvert.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RNG = np.random.default_rng(11)
VALUES = RNG.integers(0, 99, (3, 4, 5))
TYPES = ["i1", "u1", "<i2", ">u2", "<u4", ">i8", "<f4", ">f8", "<c16", "?"]
ODD = 'it\'s $a "b" \\c é'  # a name that each language quotes in its way


def made(dtype: str) -> np.ndarray:
    values = VALUES.astype(dtype)
    return values + (1j * VALUES[::-1]).astype(dtype) if values.dtype.kind == "c" else values


def write_hdf5(folder: Path, dtype: str) -> tuple[Path, str]:
    with h5py.File(folder / f"{ODD}.h5", "w") as file:
        file.create_dataset(f"g/{ODD}", data=made(dtype), compression="gzip", shuffle=True)
    return folder / f"{ODD}.h5", f"g/{ODD}"


def write_other_filter(folder: Path, dtype: str) -> tuple[Path, str]:
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=made(dtype), chunks=(1, 4, 5), **hdf5plugin.Zstd())
    return folder / "x.h5", "x"


def write_mat(folder: Path, dtype: str) -> tuple[Path, str]:
    native = made(dtype).astype(np.dtype(dtype).newbyteorder("="))
    scipy.io.savemat(folder / "it's.mat", {"x_1": native, "y": np.eye(2)}, do_compression=True)
    return folder / "it's.mat", "x_1"


CLASSES = {"i": "int", "u": "uint", "f4": "single", "f8": "double", "b": "logical"}


def write_mat73(folder: Path, dtype: str) -> tuple[Path, str]:
    """As MATLAB writes it: HDF5 behind a header of its own, each dataset with its class."""
    path, values = folder / "7.mat", made(dtype)
    kind, width = values.dtype.kind, values.dtype.itemsize
    if kind == "c":
        values = values.view([("real", "<f8"), ("imag", "<f8")])
    word = CLASSES.get(kind) or CLASSES[f"f{8 if kind == 'c' else width}"]
    with h5py.File(path, "w", userblock_size=512) as file:
        data = values.T.astype("u1") if kind == "b" else values.T
        dataset = file.create_dataset("x_1", data=data, compression="gzip")
        dataset.attrs["MATLAB_class"] = np.bytes_(f"{word}{8 * width if kind in 'iu' else ''}")
        if kind == "b":
            dataset.attrs["MATLAB_int_decode"] = np.int32(1)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")
    return path, "x_1"


def write_npz(folder: Path, dtype: str) -> tuple[Path, str]:
    np.savez_compressed(folder / "x.npz", x=made(dtype), y=np.asfortranarray(made(dtype)))
    return folder / "x.npz", "y"


def write_nrrd(folder: Path, dtype: str) -> tuple[Path, str]:
    nrrd.write(str(folder / "x.nrrd"), made(dtype), {"encoding": "gzip"}, index_order="C")
    return folder / "x.nrrd", ""


def write_nrrd_hex(folder: Path, dtype: str) -> tuple[Path, str]:
    """Which pynrrd does not know; by hand."""
    values = made(dtype)
    order = "big" if values.dtype.byteorder == ">" else "little"
    name = {"f4": "float", "f8": "double"}.get(values.dtype.str[1:], values.dtype.name)
    head = f"NRRD0004\ntype: {name}\ndimension: 3\nsizes: 5 4 3\nendian: {order}\nencoding: hex\n\n"
    (folder / "x.nrrd").write_text(head + values.tobytes().hex("\n", 20))
    return folder / "x.nrrd", ""


def write_nifti(folder: Path, dtype: str) -> tuple[Path, str]:
    image = nibabel.Nifti1Image(made(dtype), np.eye(4), dtype=np.dtype(dtype))
    image.header.set_slope_inter(2, 5)  # the page is about what is stored
    nibabel.save(image, folder / "x.nii.gz")
    return folder / "x.nii.gz", ""


def write_zarr(folder: Path, dtype: str) -> tuple[Path, str]:
    group = zarr.open_group(folder / "x.zarr", mode="w")
    group.create_array("g/x", data=made(dtype), chunks=(1, 4, 5))
    return folder / "x.zarr", "g/x"


def write_zarr_2(folder: Path, dtype: str) -> tuple[Path, str]:
    zarr.create_array(folder / "x.zarr", data=made(dtype), chunks=(1, 4, 5), zarr_format=2)
    return folder / "x.zarr", ""


WRITERS: dict[str, tuple[Callable[[Path, str], tuple[Path, str]], str]] = {
    "hdf5": (write_hdf5, "PJMRC"),
    "zstd": (write_other_filter, "P"),
    "mat": (write_mat, "PJMRC"),
    "mat73": (write_mat73, "PJMRC"),
    "npz": (write_npz, "PJ"),
    "nrrd": (write_nrrd, "PJRC"),
    "nrrd-hex": (write_nrrd_hex, "PC"),
    "nifti": (write_nifti, "PJM"),
    "zarr": (write_zarr, "PJ"),
    "zarr-2": (write_zarr_2, "PJ"),
}


def programs_of(path: Path, name: str, folder: Path) -> dict[str, str]:
    """What stands on the page under each language, but not for a plain copy."""
    out = folder / "page.html"
    spec = f"{path}#{name}" if name else str(path)
    assert main(["info", spec, "--html", "-o", str(out), "--overwrite"]) == 0
    first, mark, _ = out.read_text().partition("Made plain once")
    assert mark
    found = re.findall(
        r'<summary>(\w+)</summary>\n<pre class="program">(.*?)</pre>', first, re.DOTALL
    )
    return {language: html.unescape(text) for language, text in found}


def value_of(path: Path, name: str) -> np.ndarray:
    with raconvert.open(path) as opened:
        found = opened[name] if name else opened
        return np.asarray(
            found[...] if not isinstance(found, raconvert.Bundle) else found.arrays[0]
        )


NOT_THERE = {("nifti", "?")} | set(product(("nrrd", "nrrd-hex"), ("?", "<c16")))  # types not in it
NOT_IN_R = {("hdf5", "<u4"), ("nrrd", "<u4"), ("nrrd", ">i8")}  # types that R's package lacks


@pytest.mark.parametrize(
    ("kind", "dtype"), [one for one in product(WRITERS, TYPES) if one not in NOT_THERE]
)
def test_the_python_lines_read_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, dtype: str
) -> None:
    write, languages = WRITERS[kind]
    path, name = write(tmp_path, dtype)
    expected = value_of(path, name)
    assert np.array_equal(expected, made(dtype))
    found = programs_of(path, name, tmp_path)
    if np.dtype(dtype).kind in "iuf":
        there = languages.replace("R", "") if (kind, dtype) in NOT_IN_R else languages
        assert "".join(language[0] for language in found) == there
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(found["Python"], space)
    assert space["x"].shape == expected.shape
    assert np.array_equal(space["x"], expected)
    assert space["x"].dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")


ENCODED = {
    "members": ("gzip", gzip.compress(b"\1\0\2") + gzip.compress(b"\0\3\0")),
    "behind": ("gzip", gzip.compress(b"\1\0\2\0\3\0") + b"and more"),
    "streams": ("bzip2", bz2.compress(b"\1\0\2") + bz2.compress(b"\0\3\0")),
    "commas": ("ascii", b"1, 2,\n3\n"),
    "hex": ("hex", b"01 00 02\n00 0300\n"),
}


@pytest.mark.parametrize("detached", [False, True], ids=["attached", "detached"])
@pytest.mark.parametrize("case", ENCODED)
def test_the_python_lines_read_nrrd_files_that_pynrrd_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, detached: bool
) -> None:
    encoding, data = ENCODED[case]
    head = f"NRRD0004\ntype: short\ndimension: 1\nsizes: 3\nendian: little\nencoding: {encoding}\n"
    path = tmp_path / "x.nhdr"
    if detached:
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "it's.data").write_bytes(data)
        path.write_text(f"{head}data file: d/it's.data\n")
    else:
        path.write_bytes(f"{head}\n".encode() + data)
    found = programs_of(path, "", tmp_path)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(found["Python"], space)
    assert space["x"].dtype == np.int16
    assert space["x"].tolist() == [1, 2, 3]
    assert ("C" in found) == (case != "streams")  # of which Teem takes the first


def test_the_python_lines_make_doubles_of_what_a_mat_file_of_level_4_stores_as_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = struct.pack("<5i", 30, 2, 2, 0, 2)  # int16, as MATLAB stores doubles that are integers
    (tmp_path / "x.mat").write_bytes(head + b"x\0" + struct.pack("<4h", 1, 2, 3, -4))
    found = programs_of(tmp_path / "x.mat", "x", tmp_path)
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(found["Python"], space)
    assert space["x"].dtype == np.float64
    assert space["x"].tolist() == [[1, 3], [2, -4]]


def test_the_matlab_lines_read_the_arrays_in_octave(
    tmp_path: Path, octave: Callable[..., str]
) -> None:
    """Of level 5 and below; Octave has neither h5read nor niftiread, and reads no v7.3."""
    script = []
    types = [dtype for dtype in TYPES if dtype[0] != ">"]
    for number, dtype in enumerate(types):
        (tmp_path / str(number)).mkdir()
        path, name = write_mat(tmp_path / str(number), dtype)
        found = programs_of(path, name, tmp_path)
        script += [f"cd {number}", found["MATLAB"], f"x{number} = x;", "cd .."]
    names = ", ".join(f"'x{number}'" for number in range(len(types)))
    octave("\n".join([*script, f"save('-v6', 'out.mat', {names});"]), cwd=tmp_path)
    out = scipy.io.loadmat(tmp_path / "out.mat")
    for number, dtype in enumerate(types):
        assert np.array_equal(out[f"x{number}"], made(dtype)), dtype


C_PROGRAMS = {  # the library in needs.py, and the end of the program
    "hdf5": ("hdf5", "fwrite(x, sizeof *x, n, stdout);"),
    "mat": ("matio", "fwrite(x->data, 1, x->nbytes, stdout);"),
    "nrrd": ("teem", "fwrite(x->data, nrrdElementSize(x), 60, stdout);"),
}


@pytest.mark.parametrize("kind", C_PROGRAMS)
def test_the_c_programs_read_the_arrays(
    tmp_path: Path, library: Callable[..., tuple[str, list[str]]], kind: str
) -> None:
    """Compiled as on the page, but for what is done with the elements at the end."""
    name_of_library, tail = C_PROGRAMS[kind]
    compiler, flags = library(name_of_library)
    for dtype in ("u1", "<i2", "<f4", "<f8"):
        path, name = WRITERS[kind][0](tmp_path, dtype)
        code = programs_of(path, name, tmp_path)["C"]
        last = code.rindex("    return")
        result = code[last:].split("return", 1)[1].split(";")[0]
        source, program = tmp_path / "read.c", tmp_path / "read"
        source.write_text(
            f"#include <stdio.h>\n{code[:last]}    int done ={result};\n    {tail}\n"
            "    return done;\n}\n"
        )
        words = [compiler, "-Wall", "-Werror", "-o", str(program), str(source), *flags]
        subprocess.run(words, check=True, cwd=tmp_path)
        out = subprocess.run([program], cwd=tmp_path, check=True, capture_output=True).stdout
        assert out == made(dtype).tobytes("F" if kind == "mat" else "C"), dtype


def test_what_no_library_gives_is_made_plain(tmp_path: Path) -> None:
    """Texts, structures, and variables inside others have the way by .ra only."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.array(["a", "b"] * 9, "S"), compression="gzip")
    scipy.io.savemat(tmp_path / "x.mat", {"s": {"a": np.eye(9)}}, do_compression=True)
    for name in ("x.h5", "x.mat"):
        out = tmp_path / f"{name}.html"
        assert main(["info", str(tmp_path / name), "--html", "-o", str(out)]) == 0
        assert "Made plain once" in out.read_text()
        assert "loadmat" not in out.read_text()
        assert "h5py.File" not in out.read_text()


@pytest.mark.parametrize("shape", [(10, 6, 5), (300,), (1, 300)], ids=str)
@pytest.mark.parametrize(
    ("suffix", "option"),
    [("mat", "version=7"), ("nrrd", "encoding=gzip"), ("h5", "compress=gzip"), ("nii.gz", None)],
)
def test_lines_are_true_or_left_out_where_a_sidecar_makes_it_what_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    option: str | None,
    shape: tuple[int, ...],
) -> None:
    values = np.arange(300.0).reshape(shape)
    np.save(tmp_path / "x.npy", values)
    path = tmp_path / f"x.{suffix}"
    words = ["--meta", "sidecar", *(["--out-opt", option] if option else [])]
    assert main([str(tmp_path / "x.npy"), "-o", str(path), *words]) == 0
    found = programs_of(path, "", tmp_path)
    if "Python" not in found:
        assert shape == (300,)  # (1, 300) in MAT, and of another order in NIfTI
        return
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    exec(found["Python"], space)
    assert space["x"].shape == value_of(path, "").shape
    assert np.array_equal(space["x"], values)
