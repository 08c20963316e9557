"""Local folders whose files go elsewhere: who is asked first whether one needs a local file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# By folder: what sends the file of a `Conversion` as it is made; False if it needs a local one.
SENDERS: dict[str, Callable[[Any], bool]] = {}


def sender_of(path: str) -> Callable[[Any], bool] | None:
    """The sender of the folder in which a path lies; None for what stays here. Raises nothing."""
    for folder, send in SENDERS.items():
        if path.startswith(folder):
            return send
    return None
