"""Plan of a HAR file: a header for each array, and the housekeeping headers of the metadata."""

from __future__ import annotations

from raconvert.plugin import equivalent, refused

from .records import LITTLE
from .tables import REAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Array, Fit


class FilePlan:
    """The file to write: its headers, its hidden headers, and the fits."""

    __slots__ = ("fits", "framing", "headers", "hidden")

    def __init__(self) -> None:
        self.fits: list[Fit] = []
        self.framing = LITTLE
        self.headers: list[HeaderPlan] = []
        self.hidden: list[dict[str, Any]] = []


class HeaderPlan:
    """Plan of one array as a header; `own` is the valid part of its namespace."""

    __slots__ = (
        "array", "coefficient", "dims", "fits", "long", "name", "own", "raw", "sets", "status",
        "storage", "type",
    )  # fmt: skip

    def __init__(self, array: Array) -> None:
        self.array = array
        self.fits: list[Fit] = []
        self.own: dict[str, Any] = {}
        self.name = ""
        self.raw = ""  # the name with its blanks
        self.type = REAL
        self.dims = array.dims
        self.storage = "auto"
        self.long = ""
        self.coefficient = ""
        # Name and labels of each dimension's set.
        self.sets: list[tuple[str, list[str] | None]] = []
        self.status = ""

    @property
    def width(self) -> int:
        """The characters of one string, in an array of strings."""
        element = self.array.element
        unicode = isinstance(element.descr, str) and "U" in element.descr
        return int(element.nbytes // 4 if unicode else element.nbytes)

    def equivalent(self, property: str, reason: str) -> None:
        """Add a change of form."""
        self.fits.append(equivalent(self.array.name, property, reason))

    def refused(self, property: str, reason: str, flag: str | None = None) -> None:
        """Add what cannot be held."""
        self.fits.append(refused(self.array.name, property, reason, flag))
