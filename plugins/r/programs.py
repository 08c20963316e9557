"""Lines of R that read an array of a file of R."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array


def programs_of(array: Array, whole: str) -> dict[str, str]:
    """The lines that take an array out of the object ``x``, which `whole` reads.

    Raises nothing.
    """
    place = array.storage.get("in R")
    if place is None or array.problem is not None:
        return {}
    return {"R": whole if place == "x" else f"{whole}\nx <- {place}"}
