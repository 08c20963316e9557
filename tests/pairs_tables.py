"""Which types and shapes the suites over all pairs try; what becomes of them, a format's `IN_PAIRS` says.

Nothing here is derived from the plugins, or from what they answer.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from pairs import Case, Shape, collected

EXACT, EQUIVALENT, REFUSED = "exact", "equivalent", "refused"
_OUTCOMES = {"=": EXACT, "~": EQUIVALENT, "x": REFUSED}

FORMATS = collected()
IN_TABLES = tuple(name for name, row in FORMATS.items() if row.types and not row.guest)
# Formats beside the mission: tried with its eight and with themselves, so that the number of pairs
# grows with the number of formats and not with its square.
GUESTS = tuple(name for name, row in FORMATS.items() if row.types and row.guest)
MISSION = ("ra", "npy", "png", "hdf5", "mat", "nrrd", "scidb", "har")
# Forms of RA, NPY and TIFF: not every case is tried from them.
HOLDERS = tuple(name for name, row in FORMATS.items() if row.few)

# Types -------------------------------------------------------------------------------------------

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("?"),
    **{np.dtype(code).name: np.dtype(f"<{code}") for code in
       ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    **{f"{np.dtype(code).name}_big": np.dtype(f">{code}") for code in
       ("i2", "u2", "i8", "f4", "c16")},
    "bytes": np.dtype("S3"),
    "text": np.dtype("<U2"),
    "text_big": np.dtype(">U2"),
    "datetime": np.dtype("<M8[ns]"),
    "seconds": np.dtype("<M8[s]"),
    "timedelta": np.dtype("<m8[D]"),
    "structured": np.dtype([("a", "<i4"), ("b", ">f8", (2,))]),
    "void": np.dtype("V3"),
}  # fmt: skip

SHAPES: tuple[Shape, ...] = (
    (), (5,), (0,), (4, 6), (6, 4), (1, 1), (4, 0), (0, 4), (4, 6, 1), (1, 6, 4), (4, 6, 2),
    (2, 6, 4), (4, 6, 3), (3, 6, 4), (4, 6, 5), (5, 6, 4), (2, 0, 3), (3, 0, 2), (1, 1, 3, 1),
    (1, 3, 1, 1), (2, 3, 4, 3), (3, 4, 3, 2),
)  # fmt: skip


def outcomes(lines: str, keys: dict[str, Any]) -> dict[Any, str]:
    """Return the outcome of every key, by lines of a sign and words; each is named once."""
    found: dict[str, str] = {}
    sign = others = ""
    for word in lines.split():
        if word in _OUTCOMES:
            sign = _OUTCOMES[word]
        elif word == "*":
            others = sign
        else:
            assert word in keys, f"{word} is not among {[*keys]}"
            assert word not in found, f"{word} is named twice"
            found[word] = sign
    assert others or len(found) == len(keys), f"nothing is said of {keys.keys() - found.keys()}"
    return {key: found.get(word, others) for word, key in keys.items()}


_TYPE_WORDS = {name: name for name in DTYPES}
_SHAPE_WORDS = {",".join(map(str, shape)) or "()": shape for shape in SHAPES}
# format -> type, of an array of two axes -> outcome. Byte order is no part of a type.
OF_TYPE = {name: outcomes(FORMATS[name].types, _TYPE_WORDS) for name in IN_TABLES + GUESTS}
# format -> shape, as it counts the indices -> outcome
OF_SHAPE = {name: outcomes(FORMATS[name].shapes, _SHAPE_WORDS) for name in IN_TABLES + GUESTS}

PLAIN = (4, 6)


def seen_from(target: str, shape: Shape, order: str | None) -> Shape:
    """Return the shape that a target gives an array: a source may have no index order.

    Row-major formats read its axes reversed, column-major ones as they stand; `shape` is the former.
    """
    return shape[::-1] if order is None and FORMATS[target].order == "F" else shape


def expected(target: str, name: str, shape: Shape, order: str | None = "C") -> str:
    """Return what a conversion of this type and shape to this format has to be."""
    shape = seen_from(target, shape, order)
    special = FORMATS[target].special(name, shape)
    found = {OF_SHAPE[target][shape], _OUTCOMES[special] if special else OF_TYPE[target][name]}
    return next(one for one in (REFUSED, EQUIVALENT, EXACT) if one in found)


def order_of(source: str) -> str | None:
    """Return C or F, the order in which the writer's files count; None where they do not say."""
    return {"": None, "F": "F"}.get(FORMATS[source].order, "C")


# Cases -------------------------------------------------------------------------------------------

EVERY_TYPE: list[Case] = [(name, PLAIN) for name in DTYPES]
# The types of which the shape matters in some format
SHAPE_TYPES = ("uint8", "float32", "bool", "int32", "uint16_big", "complex64")
EVERY_SHAPE: list[Case] = [(name, shape) for name in SHAPE_TYPES for shape in SHAPES]
FEW: list[Case] = [
    ("bool", PLAIN), ("uint8", (4, 6, 3)), ("int32", PLAIN), ("float32", (3, 6, 4)),
    ("complex64", (1, 1, 3, 1)), ("float64", ()), ("uint16", (5,)), ("float32", (2, 0, 3)),
    ("text", PLAIN), ("structured", PLAIN),
]  # fmt: skip


def cases(source: str, target: str = "") -> list[Case]:
    """Return what is tried from a format: all from NPY, which holds nearly all; some from others.

    What a target makes of an array does not depend on where it comes from.
    """
    if source in GUESTS or (target in GUESTS and source != "npy"):
        more = [(FORMATS[source].usual, shape) for shape in ((4, 6), (2, 3, 4, 3))]
        return list(dict.fromkeys([*FEW, *more]))
    if source in HOLDERS:
        return FEW
    name = FORMATS[source].usual
    shapes = EVERY_SHAPE if source == "npy" else [(name, shape) for shape in SHAPES]
    return list(dict.fromkeys([*EVERY_TYPE, *shapes]))


# The law of the axis order: ranks 1 to 4, and what takes another form in some format
LAW: list[Case] = [
    ("uint8", (5,)), ("uint8", (4, 6)), ("uint8", (4, 6, 3)), ("float32", (1, 6, 4)),
    ("float32", (2, 3, 4, 3)), ("int32", (4, 6)), ("complex64", (3, 6, 4)), ("text_big", (4, 6)),
]  # fmt: skip

# The way back: from NPY every type, and shapes with and without another form; from others some.
_BACK_SHAPES: tuple[Shape, ...] = ((), (5,), (2, 3), (2, 3, 4), (2, 0, 3), (1, 1, 3, 1))
_BACK_TYPES = (
    "bool", "int32", "uint16_big", "float16", "float64", "complex64", "bfloat16", "bytes",
    "datetime", "structured", "void",
)  # fmt: skip
# shape -> one of the tables that every format treats alike
_LIKE: dict[Shape, Shape] = {(2, 3): (4, 6), (2, 3, 4): (5, 6, 4)}


def cases_back(source: str) -> list[Case]:
    """Return what is sent to another format and back."""
    if source in GUESTS:
        name = FORMATS[source].usual
        return [("float32", (2, 3)), *((name, shape) for shape in ((5,), (2, 3), (2, 3, 4)))]
    if source in HOLDERS:
        return [("bool", (2, 3)), ("float32", (1, 1, 3, 1)), ("int32", ()), ("text", (5,))]
    if source == "npy":
        types = [(name, shape) for name in DTYPES for shape in ((2, 3), (1, 1, 3, 1))]
        more = [(name, ()) for name in ("bool", "float16", "complex64", "bytes", "text", "int32")]
        shapes = [(name, shape) for name in ("uint8", "float32") for shape in _BACK_SHAPES]
        return list(dict.fromkeys([*types, *more, *shapes]))
    name = FORMATS[source].usual
    types = [(one, (2, 3)) for one in _BACK_TYPES]
    return [*types, *((name, shape) for shape in _BACK_SHAPES)]


def expected_back(target: str, name: str, shape: Shape, order: str | None) -> str:
    """Return what the first half of the way is."""
    return expected(target, name, _LIKE.get(shape, shape), order)


# Images ------------------------------------------------------------------------------------------

IMAGES: dict[str, dict[Case, str]] = {
    name: {case: _OUTCOMES[sign] for case, sign in row.images.items()}
    for name, row in FORMATS.items()
    if row.images
}
