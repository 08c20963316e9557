"""Plan of a MAT file that will hold a bundle."""

from __future__ import annotations

from raconvert.errors import UsageError
from raconvert.plugin import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Bundle, Source, Target

DEFAULT_VERSION = "6"
DEFAULT_LEVELS = {"6": None, "7": 3, "7.3": None}  # 3 is what MATLAB itself uses


def plan(bundle: Bundle, *, version: str = DEFAULT_VERSION, compress: str = "auto") -> Plan:
    """Plan a MAT file with the arrays of a bundle as variables, its groups as structs and cells.

    With the flag that allows it, invalid names are changed, dates become their counts (int64), and
    structured or raw elements become bytes (uint8) on a new first axis. Raises `UsageError` for a
    level of compression in version 6.
    """
    from .contents import Contents

    if version == "6" and compress not in ("auto", "none"):
        raise UsageError(
            "version 6 of MAT is not compressed", remedy="use `--out-opt version=7`, or 7.3"
        )
    level = DEFAULT_LEVELS[version] if compress == "auto" else None
    if compress not in ("auto", "none"):
        level = int(compress)
    contents = Contents(bundle, version)

    def write(target: Target) -> None:
        if version == "7.3":
            from .write73 import write
        else:
            from .writer import write
        write(contents, target, level)

    return Plan(contents.fits, write, names=contents.names)


def add(
    bundle: Bundle,
    source: Source,
    held: Bundle,
    *,
    overwrite: bool,
    version: str = DEFAULT_VERSION,
    compress: str = "auto",
) -> Plan:
    """Plan a copy of the file with the arrays added as variables of its version; see `Add`."""
    from .adding import plan_added

    return plan_added(bundle, source, held, overwrite=overwrite, version=version, compress=compress)
