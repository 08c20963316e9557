"""Tables of PyTorch's files: element types, storages, and the globals that a pickle may name."""

from __future__ import annotations

from struct import pack
from zlib import crc32

from raconvert.arrays.dtypes import FLOAT8, float8
from raconvert.declared import Record
from raconvert.plugin import Element, element

__all__ = [
    "CALLS", "ELEMENTS", "LEGACY_MAGIC", "LEGACY_TAR", "NUMBERS", "SAMPLE", "STORAGES", "WIDTHS",
    "Known", "known_global",
]  # fmt: skip

# Element types by the name that they have below ``torch``.
ELEMENTS: dict[str, Element] = {
    "float16": element("float", 2), "float32": element("float", 4), "float64": element("float", 8),
    "bfloat16": element("bfloat", 2), "complex64": element("complex", 8),
    "complex128": element("complex", 16), "bool": element("bool", 1),
    **{f"int{8 * n}": element("int", n) for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}": element("uint", n) for n in (1, 2, 4, 8)},
    **{name: float8(name) for name in FLOAT8
       if name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                   "float8_e8m0fnu")},
}  # fmt: skip
# Bytes of an element of all types, also of those that no array has.
WIDTHS: dict[str, int] = {name: kind.nbytes for name, kind in ELEMENTS.items()} | {
    "complex32": 4, "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
    "bits8": 1, "bits16": 2, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "float4_e2m1fn_x2": 1,
}  # fmt: skip
# Storages that have a type; one without, of bytes, is None.
STORAGES: dict[str, str | None] = {
    "torch.DoubleStorage": "float64", "torch.FloatStorage": "float32",
    "torch.HalfStorage": "float16", "torch.BFloat16Storage": "bfloat16",
    "torch.LongStorage": "int64", "torch.IntStorage": "int32", "torch.ShortStorage": "int16",
    "torch.CharStorage": "int8", "torch.ByteStorage": "uint8", "torch.BoolStorage": "bool",
    "torch.ComplexFloatStorage": "complex64", "torch.ComplexDoubleStorage": "complex128",
    "torch.QInt8Storage": "qint8", "torch.QUInt8Storage": "quint8",
    "torch.QInt32Storage": "qint32", "torch.QUInt4x2Storage": "quint4x2",
    "torch.QUInt2x4Storage": "quint2x4", "torch.storage.UntypedStorage": None,
    "torch.UntypedStorage": None,
}  # fmt: skip
# Types of tensors, and ways of quantisation: named as parts of others.
_CONSTANTS = frozenset([
    "torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer",
    "torch.per_tensor_affine", "torch.per_channel_affine", "torch.per_tensor_symmetric",
    "torch.per_channel_symmetric", "torch.per_channel_affine_float_qparams",
])  # fmt: skip
# Functions that pickles of torch name -> the method `as_...` that stands for each here.
CALLS: dict[str, str] = {
    "torch._utils._rebuild_tensor_v2": "tensor", "torch._utils._rebuild_tensor_v3": "typed_tensor",
    "torch._utils._rebuild_parameter": "parameter",
    "torch._utils._rebuild_parameter_with_state": "parameter",
    "torch._tensor._rebuild_from_type_v2": "tensor_of_type",
    "torch._utils._rebuild_sparse_tensor": "no_array", "torch._utils._rebuild_qtensor": "no_array",
    "torch._utils._rebuild_nested_tensor": "no_array",
    "torch._utils._rebuild_meta_tensor_no_storage": "no_array",
    "torch.Size": "size", "torch.device": "device", "torch.serialization._get_layout": "layout",
    "collections.OrderedDict": "ordered", "builtins.complex": "complex", "builtins.set": "listed",
    "builtins.frozenset": "listed", "builtins.bytearray": "octets", "_codecs.encode": "octets",
}  # fmt: skip
# Tensors that are not one block of numbers, by the function that would make them.
NUMBERS: dict[str, str] = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_qtensor": "a quantised tensor",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_meta_tensor_no_storage": "a tensor without elements (device meta)",
}

# The first pickle of files of `torch.save` before 1.6: protocol 2, LONG1 of ten bytes, STOP.
LEGACY_MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
# Members of the tar archives of torch before 0.1.10.
LEGACY_TAR = (b"sys_info", b"pickle", b"storages", b"tensors")


class Known(Record):
    """A global that a pickle may name: `kind` is dtype, storage, call or constant."""

    kind: str
    name: str


def known_global(module: str, name: str) -> Known | None:
    """Return the global of this name, if it is one of the tables, else None. Raises nothing."""
    module = "builtins" if module == "__builtin__" else module
    full = f"{module}.{name}"
    if full in CALLS:
        return Known("call", full)
    if full in STORAGES:
        return Known("storage", full)
    if module == "torch" and name in WIDTHS:
        return Known("dtype", name)
    return Known("constant", full) if full in _CONSTANTS else None


# torch.save of {"x": tensor} with int16, (2, 3), big-endian.
_PICKLED = (
    b"\x80\x02}X\x01\x00\x00\x00xctorch._utils\n_rebuild_tensor_v2\n(("
    b"X\x07\x00\x00\x00storagectorch\nShortStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    b"K\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRs."
)
_MEMBERS = (
    (b"x/data.pkl", _PICKLED), (b"x/byteorder", b"big"), (b"x/data/0", bytes(range(12))),
    (b"x/version", b"3\n"),
)  # fmt: skip


def _archive(members: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return a ZIP archive of stored members."""
    data, directory = b"", b""
    for name, content in members:
        common = 20, 0, 0, 0, 33, crc32(content), len(content), len(content), len(name), 0
        directory += pack("<4s6H3I5H2I", b"PK\1\2", 20, *common, 0, 0, 0, 0, len(data)) + name
        data += pack("<4s5H3I2H", b"PK\3\4", *common) + name + content
    counts = len(members), len(members), len(directory), len(data)
    return data + directory + pack("<4s4H2IH", b"PK\5\6", 0, 0, *counts, 0)


SAMPLE = _archive(_MEMBERS)
