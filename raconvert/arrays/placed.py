"""Metadata that is given to another array: each entry on the axis that it was about."""

from __future__ import annotations

from raconvert.arrays.metadata import Metadata
from raconvert.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from raconvert.arrays.metadata import Axis


def meta_for(array: Any, meta: Metadata) -> Metadata:
    """Return metadata that is given for an array, if it fits.

    `UsageError` if it is no `Metadata`, the entries are of another rank, or labels of another
    length.
    """
    if not isinstance(meta, Metadata):
        raise UsageError(
            f"the metadata for array '{array.name}' is of the wrong type",
            expected="raconvert.Metadata, such as array.meta",
            got=type(meta).__name__,
            remedy="keys and values of your own: raconvert.Metadata(attributes={...})",
        )
    check_axes(array, meta.axes)
    return meta


def check_axes(array: Any, axes: Sequence[Axis]) -> None:
    """Refuse (`UsageError`) entries, in the order of `shape`, that an array has no axes for."""
    if len(axes) != array.ndim and any(axis.to_dict() for axis in axes):
        raise _misfit(array, f"names {len(axes)} axes", array.ndim)
    for number, (axis, length) in enumerate(zip(axes, array.shape, strict=False)):
        if axis.labels is not None and len(axis.labels) != length:
            place = f"axis {number}" + (f" {axis.name!r}" if axis.name else "")
            raise _misfit(array, f"has {len(axis.labels)} labels for {place}", length)


def _misfit(array: Any, what: str, expected: Any) -> UsageError:
    return UsageError(
        f"the metadata for array '{array.name}' of shape {array.shape} {what}",
        expected=expected,
        remedy="change its `axes`, or leave them out: meta.replace(axes=[])",
    )
