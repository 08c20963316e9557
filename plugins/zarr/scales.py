"""Coordinates that zarr's readers know: an array beside the others for what stands along an axis.

xarray takes a one-dimensional array that has the name of a dimension for its coordinate. Each has a
record ``axis_of`` and is left out when it is read: the axes say it all.
"""

from __future__ import annotations

from raconvert.arrays.conventions import Coordinates, unsaid
from raconvert.arrays.dtypes import element_of
from raconvert.arrays.space import coordinates
from raconvert.metadata import roundtrip
from raconvert.metadata.roundtrip import KEY
from raconvert.plugin import Array, Axis, Metadata

from .keys import key_beside, same_on_disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from raconvert.plugin import Bundle

    from .header import Node

MOST = 1 << 20  # places along an axis that has a coordinate
OF = "axis_of"  # in the record of one


def is_scale(node: Node) -> bool:
    """True for an array that `scales_of` has made from an axis."""
    text = node.attributes.get(KEY)
    if text is None or len(node.shape) != 1 or not roundtrip.is_marked(text):
        return False
    try:
        return isinstance(roundtrip.record_in(text).get(OF), str)
    except ValueError:
        return False


def scales_of(
    bundle: Bundle, keys: Sequence[str], groups: Mapping[str, str]
) -> list[tuple[str, str, Array]]:
    """Key, name of the array that has the axis, and coordinate, for each axis that says one.

    `keys` are those of the arrays, `groups` maps the names of groups to theirs. None where another
    array or group has the key, where axes of one group say different things of it, and where no
    folder can have the name of the axis.
    """
    found: dict[str, tuple[str, str, Array, dict[str, Any], int] | None] = {}
    apart = apart_of(bundle, keys)
    around = Coordinates(bundle.arrays, keys)
    for array, array_key in zip(bundle.arrays, keys, strict=True):
        if array.problem is not None:
            continue
        axes = coordinates(array.ra_axes, array.meta.space)
        for axis, length in zip(axes, array.dims, strict=False):
            name = axis.name or ""
            shared = name and name not in apart.get(array.name, ())
            key = key_beside(array_key, name) if shared else None
            if key is None:
                continue
            if around.at(array_key, name, length) and _is_said(
                axis, around.along(array_key, axis, length)
            ):
                continue  # by an array of a group around it, which stands for this one, too
            place = same_on_disk(key)
            made = _coordinate(axis, length)
            said = {k: v for k, v in axis.to_dict().items() if k != "kind"}
            known = found.get(place)
            if place not in found:
                found[place] = None if made is None else (key, array.name, made, said, length)
            elif known is not None and (known[0], *known[3:]) != (key, said, length):
                found[place] = None
    used = {same_on_disk(key) for key in (*keys, *groups.values())}
    return [one[:3] for place, one in found.items() if one is not None and place not in used]


def apart_of(bundle: Bundle, keys: Sequence[str]) -> dict[str, set[str]]:
    """By array the names of axes that cannot be its dimensions: in its group they have a length.

    xarray opens no group in which a dimension has two. That of an array named as the dimension
    counts, else that of the first array.
    """
    found: dict[str, set[str]] = {}
    lengths: dict[tuple[str, str], int] = {}
    places = [
        (array, *key.rpartition("/")[::2]) for array, key in zip(bundle.arrays, keys, strict=True)
    ]
    for own in (True, False):
        for array, group, last in places:
            for axis, length in zip(array.ra_axes, array.dims, strict=False):
                name = axis.name or ""
                if not name or (own and (name != last or array.ndim != 1)):
                    continue
                if lengths.setdefault((group, name), length) != length:
                    found.setdefault(array.name, set()).add(name)
    return found


def _is_said(axis: Axis, facts: Mapping[str, Any]) -> bool:
    """True if a coordinate says all of an axis but its name."""
    return not unsaid(axis.replace(kind=None), facts).replace(name=None)


def _coordinate(axis: Axis, length: int) -> Array | None:
    """What stands along an axis as an array; None if it says nothing, or no plain values."""
    values = axis.values(length) if 1 <= length <= MOST else None
    if values is None or values.dtype.kind not in "ifU":
        return None
    values = values.astype(values.dtype.newbyteorder("<"))
    meta = Metadata(units=axis.units, axes=[Axis(axis.name)])
    return Array(
        element_of(values.dtype), (length,), name=axis.name or "", index_order="C", data=values,
        meta=meta,
    )  # fmt: skip
