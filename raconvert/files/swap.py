"""Numbers in the other byte order, in place: by a compiled loop, else by numpy.

`copy_stretch` does that from file to file; None where it could not be compiled.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _by_numpy(slab: memoryview | bytearray, width: int) -> None:
    import numpy as np

    numbers = np.frombuffer(slab, np.uint8)
    if width in (2, 4, 8):
        numbers.view(f"u{width}").byteswap(inplace=True)
    else:
        rows = numbers.reshape(-1, width)
        rows[...] = rows[:, ::-1].copy()


BY_NUMPY = _by_numpy
copy_stretch: Callable[[int, int, int, int, int, int, int, Any], int] | None
try:  # the same without numpy, where it could be compiled
    from raconvert.files._swap import copy as copy_stretch
    from raconvert.files._swap import swap as _swap
except ImportError:
    copy_stretch, _swap = None, _by_numpy


def swap_in_place(slab: memoryview | bytearray, width: int) -> None:
    """Reverse every number of `width` bytes in the slab."""
    _swap(slab, width)
