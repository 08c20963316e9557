"""`Conversion`: one run from a source to one destination, and what is known of it."""

from __future__ import annotations

from raconvert import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle
    from raconvert.catalogue import Row
    from raconvert.conversion.options import Settings
    from raconvert.conversion.read import Opened
    from raconvert.conversion.report import Report
    from raconvert.plugin import Plan, Plugin


class Conversion:
    """One run: to which file, in which format, how, and what has been found out on the way.

    `path` and `row` are the destination and its format; `name` is that of the one array in it
    (``FILE#name``), or None; `opened` is the source, None for arrays that come from memory. What
    was done, and which losses were allowed, is in the `report`.

    Set stage by stage: `origins`, the arrays as they were read; `bundle`, as they are written;
    `plan`, what the plugin makes of it; `forms`, by name how their form differs when they are read
    back.
    """

    __slots__ = (
        "bundle", "forms", "name", "opened", "options", "origins", "path", "plan", "plugin",
        "report", "row", "settings",
    )  # fmt: skip

    bundle: Bundle
    plan: Plan

    def __init__(
        self,
        path: str,
        row: Row,
        settings: Settings,
        report: Report,
        *,
        name: str | None = None,
        opened: Opened | None = None,
    ) -> None:
        self.path: str = path
        self.row: Row = row
        self.settings: Settings = settings
        self.report: Report = report
        self.name: str | None = name
        self.opened: Opened | None = opened
        self.plugin: Plugin = registry.load(row)
        self.options: dict[str, Any] = registry.check_options(row, "write", settings.out_opts or {})
        self.origins: list[Array] = []
        self.forms: dict[str, dict[str, Any]] = {}

    @property
    def used(self) -> set[str]:
        """The paths of all files that the source is read from."""
        return set() if self.opened is None else self.opened.used

    @property
    def left_behind(self) -> dict[str, dict[str, str]]:
        """The companions of arrays that were not chosen with them (`Opened`)."""
        return {} if self.opened is None else self.opened.left_behind

    @property
    def replaces(self) -> bool:
        """True if files that exist may be replaced."""
        return self.settings.overwrite or self.settings.update
