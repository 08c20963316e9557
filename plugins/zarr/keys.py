"""Keys of a hierarchy, made of the names of arrays, groups and axes; nothing else makes any."""

from __future__ import annotations

from raconvert.files.names import folded, paths_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from raconvert.plugin import Bundle

_UNNAMED = "__xarray_dataarray_variable__"  # xarray's, which looks for it by this name
_DOCUMENTS = ("zarr.json", "bundle.yaml")  # files by which a folder is known


def keys_of(bundle: Bundle) -> tuple[list[str], dict[str, str]]:
    """The key of each array, and of each group: names that folders cannot have are escaped."""
    shown = [*bundle.names, *(f"{group}/x" for group in bundle.groups if group)]
    keys = paths_of([_unreserved(name) for name in shown], "")
    groups: dict[str, str] = {}
    for name, key in zip(shown, keys, strict=True):
        names, parts = name.split("/")[:-1], key.split("/")[:-1]
        for depth in range(1, len(names) + 1):
            groups.setdefault("/".join(names[:depth]), "/".join(parts[:depth]))
    return keys[: len(bundle.arrays)], groups


def key_of(name: str, known: Mapping[str, str]) -> str:
    """The key of a further array; `known` are the keys of those that are there, by name."""
    return paths_of([_unreserved(name)], "", known=known)[0]


def key_beside(key: str, name: str) -> str | None:
    """The key of an array called `name` in the group of another; None if it would be escaped.

    Readers find a coordinate by the name of its axis, which must be the last part of its key.
    """
    if "/" in name or paths_of([_unreserved(name)], "") != [name]:
        return None
    group = key.rpartition("/")[0]
    return f"{group}/{name}" if group else name


def same_on_disk(key: str) -> str:
    """The value that keys share if they are one folder on some system."""
    return folded(key)


def _unreserved(name: str) -> str:
    """The name without parts that have a meaning in a hierarchy: they are escaped."""
    return "/".join(
        f" {part}"
        if part.lower() in _DOCUMENTS or (part.startswith("__") and part != _UNNAMED)
        else part
        for part in name.split("/")
    )
