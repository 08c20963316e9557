"""Plan of a hierarchy: names, types and chunks, and the fits of a bundle."""

from __future__ import annotations

from raconvert.arrays.dtypes import (
    MAX_SPAN,
    element_of_code,
    is_float8,
    ml_name,
    spanned,
    type_name,
)
from raconvert.arrays.interop.conventions import renamed, without_coordinates
from raconvert.plugin import (
    Array,
    Bundle,
    Element,
    Fit,
    Plan,
    equivalent,
    refused,
    stack_fits,
)

from . import metadata
from .form import MAX_CHUNK_BYTES, Form, Options, chunk_of, keys_of, options_of
from .metadata import apart_of, scales_of
from .tables import DATE_TYPES, MAX_RANK, NAMES, TEXT, TEXT_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.folder_target import Folder

MAX_PATH_BYTES = 2048  # systems take 4096, the folder of the hierarchy included


def plan(
    bundle: Bundle,
    *,
    format: str = "3",
    chunks: str = "auto",
    shards: str = "none",
    compress: str = "zstd",
    checksum: bool = False,
    endian: str = "auto",
    strings: str = "auto",
) -> Plan:
    """Plan a group of arrays. Raises `UsageError` for options that are not understood."""
    options = options_of(format, chunks, shards, compress, endian, strings, checksum=checksum)
    keys, groups = keys_of(bundle)
    forms = [form_of(array, key, options) for array, key in zip(bundle.arrays, keys, strict=True)]
    described = any(array.described for array in bundle.arrays)
    apart = apart_of(bundle, keys) if described else {}
    fits = [*fits_of(bundle, forms, options), *apart_fits(apart, "which has another length")]

    def write(target: Folder) -> None:
        from .writer import Writer

        scales = [
            (whole_form(array, key, options), name, array)
            for key, name, array in scales_of(bundle, keys, groups)
        ]
        Writer(bundle, target, options, forms, groups, apart).run(scales)

    return Plan(fits, write, names=bundle.names)


def form_of(array: Array, key: str, options: Options) -> Form:
    """Return the form in which an array is stored under a key: type, byte order, chunks."""
    shape, item = array.dims[::-1], max(1, array.element.nbytes)
    data_type = data_type_of(array, options)
    order = order_of(array.element, options.endian)
    fits = len(shape) <= MAX_RANK and all(
        not isinstance(given, tuple) or len(given) == len(shape)
        for given in (options.chunks, options.shards)
    )
    if not fits:
        return Form(key, data_type, order, shape, shape)
    chunk = chunk_of(shape, item, options)
    return Form(key, data_type, order, chunk, options.shards or chunk)


def whole_form(array: Array, key: str, options: Options) -> Form:
    """The form of an array that is stored in one chunk."""
    order = order_of(array.element, options.endian)
    shape = array.dims[::-1]
    return Form(key, data_type_of(array, options), order, shape, shape)


def data_type_of(array: Array, options: Options) -> Any:
    """The data type of an array; bytes in UTF-8 become variable text. None if Zarr has none."""
    if options.strings == "auto" and is_utf8(array):
        return TEXT if options.version == 3 else "|O"
    return type_of(array.element, options.version)


def is_utf8(array: Array) -> bool:
    """True for an array of bytes (S) that are text in UTF-8."""
    descr = array.element.descr
    letter = descr[1:2] if isinstance(descr, str) else ""
    return array.element.kind == "user" and letter == "S" and array.meta.encoding == "utf-8"


def order_of(element: Element, endian: str) -> str:
    """The byte order in which elements are written; | if they have none."""
    if element.kind == "user":
        descr = element.descr
        return descr[0] if isinstance(descr, str) and descr[0] in "<>" else "|"
    if element.order == "|":
        return "|"
    return {"little": "<", "big": ">"}.get(endian, element.order)


def type_of(element: Element, version: int) -> Any:
    """The data type (in version 2, a type of NumPy); None if Zarr has none."""
    if version == 2:
        return _type_of_2(element)
    if element.kind != "user":
        return NAMES.get((element.kind, element.nbytes))
    if is_float8(element):
        return element.descr
    descr: Any = f"|V{element.nbytes}" if element.descr is None else element.descr
    if not isinstance(descr, str):
        return _structure_of_3(descr)
    letter = descr[1]
    if letter in "SV":
        name = "null_terminated_bytes" if letter == "S" else "raw_bytes"
        return {"name": name, "configuration": {"length_bytes": element.nbytes}}
    if letter == "U":
        return {"name": TEXT_TYPE, "configuration": {"length_bytes": element.nbytes}}
    name = next(name for name, code in DATE_TYPES.items() if code == letter)
    unit = descr[3:].strip("[]") or "generic"
    factor = unit[: len(unit) - len(unit.lstrip("0123456789"))]
    settings = {"unit": unit[len(factor) :], "scale_factor": int(factor or 1)}
    return {"name": name, "configuration": settings}


def _structure_of_3(descr: Any) -> Any:
    """The data type of a structure of plain little-endian fields; None for other structures."""
    fields = []
    for field in descr:
        code = field[1] if len(field) == 2 else None
        inner = element_of_code(code) if isinstance(code, str) else None
        if not field[0] or inner is None or str(code)[0] == ">":
            return None
        fields.append([field[0], type_of(inner, 3)])
    return {"name": "structured", "configuration": {"fields": fields}}


def _type_of_2(element: Element) -> Any:
    from raconvert.arrays.dtypes import code_of

    if ml_name(element) or _has_padding(element.descr):
        return None
    return _lists(code_of(element))


def _lists(code: Any) -> Any:
    """Turn nested tuples of a type code into lists, as JSON has them."""
    return [_lists(part) for part in code] if isinstance(code, (tuple, list)) else code


def _has_padding(descr: Any) -> bool:
    """True for a structure with bytes between its fields, which have no name."""
    if isinstance(descr, str) or descr is None:
        return False
    return any(not field[0] or _has_padding(field[1]) for field in descr)


# Fits ---------------------------------------------------------------------------------------------


def fits_of(bundle: Bundle, forms: list[Form], options: Options) -> Iterator[Fit]:
    """Yield a `Fit` for each change of the arrays and each refusal. Raises nothing."""
    seen: set[str] = set()
    keys = {array.name: form.key for array, form in zip(bundle.arrays, forms, strict=True)}
    for name, reason in renamed(bundle.arrays, keys):
        yield equivalent(name, "metadata", reason)
    for array, form in zip(bundle.arrays, forms, strict=True):
        name = array.name
        try:
            name.encode()
        except UnicodeEncodeError:
            yield refused(name, "names", "the name is not valid text")
            continue
        if name in seen:
            yield refused(name, "names", "the name is used twice")
        elif len(form.key.encode()) > MAX_PATH_BYTES:
            yield refused(name[:80], "names", f"its folder would be above {MAX_PATH_BYTES} bytes")
        elif form.key != name:
            reason = f"no folder can have this name; it is '{form.key}', and the name is kept in it"
            yield equivalent(name, "names", reason)
        seen.add(name)
        yield from _array_fits(array, form, options)


def apart_fits(apart: dict[str, set[str]], why: str) -> Iterator[Fit]:
    """Yield a fit for each axis that shares no dimension; `why` is a clause about the dimension."""
    for array, names in apart.items():
        for name in sorted(names):
            reason = (
                f"its axis '{name}' is not the dimension '{name}', {why}: other programs see "
                "another name, the axis itself is kept"
            )
            yield equivalent(array, "metadata", reason)


def _array_fits(array: Array, form: Form, options: Options) -> Iterator[Fit]:
    name, shape = array.name, array.dims[::-1]
    width = max(1, array.element.nbytes)
    if len(shape) > MAX_RANK:
        yield refused(name, "shape", f"{len(shape)} axes; at most {MAX_RANK} are read again")
        return
    if max(shape, default=0) >= 1 << 63 or spanned(shape, width) > MAX_SPAN:
        yield refused(name, "shape", "more than 2**63 bytes")
        return
    if form.data_type is None:
        yield _no_type(array, options)
    for what, given in (("chunks", options.chunks), ("shards", options.shards)):
        if isinstance(given, tuple) and len(given) != len(shape):
            reason = f"{what} of {len(given)} axes do not fit its {len(shape)}"
            yield refused(name, "storage", reason)
            return
    if options.shards and any(a % b for a, b in zip(form.unit, form.chunk, strict=True)):
        yield refused(name, "storage", f"shards {form.unit} are not multiples of its chunks")
    if spanned(form.chunk, width) > MAX_CHUNK_BYTES:
        yield refused(name, "storage", "a chunk of 2 GiB or more; auto makes smaller ones")
    yield from _metadata_fits(array)


def _metadata_fits(array: Array) -> Iterator[Fit]:
    if not array.described:
        return
    name = array.name
    oblique = without_coordinates(array.meta)
    if oblique is not None:
        yield equivalent(name, "metadata", oblique)
    hidden = metadata.unheld(array)
    if hidden:
        shown = ", ".join(f"'{key[:80]}'" for key in hidden[:5]) + " …" * (len(hidden) > 5)
        reason = f"JSON cannot hold the attributes {shown}: only raconvert reads them"
        yield equivalent(name, "metadata", reason)
    yield from stack_fits(array)


def _no_type(array: Array, options: Options) -> Fit:
    """The refusal of an array for whose elements Zarr has no data type."""
    element, name = array.element, array.name
    if ml_name(element) is not None:
        reason = f"version 2 has no {type_name(element)}; version 3 has (`--out-opt format=3`)"
        return refused(name, "type", reason)
    if options.version == 2 or _has_padding(element.descr):
        return refused(name, "type", "a structure with padding between its fields")
    reason = (
        "version 3 has only structures of plain little-endian fields; 2 has more "
        "(`--out-opt format=2`)"
    )
    return refused(name, "type", reason)
