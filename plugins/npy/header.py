"""The header of an NPY file: bytes to `Header`, and an array to the bytes before its data."""

from __future__ import annotations

import re
from collections import namedtuple
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, element_of_code, ml_name, spanned
from raconvert.errors import Corrupt, Unsafe, Unsupported
from raconvert.plugin import Array, Element, element_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Protocol

    from raconvert.files.limits import Limits

    class Readable(Protocol):
        """The bytes that a header is read from: a file, or one member of an archive."""

        @property
        def path(self) -> str:
            """The file, for messages."""

        @property
        def size(self) -> int:
            """The number of bytes in all."""

        @property
        def limits(self) -> Limits:
            """The bounds of what a parser may take."""

        def read_exact(self, offset: int, nbytes: int, what: str) -> bytes:
            """Return exactly `nbytes` bytes from `offset`; `Corrupt` where they end."""


MAGIC = b"\x93NUMPY"
ALIGN = 64  # NumPy pads magic, version, length and header to a multiple of this
GROWTH_DIGITS = 21  # NumPy leaves room for the slowest axis to grow to this many digits
MAX_RANK = 64  # NumPy's own limit since 2.0
MAX_ITEM_BYTES = (1 << 31) - 1  # NumPy's limit for one element

# version -> bytes of the length field, encoding of the header text
Layout = namedtuple("Layout", "length_bytes encoding")
VERSIONS = {
    (1, 0): Layout(2, "latin-1"),
    (2, 0): Layout(4, "latin-1"),
    (3, 0): Layout(4, "utf-8"),
}
KEYS = ("descr", "fortran_order", "shape")

# The fields of a header, in the core's terms; `offset` is where the data begins.
Header = namedtuple("Header", "element dims index_order offset")

# The header as NumPy writes it; anything else goes through the literal parser.
_DIM = "(?:0|[1-9][0-9]{0,18})L?"
_ORDINARY = re.compile(
    r"\{'descr': '([^'\\]*)', 'fortran_order': (True|False), "
    rf"'shape': \((|{_DIM},|{_DIM}(?:, {_DIM})+,?)\),? ?\}} *\n?"
)
# Type strings whose meaning and width are clear, in the form that numpy.dtype.str gives them.
_CLEAR_TYPE = re.compile(
    r"[<>](?:[iuf][248]|c8|c16)|[|<>][iub]1|[|<>][SV][1-9][0-9]{0,9}|[<>]U[1-9][0-9]{0,9}|"
    r"[<>][mM]8(?:\[(?:[2-9]|[1-9][0-9]{1,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_OBJECT_TYPE = re.compile(r"[<>|=]?O[48]?|object")
_LONG_DOUBLE = re.compile(r"[<>|=]?(?:f1[026]|c(?:20|24|32))")
_PICKLE = re.compile(rb"\x80[\x02-\x05]")  # opcode PROTO and its argument
# What numpy.dtype raises on hostile input.
_DTYPE_ERRORS = (
    SyntaxError, ValueError, TypeError, RecursionError, MemoryError, LookupError, AttributeError,
    ArithmeticError,
)  # fmt: skip

# The letters of NumPy's type strings for kinds whose bytes NPY and RA share.
_LETTERS = {"int": "i", "uint": "u", "float": "f", "complex": "c", "bool": "b"}

# numpy.save of numpy.array([1, 2, 3], "u1")
SAMPLE = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"
    + b" " * 60
    + b"\n\x01\x02\x03"
)


# Sound headers by their text and bounds, since archives hold many with the same text.
_CACHE: dict[tuple[bytes, str, int, int], Header] = {}
_MOST_CACHED, _CACHED_BYTES = 256, 512


def read_header(source: Readable) -> Header:
    """Return the header, checked in full, also against the size of the file.

    Raises `Corrupt`, `Unsafe` and `Unsupported`.
    """
    layout = _read_version(source)
    start = len(MAGIC) + 2 + layout.length_bytes
    field = source.read_exact(start - layout.length_bytes, layout.length_bytes, "the header length")
    length = int.from_bytes(field, "little")
    if length > source.limits.header_bytes and length <= source.size - start:
        raise Unsupported(
            "header is too long to be parsed safely",
            path=source.path,
            where=f"byte {start - layout.length_bytes}",
            expected=f"at most {source.limits.header_bytes} bytes",
            got=length,
        )
    raw = source.read_exact(start, length, "the header")
    limits = source.limits
    key = raw, layout.encoding, limits.literal_levels, limits.literal_digits
    cached = _CACHE.get(key)
    if cached is not None:
        header = cached._replace(offset=start + length)
        _check_size(header, source)
        return header
    text = _decode(raw, layout.encoding, source, start)
    descr, fortran_order, shape = _parse(text, source, start)
    element, subshape = _element(descr, source, start)
    _check_shape(shape, source, start)
    if fortran_order and subshape and len(shape) > 1:
        raise Unsupported(
            "sub-array type in Fortran order, whose axes are neither C nor F",
            path=source.path,
            where=f"byte {start}",
            got=_shown(descr),
            remedy="no option allows this; save it with numpy.save(path, array)",
        )
    fortran_order = fortran_order and len(shape) > 1
    dims = subshape[::-1] + (shape if fortran_order else shape[::-1])
    header = Header(element, dims, "F" if fortran_order else "C", start + length)
    _check_size(header, source)
    if length <= _CACHED_BYTES and element.kind != "user":
        if len(_CACHE) >= _MOST_CACHED:
            _CACHE.clear()
        _CACHE[key] = header
    return header


def _read_version(source: Readable) -> Layout:
    """Check magic and version; return how the header of this version is laid out."""
    magic = source.read_exact(0, min(len(MAGIC), max(2, source.size)), "the NPY magic")
    if _PICKLE.match(magic):
        raise Unsafe(
            "is a Python pickle, not an NPY file; reading it would run whatever it contains",
            path=source.path,
            where="byte 0",
            remedy="no option allows this",
        )
    if magic != MAGIC:
        raise Corrupt(
            "is not an NPY file", path=source.path, where="byte 0", expected=MAGIC, got=magic
        )
    version = tuple(source.read_exact(len(MAGIC), 2, "the format version"))
    if version not in VERSIONS:
        raise Unsupported(
            "unknown version of the NPY format",
            path=source.path,
            where=f"byte {len(MAGIC)}",
            expected=", ".join(f"{major}.{minor}" for major, minor in VERSIONS),
            got=f"{version[0]}.{version[1]}",
        )
    return VERSIONS[version]


def _decode(raw: bytes, encoding: str, source: Readable, start: int) -> str:
    """Return the text of a header, which begins at byte `start`. Raises `Corrupt`."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise Corrupt(
            f"header is not {encoding} text",
            path=source.path,
            where=f"byte {start + error.start}",
            got=raw[error.start : error.end],
        ) from error


def _parse(text: str, source: Readable, start: int) -> tuple[Any, bool, tuple[int, ...]]:
    """Return `descr`, `fortran_order` and `shape` of the header text."""
    ordinary = _ORDINARY.fullmatch(text)
    if ordinary:
        descr, fortran_order, axes = ordinary.groups()
        return descr, fortran_order == "True", tuple(map(int, re.findall("[0-9]+", axes)))
    fields = _literal_fields(text, source, start)
    if type(fields["fortran_order"]) is not bool:
        _refuse_header("fortran_order", "True or False", fields["fortran_order"], source, start)
    shape = fields["shape"]
    if not isinstance(shape, tuple) or any(type(axis) is not int for axis in shape):
        _refuse_header("shape", "a tuple of integers", shape, source, start)
    return fields["descr"], fields["fortran_order"], shape


def _literal_fields(text: str, source: Readable, start: int) -> dict[str, Any]:
    """Return the header's dictionary in any form that NumPy has written; nothing is ever run."""
    from raconvert.metadata.literal import parse

    try:
        pairs = parse(text, source.limits)
    except (ValueError, RecursionError) as error:
        raise Corrupt(
            f"header is not a Python literal that an NPY file has: {error}",
            path=source.path,
            where=f"byte {start}",
            expected="{'descr': ..., 'fortran_order': ..., 'shape': ...}",
            got=_shown(text),
        ) from error
    for key in KEYS:
        values = [value for name, value in pairs if name == key]
        if len(values) > 1:
            _refuse_repeated(key, values, source, start)
    fields = dict(pairs)
    if set(fields) != set(KEYS):
        _refuse_header("keys", ", ".join(KEYS), list(fields), source, start)
    return fields


def _refuse_repeated(key: str, values: list[Any], source: Readable, start: int) -> NoReturn:
    same = all(repr(value) == repr(values[0]) for value in values)
    how = "the values agree" if same else "the values differ"
    raise Corrupt(
        f"header key '{key}' is repeated ({how})",
        path=source.path,
        where=f"byte {start}",
        expected="each key once",
        got=f"{len(values)} times",
    )


def _refuse_header(what: str, expected: str, got: object, source: Readable, start: int) -> NoReturn:
    raise Corrupt(
        f"wrong {what} in the header",
        path=source.path,
        where=f"byte {start}",
        expected=expected,
        got=_shown(got),
    )


def _shown(value: object) -> str:
    """Return the value as text short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- what the header means ------------------------------------------------------------------------


def _element(descr: Any, source: Readable, start: int) -> tuple[Element, tuple[int, ...]]:
    """Return the element type of a `descr`, and the lengths of a sub-array type (else empty).

    NumPy is imported only for structured types, sub-arrays and aliases.
    """
    element: Element | None = None
    subshape: tuple[int, ...] = ()
    if isinstance(descr, str) and _CLEAR_TYPE.fullmatch(descr):
        element = element_of_code(descr)
    if element is None:
        element, subshape = _element_by_numpy(descr, source, start)
    if element.nbytes > MAX_ITEM_BYTES:
        _refuse_header("descr", f"at most {MAX_ITEM_BYTES} bytes", descr, source, start)
    if element.nbytes == 0:
        raise Unsupported(
            "elements of 0 bytes hold no data, whatever the shape says",
            path=source.path,
            where=f"byte {start}",
            got=_shown(descr),
        )
    return element, subshape


def _element_by_numpy(descr: Any, source: Readable, start: int) -> tuple[Element, tuple[int, ...]]:
    """Return the element type and the shape of subarrays, by NumPy's own parser.

    Objects and long doubles are refused before.
    """
    if isinstance(descr, str):
        if _OBJECT_TYPE.fullmatch(descr):
            _refuse_objects(descr, source, start)
        if _LONG_DOUBLE.fullmatch(descr):
            _refuse_type("long double, whose layout depends on the machine", descr, source, start)
    elif not isinstance(descr, (list, tuple)):
        _refuse_header("descr", "a type string or a list of fields", descr, source, start)
    import warnings

    from numpy.lib.format import descr_to_dtype

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated aliases such as 'a5'
            dtype = descr_to_dtype(descr)
    except _DTYPE_ERRORS as error:
        raise Corrupt(
            f"header descr is not an element type that NumPy knows ({error})"[:300],
            path=source.path,
            where=f"byte {start}",
            got=_shown(descr),
        ) from error
    if dtype.hasobject:
        _refuse_objects(descr, source, start)
    shape: tuple[int, ...] = ()
    while dtype.subdtype is not None:
        dtype, dims = dtype.subdtype
        shape += dims
    try:
        return element_of(dtype), shape
    except Unsupported as error:
        _refuse_type(error.what, descr, source, start)


def _refuse_objects(descr: Any, source: Readable, start: int) -> NoReturn:
    raise Unsafe(
        "holds Python objects as a pickle; reading them would run whatever the file contains",
        path=source.path,
        where=f"byte {start}",
        got=_shown(descr),
        remedy="no option allows this; ask for the data as a numeric or fixed-width text type",
    )


def _refuse_type(reason: str, descr: Any, source: Readable, start: int) -> NoReturn:
    raise Unsupported(
        f"element type is not supported: {reason}",
        path=source.path,
        where=f"byte {start}",
        got=_shown(descr),
        remedy="no option allows this; save it with a portable type first, for instance float64",
    )


def _check_shape(shape: tuple[int, ...], source: Readable, start: int) -> None:
    if any(axis < 0 for axis in shape):
        _refuse_header("shape", "no negative axis", shape, source, start)
    if any(axis > MAX_SPAN for axis in shape):
        _refuse_header("shape", "axes below 2**63", shape, source, start)


def _check_size(header: Header, source: Readable) -> None:
    """Check rank and exact size of the data, in Python's unbounded integers."""
    dims = header.dims
    if len(dims) > MAX_RANK:
        raise Unsupported(
            "array has too many axes",
            path=source.path,
            expected=f"at most {MAX_RANK}",
            got=len(dims),
        )
    if spanned(dims, header.element.nbytes) > MAX_SPAN:
        _refuse_header("shape", "fewer than 2**63 bytes", dims, source, header.offset)
    needed, present = nbytes_of(header), source.size - header.offset
    if needed > present:
        raise Corrupt(
            "data is cut off",
            path=source.path,
            where=f"byte {source.size}",
            expected=f"{needed} bytes of data from byte {header.offset}",
            got=f"{present} ({needed - present} missing)",
        )


def nbytes_of(header: Header) -> int:
    """Return the number of bytes of the data."""
    nbytes: int = prod(header.dims) * header.element.nbytes
    return nbytes


# --- writing --------------------------------------------------------------------------------------


def header_of(array: Array) -> bytes:
    """Return everything before the data: the bytes that `numpy.save` writes for this array.

    Version 1.0 unless the header is longer than 65535 bytes (2.0) or a field name is not Latin-1
    (3.0).
    """
    fortran_order = array.index_order == "F" and array.ndim > 1
    shape = array.shape
    descr = _descr(array)
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran_order}, 'shape': {shape!r}, }}"
    if shape:
        text += " " * (GROWTH_DIGITS - len(str(shape[-1 if fortran_order else 0])))
    return next(filter(None, (_framed(text, version) for version in VERSIONS)))


def _framed(text: str, version: tuple[int, int]) -> bytes | None:
    """Return the whole header in one version of the format; None if that cannot hold the text."""
    width, encoding = VERSIONS[version]
    try:
        raw: bytes = text.encode(encoding)
    except UnicodeEncodeError:
        return None
    # A text that is aligned already gets a whole line of spaces, as NumPy does it.
    padding = ALIGN - (len(MAGIC) + 2 + width + len(raw) + 1) % ALIGN
    length = len(raw) + padding + 1
    if length >= 1 << 8 * width:
        return None
    fixed: bytes = MAGIC + bytes(version) + length.to_bytes(width, "little")
    return fixed + raw + b" " * padding + b"\n"


def _descr(array: Array) -> Any:
    """Return the `descr` of an array's elements, little-endian; numpy only for structures."""
    kind, nbytes, _, descr = array.element
    if kind in _LETTERS:
        return f"{'|' if nbytes == 1 else '<'}{_LETTERS[kind]}{nbytes}"
    if ml_name(array.element) is not None:
        return f"{'|' if nbytes == 1 else '<'}V{nbytes}"  # as numpy.save writes it
    if isinstance(descr, tuple):
        from numpy.lib.format import dtype_to_descr

        return dtype_to_descr(array.dtype)
    return descr or f"|V{nbytes}"
