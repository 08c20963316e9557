"""One image as a file, encoded by Pillow through imageio, and written."""

from __future__ import annotations

from .reader import UNLIMITED, guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np

    from raconvert.plugin import Bundle, Target


def encoded(values: np.ndarray[Any, Any], suffix: str, **options: Any) -> bytes:
    """One image as the bytes of a file."""
    import imageio.v3 as iio

    with guarded(None, "the image to write", UNLIMITED):
        data: bytes = iio.imwrite(
            "<bytes>", values, plugin="pillow", extension=suffix, is_batch=False, **options
        )
    return data


def write_image(
    bundle: Bundle, target: Target, pieces: Callable[[np.ndarray[Any, Any]], list[bytes]]
) -> None:
    """Write the one array of the bundle as `pieces` makes it; it is in memory as a whole."""
    from raconvert.arrays.blocks import as_ndarray
    from raconvert.files.copy import write_all

    array = bundle.arrays[0]
    write_all(target.open(), pieces(as_ndarray(array, target.max_memory)))
    if target.progress is not None:
        target.progress(array.nbytes)
