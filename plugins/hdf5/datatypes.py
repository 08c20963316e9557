"""HDF5 datatypes as element types of the core: how their elements are read.

File format specification 3.0, IV.A.2.d "The Datatype Message"; h5py's own conventions for bool
(enum ``FALSE TRUE`` over int8), complex (compound ``r i``), NumPy types (opaque, tag ``NUMPY:``).
"""

from __future__ import annotations

import re
from collections import namedtuple
from functools import cache, lru_cache
from math import prod

import numpy as np
from h5py import h5t

from raconvert.arrays.cast import bool_bytes, has_bools
from raconvert.arrays.dtypes import element, element_of, float8
from raconvert.errors import Corrupt, Unsupported
from raconvert.files.limits import DEFAULT

from .paddings import endings_of
from .tables import FLOAT8_LAYOUTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from raconvert.arrays.dtypes import Element
    from raconvert.files.limits import Limits

    Dtype = np.dtype[Any]
    Values = np.ndarray[Any, Any]
    Path = tuple[str, ...]

# How the elements of one HDF5 type are read.
#   element   of the array; None for variable strings (and structures with them), whose width only
#             the data tells
#   dims      the axes that an H5T_ARRAY adds, slowest first
#   buffer    dtype in memory; its width is that of `memory`
#   memory    the type to ask the library for; None: the file's own, so bytes arrive verbatim
#   finish    makes elements of a buffer; None: they are the buffer
#   note      what is not kept of the type, for people
#   endings   where strings end by a rule that NumPy does not have: see `paddings.endings_of`
Kind = namedtuple("Kind", "element dims buffer memory finish note endings", defaults=((),))

# The bytes in memory of one HDF5 type: dtype; `memory` as in `Kind`.
Layout = namedtuple("Layout", "dtype memory note", defaults=("",))

ORDERS = {h5t.ORDER_LE: "<", h5t.ORDER_BE: ">", h5t.ORDER_NONE: "|"}
WIDTHS = (1, 2, 4, 8)
COMPLEX_NAMES = frozenset([("r", "i"), ("re", "im"), ("real", "imag"), ("real", "imaginary"),
                           ("re_", "im_")])  # fmt: skip
BOOL_NAMES = {"FALSE": 0, "TRUE": 1}
NUMPY_TAG = "NUMPY:"  # h5py.opaque_dtype
_TAGGED = re.compile(r"[<>](?:[mM]8(?:\[[0-9]{0,9}[A-Za-z]{1,2}\])?|U[1-9][0-9]{0,8})")
BFLOAT_FIELDS = (15, 7, 8, 0, 7)  # sign, exponent at and bits, mantissa at and bits
BFLOAT_BIAS = 127
SIGN_OF_BYTE = 7
COMPLEX_CLASS = 11  # H5T_COMPLEX, since HDF5 2.0
REFERENCE_BYTES = 16  # stored for a text of variable length: length, heap, number


def cannot(what: str) -> Unsupported:
    """The error for a type that no array can have."""
    return Unsupported(what, remedy="no option allows this; rewrite it with a numeric type")


def kind_of(tid: h5t.TypeID, limits: Limits, *, bits_are_bools: bool = False) -> Kind:
    """Return the way to read elements of an HDF5 type; raises `Unsupported` for other types.

    `bits_are_bools`: bitfields of one byte are bools, as in JLD2.
    """
    if tid.get_class() in (h5t.INTEGER, h5t.FLOAT):
        return _kind_of_number(tid.encode(), limits)
    return _kind_of(tid, limits, bits_are_bools=bits_are_bools)


@lru_cache(64)
def _kind_of_number(encoded: bytes, limits: Limits) -> Kind:
    """The kind of an encoded type of numbers, cached: a file has it tens of thousands of times."""
    return _kind_of(h5t.decode(encoded), limits)


def _kind_of(tid: h5t.TypeID, limits: Limits, *, bits_are_bools: bool = False) -> Kind:
    dims: tuple[int, ...] = ()
    while tid.get_class() == h5t.ARRAY and len(dims) <= limits.type_levels:
        dims += tid.get_array_dims()
        tid = tid.get_super()
    if is_variable(tid):
        memory = _with_axes(_variable(tid.get_cset()), dims)
        return Kind(None, dims, np.dtype(object), memory, None, "")
    for special in (_complex_kind, bfloat_kind, float8_kind):
        kind = special(tid, dims)
        if kind is not None:
            return kind
    layout = layout_of(tid, limits)
    dtype = layout.dtype
    if bits_are_bools and tid.get_class() == h5t.BITFIELD and dtype.itemsize == 1:
        dtype = np.dtype("?")
    finish = checked_bools if has_bools(dtype) else None
    memory = layout.memory and _with_axes(layout.memory, dims)
    if dtype.hasobject:
        _, places = in_file(tid, limits)
        note = (
            f"{len(places)} texts of variable length in each structure were read in a fixed width"
        )
        note = "; ".join(filter(None, (layout.note, note)))
        return Kind(None, dims, dtype, memory, finish, note, endings_of(tid))
    return Kind(element_of(dtype), dims, dtype, memory, finish, layout.note, endings_of(tid))


def _with_axes(tid: h5t.TypeID, dims: tuple[int, ...]) -> h5t.TypeID:
    return h5t.array_create(tid, dims) if dims else tid


def is_variable(tid: h5t.TypeID) -> bool:
    """True if a type is a string of variable length."""
    return tid.get_class() == h5t.STRING and bool(tid.is_variable_str())


def _variable(charset: int) -> h5t.TypeID:
    """The memory type of variable strings that h5py turns into bytes."""
    import h5py

    names = {h5t.CSET_ASCII: "ascii", h5t.CSET_UTF8: "utf-8"}
    return h5t.py_create(h5py.string_dtype(names.get(charset, "utf-8")))


def layout_of(tid: h5t.TypeID, limits: Limits, depth: int = 0) -> Layout:
    """The NumPy type of one HDF5 type, nested ones included."""
    check_levels(depth, limits.type_levels)
    reader = _LAYOUTS.get(tid.get_class())
    if reader is None:
        name = _UNREAD.get(tid.get_class(), f"of the unknown class {tid.get_class()}")
        raise cannot(f"its elements are {name}")
    return reader(tid, limits, depth)


def check_levels(depth: int, most: int) -> None:
    """Raise `Unsupported` for a type inside more than `most` others."""
    if depth > most:
        raise cannot(f"its elements are of a type nested more than {most} deep")


_UNREAD = {
    h5t.TIME: "HDF5 times, which no library converts",
    h5t.REFERENCE: "references to other objects",
    h5t.VLEN: "sequences of variable length",
}


def _order(tid: h5t.TypeID) -> str:
    order = ORDERS.get(tid.get_order())
    if order is None:
        raise cannot("its numbers have VAX byte order")
    return order


def _integer(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    letter = "i" if tid.get_class() == h5t.INTEGER and tid.get_sign() == h5t.SGN_2 else "u"
    size = tid.get_size()
    if tid.get_class() == h5t.BITFIELD:
        if size not in WIDTHS or tid not in (bits_type(size, "LE"), bits_type(size, "BE")):
            raise cannot(f"its elements are bitfields that do not fill their {size} bytes")
        return Layout(np.dtype(f"{_order(tid)}u{size}"), None)
    bits = tid.get_precision()
    if size in WIDTHS and bits == 8 * size:
        return Layout(np.dtype(f"{_order(tid)}{letter}{size}"), None)
    width = next((width for width in WIDTHS if 8 * width >= bits and width >= min(size, 8)), 0)
    if not width:
        raise cannot(f"its elements are integers of {bits} bits, wider than any NumPy has")
    dtype = np.dtype(f"{_order(tid)}{letter}{width}")
    note = f"integers of {bits} bits in {size} bytes were read as {dtype.name}"
    return Layout(dtype, _same_order(dtype, tid), note)


def _same_order(dtype: Dtype, tid: h5t.TypeID) -> h5t.TypeID:
    """The memory type for numbers of an odd width, in the byte order of the file.

    Between two orders of one size the library (2.0) swaps bytes only, and extends no sign.
    """
    memory = h5t.py_create(dtype).copy()
    memory.set_order(tid.get_order())  # the order of single bytes counts, too
    return memory


def bits_type(size: int, endian: str) -> h5t.TypeID:
    """The bitfield type that fills so many bytes."""
    return getattr(h5t, f"STD_B{8 * size}{endian}")


@cache
def _ieee() -> tuple[tuple[h5t.TypeID, Dtype], ...]:
    """The floating-point types that HDF5 and NumPy share, most frequent first."""
    codes = [f"{order}f{width}" for width in (4, 8, 2) for order in "<>"]
    return tuple((h5t.py_create(np.dtype(code)), np.dtype(code)) for code in codes)


def _float(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    for ieee, dtype in _ieee():
        if tid == ieee:
            return Layout(dtype, None)
    order = _order(tid)
    _, _, exponent_bits, _, mantissa_bits = tid.get_fields()
    name = f"floats of {tid.get_precision()} bits ({exponent_bits} of them exponent)"
    implied = tid.get_norm() == h5t.NORM_IMPLIED
    if implied and tid.get_ebias() == (1 << (exponent_bits - 1)) - 1:
        for code, exponent, mantissa in (("f4", 8, 23), ("f8", 11, 52)):
            if exponent_bits <= exponent and mantissa_bits <= mantissa:
                dtype = np.dtype(order + code)
                return Layout(dtype, _same_order(dtype, tid), f"{name} were read as {dtype.name}")
    raise cannot(f"its elements are {name}, which no NumPy type holds on every machine")


def _string(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    if tid.is_variable_str():
        return Layout(np.dtype(object), _variable(tid.get_cset()))
    return Layout(np.dtype(f"S{tid.get_size()}"), None)


def _opaque(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    tag = name_of(tid.get_tag())
    size = tid.get_size()
    if tag.startswith(NUMPY_TAG) and _TAGGED.fullmatch(tag.removeprefix(NUMPY_TAG)):
        try:
            dtype = np.dtype(tag.removeprefix(NUMPY_TAG))
        except TypeError:  # NumPy does not know the unit of time
            dtype = None
        if dtype is not None and dtype.itemsize == size:
            return Layout(dtype, None)
    return Layout(np.dtype(f"V{size}"), None)


def _enum(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    layout = layout_of(tid.get_super(), limits, depth + 1)
    if layout.memory is not None:  # the library converts enums of odd widths to integers, too
        return layout
    if layout.dtype == np.dtype("i1") and enum_names(tid) == BOOL_NAMES:
        return Layout(np.dtype("?"), None)
    return layout


def enum_names(tid: h5t.TypeID) -> dict[str, int]:
    """The values of an enum by their names."""
    return {
        name_of(tid.get_member_name(index)): int(tid.get_member_value(index))
        for index in range(tid.get_nmembers())
    }


def _array(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    layout = layout_of(tid.get_super(), limits, depth + 1)
    dims = tid.get_array_dims()
    memory = layout.memory and h5t.array_create(layout.memory, dims)
    base, inner = layout.dtype.subdtype or (layout.dtype, ())  # arrays of arrays are one array
    return Layout(np.dtype((base, dims + inner)), memory, layout.note)


def _native_complex(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    base = layout_of(tid.get_super(), limits, depth + 1)
    if base.memory is not None or base.dtype.itemsize < 4:
        raise cannot(f"its elements are complex numbers of two {base.dtype.name}")
    return Layout(_complex_of(base.dtype), None)


def _complex_of(dtype: Dtype) -> Dtype:
    return np.dtype(f"{dtype.str[0]}c{2 * dtype.itemsize}")


def _compound(tid: h5t.TypeID, limits: Limits, depth: int) -> Layout:
    """A structure with the offsets of the file; packed if the library converts members."""
    members = []
    for index in range(tid.get_nmembers()):
        member = tid.get_member_type(index)
        layout = layout_of(member, limits, depth + 1)
        name = name_of(tid.get_member_name(index))
        members.append((tid.get_member_offset(index), name, layout, member))
    members.sort(key=lambda member: member[0])
    if not members:
        raise cannot("its elements are structures without members")
    if _is_pair(members, tid.get_size()):
        return Layout(_complex_of(members[0][2].dtype), None)
    notes = "; ".join(sorted({layout.note for _, _, layout, _ in members if layout.note}))
    if any(layout.memory is not None for _, _, layout, _ in members):
        return _packed(members, notes)
    end = 0
    for offset, name, layout, _ in members:
        if offset < end or offset + layout.dtype.itemsize > tid.get_size():
            raise cannot(f"its structures have a member '{name}' that overlaps another")
        end = offset + layout.dtype.itemsize
    offsets, names, layouts, _ = zip(*members, strict=True)
    return Layout(
        _structure(names, [layout.dtype for layout in layouts], offsets, tid.get_size()), None
    )


def _structure(names: Any, formats: Any, offsets: Any, itemsize: int) -> Dtype:
    fields = {"names": list(names), "formats": list(formats), "offsets": list(offsets)}
    try:
        return np.dtype({**fields, "itemsize": itemsize})  # type: ignore[call-overload]
    except ValueError as error:
        raise cannot(f"its structures have no form in NumPy ({error})") from error


def _packed(members: list[Any], note: str) -> Layout:
    size = sum(layout.dtype.itemsize for _, _, layout, _ in members)
    memory = h5t.create(h5t.COMPOUND, size)
    names, formats, offsets = [], [], []
    offset = 0
    for _, name, layout, member in members:
        memory.insert(name.encode(), offset, layout.memory or member)
        names.append(name)
        formats.append(layout.dtype)
        offsets.append(offset)
        offset += layout.dtype.itemsize
    return Layout(_structure(names, formats, offsets, size), memory, note)


def _is_pair(members: list[Any], size: int) -> bool:
    """True for h5py's own form of a complex number: r and i, two equal floats, side by side."""
    if [name for _, name, *_ in members] != ["r", "i"]:
        return False
    first, second = (layout.dtype for _, _, layout, _ in members)
    return (
        first == second
        and first.kind == "f"
        and first.itemsize in (4, 8)
        and [offset for offset, *_ in members] == [0, first.itemsize]
        and size == 2 * first.itemsize
        and all(layout.memory is None for _, _, layout, _ in members)
    )


_LAYOUTS: dict[int, Callable[[h5t.TypeID, Limits, int], Layout]] = {
    h5t.INTEGER: _integer,
    h5t.BITFIELD: _integer,
    h5t.FLOAT: _float,
    h5t.STRING: _string,
    h5t.OPAQUE: _opaque,
    h5t.ENUM: _enum,
    h5t.ARRAY: _array,
    h5t.COMPOUND: _compound,
    COMPLEX_CLASS: _native_complex,
}


def name_of(name: bytes | str | None) -> str:
    """A name as text; `Unsupported` if it is not UTF-8."""
    try:
        return name.decode() if isinstance(name, bytes) else name or ""
    except UnicodeDecodeError as error:
        raise cannot(f"its type uses the name {name!r}, which is not UTF-8 text") from error


def bfloat_kind(tid: h5t.TypeID, dims: tuple[int, ...]) -> Kind | None:
    """The kind of bfloat16, the upper half of a float32; None for other types."""
    if tid.get_class() != h5t.FLOAT or tid.get_size() != 2 or tid.get_fields() != BFLOAT_FIELDS:
        return None
    if tid.get_ebias() != BFLOAT_BIAS or tid.get_norm() != h5t.NORM_IMPLIED:
        return None
    order = _order(tid)
    return Kind(element("bfloat", 2, order), dims, np.dtype(f"{order}u2"), None, None, "")


def float8_kind(tid: h5t.TypeID, dims: tuple[int, ...]) -> Kind | None:
    """The kind of a float of one byte that ml_dtypes has; None for other types."""
    if tid.get_class() != h5t.FLOAT or tid.get_size() != 1:
        return None
    layout = (*tid.get_fields()[1:], tid.get_ebias())
    name = next((name for name, known in FLOAT8_LAYOUTS.items() if known == layout), None)
    if name is None or tid.get_fields()[0] != SIGN_OF_BYTE or tid.get_norm() != h5t.NORM_IMPLIED:
        return None
    return Kind(float8(name), dims, np.dtype("u1"), None, None, "")


def complex_parts(tid: h5t.TypeID) -> tuple[Dtype, int, int, list[str]] | None:
    """(float type, offset of the real part, of the imaginary part, names) of a complex number.

    None for a compound that is not one.
    """
    if tid.get_class() != h5t.COMPOUND or tid.get_nmembers() != 2:
        return None
    first, second = tid.get_member_type(0), tid.get_member_type(1)
    if first != second or first.get_class() != h5t.FLOAT:
        return None
    layout = layout_of(first, DEFAULT)
    if layout.memory is not None or layout.dtype.itemsize not in (4, 8):
        return None
    names = [name_of(tid.get_member_name(index)) for index in (0, 1)]
    for real, imag in ((0, 1), (1, 0)):
        if (names[real].lower(), names[imag].lower()) in COMPLEX_NAMES:
            offset = tid.get_member_offset
            return layout.dtype, offset(real), offset(imag), [names[real], names[imag]]
    return None


def _complex_kind(tid: h5t.TypeID, dims: tuple[int, ...]) -> Kind | None:
    """The kind of a compound that is a complex number; None for other types."""
    parts = complex_parts(tid)
    if parts is None:
        return None
    dtype, real_at, imag_at, _ = parts
    number = _complex_of(dtype)
    width = dtype.itemsize
    if (real_at, imag_at) == (0, width) and tid.get_size() == 2 * width:
        return Kind(element_of(number), dims, number, None, None, "")
    buffer = np.dtype(
        {"names": ["r", "i"], "formats": [dtype, dtype], "offsets": [real_at, imag_at],
         "itemsize": tid.get_size()}
    )  # fmt: skip

    def assembled(values: Values) -> Values:
        result = np.empty(values.shape, number)
        result.real, result.imag = values["r"], values["i"]
        return result

    return Kind(element_of(number), dims, buffer, None, assembled, "")


def checked_bools(values: Values) -> Values:
    """Return the values; raises `Corrupt` if any bool is neither 0 nor 1, as a file can have it.

    NumPy has no such bools: it copies their bytes, and counts, packs and compares them wrong.
    """
    for _, raw in bool_bytes(values):
        if raw.max(initial=0) > 1:
            odd = np.flatnonzero(raw > 1)
            raise Corrupt(
                "bools hold values that are neither FALSE (0) nor TRUE (1) "
                "(`--in-opt bools=integers` keeps them)",
                expected="0 or 1",
                got=f"{int(raw.reshape(-1)[odd[0]])}, {odd.size} such among {raw.size}",
            )
    return values


def without_bools(kind: Kind) -> Kind:
    """Return the same kind, read with integers in place of bools."""
    if kind.element is None or not has_bools(kind.buffer):
        return kind
    dtype = _with_integers(kind.buffer)
    return kind._replace(element=element_of(dtype), buffer=dtype, finish=None)


def _with_integers(dtype: Dtype) -> Dtype:
    if dtype.subdtype is not None:
        return np.dtype((_with_integers(dtype.base), dtype.shape))
    if dtype.names is None:
        return np.dtype("i1") if dtype.kind == "b" else dtype
    parts = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
    formats, offsets = [_with_integers(part[0]) for part in parts], [part[1] for part in parts]
    return _structure(dtype.names, formats, offsets, dtype.itemsize)


def in_file(tid: h5t.TypeID, limits: Limits, depth: int = 0) -> tuple[int, tuple[int, ...]]:
    """The bytes of an element in the file, and the offsets of references to variable strings in it.

    The library tells sizes and offsets in memory, where such a string is a pointer.
    """
    check_levels(depth, 2 * limits.type_levels + 2)  # the axes of elements, and types in them
    if is_variable(tid):
        return REFERENCE_BYTES, (0,)
    if tid.get_class() == h5t.ARRAY:
        size, offsets_in = in_file(tid.get_super(), limits, depth + 1)
        count = prod(tid.get_array_dims())
        _check_texts(count * len(offsets_in), limits)
        return count * size, tuple(n * size + at for n in range(count) for at in offsets_in)
    if tid.get_class() != h5t.COMPOUND:
        return int(tid.get_size()), ()
    offsets: list[int] = []
    grown = 0
    indices = range(tid.get_nmembers())
    for index in sorted(indices, key=tid.get_member_offset):
        member = tid.get_member_type(index)
        size, offsets_in = in_file(member, limits, depth + 1)
        _check_texts(len(offsets) + len(offsets_in), limits)
        offsets += [tid.get_member_offset(index) + grown + at for at in offsets_in]
        grown += size - int(member.get_size())
    return int(tid.get_size()) + grown, tuple(offsets)


def _check_texts(count: int, limits: Limits) -> None:
    if count > limits.structure_fields:
        raise cannot(f"its structures hold more than {limits.structure_fields} texts each")


def fixed_dtype(dtype: Dtype, widths: dict[tuple[str, ...], int], path: Path = ()) -> Dtype:
    """The dtype with strings instead of objects: `widths` in bytes, by names of fields."""
    if dtype.subdtype is not None:
        return np.dtype((fixed_dtype(dtype.base, widths, path), dtype.shape))
    if dtype.names is not None:
        return np.dtype([(n, fixed_dtype(dtype[n], widths, (*path, n))) for n in dtype.names])
    return np.dtype(f"S{widths.get(path, 1)}") if dtype.kind == "O" else dtype


def texts_of(values: Values, path: Path = ()) -> Iterator[tuple[Path, Values]]:
    """Yield the names that lead to each field of objects in an array, and the objects."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from texts_of(values[name], (*path, name))
    elif values.dtype.kind == "O":
        yield path, values.reshape(-1)


def element_size(kind: Kind) -> int:
    """The bytes of one element of the dataset in memory, the axes of its type included."""
    return int(kind.buffer.itemsize) * prod(kind.dims)


def is_text(element: Element) -> bool:
    """True if an element is text of NumPy's type U."""
    return isinstance(element.descr, str) and element.descr[1:2] == "U"
