"""WebDataset by its library and by tarfile: the judges of the format, and its pairs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import webdataset
from pairs import NAME, Pairs
from PIL import Image
from webdataset.autodecode import Decoder
from webdataset.tariterators import group_by_keys, tar_file_expander

FORMAT = "webdataset"


def load(*paths: Path) -> list[dict[str, Any]]:
    """The samples of shards as the library decodes them, by its own steps: it leaves files open."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            files = tar_file_expander([{"url": str(path), "stream": stream}])
            for sample in group_by_keys(files):
                plain = {k: v for k, v in sample.items() if k not in ("__url__", "__local_path__")}
                found.append(Decoder([])(plain))
    return found


def save(path: Path, samples: list[dict[str, Any]]) -> None:
    """Write by the library, which encodes by extension."""
    with webdataset.TarWriter(str(path)) as file:
        for sample in samples:
            file.write(sample)


def save_values(path: Path, values: np.ndarray) -> None:
    """Write an array by the library, an NPY file for each index along its first axis."""
    rows = [np.ascontiguousarray(row).reshape(values.shape[1:]) for row in values]
    save(path, [{"__key__": f"{n:06d}", f"{NAME}.npy": npy_bytes(row)}
                for n, row in enumerate(rows)])  # fmt: skip


def npy_bytes(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def load_values(path: Path) -> np.ndarray:
    """The array of a file of one, stacked; `numpy` reads the members, as the library does."""
    samples = load(path)
    (word,) = samples[0].keys() - {"__key__"}
    rows = [np.asarray(sample[word]) for sample in samples]
    values = np.empty((len(rows), *rows[0].shape), rows[0].dtype)  # `numpy.stack` swaps bytes
    for number, row in enumerate(rows):
        assert row.dtype == values.dtype
        values[number] = row
    return values


IN_PAIRS = (
    Pairs(
        name=FORMAT,
        suffix=".wds.tar",
        read=load_values,
        write=save_values,
        can_write=lambda values: values.dtype.isbuiltin != 2 and values.ndim > 0 and len(values) > 0,
        order="C",
        guest=True,
        types="= * x bfloat16",  # NumPy makes V2 of it, silently
        shapes="x () 0 0,4 = *",
    ),
)  # fmt: skip


def picture(values: np.ndarray, form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, form)
    return file.getvalue()


def tar_of(path: Path, members: dict[str, bytes], **fields: Any) -> Path:
    """Pack by tarfile; `fields` are those of every member."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            file.addfile(info, io.BytesIO(data))
    return path
