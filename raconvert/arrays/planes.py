"""How an array of pictures is taken apart into planes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.array import Array

MAX_CHANNELS = 4  # a last axis that is longer is never taken for channels


def split(array: Array) -> int:
    """How many leading axes become separate files with ``--planes``.

    A last axis of 1 to 4 is the channels from four axes on; with three axes the array is a stack
    of grey planes (an image of three axes needs no ``--planes``).
    """
    with_channels = array.ndim > 3 and array.shape[-1] <= MAX_CHANNELS
    return max(0, array.ndim - (3 if with_channels else 2))
