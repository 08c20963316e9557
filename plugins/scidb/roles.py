"""What the arrays of a SciDB file are called: the attribute, and its companions beside it."""

from __future__ import annotations

# In the order of the arrays; a column has values, or offsets and bytes.
ROLES = ("values", "offsets", "bytes", "null")
CELLS = "cells"
RAW = "records"


class Namer:
    """Gives names once: an attribute may be called ``a.null`` beside a nullable ``a``."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def name(self, attribute: str, role: str) -> str:
        """Return the name of an array: the attribute's, and its role unless it is the values."""
        name = attribute if role == "values" else f"{attribute}.{role}"
        while name in self._given:
            name += "_"
        self._given.add(name)
        return name
