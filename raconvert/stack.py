"""Many files of one shape and type as one lazy array on a new slowest axis.

The first file decides shape and type; every other file is opened when its turn comes, and an odd
one is an error that names the first file, the odd file, and both. Metadata that all items share is
kept once, fields that differ are kept per item, in a temporary file, so that memory stays that of
one block whatever the number of files.
"""

from __future__ import annotations

import os
from tempfile import TemporaryFile

import numpy as np

from raconvert.adapt import in_order
from raconvert.blocks import as_ndarray, blocks, check_memory
from raconvert.elements import dtype_of, little, type_name
from raconvert.errors import UsageError
from raconvert.model import Array, Metadata
from raconvert.source import DEFAULT_MAX_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def stack(paths: list[str], open_one: Callable[[str], Array]) -> Array:
    """Return the stack of the arrays that `open_one` finds in each path.

    Shape (N, *shape of one), element type of the first, index order C.
    """
    first = in_order(open_one(paths[0]), "C")
    source = _Stack(paths, first, open_one)
    return Array(
        little(first.element),
        (*first.dims, len(paths)),
        name=first.name,
        index_order="C",
        data=source,
    )


class _Stack:
    """Array source: item after item along a new first axis."""

    def __init__(self, paths: list[str], first: Array, open_one: Callable[[str], Array]) -> None:
        self.shape = (len(paths), *first.dims[::-1])
        self.dtype = dtype_of(little(first.element))
        self.items_meta = ItemMetadata(paths)
        self._paths = paths
        self._first = first
        self._open_one = open_one

    def stream(self, max_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
        """Yield blocks of whole items, at most `max_bytes` each (one item at least)."""
        for path in self._paths:
            with self._item(path) as item:
                self.items_meta.add(item.meta.to_dict())
                yield from blocks(item, max_bytes)

    def _item(self, path: str) -> Array:
        item = in_order(self._open_one(path), "C")
        first = self._first
        same_type = little(item.element) == little(first.element)
        if item.dims != first.dims or not same_type:
            raise UsageError(
                "files to stack differ",
                path=path,
                expected=f"{type_name(first.element)} {first.shape} as in '{self._paths[0]}'",
                got=f"{type_name(item.element)} {item.shape}",
                remedy="leave it out, or convert each file on its own with --each",
            )
        return item

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if key and isinstance(key[0], int | np.integer):
            path = self._paths[key[0]]
            return as_ndarray(self._item(path))[key[1:]]
        chosen = self._paths[key[0]] if key and isinstance(key[0], slice) else self._paths
        check_memory(len(chosen) * self._first.nbytes, DEFAULT_MAX_MEMORY, "this part of the stack")
        out = np.empty((len(chosen), *self.shape[1:]), self.dtype)
        for number, path in enumerate(chosen):
            out[number] = as_ndarray(self._item(path))
        return out[(slice(None), *key[1:])]

    @property
    def common(self) -> dict[str, Any]:
        """The metadata that all items share (complete after `stream` ended)."""
        return self.items_meta.common

    @property
    def items(self) -> Callable[[], Iterator[dict[str, Any]]] | None:
        """The per-item metadata that differs, or None."""
        return self.items_meta.items


class ItemMetadata:
    """Collects the metadata of many items: what is common once, what differs on disk."""

    def __init__(self, paths: list[str]) -> None:
        self.common: dict[str, Any] = {}
        self._paths = paths
        self._count = 0
        self._spool: Any = None
        self._flat: dict[tuple[str, ...], Any] = {}

    def add(self, fields: dict[str, Any]) -> None:
        """Add the metadata of the next item; nothing is stored while all items agree."""
        import json

        flat = dict(_flatten(fields))
        if self._count == 0:
            self._flat = flat
        elif self._spool is None and flat != self._flat:
            self._spool = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - kept open
            line = json.dumps([[list(k), v] for k, v in self._flat.items()]) + "\n"
            self._spool.write(line * self._count)
            self._keep_common(flat)
        elif self._spool is not None:
            self._keep_common(flat)
        if self._spool is not None:
            self._spool.write(json.dumps([[list(k), v] for k, v in flat.items()]) + "\n")
        self._count += 1
        self.common = _nested(self._flat.items())

    def _keep_common(self, flat: dict[tuple[str, ...], Any]) -> None:
        self._flat = {k: v for k, v in self._flat.items() if k in flat and flat[k] == v}

    @property
    def items(self) -> Callable[[], Iterator[dict[str, Any]]] | None:
        """Return a reader of the fields that differ, one mapping per item; None if none do."""
        return None if self._spool is None else self._read

    def _read(self) -> Iterator[dict[str, Any]]:
        import json

        self._spool.seek(0)
        for number, line in enumerate(self._spool):
            pairs = [(tuple(k), v) for k, v in json.loads(line)]
            odd = [(k, v) for k, v in pairs if k not in self._flat]
            yield {"item": number, "file": os.path.basename(self._paths[number]), **_nested(odd)}


def _flatten(fields: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _flatten(value, (*path, key))
        else:
            yield (*path, key), value


def _nested(pairs: Any) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in pairs:
        place = root
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
    return root


def late_metadata(array: Array) -> bool:
    """Give a stack the metadata that its items turned out to have; True if there is any."""
    source = array._data
    common = getattr(source, "common", None)
    if common is None:
        return False
    array.meta = Metadata.from_dict(common)
    array.meta.items = source.items
    return bool(array.meta)
