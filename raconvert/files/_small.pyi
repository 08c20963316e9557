"""The compiled form of `small.py`."""

def read_small(name: str, folder: int) -> bytes | None:
    """The same as `small.read_small`."""

def look_at_all(names: list[str], folder: int) -> list[tuple[int, int] | None]:
    """The same as `small.look_at_all`."""

def write_small(
    name: str, beside: str, data: bytes, mode: int, folder: int, sync: int
) -> int | None:
    """The same as `small.write_small`."""
