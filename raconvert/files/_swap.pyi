from typing import Any

def swap(buffer: Any, width: int, /) -> None: ...
def copy(
    source: int,
    target: int,
    offset: int,
    place: int,
    nbytes: int,
    width: int,
    slab: int,
    buffer: Any,
    /,
) -> int: ...
