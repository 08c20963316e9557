"""``raconvert version``: the version, and with -v those of Python and of what formats use."""

from __future__ import annotations

import sys

from raconvert import __version__
from raconvert.catalogue import ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.cli.console import Console


def run(args: Any, console: Console) -> int:
    """Print the version, with -v those of libraries; no library is imported for that."""
    del args
    if not (console.json or console.verbose):
        console.result(f"raconvert {__version__}")
        return 0
    versions = {"raconvert": __version__, "python": sys.version.split()[0], **libraries()}
    if console.json:
        console.result_json(versions)
        return 0
    for name, version in versions.items():
        console.result(f"{name} {version or 'is not installed'}")
    return 0


def libraries() -> dict[str, str | None]:
    """The versions of the packages that built-in formats use; None for one that is missing."""
    from importlib.metadata import PackageNotFoundError, version

    versions: dict[str, str | None] = {}
    needs = {need.partition(">")[0] for row in ROWS for _, need in row.needs}
    for name in sorted({"numpy", *needs}):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions
