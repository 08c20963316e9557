"""Fill values: what stands in the place of chunks that are not there."""

from __future__ import annotations

from base64 import b64decode

from raconvert.arrays.dtypes import is_float8
from raconvert.errors import Corrupt

from .fields import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Element

    from .header import Node

ODD_FLOATS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def fill_of(node: Node, path: str) -> Any:
    """The fill value as a NumPy scalar array of the element's type; zeros where there is none.

    Raises `Corrupt` for a value that no element has.
    """
    import numpy as np

    from raconvert.plugin import dtype_of

    dtype, value = dtype_of(node.element), node.fill
    raw = np.zeros(1, dtype)
    if value is None:
        return raw
    try:
        _set(raw, value, node.element, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise Corrupt(
            "metadata field 'fill_value' is wrong", path=path,
            expected=f"a value of type {dtype.name}", got=short(value),
        ) from error  # fmt: skip
    return raw


def _set(raw: Any, value: Any, element: Element, dtype: Any) -> None:
    kind = element.kind
    if kind == "bool":
        if value not in (True, False, 0, 1):
            raise ValueError
        raw[0] = bool(value)
    elif kind in ("int", "uint"):
        _set_whole(raw, value)
    elif kind in ("float", "bfloat") or is_float8(element):
        _set_float(raw, value)
    elif kind == "complex":
        _set_pair(raw.view(np_float(dtype)), value)
    elif dtype.kind in "mM":
        raw.view(dtype.str[0] + "i8")[0] = -(1 << 63) if value == "NaT" else _whole(value)
    elif dtype.kind == "U":
        if not isinstance(value, (str, int)) or len(str(value)) > element.nbytes // 4:
            raise ValueError
        raw[0] = "" if value == 0 else value
    else:
        _set_bytes(raw, value, element)


def _set_whole(raw: Any, value: Any) -> None:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    raw[0] = int(value)
    if int(raw[0]) != value:
        raise ValueError


def _set_pair(pair: Any, value: Any) -> None:
    parts = value if isinstance(value, list) else [value, 0.0]
    if len(parts) != 2:
        raise ValueError
    for place, part in enumerate(parts):
        _set_float(pair[place : place + 1], part)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError
    return value


def np_float(dtype: Any) -> Any:
    """The type of the parts of a complex number."""
    import numpy as np

    return np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")


def _set_float(raw: Any, value: Any) -> None:
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16)
        kind = "<u" if raw.dtype.byteorder != ">" else ">u"
        raw.view(f"{kind}{raw.dtype.itemsize}")[0] = bits
        return
    if isinstance(value, str):
        value = ODD_FLOATS[value] if value in ODD_FLOATS else float("x")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError
    raw[0] = float(value)


def _set_bytes(raw: Any, value: Any, element: Element) -> None:
    """Bytes and structures: base64, or a list of numbers; 0 and "" for nothing."""
    if value in (0, ""):
        return
    if isinstance(value, list) and all(type(n) is int and 0 <= n < 256 for n in value):
        data = bytes(value)
    elif isinstance(value, str):
        data = b64decode(value, validate=True)
    else:
        raise TypeError
    if len(data) > element.nbytes:
        raise ValueError
    raw.view("u1")[: len(data)] = list(data)
