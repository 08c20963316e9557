"""Arrays to write: every element type in both byte orders, every kind of shape and order."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import dtype_of, element_of, little
from raconvert.declared import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = np.ndarray[Any, Any]

SEED = 1  # of everything random here


class Case(Record):
    """One array of the round trips.

    `type` is a dtype or anything that numpy makes one of, `shape` the logical shape; `order` is the
    index order ``C`` or ``F``, ``none`` for an array without one, or ``strided`` for a view in C
    order whose memory is not contiguous.
    """

    type: Any
    shape: tuple[int, ...]
    order: str
    tame: bool = False  # True: no NUL in texts, and no times that are millennia away

    @property
    def values(self) -> Values:
        """The elements in logical order, read-only; the same at every call."""
        return _values(np.dtype(self.type), self.shape, self.tame)

    def array(self, name: str = "x") -> Array:
        """Return the array as an importer would hand it out, `shape` in its index order.

        Raises `Unsupported` for a type without a place in RA.
        """
        values = self.values
        index_order: str | None = "C"
        if self.order == "F":
            index_order, values = "F", np.ascontiguousarray(values.T).reshape(values.shape[::-1])
        elif self.order == "none":
            index_order = None
        elif self.order == "strided":
            wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            wide[..., ::2] = values
            values = wide[..., ::2]
        values.flags.writeable = False
        element, dims = element_of(values.dtype), values.shape[::-1]
        return Array(element, dims, name=name, index_order=index_order, data=values)


@cache
def _values(dtype: np.dtype[Any], shape: tuple[int, ...], tame: bool) -> Values:
    values = filled(dtype, shape)
    if tame and values.dtype.kind in "SU":
        marks = ("\0", "n") if values.dtype.kind == "U" else (b"\0", b"n")
        texts = [text.replace(*marks) for text in values.ravel().tolist()]
        values = np.array(texts, values.dtype).reshape(values.shape)
    elif tame and values.dtype.kind in "mM":
        counts = values.view(values.dtype.str[0] + "i8")
        values = np.asarray(counts % (1 << 20), counts.dtype).view(values.dtype)
    values.flags.writeable = False
    return values


def filled(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values:
    """Return values of this type and shape: random bits, NaN payloads, -0.0, extremes, texts.

    Raises nothing.
    """
    count = prod(shape)
    rng = np.random.default_rng(SEED)
    if dtype.names:
        values = np.zeros(count, dtype)
        for name in dtype.names:
            values[name] = filled(dtype[name].base, (count, *dtype[name].shape))
    elif dtype.kind == "b":
        values = np.arange(count) % 3 == 0
    elif dtype.kind in "SU":
        values = np.resize(np.array(["", "a", "b\0c", "yz"], dtype), count).astype(dtype)
        if dtype.kind == "U":
            values[1::4] = "日本é"
    else:
        values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
        little = dtype.newbyteorder("<")
        for index, special in zip((1, 2, 3, 4), _SPECIAL.get(little.str, ()), strict=False):
            if index < count:
                values[index] = (
                    np.array(bytes.fromhex(special)).view(f"V{dtype.itemsize}").view(little)[()]
                )
    return values.reshape(shape)


# Bits that are easily lost, little-endian: -0.0, a NaN with a payload, infinity, the least number
_SPECIAL = {
    "<f2": ("0080", "017e", "007c", "0100"),
    "<f4": ("00000080", "0100c07f", "0000807f", "01000000"),
    "<f8": ("0000000000000080", "010000000000f87f", "000000000000f07f", "0100000000000000"),
    "<c8": ("0000008000000080", "0100c07f0000c0ff"),
    "<M8[ns]": ("0000000000000080",),  # NaT
    "<m8[25s]": ("0000000000000080",),
}

_NUMBERS = ("i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
TYPES: dict[str, Any] = {
    "bool": np.dtype("?"),
    **{np.dtype(code).name: np.dtype(f"<{code}") for code in _NUMBERS},
    **{f"{np.dtype(code).name}-big": np.dtype(f">{code}") for code in _NUMBERS[2:]},
    "bytes": np.dtype("S5"),
    "text": np.dtype("<U4"),
    "text-big": np.dtype(">U4"),
    "datetime": np.dtype("<M8[ns]"),
    "datetime-big": np.dtype(">M8[D]"),
    "timedelta": np.dtype("<m8[25s]"),
    "void": np.dtype("V5"),
    "structured": np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "S2"), ("e", "?")])]),
    "aligned": np.dtype([("a", "u1"), ("b", "<f8"), ("ß", "<U2")], align=True),
}
try:
    import ml_dtypes
except ImportError:  # an extra
    pass
else:
    TYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
    TYPES["bfloat16-big"] = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")

SHAPES = (
    (),
    (1,),
    (5,),
    (0,),
    (4, 6),
    (1, 6),
    (4, 0),
    (5, 6, 3),
    (3, 4, 1),
    (2, 0, 3),
    (2, 3, 4, 5),
)
_ORDERS = {
    "C": SHAPES,
    "F": SHAPES[4:],
    "none": ((5,), (4, 6), (5, 6, 3)),
    "strided": ((5,), (4, 6)),
}

CASES: dict[str, Case] = {
    f"{name}-{'x'.join(map(str, shape)) or '0d'}-{order}": Case(dtype, shape, order)
    for name, dtype in TYPES.items()
    for order, shapes in _ORDERS.items()
    for shape in shapes
}


def same(expected: Values, got: Values) -> bool:
    """True if two arrays agree in shape, type and every bit; numbers in either byte order.

    Raises nothing.
    """
    if expected.shape != got.shape or _settled(expected.dtype) != _settled(got.dtype):
        return False
    if expected.dtype.names:
        return all(same(expected[name], got[name]) for name in expected.dtype.names)
    return _settled_bytes(expected) == _settled_bytes(got)


def _settled(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type in the form in which types are compared: numbers little-endian."""
    return dtype_of(little(element_of(dtype)))


def _settled_bytes(values: Values) -> bytes:
    return values.astype(_settled(values.dtype), copy=False).tobytes()


def same_values(expected: Values, got: Values) -> bool:
    """True if all values are the same, maybe in another form. Raises nothing.

    Axes of length 1 may come and go, numbers may have become another type that holds them, bools
    two numbers, complex numbers pairs on a new last axis, bytes the characters of their numbers,
    and elements their bare bytes.
    """
    if same(expected, got):
        return True
    expected, got = np.squeeze(expected), np.squeeze(got)
    if (expected.dtype.kind, got.dtype.kind) == ("S", "U"):
        expected = np.char.decode(expected, "latin-1")
    if expected.dtype.kind == "c" and got.shape == (*expected.shape, 2):
        expected = np.stack([expected.real, expected.imag], axis=-1)
    if expected.dtype.kind == "b" and got.dtype.kind in "iuf":
        return bool(np.array_equal(expected, got != 0)) and np.unique(got[expected]).size <= 1
    if "V" in (got.dtype.kind, expected.dtype.kind) and got.dtype.itemsize == expected.itemsize:
        return expected.shape == got.shape and expected.tobytes() == got.tobytes()
    if expected.dtype.name == "bfloat16":
        expected = expected.astype(np.float32)
    with np.errstate(all="ignore"):
        missing = expected.dtype.kind in "fcmM" and got.dtype.kind in "fcmM"
        return bool(np.array_equal(expected, got, equal_nan=missing))
