"""Source and destination have nothing in common, under whatever names: links, mounts, letter case.

Paths are compared before the source tree is walked, the identities of its folders after that. A
target that is a file of the source under another name is refused alone.
"""

from __future__ import annotations

import os
import stat

from raconvert.errors import TargetExists, UsageError
from raconvert.files.places import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from raconvert.errors import RaconvertError
    from raconvert.migration.records import Unit

_LOOKED_AT = 16  # names in a folder, to see whether case counts there


def refuse_overlap(source: str, target: str) -> None:
    """Raise `UsageError` where one tree lies in the other, or is it, by their paths."""
    if "://" in source or "://" in target:  # `remote.check`
        return
    here, there = os.path.realpath(source), os.path.realpath(target)
    if identity(here) is not None and identity(here) == identity(there):
        raise UsageError("source and destination are the same folder", path=target)
    for inner, outer in ((here, there), (there, here)):
        if inner == outer or inner.startswith(os.path.join(outer, "")):
            raise _inside(inner, outer, target)


def _inside(inner: str, outer: str, target: str) -> UsageError:
    return UsageError(
        "source and destination lie one in the other",
        path=target,
        expected="two trees that have no file in common",
        got=f"'{inner}' is inside '{outer}'",
    )


def refuse_common_folders(
    source: str, folders: set[tuple[int, int]], target: str, units: Sequence[Unit]
) -> None:
    """Raise `UsageError` where a folder to be written into is one of the source, mounted twice.

    `folders` are the identities of those of the source tree.
    """
    for place in _and_above(os.path.realpath(source)):
        if identity(place) == (identity(target) or ()):
            raise _inside(source, target, target)
    for place in _and_above(os.path.realpath(target)):
        if identity(place) in folders:
            raise _inside(target, source, target)
    for below in {unit.target.rpartition("/")[0] for unit in units}:
        place = os.path.join(target, below)
        if identity(place) in folders:
            raise UsageError(
                "a folder of the destination is one of the source",
                path=place,
                expected="two trees that have no file in common",
                remedy="name another destination",
            )


def _and_above(folder: str) -> Iterator[str]:
    """Yield a folder and all that lead to it."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield (folder := above)


def refused_targets(
    source: str, target: str, units: Sequence[Unit]
) -> list[tuple[Unit, RaconvertError]]:
    """The units whose target is there, and is a file of the source by a link, with the reason."""
    linked = [(unit, place) for unit in units
              if _has_names(place := os.path.join(target, unit.target))]  # fmt: skip
    if not linked:
        return []
    paths = [
        [os.path.join(unit.source, member) for member in unit.members] or [unit.source]
        for unit in units
    ]
    sources = {identity(os.path.join(source, path)) for of_unit in paths for path in of_unit}
    sources.discard(None)
    return [
        (unit, TargetExists(
            "is a file of the source under another name, and is left as it was",
            path=place,
            remedy="name another destination, or remove the link",
        ))
        for unit, place in linked
        if identity(place) in sources
    ]  # fmt: skip


def _has_names(place: str) -> bool:
    """True if a file is there under more than one name."""
    try:
        status = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)


def case_counts(folder: str) -> bool:
    """True if names that differ in case are two files in a folder, as far as looking tells."""
    if (there := nearest_folder(folder)) is None:
        return True
    folder = there
    for name in _names_in(folder):
        return identity(os.path.join(folder, name)) != identity(
            os.path.join(folder, name.swapcase())
        )
    for place in _and_above(os.path.realpath(folder)):
        above, name = os.path.split(place)
        if name.swapcase() != name:
            return identity(place) != identity(os.path.join(above, name.swapcase()))
    return True


def nearest_folder(path: str) -> str | None:
    """The folder at a path, or the first one above that is there; None for what is not local."""
    return next(filter(os.path.isdir, _and_above(path)), None) if "://" not in path else None


def _names_in(folder: str) -> Iterator[str]:
    """Yield some names in a folder that have letters."""
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(_LOOKED_AT), strict=False):
                if entry.name.swapcase() != entry.name:
                    yield entry.name
    except OSError:
        return
