"""Saying in which variable an error was found."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.errors import RaconvertError


def in_variable(error: RaconvertError, name: str, path: str) -> None:
    """Add the variable and the file in which an error was found, where it does not name them."""
    if name and f"'{name}" not in f"{error.what} {error.where}":
        place = f"variable '{name}'"
        error.where = f"{place}, {error.where}" if error.where else place
    if f"'{path}'" not in error.what:
        error.path = error.path or path
