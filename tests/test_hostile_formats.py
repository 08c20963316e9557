"""What the hostile files of each format cost: each is refused in two seconds and 300 MB at most.

The tests of the formats say what is wrong with their files, and what is answered. Here the same files
are converted, each in a process of its own whose CPU time and memory are measured (`attempts`), and
they are counted: a format has 20 shapes at least.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attempts
import pytest
import test_dicom_hostile
import test_edf
import test_fits
import test_fits_tables
import test_gguf
import test_image_bmp
import test_image_frames
import test_image_hostile
import test_image_netpbm
import test_image_tiff_codecs
import test_image_tiff_pictures
import test_lmdb
import test_mat_classes
import test_mrc
import test_netcdf3
import test_ome_hostile
import test_rds
import test_tables_arrow
import test_tables_csv
import test_tables_xlsx
import test_tfrecord
import test_torch
import test_webdataset_hostile
from attempts import PEAK, REFUSALS, Answer

from raconvert.registry import by_name, load

SHAPES = 20  # of each format, at least
SECONDS = 2.0  # of CPU
IMAGES = {"tiff", "gif", "webp", "bmp", "netpbm"}
MOST = 64 << 20  # of --max-memory for images, of which some are sound but large
Shapes = dict[str, Callable[[Path], Path]]  # by name: makes the file in a folder


def in_file(suffix: str, *tables: dict[str, Any]) -> Shapes:
    """Tables of bytes, or of rows that begin with them."""
    return {
        name: _writing(f"x{suffix}", row[0] if isinstance(row, tuple) else row)
        for table in tables
        for name, row in table.items()
    }


def _writing(name: str, content: bytes | Callable[[], bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content() if callable(content) else content)
        return folder / name

    return write


def named(suffix: str, *tables: dict[str, Any]) -> Shapes:
    """The rows of tables whose names end with a suffix."""
    chosen = [{k: v for k, v in table.items() if k.endswith(suffix) and v[0]} for table in tables]
    return in_file(suffix, *chosen)


def made(table: dict[str, Any], make: Callable[[Path, Any], Path]) -> Shapes:
    """Rows that a function makes files of, in a folder."""
    return {name: partial(_made, make, row) for name, row in table.items()}


def _made(make: Callable[[Path, Any], Path], row: Any, folder: Path) -> Path:
    return make(folder, row)


def _dicom(folder: Path, row: Any) -> Path:
    (folder / "x.dcm").write_bytes(row())
    return folder / "x.dcm"


def _lmdb(folder: Path, name: str) -> Path:
    (folder / "x.lmdb").write_bytes(test_lmdb.hostile(name)[0])
    return folder / "x.lmdb"


def _mrc(folder: Path, row: Any) -> Path:
    return test_mrc.changed(folder / "x.mrc", *row[0], extra=row[1])


def _torch(folder: Path, row: Any) -> Path:
    return test_torch.archive(folder / "x.pt", b"\x80\x02" + row[0])


def _xlsx(folder: Path, row: Any) -> Path:
    good = test_tables_xlsx.book(folder / "good", ("S", [["a", "b"], [1, 2]]))
    (folder / "x.xlsx").write_bytes(test_tables_xlsx._with(good, row[0], row[1]))
    good.unlink()
    return folder / "x.xlsx"


def _classes(folder: Path, row: Any) -> Path:
    """A file with nothing but a string that is damaged."""
    return test_mat_classes.with_classes(folder, test_mat_classes.opaque(b"s", b"string"), row[0]())


FORMATS: dict[str, Shapes] = {
    "netcdf3": in_file(".nc", test_netcdf3.HOSTILE),
    "tiff": in_file(".tif", test_image_tiff_codecs.HOSTILE, test_image_tiff_pictures.HOSTILE),
    "gif": named(".gif", test_image_frames.HOSTILE, test_image_hostile.HOSTILE),
    "webp": named(".webp", test_image_frames.HOSTILE, test_image_hostile.HOSTILE),
    "bmp": in_file(".bmp", test_image_bmp.HOSTILE),
    "netpbm": in_file(".pnm", test_image_netpbm.HOSTILE),
    "ometiff": made(
        test_ome_hostile.TEXTS, lambda folder, row: test_ome_hostile.tiff(folder / "x.ome.tif", row)
    ),
    "omezarr": made(
        {n: d for n, d in test_ome_hostile.DOCUMENTS.items() if "plate" not in d},
        lambda folder, row: test_ome_hostile.hierarchy(folder, row, "0.5"),
    ),
    "dicom": made(test_dicom_hostile.HOSTILE, _dicom),
    "fits": in_file(".fits", test_fits.HOSTILE, test_fits_tables.HOSTILE),
    "mrc": made(test_mrc.HOSTILE, _mrc),
    "torch": made(test_torch.PICKLES, _torch),
    "gguf": in_file(".gguf", test_gguf.HOSTILE),
    "csv": in_file(".csv", {n: row for n, row in test_tables_csv.HOSTILE.items() if not row[1]}),
    "parquet": in_file(".parquet", test_tables_arrow.HOSTILE_PARQUET),
    "arrow": in_file(".arrow", test_tables_arrow.HOSTILE_ARROW),
    "xlsx": made(test_tables_xlsx.HOSTILE, _xlsx),
    "mat": made(test_mat_classes.HOSTILE, _classes),
    "rds": in_file(".rds", test_rds.HOSTILE),
    "webdataset": in_file(".tar", {n: row[1:] for n, row in test_webdataset_hostile.HOSTILE.items()}),
    "lmdb": made({name: name for name in test_lmdb.HOSTILE}, _lmdb),
    "tfrecord": in_file(".tfrecord", test_tfrecord.HOSTILE),
    "edf": in_file(".edf", test_edf.HOSTILE),
}  # fmt: skip


@pytest.fixture(scope="module")
def attempt() -> Iterator[Callable[..., Answer]]:
    with attempts.server(SECONDS) as run:
        yield run


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_files_cost_little(
    form: str, attempt: Callable[..., Answer], tmp_path: Path
) -> None:
    shapes = FORMATS[form]
    assert len(shapes) >= SHAPES
    _warm(form, attempt, tmp_path)
    options = {"max_memory": MOST} if form in IMAGES else {}
    wrong = {}
    for number, (name, make) in enumerate(shapes.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = make(folder)
        before = sorted(os.listdir(folder))
        found = attempt(path, folder / "out.npz", from_=form, **options)
        if found.kind not in {*REFUSALS, "WouldLose"} or found.peak > PEAK:
            wrong[name] = f"{found.kind}, {found.peak >> 20} MB: {found.text[:300]}"
        elif sorted(os.listdir(folder)) != before:
            wrong[name] = "something was written"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


def _warm(form: str, attempt: Callable[..., Answer], folder: Path) -> None:
    """Have the modules of a format imported, by a file that it reads."""
    for name, content in load(by_name(form)).FORMAT.samples.items():
        (folder / name).write_bytes(content)
        attempt(folder / name, folder / f"{name}.npz", from_=form)
