"""Adding or replacing arrays of a hierarchy: the files of all others stay as they are.

The new folder begins with further names of all files of the old one (`Folder.keep`). Only documents
that list others are written anew: consolidated metadata of the groups above the array, and the
order of the arrays in our record. The array is written in the version of the hierarchy.

Dimensions of one name in one group are one dimension to xarray. An axis of the new array shares the
dimension of its name if that has the same length and coordinate; otherwise other programs see a
dimension of another name, and the name of the axis is in our record.
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
    """An existing hierarchy: its folder, its version, and its nodes by key."""

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
        if text is None:
            return None
        return header.document(text, self.store.path(key), self.store.source.limits)

    def kind(self, key: str) -> str:
        """Return "array", "group" or "something else" by what is at a key; empty for nothing."""
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
        """The metadata of the array at a key; None if there is none that can be read."""
        try:
            return node_at(self.store, key)
        except RaconvertError:
            return None

    def nodes_in(self, group: str) -> dict[str, Node]:
        """The metadata of the arrays in a group, by key."""
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
    """Plan the hierarchy with the arrays of a bundle added; `held` are those in it."""
    hierarchy = Hierarchy(source)
    options = options_for(hierarchy.version)
    keys = {array.name: _key_of(array) for array in held.arrays}
    new_keys = [_new_key(hierarchy, name, keys, overwrite=overwrite) for name in bundle.names]
    forms = [form_of(a, key, options) for a, key in zip(bundle.arrays, new_keys, strict=True)]
    replaced = [key for name, key in zip(bundle.names, new_keys, strict=True) if name in keys]
    orphans = _orphans(hierarchy, new_keys, replaced)
    coordinates = _coordinates(held, keys, bundle, new_keys, source.limits)
    made, apart = _dimensions(hierarchy, bundle, new_keys, {*replaced, *orphans}, coordinates)

    def write(target: Folder) -> None:
        from .writer import Writer

        new = [(whole_form(array, key, options), name, array) for key, name, array in made]
        writer = Writer(bundle, target, options, forms, {}, apart, coordinates)
        target.keep()
        for key in (*replaced, *orphans):
            target.discard(key)
        writer.nodes(new)
        for key in _groups_above(new_keys):
            if not hierarchy.kind(key):
                writer.group(key)
        _put_documents(hierarchy, writer.documents, target, [*replaced, *orphans], held, bundle)

    fits = [*fits_of(bundle, forms, options), *apart_fits(apart, "which the container has")]
    return Plan(fits, write, names=bundle.names)


def _below(key: str, name: str) -> str:
    return f"{key}/{name}" if key else name


def _key_of(array: Array) -> str:
    """The key of an array that was read."""
    if array.problem is None and isinstance(array.data, Chunks):
        return array.data.key
    return array.name


def _new_key(hierarchy: Hierarchy, name: str, keys: dict[str, str], *, overwrite: bool) -> str:
    """The key of an array to be written. Raises `TargetExists` if something is in its way."""
    if name in keys:
        if not overwrite:
            raise array_exists(hierarchy.path, name)
        return keys[name]
    key = key_of(name, keys)
    for group in _groups_above([key]):
        if hierarchy.kind(group) not in (_GROUP, ""):
            raise not_an_array(hierarchy.path, group, "something other than a group")
    kind = hierarchy.kind(key)
    if kind:
        raise not_an_array(hierarchy.path, name, f"a {kind}" if kind == _GROUP else kind)
    return key


def _groups_above(keys: list[str]) -> list[str]:
    """The keys of all groups above nodes, each once, outer ones first."""
    groups: dict[str, None] = {}
    for key in keys:
        parts = key.split("/")
        groups.update(dict.fromkeys("/".join(parts[:n]) for n in range(1, len(parts))))
    return [*groups]


# Dimensions ---------------------------------------------------------------------------------------


def _orphans(hierarchy: Hierarchy, new_keys: list[str], replaced: list[str]) -> list[str]:
    """The keys of coordinates that were made for replaced arrays, and that no other one shares."""
    keys, limits = [], hierarchy.store.source.limits
    for key in replaced:
        group = key.rpartition("/")[0]
        nodes = hierarchy.nodes_in(group)
        others = [node for other, node in nodes.items() if other != key]
        shared = [n for node in others if not is_scale(node, limits) for n in dimension_names(node)]
        keys += [
            other
            for other, node in nodes.items()
            if is_scale(node, limits) and other.rpartition("/")[2] not in shared
        ]
    return [key for key in dict.fromkeys(keys) if key not in new_keys]


def _coordinates(
    held: Bundle, keys: dict[str, str], bundle: Bundle, new_keys: list[str], limits: Limits
) -> Coordinates:
    """The coordinates of the new hierarchy, with those of the arrays that stay."""
    arrays = {keys[array.name]: array for array in held.arrays}
    arrays.update(zip(new_keys, bundle.arrays, strict=True))
    return Coordinates([*arrays.values()], [*arrays], limits)


def _dimensions(
    hierarchy: Hierarchy,
    bundle: Bundle,
    new_keys: list[str],
    removed: set[str],
    coordinates: Coordinates,
) -> tuple[list[tuple[str, str, Array]], dict[str, set[str]]]:
    """The coordinates to write, as in `scales_of`; by array, the axes that share no dimension."""
    scales = scales_of(bundle, new_keys, {}, coordinates)
    wanted = {key: (name, made) for key, name, made in scales}
    apart = apart_of(bundle, new_keys)
    for array, folder in zip(bundle.arrays, new_keys, strict=True):
        group = folder.rpartition("/")[0]
        nodes = {key: node for key, node in hierarchy.nodes_in(group).items() if key not in removed}
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
                clash = not _same(hierarchy.values(key, nodes[key]), made[1].data)
            if name and clash:
                apart.setdefault(array.name, set()).add(name)
            if clash or key in nodes:
                wanted.pop(key, None)
            elif made is not None and hierarchy.kind(key) and key not in removed:
                wanted.pop(key)
    return [(key, name, made) for key, (name, made) in wanted.items()], apart


def _same(old: Any, new: Any) -> bool:
    """True if the values of two coordinates are equal; `old` is None if it cannot be read."""
    if old is None or old.shape != new.shape:
        return False
    both_texts_or_numbers = (old.dtype.kind in "US") == (new.dtype.kind in "US")
    return both_texts_or_numbers and bool((old == new).all())


# Documents ----------------------------------------------------------------------------------------


def _put_documents(
    hierarchy: Hierarchy, new: dict[str, Document], target: Folder, gone: list[str], held: Bundle,
    bundle: Bundle,
) -> None:  # fmt: skip
    """Write the new documents, and those of groups above that list their nodes."""
    order = [*held.names, *(name for name in bundle.names if name not in held.names)]
    for key in ("", *_groups_above([*new])):
        if hierarchy.kind(key) != _GROUP:
            continue
        own = {
            name: fields for name, fields in new.items() if not key or name.startswith(f"{key}/")
        }
        start = len(key) + 1 if key else 0
        inside = {name[start:]: fields for name, fields in own.items()}
        removed = [name[start:] for name in gone if not key or name.startswith(f"{key}/")]
        for name, fields in _group_documents(hierarchy, key, inside, removed, order).items():
            target.discard(name)
            _put(target, name, fields)
    for name, fields in new.items():
        _put(target, name, fields)


def _put(target: Folder, key: str, fields: Document) -> None:
    target.put(key, [json.dumps(fields, indent=2, ensure_ascii=True).encode()])


def _group_documents(
    hierarchy: Hierarchy, key: str, new: dict[str, Document], gone: list[str], order: list[str]
) -> dict[str, Document]:
    """The documents of a group that change, by key; `new` and `gone` are nodes in it."""
    changed: dict[str, Document] = {}
    if hierarchy.version == 3:
        name = _below(key, V3_FILE)
        fields = hierarchy.document(name) or {}
        listed = (fields.get("consolidated_metadata") or {}).get("metadata")
        if isinstance(listed, dict):
            nodes = {node.rpartition("/")[0]: own for node, own in new.items()}
            fields["consolidated_metadata"]["metadata"] = _with(listed, nodes, gone)
            changed[name] = fields
        attributes = fields.get("attributes")
        limits = hierarchy.store.source.limits
        if not key and isinstance(attributes, dict) and _set_order(attributes, order, limits):
            changed[name] = fields
        return changed
    name = _below(key, V2_ATTRIBUTES)
    attributes = hierarchy.document(name)
    if (
        not key
        and attributes is not None
        and _set_order(attributes, order, hierarchy.store.source.limits)
    ):
        changed[name] = attributes
    everything = hierarchy.document(_below(key, V2_ALL))
    listed = (everything or {}).get("metadata")
    if everything is not None and isinstance(listed, dict):
        own = {V2_ATTRIBUTES: attributes} if name in changed and attributes is not None else {}
        everything["metadata"] = _with(listed, {**new, **own}, gone)
        changed[_below(key, V2_ALL)] = everything
    return changed


def _with(listed: Document, new: dict[str, Document], gone: list[str]) -> Document:
    """Consolidated metadata with new nodes, and without removed ones and those below them."""
    inside = tuple(f"{key}/" for key in gone)
    left = {
        key: new.get(key, fields)
        for key, fields in listed.items()
        if key in new or (key not in gone and not key.startswith(inside))
    }
    return {**left, **new}


def _set_order(attributes: Document, order: list[str], limits: Limits) -> bool:
    """Set the order of all arrays in our record, if that has one; True if it has."""
    text = attributes.get(KEY)
    if text is None or not roundtrip.is_marked(text):
        return False
    record = roundtrip.record_in(text, limits)
    if "order" not in record:
        return False
    attributes[KEY] = roundtrip.text_of({**record, "order": order})
    return True
