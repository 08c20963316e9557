"""A hierarchy with an array more, or another one: the files of all others stay as they are.

The new folder begins with further names of all files of the old one (`Folder.keep`). Only documents
that list others are written anew: consolidated metadata of the groups above the array, and the
order of the arrays that we keep. The array is written in the version of the hierarchy.

Dimensions of one name in one group are one dimension to xarray. An axis of the new array shares the
name, and what stands along it, where that is the same; otherwise other programs see a dimension of
another name, and the name of the axis stays in our record.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from raconvert.arrays.interop.conventions import Coordinates
from raconvert.errors import RaconvertError, Unsafe, Unsupported
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Plan, array_exists, not_an_array

from . import header
from .form import key_of
from .metadata import apart_of, dimension_names, is_scale, scales_of
from .plan import apart_fits, fits_of, form_of, whole_form
from .reader import node_at
from .stores import Store
from .tables import V2_ALL, V2_ARRAY, V2_ATTRIBUTES, V2_GROUP, V3_FILE
from .values import Chunks

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.files.folder_target import Folder
    from raconvert.files.limits import Limits
    from raconvert.plugin import Array, Bundle, Source

    from .form import Options
    from .header import Node

    Document = dict[str, Any]

_ARRAY, _GROUP = "array", "group"


class Hierarchy:
    """A hierarchy that exists: its folder, its version, and what lies at a key."""

    def __init__(self, source: Source) -> None:
        self.folder = os.path.dirname(source.path)
        self.store = Store(source, self.folder)
        self.path = self.folder
        self.version = 3 if os.path.isfile(os.path.join(self.folder, V3_FILE)) else 2
        if self.kind("") != _GROUP:
            raise Unsupported(
                "is a single array, and an array can only be added to a group",
                path=self.path,
                remedy="name another destination",
            )

    def document(self, key: str) -> Document | None:
        """Read a metadata file; None if it does not exist."""
        text = self.store.text(key)
        return (
            None
            if text is None
            else header.document(text, self.store.path(key), self.store.source.limits)
        )

    def kind(self, key: str) -> str:
        """Return the kind of node at a key: array, group, something else, or empty for nothing."""
        path = os.path.join(self.folder, *key.split("/")) if key else self.folder
        if os.path.islink(path):
            raise Unsafe("is a link, which is not followed", path=path)
        if self.version == 3:
            fields = self.document(_below(key, V3_FILE)) if os.path.isdir(path) else None
            word = (fields or {}).get("node_type", "")
            if word in (_ARRAY, _GROUP):
                return str(word)
        else:
            for name, kind in ((V2_ARRAY, _ARRAY), (V2_GROUP, _GROUP)):
                if os.path.isfile(os.path.join(path, name)):
                    return kind
        return "something else" if os.path.lexists(path) else ""

    def node(self, key: str) -> Node | None:
        """The array at a key as its metadata describes it; None if that cannot be understood."""
        try:
            return node_at(self.store, key)
        except RaconvertError:
            return None

    def nodes_in(self, group: str) -> dict[str, Node]:
        """The arrays in a group, by key."""
        if self.kind(group) != _GROUP:
            return {}
        keys = [_below(group, name) for name in self.store.folders(group)[0]]
        nodes = {key: self.node(key) for key in keys}
        return {key: node for key, node in nodes.items() if node is not None}

    def values(self, key: str, node: Node) -> Any:
        """The elements of an array; None if they cannot be read."""
        if node.variable:
            return None
        try:
            notes: list[str] = []
            return Chunks(self.store, key, key, node, notes.append, known=True)[...]
        except RaconvertError:
            return None


def plan_added(
    bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool,
    options_for: Callable[[int], Options],
) -> Plan:  # fmt: skip
    """The hierarchy with the arrays in it."""
    there = Hierarchy(source)
    options = options_for(there.version)
    keys = {array.name: _key_of(array) for array in held.arrays}
    places = [_place(there, name, keys, overwrite=overwrite) for name in bundle.names]
    forms = [form_of(a, key, options) for a, key in zip(bundle.arrays, places, strict=True)]
    replaced = [key for name, key in zip(bundle.names, places, strict=True) if name in keys]
    orphans = _orphans(there, places, replaced)
    coordinates = _coordinates(held, keys, bundle, places, source.limits)
    made, apart = _dimensions(there, bundle, places, {*replaced, *orphans}, coordinates)

    def write(target: Folder) -> None:
        from .writer import Writer

        new = [(whole_form(array, key, options), name, array) for key, name, array in made]
        writer = Writer(bundle, target, options, forms, {}, apart, coordinates)
        target.keep()
        for key in (*replaced, *orphans):
            target.discard(key)
        writer.nodes(new)
        for key in _groups_above(places):
            if not there.kind(key):
                writer.group(key)
        _listed(there, writer.documents, target, [*replaced, *orphans], held, bundle)

    fits = [*fits_of(bundle, forms, options), *apart_fits(apart, "which the container has")]
    return Plan(fits, write, names=bundle.names)


def _below(key: str, name: str) -> str:
    return f"{key}/{name}" if key else name


def _key_of(array: Array) -> str:
    """The key of an array that was read."""
    if array.problem is None and isinstance(array.data, Chunks):
        return array.data.key
    return array.name


def _place(there: Hierarchy, name: str, keys: dict[str, str], *, overwrite: bool) -> str:
    """The key of an array, old or new. Raises `TargetExists` for what is in its way."""
    if name in keys:
        if not overwrite:
            raise array_exists(there.path, name)
        return keys[name]
    key = key_of(name, keys)
    for group in _groups_above([key]):
        if there.kind(group) not in (_GROUP, ""):
            raise not_an_array(there.path, group, "something other than a group")
    kind = there.kind(key)
    if kind:
        raise not_an_array(there.path, name, f"a {kind}" if kind == _GROUP else kind)
    return key


def _groups_above(keys: list[str]) -> list[str]:
    groups: dict[str, None] = {}
    for key in keys:
        parts = key.split("/")
        groups.update(dict.fromkeys("/".join(parts[:n]) for n in range(1, len(parts))))
    return [*groups]


# Dimensions ---------------------------------------------------------------------------------------


def _orphans(there: Hierarchy, places: list[str], replaced: list[str]) -> list[str]:
    """The keys of coordinates that were made for a replaced array, and that no other one shares."""
    keys, limits = [], there.store.source.limits
    for key in replaced:
        group = key.rpartition("/")[0]
        nodes = there.nodes_in(group)
        others = [node for other, node in nodes.items() if other != key]
        shared = [n for node in others if not is_scale(node, limits) for n in dimension_names(node)]
        keys += [
            other
            for other, node in nodes.items()
            if is_scale(node, limits) and other.rpartition("/")[2] not in shared
        ]
    return [key for key in dict.fromkeys(keys) if key not in places]


def _coordinates(
    held: Bundle, keys: dict[str, str], bundle: Bundle, places: list[str], limits: Limits
) -> Coordinates:
    """The coordinates of the new hierarchy, those that stay among them."""
    arrays = {keys[array.name]: array for array in held.arrays}
    arrays.update(zip(places, bundle.arrays, strict=True))
    return Coordinates([*arrays.values()], [*arrays], limits)


def _dimensions(
    there: Hierarchy,
    bundle: Bundle,
    places: list[str],
    gone: set[str],
    coordinates: Coordinates,
) -> tuple[list[tuple[str, str, Array]], dict[str, set[str]]]:
    """The coordinates to write; by array the axes that share no dimension."""
    scales = scales_of(bundle, places, {}, coordinates)
    wanted = {key: (name, made) for key, name, made in scales}
    apart = apart_of(bundle, places)
    for array, folder in zip(bundle.arrays, places, strict=True):
        group = folder.rpartition("/")[0]
        nodes = {key: node for key, node in there.nodes_in(group).items() if key not in gone}
        lengths: dict[str, set[int]] = {}
        for node in nodes.values():
            for name, length in zip(dimension_names(node), node.shape, strict=False):
                lengths.setdefault(name, set()).add(length)
        for axis, length in zip(array.ra_axes, array.dims, strict=False):
            name = axis.name or ""
            key = _below(group, name)
            made = wanted.get(key)
            clash = lengths.get(name, {length}) != {length}
            if not clash and key in nodes and made is not None:
                clash = not _same(there.values(key, nodes[key]), made[1].data)
            if name and clash:
                apart.setdefault(array.name, set()).add(name)
            if clash or key in nodes:
                wanted.pop(key, None)
            elif made is not None and there.kind(key) and key not in gone:
                wanted.pop(key)
    return [(key, name, made) for key, (name, made) in wanted.items()], apart


def _same(old: Any, new: Any) -> bool:
    if (
        old is None
        or old.shape != new.shape
        or (old.dtype.kind in "US") != (new.dtype.kind in "US")
    ):
        return False
    return bool((old == new).all())


# Documents ----------------------------------------------------------------------------------------


def _listed(
    there: Hierarchy, new: dict[str, Document], target: Folder, gone: list[str], held: Bundle,
    bundle: Bundle,
) -> None:  # fmt: skip
    """Write the new documents, and those of groups above that list what is in them."""
    order = [*held.names, *(name for name in bundle.names if name not in held.names)]
    for key in ("", *_groups_above([*new])):
        if there.kind(key) != _GROUP:
            continue
        own = {
            name: fields for name, fields in new.items() if not key or name.startswith(f"{key}/")
        }
        cut = len(key) + 1 if key else 0
        inside = {name[cut:]: fields for name, fields in own.items()}
        dead = [name[cut:] for name in gone if not key or name.startswith(f"{key}/")]
        for name, fields in _group_documents(there, key, inside, dead, order).items():
            target.discard(name)
            _put(target, name, fields)
    for name, fields in new.items():
        _put(target, name, fields)


def _put(target: Folder, key: str, fields: Document) -> None:
    target.put(key, [json.dumps(fields, indent=2, ensure_ascii=True).encode()])


def _group_documents(
    there: Hierarchy, key: str, new: dict[str, Document], gone: list[str], order: list[str]
) -> dict[str, Document]:
    """The documents of a group that change, by their keys; in it the nodes `new` and `gone`."""
    changed: dict[str, Document] = {}
    if there.version == 3:
        name = _below(key, V3_FILE)
        fields = there.document(name) or {}
        listed = (fields.get("consolidated_metadata") or {}).get("metadata")
        if isinstance(listed, dict):
            nodes = {node.rpartition("/")[0]: own for node, own in new.items()}
            fields["consolidated_metadata"]["metadata"] = _with(listed, nodes, gone)
            changed[name] = fields
        attributes = fields.get("attributes")
        if (
            not key
            and isinstance(attributes, dict)
            and _with_order(attributes, order, there.store.source.limits)
        ):
            changed[name] = fields
        return changed
    name = _below(key, V2_ATTRIBUTES)
    attributes = there.document(name)
    if (
        not key
        and attributes is not None
        and _with_order(attributes, order, there.store.source.limits)
    ):
        changed[name] = attributes
    everything = there.document(_below(key, V2_ALL))
    listed = (everything or {}).get("metadata")
    if everything is not None and isinstance(listed, dict):
        own = {V2_ATTRIBUTES: attributes} if name in changed and attributes is not None else {}
        everything["metadata"] = _with(listed, {**new, **own}, gone)
        changed[_below(key, V2_ALL)] = everything
    return changed


def _with(listed: Document, new: dict[str, Document], gone: list[str]) -> Document:
    inside = tuple(f"{key}/" for key in gone)
    left = {
        key: new.get(key, fields)
        for key, fields in listed.items()
        if key in new or (key not in gone and not key.startswith(inside))
    }
    return {**left, **new}


def _with_order(attributes: Document, order: list[str], limits: Limits) -> bool:
    """Put the order of all arrays into the record of ours, if it has one; True if it has."""
    text = attributes.get(KEY)
    if text is None or not roundtrip.is_marked(text):
        return False
    record = roundtrip.record_in(text, limits)
    if "order" not in record:
        return False
    attributes[KEY] = roundtrip.text_of({**record, "order": order})
    return True
