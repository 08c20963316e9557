"""The plan of a migration: the target of each source, and the sources that are refused."""

from __future__ import annotations

import os
import stat
from collections import Counter
from functools import lru_cache
from itertools import chain

from raconvert import registry
from raconvert.declared import Record
from raconvert.errors import ReadFailed, TargetExists, UsageError, counted
from raconvert.files.paths import identity
from raconvert.migration.records import Unit
from raconvert.migration.tree import UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.errors import RaconvertError
    from raconvert.migration.tree import Found, Tree


# Source and destination must have no file in common, also not by links, mounts or letter case -----
# Paths are compared before the source tree is walked, the identities of its folders after that. If
# only a target is a file of the source under another name, it alone is refused.


_LOOKED_AT = 16  # names of a folder tried to see if case matters there


def refuse_overlap(source: str, target: str) -> None:
    """Raise `UsageError` if the trees are the same, or one lies in the other, by their paths."""
    if "://" in source or "://" in target:  # checked by `remote.check`
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
    """Raise `UsageError` if a folder to be written into is also in the source, by a second mount.

    `folders` are the identities of the folders of the source tree.
    """
    for folder in _and_above(os.path.realpath(source)):
        if identity(folder) == (identity(target) or ()):
            raise _inside(source, target, target)
    for folder in _and_above(os.path.realpath(target)):
        if identity(folder) in folders:
            raise _inside(target, source, target)
    for below in {unit.target.rpartition("/")[0] for unit in units}:
        folder = os.path.join(target, below)
        if identity(folder) in folders:
            raise UsageError(
                "a folder of the destination is one of the source",
                path=folder,
                expected="two trees that have no file in common",
                remedy="name another destination",
            )


def _and_above(folder: str) -> Iterator[str]:
    """Yield a folder and all folders above it."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield (folder := above)


def refused_targets(
    source: str, target: str, units: Sequence[Unit]
) -> list[tuple[Unit, RaconvertError]]:
    """List the units whose target is a file of the source by a link, each with the error."""
    linked = [(unit, path) for unit in units
              if _has_names(path := os.path.join(target, unit.target))]  # fmt: skip
    if not linked:
        return []
    paths = (path for unit in units for path in _files_of(unit))
    sources = {identity(os.path.join(source, path)) for path in paths}
    sources.discard(None)
    return [
        (unit, TargetExists(
            "is a file of the source under another name, and is left as it was",
            path=path,
            remedy="name another destination, or remove the link",
        ))
        for unit, path in linked
        if identity(path) in sources
    ]  # fmt: skip


def _files_of(unit: Unit) -> list[str]:
    """The files of a unit, below the root of the source tree."""
    return [os.path.join(unit.source, member) for member in unit.members] or [unit.source]


def _has_names(path: str) -> bool:
    """True if a path is a link, or a file that has a second name."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)


def case_counts(folder: str) -> bool:
    """True if names that differ in case are two files in a folder; nothing is written to see it."""
    existing = nearest_folder(folder)
    if existing is None:
        return True
    inside = (os.path.join(existing, name) for name in _names_in(existing))
    for path in chain(inside, _and_above(os.path.realpath(existing))):
        above, name = os.path.split(path)
        if name.swapcase() != name:
            return identity(path) != identity(os.path.join(above, name.swapcase()))
    return True


def nearest_folder(path: str) -> str | None:
    """The folder at a path, or the nearest one above that exists; None for a URL."""
    if "://" in path:
        return None
    return next(filter(os.path.isdir, _and_above(path)), None)


def _names_in(folder: str) -> Iterator[str]:
    """Yield the names with letters among the first `_LOOKED_AT` names in a folder."""
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(_LOOKED_AT), strict=False):
                if entry.name.swapcase() != entry.name:
                    yield entry.name
    except OSError:
        return


FEWEST = 2  # files; a folder with fewer is not a stack


class Plan(Record):
    """Plan of a run: units in order, and those that are refused or left out."""

    units: list[Unit]
    refused: list[tuple[Unit, RaconvertError]]
    left_out: list[tuple[str, str]]  # path below the source root, and why
    # Number of sources by format.
    formats: dict[str, int] = {}  # noqa: RUF012 - never changed

    def without(self, refused: list[tuple[Unit, RaconvertError]]) -> Plan:
        """Return the plan with more units refused."""
        sources = {unit.source for unit, _ in refused}
        kept = [unit for unit in self.units if unit.source not in sources]
        return self._replace(units=kept, refused=self.refused + refused)

    @property
    def nbytes(self) -> int:
        """The number of bytes of all sources."""
        return sum(unit.size for unit in self.units)


def planned(
    tree: Tree,
    row: Row,
    *,
    stack_folders: bool = False,
    stack_classes: bool = False,
    containers: str | None = None,
    key: Callable[[str], str] = os.path.normcase,
) -> Plan:
    """The plan for the files of a tree; the tree is mirrored, the suffix is the format's.

    If two sources have the same target, the second one is refused, so that no result depends on
    which is converted first. `key` maps all paths that are one file in the destination to one text.
    """
    suffix = "" if row.folder else row.suffixes[0]
    if stack_classes and (stack_folders or row.folder):
        raise UsageError(
            "`--stack-classes` goes with a format of files, and without `--stack-folders`"
        )
    stacked = stack_folders or stack_classes
    files, stacks = _stacks(tree.files, 2 if stack_classes else 1) if stacked else (tree.files, [])
    single = not row.many and not row.folder
    if containers == "folder" and not single:
        raise UsageError(
            f"`--containers folder` goes with formats of one array, and {row.name} holds many"
        )
    units = _units(files, suffix, containers if single else "file")
    units += [
        _stack(folder, members, suffix, stack_classes, row.many) for folder, members in stacks
    ]
    files_read = [*files, *(members[0] for _, members in stacks)]
    kept, refused = _without_collisions(units, key)
    return Plan(kept, [*_unreadable(tree), *refused], _left_out(tree), _formats(files_read))


def _unreadable(tree: Tree) -> Iterator[tuple[Unit, RaconvertError]]:
    """Yield the paths, such as folders, that may hold arrays and cannot be read, with the error."""
    for path, why in tree.left_out:
        if why.startswith(UNREADABLE):
            yield Unit(path, path, 0, 0), ReadFailed(why, path=path, remedy="make it readable")


def _left_out(tree: Tree) -> list[tuple[str, str]]:
    return [row for row in tree.left_out if not row[1].startswith(UNREADABLE)]


def _stack(folder: str, members: list[Found], suffix: str, labelled: bool, many: bool) -> Unit:
    """The unit of a stack; with labels it becomes a folder, or a container of `many` arrays."""
    name = folder or "stack"
    start = len(folder) + 1 if folder else 0
    return Unit(
        folder,
        name if labelled and not many else name + suffix,
        sum(file.size for file in members),
        max(file.mtime for file in members),
        tuple(file.path[start:] for file in members),
        folder=name if labelled else "",
    )


def _units(files: Iterable[Found], suffix: str, containers: str | None) -> list[Unit]:
    """The units of files; that of a container has a `folder`, unless `containers` is "file"."""
    usual: dict[str, int] = {}  # length of the suffix, by the part of a name from its first dot on
    units = []
    # Faster than calling the class, for very many files.
    new, rest = tuple.__new__, Unit("", "", 0, 0)[4:]
    for file in files:
        path, size, mtime, format_ = file
        dot = path.find(".", path.rfind("/") + 2)
        length = usual.get(path[dot:]) if dot > 0 and not format_ else None
        if length:
            units.append(new(Unit, (path, path[:-length] + suffix, size, mtime, *rest)))
            continue
        units.append(unit := _unit(file, suffix, containers))
        if not unit.folder and not format_ and dot > 0:
            usual[path[dot:]] = len(_ending(path))
    return units


def _unit(file: Found, suffix: str, containers: str | None) -> Unit:
    """The unit of a file; a container may become a folder."""
    path, size, mtime, *_ = file
    row = row_of(file)
    stem = _stem(path, row)
    if containers == "file" or row is None or not row.many:
        return Unit(path, stem + suffix, size, mtime)
    target = stem if containers == "folder" else stem + suffix
    return Unit(path, target, size, mtime, folder=stem)


def stem_of(file: Found) -> str:
    """The path of a file without the suffix of its format."""
    return _stem(file.path, row_of(file))


def _stem(path: str, row: Row | None) -> str:
    """A path without the suffix of its format."""
    if row is not None and row.folder and not registry.names_folder(path):
        return path
    ending = _ending(path)
    return path[: -len(ending)] if ending else path


def _ending(path: str) -> str:
    return _by_name(path)[1]


def _by_name(path: str) -> tuple[Row | None, str]:
    """The format that a path has by its suffix, and the suffix."""
    name = path.rpartition("/")[2]
    dot = name.find(".", 1)
    return _by_ending("x" + name[dot:] if dot > 0 else name)


@lru_cache(1024)
def _by_ending(name: str) -> tuple[Row | None, str]:
    row = registry.by_suffix(name)
    return row, registry.suffix_of(name, row) if row else os.path.splitext(name)[1]


def _stacks(
    files: Iterable[Found], depth: int
) -> tuple[list[Found], list[tuple[str, list[Found]]]]:
    """Return the files that are not part of a stack, and (folder, its files) of each stack.

    The files of a stack have one suffix, and a format of one array in a file. `depth` is 2 if they
    are in folders of their classes, inside the folder of the stack.
    """
    alone: list[Found] = []
    groups: dict[tuple[str, str], list[Found]] = {}
    for file in files:
        ending = _ending(file.path).lower()
        row = registry.by_suffix(ending) if ending else None
        if row is None or row.many or file.path.count("/") < depth - 1:
            alone.append(file)
        else:
            folder = file.path
            for _ in range(depth):
                folder = folder.rpartition("/")[0]
            groups.setdefault((folder, ending), []).append(file)
    stacks = []
    for (folder, _), members in groups.items():
        if len(members) < FEWEST:
            alone += members
        else:
            stacks.append((folder, members))
    return alone, stacks


def _without_collisions(
    units: Sequence[Unit], key: Callable[[str], str]
) -> tuple[list[Unit], list[tuple[Unit, RaconvertError]]]:
    """Return the units whose target no other unit has, and the others, each with the error.

    No target may be a folder that other targets lie in. A container whose folder would be one is
    planned as a file, and is refused when it turns out to hold several arrays.
    """
    above = _folders(units, key)
    targets = set(map(key, [unit.target for unit in units]))
    distinct = len(targets) == len(units) and targets.isdisjoint(above)
    if distinct and not any(unit.folder for unit in units):
        return list(units), []
    first: dict[str, Unit] = {}
    kept: list[Unit] = []
    refused: list[tuple[Unit, RaconvertError]] = []
    for unit in units:
        if unit.folder and unit.folder != unit.target:
            folder = key(unit.folder)
            if folder in above or folder in targets:
                unit = unit._replace(folder="")  # noqa: PLW2901
        path = key(unit.target)
        first.setdefault(path, unit)
        if path not in above and first[path] is unit:
            kept.append(unit)
            continue
        how = "in which" if path in above else "as"
        other = above.get(path) or first[path].source
        refused.append((unit, TargetExists(
            f"would become '{unit.target}', {how} '{other}' does",
            path=unit.source,
            remedy="rename one of them, or leave one out with `--exclude`",
        )))  # fmt: skip
    return kept, refused


def _folders(units: Sequence[Unit], key: Callable[[str], str]) -> dict[str, str]:
    """Map the key of each folder that targets lie in to the first source that goes there."""
    folders: dict[str, str] = {}
    last = ""
    for unit in units:
        for target in (unit.target, unit.folder) if unit.folder else (unit.target,):
            folder = target.rpartition("/")[0]
            if folder == last:
                continue
            last = folder
            while folder and (path := key(folder)) not in folders:
                folders[path] = unit.source
                folder = folder.rpartition("/")[0]
    return folders


def facts_of(plan: Plan, target: str, before: int = 0) -> dict[str, Any]:
    """Summarise a plan as plain values."""
    return {
        "files": len(plan.units) + len(plan.refused),
        "members": sum(len(unit.members) for unit in plan.units),
        "nbytes": plan.nbytes,
        "before": before,
        "formats": plan.formats,
        "refused": len(plan.refused),
        "left_out": dict(Counter(map(_why, plan.left_out)).most_common()),
        **_room(target),
    }


def _formats(files: Iterable[Found]) -> dict[str, int]:
    """Count sources by format, as their names give it without a look; the most frequent first."""
    counts: Counter[str] = Counter()
    kinds = Counter([format_ or _suffix(path) for path, _, _, format_ in files])
    for kind, count in kinds.items():  # the name of a format, or a suffix
        row = registry.by_suffix(f"x{kind}")
        if row is not None:
            counts[row.name] += count
        else:
            counts["by content" if kind[:1] in (".", "") else kind] += count
    return dict(counts.most_common())


def _suffix(path: str) -> str:
    """The suffix of a path whose name does not begin with a dot, as `os.path.splitext` finds it."""
    dot = path.rfind(".")
    return path[dot:] if dot > path.rfind("/") + 1 else ""


def _why(left_out: tuple[str, str]) -> str:
    """The reason why a file is left out, without the name of another one."""
    return "goes with another file" if left_out[1].startswith("goes with") else left_out[1]


def row_of(file: Found) -> Row | None:
    """The format of a file by its entry or its suffix; None if only its content can tell it."""
    return registry.by_name(file.format) if file.format else _by_name(file.path)[0]


def _room(target: str) -> dict[str, int | None]:
    """The free bytes, and the number of files that can still be made; None for unknown ones."""
    folder = nearest_folder(target)
    if folder is None or not hasattr(os, "statvfs"):
        return {"free": None, "free_files": None}
    status = os.statvfs(folder)
    free_files = status.f_favail if status.f_files else None
    return {"free": status.f_bavail * status.f_frsize, "free_files": free_files}


def check_space(target: str, units: Sequence[Unit]) -> None:
    """Raise `UsageError` if the destination has less space than the sources of `units` take.

    The results may be larger: that is noticed only when the disk is full.
    """
    room = _room(target)
    free, inodes = room["free"], room["free_files"]
    needed = sum(unit.size for unit in units)
    if free is not None and needed > free:
        raise UsageError(
            "the destination does not have enough space",
            path=target,
            expected=f"{needed} bytes, the size of the sources",
            got=f"{free} bytes free",
        )
    if inodes is not None and len(units) > inodes:
        raise UsageError(
            "the destination cannot hold so many files",
            path=target,
            expected=counted(len(units), "file"),
            got=f"{inodes} free inodes",
        )
