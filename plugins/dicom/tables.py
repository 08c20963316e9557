"""Tags, value representations, transfer syntaxes and words of DICOM."""

from __future__ import annotations

PREAMBLE = 128
MAGIC = b"DICM"
NAMESPACE = "dicom"

# Value representations ---------------------------------------------------------------------------

# With two unused bytes and a length of four bytes; all others have a length of two.
LONG = frozenset({b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR",
                  b"UT", b"UV"})  # fmt: skip
SHORT = frozenset(
    {b"AE", b"AS", b"AT", b"CS", b"DA", b"DS", b"DT", b"FD", b"FL", b"IS", b"LO", b"LT", b"PN",
     b"SH", b"SL", b"SS", b"ST", b"TM", b"UI", b"UL", b"US"}
)  # fmt: skip
# Binary numbers: representation -> code of `struct`.
CODES = {b"US": "H", b"SS": "h", b"UL": "I", b"SL": "i", b"FL": "f", b"FD": "d", b"UV": "Q",
         b"SV": "q", b"OV": "Q"}  # fmt: skip
UNDEFINED = 0xFFFFFFFF
ITEM, ITEM_END, SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD

# Tags --------------------------------------------------------------------------------------------

SYNTAX = 0x00020010
CHARSET = 0x00080005
IMAGE_TYPE = 0x00080008
SOP_CLASS = 0x00080016
ACQUISITION_TIME, CONTENT_TIME = 0x00080032, 0x00080033
ACQUISITION_DATE_TIME = 0x0008002A
MODALITY = 0x00080060
DESCRIPTION = 0x0008103E
SLICE_THICKNESS, SPACING_BETWEEN = 0x00180050, 0x00180088
ECHO_TIME, ECHO_NUMBER = 0x00180081, 0x00180086
FRAME_TIME, FRAME_TIMES = 0x00181063, 0x00181065
TRIGGER_TIME = 0x00181060
IMAGER_SPACING = 0x00181164
B_VALUE = 0x00189087
GRADIENT, GRADIENTS = 0x00189089, 0x00189076
FRAME_DATE_TIME, FRAME_TYPE = 0x00189074, 0x00089007
EFFECTIVE_ECHO_TIME = 0x00189082
CSA_CREATOR, CSA = 0x00290010, 0x00291010
SERIES = 0x0020000E
SERIES_NUMBER, ACQUISITION_NUMBER, INSTANCE_NUMBER = 0x00200011, 0x00200012, 0x00200013
POSITION, ORIENTATION = 0x00200032, 0x00200037
FRAME_OF_REFERENCE = 0x00200052
TEMPORAL_POSITION = 0x00200100
STACK = 0x00209056
TEMPORAL_INDEX = 0x00209128
SAMPLES, PHOTOMETRIC, PLANAR, FRAMES = 0x00280002, 0x00280004, 0x00280006, 0x00280008
FRAME_POINTER = 0x00280009
ROWS, COLUMNS, PIXEL_SPACING = 0x00280010, 0x00280011, 0x00280030
ALLOCATED, STORED, HIGH, SIGNED = 0x00280100, 0x00280101, 0x00280102, 0x00280103
INTERCEPT, SLOPE, RESCALE_TYPE = 0x00281052, 0x00281053, 0x00281054
MODALITY_LUT, LUT_DESCRIPTOR = 0x00283000, 0x00283002
LUT_TYPE, LUT_DATA = 0x00283004, 0x00283006
UNITS = 0x00541001
SEGMENT = 0x0062000B
DOSE_UNITS, OFFSETS, DOSE_SCALING = 0x30040002, 0x3004000C, 0x3004000E
FLOATS, DOUBLES, PIXELS = 0x7FE00008, 0x7FE00009, 0x7FE00010
EXTENDED_OFFSETS = 0x7FE00001
SHARED_GROUPS, FRAME_GROUPS = 0x52009229, 0x52009230
FRAME_CONTENT, PLANE_POSITION, PLANE_ORIENTATION = 0x00209111, 0x00209113, 0x00209116
PIXEL_MEASURES, TRANSFORMATION = 0x00289110, 0x00289145
DIFFUSION, ECHO, TEMPORAL, SEGMENT_ID = 0x00189117, 0x00189114, 0x00209310, 0x0062000A
MR_FRAME_TYPE = 0x00189226
REAL_WORLD = 0x00409096

# Sequences that are read: those of functional groups, of which one item is used in each.
GROUPS = frozenset({FRAME_CONTENT, PLANE_POSITION, PLANE_ORIENTATION, PIXEL_MEASURES,
                    TRANSFORMATION, DIFFUSION, GRADIENTS, ECHO, SEGMENT_ID,
                    MR_FRAME_TYPE})  # fmt: skip
SEQUENCES = frozenset({SHARED_GROUPS, FRAME_GROUPS, MODALITY_LUT, REAL_WORLD}) | GROUPS
# Elements that are read, and their representation if it is not stored.
_TEXTS = {
    SYNTAX: b"UI", CHARSET: b"CS", IMAGE_TYPE: b"CS", SOP_CLASS: b"UI", ACQUISITION_TIME: b"TM",
    CONTENT_TIME: b"TM", ACQUISITION_DATE_TIME: b"DT", MODALITY: b"CS", DESCRIPTION: b"LO",
    FRAME_DATE_TIME: b"DT", SERIES: b"UI", FRAME_OF_REFERENCE: b"UI", STACK: b"SH",
    FRAME_TYPE: b"CS", PHOTOMETRIC: b"CS", RESCALE_TYPE: b"LO", UNITS: b"CS", DOSE_UNITS: b"CS",
    LUT_TYPE: b"LO",
}  # fmt: skip
_DECIMALS = (
    SLICE_THICKNESS, SPACING_BETWEEN, ECHO_TIME, FRAME_TIME, FRAME_TIMES, TRIGGER_TIME,
    IMAGER_SPACING, POSITION, ORIENTATION, PIXEL_SPACING, INTERCEPT, SLOPE, OFFSETS, DOSE_SCALING,
)  # fmt: skip
_INTEGERS = (ECHO_NUMBER, SERIES_NUMBER, ACQUISITION_NUMBER, INSTANCE_NUMBER, TEMPORAL_POSITION,
             FRAMES)  # fmt: skip
_SHORTS = (SAMPLES, PLANAR, ROWS, COLUMNS, ALLOCATED, STORED, HIGH, SIGNED, SEGMENT,
           LUT_DESCRIPTOR, LUT_DATA)  # fmt: skip
KNOWN: dict[int, bytes] = {
    **_TEXTS,
    **dict.fromkeys(_DECIMALS, b"DS"),
    **dict.fromkeys(_INTEGERS, b"IS"),
    **dict.fromkeys(_SHORTS, b"US"),
    B_VALUE: b"FD", GRADIENT: b"FD", EFFECTIVE_ECHO_TIME: b"FD", TEMPORAL_INDEX: b"UL",
    FRAME_POINTER: b"AT",
    EXTENDED_OFFSETS: b"OV", CSA_CREATOR: b"LO", CSA: b"OB",
    **dict.fromkeys(SEQUENCES, b"SQ"),
}  # fmt: skip

# Transfer syntaxes -------------------------------------------------------------------------------

IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"
DEFLATED, BIG = "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2"
NATIVE = frozenset({IMPLICIT, EXPLICIT, DEFLATED, BIG})
RLE = "1.2.840.10008.1.2.5"
JPEG_2000 = "JPEG 2000"
# Encapsulated ones that pydicom decodes: their name, and the packages for it.
_LIBJPEG = ("pydicom", "pylibjpeg", "pylibjpeg-libjpeg")
_OPENJPEG = ("pydicom", "pylibjpeg", "pylibjpeg-openjpeg")
ENCODINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    RLE: ("RLE", ("pydicom",)),
    "1.2.840.10008.1.2.4.50": ("JPEG", ("pydicom",)),
    "1.2.840.10008.1.2.4.51": ("JPEG of 12 bits", _LIBJPEG),
    "1.2.840.10008.1.2.4.57": ("lossless JPEG", _LIBJPEG),
    "1.2.840.10008.1.2.4.70": ("lossless JPEG", _LIBJPEG),
    "1.2.840.10008.1.2.4.80": ("JPEG-LS", ("pydicom", "pyjpegls")),
    "1.2.840.10008.1.2.4.81": ("JPEG-LS", ("pydicom", "pyjpegls")),
    "1.2.840.10008.1.2.4.90": (JPEG_2000, _OPENJPEG),
    "1.2.840.10008.1.2.4.91": (JPEG_2000, _OPENJPEG),
    "1.2.840.10008.1.2.4.201": (JPEG_2000, _OPENJPEG),
    "1.2.840.10008.1.2.4.202": (JPEG_2000, _OPENJPEG),
    "1.2.840.10008.1.2.4.203": (JPEG_2000, _OPENJPEG),
}
LOSSY = {f"1.2.840.10008.1.2.4.{code}" for code in (50, 51, 81, 91, 203)}
# Encapsulated ones that are refused, by the beginning of their number.
REFUSED = {
    "1.2.840.10008.1.2.4.10": "video",
    "1.2.840.10008.1.2.7": "video",
    "1.2.840.10008.1.2.4.9": "images that a server holds (JPIP), or JPEG 2000 of many components",
    "1.2.840.10008.1.2.4.11": "JPEG XL",
    "1.2.840.10008.1.2.8": "deflated frames",
}

# Colours: photometric interpretation -> labels of the samples of a pixel as they are stored.
RGB = "RGB"
GREY = ("MONOCHROME1", "MONOCHROME2")
YBR = {"YBR_FULL": ("Y", "CB", "CR"), "YBR_FULL_422": ("Y", "CB", "CR")}
OF_CODEC = ("YBR_RCT", "YBR_ICT")  # which every decoder undoes

# People and their visits -------------------------------------------------------------------------

# Kinds of elements that do not leave the file, by tag; also all of group 0010, and odd groups.
KINDS: dict[str, frozenset[int]] = {
    "names of people": frozenset({
        0x00080090, 0x00081048, 0x00081050, 0x00081060, 0x00081070, 0x00321032, 0x0040A123,
        0x00400006, 0x00080096, 0x0040A075, 0x4008010C, 0x00700084, 0x300E0008,
    }),
    "dates and times": frozenset({
        0x00080012, 0x00080013, 0x00080020, 0x00080021, 0x00080022, 0x00080023, 0x0008002A,
        0x00080030, 0x00080031, 0x00080032, 0x00080033, 0x00080201, 0x00181012, 0x00181014,
        0x00400002, 0x00400003, 0x00400244, 0x00400245, 0x00400250, 0x00400251, 0x00181200,
        0x00181201, 0x00189074,
    }),
    "places and devices": frozenset({
        0x00080080, 0x00080081, 0x00080082, 0x00081010, 0x00081040, 0x00181000, 0x00181002,
        0x00181008, 0x00400001, 0x00400010, 0x00400241, 0x00400242, 0x00400243,
    }),
    "identifiers": frozenset({
        0x00080018, 0x00080050, 0x0020000D, 0x0020000E, 0x00200010, 0x00200052, 0x00081140,
        0x00081110, 0x00081111, 0x00081120, 0x00081155, 0x00400253, 0x00401001, 0x00020003,
    }),
    "descriptions": frozenset({
        0x00081030, 0x0008103E, 0x00181030, 0x00204000, 0x00324000, 0x00321060, 0x00400007,
        0x00400254, 0x00400280, 0x00181400, 0x00184000, 0x00081080, 0x00082111,
    }),
}  # fmt: skip
CURVES_AND_OVERLAYS = {"curves": range(0x5000, 0x5100), "overlays": range(0x6000, 0x6100)}

# Character sets that Python knows, by their names in DICOM.
CHARSETS = {
    "": "ascii", "ISO_IR 6": "ascii", "ISO_IR 100": "latin-1", "ISO_IR 101": "iso8859-2",
    "ISO_IR 109": "iso8859-3", "ISO_IR 110": "iso8859-4", "ISO_IR 144": "iso8859-5",
    "ISO_IR 127": "iso8859-6", "ISO_IR 126": "iso8859-7", "ISO_IR 138": "iso8859-8",
    "ISO_IR 148": "iso8859-9", "ISO_IR 166": "iso8859-11", "ISO_IR 13": "shift_jis",
    "ISO_IR 192": "utf-8", "GB18030": "gb18030", "GBK": "gbk",
}  # fmt: skip
