"""Which format a file is in: by content before suffix, by name if told, refused with all reasons."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import ra_bytes
from cases import every

import raconvert
from raconvert import registry
from raconvert.catalogue import ROWS
from raconvert.errors import (
    Corrupt,
    NotSupportedYet,
    RaconvertError,
    ReadFailed,
    UnknownFormat,
    Unsafe,
    Unsupported,
)
from raconvert.files.source import Source
from raconvert.inspect.info import why

ROOT = Path(__file__).resolve().parents[1]
RA = ra_bytes.ra_file(2, 1, (3,), b"abc")
NPY = b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"
NPY += b" " * 60 + b"\nabc"

BUILT_IN = {row.name for row in ROWS}

# File of the corpus -> the format that reads it, or words of the refusal
CORPUS = {
    "ascii_pbm.pbm": "netpbm",
    "gzip_magic_but_rdata.rda": "rdata",
    "gzip_of_text.gz": "gzip-compressed",
    "matlab_v4_nomagic_bigendian.mat": "mat",
    "matlab_v4_sparse.mat": "mat",
    "matlab_v5_big_endian.mat": "mat",
    "matlab_v7.mat": "mat",
    "matlab_v73_userblock512.mat": "mat",
    "netcdf_classic.nc": "netcdf3",
    "nrrd_gzip_encoding.nrrd": "nrrd",
    "plain_hdf5_no_extension": "hdf5",
    "standard.nii.gz": "nifti",
    "npy_named.png": "npy",
    "pickled_object_array.npy": "npy",
    "pickled_object_array.npz": "npz",
    "png_named.jpg": "png",
    "python3.npy": "npy",
    "rand100.ra": "ra",
}
SUPPORTED = ("ra", "npy", "npz", "png")


def detect(path: Path | str, name: str | None = None) -> str:
    return registry.detect(Source(str(path)), name).row.name


def cli(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line; a hang is a failure."""
    command = [sys.executable, "-m", "raconvert", *map(str, words)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60
    )


# The corpus --------------------------------------------------------------------------------------


def test_every_file_of_the_corpus_is_in_the_table(corpus: Callable[..., Path]) -> None:
    assert {path.name for path in corpus("detect").iterdir()} - {"MANIFEST.md"} == set(CORPUS)


@pytest.mark.parametrize("name", [name for name, what in CORPUS.items() if what in BUILT_IN])
def test_supported_file_of_the_corpus(name: str, corpus: Callable[..., Path]) -> None:
    assert detect(corpus("detect", name)) == CORPUS[name]


@pytest.mark.parametrize("name", [name for name, what in CORPUS.items() if what not in BUILT_IN])
def test_foreign_file_of_the_corpus_is_named(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    path = corpus("detect", name)

    with pytest.raises(NotSupportedYet, match="not supported yet") as refusal:
        raconvert.convert(path, tmp_path / "x.ra")

    assert CORPUS[name] in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["gzip_of_text.gz"])
def test_exit_code_of_what_is_not_supported_yet(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    done = cli(corpus("detect", name), "-o", "x.ra", cwd=tmp_path)

    assert done.returncode == 3
    assert "not supported yet" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["pickled_object_array.npy", "pickled_object_array.npz"])
def test_pickles_are_refused_and_never_suggested(
    name: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(Unsafe, match="no option allows this") as refusal:
        raconvert.convert(corpus("detect", name), tmp_path / "x.ra")

    assert "allow_pickle" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "shape", "first"),
    [("npy_named.png", (2,), 1.0), ("python3.npy", (2,), 1.0), ("png_named.jpg", (271, 255, 4), None)],
)  # fmt: skip
def test_content_is_read_whatever_the_name_says(
    name: str, shape: tuple[int, ...], first: float | None, corpus: Callable[..., Path]
) -> None:
    values = raconvert.read(corpus("detect", name))

    assert values.shape == shape
    assert first is None or values[0] == first


# Heads ------------------------------------------------------------------------------------------

# contents, name, and the format that it is, or words of the refusal

HEADS = {
    "hdf5_at_0": (b"\x89HDF\r\n\x1a\n", "x", "hdf5"),
    "hdf5_at_1024": (bytes(1024) + b"\x89HDF\r\n\x1a\n", "x", "hdf5"),
    "hdf5_at_2048": (bytes(2048) + b"\x89HDF\r\n\x1a\n", "x", "hdf5"),
    "mat_7_3": (
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM").ljust(512, b"\0")
        + b"\x89HDF\r\n\x1a\n",
        "x.mat",
        "mat",
    ),
    "mat_5_little": (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM", "x.mat", "mat"),
    "mat_5_big": (b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI", "x", "mat"),
    "mat_4_little": (
        b"".join(n.to_bytes(4, "little") for n in (0, 1, 2, 0, 2)) + b"a\0" + bytes(16),
        "x.mat",
        "mat",
    ),
    "nrrd": (b"NRRD0005\ntype: float\n", "x.nhdr", "nrrd"),
    "netcdf_64_bit_offset": (b"CDF\x02" + bytes(40), "x.nc", "netcdf3"),
    "hdf4": (b"\x0e\x03\x13\x01" + bytes(40), "x.hdf", "HDF4"),
    "netcdf_cdf5": (b"CDF\x05" + bytes(40), "x", "netcdf3"),
    "nifti": ((348).to_bytes(4, "little").ljust(344, b"\0") + b"n+1\0", "x.nii", "nifti"),
    "tiff": (b"II*\0\x08\0\0\0", "x", "tiff"),
    "tiff_big_endian": (b"MM\0*\0\0\0\x08", "x.png", "tiff"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", "x", "jpeg"),
    "gif": (b"GIF89a\1\0\1\0", "x", "gif"),
    "gzip": (b"\x1f\x8b\x08\0\0\0\0\0", "x.npy.gz", "gzip"),
    "bzip2": (b"BZh91AY&SY", "x", "bzip2"),
    "xz": (b"\xfd7zXZ\0\0\4", "x", "xz"),
    "zstandard": (b"\x28\xb5\x2f\xfd\x24\0", "x", "zstandard"),
    "realaudio": (b".ra\xfd\0\4" + bytes(58), "x.ra", "RealAudio"),
    "realmedia": (b".RMF\0\0\0\x12" + bytes(58), "x.ra", "RealAudio"),
    "ra_byte_swapped": (b"arawrrya" + RA[8:], "x.ra", "byte-swapped"),
    "ra_backwards": (b"yarrawar" + RA[8:], "x.ra", "spelled backwards"),
    # no magic: by the suffix
    "scidb": (b"\1\2\3\4", "x.scidb", "scidb"),
    "har": (b"\4\0\0\0XXXX\4\0\0\0", "x.har", "har"),
    "cfl": (bytes(16), "x.cfl", "cfl"),
    "bmp": (b"BM\0\0\0\0", "x.bmp", "bmp"),
}


@every("head", HEADS)
def test_head_is_identified(head: str, tmp_path: Path) -> None:
    contents, name, what = HEADS[head]
    (tmp_path / name).write_bytes(contents)

    if what in BUILT_IN:
        assert detect(tmp_path / name) == what
        return
    with pytest.raises(NotSupportedYet, match="not supported yet") as refusal:
        detect(tmp_path / name)
    assert what in str(refusal.value)


def test_wrapper_names_what_its_name_says_is_inside(tmp_path: Path) -> None:
    (tmp_path / "x.npy.gz").write_bytes(HEADS["gzip"][0])

    with pytest.raises(NotSupportedYet, match="NumPy NPY inside"):
        detect(tmp_path / "x.npy.gz")


@pytest.mark.parametrize("wrong", ["x.h4", "x.npy.gz", "x.tar.gz", "x.ra.zst"])
def test_destination_that_is_not_supported_yet(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "x.ra").write_bytes(RA)

    with pytest.raises(NotSupportedYet, match="not supported yet"):
        raconvert.convert(tmp_path / "x.ra", tmp_path / wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["x.ra"]


def test_destination_of_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "x.ra").write_bytes(RA)

    with pytest.raises(UnknownFormat) as refusal:
        raconvert.convert(tmp_path / "x.ra", tmp_path / "x.what")
    known = [row.suffixes[0] for row in ROWS if row.writes and row.suffixes]
    assert f"expected one of {', '.join(known)}" in str(refusal.value)
    assert "name the format with to" in str(refusal.value)


# Content, suffix, name ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x", "x.bin", "x.png", "x.npy", "x.h5", "x.RA"])
def test_ra_by_content(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(RA)

    assert detect(tmp_path / name) == "ra"


@pytest.mark.parametrize("name", ["x", "x.ra", "x.png", "x.mat"])
def test_npy_by_content(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(NPY)

    assert detect(tmp_path / name) == "npy"


@pytest.mark.parametrize("name", ["x", "x.zip", "x.npz", "x.ra"])
def test_npz_by_content(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        np.savez(file, a=np.arange(3))

    assert detect(tmp_path / name) == "npz"


def test_zip_without_arrays_is_what_its_suffix_says(tmp_path: Path) -> None:
    for name in ("x.npz", "x.zip", "x.bin"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("readme.txt", "hello")

    for form in ("npz", "zip"):
        reason = registry.detect(Source(str(tmp_path / f"x.{form}"))).reason
        assert reason == f"content, maybe; suffix .{form}"
    with pytest.raises(UnknownFormat, match="a ZIP archive without arrays"):
        detect(tmp_path / "x.bin")
    verdicts = {one["name"]: one["verdict"] for one in why(str(tmp_path / "x.bin"))["candidates"]}
    assert (verdicts["zip"], verdicts["npz"]) == ("maybe", "maybe")
    with pytest.raises(Unsupported, match=r"holds no bundle\.yaml"):
        raconvert.read(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("name", "error"), [("x.ra", "wrong magic"), ("x.npy", "not an NPY file"), ("x.png", "PNG")]
)
def test_suffix_alone_lets_its_format_say_what_is_wrong(
    name: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind")

    with pytest.raises(Corrupt, match=error):
        raconvert.read(tmp_path / name)


def test_from_decides_over_content(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(NPY)

    assert detect(tmp_path / "x.npy", "ra") == "ra"
    with pytest.raises(Corrupt, match="wrong magic"):
        raconvert.read(tmp_path / "x.npy", from_="ra")


def test_from_an_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(NPY)

    with pytest.raises(UnknownFormat, match=r"did you mean 'npy'\?"):
        raconvert.read(tmp_path / "x.npy", from_="npyy")


def test_unknown_content_names_the_command_that_has_every_answer(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"nothing of the kind")

    with pytest.raises(UnknownFormat) as refusal:
        detect(tmp_path / "x.bin")

    message = str(refusal.value)
    assert "with from_" in message
    assert f"raconvert formats --why {tmp_path / 'x.bin'}" in message
    candidates = why(str(tmp_path / "x.bin"))["candidates"]
    assert {one["name"] for one in candidates if one["verdict"] == "no"} >= BUILT_IN - {"har"}


def test_why_gives_every_verdict(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(NPY)

    verdicts = {
        found["name"]: found["verdict"] for found in why(str(tmp_path / "x.png"))["candidates"]
    }

    assert verdicts == {**dict.fromkeys(BUILT_IN, "no"), "npy": "sure"}


def test_why_of_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x0e\x03\x13\x01" + bytes(40))

    found = why(str(tmp_path / "x"))

    assert (found["format"], found["exit_code"]) == (None, 3)
    assert "HDF4" in found["reason"]


@pytest.mark.parametrize(
    "name", ["scan[1].npy", "a#b.npy", "*.npy", "-x.npy", "{}.npy", "é 日.npy"]
)
def test_existing_name_is_taken_literally(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(NPY)

    assert raconvert.read(name).tolist() == [97, 98, 99]


# What is no file of data -------------------------------------------------------------------------


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x").touch()

    with pytest.raises(UnknownFormat, match="empty"):
        detect(tmp_path / "x")


@pytest.mark.parametrize("name", ["x.ra", "x.npy", "x.npz", "x.png"])
def test_empty_file_with_a_suffix(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()

    with pytest.raises(RaconvertError) as refusal:
        raconvert.read(tmp_path / name)
    assert str(tmp_path / name) in str(refusal.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ReadFailed, match=r"missing\.ra"):
        raconvert.read(tmp_path / "missing.ra")
    with pytest.raises(ReadFailed, match=r"missing\.ra.*does not exist"):
        raconvert.convert(tmp_path / "missing.ra", tmp_path / "x.npy")


def test_missing_file_exit_code(tmp_path: Path) -> None:
    done = cli("missing.ra", "-o", "x.npy", cwd=tmp_path)

    assert done.returncode == 1
    assert "missing.ra" in done.stderr


def test_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="a folder is not a regular file"):
        detect(tmp_path)


def test_folder_without_files_of_a_known_format(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "readme.txt").touch()

    with pytest.raises(ReadFailed, match="no file of a known format"):
        raconvert.convert(tmp_path / "in", tmp_path / "x.ra")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("words", [["info", "pipe.ra"], ["pipe.ra", "-o", "x.npy"]], ids=str)
def test_pipe_is_refused_and_not_waited_for(words: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ra")

    done = cli(*words, cwd=tmp_path)

    assert done.returncode == 4
    assert "pipe" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.ra"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("call", ["raconvert.read", "raconvert.open", "raconvert.ra.read"])
def test_pipe_is_refused_by_the_library(call: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ra")
    code = "import raconvert, raconvert.ra\nfrom raconvert.errors import Unsafe\n"
    code += f"try: {call}('pipe.ra')\nexcept Unsafe as error: print(error)"

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "'pipe.ra': a pipe, device or socket is not a regular file" in done.stdout, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
def test_device_is_refused() -> None:
    with pytest.raises(Unsafe, match="/dev/zero"):
        raconvert.read("/dev/zero")


@pytest.mark.parametrize("name", ["with\0nul", "x" * 5000], ids=["nul", "too_long"])
def test_impossible_name_is_a_refusal_of_ours(name: str) -> None:
    with pytest.raises(RaconvertError):
        raconvert.read(name)
    with pytest.raises(RaconvertError):
        raconvert.convert(name, "x.ra")


@pytest.mark.parametrize(
    ("word", "meant"), [("h5", "hdf5"), (".h5", "hdf5"), ("tif", "tiff"), (".pgm", "netpbm")]
)
def test_a_suffix_is_a_name_of_its_format(word: str, meant: str) -> None:
    assert registry.by_name(word).name == meant
