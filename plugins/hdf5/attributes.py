"""HDF5 attributes as plain values, and back with the very type that they had.

File format specification 3.0, IV.A.2.m "The Attribute Message". A value is None (null space), bool,
int, float, str, bytes, a list (one level for each axis), a pair ``[re, im]`` for complex numbers,
or a mapping for a structure. Values whose type is not what `_usual` would choose for them have it
in a second mapping: ``{type: description, shape: [..] | null}``, in the words of `descriptions`.
"""

from __future__ import annotations

from math import prod

import numpy as np
from h5py import h5a, h5s, h5t

from raconvert.errors import Corrupt, RaconvertError, Unsupported
from raconvert.files.limits import DEFAULT
from raconvert.metadata.reals import doubles, narrowed
from raconvert.metadata.yaml import SMALL, alike

from .datatypes import Kind, kind_of, without_bools
from .dense import dense_attribute
from .descriptions import describe, type_of
from .files import FAILURES, PROBLEMS, info_of, key_of, reason_of
from .ondisk.header import (
    ADDRESS_BYTES,
    attribute_data,
    check_all_heaps,
    sequences,
    total_length,
)
from .tables import Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .files import File, Key

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]

# Bytes in memory of an attribute, and of a mapping, list, text, number, number below 256 in it.
_ENTRY, _MAPPING, _LIST, _TEXT, _NUMBER, _SMALL = 512, 240, 64, 80, 40, 8


# --- reading --------------------------------------------------------------------------------------


def read_attributes(
    oid: Any, file: File, names: list[bytes], skip: frozenset[str] = frozenset()
) -> Attributes:
    """Read the attributes of an object with these names, except those in `skip`.

    An attribute that cannot be read is listed in `problems`; the others are read nevertheless.
    """
    attributes = Attributes({}, {}, [])
    stored = Stored(oid, file)
    for raw in names:
        name = raw.decode("utf-8", "backslashreplace")
        if name in skip:
            continue
        try:
            value, remembered = _read(raw, stored)
        except RaconvertError as error:
            attributes.problems.append((name, error.what))
        except FAILURES as error:
            attributes.problems.append((name, reason_of(error)))
        else:
            attributes.values[name] = value
            if remembered is not None:
                attributes.types[name] = remembered
    return attributes


def value_of(oid: Any, file: File, name: bytes) -> Any:
    """The value of one attribute; None if it is missing or cannot be read."""
    try:
        return _read(name, Stored(oid, file))[0] if h5a.exists(oid, name) else None
    except PROBLEMS:
        return None


def referred_by(oid: Any, file: File, name: str) -> Key | None:
    """The key of the object that an attribute of one reference refers to; None for others."""
    try:
        aid = h5a.open(oid, name.encode())
        raw = Stored(oid, file).data(name.encode())
        if aid.get_type() != h5t.STD_REF_OBJ or aid.shape or raw is None:
            return None
        return key_of(oid)[0], int.from_bytes(raw[:ADDRESS_BYTES], "little")
    except PROBLEMS:
        return None


class Stored:
    """The stored bytes of the attributes of one object, looked up when first needed."""

    __slots__ = ("_data", "file", "oid")

    def __init__(self, oid: Any, file: File) -> None:
        self.oid = oid
        self.file = file
        self._data: dict[bytes, bytes] | None = None

    def data(self, name: bytes) -> bytes | None:
        """The stored bytes of an attribute; None if only the library can find them."""
        if self.file.address_bytes != ADDRESS_BYTES:
            return None
        address = info_of(self.oid).address
        if self._data is None:
            self._data = attribute_data(self.file, address)
        if name in self._data:
            return self._data[name]
        stored = dense_attribute(self.file, address, name)
        return None if stored is None else stored.data

    def spend(self, nbytes: int) -> None:
        """Count bytes against the limit for the plain values of all attributes of the file.

        Raises `Unsupported` beyond it.
        """
        limits = self.file.source.limits
        most = min(limits.attribute_bytes, max(limits.memory, SMALL))
        if self.file.attributes + nbytes > most:
            raise Unsupported(f"the attributes of the file need more than {most} bytes in memory")
        self.file.attributes += nbytes


def _read(name: bytes, stored: Stored) -> tuple[Any, dict[str, Any] | None]:
    """The value of an attribute, and its type; None for the type that is usual for the value."""
    aid = h5a.open(stored.oid, name)
    tid, space = aid.get_type(), aid.get_space()
    limits = stored.file.source.limits
    kind = kind_of(tid, limits)
    if space.get_simple_extent_type() == h5s.NULL:
        return None, {"type": describe(tid, limits), "shape": None}
    shape = space.get_simple_extent_dims() + kind.dims
    most = limits.document_bytes
    if prod(shape) * kind.buffer.itemsize > most:
        raise Unsupported(f"it needs more than {most} bytes")
    if kind.buffer.names and kind.buffer.hasobject:
        raise Unsupported("its structures hold strings of variable length")
    stored.spend(_ENTRY + prod(shape) * _plain_bytes(kind.buffer))
    buffer = np.zeros(shape, kind.buffer)
    if kind.element is None and buffer.size:
        _read_texts(aid, name, stored, buffer, kind)
    elif buffer.size:
        aid.read(buffer, mtype=kind.memory or tid)
    try:
        value = _plain(_finished(kind, buffer), tid)
    except Corrupt:  # bools with other values than 0 and 1 are read as integers
        value = _plain(buffer.view(without_bools(kind).buffer), tid)
    usual = _usual(value)
    if usual is not None and usual[0] == tid and usual[1] == shape and not kind.dims:
        return value, None
    return value, {
        "type": describe(tid, limits),
        "shape": list(shape[: len(shape) - len(kind.dims)]),
    }


def _read_texts(aid: h5a.AttrID, name: bytes, stored: Stored, buffer: Values, kind: Kind) -> None:
    """Fill a buffer with texts of variable length, past the library if their bytes can be found."""
    raw = stored.data(name)
    if raw is None:
        check_all_heaps(stored.file)
        aid.read(buffer, mtype=kind.memory)
        return
    stored.spend(2 * total_length(raw, buffer.size))
    texts = np.empty(buffer.size, object)
    texts[:] = [text.split(b"\0")[0] for text in sequences(raw, buffer.size, stored.file, 1)]
    buffer[...] = texts.reshape(buffer.shape)


def _plain_bytes(dtype: Dtype) -> int:
    """Estimate the bytes in memory of an element as a plain value."""
    if dtype.subdtype is not None:
        return _LIST + prod(dtype.shape) * _plain_bytes(dtype.base)
    if dtype.names is not None:
        return _MAPPING + sum(_plain_bytes(dtype[name]) for name in dtype.names)
    if dtype.kind == "c":
        return _LIST + 2 * _NUMBER
    if dtype.kind in "SVUO":
        return _TEXT + 2 * dtype.itemsize
    return _SMALL if dtype.itemsize == 1 else _NUMBER


def _finished(kind: Kind, buffer: Values) -> Values:
    return buffer if kind.finish is None else kind.finish(buffer)


def _plain(values: Values, tid: h5t.TypeID) -> Any:
    """An array as plain values, axis by axis."""
    if values.dtype.names is not None:
        members = {name: _plain(values[name], _member(tid, name)) for name in values.dtype.names}
        return _transposed(members, values.shape)
    if values.dtype.kind == "c":
        return np.stack([doubles(values.real), doubles(values.imag)], axis=-1).tolist()
    if values.dtype.kind in "mM":
        return values.view(f"{values.dtype.str[0]}i8").tolist()
    if values.dtype.kind == "S":
        return _texts(_raw_strings(values), tid)
    if values.dtype.kind == "O":
        return _texts(values.tolist(), tid)
    return doubles(values).tolist() if values.dtype.kind == "f" else values.tolist()


def _member(tid: h5t.TypeID, name: str) -> h5t.TypeID:
    while tid.get_class() == h5t.ARRAY:
        tid = tid.get_super()
    return tid.get_member_type(tid.get_member_index(name.encode()))


def _transposed(members: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """Turn a mapping of nested lists into nested lists of mappings."""
    if not shape:
        return members
    rest = shape[1:]
    return [
        _transposed({name: values[index] for name, values in members.items()}, rest)
        for index in range(shape[0])
    ]


def _raw_strings(values: Values) -> Any:
    """Fixed strings with all their bytes (numpy strips NULs), as nested lists."""
    return np.array(values, order="C").view(f"V{values.dtype.itemsize}").tolist()


def _texts(value: Any, tid: h5t.TypeID) -> Any:
    """Turn nested lists of bytes into texts without padding; those not in UTF-8 stay bytes."""
    while tid.get_class() == h5t.ARRAY:
        tid = tid.get_super()
    padding = None if tid.is_variable_str() else tid.get_strpad()
    return _nested(value, lambda item: _text(bytes(item or b""), padding))


def _nested(value: Any, convert: Any) -> Any:
    """Apply `convert` to each item of nested lists."""
    if isinstance(value, list):
        return [_nested(item, convert) for item in value]
    return convert(value)


def _text(raw: bytes, padding: int | None) -> str | bytes:
    if padding == h5t.STR_NULLTERM:
        raw = raw.split(b"\0", 1)[0]
    elif padding is not None:
        raw = (raw.rstrip(b" ") if padding == h5t.STR_SPACEPAD else raw).rstrip(b"\0")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


# --- writing --------------------------------------------------------------------------------------


def write_attribute(oid: Any, name: str, value: Any, remembered: Any = None) -> bool:
    """Write an attribute in its former type if that still holds the value, else in the usual one.

    Returns False, and writes nothing, if no attribute can hold the value.
    """
    if not name or "\0" in name or not _is_utf8(name):
        return False
    for attempt in (_as_remembered, _as_usual):
        try:
            prepared = attempt(value, remembered)
        except PROBLEMS:  # the remembered type is that of another value, or was edited
            prepared = None
        if prepared is not None:
            tid, space, buffer, memory = prepared
            try:
                aid = h5a.create(oid, name.encode(), tid, space)
            except FAILURES:  # larger than an attribute can be in this group
                return False
            if buffer is not None and buffer.size:
                aid.write(buffer, mtype=memory)
            return True
    return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_usual(value: Any, _: Any) -> Any:
    usual = _usual(value)
    return None if usual is None else _prepared(value, *usual)


def _as_remembered(value: Any, remembered: Any) -> Any:
    if remembered is None:
        return None
    tid = type_of(remembered["type"])
    if remembered["shape"] is None:
        return (tid, h5s.create(h5s.NULL), None, None) if value is None else None
    if remembered["shape"] == [1] and not isinstance(value, list):  # a vector of netCDF
        prepared = _prepared([value], tid, (1,))
    else:
        prepared = _prepared(value, tid, tuple(remembered["shape"]))
    return prepared


def _prepared(value: Any, tid: h5t.TypeID, shape: tuple[int, ...]) -> Any:
    """Type, space, buffer and memory type of a value; ValueError if it would not come back."""
    kind = kind_of(tid, DEFAULT)
    full_shape = shape + kind.dims
    buffer = _filled(value, full_shape, kind.buffer, tid)
    read_back = _plain(buffer.copy() if kind.finish is None else kind.finish(buffer.copy()), tid)
    if repr(read_back) != repr(value) or not alike(read_back, value):
        raise ValueError("the type does not hold this value")
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    return tid, space, buffer, kind.memory or tid


def _filled(value: Any, shape: tuple[int, ...], dtype: Dtype, tid: h5t.TypeID) -> Values:
    """Turn nested lists into an array of this shape; ValueError if they have another one."""
    if dtype.names is not None:
        return _filled_structure(value, shape, dtype, tid)
    if dtype.kind == "c":
        part = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        parts = narrowed(np.array(value, np.float64).reshape(*shape, 2), part)
        result = np.empty(shape, dtype)
        result.real, result.imag = parts[..., 0], parts[..., 1]
        return result
    if dtype.kind in "mM":
        return np.array(value, f"{dtype.str[0]}i8").reshape(shape).view(dtype)
    if dtype.kind in "SO":
        return _filled_texts(value, shape, dtype, tid)
    if dtype.kind == "V":
        flat = _flat(value, len(shape))
        if any(len(item) != dtype.itemsize for item in flat):
            raise ValueError("bytes of another length")
        return np.frombuffer(b"".join(flat), dtype).reshape(shape).copy()
    if dtype.kind == "f":
        return narrowed(np.array(value, np.float64).reshape(shape), dtype)
    return np.array(value, dtype).reshape(shape)


def _filled_structure(value: Any, shape: tuple[int, ...], dtype: Dtype, tid: h5t.TypeID) -> Values:
    result = np.zeros(shape, dtype)
    items = _flat(value, len(shape))
    for name in dtype.names or ():
        base, dims = dtype[name].subdtype or (dtype[name], ())
        column = [item[name] for item in items]
        member = _filled(column, (len(items), *dims), base, _member(tid, name))
        result[name] = member.reshape(shape + dims)
    return result


def _flat(value: Any, depth: int) -> list[Any]:
    """The items of lists nested `depth` deep."""
    items = [value]
    for _ in range(depth):
        items = [item for part in items for item in part]
    return items


def _filled_texts(value: Any, shape: tuple[int, ...], dtype: Dtype, tid: h5t.TypeID) -> Values:
    while tid.get_class() == h5t.ARRAY:
        tid = tid.get_super()
    items = _flat(value, len(shape))
    texts = [item.encode() if isinstance(item, str) else bytes(item) for item in items]
    if dtype.kind == "O":
        if any(b"\0" in text for text in texts):
            raise ValueError("variable strings end at a NUL")
        result = np.empty(len(texts), object)
        result[:] = texts
        return result.reshape(shape)
    width = dtype.itemsize
    if any(len(text) > width for text in texts):
        raise ValueError("a longer text")
    blanks = tid.get_strpad() == h5t.STR_SPACEPAD
    # A NUL keeps the blank before it from being padding.
    pads = (b" " if blanks and not text.endswith(b" ") else b"\0" for text in texts)
    padded = [text.ljust(width, pad) for text, pad in zip(texts, pads, strict=True)]
    return np.array(padded, dtype).reshape(shape)


def _usual(value: Any) -> tuple[h5t.TypeID, tuple[int, ...]] | None:
    """Type and shape in which a value without a remembered type is written; None if it has none."""
    shape: list[int] = []
    inner = value
    while isinstance(inner, list):
        if not inner:
            return None
        shape.append(len(inner))
        inner = inner[0]
    try:
        flat = _flat(value, len(shape))
    except TypeError:  # nested to different depths
        return None
    kinds = {type(item) for item in flat}
    if len(flat) != prod(shape) or len(kinds) != 1:
        return None
    tid = _usual_type(kinds.pop(), flat)
    return None if tid is None else (tid, tuple(shape))


def usual_type(value: Any) -> h5t.TypeID | None:
    """Return the type in which a value without a remembered type is written, if it has one."""
    usual = _usual(value)
    return None if usual is None else usual[0]


def _usual_type(kind: type, flat: list[Any]) -> h5t.TypeID | None:
    if kind is bool:
        return type_of("|b1")
    if kind is int:
        low, high = min(flat), max(flat)
        if low < -(1 << 63) or high >= 1 << 64 or (low < 0 and high >= 1 << 63):
            return None
        return type_of("<i8" if high < 1 << 63 else "<u8")
    if kind is float:
        return type_of("<f8")
    if kind is str:
        return type_of({"class": "string", "padding": "nullterm", "charset": "utf-8"})
    if kind is bytes and flat[0] and len({len(item) for item in flat}) == 1:
        return type_of(f"|V{len(flat[0])}")
    return None
