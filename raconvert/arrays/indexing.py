"""The one rule of keys: integers, slices and one Ellipsis, as NumPy indexes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def full_key(key: Any, rank: int) -> tuple[Any, ...]:
    """A key with one part for each of `rank` axes: an Ellipsis, or what is not named, is whole.

    Raises `IndexError`, as NumPy does, for more parts than axes and for a second Ellipsis.
    """
    parts = key if isinstance(key, tuple) else (key,)
    dots = [n for n, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(parts)
    before, behind = parts[:at], parts[at + 1 :]
    missing = rank - len(before) - len(behind)
    if missing < 0:
        raise IndexError(
            f"too many indices for array: array is {rank}-dimensional, "
            f"but {len(before) + len(behind)} were indexed"
        )
    return (*before, *[slice(None)] * missing, *behind)


def is_basic(key: tuple[Any, ...]) -> bool:
    """True if all parts of a whole key are integers and slices."""
    import numpy as np

    return all(
        type(part) is not bool and isinstance(part, slice | int | np.integer) for part in key
    )


def picked(data: Any, key: Any) -> Any:
    """The region of an array source that somebody asks for, read by itself where that can be."""
    part = getattr(data, "part", None)
    if part is not None:
        return part(key)
    dtype = getattr(data, "dtype", None)
    if dtype is None or dtype.names is None or not hasattr(data, "view"):
        return data[key]
    from raconvert.arrays.dtypes import opaque

    # What NumPy copies for a list of indices has all bytes of each structure.
    return opaque(data)[key].view(dtype)
