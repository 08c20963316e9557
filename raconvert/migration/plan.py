"""The plan of a migration: which target each source has, and what is known to fail."""

from __future__ import annotations

import os
import stat
from collections import Counter
from functools import lru_cache

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


# Source and destination have nothing in common, under whatever names: links, mounts, letter case
# Paths are compared before the source tree is walked, the identities of its folders after that. A
# target that is a file of the source under another name is refused alone.


_LOOKED_AT = 16  # names of a folder tried to see if case matters there


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
    """Yield a folder and all that lead to it."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield (folder := above)


def refused_targets(
    source: str, target: str, units: Sequence[Unit]
) -> list[tuple[Unit, RaconvertError]]:
    """The units whose target is there, and is a file of the source by a link, with the reason."""
    linked = [(unit, location) for unit in units
              if _has_names(location := os.path.join(target, unit.target))]  # fmt: skip
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
            path=location,
            remedy="name another destination, or remove the link",
        ))
        for unit, location in linked
        if identity(location) in sources
    ]  # fmt: skip


def _has_names(path: str) -> bool:
    """True if a file is there under more than one name."""
    try:
        status = os.lstat(path)
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
    for path in _and_above(os.path.realpath(folder)):
        above, name = os.path.split(path)
        if name.swapcase() != name:
            return identity(path) != identity(os.path.join(above, name.swapcase()))
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


FEWEST = 2  # files; a folder with fewer is not a stack


class Plan(Record):
    """Plan of a run: units in order, and those that are refused or left out."""

    units: list[Unit]
    refused: list[tuple[Unit, RaconvertError]]
    left_out: list[tuple[str, str]]  # path below the source root, and why
    formats: dict[str, int] = {}  # noqa: RUF012 - never changed; of the sources, by how many

    def without(self, refused: list[tuple[Unit, RaconvertError]]) -> Plan:
        """The plan without units that are refused, too."""
        gone = {unit.source for unit, _ in refused}
        kept = [unit for unit in self.units if unit.source not in gone]
        return self._replace(units=kept, refused=self.refused + refused)

    @property
    def nbytes(self) -> int:
        """Bytes to be read."""
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

    Of two sources with one target the second is refused, so that no result depends on which came
    first. `key` is what two paths share if they are one file in the destination.
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
    return Plan(kept, [*_unreadable(tree), *refused], _readable(tree), _formats(files_read))


def _unreadable(tree: Tree) -> Iterator[tuple[Unit, RaconvertError]]:
    """Yield the paths, such as folders, that may hold arrays and cannot be read, with the error."""
    for path, why in tree.left_out:
        if why.startswith(UNREADABLE):
            yield Unit(path, path, 0, 0), ReadFailed(why, path=path, remedy="make it readable")


def _readable(tree: Tree) -> list[tuple[str, str]]:
    return [one for one in tree.left_out if not one[1].startswith(UNREADABLE)]


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
    """The units of files."""
    usual: dict[str, int] = {}  # length of the suffix, by the part of a name behind its first dot
    units = []
    # Faster than calling the class, for very many files.
    new, rest = tuple.__new__, Unit("", "", 0, 0)[4:]
    for file in files:
        path, size, mtime, known = file
        dot = path.find(".", path.rfind("/") + 2)
        length = usual.get(path[dot:]) if dot > 0 and not known else None
        if length:
            units.append(new(Unit, (path, path[:-length] + suffix, size, mtime, *rest)))
            continue
        units.append(unit := _unit(file, suffix, containers))
        if not unit.folder and not known and dot > 0:
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
    """The files that stand alone, and the folders of alike ones with what they hold.

    Alike: of one suffix, whose format holds one array in a file. `depth` is 2 where the files are
    in folders of their classes, in the folder of the stack.
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
    alone += [f for members in groups.values() if len(members) < FEWEST for f in members]
    return alone, [(k[0], members) for k, members in groups.items() if len(members) >= FEWEST]


def _without_collisions(
    units: Sequence[Unit], key: Callable[[str], str]
) -> tuple[list[Unit], list[tuple[Unit, RaconvertError]]]:
    """The units with a target of their own, and the others with the reason.

    No target is a folder that other targets lie in; a container that could become one stays a
    file, and is refused when it turns out to hold several arrays.
    """
    above = _folders(units, key)
    targets = set(map(key, [unit.target for unit in units]))
    alone = len(targets) == len(units) and targets.isdisjoint(above)
    if alone and not any(unit.folder for unit in units):
        return list(units), []
    first: dict[str, Unit] = {}
    kept: list[Unit] = []
    refused: list[tuple[Unit, RaconvertError]] = []
    for unit in units:
        if (
            unit.folder
            and unit.folder != unit.target
            and ((path := key(unit.folder)) in above or path in targets)
        ):
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
    """The folders that targets lie in, each with the first source that goes there."""
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
    """The formats of sources as far as they are known without a look, the most frequent first."""
    counts: Counter[str] = Counter()
    kinds = Counter([known or _suffix(path) for path, _, _, known in files])
    for kind, count in kinds.items():  # the name of a format, or a suffix
        row = registry.by_suffix(f"x{kind}")
        counts[row.name if row else "by content" if kind[:1] in (".", "") else kind] += count
    return dict(counts.most_common())


def _suffix(path: str) -> str:
    """The suffix of a path whose name does not begin with a dot, as `os.path.splitext` finds it."""
    dot = path.rfind(".")
    return path[dot:] if dot > path.rfind("/") + 1 else ""


def _why(left_out: tuple[str, str]) -> str:
    """The reason why a file is left out, without the name of another one."""
    return "goes with another file" if left_out[1].startswith("goes with") else left_out[1]


def row_of(file: Found) -> Row | None:
    """The format of a file, as far as it is known without a look into it."""
    return registry.by_name(file.format) if file.format else _by_name(file.path)[0]


def _room(target: str) -> dict[str, int | None]:
    """The free bytes, and the number of files that may still be made; None where not known."""
    folder = nearest_folder(target)
    if folder is None or not hasattr(os, "statvfs"):
        return {"free": None, "free_files": None}
    status = os.statvfs(folder)
    free_files = status.f_favail if status.f_files else None
    return {"free": status.f_bavail * status.f_frsize, "free_files": free_files}


def check_space(target: str, units: Sequence[Unit]) -> None:
    """Raise `UsageError` where the destination has not enough space for what is left to do.

    What is written may be larger or smaller than what is read; twice as much is refused only when
    the disk is full.
    """
    room = _room(target)
    free, inodes = room["free"], room["free_files"]
    needed = sum(unit.size for unit in units)
    if free is not None and needed > free:
        raise UsageError(
            "the destination does not have enough space",
            path=target,
            expected=f"{needed} bytes, as the sources have",
            got=f"{free} bytes free",
        )
    if inodes is not None and len(units) > inodes:
        raise UsageError(
            "the destination cannot hold so many files",
            path=target,
            expected=counted(len(units), "file"),
            got=f"{inodes} free inodes",
        )
