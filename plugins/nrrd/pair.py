"""Our own key/value pair, ``raconvert``: the record of what NRRD has no field for.

Its value is the text of a record (`raconvert.metadata.roundtrip`). `describes` there is the type
and the sizes of the file that it was written into: if they differ, another tool has changed the
array, and what depends on them (`was` and `axes`) is not used. `file` is the record of the bundle.
"""

from __future__ import annotations

from raconvert.arrays.dtypes import code_of
from raconvert.arrays.metadata import Space
from raconvert.errors import Corrupt
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Array, Bundle, Metadata, element

from .header import form_of
from .space import reframed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.files.limits import Limits

    from .header import Header

    Record = dict[str, Any]

NAMESPACE = "nrrd"
_POSITIONAL = ("was", "axes")  # these depend on type and sizes
_REMEDY = "read the numbers as they are with `--in-opt restore=no`"


def facts_of(type: str, sizes: Any) -> Record:
    """Return the facts of a pair: type and sizes, in the words of the header."""
    return {"type": type, "sizes": list(sizes)}


def taken(
    header: Header, meta: Metadata, notes: list[str], limits: Limits, *, restore: bool
) -> tuple[Metadata, Record]:
    """Take our own key/value pair out of the metadata; return both, the pair as a record.

    `was` and `axes` are left out of it without `restore`, and if the array is another one.
    """
    text = meta.attributes.get(KEY)
    if text is None:
        return meta, {}
    try:
        record = roundtrip.record_in(text, limits, most=limits.record_bytes)
        roundtrip.check_form(record, "")
        roundtrip.of_file(_of_file(record), "")
    except (ValueError, Corrupt) as error:
        why = error.what if isinstance(error, Corrupt) else error
        notes.append(f"the key/value pair '{KEY}' is not as raconvert writes it ({why})")
        return meta, {}
    attributes = {key: value for key, value in meta.attributes.items() if key != KEY}
    meta = meta.replace(attributes=attributes)
    if record.pop("describes", None) != facts_of(header.fields["type"], header.fields["sizes"]):
        stale = [name for name in _POSITIONAL if record.pop(name, None)]
        if stale:
            notes.append(
                f"the key/value pair '{KEY}' is about another array; not used: {', '.join(stale)}"
            )
    return meta, {k: v for k, v in record.items() if restore or k not in _POSITIONAL}


def _of_file(record: Record) -> Record:
    """Return the record of the file in a record. Raises `ValueError` for a wrong form."""
    fields = record.get("file", {})
    if not isinstance(fields, dict) or not set(fields) <= {"attributes", "groups", "formats"}:
        raise ValueError("its field 'file' has a wrong form")
    return fields


def restore(
    stored: Array, record: Record, bundle: Bundle, complex: str, path: str, limits: Limits
) -> Array:
    """Return the array as it was before it was written, by the record and the option `complex`."""
    was = dict(record.pop("was", {}))
    axes = record.pop("axes", [])
    roundtrip.apply_to_file(record.pop("file", {}), bundle, path)
    of_numbers = isinstance(was.get("type"), str) and was["type"].startswith("<c")
    if of_numbers and complex == "pairs":
        del was["type"]
        axes = [{}, *axes] if axes else []
    if complex == "numbers" or (complex == "auto" and of_numbers):
        if _have_parts(stored):
            was["type"] = code_of(element("complex", 2 * stored.element.nbytes))
        else:
            was.pop("type", None)
            bundle.notes.append(
                "no complex numbers found: the fastest axis is not two floats of kind complex"
            )
    array = _restored(stored, was, bundle.notes, path, limits)
    if array.element.kind == "complex" and (parts := _axis_of_parts(stored)):
        array.meta = array.meta.with_format(NAMESPACE, complex_axis=parts)
    if len(axes) == array.ndim:
        record["axes"] = axes
    if array.meta.space is not None:  # the position is that of the header, only its frame recorded
        space = record.pop("space", {})
        frame = space.get("frame") if Space.takes(space) else None
        framed = reframed(array.ra_axes, array.meta.space, frame) if frame else None
        if framed is not None:
            listed = framed[0] if array.index_order == "F" else framed[0][::-1]
            array.meta = array.meta.replace(axes=listed, space=framed[1])
    return roundtrip.apply(record, array, path, limits)


def _restored(stored: Array, was: Record, notes: list[str], path: str, limits: Limits) -> Array:
    """Restore the original array, if writing it would give the form in the file."""
    try:
        array = roundtrip.restored(stored, was, path, limits, bools=(0, 1), remedy=_REMEDY)
        if form_of(array)[:3] == form_of(stored)[:3]:
            return array
    except Corrupt:
        pass
    notes.append(f"the pair '{KEY}' describes other elements than the file has; not used")
    return stored


def _have_parts(stored: Array) -> bool:
    """True if the fastest axis is one of the two parts of complex numbers."""
    kind = stored.ra_axes[0].kind if stored.ra_axes else None
    return stored.element.kind == "float" and stored.dims[0] == 2 and kind == "complex"


def _axis_of_parts(stored: Array) -> Record:
    """Return the facts that restore the axis of the parts: all but its kind."""
    entries = stored.meta.formats.get(NAMESPACE, {}).get("axes")
    entry = entries[-1] if entries else {}  # in C order, the fastest last
    fields = {key: value for key, value in stored.ra_axes[0].to_dict().items() if key != "kind"}
    if entry.get("direction") is not None:  # it implies these
        fields = {key: fields[key] for key in fields if key == "name"}
    fields.pop("origin", None)
    return {**entry, **fields}
