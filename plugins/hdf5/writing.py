"""From a bundle to an HDF5 file that the tools of HDF5 1.10 read, the same bytes every time.

First the library makes the structure: groups, datasets with their space already allocated,
attributes, and all data that it has to encode itself. Then the file is closed, and the elements of
contiguous datasets are copied to where they belong, past the library.
"""

from __future__ import annotations

import os
import zlib
from collections import namedtuple
from contextlib import contextmanager
from itertools import product
from math import prod

import numpy as np
from h5py import h5d, h5ds, h5f, h5g, h5o, h5p, h5s, h5t, h5z

from raconvert import sidecar
from raconvert.blocks import LARGEST_BLOCK, block_bytes, blocks, check_memory
from raconvert.elements import code_of, little
from raconvert.errors import Unsupported, UsageError, WriteFailed
from raconvert.plugin import Fit, dtype_of, equivalent, refused
from raconvert.transfer import copy_extent_to, reserve, write_all

from . import scales
from .attributes import write_attribute
from .errors import FAILURES, PROBLEMS, reason_of
from .kept import KEPT, packed
from .types import (
    MAX_TYPE_BYTES,
    encoded,
    is_text,
    is_variable,
    kind_of,
    type_of,
    type_of_element,
    utf8_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any

    from raconvert.plugin import Array, Bundle, Extent, Target

    Values = np.ndarray[Any, Any]

NAMESPACE = "hdf5"
MAX_RANK = 32  # H5S_MAX_RANK
UNNAMED = "data"  # the link of an array without a name
CHUNK_BYTES = 1 << 20
ALIGN_FROM, ALIGN = 1 << 20, 4096  # data of large datasets begins on a page border
DEFAULT_LEVEL = 4
MAX_CHUNK_BYTES = (1 << 32) - 1
TRACKED = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED

# What the options say: filter is None, "gzip" or "lzf"; chunk is "auto", None or a shape;
# strings is "auto" (of variable length where they once were) or "fixed".
Plan = namedtuple("Plan", "filter level chunk shuffle strings")


def plan_of(compress: str, chunks: str, shuffle: bool, strings: str) -> Plan:
    """Return the options as a plan; `UsageError` where one of them is not understood."""
    name, _, level = compress.partition(":")
    if name not in ("none", "gzip", "lzf") or (level and name != "gzip"):
        raise UsageError(f"option compress={compress} is not understood",
                         expected="none, gzip, gzip:0 to gzip:9, or lzf")  # fmt: skip
    if level and not (level.isascii() and level.isdecimal() and int(level) <= 9):
        raise UsageError(f"option compress={compress} has no such level", expected="0 to 9")
    chunk: Any = {"auto": "auto", "none": None}.get(chunks, "")
    if chunk == "":
        parts = chunks.split(",")
        if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
            raise UsageError(f"option chunks={chunks} is not understood",
                             expected="auto, none, or a length for each axis as 64,64")  # fmt: skip
        chunk = tuple(map(int, parts))
    if chunk is None and name != "none":
        raise UsageError(f"compress={compress} needs chunks", expected="chunks=auto, or a shape")
    found = None if name == "none" else name
    return Plan(found, int(level) if level else DEFAULT_LEVEL, chunk, shuffle, strings)


# --- judging --------------------------------------------------------------------------------------


def fits_of(bundle: Bundle, plan: Plan) -> list[Fit]:
    """Return what HDF5 keeps in another form, or cannot hold."""
    found: list[Fit] = []
    names: set[str] = set()
    links = link_names(bundle.names)
    for array, link in zip(bundle.arrays, links, strict=True):
        if array.name in names:
            found.append(refused(array.name, "names", "the name is used twice"))
        elif link != array.name:
            reason = f"no link can have this name; it is '{link}', and the name is kept beside it"
            found.append(equivalent(array.name, "names", reason))
        names.add(array.name)
        found += _array_fits(array, plan)
    return found


def _array_fits(array: Array, plan: Plan) -> Iterator[Fit]:
    name = array.name
    if array.ndim > MAX_RANK:
        reason = f"{array.ndim} axes; HDF5 takes at most {MAX_RANK}"
        yield refused(name, "shape", reason)
    if isinstance(plan.chunk, tuple) and array.ndim and len(plan.chunk) != array.ndim:
        reason = f"chunks of {len(plan.chunk)} axes do not fit its {array.ndim}"
        yield refused(name, "storage", reason)
    yield from _type_fits(array, plan)
    if array.meta.items is not None:
        yield equivalent(
            name, "metadata", "what the items of a stack have of their own is left out"
        )
    elif array.late is not None and array.meta:
        reason = "what is known only when all items were read came too late for the attributes"
        yield equivalent(name, "metadata", reason)


def _type_fits(array: Array, plan: Plan) -> Iterator[Fit]:
    element, name = array.element, array.name
    if element.kind != "user":
        return
    if not 0 < element.nbytes < 1 << 31:
        yield refused(name, "type", f"elements of {element.nbytes} bytes; HDF5 takes 1 to 2**31-1")
        return
    try:
        tid = file_type(array, plan)
        nbytes = len(tid.encode())
    except PROBLEMS as error:
        yield refused(name, "type", f"its type has no form in HDF5 ({reason_of(error)})")
        return
    if nbytes > MAX_TYPE_BYTES:
        yield refused(name, "type", f"its description needs {nbytes} bytes, HDF5 takes 64 KiB")
    elif is_text(element):
        yield equivalent(name, "type", "text becomes UTF-8 in strings of fixed width")
    elif _has_tags(element.descr):
        reason = (
            "dates and texts become opaque bytes with h5py's tag, which other tools do not read"
        )
        yield equivalent(name, "type", reason)


def _has_tags(descr: Any) -> bool:
    if isinstance(descr, str):
        return descr[1:2] in "mMU"
    return any(_has_tags(field[1]) for field in descr or ())


def file_type(array: Array, plan: Plan) -> h5t.TypeID:
    """Return the type in which an array is written: the remembered one, if it still is its own."""
    element = little(array.element)
    description = array.meta.formats.get(NAMESPACE, {}).get("type")
    if description is not None:
        try:
            tid = type_of(description, None if element.kind == "user" else "<")
            if _is_type_of(tid, array) and not (is_variable(tid) and plan.strings == "fixed"):
                return tid
        except PROBLEMS:  # edited, or another plugin's
            pass
    return utf8_type(element) if is_text(element) else type_of_element(element)


def _is_type_of(tid: h5t.TypeID, array: Array) -> bool:
    """Tell whether elements can be written in this type as they are, or as variable strings."""
    kind = kind_of(tid, bits_are_bools=array.element.kind == "bool")
    if kind.dims and array.dims[: len(kind.dims)] != kind.dims[::-1]:
        return False
    if kind.element is None:
        return str(array.element.descr).startswith("|S")
    return kind.memory is None and kind.element == little(array.element)


def link_names(names: list[str]) -> list[str]:
    """Return a path of links for each name: the name itself wherever HDF5 can have it."""
    datasets: set[str] = set()
    groups: set[str] = set()
    links = []
    for name in names:
        link = "/".join(_component(part) for part in name.split("/")) if name else UNNAMED
        number = 1
        plain = link
        while not _is_free(link, datasets, groups):
            number += 1
            link = f"{plain.replace('/', '_')}_{number}"
        datasets.add(link)
        groups.update(_parents(link))
        links.append(link)
    return links


def _component(part: str) -> str:
    part = part.encode("utf-8", "backslashreplace").decode().replace("\0", "_")
    return {"": "_", ".": "_"}.get(part, part)


def _parents(link: str) -> list[str]:
    return [link[:at] for at, letter in enumerate(link) if letter == "/"]


def _is_free(link: str, datasets: set[str], groups: set[str]) -> bool:
    return link not in datasets and link not in groups and datasets.isdisjoint(_parents(link))


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def _library(path: str) -> Iterator[None]:
    """Turn what h5py raises while it writes into `WriteFailed`."""
    try:
        yield
    except FAILURES as error:
        raise WriteFailed(
            f"cannot be written: {reason_of(error)}",
            path=path,
            remedy="the destination is as it was before",
        ) from error


class Writer:
    """One file being written: the library's handle, groups made so far, elements yet to copy."""

    def __init__(self, bundle: Bundle, target: Target, plan: Plan) -> None:
        self.bundle = bundle
        self.target = target
        self.plan = plan
        self.links = dict(zip(bundle.names, link_names(bundle.names), strict=True))
        self.groups: dict[str, Any] = {}
        self.datasets: dict[str, h5d.DatasetID] = {}  # by the name in the bundle
        self.taken = frozenset(self.links.values())
        self.paths: set[str] = set()
        self.scales: set[str] = set()  # names of datasets that are dimension scales
        self.raw: list[tuple[int, Array]] = []
        space = bundle.formats.get(NAMESPACE)
        self.space: dict[str, Any] = space if isinstance(space, dict) else {}

    def run(self) -> None:
        """Write the whole file."""
        for array in self.bundle.arrays:
            self._ask(array)
        file = self.target.open()
        with _library(self.target.path):
            fid = _create(self.target.temp)
            self.groups[""] = h5o.open(fid, b"/")
        try:
            for array in self.bundle.arrays:
                self._dataset(array)
            with _library(self.target.path):
                self._structure()
        finally:
            with _library(self.target.path):
                fid.close()
        if self.raw:
            self._elements(file)

    def _ask(self, array: Array) -> None:
        """Let data that is refused when it is asked for be so before it is given any room."""
        if array.extent is None and array.count:
            _ = array.data
            if array.nbytes > self.target.max_memory:  # changed on the way, maybe: its source
                next(blocks(array, 1 << 16), None)

    # structure

    def _group(self, path: str) -> Any:
        """Return the group of this path, made where it was not there."""
        if path not in self.groups:
            above, _, name = path.rpartition("/")
            parent = self._group(above)
            plist = _created(h5p.GROUP_CREATE)
            plist.set_link_creation_order(TRACKED)
            self.groups[path] = h5g.create(parent, name.encode(), _utf8(), plist)
            self.paths.add(path)
        return self.groups[path]

    def _link(self, path: str, oid: Any) -> None:
        above, _, name = path.rpartition("/")
        h5o.link(oid, self._group(above), name.encode(), lcpl=_utf8())
        self.paths.add(path)

    def _dataset(self, array: Array) -> None:
        """Make one dataset, and write its data if the library must do it."""
        with _library(self.target.path):
            tid = file_type(array, self.plan)
            dims = kind_of(tid, bits_are_bools=array.element.kind == "bool").dims
            shape = array.dims[::-1][: array.ndim - len(dims)]
            variable = is_variable(tid)
            chunk = None if variable else chunk_of(shape, tid.get_size(), self.plan)
            plist = self._plist(array, tid, chunk, variable)
            space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
            dataset = h5d.create(self.groups[""], None, tid, space, plist)
            self._link(self.links[array.name], dataset)
            self.datasets[array.name] = dataset
        if array.count == 0:
            return
        if variable:
            self._strings(array, dataset, tid, shape)
        elif chunk is not None:
            self._chunks(array, dataset, tid, shape, chunk)
        else:
            with _library(self.target.path):
                offset = dataset.get_offset()
            if offset is None:
                raise WriteFailed("the library gave a dataset no place", path=self.target.path)
            self.raw.append((offset, array))

    def _plist(self, array: Array, tid: h5t.TypeID, chunk: Any, variable: bool) -> h5p.PropDCID:
        plist = _created(h5p.DATASET_CREATE)
        if chunk is not None:
            plist.set_chunk(chunk)
            plist.set_fill_time(h5d.FILL_TIME_NEVER)
            if self.plan.filter and self.plan.shuffle and tid.get_size() > 1:
                plist.set_shuffle()
            if self.plan.filter == "gzip":
                plist.set_deflate(self.plan.level)
            elif self.plan.filter == "lzf":
                plist.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
        elif not variable:
            plist.set_layout(h5d.CONTIGUOUS)
            plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5d.FILL_TIME_NEVER)
        _set_fill_value(plist, array)
        return plist

    def _structure(self) -> None:
        """Write groups, attributes, scales and links, when all datasets are there."""
        for path in self.bundle.groups:
            if self._may_be_group(path):
                self._group(path)
        self._dimensions()
        self._empties()
        attached = self._scales()
        for array in self.bundle.arrays:
            self._describe(array, attached.get(array.name))
        self._describe_groups()
        self._links()

    def _may_be_group(self, path: str) -> bool:
        parts = path.split("/") if isinstance(path, str) else [""]
        if any(_component(part) != part for part in parts):
            return False
        return path not in self.taken and self.taken.isdisjoint(_parents(path))

    def _free(self, path: Any) -> bool:
        """Tell whether something that is no array may be put at this path."""
        return isinstance(path, str) and path not in self.paths and self._may_be_group(path)

    def _dimensions(self) -> None:
        """Write the netCDF dimensions that have no variable: scales without data."""
        for path, facts in _mapping(self.space.get("dimensions")).items():
            if not self._free(path):
                continue
            try:
                tid, length = type_of(facts["type"]), int(facts["length"])
                plist = _created(h5p.DATASET_CREATE)
                space = h5s.create_simple((length,))
                dataset = h5d.create(self.groups[""], None, tid, space, plist)
                h5ds.set_scale(dataset, facts["name"].encode())
            except PROBLEMS:  # not as this plugin left it
                continue
            self._link(path, dataset)
            self.datasets[path] = dataset
            self.scales.add(path)
            _write_all(dataset, _mapping(facts.get("attributes")), _mapping(facts.get("types")))

    def _empties(self) -> None:
        """Write the datasets with a null space, which are no arrays."""
        for path, facts in _mapping(self.space.get("empty")).items():
            if not self._free(path):
                continue
            try:
                tid = type_of(facts["type"])
                plist = _created(h5p.DATASET_CREATE)
                dataset = h5d.create(self.groups[""], None, tid, h5s.create(h5s.NULL), plist)
            except PROBLEMS:  # not as this plugin left it
                continue
            self._link(path, dataset)
            _write_all(dataset, _mapping(facts.get("attributes")), _mapping(facts.get("types")))

    # scales

    def _scales(self) -> dict[str, bool]:
        """Attach scales; return for each array whether its axes are all told by that."""
        for array in self.bundle.arrays:
            name = array.meta.formats.get(NAMESPACE, {}).get("scale")
            if isinstance(name, str):
                h5ds.set_scale(self.datasets[array.name], _utf8_bytes(name))
                self.scales.add(array.name)
        by_name = {array.name: array for array in self.bundle.arrays}
        cache: dict[str, dict[str, Any]] = {}
        return {
            array.name: self._attach(array, by_name, cache)
            for array in self.bundle.arrays
            if array.meta.axes
        }

    def _attach(self, array: Array, by_name: dict[str, Array], cache: dict[str, Any]) -> bool:
        """Attach the remembered scales of an array, else make some; True if they say it all."""
        dataset = self.datasets[array.name]
        entries = scales.matched(array)
        told = []
        for index, entry in enumerate(entries[: dataset.rank]):
            axis = array.meta.axes[::-1][index]
            kept: list[str] = []
            for path in entry["scales"] if entry else ():
                if path in self.scales and path != array.name:
                    h5ds.attach_scale(dataset, self.datasets[path], index)
                    kept.append(path)
            label = axis.name if axis.name and (not kept or (entry and entry["label"])) else None
            if label and "\0" not in label and not _surrogates(label):
                h5ds.set_label(dataset, index, label.encode())
            else:
                label = None
            name = label or (kept[0].rsplit("/", 1)[-1] if kept else "")
            told.append({"axis": name, "label": bool(label), "scales": kept})
            if not kept:
                self._make_scale(array, index)
        again = scales.axes_of(told, array, by_name, cache)
        wanted = [axis.to_dict() for axis in array.meta.axes]
        return [axis.to_dict() for axis in again] == wanted

    def _make_scale(self, array: Array, index: int) -> None:
        """Make a scale from what an axis says, for other programs; ours read the axis itself."""
        axis = array.meta.axes[::-1][index]
        values = scales.values_of(axis, array.dims[::-1][index])
        if values is None:
            return
        above, _, name = self.links[array.name].rpartition("/")
        path = f"{above}/" * bool(above) + f"{name}.{_component(axis.name or str(index))}"
        path = (
            path if "/" not in (axis.name or "") else f"{above}/" * bool(above) + f"{name}.{index}"
        )
        if not self._free(path):
            return
        if isinstance(values, list):
            tid = type_of({"class": "string", "padding": "nullterm", "charset": "utf-8"})
            memory = kind_of(tid).memory
            buffer = np.empty(len(values), object)
            buffer[:] = [_utf8_bytes(value) for value in values]
        else:
            tid = memory = type_of("<f8")
            buffer = values
        plist = _created(h5p.DATASET_CREATE)
        space = h5s.create_simple(buffer.shape)
        dataset = h5d.create(self.groups[""], None, tid, space, plist)
        dataset.write(h5s.ALL, h5s.ALL, buffer, memory)
        h5ds.set_scale(dataset, _utf8_bytes(axis.name or ""))
        if axis.units:
            write_attribute(dataset, "units", axis.units)
        write_attribute(dataset, KEPT, packed({"axis_of": array.name}))
        self._link(path, dataset)
        h5ds.attach_scale(self.datasets[array.name], dataset, index)

    # attributes

    def _describe(self, array: Array, told: bool | None) -> None:
        """Write the metadata of an array: attributes, and what is none in the attribute of ours."""
        dataset = self.datasets[array.name]
        own = _mapping(array.meta.formats.get(NAMESPACE))
        fields = sidecar.fields_of(array, NAMESPACE)
        common = _common_names(fields, own)
        values, kept = _placed(fields, common, array.name in self.scales)
        left = _write_all(dataset, values, _mapping(own.get("attributes")))
        again = {field: fields[field] for name, field in common.items() if name in left}
        rest = {**kept, **{name: value for name, value in left.items() if name not in common}}
        formats = {n: space for n, space in fields.get("formats", {}).items() if n != NAMESPACE}
        if rest:
            again["attributes"] = rest
        if formats:
            again["formats"] = formats
        if told is False and fields.get("axes"):
            again["axes"] = fields["axes"]
        if fields.get("encoding") and "charset" not in _mapping(own.get("type")):
            again["encoding"] = fields["encoding"]
        again.update(self._names(array))
        if again:
            write_attribute(dataset, KEPT, packed(again))

    def _names(self, array: Array) -> dict[str, Any]:
        """Return name and type of an array where its dataset says something else."""
        found: dict[str, Any] = {}
        if self.links[array.name] != array.name:
            found["name"] = array.name
        if array.element.kind == "user" and array.element.descr is not None:
            kind = kind_of(file_type(array, self.plan))
            if kind.element is not None and kind.element != array.element:
                found["dtype"] = code_of(array.element)
        return found

    def _describe_groups(self) -> None:
        types = _mapping(self.space.get("groups"))
        for path, values in self.bundle.groups.items():
            group = self.groups.get(path)
            if group is None:
                continue
            left = _write_all(group, values, _mapping(types.get(path)))
            if left:
                write_attribute(group, KEPT, packed({"attributes": left}))
        root = self.groups[""]
        left = _write_all(root, self.bundle.attributes, _mapping(self.space.get("attributes")))
        again: dict[str, Any] = {"attributes": left} if left else {}
        formats = {n: space for n, space in self.bundle.formats.items() if n != NAMESPACE and space}
        if formats:
            again["formats"] = formats
        lost = {path: v for path, v in self.bundle.groups.items() if path not in self.groups}
        if lost:
            again["groups"] = lost
        if self._walked() != self.bundle.names:
            again["order"] = self.bundle.names
        if again:
            write_attribute(root, KEPT, packed(again))

    def _walked(self) -> list[str]:
        """Return the names in the order in which a walk finds them."""
        tree: dict[str, Any] = {}
        for name in self.bundle.names:
            *above, last = self.links[name].split("/")
            here = tree
            for part in above:
                here = here.setdefault(part, {})
            here[last] = name
        found: list[str] = []
        stack = [iter(tree.values())]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            elif isinstance(inner, dict):
                stack.append(iter(inner.values()))
            else:
                found.append(inner)
        return found

    def _links(self) -> None:
        """Write the second names of objects, and links that lead nowhere, as they were."""
        known = {**{link: link for link in self.paths}, **self.links, "": ""}
        links = self.space.get("links")
        for link in links if isinstance(links, list) else ():
            if not (isinstance(link, list) and len(link) == 3 and self._free(link[0])):
                continue
            path, kind, target = link
            above, _, name = path.rpartition("/")
            if above and above not in self.groups:
                continue
            group = self.groups[above]
            if kind == "hard" and isinstance(target, str) and known.get(target) is not None:
                place = known[target].encode()
                oid = h5o.open(self.groups[""], place) if place else self.groups[""]
                h5o.link(oid, group, name.encode(), lcpl=_utf8())
            elif kind == "soft" and isinstance(target, str) and target:
                raw = target.encode("utf-8", "surrogateescape")
                group.links.create_soft(name.encode(), raw, lcpl=_utf8())
            elif kind == "external" and isinstance(target, list) and len(target) == 2:
                file, path_in = (part.encode("utf-8", "surrogateescape") for part in target)
                group.links.create_external(name.encode(), file, path_in, lcpl=_utf8())

    # data

    def _strings(
        self, array: Array, dataset: h5d.DatasetID, tid: h5t.TypeID, shape: tuple[int, ...]
    ) -> None:
        """Write strings of fixed width as strings of variable length, without their padding."""
        memory = kind_of(tid).memory
        done = 0
        dims = array.dims[::-1]
        limit = max(1, block_bytes(self.target.max_memory) // (array.element.nbytes + 64))
        for block in self.target.counted(blocks(array, limit * array.element.nbytes)):
            values = block.reshape(-1).astype(object)
            if any(b"\0" in value for value in values):
                raise Unsupported(
                    f"array '{array.name}' has strings with a NUL inside, which strings of "
                    "variable length cannot hold",
                    path=self.target.path,
                    remedy="write them in a fixed width with --out-opt strings=fixed",
                )
            with _library(self.target.path):
                for start, count in _boxes(done, len(values), dims):
                    space = dataset.get_space()
                    if shape:
                        space.select_hyperslab(start, count)
                    size = prod(count)
                    piece, values = values[:size], values[size:]
                    box = h5s.create_simple((size,)) if shape else h5s.create(h5s.SCALAR)
                    dataset.write(box, space, np.ascontiguousarray(piece), memory)
                    done += size

    def _chunks(
        self,
        array: Array,
        dataset: h5d.DatasetID,
        tid: h5t.TypeID,
        shape: tuple[int, ...],
        chunk: tuple[int, ...],
    ) -> None:
        """Write a dataset chunk by chunk, encoded in threads outside the library."""
        from concurrent.futures import ThreadPoolExecutor

        item = tid.get_size()
        row = prod((chunk[0], *shape[1:])) * item
        what = f"array '{array.name}': a row of its chunks"
        check_memory(2 * row, self.target.max_memory, what)
        rows = chunk[0] * max(1, min(LARGEST_BLOCK, self.target.max_memory // 8) // row)
        shuffle = self.plan.shuffle and self.plan.filter is not None and item > 1
        level = self.plan.level if self.plan.filter == "gzip" else None
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            start = 0
            for raw in _slabs(self._raw_blocks(array), rows * prod(shape[1:]) * item):
                high = raw.nbytes // (prod(shape[1:]) * item)
                slab = raw.view(f"V{item}").reshape(high, *shape[1:])
                if self.plan.filter == "lzf":
                    self._slab(dataset, tid, slab, start, shape)
                else:
                    places = list(_places(slab.shape, chunk))
                    done = pool.map(lambda at: _chunk(slab, at, chunk, shuffle, level), places)  # noqa: B023
                    for place, data in zip(places, done, strict=True):
                        with _library(self.target.path):
                            at = (start + place[0], *place[1:])
                            dataset.write_direct_chunk(at, data)
                start += high

    def _slab(
        self, dataset: h5d.DatasetID, tid: h5t.TypeID, slab: Values, start: int, shape: Any
    ) -> None:
        """Let the library encode a slab of rows."""
        with _library(self.target.path):
            space = dataset.get_space()
            space.select_hyperslab((start, *(0 for _ in shape[1:])), slab.shape)
            dataset.write(h5s.create_simple(slab.shape), space, slab.copy(), tid)

    def _elements(self, file: FileIO) -> None:
        """Copy the elements of contiguous datasets to their places."""
        size = os.fstat(file.fileno()).st_size
        extents = [array.extent for _, array in self.raw if array.extent is not None]
        if not any(map(_is_sparse, extents)):
            reserve(file, size)
        for offset, array in self.raw:
            if array.extent is not None and not _needs_encoding(array):
                copy_extent_to(array.extent, file, offset, self.target.progress)
                continue
            file.seek(offset)
            for raw in self._raw_blocks(array):
                write_all(file, [raw])

    def _raw_blocks(self, array: Array) -> Iterator[Values]:
        """Yield the bytes of an array as they stand in the file."""
        for block in self.target.counted(blocks(array, block_bytes(self.target.max_memory))):
            yield _encoded(block, array).reshape(-1).view(np.uint8)


def _set_fill_value(plist: h5p.PropDCID, array: Array) -> None:
    """Set the fill value that a dataset once had, where it still is one."""
    value = array.meta.formats.get(NAMESPACE, {}).get("fillvalue")
    if type(value) in (int, float) and array.element.kind in ("int", "uint", "float"):
        try:
            plist.set_fill_value(np.array(value, dtype_of(little(array.element))))
        except (OverflowError, ValueError):  # the array is of another type now
            pass


def _needs_encoding(array: Array) -> bool:
    return array.element.kind == "bool" or is_text(array.element)


def _encoded(block: Values, array: Array) -> Values:
    """Return a block in the bytes that the file has: bools 0 or 1, text in UTF-8."""
    if array.element.kind == "bool":
        return np.not_equal(block.view(np.uint8), 0)
    if is_text(array.element):
        try:
            return encoded(block)
        except ValueError as error:
            raise Unsupported(
                f"array '{array.name}' has elements that are no text: {error}",
                remedy="no flag allows this",
            ) from error
    return block


def _is_sparse(extent: Extent) -> bool:
    status = os.stat(extent.path)
    return getattr(status, "st_blocks", 0) * 512 < status.st_size


def chunk_of(shape: tuple[int, ...], item: int, plan: Plan) -> tuple[int, ...] | None:
    """Return the shape of the chunks of a dataset; None where it is stored in one piece.

    By itself: whole rows of about 1 MiB, so that the file is written and read front to back.
    """
    if not shape or 0 in shape:
        return None
    if isinstance(plan.chunk, tuple):
        chunk = tuple(min(*pair) for pair in zip(plan.chunk, shape, strict=True))
        if prod(chunk) * item > MAX_CHUNK_BYTES:
            raise UsageError("chunks are larger than HDF5 allows", expected="less than 4 GiB")
        return chunk
    if plan.filter is None:
        return None
    chunk_list = list(shape)
    for axis, length in enumerate(shape):
        inner = prod(shape[axis + 1 :]) * item
        chunk_list[axis] = max(1, min(length, CHUNK_BYTES // inner))
        if chunk_list[axis] > 1 or inner < CHUNK_BYTES:
            break
    return tuple(chunk_list)


def _places(shape: tuple[int, ...], chunk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(0, n, c) for n, c in zip(shape, chunk, strict=True)))


def _chunk(
    slab: Values, at: tuple[int, ...], chunk: tuple[int, ...], shuffle: bool, level: int | None
) -> Any:
    """Return the encoded bytes of one chunk; what lies beyond the border is zeros."""
    part = slab[tuple(slice(low, low + n) for low, n in zip(at, chunk, strict=True))]
    if part.shape != chunk:
        whole = np.zeros(chunk, slab.dtype)
        whole[tuple(slice(n) for n in part.shape)] = part
        part = whole
    raw = np.ascontiguousarray(part).view(np.uint8).reshape(-1)
    if shuffle:
        units = raw.reshape(-1, slab.itemsize)
        planes = np.empty(units.shape[::-1], np.uint8)
        for index in range(slab.itemsize):  # plane by plane: half the time of a transposed copy
            planes[index] = units[:, index]
        raw = planes.reshape(-1)
    if level is None:
        return raw.tobytes()
    return _deflated(raw, level)


def _deflated(raw: Values, level: int) -> bytes:
    try:
        import deflate
    except ImportError:  # not built for this machine; zlib does the same, more slowly
        return zlib.compress(raw.data, level)
    return bytes(deflate.zlib_compress(raw.data, level))


def _slabs(pieces: Iterator[Values], nbytes: int) -> Iterator[Values]:
    """Yield the bytes of pieces anew in slabs of `nbytes`; the last one may be shorter."""
    buffer = np.empty(nbytes, np.uint8)
    filled = 0
    for piece in pieces:
        rest = piece
        while rest.size:
            take = min(nbytes - filled, rest.size)
            buffer[filled : filled + take] = rest[:take]
            filled += take
            rest = rest[take:]
            if filled == nbytes:
                yield buffer
                filled = 0
    if filled:
        yield buffer[:filled]


def _boxes(
    done: int, count: int, shape: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield start and count of boxes that together are `count` elements from element `done`."""
    if not shape:
        yield (), ()
        return
    while count:
        axis = 0
        inner = prod(shape[1:])
        while done % inner or count < inner:
            axis += 1
            inner = prod(shape[axis + 1 :])
        index = np.unravel_index(done, shape)
        high = min(count // inner, shape[axis] - int(index[axis]))
        start = tuple(int(i) for i in index[: axis + 1]) + (0,) * (len(shape) - axis - 1)
        yield start, (1,) * axis + (high,) + shape[axis + 1 :]
        done += high * inner
        count -= high * inner


def _create(path: str) -> h5f.FileID:
    """Return a new file: superblock 0, creation order kept, no times."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V110)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    access.set_alignment(ALIGN_FROM, ALIGN)
    plist = _created(h5p.FILE_CREATE)
    plist.set_link_creation_order(TRACKED)
    return h5f.create(os.fsencode(path), h5f.ACC_TRUNC, plist, access)


def _created(kind: h5p.PropClassID) -> Any:
    """Return properties of a new object: order of attributes kept, no times, which would differ."""
    plist = h5p.create(kind)
    plist.set_obj_track_times(False)
    plist.set_attr_creation_order(TRACKED)
    return plist


def _utf8() -> h5p.PropLCID:
    plist = h5p.create(h5p.LINK_CREATE)
    plist.set_char_encoding(h5t.CSET_UTF8)
    return plist


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _utf8_bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _write_all(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that HDF5 has no place for."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def _common_names(fields: dict[str, Any], own: dict[str, Any]) -> dict[str, str]:
    """Return the names of the attributes that stand for common fields which are set."""
    text = "long_name" if own.get("description") == "long_name" else "description"
    names = {"units": "units", text: "description"}
    return {name: field for name, field in names.items() if fields.get(field)}


def _placed(
    fields: dict[str, Any], common: dict[str, str], scale: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split attributes into those that are read back as such, and those that would be no more."""
    reserved = scales.ALWAYS | {KEPT} | (scales.ON_SCALES if scale else frozenset())
    values: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    for name, value in fields.get("attributes", {}).items():
        lost = name in reserved or name in common or _is_field(name, value, fields)
        (kept if lost else values)[name] = value
    return {**values, **{name: fields[field] for name, field in common.items()}}, kept


def _is_field(name: str, value: Any, fields: dict[str, Any]) -> bool:
    """Tell whether reading would take this attribute for a common field."""
    if not isinstance(value, str) or not value:
        return False
    if name == "long_name":
        return not fields.get("description")
    return name in ("units", "description")
