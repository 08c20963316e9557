"""HDF5 dimension scales and the core's axes.

Specification: "HDF5 Dimension Scale Specification and Design Notes" (The HDF Group, 2005); the
netCDF-4 conventions for dimensions without a variable.

An axis takes its name from the label of the dimension, else from its first scale; units from that
scale; spacing and origin if its values are exactly regular, else the values as labels. The scales
stay arrays. The namespace ``hdf5`` of an array remembers what was attached::

    scale: NAME                          this array is a dimension scale
    dimensions: [{axis: name, label: bool, scales: [path, ...]}, ...]

The entries find their axis by its name, so that they survive a permutation of the axes.
"""

from __future__ import annotations

import numpy as np
from h5py import h5a, h5r, h5t

from raconvert.arrays.dtypes import little
from raconvert.arrays.interop.conventions import (
    MISSING,
    Coordinates,
    facts_of,
    filled,
    is_own,
    says,
    shared_name,
    usual_fill,
)
from raconvert.arrays.space import coordinates
from raconvert.files.limits import DEFAULT
from raconvert.metadata import roundtrip
from raconvert.plugin import Axis

from .attributes import Stored, usual_type, value_of
from .descriptions import describe, type_of, type_of_element
from .files import PROBLEMS, key_of
from .ondisk.header import check_all_heaps, sequences
from .tables import NAMESPACE, Attributes
from .walk import component, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from h5py import h5d

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array, Bundle, Element

    from .files import File, Key
    from .walk import Member


# netCDF-4 among HDF5 files: attributes that are all vectors, those of the library itself, times
# Source: "NetCDF-4 File Format Specification", Unidata: an attribute is a vector; programs show
# one of a single element as a scalar, and hide what says which program wrote the file. "NetCDF
# Climate and Forecast (CF) Metadata Conventions", 4.4 "Time Coordinate": times are numbers with
# units.


SUFFIXES = (".nc", ".nc4", ".cdf")
WRITER = "_NCProperties"
PROVENANCE = (WRITER, "_nc3_strict")  # attributes of the root that name the writer
NUMBER, NUMBERS = b"_Netcdf4Dimid", b"_Netcdf4Coordinates"


def is_netcdf_file(file: File) -> bool:
    """True for a netCDF-4 file by its suffix, or by attributes that name its writer."""
    if file.source.place.lower().endswith(SUFFIXES):
        return True
    return any(h5a.exists(file.fid, name.encode()) for name in PROVENANCE)


def without_single_lists(attributes: Attributes) -> None:
    """Make attributes of one element scalars, as netCDF has them.

    The types of texts remember that they were vectors; numbers always become some (`as_vectors`).
    """
    for name, value in attributes.values.items():
        if not isinstance(value, list) or len(value) != 1 or isinstance(value[0], list):
            continue
        remembered = attributes.types.get(name)
        if remembered is None:
            attributes.values[name] = value[0]
            usual = None if type(value[0]) in (int, float) else usual_type(value)
            if usual is not None:
                attributes.types[name] = {"type": describe(usual, DEFAULT), "shape": [1]}
        elif remembered["shape"] == [1]:
            attributes.values[name] = value[0]


def as_vectors(values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """The values as a .nc has them: numbers without a remembered type as vectors of one element."""
    return {
        name: [value] if type(value) in (int, float) and name not in types else value
        for name, value in values.items()
    }


def without_type_of_missing(attributes: Attributes, element: Element) -> None:
    """Forget the type of `_FillValue` if it is that of the elements, as netCDF requires."""
    remembered = attributes.types.get(MISSING)
    if remembered is not None and remembered == type_of_missing(element):
        del attributes.types[MISSING]


def type_of_missing(element: Element) -> dict[str, Any] | None:
    """The remembered type of a `_FillValue` of one number; None for other elements."""
    if element.kind not in ("int", "uint", "float"):
        return None
    return {"type": describe(type_of_element(little(element)), DEFAULT), "shape": [1]}


def take_provenance(attributes: Attributes) -> dict[str, Any]:
    """Remove the attributes of the root that netCDF's programs hide; return their record."""
    values = {key: attributes.values.pop(key) for key in PROVENANCE if key in attributes.values}
    types = {key: attributes.types.pop(key) for key in values if key in attributes.types}
    return {"provenance": {"attributes": values, "types": types}} if values else {}


def numbers_of(dataset: Any, file: File) -> tuple[int | None, list[int]]:
    """Return the number of a dimension, or None, and those of the axes of a scale of several."""
    number, numbers = (value_of(dataset, file, name) for name in (NUMBER, NUMBERS))
    number = number[0] if isinstance(number, list) and len(number) == 1 else number
    several = isinstance(numbers, list) and all(type(item) is int for item in numbers)
    return number if type(number) is int else None, numbers if several else []


def type_of_times(array: Array) -> h5t.TypeID:
    """The type of the integers that dates or durations become, in their byte order."""
    return type_of(">i8" if str(array.element.descr).startswith(">") else "<i8")


# The last two are the numbers that netCDF gives to the dimensions of one file.
ALWAYS = frozenset(
    ["DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates"]
)
ON_SCALES = frozenset(["CLASS", "NAME"])
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"


def is_scale(dataset: h5d.DatasetID, file: File) -> bool:
    """True if a dataset is a dimension scale.

    (Not by the library's own function, which damaged files can crash.)
    """
    return bool(value_of(dataset, file, b"CLASS") == "DIMENSION_SCALE")


def scale_name(dataset: h5d.DatasetID, file: File) -> str:
    """The NAME of a scale; empty if it has none."""
    name = value_of(dataset, file, b"NAME")
    return name if isinstance(name, str) else ""


def attached_to(dataset: h5d.DatasetID, file: File) -> list[tuple[str, list[Key]]]:
    """Label and scales of each dimension, slowest first; empty if none has any."""
    attached = _attached_to(dataset, file)
    return attached if any(label or keys for label, keys in attached) else []


class Numbers:
    """The dimensions of netCDF by their numbers, and the scales that get them as axes."""

    def __init__(self) -> None:
        self.made: dict[Key, str] = {}  # names of scales that this plugin made from axes
        self.places: dict[Key, tuple[Member, str | None]] = {}  # those with values, and their units
        self._names: dict[int, str] = {}
        self._scales: list[tuple[Array, str, list[int]]] = []

    def add(self, dataset: h5d.DatasetID, member: Member, array: Array | None = None) -> None:
        """Record a scale of a file, and its array if it has values."""
        number, numbers = numbers_of(dataset, member.file)
        name = member.path.rpartition("/")[2]
        if number is not None:
            self._names[number] = name
        if array is not None:
            self._scales.append((array, name, numbers))

    def apply(self) -> None:
        """Name the axes of the scales: a scale of one axis is a coordinate along itself."""
        for array, name, numbers in self._scales:
            if array.meta.axes:
                continue
            if array.ndim == 1:
                array.meta = array.meta.replace(axes=[Axis(name)])
            elif len(numbers) == array.ndim:
                axes = [Axis(self._names.get(number)) for number in numbers]
                array.meta = array.meta.replace(axes=axes[:: -1 if array.index_order == "F" else 1])


def apply(
    attached: list[tuple[Array, list[tuple[str, list[Key]]]]],
    places: dict[Key, str],
    arrays: list[Array],
    made: dict[Key, str],
    facts: Callable[[Key, int], dict[str, Any]],
    limits: Limits,
) -> None:
    """Fill the axes of every array from its scales; `places` has the path of each object.

    `made`: the names of axes by the scales that were made from them, which are not arrays. `facts`
    reads such a scale for an axis of a length, since the record of the array may lack its facts.
    """
    by_name = {array.name: array for array in arrays}
    cache: dict[str, dict[str, Any]] = {}
    for array, dimensions in attached:
        entries = []
        made_scales: list[Key | None] = []
        for label, keys in dimensions:
            paths = [places[key] for key in keys if key in places]
            axis = label or (paths[0].rsplit("/", 1)[-1] if paths else "")
            axis = axis or next((made[key] for key in keys if key in made), "")
            entries.append({"axis": axis, "label": bool(label), "scales": paths})
            made_scales.append(None if paths else next((key for key in keys if key in made), None))
        if any(entry["axis"] for entry in entries):
            if any(entry["scales"] for entry in entries):
                array.meta = array.meta.with_format(NAMESPACE, dimensions=entries)
            if not array.meta.axes:
                axes = axes_of(entries, array, by_name, cache, limits)
                for index, (key, length) in enumerate(
                    zip(made_scales[::-1], array.dims, strict=False)
                ):
                    if key is not None:
                        axes[index] = filled(axes[index], facts(key, length))
                order = 1 if array.index_order == "F" else -1
                array.meta = array.meta.replace(axes=axes[::order])


def _attached_to(dataset: h5d.DatasetID, file: File) -> list[tuple[str, list[Key]]]:
    """Label and scales of each dimension, slowest first."""
    rank = dataset.rank
    labels = value_of(dataset, file, b"DIMENSION_LABELS")
    if not isinstance(labels, list) or len(labels) != rank:
        labels = [""] * rank
    keys: list[list[Key]] = [[] for _ in range(rank)]
    try:
        fileno = key_of(dataset)[0]
        for axis, addresses in enumerate(_addresses(dataset, file)[:rank]):
            keys[axis] = [(fileno, address) for address in addresses]
    except PROBLEMS:  # damaged, or a null reference: the axes have no scales then
        pass
    texts = [label if isinstance(label, str) else "" for label in labels]
    return list(zip(texts, keys, strict=True))


def _addresses(dataset: h5d.DatasetID, file: File) -> list[list[int]]:
    """The addresses of the scales of each dimension, from the attribute DIMENSION_LIST.

    It has sequences of variable length of object references, which are addresses.
    """
    name = b"DIMENSION_LIST"
    if not h5a.exists(dataset, name):
        return []
    aid = h5a.open(dataset, name)
    tid = aid.get_type()
    if tid.get_class() != h5t.VLEN or tid.get_super() != h5t.STD_REF_OBJ or len(aid.shape) != 1:
        return []
    stored = Stored(dataset, file)
    raw = stored.data(name)
    if raw is not None:
        return [
            np.frombuffer(sequence[: len(sequence) // 8 * 8], "<u8").tolist()
            for sequence in sequences(raw, aid.shape[0], file, 8)
        ]
    check_all_heaps(file)
    values = np.empty(aid.shape, aid.dtype)
    aid.read(values)
    return [
        [key_of(h5r.dereference(reference, dataset))[1] for reference in references]
        for references in values.tolist()
    ]


def axes_of(
    entries: list[dict[str, Any]],
    array: Array,
    by_name: dict[str, Array],
    cache: dict[str, dict[str, Any]],
    limits: Limits,
) -> list[Axis]:
    """The axes of an array, fastest first, by its entries (slowest first) and their scales."""
    axes = []
    for entry, length in zip(entries, array.dims[::-1], strict=False):
        fields = {"name": entry["axis"] or None}
        scale = by_name.get(entry["scales"][0]) if entry["scales"] else None
        if scale is not None and scale is not array:
            if scale.name not in cache:
                cache[scale.name] = _facts(scale, limits)
            facts = cache[scale.name]
            fields["units"] = scale.meta.units
            if scale.dims == (length,):
                fields.update(facts)
        axes.append(Axis(**fields))
    axes += [Axis() for _ in range(array.ndim - len(axes))]
    return axes[::-1]


def _facts(scale: Array, limits: Limits) -> dict[str, Any]:
    """Spacing and origin, or labels, of the values of a scale."""
    try:
        return facts_of(scale, limits)
    except PROBLEMS:  # reading it later reports the error
        return {}


def settle(arrays: list[Array], space: dict[str, Any], limits: Limits, *, netcdf: bool) -> None:
    """List in the namespaces the fields that are `LOCAL`: the writer makes them from the rest."""
    known: Coordinates | None = None
    dimensions = space.get("dimensions", {})
    usual = {path: facts["length"] for path, facts in dimensions.items()
             if netcdf and _is_usual(facts)}  # fmt: skip
    again: set[str] = set()
    for array in arrays:
        own = array.meta.formats.get(NAMESPACE)
        if own is None or array.problem is not None:
            continue
        is_local = {"scale": _is_own(array, own)}
        if netcdf:
            is_local |= {"fillvalue": _is_missing(array, own), "type": own.get("type") == TEXTS}
        local = [field for field, is_so in is_local.items() if is_so and field in own]
        if "dimensions" in own:
            known = known or Coordinates(arrays, [array.name for array in arrays], limits)
            paths = _made_from(array, own["dimensions"], known, usual)
            again |= {path for path in paths if _group_of(path) == _group_of(array.name)}
            local += ["dimensions"] * bool(paths)
        if local:
            array.meta = array.meta.with_format(NAMESPACE, **{roundtrip.LOCAL: local})
    # A dimension that no array of its own group has would be made in the groups of its arrays.
    local = ["dimensions"] if dimensions and again >= dimensions.keys() else []
    if [*space.get("provenance", {}).get("attributes", {})] == [WRITER]:
        local.append("provenance")  # the library that wrote this file does not write the next one
    if local:
        space[roundtrip.LOCAL] = local


def _is_own(array: Array, own: dict[str, Any]) -> bool:
    """True for a scale with the values of its own axis, whose name is also that of the scale."""
    axes, last = array.meta.axes, array.name.rpartition("/")[2]
    return len(axes) == len(array.dims) == 1 and own.get("scale") == axes[0].name == last


def _is_missing(array: Array, own: dict[str, Any]) -> bool:
    """True if the fill value is that of missing elements, by an attribute or by netCDF itself."""
    missing = array.meta.attributes.get(MISSING, usual_fill(array.element))
    return repr(own.get("fillvalue")) == repr(missing)


TEXTS = {"class": "string", "padding": "nullterm", "charset": "utf-8"}  # as a .nc has them


def _is_usual(facts: dict[str, Any]) -> bool:
    """True for a dimension without a variable as the writer makes it."""
    return facts["type"] == ">f4" and not facts["attributes"] and not facts["types"]


def _group_of(path: str) -> str:
    return path.rpartition("/")[0]


def around(path: str) -> Iterator[str]:
    """Yield a path, then those with the same last part in the groups around, innermost first."""
    *above, last = path.split("/")
    for depth in range(len(above), -1, -1):
        yield "/".join([*above[:depth], last])


def lengths_of(arrays: Sequence[Array], links: Mapping[str, str]) -> dict[str, set[int]]:
    """The lengths of the axes of each name in a group, by the path that their scale would have."""
    lengths: dict[str, set[int]] = {}
    for array in arrays:
        link, axes = links[array.name], list(array.ra_axes[::-1])
        for index, (axis, length) in enumerate(zip(axes, array.dims[::-1], strict=False)):
            name = shared_name(axis, axes[:index])
            path = link[: link.rfind("/") + 1] + component(name)
            lengths.setdefault(path, set()).add(length)
    return lengths


def _made_from(
    array: Array, entries: list[dict[str, Any]], known: Coordinates, usual: dict[str, int]
) -> set[str]:
    """The paths of all scales of an array, if the writer attaches the same ones by itself."""
    paths = set()
    axes = list(array.ra_axes[::-1])
    for index, entry in enumerate(entries):
        name, length = shared_name(axes[index], axes[:index]), array.dims[::-1][index]
        path = known.at(array.name, name, length)
        if path is None:
            above = _group_of(array.name)
            paths_up = around(f"{above}/{name}" if above else name)
            usable = [scale for scale in paths_up if scale in usual]
            same = [scale for scale in usable if usual[scale] in (0, length)]  # 0: unlimited
            if len(same) != 1 or usable[0] != same[0]:  # only the file tells which one is attached
                return set()
            path = same[0]
        if entry["label"] or entry["scales"] != [path]:
            return set()
        paths.add(path)
    return paths if len(entries) == len(axes) else set()


# --- writing --------------------------------------------------------------------------------------


def matched(array: Array) -> list[dict[str, Any] | None]:
    """The remembered entry of each dimension, slowest first, found by the axis's name."""
    entries = array.meta.formats.get(NAMESPACE, {}).get("dimensions")
    left = [entry for entry in entries if _is_entry(entry)] if isinstance(entries, list) else []
    matches: list[dict[str, Any] | None] = []
    for axis in array.ra_axes[::-1]:
        entry = next((entry for entry in left if entry["axis"] == (axis.name or "")), None)
        if entry is not None:
            left.remove(entry)
        matches.append(entry)
    return matches


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("axis"), str)
        and isinstance(entry.get("scales"), list)
    )


def axis_name_of(last: str, array: Any) -> str:
    """The name of an axis by the last part of its scale's path; "" for an axis without a name.

    `array` is the name of the array with the axis.
    """
    stem, dot, number = last.rpartition(".")
    leaf = array.rpartition("/")[2] if isinstance(array, str) else ""
    return "" if dot and number.isdigit() and stem == component(leaf) else last


def unshared(bundle: Bundle, links: Sequence[str]) -> Iterator[tuple[Array, str]]:
    """Yield each array and axis whose scale gets another name, which other programs see.

    The path that the scale would have is that of another object, or of the scale of an axis with
    other facts. `links` are those of the arrays.
    """
    taken = {*links, *bundle.groups, *(above for link in links for above in parents(link))}
    names = {*bundle.names}
    own = {link: a for a, link in zip(bundle.arrays, links, strict=True) if is_own(a, link)}
    made: dict[str, tuple[int, str]] = {}
    for array, link in zip(bundle.arrays, links, strict=True):
        if link in own or "scale" in array.meta.formats.get(NAMESPACE, {}):
            continue
        above = link[: link.rfind("/") + 1]
        axes = coordinates(array.ra_axes, array.meta.space)[::-1]
        entries = zip(axes, array.dims[::-1], matched(array), strict=False)
        for index, (axis, length, entry) in enumerate(entries):
            name = shared_name(axis, axes[:index])
            path = above + component(name)
            attached = entry is not None and not names.isdisjoint(entry["scales"])
            if not name or attached or values_around(path, length, own) is not None:
                continue
            if path in taken or made.setdefault(path, says(axis, length)) != says(axis, length):
                yield array, name


def values_around(path: str, length: int, own: Mapping[str, Array]) -> Array | None:
    """The array with the values of an axis, in its group or around it; None if there is none.

    Dimensions of a group are those of the groups in it, too. `path` is that of the scale that the
    axis would have, `own` are arrays that are scales, by path.
    """
    above, _, name = path.rpartition("/")
    while True:
        scale = own.get(f"{above}/{name}" if above else name)
        if scale is not None and scale.dims == (length,):
            return scale
        if not above:
            return None
        above = above.rpartition("/")[0]
