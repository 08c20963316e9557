"""Writing: from a bundle to an HDF5 file for tools of HDF5 1.10, the same bytes every time.

First the library makes the structure: groups, datasets with their space already allocated,
attributes, and all data that it has to encode itself. Then the file is closed, and the elements of
contiguous datasets are copied to their offsets, past the library.
"""

from __future__ import annotations

import numpy as np
from h5py import h5d, h5ds, h5g, h5o, h5p, h5s, h5t, h5z

from raconvert.arrays.blocks import blocks
from raconvert.arrays.dtypes import little
from raconvert.arrays.interop.conventions import (
    MISSING,
    calendar_of,
    is_own,
    shared_name,
    usual_fill,
    values_of,
)
from raconvert.arrays.interop.conventions import says as says_of
from raconvert.arrays.interop.times import times_of
from raconvert.arrays.space import coordinates
from raconvert.errors import WriteFailed
from raconvert.files.limits import DEFAULT
from raconvert.files.paths import name_of_open
from raconvert.metadata import roundtrip
from raconvert.metadata.reals import narrowed
from raconvert.metadata.roundtrip import KEY, common_names, divided
from raconvert.plugin import Axis, dtype_of

from . import scales
from .attributes import write_attribute
from .creating import TRACKED, closing, create, created, library, utf8
from .datatypes import is_text, is_variable, kind_of
from .descriptions import is_utf8, string_type, type_of
from .elements import raw_blocks, write_chunks, write_elements, write_strings
from .files import PROBLEMS
from .paddings import endings_of
from .scales import as_vectors, type_of_missing, type_of_times
from .structure import chunk_of
from .tables import NAMESPACE
from .walk import component, kept_links, may_be_group, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.plugin import Array, Bundle, Element, Target

    from .paddings import Endings
    from .structure import Options, Structure


# Attributes with numbers of dimensions, by netCDF.
NUMBERS = {"_Netcdf4Dimid", "_Netcdf4Coordinates"}


class Writer:
    """One file being written: the library's handle, groups made so far, elements yet to copy."""

    def __init__(
        self, bundle: Bundle, target: Target, options: Options, structure: Structure
    ) -> None:
        self.bundle = bundle
        self.target = target
        self.options = options
        self.links = dict(zip(bundle.names, structure.links, strict=True))
        self.types = dict(zip(bundle.names, structure.types, strict=True))
        self.aliases = structure.aliases
        self.groups: dict[str, Any] = {}
        self.taken = frozenset(self.links.values())
        self.paths: set[str] = set()
        self.scales: set[str] = set()  # names of datasets that are dimension scales
        self.made: dict[str, tuple[int, str]] = {}  # `says_of` of scales made from axes, by path
        self.coordinates: dict[str, Array] = {}  # arrays that are scales of their axes, by path
        self.netcdf = target.path.lower().endswith(".nc")
        self.lengths: dict[str, int] = {}  # dimensions that axes without values share, by path
        # For a file that is added to: its arrays by path; True, as its dimensions may have numbers.
        self.there: dict[str, Array] = {}
        self.numbered = False
        if self.netcdf and options.strings == "auto":  # netCDF has no strings of fixed width
            for array in bundle.arrays:
                if is_text(array.element) or is_utf8(array):
                    self.types[array.name] = string_type(None, "nullterm", "utf-8")
        self.times: dict[str, dict[str, Any]] = {}  # attributes of dates and durations, by array
        for array in bundle.arrays if self.netcdf else ():
            times = times_of(array)
            if times is not None:
                self.times[array.name], self.types[array.name] = times, type_of_times(array)
        self.raw: list[tuple[int, Array, Endings]] = []  # for `write_elements`
        # Open datasets, whose data libhdf5 may still have to write.
        self.open_datasets: list[h5d.DatasetID] = []
        space = bundle.formats.get(NAMESPACE)
        self.space: dict[str, Any] = space if isinstance(space, dict) else {}

    def run(self) -> None:
        """Write the whole file."""
        for array in self.bundle.arrays:
            self._ask(array)
        file = self.target.open()
        with library(self.target.path):
            fid = create(name_of_open(file, self.target.temp))
            self.groups[""] = h5o.open(fid, b"/")
        with closing(fid, self.target.path):
            for array in self.bundle.arrays:
                self._dataset(array)
            with library(self.target.path):
                self._structure()
        if self.raw:
            write_elements(self.raw, file, self.target)

    def _ask(self, array: Array) -> None:
        """Ask for the data early, so that it is refused before space is allocated for it."""
        if array.extent is None and array.count:
            _ = array.data
            if array.nbytes > self.target.max_memory:  # its source may have changed since planning
                next(blocks(array, 1 << 16), None)

    # structure

    def _group(self, path: str) -> Any:
        """The group of this path, which is created if it does not exist."""
        if path not in self.groups:
            above, _, name = path.rpartition("/")
            parent = self._group(above)
            plist = created(h5p.GROUP_CREATE)
            plist.set_link_creation_order(TRACKED)
            self.groups[path] = h5g.create(parent, name.encode(), utf8(), plist)
            self.paths.add(path)
        return self.groups[path]

    def _link(self, path: str, oid: Any) -> None:
        above, _, name = path.rpartition("/")
        h5o.link(oid, self._group(above), name.encode(), lcpl=utf8())
        self.paths.add(path)

    def _unlinked(self, tid: h5t.TypeID, space: h5s.SpaceID, plist: Any = None) -> h5d.DatasetID:
        """A new dataset without a name."""
        return h5d.create(self.groups[""], None, tid, space, plist or created(h5p.DATASET_CREATE))

    def _opened(self, name: str) -> h5d.DatasetID:
        """Open the dataset of an array or dimension anew: tens of thousands cannot stay open."""
        return h5d.open(self.groups[""], self.links.get(name, name).encode())

    def _dataset(self, array: Array) -> None:
        """Make one dataset, and write its data if the library must do it."""
        with library(self.target.path):
            tid = self.types[array.name]
            dims = kind_of(tid, DEFAULT).dims
            shape = array.dims[::-1][: array.ndim - len(dims)]
            variable = is_variable(tid)
            chunk = None
            if not variable:
                chunk = chunk_of(shape, tid.get_size(), self.options, self.target.max_memory)
            plist = self._plist(array, tid, chunk, variable)
            space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
            dataset = self._unlinked(tid, space, plist)
            self._link(self.links[array.name], dataset)
        if array.count == 0:
            return
        if variable or chunk is not None:
            self.open_datasets.append(dataset)
        if variable:
            write_strings(array, dataset, tid, shape, self.target)
        elif chunk is not None:
            pieces = raw_blocks(array, self.target, endings_of(tid))
            write_chunks(pieces, array.name, dataset, tid, shape, chunk, self.options, self.target)
        else:
            with library(self.target.path):
                offset = dataset.get_offset()
            if offset is None:
                raise WriteFailed("the library allocated no space", path=self.target.path)
            self.raw.append((offset, array, endings_of(tid)))

    def _plist(self, array: Array, tid: h5t.TypeID, chunk: Any, variable: bool) -> h5p.PropDCID:
        """The properties of a new dataset: layout, filters and fill value."""
        plist = created(h5p.DATASET_CREATE)
        if chunk is not None:
            plist.set_chunk(chunk)
            plist.set_fill_time(h5d.FILL_TIME_NEVER)
            if self.options.filter and self.options.shuffle and tid.get_size() > 1:
                plist.set_shuffle()
            if self.options.filter == "gzip":
                plist.set_deflate(self.options.level)
            elif self.options.filter == "lzf":
                plist.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
        elif not variable:
            plist.set_layout(h5d.CONTIGUOUS)
            plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5d.FILL_TIME_NEVER)
        own = array.meta.formats.get(NAMESPACE, {})
        usual = usual_fill(array.element)
        missing = array.meta.attributes.get(MISSING, usual) if self.netcdf else None
        _set_fill_value(plist, array, own.get("fillvalue", missing))
        return plist

    def _structure(self) -> None:
        """Write groups, attributes, scales and links, after all datasets."""
        for path in self.bundle.groups:
            if may_be_group(path, self.taken):
                self._group(path)
        self._dimensions()
        self._empties()
        attached = self._scales()
        for array in self.bundle.arrays:
            self._describe(array, attached.get(array.name))
        self._describe_groups()
        self._links()
        self._aliases()

    def _free(self, path: Any) -> bool:
        """True if an object that is not an array can be written at this path."""
        return isinstance(path, str) and path not in self.paths and may_be_group(path, self.taken)

    def _dimensions(self) -> None:
        """Write the netCDF dimensions that have no variable: scales without data."""
        lengths = scales.lengths_of(self.bundle.arrays, self.links)
        for path, facts in _mapping(self.space.get("dimensions")).items():
            if not self._free(path):
                continue
            try:
                tid, length = type_of(facts["type"]), int(facts["length"])
                # Not if an axis of this name was cut; a length of 0 is unlimited.
                if length and length not in lengths.get(path, {length}):
                    continue
                dataset = self._unlinked(tid, h5s.create_simple((length,)))
                h5ds.set_scale(dataset, facts["name"].encode())
            except PROBLEMS:  # the record was edited
                continue
            self._link(path, dataset)
            self.scales.add(path)
            self.lengths[path] = length
            values = _mapping(facts.get("attributes"))
            values = _unnumbered(values) if self.netcdf else values
            write_each(dataset, values, _mapping(facts.get("types")))

    def _empties(self) -> None:
        """Write the datasets with a null space, which are not arrays."""
        for path, facts in _mapping(self.space.get("empty")).items():
            if not self._free(path):
                continue
            try:
                dataset = self._unlinked(type_of(facts["type"]), h5s.create(h5s.NULL))
            except PROBLEMS:  # the record was edited
                continue
            self._link(path, dataset)
            write_each(dataset, _mapping(facts.get("attributes")), _mapping(facts.get("types")))

    # scales

    def _scales(self) -> dict[str, bool]:
        """Attach scales; return True for each array whose axes a reader gets from them in full."""
        for array in self.bundle.arrays:
            name = array.meta.formats.get(NAMESPACE, {}).get("scale")
            if isinstance(name, str):
                h5ds.set_scale(self._opened(array.name), _utf8_bytes(name))
                self.scales.add(array.name)
            elif is_own(array, self.links[array.name]):
                name = array.meta.axes[0].name or ""
                h5ds.set_scale(self._opened(array.name), _utf8_bytes(name))
                self.scales.add(array.name)
                self.coordinates[self.links[array.name]] = array
        by_name = {**self.there, **{array.name: array for array in self.bundle.arrays}}
        cache: dict[str, dict[str, Any]] = {}
        outer = sorted(self.bundle.arrays, key=lambda array: self.links[array.name].count("/"))
        return {
            array.name: self._attach(array, by_name, cache)
            for array in outer
            if any(array.meta.axes) or self.netcdf
        }

    def _coordinate_of(self, array: Array, axes: list[Axis], index: int) -> Array | None:
        """The nearest array in the groups around another one that has the values of an axis."""
        name = shared_name(axes[index], axes[:index])
        if array.name in self.scales or not name:  # a scale gets no scale
            return None
        link = self.links[array.name]
        path = link[: link.rfind("/") + 1] + name
        return scales.values_around(path, array.dims[::-1][index], self.coordinates)

    def _attach(self, array: Array, by_name: dict[str, Array], cache: dict[str, Any]) -> bool:
        """Attach the remembered scales of an array, else make some; True if they hold its axes."""
        dataset = self._opened(array.name)
        axes = list(array.ra_axes[::-1]) or [Axis()] * array.ndim
        dims = array.dims[::-1]
        entries = scales.matched(array) or [None] * array.ndim
        entries_made = []
        for index, entry in enumerate(entries[: dataset.rank]):
            axis = axes[index]
            attached: list[str] = []
            for path in entry["scales"] if entry else ():
                if path in self.scales and path != array.name:
                    h5ds.attach_scale(dataset, self._opened(path), index)
                    attached.append(path)
            scale = self._coordinate_of(array, axes, index)
            if not attached and scale is not None:
                h5ds.attach_scale(dataset, self._opened(scale.name), index)
                attached.append(scale.name)
            if not attached and array.name not in self.scales:
                attached += self._shared(array, index)
            itself = array.name in self.scales and is_own(array, self.links[array.name])
            # A dimension that had no scale gets none, unless its axis has values.
            had_none = (
                entry is not None and not self.netcdf and values_of(axis, dims[index]) is None
            )
            made = None
            if array.name not in self.scales and not attached and not had_none:
                made = self._make_scale(array, index)
            # To netCDF a label is an attribute like others: there the name of the scale is enough.
            named = itself or (self.netcdf and made is not None and _last(made) == axis.name)
            labelled = axis.name and (not attached or (entry and entry["label"])) and not named
            label = axis.name if labelled else None
            if label and "\0" not in label and not _surrogates(label):
                h5ds.set_label(dataset, index, label.encode())
            else:
                label = None
            name = label or (_last(attached[0]) if attached else "")
            name = axis.name or "" if named else name
            entries_made.append({"axis": name, "label": bool(label), "scales": attached})
        again = scales.axes_of(entries_made, array, by_name, cache, DEFAULT)
        wanted = [axis.to_dict() for axis in array.ra_axes]
        read_back = [axis.to_dict() for axis in again]
        # Scales may have more facts than the axes, which a record could not remove.
        pairs = zip(read_back, wanted, strict=False)
        return len(read_back) == len(wanted) and all(
            {**from_scale, **facts} == from_scale for from_scale, facts in pairs
        )

    def _shared(self, array: Array, index: int) -> list[str]:
        """Attach the scale that the file already has for an axis; return [its path], or []."""
        axes = coordinates(array.ra_axes, array.meta.space)[::-1] or [Axis()] * array.ndim
        name = shared_name(axes[index], axes[:index])
        if not name:
            return []
        link = self.links[array.name]
        path = f"{link[: link.rfind('/') + 1]}{component(name)}"
        path = self._nearest(path, axes[index], array.dims[::-1][index])
        if path is None:
            return []
        h5ds.attach_scale(self._opened(array.name), self._opened(path), index)
        return [path]

    def _nearest(self, path: str, axis: Axis, length: int) -> str | None:
        """The path of the nearest dimension for an axis without values; None for another length.

        Dimensions of a group are those of the groups in it, too. `path` is in the group itself.
        """
        if axis.units or values_of(axis, length) is not None:
            return None
        nearest = next((scale for scale in scales.around(path) if scale in self.lengths), None)
        if nearest is None or self.lengths[nearest] not in (0, length):
            return None
        return nearest

    def _make_scale(self, array: Array, index: int) -> str | None:
        """Attach a scale made from the metadata of an axis, for other programs; return its path.

        Axes of one group with the same facts share it, as dimensions of netCDF do. For an axis
        without values, the scale has only a length. None if its path is taken.
        """
        axes = coordinates(array.ra_axes, array.meta.space)[::-1] or [Axis()] * array.ndim
        axis, length = axes[index], array.dims[::-1][index]
        above, _, name = self.links[array.name].rpartition("/")
        above += "/" * bool(above)
        path = above + component(shared_name(axis, axes[:index]))
        says = says_of(axis, length)
        if path != above + "_" and self.made.get(path) != says and not self._may_be(path):
            path = above + "_"
        if path == above + "_":
            last = str(index) if "/" in (axis.name or "") else component(axis.name or str(index))
            path = f"{above}{name}.{last}"
        if self.made.get(path) != says:
            if not self._may_be(path):
                return None
            self.made[path] = says
            self._new_scale(path, axis, length, array)
        h5ds.attach_scale(self._opened(array.name), self._opened(path), index)
        return path

    def _may_be(self, path: str) -> bool:
        """True if a new scale can have this path."""
        return self._free(path) and path not in self.aliases

    def _new_scale(self, path: str, axis: Axis, length: int, array: Array) -> None:
        """Write the scale of an axis: numbers, texts, or nothing but a length."""
        values = values_of(axis, length)
        name = _utf8_bytes(axis.name or "")
        if values is None:
            tid = memory = type_of(">f4")  # as the netCDF library does
            buffer = None
            name = f"{scales.NO_VARIABLE}.{length:10}".encode()
        elif isinstance(values, list):
            tid = type_of({"class": "string", "padding": "nullterm", "charset": "utf-8"})
            memory = kind_of(tid, DEFAULT).memory
            buffer = np.empty(len(values), object)
            buffer[:] = [_utf8_bytes(value) for value in values]
        else:
            tid = memory = type_of("<i8" if values.dtype.kind == "i" else "<f8")
            buffer = values
        dataset = self._unlinked(tid, h5s.create_simple((length,)))
        if buffer is not None:
            dataset.write(h5s.ALL, h5s.ALL, buffer, memory)
        h5ds.set_scale(dataset, name)
        if axis.units:
            write_attribute(dataset, "units", axis.units)
        for attribute, text in calendar_of(array, axis).items():
            write_attribute(dataset, attribute, text)
        if not self.netcdf or values is not None or _last(path) != axis.name:
            write_record(dataset, axis_of=array.name)
        elif not axis.units:
            self.lengths[path] = length
        self._link(path, dataset)

    # attributes

    def _describe(self, array: Array, axes_in_scales: bool | None) -> None:
        """Write the metadata of an array: as attributes, the rest in a record (one attribute)."""
        own = _mapping(array.meta.formats.get(NAMESPACE))
        fields, was = roundtrip.record_of(array), self._was(array)
        if not fields and not was:
            return
        dataset = self._opened(array.name)
        common = common_names(fields)
        values, others = divided(fields, common, reserved(scale=array.name in self.scales))
        if self.netcdf or self.made or self.numbered:  # the dimensions changed
            values = _unnumbered(values)
        write_each(dataset, self.times.get(array.name, {}), {})
        types = self._types(own.get("attributes"), array.element)
        left = self._write_each(dataset, values, types)
        record = {field: fields[field] for name, field in common.items() if name in left}
        rest = {**others, **{name: value for name, value in left.items() if name not in common}}
        formats = {n: space for n, space in fields.get("formats", {}).items() if n != NAMESPACE}
        if rest:
            record["attributes"] = rest
        if formats:
            record["formats"] = formats
        if axes_in_scales is False and fields.get("axes"):
            record["axes"] = fields["axes"]
        if "space" in fields:
            record["space"] = fields["space"]
        if fields.get("encoding") and not self._is_marked_utf8(array):
            record["encoding"] = fields["encoding"]
        if was:
            record["was"] = was
        write_record(dataset, **record)

    def _is_marked_utf8(self, array: Array) -> bool:
        """True for bytes (S) whose type in the file is a string in UTF-8."""
        tid = self.types[array.name]
        is_string = tid.get_class() == h5t.STRING and tid.get_cset() == h5t.CSET_UTF8
        return is_string and is_utf8(array)

    def _types(self, remembered: Any, element: Element) -> dict[str, Any]:
        """The types of the attributes of an array that are not the usual ones."""
        missing = type_of_missing(element) if self.netcdf else None
        return {**({MISSING: missing} if missing else {}), **_mapping(remembered)}

    def _write_each(self, oid: Any, values: dict[str, Any], types: Any) -> dict[str, Any]:
        """Write attributes; return those that no attribute can hold, as they were."""
        types = _mapping(types)
        left = write_each(oid, as_vectors(values, types) if self.netcdf else values, types)
        return {name: values[name] for name in left}

    def _was(self, array: Array) -> dict[str, Any]:
        """Return the record of an array's name and type; empty if its dataset has the same."""
        element = array.element
        if element.kind == "user" and element.descr is not None:
            tid = self.types[array.name]
            element = kind_of(tid, DEFAULT).element or (
                _bytes_of(element) if is_text(element) else element
            )
        name = self.links[array.name]
        if (name, element) == (array.name, array.element):
            return {}
        back = array.replace(name=name, element=element)
        return roundtrip.difference(array, array, back)

    def _describe_groups(self) -> None:
        types = _mapping(self.space.get("groups"))
        for path, values in self.bundle.groups.items():
            group = self.groups.get(path)
            if group is None:
                continue
            left = self._write_each(group, values, types.get(path))
            if left:
                write_record(group, attributes=left)
        root = self.groups[""]
        hidden = _mapping(self.space.get("provenance"))
        write_each(root, _mapping(hidden.get("attributes")), _mapping(hidden.get("types")))
        left = self._write_each(root, self.bundle.attributes, self.space.get("attributes"))
        record: dict[str, Any] = {"attributes": left} if left else {}
        kept = roundtrip.record_of_file(self.bundle).get("formats", {})
        formats = {name: space for name, space in kept.items() if name != NAMESPACE}
        if formats:
            record["formats"] = formats
        unwritten = {path: v for path, v in self.bundle.groups.items() if path not in self.groups}
        if unwritten:
            record["groups"] = unwritten
        if self._walked() != self.bundle.names:
            record["order"] = self.bundle.names
        write_record(root, **record)

    def _walked(self) -> list[str]:
        """The names of the arrays in the order in which reading will list them."""
        tree: dict[str, Any] = {}
        for name in self.bundle.names:
            *above, last = self.links[name].split("/")
            here = tree
            for part in above:
                here = here.setdefault(part, {})
            here[last] = name
        names: list[str] = []
        stack = [iter(tree.values())]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            elif isinstance(inner, dict):
                stack.append(iter(inner.values()))
            else:
                names.append(inner)
        return names

    def _links(self) -> None:
        """Write the further names of objects, and links that lead nowhere, as the file had them."""
        paths = {**{link: link for link in self.paths}, **self.links, "": ""}
        for path, kind, target in kept_links(self.bundle, self.space):
            if not self._free(path):
                continue
            above, _, name = path.rpartition("/")
            if above and above not in self.groups:
                continue
            group = self.groups[above]
            if kind == "hard" and isinstance(target, str) and paths.get(target) is not None:
                target_path = paths[target].encode()
                oid = h5o.open(self.groups[""], target_path) if target_path else self.groups[""]
                h5o.link(oid, group, name.encode(), lcpl=utf8())
            elif kind == "soft" and isinstance(target, str) and target:
                raw = target.encode("utf-8", "surrogateescape")
                group.links.create_soft(name.encode(), raw, lcpl=utf8())
            elif kind == "external" and isinstance(target, list) and len(target) == 2:
                file, path_in = (part.encode("utf-8", "surrogateescape") for part in target)
                group.links.create_external(name.encode(), file, path_in, lcpl=utf8())

    def _aliases(self) -> None:
        """Write the further names that are not among the links of the file."""
        first: dict[str, int] = {}  # index of each path in the order of making
        for index, path in enumerate(self._in_order()):
            first.setdefault(path, index)
        for path, target in self.aliases.items():
            if not self._free(path):
                continue
            here, there = _parting(path, target)
            if target and first.get(here, len(first)) < first.get(there, len(first)):
                # Reading would come to a hard link before it comes to the name of the array.
                above, _, name = path.rpartition("/")
                group = self._group(above)
                group.links.create_soft(name.encode(), f"/{target}".encode(), lcpl=utf8())
                self.paths.add(path)
            else:
                self._link(path, h5o.open(self.groups[""], target.encode() or b"/"))

    def _in_order(self) -> Iterator[str]:
        """Yield the paths of arrays and groups, with those around them, in the order of making."""
        for path in (*self.links.values(), *self.groups):
            yield from (*parents(path), path)


def _parting(path: str, other: str) -> tuple[str, str]:
    """The beginnings of two paths up to the first part in which they differ."""
    here, there = path.split("/"), other.split("/")
    same = 0
    while same < min(len(here), len(there)) - 1 and here[same] == there[same]:
        same += 1
    return "/".join(here[: same + 1]), "/".join(there[: same + 1])


def _set_fill_value(plist: h5p.PropDCID, array: Array, value: Any) -> None:
    """Set the recorded fill value of a dataset, if it fits the type."""
    if type(value) in (int, float) and array.element.kind in ("int", "uint", "float"):
        try:
            dtype = dtype_of(little(array.element))
            is_float = dtype.kind == "f"
            number = narrowed(np.float64([value]), dtype)[0] if is_float else np.array(value, dtype)
            plist.set_fill_value(np.asarray(number))
        except (OverflowError, ValueError):  # the array has another type now
            pass


def _bytes_of(element: Element) -> Element:
    """The element of UTF-8 bytes of the width that a text (U) has."""
    return element._replace(descr=f"|S{element.nbytes}")


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _unnumbered(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in NUMBERS}


def _surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _utf8_bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


# Metadata as HDF5 attributes, and the record of the rest ----------------------------------------
# The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On a dataset:
# what HDF5 does not hold (axes, other formats' namespaces, values that no attribute can be), what
# the array `was`, and `axis_of` on scales made from an axis. On a group: `attributes`. On the root:
# the record of the file, with `groups` that no link can name, and the `order` of the arrays.


def write_record(oid: Any, **record: Any) -> None:
    """Write a record as an attribute, if it has any field."""
    if record:
        write_attribute(oid, KEY, roundtrip.text_of(record))


def write_each(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that no attribute can hold."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def reserved(*, scale: bool) -> frozenset[str]:
    """The names of attributes that the library uses itself; `scale`: of a dimension scale."""
    return scales.ALWAYS | (scales.ON_SCALES if scale else frozenset())
