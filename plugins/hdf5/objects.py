"""What an object is and where it lies, as the library tells it without a look at its data.

`h5py.h5o.get_info` asks for everything, the size of the index of its chunks included: in a damaged
index that call ends the process. Here nothing but the header of the object is read.
"""

from __future__ import annotations

from collections import namedtuple

from h5py import h5g

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# kind: h5o.TYPE_GROUP, h5o.TYPE_DATASET or h5o.TYPE_NAMED_DATATYPE, or another number.
Info = namedtuple("Info", "kind fileno address")


def info_of(place: Any, path: bytes = b".") -> Info:
    """Return kind, number of the open file, and address of the object at a path from `place`."""
    found = h5g.get_objinfo(place, path)
    low, high = found.objno  # halves where a C long has 32 bits; else all of it is in the first
    return Info(int(found.type), tuple(found.fileno), int(low) | int(high) << 32)
