"""RA by its layout table, for the suites over all pairs of formats."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import ra_bytes
import yaml
from pairs import FLOATS, Facts, Pairs, little, of_sidecar

CODES = {"i": 1, "u": 2, "f": 3, "c": 4, "b": 5}
ODD_TYPES = {(1, 5): "?", (2, 5): ml_dtypes.bfloat16}


def code_of(dtype: np.dtype[Any]) -> int:
    return 5 if dtype == ml_dtypes.bfloat16 else CODES.get(dtype.kind, 0)


def contents_of(values: np.ndarray, *, big: bool = False) -> bytes:
    """Return the plain .ra file of values in C order: dims reversed; big-endian behind flag 1."""
    data = values.astype(values.dtype.newbyteorder(">")) if big else little(values)
    dims = values.shape[::-1]
    return ra_bytes.ra_file(
        code_of(values.dtype), values.itemsize, dims, data.tobytes(), flags=int(big)
    )


def write(path: Path, values: np.ndarray) -> None:
    path.write_bytes(contents_of(values, big=values.dtype.byteorder == ">"))


def write_column_major(path: Path, values: np.ndarray) -> None:
    """Write an .ra with the dims as they stand, and by hand the sidecar that says so."""
    data = little(values).tobytes(order="F")
    code = code_of(values.dtype)
    path.write_bytes(ra_bytes.ra_file(code, values.itemsize, values.shape, data))
    Path(f"{path}.yaml").write_bytes(sidecar_of(values, data, values.shape, "F"))


def sidecar_of(values: np.ndarray, data: bytes, dims: tuple[int, ...], order: str = "") -> bytes:
    """Return what belongs beside an .ra of this data."""
    code = code_of(values.dtype)
    crc = f"{zlib.crc32(data):08x}"  # of the first and of the last 64 KiB, here the same
    lines = [
        "describes:",
        f"  eltype: {code}",
        f"  elbyte: {values.itemsize}",
        f"  dims: {list(dims)}",
        f"  size: {len(data)}",
        f"  crc32_first: '{crc}'",
        f"  crc32_last: '{crc}'",
    ]
    if order:
        lines.append(f"index_order: {order}")
    if code == 0:
        descr = np.lib.format.dtype_to_descr(values.dtype)
        lines.append(f"dtype: {json.dumps(descr)}")
    return ("\n".join(lines) + "\n").encode()


def sidecar(path: Path) -> dict[str, Any]:
    beside = Path(f"{path}.yaml")
    return yaml.safe_load(beside.read_text(encoding="utf-8")) if beside.exists() else {}


def read(path: Path) -> np.ndarray:
    return values_of(path.read_bytes(), sidecar(path))


def values_of(contents: bytes, told: dict[str, Any]) -> np.ndarray:
    """Return a plain .ra: dims reversed, or as they stand where the sidecar says F."""
    magic, flags, eltype, elbyte, size, ndims = struct.unpack_from("<8s5Q", contents)
    dims = struct.unpack_from(f"<{ndims}Q", contents, 48)
    data = contents[48 + 8 * ndims :]
    assert (magic, flags, size) == (b"rawarray", 0, len(data))
    kind = {code: kind for kind, code in CODES.items()}.get(eltype)
    dtype = ODD_TYPES.get((elbyte, eltype)) or f"<{kind}{elbyte}"
    if eltype == 0:
        dtype = told.get("dtype", f"V{elbyte}")
        if isinstance(dtype, list):
            dtype = [tuple(tuple(x) if isinstance(x, list) else x for x in f) for f in dtype]
    values = np.frombuffer(data, np.dtype(dtype)).reshape(dims[::-1])
    return values.T if told.get("index_order") == "F" else values


def say(path: Path, generator: random.Random) -> Facts:
    """An .ra and its sidecar, written by hand; in either index order."""
    from zlib import crc32

    order = generator.choice("CF")
    data = FLOATS.tobytes(order)
    dims = list(FLOATS.shape if order == "F" else FLOATS.shape[::-1])
    words = np.array([0, 3, 4, len(data), 2, *dims], "<u8").tobytes()
    path.write_bytes(b"rawarray" + words + data)
    digits = f"{crc32(data):08x}"
    described = {"eltype": 3, "elbyte": 4, "dims": dims, "size": len(data)}
    described |= {"crc32_first": digits, "crc32_last": digits}
    axes = [
        {"name": "row", "spacing": 0.5, "origin": 1.5},
        {"name": "column", "labels": ["x", "y", "z"]},
    ]
    fields = {
        "describes": described, "index_order": order, "description": "what", "units": "K",
        "axes": axes if order == "F" else axes[::-1], "attributes": {"a": 1, "b": [0.5, "t"]},
    }  # fmt: skip
    path.with_name(f"{path.name}.yaml").write_text(yaml.safe_dump(fields, sort_keys=False))
    return {
        "names": ["row", "column"], "labels": [None, ["x", "y", "z"]], "spacings": [0.5, None],
        "attributes": fields["attributes"], "units": "K", "description": "what",
    }  # fmt: skip


def said(path: Path) -> Facts:
    beside = path.with_name(f"{path.name}.yaml")
    return of_sidecar(yaml.safe_load(beside.read_text())) if beside.exists() else {}


def can_write(values: np.ndarray) -> bool:
    """True if a bare file says what its elements are."""
    return values.dtype.kind in "iufcb" or values.dtype == ml_dtypes.bfloat16


IN_PAIRS = (
    Pairs(
        name="ra",
        suffix=".ra",
        read=read,
        write=write,
        can_write=can_write,
        write_column_major=write_column_major,
        keeps=True,
        types="= *",  # what is inside user elements is in the sidecar
        shapes="= *",
        law={"ra_bare": None, "ra_sidecar": "F"},
        say=say,
        said=said,
    ),
)
