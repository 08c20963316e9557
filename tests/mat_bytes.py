"""MAT files made byte by byte, as tests damage them."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def element(code: int, data: bytes, nbytes: int | None = None) -> bytes:
    """Return an element; `nbytes` is what its tag claims."""
    claim = len(data) if nbytes is None else nbytes
    return struct.pack("<2I", code, claim) + data + bytes(-len(data) % 8)


def body(cls: int, dims: tuple[int, ...], name: bytes, *parts: bytes, flags: int = 0) -> bytes:
    found = element(6, struct.pack("<2I", cls | flags, 0))
    found += element(5, struct.pack(f"<{len(dims)}i", *dims)) + element(1, name)
    return found + b"".join(parts)


def matrix(*arguments: Any, flags: int = 0, nbytes: int | None = None) -> bytes:
    return element(14, body(*arguments, flags=flags), nbytes)


def doubles(*values: float) -> bytes:
    return element(9, struct.pack(f"<{len(values)}d", *values))


def ints(*values: int) -> bytes:
    return element(5, struct.pack(f"<{len(values)}i", *values))


def deflated(data: bytes) -> bytes:
    packed = zlib.compress(data, 9)
    return struct.pack("<2I", 15, len(packed)) + packed


def fields(*names: bytes, width: int = 32) -> bytes:
    return ints(width) + element(1, b"".join(name.ljust(width, b"\0") for name in names))


def saved(tmp_path: Path, contents: bytes) -> Path:
    path = tmp_path / "x.mat"
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + contents)
    return path


def level4(word: int, rows: int, columns: int, imaginary: int, name: bytes, data: bytes) -> bytes:
    return struct.pack("<5i", word, rows, columns, imaginary, len(name)) + name + data


def v73(path: Path, fill: Callable[[h5py.File], object]) -> Path:
    with h5py.File(path, "w", userblock_size=512) as file:
        fill(file)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")
    return path


def tagged(item: Any, cls: bytes, **more: Any) -> Any:
    item.attrs["MATLAB_class"] = np.bytes_(cls)
    for name, value in more.items():
        item.attrs[name] = value
    return item
