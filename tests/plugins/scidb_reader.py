"""SciDB from its schema language, for the suites over all pairs of formats."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from pairs import NAME, Facts, Pairs, little

WORDS = {"f4": "float", "f8": "double"} | {
    f"{kind[0]}{n}": f"{kind}{8 * n}" for kind in ("int", "uint") for n in (1, 2, 4, 8)
}


def write(path: Path, values: np.ndarray) -> None:
    """Write the records as they lie in memory, and a schema of one chunk beside them."""
    dtype = values.dtype
    kind = WORDS.get(f"{dtype.kind}{dtype.itemsize}") or f"binary({dtype.itemsize})"
    dims = "; ".join(f"d{n}=0:{length - 1}" for n, length in enumerate(values.shape))
    path.write_bytes(little(values).tobytes())
    schema = f"<{NAME}:{kind.partition('(')[0]} NOT NULL>[{dims}]\nformat: ({kind})\n"
    Path(f"{path}.schema").write_text(schema, encoding="utf-8")


def read(path: Path) -> np.ndarray:
    """Return the records in the shape of the schema: one chunk, so in row-major order."""
    schema = Path(f"{path}.schema").read_text(encoding="utf-8")
    name, dims, kind, width = re.match(
        r"<(\w+):[^>]*>\[(.*)\]\nformat: \((\w+)(?:\((\d+)\))?\)\n", schema
    ).groups()  # type: ignore[union-attr]
    assert name == NAME
    shape = []
    for dim in dims.split("; "):
        _, low, high, overlap, chunk = re.match(
            r"(\w+)=(-?\d+):(-?\d+)(?::(\d+):(\d+))?$", dim
        ).groups()  # type: ignore[union-attr]
        shape.append(int(high) - int(low) + 1)
        assert overlap in (None, "0")
        assert chunk in (None, str(max(1, shape[-1])))
    codes = {word: code for code, word in WORDS.items()} | {"bool": "u1", "datetime": "M8[s]"}
    dtype = np.dtype(f"V{width}" if width else codes[kind])
    return np.frombuffer(path.read_bytes(), dtype).reshape(shape)


def said(path: Path) -> Facts:
    text = path.with_name(f"{path.name}.schema").read_text()
    dims = text[text.index("[") + 1 : text.index("]")].split(";")
    return {"names": [dim.strip().partition("=")[0] for dim in dims]}


def can_write(values: np.ndarray) -> bool:
    """True if there is an axis, and a word for the type, or bare bytes."""
    dtype = values.dtype
    bare = dtype.kind == "V" and not dtype.names and dtype.isbuiltin != 2
    return (f"{dtype.kind}{dtype.itemsize}" in WORDS or bare) and values.ndim > 0


def bare(values: np.ndarray) -> np.ndarray:
    return values.view(f"V{values.itemsize}")


# bool is a byte, complex numbers are pairs, float the smallest; datetime counts seconds. One axis at
# least.
IN_PAIRS = (
    Pairs(
        name="scidb",
        suffix=".scidb",
        read=read,
        write=write,
        can_write=can_write,
        order="C",
        says_more=True,  # a schema with dimensions
        types="""
            = int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 int16_big
              uint16_big int64_big float32_big void
            ~ bool float16 complex64 complex128 complex128_big bytes seconds
            x bfloat16 text text_big datetime timedelta structured
        """,
        shapes="""
            = 5 0 4,6 6,4 1,1 4,0 0,4 4,6,1 1,6,4 4,6,2 2,6,4 4,6,3 3,6,4 4,6,5 5,6,4 2,0,3
              3,0,2 1,1,3,1 1,3,1,1 2,3,4,3 3,4,3,2
            ~ ()
        """,
        allowed={
            "bfloat16": ("dtype", bare),
            "text": ("dtype", bare),
            "datetime": ("dtype", bare),
            "timedelta": ("dtype", bare),
            "structured": ("dtype", bare),
        },
        said=said,
    ),
)
