"""Descriptions of HDF5 datatypes as plain values, and the types in which elements are written.

A *description* is in the namespace ``hdf5`` if the element type alone would not lead back to the
same HDF5 type::

    '<i4' '>f8' '<c16' '|b1' '|V5'     the type that this plugin writes for this NumPy type
    {class: string, size: 7, padding: spacepad, charset: utf-8}      without size: variable
    {class: opaque, size: 4, tag: text}
    {class: bitfield, base: '<u2'}
    {class: enum, base: '<i2', names: {RED: 0, BLUE: 5}}
    {class: complex, base: '<f8', names: [real, imag]}
    {class: array, dims: [2, 3], base: ...}
    {class: compound, size: 12, members: [[name, offset, type], ...]}
"""

from __future__ import annotations

import numpy as np
from h5py import h5t

from raconvert.arrays.dtypes import Element, dtype_of, is_float8
from raconvert.files.limits import DEFAULT

from .datatypes import (
    BFLOAT_BIAS,
    BFLOAT_FIELDS,
    BOOL_NAMES,
    COMPLEX_CLASS,
    NUMPY_TAG,
    SIGN_OF_BYTE,
    bfloat_kind,
    bits_type,
    cannot,
    check_levels,
    complex_parts,
    enum_names,
    float8_kind,
    is_variable,
    layout_of,
    name_of,
)
from .tables import FLOAT8_LAYOUTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array

    Dtype = np.dtype[Any]

PADDINGS = {
    h5t.STR_NULLTERM: "nullterm",
    h5t.STR_NULLPAD: "nullpad",
    h5t.STR_SPACEPAD: "spacepad",
}
CHARSETS = {h5t.CSET_ASCII: "ascii", h5t.CSET_UTF8: "utf-8"}
# A datatype is one message of an object header, which has at most 64 KiB with its own header.
MAX_TYPE_BYTES = 64_000


def describe(tid: h5t.TypeID, limits: Limits, depth: int = 0) -> Any:
    """The description of a type that `kind_of` reads."""
    check_levels(depth, 2 * limits.type_levels + 2)  # as in `in_file`
    code = _code_of(tid, limits)
    if code is not None:
        return code
    return _DESCRIBERS[tid.get_class()](tid, limits, depth)


def _code_of(tid: h5t.TypeID, limits: Limits) -> str | None:
    """The type string that this plugin would write as this very type; None if there is none."""
    if is_variable(tid) or tid.get_class() == h5t.ARRAY:
        return None
    if (bfloat := bfloat_kind(tid, ())) is not None:
        return f"{bfloat.element.order}bfloat16"
    if (small := float8_kind(tid, ())) is not None:
        return str(small.element.descr)
    dtype = layout_of(tid, limits).dtype
    if dtype.names is not None:
        return None
    return dtype.str if tid == type_of_dtype(dtype) else None


def _describe_string(tid: h5t.TypeID, limits: Limits, depth: int) -> dict[str, Any]:
    description: dict[str, Any] = {"class": "string"}
    if not tid.is_variable_str():
        description["size"] = tid.get_size()
    padding = tid.get_strpad()
    charset = tid.get_cset()
    if padding not in PADDINGS or charset not in CHARSETS:
        raise cannot("its strings have an unknown padding or character set")
    return {**description, "padding": PADDINGS[padding], "charset": CHARSETS[charset]}


def _describe_compound(tid: h5t.TypeID, limits: Limits, depth: int) -> dict[str, Any]:
    parts = complex_parts(tid)
    if parts is not None:
        return {"class": "complex", "base": parts[0].str, "names": parts[3]}
    members = [
        [
            name_of(tid.get_member_name(index)),
            tid.get_member_offset(index),
            describe(tid.get_member_type(index), limits, depth + 1),
        ]
        for index in range(tid.get_nmembers())
    ]
    return {"class": "compound", "size": tid.get_size(), "members": members}


_DESCRIBERS: dict[int, Callable[[h5t.TypeID, Limits, int], Any]] = {
    h5t.INTEGER: lambda tid, limits, depth: layout_of(tid, limits).dtype.str,
    h5t.FLOAT: lambda tid, limits, depth: layout_of(tid, limits).dtype.str,
    COMPLEX_CLASS: lambda tid, limits, depth: layout_of(tid, limits).dtype.str,
    h5t.BITFIELD: lambda tid, limits, depth: {
        "class": "bitfield", "base": layout_of(tid, limits).dtype.str
    },
    h5t.STRING: _describe_string,
    h5t.OPAQUE: lambda tid, limits, depth: {
        "class": "opaque", "size": tid.get_size(), "tag": name_of(tid.get_tag())
    },
    h5t.ENUM: lambda tid, limits, depth: {
        "class": "enum",
        "base": layout_of(tid.get_super(), limits).dtype.str,
        "names": enum_names(tid),
    },
    h5t.ARRAY: lambda tid, limits, depth: {
        "class": "array",
        "dims": list(tid.get_array_dims()),
        "base": describe(tid.get_super(), limits, depth + 1),
    },
    h5t.COMPOUND: _describe_compound,
}  # fmt: skip


def little_endian(description: Any) -> Any:
    """The description with little-endian numbers, as the data will have them."""
    if isinstance(description, str):
        return description.replace(">", "<")
    if "base" in description:
        return {**description, "base": little_endian(description["base"])}
    return description


def type_of(description: Any, order: str | None = None, depth: int = 0) -> h5t.TypeID:
    """Build the type of a description; raises errors of any class if that is not valid.

    `order` replaces the byte order of the numbers at the top.
    """
    if depth > DEFAULT.type_levels:
        raise ValueError("nested too deep")
    if isinstance(description, str):
        return _coded(description, order)
    return _BUILDERS[description["class"]](description, order, depth)


def _coded(code: str, order: str | None) -> h5t.TypeID:
    """Build the type of a type string."""
    if code.endswith("bfloat16"):
        return _bfloat(order or code[0])
    if code in FLOAT8_LAYOUTS:
        return _float8(code)
    dtype = np.dtype(code)
    if order and dtype.kind in "iufc":
        dtype = dtype.newbyteorder(order)  # type: ignore[arg-type]
    return type_of_dtype(dtype)


def string_type(size: int | None, padding: str, charset: str) -> h5t.TypeID:
    """The string type of a size (None: variable), padding and charset as in a description."""
    tid = h5t.C_S1.copy()
    tid.set_size(h5t.VARIABLE if size is None else size)
    tid.set_strpad(next(code for code, name in PADDINGS.items() if name == padding))
    tid.set_cset(next(code for code, name in CHARSETS.items() if name == charset))
    return tid


def _opaque_type(size: int, tag: str) -> h5t.TypeID:
    tid = h5t.create(h5t.OPAQUE, size)
    tid.set_tag(tag.encode())
    return tid


def _build_enum(description: dict[str, Any], order: str | None, depth: int) -> h5t.TypeID:
    tid = h5t.enum_create(_coded(description["base"], order))
    for name, value in description["names"].items():
        tid.enum_insert(name.encode(), value)
    return tid


def _build_complex(description: dict[str, Any], order: str | None, depth: int) -> h5t.TypeID:
    base = _coded(description["base"], order)
    width = base.get_size()
    tid = h5t.create(h5t.COMPOUND, 2 * width)
    for index, name in enumerate(description["names"]):
        tid.insert(name.encode(), index * width, base)
    return tid


def _build_compound(description: dict[str, Any], order: str | None, depth: int) -> h5t.TypeID:
    tid = h5t.create(h5t.COMPOUND, description["size"])
    for name, offset, member in description["members"]:
        tid.insert(name.encode(), offset, type_of(member, None, depth + 1))
    return tid


def _build_bitfield(description: dict[str, Any], order: str | None, depth: int) -> h5t.TypeID:
    dtype = np.dtype(description["base"])
    order = order or dtype.str[0]
    return bits_type(dtype.itemsize, "BE" if order == ">" else "LE")


_BUILDERS: dict[str, Callable[[Any, str | None, int], h5t.TypeID]] = {
    "string": lambda description, order, depth: string_type(
        description.get("size"), description["padding"], description["charset"]
    ),
    "opaque": lambda description, order, depth: _opaque_type(
        description["size"], description["tag"]
    ),
    "bitfield": _build_bitfield,
    "enum": _build_enum,
    "complex": _build_complex,
    "array": lambda description, order, depth: h5t.array_create(
        type_of(description["base"], order, depth + 1), tuple(description["dims"])
    ),
    "compound": _build_compound,
}


# --- to HDF5 --------------------------------------------------------------------------------------


def _bfloat(order: str) -> h5t.TypeID:
    """Return bfloat16 as a floating-point type that every version of HDF5 converts."""
    tid = (h5t.IEEE_F32BE if order == ">" else h5t.IEEE_F32LE).copy()
    tid.set_fields(*BFLOAT_FIELDS)
    tid.set_precision(16)
    tid.set_size(2)
    tid.set_ebias(BFLOAT_BIAS)
    return tid


def _float8(name: str) -> h5t.TypeID:
    """Return a float of one byte as a floating-point type."""
    *fields, bias = FLOAT8_LAYOUTS[name]
    tid = h5t.IEEE_F32LE.copy()
    tid.set_fields(SIGN_OF_BYTE, *fields)
    tid.set_precision(8)
    tid.set_size(1)
    tid.set_ebias(bias)
    return tid


def type_of_element(element: Element) -> h5t.TypeID:
    """The HDF5 type in which elements are written, with the same bytes as in the core."""
    if element.kind == "bfloat":
        return _bfloat(element.order)
    if is_float8(element):
        return _float8(element.descr)
    return type_of_dtype(dtype_of(element))


def type_of_dtype(dtype: Dtype) -> h5t.TypeID:
    """The HDF5 type whose bytes are those of a NumPy type.

    bool: enum over int8; complex: compound r, i; S: null-padded ASCII; V: opaque; datetimes and U:
    opaque with h5py's tag; structures: compound with the same offsets.
    """
    if dtype.subdtype is not None:
        base, dims = dtype.subdtype
        return h5t.array_create(type_of_dtype(base), dims)
    if dtype.names is not None:
        return _compound_type(dtype)
    if dtype.kind == "c":
        part = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        return _build_complex({"base": part.str, "names": ["r", "i"]}, None, 0)
    if dtype.kind == "b":
        return _build_enum({"base": "|i1", "names": BOOL_NAMES}, None, 0)
    if dtype.kind == "S":
        return string_type(dtype.itemsize, "nullpad", "ascii")
    if dtype.kind in "VUmM":
        return _opaque_type(dtype.itemsize, "" if dtype.kind == "V" else NUMPY_TAG + dtype.str)
    return h5t.py_create(dtype)


def _compound_type(dtype: Dtype) -> h5t.TypeID:
    tid = h5t.create(h5t.COMPOUND, dtype.itemsize)
    for name in dtype.names or ():
        member, offset = dtype.fields[name][:2]  # type: ignore[index]
        tid.insert(name.encode(), offset, type_of_dtype(member))
    return tid


# Text of NumPy (U): UTF-8 in null-padded strings of fixed width ---------------------------------


def utf8_type(element: Element) -> h5t.TypeID:
    """The HDF5 type in which text is written."""
    return string_type(element.nbytes, "nullpad", "utf-8")


def is_utf8(array: Array) -> bool:
    """True for bytes (S) that are UTF-8."""
    return str(array.element.descr).startswith("|S") and array.meta.encoding == "utf-8"
