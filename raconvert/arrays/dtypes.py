"""Element types: one table between RA's type codes, numpy's dtypes and our own tuples.

An `Element` is a tuple ``(kind, nbytes, order, descr)`` that costs no numpy:

* ``kind``: ``int uint float complex bool bfloat user``
* ``nbytes``: bytes per element; for complex, of the pair
* ``order``: ``<`` little-endian, ``>`` big-endian, ``|`` where byte order means nothing
* ``descr``: for ``user`` (RA code 0) what is inside, in the notation of the NPY header (NEP 1):
  ``'<U4'``, ``'<M8[ns]'``, or a tuple of ``(name, descr[, shape])`` fields; None if unknown.
  Floats of one byte, which that notation has not, have the name that ml_dtypes gives them.

Type codes: RA README, "Elemental Type Specification"; code 5 of width 2 is bfloat16 (Rust crate).
"""

from __future__ import annotations

from math import prod

from raconvert.declared import Record
from raconvert.errors import MissingDependency, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np


class Element(Record):
    """The type of an array's elements: see the module's docstring."""

    kind: str
    nbytes: int
    order: str
    descr: Any = None


MAX_SPAN = (1 << 63) - 1  # bytes of one array, as numpy and all readers of RA count them
MAX_FIELD_AXES = 32  # of arrays of arrays; all versions of NumPy have as many

# The one table of element types: kind, bytes, RA eltype, numpy type string without byte order
# (None: only the ml_dtypes package has the type). What follows here, and what a format asks about a
# type (`NUMBERS`, `ml_name`, `type_name`), is read off it; a plugin lists the types of its format.
_ROWS = (
    ("user", 0, 0, None),
    ("int", 1, 1, "i1"),
    ("int", 2, 1, "i2"),
    ("int", 4, 1, "i4"),
    ("int", 8, 1, "i8"),
    ("uint", 1, 2, "u1"),
    ("uint", 2, 2, "u2"),
    ("uint", 4, 2, "u4"),
    ("uint", 8, 2, "u8"),
    ("float", 2, 3, "f2"),
    ("float", 4, 3, "f4"),
    ("float", 8, 3, "f8"),
    ("complex", 8, 4, "c8"),
    ("complex", 16, 4, "c16"),
    ("bool", 1, 5, "b1"),
    ("bfloat", 2, 5, None),  # bfloat16
)
# Floats of one byte, by the names of the ml_dtypes package; RA's code 0 with a description.
FLOAT8 = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
# Types that numpy lacks, by the name that the ml_dtypes package gives them.
ML_DTYPES = {
    "bfloat16": Element("bfloat", 2, "<"),
    **{name: Element("user", 1, "|", name) for name in FLOAT8},
}
_ML_NAMES = {(one.kind, one.nbytes, one.descr): name for name, one in ML_DTYPES.items()}
KINDS = {eltype: kind for kind, _, eltype, _ in _ROWS if kind != "bfloat"}  # RA eltype -> kind
ELTYPES = {kind: eltype for kind, _, eltype, _ in _ROWS}  # kind -> RA eltype
FLOATS = ("float", "bfloat")
REALS = ("int", "uint", "bool", *FLOATS)  # kinds that have an order and become a float
NUMBERS = (*REALS, "complex")
_CODES = {(kind, nbytes): code for kind, nbytes, _, code in _ROWS if code}
# The widths of datetime64 and timedelta64 that need no numpy: the units alone.
_UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]
_DATES = frozenset(["8", *(f"8[{unit}]" for unit in _UNITS)])
_BY_CODE = {code: (kind, nbytes) for (kind, nbytes), code in _CODES.items()}


def element(kind: str, nbytes: int, order: str = "<", descr: Any = None) -> Element:
    """Return an `Element`, with the byte order normalised to ``|`` where it means nothing.

    >>> element("float", 8)
    Element(kind='float', nbytes=8, order='<', descr=None)
    >>> element("uint", 1, ">").order
    '|'

    Raises nothing.
    """
    if swap_unit(kind, nbytes) == 1:
        order = "|"
    return Element(kind, nbytes, order, descr)


def spanned(dims: Sequence[int], nbytes: int) -> int:
    """Return the bytes that axes of elements of `nbytes` span; empty axes count as length 1.

    A header that spans more than `MAX_SPAN` is taken for damaged, even for an empty array.

    >>> spanned((0, 3, 2), 8)
    48
    """
    return prod(filter(None, dims)) * nbytes


def swap_unit(kind: str, nbytes: int) -> int:
    """Return the number of bytes that form one number; 1 for types without a byte order."""
    if kind in ("user", "bool"):
        return 1
    return nbytes // 2 if kind == "complex" else nbytes


def needs_swap(element: Element) -> int:
    """Return the bytes of each number to reverse for little-endian order; 1: nothing to do."""
    return swap_unit(element.kind, element.nbytes) if element.order == ">" else 1


def little(element: Element) -> Element:
    """Return the same element in little-endian order (user types keep theirs: bytes verbatim).

    >>> little(element("int", 4, ">")).order
    '<'

    Raises nothing.
    """
    return element._replace(order="<") if element.order == ">" else element


def described(element: Element) -> Element:
    """Return the element in the form in which types are compared: without a byte order.

    Bytes that a format calls void are the same as bytes without a description.

    >>> described(element_of(np.dtype("V9"))) == Element("user", 9, "|")
    True

    Raises nothing.
    """
    if element.kind == "user" and element.descr == f"|V{element.nbytes}":
        return element._replace(descr=None)
    return little(element)


def element_of_code(code: str) -> Element | None:
    """Return the element of a simple NPY type string such as ``<f4`` or ``|b1``, without numpy.

    Strings, datetimes, void and everything structured become ``user`` with the string as `descr`
    when their width can be read off it; None when the string needs numpy to be understood.
    """
    order, letter, width = code[:1], code[1:2], code[2:]
    if order == "=":
        import sys

        order = "<" if sys.byteorder == "little" else ">"
    if order not in "<>|" or not order:
        return None
    if letter + width in _BY_CODE:
        numeric = element(*_BY_CODE[letter + width], order)
        has_order = numeric.order != "|"
        return None if has_order and order == "|" else numeric
    count = int(width) if width.isdecimal() and width.isascii() else 0
    if letter in "SV" and count:
        return Element("user", count, "|", f"|{letter}{count}")
    if letter == "U" and count and order != "|":
        return Element("user", 4 * count, "|", f"{order}U{count}")
    if letter in "mM" and width in _DATES and order != "|":
        return Element("user", 8, "|", f"{order}{letter}{width}")
    return None


def element_of(dtype: np.dtype[Any]) -> Element:
    """Return the element of a numpy dtype.

    >>> element_of(np.dtype(">f4"))
    Element(kind='float', nbytes=4, order='>', descr=None)
    >>> element_of(np.dtype("<U3"))
    Element(kind='user', nbytes=12, order='|', descr='<U3')

    Raises `Unsupported` for what has no faithful place in RA: objects, long doubles, and the
    sub-byte numbers of ml_dtypes.
    """
    if dtype.type.__name__ in ML_DTYPES:
        named = ML_DTYPES[dtype.type.__name__]
        return named._replace(order=">") if dtype.byteorder == ">" else named
    if dtype.kind in "iufcb":
        kind_and_bytes = _BY_CODE.get(dtype.str[1:])
        if kind_and_bytes is not None:
            return element(*kind_and_bytes, dtype.str[0])
    elif dtype.kind in "SUmM" or (dtype.kind == "V" and dtype.type.__module__ == "numpy"):
        if dtype.hasobject:
            raise Unsupported(
                f"type {dtype} holds Python objects, which only pickle could store",
                remedy="no option allows this; convert it to a numeric or fixed-width type first",
            )
        if dtype.itemsize == 0:
            raise Unsupported(
                f"type {dtype} has elements of 0 bytes, which nothing in a file could count",
                remedy="no option allows this; give the strings a width",
            )
        return Element("user", dtype.itemsize, "|", _descr(dtype))
    raise Unsupported(
        f"type {dtype} ({dtype.itemsize} bytes) has no faithful form in RA",
        remedy="no option allows this; cast it first, for instance with `--dtype float64`",
    )


def _descr(dtype: np.dtype[Any]) -> Any:
    """Return the NPY header description of a non-numeric dtype, with tuples for lists."""
    from numpy.lib.format import dtype_to_descr

    if dtype.metadata and dtype.names is None:  # notes of h5py, which are not part of the type
        return dtype.str
    try:
        descr = dtype_to_descr(dtype)
    except ValueError as error:
        raise Unsupported(
            f"structured type {dtype} has overlapping or unordered fields: {error}",
            remedy="no option allows this; reorder the fields first",
        ) from error
    return frozen(_flat(descr) if isinstance(descr, list) else descr)


def _flat(fields: list[Any]) -> list[Any]:
    """Return fields with arrays of arrays as one array each, which has the axes of both."""
    flat = []
    for name, declared, *shape in fields:
        base, dims = declared, tuple(shape[0]) if shape else ()
        while isinstance(base, tuple):
            base, inner = base
            dims += tuple(inner)
            if len(dims) > MAX_FIELD_AXES:
                raise Unsupported(
                    f"field '{name}' is an array of arrays of {len(dims)} axes or more",
                    expected=f"at most {MAX_FIELD_AXES}",
                )
        base = _flat(base) if isinstance(base, list) else base
        flat.append((name, base, dims) if dims else (name, base))
    return flat


def flattened(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same bytes in the type that `element_of` and `dtype_of` make of theirs.

    Only structures with arrays of arrays change (`_flat`). numpy's own conversion of these, value
    by value, gives other values.
    """
    if values.dtype.names is None or not _has_arrays_of_arrays(values.dtype):
        return values
    return values.view(dtype_of(element_of(values.dtype)))


def _has_arrays_of_arrays(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        base = dtype.subdtype[0]
        return base.subdtype is not None or _has_arrays_of_arrays(base)
    return any(_has_arrays_of_arrays(dtype[name]) for name in dtype.names or ())


def opaque_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that copies whole elements: void instead of a structure.

    numpy copies structures field by field and leaves the padding between them as it was.
    """
    import numpy as np

    return np.dtype((np.void, dtype.itemsize)) if dtype.names is not None else dtype


def opaque(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same memory as elements that are copied whole, padding included."""
    return values.view(opaque_dtype(values.dtype)) if values.dtype.names is not None else values


def frozen(value: Any) -> Any:
    """Return nested lists as tuples, so that an element can be compared and hashed."""
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def dtype_of(element: Element) -> np.dtype[Any]:
    """Return the numpy dtype that carries the element, byte order included.

    A ``user`` element without description is ``V{nbytes}``. bfloat16 needs the `ml_dtypes`
    package (`MissingDependency` names the install line); widths that numpy does not have are
    never handed out as elements (the RA reader describes them as ``user``).

    >>> dtype_of(element("complex", 8))
    dtype('complex64')

    Raises `MissingDependency` for bfloat16 without ml_dtypes; what numpy raises for a `descr`
    that it cannot read.
    """
    import numpy as np

    if (name := ml_name(element)) is not None:
        return ml_dtype(name).newbyteorder(">" if element.order == ">" else "<")
    if element.kind == "user":
        if element.descr is None:
            return np.dtype((np.void, element.nbytes))
        dtype: np.dtype[Any] = np.dtype(_thawed(element.descr))
        return dtype
    return np.dtype(element.order + _CODES[element.kind, element.nbytes])


def code_of(element: Element) -> Any:
    """Return the type in the notation of the NPY header: a string, or fields of a structure."""
    if element.kind == "user":
        descr = f"|V{element.nbytes}" if element.descr is None else element.descr
        return _listed(descr)
    return ml_name(element) or element.order + _CODES[element.kind, element.nbytes]


def _listed(descr: Any) -> Any:
    return [_listed(item) for item in descr] if isinstance(descr, tuple) else descr


def element_from(code: Any) -> Element:
    """Return the element that `code_of` described; lists in it must be frozen.

    Raises `Unsupported`, or what numpy raises on nonsense: TypeError, ValueError, SyntaxError.
    """
    if isinstance(code, str) and code in ML_DTYPES:
        return ML_DTYPES[code]
    simple = element_of_code(code) if isinstance(code, str) else None
    return simple or element_of(dtype_of(Element("user", 0, "|", code)))


def float8(name: str) -> Element:
    """Return the element of a float of one byte, by its name in ml_dtypes."""
    return ML_DTYPES[name]


def is_float8(element: Element) -> bool:
    """True for a float of one byte. Raises nothing."""
    return isinstance(element.descr, str) and element.descr in FLOAT8


def ml_name(element: Element) -> str | None:
    """Return the name in ml_dtypes of a type that numpy lacks, such as ``bfloat16``, or None.

    >>> ml_name(element("bfloat", 2)), ml_name(element("float", 2))
    ('bfloat16', None)

    Raises nothing.
    """
    descr = element.descr if isinstance(element.descr, str) else None
    return _ML_NAMES.get((element.kind, element.nbytes, descr))


def ml_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of this name; `MissingDependency` without the ml_dtypes package."""
    import numpy as np

    try:
        import ml_dtypes

        scalar = getattr(ml_dtypes, name)
    except (ImportError, AttributeError) as error:  # the latter: an older version has fewer
        raise MissingDependency(
            f"{name} elements need the ml_dtypes package",
            remedy="pip install 'raconvert[bfloat16]'",
        ) from error
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


def _thawed(descr: Any) -> Any:
    """Return a frozen description as an argument of numpy.dtype()."""
    from numpy.lib.format import descr_to_dtype

    if isinstance(descr, str):
        return descr
    return descr_to_dtype(_lists(descr))


def _lists(descr: Any) -> Any:
    """Return field tuples in a list, recursively (the NPY header's own notation)."""
    if isinstance(descr, str):
        return descr
    return [(field[0], _lists(field[1]), *field[2:]) for field in descr]


def type_name(element: Element) -> str:
    """Return the name people use: ``float32``, ``complex64``, ``bool``, ``U4``, ``V8``.

    >>> type_name(element("float", 4, ">")), type_name(element("bool", 1))
    ('float32 big-endian', 'bool')

    Raises nothing.
    """
    kind, nbytes, order, descr = element
    if kind == "user":
        if descr is None:
            return f"V{nbytes}"
        return descr.lstrip("<>|") if isinstance(descr, str) else "structured"
    if kind == "bool":
        return "bool"
    name = ml_name(element) or f"{kind}{8 * nbytes}"
    return name + (" big-endian" if order == ">" else "")


# What people read ------------------------------------------------------------------------------

_MOST_AXES = 64  # as many as NumPy takes


def few_lengths(lengths: Sequence[int], between: str) -> str:
    """Return lengths of axes as text; of more axes than NumPy takes only the first ones."""
    rest = [f"... {len(lengths)} in all"] if len(lengths) > _MOST_AXES else []
    return between.join([*map(str, lengths[:_MOST_AXES]), *rest])


def size(nbytes: int | None) -> str:
    """Return a size for people: ``47.0 MB``; None is a size that only reading will tell."""
    if nbytes is None:
        return "size known when it is read"
    value = float(nbytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{nbytes} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
