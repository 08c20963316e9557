"""Translation of metadata to HDF5 attributes, and the record of the rest.

The latter is one attribute, the text of a record (`raconvert.metadata.roundtrip`). On a dataset:
what HDF5 does not hold (axes, other formats' namespaces, values that no attribute can be), what the
array `was`, and `axis_of` on scales made from an axis. On a group: `attributes`. On the root: the
record of the file, with `groups` that no link can name, and the `order` of the arrays.
"""

from __future__ import annotations

from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY

from . import scales
from .attributes import write_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_record(oid: Any, **record: Any) -> None:
    """Write the attribute of what has no other place, if there is anything."""
    if record:
        write_attribute(oid, KEY, roundtrip.text_of(record))


def write_each(oid: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Write attributes in order; return those that HDF5 has no place for."""
    return {
        name: value
        for name, value in values.items()
        if not write_attribute(oid, name, value, types.get(name))
    }


def reserved(*, scale: bool) -> frozenset[str]:
    """The names of attributes that the library uses itself; `scale`: of a dimension scale."""
    return scales.ALWAYS | (scales.ON_SCALES if scale else frozenset())
