"""The planned file: options, chunks, names and types, and the fits of a bundle."""

from __future__ import annotations

from collections import namedtuple
from math import prod

from raconvert.arrays.dtypes import little
from raconvert.arrays.interop.conventions import renamed, without_coordinates
from raconvert.arrays.interop.times import times_of
from raconvert.errors import UsageError
from raconvert.files.limits import DEFAULT
from raconvert.files.source import DEFAULT_MAX_MEMORY
from raconvert.plugin import equivalent, refused, stack_fits

from .datatypes import is_text, is_variable, kind_of, without_bools
from .descriptions import MAX_TYPE_BYTES, is_utf8, type_of, type_of_element, utf8_type
from .files import PROBLEMS, reason_of
from .paddings import endings_of
from .scales import unshared
from .tables import MAX_LENGTH, MAX_RANK, NAMESPACE
from .walk import alias_links, link_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from h5py import h5t

    from raconvert.plugin import Array, Bundle, Fit

CHUNK_BYTES = 1 << 20
DEFAULT_LEVEL = 4
MAX_CHUNK_BYTES = (1 << 32) - 1

# The options in terms of HDF5: filter is None, "gzip" or "lzf"; chunk is "auto", None or a shape;
# strings is "auto" (of variable length where they once were) or "fixed".
Options = namedtuple("Options", "filter level chunk shuffle strings")


def options_of(compress: str, chunks: str, shuffle: bool, strings: str) -> Options:
    """The options in terms of HDF5. Raises `UsageError` if one of them is not understood."""
    name, _, level = compress.partition(":")
    if name not in ("none", "gzip", "lzf") or (level and name != "gzip"):
        raise UsageError(f"option compress={compress} is not understood",
                         expected="none, gzip, gzip:0 to gzip:9, or lzf")  # fmt: skip
    if level and not (level.isascii() and level.isdecimal() and int(level) <= 9):
        raise UsageError(f"level of option compress={compress} is out of range", expected="0 to 9")
    chunk: Any = {"auto": "auto", "none": None}.get(chunks, "")
    if chunk == "":
        parts = chunks.split(",")
        if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
            raise UsageError(f"option chunks={chunks} is not understood",
                             expected="auto, none, or a length for each axis as 64,64")  # fmt: skip
        chunk = tuple(map(int, parts))
    if chunk is None and name != "none":
        raise UsageError(f"compress={compress} needs chunks", expected="chunks=auto, or a shape")
    compressor = None if name == "none" else name
    return Options(compressor, int(level) if level else DEFAULT_LEVEL, chunk, shuffle, strings)


def chunk_of(
    shape: tuple[int, ...], item: int, options: Options, max_memory: int = DEFAULT_MAX_MEMORY
) -> tuple[int, ...] | None:
    """The shape of the chunks of a dataset; None if it is stored in one piece.

    By default chunks are whole rows of about 1 MiB, so that the file is written and read front to
    back; they are smaller if `max_memory` asks for it, since a row of chunks is in memory twice.
    Lengths for axes that belong to the type of the elements are ignored.
    """
    if not shape or 0 in shape:
        return None
    if isinstance(options.chunk, tuple):
        chunk = tuple(min(*pair) for pair in zip(options.chunk, shape, strict=False))
        if prod(chunk) * item > MAX_CHUNK_BYTES:
            raise UsageError("chunks are larger than HDF5 allows", expected="less than 4 GiB")
        return chunk
    if options.filter is None:
        return None
    most = max(1 << 12, min(CHUNK_BYTES, max_memory // 4))
    chunk_list = list(shape)
    for axis, length in enumerate(shape):
        inner = prod(shape[axis + 1 :]) * item
        chunk_list[axis] = max(1, min(length, most // inner))
        if chunk_list[axis] > 1 or inner < most:
            break
    return tuple(chunk_list)


NAMED = 5  # further names that a reason lists

# The names and types in a file: the link of each array; the targets of further names, by name, and
# further names for which no link can be made; the type of each array, or the error of making it.
Structure = namedtuple("Structure", "links aliases unlinked types")


def structure_of(bundle: Bundle, options: Options) -> Structure:
    """The names and types that the arrays of a bundle get."""
    space = bundle.formats.get(NAMESPACE)
    aliases, unlinked = alias_links(bundle, space if isinstance(space, dict) else {})
    types: list[Any] = []
    for array in bundle.arrays:
        try:
            types.append(_file_type(array, options))
        except PROBLEMS as error:
            types.append(error)
    return Structure(link_names(bundle.names), aliases, unlinked, types)


def fits_of(bundle: Bundle, options: Options, structure: Structure) -> list[Fit]:
    """List the fits of a bundle: what HDF5 changes in form, or cannot hold."""
    fits: list[Fit] = []
    names: set[str] = set()
    links = dict(zip(bundle.names, structure.links, strict=True))
    for name, reason in renamed(bundle.arrays, links):
        fits.append(equivalent(name, "metadata", reason))
    for array, link, tid in zip(bundle.arrays, structure.links, structure.types, strict=True):
        if array.name in names:
            fits.append(refused(array.name, "names", "the name is used twice"))
        elif link != array.name:
            reason = f"no link can have this name; it is '{link}', and the name is kept beside it"
            fits.append(equivalent(array.name, "names", reason))
        names.add(array.name)
        fits += _array_fits(array, tid, options)
    for array, axis in unshared(bundle, structure.links):
        reason = (
            f"its axis '{axis}' is not the dimension '{axis}', which says something else: other "
            "programs see another name, the axis itself is kept"
        )
        fits.append(equivalent(array.name, "metadata", reason))
    unlinked = structure.unlinked
    if unlinked:
        names_listed = [
            f"'{alias}' of '{bundle.aliases[alias] or '/'}'" for alias in unlinked[:NAMED]
        ]
        more = ", …" * (len(unlinked) > NAMED)
        reason = f"no link can be made for further names: {', '.join(names_listed)}{more}"
        fits.append(equivalent("", "metadata", reason))
    return fits


def _array_fits(array: Array, tid: Any, options: Options) -> Iterator[Fit]:
    name = array.name
    if array.ndim > MAX_RANK:
        reason = f"{array.ndim} axes; HDF5 takes at most {MAX_RANK}"
        yield refused(name, "shape", reason)
    if max(array.dims, default=0) > MAX_LENGTH:
        yield refused(name, "shape", f"an axis above {MAX_LENGTH}")
    if isinstance(options.chunk, tuple) and array.ndim and len(options.chunk) != array.ndim:
        reason = f"chunks of {len(options.chunk)} axes do not fit its {array.ndim}"
        yield refused(name, "storage", reason)
    yield from _type_fits(array, tid)
    oblique = without_coordinates(array.meta)
    if oblique is not None:
        yield equivalent(name, "metadata", oblique)
    yield from stack_fits(array)


def _type_fits(array: Array, tid: Any) -> Iterator[Fit]:
    """Yield the fits of a type that is not a number; `tid` is its HDF5 type or an error."""
    element, name = array.element, array.name
    if element.kind != "user":
        return
    if not 0 < element.nbytes < 1 << 31:
        yield refused(name, "type", f"elements of {element.nbytes} bytes; HDF5 takes 1 to 2**31-1")
        return
    try:
        if isinstance(tid, Exception):
            raise tid  # handled as those of `encode`
        nbytes = len(tid.encode())
    except PROBLEMS as error:
        yield refused(name, "type", f"its type has no form in HDF5 ({reason_of(error)})")
        return
    if nbytes > MAX_TYPE_BYTES:
        yield refused(name, "type", f"its description needs {nbytes} bytes, HDF5 takes 64 KiB")
    elif is_text(element):
        reason = "text becomes strings in UTF-8; xarray shows bytes of a .h5, text of a .nc"
        yield equivalent(name, "type", reason)
    elif times_of(array) is not None:
        reason = (
            "dates and durations become integers with units of CF in a .nc, elsewhere opaque bytes "
            "with h5py's tag, which other tools do not read"
        )
        yield equivalent(name, "type", reason)
    elif _has_tags(element.descr):
        reason = (
            "dates and texts become opaque bytes with h5py's tag, which other tools do not read"
        )
        yield equivalent(name, "type", reason)


def _has_tags(descr: Any) -> bool:
    """True if a type, or a field of it, is stored as opaque bytes with h5py's tag."""
    if isinstance(descr, str):
        return descr[1:2] in "mMU"
    return any(_has_tags(field[1]) for field in descr or ())


def _file_type(array: Array, options: Options) -> h5t.TypeID:
    """The type in which an array is written: the remembered one, if that still fits the array."""
    element = little(array.element)
    description = array.meta.formats.get(NAMESPACE, {}).get("type")
    if description is not None:
        try:
            tid = type_of(description, None if element.kind == "user" else "<")
            fixed = options.strings == "fixed" and (is_variable(tid) or endings_of(tid))
            if _is_type_of(tid, array) and not fixed:
                return tid
        except PROBLEMS:  # the record was edited, or written by another plugin
            pass
    return utf8_type(element) if is_text(element) or is_utf8(array) else type_of_element(element)


def _is_type_of(tid: h5t.TypeID, array: Array) -> bool:
    """True if elements can be written in this type as they are, or as variable strings."""
    kind = kind_of(tid, DEFAULT)
    if kind.dims and array.dims[: len(kind.dims)] != kind.dims[::-1]:
        return False
    element = little(array.element)
    if kind.element is None:
        return not kind.dims and str(element.descr).startswith("|S")
    if element.kind == "user" and element.descr is None:  # bytes without a type
        element = element._replace(descr=f"|V{element.nbytes}")
    # Bools with bytes other than 0 and 1 are integers.
    elements = (kind.element, without_bools(kind).element)
    return kind.memory is None and element in elements
