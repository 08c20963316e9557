"""The documents of OME-Zarr: multiscales, omero, plate and well as metadata of the core, and back.

All fields of a document are checked here. None is a path to a file: `datasets` name arrays of the
hierarchy, which was read before.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from reprlib import Repr

from raconvert.declared import Record
from raconvert.errors import Corrupt, Unsafe, Unsupported
from raconvert.plugin import Metadata

from ..axes import (
    KINDS,
    LENGTHS,
    NAMESPACE,
    TIMES,
    Sampling,
    axes_from,
    channels_of,
    samplings_of,
    with_channels,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array

    Document = dict[str, Any]

OME = "ome"  # the key of the OME part in version 0.5
LAYOUT = "bioformats2raw.layout"
KEYS = (
    "multiscales",
    "omero",
    "plate",
    "well",
    "labels",
    "image-label",
    LAYOUT,
    "series",
    "_creator",
)
VERSIONS = ("0.4", "0.5")
CREATOR, OURS = "_creator", {"name": "raconvert"}  # beside the multiscales of the root
MARK = "raconvert_image"  # our record, a text beside the OME part
MOST_AXES = 5
_SPATIAL, _OTHERS = ("x", "y", "z"), {"time": "t", "channel": "c"}
_WORDS = {symbol: word for word, symbol in (LENGTHS | TIMES).items()}
SHORT = Repr()  # of values of any size, without reading all of them
NAME_LENGTH = 1000  # characters of the name of an image that becomes that of an array


def ome_of(attributes: Document) -> tuple[str, Document]:
    """The version and the OME part of the attributes of a group; empty if it has none."""
    own = attributes.get(OME)
    if isinstance(own, dict) and any(key in own for key in KEYS):
        return str(own.get("version", "0.5")), own
    document = {key: attributes[key] for key in KEYS if key in attributes}
    parts = [document.get("multiscales"), document.get("plate"), document.get("well")]
    for part in parts:
        first = part[0] if isinstance(part, list) and part else part
        if isinstance(first, dict):
            return str(first.get("version", "0.4")), document
    return "0.4", document


def without_ome(attributes: Document) -> Document:
    """The attributes of a group that are not those of OME."""
    _, own = ome_of(attributes)
    if not own:
        return attributes
    if OME in attributes and own is attributes[OME]:
        return {key: value for key, value in attributes.items() if key not in (OME, MARK)}
    return {key: value for key, value in attributes.items() if key not in (*KEYS, MARK)}


class Multiscale(Record):
    """An image as its document describes it; `paths` are those of its levels, the largest first.

    `samplings` has a list for each level, an entry for each axis. `rest` are fields for the
    namespace ``ome``.
    """

    name: str
    letters: str
    names: list[str]
    paths: list[str]
    samplings: list[list[Sampling]]
    labels: list[str] | None
    channels: list[Document]
    rest: Document

    def metadata(self, level: int) -> Metadata:
        """The metadata of a level by the document."""
        axes, space = axes_from(
            self.letters, self.samplings[level], labels=self.labels, names=self.names
        )
        own = with_channels(self.letters, self.channels)
        own |= {"image": self.rest} if self.rest else {}
        return Metadata(axes=axes, space=space, formats={NAMESPACE: own} if own else None)


def multiscale_of(version: str, own: Document, path: str, limits: Limits) -> Multiscale:
    """The first multiscale image of a group. Raises `Corrupt` for a wrong document."""
    if not version.startswith(VERSIONS):
        raise Unsupported(
            f"is OME-Zarr of version {version[:20]}", path=path, expected=" or ".join(VERSIONS),
            remedy="read its arrays as a hierarchy of Zarr, with `--from zarr`",
        )  # fmt: skip
    listed = own["multiscales"]
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], dict):
        raise _wrong("multiscales", "a list of images", listed, path)
    fields = listed[0]
    letters, names, units = _axes(fields.get("axes"), path)
    datasets = fields.get("datasets")
    if not isinstance(datasets, list) or not datasets or len(datasets) > limits.nesting_levels:
        raise _wrong("datasets", f"1 to {limits.nesting_levels} levels", datasets, path)
    common = _transformed([(1.0, 0.0)] * len(letters), fields, path, needed=False)
    paths, samplings = [], []
    for dataset in datasets:
        if not isinstance(dataset, dict):
            raise _wrong("datasets", "a list of mappings", dataset, path)
        paths.append(_path(dataset.get("path"), path))
        numbers = _transformed([(1.0, 0.0)] * len(letters), dataset, path, needed=True)
        moved = _moves(fields) or _moves(dataset)
        pairs = [
            (a * step, b + a * start) for (a, b), (step, start) in zip(common, numbers, strict=True)
        ]
        samplings.append(
            [_sampling(*pair, unit, moved=moved) for pair, unit in zip(pairs, units, strict=True)]
        )
    labels, channels = _channels(own.get("omero"), path, limits)
    omero = own.get("omero", {})
    rest = {key: fields[key] for key in ("type", "metadata") if key in fields}
    if isinstance(omero, dict) and omero.keys() - {"channels", "version", "id", "name"}:
        rest["omero"] = {
            key: omero[key] for key in omero if key not in ("channels", "version", "id", "name")
        }
    if isinstance(own.get("image-label"), dict):
        rest["image-label"] = own["image-label"]
    name = fields.get("name") if own.get(CREATOR) == OURS else ""
    name = name if isinstance(name, str) and len(name) <= NAME_LENGTH else ""
    return Multiscale(name, letters, names, paths, samplings, labels, channels, rest)


def _wrong(field: str, expected: str, got: Any, path: str) -> Corrupt:
    """The error for a wrong field of a document."""
    what = f"OME metadata field '{field}' is wrong"
    return Corrupt(what, path=path, expected=expected, got=SHORT.repr(got)[:80])


def _axes(listed: Any, path: str) -> tuple[str, list[str], list[str | None]]:
    """The letters, names and units of the axes. Raises `Corrupt`."""
    if not isinstance(listed, list) or not 2 <= len(listed) <= MOST_AXES:
        raise _wrong("axes", f"a list of 2 to {MOST_AXES} axes", listed, path)
    letters, names, units = "", list[str](), list[str | None]()
    spatial = [axis for axis in listed if isinstance(axis, dict) and axis.get("type") == "space"]
    left = [*"zyx"][3 - len(spatial) :] if len(spatial) <= 3 else []
    for axis in listed:
        name = axis.get("name") if isinstance(axis, dict) else None
        kind, unit = (axis.get("type"), axis.get("unit")) if isinstance(axis, dict) else (None, "")
        named = isinstance(name, str) and 0 < len(name) <= NAME_LENGTH and name not in names
        valid = named and isinstance(kind, str | None) and isinstance(unit, str | None)
        if not valid or name is None:
            raise _wrong("axes", "a name, a type and a unit for each axis, in texts", axis, path)
        if kind == "space":
            if not left:
                raise _wrong("axes", "at most three axes of space", listed, path)
            letters += left.pop(0)
        else:
            letter = _OTHERS.get(kind or "", "?")
            letters += letter if letter not in letters else "?"
        names.append(name)
        units.append(None if not unit else (LENGTHS | TIMES).get(unit, unit))
    return letters, names, units


def _path(path: Any, where: str) -> str:
    """The path of an array in its group. Raises `Unsafe` if it leads out of the group."""
    if not isinstance(path, str) or not path:
        raise _wrong("path", "the path of an array", path, where)
    parts = path.strip("/").split("/") if path[0] != "/" else ["..", *path.split("/")]
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or ":" in path:
        raise Unsafe("OME metadata names an array outside the image", path=where, got=path[:80])
    return "/".join(parts)


def _moves(fields: Document) -> bool:
    """True if a translation is among the transformations."""
    listed = fields.get("coordinateTransformations") or ()
    return any(isinstance(entry, dict) and entry.get("type") == "translation" for entry in listed)


def _transformed(
    pairs: list[tuple[float, float]], fields: Document, path: str, *, needed: bool
) -> list[tuple[float, float]]:
    """Pairs of scale and translation after the transformations of a document. Raises `Corrupt`."""
    listed = fields.get("coordinateTransformations")
    if listed is None and not needed:
        return pairs
    if not isinstance(listed, list) or len(listed) > MOST_AXES:
        raise _wrong("coordinateTransformations", "a list with a scale", listed, path)
    for entry in listed:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind == "identity":
            continue
        if kind not in ("scale", "translation"):
            raise _wrong("coordinateTransformations", "scale and translation", entry, path)
        numbers = entry.get(kind)
        if not _are_numbers(numbers, len(pairs)):
            raise _wrong(kind, f"{len(pairs)} finite numbers", numbers or entry, path)
        if kind == "scale":
            pairs = [(a * float(n), b * float(n)) for (a, b), n in zip(pairs, numbers, strict=True)]
        else:
            pairs = [(a, b + float(n)) for (a, b), n in zip(pairs, numbers, strict=True)]
    return pairs


def _are_numbers(numbers: Any, count: int) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) == count
        and all(type(n) in (int, float) and abs(n) < 1e300 and isfinite(n) for n in numbers)
    )


def _sampling(step: float, start: float, unit: str | None, *, moved: bool) -> Sampling:
    """The sampling along an axis; a scale of 1 without a unit is unknown: OME needs a scale."""
    known = step > 0 and (step != 1 or unit is not None)
    return Sampling(step if known else None, start if moved else None, unit)


def _channels(omero: Any, path: str, limits: Limits) -> tuple[list[str] | None, list[Document]]:
    """The names of the channels, if all have one, and the other fields of each."""
    if omero is None:
        return None, []
    listed = omero.get("channels", []) if isinstance(omero, dict) else None
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise _wrong("omero", "a list of channels", omero, path)
    if len(listed) > limits.axis_labels:
        raise _wrong("omero", f"at most {limits.axis_labels} channels", len(listed), path)
    names = [channel.get("label") for channel in listed]
    whole = names and all(isinstance(name, str) for name in names)
    rest = [{key: value for key, value in channel.items() if key != "label"} for channel in listed]
    return (names if whole else None), rest


def check_shapes(image: Multiscale, shapes: Sequence[tuple[int, ...]], path: str) -> None:
    """Raise `Corrupt` for levels of another rank, or larger than the level above along any axis."""
    rank = len(image.letters)
    for number, shape in enumerate(shapes):
        if len(shape) != rank:
            raise Corrupt(
                f"level {number} of an image has another number of axes than its metadata",
                path=path, expected=rank, got=len(shape),
            )  # fmt: skip
        if number and any(a > b for a, b in zip(shape, shapes[number - 1], strict=True)):
            raise Corrupt(
                f"level {number} of an image is larger than the one above it", path=path,
                expected=f"at most {shapes[number - 1]}", got=shape,
            )  # fmt: skip


# Writing ------------------------------------------------------------------------------------------


class Level(Record):
    """A level to write: its path, and the factor by which rows and columns are shorter."""

    path: str
    factor: int


def multiscales(
    array: Array, letters: str, levels: Sequence[Level], name: str, version: str, how: str
) -> Document:
    """The OME part of the attributes of an image, as version 0.5 has it."""
    samplings = samplings_of(array)
    own = array.meta.formats.get(NAMESPACE, {})
    recorded = own.get("image") if isinstance(own, dict) else None
    recorded = dict(recorded) if isinstance(recorded, dict) else {}
    axes = []
    for letter, sampling in zip(letters, samplings, strict=True):
        kind = "channel" if KINDS[letter] == "list" else KINDS[letter]
        axis = {"name": letter, "type": kind}
        if sampling.units and letter != "c":
            axis["unit"] = _WORDS.get(sampling.units, sampling.units)
        axes.append(axis)
    moved = any(sampling.start is not None for sampling in samplings)
    datasets = [
        {
            "path": level.path,
            "coordinateTransformations": _transformations(letters, samplings, level, moved, how),
        }
        for level in levels
    ]
    fields: Document = {"name": name, "axes": axes, "datasets": datasets}
    if version == "0.4":
        fields["version"] = version
    if len(levels) > 1:
        fields["type"] = how
    elif isinstance(recorded.get("type"), str):
        fields["type"] = recorded["type"]
    if isinstance(recorded.get("metadata"), dict):
        fields["metadata"] = recorded["metadata"]
    document: Document = {"multiscales": [fields]}
    omero = _omero(array, letters, recorded, version)
    document |= {"omero": omero} if omero else {}
    document[CREATOR] = OURS
    if isinstance(recorded.get("image-label"), dict):
        document["image-label"] = recorded["image-label"]
    return document


def _transformations(
    letters: str, samplings: Sequence[Sampling], level: Level, moved: bool, how: str
) -> list[Document]:
    """The scale of a level, and its translation if it has one."""
    scale, translation = [], []
    for letter, sampling in zip(letters, samplings, strict=True):
        step = 1.0 if sampling.step is None else float(sampling.step)
        factor = level.factor if letter in "yx" else 1
        shift = step * (factor - 1) / 2 if how == "mean" else 0.0  # the centre of a block
        scale.append(step * factor)
        translation.append(float(sampling.start or 0) + shift)
    listed: list[Document] = [{"type": "scale", "scale": scale}]
    if moved or any(translation):
        listed.append({"type": "translation", "translation": translation})
    return listed


def _omero(array: Array, letters: str, recorded: Document, version: str) -> Document:
    """Names, colours and windows of channels; a missing window is the range of the type."""
    names, channels = channels_of(array, letters)
    if names is None and channels is None:
        return {}
    count = array.dims[::-1][letters.index("c")]
    window, listed = _window(array), []
    for number in range(count):
        entry = dict(channels[number]) if channels else {}
        entry = {"color": "FFFFFF", "window": window, "active": True, **entry}
        listed.append(({"label": names[number]} if names else {}) | entry)
    more = recorded.get("omero")
    more = dict(more) if isinstance(more, dict) else {}
    return {**more, "channels": listed} | ({"version": version} if version == "0.4" else {})


def _window(array: Array) -> Document:
    """The window of a channel over the range of the type; 0 to 1 for floats."""
    bits = 8 * array.element.nbytes
    low, high = 0.0, 1.0
    if array.element.kind in ("int", "uint"):
        signed = array.element.kind == "int"
        low = -float(1 << (bits - 1)) if signed else 0.0
        high = float((1 << (bits - signed)) - 1)
    return {"start": low, "end": high, "min": low, "max": high}


# Plates -------------------------------------------------------------------------------------------


def well_path(name: str) -> tuple[str, str, str] | None:
    """Row, column and field of the name of an image in a well; None for any other name."""
    parts = name.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isalnum() for part in parts):
        return None
    return parts[0], parts[1], parts[2]


def plate_of(names: Sequence[str], recorded: Any, version: str) -> Document | None:
    """The document of a plate with these images; None unless all of them are in wells."""
    paths = [path for path in map(well_path, names) if path is not None]
    if not isinstance(recorded, dict) or not paths or len(paths) < len(names):
        return None
    rows = dict.fromkeys([*_listed(recorded, "rows"), *(row for row, _, _ in paths)])
    columns = dict.fromkeys([*_listed(recorded, "columns"), *(column for _, column, _ in paths)])
    row_index = {name: n for n, name in enumerate(rows)}
    column_index = {name: n for n, name in enumerate(columns)}
    fields = Counter((row, column) for row, column, _ in paths)
    document: Document = {
        "columns": [{"name": name} for name in columns],
        "rows": [{"name": name} for name in rows],
        "wells": [
            {"path": f"{a}/{b}", "rowIndex": row_index[a], "columnIndex": column_index[b]}
            for a, b in fields
        ],
        "field_count": max(fields.values()),
    }
    if version == "0.4":
        document["version"] = version
    if isinstance(recorded.get("name"), str):
        document["name"] = recorded["name"]
    if isinstance(recorded.get("acquisitions"), list):
        document["acquisitions"] = recorded["acquisitions"]
    return document


def _listed(recorded: Document, field: str) -> list[str]:
    """The names of rows or columns in a recorded plate."""
    listed = recorded.get(field)
    entries = listed if isinstance(listed, list) else []
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and name.isalnum()]


def check_plate(own: Document, path: str, limits: Limits) -> list[str]:
    """The paths of the wells of a plate. Raises `Corrupt` for a wrong document."""
    plate = own["plate"]
    wells = plate.get("wells") if isinstance(plate, dict) else None
    if not isinstance(wells, list) or len(wells) > limits.nodes:
        raise _wrong("plate", "a mapping with a list of wells", plate, path)
    for well in wells:
        if not isinstance(well, dict):
            raise _wrong("wells", "a list of mappings", well, path)
    return [_path(well.get("path"), path) for well in wells]
