"""Tables of GGUF: types of tensors and of values, and a sample file."""

from __future__ import annotations

from struct import Struct

from raconvert.plugin import element

__all__ = [
    "ALIGNMENT", "AXES", "BLOCKS", "BYTES", "DEQUANTISED", "ELEMENTS", "LIST", "MAGIC", "NUMBERS",
    "SAMPLE", "TEXT", "VERSIONS",
]  # fmt: skip

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = "general.alignment"
AXES = 4  # of a tensor, as ggml has them
BYTES = element("uint", 1)
# Types with one element to a block: number -> name, kind, bytes.
ELEMENTS = {
    0: ("F32", "float", 4), 1: ("F16", "float", 2), 24: ("I8", "int", 1), 25: ("I16", "int", 2),
    26: ("I32", "int", 4), 27: ("I64", "int", 8), 28: ("F64", "float", 8),
    30: ("BF16", "bfloat", 2),
}  # fmt: skip
# Quantised types: number -> name, elements of a block, bytes of a block.
BLOCKS = {
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
# Quantised types whose values can be worked out.
DEQUANTISED = ("Q4_0", "Q8_0")
NUMBERS = "BbHhIif?__Qqd"  # by the number of their type; _ are text and list
TEXT, LIST = 8, 9

SAMPLE = (
    MAGIC
    + Struct("<IQQ").pack(3, 1, 0)
    + Struct("<Q1sIQQIQ").pack(1, b"x", 2, 3, 2, 25, 0)
    + bytes(-65 % 32)
    + bytes(range(12))
)
