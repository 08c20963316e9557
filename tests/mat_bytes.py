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


# Objects of MATLAB's classes ---------------------------------------------------------------------

MAGIC = 0xDD000000


def numbers(*values: int) -> bytes:
    """Return an element of uint32."""
    return element(6, struct.pack(f"<{len(values)}I", *values))


def opaque(name: bytes, cls: bytes, *reference: int, system: bytes = b"MCOS") -> bytes:
    """Return a variable of a class; `reference` is by default that to object 1 of class 1."""
    reference = reference or (MAGIC, 2, 1, 1, 1, 1)
    handle = matrix(13, (len(reference), 1), b"", numbers(*reference))
    head = element(6, struct.pack("<2I", 17, 0)) + element(1, name) + element(1, system)
    return element(14, head + element(1, cls) + handle)


def listed(
    names: list[bytes],
    classes: list[int],
    objects: list[list[int]],
    plain: list[list[int]],
    saved: list[list[int]] = [],  # noqa: B006 - never changed
    version: int = 4,
    offsets: dict[int, int] | None = None,
    count: int | None = None,
) -> bytes:
    """Return the list of objects; names are counted from 1, blocks are numbers of properties.

    `classes`: the name of each; `objects`: class, block in `saved`, block in `plain`.
    """
    text = b"".join(name + b"\0" for name in names)
    text += bytes(-len(text) % 8)

    def blocks(some: list[list[int]]) -> list[int]:
        found = [0, 0]
        for block in some:
            found += block + [0] * (len(block) % 2)
        return found

    parts = [
        [0] * 4 + [n for name in classes for n in (0, name, 0, 0)],
        blocks(saved),
        [0] * 6 + [n for cls, a, b in objects for n in (cls, 0, 0, a, b, 1)],
        blocks(plain),
        [0, 0],
        [],
        [],
        [],
    ]
    places, at = [], 40 + len(text)
    for part in parts:
        places.append(at)
        at += 4 * len(part)
    for index, place in (offsets or {}).items():
        places[index] = place
    head = struct.pack("<10i", version, len(names) if count is None else count, *places)
    return head + text + b"".join(struct.pack(f"<{len(part)}i", *part) for part in parts)


def classes_data(head: bytes, *values: bytes, defaults: bytes | None = None) -> bytes:
    """Return the cell of ``FileWrapper__``: the list, the values, and what lies behind them."""
    nothing = struct.pack("<2I", 14, 0)
    first = matrix(9, (len(head), 1), b"", element(2, head))
    behind = [matrix(1, (0, 0), b""), matrix(12, (1, 1), b"", ints(0))]
    behind.append(matrix(1, (0, 0), b"") if defaults is None else defaults)
    cells = [first, nothing, *values, *behind]
    return matrix(1, (len(cells), 1), b"", *cells)


def subsystem(cell: bytes, *, cls: bytes = b"FileWrapper__", mark: bytes = b"IM") -> bytes:
    """Return the unnamed variable around the data of classes."""
    head = element(6, struct.pack("<2I", 17, 0)) + element(1, b"") + element(1, b"MCOS")
    wrapper = element(14, head + element(1, cls) + cell)
    inner = b"\0\1" + mark + bytes(4) + matrix(2, (1, 1), b"", fields(b"MCOS"), wrapper)
    return matrix(9, (1, len(inner)), b"", element(2, inner))


def with_classes(tmp_path: Path, variables: bytes, data: bytes, place: int | None = None) -> Path:
    """Save variables, and behind them the data of classes, to which the header points."""
    path = tmp_path / "x.mat"
    place = 128 + len(variables) if place is None else place
    head = b"MATLAB 5.0 MAT-file".ljust(116) + struct.pack("<Q", place) + b"\0\1IM"
    path.write_bytes(head + variables + data)
    return path


def string_record(*texts: str | None, dims: tuple[int, ...] | None = None) -> bytes:
    """Return the numbers in which MATLAB saves strings; None is a missing one."""
    dims = (len(texts), 1) if dims is None else dims
    units = b"".join((text or "").encode("utf-16-le", "surrogatepass") for text in texts)
    lengths = [
        (1 << 64) - 1 if text is None else len(text.encode("utf-16-le", "surrogatepass")) // 2
        for text in texts
    ]
    head = struct.pack(f"<{2 + len(dims) + len(lengths)}Q", 1, len(dims), *dims, *lengths)
    return head + units + bytes(-len(units) % 8)


def uint64s(raw: bytes) -> bytes:
    """Return a row of uint64 as a value."""
    return matrix(15, (1, len(raw) // 8), b"", element(13, raw))


def string_list() -> bytes:
    """Return the list of one object of the class string, of which value 0 is the text."""
    return listed([b"any", b"string"], [2], [[1, 1, 0]], [], [[1, 1, 1, 0]])
