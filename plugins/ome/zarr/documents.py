"""The attributes of OME for each group of a hierarchy, and the arrays beside them."""

from __future__ import annotations

from raconvert.declared import Record
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip
from raconvert.plugin import Array, Axis, Bundle, Metadata

from ..axes import NAMESPACE
from ..record import record_of
from .metadata import LAYOUT, MARK, OME, Level, multiscale_of, multiscales, plate_of, well_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]

LABELS = "labels"


class Image(Record):
    """An image to write: its group (empty: the root), and the letters of its axes."""

    array: Array
    group: str
    letters: str


def documents_of(
    bundle: Bundle, images: list[Image], levels: list[list[Level]], version: str, how: str
) -> dict[str, Document]:
    """The attributes of OME for the root and each group, by their paths."""
    documents: dict[str, Document] = {}
    for image, own_levels in zip(images, levels, strict=True):
        name = image.array.name
        document = multiscales(image.array, image.letters, own_levels, name, version, how)
        as_read = multiscale_of(version, document, name, DEFAULT).metadata(0)
        record = record_of(image.array, as_read, whole=False)
        documents[image.group] = wrapped(document, version)
        if record:
            documents[image.group][MARK] = roundtrip.text_of(record)
    space = bundle.formats.get(NAMESPACE)
    recorded = space.get("plate") if isinstance(space, dict) else None
    plate = plate_of([image.group for image in images], recorded, version)
    if plate is not None:
        documents[""] = wrapped({"plate": plate}, version)
        for image in images:
            row, column, field = well_path(image.group) or ("", "", "")
            well = documents.setdefault(f"{row}/{column}", {"fields": []})
            well["fields"].append(field)
        for path, well in documents.items():
            if "fields" in well:
                listed: Document = {"images": [{"path": field} for field in well["fields"]]}
                listed |= {"version": version} if version == "0.4" else {}
                documents[path] = wrapped({"well": listed}, version)
    elif "" not in documents:
        documents[""] = wrapped({LAYOUT: 3}, version)
        series = {"series": [image.group for image in images]}
        documents[OME.upper()] = wrapped(series, version)
    labels = [image.group for image in images if image.group.startswith(f"{LABELS}/")]
    if labels:
        names = [group.removeprefix(f"{LABELS}/") for group in labels]
        documents[LABELS] = wrapped({"labels": names}, version)
    return documents


def wrapped(document: Document, version: str) -> Document:
    """The attributes of a group with this OME part."""
    return document if version == "0.4" else {OME: {"version": version, **document}}


def stripped(array: Array, name: str, letters: str) -> Array:
    """An array to store: axes named by letters; other metadata of axes is in the documents."""
    axes = [Axis(letter) for letter in letters]
    meta = array.meta if array.described else Metadata()
    meta = meta.without_format(NAMESPACE).replace(axes=axes, space=None)
    return array.replace(name=name, meta=meta)
