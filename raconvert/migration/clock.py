"""The clock of a destination: a file server has its own, and files bear its times."""

from __future__ import annotations

import os
from time import time

from raconvert.files.places import CREATE_FLAGS, temporary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = 0.02  # seconds that times of files may lag behind, as kernels count in ticks


def clock_of(folder: str) -> Callable[[], float]:
    """The clock of the file system of a folder, in seconds since 1970.

    Never ahead of the times that files get there: what is made after a reading is not older.
    """
    place = temporary(os.path.join(folder, "clock"))
    try:
        descriptor = os.open(place, CREATE_FLAGS, 0o600)
    except OSError:  # what is wrong with the folder is said where something is written
        return time
    try:
        skew = os.fstat(descriptor).st_ctime - time() - _STEP
    finally:
        os.close(descriptor)
        os.unlink(place)
    return lambda: time() + skew
