"""Types and fields of MetaImage."""

from __future__ import annotations

from raconvert.plugin import element

MAGICS = ((0, b"ObjectType"), (0, b"NDims"), (0, b"Comment"))
GZIP_MAGIC = b"\x1f\x8b"
NAMESPACE = "metaimage"
BLANKS = " \t\n\v\f\r"  # as C has them
TEXT = "text"  # the encoding of numbers that are written out
MAX_RANK = 10  # of MetaIO

ELEMENTS = {
    "MET_CHAR": element("int", 1),
    "MET_UCHAR": element("uint", 1),
    "MET_SHORT": element("int", 2),
    "MET_USHORT": element("uint", 2),
    "MET_INT": element("int", 4),
    "MET_UINT": element("uint", 4),
    "MET_LONG": element("int", 4),
    "MET_ULONG": element("uint", 4),
    "MET_LONG_LONG": element("int", 8),
    "MET_ULONG_LONG": element("uint", 8),
    "MET_FLOAT": element("float", 4),
    "MET_DOUBLE": element("float", 8),
}
NAMES = {(e.kind, e.nbytes): name for name, e in reversed(ELEMENTS.items())}
# Fields that say how the data lies; they are worked out anew.
STRUCTURE = {
    "ObjectType", "NDims", "BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB",
    "CompressedData", "CompressedDataSize", "DimSize", "HeaderSize", "ElementNumberOfChannels",
    "ElementType", "ElementDataFile", "RaconvertIndexOrder", "RaconvertSeal",
}  # fmt: skip
ORDER = "RaconvertIndexOrder"  # our own, of column-major arrays; others ignore it
SEAL = "RaconvertSeal"  # our own, of a header with its data beside it (`raconvert.files.seal`)
# Fields of other names that mean the same
ALIASES = {
    "Position": "Offset", "Origin": "Offset", "Rotation": "TransformMatrix",
    "Orientation": "TransformMatrix", "BinaryDataByteOrderMSB": "ElementByteOrderMSB",
}  # fmt: skip
UNITS = ("um", "mm", "cm")

SAMPLE = (
    b"ObjectType = Image\nNDims = 2\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
    b"CompressedData = False\nDimSize = 3 2\nElementType = MET_SHORT\nElementDataFile = LOCAL\n"
    + bytes(range(12))
)
