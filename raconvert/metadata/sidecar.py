"""The metadata sidecar: ``TARGET.yaml`` beside a file, or the same text as an RA trailer.

It begins with `describes`, what the file was when the sidecar was written: for RA the header's
type, dimensions, size and the CRC-32 of the first and last 64 KiB of the data and of samples
between; for other formats the size of the file and the same checksums of the whole file. A
sidecar that does not describe the file beside it is an error, never silently used.

After that: `index_order` (F; C only where the sidecar was asked for), `dtype` (what is inside user
elements, in the notation of the NPY header), and the fields of `Metadata`. Fields that differ
between the items of a stack lie in ``TARGET.items.jsonl``, one JSON object per line, whose size and
CRC-32 stand under `items_file`.

Beside files that are not .ra it is `complete`: it takes the place of the metadata in the file, and
`was` says what the array was before the format changed its form (`raconvert.metadata.roundtrip`).
Beside containers the fields of each array stand under `arrays`, by name.
"""

from __future__ import annotations

import os

from raconvert.arrays.array import Array
from raconvert.arrays.dtypes import Element, code_of, dtype_of, frozen
from raconvert.arrays.metadata import Axis, Metadata
from raconvert.errors import Corrupt, RaconvertError
from raconvert.files.extent import Extent
from raconvert.files.places import check_target
from raconvert.files.seal import checksum
from raconvert.files.source import Source
from raconvert.metadata.yaml import MAX_BYTES, dump, parse
from raconvert.ra.namespace import NAME as RA
from raconvert.ra.namespace import drop_trailer, trailer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUFFIX = ".yaml"
MARK = b"describes:"  # how every sidecar begins; another YAML file of that name is none of ours
ITEMS_SUFFIX = ".items.jsonl"
TRAILER_MARK = b"# raconvert metadata\n"
ENDS_BYTES = 64 << 10  # how much of either end of the data the checksums cover


def path_of(path: str) -> str:
    """Return the path of the sidecar of a file."""
    return path + SUFFIX


def is_ours(path: str) -> bool:
    """True if a file exists, is not a link, and is a sidecar."""
    return os.path.isfile(path) and not os.path.islink(path) and _is_marked(path)


def _is_marked(path: str) -> bool:
    return Source(path).head.startswith(MARK)


def left_over(path: str, *, overwrite: bool) -> list[str]:
    """Return the metadata files of the file that was at a path: they go, or are replaced, with it.

    The per-item metadata is one of them only if the sidecar says so. A link in the place of a
    sidecar would be honoured, and is refused (`TargetExists`); with `overwrite` the link itself
    goes, never what it leads to.
    """
    beside = path_of(path)
    if not os.path.lexists(beside) or not os.path.isfile(beside) or not _is_marked(beside):
        return []
    if os.path.islink(beside):
        check_target(beside, overwrite=overwrite)
        return [beside]
    items = items_path_of(path)
    return [beside, items] if os.path.lexists(items) and _has_items(beside, items) else [beside]


def _has_items(beside: str, items: str) -> bool:
    """True if a sidecar says that the per-item metadata beside it is of the same file."""
    if os.path.islink(items) or not os.path.isfile(items):
        return False
    source = Source(beside)
    if source.size > MAX_BYTES or b"\nitems:" not in (text := source.read_at(0, source.size)):
        return False
    try:
        said = parse(text, beside).get("items_file")
    except RaconvertError:
        return False
    return not isinstance(said, dict) or said.get("size") == os.path.getsize(items)


def items_path_of(path: str) -> str:
    """Return the path of the per-item metadata of a stack."""
    return path + ITEMS_SUFFIX


def text_of(fields: dict[str, Any], describes: dict[str, Any] | None = None) -> bytes:
    """Return the text of a sidecar (behind `describes`), or of a trailer."""
    return dump({"describes": describes, **fields} if describes else fields)


# What to write ---------------------------------------------------------------------------------


def fields_of(array: Array, *, beside_ra: bool = False) -> dict[str, Any]:
    """The metadata that a file leaves to its sidecar; empty if there is none.

    RA itself holds type and dimensions, its own namespace and a trailer; the rest is kept here.
    Beside other formats everything is kept, so that it can take the place of what they say.
    """
    fields: dict[str, Any] = {}
    column_major = array.index_order == "F" and not array.row_major and array.ndim > 1
    if beside_ra and column_major:
        fields["index_order"] = "F"
    if beside_ra and array.element.kind == "user" and not _is_void(array.element):
        fields["dtype"] = code_of(array.element)
    meta = array.meta.to_dict()
    formats = {
        name: _without_extents(space)
        for name, space in meta.get("formats", {}).items()
        if not (beside_ra and name == RA)
    }
    meta.pop("formats", None)
    fields.update(meta)
    if any(formats.values()):
        fields["formats"] = {name: space for name, space in formats.items() if space}
    if array.meta.items is not None:
        fields["items"] = True
    return fields


def _is_void(element: Element) -> bool:
    return element.descr is None or element.descr == f"|V{element.nbytes}"


def _without_extents(space: dict[str, Any]) -> dict[str, Any]:
    """Leave out bytes that are only referred to in their own file (RA trailers)."""
    return {key: value for key, value in space.items() if not isinstance(value, Extent)}


def describe(source: Source, *, is_ra: bool) -> dict[str, Any]:
    """The fingerprint of a file: see the module's docstring."""
    if is_ra:
        from raconvert.ra.header import data_offset
        from raconvert.ra.plugin import read_header

        header = read_header(source, unknown_flags=True)
        start = data_offset(len(header.dims))
        stop = min(start + header.size, source.size)
        found = {
            "eltype": header.eltype,
            "elbyte": header.elbyte,
            "dims": list(header.dims),
            "size": header.size,
        }
    else:
        start, stop = 0, source.size
        found = {"size": source.size}
    from zlib import crc32

    first = source.read_at(start, min(ENDS_BYTES, stop - start))
    last_start = max(start, stop - ENDS_BYTES)
    last = source.read_at(last_start, stop - last_start)
    found["crc32_first"] = f"{crc32(first):08x}"
    found["crc32_last"] = f"{crc32(last):08x}"
    if stop - start > 2 * ENDS_BYTES:
        found["crc32_samples"] = checksum(source, start, stop)
    return found


# What to read ----------------------------------------------------------------------------------


def load(source: Source, *, is_ra: bool) -> dict[str, Any] | None:
    """Return the fields of the sidecar beside a file, or None; a mismatch is `Corrupt`."""
    path = path_of(source.path)
    return load_from(source.named(path), source, is_ra=is_ra) if os.path.exists(path) else None


def load_from(beside: Source, source: Source, *, is_ra: bool) -> dict[str, Any] | None:
    """Return the fields of a sidecar, or None if it is none; it must describe `source`."""
    path = beside.path
    if beside.size > MAX_BYTES:
        raise Corrupt(
            "metadata sidecar is too large",
            path=path,
            expected=f"at most {MAX_BYTES} bytes",
            got=beside.size,
            remedy="read without it: --meta ignore",
        )
    if not beside.head.startswith(MARK):
        return None
    fields = parse(beside.read_at(0, beside.size), path)
    promised = fields.pop("describes", None)
    promised = promised if isinstance(promised, dict) else {}
    found = describe(source, is_ra=is_ra)
    if "crc32_samples" not in promised:  # of an older version
        found.pop("crc32_samples", None)
    odd = [name for name in found if promised.get(name) != found[name]]
    if odd:
        raise Corrupt(
            f"metadata sidecar '{path}' describes another file: {odd[0]} differs",
            path=source.path,
            expected=f"{odd[0]} {promised.get(odd[0])}",
            got=f"{found[odd[0]]}",
            remedy="read without it: --meta ignore; or remove the sidecar if it is left over",
        )
    return fields


# field -> type that it must have
_TYPES = {
    "index_order": str,
    "description": str,
    "units": str,
    "encoding": str,
    "axes": list,
    "attributes": dict,
    "formats": dict,
}


def apply(fields: dict[str, Any], array: Array, path: str = "", *, complete: bool = False) -> None:
    """Give an array what its sidecar says; wrong types or a contradiction raise `Corrupt`.

    `complete`: it takes the place of the metadata that the file itself has.
    """
    _check_form(fields, array, path)
    order = fields.get("index_order", "C")
    if order not in ("C", "F"):
        raise Corrupt(
            "metadata has an unknown index order", path=path, expected="C or F", got=order
        )
    if "index_order" in fields:
        array.index_order = order
    if "dtype" in fields:
        array.element = _described(array.element, frozen(fields["dtype"]), path)
    stored = Metadata.from_dict(fields)
    if complete:
        array.meta = stored
        return
    meta = array.meta
    meta.description = stored.description or meta.description
    meta.units = stored.units or meta.units
    meta.encoding = stored.encoding or meta.encoding
    meta.axes = stored.axes or meta.axes
    meta.attributes = {**meta.attributes, **stored.attributes}
    for name, space in stored.formats.items():
        meta.formats[name] = {**meta.formats.get(name, {}), **space}


def _check_form(fields: dict[str, Any], array: Array, path: str) -> None:
    """Refuse fields of the wrong type, and axes that are not those of the array."""
    for name, kind in _TYPES.items():
        if name in fields and not isinstance(fields[name], kind):
            raise Corrupt(
                f"metadata field '{name}' has the wrong form",
                path=path,
                expected=kind.__name__,
                got=type(fields[name]).__name__,
            )
    for part in ("axes", "formats"):
        values = fields.get(part, [])
        values = values.values() if isinstance(values, dict) else values
        if not all(isinstance(value, dict) for value in values):
            raise Corrupt(f"metadata field '{part}' has the wrong form", path=path)
    if "axes" in fields and len(fields["axes"]) != array.ndim:
        raise Corrupt(
            "metadata describes another number of axes",
            path=path,
            expected=array.ndim,
            got=len(fields["axes"]),
        )
    for axis in fields.get("axes", []):
        _check_axis(axis, path)
    if not all(
        isinstance(name, str)
        for name in (*fields.get("attributes", ()), *fields.get("formats", ()))
    ):
        raise Corrupt("metadata has a name that is not text", path=path)


def _check_axis(axis: dict[str, Any], path: str) -> None:
    for name in Axis.FIELDS:
        if name in axis and not Axis.takes(name, axis[name]):
            raise Corrupt(
                f"metadata field '{name}' of an axis has the wrong form",
                path=path,
                got=f"{type(axis[name]).__name__}",
            )


def _described(element: Element, descr: Any, path: str) -> Element:
    """Return a user element with its description, checked against its width."""
    described = Element("user", element.nbytes, "|", descr)
    try:
        width = dtype_of(described).itemsize
        objects = dtype_of(described).hasobject
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RaconvertError) as error:
        raise Corrupt(f"metadata has an unreadable dtype: {_short(descr)}", path=path) from error
    if element.kind != "user" or width != element.nbytes or objects:
        raise Corrupt(
            "metadata describes other elements than the file holds",
            path=path,
            expected=f"{element.nbytes} bytes each",
            got=f"{_short(descr)} ({width} bytes)",
        )
    return described


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def read_trailer(array: Array, source: Source) -> None:
    """Take over the metadata in an RA trailer that raconvert wrote; any other trailer stays."""
    trailer = trailer_of(array.meta)
    if not isinstance(trailer, Extent):
        return
    if source.read_at(trailer.offset, len(TRAILER_MARK)) != TRAILER_MARK:
        return
    if trailer.nbytes > MAX_BYTES:
        raise Corrupt(
            "metadata trailer is too large",
            path=source.path,
            where=f"byte {trailer.offset}",
            expected=f"at most {MAX_BYTES} bytes",
            got=trailer.nbytes,
            remedy="read without it: --meta ignore",
        )
    drop_trailer(array.meta)
    text = source.read_exact(trailer.offset, trailer.nbytes, "the YAML trailer")
    apply(parse(text, source.path), array, source.path)
