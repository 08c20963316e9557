"""One HDF5 file that is opened several times in a process: by raconvert, and by h5py beside it.

A process that ends by a signal must not end this one, so all of it happens in others.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from cases import rounds
from raconvert.plugins.hdf5.files import File, _handles

import raconvert
from raconvert.errors import Changed, ReadFailed
from raconvert.plugin import Source
from tests.remote import webserver

STRINGS = h5py.string_dtype()
WORDS = ["Halifax", "Sable", "Gander"]

# Sequences of calls; arguments: their number, seed, files, or URLs of files. What a bundle shows
# must never change.
SEQUENCES = """
import faulthandler, gc, random, sys
faulthandler.enable()
import h5py, numpy as np, raconvert, xarray

count, seed, *paths = sys.argv[1:]
chance = random.Random(int(seed))
first = {}
gc.freeze()  # what was imported is not looked through again by each "collect"

def seen(path, bundle):
    values = {name: np.asarray(array[...]).tolist() for name, array in bundle.items()}
    assert first.setdefault(path, values) == values, (path, values)

def touched(file):
    found = []
    for name in list(file):
        if isinstance(file[name], h5py.Dataset):
            file[name].id.get_create_plist()
            found.append((file[name], file[name][()]))
    return found

for sequence in range(int(count)):
    opened, beside, sets = [], [], []
    for step in range(chance.randrange(2, 12)):
        path = chance.choice(paths)
        what = chance.choice("open open close info read look convert drop h5py h5py-read "
                             "h5py-close xarray xarray-close collect".split())
        if what == "open":
            opened.append((path, raconvert.open(path)))
        elif what == "close" and opened:
            opened.pop(chance.randrange(len(opened)))[1].close()
        elif what == "drop" and opened:
            opened.pop(chance.randrange(len(opened)))
        elif what == "look" and opened:
            seen(*chance.choice(opened))
        elif what == "info":
            raconvert.info(path)
        elif what == "read":
            raconvert.read(path)
        elif what == "convert":
            raconvert.convert(path, "converted.npz", overwrite=True)
        elif what == "h5py":
            file = h5py.File(path.rpartition("/")[2])
            beside.append((file, touched(file)))
        elif what == "h5py-read" and beside:
            touched(chance.choice(beside)[0])
        elif what == "h5py-close" and beside:
            beside.pop(chance.randrange(len(beside)))[0].close()
        elif what == "xarray" and path.endswith(".nc"):
            sets.append(xarray.open_dataset(path, engine="raconvert"))
            sets[-1].load()
        elif what == "xarray-close" and sets:
            sets.pop(chance.randrange(len(sets))).close()
        elif what == "collect":
            gc.collect()
    for path, bundle in opened:
        seen(path, bundle)
        bundle.close()
print("all done")
"""


def of_netcdf(path: Path, engine: str) -> None:
    """Write a file with a text coordinate, by xarray."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    data = {"t": ("place", np.arange(3.0)), "n": (("place", "word"), [["a"], ["bc"], [""]])}
    xarray.Dataset(data, coords={"place": WORDS}).to_netcdf(path, engine=engine)


def of_netcdf4(path: Path) -> None:
    """Write variables of texts and of sequences, with fill values, by netCDF4."""
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("place", 3)
        file.createVariable("place", str, ("place",))[:] = np.array(WORDS, object)
        file.createVariable("x", "f4", ("place",), fill_value=-1.0)[:] = [1, 2, 3]
        rows = file.createVariable("rows", file.createVLType("i4", "row"), ("place",))
        rows[0] = np.array([1, 2], "i4")
        file.note = "text"
        file.setncattr_string("words", WORDS)


def of_h5py(path: Path, libver: str) -> None:
    """Write texts, sequences and structures of variable length, and attributes of them."""
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("words", data=WORDS, dtype=STRINGS, fillvalue="none")
        file.create_dataset("cut", data=WORDS, dtype=STRINGS, chunks=(2,), compression="gzip")
        file.create_dataset("unwritten", (4,), STRINGS, fillvalue="none")
        pair = np.array(
            [(b"a", 1), (b"bc", 2)], [("word", h5py.string_dtype("ascii")), ("n", "i4")]
        )
        file["pairs"] = pair
        rows = file.create_dataset("rows", (2,), h5py.vlen_dtype("f8"))
        rows[0] = [1.0, 2.0]
        file["numbers"] = np.arange(4)
        file["numbers"].attrs["words"] = WORDS
        file["numbers"].attrs.create("row", np.array([1, 2]))
        file["words"].make_scale("words")
        file["numbers"].dims[0].label = "n"


@pytest.mark.parametrize(("seed", "place"), [(0, "disk"), (1, "disk"), (2, "web")])
def test_sequences_of_calls_end_no_process(tmp_path: Path, seed: int, place: str) -> None:
    of_netcdf(tmp_path / "netcdf4.nc", "netcdf4")
    of_netcdf(tmp_path / "h5netcdf.nc", "h5netcdf")
    of_netcdf4(tmp_path / "types.nc")
    of_h5py(tmp_path / "earliest.h5", "earliest")
    of_h5py(tmp_path / "latest.h5", "latest")
    names = sorted(path.name for path in tmp_path.iterdir())

    def run(count: int, paths: list[str]) -> None:
        call = [sys.executable, "-c", SEQUENCES, str(count), str(seed), *paths]
        done = subprocess.run(
            call, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=600
        )
        assert (done.returncode, done.stdout) == (0, "all done\n"), done.stderr[-3000:]

    if place == "disk":
        run(rounds(60, 20), [str(tmp_path / name) for name in names])
        return
    pytest.importorskip("aiohttp")
    pytest.importorskip("fsspec")
    with webserver.running(tmp_path) as server:
        run(15, [server.url(name) for name in names])


def test_a_file_is_opened_once_and_closed_with_its_last_reader(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    of_h5py(path, "earliest")
    one, two = File(Source(str(path))), File(Source(str(path)))
    fid = one.fid
    assert two.fid is fid
    one.close()
    one.close()
    assert fid.valid
    with pytest.raises(ReadFailed, match="is closed"):
        _ = one.fid
    two.close()
    assert not fid.valid
    third = File(Source(str(path)))
    fid = third.fid
    del third  # without being closed
    assert not fid.valid
    assert not _handles


def test_what_h5py_has_open_is_another_file_to_the_library(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    of_h5py(path, "earliest")
    with h5py.File(path) as beside:
        with raconvert.open(path) as bundle:
            assert bundle["words"][...].tolist() == [word.encode() for word in WORDS]
            # It has none of the objects of the other identifier.
            assert len(h5py.h5f.get_obj_ids(beside.id, h5py.h5f.OBJ_ALL)) == 1
        assert beside["words"][0] == b"Halifax"


def test_a_file_that_was_written_anew_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    of_h5py(path, "earliest")
    old = raconvert.open(path)
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["words"] = ["one", "other"]
    path.write_bytes((tmp_path / "y.h5").read_bytes())  # the same inode
    with raconvert.open(path) as new:
        assert new["words"][...].tolist() == [b"one", b"other"]
    with pytest.raises(Changed):
        _ = old["words"][...]
    old.close()
