"""Adding or replacing datasets: a copy of the HDF5 file, to which libhdf5 adds them.

All existing objects keep their addresses and their bytes. If the group has a dimension scale with
the name, the length and the values of an axis (or the axis has no values), the new dataset is
attached to it, as netCDF shares dimensions; the library notes that in the attributes of the scale.
A replaced dataset is detached and its name removed: its space stays unused, and references to it
lead nowhere.
"""

from __future__ import annotations

import os

import h5py
import numpy as np
from h5py import h5a, h5d, h5ds, h5g, h5i, h5l, h5o

from raconvert.arrays.interop.conventions import shared_name, values_of
from raconvert.errors import RaconvertError, Unsupported
from raconvert.files.copy import copy_extent
from raconvert.files.paths import name_of_open
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Axis, Plan, array_exists, equivalent, facts_of_axes, not_an_array

from . import dialects, scales
from .attributes import write_attribute
from .creating import closing, library, reopen
from .elements import write_elements
from .files import DATASET, GROUP, guarded, info_of, reading
from .structure import Structure, fits_of, structure_of
from .values import Dataset
from .walk import component, link_names, parents
from .writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Array, Bundle, Fit, Source, Target

    from .structure import Options

_DIMID = "_Netcdf4Dimid"  # the number of a dimension in a file that netCDF wrote
_NETCDF = b"_NCProperties"  # attribute of the root of such a file


def plan_added(
    bundle: Bundle, source: Source, held: Bundle, options: Options, *, overwrite: bool
) -> Plan:
    """Plan the copy of a file with the arrays of a bundle added; `held` are those in the file."""
    paths = {array.name: _path_of(array, source.path) for array in held.arrays}
    links = [paths.get(name) or link_names([name])[0] for name in bundle.names]
    structure: Structure = structure_of(bundle, options)._replace(links=links)
    fits = fits_of(bundle, options, structure)
    notes: list[str] = []
    with guarded(source.path), reading(source) as file:
        _refuse_julia(file, source)
        root = h5o.open(file, b"/")
        for name, link in zip(bundle.names, links, strict=True):
            _check_path(root, name, link, source.path, held=name in paths, overwrite=overwrite)
            if name in paths:
                _refuse_scale(root, link, source.path)
                notes.append(f"the room of the old '{name}' stays in the file, unused")
        for array, link in zip(bundle.arrays, links, strict=True):
            fits += _clashes(root, array, link)
    replaced = [link for name, link in zip(bundle.names, links, strict=True) if name in paths]

    def write(target: Target) -> None:
        there = {paths[array.name]: array for array in held.arrays if array.problem is None}
        Addition(bundle, target, options, structure, source, held.names, there, replaced).run()

    return Plan(fits, write, names=bundle.names, notes=notes)


def _path_of(array: Array, path: str) -> str:
    """The path of the dataset of an array that was read."""
    data = array.data if array.problem is None else None
    if isinstance(data, Dataset) and os.path.samefile(data.file.source.path, path):
        return data.hard.decode("utf-8", "surrogateescape").strip("/")
    return array.name


def _refuse_julia(file: Any, source: Source) -> None:
    """Raise `Unsupported` for a file whose user block ends with the mark of JLD or JLD2."""
    block = file.get_create_plist().get_userblock()
    at = block - dialects.MARK_BYTES
    if at >= 0 and source.read_at(at, 64).startswith(dialects.MARKS):
        raise Unsupported(
            "is a file of Julia's JLD, in whose forms no array is written",
            path=source.path,
            remedy="convert all of it to a new HDF5 file first",
        )


def _is_hard(group: Any, name: bytes) -> bool:
    return bool(group.links.get_info(name).type == h5l.TYPE_HARD)


def _check_path(root: Any, name: str, link: str, path: str, *, held: bool, overwrite: bool) -> None:
    """Raise `TargetExists` if an object is in the way of a dataset, and is not to be replaced."""
    group = root
    *above, last = link.split("/")
    for depth, part in enumerate(above, 1):
        raw = part.encode()
        if not group.links.exists(raw):
            break
        if not _is_hard(group, raw) or info_of(group, raw).kind != GROUP:
            shown = "/".join(above[:depth])
            raise not_an_array(path, shown, "a link, or something other than a group,")
        group = h5g.open(group, raw)
    else:
        raw = last.encode()
        if not group.links.exists(raw):
            return
        if held and not overwrite:
            raise array_exists(path, name)
        if not _is_hard(group, raw):
            raise not_an_array(path, name, "a link")
        if not held:
            kinds = {GROUP: "a group", DATASET: "a dataset that is not read as an array"}
            raise not_an_array(path, name, kinds.get(info_of(group, raw).kind, "an object"))


def _refuse_scale(root: Any, link: str, path: str) -> None:
    """Refuse to replace a dimension scale to which others are attached: they would lose it."""
    if h5a.exists(h5d.open(root, link.encode()), b"REFERENCE_LIST"):
        raise not_an_array(path, link, "a dimension scale, to which other arrays are attached,")


# Scales -------------------------------------------------------------------------------------------


def _named_axes(array: Array, link: str) -> Iterator[tuple[Axis, int, str]]:
    """Yield each named axis, slowest first, with its length and the path of a scale for it."""
    above, _, _ = link.rpartition("/")
    axes = list(array.ra_axes[::-1])
    for index, (axis, length) in enumerate(zip(axes, array.dims[::-1], strict=False)):
        name = shared_name(axis, axes[:index])
        if name:
            yield axis, length, f"{above}/{component(name)}" if above else component(name)


def _clashes(root: Any, array: Array, link: str) -> list[Fit]:
    """List the changes of axes that do not get the dimension of their name, or take its values."""
    clashes = []
    for axis, length, path in _named_axes(array, link):
        if path != link and _kind_at(root, path) and not shares(root, path, axis, length):
            reason = (
                f"its axis '{axis.name}' is not the dimension '{path}' of the container: other "
                "programs see another name, the axis itself is kept"
            )
            clashes.append(equivalent(array.name, "metadata", reason))
    return [*clashes, *_taken(root, array, link)]


def _taken(root: Any, array: Array, link: str) -> list[Fit]:
    """List the change of axes without values that take those of the dimensions of their names."""
    paths = {axis.name: path for axis, _, path in _named_axes(array, link) if path != link}
    taken_facts = []
    for axis, length in zip(array.ra_axes, array.dims, strict=False):
        path = paths.get(axis.name, "")
        has_none = bool(path) and values_of(axis, length) is None
        taken = has_none and shares(root, path, axis, length) and _has_values(root, path)
        taken_facts.append(["labels", "units", "spacing", "origin"] if taken else [])
    if not any(taken_facts):
        return []
    listed = ", ".join(facts_of_axes(array, taken_facts))
    reason = f"it takes the coordinates that the container has for its dimensions: {listed}"
    return [equivalent(array.name, "metadata", reason)]


def _has_values(root: Any, path: str) -> bool:
    """True if a dimension scale has values, and is not a length alone."""
    name = h5ds.get_scale_name(h5d.open(root, path.encode()))
    return scales.NO_VARIABLE.encode() not in name


def _kind_at(root: Any, path: str) -> int | None:
    """The kind of the object at a path; -1 if a link in it is not hard, None without an object."""
    group = root
    *above, last = path.split("/")
    for part in (*above, last):
        raw = part.encode()
        if not isinstance(group, h5g.GroupID) or not group.links.exists(raw):
            return None
        if not _is_hard(group, raw):
            return -1
        kind = info_of(group, raw).kind
        group = h5g.open(group, raw) if kind == GROUP else None
    return int(kind)


def shares(root: Any, path: str, axis: Axis, length: int) -> bool:
    """True if the dimension scale at a path has the length, the unit and the values of the axis."""
    if _kind_at(root, path) != DATASET:
        return False
    oid = h5d.open(root, path.encode())
    if not h5ds.is_scale(oid) or oid.shape != (length,):
        return False
    wanted = values_of(axis, length)
    dataset = h5py.Dataset(oid)
    if axis.units:
        units = dataset.attrs.get("units", axis.units)
        if units not in (axis.units, axis.units.encode()):
            return False
    if wanted is None:
        return True
    if scales.NO_VARIABLE.encode() in h5ds.get_scale_name(oid):
        return False
    if isinstance(wanted, list):
        if h5py.check_string_dtype(dataset.dtype) is None:
            return False
        return [*dataset.asstr(errors="replace")[()]] == wanted
    if dataset.dtype.kind not in "iuf":
        return False
    return bool(np.array_equal(dataset[()], wanted))


# Writing ------------------------------------------------------------------------------------------


class Addition(Writer):
    """The writer of a copy of a file, to which arrays are added.

    `held` is the file, `names` are those of its arrays, `there` those that can be read, by path,
    and `replaced` the paths of datasets to be removed.
    """

    def __init__(
        self, bundle: Bundle, target: Target, options: Options, structure: Structure,
        held: Source, names: list[str], there: dict[str, Array], replaced: list[str],
    ) -> None:  # fmt: skip
        super().__init__(bundle, target, options, structure)
        self.numbered = True
        self.there = {path: array for path, array in there.items() if path not in replaced}
        self.held = held
        self.names = names  # names of the arrays that existed before
        self.replaced = replaced

    def run(self) -> None:
        """Write the whole file."""
        for array in self.bundle.arrays:
            self._ask(array)
        file = self.target.open()
        copy_extent(b"", self.held.extent(0, self.held.size), file)
        with library(self.target.path):
            fid = reopen(name_of_open(file, self.target.temp))
            self.groups[""] = h5o.open(fid, b"/")
        with closing(fid, self.target.path):
            with library(self.target.path):
                self.netcdf = self.netcdf or h5a.exists(self.groups[""], _NETCDF)
                for path in self.replaced:
                    self._remove(path)
            for array in self.bundle.arrays:
                self._dataset(array)
            with library(self.target.path):
                self._added()
        if self.raw:
            write_elements(self.raw, file, self.target)

    def _added(self) -> None:
        """Write scales and attributes of the new datasets, and the order of all."""
        attached = self._scales()
        for array in self.bundle.arrays:
            self._describe(array, attached.get(array.name))
        self._order()

    def _there(self, path: str) -> bool:
        return _kind_at(self.groups[""], path) is not None

    def _group(self, path: str) -> Any:
        if path not in self.groups and self._there(path):
            self.groups[path] = h5g.open(self.groups[""], path.encode())
        return super()._group(path)

    def _free(self, path: Any) -> bool:
        return super()._free(path) and not any(map(self._blocks, (*parents(path), path)))

    def _blocks(self, path: str) -> bool:
        """True if the file has something other than a group at a path."""
        return self._there(path) and _kind_at(self.groups[""], path) != GROUP

    def _may_be(self, path: str) -> bool:
        return super()._may_be(path) and not self._there(path)

    def _nearest(self, path: str, axis: Axis, length: int) -> str | None:
        """The path of the nearest scale, in the group or around it, if it agrees with the axis.

        None if the nearest one has another length, unit or values.
        """
        root = self.groups[""]
        for scale in scales.around(path):
            if scale in self.made:
                return None
            if shares(root, scale, axis, length):
                return scale
            if _kind_at(root, scale) == DATASET and h5ds.is_scale(h5d.open(root, scale.encode())):
                return None
        return None

    def _new_scale(self, path: str, axis: Axis, length: int, array: Array) -> None:
        number = self._next_number()
        super()._new_scale(path, axis, length, array)
        if number is not None:
            oid = h5d.open(self.groups[""], path.encode())
            write_attribute(oid, _DIMID, number, "<i4")

    def _next_number(self) -> int | None:
        """The number for a further dimension; None if those of the file have no numbers."""
        numbers: list[int] = []
        groups = [self.groups[""]]
        while groups:
            group = groups.pop()
            for name in group:
                if not _is_hard(group, name):
                    continue
                kind = info_of(group, name).kind
                if kind == GROUP and len(groups) < 1000:
                    groups.append(h5g.open(group, name))
                elif kind == DATASET:
                    oid = h5d.open(group, name)
                    if h5a.exists(oid, _DIMID.encode()):
                        numbers.append(int(h5py.Dataset(oid).attrs[_DIMID]))
        return max(numbers) + 1 if numbers else None

    def _remove(self, path: str) -> None:
        """Detach a dataset from its scales; remove its name, and scales made for it alone."""
        root = self.groups[""]
        oid = h5d.open(root, path.encode())
        detached = []
        if not h5ds.is_scale(oid):
            for index, dimension in enumerate(h5py.Dataset(oid).dims):
                for scale in dimension.values():
                    h5ds.detach_scale(oid, scale.id, index)
                    detached.append(scale.id)
        for scale in detached:
            if not h5a.exists(scale, b"REFERENCE_LIST") and _is_of_axis(scale, self.held.limits):
                name = h5i.get_name(scale)
                if name and root.links.exists(name.strip(b"/")):
                    root.unlink(name.strip(b"/"))
        root.unlink(path.encode())

    def _order(self) -> None:
        """Add the new names to the order of all arrays, if the file has a record with it."""
        root = self.groups[""]
        if not h5a.exists(root, KEY.encode()):
            return
        text = h5py.Group(root).attrs[KEY]
        try:
            is_ours = roundtrip.is_marked(text)
            record = roundtrip.record_in(text, self.held.limits) if is_ours else {}
        except (ValueError, RaconvertError):
            return
        if "order" not in record:
            return
        names = [*self.names, *(name for name in self.bundle.names if name not in self.names)]
        h5a.delete(root, KEY.encode())
        write_attribute(root, KEY, roundtrip.text_of({**record, "order": names}))


def _is_of_axis(scale: Any, limits: Limits) -> bool:
    """True for a scale that this plugin has made of an axis."""
    if not h5a.exists(scale, KEY.encode()):
        return False
    text = h5py.Dataset(scale).attrs[KEY]
    try:
        return roundtrip.is_marked(text) and "axis_of" in roundtrip.record_in(text, limits)
    except (ValueError, RaconvertError):
        return False
