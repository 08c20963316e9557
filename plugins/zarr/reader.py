"""Reading: from a folder to a bundle: the nodes of a hierarchy, each array lazy over its chunks."""

from __future__ import annotations

import os
from functools import cache, partial

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.interop.conventions import Coordinates
from raconvert.arrays.sources import LateArray
from raconvert.errors import Corrupt, RaconvertError, Unsafe, Unsupported
from raconvert.files.paths import is_remote
from raconvert.metadata import roundtrip
from raconvert.plugin import Array, Bundle, Source

from ..hdf5 import anndata
from . import header, metadata
from .metadata import is_scale
from .stores import Store
from .tables import (
    MARKS,
    OWN,
    V2_ALL,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_GROUP,
    V3_FILE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from raconvert.files.limits import Limits

    from .header import Node

    # Key, attributes of a group, and the node of an array or the error of reading it.
    Row = tuple[str, "dict[str, Any] | None", "Node | RaconvertError | None"]


def read_store(
    source: Source, *, metadata_file: str = "", described: bool = True, labels: bool = False
) -> Bundle:
    """The arrays of a folder, or of the folder of a metadata file, as lazy arrays.

    `described`: with metadata; `labels`: with those of AnnData's axes. Raises `Unsupported` without
    an array, the first reason if no array can be read.
    """
    if not is_remote(source.path) and not os.path.isdir(source.path):
        _ = source.size  # raises the reason if the path cannot be read
    store = Store(source, os.path.dirname(source.path) if metadata_file else source.path)
    if metadata_file:
        store.root = store.root or "."
    bundle = Bundle([])
    notes = bundle.notes
    order: Any = None
    keys: list[str] = []  # of arrays
    renamed: dict[str, str] = {}
    nodes = _single(store, metadata_file) if _has_own_name(metadata_file) else _nodes(store)
    for key, attributes, node in nodes:
        if node is None and attributes is not None:
            order = _take_group(store, key, attributes, bundle, renamed) or order
            continue
        stem = key.rpartition("/")[2] or _stem(store.root)
        name = _name(key, renamed) or stem
        try:
            if isinstance(node, RaconvertError):
                raise node
            if node is not None and not is_scale(node, store.source.limits):
                bundle.arrays.append(_array(store, key, name, stem, node, described, notes.append))
                keys.append(key)
        except RaconvertError as error:
            error.path = error.path or store.path(key)
            bundle.arrays.append(Array.unreadable(name, error))
            keys.append(key)
    if not bundle.arrays:
        raise Unsupported("holds no array", path=source.path, expected="an array of Zarr")
    bundle.arrays = some_sound(bundle.arrays)
    _complete(bundle.arrays if described else (), keys, source.limits)
    names = dict(zip(keys, bundle.names, strict=True))
    _sort(bundle, order or [names[key] for key in store.listed if key in names])
    bundle.groups = bundle.explicit_groups()
    if described:
        anndata.describe(bundle, OWN, source.limits, labels=labels)
    return bundle


def _complete(arrays: Sequence[Array], keys: list[str], limits: Limits) -> None:
    """Fill the axes of arrays from the coordinates beside them."""
    if arrays:
        coordinates = Coordinates(arrays, keys, limits)
        for array, key in zip(arrays, keys, strict=True):
            metadata.complete(array, key, coordinates)


def _has_own_name(metadata_file: str) -> bool:
    """True for a metadata file without one of the names that mark a folder."""
    return bool(metadata_file) and metadata_file not in MARKS


def _stem(root: str) -> str:
    """The name of a folder or URL without the suffix of Zarr."""
    name = os.path.basename(os.path.abspath(root) if not is_remote(root) else root.rstrip("/"))
    return name.removesuffix(".zarr") or name


def _sort(bundle: Bundle, order: Any) -> None:
    """Put the arrays in an order of names, if it lists each of them once."""
    position = {name: index for index, name in enumerate(order or ()) if isinstance(name, str)}
    if len(position) == len(bundle.arrays) and all(name in position for name in bundle.names):
        bundle.arrays.sort(key=lambda array: position[array.name])


def _name(key: str, renamed: dict[str, str]) -> str:
    """Return the name of an array: its key, with the original names of the groups above it."""
    above, _, last = key.rpartition("/")
    group = renamed.get(above, above)
    return f"{group}/{last}" if group else last


def _take_group(
    store: Store, key: str, stored: dict[str, Any], bundle: Bundle, renamed: dict[str, str]
) -> Any:
    """Add the attributes of a group to the bundle; return the order of arrays that the root has."""
    attributes = dict(stored)
    path = store.path(key)
    record = metadata.take_named(attributes, path, store.source.limits)
    if not key:
        bundle.attributes = attributes
        if record:
            roundtrip.apply_to_file(record, bundle, path)
        return record.get("order")
    name = record.get("name", _name(key, renamed))
    if name != key:
        renamed[key] = name
    bundle.groups[name] = {**attributes, **record.get("attributes", {})}
    return None


def _array(
    store: Store,
    key: str,
    name: str,
    stem: str,
    node: Node,
    described: bool,
    tell: Callable[[str], object],
) -> Array:
    """The lazy array of a node; a note on absent chunks goes to `tell`."""
    present = _present(store, key, node)
    total = header.part_count(node)
    path = store.path(key)
    data = partial(_values, store, key, name, node, tell, known=present is not None)
    storage: dict[str, Any] = {
        "layout": f"Zarr {node.version}",
        "chunks": list(header.inner_of(node)),
        "filters": header.words_of(node.codecs),
        "fillvalue": node.fill if type(node.fill) in (int, float, bool) else repr(node.fill)[:80],
    }
    if node.grid != header.inner_of(node):
        storage["shards"] = list(node.grid)
    if present is not None and present < total:
        storage["missing_chunks"] = total - present
        tell(header.absent_note(name, total - present, total, node))
    dims = node.shape[::-1]
    if node.variable:
        array: Array = _texts(node, dims, name, data, storage)
    else:
        array = Array(node.element, dims, name=name, index_order="C", data=data, storage=storage)
    return metadata.describe(array, node, stem, path, store.source.limits) if described else array


def _present(store: Store, key: str, node: Node) -> int | None:
    """Count the chunks of an array that exist, also inside shards; None if not counted."""
    count = store.count(key, node)
    if not count or node.variable or node.grid == header.inner_of(node):
        return count
    from .values import counted  # imports numpy

    return counted(store, key, node, count)


def _texts(
    node: Node, dims: tuple[int, ...], name: str, data: Callable[[], Any], storage: dict[str, Any]
) -> Array:
    """An array of texts or bytes of variable length, which are read once its width is asked for."""
    opened = cache(data)  # both for the width and for the elements
    kind = "text" if node.variable == "utf8" else "bytes"
    array = LateArray(
        f"{kind} of variable length", lambda: opened().node.element, dims, name=name,
        index_order="C", data=opened, storage=storage,
    )  # fmt: skip
    if node.variable == "utf8":
        array.meta = array.meta.replace(encoding="utf-8")
    return array


def _values(
    store: Store, key: str, name: str, node: Node, tell: Callable[[str], object], *, known: bool
) -> Any:
    from .values import Chunks, Texts  # imports numpy

    return (Texts if node.variable else Chunks)(store, key, name, node, tell, known=known)


# The nodes ----------------------------------------------------------------------------------------


def _single(store: Store, name: str) -> Iterator[Row]:
    """Yield the array of a metadata file with a name of its own, or the nodes that it lists."""
    source = store.source
    limits = source.limits
    if source.size > limits.document_bytes:
        raise Corrupt(
            "metadata is too long", path=source.path,
            expected=f"at most {limits.document_bytes} bytes", got=source.size,
        )  # fmt: skip
    try:
        text = source.read_exact(0, source.size, "the metadata")
    finally:
        source.close()
    fields = header.document(text, source.path, limits)
    if "node_type" in fields or fields.get("zarr_format") == 3:
        if not header.is_array(fields, source.path):
            consolidated = fields.get("consolidated_metadata")
            if not isinstance(consolidated, dict):
                raise Unsupported("is a group without its folder", path=source.path)
            yield from _consolidated_3(store, fields, consolidated, source.path)
            return
        yield "", None, header.node_of_3(fields, source.path, limits)
        return
    yield "", None, header.node_of_2(fields, {}, source.path, limits)


def _nodes(store: Store) -> Iterator[Row]:
    """Yield the nodes of a hierarchy, each group before those in it."""
    limits = store.source.limits
    text = store.text(V3_FILE, limits.hierarchy_bytes)
    if text is not None:
        fields = header.document(text, store.path(V3_FILE), limits)
        consolidated = fields.get("consolidated_metadata")
        store.listed = _listed(consolidated)
        if store.remote and isinstance(consolidated, dict):
            yield from _consolidated_3(store, fields, consolidated, store.path(V3_FILE))
        else:
            yield from _walk(store, _node_3, fields)
        return
    try:
        everything = store.text(V2_ALL, limits.hierarchy_bytes)
        fields = header.document(everything, store.path(V2_ALL), limits) if everything else None
    except RaconvertError:
        if store.remote:
            raise
        fields = None  # the folder itself has the same metadata
    if fields is not None:
        store.listed = [key.rpartition("/")[0] for key in _listed(fields)]
        if store.remote:
            yield from _consolidated_2(store, fields)
            return
    for name in (V2_ARRAY, V2_GROUP):
        if (text := store.text(name)) is not None:
            yield from _walk(store, _node_2, None)
            return
    raise Unsupported(
        "is not a Zarr array or group",
        path=store.source.path,
        expected=f"one of {', '.join(MARKS)}",
    )


def _listed(consolidated: Any) -> list[str]:
    """The keys of consolidated metadata, in the order in which arrays are listed."""
    listed = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    return list(dict.fromkeys(listed)) if isinstance(listed, dict) else []


def _walk(store: Store, look: Any, root: dict[str, Any] | None) -> Iterator[Row]:
    """Yield the nodes of a folder, looked for by `look`; `root` is the document of the first."""
    left = [""]
    count = 0
    limits = store.source.limits
    while left:
        key = left.pop()
        try:
            node = look(store, key, None if key else root)
        except RaconvertError as error:
            if not key:
                raise
            node = key, None, error
        if node is None:
            continue
        count += 1
        if count > limits.nodes or key.count("/") > limits.group_levels:
            raise Unsupported(
                "hierarchy is too large", path=store.root,
                expected=f"at most {limits.nodes} nodes, "
                f"{limits.group_levels} groups inside each other",
            )  # fmt: skip
        yield node
        if node[2] is not None:
            continue
        inner, links = store.folders(key)
        above = f"{key}/" if key else ""
        for name in links:
            linked = Unsafe(
                "is a link to a folder, which is not followed", path=store.path(above + name),
                remedy="copy the folder into the hierarchy",
            )  # fmt: skip
            yield above + name, None, linked
        left += [above + name for name in reversed(inner)]


def _node_3(store: Store, key: str, fields: dict[str, Any] | None) -> Row | None:
    """The node of version 3 at a key, by `fields` or its document; None if there is none."""
    name = f"{key}/{V3_FILE}" if key else V3_FILE
    path = store.path(name)
    if fields is None:
        text = store.text(name)
        if text is None:
            return None
        fields = header.document(text, path, store.source.limits)
    return _row_of_3(store, key, fields, path)


def _row_of_3(store: Store, key: str, fields: dict[str, Any], path: str) -> Row:
    """The array or the group of version 3 that a document describes."""
    if header.is_array(fields, path):
        return key, None, header.node_of_3(fields, path, store.source.limits)
    return key, header.attributes_of(fields, path), None


def _node_2(store: Store, key: str, _: object) -> Row | None:
    """The node of version 2 at a key; None if there is none."""
    above = f"{key}/" if key else ""
    array = store.text(above + V2_ARRAY)
    group = store.text(above + V2_GROUP) if array is None else None
    if array is None and group is None:
        return None
    limits = store.source.limits
    text = store.text(above + V2_ATTRIBUTES)
    path = store.path(above + V2_ATTRIBUTES)
    attributes = {} if text is None else header.document(text, path, limits)
    if array is None:
        header.document(group or b"", store.path(above + V2_GROUP), limits)
        return key, attributes, None
    path = store.path(above + V2_ARRAY)
    fields = header.document(array, path, limits)
    return key, None, header.node_of_2(fields, attributes, path, limits)


def node_at(store: Store, key: str) -> Node | None:
    """The array at a key; None if there is none. Raises errors of reading its metadata."""
    at_key = _node_3(store, key, None) or _node_2(store, key, None)
    node = at_key[2] if at_key is not None else None
    return None if isinstance(node, RaconvertError) else node


def _consolidated_3(
    store: Store, fields: dict[str, Any], consolidated: Any, path: str
) -> Iterator[Row]:
    yield _row_of_3(store, "", fields, path)
    listed = consolidated.get("metadata")
    for key in _keys(listed, path, store.source.limits):
        yield _tried(key, partial(_row_of_3, store, key, listed[key], path))


def _tried(key: str, look: Callable[[], Row]) -> Row:
    """Read a node; if it cannot be read, return a row with the error."""
    try:
        return look()
    except RaconvertError as error:
        return key, None, error


def _keys(listed: Any, path: str, limits: Limits) -> list[str]:
    """The keys of consolidated metadata, groups before their members."""
    if not isinstance(listed, dict) or not all(isinstance(v, dict) for v in listed.values()):
        raise Corrupt("consolidated metadata is wrong", path=path, expected="a mapping of nodes")
    if len(listed) > 3 * limits.nodes:
        raise Unsupported(
            "hierarchy is too large", path=path, expected=f"at most {limits.nodes} nodes",
            got=len(listed),
        )  # fmt: skip
    for key in listed:
        if not key or any(part in ("", ".", "..") for part in key.split("/")) or "\\" in key:
            raise Unsafe("consolidated metadata leads out of the folder", path=path, got=key[:80])
    return sorted(listed, key=lambda key: key.split("/"))


def _consolidated_2(store: Store, fields: dict[str, Any]) -> Iterator[Row]:
    path, limits = store.path(V2_ALL), store.source.limits
    listed: Any = fields.get("metadata")
    for name in sorted(_keys(listed, path, limits), key=lambda key: key.split("/")[:-1]):
        key, _, kind = name.rpartition("/")
        attributes = listed.get(f"{key}/{V2_ATTRIBUTES}" if key else V2_ATTRIBUTES, {})
        if kind == V2_GROUP:
            yield key, attributes, None
        elif kind == V2_ARRAY:
            make = partial(header.node_of_2, listed[name], attributes, path, limits)
            yield _tried(key, partial(_array_of_2, key, make))


def _array_of_2(key: str, make: Callable[[], Node]) -> Row:
    return key, None, make()
