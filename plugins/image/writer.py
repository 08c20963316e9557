"""One picture as a file, encoded by Pillow through imageio, and written."""

from __future__ import annotations

from .reader import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Array, Target


def encoded(values: Any, suffix: str, **options: Any) -> bytes:
    """One picture as the bytes of a file."""
    import imageio.v3 as iio

    options = {"plugin": "pillow", "extension": suffix, "is_batch": False, **options}
    with guarded(None, "the image to write"):
        data: bytes = iio.imwrite("<bytes>", values, **options)
    return data


def write_image(array: Array, target: Target, encode: Callable[[Any, Target], bytes]) -> None:
    """Write what `encode` makes of an array, which is in memory as a whole."""
    from raconvert.arrays.blocks import as_ndarray
    from raconvert.files.copy import write_all

    write_all(target.open(), [encode(as_ndarray(array, target.max_memory), target)])
    if target.progress is not None:
        target.progress(array.nbytes)
