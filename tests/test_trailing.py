"""Bytes behind the end of a file: one rule for all formats, a note that counts them, or an error.

TIFF has no row: it has no end, since directories and private tags may point anywhere, and tifffile
itself leaves scraps of directories behind the last one. JPEG is in test_image.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import every

import raconvert
from raconvert.conversion.read import open_bundle
from raconvert.errors import Corrupt

VALUES = np.arange(24, dtype="<f4").reshape(4, 6)
BYTES = np.arange(24, dtype="u1").reshape(4, 6)
TAILS = {"zeros": bytes(7), "junk": b"junk!!!", "block": bytes(1024)}
# What follows is noted, kept (RA), or forbidden, since the format knows its own end.
RULES = {
    "npy": "noted", "npz": "noted", "zip": "noted", "nrrd": "noted", "nrrd gzip": "noted",
    "nrrd bzip2": "noted", "nrrd ascii": "noted", "nrrd hex": "uncounted", "png": "noted",
    "pgm": "noted", "gif": "noted", "bmp": "noted", "dib": "noted", "h5": "noted", "mat 7.3": "noted",
    "tar": "padded", "mat 7": "padded to 8", "ra": "kept", "har": "forbidden", "scidb": "forbidden",
    "idx": "noted", "idx.gz": "noted", "nii": "noted", "nii.gz": "noted", "mha": "noted",
    "mha zlib": "noted", "safetensors": "forbidden", "mrc": "noted", "wds.tar": "padded",
    "rds": "noted", "rds none": "noted",
}  # fmt: skip
OPTIONS = {"nrrd": "encoding", "mat": "version", "mha": "compress", "rds": "compress"}


def written(form: str, folder: Path) -> tuple[Path, np.ndarray]:
    """A small file in a format, and what is in it."""
    suffix, _, option = form.partition(" ")
    path = folder / f"x.{suffix}"
    values = BYTES if suffix in ("png", "pgm", "gif", "bmp") else VALUES
    if suffix == "dib":  # a BMP without its file header
        raconvert.write(folder / "x.bmp", BYTES)
        path.write_bytes((folder / "x.bmp").read_bytes()[14:])
        return path, BYTES
    raconvert.write(path, values, out_opts={OPTIONS[suffix]: option} if option else None)
    return path, values


@every("tail", TAILS)
@every("form", RULES)
def test_trailing_bytes(form: str, tail: str, tmp_path: Path) -> None:
    path, values = written(form, tmp_path)
    with open_bundle(path) as bundle:
        assert np.array_equal(np.array(bundle.arrays[0]), values)
        assert not any("ignored" in note for note in bundle.notes)
    path.write_bytes(path.read_bytes() + TAILS[tail])
    rule = RULES[form]
    if rule == "forbidden" or (rule == "padded to 8" and tail != "zeros"):
        with pytest.raises(Corrupt):
            raconvert.read(path)
        return
    with open_bundle(path) as bundle:
        assert np.array_equal(np.array(bundle.arrays[0]), values)
        told = [note for note in bundle.notes if "ignored" in note]
    if rule == "kept":
        raconvert.convert(path, tmp_path / "y.ra")
        assert (tmp_path / "y.ra").read_bytes() == path.read_bytes()
    elif rule == "padded":  # zeros fill up the last record of a tape
        assert len(told) == (tail == "junk")
    elif rule == "padded to 8":
        assert told == ["7 zero bytes after the last variable were ignored"]
    elif rule == "uncounted":  # two digits are a byte, and other text none
        assert told == ["values after the data were ignored"]
    else:
        assert len(told) == 1
        assert told[0].startswith(f"{len(TAILS[tail])} bytes after the ")


@pytest.mark.parametrize("user_block", [0, 512, 2048])
@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_end_of_hdf5(libver: str, user_block: int, tmp_path: Path) -> None:
    """The end is that of h5py's superblocks of all versions, behind a user block too."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        file["x"] = VALUES
    for tail in (b"", b"\1" * 5):
        path.write_bytes(path.read_bytes() + tail)
        with open_bundle(path) as bundle:
            told = [note for note in bundle.notes if "ignored" in note]
        wanted = ["5 bytes after the end of the HDF5 data were ignored"]
        assert told == (wanted if tail else [])


def test_a_user_block_in_front_of_a_whole_file(tmp_path: Path) -> None:
    """As h5jam does it without rewriting the addresses: the library moves the end, too."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = VALUES
    path.write_bytes(bytes(512) + path.read_bytes())
    with h5py.File(path) as file:
        assert np.array_equal(file["x"][...], VALUES)
    with open_bundle(path) as bundle:
        assert not any("ignored" in note for note in bundle.notes)


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_end_of_bmp(mode: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new(mode, (5, 3)).save(tmp_path / "x.bmp")
    with open_bundle(tmp_path / "x.bmp") as bundle:
        assert not any("ignored" in note for note in bundle.notes)
